# SPDX-License-Identifier: GPL-2.0
"""Planners that admit jobs: ``pbsctl job explain --admission``.

A planner is a class with the method ``admit``.  A file that ends with ``MyAdmission().serve()`` is
the command ``"command python3 FILE"``.  Documentation/own-planner.rst has the rules of answers.
"""

import abc
import dataclasses
import json
import sys
from typing import Any, Self, TextIO

from .job import Job
from .machine import Machine
from .plan import Plan, Process, Task


@dataclasses.dataclass
class AdmissionQuestion:
    """Job that asks for a place in the plan."""

    job: Job
    """The job, with the lengths of its tasks as they are predicted."""
    machine: Machine
    """The machine for which is planned."""
    plan: Plan | None
    """Plan of the jobs so far; None: there is no job yet."""
    first_id: int
    """Process N of the job is process ``first_id`` + N of the plan."""
    lead_ns: int
    """Time from the submission of the job until the plan is in force."""

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Question of decoded JSON; keys that are not known are ignored."""
        plan = value["plan"]
        return cls(
            job=Job.of_message(value["job"], "the job"),
            machine=Machine.of_message(value["machine"], "the machine"),
            plan=None if plan is None else Plan.of_message(plan, "the plan"),
            first_id=value["first_id"],
            lead_ns=value["lead_ns"],
        )

    def processes(self) -> list[Process]:
        """Processes of the job as those of a plan.  A task without instructions has no slot."""
        found = []
        for process in self.job.processes:
            lengths = [task.insns for task in process.tasks if task.insns]
            if lengths:
                found.append(
                    Process(
                        self.first_id + process.id,
                        [Task(length) for length in lengths],
                        memory_bytes=process.memory_bytes,
                    )
                )
        return found


class Admission(abc.ABC):
    """Planner that admits jobs."""

    @abc.abstractmethod
    def admit(self, question: AdmissionQuestion) -> Plan | str:
        """Plan of all jobs, or the reason for which the job is declined."""

    def reply(self, line: str) -> str:
        """Answer to a question in JSON, as one line of JSON."""
        answer = self.admit(AdmissionQuestion.from_json(json.loads(line)))
        if not isinstance(answer, Plan | str):
            raise TypeError(
                f"{type(self).__name__}.admit returned {answer!r}; return a Plan, or a reason to "
                f"decline the job, as text"
            )
        return json.dumps({"declined": answer} if isinstance(answer, str) else answer.to_json())

    def serve(self, questions: TextIO | None = None, answers: TextIO | None = None) -> None:
        """Answer the question on standard input, as ``--admission "command LINE"`` expects it."""
        text = (questions or sys.stdin).read()
        print(self.reply(text), file=answers or sys.stdout)
