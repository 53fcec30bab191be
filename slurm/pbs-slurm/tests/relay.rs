// SPDX-License-Identifier: GPL-2.0
//! The steering and a batch system in a thread of its own: orders are carried out later, and looks
//! may be older than orders.

mod common;

use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::{committed, settings, SITE, T, WINDOW_S};
use pbs_manager::ledger::{Row, State};
use pbs_manager::{Caller, Manager};
use pbs_slurm::steer::{
    Commitment, Controller, Event, Fault, Hold, JobState, Key, Leaving, Link, Revoked, Simulated,
    Steer, World,
};
use pbs_slurm::{Relay, Served};

/// Time after which a step counts as failed.
const PATIENCE: Duration = Duration::from_secs(120);

fn operator() -> Caller {
    Caller { user: "root".into(), is_operator: true }
}

/// A batch system whose looks a test can keep back.
#[derive(Default)]
struct Kept {
    slurm: Simulated,
    /// Whether looks are kept back, once they were taken.
    keeps: bool,
    /// Number of looks that were taken.
    looks: u64,
    /// Demands of jobs in the last one.
    asked: HashMap<Key, u64>,
    /// Number of orders for limits that fail.
    failing_limits: u64,
    /// Number of orders to tell users something that fail, and the fault.
    failing_shows: Option<(u64, Fault)>,
    /// Number of orders to tell users something.
    shows: u64,
    /// Job whose user can't be told anything.
    silent: Option<Key>,
    /// Jobs that were stopped.
    stopped: Vec<Key>,
}

#[derive(Clone, Default)]
struct Fake(Arc<(Mutex<Kept>, Condvar)>);

impl Fake {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0 .0.lock().unwrap()
    }

    fn keep(&self, keeps: bool) {
        self.lock().keeps = keeps;
        self.0 .1.notify_all();
    }
}

impl Controller for Fake {
    fn snapshot(&mut self) -> Result<World, Fault> {
        let mut kept = self.lock();
        let seen = kept.slurm.snapshot();
        kept.looks += 1;
        let jobs = seen.iter().flat_map(World::jobs).map(|job| (job.key, job.asks()));
        kept.asked = jobs.collect();
        while kept.keeps {
            kept = self.0 .1.wait(kept).unwrap();
        }
        seen
    }

    fn hold(&mut self, job: Key) -> Result<(), Fault> {
        self.lock().slurm.hold(job)
    }

    fn show(&mut self, job: Key, start_s: Option<u64>, why: &str) -> Result<(), Fault> {
        let mut kept = self.lock();
        kept.shows += 1;
        if kept.silent == Some(job) {
            return Err(Fault::Denied("no comment".into()));
        }
        if let Some((left, fault)) = kept.failing_shows.as_mut().filter(|(left, _)| *left > 0) {
            *left -= 1;
            return Err(fault.clone());
        }
        kept.slurm.show(job, start_s, why)
    }

    fn explain(&mut self, job: Key, why: &str) -> Result<(), Fault> {
        self.lock().slurm.explain(job, why)
    }

    fn commit(&mut self, job: Key, of: &Commitment) -> Result<(), Fault> {
        self.lock().slurm.commit(job, of)
    }

    fn leave(&mut self, job: Key, of: &Leaving) -> Result<(), Fault> {
        self.lock().slurm.leave(job, of)
    }

    fn revoke(&mut self, job: Key) -> Result<Revoked, Fault> {
        self.lock().slurm.revoke(job)
    }

    fn stop(&mut self, job: Key, why: &str) -> Result<(), Fault> {
        let mut kept = self.lock();
        kept.stopped.push(job);
        kept.slurm.stop(job, why)
    }

    fn limit(&mut self, job: Key, limit_s: u64) -> Result<(), Fault> {
        let mut kept = self.lock();
        if kept.failing_limits > 0 {
            kept.failing_limits -= 1;
            return Err(Fault::Unreachable("it says nothing".into()));
        }
        kept.slurm.limit(job, limit_s)
    }

    fn comment(&mut self, job: Key, text: &str) -> Result<(), Fault> {
        self.lock().slurm.comment(job, text)
    }

    fn notify(&mut self, job: Key, text: &str) -> Result<(), Fault> {
        self.lock().slurm.notify(job, text)
    }

