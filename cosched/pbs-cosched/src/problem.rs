// SPDX-License-Identifier: GPL-2.0
//! Scheduling problem, laid out for schedulers that try many mappings.
//!
//! Only waiting tasks remain, with new numbers ("jobs").  Started tasks are reduced to the times at
//! which their data and devices are available.

use crate::check::fits;
use crate::fluid::slowed_with_work;
use crate::mapping::{Hold, Mapping, Timeline};
use crate::model::{ExecutionTarget, Platform, Workload};
use crate::objective::{score, Objective, Score};
use crate::queues::{memory, Queues, Slot, Where};
use crate::resources::Data;
use crate::slowing::Slowing;
use crate::state::{Held, State};

/// A variant that fits the platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FittingVariant {
    /// Index among the task's variants.
    pub(crate) variant: usize,
    pub(crate) place: ExecutionTarget,
    pub(crate) runtime_ns: u64,
}

/// A waiting task.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) task: usize,
    pub(crate) process: usize,
    pub(crate) released_ns: u64,
    /// Jobs it waits for, and how long their data travel.
    pub(crate) after: Vec<(usize, u64)>,
    /// Data of started tasks.
    pub(crate) inputs: Vec<Data>,
    /// Jobs that wait for it.
    pub(crate) before: Vec<usize>,
    pub(crate) ways: Vec<FittingVariant>,
}

/// Decisions on all jobs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decisions<'a> {
    /// The jobs as they enter the queues.
    pub(crate) order: &'a [usize],
    /// Way of each job.
    pub(crate) ways: &'a [usize],
    /// Restraint of each job; none where the list is shorter.  A wait for a task that is not
    /// before in the order does not count.
    pub(crate) holds: &'a [Hold],
}

impl<'a> Decisions<'a> {
    /// Decisions in which no job is held back.
    pub(crate) fn free(order: &'a [usize], ways: &'a [usize]) -> Self {
        Self { order, ways, holds: &[] }
    }

    fn hold(&self, job: usize) -> Hold {
        self.holds.get(job).copied().unwrap_or_default()
    }
}

/// Decisions on all jobs, by value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnDecisions {
    pub(crate) order: Vec<usize>,
    pub(crate) ways: Vec<usize>,
    pub(crate) holds: Vec<Hold>,
}

impl OwnDecisions {
    pub(crate) fn of(&self) -> Decisions<'_> {
        Decisions { order: &self.order, ways: &self.ways, holds: &self.holds }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Problem<'a> {
    pub(crate) jobs: Vec<Job>,
    /// The jobs as they are submitted, each behind those it waits for.
    pub(crate) submitted: Vec<usize>,
    /// Number of tasks of the workload.
    tasks: usize,
    processes: Vec<Owner>,
    first_arrival_ns: u64,
    started: State,
    workload: &'a Workload,
    queues: &'a Queues,
    /// Job of each waiting task.
    number: Vec<Option<usize>>,
    slowing: Option<&'a dyn Slowing>,
}

#[derive(Clone, Debug)]
struct Owner {
    arrival_ns: u64,
    deadline_ns: u64,
    /// Whether the process has a task that started or waits.
    present: bool,
    /// End of the process's started tasks.
    started_end_ns: u64,
}

impl<'a> Problem<'a> {
    pub(crate) fn new(workload: &'a Workload, platform: &Platform, queues: &'a Queues) -> Self {
        let mut processes: Vec<Owner> = workload
            .processes
            .iter()
            .map(|of| Owner {
                arrival_ns: of.arrival_ns,
                deadline_ns: of.deadline_ns.unwrap_or(u64::MAX),
                present: false,
                started_end_ns: 0,
            })
            .collect();
        for (task, of) in workload.tasks.iter().enumerate() {
            let Some(owner) = processes.get_mut(of.process) else {
                continue;
            };
            let slot = queues.slot(task);
            owner.present |= slot.is_some() || queues.waits(task);
            owner.started_end_ns = owner.started_end_ns.max(slot.map_or(0, |slot| slot.end_ns));
        }
        let mut number = vec![None; workload.tasks.len()];
        let waiting: Vec<usize> =
            (0..workload.tasks.len()).filter(|&task| queues.waits(task)).collect();
        for (job, &task) in waiting.iter().enumerate() {
            number[task] = Some(job);
        }
        let mut jobs: Vec<Job> = Vec::with_capacity(waiting.len());
        for &task in &waiting {
            let of = &workload.tasks[task];
            let arrival_ns = processes.get(of.process).map_or(0, |owner| owner.arrival_ns);
            let mut job = Job {
                task,
                process: of.process,
                released_ns: queues.now_ns.max(arrival_ns),
                after: Vec::new(),
                inputs: Vec::new(),
                before: Vec::new(),
                ways: Vec::new(),
            };
            for edge in &of.after {
                if let Some(slot) = queues.slot(edge.task) {
                    job.inputs.push(Data {
                        memory: memory(&slot.place),
                        end_ns: slot.end_ns,
                        transfer_ns: edge.transfer_ns,
                    });
                } else if let Some(&Some(job_before)) = number.get(edge.task) {
                    job.after.push((job_before, edge.transfer_ns));
                }
            }
            for (variant, way) in of.variants.iter().enumerate() {
                if fits(platform, way.place) {
                    let &crate::Variant { place, runtime_ns, .. } = way;
                    job.ways.push(FittingVariant { variant, place, runtime_ns });
                }
            }
            jobs.push(job);
        }
        for job in 0..jobs.len() {
            for at in 0..jobs[job].after.len() {
                let before = jobs[job].after[at].0;
                jobs[before].before.push(job);
            }
        }
        let submitted =
            workload.topological().into_iter().filter_map(|task| number[task]).collect();
        let present = processes.iter().filter(|of| of.present);
        let first_arrival_ns = present.map(|of| of.arrival_ns).min().unwrap_or(0);
        let started = State::new(platform, queues, jobs.len());
        Self {
            jobs,
            submitted,
            tasks: workload.tasks.len(),
            processes,
            first_arrival_ns,
            started,
            workload,
            queues,
            number,
            slowing: None,
        }
    }

