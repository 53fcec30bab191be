#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A planner that makes late work longer, and runs tasks in the order of their deadlines.

pbsctl sim plan.toml --scheduler "command python3 catch_up.py"
pbsctl run job.toml --scheduler "command python3 catch_up.py"
"""

import math

from sched_pbs import Idle, Plan, Planner, Question

# Extra length of a task whose process was late, beyond the instructions that it has retired.
MARGIN = 1.25
# The longest task that a plan may have.
MAX_INSNS = 1 << 48


class CatchUp(Planner):
    """Planner that stretches the tasks of late processes by the ratio that a failure reports."""

    def answer(self, question: Question) -> Plan | None:
        plan = question.remaining
        factors: dict[int, float] = {}
        for failure in question.failures:
            if failure.kind == "late" and failure.cause in ("task", "process"):
                factor = failure.retired_insns / failure.planned_insns * MARGIN
                factors[failure.process] = max(factors.get(failure.process, 1), factor)
        for process in plan.processes:
            for task in process.tasks:
                factor = factors.get(process.id, 1)
                task.planned_insns = min(int(task.planned_insns * factor), MAX_INSNS)
        (cpu,) = plan.cpus
        # Idle slots are not needed: the node has other programs' time beside the plan.
        slots = [slot for slot in cpu.slots if not isinstance(slot, Idle)]

        def deadline_ns(slot: str | int) -> float:
            deadline_ns = plan.process(slot).deadline_ns
            # A deadline that has passed is 0.
            return math.inf if deadline_ns is None else deadline_ns

        # Tasks with the same deadline keep their order.
        cpu.slots = [*sorted(slots, key=deadline_ns)]
        return question.answered(plan)


if __name__ == "__main__":
    CatchUp().serve()
