// SPDX-License-Identifier: GPL-2.0
//! Countable resources: no plan holds more of one than there is, at any time, and plans of small
//! nets are close to the best ones.

mod common;

use std::collections::BTreeSet;

use common::checker::check;
use common::nets::{machine, random_job, small, Random};
use common::oracle::best;
use common::{question_and_answer, question_of, random_machine, whole_ns};
use pbs_job::{job_from_toml, Amount, Job, Machine, Resource};
use pbs_plan::{Config, Dispatch, Plan};
use pbs_planner::plan_building::{class_plans, planner_config, Entry, ProcessIds, Settings};
use pbs_planner::{
    admit, admit_beside, critical_path, lower_bound, reserve, validate, Balancing, Because,
    DemandTest, Lack, Limit, Options, Progress, Replan, Request, RunId, Shortage, Store, Strategy,
    Validation,
};

const RUN: RunId = RunId(0);
/// Length of a tick of the small nets.
const TICK_NS: u64 = 1_000_000_000;
const NAMES: [&str; 3] = ["matlab", "tape", "bus"];

fn amount(resource: &str, count: u64) -> Amount {
    Amount { resource: resource.into(), count }
}

/// The machine with these resources, held on all nodes.
fn with(machine: Machine, resources: &[(&str, u64)]) -> Machine {
    let resources = resources.iter().map(|&(name, count)| Resource {
        name: name.into(),
        count,
        ..Resource::default()
    });
    Machine { resources: resources.collect(), ..machine }
}

/// Lets some processes of the job, and sometimes the job as a whole, hold resources, of which there
/// are as many as `counts`.
fn hold_some(random: &mut Random, job: &mut Job, counts: &[(&str, u64)]) {
    for process in &mut job.processes {
        for &(name, count) in counts {
            if random.below(4) == 0 {
                process.resources.push(amount(name, 1 + random.below(count.div_ceil(2))));
            }
        }
    }
    if random.below(4) == 0 {
        job.resources = vec![amount(counts[0].0, 1)];
    }
}

fn counts(random: &mut Random) -> Vec<(&'static str, u64)> {
    NAMES[..1 + random.below(3) as usize].iter().map(|&it| (it, 1 + random.below(6))).collect()
}

fn options(random: &mut Random) -> Options {
    let strategies = match random.below(8) {
        one @ 0..=3 => vec![Strategy::ALL[one as usize]],
        _ => Strategy::ALL.to_vec(),
    };
    Options { strategies, local_search_tries: 2000, seed: random.below(99), ..Options::default() }
}

#[test]
fn no_plan_holds_more_than_there_is() {
    let (mut planned, mut refused, mut searched) = (0, 0, 0);
    for seed in 0..200 {
        let random = &mut Random::new(seed);
        let balancing = random.of(&[Balancing::Static, Balancing::Dynamic]);
        let counts = counts(random);
        let mut machine = with(random_machine(random), &counts);
        if random.below(3) == 0 {
            let nodes = machine.nodes.len() as u64;
            machine.resources[0].nodes = vec![random.below(nodes) as usize];
        }
        let mut store = Store::new(machine, balancing);
        let jobs = (0..1 + random.below(6)).map(|_| {
            let mut job = random_job(random, 6, 5, 150);
            hold_some(random, &mut job, &counts);
            job
        });
        let jobs: Vec<Job> = jobs.collect();
        let mut runs = Vec::new();
        for (number, job) in (0..).zip(&jobs) {
            let mut request = Request::new(RunId(number), job);
            if random.below(4) > 0 {
                request.deadline_ns = whole_ns(job) / (1 + random.below(4));
            }
            let before = store.clone();
            match reserve(&mut store, &request, &options(random)) {
                Ok(done) => {
                    planned += 1;
                    searched += usize::from(done.strategy == Strategy::LocalSearch);
                    runs.push((request.run, job, request.start_ns, request.deadline_ns));
                }
                Err(_) => {
                    refused += 1;
                    assert!(store == before, "seed {seed}: a refused job leaves a trace");
                }
            }
            let (question, answer) = question_and_answer(&store, &runs);
            assert_eq!(check(&question, &answer), Ok(()), "seed {seed}");
            // A resource of some nodes is held there.
            for process in store.runs().flat_map(|(_, run)| &run.processes) {
                for held in &process.resources {
                    let nodes = &store.machine().resources[held.resource].nodes;
                    assert!(nodes.is_empty() || nodes.contains(&process.node), "seed {seed}");
                }
            }
        }
        for (run, ..) in runs {
            assert!(store.remove(run));
        }
        let empty = Store::new(store.machine().clone(), balancing);
        assert!(store == empty, "seed {seed}");
    }
    let told = format!("{planned} planned, {refused} refused, {searched} by local search");
    assert!(planned > 200 && refused > 50 && searched > 20, "{told}");
}

