// SPDX-License-Identifier: GPL-2.0
//! Indirect dependencies (§5.3.2).
//!
//! Where data move between two computing tasks, the runtime system puts a memory transfer
//! between them.  The one before names the transfer as a reverse dependency, the one behind as
//! a dependency.  Before anything is scheduled the transfer's name gives way to the name of the
//! computing task behind it (§5.4.1).

use std::collections::HashMap;

use crate::model::Edge;

/// Record of a task with references to others, by their names ("pid-task").
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Name of the task.
    pub name: String,
    /// Tasks on which it depends.
    pub after: Vec<String>,
    /// Reverse dependencies: tasks that depend on it.
    pub before: Vec<String>,
    /// Duration, if the task is a memory transfer; `None` for a computing task.
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
    let names = Names { recorded, by_name, named_by };
    let mut behind: TasksBehindTransfers<'_> = HashMap::new();
    let mut found = Vec::with_capacity(recorded.len());
    for of in recorded {
        let mut longest: HashMap<usize, u64> = HashMap::new();
        if of.transfer_ns.is_none() {
            for name in names.before(&of.name) {
                match names.task(name) {
                    Some(task) => _ = longest.entry(task).or_default(),
                    None => {
                        names.look_behind(name, &mut behind)?;
                        add(&mut longest, behind.get(name), 0);
                    }
                }
            }
        }
        let mut edges: Vec<Edge> =
            longest.into_iter().map(|(task, transfer_ns)| Edge { task, transfer_ns }).collect();
        edges.sort_unstable_by_key(|edge| edge.task);
        found.push(edges);
    }
    Ok(found)
}

/// The computing tasks behind each transfer, with what travelling from there takes.  Each
/// transfer is looked behind once: through layers of them lead more ways than can be gone.
type TasksBehindTransfers<'a> = HashMap<&'a str, HashMap<usize, u64>>;

fn add(longest: &mut HashMap<usize, u64>, behind: Option<&HashMap<usize, u64>>, more_ns: u64) {
    for (&task, &ns) in behind.into_iter().flatten() {
        let most_ns = longest.entry(task).or_default();
        *most_ns = ns.saturating_add(more_ns).max(*most_ns);
    }
}

struct Names<'a> {
    recorded: &'a [Recorded],
    by_name: HashMap<&'a str, usize>,
    /// Tasks that name a task as a reverse dependency.
    named_by: HashMap<&'a str, Vec<usize>>,
}

impl<'a> Names<'a> {
    /// The computing task of that name.
    fn task(&self, name: &str) -> Option<usize> {
        let number = *self.by_name.get(name)?;
        let of = &self.recorded[number];
        of.transfer_ns.is_none().then_some(number)
    }

    /// Returns the tasks before a task: those that it names, and those that name it.
    fn before(&self, name: &str) -> impl Iterator<Item = &'a str> + '_ {
        let known = self.by_name.get(name).map(|&number| &self.recorded[number]);
        let after = known.into_iter().flat_map(|of| &of.after);
        let by = self.named_by.get(name).into_iter().flatten();
        let by = by.map(|&by| &self.recorded[by].name);
        after.chain(by).map(String::as_str)
    }

    /// Notes what is behind a transfer, and behind all that are behind it.
    ///
    /// # Errors
    /// Names of transfers that wait for each other.
    fn look_behind(
        &self,
        name: &'a str,
        behind: &mut TasksBehindTransfers<'a>,
    ) -> Result<(), Vec<String>> {
        // The way to where it looks, each with what it has not looked at yet.
        let mut way: Vec<(&str, Vec<&str>)> = Vec::new();
        if !behind.contains_key(name) {
            way.push((name, self.before(name).collect()));
        }
        while let Some((at, open)) = way.last_mut() {
            let at = *at;
            if let Some(next) = open.pop() {
                if self.task(next).is_some() || behind.contains_key(next) {
                    continue;
                }
                if let Some(start) = way.iter().position(|(on_it, _)| *on_it == next) {
                    let circle = way[start..].iter().map(|&(name, _)| name.to_owned());
                    return Err(circle.collect());
                }
                way.push((next, self.before(next).collect()));
                continue;
            }
            let known = self.by_name.get(at).map(|&number| &self.recorded[number]);
            let own_ns = known.and_then(|of| of.transfer_ns).unwrap_or(0);
            let mut longest = HashMap::new();
            for before in self.before(at) {
                match self.task(before) {
                    Some(task) => {
                        let most_ns: &mut u64 = longest.entry(task).or_default();
                        *most_ns = own_ns.max(*most_ns);
                    }
                    None => add(&mut longest, behind.get(before), own_ns),
                }
            }
            behind.insert(at, longest);
            way.pop();
        }
        Ok(())
    }
}
