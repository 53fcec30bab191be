// SPDX-License-Identifier: GPL-2.0
//! Leppert's one-line grammar.

use pbs_plan::{from_toml, leppert, to_toml, wire, Slot};

const LINE: &str =
    "2;0,9000;1,8000;;;0,0,1200,1150;-1,-1,300,310;1,1,700,910;0,2,40,41;-2,-2,0,0;1,3,5,5;\n";

#[test]
fn a_plan_is_imported() {
    let plan = leppert::import(LINE, 5, 2).unwrap();
    assert_eq!(plan.plan_id, 5);
    assert_eq!(plan.cpus[0].cpu, 2);
    assert_eq!(plan.processes[1].buffer_insns, 8000);
    let tasks: Vec<_> = plan.processes[0]
        .tasks
        .iter()
        .map(|task| (task.id, task.planned_insns, task.real_insns))
        .collect();
    assert_eq!(tasks, [(0, 1200, Some(1150)), (2, 40, Some(41))]);
    assert_eq!(
        plan.cpus[0].slots,
        [
            Slot::Process { process: 0 },
            Slot::Idle { length_insns: 300, real_insns: Some(310) },
            Slot::Process { process: 1 },
            Slot::Process { process: 0 },
        ]
    );
}

#[test]
fn the_import_goes_through_toml_unchanged() {
    let plan = leppert::import(LINE, 5, 2).unwrap();
    let again = from_toml(&to_toml(&plan)).unwrap();
    assert_eq!(wire::encode(&again).bytes, wire::encode(&plan).bytes);
    assert_eq!(again.cpus[0].slots, plan.cpus[0].slots);
    assert_eq!(again.processes[1].tasks[0].real_insns, Some(910));
}

#[test]
fn the_export_is_what_was_imported() {
    let plan = leppert::import(LINE, 5, 2).unwrap();
    // What stands behind the end mark is no part of the plan.
    let (line, _) = LINE.split_once("-2,").unwrap();
    assert_eq!(leppert::export(&plan).unwrap(), format!("{line}\n"));
}

#[test]
fn the_export_of_a_plan_without_real_lengths_is_exact() {
    let text = "[[process]]\nid = 3\nname = \"sort\"\ntasks = [10, 20]\n\
                [[cpu]]\ncpu = 0\nslots = [\"sort\", \"idle 5\", \"sort\"]\n";
    assert_eq!(
        leppert::export(&from_toml(text).unwrap()).unwrap(),
        "1;0,0;;;0,0,10,10;-1,-1,5,5;0,1,20,20;\n"
    );
}

/// Processes and tasks of a line as Leppert's parser stores them: the plan buffer by the number of
/// the process as a place, and each task by its own number as a place.
fn as_leppert_reads(line: &str) -> (Vec<u64>, Vec<(usize, u64)>) {
    let (meta, tasks) = line.trim().split_once(";;;").unwrap();
    let mut buffers = vec![0; meta.split(';').next().unwrap().parse().unwrap()];
    for process in meta.split(';').skip(1) {
        let (id, buffer) = process.split_once(',').unwrap();
        buffers[id.parse::<usize>().unwrap()] = buffer.parse().unwrap();
    }
    let mut by_number = Vec::new();
    for task in tasks.split(';').filter(|task| !task.is_empty()) {
        let [process, number, planned, _] =
            <[&str; 4]>::try_from(task.split(',').collect::<Vec<_>>()).unwrap();
        if process != "-1" {
            assert_eq!(number.parse(), Ok(by_number.len()), "{line}");
            by_number.push((process.parse().unwrap(), planned.parse().unwrap()));
        }
    }
    (buffers, by_number)
}

#[test]
fn the_export_has_the_numbers_of_leppert_s_parser() {
    let text = "[[process]]\nid = 1\nbuffer_insns = 900\ntasks = [10, 20]\n\
                [[process]]\nid = 2\nbuffer_insns = 800\ntasks = [30, 40]\n\
                [[cpu]]\ncpu = 0\nslots = [2, 1, \"idle 5\", 1, 2]\n";
    let line = leppert::export(&from_toml(text).unwrap()).unwrap();
    let (buffers, tasks) = as_leppert_reads(&line);
    assert_eq!(buffers, [900, 800]);
    assert_eq!(tasks, [(1, 30), (0, 10), (0, 20), (1, 40)]);
    let again = leppert::import(&line, 1, 0).unwrap();
    assert_eq!(leppert::export(&again).unwrap(), line);
}

/// The grammar of 4.3.1 to the letter: a comma before each process and each task.
#[test]
fn the_printed_grammar_is_read() {
    let printed = "2;,0,9000;,1,8000;;;,0,0,1200,1150;,-1,-1,300,310;,1,1,700,910;\n";
    assert!(leppert::is_it(printed));
    let plain = printed.replace(";,", ";");
    let plans = [printed, &plain].map(|line| leppert::import(line, 5, 2).unwrap());
    assert_eq!(to_toml(&plans[0]), to_toml(&plans[1]));
    let refused = leppert::import(&printed.replace(",1,8000", ",,1,8000"), 5, 2).unwrap_err();
    assert!(refused[0].in_file("plan").to_string().contains("is no process"));
}

