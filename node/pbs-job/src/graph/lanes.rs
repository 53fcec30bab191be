// SPDX-License-Identifier: GPL-2.0
//! Places of a graph's tasks, as a program under a plan gets them that runs all of them itself.

use std::fmt::Write;

/// Variable of the environment with the places of all tasks.
pub const LANES_VARIABLE: &str = "SCHED_PBS_LANES";

/// A task in the order of a process of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramLane {
    /// Index of the task in the graph.
    pub task: usize,
    /// Index of the variant as which it runs.
    pub variant: usize,
    /// Accelerator among those of the variant's kind; 0 for a variant of the CPU.
    pub instance: u32,
}

/// Writes the tasks of each process: `0:1:0,3:0:0;1:0:0` are two processes.
pub fn lanes_to_text(processes: &[Vec<ProgramLane>]) -> String {
    let mut text = String::new();
    for (process, lanes) in processes.iter().enumerate() {
        text.push_str(if process == 0 { "" } else { ";" });
        for (place, lane) in lanes.iter().enumerate() {
            text.push_str(if place == 0 { "" } else { "," });
            // Writing to a string succeeds.
            let _ = write!(text, "{}:{}:{}", lane.task, lane.variant, lane.instance);
        }
    }
    text
}

/// Reads the tasks of each process. `None`: the text does not have the form of
/// [`lanes_to_text`].
pub fn lanes_from_text(text: &str) -> Option<Vec<Vec<ProgramLane>>> {
    let lane = |text: &str| {
        let mut numbers = text.split(':');
        let lane = ProgramLane {
            task: numbers.next()?.parse().ok()?,
            variant: numbers.next()?.parse().ok()?,
            instance: numbers.next()?.parse().ok()?,
        };
        numbers.next().is_none().then_some(lane)
    };
    text.split(';').map(|process| process.split(',').map(lane).collect()).collect()
}
