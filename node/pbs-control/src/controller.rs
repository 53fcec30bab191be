// SPDX-License-Identifier: GPL-2.0
//! The loop itself.

mod amounts;
mod answering;
mod awaited;
mod beside;
mod best_effort;
mod cut;
mod hand_over;
mod room;
mod slowed;
mod turns;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use hand_over::HandedOver;
use pbs_job::{Job, Machine};
use pbs_plan::{Config, Dispatch, Plan};
use pbs_planner::plan_building::{class_plans, Entry, ProcessIds, Settings};
use pbs_planner::{
    admit_beside_within, earliest_deadline_beside_within, Balancing, Capacity, Declined,
    DemandTest, NotArranged, Planned, Progress, Replan, Request, RunId, Store, Turn, Validation,
};
use pbs_text::Problem;
use pbs_uapi::{Cause, Event, EventKind, ProcessState, Wait, IDLE};

use crate::track::{next_with_insns, Track};
use crate::{End, Measured, Outlook, Pace};

pub use beside::{Beside, Companions};
use best_effort::{others, set_aside};
use cut::Cuts;
use room::Room;
pub use slowed::{SlowedEnds, Stretches};

/// Options of planning and replanning.
#[derive(Clone, Debug)]
pub struct Options {
    /// Checks of a job before it is planned.
    pub validation: Validation,
    /// Options of the search for a plan at admission.
    pub planning: pbs_planner::Options,
    /// Options of the search for a plan after a prediction failure, for which the node waits.
    pub replanning: pbs_planner::Options,
    /// The configuration of the plans; `None`: the node's own, which is taken to
    /// be the default.
    pub config: Option<Config>,
    /// Whether slots stay where they are planned as long as a job has to wait for its start:
    /// slots that float would let its programs begin before.
    pub keeps_starts: bool,
    /// Division of a node's memory among its cores.
    pub balancing: Balancing,
    /// Expectations about late processes.
    pub outlook: Outlook,
    /// Minimum time between plans.
    pub pace: Pace,
    /// From the call that makes a plan until it is in force: the RESCHEDULE_TIME
    /// (Leppert 2021, 3.3.6) of plans with a configuration. 0: theirs remains.
    pub lead_ns: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            validation: Validation::default(),
            planning: pbs_planner::Options::default(),
            replanning: Replan::at(0).options,
            config: None,
            keeps_starts: false,
            balancing: Balancing::Dynamic,
            outlook: Outlook::default(),
            pace: Pace::default(),
            lead_ns: 0,
        }
    }
}

/// Plans the runs of jobs on one node, and follows them.
#[derive(Clone, Debug)]
pub struct Controller {
    store: Store,
    options: Options,
    ids: ProcessIds,
    runs: BTreeMap<RunId, ActiveRun>,
    /// The core that each CPU of Linux is.
    cores: BTreeMap<u32, usize>,
    plan_id: u64,
    next_run: u64,
    /// The number of the event after the last one that was heard of.
    next_seq: u64,
    /// Something else than a prediction failure on a CPU wants a plan: events were lost, a process
    /// has gone or grown, or the node refused the last plan.
    failed: bool,
    /// CPUs with prediction failures that no plan has dealt with.
    failed_on: BTreeSet<u32>,
    /// Processes that were cancelled since that was last asked for.
    cancelled: Vec<Cancelled>,
    /// Processes that outgrew their memory since that was last asked for.
    grown: Vec<Grown>,
    /// The node uses too much memory, and whose that is was not asked yet.
    asks_memory: bool,
    /// Cores where the plan in force may have a run that was given up.
    vacated: BTreeSet<usize>,
    /// Start of the last plan, if that plan reserves no time for the capacity buffer.
    unbuffered_since_ns: Option<u64>,
    /// The greatest slow-down that was planned with, in thousandths.
    worst_permille: u64,
    pace: Pace,
    /// Order of tasks of several runs, as they were arranged.
    turns: Vec<Turn>,
    /// Steps of work that the last answer has taken.
    answer_steps: u64,
    /// Steps of work that admissions may still take ([`Controller::allow_work`]); `None`: they have
    /// no common bound.
    work_left: Option<u64>,
    /// Whether best effort has no place until the plan is made: it is placed once behind all
    /// admissions of a request.
    is_aside: bool,
}

#[derive(Clone, Debug)]
struct ActiveRun {
    /// The job. Copies of a controller share it until it changes: it may have megabytes of words.
    job: Arc<Job>,
    /// Size of the job ([`size_of`]).
    size: usize,
    /// Expected lengths of the tasks at admission.
    expected_insns: Vec<u64>,
    /// Memory by process: the amount at admission, or the amount that was seen in use. The job's
    /// own amount includes the expected growth.
    used_bytes: Vec<u64>,
    tracks: Vec<Track>,
    /// Whether the run is not planned any more, and continues outside of the plan.
    has_no_place: bool,
    /// The process whose task is beyond t2_task, and the place of that task.
    rogue: Option<(usize, usize)>,
    /// The last answer has it behind all others.
    is_behind: bool,
    /// Processes that ended before their tasks did.
    cuts: Cuts,
}

/// A run that was admitted.
#[derive(Clone, Debug)]
pub struct Admitted {
    /// Number of the run.
    pub run: RunId,
    /// Result of planning the run.
    pub planned: Planned,
}

