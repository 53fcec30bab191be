// SPDX-License-Identifier: GPL-2.0
//! Dependencies between tasks of a generated plan.

use pbs_plan::{After, Process, Slot};

use crate::random::{Random, Stream};
use crate::Parameters;

/// Number of slots before its own among which a task looks for a task to wait for.
const REACH: usize = 8;

/// Makes tasks wait for tasks of other processes whose slots come before theirs. This way the
/// dependencies form no circle.
pub(crate) fn edges(parameters: &Parameters, processes: &mut [Process], slots: &[Slot]) {
    let mut random = Random::new(parameters.seed, Stream::Edges);
    let mut next_task = vec![0; processes.len()];
    // (process, task) of the slots so far that are not idle.
    let mut places: Vec<(usize, usize)> = Vec::new();
    for slot in slots {
        let Slot::Process { process } = *slot else {
            continue;
        };
        let task = next_task[process];
        next_task[process] += 1;
        let reached = places.iter().rev().take(REACH);
        let others = reached.filter(|place| place.0 != process);
        let others: Vec<_> = others.copied().collect();
        // Every slot takes its numbers from the stream, so that a greater share has the edges of
        // a smaller one.
        let waits = random.below(1000) < parameters.edge_permille;
        let chosen = random.below(1 << 32) as usize;
        if waits && !others.is_empty() {
            let (after, after_task) = others[chosen % others.len()];
            let after = After {
                process: processes[after].id,
                task: processes[after].tasks[after_task].id,
                ..After::default()
            };
            processes[process].tasks[task].after.push(after);
        }
        places.push((process, task));
    }
}
