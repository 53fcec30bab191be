// SPDX-License-Identifier: GPL-2.0
//! Engine of a service: each request's job is a job of the owner of the request.
//!
//! A thread of each owner becomes this user for the kernel, connects to the service of the node,
//! and reads the owner's job files. An owner whose files or jobs do not answer delays nobody else,
//! and no call of the engine waits.
//!
//! The threads receive orders that are in the ledger only. A kill that is in the ledger may have
//! missed its job nevertheless, because this process was stopped: at the start, a further thread
//! cancels the jobs that an earlier process has started and the ledger does not run.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use pbs_cluster_planner::RequestId;
use pbs_manager::{Allocation, Caller, Engine, Happened, Wish};
use pbs_site::User;

use crate::desk::{lock, Desk, Reports};
use crate::sweep::{sweep, Running};

/// Owners whose requests run at once: each has a thread.
const MOST_OWNERS: usize = 256;

/// An order to the thread of an owner.
enum Order {
    Start(Box<Allocation>),
    Stop(RequestId),
    Extend(RequestId, u64),
    Notify(RequestId),
}

/// The service of this node, for the owners of requests.
pub struct Owners {
    socket: PathBuf,
    desks: HashMap<User, Arc<Desk>>,
    /// Owner of each request that has its nodes.
    owners: HashMap<RequestId, User>,
    /// Start of each request that has its nodes.
    running: Running,
    /// Orders that are not in the ledger yet.
    orders: Vec<Order>,
    /// Whether jobs of earlier processes are cancelled, or were.
    is_swept: bool,
    reports: Arc<Reports>,
}

impl Owners {
    /// The service that listens there. `wake` is called when events can be taken, and `trouble` is
    /// told of errors that end nothing; both by other threads.
    pub fn new(
        socket: &Path,
        wake: impl Fn() + Send + Sync + 'static,
        trouble: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        Self {
            socket: socket.into(),
            desks: HashMap::new(),
            owners: HashMap::new(),
            running: Running::default(),
            orders: Vec::new(),
            is_swept: false,
            reports: Arc::new(Reports::new(wake, trouble)),
        }
    }

    /// Hands a request to the thread of its owner, and starts the thread if there is none.
    fn hand(&mut self, allocation: &Allocation) -> Result<(), String> {
        let owner = &allocation.user;
        // Who may act for others must not run programs as them.
        if allocation.submitted_by.as_ref() != Some(owner) {
            return Err(others(owner));
        }
        if self.desks.get(owner).is_some_and(|desk| desk.start(allocation)) {
            return Ok(());
        }
        self.desks.retain(|_, desk| !desk.is_closed());
        if self.desks.len() >= MOST_OWNERS {
            return Err(format!("{MOST_OWNERS} users have requests that run; submit it again"));
        }
        let desk = Arc::new(Desk::default());
        desk.start(allocation);
        let (of_thread, reports) = (Arc::clone(&desk), Arc::clone(&self.reports));
        let (of_owner, socket) = (owner.clone(), self.socket.clone());
        let thread = thread::Builder::new().name("owner".into());
        thread
            .spawn(move || of_thread.run(&of_owner, socket, &reports))
            .map_err(|error| format!("no thread could be started: {error}"))?;
        self.desks.insert(owner.clone(), desk);
        Ok(())
    }

    /// Starts the thread that cancels what the ledger does not run.
    fn sweep(&mut self) {
        self.is_swept = true;
        let (socket, running) = (self.socket.clone(), Arc::clone(&self.running));
        let reports = Arc::clone(&self.reports);
        let thread = thread::Builder::new().name("sweep".into());
        if let Err(error) = thread.spawn(move || sweep(&socket, &running, &reports)) {
            self.reports.tell(&format!("jobs of an earlier service were not looked for: {error}"));
        }
    }

    fn perform(&mut self, order: Order) {
        match order {
            Order::Start(allocation) => {
                let (id, owner) = (allocation.request, allocation.user.clone());
                self.owners.insert(id, owner);
                lock(&self.running).insert(id, allocation.from_s);
                if let Err(why) = self.hand(&allocation) {
                    self.reports.refuse(id, &why);
                }
            }
            Order::Stop(id) => {
                if let Some(desk) = self.desk(id) {
                    desk.stop(id);
                }
                self.owners.remove(&id);
                lock(&self.running).remove(&id);
            }
            Order::Extend(id, until_s) => {
                if let Some(desk) = self.desk(id) {
                    desk.extend(id, until_s);
                }
            }
            Order::Notify(id) => {
                if let Some(desk) = self.desk(id) {
                    desk.notify(id);
                }
            }
        }
    }

    fn desk(&self, request: RequestId) -> Option<&Desk> {
        let desk = self.desks.get(self.owners.get(&request)?)?;
        Some(desk)
    }
}

fn others(owner: &User) -> String {
    format!("only {owner} can submit what runs as {owner}; leave out --user, or become that user")
}

impl Engine for Owners {
    fn check(&self, caller: &Caller, wish: &Wish) -> Result<(), String> {
        if caller.user != wish.user {
            return Err(others(&wish.user));
        }
        let last = wish.array.iter().flatten().max();
        if let Some(index) = last.filter(|&&index| index > u64::from(u32::MAX)) {
            return Err(format!("index {index} is too large; write one up to {}", u32::MAX));
        }
        match &wish.command[..] {
            [file] if Path::new(file).is_absolute() => Ok(()),
            [file] => Err(format!(
                "the service does not know the directory of {file}; write the whole path of the \
                 job file"
            )),
            _ => {
                Err("the command must be one job file, with its whole path; see pbs-job(5)".into())
            }
        }
    }

    fn start(&mut self, allocation: &Allocation) {
        self.orders.push(Order::Start(allocation.clone().into()));
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

    fn written(&mut self) {
        for order in std::mem::take(&mut self.orders) {
            self.perform(order);
        }
    }

    // What was reported is due at once.
    fn next_s(&self) -> Option<u64> {
        (!self.reports.is_empty() || !self.is_swept).then_some(0)
    }

    fn happened(&mut self, _: u64) -> Vec<Happened> {
        // Time passes: the ledger is open, and all that it runs was told.
        if !self.is_swept {
            self.sweep();
        }
        self.reports.take()
    }
}
