// SPDX-License-Identifier: GPL-2.0
//! Spans from the kernel's events.
//!
//! Who has a CPU is told by `GRANT`, and which task that is by the next event of
//! its process: a task may end and the next one begin under the same grant. In
//! unallocated time, of which no event tells, nobody of the plan runs; it is
//! reckoned from the first `PLAN_INSTALLED` of the CPU on, as the kernel does.
//!
//! What was lost ([`Watch::event`] sees gaps in the numbers) makes all unknown that
//! it may have been about.

use std::collections::{BTreeMap, HashMap};

use pbs_uapi::{Event, EventKind, IDLE, NO_TASK};

use crate::overlap::samples;
use crate::{Key, Sample, Sharing, Span};

/// Execution time and unallocated time, as the plan's configuration has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// `window_period_ns`
    pub period_ns: u64,
    /// `window_unallocated_ns`, at the end of each period.
    pub unallocated_ns: u64,
}

/// A run of a task, as it was watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// The number of its process in the plan.
    pub process: u32,
    /// Its number there.
    pub task: u32,
    /// Beside whom it ran, and what it retired.
    pub sample: Sample,
}

/// Follows who has which CPU of a node.
///
/// Give it all events of all CPUs, in the order of their numbers. It keeps all it
/// was told, so it is for a run of a plan, not for a life.
#[derive(Clone, Debug)]
pub struct Watch {
    window: Window,
    next_seq: Option<u64>,
    cpus: BTreeMap<u32, Cpu>,
    stretches: Vec<Stretch>,
    /// By process: the stretches of which the task is not known yet.
    unsaid: HashMap<u32, Vec<usize>>,
    tasks: BTreeMap<(u32, u32), Task>,
    latest_ns: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    /// When its windows began.
    phase_ns: Option<u64>,
    /// The stretch that goes on.
    open: Option<usize>,
    /// What was told last.
    now_ns: u64,
}

/// A process, or somebody unknown, has a CPU.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    cpu: u32,
    process: Option<u32>,
    task: Option<u32>,
    start_ns: u64,
    /// `None` as long as it goes on.
    end_ns: Option<u64>,
    phase_ns: Option<u64>,
}

/// What is known of a task.
#[derive(Clone, Copy, Debug, Default)]
struct Task {
    /// What it retired in all, once it has ended.
    insns: Option<u64>,
    /// Not all of its life was seen.
    torn: bool,
}

impl Watch {
    /// Of plans with these windows.
    pub fn new(window: Window) -> Self {
        Self {
            window,
            next_seq: None,
            cpus: BTreeMap::new(),
            stretches: Vec::new(),
            unsaid: HashMap::new(),
            tasks: BTreeMap::new(),
            latest_ns: 0,
        }
    }

    /// Takes note of an event; of one that was there before it does not.
    pub fn event(&mut self, event: &Event) {
        let expected = self.next_seq.unwrap_or(event.seq);
        if event.seq < expected {
            return;
        }
        let kind = EventKind::from_raw(event.kind);
        if kind == Some(EventKind::Overrun) {
            self.next_seq = Some(event.seq.saturating_add(event.value));
            self.lose();
            return;
        }
        self.next_seq = Some(event.seq.saturating_add(1));
        if event.seq > expected {
            self.lose();
        }
        self.latest_ns = self.latest_ns.max(event.time_ns);
        let cpu = self.cpus.entry(event.cpu).or_default();
        cpu.now_ns = cpu.now_ns.max(event.time_ns);
        self.say_task(event);
        match kind {
            Some(EventKind::PlanInstalled) => {
                let cpu = self.cpus.entry(event.cpu).or_default();
                cpu.phase_ns.get_or_insert(event.time_ns);
            }
            Some(EventKind::Grant) => {
                self.close(event.cpu, event.time_ns);
                if event.process != IDLE {
                    let task = (event.task != NO_TASK).then_some(event.task);
                    self.open(event, Some(event.process), task);
                }
            }
            Some(EventKind::TaskEnded) => {
                let task = self.tasks.entry((event.process, event.task)).or_default();
                task.insns = Some(event.retired_insns);
                if self.has(event) {
                    self.close(event.cpu, event.time_ns);
                    // Its next task has the same grant.
                    self.open(event, Some(event.process), None);
                }
            }
            Some(EventKind::ProcessEnded | EventKind::Ejected) => {
                if self.has(event) {
                    self.close(event.cpu, event.time_ns);
                }
                // There was no next task any more.
                for place in self.unsaid.remove(&event.process).unwrap_or_default() {
                    let stretch = &mut self.stretches[place];
                    stretch.end_ns = Some(stretch.start_ns);
                }
                // The exit of its thread has ended a task, but not at its end.
                if kind == Some(EventKind::ProcessEnded) && event.value > 0 {
                    self.tear_last(event.process);
                }
            }
            Some(EventKind::PlanEnded) => self.close(event.cpu, event.time_ns),
            Some(EventKind::PlanDropped | EventKind::CpuGone) => {
                self.close(event.cpu, event.time_ns);
                let cpu = self.cpus.entry(event.cpu).or_default();
                cpu.phase_ns = None;
            }
            _ => {}
        }
    }

