// SPDX-License-Identifier: GPL-2.0
//! Random jobs against a model: state, times, outcome, kept and reason of each are what happened
//! to it, and are the same in the list, in the details, in the history and after a restart.

use std::path::{Path, PathBuf};

use pbs_history::{EndedLimits, Last, Options, Outcome, RunId, Store};
use pbs_job::machine_from_toml;
use pbs_launch::Exited;
use pbs_plan::{Config, Plan};
use pbs_planner::Aim;
use pbs_random::Xorshift;
use pbs_report::Exit;
use pbs_uapi::{Device, Event, EventKind};

use crate::jobs::Jobs;
use crate::orders::{Order, Terms};
use crate::programs::EndedPrograms;
use crate::queue::{self, RunSummary};
use crate::{AccountOf, Error, Listener, Settings, Submission};

mod full;
mod times;

const JOBS: usize = 1000;
/// Runs that are over, of those that are listed after each step.
const LISTED: Last<'static> = Last { count: 8, job: None, uid: None };
/// Number of runs after which the file is read.
const LOOK_EVERY: usize = 20;
const SECOND_NS: u64 = 1_000_000_000;
const TASK_INSNS: u64 = 62_500_000;

/// A directory of this process, in memory if there is such a place: the file is written with
/// each step.
fn scratch(name: &str) -> PathBuf {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.into() } else { std::env::temp_dir() };
    parent.join(format!("{name}-{}", std::process::id()))
}

struct Nobody;

impl Listener for Nobody {}

/// Something that may happen to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    InTime,
    Late,
    Exits(i32),
    Killed(i32),
    OverMemory,
    /// Killed before its first slot.
    KilledAtGate,
    Ejected,
    Cancelled,
    CancelledBeforeSlot,
    NotExecuted,
    NotStarted,
}

const FATES: [Fate; 12] = [
    Fate::InTime,
    Fate::InTime,
    Fate::Late,
    Fate::Exits(1),
    Fate::Exits(77),
    Fate::Killed(libc::SIGSEGV),
    Fate::OverMemory,
    Fate::KilledAtGate,
    Fate::Ejected,
    Fate::Cancelled,
    Fate::CancelledBeforeSlot,
    Fate::NotExecuted,
];

/// State that a run is to have in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Expected {
    id: RunId,
    outcome: Outcome,
    kept: Option<bool>,
    reason: Option<String>,
    exit_code: Option<i32>,
    signal: Option<String>,
    begun_unix_ns: Option<u64>,
}

impl Expected {
    fn of(run: &RunSummary) -> Self {
        assert_eq!(run.state, "over", "{run:?}");
        assert!(run.ended_unix_ns.is_some(), "{run:?}");
        assert_eq!((run.expected_start_unix_ns, run.expected_end_unix_ns), (None, None));
        Self {
            id: run.run,
            outcome: run.outcome.unwrap(),
            kept: run.kept,
            reason: run.reason.clone(),
            exit_code: run.exit_code,
            signal: run.signal.clone(),
            begun_unix_ns: run.begun_unix_ns,
        }
    }

    /// A run that did not run.
    fn unrun(id: RunId, outcome: Outcome, reason: &str) -> Self {
        Self {
            id,
            outcome,
            kept: Some(false),
            reason: Some(reason.into()),
            exit_code: None,
            signal: None,
            begun_unix_ns: None,
        }
    }
}

struct World {
    directory: PathBuf,
    jobs: Jobs,
    random: Xorshift,
    next_seq: u64,
    names: u64,
    over: Vec<Expected>,
}

/// The jobs of a node whose history is in a directory.
pub(crate) fn open(directory: &Path) -> Jobs {
    open_with(directory, &mut Nobody)
}

fn open_with(directory: &Path, listener: &mut dyn Listener) -> Jobs {
    open_on(include_str!("../../../samples/machines/vm.toml"), directory, listener)
}

/// The jobs of a node of a machine in TOML.
pub(crate) fn open_on(machine: &str, directory: &Path, listener: &mut dyn Listener) -> Jobs {
    let settings = Settings {
        history: directory.join("history.db"),
        ended: EndedLimits::DEFAULT,
        account_of: AccountOf::default(),
        max_replans: 0,
        aim: Aim::Best,
        max_work: Settings::MAX_WORK,
        config: None,
    };
    // Nothing is left open, so the device is not asked.
    let device = Device::open_path(Path::new("/dev/null"), true).unwrap();
    let machine = machine_from_toml(machine).unwrap();
    Jobs::open(machine, &settings, &device, &Config::DEFAULT, listener).unwrap()
}

