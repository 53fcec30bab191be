#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A planner that answers prediction failures, in the simulator and on a node.

pbsctl sim plan.toml --scheduler "command ./catch_up.py"
pbsctl run job.toml --scheduler "command ./catch_up.py"

Its rule: the remaining tasks of a late process become longer, by the ratio that the failure
reports and a margin.  Tasks run in the order of the deadlines of their processes.
"""
import json
import sys

# Extra length of a task whose process was late, beyond the instructions that it has retired.
MARGIN = 1.25
# The longest task that a plan may have.
MAX_INSNS = 1 << 48


def stretches(failures):
    """For each late process: the factor by which its tasks are longer than planned."""
    found = {}
    for failure in failures:
        if failure["kind"] == "late" and failure["cause"] in ("task", "process"):
            factor = failure["retired_insns"] / failure["planned_insns"] * MARGIN
            found[failure["process"]] = max(found.get(failure["process"], 1.0), factor)
    return found


def stretched(task, factor):
    """A longer task; a plan has the length of a task alone, or a table."""
    if isinstance(task, dict):
        return {**task, "planned_insns": stretched(task["planned_insns"], factor)}
    return min(int(task * factor), MAX_INSNS)


def main():
    question = json.load(sys.stdin)
    plan = question["remaining"]
    factors = stretches(question["failures"])
    deadlines = {}
    for process in plan["process"]:
        factor = factors.get(process["id"], 1.0)
        process["tasks"] = [stretched(task, factor) for task in process["tasks"]]
        for name in (process["id"], process.get("name")):
            deadlines[name] = process.get("deadline", float("inf"))
    cpu = plan["cpu"][0]
    # Idle slots are not needed: the node has other programs' time beside the plan.
    slots = [slot for slot in cpu["slots"] if slot in deadlines]
    # Tasks with the same deadline keep their order.
    cpu["slots"] = sorted(slots, key=deadlines.get)
    plan["plan_id"] += 1
    seqs = [failure["seq"] for failure in question["failures"]]
    plan["dealt_seq"] = max(seqs, default=-1) + 1
    print(json.dumps(plan))


main()
