# SPDX-License-Identifier: GPL-2.0
"""Many simulations beside each other."""

import concurrent.futures
import dataclasses
import os
import pathlib
import sys
import threading
from collections.abc import Callable, Iterable

from .command import find_pbsctl
from .plan import Plan
from .planner import Planner
from .simulation import Options, Simulation, Simulator


@dataclasses.dataclass(frozen=True)
class Case:
    """One simulation of a sweep."""

    plan: Plan
    """The plan."""
    options: Options = Options()
    """Options of the simulation."""
    planner: Callable[[], Planner] | None = None
    """Class, or function, that makes the planner of this simulation."""


def sweep(
    cases: Iterable[Case],
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    pbsctl: str | pathlib.Path | None = None,
) -> list[Simulation]:
    """Simulate all cases, as many at once as there are CPUs; results have the order of the cases.

    ``progress`` receives the number of finished cases and of all.  The first case that fails
    ends the sweep with its exception.
    """
    cases = list(cases)
    for case in cases:
        if not isinstance(case, Case):
            raise TypeError(f"a case is a {type(case).__name__}; write Case(plan)")
    command = find_pbsctl(pbsctl)
    results: dict[int, Simulation] = {}
    todo = iter(enumerate(cases))
    lock = threading.Lock()
    is_over = threading.Event()

    def work() -> None:
        with Simulator(command) as simulator:
            while not is_over.is_set():
                with lock:
                    taken = next(todo, None)
                if taken is None:
                    return
                number, case = taken
                planner = None if case.planner is None else case.planner()
                result = simulator.simulate(case.plan, case.options, planner)
                with lock:
                    results[number] = result
                    if progress is not None:
                        progress(len(results), len(cases))

    workers = max(1, min(workers or len(os.sched_getaffinity(0)), len(cases)))
    # Threads wait for simulators, which do the work.
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(work) for _ in range(workers)]
        try:
            for future in concurrent.futures.as_completed(futures):
                future.result()
        finally:
            is_over.set()
    return [results[number] for number in range(len(cases))]


def print_progress(done: int, total: int) -> None:
    """Print the progress of a sweep in one line of standard error, if that is a terminal."""
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r{done} of {total} simulated", end=end, file=sys.stderr, flush=True)
