// SPDX-License-Identifier: GPL-2.0
//! Which nodes are taken where there is a choice.

/// Which of the nodes that have room are taken first (Keller, 5 and 8, names such policies;
/// the default is his).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mapping {
    /// The cheap ones, by weight (Keller, 5.2).
    #[default]
    Cheapest,
    /// Those at one switch, or at as few as can be: chunks are near each other.
    Switches,
    /// Those that have something to do anyway, so that others can sleep.
    Busy,
}

impl Mapping {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Cheapest, Self::Switches, Self::Busy];

    /// As site files have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cheapest => "cheapest",
            Self::Switches => "switches",
            Self::Busy => "busy",
        }
    }
}
