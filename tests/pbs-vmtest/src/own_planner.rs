// SPDX-License-Identifier: GPL-2.0
//! A command admits jobs or answers prediction failures of a node, or the built-in planner does in
//! its place.

use std::fs;

use serde_json::Value;

use crate::harness::{Context, Verdict};
use crate::jobs::{ask, prepare, PbsctlOutput, DIR};
use crate::{check, check_eq};

/// A job whose first task takes several times as long as its user believes. The second one waits
/// for the plan that answers that, however long the answer takes.
const JOB: &str = r#"
name = "hashes"
deadline_ns = 40_000_000_000
[[process]]
id = 1
name = "sums"
memory_bytes = 4_000_000
commands = [["sha256sum", "data"], ["sh", "wait.sh"], ["sha512sum", "data"]]
stdout = "sums"
tasks = [{ insns = 20_000_000 }, { insns = 20_000_000 }, { insns = 20_000_000 }]
[[process]]
id = 2
name = "check"
memory_bytes = 4_000_000
command = ["md5sum", "data"]
stdout = "check"
tasks = [5_000_000]
"#;

/// Number of the plans that came into force since boot.
const PLANS: &str = "/sys/kernel/pbs/counts/plan_installed";

/// Waits for the plan of the admission, and for that of the answer: jobs have one CPU here. The
/// job ends without it at last, so that its figures are told.
const WAIT: &str = r#"#!/bin/sh
for i in $(seq 200)
do
	test $(cat /sys/kernel/pbs/counts/plan_installed) -lt $(($(cat plans) + 2)) || exit 0
	sleep 0.1
done
"#;

/// A planner in a language that every machine has: the rest of the plan stays as it is, and the
/// failures are dealt with.
const PLANNER: &str = r#"#!/bin/sh
question=$(cat)
seq=$(printf '%s\n' "$question" | sed 's/.*"seq":\([0-9]*\).*/\1/')
echo "dealt_seq = $((seq + 1))"
printf '%s\n' "$question" | sed 's/.*"remaining_toml":"//; s/"}$//; s/\\n/\n/g; s/\\"/"/g'
"#;

/// Runs the job with a command that answers, and these options. Returns its figures, too.
fn run(scheduler: &str, options: &[&str]) -> Result<(PbsctlOutput, Value), String> {
    prepare(JOB)?;
    fs::write(format!("{DIR}/wait.sh"), WAIT).context("wait.sh")?;
    let plans = fs::read_to_string(PLANS).context(PLANS)?;
    fs::write(format!("{DIR}/plans"), plans).context("plans")?;
    fs::write(format!("{DIR}/planner.sh"), PLANNER).context("planner.sh")?;
    let run: [&str; 6] = ["run", "job.toml", "--machine", "machine.toml", "--scheduler", scheduler];
    // The machine is emulated, and slow.
    let run = ask(&[&run[..], &["--scheduler-timeout", "30"], options].concat())?;
    check_eq!(run.status, Some(0), "status: {}", run.stderr);
    let job = &run.json["jobs"][0];
    check_eq!(job["outcome"], "complete", "outcome: {job}");
    check_eq!(job["kept"], true, "deadline: {job}");
    let figures = run.json["scheduler"].clone();
    println!("{figures}\n{}", run.stderr);
    Ok((run, figures))
}

/// A late task is answered by a command whose plans the kernel takes.
pub fn command_answers_a_late_task() -> Verdict {
    let (run, figures) = run("command sh planner.sh", &[])?;
    check_eq!(figures["fallbacks"], 0, "fall-backs: {figures} {}", run.stderr);
    check!(figures["answers"].as_u64() > Some(0), "answers: {figures}");
    check!(figures["max_ns"].as_u64() > Some(0), "time: {figures}");
    check_eq!(figures["is_given_up"], false, "given up: {figures}");
    let plans = run.json["plans"].as_array().ok_or("plans")?;
    let answers = figures["answers"].as_u64().ok_or("answers")? as usize;
    check!(plans.len() > answers, "plans: {}, answers: {answers}", plans.len());
    let counts = &run.json["event_counts"];
    check!(counts["late"].as_u64() > Some(0), "signals: {counts}");
    Ok(())
}

