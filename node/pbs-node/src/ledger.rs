// SPDX-License-Identifier: GPL-2.0
//! Records of runs while they run. They are stored in the history: the next run can be predicted
//! from what this one used, and another planner can take over.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pbs_history::{
    boot_id, Collector, Corun, EndedLimits, InForce, JobHistory, Kind, Last, NewRun, Options,
    Order, Outcome, ProcessRun, Run, RunEnd, RunFigures, RunId, RunUsage, State, Store, Takeover,
    TaskRun,
};
use pbs_job::Job;
use pbs_plan::{to_toml, Plan};
use pbs_uapi::{Device, Event, EventKind, IDLE};

use crate::clock::unix_ns;
use crate::device::BATCH;
use crate::learned::{Recent, MOST_BYTES};
use crate::orders::{Ending, Noted};
use crate::overlaps::Overlaps;
use crate::predict::programs;
use crate::queue::{self, open_runs};
use crate::saved::Saved;
use crate::{AccountOf, Error, Listener, News};

/// Interval at which the node's events are stored. A planner that takes over reads later events
/// from the kernel, which still holds them.
const KEEP_EVERY: Duration = Duration::from_secs(1);

/// Maximum number of runs that are over and wait to be recorded with their figures. Of others, the
/// end alone waits.
const MOST_FIGURES: usize = 1000;

/// Maximum number of runs that are over and wait to be recorded.
const MOST_OWED: usize = 100_000;

/// Maximum number of task runs that are stored of one run with the tasks beside them: the longest.
const MOST_CORUNS: usize = 4096;

/// The history of the planner, and its runs that are not over.
#[derive(Debug)]
pub(crate) struct Ledger {
    path: PathBuf,
    store: Store,
    /// Users whose limits the jobs of other users count to.
    account_of: AccountOf,
    runs: BTreeMap<RunId, OpenRun>,
    /// Run of each process, by its number in plans.
    owners: BTreeMap<u32, RunId>,
    in_force: InForce,
    /// Number of the next event in the record of the plan in force; `None`: the plan itself differs
    /// from its record. The text of a plan may have megabytes.
    noted_seq: Option<u64>,
    /// `None`: nobody wants to know who runs beside whom.
    overlaps: Option<Overlaps>,
    /// Last runs beside others, for a service that learns from them.
    pub(crate) recent: Option<Recent>,
    /// The files that say of runs that they were let go, until that is noted.
    commits: Vec<PathBuf>,
    kept: Instant,
    /// The last attempt to keep what happened has failed.
    failed: bool,
    /// Results that are lost: their records were refused for what they are, or too many waited.
    lost: u64,
    /// Runs whose records were found damaged while they ran, until the listener is told, and why.
    set_aside: Vec<(RunId, String)>,
    /// The runs that are over and could not be recorded yet, the oldest first.
    owed: VecDeque<Owed>,
}

/// Results that are not in the history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unrecorded {
    /// Whether the last attempt to record something has failed.
    pub fails: bool,
    /// Results that wait to be recorded.
    pub waiting: u64,
    /// Results that are lost since the start.
    pub lost: u64,
}

/// A run that is over, with all that is to be recorded of it.
#[derive(Debug)]
struct Owed {
    id: RunId,
    /// The terms with how it ended, if it was ordered.
    order: Option<Order>,
    ended_unix_ns: u64,
    outcome: Outcome,
    figures: Vec<ProcessRun>,
    usage: RunUsage,
    coruns: Vec<Corun>,
    /// Whether it waited until it was over: without this record, it still waits in the file.
    has_waited: bool,
}

/// A run that is under way.
#[derive(Debug)]
struct OpenRun {
    /// [`State::Running`] once its programs were let go.
    state: State,
    collector: Collector,
    takeover: Takeover,
    saved: Saved,
    /// Whether the run differs from its record in the file.
    is_new: bool,
    /// Whether its data for a take-over do, which may be long.
    has_new_takeover: bool,
}

impl OpenRun {
    /// The run was changed in what another planner would need.
    fn changed(&mut self) {
        self.takeover.reservation = self.saved.to_text();
        self.is_new = true;
        self.has_new_takeover = true;
    }
}

/// Beginning of the names of files that say whether the programs of a start were let go.
pub(crate) const START: &str = "start-";

impl Ledger {
    /// Opens the history, or makes it, and claims it: only one planner may write.
    pub(crate) fn open(
        path: &Path,
        (ended, account_of): (EndedLimits, AccountOf),
        listener: &mut dyn Listener,
    ) -> Result<Self, Error> {
        let mut store = queue::open_with(path, Options { ended, ..Options::DEFAULT })?;
        store.claim_planner()?;
        for (run, why) in store.set_damaged_aside(unix_ns())? {
            listener.news(News::SetAside(run, why));
        }
        if store.is_out_of_date(unix_ns())? {
            listener.news(News::OutOfDate);
        }
        store.forget(unix_ns(), |uid| account_of.of(uid))?;
        let in_force = match store.in_force() {
            // Runs that need this plan are set aside one by one; the others do not wait for it.
            Err(pbs_history::Error::Damaged(_, why)) => {
                listener.news(News::PlanSetAside(why));
                InForce::default()
            }
            in_force => in_force?.unwrap_or_default(),
        };
        Ok(Self {
            path: path.into(),
            store,
            account_of,
            runs: BTreeMap::new(),
            owners: BTreeMap::new(),
            in_force,
            noted_seq: None,
            overlaps: None,
            recent: None,
            commits: Vec::new(),
            kept: Instant::now(),
            failed: false,
            lost: 0,
            set_aside: Vec::new(),
            owed: VecDeque::new(),
        })
    }

    /// Returns the user whose limits a job of that user counts to; `None`: nobody has ordered it.
    pub(crate) fn account(&self, uid: Option<u32>) -> Option<u32> {
        uid.map(|uid| self.account_of.of(uid))
    }

