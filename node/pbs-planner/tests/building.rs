// SPDX-License-Identifier: GPL-2.0
//! Reservations as plans of the class, and as the thesis's file.

mod common;

use common::nets::{machine, random_job, Random};
use common::{random_machine, whole_ns};
use pbs_job::{Action, Job};
use pbs_plan::{Config, Plan, Slot};
use pbs_planner::plan_building::{
    class_plans, csv, planner_config, Entry, NodePlan, ProcessIds, Settings,
};
use pbs_planner::{
    admit, reserve, Balancing, Capacity, Options, ProcessReservation, Progress, Request, Run,
    RunId, Store, TaskReservation, Validation,
};

fn entry(run: RunId, job: &Job) -> Entry<'_> {
    Entry { run, job, progress: &[], deadline_ns: u64::MAX }
}

/// Returns the start and end of each task of a process if the class executes the plan: (process id,
/// task id, start, end) in instructions of its CPU.
fn executed(plan: &Plan) -> Vec<(u32, u32, u64, u64)> {
    let mut all = Vec::new();
    for cpu in &plan.cpus {
        let mut time = 0;
        for slot in plan.place(cpu) {
            let end = time + slot.length_insns;
            if let Some((process, task)) = slot.task {
                let process = &plan.processes[process];
                all.push((process.id, process.tasks[task].id, time, end));
            }
            time = end;
        }
    }
    all
}

/// The order of slots and the lengths of gaps are those of the reservations,
/// for random jobs; and the class's validator takes every plan (`class_plans`
/// asks it).
#[test]
fn slots_are_where_the_reservations_are() {
    let mut tasks = 0;
    for seed in 0..60 {
        let random = &mut Random::new(seed);
        let mut store = Store::new(random_machine(random), Balancing::Dynamic);
        let jobs: Vec<_> = (0..3).map(|_| random_job(random, 5, 5, 60)).collect();
        let mut entries = Vec::new();
        for (number, job) in jobs.iter().enumerate() {
            let request = Request::new(RunId(number as u64), job);
            if reserve(&mut store, &request, &Options::default()).is_ok() {
                entries.push(entry(request.run, job));
            }
        }
        let mut ids = ProcessIds::default();
        let settings = Settings::default();
        let plans = class_plans(&store, &entries, &mut ids, &settings).expect("valid plans");
        let mut found = Vec::new();
        for NodePlan { node, plan } in &plans {
            let rate = store.machine().nodes[*node].cores[0].rate_insns_per_s;
            let nodes_cores = &store.machine().nodes[*node].cores;
            if nodes_cores.iter().any(|core| core.rate_insns_per_s != rate) {
                continue;
            }
            for (id, task, start, end) in executed(plan) {
                let (run, process) = ids.process(id).expect("its number was given");
                found.push((run, process, task as usize, start, end, rate));
            }
        }
        for (run, process, position, start, end, rate) in found {
            let job = jobs[run.0 as usize].clone();
            let task = job.processes[process].tasks[position];
            let planned = store.run(run).expect("it is planned").tasks[task];
            assert_eq!(planned.task, task);
            assert_eq!(end - start, job.tasks[task].insns);
            // A slot may start earlier than planned by what the rounding up to
            // whole ticks gave to the tasks before it, never later.
            let planned_insns = u128::from(planned.start_ns) * u128::from(rate) / 1_000_000_000;
            assert!(u128::from(start) <= planned_insns, "seed {seed}");
            tasks += 1;
        }
    }
    assert!(tasks > 500, "{tasks}");
}

/// Two tasks with a pause on one core, one task on another.
fn small() -> (Store, Job) {
    let mut job = random_job(&mut Random::new(3), 0, 1, 10);
    job.tasks.truncate(3);
    job.processes[0].tasks = vec![0, 1, 2];
    let actions = [Action::Start, Action::Calculation, Action::End];
    for (position, (task, action)) in job.tasks.iter_mut().zip(actions).enumerate() {
        (task.action, task.position, task.insns) = (action, position, 10);
    }
    let mut store =
        Store::new(machine(1, &[(1000, &[1_000_000_000, 1_000_000_000])]), Balancing::Dynamic);
    let task = |task, start_ns| TaskReservation {
        task,
        process: 0,
        core: 1,
        start_ns,
        end_ns: start_ns + 10,
        memory_bytes: 7,
    };
    let run = Run {
        processes: vec![ProcessReservation {
            process: 0,
            node: 0,
            core: 1,
            start_ns: 100,
            end_ns: 160,
            memory_bytes: 10,
            resources: Vec::new(),
        }],
        tasks: vec![task(0, 100), task(1, 110), task(2, 150)],
        ..Run::default()
    };
    let mut booking = store.book();
    booking.reserve(RunId(5), run).expect("it is free");
    booking.commit();
    (store, job)
}

