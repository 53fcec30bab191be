// SPDX-License-Identifier: GPL-2.0
//! From what is planned to what is committed, and from what is seen to what the planner is
//! told.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use pbs_cluster::RequestId;
use pbs_ledger::{NodeState as Out, Phase, Row, State};
use pbs_manager::{Allocation, Caller, Change, Error, Happened, Manager};

use crate::controller::{Controller, Event, Fault, Revoked, Stop};
use crate::link::{Link, Order};
use crate::seen::{Hold, JobSeen, JobState, Key, Memory, NodeState, World};
use crate::wish::{wish_of, Words};

/// In whose name the planner is asked.
const OPERATOR: &str = "controller";
/// What the reason of a node begins with that the batch system took out of use.
const TOLD: &str = "controller: ";
/// Plans that are shown at once at most; the soonest first.
const SHOWN_AT_ONCE: usize = 100;
/// New jobs that are planned in a turn at most: what is due must not wait for thousands.
const NEW_AT_ONCE: usize = 200;
/// How a request ended that is nowhere any more.
const LOST: &str = "lost by the controller; submit it again";
/// How it ended if its job was sent back, and is planned as another.
const AGAIN: &str = "sent back, and planned as another request";

/// How it is steered.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// So long before its start a job is committed (W).
    pub window: Duration,
    /// So long after its start it may begin; then it is held and planned anew (G).
    pub grace: Duration,
    /// Without a hint it is looked so often.
    pub look: Duration,
    /// So long after a hint it is looked once more: hints come before all that they hint at.
    pub again: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            window: Duration::from_secs(5),
            grace: Duration::from_secs(3),
            look: Duration::from_secs(10),
            again: Duration::from_secs(1),
        }
    }
}

/// A job that was let go.
#[derive(Clone, Debug)]
struct Committed {
    start_s: u64,
    nodes: Vec<String>,
    /// Until then it has to run.
    until: Duration,
}

/// A job that is planned.
#[derive(Clone, Debug)]
struct Tracked {
    id: RequestId,
    /// What it asked for when it was planned; `None`: it is as it was when the ledger was
    /// written, as far as is known.
    asked: Option<Asked>,
    shown_s: Option<u64>,
    committed: Option<Committed>,
    /// Its request is over, or to start again: it is to be stopped or held.
    is_unwanted: bool,
}

/// What of a job decides where and when it is planned.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Asked {
    nodes: u64,
    cpus: u64,
    limit_s: Option<u64>,
    is_exclusive: bool,
    memory: Memory,
    words: String,
    foreign: Option<String>,
}

impl Asked {
    fn of(job: &JobSeen) -> Self {
        Self {
            nodes: job.nodes_wanted,
            cpus: job.cpus,
            limit_s: job.limit_s,
            is_exclusive: job.is_exclusive,
            memory: job.memory,
            words: job.words.clone(),
            foreign: job.foreign.clone(),
        }
    }
}

/// Has a batch system start what a manager plans.
#[derive(Debug)]
pub struct Steer {
    settings: Settings,
    world: World,
    /// By job, what it is to the planner.
    jobs: BTreeMap<Key, Tracked>,
    keys: HashMap<RequestId, Key>,
    /// Those that the planner would not take, as they were then.
    declined: HashMap<Key, Asked>,
    /// Since the Unix epoch.
    next_look: Duration,
    is_stale: bool,
    /// New jobs were left for the next turn, which comes at once.
    is_behind: bool,
    /// What is to be said to the operator, once each.
    news: Vec<String>,
    unreachable: Option<String>,
}

impl Steer {
    /// For a manager that was opened just now.
    pub fn new(manager: &Manager<Link>, settings: Settings) -> Self {
        let mut this = Self {
            settings,
            world: World::default(),
            jobs: BTreeMap::new(),
            keys: HashMap::new(),
            declined: HashMap::new(),
            next_look: Duration::ZERO,
            is_stale: true,
            is_behind: false,
            news: Vec::new(),
            unreachable: None,
        };
        for row in manager.open_rows() {
            if let Some(key) = key_of(&row) {
                this.track(key, row.id, None);
            }
        }
        this
    }

    /// What went wrong, or was done that somebody should know, since it was asked last.
    pub fn news(&mut self) -> Vec<String> {
        std::mem::take(&mut self.news)
    }

