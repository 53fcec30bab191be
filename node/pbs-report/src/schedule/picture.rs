// SPDX-License-Identifier: GPL-2.0
//! The plan as a picture.

use std::collections::{HashMap, HashSet};

use pbs_text::{bytes, grouped, ms};

use super::{peak, Schedule, ScheduleNode, ScheduleTask};
use crate::axis::ticks;
use crate::chart::time_scale;
use crate::process_style::ProcessStyle;
use crate::sizes::{
    BOLD, KEY_ROW, LEFT, MOST_STRETCH, MUTED, NAME, NARROW, RIGHT, SMALL, TEXT, WIDTH,
};
use crate::svg::{shortened, text_width, Anchor, Picture, CRITICAL, EDGE};

/// Height of a core.
const TRACK: f64 = 40.0;
const GAP: f64 = 8.0;
/// Gap between cores if arrows lead from one to another.
const EDGE_GAP: f64 = 34.0;
/// Height of the memory of a node, and of a resource.
const LEVEL: f64 = 70.0;
/// Maximum number of deadlines beyond the axis that are named.
const MOST_FAR: usize = 2;
/// Number of edges above which only those of the critical path are drawn.
const MOST_EDGES: usize = 400;

/// Draws the plan as an SVG file: the cores of each node, its memory below
/// them, and the resources that are held, on one axis of time.
pub fn schedule_picture(schedule: &Schedule) -> String {
    let end_ns = schedule.end_ns().max(1) as f64;
    let deadlines = schedule.deadlines.iter().map(|&(ns, _)| ns as f64);
    let near = deadlines.filter(|ns| *ns <= end_ns * MOST_STRETCH);
    let span_ns = near.fold(end_ns, f64::max);
    let axes = format!(
        "Left to right: time in {} since the beginning. Rows: the cores of each node with their \
         tasks, and below them its memory: from bottom to top, how much is reserved.{}",
        time_scale(span_ns).1,
        if schedule.resources.is_empty() { "" } else { " The last rows: resources likewise." }
    );
    let has_far = schedule.deadlines.iter().any(|&(ns, _)| ns as f64 > span_ns);
    let mut drawing = Drawing {
        schedule,
        picture: Picture::new(axes),
        span_ns,
        // The deadlines that the axis does not reach stand above the rows.
        y: if has_far { 28.0 } else { 4.0 },
        has_edges: schedule.tasks().any(|task| !task.after.is_empty()),
        places: HashMap::new(),
    };
    let top = drawing.y;
    for node in &schedule.nodes {
        drawing.node(node);
    }
    for resource in &schedule.resources {
        let name = shortened(&resource.name, NAME, SMALL);
        drawing.level(&name, resource.count, &resource.held, grouped);
    }
    drawing.edges();
    drawing.axis(top);
    drawing.deadlines(top);
    drawing.y += 44.0;
    drawing.key();
    let description = "For each node its cores with the tasks that are planned on them, and below \
                       the memory that is reserved, on one axis of time.";
    let bottom = drawing.y + 4.0;
    drawing.picture.file(bottom, "", &schedule.title, description)
}

struct Drawing<'a> {
    schedule: &'a Schedule,
    picture: Picture,
    /// Length of the axis.
    span_ns: f64,
    /// Vertical position of the next element.
    y: f64,
    has_edges: bool,
    /// Positions of the tasks that were drawn, by process and name: the left, the right, and the
    /// top.
    places: HashMap<(usize, &'a str), (f64, f64, f64)>,
}

impl<'a> Drawing<'a> {
    fn x_of(&self, ns: u64) -> f64 {
        LEFT + ns as f64 / self.span_ns * (WIDTH - LEFT - RIGHT)
    }

    fn node(&mut self, node: &'a ScheduleNode) {
        let at = (16.0, self.y + 10.0);
        self.picture.text(at, TEXT, Anchor::Start, BOLD, &shortened(&node.name, NAME, TEXT));
        self.y += 20.0;
        for core in &node.cores {
            let y = self.y;
            let whole = WIDTH - LEFT - RIGHT;
            self.picture.rect(LEFT, y, whole, TRACK, "class=\"track\"");
            let at = (LEFT - 10.0, y + TRACK / 2.0 + 4.0);
            let name = shortened(&core.name, NAME, SMALL);
            self.picture.text(at, SMALL, Anchor::End, MUTED, &name);
            let mut last_x = f64::NEG_INFINITY;
            for task in &core.tasks {
                let x = self.x_of(task.start_ns);
                let width = self.x_of(task.end_ns) - x;
                let key = (task.process, task.task.as_str());
                self.places.insert(key, (x, x + width, y));
                if width >= NARROW || x >= last_x + NARROW {
                    last_x = x;
                    self.task(task, (x, y, width));
                }
            }
            self.y += TRACK + if self.has_edges { EDGE_GAP } else { GAP };
        }
        self.level("memory", node.memory_bytes, &node.reserved_bytes, bytes);
    }

