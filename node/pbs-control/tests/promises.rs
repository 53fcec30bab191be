// SPDX-License-Identifier: GPL-2.0
//! Promises stand in answers: the innocent keep theirs, rogues come last.

mod common;

use common::{job, machine, Loop, RATE_INSNS_PER_S};
use pbs_control::{Answer, Controller, Missed, Options, Pace};
use pbs_job::{Job, Machine};
use pbs_plan::{Config, Dispatch, Plan, Slot};
use pbs_planner::{RunId, Turn};
use pbs_random::Random;
use pbs_uapi::{Cause, Event, EventKind};

const MS: u64 = 1_000_000;
/// Instructions in a millisecond of execution time.
const INSNS_PER_MS: u64 = RATE_INSNS_PER_S / 1000;

fn options(dispatch: Dispatch) -> Options {
    let config = Some(Config { dispatch: dispatch as u64, ..Config::DEFAULT });
    Options { pace: Pace::new(0, 0), config, ..Options::default() }
}

/// A controller that has admitted jobs of one process, with the lengths of their tasks in
/// milliseconds and their deadlines; their programs are attached.
struct Node {
    controller: Controller,
    runs: Vec<RunId>,
    seq: u64,
}

impl Node {
    fn new(jobs: &[(&str, &[u64], u64)]) -> Self {
        Self::with(Dispatch::Deadline, jobs)
    }

    fn with(dispatch: Dispatch, jobs: &[(&str, &[u64], u64)]) -> Self {
        Self::on(machine(), dispatch, jobs)
    }

    fn on(machine: Machine, dispatch: Dispatch, jobs: &[(&str, &[u64], u64)]) -> Self {
        let mut controller = Controller::new(machine, options(dispatch), 1, 1);
        let runs = jobs.iter().map(|(name, lengths_ms, deadline_ms)| {
            let insns: Vec<_> = lengths_ms.iter().map(|ms| ms * INSNS_PER_MS).collect();
            controller.admit(job(name, &insns, deadline_ms * MS), 0).unwrap().run
        });
        let runs = runs.collect();
        let mut node = Self { controller, runs, seq: 0 };
        node.controller.plan(0).unwrap();
        for run in 0..node.runs.len() {
            node.hear(run, EventKind::Attached, 0, 0, 0);
        }
        node
    }

    fn hear(&mut self, run: usize, kind: EventKind, reason: u16, task: u32, retired_ms: u64) {
        let process = self.controller.number(self.runs[run], 0);
        self.seq += 1;
        self.controller.event(&Event {
            seq: self.seq,
            kind: kind as u16,
            reason,
            process,
            task,
            retired_insns: retired_ms * INSNS_PER_MS,
            ..Event::default()
        });
    }

    fn answer(&mut self, now_ms: u64) -> (Plan, Vec<Missed>) {
        match self.controller.answer(now_ms * MS).unwrap() {
            Answer::Plan { plan, missed } => (*plan, missed),
            other => panic!("{other:?}"),
        }
    }

    fn planned_end_ns(&self, run: usize) -> u64 {
        self.controller.run(self.runs[run]).unwrap().planned_end_ns.unwrap()
    }

    /// The runs in the order of the slots of a plan, with the lengths of idle slots.
    fn slots(&self, plan: &Plan) -> Vec<Result<usize, u64>> {
        let slots = plan.cpus[0].slots.iter().map(|slot| match *slot {
            Slot::Idle { length_insns, .. } => Err(length_insns),
            Slot::Process { process } => {
                let (run, _) = self.controller.process(plan.processes[process].id).unwrap();
                Ok(self.runs.iter().position(|of| *of == run).unwrap())
            }
        });
        slots.collect()
    }
}

