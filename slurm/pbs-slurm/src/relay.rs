// SPDX-License-Identifier: GPL-2.0
//! Slurm behind a thread of its own: who plans waits for no answer of Slurm.
//!
//! The thread has everything that talks to Slurm. [`Relay`] is the other end, for the steering: a
//! controller that accepts orders and answers at once. Orders have numbers, and are carried out in
//! their sequence. They leave only when [`Relay::send`] is called, once the ledger has been
//! written.
//!
//! A look at Slurm stands in the same sequence. It shows what the orders before it have done, and
//! says nothing about the job of a later one ([`Controller::is_ahead`]).
//!
//! ```text
//! steering -> Relay -> orders (bounded) -> thread -> scontrol, squeue
//!                ^                            |
//!                +--- answers, looks, hints --+
//! ```

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender, TryRecvError, TrySendError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{eventfd, EventfdFlags};

use crate::steer::{
    Commitment, Controller, Event, Failed, Fault, Key, Leaving, OrderKind, Revoked, World,
};

/// Orders that are not answered yet, at most. Further ones are given later.
const MOST_ORDERS: usize = 1024;
/// Orders that are not answered yet, at most, beside which users are told of plans: what starts and
/// holds jobs must not wait behind thousands of these.
const MOST_BESIDE: usize = 32;
/// Time after which a commitment that has waited is not carried out: the plan may be another.
const COMMIT_AGE: Duration = Duration::from_secs(5);
/// Time that a look may take before Slurm counts as silent, and the plan's time stands still.
const LOOK_AGE: Duration = Duration::from_secs(5);
/// Time from a look that failed to the next one, and between two reports of failed orders.
const PAUSE: Duration = Duration::from_secs(1);
/// Longest sleep of the thread: what rings is not missed, but nothing depends on that.
const SLEEP: Duration = Duration::from_secs(60);

