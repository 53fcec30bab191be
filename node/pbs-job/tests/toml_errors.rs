// SPDX-License-Identifier: GPL-2.0
//! Messages about the TOML of a job or machine.

mod told;

use pbs_job::{job_from_toml, machine_from_toml};
use told::told;

const TOML: &str = r#"name = "job"
deadline_ns = 9
[[process]]
id = 1
name = "one"
memory_bytes = 5
command = ["a"]
tasks = [
    3,
    { action = "fork", child = "two" },
    { action = "join", child = "two" },
]
[[process]]
id = 2
name = "two"
memory_bytes = 5
tasks = [4]
"#;

/// Returns the messages about the TOML after a replacement.
fn replaced(from: &str, to: &str) -> Vec<String> {
    assert!(TOML.contains(from), "{from}");
    told(job_from_toml(&TOML.replacen(from, to, 1)))
}

#[test]
fn toml_of_jobs() {
    assert_eq!(replaced("3", "3"), ["valid"]);
    assert_eq!(
        replaced("deadline_ns = 9\n", ""),
        ["job: the job has no deadline; add deadline_ns = 10_000_000_000, counted from its \
          submission"]
    );
    assert_eq!(
        replaced("deadline_ns = 9", "deadline_ns = -9"),
        ["job:2: deadline_ns is -9; it must be between 1 and 4_611_686_018_427_387_904"]
    );
    assert_eq!(
        replaced("deadline_ns = 9", "deadline_ns = 0"),
        ["job:2: deadline_ns is 0; it must be between 1 and 4_611_686_018_427_387_904"]
    );
    assert_eq!(
        replaced("deadline_ns = 9", "start_ns = 9\ndeadline_ns = 9"),
        ["job:3: the job's deadline, 9, is not after its start, 9; put it later"]
    );
    let cpus = |list: &str| replaced("9\n", &format!("9\ncpus = {list}\n"));
    assert_eq!(cpus("[3, 0]"), ["valid"]);
    assert_eq!(
        cpus("2"),
        ["job:3: cpus is no list; write the numbers of CPUs: cpus = [2, 3]; or leave it out \
             to allow all CPUs"]
    );
    assert_eq!(
        cpus("[]"),
        ["job:3: cpus is empty, and the job can run nowhere; write the numbers of CPUs: cpus = \
             [2, 3]; or leave it out to allow all CPUs"]
    );
    assert_eq!(
        cpus("[\n  2, \"a\",\n  -1, 3,\n  2, 4.5, 3 ]"),
        [
            "job:4: a CPU must be a number, and not \"a\"; write it without quotes: 1",
            "job:5: a CPU is -1; it must be between 0 and 4_294_967_295",
            "job:6: cpus names CPU 2 twice; write each once",
            "job:6: a CPU must be a whole number; write it without point and exponent: 20_000_000",
            "job:6: cpus names CPU 3 twice; write each once",
        ]
    );
    assert_eq!(
        replaced("name = \"job\"\n", ""),
        ["job: the job has no name, under which its history is stored; add name = \"...\""]
    );
    assert_eq!(
        replaced("memory_bytes = 5\n", ""),
        ["job:3: process one has no memory size; add memory_bytes = 64_000_000, rather too much \
          than too little"]
    );
    assert_eq!(
        replaced("3,", "-3,"),
        ["job:9: a task is -3; it must be between 0 and 281_474_976_710_656"]
    );
    assert_eq!(
        replaced("\"fork\", child = \"two\"", "\"fork\", child = \"twoo\""),
        ["job:10: task 1 names process twoo, which is not there; did you mean two?"]
    );
    assert_eq!(
        replaced("\"fork\", child = \"two\"", "\"fork\", child = \"one\""),
        ["job:10: task 1 forks process one, to which it belongs; name another process"]
    );
    // Nothing is said of the net where nobody knows which task is meant, or where there is none.
    assert_eq!(
        replaced("tasks = [4]", "tasks = [{ id = 0, insns = 4 }]"),
        ["job:17: task id 0 is taken by line 9; choose another for task 0"]
    );
    let empty = "name = \"job\"\ndeadline_ns = 9\n";
    assert_eq!(
        told(job_from_toml(empty)),
        ["job: the job has no process; add a [[process]] with id, memory_bytes and tasks"]
    );
    let idle = format!("{empty}[[process]]\nid = 1\nmemory_bytes = 5\ntasks = []\n");
    assert_eq!(
        told(job_from_toml(&idle)),
        ["job:3: process 1 has no task; add one, or remove the process"]
    );
    assert_eq!(
        replaced("\"fork\", child = \"two\"", "\"spawn\""),
        ["job:10: there is no action spawn; it can be start, end, fork, fork_end, join, \
          calculation, communication"]
    );
    assert_eq!(
        replaced("tasks = [4]", "taks = [4]"),
        [
            "job:13: process two has no tasks; add their instructions: tasks = [20_000_000, ...]",
            "job:17: [[process]] has no key taks; did you mean tasks?",
        ]
    );
    assert_eq!(
        replaced("tasks = [4]", "tasks = [4, 5]\ncommand = [\"b\"]"),
        ["job:18: process two has 2 tasks, but the whole life of its command is one; write \
          commands = [[...], ...] with one command per task, or attaches = \"itself\" if the \
          program marks its own task ends"]
    );
    assert_eq!(
        replaced("tasks = [4]", "tasks = [4, { child = 1, insns = 1 }]"),
        ["job:17: a calculation has no child; only fork and join tasks have one"]
    );
    assert_eq!(
        replaced("tasks = [4]", "tasks = [{ name = \"n\" }]"),
        ["job:17: a calculation takes instructions; add insns = 20_000_000"]
    );
    assert_eq!(
        replaced("    { action = \"join\", child = \"two\" },\n", ""),
        ["job:16: task 2 is the last of process two and leads nowhere, and the process is never \
          joined; lead it to a join task of the process that forked it"]
    );
}