/// A job of its own name: of one that is repeated, only the last runs stay in the history.
fn order(name: u64, deadline_ns: u64, change: impl FnOnce(&mut Terms)) -> Order {
    let text = format!(
        "name = \"model-{name}\"\ndeadline_ns = {deadline_ns}\n[[process]]\nid = 2\nmemory_bytes = 4096\n\
         command = [\"sort\"]\ntasks = [{TASK_INSNS}]\n"
    );
    let mut terms = Terms::new(pbs_launch::Owner::new(1000, 1000));
    change(&mut terms);
    Order::new(Submission::from_text(text, "model.toml".into()).unwrap(), terms)
}

fn exits(process: u32, code: Option<i32>, signal: Option<i32>, error: Option<&str>) -> Vec<Exited> {
    let error = error.map(Into::into);
    let exit = Exit { process, program: "sort".into(), pid: 7, code, signal, error };
    let (end, was_signalled) = (1, false);
    vec![Exited { exit, task: None, itself: false, ran_ns: 5, end, was_signalled }]
}

impl World {
    fn new(directory: &Path) -> Self {
        Self {
            directory: directory.into(),
            jobs: open(directory),
            random: Xorshift::new(7),
            next_seq: 10,
            names: 0,
            over: Vec::new(),
        }
    }

    fn standing(&self, id: RunId) -> RunSummary {
        let one = self.jobs.standing_of(id).unwrap();
        let all = self.jobs.standing(&LISTED).unwrap();
        let listed = all.iter().find(|run| run.run == id).unwrap();
        let same = |run: &RunSummary| {
            let figures = RunSummary { tasks: 0, tasks_ended: 0, ..run.clone() };
            serde_json::to_string(&figures).unwrap()
        };
        assert_eq!(same(&one), same(listed));
        one
    }

    /// Asserts that a run is open and has not begun.
    fn has_not_begun(&self, id: RunId, state: &str) {
        let run = self.standing(id);
        assert_eq!(run.state, state, "{run:?}");
        assert_eq!((run.begun_unix_ns, run.ended_unix_ns, run.kept), (None, None, None));
        assert_eq!(run.expected_start_unix_ns.is_some(), state == "planned", "{run:?}");
    }

    /// Asserts that the history tells of an open run what the service tells.
    fn is_in_the_history(&mut self, standing: &RunSummary) {
        self.jobs.ledger.keep(&mut Nobody);
        let file = self.directory.join("history.db");
        let store = Store::open_read_only(&file, Options::DEFAULT).unwrap();
        let runs = queue::runs(&store, Some(0)).unwrap();
        let stored = runs.iter().find(|run| run.run == standing.run).unwrap();
        let told = |run: &RunSummary| (run.state, run.started_unix_ns, run.begun_unix_ns);
        assert_eq!(told(stored), told(standing));
    }

    fn expect(&mut self, expected: Expected) {
        assert_eq!(Expected::of(&self.standing(expected.id)), expected);
        self.over.push(expected);
    }

    /// Submits jobs: one, or those of an array.
    fn submit(&mut self) -> Vec<RunId> {
        let count = if self.random.below(5) == 0 { 3 } else { 1 };
        let orders: Vec<_> =
            (0..count).map(|_| order(self.name(), 1000 * SECOND_NS, |_| {})).collect();
        self.jobs.order(orders, &mut Nobody).unwrap()
    }

    fn name(&mut self) -> u64 {
        self.names += 1;
        self.names
    }

    /// Writes the plan and lets the programs go.
    fn start(&mut self) -> Plan {
        let plan = self.jobs.take_plan().unwrap();
        self.jobs.let_go(&plan, self.next_seq);
        plan
    }

    fn event(&mut self, plan: &Plan, number: u32, kind: EventKind, time_ns: u64, value: u64) {
        let process = plan.processes.iter().find(|process| process.id == number).unwrap();
        let has_ended = matches!(kind, EventKind::TaskEnded | EventKind::ProcessEnded);
        let event = Event {
            seq: self.next_seq,
            time_ns,
            kind: kind as u16,
            plan_id: plan.plan_id,
            process: number,
            task: process.tasks[0].id,
            retired_insns: if has_ended { TASK_INSNS } else { 0 },
            value,
            ..Event::default()
        };
        self.next_seq += 1;
        self.jobs.event(&event, true);
    }