    fn events(&mut self) -> Vec<Event> {
        self.lock().slurm.events()
    }
}

impl Served for Fake {
    fn wait(&mut self, _: BorrowedFd<'_>, most: Duration) {
        // The bell is looked at soon enough.
        sleep(most.min(Duration::from_millis(1)));
    }

    fn take_asked(&mut self) -> HashMap<Key, u64> {
        std::mem::take(&mut self.lock().asked)
    }

    fn asks(&mut self, job: Key) -> Result<Option<u64>, Fault> {
        Ok(self.lock().slurm.job(job).map(|seen| seen.asks()))
    }
}

/// A planner, and a batch system behind a relay.
struct Lab {
    manager: Manager<Link>,
    steer: Steer,
    relay: Relay,
    fake: Fake,
    now_s: u64,
    news: Vec<String>,
}

impl Lab {
    fn new(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("pbs-relay-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join(name);
        // One of an earlier process with the same number.
        let _ = std::fs::remove_file(&path);
        let mut manager = Manager::create(&path, SITE, T, Link::new(settings().window)).unwrap();
        let steer = Steer::new(&manager, settings());
        manager.defer();
        let fake = Fake::default();
        fake.lock().slurm = Simulated::new(&["n01", "n02", "n03", "n04"], 2, T);
        let relay = Relay::start(fake.clone(), || {}).unwrap();
        Self { manager, steer, relay, fake, now_s: T, news: Vec::new() }
    }

    /// A turn of the planner, with its orders.
    fn turn(&mut self) {
        let now = Duration::from_secs(self.now_s);
        self.steer.turn(&mut self.manager, &mut self.relay, now).unwrap();
        self.news.extend(self.steer.news());
        while self.manager.is_moving_up() {
            self.manager.settle_some(1000);
        }
        self.manager.write().unwrap();
        self.relay.send();
    }

    /// The planner has its turns until something is so.
    fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !is_so(self) {
            assert!(begun.elapsed() < PATIENCE, "not so in time: {what}; {:?}", self.news);
            self.turn();
            sleep(Duration::from_millis(2));
        }
    }

    /// A second passes, and what follows from it has its turns.
    fn second(&mut self) {
        self.now_s += 1;
        self.fake.lock().slurm.tick();
        for _ in 0..10 {
            self.turn();
            sleep(Duration::from_millis(2));
        }
    }

    /// Whether so many looks were taken.
    fn has_looked(&self, looks: u64) -> bool {
        self.fake.lock().looks >= looks
    }

    fn state(&self, key: Key) -> JobState {
        self.fake.lock().slurm.job(key).unwrap().state.clone()
    }

    fn told(&self, key: Key) -> String {
        self.fake.lock().slurm.told.get(&key).cloned().unwrap_or_default()
    }

    fn row(&self, key: Key) -> Row {
        let mut rows = self.manager.rows().unwrap();
        rows.retain(|row| row.command == [key.to_string()]);
        assert_eq!(rows.len(), 1, "{rows:?}");
        rows.remove(0)
    }

    /// A long job that was released and has not begun.
    fn released(&mut self) -> Key {
        let key = self.fake.lock().slurm.submit(1, 1, 1, 60, 1000);
        let start_s = T + 2 * WINDOW_S;
        self.fake.lock().slurm.alter(key, |job| job.start_s = Some(start_s));
        self.until("it is planned", |lab| lab.told(key).starts_with("planned for"));
        while self.now_s + WINDOW_S <= start_s {
            self.second();
        }
        self.until("it is let go", |lab| committed(&lab.state(key)));
        key
    }

    /// Has a look taken after a hint of a job, and kept back.
    fn keep_a_look(&mut self, job: Key) {
        self.until("no look is under way", |lab| !lab.relay.is_looking());
        self.fake.keep(true);
        let looks = self.fake.lock().looks;
        self.hint(job);
        self.until("a look was taken", |lab| lab.has_looked(looks + 1));
    }

    /// A hint, as of a hook.
    fn hint(&self, key: Key) {
        self.fake.lock().slurm.alter(key, |_| {});
    }
}

