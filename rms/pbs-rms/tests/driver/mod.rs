// SPDX-License-Identifier: GPL-2.0
//! A manager whose messages come at the time of the last pass, and what it says.

#![allow(unreachable_pub, dead_code, reason = "each test uses some of it")]

use pbs_rms::{
    AppId, Ask, Event, Kind, Notice, Policy, Refusal, Relation, RequestId, Rms, Update, Views,
    FOREVER,
};

/// Time for which preemptible nodes may be kept.
pub const GIVE_BACK_LATE: u64 = 5;

pub struct Driver {
    pub rms: Rms,
    pub now_ns: u64,
}

/// A pass whenever there is something to do, and little grace.
pub fn policy() -> Policy {
    Policy { interval_ns: 0, release_grace_ns: GIVE_BACK_LATE, ..Policy::default() }
}

/// A request for nodes of the first cluster that hangs on nothing.
pub fn ask(kind: Kind, nodes: u64, duration_ns: u64) -> Ask {
    Ask { cluster: 0, nodes, duration_ns, kind, relation: Relation::Free, preferred: Vec::new() }
}

pub fn next(parent: RequestId, ask: Ask) -> Ask {
    let relation = Relation::Next(parent);
    Ask { relation, ..ask }
}

pub fn with(parent: RequestId, ask: Ask) -> Ask {
    let relation = Relation::Coalloc(parent);
    Ask { relation, ..ask }
}

pub fn starts(notices: &[Notice]) -> Vec<RequestId> {
    let started = notices.iter().filter_map(|notice| match notice.event {
        Event::Started { request, .. } => Some(request),
        _ => None,
    });
    started.collect()
}

pub fn viewers(notices: &[Notice]) -> Vec<AppId> {
    let views = notices.iter().filter(|n| matches!(n.event, Event::Views { .. }));
    views.map(|notice| notice.app).collect()
}

impl Driver {
    pub fn new(nodes: u64) -> Self {
        Self::with(policy(), &[u32::try_from(nodes).expect("few")])
    }

    pub fn with(policy: Policy, sizes: &[u32]) -> Self {
        Self { rms: Rms::new(policy, sizes, 0), now_ns: 0 }
    }

    pub fn connect(&mut self) -> AppId {
        self.rms.connect("it", self.now_ns)
    }

    pub fn request(&mut self, app: AppId, ask: Ask) -> RequestId {
        self.rms.request(app, ask, self.now_ns).expect("it is right")
    }

    pub fn done(&mut self, now_ns: u64, app: AppId, id: RequestId) {
        self.now_ns = now_ns;
        self.rms.done(app, id, &[], now_ns).expect("it is there");
    }

    /// For ever.
    pub fn update(
        &mut self,
        now_ns: u64,
        app: AppId,
        of: RequestId,
        nodes: u64,
        announce_ns: u64,
        released: &[u32],
    ) -> Result<RequestId, Refusal> {
        self.now_ns = now_ns;
        let update =
            Update { of, nodes, duration_ns: FOREVER, announce_ns, released: released.to_vec() };
        self.rms.update(app, &update, now_ns)
    }

    pub fn pass(&mut self, now_ns: u64) -> Vec<Notice> {
        self.now_ns = now_ns;
        self.rms.pass(now_ns)
    }

    pub fn views(&self, app: AppId) -> Views {
        self.rms.views(app, 0).expect("both are there")
    }

    fn find(&self, app: AppId, id: RequestId) -> &pbs_rms::Request {
        let session = self.rms.session(app).expect("it is there");
        let found = session.requests.iter().find(|r| r.id == id);
        found.expect("it is there")
    }

    pub fn nodes(&self, app: AppId, id: RequestId) -> Vec<u32> {
        let mut nodes = self.find(app, id).nodes.clone();
        nodes.sort_unstable();
        nodes
    }

    pub fn scheduled(&self, app: AppId, id: RequestId) -> Option<u64> {
        self.find(app, id).scheduled_ns
    }
}