#[test]
fn gaps_are_idle_slots_and_the_rest_to_the_deadline_is_the_buffer() {
    let (store, job) = small();
    let progress = [Progress::Running { core: 1, position: 0, retired_insns: 12 }];
    let entries = [Entry { run: RunId(5), job: &job, progress: &progress, deadline_ns: 200 }];
    let mut ids = ProcessIds::default();
    let settings = Settings { plan_id: 9, dealt_seq: 4, start_ns: 60, ..Settings::default() };
    let plans = class_plans(&store, &entries, &mut ids, &settings).expect("a valid plan");
    let [NodePlan { node: 0, plan }] = &plans[..] else {
        panic!("{plans:?}");
    };
    assert_eq!((plan.plan_id, plan.dealt_seq), (9, 4));
    let [cpu] = &plan.cpus[..] else {
        panic!("{:?}", plan.cpus);
    };
    let idle = |length_insns| Slot::Idle { length_insns, real_insns: None };
    let own = Slot::Process { process: 0 };
    assert_eq!(cpu.cpu, 1);
    assert_eq!(cpu.slots, [idle(40), own, own, idle(30), own]);
    assert_eq!(plan.processes[0].buffer_insns, 40);
    // The task that is running has already retired more than was planned.
    let planned: Vec<_> = plan.processes[0].tasks.iter().map(|task| task.planned_insns).collect();
    assert_eq!(planned, [13, 10, 10]);
}

#[test]
fn processes_keep_their_numbers() {
    let (store, job) = small();
    let mut ids = ProcessIds::default();
    assert_eq!(ids.get(RunId(1), 3), 0);
    for _ in 0..2 {
        let plans = class_plans(&store, &[entry(RunId(5), &job)], &mut ids, &Settings::default());
        assert_eq!(plans.expect("a valid plan")[0].plan.processes[0].id, 1);
    }
    assert_eq!(ids.process(1), Some((RunId(5), 0)));
    ids.forget(RunId(5));
    assert_eq!(ids.process(1), None);
    assert_eq!(ids.get(RunId(5), 0), 2);
}

/// The end of the run when that process ends so much later than planned, and all
/// that has to wait waits.
fn end_ns_with_late(run: &Run, job: &Job, process: usize, late_ns: u64) -> u64 {
    let last = job.processes[process].tasks.last().copied();
    let mut in_order: Vec<_> = run.tasks.iter().collect();
    // Tasks that wait for each other and take no time are in the order of the
    // net once the rounds below are over.
    in_order.sort_by_key(|task| (task.start_ns, task.end_ns));
    let mut ends_ns: Vec<u64> = run.tasks.iter().map(|task| task.end_ns).collect();
    loop {
        let before = ends_ns.clone();
        let mut cores_ns = std::collections::HashMap::new();
        for task in &in_order {
            let ready_ns = job.predecessors(task.task).map(|before| ends_ns[before]).max();
            let mut start_ns = task.start_ns.max(ready_ns.unwrap_or(0));
            let length_ns = task.end_ns - task.start_ns;
            if length_ns > 0 {
                start_ns = start_ns.max(cores_ns.get(&task.core).copied().unwrap_or(0));
            }
            let own_ns = if last == Some(task.task) { late_ns } else { 0 };
            ends_ns[task.task] = start_ns + length_ns + own_ns;
            if length_ns > 0 {
                cores_ns.insert(task.core, ends_ns[task.task]);
            }
        }
        if ends_ns == before {
            return ends_ns.into_iter().max().unwrap_or(0);
        }
    }
}

