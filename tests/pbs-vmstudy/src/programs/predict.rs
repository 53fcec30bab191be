// SPDX-License-Identifier: GPL-2.0
//! Predictions of programs by the history, compared with those of a line through the sizes of their
//! input.
//!
//! *Left out*: each run is predicted from all others of the program: both methods know the runs
//! before and after. *Growing*: each is predicted from those on smaller input alone, as it happens
//! where the input of a job grows from run to run.

use std::collections::BTreeMap;
use std::io::Read;

use pbs_random::estimate::{estimate, Config};
use pbs_vmtest::harness::{Context, Verdict};
use serde::Serialize;

use super::Run;

const SCHEMA: &str = "pbs.programs/1";

/// Errors of predictions, in percent of the retired instructions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Errors {
    median_percent: f64,
    greatest_percent: f64,
}

/// The two ways to predict.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Compared {
    history: Errors,
    linear: Errors,
    linear_is_better: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Program {
    program: String,
    /// Input in bytes and retired instructions.
    runs: Vec<(u64, u64)>,
    insns_per_byte: f64,
    left_out: Compared,
    growing: Compared,
}

/// Runs of a program on inputs of one size: the same one, or several.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Repeated {
    program: String,
    input_bytes: u64,
    retired_insns: Vec<u64>,
    /// Deviation of each run from their mean, in millionths.
    deviations_ppm: Vec<i64>,
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    programs: Vec<Program>,
    /// Comparison over all programs together.
    left_out: Compared,
    growing: Compared,
    linear_better_left_out: usize,
    linear_better_growing: usize,
    /// Again and again on the same input.
    repeated: Vec<Repeated>,
    /// Once on each of several inputs of the same size.
    varied: Vec<Repeated>,
    /// Deviations of runs on the same input, of all programs.
    same_input_deviations_ppm: Vec<i64>,
    /// Deviations of runs on inputs of the same size.
    same_size_deviations_ppm: Vec<i64>,
    /// Deviations of what was retired from what the history predicts where input grows, of
    /// all programs, in thousandths of the prediction.
    growing_input_deviations_permille: Vec<i64>,
}

/// Prediction of the history after these runs, the oldest first.
fn by_history(runs: &[(u64, u64)]) -> Option<f64> {
    let retired: Vec<u64> = runs.iter().map(|run| run.1).collect();
    estimate(&Config::DEFAULT, None, &retired).map(|estimate| estimate.centre as f64)
}

/// Least squares of the proportion by which runs are off: the error that counts.
fn by_line(runs: &[(u64, u64)], input_bytes: u64) -> Option<f64> {
    let (mut aa, mut ab, mut bb, mut ay, mut by) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for &(bytes, insns) in runs {
        // insns / insns = a * 1 / insns + b * bytes / insns, nearly
        let (one, size) = (1.0 / insns as f64, bytes as f64 / insns as f64);
        aa += one * one;
        ab += one * size;
        bb += size * size;
        ay += one;
        by += size;
    }
    let determinant = aa * bb - ab * ab;
    if runs.len() < 2 || determinant <= f64::EPSILON * aa * bb {
        return None;
    }
    let base = (ay * bb - by * ab) / determinant;
    let per_byte = (by * aa - ay * ab) / determinant;
    Some(base + per_byte * input_bytes as f64)
}

fn errors(mut off_percent: Vec<f64>) -> Errors {
    off_percent.sort_by(f64::total_cmp);
    let middle = off_percent.len() / 2;
    let median_percent = match off_percent.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => off_percent[middle],
        _ => f64::midpoint(off_percent[middle - 1], off_percent[middle]),
    };
    Errors { median_percent, greatest_percent: off_percent.last().copied().unwrap_or(0.0) }
}

/// Predictions by the history and by the line, and the retired instructions.
type Prediction = (f64, f64, f64);

fn left_out(runs: &[(u64, u64)]) -> Vec<Prediction> {
    let predict = |index: usize| {
        let (bytes, insns) = runs[index];
        let others = [&runs[..index], &runs[index + 1..]].concat();
        Some((by_history(&others)?, by_line(&others, bytes)?, insns as f64))
    };
    (0..runs.len()).filter_map(predict).collect()
}

fn growing(runs: &[(u64, u64)]) -> Vec<Prediction> {
    let predict = |index: usize| {
        let (bytes, insns) = runs[index];
        let before = &runs[..index];
        Some((by_history(before)?, by_line(before, bytes)?, insns as f64))
    };
    (0..runs.len()).filter_map(predict).collect()
}

fn compare(predictions: &[Prediction]) -> Compared {
    let off = |of: fn(&Prediction) -> f64| {
        let off = predictions.iter().map(|it| 100.0 * (of(it) - it.2).abs() / it.2);
        errors(off.collect())
    };
    let (history, linear) = (off(|it| it.0), off(|it| it.1));
    Compared { history, linear, linear_is_better: linear.median_percent < history.median_percent }
}

fn repeated(program: &str, input_bytes: u64, retired_insns: Vec<u64>) -> Repeated {
    let mean = retired_insns.iter().sum::<u64>() as f64 / retired_insns.len() as f64;
    let off = |&insns: &u64| ((insns as f64 - mean) * 1e6 / mean).round() as i64;
    Repeated {
        program: program.into(),
        input_bytes,
        deviations_ppm: retired_insns.iter().map(off).collect(),
        retired_insns,
    }
}

