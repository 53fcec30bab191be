// SPDX-License-Identifier: GPL-2.0
//! A decision about everything that waits.

use pbs_cosched::{
    accept, allowed_random, brute_force, evaluations, necessary, schedule, schedule_slowed, score,
    timing, Mapping, Necessity, Options, Reason, Scheduler, Timeline, MOST_TASKS,
};
use serde::Serialize;

use crate::measures::{faster, CO_SCHEDULED};
use crate::rows::{placed, rows, table, Placed};
use crate::{words, Case, SchedulerName, Settings, TaskRow, When, WithAndWithout};

/// Decision of a scheduler.
#[derive(Clone, Debug, Serialize)]
pub struct Planned {
    /// Time of the decision, in nanoseconds from the submission of all.
    pub at_ns: u64,
    /// Tasks that waited.
    pub waiting: usize,
    /// Name of the scheduler.
    pub scheduler: &'static str,
    /// Brute force has shown that no mapping is better; nothing: it was not asked. With slow-downs
    /// it compares schedules whose tasks begin when they can, or at the end of a task on the CPU.
    pub proved: Option<bool>,
    /// Whether the enhanced random scheduler found no allowed mapping, and greedy decided.
    pub fell_back: bool,
    /// Whether it is done, and why.
    pub verdict: Verdict,
    /// Measures of the schedule.
    pub measures: WithAndWithout,
    /// Measures with slow-downs of tasks that run side by side, if these are known; they decide
    /// then.
    pub slowed: Option<WithAndWithout>,
    /// Placement of each task.
    pub tasks: Vec<TaskRow>,
    /// Mapping that is carried out.
    #[serde(skip)]
    pub mapping: Mapping,
    /// Timeline that is carried out.
    #[serde(skip)]
    pub timeline: Timeline,
    /// Result of the scheduler, taken or not.
    #[serde(skip)]
    pub found: (Mapping, Timeline),
    /// Placement of each task by the result of the scheduler.
    #[serde(skip)]
    pub(crate) found_tasks: Vec<Option<Placed>>,
    /// Not co-scheduling and what was found, as slow-downs make them.
    #[serde(skip)]
    pub(crate) slowed_timelines: Option<(Timeline, Timeline)>,
}

/// Whether what was found is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Whether the result is carried out.
    pub taken: bool,
    /// Whether the result is not worse than not co-scheduling.
    pub accepted: bool,
    /// Determination that was asked, if any.
    pub determination: Option<&'static str>,
    /// Whether the determination found co-scheduling necessary, or was not asked.
    pub necessary: bool,
    /// All of that in words.
    pub why: String,
}

/// Decides about everything that waits.
///
/// # Errors
///
/// The mapping is none; what is wrong with it.
pub fn plan(case: &Case<'_>, settings: &Settings) -> Result<Planned, String> {
    let (workload, platform) = (case.workload, case.platform);
    let options = settings.options(settings.when.unwrap_or(When::Always), workload.tasks.len());
    let objective = options.objective;
    let (mapping, proved) = find(case, settings, &options);
    let fell_back = falls_back(case, &options);
    let mut queues = case.running.clone();
    let waiting = case.waiting();
    if options.charge_cost {
        queues.now_ns = queues.now_ns.saturating_add(settings.cost().ns(waiting));
    }
    let timeline = timing(workload, platform, &queues, &mapping);
    let timeline = timeline.map_err(|fault| fault.tell(workload))?;
    let slowed = case.slow_both(&timeline, &|task| case.variant(&mapping, task));
    let mut verdict = match &slowed {
        Some((_, without, with)) => {
            accept(score(workload, without), score(workload, with), objective)
        }
        None => accept(score(workload, &case.without), score(workload, &timeline), objective),
    };
    if mapping.choices.iter().flatten().count() < waiting {
        verdict.accepted = false;
        verdict.reason = Reason::Incomplete;
    }
    let necessity = settings.when.map(|when| {
        let determination = &when.determination();
        necessary(workload, platform, &case.standing, case.newcomer, determination, &options.cost)
    });
    let verdict = Verdict::new(settings, necessity, &verdict);
    let measures = WithAndWithout::new(workload, platform, &case.names, &case.without, &timeline);
    let found = (mapping, timeline);
    let (mapping, timeline) = if verdict.taken {
        found.clone()
    } else {
        (case.without_mapping.clone(), case.without.clone())
    };
    let (slowed, slowed_timelines) = apart(slowed);
    // Without co-scheduling each waits in line, in no rounds.
    let of = |mapping: &Mapping, task: usize, rounds: bool| {
        let variant = case.variant(mapping, task)?;
        let choice = mapping.choices.get(task).copied().flatten();
        let round = choice.map(|choice| choice.round);
        Some((variant, round.filter(|_| rounds && !is_running(case, task))))
    };
    let rounds = settings.who == SchedulerName::Greedy;
    let names = &case.names;
    let found_tasks =
        placed(workload, platform, names, &found.1, |task| of(&found.0, task, rounds));
    let without = placed(workload, platform, names, &case.without, |task| {
        of(&case.without_mapping, task, false)
    });
    let with = if verdict.taken { found_tasks.clone() } else { without.clone() };
    Ok(Planned {
        at_ns: case.running.now_ns,
        waiting,
        scheduler: settings.who.name(),
        proved,
        fell_back,
        verdict,
        measures,
        slowed,
        tasks: rows(workload, names, |task| is_running(case, task), with, without),
        mapping,
        timeline,
        found,
        found_tasks,
        slowed_timelines,
    })
}

