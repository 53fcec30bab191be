// SPDX-License-Identifier: GPL-2.0
//! Measurements beside the runs of jobs: the times of variants of tasks, of transfers and of
//! decisions, and the tasks that ran beside each other.
//!
//! The first three are the history of Rados 2019 (5.6.4: profiled runtimes and transfers; 4.1: the
//! cost of deciding); the last is ours. They belong to no run, since tasks that are co-scheduled
//! without a plan have none. They belong to no user either: the time of a program and its effect on
//! others don't depend on the user.

use pbs_interference::{Beside, Sample};
use pbs_random::estimate::{estimate, Config};
use serde::Serialize;

use crate::digest::Digest;
use crate::fit::polynomial;
use crate::Fingerprint;

/// One implementation of a task (Rados 2019, 2.6.2), with all by which runtimes are told
/// apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct VariantKey {
    /// The name of the job, or of the application.
    pub job: String,
    /// The name of the task, or its number if it has none.
    pub task: String,
    /// Fingerprint of the program: a variant that was changed starts again.
    pub fingerprint: Fingerprint,
    /// The programming model, as the job says it.
    pub model: String,
    /// Threads on CPUs; 0 where it runs on a device.
    pub threads: u32,
    /// The kind of device; empty: CPUs.
    pub device: String,
}

/// A variant has run to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VariantRun {
    /// Variant that ran.
    pub variant: VariantKey,
    /// Time that it took.
    pub ran_ns: u64,
    /// Instructions that it retired; 0: they were not counted.
    pub insns: u64,
}

/// Predicted time of the next run of a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TimePrediction {
    /// To plan with.
    pub ran_ns: u64,
    /// One run of twenty is shorter.
    pub low_ns: u64,
    /// One run of twenty is longer.
    pub high_ns: u64,
    /// Instructions that it will retire; `None`: no run has counted them.
    pub insns: Option<u64>,
    /// Runs from which that is.
    pub runs: usize,
}

impl TimePrediction {
    /// From the runs of one variant, the oldest first, by the estimate of lengths;
    /// `None`: there is none.
    pub fn of(config: &Config, runs: &[VariantRun]) -> Option<Self> {
        let times: Vec<_> = runs.iter().map(|run| run.ran_ns).collect();
        let time = estimate(config, None, &times)?;
        let counted = runs.iter().map(|run| run.insns).filter(|&insns| insns > 0);
        let counted: Vec<_> = counted.collect();
        Some(Self {
            ran_ns: time.centre,
            low_ns: time.low,
            high_ns: time.high,
            insns: estimate(config, None, &counted).map(|of| of.centre),
            runs: runs.len(),
        })
    }
}

/// Data came from one memory to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Transfer {
    /// The name of the memory that had it.
    pub from: String,
    /// The name of the memory that got it.
    pub to: String,
    /// Number of bytes.
    pub bytes: u64,
    /// Time that the transfer took.
    pub took_ns: u64,
}

/// Cost of transfers from one memory to another: a constant, and a part for each byte.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TransferCost {
    /// Time of an empty transfer.
    pub latency_ns: f64,
    /// For each byte more.
    pub ns_per_byte: f64,
    /// Transfers from which that is.
    pub samples: usize,
}

impl TransferCost {
    /// From transfers between the same two; `None`: there is none.
    pub fn of(transfers: &[Transfer]) -> Option<Self> {
        let points = transfers.iter().map(|it| (it.bytes, it.took_ns));
        let [latency_ns, ns_per_byte] = polynomial(&points.collect::<Vec<_>>())?;
        Some(Self { latency_ns, ns_per_byte, samples: transfers.len() })
    }

    /// Returns the time for `bytes` bytes.
    pub fn ns(&self, bytes: u64) -> u64 {
        (self.latency_ns + self.ns_per_byte * bytes as f64) as u64
    }
}

/// A scheduler has decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// Name of the scheduler.
    pub scheduler: String,
    /// For how many tasks: n.
    pub tasks: u64,
    /// Time that the decision took.
    pub took_ns: u64,
}

/// The cost of deciding, C(n) = a·n² + b·n + c (Rados 2019, 4.1, where it is "found
/// experimentally"; the form is our reading). No coefficient is negative.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DecisionCost {
    /// a
    pub square_ns: f64,
    /// b
    pub linear_ns: f64,
    /// c
    pub constant_ns: f64,
    /// Decisions from which that is.
    pub samples: usize,
}

impl DecisionCost {
    /// From decisions of one scheduler; `None`: there is none.
    pub fn of(decisions: &[Decision]) -> Option<Self> {
        let points = decisions.iter().map(|it| (it.tasks, it.took_ns));
        let [constant_ns, linear_ns, square_ns] = polynomial(&points.collect::<Vec<_>>())?;
        Some(Self { square_ns, linear_ns, constant_ns, samples: decisions.len() })
    }

