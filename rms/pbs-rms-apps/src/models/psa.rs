// SPDX-License-Identifier: GPL-2.0
//! A parameter sweep (Klein and Pérez 2011, 5.1.2): malleable, with tasks of one node and of
//! the same length without end.
//!
//! More nodes than it has: it asks for them and starts tasks. Fewer now: it kills tasks and
//! gives nodes back; what the tasks have done is waste. Fewer later: it lets tasks end and
//! starts no others, and nothing is wasted.
//!
//! Chosen here, as the report does not say: the youngest tasks are killed, as they lose least
//! ([`KillOrder`] has the opposite), and none is started that a drop would kill which the
//! view already shows.
//!
//! A sweep of jobs ([`Psa::of_jobs`]) is the same but for its tasks, of which there are so many:
//! when one ends it is told, and before that when it is expected to.

use std::collections::VecDeque;
use std::ops::Range;

use serde::Serialize;

use crate::{Application, How, Kind, Label, Request, View, Views, Wish, FOREVER};

/// A job is not reckoned to have ended before it is so late, as a part of how long it is thought
/// to take: a quarter. What begins on a node for which another one has to have ended would be
/// killed if that is a little late.
const SPARE: u64 = 4;

/// Tasks that are killed first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KillOrder {
    /// Tasks that have done least.
    #[default]
    Youngest,
    /// Tasks that have done most.
    Oldest,
}

/// Account of the sweep's tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Account {
    /// Tasks that ended.
    pub done: u64,
    /// Tasks that were killed.
    pub killed: u64,
    /// Total run time of the killed tasks: the PSA waste.
    pub wasted_node_ns: u128,
    /// Total time of nodes without a task.
    pub idle_node_ns: u128,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    number: u64,
    started_ns: u64,
    /// End of the task; for a job, its expected end.
    end_ns: u64,
}

/// The application.
#[derive(Clone, Debug)]
pub struct Psa {
    task_ns: u64,
    kill_order: KillOrder,
    /// Number of jobs to start, for a sweep of jobs. `None`: tasks without end, whose duration is
    /// exact.
    jobs: Option<u64>,
    /// Jobs that were killed, to be run again.
    again: Vec<u64>,
    view: View,
    /// In the order in which they started, and so, unless they are jobs, in which they end.
    tasks: VecDeque<Task>,
    next_task: u64,
    held: u64,
    /// Requested number of nodes; `None`: there is no request.
    requested: Option<u64>,
    account: Account,
    told_ns: u64,
    has_ended: bool,
}

impl Psa {
    /// Label of the request.
    pub const NODES: Label = Label(0);

    /// Tasks of that length, of which the youngest are killed.
    pub fn new(task_ns: u64) -> Self {
        Self {
            task_ns: task_ns.max(1),
            kill_order: KillOrder::default(),
            jobs: None,
            again: Vec::new(),
            view: View::default(),
            tasks: VecDeque::new(),
            next_task: 0,
            held: 0,
            requested: None,
            account: Account::default(),
            told_ns: 0,
            has_ended: false,
        }
    }

    /// Creates a sweep of that many jobs with an expected duration.
    pub fn of_jobs(task_ns: u64, count: u64) -> Self {
        Self { jobs: Some(count), has_ended: count == 0, ..Self::new(task_ns) }
    }

    /// Sets the order in which tasks are killed.
    pub fn with_kill_order(self, kill_order: KillOrder) -> Self {
        Self { kill_order, ..self }
    }

    /// Returns the number of running tasks.
    pub fn running(&self) -> u64 {
        self.tasks.len() as u64
    }

    /// Returns the number of nodes that the sweep has.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Returns the account of the tasks up to the last call with a time.
    pub fn account(&self) -> Account {
        self.account
    }

    /// Returns the number of nodes that must become free according to the view: that many tasks
    /// have no successor.
    pub fn draining(&self) -> u64 {
        let least = self.view.least(self.told_ns, FOREVER).unwrap_or(0);
        self.running().saturating_sub(least)
    }

    /// Stops the sweep because its results are not needed any more. Running tasks count neither as
    /// done nor as wasted.
    pub fn stop(&mut self, now_ns: u64) -> Vec<Wish> {
        self.settle(now_ns);
        self.has_ended = true;
        self.tasks.clear();
        self.held = 0;
        let done = self.requested.take().map(|_| Wish::Done { label: Self::NODES, released: 0 });
        done.into_iter().collect()
    }

    /// Counts what was until now, and ends tasks whose time is over.
    fn settle(&mut self, now_ns: u64) {
        while let Some(&Task { end_ns, .. }) = self.tasks.front() {
            if end_ns > now_ns || self.jobs.is_some() {
                break;
            }
            self.idle_until(end_ns);
            self.tasks.pop_front();
            self.account.done += 1;
        }
        self.idle_until(now_ns);
    }

    fn idle_until(&mut self, now_ns: u64) {
        let idle = u128::from(self.held.saturating_sub(self.running()));
        let while_ns = u128::from(now_ns.saturating_sub(self.told_ns));
        self.account.idle_node_ns += idle * while_ns;
        self.told_ns = self.told_ns.max(now_ns);
    }

