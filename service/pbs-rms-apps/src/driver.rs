// SPDX-License-Identifier: GPL-2.0
//! One application and its session.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use pbs_apps::{Application, How, Kind, Label, Request, Views, Wish};
use pbs_rms_wire::{Asked, Change, Client, Failure, Notice};

use crate::clock::Clock;

/// No wait is longer: whoever wants it to end need not wait for long.
const LOOK: Duration = Duration::from_millis(200);

/// What happened, for whoever looks on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// A request has its nodes.
    Started {
        /// When, in the time of the model.
        at_ns: u64,
        /// Its number.
        request: u64,
        /// Its nodes.
        nodes: Vec<u32>,
    },
    /// A request was refused.
    Refused {
        /// When, in the time of the model.
        at_ns: u64,
        /// Why, if the manager has said so.
        why: Option<String>,
    },
    /// Nodes were kept for too long; the session is over.
    Violation {
        /// When, in the time of the model.
        at_ns: u64,
    },
}

/// An application and its session.
#[derive(Debug)]
pub struct Driver<A> {
    model: A,
    clock: Clock,
    calls: Client,
    session: u64,
    notices: Receiver<Result<Notice, Failure>>,
    /// What the model calls the requests that it has.
    labels: BTreeMap<Label, u64>,
    /// Their nodes, as far as it has heard.
    nodes: BTreeMap<u64, Vec<u32>>,
    /// Updates to fewer nodes that came before it had heard of more: to be tried again.
    again: BTreeMap<Label, Wish>,
    is_over: bool,
}

impl<A: Application> Driver<A> {
    /// Begins a session for a model whose time goes so many times faster.
    pub fn connect(socket: &Path, name: &str, mut model: A, speed: u64) -> Result<Self, Failure> {
        let mut calls = Client::connect_to(socket)?;
        let session = calls.connect(name)?.session;
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
        let wishes = model.connect(clock.now_ns());
        let mut driver = Self {
            model,
            clock,
            calls,
            session,
            notices,
            labels: BTreeMap::new(),
            nodes: BTreeMap::new(),
            again: BTreeMap::new(),
            is_over: false,
        };
        driver.fulfil(wishes, &mut |_| ())?;
        Ok(driver)
    }

    /// The application.
    pub fn model(&self) -> &A {
        &self.model
    }

