// SPDX-License-Identifier: GPL-2.0
//! Questions to job schedulers, and the effect of their answers.

mod common;

use std::path::Path;

use common::{config, of_kind, plan};
use pbs_core::{EventKind, Threshold};
use pbs_plan::{from_toml, to_toml, After, Config, Plan};
use pbs_sim::{
    simulate, simulate_watched, Cause, Command, Error, Failure, JobScheduler, NoAnswer, NodeState,
    Options, Simulation, Stretch,
};

/// A task that runs to three times its length, in a slot without t1.
const FAR: &str = "1: 50000000/150000000 10000000\n2: 20000000\nslots: 1 i7000000 2 i30000000 1";

fn far(thresholds: &[Threshold]) -> Plan {
    let mut plan = plan(FAR);
    plan.config = Some(Config {
        thresholds: thresholds.iter().map(|&threshold| threshold as u64).sum(),
        ..config()
    });
    plan
}

fn run(plan: &Plan, scheduler: &mut dyn JobScheduler) -> Simulation {
    simulate(plan, &Options::default(), scheduler).unwrap()
}

/// Takes down what it is asked, and passes the questions on.
struct Witness<S> {
    scheduler: S,
    asked: Vec<(Vec<Failure>, NodeState)>,
}

impl<S: JobScheduler> Witness<S> {
    fn new(scheduler: S) -> Self {
        Self { scheduler, asked: Vec::new() }
    }
}

impl<S: JobScheduler> JobScheduler for Witness<S> {
    fn answer(&mut self, failures: &[Failure], state: &NodeState) -> Result<Option<Plan>, String> {
        self.asked.push((failures.to_vec(), state.clone()));
        self.scheduler.answer(failures, state)
    }
}

fn lengths(plan: &Plan) -> Vec<Vec<u64>> {
    let lengths = |process: &pbs_plan::Process| {
        let tasks = process.tasks.iter();
        tasks.map(|task| task.planned_insns).collect()
    };
    plan.processes.iter().map(lengths).collect()
}

/// Puts its answer off until a time, and answers then as [`Stretch`] does.
struct PutOff {
    until_ns: u64,
    failures: Vec<Failure>,
    /// Times at which the scheduler was asked, each with the number of failures.
    asked: Vec<(u64, usize)>,
    again_ns: Option<u64>,
}

impl JobScheduler for PutOff {
    fn answer(&mut self, failures: &[Failure], state: &NodeState) -> Result<Option<Plan>, String> {
        self.asked.push((state.now_ns, failures.len()));
        self.failures.extend_from_slice(failures);
        self.again_ns = Some(self.until_ns).filter(|&until_ns| until_ns > state.now_ns);
        match self.again_ns {
            Some(_) => Ok(None),
            None => Stretch::default().answer(&self.failures, state),
        }
    }

    fn asks_again_ns(&self) -> Option<u64> {
        self.again_ns
    }
}

/// The one failure is signalled at 75,000,000, and nothing more until the answer.
#[test]
fn a_job_scheduler_that_puts_its_answer_off_is_asked_again() {
    let mut scheduler =
        PutOff { until_ns: 90_000_000, failures: Vec::new(), asked: Vec::new(), again_ns: None };
    let simulation = run(&far(&[Threshold::T2Task]), &mut scheduler);
    assert_eq!(scheduler.asked[1], (90_000_000, 0));
    assert_eq!(scheduler.asked[0].1, 1);
    assert!(scheduler.asked[0].0 < 80_000_000);
    let replan = &simulation.replans[0];
    assert_eq!((replan.asked_ns, replan.came_ns), (90_000_000, 100_000_000));
}

