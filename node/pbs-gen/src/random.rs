// SPDX-License-Identifier: GPL-2.0
//! Random numbers that are the same on every machine.
//!
//! ChaCha is one everywhere.  What is made of its bits is written here, and
//! the logarithm comes from `libm`, so that neither the release of a crate nor
//! the C library of a machine changes what a seed means.

use chacha20::rand_core::{Rng, SeedableRng};
use chacha20::ChaCha12Rng;

use crate::Span;

/// Purpose of random numbers.  Each purpose has a stream of its own; this way one can change while
/// the others remain.
#[derive(Clone, Copy, Debug)]
pub enum Stream {
    /// Processes and the planned lengths of tasks.
    Processes,
    /// The order of slots, and idle ones.
    Slots,
    /// Deviations of real lengths.
    Deviation,
    /// Processes and tasks that the scenario affects.
    Scenario,
    /// Dependencies between tasks.
    Edges,
    /// Peaks of memory.
    Memory,
    /// Jobs of a cluster.
    Trace,
    /// Deadlines of those.
    TraceDeadlines,
    /// Lengths of the phases in which an adaptive mesh grows faster or slower.
    MeshPhases,
    /// The noise of its size.
    MeshNoise,
    /// Messages of applications to a resource manager.
    Messages,
    /// Dependencies of a plan that carry a message.
    PlannedMessages,
}

/// A source of random numbers.
#[derive(Debug)]
pub struct Random(ChaCha12Rng);

impl Random {
    /// The source of that purpose: others of the same seed do not change it.
    pub fn new(seed: u64, stream: Stream) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let mut rng = ChaCha12Rng::from_seed(key);
        rng.set_stream(stream as u64);
        Self(rng)
    }

    /// One of `0..end`, each as likely; `end` is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        // What is left of 2^64 beyond a multiple of `end` would favour the
        // small ones.
        let excess = (u64::MAX % end + 1) % end;
        loop {
            let bits = self.0.next_u64();
            if bits <= u64::MAX - excess {
                return bits % end;
            }
        }
    }

    /// A place in a list of so many, which is not empty, each as likely.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// One of the span, each as likely.
    pub(crate) fn within(&mut self, span: Span) -> u64 {
        span.min + self.below(span.max - span.min + 1)
    }

    /// Normally distributed with mean 0 and standard deviation 1: Marsaglia's
    /// polar method.
    pub fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (self.signed(), self.signed());
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * (-2.0 * libm::log(square) / square).sqrt();
            }
        }
    }

    /// Between −1 and 1, in steps of 2^-52.
    fn signed(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}