/// Answer to a prediction failure.
#[derive(Clone, Debug)]
pub enum Answer {
    /// No plan: there was no failure, or nothing is left to plan.
    Nothing,
    /// A plan came a moment ago; ask again at this time.
    NotBefore(u64),
    /// A new plan.
    Plan {
        /// The new plan.
        plan: Box<Plan>,
        /// The runs that will not keep their deadline, or that have no place.
        missed: Vec<Missed>,
    },
}

/// A run that a failure has made late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    /// The run.
    pub run: RunId,
    /// Time by which the run will miss its deadline; `None`: there is no place for the run at all,
    /// and it is not planned any more.
    pub by_ns: Option<u64>,
}

/// A process that is not to go on, since what it waits for will never end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled {
    /// The run.
    pub run: RunId,
    /// The process, by its index in the job.
    pub process: usize,
    /// The process that was cut, on which it depends.
    pub cut: usize,
}

/// A process that has used more memory than was reserved for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grown {
    /// The run.
    pub run: RunId,
    /// The process, by its index in the job.
    pub process: usize,
    /// Memory that was reserved for the process.
    pub reserved_bytes: u64,
    /// Memory that the process has used.
    pub used_bytes: u64,
}

/// Progress of a process at the time when another planner took over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SoFar {
    /// The CPU of Linux that it was planned for, once it has a thread.
    pub cpu: Option<u32>,
    /// Tasks that have ended, in order.
    pub measured: Vec<Measured>,
    /// Instructions that the task after those has retired.
    pub retired_insns: u64,
    /// End of the process, if it has ended.
    pub end: Option<End>,
}

/// State of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunState {
    /// End of each process that has ended, in the order of the job.
    pub ends: Vec<Option<End>>,
    /// The tasks that have ended, by process.
    pub measured: Vec<Vec<Measured>>,
    /// Whether any instruction of the run has been executed.
    pub has_executed: bool,
    /// Planned start of the first remaining task; `None`: the run has no place.
    pub planned_start_ns: Option<u64>,
    /// End of the run's last reservation; `None`: it has none.
    pub planned_end_ns: Option<u64>,
    /// End of the last reservation if the capacity buffer is used up. An answer that keeps promises
    /// without the buffer leaves no time for it. `None`: the run has no reservation.
    pub buffered_end_ns: Option<u64>,
}

impl Controller {
    /// For the node of `machine`, which is its only one, with plans that are
    /// numbered from `plan_id` on, and processes from `first_process` on.
    pub fn new(machine: Machine, options: Options, plan_id: u64, first_process: u32) -> Self {
        let config = options.config.unwrap_or(Config::DEFAULT);
        Self {
            cores: machine.cpus().zip(0..).collect(),
            store: Store::with_capacity(machine, options.balancing, Capacity::of(&config)),
            ids: ProcessIds::from(first_process),
            runs: BTreeMap::new(),
            plan_id,
            next_run: 0,
            next_seq: 0,
            failed: false,
            failed_on: BTreeSet::new(),
            cancelled: Vec::new(),
            grown: Vec::new(),
            asks_memory: false,
            vacated: BTreeSet::new(),
            unbuffered_since_ns: None,
            worst_permille: 1000,
            pace: options.pace,
            turns: Vec::new(),
            answer_steps: 0,
            work_left: None,
            is_aside: false,
            options,
        }
    }

    /// Returns the reservations.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Admits a run of a job whose times are of the node's clock, or says why it
    /// can't be. Where others have begun, [`Controller::renew`] comes first: else they
    /// would be planned from their first task on once more. If there is no place, runs that are
    /// independent of each other are placed anew by their deadlines. Else runs that have executed
    /// nothing yet make room, the least important first, if each of them keeps its deadline. A run
    /// of best effort is in no promise's way, and gets what is left.
    ///
    /// # Errors
    ///
    /// What there is too little of; nothing has changed then.
    pub fn admit(&mut self, job: impl Into<Arc<Job>>, now_ns: u64) -> Result<Admitted, Declined> {
        let job = job.into();
        let planned = self.reserve(&job, now_ns)?;
        Ok(self.add(job, planned))
    }

    /// Reserves what the next run needs.
    fn reserve(&mut self, job: &Job, now_ns: u64) -> Result<Planned, Declined> {
        let run = RunId(self.next_run);
        if job.best_effort {
            self.place_aside(now_ns);
            self.admit_behind(run, job, now_ns)
        } else if self.work_left.is_some() {
            if !self.is_aside {
                self.set_aside(now_ns);
                self.is_aside = true;
            }
            self.admit_promised(run, job, now_ns)
        } else {
            let aside = self.set_aside(now_ns);
            let answer = self.admit_promised(run, job, now_ns);
            self.bring_back(aside, answer.is_ok(), now_ns);
            answer
        }
    }

    /// Adds the next run, which has its reservation.
    fn add(&mut self, job: Arc<Job>, planned: Planned) -> Admitted {
        let run = RunId(self.next_run);
        self.next_run += 1;
        let tracks = vec![Track::default(); job.processes.len()];
        self.runs.insert(run, ActiveRun::new(job, tracks));
        Admitted { run, planned }
    }

    /// Returns the size of the jobs of all runs ([`size_of`]), with a place or without.
    pub fn size(&self) -> usize {
        self.runs.values().map(|run| run.size).sum()
    }