#[test]
fn plans_of_small_nets_are_close_to_the_best() {
    let (mut proven, mut optimal, mut admitted, mut none) = (0, 0, 0, 0);
    for seed in 0..160 {
        let random = &mut Random::new(seed);
        let counts = counts(random);
        let net = small(seed);
        let mut job = net.job;
        hold_some(random, &mut job, &counts);
        let machine = with(net.machine, &counts);
        let question = question_of(&machine, Balancing::Dynamic, &[(&job, 0, u64::MAX)]);
        let best = best(&question, u64::MAX, 4_000);
        if !best.is_proven {
            continue;
        }
        let empty = Store::new(machine, Balancing::Dynamic);
        let request = Request::new(RUN, &job);
        let mut store = empty.clone();
        let planned = reserve(&mut store, &request, &Options::default());
        let Some(end_ticks) = best.end_ticks else {
            none += 1;
            assert!(planned.is_err(), "seed {seed}: there is no plan");
            continue;
        };
        proven += 1;
        assert_eq!(check(&question, &best.answer), Ok(()), "seed {seed}");
        let best_ns = end_ticks * TICK_NS;
        assert!(lower_bound(&empty, &request).end_ns <= best_ns, "seed {seed}");
        if let Ok(planned) = planned {
            assert!(planned.end_ns >= best_ns, "seed {seed}: the best is not the best");
            optimal += usize::from(planned.end_ns == best_ns);
            let (question, answer) = question_and_answer(&store, &[(RUN, &job, 0, u64::MAX)]);
            assert_eq!(check(&question, &answer), Ok(()), "seed {seed}");
        }
        // With a tenth to spare.
        let request = Request { deadline_ns: best_ns * 11 / 10, ..request };
        let mut store = empty.clone();
        let answer = admit(&mut store, &request, &Validation::default(), &Options::default());
        admitted += usize::from(answer.is_ok());
    }
    let told = format!("{optimal} optimal, {admitted} admitted of {proven}; {none} without a plan");
    assert!(proven >= 30 && none >= 10, "{told}");
    assert!(optimal * 100 >= 65 * proven && admitted * 100 >= 90 * proven, "{told}");
}

/// A job of processes without order, each with its instructions and what it holds.
fn job(name: &str, deadline_ns: u64, head: &str, processes: &[(u64, &str)]) -> Job {
    let mut text = format!("name = \"{name}\"\ndeadline_ns = {deadline_ns}\n{head}\n");
    for (id, (insns, resources)) in (1..).zip(processes) {
        text += &format!("[[process]]\nid = {id}\nname = \"{name}{id}\"\nmemory_bytes = 1\n");
        text += &format!("tasks = [{insns}]\n{resources}\n");
    }
    job_from_toml(&text).unwrap()
}

/// Cores of 10⁹ instructions in a second.
fn cores(cores: usize) -> Machine {
    machine(1, &[(1_000, &vec![1_000_000_000; cores])])
}

const ONE: &str = "resources = { matlab = 1 }";

#[test]
fn a_licence_is_held_by_one_after_the_other() {
    let machine = with(cores(3), &[("matlab", 1)]);
    let on = |cpu| format!("{ONE}\ncpus = [{cpu}]");
    let job = job("all", 1_000, "", &[(100, &on(0)), (100, &on(1)), (100, "cpus = [2]")]);
    let mut store = Store::new(machine, Balancing::Dynamic);
    let request = Request::new(RUN, &job);
    let bound = lower_bound(&store, &request);
    assert_eq!((bound.end_ns, bound.limit), (200, Limit::Resource));
    let planned = reserve(&mut store, &request, &Options::default()).unwrap();
    assert_eq!(planned.end_ns, 200);
    let path = critical_path(&job, store.run(RUN).unwrap());
    assert!(path.iter().any(|it| it.because == Because::Resource), "{path:?}");
    // Another job finds none before that, and all of it afterwards.
    let late = self::job("late", 299, "", &[(100, ONE)]);
    let rules = Options { strategies: Strategy::ALL[..4].to_vec(), ..Options::default() };
    let refused = reserve(&mut store, &Request::new(RunId(1), &late), &rules);
    let lack = refused.unwrap_err().best.lack;
    assert!(matches!(lack, Lack::Resource { needed: 1, place: 0, .. }), "{lack:?}");
    let in_time = self::job("late", 300, "", &[(100, ONE)]);
    reserve(&mut store, &Request::new(RunId(1), &in_time), &Options::default()).unwrap();
}

