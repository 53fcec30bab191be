// SPDX-License-Identifier: GPL-2.0
//! Choice among suitable nodes.

/// Order in which suitable nodes are chosen (Keller, 5 and 8, names such policies; the default is
/// his).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mapping {
    /// The cheap ones, by weight (Keller, 5.2).
    #[default]
    Cheapest,
    /// Nodes at one switch, or at as few as possible: chunks are near each other.
    Switches,
    /// Nodes that are busy anyway, which lets other nodes sleep.
    Busy,
}

impl Mapping {
    /// All policies.
    pub const ALL: [Self; 3] = [Self::Cheapest, Self::Switches, Self::Busy];

    /// Returns the name in site files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cheapest => "cheapest",
            Self::Switches => "switches",
            Self::Busy => "busy",
        }
    }
}
