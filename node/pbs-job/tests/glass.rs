// SPDX-License-Identifier: GPL-2.0
//! The files of Glaß's prototype.

use std::fs;
use std::path::Path;

use pbs_job::glass::{import_job, import_machine, Fault, Files};
use pbs_job::{job_from_toml, job_to_toml, machine_from_toml, machine_to_toml, Action, Job};

const DETAILS: &str = "start;deadline;total_runtime;total_needed_memory\n3;40;22;800";
const PROCESSES: &str = "process_id;approx_runtime;approx_needed_memory\n0;9;300\n1;4;100";
/// Blanks are as irregular as in the prototype's own files.
const TASKS: &str = "0 0 0 300 1 -> 1 0 2 \n1 0 2 300 5-> 2 0 10->3 1 10\n\
    2 0 10 300 1 -> 4 0 5\n 3  1 10 100 1->5 1 5\n\n4 0 5 300 1 -- 5 1 5-> 6 0 3\n\
    5 1 5 100 2 --0 -> 6 0 3\r\n6 0 3 300 1\t-> 7 0 1\n7 0 1";

fn files(tasks: &str) -> Files<'_> {
    Files { details: DETAILS, processes: PROCESSES, tasks }
}

fn complaints(files: &Files<'_>) -> Vec<String> {
    let faults = import_job("2", files).unwrap_err();
    let told = faults.iter().map(|Fault { file, problem }| match file {
        Some(file) => problem.in_file(&file.to_string()).to_string(),
        None => problem.message.clone(),
    });
    told.collect()
}

#[test]
fn the_size_of_a_message_may_stand_behind_its_partner() {
    let job = import_job("two", &files(&TASKS.replace("-- 5 1 5->", "-- 5 1 5 64->"))).unwrap();
    assert_eq!(job.tasks[4].message_bytes, Some(64));
    assert_eq!(job.tasks[5].senders, [4]);
}

#[test]
fn a_job_is_imported() {
    let job = import_job("two", &files(TASKS)).unwrap();
    assert_eq!(job.name, "two");
    assert_eq!((job.start_ns, job.deadline_ns), (3_000_000_000, 40_000_000_000));
    assert_eq!(job.runtime_ns, Some(22_000_000_000));
    assert_eq!(job.memory_bytes, Some(800));
    assert_eq!(job.processes[1].runtime_ns, Some(4_000_000_000));
    assert_eq!(job.processes[1].memory_bytes, 100);
    assert_eq!(job.processes[0].tasks, [0, 1, 2, 4, 6, 7]);
    assert_eq!(job.processes[1].tasks, [3, 5]);
    assert_eq!(job.processes[1].forked_by, Some(1));
    assert_eq!(job.processes[1].joined_by, Some(6));
    let actions: Vec<_> = job.tasks.iter().map(|task| task.action).collect();
    assert_eq!(
        actions,
        [
            Action::Start,
            Action::Fork { child: 1 },
            Action::ForkEnd,
            Action::ForkEnd,
            Action::Communication { partner: Some(5) },
            Action::Communication { partner: None },
            Action::Join { child: Some(1) },
            Action::End,
        ]
    );
    let insns: Vec<_> = job.tasks.iter().map(|task| task.insns).collect();
    assert_eq!(insns, [1, 5, 1, 1, 1, 2, 1, 0]);
}

#[test]
fn a_job_goes_through_toml_unchanged() {
    let job = import_job("two", &files(TASKS)).unwrap();
    let again = job_from_toml(&job_to_toml(&job)).unwrap();
    assert_eq!(job_to_toml(&again), job_to_toml(&job));
    assert_eq!(again.processes[1].memory_bytes, 100);
}

#[test]
fn a_machine_is_imported() {
    let text = "node_id;cores;total_shared_memory;instructions_pre_sec\n7;x, y;100;5\n8;x;20;3\n";
    let machine = import_machine(text).unwrap();
    assert_eq!(machine.tick_ns, 1_000_000_000);
    let cores: Vec<_> = machine
        .cores()
        .map(|(node, core)| (node, core.name.as_str(), core.rate_insns_per_s))
        .collect();
    assert_eq!(cores, [(0, "x", 5), (0, "y", 5), (1, "x", 3)]);
    assert_eq!(machine.nodes[0].core_memory_bytes(), 50);
    assert_eq!(machine.memory_bytes(), 120);
    // Six instructions at five a second are two units of time, not one.
    assert_eq!(machine.duration_ns(6, 5), 2_000_000_000);
    assert_eq!(machine.duration_ns(0, 5), 0);
    let again = machine_from_toml(&machine_to_toml(&machine)).unwrap();
    assert_eq!(machine_to_toml(&again), machine_to_toml(&machine));
    assert_eq!(again.tick_ns, machine.tick_ns);
}

