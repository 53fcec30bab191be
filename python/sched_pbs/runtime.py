# SPDX-License-Identifier: GPL-2.0
"""Task graphs whose tasks have several implementations, run by ``libpbsruntime``.

A task is one or more Python functions, each for a kind of device.  The runtime chooses one of them
when the task runs, together with the tasks of other processes if co-scheduling is on.
Documentation/coscheduling.rst describes the decisions, and ``pbs_runtime.h`` the library.

The library is found by its name ``libpbsruntime.so.0``, or is the file that the variable
``PBS_RUNTIME`` names.  A child of ``fork()`` must not use the objects of its parent, and does not
free them at its end.
"""

import atexit
import ctypes
import enum
import functools
import os
import threading
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

LIBRARY = "libpbsruntime.so.0"
"""Name by which programs ask for the library."""

_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class LibraryMissing(ImportError):
    """``libpbsruntime`` is not there, or is another one."""


class Model(enum.IntEnum):
    """Programming model of an implementation, which decides the devices that it can use."""

    CPU = 0
    OMP = 1
    GPU = 2
    CUDA = 3
    OCL = 4


class Access(enum.IntEnum):
    """Use of a region by a task."""

    READ = 1
    WRITE = 2
    """The task writes all of it, and does not read the old content."""
    READ_WRITE = 3


class Reason(enum.IntEnum):
    """Kind of a failure of the runtime."""

    INVALID = -1
    CYCLE = -2
    GRAPH = -3
    OPTIONS = -4
    FITS_NOWHERE = -5
    UNPROFILED = -6
    TASK_FAILED = -7
    DEVICE_FAILED = -8
    UNAVAILABLE = -9
    BUG = -10
    ANNOUNCED = -11
    """The graph was written to the file that ``SCHED_PBS_GRAPH`` names, and did not run."""
    PLAN = -12


class RuntimeFailure(Exception):
    """The runtime refused a call, or a run has failed."""

    def __init__(self, message: str, reason: Reason | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        """Kind of the failure; None: an object could not be made."""


class _Report(ctypes.Structure):
    _fields_ = [
        ("tasks", ctypes.c_uint32),
        ("rebuilds", ctypes.c_uint32),
        ("co_schedulings", ctypes.c_uint32),
        ("is_calibration", ctypes.c_uint32),
        ("is_alone", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("freed_on_exit_bytes", ctypes.c_uint64),
    ]


@dataclass(frozen=True)
class RunReport:
    """Figures of a run."""

    tasks: int
    """Number of tasks."""
    rebuilds: int
    """Number of times that the graph was built anew."""
    co_schedulings: int
    """Number of decisions about all processes that this process made."""
    is_calibration: bool
    """Whether the run measured implementations that had never run."""
    is_alone: bool
    """Whether it ran without co-scheduling although that was on."""
    freed_on_exit_bytes: int
    """Memory of devices that early exits freed."""


_POINTER, _INT = ctypes.c_void_p, ctypes.c_int
_TEXT, _U32, _U64 = ctypes.c_char_p, ctypes.c_uint32, ctypes.c_uint64
_REPORT = ctypes.POINTER(_Report)

# Result and arguments of each function, as pbs_runtime.h declares them.
_DECLARED: dict[str, tuple[Any, list[Any]]] = {
    "strerror": (_TEXT, [_INT]),
    "last_error": (_TEXT, []),
    "options_new": (_POINTER, []),
    "options_free": (None, [_POINTER]),
    "options_threads": (_INT, [_POINTER, _U32]),
    "options_shared": (_INT, [_POINTER, _TEXT, ctypes.c_int64]),
    "options_overdue_factor": (_INT, [_POINTER, _U32]),
    "options_determination": (_INT, [_POINTER, _TEXT]),
    "options_scheduler": (_INT, [_POINTER, _TEXT]),
    "options_priority": (_INT, [_POINTER, _TEXT, _TEXT]),
    "options_iterations": (_INT, [_POINTER, _U32, _U32]),
    "options_cost": (_INT, [_POINTER, ctypes.c_double, ctypes.c_double, ctypes.c_double]),
    "options_search": (_INT, [_POINTER, _U64]),
    "options_refuse": (_INT, [_POINTER, _INT]),
    "options_history": (_INT, [_POINTER, _TEXT, _TEXT]),
    "options_simulated": (_INT, [_POINTER, _TEXT, _INT, _U32, _U64]),
    "options_opencl": (_INT, [_POINTER, _TEXT]),
    "options_link": (_INT, [_POINTER, _TEXT, _U64]),
    "new": (_POINTER, [_POINTER]),
    "free": (None, [_POINTER]),
    "is_alone": (_INT, [_POINTER]),
    "region_new": (_POINTER, [_POINTER, ctypes.c_size_t]),
    "region_free": (None, [_POINTER]),
    "graph_new": (_POINTER, []),
    "graph_free": (None, [_POINTER]),
    "graph_task": (_INT, [_POINTER, _TEXT, _TEXT]),
    "task_function": (_INT, [_POINTER, _INT, _INT, _U32, _U64, _FUNCTION, _POINTER]),
    "task_kernel": (_INT, [_POINTER, _INT, _TEXT, _TEXT, ctypes.c_size_t, _U64]),
    "task_region": (_INT, [_POINTER, _INT, _POINTER, _INT]),
    "task_transfer": (_INT, [_POINTER, _INT, _U64]),
    "task_after": (_INT, [_POINTER, _INT, _INT]),
    "graph_deadline": (_INT, [_POINTER, _U64]),
    "start": (_POINTER, [_POINTER, _POINTER]),
    "is_done": (_INT, [_POINTER]),
    "wait": (_INT, [_POINTER, _REPORT]),
    "context_threads": (_U32, [_POINTER]),
    "context_read": (_POINTER, [_POINTER, ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t)]),
    "context_write": (_POINTER, [_POINTER, ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t)]),
}