    /// When it has to be called again at the latest if nothing happens; since the Unix epoch.
    pub fn next(&self, manager: &Manager<Link>, now: Duration) -> Duration {
        if self.is_behind {
            return now;
        }
        let second = Duration::from_secs(1);
        let graces = self.jobs.values().filter_map(|of| of.committed.as_ref());
        let next = graces.map(|it| it.until).min();
        let planned_s = manager.next_s().map(Duration::from_secs);
        let starts = planned_s.map(|at| at.saturating_sub(self.settings.window));
        [
            next,
            planned_s.filter(|&at| at > now),
            starts.filter(|&at| at > now),
        ]
        .into_iter()
        .flatten()
        .chain([self.next_look])
        .min()
        .unwrap_or(self.next_look)
        .clamp(now, now + second)
    }

    /// One turn: what has happened is looked at, time goes on, and what is due is done. `now`
    /// is since the Unix epoch.
    ///
    /// # Errors
    ///
    /// What the disk says; the manager has to be opened again.
    pub fn turn(
        &mut self,
        manager: &mut Manager<Link>,
        controller: &mut dyn Controller,
        now: Duration,
    ) -> Result<(), Error> {
        let now_s = now.as_secs();
        let events = controller.events();
        if events.contains(&Event::Resync) {
            self.news
                .push("hints were lost: all is looked at again".into());
        }
        let mut committed = self.jobs.values().filter_map(|of| of.committed.as_ref());
        let is_late = committed.any(|it| it.until <= now);
        self.is_stale |= !events.is_empty() || now >= self.next_look || is_late || self.is_behind;
        self.is_behind = false;
        if self.is_stale {
            match controller.snapshot() {
                Ok(world) => {
                    self.world = world;
                    self.is_stale = false;
                    self.next_look = now
                        + match events.is_empty() {
                            true => self.settings.look,
                            false => self.settings.again,
                        };
                    self.answers();
                    self.wake(manager, now)?;
                    self.reconcile(manager, controller, now)?;
                }
                Err(why) => {
                    // Nothing that was not committed starts meanwhile, so time stands still.
                    self.silent(&why);
                    return Ok(());
                }
            }
        }
        self.check_starts(manager, controller, now);
        manager.advance(now_s.max(manager.clock_s()))?;
        self.carry_out(manager, controller, now);
        self.commit(manager, controller, now);
        self.show(manager, controller);
        Ok(())
    }

    /// Nobody could let jobs go for a while: only those started that were let go before.
    fn wake(&mut self, manager: &mut Manager<Link>, now: Duration) -> Result<(), Error> {
        let past = now.saturating_sub(Duration::from_secs(manager.clock_s()));
        if past <= self.settings.grace {
            return Ok(());
        }
        let began = |job: &&JobSeen| !matches!(job.state, JobState::Pending(_));
        let began = self.world.jobs.iter().filter(began).filter_map(|job| {
            let of = self.jobs.get(&job.key)?;
            Some((of.id, job.start_s?))
        });
        let began: HashMap<RequestId, u64> = began.collect();
        manager.wake(now.as_secs(), &|id| began.get(&id).copied())
    }

    /// Compares what is seen with what is planned.
    fn reconcile(
        &mut self,
        manager: &mut Manager<Link>,
        controller: &mut dyn Controller,
        now: Duration,
    ) -> Result<(), Error> {
        let jobs = std::mem::take(&mut self.world.jobs);
        let seen: HashSet<Key> = jobs.iter().map(|job| job.key).collect();
        self.declined.retain(|key, _| seen.contains(key));
        // Who is followed comes first.
        let mut order: Vec<&JobSeen> = jobs.iter().collect();
        order.sort_by_key(|job| job.key);
        let mut new = Vec::new();
        for job in order {
            match (&job.state, self.jobs.contains_key(&job.key)) {
                (_, true) => self.known(manager, controller, job, now),
                (JobState::Pending(hold), false) => {
                    // One that could start by itself is held at once.
                    let is_first = new.len() < NEW_AT_ONCE || *hold == Hold::No;
                    let is_declined = self.declined.get(&job.key) == Some(&Asked::of(job));
                    if is_first && !(is_declined && *hold == Hold::Admin) {
                        new.push(job);
                    }
                    self.is_behind |= !is_first;
                }
                (_, false) => {}
            }
        }
        self.welcome(manager, controller, &new, now)?;
        let gone: Vec<Key> = self
            .jobs
            .keys()
            .copied()
            .filter(|key| !seen.contains(key))
            .collect();
        for key in gone {
            let Some(of) = self.forget(key) else { continue };
            if !is_open(manager, of.id) {
                continue;
            }
            // A job that is sent back is another: it has been submitted once more.
            let is_again = jobs.iter().any(|job| {
                (job.key.job, job.key.index) == (key.job, key.index)
                    && job.key.submit_s > key.submit_s
                    && job.user == row_user(manager, of.id)
            });
            let outcome = if is_again { AGAIN } else { LOST };
            self.news.push(format!("job {}: {outcome}", key.name()));
            ended(manager, of.id, now.as_secs(), outcome);
            manager
                .engine_mut()
                .tell(now.as_secs(), Happened::Released { request: of.id });
        }
        self.world.jobs = jobs;
        self.nodes(manager, now.as_secs());
        Ok(())
    }