#[test]
fn a_process_that_is_late_by_its_buffer_keeps_the_deadline_and_no_more() {
    let (mut some, mut exact) = (0, 0);
    for seed in 0..80 {
        let random = &mut Random::new(seed);
        let mut store = Store::new(random_machine(random), Balancing::Dynamic);
        let job = random_job(random, 6, 5, 40);
        let deadline_ns = 2 * whole_ns(&job);
        let request = Request { deadline_ns, ..Request::new(RunId(0), &job) };
        if reserve(&mut store, &request, &Options::default()).is_err() {
            continue;
        }
        let entry = Entry { deadline_ns, ..entry(RunId(0), &job) };
        let mut ids = ProcessIds::default();
        let plans = class_plans(&store, &[entry], &mut ids, &Settings::default());
        let run = store.run(RunId(0)).expect("it is planned");
        for NodePlan { plan, .. } in plans.expect("valid plans") {
            for process in &plan.processes {
                let (_, index) = ids.process(process.id).expect("its number was given");
                let last = job.processes[index].tasks.last().expect("it has tasks");
                // Only of those whose last task takes time it is known whom
                // else on the core they delay.
                if job.tasks[*last].insns == 0 {
                    continue;
                }
                let core = run.tasks[*last].core;
                let rate = store.sites()[core].rate_insns_per_s;
                let late_ns = process.buffer_insns * 1_000_000_000 / rate;
                let end_ns = end_ns_with_late(run, &job, index, late_ns);
                assert!(end_ns <= deadline_ns, "seed {seed}");
                let more_ns = (process.buffer_insns + 1) * 1_000_000_000 / rate + 1;
                exact += usize::from(end_ns_with_late(run, &job, index, more_ns) > deadline_ns);
                some += 1;
            }
        }
    }
    assert!(some > 50 && exact == some, "{exact} of {some}");
}

#[test]
fn the_capacity_buffer_and_unallocated_time_lengthen_the_plan() {
    let config = Config {
        window_period_ns: 100_000_000,
        window_unallocated_ns: 20_000_000,
        capacity_buffer_permille: 1250,
        ..Config::DEFAULT
    };
    let capacity = Capacity::of(&config);
    assert_eq!(capacity.planned_rate(1_000_000_000), 640_000_000);
    assert_eq!(capacity.planned_rate(0), 1);
    assert_eq!(Capacity::WHOLE.planned_rate(7), 7);
    let machine = machine(1, &[(1000, &[1_000_000_000])]);
    let mut store = Store::with_capacity(machine, Balancing::Dynamic, capacity);
    let job = random_job(&mut Random::new(1), 0, 3, 10);
    let request = Request::new(RunId(0), &job).not_before(1000);
    let planned =
        reserve(&mut store, &request, &Options::default()).expect("nothing is in its way");
    let insns: u64 = job.tasks.iter().map(|task| task.insns).sum();
    let shortest_ns = insns * 100 / 64;
    assert!(planned.makespan_ns() >= shortest_ns);
    assert!(planned.makespan_ns() <= shortest_ns + job.tasks.len() as u64);
    // The clock of idle slots is that of execution time at the full rate.
    let settings = Settings { config: Some(config), ..Settings::default() };
    let plans =
        class_plans(&store, &[entry(RunId(0), &job)], &mut ProcessIds::default(), &settings);
    let plans = plans.expect("a valid plan");
    let first = plans[0].plan.cpus[0].slots[0];
    assert_eq!(first, Slot::Idle { length_insns: 800, real_insns: None });
}

#[test]
fn the_file_is_that_of_the_thesis() {
    let (store, job) = small();
    let text = csv(&store, RunId(5), &job).expect("it is planned");
    let lines = "node_id;core_id;task_id;start;end;mem_consumption\n\
                 n0;c1;0;100;110;7\nn0;c1;1;110;120;7\nn0;c1;2;150;160;7\n";
    assert_eq!(text, lines);
    assert_eq!(csv(&store, RunId(6), &job), None);
}

