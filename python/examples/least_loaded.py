#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A planner that gives each process to the CPU with the least work, behind all earlier ones.

pbsctl job explain job.toml --machine lab.toml --admission "command python3 least_loaded.py"
"""

from sched_pbs import Admission, AdmissionQuestion, Cpu, Plan

# Part of its deadline that a job may use: the rest is for other programs and for deviations.
USABLE = 0.85


class LeastLoaded(Admission):
    """Planner without a search: a job that does not fit behind the others is declined."""

    def admit(self, question: AdmissionQuestion) -> Plan | str:
        plan = question.plan or Plan()
        rates = {
            core.cpu: (core.rate_insns_per_s or 0) // 1000
            for node in question.machine.nodes
            for core in node.cores
            if core.cpu is not None
        }
        for number, rate in rates.items():
            if all(known.cpu != number for known in plan.cpus):
                plan.cpus.append(Cpu(number, [], rate_insns_per_ms=rate))
        load = {cpu.cpu: self.work_ms(plan, cpu, rates[cpu.cpu]) for cpu in plan.cpus}
        usable_ms = (question.job.deadline_ns - question.lead_ns) / 1e6 * USABLE
        for process in question.processes():
            cpu = min(plan.cpus, key=lambda cpu: load[cpu.cpu])
            load[cpu.cpu] += sum(task.planned_insns for task in process.tasks) / rates[cpu.cpu]
            if load[cpu.cpu] > usable_ms:
                return f"CPU {cpu.cpu} would need {load[cpu.cpu]:.0f} ms of {usable_ms:.0f}"
            plan.processes.append(process)
            cpu.slots.extend([process.id] * len(process.tasks))
        plan.cpus = [cpu for cpu in plan.cpus if cpu.slots]
        return plan

    def work_ms(self, plan: Plan, cpu: Cpu, rate_insns_per_ms: int) -> float:
        """Time of all tasks of a CPU."""
        names = {slot for slot in cpu.slots if isinstance(slot, int | str)}
        mine = [p for p in plan.processes if p.id in names or p.name in names]
        return sum(task.planned_insns for p in mine for task in p.tasks) / rate_insns_per_ms


if __name__ == "__main__":
    LeastLoaded().serve()