/// Whether the enhanced random scheduler finds no allowed mapping.
fn falls_back(case: &Case<'_>, options: &Options) -> bool {
    let Scheduler::EnhancedRandom(how, seed) = &options.scheduler else {
        return false;
    };
    let (workload, objective) = (case.workload, options.objective);
    allowed_random(workload, case.platform, &case.running, objective, how, *seed).is_none()
}

/// Returns what the scheduler finds, and whether brute force has proved it.
fn find(case: &Case<'_>, settings: &Settings, options: &Options) -> (Mapping, Option<bool>) {
    let (workload, platform, objective) = (case.workload, case.platform, options.objective);
    let by_brute_force = matches!(settings.who, SchedulerName::Oracle | SchedulerName::Best);
    let mut keep_going = evaluations(options.evaluations);
    if let Some(slowing) = case.slowing() {
        if by_brute_force && case.waiting() <= MOST_TASKS {
            keep_going = evaluations(settings.brute_force_slowed());
        }
        let scheduler = &options.scheduler;
        return schedule_slowed(
            workload,
            platform,
            &case.running,
            scheduler,
            objective,
            &slowing,
            &mut keep_going,
        );
    }
    if by_brute_force {
        let mut tries = evaluations(settings.brute_force());
        let found = brute_force(workload, platform, &case.running, objective, &mut tries);
        if let Some(found) = found {
            return (found.mapping, Some(found.proved));
        }
    }
    let scheduler = &options.scheduler;
    let mapping =
        schedule(workload, platform, &case.running, scheduler, objective, &mut keep_going);
    (mapping, None)
}

fn is_running(case: &Case<'_>, task: usize) -> bool {
    case.running.slot(task).is_some()
}

impl Verdict {
    fn new(
        settings: &Settings,
        necessity: Option<Necessity>,
        verdict: &pbs_cosched::Verdict,
    ) -> Self {
        let necessary = necessity.is_none_or(|necessity| necessity.is_necessary());
        let is_worse = settings.take_worse && verdict.reason != Reason::Incomplete;
        let taken = necessary && (verdict.accepted || is_worse);
        let reason = words::reason(verdict.reason);
        let necessity = necessity.map(words::necessity);
        let why = match (&necessity, taken) {
            (Some(necessity), false) if !necessary => {
                format!("Not co-scheduled: {necessity}.")
            }
            (_, false) => format!("Not co-scheduled: {reason}."),
            (_, true) if !verdict.accepted => {
                format!("Co-scheduled, though it is worse: {reason}.")
            }
            (Some(necessity), true) => format!("Co-scheduled: {necessity}; {reason}."),
            (None, true) => format!("Co-scheduled: {reason}."),
        };
        Self {
            taken,
            accepted: verdict.accepted,
            determination: settings.when.map(When::name),
            necessary,
            why,
        }
    }
}

/// Above a list of tasks, there.
const TIMES_ALONE: &str = "Times of tasks are those without slow-downs:\n";

/// Measures and timelines of [`Case::slow_both`].
fn apart(
    slowed: Option<(WithAndWithout, Timeline, Timeline)>,
) -> (Option<WithAndWithout>, Option<(Timeline, Timeline)>) {
    match slowed {
        Some((both, without, with)) => (Some(both), Some((without, with))),
        None => (None, None),
    }
}

/// Formats the measures with slow-downs; `title` is the title of the other schedule's column.
fn slowed_text(slowed: Option<&WithAndWithout>, title: &str) -> String {
    slowed.map_or_else(String::new, |both| {
        let (text, faster) = (both.text(title), faster(both.speed_up));
        format!("\nWith slow-downs, {faster}:\n{text}")
    })
}

/// Whether a scheduler decides with slow-downs.
pub(crate) fn regards_slowdowns(scheduler: &str) -> bool {
    let random = [SchedulerName::Random, SchedulerName::Enhanced];
    random.iter().all(|who| who.name() != scheduler)
}

impl Planned {
    /// For people.
    pub fn text(&self) -> String {
        let proved = match self.proved {
            _ if self.slowed.is_some() && !regards_slowdowns(self.scheduler) => {
                "; this scheduler does not regard slow-downs"
            }
            _ if self.fell_back => "; no drawn mapping was allowed, therefore greedy decided",
            Some(true) => ", and no mapping is better",
            Some(false) => ", but only a part of the mappings was tried (--iterations)",
            None => "",
        };
        let mut above = String::new();
        if !self.verdict.taken {
            above += "Tasks run as without co-scheduling:\n";
        }
        if self.slowed.is_some() {
            above += TIMES_ALONE;
        }
        let title = self.title();
        let speed_up = match &self.slowed {
            Some(slowed) => format!("{} with slow-downs", faster(slowed.speed_up)),
            None => faster(self.measures.speed_up),
        };
        let outcome = if self.verdict.taken {
            format!("{}: {speed_up}{proved}", self.scheduler)
        } else {
            format!("not taken: what {} found, {speed_up}{proved}", self.scheduler)
        };
        format!(
            "{above}{}\n{}{}\n{outcome}.\n{}\n",
            table(&self.tasks),
            self.measures.text(&title),
            slowed_text(self.slowed.as_ref(), &title),
            self.verdict.why
        )
    }

    /// The title of the column of what was found.
    pub(crate) fn title(&self) -> String {
        if self.verdict.taken {
            CO_SCHEDULED.into()
        } else {
            format!("WHAT {} FOUND", self.scheduler)
        }
    }
}
