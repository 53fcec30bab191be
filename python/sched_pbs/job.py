# SPDX-License-Identifier: GPL-2.0
"""Jobs and task graphs, from which a planner makes plans.

The keys of files are those of Documentation/jobs.rst.  Sections are those of Glaß 2024.  Times
are counted from the submission of the job.
"""

import dataclasses
from typing import ClassVar

from .plan import Command
from .record import Record

# Actions of tasks (5.1.2).
ACTIONS = ("calculation", "communication", "fork", "fork_end", "join", "start", "end")


@dataclasses.dataclass
class JobTask(Record):
    """Stretch of a process of a job (table 3)."""

    SHORT: ClassVar[str | None] = "insns"
    KEYS: ClassVar[dict[str, str]] = {"message_bytes": "bytes"}

    insns: int | None = None
    """Instructions; required for calculations and communications."""
    id: int | None = None
    """Number, unique in the job; None: the number after that of the task before."""
    name: str | None = None
    """Name for people."""
    action: str = "calculation"
    """Action, of ``ACTIONS`` (5.1.2)."""
    memory_bytes: int | None = None
    """Greatest memory that the task uses; None: that of its process."""
    child: int | str | None = None
    """Process that a fork starts, or that a join waits for."""
    to: int | None = None
    """Communication task that receives the message."""
    message_bytes: int | None = None
    """Size of the message; None: nobody waits for it."""
    synchronous: bool = False
    """Whether the next task of the process waits for the receiver."""
    after: list[str | int] = dataclasses.field(default_factory=list)
    """Tasks of other processes that must have ended before."""


@dataclasses.dataclass
class JobProcess(Record):
    """Process of a job: tasks that run one after the other on one core (table 2)."""

    id: int
    """Number, unique in the job."""
    memory_bytes: int
    """Memory that the process holds from its first task to its last (4.3)."""
    tasks: list[JobTask]
    """Tasks in the order of execution."""
    name: str | None = None
    """Name, unique in the job."""
    runtime_ns: int | None = None
    """Time from its first task to its last (approx_runtime); None: from the instructions."""
    rate_insns_per_s: int | None = None
    """Instructions in a second on the fastest core; None: as many as the core."""
    cpus: list[int] = dataclasses.field(default_factory=list)
    """CPUs on which the process may run; empty: all of those of the job."""
    resources: dict[str, int] = dataclasses.field(default_factory=dict)
    """Amounts of resources that the process holds from its first task to its last, by name."""
    command: list[str] | None = None
    """Program whose whole life is one task."""
    commands: list[Command] | None = None
    """Programs, one for each task that has instructions."""
    attaches: str | None = None
    """``"itself"``: the program marks the ends of its tasks."""
    stdin: str | None = None
    """File for standard input of all commands."""
    stdout: str | None = None
    """File for standard output of all commands."""
    stderr: str | None = None
    """File for standard error of all commands."""


@dataclasses.dataclass
class Checkpoint(Record):
    """Way in which the programs of a job save their work before it is ended."""

    signal: str
    """Signal that asks the programs to do so: HUP, INT, TERM, USR1 or USR2."""
    within_ns: int
    """Time that the programs need for that."""


@dataclasses.dataclass
class Job(Record):
    """Job request with its task net (table 1)."""

    KEYS: ClassVar[dict[str, str]] = {"processes": "process"}

    name: str
    """Name, under which the history stores measured figures."""
    deadline_ns: int
    """Time by which the last task must have ended."""
    processes: list[JobProcess]
    """Processes in the order of the file."""
    start_ns: int = 0
    """Time before which no part of the job runs."""
    priority: int = 0
    """Importance: a job with a greater number is planned first."""
    value: int = 1
    """Value that the user gains if the job keeps its deadline."""
    penalty: int = 0
    """Value that the user loses if the job misses its deadline."""
    checkpoint: Checkpoint | None = None
    """Way in which the programs of the job save their work; None: they cannot."""
    best_effort: bool = False
    """Whether the job runs behind all jobs that have a promise, and without one."""
    runtime_ns: int | None = None
    """Duration of the whole job (total_runtime), as far as it is known."""
    memory_bytes: int | None = None
    """Memory of the whole job (total_needed_memory), as far as it is known."""
    cpus: list[int] = dataclasses.field(default_factory=list)
    """CPUs on which the job may run; empty: all."""
    resources: dict[str, int] = dataclasses.field(default_factory=dict)
    """Amounts of resources that the job holds from its first task to its last, by name."""


@dataclasses.dataclass
class Edge(Record):
    """Task that another one waits for, with the data from there."""

    SHORT: ClassVar[str | None] = "task"
    KEYS: ClassVar[dict[str, str]] = {"data_bytes": "bytes"}

    task: str
    """Name of the task."""
    data_bytes: int = 0
    """Size of the data."""
    transfer_ns: int | None = None
    """Time of the transfer between two memories; None: from size and link."""


@dataclasses.dataclass
class Variant(Record):
    """Implementation of a task of a graph."""

    model: str
    """Programming model: ``cpu``, ``omp``, ``ocl``, ``cuda``, or another word."""
    threads: int | None = None
    """Number of threads on the CPU; None: 1, unless there is a device."""
    device: str | None = None
    """Kind of the accelerator on which it runs."""
    runtime_ns: int | None = None
    """Duration; None: from instructions or history."""
    insns: int | None = None
    """Instructions that each thread retires."""
    command: list[str] = dataclasses.field(default_factory=list)
    """Program of each thread, with ``{lane}`` and ``{lanes}``."""


@dataclasses.dataclass
class GraphTask(Record):
    """Work that runs once, as one of its variants."""

    KEYS: ClassVar[dict[str, str]] = {"variants": "variant"}

    name: str
    """Name, unique in the graph."""
    variants: list[Variant]
    """Implementations, of which a planner chooses one."""
    after: list[Edge] = dataclasses.field(default_factory=list)
    """Tasks that must have ended before."""
    memory_bytes: int = 0
    """Memory that each of its threads allocates."""
    repeat: int = 1
    """Number of tasks that this one stands for."""
    chained: bool = True
    """Whether repeated tasks wait for each other."""


@dataclasses.dataclass
class Graph(Record):
    """Job whose tasks have several implementations."""

    KEYS: ClassVar[dict[str, str]] = {"tasks": "task"}

    name: str
    """Name, under which the history stores measured figures."""
    tasks: list[GraphTask]
    """Tasks in the order of the file."""
    deadline_ns: int | None = None
    """Time by which the last task must have ended; required where plans execute the job."""
    start_ns: int = 0
    """Time before which no part of the job runs."""
    priority: int = 0
    """Importance: a job with a greater number is planned first."""
    program: list[str] = dataclasses.field(default_factory=list)
    """Program that runs all tasks itself under plans, in place of commands."""
