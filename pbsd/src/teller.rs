// SPDX-License-Identifier: GPL-2.0
//! Reports of the node: notices for those who watch, lines of the journal, and jobs to be counted.

use pbs_history::RunId;
use pbs_node::{others_in_words, OTHERS_REMEDY};
use pbs_node::{ClosedRun, JobOutcome, Listener, Moved, NewPeak, News, NotRun};
use pbs_node_api::Notice;
use pbs_socket::journal;
use pbs_uapi::clock::unix_ns;

use crate::session::Notices;

/// The longest text of a notice: many are kept for those who watch.
const NOTICE_CHARS: usize = 4000;

/// Reports to those who watch, and to the journal.
pub struct Teller {
    notices: Notices,
    /// Jobs that have ended and are not counted yet.
    ended: Vec<RunId>,
}

impl Teller {
    /// Tells those who have subscribed to `notices`.
    pub fn new(notices: Notices) -> Self {
        Self { notices, ended: Vec::new() }
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
        self.notice(None, "news", text);
    }

    fn begun(&mut self, run: RunId, job: &str) {
        self.notice(Some(run.0), "running", format!("job {job} is running"));
    }

    fn moved(&mut self, run: RunId, job: &str, moved: &Moved) {
        journal::info(&format!("{run} job {job} is {moved}"));
        self.notice(Some(run.0), "news", format!("job {job} is {}", moved.in_brief()));
    }

    fn wants_forecasts(&self) -> bool {
        false
    }

    fn over(&mut self, outcome: JobOutcome) {
        let kept = outcome.deadline_ns.map(|_| outcome.kept);
        let others = outcome.usage.notable_others_ns().map(others_in_words);
        let run = outcome.run.map(RunId);
        self.tell_ended(run, &outcome.name, &outcome.in_words(), kept, others.as_deref());
    }

    fn started_others(&mut self, run: RunId, job: &str, others_ns: u64) {
        let text = format!("job {job}: {}; {OTHERS_REMEDY}", others_in_words(others_ns));
        journal::info(&format!("{run} {text}"));
        self.notice(Some(run.0), "news", text);
    }

    fn new_peak(&mut self, run: RunId, job: &str, peak: &NewPeak) {
        let text = format!("job {job}: {peak}");
        journal::info(&format!("{run} {text}"));
        self.notice(Some(run.0), "news", text);
    }

    fn closed(&mut self, closed: &ClosedRun<'_>) {
        self.tell_ended(Some(closed.run), closed.job, &closed.in_words(), closed.kept, None);
    }

    fn not_run(&mut self, not_run: &NotRun<'_>) {
        let NotRun { run, job, why } = not_run;
        self.ended.push(*run);
        let text = format!("job {job} was not run: {why}");
        journal::info(&format!("{run} {text}"));
        self.notice(Some(run.0), "over", text);
    }
}

impl Teller {
    /// Reports a job that has ended. `kept`: whether it kept its deadline, if it had one. `others`:
    /// its programs have started other processes, in words.
    fn tell_ended(
        &mut self,
        run: Option<RunId>,
        job: &str,
        end: &str,
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
        self.notice(run.map(|run| run.0), "over", text);
    }

    /// Sends a notice; a missing receiver is no error.
    pub(crate) fn notice(&self, job: Option<u64>, kind: &str, text: String) {
        let text = text.chars().take(NOTICE_CHARS).collect();
        // A notice without a listener has no receiver.
        let _ = self.notices.send(Notice { unix_ns: unix_ns(), job, kind: kind.into(), text });
    }
}

#[cfg(test)]
mod tests {
    use pbs_history::Outcome;

    use super::*;

    /// The owner of a job is told that it has other CPUs, and nothing about the jobs of others.
    #[test]
    fn a_job_with_other_cpus_is_reported_to_its_owner() {
        let (notices, mut watch) = tokio::sync::broadcast::channel(4);
        let moved = Moved { cpus: vec![1], instead: vec![0], kept: 3, earlier_ns: 0 };
        Teller::new(notices).moved(RunId(7), "sort", &moved);
        let notice = watch.try_recv().unwrap();
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
        let notice = watch.try_recv().unwrap();
        assert_eq!((notice.job, notice.kind.as_str()), (Some(7), "news"));
        let text = "job sort: its programs started others, which used 3.2 s of a CPU outside of \
                    the plan; make them processes of the job (jobs.rst), or start the program \
                    itself with exec";
        assert_eq!(notice.text, text);
        let others = Some("its programs started others");
        teller.tell_ended(Some(RunId(7)), "sort", "complete", Some(false), others);
        let text = "job sort has ended: complete, its deadline missed; its programs started others";
        assert_eq!(watch.try_recv().unwrap().text, text);
        let peak = NewPeak { process: "1".into(), peak_bytes: 3 << 20, reserved_bytes: 1 << 20 };
        teller.new_peak(RunId(7), "sort", &peak);
        let text = "job sort: process 1 has 3.0 MiB of memory, more than the 1.0 MiB reserved for \
                    it";
        assert_eq!(watch.try_recv().unwrap().text, text);
    }

    /// A job that was lost with its machine is reported and counted like any other that has ended.
    #[test]
    fn a_job_that_nobody_followed_is_reported() {
        let (notices, mut watch) = tokio::sync::broadcast::channel(4);
        let mut teller = Teller::new(notices);
        let why = Some("lost its node: the machine was rebooted while it ran");
        let (run, outcome) = (RunId(7), Outcome::Unknown);
        teller.closed(&ClosedRun { run, job: "sort", outcome, kept: Some(false), why });
        let notice = watch.try_recv().unwrap();
        assert_eq!((notice.job, notice.kind.as_str()), (Some(7), "over"));
        assert!(notice.text.starts_with("job sort has ended: unknown (lost its node"));
        assert!(notice.text.ends_with("its deadline missed"));
        assert_eq!((teller.take_ended(), teller.take_ended()), (vec![run], vec![]));
    }
}