#[test]
fn jobs_run_as_planned_though_orders_take_time() {
    let mut lab = Lab::new("as-planned");
    let keys: Vec<Key> =
        (1..=6).map(|job| lab.fake.lock().slurm.submit(job, 2, 4, 60, 5)).collect();
    let is_over = |lab: &Lab, key: Key| matches!(lab.state(key), JobState::Over(_));
    for _ in 0..60 {
        lab.second();
        if keys.iter().all(|&key| is_over(&lab, key)) {
            break;
        }
    }
    lab.until("all requests have ended", |lab| lab.manager.open_rows().is_empty());
    for &key in &keys {
        assert_eq!(lab.row(key).outcome.as_deref(), Some("completed"), "{:?}", lab.news);
    }
    let commits: Vec<Key> = lab.fake.lock().slurm.commits.iter().map(|it| it.1).collect();
    for key in keys {
        assert!(commits.contains(&key));
    }
}

/// A look that began before a commitment shows the job as held. That is no hold by an operator.
#[test]
fn a_look_older_than_a_commitment_does_not_contradict_it() {
    let mut lab = Lab::new("older-look");
    let key = lab.fake.lock().slurm.submit(1, 1, 1, 60, 20);
    let start_s = T + 2 * WINDOW_S;
    lab.fake.lock().slurm.alter(key, |job| job.start_s = Some(start_s));
    lab.until("it is planned", |lab| lab.told(key).starts_with("planned for"));
    lab.keep_a_look(key);
    // It is let go while the look is on its way.
    while lab.now_s + WINDOW_S < start_s {
        lab.now_s += 1;
        lab.turn();
    }
    assert!(lab.relay.is_ahead(key));
    lab.fake.keep(false);
    lab.until("it is let go", |lab| committed(&lab.state(key)));
    for _ in 0..3 {
        let looks = lab.fake.lock().looks;
        lab.hint(key);
        lab.until("another look was taken", |lab| lab.has_looked(looks + 1));
        lab.until("it has arrived", |lab| !lab.relay.is_looking());
    }
    assert!(!lab.relay.is_ahead(key));
    assert!(committed(&lab.state(key)));
    let commits = lab.fake.lock().slurm.commits.clone();
    assert_eq!(commits.len(), 1, "{commits:?}");
    assert_eq!(lab.row(key).start_s, Some(start_s));
}

/// A job that is taken back is held, and its hold is none of an operator.
#[test]
fn a_job_that_does_not_start_is_taken_back_and_planned_again() {
    let mut lab = Lab::new("taken-back");
    lab.fake.lock().slurm.is_stuck = true;
    let key = lab.fake.lock().slurm.submit(1, 1, 1, 60, 5);
    lab.until("it is let go", |lab| committed(&lab.state(key)));
    for _ in 0..8 {
        lab.second();
    }
    let is_told = |lab: &Lab| lab.news.iter().any(|it| it.contains("did not start in time"));
    lab.until("it is taken back", is_told);
    lab.fake.lock().slurm.is_stuck = false;
    for _ in 0..20 {
        lab.second();
    }
    lab.until("it is over", |lab| lab.manager.open_rows().is_empty());
    assert_eq!(lab.row(key).outcome.as_deref(), Some("completed"));
}

#[test]
fn a_refused_commitment_declines_its_job() {
    let mut lab = Lab::new("refused");
    let key = lab.fake.lock().slurm.submit(1, 1, 1, 60, 5);
    lab.fake.lock().slurm.refuses.insert(key, "no such partition".into());
    let is_told = |lab: &Lab| lab.told(key).contains("can't start it as it is (no such partition)");
    lab.until("its user is told", is_told);
    assert!(!committed(&lab.state(key)));
}

#[test]
fn time_stands_still_while_the_batch_system_is_away() {
    let mut lab = Lab::new("away");
    let runs = lab.fake.lock().slurm.submit(1, 4, 8, 60, 1000);
    lab.until("it runs", |lab| committed(&lab.state(runs)));
    lab.second();
    let waits = lab.fake.lock().slurm.submit(2, 4, 8, 60, 10);
    lab.until("another is planned", |lab| lab.told(waits).starts_with("planned for"));
    lab.until("no look is under way", |lab| !lab.relay.is_looking());
    let clock_s = lab.manager.clock_s();
    lab.fake.lock().slurm.is_away = true;
    for _ in 0..50 {
        lab.now_s += 100;
        lab.turn();
        sleep(Duration::from_millis(2));
    }
    assert!(lab.news.iter().any(|it| it.contains("it is away")), "{:?}", lab.news);
    assert_eq!(lab.manager.clock_s(), clock_s);
    assert!(!committed(&lab.state(waits)));
    lab.fake.lock().slurm.is_away = false;
    lab.until("it is back", |lab| lab.manager.clock_s() == lab.now_s);
}

