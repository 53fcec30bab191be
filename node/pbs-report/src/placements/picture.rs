// SPDX-License-Identifier: GPL-2.0
//! The schedules as a picture.

use pbs_text::ms;

use super::labels::{labels, Line};
use super::{Panel, PlacedTask, Placements};
use crate::axis::ticks;
use crate::chart::time_scale;
use crate::process_style::ProcessStyle;
use crate::sizes::{
    BOLD, KEY_ROW, LEFT, MOST_STRETCH, MUTED, NAME, NARROW, RIGHT, SMALL, TEXT, WIDTH,
};
use crate::svg::{shortened, text_width, Anchor, Picture};

/// All threads of a panel together are about so high, if each can be between these.
const THREADS: f64 = 230.0;
const LEAST_ROW: f64 = 2.0;
const MOST_ROW: f64 = 30.0;
/// Height of a thread below which only the first and the last thread are named, without lines
/// between them.
const NAMED_ROW: f64 = SMALL;
/// Approximate height of all accelerators of a panel together, if each can be at least
/// [`LEAST_ACCELERATOR`] high.
const ACCELERATORS: f64 = 130.0;
const LEAST_ACCELERATOR: f64 = 14.0;
/// Between threads and accelerators.
const BETWEEN: f64 = 7.0;
/// Above the rows of a panel: its title, and marks.
const HEAD: f64 = 60.0;
/// Style of the line at the end of all tasks.
const END: &str = "class=\"rule\" stroke=\"#16181d\" stroke-width=\"1.5\"";
const DEADLINE: &str =
    "class=\"rule\" stroke=\"#16181d\" stroke-width=\"1.5\" stroke-dasharray=\"9 4\"";
const ARRIVAL: &str = "class=\"rule\" stroke=\"#16181d\" stroke-dasharray=\"2 3\"";

/// Draws the schedules as an SVG file.
pub fn placements_picture(placements: &Placements) -> String {
    let (picture, bottom) = drawn(placements);
    picture.file(bottom, "", &placements.title, DESCRIPTION)
}

/// Draws the schedules as a part of a page.
pub(super) fn inline(placements: &Placements) -> String {
    let (picture, bottom) = drawn(placements);
    picture.inline(bottom, "", "placements", &placements.title, DESCRIPTION)
}

const DESCRIPTION: &str =
    "For each schedule the threads of the CPU and the accelerators, with the \
                           tasks that run on them, on one axis of time.";

fn drawn(placements: &Placements) -> (Picture, f64) {
    let ends = placements.panels.iter().map(Panel::end_ns);
    let end_ns = ends.max().unwrap_or(0).max(1) as f64;
    let processes = placements.processes.iter();
    let deadlines = processes.filter_map(|process| process.deadline_ns);
    let near = deadlines.map(|ns| ns as f64).filter(|ns| *ns <= end_ns * MOST_STRETCH);
    let high =
        |of: f64, rows: &[String], least| (of / rows.len().max(1) as f64).clamp(least, MOST_ROW);
    let span_ns = near.fold(end_ns, f64::max) * 1.002;
    let axes = format!(
        "Left to right: time in {}. Rows: for each schedule the threads of the CPU, and below them \
         the accelerators, with the tasks that run on them.",
        time_scale(span_ns).1
    );
    let mut drawing = Drawing {
        placements,
        picture: Picture::new(axes),
        span_ns,
        thread: high(THREADS, &placements.threads, LEAST_ROW),
        accelerator: high(ACCELERATORS, &placements.accelerators, LEAST_ACCELERATOR),
        y: 4.0,
    };
    drawing.key();
    for panel in &placements.panels {
        drawing.panel(panel);
    }
    drawing.foot();
    (drawing.picture, drawing.y + 4.0)
}

struct Drawing<'a> {
    placements: &'a Placements,
    picture: Picture,
    /// Length of the axis.
    span_ns: f64,
    /// Height of a thread.
    thread: f64,
    /// Height of an accelerator.
    accelerator: f64,
    /// Vertical position of the next element.
    y: f64,
}

