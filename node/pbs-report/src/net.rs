// SPDX-License-Identifier: GPL-2.0
//! The task net of a job as a picture, without a plan (Glaß 2024, figure 1): a box for each task,
//! below those for which it waits.

use pbs_text::{bytes, shown};

use crate::process_style::ProcessStyle;
use crate::sizes::{KEY_ROW, MARGIN, SMALL, TEXT, WIDTH};
use crate::svg::{shortened, text_width, Anchor, Picture, EDGE, MESSAGE};

/// A task net.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Net {
    /// Title of the picture, in a few words.
    pub title: String,
    /// Sentence on the figures in the boxes.
    pub note: String,
    /// Processes, each with its name and its figures, for the key; empty: tasks have none.
    pub processes: Vec<(String, String)>,
    /// Tasks; none waits for itself, also not through others.
    pub tasks: Vec<NetTask>,
}

/// A task of a [`Net`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetTask {
    /// Index of its process, or 0.
    pub process: usize,
    /// Name of the task.
    pub name: String,
    /// Figures of the task, each with its unit: a line each.
    pub figures: Vec<String>,
    /// Tasks for which it waits.
    pub after: Vec<NetEdge>,
}

/// An edge of a [`Net`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetEdge {
    /// Index of the task at which the edge begins.
    pub task: usize,
    /// Size of the message that comes with the edge.
    pub message_bytes: Option<u64>,
}

/// Most boxes beside each other.
const MOST_COLUMNS: usize = 6;
/// Distance of columns: lines that pass boxes go through it.
const GUTTER: f64 = 26.0;
/// Distance of rows.
const GAP: f64 = 44.0;
/// Height of a line in a box.
const LINE: f64 = 16.0;
/// Distance of lines that go beside each other.
const SPREAD: f64 = 4.0;
/// Number of lines that go beside each other before they share places.
const LANES: usize = 5;

/// Place of a box.
#[derive(Clone, Copy, Default)]
struct Place {
    row: usize,
    column: usize,
}

/// Draws a task net.
pub fn net_picture(net: &Net) -> String {
    let axes = format!(
        "Rows: from top to bottom, each task is below those for which it waits. Left to right: \
         tasks that do not wait for each other. {}",
        net.note
    );
    let mut drawing = Drawing::new(net, Picture::new(axes));
    drawing.boxes();
    drawing.edges();
    let bottom = drawing.key();
    let description = "A box for each task, and an arrow to it from each task for which it waits.";
    drawing.picture.file(bottom, "", &shown(&net.title), description)
}

struct Drawing<'a> {
    net: &'a Net,
    picture: Picture,
    /// Places of the tasks.
    places: Vec<Place>,
    /// Upper edge of each row, and of what is below them.
    tops: Vec<f64>,
    /// Width of a box.
    width: f64,
}

impl<'a> Drawing<'a> {
    fn new(net: &'a Net, picture: Picture) -> Self {
        let figures = net.tasks.iter().flat_map(|task| &task.figures);
        let widest = figures.map(|figure| text_width(figure, SMALL)).fold(80.0, f64::max) + 12.0;
        let room = WIDTH - 2.0 * MARGIN;
        let columns = (((room + GUTTER) / (widest + GUTTER)) as usize).clamp(1, MOST_COLUMNS);
        let width = (room + GUTTER) / columns as f64 - GUTTER;
        let places = places(net, columns);
        let rows = places.iter().map(|place| place.row + 1).max().unwrap_or(0);
        let mut heights = vec![0.0_f64; rows];
        for (task, place) in net.tasks.iter().zip(&places) {
            heights[place.row] = heights[place.row].max(height(task));
        }
        let mut tops = vec![4.0];
        for height in heights {
            tops.push(tops.last().unwrap_or(&0.0) + height + GAP);
        }
        Self { net, picture, places, tops, width }
    }

    fn left(&self, column: usize) -> f64 {
        MARGIN + column as f64 * (self.width + GUTTER)
    }

    fn boxes(&mut self) {
        for (task, place) in self.net.tasks.iter().zip(self.places.clone()) {
            let look = ProcessStyle::of(task.process);
            let process = self.net.processes.get(task.process);
            let process = process.map(|process| format!("{}, ", process.0)).unwrap_or_default();
            let title = format!("{process}task {}: {}", task.name, task.figures.join(", "));
            let title = shown(&title);
            let (x, y) = (self.left(place.column), self.tops[place.row]);
            let at = (x, y, self.width, height(task));
            self.picture.process_box(at, &look, "class=\"box\"", &title);
            if !self.net.processes.is_empty() {
                self.picture.tag(at, &look);
            }
            let middle = x + self.width / 2.0;
            let name = shortened(&shown(&task.name), self.width - 32.0, TEXT);
            self.picture.in_box((middle, y + LINE), TEXT, &look, &name);
            for (figure, line) in task.figures.iter().zip(2..) {
                let at = (middle, y + LINE * f64::from(line));
                self.picture.in_box(at, SMALL, &look, figure);
            }
        }
    }

    /// Arrows, each with an end of its own at both boxes.
    fn edges(&mut self) {
        let tasks = &self.net.tasks;
        let mut edges: Vec<_> = (tasks.iter().enumerate())
            .flat_map(|(to, task)| task.after.iter().map(move |&edge| (edge, to)))
            .filter(|(edge, _)| edge.task < tasks.len())
            .collect();
        let key = |task: usize| (self.places[task].column, self.places[task].row);
        edges.sort_by_key(|&(edge, to)| (key(edge.task), key(to)));
        let mut out = vec![0; tasks.len()];
        let mut into = vec![0; tasks.len()];
        for (edge, to) in &edges {
            out[edge.task] += 1;
            into[*to] += 1;
        }
        let (mut left, mut came) = (vec![0; tasks.len()], vec![0; tasks.len()]);
        for (number, (edge, to)) in edges.into_iter().enumerate() {
            left[edge.task] += 1;
            came[to] += 1;
            let ends = ((left[edge.task], out[edge.task]), (came[to], into[to]));
            self.edge(edge, to, ends, number % LANES);
        }
    }

