// SPDX-License-Identifier: GPL-2.0
//! A victim beside hostile neighbours, with the configuration that is shipped: as a process of the
//! plan, and as another user's program on the CPU of the plan.

mod neighbours;

use pbs_core::{Config, Dispatch};
use pbs_uapi::{Device, EventKind};

use crate::check;
use crate::harness::{
    burn, fork, kernel_is_watched, now_ns, sleep_ms, sysfs_number, Counting, Plan, Random, Scene,
    Verdict,
};
use crate::linux::scene::set_affinity;
use neighbours::{Neighbour, ALL};

/// Tasks of the victim.
const TASKS: u32 = 20;

/// The length of each slot: 4 ms of the machine of the tests.
const SLOT_INSNS: u64 = 1_000_000;

/// Place of a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// It is a process of the plan, and has every second slot.
    Planned,
    /// It is in no plan and another user's; every second slot is that of a process that computes.
    Outside,
}

/// The deadline of both processes: all slots and a quarter more.
const DEADLINE_NS: u64 = 200_000_000;

/// The plan in that order: the configuration of a node, or what planners make of it.
fn plan(dispatch: Dispatch) -> Plan {
    let mut plan = Plan::new(1).lead_in();
    for task in 0..TASKS {
        plan = plan.slot(1, task, SLOT_INSNS).slot(2, task, SLOT_INSNS);
    }
    match dispatch {
        Dispatch::Thesis => plan.without_config(),
        Dispatch::Deadline => plan
            .config(Config {
                dispatch: Dispatch::Deadline as u64,
                window_period_ns: Config::DEFAULT.window_period_ns / 5,
                window_unallocated_ns: Config::DEFAULT.window_unallocated_ns / 5,
                ..Config::DEFAULT
            })
            .deadline(1, DEADLINE_NS)
            .deadline(2, DEADLINE_NS),
    }
}

/// Runs the victim beside a neighbour. Returns the time from the plan to its end.
fn beside(neighbour: fn(&Device), place: Place, dispatch: Dispatch) -> Result<u64, String> {
    let plan = plan(dispatch);
    let mut scene = Scene::new()?;
    let planned = if place == Place::Planned { neighbour } else { |_: &Device| burn(1 << 40) };
    scene.process(1, planned)?;
    scene.tasks(2, &[Counting::here().below(SLOT_INSNS); TASKS as usize])?;
    let outsider = match place {
        Place::Planned => None,
        Place::Outside => Some(fork(|| {
            if let Ok(device) = Device::open() {
                // SAFETY: no memory is involved.
                unsafe { libc::setuid(65534) };
                neighbour(&device);
            }
        })?),
    };
    if let Some(outsider) = &outsider {
        set_affinity(outsider.pid, &[0]).map_err(|errno| format!("affinity: errno {errno}"))?;
    }
    let mut scene = scene.start(&plan)?;
    let start_ns = now_ns();
    let ended = loop {
        scene.node.read()?;
        if let Ok(ended) = scene.node.first(EventKind::ProcessEnded, 2) {
            break ended;
        }
        let log = scene.node.log();
        check!(now_ns() - start_ns < 60_000_000_000, "the victim does not end:\n{log}");
        sleep_ms(50);
    };
    let installed = scene.node.first(EventKind::PlanInstalled, pbs_uapi::IDLE)?;
    Ok(ended.time_ns - installed.time_ns)
}

/// The victim ends beside each neighbour, in both orders of dispatch, by at most so many thousandths of the time later than
/// beside a process that computes. `PBS_SEED` shuffles them; `PBS_BAR` replaces the bound, and
/// `PBS_ONLY` chooses one by name.
pub fn hostile_neighbours() -> Verdict {
    let number = |name: &str, default: u64| -> u64 {
        std::env::var(name).ok().and_then(|word| word.parse().ok()).unwrap_or(default)
    };
    let bar_permille = number("PBS_BAR", 1_300);
    let only = std::env::var("PBS_ONLY").ok();
    let mut dice = Random::new(number("PBS_SEED", 1));
    let chosen = |(name, _): &&Neighbour| only.as_ref().is_none_or(|only| only == name);
    let mut order: Vec<&Neighbour> = ALL.iter().filter(chosen).collect();
    check!(!order.is_empty(), "there is no neighbour {only:?}");
    for at in (1..order.len()).rev() {
        order.swap(at, dice.below(at + 1));
    }
    let mut worse = Vec::new();
    for dispatch in [Dispatch::Deadline, Dispatch::Thesis] {
        let good = beside(|_| burn(1 << 40), Place::Planned, dispatch)?;
        for &&(name, neighbour) in &order {
            for place in [Place::Planned, Place::Outside] {
                let taken_ns = sysfs_number("cpu0/out_of_turn_ns")?;
                let after_ns = beside(neighbour, place, dispatch)?;
                let taken_ns = sysfs_number("cpu0/out_of_turn_ns")? - taken_ns;
                let permille = after_ns * 1000 / good;
                println!(
                    "{:<8} {name:<16} {place:<8?} {:>5.3} times as late, {:>5.1} ms out of turn",
                    dispatch.name(),
                    permille as f64 / 1000.0,
                    taken_ns as f64 / 1e6,
                );
                if permille > bar_permille {
                    worse.push(format!("{name} ({place:?}, {})", dispatch.name()));
                }
            }
        }
    }
    check!(
        worse.is_empty() || kernel_is_watched(),
        "beyond {bar_permille} thousandths: {}",
        worse.join(", ")
    );
    Ok(())
}
