// SPDX-License-Identifier: GPL-2.0
//! Whether deviations average out (Leppert 2021, 1.3 and 3.3.6).
//!
//! The thesis assumes that they are normally distributed, so that about half of the tasks
//! use nothing of the capacity buffer, and that what is late and what is early makes up
//! for each other where a process has many tasks. Here that is tried with normal
//! deviations, with skewed ones, with those that all tasks of a process have in common,
//! and with a list that was measured.

mod normality;

use std::collections::BTreeMap;

use pbs_gen::{generate, Parameters, Random, Span, Stream};
use pbs_plan::Config;
use pbs_report::{curves, Curve, Plot};
use pbs_text::{grouped, Table};
use serde::Serialize;

use crate::node::{for_each_plan, percent, Error, Format, Options};
use crate::Study;
use normality::{jarque_bera, Normality};

/// Standard deviations, of the planned length.
const SIGMAS_PERCENT: [u64; 7] = [1, 2, 5, 10, 20, 30, 50];

/// Tasks of a process after which its lateness is looked at.
const TASKS: [usize; 7] = [1, 3, 10, 30, 100, 300, 1000];

/// The figure of the thesis: tasks of so many ticks, deviations in so many bins.
const FIGURE_TICKS: f64 = 100.0;
const FIGURE_BINS: usize = 1000;
/// TASK_SIGMA of the figure, which is not printed; here it is the default of `pbsctl gen`.
const FIGURE_SIGMA: f64 = 0.1;
/// The figure has the deviations up to so many standard deviations.
const FIGURE_REACH: f64 = 4.0;

/// A list longer than that proves any model wrong, however near it is.
const TESTED: usize = 1000;

/// Distribution of the deviations of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum Shape {
    /// Normal around the planned length.
    Normal,
    /// Log-normal, with the planned length as mean: seldom much longer, mostly a little shorter.
    Skewed,
    /// Normal, and equal for all tasks of a process: its input has grown.
    Common,
    /// One of a list, each as likely.
    Measured,
}

impl Shape {
    fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Skewed => "skewed",
            Self::Common => "common",
            Self::Measured => "measured",
        }
    }
}

/// Source of the factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Source {
    shape: Shape,
    /// 0 of what was measured.
    sigma_percent: u64,
}

impl Source {
    fn all(measured: &[f64]) -> Vec<Self> {
        let shapes = [Shape::Normal, Shape::Skewed, Shape::Common];
        let drawn = shapes
            .into_iter()
            .flat_map(|shape| SIGMAS_PERCENT.map(|sigma_percent| Self { shape, sigma_percent }));
        let mut all: Vec<_> = drawn.collect();
        if !measured.is_empty() {
            all.push(Self { shape: Shape::Measured, sigma_percent: 0 });
        }
        all
    }

    /// Ratios of the real to the planned lengths of `count` tasks of a process.
    fn ratios(self, random: &mut Random, measured: &[f64], count: usize) -> Vec<f64> {
        let sigma = self.sigma_percent as f64 / 100.0;
        // A task retires at least something.
        let normal = |random: &mut Random| (1.0 + sigma * random.normal()).max(0.0);
        match self.shape {
            Shape::Normal => (0..count).map(|_| normal(random)).collect(),
            Shape::Common => vec![normal(random); count],
            Shape::Skewed => {
                // Of a log-normal factor with mean 1 and that standard deviation.
                let variance = libm::log1p(sigma * sigma);
                let factor = |random: &mut Random| {
                    libm::exp(variance.sqrt() * random.normal() - variance / 2.0)
                };
                (0..count).map(|_| factor(random)).collect()
            }
            Shape::Measured => (0..count).map(|_| measured[random.index(measured.len())]).collect(),
        }
    }
}

