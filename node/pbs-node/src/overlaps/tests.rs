// SPDX-License-Identifier: GPL-2.0

use pbs_history::{ExpectedTask, Fingerprint};
use pbs_interference::Level;
use pbs_job::machine_from_toml;

use super::*;

const MS: u64 = 1_000_000;

/// With two CPUs that share a cache, and a third.
fn machine() -> Machine {
    let text = "[[node]]\nname = \"n\"\nmemory_bytes = 1_000_000\n\
                rate_insns_per_s = 1_000_000_000\n\
                cores = [{ name = \"a\", cpu = 0 }, { name = \"b\", cpu = 1 }, \
                { name = \"c\", cpu = 2 }]\n\
                [[sharing]]\nlevel = \"llc\"\ncpus = [0, 1]\n";
    machine_from_toml(text).unwrap()
}

/// Without windows, but for who asks for them.
fn config(unallocated_ns: u64) -> Config {
    Config { window_period_ns: 100 * MS, window_unallocated_ns: unallocated_ns, ..Config::DEFAULT }
}

/// A process whose number in the plan is its fingerprint, with so many tasks, from 1 on.
fn process(number: u32, tasks: u32) -> Expected {
    let tasks = (1..=tasks).map(|task| ExpectedTask {
        number: task,
        task: 100 + task,
        name: None,
        planned_insns: 1,
    });
    Expected {
        number,
        process: 1,
        name: None,
        fingerprint: Fingerprint(number.into()),
        tasks: tasks.collect(),
    }
}

/// The fingerprint and the number of a task, its instructions, and of each set of others
/// their fingerprints and for how long.
type Row = (u64, u32, u64, Vec<(Vec<u64>, u64)>);

/// Events of a node.
struct Told(Overlaps);

impl Told {
    fn new(unallocated_ns: u64) -> Self {
        let mut overlaps = Overlaps::new(&machine(), &config(unallocated_ns), false).unwrap();
        overlaps.follow(&[process(7, 2), process(8, 2), process(9, 1)]);
        Self(overlaps)
    }

    fn event(&mut self, kind: EventKind, cpu: u32, time_ns: u64, of: (u32, u32), insns: u64) {
        let event = Event {
            kind: kind as u16,
            cpu,
            time_ns,
            process: of.0,
            task: of.1,
            retired_insns: insns,
            ..Event::default()
        };
        self.0.event(&event, false);
    }

    fn grant(&mut self, cpu: u32, time_ns: u64, of: (u32, u32)) {
        self.event(EventKind::Grant, cpu, time_ns, of, 0);
    }

    fn nobody(&mut self, cpu: u32, time_ns: u64) {
        self.grant(cpu, time_ns, (IDLE, 0));
    }

    fn ends(&mut self, cpu: u32, time_ns: u64, of: (u32, u32), insns: u64) {
        self.event(EventKind::TaskEnded, cpu, time_ns, of, insns);
    }

    fn lost(&mut self) {
        let overrun = Event { kind: EventKind::Overrun as u16, value: 5, ..Event::default() };
        self.0.event(&overrun, true);
    }

    fn samples(&mut self) -> Vec<Row> {
        let coruns = self.0.finish(&[7, 8, 9]).into_iter();
        let samples = coruns.map(|(_, Corun { sample, .. })| {
            let sum: u64 = sample.beside.iter().map(|it| it.duration_ns).sum();
            assert_eq!(sum, sample.ran_ns);
            let beside = sample.beside.into_iter().map(|it| {
                let of = it.neighbours.iter().map(|by| by.key.fingerprint);
                (of.collect(), it.duration_ns)
            });
            let key = sample.victim;
            (key.fingerprint, key.task, sample.insns, beside.collect())
        });
        samples.collect()
    }
}

