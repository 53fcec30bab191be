// SPDX-License-Identifier: GPL-2.0
//! Job scheduler of the thesis: a constant makes what is left longer or shorter.

use pbs_core::wire::MAX_SLOT_INSNS;
use pbs_core::{Cause, EventKind};
use pbs_plan::Plan;

use super::{Failure, JobScheduler, NodeState};

/// The rescheduling component that Leppert 2021 sketches (4.4.2, listing 6): a
/// constant stretches or shrinks the planned lengths of all remaining tasks of
/// the process that a failure is associated with; of all processes, if it is
/// the node that is late or early. A process that uses more memory than planned is
/// planned with what it uses.
///
/// If a process is both late and early, the later failure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// For what is late, in thousandths; below 1000 it would be planned shorter
    /// and be late again.
    pub late_permille: u64,
    /// For what is early, in thousandths.
    pub early_permille: u64,
}

impl Default for Stretch {
    fn default() -> Self {
        Self { late_permille: 1200, early_permille: 800 }
    }
}

impl JobScheduler for Stretch {
    fn answer(&mut self, failures: &[Failure], state: &NodeState) -> Result<Option<Plan>, String> {
        let mut plan = state.remaining.clone();
        let mut factors = vec![1000; plan.processes.len()];
        let mut grew = false;
        for failure in failures {
            match failure.cause {
                // Its length is as it was; its peak is what it uses.
                Cause::Memory => {
                    let processes = plan.processes.iter_mut();
                    for process in processes.filter(|process| process.id == failure.process) {
                        process.memory_bytes = process.memory_bytes.max(failure.memory_bytes);
                        grew = true;
                    }
                    continue;
                }
                // There is no more than there is, and other lengths do not help.
                Cause::NodeMemory => continue,
                _ => {}
            }
            let permille = match failure.kind {
                EventKind::Early => self.early_permille,
                _ => self.late_permille,
            };
            // A message is late or early because of its sender.
            let deviates = match failure.cause {
                Cause::Message => (failure.threshold as u64 >> 32) as u32,
                _ => failure.process,
            };
            for (process, factor) in plan.processes.iter().zip(&mut factors) {
                if failure.cause == Cause::Node || process.id == deviates {
                    *factor = permille;
                }
            }
        }
        let is_as_it_was = !grew && factors.iter().all(|&permille| permille == 1000);
        if plan.processes.is_empty() || is_as_it_was {
            return Ok(None);
        }
        for (process, &permille) in plan.processes.iter_mut().zip(&factors) {
            for task in &mut process.tasks {
                let stretched = u128::from(task.planned_insns) * u128::from(permille) / 1000;
                task.planned_insns = stretched.clamp(1, MAX_SLOT_INSNS.into()) as u64;
            }
        }
        plan.plan_id += 1;
        let last = failures.iter().map(|failure| failure.seq).max();
        plan.dealt_seq = last.map_or(0, |seq| seq + 1);
        Ok(Some(plan))
    }
}
