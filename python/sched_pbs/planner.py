# SPDX-License-Identifier: GPL-2.0
"""Planners that answer prediction failures, in the simulator and on a node.

A planner is a class with the method ``answer``.  The same class answers

- ``simulate(plan, planner=MyPlanner())``, in this process;
- ``pbsctl sim --scheduler``, ``pbsctl run --scheduler`` and ``pbsd --scheduler`` with
  ``"command python3 FILE"``, where FILE ends with ``MyPlanner().serve()``.

Documentation/own-planner.rst has the rules of answers; sections are those of Leppert 2021.
"""

import abc
import dataclasses
import json
import sys
from typing import Any, Self, TextIO, TypeVar, cast

from .config import Config
from .plan import Plan

_T = TypeVar("_T")


@dataclasses.dataclass
class Failure:
    """Prediction failure, as a node signals it (3.3.6, 3.3.8)."""

    seq: int
    """Number of the event."""
    time_ns: int
    """Time of the signal."""
    kind: str
    """``late`` or ``early``."""
    cause: str
    """``task``, ``process``, ``node``, ``preemptions``, ``memory``, ``node_memory`` or ``message``."""
    process: int
    """Number of the process that ran."""
    task: int
    """Number of its task."""
    planned_insns: int
    """Planned length of the task."""
    retired_insns: int
    """Instructions that the task has retired."""
    preemptions: int
    """Number of preemptions of the task."""
    lateness_insns: int
    """Lateness of the process; negative: it is early."""
    node_lateness_insns: int
    """Lateness of the node; negative: it is early."""
    memory_bytes: int
    """Memory in use by the process or the node, for a failure of memory."""
    threshold: int
    """Passed threshold, in preemptions, instructions or bytes."""
    stress: int
    """Stress in points."""


@dataclasses.dataclass
class Progress:
    """Progress of a process of the plan in force."""

    id: int
    """Number of the process."""
    ended: bool
    """Whether the process has no task left."""
    task: int | None
    """Number of its current task."""
    planned_insns: int
    """Planned length of that task."""
    retired_insns: int
    """Instructions that the task has retired."""
    preemptions: int
    """Number of preemptions of the task."""
    lateness_insns: int
    """Lateness of the process; negative: it is early."""


@dataclasses.dataclass
class Question:
    """Question of the simulator or of a node: what failed, and what is left."""

    failures: list[Failure]
    """Prediction failures that have no answer yet; never empty."""
    processes: list[Progress]
    """Progress of each process."""
    cpu: int
    """The CPU that asks."""
    now_ns: int
    """Time, counted from the first plan."""
    rate_insns_per_ms: int
    """Instructions that the CPU retires in a millisecond."""
    config: Config
    """Configuration in force."""
    remaining: Plan
    """Rest of the plan, with a slot for each task that has not ended: a plan to begin with."""

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Question of decoded JSON; keys that are not known are ignored."""
        return cls(
            failures=[_known(Failure, failure) for failure in value["failures"]],
            processes=[_known(Progress, process) for process in value["processes"]],
            cpu=value["cpu"],
            now_ns=value["now_ns"],
            rate_insns_per_ms=value["rate_insns_per_ms"],
            config=Config.of_message(value["config"]),
            remaining=Plan.of_message(value["remaining"], "the rest of the plan"),
        )

    def answered(self, plan: Plan) -> Plan:
        """The plan, numbered as an answer to all failures of this question."""
        plan.plan_id = self.remaining.plan_id + 1
        plan.dealt_seq = max((failure.seq for failure in self.failures), default=-1) + 1
        return plan


class Planner(abc.ABC):
    """Planner that answers prediction failures."""

    @abc.abstractmethod
    def answer(self, question: Question) -> Plan | None:
        """New plan for the CPU of the question; None: the plan in force stays.

        ``question.answered(plan)`` gives a plan the numbers of an answer.
        """

    def reply(self, line: str) -> str:
        """Answer to a question in JSON, as one line of JSON; empty: the plan stays."""
        plan = self.answer(Question.from_json(json.loads(line)))
        if plan is not None and not isinstance(plan, Plan):
            raise TypeError(
                f"{type(self).__name__}.answer returned {plan!r}; return a Plan or None"
            )
        return "" if plan is None else json.dumps(plan.to_json())

    def serve(self, questions: TextIO | None = None, answers: TextIO | None = None) -> None:
        """Answer the question on standard input, as ``--scheduler "command LINE"`` expects it."""
        text = (questions or sys.stdin).read()
        print(self.reply(text), file=answers or sys.stdout)


def _known(cls: type[_T], value: dict[str, Any]) -> _T:
    """Dataclass of the keys that it has."""
    names = {field.name for field in dataclasses.fields(cast(Any, cls))}
    return cls(**{key: part for key, part in value.items() if key in names})
