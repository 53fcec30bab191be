// SPDX-License-Identifier: GPL-2.0
//! Preemptible nodes of a cluster that a session keeps although others should have them.
//!
//! Each node has the whole grace from the time at which a view asked for it. Otherwise, whoever
//! wants one node more each second makes a session that gives back each node in time exceed the
//! grace.

use std::collections::VecDeque;

/// Nodes to be given back, by the time at which a view has asked for them; the earliest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Overstay {
    parts: VecDeque<(u64, u64)>,
}

impl Overstay {
    /// Returns the number of nodes.
    pub(crate) fn nodes(&self) -> u64 {
        self.parts.iter().map(|part| part.0).sum()
    }

    /// Iterates over the numbers of nodes, each with the time since when they are kept.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.parts.iter().copied()
    }

    /// Returns the earliest time since when nodes are kept.
    pub(crate) fn since_ns(&self) -> Option<u64> {
        self.parts.front().map(|part| part.1)
    }

    /// The session has given back nodes: those that were asked for first.
    pub(crate) fn give_back(&mut self, mut nodes: u64) {
        while let Some(first) = self.parts.front_mut().filter(|_| nodes > 0) {
            let given = nodes.min(first.0);
            first.0 -= given;
            nodes -= given;
            if first.0 == 0 {
                self.parts.pop_front();
            }
        }
    }

    /// Views ask for that many nodes at this time. If these are fewer than before, nobody wants
    /// those any more that were asked for last.
    pub(crate) fn ask_for(&mut self, nodes: u64, now_ns: u64) {
        let mut before = self.nodes();
        if nodes > before {
            self.parts.push_back((nodes - before, now_ns));
        }
        while let Some(last) = self.parts.back_mut().filter(|_| before > nodes) {
            let gone = last.0.min(before - nodes);
            last.0 -= gone;
            before -= gone;
            if last.0 == 0 {
                self.parts.pop_back();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_has_its_own_time() {
        let mut overstay = Overstay::default();
        overstay.ask_for(3, 10);
        overstay.ask_for(5, 20);
        overstay.ask_for(5, 30);
        assert_eq!(overstay.iter().collect::<Vec<_>>(), [(3, 10), (2, 20)]);
        overstay.give_back(4);
        assert_eq!((overstay.nodes(), overstay.since_ns()), (1, Some(20)));
        overstay.ask_for(7, 40);
        overstay.ask_for(2, 50);
        assert_eq!(overstay.iter().collect::<Vec<_>>(), [(1, 20), (1, 40)]);
        overstay.give_back(9);
        assert_eq!((overstay.nodes(), overstay.since_ns()), (0, None));
    }
}
