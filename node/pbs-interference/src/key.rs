// SPDX-License-Identifier: GPL-2.0
//! Keys of tasks in the table of slow-downs, and the resources that they share.

use std::fmt;

use crate::Entry;

/// Key of an executed program: one variant of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Fingerprint of the process's program, as in the history.
    pub fingerprint: u64,
    /// The task's number in its process.
    pub task: u32,
    /// The variant's number in its task; 0 where there is only one.
    pub variant: u32,
}

/// The closest thing that two CPUs share; the first is the closest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// A core: they are its threads.
    Smt,
    /// A cache of second level.
    L2,
    /// The cache of last level.
    Llc,
    /// The memory of the node.
    Node,
}

impl Level {
    /// All, the closest first.
    pub const ALL: [Self; 4] = [Self::Smt, Self::L2, Self::Llc, Self::Node];
    /// Their names in the same order.
    pub const NAMES: [&'static str; 4] = ["smt", "l2", "llc", "node"];

    /// Returns the name of the level, as files contain it.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The level of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        let place = Self::NAMES.iter().position(|&known| known == name)?;
        Some(Self::ALL[place])
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Neighbour of a task: an aggressor, and the resource that it shares with its victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Neighbour {
    /// Shared resource.
    pub level: Level,
    /// Key of the aggressor.
    pub key: Key,
}

/// Resources that the CPUs of a node share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sharing {
    groups: Vec<(Level, Vec<u32>)>,
}

impl Sharing {
    /// Groups of CPUs that share something. CPUs of no common group share the
    /// node.
    pub fn new(groups: Vec<(Level, Vec<u32>)>) -> Self {
        Self { groups }
    }

    /// Returns this sharing, with a default: if it declares no groups, and all entries are about
    /// one level, the CPUs share that level.
    pub fn or_as_in<W>(self, entries: &[Entry<W>], cpus: &[u32]) -> Self {
        let mut levels = entries.iter().flat_map(|entry| &entry.beside);
        let first = levels.next().map(|&(level, _)| level);
        match first {
            Some(first) if self.groups.is_empty() && levels.all(|&(level, _)| level == first) => {
                Self::new(vec![(first, cpus.to_vec())])
            }
            _ => self,
        }
    }

    /// The closest that the two share.
    pub fn level(&self, one: u32, other: u32) -> Level {
        let both =
            self.groups.iter().filter(|(_, cpus)| cpus.contains(&one) && cpus.contains(&other));
        both.map(|&(level, _)| level).min().unwrap_or(Level::Node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine that says nothing of its CPUs is taken for what the file is about.
    #[test]
    fn a_file_names_the_sharing_of_cpus_by_default() {
        let entry = |level| Entry {
            victim: "a",
            beside: vec![(level, "b")],
            slowdown: 2.0,
            low: 2.0,
            high: 2.0,
            samples: 1,
        };
        let llc = [entry(Level::Llc), entry(Level::Llc)];
        let mixed = [entry(Level::Llc), entry(Level::Smt)];
        let said = Sharing::new(vec![(Level::Smt, vec![0, 1])]);
        let none = Sharing::default;
        assert_eq!(none().or_as_in(&llc, &[0, 1]).level(0, 1), Level::Llc);
        assert_eq!(none().or_as_in(&mixed, &[0, 1]).level(0, 1), Level::Node);
        assert_eq!(none().or_as_in::<&str>(&[], &[0, 1]).level(0, 1), Level::Node);
        assert_eq!(said.or_as_in(&llc, &[0, 1, 2]).level(0, 1), Level::Smt);
    }
}
