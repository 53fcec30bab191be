// SPDX-License-Identifier: GPL-2.0
//! `pbsctl explain` as people and scripts use it.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{directory, pbsctl, scratch, Ran};
use pbs_history::{Fingerprint, Kind, NewRun, Options, Outcome, ProcessRun, Store, TaskRun};
use pbs_job::with_values;
use serde_json::Value;

/// Two cores of 1000 instructions a millisecond.
const MACHINE: &str = "name = \"lab\"\n[[node]]\nname = \"alice\"\nmemory_bytes = 1_000_000\n\
                       rate_insns_per_s = 1_000_000\ncores = [\"c0\", \"c1\"]\n";

const FILES: &[(&str, &str)] = &[("lab.toml", MACHINE)];

/// A job whose processes run beside each other: the instructions and the memory
/// of each.
fn job(deadline_ns: u64, processes: &[(u64, u64)]) -> String {
    let mut text = format!("name = \"job\"\ndeadline_ns = {deadline_ns}\n");
    for (index, (insns, memory_bytes)) in processes.iter().enumerate() {
        text += &format!(
            "[[process]]\nid = {index}\nname = \"p{index}\"\nmemory_bytes = {memory_bytes}\n\
             tasks = [{insns}]\n"
        );
    }
    text
}

/// Explains the jobs, of whose runs nothing is known.
fn explain(directory: &Path, jobs: &[&str], arguments: &[&str]) -> Ran {
    let path = |name: &str| directory.join(name).to_str().unwrap().to_string();
    let (machine, history) = (path("lab.toml"), path("history.db"));
    let mut all = vec!["explain", "--whole-rate", "--machine", &machine];
    all.extend(["--history", &history]);
    let files: Vec<_> = (0..jobs.len()).map(|n| path(&format!("{n}.toml"))).collect();
    for (file, job) in files.iter().zip(jobs) {
        fs::write(file, job).unwrap();
    }
    all.extend(files.iter().map(String::as_str));
    all.extend(arguments);
    pbsctl(&all, "")
}

/// Declined as said, and accepted with the deadline that is told, but not with
/// half of it.
fn declined(name: &str, deadline_ns: u64, processes: &[(u64, u64)], arguments: &[&str]) -> Value {
    let directory = directory(name, FILES);
    let mut json = vec!["--json"];
    json.extend(arguments);
    let ran = explain(&directory, &[&job(deadline_ns, processes)], &json);
    assert_eq!((ran.status, ran.stderr.as_str()), (6, ""), "{}", ran.stdout);
    let told = ran.json();
    assert_eq!(told["admitted"], false);
    let declined = told["jobs"][0]["declined"].clone();
    if let Some(earliest_ns) = declined["earliest_deadline_ns"].as_u64() {
        assert!(earliest_ns > deadline_ns);
        let ran = explain(&directory, &[&job(earliest_ns, processes)], arguments);
        assert_eq!(ran.status, 0, "{}", ran.stdout);
        let ran = explain(&directory, &[&job(earliest_ns / 2, processes)], arguments);
        assert_eq!(ran.status, 6, "{}", ran.stdout);
    }
    declined
}

