// SPDX-License-Identifier: GPL-2.0
//! From what is planned to what is committed, and from what is seen to what the planner is
//! told.

mod act;
mod closed;
mod declined;
mod end;
mod explained;
mod last_ended;
mod left;
mod look;
mod lost;
mod newcomers;
mod nodes;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use pbs_cluster_planner::RequestId;
use pbs_manager::ledger::{Page, Row, State, CONTROLLER};
use pbs_manager::{Caller, Error, Happened, Manager};
use pbs_site::format_time;

use self::explained::{Explanations, UnreadRows};
use self::last_ended::LastEnded;
use self::left::LeftJobs;
use self::lost::LostJobs;
use crate::conf::compress;
use crate::demands::Demands;
use crate::steer::controller::{Controller, Event, Failed, Fault, OrderKind};
use crate::steer::link::Link;
use crate::steer::seen::{JobSeen, JobState, Key, Memory, World};
use crate::steer::wish::begin_s;

/// Prefix of the reason of a node that the batch system took out of use.
const TOLD: &str = "controller: ";
/// Plans, and declined jobs, that are shown at once at most; the soonest first.
const SHOWN_AT_ONCE: usize = 100;
/// Least time from one plan that a user is told to an earlier one.
const TOLD_EVERY: Duration = Duration::from_secs(10);
/// New jobs that are planned in a turn at most: what is due must not wait for thousands.
const NEW_AT_ONCE: usize = 200;
/// Declined jobs that are tried again in a turn at most, beside the new ones.
const AGAIN_AT_ONCE: usize = 50;
/// Altered jobs that are planned anew in a turn at most. The others stay held meanwhile.
const ALTERED_AT_ONCE: usize = 50;
/// Number of last requests that a planner reads when it starts, for the earliest starts that users
/// want.
const RECENT: u64 = 20_000;
/// Part of them that is read at once.
const PART: Page = Page { rows: 1000, bytes: 1 << 20 };
/// Ended jobs that are remembered.
const MOST_ENDED: usize = 20_000;
/// Outcome of a request whose job had begun, and has disappeared: the batch system forgets jobs a
/// while after their end.
pub const UNSEEN: &str = "ended unseen by the planner; its outcome is not known";
/// Outcome of a request whose job has disappeared, and had not begun, between two looks that would
/// have shown its end.
pub const LOST: &str = "lost by the controller; submit it again";
/// Outcome of a request whose job has disappeared, and had not begun, while nobody looked: the batch
/// system forgets cancelled jobs, too.
pub const GONE: &str =
    "gone from Slurm without a trace (cancelled while no planner ran, or lost in a crash)";
/// Time for which the batch system shows jobs that have ended, or were cancelled.
const SHOWN_FOR: Duration = Duration::from_secs(300);
/// Outcome of a request whose job was sent back, and is planned as another.
const AGAIN: &str = "sent back, and planned as another request";

/// Settings of the steering.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Time before its start at which a job is committed (W).
    pub window: Duration,
    /// Time after its start within which a job may begin; then it is held and planned anew (G). At
    /// most as long as the site books for that: later it would be in the way of others.
    pub grace: Duration,
    /// Interval between checks without a hint.
    pub look: Duration,
    /// Time from a hint to a second check: hints arrive before the changes that they announce.
    pub again: Duration,
    /// Time after which the user of a declined job is told that it is still held.
    pub remind_declined: Duration,
    /// Time after which a declined job is cancelled; `None`: never.
    pub cancel_declined: Option<Duration>,
    /// Whether requests belong to the accounts of their users, who end them through a service of
    /// the planner. Otherwise they have the names alone.
    pub has_accounts: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            window: Duration::from_secs(5),
            grace: Duration::from_secs(3),
            look: Duration::from_secs(10),
            again: Duration::from_secs(1),
            remind_declined: Duration::from_secs(7 * 86_400),
            cancel_declined: None,
            has_accounts: false,
        }
    }
}

