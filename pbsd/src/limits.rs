// SPDX-License-Identifier: GPL-2.0
//! Limits of what the service holds: for one user, and for all of them.
//!
//! Everything that somebody can make the service keep has a limit here. A limit of a user is
//! that of each user, so that none uses up what others need; those of the whole service are for
//! their sum. Operators, who are to set things right, have [`OPERATOR_SHARE`] times as much.

use clap::Args;
use pbs_history::EndedLimits;
use pbs_node::Held;
use pbs_node_api::Refusal;
use pbs_socket::{check_shares, AllBytes, CallLimits, Caller, ConnectionLimits, HeldWords, Share};
use pbs_text::at_least_one;

/// Calls that wait for the node.
pub const CALLS: CallLimits =
    CallLimits { calls: 256, of_operators: 32, user_bytes: 16 << 20, all_bytes: 64 << 20 };
/// Jobs in one submission, with all of their arrays.
pub const SUBMISSION_JOBS: u64 = 1000;
/// Programs of one submission, unless an operator's.
pub const SUBMISSION_PROGRAMS: usize = 256;
/// Jobs that a job is to come after: each is looked up whenever somebody asks how it stands.
pub const JOB_AFTER: usize = 64;
/// The longest name of a job, in bytes.
pub const NAME_BYTES: usize = 200;
/// The longest name of a file or directory, in bytes.
pub const PATH_BYTES: usize = libc::PATH_MAX as usize;
/// Jobs that are over, in one answer: each takes time of the service.
pub const ENDED_OF_ANSWER: u64 = 1000;
/// Jobs that are over, in one answer to an operator.
pub const ENDED_OF_OPERATOR: u64 = 10_000;
/// Limits of an operator, in limits of another user.
pub const OPERATOR_SHARE: usize = 8;

/// Open files that are neither connections nor programs: the service's own, connections of
/// operators beyond the limit, and what a start takes while it lasts.
pub const OWN_FILES: usize = 64;

const DAY_NS: u64 = 86_400 * 1_000_000_000;

/// Limits that can be configured.
#[derive(Args, Clone, Copy, Debug, PartialEq, Eq)]
#[command(next_help_heading = "Limits")]
pub struct Limits {
    /// Jobs of a user that are not over
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = at_least_one)]
    pub user_jobs: usize,

    /// Tasks of a user's jobs that are not over
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = at_least_one)]
    pub user_tasks: usize,

    /// Programs of a user's jobs that are not over
    #[arg(long, value_name = "N", default_value_t = 2048, value_parser = at_least_one)]
    pub user_programs: usize,

    /// Memory of a user's jobs that are not over, with their environments
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 20, value_parser = at_least_one)]
    pub user_bytes: usize,

    /// Memory of the jobs of all users that are not over; operators are not refused by it
    #[arg(long, value_name = "BYTES", default_value_t = 512 << 20, value_parser = at_least_one)]
    pub all_bytes: usize,

    /// Processes and threads of a job, in its control group
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = at_least_one)]
    pub job_pids: usize,

    /// POSIX timers and queued signals of all programs of a user
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = at_least_one)]
    pub job_timers: usize,

    /// Seconds that a job gets at most to save its work before it is ended; 0: it is not asked
    #[arg(long, value_name = "N", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(0..=3600))]
    pub save_seconds: u64,

    /// Jobs of a user that are over and kept in the history; root has no such limit
    #[arg(long, value_name = "N", default_value_t = 5000, value_parser = at_least_one)]
    pub user_ended_jobs: usize,

    /// Bytes of a user's jobs that are over and kept in the history; root has no such limit
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 20, value_parser = at_least_one)]
    pub user_ended_bytes: usize,

    /// Bytes of the jobs of all users but root that are over and kept in the history
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 30, value_parser = at_least_one)]
    pub all_ended_bytes: usize,

    /// Days for which a job that is over is kept
    #[arg(long, value_name = "N", default_value_t = 365, value_parser = at_least_one)]
    pub ended_days: usize,

    /// Connections of all users; operators are not refused by it
    #[arg(long, value_name = "N", default_value_t = 960, value_parser = at_least_one)]
    pub connections: usize,

    /// Connections of a user; operators have no such limit
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = at_least_one)]
    pub user_connections: usize,
}

impl Limits {
    /// The limits without any option.
    pub const DEFAULT: Self = Self {
        user_jobs: 512,
        user_tasks: 100_000,
        user_programs: 2048,
        user_bytes: 64 << 20,
        all_bytes: 512 << 20,
        job_pids: 4096,
        job_timers: 64,
        save_seconds: 10,
        user_ended_jobs: 5000,
        user_ended_bytes: 64 << 20,
        all_ended_bytes: 1 << 30,
        ended_days: 365,
        connections: 960,
        user_connections: 64,
    };

    /// Limits of a service that can have so many open files, and the number of programs for which
    /// it can have a descriptor: connections take at most half of the files, and a user's programs
    /// at most a quarter of what is left to all programs.
    pub fn within(self, open_files: u64) -> (Self, usize) {
        let open_files = usize::try_from(open_files).unwrap_or(usize::MAX);
        let connections = self.connections.min(open_files / 2).max(1);
        let programs = open_files.saturating_sub(connections).saturating_sub(OWN_FILES).max(1);
        let user_programs = self.user_programs.min(programs.div_ceil(4));
        (Self { connections, user_programs, ..self }, programs)
    }

