// SPDX-License-Identifier: GPL-2.0
//! Co-scheduling over time: processes arrive, and each arrival decides (§4.3, figure 4.2).

use crate::baseline::not_co_scheduled;
use crate::check::{check, Fault};
use crate::cost::Cost;
use crate::determination::{necessary, Determination, Necessity};
use crate::fluid::{left_at, slowed};
use crate::mapping::{Mapping, Timeline};
use crate::model::{Platform, Workload};
use crate::objective::{accept, score, Objective, Reason, Verdict};
use crate::queues::{Entry, Queues, Slot, State};
use crate::schedule::{evaluations, schedule, schedule_slowed, Scheduler};
use crate::slowing::{Slowing, WithStarted};
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
        since_ns: 0,
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
    /// Current plan at the last arrival. Waiting tasks have the lengths that they have alone. Tasks
    /// that have started end when they have done alone what is left of them.
    plan: Timeline,
    /// Times of all tasks under the current plan, with slow-downs.
    real: Vec<Option<Slot>>,
    /// Time of the last arrival.
    since_ns: u64,
    variants: Vec<Option<usize>>,
    decisions: Vec<Decision>,
}

/// Tasks that count as started.
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
        let planned = &self.real;
        let taken = self.queues(now_ns, &submitted, Planned::All, planned);
        let by_itself = not_co_scheduled(workload, platform, &taken);
        let mut timeline = timing(workload, platform, &taken, &by_itself)?;
        self.keep_waits(&mut timeline, &taken);
        let as_found = self.queues(now_ns, &submitted, Planned::Running, planned);
        let waits = |&task: &usize| submitted[task] && as_found.waits(task);
        let waiting = (0..submitted.len()).filter(waits).count();
        let (determination, cost) = (&options.determination, &options.cost);
        let necessity = necessary(workload, platform, &as_found, process, determination, cost);
        self.assign(&by_itself);
        let mut decision =
            Decision { at_ns: now_ns, process, waiting, necessity, verdict: None, taken: false };
        if necessity.is_necessary() && waiting > 0 {
            let running = self.slowed(&self.started(), &Mapping::default());
            let mut running = self.queues(now_ns, &submitted, Planned::Running, &running.slots);
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
                timeline = match self.slowing {
                    None => {
                        let same = self.same_order(&running, &timeline);
                        timing(workload, platform, &running, &same)?
                    }
                    Some(_) => self.delayed(timeline, running.now_ns),
                };
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
                let found = schedule_slowed(
                    workload,
                    platform,
                    running,
                    scheduler,
                    *objective,
                    &self.since_arrival(slowing),
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

    fn since_arrival<'s>(&'s self, slowing: &'s dyn Slowing) -> WithStarted<'s> {
        WithStarted { slowing, variants: (&self.variants[..]).into(), since_ns: self.since_ns }
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
        slowed(self.workload, &self.since_arrival(slowing), &variant, timeline)
    }

    /// Moves the plan to an arrival: tasks that have ended get their real times, tasks that have
    /// started their real starts and the rest that is left of them. Waiting tasks begin when they
    /// would with slow-downs, which keeps their order on each thread.
    fn start(&mut self, now_ns: u64) {
        let Some(slowing) = self.slowing else {
            self.since_ns = now_ns;
            return;
        };
        let variant = |task: usize| self.variants[task];
        let since = self.since_arrival(slowing);
        let left = left_at(self.workload, &since, &variant, &self.plan, now_ns);
        self.since_ns = now_ns;
        for ((planned, real), left_ns) in self.plan.slots.iter_mut().zip(&self.real).zip(left) {
            let (Some(planned), Some(real)) = (planned, real) else { continue };
            let alone_ns = planned.end_ns - planned.start_ns;
            planned.start_ns = real.start_ns;
            planned.end_ns = if real.end_ns <= now_ns {
                real.end_ns
            } else if real.start_ns < now_ns {
                now_ns + left_ns.unwrap_or(0).max(1)
            } else {
                real.start_ns + alone_ns
            };
        }
    }

    /// Returns the plan of the tasks that have started.
    fn started(&self) -> Timeline {
        let is_started = |slot: &&Slot| slot.start_ns < self.since_ns;
        let slots = self.plan.slots.iter();
        let slots = slots.map(|slot| slot.as_ref().filter(is_started).cloned());
        Timeline { slots: slots.collect(), ..Timeline::default() }
    }

    /// Returns a plan whose waiting tasks begin no sooner than that, in the same places and order.
    fn delayed(&self, mut timeline: Timeline, from_ns: u64) -> Timeline {
        let mut waiting: Vec<(u64, usize, usize)> = Vec::new();
        for (place, &task) in self.order.iter().enumerate() {
            let slot = timeline.slots[task].as_ref();
            if let Some(slot) = slot.filter(|slot| slot.start_ns >= self.since_ns) {
                waiting.push((slot.start_ns, place, task));
            }
        }
        waiting.sort_unstable();
        // A nanosecond between two of them keeps their order where they share a thread.
        for ((start_ns, _, task), apart_ns) in waiting.into_iter().zip(0..) {
            if let Some(slot) = &mut timeline.slots[task] {
                let later_ns = (from_ns + apart_ns).saturating_sub(start_ns);
                slot.start_ns += later_ns;
                slot.end_ns += later_ns;
            }
        }
        timeline
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

    /// Returns the queues: the tasks that count as started are given, and the entries have these
    /// times.
    fn queues(
        &self,
        now_ns: u64,
        submitted: &[bool],
        started: Planned,
        times: &[Option<Slot>],
    ) -> Queues {
        let mut queues = Queues::idle(self.platform);
        queues.now_ns = now_ns;
        let is_started = |slot: &Slot| started == Planned::All || slot.start_ns < now_ns;
        for (task, (planned, time)) in self.plan.slots.iter().zip(times).enumerate() {
            queues.tasks.push(match planned {
                Some(slot) if is_started(slot) => State::Started(slot.clone()),
                _ if submitted[task] => State::Waiting,
                _ => State::Absent,
            });
            let Some(slot) = time.as_ref().filter(|slot| slot.end_ns > now_ns) else { continue };
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
