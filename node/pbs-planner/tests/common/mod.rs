// SPDX-License-Identifier: GPL-2.0
//! Random machines and jobs, and their plans as the checker wants them.

#![allow(dead_code)] // each test uses a part

pub(crate) mod checker;
pub(crate) mod oracle;
pub(crate) mod small;

pub(crate) use pbs_gen::nets;

use std::collections::HashMap;

use checker::{Answer, Question};
use nets::{machine, Random};
use pbs_job::{Action, Job, Machine};
use pbs_planner::{Balancing, RunId, Store};

pub(crate) fn random_machine(random: &mut Random) -> Machine {
    let tick_ns = random.of(&[1, 1_000_000_000]);
    let rates = [1, 2, 3, 5, 6];
    let nodes: Vec<(u64, Vec<u64>)> = (0..1 + random.below(4))
        .map(|_| {
            let same = random.of(&rates);
            let mixed = random.below(4) == 0;
            let cores = 0..1 + random.below(4);
            let cores = cores.map(|_| if mixed { random.of(&rates) } else { same });
            let cores = cores.collect();
            (200 + random.below(1800), cores)
        })
        .collect();
    let nodes: Vec<(u64, &[u64])> =
        nodes.iter().map(|(bytes, cores)| (*bytes, &cores[..])).collect();
    machine(tick_ns, &nodes)
}

/// The time that all tasks take one after the other at one instruction in a
/// second.
pub(crate) fn whole_ns(job: &Job) -> u64 {
    job.tasks.iter().map(|task| task.insns).sum::<u64>() * 1_000_000_000
}

/// Returns the constraints of plans of these jobs: each job with its first and its last moment.
pub(crate) fn question_of(
    machine: &Machine,
    balancing: Balancing,
    jobs: &[(&Job, u64, u64)],
) -> Question {
    let mut question = Question { tick: machine.tick_ns.into(), ..Question::default() };
    for node in &machine.nodes {
        if balancing == Balancing::Dynamic {
            question.memories.push(node.memory_bytes.into());
        }
        for core in &node.cores {
            if balancing == Balancing::Static {
                let part = node.memory_bytes / node.cores.len() as u64;
                question.memories.push(part.into());
            }
            let memory = question.memories.len() - 1;
            question.cores.push((memory, core.rate_insns_per_s.into()));
        }
    }
    question.resources = machine.resources.iter().map(|it| it.count.into()).collect();
    for &(job, start_ns, deadline_ns) in jobs {
        let (first_process, first_task) = (question.processes.len(), question.tasks.len());
        let number = question.jobs.len();
        question.jobs.push((start_ns.into(), deadline_ns.into()));
        for process in &job.processes {
            question.processes.push((number, process.memory_bytes.into()));
            // Of the job and of the process, each by its name.
            let of_job = job.resources.iter().filter(|_| process.forked_by.is_none());
            let mut held: HashMap<usize, u128> = HashMap::new();
            for amount in process.resources.iter().chain(of_job) {
                let mut all = machine.resources.iter();
                let place = all.position(|it| it.name == amount.resource);
                let place = place.expect("the machine has it");
                *held.entry(place).or_default() += u128::from(amount.count);
            }
            question.held.push(held.into_iter().collect());
        }
        let tasks = job.tasks.iter().enumerate();
        let forks: HashMap<usize, usize> = tasks
            .filter_map(|(fork, task)| match task.action {
                Action::Fork { child } => Some((child, fork)),
                _ => None,
            })
            .collect();
        for task in &job.tasks {
            // By what the actions say, not by the job's own idea of it.
            let mut before = Vec::new();
            let process = &job.processes[task.process];
            if task.position > 0 {
                before.push(first_task + process.tasks[task.position - 1]);
            } else {
                let fork = forks.get(&task.process);
                before.extend(fork.map(|fork| first_task + fork));
            }
            if let Action::Join { child: Some(child) } = task.action {
                before.extend(job.processes[child].tasks.last().map(|last| first_task + last));
            }
            before.extend(task.after.iter().map(|&other| first_task + other));
            question.tasks.push((first_process + task.process, task.insns.into(), before));
        }
    }
    question
}

/// All that the store has planned, with the jobs and their times.
pub(crate) fn question_and_answer(
    store: &Store,
    runs: &[(RunId, &Job, u64, u64)],
) -> (Question, Answer) {
    let jobs: Vec<_> = (runs.iter())
        .map(|&(_, job, start_ns, deadline_ns)| (job, start_ns, deadline_ns))
        .collect();
    let question = question_of(store.machine(), store.balancing(), &jobs);
    let mut answer = Answer::default();
    let (mut first_process, mut first_task) = (0, 0);
    for &(id, job, ..) in runs {
        let run = store.run(id).expect("the run is planned");
        answer.tasks.extend(run.tasks.iter().map(|task| {
            (first_task + task.task, task.core, task.start_ns.into(), task.end_ns.into())
        }));
        answer.memory.extend(run.processes.iter().map(|process| {
            (
                first_process + process.process,
                process.core,
                process.start_ns.into(),
                process.end_ns.into(),
            )
        }));
        first_process += job.processes.len();
        first_task += job.tasks.len();
    }
    (question, answer)
}
