// SPDX-License-Identifier: GPL-2.0
//! Jobs: `pbsctl run` admits them, plans them, and learns from them; another
//! pbsctl can take over; and what is wrong with the history does not hurt.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use pbs_history::Kind;
use pbs_job::machine_from_toml;
use pbs_launch::signals::{wait, Signals};
use pbs_node::{JobOutcome, Listener, News, Next, Settings, Submission};
use pbs_uapi::{Event, DEVICE_PATH};
use serde_json::Value;

use crate::harness::{cvt, sysfs_number, Context, Node, Plan, Verdict};
use crate::policy_events::more_than_is_held;
use crate::{check, check_eq};
use pbs_uapi::EventKind;

pub(crate) const DIR: &str = "/tmp/jobs";
const HISTORY: &str = "/tmp/jobs/history.db";
/// The exit status of pbsctl where tasks have not ended.
const INCOMPLETE: i32 = 4;

/// A job of two processes, whose user was out by two.
const JOB: &str = r#"
name = "hashes"
deadline_ns = 20_000_000_000
[[process]]
id = 1
name = "sums"
memory_bytes = 4_000_000
commands = [["sha256sum", "data"], ["sha1sum", "data"], ["sha512sum", "data"]]
stdout = "sums"
tasks = [{ insns = 50_000_000 }, { insns = 50_000_000 }, { insns = 50_000_000 }]
[[process]]
id = 2
name = "check"
memory_bytes = 4_000_000
command = ["md5sum", "data"]
stdout = "check"
tasks = [20_000_000]
"#;

/// The CPU of the jobs; pbsctl, or the service, has the other one.
pub(crate) const MACHINE: &str = r#"
[[node]]
name = "vm"
memory_bytes = 256_000_000
rate_insns_per_s = 250_000_000
cores = [{ name = "cpu0", cpu = 0 }]
"#;

/// Output of pbsctl.
pub(crate) struct PbsctlOutput {
    pub(crate) status: Option<i32>,
    pub(crate) json: Value,
    pub(crate) stderr: String,
}

fn pbsctl(arguments: &[&str]) -> Command {
    let mut command = Command::new("pbsctl");
    command.arg("--json").args(arguments).current_dir(DIR);
    command.env("PBS_HISTORY", HISTORY);
    command
}