    /// Jobs that were not planned before are held, and planned if they can be.
    fn welcome(
        &mut self,
        manager: &mut Manager<Link>,
        controller: &mut dyn Controller,
        new: &[&JobSeen],
        now: Duration,
    ) -> Result<(), Error> {
        if new.is_empty() {
            return Ok(());
        }
        let is_loose = |job: &&&JobSeen| job.state != JobState::Pending(Hold::Admin);
        let loose: Vec<Key> = new.iter().filter(is_loose).map(|job| job.key).collect();
        let mut not_held = HashSet::new();
        for (&key, held) in loose.iter().zip(controller.hold_all(&loose)) {
            if let Err(why) = held {
                self.failed(key, "hold", &why);
                not_held.insert(key);
            }
        }
        // What can't be held now is tried again a moment later, not at once.
        self.is_behind &= not_held.is_empty();
        manager.advance(now.as_secs().max(manager.clock_s()))?;
        let is_new = |job: &&&JobSeen| {
            let is_declined = self.declined.get(&job.key) == Some(&Asked::of(job));
            !is_declined && !not_held.contains(&job.key)
        };
        let new: Vec<&JobSeen> = new.iter().filter(is_new).copied().collect();
        // Those that follow nobody wait for the disk together; who is followed comes first.
        let (alone, following): (Vec<&JobSeen>, Vec<&JobSeen>) =
            new.into_iter().partition(|job| job.after.is_empty());
        self.plan(manager, controller, &alone, now)?;
        for job in following {
            self.plan(manager, controller, &[job], now)?;
        }
        Ok(())
    }

    /// Plans jobs that are held.
    fn plan(
        &mut self,
        manager: &mut Manager<Link>,
        controller: &mut dyn Controller,
        jobs: &[&JobSeen],
        now: Duration,
    ) -> Result<(), Error> {
        let mut wishes = Vec::with_capacity(jobs.len());
        let mut wished = Vec::with_capacity(jobs.len());
        for &job in jobs {
            // The time from which on a job may start that was sent back is none of its user's.
            let from = Key {
                submit_s: 0,
                ..job.key
            };
            let is_again = self.jobs.range(from..job.key).next().is_some();
            let plain = JobSeen {
                start_s: job.start_s.filter(|_| !is_again),
                ..job.clone()
            };
            match wish_of(&plain, &|name| self.request_of(name), now.as_secs()) {
                Ok(wish) => {
                    wishes.push((operator(), wish));
                    wished.push(job);
                }
                Err(why) => self.decline(controller, job, &why),
            }
        }
        for (job, planned) in wished.into_iter().zip(manager.submit_all(&wishes)?) {
            match planned {
                Ok(ids) => {
                    for id in ids {
                        self.track(job.key, id, Some(Asked::of(job)));
                    }
                }
                Err(error @ Error::Ledger(_)) => return Err(error),
                Err(why) => self.decline(controller, job, &why.to_string()),
            }
        }
        Ok(())
    }

    /// A job stays held, and its user is told why.
    fn decline(&mut self, controller: &mut dyn Controller, job: &JobSeen, why: &str) {
        if let Err(fault) = controller.show(job.key, None, &format!("declined: {why}")) {
            self.failed(job.key, "show", &fault);
        }
        self.news
            .push(format!("job {}: declined: {why}", job.key.name()));
        self.declined.insert(job.key, Asked::of(job));
    }

