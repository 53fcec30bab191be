// SPDX-License-Identifier: GPL-2.0
//! Hogs side by side, each pinned to its CPU.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use pbs_uapi::clock::thread_cpu_ns;

use crate::pin::pin;
use crate::Hog;

/// A hog, where it runs, and until when.
#[derive(Debug)]
pub struct Run<'a> {
    /// Hog that runs.
    pub hog: &'a mut Hog,
    /// CPU on which it runs.
    pub cpu: u32,
    /// After so many pieces it is done; `None`: it works until all others are
    /// or the time is over.
    pub pieces: Option<u64>,
}

/// Work of a hog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Did {
    /// Number of completed pieces.
    pub pieces: u64,
    /// In how much time of the clock.
    pub took_ns: u64,
    /// In how much time of a CPU: less, if others had its CPU too.
    pub ran_ns: u64,
}

impl Did {
    /// Pieces in a second in which it had the CPU.
    pub fn rate_per_s(&self) -> f64 {
        self.pieces as f64 * 1e9 / self.ran_ns.max(1) as f64
    }

    /// Returns the share of the time for which the hog had the CPU.
    pub fn share(&self) -> f64 {
        self.ran_ns as f64 / self.took_ns.max(1) as f64
    }
}

/// Lets them work at once. They begin together, and end when all that have a
/// number of pieces are done, or after `most`.
pub fn together(runs: Vec<Run<'_>>, most: Duration) -> io::Result<Vec<Did>> {
    let start = Barrier::new(runs.len());
    let stop = AtomicBool::new(false);
    let finite = runs.iter().filter(|run| run.pieces.is_some()).count();
    // Those that have not done their pieces; without any the time decides.
    let left = AtomicUsize::new(if finite == 0 { usize::MAX } else { finite });
    let (start, stop, left) = (&start, &stop, &left);
    thread::scope(|scope| {
        let threads: Vec<_> = runs
            .into_iter()
            .map(|run| {
                scope.spawn(move || {
                    let pinned = pin(run.cpu);
                    start.wait();
                    pinned?;
                    Ok(work(run.hog, run.pieces, most, stop, left))
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                let died = |_| Err(io::Error::other("a hog has died"));
                thread.join().unwrap_or_else(died)
            })
            .collect()
    })
}

fn work(
    hog: &mut Hog,
    pieces: Option<u64>,
    most: Duration,
    stop: &AtomicBool,
    left: &AtomicUsize,
) -> Did {
    let (began, ran_ns) = (Instant::now(), thread_cpu_ns());
    let mut did = Did::default();
    let wanted = pieces.unwrap_or(u64::MAX);
    while did.pieces < wanted && !stop.load(Ordering::Relaxed) {
        hog.work();
        did.pieces += 1;
        if began.elapsed() >= most {
            break;
        }
    }
    did.took_ns = began.elapsed().as_nanos() as u64;
    did.ran_ns = thread_cpu_ns() - ran_ns;
    let is_last = pieces.is_some() && left.fetch_sub(1, Ordering::Relaxed) == 1;
    if pieces.is_none() || is_last {
        stop.store(true, Ordering::Relaxed);
    }
    did
}