    /// Goes on until the application has ended, its session is over, or `goes_on` says no.
    pub fn run(
        &mut self,
        mut goes_on: impl FnMut(&A) -> bool,
        mut news: impl FnMut(News),
    ) -> Result<(), Failure> {
        while !self.is_over && !self.model.has_ended() && goes_on(&self.model) {
            let next_ns = self.model.next_ns();
            let wait = next_ns.map_or(LOOK, |ns| self.clock.until(ns).min(LOOK));
            match self.notices.recv_timeout(wait) {
                Ok(notice) => self.hear(&notice?, &mut news)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let now_ns = self.clock.now_ns();
            if self.model.next_ns().is_some_and(|ns| ns <= now_ns) && !self.is_over {
                let wishes = self.model.wake(now_ns);
                self.fulfil(wishes, &mut news)?;
            }
        }
        Ok(())
    }

    /// Ends the session with all that it has.
    pub fn disconnect(mut self) -> Result<A, Failure> {
        if !self.is_over {
            self.calls.disconnect(self.session)?;
        }
        Ok(self.model)
    }

    fn hear(&mut self, notice: &Notice, news: &mut impl FnMut(News)) -> Result<(), Failure> {
        let now_ns = self.clock.now_ns();
        let of = |request: Option<u64>, labels: &BTreeMap<Label, u64>| {
            let mut labels = labels.iter();
            let found = labels.find(|label| Some(*label.1) == request);
            found.map(|(&label, &request)| (label, request))
        };
        let wishes = match notice.kind.as_str() {
            "views" => notice.views.as_ref().map_or_else(Vec::new, |views| {
                let both = [&views.non_preemptible, &views.preemptible];
                let [non_preemptible, preemptible] = both.map(|cap| self.clock.view(cap));
                let views = Views {
                    non_preemptible: &non_preemptible,
                    preemptible: &preemptible,
                };
                self.model.views(now_ns, views)
            }),
            "started" => {
                let nodes = notice.nodes.clone().unwrap_or_default();
                let Some((label, request)) = of(notice.request, &self.labels) else {
                    return Ok(());
                };
                self.nodes.insert(request, nodes.clone());
                let again = self.again.remove(&label);
                let count = nodes.len() as u64;
                news(News::Started {
                    at_ns: now_ns,
                    request,
                    nodes,
                });
                let mut wishes = self.model.started(now_ns, label, count);
                // It wishes anew what it still wants.
                if wishes.is_empty() {
                    wishes.extend(again);
                }
                wishes
            }
            "refused" => {
                news(News::Refused {
                    at_ns: now_ns,
                    why: None,
                });
                let label = of(notice.request, &self.labels);
                label.map_or_else(Vec::new, |(label, _)| self.model.refused(now_ns, label))
            }
            "violation" => {
                news(News::Violation { at_ns: now_ns });
                self.is_over = true;
                Vec::new()
            }
            "closed" => {
                self.is_over = true;
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
            let Err(failure) = self.send(&wish) else {
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

    /// An update to fewer nodes is refused only if the request has others than it has heard of.
    fn is_too_early(&self, wish: &Wish) -> bool {
        let Wish::Update { label, nodes, .. } = wish else {
            return false;
        };
        let held = self.labels.get(label).and_then(|id| self.nodes.get(id));
        held.is_none_or(|held| *nodes <= held.len() as u64)
    }

    fn send(&mut self, wish: &Wish) -> Result<(), Failure> {
        match wish {
            Wish::Request(request) => {
                let id = self.calls.request(self.session, &self.asked(request))?;
                self.labels.insert(request.label, id);
            }
            Wish::Update {
                label,
                nodes,
                duration_ns,
                announce_ns,
            } => {
                let Some(&of) = self.labels.get(label) else {
                    return Ok(());
                };
                let is_now = *announce_ns == 0;
                let held = self.nodes.get(&of).map_or(&[][..], |held| held);
                let kept = usize::try_from(*nodes).unwrap_or(usize::MAX);
                let kept = if is_now {
                    kept.min(held.len())
                } else {
                    held.len()
                };
                let (kept, released) = held.split_at(kept);
                let change = Change {
                    request: of,
                    nodes: *nodes,
                    duration_ns: self.clock.real_ns(*duration_ns),
                    announce_ns: self.clock.real_ns(*announce_ns).filter(|&ns| ns > 0),
                    released: Some(released.to_vec()),
                };
                let kept = kept.to_vec();
                let id = self.calls.update(self.session, &change)?;
                self.nodes.remove(&of);
                self.nodes.insert(id, kept);
                self.labels.insert(*label, id);
            }
            Wish::Done { label, released } => {
                let Some(id) = self.labels.remove(label) else {
                    return Ok(());
                };
                let held = self.nodes.remove(&id).unwrap_or_default();
                let released = usize::try_from(*released).unwrap_or(usize::MAX);
                let released = &held[held.len() - released.min(held.len())..];
                self.calls.done(self.session, id, released)?;
            }
            // Tasks are the application's own affair: a model has none that run.
            Wish::Start { .. } | Wish::Kill { .. } | Wish::Checkpoint => {}
        }
        Ok(())
    }

    fn asked(&self, request: &Request) -> Asked {
        let of = |label| self.labels.get(&label).copied();
        let (coalloc, next) = match request.how {
            How::Free => (None, None),
            How::Coalloc(label) => (of(label), None),
            How::Next(label) => (None, of(label)),
        };
        Asked {
            cluster: 0,
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
