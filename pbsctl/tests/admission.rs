// SPDX-License-Identifier: GPL-2.0
//! `--admission`: a command admits jobs, or the built-in planner does.

mod common;

use std::path::Path;

use common::schemas::Schemas;
use common::{directory, pbsctl, Ran};
use serde_json::{json, Value};

const JOB: &str = "name = \"sort\"\ndeadline_ns = 900_000_000\n[[process]]\nid = 1\n\
                   memory_bytes = 4_096\ncommand = [\"true\"]\nattaches = \"itself\"\ntasks = [50_000_000, 20_000_000]\n";
const MACHINE: &str = "[[node]]\nname = \"n\"\nmemory_bytes = 67_108_864\n\
                       cores = [{ name = \"c\", cpu = 0, rate_insns_per_s = 1_000_000_000 }]\n";

/// A plan of the job.
fn plan() -> Value {
    json!({
        "process": [{ "id": 1, "memory_bytes": 4096, "tasks": [50_000_000, 20_000_000] }],
        "cpu": [{ "cpu": 0, "rate_insns_per_ms": 1_000_000, "slots": [1, 1] }],
    })
}

/// Asks the command about the job, and others in the same form.
fn explain(name: &str, line: &str, options: &[&str]) -> Ran {
    let directory = directory(name, &[("job.toml", JOB), ("lab.toml", MACHINE)]);
    let file = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let (job, machine, history) = (file("job.toml"), file("lab.toml"), file("none.db"));
    let command = format!("command {}", line.replace("DIRECTORY", directory.to_str().unwrap()));
    let mut arguments = vec!["--json", "job", "explain", &job, "--machine", &machine];
    arguments.extend(["--history", &history, "--admission", &command]);
    arguments.extend(options);
    pbsctl(&arguments, "")
}

fn admission(ran: &Ran) -> Value {
    let json = ran.json();
    assert_eq!(Schemas::read().answer_problem(&json), None);
    json["jobs"][0]["admission"].clone()
}

