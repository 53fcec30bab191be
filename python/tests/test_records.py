# SPDX-License-Identifier: GPL-2.0
"""Plans, jobs, graphs and machines as JSON, beside the files that pbsctl reads."""

import json
import tempfile
import unittest
from pathlib import Path

from sched_pbs import (
    Command,
    Config,
    Cpu,
    FileError,
    Graph,
    Idle,
    Job,
    Machine,
    Plan,
    Process,
    Record,
    Task,
    run_json,
)
from sched_pbs.quantity import number_of

from .common import SAMPLES, TOP, Inputs

# Keys by which a file is of a kind; a process alone is a job.
KINDS: dict[str, type[Record]] = {"cpu": Plan, "task": Graph, "node": Machine, "process": Job}


def kind_of(text: str) -> type[Record] | None:
    """Kind of a file of the repository; None: it is no input of pbsctl plan check."""
    for key, kind in KINDS.items():
        if f"\n[[{key}]]" in text and "\n[[pool]]" not in text and "[[claim" not in text:
            return kind
    return None


def check(text: str) -> dict[str, object]:
    return run_json(["plan", "check", "-"], text)


class Records(unittest.TestCase):
    def test_samples_mean_the_same_as_json(self) -> None:
        found: dict[str, int] = {}
        folders = [SAMPLES, TOP / "studies/pbs-reproduce"]
        for file in (file for folder in folders for file in sorted(folder.rglob("*.toml"))):
            text = file.read_text(encoding="utf-8")
            kind = kind_of(text)
            if kind is None or file.parent.name == "cluster":
                continue
            with self.subTest(file=str(file.relative_to(TOP))):
                record = kind.read(file)
                self.assertEqual(kind.loads(record.dumps()), record)
                self.assertEqual(kind.loads(record.dumps_toml()), record)
                expected = check(text)
                self.assertEqual(check(record.dumps()), expected)
                self.assertEqual(check(record.dumps_toml()), expected)
                found[kind.__name__] = found.get(kind.__name__, 0) + 1
        for name in ("Plan", "Job", "Graph", "Machine"):
            self.assertGreaterEqual(found.get(name, 0), 1, found)

    def test_random_inputs_survive_both_formats_and_pbsctl_accepts_them(self) -> None:
        for seed in range(25):
            inputs = Inputs(seed)
            for record in (inputs.plan(), inputs.job(), inputs.graph(), inputs.machine()):
                kind = type(record)
                with self.subTest(seed=seed, kind=kind.__name__):
                    self.assertEqual(kind.loads(record.dumps()), record)
                    self.assertEqual(kind.loads(record.dumps_toml()), record)
                    self.assertEqual(check(record.dumps())["kind"], kind.__name__.lower())

    def test_quantities_with_units_become_numbers(self) -> None:
        plan = Plan.loads(
            """
            lease_ns = "2s"
            memory_bytes = "64MiB"
            config = { sigma_t1_permille = "105%", window_period_ns = "20 ms" }
            process = [{ id = 1, tasks = ["1.5M", { planned_insns = "20k" }], deadline = "250 ms" }]
            cpu = [{ cpu = 0, slots = [1, "idle 5M", 1], rate_insns_per_ms = "1M" }]
            """
        )
        self.assertEqual((plan.lease_ns, plan.memory_bytes), (2_000_000_000, 64 << 20))
        self.assertEqual(plan.config, Config(sigma_t1_permille=1050, window_period_ns=20_000_000))
        self.assertEqual(plan.processes[0].tasks, [Task(1_500_000), Task(20_000)])
        self.assertEqual(plan.processes[0].deadline_ns, 250_000_000)
        self.assertEqual(plan.cpus[0].slots, [1, Idle(5_000_000), 1])

    def test_numbers_are_exact(self) -> None:
        self.assertEqual(number_of("a_insns", "281474976710.656k"), 281474976710656)
        for name, text in [("a_ns", "1.5ns"), ("a_ns", "4 mm"), ("count", "4"), ("a_ns", "4")]:
            with self.assertRaises(ValueError, msg=text):
                number_of(name, text)

    def test_what_is_wrong_is_named_with_its_place_and_its_remedy(self) -> None:
        good = {"id": 1, "tasks": [5]}
        for plan, words in [
            ({"proces": []}, "the plan has no key proces; did you mean process?"),
            ({"process": [{"id": 1}]}, "process of the plan[0] has no tasks; add it"),
            ({"process": [{**good, "id": "x"}]}, 'id is "x"; write a whole number'),
            ({"process": [{**good, "cpu": True}]}, "is True; write a whole number"),
            ({"process": [{**good, "tasks": [{"id": 4}]}]}, "has no planned_insns; add it"),
            ({"lease_ns": "2 hours"}, "write one of the units ns, us"),
            ({"cpu": [{"cpu": 0, "slots": ["idle 5x"]}]}, 'slot "idle 5x"'),
            ({}, "this is empty, and no plan; it needs process and cpu"),
            ({"plan_id": 5}, "this is no plan; it needs process and cpu"),
        ]:
            with self.subTest(plan=plan), self.assertRaises(FileError) as caught:
                Plan.loads(json.dumps(plan))
            self.assertIn(words, str(caught.exception))
        with self.assertRaisesRegex(FileError, "this is empty, and no plan"):
            Plan.loads("")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "plan.json")
            file.write_text("{")
            with self.assertRaises(FileError) as caught:
                Plan.read(file)
            self.assertIn(f"{file}: this is neither JSON nor TOML", str(caught.exception))

    def test_a_written_file_has_a_line_for_each_key(self) -> None:
        process = Process(1, [Task(5)], command=["true"])
        plan = Plan([process], [Cpu(0, [1])], lease_ns=1)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "plan.json")
            plan.write(file)
            self.assertEqual(Plan.read(file), plan)
            with self.assertRaises(RuntimeError) as caught:
                run_json(["plan", "check", str(file)])
        line = 1 + plan.dumps().splitlines().index(' "lease_ns": 1')
        self.assertIn(f"plan.json:{line}: ", str(caught.exception))

    def test_a_command_with_redirections_is_an_object(self) -> None:
        process = Process(1, [Task(5), Task(5)])
        process.commands = [Command(["true"]), Command(["cat"], stdin="/dev/null")]
        written = process.to_json()["commands"]
        self.assertEqual(written, [["true"], {"command": ["cat"], "stdin": "/dev/null"}])
