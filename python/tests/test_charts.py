# SPDX-License-Identifier: GPL-2.0
"""Records of pictures, and the pictures with and without matplotlib."""

import tempfile
import unittest
from pathlib import Path
from unittest import mock
from xml.etree import ElementTree

from sched_pbs import Options, charts, generate, optional, simulate

from .common import late_plan


def without_packages() -> "mock._patch[mock.Mock]":
    """A Python in which no package of others is installed."""
    return mock.patch("importlib.util.find_spec", return_value=None)


class Charts(unittest.TestCase):
    def test_stays_are_the_time_in_which_processes_have_the_cpu(self) -> None:
        for plan in (late_plan(), generate("scatter-gather", tasks="5..5")):
            simulation = simulate(plan, Options(scheduler="stretch"))
            (cpu,) = simulation.recording["cpus"]
            rows = charts.stays(simulation)
            # Stays include the unallocated time within them.
            busy_ns = sum(stay["end_ns"] - stay["begin_ns"] for stay in rows)
            self.assertGreaterEqual(busy_ns, cpu["running_ns"])
            self.assertLessEqual(busy_ns, cpu["running_ns"] + cpu["unallocated_ns"])
            for before, after in zip(rows, rows[1:], strict=False):
                self.assertLessEqual(before["end_ns"], after["begin_ns"])
            ids = {process.id for process in simulation.processes}
            self.assertEqual({stay["process"] for stay in rows}, ids)

    def test_lateness_passes_its_threshold_at_a_signal(self) -> None:
        simulation = simulate(late_plan())
        rows = charts.lateness(simulation)
        self.assertEqual({row["series"] for row in rows}, {"lateness", "t2", "tm2"})
        self.assertEqual({row["process"] for row in rows}, {None, 1, 2})
        signal = next(it for it in simulation.signals() if it["reason"] == "process")
        points = [row for row in rows if row["process"] == signal["process"]]
        at_signal = [row["insns"] for row in points if row["time_ns"] == signal["time_ns"]]
        self.assertIn(signal["lateness_insns"], at_signal)

    def test_svg_needs_pbsctl_alone(self) -> None:
        simulation = simulate(late_plan())
        with without_packages(), tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "gantt.svg")
            charts.write_gantt(simulation, file)
            self.assertTrue(ElementTree.parse(file).getroot().tag.endswith("svg"))
            with self.assertRaisesRegex(ImportError, "matplotlib is missing.*ends with .svg"):
                charts.write_gantt(simulation, Path(folder, "gantt.png"))
        self.assertIn("<svg", charts.svg(simulation, "node-0"))

    def test_what_is_missing_is_named(self) -> None:
        simulation = simulate(late_plan())
        with without_packages():
            with self.assertRaisesRegex(ImportError, "python3-matplotlib.*call svg"):
                charts.gantt(simulation)
            with self.assertRaisesRegex(ImportError, "python3-pandas.*dictionaries"):
                optional.frame(simulation.events)

    @unittest.skipUnless(optional.has("matplotlib"), "matplotlib is not installed")
    def test_figures_have_an_axis_with_all_stays(self) -> None:
        import matplotlib

        matplotlib.use("Agg")
        simulation = simulate(late_plan())
        (axes,) = charts.gantt(simulation).axes
        self.assertEqual(len(axes.patches), len(charts.stays(simulation)))
        (axes,) = charts.lateness_plot(simulation).axes
        self.assertGreaterEqual(len(axes.lines), 6)
        with tempfile.TemporaryDirectory() as folder:
            for name in ("gantt.png", "gantt.svg"):
                charts.write_gantt(simulation, Path(folder, name))
                self.assertGreater(Path(folder, name).stat().st_size, 1000)

    @unittest.skipUnless(optional.has("pandas"), "pandas is not installed")
    def test_events_are_rows_of_a_frame(self) -> None:
        simulation = simulate(late_plan())
        frame = optional.frame(simulation.events)
        self.assertEqual(len(frame), len(simulation.events))
        self.assertEqual(list(frame["kind"]), [event["kind"] for event in simulation.events])