/// t2_task of 50,000,000 is 75,000,000; the answer comes 10,000,000
/// instructions later.
#[test]
fn an_answer_comes_into_force_after_the_time_it_takes() {
    let mut scheduler = Witness::new(Stretch::default());
    let simulation = run(&far(&[Threshold::T2Task]), &mut scheduler);
    let (failures, state) = &scheduler.asked[0];
    assert_eq!(failures.len(), 1);
    let failure = failures[0];
    assert_eq!((failure.kind, failure.cause), (EventKind::Late, Cause::Task));
    assert_eq!((failure.process, failure.task), (1, 0));
    assert_eq!(failure.threshold, 75_000_000);
    assert_eq!((failure.retired_insns, failure.time_ns), (75_000_001, 75_000_001));
    assert_eq!(simulation.events[failure.seq as usize].kind, EventKind::Late as u16);
    assert_eq!(state.processes[0].retired_insns, 75_000_001);
    // The first idle slot, and 3 ms of the second but for the 20 of process 2,
    // will not have passed: the answer comes in 10 ms.
    assert_eq!(lengths(&state.remaining), [vec![50_000_000, 10_000_000], vec![20_000_000]]);
    assert!(to_toml(&state.remaining).contains("slots = [1, 2, \"idle 30_000_000\", 1]"));

    let replan = &simulation.replans[0];
    assert_eq!((replan.asked_ns, replan.came_ns), (75_000_001, 85_000_001));
    assert_eq!(replan.refused, None);
    assert_eq!(replan.plan.dealt_seq, failure.seq + 1);
    assert_eq!(replan.plan.plan_id, 2);
    assert_eq!(lengths(&replan.plan), [vec![60_000_000, 12_000_000], vec![20_000_000]]);
    let installed = of_kind(&simulation, EventKind::PlanInstalled);
    assert_eq!((installed[1].time_ns, installed[1].plan_id), (85_000_001, 2));
    assert!(simulation.ended());
}

#[test]
fn what_really_happens_does_not_depend_on_the_plan() {
    let plan = far(&[Threshold::T2Task]);
    let simulation = run(&plan, &mut Stretch::default());
    let tasks: Vec<_> = simulation
        .tasks
        .iter()
        .map(|task| (task.process, task.planned_insns, task.retired_insns))
        .collect();
    assert_eq!(
        tasks,
        [(1, 50_000_000, 150_000_000), (2, 20_000_000, 20_000_000), (1, 10_000_000, 10_000_000)]
    );
    let deadlines = |simulation: &Simulation| -> Vec<u64> {
        let processes = simulation.processes.iter();
        processes.map(|process| process.deadline_ns).collect()
    };
    assert_eq!(deadlines(&simulation), deadlines(&run(&plan, &mut NoAnswer)));
}

#[test]
fn failures_that_come_meanwhile_are_asked_about_together() {
    let plan = far(&[Threshold::T2Task, Threshold::T2Process, Threshold::T2Node]);
    let mut scheduler = Witness::new(Stretch::default());
    let simulation = run(&plan, &mut scheduler);
    let asked: Vec<_> = scheduler
        .asked
        .iter()
        .flat_map(|(failures, _)| failures)
        .map(|failure| failure.seq)
        .collect();
    // Each once, in order.
    let signals = of_kind(&simulation, EventKind::Late);
    let signals: Vec<_> = signals.iter().map(|event| event.seq).collect();
    assert_eq!(asked, signals);
    assert!(scheduler.asked.iter().any(|(failures, _)| failures.len() > 1));
    // One answer at a time.
    let replans = &simulation.replans;
    assert!(replans.len() > 1);
    assert!(replans.windows(2).all(|pair| pair[0].came_ns <= pair[1].asked_ns));
}

/// Process 1 signals at 75 ms, process 2 ends at 84.5 ms, and the answer, which
/// comes at 85 ms, still has it.
#[test]
fn a_plan_that_comes_too_late_is_refused_and_asked_for_again() {
    let mut plan = plan("1: 50000000/150000000 30000000\n2: 500000\nslots: 1 1 2");
    plan.config =
        Some(Config { thresholds: Threshold::T1 as u64 | Threshold::T2Task as u64, ..config() });
    let mut scheduler = Witness::new(Stretch::default());
    let simulation = run(&plan, &mut scheduler);
    let replans = &simulation.replans;
    assert!(replans[0].refused.as_ref().unwrap().contains("process 2"));
    assert_eq!(replans[1].refused, None);
    assert_eq!((replans[1].asked_ns, replans[1].came_ns), (85_000_001, 95_000_001));
    assert_eq!(scheduler.asked[1].0[..1], scheduler.asked[0].0[..]);
    assert_eq!(lengths(&replans[1].plan), [[60_000_000, 36_000_000]]);
}

