// SPDX-License-Identifier: GPL-2.0
//! The loop between planner and node: what is planned, what happens, and what is
//! planned then.
//!
//! A [`Controller`] admits runs of jobs or refuses them, makes the plan of its
//! node, hears of the node's events, and answers prediction failures with a new
//! plan: the rescheduling component that Leppert 2021 sketches (4.4.2), with the
//! planner of Glaß 2024 behind it. It has no clock and does no input or output:
//! times come in as arguments, plans go out as values. So the same code runs
//! against the kernel and in a simulation.
//!
//! All times are nanoseconds of the monotonic clock of the node.

mod controller;
mod outlook;
mod pace;
mod track;

pub use controller::{
    size_of, Admitted, Answer, Beside, Cancelled, Companions, Controller, Grown, HandedOver,
    Missed, Options, RunState, SlowedEnds, SoFar, Stretches,
};
pub use outlook::Outlook;
pub use pace::Pace;
pub use track::{End, Measured};
