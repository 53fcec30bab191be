// SPDX-License-Identifier: GPL-2.0
//! Deviations of tasks from their plan (Leppert 2021, figure 9).

use serde::Serialize;

use crate::Report;

/// Columns at most.
const MOST_BINS: usize = 60;
/// Robust sigmas on either side of the median that the columns cover.
const REACH: f64 = 4.0;

/// The relative deviations of all tasks that ended, sorted into columns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Histogram {
    /// Number of tasks that ended.
    pub tasks: usize,
    /// Mean of `(retired − planned) / planned`, in percent.
    pub mean_percent: f64,
    /// Standard deviation, which is that of a normal distribution fitted to the values.
    pub sigma_percent: f64,
    /// Half of the tasks deviate by less.
    pub median_percent: f64,
    /// Left edge of the first column.
    pub least_percent: f64,
    /// Width of a column.
    pub width_percent: f64,
    /// Tasks in each column.
    pub counts: Vec<usize>,
    /// Tasks below the first column.
    pub below: usize,
    /// Tasks above the last column.
    pub above: usize,
}

impl Histogram {
    /// `None` if no task ended.
    pub fn new(report: &Report) -> Option<Self> {
        let tasks = report.tasks.iter();
        let ended = tasks.filter(|task| task.ended && task.planned_insns > 0);
        let deviations = ended.map(|task| {
            let planned = task.planned_insns as f64;
            (task.retired_insns as f64 - planned) / planned * 100.0
        });
        Self::of(deviations.collect())
    }

    fn of(mut deviations: Vec<f64>) -> Option<Self> {
        if deviations.is_empty() {
            return None;
        }
        deviations.sort_by(f64::total_cmp);
        let count = deviations.len() as f64;
        let mean = deviations.iter().sum::<f64>() / count;
        let squares = deviations.iter().map(|value| (value - mean).powi(2));
        let sigma = (squares.sum::<f64>() / count).sqrt();
        let median = middle(&deviations);
        let mut distances: Vec<_> = deviations.iter().map(|v| (v - median).abs()).collect();
        distances.sort_by(f64::total_cmp);
        // Of a normal distribution this is sigma, whatever a few rogues do.
        let robust = middle(&distances) * 1.4826;
        let reach = REACH * if robust > 0.0 { robust } else { sigma };
        let first = deviations[0].max(median - reach);
        let last = deviations[deviations.len() - 1].min(median + reach);
        let bins = (count.sqrt().ceil() as usize).clamp(8, MOST_BINS);
        // All alike: one percent around it.
        let (least, width) = if last - first > 1e-9 {
            (first, (last - first) / bins as f64)
        } else {
            (median - 0.5, 1.0 / bins as f64)
        };
        let mut histogram = Self {
            tasks: deviations.len(),
            mean_percent: mean,
            sigma_percent: sigma,
            median_percent: median,
            least_percent: least,
            width_percent: width,
            counts: vec![0; bins],
            below: 0,
            above: 0,
        };
        let end = least + width * bins as f64;
        for value in deviations {
            if value < least {
                histogram.below += 1;
            } else if value > end + 1e-9 {
                histogram.above += 1;
            } else {
                // The greatest belongs into the last one.
                let bin = ((value - least) / width) as usize;
                histogram.counts[bin.min(bins - 1)] += 1;
            }
        }
        Some(histogram)
    }

    /// Returns the right edge of the last column.
    pub fn most_percent(&self) -> f64 {
        self.least_percent + self.width_percent * self.counts.len() as f64
    }

    /// Returns the number of tasks that the fitted normal distribution has in a column at
    /// `percent`; 0 if all deviations are the same.
    pub fn fitted(&self, percent: f64) -> f64 {
        if self.sigma_percent <= 0.0 {
            return 0.0;
        }
        let distance = (percent - self.mean_percent) / self.sigma_percent;
        let density = (-distance * distance / 2.0).exp()
            / (self.sigma_percent * (2.0 * std::f64::consts::PI).sqrt());
        density * self.width_percent * self.tasks as f64
    }
}

/// Returns the median of sorted values.
fn middle(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[half]
    } else {
        (sorted[half - 1] + sorted[half]) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_sigma_and_columns_are_those_of_the_values() {
        let histogram = Histogram::of(vec![-10.0, 10.0, -10.0, 10.0]).unwrap();
        assert_eq!((histogram.mean_percent, histogram.sigma_percent), (0.0, 10.0));
        assert_eq!(histogram.median_percent, 0.0);
        assert_eq!(histogram.counts, [2, 0, 0, 0, 0, 0, 0, 2]);
        assert_eq!((histogram.least_percent, histogram.most_percent()), (-10.0, 10.0));
        // The height of a normal distribution at its mean: 0.3989 / sigma.
        let at_mean = histogram.fitted(0.0);
        assert!((at_mean - 0.39894 / 10.0 * 2.5 * 4.0).abs() < 1e-4, "{at_mean}");
    }

    #[test]
    fn a_rogue_task_does_not_flatten_the_others() {
        let mut values: Vec<_> = (-50..=50).map(|value| f64::from(value) / 10.0).collect();
        values.push(300.0);
        let histogram = Histogram::of(values).unwrap();
        assert_eq!((histogram.below, histogram.above), (0, 1));
        assert_eq!(histogram.counts.iter().sum::<usize>(), 101);
        assert!(histogram.most_percent() < 20.0);
    }

    #[test]
    fn equal_values_have_a_column() {
        let histogram = Histogram::of(vec![5.0; 3]).unwrap();
        assert_eq!(histogram.counts.iter().sum::<usize>(), 3);
        assert_eq!(histogram.fitted(5.0), 0.0);
        assert!(Histogram::of(Vec::new()).is_none());
    }
}
