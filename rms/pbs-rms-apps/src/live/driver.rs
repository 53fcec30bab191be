// SPDX-License-Identifier: GPL-2.0
//! One application and its session.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::path::Path;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Application, How, Kind, Label, Request, Views, Wish};
use pbs_rms_api::{Asked, Change, Client, Cluster, Failure, Notice};
use pbs_uapi::clock::unix_ns;

use crate::live::clock::Clock;
use crate::live::tasks::{TaskNews, Tasks};

/// Index of the cluster whose nodes an application has: the first one of the manager.
const CLUSTER: u64 = 0;
/// No wait is longer: whoever wants it to end need not wait for long.
const LOOK: Duration = Duration::from_millis(200);
/// Interval at which the state of tasks is checked.
const TASK_LOOK: Duration = Duration::from_millis(50);

/// Event for an observer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// A request has its nodes.
    Started {
        /// Time of the model.
        at_ns: u64,
        /// Number of the request.
        request: u64,
        /// Nodes of the request.
        nodes: Vec<u32>,
    },
    /// A request was given other nodes, or the same for longer.
    Updated {
        /// Time of the model.
        at_ns: u64,
        /// The number of the one that takes its place.
        request: u64,
        /// New number of nodes.
        nodes: u64,
        /// Time until the change, in the time of the model; 0: at once.
        announce_ns: u64,
        /// New duration, in the time of the model.
        duration_ns: u64,
    },
    /// A task has begun.
    TaskStarted {
        /// Time of the model.
        at_ns: u64,
        /// Number of the task.
        task: u64,
        /// Node of the task.
        node: u32,
    },
    /// A task has ended, or could not begin.
    TaskEnded {
        /// Time of the model.
        at_ns: u64,
        /// Number of the task.
        task: u64,
        /// complete, killed, or what has gone wrong.
        outcome: String,
    },
    /// The state of the tasks is unknown for now.
    Trouble {
        /// Time of the model.
        at_ns: u64,
        /// Reason.
        why: String,
    },
    /// A request was refused.
    Refused {
        /// Time of the model.
        at_ns: u64,
        /// Reason, if the manager gave one.
        why: Option<String>,
    },
    /// Nodes were kept for too long; the session is over.
    Violation {
        /// Time of the model.
        at_ns: u64,
        /// Reason, if the manager gave one.
        why: Option<String>,
    },
}

/// Reason for which a run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The application has ended.
    Complete,
    /// The caller did not want it to go on.
    Stopped,
    /// The manager refused the only request of the application.
    Refused,
    /// Nodes were kept for too long, and the session has ended.
    Violation,
    /// Someone else has ended the session.
    Closed,
    /// The manager has closed the connection.
    Disconnected,
}

/// A request that the model knows by a label.
#[derive(Clone, Copy, Debug)]
struct HeldRequest {
    request: u64,
    /// Duration for the manager.
    duration_ns: Option<u64>,
    /// Time from which the duration counts; `None`: the request has not started.
    from_unix_ns: Option<u64>,
}

impl HeldRequest {
    /// Returns the time at which the application loses the nodes.
    fn until_unix_ns(&self) -> Option<u64> {
        Some(self.from_unix_ns?.saturating_add(self.duration_ns?))
    }
}

/// A task that runs.
#[derive(Clone, Copy, Debug)]
struct Task {
    number: u64,
    since_unix_ns: u64,
}

/// An application and its session.
#[derive(Debug)]
pub struct Driver<A> {
    model: A,
    clock: Clock,
    calls: Client,
    session: u64,
    notices: Receiver<Result<Notice, Failure>>,
    /// Notices that have arrived but were not handled yet.
    waiting: VecDeque<Notice>,
    /// Requests of the model, by label.
    labels: BTreeMap<Label, HeldRequest>,
    /// Their nodes, as far as it has heard.
    nodes: BTreeMap<u64, Vec<u32>>,
    /// Updates to fewer nodes that came before it had heard of more: to be tried again.
    again: BTreeMap<Label, Wish>,
    /// Cluster of the nodes.
    cluster: Cluster,
    /// `None`: a model, of which the tasks only last.
    tasks: Option<Box<dyn Tasks>>,
    /// Running task of each node.
    running: BTreeMap<u32, Task>,
    looked: Instant,
    /// Wishes that it has since it has connected: what becomes of them is news.
    first: Vec<Wish>,
    /// Reason for which the session is over.
    over: Option<RunEnd>,
}

