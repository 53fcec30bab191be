// SPDX-License-Identifier: GPL-2.0
//! Co-scheduling over time: processes arrive, and each arrival decides (§4.3, figure 4.2).

use crate::baseline::not_co_scheduled;
use crate::check::{check, Fault};
use crate::cost::Cost;
use crate::determination::{necessary, Determination, Necessity};
use crate::model::{Platform, Workload};
use crate::objective::{accept, score, Objective, Reason, Verdict};
use crate::queues::{Entry, Queues, Slot, State, Where};
use crate::schedule::{evaluations, schedule, Scheduler};
use crate::timing::{timing, Mapping, Timeline};

/// How co-scheduling is done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// When.
    pub determination: Determination,
    /// By whom.
    pub scheduler: Scheduler,
    /// To what end.
    pub objective: Objective,
    /// What it costs.
    pub cost: Cost,
    /// Waiting tasks start only after the cost; else it only enters the determination.
    pub charge_cost: bool,
    /// Take nothing that is worse than going on as before (ours).
    pub reject_worse: bool,
    /// How many mappings the evolutionary scheduler and brute force try.
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

/// What happened at an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// When.
    pub at_ns: u64,
    /// Which process submitted its tasks.
    pub process: usize,
    /// How many tasks waited, its own included.
    pub waiting: usize,
    /// Whether to co-schedule.
    pub necessity: Necessity,
    /// What came of it, if so.
    pub verdict: Option<Verdict>,
    /// Everything waiting was mapped anew.
    pub taken: bool,
}

/// A run: what was decided and when everything ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// When and where each task ran.
    pub timeline: Timeline,
    /// By task, the variant it ran as.
    pub variants: Vec<Option<usize>>,
    /// What happened at the arrivals, in their order.
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
    let Simulation {
        slots,
        variants,
        decisions,
        ..
    } = simulation;
    Ok(Run {
        timeline: Timeline { slots },
        variants,
        decisions,
    })
}

struct Simulation<'a> {
    workload: &'a Workload,
    platform: &'a Platform,
    options: &'a Options,
    order: Vec<usize>,
    arrived: Vec<bool>,
    /// What is planned at the moment.
    slots: Vec<Option<Slot>>,
    variants: Vec<Option<usize>>,
    decisions: Vec<Decision>,
}

impl Simulation<'_> {
    fn arrive(&mut self, process: usize) -> Result<(), Fault> {
        let (workload, platform) = (self.workload, self.platform);
        let now_ns = workload.processes[process].arrival_ns;
        let submitted = self.submit(process);
        // The newcomer behind all that stands in the queues.
        let keep = |_: &Slot| true;
        let mut by_itself = self.queues(now_ns, &submitted, keep, keep);
        let newcomers = not_co_scheduled(workload, platform, &by_itself);
        let mut stay = timing(workload, platform, &by_itself, &newcomers)?;
        let started = |slot: &Slot| slot.start_ns < now_ns;
        by_itself = self.queues(now_ns, &submitted, started, keep);
        let waiting = submitted
            .iter()
            .zip(0..)
            .filter(|&(of, task)| *of && by_itself.waits(task));
        let waiting = waiting.count();
        let options = self.options;
        let necessity = necessary(
            workload,
            platform,
            &by_itself,
            process,
            &options.determination,
            &options.cost,
        );
        let variant = |mapping: &Mapping, task: usize| {
            mapping
                .choices
                .get(task)
                .copied()
                .flatten()
                .map(|choice| choice.variant)
        };
        for task in 0..self.variants.len() {
            self.variants[task] = variant(&newcomers, task).or(self.variants[task]);
        }
        let mut decision = Decision {
            at_ns: now_ns,
            process,
            waiting,
            necessity,
            verdict: None,
            taken: false,
        };
        if necessity.is_necessary() && waiting > 0 {
            let mut running = self.queues(now_ns, &submitted, started, started);
            if options.charge_cost {
                running.now_ns = now_ns.saturating_add(options.cost.ns(waiting));
            }
            let mut keep_going = evaluations(options.evaluations);
            let (scheduler, objective) = (&options.scheduler, options.objective);
            let mapping = schedule(
                workload,
                platform,
                &running,
                scheduler,
                objective,
                &mut keep_going,
            );
            let co_scheduled = timing(workload, platform, &running, &mapping)?;
            let mut verdict = accept(
                score(workload, &stay),
                score(workload, &co_scheduled),
                objective,
            );
            let mapped = mapping.choices.iter().flatten().count();
            if mapped < waiting {
                verdict.accepted = false;
                verdict.reason = Reason::Incomplete;
            }
            decision.verdict = Some(verdict);
            decision.taken = verdict.accepted || (!options.reject_worse && mapped == waiting);
            if decision.taken {
                for task in 0..self.variants.len() {
                    self.variants[task] = variant(&mapping, task).or(self.variants[task]);
                }
                stay = co_scheduled;
            } else if options.charge_cost {
                // They waited for the decision all the same.
                let mut order: Vec<(u64, usize, usize)> = Vec::new();
                for (place, &task) in self.order.iter().enumerate() {
                    if let (true, Some(slot)) = (running.waits(task), &stay.slots[task]) {
                        order.push((slot.start_ns, place, task));
                    }
                }
                order.sort_unstable();
                let in_order = order
                    .into_iter()
                    .filter_map(|(_, _, task)| Some((task, self.variants[task]?)));
                let same = Mapping::in_order(workload.tasks.len(), in_order);
                stay = timing(workload, platform, &running, &same)?;
            }
        }
        self.slots = stay.slots;
        self.decisions.push(decision);
        Ok(())
    }

    /// By task, whether it is submitted once this process has arrived, too.
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

    /// The queues with entries of those that are kept, and tasks that count as started.
    fn queues(
        &self,
        now_ns: u64,
        submitted: &[bool],
        started: impl Fn(&Slot) -> bool,
        kept: impl Fn(&Slot) -> bool,
    ) -> Queues {
        let mut queues = Queues::idle(self.platform);
        queues.now_ns = now_ns;
        for (task, slot) in self.slots.iter().enumerate() {
            queues.tasks.push(match slot {
                Some(slot) if started(slot) => State::Started(slot.clone()),
                _ if submitted[task] => State::Waiting,
                _ => State::Absent,
            });
            let Some(slot) = slot
                .as_ref()
                .filter(|slot| kept(slot) && slot.end_ns > now_ns)
            else {
                continue;
            };
            let entry = Entry {
                process: self.workload.tasks[task].process,
                in_execution: slot.start_ns < now_ns,
                runtime_ns: slot.end_ns - slot.start_ns,
                end_ns: slot.end_ns,
            };
            match &slot.place {
                Where::Threads(threads) => {
                    for &thread in threads {
                        queues.threads[thread as usize].push(entry);
                    }
                }
                &Where::Device { device, instance } => {
                    queues.devices[device][instance as usize].push(entry);
                }
            }
        }
        queues
    }
}
