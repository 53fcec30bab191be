// SPDX-License-Identifier: GPL-2.0
//! Arrows from tasks to those that waited for them, and from the senders of messages to the
//! arrivals.

use std::collections::HashSet;

use pbs_text::ms;

use super::*;
use crate::svg::{CRITICAL, EDGE, MESSAGE};
use crate::Edge;

/// Number of edges above which only edges with a wait are drawn, and no planned messages.
const MOST_EDGES: usize = 100;
/// Length of the arrow to an arrival at the end of its sender in the same track.
const SHORT: f64 = 12.0;

impl Gantt<'_> {
    /// Whether a plan has messages.
    pub(super) fn has_messages(&self) -> bool {
        let cpus = self.report.cpus.iter();
        let mut slots = cpus.flat_map(|cpu| {
            let later = cpu.later.iter().flat_map(|later| &later.planned);
            cpu.planned.iter().chain(later)
        });
        slots.any(|slot| !slot.messages.is_empty())
    }

    /// From the end of each task that is waited for to the beginning of the task that waits, in
    /// what became of the plan: red where the slot of that came too early. The arrow of a message
    /// leads to its arrival, which is the end of its sender.
    pub(super) fn arrows(&mut self) {
        let report = self.report;
        let waited: HashSet<_> = report.waited.iter().map(|wait| wait.edge).collect();
        let few = report.edges.len() <= MOST_EDGES;
        let messages = self.message_edges();
        for edge in &report.edges {
            let has_waited = waited.contains(edge);
            if !few && !has_waited {
                continue;
            }
            let before = self.task(edge.after_process, Some(edge.after_task));
            let own = self.task(edge.process, Some(edge.task));
            let (Some(before), Some(own)) = (before, own) else {
                continue;
            };
            let (Some(ended_ns), Some(started_ns)) = (before.ended_ns, own.started_ns) else {
                continue;
            };
            let (Some(&from), Some(&to)) =
                (self.actual.get(&before.process), self.actual.get(&own.process))
            else {
                continue;
            };
            let x_of = |cpu: u32, at_ns: u64| {
                let origin = self.origin_ns.get(&cpu).copied().unwrap_or(0);
                self.x_of_ns(at_ns.saturating_sub(origin) as f64)
            };
            let is_message = messages.contains(edge);
            // In one track the arrow would have no length.
            let to_ns = if is_message && from != to { ended_ns } else { started_ns };
            let (from_x, to_x) = (x_of(before.cpu, ended_ns), x_of(own.cpu, to_ns));
            let verb = if is_message { "receives the message of" } else { "waits for" };
            let title = format!("{} {verb} {}", own.label(), before.label());
            let style = match (has_waited, is_message) {
                (true, _) => CRITICAL,
                (false, true) => MESSAGE,
                (false, false) => EDGE,
            };
            self.arrow_between((from_x, from), (to_x, to), style, &title);
        }
    }

    /// From the planned end of the sender of each message to the planned arrival, on the track of
    /// the receiver, in each plan until another one takes over.
    pub(super) fn planned_messages(&mut self) {
        let report = self.report;
        if report.edges.len() > MOST_EDGES {
            return;
        }
        // Beginning of the plan, and planned end, of the slots of each task.
        let mut ends: HashMap<(u32, u32), Vec<(f64, f64)>> = HashMap::new();
        let mut arrivals = Vec::new();
        for cpu in &report.cpus {
            let origin = self.origin_ns.get(&cpu.cpu).copied().unwrap_or(0);
            for part in parts(cpu, origin) {
                for slot in part.planned {
                    let (Some(process), Some(task)) = (slot.process, slot.task) else {
                        continue;
                    };
                    let end_ns = part.begin_ns + slot.end_ns as f64;
                    if end_ns <= part.end_ns {
                        let of_task = ends.entry((process, task)).or_default();
                        of_task.push((part.begin_ns, end_ns));
                    }
                    let messages = slot.messages.iter().map(|message| {
                        let arrival_ns = part.begin_ns + message.arrival_ns as f64;
                        (process, task, message, arrival_ns)
                    });
                    arrivals.extend(messages.filter(|message| message.3 < part.end_ns));
                }
            }
        }
        for (process, task, message, arrival_ns) in arrivals {
            let sender = (message.from_process, message.from_task);
            let of_sender = ends.get(&sender).into_iter().flatten();
            // The sender may have a slot in an earlier plan of its CPU.
            let sent = of_sender.rev().find(|(begin_ns, _)| *begin_ns <= arrival_ns);
            let places = (self.planned.get(&sender.0), self.planned.get(&process));
            let (Some(&(_, end_ns)), (Some(&from), Some(&to))) = (sent, places) else {
                continue;
            };
            let title = format!(
                "{}, {}: message of {}, {}, planned to arrive at {} ms",
                self.name(process),
                self.task_name(process, Some(task)),
                self.name(sender.0),
                self.task_name(sender.0, Some(sender.1)),
                ms(arrival_ns as u64)
            );
            let (from_x, to_x) = (self.x_of_ns(end_ns), self.x_of_ns(arrival_ns));
            self.arrow_between((from_x, from), (to_x, to), MESSAGE, &title);
        }
    }

    /// Draws an arrow from one track or lane to another: each has a top and a height.
    fn arrow_between(
        &mut self,
        (from_x, from): (f64, (f64, f64)),
        (to_x, to): (f64, (f64, f64)),
        style: &str,
        title: &str,
    ) {
        let middle = |(y, height): (f64, f64)| y + height / 2.0;
        let (mut from_y, mut to_y) = (middle(from), middle(to));
        let mut bend = 0.0;
        if from == to {
            // Below what is between them in the same track.
            (from_y, to_y) = (from.0 + from.1, to.0 + to.1);
            bend = 8.0;
            if (to_x - from_x).abs() < 1.0 {
                (from_y, bend) = (to_y + SHORT, 0.0);
            }
        }
        self.picture.arrow((from_x, from_y), (to_x, to_y), bend, style, title);
    }

    /// Returns the edges of all plans that carry a message.
    fn message_edges(&self) -> HashSet<Edge> {
        let cpus = self.report.cpus.iter();
        let slots = cpus.flat_map(|cpu| {
            let later = cpu.later.iter().flat_map(|later| &later.planned);
            cpu.planned.iter().chain(later)
        });
        let edges = slots.flat_map(|slot| {
            let receiver = slot.process.zip(slot.task);
            slot.messages.iter().filter_map(move |message| {
                let (process, task) = receiver?;
                Some(Edge {
                    process,
                    task,
                    after_process: message.from_process,
                    after_task: message.from_task,
                })
            })
        });
        edges.collect()
    }
}
