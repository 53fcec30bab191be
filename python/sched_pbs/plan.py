# SPDX-License-Identifier: GPL-2.0
"""Plans: processes with their tasks, and the order of the slots on each CPU.

The keys of files are those of Documentation/plan-format.rst.  Sections are those of Leppert
2021.  Lengths are retired user-space instructions.
"""

import dataclasses
from typing import ClassVar

from .config import Config
from .quantity import number_of
from .record import FileError, Record


@dataclasses.dataclass
class Command(Record):
    """Program with its arguments and redirections; there is no shell."""

    SHORT: ClassVar[str | None] = "command"

    command: list[str]
    """The program and its arguments."""
    stdin: str | None = None
    """File from which standard input is read."""
    stdout: str | None = None
    """File to which standard output is written."""
    stderr: str | None = None
    """File to which standard error is written."""


@dataclasses.dataclass
class Message(Record):
    """Message that a task waits for, with its planned arrival."""

    KEYS: ClassVar[dict[str, str]] = {"arrival_ns": "arrival"}

    task: str | int
    """Task that sends it, as in ``after``."""
    arrival_ns: int
    """Planned arrival, counted from the moment at which the plan comes into force."""


@dataclasses.dataclass
class Task(Record):
    """Stretch of a process with a planned number of instructions."""

    SHORT: ClassVar[str | None] = "planned_insns"

    planned_insns: int
    """Length that the planner expects, which is the length of the task's slot."""
    name: str | None = None
    """Name for people."""
    id: int | None = None
    """Number in events; None: the number after that of the task before, from 0 on."""
    real_insns: int | None = None
    """Real length, which only simulations use; None: the planned one."""
    wait_insns: int | None = None
    """Time for which the process is blocked before, as instructions (3.3.8); simulations only."""
    after: list[str | int | Message] = dataclasses.field(default_factory=list)
    """Tasks of other processes that must have ended before: ``"sort"``, ``"stages/sieve"``."""


@dataclasses.dataclass
class Process(Record):
    """Thread on one CPU that runs its tasks one after the other."""

    KEYS: ClassVar[dict[str, str]] = {"deadline_ns": "deadline"}

    id: int
    """Number of the process, different for each."""
    tasks: list[Task]
    """Tasks in the order of execution."""
    name: str | None = None
    """Name for people; it begins with a letter, and not with ``idle``."""
    buffer_insns: int = 0
    """Plan buffer (3.3.3): from the planned end to the deadline."""
    memory_bytes: int = 0
    """Planned peak of resident memory; 0: none is planned."""
    rate_insns_per_ms: int = 0
    """Instructions that the process retires in a millisecond; 0: the rate of its CPU."""
    deadline_ns: int | None = None
    """Deadline, counted from the moment at which the plan comes into force."""
    real_memory_bytes: int | None = None
    """Real memory, which only simulations use; None: the planned peak."""
    cpu: int | None = None
    """CPU of the slots; None: the slots decide."""
    command: list[str] | None = None
    """Program whose whole life is one task."""
    commands: list[Command] | None = None
    """Programs, one for each task."""
    attaches: str | None = None
    """``"itself"``: the program marks the ends of its tasks."""
    stdin: str | None = None
    """File for standard input of all commands."""
    stdout: str | None = None
    """File for standard output of all commands."""
    stderr: str | None = None
    """File for standard error of all commands."""

    def label(self) -> str | int:
        """Name of the process in slots: its name, or its number."""
        return self.id if self.name is None else self.name


@dataclasses.dataclass
class Idle(Record):
    """Slot of no process, which late processes may use (3.2.3)."""

    idle_insns: int
    """Length at the rate of the CPU."""
    real_insns: int | None = None
    """Real length, if it is known beforehand."""


@dataclasses.dataclass
class Cpu(Record):
    """Plan of one CPU."""

    cpu: int
    """Number of the CPU in Linux."""
    slots: list[str | int | Idle]
    """Slots in the order of execution: a process by name or number, or an idle slot."""
    rate_insns_per_ms: int = 0
    """Instructions that the CPU retires in a millisecond; 0: the measured rate of the node."""

    def __post_init__(self) -> None:
        self.slots = [_slot(slot) for slot in self.slots]


@dataclasses.dataclass
class Plan(Record):
    """Plan for one or several CPUs."""

    KEYS: ClassVar[dict[str, str]] = {"processes": "process", "cpus": "cpu"}
    MARKS: ClassVar[tuple[str, ...]] = ("process", "cpu")

    processes: list[Process] = dataclasses.field(default_factory=list)
    """Processes in the order of the file."""
    cpus: list[Cpu] = dataclasses.field(default_factory=list)
    """CPUs with their slots."""
    plan_id: int = 0
    """Number of the plan, which every event carries."""
    dealt_seq: int = 0
    """Prediction failures that the plan answers: all with a smaller ``seq`` (3.3.4)."""
    lease_ns: int = 0
    """Time after which a CPU drops a plan that is not renewed; 0: never."""
    memory_bytes: int = 0
    """Memory of all processes together; 0: no limit."""
    config: Config | None = None
    """Numbers of the policy; None: the defaults of the node."""

    def process(self, key: str | int) -> Process:
        """Process with this number or name."""
        for process in self.processes:
            if key in (process.id, str(process.id), process.name):
                return process
        raise KeyError(f"the plan has no process {key}")

    def task_count(self) -> int:
        """Number of tasks of all processes."""
        return sum(len(process.tasks) for process in self.processes)


def _slot(slot: str | int | Idle) -> str | int | Idle:
    """A slot, as a record where it is written as ``"idle 5M"``."""
    if not isinstance(slot, str) or slot.split(maxsplit=1)[:1] != ["idle"]:
        return slot
    try:
        return Idle(number_of("idle_insns", slot.removeprefix("idle"), needs_unit=False))
    except ValueError as error:
        raise FileError(f'slot "{slot}": {error}') from error