    /// Plans runs that were admitted and have not begun anew, together: each task on its
    /// core, in the order of the turns ([`pbs_planner::arrange`]). Answers to prediction failures
    /// keep this order as long as it keeps the deadlines.
    ///
    /// # Errors
    ///
    /// Why they stay as they were planned.
    pub fn arrange(&mut self, turns: &[Turn], now_ns: u64) -> Result<(), NotArranged> {
        let start_ns = self.start_ns(now_ns);
        let progress = self.progress(start_ns);
        let named: BTreeSet<RunId> = turns.iter().map(|turn| turn.run).collect();
        let mut requests = Vec::with_capacity(named.len());
        for &run in &named {
            let waits = |of: &Vec<Progress>| of.iter().all(|one| *one == Progress::Waiting);
            let active = self.runs.get(&run).filter(|_| progress.get(&run).is_some_and(waits));
            let active = active.ok_or(NotArranged::NotWaiting(run))?;
            requests.push(active.request(run, &progress).not_before(start_ns));
        }
        let aside = set_aside(&mut self.store, &self.runs, &progress, start_ns);
        let arranged = pbs_planner::arrange(&mut self.store, &requests, turns);
        self.bring_back(aside, arranged.is_ok(), now_ns);
        if arranged.is_ok() {
            self.turns.retain(|old| !named.contains(&old.run));
            self.turns.extend_from_slice(turns);
        }
        arranged
    }

    /// Admits a job to which its deadline is promised, where nothing of best effort is.
    fn admit_promised(&mut self, run: RunId, job: &Job, now_ns: u64) -> Result<Planned, Declined> {
        let request = self.request(run, job, now_ns);
        // The job may start later than the plan.
        let start_ns = self.start_ns(now_ns);
        let progress = self.progress(start_ns);
        let others = others(&self.store, &self.runs, &progress, start_ns);
        let Options { validation, planning, .. } = &self.options;
        let (test, work) = (self.demand_test(), self.admission_work());
        let store = &mut self.store;
        let admitted = admit_beside_within(
            store,
            &request,
            &others,
            validation,
            planning,
            test.as_ref(),
            &work,
        );
        self.worked(&work);
        admitted.or_else(|declined| self.admit_before_others(run, job, now_ns).ok_or(declined))
    }

    fn demand_test(&self) -> Option<DemandTest> {
        // Where the node keeps the order of slots, no plan interrupts a task: it would not be
        // executed as it was admitted.
        DemandTest::of(self.store.machine(), self.store.capacity(), self.floats())
    }

    /// Plans the job where others are now, which move: behind it, or all in the order of
    /// their deadlines. `None`: one of them, or the job itself, would miss its deadline.
    fn admit_before_others(&mut self, run: RunId, job: &Job, now_ns: u64) -> Option<Planned> {
        let start_ns = self.start_ns(now_ns);
        let progress = self.progress(start_ns);
        let runs = self.runs.iter();
        let movable = runs.filter(|(_, active)| {
            !active.has_executed() && active.is_promised() && !active.has_no_place
        });
        let movable = movable.map(|(run, active)| active.request(*run, &progress));
        let movable: Vec<_> = movable.collect();
        let replan = Replan::at(start_ns);
        let asked = Request::new(run, job).not_before(start_ns);
        let (work, _) = self.declined_work();
        let store = &mut self.store;
        let behind = replan.run_within(store, &[asked], &movable, &work);
        let replanned = behind.or_else(|not| {
            if movable.is_empty() || movable.len() > replan.max_moved_runs {
                return Err(not);
            }
            let mut all = movable.clone();
            all.push(asked);
            replan.run_within(store, &all, &[], &work)
        });
        self.worked(&work);
        let mut planned = replanned.ok()?.running.into_iter();
        planned.find(|(planned, _)| *planned == run).map(|(_, planned)| planned)
    }

    /// The earliest deadline with which a job that was declined would be admitted;
    /// `None`: none was found.
    pub fn earliest_deadline_ns(&mut self, job: &Job, now_ns: u64) -> Option<u64> {
        let aside = self.set_aside(now_ns);
        let request = self.request(RunId(self.next_run), job, now_ns);
        let start_ns = self.start_ns(now_ns);
        let progress = self.progress(start_ns);
        let others = others(&self.store, &self.runs, &progress, start_ns);
        let validation = &self.options.validation;
        let (test, (work, options)) = (self.demand_test(), self.declined_work());
        let store = &mut self.store;
        let found = (!work.is_spent()).then(|| {
            earliest_deadline_beside_within(
                store,
                &request,
                &others,
                validation,
                &options,
                test.as_ref(),
                &work,
            )
        });
        self.worked(&work);
        self.bring_back(aside, false, now_ns);
        found?.deadline_ns
    }

