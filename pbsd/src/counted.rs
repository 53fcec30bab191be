// SPDX-License-Identifier: GPL-2.0
//! Counts of the jobs of each user.

use std::collections::{BTreeMap, BTreeSet};

use pbs_history::Outcome;
use pbs_node::queue::RunSummary;
use pbs_node::Held;
use pbs_node_api::{Budget, EndedJobs, UserMetrics};

use crate::limits::Limits;

/// Users that are counted each by itself.
const USERS: usize = 1000;

/// Things that are counted until a user of whom none of them was gives its place to another.
const QUIET: u64 = 10 * USERS as u64;

/// Counts since the start of the service, by the user whose limits jobs count to; `None`: users who
/// have no place of their own.
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
    /// The counts of a user; `None`: nobody knows whose job it is. Where there is no place, that is
    /// of the others, unless there is a user of whom nothing was counted for long. The counts of
    /// such a user are dropped: the others have only what is counted there, and never grow by what
    /// was counted before.
    fn of(&mut self, account: Option<u32>) -> &mut Count {
        let own = self.users.keys().filter(|user| user.is_some()).count();
        let mut place = account;
        if account.is_some() && own >= USERS && !self.users.contains_key(&account) {
            let named = self.users.iter().filter(|(user, _)| user.is_some());
            let oldest = named.min_by_key(|(_, count)| count.last);
            let quiet = oldest.filter(|(_, count)| self.time - count.last >= QUIET);
            match quiet.map(|(&user, _)| user) {
                Some(user) => drop(self.users.remove(&user)),
                None => place = None,
            }
        }
        self.time += 1;
        let count = self.users.entry(place).or_default();
        count.last = self.time;
        count
    }

    /// A user has submitted jobs.
    pub(crate) fn submitted(&mut self, account: u32, jobs: usize) {
        self.of(Some(account)).submitted += jobs as u64;
    }

    /// A job has ended. A deadline was promised unless the job was best effort or declined. It is
    /// missed if the job has ended after it, or did not do all though nothing failed; a job that
    /// failed or was cancelled before has neither kept nor missed it. `account`: the user to whom it
    /// counts.
    pub(crate) fn ended(&mut self, job: &RunSummary, account: Option<u32>) {
        let outcome = job.outcome.map_or("unknown", |outcome| outcome.name());
        let is_promised = job.best_effort != Some(true) && outcome != "declined";
        let deadline_unix_ns = job.deadline_unix_ns.filter(|_| is_promised);
        let is_late = deadline_unix_ns < job.ended_unix_ns;
        let is_due = is_late || matches!(outcome, "complete" | "unknown");
        let count = self.of(account);
        *count.ended.entry(outcome).or_default() += 1;
        match job.kept.filter(|_| deadline_unix_ns.is_some()) {
            Some(true) => count.kept += 1,
            Some(false) if is_due => count.missed += 1,
            _ => {}
        }
    }

    /// All counts, each of all outcomes: one that appears with its first job has not grown for who
    /// reads it. `held`: what the open jobs of each user have.
    pub(crate) fn users(
        &self,
        held: &BTreeMap<Option<u32>, Held>,
        limits: &Limits,
    ) -> Vec<UserMetrics> {
        let none = Count::default();
        // Users of whom nothing is counted have budgets, as long as there is a place for them.
        let places = USERS.saturating_sub(self.users.len());
        let others = held.keys().filter(|user| !self.users.contains_key(user)).take(places);
        let all: BTreeSet<Option<u32>> = self.users.keys().chain(others).copied().collect();
        let metrics = |uid: Option<u32>| {
            let count = self.users.get(&uid).unwrap_or(&none);
            let held = held.get(&uid).copied().unwrap_or_default();
            let ended = Outcome::ALL.iter().map(|outcome| outcome.name());
            UserMetrics {
                uid,
                submitted: count.submitted,
                ended: ended
                    .map(|outcome| EndedJobs {
                        outcome: outcome.into(),
                        jobs: count.ended.get(outcome).copied().unwrap_or(0),
                    })
                    .collect(),
                deadlines_kept: count.kept,
                deadlines_missed: count.missed,
                budgets: uid.map_or_else(Vec::new, |_| budgets(held, limits)),
            }
        };
        all.into_iter().map(metrics).collect()
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
    use pbs_history::{Kind, RunId};

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
            counted.ended(&job, job.uid);
        }
        let held = Held { jobs: 2, tasks: 9, programs: 3, bytes: 100 };
        let held = BTreeMap::from([(Some(7), held), (Some(8), held * 2)]);
        let users = counted.users(&held, &Limits::DEFAULT);
        assert_eq!(users.iter().map(|user| user.uid).collect::<Vec<_>>(), [Some(7), Some(8)]);
        let user = &users[0];
        assert_eq!((user.submitted, user.deadlines_kept, user.deadlines_missed), (3, 1, 3));
        assert_eq!(user.ended.len(), Outcome::ALL.len());
        let ended = user.ended.iter().filter(|it| it.jobs > 0);
        let mut ended: Vec<_> = ended.map(|it| (&*it.outcome, it.jobs)).collect();
        ended.sort_unstable();
        assert_eq!(ended, [("cancelled", 2), ("complete", 4), ("declined", 1), ("killed", 2)]);
        let used: Vec<_> = user.budgets.iter().map(|it| (&*it.resource, it.used)).collect();
        assert_eq!(used, [("jobs", 2), ("tasks", 9), ("programs", 3), ("bytes", 100)]);
        assert_eq!(user.budgets[0].limit, Limits::DEFAULT.user_jobs as u64);
        assert_eq!((users[1].submitted, users[1].budgets[0].used), (0, 4));
    }

    /// However many users there are, each of a thousand is counted by itself, and the others together.
    /// One who is counted keeps its place, unless nothing was counted of it for long.
    #[test]
    fn users_beyond_the_limit_are_counted_together() {
        let mut counted = Counted::default();
        let users = |counted: &Counted| {
            let users = counted.users(&BTreeMap::new(), &Limits::DEFAULT);
            assert!(users.len() <= USERS + 1);
            users.into_iter().map(|user| (user.uid, user.submitted)).collect::<BTreeMap<_, _>>()
        };
        for uid in 0..USERS as u32 + 50 {
            counted.submitted(uid, 1);
        }
        let first = users(&counted);
        assert_eq!((first[&None], first[&Some(0)], first.len()), (50, 1, USERS + 1));
        // One who comes again and again does not push another out at once.
        let late = USERS as u32 + 7;
        for _ in USERS as u64 + 50..QUIET {
            counted.submitted(late, 1);
        }
        assert_eq!(users(&counted)[&Some(0)], 1);
        let others = users(&counted)[&None];
        counted.submitted(5, 1);
        counted.submitted(late, 3);
        let last = users(&counted);
        assert_eq!((last.get(&Some(0)), last[&Some(late)], last[&Some(5)]), (None, 3, 2));
        // The others have not grown by what was counted of the one who has gone.
        assert_eq!(last[&None], others);
        let nobody = counted.users(&BTreeMap::new(), &Limits::DEFAULT);
        assert!(nobody.iter().all(|user| user.uid.is_some() || user.budgets.is_empty()));
    }
}