    fn task(&mut self, task: &ScheduleTask, (x, y, width): (f64, f64, f64)) {
        let process = &self.schedule.processes[task.process];
        let look = ProcessStyle::of(task.process);
        let title = format!(
            "{process}, task {}: {:.3} to {:.3} ms, {} instructions, {} of memory",
            task.task,
            task.start_ns as f64 / 1e6,
            task.end_ns as f64 / 1e6,
            grouped(task.insns),
            bytes(task.memory_bytes)
        );
        let edge = if width > 3.0 { "class=\"box\"" } else { "" };
        // What is too short to see is still drawn.
        let place = (x, y, width.max(0.4), TRACK);
        self.picture.process_box(place, &look, edge, &title);
        if task.is_critical {
            let y = y + TRACK + 2.5;
            self.picture.line((x, y), (x + width.max(1.0), y), CRITICAL);
        }
        let fits = |text: &str| text_width(text, SMALL) <= width - 4.0;
        let middle = x + width / 2.0;
        if fits(process) && fits(&task.task) {
            for (y, line) in [(y + 16.0, process), (y + 31.0, &task.task)] {
                self.picture.in_box((middle, y), SMALL, &look, line);
            }
            return;
        }
        self.picture.tag(place, &look);
        if fits(&task.task) {
            let at = (middle, y + TRACK / 2.0 + 10.0);
            self.picture.in_box(at, SMALL, &look, &task.task);
        }
    }

    /// From the end of each task that is waited for to the start of who waits. Of
    /// very many only the critical ones are drawn, or all would be fog.
    fn edges(&mut self) {
        let tasks: Vec<_> = self.schedule.tasks().collect();
        let edges = tasks.iter().map(|task| task.after.len()).sum::<usize>();
        let critical: HashSet<_> = (tasks.iter().filter(|task| task.is_critical))
            .map(|task| (task.process, task.task.as_str()))
            .collect();
        for task in tasks {
            let own = (task.process, task.task.as_str());
            let Some(&(to_x, _, to_y)) = self.places.get(&own) else {
                continue;
            };
            for after in &task.after {
                let before = (after.process, after.task.as_str());
                let sets_the_end = critical.contains(&own) && critical.contains(&before);
                if edges > MOST_EDGES && !sets_the_end {
                    continue;
                }
                let Some(&(_, from_x, from_y)) = self.places.get(&before) else {
                    continue;
                };
                let style = if sets_the_end { CRITICAL } else { EDGE };
                let (from, to) = if from_y == to_y {
                    // Over what is between them on the same core.
                    ((from_x, from_y), (to_x, to_y))
                } else if from_y < to_y {
                    ((from_x, from_y + TRACK), (to_x, to_y))
                } else {
                    ((from_x, from_y), (to_x, to_y + TRACK))
                };
                let bend = if from_y == to_y { -TRACK / 4.0 } else { 0.0 };
                let processes = &self.schedule.processes;
                let title = format!(
                    "{} task {} waits for {} task {}",
                    processes[task.process], task.task, processes[after.process], after.task
                );
                self.picture.arrow(from, to, bend, style, &title);
            }
        }
    }