    /// All runs that ended and of which all is known: who `key` does not know is
    /// unknown, as a victim and beside others.
    pub fn samples(
        &self,
        key: &dyn Fn(u32, u32) -> Option<Key>,
        sharing: &Sharing,
    ) -> Vec<Watched> {
        let names: Vec<_> = self.tasks.keys().copied().collect();
        let mut spans = Vec::new();
        let mut is_first = vec![true; names.len()];
        for stretch in &self.stretches {
            let name = stretch.process.zip(stretch.task);
            let run = name.and_then(|name| names.binary_search(&name).ok());
            let mut span = Span {
                // Of those who are unknown each is another.
                run: run.map_or(u64::MAX, |run| run as u64),
                key: name.and_then(|(process, task)| key(process, task)),
                cpu: stretch.cpu,
                start_ns: stretch.start_ns,
                end_ns: stretch.end_ns.unwrap_or(self.latest_ns),
                insns: 0,
            };
            if let Some(first) = run.and_then(|run| is_first.get_mut(run)) {
                let whole = self.tasks.get(&name.unwrap_or_default());
                if std::mem::take(first) {
                    span.insns = whole.and_then(|task| task.insns).unwrap_or(0);
                }
            }
            self.window.cut(span, stretch.phase_ns, &mut spans);
        }
        let samples = samples(&spans, sharing).into_iter();
        samples
            .filter_map(|(run, sample)| {
                let &(process, task) = names.get(usize::try_from(run).ok()?)?;
                let known = self.tasks.get(&(process, task))?;
                (known.insns.is_some() && !known.torn).then_some(Watched {
                    process,
                    task,
                    sample,
                })
            })
            .collect()
    }

    /// Every event of a process names its current task.
    fn say_task(&mut self, event: &Event) {
        if event.process == IDLE || event.task == NO_TASK {
            return;
        }
        let name = (event.process, event.task);
        let is_new = !self.tasks.contains_key(&name);
        let task = self.tasks.entry(name).or_default();
        let unsaid = self.unsaid.remove(&event.process).unwrap_or_default();
        // It has retired something that was not seen.
        task.torn |= is_new && unsaid.is_empty() && event.retired_insns > 0;
        for place in unsaid {
            self.stretches[place].task = Some(event.task);
        }
    }

    /// Whether the process of the event has its CPU.
    fn has(&self, event: &Event) -> bool {
        let open = self.cpus.get(&event.cpu).and_then(|cpu| cpu.open);
        open.is_some_and(|open| self.stretches[open].process == Some(event.process))
    }

    fn close(&mut self, cpu: u32, now_ns: u64) {
        let cpu = self.cpus.entry(cpu).or_default();
        if let Some(open) = cpu.open.take() {
            let stretch = &mut self.stretches[open];
            stretch.end_ns = Some(now_ns.max(stretch.start_ns));
        }
    }

    fn open(&mut self, event: &Event, process: Option<u32>, task: Option<u32>) {
        let place = self.stretches.len();
        let cpu = self.cpus.entry(event.cpu).or_default();
        cpu.open = Some(place);
        self.stretches.push(Stretch {
            cpu: event.cpu,
            process,
            task,
            start_ns: event.time_ns,
            end_ns: None,
            phase_ns: cpu.phase_ns,
        });
        if let (Some(process), None) = (process, task) {
            self.unsaid.entry(process).or_default().push(place);
        }
    }

    /// Events were lost: nobody knows who has which CPU, until that is told again,
    /// nor what became of those that had not ended.
    fn lose(&mut self) {
        for task in self.tasks.values_mut().filter(|task| task.insns.is_none()) {
            task.torn = true;
        }
        for place in std::mem::take(&mut self.unsaid).into_values().flatten() {
            self.stretches[place].process = None;
        }
        let cpus: Vec<_> = self.cpus.keys().copied().collect();
        for number in cpus {
            let now_ns = self.cpus.get(&number).map_or(0, |cpu| cpu.now_ns);
            self.close(number, now_ns);
            let event = Event {
                cpu: number,
                time_ns: now_ns,
                ..Event::default()
            };
            self.open(&event, None, None);
        }
    }

    /// The task of the process that ended last did not come to its end.
    fn tear_last(&mut self, process: u32) {
        let tasks = self.tasks.range_mut((process, 0)..=(process, u32::MAX));
        let ended = tasks.filter(|(_, task)| task.insns.is_some());
        if let Some((_, task)) = ended.last() {
            task.torn = true;
        }
    }
}

impl Window {
    /// The parts of the span that are execution time.
    fn cut(self, span: Span, phase_ns: Option<u64>, into: &mut Vec<Span>) {
        let unallocated_ns = self.unallocated_ns.min(self.period_ns);
        let (Some(phase_ns), true) = (phase_ns, unallocated_ns > 0) else {
            into.push(span);
            return;
        };
        let execution_ns = self.period_ns - unallocated_ns;
        let mut insns = span.insns;
        let mut period = span.start_ns.saturating_sub(phase_ns) / self.period_ns;
        loop {
            let begins_ns = phase_ns.saturating_add(period.saturating_mul(self.period_ns));
            let part = Span {
                start_ns: span.start_ns.max(begins_ns),
                end_ns: span.end_ns.min(begins_ns.saturating_add(execution_ns)),
                insns: std::mem::take(&mut insns),
                ..span
            };
            // The first has the count, even if it is of no length.
            if part.start_ns < part.end_ns || part.insns > 0 {
                into.push(part);
            }
            period += 1;
            if begins_ns.saturating_add(self.period_ns) >= span.end_ns {
                return;
            }
        }
    }
}
