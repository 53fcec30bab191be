# SPDX-License-Identifier: GPL-2.0
"""JSON Schemas against random inputs, the dataclasses and the questions of the simulator."""

import dataclasses
import json
import unittest
from typing import Any

from sched_pbs import Config, Plan, Planner, Question, Record, run_json, simulate, sweep
from sched_pbs import Case, Cpu, Graph, Job, JobProcess, Machine, Options, Process, Task

from .common import Inputs, late_plan
from .validator import Invalid, Schemas


class Keeper(Planner):
    """Planner that keeps the questions as they arrive."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def reply(self, line: str) -> str:
        self.lines.append(line)
        return super().reply(line)

    def answer(self, question: Question) -> Plan | None:
        return question.answered(question.remaining)


class JsonSchemas(unittest.TestCase):
    def setUp(self) -> None:
        self.schemas = Schemas()

    def test_random_inputs_are_valid_and_so_are_their_normalized_values(self) -> None:
        for seed in range(100, 125):
            inputs = Inputs(seed)
            for record in (inputs.plan(), inputs.job(), inputs.graph(), inputs.machine()):
                kind = type(record).__name__.lower()
                with self.subTest(seed=seed, kind=kind):
                    self.schemas.validate(kind, record.to_json())
                    checked = run_json(["plan", "check", "-"], record.dumps())
                    normalized = checked["normalized"]
                    self.schemas.validate(kind, normalized)
                    again = run_json(["plan", "check", "-"], json.dumps(normalized))
                    self.assertEqual(again, checked)
                    whole = type(record).from_json(normalized)
                    self.assertEqual(
                        run_json(["plan", "check", "-"], whole.dumps())["normalized"], normalized
                    )

    def test_normalized_plans_run_as_the_files_do(self) -> None:
        plans = [plan for plan in (Inputs(seed).plan() for seed in range(10)) if plan.processes]
        cases = []
        for plan in plans:
            normalized = run_json(["plan", "check", "-"], plan.dumps())["normalized"]
            options = Options(limit_ns=10**9)
            cases += [Case(plan, options), Case(Plan.from_json(normalized), options)]
        results = sweep(cases)
        for one, other in zip(results[::2], results[1::2], strict=True):
            self.assertEqual(one.events, other.events)

    def test_keys_are_those_of_the_dataclasses(self) -> None:
        for name, kind in (("plan", Plan), ("job", Job), ("graph", Graph), ("machine", Machine)):
            self.assertEqual(set(self.schemas.named(name)["properties"]), keys(kind))
        plan, job = self.schemas.named("plan")["$defs"], self.schemas.named("job")["$defs"]
        for schema, of in (
            (plan["config"], Config),
            (plan["process"], Process),
            (plan["cpu"], Cpu),
            (plan["task"]["anyOf"][1], Task),
            (job["jobprocess"], JobProcess),
        ):
            self.assertEqual(set(schema["properties"]), keys(of))

    def test_questions_and_answers_are_valid(self) -> None:
        keeper = Keeper()
        plan = late_plan()
        plan.processes[0].deadline_ns = 300_000_000
        simulation = simulate(plan, planner=keeper)
        self.assertGreaterEqual(len(keeper.lines), 1)
        for line in list(keeper.lines):
            question = json.loads(line)
            self.schemas.validate("question", question)
            answer = json.loads(keeper.reply(line))
            self.schemas.validate("answer", answer)
        self.assertTrue(all(replan["refused"] is None for replan in simulation.replans))

    def test_what_is_wrong_is_not_valid(self) -> None:
        good: dict[str, Any] = late_plan().to_json()
        wrong: list[dict[str, Any]] = [
            {"plan_id": -1},
            {"plan_id": True},
            {"lease_ns": "2 hours"},
            {"unknown": 1},
            {"cpu": []},
            {"cpu": [{"cpu": 0}]},
            {"config": {"idle_policy": "first"}},
            {"config": {"thresholds": ["t1", "t1"]}},
            {"process": [{"id": 1, "tasks": [{"planned_insns": 2**48 + 1}]}]},
        ]
        self.schemas.validate("plan", good)
        for change in wrong:
            with self.subTest(change=change), self.assertRaises(Invalid):
                self.schemas.validate("plan", good | change)


def keys(kind: type[Record]) -> set[str]:
    """Keys of the files of a dataclass."""
    return {kind.KEYS.get(field.name, field.name) for field in dataclasses.fields(kind)}
