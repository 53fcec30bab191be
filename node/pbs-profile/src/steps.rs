// SPDX-License-Identifier: GPL-2.0
//! The steps of a profile, one after the other.

use std::iter::FusedIterator;

use crate::tree::LeafView;
use crate::{Profile, FOREVER};

/// A stretch of time in which a profile has one value: Keller's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// Beginning of the step.
    pub from: u64,
    /// End of the step, exclusive; [`FOREVER`] for the last step.
    pub until: u64,
    /// Value of the profile in the step.
    pub value: u64,
}

/// The steps of a profile in the order of time; see [`Profile::iter`].
#[derive(Clone)]
pub struct Steps<'a> {
    profile: &'a Profile,
    leaf: LeafView<'a>,
    /// The next step, in the leaf.
    at: usize,
}

impl<'a> Steps<'a> {
    pub(crate) fn new(profile: &'a Profile, time: u64) -> Self {
        let (leaf, at) = profile.tree.leaf_at(time);
        Self { profile, leaf, at }
    }
}

impl Iterator for Steps<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        if self.at == self.leaf.times.len() {
            if self.leaf.end == FOREVER {
                return None;
            }
            (self.leaf, self.at) = self.profile.tree.leaf_at(self.leaf.end);
        }
        let next = self.leaf.times.get(self.at + 1);
        let step = Step {
            from: self.leaf.times[self.at],
            until: next.copied().unwrap_or(self.leaf.end),
            value: self.leaf.values[self.at].wrapping_add(self.leaf.pending),
        };
        self.at += 1;
        Some(step)
    }
}

impl FusedIterator for Steps<'_> {}
