// SPDX-License-Identifier: GPL-2.0
//! The figures of Klein and Pérez (2011) for which applications and their manager have to run,
//! and whether their claims hold.
//!
//! One cluster of 1400·φ nodes; an adaptive mesh (5.1.1) connects first, then one or two
//! parameter sweeps (5.1.2). The report gives neither how often it has repeated that nor when
//! a run ends: here it is 50 meshes, and a run ends with the mesh. Nothing here prints.

mod evaluation;
mod evolving;
mod figure10;
mod figure11;
mod figure9;

pub use evaluation::{Evaluation, Outcome};
pub use evolving::{evolving, Evolving, Options, FIGURES};
pub use figure10::{figure10, Figure10, IntervalRow};
pub use figure11::{figure11, Figure11, FillingRow};
pub use figure9::{figure9, FactorRow, Figure9};

use std::sync::atomic::{AtomicUsize, Ordering};

use pbs_rms_apps::study::{Sample, TARGET};
use pbs_rms_apps::{Allocation, SpeedUp, Updates, MOST_MIB, SECOND_NS};

/// Times from the announcement to the update, in seconds; the report's own can't be read.
const INTERVALS_S: [u64; 15] =
    [0, 50, 100, 150, 200, 250, 300, 350, 400, 450, 500, 550, 600, 650, 700];

/// Updates that long before; at once for 0.
fn updates_before(interval_s: u64) -> Updates {
    match interval_s {
        0 => Updates::Spontaneous,
        _ => Updates::Announced { interval_ns: interval_s * SECOND_NS },
    }
}

/// The steps of all meshes of a sample, at the report's target efficiency.
fn meshes(sample: Sample) -> Vec<Allocation> {
    let sets = sample.working_sets();
    let of = |set| Allocation::new(set, MOST_MIB, TARGET, SpeedUp::default());
    sets.iter().map(of).collect()
}

/// Calls `of` for each element, on all processors. The results are in the order of the elements.
fn for_all<T: Sync, R: Send>(all: &[T], of: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(one) = all.get(place) else {
                return done;
            };
            done.push((place, of(one)));
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().flat_map(join).collect()
    });
    done.sort_by_key(|done| done.0);
    done.into_iter().map(|done| done.1).collect()
}