    /// Returns the wishes that follow from the view now. Asks for more nodes only if `may_ask`.
    fn react(&mut self, now_ns: u64, may_ask: bool) -> Vec<Wish> {
        self.settle(now_ns);
        let mut wishes = Vec::new();
        if self.has_ended {
            return wishes;
        }
        let killed = self.kill(now_ns);
        if !killed.is_empty() {
            wishes.push(Wish::Kill { tasks: killed });
        }
        let startable = self.startable(now_ns);
        let idle = self.held.saturating_sub(self.running());
        let starts = startable.min(idle);
        for tasks in self.next_tasks(starts) {
            let end_ns = now_ns.saturating_add(self.task_ns);
            self.tasks.extend(tasks.clone().map(|number| Task {
                number,
                started_ns: now_ns,
                end_ns,
            }));
            wishes.push(Wish::Start { tasks });
        }
        let more = if may_ask { startable - starts } else { 0 };
        wishes.extend(self.request(self.running() + more));
        self.has_ended = self.jobs == Some(0) && self.tasks.is_empty();
        wishes
    }

    /// Takes that many of the tasks to start; killed jobs come first.
    fn next_tasks(&mut self, count: u64) -> Vec<Range<u64>> {
        let mut tasks = Vec::new();
        let mut left = count;
        while let Some(number) = self.again.pop_if(|_| left > 0) {
            tasks.push(number..number + 1);
            left -= 1;
        }
        if left > 0 {
            tasks.push(self.next_task..self.next_task + left);
            self.next_task += left;
        }
        self.jobs = self.jobs.map(|all| all.saturating_sub(count));
        tasks
    }

    /// Kills tasks for which there are no nodes any more.
    fn kill(&mut self, now_ns: u64) -> Vec<u64> {
        let allowed = self.view.at(now_ns).min(self.held);
        let mut numbers = Vec::new();
        while self.running() > allowed {
            let victim = match self.kill_order {
                KillOrder::Youngest => self.tasks.pop_back(),
                KillOrder::Oldest => self.tasks.pop_front(),
            };
            let Some(victim) = victim else { break };
            numbers.push(victim.number);
            if let Some(left) = &mut self.jobs {
                *left += 1;
                self.again.push(victim.number);
            }
            self.account.killed += 1;
            self.account.wasted_node_ns += u128::from(now_ns.saturating_sub(victim.started_ns));
        }
        numbers
    }

    /// Returns the number of tasks that could start now and end, on nodes that the sweep has or
    /// could request.
    fn startable(&self, now_ns: u64) -> u64 {
        let end_ns = now_ns.saturating_add(self.task_ns);
        let times = self.view.times(now_ns, end_ns);
        let room = times.map(|ns| self.view.at(ns).saturating_sub(self.running_at(ns)));
        room.min().unwrap_or(0).min(self.jobs.unwrap_or(u64::MAX))
    }

    /// Returns the number of running tasks that will still run at a time.
    fn running_at(&self, time_ns: u64) -> u64 {
        let spare_ns = match self.jobs {
            None => 0,
            Some(_) => self.task_ns / SPARE,
        };
        // A job that should have ended runs until one is told.
        let has_ended = |task: &Task| {
            let end_ns = task.end_ns.saturating_add(spare_ns);
            end_ns <= time_ns && time_ns > self.told_ns
        };
        let ended = match self.jobs {
            None => self.tasks.partition_point(has_ended),
            Some(_) => self.tasks.iter().filter(|task| has_ended(task)).count(),
        };
        self.running() - ended as u64
    }

    /// Asks for so many nodes instead of what it has asked for.
    fn request(&mut self, nodes: u64) -> Option<Wish> {
        let label = Self::NODES;
        let wish = match self.requested {
            Some(before) if before == nodes => return None,
            None if nodes == 0 => return None,
            Some(_) if nodes == 0 => Wish::Done { label, released: 0 },
            Some(_) => Wish::Update { label, nodes, duration_ns: FOREVER, announce_ns: 0 },
            None => Wish::Request(Request {
                label,
                kind: Kind::Preemptible,
                nodes,
                duration_ns: FOREVER,
                how: How::Free,
            }),
        };
        self.requested = (nodes > 0).then_some(nodes);
        self.held = self.held.min(nodes);
        Some(wish)
    }
}

impl Application for Psa {
    fn connect(&mut self, now_ns: u64) -> Vec<Wish> {
        self.react(now_ns, true)
    }

    fn views(&mut self, now_ns: u64, views: Views<'_>) -> Vec<Wish> {
        self.settle(now_ns);
        self.view = views.preemptible.clone();
        self.react(now_ns, true)
    }

    fn started(&mut self, now_ns: u64, label: Label, nodes: u64) -> Vec<Wish> {
        if label != Self::NODES || self.requested.is_none() {
            return Vec::new();
        }
        self.settle(now_ns);
        self.held = nodes;
        // Preemptible requests may get fewer than they asked for. Who asked again at once
        // would ask for ever: a view will say when there are more.
        self.requested = Some(nodes);
        self.react(now_ns, false)
    }

    fn task_expected(&mut self, now_ns: u64, task: u64, end_ns: u64) -> Vec<Wish> {
        let mut tasks = self.tasks.iter_mut();
        if let Some(task) = tasks.find(|it| it.number == task) {
            task.end_ns = end_ns;
        }
        self.react(now_ns, true)
    }

    fn task_ended(&mut self, now_ns: u64, task: u64) -> Vec<Wish> {
        self.settle(now_ns);
        let before = self.tasks.len();
        self.tasks.retain(|it| it.number != task);
        self.account.done += (before - self.tasks.len()) as u64;
        self.react(now_ns, true)
    }

    fn wake(&mut self, now_ns: u64) -> Vec<Wish> {
        self.react(now_ns, true)
    }

    fn next_ns(&self) -> Option<u64> {
        if self.has_ended {
            return None;
        }
        let first = self.tasks.front().filter(|_| self.jobs.is_none());
        let end_ns = first.map(|task| task.end_ns);
        let change_ns = self.view.next_change_ns(self.told_ns);
        end_ns.into_iter().chain(change_ns).min()
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }
}
