// SPDX-License-Identifier: GPL-2.0
//! Tasks on different CPUs slow each other.

use std::collections::HashMap;

use pbs_interference::{names, Entry, Key, Names, Neighbour, Sharing, Slowdowns};
use pbs_plan::Plan;

use crate::clock::Clock;

/// Slow-downs between tasks of a simulation.
#[derive(Clone, Debug, Default)]
pub struct Interference {
    /// Factors by which tasks slow each other.
    pub slowdowns: Slowdowns,
    /// Resources that the CPUs share.
    pub sharing: Sharing,
    /// Keys of the tasks, by the numbers of process and task. A task without a key neither slows
    /// others nor is slowed.
    pub keys: HashMap<(u32, u32), Key>,
}

impl Interference {
    /// Builds the interference of a plan whose processes and tasks have the names in `entries`
    /// ([`pbs_interference::names`]). Entries about other names are ignored.
    pub fn of_plan(plan: &Plan, entries: &[Entry<String>], sharing: Sharing) -> Self {
        let mut known = Names::default();
        let mut keys = HashMap::new();
        for process in &plan.processes {
            for task in &process.tasks {
                let key = Key { fingerprint: process.id.into(), task: task.id, variant: 0 };
                let label = process.label();
                let name = task.name.as_deref();
                known.add(key, names(None, &label, task.id, name, None));
                keys.insert((process.id, task.id), key);
            }
        }
        Self { slowdowns: Slowdowns::new(known.resolve(entries)), sharing, keys }
    }

    /// Returns the rate of the task that runs on CPU `cpu`; `clock` is its rate if it runs alone.
    /// `running` lists all CPUs that have a task.
    pub(crate) fn pace(&self, clock: Clock, cpu: u32, running: &[(u32, (u32, u32))]) -> Clock {
        let here = running.iter().find(|&&(other, _)| other == cpu);
        let Some(victim) = here.and_then(|(_, task)| self.keys.get(task)) else {
            return clock;
        };
        let beside = running.iter().filter(|&&(other, _)| other != cpu);
        let beside = beside.filter_map(|(other, task)| {
            Some(Neighbour { level: self.sharing.level(cpu, *other), key: *self.keys.get(task)? })
        });
        let beside: Vec<_> = beside.collect();
        let slowdown = self.slowdowns.of(*victim, &beside).slowdown;
        if slowdown == 1.0 {
            return clock;
        }
        // It is bounded, so nothing is lost or negative.
        clock.slowed(MILLION, (slowdown * MILLION as f64).round() as u128)
    }
}

const MILLION: u128 = 1_000_000;