    /// A job that was planned before.
    fn known(
        &mut self,
        manager: &mut Manager<Link>,
        controller: &mut dyn Controller,
        job: &JobSeen,
        now: Duration,
    ) {
        let now_s = now.as_secs();
        let Some(of) = self.jobs.get(&job.key).cloned() else {
            return;
        };
        let id = of.id;
        let row = manager.open_row(id);
        match &job.state {
            JobState::Over(outcome) => {
                self.forget(job.key);
                if row.is_some() {
                    ended(manager, id, job.end_s.unwrap_or(now_s).min(now_s), outcome);
                    let released = Happened::Released { request: id };
                    manager.engine_mut().tell(now_s, released);
                }
            }
            // Who follows it is released by how it ended, so that has to be known.
            JobState::Completing(None) => {}
            JobState::Completing(Some(outcome)) => {
                if row.is_some_and(|row| row.phase != Some(Phase::Releasing)) {
                    ended(manager, id, job.end_s.unwrap_or(now_s).min(now_s), outcome);
                }
            }
            JobState::Running => self.runs(manager, controller, job, row.as_ref(), now),
            JobState::Pending(hold) => self.waits(manager, controller, job, *hold, row, now),
        }
    }

    /// A planned job that runs.
    fn runs(
        &mut self,
        manager: &mut Manager<Link>,
        controller: &mut dyn Controller,
        job: &JobSeen,
        row: Option<&Row>,
        now: Duration,
    ) {
        let Some(of) = self.jobs.get_mut(&job.key) else {
            return;
        };
        let Some(row) = row else {
            // It is over for the planner.
            of.is_unwanted = true;
            return;
        };
        of.committed = None;
        let mut planned: Vec<&str> = row.nodes.iter().map(|part| &*part.node).collect();
        planned.sort_unstable();
        planned.dedup();
        let mut has: Vec<&str> = job.nodes.iter().map(|name| &**name).collect();
        has.sort_unstable();
        // Within the window it may be a moment early, where another has ended.
        let soon_s = (now + self.settings.window).as_secs();
        let is_running = row.state == State::Running;
        let is_started = is_running || row.start_s.is_some_and(|start_s| start_s <= soon_s);
        if !is_running && is_started && planned == has {
            return;
        }
        if planned != has || !is_started {
            let what = format!(
                "job {}: it runs on {} without being planned there now; it is to wait again",
                job.key.name(),
                has.join(" ")
            );
            self.news.push(what);
            let id = row.id;
            if let Err(why) = controller.stop(job.key, Stop::Again) {
                self.failed(job.key, "stop", &why);
            }
            not_started(
                manager,
                id,
                now.as_secs(),
                "it ran where it was not planned",
            );
            self.is_stale = true;
            return;
        }
        let start_s = job.start_s.unwrap_or(now.as_secs()).min(now.as_secs());
        if row.phase == Some(Phase::Allocating) {
            let allocated = Happened::Allocated { request: row.id };
            let at_s = start_s.max(row.start_s.unwrap_or(0));
            manager.engine_mut().tell(at_s, allocated);
        }
        let words = Words::read(&job.words, job.key.submit_s).unwrap_or_default();
        let asked = Asked::of(job);
        let is_news = of.asked.as_ref() != Some(&asked);
        of.asked = Some(asked);
        if let (Some(end_s), true) = (words.predicted_end_s, is_news) {
            let request = row.id;
            let predicted = Happened::PredictedEnd { request, end_s };
            manager.engine_mut().tell(now.as_secs(), predicted);
        }
    }

