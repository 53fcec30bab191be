// SPDX-License-Identifier: GPL-2.0
//! Messages about broken plans: each plan stands beside its messages.

use pbs_plan::from_toml;

/// Returns what `pbsctl check` prints about the text.
fn complaints(text: &str) -> String {
    let Err(problems) = from_toml(text) else {
        return "valid".into();
    };
    let lines: Vec<_> =
        problems.iter().map(|problem| problem.in_file("plan.toml").to_string()).collect();
    lines.join("\n")
}

macro_rules! golden {
    ($($name:ident: $text:literal => $expected:literal;)*) => {$(
        #[test]
        fn $name() {
            assert_eq!(complaints($text), $expected);
        }
    )*};
}

golden! {
    valid_plan:
"[[process]]
id = 1
tasks = [10]
[[cpu]]
cpu = 0
slots = [1]
" => "valid";

    no_toml:
"plan_id = 1
[[process]
" => "plan.toml:2: this is no TOML: unclosed array table, expected `]`";

    empty:
"" => "plan.toml: the plan has no process; add a [[process]] with id, tasks and command";

    no_cpu:
"[[process]]
id = 1
tasks = [10]
" => "plan.toml: the plan has no CPU; add a [[cpu]] with the order of the slots: slots = [1, ...]";

    process_without_slot:
"[[process]]
id = 1
tasks = [10]

[[process]]
id = 3
tasks = [10]

[[cpu]]
cpu = 0
slots = [1]
" => "plan.toml:5: process 3 has no slot; add it to a [[cpu]] slots list or remove the process";

    idle_slots_alone:
"[[process]]
id = 3
tasks = [10]
[[cpu]]
cpu = 0
slots = [3]
[[cpu]]
cpu = 1
slots = [\"idle 5\"]
" => "plan.toml:7: CPU 1 has idle slots alone; add those of a process, or write slots = [] to have no process there";

    misspelt_key:
"[[process]]
id = 1
buffer = 5
tasks = [10]
[[cpu]]
cpu = 0
slots = [1]
" => "plan.toml:3: [[process]] has no key buffer; did you mean buffer_insns?";

    unknown_key:
"colour = 3
" => "plan.toml:1: the plan has no key colour; it can have plan_id, dealt_seq, lease_ns, memory_bytes, config, process, cpu";

    unknown_process_in_slot:
"[[process]]
id = 1
name = \"sort\"
tasks = [10]
[[cpu]]
cpu = 0
slots = [
    \"sort\",
    \"sotr\",
    77,
]
" => "\
plan.toml:9: there is no process sotr; did you mean sort?
plan.toml:10: there is no process 77; add a [[process]] for it, or write \"idle 5_000_000\" for an idle slot";

    wrong_types:
"plan_id = \"one\"
[[process]]
id = 1.5
tasks = [\"10\"]
command = \"sort /data\"
[[cpu]]
cpu = -1
slots = [\"idle\"]
" => "\
plan.toml:1: plan_id must be a number, and not \"one\"; write it without quotes: 1
plan.toml:3: id must be a whole number; write it without point and exponent: 20_000_000
plan.toml:4: a task is \"10\", which has no unit; write \"10M\", or 10 without quotes
plan.toml:5: command must be a list of the program and its arguments: [\"sort\", \"/data/a\"]; there is no shell
plan.toml:7: cpu is -1; it must be between 0 and 4_294_967_295
plan.toml:8: \"idle\" has no length in instructions; write \"idle 5_000_000\"";

    wrong_numbers:
"[config]
sigma_t1_permille = 1.05
preemption_limit_ns = 2e7
max_preemptions = -1
[[process]]
id = 1
tasks = [-1000, { planned_insns = 5, real_insns = -5 }]
[[cpu]]
cpu = 0
slots = [{ idle_insns = -5 }]
" => "\
plan.toml:2: sigma_t1_permille must be a whole number; it is in thousandths: write 1_050
plan.toml:3: preemption_limit_ns must be a whole number; write 20_000_000
plan.toml:4: max_preemptions is -1; it must be between 1 and 1_000_000
plan.toml:7: a task is -1_000; it must be between 1 and 281_474_976_710_656
plan.toml:7: real_insns is -5; it must be between 0 and 281_474_976_710_656
plan.toml:10: idle_insns is -5; it must be between 1 and 281_474_976_710_656";

    more_slots_than_tasks:
"[[process]]
id = 1
name = \"sort\"
tasks = [10]
[[cpu]]
cpu = 0
slots = [1, \"idle 5\", 1]
" => "plan.toml:7: slot 2 is one more than process sort has tasks (1); add a task to the process or remove the slot";

    fewer_slots_than_tasks:
"[[process]]
id = 1
tasks = [10, 20, 30]
[[cpu]]
cpu = 0
slots = [1]
" => "plan.toml:1: process 1 has 3 tasks but 1 slots; name it 2 more times in the slots list";

    two_cpus:
"[[process]]
id = 1
tasks = [10, 20]
[[cpu]]
cpu = 0
slots = [1]
[[cpu]]
cpu = 1
slots = [1]
" => "plan.toml:9: process 1 has slots on CPU 0 and on CPU 1; a process belongs to one CPU, so make it two processes";

    same_cpu_twice:
"[[process]]
id = 1
tasks = [10, 20]
[[cpu]]
cpu = 0
slots = [1]
[[cpu]]
cpu = 0
slots = [1]
" => "plan.toml:7: CPU 0 has a plan already by line 4; put its slots into one [[cpu]]";

    same_id_and_name_twice:
"[[process]]
id = 1
name = \"a\"
tasks = [10]
[[process]]
id = 1
name = \"a\"
tasks = [10]
[[cpu]]
cpu = 0
slots = [1]
" => "\
plan.toml:5: process id 1 is taken by line 1; choose another
plan.toml:5: process name a is taken by line 1; choose another";

    name_like_an_idle_slot:
"[[process]]
id = 1
name = \"idler\"
tasks = [10]
[[cpu]]
cpu = 0
slots = [1]
" => "plan.toml:1: process name \"idler\" could be taken for a number or an idle slot; begin it with a letter, and not with \"idle\"";

    command_with_two_tasks:
"[[process]]
id = 1
tasks = [10, 20]
command = [\"sort\"]
[[cpu]]
cpu = 0
slots = [1, 1]
" => "plan.toml:4: process 1 has 2 tasks, but the whole life of its command is one; write commands = [[...], ...] with one command per task, or attaches = \"itself\" if the program marks its own task ends";

    commands_and_tasks_differ:
"[[process]]
id = 1
tasks = [10]
commands = [[\"a\"], [\"b\"]]
[[cpu]]
cpu = 0
slots = [1]
" => "plan.toml:1: process 1 has 1 tasks and 2 commands; each command is one task, so write as many of both";

    both_kinds_of_command:
"[[process]]
id = 1
tasks = [10]
command = [\"a\"]
commands = [[\"a\"]]
[[cpu]]
cpu = 0
slots = [1]
" => "plan.toml:5: process 1 has both command and commands; keep command for one program, commands for one program per task";

    zero_length:
"[[process]]
id = 1
tasks = [0]
[[cpu]]
cpu = 0
slots = [1, \"idle 0\"]
" => "\
plan.toml:3: task 0 of process 1 is 0 instructions long; it must be between 1 and 281_474_976_710_656
plan.toml:6: idle slot 1 is 0 instructions long; it must be between 1 and 281_474_976_710_656";

    task_ids_do_not_ascend:
"[[process]]
id = 1
tasks = [{ id = 4, planned_insns = 10 }, { id = 4, planned_insns = 10 }]
[[cpu]]
cpu = 0
slots = [1, 1]
" => "plan.toml:3: task 4 of process 1 comes after task 4; task ids must ascend, leave them out to have them numbered";

    config_out_of_range:
"[config]
sigma_t1_permille = 1000
[[process]]
id = 1
tasks = [10]
[[cpu]]
cpu = 0
slots = [1]
" => "plan.toml:2: sigma_t1_permille is 1_000; it must be between 1_001 and 99_999";

    a_t1_above_which_no_t2_is:
"[config]
sigma_t1_permille = 100_000
[[process]]
id = 1
tasks = [10]
[[cpu]]
cpu = 0
slots = [1]
" => "plan.toml:2: sigma_t1_permille is 100_000; it must be between 1_001 and 99_999";

    lease_is_none_or_in_its_range:
"lease_ns = 5
[[process]]
id = 1
tasks = [10]
[[cpu]]
cpu = 0
slots = [1]
" => "plan.toml:1: lease_ns is 5; write 0 for none, or 100_000_000 to 3_600_000_000_000 (\"100ms\" to \"1h\")";

    numbers_of_other_types:
"plan_id = true
dealt_seq = 99999999999999999999999999999999999999999999
lease_ns = \"5\"
memory_bytes = [1]
" => "\
plan.toml:1: plan_id must be a number, and not true or false; write 1
plan.toml:2: dealt_seq is too large; it must be between 0 and 18_446_744_073_709_551_615
plan.toml:3: lease_ns is \"5\", which has no unit; write \"5ms\", or 5 without quotes
plan.toml:4: memory_bytes must be a number, and not a list; write 20_000_000";

    thresholds_are_named:
"[config]
thresholds = 255
[[process]]
id = 1
tasks = [10]
[[cpu]]
cpu = 0
slots = [1]
" => "plan.toml:2: thresholds is no list; write the names of those that are on: thresholds = [\"t1\", \"t2_task\"]";

    threshold_without_quotes:
"[config]
thresholds = [\"t1\", 2]
" => "\
plan.toml:2: a threshold is named, not numbered; write the names of those that are on: thresholds = [\"t1\", \"t2_task\"]";

    thresholds_misspelt:
"[config]
thresholds = [
    \"t2_tasks\",
    \"everything\",
    \"t1\",
    \"t1\",
]
" => "\
plan.toml:3: there is no threshold t2_tasks; did you mean t2_task?
plan.toml:4: there is no threshold everything; it can be t1, t2_task, t2_process, t2_node, t2_preemptions, tm2_task, tm2_node, info, t2_memory, t2_message, tm2_message
plan.toml:6: threshold t1 stands there twice; remove one";

    flag_is_no_number:
"[config]
idle_is_lateness = 1
" => "plan.toml:2: idle_is_lateness must be true or false, without quotes";

    preemption_way_is_named:
"[config]
preemption_way = \"never\"
idle_piece_ns = 9_999
" => "\
plan.toml:2: there is no way of preemption never; it can be capped, once, next_slot, every_slot";

    idle_policy_is_no_number:
"[config]
idle_policy = 1
" => "plan.toml:2: idle_policy must be a string; put it in quotes";

    dealt_seq_is_a_number:
"dealt_seq = \"12\"
" => "plan.toml:1: dealt_seq is \"12\"; write 12 without quotes";

    numbers_that_others_depend_on:
"[config]
preemption_limit_ns = 1_000_000_000
sigma_t2_permille = 1_050
[[process]]
id = 1
tasks = [10]
[[cpu]]
cpu = 0
slots = [1]
" => "\
plan.toml: t2_task_signaling_limit_ns is left out and so 1_000_000_000, but with the other numbers of [config] it must be between 1_000_000_001 and 562_949_953_421_312, as t1 must be less than t2_task; add it
plan.toml:3: sigma_t2_permille is 1_050; it must be between 1_051 and 100_000, as t1 must be less than t2_task";

    real_and_wait_too_long:
"[[process]]
id = 1
tasks = [{ planned_insns = 10, real_insns = 281474976710657 },
    { planned_insns = 10, wait_insns = 281474976710657 }]
[[cpu]]
cpu = 0
slots = [1, 1, { idle_insns = 5, real_insns = 281474976710657 }]
" => "\
plan.toml:3: real_insns is 281_474_976_710_657; at most 281_474_976_710_656 are allowed
plan.toml:4: wait_insns is 281_474_976_710_657; at most 281_474_976_710_656 are allowed
plan.toml:7: real_insns is 281_474_976_710_657; at most 281_474_976_710_656 are allowed";

    cpu_said_wrong:
"[[process]]
id = 1
cpu = 2
tasks = [10]
[[cpu]]
cpu = 0
slots = [1]
" => "plan.toml:1: process 1 says cpu = 2, but its slots are on CPU 0; move them, or leave cpu out";

    after_is_a_list:
"[[process]]
id = 1
name = \"sort\"
tasks = [10, { name = \"merge\", planned_insns = 10, after = \"pack\" }]
[[process]]
id = 2
name = \"pack\"
tasks = [{ id = 4, planned_insns = 10 }]
[[cpu]]
cpu = 0
slots = [1, 1, 2]
" => "plan.toml:4: after is no list; write the processes, or single tasks of them, that must have ended before it: after = [\"sort\", \"stages/sieve\"]";

    after_names_tasks:
"[[process]]
id = 1
name = \"sort\"
tasks = [10, { name = \"merge\", planned_insns = 10, after = [true] }]
[[process]]
id = 2
name = \"pack\"
tasks = [{ id = 4, planned_insns = 10 }]
[[cpu]]
cpu = 0
slots = [1, 1, 2]
" => "plan.toml:4: this is no process and no task; write the processes, or single tasks of them, that must have ended before it: after = [\"sort\", \"stages/sieve\"]";

    message_without_arrival:
"[[process]]
id = 3
name = \"sort\"
tasks = [10, 10]
[[process]]
id = 5
tasks = [{ planned_insns = 10, after = [{ task = \"sort\" }] }]
[[cpu]]
cpu = 0
slots = [3, 3, 5]
" => "plan.toml:7: a message has a task and a planned arrival; write { task = \"stages/sieve\", arrival = \"12 ms\" }";

    message_of_no_task:
"[[process]]
id = 3
tasks = [10]
[[process]]
id = 5
tasks = [{ planned_insns = 10, after = [{ task = true, arrival = 5 }] }]
[[cpu]]
cpu = 0
slots = [3, 5]
" => "plan.toml:6: this is no process and no task; write the processes, or single tasks of them, that must have ended before it: after = [\"sort\", \"stages/sieve\"]";

    message_beyond_all_times:
"[[process]]
id = 3
tasks = [10]
[[process]]
id = 5
tasks = [{ planned_insns = 10, after = [{ task = 3, arrival = 18_446_744_073_709_551_615 }] }]
[[cpu]]
cpu = 0
slots = [3, 5]
" => "plan.toml:6: this arrival is beyond all times; write { task = \"stages/sieve\", arrival = \"12 ms\" }";

    after_unknown_process:
"[[process]]
id = 1
name = \"sort\"
tasks = [10, { name = \"merge\", planned_insns = 10, after = [\"pakc\"] }]
[[process]]
id = 2
name = \"pack\"
tasks = [{ id = 4, planned_insns = 10 }]
[[cpu]]
cpu = 0
slots = [1, 1, 2]
" => "plan.toml:4: there is no process pakc; did you mean pack?";

    after_unknown_process_without_likeness:
"[[process]]
id = 1
name = \"sort\"
tasks = [10, { name = \"merge\", planned_insns = 10, after = [\"zip/3\"] }]
[[process]]
id = 2
name = \"pack\"
tasks = [{ id = 4, planned_insns = 10 }]
[[cpu]]
cpu = 0
slots = [1, 1, 2]
" => "plan.toml:4: there is no process zip; add a [[process]] for it, or leave it out of after";

    after_unknown_task_name:
"[[process]]
id = 1
name = \"sort\"
tasks = [10, { name = \"merge\", planned_insns = 10 }]
[[process]]
id = 2
name = \"pack\"
tasks = [{ id = 4, planned_insns = 10, after = [\"sort/mrege\"] }]
[[cpu]]
cpu = 0
slots = [1, 1, 2]
" => "plan.toml:8: process sort has no task mrege; did you mean sort/merge?";

    after_unknown_task_name_without_likeness:
"[[process]]
id = 1
name = \"sort\"
tasks = [10, { name = \"merge\", planned_insns = 10 }]
[[process]]
id = 2
name = \"pack\"
tasks = [{ id = 4, planned_insns = 10, after = [\"sort/zip\"] }]
[[cpu]]
cpu = 0
slots = [1, 1, 2]
" => "plan.toml:8: process sort has no task zip; write its number, sort/0, or only sort for its last one";

    after_unknown_task:
"[[process]]
id = 1
name = \"sort\"
tasks = [10, { name = \"merge\", planned_insns = 10 }]
[[process]]
id = 2
name = \"pack\"
tasks = [{ id = 4, planned_insns = 10, after = [\"sort/2\"] }]
[[cpu]]
cpu = 0
slots = [1, 1, 2]
" => "plan.toml:8: task 4 of process pack waits for task 2 of process sort, which the plan does not have; leave it out of after, or add it";

    after_own_process:
"[[process]]
id = 1
name = \"sort\"
tasks = [10, { name = \"merge\", planned_insns = 10, after = [\"sort/0\"] }]
[[process]]
id = 2
name = \"pack\"
tasks = [{ id = 4, planned_insns = 10 }]
[[cpu]]
cpu = 0
slots = [1, 1, 2]
" => "plan.toml:4: task merge of process sort waits for its own process; its tasks follow each other anyway, so leave it out of after";

    after_twice:
"[[process]]
id = 1
name = \"sort\"
tasks = [10, { name = \"merge\", planned_insns = 10 }]
[[process]]
id = 2
name = \"pack\"
tasks = [{ id = 4, planned_insns = 10, after = [\"sort\", \"1/1\"] }]
[[cpu]]
cpu = 0
slots = [1, 1, 2]
" => "plan.toml:8: task 4 of process pack waits for sort twice; leave one of them out of after";

    after_in_a_circle:
"[[process]]
id = 1
name = \"sort\"
tasks = [10, { name = \"merge\", planned_insns = 10, after = [\"pack\"] }]
[[process]]
id = 2
name = \"pack\"
tasks = [{ id = 4, planned_insns = 10, after = [\"sort\"] }]
[[cpu]]
cpu = 0
slots = [1, 1, 2]
" => "plan.toml:4: tasks wait in a circle: sort for pack, pack for sort; leave one of these edges out";
}

/// A fault that only the kernel's validator finds is still reported with its line.
#[test]
fn the_kernels_words_come_with_the_line() {
    let most = 1u64 << 48;
    let tasks = vec![most.to_string(); 16_385].join(",");
    let slots = vec!["1"; 16_385].join(",\n");
    let text =
        format!("[[process]]\nid = 1\ntasks = [{tasks}]\n[[cpu]]\ncpu = 0\nslots = [\n{slots}]\n");
    let said = complaints(&text);
    assert!(said.starts_with("plan.toml:16391: CPU 0, slot 16384: "), "{said}");
}

/// A circle is told whole and with names; in the kernel's words, which has
/// numbers and shows the beginning.
#[test]
fn circles_are_told_whole() {
    let process = |id: u32, after: &str| {
        format!(
            "[[process]]\nid = {id}\nname = \"p{id}\"\n\
             tasks = [1, {{ planned_insns = 1, after = [\"{after}\"] }}, 1]\n"
        )
    };
    let mut text: String = (1..=5).map(|id| process(id, &format!("p{}/1", id % 5 + 1))).collect();
    // Who only waits for the circle is not in it.
    text += &process(6, "p3");
    text += "[[cpu]]\ncpu = 0\nslots = [6, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 6, 6]\n";
    let said = complaints(&text);
    assert_eq!(
        said,
        "plan.toml:4: tasks wait in a circle: p1/1 for p2/1, p2/1 for p3/1, p3/1 for p4/1, \
         p4/1 for p5/1, p5/1 for p1/1; leave one of these edges out"
    );
}

/// The check refuses the dependencies that the kernel refuses, no more and no fewer.
#[test]
fn order_is_refused_as_by_the_kernel() {
    use pbs_plan::{wire, After, Cpu, Plan, Process, Slot, Task};

    let mut seed = 2021u32;
    let mut below = |end: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) % end
    };
    let (mut valid, mut circles) = (0, 0);
    for _ in 0..2_000 {
        let mut plan = Plan::default();
        for id in 1..=4 {
            let first = below(2);
            let tasks = (first..first + 1 + below(3)).map(|id| Task {
                id,
                planned_insns: 10,
                ..Task::default()
            });
            plan.processes.push(Process { id, tasks: tasks.collect(), ..Process::default() });
        }
        for _ in 0..1 + below(5) {
            let (process, after) = (below(4) as usize, below(4) as usize);
            let task = below(plan.processes[process].tasks.len() as u32) as usize;
            let tasks = &plan.processes[after].tasks;
            let known = tasks[below(tasks.len() as u32) as usize].id;
            let after = After {
                process: plan.processes[after].id + below(20) / 19,
                task: known + below(20) / 19,
                ..After::default()
            };
            plan.processes[process].tasks[task].after.push(after);
        }
        for cpu in 0..2 {
            let slots = (0..4).filter(|process| process % 2 == cpu).flat_map(|process| {
                let tasks = plan.processes[process].tasks.len();
                vec![Slot::Process { process }; tasks]
            });
            let slots = slots.collect();
            plan.cpus.push(Cpu { cpu: cpu as u32, slots, ..Cpu::default() });
        }
        let kernel = wire::validate(&wire::encode(&plan));
        let here = pbs_plan::check(&plan);
        assert_eq!(here.is_ok(), kernel.is_ok(), "{here:?} {kernel:?}");
        valid += u32::from(here.is_ok());
        let is_circle = kernel.is_err_and(|problem| problem.message.contains("circle"));
        if is_circle {
            circles += 1;
            assert!(here.unwrap_err()[0].message.contains("circle"));
        }
    }
    assert!(valid > 100 && circles > 100, "{valid} {circles}");
}

/// The kernel takes 1,024 processes of a CPU: one more is told before.
#[test]
fn a_cpu_has_too_many_processes() {
    let plan = |processes: usize| {
        let numbers = 1..=processes;
        let each = numbers.clone().map(|id| format!("[[process]]\nid = {id}\ntasks = [10]\n"));
        let slots: Vec<_> = numbers.map(|id| id.to_string()).collect();
        format!("{}[[cpu]]\ncpu = 0\nslots = [{}]\n", each.collect::<String>(), slots.join(", "))
    };
    assert_eq!(complaints(&plan(1024)), "valid");
    assert_eq!(
        complaints(&plan(1025)),
        "plan.toml:3076: CPU 0 has 1_025 processes, and may have 1_024; move some to another CPU, or \
         plan them later"
    );
}

/// The message has the names of all policies, also of one that was added.
#[test]
fn idle_policy_is_named() {
    let names = pbs_plan::config_words("idle_policy").join(", ");
    assert!(names.starts_with("latest, least_slack, pieces, equal_shares, by_state, round_robin"));
    assert_eq!(
        complaints("[config]\nidle_policy = \"slack\"\n"),
        format!("plan.toml:2: there is no idle policy slack; it can be {names}")
    );
}
