// SPDX-License-Identifier: GPL-2.0
//! The clock and the wire between applications and their manager.

use std::collections::{BTreeMap, VecDeque};

use pbs_rms::{AppId, Ask, Event, Policy, Relation, RequestId, Rms, Update};
use pbs_rms_apps::{Application, How, Kind, Label, Request, Views, Wish};

/// Applications on one cluster. Messages take no time.
#[derive(Debug)]
pub struct Sim<A> {
    rms: Rms,
    members: Vec<Member<A>>,
    now_ns: u64,
    passes: u64,
}

#[derive(Debug)]
struct Member<A> {
    app: AppId,
    model: A,
    /// The application's names of its requests.
    labels: BTreeMap<Label, RequestId>,
    /// Whether the manager has ended the session.
    is_killed: bool,
}

impl<A> Member<A> {
    fn label(&self, id: RequestId) -> Option<Label> {
        let mut labels = self.labels.iter();
        labels.find(|(_, &of)| of == id).map(|(&label, _)| label)
    }
}

impl<A: Application> Sim<A> {
    /// Applications that connect at time 0, in this order.
    pub fn new(policy: Policy, nodes: u32, models: impl IntoIterator<Item = A>) -> Self {
        let mut sim =
            Self { rms: Rms::new(policy, &[nodes], 0), members: Vec::new(), now_ns: 0, passes: 0 };
        for model in models {
            sim.connect(model);
        }
        sim
    }

    /// One more application, that connects now: its place.
    pub fn connect(&mut self, mut model: A) -> usize {
        let app = self.rms.connect("simulated", self.now_ns);
        let wishes = model.connect(self.now_ns);
        self.members.push(Member { app, model, labels: BTreeMap::new(), is_killed: false });
        let place = self.members.len() - 1;
        self.fulfil(place, wishes);
        place
    }

    /// The time.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Number of passes.
    pub fn passes(&self) -> u64 {
        self.passes
    }

    /// The manager.
    pub fn rms(&self) -> &Rms {
        &self.rms
    }

    /// An application, in the order of connection.
    pub fn model(&self, place: usize) -> Option<&A> {
        self.members.get(place).map(|member| &member.model)
    }

    /// The manager's name of an application.
    pub fn app(&self, place: usize) -> Option<AppId> {
        self.members.get(place).map(|member| member.app)
    }

    /// Whether the manager has ended the application's session.
    pub fn is_killed(&self, place: usize) -> bool {
        self.members.get(place).is_some_and(|member| member.is_killed)
    }

    /// An application is told something from outside, and wishes what follows from that.
    pub fn tell(&mut self, place: usize, what: impl FnOnce(&mut A, u64) -> Vec<Wish>) {
        if let Some(member) = self.members.get_mut(place) {
            let wishes = what(&mut member.model, self.now_ns);
            self.fulfil(place, wishes);
        }
    }

    /// Goes to the next time at which something happens, if there is one before an end.
    pub fn step(&mut self, until_ns: u64) -> bool {
        let pass_ns = self.rms.next_pass_ns();
        let members = self.members.iter().filter(|member| !member.is_killed);
        let wakes = members.filter_map(|member| member.model.next_ns());
        let next_ns = wakes.chain(pass_ns).min();
        let Some(next_ns) = next_ns.filter(|&ns| ns < until_ns) else {
            return false;
        };
        self.now_ns = self.now_ns.max(next_ns);
        for place in 0..self.members.len() {
            let member = &mut self.members[place];
            let is_due = member.model.next_ns().is_some_and(|ns| ns <= self.now_ns);
            if is_due && !member.is_killed {
                let wishes = member.model.wake(self.now_ns);
                self.fulfil(place, wishes);
            }
        }
        if self.rms.next_pass_ns().is_some_and(|ns| ns <= self.now_ns) {
            self.pass();
        }
        true
    }

    /// Goes on until an end, or until nothing happens any more.
    pub fn run_until(&mut self, until_ns: u64) {
        while self.step(until_ns) {}
        self.now_ns = self.now_ns.max(until_ns);
    }

    /// Goes on until an application has ended. Says whether it has: nothing may happen before.
    pub fn run_until_ended(&mut self, place: usize) -> bool {
        while self.model(place).is_some_and(|model| !model.has_ended()) {
            if self.is_killed(place) || !self.step(u64::MAX) {
                return false;
            }
        }
        true
    }