/// Lateness and buffer of one process of a plan after each number of [`TASKS`], both in
/// instructions.
struct Process {
    late_tasks: u64,
    lateness_insns: [f64; TASKS.len()],
    buffer_insns: [f64; TASKS.len()],
    /// Some ratios, of the first tasks.
    ratios: Vec<f64>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Length {
    /// Number of tasks of a process.
    tasks: usize,
    /// Processes that are late by more than their capacity buffer.
    over_buffer: u64,
    over_buffer_share: f64,
    /// Standard deviation of the lateness, in mean lengths of a task; it grows with the
    /// number of tasks.
    lateness_sigma_tasks: f64,
    /// And of the length of the process; it falls.
    lateness_sigma_percent: f64,
}

#[derive(Clone, Debug, Serialize)]
struct DeviationRow {
    shape: Shape,
    /// `None` of what was measured.
    sigma_percent: Option<u64>,
    processes: u64,
    tasks: u64,
    /// Tasks that retire more than planned: those that use any of the capacity buffer.
    late_tasks: u64,
    late_share: f64,
    /// The power of the number of tasks with which the lateness of process and node
    /// grows: 0.5 where deviations average out, 1 where they do not.
    growth_exponent: f64,
    lengths: Vec<Length>,
    /// Whether the ratios can be normal.
    normality: Normality,
}

/// The histogram of the thesis's figure 9.
#[derive(Debug, Serialize)]
struct Figure {
    task_ticks: f64,
    sigma_percent: f64,
    tasks: u64,
    bins: usize,
    /// Bins with at least one task.
    filled_bins: usize,
    least_ticks: f64,
    width_ticks: f64,
    /// Tasks beyond both ends.
    outside: u64,
    mean_ticks: f64,
    counts: Vec<u64>,
}

/// Results of the study.
#[derive(Debug, Serialize)]
struct Deviations {
    plans: u64,
    seed: u64,
    /// The share of the planned length that a process may be late by.
    buffer_permille: u64,
    rows: Vec<DeviationRow>,
    /// Normality of the whole list.
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<Normality>,
    figure9: Figure,
}

/// Makes the study: as many processes of 1,000 tasks as there are plans, for each way to
/// deviate; `measured` has the ratios of a list, retired by planned.
pub fn study(options: &Options<'_>, measured: &[f64]) -> Result<impl Study, Error> {
    let sources = Source::all(measured);
    let of_plans = for_each_plan(options, |number| {
        of_plan(options.seed.wrapping_add(number), &sources, measured)
    })?;
    let mut all: BTreeMap<Source, Vec<Process>> = BTreeMap::new();
    for of_plan in of_plans {
        for (&source, process) in sources.iter().zip(of_plan) {
            all.entry(source).or_default().push(process);
        }
    }
    Ok(Deviations {
        plans: options.plans,
        seed: options.seed,
        buffer_permille: Config::DEFAULT.capacity_buffer_permille - 1000,
        rows: all.iter().map(|(source, of)| source.row(of)).collect(),
        measured: (!measured.is_empty()).then(|| jarque_bera(measured)),
        figure9: figure9(options),
    })
}

fn of_plan(seed: u64, sources: &[Source], measured: &[f64]) -> Result<Vec<Process>, Error> {
    let parameters = Parameters {
        processes: 1,
        tasks: Span::new(1000, 1000),
        idle_permille: 0,
        task_sigma_permille: 0,
        seed,
        ..Parameters::default()
    };
    let plan = generate(&parameters).map_err(|error| Error(error.to_string()))?;
    let planned: Vec<f64> = (plan.processes.iter())
        .flat_map(|process| &process.tasks)
        .map(|task| task.planned_insns as f64)
        .collect();
    let buffer = (Config::DEFAULT.capacity_buffer_permille - 1000) as f64 / 1000.0;
    let of = sources.iter().map(|source| {
        let random = &mut Random::new(seed, Stream::Deviation);
        let ratios = source.ratios(random, measured, planned.len());
        let mut process = Process {
            late_tasks: 0,
            lateness_insns: [0.0; TASKS.len()],
            buffer_insns: [0.0; TASKS.len()],
            ratios: ratios[..1].to_vec(),
        };
        let (mut late_insns, mut planned_insns) = (0.0, 0.0);
        let mut place = 0;
        for (number, (&length_insns, &ratio)) in (1..).zip(planned.iter().zip(&ratios)) {
            process.late_tasks += u64::from(ratio > 1.0);
            late_insns += length_insns * (ratio - 1.0);
            planned_insns += length_insns;
            if TASKS.get(place) == Some(&number) {
                process.lateness_insns[place] = late_insns;
                process.buffer_insns[place] = buffer * planned_insns;
                place += 1;
            }
        }
        process
    });
    Ok(of.collect())
}

impl Source {
    fn row(self, of: &[Process]) -> DeviationRow {
        let processes = of.len() as u64;
        let tasks = processes * TASKS[TASKS.len() - 1] as u64;
        let late_tasks = of.iter().map(|process| process.late_tasks).sum();
        let buffer = (Config::DEFAULT.capacity_buffer_permille - 1000) as f64 / 1000.0;
        // Of all tasks.
        let planned_insns: f64 = of.iter().map(|it| it.buffer_insns[TASKS.len() - 1]).sum();
        let mean_insns = planned_insns / buffer / tasks as f64;
        let lengths = TASKS.into_iter().enumerate().map(|(place, count)| {
            let over = of.iter();
            let over = over.filter(|it| it.lateness_insns[place] > it.buffer_insns[place]);
            let over_buffer = over.count() as u64;
            let lateness: Vec<_> = of.iter().map(|it| it.lateness_insns[place]).collect();
            let sigma_tasks = sigma(&lateness) / mean_insns;
            Length {
                tasks: count,
                over_buffer,
                over_buffer_share: over_buffer as f64 / processes as f64,
                lateness_sigma_tasks: sigma_tasks,
                lateness_sigma_percent: 100.0 * sigma_tasks / count as f64,
            }
        });
        let lengths: Vec<_> = lengths.collect();
        let growth = lengths.iter();
        let growth =
            growth.map(|it| (libm::log(it.tasks as f64), libm::log(it.lateness_sigma_tasks)));
        let tested = of.iter().flat_map(|process| &process.ratios);
        let tested: Vec<_> = tested.copied().take(TESTED).collect();
        DeviationRow {
            shape: self.shape,
            sigma_percent: (self.shape != Shape::Measured).then_some(self.sigma_percent),
            processes,
            tasks,
            late_tasks,
            late_share: late_tasks as f64 / tasks as f64,
            growth_exponent: slope(&growth.collect::<Vec<_>>()),
            lengths,
            normality: jarque_bera(&tested),
        }
    }
}

/// The standard deviation.
fn sigma(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean).powi(2));
    (squares.sum::<f64>() / count).sqrt()
}

