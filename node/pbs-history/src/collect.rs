// SPDX-License-Identifier: GPL-2.0
//! From the kernel's events to what is recorded of a run.

use std::collections::HashMap;

use pbs_uapi::{Event, EventKind};

use crate::{Fingerprint, Outcome, ProcessRun, TaskRun};

/// A process of the run, as it stands in the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Number of the process in the plan. No other process may have this number as long as the run
    /// lasts.
    pub number: u32,
    /// Number of the process in the job.
    pub process: u32,
    /// Readable name.
    pub name: Option<String>,
    /// Fingerprint of the program that it executes.
    pub fingerprint: Fingerprint,
    /// In the order of execution.
    pub tasks: Vec<ExpectedTask>,
}

/// A task of the run, as it stands in the first plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedTask {
    /// Number of the task in the plan.
    pub number: u32,
    /// Number of the task in the job.
    pub task: u32,
    /// Readable name.
    pub name: Option<String>,
    /// Planned length in the first plan: a later plan does not improve the prediction in
    /// retrospect.
    pub planned_insns: u64,
}

/// Follows a run by the kernel's events.
///
/// Give it every event, in order, or say that others were not of the run; those that do
/// not concern it are passed over, and those that came before are, too, so that they may
/// be read again.
#[derive(Clone, Debug)]
pub struct Collector {
    processes: Vec<Watched>,
    /// Indices of the processes by their number in the plan.
    positions: HashMap<u32, usize>,
    next_seq: u64,
    events_lost: u64,
}

/// A process and what is known of it.
#[derive(Clone, Debug)]
struct Watched {
    run: ProcessRun,
    /// Places of its tasks by number in the plan.
    positions: HashMap<u32, usize>,
    attached: bool,
    end: End,
    /// The place of the task that ended last.
    last_ended: Option<usize>,
}

/// Way in which its threads left the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    NotYet,
    Ejected,
    /// With so many tasks of the plan not ended.
    Ended(u64),
}

impl Collector {
    /// Starts to follow a run whose first event has the number `first_seq` or a later one.
    pub fn new(first_seq: u64, expected: Vec<Expected>) -> Self {
        let processes: Vec<_> = expected.iter().map(Watched::new).collect();
        let numbers = expected.iter().map(|process| process.number);
        Self {
            positions: numbers.zip(0..).collect(),
            processes,
            next_seq: first_seq,
            events_lost: 0,
        }
    }

    /// Goes on where another collector was, which had given `figures`
    /// ([`Collector::figures`]) before the event `next_seq`.
    pub fn resume(next_seq: u64, expected: Vec<Expected>, figures: &[ProcessRun]) -> Self {
        let mut collector = Self::new(next_seq, expected);
        for watched in &mut collector.processes {
            let mut before = figures.iter();
            if let Some(before) = before.find(|p| p.process == watched.run.process) {
                watched.restore(before);
            }
        }
        collector
    }

    /// None of the events before that number that were not given is of the run.
    pub fn pass_over(&mut self, next_seq: u64) {
        self.next_seq = self.next_seq.max(next_seq);
    }

    /// Takes note of an event.
    pub fn event(&mut self, event: &Event) {
        if event.seq < self.next_seq {
            return;
        }
        let kind = EventKind::from_raw(event.kind);
        // Numbers have no gaps but those that an overrun tells.
        let gap = event.seq - self.next_seq;
        self.events_lost = self.events_lost.saturating_add(gap);
        if kind == Some(EventKind::Overrun) {
            self.events_lost = self.events_lost.saturating_add(event.value);
            self.next_seq = event.seq.saturating_add(event.value);
            return;
        }
        self.next_seq = event.seq.saturating_add(1);
        if let Some(&position) = self.positions.get(&event.process) {
            self.processes[position].event(kind, event);
        }
    }

    /// Notes that a program of a process did not succeed, which events do not
    /// tell. Its task, or without one the last that ended, is no example of what
    /// the task takes. The numbers are those of the plan.
    pub fn failed(&mut self, process: u32, task: Option<u32>) {
        let Some(&position) = self.positions.get(&process) else {
            return;
        };
        let watched = &mut self.processes[position];
        let place = match task {
            Some(task) => watched.positions.get(&task).copied(),
            None => watched.last_ended,
        };
        if let Some(place) = place {
            watched.run.tasks[place].outcome = Outcome::Killed;
        }
    }

    /// Notes for how long a program of a process had a CPU, which events do not
    /// tell either. The number is that of the plan.
    pub fn ran(&mut self, process: u32, ran_ns: u64) {
        if let Some(&position) = self.positions.get(&process) {
            let run = &mut self.processes[position].run;
            run.ran_ns = run.ran_ns.saturating_add(ran_ns);
        }
    }

    /// The first event that was not noted yet.
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Events that could not be read any more. What they told of is
    /// [`Outcome::Unknown`].
    pub fn events_lost(&self) -> u64 {
        self.events_lost
    }

