// SPDX-License-Identifier: GPL-2.0
//! Deciding once, for all that waits.

use pbs_cosched::{
    accept, evaluations, not_co_scheduled, schedule, schedule_slowed, score, slowed, timing, Fault,
    Mapping, Objective, Queues, Reason, Scheduler, Score, Slowing, Timeline, Verdict, Where,
    Workload,
};

use crate::case::SLOWED_PARTS;
use crate::lanes::Question;

/// Tasks up to which those that wait for another graph follow it on its thread.
const MOST_FOLLOWING: usize = 64;

/// Decision on each task: variant, place and time.
#[derive(Clone, Debug)]
pub struct Decided {
    /// The variants and rounds.
    pub mapping: Mapping,
    /// The times without slow-downs, from when the first process may begin.
    pub timeline: Timeline,
    /// End of all, with slow-downs if these are known.
    pub makespan_ns: u64,
    /// Whether that is co-scheduled, and what decided: else each process has what is
    /// fastest for it by itself.
    pub verdict: Verdict,
}

/// A mapping with its times, and its score with slow-downs if these are known.
struct Scored {
    mapping: Mapping,
    timeline: Timeline,
    score: Score,
}

impl Scored {
    fn new(
        question: &Question,
        mapping: Mapping,
        slowing: Option<&dyn Slowing>,
    ) -> Result<Self, Vec<Fault>> {
        let Question { workload, platform, .. } = question;
        let timeline = timing(workload, platform, &Queues::idle(platform), &mapping);
        let timeline = timeline.map_err(|fault| vec![fault])?;
        let variant = |task: usize| Some(mapping.choices.get(task).copied().flatten()?.variant);
        let score = match slowing {
            Some(slowing) => score(workload, &slowed(workload, slowing, &variant, &timeline)),
            None => score(workload, &timeline),
        };
        Ok(Self { mapping, timeline, score })
    }

    fn is_complete(&self, workload: &Workload) -> bool {
        let choices = &self.mapping.choices;
        choices.len() == workload.tasks.len() && choices.iter().all(Option::is_some)
    }
}

/// Maps all tasks of a question, where nothing runs yet. Nothing is taken that is worse than
/// not co-scheduling. With slow-downs, the scheduler decides without and with them, and the better
/// one of both is taken. `tries`: the mappings that it may try.
///
/// # Errors
///
/// What is wrong with the workload.
pub fn decide(
    question: &Question,
    scheduler: &Scheduler,
    objective: Objective,
    slowing: Option<&dyn Slowing>,
    tries: u64,
) -> Result<Decided, Vec<Fault>> {
    let Question { workload, platform, .. } = question;
    pbs_cosched::check(workload, platform)?;
    let queues = Queues::idle(platform);
    let alone = not_co_scheduled(workload, platform, &queues);
    let alone = Scored::new(question, alone, slowing)?;
    let mut keep_going = evaluations(tries);
    let found = schedule(workload, platform, &queues, scheduler, objective, &mut keep_going);
    let mut found = Scored::new(question, found, slowing)?;
    if let Some(slowing) = slowing {
        let mut keep_going = evaluations(tries / SLOWED_PARTS);
        let (mapping, _) = schedule_slowed(
            workload,
            platform,
            &queues,
            scheduler,
            objective,
            slowing,
            &mut keep_going,
        );
        let aware = without_waits_for_others(question, mapping, slowing, objective)?;
        if accept(found.score, aware.score, objective).accepted {
            found = aware;
        }
    }
    let verdict = if found.is_complete(workload) {
        accept(alone.score, found.score, objective)
    } else {
        Verdict {
            accepted: false,
            reason: Reason::Incomplete,
            with: found.score,
            without: alone.score,
        }
    };
    let Scored { mapping, timeline, score } = if verdict.accepted { found } else { alone };
    Ok(Decided { mapping, timeline, makespan_ns: score.makespan_ns, verdict })
}

/// Returns a mapping whose tasks wait only for tasks of their own graphs because of slow-downs: each
/// graph becomes a job, and jobs do not wait for each other. Tasks that wait for another graph
/// follow the task there on its thread instead, or wait for nothing, whichever is better.
fn without_waits_for_others(
    question: &Question,
    mut mapping: Mapping,
    slowing: &dyn Slowing,
    objective: Objective,
) -> Result<Scored, Vec<Fault>> {
    let tasks = &question.workload.tasks;
    let places = places(question, &mapping);
    let mut places = places.unwrap_or_else(|| vec![None; tasks.len()]);
    let mut waits = false;
    for task in mapping.order() {
        let Some(choice) = &mut mapping.choices[task] else {
            continue;
        };
        let is_other = |other: &mut usize| tasks[*other].process != tasks[task].process;
        if let Some(other) = choice.hold.wait.take_if(is_other) {
            waits = true;
            places[task] = places[other].clone();
        }
    }
    let free = Scored::new(question, mapping, Some(slowing))?;
    if !waits || tasks.len() > MOST_FOLLOWING {
        return Ok(free);
    }
    let mut following = free.mapping.clone();
    for task in following.order() {
        put(question, &mut following, task, places.get(task).unwrap_or(&None));
    }
    let following = Scored::new(question, following, Some(slowing))?;
    let is_better = accept(free.score, following.score, objective).accepted;
    Ok(if is_better { following } else { free })
}

/// Returns the place of each task; `None`: the mapping cannot be timed.
fn places(question: &Question, mapping: &Mapping) -> Option<Vec<Option<Where>>> {
    let Question { workload, platform, .. } = question;
    let timeline = timing(workload, platform, &Queues::idle(platform), mapping).ok()?;
    Some(timeline.slots.into_iter().map(|slot| Some(slot?.place)).collect())
}

/// Lets a task leave as many free threads to others that it has that place. Without such a number,
/// nothing changes.
fn put(question: &Question, mapping: &mut Mapping, task: usize, place: &Option<Where>) {
    let before = mapping.choices[task];
    for skip in 0..question.cpus.len() as u32 {
        if let Some(choice) = &mut mapping.choices[task] {
            choice.hold.skip = skip;
        }
        if places(question, mapping).is_some_and(|places| places[task] == *place) {
            return;
        }
    }
    mapping.choices[task] = before;
}
