// SPDX-License-Identifier: GPL-2.0
//! Result of a run: decided here, and the same in the log, in tables, in JSON and in the history.

use pbs_history::Outcome;

use crate::orders::ProgramEnd;

/// Reason of a run that was under way when its machine went down.
pub(crate) const REBOOTED: &str = "lost its node: the machine was rebooted while it ran";

/// Reason of a run that no service followed to its end.
pub(crate) const UNFOLLOWED: &str = "lost its node: the planner that ran it ended before it";

/// Reason of a run that did all its tasks, and whose programs exited unseen.
pub(crate) const NO_EXIT_STATUS: &str =
    "the exit status of its programs is not known: an earlier service started them";

/// Facts from which the result of a run follows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    /// Reason for which somebody cancelled the run.
    pub(crate) cancelled: Option<&'a str>,
    /// The kernel killed a program for want of memory.
    pub(crate) over_memory: bool,
    /// All processes have ended all their tasks.
    pub(crate) completed: bool,
    /// Kind of its end by the figures of its tasks; `None`: there are none.
    pub(crate) recorded: Option<Outcome>,
    /// End of each program of which something is known.
    pub(crate) programs: &'a [ProgramEnd],
    /// Whether another service has started the programs, and nobody knows how they exit.
    pub(crate) is_adopted: bool,
    /// End of the last task.
    pub(crate) ended_ns: Option<u64>,
    /// Deadline, on the same clock.
    pub(crate) deadline_ns: Option<u64>,
}

/// Result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunResult {
    /// All processes have ended all their tasks.
    pub(crate) completed: bool,
    /// Kind of its end.
    pub(crate) outcome: Outcome,
    /// Whether it did all that it was to do before its deadline; without a deadline: whether it
    /// did it.
    pub(crate) kept: bool,
    /// Reason for which it did not, in words.
    pub(crate) why: Option<String>,
}

impl RunResult {
    /// Returns the result that follows from the facts. A program that failed is a reason before a
    /// deadline that was missed because of it.
    pub(crate) fn of(facts: &Facts<'_>) -> Self {
        let late_ns = match (facts.ended_ns, facts.deadline_ns) {
            (Some(ended_ns), Some(deadline_ns)) => ended_ns.saturating_sub(deadline_ns),
            _ => 0,
        };
        let (outcome, why) = match (facts.cancelled, decisive(facts.programs)) {
            (Some(why), _) => (Outcome::Cancelled, Some(why.to_string())),
            (None, Some(end)) => (end.outcome(), Some(end.reason(facts.over_memory))),
            (None, None) => facts.of_tasks(late_ns),
        };
        let did_all = facts.completed && facts.ended_ns.is_some();
        let is_well = matches!(outcome, Outcome::Complete | Outcome::Unknown);
        let kept = did_all && is_well && late_ns == 0;
        Self { completed: facts.completed, outcome, kept, why }
    }

    /// Returns the result of a run whose programs were not started.
    pub(crate) fn not_started(why: &str) -> Self {
        let why = Some(format!("failed (not started): {why}"));
        Self { completed: false, outcome: Outcome::Failed, kept: false, why }
    }

    /// Returns the result of a run whose programs may not be started.
    pub(crate) fn declined(why: &str) -> Self {
        let why = Some(why.to_string());
        Self { completed: false, outcome: Outcome::Declined, kept: false, why }
    }

    /// Returns the result of a run that was cancelled before its programs were started.
    pub(crate) fn cancelled(why: &str) -> Self {
        let why = Some(why.to_string());
        Self { completed: false, outcome: Outcome::Cancelled, kept: false, why }
    }

    /// Returns the result of a run that nobody followed to its end. Whether its programs
    /// succeeded is not known. `late`: it ended after its deadline. `has_programs`: the service has
    /// started some.
    pub(crate) fn unfollowed(
        recorded: Outcome,
        late: bool,
        cancelled: Option<&str>,
        has_programs: bool,
    ) -> Self {
        let completed = recorded == Outcome::Complete;
        let (outcome, why) = match (cancelled, completed, late) {
            (Some(why), ..) => (Outcome::Cancelled, Some(why.into())),
            (None, true, false) => (recorded, has_programs.then(|| NO_EXIT_STATUS.into())),
            (None, true, true) => (recorded, Some("ended after its deadline".into())),
            (None, false, _) => (recorded, Some(UNFOLLOWED.into())),
        };
        Self { completed, outcome, kept: outcome == Outcome::Complete && !late, why }
    }
}