/// Two jobs whose tasks were arranged in turn stay so in answers, unless a deadline or a rogue is in
/// the way.
#[test]
fn an_answer_keeps_the_order_between_jobs() {
    let arranged = |deadlines_ms: [u64; 2]| {
        let lengths_ms: &[u64] = &[100, 100, 100];
        let jobs =
            [("first", lengths_ms, deadlines_ms[0]), ("second", lengths_ms, deadlines_ms[1])];
        let mut controller = Controller::new(machine(), options(Dispatch::Thesis), 1, 1);
        let runs = jobs.map(|(name, lengths_ms, deadline_ms)| {
            let insns: Vec<_> = lengths_ms.iter().map(|ms| ms * INSNS_PER_MS).collect();
            controller.admit(job(name, &insns, deadline_ms * MS), 0).unwrap().run
        });
        let turns = (0..3).flat_map(|task| runs.map(|run| (run, task)));
        let turns = turns.map(|(run, task)| Turn { run, task, stretch_permille: 1000 });
        controller.arrange(&turns.collect::<Vec<_>>(), 0).unwrap();
        let mut node = Node { controller, runs: runs.to_vec(), seq: 0 };
        let plan = node.controller.plan(0).unwrap().unwrap();
        let order: Vec<_> = node.slots(&plan).into_iter().flatten().collect();
        assert_eq!(order, [0, 1, 0, 1, 0, 1]);
        for run in 0..2 {
            node.hear(run, EventKind::Attached, 0, 0, 0);
        }
        node
    };
    let order = |node: &Node, plan: &Plan| -> Vec<usize> {
        node.slots(plan).into_iter().flatten().collect()
    };

    let mut node = arranged([5_000, 5_000]);
    node.hear(0, EventKind::Late, Cause::Process as u16, 0, 120);
    let (answer, missed) = node.answer(120);
    assert_eq!(missed, []);
    assert_eq!(order(&node, &answer), [0, 1, 0, 1, 0, 1]);
    // The next answer goes on in the middle of a turn.
    node.hear(0, EventKind::TaskEnded, 0, 0, 130);
    node.hear(1, EventKind::Late, Cause::Process as u16, 0, 120);
    let (answer, missed) = node.answer(260);
    assert_eq!(missed, []);
    assert_eq!(order(&node, &answer), [1, 0, 1, 0, 1]);
    // What the running task has retired is not planned once more.
    let plan =
        &answer.processes[answer.processes.iter().position(|of| of.tasks.len() == 3).unwrap()];
    assert!(plan.tasks[0].planned_insns < 200 * INSNS_PER_MS, "{plan:?}");

    // In turn, the first job would end after about 700 ms.
    let mut node = arranged([1_000, 5_000]);
    node.hear(0, EventKind::Late, Cause::Process as u16, 0, 240);
    let (answer, missed) = node.answer(240);
    assert_eq!(missed, []);
    assert_eq!(order(&node, &answer), [0, 0, 0, 1, 1, 1]);

    // A rogue has lost its place.
    let mut node = arranged([5_000, 5_000]);
    node.hear(0, EventKind::Late, Cause::Task as u16, 0, 200);
    let (answer, missed) = node.answer(200);
    assert_eq!(missed, []);
    assert_eq!(order(&node, &answer), [1, 1, 1, 0, 0, 0]);
}

/// The first process takes half as much again as was expected: its buffer is used up. The
/// other one still has its own.
#[test]
fn a_buffer_that_was_used_up_is_not_reserved_again() {
    let jobs: [(&str, &[u64], u64); 2] =
        [("late", &[100, 100], 2_000), ("other", &[100, 100], 3_000)];
    let mut node = Node::with(Dispatch::Thesis, &jobs);
    let buffer_insns = 200 * INSNS_PER_MS * 111 / 1000;
    let first = node.controller.plan(0).unwrap().unwrap();
    let idle = Err(buffer_insns);
    // The last buffer of a core has nobody behind it.
    assert_eq!(node.slots(&first), [Ok(0), Ok(0), idle, Ok(1), Ok(1)]);
    node.hear(0, EventKind::Late, Cause::Process as u16, 0, 120);
    let (answer, missed) = node.answer(120);
    assert_eq!(missed, []);
    let processes: Vec<_> = node.slots(&answer).into_iter().flatten().collect();
    assert_eq!(processes, [0, 0, 1, 1]);
    let idle_insns: u64 = node.slots(&answer).into_iter().filter_map(Result::err).sum();
    assert!(idle_insns < buffer_insns, "{idle_insns}");

    // Of a process that is in time the buffer stands.
    let jobs: [(&str, &[u64], u64); 3] =
        [("other", &[100, 100], 700), ("late", &[100, 100], 3_000), ("third", &[100, 10], 3_000)];
    let mut node = Node::with(Dispatch::Thesis, &jobs);
    node.hear(1, EventKind::Late, Cause::Process as u16, 0, 120);
    let (answer, missed) = node.answer(120);
    assert_eq!(missed, []);
    let slots = node.slots(&answer);
    let after = slots.iter().rposition(|slot| *slot == Ok(0)).unwrap();
    assert!(slots[after + 1] >= Err(buffer_insns), "{slots:?}");
}

