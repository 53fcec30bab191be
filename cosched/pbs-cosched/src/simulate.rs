// SPDX-License-Identifier: GPL-2.0
//! Co-scheduling over time: processes arrive, and each arrival decides (§4.3, figure 4.2).

use crate::baseline::not_co_scheduled;
use crate::check::{check, Fault};
use crate::cost::Cost;
use crate::determination::{necessary, Determination, Necessity};
use crate::fluid::slowed;
use crate::mapping::{Mapping, Timeline};
use crate::model::{Platform, Workload};
use crate::objective::{accept, score, Objective, Reason, Verdict};
use crate::queues::{Entry, Queues, Slot, State};
use crate::schedule::{evaluations, schedule, schedule_slowed, Scheduler};
use crate::slowing::{OnThreads, Slowing};
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
    /// Time and place of each task's execution, with slow-downs if they are known.
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
    simulate_slowed(workload, platform, options, None)
}

/// Runs a workload like [`simulate`], in which tasks slow each other if slow-downs are known (ours).
/// All decisions but those of the random schedulers regard them, and so do the comparisons of a new
/// mapping with going on as planned.
///
/// # Errors
/// All that [`check`] finds.
pub fn simulate_slowed(
    workload: &Workload,
    platform: &Platform,
    options: &Options,
    slowing: Option<&dyn Slowing>,
) -> Result<Run, Vec<Fault>> {
    check(workload, platform)?;
    let mut simulation = Simulation {
        workload,
        platform,
        options,
        slowing,
        order: workload.topological(),
        arrived: vec![false; workload.processes.len()],
        plan: Timeline { slots: vec![None; workload.tasks.len()], ..Timeline::default() },
        real: vec![None; workload.tasks.len()],
        variants: vec![None; workload.tasks.len()],
        decisions: Vec::new(),
    };
    let mut arrivals: Vec<usize> = (0..workload.processes.len()).collect();
    arrivals.sort_by_key(|&process| workload.processes[process].arrival_ns);
    for process in arrivals {
        simulation.arrive(process).map_err(|fault| vec![fault])?;
    }
    let Simulation { real, variants, decisions, .. } = simulation;
    Ok(Run { timeline: Timeline { slots: real, ..Timeline::default() }, variants, decisions })
}

struct Simulation<'a> {
    workload: &'a Workload,
    platform: &'a Platform,
    options: &'a Options,
    slowing: Option<&'a dyn Slowing>,
    order: Vec<usize>,
    arrived: Vec<bool>,
    /// Current plan. Tasks have the lengths that they have alone; those that have started have their
    /// real starts.
    plan: Timeline,
    /// Times of all tasks under the current plan, with slow-downs.
    real: Vec<Option<Slot>>,
    variants: Vec<Option<usize>>,
    decisions: Vec<Decision>,
}

/// Slow-downs in which tasks that started before a decision have the variants that they started as.
#[derive(Debug)]
struct Started<'a> {
    slowing: &'a dyn Slowing,
    variants: &'a [Option<usize>],
}

impl Started<'_> {
    fn with_variant<'t>(&self, of: OnThreads<'t>) -> OnThreads<'t> {
        let own = || self.variants.get(of.task).copied().flatten();
        OnThreads { variant: of.variant.or_else(own), ..of }
    }
}

impl Slowing for Started<'_> {
    fn slowdown(&self, task: OnThreads<'_>, beside: &[OnThreads<'_>]) -> f64 {
        let beside: Vec<OnThreads<'_>> =
            beside.iter().map(|other| self.with_variant(*other)).collect();
        self.slowing.slowdown(self.with_variant(task), &beside)
    }

    fn only_slows(&self) -> bool {
        self.slowing.only_slows()
    }
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
        self.start(now_ns);
        // The newcomer as if alone, behind all that stands in the queues.
        let taken = self.queues(now_ns, &submitted, Planned::All, Planned::All);
        let by_itself = not_co_scheduled(workload, platform, &taken);
        let mut timeline = timing(workload, platform, &taken, &by_itself)?;
        self.keep_waits(&mut timeline, &taken);
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
        self.real = self.slowed(&timeline, &Mapping::default()).slots;
        self.plan = timeline;
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
        let mapping = match self.slowing {
            None => schedule(workload, platform, running, scheduler, *objective, &mut keep_going),
            Some(slowing) => {
                let slowing = Started { slowing, variants: &self.variants };
                let found = schedule_slowed(
                    workload,
                    platform,
                    running,
                    scheduler,
                    *objective,
                    &slowing,
                    &mut keep_going,
                );
                found.0
            }
        };
        let timeline = timing(workload, platform, running, &mapping)?;
        let real = |timeline, mapping| score(workload, &self.slowed(timeline, mapping));
        let scores = (real(planned, &Mapping::default()), real(&timeline, &mapping));
        let mut verdict = accept(scores.0, scores.1, *objective);
        if mapping.choices.iter().flatten().count() < waiting {
            verdict.accepted = false;
            verdict.reason = Reason::Incomplete;
        }
        Ok((mapping, timeline, verdict))
    }

    /// Returns a timeline with slow-downs. Tasks have the variants of a mapping, or those that they
    /// were assigned before.
    fn slowed(&self, timeline: &Timeline, mapping: &Mapping) -> Timeline {
        let Some(slowing) = self.slowing else {
            return timeline.clone();
        };
        let variant = |task: usize| {
            let choice = mapping.choices.get(task).copied().flatten();
            choice.map(|choice| choice.variant).or(self.variants[task])
        };
        slowed(self.workload, slowing, &variant, timeline)
    }

    /// Moves the tasks that have started by now to their real starts.
    fn start(&mut self, now_ns: u64) {
        for (planned, real) in self.plan.slots.iter_mut().zip(&self.real) {
            let (Some(planned), Some(real)) = (planned, real) else { continue };
            if real.start_ns < now_ns {
                planned.end_ns = real.start_ns + (planned.end_ns - planned.start_ns);
                planned.start_ns = real.start_ns;
            }
        }
    }

    /// Adds to a timeline the waits of tasks that were planned before.
    fn keep_waits(&self, timeline: &mut Timeline, planned: &Queues) {
        for task in (0..timeline.waits.len()).filter(|&task| planned.slot(task).is_some()) {
            timeline.waits[task] = self.plan.awaited(task);
        }
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
        let order = order.iter().map(|&(.., task)| task);
        let with_variant = order.clone().filter_map(|task| Some((task, self.variants[task]?)));
        let mut mapping = Mapping::in_order(self.workload.tasks.len(), with_variant);
        let mut is_before: Vec<bool> = planned.slots.iter().map(Option::is_some).collect();
        order.clone().for_each(|task| is_before[task] = false);
        for task in order {
            if let Some(choice) = &mut mapping.choices[task] {
                choice.hold.wait = planned.awaited(task).filter(|&awaited| is_before[awaited]);
                is_before[task] = true;
            }
        }
        mapping
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
        for (task, (planned, real)) in self.plan.slots.iter().zip(&self.real).enumerate() {
            queues.tasks.push(match (planned, real) {
                (Some(slot), Some(real)) if is(real, started) => State::Started(slot.clone()),
                _ if submitted[task] => State::Waiting,
                _ => State::Absent,
            });
            let slot = real.as_ref().filter(|slot| is(slot, entries) && slot.end_ns > now_ns);
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