#[test]
fn a_task_is_cut_where_its_co_runners_change() {
    let mut told = Told::new(0);
    told.grant(0, 10, (7, 1));
    told.grant(1, 30, (8, 1));
    told.grant(2, 40, (9, 1));
    told.ends(2, 45, (9, 1), 50);
    told.ends(0, 110, (7, 1), 1000);
    // Its next task has the same grant.
    told.ends(1, 130, (8, 1), 2000);
    told.ends(0, 150, (7, 2), 400);
    let samples = told.samples();
    let expected = [
        (7, 101, 1000, vec![(vec![], 20), (vec![8], 75), (vec![8, 9], 5)]),
        // Another task of the same is somebody else.
        (7, 102, 400, vec![(vec![8], 20), (vec![8], 20)]),
        (8, 101, 2000, vec![(vec![7], 75), (vec![7, 9], 5), (vec![7], 20)]),
        (9, 101, 50, vec![(vec![7, 8], 5)]),
    ];
    assert_eq!(samples, expected);
    assert!(told.0.lives.is_empty() && told.0.names.is_empty() && told.0.keys.is_empty());
}

#[test]
fn co_runners_are_keyed_by_sharing_level() {
    let mut told = Told::new(0);
    told.grant(0, 10, (7, 1));
    told.grant(1, 10, (8, 1));
    told.grant(2, 10, (9, 1));
    told.ends(0, 20, (7, 1), 5);
    let (task, Corun { sample, by_clock }) = told.0.finish(&[7]).remove(0);
    assert_eq!((task, by_clock), ((7, 1), false));
    let levels = sample.beside[0].neighbours.iter();
    let levels: Vec<_> = levels.map(|by| (by.level, by.key.fingerprint)).collect();
    assert_eq!(levels, [(Level::Llc, 8), (Level::Node, 9)]);
}

/// Windows end at 95 ms of each 100, from the first plan of each CPU on; a plan that
/// takes over changes nothing.
#[test]
fn unallocated_time_counts_for_no_task() {
    let mut told = Told::new(5 * MS);
    told.event(EventKind::PlanInstalled, 0, MS, (IDLE, 0), 0);
    told.event(EventKind::PlanInstalled, 1, 51 * MS, (IDLE, 0), 0);
    told.grant(0, MS, (7, 1));
    told.grant(1, 51 * MS, (8, 1));
    told.event(EventKind::PlanInstalled, 0, 77 * MS, (IDLE, 0), 0);
    told.ends(0, 201 * MS, (7, 1), 1000);
    let samples = told.samples();
    // CPU 0 is the others' from 96 to 101 and from 196 to 201, CPU 1 from 146 to 151.
    let expected = [(7, 101, 1000, vec![(vec![], 55 * MS), (vec![8], 135 * MS)])];
    assert_eq!(samples, expected);
}

#[test]
fn samples_with_lost_events_are_discarded() {
    let mut told = Told::new(0);
    told.grant(0, 10, (7, 1));
    told.grant(1, 10, (8, 1));
    told.ends(0, 20, (7, 1), 5);
    told.event(EventKind::Preempted, 1, 25, (8, 1), 3);
    told.lost();
    // Who ended before is known; who ran meanwhile is not, nor who runs beside
    // somebody unknown.
    told.grant(0, 40, (7, 2));
    told.ends(0, 50, (7, 2), 5);
    told.ends(1, 60, (8, 1), 5);
    told.nobody(0, 60);
    // From then on all is known again.
    told.grant(1, 60, (8, 2));
    told.ends(1, 70, (8, 2), 5);
    let samples = told.samples();
    let expected = [(7, 101, 5, vec![(vec![8], 10)]), (8, 102, 5, vec![(vec![], 10)])];
    assert_eq!(samples, expected);
}

/// A planner that takes over does not know the owners of CPUs, except that CPUs without a plan have
/// none.
#[test]
fn earlier_owners_of_a_cpu_are_unknown() {
    let mut told = Told::new(0);
    told.0.begun(&[0, 1]);
    told.grant(0, 10, (7, 1));
    told.ends(0, 20, (7, 1), 5);
    told.nobody(1, 20);
    told.ends(0, 30, (7, 2), 5);
    assert_eq!(told.samples(), [(7, 102, 5, vec![(vec![], 10)])]);
}

