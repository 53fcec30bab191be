// SPDX-License-Identifier: GPL-2.0
//! Runs that a planner left which died: the node goes on with its plan, and who
//! takes over reads what the kernel still holds of it.

use pbs_control::{End, Measured, SoFar};
use pbs_history::{boot_id, Outcome, RunFigures, State, Takeover};
use pbs_job::Machine;
use pbs_plan::{from_toml, Plan};
use pbs_uapi::Device;

use crate::device::in_force;
use crate::ledger::Ledger;
use crate::queue::is_submitted;
use crate::saved::Saved;
use crate::Error;

/// What is left.
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

/// Where to go on.
pub(crate) struct Resumed {
    /// The plan that was written last, and then the one in force if that is
    /// another.
    pub(crate) plans: Vec<Plan>,
    /// The CPUs where one of them is in force.
    pub(crate) in_force: Vec<u32>,
    /// The first event that was not heard.
    pub(crate) next_seq: u64,
}

/// Closes what nobody needs to take over any more: runs of another boot, runs
/// whose plan never came into force, and runs that are over by now.
///
/// # Errors
///
/// A run goes on in the node.
pub(crate) fn clear(ledger: &mut Ledger, device: &Device) -> Result<(), Error> {
    for (figures, takeover) in ledger.open_runs()? {
        if is_submitted(&figures.run, &takeover) {
            continue;
        }
        let mut saved = None;
        if under_way(device, &figures, &takeover) {
            saved = Saved::from_text(&takeover.reservation);
            if saved.as_ref().is_some_and(|saved| goes_on(device, saved)) {
                return Err(Error::goes_on(&figures));
            }
        }
        ledger.close(&figures, &takeover, saved.as_ref(), device)?;
    }
    Ok(())
}

/// The runs to take over.
///
/// # Errors
///
/// There is none, or what was kept of it is of no use.
pub(crate) fn left(ledger: &mut Ledger, device: &Device) -> Result<Left, Error> {
    let mut runs = Vec::new();
    for (figures, takeover) in ledger.open_runs()? {
        if is_submitted(&figures.run, &takeover) {
            continue;
        }
        if !under_way(device, &figures, &takeover) {
            ledger.close(&figures, &takeover, None, device)?;
            continue;
        }
        let unreadable = || Error::unreadable(&figures);
        let saved = Saved::from_text(&takeover.reservation).ok_or_else(unreadable)?;
        let plan = from_toml(&takeover.plan).map_err(|_| unreadable())?;
        let so_far = so_far(&saved, &figures, &plan);
        runs.push((figures, takeover, saved, so_far, plan));
    }
    // All that were under way at once are in the plan that was written last.
    let last = runs.iter().map(|(_, takeover, ..)| takeover.plan_id).max();
    let last = last.ok_or(Error::NothingLeft)?;
    let mut resumed = Resumed {
        plans: Vec::new(),
        in_force: Vec::new(),
        next_seq: u64::MAX,
    };
    let mut left = Vec::new();
    let mut machine = Machine::default();
    for (figures, takeover, saved, so_far, plan) in runs {
        if takeover.plan_id != last {
            ledger.close(&figures, &takeover, Some(&saved), device)?;
            continue;
        }
        if resumed.plans.is_empty() {
            resumed.plans.push(plan);
        }
        machine = saved.machine.clone();
        resumed.next_seq = resumed.next_seq.min(takeover.next_seq);
        left.push(LeftRun {
            figures,
            takeover,
            saved,
            so_far,
        });
    }
    let numbers: Vec<_> = left.iter().flat_map(|run| &run.saved.numbers).collect();
    for cpu in cpus(&machine) {
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
    Ok(Left {
        machine,
        runs: left,
        resumed,
    })
}

/// Whether its programs were let go in this boot. One who died after that may not
/// have noted it.
fn under_way(device: &Device, figures: &RunFigures, takeover: &Takeover) -> bool {
    takeover.boot_id == boot_id()
        && (figures.run.state == State::Running
            || Saved::from_text(&takeover.reservation).is_some_and(|saved| goes_on(device, &saved)))
}

/// Whether a CPU follows a plan with a process of it.
fn goes_on(device: &Device, saved: &Saved) -> bool {
    let mut plans = cpus(&saved.machine).filter_map(|cpu| in_force(device, cpu));
    plans.any(|plan| plan.processes.iter().any(|p| saved.numbers.contains(&p.id)))
}

/// The CPUs of a machine of one node, as Linux numbers them.
fn cpus(machine: &Machine) -> impl Iterator<Item = u32> + '_ {
    let cores = machine.cores().zip(0..);
    cores.map(|((_, core), number)| core.cpu.unwrap_or(number))
}

/// How far each process had come when that was kept.
fn so_far(saved: &Saved, figures: &RunFigures, plan: &Plan) -> Vec<SoFar> {
    let job = &saved.job;
    let processes = job.processes.iter().zip(&saved.numbers);
    let so_far = processes.map(|(process, &number)| {
        let mut known = figures.processes.iter();
        let Some(known) = known.find(|known| known.process == process.id) else {
            return SoFar::default();
        };
        let index = plan.processes.iter().position(|p| p.id == number);
        let cpu = index
            .and_then(|index| plan.cpu_of(index))
            .map(|cpu| cpu.cpu);
        let mut so_far = SoFar {
            // Who was never seen has no thread, or its attachment is to be heard of.
            cpu: cpu.filter(|_| known.outcome != Outcome::Absent),
            end: match known.outcome {
                Outcome::Complete => Some(End::Complete),
                Outcome::Killed | Outcome::Ejected => Some(End::Cut),
                Outcome::Absent | Outcome::Unknown | Outcome::Declined => None,
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