/// Only so many orders are accepted until some are answered.
#[test]
fn orders_that_wait_are_bounded() {
    let fake = Fake::default();
    fake.lock().slurm = Simulated::new(&["n01"], 2, T);
    let mut relay = Relay::start(fake, || {}).unwrap();
    let key = |job| Key { job, index: None, submit_s: T };
    let accepted = (0..5000).take_while(|&job| relay.notify(key(job), "soon").is_ok()).count();
    assert!((100..5000).contains(&accepted), "{accepted}");
    assert_eq!(relay.show(key(1), None, "later"), Err(Fault::Later));
    relay.send();
    let begun = Instant::now();
    while relay.show(key(1), None, "now").is_err() {
        assert!(begun.elapsed() < PATIENCE);
        relay.events();
        sleep(Duration::from_millis(1));
    }
}

/// A user who changes a job between its plan and its start gets no more than was planned.
#[test]
fn a_job_that_was_changed_since_it_was_planned_is_not_let_go() {
    let mut lab = Lab::new("changed");
    let key = lab.fake.lock().slurm.submit(1, 1, 1, 60, 20);
    let start_s = T + 2 * WINDOW_S;
    lab.fake.lock().slurm.alter(key, |job| job.start_s = Some(start_s));
    lab.until("it is planned", |lab| lab.told(key).starts_with("planned for"));
    // A look is on its way, and the commitment waits behind it.
    lab.keep_a_look(key);
    while lab.now_s + WINDOW_S < start_s {
        lab.now_s += 1;
        lab.turn();
    }
    assert!(lab.relay.is_ahead(key));
    lab.fake.lock().slurm.alter(key, |job| (job.cpus, job.min_cpus, job.tasks) = (2, 2, 2));
    lab.fake.keep(false);
    lab.until("it is let go", |lab| committed(&lab.state(key)));
    assert!(lab.row(key).rset.contains("ncpus=2"), "{:?}", lab.row(key));
    assert_eq!(lab.fake.lock().slurm.commits.len(), 1);
}

/// A request is ended between the release of its job and the start. The job starts before its hold
/// arrives, and is ended, as a running one would be.
#[test]
fn a_job_that_starts_before_the_hold_of_its_user_arrives_is_ended() {
    let mut lab = Lab::new("recalled");
    let key = lab.released();
    let other = lab.fake.lock().slurm.submit(2, 4, 8, 60, 5);
    lab.until("another is planned", |lab| lab.told(other).starts_with("planned for"));
    lab.keep_a_look(key);
    let id = lab.row(key).id;
    lab.manager.kill(&operator(), id).unwrap();
    lab.turn();
    assert_eq!(lab.row(key).state, State::Ended);
    for _ in 0..WINDOW_S + 2 {
        lab.now_s += 1;
        lab.fake.lock().slurm.tick();
    }
    assert_eq!(lab.state(key), JobState::Running);
    lab.fake.keep(false);
    lab.until("it is stopped", |lab| lab.fake.lock().stopped.contains(&key));
    for _ in 0..60 {
        lab.second();
    }
    lab.until("the other one is over", |lab| lab.manager.open_rows().is_empty());
    assert_eq!(lab.row(other).outcome.as_deref(), Some("completed"), "{:?}", lab.news);
    assert!(lab.fake.lock().stopped.iter().all(|&it| it == key));
}

