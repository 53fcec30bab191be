// SPDX-License-Identifier: GPL-2.0
//! Tasks that ran beside each other, from the events of all CPUs. Slow-downs are learnt from them.
//!
//! `GRANT` events report which process has a CPU. A task that ends hands the CPU to the next task
//! of its process. In unallocated time, which no event reports, no process of the plan runs. It is
//! computed from the first `PLAN_INSTALLED` of a CPU on, as the kernel does (pbs.rst).
//!
//! A run may have a million grants. Therefore the events are folded as they arrive, into the
//! durations of each task beside each set of others. A grant may be reported late, by at most one
//! period of the windows; younger data wait for that time.
//!
//! If events are lost, all data that they may have been about become unknown.

use std::collections::{BTreeMap, HashMap};

use pbs_history::{Corun, Expected};
use pbs_interference::{samples, Beside, Key, Neighbour, Sample, Sharing, Span};
use pbs_job::Machine;
use pbs_plan::Config;
use pbs_uapi::{Event, EventKind, Tier, IDLE};

use crate::companions::sharing;

/// On more CPUs the same tasks hardly ever run beside each other twice, and nothing is
/// learnt from sets that never come again.
const MOST_CPUS: usize = 16;

/// A task beside more sets of others than this tells nothing of each.
const MOST_SETS: usize = 64;

/// Number of stretches that are collected before they are folded.
const FOLD_STRETCHES: usize = 1024;

/// Maximum number of periods that are folded at once: each period cuts every stretch that covers
/// its end.
const FOLD_PERIODS: u64 = 64;

/// Follows who has which CPU.
#[derive(Debug)]
pub(crate) struct Overlaps {
    sharing: Sharing,
    /// Instructions are counted by the clock, on CPUs that do not say anything else.
    by_clock: bool,
    period_ns: u64,
    execution_ns: u64,
    /// Each task that is followed, by the numbers of its process and of itself in plans.
    keys: BTreeMap<(u32, u32), Key>,
    lives: BTreeMap<(u32, u32), Life>,
    /// The tasks of the lives, by their numbers.
    names: HashMap<u64, (u32, u32)>,
    next_life: u64,
    cpus: BTreeMap<u32, Cpu>,
    /// Tasks that may have had a CPU before the first event.
    begun: Vec<u32>,
    /// Stretches that are over and not folded yet.
    stretches: Vec<Stretch>,
    /// Number of stretches at which they are folded.
    fold_at: usize,
    /// All before that is folded.
    folded_ns: u64,
    latest_ns: u64,
}

/// A task, from its first instruction on.
#[derive(Debug)]
struct Life {
    /// Unlike that of any other.
    number: u64,
    /// Instructions that the task retired; `None`: it has not ended.
    insns: Option<u64>,
    /// Whether the instructions were counted by the clock.
    by_clock: bool,
    /// Not all of it was seen, or it ran beside somebody unknown.
    torn: bool,
    beside: BTreeMap<Vec<Neighbour>, u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    /// Beginning of its windows.
    phase_ns: Option<u64>,
    /// A plan is in force.
    has_plan: bool,
    /// Since it has said how it counts.
    by_clock: Option<bool>,
    /// Present owner of the CPU, and the time since which it has the CPU.
    has: Option<(Who, u64)>,
    /// Time of the last event about the CPU.
    latest_ns: u64,
}

/// Owner of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    /// A task that is followed.
    Task(u32, u32),
    /// Somebody else, or nobody knows.
    Unknown,
}

/// For how long somebody had a CPU.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    who: Who,
    cpu: u32,
    phase_ns: Option<u64>,
    start_ns: u64,
    end_ns: u64,
}