/// A batch system that a thread serves.
pub trait Served: Controller {
    /// Waits until something happened there, or something is at the bell, at most for that time.
    fn wait(&mut self, bell: BorrowedFd<'_>, most: Duration);

    /// Takes what each job asks for ([`JobSeen::asks`](crate::steer::JobSeen::asks)), as the batch
    /// system showed it in the last look.
    fn take_asked(&mut self) -> HashMap<Key, u64>;

    /// Demands of a job at present, in the same form; `None`: that job is not there.
    ///
    /// # Errors
    ///
    /// The reason why it can't be read.
    fn asks(&mut self, job: Key) -> Result<Option<u64>, Fault>;
}

/// Command to the batch system.
#[derive(Debug)]
enum Command {
    Look,
    Hold(Key),
    Show(Key, Option<u64>, String),
    Explain(Key, String),
    Commit {
        job: Key,
        of: Commitment,
        /// Number of the look by which it was planned.
        planned_by: u64,
    },
    Leave {
        job: Key,
        of: Leaving,
        /// Number of the look that has the job in its reservation.
        planned_by: u64,
    },
    Revoke(Key),
    Stop(Key, String),
    Limit(Key, u64),
    Comment(Key, String),
    Notify(Key, String),
}

/// A command in its place.
#[derive(Debug)]
struct Order {
    number: u64,
    given: Instant,
    command: Command,
}

/// Outcome of an order; of a revocation, what the batch system showed then.
type Outcome = Result<Option<Revoked>, Fault>;

/// Reports of the thread that were not taken yet. There is one outcome at most for each order, and
/// one look.
#[derive(Debug, Default)]
struct Reports {
    outcomes: Vec<(u64, Outcome)>,
    look: Option<(u64, Result<World, Fault>)>,
    is_hinted: bool,
    is_resynced: bool,
    has_ended: bool,
}

/// An accepted order whose answer is not known.
#[derive(Clone, Copy, Debug)]
struct Accepted {
    job: Key,
    kind: OrderKind,
}

/// Answer to a revocation.
#[derive(Debug)]
struct RevocationAnswer {
    number: u64,
    answer: Result<Revoked, Fault>,
}

/// The planner's end of the thread that talks to a batch system. No call waits.
pub struct Relay {
    /// `None` only while it is dropped.
    orders: Option<SyncSender<Order>>,
    bell: Arc<OwnedFd>,
    reports: Arc<Mutex<Reports>>,
    /// Orders that leave with the next [`Self::send`].
    outbox: VecDeque<Order>,
    /// Number of the last order.
    count: u64,
    accepted: HashMap<u64, Accepted>,
    /// Number of the last order for each job, until a look shows what it has done.
    last: HashMap<Key, u64>,
    revocations: HashMap<Key, RevocationAnswer>,
    look: Option<(u64, Result<World, Fault>)>,
    /// Number of the last look that the steering has.
    seen: u64,
    /// Time at which the look was given that is under way.
    looking: Option<Instant>,
    /// The last look that failed.
    blind: Option<(Instant, Fault)>,
    failed: Vec<Failed>,
    failed_at: Option<Instant>,
}

impl Relay {
    /// Starts the thread of a batch system. `wake` is called by the thread when there are reports.
    ///
    /// # Errors
    ///
    /// No thread could be started, or there is no descriptor for its bell.
    pub fn start<S: Served + Send + 'static>(
        served: S,
        wake: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let bell = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        let reports = Arc::<Mutex<Reports>>::default();
        // An order that is accepted always has a place.
        let (orders, receiver) = sync_channel(MOST_ORDERS + 1);
        let worker = Worker {
            served,
            orders: receiver,
            next: None,
            asked: HashMap::new(),
            bell: Arc::clone(&bell),
            reports: Arc::clone(&reports),
            wake,
        };
        thread::Builder::new().name("slurm".into()).spawn(move || worker.run())?;
        Ok(Self {
            orders: Some(orders),
            bell,
            reports,
            outbox: VecDeque::new(),
            count: 0,
            accepted: HashMap::new(),
            last: HashMap::new(),
            revocations: HashMap::new(),
            look: None,
            seen: 0,
            looking: None,
            blind: None,
            failed: Vec::new(),
            failed_at: None,
        })
    }

    /// Whether there are reports that the steering has not taken.
    pub fn has_reports(&self) -> bool {
        let reports = lock(&self.reports);
        reports.look.is_some()
            || !reports.outcomes.is_empty()
            || reports.is_hinted
            || reports.is_resynced
    }

    /// Whether the thread has ended. It never does so by itself.
    pub fn has_ended(&self) -> bool {
        lock(&self.reports).has_ended
    }

    /// Whether a look is under way, or is not given yet since the last one failed.
    pub fn is_looking(&self) -> bool {
        self.looking.is_some() || self.blind.is_some()
    }

