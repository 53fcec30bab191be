// SPDX-License-Identifier: GPL-2.0
//! Counts of the jobs of each user.

use std::collections::BTreeMap;

use pbs_node::queue::RunSummary;
use pbs_node::Held;
use pbs_node_api::{Budget, EndedJobs, UserMetrics};

use crate::limits::Limits;

/// Users that are counted each by itself.
const USERS: usize = 1000;

/// Counts since the start of the service, by user; `None`: the users beyond the limit.
#[derive(Debug, Default)]
pub(crate) struct Counted(BTreeMap<Option<u32>, Count>);

/// Jobs of one user.
#[derive(Debug, Default)]
struct Count {
    submitted: u64,
    ended: BTreeMap<&'static str, u64>,
    kept: u64,
    missed: u64,
}

impl Counted {
    /// The counts of a user; `None`: nobody knows whose job it is.
    fn of(&mut self, uid: Option<u32>) -> &mut Count {
        let is_known = self.0.contains_key(&uid) || self.0.len() < USERS;
        self.0.entry(uid.filter(|_| is_known)).or_default()
    }

    /// A user has submitted jobs.
    pub(crate) fn submitted(&mut self, uid: u32, jobs: usize) {
        self.of(Some(uid)).submitted += jobs as u64;
    }

    /// A job has ended. The deadline of a job that was declined was not promised, and that of a
    /// job that was cancelled is not missed.
    pub(crate) fn ended(&mut self, job: &RunSummary) {
        let outcome = job.outcome.map_or("unknown", |outcome| outcome.name());
        let is_promised = job.deadline_unix_ns.is_some()
            && job.best_effort != Some(true)
            && !matches!(outcome, "declined" | "cancelled");
        let count = self.of(job.uid);
        *count.ended.entry(outcome).or_default() += 1;
        match job.kept {
            Some(true) if is_promised => count.kept += 1,
            Some(false) if is_promised => count.missed += 1,
            _ => {}
        }
    }

    /// All counts. `held`: what the open jobs of each user have.
    pub(crate) fn users(
        &self,
        held: &BTreeMap<Option<u32>, Held>,
        limits: &Limits,
    ) -> Vec<UserMetrics> {
        let metrics = |(&uid, count): (&Option<u32>, &Count)| {
            let held = held.get(&uid).copied().unwrap_or_default();
            let budgets = uid.map_or_else(Vec::new, |_| budgets(held, limits));
            let ended = count.ended.iter();
            UserMetrics {
                uid,
                submitted: count.submitted,
                ended: ended
                    .map(|(&outcome, &jobs)| EndedJobs { outcome: outcome.into(), jobs })
                    .collect(),
                deadlines_kept: count.kept,
                deadlines_missed: count.missed,
                budgets,
            }
        };
        self.0.iter().map(metrics).collect()
    }
}

fn budgets(held: Held, limits: &Limits) -> Vec<Budget> {
    let parts = [
        ("jobs", held.jobs, limits.user_jobs),
        ("tasks", held.tasks, limits.user_tasks),
        ("programs", held.programs, limits.user_programs),
        ("bytes", held.bytes, limits.user_bytes),
    ];
    let budget = |(resource, used, limit): (&str, usize, usize)| Budget {
        resource: resource.into(),
        used: used as u64,
        limit: limit as u64,
    };
    parts.map(budget).into()
}

#[cfg(test)]
mod tests {
    use pbs_history::{Kind, Outcome, RunId};

    use super::*;

    fn over(uid: Option<u32>, outcome: Outcome, kept: bool, has_deadline: bool) -> RunSummary {
        RunSummary {
            run: RunId(1),
            job: "job".into(),
            kind: Kind::Plan,
            state: "over",
            submitted_unix_ns: 0,
            ended_unix_ns: Some(1),
            outcome: Some(outcome),
            tasks: 0,
            tasks_ended: 0,
            uid,
            priority: None,
            best_effort: None,
            cpus: None,
            allocation: None,
            reason: None,
            deadline_unix_ns: has_deadline.then_some(5),
            expected_start_unix_ns: None,
            expected_end_unix_ns: None,
            begun_unix_ns: None,
            exit_code: None,
            signal: None,
            started_unix_ns: None,
            kept: Some(kept),
        }
    }

    /// Only promised deadlines count, and what is held is that of the same user.
    #[test]
    fn jobs_count_for_their_users() {
        let mut counted = Counted::default();
        counted.submitted(7, 3);
        for (outcome, kept, has_deadline) in [
            (Outcome::Complete, true, true),
            (Outcome::Complete, true, false),
            (Outcome::Killed, false, true),
            (Outcome::Declined, false, true),
            (Outcome::Cancelled, false, true),
        ] {
            counted.ended(&over(Some(7), outcome, kept, has_deadline));
        }
        let best_effort = over(Some(7), Outcome::Complete, false, true);
        counted.ended(&RunSummary { best_effort: Some(true), ..best_effort });
        let held = Held { jobs: 2, tasks: 9, programs: 3, bytes: 100 };
        let held = BTreeMap::from([(Some(7), held), (Some(8), held * 2)]);
        let users = counted.users(&held, &Limits::DEFAULT);
        assert_eq!(users.len(), 1);
        let user = &users[0];
        assert_eq!((user.uid, user.submitted), (Some(7), 3));
        assert_eq!((user.deadlines_kept, user.deadlines_missed), (1, 1));
        let ended: Vec<_> = user.ended.iter().map(|it| (&*it.outcome, it.jobs)).collect();
        assert_eq!(ended, [("cancelled", 1), ("complete", 3), ("declined", 1), ("killed", 1)]);
        let used: Vec<_> = user.budgets.iter().map(|it| (&*it.resource, it.used)).collect();
        assert_eq!(used, [("jobs", 2), ("tasks", 9), ("programs", 3), ("bytes", 100)]);
        assert_eq!(user.budgets[0].limit, Limits::DEFAULT.user_jobs as u64);
    }

    /// However many users there are, the counts of the others are one.
    #[test]
    fn users_beyond_the_limit_are_counted_together() {
        let mut counted = Counted::default();
        for uid in 0..USERS as u32 + 50 {
            counted.submitted(uid, 1);
        }
        counted.submitted(3, 4);
        let users = counted.users(&BTreeMap::new(), &Limits::DEFAULT);
        assert_eq!(users.len(), USERS + 1);
        let of = |uid| users.iter().find(|user| user.uid == uid).unwrap().submitted;
        assert_eq!((of(None), of(Some(3)), of(Some(0))), (50, 5, 1));
        assert!(users.iter().all(|user| user.uid.is_some() || user.budgets.is_empty()));
    }
}