/// Slope of the straight line with the least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let x = points.iter().map(|point| point.0).sum::<f64>() / count;
    let y = points.iter().map(|point| point.1).sum::<f64>() / count;
    let both: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let square: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    both / square
}

/// A plan whose tasks all have 100 ticks, a thousand of them for each plan of the study.
fn figure9(options: &Options<'_>) -> Figure {
    let source = Source { shape: Shape::Normal, sigma_percent: (100.0 * FIGURE_SIGMA) as u64 };
    let random = &mut Random::new(options.seed, Stream::Deviation);
    let tasks = options.plans as usize * 1000;
    let reach_ticks = FIGURE_REACH * FIGURE_SIGMA * FIGURE_TICKS;
    let width_ticks = 2.0 * reach_ticks / FIGURE_BINS as f64;
    let mut figure = Figure {
        task_ticks: FIGURE_TICKS,
        sigma_percent: 100.0 * FIGURE_SIGMA,
        tasks: tasks as u64,
        bins: FIGURE_BINS,
        filled_bins: 0,
        least_ticks: -reach_ticks,
        width_ticks,
        outside: 0,
        mean_ticks: 0.0,
        counts: vec![0; FIGURE_BINS],
    };
    for ratio in source.ratios(random, &[], tasks) {
        let off_ticks = FIGURE_TICKS * (ratio - 1.0);
        figure.mean_ticks += off_ticks / tasks as f64;
        let bin = ((off_ticks + reach_ticks) / width_ticks).floor();
        match figure.counts.get_mut(bin as usize) {
            Some(count) if bin >= 0.0 => *count += 1,
            _ => figure.outside += 1,
        }
    }
    figure.filled_bins = figure.counts.iter().filter(|&&count| count > 0).count();
    figure
}

