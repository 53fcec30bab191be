// SPDX-License-Identifier: GPL-2.0
//! Throughput of the manager on one core: messages, passes, views.
//!
//! The report gives 500 requests a second on a core of 2.53 GHz (Klein and Pérez 2011, 3.2) and
//! does not say of which kind. Here evolving applications update every second, malleable ones
//! answer their views, chains run, and other applications queue. A request is one message, done is
//! one, and an update is both. The measure is a thread's time on a CPU.

#[path = "../../../cluster/pbs-cluster-sim/benches/rows/mod.rs"]
mod rows;

use std::collections::BTreeMap;

use pbs_gen::{Random, Stream};
use pbs_rms::{
    AppId, Ask, Event, Kind, Notice, Policy, Relation, Request, RequestId, Rms, Update, FOREVER,
};
use rows::{Bar, Rows};

const SECOND_NS: u64 = 1_000_000_000;

/// The time that this thread had of a CPU, in seconds.
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = stat.split(' ').next().and_then(|ns| ns.parse::<u64>().ok());
    ns.unwrap_or(0) as f64 / 1e9
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ApplicationKind {
    Evolving,
    Malleable,
    Predictable,
    Rigid,
}

struct Load {
    rms: Rms,
    random: Random,
    apps: BTreeMap<AppId, ApplicationKind>,
    told: Vec<Notice>,
    messages: u64,
    /// Every view of which somebody is told is made too.
    makes_views: bool,
    steps: usize,
}

fn ask(kind: Kind, nodes: u64, duration_ns: u64) -> Ask {
    Ask { cluster: 0, nodes, duration_ns, kind, relation: Relation::Free, preferred: Vec::new() }
}

impl Load {
    /// A load of so many times 2,000 requests.
    fn new(times: u32, tenth: bool, makes_views: bool) -> Self {
        let policy =
            Policy { interval_ns: 0, release_grace_ns: 60 * SECOND_NS, ..Policy::default() };
        let share = |count: u32| if tenth { count / 10 } else { count * times };
        let mut load = Self {
            rms: Rms::new(policy, &[share(16_384)], 0),
            random: Random::new(1, Stream::Messages),
            apps: BTreeMap::new(),
            told: Vec::new(),
            messages: 0,
            makes_views,
            steps: 0,
        };
        for _ in 0..share(400) {
            load.connect(ApplicationKind::Evolving, 0);
        }
        for _ in 0..share(200) {
            load.connect(ApplicationKind::Malleable, 0);
        }
        for _ in 0..share(100) {
            load.connect(ApplicationKind::Predictable, 0);
        }
        for _ in 0..share(300) {
            load.connect(ApplicationKind::Rigid, 0);
        }
        load
    }

    fn request(&mut self, app: AppId, ask: Ask, now_ns: u64) -> RequestId {
        self.messages += 1;
        self.rms.request(app, ask, now_ns).expect("it is right")
    }

    fn connect(&mut self, what: ApplicationKind, now_ns: u64) {
        let app = self.rms.connect("load", now_ns);
        self.apps.insert(app, what);
        match what {
            ApplicationKind::Evolving => {
                let all = self.request(app, ask(Kind::PreAllocation, 32, FOREVER), now_ns);
                let nodes = 1 + self.random.below(32);
                let mut used = ask(Kind::NonPreemptible, nodes, FOREVER);
                used.relation = Relation::Coalloc(all);
                self.request(app, used, now_ns);
            }
            ApplicationKind::Malleable => {
                let least = ask(Kind::NonPreemptible, 2, FOREVER);
                let least = self.request(app, least, now_ns);
                let mut more = ask(Kind::Preemptible, 1, FOREVER);
                more.relation = Relation::Coalloc(least);
                self.request(app, more, now_ns);
            }
            ApplicationKind::Predictable => {
                let mut before = Relation::Free;
                for _ in 0..5 {
                    let nodes = 1 + self.random.below(16);
                    let mut phase = ask(Kind::NonPreemptible, nodes, 600 * SECOND_NS);
                    phase.relation = before;
                    before = Relation::Next(self.request(app, phase, now_ns));
                }
            }
            ApplicationKind::Rigid => {
                let log = |random: &mut Random, least: f64, most: f64| {
                    let part = random.below(1 << 32) as f64 / (1_u64 << 32) as f64;
                    least * (most / least).powf(part)
                };
                let nodes = log(&mut self.random, 1.0, 513.0) as u64;
                let seconds = log(&mut self.random, 60.0, 86_400.0) as u64;
                let rigid = ask(Kind::NonPreemptible, nodes, seconds * SECOND_NS);
                self.request(app, rigid, now_ns);
            }
        }
    }

    fn update(&mut self, app: AppId, kind: Kind, nodes: u64, now_ns: u64) {
        let is = |r: &&Request| r.ask.kind == kind && r.started_ns.is_some();
        let requests = self.rms.session(app).map(|s| &s.requests);
        let Some(request) = requests.and_then(|requests| requests.iter().find(is)) else {
            return;
        };
        let kept = request.nodes.len().min(nodes as usize);
        let update = Update {
            of: request.id,
            nodes,
            duration_ns: FOREVER,
            announce_ns: 0,
            released: request.nodes[kept..].to_vec(),
        };
        self.messages += 2;
        let updated = self.rms.update(app, &update, now_ns);
        updated.expect("it is pre-allocated, or can be taken back");
    }

