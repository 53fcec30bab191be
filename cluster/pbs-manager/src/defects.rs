// SPDX-License-Identifier: GPL-2.0
//! Defects of parts of nodes, which operators report: the other parts stay in use.

use pbs_cluster_planner::{Replanned, ResourceId};
use pbs_resources::{format_items, format_size, parse_items, Item, Value};

use crate::engine::Engine;
use crate::error::Error;
use crate::ledger::DefectRow;
use crate::manager::Manager;
use crate::wish::Caller;

/// The word for no defective part.
const NONE: &str = "none";

impl<E: Engine> Manager<E> {
    /// Takes parts of a node out of use, as `ncpus=2:mem=16g`; `none`: the node is repaired. The
    /// parts are all that are defective, and not more of them. Running requests keep what they
    /// have; those that have not started and have no room any more are planned anew.
    ///
    /// # Errors
    ///
    /// [`Error::NoNode`], [`Error::Wrong`] for parts that the node does not have; the operation is
    /// reserved for operators.
    pub fn set_defect(
        &mut self,
        caller: &Caller,
        name: &str,
        parts: &str,
        why: &str,
    ) -> Result<Replanned, Error> {
        caller.as_operator("report defects of nodes")?;
        let node = self.node(name)?;
        let mut items = if parts == NONE { Vec::new() } else { items(parts)? };
        items.retain(|item| !item.value.is_none());
        let amounts = items.iter().map(|item| self.part_of(node, item));
        let amounts = amounts.collect::<Result<Vec<_>, _>>()?;
        let defect = DefectRow {
            name: name.into(),
            parts: format_items(&items),
            why: why.into(),
            since_s: self.clock_s,
        };
        let replanned = self.plan_with_defect(node, &amounts);
        self.tell_replanned(&replanned, &format!("node {name} has a defect"));
        if items.is_empty() {
            self.tell(None, "node repaired", name.into());
            self.defects.remove(name);
        } else {
            self.tell(None, "node defect", format!("{name}: {}: {why}", defect.parts));
            self.defects.insert(name.into(), defect.clone());
        }
        self.journal.defect(defect);
        self.settle();
        self.commit()?;
        Ok(replanned)
    }

    /// Restores the defects in a ledger. Parts that the site does not have any more are not
    /// missed.
    pub(crate) fn restore_defects(&mut self, defects: Vec<DefectRow>) -> Result<(), Error> {
        for defect in defects {
            let items = items(&defect.parts).map_err(|_| {
                let what = format!("the defect of {} can't be read", defect.name);
                Error::from(self.journal.ledger().damaged(&what))
            })?;
            if let Some(node) = self.machine.node_by_name(&defect.name) {
                let amounts = items.iter().filter_map(|item| self.amount_of(item));
                let amounts: Vec<_> = amounts.collect();
                let replanned = self.plan_with_defect(node, &amounts);
                self.tell_replanned(&replanned, &format!("node {} has a defect", defect.name));
            }
            self.defects.insert(defect.name.clone(), defect);
        }
        Ok(())
    }

    /// Plans with parts of a node out of use, also what is planned in reservations that move.
    fn plan_with_defect(&mut self, node: usize, amounts: &[(ResourceId, u64)]) -> Replanned {
        let inside = self.planned_inside(&[node]);
        let replanned = self.planner.set_defect(self.clock_s, node, amounts);
        self.move_inside(inside, &replanned);
        replanned
    }

    /// Returns a part that a node has.
    fn part_of(&self, node: usize, item: &Item) -> Result<(ResourceId, u64), Error> {
        let name = self.machine.node_name(node);
        let (resource, amount) = self.amount_of(item).ok_or_else(|| {
            Error::Wrong(format!(
                "{item} is no amount of a resource of nodes; write parts as ncpus=2:mem=16g"
            ))
        })?;
        let has = self.machine.has(node, resource);
        if amount <= has {
            return Ok((resource, amount));
        }
        if has == 0 {
            return Err(Error::Wrong(format!("{name} has no {}; leave it out", item.resource)));
        }
        let (part, has) = (&item.resource, format_size(has));
        Err(Error::Wrong(format!(
            "{item} is more than {name} has; write at most {part}={has}, or take the node out of \
             use with pbsctl cluster node offline {name}"
        )))
    }

    /// Returns the amount of a resource of nodes; `None`: it is none.
    fn amount_of(&self, item: &Item) -> Option<(ResourceId, u64)> {
        let resource = self.machine.resource(&item.resource)?;
        let is_of_nodes = self.machine.resources()[resource].job_wide.is_none();
        match item.value {
            Value::Amount(amount) if is_of_nodes => Some((resource, amount)),
            _ => None,
        }
    }
}

/// Reads defective parts.
fn items(parts: &str) -> Result<Vec<Item>, Error> {
    parse_items(parts).map_err(|error| {
        Error::Wrong(format!(
            "parts {parts}, column {}: {}; write them as ncpus=2:mem=16g, or {NONE} for a \
             repaired node",
            error.column, error.message
        ))
    })
}
