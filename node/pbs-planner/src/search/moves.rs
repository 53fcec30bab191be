// SPDX-License-Identifier: GPL-2.0
//! The neighbourhood: what is changed about a code.

use pbs_random::Random;

use super::model::{Model, NONE};
use super::schedule::{Code, Schedule};

/// Changes to a code.
#[derive(Clone, Copy)]
enum Move {
    /// On the critical path, who was in the way of another, on a core or with its
    /// memory, comes after it.
    Delay,
    /// A process of the critical path goes to any core.
    Assign,
    /// A process of the critical path swaps cores with any other process.
    Swap,
    /// A process of the critical path comes earlier, by up to half of the plan.
    Hasten,
    /// Any task goes to another place of the list.
    Shift,
    /// A process of the critical path goes to any core, and some or all of the others look for a
    /// new core: ruin and recreate.
    Ruin,
}

/// Frequency of each change, found by experiment.
const WEIGHTS: [(Move, usize); 6] = [
    (Move::Delay, 3),
    (Move::Assign, 1),
    (Move::Swap, 1),
    (Move::Hasten, 2),
    (Move::Shift, 1),
    (Move::Ruin, 4),
];

/// Places of the list that [`Move::Shift`] goes over.
const SHIFT: usize = 16;

/// Target of the changes: the critical path of the plan that was made last.
#[derive(Default)]
pub(super) struct Moves {
    /// Processes of the critical path.
    path: Vec<u32>,
    /// Pairs of tasks of which the first was in the way of the second.
    arcs: Vec<(u32, u32)>,
    start_ns: Vec<u64>,
    length_ns: u64,
    key_ns: Vec<u64>,
}

impl Moves {
    /// Looks at the plan that was made of the code, and puts the list into the
    /// order of its starts.
    pub(super) fn look(&mut self, model: &Model<'_>, schedule: &Schedule, code: &mut Code) {
        // The list is sorted, and looked through for the last task.
        model.work.add(4 * model.tasks.len() as u64);
        self.start_ns.clone_from(&schedule.start_ns);
        let key = |task: usize| (schedule.start_ns[task], schedule.place[task]);
        code.list.sort_unstable_by_key(|&task| key(task as usize));
        self.path.clear();
        self.arcs.clear();
        let last = (0..model.tasks.len()).max_by_key(|&task| schedule.end_ns[task]);
        self.length_ns = last.map_or(0, |last| schedule.end_ns[last] - model.start_ns);
        let mut next = last.map(|last| last as u32);
        // Each was placed before the one that it leads to.
        while let Some(task) = next {
            let process = model.tasks[task as usize].process;
            self.path.push(process);
            model.work.add(1 + model.before(task).len() as u64);
            let start_ns = schedule.start_ns[task as usize];
            let mut before = model.before(task).iter().copied();
            next = before.find(|&before| schedule.end_ns[before as usize] == start_ns);
            let blocker = schedule.blocker[task as usize];
            if next.is_none() && blocker != NONE {
                if model.tasks[blocker as usize].process != process {
                    self.arcs.push((blocker, task));
                }
                next = Some(blocker);
            }
        }
        self.path.sort_unstable();
        self.path.dedup();
    }

    pub(super) fn change(&mut self, model: &Model<'_>, random: &mut Random, code: &mut Code) {
        // At the most, the list is sorted.
        model.work.add(2 * code.list.len() as u64);
        let mut below = |end: usize| random.below(end as u64) as usize;
        let sum = WEIGHTS.iter().map(|weight| weight.1).sum();
        let mut pick = below(sum);
        let chosen = WEIGHTS.iter().find(|weight| {
            let is_it = pick < weight.1;
            pick = pick.saturating_sub(weight.1);
            is_it
        });
        let mut kind = chosen.map_or(Move::Assign, |chosen| chosen.0);
        if self.arcs.is_empty() && matches!(kind, Move::Delay) {
            kind = Move::Assign;
        }
        let process = self.path[below(self.path.len())] as usize;
        let may_move = |process: usize| model.processes[process].has_core.is_none();
        match kind {
            Move::Delay => {
                let (before, after) = self.arcs[below(self.arcs.len())];
                delay(model, code, before, after);
            }
            Move::Assign => {
                if may_move(process) {
                    code.cores[process] = below(model.open_cores) as u32;
                }
            }
            Move::Swap => {
                let other = below(model.processes.len());
                if may_move(process) && may_move(other) {
                    code.cores.swap(process, other);
                }
            }
            Move::Hasten => {
                let by_ns = random.below(self.length_ns / 2 + 1);
                self.key_ns.clone_from(&self.start_ns);
                for &task in &model.processes[process].tasks {
                    let key_ns = &mut self.key_ns[task as usize];
                    *key_ns = key_ns.saturating_sub(by_ns);
                }
                code.list.sort_by_key(|&task| self.key_ns[task as usize]);
            }
            Move::Shift => {
                let places = code.list.len();
                let (from, by) = (below(places), 1 + below(SHIFT));
                if below(2) == 0 {
                    code.list[from.saturating_sub(by)..=from].rotate_right(1);
                } else {
                    code.list[from..(from + by + 1).min(places)].rotate_left(1);
                }
            }
            Move::Ruin => {
                if below(2) == 0 {
                    code.cores.clear();
                    code.cores.extend(model.held_cores());
                } else {
                    for _ in 0..=below(model.processes.len()) {
                        let other = below(model.processes.len());
                        if may_move(other) {
                            code.cores[other] = NONE;
                        }
                    }
                }
                if may_move(process) {
                    code.cores[process] = below(model.open_cores) as u32;
                }
            }
        }
    }
}

/// Puts `before` behind `after`; where that waited for its memory, all of its
/// process.
fn delay(model: &Model<'_>, code: &mut Code, before: u32, after: u32) {
    let place = |wanted: u32| code.list.iter().position(|&task| task == wanted);
    let (Some(from), Some(to)) = (place(before), place(after)) else {
        return;
    };
    let of = &model.tasks[before as usize];
    if of.is_last && model.tasks[after as usize].is_first {
        // In the order that they have, which a sort keeps.
        code.list[..=to].sort_by_key(|&task| model.tasks[task as usize].process == of.process);
    } else if from < to {
        code.list[from..=to].rotate_left(1);
    }
}