/// Job scheduler whose plans hold a task that has begun: the node refuses them.
struct Holding;

impl JobScheduler for Holding {
    fn answer(&mut self, failures: &[Failure], state: &NodeState) -> Result<Option<Plan>, String> {
        let mut plan = Stretch::default().answer(failures, state)?;
        let processes = plan.iter_mut().flat_map(|plan| &mut plan.processes);
        for process in processes.filter(|process| process.id == 2) {
            let after = After { process: 1, task: 1, ..After::default() };
            process.tasks[0].after.push(after);
        }
        Ok(plan)
    }
}

/// Process 2 is preempted in its task, process 1 goes on without end.
#[test]
fn a_job_scheduler_is_asked_only_a_few_times_if_all_its_plans_are_refused() {
    let mut plan = plan("1: 50000000/5000000000 30000000\n2: 10000000/40000000\nslots: 2 1 1");
    plan.config =
        Some(Config { thresholds: Threshold::T1 as u64 | Threshold::T2Task as u64, ..config() });
    let simulation = run(&plan, &mut Holding);
    let replans = &simulation.replans;
    assert!(replans.iter().all(|replan| replan.refused.is_some()));
    let given_up = simulation.cpus[0].given_up;
    assert!(given_up > 0);
    assert_eq!(replans.len() as u64, 4 * given_up);
    assert_eq!(simulation.cpus[0].unanswered, 0);
}

fn state(text: &str) -> NodeState {
    NodeState {
        cpu: 0,
        now_ns: 0,
        rate_insns_per_ms: 1_000_000,
        config: config(),
        processes: Vec::new(),
        remaining: plan(text),
    }
}

fn failure(seq: u64, kind: EventKind, cause: Cause, process: u32) -> Failure {
    Failure {
        seq,
        time_ns: 0,
        kind,
        cause,
        process,
        task: 0,
        planned_insns: 0,
        retired_insns: 0,
        preemptions: 0,
        lateness_insns: 0,
        node_lateness_insns: 0,
        memory_bytes: 0,
        threshold: 0,
        stress: 0,
    }
}

#[test]
fn stretch_scales_what_a_failure_is_associated_with() {
    use EventKind::{Early, Late};
    let state = state("1: 1000 55\n2: 300 1\nslots: 1 2 1 2");
    let answer = |failures: &[Failure]| {
        let answer = Stretch::default().answer(failures, &state).unwrap();
        answer.map(|plan| (lengths(&plan), plan.dealt_seq))
    };
    for cause in [Cause::Task, Cause::Process, Cause::Preemptions] {
        assert_eq!(
            answer(&[failure(4, Late, cause, 1)]),
            Some((vec![vec![1200, 66], vec![300, 1]], 5))
        );
    }
    assert_eq!(
        answer(&[failure(0, Early, Cause::Task, 2)]),
        // Nothing becomes shorter than an instruction.
        Some((vec![vec![1000, 55], vec![240, 1]], 1))
    );
    assert_eq!(
        answer(&[failure(9, Late, Cause::Node, 2)]),
        Some((vec![vec![1200, 66], vec![360, 1]], 10))
    );
    assert_eq!(
        answer(&[failure(1, Late, Cause::Task, 1), failure(3, Early, Cause::Task, 2)]),
        Some((vec![vec![1200, 66], vec![240, 1]], 4))
    );
    // Twice is not twice as much, and the later one counts.
    assert_eq!(
        answer(&[failure(1, Late, Cause::Task, 1), failure(3, Late, Cause::Process, 1)]),
        Some((vec![vec![1200, 66], vec![300, 1]], 4))
    );
    assert_eq!(
        answer(&[failure(1, Late, Cause::Task, 1), failure(3, Early, Cause::Task, 1)]),
        Some((vec![vec![800, 44], vec![300, 1]], 4))
    );
    // A process that has ended.
    assert_eq!(answer(&[failure(1, Late, Cause::Task, 7)]), None);
}

