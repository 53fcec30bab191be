// SPDX-License-Identifier: GPL-2.0
//! A mesh and a sweep under a manager that serves, a thousand times faster.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use pbs_rms::Policy;
use pbs_rms_apps::live::{Driver, News};
use pbs_rms_apps::{
    Allocation, Amr, Application, Psa, SpeedUp, Updates, WorkingSet, MOST_MIB, SECOND_NS,
};
use pbs_rms_server::{serve, Hub, Managed, Settings};

const SPEED: u64 = 4000;

fn start() -> PathBuf {
    let directory = std::env::temp_dir().join(format!("rms-live-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    let path = directory.join("rms.sock");
    let listener = pbs_socket::listen(&path).expect("nobody listens there");
    thread::spawn(move || {
        let settings = Settings {
            clusters: vec![Managed::new("lab", 1400)],
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
    let path = start();
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