    /// Time at which a plan that is made at `now_ns` comes into force.
    fn start_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_add(self.options.lead_ns)
    }

    fn request<'a>(&self, run: RunId, job: &'a Job, now_ns: u64) -> Request<'a> {
        Request::new(run, job).not_before(self.start_ns(now_ns))
    }

    /// Takes over a run that another planner admitted, as far as it has come. The
    /// node goes on with the plan that it has, in which the run's processes have
    /// these numbers, until the first answer.
    ///
    /// `None`: a process of another run has one of the numbers.
    pub fn take_over(&mut self, job: Job, numbers: &[u32], so_far: &[SoFar]) -> Option<RunId> {
        let run = RunId(self.next_run);
        let mut ids = self.ids.clone();
        let mut numbers = numbers.iter().enumerate();
        numbers.all(|(process, &id)| ids.take(run, process, id)).then_some(())?;
        let mut tracks = vec![Track::default(); job.processes.len()];
        for (process, (track, so_far)) in tracks.iter_mut().zip(so_far).enumerate() {
            if let Some(core) = so_far.cpu.and_then(|cpu| self.cores.get(&cpu)) {
                track.attached(*core);
            }
            for task in &so_far.measured {
                track.task_ended(task.position, task.expected_insns, task.retired_insns);
            }
            let next = next_with_insns(&job, process, track.position());
            track.at(next, so_far.retired_insns);
            if let Some(end) = so_far.end {
                track.ended(end);
            }
        }
        self.ids = ids;
        self.next_run += 1;
        // The one before may have heard of a failure that it did not answer.
        self.failed = true;
        self.runs.insert(run, ActiveRun::new(job.into(), tracks));
        Some(run)
    }

    /// The number that a process of a run, given by its index in the job, has in
    /// plans.
    pub fn number(&mut self, run: RunId, process: usize) -> u32 {
        self.ids.get(run, process)
    }

    /// The plan of all that is admitted and not over; `None`: that is nothing.
    ///
    /// # Errors
    ///
    /// What the node would refuse.
    pub fn plan(&mut self, now_ns: u64) -> Result<Option<Plan>, Vec<Problem>> {
        self.place_aside(now_ns);
        let start_ns = self.start_ns(now_ns);
        let progress = self.progress(start_ns);
        let entries: Vec<_> = self
            .runs
            .iter()
            .map(|(&run, active)| Entry {
                run,
                job: &active.job,
                progress: &progress[&run],
                // By deadline, a run behind all others comes after all that have one.
                deadline_ns: if active.is_behind && self.floats() {
                    u64::MAX
                } else {
                    active.promised_ns()
                },
            })
            .collect();
        let vacated = self.vacated.iter().copied();
        let settings = Settings {
            plan_id: self.plan_id,
            dealt_seq: self.next_seq,
            config: self.config(start_ns),
            start_ns,
            cleared: self.cores_of_the_unplanned().chain(vacated).collect(),
            // If one dies whose memory others get, they tell of it, and are planned anew.
            memory_order: true,
            used_buffer_insns: self.used_buffers(),
        };
        let plans = class_plans(&self.store, &entries, &mut self.ids, &settings)?;
        let plan = plans.into_iter().next().map(|node| node.plan);
        if plan.is_some() {
            self.plan_id += 1;
            self.pace.made(now_ns);
        }
        Ok(plan)
    }

    /// Returns the lateness of each process by its present plan, for which its capacity buffer was
    /// reserved.
    fn used_buffers(&self) -> BTreeMap<(RunId, usize), u64> {
        let mut used = BTreeMap::new();
        for (&run, active) in &self.runs {
            for process in 0..active.tracks.len() {
                let late_insns = active.late_insns(process);
                if late_insns > 0 {
                    used.insert((run, process), late_insns);
                }
            }
        }
        used
    }

    /// Returns the cores of processes that have no place any more. The plan that contains these
    /// processes must be replaced even if nothing else is planned on those cores.
    fn cores_of_the_unplanned(&self) -> impl Iterator<Item = usize> + '_ {
        let runs = self.runs.iter();
        let unplanned = runs.filter(|(&run, _)| self.store.run(run).is_none());
        let tracks = unplanned.flat_map(|(_, active)| &active.tracks);
        tracks.filter_map(Track::core)
    }

    /// The node took the last plan.
    pub fn taken(&mut self) {
        self.vacated.clear();
    }

    /// Whether the node is to get a plan, as the one in force has a run that was given up.
    pub fn has_vacated(&self) -> bool {
        !self.vacated.is_empty()
    }

    /// Gives up a run, whether it has begun or not: nothing is planned for it any more,
    /// and the next answer is a plan without it, even if nothing else is left. It is
    /// over then, and its programs are to be ended.
    pub fn cancel(&mut self, run: RunId) {
        let Some(active) = self.runs.get_mut(&run) else {
            return;
        };
        if let Some(planned) = self.store.run(run) {
            self.vacated.extend(planned.tasks.iter().map(|task| task.core));
        }
        self.vacated.extend(active.tracks.iter().filter_map(Track::core));
        for track in &mut active.tracks {
            track.ended(End::Cancelled);
        }
        self.store.remove(run);
        self.failed = true;
    }

    /// Takes back a run that was admitted and is in no plan that the node has: it is over.
    pub fn withdraw(&mut self, run: RunId) {
        if let Some(active) = self.runs.get_mut(&run) {
            for track in &mut active.tracks {
                track.ended(End::Cancelled);
            }
            self.store.remove(run);
        }
    }

    /// Promises a run another deadline, of the node's clock.
    ///
    /// # Errors
    ///
    /// By the plan it ends later: when; nothing has changed. `None`: there is no such
    /// run, or no plan of it.
    pub fn set_deadline(&mut self, run: RunId, deadline_ns: u64) -> Result<(), Option<u64>> {
        let planned = self.store.run(run).ok_or(None)?;
        let active = self.runs.get_mut(&run).ok_or(None)?;
        match planned.end_ns() {
            end_ns if end_ns > deadline_ns && !active.job.best_effort => Err(Some(end_ns)),
            _ => {
                Arc::make_mut(&mut active.job).deadline_ns = deadline_ns;
                Ok(())
            }
        }
    }

    /// Returns the deadline that a run is promised, of the node's clock; `None`: there is no such
    /// run.
    pub fn deadline_ns(&self, run: RunId) -> Option<u64> {
        self.runs.get(&run).map(|active| active.job.deadline_ns)
    }

    /// Sets the priority of a run for later plans.
    pub fn set_priority(&mut self, run: RunId, priority: u32) {
        if let Some(active) = self.runs.get_mut(&run) {
            Arc::make_mut(&mut active.job).priority = priority;
        }
    }

    /// Whether the slots of the plans float by deadlines.
    fn floats(&self) -> bool {
        self.options.config.is_some_and(|config| config.dispatch() == Dispatch::Deadline)
    }

    /// A time of the last plan, with the capacity buffer even if the plan has none.
    fn buffered_ns(&self, time_ns: u64) -> u64 {
        let since_ns = self.unbuffered_since_ns.unwrap_or(u64::MAX);
        let planned_ns = u128::from(time_ns.saturating_sub(since_ns));
        let share_permille = u128::from(self.buffer_permille().saturating_sub(1000));
        let buffer_ns = u64::try_from(planned_ns * share_permille / 1000).unwrap_or(u64::MAX);
        time_ns.saturating_add(buffer_ns)
    }

    /// CAPACITY_BUFFER of the plans.
    fn buffer_permille(&self) -> u64 {
        self.options.config.unwrap_or(Config::DEFAULT).capacity_buffer_permille
    }

    /// The configuration of the plans: how long an answer takes is known here, and
    /// not on the node.
    fn config(&self, start_ns: u64) -> Option<Config> {
        let mut config = self.options.config?;
        let waits = |active: &ActiveRun| active.job.start_ns > start_ns && !active.is_over();
        if self.options.keeps_starts && self.runs.values().any(waits) {
            config.dispatch = Dispatch::Thesis as u64;
        }
        let reschedule_time_ns = match self.options.lead_ns {
            0 => config.reschedule_time_ns,
            lead_ns => lead_ns,
        };
        Some(Config {
            reschedule_time_ns,
            ceiling_factor_permille: self.ceiling_permille(config.ceiling_factor_permille),
            ..config
        })
    }

    /// The process of a plan with that number: its run and its index in the job.
    pub fn process(&self, id: u32) -> Option<(RunId, usize)> {
        self.ids.process(id)
    }

    /// Hears of an event of the node.
    pub fn event(&mut self, event: &Event) {
        self.next_seq = self.next_seq.max(event.seq.saturating_add(1));
        let Some(kind) = EventKind::from_raw(event.kind) else {
            return;
        };
        if kind == EventKind::Overrun {
            // A failure may be among those that were lost.
            self.next_seq = self.next_seq.max(event.seq.saturating_add(event.value));
            self.failed = true;
            return;
        }
        if event.process == IDLE {
            self.failed_on.extend(is_failure(kind).then_some(event.cpu));
            self.asks_memory |= is_node_memory(event);
            return;
        }
        let core = self.cores.get(&event.cpu).copied();
        let Some((run, process)) = self.ids.process(event.process) else {
            return;
        };
        let Some(active) = self.runs.get_mut(&run) else {
            return;
        };
        let position = event.task as usize;
        let tasks = &active.job.processes[process].tasks;
        let expected_insns = tasks.get(position).map_or(0, |&task| active.expected_insns[task]);
        let track = &mut active.tracks[process];
        match kind {
            EventKind::Attached => {
                if let Some(core) = core {
                    active.attached(process, core);
                }
                let track = &mut active.tracks[process];
                let next = next_with_insns(&active.job, process, track.position());
                track.at(next, 0);
            }
            EventKind::TaskEnded => {
                track.task_ended(position, expected_insns, event.retired_insns);
                let next = next_with_insns(&active.job, process, track.position());
                track.at(next, 0);
            }
            EventKind::ProcessEnded if event.value == 0 => track.ended(End::Complete),
            EventKind::ProcessEnded => {
                track.ended(End::Cut);
                active.cuts.at_once(process);
            }
            EventKind::Ejected => {
                track.ended(End::Cut);
                active.cuts.later();
            }
            _ => {
                if position < tasks.len() {
                    track.at(position, event.retired_insns);
                }
                if is_own_lateness(event) {
                    track.signalled();
                }
                // Its program slept there until the start of the job, and has to have another slot.
                let has_slept = kind == EventKind::Ceiling && event.time_ns < active.job.start_ns;
                self.failed_on.extend(has_slept.then_some(event.cpu));
                if is_late_task(event) && position < tasks.len() {
                    active.rogue = Some((process, position));
                }
                if kind == EventKind::Late && event.reason == Cause::Memory as u16 {
                    self.uses(run, process, event.memory_bytes);
                }
            }
        }
        self.asks_memory |= is_node_memory(event);
        self.failed_on.extend(is_failure(kind).then_some(event.cpu));
        self.failed |= is_gone(event);
    }

    /// A process was seen using as much memory. It keeps what it has, and the next plan
    /// reserves that and what it is expected to grow by: who no longer fits beside it
    /// moves, waits or is missed.
    fn uses(&mut self, run: RunId, process: usize, used_bytes: u64) {
        let node_bytes = self.store.machine().memory_bytes();
        let Some(active) = self.runs.get_mut(&run) else {
            return;
        };
        let reserved_bytes = active.job.processes[process].memory_bytes;
        let most_bytes = &mut active.used_bytes[process];
        *most_bytes = (*most_bytes).max(used_bytes);
        if used_bytes <= reserved_bytes {
            return;
        }
        active.tracks[process].grown();
        let outlook = self.options.outlook;
        Arc::make_mut(&mut active.job).processes[process].memory_bytes =
            outlook.of_memory(reserved_bytes, used_bytes, node_bytes);
        self.grown.push(Grown { run, process, reserved_bytes, used_bytes });
        self.failed = true;
    }

    /// The numbers of the processes that the kernel is to be asked about, so that what
    /// it says can be [`seen`](Self::seen) before the next answer: if the node uses too
    /// much memory, all that have begun; once for each time that it says so.
    pub fn asks(&mut self) -> Vec<u32> {
        if !std::mem::take(&mut self.asks_memory) {
            return Vec::new();
        }
        let mut running = Vec::new();
        for (&run, active) in &self.runs {
            let tracks = active.tracks.iter().enumerate();
            let begun = tracks.filter(|(_, it)| it.has_begun() && it.end().is_none());
            running.extend(begun.map(|(process, _)| (run, process)));
        }
        let numbers = running.into_iter();
        numbers.map(|(run, process)| self.ids.get(run, process)).collect()
    }

    /// The processes that outgrew their memory since this was last asked.
    pub fn grown(&mut self) -> Vec<Grown> {
        std::mem::take(&mut self.grown)
    }

    /// The processes that were cancelled since this was last asked: their programs
    /// are to be ended. The class holds them until then, and the next plan leaves
    /// them out.
    pub fn cancelled(&mut self) -> Vec<Cancelled> {
        self.cancel_at_once();
        std::mem::take(&mut self.cancelled)
    }

    /// Hears what the kernel says of a process, for events of it that were lost.
    pub fn seen(&mut self, known: &pbs_uapi::Process) {
        if let Some((run, process)) = self.ids.process(known.process) {
            if ProcessState::from_raw(known.state) != Some(ProcessState::Done) {
                self.uses(run, process, known.peak_rss_bytes);
            }
        }
        self.progressed(known);
    }

    /// Hears from the kernel how far a process has come. If it uses too much memory the
    /// node says so by itself, beyond what is allowed for.
    pub fn progressed(&mut self, known: &pbs_uapi::Process) {
        let core = self.cores.get(&known.cpu).copied();
        let Some((run, process)) = self.ids.process(known.process) else {
            return;
        };
        let Some(active) = self.runs.get_mut(&run) else {
            return;
        };
        let tasks = active.job.processes[process].tasks.len();
        let track = &mut active.tracks[process];
        let position = known.task as usize;
        if position < tasks {
            track.at(position, known.retired_insns);
        }
        match ProcessState::from_raw(known.state) {
            Some(ProcessState::Done) if known.ended_tasks == known.tasks => {
                track.ended(End::Complete);
            }
            Some(ProcessState::Done) => {
                track.ended(End::Cut);
                active.cuts.at_once(process);
                self.cancel_at_once();
            }
            Some(ProcessState::Absent) => {
                // It had a thread, unless it has not come that far.
                if track.has_begun() || known.ended_tasks > 0 || known.retired_insns > 0 {
                    track.ended(End::Cut);
                    active.cuts.later();
                }
            }
            _ => {
                if let Some(core) = core {
                    active.attached(process, core);
                }
            }
        }
    }

    /// Whether all that was admitted is over.
    pub fn is_over(&self) -> bool {
        self.runs.values().all(ActiveRun::is_over)
    }

    /// Whether it is known of all processes of a run how they ended, or there is no such
    /// run.
    pub fn has_ended(&self, run: RunId) -> bool {
        self.runs.get(&run).is_none_or(ActiveRun::has_ended)
    }

    /// Returns the planned start of a run; `None`: it has no place.
    pub fn planned_start_ns(&self, run: RunId) -> Option<u64> {
        self.store.run(run).and_then(first_task_ns)
    }

    /// Returns the end of each process of a run that has ended; `None`: there is no such run.
    pub fn ends(&self, run: RunId) -> Option<Vec<Option<End>>> {
        self.runs.get(&run).map(ActiveRun::ends)
    }

    /// Whether a process of a run has ended; `None`: there is no such run, or no such process.
    pub fn has_process_ended(&self, run: RunId, process: usize) -> Option<bool> {
        let active = self.runs.get(&run)?;
        let track = active.tracks.get(process)?;
        Some(track.end().is_some() || !active.is_planned(process) && active.is_over())
    }

    /// Returns the state of a run, with what was measured of all its tasks; `None`: there is no
    /// such run.
    pub fn run(&self, run: RunId) -> Option<RunState> {
        let active = self.runs.get(&run)?;
        let planned_end_ns = self.store.run(run).map(pbs_planner::Run::end_ns);
        Some(RunState {
            ends: active.ends(),
            measured: active.tracks.iter().map(|t| t.measured().to_vec()).collect(),
            has_executed: active.has_executed(),
            planned_start_ns: self.planned_start_ns(run),
            planned_end_ns,
            buffered_end_ns: planned_end_ns.map(|end_ns| self.buffered_ns(end_ns)),
        })
    }

    /// Forgets a run that is over.
    pub fn forget(&mut self, run: RunId) {
        if self.runs.get(&run).is_some_and(ActiveRun::is_over) {
            self.runs.remove(&run);
            self.ids.forget(run);
            self.store.remove(run);
        }
    }

    /// Whether there is something to answer.
    pub fn is_asked(&self) -> bool {
        (self.failed || !self.failed_on.is_empty()) && !self.has_nothing_to_plan()
    }

    fn has_nothing_to_plan(&self) -> bool {
        self.is_over() && !self.has_vacated()
    }

    /// The node has refused the last plan: something has happened that was not heard
    /// of yet. What it was to answer still wants an answer, though not at once.
    pub fn refused(&mut self) {
        self.failed = true;
    }

    /// Returns the progress of all processes, for a plan that begins at `start_ns`.
    fn progress(&self, start_ns: u64) -> BTreeMap<RunId, Vec<Progress>> {
        let mut room = self.room();
        let of = |(&run, active): (&RunId, &ActiveRun)| {
            // Another planner may have reserved what is nowhere here.
            let is_taken_over = self.store.run(run).is_none();
            let mut to_come = vec![is_taken_over; active.job.processes.len()];
            for process in self.store.run(run).iter().flat_map(|run| &run.processes) {
                to_come[process.process] = process.start_ns >= start_ns;
            }
            let tracks = active.tracks.iter().zip(to_come).enumerate();
            let progress = tracks.map(|(process, (track, to_come))| {
                let has_executed = active.has_process_executed(process);
                // A program whose slot was to begin may have begun, unless others still have its
                // memory: then it waits, and does not have that yet.
                let bytes = active.job.processes[process].memory_bytes;
                let mut may_have = || track.core().is_some_and(|core| room.try_take(core, bytes));
                let has_memory = !to_come && (track.has_grown() || !has_executed && may_have());
                let holds_nothing = !has_executed && !has_memory;
                track.progress(active.job.processes[process].tasks.len(), holds_nothing)
            });
            (run, progress.collect())
        };
        self.runs.iter().map(of).collect()
    }

    /// Returns the memory that no process has which has executed something.
    fn room(&self) -> Room {
        let mut room = Room::of(&self.store);
        for active in self.runs.values() {
            for (process, track) in active.tracks.iter().enumerate() {
                if let (Some(core), true) = (track.core(), active.has_process_executed(process)) {
                    room.take(core, active.job.processes[process].memory_bytes);
                }
            }
        }
        room
    }
}

