# SPDX-License-Identifier: GPL-2.0
"""JSON Schemas against random inputs, the dataclasses and the questions of the simulator."""

import copy
import dataclasses
import json
import unittest
from typing import Any

from sched_pbs import Case, Config, Cpu, Graph, Job, JobProcess, Machine, Options, PbsctlError
from sched_pbs import Plan, Planner, Process, Question, Record, Task, run_json, simulate, sweep

from .common import Inputs, late_plan
from .validator import Schemas


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

    def test_schema_and_reader_have_the_same_verdict(self) -> None:
        for kind, good, path, right, wrong in VERDICTS:
            for value, is_good in [*((it, True) for it in right), *((it, False) for it in wrong)]:
                with self.subTest(kind=kind, path=path, value=value):
                    document = changed(good, path, value)
                    self.assertEqual(self.schemas.accepts(kind, document), is_good)
                    self.assertEqual(is_accepted(document), is_good)


def task(**keys: object) -> dict[str, object]:
    """Task of a plan as a table."""
    return {"planned_insns": 1, **keys}


# The smallest file of each kind.
PLAN = {"process": [{"id": 1, "tasks": [5]}], "cpu": [{"cpu": 0, "slots": [1]}]}
JOB = {
    "name": "job",
    "deadline_ns": 10**9,
    "process": [{"id": 1, "memory_bytes": 1, "tasks": [5]}],
}
GRAPH = {"name": "graph", "task": [{"name": "a", "variant": [{"model": "cpu", "insns": 5}]}]}
RESOURCE = {"name": "m", "count": 1}
MACHINE = {
    "node": [{"name": "n", "memory_bytes": 1, "cores": ["c"], "rate_insns_per_s": 5}],
    "device": [{"kind": "gpu", "models": ["ocl"]}],
    "resource": [RESOURCE],
}

# Kind of the file, file, place in it, and values there that are right and wrong.
VERDICTS: list[tuple[str, dict[str, Any], str, list[Any], list[Any]]] = [
    ("plan", PLAN, "plan_id", [0, 2**63 - 1], [-1, True]),
    ("plan", PLAN, "lease_ns", ["2s", "2.5 s"], ["2 hours", "2000000000", "", "2._s"]),
    ("plan", PLAN, "unknown", [], [1]),
    ("plan", PLAN, "cpu", [], [[], [{"cpu": 0}]]),
    ("plan", PLAN, "config/idle_policy", ["pieces"], ["first"]),
    ("plan", PLAN, "config/thresholds", [["t1"]], [["t1", "t1"]]),
    ("plan", PLAN, "config/sigma_t1_permille", ["106%"], ["1060", "0.9s", 100_000]),
    ("plan", PLAN, "config/least_progress_permille", ["20%", 200], ["200", 1001]),
    ("plan", PLAN, "config/sigma_tm2_permille", ["20%", 200], ["200", 1001]),
    ("plan", PLAN, "process/0/tasks", [[1], ["_5M"], [2**48]], [[], ["5"], [0], [2**48 + 1]]),
    ("plan", PLAN, "process/0/tasks/0", [task(name="a")], [task(name=""), task(after=[""])]),
    ("plan", PLAN, "process/0/name", ["a"], [""]),
    ("plan", PLAN, "process/0/deadline", ["3 ms", 3], ["3"]),
    ("plan", PLAN, "process/0/command", [["a"], [""]], [[], "a"]),
    ("plan", PLAN, "process/0/commands", [[["a"]]], [[], [[]]]),
    ("plan", PLAN, "process/0/stdin", [], [""]),
    ("plan", PLAN, "process/0/buffer_insns", [2**56, "1k"], [2**56 + 1, "1000"]),
    ("plan", PLAN, "process/0/memory_bytes", ["64MiB"], ["64", "64 mib"]),
    ("job", JOB, "name", ["a"], [""]),
    ("job", JOB, "deadline_ns", ["1s"], ["1000000000", 0]),
    ("job", JOB, "process/0/name", ["a"], [""]),
    ("job", JOB, "process/0/tasks", [["5k"]], [[], ["5"], [{"insns": 1, "name": ""}]]),
    ("job", JOB, "resources", [{"a b": 1}, {"m": 2**56}], [[], {"m": 0}, {"": 1}, {"m": "1"}]),
    (
        "job",
        JOB,
        "checkpoint",
        [{"signal": "USR1", "within_ns": "2s"}, {"signal": "SIGTERM", "within_ns": 1}],
        [{"signal": "USR1"}, {"within_ns": 1}, {"signal": "KILL", "within_ns": 1}],
    ),
    ("job", JOB, "process/0/resources", [{"m": 3}], [{"m": -1}, "m", {"n" * 201: 1}]),
    ("graph", GRAPH, "name", ["a"], [""]),
    ("graph", GRAPH, "task/0/name", ["b"], [""]),
    ("graph", GRAPH, "task/0/after", [[]], [[""], [{"task": ""}]]),
    ("graph", GRAPH, "task/0/variant/0/model", ["cpu"], [""]),
    ("graph", GRAPH, "task/0/variant/0/command", [["a"]], [[""]]),
    ("machine", MACHINE, "name", ["a"], [""]),
    ("machine", MACHINE, "demand_permille", ["20%", 200], ["200", 1001]),
    ("machine", MACHINE, "node/0/name", ["a"], [""]),
    ("machine", MACHINE, "node/0/cores", [["a"], [{"name": "a"}]], [[], [""], [{"name": ""}]]),
    ("machine", MACHINE, "resource", [[RESOURCE], []], [[{"name": "m"}], [{"count": 1}]]),
    ("machine", MACHINE, "resource/0/count", [2**56], [0, 2**56 + 1, "1"]),
    ("machine", MACHINE, "resource/0/nodes", [["n"]], [[], ["n", "n"], "n"]),
    ("machine", MACHINE, "device/0/kind", ["gpu"], [""]),
    ("machine", MACHINE, "device/0/host_permille", ["20%", 200], ["200", 1001]),
    ("machine", MACHINE, "device/0/models", [["ocl"]], [[], [""]]),
]


def changed(document: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """Copy of a file with another value at a place such as ``process/0/name``."""
    document = copy.deepcopy(document)
    at: Any = document
    *folders, last = (int(key) if key.isdigit() else key for key in path.split("/"))
    for key in folders:
        at = at[key] if isinstance(key, int) else at.setdefault(key, {})
    at[last] = value
    return document


def is_accepted(document: dict[str, Any]) -> bool:
    """Whether ``pbsctl plan check`` accepts a file."""
    try:
        run_json(["plan", "check", "-"], json.dumps(document))
    except PbsctlError:
        return False
    return True


def keys(kind: type[Record]) -> set[str]:
    """Keys of the files of a dataclass."""
    return {kind.KEYS.get(field.name, field.name) for field in dataclasses.fields(kind)}
