// SPDX-License-Identifier: GPL-2.0
//! What a mapping comes to in time.
//!
//! Rounds carry no time.  It follows from the queues: each thread and each accelerator works
//! its queue off first in, first out, and tasks enter the queues in the order of their rounds.

use crate::check::Fault;
use crate::model::{Place, Platform, Workload};
use crate::queues::{Queues, Slot, Where};

/// What is decided of a task: "best index" and "round" of its CSI (§5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Which of its variants.
    pub variant: usize,
    /// The round it was given out in, from 1.
    pub round: u32,
    /// Its place within the round.
    pub place: u32,
}

/// What is decided of all waiting tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    /// By task; nothing for those that do not wait.
    pub choices: Vec<Option<Choice>>,
}

impl Mapping {
    /// The tasks as they enter the queues.
    pub fn order(&self) -> Vec<usize> {
        let mut order: Vec<(u32, u32, usize)> = self
            .choices
            .iter()
            .enumerate()
            .filter_map(|(task, choice)| choice.map(|of| (of.round, of.place, task)))
            .collect();
        order.sort_unstable();
        order.into_iter().map(|(_, _, task)| task).collect()
    }

    /// A mapping of tasks in this order, each in a round of its own.
    pub fn in_order(tasks: usize, order: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let mut choices = vec![None; tasks];
        for (round, (task, variant)) in (1..).zip(order) {
            choices[task] = Some(Choice {
                variant,
                round,
                place: 0,
            });
        }
        Self { choices }
    }
}

/// When and where each task runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// By task: those that have started and those that were mapped.
    pub slots: Vec<Option<Slot>>,
}

impl Timeline {
    /// When everything has ended.
    pub fn end_ns(&self) -> u64 {
        self.slots
            .iter()
            .flatten()
            .map(|slot| slot.end_ns)
            .max()
            .unwrap_or(0)
    }
}

/// When and where everything runs under a mapping.
///
/// A task with n threads takes the n threads whose queues are through first, a task of an
/// accelerator that one of its type on which it starts first.  It starts when all of them are
/// free, its process has arrived and the data of all that it waits for are there; until then
/// nobody passes it in its queues.
///
/// # Errors
/// The mapping names a variant or a device that is not there, or queues a task before one that
/// it waits for.
pub fn timing(
    workload: &Workload,
    platform: &Platform,
    queues: &Queues,
    mapping: &Mapping,
) -> Result<Timeline, Fault> {
    let mut threads: Vec<(u64, u32)> = queues
        .threads
        .iter()
        .map(|queue| queues.free_ns(queue))
        .zip(0..)
        .collect();
    threads.resize(platform.threads as usize, (queues.now_ns, 0));
    for (number, thread) in (0..).zip(&mut threads) {
        thread.1 = number;
    }
    let mut devices: Vec<Vec<u64>> = platform
        .devices
        .iter()
        .enumerate()
        .map(|(device, of)| {
            let mut free_ns: Vec<u64> = queues.devices.get(device).map_or_else(Vec::new, |of| {
                of.iter().map(|queue| queues.free_ns(queue)).collect()
            });
            free_ns.resize(of.count as usize, queues.now_ns);
            free_ns
        })
        .collect();
    let mut slots: Vec<Option<Slot>> = (0..workload.tasks.len())
        .map(|task| queues.slot(task).cloned())
        .collect();
    for task in mapping.order() {
        let Some(of) = workload.tasks.get(task) else {
            return Err(Fault::NoSuchTask { task });
        };
        let choice = mapping.choices[task].map_or(0, |choice| choice.variant);
        let Some(variant) = of.variants.get(choice) else {
            return Err(Fault::NoSuchVariant {
                task,
                variant: choice,
            });
        };
        let arrival_ns = workload
            .processes
            .get(of.process)
            .map_or(0, |of| of.arrival_ns);
        let released_ns = queues.now_ns.max(arrival_ns);
        for edge in &of.after {
            if slots.get(edge.task).is_some_and(Option::is_none) && queues.waits(edge.task) {
                return Err(Fault::BeforeItsPredecessor {
                    task,
                    predecessor: edge.task,
                });
            }
        }
        // When its data are there, if it ran in this memory.
        let data_ns = |here: Option<(usize, u32)>| {
            of.after.iter().fold(released_ns, |ready_ns, edge| {
                let Some(Some(slot)) = slots.get(edge.task) else {
                    return ready_ns;
                };
                let travels = if memory(&slot.place) == here {
                    0
                } else {
                    edge.transfer_ns
                };
                ready_ns.max(slot.end_ns.saturating_add(travels))
            })
        };
        let slot = match variant.place {
            Place::Threads(needed) => {
                let needed = needed as usize;
                if needed == 0 || needed > threads.len() {
                    return Err(Fault::TooLarge {
                        task,
                        variant: choice,
                    });
                }
                threads.sort_unstable();
                let start_ns = data_ns(None).max(threads[needed - 1].0);
                let end_ns = start_ns.saturating_add(variant.runtime_ns);
                let taken = &mut threads[..needed];
                for thread in taken.iter_mut() {
                    thread.0 = end_ns;
                }
                let mut lanes: Vec<u32> = taken.iter().map(|&(_, lane)| lane).collect();
                lanes.sort_unstable();
                Slot {
                    start_ns,
                    end_ns,
                    place: Where::Threads(lanes),
                }
            }
            Place::Device(device) => {
                let first = devices.get(device).into_iter().flatten().zip(0..).map(
                    |(&free_ns, instance)| {
                        (data_ns(Some((device, instance))).max(free_ns), instance)
                    },
                );
                let Some((start_ns, instance)) = first.min() else {
                    return Err(Fault::TooLarge {
                        task,
                        variant: choice,
                    });
                };
                let end_ns = start_ns.saturating_add(variant.runtime_ns);
                devices[device][instance as usize] = end_ns;
                Slot {
                    start_ns,
                    end_ns,
                    place: Where::Device { device, instance },
                }
            }
        };
        slots[task] = Some(slot);
    }
    Ok(Timeline { slots })
}

/// The memory a task's data are in: the host's, or an accelerator's.
fn memory(place: &Where) -> Option<(usize, u32)> {
    match *place {
        Where::Threads(_) => None,
        Where::Device { device, instance } => Some((device, instance)),
    }
}
