// SPDX-License-Identifier: GPL-2.0
//! Between the manager and who steers: orders go one way, what has happened the other.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use pbs_cluster_planner::RequestId;
use pbs_manager::ledger::CONTROLLER;
use pbs_manager::{Allocation, Caller, Engine, Happened, Wish};
use pbs_site::User;

use crate::steer::seen::Key;

/// Order of the manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// A request has its nodes.
    Start(Allocation),
    /// A request is over, or has to start again.
    Stop(RequestId),
    /// A request may run until then.
    Extend(RequestId, u64),
    /// A request ends soon.
    Notify(RequestId),
}

/// The engine of a manager whose requests are steered.
#[derive(Debug)]
pub struct Link {
    window_s: u64,
    pub(crate) orders: Vec<Order>,
    /// Events by their time: each is reported when the manager's clock has reached it.
    told: BTreeMap<(u64, u64), Happened>,
    count: u64,
    /// Nodes that are not free yet of jobs that are over.
    pub(crate) kept: HashMap<RequestId, Vec<String>>,
}

impl Link {
    /// A link for a steering that lets jobs go that long before their start.
    pub fn new(window: Duration) -> Self {
        Self {
            window_s: window.as_secs(),
            orders: Vec::new(),
            told: BTreeMap::new(),
            count: 0,
            kept: HashMap::new(),
        }
    }

    /// Whether the manager has given orders that are not carried out yet.
    pub fn has_orders(&self) -> bool {
        !self.orders.is_empty()
    }

    /// Stores an event of that time.
    pub(crate) fn tell(&mut self, at_s: u64, happened: Happened) {
        self.count += 1;
        self.told.insert((at_s, self.count), happened);
    }
}

/// Whether the steering calls. Its name alone is nobody else who calls: users of a service have
/// numbers.
fn is_steering(caller: &Caller) -> bool {
    caller.user == User::from(CONTROLLER)
}

impl Engine for Link {
    fn check(&self, caller: &Caller, _: &Wish) -> Result<(), String> {
        if is_steering(caller) {
            return Ok(());
        }
        Err("Slurm starts the jobs of this cluster, and each request is one of its jobs; submit \
             it with sbatch"
            .into())
    }

    fn check_change(&self, caller: &Caller, command: &[String]) -> Result<(), String> {
        if is_steering(caller) {
            return Ok(());
        }
        let key = command.first().and_then(|word| word.parse::<Key>().ok());
        let name = key.map_or_else(|| "NUMBER".into(), Key::name);
        Err(format!(
            "Slurm starts the jobs of this cluster, and the plan follows what they ask for; change \
             the job with scontrol update JobId={name}, such as TimeLimit=30 or Comment='pbs \
             deadline=4h'"
        ))
    }

    fn check_reservation(&self) -> Result<(), String> {
        Err("Slurm has the reservations of this cluster, and the plan keeps to them; make one with \
             scontrol create reservation"
            .into())
    }

    fn start(&mut self, allocation: &Allocation) {
        self.orders.push(Order::Start(allocation.clone()));
    }

    fn stop(&mut self, request: RequestId) {
        self.orders.push(Order::Stop(request));
    }

    fn extend(&mut self, request: RequestId, until_s: u64) {
        self.orders.push(Order::Extend(request, until_s));
    }

    fn notify(&mut self, request: RequestId) {
        self.orders.push(Order::Notify(request));
    }

    fn has_phases(&self) -> bool {
        true
    }

    fn fixed_before_s(&self) -> Option<u64> {
        Some(self.window_s)
    }

    fn late_nodes(&self, request: RequestId) -> Vec<String> {
        self.kept.get(&request).cloned().unwrap_or_default()
    }

    fn next_s(&self) -> Option<u64> {
        self.told.first_key_value().map(|(&(at_s, _), _)| at_s)
    }

    fn happened(&mut self, now_s: u64) -> Vec<Happened> {
        let later = self.told.split_off(&(now_s.saturating_add(1), 0));
        std::mem::replace(&mut self.told, later).into_values().collect()
    }
}
