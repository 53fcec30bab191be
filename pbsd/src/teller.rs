// SPDX-License-Identifier: GPL-2.0
//! Reports of the node: notices for those who watch, lines of the journal, and jobs to be counted.

use std::collections::BTreeMap;

use pbs_history::{Outcome, RunId};
use pbs_node::{others_in_words, OTHERS_REMEDY};
use pbs_node::{ClosedRun, JobOutcome, Listener, Moved, NewPeak, News, NotRun, SaveRequest};
use pbs_node_api::Notice;
use pbs_socket::journal;
use pbs_uapi::clock::unix_ns;

use crate::session::{Notices, Told};

/// The longest text of a notice: many are kept for those who watch.
const NOTICE_CHARS: usize = 4000;

/// Reports to those who watch, and to the journal.
pub struct Teller {
    notices: Notices,
    /// Jobs that have ended and are not counted yet.
    ended: Vec<RunId>,
    /// Users of the jobs that are not over.
    owners: BTreeMap<RunId, u32>,
    /// The user whose jobs are accepted at the moment: their numbers are known afterwards.
    submitter: Option<u32>,
}

impl Teller {
    /// Tells those who have subscribed to `notices`.
    pub fn new(notices: Notices) -> Self {
        Self { notices, ended: Vec::new(), owners: BTreeMap::new(), submitter: None }
    }

    /// Accepts jobs of a user from now on; `None`: those of nobody.
    pub(crate) fn accepts_from(&mut self, submitter: Option<u32>) {
        self.submitter = submitter;
    }

    /// Notes whose a job is that is not over.
    pub(crate) fn own(&mut self, run: RunId, uid: u32) {
        self.owners.insert(run, uid);
    }

    /// Returns the jobs that have ended since this was last called.
    pub(crate) fn take_ended(&mut self) -> Vec<RunId> {
        std::mem::take(&mut self.ended)
    }

    /// Leaves a job that has ended for the next time.
    pub(crate) fn count_later(&mut self, run: RunId) {
        self.ended.push(run);
    }
}

impl Listener for Teller {
    fn news(&mut self, news: News) {
        let text = news.to_string();
        if news.is_alarm() {
            journal::warning(&text);
        } else {
            journal::info(&text);
        }
        let brief = (!is_for_operators(&news)).then(|| text.clone());
        self.notice(None, None, "news", text, brief);
    }

    fn begun(&mut self, run: RunId, job: &str) {
        let text = format!("job {job} is running");
        self.notice(Some(run.0), self.owner(run), "running", text.clone(), Some(text));
    }

    fn moved(&mut self, run: RunId, job: &str, moved: &Moved) {
        journal::info(&format!("{run} job {job} is {moved}"));
        let text = format!("job {job} is {}", moved.in_brief());
        self.notice(Some(run.0), self.owner(run), "news", text, None);
    }

    fn wants_forecasts(&self) -> bool {
        false
    }

    fn over(&mut self, outcome: JobOutcome) {
        let kept = outcome.deadline_ns.map(|_| outcome.kept);
        let others = outcome.usage.notable_others_ns().map(others_in_words);
        let run = outcome.run.map(RunId);
        let word = outcome.outcome.unwrap_or(Outcome::Unknown).name();
        let end = (word, outcome.in_words());
        self.tell_ended(run, &outcome.name, end, kept, others.as_deref());
    }

    fn started_others(&mut self, run: RunId, job: &str, others_ns: u64) {
        let text = format!("job {job}: {}; {OTHERS_REMEDY}", others_in_words(others_ns));
        journal::info(&format!("{run} {text}"));
        self.notice(Some(run.0), self.owner(run), "news", text, None);
    }

    fn asked_to_save(&mut self, run: RunId, job: &str, request: &SaveRequest) {
        let text = format!("job {job} {request}");
        journal::info(&format!("{run} {text}"));
        self.notice(Some(run.0), self.owner(run), "news", text, None);
    }

    fn new_peak(&mut self, run: RunId, job: &str, peak: &NewPeak) {
        let text = format!("job {job}: {peak}");
        journal::info(&format!("{run} {text}"));
        self.notice(Some(run.0), self.owner(run), "news", text, None);
    }

