// SPDX-License-Identifier: GPL-2.0

//! The fronts of the plans in force: the view that CPUs have of each other's processes.
//!
//! A [`Front`] is made when a plan is written, under the control lock, and [`Fronts`] has those in
//! use. They stay when one side gets another plan: a CPU that keeps its plan continues to see the
//! processes that it waits for, wherever they continue.

use crate::{
    engine::emitter::request_order,
    linux::storage::CHARGED,
    percpu::cpu::Cpu,
    state::{
        front::{Front, FrontLinks, NOBODY},
        node::Node,
    },
};
use kernel::{alloc::KVec, prelude::*, sync::Arc, task_ext::give_way};

/// The fronts in use, each with the number of its CPU, or [`NOBODY`] if that has lost its plan: a
/// part of the data that the control lock protects.
#[derive(Default)]
pub(crate) struct Fronts {
    awaited: KVec<(u32, Arc<Front>)>,
    shared: KVec<(u32, Arc<Front>)>,
}

/// New plan of a CPU: its number, the plan, and its links, which are made for it.
pub(crate) type NewPlan<'a> = (u32, &'a mut Node, FrontLinks);

impl Fronts {
    /// Makes the fronts for the plans that some CPUs get, and the links of those plans. Marks the
    /// processes of the new plans for which CPUs wait that keep their plan.
    ///
    /// Takes time in proportion to the number of awaited processes, squared.
    pub(crate) fn follow(&self, plans: &mut [NewPlan<'_>]) -> Result<Fronts> {
        let mut fronts = Fronts::default();
        let keeps = |cpu: u32, plans: &[NewPlan<'_>]| {
            cpu != NOBODY && !plans.iter().any(|(other, ..)| *other == cpu)
        };
        // The CPUs that keep their plan find the processes that they wait for in the new plans.
        for (cpu, front) in self.awaited.iter() {
            give_way()?;
            if !keeps(*cpu, plans) {
                continue;
            }
            fronts.awaited.push((*cpu, front.clone()), CHARGED)?;
            fronts.share(front, plans)?;
        }
        // Only plans that are written together wait for each other anew.
        let mut made = KVec::new();
        for (cpu, node, links) in plans.iter_mut() {
            for after in node.plan().predecessors() {
                give_way()?;
                let front = if after.is_elsewhere() {
                    let front = front_of(&mut made, after.id)?;
                    fronts.awaited.push((*cpu, front.clone()), CHARGED)?;
                    Some(front)
                } else {
                    None
                };
                links.await_front(front)?;
            }
        }
        for front in made.iter() {
            give_way()?;
            fronts.share(front, plans)?;
        }
        for (_, _, links) in plans.iter_mut() {
            links.finish();
        }
        for (cpu, front) in self.shared.iter() {
            if keeps(*cpu, plans) {
                fronts.shared.push((*cpu, front.clone()), CHARGED)?;
            }
        }
        Ok(fronts)
    }

    /// Makes the plan that has the process of a front report to it from now on.
    fn share(&mut self, front: &Arc<Front>, plans: &mut [NewPlan<'_>]) -> Result {
        for (cpu, node, links) in plans.iter_mut() {
            if let Some(process) = node.plan().find(front.process()) {
                // One that several CPUs wait for comes once for each.
                let mut shared = self.shared.iter();
                if shared.any(|(of, other)| of == cpu && Arc::ptr_eq(other, front)) {
                    continue;
                }
                node.share(process);
                links.share(process, front.clone())?;
                self.shared.push((*cpu, front.clone()), CHARGED)?;
            }
        }
        Ok(())
    }

    /// The new plans are in force, and `self` has replaced `before`: notifies the CPUs that wait
    /// for a process that no CPU has any more.
    pub(crate) fn tell_lost(&self, before: &Fronts) {
        for (_, front) in before.shared.iter() {
            let _ = give_way();
            if !self
                .shared
                .iter()
                .any(|(_, other)| Arc::ptr_eq(other, front))
            {
                front.tell_gone(request_order);
            }
        }
    }

    /// Handles the loss of a CPU's plan: notifies the CPUs that wait for its processes. Allocates
    /// nothing.
    pub(crate) fn leave(&mut self, cpu: u32) {
        // The CPU may go offline, where no interrupt may be sent to. The processes that its
        // previous plan waited for are among those, too, as long as a CPU reports to them.
        for (_, front) in self.shared.iter() {
            front.forget(cpu);
        }
        for (other, _) in self.awaited.iter_mut().filter(|front| front.0 == cpu) {
            *other = NOBODY;
        }
        for (other, front) in self.shared.iter_mut().filter(|front| front.0 == cpu) {
            *other = NOBODY;
            front.tell_gone(request_order);
        }
    }
}

/// The front of a process among those that were made, ascending by process; makes it if it is not
/// among them.
fn front_of(made: &mut KVec<Arc<Front>>, process: u32) -> Result<Arc<Front>> {
    let place = match made.binary_search_by_key(&process, |front| front.process()) {
        Ok(place) => place,
        Err(place) => {
            made.push(Front::new(process)?, CHARGED)?;
            if let Some(behind) = made.get_mut(place..) {
                behind.rotate_right(1);
            }
            place
        }
    };
    made.get(place).cloned().ok_or(EINVAL)
}

/// Number of processes that are reported with the run queue locked.
const TOLD_A_LOCK: usize = 32;

/// Reports to other CPUs the progress of a CPU's processes with which its plan begins.
pub(crate) fn tell_all(cpu: &Cpu) {
    let mut from = 0;
    loop {
        let _ = give_way();
        let told = cpu.lock_for_change(|_, _, state| {
            let node = state.node.as_deref()?;
            let piece = state.events.links().shared_from(from);
            let piece = piece.iter().take(TOLD_A_LOCK);
            let mut told = 0;
            for (process, front) in piece {
                if let Some(ended) = node.come_to(*process) {
                    front.tell(ended, request_order);
                }
                told += 1;
            }
            Some(told)
        });
        match told.flatten() {
            None | Some(0) => return,
            Some(told) => from += told,
        }
    }
}