/// Other than in plans, `after` of a job names tasks alone.
#[test]
fn a_process_is_no_task_to_wait_for() {
    let after = |name: &str| {
        let tasks = format!("[4, {{ insns = 5, after = [\"{name}\"] }}]");
        let text = "name = \"job\"\ndeadline_ns = 9\n[[process]]\nid = 1\nname = \"one\"\n\
                    memory_bytes = 5\ntasks = [{ name = \"load\", insns = 3 }, 4]\n[[process]]\n\
                    id = 2\nname = \"two\"\nmemory_bytes = 5\ntasks = ";
        told(job_from_toml(&format!("{text}{tasks}\n")))
    };
    assert_eq!(after("load"), ["valid"]);
    assert_eq!(
        after("one"),
        ["job:12: task 3 waits for one: this is a process; name one of its tasks: load, or 1"]
    );
    assert_eq!(
        after("one/load"),
        ["job:12: task 3 waits for one/load: in a job, a task is named without its process; write \
          load"]
    );
    assert_eq!(
        after("laod"),
        ["job:12: task 3 waits for task laod, which is not there; did you mean load?"]
    );
}

#[test]
fn toml_of_machines() {
    let valid = "[[node]]\nname = \"n\"\nmemory_bytes = 1\nrate_insns_per_s = 3\n\
                 cores = [{ name = \"c\", cpu = 1 }, { name = \"d\", cpu = 2 }]\n";
    let replaced = |from: &str, to: &str| {
        assert!(valid.contains(from), "{from}");
        told(machine_from_toml(&valid.replacen(from, to, 1)))
    };
    assert_eq!(replaced("n", "n"), ["valid"]);
    assert_eq!(
        told(machine_from_toml("")),
        ["job: the machine has no node; add a [[node]] with name, memory_bytes, \
          rate_insns_per_s and cores"]
    );
    assert_eq!(
        replaced("rate_insns_per_s = 3", "rate_insns_per_s = 0"),
        [
            "job:1: rate_insns_per_s of core c of node n is 0; it must be between 1 and \
             1_099_511_627_776",
            "job:1: rate_insns_per_s of core d of node n is 0; it must be between 1 and \
             1_099_511_627_776",
        ]
    );
    assert_eq!(
        replaced("rate_insns_per_s = 3\n", ""),
        [
            "job:4: core c has no rate; add rate_insns_per_s = 1_000_000_000 to it or to its node",
            "job:4: core d has no rate; add rate_insns_per_s = 1_000_000_000 to it or to its node",
        ]
    );
    assert_eq!(
        replaced("memory_bytes = 1\n", ""),
        ["job:1: node n has no memory; add memory_bytes = 8_000_000_000"]
    );
    assert_eq!(
        replaced("cpu = 2", "cpu = 1"),
        ["job:1: cores c and d of node n are both CPU 1; correct one"]
    );
    assert_eq!(
        replaced("\"d\"", "\"c\""),
        ["job:1: core name \"c\" of node n is empty or taken; choose another"]
    );
    let twice = format!("{valid}{valid}");
    assert_eq!(
        told(machine_from_toml(&twice)),
        ["job:6: node name \"n\" is empty or taken; choose another"]
    );
    let empty = replaced("[{ name = \"c\", cpu = 1 }, { name = \"d\", cpu = 2 }]", "[]");
    assert_eq!(
        empty,
        ["job:1: node n has no core; write a name, or a table, for each: cores = [{ name = \
          \"c0\", cpu = 0 }]"]
    );
}