/// A job that was let go.
#[derive(Clone, Debug)]
struct Committed {
    start_s: u64,
    /// Whether it does not start before that, even if its nodes are free.
    is_timed: bool,
    nodes: Vec<String>,
    /// Time by which the job must run; `None`: it runs, and the plan does not have that yet.
    until: Option<Duration>,
}

/// Start and comment of a job, as its user sees them in the batch system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// No start.
    Nothing,
    /// A start that is not valid any more, or of which nothing is known.
    Stale,
    /// A planned start, on those places, since that time.
    Plan { start_s: u64, places: u64, since: Duration },
}

impl Shown {
    /// Whether users have to be told of a plan. Of one that is earlier than what they read they are
    /// told a while after the last time: where jobs end early, plans move up with each end.
    fn is_old(self, start_s: u64, places: u64, now: Duration) -> bool {
        match self {
            Self::Plan { start_s: shown_s, places: of, since } => {
                let is_other = (shown_s, of) != (start_s, places);
                is_other && (start_s > shown_s || now.saturating_sub(since) >= TOLD_EVERY)
            }
            Self::Nothing | Self::Stale => true,
        }
    }
}

/// A job that is planned.
#[derive(Clone, Debug)]
struct Tracked {
    id: RequestId,
    /// Request at the time of planning; `None`: it is as it was when the ledger was written, as far
    /// as is known.
    asked: Option<Asked>,
    shown: Shown,
    committed: Option<Committed>,
    /// Whether its request is over, and its job may still run: it is ended once its limit is over.
    is_ending: bool,
    /// Whether the planner ended the job.
    is_stopped: bool,
    /// Whether the job was let go, as far as the ledger tells, and may have begun and ended while
    /// there was no planner.
    may_have_begun: bool,
    /// Whether the job runs where it was not planned, and that was reported.
    is_outside: bool,
    /// Whether the job was missed in a look that does not show all ends, while an order for it was
    /// under way.
    is_missed: bool,
}

/// Values of a job that decide where and when it is planned, and that its user can change.
///
/// The batch system changes what it shows of nodes, cores and memory when the planner commits a
/// job. These values stay the same then, and when the batch system returns to an older state.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Asked {
    nodes: u64,
    cpus_each: u64,
    limit_s: Option<u64>,
    is_exclusive: bool,
    /// Of each node, or of each core: that does not change by itself.
    memory_bytes: Option<u64>,
    words: String,
    demands: Demands,
    foreign: Option<String>,
}

impl Asked {
    fn of(job: &JobSeen) -> Self {
        Self {
            nodes: job.nodes_asked(),
            cpus_each: job.cpus_each(),
            limit_s: job.limit_s,
            is_exclusive: job.is_exclusive,
            memory_bytes: match job.memory {
                Memory::All => None,
                Memory::OfNode(bytes) | Memory::OfCore(bytes) => Some(bytes),
            },
            words: job.words.clone(),
            demands: job.demands.clone(),
            foreign: job.foreign.clone(),
        }
    }
}

/// A job that is held, since it could not be planned.
#[derive(Clone, Debug)]
struct Declined {
    asked: Asked,
    /// Dependencies that the batch system had not found fulfilled.
    after: String,
    /// Reason that its user was shown.
    why: String,
    /// Whether the batch system would never start it as it is: it is tried again only when its user
    /// changes it.
    is_final: bool,
    /// Whether something has become free since: it is tried again.
    is_again: bool,
    /// Time before which it is not tried again: the batch system did not start it as planned.
    not_before: Duration,
    /// Time from which on it was declined, as far as this process knows.
    since: Duration,
    /// Earliest start that its user wants.
    begin_s: Option<u64>,
    /// Whether it is held by its user or an operator, or waits for other jobs.
    is_wait: bool,
    /// Whether its user was told that it is still held.
    is_reminded: bool,
}

/// A job that was committed, and that the batch system did not start.
#[derive(Debug)]
struct Refused {
    key: Key,
    /// Reason, in the batch system's words.
    why: String,
    /// Time before which it is not planned again; `None`: it can never start as it is.
    not_before: Option<Duration>,
}

