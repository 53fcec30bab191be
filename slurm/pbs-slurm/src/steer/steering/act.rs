// SPDX-License-Identifier: GPL-2.0
//! From what is planned to what the batch system is told.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use pbs_cluster_planner::RequestId;
use pbs_manager::ledger::Phase;
use pbs_manager::{Allocation, Manager};

use super::{
    is_passing, nodes_of, not_started, places, plan_text, Committed, Refused, Shown, Steer,
    SHOWN_AT_ONCE,
};
use crate::steer::controller::{Commitment, Controller, Fault, Revoked};
use crate::steer::link::{Link, Order};
use crate::steer::seen::{JobSeen, JobState, Key};
use crate::steer::wish::{begin_s, own_start_s};

/// Reasons, or beginnings of them, that are the job's own: it waits for others of its user or account,
/// or for nodes that the batch system keeps and the planner does not know of.
/// Other jobs were late for the batch system, and are planned again at once.
const OWN_REASONS: [&str; 7] = [
    "Dependency",
    "JobArrayTaskLimit",
    "Licenses",
    "Assoc",
    "QOS",
    "Reservation",
    // With a suffix: "ReqNodeNotAvail, Reserved for maintenance".
    "ReqNodeNotAvail",
];
/// Failed starts of a job after which it waits before it is planned again. Its nodes are free for
/// others meanwhile.
const STARTS_AT_ONCE: u32 = 3;
/// Time that it waits then; the next time twice as long, and so on.
const DELAY: Duration = Duration::from_secs(60);
/// Greatest number of doublings of that time.
const MOST_DOUBLED: u32 = 5;

impl Steer {
    /// Committed jobs that did not start in time, as far as is known.
    pub(super) fn late_starts(&self, now: Duration) -> Vec<Key> {
        let late = self.jobs.iter().filter(|(_, of)| {
            let of = of.committed.as_ref();
            of.and_then(|it| it.until).is_some_and(|until| until <= now)
        });
        late.map(|(&key, _)| key).collect()
    }

    /// Takes back what was committed and did not start.
    pub(super) fn check_starts(
        &mut self,
        manager: &mut Manager<Link>,
        controller: &mut dyn Controller,
        late: &[Key],
        now: Duration,
    ) {
        for &key in late {
            match controller.revoke(key) {
                Ok(Revoked::Held) => {
                    let Some(of) = self.jobs.get_mut(&key) else {
                        continue;
                    };
                    of.committed = None;
                    of.shown = Shown::Stale;
                    let id = of.id;
                    let (why, is_final) = match self.world.job(key) {
                        Some(job) => (job.reason.clone(), job.is_refused),
                        None => (String::new(), false),
                    };
                    if is_final {
                        self.refused.push(Refused { key, why, not_before: None });
                        continue;
                    }
                    self.news.push(format!("job {} did not start in time ({why})", key.name()));
                    let is_own = OWN_REASONS.iter().any(|own| why.starts_with(own));
                    let count = self.failed_starts.entry(key).or_default();
                    *count += u32::from(is_own);
                    if is_own && count.is_multiple_of(STARTS_AT_ONCE) {
                        let doubled = (*count / STARTS_AT_ONCE - 1).min(MOST_DOUBLED);
                        let delay = DELAY * (1 << doubled);
                        self.refused.push(Refused { key, why, not_before: Some(now + delay) });
                        continue;
                    }
                    not_started(manager, id, now.as_secs(), "it did not start in time");
                }
                Ok(Revoked::AlreadyStarted) | Err(Fault::Gone | Fault::Started) => {
                    self.is_stale = true;
                    if let Some(it) = self.jobs.get_mut(&key).and_then(|of| of.committed.as_mut()) {
                        it.until = Some(now + self.settings.grace);
                    }
                }
                Err(why) => self.failed(key, "hold", &why),
            }
        }
    }

