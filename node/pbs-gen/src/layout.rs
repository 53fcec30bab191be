// SPDX-License-Identifier: GPL-2.0
//! The plan as it is planned: processes, their tasks, and the order of slots.

use pbs_plan::{Process, Slot, Task};
use pbs_text::underscored;
use pbs_uapi::{MAX_BUFFER_INSNS, MAX_SLOTS};

use crate::random::{Random, Stream};
use crate::{Error, Parameters, Scenario, SlotOrder, Span};

/// A long task and the short ones after it, in `long-then-short`.
const PATTERN: usize = 10;

/// The name of its long tasks.
pub(crate) const LONG: &str = "long";

/// Processes with planned lengths.
pub(crate) fn processes(parameters: &Parameters) -> Vec<Process> {
    let mut random = Random::new(parameters.seed, Stream::Processes);
    let mut processes: Vec<Process> = (1u32..)
        .take(parameters.processes as usize)
        .map(|id| {
            let tasks = random.within(parameters.tasks);
            let lengths = (0..tasks).map(|_| random.within(parameters.task_insns));
            process(id, lengths.collect::<Vec<_>>())
        })
        .collect();
    match parameters.scenario {
        Scenario::LongThenShort => stack(parameters, &mut processes),
        Scenario::ScatterGather => scatter(parameters, &mut processes),
        _ => {}
    }
    for process in &mut processes {
        let planned_insns: u64 = process.tasks.iter().map(|task| task.planned_insns).sum();
        let share_permille = random.within(parameters.buffer_permille);
        let buffer_insns = u128::from(planned_insns) * u128::from(share_permille) / 1000;
        process.buffer_insns = buffer_insns.min(MAX_BUFFER_INSNS.into()) as u64;
    }
    processes
}

fn process(id: u32, lengths: impl IntoIterator<Item = u64>) -> Process {
    let tasks =
        (0..).zip(lengths).map(|(id, planned_insns)| Task { id, planned_insns, ..Task::default() });
    Process { id, tasks: tasks.collect(), ..Process::default() }
}

/// Makes one process that of `long-then-short`.
fn stack(parameters: &Parameters, processes: &mut [Process]) {
    let mut random = Random::new(parameters.seed, Stream::Scenario);
    let at = random.below(processes.len() as u64) as usize;
    let process = &mut processes[at];
    process.name = Some("stacking".into());
    for (number, task) in process.tasks.iter_mut().enumerate() {
        let long = number % PATTERN == 0;
        let Span { min, max } = parameters.task_insns;
        task.planned_insns = if long { max } else { min };
        task.name = long.then(|| LONG.into());
    }
}

/// Makes the processes those of `scatter-gather`: as many tasks for each, and
/// rounds that the coordinator's slots can bear.
fn scatter(parameters: &Parameters, processes: &mut [Process]) {
    let rounds = processes.iter().map(|process| process.tasks.len()).min();
    let rounds = rounds.unwrap_or(0);
    for (number, process) in processes.iter_mut().enumerate() {
        process.tasks.truncate(rounds);
        process.name = Some(match number {
            0 => "coordinator".into(),
            _ => format!("worker-{number}"),
        });
    }
    let Some((coordinator, workers)) = processes.split_first_mut() else {
        return;
    };
    // The coordinator waits in its slot for what the round's workers were
    // early.  A slot has a ceiling on the clock, twice its length and more by
    // default; so the collecting task is twice as long as they are expected to
    // be early, if it can be.
    let early_permille = parameters.lateness_permille().unsigned_abs();
    for round in 1..rounds {
        let works = workers.iter().map(|worker| worker.tasks[round - 1].planned_insns);
        let early_insns = u128::from(works.sum::<u64>()) * u128::from(early_permille) / 1000;
        let least = (2 * early_insns).min(parameters.task_insns.max.into()) as u64;
        let task = &mut coordinator.tasks[round];
        task.planned_insns = task.planned_insns.max(least);
    }
}

