// SPDX-License-Identifier: GPL-2.0
//! Runs are planned in the order in which they slow each other least, and a node on which
//! they do ends as early as was planned.

use std::sync::Arc;

use pbs_control::{Beside, Companions, Controller, Options};
use pbs_interference::{Entry, Key, Level, Sharing, Slowdowns};
use pbs_job::{job_from_toml, machine_from_toml, Job, Machine};
use pbs_plan::{Config, Plan, Slot};
use pbs_planner::NotArranged;
use pbs_sim::{simulate, Interference, NoAnswer, Simulation};

const MACHINE: &str = r#"
[[node]]
name = "n"
memory_bytes = 1_000_000_000
rate_insns_per_s = 1_000_000_000
cores = ["c0", "c1"]
"#;

/// Nearly all of the time, and nothing but what is planned.
fn config() -> Config {
    Config {
        window_period_ns: 10_000_000_000,
        window_unallocated_ns: 100_000_000,
        capacity_buffer_permille: 1000,
        thresholds: 0,
        ..Config::DEFAULT
    }
}

fn machine() -> Machine {
    machine_from_toml(MACHINE).unwrap()
}

fn controller() -> Controller {
    let options = Options { config: Some(config()), lead_ns: 0, ..Options::default() };
    Controller::new(machine(), options, 1, 1)
}

/// A job of a process of 100 ms on that CPU.
fn job(name: &str, cpu: u32, deadline: &str) -> Job {
    let text = format!(
        "name = \"{name}\"\ndeadline_ns = \"{deadline}\"\n[[process]]\nid = 1\nname = \"{name}\"\n\
         memory_bytes = 1\ncpus = [{cpu}]\ntasks = [100_000_000]\n"
    );
    job_from_toml(&text).unwrap()
}

/// Returns the key given by the first letter: M is bound by memory, C computes.
fn key(job: &Job, _: usize) -> Key {
    Key { fingerprint: job.name.as_bytes()[0].into(), ..Key::default() }
}

/// s(M|M) = 1.8, s(M|C) = 1.1, else 1.
fn slowdowns() -> Slowdowns {
    let key = |letter: u8| Key { fingerprint: letter.into(), ..Key::default() };
    let entry = |victim, beside, slowdown| Entry {
        victim: key(victim),
        beside: vec![(Level::Node, key(beside))],
        slowdown,
        low: slowdown,
        high: slowdown,
        samples: 10,
    };
    Slowdowns::new(vec![
        entry(b'M', b'M', 1.8),
        entry(b'M', b'C', 1.1),
        entry(b'C', b'M', 1.0),
        entry(b'C', b'C', 1.0),
    ])
}

fn admitted(deadline: &str) -> Controller {
    let mut controller = controller();
    for (name, cpu) in [("M1", 0), ("C1", 0), ("M2", 1), ("C2", 1)] {
        controller.admit(job(name, cpu, deadline), 0).unwrap();
    }
    controller
}

fn beside(controller: &mut Controller) -> Result<Option<Beside>, NotArranged> {
    let companions =
        Companions { slowdowns: &slowdowns(), sharing: &Sharing::default(), key: &key };
    controller.beside(&companions, 0)
}

/// The processes of a CPU in the order of their slots, by name.
fn order(plan: &Plan, cpu: u32) -> Vec<String> {
    let of = plan.cpus.iter().find(|of| of.cpu == cpu).unwrap();
    let slots = of.slots.iter().filter_map(|placed| match placed {
        Slot::Process { process } => Some(plan.processes[*process].label()),
        _ => None,
    });
    let mut slots: Vec<String> = slots.collect();
    slots.dedup();
    slots
}

/// On a node where they slow each other as is known.
fn simulated(plan: &Plan) -> Simulation {
    let interference = Interference {
        slowdowns: slowdowns(),
        sharing: Sharing::default(),
        keys: plan
            .processes
            .iter()
            .flat_map(|process| process.tasks.iter().map(move |task| (process, task)))
            .map(|(process, task)| {
                let letter = process.label().as_bytes()[0];
                let key = Key { fingerprint: letter.into(), ..Key::default() };
                ((process.id, task.id), key)
            })
            .collect(),
    };
    let options =
        pbs_sim::Options { interference: Some(interference), ..pbs_sim::Options::default() };
    simulate(plan, &options, &mut NoAnswer).unwrap()
}

fn last_ns(simulation: &Simulation) -> u64 {
    let ends = simulation.processes.iter().filter_map(|process| process.ended_ns);
    ends.max().unwrap()
}

/// The order on one CPU is chosen for the other.
#[test]
fn plans_account_for_slowdowns_between_processes() {
    let mut controller = admitted("1s");
    let unaware = controller.plan(0).unwrap().unwrap();
    assert_eq!(last_ns(&simulated(&unaware)) / 1_000_000, 280);

    let found = beside(&mut controller).unwrap().unwrap();
    // What is reserved has the unallocated time, a hundredth, in it.
    let net_ns = |ns: u64| ns * 99 / 100;
    assert_eq!((net_ns(found.unaware_ns) + 5_000) / 10_000, 28_000);
    assert_eq!(net_ns(found.aware_ns) / 10_000, 21_636);
    // A memory-bound task runs beside the other at its end.
    assert_eq!(found.worst_permille, 1164);
    let aware = controller.plan(0).unwrap().unwrap();
    // One of the CPUs has changed its order.
    let firsts = [0, 1].map(|cpu| order(&aware, cpu)[0].chars().next().unwrap());
    assert!(matches!(firsts, ['M', 'C'] | ['C', 'M']), "{firsts:?}");
    assert_eq!(last_ns(&simulated(&aware)) / 10_000, 21_636);
    // Lengths are in instructions, and stay; the time that is reserved does not.
    for process in &aware.processes {
        assert_eq!(process.tasks[0].planned_insns, 100_000_000);
    }
    let runs = (0..4).map(|run| controller.store().run(pbs_planner::RunId(run)).unwrap());
    let end_ns = runs.map(pbs_planner::Run::end_ns).max().unwrap();
    assert!(end_ns >= found.aware_ns, "{end_ns}");
}

