// SPDX-License-Identifier: GPL-2.0
//! Task graphs as what is co-scheduled, and what was decided as jobs that are planned.

use pbs_cosched::{greedy, timing, ExecutionTarget, GreedyOptions, Mapping, Queues, Timeline};
use pbs_cosched_report::lanes::{
    jobs, variant_key, variant_runs, CannotLower, Lowered, Question, Ran, UndecidableReason,
};
use pbs_job::graph::{graph_from_toml, Graph};
use pbs_job::{job_from_toml, job_to_toml, machine_from_toml, Machine, Start};
use pbs_planner::{reserve, Balancing, Options, Request, RunId, Store};

const MACHINE: &str = r#"
[[node]]
name = "n"
memory_bytes = 1_000_000_000
rate_insns_per_s = 1_000_000_000
cores = ["c0", "c1", "c2", { name = "c3", cpu = 9 }]
[[device]]
kind = "gpu"
models = ["ocl"]
count = 1
host_cpu = 9
link_bytes_per_s = 1_000_000_000
"#;

const GRAPH: &str = r#"
name = "fan"
deadline_ns = "10s"
[[task]]
name = "load"
memory_bytes = 7
[[task.variant]]
model = "cpu"
insns = "20M"
command = ["load", "{lane}", "of {lanes}"]
[[task]]
name = "wide"
memory_bytes = 9
after = [{ task = "load", bytes = 3_000 }]
[[task.variant]]
model = "omp"
threads = 3
runtime_ns = "10ms"
command = ["wide", "{lane}", "of {lanes}"]
[[task]]
name = "on"
after = ["wide"]
[[task.variant]]
model = "ocl"
device = "gpu"
runtime_ns = "5ms"
command = ["on"]
[[task.variant]]
model = "cuda"
device = "gpu"
runtime_ns = "1ms"
[[task]]
name = "end"
after = ["wide", "on"]
[[task.variant]]
model = "cpu"
runtime_ns = "2ms"
command = ["end"]
"#;

fn machine() -> Machine {
    machine_from_toml(MACHINE).unwrap()
}

fn decided(question: &Question) -> (Mapping, Timeline) {
    let queues = Queues::idle(&question.platform);
    let options = GreedyOptions::default();
    let mapping = greedy(&question.workload, &question.platform, &queues, &options);
    let timeline = timing(&question.workload, &question.platform, &queues, &mapping).unwrap();
    (mapping, timeline)
}

fn lowered(graphs: &[Graph]) -> (Question, Vec<Lowered>, Timeline) {
    let machine = machine();
    let question = Question::new(graphs, &machine, |_, _, _| None).unwrap();
    let (mapping, timeline) = decided(&question);
    let jobs = jobs(&question, graphs, &machine, &mapping, &timeline).unwrap();
    (question, jobs, timeline)
}

#[test]
fn graphs_become_questions() {
    let graph = graph_from_toml(GRAPH).unwrap();
    let question = Question::new(&[graph], &machine(), |_, task, _| (task == 3).then_some(77));
    let question = question.unwrap();
    assert_eq!(question.platform.threads, 4);
    assert_eq!(question.cpus, [0, 1, 2, 9]);
    assert_eq!(question.hosts, [9]);
    let gpu = &question.platform.devices[0];
    assert!(gpu.has_link);
    assert_eq!(gpu.host_time(1000), None, "the machine declares no part");
    let planned = question.clone().for_plans();
    assert_eq!(planned.platform.devices[0].host_time(1000), Some((3, 1000)));
    let [load, wide, on, end] = &question.workload.tasks[..] else {
        panic!("{:?}", question.workload)
    };
    assert_eq!(load.variants[0].runtime_ns, 20_000_000);
    assert_eq!(wide.variants[0].place, ExecutionTarget::Threads(3));
    assert_eq!(wide.after[0].transfer_ns, 0);
    // The device does not understand cuda.
    assert_eq!(on.variants.len(), 1);
    assert_eq!(question.tasks[2].variants, [0]);
    // What was measured goes before what is said.
    assert_eq!(end.variants[0].runtime_ns, 77);
    assert_eq!(end.after.iter().map(|edge| edge.task).collect::<Vec<_>>(), [1, 2]);
}

