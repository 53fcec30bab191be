// SPDX-License-Identifier: GPL-2.0
//! Threads that run a graph: who ends a task starts those that waited for it.
//!
//! The state of the pass is under one lock. The thread that runs the graph starts the first tasks,
//! and then waits for the end of the pass. Meanwhile it looks again at devices that other
//! processes have, and notices that the process was stopped. A worker that has executed a task
//! takes the end of the task to the pass, and starts what can start now. It executes one of these
//! tasks itself, so that a chain of tasks needs no other thread; the pool gets the rest.
//!
//! The lock of the pass is taken before those of shared memory and of profiles. A worker has it
//! neither while it executes a task nor while it brings data.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::execute::execute;
use crate::graph::Task;
use crate::memory::Memory;
use crate::pass::Pass;
use crate::pool::{Entrance, Job};
use crate::region::{Region, Transferred};
use crate::report::Report;
use crate::Error;

/// Work for a worker, on these CPUs.
#[derive(Debug)]
pub(crate) enum Work {
    /// Execution of a task.
    Run {
        /// Index in the graph.
        task: usize,
        /// The task.
        of: Arc<Task>,
        /// Index of the variant of the task.
        variant: usize,
        /// Memory of the device, unless that is the CPU.
        memory: Option<Arc<Memory>>,
        /// Regions of the graph.
        regions: Arc<[Region]>,
        /// CPUs.
        cpus: Vec<u32>,
    },
    /// Bringing data of a task that waits to its device.
    Stage {
        /// The task.
        of: Arc<Task>,
        /// Memory of the device.
        memory: Arc<Memory>,
        /// CPUs.
        cpus: Vec<u32>,
    },
}

impl Work {
    fn cpus(&self) -> &[u32] {
        match self {
            Self::Run { cpus, .. } | Self::Stage { cpus, .. } => cpus,
        }
    }
}

/// A graph that is run.
pub(crate) struct Running {
    pass: Mutex<Pass>,
    /// Signal to the thread that runs the graph: the pass is over, or the time at which it looks
    /// at devices again has changed.
    told: Condvar,
    pool: Entrance,
}

impl Running {
    /// Runs a graph to its end: the loop of listing 5.4.
    pub(crate) fn run(pass: Pass, pool: &Entrance) -> Result<Report, Error> {
        let running =
            Arc::new(Self { pass: Mutex::new(pass), told: Condvar::new(), pool: pool.clone() });
        let mut pass = running.lock();
        let (end, left) = loop {
            running.give(pass.traverse());
            // What runs is not stopped (§1.2), and what was begun with is waited for.
            pass = running.wait(pass);
            if let Some(end) = pass.end() {
                break (end, pass.leave());
            }
        };
        drop(pass);
        drop(left);
        end
    }

    fn lock(&self) -> MutexGuard<'_, Pass> {
        self.pass.lock().unwrap_or_else(|poisoned| self.abort(poisoned.into_inner()))
    }

    /// Ends the pass after a panic of a thread that had the lock: what runs is waited for, and
    /// nothing more begins.
    fn abort<'a>(&self, mut pass: MutexGuard<'a, Pass>) -> MutexGuard<'a, Pass> {
        self.pass.clear_poison();
        pass.abort(Error::Graph("a thread of the runtime has panicked".into()));
        pass
    }

    /// Waits until the pass is over.
    fn wait<'a>(self: &'a Arc<Self>, mut pass: MutexGuard<'a, Pass>) -> MutexGuard<'a, Pass> {
        while !pass.is_over() {
            let left = pass.again().map(|again| again.saturating_duration_since(Instant::now()));
            let slice = pass.slice().into_iter().chain(left).min();
            let aborted = |poisoned: MutexGuard<'a, Pass>| self.abort(poisoned);
            pass = match slice {
                None => self.told.wait(pass).unwrap_or_else(|of| aborted(of.into_inner())),
                Some(slice) => {
                    let waited = self.told.wait_timeout(pass, slice);
                    waited.map_or_else(|of| aborted(of.into_inner().0), |(pass, _)| pass)
                }
            };
            pass.woke(slice.unwrap_or(Duration::ZERO));
            if pass.again().is_some_and(|again| again <= Instant::now()) {
                self.give(pass.traverse());
            }
        }
        pass
    }

    /// Gives work to the pool.
    fn give(self: &Arc<Self>, work: Vec<Work>) {
        for work in work {
            let running = self.clone();
            let cpus = work.cpus().to_vec();
            self.pool.give(Job { cpus, run: Box::new(move || running.work(work)) });
        }
    }

    /// Does a piece of work, and what can start after it on the same CPUs.
    fn work(self: &Arc<Self>, mut work: Work) {
        // The thread that runs the graph learns of a panic by the lock.
        let _told = Told(&self.told);
        loop {
            let (mut pass, cpus) = match work {
                Work::Run { task, of, variant, memory, regions, cpus } => {
                    let ran = execute(&of, variant, memory.as_ref(), &regions);
                    let mut pass = self.lock();
                    pass.ended(task, ran);
                    (pass, cpus)
                }
                Work::Stage { of, memory, cpus } => {
                    let transfers = stage(&of, &memory);
                    let mut pass = self.lock();
                    pass.staged(&transfers);
                    (pass, cpus)
                }
            };
            let mut started = pass.traverse();
            let is_to_tell = pass.is_over() || pass.again().is_some();
            drop(pass);
            if is_to_tell {
                self.told.notify_one();
            }
            // A device must not wait while this thread brings data to another one.
            let is_run = |next: &Work| matches!(next, Work::Run { .. });
            let own = started.iter().position(|next| is_run(next) && next.cpus() == cpus);
            let next = own.map(|own| started.swap_remove(own));
            self.give(started);
            match next {
                Some(next) => work = next,
                None => return,
            }
        }
    }
}

/// Wakes who waits, also after a panic.
struct Told<'a>(&'a Condvar);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.notify_one();
        }
    }
}

/// Brings data of a task to a device.
fn stage(task: &Task, memory: &Arc<Memory>) -> Vec<Transferred> {
    let mut transfers = Vec::new();
    let bring = || {
        for (region, access) in &task.regions {
            // What has no room now is brought when the task starts.
            let here = region.to_memory(memory, access.reads(), &mut transfers);
            if !matches!(here, Ok(Some(_))) {
                break;
            }
        }
    };
    // A device that panics does so again when the task starts, which tells it.
    let _ = catch_unwind(AssertUnwindSafe(bring));
    transfers
}