/// The order stays as it was admitted where a deadline would be missed, and nothing
/// changes where nobody slows anybody.
#[test]
fn deadlines_come_before_fewer_slowdowns() {
    let mut controller = admitted("205ms");
    let before = controller.plan(0).unwrap().unwrap();
    let refused = beside(&mut controller);
    assert!(matches!(refused, Err(NotArranged::Late { .. })), "{refused:?}");
    let after = controller.plan(0).unwrap().unwrap();
    assert_eq!([0, 1].map(|cpu| order(&before, cpu)), [0, 1].map(|cpu| order(&after, cpu)));

    let mut controller = admitted("1s");
    let before = controller.plan(0).unwrap().unwrap();
    let nobody =
        Companions { slowdowns: &Slowdowns::default(), sharing: &Sharing::default(), key: &key };
    let found = controller.beside(&nobody, 0).unwrap().unwrap();
    assert_eq!(found.unaware_ns, found.aware_ns);
    let after = controller.plan(0).unwrap().unwrap();
    assert_eq!([0, 1].map(|cpu| order(&before, cpu)), [0, 1].map(|cpu| order(&after, cpu)));
    assert_eq!(controller_without_runs(), None);
}

fn controller_without_runs() -> Option<Beside> {
    beside(&mut controller()).unwrap()
}

/// A slot on which a task is slowed by more than the ceiling allows would end before the
/// task: the plan says a greater one.
#[test]
fn plans_raise_the_ceiling_for_slowed_tasks() {
    let mut controller = controller();
    controller.admit(job("M1", 0, "2s"), 0).unwrap();
    let long = job("N1", 1, "2s");
    let text = pbs_job::job_to_toml(&long).replace("100_000_000", "1_000_000_000");
    controller.admit(job_from_toml(&text).unwrap(), 0).unwrap();
    let key_of = |letter: u8| Key { fingerprint: letter.into(), ..Key::default() };
    let slowdowns = Slowdowns::new(vec![Entry {
        victim: key_of(b'M'),
        beside: vec![(Level::Node, key_of(b'N'))],
        slowdown: 2.5,
        low: 2.5,
        high: 2.5,
        samples: 1,
    }]);
    let companions = Companions { slowdowns: &slowdowns, sharing: &Sharing::default(), key: &key };
    let before = controller.plan(0).unwrap().unwrap();
    assert_eq!(before.config.unwrap().ceiling_factor_permille, 2000);
    let found = controller.beside(&companions, 0).unwrap().unwrap();
    assert_eq!(found.worst_permille, 2500);
    let after = controller.plan(0).unwrap().unwrap();
    assert_eq!(after.config.unwrap().ceiling_factor_permille, 2700);
}

/// A run that has begun slows the one that waits, and both are timed.
#[test]
fn planned_runs_are_timed_with_their_slowdowns() {
    let mut controller = controller();
    controller.admit(job("M1", 0, "195ms"), 0).unwrap();
    let (slowdowns, sharing) = (slowdowns(), Sharing::default());
    let companions = Companions { slowdowns: &slowdowns, sharing: &sharing, key: &key };
    let ends =
        |controller: &Controller| controller.stretches(&companions, 0).ends(&companions).unwrap();
    let free = job("M2", 0, "190ms");
    let free = Job { processes: free.processes.into_iter().map(of_any_cpu).collect(), ..free };

    // Beside each other both take 1.8 times as long, and one behind the other is late.
    let mut beside = controller.clone();
    let admitted = beside.admit(free.clone(), 0).unwrap();
    assert_eq!(beside.cpus_of(admitted.run), Some(vec![1]));
    let slowed = ends(&beside);
    assert_eq!(slowed.makespan_ns * 99 / 100 / 1_000_000, 180);
    assert!(slowed.late.is_empty(), "{slowed:?}");
    let nobody = Slowdowns::default();
    let alone = Companions { slowdowns: &nobody, ..companions };
    let alone = beside.stretches(&alone, 0).ends(&alone).unwrap();
    assert_eq!(alone.makespan_ns * 99 / 100 / 1_000_000, 100);
    assert!(alone.is_better_than(&slowed) && !slowed.is_better_than(&alone));
    assert!(!slowed.is_better_than(&slowed));
    let behind = |job: &Job| {
        let mut confined = job.clone();
        confined.processes.iter_mut().for_each(|process| process.cpus = vec![0]);
        confined
    };
    assert!(controller.clone().admit_as(&Arc::new(free.clone()), &behind(&free), 0).is_err());

    // With more time, the run is admitted behind the other, and may move later.
    let later = Job { deadline_ns: 1_000_000_000, ..free };
    let admitted = controller.admit_as(&Arc::new(later.clone()), &behind(&later), 0).unwrap();
    assert_eq!(controller.cpus_of(admitted.run), Some(vec![0]));
    assert_eq!(ends(&controller).makespan_ns * 99 / 100 / 1_000_000, 200);
    // The last end is later than beside each other, though the sum is less.
    assert!(!ends(&controller).is_better_than(&slowed));
    let plan = controller.plan(0).unwrap().unwrap();
    assert_eq!(order(&plan, 0).len(), 2);
}

/// A process that may run on any CPU.
fn of_any_cpu(process: pbs_job::Process) -> pbs_job::Process {
    pbs_job::Process { cpus: Vec::new(), ..process }
}
