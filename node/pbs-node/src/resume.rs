// SPDX-License-Identifier: GPL-2.0
//! Runs that a planner left which died: the node goes on with its plan, and who
//! takes over reads what the kernel still holds of it.

use pbs_control::{End, Measured, SoFar};
use pbs_history::{boot_id, Kind, Outcome, RunFigures, State, Takeover};
use pbs_job::Machine;
use pbs_launch::was_released;
use pbs_plan::{from_toml, Plan};
use pbs_uapi::Device;

use crate::device::in_force;
use crate::ledger::Ledger;
use crate::orders::Ending;
use crate::queue::is_submitted;
use crate::result::{RunResult, REBOOTED};
use crate::saved::Saved;
use crate::{ClosedRun, Error, Listener, News};

/// State that an earlier planner has left.
pub(crate) struct Left {
    pub(crate) machine: Machine,
    pub(crate) runs: Vec<LeftRun>,
    pub(crate) resumed: Resumed,
}

/// A run that is under way.
pub(crate) struct LeftRun {
    pub(crate) figures: RunFigures,
    pub(crate) takeover: Takeover,
    pub(crate) saved: Saved,
    pub(crate) so_far: Vec<SoFar>,
}

/// Point at which a planner continues.
pub(crate) struct Resumed {
    /// The plan that was written last, and then the one in force if that is
    /// another.
    pub(crate) plans: Vec<Plan>,
    /// The CPUs where one of them is in force.
    pub(crate) in_force: Vec<u32>,
    /// The first event that was not heard.
    pub(crate) next_seq: u64,
}

/// Closes what nobody needs to take over any more: runs of another boot, runs whose
/// programs were never let go, and runs that are over by now. The listener receives each.
///
/// # Errors
///
/// A run goes on in the node.
pub(crate) fn clear(
    ledger: &mut Ledger,
    device: &Device,
    listener: &mut dyn Listener,
) -> Result<(), Error> {
    for (figures, takeover) in ledger.open_runs()? {
        let Some(saved) = under_way(ledger, &figures, &takeover, device, listener)? else {
            continue;
        };
        if saved.as_ref().is_some_and(|saved| goes_on(device, saved)) {
            return Err(Error::goes_on(&figures));
        }
        close(ledger, &figures, &takeover, saved.as_ref(), device, listener)?;
    }
    Ok(())
}

/// Closes a run that nobody follows any more. The listener receives it.
fn close(
    ledger: &mut Ledger,
    figures: &RunFigures,
    takeover: &Takeover,
    saved: Option<&Saved>,
    device: &Device,
    listener: &mut dyn Listener,
) -> Result<(), Error> {
    let closed = ledger
        .close(figures, takeover, saved, device, |outcome| unfollowed(figures, saved, outcome))?;
    report(figures, &closed, listener);
    Ok(())
}

/// Closes a run that can't be taken over. The others are, all the same.
pub(crate) fn set_aside(
    ledger: &mut Ledger,
    figures: &RunFigures,
    takeover: &Takeover,
    why: &str,
    device: &Device,
    listener: &mut dyn Listener,
) -> Result<(), Error> {
    listener.news(News::SetAside(figures.run.id, why.into()));
    close(ledger, figures, takeover, None, device, listener)
}

/// Reports a run that was closed.
fn report(
    figures: &RunFigures,
    (outcome, ending): &(Outcome, Ending),
    listener: &mut dyn Listener,
) {
    listener.closed(&ClosedRun {
        run: figures.run.id,
        job: &figures.run.job,
        outcome: *outcome,
        kept: ending.kept,
        why: ending.why.as_deref(),
    });
}

/// The ending of a run that has ended since a planner of this boot died.
fn unfollowed(figures: &RunFigures, saved: Option<&Saved>, recorded: Outcome) -> (Outcome, Ending) {
    let Some(saved) = saved else {
        let RunResult { outcome, why, .. } = RunResult::unfollowed(recorded, false, None, false);
        return (outcome, Ending { why, ..Ending::default() });
    };
    let late = saved.ended_ns.is_some_and(|ended_ns| ended_ns > saved.deadline_ns());
    let unix_ns = |ns| saved.unix_ns(ns, figures.run.submitted_unix_ns);
    let has_programs = saved.job.programs() > 0;
    let cancelled = saved.cancelled.as_deref();
    let result = RunResult::unfollowed(recorded, late, cancelled, has_programs);
    // An end that nobody has seen may have come too late.
    let kept = result.kept && saved.ended_ns.is_some();
    let ending = Ending {
        why: result.why,
        succeeded: result.completed && !has_programs,
        started_unix_ns: Some(unix_ns(saved.started_ns)),
        begun_unix_ns: saved.begun_ns.map(unix_ns),
        ..lost(figures, saved, kept)
    };
    (result.outcome, ending)
}

/// The data about a run that nobody followed to its end.
fn lost(figures: &RunFigures, saved: &Saved, kept: bool) -> Ending {
    let RunFigures { run, .. } = figures;
    let has_deadline = run.kind == Kind::Plan;
    let deadline_unix_ns = saved.unix_ns(saved.deadline_ns(), run.submitted_unix_ns);
    Ending {
        deadline_unix_ns: Some(deadline_unix_ns).filter(|_| has_deadline),
        best_effort: Some(saved.job.best_effort),
        cpus: saved.job.cpus.clone(),
        kept: Some(kept).filter(|_| has_deadline),
        ..Ending::default()
    }
}

