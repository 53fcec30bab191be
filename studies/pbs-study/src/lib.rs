// SPDX-License-Identifier: GPL-2.0
//! Studies: many cases in virtual time, and what they show.
//!
//! [`node`] has those of one node's plans, [`compare`] holds plans against other schedulers
//! ([`yardsticks`]), [`cosched`] those of tasks with several
//! implementations, [`evolving`] those of applications that evolve.

pub mod compare;
pub mod cosched;
pub mod evolving;
pub mod node;
pub mod yardsticks;

use pbs_text::Format;
use serde::Serialize;

/// A study that has been made, as it is printed. It serialises as JSON.
pub trait Study: Serialize {
    /// The tables, with words around them.
    fn text(&self, format: Format) -> String;

    /// The pictures, each with the name of its file.
    fn pictures(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
}