impl<A: Application> Driver<A> {
    /// Begins a session for a model whose time goes so many times faster.
    pub fn connect(socket: &Path, name: &str, mut model: A, speed: u64) -> Result<Self, Failure> {
        let mut calls = Client::connect_to(socket)?;
        let connected = calls.connect(name)?;
        let session = connected.session;
        let cluster = connected.clusters.into_iter().next().unwrap_or_default();
        let monitor = Client::connect_to(socket)?;
        let (sender, notices) = channel();
        thread::spawn(move || {
            let ended = monitor.monitor(session, |notice| sender.send(Ok(notice)).is_ok());
            if let Err(failure) = ended {
                // Nobody may listen any more.
                let _ = sender.send(Err(failure));
            }
        });
        let clock = Clock::new(speed);
        let first = model.connect(clock.now_ns());
        Ok(Self {
            model,
            clock,
            calls,
            session,
            notices,
            waiting: VecDeque::new(),
            labels: BTreeMap::new(),
            nodes: BTreeMap::new(),
            again: BTreeMap::new(),
            cluster,
            tasks: None,
            running: BTreeMap::new(),
            looked: Instant::now(),
            first,
            over: None,
        })
    }

    /// The cluster of which its nodes are.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Sets the executor of the tasks, for an application whose time is that of the machine.
    pub fn run_tasks_by(&mut self, tasks: Box<dyn Tasks>) {
        self.tasks = Some(tasks);
    }

    /// The application.
    pub fn model(&self) -> &A {
        &self.model
    }

    /// Runs until the application has ended, its session is over, or `goes_on` returns `false`.
    ///
    /// # Errors
    ///
    /// The manager does not answer, or the notices of the session are lost.
    pub fn run(
        &mut self,
        mut goes_on: impl FnMut(&A) -> bool,
        mut news: impl FnMut(News),
    ) -> Result<RunEnd, Failure> {
        let first = std::mem::take(&mut self.first);
        if self.begin(first, &mut news)? {
            return Ok(RunEnd::Refused);
        }
        loop {
            if let Some(over) = self.over {
                return Ok(over);
            }
            if self.model.has_ended() {
                return Ok(RunEnd::Complete);
            }
            if !goes_on(&self.model) {
                return Ok(RunEnd::Stopped);
            }
            let next_ns = self.model.next_ns();
            let look = if self.running.is_empty() {
                LOOK
            } else {
                TASK_LOOK.saturating_sub(self.looked.elapsed())
            };
            let wait = next_ns.map_or(look, |ns| self.clock.until(ns).min(look));
            let is_told = match self.notices.recv_timeout(wait) {
                Ok(notice) => {
                    self.waiting.push_back(notice?);
                    true
                }
                Err(RecvTimeoutError::Timeout) => false,
                Err(RecvTimeoutError::Disconnected) => return Ok(RunEnd::Disconnected),
            };
            let now_ns = self.clock.now_ns();
            let is_woken = self.model.next_ns().is_some_and(|ns| ns <= now_ns);
            // What has ended by itself need not be killed.
            if is_told || is_woken || self.looked.elapsed() >= TASK_LOOK {
                self.look(&mut news)?;
            }
            self.hear_all(&mut news)?;
            let now_ns = self.clock.now_ns();
            if self.model.next_ns().is_some_and(|ns| ns <= now_ns) && self.over.is_none() {
                let wishes = self.model.wake(now_ns);
                self.fulfil(wishes, &mut news)?;
            }
        }
    }

    /// Sends the first wishes. Returns whether the application waits in vain: it has made requests,
    /// and none of them was taken.
    fn begin(&mut self, first: Vec<Wish>, news: &mut impl FnMut(News)) -> Result<bool, Failure> {
        let requests = first.iter().any(|wish| matches!(wish, Wish::Request(_)));
        self.fulfil(first, news)?;
        let waits = self.labels.is_empty() && self.model.next_ns().is_none();
        Ok(requests && waits && !self.model.has_ended())
    }

    /// Hears all that has come, but views only where no later ones of the same cluster have: what
    /// one shows for later may have been for now when it is heard.
    fn hear_all(&mut self, news: &mut impl FnMut(News)) -> Result<(), Failure> {
        let seen = |notice: &Notice| notice.views.as_ref().map(|views| views.cluster);
        loop {
            while let Ok(notice) = self.notices.try_recv() {
                self.waiting.push_back(notice?);
            }
            let Some(notice) = self.waiting.pop_front().filter(|_| self.over.is_none()) else {
                return Ok(());
            };
            let cluster = seen(&notice);
            if cluster.is_none() || !self.waiting.iter().any(|later| seen(later) == cluster) {
                self.hear(&notice, news)?;
            }
        }
    }