/// Does something while there is a user "planner", with the number 4711 and the group 4712.
pub(crate) fn with_planner<T>(act: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let with_planner = format!("{users}\nplanner:x:4711:4712::/:/bin/sh\n");
    fs::write("/etc/passwd", with_planner).context("/etc/passwd")?;
    let done = act();
    fs::write("/etc/passwd", users).context("/etc/passwd")?;
    done
}

/// The command has the user and the group that were asked for, and no other groups.
pub fn command_answers_as_another_user() -> Verdict {
    let line =
        "command test $(id -u) = 4711 && test \"$(id -G)\" = 4712 && sh /tmp/jobs/planner.sh";
    let (run, figures) = with_planner(|| run(line, &["--scheduler-user", "planner"]))?;
    check!(figures["answers"].as_u64() > Some(0), "answers: {figures} {}", run.stderr);
    check_eq!(figures["fallbacks"], 0, "fall-backs: {figures} {}", run.stderr);
    Ok(())
}

/// A command that crashes, and one that answers nonsense: the built-in planner answers.
pub fn built_in_planner_replaces_a_command() -> Verdict {
    for (command, words) in [
        ("command exit 3", "\"exit 3\" ended with exit status: 3"),
        ("command echo nonsense", "\"echo nonsense\" wrote a plan that is not valid"),
    ] {
        let (run, figures) = run(command, &[])?;
        check_eq!(figures["answers"], 0, "answers: {figures}");
        check!(figures["fallbacks"].as_u64() > Some(0), "fall-backs: {figures}");
        check!(run.stderr.contains(words), "what was said: {}", run.stderr);
        let instead = "the built-in planner answers instead";
        check!(run.stderr.contains(instead), "what was said: {}", run.stderr);
        let replans = run.json["jobs"][0]["replans"].as_u64();
        check!(replans > Some(0), "plans of the built-in planner: {replans:?}");
    }
    Ok(())
}

/// A job of one process, and the plan by which a command admits it.
const ALONE: &str = r#"
name = "alone"
deadline_ns = 40_000_000_000
[[process]]
id = 1
memory_bytes = 4_000_000
command = ["sha256sum", "data"]
stdout = "sums"
tasks = [{ insns = 20_000_000 }]
"#;
const PLAN: &str = r#"
[[process]]
id = 1
memory_bytes = 4_000_000
tasks = [20_000_000]
[[cpu]]
cpu = 0
rate_insns_per_ms = 250_000
slots = [1]
"#;

/// A command admits a job that is run by its plan, or declines it. The built-in planner admits it
/// where the command crashes.
pub fn command_admits_a_job() -> Verdict {
    prepare(ALONE)?;
    fs::write(format!("{DIR}/plan.toml"), PLAN).context("plan.toml")?;
    let run = |command: &str| {
        let run = ["run", "job.toml", "--machine", "machine.toml", "--admission", command];
        // The machine is emulated, and slow.
        ask(&[&run[..], &["--admission-timeout", "30"]].concat())
    };
    let admitted = run("command cat >question; cat plan.toml")?;
    check_eq!(admitted.status, Some(0), "admitted: {}", admitted.stderr);
    check!(!admitted.stderr.contains("built-in"), "what was said: {}", admitted.stderr);
    let job = &admitted.json["jobs"][0];
    check_eq!((&job["outcome"], &job["kept"]), (&"complete".into(), &true.into()), "job: {job}");
    let question = fs::read_to_string(format!("{DIR}/question")).context("question")?;
    check!(question.contains("\"first_id\":0"), "question: {question}");

    let declined = run("command echo '{\"declined\": \"it is Sunday\"}'")?;
    check_eq!(declined.status, Some(6), "declined: {}", declined.stderr);
    check_eq!(declined.json["declined"]["why"], "it is Sunday", "why: {}", declined.stderr);

    let crashed = run("command exit 3")?;
    check_eq!(crashed.status, Some(0), "crashed: {}", crashed.stderr);
    let instead = "\"exit 3\" ended with exit status: 3; the built-in planner decides";
    check!(crashed.stderr.contains(instead), "what was said: {}", crashed.stderr);
    check_eq!(crashed.json["jobs"][0]["outcome"], "complete", "job: {}", crashed.json["jobs"]);
    Ok(())
}