/// The rogue was first and has the earliest deadline, and has its place behind the others.
#[test]
fn a_rogue_is_planned_last() {
    let mut node = Node::new(&[("rogue", &[100, 50], 450), ("other", &[100, 100], 700)]);
    node.hear(0, EventKind::Late, Cause::Task as u16, 0, 300);
    let (answer, missed) = node.answer(320);
    let processes: Vec<_> = node.slots(&answer).into_iter().flatten().collect();
    assert_eq!(processes, [1, 1, 0, 0]);
    assert!(node.planned_end_ns(1) <= 700 * MS);
    let late: Vec<_> = missed.iter().map(|missed| missed.run).collect();
    assert_eq!(late, [node.runs[0]]);

    // As soon as that task ends the job is planned as any other.
    node.hear(0, EventKind::TaskEnded, 0, 0, 310);
    node.hear(1, EventKind::Late, Cause::Process as u16, 0, 120);
    node.controller.set_deadline(node.runs[0], 2_000 * MS).unwrap();
    let (_, missed) = node.answer(500);
    assert_eq!(missed, []);
}

/// A task that is beyond t2_task by little keeps its deadline, as others have time.
#[test]
fn a_rogue_within_bounds_keeps_its_deadline_where_all_others_do() {
    let jobs: [(&str, &[u64], u64); 2] = [("rogue", &[100, 50], 450), ("other", &[290, 10], 0)];
    for (deadline_ms, is_kept) in [(2_000, true), (560, false)] {
        let mut jobs = jobs;
        jobs[1].2 = deadline_ms;
        let mut node = Node::new(&jobs);
        node.hear(0, EventKind::Late, Cause::Task as u16, 0, 152);
        let (_, missed) = node.answer(153);
        assert_eq!(missed.is_empty(), is_kept, "{missed:?}");
        assert!(node.planned_end_ns(1) <= deadline_ms * MS);
        assert_eq!(node.planned_end_ns(0) <= 450 * MS, is_kept);
    }
}

/// An innocent process no longer fits at the pace of the capacity buffer. Without the buffer it
/// fits.
#[test]
fn the_buffer_is_given_up_before_a_promise() {
    let mut node = Node::new(&[("late", &[100, 100], 260), ("other", &[200, 200], 740)]);
    node.hear(0, EventKind::Late, Cause::Process as u16, 0, 130);
    // The late one is expected to take 163 and 163 ms, and can't keep its deadline.
    let (_, missed) = node.answer(290);
    assert_eq!(missed.iter().map(|it| it.run).collect::<Vec<_>>(), [node.runs[0]]);
    let end_ns = node.planned_end_ns(1);
    assert!(end_ns <= 740 * MS, "{end_ns}");
    // 400 ms of execution at the pace of the buffer take 467 ms.
    assert!(end_ns - 290 * MS < 467 * MS, "{end_ns}");
}

/// Two jobs are executed in turns. One is late; the other is in time, and stays where it is
/// reserved.
#[test]
fn a_process_in_time_stays_where_it_is() {
    let mut node = Node::new(&[("late", &[100, 100], 3_000), ("other", &[100, 100], 3_000)]);
    let before = node.controller.store().run(node.runs[1]).unwrap().clone();
    // Nothing of the other one was executed: who is attached is not yet running.
    node.hear(0, EventKind::Late, Cause::Process as u16, 0, 105);
    node.answer(100);
    assert_eq!(node.controller.store().run(node.runs[1]), Some(&before));
    // It began early, in the time of the first.
    node.hear(1, EventKind::Grant, 0, 0, 10);
    node.hear(0, EventKind::Late, Cause::Process as u16, 0, 106);
    node.answer(120);
    // It has its memory from now on.
    let mut early = before;
    early.processes[0].start_ns = 120 * MS;
    assert_eq!(node.controller.store().run(node.runs[1]), Some(&early));
}

