# SPDX-License-Identifier: GPL-2.0
"""Plan-based scheduling (SCHED_PBS) from Python: plans, jobs, simulations and planners.

Documentation/python.rst shows the use.  The package needs Python 3.11, and ``pbsctl`` for
simulations.
"""

from .admission import Admission, AdmissionQuestion
from .command import PbsctlError, find_pbsctl, run_json
from .config import Config
from .generate import generate
from .job import Checkpoint, Edge, Graph, GraphTask, Job, JobProcess, JobTask, Variant
from .machine import Core, Device, Link, Machine, Node, Resource, Sharing
from .own import OwnProcess, Place
from .plan import Command, Cpu, Idle, Message, Plan, Process, Task
from .planner import Failure, Planner, Progress, Question
from .record import FileError, Record
from .simulation import Options, ProcessResult, Simulation, Simulator, simulate
from .sweep import Case, print_progress, sweep

__all__ = [
    "Admission",
    "AdmissionQuestion",
    "Case",
    "Checkpoint",
    "Command",
    "Config",
    "Core",
    "Cpu",
    "Device",
    "Edge",
    "Failure",
    "FileError",
    "Graph",
    "GraphTask",
    "Idle",
    "Job",
    "JobProcess",
    "JobTask",
    "Link",
    "Machine",
    "Message",
    "Node",
    "Options",
    "OwnProcess",
    "PbsctlError",
    "Place",
    "Plan",
    "Planner",
    "Process",
    "ProcessResult",
    "Progress",
    "Question",
    "Record",
    "Resource",
    "Sharing",
    "Simulation",
    "Simulator",
    "Task",
    "Variant",
    "find_pbsctl",
    "generate",
    "print_progress",
    "run_json",
    "simulate",
    "sweep",
]
