// SPDX-License-Identifier: GPL-2.0
//! Value of jobs (Leppert 2021, 1.1 and 2.3) where not all that wait can be admitted.
//!
//! Jobs are tried in the order of [`by_priority`](crate::by_priority). If one is declined, a second
//! order is tried: by value and penalty for each instruction. Numbers of different users are
//! never compared, and a user gains nothing over others by a great number:
//!
//! - The jobs of one user with the same priority are a *group*. In the second order, the jobs of a
//!   group share the places that they have in the first.
//! - The second order decides only if a group that declares values loses less of them, and if each
//!   other group does so as well, or keeps all jobs that the first order admits.

use std::collections::BTreeMap;

use pbs_job::{Job, Worth};

use crate::Error;

/// A job that is to be admitted, and its user. Jobs without a user are those of one user.
pub(crate) struct Entrant<'a> {
    pub(crate) job: &'a Job,
    pub(crate) uid: Option<u32>,
}

/// User, whether jobs are of best effort, and priority.
type Group = (Option<u32>, bool, u32);

impl Entrant<'_> {
    fn group(&self) -> Group {
        (self.uid, self.job.best_effort, self.job.priority)
    }

    /// Instructions of all tasks, at least 1.
    fn insns(&self) -> u64 {
        let insns = self.job.tasks.iter().map(|task| task.insns);
        insns.fold(0, u64::saturating_add).max(1)
    }
}

/// Comparable value of a job for each of its instructions.
#[derive(Clone, Copy)]
struct Density {
    at_stake: u64,
    insns: u64,
}

impl Density {
    fn of(entrant: &Entrant<'_>) -> Self {
        Self { at_stake: entrant.job.worth.at_stake(), insns: entrant.insns() }
    }

    fn cmp(self, other: Self) -> std::cmp::Ordering {
        let product = |value: u64, insns: u64| u128::from(value) * u128::from(insns);
        product(self.at_stake, other.insns).cmp(&product(other.at_stake, self.insns))
    }
}