/// A look that shows a job as released is not read yet when the request of the job is ended. The job
/// does not run on outside the plan.
#[test]
fn a_request_that_is_ended_before_a_look_is_read_has_its_job_held() {
    let mut lab = Lab::new("ended-before-look");
    let key = lab.released();
    lab.keep_a_look(key);
    lab.fake.keep(false);
    let begun = Instant::now();
    while !lab.relay.has_reports() {
        assert!(begun.elapsed() < PATIENCE);
        sleep(Duration::from_millis(1));
    }
    let id = lab.row(key).id;
    lab.manager.kill(&operator(), id).unwrap();
    lab.turn();
    // Time for the order that has to follow, and none for another look.
    let begun = Instant::now();
    while committed(&lab.state(key)) && begun.elapsed() < Duration::from_secs(1) {
        sleep(Duration::from_millis(1));
    }
    for _ in 0..WINDOW_S + 2 {
        lab.now_s += 1;
        lab.fake.lock().slurm.tick();
    }
    let is_out = |lab: &Lab| {
        lab.state(key) == JobState::Pending(Hold::Admin) || lab.fake.lock().stopped.contains(&key)
    };
    lab.until("it is held or ended", is_out);
    let start_s = lab.fake.lock().slurm.job(key).unwrap().start_s;
    lab.until("its user is told", |lab| lab.told(key).contains("not planned any more"));
    assert_eq!(lab.row(key).state, State::Ended);
    assert!(start_s.is_some(), "it was planned for {start_s:?}");
}

/// Users of declined jobs are told in the end, whatever failed before, and the planned start that is
/// still shown meanwhile is no wish of theirs.
#[test]
fn an_explanation_that_fails_is_given_again() {
    for fault in [Fault::Later, Fault::Denied("no key".into())] {
        let mut lab = Lab::new(&format!("explained-again-{fault}"));
        let key = lab.fake.lock().slurm.submit(1, 1, 1, 60, 5);
        lab.fake.lock().slurm.want_contiguous(key);
        lab.fake.lock().failing_shows = Some((1, fault.clone()));
        let begun = Instant::now();
        while !lab.told(key).contains("--contiguous") {
            assert!(begun.elapsed() < PATIENCE, "{fault}: {:?}", lab.news);
            lab.second();
        }
        lab.fake.lock().slurm.alter(key, |job| job.foreign = None);
        for _ in 0..20 {
            lab.second();
        }
        lab.until("it is over", |lab| lab.manager.open_rows().is_empty());
        assert_eq!(lab.row(key).outcome.as_deref(), Some("completed"), "{fault}: {:?}", lab.news);
    }
}

/// A user who can't be told anything keeps nobody else waiting.
#[test]
fn an_explanation_that_is_refused_keeps_no_other_back() {
    let mut lab = Lab::new("refused-explanation");
    let keys: Vec<Key> =
        (1..=2).map(|job| lab.fake.lock().slurm.submit(job, 1, 1, 60, 5)).collect();
    for &key in &keys {
        lab.fake.lock().slurm.want_contiguous(key);
    }
    lab.fake.lock().silent = Some(keys[0]);
    lab.until("the other is told", |lab| lab.told(keys[1]).contains("--contiguous"));
    lab.fake.lock().silent = None;
    let begun = Instant::now();
    while !lab.told(keys[0]).contains("--contiguous") {
        assert!(begun.elapsed() < PATIENCE, "{:?}", lab.news);
        lab.second();
    }
}

/// A declined job that is gone has no user who waits for an explanation.
#[test]
fn nobody_explains_without_end() {
    let mut lab = Lab::new("explained-without-end");
    let key = lab.fake.lock().slurm.submit(1, 1, 1, 60, 5);
    lab.fake.lock().slurm.want_contiguous(key);
    lab.fake.lock().failing_shows = Some((u64::MAX, Fault::Gone));
    lab.until("it is explained", |lab| lab.fake.lock().shows > 0);
    // What fails is reported once a second.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(3500) {
        lab.second();
    }
    assert_eq!(lab.fake.lock().shows, 1);
}

/// The limit of an extended job is raised, though the batch system does not answer at first.
#[test]
fn an_extension_that_fails_is_given_again() {
    let mut lab = Lab::new("extended");
    let key = lab.fake.lock().slurm.submit(1, 1, 1, 600, 2000);
    for _ in 0..5 {
        lab.second();
    }
    lab.until("it runs", |lab| lab.row(key).state == State::Running);
    lab.fake.lock().failing_limits = 2;
    let (id, limit_s) = (lab.row(key).id, lab.fake.lock().slurm.job(key).unwrap().limit_s);
    lab.manager.extend(&operator(), id, 60).unwrap();
    let begun = Instant::now();
    while lab.fake.lock().slurm.job(key).unwrap().limit_s <= limit_s {
        assert!(begun.elapsed() < PATIENCE, "{:?}", lab.news);
        lab.second();
    }
    assert_eq!(lab.fake.lock().failing_limits, 0);
}