    /// Limits of jobs that are over.
    pub fn ended(&self) -> EndedLimits {
        EndedLimits {
            user_runs: self.user_ended_jobs as u64,
            user_bytes: self.user_ended_bytes as u64,
            all_bytes: self.all_ended_bytes as u64,
            age_ns: (self.ended_days as u64).saturating_mul(DAY_NS),
        }
    }

    /// Limits of connections.
    pub fn of_connections(&self) -> ConnectionLimits {
        ConnectionLimits { all: self.connections, of_user: self.user_connections }
    }

    /// Checks whether a user may have more open jobs; `own`: what the user has, `all`: what all
    /// users have.
    ///
    /// # Errors
    ///
    /// [`Refusal::Failed`] names the limit, what there is of it already, and what to do.
    pub fn allow(&self, caller: &Caller, own: Held, all: Held, more: Held) -> Result<(), Refusal> {
        let share =
            |what, limit_name, limit, own, more| Share { what, limit_name, limit, own, more };
        let shares = [
            share("jobs", "user-jobs", self.user_jobs, own.jobs, more.jobs),
            share("tasks", "user-tasks", self.user_tasks, own.tasks, more.tasks),
            share("programs", "user-programs", self.user_programs, own.programs, more.programs),
            share("bytes", "user-bytes", self.user_bytes, own.bytes, more.bytes),
        ];
        let all_bytes = AllBytes { limit: self.all_bytes, all: all.bytes, more: more.bytes };
        let factor = caller.is_operator.then_some(OPERATOR_SHARE);
        let words = HeldWords {
            user_has: "you have",
            open: "open jobs",
            things: "jobs",
            or_end: "cancel some",
        };
        check_shares(&shares, all_bytes, factor, &words).map_err(|why| Refusal::Failed { why })
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Options {
        #[command(flatten)]
        limits: Limits,
    }

    fn caller(is_operator: bool) -> Caller {
        Caller { uid: 1000, gid: 1000, groups: Vec::new(), is_operator, pid: 0, account: 1000 }
    }

    #[test]
    fn options_have_the_default_limits() {
        assert_eq!(Options::parse_from(["pbsd"]).limits, Limits::DEFAULT);
        assert!(Options::try_parse_from(["pbsd", "--user-jobs", "0"]).is_err());
        let limits = Options::parse_from(["pbsd", "--user-tasks", "7"]).limits;
        assert_eq!(limits, Limits { user_tasks: 7, ..Limits::DEFAULT });
    }

    /// Neither connections nor the programs of one user take all descriptors.
    #[test]
    fn descriptors_are_shared_out() {
        for (open_files, connections, user_programs, programs) in [
            (524_288, 960, 2048, 524_288 - 960 - 64),
            (4096, 960, 768, 4096 - 960 - 64),
            (1024, 512, 112, 1024 - 512 - 64),
            (64, 32, 1, 1),
        ] {
            let (limits, room) = Limits::DEFAULT.within(open_files);
            let found = (limits.connections, limits.user_programs, room);
            assert_eq!(found, (connections, user_programs, programs), "{open_files}");
        }
    }

    /// A refusal names the limit, what the user has of it, and what to do; exactly as much as the
    /// limit is allowed.
    #[test]
    fn each_limit_is_told_by_its_name() {
        let limits = Limits {
            user_jobs: 3,
            user_tasks: 30,
            user_programs: 6,
            user_bytes: 99,
            all_bytes: 500,
            ..Limits::DEFAULT
        };
        let full = Held { jobs: 3, tasks: 30, programs: 6, bytes: 99 };
        let none = Held::default();
        assert_eq!(limits.allow(&caller(false), none, none, full), Ok(()));
        for (more, name) in [
            (Held { jobs: 1, ..none }, "user-jobs"),
            (Held { tasks: 1, ..none }, "user-tasks"),
            (Held { programs: 1, ..none }, "user-programs"),
            (Held { bytes: 1, ..none }, "user-bytes"),
        ] {
            let refused = limits.allow(&caller(false), full, full, more).unwrap_err();
            let Refusal::Failed { why } = refused else { panic!("{refused:?}") };
            assert!(why.contains(&format!("({name})")) && why.contains("cancel"), "{why}");
            // Operators have more, and not without end.
            assert_eq!(limits.allow(&caller(true), full, full, more), Ok(()));
            let many = full * OPERATOR_SHARE;
            assert!(limits.allow(&caller(true), many, many, more).is_err());
        }
        let others = Held { bytes: 450, ..none };
        let more = Held { bytes: 51, ..none };
        let refused = limits.allow(&caller(false), none, others, more).unwrap_err();
        assert!(matches!(&refused, Refusal::Failed { why } if why.contains("(all-bytes)")));
        assert_eq!(limits.allow(&caller(true), none, others, more), Ok(()));
    }
}
