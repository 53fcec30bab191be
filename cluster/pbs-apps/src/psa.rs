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

use std::collections::VecDeque;

use serde::Serialize;

use crate::{Application, How, Kind, Label, Request, View, Views, Wish, FOREVER};

/// Who is killed first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KillOrder {
    /// Those that have done least.
    #[default]
    Youngest,
    /// Those that have done most.
    Oldest,
}

/// What has become of its tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Account {
    /// Tasks that ended.
    pub done: u64,
    /// Tasks that were killed.
    pub killed: u64,
    /// How long the tasks that were killed had run, all together: the PSA waste.
    pub wasted_node_ns: u128,
    /// How long nodes were there without a task.
    pub idle_node_ns: u128,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    number: u64,
    started_ns: u64,
}

/// The application.
#[derive(Clone, Debug)]
pub struct Psa {
    task_ns: u64,
    kill_order: KillOrder,
    view: View,
    /// In the order in which they started, and so in which they end.
    tasks: VecDeque<Task>,
    next_task: u64,
    held: u64,
    /// For how many nodes it has asked; `None`: there is no request.
    requested: Option<u64>,
    account: Account,
    told_ns: u64,
    has_ended: bool,
}

impl Psa {
    /// What it calls its request.
    pub const NODES: Label = Label(0);

    /// Tasks of that length, of which the youngest are killed.
    pub fn new(task_ns: u64) -> Self {
        Self {
            task_ns: task_ns.max(1),
            kill_order: KillOrder::default(),
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

    /// The same with others to be killed first.
    pub fn with_kill_order(self, kill_order: KillOrder) -> Self {
        Self { kill_order, ..self }
    }

    /// How many tasks run.
    pub fn running(&self) -> u64 {
        self.tasks.len() as u64
    }

    /// How many nodes it has.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// What has become of its tasks until it was last told anything.
    pub fn account(&self) -> Account {
        self.account
    }

    /// How many of its nodes will have to be free, as far as the view goes: so many tasks
    /// have no successor.
    pub fn draining(&self) -> u64 {
        let least = self.view.least(self.told_ns, FOREVER).unwrap_or(0);
        self.running().saturating_sub(least)
    }

    /// It stops, as nobody waits for it any more. Tasks that run are neither done nor wasted.
    pub fn stop(&mut self, now_ns: u64) -> Vec<Wish> {
        self.settle(now_ns);
        self.has_ended = true;
        self.tasks.clear();
        self.held = 0;
        let done = self.requested.take().map(|_| Wish::Done {
            label: Self::NODES,
            released: 0,
        });
        done.into_iter().collect()
    }

    /// Counts what was until now, and ends tasks whose time is over.
    fn settle(&mut self, now_ns: u64) {
        while let Some(task) = self.tasks.front() {
            let end_ns = task.started_ns.saturating_add(self.task_ns);
            if end_ns > now_ns {
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

    /// Does what the view asks for now; asks for more nodes if it may.
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
        if starts > 0 {
            let first = self.next_task;
            self.next_task += starts;
            let tasks = first..self.next_task;
            self.tasks.extend(tasks.clone().map(|number| Task {
                number,
                started_ns: now_ns,
            }));
            wishes.push(Wish::Start { tasks });
        }
        let more = if may_ask { startable - starts } else { 0 };
        wishes.extend(self.request(self.running() + more));
        wishes
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
            self.account.killed += 1;
            self.account.wasted_node_ns += u128::from(now_ns.saturating_sub(victim.started_ns));
        }
        numbers
    }

    /// How many tasks could start now and end, on nodes that it has or could ask for.
    fn startable(&self, now_ns: u64) -> u64 {
        let end_ns = now_ns.saturating_add(self.task_ns);
        let times = self.view.times(now_ns, end_ns);
        let room = times.map(|ns| self.view.at(ns).saturating_sub(self.running_at(ns)));
        room.min().unwrap_or(0)
    }

    /// How many of those that run now will still do so.
    fn running_at(&self, time_ns: u64) -> u64 {
        let has_ended = |task: &Task| task.started_ns.saturating_add(self.task_ns) <= time_ns;
        self.running() - self.tasks.partition_point(has_ended) as u64
    }

    /// Asks for so many nodes instead of what it has asked for.
    fn request(&mut self, nodes: u64) -> Option<Wish> {
        let label = Self::NODES;
        let wish = match self.requested {
            Some(before) if before == nodes => return None,
            None if nodes == 0 => return None,
            Some(_) if nodes == 0 => Wish::Done { label, released: 0 },
            Some(_) => Wish::Update {
                label,
                nodes,
                duration_ns: FOREVER,
                announce_ns: 0,
            },
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

    fn wake(&mut self, now_ns: u64) -> Vec<Wish> {
        self.react(now_ns, true)
    }

    fn next_ns(&self) -> Option<u64> {
        if self.has_ended {
            return None;
        }
        let first = self.tasks.front();
        let end_ns = first.map(|task| task.started_ns.saturating_add(self.task_ns));
        let change_ns = self.view.next_change_ns(self.told_ns);
        end_ns.into_iter().chain(change_ns).min()
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }
}
