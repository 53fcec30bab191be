# SPDX-License-Identifier: GPL-2.0
"""The code of Documentation/python.rst works."""

import contextlib
import io
import os
import re
import tempfile
import textwrap
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

from sched_pbs import Case, Plan, simulate, sweep
from sched_pbs.optional import has

from .common import TOP
from .service import Service
from .test_runtime import why_not


def blocks() -> list[str]:
    """Blocks of Python of the page, in their order."""
    text = (TOP / "Documentation/python.rst").read_text(encoding="utf-8")
    found = re.findall(r"^\.\. code-block:: python\n\n((?:    .*\n|\n)+)", text, re.MULTILINE)
    return [textwrap.dedent(block) for block in found]


class Page(unittest.TestCase):
    def test_blocks_do_what_the_page_says(self) -> None:
        plans, own, simulations, pictures, planner, services, tasks = blocks()
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            names: dict[str, Any] = {"__name__": "page"}
            exec(plans, names)
            self.assertEqual(Plan.read("plan.json"), names["plan"])
            program = {"SCHED_PBS_JOB_NAME": "weather", "SCHED_PBS_CPU": "2"}
            printed = io.StringIO()
            with mock.patch.dict(os.environ, program), contextlib.redirect_stdout(printed):
                exec(own, {"__name__": "page"})
            self.assertIn("weather", printed.getvalue())
            exec(simulations, names)
            self.assertEqual(len(names["results"]), 18)
            exec(planner, names)
            plan, late_last = names["plan"], names["LateLast"]
            one = simulate(plan, planner=late_last())
            self.assertGreaterEqual(len(one.replans), 1)
            self.assertEqual(sweep([Case(plan, planner=late_last)]), [one])
            if has("matplotlib"):
                import matplotlib

                matplotlib.use("Agg")
                exec(pictures, names)
                self.assertTrue(os.path.exists("gantt.svg"))
            os.chdir(before)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "pbs.sock")
            service = Service(self, path)
            service.answers = [{"jobs": [{"number": 4}]}]
            service.events = [
                {"job": job, "kind": kind, "text": f"{job} {kind}"}
                for job, kind in [(4, "planned"), (3, "over"), (4, "running"), (4, "over")]
            ]
            printed = io.StringIO()
            with (
                mock.patch.dict(os.environ, {"PBS_SOCKET": str(path)}),
                contextlib.redirect_stdout(printed),
            ):
                # A service that does not answer is a failure of the test.
                services = services.replace("NodeService()", "NodeService(timeout_s=60)")
                exec(services, {"__name__": "page"})
            lines = ["planned 4 planned", "running 4 running", "over 4 over"]
            self.assertEqual(printed.getvalue().splitlines(), lines)
        if not why_not():
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(tasks, {"__name__": "page"})
            results = [line.split()[-1] for line in printed.getvalue().splitlines()]
            self.assertEqual(results, ["499500", "499500"])