/// Variants that nobody has measured are refused by name.
#[test]
fn undecidable_variants_are_named() {
    let text = GRAPH.replace("threads = 3", "threads = 5").replace("runtime_ns = \"2ms\"\n", "");
    let graph = graph_from_toml(&text).unwrap();
    let unfit = Question::new(&[graph], &machine(), |_, _, _| None).unwrap_err();
    let why: Vec<_> = unfit.iter().map(|unfit| (&*unfit.task, unfit.why.clone())).collect();
    assert_eq!(
        why,
        [
            (
                "wide",
                UndecidableReason::NothingFits(vec![("omp 5".into(), "it has 4 CPUs".into())])
            ),
            ("end", UndecidableReason::Unprofiled(vec!["cpu".into()]))
        ]
    );
    let told = unfit[1].to_string();
    assert!(told.contains("task end of fan: its run time as cpu is unknown"), "{told}");
    let text =
        GRAPH.replace("model = \"ocl\"\ndevice = \"gpu\"", "model = \"ocl\"\ndevice = \"tpu\"");
    let graph = graph_from_toml(&text).unwrap();
    let unfit = Question::new(&[graph], &machine(), |_, _, _| None).unwrap_err();
    assert_eq!(
        unfit[0].to_string(),
        "task on of fan: the machine has nothing to run it on; it can run as ocl tpu, but it has \
         no device tpu, only gpu, as cuda gpu, but its gpu understands ocl"
    );
}

#[test]
fn lanes_are_processes_of_cpus() {
    let (_, jobs, _) = lowered(&[graph_from_toml(GRAPH).unwrap()]);
    let job = &jobs[0].job;
    // It is a job that can be written and read.
    assert!(job_from_toml(&job_to_toml(job)).is_ok());
    for (task, lane) in job.tasks.iter().zip(&jobs[0].lanes) {
        assert_eq!(task.insns > 0, lane.is_some(), "{task:?}");
    }
    let of = |name: &str| -> Vec<usize> {
        let tasks = 0..job.tasks.len();
        let named = tasks.filter(|&task| {
            let own = job.tasks[task].name.as_deref().unwrap_or_default();
            own.split(' ').next() == Some(name)
        });
        named.collect()
    };
    let wide = of("wide");
    assert_eq!(wide.len(), 3);
    let load = of("load")[0];
    for &lane in &wide {
        assert_eq!(job.tasks[lane].insns, 10_000_000);
        let waits = job.predecessors(lane).any(|before| before == load);
        assert!(waits, "{lane}");
    }
    // Who comes after several lanes waits for all of them.
    let on = of("on")[0];
    let awaited: Vec<_> = job.predecessors(on).collect();
    let cpu = &job.processes[job.tasks[on].process];
    assert_eq!(cpu.cpus, [9]);
    for &lane in wide.iter().filter(|&&lane| job.tasks[lane].process != job.tasks[on].process) {
        assert!(awaited.contains(&lane), "{awaited:?}");
    }
    let process = &job.processes[job.tasks[wide[1]].process];
    let Start::Commands(commands) = &process.start else { panic!("{process:?}") };
    let words = commands.iter().map(|command| command.argv.join(" "));
    assert!(words.clone().any(|words| words.contains("wide 1 of 3")), "{commands:?}");
}

/// The planner places lanes as the schedule has them: all begin together, and the end is
/// the schedule's.
#[test]
fn plans_of_lanes_end_when_the_schedule_ends() {
    let other = GRAPH.replace("fan", "other").replace("threads = 3", "threads = 2");
    for graphs in [vec![GRAPH], vec![&*other], vec![GRAPH, &other]] {
        let graphs: Vec<Graph> = graphs.iter().map(|text| graph_from_toml(text).unwrap()).collect();
        let (question, jobs, timeline) = lowered(&graphs);
        let mut store = Store::new(machine(), Balancing::Dynamic);
        let mut end_ns = 0;
        for (number, lowered) in (0..).zip(&jobs) {
            let request = Request::new(RunId(number), &lowered.job);
            reserve(&mut store, &request, &Options::default()).unwrap();
            let run = store.run(RunId(number)).unwrap();
            end_ns = end_ns.max(run.end_ns());
            for (task, of) in question.workload.tasks.iter().enumerate() {
                let placed = run.tasks.iter().filter(|placed| {
                    lowered.lanes[placed.task].is_some_and(|lane| lane.task == task)
                });
                let mut starts: Vec<_> = placed.map(|placed| placed.start_ns).collect();
                starts.dedup();
                // One job alone is nobody's victim.
                assert!(starts.len() <= 1 || jobs.len() > 1, "{}: {starts:?}", of.name);
            }
        }
        if jobs.len() == 1 {
            assert_eq!(end_ns, timeline.end_ns());
        }
    }
}

