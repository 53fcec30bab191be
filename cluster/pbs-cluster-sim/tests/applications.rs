// SPDX-License-Identifier: GPL-2.0
//! Each kind of application (Klein and Pérez 2011, 4) with the manager of a real cluster.

use pbs_apps::{
    Application, Choice, Execution, Malleable, Moldable, Nea, Predictable, Psa, Rigid, Shape, Step,
    SECOND_NS,
};
use pbs_cluster_sim::Sim;
use pbs_rms::{AppId, Kind, Policy};

fn boxed(application: impl Application + 'static) -> Box<dyn Application> {
    Box::new(application)
}

/// Nodes that an application has of a type, by the manager.
fn nodes<A: Application>(sim: &Sim<A>, place: usize, kind: Kind) -> usize {
    let session = sim.app(place).and_then(|app: AppId| sim.rms().session(app));
    let requests = session.map_or(&[][..], |session| &session.requests);
    let of_kind = requests.iter().filter(|request| request.ask.kind == kind);
    of_kind.map(|request| request.nodes.len()).sum()
}

#[test]
fn rigid_ones_queue() {
    let applications = [6, 6, 4].map(|nodes| Rigid::new(nodes, 100 * SECOND_NS));
    let mut sim = Sim::new(Policy::default(), 10, applications);
    sim.run_until(50 * SECOND_NS);
    // The third fills what the first leaves; the second waits for both.
    let held = [0, 1, 2].map(|place| nodes(&sim, place, Kind::NonPreemptible));
    assert_eq!(held, [6, 0, 4]);
    sim.run_until(150 * SECOND_NS);
    let held = [0, 1, 2].map(|place| nodes(&sim, place, Kind::NonPreemptible));
    assert_eq!(held, [0, 6, 0]);
    assert!(sim.run_until_ended(1));
}

#[test]
fn a_moldable_one_takes_what_ends_first() {
    let choice = |nodes, seconds: u64| Choice {
        nodes,
        duration_ns: seconds * SECOND_NS,
    };
    let ways = vec![choice(10, 100), choice(4, 150), choice(2, 400)];
    let blocker = boxed(Rigid::new(6, 100 * SECOND_NS));
    let mut sim = Sim::new(Policy::default(), 10, [blocker, boxed(Moldable::new(ways))]);
    sim.run_until(20 * SECOND_NS);
    assert_eq!(nodes(&sim, 1, Kind::NonPreemptible), 4);
    assert!(sim.run_until_ended(1));
    assert!((150..=152).contains(&(sim.now_ns() / SECOND_NS)));
}

#[test]
fn a_malleable_one_uses_what_it_can() {
    // It sees 36 besides its 4 and needs a power of two: it leaves 4 (section 4).
    let shape = Shape::PowerOfTwo(64);
    let mut sim = Sim::new(
        Policy::default(),
        40,
        [Malleable::new(4, shape, 1000 * SECOND_NS)],
    );
    sim.run_until(10 * SECOND_NS);
    assert_eq!(nodes(&sim, 0, Kind::NonPreemptible), 4);
    assert_eq!(nodes(&sim, 0, Kind::Preemptible), 32);
    assert_eq!(sim.rms().idle(0).len(), 4);
}

#[test]
fn a_predictable_one_has_its_phases() {
    let phases = [(4, 100), (8, 50), (2, 100)];
    let phases = phases.map(|(nodes, seconds)| Step::new(seconds * SECOND_NS, nodes));
    let predictable = boxed(Predictable::new(phases.to_vec()));
    let sweep = boxed(Psa::new(20 * SECOND_NS));
    let mut sim = Sim::new(Policy::default(), 10, [predictable, sweep]);
    let seen = [50, 130, 200].map(|seconds| {
        sim.run_until(seconds * SECOND_NS);
        [Kind::NonPreemptible, Kind::Preemptible]
            .map(|kind| nodes(&sim, usize::from(kind == Kind::Preemptible), kind))
    });
    assert_eq!(seen, [[4, 6], [8, 2], [2, 8]]);
    assert!(sim.run_until_ended(0));
}

#[test]
fn one_that_evolves_is_sure_or_writes_down_what_it_has_done() {
    for (execution, checkpoints) in [
        (Execution::Sure { most: 8 }, 0),
        (Execution::Probable { guess: 4 }, 1),
    ] {
        let mut sim = Sim::new(Policy::default(), 10, [Nea::new(execution, 3)]);
        // Somebody waits for the rest, so that what is not pre-allocated is gone.
        let rigid = sim.connect(Nea::new(Execution::Sure { most: 2 }, 2));
        sim.run_until(10 * SECOND_NS);
        assert_eq!(nodes(&sim, 0, Kind::NonPreemptible), 3);
        sim.tell(rigid, |other, _| other.need(2));
        let third = sim.connect(Nea::new(Execution::Sure { most: 4 }, 4));
        sim.run_until(20 * SECOND_NS);
        sim.tell(0, |nea, _| nea.need(6));
        sim.run_until(30 * SECOND_NS);
        assert_eq!(sim.model(0).map(Nea::checkpoints), Some(checkpoints));
        if checkpoints > 0 {
            // It comes again when the third has left.
            assert_eq!(nodes(&sim, 0, Kind::NonPreemptible), 0);
            sim.tell(third, |other, _| other.end());
            sim.run_until(40 * SECOND_NS);
        }
        assert_eq!(nodes(&sim, 0, Kind::NonPreemptible), 6);
    }
}