class _Library:
    """The library with its declarations."""

    def __init__(self, path: str) -> None:
        try:
            library = ctypes.CDLL(path)
            for name, (result, arguments) in _DECLARED.items():
                function = getattr(library, f"pbs_rt_{name}")
                function.restype, function.argtypes = result, arguments
                setattr(self, name, function)
        except (OSError, AttributeError) as error:
            raise LibraryMissing(
                f"the library of the runtime cannot be used ({error}); install the package "
                "libpbsruntime, or name the file of a libpbsruntime.so in the variable PBS_RUNTIME"
            ) from None

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the runtime has no function {name}")

    def failure(self, code: int | None = None) -> RuntimeFailure:
        """Failure of the last call in this thread."""
        text = self.last_error().decode(errors="replace")
        reasons = [reason for reason in Reason if reason == code]
        return RuntimeFailure(text, reasons[0] if reasons else None)

    def checked(self, code: int) -> int:
        """Number that a function returned, unless that is an error."""
        if code < 0:
            raise self.failure(code)
        return code

    def made(self, pointer: int | None) -> int:
        """Object that a function returned."""
        if not pointer:
            raise self.failure()
        return pointer


@functools.cache
def _load(path: str) -> _Library:
    return _Library(path)


def _library() -> _Library:
    return _load(os.environ.get("PBS_RUNTIME") or LIBRARY)


def _free_in(pid: int, free: Callable[[int], None], pointer: int) -> None:
    """Free an object of the library, if this is the process that made it.

    A child of ``fork()`` has a copy; the object, with its threads and files, is its parent's.
    """
    if os.getpid() == pid:
        free(pointer)


def find_library() -> None:
    """Load the library; raises ``LibraryMissing`` with the remedy if it is not there."""
    _library()


def _number(value: int, bits: int, name: str) -> int:
    """Number that a field of the library can have.  ctypes would cut it."""
    if not 0 <= value < 1 << bits:
        raise ValueError(f"{name} is {value}; write 0 to {(1 << bits) - 1}")
    return value


def _text(text: str, name: str) -> bytes:
    if "\0" in text:
        raise ValueError(f"{name} has a null character; leave it out")
    return text.encode()


@dataclass
class Simulated:
    """Simulated accelerators."""

    name: str
    """Name, unique in the runtime."""
    model: Model = Model.GPU
    """Programming model that they understand."""
    count: int = 1
    """Number of accelerators."""
    memory_bytes: int = 1 << 30
    """Memory of each of them."""
    link_bytes_per_s: int | None = None
    """Expected rate of transfers, until one was measured; None: they take no time."""


