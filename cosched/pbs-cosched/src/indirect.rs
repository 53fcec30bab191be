// SPDX-License-Identifier: GPL-2.0
//! Indirect dependencies (§5.3.2).
//!
//! Where data move between two computing tasks, the runtime system puts a memory transfer
//! between them.  The one before names the transfer as a reverse dependency, the one behind as
//! a dependency.  Before anything is scheduled the transfer's name gives way to the name of the
//! computing task behind it (§5.4.1).

use std::collections::HashMap;

use crate::model::Edge;

/// What a task's record says of others, by their names ("pid-task").
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Its own name.
    pub name: String,
    /// What it depends on.
    pub after: Vec<String>,
    /// Its reverse dependencies: what depends on it.
    pub before: Vec<String>,
    /// It is a memory transfer and takes so long; nothing for a computing task.
    pub transfer_ns: Option<u64>,
}

/// The computing tasks that each computing task waits for; nothing is waited for by a transfer.
///
/// A transfer may have a record of its own or be known by name only, from both its sides; what
/// it then takes is not known, and 0.  Transfers behind each other add up; where several ways
/// lead to the same task, the longest counts.  A name that no record knows is a dependency that
/// is satisfied.  Indices are those of `recorded`.
///
/// # Errors
/// Names of transfers that wait for each other.
pub fn direct_dependencies(recorded: &[Recorded]) -> Result<Vec<Vec<Edge>>, Vec<String>> {
    let mut by_name: HashMap<&str, usize> = HashMap::new();
    for (number, of) in recorded.iter().enumerate() {
        by_name.entry(&of.name).or_insert(number);
    }
    // Who names it as a reverse dependency.
    let mut named_by: HashMap<&str, Vec<usize>> = HashMap::new();
    for (number, of) in recorded.iter().enumerate() {
        for name in &of.before {
            named_by.entry(name).or_default().push(number);
        }
    }
    let none = Vec::new();
    let mut found = Vec::with_capacity(recorded.len());
    for of in recorded {
        let mut longest: HashMap<usize, u64> = HashMap::new();
        // Names to look behind, with what travelling took until there, and on which way.
        let mut open: Vec<(&str, u64, Vec<&str>)> = Vec::new();
        if of.transfer_ns.is_none() {
            open.extend(of.after.iter().map(|name| (name.as_str(), 0, Vec::new())));
            // What names this task as a reverse dependency is waited for, too.
            let names = named_by.get(of.name.as_str()).unwrap_or(&none);
            open.extend(
                names
                    .iter()
                    .map(|&by| (recorded[by].name.as_str(), 0, Vec::new())),
            );
        }
        while let Some((name, so_far_ns, mut way)) = open.pop() {
            let known = by_name.get(name).map(|&number| (number, &recorded[number]));
            let transfer_ns = match known {
                Some((
                    number,
                    Recorded {
                        transfer_ns: None, ..
                    },
                )) => {
                    let most_ns = longest.entry(number).or_default();
                    *most_ns = so_far_ns.max(*most_ns);
                    continue;
                }
                Some((_, transfer)) => transfer.transfer_ns.unwrap_or(0),
                None => 0,
            };
            if way.contains(&name) {
                return Err(way.into_iter().map(str::to_owned).collect());
            }
            way.push(name);
            let behind_ns = so_far_ns.saturating_add(transfer_ns);
            let after = known.into_iter().flat_map(|(_, transfer)| &transfer.after);
            let by = named_by
                .get(name)
                .unwrap_or(&none)
                .iter()
                .map(|&by| &recorded[by].name);
            open.extend(
                after
                    .chain(by)
                    .map(|next| (next.as_str(), behind_ns, way.clone())),
            );
        }
        let mut edges: Vec<Edge> = longest
            .into_iter()
            .map(|(task, transfer_ns)| Edge { task, transfer_ns })
            .collect();
        edges.sort_unstable_by_key(|edge| edge.task);
        found.push(edges);
    }
    Ok(found)
}
