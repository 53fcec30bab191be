# SPDX-License-Identifier: GPL-2.0
"""Machines for which plans are made (Glaß 2024, 5.1.1; Documentation/jobs.rst)."""

import dataclasses
from typing import ClassVar

from .record import Record

# Parts of a machine that CPUs share, the closest first.
LEVELS = ("smt", "l2", "llc", "node")


@dataclasses.dataclass
class Core(Record):
    """Core, which executes one task at a time."""

    SHORT: ClassVar[str | None] = "name"

    name: str
    """Name, unique in the node."""
    cpu: int | None = None
    """Number in Linux; None: the place of the core in its node."""
    rate_insns_per_s: int | None = None
    """Instructions that the core retires in a second; None: the rate of its node."""


@dataclasses.dataclass
class Node(Record):
    """Cores with a memory that they share."""

    name: str
    """Name, unique in the machine."""
    memory_bytes: int
    """Memory for the processes of jobs."""
    cores: list[Core]
    """Cores in the order of the file."""
    rate_insns_per_s: int | None = None
    """Instructions that each of its cores retires in a second."""


@dataclasses.dataclass
class Link(Record):
    """Link that carries one message at a time between two nodes."""

    nodes: list[str]
    """Names of the two nodes."""
    bandwidth_bytes_per_s: int
    """Bytes that the link carries in a second."""
    latency_ns: int = 0
    """Time from sending the last byte to its arrival."""


@dataclasses.dataclass
class Resource(Record):
    """Countable resource, such as the licences of a program."""

    name: str
    """Name, unique in the machine."""
    count: int
    """Amount that all processes together may hold at any time."""
    nodes: list[str] = dataclasses.field(default_factory=list)
    """Names of the nodes whose processes may hold it; empty: all."""


@dataclasses.dataclass
class Device(Record):
    """Accelerators of one kind."""

    kind: str
    """Kind that variants name, such as ``gpu``."""
    models: list[str]
    """Programming models that the accelerators understand."""
    count: int = 1
    """Number of such accelerators."""
    host_cpu: int | None = None
    """CPU whose process waits for them; None: the first."""
    host_permille: int = 0
    """Part of that CPU's time that a task takes, in parts of a thousand."""
    link_bytes_per_s: int | None = None
    """Bytes that go to or from one in a second; None: transfers take no time."""


@dataclasses.dataclass
class Sharing(Record):
    """CPUs that share a part of the machine, and therefore slow each other."""

    level: str
    """Shared part, of ``LEVELS``."""
    cpus: list[int]
    """Numbers of the CPUs in Linux."""


@dataclasses.dataclass
class Machine(Record):
    """Machine with its nodes."""

    KEYS: ClassVar[dict[str, str]] = {
        "nodes": "node",
        "links": "link",
        "resources": "resource",
        "devices": "device",
    }

    nodes: list[Node]
    """Nodes in the order of the file."""
    name: str | None = None
    """Name for people."""
    tick_ns: int = 1
    """Step of time: reservations last whole multiples of it."""
    demand_permille: int | None = None
    """Share of a core for independent processes at admission; None: 900."""
    links: list[Link] = dataclasses.field(default_factory=list)
    """Links between nodes."""
    resources: list[Resource] = dataclasses.field(default_factory=list)
    """Countable resources that processes hold, such as licences."""
    devices: list[Device] = dataclasses.field(default_factory=list)
    """Accelerators by kind."""
    sharing: list[Sharing] = dataclasses.field(default_factory=list)
    """CPUs that share a part of the machine."""
