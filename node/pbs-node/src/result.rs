// SPDX-License-Identifier: GPL-2.0
//! Result of a run: decided here, and the same in the log, in tables, in JSON and in the history.

use pbs_history::Outcome;

use crate::orders::ProgramEnd;

/// Facts from which the result of a run follows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    /// Reason for which somebody cancelled the run.
    pub(crate) cancelled: Option<&'a str>,
    /// All processes have ended all their tasks.
    pub(crate) completed: bool,
    /// End of each program of which something is known.
    pub(crate) programs: &'a [ProgramEnd],
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
    /// Kind of its end; `None`: the figures of its tasks tell.
    pub(crate) outcome: Option<Outcome>,
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
        let failed = facts.programs.iter().find(|end| !end.is_success());
        let late_ns = match (facts.ended_ns, facts.deadline_ns) {
            (Some(ended_ns), Some(deadline_ns)) => ended_ns.saturating_sub(deadline_ns),
            _ => 0,
        };
        let has_ended = facts.completed && facts.ended_ns.is_some();
        let kept = has_ended && facts.cancelled.is_none() && failed.is_none() && late_ns == 0;
        let outcome = match (facts.cancelled, failed) {
            (Some(_), _) => Some(Outcome::Cancelled),
            (None, Some(end)) if end.signal.is_none() => Some(Outcome::Failed),
            _ => None,
        };
        let why = match (facts.cancelled, failed) {
            (Some(why), _) => Some(why.to_string()),
            (None, Some(end)) => Some(end.told()),
            (None, None) if !facts.completed => Some("not all tasks were ended".into()),
            (None, None) if late_ns > 0 => {
                Some(format!("ended {} after its deadline", pbs_text::span(late_ns)))
            }
            (None, None) => None,
        };
        Self { completed: facts.completed, outcome, kept, why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(code: Option<i32>, signal: Option<i32>, error: Option<&str>) -> ProgramEnd {
        let error = error.map(Into::into);
        ProgramEnd { process: 2, program: "sort".into(), code, signal, error }
    }

    fn result<'a>(change: impl FnOnce(&mut Facts<'a>)) -> (Option<Outcome>, bool, String) {
        let mut facts = Facts {
            cancelled: None,
            completed: true,
            programs: &[],
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
        assert_eq!(result(|_| ()), (None, true, String::new()));
        assert_eq!(result(|facts| facts.programs = &well), (None, true, String::new()));
        assert!(result(|facts| facts.deadline_ns = None).1);
        let late = result(|facts| facts.deadline_ns = Some(3_000_000));
        assert_eq!(late, (None, false, "ended 2 ms after its deadline".into()));
        let cut = result(|facts| facts.completed = false);
        assert_eq!(cut, (None, false, "not all tasks were ended".into()));
        assert!(!result(|facts| facts.ended_ns = None).1);
    }

    #[test]
    fn a_program_that_failed_is_the_reason() {
        let failed = [program(Some(0), None, None), program(Some(3), None, None)];
        let told = "sort of process 2 exited with status 3".to_string();
        let of = (Some(Outcome::Failed), false, told.clone());
        assert_eq!(result(|facts| facts.programs = &failed), of);
        let late = result(|facts| {
            facts.programs = &failed;
            facts.deadline_ns = Some(1);
        });
        assert_eq!(late, of);
        let killed = [program(None, Some(libc::SIGKILL), None)];
        let told = "sort of process 2 was killed by SIGKILL".to_string();
        assert_eq!(result(|facts| facts.programs = &killed), (None, false, told));
        let absent = [program(None, None, Some("No such file or directory"))];
        let told = "sort of process 2 could not be executed: No such file or directory".to_string();
        let of = (Some(Outcome::Failed), false, told);
        assert_eq!(result(|facts| facts.programs = &absent), of);
    }

    #[test]
    fn a_cancelled_run_was_cancelled_whatever_its_programs_say() {
        let killed = [program(None, Some(libc::SIGTERM), None)];
        let cancelled = result(|facts| {
            facts.programs = &killed;
            facts.cancelled = Some("by anna");
        });
        assert_eq!(cancelled, (Some(Outcome::Cancelled), false, "by anna".into()));
    }
}
