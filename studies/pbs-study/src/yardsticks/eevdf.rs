// SPDX-License-Identifier: GPL-2.0
//! Earliest eligible virtual deadline first: `SCHED_OTHER`, all tasks with nice 0.
//!
//! A task is eligible if it had no more than its share so far, that is if its virtual time is
//! at most the mean of all that can run. Of those the one with the earliest virtual deadline
//! runs for a slice. All have one weight, therefore the virtual time of a task is its own
//! time, from a beginning that is the mean when it can first run.

use super::{push, Demand, Stretch};

/// A task that can run.
#[derive(Clone, Copy, Debug)]
struct Entity {
    job: usize,
    virtual_ns: i128,
    virtual_deadline_ns: i128,
    left_ns: u64,
}

/// Runs all jobs to their ends, in slices of that length.
pub fn run(demands: &[Demand], slice_ns: u64) -> Vec<Stretch> {
    let slice_ns = slice_ns.max(1);
    let mut order: Vec<usize> = (0..demands.len()).collect();
    order.sort_by_key(|&job| demands[job].release_ns);
    let mut to_come = order.into_iter().peekable();
    let mut runnable: Vec<Entity> = Vec::new();
    let mut stretches = Vec::new();
    let mut now_ns = 0;
    loop {
        while let Some(job) = to_come.next_if(|&job| demands[job].release_ns <= now_ns) {
            let virtual_ns = mean_ns(&runnable);
            if demands[job].length_ns > 0 {
                runnable.push(Entity {
                    job,
                    virtual_ns,
                    virtual_deadline_ns: virtual_ns + i128::from(slice_ns),
                    left_ns: demands[job].length_ns,
                });
            }
        }
        let Some(place) = first(&runnable) else {
            match to_come.peek() {
                Some(&job) => now_ns = demands[job].release_ns,
                None => return stretches,
            }
            continue;
        };
        // The slice goes on though others come meanwhile (RUN_TO_PARITY).
        let entity = &mut runnable[place];
        let to_deadline_ns = entity.virtual_deadline_ns - entity.virtual_ns;
        let lasts_ns = entity.left_ns.min(u64::try_from(to_deadline_ns).unwrap_or(slice_ns));
        push(&mut stretches, entity.job, now_ns, now_ns + lasts_ns);
        now_ns += lasts_ns;
        entity.left_ns -= lasts_ns;
        entity.virtual_ns += i128::from(lasts_ns);
        entity.virtual_deadline_ns = entity.virtual_ns + i128::from(slice_ns);
        if entity.left_ns == 0 {
            runnable.remove(place);
        }
    }
}

/// Mean virtual time of the tasks, rounded down; 0 without any.
fn mean_ns(runnable: &[Entity]) -> i128 {
    let sum_ns: i128 = runnable.iter().map(|entity| entity.virtual_ns).sum();
    sum_ns.div_euclid((runnable.len() as i128).max(1))
}

/// Place of the eligible task with the earliest virtual deadline; of equal ones the first.
fn first(runnable: &[Entity]) -> Option<usize> {
    let sum_ns: i128 = runnable.iter().map(|entity| entity.virtual_ns).sum();
    let is_eligible = |entity: &Entity| entity.virtual_ns * runnable.len() as i128 <= sum_ns;
    let places = (0..runnable.len()).filter(|&place| is_eligible(&runnable[place]));
    places.min_by_key(|&place| runnable[place].virtual_deadline_ns)
}

#[cfg(test)]
mod tests {
    use super::super::{demand, ends, stretch};
    use super::*;

    #[test]
    fn two_tasks_take_turns() {
        let stretches = run(&[demand(0, 1, 5), demand(0, 1, 4)], 2);
        let expected = [
            stretch(0, 0, 2),
            stretch(1, 2, 4),
            stretch(0, 4, 6),
            stretch(1, 6, 8),
            stretch(0, 8, 9),
        ];
        assert_eq!(stretches, expected);
    }

    /// At 4 the first task is 4 ahead of its beginning; the second begins with the mean, 4,
    /// and has the same virtual deadline as it, 6: the first goes on, and then the second is
    /// behind the mean, 5.
    #[test]
    fn a_task_that_comes_later_owes_nothing_and_is_owed_nothing() {
        let stretches = run(&[demand(0, 1, 8), demand(3, 1, 2)], 2);
        assert_eq!(stretches, [stretch(0, 0, 6), stretch(1, 6, 8), stretch(0, 8, 10)]);
    }

    #[test]
    fn deadlines_do_not_matter() {
        let ends_ns = ends(&run(&[demand(0, 100, 4), demand(0, 4, 4)], 2), 2);
        assert_eq!(ends_ns, [Some(6), Some(8)]);
    }

    #[test]
    fn time_without_tasks_passes() {
        assert_eq!(run(&[demand(7, 9, 1)], 2), [stretch(0, 7, 8)]);
    }
}