    /// Carries out the orders of the manager.
    pub(super) fn carry_out(
        &mut self,
        manager: &mut Manager<Link>,
        controller: &mut dyn Controller,
        now: Duration,
    ) {
        for order in std::mem::take(&mut manager.engine_mut().orders) {
            match order {
                Order::Start(allocation) => self.start(manager, controller, &allocation, now),
                Order::Stop(id) => self.stopped(manager, controller, id),
                Order::Extend(id, until_s) => self.extend(manager, controller, id, until_s),
                Order::Notify(id) => {
                    if let Some(&key) = self.keys.get(&id) {
                        self.notify(controller, key);
                    }
                }
            }
        }
        self.end_jobs(manager, controller, now);
    }

    /// Ends what users have ended since the last turn. A look that is older says nothing of these
    /// jobs then.
    pub(super) fn end_requests(
        &mut self,
        manager: &mut Manager<Link>,
        controller: &mut dyn Controller,
    ) {
        let orders = std::mem::take(&mut manager.engine_mut().orders);
        let (stops, others) = orders.into_iter().partition(|order| matches!(order, Order::Stop(_)));
        manager.engine_mut().orders = others;
        for stop in stops {
            if let Order::Stop(id) = stop {
                self.stopped(manager, controller, id);
            }
        }
    }

    /// Tells a user that a running job ends soon.
    fn notify(&mut self, controller: &mut dyn Controller, key: Key) {
        if let Err(why) = controller.notify(key, "this job ends soon") {
            if is_passing(&why) {
                self.unnotified.insert(key);
            }
            self.failed(key, "notify", &why);
        }
    }

    /// Tells users that their running jobs end soon, where that has failed before.
    pub(super) fn notify_again(&mut self, controller: &mut dyn Controller) {
        if !controller.has_room() {
            return;
        }
        for key in std::mem::take(&mut self.unnotified) {
            let job = self.world.job(key).filter(|job| job.state == JobState::Running);
            if job.is_some() {
                self.notify(controller, key);
            }
        }
    }

    /// A request has its time: its job is let go if it was not before.
    fn start(
        &mut self,
        manager: &Manager<Link>,
        controller: &mut dyn Controller,
        allocation: &Allocation,
        now: Duration,
    ) {
        let id = allocation.request;
        let Some(&key) = self.keys.get(&id) else {
            return;
        };
        let seen = self.world.job(key);
        let Some(JobState::Pending(_)) = seen.map(|job| &job.state) else {
            // It was a moment early: now it is told that it runs.
            self.is_stale = true;
            return;
        };
        let nodes = nodes_of(manager, id);
        self.let_go(manager, controller, key, nodes, allocation.from_s, now);
    }

    /// Lets go all that starts within the window, and who is the next on nodes that are being cleaned:
    /// it is planned for the end of the time that is booked for that, and moves up once they are
    /// clean. The batch system starts it in that moment if it was let go before, and otherwise in its
    /// next round.
    pub(super) fn commit(
        &mut self,
        manager: &mut Manager<Link>,
        controller: &mut dyn Controller,
        now: Duration,
    ) {
        let until_s = (now + self.settings.window).as_secs();
        self.take_back(manager, controller, until_s);
        let cleaned = self.cleaned_s(manager);
        let last_s = cleaned.values().fold(until_s, |last_s, &at_s| last_s.max(at_s));
        if manager.planner().next_start_s().is_some_and(|start_s| start_s <= last_s) {
            let mut planned = HashSet::new();
            for (start_s, key, id) in self.planned_until(manager, last_s) {
                let nodes = nodes_of(manager, id);
                let is_next = nodes
                    .iter()
                    .all(|node| cleaned.get(node) == Some(&start_s) && !planned.contains(node));
                planned.extend(nodes.iter().cloned());
                if start_s <= until_s || is_next && self.is_ahead(manager, key, &nodes, now) {
                    self.let_go(manager, controller, key, nodes, start_s, now);
                }
            }
        }
        let told = self.jobs.values().filter(|of| of.committed.is_some());
        manager.set_told(told.map(|of| of.id).collect());
    }

