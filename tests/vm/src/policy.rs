// SPDX-License-Identifier: GPL-2.0
//! The plan is executed as it was written.

use pbs_uapi::{EventKind, Grant};

use crate::check_eq;
use crate::harness::{burn, Gate, Node, Plan, Verdict};

/// Tasks run in the order of the plan, each in its own slot.
pub fn order_equals_plan() -> Verdict {
    let plan = Plan::new(1)
        .idle(2_500_000)
        .slot(1, 0, 1_000_000)
        .slot(2, 0, 1_000_000);
    let mut node = Node::open()?;
    let gate = Gate::new()?;
    let mut children = vec![gate.child(|| burn(900_000))?, gate.child(|| burn(900_000))?];
    node.load(&plan)?;
    for (child, id) in children.iter().zip(1..) {
        node.attach(child, id)?;
    }
    gate.open();
    node.read_until(EventKind::PlanEnded, 1)?;
    println!("{}", node.log());
    for child in &mut children {
        child.wait_ok()?;
    }
    let order: Vec<u32> = node
        .of(EventKind::Grant)
        .iter()
        .filter(|event| event.reason == Grant::Slot as u16)
        .map(|event| event.process)
        .collect();
    check_eq!(order, [1, 2], "order");
    Ok(())
}