    /// A planned job that does not run.
    fn waits(
        &mut self,
        manager: &mut Manager<Link>,
        controller: &mut dyn Controller,
        job: &JobSeen,
        hold: Hold,
        row: Option<Row>,
        now: Duration,
    ) {
        let key = job.key;
        let Some(of) = self.jobs.get_mut(&key) else {
            return;
        };
        let Some(row) = row else {
            of.is_unwanted = true;
            return;
        };
        let asked = Asked::of(job);
        let is_altered = *of.asked.get_or_insert_with(|| asked.clone()) != asked;
        let mut required = job.required.clone();
        required.sort_unstable();
        let is_planned = row.state == State::Planned && row.start_s == job.start_s;
        if of.committed.is_none() && hold == Hold::No && is_planned {
            // By the one that was here before.
            let mut nodes: Vec<String> = row.nodes.iter().map(|part| part.node.clone()).collect();
            nodes.sort_unstable();
            nodes.dedup();
            let start_s = row.start_s.filter(|_| nodes == required);
            of.committed = start_s.map(|start_s| Committed {
                start_s,
                nodes,
                until: Duration::from_secs(start_s).max(now) + self.settings.grace,
            });
        }
        let is_ours = of.committed.as_ref().is_some_and(|it| it.nodes == required);
        let is_loose = hold != Hold::Admin && (is_altered || !is_ours);
        if is_loose {
            // Let go by somebody else, or altered since it was committed.
            of.committed = None;
            match controller.revoke(key) {
                Ok(Revoked::Held) => {}
                Ok(Revoked::AlreadyStarted) => {
                    self.is_stale = true;
                    return;
                }
                Err(why) => {
                    self.failed(key, "hold", &why);
                    return;
                }
            }
        }
        let Some(of) = self.jobs.get_mut(&key) else {
            return;
        };
        let was_to_run = row.state == State::Running;
        if hold == Hold::Admin && of.committed.take().is_some() && !was_to_run {
            // An operator holds what was let go: it is planned anew from then on.
            of.shown_s = None;
        }
        if was_to_run && (is_loose || hold == Hold::Admin) && of.committed.is_none() {
            not_started(manager, row.id, now.as_secs(), "it was sent back");
        }
        if is_altered {
            of.asked = Some(asked);
            of.shown_s = None;
            self.alter(manager, controller, job, &row, now);
        }
    }

    /// Its user wants something else.
    fn alter(
        &mut self,
        manager: &mut Manager<Link>,
        controller: &mut dyn Controller,
        job: &JobSeen,
        row: &Row,
        now: Duration,
    ) {
        let requests = |name: &str| self.request_of(name);
        // What is shown as its start is no wish of its user.
        let job = JobSeen {
            start_s: None,
            ..job.clone()
        };
        let altered = match wish_of(&job, &requests, now.as_secs()) {
            Err(why) => Err(why),
            Ok(wish) => {
                let change = Change {
                    rset: Some(wish.rset),
                    duration_s: Some(wish.duration_s),
                    when: Some(wish.when),
                };
                let altered = manager.alter(&operator(), row.id, &change);
                altered.map_err(|error| error.to_string())
            }
        };
        if let Err(why) = altered {
            // It is not planned as it was, and not as it is.
            let outcome = format!("altered, and declined: {why}");
            self.news.push(format!("job {}: {outcome}", job.key.name()));
            self.forget(job.key);
            self.declined.insert(job.key, Asked::of(&job));
            if let Err(fault) = manager.kill(&operator(), row.id) {
                self.news.push(format!("job {}: {fault}", job.key.name()));
            }
            if let Err(fault) = controller.show(job.key, None, &outcome) {
                self.failed(job.key, "show", &fault);
            }
        }
    }

    /// Nodes that are out of use, or back.
    fn nodes(&mut self, manager: &mut Manager<Link>, now_s: u64) {
        let mut told = Vec::new();
        let completing: HashSet<&String> = self
            .world
            .jobs
            .iter()
            .filter(|job| matches!(job.state, JobState::Completing(_)))
            .flat_map(|job| &job.nodes)
            .collect();
        for seen in &self.world.nodes {
            let node = seen.name.clone();
            let out = manager.nodes_out().find(|row| row.name == node);
            let state = out.map(|row| row.state);
            let is_told = out.is_some_and(|row| row.why.starts_with(TOLD));
            let why = format!("{TOLD}{}", seen.why);
            match seen.state {
                NodeState::Down if state != Some(Out::Down) => {
                    told.push(Happened::NodeFailed { node, why });
                }
                NodeState::Drained if state.is_none() => {
                    told.push(Happened::NodeDrained { node, why });
                }
                NodeState::Up if !completing.contains(&node) => {
                    // What an operator took out with our own command stays out.
                    if state == Some(Out::Down) || is_told {
                        told.push(Happened::NodeBack { node });
                    }
                }
                NodeState::Up | NodeState::Drained | NodeState::Down => {}
            }
        }
        for happened in told {
            manager.engine_mut().tell(now_s, happened);
        }
    }