/// A CPU without a plan is idle, whatever events were lost.
#[test]
fn cpus_without_a_plan_are_known_to_be_idle() {
    let mut told = Told::new(0);
    told.event(EventKind::PlanInstalled, 1, 5, (IDLE, 0), 0);
    told.event(EventKind::PlanEnded, 1, 8, (IDLE, 0), 0);
    told.event(EventKind::PlanInstalled, 2, 8, (IDLE, 0), 0);
    told.lost();
    told.grant(0, 10, (7, 1));
    told.ends(0, 20, (7, 1), 5);
    // Of this one it is not known until it is told.
    told.event(EventKind::PlanEnded, 2, 20, (IDLE, 0), 0);
    told.ends(0, 30, (7, 2), 5);
    assert_eq!(told.samples(), [(7, 102, 5, vec![(vec![], 10)])]);
}

#[test]
fn spans_beside_foreign_plans_are_discarded() {
    let mut told = Told::new(0);
    told.grant(2, 0, (55, 1));
    told.grant(0, 10, (7, 1));
    told.ends(0, 20, (7, 1), 5);
    told.nobody(2, 20);
    told.ends(0, 30, (7, 2), 5);
    assert_eq!(told.samples(), [(7, 102, 5, vec![(vec![], 10)])]);
}

/// One that had begun before it was followed, and one that never had the CPU.
#[test]
fn only_whole_runs_count() {
    let mut told = Told::new(0);
    told.event(EventKind::Grant, 0, 10, (7, 1), 300);
    told.ends(0, 20, (7, 1), 500);
    told.ends(1, 25, (8, 1), 5);
    assert_eq!(told.samples(), []);
}

/// A grant that is told late is heard in its place.
#[test]
fn late_grants_are_sorted_into_their_place() {
    let mut told = Told::new(0);
    told.grant(0, 10 * MS, (7, 1));
    told.grant(1, 12 * MS, (8, 1));
    told.nobody(1, 40 * MS);
    for round in 0..5000 {
        // CPU 2 makes it fold meanwhile.
        told.grant(2, 60 * MS + 2 * round, (9, 1));
        told.nobody(2, 60 * MS + 2 * round + 1);
    }
    told.grant(1, 50 * MS, (8, 1));
    told.ends(0, 70 * MS, (7, 1), 5);
    let samples = told.samples();
    let expected: Row =
        (7, 101, 5, vec![(vec![], 12 * MS), (vec![8], 48 * MS - 5000), (vec![8, 9], 5000)]);
    assert_eq!(samples, [expected]);
}

/// With a million grants what is kept stays small, and no time is lost.
#[test]
fn many_grants_need_no_more_memory() {
    const GRANTS: u64 = 1_000_000;
    let mut told = Told::new(5 * MS);
    told.grant(0, 0, (7, 1));
    let mut most = 0;
    for round in 0..GRANTS / 2 {
        told.grant(1, round * MS + MS / 4, (8, 1));
        told.nobody(1, round * MS + 3 * MS / 4);
        most = most.max(told.0.stretches.len());
    }
    told.ends(0, GRANTS / 2 * MS, (7, 1), 5);
    assert!(most <= FOLD_STRETCHES, "{most} stretches");
    let half = GRANTS / 4 * MS;
    let expected = [(7, 101, 5, vec![(vec![], half), (vec![8], half)])];
    assert_eq!(told.samples(), expected);
}