    /// From now on who runs beside whom is recorded.
    pub(crate) fn watch(&mut self, mut overlaps: Overlaps) {
        for run in self.runs.values() {
            overlaps.follow(&run.saved.expected());
        }
        self.overlaps = Some(overlaps);
    }

    /// From now on the last runs beside others are also in memory, where they can be learned from.
    ///
    /// # Errors
    ///
    /// An error if those in the file cannot be read: only later ones are there then.
    pub(crate) fn hold_recent(&mut self) -> Result<(), Error> {
        let recent = self.recent.insert(Recent::default());
        recent.add(&self.store.last_coruns(MOST_BYTES)?);
        Ok(())
    }

    /// Returns the history of the runs of that name and those programs that this user has ordered;
    /// `None`: of those without a user.
    pub(crate) fn history(&self, job: &Job, uid: Option<u32>) -> Result<JobHistory, Error> {
        let programs: Vec<_> = programs(job).collect();
        Ok(self.store.history_for(&job.name, uid, &programs)?)
    }

    /// Returns the runs of a job so far. If they cannot be read, the listener receives the reason,
    /// and the job has none.
    pub(crate) fn history_or_news(
        &mut self,
        job: &Job,
        uid: Option<u32>,
        listener: &mut dyn Listener,
    ) -> JobHistory {
        let programs: Vec<_> = programs(job).collect();
        self.store.history_for(&job.name, uid, &programs).unwrap_or_else(|error| {
            self.tell_once(error, listener);
            JobHistory::default()
        })
    }

    /// Runs of tasks with who ran beside them.
    pub(crate) fn coruns(&self) -> Result<Vec<Corun>, Error> {
        Ok(self.store.coruns()?)
    }

    /// Records runs beside others, as of jobs that have ended.
    #[cfg(test)]
    pub(crate) fn record_coruns(&mut self, coruns: &[Corun]) {
        self.store.record_coruns(coruns).unwrap();
    }

    /// Returns the plans that the last planner has given to the node.
    pub(crate) fn in_force(&self) -> &InForce {
        &self.in_force
    }

    /// Takes runs in, which wait: all or none.
    pub(crate) fn take_in(&mut self, runs: &[NewRun<'_>]) -> Result<Vec<RunId>, Error> {
        Ok(self.store.begin_runs(runs)?)
    }

    /// A run of which nothing may be known any more.
    pub(crate) fn run(&self, id: RunId) -> Result<Run, Error> {
        Ok(self.with_end(self.store.run(id)?))
    }

    fn owed(&self, id: RunId) -> Option<&Owed> {
        self.owed.iter().find(|owed| owed.id == id)
    }

    /// Whether runs are over and could not be recorded yet.
    pub(crate) fn owes(&self) -> bool {
        !self.owed.is_empty()
    }

    /// The run with its end, which may not be recorded yet.
    fn with_end(&self, run: Run) -> Run {
        match self.owed(run.id) {
            Some(owed) => Run {
                state: State::Over,
                ended_unix_ns: Some(owed.ended_unix_ns),
                outcome: Some(owed.outcome),
                ..run
            },
            None => run,
        }
    }

    /// Under which terms a run was asked for; `None`: nobody was.
    pub(crate) fn order(&self, id: RunId) -> Result<Option<Order>, Error> {
        if let Some(order) = self.owed(id).and_then(|owed| owed.order.clone()) {
            return Ok(Some(order));
        }
        Ok(self.store.order(id)?)
    }

    /// Other terms for a run.
    pub(crate) fn set_order(&mut self, id: RunId, order: &Order) -> Result<(), Error> {
        Ok(self.store.set_order(id, order)?)
    }

    /// Other terms for a run that waits, with the request that belongs to them if that is another
    /// one.
    pub(crate) fn replace_order(
        &mut self,
        id: RunId,
        order: &Order,
        request: Option<String>,
    ) -> Result<(), Error> {
        let takeover = request.map(|request| Takeover { request, ..Takeover::default() });
        Ok(self.store.replace_order(id, order, takeover.as_ref())?)
    }

    /// The job of a run as it was requested; `None`: it is over.
    pub(crate) fn request(&self, id: RunId) -> Result<Option<String>, Error> {
        let takeover = self.store.takeover(id)?;
        Ok(takeover.map(|takeover| takeover.request))
    }

    /// A file of that name beside the history.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        let mut file = self.path.clone().into_os_string();
        file.push(".");
        file.push(name);
        file.into()
    }

    /// Removes files of starts during which another planner has died, but for those that say whether
    /// the programs of a run were let go that is taken over.
    pub(crate) fn remove_starts(&self, kept: &[&Path]) {
        let prefix = self.beside(START);
        let directory = self.path.parent().filter(|path| !path.as_os_str().is_empty());
        let Ok(files) = std::fs::read_dir(directory.unwrap_or(Path::new("."))) else {
            // They are in nobody's way, and the next planner tries again.
            return;
        };
        for file in files.flatten() {
            let name = file.file_name();
            let is_start = prefix.file_name().is_some_and(|prefix| {
                name.as_encoded_bytes().starts_with(prefix.as_encoded_bytes())
            });
            let is_kept = kept.iter().any(|kept| kept.file_name() == Some(&name));
            let is_noted = self.commits.iter().any(|kept| kept.file_name() == Some(&name));
            if is_start && !is_kept && !is_noted {
                // As above.
                let _ = std::fs::remove_file(file.path());
            }
        }
    }

    /// The last runs that are over, the oldest first.
    pub(crate) fn last_runs(&self, last: &Last<'_>) -> Result<Vec<Run>, Error> {
        let mut runs = self.store.last_runs(last)?;
        for owed in &self.owed {
            let run = self.run(owed.id)?;
            let uid = || self.order(owed.id).map(|order| order.map(|order| order.uid));
            let is_of_job = last.job.is_none_or(|job| job == run.job);
            if is_of_job && (last.uid.is_none() || uid()? == last.uid) {
                runs.push(run);
            }
        }
        let more = runs.len().saturating_sub(last.count);
        Ok(runs.split_off(more))
    }