@dataclass
class RuntimeOptions:
    """Options of a runtime.  None: the default of the library."""

    threads: int | None = None
    """Number of threads, 1 to 1024; None: the CPUs of this thread."""
    is_shared: bool = False
    """Whether tasks are co-scheduled with those of other processes."""
    directory: str | None = None
    """Folder of the shared memory, with ``is_shared``; None: /dev/shm."""
    group: int = -1
    """Group whose members take part, with ``is_shared``; below 0: this user alone."""
    overdue_factor: int | None = None
    """Multiple of its expected runtime after which a running task is overdue."""
    determination: str | None = None
    """``never``, ``always``, ``contention``, ``speedup`` or ``amortization``."""
    scheduler: str | None = None
    """``greedy``, ``plain-random``, ``enhanced-random``, ``evolutionary`` or ``heft``."""
    priority: tuple[str, str] | None = None
    """Rules of greedy under contention and for the rest: ``age``, ``runtime``, ``successors``."""
    iterations: tuple[int, int] | None = None
    """Least and greatest number of mappings of enhanced-random."""
    cost_ns: tuple[float, float, float] | None = None
    """Cost of a decision about n tasks: factors of n * n and of n, and a constant."""
    search_ns: int | None = None
    """Maximum time of a search."""
    refuses_unprofiled: bool = False
    """Whether implementations that have never run are refused, and not measured."""
    history: tuple[str, str] | None = None
    """File of measurements, and the name of the application in it."""
    simulated: Iterable[Simulated] = ()
    """Simulated accelerators."""
    opencl: str | None = None
    """Name for all OpenCL devices of the machine, which are used then; None: none is."""

    def _fill(self, library: _Library, options: int) -> None:
        def set_(name: str, *values: Any) -> None:
            library.checked(getattr(library, f"options_{name}")(options, *values))

        if self.threads is not None:
            set_("threads", _number(self.threads, 32, "threads"))
        if self.is_shared:
            directory = None if self.directory is None else os.fsencode(self.directory)
            set_("shared", directory, self.group)
        if self.overdue_factor is not None:
            set_("overdue_factor", _number(self.overdue_factor, 32, "overdue_factor"))
        if self.determination is not None:
            set_("determination", _text(self.determination, "determination"))
        if self.scheduler is not None:
            set_("scheduler", _text(self.scheduler, "scheduler"))
        if self.priority is not None:
            set_("priority", *(_text(rule, "priority") for rule in self.priority))
        if self.iterations is not None:
            set_("iterations", *(_number(count, 32, "iterations") for count in self.iterations))
        if self.cost_ns is not None:
            set_("cost", *self.cost_ns)
        if self.search_ns is not None:
            set_("search", _number(self.search_ns, 64, "search_ns"))
        if self.refuses_unprofiled:
            set_("refuse", 1)
        if self.history is not None:
            path, application = self.history
            set_("history", os.fsencode(path), _text(application, "history"))
        for device in self.simulated:
            name = _text(device.name, "name")
            count = _number(device.count, 32, "count")
            memory_bytes = _number(device.memory_bytes, 64, "memory_bytes")
            set_("simulated", name, device.model, count, memory_bytes)
            if device.link_bytes_per_s is not None:
                set_("link", name, _number(device.link_bytes_per_s, 64, "link_bytes_per_s"))
        if self.opencl is not None:
            set_("opencl", _text(self.opencl, "opencl"))


class Region:
    """Data of tasks: a writable buffer, such as a ``bytearray``, an ``array`` or a NumPy array.

    A run copies the data at its beginning, and back at its end.  Do not use them in between.  The
    buffer cannot be resized as long as the region lives.
    """

    def __init__(self, data: Any) -> None:
        view = memoryview(data)
        if view.readonly or not view.c_contiguous or not view.nbytes:
            raise ValueError(
                "the data of a region are a writable buffer in one piece that is not empty; pass a "
                "bytearray or an array"
            )
        library = _library()
        self.size_bytes = view.nbytes
        """Size of the data."""
        self._data = (ctypes.c_char * view.nbytes).from_buffer(view.cast("B"))
        address = ctypes.addressof(self._data)
        self._pointer = library.made(library.region_new(address, view.nbytes))
        weakref.finalize(self, _free_in, os.getpid(), library.region_free, self._pointer)


class TaskContext:
    """Environment of a function that runs.  It is valid until the function returns."""

    def __init__(self, library: _Library, pointer: int) -> None:
        self._library = library
        self._pointer: int | None = pointer

    def _checked(self) -> int:
        if self._pointer is None:
            raise ValueError("the task has ended; use its context in the function of the task only")
        return self._pointer

    @property
    def threads(self) -> int:
        """Number of threads that the function may use."""
        return int(self._library.context_threads(self._checked()))

    def read(self, region: int) -> bytes:
        """Copy of a region, by its place among those of the task."""
        size_bytes = ctypes.c_size_t()
        place = _number(region, 32, "region")
        address = self._library.context_read(self._checked(), place, ctypes.byref(size_bytes))
        if not address:
            raise self._library.failure()
        return ctypes.string_at(address, size_bytes.value)

    def write(self, region: int, data: Any) -> None:
        """Write all of a region, by its place among those of the task."""
        size_bytes = ctypes.c_size_t()
        place = _number(region, 32, "region")
        address = self._library.context_write(self._checked(), place, ctypes.byref(size_bytes))
        if not address:
            raise ValueError(
                f"the task cannot write region {region}; give it one with Access.WRITE"
            )
        content = bytes(data)
        if len(content) != size_bytes.value:
            raise ValueError(
                f"region {region} has {size_bytes.value} bytes, and the data have {len(content)}"
            )
        ctypes.memmove(address, content, len(content))

    def _end(self) -> None:
        self._pointer = None