/// Returns the number of tasks, of processes and of named dependencies of a job: what a copy of a
/// controller has of it, and what its timing looks at.
pub fn size_of(job: &Job) -> usize {
    let named = job.tasks.iter().map(|task| task.senders.len() + task.after.len());
    job.tasks.len() + job.processes.len() + named.sum::<usize>()
}

impl ActiveRun {
    fn new(job: Arc<Job>, tracks: Vec<Track>) -> Self {
        Self {
            size: size_of(&job),
            expected_insns: job.tasks.iter().map(|task| task.insns).collect(),
            used_bytes: memory_bytes(&job),
            tracks,
            has_no_place: false,
            rogue: None,
            is_behind: false,
            cuts: Cuts::default(),
            job,
        }
    }

    fn is_over(&self) -> bool {
        let mut processes = self.job.processes.iter().zip(&self.tracks).enumerate();
        processes.all(|(index, (process, track))| {
            !self.is_planned(index) || track.progress(process.tasks.len(), false) == Progress::Ended
        })
    }

    /// Whether the node knows of a process: one that only forks and joins has no slot.
    fn is_planned(&self, process: usize) -> bool {
        let mut tasks = self.job.processes[process].tasks.iter();
        tasks.any(|&task| self.expected_insns[task] > 0)
    }