/// A task whose instructions were counted in two ways has no valid count.
#[test]
fn counts_of_the_clock_are_kept_apart() {
    let mut told = Told::new(0);
    told.grant(0, 10, (7, 1));
    told.grant(1, 10, (8, 1));
    let tier = Event {
        kind: EventKind::Tier as u16,
        cpu: 0,
        time_ns: 15,
        process: IDLE,
        value: Tier::Clock as u64,
        ..Event::default()
    };
    told.0.event(&tier, false);
    told.ends(0, 20, (7, 1), 5);
    told.ends(0, 30, (7, 2), 10);
    told.ends(1, 40, (8, 1), 10);
    told.ends(1, 50, (8, 2), 10);
    let coruns = told.0.finish(&[7, 8]).into_iter();
    let by_clock: Vec<_> = coruns.map(|(task, corun)| (task, corun.by_clock)).collect();
    assert_eq!(by_clock, [((7, 2), true), ((8, 2), false)]);
}

/// A task that is beside ever others tells nothing, and keeps nothing.
#[test]
fn a_task_beside_too_many_others_is_no_sample() {
    let mut told = Told::new(0);
    told.0.follow(&[process(10, 1000)]);
    told.grant(0, 0, (7, 1));
    told.grant(1, 10, (10, 1));
    for task in 1..=1000 {
        told.ends(1, 10 + u64::from(task), (10, task), 5);
    }
    told.ends(0, 2000, (7, 1), 5);
    assert_eq!(told.samples(), []);
    assert_eq!(told.0.finish(&[10]).len(), 1000);
}

#[test]
fn nodes_of_one_cpu_and_of_too_many_learn_nothing() {
    let node = |cpus: usize| {
        let mut machine = machine();
        let core = machine.nodes[0].cores[0].clone();
        let cores = (0..cpus).map(|cpu| pbs_job::Core { cpu: Some(cpu as u32), ..core.clone() });
        machine.nodes[0].cores = cores.collect();
        Overlaps::new(&machine, &config(0), false).is_some()
    };
    assert_eq!([1, 2, 16, 17].map(node), [false, true, true, false]);
}

/// Whenever it is folded, the same comes out.
#[test]
fn the_moment_of_folding_changes_no_result() {
    let mut state = 7u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005);
        state = state.wrapping_add(1);
        (state >> 33) % below
    };
    let mut known = 0;
    for round in 0..50 {
        let mut both = [Told::new(5 * MS), Told::new(5 * MS)];
        both[1].0.fold_at = usize::MAX;
        let mut each = |what: &dyn Fn(&mut Told)| {
            both[0].0.fold_at = 1;
            both.iter_mut().for_each(what);
        };
        let mut time_ns = MS;
        for cpu in 0..3 {
            let phase_ns = time_ns + u64::from(cpu) * MS;
            each(&|told| told.event(EventKind::PlanInstalled, cpu, phase_ns, (IDLE, 0), 0));
        }
        let mut tasks = [1, 1, 1];
        for _ in 0..200 {
            time_ns += random(10 * MS);
            let cpu = random(3) as u32;
            let task = &mut tasks[cpu as usize];
            let of = (7 + cpu, *task);
            match random(40) {
                0 if *task < 2 => {
                    each(&|told| told.ends(cpu, time_ns, of, 9));
                    *task += 1;
                }
                1..10 => each(&|told| told.nobody(cpu, time_ns)),
                _ => each(&|told| told.grant(cpu, time_ns, of)),
            }
        }
        for cpu in 0..3 {
            let of = (7 + cpu, tasks[cpu as usize]);
            each(&|told| told.grant(cpu, time_ns, of));
            each(&|told| told.ends(cpu, time_ns + MS, of, 9));
        }
        assert!(both[0].0.folded_ns > 0 && both[1].0.folded_ns == 0);
        let [often, once] = both.each_mut().map(Told::samples);
        assert_eq!(often, once, "{round}");
        known += often.len();
    }
    assert!(known > 100, "{known}");
}

