#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A planner of one's own for one CPU, in two commands.

spread.py plan JOBS     print a plan of the jobs; decline those that do not fit
spread.py answer JOBS   print a new plan as the answer to a question of "pbsctl sim"

The rule of this planner: the tasks of a job are spread evenly up to its deadline.  Each task
thereby has a time at which it is due, and tasks run in the order of these times.
"""
import json
import sys
import tomllib

# A plan gets 95 of 100 ms, and the node may be slower by CAPACITY_BUFFER (1.111).
USABLE = 0.95 / 1.111
# Extra length of a task whose process was late, beyond the instructions that it has retired.
MARGIN = 1.25


def in_order(jobs, now_ms):
    """Pairs of job and task, in the order in which they are due."""
    due = []
    for job in jobs:
        total = sum(task["planned_insns"] for task in job["tasks"])
        done = 0
        for task in job["tasks"]:
            done += task["planned_insns"]
            time_ms = now_ms + (job["deadline_ms"] - now_ms) * done / total
            due.append((time_ms, job["id"], task["id"], job, task))
    return [(job, task) for *_, job, task in sorted(due, key=lambda entry: entry[:3])]


def spare_insns(jobs, now_ms, rate):
    """For each job: instructions between its planned end and its deadline."""
    ends, clock = {}, 0
    for job, task in in_order(jobs, now_ms):
        clock += task["planned_insns"]
        ends[job["id"]] = clock
    return {
        job["id"]: int((job["deadline_ms"] - now_ms) * rate * USABLE) - ends[job["id"]]
        for job in jobs
    }


def print_plan(jobs, now_ms, rate, cpu, plan_id, dealt_seq=0):
    spare = spare_insns(jobs, now_ms, rate)
    print(f"plan_id = {plan_id}\ndealt_seq = {dealt_seq}")
    for job in jobs:
        print(f'\n[[process]]\nid = {job["id"]}\nname = "{job["name"]}"')
        print(f'buffer_insns = {max(spare[job["id"]], 0)}\ntasks = [')
        for task in job["tasks"]:
            fields = ", ".join(f"{key} = {value}" for key, value in task.items())
            print(f"    {{ {fields} }},")
        print("]")
    slots = ", ".join(f'"{job["name"]}"' for job, _ in in_order(jobs, now_ms))
    print(f"\n[[cpu]]\ncpu = {cpu}\nrate_insns_per_ms = {rate}\nslots = [{slots}]")


def plan(submitted, rate):
    admitted = []
    for number, job in enumerate(submitted, start=1):
        real = job.get("real_percent", 100)
        tasks = [
            {"id": at, "planned_insns": insns, "real_insns": insns * real // 100}
            for at, insns in enumerate(job["tasks"])
        ]
        candidate = {**job, "id": number, "tasks": tasks}
        spare = spare_insns([*admitted, candidate], 0, rate)
        late = [other["name"] for other in [*admitted, candidate] if spare[other["id"]] < 0]
        if late:
            print(f'{job["name"]}: declined; would be late: {", ".join(late)}', file=sys.stderr)
        else:
            admitted.append(candidate)
    print_plan(admitted, 0, rate, cpu=0, plan_id=1)


def numbered(tasks):
    """Number and planned length of each task; a task is a table or its length alone."""
    number = 0
    for task in tasks:
        table = task if isinstance(task, dict) else {"planned_insns": task}
        number = table.get("id", number)
        yield number, table["planned_insns"]
        number += 1


def answer(submitted, question):
    rate, now_ms = question["rate_insns_per_ms"], question["now_ns"] / 1e6
    old = tomllib.loads(question["remaining_toml"])
    deadlines = {job["name"]: job["deadline_ms"] for job in submitted}
    stretch = {}
    for failure in question["failures"]:
        if failure["kind"] == "late" and failure["cause"] in ("task", "process"):
            factor = failure["retired_insns"] / failure["planned_insns"] * MARGIN
            stretch[failure["process"]] = max(factor, 1.0)
    jobs = []
    for process in old["process"]:
        factor = stretch.get(process["id"], 1.0)
        tasks = [
            {"id": number, "planned_insns": int(insns * factor)}
            for number, insns in numbered(process["tasks"])
        ]
        name = process["name"]
        job = {"id": process["id"], "name": name, "tasks": tasks}
        jobs.append({**job, "deadline_ms": deadlines[name]})
    dealt_seq = max(failure["seq"] for failure in question["failures"]) + 1
    print_plan(jobs, now_ms, rate, question["cpu"], old["plan_id"] + 1, dealt_seq)


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("plan", "answer"):
        sys.exit(__doc__)
    with open(sys.argv[2], "rb") as file:
        jobs = tomllib.load(file)
    if sys.argv[1] == "plan":
        plan(jobs["job"], jobs["rate_insns_per_ms"])
    else:
        answer(jobs["job"], json.load(sys.stdin))


main()