    /// Returns the end of each process that has ended. A process that the node is not aware of ends
    /// with the last of the others.
    fn ends(&self) -> Vec<Option<End>> {
        let over = self.is_over().then_some(End::Complete);
        let tracks = self.tracks.iter().enumerate();
        let end = |(index, track): (usize, &Track)| {
            track.end().or(over.filter(|_| !self.is_planned(index)))
        };
        tracks.map(end).collect()
    }

    /// Per task: whether it has ended. One without instructions has when all has
    /// that it waits for.
    fn ended(&self) -> Vec<bool> {
        let job = &self.job;
        let mut ended = vec![false; job.tasks.len()];
        let mut waits_for: Vec<_> =
            (0..ended.len()).map(|task| job.predecessors(task).count()).collect();
        let mut ready: Vec<_> = (0..ended.len()).filter(|&task| waits_for[task] == 0).collect();
        while let Some(task) = ready.pop() {
            let track = &self.tracks[job.tasks[task].process];
            ended[task] = if self.expected_insns[task] == 0 {
                job.predecessors(task).all(|before| ended[before])
            } else {
                track.end() == Some(End::Complete) || job.tasks[task].position < track.position()
            };
            for after in job.successors(task) {
                waits_for[after] -= 1;
                if waits_for[after] == 0 {
                    ready.push(after);
                }
            }
        }
        ended
    }