impl Figure {
    /// With the normal distribution that the tasks were drawn from.
    fn picture(&self) -> String {
        let bin = |place: usize| self.least_ticks + self.width_ticks * place as f64;
        // The top of each column.
        let columns =
            self.counts.iter().enumerate().flat_map(|(place, &count)| {
                [bin(place), bin(place + 1)].map(|at| (at, count as f64))
            });
        let sigma_ticks = self.sigma_percent / 100.0 * self.task_ticks;
        let normal = (0..=self.bins).map(|place| {
            let distance = bin(place) / sigma_ticks;
            let density = libm::exp(-distance * distance / 2.0)
                / (sigma_ticks * (2.0 * std::f64::consts::PI).sqrt());
            (bin(place), density * self.width_ticks * self.tasks as f64)
        });
        let curve = |name: &str, points: Vec<_>| Curve { name: name.into(), points };
        let plot = Plot {
            title: format!(
                "Deviations of {} tasks of {} ticks in {} bins",
                grouped(self.tasks),
                self.task_ticks,
                grouped(self.bins as u64)
            ),
            across: "ticks off the planned length".into(),
            up: "tasks".into(),
            curves: vec![
                curve("tasks in each bin", columns.collect()),
                curve(
                    &format!("normal distribution, sigma {} %", self.sigma_percent),
                    normal.collect(),
                ),
            ],
            ..Plot::default()
        };
        let told = "A histogram of 1,000 bins about 0 and the bell curve that it follows.";
        curves("Deviations of planned tasks", told, &[plot])
    }
}

impl Study for Deviations {
    fn pictures(&self) -> Vec<(&'static str, String)> {
        vec![("figure9.svg", self.figure9.picture())]
    }

    fn text(&self, format: Format) -> String {
        let mut titles = vec![
            "Deviation".to_string(),
            "Late tasks".into(),
            "Growth".into(),
            "Skewness".into(),
            "Jarque-Bera".into(),
            "Normal".into(),
        ];
        titles.extend(TASKS.map(|count| match count {
            1 => "1 task".into(),
            _ => grouped(count as u64),
        }));
        let titles: Vec<_> = titles.iter().map(String::as_str).collect();
        let mut table = Table::new(&titles, 1);
        for row in &self.rows {
            let name = match row.sigma_percent {
                Some(sigma) => format!("{}, {sigma} %", row.shape.name()),
                None => row.shape.name().into(),
            };
            let mut cells = vec![
                name,
                percent(row.late_tasks, row.tasks),
                format!("{:.2}", row.growth_exponent),
                format!("{:.2}", row.normality.skewness),
                format!("{:.1}", row.normality.jarque_bera),
                if row.normality.holds { "yes" } else { "no" }.into(),
            ];
            let over = row.lengths.iter();
            cells.extend(over.map(|it| percent(it.over_buffer, row.processes)));
            table.push(cells);
        }
        let mut text = format!(
            "{} processes each. In the columns with numbers of tasks: processes of so many \
             tasks that are late by more than their capacity buffer, {:.1} % of what is \
             planned.\n\n{}",
            grouped(self.plans),
            self.buffer_permille as f64 / 10.0,
            table.print(format)
        );
        if let Some(of) = &self.measured {
            text.push_str(&format!(
                "\nThe list of {}: mean {:.4}, standard deviation {:.4}, skewness {:.2}, excess \
                 kurtosis {:.2}, Jarque-Bera {:.1}: {}.\n",
                grouped(of.values as u64),
                of.mean,
                of.sigma,
                of.skewness,
                of.excess_kurtosis,
                of.jarque_bera,
                if of.holds { "it can be normal" } else { "it is not normal" }
            ));
        }
        text
    }
}
