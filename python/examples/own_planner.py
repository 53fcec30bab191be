#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""An own planner beside the built-in one of the simulator, over 100 plans.

Each plan has one task that takes four times as long as planned, and little buffer.  The own
planner lets the others go first.  The built-in one is ``stretch``, the sketch of Leppert 2021,
4.4.2.
"""

from typing import Any

from sched_pbs import Case, Options, Plan, Planner, Question, generate, print_progress, sweep

SEEDS = range(1, 101)


class LateLast(Planner):
    """Planner that puts the tasks of processes that were ever late behind all others."""

    def __init__(self) -> None:
        self.late: set[int] = set()

    def answer(self, question: Question) -> Plan | None:
        late = {failure.process for failure in question.failures if failure.kind == "late"}
        if late <= self.late:
            # The order stays.
            return None
        self.late |= late
        plan = question.remaining
        names = [process.label() for process in plan.processes if process.id in self.late]
        (cpu,) = plan.cpus
        cpu.slots.sort(key=lambda slot: slot in names)
        return question.answered(plan)


def rows(pbsctl: str | None = None, seeds: range = SEEDS) -> list[dict[str, Any]]:
    """One record for each planner."""
    plans = [
        generate(
            "rogue-task",
            seed,
            pbsctl,
            tasks="6..6",
            buffer_permille="60..60",
            task_sigma_permille=50,
        )
        for seed in seeds
    ]
    planners = {
        "none": [Case(plan) for plan in plans],
        "stretch": [Case(plan, Options(scheduler="stretch")) for plan in plans],
        "late_last": [Case(plan, planner=LateLast) for plan in plans],
    }
    cases = [case for of_planner in planners.values() for case in of_planner]
    results = iter(sweep(cases, progress=print_progress, pbsctl=pbsctl))
    out = []
    for name, of_planner in planners.items():
        own = [next(results) for _ in of_planner]
        missed_ns = [
            max(process.lateness_ns or 0, 0) for result in own for process in result.processes
        ]
        out.append(
            {
                "planner": name,
                "kept": sum(result.kept for result in own),
                "processes": len(missed_ns),
                "answers": sum(len(result.replans) for result in own),
                "tardiness_ms": sum(missed_ns) / len(missed_ns) / 1e6,
            }
        )
    return out


if __name__ == "__main__":
    for row in rows():
        print(row)