    fn closed(&mut self, closed: &ClosedRun<'_>) {
        let end = (closed.outcome.name(), closed.in_words());
        self.tell_ended(Some(closed.run), closed.job, end, closed.kept, None);
    }

    fn not_run(&mut self, not_run: &NotRun<'_>) {
        let NotRun { run, job, why } = not_run;
        self.ended.push(*run);
        let text = format!("job {job} was not run: {why}");
        journal::info(&format!("{run} {text}"));
        let brief = Some(format!("job {job} was not run"));
        self.notice(Some(run.0), self.owner(*run), "over", text, brief);
        self.owners.remove(run);
    }
}

/// Whether news have names of files and programs in them, or reasons, which are not for everybody.
fn is_for_operators(news: &News) -> bool {
    matches!(
        news,
        News::NotAdmitted(_)
            | News::SetAside(..)
            | News::NotFollowed(..)
            | News::PlanSetAside(_)
            | News::Cancelled { .. }
            | News::NotAsked { .. }
            | News::Grown { .. }
            | News::NotRecorded(_)
            | News::Unlimited(..)
            | News::GroupsKilled(_)
            | News::GroupsUnseen(_)
            | News::CommandFailed { .. }
            | News::AdmissionFailed { .. }
    )
}

impl Teller {
    /// The user of a job that is not over, as far as that is known.
    fn owner(&self, run: RunId) -> Option<u32> {
        self.owners.get(&run).copied().or(self.submitter)
    }

    /// Reports a job that has ended: its outcome, and the end in words. `kept`: whether it kept its deadline, if it had one. `others`:
    /// its programs have started other processes, in words.
    fn tell_ended(
        &mut self,
        run: Option<RunId>,
        job: &str,
        (outcome, end): (&str, String),
        kept: Option<bool>,
        others: Option<&str>,
    ) {
        let kept = match kept {
            None => "",
            Some(true) => ", its deadline kept",
            Some(false) => ", its deadline missed",
        };
        let others = others.map_or_else(String::new, |others| format!("; {others}"));
        let text = format!("job {job} has ended: {end}{kept}{others}");
        self.ended.extend(run);
        let number = run.map_or_else(String::new, |run| format!("{run} "));
        journal::info(&format!("{number}{text}"));
        let owner = run.and_then(|run| self.owner(run));
        let brief = Some(format!("job {job} has ended: {outcome}"));
        self.notice(run.map(|run| run.0), owner, "over", text, brief);
        if let Some(run) = run {
            self.owners.remove(&run);
        }
    }