#[test]
fn links_are_read_and_checked() {
    let nodes = "[[node]]\nname = \"a\"\nmemory_bytes = 1\nrate_insns_per_s = 3\n\
                 cores = [\"c\"]\n[[node]]\nname = \"b\"\nmemory_bytes = 1\n\
                 rate_insns_per_s = 3\ncores = [\"c\"]\n";
    let link = "[[link]]\nnodes = [\"b\", \"a\"]\nlatency_ns = 40\n\
                bandwidth_bytes_per_s = 3\n";
    let valid = format!("{nodes}{link}");
    let machine = machine_from_toml(&valid).unwrap();
    assert_eq!((machine.link(0, 1), machine.link(1, 0)), (Some(0), Some(0)));
    assert_eq!(machine.link(0, 0), None);
    // A third of a nanosecond is a whole one.
    assert_eq!(machine.transfer_ns(0, 4), 1_333_333_334);
    let again = machine_from_toml(&pbs_job::machine_to_toml(&machine)).unwrap();
    assert_eq!((again.links[0].nodes, again.links[0].latency_ns), ([0, 1], 40));
    assert_eq!(again.links[0].bandwidth_bytes_per_s, 3);
    let replaced = |what: &str, by: &str| told(machine_from_toml(&valid.replace(what, by)));
    assert_eq!(
        replaced("nodes = [\"b\", \"a\"]\n", ""),
        ["job:11: the link has no nodes; write the names of two nodes: nodes = [\"n0\", \"n1\"]"]
    );
    assert_eq!(
        replaced("[\"b\", \"a\"]", "[\"b\", \"d\"]"),
        ["job:12: there is no node d; write the names of two nodes: nodes = [\"n0\", \"n1\"]"]
    );
    assert_eq!(
        replaced("[\"b\", \"a\"]", "[\"b\", \"b\"]"),
        ["job:12: a link connects two different nodes; write the names of two nodes: nodes = \
             [\"n0\", \"n1\"]"]
    );
    assert_eq!(
        replaced("bandwidth_bytes_per_s = 3\n", ""),
        ["job:11: the link has no bandwidth; add bandwidth_bytes_per_s = 125_000_000"]
    );
    assert_eq!(
        replaced("bandwidth_bytes_per_s = 3\n", "bandwidth_bytes_per_s = 0\n"),
        ["job:11: bandwidth_bytes_per_s of the link of a and b is 0; it must be between 1 and \
             1_125_899_906_842_624"]
    );
    let twice = format!("{valid}{link}");
    assert_eq!(
        told(machine_from_toml(&twice)),
        ["job:15: nodes a and b have a link already; remove one"]
    );
}