    /// Ends the session with all that it has.
    pub fn disconnect(mut self) -> Result<A, Failure> {
        self.kill_where(|_| true, &mut |_| ());
        if self.over.is_none() {
            self.calls.disconnect(self.session)?;
        }
        Ok(self.model)
    }

    /// Looks how the tasks are, and tells the application.
    fn look(&mut self, news: &mut impl FnMut(News)) -> Result<(), Failure> {
        let has_some = !self.running.is_empty();
        let Some(tasks) = self.tasks.as_mut().filter(|_| has_some) else {
            return Ok(());
        };
        self.looked = Instant::now();
        for of_task in tasks.look() {
            let at_ns = self.clock.now_ns();
            let wishes = match of_task {
                TaskNews::Expected { task, end_unix_ns } => {
                    let end_ns = self.clock.of_unix_ns(end_unix_ns);
                    self.model.task_expected(at_ns, task, end_ns)
                }
                TaskNews::Ended { task, outcome } => {
                    self.running.retain(|_, running| running.number != task);
                    news(News::TaskEnded { at_ns, task, outcome });
                    self.model.task_ended(at_ns, task)
                }
                TaskNews::Trouble { why } => {
                    news(News::Trouble { at_ns, why });
                    Vec::new()
                }
            };
            self.fulfil(wishes, news)?;
        }
        Ok(())
    }

    /// Kills the tasks on some nodes: those that have run, with since when.
    fn kill_where(
        &mut self,
        mut is_killed: impl FnMut((u32, Task)) -> bool,
        news: &mut impl FnMut(News),
    ) -> Vec<Task> {
        let Some(tasks) = &mut self.tasks else {
            return Vec::new();
        };
        let running = self.running.iter().map(|(&node, &task)| (node, task));
        let killed: Vec<(u32, Task)> = running.filter(|&on| is_killed(on)).collect();
        for (node, task) in &killed {
            tasks.kill(task.number);
            self.running.remove(node);
            news(News::TaskEnded {
                at_ns: self.clock.now_ns(),
                task: task.number,
                outcome: "killed".into(),
            });
        }
        killed.into_iter().map(|on| on.1).collect()
    }

    fn hear(&mut self, notice: &Notice, news: &mut impl FnMut(News)) -> Result<(), Failure> {
        let now_ns = self.clock.now_ns();
        let of = |request: Option<u64>, labels: &BTreeMap<Label, HeldRequest>| {
            let found = labels.iter().find(|label| Some(label.1.request) == request);
            found.map(|(&label, held)| (label, held.request))
        };
        let wishes = match notice.kind.as_str() {
            // Those of other clusters are not about its nodes.
            "views" => notice.views.as_ref().map_or_else(Vec::new, |views| {
                if views.cluster != CLUSTER {
                    return Vec::new();
                }
                let both = [&views.non_preemptible, &views.preemptible];
                let [non_preemptible, preemptible] = both.map(|cap| self.clock.view(cap));
                let views = Views { non_preemptible: &non_preemptible, preemptible: &preemptible };
                self.model.views(now_ns, views)
            }),
            "started" => {
                let nodes = notice.nodes.clone().unwrap_or_default();
                let Some((label, request)) = of(notice.request, &self.labels) else {
                    return Ok(());
                };
                self.nodes.insert(request, nodes.clone());
                if let Some(held) = self.labels.get_mut(&label) {
                    // Of an update that is known: its time counts while it waits for nodes.
                    held.from_unix_ns.get_or_insert(notice.unix_ns);
                }
                let again = self.again.remove(&label);
                let count = nodes.len() as u64;
                news(News::Started { at_ns: now_ns, request, nodes });
                let mut wishes = self.model.started(now_ns, label, count);
                // It wishes anew what it still wants.
                if wishes.is_empty() {
                    wishes.extend(again);
                }
                wishes
            }
            "refused" => {
                news(News::Refused { at_ns: now_ns, why: notice.why.clone() });
                let label = of(notice.request, &self.labels);
                label.map_or_else(Vec::new, |(label, _)| self.model.refused(now_ns, label))
            }
            "ended" => {
                let nodes = notice.nodes.as_deref().unwrap_or_default();
                self.kill_where(|(node, _)| nodes.contains(&node), news);
                let label = of(notice.request, &self.labels);
                label.map_or_else(Vec::new, |(label, request)| {
                    self.labels.remove(&label);
                    self.nodes.remove(&request);
                    self.model.run_out(now_ns, label)
                })
            }
            "violation" => {
                news(News::Violation { at_ns: now_ns, why: notice.why.clone() });
                self.over = Some(RunEnd::Violation);
                self.kill_where(|_| true, news);
                Vec::new()
            }
            "closed" => {
                self.over.get_or_insert(RunEnd::Closed);
                self.kill_where(|_| true, news);
                Vec::new()
            }
            _ => Vec::new(),
        };
        self.fulfil(wishes, news)
    }