    /// Takes back what was committed and did not start.
    fn check_starts(
        &mut self,
        manager: &mut Manager<Link>,
        controller: &mut dyn Controller,
        now: Duration,
    ) {
        let late = self.jobs.iter().filter(|(_, of)| {
            let of = of.committed.as_ref();
            of.is_some_and(|it| it.until <= now)
        });
        let late: Vec<Key> = late.map(|(&key, _)| key).collect();
        for key in late {
            match controller.revoke(key) {
                Ok(Revoked::Held) => {
                    let Some(of) = self.jobs.get_mut(&key) else {
                        continue;
                    };
                    of.committed = None;
                    of.shown_s = None;
                    let id = of.id;
                    self.news
                        .push(format!("job {}: it did not start in time", key.name()));
                    not_started(manager, id, now.as_secs(), "it did not start in time");
                }
                Ok(Revoked::AlreadyStarted) | Err(Fault::Gone | Fault::Started) => {
                    self.is_stale = true;
                    if let Some(it) = self.jobs.get_mut(&key).and_then(|of| of.committed.as_mut()) {
                        it.until = now + self.settings.grace;
                    }
                }
                Err(why) => self.failed(key, "hold", &why),
            }
        }
    }

    /// Does what the manager wants done.
    fn carry_out(
        &mut self,
        manager: &mut Manager<Link>,
        controller: &mut dyn Controller,
        now: Duration,
    ) {
        for order in std::mem::take(&mut manager.engine_mut().orders) {
            match order {
                Order::Start(allocation) => self.start(controller, &allocation, now),
                Order::Stop(id) => {
                    // One that is over is gone, or its nodes are being cleaned.
                    let row = manager.open_row(id);
                    let is_again = row.is_some_and(|row| row.phase != Some(Phase::Releasing));
                    if let Some(of) = self.keys.get(&id).and_then(|key| self.jobs.get_mut(key)) {
                        of.is_unwanted = !is_again;
                        of.shown_s = None;
                        if is_again && of.committed.is_some() {
                            // It has to be held before it is planned again.
                            of.committed = None;
                            if let Some(&key) = self.keys.get(&id) {
                                self.send_back(controller, key);
                            }
                        }
                    }
                }
                Order::Extend(id, until_s) => self.extend(manager, controller, id, until_s),
                Order::Notify(id) => {
                    if let Some(&key) = self.keys.get(&id) {
                        if let Err(why) = controller.notify(key, "this job ends soon") {
                            self.failed(key, "notify", &why);
                        }
                    }
                }
            }
        }
        let unwanted = self.jobs.iter().filter(|(_, of)| of.is_unwanted);
        let unwanted: Vec<Key> = unwanted.map(|(&key, _)| key).collect();
        for key in unwanted {
            let seen = self.world.jobs.iter().find(|job| job.key == key);
            let is_over = seen
                .is_none_or(|job| matches!(job.state, JobState::Over(_) | JobState::Completing(_)));
            if !is_over {
                match controller.stop(key, Stop::End) {
                    Ok(()) | Err(Fault::Gone) => {}
                    Err(why) => {
                        self.failed(key, "stop", &why);
                        continue;
                    }
                }
                self.is_stale = true;
            }
            if let Some(of) = self.jobs.get_mut(&key) {
                of.is_unwanted = false;
            }
        }
    }

    /// A request has its time: its job is let go if it was not before.
    fn start(&mut self, controller: &mut dyn Controller, allocation: &Allocation, now: Duration) {
        let id = allocation.request;
        let Some(&key) = self.keys.get(&id) else {
            return;
        };
        let seen = self.world.jobs.iter().find(|job| job.key == key);
        let Some(JobState::Pending(_)) = seen.map(|job| &job.state) else {
            // It was a moment early: now it is told that it runs.
            self.is_stale = true;
            return;
        };
        let nodes = allocation.nodes.iter().map(|(name, _)| name.clone());
        self.let_go(controller, key, nodes.collect(), allocation.from_s, now);
    }