#[test]
fn the_job_as_a_whole_can_hold_resources() {
    let machine = with(cores(4), &[("matlab", 2)]);
    let job_of = |name, deadline| job(name, deadline, ONE, &[(100, ""), (60, ONE)]);
    let mut store = Store::new(machine, Balancing::Dynamic);
    let first = job_of("first", 1_000);
    let planned = reserve(&mut store, &Request::new(RUN, &first), &Options::default()).unwrap();
    assert_eq!(planned.end_ns, 100);
    // One is free: the job holds it from its first task on, and its process waits for another.
    let second = job_of("second", 1_000);
    let request = Request::new(RunId(1), &second);
    let planned = reserve(&mut store, &request, &Options::default()).unwrap();
    let runs = [(RUN, &first, 0, 1_000), (RunId(1), &second, 0, 1_000)];
    let (question, answer) = question_and_answer(&store, &runs);
    assert_eq!(check(&question, &answer), Ok(()));
    assert!(planned.end_ns >= 120, "{planned:?}");
}

#[test]
fn what_can_never_be_held_is_refused_with_its_name() {
    let declined = |job: &Job, resources: &[(&str, u64)]| {
        let mut store = Store::new(with(cores(2), resources), Balancing::Dynamic);
        let rejection = validate(&mut store, &Request::new(RUN, job), &Validation::default());
        let rejection = rejection.unwrap_err();
        let refused = reserve(&mut store, &Request::new(RUN, job), &Options::default());
        (rejection.describe(job, 0), rejection.shortage, refused.unwrap_err().best.lack)
    };
    // The job and its process, which it waits for.
    let both = job("both", 1_000, ONE, &[(10, "resources = { matlab = 2 }")]);
    let (why, shortage, _) = declined(&both, &[("matlab", 2)]);
    let expected = Shortage::Resource { name: "matlab".into(), needed: 3, available: 2 };
    assert_eq!((shortage.missing(), shortage), (1, expected));
    assert!(why.contains("holds 3 of resource matlab") && why.contains("machine has 2"), "{why}");
    let (why, _, lack) = declined(&both, &[("tape", 1), ("bus", 4)]);
    assert!(why.contains("resource matlab") && why.contains("it has tape, bus"), "{why}");
    assert!(matches!(lack, Lack::NoResource { .. }), "{lack:?}");
    let (why, ..) = declined(&both, &[]);
    assert!(why.contains("the machine has no resources; declare a [[resource]]"), "{why}");
}

#[test]
fn processes_run_on_the_nodes_of_their_resources() {
    let rates: &[u64] = &[2_000_000_000];
    let mut machine = with(machine(1, &[(99, rates), (99, &[1_000_000_000])]), &[("matlab", 1)]);
    machine.resources[0].nodes = vec![1];
    let job = job("job", 1_000, "", &[(100, ONE), (100, "")]);
    let mut store = Store::new(machine, Balancing::Dynamic);
    reserve(&mut store, &Request::new(RUN, &job), &Options::default()).unwrap();
    let run = store.run(RUN).unwrap();
    assert_eq!((run.processes[0].node, run.processes[1].node), (1, 0));
}

/// The plan of all jobs on one node.
fn plan(machine: &Machine, jobs: &[Job], dispatch: Dispatch) -> Plan {
    let mut store = Store::new(machine.clone(), Balancing::Dynamic);
    for (number, job) in (0..).zip(jobs) {
        let request = Request::new(RunId(number), job);
        let options = Options { strategies: Strategy::ALL[..4].to_vec(), ..Options::default() };
        reserve(&mut store, &request, &options).unwrap();
    }
    let config = Config { dispatch: dispatch as u64, ..planner_config(Config::DEFAULT) };
    let settings = Settings { config: Some(config), ..Settings::default() };
    let entries = (0..).zip(jobs).map(|(number, job)| Entry {
        run: RunId(number),
        job,
        progress: &[],
        deadline_ns: job.deadline_ns,
    });
    let entries: Vec<_> = entries.collect();
    let plans = class_plans(&store, &entries, &mut ProcessIds::default(), &settings).unwrap();
    plans.into_iter().next().unwrap().plan
}

