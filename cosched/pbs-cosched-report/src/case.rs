// SPDX-License-Identifier: GPL-2.0
//! Subject of a decision: a workload on a node at a time.

use crate::lanes::Question;
use pbs_cosched::{
    check, not_co_scheduled, simulate_slowed, timing, Entry, Mapping, Options, Platform, Queues,
    Run, Slot, Slowing, State, Timeline, WithStarted, Workload,
};

use crate::{Names, Slowed, WithAndWithout};

/// Part of the mappings that are tried with slow-downs.
pub(crate) const SLOWED_PARTS: u64 = 4;

/// A workload on a node at a time. Until then nobody has co-scheduled: each process took what
/// is fastest for it by itself, and what has started by then goes on.
#[derive(Clone, Debug)]
pub struct Case<'a> {
    /// The processes and their tasks.
    pub workload: &'a Workload,
    /// The node.
    pub platform: &'a Platform,
    /// Names for answers.
    pub names: Names,
    /// Mapping of all processes without co-scheduling.
    pub without_mapping: Mapping,
    /// Timeline without co-scheduling.
    pub without: Timeline,
    /// Queues with the tasks that run at the time; all others have left them (§4.3).
    pub running: Queues,
    /// The queues as the last process to come finds them, with what waits of others.
    pub standing: Queues,
    /// The last process to come.
    pub newcomer: usize,
    /// Slow-downs between tasks, if they are known.
    pub slowed: Option<Slowed>,
}

impl<'a> Case<'a> {
    /// Builds the case of a question at a time.
    ///
    /// # Errors
    ///
    /// All faults of the workload, each with its remedy.
    pub fn new(question: &'a Question, at_ns: u64) -> Result<Self, Vec<String>> {
        let (workload, platform) = (&question.workload, &question.platform);
        let tell = |faults: Vec<pbs_cosched::Fault>| {
            let told = faults.iter().map(|fault| fault.tell(workload));
            told.collect::<Vec<_>>()
        };
        check(workload, platform).map_err(tell)?;
        let idle = Queues::idle(platform);
        let without_mapping = not_co_scheduled(workload, platform, &idle);
        let without = timing(workload, platform, &idle, &without_mapping);
        let without = without.map_err(|fault| tell(vec![fault]))?;
        let processes = workload.processes.iter().zip(0..);
        let newcomer = processes.max_by_key(|(process, index)| (process.arrival_ns, *index));
        let newcomer = newcomer.map_or(0, |(_, index)| index);
        let started = |slot: &Slot| slot.start_ns < at_ns;
        let queues = |kept: &dyn Fn(usize, &Slot) -> bool| {
            queues(workload, platform, &without, at_ns, &started, kept)
        };
        Ok(Self {
            workload,
            platform,
            names: Names::new(question),
            running: queues(&|_, slot| started(slot)),
            standing: queues(&|process, slot| process != newcomer || started(slot)),
            newcomer,
            slowed: None,
            without_mapping,
            without,
        })
    }

    /// A timeline of tasks of those variants as slow-downs make it; nothing where they are not
    /// known.
    pub(crate) fn slow(
        &self,
        timeline: &Timeline,
        variants: &dyn Fn(usize) -> Option<usize>,
    ) -> Option<Timeline> {
        let slowed = self.slowed.as_ref()?;
        Some(pbs_cosched::slowed(self.workload, slowed, variants, timeline))
    }

    /// Returns the timeline without co-scheduling, with slow-downs if they are known.
    pub(crate) fn slowed_without(&self) -> Timeline {
        let alone = |task: usize| self.variant(&self.without_mapping, task);
        self.slow(&self.without, &alone).unwrap_or_else(|| self.without.clone())
    }

    /// Simulates the arrivals of all processes, with slow-downs if they are known.
    ///
    /// # Errors
    ///
    /// All faults of the workload, each with its remedy.
    pub(crate) fn simulate(&self, options: &Options) -> Result<Run, Vec<String>> {
        let slowing = self.slowed.as_ref().map(|slowed| slowed as &dyn Slowing);
        // A mapping takes longer to score with slow-downs, and each arrival has a search.
        let parts = if slowing.is_some() { SLOWED_PARTS } else { 1 };
        let options = Options { evaluations: options.evaluations / parts, ..*options };
        let run = simulate_slowed(self.workload, self.platform, &options, slowing);
        run.map_err(|faults| faults.iter().map(|fault| fault.tell(self.workload)).collect())
    }

    /// Returns the slow-downs for a search, if they are known.
    pub(crate) fn slowing(&self) -> Option<WithStarted<'_>> {
        let slowing = self.slowed.as_ref()?;
        let tasks = 0..self.workload.tasks.len();
        let variants = tasks.map(|task| self.variant(&self.without_mapping, task));
        Some(WithStarted { slowing, variants: variants.collect(), since_ns: 0 })
    }

    /// Returns the measures with slow-downs of not co-scheduling and of a timeline, and both
    /// timelines; `variants` is the variant of each task of the timeline.
    pub(crate) fn slow_both(
        &self,
        timeline: &Timeline,
        variants: &dyn Fn(usize) -> Option<usize>,
    ) -> Option<(WithAndWithout, Timeline, Timeline)> {
        let alone = |task: usize| self.variant(&self.without_mapping, task);
        let without = self.slow(&self.without, &alone)?;
        let with = self.slow(timeline, variants)?;
        let (workload, platform) = (self.workload, self.platform);
        let both = WithAndWithout::new(workload, platform, &self.names, &without, &with);
        Some((both, without, with))
    }

    /// Returns the number of waiting tasks.
    pub fn waiting(&self) -> usize {
        let tasks = 0..self.workload.tasks.len();
        tasks.filter(|&task| self.running.waits(task)).count()
    }

    /// The variant of a task by a mapping, or what it has started as.
    pub(crate) fn variant(&self, mapping: &Mapping, task: usize) -> Option<usize> {
        let of = |mapping: &Mapping| mapping.choices.get(task).copied().flatten();
        let choice = of(mapping).or_else(|| match self.running.slot(task) {
            Some(_) => of(&self.without_mapping),
            None => None,
        });
        choice.map(|choice| choice.variant)
    }
}

/// The queues of a timeline, with entries of those that are kept.
fn queues(
    workload: &Workload,
    platform: &Platform,
    timeline: &Timeline,
    at_ns: u64,
    started: &dyn Fn(&Slot) -> bool,
    kept: &dyn Fn(usize, &Slot) -> bool,
) -> Queues {
    let mut queues = Queues::idle(platform);
    queues.now_ns = at_ns;
    for (task, slot) in workload.tasks.iter().zip(&timeline.slots) {
        queues.tasks.push(match slot {
            Some(slot) if started(slot) => State::Started(slot.clone()),
            _ => State::Waiting,
        });
        let is_there = |slot: &&Slot| kept(task.process, slot) && slot.end_ns > at_ns;
        let Some(slot) = slot.as_ref().filter(is_there) else {
            continue;
        };
        let entry = Entry {
            process: task.process,
            in_execution: started(slot),
            runtime_ns: slot.end_ns - slot.start_ns,
            end_ns: slot.end_ns,
        };
        queues.push(&slot.place, entry);
    }
    queues
}
