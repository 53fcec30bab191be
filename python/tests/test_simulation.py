# SPDX-License-Identifier: GPL-2.0
"""Simulations, alone and as sweeps."""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from sched_pbs import (
    Case,
    Config,
    FileError,
    Idle,
    Options,
    PbsctlError,
    Plan,
    Planner,
    Question,
    Simulator,
    find_pbsctl,
    generate,
    run_json,
    simulate,
    sweep,
)
from sched_pbs.config import DISPATCHES, IDLE_POLICIES, PREEMPTION_WAYS, THRESHOLDS

from .common import TOP, late_plan


class Simulations(unittest.TestCase):
    def test_results_are_those_of_the_command(self) -> None:
        plan = late_plan()
        config = Config(thresholds=["t1", "t2_task"], idle_policy="least_slack")
        options = Options(
            config=config,
            scheduler="stretch",
            late_permille=1300,
            rate_insns_per_ms=2_000_000,
            resolution="tick",
            timer_delay_insns=5,
            look_ns=1000,
            switch_ns=2000,
            memory_over="swap",
            swap_slowdown=7,
            limit_ns=10_000_000_000,
            max_answers=9,
            shared_answer_ns=3_000_000,
        )
        text = json.dumps(plan.to_json())
        expected = run_json(["sim", "-", *options.arguments()], text)
        simulation = simulate(plan, options)
        self.assertEqual(simulation.recording, expected)
        self.assertEqual(simulation.config.thresholds, ["t1", "t2_task"])
        self.assertEqual(simulation.config.idle_policy, "least_slack")
        self.assertEqual(simulation.plans[0], plan)

    def test_slow_downs_have_a_level_and_the_policy_changes(self) -> None:
        plan = late_plan()
        text = """
            [[slowdown]]
            victim = "far"
            beside = [{ name = "2", level = "llc" }, { name = "2", level = "smt" }]
            slowdown_permille = 1500
        """
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "slowdowns.toml"
            file.write_text(text, encoding="utf-8")
            with self.assertRaisesRegex(PbsctlError, "add --shared"):
                simulate(plan, Options(slowdowns=str(file)))
            options = Options(slowdowns=str(file), shared="llc")
            self.assertTrue(simulate(plan, options).ended)
        changes = (
            (5_000_000, Config(idle_policy="pieces", idle_piece_ns=2_000_000)),
            (20_000_000, Config(thresholds=["t1"])),
        )
        options = Options(changes=changes)
        expected = run_json(["sim", "-", *options.arguments()], json.dumps(plan.to_json()))
        simulation = simulate(plan, options)
        self.assertEqual(simulation.recording, expected)
        changed = [event for event in simulation.events if event["kind"] == "configured"]
        self.assertEqual([event["time_ns"] for event in changed], [5_000_000, 20_000_000])

    def test_lateness_is_counted_from_the_deadline(self) -> None:
        simulation = simulate(late_plan())
        far, other = simulation.process("far"), simulation.process(2)
        self.assertFalse(far.kept)
        self.assertTrue(other.kept)
        self.assertEqual(simulation.kept, 1)
        self.assertEqual(far.lateness_ns, (far.ended_ns or 0) - far.deadline_ns)
        self.assertGreater(far.lateness_ns or 0, 0)
        self.assertLess(other.lateness_ns or 0, 0)
        self.assertTrue(all(event["kind"] == "late" for event in simulation.signals()))
        with self.assertRaises(KeyError):
            simulation.process("nobody")

    def test_a_plan_that_does_not_end_is_a_result(self) -> None:
        simulation = simulate(late_plan(), Options(limit_ns=1_000_000))
        self.assertFalse(simulation.ended)
        self.assertIsNone(simulation.process(2).ended_ns)
        self.assertIsNone(simulation.process(2).lateness_ns)

    def test_a_plan_that_is_refused_is_an_error_with_its_problems(self) -> None:
        plan = late_plan()
        plan.cpus[0].slots.append(Idle(-1))
        with self.assertRaises(PbsctlError) as caught:
            simulate(plan)
        self.assertIn("line 1", str(caught.exception))
        self.assertEqual(len(caught.exception.problems), 1)
        with self.assertRaises(PbsctlError) as caught:
            simulate(late_plan(), Options(scheduler="nobody"))
        self.assertIn("none, stretch", str(caught.exception))

    def test_a_simulator_goes_on_after_an_error(self) -> None:
        with Simulator() as simulator:
            with self.assertRaises(PbsctlError):
                simulator.simulate(Plan())
            self.assertEqual(simulator.simulate(late_plan()), simulate(late_plan()))

    def test_an_interrupted_simulator_does_not_give_its_result_to_the_next_plan(self) -> None:
        with Simulator() as simulator:
            with mock.patch.object(simulator._process, "stdout") as stdout:
                stdout.readline.side_effect = KeyboardInterrupt
                with self.assertRaises(KeyboardInterrupt):
                    simulator.simulate(Plan())
            with self.assertRaisesRegex(PbsctlError, "make another"):
                simulator.simulate(late_plan())

    def test_a_relative_variable_is_good_in_every_directory(self) -> None:
        command = find_pbsctl()
        program = "import os, sched_pbs; os.chdir('/'); print(sched_pbs.find_pbsctl())"
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=TOP / "python",
            env=os.environ | {"PBSCTL": os.path.relpath(command, TOP / "python")},
            capture_output=True,
            text=True,
        )
        self.assertEqual((done.stdout.strip(), done.stderr), (command, ""))

    def test_a_missing_command_is_named(self) -> None:
        with self.assertRaises(FileNotFoundError) as caught:
            simulate(late_plan(), pbsctl="/no/pbsctl")
        self.assertIn("PBSCTL", str(caught.exception))
        with self.assertRaises(PbsctlError):
            simulate(late_plan(), pbsctl="/bin/false")

    def test_a_command_of_another_version_is_named_with_a_remedy(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            command = pathlib.Path(directory) / "pbsctl"

            def prints(script: str) -> None:
                command.write_text(f"#!/bin/sh\n{script}\n")
                command.chmod(0o755)

            prints("echo \"error: unexpected argument '--batch' found\" >&2; exit 2")
            for call in (
                lambda: simulate(late_plan(), pbsctl=command),
                lambda: run_json(["plan", "check", "-"], pbsctl=command),
            ):
                with self.assertRaises(PbsctlError) as caught:
                    call()
                for part in (str(command), "ended with status 2", "make pbsctl", "PBSCTL"):
                    self.assertIn(part, str(caught.exception))
            prints("echo '{\"schema\": \"pbs.check/2\"}'")
            with self.assertRaises(PbsctlError) as caught:
                run_json(["plan", "check", "-"], pbsctl=command)
            told = f"{command} --json plan check - printed pbs.check/2, and this package reads"
            self.assertIn(told, str(caught.exception))
            prints("kill -9 $$")
            with self.assertRaisesRegex(PbsctlError, "was ended by signal 9"):
                run_json(["status"], pbsctl=command)
            command.chmod(0o644)
            with self.assertRaisesRegex(PermissionError, "chmod .x"):
                run_json(["status"], pbsctl=command)

    def test_an_error_names_the_command(self) -> None:
        with self.assertRaises(PbsctlError) as caught:
            run_json(["plan", "check", "-"], "no plan")
        lines = str(caught.exception).split("\n")
        self.assertEqual(lines[-1], f"in: {find_pbsctl()} --json plan check -")
        with self.assertRaises(PbsctlError) as caught:
            run_json(["plan", "check", "--no-such-option"])
        self.assertIn("may be of another version than this package", str(caught.exception))

    def test_policies_are_those_of_pbsctl_and_of_the_schema(self) -> None:
        with self.assertRaises(PbsctlError) as caught:
            simulate(late_plan(), Options(config=Config(idle_policy="no_such_policy")))
        _, names = str(caught.exception).split("it can be ")
        self.assertEqual(tuple(names.split("\n")[0].rstrip(".").split(", ")), IDLE_POLICIES)
        schema = json.loads((TOP / "schemas/plan.schema.json").read_text())
        named = schema["$defs"]["config"]["properties"]["idle_policy"]["enum"]
        self.assertEqual(tuple(named), IDLE_POLICIES)

    def test_policy_without_a_name_is_reported(self) -> None:
        with self.assertRaisesRegex(FileError, "idle_policy of config is 99.*add it"):
            Config.from_json({"idle_policy": 99})

    def test_numbers_of_the_policy_have_names_both_ways(self) -> None:
        names = {field.name for field in dataclasses.fields(Config)}
        self.assertEqual(names, set(simulate(late_plan()).recording["config"]))
        words: list[tuple[str, object]] = [("idle_policy", word) for word in IDLE_POLICIES]
        words += [("preemption_way", word) for word in PREEMPTION_WAYS]
        words += [("dispatch", word) for word in DISPATCHES]
        words += [("thresholds", [word]) for word in THRESHOLDS]
        words += [("thresholds", []), ("thresholds", list(THRESHOLDS))]
        words += [(name, is_on) for name in ("idle_is_lateness",) for is_on in (False, True)]
        words += [("t1_spares_last_slot", False), ("idle_piece_ns", 5_000_000)]
        configs = [Config(**{name: word}) for name, word in words]  # type: ignore[arg-type]
        cases = [Case(late_plan(), Options(config=config)) for config in configs]
        for (name, word), simulation in zip(words, sweep(cases), strict=True):
            with self.subTest(name=name, word=word):
                self.assertEqual(getattr(simulation.config, name), word)


class Sweeps(unittest.TestCase):
    def test_results_have_the_order_of_the_cases(self) -> None:
        plans = [generate(seed=seed, tasks="3..3") for seed in range(1, 9)]
        told: list[tuple[int, int]] = []
        results = sweep(map(Case, plans), workers=3, progress=lambda *it: told.append(it))
        self.assertEqual(results, [simulate(plan) for plan in plans])
        self.assertEqual(told, [(number, 8) for number in range(1, 9)])
        self.assertEqual(sweep([]), [])

    def test_a_sweep_is_of_cases(self) -> None:
        with self.assertRaisesRegex(TypeError, r"a case is a Plan; write Case\(plan\)"):
            sweep([late_plan()])  # type: ignore[list-item]

    def test_a_case_that_fails_ends_the_sweep(self) -> None:
        done: list[int] = []
        cases = [Case(late_plan()), Case(Plan()), *[Case(late_plan())] * 50]
        with self.assertRaises(PbsctlError):
            sweep(cases, workers=1, progress=lambda number, _: done.append(number))
        self.assertEqual(done, [1])

    def test_each_case_has_a_planner_of_its_own(self) -> None:
        class Once(Planner):
            def __init__(self) -> None:
                self.is_asked = False

            def answer(self, question: Question) -> Plan | None:
                if self.is_asked:
                    return None
                self.is_asked = True
                return question.answered(question.remaining)

        results = sweep([Case(late_plan(), planner=Once)] * 4 + [Case(late_plan())], workers=2)
        self.assertEqual([len(result.replans) for result in results], [1, 1, 1, 1, 0])
