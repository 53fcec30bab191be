# SPDX-License-Identifier: GPL-2.0
"""Task graphs whose tasks are Python functions."""

import contextlib
import gc
import io
import os
import sqlite3
import subprocess
import sys
import threading
import time
import unittest
import weakref
from array import array
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from sched_pbs import runtime
from sched_pbs.runtime import (
    Access,
    Model,
    Reason,
    Region,
    Runtime,
    RuntimeFailure,
    RuntimeOptions,
    Simulated,
    TaskContext,
    TaskFunction,
    TaskGraph,
)

from .common import TOP  # finds the folder of the examples

import implementations  # isort: skip


def why_not() -> str:
    """Reason for which the tests cannot run here; empty: they can.

    A library that was named has to be there.
    """
    if os.environ.get("PBS_RUNTIME"):
        return ""
    try:
        runtime.find_library()
    except runtime.LibraryMissing as missing:
        return str(missing)
    return ""


class WithoutTheLibrary(unittest.TestCase):
    def test_a_missing_library_is_told_with_its_remedy(self) -> None:
        with TemporaryDirectory() as folder:
            empty = Path(folder, "libpbsruntime.so")
            for name in [empty, "libc.so.6"]:
                with mock.patch.dict(os.environ, {"PBS_RUNTIME": str(name)}):
                    with self.assertRaisesRegex(runtime.LibraryMissing, "variable PBS_RUNTIME"):
                        TaskGraph()

    def test_what_is_declared_is_in_the_header(self) -> None:
        header = TOP / "cosched/pbs-runtime-c/include/pbs_runtime.h"
        text = header.read_text(encoding="utf-8")
        for name in runtime._DECLARED:
            self.assertIn(f"pbs_rt_{name}(", text)
        for reason in Reason:
            self.assertIn(f" = {reason.value},", text)
        for model in Model:
            self.assertIn(f"PBS_RT_{model.name} = {model.value},", text)
        for access in Access:
            self.assertIn(f"PBS_RT_{access.name} = {access.value},", text)