    /// Sends a notice about a job of that user, with the text that others get (see [`Told`]); a
    /// missing receiver is no error.
    pub(crate) fn notice(
        &self,
        job: Option<u64>,
        uid: Option<u32>,
        kind: &str,
        text: String,
        brief: Option<String>,
    ) {
        let short = |text: String| text.chars().take(NOTICE_CHARS).collect();
        let text = short(text);
        let notice = Notice { unix_ns: unix_ns(), job, kind: kind.into(), text };
        // A notice without a listener has no receiver.
        let _ = self.notices.send(Told { notice, uid, brief: brief.map(short) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The owner of a job is told that it has other CPUs, and nothing about the jobs of others.
    #[test]
    fn a_job_with_other_cpus_is_reported_to_its_owner() {
        let (notices, mut watch) = tokio::sync::broadcast::channel(4);
        let moved = Moved { cpus: vec![1], instead: vec![0], kept: 3, earlier_ns: 0 };
        Teller::new(notices).moved(RunId(7), "sort", &moved);
        let notice = watch.try_recv().unwrap().notice;
        let text = "job sort is planned on other CPUs because of the slow-downs of earlier runs";
        assert_eq!((notice.job, notice.kind.as_str()), (Some(7), "news"));
        assert_eq!(notice.text, text);
    }

    /// The owner of a job is told that its programs start others, while it runs and at its end.
    #[test]
    fn processes_outside_of_the_plan_are_reported_to_the_owner() {
        let (notices, mut watch) = tokio::sync::broadcast::channel(4);
        let mut teller = Teller::new(notices);
        teller.started_others(RunId(7), "sort", 3_200_000_000);
        let notice = watch.try_recv().unwrap().notice;
        assert_eq!((notice.job, notice.kind.as_str()), (Some(7), "news"));
        let text = "job sort: its programs started others, which used 3.2 s of a CPU outside of \
                    the plan; make them processes of the job (jobs.rst), or start the program \
                    itself with exec";
        assert_eq!(notice.text, text);
        let others = Some("its programs started others");
        let end = ("complete", "complete".into());
        teller.tell_ended(Some(RunId(7)), "sort", end, Some(false), others);
        let text = "job sort has ended: complete, its deadline missed; its programs started others";
        assert_eq!(watch.try_recv().unwrap().notice.text, text);
        let peak = NewPeak { process: "1".into(), peak_bytes: 3 << 20, reserved_bytes: 1 << 20 };
        teller.new_peak(RunId(7), "sort", &peak);
        let text = "job sort: process 1 has 3.0 MiB of memory, more than the 1.0 MiB reserved for \
                    it";
        assert_eq!(watch.try_recv().unwrap().notice.text, text);
    }

    /// The reason of an end, with the names of programs, is for the owner of the job. Others are told
    /// that it has ended, and how. What names programs and files is for operators.
    #[test]
    fn others_are_told_the_outcome_alone() {
        let (notices, mut watch) = tokio::sync::broadcast::channel(8);
        let mut teller = Teller::new(notices);
        teller.own(RunId(7), 1000);
        let end = ("failed", "failed (exit 3): secret of process 2".into());
        teller.tell_ended(Some(RunId(7)), "sort", end, None, None);
        let told = watch.try_recv().unwrap();
        assert_eq!(
            (told.uid, told.brief.as_deref()),
            (Some(1000), Some("job sort has ended: failed"))
        );
        assert!(told.notice.text.ends_with("secret of process 2"));
        // It is over: nobody owns its number any more.
        assert!(teller.owners.is_empty());
        teller.accepts_from(Some(1001));
        let moved = Moved { cpus: vec![1], instead: vec![0], kept: 3, earlier_ns: 0 };
        teller.moved(RunId(8), "sort", &moved);
        let told = watch.try_recv().unwrap();
        assert_eq!((told.uid, told.brief), (Some(1001), None));
        teller.news(News::NotAsked { job: "a".into(), process: "b".into(), why: "c".into() });
        assert_eq!(watch.try_recv().unwrap().brief, None);
        teller.news(News::MemoryShort);
        let told = watch.try_recv().unwrap();
        assert_eq!(told.brief, Some(told.notice.text));
    }

    /// A job that saves its work before it is ended is told to those who watch.
    #[test]
    fn a_job_that_saves_its_work_is_reported() {
        let (notices, mut watch) = tokio::sync::broadcast::channel(4);
        let within = std::time::Duration::from_secs(2);
        let request = SaveRequest { signal: "USR1".into(), processes: 1, within };
        Teller::new(notices).asked_to_save(RunId(7), "sort", &request);
        let notice = watch.try_recv().unwrap().notice;
        assert_eq!((notice.job, notice.kind.as_str()), (Some(7), "news"));
        let text = "job sort was asked to save itself (USR1 to 1 processes, within 2 s)";
        assert_eq!(notice.text, text);
    }

    /// A job that was lost with its machine is reported and counted like any other that has ended.
    #[test]
    fn a_job_that_nobody_followed_is_reported() {
        let (notices, mut watch) = tokio::sync::broadcast::channel(4);
        let mut teller = Teller::new(notices);
        let why = Some("lost its node: the machine was rebooted while it ran");
        let (run, outcome) = (RunId(7), Outcome::Unknown);
        teller.closed(&ClosedRun { run, job: "sort", outcome, kept: Some(false), why });
        let notice = watch.try_recv().unwrap().notice;
        assert_eq!((notice.job, notice.kind.as_str()), (Some(7), "over"));
        assert!(notice.text.starts_with("job sort has ended: unknown (lost its node"));
        assert!(notice.text.ends_with("its deadline missed"));
        assert_eq!((teller.take_ended(), teller.take_ended()), (vec![run], vec![]));
    }
}
