// SPDX-License-Identifier: GPL-2.0
//! What is kept of the runs while they run: in the history, so that what they
//! used is known to the next one, and so that another planner can take over.

use std::path::Path;
use std::time::{Duration, Instant};

use pbs_history::{
    boot_id, Collector, JobHistory, Kind, NewRun, Outcome, RunFigures, RunId, State, Store,
    Takeover,
};
use pbs_plan::{to_toml, Plan};
use pbs_uapi::{Device, Event, IDLE};

use crate::node::BATCH;
use crate::queue::{self, decline, open_runs, unix_ns};
use crate::saved::Saved;
use crate::{Error, Listener, News};

/// What was heard of the node is kept this often. Who takes over reads what the
/// kernel still holds of what came after.
const KEEP_EVERY: Duration = Duration::from_secs(1);

/// The history of the planner, and its runs that are not over.
#[derive(Debug)]
pub(crate) struct Ledger {
    store: Store,
    runs: Vec<OpenRun>,
    kept: Instant,
    /// Some of what happened could not be kept.
    failed: bool,
}

/// A run that is under way.
#[derive(Debug)]
struct OpenRun {
    id: RunId,
    /// [`State::Running`] once its programs were let go.
    state: State,
    collector: Collector,
    takeover: Takeover,
    saved: Saved,
}