    /// Reduces the reserved memory to what is used or was asked for.
    fn reserve_no_growth(&mut self) {
        let mut reserved = self.job.processes.iter().map(|process| process.memory_bytes);
        if reserved.by_ref().eq(self.used_bytes.iter().copied()) {
            return;
        }
        let processes = Arc::make_mut(&mut self.job).processes.iter_mut();
        for (process, &used_bytes) in processes.zip(&self.used_bytes) {
            process.memory_bytes = used_bytes;
        }
    }

    /// Whether all processes have ended, in the sense of [`ActiveRun::ends`].
    fn has_ended(&self) -> bool {
        let mut tracks = self.tracks.iter().enumerate();
        let has_planned = tracks.clone().any(|(index, _)| self.is_planned(index));
        has_planned && tracks.all(|(index, track)| track.end().is_some() || !self.is_planned(index))
            || !has_planned && self.is_over()
    }

    /// Whether its deadline is promised, and it is not over.
    fn is_promised(&self) -> bool {
        !self.job.best_effort && !self.is_over()
    }

    /// Returns the deadline if it is promised, otherwise `u64::MAX`.
    fn promised_ns(&self) -> u64 {
        if self.job.best_effort {
            u64::MAX
        } else {
            self.job.deadline_ns
        }
    }