/// Three processes on two CPUs, whose tasks change their lengths from run to run.
fn simulated(run: u64) -> pbs_plan::Plan {
    let task = |planned_insns: u64| format!("{{ planned_insns = {planned_insns} }}");
    let text = format!(
        "plan_id = 1\n[config]\nceiling_factor_permille = 4_000\n\
         [[process]]\nid = 1\ntasks = [{}, {}]\n[[process]]\nid = 2\ntasks = [{}, {}]\n\
         [[process]]\nid = 3\ntasks = [{}]\n\
         [[cpu]]\ncpu = 0\nslots = [1, 3, 1]\n\
         [[cpu]]\ncpu = 1\nslots = [2, \"idle 30_000_000\", 2]\n",
        task(100_000_000 + 31_000_000 * run),
        task(300_000_000),
        task(350_000_000 - 29_000_000 * run),
        task(200_000_000),
        task(90_000_000),
    );
    pbs_plan::from_toml(&text).unwrap_or_else(|problems| panic!("{text}\n{problems:?}"))
}

/// From the events of a node on which processes slow each other by known factors, those
/// factors are learnt.
#[test]
fn slowdowns_are_learnt_from_the_events_of_simulations() {
    let pairs = [(1, 2, 1.6), (2, 1, 1.25), (2, 3, 1.9)];
    let entries = pairs.map(|(victim, by, slowdown)| pbs_interference::Entry {
        victim: format!("{victim}"),
        beside: vec![(Level::Node, format!("{by}"))],
        slowdown,
        low: slowdown,
        high: slowdown,
        samples: 10,
    });
    let text = "[[node]]\nname = \"n\"\nmemory_bytes = 1_000_000\n\
                rate_insns_per_s = 1_000_000_000\ncores = [\"a\", \"b\"]\n";
    let machine = machine_from_toml(text).unwrap();
    let mut coruns = Vec::new();
    for run in 0..8 {
        let plan = simulated(run);
        let of_plan = pbs_sim::Interference::of_plan(&plan, &entries, Sharing::default());
        let options =
            pbs_sim::Options { interference: Some(of_plan), ..pbs_sim::Options::default() };
        let simulation = pbs_sim::simulate(&plan, &options, &mut pbs_sim::NoAnswer).unwrap();
        let mut overlaps = Overlaps::new(&machine, &Config::DEFAULT, false).unwrap();
        let expected = plan.processes.iter().map(|process| Expected {
            number: process.id,
            process: process.id,
            name: None,
            fingerprint: Fingerprint(process.id.into()),
            tasks: process
                .tasks
                .iter()
                .map(|task| ExpectedTask {
                    number: task.id,
                    // All tasks of a process are alike.
                    task: 0,
                    name: None,
                    planned_insns: task.planned_insns,
                })
                .collect(),
        });
        overlaps.follow(&expected.collect::<Vec<_>>());
        for event in &simulation.events {
            overlaps.event(event, false);
        }
        let found = overlaps.finish(&[1, 2, 3]);
        assert_eq!(found.len(), 5);
        for ((process, task), corun) in &found {
            let mut tasks = simulation.tasks.iter();
            let told = tasks.find(|of| (of.process, of.task) == (*process, *task));
            assert_eq!(told.map(|of| of.retired_insns), Some(corun.sample.insns));
        }
        let ran_ns: u64 = found.iter().map(|(_, corun)| corun.sample.ran_ns).sum();
        let running_ns: u64 = simulation.cpus.iter().map(|cpu| cpu.running_ns).sum();
        assert_eq!(ran_ns, running_ns);
        coruns.extend(found.into_iter().map(|(_, corun)| corun.sample));
    }
    let exact =
        pbs_interference::Config { spread_permille: 1, ..pbs_interference::Config::DEFAULT };
    let learnt = pbs_interference::learn(&exact, pbs_interference::Work::Retired, &coruns);
    let entries = learnt.iter().flat_map(|learnt| &learnt.entries);
    let found: Vec<_> = entries
        .map(|entry| {
            let by = entry.beside[0].1.fingerprint;
            let percent = (entry.slowdown * 100.0).round();
            (entry.victim.fingerprint, by, percent)
        })
        .collect();
    assert_eq!(found, [(1, 2, 160.0), (2, 1, 125.0), (2, 3, 190.0), (3, 2, 100.0)]);
}
