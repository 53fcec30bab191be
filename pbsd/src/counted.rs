// SPDX-License-Identifier: GPL-2.0
//! Counts of the jobs of each user.

use std::collections::{BTreeMap, BTreeSet};

use pbs_node::queue::RunSummary;
use pbs_node::Held;
use pbs_node_api::{Budget, EndedJobs, UserMetrics};

use crate::limits::Limits;

/// Users that are counted each by itself.
const USERS: usize = 1000;

/// Counts since the start of the service, by user; `None`: the users beyond the limit.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    users: BTreeMap<Option<u32>, Count>,
    /// Number of things that were counted.
    time: u64,
}

/// Jobs of one user.
#[derive(Debug, Default)]
struct Count {
    submitted: u64,
    ended: BTreeMap<&'static str, u64>,
    kept: u64,
    missed: u64,
    /// [`Counted::time`] of what was counted last.
    last: u64,
}

impl Counted {
    /// The counts of a user; `None`: nobody knows whose job it is. Where there is no place, the
    /// user of whom nothing was counted for longest is counted with the others.
    fn of(&mut self, uid: Option<u32>) -> &mut Count {
        let own = self.users.keys().filter(|user| user.is_some()).count();
        if uid.is_some() && own >= USERS && !self.users.contains_key(&uid) {
            let named = self.users.iter().filter(|(user, _)| user.is_some());
            let oldest = named.min_by_key(|(_, count)| count.last).map(|(&user, _)| user);
            if let Some(gone) = oldest.and_then(|user| self.users.remove(&user)) {
                self.users.entry(None).or_default().add(gone);
            }
        }
        self.time += 1;
        let count = self.users.entry(uid).or_default();
        count.last = self.time;
        count
    }

    /// A user has submitted jobs.
    pub(crate) fn submitted(&mut self, uid: u32, jobs: usize) {
        self.of(Some(uid)).submitted += jobs as u64;
    }

    /// A job has ended. A deadline was promised unless the job was best effort or declined. It is
    /// missed if the job has ended after it, or did not do all though nothing failed; a job that
    /// failed or was cancelled before has neither kept nor missed it.
    pub(crate) fn ended(&mut self, job: &RunSummary) {
        let outcome = job.outcome.map_or("unknown", |outcome| outcome.name());
        let is_promised = job.best_effort != Some(true) && outcome != "declined";
        let deadline_unix_ns = job.deadline_unix_ns.filter(|_| is_promised);
        let is_late = deadline_unix_ns < job.ended_unix_ns;
        let is_due = is_late || matches!(outcome, "complete" | "unknown");
        let count = self.of(job.uid);
        *count.ended.entry(outcome).or_default() += 1;
        match job.kept.filter(|_| deadline_unix_ns.is_some()) {
            Some(true) => count.kept += 1,
            Some(false) if is_due => count.missed += 1,
            _ => {}
        }
    }

    /// All counts. `held`: what the open jobs of each user have.
    pub(crate) fn users(
        &self,
        held: &BTreeMap<Option<u32>, Held>,
        limits: &Limits,
    ) -> Vec<UserMetrics> {
        let none = Count::default();
        let all: BTreeSet<Option<u32>> = self.users.keys().chain(held.keys()).copied().collect();
        let metrics = |uid: Option<u32>| {
            let count = self.users.get(&uid).unwrap_or(&none);
            let held = held.get(&uid).copied().unwrap_or_default();
            let ended = count.ended.iter();
            UserMetrics {
                uid,
                submitted: count.submitted,
                ended: ended
                    .map(|(&outcome, &jobs)| EndedJobs { outcome: outcome.into(), jobs })
                    .collect(),
                deadlines_kept: count.kept,
                deadlines_missed: count.missed,
                budgets: uid.map_or_else(Vec::new, |_| budgets(held, limits)),
            }
        };
        all.into_iter().map(metrics).collect()
    }
}

impl Count {
    fn add(&mut self, other: Self) {
        self.submitted += other.submitted;
        self.kept += other.kept;
        self.missed += other.missed;
        for (outcome, jobs) in other.ended {
            *self.ended.entry(outcome).or_default() += jobs;
        }
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

    /// Only promised deadlines count, and only jobs that were late or did less than they could miss
    /// them. Users who have open jobs are there, too.
    #[test]
    fn jobs_count_for_their_users() {
        let mut counted = Counted::default();
        counted.submitted(7, 3);
        let late =
            |outcome| RunSummary { ended_unix_ns: Some(6), ..over(Some(7), outcome, false, true) };
        for job in [
            over(Some(7), Outcome::Complete, true, true),
            over(Some(7), Outcome::Complete, true, false),
            over(Some(7), Outcome::Complete, false, true),
            over(Some(7), Outcome::Killed, false, true),
            over(Some(7), Outcome::Cancelled, false, true),
            late(Outcome::Killed),
            late(Outcome::Cancelled),
            late(Outcome::Declined),
            RunSummary { best_effort: Some(true), ..late(Outcome::Complete) },
        ] {
            counted.ended(&job);
        }
        let held = Held { jobs: 2, tasks: 9, programs: 3, bytes: 100 };
        let held = BTreeMap::from([(Some(7), held), (Some(8), held * 2)]);
        let users = counted.users(&held, &Limits::DEFAULT);
        assert_eq!(users.iter().map(|user| user.uid).collect::<Vec<_>>(), [Some(7), Some(8)]);
        let user = &users[0];
        assert_eq!((user.submitted, user.deadlines_kept, user.deadlines_missed), (3, 1, 3));
        let ended: Vec<_> = user.ended.iter().map(|it| (&*it.outcome, it.jobs)).collect();
        assert_eq!(ended, [("cancelled", 2), ("complete", 4), ("declined", 1), ("killed", 2)]);
        let used: Vec<_> = user.budgets.iter().map(|it| (&*it.resource, it.used)).collect();
        assert_eq!(used, [("jobs", 2), ("tasks", 9), ("programs", 3), ("bytes", 100)]);
        assert_eq!(user.budgets[0].limit, Limits::DEFAULT.user_jobs as u64);
        assert_eq!((users[1].submitted, users[1].budgets[0].used), (0, 4));
    }

    /// However many users there are, those of whom nothing was heard for longest are one, and
    /// nothing of them is lost.
    #[test]
    fn users_beyond_the_limit_are_counted_together() {
        let mut counted = Counted::default();
        let all = USERS as u32 + 50;
        counted.submitted(3, 4);
        for uid in 0..all {
            counted.submitted(uid, 1);
            counted.submitted(3, 1);
        }
        let users = counted.users(&BTreeMap::new(), &Limits::DEFAULT);
        assert_eq!(users.len(), USERS + 1);
        let of = |uid| users.iter().find(|user| user.uid == uid).map(|user| user.submitted);
        assert_eq!((of(None), of(Some(0))), (Some(50), None));
        assert_eq!((of(Some(3)), of(Some(all - 1))), (Some(u64::from(all) + 5), Some(1)));
        assert!(users.iter().all(|user| user.uid.is_some() || user.budgets.is_empty()));
    }
}
