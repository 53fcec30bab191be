// SPDX-License-Identifier: GPL-2.0
//! Level 2: the job check, of memory times time.
//!
//! MIN_MEM_PERCENTAGE of what is wanted must be free: `left` by `want`, which
//! the thesis prints the other way round (Documentation/theses.rst).

use super::{Level, Question, Rejection, Shortage, WantType};
use crate::store::{memory_time, Store};

pub(super) fn check(question: &Question<'_>, store: &Store) -> Result<(), Rejection> {
    let deadline_ns = question.request.deadline_ns;
    if is_enough(question, store, deadline_ns) {
        return Ok(());
    }
    Err(Rejection {
        level: Level::Job,
        process: None,
        shortage: Shortage::MemoryTime {
            want: want(question, store),
            left: left(question, store, deadline_ns),
            min_mem_percentage: question.validation.min_mem_percentage,
        },
    })
}

/// Whether enough is free until that deadline. What is free grows with the
/// deadline, and what is wanted does not.
pub(super) fn is_enough(question: &Question<'_>, store: &Store, deadline_ns: u64) -> bool {
    let percentage = question.validation.min_mem_percentage;
    let needed = needed(want(question, store), percentage);
    let window = question.request.start_ns..deadline_ns;
    // Mostly it is plain to see, without a look at every step: later on less is
    // planned.
    let middle_ns = window.start + window.end.saturating_sub(window.start) / 2;
    let mut least = 0u128;
    for part in [middle_ns..window.end, window.start..middle_ns] {
        let length_ns = u128::from(part.end.saturating_sub(part.start));
        for memory in question.net.memories(store) {
            let bytes = memory.min_over(part.clone()).unwrap_or(0);
            least = least.saturating_add(u128::from(bytes) * length_ns);
            if least >= needed {
                return true;
            }
        }
    }
    left(question, store, deadline_ns) >= needed
}

/// The part of what is wanted that must be free, in byte-nanoseconds.
pub(super) fn needed(want: u128, percentage: u32) -> u128 {
    let percentage = u128::from(percentage);
    let hundredths = (want % 100 * percentage).div_ceil(100);
    (want / 100).saturating_mul(percentage).saturating_add(hundredths)
}

/// Memory over time that the job wants.
fn want(question: &Question<'_>, store: &Store) -> u128 {
    let job = question.request.job;
    if let (WantType::Totals, Some(runtime_ns), Some(memory_bytes)) =
        (question.validation.cal_want_type, job.runtime_ns, job.memory_bytes)
    {
        return u128::from(runtime_ns) * u128::from(memory_bytes);
    }
    let fastest = question.net.fastest_rate(store);
    let wants = job.processes.iter().enumerate().map(|(index, process)| {
        let runtime_ns = question.runtime_ns(store, index, fastest);
        u128::from(runtime_ns) * u128::from(process.memory_bytes)
    });
    wants.fold(0, u128::saturating_add)
}

fn left(question: &Question<'_>, store: &Store, deadline_ns: u64) -> u128 {
    let over = question.request.start_ns..deadline_ns;
    memory_time(question.net.memories(store), &over)
}
