// SPDX-License-Identifier: GPL-2.0
//! The worker pool: threads that execute variants, each on the CPUs that it is told.

use std::io;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use pbs_csi::cpus;

/// Something to do.
pub(crate) struct Job {
    /// On these CPUs.
    pub(crate) cpus: Vec<u32>,
    /// What it is. It does not panic.
    pub(crate) run: Box<dyn FnOnce() + Send>,
}

/// The threads. They end when it is dropped.
#[derive(Debug)]
pub(crate) struct Pool {
    jobs: Option<Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    pub(crate) fn new(threads: usize) -> io::Result<Self> {
        let (jobs, receiver) = channel();
        let receiver = Arc::new(Mutex::new(receiver));
        let mut pool = Self {
            jobs: Some(jobs),
            threads: Vec::with_capacity(threads),
        };
        for number in 0..threads {
            let receiver = receiver.clone();
            let named = Builder::new().name(format!("pbs-worker-{number}"));
            pool.threads.push(named.spawn(move || work(&receiver))?);
        }
        Ok(pool)
    }

    /// Has one of the threads do it, when one has nothing else to do.
    pub(crate) fn give(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            // They live as long as we do.
            let _ = jobs.send(job);
        }
    }
}

fn work(jobs: &Mutex<Receiver<Job>>) {
    let mut before: Vec<u32> = Vec::new();
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else {
            return;
        };
        // On other CPUs it is slower, but not wrong.
        if job.cpus != before && cpus::stay_on(&job.cpus).is_ok() {
            before = job.cpus;
        }
        (job.run)();
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
