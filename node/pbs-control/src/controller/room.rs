// SPDX-License-Identifier: GPL-2.0
//! Memory that is left on the nodes of a machine.

use pbs_planner::Store;

/// Memory of each node that nobody has taken, with the number of the first core behind the node.
pub(super) struct Room(Vec<(usize, u64)>);

impl Room {
    /// All memory of the machine.
    pub(super) fn of(store: &Store) -> Self {
        let mut end = 0;
        let nodes = store.machine().nodes.iter().map(|node| {
            end += node.cores.len();
            // A planner that is blind to memory has no limit.
            let bytes = store.balancing().memory_bytes(node).max(node.memory_bytes);
            (end, bytes)
        });
        Self(nodes.collect())
    }

    /// Takes memory of the node of a core, or as much as is left there.
    pub(super) fn take(&mut self, core: usize, bytes: u64) {
        if let Some(left) = self.left(core) {
            *left = left.saturating_sub(bytes);
        }
    }

    /// Takes memory of the node of a core, if so much is left there.
    pub(super) fn try_take(&mut self, core: usize, bytes: u64) -> bool {
        let rest = self.left(core).and_then(|left| Some((left.checked_sub(bytes)?, left)));
        rest.map(|(rest, left)| *left = rest).is_some()
    }

    fn left(&mut self, core: usize) -> Option<&mut u64> {
        self.0.iter_mut().find(|(end, _)| core < *end).map(|(_, left)| left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_taken_from_the_node_of_the_core() {
        let mut room = Room(vec![(2, 100), (4, 50)]);
        assert!(room.try_take(1, 60) && !room.try_take(0, 60) && room.try_take(0, 40));
        assert!(room.try_take(2, 50) && !room.try_take(3, 1) && !room.try_take(4, 0));
        let mut room = Room(vec![(2, 100)]);
        room.take(0, 130);
        assert!(!room.try_take(1, 1) && room.try_take(1, 0));
    }
}