/// Jobs of which some take longer than declared: an innocent job whose promise can be kept
/// is in time by every answer, and its promise can be kept if all of those do that can by
/// the earliest deadline first. The search alone admits the jobs and leaves the capacity buffer,
/// and the rest of the system takes all unallocated time, as the planner assumes.
#[test]
fn no_answer_makes_the_innocent_later_than_promised() {
    let search_alone = Machine { demand_permille: Some(0), ..machine() };
    let (mut answers, mut threatened) = (0, 0);
    for seed in 0..300 {
        let random = &mut Random::new(seed);
        let mut node = Node::on(search_alone.clone(), Dispatch::Deadline, &[]);
        let mut expected: Vec<Vec<u64>> = Vec::new();
        for number in 0..3 + random.index(6) {
            let tasks = (0..1 + random.index(3)).map(|_| (10 + random.below(100)) * INSNS_PER_MS);
            let tasks: Vec<u64> = tasks.collect();
            // A job has a first and a last task.
            let tasks = if tasks.len() == 1 { vec![tasks[0], 1_000] } else { tasks };
            let job = job(&number.to_string(), &tasks, (200 + random.below(900)) * MS);
            if let Ok(admitted) = node.controller.admit(job, 0) {
                node.runs.push(admitted.run);
                expected.push(tasks);
            }
        }
        if expected.len() < 2 {
            continue;
        }
        let guilty = random.index(expected.len());
        let mut real = expected.clone();
        for task in &mut real[guilty] {
            *task = *task * (1200 + random.below(6000)) / 1000;
        }
        let runs = node.runs.clone();
        let mut checked = Checked {
            node: Loop::new(&mut node.controller),
            runs,
            expected,
            guilty,
            answers: 0,
            threatened: 0,
        };
        let plan = checked.node.first_plan();
        let order: Vec<usize> = plan
            .processes
            .iter()
            .map(|process| {
                let (run, _) = checked.node.controller().process(process.id).unwrap();
                checked.runs.iter().position(|of| *of == run).unwrap()
            })
            .collect();
        let real: Vec<_> = order.into_iter().map(|index| real[index].clone()).collect();
        common::run(&plan, &real, &mut checked);
        answers += checked.answers;
        threatened += checked.threatened;
    }
    assert!(answers > 300, "{answers}");
    assert!(threatened > 30, "{threatened}");
}

/// The loop, whose answers are checked.
struct Checked<'a> {
    node: Loop<'a>,
    runs: Vec<RunId>,
    expected: Vec<Vec<u64>>,
    guilty: usize,
    answers: usize,
    /// Answers by which somebody is late.
    threatened: usize,
}

impl pbs_sim::JobScheduler for Checked<'_> {
    fn answer(
        &mut self,
        failures: &[pbs_sim::Failure],
        state: &pbs_sim::NodeState,
    ) -> Result<Option<Plan>, String> {
        let (answers, missed) = (self.node.answers, self.node.missed.len());
        let plan = self.node.answer(failures, state)?;
        if self.node.answers == answers {
            return Ok(plan);
        }
        self.answers += 1;
        self.threatened += usize::from(self.node.missed.len() > missed);
        // By deadline: what is left of the innocent, and the run.
        let mut left: Vec<(u64, u64, RunId)> = Vec::new();
        for (index, (&run, expected)) in self.runs.iter().zip(&self.expected).enumerate() {
            let id = self.node.controller().number(run, 0);
            let of = state.processes.iter().find(|process| process.id == id && !process.ended);
            if let (Some(of), true) = (of, index != self.guilty) {
                let ended = of.task.unwrap_or(0) as usize;
                let all: u64 = expected[ended..].iter().sum();
                let deadline_ns = self.node.controller().deadline_ns(run).unwrap();
                left.push((deadline_ns, all - of.retired_insns, run));
            }
        }
        left.sort_unstable();
        let execution_permille = 950;
        let (mut end_ns, mut innocent) = (state.now_ns, Vec::new());
        for (deadline_ns, insns, run) in left {
            // A microsecond is lost by rounding.
            end_ns += insns * 1000 / execution_permille + 1000;
            if end_ns > deadline_ns {
                // Not all promises can be kept, and which of them are is not said here.
                return Ok(plan);
            }
            innocent.push(run);
        }
        for missed in &self.node.missed[missed..] {
            assert!(!innocent.contains(&missed.run), "{missed:?}, guilty: {}", self.guilty);
        }
        Ok(plan)
    }
}

/// A job that has to wait for its start does not begin before, though slots of others float.
#[test]
fn slots_stay_while_a_job_waits_for_its_start() {
    for keeps_starts in [false, true] {
        let options = Options { keeps_starts, ..options(Dispatch::Deadline) };
        let mut controller = Controller::new(machine(), options, 1, 1);
        let dispatch = |controller: &mut Controller, now_ns| {
            controller.plan(now_ns).unwrap().unwrap().config.unwrap().dispatch()
        };
        controller.admit(job("now", &[100 * INSNS_PER_MS], 2_000 * MS), 0).unwrap();
        assert_eq!(dispatch(&mut controller, 0), Dispatch::Deadline);
        let later = job("later", &[100 * INSNS_PER_MS], 2_000 * MS);
        controller.admit(Job { start_ns: 1_000 * MS, ..later }, 0).unwrap();
        let waiting = if keeps_starts { Dispatch::Thesis } else { Dispatch::Deadline };
        assert_eq!(dispatch(&mut controller, 0), waiting);
        assert_eq!(dispatch(&mut controller, 1_000 * MS), Dispatch::Deadline);
    }
}