/// The dependencies in a node's plan are those of the job's net, no more and no fewer. Tasks
/// without instructions have no slot; dependencies pass through them.
#[test]
fn plans_have_the_order_of_the_job() {
    let (mut pairs, mut edges) = (0, 0);
    for seed in 0..80 {
        let random = &mut Random::new(seed);
        let rates = [1_000_000_000, 700_000_000, 1_000_000_000];
        let mut store = Store::new(machine(1, &[(1 << 30, &rates)]), Balancing::Dynamic);
        let job = random_job(random, 7, 5, 40);
        let request = Request::new(RunId(0), &job).without_deadline();
        reserve(&mut store, &request, &Options::default()).expect("nothing is in its way");
        let mut ids = ProcessIds::default();
        let entries = [entry(RunId(0), &job)];
        let plans = class_plans(&store, &entries, &mut ids, &Settings::default());
        let [NodePlan { plan, .. }] = &plans.expect("a valid plan")[..] else {
            panic!("one node");
        };
        let tasks = job.tasks.len();
        let index = |process: u32, task: u32| {
            let (_, process) = ids.process(process).expect("its number was given");
            job.processes[process].tasks[task as usize]
        };
        let mut direct = vec![Vec::new(); tasks];
        for process in &plan.processes {
            let mut before = None;
            for task in &process.tasks {
                let this = index(process.id, task.id);
                direct[this].extend(before.replace(this));
                let after = task.after.iter();
                direct[this].extend(after.map(|after| index(after.process, after.task)));
                let mut others: Vec<_> = task.after.iter().map(|after| after.process).collect();
                edges += others.len();
                others.dedup();
                assert_eq!(others.len(), task.after.len(), "one for each process");
            }
        }
        let of_net: Vec<Vec<usize>> = (0..tasks).map(|t| job.predecessors(t).collect()).collect();
        let before_of = |direct: &[Vec<usize>], task: usize| {
            let mut seen = vec![false; tasks];
            let mut way = direct[task].clone();
            while let Some(before) = way.pop() {
                if !std::mem::replace(&mut seen[before], true) {
                    way.extend(&direct[before]);
                }
            }
            seen
        };
        for task in (0..tasks).filter(|&task| job.tasks[task].insns > 0) {
            let (held, wanted) = (before_of(&direct, task), before_of(&of_net, task));
            for before in (0..tasks).filter(|&before| job.tasks[before].insns > 0) {
                assert_eq!(held[before], wanted[before], "seed {seed}: {before} {task}");
                pairs += usize::from(wanted[before]);
            }
        }
    }
    assert!(pairs > 5_000 && edges > 300, "{pairs} {edges}");
}

/// Tasks do not wait for processes that have ended.
#[test]
fn who_has_ended_is_not_waited_for() {
    let job = pbs_job::job_from_toml(
        "name = \"fork\"\ndeadline_ns = 1_000_000\n\
         [[process]]\nid = 1\nname = \"parent\"\nmemory_bytes = 1\n\
         tasks = [10, { action = \"fork\", child = \"child\" }, 20, \
                  { action = \"join\", child = \"child\" }, 30]\n\
         [[process]]\nid = 2\nname = \"child\"\nmemory_bytes = 1\ntasks = [40, 50]\n",
    )
    .expect("a valid job");
    let after = |progress: &[Progress]| {
        let mut store =
            Store::new(machine(1, &[(1000, &[1_000_000_000, 1_000_000_000])]), Balancing::Dynamic);
        let request = Request { progress, ..Request::new(RunId(0), &job) };
        reserve(&mut store, &request, &Options::default()).expect("there is time");
        let entry = Entry { progress, ..entry(RunId(0), &job) };
        let mut ids = ProcessIds::default();
        let plans = class_plans(&store, &[entry], &mut ids, &Settings::default());
        let plan = plans.expect("a valid plan").remove(0).plan;
        let processes = plan.processes.iter();
        let tasks = processes.flat_map(|process| {
            let waits = process.tasks.iter().filter(|task| !task.after.is_empty());
            waits.map(|task| {
                let after = &task.after[0];
                let length = |process: u32, task: u32| {
                    let (_, index) = ids.process(process).expect("its number was given");
                    job.tasks[job.processes[index].tasks[task as usize]].insns
                };
                (task.planned_insns, length(after.process, after.task))
            })
        });
        tasks.collect::<Vec<_>>()
    };
    assert_eq!(after(&[]), [(30, 50), (40, 10)]);
    // The job's own start and the fork take no instructions.
    let position = |insns| {
        let task = job.tasks.iter().find(|task| task.insns == insns);
        task.expect("it is there").position
    };
    let running =
        |core, insns| Progress::Running { core, position: position(insns), retired_insns: 0 };
    assert_eq!(after(&[running(0, 20), Progress::Waiting]), [(30, 50)]);
    assert_eq!(after(&[running(0, 30), running(1, 50)]), [(30, 50)]);
    assert_eq!(after(&[running(0, 30), Progress::Ended]), []);
}