/// Makes a batch system start the jobs that a manager plans.
#[derive(Debug)]
pub struct Steer {
    settings: Settings,
    world: World,
    /// Planned jobs, by their keys.
    jobs: BTreeMap<Key, Tracked>,
    keys: HashMap<RequestId, Key>,
    declined: HashMap<Key, Declined>,
    /// Declined jobs whose users are not told yet, with the times before which they are not: the
    /// batch system refused it.
    untold: BTreeMap<Key, Duration>,
    /// Whether the last turn told of declined jobs before it told of plans.
    is_declined_first: bool,
    /// Running jobs that end soon and whose users are not told yet.
    unnotified: BTreeSet<Key>,
    /// Earliest starts that users want, of jobs that were taken out of the plan. The batch system
    /// shows the planned starts instead; an entry stays until a look has the start of the user.
    begins: HashMap<Key, Option<u64>>,
    /// Jobs that wait, and whose requests somebody ended in the planner, with the outcomes: they
    /// are not planned again.
    killed: HashMap<Key, String>,
    /// Jobs that were let go when somebody ended their requests, with the outcomes, until they are
    /// seen held: one that has begun meanwhile is ended, as a running one is.
    recalled: HashMap<Key, String>,
    /// Times until which running jobs may take, of requests that were extended, until a look shows
    /// that their limits are raised.
    extended: HashMap<Key, u64>,
    /// The last jobs that have ended. One that is sent back after that has another key.
    ended: LastEnded,
    /// Numbers of starts that failed, of jobs that wait.
    failed_starts: HashMap<Key, u32>,
    /// Declined job that was tried again last; the next turn continues behind it.
    tried_again: Option<Key>,
    /// Time of the last look at the batch system, and of the next; since the Unix epoch.
    looked: Duration,
    /// Time of the look before the last one; zero: this process had none.
    looked_before: Duration,
    next_look: Duration,
    is_stale: bool,
    /// Whether there were hints since the last look.
    is_hinted: bool,
    refused: Vec<Refused>,
    /// Whether new or altered jobs were left for the next turn, which comes at once.
    is_behind: bool,
    /// Number of altered jobs that were planned anew in this turn.
    altered: usize,
    /// Altered job that the turn before planned anew last, if it did no more: this one continues
    /// behind it, so that nobody who alters without end keeps the others back.
    altered_before: Option<Key>,
    /// Altered job that this turn planned anew last, if that was as much as a turn does.
    altered_last: Option<Key>,
    /// Nodes that were reported as late, with the reasons.
    late: BTreeMap<String, String>,
    /// Nodes that known reservations keep, or kept a moment ago, with the last time of that.
    reserved: HashMap<String, u64>,
    /// Messages to the operator, once each.
    news: Vec<String>,
    unreachable: Option<String>,
    /// Rows of jobs that can't be read and were reported.
    unread: UnreadRows,
    /// Explanations for users of jobs of which too little is known.
    explanations: Explanations,
    /// Jobs in reservations, which are left to the batch system.
    left: LeftJobs,
    /// Jobs that were lost, of whose users other jobs tell that.
    lost: LostJobs,
    /// Messages about what the plan does not respect, as they were reported.
    remarks: Vec<String>,
}

