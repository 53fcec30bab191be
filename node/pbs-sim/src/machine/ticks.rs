// SPDX-License-Identifier: GPL-2.0
//! The state of a node at each nominal tick, as a tick by tick run shows it (Leppert 2021, 4.3.1).

use super::Machine;
use crate::clock::Clock;
use crate::held::HeldNode;
use crate::Error;

/// Most rows of all CPUs together. A row is the state of a process, or that of a node without
/// processes.
const MOST_ROWS: usize = 1_000_000;

/// States of a CPU at its ticks.
pub(super) struct Ticks {
    /// Length of a tick.
    every_ns: u64,
    /// Time of the next tick.
    next_ns: u64,
    rows: usize,
    /// Most rows of this CPU.
    most_rows: usize,
    pub(super) states: Vec<HeldNode>,
}

impl Ticks {
    /// Ticks of that length, from the first one on, of one of so many CPUs.
    pub(super) fn new(every_ns: u64, cpus: usize) -> Self {
        let every_ns = every_ns.max(1);
        let most_rows = MOST_ROWS / cpus.max(1);
        Self { every_ns, next_ns: every_ns, rows: 0, most_rows, states: Vec::new() }
    }

    fn is_too_long(&self) -> bool {
        self.rows > self.most_rows
    }
}

impl Machine<'_> {
    /// Charges process `p`, which retires `insns` in the next `passes_ns`. The ticks in between see
    /// the count of their time.
    pub(super) fn charge(&mut self, p: u32, pace: Clock, passes_ns: u64, insns: u64) {
        let mut charged_insns = 0;
        while let Some(at_ns) = self.next_tick_before(self.now_ns.saturating_add(passes_ns)) {
            let reached_insns = pace.insns_in(at_ns.saturating_sub(self.now_ns)).min(insns);
            self.node.charge(p, reached_insns - charged_insns);
            charged_insns = reached_insns;
            self.note_tick();
        }
        self.node.charge(p, insns - charged_insns);
    }

    /// Notes the states at all ticks up to now.
    pub(super) fn note_ticks(&mut self) -> Result<(), Error> {
        while self.next_tick_before(self.now_ns.saturating_add(1)).is_some() {
            self.note_tick();
        }
        match &self.ticks {
            Some(ticks) if ticks.is_too_long() => Err(Error::Ticks { most_rows: ticks.most_rows }),
            _ => Ok(()),
        }
    }

    /// Returns the time of the next tick that is to be noted, if that is before `to_ns`.
    fn next_tick_before(&self, to_ns: u64) -> Option<u64> {
        let ticks = self.ticks.as_ref().filter(|ticks| !ticks.is_too_long())?;
        Some(ticks.next_ns).filter(|&next_ns| next_ns < to_ns)
    }

    fn note_tick(&mut self) {
        if let Some(ticks) = &mut self.ticks {
            let state = HeldNode::of(self.cpu.cpu, &self.node, ticks.next_ns);
            ticks.rows += state.processes.len().max(1);
            ticks.states.push(state);
            ticks.next_ns = ticks.next_ns.saturating_add(ticks.every_ns);
        }
    }
}
