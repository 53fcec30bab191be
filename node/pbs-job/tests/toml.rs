// SPDX-License-Identifier: GPL-2.0
//! Jobs and machines in TOML: samples, documentation, and what may be left out.

use std::fs;
use std::path::Path;

use pbs_job::graph::graph_from_toml;
use pbs_job::{
    cpu_list, cpus_of_list, job_from_toml, job_to_toml, machine_from_toml, machine_to_toml,
    with_values, Action, Job, Start,
};

const DOCUMENTATION: &str = include_str!("../../../Documentation/jobs.rst");

/// The TOML blocks of the documentation.
fn documented() -> Vec<String> {
    let blocks = DOCUMENTATION.split(".. code-block:: toml\n").skip(1);
    let block = |text: &str| {
        let lines = text.lines();
        let lines = lines.take_while(|line| line.is_empty() || line.starts_with("    "));
        lines.collect::<Vec<_>>().join("\n")
    };
    blocks.map(block).collect()
}

fn process_insns(job: &Job) -> Vec<u64> {
    let processes = 0..job.processes.len();
    processes.map(|process| job.process_insns(process)).collect()
}

#[test]
fn what_the_documentation_shows_is_valid() {
    let blocks = documented();
    let [machine, simple, net, holds, graph] = &blocks[..] else {
        panic!("a machine, three jobs and a task graph");
    };
    assert_eq!(job_from_toml(holds).unwrap().amounts(0)[0].resource, "matlab");
    assert_eq!(graph_from_toml(graph).unwrap().tasks.len(), 6);
    let machine = machine_from_toml(machine).unwrap();
    assert_eq!(machine.cores().count(), 3);
    let simple = job_from_toml(simple).unwrap();
    // pbsctl itself is the initial process.
    let pbsctl = simple.initial_process().unwrap();
    assert_eq!(simple.processes[pbsctl].name.as_deref(), Some("pbsctl"));
    // Messages name the job instead: its file has no process pbsctl.
    assert_eq!(simple.subject(pbsctl), "the job");
    assert_eq!(simple.subject(0), format!("process {}", simple.processes[0].label()));
    assert_eq!(process_insns(&simple), [95_000_000, 83_200_000, 0]);
    let net = job_from_toml(net).unwrap();
    assert_eq!(net.initial_process(), Some(0));
    assert_eq!(net.children(0).collect::<Vec<_>>(), [1]);
}

#[test]
fn samples_are_valid() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples");
    let texts = |dir: &str| {
        let files = fs::read_dir(samples.join(dir)).unwrap();
        let texts = files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
        let texts: Vec<_> = texts.collect();
        assert!(!texts.is_empty());
        texts
    };
    for text in texts("jobs") {
        let again = job_to_toml(&job_from_toml(&text).unwrap());
        assert_eq!(job_to_toml(&job_from_toml(&again).unwrap()), again);
    }
    for text in texts("machines") {
        let again = machine_to_toml(&machine_from_toml(&text).unwrap());
        assert_eq!(machine_to_toml(&machine_from_toml(&again).unwrap()), again);
    }
}

#[test]
fn one_process_is_the_initial_one() {
    let job = job_from_toml(
        "name = \"one\"\ndeadline_ns = 10\nstart_ns = 2\npriority = 7\n[[process]]\nid = 4\n\
         memory_bytes = 5\nruntime_ns = 3\ncommand = [\"true\"]\ntasks = [70]\n",
    )
    .unwrap();
    assert_eq!((job.start_ns, job.deadline_ns, job.priority), (2, 10, 7));
    let [process] = &job.processes[..] else {
        panic!("one process");
    };
    assert_eq!((process.id, process.runtime_ns), (4, Some(3)));
    assert!(matches!(&process.start, Start::Command(command) if command.argv == ["true"]));
    let tasks = process.tasks.iter().map(|&task| &job.tasks[task]);
    let tasks: Vec<_> = tasks.map(|task| (task.action, task.insns, task.memory_bytes)).collect();
    assert_eq!(tasks, [(Action::Start, 0, 5), (Action::Calculation, 70, 5), (Action::End, 0, 5)]);
    let later = job.clone().submitted_at(100).unwrap();
    assert_eq!((later.start_ns, later.deadline_ns), (102, 110));
    assert_eq!(job.submitted_at(u64::MAX - 9), None);
}