/// Per process of the plan: the processes that its first task waits for.
fn awaited(plan: &Plan) -> Vec<Vec<u32>> {
    let first = plan.processes.iter().map(|process| &process.tasks[0].after);
    first.map(|after| after.iter().map(|it| it.process).collect()).collect()
}

#[test]
fn who_gets_a_licence_waits_for_who_had_it() {
    let machine = with(cores(4), &[("matlab", 2)]);
    let one = |name, deadline| job(name, deadline, "", &[(300, ONE)]);
    let jobs = [one("a", 5_000), one("b", 6_000), one("c", 2_000), one("d", 9_000)];
    let made = plan(&machine, &jobs, Dispatch::Deadline);
    // Two at a time: the third gets that of the first, the fourth that of the second.
    let expected = [vec![], vec![], vec![0], vec![1]];
    assert_eq!(awaited(&made), expected);
    // Where slots stay, memory is not handed on so, and licences are.
    assert_eq!(awaited(&plan(&machine, &jobs, Dispatch::Thesis)), expected);
    // The first must end in time for the third.
    assert_eq!(made.processes[0].deadline_ns, Some(1_700));
    // What a job holds as a whole is given back when all of its processes have ended.
    let whole = |name| job(name, 9_000, ONE, &[(100, ""), (200, "")]);
    let machine = with(cores(4), &[("matlab", 1)]);
    let made = plan(&machine, &[whole("first"), whole("next")], Dispatch::Deadline);
    assert_eq!(awaited(&made), [vec![], vec![], vec![0, 1], vec![0, 1]]);
}

/// Tasks begin and end at any time that the plan's edges allow, far from the times that were
/// reserved: no resource is held by more than there are of it.
#[test]
fn resources_hold_in_any_order_that_the_edges_allow() {
    let mut most = 0;
    for seed in 0..80 {
        let random = &mut Random::new(seed);
        let counts = counts(random);
        let of_jobs = (0..6).map(|number| {
            let holds = |random: &mut Random| {
                let some = counts.iter().filter_map(|(it, count)| {
                    let is_held = random.below(2) == 0;
                    is_held.then(|| format!("{it} = {}", 1 + random.below(*count)))
                });
                let some: Vec<_> = some.collect();
                format!("resources = {{ {} }}", some.join(", "))
            };
            let deadline_ns = 100_000_000;
            let name = format!("job{number}");
            if random.below(2) == 0 {
                let head = holds(random);
                let processes: Vec<_> =
                    (0..1 + random.below(3)).map(|_| (1 + random.below(99), "")).collect();
                return job(&name, deadline_ns, &head, &processes);
            }
            let held: Vec<_> = (0..1 + random.below(3)).map(|_| holds(random)).collect();
            let processes: Vec<_> =
                held.iter().map(|held| (1 + random.below(99), held.as_str())).collect();
            job(&name, deadline_ns, "", &processes)
        });
        let jobs: Vec<Job> = of_jobs.collect();
        let machine = with(cores(3), &counts);
        let plan = plan(&machine, &jobs, random.of(&[Dispatch::Deadline, Dispatch::Thesis]));
        for _ in 0..20 {
            most = most.max(run_at_random(&machine, &jobs, &plan, random));
        }
    }
    assert!(most >= 4, "{most} at once");
}

/// Runs a plan at random; returns the greatest number of processes that have begun at once.
fn run_at_random(machine: &Machine, jobs: &[Job], plan: &Plan, random: &mut Random) -> usize {
    let process_of = |label: &str| {
        let of_job = |job: &Job| job.processes.iter().position(|it| label.starts_with(&it.label()));
        jobs.iter().enumerate().find_map(|(place, job)| Some((place, of_job(job)?))).unwrap()
    };
    let of: Vec<(usize, usize)> = plan.processes.iter().map(|it| process_of(&it.label())).collect();
    let (mut begun, mut ended) = (BTreeSet::new(), BTreeSet::new());
    let mut most = 0;
    while ended.len() < plan.processes.len() {
        let is_ready = |index: &usize| {
            let after = &plan.processes[*index].tasks[0].after;
            let has_ended = |id: u32| plan.processes.iter().position(|it| it.id == id);
            after.iter().all(|it| has_ended(it.process).is_some_and(|it| ended.contains(&it)))
        };
        let open = (0..plan.processes.len()).filter(|it| !ended.contains(it));
        let ready: Vec<usize> = open.filter(|it| begun.contains(it) || is_ready(it)).collect();
        let next = ready[random.below(ready.len() as u64) as usize];
        if begun.remove(&next) {
            ended.insert(next);
        } else {
            begun.insert(next);
        }
        most = most.max(begun.len());
        for resource in &machine.resources {
            let named = |amounts: &[Amount]| -> u64 {
                amounts.iter().filter(|it| it.resource == resource.name).map(|it| it.count).sum()
            };
            let of_processes = begun.iter().map(|&it| {
                let (job, process) = of[it];
                named(&jobs[job].processes[process].resources)
            });
            // A job is under way from the first begin to the last end of its processes.
            let under_way = jobs.iter().enumerate().filter(|(job, _)| {
                let own: Vec<usize> = (0..of.len()).filter(|&it| of[it].0 == *job).collect();
                let has_begun = own.iter().any(|it| begun.contains(it) || ended.contains(it));
                has_begun && !own.iter().all(|it| ended.contains(it))
            });
            let of_jobs = under_way.map(|(_, job)| named(&job.resources));
            let held: u64 = of_processes.chain(of_jobs).sum();
            assert!(held <= resource.count, "{held} of {} {}", resource.count, resource.name);
        }
    }
    most
}

