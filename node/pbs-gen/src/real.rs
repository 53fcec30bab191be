// SPDX-License-Identifier: GPL-2.0
//! Real execution: real lengths, and waiting.

use pbs_plan::{Process, Slot, Task};
use pbs_uapi::MAX_SLOT_INSNS;

use crate::edges::senders;
use crate::layout::LONG;
use crate::random::{Random, Stream};
use crate::{Parameters, Scenario};

/// The least real length of the task of `endless-loop`.
const ENDLESS_INSNS: u64 = 1 << 40;

/// The index of the coordinator of `scatter-gather`.
const COORDINATOR: usize = 0;

/// Gives every task and every idle slot its real length, and the coordinator
/// of `scatter-gather` its waits.
pub(crate) fn lengths(parameters: &Parameters, processes: &mut [Process], slots: &mut [Slot]) {
    let hit = Hit::choose(parameters, processes);
    let senders = senders(processes);
    let mut random = Random::new(parameters.seed, Stream::Deviation);
    let mut next_task = vec![0; processes.len()];
    for slot in slots.iter_mut() {
        // Every slot takes its numbers from the stream, so that the same slots
        // deviate alike in all scenarios.
        let drawn = random.normal();
        let deviation = |sigma_permille: u64| drawn * sigma_permille as f64 / 1000.0;
        let of_tasks = deviation(parameters.task_sigma_permille);
        match slot {
            Slot::Idle { length_insns, real_insns } => {
                *real_insns = Some(real_insns_of(*length_insns, 0, of_tasks))
            }
            Slot::Process { process } => {
                let number = next_task[*process];
                next_task[*process] += 1;
                let id = processes[*process].id;
                let task = &mut processes[*process].tasks[number];
                // A message arrives when its sender ends.
                let deviation = if senders.contains(&(id, task.id)) {
                    deviation(parameters.message_sigma_permille)
                } else {
                    of_tasks
                };
                // A coordinator that were preempted would wait a round longer,
                // and be preempted by its wait in the next.
                let exact =
                    parameters.scenario == Scenario::ScatterGather && *process == COORDINATOR;
                let deviation = if exact { 0.0 } else { deviation };
                let lateness_permille = if hit.is_on(*process, number, task) {
                    parameters.lateness_permille()
                } else {
                    0
                };
                let planned_insns = task.planned_insns;
                task.real_insns = Some(real_insns_of(planned_insns, lateness_permille, deviation));
            }
        }
    }
    match (parameters.scenario, hit) {
        (Scenario::OneOver, Hit::Process(process)) => {
            processes[process].name = Some("over".into());
        }
        (Scenario::RogueTask, Hit::Task(process, number)) => {
            processes[process].tasks[number].name = Some("rogue".into());
        }
        (Scenario::EndlessLoop, Hit::Task(process, number)) => {
            let task = &mut processes[process].tasks[number];
            task.name = Some("endless".into());
            task.real_insns = Some(ENDLESS_INSNS.max(1000 * task.planned_insns));
        }
        (Scenario::ScatterGather, _) => wait_for_rounds(processes, slots),
        _ => {}
    }
}

fn real_insns_of(planned_insns: u64, lateness_permille: i64, deviation: f64) -> u64 {
    let planned = i128::from(planned_insns);
    let late = planned * i128::from(lateness_permille) / 1000;
    let scatter = (planned_insns as f64 * deviation).round() as i128;
    (planned + late + scatter).clamp(1, MAX_SLOT_INSNS.into()) as u64
}

/// The workers of other nodes take the time that their round is planned to
/// take: from the coordinator's slot to its next.
fn wait_for_rounds(processes: &mut [Process], slots: &[Slot]) {
    let mut next_task = vec![0; processes.len()];
    let mut round_insns = 0;
    for slot in slots {
        match *slot {
            Slot::Idle { length_insns, .. } => round_insns += length_insns,
            Slot::Process { process } => {
                let number = next_task[process];
                next_task[process] += 1;
                let task = &mut processes[process].tasks[number];
                if process == COORDINATOR {
                    task.wait_insns = (number > 0).then_some(round_insns.min(MAX_SLOT_INSNS));
                    round_insns = 0;
                } else {
                    round_insns += task.planned_insns;
                }
            }
        }
    }
}

/// Tasks that the scenario makes late or early.
#[derive(Clone, Copy)]
enum Hit {
    Nobody,
    Everybody,
    Process(usize),
    /// The task with the second index, of the process with the first index.
    Task(usize, usize),
    LongTasks,
    Workers,
}

impl Hit {
    fn choose(parameters: &Parameters, processes: &[Process]) -> Self {
        let mut random = Random::new(parameters.seed, Stream::Scenario);
        match parameters.scenario {
            Scenario::Normal => Hit::Nobody,
            Scenario::AllSlightlyLate | Scenario::EarlyNode => Hit::Everybody,
            Scenario::OneOver => Hit::Process(random.below(processes.len() as u64) as usize),
            Scenario::LongThenShort => Hit::LongTasks,
            Scenario::ScatterGather => Hit::Workers,
            Scenario::EndlessLoop | Scenario::RogueTask => {
                let tasks = |process: &Process| process.tasks.len() as u64;
                let mut number = random.below(processes.iter().map(tasks).sum());
                let mut process = 0;
                while number >= tasks(&processes[process]) {
                    number -= tasks(&processes[process]);
                    process += 1;
                }
                Hit::Task(process, number as usize)
            }
        }
    }

    fn is_on(self, process: usize, number: usize, task: &Task) -> bool {
        match self {
            Hit::Nobody => false,
            Hit::Everybody => true,
            Hit::Process(hit) => process == hit,
            Hit::Task(hit, hit_number) => (process, number) == (hit, hit_number),
            Hit::LongTasks => task.name.as_deref() == Some(LONG),
            Hit::Workers => process != COORDINATOR,
        }
    }
}