    /// Returns the figures of a run's processes, whether it is over or not.
    pub(crate) fn figures(&self, id: RunId) -> Result<RunFigures, Error> {
        let mut figures = self.store.figures_of(id)?;
        if let Some(open) = self.runs.get(&id) {
            figures.processes = open.collector.figures();
        } else if let Some(owed) = self.owed(id) {
            figures.processes.clone_from(&owed.figures);
            figures.usage = owed.usage;
        }
        figures.run = self.with_end(figures.run);
        Ok(figures)
    }

    /// The runs that are not over, with what is needed to take them over.
    pub(crate) fn open_runs(&self) -> Result<Vec<(RunFigures, Takeover)>, Error> {
        let mut open = Vec::new();
        for (run, takeover) in open_runs(&self.store)? {
            open.push((self.store.figures_of(run.id)?, takeover));
        }
        Ok(open)
    }

    /// The runs that wait, as [`queue::waiting`] has them.
    pub(crate) fn waiting(&self) -> Result<Vec<(RunId, u64, String)>, Error> {
        queue::waiting(&self.store)
    }

    /// Follows a run whose plan is to be written from the event of that number on, with
    /// all that is needed to take it over. `id` is its number if it was submitted before.
    pub(crate) fn follow(
        &mut self,
        id: Option<RunId>,
        saved: Saved,
        kind: Kind,
        request: &str,
        first_seq: u64,
    ) -> Result<RunId, Error> {
        let takeover = Takeover {
            request: request.into(),
            reservation: saved.to_text(),
            boot_id: boot_id(),
            first_seq,
        };
        let id = match id {
            Some(id) => id,
            None => {
                let new = NewRun {
                    job: &saved.job.name,
                    kind,
                    submitted_unix_ns: unix_ns(),
                    request,
                    reservation: &takeover.reservation,
                    order: None,
                };
                self.store.begin_run(&new)?
            }
        };
        let collector = Collector::new(first_seq, saved.expected());
        self.insert(id, State::Planned, collector, takeover, saved);
        if self.runs.len() == 1 {
            self.in_force.next_seq = first_seq;
        }
        Ok(id)
    }

    fn insert(
        &mut self,
        id: RunId,
        state: State,
        collector: Collector,
        takeover: Takeover,
        saved: Saved,
    ) {
        let numbers = saved.numbers.iter().map(|&number| (number, id));
        self.owners.extend(numbers);
        if let Some(overlaps) = &mut self.overlaps {
            overlaps.follow(&saved.expected());
        }
        let (is_new, has_new_takeover) = (true, true);
        let run = OpenRun { state, collector, takeover, saved, is_new, has_new_takeover };
        self.runs.insert(id, run);
    }

    /// Goes on to follow a run that another planner has followed.
    pub(crate) fn go_on(&mut self, saved: Saved, takeover: Takeover, before: &RunFigures) {
        let expected = saved.expected();
        let next_seq = takeover.first_seq.max(self.in_force.next_seq);
        let collector = Collector::resume(next_seq, expected, &before.processes);
        self.insert(before.run.id, State::Running, collector, takeover, saved);
    }

    /// A plan is to be in force, with all runs that are under way.
    ///
    /// # Errors
    ///
    /// Who comes next would not know of it.
    pub(crate) fn planned(&mut self, plan: &Plan) -> Result<(), pbs_history::Error> {
        self.take(plan);
        self.note()
    }

    /// Notes that this file reports whether runs were released.
    pub(crate) fn committed(&mut self, commit: PathBuf) {
        self.commits.push(commit);
    }

    /// The programs of a run were let go at that time.
    pub(crate) fn released(&mut self, id: RunId, time_ns: u64) {
        if let Some(run) = self.runs.get_mut(&id) {
            run.saved.started_ns = time_ns;
            run.state = State::Running;
            run.changed();
        }
    }

    /// A plan took over.
    pub(crate) fn replanned(&mut self, plan: &Plan, listener: &mut dyn Listener) {
        self.take(plan);
        self.keep(listener);
    }

    fn take(&mut self, plan: &Plan) {
        self.noted_seq = None;
        self.in_force.plan = to_toml(plan);
        self.in_force.plan_id = plan.plan_id;
        self.in_force.boot_id = boot_id();
    }

    /// The deadline, since the submission, or the priority of a run was changed, or it was
    /// cancelled.
    ///
    /// # Errors
    ///
    /// Who comes next would not know of it.
    pub(crate) fn changed(
        &mut self,
        id: RunId,
        change: impl FnOnce(&mut Saved),
    ) -> Result<(), pbs_history::Error> {
        if let Some(run) = self.runs.get_mut(&id) {
            change(&mut run.saved);
            run.changed();
        }
        self.note()
    }

    /// A run has begun at that time.
    pub(crate) fn begun(&mut self, id: RunId, time_ns: u64) {
        let known = self.runs.get_mut(&id);
        if let Some(run) = known.filter(|run| run.saved.begun_ns != Some(time_ns)) {
            run.saved.begun_ns = Some(time_ns);
            run.changed();
        }
    }

    /// A run has ended at that time.
    pub(crate) fn ended(&mut self, id: RunId, time_ns: u64) {
        if let Some(run) = self.runs.get_mut(&id) {
            run.saved.ended_ns = Some(time_ns);
            run.changed();
        }
    }

    /// Hears of an event. One of another plan, whose processes may have the same
    /// numbers, is only counted.
    pub(crate) fn event(&mut self, event: &Event, ours: bool) {
        let next_seq = self.in_force.next_seq;
        if event.seq < next_seq {
            return;
        }
        let owner = self.owners.get(&event.process).filter(|_| ours).copied();
        let is_overrun = event.kind == EventKind::Overrun as u16;
        self.in_force.next_seq = if is_overrun {
            event.seq.saturating_add(event.value)
        } else {
            event.seq.saturating_add(1)
        };
        // What was lost may be of each of them.
        let is_lost = is_overrun || event.seq > next_seq;
        // Who is not ours disturbs, too.
        if let Some(overlaps) = &mut self.overlaps {
            overlaps.event(event, is_lost);
        }
        let counted = Event { process: IDLE, ..*event };
        if !is_lost {
            if let Some(run) = owner.and_then(|id| self.runs.get_mut(&id)) {
                run.collector.pass_over(event.seq);
                run.collector.event(event);
                run.is_new = true;
            }
            return;
        }
        for (&id, run) in &mut self.runs {
            run.collector.pass_over(next_seq);
            let is_its = owner == Some(id);
            run.collector.event(if is_its { event } else { &counted });
            run.is_new = true;
        }
    }