    /// C(n).
    pub fn ns(&self, tasks: u64) -> u64 {
        let n = tasks as f64;
        (self.square_ns * n * n + self.linear_ns * n + self.constant_ns) as u64
    }
}

/// One run of one task, with who ran beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Corun {
    /// The run.
    pub sample: Sample,
    /// Whether its instructions were counted by the clock; then they only repeat its time.
    pub by_clock: bool,
}

impl Corun {
    /// Returns the memory that this takes.
    pub fn held_bytes(&self) -> usize {
        let of = |beside: &Beside| size_of::<Beside>() + size_of_val(&beside.neighbours[..]);
        size_of::<Self>() + self.sample.beside.iter().map(of).sum::<usize>()
    }
}

/// The power of two of a size. Of each so many are kept, so that many small ones do not
/// push out what is known of large ones.
pub(crate) fn magnitude(size: u64) -> u32 {
    u64::BITS - size.leading_zeros()
}

impl VariantRun {
    /// Returns the digest of the row with that number.
    pub(crate) fn digest(&self, number: u64) -> u64 {
        let mut digest = Digest::new();
        let key = &self.variant;
        for text in [&key.job, &key.task, &key.model, &key.device] {
            digest.text(text.as_bytes());
        }
        let figures = [key.fingerprint.0, key.threads.into()];
        for figure in [number, self.ran_ns, self.insns].iter().chain(&figures) {
            digest.number(*figure);
        }
        digest.value()
    }
}

impl Transfer {
    /// Returns the digest of the row with that number.
    pub(crate) fn digest(&self, number: u64) -> u64 {
        let mut digest = Digest::new();
        digest.text(self.from.as_bytes());
        digest.text(self.to.as_bytes());
        for figure in [number, self.bytes, self.took_ns] {
            digest.number(figure);
        }
        digest.value()
    }
}

impl Decision {
    /// Returns the digest of the row with that number.
    pub(crate) fn digest(&self, number: u64) -> u64 {
        let mut digest = Digest::new();
        digest.text(self.scheduler.as_bytes());
        for figure in [number, self.tasks, self.took_ns] {
            digest.number(figure);
        }
        digest.value()
    }
}

impl Corun {
    /// Returns the digest of the row with that number; `beside` is in its packed form.
    pub(crate) fn digest(&self, number: u64, beside: &[u8]) -> u64 {
        let mut digest = Digest::new();
        let Sample { victim, insns, ran_ns, .. } = &self.sample;
        let key = [victim.fingerprint, victim.task.into(), victim.variant.into()];
        let figures = [u64::from(self.by_clock), number, *insns, *ran_ns];
        for figure in key.iter().chain(&figures) {
            digest.number(*figure);
        }
        digest.text(beside);
        digest.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_deciding_is_the_measured_one() {
        let decided = |tasks: u64| Decision {
            scheduler: "greedy".into(),
            tasks,
            took_ns: 3 * tasks * tasks + 40 * tasks + 900,
        };
        let cost = DecisionCost::of(&[1, 7, 30, 100, 400].map(decided)).unwrap();
        for tasks in [0, 2, 50, 1638] {
            let error = cost.ns(tasks).abs_diff(decided(tasks).took_ns);
            assert!(error <= 1, "{tasks}: {cost:?}");
        }
        assert_eq!(DecisionCost::of(&[]), None);
        // Of one size it is known what that takes.
        let same = DecisionCost::of(&[decided(10), decided(10)]).unwrap();
        assert!(same.ns(10).abs_diff(decided(10).took_ns) <= 1);
    }

    #[test]
    fn transfers_take_a_latency_and_a_rate() {
        let transfer = |bytes: u64| Transfer {
            from: "host".into(),
            to: "gpu".into(),
            bytes,
            took_ns: 5000 + bytes / 8,
        };
        let cost = TransferCost::of(&[64, 1 << 16, 1 << 24, 1 << 26].map(transfer)).unwrap();
        for bytes in [0, 4096, 1 << 20, 1 << 30] {
            let expected = transfer(bytes).took_ns;
            assert!(cost.ns(bytes).abs_diff(expected) <= 1 + expected / 1_000_000);
        }
        assert_eq!(TransferCost::of(&[]), None);
    }

    #[test]
    fn runtimes_are_estimated_as_lengths_are() {
        let run = |ran_ns, insns| VariantRun { variant: VariantKey::default(), ran_ns, insns };
        let config = Config::DEFAULT;
        let runs = [run(1000, 0), run(1100, 500), run(900, 500)];
        let told = TimePrediction::of(&config, &runs).unwrap();
        let same = estimate(&config, None, &[1000, 1100, 900]).unwrap();
        let of = (told.ran_ns, told.low_ns, told.high_ns);
        assert_eq!(of, (same.centre, same.low, same.high));
        assert_eq!((told.insns, told.runs), (Some(500), 3));
        assert_eq!(TimePrediction::of(&config, &[]), None);
        let uncounted = TimePrediction::of(&config, &runs[..1]).unwrap();
        assert_eq!(uncounted.insns, None);
    }
}
