# SPDX-License-Identifier: GPL-2.0
"""Parts that several tests share."""

import os
import pathlib
import random
import sys

from sched_pbs import (
    Checkpoint,
    Command,
    Config,
    Core,
    Cpu,
    Device,
    Edge,
    Graph,
    GraphTask,
    Idle,
    Job,
    JobProcess,
    JobTask,
    Link,
    Machine,
    Node,
    Plan,
    Process,
    Resource,
    Sharing,
    Task,
    Variant,
    find_pbsctl,
)
from sched_pbs.config import DISPATCHES, IDLE_POLICIES, PREEMPTION_WAYS, THRESHOLDS
from sched_pbs.machine import LEVELS

TOP = pathlib.Path(__file__).resolve().parents[2]
SAMPLES = TOP / "samples"
EXAMPLES = TOP / "python" / "examples"
sys.path.insert(0, str(EXAMPLES))
# Tests and their children change to other directories.
os.environ["PBSCTL"] = find_pbsctl()


def late_plan() -> Plan:
    """Two processes on a CPU; the first task of the first one takes three times as long."""
    return Plan(
        [
            Process(1, [Task(50_000_000, real_insns=150_000_000), Task(10_000_000)], "far"),
            Process(2, [Task(20_000_000), Task(20_000_000)], buffer_insns=200_000_000),
        ],
        [Cpu(0, ["far", 2, Idle(30_000_000), "far", 2], rate_insns_per_ms=1_000_000)],
        plan_id=1,
    )


class Inputs:
    """Random plans, jobs, graphs and machines that pbsctl accepts."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def maybe(self, chance: float = 0.4) -> bool:
        return self.random.random() < chance

    def text(self) -> str:
        letters = "abcXYZ äß\"\\'#{}[]=,:€"
        return "n" + "".join(self.random.choices(letters, k=self.random.randrange(8)))

    def insns(self) -> int:
        return self.random.randrange(1, 2 ** self.random.randrange(1, 40))

    def config(self) -> Config:
        pick = self.random.choice
        config = Config()
        if self.maybe():
            config.sigma_t1_permille = self.random.randrange(1001, 1500)
        if self.maybe():
            config.thresholds = self.random.sample(THRESHOLDS, self.random.randrange(10))
        if self.maybe():
            config.idle_policy = pick(IDLE_POLICIES)
        if self.maybe():
            config.preemption_way = pick(PREEMPTION_WAYS)
        if self.maybe():
            config.dispatch = pick(DISPATCHES)
        if self.maybe():
            config.t1_spares_last_slot = self.maybe()
        if self.maybe():
            config.stress_gain_ns = self.random.randrange(2**20)
        return config

    def plan(self) -> Plan:
        processes: list[Process] = []
        slots: list[str | int | Idle] = []
        for id_ in self.random.sample(range(100), self.random.randrange(1, 5)):
            process = Process(id_, [])
            if self.maybe():
                process.name = f"{self.text()}{id_}"
            for _ in range(self.random.randrange(1, 5)):
                task = Task(self.insns())
                if self.maybe():
                    task.name = self.text()
                if self.maybe():
                    task.real_insns = self.insns()
                if self.maybe(0.2) and processes:
                    task.after = [f"{self.random.choice(processes).id}/0"]
                process.tasks.append(task)
                slots.append(process.label())
                if self.maybe(0.2):
                    slots.append(Idle(self.insns(), self.insns() if self.maybe() else None))
            if self.maybe():
                process.buffer_insns = self.insns()
            if self.maybe():
                process.deadline_ns = self.insns()
            if self.maybe():
                process.memory_bytes = self.insns()
            if self.maybe():
                process.attaches = "itself"
            elif self.maybe():
                process.commands = [Command([self.text(), "-x"]) for _ in process.tasks]
                process.commands[0].stdin = "/dev/null"
            processes.append(process)
        cpu = Cpu(self.random.randrange(4), slots)
        if self.maybe():
            cpu.rate_insns_per_ms = self.random.randrange(1, 2**32)
        plan = Plan(processes, [cpu], plan_id=self.random.randrange(2**40))
        if self.maybe():
            plan.config = self.config()
        return plan

    def job(self) -> Job:
        processes = []
        for id_ in self.random.sample(range(100), self.random.randrange(1, 5)):
            tasks = [JobTask(self.insns()) for _ in range(self.random.randrange(1, 5))]
            if self.maybe():
                tasks[0].name = f"{self.text()}{id_}"
            process = JobProcess(id_, self.random.randrange(1, 2**30), tasks)
            if self.maybe():
                process.name = f"{self.text()}{id_}"
            if self.maybe():
                process.rate_insns_per_s = self.random.randrange(1, 2**40)
            if self.maybe():
                process.attaches = "itself"
            if self.maybe():
                process.resources = {self.text(): self.random.randrange(1, 2**56)}
            processes.append(process)
        job = Job(self.text(), self.random.randrange(2**40, 2**50), processes)
        if self.maybe():
            job.start_ns = self.random.randrange(2**40)
        if self.maybe():
            job.priority = self.random.randrange(5)
        if self.maybe():
            job.value, job.penalty = self.random.randrange(9), self.random.randrange(9)
        if self.maybe():
            job.cpus = sorted(self.random.sample(range(64), 3))
        if self.maybe():
            job.checkpoint = Checkpoint("USR1", self.random.randrange(1, 2**40))
        job.best_effort = self.maybe()
        if self.maybe():
            job.resources = {"matlab": 1, self.text(): self.random.randrange(1, 2**32)}
        return job

    def graph(self) -> Graph:
        tasks: list[GraphTask] = []
        for number in range(self.random.randrange(1, 6)):
            variants = [Variant("cpu", threads=self.random.randrange(1, 9))]
            if self.maybe():
                variants.append(Variant("ocl", device="gpu", runtime_ns=self.insns()))
            if self.maybe():
                variants[0].insns = self.insns()
            task = GraphTask(f"{self.text()}{number}", variants)
            if tasks and self.maybe():
                task.after = [Edge(self.random.choice(tasks).name)]
                if self.maybe():
                    task.after[0].data_bytes = self.insns()
            if self.maybe():
                task.repeat = self.random.randrange(2, 5)
                task.chained = self.maybe()
            tasks.append(task)
        graph = Graph(self.text(), tasks)
        if self.maybe():
            graph.deadline_ns = self.random.randrange(1, 2**50)
        return graph

    def machine(self) -> Machine:
        nodes = []
        for number in range(self.random.randrange(1, 4)):
            cores = [Core(f"c{at}", cpu=4 * number + at) for at in range(4)]
            if self.maybe():
                cores[0].rate_insns_per_s = self.random.randrange(1, 2**40)
            rate = self.random.randrange(1, 2**40)
            nodes.append(Node(f"{self.text()}{number}", 2**30, cores, rate))
        machine = Machine(nodes)
        if self.maybe():
            machine.name = self.text()
        if len(nodes) > 1 and self.maybe():
            machine.links = [Link([nodes[0].name, nodes[1].name], self.insns())]
        if self.maybe():
            machine.resources = [
                Resource("matlab", self.random.randrange(1, 2**56)),
                Resource(f"x{self.text()}", 1, [nodes[0].name]),
            ]
        if self.maybe():
            machine.devices = [Device("gpu", ["ocl"], host_cpu=1)]
        if self.maybe():
            machine.sharing = [Sharing(self.random.choice(LEVELS), [0, 2])]
        if self.maybe():
            machine.demand_permille = self.random.randrange(1001)
        return machine