    /// Keeps what was heard, if it is time to. What cannot be kept is no reason to
    /// stop what runs.
    pub(crate) fn keep_in_time(&mut self, listener: &mut dyn Listener) {
        if self.kept.elapsed() >= KEEP_EVERY {
            self.keep(listener);
        }
    }

    /// Keeps what was heard.
    pub(crate) fn keep(&mut self, listener: &mut dyn Listener) {
        if let Err(error) = self.note() {
            self.tell_once(error, listener);
        }
        self.tell_set_aside(listener);
    }

    /// Tells of runs whose records were found damaged.
    fn tell_set_aside(&mut self, listener: &mut dyn Listener) {
        for (run, why) in self.set_aside.drain(..) {
            listener.news(News::NotFollowed(run, why));
        }
    }

    fn tell_once(&mut self, error: pbs_history::Error, listener: &mut dyn Listener) {
        if !std::mem::replace(&mut self.failed, true) {
            listener.news(News::NotRecorded(error));
        }
    }

    /// Notes all that is new. A run whose record is damaged keeps no other from being noted.
    fn note(&mut self) -> Result<(), pbs_history::Error> {
        self.kept = Instant::now();
        let recorded = self.record_owed();
        match self.note_runs() {
            Err(error) if is_of_run(&error) && self.leave_out_damaged()? > 0 => self.note_runs()?,
            noted => noted?,
        }
        for commit in self.commits.drain(..) {
            // Who waited with it has it open.
            let _ = std::fs::remove_file(commit);
        }
        self.failed &= recorded.is_err() || self.owes();
        recorded
    }

    /// Follows no run any more whose record cannot be written, since it is damaged or over. Returns
    /// the number of these.
    fn leave_out_damaged(&mut self) -> Result<usize, pbs_history::Error> {
        let ids: Vec<_> = self.runs.keys().copied().collect();
        let mut count = 0;
        for id in ids {
            let why = match self.store.set_aside_if_damaged(id, unix_ns()) {
                Ok(None) if self.store.run(id)?.state == State::Over => "it is over there".into(),
                Ok(None) => continue,
                Ok(Some(what)) => what,
                Err(error @ pbs_history::Error::NoRun(_)) => error.to_string(),
                Err(error) => return Err(error),
            };
            self.forget(id);
            self.lost += 1;
            self.set_aside.push((id, why));
            count += 1;
        }
        Ok(count)
    }

    fn note_runs(&mut self) -> Result<(), pbs_history::Error> {
        let new = self.runs.iter().filter(|(_, run)| run.is_new);
        let figures: Vec<(RunId, &OpenRun, Vec<ProcessRun>)> =
            new.map(|(&id, run)| (id, run, run.collector.figures())).collect();
        let runs = figures.iter().map(|(id, run, figures)| {
            let takeover = Some(&run.takeover).filter(|_| run.has_new_takeover);
            (*id, run.state, takeover, &**figures)
        });
        let runs: Vec<_> = runs.collect();
        let next_seq = Some(self.in_force.next_seq);
        let in_force = Some(&self.in_force).filter(|_| self.noted_seq != next_seq);
        self.store.update_runs(&runs, in_force)?;
        self.noted_seq = next_seq;
        for run in self.runs.values_mut() {
            run.is_new = false;
            run.has_new_takeover = false;
        }
        Ok(())
    }

    /// A program of the process with that number in the plan did not succeed;
    /// `task` is its number in the plan, if the program is one task.
    pub(crate) fn failed_program(&mut self, process: u32, task: Option<u32>) {
        if let Some(run) = self.of(process) {
            run.collector.failed(process, task);
        }
    }

    /// For how long a program of the process with that number in the plan had a CPU.
    pub(crate) fn ran(&mut self, process: u32, ran_ns: u64) {
        if let Some(run) = self.of(process) {
            run.collector.ran(process, ran_ns);
        }
    }

    fn of(&mut self, process: u32) -> Option<&mut OpenRun> {
        self.runs.get_mut(self.owners.get(&process)?)
    }

    /// Kind of a run's end by the figures of its tasks; `None`: the run is not followed.
    pub(crate) fn outcome_of(&self, id: RunId) -> Option<Outcome> {
        let run = self.runs.get(&id)?;
        Some(Collector::outcome(&run.collector.figures()))
    }

    /// A run is over: its figures become part of the history. The answer is what is
    /// known of it; `None`: it could not be recorded yet, and will be as soon as that can
    /// be done. `order`: its terms with its end; `usage`: its resources as a whole.
    pub(crate) fn finish(
        &mut self,
        id: RunId,
        outcome: Outcome,
        (order, usage): (Option<Order>, RunUsage),
        listener: &mut dyn Listener,
    ) -> Option<RunFigures> {
        let run = self.runs.remove(&id)?;
        self.owners.retain(|_, owner| *owner != id);
        let figures = run.collector.figures();
        let coruns = self.overlapped(&run.saved, &figures);
        if let Some(recent) = &mut self.recent {
            recent.add(&coruns);
        }
        self.make_room(listener);
        let ended_unix_ns = unix_ns();
        let has_waited = false;
        self.owed.push_back(Owed {
            id,
            order,
            ended_unix_ns,
            outcome,
            figures,
            usage,
            coruns,
            has_waited,
        });
        let recorded = self.record_owed();
        let recorded = recorded.and_then(|()| self.store.figures_of(id));
        match &recorded {
            Ok(_) => self.failed = false,
            Err(error) => self.tell_once(error.clone(), listener),
        }
        self.tell_set_aside(listener);
        recorded.ok()
    }

