# SPDX-License-Identifier: GPL-2.0
"""Simulations by ``pbsctl sim``, which runs the policy of the kernel in virtual time.

Documentation/simulation.rst describes the model, and Documentation/json.rst the results.
"""

import contextlib
import dataclasses
import json
import pathlib
import subprocess
from typing import Any, Self

from .bridge import Bridge
from .command import PbsctlError, check_version, ended, failure_of, find_pbsctl
from .config import Config
from .plan import Plan
from .planner import Planner


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of a simulation; None: the default of ``pbsctl sim``."""

    config: Config | None = None
    """Numbers of the policy, which override those of the plan."""
    scheduler: str | None = None
    """``"none"``, ``"stretch"`` or ``"command LINE"``; not together with a planner."""
    late_permille: int | None = None
    """stretch: new length of late tasks, of the planned one."""
    early_permille: int | None = None
    """stretch: new length of early tasks, of the planned one."""
    rate_insns_per_ms: int | None = None
    """Instructions that a CPU retires in a millisecond, if the plan does not have it."""
    resolution: str | None = None
    """``"event"`` or ``"tick"``: times at which the node checks the count."""
    timer_delay_insns: int | None = None
    """Instructions by which every count overshoots."""
    look_ns: int | None = None
    """Time of each check of a count or of the clock."""
    switch_ns: int | None = None
    """Time of each switch to another process."""
    memory_over: str | None = None
    """``"tell"``, ``"kill"`` or ``"swap"``: reaction to more memory than planned."""
    swap_slowdown: int | None = None
    """swap: factor by which an instruction on swapped memory is slower."""
    slowdowns: str | None = None
    """File of slow-downs of tasks beside each other."""
    shared: str | None = None
    """``"smt"``, ``"l2"``, ``"llc"`` or ``"node"``: what the CPUs of the plan share, where the file
    of slow-downs has several."""
    changes: tuple[tuple[int, Config], ...] = ()
    """Changes of the policy while the plan is in force: the time of each in ns, and its numbers."""
    limit_ns: int | None = None
    """Simulated time after which the simulation stops."""
    max_answers: int | None = None
    """Most answers that are requested for each CPU."""
    shared_answer_ns: int | None = None
    """Time of an answer of one planner for all CPUs, one question after the other."""

    def arguments(self) -> list[str]:
        """Arguments of ``pbsctl sim``."""
        out = [] if self.config is None else self.config.options()
        for at_ns, config in self.changes:
            out += config.options("--change", f"{at_ns}ns:")
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is None or field.name in ("config", "changes"):
                continue
            option, unit = _OPTIONS.get(field.name, (field.name, ""))
            out += ["--" + option.replace("_", "-"), f"{value}{unit}"]
        return out


# Names of options that differ from the fields, and their units.
_OPTIONS = {
    "late_permille": ("late", ""),
    "early_permille": ("early", ""),
    "rate_insns_per_ms": ("rate", ""),
    "timer_delay_insns": ("timer-delay", ""),
    "look_ns": ("look", "ns"),
    "switch_ns": ("switch", "ns"),
    "limit_ns": ("limit", "ns"),
    "shared_answer_ns": ("shared-answer", "ns"),
}


@dataclasses.dataclass(frozen=True)
class ProcessResult:
    """Result of a process."""

    id: int
    """Number of the process."""
    name: str | None
    """Its name."""
    cpu: int
    """Its CPU."""
    ended_ns: int | None
    """End of its last task; None: it did not end."""
    deadline_ns: int
    """The ``deadline`` of the process in the plan.  Without one: its planned end plus its plan
    buffer, on a node that is slower by the capacity buffer (3.3.6)."""
    kept: bool
    """Whether it ended by its deadline."""

    @property
    def lateness_ns(self) -> int | None:
        """Time from the deadline to the end; negative: time that was left."""
        return None if self.ended_ns is None else self.ended_ns - self.deadline_ns


@dataclasses.dataclass(frozen=True)
class Simulation:
    """Results of a simulation."""

    recording: dict[str, Any]
    """Whole output of ``pbsctl --json sim`` (Documentation/simulation.rst, "JSON output")."""

    @property
    def ended(self) -> bool:
        """Whether all processes ended."""
        return bool(self.recording["outcome"] == "ended")

    @property
    def events(self) -> list[dict[str, Any]]:
        """Events in the order of their time, one record each."""
        return list(self.recording["events"])

    @property
    def tasks(self) -> list[dict[str, Any]]:
        """Results of the tasks, one record each."""
        return list(self.recording["tasks"])

    @property
    def processes(self) -> list[ProcessResult]:
        """Results of the processes, ascending by their numbers on each CPU."""
        names = [field.name for field in dataclasses.fields(ProcessResult)]
        rows = self.recording["processes"]
        return [ProcessResult(**{name: row[name] for name in names}) for row in rows]

    @property
    def replans(self) -> list[dict[str, Any]]:
        """Answers of the planner, one record each."""
        return list(self.recording["replans"])

    @property
    def config(self) -> Config:
        """Configuration of the node."""
        return Config.of_message(self.recording["config"])

    @property
    def plans(self) -> list[Plan]:
        """The plan, and the answers that came into force."""
        return [Plan.loads(plan["toml"]) for plan in self.recording["plans"]]

    @property
    def kept(self) -> int:
        """Number of processes that met their deadline."""
        return sum(process.kept for process in self.processes)

    def process(self, key: str | int) -> ProcessResult:
        """Result of the process with this number or name."""
        for process in self.processes:
            if key in (process.id, process.name):
                return process
        raise KeyError(f"the simulation has no process {key}")

    def signals(self) -> list[dict[str, Any]]:
        """Prediction failures: the events of the kinds ``late`` and ``early``."""
        return [event for event in self.events if event["kind"] in ("late", "early")]


class Simulator:
    """Running ``pbsctl sim --batch``, which simulates one plan after the other.

    It takes no process for each simulation.  Threads need a simulator each.  An exception of the
    planner, or an interrupt, ends it.
    """

    def __init__(self, pbsctl: str | pathlib.Path | None = None) -> None:
        self._command = [find_pbsctl(pbsctl), "sim", "--batch"]
        self._is_ended = False
        self._bridge = Bridge()
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=self._bridge.descriptors,
        )
        self._bridge.start(self._process.kill)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        with self._process as process:
            with contextlib.suppress(BrokenPipeError):
                process.communicate()
        self._bridge.close()

    def simulate(
        self, plan: Plan, options: Options | None = None, planner: Planner | None = None
    ) -> Simulation:
        """Simulate a plan; a planner of this process answers its prediction failures."""
        if self._is_ended:
            raise PbsctlError(1, "this simulator ended with the error before; make another", [])
        options = options or Options()
        arguments = options.arguments()
        if planner is not None:
            if options.scheduler is not None:
                raise ValueError("there are a planner and a scheduler; leave one out")
            arguments += ["--scheduler", "command " + self._bridge.command]
        elif options.scheduler is None:
            # The same options are those of a run with a planner, too.
            arguments += ["--scheduler", "none"]
        self._bridge.planner = planner
        case = json.dumps({"plan": plan.to_json(), "options": arguments})
        assert self._process.stdin is not None and self._process.stdout is not None
        line = b""
        # The next call would read the result of this one.
        self._is_ended = True
        try:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(case.encode() + b"\n")
                self._process.stdin.flush()
                line = self._process.stdout.readline()
        except BaseException:
            self._process.kill()
            raise
        if self._bridge.error is not None:
            raise self._bridge.error
        if not line.endswith(b"\n"):
            status = self._process.wait()
            raise ended(self._command, status)
        self._is_ended = False
        result = json.loads(line)
        check_version(result, self._command)
        if result["schema"].startswith("pbs.failure/"):
            if planner is not None:
                result = _renamed(result, self._bridge.command, type(planner).__name__)
            raise failure_of(result, command=self._command)
        return Simulation(result)


def _renamed(value: Any, command: str, name: str) -> Any:
    """Decoded JSON in which the planner has the name of its class."""
    if isinstance(value, str):
        return value.replace(f'"{command}"', name).replace(command, name)
    if isinstance(value, list):
        return [_renamed(part, command, name) for part in value]
    if isinstance(value, dict):
        return {key: _renamed(part, command, name) for key, part in value.items()}
    return value


def simulate(
    plan: Plan,
    options: Options | None = None,
    planner: Planner | None = None,
    pbsctl: str | pathlib.Path | None = None,
) -> Simulation:
    """Simulate a plan; a planner of this process answers its prediction failures.

    An exception of the planner ends the simulation and is raised here.
    """
    with Simulator(pbsctl) as simulator:
        return simulator.simulate(plan, options, planner)