/// The runs to take over.
///
/// # Errors
///
/// There is none, or what was kept of it is of no use.
pub(crate) fn left(
    ledger: &mut Ledger,
    device: &Device,
    listener: &mut dyn Listener,
) -> Result<Left, Error> {
    let mut runs = Vec::new();
    let mut machine = Machine::default();
    let mut first_seq = u64::MAX;
    // Each run that needs the plan is set aside below.
    let plan = from_toml(&ledger.in_force().plan).ok();
    for (figures, takeover) in ledger.open_runs()? {
        let Some(saved) = under_way(ledger, &figures, &takeover, device, listener)? else {
            continue;
        };
        let Some(saved) = saved else {
            let why = "the data to take it over are unreadable";
            set_aside(ledger, &figures, &takeover, why, device, listener)?;
            continue;
        };
        let Some(plan) = &plan else {
            let why = "the plan that was in force is unreadable";
            set_aside(ledger, &figures, &takeover, why, device, listener)?;
            continue;
        };
        let so_far = so_far(&saved, &figures, plan);
        machine = saved.machine.clone();
        first_seq = first_seq.min(takeover.first_seq);
        runs.push(LeftRun { figures, takeover, saved, so_far });
    }
    let kept: Vec<_> = runs.iter().map(|left| left.saved.commit.as_path()).collect();
    ledger.remove_starts(&kept);
    if runs.is_empty() {
        return Err(Error::NothingLeft);
    }
    let mut resumed = Resumed {
        plans: plan.into_iter().collect(),
        in_force: Vec::new(),
        // What comes after it may be of a run that was not noted yet.
        next_seq: ledger.in_force().next_seq.max(first_seq),
    };
    let numbers: Vec<_> = runs.iter().flat_map(|run| &run.saved.numbers).collect();
    for cpu in machine.cpus() {
        let Some(plan) = in_force(device, cpu) else {
            continue;
        };
        if plan.processes.iter().any(|p| numbers.contains(&&p.id)) {
            resumed.in_force.push(cpu);
            let known = |known: &Plan| known.plan_id == plan.plan_id;
            if !resumed.plans.iter().any(known) {
                resumed.plans.push(plan);
            }
        }
    }
    Ok(Left { machine, runs, resumed })
}

/// A run whose programs were let go in this boot, with what was saved of it if that can
/// be read. Of the others, what was ordered waits once more, and the rest is closed.
fn under_way(
    ledger: &mut Ledger,
    figures: &RunFigures,
    takeover: &Takeover,
    device: &Device,
    listener: &mut dyn Listener,
) -> Result<Option<Option<Saved>>, Error> {
    if is_submitted(&figures.run, takeover) {
        return Ok(None);
    }
    let saved = Saved::from_text(&takeover.reservation);
    let is_now = takeover.boot_id == boot_id();
    // One who died after he had let them go may not have noted it.
    let committed = |saved: &Saved| was_released(&saved.commit);
    let commit = saved.as_ref().filter(|saved| committed(saved));
    if let Some(saved) = commit.filter(|_| is_now) {
        ledger.committed(saved.commit.clone());
    }
    if is_now && (figures.run.state == State::Running || commit.is_some()) {
        return Ok(Some(saved));
    }
    let id = figures.run.id;
    match (figures.run.state, ledger.order(id)?) {
        (State::Planned, Some(_)) => ledger.put_back(id, takeover.request.clone())?,
        _ => {
            let closed = ledger.close(figures, takeover, None, device, |outcome| {
                let known = saved.as_ref().map(|saved| lost(figures, saved, false));
                let ending = Ending { why: Some(REBOOTED.into()), ..known.unwrap_or_default() };
                (if outcome == Outcome::Complete { Outcome::Unknown } else { outcome }, ending)
            })?;
            report(figures, &closed, listener);
        }
    }
    Ok(None)
}

/// Whether a CPU follows a plan with a process of it.
fn goes_on(device: &Device, saved: &Saved) -> bool {
    let mut plans = saved.machine.cpus().filter_map(|cpu| in_force(device, cpu));
    plans.any(|plan| plan.processes.iter().any(|p| saved.numbers.contains(&p.id)))
}

/// Returns the progress of each process when the run was saved.
fn so_far(saved: &Saved, figures: &RunFigures, plan: &Plan) -> Vec<SoFar> {
    let job = &saved.job;
    let processes = job.processes.iter().zip(&saved.numbers);
    let so_far = processes.map(|(process, &number)| {
        let mut known = figures.processes.iter();
        let Some(known) = known.find(|known| known.process == process.id) else {
            return SoFar::default();
        };
        let index = plan.processes.iter().position(|p| p.id == number);
        let cpu = index.and_then(|index| plan.cpu_of(index)).map(|cpu| cpu.cpu);
        let mut so_far = SoFar {
            // Who was never seen has no thread, or its attachment is to be heard of.
            cpu: cpu.filter(|_| known.outcome != Outcome::Absent),
            end: match known.outcome {
                Outcome::Complete => Some(End::Complete),
                Outcome::Killed | Outcome::Ejected => Some(End::Cut),
                Outcome::Absent
                | Outcome::Unknown
                | Outcome::Declined
                | Outcome::Cancelled
                | Outcome::Failed => None,
            },
            ..SoFar::default()
        };
        for (position, &task) in process.tasks.iter().enumerate() {
            let task = &job.tasks[task];
            let mut tasks = known.tasks.iter();
            let Some(known) = tasks.find(|known| known.task == task.id) else {
                continue;
            };
            if known.outcome != Outcome::Complete {
                so_far.retired_insns = known.retired_insns;
                break;
            }
            so_far.measured.push(Measured {
                position,
                expected_insns: task.insns,
                retired_insns: known.retired_insns,
            });
        }
        so_far
    });
    so_far.collect()
}
