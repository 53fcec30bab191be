// SPDX-License-Identifier: GPL-2.0
//! A victim beside hostile neighbours, with the configuration that is shipped: as a process of the
//! plan, and as another user's program on the CPU of the plan.

pub mod neighbours;

use pbs_core::{Config, Dispatch};
use pbs_launch::lower_timers;
use pbs_node::planner_config;
use pbs_uapi::Device;

use crate::check;
use crate::harness::{burn, fork, kernel_is_watched, sysfs_number, Plan, Random, Verdict};
use crate::linux::scene::set_affinity;
use crate::policy_neighbours::{beside_in, taking_turns};
use neighbours::{Neighbour, ALL};

/// Place of a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// Process of the plan, with every second slot.
    Planned,
    /// Program of another user, in no plan; every second slot is that of a process that computes.
    Outside,
}

/// The deadline of both processes: all slots and a quarter more.
const DEADLINE_NS: u64 = 200_000_000;

/// Timers of a user's programs that the service starts: the default of `--job-timers`.
const JOB_TIMERS: u64 = 64;

/// The plan in that order: the configuration of a node, or what planners make of it.
fn plan(dispatch: Dispatch) -> Plan {
    let plan = taking_turns();
    match dispatch {
        Dispatch::Thesis => plan.without_config(),
        Dispatch::Deadline => plan
            .config(planner_config(Config::DEFAULT))
            .deadline(1, DEADLINE_NS)
            .deadline(2, DEADLINE_NS),
    }
}

/// Runs the victim beside a neighbour. Returns the time from the plan to its end.
fn beside(neighbour: fn(&Device), place: Place, dispatch: Dispatch) -> Result<u64, String> {
    let plan = plan(dispatch);
    let planned = |device: &Device| match place {
        Place::Planned => {
            lower_timers(JOB_TIMERS).expect("a limit of timers");
            neighbour(device);
        }
        Place::Outside => burn(1 << 40),
    };
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
    Ok(beside_in(&plan, planned)?.after_ns)
}

/// The victim ends beside each neighbour, in both orders of dispatch, after at most so many
/// thousandths of the time that it needs beside a process that computes. `PBS_SEED` shuffles them,
/// `PBS_BAR` replaces the bound, and `PBS_ONLY` chooses one by name.
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