impl Steer {
    /// For a manager that was opened just now.
    pub fn new(manager: &Manager<Link>, settings: Settings) -> Self {
        let booked = Duration::from_secs(manager.site().allocate_timeout_s);
        let mut this = Self {
            settings: Settings { grace: settings.grace.min(booked), ..settings },
            world: World::default(),
            jobs: BTreeMap::new(),
            keys: HashMap::new(),
            declined: HashMap::new(),
            untold: BTreeMap::new(),
            is_declined_first: false,
            unnotified: BTreeSet::new(),
            begins: HashMap::new(),
            killed: HashMap::new(),
            recalled: HashMap::new(),
            extended: HashMap::new(),
            ended: LastEnded::new(MOST_ENDED),
            failed_starts: HashMap::new(),
            tried_again: None,
            looked: Duration::ZERO,
            looked_before: Duration::ZERO,
            next_look: Duration::ZERO,
            is_stale: true,
            is_hinted: false,
            refused: Vec::new(),
            is_behind: false,
            altered: 0,
            altered_before: None,
            altered_last: None,
            late: BTreeMap::new(),
            reserved: HashMap::new(),
            news: Vec::new(),
            unreachable: None,
            unread: UnreadRows::default(),
            explanations: Explanations::default(),
            left: LeftJobs::default(),
            lost: LostJobs::default(),
            remarks: Vec::new(),
        };
        let until_s = this.told_until_s(manager);
        for row in manager.open_rows() {
            if let Some(key) = key_of(&row) {
                this.track(key, row.id, None);
                if let Some(of) = this.jobs.get_mut(&key) {
                    of.shown = Shown::Stale;
                    of.may_have_begun = row.start_s.is_some_and(|start_s| start_s <= until_s);
                }
            }
        }
        this.read_begins(manager);
        this
    }

    /// Returns the last start of a job that the planner before this one may have let go: within the
    /// window, or while nodes were being cleaned.
    fn told_until_s(&self, manager: &Manager<Link>) -> u64 {
        let ahead_s = self.settings.window.as_secs().max(manager.site().release_timeout_s);
        manager.clock_s().saturating_add(ahead_s)
    }

    /// Reads the earliest starts that users want of jobs that were taken out of the plan: the batch
    /// system may still show a planned start of such a job.
    fn read_begins(&mut self, manager: &Manager<Link>) {
        let until_s = self.told_until_s(manager);
        let mut from = manager.planner().next_id().saturating_sub(RECENT);
        loop {
            let paged = match manager.rows_above(from, PART) {
                Ok(paged) => paged,
                Err(why) => {
                    self.news.push(format!(
                        "the last requests can't be read, and planned starts of waiting jobs may \
                         be taken for wishes of their users: {why}"
                    ));
                    return;
                }
            };
            for row in paged.rows.iter().filter(|row| row.state == State::Ended) {
                if let Some(key) = key_of(row).filter(|key| !self.jobs.contains_key(key)) {
                    self.begins.insert(key, begin_s(row));
                    self.ended.note(key, &row.user);
                    if row.outcome.as_deref() == Some(LOST) {
                        self.lost.note(&row.user, key, &row.name, row.end_s.unwrap_or_default());
                    }
                    if row.is_killed() {
                        let outcome = row.outcome.clone().unwrap_or_default();
                        if row.start_s.is_some_and(|start_s| start_s <= until_s) {
                            self.recalled.insert(key, outcome.clone());
                        }
                        self.killed.insert(key, outcome);
                    }
                }
            }
            match paged.rows.last() {
                Some(last) if !paged.is_last => from = last.id,
                _ => return,
            }
        }
    }

    /// Takes the messages about problems and important actions since the last call.
    pub fn news(&mut self) -> Vec<String> {
        std::mem::take(&mut self.news)
    }