@unittest.skipIf(why_not(), why_not())
class Graphs(unittest.TestCase):
    def setUp(self) -> None:
        gpu = Simulated("gpu", memory_bytes=1 << 20, link_bytes_per_s=1_000_000_000)
        self.runtime = Runtime(RuntimeOptions(threads=2, simulated=[gpu]))
        self.addCleanup(self.runtime.close)

    def test_tasks_run_in_their_order_and_have_results(self) -> None:
        graph = TaskGraph()
        order: list[str] = []

        def note(name: str) -> TaskFunction:
            def function(context: TaskContext) -> int:
                order.append(name)
                return len(order)

            return function

        last = graph.task("last").implementation(note("last"))
        first = graph.task("first").implementation(note("first"))
        last.after(first)
        report = self.runtime.run(graph)
        self.assertEqual((order, first.result, last.result), (["first", "last"], 1, 2))
        self.assertEqual((report.tasks, first.model), (2, Model.CPU))
        self.runtime.run(graph)
        self.assertEqual((len(order), last.result), (4, 4))

    def test_the_only_implementation_that_fits_is_chosen(self) -> None:
        graph = TaskGraph()
        on_gpu = graph.task("gpu").implementation(lambda context: 7, Model.GPU, takes_ns=1000)
        self.runtime.run(graph)
        self.assertEqual((on_gpu.model, on_gpu.result), (Model.GPU, 7))
        graph = TaskGraph()
        graph.task("nowhere").implementation(lambda context: 7, Model.CUDA)
        with self.assertRaises(RuntimeFailure) as told:
            self.runtime.run(graph)
        self.assertEqual(told.exception.reason, Reason.FITS_NOWHERE)

    def test_regions_are_read_and_written(self) -> None:
        numbers, out = array("I", [1, 2, 3]), bytearray(4)
        kept: list[TaskContext] = []

        def add(context: TaskContext) -> None:
            kept.append(context)
            self.assertEqual(context.threads, 1)
            found = sum(memoryview(context.read(0)).cast("I"))
            with self.assertRaisesRegex(ValueError, "Access.WRITE"):
                context.write(0, b"")
            with self.assertRaisesRegex(ValueError, "region 1 has 4 bytes, and the data have 1"):
                context.write(1, b"x")
            context.write(1, found.to_bytes(4, "little"))

        graph = TaskGraph()
        task = graph.task("add").implementation(add).transfer(12)
        task.region(Region(numbers), Access.READ).region(Region(out), Access.WRITE)
        self.runtime.run(graph)
        self.assertEqual(int.from_bytes(out, "little"), 6)
        with self.assertRaisesRegex(ValueError, "the task has ended"):
            kept[0].read(0)
        for data in [b"fixed", bytearray(), memoryview(bytearray(4))[::2]]:
            with self.assertRaisesRegex(ValueError, "a writable buffer in one piece"):
                Region(data)

    def test_the_exception_of_a_function_is_that_of_the_run(self) -> None:
        def fail(context: TaskContext) -> None:
            raise KeyError("mine")

        graph = TaskGraph()
        never = graph.task("never").implementation(lambda context: 5)
        never.after(graph.task("bad").implementation(fail))
        for _ in range(2):
            with self.assertRaisesRegex(KeyError, "mine") as told:
                self.runtime.run(graph)
            self.assertIn("task bad", told.exception.__notes__[0])
        self.assertIsNone(never.result)

    def test_a_graph_in_a_circle_is_refused(self) -> None:
        graph = TaskGraph()
        a, b = graph.task("a"), graph.task("b")
        for task, before in [(a, b), (b, a)]:
            task.implementation(lambda context: None).after(before)
        with self.assertRaisesRegex(RuntimeFailure, "a after b") as told:
            self.runtime.run(graph)
        self.assertEqual(told.exception.reason, Reason.CYCLE)
        with self.assertRaisesRegex(ValueError, "of another graph"):
            a.after(TaskGraph().task("c"))

    def test_a_graph_runs_in_the_background(self) -> None:
        may_end = threading.Event()
        graph = TaskGraph()
        task = graph.task("waits").implementation(lambda context: may_end.wait())
        started = self.runtime.start(graph)
        self.assertFalse(started.is_done)
        for refused in [
            lambda: graph.task("more"),
            lambda: task.implementation(lambda context: None),
            lambda: self.runtime.start(graph),
            self.runtime.close,
        ]:
            with self.assertRaisesRegex(RuntimeFailure, "wait for its end"):
                refused()
        may_end.set()
        self.assertEqual(started.wait().tasks, 1)
        self.assertTrue(started.is_done and task.result)
        with self.assertRaisesRegex(RuntimeFailure, "start the graph again"):
            started.wait()

    def test_a_run_for_which_another_thread_waits_is_done_at_its_end(self) -> None:
        may_end = threading.Event()
        graph = TaskGraph()
        graph.task("waits").implementation(lambda context: may_end.wait())
        started = self.runtime.start(graph)
        waiter = threading.Thread(target=started.wait)
        waiter.start()
        while started._pointer is not None:
            time.sleep(0.001)
        self.assertFalse(started.is_done)
        may_end.set()
        waiter.join()
        self.assertTrue(started.is_done)

    def test_a_run_is_not_freed_while_another_thread_asks_whether_it_is_done(self) -> None:
        graph = TaskGraph()
        graph.task("ends").implementation(lambda context: None)
        started = self.runtime.start(graph)
        library, asks = graph._library, threading.Event()
        waited_meanwhile: list[bool] = []

        def is_done(pointer: int) -> int:
            asks.set()
            waiter.start()
            # Longer than the waiter needs, if nothing stops it.
            waiter.join(0.2)
            done = int(library.is_done(pointer)) if waiter.is_alive() else 1
            asks.clear()
            return done

        def wait(*arguments: Any) -> int:
            waited_meanwhile.append(asks.is_set())
            return int(library.wait(*arguments))

        started._library = mock.Mock(is_done=is_done, wait=wait)
        waiter = threading.Thread(target=started.wait)
        self.assertIn(started.is_done, [False, True])
        waiter.join()
        self.assertEqual(waited_meanwhile, [False])

    def test_a_task_runs_no_graph_on_its_own_runtime(self) -> None:
        code = (
            "from sched_pbs.runtime import *\n"
            "own, other = (Runtime(RuntimeOptions(threads=1)) for _ in range(2))\n"
            "def run(runtime, function):\n"
            "    graph = TaskGraph()\n"
            "    graph.task('runs').implementation(function)\n"
            "    return runtime.run(graph)\n"
            "def run_own(context):\n"
            "    try:\n"
            "        run(own, lambda context: None)\n"
            "    except RuntimeFailure as failure:\n"
            "        print(failure.reason.name, flush=True)\n"
            "run(own, run_own)\n"
            "run(own, lambda context: run(other, run_own))\n"
        )
        ran = self.python(code)
        self.assertEqual((ran.stdout, ran.stderr), ("GRAPH\nGRAPH\n", ""))

    def test_a_graph_is_freed_with_its_functions(self) -> None:
        def function(context: TaskContext) -> None:
            return None

        graph = TaskGraph()
        graph.task("a").implementation(function)
        self.runtime.run(graph)
        kept = weakref.ref(function)
        del graph, function
        gc.collect()
        self.assertIsNone(kept())

    def test_a_graph_whose_functions_refer_to_its_tasks_is_freed(self) -> None:
        def run() -> weakref.ref[TaskGraph]:
            graph = TaskGraph()
            first = graph.task("first").implementation(lambda context: 5)
            last = graph.task("last").implementation(lambda context: first.result + 1)
            last.after(first).region(Region(bytearray(4)), Access.READ)
            self.runtime.run(graph)
            self.assertEqual(last.result, 6)
            return weakref.ref(graph)

        graph = run()
        gc.collect()
        self.assertIsNone(graph())

    def test_every_option_is_taken_or_told(self) -> None:
        with TemporaryDirectory() as folder:
            options = RuntimeOptions(
                threads=1,
                is_shared=True,
                directory=folder,
                overdue_factor=5,
                determination="always",
                cost_ns=(0.1, 10.0, 1000.0),
                search_ns=1_000_000,
                history=(f"{folder}/history.db", "tests"),
            )
            with Runtime(options) as shared:
                self.assertFalse(shared.is_alone)
                graph = TaskGraph()
                graph.deadline(10_000_000_000)
                graph.task("a", kind="b").implementation(lambda context: 1, takes_ns=1000)
                self.assertFalse(shared.run(graph).is_alone)
            self.assertTrue(Path(folder, "history.db").exists())
            for wrong in [
                RuntimeOptions(threads=0),
                RuntimeOptions(scheduler="greedy"),
                RuntimeOptions(is_shared=True, directory=folder, scheduler="none"),
                RuntimeOptions(is_shared=True, directory=folder, determination="none"),
                RuntimeOptions(is_shared=True, directory=folder, priority=("age", "none")),
                RuntimeOptions(is_shared=True, directory=folder, iterations=(5, 1)),
            ]:
                with self.assertRaises(RuntimeFailure, msg=str(wrong)):
                    Runtime(wrong)
        with self.assertRaisesRegex(ValueError, "threads is -1; write 0 to 4294967295"):
            Runtime(RuntimeOptions(threads=-1))
        with Runtime(RuntimeOptions(threads=1, refuses_unprofiled=True)) as refuses:
            graph = TaskGraph()
            graph.task("new").implementation(lambda context: 1)
            with self.assertRaises(RuntimeFailure) as told:
                refuses.run(graph)
            self.assertEqual(told.exception.reason, Reason.UNPROFILED)

    def test_a_graph_is_announced_to_a_file(self) -> None:
        with TemporaryDirectory() as folder:
            path = Path(folder, "graph.toml")
            code = (
                "from sched_pbs.runtime import *\n"
                "graph = TaskGraph()\n"
                "graph.deadline(10**9)\n"
                "graph.task('a').implementation(lambda context: 1, takes_ns=1000)\n"
                "try:\n"
                "    Runtime(RuntimeOptions(threads=1)).run(graph)\n"
                "except RuntimeFailure as failure:\n"
                "    print(failure.reason.name)\n"
            )
            ran = self.python(code, SCHED_PBS_GRAPH=str(path))
            self.assertEqual((ran.stdout, ran.stderr), ("ANNOUNCED\n", ""))
            self.assertIn("a", path.read_text(encoding="utf-8"))

    def test_a_program_that_ends_first_waits_for_its_runs(self) -> None:
        code = (
            "import time\n"
            "from sched_pbs.runtime import *\n"
            "graph = TaskGraph()\n"
            "def late(context):\n"
            "    time.sleep(0.1)\n"
            "    print('ran', flush=True)\n"
            "graph.task('late').implementation(late)\n"
            "Runtime(RuntimeOptions(threads=1)).start(graph)\n"
        )
        ran = self.python(code)
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "ran\n", ""))

    def test_a_child_of_fork_leaves_the_objects_of_its_parent_alone(self) -> None:
        code = (
            "import os, sys, threading\n"
            "from sched_pbs.runtime import *\n"
            "may_end = threading.Event()\n"
            "runtime = Runtime(RuntimeOptions(threads=1, history=(sys.argv[1], 'tests')))\n"
            "ended, running = TaskGraph(), TaskGraph()\n"
            "ended.task('ended').implementation(lambda context: 1)\n"
            "running.task('running').implementation(lambda context: may_end.wait())\n"
            "runtime.run(ended)\n"
            "started = runtime.start(running)\n"
            "if not (child := os.fork()):\n"
            "    sys.exit()\n"
            "_, status = os.waitpid(child, 0)\n"
            "may_end.set()\n"
            "started.wait()\n"
            "runtime.close()\n"
            "print(status, flush=True)\n"
        )
        with TemporaryDirectory() as folder:
            path = Path(folder, "history.db")
            ran = self.python(code, str(path))
            self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "0\n", ""))
            with contextlib.closing(sqlite3.connect(path)) as history:
                stored = history.execute("SELECT COUNT(*) FROM variant_run").fetchone()
            self.assertEqual(stored, (2,))

    def python(
        self, code: str, *arguments: str, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """A program in a process of its own, which has the package."""
        environment = {**os.environ, "PYTHONPATH": str(TOP / "python"), **variables}
        words = [sys.executable, "-c", code, *arguments]
        return subprocess.run(
            words, env=environment, capture_output=True, text=True, timeout=600, check=False
        )

    def test_the_example_adds_its_parts(self) -> None:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            implementations.main()
        *_, total, last = printed.getvalue().splitlines()
        expected = sum(number * number for number in range(4000))
        self.assertEqual(total, f"total CPU {expected}")
        self.assertEqual(last, f"{expected}, of 5 tasks")