impl Overlaps {
    /// On that machine, by plans with those windows; `None`: there nothing is learnt, as
    /// nobody runs beside others, or always beside others.
    pub(crate) fn new(machine: &Machine, config: &Config, by_clock: bool) -> Option<Self> {
        (2..=MOST_CPUS).contains(&machine.cpus().count()).then(|| Self {
            sharing: sharing(machine),
            by_clock,
            period_ns: config.window_period_ns.max(1),
            execution_ns: config
                .window_period_ns
                .max(1)
                .saturating_sub(config.window_unallocated_ns)
                .max(1),
            keys: BTreeMap::new(),
            lives: BTreeMap::new(),
            names: HashMap::new(),
            next_life: 0,
            cpus: BTreeMap::new(),
            begun: Vec::new(),
            stretches: Vec::new(),
            fold_at: FOLD_STRETCHES,
            folded_ns: 0,
            latest_ns: 0,
        })
    }

    /// A plan is in force on those CPUs, and nobody knows who has them.
    pub(crate) fn begun(&mut self, cpus: &[u32]) {
        self.begun.extend(cpus);
    }

    /// Follows processes from now on.
    pub(crate) fn follow(&mut self, expected: &[Expected]) {
        for process in expected {
            let keys = process.tasks.iter().map(|task| {
                let key = Key { fingerprint: process.fingerprint.0, task: task.task, variant: 0 };
                ((process.number, task.number), key)
            });
            self.keys.extend(keys);
        }
    }

    /// Hears of an event, in the order of their numbers; `is_lost`: others before it were
    /// lost, or it says so.
    pub(crate) fn event(&mut self, event: &Event, is_lost: bool) {
        if is_lost {
            self.lose();
        }
        let Some(kind) = EventKind::from_raw(event.kind) else {
            return;
        };
        if kind == EventKind::Overrun {
            return;
        }
        self.latest_ns = self.latest_ns.max(event.time_ns);
        for cpu in std::mem::take(&mut self.begun) {
            let cpu = self.cpus.entry(cpu).or_default();
            cpu.has_plan = true;
            cpu.has = Some((Who::Unknown, event.time_ns));
        }
        let cpu = self.cpus.entry(event.cpu).or_default();
        cpu.latest_ns = cpu.latest_ns.max(event.time_ns);
        let task = (event.process, event.task);
        match kind {
            EventKind::PlanInstalled => {
                cpu.has_plan = true;
                cpu.phase_ns.get_or_insert(event.time_ns);
            }
            EventKind::Grant if event.process == IDLE => self.has(event, None),
            EventKind::Grant => {
                let who = self.task(task, event.retired_insns);
                self.has(event, Some(who));
            }
            EventKind::TaskEnded => {
                let had = cpu.has.map(|(who, _)| who);
                let by_clock = cpu.by_clock.unwrap_or(self.by_clock);
                // One that was not seen to have the CPU has not been seen.
                let who = self.task(task, u64::from(had != Some(Who::Task(task.0, task.1))));
                if let Some(life) = self.lives.get_mut(&task) {
                    life.insns = Some(event.retired_insns);
                    life.by_clock = by_clock;
                }
                if had == Some(who) {
                    let next = self.next_of(task);
                    let next = next.map(|next| self.task(next, 0));
                    self.has(event, next);
                }
            }
            EventKind::ProcessEnded | EventKind::Ejected => {
                let of =
                    |who: Who| matches!(who, Who::Task(process, _) if process == event.process);
                if cpu.has.is_some_and(|(who, _)| of(who)) {
                    self.has(event, None);
                }
            }
            EventKind::PlanEnded => {
                cpu.has_plan = false;
                self.has(event, None);
            }
            EventKind::PlanDropped | EventKind::CpuGone => {
                cpu.has_plan = false;
                cpu.phase_ns = None;
                self.has(event, None);
            }
            // Instructions are now something else.
            EventKind::Tier => {
                cpu.by_clock = Some(event.value == Tier::Clock as u64);
                self.tear();
            }
            _ => {}
        }
        let settled_ns = self.latest_ns.saturating_sub(self.period_ns);
        let waits_ns = settled_ns.saturating_sub(self.folded_ns);
        let is_long = self.folded_ns > 0 && waits_ns > FOLD_PERIODS.saturating_mul(self.period_ns);
        if self.stretches.len() >= self.fold_at || is_long {
            self.fold(settled_ns);
            self.fold_at = FOLD_STRETCHES.max(2 * self.stretches.len());
        }
    }

