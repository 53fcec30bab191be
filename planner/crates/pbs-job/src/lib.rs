// SPDX-License-Identifier: GPL-2.0
//! What is asked of the planner: a [`Machine`], and [`Job`]s to run on it
//! (Glaß 2024, 4.1, 4.2 and 5.1.2).

mod model;

pub use model::{Action, Core, Job, Machine, Node, Process, Task, TICK_NS};
pub use pbs_plan::{Command, Line, Problem, Start};