    /// Makes room for one more run that waits to be recorded: of the oldest, the figures are
    /// dropped, and the end stays.
    fn make_room(&mut self, listener: &mut dyn Listener) {
        let measured = |owed: &&mut Owed| !owed.figures.is_empty();
        let mut oldest = None;
        if self.owed.iter().filter(|owed| !owed.figures.is_empty()).count() >= MOST_FIGURES {
            oldest = self.owed.iter_mut().find(measured);
        }
        if let Some(oldest) = oldest {
            listener.news(News::FiguresDropped(oldest.id));
            oldest.figures = Vec::new();
            oldest.coruns = Vec::new();
        }
        if self.owed.len() >= MOST_OWED {
            let place = self.owed.iter().position(|owed| !owed.has_waited);
            if let Some(gone) = place.and_then(|place| self.owed.remove(place)) {
                listener.news(News::ResultDropped(gone.id));
                self.lost += 1;
            }
        }
    }

    /// Records the runs that are over, in the order in which they ended, as far as that
    /// can be done now.
    fn record_owed(&mut self) -> Result<(), pbs_history::Error> {
        let mut refused = None;
        while let Some(owed) = self.owed.front() {
            let end = RunEnd {
                ended_unix_ns: owed.ended_unix_ns,
                outcome: owed.outcome,
                order: owed.order.as_ref(),
                figures: &owed.figures,
                usage: owed.usage,
                coruns: &owed.coruns,
            };
            match self.store.end_run(owed.id, &end) {
                Ok(()) => {}
                // What can't ever be recorded must not keep the others from it. A damaged record
                // that says that it waits would be run again.
                Err(error) if is_of_run(&error) => {
                    let (id, is_damage) = (owed.id, is_damage(&error));
                    let ended_unix_ns = owed.ended_unix_ns;
                    if is_damage && self.store.set_aside_if_damaged(id, ended_unix_ns)?.is_none() {
                        return Err(error);
                    }
                    self.lost += 1;
                    refused = refused.or(Some(error));
                }
                Err(error) => return Err(error),
            }
            self.owed.pop_front();
        }
        self.forget_ended()?;
        refused.map_or(Ok(()), Err)
    }

    /// Forgets the oldest runs of users who have too many that are over, once in a while.
    fn forget_ended(&mut self) -> Result<(), pbs_history::Error> {
        if self.store.is_to_forget() {
            let account_of = &self.account_of;
            self.store.forget(unix_ns(), |uid| account_of.of(uid))?;
        }
        Ok(())
    }

    /// Returns the tasks that ran beside the completed tasks of a run.
    fn overlapped(&mut self, saved: &Saved, figures: &[ProcessRun]) -> Vec<Corun> {
        let Some(overlaps) = &mut self.overlaps else {
            return Vec::new();
        };
        let mut coruns = overlaps.finish(&saved.numbers);
        let processes = saved.job.processes.iter().map(|process| process.id);
        let numbers: BTreeMap<_, _> = saved.numbers.iter().zip(processes).collect();
        let tasks = figures.iter().flat_map(|process| {
            let ended = |task: &&TaskRun| task.outcome == Outcome::Complete;
            let ended = process.tasks.iter().filter(ended);
            ended.map(|task| (process.process, task.task))
        });
        let complete: BTreeSet<_> = tasks.collect();
        coruns.retain(|((number, _), corun)| {
            let task = corun.sample.victim.task;
            let process = numbers.get(number);
            process.is_some_and(|&process| complete.contains(&(process, task)))
        });
        if coruns.len() > MOST_CORUNS {
            coruns.sort_by_key(|(_, corun)| std::cmp::Reverse(corun.sample.ran_ns));
            coruns.truncate(MOST_CORUNS);
        }
        coruns.into_iter().map(|(_, corun)| corun).collect()
    }

    /// A run is not followed any more, and nothing of it counts.
    pub(crate) fn forget(&mut self, id: RunId) {
        let Some(run) = self.runs.remove(&id) else {
            return;
        };
        self.owners.retain(|_, owner| *owner != id);
        if let Some(overlaps) = &mut self.overlaps {
            overlaps.finish(&run.saved.numbers);
        }
    }

    /// A run whose programs were not let go waits once more.
    pub(crate) fn put_back(&mut self, id: RunId, request: String) -> Result<(), Error> {
        self.forget(id);
        let takeover = Takeover { request, ..Takeover::default() };
        Ok((self.store).update_run(id, State::Planned, &takeover, &[])?)
    }

    /// Closes a run that nobody follows any more, with what the kernel still holds
    /// of it, if `saved` says how it stands there. `end` makes of the outcome by its figures that
    /// of the run, and what is recorded beside it. Both are returned.
    pub(crate) fn close(
        &mut self,
        run: &RunFigures,
        takeover: &Takeover,
        saved: Option<&Saved>,
        device: &Device,
        end: impl FnOnce(Outcome) -> (Outcome, Ending),
    ) -> Result<(Outcome, Ending), Error> {
        let mut figures = run.processes.clone();
        if let Some(saved) = saved {
            let next_seq = takeover.first_seq.max(self.in_force.next_seq);
            let mut collector = Collector::resume(next_seq, saved.expected(), &run.processes);
            let mut batch = vec![Event::default(); BATCH];
            device.seek(next_seq).map_err(Error::refused("events"))?;
            loop {
                let read = device.read_events(&mut batch);
                let events = read.map_err(|error| Error::refused("events")(error.into()))?;
                if events == 0 {
                    break;
                }
                batch[..events].iter().for_each(|event| collector.event(event));
            }
            figures = collector.figures();
        }
        let outcome = match figures.as_slice() {
            [] => Outcome::Unknown,
            figures => Collector::outcome(figures),
        };
        let id = run.run.id;
        let noted = self.order(id)?.as_ref().and_then(Noted::of);
        let (outcome, ending) = end(outcome);
        let order = noted.map(|noted| noted.over(ending.clone()).order());
        let end =
            RunEnd { order: order.as_ref(), figures: &figures, ..RunEnd::new(unix_ns(), outcome) };
        self.store.end_run(id, &end)?;
        Ok((outcome, ending))
    }

