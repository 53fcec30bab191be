// SPDX-License-Identifier: GPL-2.0
//! A job in the files of the prototype (Glaß 2024, 5.1): three processes on a machine of two
//! nodes, with an optimum that is worked out by hand.

mod common;

use std::fs;
use std::path::Path;

use common::checker::check;
use common::question_and_answer;
use pbs_job::glass::{import_job, import_machine, Files};
use pbs_planner::plan_building::csv;
use pbs_planner::{reserve, Aim, Balancing, Options, Request, RunId, Store, Strategy};

/// No plan is shorter.  Process 0 computes from 4 to 10 s and process 1 from 7 to 11 s, on the two
/// fast cores; process 2 begins at 6 s.  On the slow core it ends at 14 s, as it does behind process
/// 0; behind process 1 it ends at 15 s.  From 14 s on three joins take 1 s each and the last task
/// takes 3 s.
const OPTIMUM_NS: u64 = 20_000_000_000;
/// One strategy alone, or the first plan that keeps the deadline, takes no longer than this.
const LONGEST_NS: u64 = 22_000_000_000;

#[test]
fn a_job_of_the_prototype_is_planned_optimally() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pbs-job/tests/family");
    let read = |file: &str| fs::read_to_string(folder.join(file)).expect("the file is there");
    let (details, processes, tasks) =
        (read("job_details_3.csv"), read("job_processes_3.csv"), read("job_tasks_3.txt"));
    let files = Files { details: &details, processes: &processes, tasks: &tasks };
    let job = import_job("3", &files).expect("the job is valid");
    let machine = import_machine(&read("machine_details.csv")).expect("the machine is valid");
    for balancing in [Balancing::Static, Balancing::Dynamic] {
        // Each strategy for itself, and all of them.
        let mut choices: Vec<Vec<Strategy>> =
            Strategy::ALL[..4].iter().map(|&one| vec![one]).collect();
        choices.push(Strategy::ALL.to_vec());
        for strategies in choices {
            for aim in [Aim::Best, Aim::Deadline] {
                let mut store = Store::new(machine.clone(), balancing);
                let request = Request::new(RunId(3), &job);
                let options = Options { strategies: strategies.clone(), aim, ..Options::default() };
                let planned = reserve(&mut store, &request, &options).expect("it fits");
                let makespan_ns = planned.makespan_ns();
                let longest_ns = match (strategies.len(), aim) {
                    (2.., Aim::Best) => OPTIMUM_NS,
                    _ => LONGEST_NS,
                };
                assert!(
                    (OPTIMUM_NS..=longest_ns).contains(&makespan_ns),
                    "{strategies:?}: {makespan_ns} ns"
                );
                assert!(planned.end_ns <= job.deadline_ns);
                let runs = [(RunId(3), &job, job.start_ns, job.deadline_ns)];
                let (question, answer) = question_and_answer(&store, &runs);
                assert_eq!(check(&question, &answer), Ok(()));
                let text = csv(&store, RunId(3), &job).expect("it is planned");
                assert_eq!(text.lines().count(), 1 + job.tasks.len());
                // Its column of the end in the thesis's own unit.
                let ends = text.lines().skip(1).filter_map(|line| line.split(';').nth(4));
                let ends = ends.map(|end| end.parse::<u64>().expect("a number"));
                assert_eq!(ends.max(), Some(makespan_ns / 1_000_000_000));
            }
        }
    }
}
