// SPDX-License-Identifier: GPL-2.0
//! The job of the thesis on its machine (Glaß 2024, 5.1). Its files lie beside
//! the project.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::checker::check;
use common::question_and_answer;
use pbs_job::glass::{import_job, import_machine, Files};
use pbs_planner::plan_building::csv;
use pbs_planner::{reserve, Aim, Balancing, Options, Request, RunId, Store, Strategy};

/// The prototype's own plan takes so long.
const MAKESPAN_NS: u64 = 14_000_000_000;

fn seed() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let seed = root.join("../shared/data/glass-job-2");
    if !seed.exists() {
        eprintln!("{} is not there; skipped", seed.display());
        return None;
    }
    Some(seed)
}

#[test]
fn the_prototypes_job_takes_no_longer_than_in_its_own_plan() {
    let Some(seed) = seed() else {
        return;
    };
    let read = |file: &str| fs::read_to_string(seed.join(file)).expect("the file is there");
    let (details, processes, tasks) = (
        read("job_details_2.csv"),
        read("job_processes_2.csv"),
        read("job_tasks_2.txt"),
    );
    let files = Files {
        details: &details,
        processes: &processes,
        tasks: &tasks,
    };
    let job = import_job("2", &files).expect("the job is valid");
    let machine = import_machine(&read("machine_details.csv")).expect("the machine is valid");
    for balancing in [Balancing::Static, Balancing::Dynamic] {
        // Each strategy for itself, and all of them.
        let mut choices: Vec<Vec<Strategy>> =
            Strategy::ALL[..4].iter().map(|&one| vec![one]).collect();
        choices.push(Strategy::ALL.to_vec());
        for strategies in choices {
            for aim in [Aim::Best, Aim::Deadline] {
                let mut store = Store::new(machine.clone(), balancing);
                let request = Request::new(RunId(2), &job);
                let options = Options {
                    strategies: strategies.clone(),
                    aim,
                    ..Options::default()
                };
                let planned = reserve(&mut store, &request, &options).expect("it fits");
                let makespan_ns = planned.makespan_ns();
                assert!(
                    makespan_ns <= MAKESPAN_NS,
                    "{strategies:?}: {makespan_ns} ns"
                );
                assert!(planned.end_ns <= job.deadline_ns);
                let runs = [(RunId(2), &job, job.start_ns, job.deadline_ns)];
                let (question, answer) = question_and_answer(&store, &runs);
                assert_eq!(check(&question, &answer), Ok(()));
                let text = csv(&store, RunId(2), &job).expect("it is planned");
                assert_eq!(text.lines().count(), 1 + job.tasks.len());
                // Its column of the end in the thesis's own unit.
                let ends = text
                    .lines()
                    .skip(1)
                    .filter_map(|line| line.split(';').nth(4));
                let ends = ends.map(|end| end.parse::<u64>().expect("a number"));
                assert_eq!(ends.max(), Some(makespan_ns / 1_000_000_000));
            }
        }
    }
}
