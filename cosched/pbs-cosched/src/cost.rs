// SPDX-License-Identifier: GPL-2.0
//! Cost of co-scheduling: "derived experimentally" (§4.1).

/// The time a scheduler takes for n tasks: a·n² + b·n + c, as in tables 6.1 and 6.2.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Nanoseconds per task squared.
    pub a: f64,
    /// Nanoseconds per task.
    pub b: f64,
    /// Nanoseconds.
    pub c: f64,
}

impl Cost {
    /// A time that does not depend on the number of tasks.
    pub const fn constant(ns: f64) -> Self {
        Self { a: 0.0, b: 0.0, c: ns }
    }

    /// The time for so many tasks, never negative.
    pub fn ns(&self, tasks: usize) -> u64 {
        let tasks = tasks as f64;
        // Out of range saturates, what is no number becomes 0.
        ((self.a * tasks + self.b) * tasks + self.c) as u64
    }

    /// The least squares fit of own runs: numbers of tasks with times in ns.  With fewer than
    /// three different numbers it is a line or a constant; nothing without any run.
    pub fn fit(runs: &[(usize, u64)]) -> Option<Self> {
        let mut numbers: Vec<usize> = runs.iter().map(|&(tasks, _)| tasks).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let largest = *numbers.last()?;
        // Numbers of tasks are scaled to at most 1, so that their fourth powers stay exact
        // enough.
        let scale = largest.max(1) as f64;
        let terms = numbers.len().min(3);
        let mut sums = [[0.0; 4]; 3];
        for &(tasks, ns) in runs {
            let x = tasks as f64 / scale;
            let powers = [1.0, x, x * x];
            for (row, power) in sums.iter_mut().zip(powers).take(terms) {
                for (sum, other) in row.iter_mut().zip(powers).take(terms) {
                    *sum += power * other;
                }
                row[3] += power * ns as f64;
            }
        }
        let [c, b, a] = solve(sums, terms);
        Some(Self { a: a / (scale * scale), b: b / scale, c })
    }
}

/// Solves the first `terms` equations by elimination; the right side is the last column.
fn solve(mut rows: [[f64; 4]; 3], terms: usize) -> [f64; 3] {
    for column in 0..terms {
        let best = (column..terms)
            .max_by(|&one, &other| rows[one][column].abs().total_cmp(&rows[other][column].abs()));
        rows.swap(column, best.unwrap_or(column));
        let pivot = rows[column];
        for (at, row) in rows.iter_mut().enumerate().take(terms) {
            if at != column {
                let factor = row[column] / pivot[column];
                for (to, from) in row.iter_mut().zip(pivot) {
                    *to -= factor * from;
                }
            }
        }
    }
    let mut solution = [0.0; 3];
    for (at, value) in solution.iter_mut().enumerate().take(terms) {
        *value = rows[at][3] / rows[at][at];
    }
    solution
}