impl Facts<'_> {
    /// Kind of the end and its reason, if all programs succeeded as far as that is known.
    fn of_tasks(&self, late_ns: u64) -> (Outcome, Option<String>) {
        let of_events = if self.completed { Outcome::Complete } else { Outcome::Unknown };
        let outcome = self.recorded.unwrap_or(of_events);
        let why = match (self.completed, outcome) {
            (true, _) if late_ns > 0 => {
                Some(format!("ended {} after its deadline", pbs_text::span(late_ns)))
            }
            (true, Outcome::Unknown) => Some("the events of its tasks were lost".into()),
            (true, _) => self.is_adopted.then(|| NO_EXIT_STATUS.into()),
            (false, Outcome::Complete) => reason_of(Outcome::Unknown).map(Into::into),
            (false, outcome) => reason_of(outcome).map(Into::into),
        };
        (outcome, why)
    }
}

/// The end of a program that decides the result of its run: the first that did not succeed. One
/// that ended by itself comes before those that were told to end because of it.
pub(crate) fn decisive(programs: &[ProgramEnd]) -> Option<&ProgramEnd> {
    let failed = programs.iter().filter(|end| !end.is_success());
    failed.min_by_key(|end| (end.was_told(), end.end))
}

/// Reason for an outcome of which no more is recorded. `None`: it needs none.
pub(crate) fn reason_of(outcome: Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Complete => None,
        Outcome::Killed => Some("killed before all tasks were ended"),
        Outcome::Ejected => Some("left its plan before all tasks were ended"),
        Outcome::Absent => Some("a process had no program in its slots"),
        Outcome::Unknown => Some("not all tasks were seen to end"),
        Outcome::Declined => Some("declined"),
        Outcome::Cancelled => Some("cancelled"),
        Outcome::Failed => Some("failed"),
    }
}