    /// Sends what the application wishes, and what it wishes when that is refused.
    fn fulfil(&mut self, wishes: Vec<Wish>, news: &mut impl FnMut(News)) -> Result<(), Failure> {
        let mut wishes = VecDeque::from(wishes);
        while let Some(wish) = wishes.pop_front() {
            match &wish {
                Wish::Start { tasks } => {
                    wishes.extend(self.start(tasks.clone(), news));
                    continue;
                }
                Wish::Kill { tasks } => {
                    let killed = self.kill_where(|on| tasks.contains(&on.1.number), news);
                    self.tell_waste(&killed)?;
                    continue;
                }
                _ => {}
            }
            let Err(failure) = self.send(&wish, news) else {
                continue;
            };
            let Failure::Refused(refusal) = failure else {
                return Err(failure);
            };
            let (Wish::Update { label, .. } | Wish::Request(Request { label, .. })) = wish else {
                // What is done may be over by itself.
                continue;
            };
            if self.is_too_early(&wish) {
                self.again.insert(label, wish);
                continue;
            }
            let at_ns = self.clock.now_ns();
            let why = Some(refusal.to_string());
            news(News::Refused { at_ns, why });
            wishes.extend(self.model.refused(at_ns, label));
        }
        Ok(())
    }

    /// Starts tasks, each on a node that has none.
    fn start(&mut self, tasks: Range<u64>, news: &mut impl FnMut(News)) -> Vec<Wish> {
        let mut wishes = Vec::new();
        let Some(by) = &mut self.tasks else {
            return wishes;
        };
        let held = self.labels.values().flat_map(|held| {
            let nodes = self.nodes.get(&held.request).into_iter().flatten();
            nodes.map(|&node| (node, held.until_unix_ns()))
        });
        let free = held.filter(|(node, _)| !self.running.contains_key(node));
        let free: Vec<(u32, Option<u64>)> = free.collect();
        for (place, number) in tasks.enumerate() {
            let started = match free.get(place) {
                Some(&(node, until)) => by.start(number, node, until).map(|()| node),
                None => Err("there is no node for it".into()),
            };
            let at_ns = self.clock.now_ns();
            match started {
                Ok(node) => {
                    let since_unix_ns = unix_ns();
                    let task = Task { number, since_unix_ns };
                    self.running.insert(node, task);
                    news(News::TaskStarted { at_ns, task: number, node });
                }
                Err(outcome) => {
                    news(News::TaskEnded { at_ns, task: number, outcome });
                    wishes.extend(self.model.task_ended(at_ns, number));
                }
            }
        }
        wishes
    }

    /// Reports the work of killed tasks as waste to the account.
    fn tell_waste(&mut self, killed: &[Task]) -> Result<(), Failure> {
        let now_unix_ns = unix_ns();
        let ran = killed.iter().map(|task| now_unix_ns.saturating_sub(task.since_unix_ns));
        let node_ns = ran.fold(0, u64::saturating_add);
        if node_ns > 0 {
            self.calls.waste(self.session, node_ns)?;
        }
        Ok(())
    }

    /// An update to fewer nodes at once is refused only if the request has others than it has
    /// heard of.
    fn is_too_early(&self, wish: &Wish) -> bool {
        let Wish::Update { label, nodes, announce_ns: 0, .. } = wish else {
            return false;
        };
        let held = self.labels.get(label);
        let held = held.and_then(|held| self.nodes.get(&held.request));
        held.is_none_or(|held| *nodes <= held.len() as u64)
    }

