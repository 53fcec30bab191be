// SPDX-License-Identifier: GPL-2.0
//! A mesh and a sweep under a manager that serves, a thousand times faster.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use pbs_rms::Policy;
use pbs_rms_apps::live::{Driver, News, RunEnd};
use pbs_rms_apps::{
    Allocation, Amr, Application, Label, Predictable, Psa, Rigid, SpeedUp, Step, Updates, Views,
    Wish, WorkingSet, MOST_MIB, SECOND_NS,
};
use pbs_rms_server::{serve, Hub, Managed, Settings};

const SPEED: u64 = 4000;

fn start(name: &str, clusters: Vec<Managed>) -> PathBuf {
    let name = format!("rms-live-{name}-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    let _ = std::fs::remove_dir_all(&directory);
    let path = directory.join("rms.sock");
    let listener = pbs_socket::listen(&path).expect("nobody listens there");
    thread::spawn(move || {
        let settings = Settings {
            clusters,
            policy: Policy { interval_ns: 1_000_000, ..Policy::default() },
            absence_grace_ns: 60_000_000_000,
            most_sessions: 64,
            longest_ns: u64::MAX,
        };
        serve(listener, Hub::open(settings, None).expect("a hub"))
    });
    path
}

#[test]
fn a_mesh_evolves_and_a_sweep_takes_the_rest() {
    let path = start("mesh", vec![Managed::new("lab", 1400)]);
    let sizes: Vec<f64> = WorkingSet::new(1).normalised().to_vec();
    // A twentieth of the steps is enough to see it.
    let set = WorkingSet::of(sizes.into_iter().step_by(20).collect());
    let steps = Allocation::new(&set, MOST_MIB, 0.75, SpeedUp::default());
    let mesh = Amr::new(steps.clone(), steps.equivalent_nodes(), Updates::Spontaneous);
    let mut mesh = Driver::connect(&path, "mesh", mesh, SPEED).expect("it serves");
    let of_sweep = path.clone();
    let sweep = thread::spawn(move || {
        let sweep = Psa::new(60 * SECOND_NS);
        let mut sweep = Driver::connect(&of_sweep, "sweep", sweep, SPEED).expect("it serves");
        let begin = Instant::now();
        let mut violations = 0;
        let ran = sweep.run(
            |_| begin.elapsed() < Duration::from_secs(3),
            |news| violations += u32::from(matches!(news, News::Violation { .. })),
        );
        ran.expect("it is told");
        (violations, sweep.disconnect().expect("it is there"))
    });
    let mut most = 0;
    let begin = Instant::now();
    let ran = mesh.run(
        |_| begin.elapsed() < Duration::from_secs(60),
        |news| {
            if let News::Started { nodes, .. } = news {
                most = most.max(nodes.len());
            }
        },
    );
    ran.expect("it is told");
    assert!(mesh.model().has_ended(), "at step {}", mesh.model().step());
    assert!(most as u64 > steps.equivalent_nodes() / 2, "{most}");
    let (violations, sweep) = sweep.join().expect("it ends");
    assert_eq!(violations, 0);
    let account = sweep.account();
    assert!(account.done > 0, "{account:?}");
}

/// An application that ends when it has seen a view.
#[derive(Debug, Default)]
struct Watcher {
    seen: Vec<u64>,
}

impl Application for Watcher {
    fn connect(&mut self, _: u64) -> Vec<Wish> {
        Vec::new()
    }

    fn views(&mut self, now_ns: u64, views: Views<'_>) -> Vec<Wish> {
        self.seen.push(views.preemptible.at(now_ns));
        Vec::new()
    }

    fn started(&mut self, _: u64, _: Label, _: u64) -> Vec<Wish> {
        Vec::new()
    }

    fn wake(&mut self, _: u64) -> Vec<Wish> {
        Vec::new()
    }

    fn next_ns(&self) -> Option<u64> {
        None
    }

    fn has_ended(&self) -> bool {
        !self.seen.is_empty()
    }
}

#[test]
fn views_of_other_clusters_are_not_followed() {
    let path = start("clusters", vec![Managed::new("lab", 10), Managed::new("hall", 3)]);
    let watcher = Driver::connect(&path, "watcher", Watcher::default(), 1);
    let mut watcher = watcher.expect("it serves");
    // Both views are there before it reads the first.
    thread::sleep(Duration::from_millis(300));
    let ran = watcher.run(|_| true, |_| ()).expect("it is told");
    assert_eq!((ran, &watcher.model().seen), (RunEnd::Complete, &vec![10]));
}

#[test]
fn who_is_refused_the_only_request_hears_of_it_and_ends() {
    let path = start("refused", vec![Managed::new("lab", 10)]);
    let too_large = |app: Box<dyn Application>| {
        let mut driver = Driver::connect(&path, "it", app, 1).expect("it serves");
        let mut refusals = Vec::new();
        let ran = driver.run(
            |_| true,
            |news| {
                if let News::Refused { why, .. } = news {
                    refusals.extend(why);
                }
            },
        );
        assert_eq!(ran.expect("it is told"), RunEnd::Refused);
        driver.disconnect().expect("it is there");
        refusals
    };
    let refusals = too_large(Box::new(Rigid::new(11, SECOND_NS)));
    assert_eq!(refusals, ["11 nodes are more than the 10 that may be requested"]);
    // What would follow it is not requested by itself.
    let phases = [11, 4, 5].map(|nodes| Step::new(SECOND_NS, nodes));
    assert_eq!(too_large(Box::new(Predictable::new(phases.to_vec()))), refusals);
}

#[test]
fn who_ended_a_session_is_told_apart() {
    let path = start("closed", vec![Managed::new("lab", 10)]);
    let mut driver =
        Driver::connect(&path, "it", Rigid::new(4, 3600 * SECOND_NS), 1).expect("it serves");
    let stopped = driver.run(|_| false, |_| ()).expect("it is told");
    assert_eq!(stopped, RunEnd::Stopped);
    let mut other = pbs_rms_api::Client::connect_to(&path).expect("it serves");
    let sessions = other.sessions().expect("all");
    other.disconnect(sessions[0].session).expect("it is there");
    let ran = driver.run(|_| true, |_| ()).expect("it is told");
    assert_eq!(ran, RunEnd::Closed);
}
