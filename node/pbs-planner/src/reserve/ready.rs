// SPDX-License-Identifier: GPL-2.0
//! The tasks that can be planned next, and which of them is.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Order of the tasks that can be planned.
#[derive(Clone, Debug)]
pub(crate) enum ReadyOrder {
    /// Tasks of a forked process, with all that it forks, precede the rest of its parent (Glaß
    /// 2024, listing 5).
    Depth,
    /// The greatest number first, of equal ones the first task.
    Rank(Vec<(u64, u64)>),
}

impl ReadyOrder {
    /// Both always have the same task come first.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Depth, Self::Depth) => true,
            (Self::Rank(one), Self::Rank(other)) => sorted(one) == sorted(other),
            _ => false,
        }
    }
}

fn sorted(ranks: &[(u64, u64)]) -> Vec<usize> {
    let mut tasks: Vec<usize> = (0..ranks.len()).collect();
    tasks.sort_by_key(|&task| Reverse(ranks[task]));
    tasks
}

/// Tasks that can be planned.
#[derive(Debug)]
pub(crate) struct Ready<'a> {
    order: &'a ReadyOrder,
    stack: Vec<usize>,
    heap: BinaryHeap<((u64, u64), Reverse<usize>)>,
}

impl<'a> Ready<'a> {
    pub(crate) fn new(order: &'a ReadyOrder) -> Self {
        Self { order, stack: Vec::new(), heap: BinaryHeap::new() }
    }

    pub(crate) fn push(&mut self, task: usize) {
        match self.order {
            ReadyOrder::Depth => self.stack.push(task),
            ReadyOrder::Rank(ranks) => self.heap.push((ranks[task], Reverse(task))),
        }
    }

    pub(crate) fn pop(&mut self) -> Option<usize> {
        match self.order {
            ReadyOrder::Depth => self.stack.pop(),
            ReadyOrder::Rank(_) => self.heap.pop().map(|(_, Reverse(task))| task),
        }
    }
}