/// Three processes that need more than half of the memory each, one after the other on
/// two cores: each waits for those before. With memory for all, or without being
/// asked, nobody waits.
#[test]
fn who_gets_memory_of_others_waits_for_them() {
    let names = ["first", "second", "third"];
    let jobs = names.map(|name| {
        let text = format!(
            "name = \"{name}\"\ndeadline_ns = 1_000_000_000_000\n\
             [[process]]\nid = 0\nmemory_bytes = 60\ntasks = [10_000_000, 20_000_000]\n"
        );
        pbs_job::job_from_toml(&text).unwrap()
    });
    let after = |memory_bytes: u64, memory_order: bool| {
        let rates: &[u64] = &[1_000_000_000, 1_000_000_000];
        let machine = machine(1, &[(memory_bytes, rates)]);
        let mut store = Store::new(machine, Balancing::Dynamic);
        let mut entries = Vec::new();
        for (number, job) in jobs.iter().enumerate() {
            let request = Request::new(RunId(number as u64), job);
            reserve(&mut store, &request, &Options::default()).unwrap();
            entries.push(entry(request.run, job));
        }
        let settings = Settings { memory_order, ..Settings::default() };
        let mut ids = ProcessIds::default();
        let plans = class_plans(&store, &entries, &mut ids, &settings).unwrap();
        let processes = plans[0].plan.processes.iter();
        let after = processes.map(|process| {
            assert!(process.tasks[1].after.is_empty());
            let after = process.tasks[0].after.iter();
            after.map(|it| (it.process, it.task)).collect::<Vec<_>>()
        });
        after.collect::<Vec<_>>()
    };
    // The task before both has no instructions.
    let expected = [vec![], vec![(0, 2)], vec![(0, 2), (1, 2)]];
    assert_eq!(after(100, true), expected);
    assert_eq!(after(100, false), [vec![], vec![], vec![]]);
    assert_eq!(after(180, true), [vec![], vec![], vec![]]);
    // Two at a time: the third gets that of the first.
    assert_eq!(after(130, true), [vec![], vec![], vec![(0, 2)]]);
}

/// A planner that does not look at memory reserves more than there is, and the plan
/// still says what there is.
#[test]
fn a_blind_planner_takes_any_memory_for_granted() {
    let text = "name = \"huge\"\ndeadline_ns = 1_000_000_000_000\nmemory_bytes = 1_000_000\n\
                [[process]]\nid = 0\nmemory_bytes = 1_000_000\ntasks = [10_000_000]\n";
    let job = pbs_job::job_from_toml(text).unwrap();
    let machine = || machine(1, &[(100, &[1_000_000_000])]);
    let request = Request::new(RunId(1), &job);
    let admitted = |balancing| {
        let mut store = Store::new(machine(), balancing);
        let (validation, options) = (Validation::default(), Options::default());
        let admitted = admit(&mut store, &request, &validation, &options).is_ok();
        (admitted, store)
    };
    assert!(!admitted(Balancing::Dynamic).0);
    assert!(!admitted(Balancing::Static).0);
    let (is_admitted, store) = admitted(Balancing::Blind);
    assert!(is_admitted);
    let entries = [entry(RunId(1), &job)];
    let mut ids = ProcessIds::default();
    let plans = class_plans(&store, &entries, &mut ids, &Settings::default()).unwrap();
    assert_eq!(plans[0].plan.memory_bytes, 100);
    assert_eq!(plans[0].plan.processes[0].memory_bytes, 1_000_000);
    // All is given back.
    let mut empty = store.clone();
    assert!(empty.remove(RunId(1)));
    assert_eq!(empty, Store::new(machine(), Balancing::Blind));
}

/// Planners divide the windows of a node evenly, or leave them: the share of the rest of the
/// system is that of the node, and the class takes the configuration.
#[test]
fn planners_divide_the_windows_of_a_node() {
    let windows = |period_ns, unallocated_ns| {
        let node = Config {
            window_period_ns: period_ns,
            window_unallocated_ns: unallocated_ns,
            ..Config::DEFAULT
        };
        let config = planner_config(node);
        assert!(config.check().is_ok());
        (config.window_period_ns, config.window_unallocated_ns)
    };
    assert_eq!(windows(100_000_000, 5_000_000), (20_000_000, 1_000_000));
    assert_eq!(windows(1_000_000_000, 900_000_000), (20_000_000, 18_000_000));
    assert_eq!(windows(10_000_000_000, 100_000_000), (20_000_000, 200_000));
    assert_eq!(windows(50_000_000, 5_000_000), (25_000_000, 2_500_000));
    assert_eq!(windows(20_000_000, 1_000_000), (20_000_000, 1_000_000));
    assert_eq!(windows(1_000_000, 10_000), (1_000_000, 10_000));
    assert_eq!(windows(100_000_001, 5_000_000), (100_000_001, 5_000_000));
}
