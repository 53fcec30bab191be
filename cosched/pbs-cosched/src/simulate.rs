// SPDX-License-Identifier: GPL-2.0
//! Co-scheduling over time: processes arrive, and each arrival decides (§4.3, figure 4.2).

use crate::baseline::not_co_scheduled;
use crate::check::{check, Fault};
use crate::cost::Cost;
use crate::determination::{necessary, Determination, Necessity};
use crate::mapping::{Mapping, Timeline};
use crate::model::{Platform, Workload};
use crate::objective::{accept, score, Objective, Reason, Verdict};
use crate::queues::{Entry, Queues, Slot, State};
use crate::schedule::{evaluations, schedule, Scheduler};
use crate::timing::timing;

/// Options of co-scheduling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Determination of the times to co-schedule.
    pub determination: Determination,
    /// Scheduler that decides the mapping.
    pub scheduler: Scheduler,
    /// Objective of the schedule.
    pub objective: Objective,
    /// Cost of co-scheduling.
    pub cost: Cost,
    /// Waiting tasks start only after the cost; else it only enters the determination.
    pub charge_cost: bool,
    /// Take nothing that is worse than going on as before (ours).
    pub reject_worse: bool,
    /// Number of mappings that the evolutionary scheduler and brute force try.
    pub evaluations: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            determination: Determination::default(),
            scheduler: Scheduler::default(),
            objective: Objective::default(),
            cost: Cost::default(),
            charge_cost: false,
            reject_worse: true,
            evaluations: 5_000,
        }
    }
}

/// Decision at an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Time of the arrival.
    pub at_ns: u64,
    /// Process that submitted its tasks.
    pub process: usize,
    /// Number of waiting tasks, those of the process included.
    pub waiting: usize,
    /// Whether to co-schedule.
    pub necessity: Necessity,
    /// Verdict on the schedule, if one was computed.
    pub verdict: Option<Verdict>,
    /// Everything waiting was mapped anew.
    pub taken: bool,
}

/// A run: what was decided and when everything ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Time and place of each task's execution.
    pub timeline: Timeline,
    /// Executed variant of each task.
    pub variants: Vec<Option<usize>>,
    /// Decisions at the arrivals, in their order.
    pub decisions: Vec<Decision>,
}

/// Runs a workload: tasks that have started keep what they run on, all others are mapped anew
/// where the determination says so, and a process that comes otherwise takes what is fastest
/// for it by itself.  At the same instant arrivals come before starts.
///
/// A task is submitted with its process, or with the last of those it waits for.
///
/// # Errors
/// All that [`check`] finds.
pub fn simulate(
    workload: &Workload,
    platform: &Platform,
    options: &Options,
) -> Result<Run, Vec<Fault>> {
    check(workload, platform)?;
    let mut simulation = Simulation {
        workload,
        platform,
        options,
        order: workload.topological(),
        arrived: vec![false; workload.processes.len()],
        slots: vec![None; workload.tasks.len()],
        variants: vec![None; workload.tasks.len()],
        decisions: Vec::new(),
    };
    let mut arrivals: Vec<usize> = (0..workload.processes.len()).collect();
    arrivals.sort_by_key(|&process| workload.processes[process].arrival_ns);
    for process in arrivals {
        simulation.arrive(process).map_err(|fault| vec![fault])?;
    }
    let Simulation { slots, variants, decisions, .. } = simulation;
    Ok(Run { timeline: Timeline { slots, ..Timeline::default() }, variants, decisions })
}

struct Simulation<'a> {
    workload: &'a Workload,
    platform: &'a Platform,
    options: &'a Options,
    order: Vec<usize>,
    arrived: Vec<bool>,
    /// Current plan.
    slots: Vec<Option<Slot>>,
    variants: Vec<Option<usize>>,
    decisions: Vec<Decision>,
}

/// Tasks that count as started, or whose entries are kept in the queues.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Planned {
    /// All planned tasks.
    All,
    /// Planned tasks whose start has passed.
    Running,
}