    /// An arrow, which goes around boxes between its ends. `ends` are its number among those that
    /// leave the first box, and among those that come to the second.
    fn edge(
        &mut self,
        edge: NetEdge,
        to: usize,
        ends: ((usize, usize), (usize, usize)),
        lane: usize,
    ) {
        let (source, target) = (&self.net.tasks[edge.task], &self.net.tasks[to]);
        let (from_place, to_place) = (self.places[edge.task], self.places[to]);
        let part = |(number, all): (usize, usize)| self.width * number as f64 / (all + 1) as f64;
        let from = (
            self.left(from_place.column) + part(ends.0),
            self.tops[from_place.row] + height(source),
        );
        let to = (self.left(to_place.column) + part(ends.1), self.tops[to_place.row]);
        let style = if edge.message_bytes.is_some() { MESSAGE } else { EDGE };
        let waits = format!("{} waits for {}", target.name, source.name);
        let title = match edge.message_bytes {
            Some(size) => format!("{waits}, which sends {}", bytes(size)),
            None => waits,
        };
        let title = shown(&title);
        if to_place.row == from_place.row + 1 {
            self.picture.arrow(from, to, 0.0, style, &title);
            return;
        }
        let aside = SPREAD * lane as f64;
        let around = self.left(to_place.column) - GUTTER + 4.0 + aside;
        let around = if to_place.column == 0 { 1.0 + aside * 0.6 } else { around };
        let below = self.tops[from_place.row + 1] - GAP + 8.0 + aside;
        let above = to.1 - 10.0 - aside;
        let path = [from, (from.0, below), (around, below), (around, above), (to.0, above)];
        self.picture.polyline(&path, format!("{style} fill=\"none\""));
        self.picture.arrow((to.0, above), to, 0.0, style, &title);
    }

    /// The processes, and the kinds of arrows. The result is the lower edge.
    fn key(&mut self) -> f64 {
        let mut y = *self.tops.last().unwrap_or(&0.0);
        let room = WIDTH - 2.0 * MARGIN - 24.0;
        for (index, (name, figures)) in self.net.processes.iter().enumerate() {
            let look = ProcessStyle::of(index);
            self.picture.swatch((MARGIN, y), &look);
            let text = format!("{} {}", look.letter, shown(name));
            let text = shortened(&text, room - text_width(figures, SMALL) - 16.0, SMALL);
            let text = if figures.is_empty() { text } else { format!("{text}: {figures}") };
            self.picture.text((MARGIN + 24.0, y + 11.0), SMALL, Anchor::Start, "", &text);
            y += KEY_ROW;
        }
        let edges = self.net.tasks.iter().flat_map(|task| &task.after);
        if edges.clone().any(|edge| edge.message_bytes.is_some()) {
            let middle = y + 7.0;
            self.picture.arrow((MARGIN, middle), (MARGIN + 20.0, middle), 0.0, MESSAGE, "message");
            let text = "waits for a message";
            self.picture.text((MARGIN + 24.0, y + 11.0), SMALL, Anchor::Start, "", text);
            y += KEY_ROW;
        }
        y + 4.0
    }
}

/// Height of the box of a task.
fn height(task: &NetTask) -> f64 {
    LINE * (task.figures.len() + 1) as f64 + 8.0
}

/// Layers of the tasks: one more than the greatest of those for which a task waits.
fn layers(net: &Net) -> Vec<usize> {
    let tasks = &net.tasks;
    let mut layers = vec![0; tasks.len()];
    let mut open: Vec<usize> = vec![0; tasks.len()];
    let mut before = vec![Vec::new(); tasks.len()];
    for (to, task) in tasks.iter().enumerate() {
        for edge in task.after.iter().filter(|edge| edge.task < tasks.len()) {
            open[to] += 1;
            before[edge.task].push(to);
        }
    }
    let mut ready: Vec<usize> = (0..tasks.len()).filter(|&task| open[task] == 0).collect();
    while let Some(task) = ready.pop() {
        for &next in &before[task] {
            layers[next] = layers[next].max(layers[task] + 1);
            open[next] -= 1;
            if open[next] == 0 {
                ready.push(next);
            }
        }
    }
    layers
}

/// Places of the tasks. Each process has a column if there are enough columns; otherwise the tasks
/// of a layer are beside each other, in several rows where one is too short.
fn places(net: &Net, columns: usize) -> Vec<Place> {
    let layers = layers(net);
    let depth = layers.iter().map(|layer| layer + 1).max().unwrap_or(0);
    let mut of_layer = vec![Vec::new(); depth];
    for (task, layer) in layers.into_iter().enumerate() {
        of_layer[layer].push(task);
    }
    let of_processes = (1..=columns).contains(&net.processes.len());
    let mut places = vec![Place::default(); net.tasks.len()];
    let mut row = 0;
    for mut tasks in of_layer {
        tasks.sort_by_key(|&task| (net.tasks[task].process, task));
        let process = |task: &usize| net.tasks[*task].process;
        let is_apart = tasks.windows(2).all(|pair| process(&pair[0]) != process(&pair[1]));
        for (number, &task) in tasks.iter().enumerate() {
            places[task] = if of_processes && is_apart {
                Place { row, column: net.tasks[task].process }
            } else {
                Place { row: row + number / columns, column: number % columns }
            };
        }
        row = tasks.iter().map(|&task| places[task].row + 1).max().unwrap_or(row);
    }
    places
}