    /// Sends the current needs of evolving applications, and calls `after` after each message.
    fn evolve(&mut self, now_ns: u64, mut after: impl FnMut(&mut Self)) {
        let apps: Vec<AppId> = self.apps.keys().copied().collect();
        for app in apps {
            if self.apps[&app] == ApplicationKind::Evolving {
                let nodes = 1 + self.random.below(32);
                self.update(app, Kind::NonPreemptible, nodes, now_ns);
                after(self);
            }
        }
    }

    /// The others answer what they have been told.
    fn answer(&mut self, now_ns: u64, mut after: impl FnMut(&mut Self)) {
        for notice in std::mem::take(&mut self.told) {
            let app = notice.app;
            let Some(&what) = self.apps.get(&app) else {
                continue;
            };
            match notice.event {
                Event::Views { cluster } => {
                    if self.makes_views {
                        std::hint::black_box(self.rms.views(app, cluster));
                    }
                    if what == ApplicationKind::Malleable {
                        let nodes = self.rms.preemptible_now(app, cluster).max(1);
                        self.update(app, Kind::Preemptible, nodes, now_ns);
                        after(self);
                    }
                }
                Event::Ended { .. } => {
                    let is_over = self.rms.session(app).is_some_and(|s| s.requests.is_empty());
                    if is_over {
                        self.rms.disconnect(app, now_ns).expect("it is there");
                        self.apps.remove(&app);
                        self.connect(what, now_ns);
                    }
                }
                Event::Violation { .. } => panic!("all answer at once"),
                Event::Started { .. } | Event::Refused { .. } => {}
            }
        }
    }

    fn pass(&mut self, now_ns: u64) {
        let told = self.rms.pass(now_ns);
        self.told.extend(told);
        self.steps += 1;
    }

    fn requests(&self) -> usize {
        self.rms.sessions().map(|(_, session)| session.requests.len()).sum()
    }
}

fn steady(rows: &Rows, makes_views: bool, seconds: u64) {
    let mut load = Load::new(1, false, makes_views);
    load.pass(0);
    load.messages = 0;
    let begin_s = cpu_s();
    for second in 1..=seconds {
        let now_ns = second * SECOND_NS;
        load.answer(now_ns, |_| ());
        load.evolve(now_ns, |_| ());
        load.pass(now_ns);
    }
    let took_s = cpu_s() - begin_s;
    let rate = load.messages as f64 / took_s;
    let (messages, requests) = (load.messages, load.requests());
    let what = format!("{messages} messages, {seconds} passes, {requests} requests at the end");
    let (name, bar) = if makes_views {
        ("messages-with-all-views", Bar::None)
    } else {
        ("messages", Bar::AtLeast(100_000.0))
    };
    rows.tell(name, rate, "per second", bar, &what);
}

fn uncoalesced(rows: &Rows, seconds: u64) {
    let mut load = Load::new(1, true, false);
    load.pass(0);
    load.messages = 0;
    load.steps = 0;
    let begin_s = cpu_s();
    for second in 1..=seconds {
        let now_ns = second * SECOND_NS;
        // A pass may say more while this answers.
        load.answer(now_ns, |load| load.pass(now_ns));
        load.evolve(now_ns, |load| load.pass(now_ns));
    }
    let took_s = cpu_s() - begin_s;
    let rate = load.messages as f64 / took_s;
    let (messages, passes) = (load.messages, load.steps);
    let what = format!("a pass after each: {messages} messages, {passes} passes");
    let bar = Bar::AtLeast(5_000.0);
    rows.tell("uncoalesced", rate, "per second", bar, &what);
}

fn linear(rows: &Rows) {
    let mut points = Vec::new();
    for times in [1, 2, 4, 8, 16, 32] {
        let mut load = Load::new(times, false, false);
        load.pass(0);
        let mut took_s = f64::MAX;
        for second in 1..=10 {
            let now_ns = second * SECOND_NS;
            load.answer(now_ns, |_| ());
            load.evolve(now_ns, |_| ());
            // Too short for what the kernel counts of a thread.
            let begin = std::time::Instant::now();
            load.pass(now_ns);
            took_s = took_s.min(begin.elapsed().as_secs_f64());
        }
        let requests = load.requests();
        let (name, what) = (format!("pass-{}", 2_000 * times), format!("with {requests} requests"));
        rows.tell(&name, took_s * 1e3, "ms", Bar::None, &what);
        points.push((requests as f64, took_s));
    }
    let (first, last) = (points[0], points[points.len() - 1]);
    let exponent = (last.1 / first.1).ln() / (last.0 / first.0).ln();
    let (bar, what) = (Bar::AtMost(1.15), "a pass takes requests to this power");
    rows.tell("linear-exponent", exponent, "", bar, what);
}

fn main() {
    let Some(rows) = Rows::from_arguments() else {
        return;
    };
    if rows.wants("messages") {
        steady(&rows, false, 1000);
        steady(&rows, true, 200);
    }
    if rows.wants("uncoalesced") {
        uncoalesced(&rows, 30);
    }
    if rows.wants("linear") {
        linear(&rows);
    }
}