TaskFunction = Callable[[TaskContext], Any]
"""Function of an implementation.  Its value is the result of the task; an exception fails it."""


class RunTask:
    """A task of a graph, made by ``TaskGraph.task``."""

    def __init__(self, graph: "TaskGraph", number: int, name: str) -> None:
        self._graph = graph
        self._number = number
        self.name = name
        """Name of the task."""
        self.result: Any = None
        """Value that its function returned in the last run."""
        self.model: Model | None = None
        """Implementation that ran last; None: none has, or a kernel."""

    def _set(self, name: str, *values: Any) -> None:
        graph = self._graph
        graph._change()
        function = getattr(graph._library, f"task_{name}")
        graph._library.checked(function(graph._pointer, self._number, *values))

    def implementation(
        self,
        function: TaskFunction,
        model: Model = Model.CPU,
        threads: int = 1,
        takes_ns: int = 0,
    ) -> Self:
        """Add a function for devices of a model.

        ``takes_ns`` is its runtime on a simulated accelerator, and elsewhere the expected runtime
        until one was measured; 0: unknown.  Functions of several tasks run at once, in threads of
        the library; Python code takes turns.
        """
        # The task has the graph, and must not be kept by what the graph has.
        task, failures, library = weakref.ref(self), self._graph._failures, self._graph._library

        def call(context_pointer: int, _argument: int | None) -> int:
            context = TaskContext(library, context_pointer)
            try:
                value = function(context)
                if (own := task()) is not None:
                    own.result, own.model = value, model
                return 0
            except BaseException as error:  # An exception cannot pass through the library.
                failures.append(error)
                return 1
            finally:
                context._end()

        called = _FUNCTION(call)
        threads = _number(threads, 32, "threads")
        takes_ns = _number(takes_ns, 64, "takes_ns")
        self._graph._kept.append(called)
        self._set("function", model, threads, takes_ns, called, None)
        return self

    def kernel(self, source: str, name: str, items: int, expected_ns: int = 0) -> Self:
        """Add a kernel in OpenCL C; its arguments are the regions of the task."""
        items, expected_ns = _number(items, 64, "items"), _number(expected_ns, 64, "expected_ns")
        self._set("kernel", _text(source, "source"), _text(name, "name"), items, expected_ns)
        return self

    def region(self, region: Region, access: Access = Access.READ_WRITE) -> Self:
        """Give the task the next region."""
        self._graph._kept.append(region)
        self._set("region", region._pointer, access)
        return self

    def transfer(self, size_bytes: int) -> Self:
        """Declare the bytes that are transferred if the task before it has run in another memory.

        Without a declaration, it is the size of the regions that the task reads.
        """
        self._set("transfer", _number(size_bytes, 64, "size_bytes"))
        return self

    def after(self, *before: "RunTask") -> Self:
        """Let the task wait for others of the graph."""
        for task in before:
            if task._graph is not self._graph:
                raise ValueError(f"task {task.name} is of another graph; name one of this graph")
            self._set("after", task._number)
        return self


class TaskGraph:
    """Tasks that wait for each other.  A graph can be run several times."""

    def __init__(self) -> None:
        self._library = _library()
        self._pointer = self._library.made(self._library.graph_new())
        self.tasks: list[RunTask] = []
        """Tasks in the order in which they were added."""
        # Functions and data live until the library has no graph with them.
        self._kept: list[Any] = []
        self._failures: list[BaseException] = []
        self._runs = 0
        # It has nothing of the graph, which functions may refer to.  It is called before the graph
        # loses what it keeps, by the garbage collector as well.
        weakref.finalize(self, _free_in, os.getpid(), self._library.graph_free, self._pointer)

    def _change(self) -> None:
        if self._runs:
            raise RuntimeFailure("the graph runs; wait for its end before you change it")

    def task(self, name: str, kind: str | None = None) -> RunTask:
        """Add a task.  Measured runtimes are stored by kind; None: by its name."""
        self._change()
        of_kind = None if kind is None else _text(kind, "kind")
        number = self._library.graph_task(self._pointer, _text(name, "name"), of_kind)
        task = RunTask(self, self._library.checked(number), name)
        self.tasks.append(task)
        return task

    def deadline(self, deadline_ns: int) -> None:
        """Set the time from the submission by which plans end the last task; plans need it."""
        self._change()
        deadline_ns = _number(deadline_ns, 64, "deadline_ns")
        self._library.checked(self._library.graph_deadline(self._pointer, deadline_ns))