    /// Whether orders wait until they are sent.
    pub fn has_orders(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Sends the orders that were given. What they follow from is in the ledger.
    pub fn send(&mut self) {
        let Some(orders) = &self.orders else {
            return;
        };
        let is_empty = self.outbox.is_empty();
        while let Some(order) = self.outbox.pop_front() {
            match orders.try_send(order) {
                Ok(()) => {}
                Err(TrySendError::Full(order) | TrySendError::Disconnected(order)) => {
                    self.outbox.push_front(order);
                    break;
                }
            }
        }
        if !is_empty {
            ring(&self.bell);
        }
    }

    /// Takes the reports of the thread.
    fn take_reports(&mut self) -> Vec<Event> {
        let (outcomes, look, is_hinted, is_resynced) = {
            let mut reports = lock(&self.reports);
            let outcomes = std::mem::take(&mut reports.outcomes);
            let is_hinted = std::mem::take(&mut reports.is_hinted);
            let is_resynced = std::mem::take(&mut reports.is_resynced);
            (outcomes, reports.look.take(), is_hinted, is_resynced)
        };
        for (number, outcome) in outcomes {
            let Some(Accepted { job, kind }) = self.accepted.remove(&number) else {
                continue;
            };
            let is_last = self.last.get(&job) == Some(&number);
            match outcome {
                Ok(Some(revoked)) if is_last => {
                    self.revocations.insert(job, RevocationAnswer { number, answer: Ok(revoked) });
                }
                Err(why) if kind == OrderKind::Revoke && is_last => {
                    self.revocations.insert(job, RevocationAnswer { number, answer: Err(why) });
                }
                Ok(_) => {}
                Err(why) => self.failed.push(Failed { job, kind, why, is_last }),
            }
        }
        if look.is_some() {
            (self.look, self.looking) = (look, None);
        }
        let resync = is_resynced.then_some(Event::Resync);
        resync.into_iter().chain(is_hinted.then_some(Event::Look)).collect()
    }

    fn push(&mut self, command: Command) -> u64 {
        self.count += 1;
        self.outbox.push_back(Order { number: self.count, given: Instant::now(), command });
        self.count
    }

    /// Accepts an order for a job.
    fn order(&mut self, job: Key, kind: OrderKind, command: Command) -> Result<(), Fault> {
        if self.accepted.len() >= MOST_ORDERS {
            return Err(Fault::Later);
        }
        let number = self.push(command);
        self.accepted.insert(number, Accepted { job, kind });
        self.last.insert(job, number);
        self.revocations.remove(&job);
        Ok(())
    }

    /// A look shows what the orders up to that number have done.
    fn shown(&mut self, number: u64) {
        self.seen = number;
        self.last.retain(|_, last| *last > number);
        let is_old = |of: &RevocationAnswer| of.number <= number;
        let old: Vec<Key> =
            self.revocations.iter().filter(|(_, of)| is_old(of)).map(|(&job, _)| job).collect();
        for job in old {
            // Nobody waits for the answer: the look has it. Only a failure is news.
            if let Some(RevocationAnswer { answer: Err(why), .. }) = self.revocations.remove(&job) {
                self.failed.push(Failed { job, kind: OrderKind::Revoke, why, is_last: true });
            }
        }
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").field("count", &self.count).finish_non_exhaustive()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // Without a sender the thread ends, once the call that it is in returns.
        self.orders = None;
        ring(&self.bell);
    }
}

impl Controller for Relay {
    fn snapshot(&mut self) -> Result<World, Fault> {
        if let Some((number, seen)) = self.look.take() {
            match seen {
                Ok(world) => {
                    self.blind = None;
                    self.shown(number);
                    return Ok(world);
                }
                Err(why) => self.blind = Some((Instant::now(), why)),
            }
        }
        if let Some(given) = self.looking {
            let silent = format!("Slurm has given no answer for {} s", LOOK_AGE.as_secs());
            return Err(match &self.blind {
                Some((_, why)) => why.clone(),
                None if given.elapsed() >= LOOK_AGE => Fault::Unreachable(silent),
                None => Fault::Later,
            });
        }
        match &self.blind {
            Some((at, why)) if at.elapsed() < PAUSE => Err(why.clone()),
            blind => {
                let fault = blind.as_ref().map_or(Fault::Later, |(_, why)| why.clone());
                self.push(Command::Look);
                self.looking = Some(Instant::now());
                Err(fault)
            }
        }
    }

    /// A hold that is accepted is shown by a later look.
    fn hold(&mut self, job: Key) -> Result<(), Fault> {
        self.order(job, OrderKind::Hold, Command::Hold(job))?;
        Err(Fault::Later)
    }

    fn show(&mut self, job: Key, start_s: Option<u64>, why: &str) -> Result<(), Fault> {
        self.order(job, OrderKind::Show, Command::Show(job, start_s, why.into()))
    }

    fn explain(&mut self, job: Key, why: &str) -> Result<(), Fault> {
        self.order(job, OrderKind::Explain, Command::Explain(job, why.into()))
    }

