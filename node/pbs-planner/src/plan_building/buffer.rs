// SPDX-License-Identifier: GPL-2.0
//! The plan buffers of processes (Leppert 2021, 3.3.3), and their latest ends.

use std::collections::HashMap;

use super::Entry;
use crate::reserve::net::order;
use crate::Run;

/// Slack of the processes of a job, by process.
pub(super) struct Slack {
    /// Slack of the last task, in nanoseconds: the time by which it may end later than planned. 0
    /// if nothing of the process is planned.
    pub(super) buffers_ns: Vec<u64>,
    /// Latest end of the last task; `u64::MAX`: there is no deadline.
    pub(super) latest_ends_ns: Vec<u64>,
}

/// The slack of each process.
///
/// For the initial process the buffer is the time from its end to the deadline. The
/// others have a deadline of their own: a parent waits for its children, and what
/// comes later on the same core waits as well. So the latest end of each task
/// that lets everything after it keep the deadline is computed backwards.
///
/// What one process uses up is lost to those after it. That is why the class
/// lets each have no more than a share of it (3.3.6).
pub(super) fn slack(entry: &Entry<'_>, run: &Run) -> Slack {
    let job = entry.job;
    let mut buffers_ns = vec![0; job.processes.len()];
    let mut latest_ends_ns = vec![u64::MAX; job.processes.len()];
    let place = |task: usize| run.tasks.binary_search_by_key(&task, |task| task.task).ok();
    let takes_time = |&index: &usize| run.tasks[index].start_ns < run.tasks[index].end_ns;
    let mut by_core: Vec<usize> = (0..run.tasks.len()).filter(takes_time).collect();
    by_core.sort_unstable_by_key(|&index| (run.tasks[index].core, run.tasks[index].start_ns));
    let mut next_on_core = vec![None; run.tasks.len()];
    for pair in by_core.windows(2) {
        if run.tasks[pair[0]].core == run.tasks[pair[1]].core {
            next_on_core[pair[0]] = Some(pair[1]);
        }
    }
    // Nothing starts before what it waits for has ended. Where several take no
    // time at the same time, the order in the net remains.
    let mut planned = vec![false; job.tasks.len()];
    for task in &run.tasks {
        planned[task.task] = true;
    }
    let mut in_order: Vec<usize> = order(job, &planned).into_iter().filter_map(place).collect();
    in_order.sort_by_key(|&index| (run.tasks[index].end_ns, run.tasks[index].start_ns));
    // From the end of who sends a message to when it is there.
    let underway_ns: HashMap<(usize, usize), u64> = (run.messages.iter())
        .map(|message| {
            let underway_ns = message.arrival_ns - message.start_ns;
            ((message.from, message.to), underway_ns)
        })
        .collect();
    let mut latest_ns = vec![entry.deadline_ns; run.tasks.len()];
    for &index in in_order.iter().rev() {
        let after = job.successors(run.tasks[index].task).filter_map(place);
        for after in after.chain(next_on_core[index]) {
            let task = &run.tasks[after];
            let length_ns = task.end_ns - task.start_ns;
            let message = underway_ns.get(&(run.tasks[index].task, task.task));
            let length_ns = length_ns.saturating_add(message.copied().unwrap_or(0));
            let start_ns = latest_ns[after].saturating_sub(length_ns);
            latest_ns[index] = latest_ns[index].min(start_ns);
        }
    }
    for (index, task) in run.tasks.iter().enumerate() {
        if job.processes[task.process].tasks.last() == Some(&task.task) {
            buffers_ns[task.process] = latest_ns[index].saturating_sub(task.end_ns);
            if entry.deadline_ns != u64::MAX {
                latest_ends_ns[task.process] = latest_ns[index];
            }
        }
    }
    Slack { buffers_ns, latest_ends_ns }
}