    /// Jobs that are planned until then and do not run, in the order of their starts.
    fn planned_until(&self, manager: &Manager<Link>, last_s: u64) -> Vec<(u64, Key, RequestId)> {
        let planned = self.jobs.iter().filter_map(|(&key, of)| {
            let standing = manager.planner().standing(of.id)?;
            let start_s = standing.start_s.filter(|&start_s| start_s <= last_s)?;
            (!standing.is_running).then_some((start_s, key, of.id))
        });
        let mut planned: Vec<(u64, Key, RequestId)> = planned.collect();
        planned.sort_unstable();
        planned
    }

    /// Returns the nodes that are being cleaned, and that nobody else uses, with the ends of the times
    /// that are booked for that.
    fn cleaned_s(&self, manager: &mut Manager<Link>) -> HashMap<String, u64> {
        let kept: Vec<RequestId> = manager.engine_mut().kept.keys().copied().collect();
        let mut ends_s = HashMap::new();
        for id in kept {
            match manager.open_row(id) {
                Some(row) if row.phase == Some(Phase::Releasing) => {
                    ends_s.insert(id, row.end_s);
                }
                Some(_) => {}
                None => {
                    manager.engine_mut().kept.remove(&id);
                }
            }
        }
        // Nobody knows where a job runs whose row can't be read.
        let has_hidden = self.world.unread.iter().any(|row| row.is_waiting != Some(true));
        if ends_s.is_empty() || has_hidden {
            return HashMap::new();
        }
        let mut cleaned: HashMap<&String, Option<u64>> = HashMap::new();
        for job in &self.world.jobs {
            let end_s = match job.state {
                JobState::Running => None,
                JobState::Completing(_) => {
                    let of = self.jobs.get(&job.key);
                    of.and_then(|of| *ends_s.get(&of.id)?)
                }
                JobState::Pending(_) | JobState::Over(_) => continue,
            };
            for node in &job.nodes {
                let of_all = cleaned.entry(node).or_insert(end_s);
                *of_all = of_all.filter(|of_all| Some(*of_all) == end_s);
            }
        }
        let cleaned = cleaned.into_iter();
        cleaned.filter_map(|(node, end_s)| Some((node.clone(), end_s?))).collect()
    }

    /// Whether a job that is the next one on nodes that are being cleaned is let go before the window.
    ///
    /// Slurm starts it when they are clean, and nothing else on them before: it keeps the nodes of
    /// the first job that waits. Therefore the job has to take whole nodes, of which nothing is left
    /// for others. Slurm knows no limits of the site, and what the job shares with jobs elsewhere,
    /// such as licences, may be planned for others until its start.
    fn is_ahead(&self, manager: &Manager<Link>, key: Key, nodes: &[String], now: Duration) -> bool {
        let site = manager.site();
        let Some(job) = self.world.job(key) else {
            return false;
        };
        let takes = |name: &String| {
            let node = self.world.nodes.iter().find(|node| node.name == *name);
            job.is_exclusive || node.is_some_and(|node| job.cpus_each() >= node.cpus)
        };
        let is_whole = nodes.iter().all(takes);
        let is_alone = job.demands.licenses.is_empty() && job.demands.throttle == 0;
        let is_free = site.limits.is_empty() && site.pools.is_empty();
        is_whole && is_alone && is_free && !self.is_timed(manager, key, now)
    }

    /// Holds what was let go and has its place later now than it had then, on other nodes before the
    /// window, or none.
    fn take_back(
        &mut self,
        manager: &Manager<Link>,
        controller: &mut dyn Controller,
        until_s: u64,
    ) {
        let moved = self.jobs.iter().filter(|(_, of)| {
            let standing = manager.planner().standing(of.id);
            // One that runs already is no longer held. The plan follows it.
            let committed = of.committed.as_ref().filter(|it| it.until.is_some());
            let (Some(standing), Some(it)) = (standing, committed) else {
                return false;
            };
            let is_other = |start_s| start_s > it.start_s || nodes_of(manager, of.id) != it.nodes;
            let is_to_wait = |start_s| start_s > until_s && is_other(start_s);
            !standing.is_running && standing.start_s.is_none_or(is_to_wait)
        });
        let moved: Vec<Key> = moved.map(|(&key, _)| key).collect();
        for key in moved {
            if let Some(of) = self.jobs.get_mut(&key) {
                (of.committed, of.shown) = (None, Shown::Stale);
            }
            self.send_back(controller, key);
        }
    }