    /// Lets go all that starts within the window.
    fn commit(&mut self, manager: &Manager<Link>, controller: &mut dyn Controller, now: Duration) {
        let until_s = (now + self.settings.window).as_secs();
        self.take_back(manager, controller, until_s);
        if manager
            .planner()
            .next_start_s()
            .is_none_or(|start_s| start_s > until_s)
        {
            return;
        }
        let due = self.jobs.iter().filter_map(|(&key, of)| {
            let standing = manager.planner().standing(of.id)?;
            let start_s = standing.start_s.filter(|&start_s| start_s <= until_s)?;
            (!standing.is_running && !of.is_unwanted).then_some((start_s, key, of.id))
        });
        let mut due: Vec<(u64, Key, RequestId)> = due.collect();
        due.sort_unstable();
        for (start_s, key, id) in due {
            let placed = manager.planner().placed(id).iter();
            let names = placed.map(|placed| manager.machine().node_name(placed.node as usize));
            let nodes = names.map(str::to_string).collect();
            self.let_go(controller, key, nodes, start_s, now);
        }
    }

    /// Holds what was let go and has its place later now, or none.
    fn take_back(
        &mut self,
        manager: &Manager<Link>,
        controller: &mut dyn Controller,
        until_s: u64,
    ) {
        let moved = self.jobs.iter().filter(|(_, of)| {
            let standing = manager.planner().standing(of.id);
            let standing = standing.filter(|it| of.committed.is_some() && !it.is_running);
            standing.is_some_and(|it| it.start_s.is_none_or(|start_s| start_s > until_s))
        });
        let moved: Vec<Key> = moved.map(|(&key, _)| key).collect();
        for key in moved {
            if let Some(of) = self.jobs.get_mut(&key) {
                (of.committed, of.shown_s) = (None, None);
            }
            self.send_back(controller, key);
        }
    }

    fn let_go(
        &mut self,
        controller: &mut dyn Controller,
        key: Key,
        mut nodes: Vec<String>,
        start_s: u64,
        now: Duration,
    ) {
        nodes.sort_unstable();
        nodes.dedup();
        let Some(of) = self.jobs.get_mut(&key) else {
            return;
        };
        let as_planned = |it: &Committed| it.start_s == start_s && it.nodes == nodes;
        if of.committed.as_ref().is_some_and(as_planned) {
            return;
        }
        // Between its old time and its new one it must not start by itself.
        if of.committed.take().is_some() && controller.revoke(key) != Ok(Revoked::Held) {
            self.is_stale = true;
            return;
        }
        let at = Duration::from_secs(start_s);
        // A time that has come already is no time to wait for; nor has who waits for the end of
        // another to wait for the batch system's next round besides.
        let start = Some(start_s).filter(|_| at > now && !self.world.is_blocked(key, &nodes));
        let until = at.max(now) + self.settings.grace;
        match controller.commit(key, &nodes, start) {
            Ok(()) => {
                of.shown_s = Some(start_s);
                of.committed = Some(Committed {
                    start_s,
                    nodes,
                    until,
                });
            }
            Err(why) => {
                self.is_stale = true;
                self.failed(key, "commit", &why);
            }
        }
    }

    /// What had its nodes, or was to have them, waits again.
    fn send_back(&mut self, controller: &mut dyn Controller, key: Key) {
        match controller.revoke(key) {
            Ok(Revoked::Held) | Err(Fault::Gone) => {}
            Ok(Revoked::AlreadyStarted) => {
                self.is_stale = true;
                if let Err(why) = controller.stop(key, Stop::Again) {
                    self.failed(key, "stop", &why);
                }
            }
            Err(why) => self.failed(key, "hold", &why),
        }
    }

    /// A request that got more time than it asked for has its job's limit raised. That it began
    /// a moment before the planner heard of it is no reason.
    fn extend(
        &mut self,
        manager: &Manager<Link>,
        controller: &mut dyn Controller,
        id: RequestId,
        until_s: u64,
    ) {
        let (Some(&key), Some(row)) = (self.keys.get(&id), manager.open_row(id)) else {
            return;
        };
        let seen = self.world.jobs.iter().find(|job| job.key == key);
        let Some(job) = seen.filter(|job| job.state == JobState::Running) else {
            return;
        };
        let (Some(start_s), Some(limit_s)) = (job.start_s, job.limit_s) else {
            return;
        };
        let wanted_s = until_s.saturating_sub(start_s);
        if wanted_s > limit_s.saturating_add(row.allocate_s) {
            match controller.limit(key, wanted_s) {
                Ok(()) => self.is_stale = true,
                Err(why) => self.failed(key, "limit", &why),
            }
        }
    }

