// SPDX-License-Identifier: GPL-2.0
//! A command on a node that is simulated, and one that fails in every way.

use std::process::Command as Shell;
use std::time::Duration;

use pbs_plan::{from_toml, to_toml, Config, Plan};
use pbs_sim::{
    simulate, Command, Failure, JobScheduler, NodeState, Options, ProcessState, Simulation,
    DEFAULT_RATE_INSNS_PER_MS,
};
use pbs_uapi::{Event, Process, NO_TASK};

use super::asking::{Reply, Scheduler};
use super::SchedulerCommand;

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/own-planner");

fn scheduler(line: &str) -> Scheduler {
    let command = SchedulerCommand::from_option(&format!("command {line}")).unwrap();
    // A busy machine is no fault of the command.
    let command = SchedulerCommand { timeout: Duration::from_secs(600), ..command };
    Scheduler::new(command, Config::DEFAULT, DEFAULT_RATE_INSNS_PER_MS)
}

/// Waits for the answer, which the node itself never does.
fn answer(scheduler: &mut Scheduler) -> Reply {
    loop {
        match scheduler.look() {
            Reply::Wait(_) => std::thread::sleep(Duration::from_millis(1)),
            reply => return reply,
        }
    }
}

/// A process as the kernel describes it.
fn of_kernel(state: &ProcessState) -> Process {
    let known =
        if state.ended { pbs_uapi::ProcessState::Done } else { pbs_uapi::ProcessState::Ready };
    Process {
        process: state.id,
        state: known as u32,
        task: state.task.unwrap_or(NO_TASK),
        planned_insns: state.planned_insns,
        retired_insns: state.retired_insns,
        preemptions: state.preemptions,
        lateness_insns: state.lateness_insns,
        ..Process::default()
    }
}

/// Questions of the simulator to a command, and the answers.
struct Overheard {
    command: Command,
    questions: Vec<(Vec<Failure>, NodeState, Option<Plan>)>,
}

impl JobScheduler for Overheard {
    fn answer(&mut self, failures: &[Failure], state: &NodeState) -> Result<Option<Plan>, String> {
        let answer = self.command.answer(failures, state)?;
        self.questions.push((failures.to_vec(), state.clone(), answer.clone()));
        Ok(answer)
    }
}

fn overhear(plan: &Plan, line: &str) -> (Simulation, Overheard) {
    let mut overheard = Overheard { command: Command::new(line), questions: Vec::new() };
    let simulation = simulate(plan, &Options::default(), &mut overheard).unwrap();
    (simulation, overheard)
}

/// Asks a node's command what the simulator's was asked, with the same events. Returns the
/// number of questions.
fn ask_again(plan: &Plan, line: &str) -> usize {
    let (simulation, overheard) = overhear(plan, line);
    let mut events = simulation.events.iter().peekable();
    let mut scheduler = scheduler(line);
    scheduler.written(plan, 0);
    for (number, (failures, state, answer_of_simulator)) in overheard.questions.iter().enumerate() {
        let last_seq = failures.last().unwrap().seq;
        while let Some(event) = events.next_if(|event| event.seq <= last_seq) {
            scheduler.event(event);
        }
        let known = |number: u32| {
            let state = state.processes.iter().find(|process| process.id == number);
            state.map(of_kernel)
        };
        assert!(scheduler.can_ask());
        assert_eq!(scheduler.ask(&known, state.now_ns), Ok(true));
        match (answer(&mut scheduler), answer_of_simulator) {
            (Reply::Plan(plan), Some(of_simulator)) => {
                let of_simulator =
                    Plan { config: of_simulator.config.or(plan.config), ..of_simulator.clone() };
                assert_eq!(to_toml(&plan), to_toml(&of_simulator), "answer {number}");
                scheduler.accepted();
                scheduler.written(&plan, state.now_ns);
            }
            (Reply::Stays, None) => {}
            (reply, of_simulator) => panic!("{reply:?}, {of_simulator:?}"),
        }
    }
    let answers = scheduler.answers();
    assert_eq!((answers.fallbacks, answers.superseded), (0, 0));
    assert_eq!(answers.questions as usize, overheard.questions.len());
    overheard.questions.len()
}

/// One program answers the simulator and a node, with the same plans.
#[test]
fn a_command_answers_a_node_as_it_answers_the_simulator() {
    let made = Shell::new("./spread.py").args(["plan", "jobs.toml"]).current_dir(SAMPLES).output();
    let plan = from_toml(std::str::from_utf8(&made.unwrap().stdout).unwrap()).unwrap();
    let line = format!("cd {SAMPLES} && ./spread.py answer jobs.toml");
    assert_eq!(ask_again(&plan, &line), 3);
    assert_eq!(ask_again(&plan, &format!("{SAMPLES}/catch_up.py")), 3);
}