    /// Closes a run that waits, or whose programs were not let go. `order`: its terms with its
    /// end, if it was ordered.
    pub(crate) fn close_unrun(
        &mut self,
        id: RunId,
        outcome: Outcome,
        order: Option<&Order>,
    ) -> Result<(), Error> {
        self.forget(id);
        self.store.end_run(id, &RunEnd { order, ..RunEnd::new(unix_ns(), outcome) })?;
        // The run is over, whatever becomes of others.
        let _ = self.forget_ended();
        Ok(())
    }

    /// Closes a run that is over before its programs were let go. If that can't be recorded now, it is
    /// recorded as soon as that can be done: the next service would run it otherwise.
    pub(crate) fn close_waiting(
        &mut self,
        id: RunId,
        outcome: Outcome,
        order: Option<Order>,
        listener: &mut dyn Listener,
    ) {
        let Err(error) = self.close_unrun(id, outcome, order.as_ref()) else {
            return;
        };
        self.owed.push_back(Owed {
            id,
            order,
            ended_unix_ns: unix_ns(),
            outcome,
            figures: Vec::new(),
            usage: RunUsage::default(),
            coruns: Vec::new(),
            has_waited: true,
        });
        if let Error::History(error) = error {
            self.tell_once(error, listener);
        }
    }

    /// Whether all that happened could be kept, since this planner began.
    pub(crate) fn is_whole(&self) -> bool {
        !self.failed && self.lost == 0
    }

    /// Results that are not recorded.
    pub(crate) fn unrecorded(&self) -> Unrecorded {
        let waiting = self.owed.len() as u64;
        Unrecorded { fails: self.failed, waiting, lost: self.lost }
    }
}

/// Whether the record of a run was refused for what it is, and not for want of a disk that works.
/// Damage may also be elsewhere in the file.
fn is_of_run(error: &pbs_history::Error) -> bool {
    use pbs_history::Error as E;
    let is_refused =
        matches!(error, E::NoRun(_) | E::WrongState(..) | E::TooLarge(_) | E::Twice(_));
    is_refused || is_damage(error)
}