    /// The problem with slow-downs.
    pub(crate) fn with(self, slowing: Option<&'a dyn Slowing>) -> Self {
        Self { slowing, ..self }
    }

    pub(crate) fn slowing(&self) -> Option<&'a dyn Slowing> {
        self.slowing
    }

    /// Tasks that run on threads of the CPU at the time of the decision.
    pub(crate) fn on_threads(&self) -> impl Iterator<Item = usize> + '_ {
        let runs = |task: &usize| {
            self.queues.slot(*task).is_some_and(|slot| {
                slot.end_ns > self.queues.now_ns && matches!(slot.place, Where::Threads(_))
            })
        };
        (0..self.tasks).filter(runs)
    }

    /// Returns the number of tasks of the workload.
    pub(crate) fn tasks(&self) -> usize {
        self.tasks
    }

    /// Returns the number of threads of the CPU.
    pub(crate) fn threads(&self) -> u32 {
        self.started.threads.len() as u32
    }

    /// Returns a restraint as times.
    pub(crate) fn held(&self, state: &State, hold: Hold) -> Held {
        let not_before_ns = hold.wait.and_then(|task| match self.number.get(task)? {
            Some(job) if state.is_placed(*job) => Some(state.placed[*job].end_ns),
            Some(_) => None,
            None => self.queues.slot(task).map(|slot| slot.end_ns),
        });
        Held { skip: hold.skip as usize, not_before_ns: not_before_ns.unwrap_or(0) }
    }

    /// The queues before any job has entered them.
    pub(crate) fn start(&self) -> State {
        self.started.clone()
    }

    pub(crate) fn restart(&self, state: &mut State) {
        state.clone_from(&self.started);
    }

    /// Whether every job can run somewhere and no cycle keeps one waiting.
    pub(crate) fn solvable(&self) -> bool {
        self.submitted.len() == self.jobs.len() && self.jobs.iter().all(|job| !job.ways.is_empty())
    }

    /// Places the jobs in the order in which they enter the queues.
    fn run(&self, state: &mut State, decisions: Decisions<'_>) {
        self.restart(state);
        for &job in decisions.order {
            let of = &self.jobs[job];
            let held = self.held(state, decisions.hold(job));
            state.place(of, job, &of.ways[decisions.ways[job]], held);
        }
    }

    /// Returns the times of decisions with slow-downs, if these are known.
    pub(crate) fn slowed_timeline(&self, state: &mut State, decisions: Decisions<'_>) -> Timeline {
        self.restart(state);
        let mut timeline = Timeline {
            slots: (0..self.tasks).map(|task| self.queues.slot(task).cloned()).collect(),
            waits: vec![None; self.tasks],
            transfers: Vec::new(),
        };
        for &job in decisions.order {
            let (of, hold) = (&self.jobs[job], decisions.hold(job));
            let held = self.held(state, hold);
            let placed = state.place(of, job, &of.ways[decisions.ways[job]], held);
            let place = match placed.memory {
                Some((device, instance)) => Where::Device { device, instance },
                None => Where::Threads(state.taken.clone()),
            };
            timeline.transfers.extend_from_slice(&state.carried);
            let is_before = |&task: &usize| timeline.slots[task].is_some();
            timeline.waits[of.task] =
                hold.wait.filter(is_before).filter(|_| placed.memory.is_none());
            let (start_ns, end_ns) = (placed.start_ns, placed.end_ns);
            timeline.slots[of.task] = Some(Slot { start_ns, end_ns, place });
        }
        let Some(slowing) = self.slowing else {
            return timeline;
        };
        let variant = |task: usize| {
            let job = self.number[task]?;
            Some(self.jobs[job].ways[decisions.ways[job]].variant)
        };
        let (timeline, pairs) = slowed_with_work(self.workload, slowing, &variant, &timeline);
        state.pairs = pairs;
        timeline
    }

    /// Returns the score of a state in which all jobs are placed; `ways` is indexed by job.
    pub(crate) fn score(&self, state: &State, ways: &[usize], ends_ns: &mut Vec<u64>) -> Score {
        ends_ns.clear();
        ends_ns.extend(self.processes.iter().map(|of| of.started_end_ns));
        let mut runtimes_ns = 0_u64;
        for (number, job) in self.jobs.iter().enumerate() {
            if let Some(end_ns) = ends_ns.get_mut(job.process) {
                *end_ns = (*end_ns).max(state.placed[number].end_ns);
            }
            let way = job.ways.get(ways[number]);
            runtimes_ns = runtimes_ns.saturating_add(way.map_or(0, |way| way.runtime_ns));
        }
        Score { runtimes_ns, ..self.score_of_ends(ends_ns) }
    }

    /// The score of processes that end then, without runtimes.
    pub(crate) fn score_of_ends(&self, ends_ns: &[u64]) -> Score {
        let mut score = Score::default();
        for (of, &end_ns) in self.processes.iter().zip(ends_ns).filter(|(of, _)| of.present) {
            score.misses += u64::from(end_ns > of.deadline_ns);
            score.makespan_ns = score.makespan_ns.max(self.makespan_ns(end_ns));
            let turnaround_ns = end_ns.saturating_sub(of.arrival_ns);
            score.turnarounds_ns = score.turnarounds_ns.saturating_add(turnaround_ns);
        }
        score
    }

    /// The makespan if everything ends then.
    pub(crate) fn makespan_ns(&self, end_ns: u64) -> u64 {
        end_ns.saturating_sub(self.first_arrival_ns)
    }

    /// Returns the ends of the processes' started tasks.
    pub(crate) fn started_ends_ns(&self) -> impl Iterator<Item = u64> + '_ {
        self.processes.iter().map(|of| of.started_end_ns)
    }

    pub(crate) fn mapping(&self, decisions: Decisions<'_>) -> Mapping {
        let with_variant = decisions.order.iter().map(|&job| {
            let of = &self.jobs[job];
            (of.task, of.ways[decisions.ways[job]].variant)
        });
        let mut mapping = Mapping::in_order(self.tasks, with_variant);
        self.hold_back(&mut mapping, decisions);
        mapping
    }

    /// Notes the restraints of jobs that run on threads in their mapping.
    pub(crate) fn hold_back(&self, mapping: &mut Mapping, decisions: Decisions<'_>) {
        let mut is_before = vec![false; self.tasks];
        for &job in decisions.order {
            let (task, mut hold) = (self.jobs[job].task, decisions.hold(job));
            let way = self.jobs[job].ways[decisions.ways[job]];
            if matches!(way.place, ExecutionTarget::Device(_)) {
                hold = Hold::default();
            }
            let counts = |&of: &usize| is_before[of] || self.queues.slot(of).is_some();
            hold.wait = hold.wait.filter(counts);
            is_before[task] = true;
            if let Some(choice) = &mut mapping.choices[task] {
                choice.hold = hold;
            }
        }
    }

    /// Order, ways and restraints of a mapping, if it maps every job and each to what fits.
    pub(crate) fn decisions(&self, mapping: &Mapping) -> Option<OwnDecisions> {
        let mut own = OwnDecisions::default();
        for job in &self.jobs {
            let choice = (*mapping.choices.get(job.task)?)?;
            own.ways.push(job.ways.iter().position(|way| way.variant == choice.variant)?);
            own.holds.push(choice.hold);
        }
        let order = mapping.order();
        own.order = order.into_iter().filter_map(|task| self.number[task]).collect();
        (own.order.len() == own.ways.len()).then_some(own)
    }

    pub(crate) fn key_of(
        &self,
        state: &mut State,
        ends_ns: &mut Vec<u64>,
        decisions: Decisions<'_>,
        objective: Objective,
    ) -> [u64; 3] {
        if self.slowing.is_some() {
            let timeline = self.slowed_timeline(state, decisions);
            return score(self.workload, &timeline).key(objective);
        }
        self.run(state, decisions);
        self.score(state, decisions.ways, ends_ns).key(objective)
    }
}