/// The slots in order, idle ones among them.
pub(crate) fn slots(parameters: &Parameters, processes: &[Process]) -> Result<Vec<Slot>, Error> {
    let mut random = Random::new(parameters.seed, Stream::Slots);
    let order = match parameters.scenario {
        Scenario::ScatterGather => SlotOrder::Turns,
        _ => parameters.order,
    };
    let tasks: Vec<u64> = processes.iter().map(|process| process.tasks.len() as u64).collect();
    let order = match order {
        SlotOrder::Alternate => alternate(&mut random, tasks),
        SlotOrder::Turns => turns(&tasks),
        SlotOrder::Blocks => blocks(&tasks),
    };
    let planned = processes.iter().flat_map(|process| &process.tasks);
    let planned_insns = planned.map(|task| task.planned_insns).sum();
    let room = MAX_SLOTS as usize - order.len();
    let idle = idle_lengths(parameters, &mut random, planned_insns, room)?;
    Ok(mix(&mut random, order, idle))
}

/// Orders the slots by chance; processes with more tasks left come more often. A process comes
/// twice in a row only if it has more tasks than all others can separate.
fn alternate(random: &mut Random, mut left: Vec<u64>) -> Vec<usize> {
    let mut all_left: u64 = left.iter().sum();
    let mut order = Vec::with_capacity(all_left as usize);
    let mut last = usize::MAX;
    while all_left > 0 {
        let most = (0..left.len()).max_by_key(|&process| left[process]).unwrap_or(0);
        let others = all_left - left.get(last).copied().unwrap_or(0);
        let next = if others == 0 || most != last && 2 * left[most] > all_left {
            most
        } else {
            let mut ticket = random.below(others);
            let mut candidates = (0..left.len()).filter(|&process| process != last);
            let drawn = candidates.find(|&process| match ticket.checked_sub(left[process]) {
                Some(rest) => {
                    ticket = rest;
                    false
                }
                None => true,
            });
            drawn.unwrap_or(most)
        };
        left[next] -= 1;
        all_left -= 1;
        order.push(next);
        last = next;
    }
    order
}

fn turns(tasks: &[u64]) -> Vec<usize> {
    let rounds = tasks.iter().copied().max().unwrap_or(0);
    (0..rounds)
        .flat_map(|round| (0..tasks.len()).filter(move |&process| tasks[process] > round))
        .collect()
}

fn blocks(tasks: &[u64]) -> Vec<usize> {
    let processes = tasks.iter().enumerate();
    processes.flat_map(|(process, &tasks)| std::iter::repeat_n(process, tasks as usize)).collect()
}

/// Idle slots that make up the share of the plan that was asked for, to half of
/// the least idle slot.
fn idle_lengths(
    parameters: &Parameters,
    random: &mut Random,
    planned_insns: u64,
    room: usize,
) -> Result<Vec<u64>, Error> {
    let share = u128::from(parameters.idle_permille);
    let wanted_insns = u128::from(planned_insns) * share / (1000 - share);
    // At most 2^60 instructions, nine times: a plan is at most nine tenths idle.
    let mut wanted_insns = u64::try_from(wanted_insns).unwrap_or(u64::MAX);
    let Span { min, .. } = parameters.idle_insns;
    let mut lengths = Vec::new();
    while wanted_insns >= min.div_ceil(2) && wanted_insns > 0 {
        if lengths.len() == room {
            return Err(Error::new(
                "idle_insns",
                format!(
                    "is {}; that needs more than the {} slots of a plan; make it longer or \
                     idle_permille less",
                    parameters.idle_insns,
                    underscored(MAX_SLOTS.into())
                ),
            ));
        }
        let drawn_insns = random.within(parameters.idle_insns);
        let length_insns = drawn_insns.min(wanted_insns).max(min);
        wanted_insns = wanted_insns.saturating_sub(length_insns);
        lengths.push(length_insns);
    }
    Ok(lengths)
}

/// Puts idle slots behind others: one behind each that is drawn, more only
/// where there are more of them than of the others.
fn mix(random: &mut Random, order: Vec<usize>, idle: Vec<u64>) -> Vec<Slot> {
    let mut slots = Vec::with_capacity(order.len() + idle.len());
    let mut idle = idle.into_iter();
    let everywhere = idle.len() / order.len();
    let mut extra = (idle.len() % order.len()) as u64;
    let places = order.len() as u64;
    for (place, process) in (0..places).zip(order) {
        slots.push(Slot::Process { process });
        let mut here = everywhere;
        if random.below(places - place) < extra {
            extra -= 1;
            here += 1;
        }
        slots.extend(
            idle.by_ref()
                .take(here)
                .map(|length_insns| Slot::Idle { length_insns, real_insns: None }),
        );
    }
    slots
}
