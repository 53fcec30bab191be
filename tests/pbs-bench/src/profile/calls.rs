// SPDX-License-Identifier: GPL-2.0
//! From executed instructions to what functions cost.

use std::collections::HashMap;

use super::image::{Image, Kind};

/// Kernel addresses have their upper half set.
const KERNEL: u64 = 1 << 63;

/// Depth of the stack to which a return is searched: functions that jump to others at their end
/// leave frames behind, which return with their caller.
const DEPTH: usize = 32;

/// Cost of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Instructions of the function itself.
    pub insns: u64,
    /// Number of calls.
    pub calls: u64,
    /// Calls that returned with no switch of threads between.
    pub whole_calls: u64,
    /// Instructions of those calls, with all that they called.
    pub inclusive_insns: u64,
}

struct Frame {
    symbol: usize,
    /// Address at which the caller continues.
    back: u64,
    /// Kernel instructions before it.
    since: u64,
}

/// Adds executed instructions up by function.
pub struct Calls<'a> {
    image: &'a Image,
    costs: HashMap<usize, Cost>,
    stack: Vec<Frame>,
    /// Kernel instructions so far.
    insns: u64,
    /// The one that is not known to be executed yet.
    last: Option<u64>,
    /// The last but that: its address and what it was.
    before: (u64, Kind),
    switch: Option<usize>,
}

impl<'a> Calls<'a> {
    pub fn new(image: &'a Image) -> Self {
        let switch = image.address_of("cpu_switch_to").ok();
        Self {
            image,
            costs: HashMap::new(),
            stack: Vec::new(),
            insns: 0,
            last: None,
            before: (0, Kind::Other),
            switch: switch.map(|address| image.symbol_at(address)),
        }
    }

    /// Costs by the number of the function.
    pub fn costs(&self) -> &HashMap<usize, Cost> {
        &self.costs
    }

    /// The instruction at `pc` is executed, unless it is taken back.
    pub fn execute(&mut self, pc: u64) {
        if let Some(pc) = self.last.replace(pc) {
            self.count(pc);
        }
    }

    /// The last one was not executed.
    pub fn take_back(&mut self) {
        self.last = None;
    }

    /// Ends the trace.
    pub fn finish(&mut self) {
        if let Some(pc) = self.last.take() {
            self.count(pc);
        }
    }

    fn count(&mut self, pc: u64) {
        if pc < KERNEL {
            self.before = (pc, Kind::Other);
            return;
        }
        let symbol = self.image.symbol_at(pc);
        let begins = self.image.begins_at(symbol, pc);
        let (before_pc, before) = self.before;
        match before {
            Kind::Call => {
                let back = before_pc.wrapping_add(4);
                self.stack.push(Frame { symbol, back, since: self.insns });
            }
            Kind::Return => self.unwind(pc),
            Kind::Other => {}
        }
        if self.switch == Some(symbol) {
            // Another stack goes on from here.
            self.stack.clear();
        }
        let cost = self.costs.entry(symbol).or_default();
        cost.insns += 1;
        cost.calls += u64::from(begins);
        self.insns += 1;
        self.before = (pc, self.image.kind(pc));
    }

    /// A function returned to `pc`, and with it those that it jumped to.
    fn unwind(&mut self, pc: u64) {
        let mut top = self.stack.iter().rev().take(DEPTH);
        let Some(depth) = top.position(|frame| frame.back == pc) else {
            return;
        };
        let keep = self.stack.len() - depth - 1;
        // What lies above it was left without a return.
        self.stack.truncate(keep + 1);
        if let Some(frame) = self.stack.pop() {
            let cost = self.costs.entry(frame.symbol).or_default();
            cost.whole_calls += 1;
            cost.inclusive_insns += self.insns - frame.since;
        }
    }
}