const PLAN: &str = "plan_id = 7
[[process]]
id = 4
name = \"a\"
tasks = [100_000_000, 100_000_000]
[[process]]
id = 5
name = \"b\"
tasks = [100_000_000]
[[cpu]]
cpu = 0
slots = [\"a\", \"b\", \"a\"]
";

/// A task of process 4 is late on CPU 0.
fn late(seq: u64) -> Event {
    Event {
        seq,
        time_ns: 200_000_000,
        plan_id: 7,
        kind: pbs_uapi::EventKind::Late as u16,
        reason: pbs_uapi::Cause::Task as u16,
        process: 4,
        planned_insns: 100_000_000,
        retired_insns: 130_000_000,
        ..Event::default()
    }
}

fn known(number: u32) -> Option<Process> {
    let state = pbs_uapi::ProcessState::Ready as u32;
    Some(Process { process: number, state, ..Process::default() })
}

/// Asks once about a late task.
fn asked(scheduler: &mut Scheduler, seq: u64) -> Reply {
    scheduler.event(&late(seq));
    assert_eq!(scheduler.ask(&known, 210_000_000), Ok(true));
    answer(scheduler)
}

fn on_a_plan(line: &str) -> Scheduler {
    let mut scheduler = scheduler(line);
    scheduler.written(&from_toml(PLAN).unwrap(), 0);
    scheduler
}

/// A command that writes the plan of the question with one change.
fn changed(change: &str) -> String {
    format!(
        "python3 -c 'import json,sys
q = json.load(sys.stdin)
plan = q[\"remaining_toml\"]
{change}
print(plan)'"
    )
}

#[test]
fn every_unusable_answer_is_a_failure_with_a_reason() {
    for (line, words) in [
        ("exit 3", "ended with exit status: 3"),
        ("kill -SEGV $$", "ended with signal: 11"),
        ("/nonexistent/program 2>/dev/null", "ended with exit status: 127"),
        ("echo nonsense", "wrote a plan that is not valid: answer:1"),
        ("printf '\\377'", "is not UTF-8 text"),
        (&changed("plan = plan.replace(\"id = 5\", \"id = 6\")"), "has process b, which is not in"),
        (&changed("plan = plan.replace(\"cpu = 0\", \"cpu = 1\")"), "for the CPUs [1]"),
        (&changed("plan = \"dealt_seq = 99\\n\" + plan"), "before event 99"),
    ] {
        let mut scheduler = on_a_plan(line);
        match asked(&mut scheduler, 11) {
            Reply::Failed(why) => assert!(why.contains(words), "{line}: {why}"),
            reply => panic!("{line}: {reply:?}"),
        }
        assert_eq!(scheduler.answers().fallbacks, 1);
        // The failure is somebody else's now.
        assert!(!scheduler.can_ask() && !scheduler.is_open());
    }
}

#[test]
fn a_silent_command_is_a_failure_when_its_time_is_over() {
    let command = SchedulerCommand {
        timeout: Duration::from_millis(30),
        ..SchedulerCommand::from_option("command sleep 1000").unwrap()
    };
    let mut scheduler = Scheduler::new(command, Config::DEFAULT, DEFAULT_RATE_INSNS_PER_MS);
    scheduler.written(&from_toml(PLAN).unwrap(), 0);
    match asked(&mut scheduler, 11) {
        Reply::Failed(why) => assert_eq!(why, "did not answer within 30 ms"),
        reply => panic!("{reply:?}"),
    }
}

#[test]
fn an_endless_answer_is_a_failure() {
    match asked(&mut on_a_plan("yes"), 11) {
        Reply::Failed(why) => assert_eq!(why, "wrote more than 67108864 bytes"),
        reply => panic!("{reply:?}"),
    }
}

#[test]
fn a_command_is_given_up_after_failures_in_a_row() {
    let file = std::env::temp_dir().join(format!("pbs-third-{}", std::process::id()));
    // Only the third answer is one.
    let line = format!("echo >>{0}; test $(wc -l <{0}) = 3", file.display());
    let mut scheduler = on_a_plan(&line);
    let mut seq = 10;
    let mut failed = || {
        seq += 1;
        let is_failed = matches!(asked(&mut scheduler, seq), Reply::Failed(_));
        (is_failed, scheduler.answers().is_given_up)
    };
    let told = [failed(), failed(), failed(), failed(), failed(), failed()];
    let (fails, stays) = ((true, false), (false, false));
    assert_eq!(told, [fails, fails, stays, fails, fails, (true, true)]);
    scheduler.event(&late(99));
    assert!(!scheduler.can_ask());
    assert_eq!((scheduler.answers().stays, scheduler.answers().fallbacks), (1, 5));
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn a_question_is_void_when_its_plan_is_replaced() {
    let mut scheduler = on_a_plan("sleep 1000");
    scheduler.event(&late(11));
    assert_eq!(scheduler.ask(&known, 210_000_000), Ok(true));
    // A failure that the new plan has not dealt with remains.
    scheduler.event(&late(12));
    let plan = from_toml(PLAN).unwrap();
    scheduler.written(&Plan { plan_id: 8, dealt_seq: 12, ..plan }, 220_000_000);
    assert!(!scheduler.is_open() && scheduler.can_ask());
    let answers = scheduler.answers();
    assert_eq!((answers.superseded, answers.fallbacks), (1, 0));
}

/// A process ends between the question and the answer: the command is asked once more, with the
/// same failures and what came since. It is a failure if that happens again.
#[test]
fn a_command_is_asked_once_more_when_a_process_ended_meanwhile() {
    let mut scheduler = on_a_plan(&changed(""));
    assert!(matches!(asked(&mut scheduler, 11), Reply::Plan(_)));
    scheduler.event(&late(12));
    assert_eq!(scheduler.refused(true), Some(0));
    assert_eq!(scheduler.next_cpu(), Some(0));
    let without_b = |number| known(number).filter(|process| process.process != 5);
    assert_eq!(scheduler.ask(&without_b, 220_000_000), Ok(true));
    match answer(&mut scheduler) {
        Reply::Plan(plan) => assert_eq!((plan.processes.len(), plan.processes[0].id), (1, 4)),
        reply => panic!("{reply:?}"),
    }
    assert_eq!((scheduler.answers().superseded, scheduler.answers().fallbacks), (1, 0));
    assert_eq!(scheduler.refused(true), None);
    assert_eq!((scheduler.answers().superseded, scheduler.answers().fallbacks), (1, 1));
    assert!(!scheduler.can_ask());
    // What the kernel refuses for another reason is the command's fault at once.
    assert!(matches!(asked(&mut scheduler, 13), Reply::Plan(_)));
    assert_eq!(scheduler.refused(false), None);
    assert_eq!(scheduler.answers().fallbacks, 2);
}

#[test]
fn a_cpu_whose_tasks_wait_for_another_is_not_asked_about() {
    let text = "plan_id = 7\n[[process]]\nid = 4\ntasks = [5, 6]\n[[process]]\nid = 5\n\
                tasks = [{ planned_insns = 5, after = [\"4/0\"] }]\n[[process]]\nid = 6\n\
                tasks = [5]\n[[cpu]]\ncpu = 0\nslots = [4, 4]\n[[cpu]]\ncpu = 1\nslots = [5]\n\
                [[cpu]]\ncpu = 2\nslots = [6]\n";
    let plan = from_toml(text).unwrap_or_else(|problems| panic!("{problems:?}"));
    let mut scheduler = scheduler("true");
    scheduler.written(&plan, 0);
    for (cpu, can_ask) in [(0, false), (1, false), (2, true)] {
        scheduler.event(&Event { cpu, ..late(20 - u64::from(cpu)) });
        assert_eq!(scheduler.can_ask(), can_ask, "CPU {cpu}");
    }
    assert_eq!(scheduler.ask(&known, 1), Ok(true));
}

/// The plan that the next planner finds has the processes of all CPUs.
#[test]
fn the_plan_of_one_cpu_leaves_those_of_others() {
    let text = |cpu, id| {
        let slot = format!("[[cpu]]\ncpu = {cpu}\nslots = [{id}, {id}]\n");
        (format!("[[process]]\nid = {id}\ntasks = [5, 6]\n"), slot)
    };
    let ((a, on_0), (b, on_1)) = (text(0, 4), text(1, 5));
    let both = from_toml(&format!("plan_id = 7\n{a}{b}{on_0}{on_1}")).unwrap();
    let mut scheduler = scheduler("true");
    scheduler.written(&both, 0);
    let answer = from_toml(&format!("plan_id = 9\n{b}{on_1}")).unwrap();
    let whole = scheduler.whole_with(&answer);
    assert_eq!(whole.plan_id, 9);
    assert!(pbs_plan::check(&whole).is_ok());
    let cpu_of = |id| {
        let index = whole.processes.iter().position(|process| process.id == id).unwrap();
        whole.cpu_of(index).unwrap().cpu
    };
    assert_eq!((cpu_of(4), cpu_of(5)), (0, 1));
}
