#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Signals and kept deadlines against sigma_t2, the share at which a late task signals.

Each of 20 plans has one task that takes four times as long as planned.  Only t1 and t2_task are
on.  A greater sigma_t2 signals later and less often, which is not worse: each answer of the
sketch ``stretch`` costs the other processes time.
"""

from typing import Any

from sched_pbs import Case, Config, Options, generate, print_progress, sweep

SIGMAS_PERMILLE = (1100, 1500, 2000, 3000, 5000)
SEEDS = range(1, 21)


def rows(pbsctl: str | None = None) -> list[dict[str, Any]]:
    """One record for each sigma_t2."""
    plans = [
        generate("rogue-task", seed, pbsctl, tasks="6..6", buffer_permille="60..60")
        for seed in SEEDS
    ]
    configs = [
        Config(sigma_t2_permille=sigma, thresholds=["t1", "t2_task"]) for sigma in SIGMAS_PERMILLE
    ]
    cases = [
        Case(plan, Options(config=config, scheduler="stretch"))
        for config in configs
        for plan in plans
    ]
    results = sweep(cases, progress=print_progress, pbsctl=pbsctl)
    out = []
    for at, sigma in enumerate(SIGMAS_PERMILLE):
        own = results[at * len(plans) : (at + 1) * len(plans)]
        late = [event for result in own for event in result.signals() if event["kind"] == "late"]
        out.append(
            {
                "sigma_t2_permille": sigma,
                "signals": len(late),
                "most_over_permille": max(
                    1000 * event["retired_insns"] // event["planned_insns"] for event in late
                ),
                "kept": sum(result.kept for result in own),
                "processes": sum(len(result.processes) for result in own),
            }
        )
    return out


if __name__ == "__main__":
    for row in rows():
        print(row)