fn deviations(runs: &[Repeated]) -> Vec<i64> {
    runs.iter().flat_map(|it| it.deviations_ppm.clone()).collect()
}

fn document(runs: &[Run]) -> Result<Document, String> {
    let mut by_program: BTreeMap<&str, BTreeMap<u64, Vec<&Run>>> = BTreeMap::new();
    for run in runs {
        let sizes = by_program.entry(&run.program).or_default();
        sizes.entry(run.input_bytes).or_default().push(run);
    }
    if by_program.is_empty() {
        return Err("nothing was measured".into());
    }
    let (mut programs, mut again, mut varied) = (Vec::new(), Vec::new(), Vec::new());
    let (mut all_left_out, mut all_growing) = (Vec::new(), Vec::new());
    for (program, sizes) in by_program {
        let first: Vec<(u64, u64)> =
            sizes.iter().map(|(&bytes, runs)| (bytes, runs[0].retired_insns)).collect();
        let (left_out, growing) = (left_out(&first), growing(&first));
        let (least, most) = (first[0], first[first.len() - 1]);
        programs.push(Program {
            program: program.into(),
            insns_per_byte: (most.1 as f64 - least.1 as f64)
                / most.0.abs_diff(least.0).max(1) as f64,
            left_out: compare(&left_out),
            growing: compare(&growing),
            runs: first,
        });
        all_left_out.extend(left_out);
        all_growing.extend(growing);
        for (bytes, runs) in sizes.into_iter().filter(|(_, runs)| runs.len() > 1) {
            let of = |wanted: fn(&Run) -> bool| {
                let runs = runs.iter().filter(|run| wanted(run));
                repeated(program, bytes, runs.map(|run| run.retired_insns).collect())
            };
            again.push(of(|run| run.part == 0));
            varied.push(of(|run| run.repeat == 0));
        }
    }
    let deviation = |it: &Prediction| ((it.2 - it.0) * 1e3 / it.0).round() as i64;
    Ok(Document {
        schema: SCHEMA,
        left_out: compare(&all_left_out),
        growing: compare(&all_growing),
        linear_better_left_out: programs.iter().filter(|it| it.left_out.linear_is_better).count(),
        linear_better_growing: programs.iter().filter(|it| it.growing.linear_is_better).count(),
        programs,
        same_input_deviations_ppm: deviations(&again),
        same_size_deviations_ppm: deviations(&varied),
        repeated: again,
        varied,
        growing_input_deviations_permille: all_growing.iter().map(deviation).collect(),
    })
}

/// `pbs-vmstudy programs-report`: the document, of the runs on standard input.
pub fn report(mut words: impl Iterator<Item = String>) -> Verdict {
    if let Some(word) = words.next() {
        return Err(format!("unknown option {word}"));
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("standard input")?;
    let lines = text.lines().filter(|line| line.starts_with('{'));
    let runs: Vec<Run> = lines
        .map(|line| serde_json::from_str(line).map_err(|error| format!("{line}: {error}")))
        .collect::<Result<_, _>>()?;
    let document = document(&runs)?;
    println!("{}", serde_json::to_string_pretty(&document).map_err(|e| e.to_string())?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(of: impl Fn(u64) -> u64) -> Vec<Run> {
        let sizes = [10, 20, 40, 80, 160];
        let run = |input_bytes, part, repeat| Run {
            program: "it".into(),
            input_bytes,
            part,
            repeat,
            retired_insns: of(input_bytes) + u64::from(part),
        };
        let mut runs: Vec<_> = sizes.into_iter().map(|bytes| run(bytes, 0, 0)).collect();
        runs.push(run(40, 0, 1));
        runs.push(run(40, 2_000_000, 0));
        runs
    }

    #[test]
    fn a_line_predicts_what_grows_in_proportion() {
        let document = document(&runs(|bytes| 5_000 + 300 * bytes)).unwrap();
        let program = &document.programs[0];
        assert!(program.left_out.linear.greatest_percent < 0.001, "{program:?}");
        assert!(program.growing.history.median_percent > 30.0, "{program:?}");
        assert!(program.growing.linear_is_better);
        assert_eq!(program.insns_per_byte, 300.0);
        assert_eq!(document.linear_better_growing, 1);
        // Of five runs the first two have too few before them.
        assert_eq!(document.growing_input_deviations_permille.len(), 3);
    }

    #[test]
    fn history_is_as_good_where_nothing_grows() {
        let document = document(&runs(|_| 1_000_000)).unwrap();
        assert!(document.left_out.history.greatest_percent < 0.001);
        assert!(!document.left_out.linear_is_better);
    }

    #[test]
    fn repeats_deviate_from_their_mean() {
        let document = document(&runs(|bytes| 1_000_000 * bytes)).unwrap();
        let [again] = &document.repeated[..] else {
            panic!("{:?}", document.repeated);
        };
        assert_eq!((again.input_bytes, again.retired_insns.len()), (40, 2));
        assert_eq!(again.deviations_ppm, [0, 0]);
        // 40 and 42 million.
        assert_eq!(document.same_size_deviations_ppm, [-24_390, 24_390]);
        assert_eq!(repeated("it", 1, vec![99, 101]).deviations_ppm, [-10_000, 10_000]);
    }

    #[test]
    fn the_middle_of_errors() {
        let of = |values: &[f64]| errors(values.to_vec()).median_percent;
        assert_eq!(of(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(of(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(errors(vec![1.0, 9.0]).greatest_percent, 9.0);
    }
}