#[test]
fn bad_figures_are_named() {
    let bad = Files {
        details: "start;deadline;total_runtime;total_needed_memory\n0;-4;22;99999999999999999999",
        processes: "process_id;approx_runtime;approx_needed_memory\n0;;3\n1;4\n4294967296;1;1\n",
        tasks: "0 0 0 3 -1 -> 1 0 1\n1 0 6 1 1\n2 0\n3 0 4 1 x\n4 0 4 1\n5 0 4 1 1 -> 6\n\
                6 0 5 1 1 -- 3 3\n99999999999 0 4 1 1\n",
    };
    assert_eq!(
        complaints(&bad),
        [
            "job details:2: deadline is \"-4\", which is negative; write a number from 0 on",
            "job details:2: total_needed_memory is 99999999999999999999, which is too great for \
             64 bits",
            "job processes:2: approx_runtime is missing; write a whole number",
            "job processes:3: the line has 2 columns, but the first line names 3",
            "job processes:4: process_id 4294967296 is too great; it must be below 2^32",
            "job tasks:1: task 0: the number of its instructions is \"-1\", which is negative; \
             write a number from 0 on",
            "job tasks:2: task 1 has action 6; write 0 start, 1 end, 2 fork, 3 join, \
             4 calculation, 5 communication or 10 fork end",
            "job tasks:3: task 2: a task is cut off; write TASK PROCESS ACTION MEMORY \
             INSTRUCTIONS -> NEXT...",
            "job tasks:4: task 3: the number of its instructions is \"x\", which is no whole \
             number",
            "job tasks:5: task 4 has 4 figures before its next tasks; write TASK PROCESS ACTION \
             MEMORY INSTRUCTIONS -> NEXT...",
            "job tasks:6: after -> task 5 must name a task as TASK PROCESS ACTION",
            "job tasks:7: after -- task 6 must name one partner as TASK PROCESS ACTION, with \
             BYTES behind if it waits for the message, or 0 for none",
            "job tasks:8: the task has the number 99999999999; it must be below 2^32",
        ]
    );
}

#[test]
fn what_is_said_of_a_task_must_be_true() {
    let tasks = TASKS.replace("-> 6 0 3\n5", "-> 6 1 4\n5");
    assert_eq!(
        complaints(&files(&tasks)),
        ["job tasks:6: task 4 names task 6 as one of process 1 with action 4, but it is a join \
             of process 0"]
    );
}

#[test]
fn a_torn_net_is_named() {
    let tasks = TASKS.replace("--0 -> 6 0 3", "--0");
    assert_eq!(
        complaints(&files(&tasks)),
        ["job tasks:7: task 5 is the last of process 1 and leads nowhere, and the process is never \
          joined; lead it to a join task of the process that forked it"]
    );
}

#[test]
fn columns_may_be_in_any_order() {
    let details = "deadline;start;x;total_needed_memory;total_runtime\n40;3;;800;22\n";
    let other = Files { details, ..files(TASKS) };
    assert_eq!(import_job("2", &other), import_job("2", &files(TASKS)));
    let missing = Files {
        details: "start;dead_line;total_runtime;total_needed_memory\n3;40;22;800\n",
        ..files(TASKS)
    };
    assert_eq!(
        complaints(&missing),
        ["job details:1: there is no column deadline; is dead_line meant?"]
    );
}

/// Whether the tasks of a job are refused, with reasons. A job that is read can be written and read
/// again.
fn is_refused(tasks: &str) -> bool {
    match import_job("2", &files(tasks)) {
        Ok(job) => {
            let written = job_to_toml(&job);
            assert_eq!(job_to_toml(&job_from_toml(&written).unwrap()), written, "{tasks}");
            false
        }
        Err(faults) => {
            assert!(!faults.is_empty(), "{tasks}");
            true
        }
    }
}

/// Cut off or with a byte changed anywhere, a file is refused or read.
#[test]
fn damaged_files_are_no_trouble() {
    let mut refused = 0;
    for at in 0..TASKS.len() {
        for with in ["", "-", ">", "9", " ", "é"] {
            let tasks = format!("{}{with}{}", &TASKS[..at], &TASKS[at + 1..]);
            refused += usize::from(is_refused(&tasks));
        }
        refused += usize::from(is_refused(&TASKS[..at]));
    }
    assert!(refused > TASKS.len(), "{refused}");
}

/// Files of a job with three processes, each forked by the one before, and of its machine.
fn family(file: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/family");
    fs::read_to_string(folder.join(file)).unwrap()
}

fn family_job() -> Job {
    let (details, processes, tasks) =
        (family("job_details_3.csv"), family("job_processes_3.csv"), family("job_tasks_3.txt"));
    let files = Files { details: &details, processes: &processes, tasks: &tasks };
    import_job("3", &files).unwrap()
}

#[test]
fn a_job_of_nested_processes_is_valid() {
    let job = family_job();
    assert_eq!((job.tasks.len(), job.processes.len()), (16, 3));
    // Process 1 comes from process 0, process 2 from process 1.
    assert_eq!(job.children(0).collect::<Vec<_>>(), [1]);
    assert_eq!(job.children(1).collect::<Vec<_>>(), [2]);
    let joins: Vec<_> = (job.processes.iter())
        .map(|process| process.joined_by.map(|join| job.tasks[join].id))
        .collect();
    assert_eq!(joins, [None, Some(12), Some(11)]);
    // One join task of it is for nobody.
    let for_nobody = job.tasks.iter().filter(|task| task.action == Action::Join { child: None });
    assert_eq!(for_nobody.map(|task| task.id).collect::<Vec<_>>(), [13]);
    let ids = job.processes[0].tasks.iter().map(|&task| job.tasks[task].id);
    assert_eq!(ids.collect::<Vec<_>>(), [0, 1, 2, 4, 8, 12, 13, 14, 15]);
    let text = job_to_toml(&job);
    assert_eq!(job_to_toml(&job_from_toml(&text).unwrap()), text);
}

#[test]
fn a_machine_of_unlike_nodes_is_valid() {
    let machine = import_machine(&family("machine_details.csv")).unwrap();
    assert_eq!(machine.nodes.len(), 2);
    assert_eq!(machine.cores().count(), 3);
    assert_eq!(machine.memory_bytes(), 900);
}