fn said(output: &Output) -> PbsctlOutput {
    PbsctlOutput {
        status: output.status.code(),
        json: serde_json::from_slice(&output.stdout).unwrap_or(Value::Null),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Runs the job, on CPU 0.
fn run_job(arguments: &[&str]) -> Command {
    let mut command = pbsctl(&["run", "job.toml", "--machine", "machine.toml"]);
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) fn ask(arguments: &[&str]) -> Result<PbsctlOutput, String> {
    Ok(said(&pbsctl(arguments).output().context("pbsctl")?))
}

/// A directory with the job and what it reads.
pub(crate) fn prepare(job: &str) -> Verdict {
    let _ = fs::remove_dir_all(DIR);
    fs::create_dir_all(DIR).context(DIR)?;
    let data: Vec<u8> = (0..2_000_000u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
    fs::write(format!("{DIR}/data"), data).context("data")?;
    fs::write(format!("{DIR}/machine.toml"), MACHINE).context("machine.toml")?;
    fs::write(format!("{DIR}/job.toml"), job).context("job.toml")
}

/// The second run of a job is planned from what the first one used.
pub fn job_is_learnt() -> Verdict {
    prepare(JOB)?;
    let mut errors = Vec::new();
    for (runs_before, source) in [(0, "user"), (1, "history"), (2, "history")] {
        let run = ask(&["run", "job.toml"])?;
        check_eq!(run.status, Some(0), "status: {}", run.stderr);
        let job = &run.json["jobs"][0];
        check_eq!(job["outcome"], "complete", "outcome: {job}");
        check_eq!(job["kept"], true, "deadline: {job}");
        let tasks = job["tasks"].as_array().ok_or("tasks")?;
        check_eq!(tasks.len(), 4, "tasks: {job}");
        for task in tasks {
            check_eq!(task["planned_from_runs"], runs_before, "task: {task}");
            check_eq!(task["source"], source, "task: {task}");
        }
        // What the table of the plan has is what was learnt.
        let retired = |tasks: &Value| -> Vec<Value> {
            let tasks = tasks.as_array().into_iter().flatten();
            tasks.map(|task| task["retired_insns"].clone()).collect()
        };
        check_eq!(retired(&job["tasks"]), retired(&run.json["tasks"]), "retired");
        errors.push(job["plan_error_permille"].as_u64().ok_or("plan error")?);
    }
    check!(
        errors[0] > 100 && errors[1] < 20 && errors[2] < 20,
        "errors of the plans, in thousandths: {errors:?}"
    );
    let history = ask(&["history", "hashes"])?;
    check_eq!(history.status, Some(0), "status: {}", history.stderr);
    let runs = history.json["runs"].as_array().ok_or("runs")?;
    check_eq!(runs.len(), 3, "runs that are known");
    // So are the rates of its programs, of all runs: those have shared their CPUs with
    // others, but what they did not run does not count.
    let cpu = sysfs_number("rate_insns_per_ms")? as u64;
    let rates = history.json["rates"].as_array().ok_or("rates")?;
    check!(rates.len() >= 2, "rates: {}", history.json["rates"]);
    for rate in rates {
        println!("of {cpu} in a millisecond: {rate}");
        check_eq!(rate["runs"], 3, "runs that tell a rate: {rate}");
        let insns_per_ms = rate["rate_insns_per_ms"].as_u64().ok_or("rate")?;
        // System calls and faults take time and retire nothing.
        check!(
            (cpu / 20..cpu * 11 / 10).contains(&insns_per_ms),
            "rate of a program: {rate}, of the CPU {cpu}"
        );
    }
    Ok(())
}

/// A profile counts as a run, and no deadline is asked for.
pub fn job_is_profiled() -> Verdict {
    prepare(&JOB.replace("20_000_000_000", "1_000"))?;
    let declined = ask(&["run", "job.toml"])?;
    check_eq!(declined.status, Some(6), "status: {}", declined.stderr);
    let profile = ask(&["profile", "job.toml"])?;
    check_eq!(profile.status, Some(0), "status: {}", profile.stderr);
    let job = &profile.json["jobs"][0];
    check_eq!(job["kind"], "profile", "kind: {job}");
    check_eq!(job["replans"], 0, "plans: {job}");
    fs::write(format!("{DIR}/job.toml"), JOB).context("job.toml")?;
    let run = ask(&["run", "job.toml"])?;
    check_eq!(run.status, Some(0), "status: {}", run.stderr);
    for task in run.json["jobs"][0]["tasks"].as_array().ok_or("tasks")? {
        check_eq!(task["source"], "profile", "task: {task}");
    }
    Ok(())
}

/// A net: `child` reads what the first task of `parent` makes, and is read by its
/// last one.
const NET: &str = r#"
name = "net"
deadline_ns = 20_000_000_000
[[process]]
id = 1
name = "parent"
memory_bytes = 4_000_000
commands = [["cp", "data", "made"], ["cp", "sum", "end"]]
tasks = [
    { insns = 2_000_000 },
    { action = "fork", child = "child" },
    { action = "join", child = "child" },
    { insns = 2_000_000 },
]
[[process]]
id = 2
name = "child"
memory_bytes = 4_000_000
command = ["md5sum"]
stdin = "made"
stdout = "sum"
tasks = [20_000_000]
"#;

/// The net as a plan whose slots are in the wrong order.
const NET_PLAN: &str = r#"
plan_id = 21
[[process]]
id = 1
name = "parent"
commands = [["cp", "data", "made"], ["cp", "sum", "end"]]
tasks = [2_000_000, { planned_insns = 2_000_000, after = ["child"] }]
[[process]]
id = 2
name = "child"
command = ["md5sum"]
stdin = "made"
stdout = "sum"
tasks = [{ planned_insns = 20_000_000, after = ["parent/0"] }]
[[cpu]]
cpu = 0
slots = ["child", "parent", "parent"]
"#;

/// Programs are started when their tasks may begin: what they read is made by those
/// that they wait for.
pub fn run_keeps_the_order() -> Verdict {
    for text in [NET, NET_PLAN] {
        prepare(text)?;
        let expected = Command::new("md5sum")
            .stdin(fs::File::open(format!("{DIR}/data")).context("data")?)
            .output()
            .context("md5sum")?;
        let run = ask(&["run", "job.toml"])?;
        check_eq!(run.status, Some(0), "status: {}", run.stderr);
        let end = fs::read(format!("{DIR}/end")).context("end")?;
        check!(end == expected.stdout, "what the last task was to copy");
    }
    Ok(())
}

/// The child exits in the second task of three: who waits for it is ended, too, and
/// told.
pub fn who_waits_for_the_dead_is_cancelled() -> Verdict {
    let stages = "attaches = \"itself\"\ncommand = [\"pbs_stages\", \"hash:100000\"]";
    for (text, tasks, two) in [
        (NET, "tasks = [20_000_000]", "tasks = [1_000_000, 1_000_000, 1_000_000]"),
        (
            NET_PLAN,
            "tasks = [{ planned_insns = 20_000_000, after = [\"parent/0\"] }]",
            "tasks = [{ planned_insns = 1_000_000, after = [\"parent/0\"] }, 1_000_000, 1_000_000]",
        ),
    ] {
        let streams = "command = [\"md5sum\"]\nstdin = \"made\"\nstdout = \"sum\"";
        let text = text.replace(streams, stages).replace(tasks, two);
        let text = text.replace("slots = [\"child\",", "slots = [\"child\", \"child\", \"child\",");
        prepare(&text)?;
        let run = ask(&["run", "job.toml"])?;
        check!(
            run.stderr.contains("process parent")
                && run.stderr.contains("is cancelled: it waits for process child"),
            "what was said: {}",
            run.stderr
        );
        check_eq!(run.status, Some(INCOMPLETE), "status: {}", run.stderr);
        check!(!Path::new(&format!("{DIR}/end")).exists(), "the last task has run");
        check!(Path::new(&format!("{DIR}/made")).exists(), "the first task");
    }
    Ok(())
}

/// Submitted jobs wait, and are run in their order; jobs that are too late by then are declined.
pub fn submitted_jobs_are_run() -> Verdict {
    prepare(JOB)?;
    let hasty = JOB.replace("\"hashes\"", "\"hasty\"");
    let hasty = hasty.replace("20_000_000_000", "3_000_000_000");
    fs::write(format!("{DIR}/hasty.toml"), hasty).context("hasty.toml")?;
    let submitted = ask(&["submit", "job.toml", "hasty.toml", "job.toml"])?;
    check_eq!(submitted.status, Some(0), "status: {}", submitted.stderr);
    std::thread::sleep(std::time::Duration::from_secs(3));
    let run = ask(&["run"])?;
    check_eq!(run.status, Some(0), "status: {}", run.stderr);
    check!(run.stderr.contains("hasty is declined"), "{}", run.stderr);
    let jobs = run.json["jobs"].as_array().ok_or("jobs")?;
    let runs: Vec<_> = jobs.iter().map(|job| job["run"].as_u64()).collect();
    check_eq!(runs, [Some(1), Some(3)], "runs");
    let known = ask(&["jobs"])?;
    let known = known.json["runs"].as_array().ok_or("runs")?.clone();
    let outcomes: Vec<_> = known.iter().map(|run| run["outcome"].as_str()).collect();
    let expected = [Some("complete"), Some("declined"), Some("complete")];
    check_eq!(outcomes, expected, "outcomes");
    let nothing = ask(&["run"])?;
    check_eq!(nothing.status, Some(1), "status: {}", nothing.stderr);
    check!(nothing.stderr.contains("pbsctl job submit"), "reason: {}", nothing.stderr);
    Ok(())
}

/// A job that comes while others run.
const LATER: &str = r#"
name = "later"
deadline_ns = 20_000_000_000
[[process]]
id = 1
memory_bytes = 32_000_000
command = ["sha1sum", "data"]
stdout = "later"
tasks = [20_000_000]
"#;

/// Report of a node.
#[derive(Default)]
struct NodeReport {
    tasks_ended: usize,
    plans: Vec<pbs_plan::Plan>,
    news: Vec<News>,
    jobs: Vec<JobOutcome>,
}

impl Listener for NodeReport {
    fn over(&mut self, outcome: JobOutcome) {
        self.jobs.push(outcome);
    }

    fn news(&mut self, news: News) {
        self.news.push(news);
    }

    fn event(&mut self, event: &Event) {
        self.tasks_ended += usize::from(event.kind == EventKind::TaskEnded as u16);
    }

    fn planned(&mut self, plan: &pbs_plan::Plan) {
        self.plans.push(plan.clone());
    }
}

/// A node takes a job while another runs. That goes on where it was: no program runs
/// twice, and both jobs are kept.
pub fn job_comes_to_others() -> Verdict {
    prepare(JOB)?;
    // It is known then, so its plan does not change by itself.
    let run = ask(&["run", "job.toml", "--machine", "machine.toml"])?;
    check_eq!(run.status, Some(0), "status: {}", run.stderr);
    std::env::set_current_dir(DIR).context(DIR)?;
    let options = pbs_node::Options::default();
    let node = pbs_node::Node::open(Path::new(DEVICE_PATH), options, NodeReport::default());
    let mut node = node.context("node")?;
    let machine = machine_from_toml(MACHINE).map_err(|problems| format!("{problems:?}"))?;
    let settings = Settings {
        history: HISTORY.into(),
        ended: pbs_history::EndedLimits::ENDLESS,
        account_of: pbs_node::AccountOf::default(),
        max_replans: u64::MAX,
        aim: pbs_node::Aim::Best,
        max_work: Settings::MAX_WORK,
        config: None,
    };
    node.plan_jobs(machine, &settings).context("history")?;
    let signals = Signals::new().context("signals")?;
    let start = |node: &mut pbs_node::Node<NodeReport>, job: &str| -> Verdict {
        let job = Submission::from_text(job.into(), "job".into()).context("job")?;
        (node.admit(vec![job], Kind::Plan, "job")).context("admit")?;
        let failed = node.start(&signals).context("start")?;
        check!(failed.is_empty(), "not started: {failed:?}");
        Ok(())
    };
    start(&mut node, JOB)?;
    while node.listener.tasks_ended == 0 {
        if node.hear().context("hear")? > 0 {
            continue;
        }
        match node.act().context("act")? {
            Next::Wait(timeout_ms) => wait(&node, &signals, timeout_ms).context("wait")?,
            Next::Over(outcome) => return Err(format!("over before a task: {outcome:?}")),
        }
    }
    start(&mut node, LATER)?;
    let followed = node.follow(&signals);
    let outcome = node.end(followed, &signals).context("follow")?;
    check_eq!(outcome, pbs_report::Outcome::Ended, "outcome");
    let jobs = std::mem::take(&mut node.listener.jobs);
    let exits: Vec<_> = jobs.iter().flat_map(|job| &job.exits).collect();
    check_eq!(exits.len(), 5, "programs: {exits:?}");
    check!(exits.iter().all(|exit| exit.success()), "programs: {exits:?}");
    check_eq!(jobs.len(), 2, "jobs: {jobs:?}");
    check!(
        jobs.iter().all(|job| job.kept && job.outcome == Some(pbs_history::Outcome::Complete)),
        "jobs: {jobs:?}"
    );
    let NodeReport { plans, news, .. } = &node.listener;
    check!(news.is_empty(), "news: {news:?}");
    // The plan that the second job came with has what was left of the first one.
    let ids = |plan: &pbs_plan::Plan| -> BTreeSet<u32> {
        plan.processes.iter().map(|process| process.id).collect()
    };
    let first = ids(&plans[0]);
    let mut later = plans.iter().filter(|plan| !ids(plan).is_subset(&first));
    let both = later.next().ok_or("no plan has the second job")?;
    let left = both.processes.iter().filter(|it| first.contains(&it.id));
    let left: usize = left.map(|process| process.tasks.len()).sum();
    check!((1..4).contains(&left), "tasks that were left of the first job: {left}");
    Ok(())
}

/// Two CPUs and one licence.
const LICENSED: &str = r#"
[[node]]
name = "vm"
memory_bytes = 256_000_000
rate_insns_per_s = 250_000_000
cores = [{ name = "cpu0", cpu = 0 }, { name = "cpu1", cpu = 1 }]
[[resource]]
name = "licence"
count = 1
"#;

/// A job on two CPUs that takes longer than it says.
const LATE: &str = r#"
name = "late"
deadline_ns = 30_000_000_000
priority = 9
[[process]]
id = 1
memory_bytes = 4_000_000
commands = [["sha512sum", "data"], ["sha512sum", "data"]]
stdout = "/dev/null"
tasks = [10_000_000, 10_000_000]
[[process]]
id = 2
memory_bytes = 4_000_000
commands = [["sha512sum", "data"], ["sha512sum", "data"]]
stdout = "/dev/null"
tasks = [10_000_000, 10_000_000]
"#;

/// A process that fails if another one has what only one can have, and takes longer than it says.
fn exclusive(id: u32, resources: &str) -> String {
    format!(
        "[[process]]\nid = {id}\nmemory_bytes = 4_000_000\n{resources}\n\
         commands = [[\"mkdir\", \"lock\"], [\"sha512sum\", \"data\"], [\"rmdir\", \"lock\"]]\n\
         stdout = \"/dev/null\"\ntasks = [3_000_000, 30_000_000, 3_000_000]\n"
    )
}

/// A job that as a whole holds `resources`: a process as above, and two beside it.
fn exclusive_job(name: &str, resources: &str) -> String {
    let beside = |id: u32| {
        format!(
            "[[process]]\nid = {id}\nmemory_bytes = 4_000_000\ncommands = [[\"true\"], \
             [\"sha512sum\", \"data\"]]\nstdout = \"/dev/null\"\ntasks = [3_000_000, 20_000_000]\n"
        )
    };
    format!(
        "name = \"{name}\"\ndeadline_ns = 30_000_000_000\n{resources}\n{}{}{}",
        beside(1),
        exclusive(2, ""),
        beside(3)
    )
}

/// Programs on two CPUs hold the only licence one after the other, also where they take longer than
/// planned; without the licence they are in each other's way. Jobs that hold it as a whole do the
/// same behind a late job.
pub fn licences_are_held_in_turn() -> Verdict {
    for (resources, is_kept) in [("resources = { licence = 1 }", true), ("", false)] {
        let processes: String = (1..=4).map(|id| exclusive(id, resources)).collect();
        let job = format!("name = \"turns\"\ndeadline_ns = 30_000_000_000\n{processes}");
        prepare(&job)?;
        fs::write(format!("{DIR}/machine.toml"), LICENSED).context("machine.toml")?;
        let run = ask(&["run", "job.toml", "--machine", "machine.toml"])?;
        let is_done = run.status == Some(0);
        check_eq!(is_done, is_kept, "{resources}: {:?} {} {}", run.status, run.stderr, run.json);

        prepare(LATE)?;
        fs::write(format!("{DIR}/machine.toml"), LICENSED).context("machine.toml")?;
        let names = ["one", "two", "three"];
        for name in names {
            let job = exclusive_job(name, resources);
            fs::write(format!("{DIR}/{name}.toml"), job).context("job of a licence")?;
        }
        let files = names.map(|name| format!("{name}.toml"));
        let mut arguments = vec!["run", "job.toml"];
        arguments.extend(files.iter().map(String::as_str));
        arguments.extend(["--machine", "machine.toml"]);
        let run = ask(&arguments)?;
        let is_done = run.status == Some(0);
        check_eq!(is_done, is_kept, "of jobs: {:?} {} {}", run.status, run.stderr, run.json);
        check!(!run.stderr.contains("no place left") || !is_kept, "of jobs: {}", run.stderr);
    }
    Ok(())
}

/// pbsctl is killed while its job runs: the node goes on with the plan, nobody
/// else may plan, and who takes over knows all that happened.
pub fn planner_dies() -> Verdict {
    prepare(JOB)?;
    let mut node = Node::open()?;
    let mut planner = run_job(&[]).spawn().context("pbsctl")?;
    node.read_until(EventKind::TaskEnded, 1)?;
    planner.kill().context("kill")?;
    planner.wait().context("wait")?;

    let second = ask(&["run", "job.toml"])?;
    check_eq!(second.status, Some(1), "a second planner: {}", second.stderr);
    check!(second.stderr.contains("--resume"), "a second planner: {}", second.stderr);
    let resumed = ask(&["run", "--resume"])?;
    check_eq!(resumed.status, Some(0), "status: {} {}", resumed.stderr, resumed.json);
    let job = &resumed.json["jobs"][0];
    check_eq!(job["outcome"], "complete", "outcome: {job}");

    // Every task as the kernel has told of it.
    node.read()?;
    let ended = node.of(EventKind::TaskEnded);
    let mut told: Vec<_> = ended.iter().map(|event| event.retired_insns).collect();
    let tasks = job["tasks"].as_array().ok_or("tasks")?;
    let known = tasks.iter().filter_map(|task| task["retired_insns"].as_u64());
    let mut known: Vec<_> = known.collect();
    told.sort_unstable();
    known.sort_unstable();
    check_eq!(known, told, "what the tasks retired");

    let nothing = ask(&["run", "--resume"])?;
    check_eq!(nothing.status, Some(1), "nothing left: {}", nothing.stderr);
    let again = ask(&["run", "job.toml"])?;
    check_eq!(again.status, Some(0), "status: {}", again.stderr);
    Ok(())
}

/// pbsctl does not run for so long that it loses all that its job does: it asks the
/// kernel then, and knows that the job has ended, though not what it used.
pub fn planner_oversleeps() -> Verdict {
    const TASKS: usize = 10;
    let commands = [r#"["sha256sum", "data"]"#; TASKS].join(", ");
    let tasks = ["{ insns = 100_000_000 }"; TASKS].join(", ");
    let job = JOB.replace(
        r#"[["sha256sum", "data"], ["sha1sum", "data"], ["sha512sum", "data"]]"#,
        &format!("[{commands}]"),
    );
    let fifty = ["{ insns = 50_000_000 }"; 3].join(", ");
    let job = job.replace(&fifty, &tasks);
    prepare(&job.replace("20_000_000_000", "900_000_000_000"))?;
    let mut node = Node::open()?;
    let planner = run_job(&["--max-replans", "0"]).spawn().context("pbsctl")?;
    let pid = planner.id() as i32;
    node.read_until(EventKind::TaskEnded, 1)?;
    // SAFETY: no memory is involved.
    cvt(unsafe { libc::kill(pid, libc::SIGSTOP) }).context("stop")?;
    // Events are lost up to those that all rings hold: from here on, as soon as the
    // other CPU has told more than its ring holds.
    node.load(&Plan::new(1).cpu(1).slot(9, 0, 1_000))?;
    node.read()?;
    let ended = node.of(EventKind::TaskEnded).len();
    check!(ended < TASKS, "pbsctl was stopped after {ended} tasks");
    node.read_until(EventKind::ProcessEnded, 2)?;
    more_than_is_held(1)?;
    // SAFETY: as above.
    cvt(unsafe { libc::kill(pid, libc::SIGCONT) }).context("continue")?;
    let said = said(&planner.wait_with_output().context("wait")?);
    check!(said.stderr.contains("events were lost"), "nothing was lost: {}", said.stderr);
    let job = &said.json["jobs"][0];
    check_eq!(job["outcome"], "unknown", "outcome: {job}");
    let tasks = job["tasks"].as_array().ok_or("tasks")?;
    check_eq!(tasks.len(), TASKS + 1, "tasks: {job}");
    check!(job["ended_ns"].is_u64(), "it has not ended: {job}");
    check_eq!(job["kept"], true, "deadline: {job}");
    Ok(())
}

/// While one pbsctl plans, another is told so.
pub fn two_planners() -> Verdict {
    prepare(JOB)?;
    let mut node = Node::open()?;
    let first = run_job(&[]).spawn().context("pbsctl")?;
    node.read_until(EventKind::TaskEnded, 1)?;
    let second = ask(&["run", "job.toml"])?;
    check_eq!(second.status, Some(1), "status: {}", second.stderr);
    let who = format!("process {} plans this node with it", first.id());
    check!(second.stderr.contains(&who), "reason: {}", second.stderr);
    let first = said(&first.wait_with_output().context("wait")?);
    check_eq!(first.status, Some(0), "status: {}", first.stderr);
    check_eq!(first.json["jobs"][0]["outcome"], "complete", "outcome");
    Ok(())
}

/// A history that is damaged, or cannot be written: pbsctl says so before
/// anything runs, and the file is as it was.
pub fn bad_histories() -> Verdict {
    prepare(JOB)?;
    let first = ask(&["run", "job.toml"])?;
    check_eq!(first.status, Some(0), "status: {}", first.stderr);
    let whole = fs::read(HISTORY).context(HISTORY)?;

    let mut damaged = whole.clone();
    // The header of a page of SQLite's: the rest of it may be unused.
    let middle = damaged.len() / 2 / 4096 * 4096;
    damaged[middle..middle + 64].fill(0xa5);
    let node = Node::open()?;
    let before = node.device.info().context("info")?.next_seq;
    for (bytes, word) in [
        (damaged.as_slice(), "damaged"),
        (&whole[..whole.len() / 2], "damaged"),
        (b"name = \"no history\"\n".repeat(100).as_slice(), "not a history"),
    ] {
        fs::write(HISTORY, bytes).context(HISTORY)?;
        let run = ask(&["run", "job.toml"])?;
        check_eq!(run.status, Some(1), "status: {}", run.stderr);
        check!(run.stderr.contains(word), "not {word}: {}", run.stderr);
        check!(fs::read(HISTORY).context(HISTORY)? == bytes, "the file is not as it was");
    }

    // One that can only be read.
    let disk = Disk::mount("size=1m")?;
    fs::write(disk.file(), &whole).context("copy")?;
    disk.remount("ro")?;
    let run = ask(&["run", "job.toml", "--history", disk.file()])?;
    check_eq!(run.status, Some(1), "status: {}", run.stderr);
    check!(run.stderr.contains("cannot be written"), "read-only: {}", run.stderr);
    check!(fs::read(disk.file()).context("copy")? == whole, "the file is not as it was");
    let after = node.device.info().context("info")?.next_seq;
    check_eq!(after, before, "events: something has run");
    Ok(())
}

/// The disk is full before, or becomes full while the job runs: that one goes on
/// to its end, and who looks is told that nothing was recorded.
pub fn full_disk() -> Verdict {
    prepare(JOB)?;
    let disk = Disk::mount("size=256k")?;
    disk.fill()?;
    let run = ask(&["run", "job.toml", "--history", disk.file()])?;
    check_eq!(run.status, Some(1), "status: {}", run.stderr);
    check!(run.stderr.contains("disk is full"), "full: {}", run.stderr);
    disk.empty();
    let _ = fs::remove_file(disk.file());

    let mut node = Node::open()?;
    let mut run = run_job(&["--history", disk.file()]);
    let run = run.spawn().context("pbsctl")?;
    node.read_until(EventKind::TaskEnded, 1)?;
    disk.fill()?;
    let run = said(&run.wait_with_output().context("wait")?);
    check_eq!(run.status, Some(1), "status: {}", run.stderr);
    check!(run.stderr.contains("disk is full"), "full: {}", run.stderr);
    for task in run.json["tasks"].as_array().ok_or("tasks")? {
        check_eq!(task["ended"], true, "task: {task}");
    }
    // What was there before can still be read, and written when there is room.
    disk.empty();
    let again = ask(&["run", "job.toml", "--history", disk.file()])?;
    check_eq!(again.status, Some(0), "status: {}", again.stderr);
    Ok(())
}

/// A small disk of its own.
pub(crate) struct Disk;

impl Disk {
    const PATH: &str = "/tmp/jobs/disk";

    pub(crate) fn mount(options: &str) -> Result<Self, String> {
        fs::create_dir_all(Self::PATH).context(Self::PATH)?;
        let mut mount = Command::new("/bin/busybox");
        mount.args(["mount", "-t", "tmpfs", "-o", options, "none", Self::PATH]);
        let status = mount.status().context("mount")?;
        status.success().then_some(Self).ok_or("mount".into())
    }

    pub(crate) fn remount(&self, how: &str) -> Verdict {
        let mut mount = Command::new("/bin/busybox");
        mount.args(["mount", "-o", &format!("remount,{how}"), Self::PATH]);
        let status = mount.status().context("remount")?;
        status.success().then_some(()).ok_or("remount".into())
    }

    pub(crate) fn file(&self) -> &'static str {
        "/tmp/jobs/disk/history.db"
    }

    /// Until nothing goes in any more.
    pub(crate) fn fill(&self) -> Verdict {
        let path = Path::new(Self::PATH).join("filling");
        let mut size = 0;
        let mut bytes = vec![0u8; 4096];
        while size < 16 << 20 {
            bytes.resize(size + 4096, 7);
            if fs::write(&path, &bytes).is_err() {
                return Ok(());
            }
            size += 4096;
        }
        Err("the disk does not become full".into())
    }

    pub(crate) fn empty(&self) {
        let _ = fs::remove_file(Path::new(Self::PATH).join("filling"));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let mut umount = Command::new("/bin/busybox");
        let _ = umount.args(["umount", Self::PATH]).status();
    }
}
