// SPDX-License-Identifier: GPL-2.0
//! Running jobs that stay where they are in a new plan.
//!
//! A new plan is made since one job deviates from its plan. The others keep the
//! promise that they have if their reservations remain. What has passed of a
//! reservation is forgotten, therefore a job stays only if the rest of each task
//! fits into the rest of its place.

use crate::store::{Needs, Store};
use crate::{Progress, Request, Run, TaskReservation};

/// Lets a running job stay where it is reserved, if that is enough for what is left
/// of it from `now_ns` on, and forgets what has ended of it. Returns `false`, with
/// the store as it was, if the job has to be planned anew.
pub fn keep(store: &mut Store, request: &Request<'_>, now_ns: u64) -> bool {
    let Some(run) = rest(store, request, now_ns) else {
        return false;
    };
    let mut booking = store.book();
    booking.remove(request.run);
    // Its time was reserved for the job before.
    let is_reserved = booking.reserve(request.run, run).is_ok();
    if is_reserved {
        booking.commit();
    }
    is_reserved
}

/// Returns what remains of the job's reservations; `None` if they do not suffice.
fn rest(store: &Store, request: &Request<'_>, now_ns: u64) -> Option<Run> {
    let run = store.run(request.run)?;
    let mut rest = Run::default();
    for (index, process) in request.job.processes.iter().enumerate() {
        let (first, retired_insns, on) = match request.progress_of(index) {
            Progress::Ended => continue,
            Progress::Waiting => (0, 0, None),
            Progress::Attached { core } => (0, 0, Some(core)),
            Progress::Running { core, position, retired_insns } => {
                (position, retired_insns, Some(core))
            }
        };
        let reserved = run.processes.iter().find(|it| it.process == index)?;
        let has_begun = matches!(request.progress_of(index), Progress::Running { .. });
        let has_place = on.is_none_or(|core| core == reserved.core)
            && process.memory_bytes <= reserved.memory_bytes
            && (has_begun || reserved.start_ns >= now_ns);
        if !has_place {
            return None;
        }
        for (position, &task) in process.tasks.iter().enumerate().skip(first) {
            let place = run.tasks.binary_search_by_key(&task, |it| it.task).ok()?;
            let place = &run.tasks[place];
            let done_insns = if position == first { retired_insns } else { 0 };
            let is_begun = has_begun && position == first;
            if !suffices(store, request, place, done_insns, is_begun, now_ns) {
                return None;
            }
            rest.tasks.push(*place);
        }
        let mut reserved = reserved.clone();
        let is_holder = request.holds_without_thread(index, &Needs::new(request.job, index, store));
        if has_begun || is_holder {
            // A process that has begun before its time holds what it needs, and nobody else has it.
            reserved.start_ns = reserved.start_ns.min(now_ns);
        }
        rest.processes.push(reserved);
    }
    rest.tasks.sort_unstable_by_key(|task| task.task);
    let kept = |task: usize| rest.tasks.binary_search_by_key(&task, |it| it.task).is_ok();
    let messages = run.messages.iter().filter(|message| kept(message.to));
    rest.messages = messages.copied().collect();
    (rest.end_ns() <= request.deadline_ns).then_some(rest)
}

/// Whether the place of a task is long enough for the rest of the task.
fn suffices(
    store: &Store,
    request: &Request<'_>,
    place: &TaskReservation,
    done_insns: u64,
    is_begun: bool,
    now_ns: u64,
) -> bool {
    let process = &request.job.processes[place.process];
    let left_insns = request.job.tasks[place.task].insns.saturating_sub(done_insns);
    let left_insns = if is_begun { left_insns.max(1) } else { left_insns };
    let left_ns = store.duration_ns(place.core, store.core_insns(process, left_insns));
    let start_ns = if is_begun { place.start_ns.max(now_ns) } else { place.start_ns };
    start_ns >= now_ns && start_ns.saturating_add(left_ns) <= place.end_ns
}
