// SPDX-License-Identifier: GPL-2.0
//! What is kept of the runs while they run: in the history, so that what they
//! used is known to the next one, and so that another pbsctl can take over.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pbs_history::{
    boot_id, Collector, Error, JobHistory, Kind, NewRun, Options, Outcome, Run, RunFigures, RunId,
    State, Store, Takeover,
};
use pbs_plan::{to_toml, Plan};
use pbs_uapi::{Device, Event, IDLE};

use super::BATCH;
use crate::failure::Failure;
use crate::jobs::Saved;

/// What was heard of the node is kept this often. Who takes over reads what the
/// kernel still holds of what came after.
const KEEP_EVERY: Duration = Duration::from_secs(1);

/// The history of the planner, and its runs that are not over.
#[derive(Debug)]
pub(super) struct Ledger {
    store: Store,
    runs: Vec<OpenRun>,
    /// [`State::Running`] once the programs were let go.
    state: State,
    kept: Instant,
    /// Why what happened is no longer kept.
    failed: Option<Error>,
}

/// A run that is under way.
#[derive(Debug)]
struct OpenRun {
    id: RunId,
    collector: Collector,
    takeover: Takeover,
    saved: Saved,
}

impl Ledger {
    /// Opens the history, or makes it, and claims it: only one planner may write.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let mut store = open(path)?;
        store.claim_planner()?;
        Ok(Self {
            store,
            runs: Vec::new(),
            state: State::Planned,
            kept: Instant::now(),
            failed: None,
        })
    }

    /// What the runs of a job predict.
    pub(super) fn history(&self, job: &str) -> Result<JobHistory, Failure> {
        Ok(self.store.history(job)?)
    }

    /// The runs that are not over, with what is needed to take them over.
    pub(super) fn open_runs(&self) -> Result<Vec<(RunFigures, Takeover)>, Failure> {
        let mut open = Vec::new();
        for (run, takeover) in open_runs(&self.store)? {
            open.push((self.store.figures_of(run.id)?, takeover));
        }
        Ok(open)
    }

    /// The runs that wait, as [`submitted`] has them.
    pub(super) fn submitted(&self) -> Result<Vec<(RunId, u64, String)>, Failure> {
        submitted(&self.store)
    }

    /// Notes a run whose plan is to be written, with all that is needed to take it
    /// over, and follows it from the event of that number on. `id` is its number if
    /// it was submitted before.
    pub(super) fn follow(
        &mut self,
        id: Option<RunId>,
        saved: Saved,
        kind: Kind,
        request: &str,
        next_seq: u64,
    ) -> Result<RunId, Failure> {
        let takeover = Takeover {
            request: request.into(),
            reservation: saved.to_text(),
            boot_id: boot_id(),
            next_seq,
            ..Takeover::default()
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
                };
                self.store.begin_run(&new)?
            }
        };
        (self.store).update_run(id, State::Planned, &takeover, &[])?;
        self.runs.push(OpenRun {
            id,
            collector: Collector::new(next_seq, saved.expected()),
            takeover,
            saved,
        });
        Ok(id)
    }

    /// Goes on to follow a run that another pbsctl has followed.
    pub(super) fn go_on(&mut self, saved: Saved, takeover: Takeover, before: &RunFigures) {
        let expected = saved.expected();
        let collector = Collector::resume(takeover.next_seq, expected, &before.processes);
        self.state = State::Running;
        self.runs.push(OpenRun {
            id: before.run.id,
            collector,
            takeover,
            saved,
        });
    }

    /// A plan is in force, with all runs that are under way.
    ///
    /// # Errors
    ///
    /// Who comes next would not know of it.
    pub(super) fn planned(&mut self, plan: &Plan) -> Result<(), Failure> {
        self.take(plan);
        Ok(self.note()?)
    }

    /// The programs were let go.
    pub(super) fn released(&mut self) {
        self.state = State::Running;
        self.keep();
    }

    /// A plan took over.
    pub(super) fn replanned(&mut self, plan: &Plan) {
        self.take(plan);
        self.keep();
    }

    fn take(&mut self, plan: &Plan) {
        let text = to_toml(plan);
        for run in &mut self.runs {
            run.takeover.plan.clone_from(&text);
            run.takeover.plan_id = plan.plan_id;
            run.takeover.dealt_seq = plan.dealt_seq;
        }
    }

    /// A run has ended at that time.
    pub(super) fn ended(&mut self, id: RunId, time_ns: u64) {
        for run in self.runs.iter_mut().filter(|run| run.id == id) {
            run.saved.ended_ns = Some(time_ns);
            run.takeover.reservation = run.saved.to_text();
        }
    }

    /// Hears of an event. One of another plan, whose processes may have the same
    /// numbers, is only counted.
    pub(super) fn event(&mut self, event: &Event, ours: bool) {
        let counted = Event {
            process: IDLE,
            ..*event
        };
        for run in &mut self.runs {
            run.collector.event(if ours { event } else { &counted });
        }
    }

    /// Keeps what was heard, if it is time to. What cannot be kept is no reason to
    /// stop what runs.
    pub(super) fn keep_in_time(&mut self) {
        if self.kept.elapsed() >= KEEP_EVERY {
            self.keep();
        }
    }

    fn keep(&mut self) {
        if let Err(error) = self.note() {
            tell_once(&mut self.failed, error);
        }
    }

    fn note(&mut self) -> Result<(), Error> {
        self.kept = Instant::now();
        for run in &mut self.runs {
            run.takeover.next_seq = run.collector.next_seq();
        }
        let figures: Vec<_> = self
            .runs
            .iter()
            .map(|run| run.collector.figures())
            .collect();
        let runs = self.runs.iter().zip(&figures);
        let runs = runs.map(|(run, figures)| (run.id, &run.takeover, figures.as_slice()));
        let runs: Vec<_> = runs.collect();
        self.store.update_runs(self.state, &runs)
    }

    /// A program of the process with that number in the plan did not succeed;
    /// `task` is its number in the plan, if the program is one task.
    pub(super) fn failed_program(&mut self, process: u32, task: Option<u32>) {
        for run in &mut self.runs {
            run.collector.failed(process, task);
        }
    }

    /// For how long a program of the process with that number in the plan had a CPU.
    pub(super) fn ran(&mut self, process: u32, ran_ns: u64) {
        for run in &mut self.runs {
            run.collector.ran(process, ran_ns);
        }
    }

    /// The runs are over: their figures become part of the history. The answer is
    /// what is known of each; `None`: it could not be recorded.
    pub(super) fn finish(&mut self) -> Vec<(RunId, Option<RunFigures>)> {
        let now_ns = unix_ns();
        let mut finished = Vec::new();
        for run in std::mem::take(&mut self.runs) {
            let figures = run.collector.figures();
            let outcome = Collector::outcome(&figures);
            let recorded = self.record(run.id, now_ns, outcome, &figures);
            if let Err(error) = &recorded {
                tell_once(&mut self.failed, error.clone());
            }
            finished.push((run.id, recorded.ok()));
        }
        finished
    }

    fn record(
        &mut self,
        id: RunId,
        now_ns: u64,
        outcome: Outcome,
        figures: &[pbs_history::ProcessRun],
    ) -> Result<RunFigures, Error> {
        self.store.finish_run(id, now_ns, outcome, figures)?;
        self.store.figures_of(id)
    }

    /// Closes a run that nobody follows any more, with what the kernel still holds
    /// of it, if `saved` says how it stands there.
    pub(super) fn close(
        &mut self,
        run: &RunFigures,
        takeover: &Takeover,
        saved: Option<&Saved>,
        device: &Device,
    ) -> Result<(), Failure> {
        let mut figures = run.processes.clone();
        if let Some(saved) = saved {
            let mut collector =
                Collector::resume(takeover.next_seq, saved.expected(), &run.processes);
            let mut batch = vec![Event::default(); BATCH];
            let refused = |refused| Failure::refused("events", &refused);
            device.seek(takeover.next_seq).map_err(refused)?;
            while let Some(events) = device.read_events(&mut batch).ok().filter(|&n| n > 0) {
                batch[..events]
                    .iter()
                    .for_each(|event| collector.event(event));
            }
            figures = collector.figures();
        }
        let outcome = match figures.as_slice() {
            [] => Outcome::Unknown,
            figures => Collector::outcome(figures),
        };
        Ok((self.store).finish_run(run.run.id, unix_ns(), outcome, &figures)?)
    }

    /// Closes a run that was submitted and can't be planned.
    pub(super) fn decline(&mut self, id: RunId) -> Result<(), Failure> {
        decline(&mut self.store, id)
    }

    /// Whether all that happened could be kept.
    pub(super) fn is_whole(&self) -> bool {
        self.failed.is_none()
    }
}