fn scratch(name: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_command_reads_json_and_writes_toml() {
    let (question, answer) = (scratch("question.json"), scratch("answer.toml"));
    let (asked, reply) = (
        scratch("asked"),
        "dealt_seq = 5
[[process]]
id = 1
tasks = [160_000_000, 10_000_000]
[[process]]
id = 2
tasks = [20_000_000]
[[cpu]]
cpu = 0
slots = [1, 2, 1]
",
    );
    std::fs::write(&answer, reply).unwrap();
    let _ = std::fs::remove_file(&asked);
    // Answers once.
    let script =
        format!("test -e '{asked}' && exit 0; touch '{asked}'; cat > '{question}'; cat '{answer}'");
    let mut plan = far(&[Threshold::T2Task]);
    plan.processes[0].name = Some("far".into());
    let simulation = run(&plan, &mut Command::new(script));
    assert_eq!(simulation.replans.len(), 1);
    assert_eq!(lengths(&simulation.replans[0].plan)[0], [160_000_000, 10_000_000]);
    assert!(simulation.ended());

    let question = std::fs::read_to_string(question).unwrap();
    let question: serde_json::Value = serde_json::from_str(&question).unwrap();
    assert_eq!(question["failures"][0]["kind"], "late");
    assert_eq!(question["failures"][0]["cause"], "task");
    assert_eq!(question["failures"][0]["threshold"], 75_000_000);
    assert_eq!(question["processes"][0]["retired_insns"], 75_000_001);
    assert_eq!(question["config"]["max_preemptions"], 5);
    let toml = question["remaining_toml"].as_str().unwrap();
    assert!(!toml.contains("real_insns") && toml.contains("far"), "{toml}");
    assert!(from_toml(toml).is_ok());
}

#[test]
fn a_command_that_fails_says_how() {
    let plan = far(&[Threshold::T2Task]);
    for (script, words) in [
        ("exit 3", "\"exit 3\" ended with exit status: 3"),
        ("/nonexistent/program", "exit status: 127"),
        ("printf '\\377'", "wrote output that is not UTF-8 text"),
        ("echo nonsense", "wrote a plan that is not valid: answer:1: "),
        (
            "printf '[[process]]\\nid = 1\\ntasks = [5]\\n[[cpu]]\\ncpu = 4\\nslots = [1]\\n'",
            "for the CPUs [4]; write a plan for CPU 0 only",
        ),
        (
            "printf 'dealt_seq = 999\\n[[process]]\\nid = 1\\ntasks = [5]\\n[[cpu]]\\ncpu = 0\\nslots = [1]\\n'",
            "before event 999",
        ),
    ] {
        let error = simulate(&plan, &Options::default(), &mut Command::new(script)).unwrap_err();
        assert!(matches!(error, Error::Scheduler(_)), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
    // Nothing read, nothing written.
    let simulation = run(&plan, &mut Command::new("true"));
    assert!(simulation.replans.is_empty() && simulation.ended());
}

/// Drops process 2, and brings it back with a new process 3.
struct Changing {
    plans: Vec<Plan>,
}

impl JobScheduler for Changing {
    fn answer(&mut self, _: &[Failure], _: &NodeState) -> Result<Option<Plan>, String> {
        Ok((!self.plans.is_empty()).then(|| self.plans.remove(0)))
    }
}

#[test]
fn plans_may_drop_processes_and_bring_new_ones() {
    let without = plan("1: 60000000 10000000\nslots: 1 1");
    let with = plan("1: 70000000 10000000\n2: 20000000\n3: 5000000\nslots: 3 1 1 2");
    let mut scheduler = Changing { plans: vec![without, with] };
    for plan in &mut scheduler.plans {
        plan.config = far(&[Threshold::T2Task]).config;
    }
    let simulation = run(&far(&[Threshold::T2Task]), &mut scheduler);
    assert_eq!(simulation.replans.len(), 2);
    let ended = |id| {
        let mut tasks = simulation.tasks.iter().filter(|task| task.process == id);
        tasks.all(|task| task.ended_ns.is_some())
    };
    // The threads of 2 have left the class; nobody brings them back.
    assert!(ended(1) && !ended(2) && ended(3));
    assert!(!simulation.ended());
    assert_eq!(of_kind(&simulation, EventKind::Absent)[0].process, 2);
    let retired: u64 = simulation.tasks.iter().map(|task| task.retired_insns).sum();
    assert_eq!(retired, simulation.cpus[0].retired_insns);
}

#[test]
fn answers_come_to_an_end() {
    let plan = far(&[Threshold::T2Task, Threshold::T2Process, Threshold::T2Node]);
    let all = run(&plan, &mut Stretch::default());
    assert!(all.replans.len() > 1);
    assert_eq!((all.cpus[0].answers, all.cpus[0].unanswered), (all.replans.len() as u64, 0));
    let failures = |simulation: &Simulation| of_kind(simulation, EventKind::Late).len() as u64;
    for max_answers in [0, 1] {
        let options = Options { max_answers, ..Options::default() };
        let mut scheduler = Witness::new(Stretch::default());
        let simulation = simulate(&plan, &options, &mut scheduler).unwrap();
        assert_eq!(simulation.replans.len() as u64, max_answers);
        assert_eq!(scheduler.asked.len() as u64, max_answers);
        let asked: usize = scheduler.asked.iter().map(|(failures, _)| failures.len()).sum();
        let unanswered = simulation.cpus[0].unanswered;
        assert_eq!(unanswered, failures(&simulation) - asked as u64);
        assert!(unanswered > 0);
    }
}

#[test]
fn whoever_watches_is_told_of_the_time() {
    // A slow CPU: many windows.
    let options = Options { rate_insns_per_ms: 1, ..Options::default() };
    let mut told = Vec::new();
    let plan = far(&[]);
    let simulation = simulate_watched(&plan, &options, &mut NoAnswer, &mut |progress| {
        told.push(progress);
    });
    assert!(simulation.unwrap().ended());
    assert!(told.len() > 1);
    assert!(told.windows(2).all(|pair| pair[0].now_ns < pair[1].now_ns));
    // Slots of 117,000,000 instructions, CAPACITY_BUFFER and unallocated time.
    assert_eq!(told[0].planned_ns, 117_000_000 * 1_000_000 * 1111 / 1000 * 100 / 99);
}

/// Two CPUs whose tasks fail at once, and one job scheduler that takes 10 ms for each: the
/// second is asked for when the first has its answer, and the first waits in its turn.
#[test]
fn one_job_scheduler_serves_one_cpu_after_the_other() {
    let text = "1: 50000000/150000000 10000000\n2: 50000000/150000000 10000000\n\
                slots: 1 1\nslots: 2 2";
    let mut plan = plan(text);
    plan.cpus[1].cpu = 1;
    plan.config = Some(Config { thresholds: Threshold::T2Task as u64, ..config() });
    let options = Options { shared_answer_ns: Some(10_000_000), ..Options::default() };
    let simulation = simulate(&plan, &options, &mut Stretch::default()).unwrap();
    let came = simulation.replans.iter();
    let came = came.map(|replan| (replan.cpu, replan.failed_ns, replan.asked_ns, replan.came_ns));
    let came: Vec<_> = came.take(3).collect();
    assert_eq!(
        came,
        [
            (0, 75_000_001, 75_000_001, 85_000_001),
            (1, 75_000_001, 85_000_001, 95_000_001),
            // Its new plan of 60 ms is exceeded by half after 90.
            (0, 90_000_001, 95_000_001, 105_000_001),
        ]
    );
    // By itself each has its answer 10 ms after it was asked for.
    let alone = simulate(&plan, &Options::default(), &mut Stretch::default()).unwrap();
    let asked = alone.replans.iter().map(|replan| replan.asked_ns);
    assert_eq!(asked.take(2).collect::<Vec<_>>(), [75_000_001; 2]);
}
