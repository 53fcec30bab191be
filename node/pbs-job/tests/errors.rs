// SPDX-License-Identifier: GPL-2.0
//! Messages about a task net: each fault beside its messages.

mod told;

use pbs_job::{Draft, DraftProcess, DraftTask, Kind};
use pbs_plan::{Command, Start};
use told::told;

/// Process 0 forks processes 1 and 2, and process 1 forks process 3:
///
/// ```text
/// 0: 0 start - 1 fork 1 - 2 fork 2 - 3 fork end - 4 join 1 - 5 join 2 - 6 end
/// 1: 10 fork 3 - 11 fork end - 12 communication - 13 join 3
/// 2: 20 fork end - 21 communication
/// 3: 30 fork end - 31 calculation
/// ```
fn net() -> Draft {
    let task = |id: u32, kind, next: &[u32]| DraftTask {
        id,
        process: id / 10,
        kind,
        insns: 1,
        next: next.to_vec(),
        ..DraftTask::default()
    };
    let mut draft = Draft {
        name: "net".into(),
        deadline_ns: 1,
        tasks: vec![
            task(0, Kind::Start, &[1]),
            task(1, Kind::Fork, &[2, 10]),
            task(2, Kind::Fork, &[3, 20]),
            task(3, Kind::ForkEnd, &[4]),
            task(4, Kind::Join, &[5]),
            task(5, Kind::Join, &[6]),
            task(6, Kind::End, &[]),
            task(10, Kind::Fork, &[11, 30]),
            task(11, Kind::ForkEnd, &[12]),
            task(12, Kind::Communication, &[13]),
            task(13, Kind::Join, &[4]),
            task(20, Kind::ForkEnd, &[21]),
            task(21, Kind::Communication, &[5]),
            task(30, Kind::ForkEnd, &[31]),
            task(31, Kind::Calculation, &[13]),
        ],
        ..Draft::default()
    };
    for id in 0..4 {
        draft.processes.push(DraftProcess { id, memory_bytes: 8, ..DraftProcess::default() });
    }
    draft
}

fn task(draft: &mut Draft, id: u32) -> &mut DraftTask {
    draft.tasks.iter_mut().find(|task| task.id == id).unwrap()
}

#[test]
fn a_cpu_is_named_once() {
    let mut draft = net();
    draft.cpus = vec![3, 1, 3, 2, 3];
    let told_of_it = told(draft.check());
    assert_eq!(told_of_it, ["job: cpus names CPU 3 twice; write each once"]);
    let mut draft = net();
    draft.cpus = vec![3, 1];
    assert_eq!(draft.check().unwrap().cpus, [1, 3]);
}

/// One fault each: the change of the net, and what is told of it.
macro_rules! faults {
    ($($name:ident: |$draft:ident| $change:expr => [$($message:literal),* $(,)?];)*) => {$(
        #[test]
        fn $name() {
            let mut draft = net();
            let $draft = &mut draft;
            $change;
            assert_eq!(told(draft.check()), [$($message),*]);
        }
    )*};
}