    /// Ends a run whose programs were let go, in that way.
    fn end(&mut self, plan: &Plan, id: RunId, fate: Fate) {
        let run = self.jobs.runs.iter().find(|run| run.id == Some(id)).unwrap();
        let (run, begin_ns) = (run.run, run.job.start_ns + 1 + self.random.between(0, SECOND_NS));
        let active = self.jobs.active(run).unwrap();
        let deadline_ns = active.deadline_ns().unwrap();
        let begun_unix_ns = active.submitted_unix_ns + (begin_ns - active.submitted_ns);
        let number = self.jobs.numbers(run)[0];
        if fate == Fate::NotStarted {
            let why = Error::NothingToRun;
            self.jobs.give_up(run, &why, true, &mut Nobody);
            let why = format!("failed (not started): {why}");
            return self.expect(Expected::unrun(id, Outcome::Failed, &why));
        }
        self.event(plan, number, EventKind::Attached, begin_ns - 1, 0);
        self.has_not_begun(id, "planned");
        let begins = !matches!(fate, Fate::KilledAtGate | Fate::CancelledBeforeSlot);
        if begins {
            self.event(plan, number, EventKind::Grant, begin_ns, 0);
            let standing = self.standing(id);
            assert_eq!(standing.state, "running");
            assert_eq!(standing.begun_unix_ns, Some(begun_unix_ns), "{standing:?}");
            assert!(standing.expected_start_unix_ns.is_some(), "{standing:?}");
            if self.over.len().is_multiple_of(LOOK_EVERY) {
                self.is_in_the_history(&standing);
            }
        }
        let by = "cancelled by anna";
        if matches!(fate, Fate::Cancelled | Fate::CancelledBeforeSlot) {
            assert_eq!(self.jobs.cancel(id, by.into(), &mut Nobody).unwrap(), Some(run));
            let reason = self.standing(id).reason;
            assert_eq!(reason.as_deref(), Some("ending: cancelled by anna"));
        }
        let did_all = matches!(fate, Fate::InTime | Fate::Late | Fate::Exits(_));
        let end_ns = if fate == Fate::Late { deadline_ns + 2_000_000 } else { deadline_ns };
        if did_all {
            self.event(plan, number, EventKind::TaskEnded, end_ns, 0);
            self.event(plan, number, EventKind::ProcessEnded, end_ns, 0);
        } else if fate == Fate::Ejected {
            self.event(plan, number, EventKind::Ejected, end_ns, 0);
        } else {
            self.event(plan, number, EventKind::ProcessEnded, end_ns, 1);
        }
        let label = "sort of process 2";
        let (exit, outcome, reason) = match fate {
            Fate::InTime => ((Some(0), None, None), Outcome::Complete, None),
            Fate::Late => {
                let why = "ended 2 ms after its deadline".to_string();
                ((Some(0), None, None), Outcome::Complete, Some(why))
            }
            Fate::Exits(code) => {
                let why = format!("failed (exit {code}): {label}");
                ((Some(code), None, None), Outcome::Failed, Some(why))
            }
            Fate::Killed(by) => {
                let why = format!("killed ({}): {label}", pbs_text::signal(by));
                ((None, Some(by), None), Outcome::Killed, Some(why))
            }
            Fate::KilledAtGate => {
                let why = format!("killed (SIGKILL): {label}");
                ((None, Some(libc::SIGKILL), None), Outcome::Killed, Some(why))
            }
            Fate::OverMemory => {
                let why = format!("over memory: {label} was killed by SIGKILL");
                ((None, Some(libc::SIGKILL), None), Outcome::Killed, Some(why))
            }
            Fate::Ejected => {
                let why = "left its plan before all tasks were ended".to_string();
                ((Some(0), None, None), Outcome::Ejected, Some(why))
            }
            Fate::Cancelled | Fate::CancelledBeforeSlot => {
                let exit = (None, Some(libc::SIGTERM), None);
                (exit, Outcome::Cancelled, Some(by.to_string()))
            }
            Fate::NotExecuted => {
                let why = "No such file or directory";
                let reason = format!("failed (not executed): {label}: {why}");
                ((Some(127), None, Some(why)), Outcome::Failed, Some(reason))
            }
            Fate::NotStarted => return,
        };
        let (code, signal, error) = exit;
        let ended = EndedPrograms {
            exits: exits(number, code, signal, error),
            over_memory: fate == Fate::OverMemory,
            ..EndedPrograms::default()
        };
        let told = self.jobs.finish(run, ended, &mut Nobody).unwrap();
        let of_program = matches!(outcome, Outcome::Failed | Outcome::Killed);
        let expected = Expected {
            id,
            outcome,
            kept: Some(fate == Fate::InTime),
            reason,
            exit_code: code.filter(|_| of_program),
            signal: signal.filter(|_| of_program).map(pbs_text::signal),
            begun_unix_ns: begins.then_some(begun_unix_ns),
        };
        assert_eq!((told.outcome, told.kept), (Some(outcome), fate == Fate::InTime), "{told:?}");
        assert_eq!(told.reason, expected.reason);
        self.expect(expected);
    }