#[test]
fn a_new_plan_takes_no_licence_from_who_has_begun() {
    let machine = with(cores(2), &[("matlab", 1)]);
    for head in ["", ONE] {
        // The process, or the whole job, holds the licence.
        let own = if head.is_empty() { ONE } else { "" };
        let first = job("first", 500, head, &[(100, own), (100, "")]);
        let urgent = Job { priority: 9, ..job("urgent", 1_000, "", &[(100, ONE)]) };
        let mut store = Store::new(machine.clone(), Balancing::Dynamic);
        let (one, other) = (Request::new(RUN, &first), Request::new(RunId(1), &urgent));
        reserve(&mut store, &one, &Options::default()).unwrap();
        reserve(&mut store, &other, &Options::default()).unwrap();
        let running = |process: usize| Progress::Running {
            core: store.run(RUN).unwrap().processes[process].core,
            position: first.processes[process].tasks.len() - 1,
            retired_insns: 10,
        };
        let progress = [running(0), running(1), Progress::Waiting];
        let one = Request { progress: &progress, ..one };
        let replan = Replan::at(50);
        replan.run(&mut store, &[one, other], &[]).unwrap();
        let ends = store.run(RUN).unwrap().processes.iter().filter(|it| !it.resources.is_empty());
        let end_ns = ends.map(|it| it.end_ns).max().unwrap();
        let start_ns = store.run(RunId(1)).unwrap().start_ns().unwrap();
        assert!(end_ns > 50 && start_ns >= end_ns, "{head}: {start_ns} before {end_ns}");
        let held = store.resource(0);
        assert_eq!(held.min_over(50..end_ns), Some(0), "{head}");
    }
}

#[test]
fn the_demand_test_holds_resources() {
    let test = DemandTest { share_permille: 1000, interrupts: true };
    let mut store = Store::new(with(cores(1), &[("matlab", 1)]), Balancing::Dynamic);
    let long = job("long", 1_000, "", &[(600, ONE)]);
    let (validation, options) = (Validation::default(), Options::default());
    let first = Request::new(RUN, &long);
    admit(&mut store, &first, &validation, &options).unwrap();
    // Its deadline comes first: by deadlines alone it would interrupt the other.
    let short = job("short", 300, "", &[(100, ONE)]);
    let second = Request::new(RunId(1), &short);
    let free = job("free", 300, "", &[(100, "")]);
    let third = Request::new(RunId(2), &free);
    let admitted = |store: &mut Store, request: &Request<'_>| {
        admit_beside(store, request, &[first], &validation, &options, Some(&test)).is_ok()
    };
    assert!(admitted(&mut store, &second), "it comes first");
    let runs = [(RUN, &long, 0, 1_000), (RunId(1), &short, 0, 300)];
    let (question, answer) = question_and_answer(&store, &runs);
    assert_eq!(check(&question, &answer), Ok(()));
    assert!(admitted(&mut store, &third));
    // One that is released later would interrupt it, and it would hold what it holds meanwhile.
    let later = |holds: &str| job("later", 700, "start_ns = 500", &[(100, holds)]);
    let (without, with) = (later(""), later(ONE));
    assert!(!admitted(&mut store.clone(), &Request::new(RunId(3), &with)));
    assert!(admitted(&mut store, &Request::new(RunId(3), &without)));
}