/// The checkpoint of a job is the same in TOML and in JSON, and is read again.
#[test]
fn jobs_have_a_checkpoint() {
    let text = |key: &str| {
        format!(
            "name = \"j\"\ndeadline_ns = 9\n{key}\n[[process]]\nid = 1\nmemory_bytes = 1\n\
             tasks = [6]\n"
        )
    };
    let job = job_from_toml(&text("checkpoint = { signal = \"SIGUSR1\", within_ns = \"2s\" }"));
    let job = job.unwrap();
    let checkpoint = job.checkpoint.as_ref().unwrap();
    assert_eq!((checkpoint.signal.as_str(), checkpoint.within_ns), ("USR1", 2_000_000_000));
    assert_eq!(job_from_toml(&job_to_toml(&job)).unwrap().checkpoint, job.checkpoint);
    let json = pbs_job::job_to_json(&job);
    assert_eq!(json["checkpoint"]["signal"], "USR1");
    assert_eq!(json["checkpoint"]["within_ns"], 2_000_000_000);
    let without = job_from_toml(&text("")).unwrap();
    assert_eq!(without.checkpoint, None);
    assert!(!job_to_toml(&without).contains("checkpoint"));
    let write = "write checkpoint = { signal = \"USR1\", within_ns = \"2s\" }";
    for (key, told) in [
        ("checkpoint = { signal = \"USR1\" }", format!("checkpoint has no within_ns; {write}")),
        ("checkpoint = { within_ns = 5 }", format!("checkpoint has no signal; {write}")),
        (
            "checkpoint = { signal = \"KILL\", within_ns = 5 }",
            "signal KILL cannot ask a program to save; write one of HUP, INT, TERM, USR1, USR2"
                .into(),
        ),
    ] {
        let problems = job_from_toml(&text(key)).unwrap_err();
        let [problem] = &problems[..] else { panic!("{problems:?}") };
        assert_eq!(problem.message, told);
        assert_eq!(problem.line.map(u32::from), Some(3));
    }
    for key in ["checkpoint = 5", "checkpoint = { signal = \"USR1\", within_ns = 0 }"] {
        assert!(job_from_toml(&text(key)).is_err(), "{key}");
    }
}

/// Value and penalty are numbers of the job, are 1 and 0 if they are left out, and are written
/// again.
#[test]
fn jobs_have_a_value_and_a_penalty() {
    let text = |keys: &str| {
        format!(
            "name = \"j\"\ndeadline_ns = 9\n{keys}[[process]]\nid = 1\nmemory_bytes = 1\n\
             tasks = [6]\n"
        )
    };
    let worth = |keys: &str| {
        let job = job_from_toml(&text(keys)).unwrap();
        let again = job_to_toml(&job);
        assert_eq!(job_from_toml(&again).unwrap().worth, job.worth);
        let json = pbs_job::job_to_json(&job);
        assert_eq!(json["value"], job.worth.value);
        assert_eq!(json["penalty"], job.worth.penalty);
        assert_eq!(again.contains("value ="), job.worth.value != 1);
        assert_eq!(again.contains("penalty ="), job.worth.penalty != 0);
        (job.worth.value, job.worth.penalty, job.worth.at_stake())
    };
    assert_eq!(worth(""), (1, 0, 1));
    assert_eq!(
        worth("value = 1_000_000_000_000\npenalty = 3\n"),
        (1_000_000_000_000, 3, 1_000_000_000_003)
    );
    assert_eq!(worth("value = 0\n"), (0, 0, 0));
    for key in ["value", "penalty"] {
        let problems = job_from_toml(&text(&format!("{key} = 1_000_000_000_001\n"))).unwrap_err();
        let [problem] = &problems[..] else { panic!("{problems:?}") };
        let range = "it must be between 0 and 1_000_000_000_000";
        assert_eq!(problem.message, format!("{key} is 1_000_000_000_001; {range}"));
        assert_eq!(problem.line.map(u32::from), Some(3));
        let problems = job_from_toml(&text(&format!("{key} = -1\n"))).unwrap_err();
        assert!(problems[0].message.contains(key), "{problems:?}");
    }
}

