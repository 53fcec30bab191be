// SPDX-License-Identifier: GPL-2.0
//! Each kind of application (Klein and Pérez 2011, 4) with the manager of a real cluster.

use pbs_rms::{AppId, Ask, Kind, Policy, Relation, Rms};
use pbs_rms_apps::{
    Allocation, Amr, Application, Choice, Execution, Label, Malleable, Moldable, Nea, Predictable,
    Psa, Rigid, Shape, SpeedUp, Step, Updates, Wish, WorkingSet, MOST_MIB, SECOND_NS,
};
use pbs_study::evolving::Sim;

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
fn rigid_applications_queue() {
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
fn a_moldable_application_takes_the_shape_that_ends_first() {
    let choice = |nodes, seconds: u64| Choice { nodes, duration_ns: seconds * SECOND_NS };
    let ways = vec![choice(10, 100), choice(4, 150), choice(2, 400)];
    let blocker = boxed(Rigid::new(6, 100 * SECOND_NS));
    let mut sim = Sim::new(Policy::default(), 10, [blocker, boxed(Moldable::new(ways))]);
    sim.run_until(20 * SECOND_NS);
    assert_eq!(nodes(&sim, 1, Kind::NonPreemptible), 4);
    assert!(sim.run_until_ended(1));
    assert!((150..=152).contains(&(sim.now_ns() / SECOND_NS)));
}

#[test]
fn a_malleable_application_uses_all_it_can() {
    // It sees 36 besides its 4 and needs a power of two: it leaves 4 (section 4).
    let shape = Shape::PowerOfTwo(64);
    let mut sim = Sim::new(Policy::default(), 40, [Malleable::new(4, shape, 1000 * SECOND_NS)]);
    sim.run_until(10 * SECOND_NS);
    assert_eq!(nodes(&sim, 0, Kind::NonPreemptible), 4);
    assert_eq!(nodes(&sim, 0, Kind::Preemptible), 32);
    assert_eq!(sim.rms().idle(0).len(), 4);
}

#[test]
fn a_predictable_application_has_its_phases() {
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
fn an_evolving_application_is_sure_or_writes_checkpoints() {
    for (execution, checkpoints) in
        [(Execution::Sure { most: 8 }, 0), (Execution::Probable { guess: 4 }, 1)]
    {
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

/// 10 nodes: one that runs to completion has 4, a sweep of 60 s has the rest, and all at once.
fn beside_a_sweep() -> Sim<Box<dyn Application>> {
    let policy = Policy { interval_ns: 0, ..Policy::default() };
    let rigid = boxed(Rigid::new(4, 10_000 * SECOND_NS));
    let mut sim = Sim::new(policy, 10, [rigid, boxed(Psa::new(60 * SECOND_NS))]);
    while sim.step(1) {}
    sim
}

/// Wishes of an application that wants 6 nodes, announced that long before.
fn six(announce_s: u64) -> Vec<Wish> {
    vec![Wish::Update {
        label: Label(0),
        nodes: 6,
        duration_ns: 9_000 * SECOND_NS,
        announce_ns: announce_s * SECOND_NS,
    }]
}

/// Node seconds that a sweep has had and not used for its finished tasks.
fn lost(sim: &Sim<Box<dyn Application>>, done: u64) -> u64 {
    let session = sim.app(1).and_then(|app| sim.rms().session(app));
    let account = session.expect("it is there").account_at(sim.now_ns());
    (account.preemptible_node_ns / u128::from(SECOND_NS)) as u64 - 60 * done
}

#[test]
fn announced_updates_waste_nothing_and_spontaneous_ones_do() {
    // Announced at 0 for 100: of 6 tasks that begin at 0, two are not followed by others.
    let mut sim = beside_a_sweep();
    sim.tell(0, |_, _| six(100));
    sim.run_until(59 * SECOND_NS);
    assert_eq!(nodes(&sim, 1, Kind::Preemptible), 6, "6 now, not 4");
    sim.run_until(99 * SECOND_NS);
    assert_eq!(nodes(&sim, 0, Kind::NonPreemptible), 4);
    assert_eq!(nodes(&sim, 1, Kind::Preemptible), 4);
    sim.run_until(120 * SECOND_NS);
    assert_eq!(nodes(&sim, 0, Kind::NonPreemptible), 6);
    assert_eq!(lost(&sim, 6 + 4), 0);

    // At once at 30: two tasks are killed that have run for 30.
    let mut sim = beside_a_sweep();
    sim.run_until(30 * SECOND_NS);
    assert_eq!(nodes(&sim, 1, Kind::Preemptible), 6);
    sim.tell(0, |_, _| six(0));
    while sim.step(30 * SECOND_NS + 1) {}
    assert_eq!(nodes(&sim, 0, Kind::NonPreemptible), 6);
    assert_eq!(nodes(&sim, 1, Kind::Preemptible), 4);
    sim.run_until(120 * SECOND_NS);
    assert_eq!(lost(&sim, 4 + 4), 60);
}

#[test]
fn the_simulation_is_the_manager_with_another_clock() {
    // The same messages by hand, to the same code.
    let applications = [(6, 100), (6, 100), (4, 70)];
    let rigid = |(nodes, seconds): (u64, u64)| Rigid::new(nodes, seconds * SECOND_NS);
    let mut sim = Sim::new(Policy::default(), 10, applications.map(rigid));
    let mut rms: Rms = Rms::new(Policy::default(), &[10], 0);
    let apps = applications.map(|(nodes, seconds)| {
        let app = rms.connect("simulated", 0);
        let ask = Ask {
            cluster: 0,
            nodes,
            duration_ns: seconds * SECOND_NS,
            kind: Kind::NonPreemptible,
            relation: Relation::Free,
            preferred: Vec::new(),
        };
        rms.request(app, ask, 0).expect("there is room");
        app
    });
    for until_s in [50, 80, 150, 250] {
        let until_ns = until_s * SECOND_NS;
        sim.run_until(until_ns);
        while let Some(ns) = rms.next_pass_ns().filter(|&ns| ns < until_ns) {
            rms.pass(ns);
        }
        for &app in &apps {
            let of = |rms: &Rms| rms.session(app).map(|session| session.requests.clone());
            assert_eq!(of(sim.rms()), of(&rms), "at {until_s} s");
        }
    }
}

/// Figure 10 without time between passes: then nodes that a mesh wants come before its step
/// begins, and it ends the later, the longer it announces before.
#[test]
fn announcing_delays_a_mesh_if_passes_take_no_time() {
    let policy = Policy { interval_ns: 0, ..Policy::default() };
    for seed in 1..4 {
        let set = WorkingSet::new(seed);
        let steps = Allocation::new(&set, MOST_MIB, 0.75, SpeedUp::default());
        let ends_s = [0, 50, 300, 600].map(|interval_s| {
            let updates = match interval_s {
                0 => Updates::Spontaneous,
                _ => Updates::Announced { interval_ns: interval_s * SECOND_NS },
            };
            let mesh = Amr::new(steps.clone(), steps.overcommitted(1.0), updates);
            let both = [boxed(mesh), boxed(Psa::new(600 * SECOND_NS))];
            let mut sim = Sim::new(policy.clone(), 1400, both);
            assert!(sim.run_until_ended(0));
            sim.now_ns() as f64 / SECOND_NS as f64
        });
        assert!(ends_s.is_sorted(), "seed {seed}: {ends_s:?}");
        // Without announcing it is as fast as with nobody beside it (5.2: the impact on it is
        // negligible).
        let alone = steps.at_most(steps.overcommitted(1.0)).seconds();
        assert!((ends_s[0] / alone - 1.0).abs() < 1e-6, "{ends_s:?}, {alone}");
        let later = ends_s[3] / ends_s[0];
        assert!((1.05..1.3).contains(&later), "seed {seed}: {later}");
    }
}