#[test]
fn plans_need_deadlines() {
    let text = GRAPH.replace("deadline_ns = \"10s\"\n", "");
    let graphs = [graph_from_toml(&text).unwrap()];
    let machine = machine();
    let question = Question::new(&graphs, &machine, |_, _, _| None).unwrap();
    let (mapping, timeline) = decided(&question);
    let refused = jobs(&question, &graphs, &machine, &mapping, &timeline).unwrap_err();
    assert_eq!(refused, CannotLower::NoDeadline("fan".into()));
    let nothing = Mapping::default();
    let graphs = [graph_from_toml(GRAPH).unwrap()];
    let refused = jobs(&question, &graphs, &machine, &nothing, &timeline).unwrap_err();
    assert_eq!(refused, CannotLower::NotMapped("load".into()));
}

/// Runtimes measured under plans are found again by the key of their variant.
#[test]
fn what_variants_took_is_known_the_next_time() {
    let graphs = [graph_from_toml(GRAPH).unwrap()];
    let machine = machine();
    let question = Question::new(&graphs, &machine, |_, _, _| None).unwrap();
    let (mapping, timeline) = decided(&question);
    let jobs = jobs(&question, &graphs, &machine, &mapping, &timeline).unwrap();
    // Each lane is late by its number of milliseconds; what comes last has not ended.
    let runs = variant_runs(&question, &graphs, &mapping, &jobs, |job, task| {
        let lane = jobs[job].lanes[task]?;
        let late_ns = u64::from(lane.lane) * 1_000_000;
        (lane.task < 3).then_some(Ran {
            start_ns: lane.start_ns,
            end_ns: lane.end_ns + late_ns,
            insns: 1_000 + late_ns,
        })
    });
    let found: Vec<_> = runs
        .iter()
        .map(|run| (&*run.variant.task, run.variant.threads, run.ran_ns, run.insns))
        .collect();
    assert_eq!(
        found,
        [
            ("load", 1, 20_000_000, 1_000),
            ("wide", 3, 12_000_000, 2_001_000),
            ("on", 0, 5_000_000, 1_000)
        ]
    );
    assert_eq!(runs[2].variant.device, "gpu");
    let known = |graph: usize, task: usize, variant: usize| {
        let key = variant_key(&graphs[graph], task, variant);
        runs.iter().find(|run| run.variant == key).map(|run| run.ran_ns)
    };
    let again = Question::new(&graphs, &machine, known).unwrap();
    let took = |task: usize| again.workload.tasks[task].variants[0].runtime_ns;
    assert_eq!(
        [took(0), took(1), took(2), took(3)],
        [20_000_000, 12_000_000, 5_000_000, 2_000_000]
    );
    // Another program is another variant.
    let other = GRAPH.replace("\"of {lanes}\"", "\"of\"");
    let other = graph_from_toml(&other).unwrap();
    assert_ne!(variant_key(&other, 0, 0), variant_key(&graphs[0], 0, 0));
}

/// A program that runs all tasks is started once, and gets the place of each of them.
#[test]
fn a_program_that_runs_all_tasks_is_started_once() {
    let commands =
        ["load\", \"{lane}\", \"of {lanes}", "wide\", \"{lane}\", \"of {lanes}", "on", "end"];
    let mut text = GRAPH.replace("name = \"fan\"", "name = \"fan\"\nprogram = [\"fan\", \"2\"]");
    for command in commands {
        text = text.replace(&format!("command = [\"{command}\"]\n"), "");
    }
    let unfit = Question::new(&[graph_from_toml(&text).unwrap()], &machine(), |_, _, _| None);
    let told = unfit.unwrap_err()[0].to_string();
    let expected =
        "task wide of fan: the machine has nothing to run it on; it can run as omp 3, but \
                    its program runs each task on one thread";
    assert_eq!(told, expected);
    let graph = graph_from_toml(&text.replace("threads = 3", "threads = 1")).unwrap();
    let (_, jobs, _) = lowered(&[graph]);
    let starts: Vec<_> = jobs[0].job.processes.iter().map(|process| &process.start).collect();
    // Of the three CPUs that take turns, of the accelerator's host, and the starter.
    let [Start::Itself(Some(command)), others @ .., Start::Unsaid] = &starts[..] else {
        panic!("{starts:?}")
    };
    assert_eq!(others, [&Start::Itself(None); 3]);
    let lanes = "SCHED_PBS_LANES=0:0:0;1:0:0;3:0:0;2:0:0";
    assert_eq!(command.argv, ["env", lanes, "fan", "2"]);
}