/// The task after a synchronous message waits for its receiver, as if it named it.
#[test]
fn synchronous_messages_make_the_sender_wait() {
    let text = |message: &str, receiver: &str| {
        format!(
            "name = \"j\"\ndeadline_ns = 9\n[[process]]\nid = 1\nmemory_bytes = 1\ntasks = [\
             {{ id = 1, action = \"communication\", insns = 5, to = 9{message} }}, 6]\n\
             [[process]]\nid = 2\nmemory_bytes = 1\ntasks = [7, \
             {{ id = 9, action = \"communication\", insns = 8{receiver} }}, 9]\n"
        )
    };
    let waits = |job: &pbs_job::Job| -> Vec<u32> {
        let next = job.tasks.iter().find(|task| task.insns == 6).unwrap();
        next.after.iter().map(|&before| job.tasks[before].id).collect()
    };
    let job = job_from_toml(&text(", bytes = 4, synchronous = true", "")).unwrap();
    assert_eq!(waits(&job), [9]);
    assert_eq!(waits(&job_from_toml(&pbs_job::job_to_toml(&job)).unwrap()), [9]);
    let named = text(", bytes = 4, synchronous = true", "")
        .replace(", 6]", ", { insns = 6, after = [9] }]");
    assert_eq!(waits(&job_from_toml(&named).unwrap()), [9]);
    for asynchronous in [", bytes = 4", ", bytes = 4, synchronous = false"] {
        assert_eq!(waits(&job_from_toml(&text(asynchronous, "")).unwrap()), [0; 0]);
    }
    let problem = |text: &str| job_from_toml(text).unwrap_err()[0].message.clone();
    assert_eq!(
        problem(&text(", synchronous = true", "")),
        "task 1 sends synchronously, but no task waits for its message; add the receiver and the \
         size: to = ..., bytes = ..."
    );
    let twice = text(", bytes = 4, synchronous = true", ", after = [2]");
    assert!(problem(&twice).contains("wait for each other in a circle"), "{}", problem(&twice));
}

#[test]
fn start_and_end_may_be_written() {
    let text = "name = \"two\"\ndeadline_ns = 10\n\
        [[process]]\nid = 0\nmemory_bytes = 5\ntasks = [\n\
        { action = \"start\", insns = 1 }, { action = \"fork\", child = 1, insns = 2 },\n\
        { action = \"fork_end\" }, { action = \"communication\", insns = 3, to = 8 },\n\
        { action = \"join\", child = \"b\" }, { action = \"end\" }]\n\
        [[process]]\nid = 1\nname = \"b\"\nmemory_bytes = 5\n\
        tasks = [{ action = \"fork_end\", id = 7 }, { action = \"communication\", insns = 4 }]\n";
    let job = job_from_toml(text).unwrap();
    let ids: Vec<_> = job.tasks.iter().map(|task| task.id).collect();
    assert_eq!(ids, [0, 1, 2, 3, 4, 5, 7, 8]);
    assert_eq!(job.tasks[3].action, Action::Communication { partner: Some(7) });
    // Nobody waits for a message without a size.
    assert_eq!(job.successors(3).collect::<Vec<_>>(), [4]);
    let sized = text.replace("to = 8 }", "to = 8, bytes = 4_096 }");
    let message = job_from_toml(&sized).unwrap();
    assert_eq!(message.tasks[3].message_bytes, Some(4096));
    assert_eq!(message.predecessors(7).collect::<Vec<_>>(), [6, 3]);
    assert_eq!(message.successors(3).collect::<Vec<_>>(), [4, 7]);
    let again = job_from_toml(&pbs_job::job_to_toml(&message)).unwrap();
    assert_eq!(again.tasks[3].message_bytes, Some(4096));
    assert_eq!(again.tasks[7].senders, [3]);
    let circle = sized.replace("insns = 4 }", "insns = 4, to = 3, bytes = 0 }");
    let problems = job_from_toml(&circle).unwrap_err();
    assert_eq!(
        problems[0].message,
        "tasks 3 and 8 wait for each other in a circle and can never start; lead one of them \
         elsewhere, and join a process only after its fork task, and a message is received after \
         it is sent"
    );
    let nobody = text.replace("to = 8 }", "bytes = 4_096 }");
    assert_eq!(
        job_from_toml(&nobody).unwrap_err()[0].message,
        "task 3 has a message of some bytes, but no receiver; name the communication that receives \
         it: to = ..."
    );
    // The communication waits for nobody.
    assert_eq!(job.predecessors(3).collect::<Vec<_>>(), [2]);
    assert_eq!(job.predecessors(4).collect::<Vec<_>>(), [3, 7]);
    assert_eq!(job.successors(1).collect::<Vec<_>>(), [2, 6]);
    assert_eq!(process_insns(&job), [6, 4]);
}

#[test]
fn a_process_may_have_a_rate() {
    let text = "name = \"j\"\ndeadline_ns = 9\n[[process]]\nid = 1\nmemory_bytes = 1\n\
                rate_insns_per_s = 750_000_000\ncommand = [\"a\"]\ntasks = [5]\n";
    let job = job_from_toml(text).unwrap();
    let of = |job: &Job| job.processes[0].rate_insns_per_s;
    assert_eq!(of(&job), Some(750_000_000));
    let written = job_to_toml(&job);
    assert_eq!(of(&job_from_toml(&written).unwrap()), Some(750_000_000));
    let without = text.replace("rate_insns_per_s = 750_000_000\n", "");
    assert_eq!(of(&job_from_toml(&without).unwrap()), None);
    for wrong in ["0", "1_099_511_627_777", "\"fast\""] {
        let problems = job_from_toml(&text.replace("750_000_000", wrong)).unwrap_err();
        let problem = problems[0].message.clone();
        assert!(problem.contains("rate_insns_per_s"), "{problem}");
    }
}

