// SPDX-License-Identifier: GPL-2.0
//! A job of a trace.

/// What a trace says of a job. Times are seconds from the begin of the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceJob {
    /// Its number in the trace.
    pub number: u64,
    /// When it comes.
    pub submit_s: u64,
    /// How long it runs.
    pub run_s: u64,
    /// How long its user says that it runs at most.
    pub requested_s: u64,
    /// How many cores it takes; at least 1.
    pub cores: u64,
    /// Whose it is.
    pub user: u64,
    /// On whose account.
    pub group: u64,
}

/// What schedulers are told of how long jobs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimates {
    /// What users said.
    Users,
    /// How long they do run.
    Perfect,
}

impl TraceJob {
    /// The job as schedulers are told of it. What runs longer than its user said is ended
    /// then, as sites do.
    pub fn with(&self, estimates: Estimates) -> Self {
        let run_s = self.run_s.min(self.requested_s).max(1);
        Self {
            run_s,
            requested_s: match estimates {
                Estimates::Users => self.requested_s.max(1),
                Estimates::Perfect => run_s,
            },
            ..self.clone()
        }
    }
}