    /// Returns the figures of the processes so far, ascending by their number in the job. Parts
    /// that have not ended yet are [`Outcome::Unknown`].
    pub fn figures(&self) -> Vec<ProcessRun> {
        let lost = self.events_lost > 0;
        let mut figures: Vec<_> = self.processes.iter().map(|w| w.figures(lost)).collect();
        figures.sort_by_key(|process| process.process);
        for process in &mut figures {
            process.tasks.sort_by_key(|task| task.task);
        }
        figures
    }

    /// Returns the outcome of a run with these figures: the worst of its processes. Ejected is the
    /// worst, followed by killed, absent, unknown and complete.
    pub fn outcome(figures: &[ProcessRun]) -> Outcome {
        of_all(figures.iter().map(|process| process.outcome))
    }
}

impl Watched {
    fn new(expected: &Expected) -> Self {
        let tasks = expected.tasks.iter().map(|task| TaskRun {
            task: task.task,
            name: task.name.clone(),
            planned_insns: task.planned_insns,
            retired_insns: 0,
            peak_memory_bytes: 0,
            preemptions: 0,
            // Until it ends.
            outcome: Outcome::Unknown,
        });
        let numbers = expected.tasks.iter().map(|task| task.number);
        Self {
            positions: numbers.zip(0..).collect(),
            run: ProcessRun {
                process: expected.process,
                name: expected.name.clone(),
                fingerprint: expected.fingerprint,
                outcome: Outcome::Unknown,
                ran_ns: 0,
                tasks: tasks.collect(),
            },
            attached: false,
            end: End::NotYet,
            last_ended: None,
        }
    }

    fn restore(&mut self, before: &ProcessRun) {
        for (place, task) in self.run.tasks.iter_mut().enumerate() {
            let mut known = before.tasks.iter();
            let Some(known) = known.find(|known| known.task == task.task) else {
                continue;
            };
            task.retired_insns = known.retired_insns;
            task.peak_memory_bytes = known.peak_memory_bytes;
            task.preemptions = known.preemptions;
            if matches!(known.outcome, Outcome::Complete | Outcome::Killed) {
                task.outcome = known.outcome;
                self.last_ended = Some(place);
            }
        }
        self.run.ran_ns = before.ran_ns;
        self.attached = before.outcome != Outcome::Absent;
        self.end = match before.outcome {
            Outcome::Ejected => End::Ejected,
            _ => End::NotYet,
        };
    }

    fn event(&mut self, kind: Option<EventKind>, event: &Event) {
        let place = self.positions.get(&event.task).copied();
        if let Some(place) = place {
            let task = &mut self.run.tasks[place];
            // Every event of a task tells how far it has come; a plan that deals
            // with its preemptions sets their count back.
            task.retired_insns = task.retired_insns.max(event.retired_insns);
            task.peak_memory_bytes = task.peak_memory_bytes.max(event.peak_rss_bytes);
            task.preemptions = task.preemptions.max(event.preemptions);
        }
        match kind {
            Some(EventKind::Attached) => {
                self.attached = true;
                self.end = End::NotYet;
            }
            Some(EventKind::TaskEnded) => {
                self.attached = true;
                if let Some(place) = place {
                    let task = &mut self.run.tasks[place];
                    if task.outcome == Outcome::Unknown {
                        task.outcome = Outcome::Complete;
                    }
                    self.last_ended = Some(place);
                }
            }
            Some(EventKind::ProcessEnded) => {
                self.end = End::Ended(event.value);
                // The exit of the thread has ended a task, but not at its end.
                if let Some(place) = self.last_ended.filter(|_| event.value > 0) {
                    self.run.tasks[place].outcome = Outcome::Killed;
                }
            }
            Some(EventKind::Ejected) => self.end = End::Ejected,
            _ => {}
        }
    }

    fn figures(&self, lost: bool) -> ProcessRun {
        let mut run = self.run.clone();
        let open = run.tasks.iter_mut().filter(|t| t.outcome == Outcome::Unknown);
        let open: Vec<_> = open.collect();
        let of_open = match self.end {
            // What the kernel counts must be those that are not known to have
            // ended, or the events of some ends are lost.
            End::Ended(count) if count == open.len() as u64 => Outcome::Killed,
            End::Ended(_) => Outcome::Unknown,
            End::Ejected if !lost => Outcome::Ejected,
            End::NotYet if !lost && !self.attached => Outcome::Absent,
            _ => Outcome::Unknown,
        };
        for task in open {
            task.outcome = of_open;
        }
        run.outcome = of_all(run.tasks.iter().map(|task| task.outcome));
        run
    }
}

/// The worst of all, as [`Collector::outcome`] has it.
fn of_all(outcomes: impl Iterator<Item = Outcome>) -> Outcome {
    let worse = |outcome: &Outcome| match outcome {
        Outcome::Complete => 0,
        Outcome::Unknown => 1,
        Outcome::Absent => 2,
        Outcome::Killed => 3,
        Outcome::Ejected => 4,
        Outcome::Declined | Outcome::Cancelled | Outcome::Failed => 5,
    };
    outcomes.max_by_key(worse).unwrap_or(Outcome::Complete)
}