    fn let_go(
        &mut self,
        manager: &Manager<Link>,
        controller: &mut dyn Controller,
        key: Key,
        nodes: Vec<String>,
        start_s: u64,
        now: Duration,
    ) {
        if self.is_unknown(key) {
            return;
        }
        let told = self.with_lost(manager, key, &plan_text(manager, &nodes, start_s));
        let is_timed = self.is_timed(manager, key, now);
        let Some(of) = self.jobs.get_mut(&key) else {
            return;
        };
        let as_planned = |it: &Committed| it.start_s == start_s && it.nodes == nodes;
        if of.committed.as_ref().is_some_and(as_planned) {
            return;
        }
        let at = Duration::from_secs(start_s);
        let may_start = |it: &Committed| start_s < it.start_s && it.nodes == nodes;
        let earlier = of.committed.as_mut().filter(|it| may_start(it));
        let is_earlier = earlier.is_some();
        if let Some(it) = earlier.filter(|it| !it.is_timed) {
            // It starts as soon as its nodes are free.
            it.start_s = start_s;
            it.until = it.until.map(|until| until.min(at.max(now) + self.settings.grace));
            return;
        }
        // Between its old time and a later one it must not start by itself.
        if let Some(before) = of.committed.take_if(|_| !is_earlier) {
            let revoked = controller.revoke(key);
            if revoked == Err(Fault::Later) {
                of.committed = Some(before);
            }
            if revoked != Ok(Revoked::Held) {
                self.is_stale = true;
                return;
            }
        }
        // A time that has come already is no time to wait for; nor has who waits for the end of
        // another to wait for the batch system's next round besides.
        let is_early = at > now && (is_timed || !self.world.is_blocked(key, &nodes));
        let start = Some(start_s).filter(|_| is_early);
        let until = Some(at.max(now) + self.settings.grace);
        let limit_s = of.asked.as_ref().and_then(|asked| asked.limit_s);
        let least_cpus = self.world.job(key).and_then(JobSeen::least_cpus);
        let commitment = Commitment { nodes, start_s: start, limit_s, least_cpus, told };
        match controller.commit(key, &commitment) {
            Ok(()) => {
                let nodes = commitment.nodes;
                // If it is taken back, its start is that of the commitment.
                of.shown = Shown::Stale;
                of.committed = Some(Committed { start_s, is_timed: is_early, nodes, until });
            }
            // It starts at the time that it was given before.
            Err(why) if is_earlier => self.failed(key, "commit", &why),
            Err(Fault::Never(why)) => {
                self.refused.push(Refused { key, why, not_before: None });
            }
            Err(why) => self.failed(key, "commit", &why),
        }
    }

    /// Whether a job must not begin before its planned start, even if its nodes are free: its user
    /// wants a later start, or the batch system does not count the disk space that it needs.
    fn is_timed(&self, manager: &Manager<Link>, key: Key, now: Duration) -> bool {
        let row = self.jobs.get(&key).and_then(|of| manager.open_row(of.id));
        let start_s = row.as_ref().and_then(own_start_s);
        let tmp_bytes = self.world.job(key).map_or(0, |job| job.demands.tmp_bytes);
        tmp_bytes > 0 || start_s.is_some_and(|start_s| Duration::from_secs(start_s) > now)
    }

