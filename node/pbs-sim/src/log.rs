// SPDX-License-Identifier: GPL-2.0
//! The events of a CPU, as the kernel would write them.

use pbs_core::{Ended, Event, EventKind, Node, Sink, StdMemory};
use pbs_plan::wire::event_record;
use pbs_uapi::record;

use crate::machine::elsewhere::Board;
use crate::scheduler::Failure;

/// Takes the events of one CPU. The number of an event is its place.
pub(crate) struct Log {
    pub(crate) cpu: u32,
    pub(crate) plan_id: u64,
    pub(crate) record_grants: bool,
    pub(crate) events: Vec<record::Event>,
    /// Prediction failures that nobody has been asked about yet.
    pub(crate) failures: Vec<Failure>,
    /// Progress of the processes, shared between all CPUs.
    board: Board,
    /// The numbers of the processes by their index in the plan, and of those that
    /// are waited for.
    processes: Vec<u32>,
    predecessors: Vec<u32>,
}

impl Log {
    pub(crate) fn new(cpu: u32, plan_id: u64, record_grants: bool, board: Board) -> Self {
        Self {
            cpu,
            plan_id,
            record_grants,
            events: Vec::new(),
            failures: Vec::new(),
            board,
            processes: Vec::new(),
            predecessors: Vec::new(),
        }
    }

    /// The plan of the node comes into force.
    pub(crate) fn follow(&mut self, node: &Node<StdMemory>) {
        let plan = node.plan();
        self.processes = plan.processes().iter().map(|process| process.id).collect();
        let predecessors = plan.predecessors().iter();
        self.predecessors = predecessors.map(|predecessor| predecessor.id).collect();
    }
}

impl Sink for Log {
    fn emit(&mut self, event: &Event) -> u64 {
        let seq = self.events.len() as u64;
        if event.kind == EventKind::Grant && !self.record_grants {
            return seq;
        }
        let record =
            record::Event { seq, plan_id: self.plan_id, cpu: self.cpu, ..event_record(event) };
        self.failures.extend(Failure::of_event(&record));
        self.events.push(record);
        seq
    }

    fn await_elsewhere(&mut self, predecessor: u32, _task: u32) -> Ended {
        let id = self.predecessors.get(predecessor as usize);
        let board = self.board.borrow();
        let ended = id.and_then(|id| board.get(id));
        ended.copied().unwrap_or(Ended::NOTHING)
    }

    fn tell_elsewhere(&mut self, process: u32, ended: Ended) {
        if let Some(&id) = self.processes.get(process as usize) {
            self.board.borrow_mut().insert(id, ended);
        }
    }
}