    fn pass(&mut self) {
        self.passes += 1;
        for notice in self.rms.pass(self.now_ns) {
            let of_app = |member: &Member<A>| member.app.cmp(&notice.app);
            let Ok(place) = self.members.binary_search_by(of_app) else {
                continue;
            };
            let member = &mut self.members[place];
            let wishes = match notice.event {
                Event::Views { cluster } => {
                    let views = self.rms.views(notice.app, cluster);
                    views.map_or_else(Vec::new, |views| {
                        let views = Views {
                            non_preemptible: &views.non_preemptible,
                            preemptible: &views.preemptible,
                        };
                        member.model.views(self.now_ns, views)
                    })
                }
                // The first part of an announced update has no label, and no news.
                Event::Started { request, nodes } => {
                    member.label(request).map_or_else(Vec::new, |label| {
                        member.model.started(self.now_ns, label, nodes.len() as u64)
                    })
                }
                Event::Refused { request } => match member.label(request) {
                    Some(label) => member.model.refused(self.now_ns, label),
                    None => Vec::new(),
                },
                Event::Violation { .. } => {
                    member.is_killed = true;
                    Vec::new()
                }
                // An application knows when it has asked for no more time.
                Event::Ended { .. } => Vec::new(),
            };
            self.fulfil(place, wishes);
        }
    }

    /// Sends what an application wishes, and what it wishes when that is refused.
    fn fulfil(&mut self, place: usize, wishes: Vec<Wish>) {
        let mut wishes = VecDeque::from(wishes);
        while let Some(wish) = wishes.pop_front() {
            let Some(label) = self.send(place, wish) else {
                continue;
            };
            let member = &mut self.members[place];
            wishes.extend(member.model.refused(self.now_ns, label));
        }
    }

    /// Sends one wish. Returns the request that the wish is about, if the wish was refused.
    fn send(&mut self, place: usize, wish: Wish) -> Option<Label> {
        let (now_ns, member) = (self.now_ns, &mut self.members[place]);
        match wish {
            Wish::Request(request) => {
                let ask = ask_of(&request, &member.labels);
                let sent = ask.and_then(|ask| self.rms.request(member.app, ask, now_ns).ok());
                let Some(id) = sent else {
                    return Some(request.label);
                };
                member.labels.insert(request.label, id);
                None
            }
            Wish::Update { label, nodes, duration_ns, announce_ns } => {
                let of = *member.labels.get(&label)?;
                let is_now = announce_ns == 0;
                let released = last_nodes(&self.rms, member.app, of, |held| {
                    held.saturating_sub(nodes).min(if is_now { held } else { 0 })
                });
                let update = Update { of, nodes, duration_ns, announce_ns, released };
                let Ok(id) = self.rms.update(member.app, &update, now_ns) else {
                    return Some(label);
                };
                member.labels.insert(label, id);
                None
            }
            Wish::Done { label, released } => {
                let id = member.labels.remove(&label)?;
                let released = last_nodes(&self.rms, member.app, id, |held| held.min(released));
                // Refused only if it is over already.
                let _ = self.rms.done(member.app, id, &released, now_ns);
                None
            }
            // Tasks are the application's own affair: all nodes are the same.
            Wish::Start { .. } | Wish::Kill { .. } | Wish::Checkpoint => None,
        }
    }
}

fn ask_of(request: &Request, labels: &BTreeMap<Label, RequestId>) -> Option<Ask> {
    let relation = match request.how {
        How::Free => Relation::Free,
        How::Coalloc(label) => Relation::Coalloc(*labels.get(&label)?),
        How::Next(label) => Relation::Next(*labels.get(&label)?),
    };
    Some(Ask {
        cluster: 0,
        nodes: request.nodes,
        duration_ns: request.duration_ns,
        kind: match request.kind {
            Kind::PreAllocation => pbs_rms::Kind::PreAllocation,
            Kind::NonPreemptible => pbs_rms::Kind::NonPreemptible,
            Kind::Preemptible => pbs_rms::Kind::Preemptible,
        },
        relation,
        preferred: Vec::new(),
    })
}

/// The last of the nodes that a request has: as many as follow from how many it has.
fn last_nodes(rms: &Rms, app: AppId, id: RequestId, count: impl Fn(u64) -> u64) -> Vec<u32> {
    let requests = rms.session(app).map(|session| &session.requests);
    let request = requests.and_then(|all| all.iter().find(|request| request.id == id));
    let nodes = request.map_or(&[][..], |request| &request.nodes);
    let count = usize::try_from(count(nodes.len() as u64)).unwrap_or(usize::MAX);
    nodes[nodes.len().saturating_sub(count)..].to_vec()
}