faults! {
    no_name: |draft| draft.name.clear() =>
        ["job: the job has no name that can be printed; add name = \"...\""];

    name_with_an_escape: |draft| task(draft, 12).name = Some("a\u{1b}[2J".into()) =>
        ["job: the task has a name that can't be printed"];

    deadline_before_start: |draft| draft.start_ns = 1 =>
        ["job: the job's deadline, 1, is not after its start, 1; put it later"];

    deadline_out_of_range: |draft| draft.deadline_ns = u64::MAX =>
        ["job: deadline_ns of the job is 18_446_744_073_709_551_615; it must be between 1 and \
          4_611_686_018_427_387_904"];

    runtime_of_nothing: |draft| draft.processes[1].runtime_ns = Some(0) =>
        ["job: runtime_ns of process 1 is 0; it must be between 1 and 4_611_686_018_427_387_904"];

    memory_out_of_range: |draft| draft.memory_bytes = Some(u64::MAX) =>
        ["job: memory_bytes of the job is 18_446_744_073_709_551_615; it must be between 0 and \
          72_057_594_037_927_936"];

    task_greater_than_its_process: |draft| task(draft, 12).memory_bytes = Some(9) =>
        ["job: task 12 uses 9 bytes of memory and its process only has 8; give the process as \
          much as its greatest task needs"];

    work_of_nothing: |draft| task(draft, 31).insns = 0 =>
        ["job: the number of instructions of task 31 is 0; it must be between 1 and \
          281_474_976_710_656"];

    too_much_work: |draft| task(draft, 31).insns = 1 << 49 =>
        ["job: the number of instructions of task 31 is 562_949_953_421_312; it must be between \
          1 and 281_474_976_710_656"];

    two_processes_of_one_number: |draft| draft.processes.push(draft.processes[2].clone()) =>
        ["job: process id 2 is taken; choose another"];

    two_processes_of_one_number_with_commands: |draft| for process in [1, 2] {
        draft.processes[process].id = 1;
        draft.processes[process].start = Start::Command(Command::default());
    } => ["job: process id 1 is taken; choose another"];

    two_processes_of_one_name: |draft| for process in [1, 3] {
        draft.processes[process].name = Some("twin".into());
    } => ["job: process name twin is taken; choose another"];

    process_without_task: |draft| draft.processes.push(DraftProcess {
        id: 9,
        ..DraftProcess::default()
    }) => ["job: process 9 has no task; add one, or remove the process"];

    task_without_process: |draft| draft.tasks.push(DraftTask {
        id: 90,
        process: 9,
        insns: 1,
        ..DraftTask::default()
    }) => [
        "job: task 90 belongs to process 9, which is not there; add the process, or correct the \
         number",
        "job: task 90 (calculation) leads nowhere; only the end task does",
        "job: nothing leads to task 90 (calculation) of process 9, and this part of the net is \
         disconnected; lead a task to it, or fork its process",
    ];

    two_tasks_of_one_number: |draft| {
        let mut twin = task(draft, 12).clone();
        twin.next.clear();
        draft.tasks.push(twin);
    } => [
        "job: task id 12 is taken; choose another for task 12",
    ];

    no_start: |draft| task(draft, 0).kind = Kind::Calculation => [
        "job: the job has no start task; the first task of its initial process must be one (now \
         there: task 0)",
        "job: nothing leads to task 0 (calculation) of process 0, and this part of the net is \
         disconnected; lead a task to it, or fork its process",
    ];

    no_end: |draft| task(draft, 6).kind = Kind::Calculation => [
        "job: the job has no end task; the last task of its initial process must be one (now \
         there: task 6)",
        "job: task 6 (calculation) leads nowhere; only the end task does",
    ];

    second_start: |draft| task(draft, 31).kind = Kind::Start => [
        "job: task 31 is a second start task beside task 0; a job has one",
        "job: task 31 is the start of the job and comes after task 30; nothing comes before it",
    ];

    end_in_a_child: |draft| {
        task(draft, 6).kind = Kind::Calculation;
        task(draft, 6).next = vec![21];
        task(draft, 21).kind = Kind::End;
    } => [
        "job: task 21 is the end of the job and of process 2, but the start, task 0, is of \
         process 0; both belong to the initial process",
        "job: task 6 of process 0 leads to task 21 of process 2; only a fork task leads to the \
         first task of a child, and only the last task of a child to a join task",
        "job: task 21 is the end of the job and leads to task 5; nothing comes after it",
        "job: tasks 5, 6 and 21 wait for each other in a circle and can never start; lead one of \
         them elsewhere, and join a process only after its fork task",
    ];

    end_in_the_midst: |draft| task(draft, 6).next = vec![31] => [
        "job: task 6 is the end of the job and leads to task 31; nothing comes after it",
        "job: tasks 4, 5, 6, 31 and 13 wait for each other in a circle and can never start; lead \
         one of them elsewhere, and join a process only after its fork task",
    ];

    fork_of_nothing: |draft| {
        task(draft, 10).next = vec![11];
        draft.tasks.retain(|task| task.process != 3);
        draft.processes.pop();
    } => ["job: task 10 is a fork and forks no process; lead it to the first task of a child \
           process"];

    fork_of_two: |draft| {
        task(draft, 1).next.push(20);
        task(draft, 2).kind = Kind::Calculation;
        task(draft, 2).next = vec![3];
        task(draft, 3).kind = Kind::Calculation;
    } => ["job: task 1 forks several processes, at tasks 10 and 20; write a fork task for each"];

    fork_into_the_midst: |draft| task(draft, 10).next = vec![11, 31] => [
        "job: task 10 forks into the middle of process 3, at task 31; lead it to the first task of \
         the process",
        "job: nothing leads to task 30 (fork_end) of process 3, and this part of the net is \
         disconnected; lead a task to it, or fork its process",
    ];

    forked_twice: |draft| {
        task(draft, 3).kind = Kind::Fork;
        task(draft, 3).next.push(20);
    } => ["job: several fork tasks lead to task 20, the first of process 2: 2 and 3; a process is \
           forked once"];

    fork_at_the_end: |draft| {
        task(draft, 20).kind = Kind::Fork;
        task(draft, 21).kind = Kind::ForkEnd;
        task(draft, 31).kind = Kind::Fork;
    } => [
        "job: task 20 is a fork and forks no process; lead it to the first task of a child \
         process",
        "job: task 31 forks into the middle of process 1, at task 13; lead it to the first task of \
         the process",
        "job: task 31 is a fork and the last of process 3; a join task for the child must come \
         after it",
    ];

    no_fork_end: |draft| task(draft, 20).kind = Kind::Calculation =>
        ["job: task 20 (calculation) of process 2 comes before its fork end; begin a forked \
          process with a fork end task"];

    no_fork_end_after_forks: |draft| task(draft, 11).kind = Kind::Calculation =>
        ["job: task 11 (calculation) of process 1 comes before its fork end; begin a forked \
          process with a fork end task"];

    fork_end_without_fork: |draft| task(draft, 31).kind = Kind::ForkEnd =>
        ["job: task 31 is a fork end, but in process 3 no fork comes right before it; remove it, \
          or put it there"];

    never_joined: |draft| task(draft, 21).next.clear() =>
        ["job: task 21 is the last of process 2 and leads nowhere, and the process is never \
          joined; lead it to a join task of the process that forked it"];

    joined_by_a_stranger: |draft| {
        task(draft, 31).next = vec![4];
        task(draft, 13).next = vec![5];
        task(draft, 21).next = vec![13];
    } => [
        "job: task 13 joins process 2 in process 1, but task 2 of process 0 forked it; join it \
         there",
        "job: task 4 joins process 3 in process 0, but task 10 of process 1 forked it; join it \
         there",
    ];

    joined_twice: |draft| task(draft, 21).next.push(4) => [
        "job: task 4 joins several processes, after tasks 13 and 21; write a join task for each",
        "job: task 21 leads to several join tasks: 5 and 4; one waits for process 2",
    ];

    joined_before_its_end: |draft| task(draft, 12).next.push(5) =>
        ["job: task 12 of process 1 leads to task 5 of process 0; only a fork task leads to the \
          first task of a child, and only the last task of a child to a join task"];

    torn_off: |draft| {
        draft.processes.push(DraftProcess {
            id: 7,
            ..DraftProcess::default()
        });
        for id in [70, 71] {
            draft.tasks.push(DraftTask {
                id,
                process: 7,
                insns: 1,
                next: if id == 70 { vec![71] } else { Vec::new() },
                ..DraftTask::default()
            });
        }
    } => [
        "job: nothing leads to task 70 (calculation) of process 7, and this part of the net is \
         disconnected; lead a task to it, or fork its process",
        "job: task 71 (calculation) leads nowhere; only the end task does",
    ];

    torn_off_circle: |draft| {
        draft.processes.push(DraftProcess {
            id: 7,
            ..DraftProcess::default()
        });
        for id in [70, 71] {
            draft.tasks.push(DraftTask {
                id,
                process: 7,
                insns: 1,
                next: vec![141 - id],
                ..DraftTask::default()
            });
        }
    } => ["job: tasks 70 and 71 wait for each other in a circle and can never start; lead one of \
           them elsewhere, and join a process only after its fork task"];

    joined_before_it_is_forked: |draft| {
        task(draft, 0).next = vec![5];
        task(draft, 5).next = vec![1];
        task(draft, 4).next = vec![6];
    } => ["job: tasks 1, 2, 20, 21 and 5 wait for each other in a circle and can never start; lead \
           one of them elsewhere, and join a process only after its fork task"];

    branches_in_a_process: |draft| task(draft, 11).next.push(13) => [
        "job: task 11 leads to several tasks of its own process: 12 and 13; a process runs its \
         tasks one after the other, keep one",
        "job: several tasks of its own process lead to task 13: 11 and 12; a process runs its \
         tasks one after the other, keep one",
    ];

    bad_edges: |draft| {
        task(draft, 12).next.extend([13, 12, 99]);
    } => [
        "job: task 12 leads to task 13 twice; remove one",
        "job: task 12 leads to itself; name the task after it",
        "job: task 12 leads to task 99, which is not there; add the task, or correct the number",
    ];

    bad_partners: |draft| for (id, partner) in [(12, 12), (21, 31), (31, 12)] {
        task(draft, id).partner = Some(partner);
    } => [
        "job: task 12 sends a message to itself; name another task",
        "job: task 21 sends a message to task 31, which is no communication; name one that is",
        "job: task 31 is a calculation and has a partner, task 12; only a communication has one",
    ];

    partner_that_is_not_there: |draft| task(draft, 12).partner = Some(99) =>
        ["job: task 12 sends a message to task 99, which is not there; name another task"];

    everything_at_once: |draft| {
        draft.start_ns = 1;
        task(draft, 12).insns = 0;
        task(draft, 21).next.clear();
        task(draft, 30).kind = Kind::Calculation;
    } => [
        "job: the job's deadline, 1, is not after its start, 1; put it later",
        "job: the number of instructions of task 12 is 0; it must be between 1 and \
         281_474_976_710_656",
        "job: task 21 is the last of process 2 and leads nowhere, and the process is never joined; \
         lead it to a join task of the process that forked it",
        "job: task 30 (calculation) of process 3 comes before its fork end; begin a forked \
         process with a fork end task",
    ];
}

#[test]
fn nothing_is_wrong() {
    assert_eq!(told(net().check()), ["valid"]);
}

#[test]
fn an_empty_job() {
    assert_eq!(
        told(Draft::default().check()),
        [
            "job: the job has no name that can be printed; add name = \"...\"",
            "job: deadline_ns of the job is 0; it must be between 1 and \
             4_611_686_018_427_387_904",
            "job: the job's deadline, 0, is not after its start, 0; put it later",
            "job: the job has no process; add a [[process]] with id, memory_bytes and tasks",
        ]
    );
}