    fn commit(&mut self, job: Key, of: &Commitment) -> Result<(), Fault> {
        let command = Command::Commit { job, of: of.clone(), planned_by: self.seen };
        self.order(job, OrderKind::Commit, command)
    }

    fn leave(&mut self, job: Key, of: &Leaving) -> Result<(), Fault> {
        let command = Command::Leave { job, of: of.clone(), planned_by: self.seen };
        self.order(job, OrderKind::Leave, command)
    }

    fn revoke(&mut self, job: Key) -> Result<Revoked, Fault> {
        if let Some(known) = self.revocations.remove(&job) {
            return known.answer;
        }
        let last = self.last.get(&job).and_then(|number| self.accepted.get(number));
        if last.is_none_or(|last| last.kind != OrderKind::Revoke) {
            self.order(job, OrderKind::Revoke, Command::Revoke(job))?;
        }
        Err(Fault::Later)
    }

    fn stop(&mut self, job: Key, why: &str) -> Result<(), Fault> {
        self.order(job, OrderKind::Stop, Command::Stop(job, why.into()))
    }

    fn limit(&mut self, job: Key, limit_s: u64) -> Result<(), Fault> {
        self.order(job, OrderKind::Limit, Command::Limit(job, limit_s))
    }

    /// A comment that is accepted is shown by a later look.
    fn comment(&mut self, job: Key, text: &str) -> Result<(), Fault> {
        self.order(job, OrderKind::Comment, Command::Comment(job, text.into()))?;
        Err(Fault::Later)
    }

    fn notify(&mut self, job: Key, text: &str) -> Result<(), Fault> {
        self.order(job, OrderKind::Notify, Command::Notify(job, text.into()))
    }

    fn events(&mut self) -> Vec<Event> {
        self.take_reports()
    }

    fn is_ahead(&self, job: Key) -> bool {
        self.last.contains_key(&job)
    }

    fn has_room(&self) -> bool {
        self.accepted.len() < MOST_BESIDE
    }

    fn is_answered(&self, job: Key) -> bool {
        self.revocations.contains_key(&job)
    }

    fn failed(&mut self) -> Vec<Failed> {
        // What is refused is tried again, and refused again.
        if self.failed.is_empty() || self.failed_at.is_some_and(|at| at.elapsed() < PAUSE) {
            return Vec::new();
        }
        self.failed_at = Some(Instant::now());
        std::mem::take(&mut self.failed)
    }
}

/// The thread of a batch system.
struct Worker<S, W> {
    served: S,
    orders: Receiver<Order>,
    /// Order that was taken and is not carried out yet.
    next: Option<Order>,
    /// Demands of each job in the last look, and the number of the look since which it has them.
    asked: HashMap<Key, (u64, u64)>,
    bell: Arc<OwnedFd>,
    reports: Arc<Mutex<Reports>>,
    wake: W,
}

impl<S: Served, W: Fn()> Worker<S, W> {
    /// Carries out orders until nobody can give any.
    fn run(mut self) {
        let _ended = Ended(Arc::clone(&self.reports));
        loop {
            // Before orders are taken: one that arrives later rings again.
            quiet(&self.bell);
            self.take_hints();
            loop {
                match self.next.take().map_or_else(|| self.orders.try_recv(), Ok) {
                    Ok(order) => self.carry_out(order),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return,
                }
            }
            self.served.wait(self.bell.as_fd(), SLEEP);
        }
    }

    fn take_hints(&mut self) {
        let events = self.served.events();
        if events.is_empty() {
            return;
        }
        {
            let mut reports = lock(&self.reports);
            reports.is_hinted |= events.contains(&Event::Look);
            reports.is_resynced |= events.contains(&Event::Resync);
        }
        (self.wake)();
    }