#[test]
fn a_job_may_be_confined_to_cpus() {
    let text = "name = \"j\"\ndeadline_ns = 9\n[[process]]\nid = 1\nmemory_bytes = 1\n\
                command = [\"a\"]\ntasks = [5]\n";
    let job = |values: &[(&str, String)]| job_from_toml(&with_values(text, values)).unwrap();
    assert!(job(&[]).cpus.is_empty());
    assert!(!job_to_toml(&job(&[])).contains("cpus"));
    // It is a set.
    let confined = job(&[("cpus", "[5, 0, 1_0]".into())]);
    assert_eq!(confined.cpus, [0, 5, 10]);
    let written = job_to_toml(&confined);
    assert!(written.contains("\ncpus = [0, 5, 10]\n\n[[process]]"), "{written}");
    assert_eq!(job_from_toml(&written).unwrap().cpus, [0, 5, 10]);
    // A list that is too long for a line.
    let all: Vec<u32> = (0..200).collect();
    let many = job(&[("cpus", format!("{all:?}"))]);
    assert_eq!(job_from_toml(&job_to_toml(&many)).unwrap().cpus, all);
}

#[test]
fn cores_have_the_numbers_of_linux() {
    let node = |name: &str, cores: &str| {
        format!(
            "[[node]]\nname = \"{name}\"\nmemory_bytes = 1\nrate_insns_per_s = 3\n\
             cores = [{cores}]\n"
        )
    };
    let cores = "\"c0\", { name = \"c1\", cpu = 7 }, \"c2\"";
    let text = node("one", cores) + &node("two", "\"c0\", \"c1\"");
    let machine = machine_from_toml(&text).unwrap();
    assert_eq!(machine.cpus().collect::<Vec<_>>(), [0, 7, 2, 0, 1]);
    let job = |cpus: &[u32]| Job { cpus: cpus.to_vec(), ..Job::default() };
    let none: [u32; 0] = [];
    assert_eq!(job(&[]).missing_cpus(&machine), none);
    assert_eq!(job(&[1, 2, 7]).missing_cpus(&machine), none);
    assert_eq!(job(&[1, 3, 7, 9]).missing_cpus(&machine), [3, 9]);
    assert_eq!(
        cpu_list(&[7, 1, 0, 2, 9, 10, u32::MAX, u32::MAX - 1]),
        "0-2,7,9-10,4294967294-4294967295"
    );
    assert_eq!(cpu_list(&[]), "");
}

#[test]
fn durations_are_whole_ticks() {
    let text = "[[node]]\nname = \"n\"\nmemory_bytes = 1\nrate_insns_per_s = 3\ncores = [\"c\"]\n";
    let machine = machine_from_toml(text).unwrap();
    assert_eq!(machine.duration_ns(1, 3), 333_333_334);
    assert_eq!(machine.duration_ns(3, 3), 1_000_000_000);
    assert_eq!(machine.duration_ns(u64::MAX, 1), u64::MAX);
    let machine = machine_from_toml(&format!("tick_ns = 1_000_000\n{text}")).unwrap();
    assert_eq!(machine.duration_ns(1, 3), 334_000_000);
}

/// With bytes lost or changed anywhere it is refused or read, and nothing
/// panics; what is read can be written and read again.
#[test]
fn damaged_files_are_no_trouble() {
    let text = &documented()[2];
    let mut refused = 0;
    for at in 0..text.len() {
        for (with, lost) in [("", 1), ("", 5), ("9", 0), ("\"", 1), ("-", 0), ("é", 1)] {
            let rest = text.get(at + lost..).unwrap_or("");
            let damaged = format!("{}{with}{rest}", &text[..at]);
            match job_from_toml(&damaged) {
                Ok(job) => {
                    let written = job_to_toml(&job);
                    let again = job_from_toml(&written).unwrap();
                    assert_eq!(job_to_toml(&again), written, "{damaged}");
                }
                Err(problems) => refused += usize::from(!problems.is_empty()),
            }
        }
    }
    assert!(refused > text.len(), "{refused}");
}

#[test]
fn lists_of_cpus_are_read_as_linux_writes_them() {
    assert_eq!(cpus_of_list("0"), Some(vec![0]));
    assert_eq!(cpus_of_list("0-2,5"), Some(vec![0, 1, 2, 5]));
    for text in ["a", "", "3-1", "0-4294967295", "8192"] {
        assert_eq!(cpus_of_list(text), None, "{text}");
    }
    assert_eq!(cpus_of_list(&cpu_list(&[7, 1, 2, 3])), Some(vec![1, 2, 3, 7]));
}