    /// Latest time at which it must be called again if nothing happens; since the Unix epoch.
    pub fn next(&self, manager: &Manager<Link>, now: Duration) -> Duration {
        if self.is_behind {
            return now;
        }
        let second = Duration::from_secs(1);
        let graces = self.jobs.values().filter_map(|of| of.committed.as_ref());
        let next = graces.filter_map(|it| it.until).min();
        let planned_s = manager.next_s().map(Duration::from_secs);
        let starts = planned_s.map(|at| at.saturating_sub(self.settings.window));
        [next, planned_s.filter(|&at| at > now), starts.filter(|&at| at > now)]
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
            self.news.push("events were lost; all jobs are checked again".into());
        }
        self.is_hinted |= !events.is_empty();
        self.note_failed(controller);
        self.end_requests(manager, controller);
        // The look shows what has become of a job only after the answer to its revocation.
        let answered = self.late_starts(now).into_iter().filter(|&key| controller.is_answered(key));
        let answered: Vec<Key> = answered.collect();
        self.check_starts(manager, controller, &answered, now);
        let is_late = !self.late_starts(now).is_empty();
        self.is_stale |= self.is_hinted || now >= self.next_look || is_late || self.is_behind;
        self.is_behind = false;
        if self.is_stale {
            match controller.snapshot() {
                Ok(world) => {
                    self.world = world.after(&self.world);
                    self.is_stale = false;
                    self.looked_before = std::mem::replace(&mut self.looked, now);
                    let is_hinted = std::mem::take(&mut self.is_hinted);
                    self.next_look =
                        now + if is_hinted { self.settings.again } else { self.settings.look };
                    self.answers();
                    self.set_unread_aside(controller);
                    self.note_unclear(now);
                    self.forget_lost(now.as_secs());
                    self.mark_requeued(controller);
                    self.sort_reserved(controller);
                    self.wake(manager, now)?;
                    self.close_nodes(manager)?;
                    self.reconcile(manager, controller, now)?;
                    self.extend_again(manager, controller);
                }
                // The look is under way, and the plan goes on with the last one.
                Err(Fault::Later) if self.is_up_to_date(manager, now) => {}
                Err(Fault::Later) => return Ok(()),
                Err(why) => {
                    // Nothing that was not committed starts meanwhile, so time stands still.
                    self.silent(&why);
                    return Ok(());
                }
            }
        }
        let late = self.late_starts(now);
        self.check_starts(manager, controller, &late, now);
        manager.advance(now_s.max(manager.clock_s()))?;
        self.report_late(manager);
        self.carry_out(manager, controller, now);
        self.commit(manager, controller, now);
        self.unknown_out(manager, controller, now);
        self.decline_refused(manager, controller);
        self.tell_users(manager, controller, now);
        Ok(())
    }

    /// Tells users of their plans, and of declined jobs. There is room for few such orders, so each of
    /// both comes first in every other turn.
    fn tell_users(
        &mut self,
        manager: &Manager<Link>,
        controller: &mut dyn Controller,
        now: Duration,
    ) {
        self.is_declined_first = !self.is_declined_first;
        if self.is_declined_first {
            self.tell_declined(manager, controller, now);
            self.show(manager, controller, now);
        } else {
            self.show(manager, controller, now);
            self.tell_declined(manager, controller, now);
        }
        self.explain(controller);
        self.old_declined(manager, controller, now);
        self.notify_again(controller);
    }

    /// Whether the plan may go on without a new look: the last one was answered, and there was no
    /// time without a planner since.
    fn is_up_to_date(&self, manager: &Manager<Link>, now: Duration) -> bool {
        let past = now.saturating_sub(Duration::from_secs(manager.clock_s()));
        self.looked > Duration::ZERO && self.unreachable.is_none() && past <= self.settings.grace
    }

    /// Handles a time in which no jobs could be let go: only jobs started that were let go before.
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

    fn track(&mut self, key: Key, id: RequestId, asked: Option<Asked>) {
        self.keys.insert(id, key);
        self.declined.remove(&key);
        let of = Tracked {
            id,
            asked,
            shown: Shown::Nothing,
            committed: None,
            is_ending: false,
            is_stopped: false,
            may_have_begun: false,
            is_outside: false,
            is_missed: false,
        };
        self.jobs.insert(key, of);
    }

    /// Something has become free: what was declined may have a place.
    fn try_declined_again(&mut self) {
        let now = self.looked;
        for of in self.declined.values_mut().filter(|of| !of.is_final && of.not_before <= now) {
            of.is_again = true;
            self.is_behind = true;
        }
    }

    /// These jobs are planned: what follows them may be, at the next look.
    fn try_followers_again(&mut self, planned: &HashSet<u32>) {
        if planned.is_empty() {
            return;
        }
        let follows = |of: &&mut Declined| {
            let numbers = of.after.split(|c: char| !c.is_ascii_digit());
            numbers.filter_map(|of| of.parse().ok()).any(|number: u32| planned.contains(&number))
        };
        let waits = |of: &&mut Declined| !of.is_final && !of.after.is_empty();
        for of in self.declined.values_mut().filter(waits).filter(follows) {
            of.is_again = true;
            self.is_stale = true;
        }
    }

    /// The declined jobs of `again`, which are in the order of their keys, that are tried in this
    /// turn: each has its turn, however often all of them are to be tried.
    fn in_turn<'a>(&mut self, again: &[&'a JobSeen]) -> Vec<&'a JobSeen> {
        let from = again.partition_point(|job| Some(job.key) <= self.tried_again);
        let in_turn = again.iter().cycle().skip(from);
        let in_turn: Vec<_> = in_turn.take(again.len().min(AGAIN_AT_ONCE)).copied().collect();
        self.tried_again = in_turn.last().map(|job| job.key).or(self.tried_again);
        self.is_behind |= in_turn.len() < again.len();
        in_turn
    }

    /// Whether a job was declined as it is, and nothing has changed since.
    fn is_declined(&self, job: &JobSeen) -> bool {
        let of = self.declined.get(&job.key);
        of.is_some_and(|of| !of.is_again && of.after == job.after && of.asked == Asked::of(job))
    }

    /// Whether a job that is new by its key has begun before, and was sent back since. Its earliest
    /// start, if it had one, is over then: the batch system gives it another, which is no wish of
    /// its user.
    fn was_sent_back(&self, manager: &Manager<Link>, job: &JobSeen) -> bool {
        let all = Key { submit_s: 0, ..job.key }..job.key;
        let open = self.jobs.range(all).next_back().and_then(|(_, of)| manager.open_row(of.id));
        // Numbers are used again after a crash, for jobs of others.
        match open {
            Some(row) => row.user == job.user,
            None => self.ended.user_before(job.key) == Some(&job.user),
        }
    }

    /// The request that it was.
    fn forget(&mut self, key: Key) -> Option<RequestId> {
        let id = self.jobs.remove(&key)?.id;
        self.keys.remove(&id);
        Some(id)
    }

    /// The job that it was.
    fn forget_request(&mut self, id: RequestId) -> Option<Key> {
        let key = self.keys.get(&id).copied()?;
        self.forget(key);
        Some(key)
    }

    /// The request that a job is, by its name; of those with one number the last.
    fn request_of(&self, name: &str) -> Option<RequestId> {
        let job = name.split('_').next()?.parse().ok()?;
        let from = Key { job, index: None, submit_s: 0 };
        let of_job = self.jobs.range(from..).take_while(|(key, _)| key.job == job);
        of_job.filter(|(key, _)| key.name() == name).map(|(_, of)| of.id).last()
    }

    fn failed(&mut self, key: Key, what: &str, why: &Fault) {
        self.is_stale = true;
        match why {
            // The next look tells what became of it.
            Fault::Gone | Fault::Started | Fault::Later => {}
            Fault::Denied(_) | Fault::Never(_) => {
                self.news.push(format!("job {}: {what}: {why}", key.name()));
            }
            Fault::Unreachable(_) => self.silent(why),
        }
    }

    /// Notes orders that were accepted, and could not be carried out.
    fn note_failed(&mut self, controller: &mut dyn Controller) {
        for Failed { job: key, kind, why, is_last } in controller.failed() {
            let of = self.jobs.get_mut(&key);
            match (kind, of, self.declined.get(&key)) {
                (OrderKind::Commit, Some(of), _) if is_last => {
                    (of.committed, of.shown) = (None, Shown::Stale);
                    if let Fault::Never(why) = why {
                        self.refused.push(Refused { key, why, not_before: None });
                        continue;
                    }
                }
                (OrderKind::Show, Some(of), _) => of.shown = Shown::Stale,
                // What was shown before is no wish of its user.
                (OrderKind::Show, None, Some(of)) => {
                    self.begins.insert(key, of.begin_s);
                    self.note_untold(key, &why);
                }
                (OrderKind::Notify, ..) if is_passing(&why) => {
                    self.unnotified.insert(key);
                }
                (OrderKind::Leave, ..) if is_passing(&why) => self.not_left(key),
                (OrderKind::Explain, ..) if is_passing(&why) => self.explanations.failed(key),
                (OrderKind::Stop, Some(of), _) => (of.is_ending, of.is_stopped) = (true, false),
                (OrderKind::Limit, _, _) if matches!(why, Fault::Denied(_) | Fault::Never(_)) => {
                    self.extended.remove(&key);
                }
                _ => {}
            }
            self.failed(key, &kind.to_string(), &why);
        }
    }

    /// Notes that a user could not be told that a job is declined.
    fn note_untold(&mut self, key: Key, why: &Fault) {
        let not_before = match why {
            // There is no held job whose user waits for an explanation.
            Fault::Gone | Fault::Started => return,
            Fault::Later | Fault::Unreachable(_) => Duration::ZERO,
            Fault::Denied(_) | Fault::Never(_) => self.looked + self.settings.look,
        };
        self.untold.insert(key, not_before);
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

/// Whether an order that failed may be carried out later as it is.
fn is_passing(why: &Fault) -> bool {
    matches!(why, Fault::Later | Fault::Unreachable(_))
}

fn operator() -> Caller {
    Caller { user: CONTROLLER.into(), is_operator: true }
}

/// The job that a request is.
fn key_of(row: &Row) -> Option<Key> {
    row.command.first()?.parse().ok()
}

/// The nodes on which a request is planned, each once, in the order of their names.
fn nodes_of(manager: &Manager<Link>, id: RequestId) -> Vec<String> {
    let placed = manager.planner().placed(id).iter();
    let names = placed.map(|placed| manager.machine().node_name(placed.node as usize));
    sorted(names.map(str::to_string).collect())
}

/// Text that tells a user the planned start, in the time zone of the site, and the nodes. The start
/// comes first, since a long text is cut.
fn plan_text(manager: &Manager<Link>, nodes: &[String], start_s: u64) -> String {
    let start = date(manager, start_s);
    let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
    format!("planned for {start} on {}", compress(&nodes))
}

/// A time as users read it: a date with its offset from UTC.
fn date(manager: &Manager<Link>, at_s: u64) -> String {
    format_time(at_s, &manager.site().time_zone)
}

/// Number that is another one for other places.
fn places(manager: &Manager<Link>, id: RequestId) -> u64 {
    let mut hasher = DefaultHasher::new();
    for placed in manager.planner().placed(id) {
        placed.node.hash(&mut hasher);
    }
    hasher.finish()
}

/// Whether the job runs where its request is planned. A job that was made smaller, or does without
/// a lost node, has some of these nodes.
fn is_where_planned(manager: &Manager<Link>, id: RequestId, job: &JobSeen) -> bool {
    let planned = nodes_of(manager, id);
    !job.nodes.is_empty() && job.nodes.iter().all(|node| planned.contains(node))
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    names.dedup();
    names
}

fn ended(manager: &mut Manager<Link>, request: RequestId, at_s: u64, outcome: &str) {
    let outcome = outcome.to_string();
    let happened = Happened::Ended { request, outcome };
    manager.engine_mut().tell(at_s, happened);
}

/// Reports that a request ended, and that its nodes are free by now.
///
/// Both have the same time, also if the job ended a second before. Otherwise the next request would
/// be planned behind the time that is booked for cleaning, and within the window it stays there.
fn over(manager: &mut Manager<Link>, request: RequestId, now_s: u64, outcome: &str) {
    ended(manager, request, now_s, outcome);
    let released = Happened::Released { request };
    manager.engine_mut().tell(now_s, released);
    manager.engine_mut().kept.remove(&request);
}

fn not_started(manager: &mut Manager<Link>, request: RequestId, at_s: u64, why: &str) {
    let why = why.to_string();
    let happened = Happened::NotStarted { request, why };
    manager.engine_mut().tell(at_s, happened);
}