#[test]
fn a_command_admits_a_job_with_its_plan() {
    let line = format!("cat > DIRECTORY/question; echo '{}'", plan());
    let ran = explain("admission-admits", &line, &[]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    let answer = admission(&ran);
    assert_eq!(answer["verdict"], "admitted");
    // 70 ms of execution time, and the 100 ms until a plan is in force.
    assert_eq!(answer["end_ns"], 170_000_000);
    assert!(answer["plan"].as_str().unwrap().contains("[[cpu]]"), "{answer}");
    let question = common::scratch("admission-admits").join("question");
    let question: Value =
        serde_json::from_str(&std::fs::read_to_string(question).unwrap()).unwrap();
    let schemas = Schemas::read();
    assert_eq!(schemas.problem("admission", &question), None);
    assert_eq!(question["job"]["name"], "sort");
    assert_eq!(question["plan"], Value::Null);
}

#[test]
fn a_command_declines_a_job_with_a_reason() {
    let ran = explain("admission-declines", "echo '{\"declined\": \"it is Sunday\"}'", &[]);
    assert_eq!((ran.status, ran.stderr.as_str()), (6, ""));
    let answer = admission(&ran);
    assert_eq!((&answer["verdict"], &answer["why"]), (&json!("declined"), &json!("it is Sunday")));
    assert_eq!(ran.json()["admitted"], false);
}

#[test]
fn the_built_in_planner_decides_without_a_usable_answer() {
    let changed = |pointer: &str, value: Value| {
        let mut plan = plan();
        *plan.pointer_mut(pointer).unwrap() = value;
        format!("echo '{plan}'")
    };
    for (line, words) in [
        ("exit 3".to_owned(), "ended with exit status: 3"),
        ("kill -9 $$".to_owned(), "ended with signal: 9"),
        ("true".to_owned(), "wrote neither a plan nor a reason"),
        ("echo '{'".to_owned(), "wrote a plan that is not valid"),
        ("echo '{\"declined\": 7}'".to_owned(), "it must be the reason in words"),
        (changed("/process/0/id", json!(2)), "not valid"),
        (changed("/process/0/tasks/0", json!(1)), "with other tasks of process 1 of job sort"),
        (changed("/process/0/memory_bytes", json!(1)), "which needs 4,096"),
        (changed("/cpu/0/cpu", json!(7)), "for CPU 7, which the machine does not have"),
        (changed("/cpu/0/rate_insns_per_ms", json!(50_000)), "behind its deadline of 900 ms"),
    ] {
        let ran = explain("admission-unusable", &line, &[]);
        assert_eq!(ran.status, 0, "{line}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{line}: {}", ran.stderr);
        assert!(ran.stderr.contains("; the built-in planner decides"), "{line}: {}", ran.stderr);
        let answer = admission(&ran);
        assert_eq!(answer["verdict"], "fallback", "{line}");
        assert!(ran.stderr.contains(answer["why"].as_str().unwrap()), "{line}");
        assert_eq!(ran.json()["admitted"], true, "{line}");
    }
    let ran = explain("admission-late", "sleep 1000", &["--admission-timeout", "10ms"]);
    assert!(ran.stderr.contains("did not answer within 10 ms"), "{}", ran.stderr);
    assert_eq!(admission(&ran)["verdict"], "fallback");
}

/// Submits the job of a directory where no service listens.
fn submit(directory: &Path, line: &str, options: &[&str]) -> Ran {
    let file = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let (job, machine, history) = (file("job.toml"), file("lab.toml"), file("queue.db"));
    let (command, socket) = (format!("command {line}"), file("none.sock"));
    let mut arguments = vec!["--json", "job", "submit", &job, "--machine", &machine];
    arguments.extend(["--history", &history, "--socket", &socket, "--admission", &command]);
    arguments.extend(options);
    pbsctl(&arguments, "")
}

#[test]
fn a_command_admits_and_declines_jobs_of_the_queue() {
    // The jobs of earlier submissions keep their deadlines, however slow the test is.
    let job = JOB.replace("900_000_000", "900_000_000_000");
    let queue = directory("admission-queue", &[("job.toml", &job), ("lab.toml", MACHINE)]);
    let ran = submit(&queue, &format!("echo '{}'", plan()), &[]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(!ran.stderr.contains("built-in"), "{}", ran.stderr);
    assert_eq!(ran.json()["submitted"][0]["job"], "sort");
    let ran = submit(&queue, "echo '{\"declined\": \"it is Sunday\"}'", &[]);
    assert_eq!(ran.status, 6, "{}", ran.stderr);
    assert_eq!(ran.json()["declined"]["why"], "it is Sunday");
    // The job before it waits, and is missing in this plan.
    let ran = submit(&queue, &format!("echo '{}'", plan()), &[]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let told = "which must have the id 2; the built-in planner decides";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    let ran = submit(&queue, "sleep 1000", &["--admission-timeout", "10ms"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("did not answer within 10 ms"), "{}", ran.stderr);
}

#[test]
fn the_command_of_a_service_is_not_that_of_a_client() {
    let directory = directory("admission-service", &[("job.toml", JOB)]);
    let (job, socket) = (directory.join("job.toml"), directory.join("pbs.sock"));
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let (job, socket) = (job.to_str().unwrap(), socket.to_str().unwrap());
    let arguments = ["job", "submit", job, "--socket", socket, "--admission", "command true"];
    let ran = pbsctl(&arguments, "");
    assert_eq!(ran.status, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("the command of its own configuration"), "{}", ran.stderr);
}

#[test]
fn a_run_that_has_no_named_jobs_asks_no_command() {
    let text = "plan_id = 7\n[[process]]\nid = 1\ntasks = [5]\n[[cpu]]\ncpu = 0\nslots = [1]\n";
    let directory = directory("admission-run", &[("plan.toml", text)]);
    let file = directory.join("plan.toml");
    for (arguments, words) in [
        (
            &["run", "--admission", "command true"][..],
            "--admission is for jobs that are named here",
        ),
        (
            &["run", file.to_str().unwrap(), "--admission", "command true"],
            "is a plan, which needs no admission",
        ),
        (&["run", "--resume", "--admission", "command true"], "cannot be used with"),
        (&["run", "--cosched", "a.toml", "--admission", "command true"], "cannot be used with"),
    ] {
        let ran = pbsctl(arguments, "");
        assert_eq!(ran.status, 2, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
    }
}

/// A command that was not asked is not said to have been.
#[test]
fn a_command_that_is_not_asked_is_named_so() {
    let two = JOB.to_owned() + "[[process]]\nid = 9\nmemory_bytes = \"1MiB\"\ntasks = [5]\n";
    let directory = directory("admission-unasked", &[("job.toml", &two), ("lab.toml", MACHINE)]);
    let file = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let (job, machine) = (file("job.toml"), file("lab.toml"));
    let arguments = ["job", "explain", &job, "--machine", &machine, "--admission", "command ./no"];
    let ran = pbsctl(&arguments, "");
    let words = "nobody: ./no is not asked about jobs of several processes";
    assert!(ran.stdout.contains(words), "{}{}", ran.stdout, ran.stderr);
}