#[test]
fn the_export_refuses_what_the_grammar_has_not() {
    let cpu = |number| {
        format!(
            "[[process]]\nid = {number}\ntasks = [10]\n\
             [[cpu]]\ncpu = {number}\nslots = [{number}]\n"
        )
    };
    let no_place = "plan: Leppert's grammar has no [config], dealt_seq and lease_ns; write TOML";
    for (text, expected) in [
        (
            "[[process]]\nid = 0\ntasks = [1]\n".to_owned() + &cpu(1) + "[[cpu]]\ncpu = 0\nslots = [0]\n",
            "plan: the plan has 2 CPUs, but Leppert's grammar is for one; write TOML",
        ),
        ("[config]\n".to_owned() + &cpu(0), no_place),
        ("dealt_seq = 1\n".to_owned() + &cpu(0), no_place),
        ("lease_ns = 1_000_000_000\n".to_owned() + &cpu(0), no_place),
        (
            cpu(0).replace("[[cpu]]\n", "[[cpu]]\nrate_insns_per_ms = 1\n"),
            "plan: Leppert's grammar has no rate_insns_per_ms; write TOML",
        ),
        (
            cpu(0).replace("[10]", "[{ planned_insns = 10, wait_insns = 3 }]"),
            "plan:3: task 0 of process 0 has wait_insns, which Leppert's grammar has not; write TOML",
        ),
        (
            cpu(0).replace("tasks", "memory_bytes = 4_096\ntasks"),
            "plan:1: process 0 has memory_bytes, which Leppert's grammar has not; write TOML",
        ),
        (
            cpu(0).replace("tasks", "real_memory_bytes = 4_096\ntasks"),
            "plan:1: process 0 has real_memory_bytes, which Leppert's grammar has not; write TOML",
        ),
        (
            cpu(0).replace("tasks", "deadline = \"1s\"\ntasks"),
            "plan:1: process 0 has deadline, which Leppert's grammar has not; write TOML",
        ),
        (
            "[[process]]\nid = 0\ntasks = [10]\n[[process]]\nid = 1\n\
             tasks = [{ planned_insns = 10, after = [0] }]\n[[cpu]]\ncpu = 0\nslots = [0, 1]\n"
                .into(),
            "plan:6: task 0 of process 1 has after, which Leppert's grammar has not; write TOML",
        ),
    ] {
        let problem = leppert::export(&from_toml(&text).unwrap()).unwrap_err();
        assert_eq!(problem.in_file("plan").to_string(), expected);
    }
}

/// The whole output of the simulation: the plan, and its table for people.
#[test]
fn the_table_behind_the_plan_is_read() {
    let table = "\n\n#########\n\npid - tid - len_plan - len-real\n0 0 1200 1150\n\
                 -1 -1 300 310\n1 1 700 910\n0 2 40 41\n";
    for table in [table, &format!("{table}-2 -2 0 0\n1 3 5 5\n"), "\n0 0 1200 1150\n...\n"] {
        let output = format!("{LINE}{table}");
        assert!(leppert::is_it(&output));
        assert_eq!(
            to_toml(&leppert::import(&output, 5, 2).unwrap()),
            to_toml(&leppert::import(LINE, 5, 2).unwrap())
        );
    }
}

#[test]
fn two_semicolons_are_enough() {
    assert!(leppert::import("1;0,9;;0,0,7,7", 1, 0).is_ok());
}

fn complaint(line: &str) -> String {
    leppert::import(line, 1, 0).unwrap_err()[0].in_file("plan.log").to_string()
}

#[test]
fn errors_name_the_item() {
    for (line, expected) in [
        ("", "plan.log:1: no \";;\" between the processes and the tasks; write PROCESSES;ID,BUFFER;...;;ID,TASK,PLANNED,REAL;..."),
        ("x;0,9;;0,0,7,7", "plan.log:1: \"x\" is no number of processes; write it before the first \";\""),
        ("2;0,9;;0,0,7,7", "plan.log:1: 2 processes are announced and 1 are there; correct the first number"),
        ("1;0,9;;0,0,7", "plan.log:1: \"0,0,7\" is no task; write 4 whole numbers: PROCESS,TASK,PLANNED,REAL"),
        ("1;0,9;;3,0,7,7", "plan.log:1: task \"3,0,7,7\": there is no process 3; add it before the \";;\" as 3,BUFFER"),
        ("1;0,9;;0,0,-7,7", "plan.log:1: \"0,0,-7,7\": -7 is out of range; only process and task can be -1"),
        ("1;0,9;;0,0,7,7;0,0,7,7", "plan.log:1: task 0 of process 0 comes after task 0; task ids must ascend, leave them out to have them numbered"),
        ("1;0,9;;0,0,7,7\n1;0,9;;0,0,7,7", "plan.log:2: this is a second plan; put each into a file of its own"),
        ("1;0,9;;0,0,7,7\n\n0 0 7 8", "plan.log:3: the table has \"0 0 7 8\", but the plan above it has \"0,0,7,7\" there; correct one of them, or delete the table"),
        ("1;0,9;;0,0,7,7\n0 0 7 7\n0 1 7 7", "plan.log:3: the table has \"0 1 7 7\", but the plan above it has no more tasks; correct one of them, or delete the table"),
        ("1;0,9;;0,0,7,7\n0 0 7", "plan.log:2: the table has \"0 0 7\", but the plan above it has \"0,0,7,7\" there; correct one of them, or delete the table"),
        ("\n\n1;0,9;;0,0,7", "plan.log:3: \"0,0,7\" is no task; write 4 whole numbers: PROCESS,TASK,PLANNED,REAL"),
    ] {
        assert_eq!(complaint(line), expected);
    }
}