    fn send(&mut self, wish: &Wish, news: &mut impl FnMut(News)) -> Result<(), Failure> {
        match wish {
            // The refusal of the other request was told, and this one would hang on nothing.
            Wish::Request(Request { how: How::Coalloc(label) | How::Next(label), .. })
                if !self.labels.contains_key(label) => {}
            Wish::Request(request) => {
                let asked = self.asked(request);
                let held = HeldRequest {
                    request: self.calls.request(self.session, &asked)?,
                    duration_ns: asked.duration_ns,
                    from_unix_ns: None,
                };
                self.labels.insert(request.label, held);
            }
            &Wish::Update { label, nodes, duration_ns, announce_ns } => {
                let Some(of) = self.labels.get(&label).copied() else {
                    return Ok(());
                };
                let (kept, released) = self.split(of.request, nodes, announce_ns == 0);
                let now_unix_ns = unix_ns();
                let announce_real_ns = self.clock.real_ns(announce_ns).filter(|&ns| ns > 0);
                let change = Change {
                    request: of.request,
                    nodes,
                    duration_ns: self.clock.real_ns(duration_ns),
                    announce_ns: announce_real_ns,
                    released: Some(released),
                };
                let request = self.calls.update(self.session, &change)?.request;
                // What has not started yet only becomes another.
                let from_unix_ns = match announce_real_ns {
                    Some(ns) => Some(now_unix_ns.saturating_add(ns)),
                    None if request == of.request => of.from_unix_ns,
                    None => Some(now_unix_ns),
                };
                let held = HeldRequest { request, duration_ns: change.duration_ns, from_unix_ns };
                self.nodes.remove(&of.request);
                self.nodes.insert(request, kept);
                self.labels.insert(label, held);
                self.extend(held);
                let until_unix_ns = from_unix_ns.unwrap_or(now_unix_ns);
                let until_ns = self.clock.of_unix_ns(until_unix_ns);
                let at_ns = self.clock.now_ns();
                news(News::Updated {
                    at_ns,
                    request,
                    nodes,
                    announce_ns: until_ns.saturating_sub(at_ns),
                    duration_ns,
                });
            }
            Wish::Done { label, released } => {
                let Some(held) = self.labels.remove(label) else {
                    return Ok(());
                };
                let nodes = self.nodes.remove(&held.request).unwrap_or_default();
                let released = usize::try_from(*released).unwrap_or(usize::MAX);
                let released = &nodes[nodes.len() - released.min(nodes.len())..];
                self.calls.done(self.session, held.request, released)?;
            }
            // Tasks are not the manager's affair, and a model writes nothing down.
            Wish::Start { .. } | Wish::Kill { .. } | Wish::Checkpoint => {}
        }
        Ok(())
    }

    /// The nodes of a request that are kept of it and, if that is at once, those that are given
    /// back: first those without a task.
    fn split(&self, request: u64, nodes: u64, is_now: bool) -> (Vec<u32>, Vec<u32>) {
        let mut held = self.nodes.get(&request).cloned().unwrap_or_default();
        held.sort_by_key(|node| !self.running.contains_key(node));
        let kept = usize::try_from(nodes).unwrap_or(usize::MAX);
        let kept = if is_now { kept } else { held.len() };
        let released = held.split_off(kept.min(held.len()));
        (held, released)
    }

    /// The tasks on the nodes of a request may take as long as it does.
    fn extend(&mut self, held: HeldRequest) {
        let (Some(tasks), Some(until)) = (&mut self.tasks, held.until_unix_ns()) else {
            return;
        };
        let nodes = self.nodes.get(&held.request).into_iter().flatten();
        for task in nodes.filter_map(|node| self.running.get(node)) {
            tasks.extend(task.number, until);
        }
    }

    fn asked(&self, request: &Request) -> Asked {
        let of = |label| self.labels.get(&label).map(|held| held.request);
        let (coalloc, next) = match request.how {
            How::Free => (None, None),
            How::Coalloc(label) => (of(label), None),
            How::Next(label) => (None, of(label)),
        };
        Asked {
            cluster: CLUSTER,
            nodes: request.nodes,
            duration_ns: self.clock.real_ns(request.duration_ns),
            kind: match request.kind {
                Kind::PreAllocation => "pre-allocation",
                Kind::NonPreemptible => "non-preemptible",
                Kind::Preemptible => "preemptible",
            }
            .into(),
            coalloc,
            next,
            preferred: None,
        }
    }
}