impl Drawing<'_> {
    fn x_of(&self, ns: u64) -> f64 {
        LEFT + ns as f64 / self.span_ns * (WIDTH - LEFT - RIGHT)
    }

    /// Returns the top of a row, relative to the first one, and its height.
    fn row(&self, row: usize) -> (f64, f64) {
        let threads = self.placements.threads.len();
        match row.checked_sub(threads) {
            None => (self.thread * row as f64, self.thread),
            Some(below) => {
                let above = self.thread * threads as f64 + BETWEEN;
                (above + self.accelerator * below as f64, self.accelerator)
            }
        }
    }

    fn row_count(&self) -> usize {
        self.placements.threads.len() + self.placements.accelerators.len()
    }

    /// Draws the key of the processes.
    fn key(&mut self) {
        let mut x = LEFT;
        for (index, process) in self.placements.processes.iter().enumerate() {
            let look = ProcessStyle::of(index);
            let name = format!("{} {}", look.letter, shortened(&process.name, 300.0, TEXT));
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
    }

    /// Draws the key of the lines.
    fn foot(&mut self) {
        let mut x = LEFT;
        self.y += 6.0;
        let late = self.placements.processes.iter();
        let has_deadlines = late.clone().any(|process| process.deadline_ns.is_some());
        let comes_later = late.clone().any(|process| process.arrival_ns > 0);
        for (style, text, is_there) in [
            (END, "everything has ended", true),
            (ARRIVAL, "a process arrives", comes_later),
            (DEADLINE, "a deadline", has_deadlines),
        ] {
            if is_there {
                let y = self.y + 7.0;
                self.picture.line((x, y), (x + 22.0, y), style);
                let at = (x + 28.0, self.y + 11.0);
                self.picture.text(at, SMALL, Anchor::Start, MUTED, text);
                x += 54.0 + text_width(text, SMALL);
            }
        }
        self.y += 16.0;
    }

    fn panel(&mut self, panel: &Panel) {
        let at = (LEFT, self.y + 20.0);
        let title = shortened(&panel.title, WIDTH - LEFT - RIGHT, TEXT);
        self.picture.text(at, TEXT, Anchor::Start, BOLD, &title);
        let top = self.y + HEAD;
        let (last, height) = self.row(self.row_count().saturating_sub(1));
        let bottom = top + last + height;
        self.rows(top);
        self.axis(top, bottom);
        let mut tasks: Vec<&PlacedTask> = panel.tasks.iter().collect();
        tasks.sort_by_key(|task| (task.start_ns, task.end_ns));
        let mut last_x = vec![f64::NEG_INFINITY; self.row_count()];
        // Lines are above boxes, and texts above lines.
        let boxes: Vec<_> = tasks.iter().map(|task| self.task(task, top, &mut last_x)).collect();
        self.lines(panel, top, bottom);
        for (task, places) in tasks.iter().zip(boxes) {
            for place in places {
                self.in_box(task, place);
            }
        }
        self.y = bottom + 34.0;
    }

    /// The rows and their names.
    fn rows(&mut self, top: f64) {
        let whole = WIDTH - LEFT - RIGHT;
        let style = "class=\"track\" fill=\"#eef0f3\"";
        let threads = self.placements.threads.len();
        let are_thin = self.thread < NAMED_ROW;
        if are_thin {
            let height = self.thread * threads as f64;
            self.picture.rect(LEFT, top, whole, height, style);
        }
        let names = self.placements.threads.iter();
        let names = names.chain(&self.placements.accelerators);
        for (index, name) in names.enumerate() {
            let (y, height) = self.row(index);
            let is_thin = are_thin && index < threads;
            if !is_thin {
                self.picture.rect(LEFT, top + y, whole, height, style);
            }
            // The first thin one is named from its top on, the last above its bottom.
            let y = if !is_thin {
                y + height / 2.0 + SMALL * 0.36
            } else if index == 0 {
                y + SMALL * 0.8
            } else if index + 1 == threads {
                y + height
            } else {
                continue;
            };
            let name = shortened(name, NAME, SMALL);
            let at = (LEFT - 10.0, top + y);
            self.picture.text(at, SMALL, Anchor::End, MUTED, &name);
        }
    }

    fn axis(&mut self, top: f64, bottom: f64) {
        let line = ((LEFT, bottom), (WIDTH - RIGHT, bottom));
        self.picture.line(line.0, line.1, "class=\"axis\"");
        let (factor, unit) = time_scale(self.span_ns);
        for tick in ticks(self.span_ns / factor) {
            let x = LEFT + tick.at * factor / self.span_ns * (WIDTH - LEFT - RIGHT);
            let ends = ((x, top), (x, bottom + 5.0));
            self.picture.line(ends.0, ends.1, "class=\"grid\"");
            let at = (x, bottom + 18.0);
            self.picture.text(at, SMALL, Anchor::Middle, MUTED, &tick.label);
        }
        let at = (LEFT - 20.0, bottom + 18.0);
        self.picture.text(at, SMALL, Anchor::End, MUTED, unit);
    }

    /// Draws a box for each stretch of rows beside each other; where they are.
    fn task(&mut self, task: &PlacedTask, top: f64, last_x: &mut [f64]) -> Vec<Rectangle> {
        let x = self.x_of(task.start_ns);
        let width = self.x_of(task.end_ns) - x;
        let look = ProcessStyle::of(task.process);
        let process = self.placements.processes.get(task.process);
        let process = process.map_or("", |process| &process.name);
        let title = format!(
            "{process} {}, {}: {} to {} ms",
            task.task,
            task.label,
            ms(task.start_ns),
            ms(task.end_ns)
        );
        let mut rows = task.rows.clone();
        rows.sort_unstable();
        let mut stretches: Vec<(usize, usize)> = Vec::new();
        for row in rows {
            match stretches.last_mut() {
                Some(last) if last.1 + 1 == row => last.1 = row,
                _ => stretches.push((row, row)),
            }
        }
        let mut places = Vec::new();
        for (first, last) in stretches {
            let Some(last_x) = last_x.get_mut(first) else {
                continue;
            };
            if width < NARROW && x < *last_x + NARROW {
                continue;
            }
            *last_x = x;
            let (from, _) = self.row(first);
            let (until, last_height) = self.row(last);
            let (y, height) = (top + from, until + last_height - from);
            let edge = if width > 3.0 && height > 5.0 { "class=\"box\"" } else { "" };
            // What is too short to see is still drawn.
            let place = (x, y, width.max(0.4), height);
            self.picture.process_box(place, &look, edge, &title);
            places.push(place);
        }
        places
    }

    /// Writes as much text as there is room for: the task above its label, both beside each other,
    /// the task alone, or the letter of the process.
    fn in_box(&mut self, task: &PlacedTask, (x, y, width, height): Rectangle) {
        let look = &ProcessStyle::of(task.process);
        let fits = |text: &str| text_width(text, SMALL) <= width - 6.0;
        let (middle_x, middle_y) = (x + width / 2.0, y + height / 2.0);
        let both = format!("{} {}", task.task, task.label);
        if height >= 32.0 && fits(&task.task) && fits(&task.label) {
            for (y, line) in [(middle_y - 3.0, &task.task), (middle_y + 12.0, &task.label)] {
                self.picture.in_box((middle_x, y), SMALL, look, line);
            }
        } else if height >= SMALL + 2.0 && fits(&both) {
            let at = (middle_x, middle_y + 4.0);
            self.picture.in_box(at, SMALL, look, &both);
        } else if height >= SMALL + 2.0 && fits(&task.task) {
            let at = (middle_x, middle_y + 4.0);
            self.picture.in_box(at, SMALL, look, &task.task);
        } else {
            self.picture.tag((x, y, width, height), look);
        }
    }

    /// The end, arrivals, deadlines and what was decided. All have a line; texts stand above the
    /// rows as far as they have room, and tell how many others have none.
    fn lines(&mut self, panel: &Panel, top: f64, bottom: f64) {
        let end_ns = panel.end_ns();
        let mut lines = vec![(end_ns, END, BOLD, format!("{} ms", ms(end_ns)))];
        for process in &self.placements.processes {
            if let Some(deadline_ns) = process.deadline_ns {
                let text = format!("deadline of {}", process.name);
                lines.push((deadline_ns, DEADLINE, "", text));
            }
            let decided = panel.marks.iter().any(|&(ns, _)| ns == process.arrival_ns);
            if process.arrival_ns > 0 && !decided {
                let text = format!("{} comes", process.name);
                lines.push((process.arrival_ns, ARRIVAL, MUTED, text));
            }
        }
        for (ns, text) in &panel.marks {
            lines.push((*ns, ARRIVAL, MUTED, text.clone()));
        }
        let lines = lines.into_iter().map(|(ns, line, style, text)| Line {
            x: self.x_of(ns),
            line,
            style,
            text,
        });
        let lines: Vec<Line> = lines.filter(|line| line.x <= WIDTH - RIGHT + 0.5).collect();
        for line in &lines {
            let ends = ((line.x, top - 5.0), (line.x, bottom));
            self.picture.line(ends.0, ends.1, line.line);
        }
        for label in labels(&lines) {
            let text = match label.more {
                0 => label.line.text.clone(),
                more => format!("{} +{more}", label.line.text),
            };
            let at = (label.middle, top - 9.0 - 14.0 * label.level as f64);
            let style = label.line.style;
            self.picture.text(at, SMALL, Anchor::Middle, style, &text);
        }
    }
}

/// Left, top, width and height.
type Rectangle = (f64, f64, f64, f64);
