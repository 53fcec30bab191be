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
import tomllib

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


def tables(tasks):
    """The tasks as tables with their numbers; a plan may have the length of a task alone."""
    number = 0
    for task in tasks:
        table = dict(task) if isinstance(task, dict) else {"planned_insns": task}
        table.setdefault("id", number)
        number = table["id"] + 1
        yield table


def toml(value):
    """A value in TOML; strings and lists are written as in JSON."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(value[key])}" for key in value) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    return json.dumps(value)


def print_table(table, heading=None):
    if heading:
        print(f"\n{heading}")
    for key, value in table.items():
        print(f"{key} = {toml(value)}")


def main():
    question = json.load(sys.stdin)
    plan = tomllib.loads(question["remaining_toml"])
    factors = stretches(question["failures"])
    deadlines = {}
    for process in plan["process"]:
        factor = factors.get(process["id"], 1.0)
        process["tasks"] = list(tables(process["tasks"]))
        for task in process["tasks"]:
            task["planned_insns"] = min(int(task["planned_insns"] * factor), MAX_INSNS)
        for name in (process["id"], process.get("name")):
            deadlines[name] = process.get("deadline_ns", float("inf"))
    cpu = plan["cpu"][0]
    # Idle slots are not needed: the node has other programs' time beside the plan.
    slots = [slot for slot in cpu["slots"] if slot in deadlines]
    # Tasks with the same deadline keep their order.
    cpu["slots"] = sorted(slots, key=deadlines.get)
    plan["plan_id"] += 1
    seqs = [failure["seq"] for failure in question["failures"]]
    plan["dealt_seq"] = max(seqs, default=-1) + 1

    config, processes, cpus = plan.pop("config", None), plan.pop("process"), plan.pop("cpu")
    print_table(plan)
    if config:
        print_table(config, "[config]")
    for process in processes:
        print_table(process, "[[process]]")
    for cpu in cpus:
        print_table(cpu, "[[cpu]]")


main()