impl Ledger {
    /// Opens the history, or makes it, and claims it: only one planner may write.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let mut store = queue::open(path)?;
        store.claim_planner()?;
        Ok(Self {
            store,
            runs: Vec::new(),
            kept: Instant::now(),
            failed: false,
        })
    }

    /// What the runs of a job predict.
    pub(crate) fn history(&self, job: &str) -> Result<JobHistory, Error> {
        Ok(self.store.history(job)?)
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

    /// Notes a run whose plan is to be written, with all that is needed to take it
    /// over, and follows it from the event of that number on. `id` is its number if
    /// it was submitted before.
    pub(crate) fn follow(
        &mut self,
        id: Option<RunId>,
        saved: Saved,
        kind: Kind,
        request: &str,
        next_seq: u64,
    ) -> Result<RunId, Error> {
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
            state: State::Planned,
            collector: Collector::new(next_seq, saved.expected()),
            takeover,
            saved,
        });
        Ok(id)
    }

    /// Goes on to follow a run that another planner has followed.
    pub(crate) fn go_on(&mut self, saved: Saved, takeover: Takeover, before: &RunFigures) {
        let expected = saved.expected();
        let collector = Collector::resume(takeover.next_seq, expected, &before.processes);
        self.runs.push(OpenRun {
            id: before.run.id,
            state: State::Running,
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
    pub(crate) fn planned(&mut self, plan: &Plan) -> Result<(), pbs_history::Error> {
        self.take(plan);
        self.note()
    }

    /// The programs of all runs were let go.
    pub(crate) fn released(&mut self, listener: &mut dyn Listener) {
        for run in &mut self.runs {
            run.state = State::Running;
        }
        self.keep(listener);
    }

    /// A plan took over.
    pub(crate) fn replanned(&mut self, plan: &Plan, listener: &mut dyn Listener) {
        self.take(plan);
        self.keep(listener);
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
    pub(crate) fn ended(&mut self, id: RunId, time_ns: u64) {
        for run in self.runs.iter_mut().filter(|run| run.id == id) {
            run.saved.ended_ns = Some(time_ns);
            run.takeover.reservation = run.saved.to_text();
        }
    }

    /// Hears of an event. One of another plan, whose processes may have the same
    /// numbers, is only counted.
    pub(crate) fn event(&mut self, event: &Event, ours: bool) {
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
    pub(crate) fn keep_in_time(&mut self, listener: &mut dyn Listener) {
        if self.kept.elapsed() >= KEEP_EVERY {
            self.keep(listener);
        }
    }

    fn keep(&mut self, listener: &mut dyn Listener) {
        if let Err(error) = self.note() {
            self.tell_once(error, listener);
        }
    }

    fn tell_once(&mut self, error: pbs_history::Error, listener: &mut dyn Listener) {
        if !std::mem::replace(&mut self.failed, true) {
            listener.news(News::NotRecorded(error));
        }
    }

    fn note(&mut self) -> Result<(), pbs_history::Error> {
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
        let runs = runs.map(|(run, figures)| (run.id, run.state, &run.takeover, &**figures));
        let runs: Vec<_> = runs.collect();
        self.store.update_runs(&runs)
    }

    /// A program of the process with that number in the plan did not succeed;
    /// `task` is its number in the plan, if the program is one task.
    pub(crate) fn failed_program(&mut self, process: u32, task: Option<u32>) {
        for run in &mut self.runs {
            run.collector.failed(process, task);
        }
    }

    /// For how long a program of the process with that number in the plan had a CPU.
    pub(crate) fn ran(&mut self, process: u32, ran_ns: u64) {
        for run in &mut self.runs {
            run.collector.ran(process, ran_ns);
        }
    }

    /// The runs are over: their figures become part of the history. The answer is
    /// what is known of each; `None`: it could not be recorded.
    pub(crate) fn finish(
        &mut self,
        listener: &mut dyn Listener,
    ) -> Vec<(RunId, Option<RunFigures>)> {
        let now_ns = unix_ns();
        let mut finished = Vec::new();
        for run in std::mem::take(&mut self.runs) {
            let figures = run.collector.figures();
            let outcome = Collector::outcome(&figures);
            let recorded = self.record(run.id, now_ns, outcome, &figures);
            if let Err(error) = &recorded {
                self.tell_once(error.clone(), listener);
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
    ) -> Result<RunFigures, pbs_history::Error> {
        self.store.finish_run(id, now_ns, outcome, figures)?;
        self.store.figures_of(id)
    }

    /// Closes a run that nobody follows any more, with what the kernel still holds
    /// of it, if `saved` says how it stands there.
    pub(crate) fn close(
        &mut self,
        run: &RunFigures,
        takeover: &Takeover,
        saved: Option<&Saved>,
        device: &Device,
    ) -> Result<(), Error> {
        let mut figures = run.processes.clone();
        if let Some(saved) = saved {
            let mut collector =
                Collector::resume(takeover.next_seq, saved.expected(), &run.processes);
            let mut batch = vec![Event::default(); BATCH];
            device
                .seek(takeover.next_seq)
                .map_err(Error::refused("events"))?;
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
    pub(crate) fn decline(&mut self, id: RunId) -> Result<(), Error> {
        decline(&mut self.store, id)
    }

    /// Whether all that happened could be kept.
    pub(crate) fn is_whole(&self) -> bool {
        !self.failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pbs_job::{job_from_toml, Machine};
    use pbs_plan::from_toml;

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
            numbers: vec![number],
            machine: Machine::default(),
            ended_ns: None,
        }
    }

    /// A run that comes to others that run is not taken for one that runs before its
    /// programs are let go: who took over would wait for it for ever.
    #[test]
    fn runs_begin_one_by_one() {
        let plan = "[[process]]\nid = 1\ntasks = [5]\n[[cpu]]\ncpu = 0\nslots = [1]\n";
        let plan = from_toml(plan).unwrap();
        let directory = std::env::temp_dir().join(format!("pbs-ledger-{}", std::process::id()));
        let mut ledger = Ledger::open(&directory.join("history.db")).unwrap();
        let first = ledger.follow(None, saved("first", 1), Kind::Plan, "", 0);
        let first = first.unwrap();
        ledger.planned(&plan).unwrap();
        assert_eq!(ledger.store.run(first).unwrap().state, State::Planned);
        ledger.released(&mut Nobody);
        let second = ledger.follow(None, saved("second", 2), Kind::Plan, "", 7);
        let second = second.unwrap();
        ledger.planned(&plan).unwrap();
        let states = [first, second].map(|run| ledger.store.run(run).unwrap().state);
        assert_eq!(states, [State::Running, State::Planned]);
        ledger.released(&mut Nobody);
        assert_eq!(ledger.store.run(second).unwrap().state, State::Running);
        assert!(ledger.is_whole());
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
