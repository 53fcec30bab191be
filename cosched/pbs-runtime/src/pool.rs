// SPDX-License-Identifier: GPL-2.0
//! The worker pool: threads that execute variants, each on the CPUs that it is told.

use std::cell::RefCell;
use std::io;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use crate::cpus;

thread_local! {
    /// The pools whose jobs this thread is within, the outermost first.
    static WITHIN: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// The runtimes whose tasks wait for what a thread does: [`Runtime::run`](crate::Runtime::run)
/// refuses to wait for one of them.
///
/// A thread that runs a graph for a task, which waits for its end, gets that of the task.
#[derive(Clone, Debug)]
pub struct Nesting(Vec<u64>);

impl Nesting {
    /// The runtimes that wait for this thread.
    pub fn of_this_thread() -> Self {
        Self(WITHIN.with_borrow(Vec::clone))
    }

    /// Lets these runtimes wait for this thread.
    pub fn pass_to_this_thread(self) {
        WITHIN.set(self.0);
    }
}

/// Job for a worker.
pub(crate) struct Job {
    /// On these CPUs.
    pub(crate) cpus: Vec<u32>,
    /// Function to run. If it panics, the job ends.
    pub(crate) run: Box<dyn FnOnce() + Send>,
}

/// A job, and the pools that it is within. `None` ends a thread.
type QueuedJob = Option<(Vec<u64>, Job)>;

/// The threads. They end when it is dropped.
#[derive(Debug)]
pub(crate) struct Pool {
    entrance: Entrance,
    threads: Vec<JoinHandle<()>>,
}

/// Place at which jobs are given to a pool.
#[derive(Clone, Debug)]
pub(crate) struct Entrance {
    number: u64,
    jobs: Sender<QueuedJob>,
}

impl Entrance {
    /// Gives a job to one of the threads, as soon as one is idle.
    pub(crate) fn give(&self, job: Job) {
        let mut within = WITHIN.with_borrow(Vec::clone);
        if !within.contains(&self.number) {
            within.push(self.number);
        }
        // Who gives a job waits for its end before the pool goes.
        let _ = self.jobs.send(Some((within, job)));
    }
}

impl Pool {
    pub(crate) fn new(threads: usize) -> io::Result<Self> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let (jobs, receiver) = channel();
        let receiver = Arc::new(Mutex::new(receiver));
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let mut pool =
            Self { entrance: Entrance { number, jobs }, threads: Vec::with_capacity(threads) };
        for number in 0..threads {
            let receiver = receiver.clone();
            let named = Builder::new().name(format!("pbs-worker-{number}"));
            pool.threads.push(named.spawn(move || work(&receiver))?);
        }
        Ok(pool)
    }

    pub(crate) fn entrance(&self) -> &Entrance {
        &self.entrance
    }

    /// Does what counts as a job of the pool in this thread.
    pub(crate) fn within<T>(&self, job: impl FnOnce() -> T) -> T {
        WITHIN.with_borrow_mut(|within| within.push(self.entrance.number));
        let done = job();
        WITHIN.with_borrow_mut(Vec::pop);
        done
    }

    /// Whether this thread does a job of the pool, or of one that such a job waits for.
    pub(crate) fn is_within(&self) -> bool {
        WITHIN.with_borrow(|within| within.contains(&self.entrance.number))
    }
}

fn work(jobs: &Mutex<Receiver<QueuedJob>>) {
    let mut before: Vec<u32> = Vec::new();
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Some((within, job))) = job else {
            return;
        };
        WITHIN.set(within);
        // On other CPUs it is slower, but not wrong.
        if job.cpus != before && cpus::stay_on(&job.cpus).is_ok() {
            before = job.cpus;
        }
        // Who waits for a job notices its panic.
        let _ = catch_unwind(AssertUnwindSafe(job.run));
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for _ in &self.threads {
            // Without a receiver no thread is left.
            let _ = self.entrance.jobs.send(None);
        }
        for thread in self.threads.drain(..) {
            // A worker that panicked was reported by its missing result.
            let _ = thread.join();
        }
    }
}