    /// A job that waits for others: it follows one that is over, or is cancelled because of it.
    fn follow(&mut self, before: RunId) {
        let name = self.name();
        let after = self.jobs.order(
            vec![order(name, 900 * SECOND_NS, |terms| {
                terms.after_ok.push(before.0);
                terms.hold = true;
            })],
            &mut Nobody,
        );
        let after = after.unwrap()[0];
        self.has_not_begun(after, "held");
        self.jobs.hold(after, false).unwrap();
        self.jobs.promote(&mut Nobody);
        let outcome = self.over.iter().find(|over| over.id == before).unwrap().outcome;
        if outcome == Outcome::Complete {
            self.has_not_begun(after, "planned");
            let plan = self.start();
            self.end(&plan, after, Fate::InTime);
        } else {
            let why = format!("it depended on run {before}, which ended as {outcome}");
            self.expect(Expected::unrun(after, Outcome::Cancelled, &why));
        }
    }

    /// A job that is held, and is cancelled, or declined when it is released.
    fn hold(&mut self) {
        let deadline_ns = if self.random.below(2) == 0 { 1 } else { 900 * SECOND_NS };
        let held = order(self.name(), deadline_ns, |terms| terms.hold = true);
        let id = self.jobs.order(vec![held], &mut Nobody).unwrap()[0];
        self.has_not_begun(id, "held");
        if deadline_ns > 1 {
            self.jobs.cancel(id, "cancelled by anna".into(), &mut Nobody).unwrap();
            self.expect(Expected::unrun(id, Outcome::Cancelled, "cancelled by anna"));
        } else {
            self.jobs.hold(id, false).unwrap();
            self.jobs.promote(&mut Nobody);
            let over = Expected::of(&self.standing(id));
            let why = over.reason.clone().unwrap();
            assert!(why.contains("is declined"), "{why}");
            self.expect(Expected::unrun(id, Outcome::Declined, &why));
        }
    }
}

#[test]
fn figures_of_a_thousand_jobs_agree_everywhere() {
    let directory = scratch("pbs-model");
    let mut world = World::new(&directory);
    while world.over.len() < JOBS {
        let ids = world.submit();
        for &id in &ids {
            world.has_not_begun(id, "planned");
        }
        let plan = world.start();
        for &id in &ids {
            let fate = match world.random.below(FATES.len() + 1) {
                place if place == FATES.len() => Fate::NotStarted,
                place => FATES[place],
            };
            world.end(&plan, id, fate);
        }
        match world.random.below(4) {
            0 => world.hold(),
            1 => world.follow(ids[0]),
            _ => {}
        }
    }
    let World { jobs, over, .. } = world;
    assert!(jobs.is_recorded());
    drop(jobs);
    let outcomes = Outcome::ALL
        .iter()
        .filter(|outcome| over.iter().any(|expected| expected.outcome == **outcome));
    let outcomes: Vec<_> = outcomes.copied().collect();
    let not_here = [Outcome::Absent, Outcome::Unknown];
    assert_eq!(outcomes.len() + not_here.len(), Outcome::ALL.len(), "{outcomes:?}");
    let same = |runs: &[RunSummary]| {
        let known: Vec<_> = runs.iter().map(Expected::of).collect();
        let mut expected = over.clone();
        expected.sort_by_key(|expected| expected.id);
        assert_eq!(known, expected);
    };
    // The next service, and whoever reads the file.
    same(&open(&directory).standing(&Last { count: usize::MAX, ..Last::default() }).unwrap());
    let store = Store::open_read_only(&directory.join("history.db"), Options::DEFAULT).unwrap();
    same(&queue::runs(&store, None).unwrap());
    let recorded = store.runs(None).unwrap();
    let recorded: Result<Vec<_>, _> =
        recorded.iter().map(|run| queue::recorded(&store, run)).collect();
    same(&recorded.unwrap());
    std::fs::remove_dir_all(&directory).unwrap();
}
