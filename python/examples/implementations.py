# SPDX-License-Identifier: GPL-2.0
"""Sums of squares in four parts, each on the CPU or on a simulated GPU, and their total.

It needs libpbsruntime::

    PBS_RUNTIME=$PWD/build/cargo/target/debug/libpbsruntime.so python3 implementations.py
"""

from array import array

from sched_pbs.runtime import (
    Access,
    Model,
    Region,
    RunTask,
    Runtime,
    RuntimeOptions,
    Simulated,
    TaskContext,
    TaskGraph,
)

PARTS = 4
NUMBERS = 1000


def squares(context: TaskContext) -> int:
    """Sum of the squares of the first region, which becomes the second region."""
    numbers = memoryview(context.read(0)).cast("I")
    found = sum(number * number for number in numbers)
    context.write(1, array("Q", [found]))
    return found


def graph(sums: "array[int]") -> tuple[TaskGraph, list[RunTask]]:
    """The graph, whose total is written to ``sums``, and its tasks; the total is the last one."""
    made = TaskGraph()
    parts = []
    outs = [Region(array("Q", [0])) for _ in range(PARTS)]
    for number, out in enumerate(outs):
        numbers = array("I", range(number * NUMBERS, (number + 1) * NUMBERS))
        part = made.task(f"part-{number}", kind="squares")
        part.implementation(squares, takes_ns=1_000_000)
        part.implementation(squares, Model.GPU, takes_ns=500_000)
        part.region(Region(numbers), Access.READ).region(out, Access.WRITE)
        parts.append(part)

    def add(context: TaskContext) -> int:
        found = sum(int.from_bytes(context.read(place + 1), "little") for place in range(PARTS))
        context.write(0, array("Q", [found]))
        return found

    total = made.task("total").implementation(add, takes_ns=10_000)
    total.region(Region(sums), Access.WRITE)
    for out in outs:
        total.region(out, Access.READ)
    return made, [*parts, total]


def main() -> None:
    """Run the graph three times, the last time in the background."""
    sums = array("Q", [0])
    gpu = Simulated("gpu", memory_bytes=1 << 20, link_bytes_per_s=1_000_000_000)
    with Runtime(RuntimeOptions(threads=2, simulated=[gpu])) as runtime:
        made, tasks = graph(sums)
        for _ in range(2):
            runtime.run(made)
        started = runtime.start(made)
        report = started.wait()
    for task in tasks:
        print(task.name, task.model.name if task.model is not None else "-", task.result)
    print(f"{sums[0]}, of {report.tasks} tasks")


if __name__ == "__main__":
    main()