/// Returns the order to try after jobs were tried in their own; `None`: there is none, since no job
/// was declined, no value is declared or the order is the same. An error that is no refusal
/// forbids it, too.
pub(crate) fn second_order(
    entrants: &[Entrant<'_>],
    results: &[Result<(), Error>],
) -> Option<Vec<usize>> {
    let is_refusal = |result: &Result<(), Error>| matches!(result, Err(Error::Declined(_)));
    let is_answer = |result: &Result<(), Error>| result.is_ok() || is_refusal(result);
    if !results.iter().all(is_answer) || !results.iter().any(is_refusal) {
        return None;
    }
    let mut groups: BTreeMap<Group, Vec<usize>> = BTreeMap::new();
    for (place, entrant) in entrants.iter().enumerate() {
        // Best effort has no promise, and is placed behind all that has one.
        if !entrant.job.best_effort {
            groups.entry(entrant.group()).or_default().push(place);
        }
    }
    let mut order: Vec<usize> = (0..entrants.len()).collect();
    for places in groups.values() {
        let is_declared = |&place: &usize| entrants[place].job.worth != Worth::default();
        if places.iter().any(is_declared) {
            let mut sorted: Vec<_> =
                places.iter().map(|&place| (place, Density::of(&entrants[place]))).collect();
            sorted.sort_by(|(_, one), (_, other)| other.cmp(*one));
            for (&place, (job, _)) in places.iter().zip(sorted) {
                order[place] = job;
            }
        }
    }
    (!order.is_sorted()).then_some(order)
}

/// Returns the results of the jobs in the second order, each at the index of its job; `None`: the
/// first order decides. `others`: the results as the second order has them.
pub(crate) fn second_results(
    entrants: &[Entrant<'_>],
    results: &[Result<(), Error>],
    order: &[usize],
    others: Vec<Result<(), Error>>,
) -> Option<Vec<Result<(), Error>>> {
    let is_answer = |result: &Result<(), Error>| matches!(result, Ok(()) | Err(Error::Declined(_)));
    if others.len() != entrants.len() || !others.iter().all(is_answer) {
        return None;
    }
    let mut placed: Vec<_> = order.iter().copied().zip(others).collect();
    placed.sort_by_key(|&(job, _)| job);
    let others: Vec<_> = placed.into_iter().map(|(_, result)| result).collect();
    loses_less(entrants, results, &others).then_some(others)
}

/// Value that a group loses in two orders.
#[derive(Default)]
struct Lost {
    first: u128,
    second: u128,
    /// Whether a job declares a value or a penalty.
    is_declared: bool,
    /// Whether the second order declines a job that the first admits.
    loses_a_job: bool,
}

fn loses_less(
    entrants: &[Entrant<'_>],
    first: &[Result<(), Error>],
    second: &[Result<(), Error>],
) -> bool {
    let mut groups: BTreeMap<Group, Lost> = BTreeMap::new();
    for ((entrant, first), second) in entrants.iter().zip(first).zip(second) {
        let lost = groups.entry(entrant.group()).or_default();
        let at_stake = u128::from(entrant.job.worth.at_stake());
        lost.first += if first.is_ok() { 0 } else { at_stake };
        lost.second += if second.is_ok() { 0 } else { at_stake };
        // The second order leaves best effort where it is.
        lost.is_declared |= !entrant.job.best_effort && entrant.job.worth != Worth::default();
        lost.loses_a_job |= first.is_ok() && second.is_err();
    }
    let is_less = |lost: &Lost| lost.is_declared && lost.second < lost.first;
    groups.values().any(is_less) && groups.values().all(|lost| is_less(lost) || !lost.loses_a_job)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use pbs_history::{Kind, NewRun, Options, Outcome, Store};
    use pbs_random::Random;

    use super::*;
    use crate::candidate::Candidate;
    use crate::clock::{monotonic_ns, unix_ns};
    use crate::jobs::Jobs;
    use crate::orders::{Order, Terms};
    use crate::{model, Declined, Listener, Submission};

    struct Nobody;

    impl Listener for Nobody {}

    /// One core that retires an instruction in a nanosecond. Jobs may ask for 90 % of it.
    const MACHINE: &str = "name = \"one\"\n[[node]]\nname = \"one\"\nmemory_bytes = 1_000_000\n\
                           rate_insns_per_s = 1_000_000_000\ncores = [\"c0\"]\n";

    const MS: u64 = 1_000_000;

    fn text(name: &str, ms: u64, deadline_ms: u64, keys: &str) -> String {
        format!(
            "name = \"{name}\"\ndeadline_ns = {}\n{keys}\n[[process]]\nid = 1\n\
             memory_bytes = 4096\ncommand = [\"true\"]\ntasks = [{}]\n",
            deadline_ms * MS,
            ms * MS
        )
    }

    fn submission(name: &str, ms: u64, deadline_ms: u64, keys: &str) -> Submission {
        Submission::from_text(text(name, ms, deadline_ms, keys), name.into()).unwrap()
    }

    /// A directory that no other test uses, and that is removed in the end.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            let name = format!("pbs-value-{name}-{}", std::process::id());
            Self(std::env::temp_dir().join(name))
        }

        fn jobs(&self) -> Jobs {
            model::open_on(MACHINE, &self.0, &mut Nobody)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0).unwrap();
        }
    }

    fn declined() -> Result<(), Error> {
        let (file, job, why) = (String::new(), String::new(), String::new());
        Err(Error::Declined(Declined { file, job, why, earliest_deadline_ns: None }))
    }

    /// Results of jobs that are admitted (`+`) or declined.
    fn results(of: &str) -> Vec<Result<(), Error>> {
        of.chars().map(|sign| if sign == '+' { Ok(()) } else { declined() }).collect()
    }

    /// Jobs by their user, keys and length.
    fn jobs_of(jobs: &[(u32, &str, u64)]) -> Vec<(Job, Option<u32>)> {
        let jobs =
            jobs.iter().map(|&(uid, keys, ms)| (submission("j", ms, 9, keys).job, Some(uid)));
        jobs.collect()
    }

    fn entrants(jobs: &[(Job, Option<u32>)]) -> Vec<Entrant<'_>> {
        jobs.iter().map(|(job, uid)| Entrant { job, uid: *uid }).collect()
    }

    fn order(jobs: &[(u32, &str, u64)], of: &str) -> Option<Vec<usize>> {
        second_order(&entrants(&jobs_of(jobs)), &results(of))
    }

    /// Jobs change their places only with jobs of the same user and the same priority.
    #[test]
    fn jobs_share_the_places_of_their_user_and_priority() {
        let places = [
            (1, "priority = 1", 1),
            (1, "", 1),
            (2, "value = 1_000_000_000_000", 1),
            (1, "value = 9", 1),
            (2, "value = 7", 1),
            (1, "value = 8\npenalty = 2", 1),
            (3, "", 2),
            (3, "", 1),
            (1, "value = 99\nbest_effort = true", 1),
        ];
        assert_eq!(order(&places, "++++-++++"), Some(vec![0, 5, 2, 3, 4, 1, 6, 7, 8]));
        assert_eq!(order(&places, "+++++++++"), None, "all are admitted");
        // Value for each instruction: 6 in 2 is less than 4 in 1, and as much as 3 in 1.
        assert_eq!(order(&[(1, "value = 6", 2), (1, "value = 4", 1)], "+-"), Some(vec![1, 0]));
        assert_eq!(order(&[(1, "value = 6", 2), (1, "value = 3", 1)], "+-"), None);
        // Two jobs whose order would be another, if somebody had declared a value.
        assert_eq!(order(&[(1, "", 2), (1, "", 1)], "+-"), None);
        assert_eq!(order(&[(1, "value = 1\npenalty = 0", 2), (1, "", 1)], "+-"), None);
    }

    /// An order is taken only if one group loses less, and no other group has a loss of jobs that
    /// it does not weigh less itself.
    #[test]
    fn numbers_of_different_users_are_not_compared() {
        let less = |jobs: &[(u32, &str, u64)], first: &str, second: &str| {
            let jobs = jobs_of(jobs);
            loses_less(&entrants(&jobs), &results(first), &results(second))
        };
        let one = [(1, "value = 1", 1), (1, "value = 5", 1), (1, "value = 4", 1)];
        assert!(less(&one, "+--", "-++"));
        assert!(!less(&one, "-++", "+--"));
        assert!(!less(&one, "-+-", "-+-"));
        let two = [(1, "value = 1_000_000_000_000", 1), (2, "", 1), (2, "", 1)];
        assert!(!less(&two, "-+-", "+--"), "another user loses a job");
        assert!(
            !less(&two, "-+-", "+-+"),
            "another user loses a job for one that is worth the same"
        );
        assert!(less(&two, "-+-", "++-"));
        let both = [(1, "value = 3", 1), (2, "value = 1", 1), (2, "value = 2", 1)];
        assert!(less(&both, "-+-", "+-+"), "the other user loses less, too");
        let unsaid = [(1, "value = 3", 1), (2, "", 1), (2, "", 1), (2, "", 1)];
        assert!(!less(&unsaid, "-+--", "+-++"), "a user without values keeps what there was");
        assert!(less(&unsaid, "-+--", "++--"));
        // A job of a higher priority is not lost for the value of others of the same user.
        let groups = [(1, "priority = 1", 1), (1, "priority = 1", 1), (1, "value = 9", 1)];
        assert!(!less(&groups, "+--", "-++"));
    }

    /// Lets jobs wait for `pbsctl run`. Returns the names of those that are admitted.
    fn admitted(name: &str, texts: &[String]) -> Vec<String> {
        let directory = Directory::new(name);
        std::fs::create_dir_all(&directory.0).unwrap();
        let mut store = Store::open(&directory.0.join("history.db"), Options::default()).unwrap();
        for text in texts {
            let new = NewRun {
                job: "j",
                kind: Kind::Plan,
                submitted_unix_ns: unix_ns(),
                request: text,
                reservation: "",
                order: None,
            };
            store.begin_run(&new).unwrap();
        }
        drop(store);
        let mut jobs = directory.jobs();
        jobs.admit_waiting("jobs", &mut Nobody).unwrap();
        let waits = jobs.ledger.waiting().unwrap();
        assert_eq!(waits.len(), jobs.runs.len(), "the others are declined");
        jobs.runs.iter().map(|run| run.job.name.clone()).collect()
    }

    /// The more valuable of two waiting jobs is admitted if only one can be. A penalty counts like
    /// a value, and a priority more than both.
    #[test]
    fn the_more_valuable_of_two_waiting_jobs_is_admitted() {
        let two = |name, keys: [&str; 2]| {
            let [first, second] = keys;
            admitted(name, &[text("a", 10_000, 20_000, first), text("b", 10_000, 20_000, second)])
        };
        assert_eq!(two("plain", ["", ""]), ["a"]);
        assert_eq!(two("same", ["value = 5", "value = 5"]), ["a"]);
        assert_eq!(two("value", ["", "value = 2"]), ["b"]);
        assert_eq!(two("penalty", ["value = 2", "penalty = 2"]), ["b"]);
        assert_eq!(two("priority", ["priority = 1", "value = 2"]), ["a"]);
    }

    /// Jobs that fit are admitted in the order of their arrival, whatever their value is.
    #[test]
    fn value_changes_nothing_where_all_are_admitted() {
        let jobs = [text("a", 9_000, 40_000, ""), text("b", 9_000, 40_000, "value = 2")];
        assert_eq!(admitted("all", &jobs), ["a", "b"]);
    }

    /// Orders of users to the service, which are held and released together. Returns the names of
    /// those that are planned.
    fn ordered(jobs: &mut Jobs, orders: &[(u32, Submission)]) -> Vec<String> {
        let ids = orders.iter().map(|(uid, submission)| {
            let owner = pbs_launch::Owner::new(*uid, *uid);
            let terms = Terms { hold: true, ..Terms::new(owner) };
            let order = Order::new(submission.clone(), terms);
            jobs.order(vec![order], &mut Nobody).unwrap()[0]
        });
        let ids: Vec<_> = ids.collect();
        for &id in &ids {
            jobs.hold(id, false).unwrap();
        }
        jobs.promote(&mut Nobody);
        let mut planned = Vec::new();
        for (id, (uid, submission)) in ids.into_iter().zip(orders) {
            let standing = jobs.standing_of(id).unwrap();
            match standing.state {
                "planned" => planned.push(submission.job.name.clone()),
                state => assert_eq!((state, standing.outcome), ("over", Some(Outcome::Declined))),
            }
            // The run of an order is that of its own job and user.
            let run = jobs.runs.iter().find(|run| run.id == Some(id));
            assert!(run.is_none_or(|run| {
                run.job.name == submission.job.name && run.owner().unwrap().uid == *uid
            }));
        }
        planned
    }

    /// The service weighs the jobs of one user. A great number gains nothing over other users, and
    /// takes no promise that was given.
    #[test]
    fn a_user_gains_nothing_over_others_by_a_great_value() {
        const MOST: &str = "value = 1_000_000_000_000\npenalty = 1_000_000_000_000";
        let job = |name, ms, keys| submission(name, ms, 20_000, keys);
        let round =
            |name, orders: &[(u32, Submission)]| ordered(&mut Directory::new(name).jobs(), orders);
        let (a, b) = (job("a", 10_000, ""), job("b", 10_000, MOST));
        assert_eq!(round("own", &[(1000, a.clone()), (1000, b.clone())]), ["b"]);
        assert_eq!(round("other", &[(1000, a.clone()), (1001, b.clone())]), ["a"]);
        // The large job would have the place of the small one, and the other user's job none.
        let (small, large) = (job("small", 3_000, ""), job("large", 14_000, MOST));
        let between = job("between", 7_000, "");
        let orders = [(1001, small.clone()), (1000, between), (1001, large.clone())];
        assert_eq!(round("between", &orders), ["small", "between"]);
        let orders = [(1001, small), (1000, job("tiny", 2_000, "")), (1001, large)];
        assert_eq!(round("beside", &orders), ["tiny", "large"]);

        let directory = Directory::new("promised");
        let mut jobs = directory.jobs();
        assert_eq!(ordered(&mut jobs, &[(1000, a)]), ["a"]);
        assert_eq!(ordered(&mut jobs, &[(1000, b)]), [""; 0]);
        assert_eq!(jobs.runs[0].job.name, "a");
    }

    /// Candidates for the study, with values or without.
    fn candidates(of: &[Submission], now_ns: u64, has_values: bool) -> Vec<Candidate> {
        let candidates = of.iter().map(|submission| {
            let mut submission = submission.clone();
            if !has_values {
                submission.job.worth = Worth::default();
            }
            let (id, terms, kind) = (None, None, Kind::Plan);
            Candidate { submission, id, submitted_ns: now_ns, terms, kind }
        });
        candidates.collect()
    }

    /// Value that is lost in 200 sets of 12 jobs of one user on one core, in the order of arrival
    /// and with values. Without values, jobs are admitted in the order of their arrival.
    #[test]
    fn sets_of_jobs_never_lose_more_value_with_the_second_order() {
        const SETS: u64 = 200;
        let directory = Directory::new("study");
        let jobs = directory.jobs();
        let now_ns = monotonic_ns();
        let mut random = Random::new(36);
        let (mut at_stake, mut by_arrival, mut by_value, mut better) = (0, 0, 0, 0);
        for set in 0..SETS {
            let drawn = (0..12).map(|at| {
                let ms = 50 + random.below(450);
                let deadline_ms = 2 * ms + random.below(2_000);
                let (value, penalty) = (1 + random.below(100), random.below(50));
                let keys = format!("value = {value}\npenalty = {penalty}");
                submission(&format!("{set}-{at}"), ms, deadline_ms, &keys)
            });
            let drawn: Vec<_> = drawn.collect();
            let mut trial = jobs.trial(now_ns);
            let arrival = candidates(&drawn, now_ns, true).into_iter();
            let arrival: Vec<_> = arrival.map(|one| jobs.take(&mut trial, one).is_ok()).collect();
            let admitted = |has_values| -> Vec<bool> {
                let tried = jobs.try_orders(now_ns, &candidates(&drawn, now_ns, has_values));
                tried.1.iter().map(Result::is_ok).collect()
            };
            if set % 10 == 0 {
                assert_eq!(admitted(false), arrival, "set {set} without values");
            }
            let lost = |admitted: &[bool]| -> u64 {
                let lost = drawn.iter().zip(admitted).filter(|(_, is_admitted)| !**is_admitted);
                lost.map(|(submission, _)| submission.job.worth.at_stake()).sum()
            };
            let (first, second) = (lost(&arrival), lost(&admitted(true)));
            assert!(second <= first, "set {set} loses {second}, and {first} without values");
            at_stake += lost(&[false; 12]);
            (by_arrival, by_value) = (by_arrival + first, by_value + second);
            better += u64::from(second < first);
        }
        println!(
            "{SETS} sets: {at_stake} at stake, {by_arrival} lost by arrival, {by_value} lost with \
             values; {better} sets lose less"
        );
        assert!(by_value < by_arrival);
    }
}
