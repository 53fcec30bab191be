// SPDX-License-Identifier: GPL-2.0

//! Check of the edges of a written plan over all of its CPUs: the awaited tasks exist, and all
//! tasks can end.

use super::circle::Circle;
use super::memory::{pause, Interrupted, Memory};
use super::plan::{Edge, Plan, Slot};
use super::refusal::{Fault, Refusal};
use super::sort::sort;
use super::wire::Section;

const NONE: u32 = u32::MAX;

/// A process on the way through its tasks.
#[derive(Clone, Copy)]
struct Walker {
    id: u32,
    /// Plan of the process, and its index there.
    plan: u32,
    process: u32,
    /// The position of the first task that can't begin; the count of its tasks
    /// if all can.
    position: u32,
    /// The edge that it waits at, or that comes next.
    edge: u32,
    /// The first of the walkers that wait for this one, ordered by the task that they wait for.
    first_waiting: u32,
    /// The next of the walkers that wait where this one does, or that can continue.
    next: u32,
}

struct Walk<'a, 'b, M: Memory> {
    plans: &'a mut [(Section<'b>, Plan<M>)],
    /// Walkers, ascending by id.
    walkers: M::Slice<Walker>,
    /// The first of the walkers that can continue.
    going: u32,
}

/// Joins the plans of all CPUs of a written plan: refuses edges that wait for a task that no plan
/// has, refuses circles, and marks the processes that other CPUs wait for.
///
/// An edge can only name tasks of the same written plan.  Therefore the edges of plans that are
/// installed one after the other never make a circle: along them, the time at which the awaited
/// process was written never decreases.
///
/// A plan without edges costs nothing; otherwise the time grows with the edges and the processes.
pub fn join<M: Memory>(plans: &mut [(Section<'_>, Plan<M>)]) -> Result<(), Refusal> {
    if plans.iter().all(|(_, plan)| plan.edges.is_empty()) {
        return Ok(());
    }
    let total = plans.iter().map(|(_, plan)| plan.processes.len()).sum();
    let nobody = Walker {
        id: 0,
        plan: 0,
        process: 0,
        position: 0,
        edge: 0,
        first_waiting: NONE,
        next: NONE,
    };
    let mut walkers = M::alloc(total, nobody)?;
    let processes = plans.iter().zip(0..).flat_map(|((_, plan), number)| {
        let processes = plan.processes.iter().zip(0..);
        processes.map(move |(process, index)| (number, index, process))
    });
    for (walker, (plan, index, process)) in walkers.iter_mut().zip(processes) {
        walker.id = process.id;
        walker.plan = plan;
        walker.process = index;
        walker.edge = process.first_edge;
    }
    sort::<M, _>(&mut walkers, |one, other| one.id.cmp(&other.id));
    let mut walk = Walk {
        plans,
        walkers,
        going: NONE,
    };
    walk.check_predecessors()?;
    walk.go()
}

impl<M: Memory> Walk<'_, '_, M> {
    fn find(&self, id: u32) -> Option<u32> {
        let found = self.walkers.binary_search_by_key(&id, |walker| walker.id);
        found.ok().map(|index| index as u32)
    }

    fn walker(&self, index: u32) -> Option<(&Walker, &Plan<M>)> {
        let walker = self.walkers.get(index as usize)?;
        Some((walker, &self.plans.get(walker.plan as usize)?.1))
    }

    /// Refuses edges that wait for tasks that do not exist.
    fn check_predecessors(&mut self) -> Result<(), Refusal> {
        for number in 0..self.plans.len() {
            let Some((section, plan)) = self.plans.get(number) else {
                break;
            };
            for (edge, index) in plan.edges.iter().zip(0..) {
                pause::<M>(index)?;
                let after = plan.predecessors.get(edge.predecessor as usize);
                let process = after.map_or(NONE, |after| after.id);
                let known = self.find(process).and_then(|found| {
                    let (walker, theirs) = self.walker(found)?;
                    let position = theirs.position_of(walker.process, edge.task);
                    // Tasks before the first one have ended in an earlier plan.
                    Some(position == 0 || theirs.task(walker.process, position) == Some(edge.task))
                });
                if known != Some(true) {
                    return Err(Fault::EdgeAfter {
                        cpu: section.cpu(),
                        edge: index,
                        process,
                        task: edge.task,
                    }
                    .at(section.edge_offset(index)));
                }
            }
            for place in 0..self.plans.get(number).map_or(0, |p| p.1.predecessors.len()) {
                let after = self
                    .plans
                    .get(number)
                    .and_then(|p| p.1.predecessors.get(place));
                let elsewhere = after.filter(|after| after.is_elsewhere());
                let found = elsewhere.and_then(|after| self.find(after.id));
                let walker = found.and_then(|found| self.walkers.get(found as usize).copied());
                if let Some(walker) = walker {
                    if let Some((_, plan)) = self.plans.get_mut(walker.plan as usize) {
                        plan.share(walker.process);
                    }
                }
            }
        }
        Ok(())
    }

    /// Lets every process proceed as far as it can; refuses a circle if one cannot reach its end.
    fn go(&mut self) -> Result<(), Refusal> {
        for index in 0..self.walkers.len() as u32 {
            self.going = index;
            while self.going != NONE {
                M::pause()?;
                let index = self.going;
                self.going = self.walkers.get(index as usize).map_or(NONE, |w| w.next);
                self.advance(index)?;
            }
        }
        let stuck = (0..self.walkers.len() as u32).find(|&index| self.edge_of(index).is_some());
        match stuck {
            Some(index) => Err(self.circle(index)),
            None => Ok(()),
        }
    }

    /// The edge that a walker waits at, if it is not at its end.
    fn edge_of(&self, index: u32) -> Option<(u32, Edge)> {
        let (walker, plan) = self.walker(index)?;
        let edge = plan.edges.get(walker.edge as usize)?;
        (walker.edge < plan.end_of_edges(walker.process)).then_some((walker.edge, *edge))
    }

    /// The walker that is awaited at the edge.
    fn awaited(&self, index: u32, edge: &Edge) -> Option<u32> {
        let (_, plan) = self.walker(index)?;
        self.find(plan.predecessors.get(edge.predecessor as usize)?.id)
    }

    fn advance(&mut self, index: u32) -> Result<(), Interrupted> {
        while let Some((number, edge)) = self.edge_of(index) {
            pause::<M>(number)?;
            let Some(awaited) = self.awaited(index, &edge) else {
                break;
            };
            if !self.has_ended(awaited, edge.task) {
                self.reach(index, edge.position);
                self.wait(index, awaited, edge.task);
                return Ok(());
            }
            if let Some(walker) = self.walkers.get_mut(index as usize) {
                walker.edge += 1;
            }
        }
        let count = self.walker(index).and_then(|(walker, plan)| {
            let process = plan.process(walker.process)?;
            Some(process.count)
        });
        self.reach(index, count.unwrap_or(0));
        Ok(())
    }

    /// Whether the task of that id can end, as far as is known.
    fn has_ended(&self, index: u32, task: u32) -> bool {
        self.walker(index).is_some_and(|(walker, plan)| {
            let next = plan.task(walker.process, walker.position);
            match next {
                Some(next) => task < next,
                None => true,
            }
        })
    }

    /// Moves a walker to a position, and lets the walkers continue that wait for a task before it.
    fn reach(&mut self, index: u32, position: u32) {
        if let Some(walker) = self.walkers.get_mut(index as usize) {
            walker.position = position;
        }
        while let Some(first) = self.walkers.get(index as usize).map(|w| w.first_waiting) {
            let Some((_, edge)) = self.edge_of(first) else {
                return;
            };
            if !self.has_ended(index, edge.task) {
                return;
            }
            let going = core::mem::replace(&mut self.going, first);
            let next = self
                .walkers
                .get_mut(first as usize)
                .map_or(NONE, |walker| core::mem::replace(&mut walker.next, going));
            if let Some(walker) = self.walkers.get_mut(index as usize) {
                walker.first_waiting = next;
            }
        }
    }

    /// Makes a walker wait for a task of another.
    fn wait(&mut self, index: u32, awaited: u32, task: u32) {
        let mut before = None;
        let mut next = self
            .walkers
            .get(awaited as usize)
            .map_or(NONE, |w| w.first_waiting);
        while self.edge_of(next).is_some_and(|(_, edge)| edge.task < task) {
            before = Some(next);
            next = self.walkers.get(next as usize).map_or(NONE, |w| w.next);
        }
        if let Some(walker) = self.walkers.get_mut(index as usize) {
            walker.next = next;
        }
        match before {
            Some(before) => {
                if let Some(walker) = self.walkers.get_mut(before as usize) {
                    walker.next = index;
                }
            }
            None => {
                if let Some(walker) = self.walkers.get_mut(awaited as usize) {
                    walker.first_waiting = index;
                }
            }
        }
    }

    /// The circle to which the way from a stuck walker leads: each stuck walker waits for another
    /// one.
    fn circle(&self, from: u32) -> Refusal {
        let next = |index| {
            let (_, edge) = self.edge_of(index)?;
            self.awaited(index, &edge)
        };
        // After as many steps as there are processes, the way is inside the circle.
        let mut on_it = from;
        for _ in 0..self.walkers.len() {
            on_it = next(on_it).unwrap_or(on_it);
        }
        let mut circle = Circle::EMPTY;
        let mut offset = None;
        let mut index = on_it;
        while let (Some((walker, plan)), Some((number, edge))) =
            (self.walker(index), self.edge_of(index))
        {
            let after = plan.predecessors.get(edge.predecessor as usize);
            let task = plan.task(walker.process, edge.position);
            circle.push([
                walker.id,
                task.unwrap_or(Slot::NONE.task),
                after.map_or(NONE, |after| after.id),
                edge.task,
            ]);
            let section = self.plans.get(walker.plan as usize).map(|plan| &plan.0);
            offset = offset.or(section.map(|section| section.edge_offset(number)));
            index = next(index).unwrap_or(on_it);
            if index == on_it {
                break;
            }
        }
        let fault = Fault::Circle { circle };
        offset.map_or(fault.nowhere(), |offset| fault.at(offset))
    }
}
