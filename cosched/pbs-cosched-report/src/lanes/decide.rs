// SPDX-License-Identifier: GPL-2.0
//! Deciding once, for all that waits.

use pbs_cosched::{
    accept, not_co_scheduled, schedule, score, timing, Fault, Mapping, Objective, Queues, Reason,
    Scheduler, Timeline, Verdict,
};

use crate::lanes::Question;

/// Decision on each task: variant, place and time.
#[derive(Clone, Debug)]
pub struct Decided {
    /// The variants and rounds.
    pub mapping: Mapping,
    /// The times, from when the first process may begin.
    pub timeline: Timeline,
    /// Whether that is co-scheduled, and what decided: else each process has what is
    /// fastest for it by itself.
    pub verdict: Verdict,
}

/// Maps all tasks of a question, where nothing runs yet. Nothing is taken that is worse than
/// not co-scheduling. `keep_going` is asked by schedulers that could go on for ever.
///
/// # Errors
///
/// What is wrong with the workload.
pub fn decide(
    question: &Question,
    scheduler: &Scheduler,
    objective: Objective,
    keep_going: &mut dyn FnMut() -> bool,
) -> Result<Decided, Vec<Fault>> {
    let Question { workload, platform, .. } = question;
    pbs_cosched::check(workload, platform)?;
    let queues = Queues::idle(platform);
    let alone = not_co_scheduled(workload, platform, &queues);
    let alone_times = timing(workload, platform, &queues, &alone).map_err(|fault| vec![fault])?;
    let alone_score = score(workload, &alone_times);
    let mapping = schedule(workload, platform, &queues, scheduler, objective, keep_going);
    let complete = mapping.choices.len() == workload.tasks.len()
        && mapping.choices.iter().all(Option::is_some);
    let timeline = timing(workload, platform, &queues, &mapping).map_err(|fault| vec![fault])?;
    let verdict = if complete {
        accept(alone_score, score(workload, &timeline), objective)
    } else {
        Verdict {
            accepted: false,
            reason: Reason::Incomplete,
            with: score(workload, &timeline),
            without: alone_score,
        }
    };
    let (mapping, timeline) =
        if verdict.accepted { (mapping, timeline) } else { (alone, alone_times) };
    Ok(Decided { mapping, timeline, verdict })
}