    /// The processes with those numbers are over: the runs of their tasks that ended and
    /// of which all is known, each with the numbers of its process and its task in plans.
    pub(crate) fn finish(&mut self, numbers: &[u32]) -> Vec<((u32, u32), Corun)> {
        self.fold(self.latest_ns);
        let mut found = Vec::new();
        for &number in numbers {
            let all = (number, 0)..=(number, u32::MAX);
            let tasks: Vec<_> = self.keys.range(all).map(|(&task, &key)| (task, key)).collect();
            for (task, victim) in tasks {
                self.keys.remove(&task);
                let Some(life) = self.lives.remove(&task) else {
                    continue;
                };
                self.names.remove(&life.number);
                found.extend(life.corun(victim).map(|corun| (task, corun)));
            }
        }
        found
    }

    /// Returns the owner for a task. The life of the task begins now, unless it has begun;
    /// `seen_insns`: instructions that it has retired before.
    fn task(&mut self, task: (u32, u32), seen_insns: u64) -> Who {
        if !self.keys.contains_key(&task) {
            return Who::Unknown;
        }
        let (next, names) = (&mut self.next_life, &mut self.names);
        self.lives.entry(task).or_insert_with(|| {
            *next += 1;
            names.insert(*next, task);
            Life {
                number: *next,
                insns: None,
                by_clock: false,
                torn: seen_insns > 0,
                beside: BTreeMap::new(),
            }
        });
        Who::Task(task.0, task.1)
    }

    /// The task that comes behind it in its process.
    fn next_of(&self, (process, task): (u32, u32)) -> Option<(u32, u32)> {
        let behind = (process, task.checked_add(1)?)..=(process, u32::MAX);
        self.keys.range(behind).next().map(|(&next, _)| next)
    }

    /// From that event on somebody else has its CPU.
    fn has(&mut self, event: &Event, who: Option<Who>) {
        let cpu = self.cpus.entry(event.cpu).or_default();
        let at_ns = event.time_ns.max(self.folded_ns);
        if let Some((before, start_ns)) = cpu.has.take() {
            if start_ns < at_ns {
                self.stretches.push(Stretch {
                    who: before,
                    cpu: event.cpu,
                    phase_ns: cpu.phase_ns,
                    start_ns,
                    end_ns: at_ns,
                });
            }
        }
        cpu.has = who.map(|who| (who, at_ns));
    }

    /// Marks the owners of all CPUs as unknown until the next event about them. CPUs without an
    /// owner and without a plan remain idle.
    fn lose(&mut self) {
        self.tear();
        let known = |cpu: &Cpu| cpu.has_plan || cpu.has.is_some();
        let cpus = self.cpus.iter().filter(|(_, cpu)| known(cpu));
        let cpus: Vec<_> = cpus.map(|(&cpu, it)| (cpu, it.latest_ns)).collect();
        for (cpu, time_ns) in cpus {
            let event = Event { cpu, time_ns, ..Event::default() };
            self.has(&event, Some(Who::Unknown));
        }
    }

    /// Discards the data of all tasks that have not ended.
    fn tear(&mut self) {
        let open = self.lives.values_mut().filter(|life| life.insns.is_none());
        open.for_each(Life::tear);
    }

