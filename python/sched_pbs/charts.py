# SPDX-License-Identifier: GPL-2.0
"""Pictures of a simulation, and the records behind them.

With matplotlib, ``gantt`` and ``lateness_plot`` return its figures.  Without it, ``svg`` returns
the pictures of ``pbsctl report``.
"""

import json
import pathlib
from collections.abc import Iterable
from typing import Any

from .command import run_json
from .optional import has, need
from .simulation import Simulation

_INSTEAD = "call svg(simulation, chart), which needs only pbsctl"
_NS_PER_MS = 1e6
# Kinds of events with which the time of a process on a CPU ends.
_ENDS = ("grant", "plan_ended", "plan_installed", "plan_dropped")


def stays(simulation: Simulation) -> list[dict[str, Any]]:
    """Stays of processes on CPUs, one record each, in the order of their begin.

    The keys are ``cpu``, ``process``, ``task``, ``slot``, ``reason`` (``slot``, ``idle_slot``,
    ``blocked_slot``, ``after_plan``), ``begin_ns`` and ``end_ns``.  Unallocated time is part of
    the stay that it interrupts.
    """
    out: list[dict[str, Any]] = []
    open_stays: dict[int, dict[str, Any]] = {}
    for event in simulation.events:
        if event["kind"] not in _ENDS:
            continue
        before = open_stays.pop(event["cpu"], None)
        if before is not None:
            before["end_ns"] = event["time_ns"]
        if event["kind"] == "grant" and event["process"] is not None:
            stay = {key: event[key] for key in ("cpu", "process", "task", "slot", "reason")}
            stay["begin_ns"] = event["time_ns"]
            open_stays[event["cpu"]] = stay
            out.append(stay)
    ends = {cpu["cpu"]: cpu["ended_ns"] for cpu in simulation.recording["cpus"]}
    for cpu, stay in open_stays.items():
        stay["end_ns"] = ends[cpu]
    return [stay for stay in out if stay["end_ns"] > stay["begin_ns"]]


def lateness(
    simulation: Simulation, pbsctl: str | pathlib.Path | None = None
) -> list[dict[str, Any]]:
    """Lateness over time with its thresholds, one record for each point.

    The keys are ``cpu``, ``process`` (None: the node), ``series``, ``time_ns`` and ``insns``.
    ``series`` is ``lateness``, ``t2`` or, for the node, ``tm2``.
    """
    report = run_json(["report", "-"], json.dumps(simulation.recording), pbsctl)
    out: list[dict[str, Any]] = []

    def add(cpu: int, process: int | None, series: str, points: Iterable[list[int]]) -> None:
        for time_ns, insns in points:
            row = {"cpu": cpu, "process": process, "series": series}
            out.append({**row, "time_ns": time_ns, "insns": insns})

    for cpu in report["cpus"]:
        add(cpu["cpu"], None, "lateness", cpu["lateness_insns"])
        add(cpu["cpu"], None, "t2", cpu["t2_node_insns"])
        add(cpu["cpu"], None, "tm2", cpu["tm2_node_insns"])
        for process in cpu["processes"]:
            add(cpu["cpu"], process["process"], "lateness", process["lateness_insns"])
            add(cpu["cpu"], process["process"], "t2", process["limit_insns"])
    return out


def svg(
    simulation: Simulation, chart: str = "gantt", pbsctl: str | pathlib.Path | None = None
) -> str:
    """Picture of ``pbsctl report``: ``gantt``, ``node-CPU``, ``process-CPU-PROCESS``, ..."""
    recording = json.dumps(simulation.recording)
    report = run_json(["report", "-", "--chart", chart], recording, pbsctl)
    return str(report["svg"])


def _names(simulation: Simulation) -> dict[int | None, str]:
    return {process.id: process.name or str(process.id) for process in simulation.processes}


def gantt(simulation: Simulation, axes: Any = None) -> Any:
    """Gantt chart: a row for each CPU, a colour for each process; returns the figure."""
    pyplot = need("matplotlib.pyplot", _INSTEAD)
    names = _names(simulation)
    colours = {process: f"C{at % 10}" for at, process in enumerate(names)}
    cpus = sorted({cpu["cpu"] for cpu in simulation.recording["cpus"]})
    if axes is None:
        _, axes = pyplot.subplots(figsize=(10, 1.5 + 0.8 * len(cpus)), layout="constrained")
    rows = stays(simulation)
    for process, name in names.items():
        own = [stay for stay in rows if stay["process"] == process]
        axes.barh(
            [cpus.index(stay["cpu"]) for stay in own],
            [(stay["end_ns"] - stay["begin_ns"]) / _NS_PER_MS for stay in own],
            left=[stay["begin_ns"] / _NS_PER_MS for stay in own],
            color=colours[process],
            edgecolor="white",
            linewidth=0.5,
            label=name,
        )
    for signal in simulation.signals():
        time_ms, row = signal["time_ns"] / _NS_PER_MS, cpus.index(signal["cpu"])
        axes.plot([time_ms], [row - 0.48], marker="v", color="black", markersize=5)
    axes.set_yticks(range(len(cpus)), [f"CPU {cpu}" for cpu in cpus])
    axes.invert_yaxis()
    axes.set_xlabel("time (ms)")
    axes.legend(title="process; triangles: signals")
    return axes.figure


def lateness_plot(
    simulation: Simulation, axes: Any = None, pbsctl: str | pathlib.Path | None = None
) -> Any:
    """Lateness of the processes and the node over time, with t2 dotted; returns the figure."""
    pyplot = need("matplotlib.pyplot", _INSTEAD)
    names = _names(simulation) | {None: "node"}
    if axes is None:
        _, axes = pyplot.subplots(figsize=(10, 4), layout="constrained")
    points: dict[tuple[int, int | None, str], list[tuple[float, float]]] = {}
    for row in lateness(simulation, pbsctl):
        key = (row["cpu"], row["process"], row["series"])
        points.setdefault(key, []).append((row["time_ns"] / _NS_PER_MS, row["insns"]))
    lines = list(dict.fromkeys((cpu, process) for cpu, process, _ in points))
    for (cpu, process, series), line in points.items():
        is_lateness = series == "lateness"
        axes.plot(
            [time_ms for time_ms, _ in line],
            [insns for _, insns in line],
            color="black" if process is None else f"C{lines.index((cpu, process)) % 10}",
            linestyle="-" if is_lateness else ":",
            linewidth=1.5 if is_lateness else 1,
            label=f"{names[process]}, CPU {cpu}" if is_lateness else None,
        )
    axes.axhline(0, color="grey", linewidth=0.5)
    axes.set_xlabel("time (ms)")
    axes.set_ylabel("lateness (instructions)")
    axes.legend(title="dotted: threshold t2")
    return axes.figure


def write_gantt(
    simulation: Simulation,
    file: str | pathlib.Path,
    pbsctl: str | pathlib.Path | None = None,
) -> None:
    """Write a Gantt chart: by matplotlib, or without it the SVG of ``pbsctl report``."""
    if has("matplotlib"):
        gantt(simulation).savefig(file)
    elif pathlib.Path(file).suffix == ".svg":
        pathlib.Path(file).write_text(svg(simulation, "gantt", pbsctl), encoding="utf-8")
    else:
        need("matplotlib", f"name a file that ends with .svg instead of {file}")