class Started:
    """A graph that runs in the background."""

    def __init__(self, runtime: "Runtime", graph: TaskGraph) -> None:
        self._runtime, self._graph = runtime, graph
        self._library = graph._library
        started = self._library.start(runtime._opened(), graph._pointer)
        self._pointer: int | None = self._library.made(started)
        # A wait frees what the pointer refers to.
        self._lock = threading.RLock()
        self._has_ended = False
        graph._runs += 1
        runtime._runs += 1
        _RUNNING.add(self)
        _wait_at_exit()

    @property
    def is_done(self) -> bool:
        """Whether the run has ended.  Call ``wait`` all the same, for its results."""
        with self._lock:
            if self._pointer is None:
                return self._has_ended
            return bool(self._library.is_done(self._pointer))

    def wait(self) -> RunReport:
        """Wait for the end.

        The exception of a function that failed is raised, and a ``RuntimeFailure`` if the runtime
        failed.  Call it once.
        """
        with self._lock:
            pointer, self._pointer = self._pointer, None
        if pointer is None:
            raise RuntimeFailure("the run was waited for; start the graph again")
        report = _Report()
        try:
            code = self._library.wait(pointer, ctypes.byref(report))
            failure = self._library.failure(code) if code < 0 else None
        finally:
            self._has_ended = True
            self._graph._runs -= 1
            self._runtime._runs -= 1
            _RUNNING.discard(self)
        if failure is not None:
            raised = self._graph._failures[:]
            self._graph._failures.clear()
            if raised:
                raised[0].add_note(f"in a task of the runtime: {failure}")
                raise raised[0]
            raise failure
        return RunReport(
            report.tasks,
            report.rebuilds,
            report.co_schedulings,
            bool(report.is_calibration),
            bool(report.is_alone),
            report.freed_on_exit_bytes,
        )


# Runs are kept until they were waited for: threads of the library call their functions.
_RUNNING: set[Started] = set()
# In a child of fork() no graph runs.
os.register_at_fork(after_in_child=_RUNNING.clear)


def _wait_for_all() -> None:
    """Wait for runs at the end of the program, before the functions of their tasks are gone."""
    for started in list(_RUNNING):
        try:
            started.wait()
        except BaseException:
            # The program has not asked for the result.
            continue


@functools.cache
def _wait_at_exit() -> None:
    """Register the wait.  What is registered later is called earlier: graphs are freed after it."""
    atexit.register(_wait_for_all)


class Runtime:
    """Runtime of a process: its devices and its decisions.  Runs on it take turns."""

    def __init__(self, options: RuntimeOptions | None = None) -> None:
        self._library = library = _library()
        own = library.made(library.options_new())
        try:
            (options or RuntimeOptions())._fill(library, own)
            self._pointer = library.made(library.new(own))
        finally:
            library.options_free(own)
        self._runs = 0
        self._free = weakref.finalize(self, _free_in, os.getpid(), library.free, self._pointer)

    def _opened(self) -> int:
        if not self._free.alive:
            raise RuntimeFailure("the runtime is closed; make another one")
        return self._pointer

    @property
    def is_alone(self) -> bool:
        """Whether it cannot co-schedule although it should."""
        return bool(self._library.checked(self._library.is_alone(self._opened())))

    def start(self, graph: TaskGraph) -> Started:
        """Start a graph, and return at once.  Do not use the data of its regions until its end."""
        if graph._runs:
            raise RuntimeFailure("the graph runs; wait for its end before you start it again")
        graph._failures.clear()
        for task in graph.tasks:
            task.result = task.model = None
        return Started(self, graph)

    def run(self, graph: TaskGraph) -> RunReport:
        """Run a graph to its end.  Its results are in its tasks."""
        return self.start(graph).wait()

    def close(self) -> None:
        """Free the runtime."""
        if self._runs:
            raise RuntimeFailure(
                "a graph runs on the runtime; wait for its end before you close it"
            )
        self._free()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        # An exception that leaves a run behind counts; the end of the program frees the runtime.
        if kind is None or not self._runs:
            self.close()
