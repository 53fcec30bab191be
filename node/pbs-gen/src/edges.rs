// SPDX-License-Identifier: GPL-2.0
//! Dependencies between tasks of a generated plan, and the messages among them.

use std::collections::HashSet;

use pbs_plan::{After, Process, Slot};

use crate::random::{Random, Stream};
use crate::Parameters;

/// Number of slots before its own among which a task looks for a task to wait for.
const REACH: usize = 8;

/// Makes tasks wait for tasks of other processes whose slots come before theirs. This way the
/// dependencies form no circle. Some of them carry a message, which is planned to arrive when the
/// slot of its sender ends, on a CPU that retires an instruction in a nanosecond.
pub(crate) fn edges(parameters: &Parameters, processes: &mut [Process], slots: &[Slot]) {
    let mut random = Random::new(parameters.seed, Stream::Edges);
    let mut messages = Random::new(parameters.seed, Stream::PlannedMessages);
    let mut next_task = vec![0; processes.len()];
    // (process, task) of the slots so far that are not idle, with their planned ends.
    let mut places: Vec<(usize, usize, u64)> = Vec::new();
    let mut end_ns = 0;
    for slot in slots {
        let process = match *slot {
            Slot::Idle { length_insns, .. } => {
                end_ns += length_insns;
                continue;
            }
            Slot::Process { process } => process,
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
        let is_message = messages.below(1000) < parameters.message_permille;
        if waits && !others.is_empty() {
            let (after, after_task, arrival_ns) = others[chosen % others.len()];
            let after = After {
                process: processes[after].id,
                task: processes[after].tasks[after_task].id,
                arrival_ns: is_message.then_some(arrival_ns),
                ..After::default()
            };
            processes[process].tasks[task].after.push(after);
        }
        end_ns += processes[process].tasks[task].planned_insns;
        places.push((process, task, end_ns));
    }
}

/// (process, task) of the tasks that send a message, by their ids.
pub(crate) fn senders(processes: &[Process]) -> HashSet<(u32, u32)> {
    let tasks = processes.iter().flat_map(|process| &process.tasks);
    let messages = tasks.flat_map(|task| &task.after).filter(|after| after.arrival_ns.is_some());
    messages.map(|after| (after.process, after.task)).collect()
}