    fn carry_out(&mut self, order: Order) {
        let Order { number, given, command } = order;
        let unit = |outcome: Result<(), Fault>| outcome.map(|()| None);
        let outcome = match command {
            Command::Look => {
                // A look without the hints before it would be an old one.
                self.take_hints();
                let seen = self.served.snapshot();
                if seen.is_ok() {
                    self.note_asked(number);
                }
                lock(&self.reports).look = Some((number, seen));
                (self.wake)();
                return;
            }
            Command::Hold(job) => return self.hold_all(number, job),
            Command::Commit { .. } | Command::Leave { .. } | Command::Stop(..)
                if given.elapsed() >= COMMIT_AGE =>
            {
                Err(Fault::Later)
            }
            Command::Commit { job, of, planned_by } => {
                let planned = self.check_planned(job, planned_by);
                unit(planned.and_then(|()| self.served.commit(job, &of)))
            }
            Command::Leave { job, of, planned_by } => {
                let planned = self.check_planned(job, planned_by);
                unit(planned.and_then(|()| self.served.leave(job, &of)))
            }
            Command::Show(job, start_s, why) => unit(self.served.show(job, start_s, &why)),
            Command::Explain(job, why) => unit(self.served.explain(job, &why)),
            Command::Revoke(job) => self.served.revoke(job).map(Some),
            Command::Stop(job, why) => unit(self.served.stop(job, &why)),
            Command::Limit(job, limit_s) => unit(self.served.limit(job, limit_s)),
            Command::Comment(job, text) => unit(self.served.comment(job, &text)),
            Command::Notify(job, text) => unit(self.served.notify(job, &text)),
        };
        self.report([(number, outcome)]);
    }

    /// Notes what jobs ask for in a look.
    fn note_asked(&mut self, number: u64) {
        let before = std::mem::take(&mut self.asked);
        let since = |(job, asks)| {
            let known = before.get(&job).filter(|(of, _)| *of == asks);
            (job, (asks, known.map_or(number, |&(_, since)| since)))
        };
        self.asked = self.served.take_asked().into_iter().map(since).collect();
    }

    /// Refuses a commitment of a job that asks for something else than in the look by which it was
    /// planned: its user may have changed it since.
    fn check_planned(&mut self, job: Key, planned_by: u64) -> Result<(), Fault> {
        let known = self.asked.get(&job).filter(|(_, since)| *since <= planned_by);
        let planned = known.map(|&(asks, _)| asks).ok_or(Fault::Later)?;
        match self.served.asks(job)? {
            None => Err(Fault::Gone),
            Some(asks) if asks != planned => Err(Fault::Later),
            Some(_) => Ok(()),
        }
    }

    /// Holds a job, and those that are to be held next, together.
    fn hold_all(&mut self, number: u64, job: Key) {
        let (mut numbers, mut jobs) = (vec![number], vec![job]);
        while let Ok(order) = self.orders.try_recv() {
            match order.command {
                Command::Hold(job) => {
                    numbers.push(order.number);
                    jobs.push(job);
                }
                _ => {
                    self.next = Some(order);
                    break;
                }
            }
        }
        let held = self.served.hold_all(&jobs).into_iter().map(|held| held.map(|()| None));
        self.report(numbers.into_iter().zip(held));
    }

    fn report(&self, outcomes: impl IntoIterator<Item = (u64, Outcome)>) {
        lock(&self.reports).outcomes.extend(outcomes);
        (self.wake)();
    }
}

/// Notes the end of the thread, however it ends.
struct Ended(Arc<Mutex<Reports>>);

impl Drop for Ended {
    fn drop(&mut self) {
        lock(&self.0).has_ended = true;
    }
}

fn lock(reports: &Mutex<Reports>) -> MutexGuard<'_, Reports> {
    reports.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ring(bell: &OwnedFd) {
    // A full counter has rung already.
    let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
}

fn quiet(bell: &OwnedFd) {
    // An empty counter has not rung.
    let _ = rustix::io::read(bell, &mut [0; 8]);
}