    /// Adds up who ran beside whom until then.
    fn fold(&mut self, until_ns: u64) {
        if self.folded_ns == 0 {
            let starts = self.stretches.iter().map(|stretch| stretch.start_ns);
            let open = self.cpus.values().filter_map(|cpu| cpu.has);
            let first_ns = starts.chain(open.map(|(_, start_ns)| start_ns)).min();
            self.folded_ns = first_ns.unwrap_or(until_ns);
        }
        while self.folded_ns < until_ns {
            let step_ns = self.period_ns.saturating_mul(FOLD_PERIODS);
            let end_ns = self.folded_ns.saturating_add(step_ns).min(until_ns);
            self.fold_step(end_ns);
            self.folded_ns = end_ns;
            let open = self.cpus.values().any(|cpu| cpu.has.is_some());
            if self.stretches.is_empty() && !open {
                self.folded_ns = until_ns;
            }
        }
    }

    fn fold_step(&mut self, end_ns: u64) {
        let open = self.cpus.iter_mut().filter_map(|(&cpu, it)| {
            let (who, start_ns) = it.has?;
            it.has = Some((who, start_ns.max(end_ns)));
            Some(Stretch { who, cpu, phase_ns: it.phase_ns, start_ns, end_ns })
        });
        let open: Vec<_> = open.collect();
        let mut spans = Vec::new();
        for stretch in self.stretches.iter().chain(&open) {
            self.cut(stretch, end_ns, &mut spans);
        }
        self.stretches.retain_mut(|stretch| {
            stretch.start_ns = stretch.start_ns.max(end_ns);
            stretch.start_ns < stretch.end_ns
        });
        let mut ran: Vec<_> = spans.iter().map(|span| span.run).collect();
        ran.sort_unstable();
        ran.dedup();
        let mut samples: HashMap<_, _> = samples(&spans, &self.sharing).into_iter().collect();
        for run in ran {
            let life = self.names.get(&run).and_then(|it| self.lives.get_mut(it));
            let Some(life) = life.filter(|life| !life.torn) else {
                continue;
            };
            match samples.remove(&run) {
                Some(sample) => life.add(sample),
                // It ran beside somebody unknown.
                None => life.tear(),
            }
        }
    }

    /// The parts of a stretch that are execution time and come before `until_ns`.
    fn cut(&self, stretch: &Stretch, until_ns: u64, into: &mut Vec<Span>) {
        let end_ns = stretch.end_ns.min(until_ns);
        let (run, key) = match stretch.who {
            Who::Unknown => (u64::MAX, None),
            Who::Task(process, task) => {
                let life = self.lives.get(&(process, task));
                let key = self.keys.get(&(process, task)).copied();
                (life.map_or(u64::MAX, |life| life.number), key)
            }
        };
        let mut part = |start_ns: u64, end_ns: u64| {
            if start_ns < end_ns {
                into.push(Span { run, key, cpu: stretch.cpu, start_ns, end_ns, insns: 0 });
            }
        };
        let phase_ns = stretch.phase_ns.filter(|_| self.execution_ns < self.period_ns);
        let Some(phase_ns) = phase_ns else {
            return part(stretch.start_ns, end_ns);
        };
        let passed_ns = stretch.start_ns.saturating_sub(phase_ns);
        let mut begins_ns = stretch.start_ns - passed_ns % self.period_ns;
        while begins_ns < end_ns {
            let stops_ns = begins_ns.saturating_add(self.execution_ns);
            part(stretch.start_ns.max(begins_ns), end_ns.min(stops_ns));
            begins_ns = begins_ns.saturating_add(self.period_ns);
        }
    }
}

impl Life {
    fn add(&mut self, sample: Sample) {
        for Beside { neighbours, duration_ns } in sample.beside {
            *self.beside.entry(neighbours).or_default() += duration_ns;
        }
        if self.beside.len() > MOST_SETS {
            self.tear();
        }
    }

    /// Discards the data of the task: they are incomplete.
    fn tear(&mut self) {
        self.torn = true;
        self.beside.clear();
    }

    /// `None`: not all of it is known.
    fn corun(self, victim: Key) -> Option<Corun> {
        let insns = self.insns.filter(|_| !self.torn && !self.beside.is_empty())?;
        Some(Corun { sample: Sample::new(victim, insns, self.beside), by_clock: self.by_clock })
    }
}

#[cfg(test)]
mod tests;