fn is_damage(error: &pbs_history::Error) -> bool {
    matches!(error, pbs_history::Error::Damaged(..))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pbs_job::{job_from_toml, machine_from_toml, Machine};
    use pbs_plan::{from_toml, Config};

    struct Nobody;

    impl Listener for Nobody {}

    fn saved(name: &str, number: u32) -> Saved {
        let job = format!(
            "name = \"{name}\"\ndeadline_ns = 1000\n[[process]]\nid = 1\nmemory_bytes = 4096\n\
             command = [\"true\"]\ntasks = [5]\n"
        );
        Saved {
            job: job_from_toml(&job).unwrap(),
            submitted_ns: 0,
            zero_unix_ns: None,
            numbers: vec![number],
            machine: Machine::default(),
            commit: "start".into(),
            started_ns: 0,
            begun_ns: None,
            ended_ns: None,
            cancelled: None,
        }
    }

    /// Starts and programs of subordinate users count to their owner, and those of nobody to nobody.
    #[test]
    fn jobs_of_subordinate_users_count_to_their_owner() {
        let directory = std::env::temp_dir().join(format!("pbs-accounts-{}", std::process::id()));
        let path = directory.join("history.db");
        let account_of = AccountOf::new(|uid| if uid >= 100_000 { 1000 } else { uid });
        let ledger = Ledger::open(&path, (EndedLimits::DEFAULT, account_of), &mut Nobody).unwrap();
        let accounts = [None, Some(7), Some(100_007)].map(|uid| ledger.account(uid));
        assert_eq!(accounts, [None, Some(7), Some(1000)]);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// Files of starts that no planner has ended do not stay, except those that are needed still.
    #[test]
    fn files_of_starts_do_not_stay() {
        let directory = std::env::temp_dir().join(format!("pbs-starts-{}", std::process::id()));
        let path = directory.join("history.db");
        let mut ledger =
            Ledger::open(&path, (EndedLimits::DEFAULT, AccountOf::default()), &mut Nobody).unwrap();
        let names = ["start-7-1000", "start-8", "start-9-0", "log"];
        let files = names.map(|name| ledger.beside(name));
        for file in &files {
            std::fs::write(file, "").unwrap();
        }
        ledger.committed(files[2].clone());
        ledger.remove_starts(&[&files[1]]);
        assert_eq!(files.map(|file| file.exists()), [false, true, true, true]);
        assert!(path.exists());
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// A run that comes to others that run is not taken for one that runs before its
    /// programs are let go: who took over would wait for it for ever.
    #[test]
    fn runs_begin_one_by_one() {
        let plan = "[[process]]\nid = 1\ntasks = [5]\n[[cpu]]\ncpu = 0\nslots = [1]\n";
        let plan = from_toml(plan).unwrap();
        let directory = std::env::temp_dir().join(format!("pbs-ledger-{}", std::process::id()));
        let mut ledger = Ledger::open(
            &directory.join("history.db"),
            (EndedLimits::DEFAULT, AccountOf::default()),
            &mut Nobody,
        )
        .unwrap();
        let first = ledger.follow(None, saved("first", 1), Kind::Plan, "", 0);
        let first = first.unwrap();
        ledger.planned(&plan).unwrap();
        assert_eq!(ledger.store.run(first).unwrap().state, State::Planned);
        ledger.released(first, 0);
        ledger.keep(&mut Nobody);
        let second = ledger.follow(None, saved("second", 2), Kind::Plan, "", 7);
        let second = second.unwrap();
        ledger.planned(&plan).unwrap();
        let states = [first, second].map(|run| ledger.store.run(run).unwrap().state);
        assert_eq!(states, [State::Running, State::Planned]);
        ledger.released(second, 0);
        ledger.keep(&mut Nobody);
        assert_eq!(ledger.store.run(second).unwrap().state, State::Running);
        // The record of the plan in force follows the events, and the plans.
        let recorded = |ledger: &Ledger| ledger.store.in_force().unwrap().unwrap();
        assert_eq!(recorded(&ledger), ledger.in_force);
        ledger.event(&Event { seq: 7, process: IDLE, ..Event::default() }, false);
        ledger.keep(&mut Nobody);
        assert_eq!(recorded(&ledger).next_seq, 8);
        ledger.planned(&Plan { plan_id: 9, ..plan }).unwrap();
        assert_eq!(recorded(&ledger), ledger.in_force);
        assert_eq!(recorded(&ledger).plan_id, 9);
        assert!(ledger.is_whole());
        std::fs::remove_dir_all(&directory).unwrap();
    }

    fn ledger(directory: &Path) -> Ledger {
        let file = directory.join("history.db");
        Ledger::open(&file, (EndedLimits::DEFAULT, AccountOf::default()), &mut Nobody).unwrap()
    }

    /// A damaged record of a run keeps no other run from being started and recorded. It is told once.
    #[test]
    fn a_damaged_record_is_in_nobodys_way() {
        #[derive(Default)]
        struct Hears(Vec<String>);
        impl Listener for Hears {
            fn news(&mut self, news: News) {
                self.0.push(news.to_string());
            }
        }
        let directory = std::env::temp_dir().join(format!("pbs-bad-{}", std::process::id()));
        for damage in [
            "UPDATE run SET submitted_unix_ns = 77 WHERE id = 1",
            "UPDATE takeover SET request = 'other' WHERE run = 1",
            "DELETE FROM run WHERE id = 1",
        ] {
            let mut ledger = ledger(&directory);
            let first = ledger.follow(None, saved("first", 1), Kind::Plan, "", 0).unwrap();
            let second = ledger.follow(None, saved("second", 2), Kind::Plan, "", 0).unwrap();
            ledger.keep(&mut Nobody);
            let connection = rusqlite::Connection::open(directory.join("history.db")).unwrap();
            connection.pragma_update(None, "foreign_keys", "ON").unwrap();
            connection.execute_batch(damage).unwrap();
            drop(connection);
            let mut hears = Hears::default();
            for id in [first, second] {
                ledger.released(id, 5);
            }
            ledger.keep(&mut hears);
            ledger.keep(&mut hears);
            assert_eq!(ledger.store.run(second).unwrap().state, State::Running, "{damage}");
            // The data for a take-over are not written again and again, and not read either.
            let is_read = !damage.contains("takeover");
            assert_eq!(hears.0.len(), usize::from(is_read), "{damage}: {:?}", hears.0);
            assert!(
                hears.0.iter().all(|it| it.starts_with("the record of run 1")),
                "{:?}",
                hears.0
            );
            let third = ledger.follow(None, saved("third", 3), Kind::Plan, "", 0).unwrap();
            ledger.keep(&mut hears);
            assert_eq!(ledger.store.run(third).unwrap().state, State::Planned);
            ledger.finish(second, Outcome::Complete, Default::default(), &mut hears).unwrap();
            drop(ledger);
            std::fs::remove_dir_all(&directory).unwrap();
        }
    }

    /// A run that is over and whose record is damaged is set aside, and the next one is recorded.
    #[test]
    fn an_end_with_a_damaged_record_is_in_nobodys_way() {
        let directory = std::env::temp_dir().join(format!("pbs-bad-end-{}", std::process::id()));
        let mut ledger = ledger(&directory);
        let [first, second] = [("first", 1), ("second", 2)]
            .map(|(name, at)| ledger.follow(None, saved(name, at), Kind::Plan, "", 0).unwrap());
        ledger.keep(&mut Nobody);
        let connection = rusqlite::Connection::open(directory.join("history.db")).unwrap();
        connection.execute_batch("UPDATE run SET submitted_unix_ns = 77 WHERE id = 1").unwrap();
        drop(connection);
        let usage = Default::default;
        assert!(ledger.finish(first, Outcome::Complete, usage(), &mut Nobody).is_none());
        assert!(ledger.finish(second, Outcome::Complete, usage(), &mut Nobody).is_some());
        let outcomes = [first, second].map(|id| ledger.store.run(id).unwrap().outcome);
        assert_eq!(outcomes, [Some(Outcome::Unknown), Some(Outcome::Complete)]);
        assert_eq!(ledger.unrecorded(), Unrecorded { fails: false, waiting: 0, lost: 1 });
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// The data for a take-over are written when they have changed, and not with each event.
    #[test]
    fn only_new_data_for_a_take_over_are_written() {
        let directory = std::env::temp_dir().join(format!("pbs-same-{}", std::process::id()));
        let mut ledger = ledger(&directory);
        let id = ledger.follow(None, saved("first", 1), Kind::Plan, "", 0).unwrap();
        ledger.keep(&mut Nobody);
        let connection = rusqlite::Connection::open(directory.join("history.db")).unwrap();
        let marked = || {
            let sql = "SELECT count(*) FROM takeover WHERE boot_id = 'mark'";
            connection.query_row(sql, [], |row| row.get::<_, u64>(0)).unwrap()
        };
        connection.execute_batch("UPDATE takeover SET boot_id = 'mark'").unwrap();
        let event = Event { seq: 7, process: 1, ..Event::default() };
        ledger.event(&event, true);
        assert!(ledger.runs[&id].is_new);
        ledger.keep(&mut Nobody);
        assert_eq!(marked(), 1);
        ledger.released(id, 9);
        ledger.keep(&mut Nobody);
        assert_eq!(marked(), 0);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// Figures are dropped before ends are, where nothing can be recorded for long.
    #[test]
    fn ends_wait_longer_than_figures() {
        let directory = std::env::temp_dir().join(format!("pbs-many-{}", std::process::id()));
        let mut ledger = ledger(&directory);
        let figures = ledger.follow(None, saved("first", 1), Kind::Plan, "", 0).unwrap();
        let figures = ledger.runs[&figures].collector.figures();
        assert!(!figures.is_empty());
        for id in 0..MOST_FIGURES as u64 + 2 {
            ledger.make_room(&mut Nobody);
            ledger.owed.push_back(Owed {
                id: RunId(id),
                order: None,
                ended_unix_ns: 5,
                outcome: Outcome::Complete,
                figures: figures.clone(),
                usage: RunUsage::default(),
                coruns: Vec::new(),
                has_waited: false,
            });
        }
        assert_eq!(ledger.owed.len(), MOST_FIGURES + 2);
        let without = ledger.owed.iter().filter(|owed| owed.figures.is_empty());
        assert_eq!(without.map(|owed| owed.id.0).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(ledger.lost, 0);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// A run whose end can never be recorded is reported, and others are recorded after it.
    #[test]
    fn an_end_that_cannot_be_recorded_is_in_nobodys_way() {
        let directory = std::env::temp_dir().join(format!("pbs-owed-{}", std::process::id()));
        let mut ledger = Ledger::open(
            &directory.join("history.db"),
            (EndedLimits::DEFAULT, AccountOf::default()),
            &mut Nobody,
        )
        .unwrap();
        let new = |job| NewRun {
            job,
            kind: Kind::Plan,
            submitted_unix_ns: 0,
            request: "",
            reservation: "",
            order: None,
        };
        let id = ledger.take_in(&[new("second")]).unwrap()[0];
        let owed = |id| Owed {
            id,
            order: None,
            ended_unix_ns: 5,
            outcome: Outcome::Cancelled,
            figures: Vec::new(),
            usage: RunUsage::default(),
            coruns: Vec::new(),
            has_waited: true,
        };
        // The record of this one is gone.
        ledger.owed.push_back(owed(RunId(id.0 + 1)));
        ledger.owed.push_back(owed(id));
        ledger.keep(&mut Nobody);
        assert!(!ledger.is_whole() && !ledger.owes());
        assert_eq!(ledger.unrecorded(), Unrecorded { fails: true, waiting: 0, lost: 1 });
        // The next one can be recorded.
        ledger.keep(&mut Nobody);
        assert_eq!(ledger.unrecorded(), Unrecorded { fails: false, waiting: 0, lost: 1 });
        let run = ledger.store.run(id).unwrap();
        assert_eq!((run.state, run.outcome), (State::Over, Some(Outcome::Cancelled)));
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// Two runs on two CPUs: who ran beside each of their tasks comes with its figures,
    /// but of a task that did not come to its end, or of which events were lost.
    #[test]
    fn co_runners_are_recorded_with_the_run() {
        let machine = "[[node]]\nname = \"n\"\nmemory_bytes = 1\nrate_insns_per_s = 1000\n\
                       cores = [\"a\", \"b\"]\n[[sharing]]\nlevel = \"l2\"\ncpus = [0, 1]\n";
        let machine = machine_from_toml(machine).unwrap();
        let config = Config { window_unallocated_ns: 0, ..Config::DEFAULT };
        let directory = std::env::temp_dir().join(format!("pbs-beside-{}", std::process::id()));
        let kept = |how: &str| {
            let file = directory.join(format!("{how}.db"));
            let mut ledger =
                Ledger::open(&file, (EndedLimits::DEFAULT, AccountOf::default()), &mut Nobody)
                    .unwrap();
            ledger.watch(Overlaps::new(&machine, &config, false).unwrap());
            ledger.hold_recent().unwrap();
            let runs = [("first", 1), ("second", 2)].map(|(name, number)| {
                let saved = saved(name, number);
                let task = saved.expected()[0].tasks[0].number;
                let run = ledger.follow(None, saved, Kind::Plan, "", 5).unwrap();
                ledger.released(run, 0);
                (run, number, task)
            });
            let mut seq = 5;
            let mut event = |kind: EventKind, place: usize, time_ns, value| {
                let (_, process, task) = runs[place];
                let event = Event {
                    seq,
                    kind: kind as u16,
                    cpu: place as u32,
                    time_ns,
                    process,
                    task,
                    value,
                    retired_insns: if kind == EventKind::TaskEnded { 7 } else { 0 },
                    ..Event::default()
                };
                seq += 1;
                ledger.event(&event, true);
            };
            event(EventKind::Attached, 0, 90, 0);
            event(EventKind::Attached, 1, 90, 0);
            event(EventKind::Grant, 0, 100, 0);
            event(EventKind::Grant, 1, 130, 0);
            if how == "lost" {
                event(EventKind::Overrun, 0, 0, 1);
            }
            event(EventKind::TaskEnded, 0, 180, 0);
            let left = u64::from(how == "killed");
            event(EventKind::ProcessEnded, 0, 180, left);
            event(EventKind::TaskEnded, 1, 190, 0);
            event(EventKind::ProcessEnded, 1, 190, 0);
            for (run, _, _) in runs {
                ledger
                    .finish(run, ledger.outcome_of(run).unwrap(), Default::default(), &mut Nobody)
                    .unwrap();
            }
            // Those in memory are the same, and are there without a look at the file.
            let recent = ledger.recent.as_mut().and_then(Recent::take).unwrap_or_default();
            let recent: Vec<Corun> = recent.iter().map(|corun| Corun::clone(corun)).collect();
            assert_eq!(recent, ledger.store.coruns().unwrap());
            let coruns = recent.into_iter().map(|corun| {
                let beside = corun.sample.beside.iter();
                let beside = beside.map(|it| (it.neighbours.len(), it.duration_ns));
                (corun.sample.insns, beside.collect::<Vec<_>>())
            });
            coruns.collect::<Vec<_>>()
        };
        // Their command is the same, and so they are.
        let first = (7, vec![(0, 30), (1, 50)]);
        let second = (7, vec![(0, 10), (1, 50)]);
        assert_eq!(kept("whole"), [first, second.clone()]);
        assert_eq!(kept("killed"), [second]);
        assert_eq!(kept("lost"), []);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
