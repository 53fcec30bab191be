#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""One claim of a thesis, tried from Python: L3.2.2-limits of claims.toml.

With a sigma_t1 of 1.05, a task of 100 ticks may deviate by 5, and one of 10,000 by 500.  A longer
task may deviate by no more than PREEMPTION_LIMIT.  A tick is 4 ms and 1,000,000 instructions.
"""

import pathlib
import tomllib
from typing import Any

from sched_pbs import Config, Cpu, Plan, Process, Task, simulate

TICK_INSNS = 1_000_000
TICK_NS = 4_000_000
CLAIMS = pathlib.Path(__file__).parents[2] / "studies/pbs-reproduce/claims.toml"


def plan() -> Plan:
    """Tasks of 100, 10,000 and 20,000 ticks that take twice as long, with a second slot each."""
    processes = []
    for id_, ticks in enumerate((100, 10_000, 20_000), start=1):
        insns = ticks * TICK_INSNS
        processes.append(Process(id_, [Task(insns, real_insns=2 * insns), Task(insns)]))
    config = Config(
        sigma_t1_permille=1050,
        preemption_limit_ns=500 * TICK_NS,
        t2_task_signaling_limit_ns=750 * TICK_NS,
        thresholds=["t1"],
        # No ceiling comes before t1, and no unallocated time in the slot of the short task.
        ceiling_factor_permille=10_000,
        window_period_ns=10_000_000_000,
        window_unallocated_ns=100_000_000,
    )
    rate = TICK_INSNS * 1_000_000 // TICK_NS
    return Plan(processes, [Cpu(0, [1, 2, 3, 1, 2, 3], rate_insns_per_ms=rate)], config=config)


def claim() -> dict[str, Any]:
    """The claim, with its section and its published figures."""
    claims = tomllib.loads(CLAIMS.read_text(encoding="utf-8"))["claim"]
    (found,) = [claim for claim in claims if claim["id"] == "L3.2.2-limits"]
    return dict(found)


def measured(pbsctl: str | None = None) -> dict[str, float]:
    """Figures of the claim by name: length at which t1 ends the slot, in ticks."""
    simulation = simulate(plan(), pbsctl=pbsctl)
    ended: dict[int, float] = {}
    for event in simulation.events:
        if event["kind"] == "preempted":
            ended.setdefault(event["process"], event["retired_insns"] / TICK_INSNS)
    names = ("t1 of 100 ticks", "t1 of 10,000 ticks", "t1 of 20,000 ticks")
    return {name: ended[id_] for id_, name in enumerate(names, start=1)}


def holds(figure: dict[str, Any], value: float) -> bool:
    """Whether a measured value agrees with a figure of the claim."""
    if "at_most" in figure:
        return bool(value <= figure["at_most"])
    return bool(value == figure["published"])


def main() -> None:
    tried = claim()
    print(f"{tried['id']} ({tried['section']}): {tried['says']}")
    values = measured()
    for figure in tried["figure"]:
        value = values[figure["name"]]
        print(f"  {figure['name']}: {value}, {'holds' if holds(figure, value) else 'REFUTED'}")


if __name__ == "__main__":
    main()