/// The end of a run in words, for the log: its outcome and the reason, unless that names the
/// outcome.
pub(crate) fn in_words(outcome: Outcome, why: Option<&str>) -> String {
    match why {
        Some(why) if why.starts_with(outcome.name()) => why.into(),
        Some(why) => format!("{} ({why})", outcome.name()),
        None => outcome.name().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(code: Option<i32>, signal: Option<i32>, error: Option<&str>) -> ProgramEnd {
        let error = error.map(Into::into);
        ProgramEnd { process: 2, program: "sort".into(), code, signal, error, ..Default::default() }
    }

    fn result<'a>(change: impl FnOnce(&mut Facts<'a>)) -> (Outcome, bool, String) {
        let mut facts = Facts {
            cancelled: None,
            over_memory: false,
            completed: true,
            recorded: Some(Outcome::Complete),
            programs: &[],
            is_adopted: false,
            ended_ns: Some(5_000_000),
            deadline_ns: Some(5_000_000),
        };
        change(&mut facts);
        let result = RunResult::of(&facts);
        (result.outcome, result.kept, result.why.unwrap_or_default())
    }

    #[test]
    fn a_deadline_is_kept_by_a_run_that_did_all_in_time() {
        let well = [program(Some(0), None, None)];
        let complete = (Outcome::Complete, true, String::new());
        assert_eq!(result(|_| ()), complete);
        assert_eq!(result(|facts| facts.programs = &well), complete);
        assert_eq!(result(|facts| facts.recorded = None), complete);
        assert!(result(|facts| facts.deadline_ns = None).1);
        let late = result(|facts| facts.deadline_ns = Some(3_000_000));
        assert_eq!(late, (Outcome::Complete, false, "ended 2 ms after its deadline".into()));
        assert!(!result(|facts| facts.ended_ns = None).1);
        let lost = result(|facts| facts.recorded = Some(Outcome::Unknown));
        assert_eq!(lost, (Outcome::Unknown, true, "the events of its tasks were lost".into()));
    }

    /// Only the parent of a program gets its exit status. Without it nobody knows of a success.
    #[test]
    fn an_unknown_exit_status_is_told() {
        let (outcome, kept, why) = result(|facts| facts.is_adopted = true);
        assert_eq!((outcome, kept, &*why), (Outcome::Complete, true, NO_EXIT_STATUS));
        let late = result(|facts| {
            facts.is_adopted = true;
            facts.deadline_ns = Some(3_000_000);
        });
        assert_eq!(late.2, "ended 2 ms after its deadline");
        let unseen = RunResult::unfollowed(Outcome::Complete, false, None, true);
        assert_eq!(unseen.why.as_deref(), Some(NO_EXIT_STATUS));
        assert_eq!(RunResult::unfollowed(Outcome::Complete, false, None, false).why, None);
    }

    /// Whatever the figures of a run say, one that did not do all has a reason.
    #[test]
    fn a_run_that_did_not_do_all_has_a_reason() {
        for recorded in Outcome::ALL.iter().copied().map(Some).chain([None]) {
            let (_, kept, why) = result(|facts| {
                facts.completed = false;
                facts.recorded = recorded;
            });
            assert!(!kept && !why.is_empty(), "{recorded:?}");
        }
    }

    #[test]
    fn a_program_that_failed_is_the_reason() {
        let failed = [program(Some(0), None, None), program(Some(3), None, None)];
        let of = (Outcome::Failed, false, "failed (exit 3): sort of process 2".to_string());
        assert_eq!(result(|facts| facts.programs = &failed), of);
        let late = result(|facts| {
            facts.programs = &failed;
            facts.deadline_ns = Some(1);
        });
        assert_eq!(late, of);
        // Others were told to end because of it.
        let told = program(None, Some(libc::SIGTERM), None);
        let both = [told.clone(), failed[1].clone()];
        assert_eq!(result(|facts| facts.programs = &both), of);
        let told = [told];
        let of = (Outcome::Killed, false, "killed (SIGTERM): sort of process 2".to_string());
        assert_eq!(result(|facts| facts.programs = &told), of);
        let killed = [program(None, Some(libc::SIGKILL), None)];
        let why = "killed (SIGKILL): sort of process 2".to_string();
        assert_eq!(result(|facts| facts.programs = &killed), (Outcome::Killed, false, why));
        let over = result(|facts| {
            facts.programs = &killed;
            facts.over_memory = true;
        });
        let why = "over memory: sort of process 2 was killed by SIGKILL".to_string();
        assert_eq!(over, (Outcome::Killed, false, why));
        // Another process may have been killed, and this one has failed for its own reasons.
        let exited = result(|facts| {
            facts.programs = &failed;
            facts.over_memory = true;
        });
        let why =
            "failed (exit 3): sort of process 2; a process of the job was killed for want of \
                   memory";
        assert_eq!(exited, (Outcome::Failed, false, why.into()));
        let absent = [program(None, None, Some("No such file or directory"))];
        let why = "failed (not executed): sort of process 2: No such file or directory".to_string();
        assert_eq!(result(|facts| facts.programs = &absent), (Outcome::Failed, false, why));
    }

    /// The order of process numbers says nothing, nor does the signal: a program may handle it.
    #[test]
    fn the_first_program_that_failed_by_itself_is_the_reason() {
        let end = |process, code, end, was_told| ProgramEnd {
            process,
            end,
            was_told: Some(was_told),
            ..program(Some(code), None, None)
        };
        let told = end(1, 143, 6, true);
        let of = |programs: &[ProgramEnd]| decisive(programs).map(|end| end.process);
        assert_eq!(of(&[told.clone(), end(2, 3, 5, false)]), Some(2));
        assert_eq!(of(&[end(1, 4, 8, false), end(2, 3, 7, false)]), Some(2));
        assert_eq!(of(&[told.clone(), end(2, 0, 5, false)]), Some(1));
        // Somebody else has sent it the signal.
        let killed = ProgramEnd { code: None, signal: Some(libc::SIGTERM), ..end(2, 0, 5, false) };
        assert_eq!(of(&[told, killed]), Some(2));
    }

    #[test]
    fn a_cancelled_run_was_cancelled_whatever_its_programs_say() {
        let killed = [program(None, Some(libc::SIGTERM), None)];
        let cancelled = result(|facts| {
            facts.programs = &killed;
            facts.cancelled = Some("cancelled by anna");
        });
        assert_eq!(cancelled, (Outcome::Cancelled, false, "cancelled by anna".into()));
    }

    /// A run that ended while no service lived is told like any other.
    #[test]
    fn a_run_that_nobody_followed_has_a_result() {
        let of = |recorded, late, cancelled| {
            let result = RunResult::unfollowed(recorded, late, cancelled, false);
            (result.outcome, result.kept, result.why)
        };
        assert_eq!(of(Outcome::Complete, false, None), (Outcome::Complete, true, None));
        let late = (Outcome::Complete, false, Some("ended after its deadline".into()));
        assert_eq!(of(Outcome::Complete, true, None), late);
        let lost = (Outcome::Killed, false, Some(UNFOLLOWED.into()));
        assert_eq!(of(Outcome::Killed, false, None), lost);
        let cancelled = (Outcome::Cancelled, false, Some("cancelled by anna".into()));
        assert_eq!(of(Outcome::Killed, false, Some("cancelled by anna")), cancelled);
    }

    #[test]
    fn the_log_names_an_outcome_once() {
        let failed = "failed (exit 3): sort of process 2";
        assert_eq!(in_words(Outcome::Failed, Some(failed)), failed);
        assert_eq!(in_words(Outcome::Complete, None), "complete");
        let lost = in_words(Outcome::Unknown, Some(REBOOTED));
        assert_eq!(lost, format!("unknown ({REBOOTED})"));
    }
}