    /// Tells users when their jobs are planned, the soonest first.
    fn show(&mut self, manager: &Manager<Link>, controller: &mut dyn Controller) {
        let planned = self.jobs.iter().filter_map(|(&key, of)| {
            let standing = manager.planner().standing(of.id)?;
            let start_s = standing.start_s.filter(|_| !standing.is_running)?;
            let is_old = of.committed.is_none() && of.shown_s != Some(start_s);
            is_old.then_some((start_s, key, of.id))
        });
        let mut planned: Vec<(u64, Key, RequestId)> = planned.collect();
        planned.sort_unstable();
        for (start_s, key, id) in planned.into_iter().take(SHOWN_AT_ONCE) {
            let placed = manager.planner().placed(id).iter();
            let names = placed.map(|placed| manager.machine().node_name(placed.node as usize));
            let names: Vec<&str> = names.collect();
            match controller.show(
                key,
                Some(start_s),
                &format!("planned on {}", names.join(",")),
            ) {
                Ok(()) => {
                    if let Some(of) = self.jobs.get_mut(&key) {
                        of.shown_s = Some(start_s);
                    }
                }
                Err(why) => {
                    self.is_stale = true;
                    self.failed(key, "show", &why);
                    return;
                }
            }
        }
    }

    fn track(&mut self, key: Key, id: RequestId, asked: Option<Asked>) {
        self.keys.insert(id, key);
        let of = Tracked {
            id,
            asked,
            shown_s: None,
            committed: None,
            is_unwanted: false,
        };
        self.jobs.insert(key, of);
    }

    fn forget(&mut self, key: Key) -> Option<Tracked> {
        let of = self.jobs.remove(&key)?;
        self.keys.remove(&of.id);
        Some(of)
    }

    /// The request that a job is, by its name; of those with one number the last.
    fn request_of(&self, name: &str) -> Option<RequestId> {
        let job = name.split('_').next()?.parse().ok()?;
        let from = Key {
            job,
            index: None,
            submit_s: 0,
        };
        let of_job = self
            .jobs
            .range(from..)
            .take_while(|(key, _)| key.job == job);
        of_job
            .filter(|(key, _)| key.name() == name)
            .map(|(_, of)| of.id)
            .last()
    }

    fn failed(&mut self, key: Key, what: &str, why: &Fault) {
        self.is_stale = true;
        match why {
            // The next look tells what became of it.
            Fault::Gone | Fault::Started | Fault::Later => {}
            Fault::Denied(_) => self.news.push(format!("job {}: {what}: {why}", key.name())),
            Fault::Unreachable(_) => self.silent(why),
        }
    }

    fn silent(&mut self, why: &Fault) {
        let why = why.to_string();
        if self.unreachable.as_ref() != Some(&why) {
            self.news.push(why.clone());
            self.unreachable = Some(why);
        }
    }

    fn answers(&mut self) {
        if self.unreachable.take().is_some() {
            self.news.push("the controller answers again".into());
        }
    }
}

fn operator() -> Caller {
    Caller {
        user: OPERATOR.into(),
        is_operator: true,
    }
}

/// The job that a request is.
fn key_of(row: &Row) -> Option<Key> {
    row.command.first()?.parse().ok()
}

fn row_user(manager: &Manager<Link>, id: RequestId) -> String {
    manager
        .open_row(id)
        .map_or_else(String::new, |row| row.user)
}

fn is_open(manager: &Manager<Link>, id: RequestId) -> bool {
    manager.open_row(id).is_some()
}

fn ended(manager: &mut Manager<Link>, request: RequestId, at_s: u64, outcome: &str) {
    let outcome = outcome.to_string();
    let happened = Happened::Ended { request, outcome };
    manager.engine_mut().tell(at_s, happened);
}

fn not_started(manager: &mut Manager<Link>, request: RequestId, at_s: u64, why: &str) {
    let why = why.to_string();
    let happened = Happened::NotStarted { request, why };
    manager.engine_mut().tell(at_s, happened);
}