    /// Holds a job that was let go. If it has started meanwhile it runs on, and the plan follows.
    pub(super) fn send_back(&mut self, controller: &mut dyn Controller, key: Key) {
        match controller.revoke(key) {
            Ok(Revoked::Held) | Err(Fault::Gone) => {}
            Ok(Revoked::AlreadyStarted) => self.is_stale = true,
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
        let seen = self.world.job(key);
        let Some(job) = seen.filter(|job| job.state == JobState::Running) else {
            return;
        };
        let (Some(start_s), Some(limit_s)) = (job.start_s, job.limit_s) else {
            return;
        };
        let wanted_s = until_s.saturating_sub(start_s);
        if wanted_s > limit_s.saturating_add(row.allocate_s) {
            self.extended.insert(key, until_s);
            match controller.limit(key, wanted_s) {
                Ok(()) => self.is_stale = true,
                Err(why) => {
                    if matches!(why, Fault::Denied(_) | Fault::Never(_)) {
                        self.extended.remove(&key);
                    }
                    self.failed(key, "limit", &why);
                }
            }
        } else {
            self.extended.remove(&key);
        }
    }

    /// Raises the limits of jobs whose requests were extended, where that has failed before.
    pub(super) fn extend_again(
        &mut self,
        manager: &Manager<Link>,
        controller: &mut dyn Controller,
    ) {
        let extended = self.extended.iter().filter(|(&key, _)| !controller.is_ahead(key));
        let extended: Vec<(Key, u64)> = extended.map(|(&key, &until_s)| (key, until_s)).collect();
        for (key, until_s) in extended {
            match self.jobs.get(&key).map(|of| of.id) {
                Some(id) => self.extend(manager, controller, id, until_s),
                None => drop(self.extended.remove(&key)),
            }
        }
    }

    /// Tells users that their jobs have no place any more.
    fn show_waiting(&mut self, manager: &Manager<Link>, controller: &mut dyn Controller) {
        let waiting = self.jobs.iter().filter_map(|(&key, of)| {
            let is_shown = of.shown != Shown::Nothing && of.committed.is_none();
            let is_shown = is_shown && !controller.is_ahead(key) && !self.is_unknown(key);
            let standing = manager.planner().standing(of.id).filter(|_| is_shown)?;
            standing.start_s.is_none().then_some((key, of.id))
        });
        let waiting: Vec<(Key, RequestId)> = waiting.take(SHOWN_AT_ONCE).collect();
        for (key, id) in waiting {
            if !controller.has_room() {
                return;
            }
            let begin_s = manager.open_row(id).as_ref().and_then(begin_s);
            let told = self.with_lost(manager, key, "waits: it has no place in the plan");
            if let Err(why) = controller.show(key, begin_s, &told) {
                self.failed(key, "show", &why);
                return;
            }
            if let Some(of) = self.jobs.get_mut(&key) {
                of.shown = Shown::Nothing;
            }
        }
    }

    /// Tells users when their jobs are planned, the soonest first.
    pub(super) fn show(
        &mut self,
        manager: &Manager<Link>,
        controller: &mut dyn Controller,
        now: Duration,
    ) {
        self.show_waiting(manager, controller);
        if !controller.has_room() {
            return;
        }
        let planned = self.jobs.iter().filter_map(|(&key, of)| {
            let standing = manager.planner().standing(of.id)?;
            let start_s = standing.start_s.filter(|_| !standing.is_running)?;
            let is_old = of.shown.is_old(start_s, places(manager, of.id), now);
            let is_due = of.committed.is_none()
                && is_old
                && !controller.is_ahead(key)
                && !self.is_unknown(key);
            is_due.then_some((start_s, key, of.id))
        });
        let mut planned: Vec<(u64, Key, RequestId)> = planned.collect();
        planned.sort_unstable();
        for (start_s, key, id) in planned.into_iter().take(SHOWN_AT_ONCE) {
            if !controller.has_room() {
                return;
            }
            let told = plan_text(manager, &nodes_of(manager, id), start_s);
            let told = self.with_lost(manager, key, &told);
            match controller.show(key, Some(start_s), &told) {
                Ok(()) => {
                    if let Some(of) = self.jobs.get_mut(&key) {
                        let places = places(manager, id);
                        of.shown = Shown::Plan { start_s, places, since: now };
                    }
                }
                Err(why) => {
                    self.failed(key, "show", &why);
                    return;
                }
            }
        }
    }
}