impl Simulation<'_> {
    fn arrive(&mut self, process: usize) -> Result<(), Fault> {
        let (workload, platform, options) = (self.workload, self.platform, self.options);
        let now_ns = workload.processes[process].arrival_ns;
        let submitted = self.submit(process);
        // The newcomer as if alone, behind all that stands in the queues.
        let taken = self.queues(now_ns, &submitted, Planned::All, Planned::All);
        let by_itself = not_co_scheduled(workload, platform, &taken);
        let mut timeline = timing(workload, platform, &taken, &by_itself)?;
        let as_found = self.queues(now_ns, &submitted, Planned::Running, Planned::All);
        let waits = |&task: &usize| submitted[task] && as_found.waits(task);
        let waiting = (0..submitted.len()).filter(waits).count();
        let (determination, cost) = (&options.determination, &options.cost);
        let necessity = necessary(workload, platform, &as_found, process, determination, cost);
        self.assign(&by_itself);
        let mut decision =
            Decision { at_ns: now_ns, process, waiting, necessity, verdict: None, taken: false };
        if necessity.is_necessary() && waiting > 0 {
            let mut running = self.queues(now_ns, &submitted, Planned::Running, Planned::Running);
            if options.charge_cost {
                running.now_ns = now_ns.saturating_add(cost.ns(waiting));
            }
            let (mapping, co_scheduled, verdict) =
                self.co_schedule(&running, waiting, &timeline)?;
            decision.verdict = Some(verdict);
            let complete = verdict.reason != Reason::Incomplete;
            decision.taken = verdict.accepted || (!options.reject_worse && complete);
            if decision.taken {
                self.assign(&mapping);
                timeline = co_scheduled;
            } else if options.charge_cost {
                // They waited for the decision all the same.
                let same = self.same_order(&running, &timeline);
                timeline = timing(workload, platform, &running, &same)?;
            }
        }
        self.slots = timeline.slots;
        self.decisions.push(decision);
        Ok(())
    }

    /// Maps all that waits anew, and compares it with going on as planned.
    fn co_schedule(
        &self,
        running: &Queues,
        waiting: usize,
        planned: &Timeline,
    ) -> Result<(Mapping, Timeline, Verdict), Fault> {
        let (workload, platform) = (self.workload, self.platform);
        let Options { scheduler, objective, evaluations: most, .. } = self.options;
        let mut keep_going = evaluations(*most);
        let mapping = schedule(workload, platform, running, scheduler, *objective, &mut keep_going);
        let timeline = timing(workload, platform, running, &mapping)?;
        let scores = (score(workload, planned), score(workload, &timeline));
        let mut verdict = accept(scores.0, scores.1, *objective);
        if mapping.choices.iter().flatten().count() < waiting {
            verdict.accepted = false;
            verdict.reason = Reason::Incomplete;
        }
        Ok((mapping, timeline, verdict))
    }

    /// Notes the variants of a mapping.
    fn assign(&mut self, mapping: &Mapping) {
        for (variant, choice) in self.variants.iter_mut().zip(&mapping.choices) {
            *variant = choice.map(|choice| choice.variant).or(*variant);
        }
    }

    /// Returns the waiting tasks with their planned variants, in the order of their planned starts.
    fn same_order(&self, running: &Queues, planned: &Timeline) -> Mapping {
        let mut order: Vec<(u64, usize, usize)> = Vec::new();
        for (place, &task) in self.order.iter().enumerate() {
            if let (true, Some(slot)) = (running.waits(task), &planned.slots[task]) {
                order.push((slot.start_ns, place, task));
            }
        }
        order.sort_unstable();
        let order = order.into_iter().map(|(.., task)| task);
        let with_variant = order.filter_map(|task| Some((task, self.variants[task]?)));
        Mapping::in_order(self.workload.tasks.len(), with_variant)
    }

    /// Returns for each task whether it is submitted once this process has arrived, too.
    fn submit(&mut self, process: usize) -> Vec<bool> {
        self.arrived[process] = true;
        let mut submitted = vec![false; self.workload.tasks.len()];
        for &task in &self.order {
            let of = &self.workload.tasks[task];
            let after = of.after.iter().all(|edge| submitted[edge.task]);
            submitted[task] = after && self.arrived[of.process];
        }
        submitted
    }

    /// The queues: which tasks count as started, and whose entries are in them.
    fn queues(
        &self,
        now_ns: u64,
        submitted: &[bool],
        started: Planned,
        entries: Planned,
    ) -> Queues {
        let mut queues = Queues::idle(self.platform);
        queues.now_ns = now_ns;
        let is = |slot: &Slot, of: Planned| of == Planned::All || slot.start_ns < now_ns;
        for (task, slot) in self.slots.iter().enumerate() {
            queues.tasks.push(match slot {
                Some(slot) if is(slot, started) => State::Started(slot.clone()),
                _ if submitted[task] => State::Waiting,
                _ => State::Absent,
            });
            let slot = slot.as_ref().filter(|slot| is(slot, entries) && slot.end_ns > now_ns);
            let Some(slot) = slot else { continue };
            let entry = Entry {
                process: self.workload.tasks[task].process,
                in_execution: slot.start_ns < now_ns,
                runtime_ns: slot.end_ns - slot.start_ns,
                end_ns: slot.end_ns,
            };
            queues.push(&slot.place, entry);
        }
        queues
    }
}