    /// Draws how much of something is reserved over time, of all that there is.
    fn level(&mut self, what: &str, all: u64, steps: &[(u64, u64)], say: impl Fn(u64) -> String) {
        let (top, bottom) = (self.y, self.y + LEVEL);
        let right = WIDTH - RIGHT;
        let plot = "class=\"plot\"";
        self.picture.rect(LEFT, top, right - LEFT, LEVEL, plot);
        // A planner that does not look at memory may reserve more than there is.
        let share = |amount: u64| (amount as f64 / all.max(1) as f64).min(1.0);
        let mut points = vec![(LEFT, bottom)];
        for &(at_ns, amount) in steps {
            let before = points.last().map_or(bottom, |point| point.1);
            let x = self.x_of(at_ns).min(right);
            points.push((x, before));
            points.push((x, bottom - share(amount) * LEVEL));
        }
        points.push((points.last().map_or(LEFT, |point| point.0), bottom));
        self.picture.polygon(&points, "class=\"bar\" fill-opacity=\"0.55\"");
        for (y, label) in [(top + 9.0, say(all)), (bottom, "0".to_string())] {
            let at = (LEFT - 10.0, y);
            self.picture.text(at, SMALL, Anchor::End, MUTED, &label);
        }
        let at = (16.0, top + LEVEL / 2.0 + 4.0);
        self.picture.text(at, SMALL, Anchor::Start, MUTED, what);
        let at = (right - 6.0, top + 14.0);
        let peak = format!("{} at most", say(peak(steps)));
        self.picture.text(at, SMALL, Anchor::End, "class=\"note\"", &peak);
        self.y = bottom + 18.0;
    }

    fn axis(&mut self, top: f64) {
        let bottom = self.y;
        let line = ((LEFT, bottom), (WIDTH - RIGHT, bottom));
        self.picture.line(line.0, line.1, "class=\"axis\"");
        let (factor, unit) = time_scale(self.span_ns);
        for tick in ticks(self.span_ns / factor) {
            let x = LEFT + tick.at * factor / self.span_ns * (WIDTH - LEFT - RIGHT);
            self.picture.line((x, top), (x, bottom + 5.0), "class=\"grid\"");
            let at = (x, bottom + 18.0);
            self.picture.text(at, SMALL, Anchor::Middle, MUTED, &tick.label);
        }
        let at = (LEFT - 20.0, bottom + 18.0);
        self.picture.text(at, SMALL, Anchor::End, MUTED, unit);
    }

    fn deadlines(&mut self, top: f64) {
        let mut free_until = f64::INFINITY;
        let mut far = Vec::new();
        let mut deadlines: Vec<_> = self.schedule.deadlines.iter().collect();
        deadlines.sort();
        for (ns, what) in deadlines.into_iter().rev() {
            let x = self.x_of(*ns);
            if x > WIDTH - RIGHT + 0.5 {
                far.push(format!("deadline of {what} at {} ms", ms(*ns)));
                continue;
            }
            let ends = ((x, top), (x, self.y));
            self.picture.line(ends.0, ends.1, "class=\"limit\"");
            let text = format!("deadline of {what}");
            if x <= free_until {
                let at = (x - 4.0, top + 10.0);
                self.picture.label(at, SMALL, Anchor::End, BOLD, &text);
                free_until = x - 12.0 - text_width(&text, SMALL) * 1.1;
            }
        }
        // Those that the axis does not reach, the earliest first.
        far.reverse();
        if far.len() > MOST_FAR {
            let more = far.len() - MOST_FAR;
            far.truncate(MOST_FAR);
            far.push(format!("{more} later ones"));
        }
        if !far.is_empty() {
            let at = (WIDTH - RIGHT, top - 14.0);
            let text = far.join(", ") + " →";
            let text = shortened(&text, WIDTH - LEFT - RIGHT, SMALL);
            self.picture.label(at, SMALL, Anchor::End, BOLD, &text);
        }
    }

    fn key(&mut self) {
        let mut x = LEFT;
        for (index, name) in self.schedule.processes.iter().enumerate() {
            let look = ProcessStyle::of(index);
            let name = format!("{} {name}", look.letter);
            let width = 34.0 + text_width(&name, TEXT);
            if x + width > WIDTH - RIGHT && x > LEFT {
                x = LEFT;
                self.y += KEY_ROW;
            }
            self.picture.swatch((x, self.y), &look);
            let at = (x + 20.0, self.y + 12.0);
            self.picture.text(at, TEXT, Anchor::Start, "", &name);
            x += width;
        }
        self.y += KEY_ROW;
        if self.schedule.tasks().any(|task| task.is_critical) {
            let y = self.y + 7.0;
            self.picture.line((LEFT, y), (LEFT + 14.0, y), CRITICAL);
            let text = if self.has_edges {
                "sets the end; arrows lead to the tasks that wait"
            } else {
                "sets the end"
            };
            let at = (LEFT + 20.0, self.y + 12.0);
            self.picture.text(at, TEXT, Anchor::Start, "", text);
            self.y += KEY_ROW;
        }
    }
}