#[test]
fn an_admitted_job_has_its_plan_told() {
    let directory = directory("explain-admitted", FILES);
    let job = job(50_000_000, &[(10_000, 300_000), (20_000, 400_000)]);
    let ran = explain(&directory, &[&job], &[]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    for part in [
        "0.toml: job job would be admitted\n",
        "20.000 ms, 30.000 ms before the deadline",
        "684 KiB at most of the 977 KiB of node alice",
        "history.db is not there): figures are from the job files.",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let json = explain(&directory, &[&job], &["--json"]).json();
    assert_eq!(json["admitted"], true);
    let plan = &json["jobs"][0]["plan"];
    assert_eq!(plan["end_ns"], 20_000_000);
    assert_eq!(plan["slack_ns"], 30_000_000);
    assert_eq!(plan["memory"][0]["peak_bytes"], 700_000);
    // No plan ends before the first, so nothing more was tried.
    assert_eq!(plan["attempts"].as_array().unwrap().len(), 1);
    let bound = &json["jobs"][0]["bound"];
    assert_eq!(bound["end_ns"], 20_000_000);
    assert_eq!(bound["plan_over_ns"], 0);
    assert_eq!(json["jobs"][0]["declined"], Value::Null);
    assert_eq!(json["machine"]["cores"], 2);
}

/// Two forked processes share a core, and the parent joins the one that is later.
#[test]
fn the_critical_path_is_told() {
    let directory = directory("explain-critical", FILES);
    let path = |name: &str| directory.join(name).to_str().unwrap().to_string();
    let machine = MACHINE.replace("[\"c0\", \"c1\"]", "[\"c0\"]");
    fs::write(path("lab.toml"), machine).unwrap();
    let job = "name = \"net\"\ndeadline_ns = 50_000_000\n\
        [[process]]\nid = 1\nname = \"parent\"\nmemory_bytes = 9\n\
        tasks = [2_000, { action = \"fork\", child = \"child\" }, 3_000, 1_000, \
        { action = \"join\", child = \"child\" }, 4_000]\n\
        [[process]]\nid = 2\nname = \"child\"\nmemory_bytes = 9\ntasks = [7_000]\n";
    let ran = explain(&directory, &[job], &[]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<_> = ran.stdout.lines().map(words).collect();
    let at = lines.iter().position(|line| line.starts_with("critical path"));
    let told = &lines[at.expect("it is told")..];
    let told: Vec<_> = told.iter().take(3).map(String::as_str).collect();
    let expected = [
        "critical path 0.000 ms to 2.000 ms: parent, task 0",
        "2.000 ms to 9.000 ms: child, task 6, waits for parent",
        "9.000 ms to 17.000 ms: parent, tasks 2 to 5, has the core after child",
    ];
    assert_eq!(told, expected);
    let json = explain(&directory, &[job], &["--json"]).json();
    let path = json["jobs"][0]["plan"]["critical_path"].as_array().unwrap();
    let steps: Vec<_> = path.iter().map(|step| step["because"].as_str().unwrap()).collect();
    assert_eq!(steps, ["others", "order", "core"]);
}

#[test]
fn strategies_and_balancing_can_be_chosen() {
    let directory = directory("explain-chosen", FILES);
    let one = job(50_000_000, &[(10_000, 600_000)]);
    // Two cores end them after 15 ms, and no bound says that it is not 12.5.
    let three = job(50_000_000, &[(10_000, 10), (10_000, 10), (5_000, 10)]);
    let ran =
        explain(&directory, &[&three], &["--strategy", "memory-first,local-search", "--json"]);
    let plan = &ran.json()["jobs"][0]["plan"];
    assert_eq!(plan["strategy"], "memory first");
    assert_eq!(plan["attempts"][1]["strategy"], "local search");
    // A core has half of the memory to itself.
    let ran = explain(&directory, &[&one], &["--balancing", "static"]);
    assert_eq!(ran.status, 6, "{}", ran.stdout);
    assert!(ran.stdout.contains("no deadline would do"), "{}", ran.stdout);
    let ran = explain(&directory, &[&one], &["--strategy", "local-search"]);
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("name one before it"), "{}", ran.stderr);
}

#[test]
fn the_share_of_the_class_counts_unless_rates_are_whole() {
    let directory = directory("explain-share", FILES);
    let path = |name: &str| directory.join(name).to_str().unwrap().to_string();
    fs::write(path("job.toml"), job(10_000_000, &[(10_000, 1)])).unwrap();
    let (job, machine, history) = (path("job.toml"), path("lab.toml"), path("h.db"));
    let arguments = ["explain", &job, "--machine", &machine, "--history", &history];
    assert_eq!(pbsctl(&arguments, "").status, 6);
    let whole = [&arguments[..], &["--whole-rate"]].concat();
    assert_eq!(pbsctl(&whole, "").status, 0);
}

#[test]
fn level_1_is_time() {
    let told = declined("explain-level-1", 9_000_000, &[(10_000, 1)], &[]);
    assert_eq!((&told["level"], &told["process"]), (&1.into(), &Value::Null));
    let shortage = &told["shortage"];
    assert_eq!(shortage["unit"], "ns");
    assert_eq!(shortage["needed"], 10_000_000);
    assert_eq!(shortage["available"], 9_000_000);
    assert_eq!(shortage["missing"], 1_000_000);
    assert_eq!(told["earliest_deadline_ns"], 10_000_000);
}

/// Two jobs on one core of two, one on the other, and one on a core that is not there.
#[test]
fn jobs_may_be_confined_to_cpus() {
    let directory = directory("explain-cpus", FILES);
    let on = |cpus: &str| {
        let job = job(50_000_000, &[(10_000, 10), (10_000, 10)]);
        with_values(&job, &[("cpus", cpus.into())])
    };
    let [zero, one, none] = ["[0]", "[1]", "[7, 1, 2]"].map(on);
    let ran = explain(&directory, &[&zero, &zero, &one, &none], &["--json"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (6, ""), "{}", ran.stdout);
    let told = ran.json();
    let jobs = told["jobs"].as_array().unwrap();
    let ends: Vec<_> = jobs.iter().map(|job| &job["plan"]["end_ns"]).collect();
    let expected = [20_000_000, 40_000_000, 20_000_000].map(Value::from);
    assert_eq!(ends[..3], expected.iter().collect::<Vec<_>>());
    // Of one core, which no plan can better.
    assert_eq!(jobs[0]["bound"]["end_ns"], 20_000_000);
    assert_eq!(jobs[0]["bound"]["limit"], "core time");
    let declined = &jobs[3]["declined"];
    assert_eq!(declined["level"], 1);
    assert_eq!(declined["shortage"], Value::Null);
    assert_eq!(declined["earliest_deadline_ns"], Value::Null);
    let why = "level 1 (general check): the job is confined to CPUs that the machine does not \
               have: 2,7; it has 0-1";
    assert_eq!(declined["why"], why);
    let ran = explain(&directory, &[&none], &[]);
    assert_eq!(ran.status, 6);
    let words: Vec<_> = ran.stdout.split_whitespace().collect();
    let text = words.join(" ");
    assert!(text.contains(why) && text.contains("no deadline would do"), "{text}");
    // A list that is no set is told with its line.
    let ran = explain(&directory, &[&on("[0,\n0]")], &[]);
    assert_eq!(ran.status, 3, "{}", ran.stdout);
    let line = "0.toml:2: cpus names CPU 0 twice; write each once";
    assert!(ran.stderr.contains(line), "{}", ran.stderr);
}

#[test]
fn level_1_is_memory_for_which_no_deadline_helps() {
    let processes = [(10, 1), (10, 1_000_001)];
    let told = declined("explain-memory", 9_000_000, &processes, &[]);
    assert_eq!((&told["level"], &told["process"]["name"]), (&1.into(), &"p1".into()));
    assert_eq!(told["shortage"]["unit"], "bytes");
    assert_eq!(told["shortage"]["missing"], 1);
    assert_eq!(told["earliest_deadline_ns"], Value::Null);

    let directory = directory("explain-memory-text", FILES);
    let ran = explain(&directory, &[&job(9_000_000, &processes)], &[]);
    for part in [
        "level 1 (general check)",
        "process            p1 (1)",
        "memory 977 KiB (1,000,001 bytes)",
        "977 KiB (1,000,000 bytes)",
        "1 B (1 bytes)",
        "no deadline would do",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
}

#[test]
fn level_2_is_memory_over_time() {
    // The second wants 8,000 bytes times seconds, of which 80 % must be free, and the
    // first has 9,000 of the 15,000 that there are.
    let directory = directory("explain-level-2", FILES);
    let first = job(15_000_000, &[(10_000, 900_000)]);
    let second = job(15_000_000, &[(10_000, 800_000)]);
    let told = |options: &[&str]| {
        let options = [&["--json", "--estimates-refuse"], options].concat();
        let json = explain(&directory, &[&first, &second], &options).json();
        assert_eq!(json["jobs"][0]["admitted"], true);
        json["jobs"][1]["declined"].clone()
    };
    let second = told(&[]);
    assert_eq!((&second["level"], &second["process"]), (&2.into(), &Value::Null));
    let shortage = &second["shortage"];
    assert_eq!(shortage["unit"], "byte_ns");
    assert_eq!(shortage["needed"].as_u64(), Some(6_400_000_000_000));
    assert_eq!(shortage["available"].as_u64(), Some(6_000_000_000_000));
    assert_eq!(shortage["missing"].as_u64(), Some(400_000_000_000));
    // Less asked for, it fails later.
    assert_eq!(told(&["--min-mem-percentage", "70"])["level"], 3);
}

#[test]
fn level_3_is_about_a_process() {
    let processes = [(10_000, 10), (10_000, 10), (5_000, 10)];
    let refuses = ["--estimates-refuse"];
    let told = declined("explain-level-3", 14_000_000, &processes, &refuses);
    assert_eq!(told["level"], 3);
    assert_eq!(told["process"]["name"], "p2");
    assert_eq!(told["shortage"]["needed"], 15_000_000);
    assert_eq!(told["earliest_deadline_ns"], 15_000_000);
    // Where it does not refuse, it is told.
    let directory = directory("explain-estimate", FILES);
    let job = job(14_000_000, &processes);
    let json = explain(&directory, &[&job], &["--json"]).json();
    let answered = &json["jobs"][0];
    assert_eq!(answered["declined"]["level"], Value::Null);
    let estimate = answered["estimate"].as_str().unwrap();
    assert!(estimate.starts_with("level 3 (process check): process p2"), "{estimate}");
    assert_eq!(answered["bound"]["end_ns"], 12_500_000);
    assert_eq!(answered["bound"]["limit"], "core time");
}

#[test]
fn validation_may_pass_what_no_strategy_can_plan() {
    // Taken for idle all the time, the processes run at once on a core.
    let processes = [(10_000, 10), (10_000, 10), (5_000, 10)];
    let idle = ["--process-idle-percentage", "100", "--estimates-refuse"];
    let told = declined("explain-reservation", 14_000_000, &processes, &idle);
    assert_eq!(told["level"], Value::Null);
    assert_eq!(told["step"], "reservation: no strategy found a plan");
    assert!(told["process"]["name"].is_string());
    assert!(told["task"]["id"].is_u64());
    assert_eq!(told["shortage"]["missing"], 1_000_000);
    assert_eq!(told["earliest_deadline_ns"], 15_000_000);
    let attempts = told["attempts"].as_array().unwrap();
    assert!(attempts.len() >= 4 && attempts.iter().all(|tried| tried["end_ns"].is_null()));
}

/// A job whose processes don't wait for each other is explained by the test that admitted it, or by
/// the interval in which more time is asked for than there is.
#[test]
fn the_demand_test_is_told() {
    let machine = "[[node]]\nname = \"n\"\nmemory_bytes = 1_000_000\n\
                   rate_insns_per_s = 1_000_000\ncores = [\"c0\"]\n";
    let directory = directory("explain-demand", &[("one.toml", machine)]);
    let path = |name: &str| directory.join(name).to_str().unwrap().to_string();
    let ask = |machine: &str, jobs: &[&str], arguments: &[&str]| {
        let files: Vec<_> = (0..jobs.len()).map(|n| path(&format!("{n}.toml"))).collect();
        for (file, job) in files.iter().zip(jobs) {
            fs::write(file, job).unwrap();
        }
        let (machine, history) = (path(machine), path("history.db"));
        let mut all = vec!["explain", "--lead", "0", "--machine", &machine];
        all.extend(["--history", &history]);
        all.extend(files.iter().map(String::as_str));
        all.extend(arguments);
        pbsctl(&all, "")
    };
    let patient = job(1_000_000_000, &[(180_000, 1)]);
    let urgent = job(250_000_000, &[(180_000, 1)]);
    let ran = ask("one.toml", &[&patient, &urgent], &[]);
    assert_eq!(ran.status, 0, "{}", ran.stdout);
    for part in [
        "admitted by    demand test: what is planned already moves",
        "planned end    200.000 ms, 50.000 ms before the deadline",
        "strategy       earliest deadline",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let told = ask("one.toml", &[&patient, &urgent], &["--json"]).json();
    let tests = [0, 1].map(|job| told["jobs"][job]["plan"]["test"].clone());
    assert_eq!(tests, ["search", "demand"]);

    let late = job(300_000_000, &[(180_000, 1)]);
    let ran = ask("one.toml", &[&urgent, &late], &[]);
    assert_eq!(ran.status, 6, "{}", ran.stdout);
    let interval =
        "between 0.000 ms and 300.000 ms core 0 has 270.000 ms, and 360.000 ms are asked";
    assert!(ran.stdout.contains(interval), "{}", ran.stdout);
    let told = ask("one.toml", &[&urgent, &late], &["--json"]).json();
    let demand = &told["jobs"][1]["declined"]["demand"];
    assert_eq!(demand["supply_ns"], 270_000_000);
    assert_eq!(demand["demand_ns"], 360_000_000);

    // The search plans with less of the core, and its bound is one of its own plans alone: a
    // deadline before it may be admitted.
    let both = job(150_000_000, &[(90_000, 1), (90_000, 1)]);
    let ran = ask("one.toml", &[&both], &[]);
    assert_eq!(ran.status, 6, "{}", ran.stdout);
    for part in ["(200.000 ms), by the demand test\n", "no plan of the search ends before 210.5"] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let in_time = job(200_000_001, &[(90_000, 1), (90_000, 1)]);
    assert_eq!(ask("one.toml", &[&in_time], &[]).status, 0);

    // With another share, and with none.
    let share = |permille: u64| format!("demand_permille = {permille}\n{machine}");
    for (permille, status) in [(700, 6), (800, 0), (0, 6), (1001, 3)] {
        fs::write(path("share.toml"), share(permille)).unwrap();
        let ran = ask("share.toml", &[&patient, &urgent], &[]);
        assert_eq!(ran.status, status, "{permille}: {}{}", ran.stdout, ran.stderr);
    }

    let best_effort = format!("best_effort = true\n{late}");
    let ran = ask("one.toml", &[&best_effort, &urgent], &[]);
    assert_eq!(ran.status, 0, "{}", ran.stdout);
    assert!(ran.stdout.contains("as best effort: nothing is promised"), "{}", ran.stdout);
}

#[test]
fn jobs_are_planned_in_turn() {
    let directory = directory("explain-turn", FILES);
    let job = job(15_000_000, &[(10_000, 10), (10_000, 10)]);
    let ran = explain(&directory, &[&job, &job], &["--json"]);
    assert_eq!(ran.status, 6);
    let json = ran.json();
    assert_eq!(json["jobs"][0]["admitted"], true);
    let declined = &json["jobs"][1]["declined"];
    assert_eq!(declined["earliest_deadline_ns"], 20_000_000);
    let text = explain(&directory, &[&job, &job], &[]).stdout;
    assert!(text.contains("deadline_ns = 20_000_000 (20.000 ms)"), "{text}");
}

#[test]
fn runs_before_are_what_is_planned_with() {
    let directory = directory("explain-history", FILES);
    let history = directory.join("history.db");
    let mut store = Store::open(&history, Options::DEFAULT).unwrap();
    for _ in 0..5 {
        let run = NewRun {
            job: "job",
            kind: Kind::Plan,
            submitted_unix_ns: 1,
            request: "",
            reservation: "",
            order: None,
        };
        let id = store.begin_run(&run).unwrap();
        let task = TaskRun {
            task: 0,
            name: None,
            planned_insns: 10_000,
            retired_insns: 30_000,
            peak_memory_bytes: 5000,
            preemptions: 0,
            outcome: Outcome::Complete,
        };
        let process = ProcessRun {
            process: 0,
            name: Some("p0".into()),
            // Nobody says what it executes.
            fingerprint: Fingerprint::of(["p0"]),
            outcome: Outcome::Complete,
            ran_ns: 0,
            tasks: vec![task],
        };
        store.finish_run(id, 2, Outcome::Complete, &[process]).unwrap();
    }
    drop(store);
    let job = job(20_000_000, &[(10_000, 100), (10_000, 100)]);
    let ran = explain(&directory, &[&job], &["--json"]);
    // What the user says would do.
    assert_eq!(ran.status, 6);
    let figures = &ran.json()["jobs"][0]["figures"];
    let (known, asked) = (&figures[0], &figures[1]);
    assert_eq!((&known["source"], &known["runs"]), (&"history".into(), &5.into()));
    let insns = known["insns"].as_u64().unwrap();
    assert!(insns.abs_diff(30_000) < 500, "{insns}");
    assert!(known["low_insns"].as_u64().unwrap() < insns);
    assert!(known["high_insns"].as_u64().unwrap() > insns);
    assert_eq!(known["memory_bytes"], 5000);
    assert_eq!((&asked["source"], &asked["insns"]), (&"user".into(), &10_000.into()));
    let text = explain(&directory, &[&job], &[]).stdout;
    assert!(text.contains("from earlier runs for 1 of 2 tasks with instructions"), "{text}");
    assert!(text.contains("Earlier runs are from"), "{text}");
    let of = |name: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(name));
        line.unwrap().split_whitespace().map(String::from).collect::<Vec<_>>()
    };
    assert_eq!(of("p0")[1..4], ["0", "history", "5"]);
    assert_eq!(of("p1")[1..5], ["1", "user", "0", "10,000"]);

    fs::write(&history, "this is no history, but long enough to be one".repeat(30)).unwrap();
    let ran = explain(&directory, &[&job], &[]);
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("name another"), "{}", ran.stderr);
}

#[test]
fn without_a_node_a_machine_must_be_named() {
    let ran = pbsctl(&["explain", "-", "--device", "/nonexistent"], &job(9, &[(1, 1)]));
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("--machine FILE"), "{}", ran.stderr);
    let help = pbsctl(&["explain", "--help"], "").stdout;
    for constant in ["CAL_WANT_TYPE", "MIN_MEM_PERCENTAGE", "PROCESS_IDLE_PERCENTAGE"] {
        assert!(help.contains(constant), "{constant}");
    }
}

/// The example of the documentation is what is printed.
#[test]
fn the_documentation_shows_the_output() {
    let documentation = include_str!("../../Documentation/admission.rst");
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples");
    let job = fs::read_to_string(samples.join("jobs/first.toml")).unwrap();
    let machine = samples.join("machines/vm.toml");
    let nothing = directory("explain-documentation", FILES).join("history.db");
    let (machine, nothing) = (machine.to_str().unwrap(), nothing.to_str().unwrap());
    for (deadline, status) in [("700_000_000", 6), ("933_600_844", 0)] {
        let job = job.replace("2_000_000_000", deadline);
        let arguments = ["explain", "-", "--machine", machine, "--history", nothing];
        let ran = pbsctl(&arguments, &job);
        assert_eq!(ran.status, status);
        let (shown, _) = ran.stdout.split_once("\n\n").unwrap();
        assert!(shown.lines().count() > 5);
        let shown: Vec<_> = shown.lines().map(|line| format!("    {line}")).collect();
        assert!(documentation.contains(&shown.join("\n")), "{}", ran.stdout);
    }
}

/// The first example of `Documentation/first-steps.rst` shows the output for the files that it
/// names.
#[test]
fn the_first_steps_show_the_output() {
    let document = include_str!("../../Documentation/first-steps.rst");
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (_, after) = document.split_once("build/pbsctl job explain ").unwrap();
    let (arguments, _) = after.split_once('\n').unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pbsctl"));
    command.args(["job", "explain"]).args(arguments.split(' '));
    command.current_dir(top).env("PBS_HISTORY", scratch("none/history.db"));
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let text = String::from_utf8(ran.stdout).unwrap();
    let (shown, _) = text.split_once("\n\n").unwrap();
    let shown: Vec<_> = shown.lines().map(|line| format!("    {line}")).collect();
    assert!(document.contains(&shown.join("\n")), "{text}");
}

/// Licences that a job holds, and those that it lacks.
#[test]
fn resources_are_told_over_time() {
    let directory = directory("explain-resources", FILES);
    let machine = format!("{MACHINE}[[resource]]\nname = \"matlab\"\ncount = 2\n");
    fs::write(directory.join("lab.toml"), machine).unwrap();
    let holds = |deadline_ns, count| {
        let text = job(deadline_ns, &[(10_000, 1_000), (20_000, 1_000)]);
        text.replace(
            "tasks = [10000]",
            &format!("resources = {{ matlab = {count} }}\ntasks = [10000]"),
        )
    };
    let (first, second) = (holds(500_000_000, 2), holds(600_000_000, 1));
    let jobs = [first.as_str(), second.as_str()];
    let json = explain(&directory, &jobs, &["--json"]).json();
    assert_eq!(json["admitted"], true, "{json}");
    for (job, peak) in [(0, 2), (1, 1)] {
        let resource = &json["jobs"][job]["plan"]["resources"][0];
        let told = (&resource["resource"], &resource["peak"], &resource["count"]);
        assert_eq!(told, (&"matlab".into(), &peak.into(), &2.into()));
        for step in resource["steps"].as_array().unwrap() {
            let sum: u64 =
                ["held", "others", "left"].map(|it| step[it].as_u64().unwrap()).iter().sum();
            assert_eq!(sum, 2, "{step}");
        }
    }
    let ran = explain(&directory, &jobs, &[]);
    assert!(ran.stdout.contains("resource       2 at most of 2 matlab"), "{}", ran.stdout);
    // In time, but for the licence of the first job.
    let alone = |deadline_ns| {
        let text = job(deadline_ns, &[(10_000, 1_000)]);
        text.replace("tasks", "resources = { matlab = 2 }\ntasks")
    };
    let (first, late) = (alone(500_000_000), alone(15_000_000));
    let json = explain(&directory, &[&first, &late], &["--json", "--strategy", "critical-path"]);
    let shortage = json.json()["jobs"][1]["declined"]["shortage"].clone();
    let told = (&shortage["of"], &shortage["resource"], &shortage["needed"]);
    assert_eq!(told, (&"resource".into(), &"matlab".into(), &2.into()), "{shortage}");
    // More than there are, and one that there is not.
    let json = explain(&directory, &[&holds(500_000_000, 3)], &["--json"]).json();
    let shortage = &json["jobs"][0]["declined"]["shortage"];
    assert_eq!((&shortage["missing"], &shortage["unit"]), (&1.into(), &"units".into()));
    let ran = explain(&directory, &[&first.replace("matlab", "mathlab")], &[]);
    assert_eq!(ran.status, 6);
    let why = "process p0 holds resource mathlab, which the machine does not have; it has matlab";
    assert!(ran.stdout.contains(why), "{}", ran.stdout);
}

/// Two jobs one after the other: what the first has is not there for the second, unless
/// nobody looks.
#[test]
fn memory_is_told_over_time() {
    let directory = directory("explain-memory-over-time", FILES);
    let jobs = [
        job(500_000_000, &[(10_000, 300_000), (20_000, 700_000)]),
        job(500_000_000, &[(10_000, 400_000), (10_000, 600_000)]),
    ];
    let jobs = [jobs[0].as_str(), jobs[1].as_str()];
    let steps = |arguments: &[&str]| {
        let json = explain(&directory, &jobs, &[&["--json"], arguments].concat()).json();
        assert_eq!(json["admitted"], true);
        let jobs = json["jobs"].as_array().unwrap().clone();
        jobs.into_iter()
            .map(|job| job["plan"]["memory"][0]["steps"].as_array().unwrap().clone())
            .collect::<Vec<_>>()
    };
    let number = |step: &Value, field: &str| step[field].as_u64().unwrap();
    let of_jobs = steps(&[]);
    for step in of_jobs.iter().flatten() {
        let held = number(step, "held_bytes") + number(step, "others_bytes");
        assert_eq!(held + number(step, "left_bytes"), 1_000_000, "{step}");
    }
    assert!(of_jobs[0].iter().all(|step| step["others_bytes"] == 0));
    assert_eq!(number(&of_jobs[0][0], "held_bytes"), 1_000_000);
    let blind = steps(&["--memory-blind"]);
    let beyond = blind[1].iter().filter(|step| step["left_bytes"].is_null());
    assert!(beyond.count() > 0, "{blind:?}");
    let ran = explain(&directory, &jobs, &["--memory-blind"]);
    assert!(ran.stdout.contains("MORE THAN THE NODE HAS"), "{}", ran.stdout);
    let ran = explain(&directory, &jobs, &[]);
    let first = "from 0.000 ms: 977 KiB, 0 B left";
    assert!(ran.stdout.contains(first), "{}", ran.stdout);
    assert!(!ran.stdout.contains("MORE THAN THE NODE HAS"), "{}", ran.stdout);
}