    /// Returns the instructions by which a process exceeds what was expected of it when the run was
    /// admitted. Tasks that have ended count with what they retired, the others with what is
    /// planned.
    fn late_insns(&self, process: usize) -> u64 {
        let track = &self.tracks[process];
        let (mut expected_insns, mut planned_insns) = track.sums_insns();
        for &task in self.job.processes[process].tasks.iter().skip(track.position()) {
            expected_insns = expected_insns.saturating_add(self.expected_insns[task]);
            planned_insns = planned_insns.saturating_add(self.job.tasks[task].insns);
        }
        planned_insns.saturating_sub(expected_insns)
    }

    /// The instructions by which a process of it is later than the capacity buffer allows.
    fn beyond_buffer_insns(&self, buffer_permille: u64) -> u64 {
        let beyond = (0..self.tracks.len()).map(|process| {
            let tasks = &self.job.processes[process].tasks;
            let expected_insns = tasks.iter().map(|&task| u128::from(self.expected_insns[task]));
            let share_permille = u128::from(buffer_permille.saturating_sub(1000));
            let buffer_insns = expected_insns.sum::<u128>() * share_permille / 1000;
            let buffer_insns = u64::try_from(buffer_insns).unwrap_or(u64::MAX);
            self.late_insns(process).saturating_sub(buffer_insns)
        });
        beyond.max().unwrap_or(0)
    }

    /// A task of it is beyond t2_task and goes on.
    fn has_rogue(&self) -> bool {
        self.rogue.is_some_and(|(process, position)| {
            let track = &self.tracks[process];
            track.position() == position && track.end().is_none()
        })
    }

    /// The task that is beyond t2_task is expected to be no longer than tasks to come are
    /// stretched at most.
    fn is_bounded(&self, outlook: &Outlook) -> bool {
        let task = |(process, position): (usize, usize)| {
            self.job.processes[process].tasks.get(position).copied()
        };
        self.rogue.and_then(task).is_none_or(|task| {
            let most = u128::from(self.expected_insns[task])
                * u128::from(outlook.most_stretch_permille.max(1000));
            u128::from(self.job.tasks[task].insns) * 1000 <= most
        })
    }

    fn has_begun(&self) -> bool {
        self.tracks.iter().any(Track::has_begun)
    }

    fn has_executed(&self) -> bool {
        (0..self.tracks.len()).any(|process| self.has_process_executed(process))
    }

    /// Whether something of a process has been executed, or it has ended. The ends of tasks may be
    /// among events that were lost.
    fn has_process_executed(&self, process: usize) -> bool {
        let track = &self.tracks[process];
        let mut before = self.job.processes[process].tasks.iter().take(track.position());
        track.has_executed() || before.any(|&task| self.expected_insns[task] > 0)
    }

    /// Returns a request to plan the rest of the run.
    fn request<'a>(
        &'a self,
        run: RunId,
        progress: &'a BTreeMap<RunId, Vec<Progress>>,
    ) -> Request<'a> {
        Request { progress: &progress[&run], ..Request::new(run, &self.job) }
    }
}

/// Returns the start of the first slot of a task: memory may be held before.
fn first_task_ns(run: &pbs_planner::Run) -> Option<u64> {
    let tasks = run.tasks.iter().filter(|task| task.start_ns < task.end_ns);
    tasks.map(|task| task.start_ns).min()
}

fn memory_bytes(job: &Job) -> Vec<u64> {
    let processes = job.processes.iter();
    processes.map(|process| process.memory_bytes).collect()
}

/// Whether the event signals that a process is late, and not only the node while the process runs.
fn is_own_lateness(event: &Event) -> bool {
    let others = [Cause::Node, Cause::Memory, Cause::NodeMemory, Cause::Message];
    event.kind == EventKind::Late as u16 && others.iter().all(|&of| event.reason != of as u16)
}

/// Whether the event signals that a task is beyond t2_task.
fn is_late_task(event: &Event) -> bool {
    event.kind == EventKind::Late as u16 && event.reason == Cause::Task as u16
}

/// Whether the event signals that the node uses more memory than the plan may.
fn is_node_memory(event: &Event) -> bool {
    event.kind == EventKind::Late as u16 && event.reason == Cause::NodeMemory as u16
}

/// Whether the event signals that a process waits for one that is gone. Without a new plan it waits
/// for ever.
fn is_gone(event: &Event) -> bool {
    event.kind == EventKind::Waits as u16 && event.reason == Wait::Gone as u16
}

fn is_failure(kind: EventKind) -> bool {
    matches!(kind, EventKind::Late | EventKind::Early)
}