/// Notes a run that is submitted now and waits.
pub(crate) fn begin(
    store: &mut Store,
    job: &str,
    kind: Kind,
    request: &str,
) -> Result<RunId, Failure> {
    let run = NewRun {
        job,
        kind,
        submitted_unix_ns: unix_ns(),
        request,
        reservation: "",
    };
    Ok(store.begin_run(&run)?)
}

/// Opens the history, or makes it and the directory that it is in.
pub(crate) fn open(path: &Path) -> Result<Store, Failure> {
    if let Some(directory) = path.parent().filter(|path| !path.as_os_str().is_empty()) {
        fs::create_dir_all(directory).map_err(|error| Failure::file(directory, &error))?;
    }
    Ok(Store::open(path, Options::DEFAULT)?)
}

/// The runs that are not over, the oldest first.
fn open_runs(store: &Store) -> Result<Vec<(Run, Takeover)>, Failure> {
    let mut open = Vec::new();
    for run in store.runs(None)? {
        if run.state == State::Over {
            continue;
        }
        if let Some(takeover) = store.takeover(run.id)? {
            open.push((run, takeover));
        }
    }
    Ok(open)
}

/// The runs that were submitted and wait, the oldest first: number, how long ago that
/// was, and the job as it was requested.
pub(crate) fn submitted(store: &Store) -> Result<Vec<(RunId, u64, String)>, Failure> {
    let now_ns = unix_ns();
    let open = open_runs(store)?.into_iter();
    let waiting = open.filter(|(run, takeover)| is_submitted(run, takeover));
    let waiting = waiting.map(|(run, takeover)| {
        let ago_ns = now_ns.saturating_sub(run.submitted_unix_ns);
        (run.id, ago_ns, takeover.request)
    });
    Ok(waiting.collect())
}

/// Has a run that waits wait no more.
pub(crate) fn decline(store: &mut Store, id: RunId) -> Result<(), Failure> {
    Ok(store.finish_run(id, unix_ns(), Outcome::Declined, &[])?)
}

/// Whether a run waits to be planned.
pub(crate) fn is_submitted(run: &Run, takeover: &Takeover) -> bool {
    run.state == State::Planned && takeover.reservation.is_empty()
}

fn tell_once(told: &mut Option<Error>, error: Error) {
    if told.is_none() {
        eprintln!("pbsctl: {error}. What runs goes on, but is not recorded");
        *told = Some(error);
    }
}

/// Since 1970.
fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}
