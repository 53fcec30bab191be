#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Proves the best plans of the small nets, with the solver CP-SAT of OR-tools.

  python3 -m venv /tmp/venv && /tmp/venv/bin/pip install ortools
  cargo bench -p pbs-bench-planner --bench quality -- nets 600 |
      /tmp/venv/bin/python tests/pbs-bench-planner/oracle/optima.py \
      > node/pbs-planner/tests/common/optima.txt

The rules are those that node/pbs-planner/tests/common/oracle.rs has in
words.  Nets that can't be planned, and those without a proof in the time, are left
out.  Which ones those are depends on the machine; what is written is proven.
"""

import json
import sys

from ortools.sat.python import cp_model

SECONDS = 6
NS_PER_S = 10**9


def best_ticks(net):
    """When the best plan ends; None: there is none, or no proof."""
    model = cp_model.CpModel()
    cores, tasks, processes = net["cores"], net["tasks"], net["processes"]
    # Per task and core, in ticks.
    length = [
        [-(-insns * NS_PER_S // (rate * net["tick"])) for _, rate in cores]
        for _, insns, _ in tasks
    ]
    horizon = sum(max(on_cores) for on_cores in length)

    def times(count):
        return [model.new_int_var(0, horizon, "") for _ in range(count)]

    # All tasks of a process run on one core.
    runs_on = [[model.new_bool_var("") for _ in cores] for _ in processes]
    for on_cores in runs_on:
        model.add_exactly_one(on_cores)
    starts, ends = times(len(tasks)), times(len(tasks))
    on_core = [[] for _ in cores]
    for task, (process, insns, before) in enumerate(tasks):
        lengths = zip(runs_on[process], length[task])
        model.add(ends[task] == starts[task] + sum(on * ticks for on, ticks in lengths))
        for other in before:
            model.add(starts[task] >= ends[other])
        for core in range(len(cores)) if insns > 0 else []:
            on_core[core].append(
                model.new_optional_interval_var(
                    starts[task], length[task][core], ends[task], runs_on[process][core], ""
                )
            )
    for intervals in on_core:
        model.add_no_overlap(intervals)
    # A process holds its memory from its first task's start to its last one's end.
    first, last = {}, {}
    for task, (process, _, _) in enumerate(tasks):
        first.setdefault(process, task)
        last[process] = task
    for memory, most_bytes in enumerate(net["memories"]):
        held = []
        for process in range(len(processes)):
            is_here = model.new_bool_var("")
            here = zip(runs_on[process], cores)
            model.add(sum(on for on, core in here if core[0] == memory) == is_here)
            held.append(
                model.new_optional_interval_var(
                    starts[first[process]], times(1)[0], ends[last[process]], is_here, ""
                )
            )
        model.add_cumulative(held, processes, most_bytes)
    end = times(1)[0]
    model.add_max_equality(end, ends)
    model.minimize(end)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = SECONDS
    is_proven = solver.solve(model) == cp_model.OPTIMAL
    return round(solver.objective_value) if is_proven else None


print("# seed, end of its best plan in ticks")
for line in sys.stdin:
    net = json.loads(line)
    ticks = best_ticks(net)
    if ticks is not None:
        print(net["seed"], ticks, flush=True)
