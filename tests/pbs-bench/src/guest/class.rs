// SPDX-License-Identifier: GPL-2.0
//! The classes that do the same work.

use pbs_vmtest::harness::{Child, Context, Gate, Node, Plan, Verdict};
use pbs_vmtest::sched_attr::SchedAttr;

/// Class in which the processes of a measurement run.
pub enum Class {
    Fifo,
    /// `SCHED_OTHER`, that is EEVDF.
    Other,
    Deadline,
    /// Plan whose processes 1, 2 and so on they are.
    Pbs(Box<Plan>),
}

impl Class {
    fn attr(&self) -> SchedAttr {
        match self {
            Self::Fifo => SchedAttr::fifo(10),
            // As long as a measurement takes, so that none is throttled: the
            // longest period that Linux allows.
            Self::Deadline => SchedAttr::deadline(1_600_000_000, 4_000_000_000, 4_000_000_000),
            Self::Other | Self::Pbs(_) => SchedAttr::other(),
        }
    }

    fn enter(&self, pid: i32) -> Verdict {
        self.attr().set(pid).context("sched_setattr")
    }
}

/// Work of a process of a measurement.
pub type Work<'a> = Box<dyn FnOnce() + 'a>;

/// Processes of a measurement, in their class, and held until [`Ready::go`].
pub struct Ready {
    gate: Gate,
    children: Vec<Child>,
    /// The node of plan processes, to drop their plan in the end.
    node: Option<Node>,
}

impl Ready {
    /// Forks processes that will do `works`.
    pub fn new(class: &Class, works: Vec<Work<'_>>) -> Result<Self, String> {
        let gate = Gate::new()?;
        let mut children: Vec<Child> = Vec::new();
        for work in works {
            children.push(gate.child(work)?);
        }
        let node = if let Class::Pbs(plan) = class {
            let node = Node::open()?;
            node.load(plan)?;
            for (process, child) in (1..).zip(&children) {
                node.attach(child, process)?;
            }
            Some(node)
        } else {
            for child in &children {
                class.enter(child.pid)?;
            }
            None
        };
        Ok(Self { gate, children, node })
    }

    /// Lets them begin and waits for their ends. Nobody reads events meanwhile.
    pub fn go(mut self) -> Verdict {
        self.gate.open()?;
        for child in &mut self.children {
            child.wait_ok()?;
        }
        if let Some(node) = self.node {
            node.device.drop_plan(0).context("drop the plan")?;
        }
        Ok(())
    }
}

/// Runs processes that do `works` in a class, to their ends.
pub fn run(class: &Class, works: Vec<Work<'_>>) -> Verdict {
    Ready::new(class, works)?.go()
}
