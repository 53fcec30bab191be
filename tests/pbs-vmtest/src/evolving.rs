// SPDX-License-Identifier: GPL-2.0
//! Applications that evolve, on this machine: a manager gives out CPUs, and what runs there is
//! planned in the class.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use pbs_node_api::Client;
use serde_json::Value;

use crate::harness::{cvt, Context, Verdict};
use crate::linux::scene::policy_of;
use crate::service::{all, job, prepare, serve_in_order, with_log, Service, ANN, BOB, DIR, SOCKET};
use crate::{check, check_eq};

const MANAGER: &str = "/tmp/service/run/rms.sock";
/// CPU 0 is for those who plan and manage.
pub(crate) const MACHINE: &str = r#"
[[node]]
name = "vm"
memory_bytes = 256_000_000
rate_insns_per_s = 250_000_000
cores = [{ name = "c1", cpu = 1 }, { name = "c2", cpu = 2 }, { name = "c3", cpu = 3 }]
"#;
const SCHED_PBS: i32 = 8;
/// Program of the tasks of all applications here.
const PROGRAM: &str = "pbs_retire";
const LONG: Duration = Duration::from_secs(600);

/// The service of the node, and a manager that gives out its CPUs.
struct Node {
    _service: Service,
    _manager: Service,
    client: Client,
    manager: pbs_rms_api::Client,
}

fn node(options: &[&str]) -> Result<Node, String> {
    prepare()?;
    fs::write(format!("{DIR}/machine.toml"), MACHINE).context("machine.toml")?;
    let (service, client) = serve_in_order()?;
    let log = File::create(format!("{DIR}/manager")).context("manager")?;
    let mut command = Command::new("pbsctl");
    command.args(["rms", "serve", "--cluster", "here=cpus:1-3"]);
    command.args(["--socket", MANAGER, "--node", SOCKET, "--interval", "20ms"]);
    command.args(options).stdin(Stdio::null()).stderr(log);
    let manager = Service(command.spawn().context("pbsctl rms serve")?);
    let begin = Instant::now();
    loop {
        match pbs_rms_api::Client::connect_to(Path::new(MANAGER)) {
            Ok(asks) => {
                return Ok(Node { _service: service, _manager: manager, client, manager: asks })
            }
            Err(_) if begin.elapsed() < Duration::from_secs(30) => {
                sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(format!("the manager does not answer: {error}")),
        }
    }
}

/// Writes the file of a job whose tasks are planned and take so many instructions.
fn task(name: &str, tasks: &[(u64, u64)]) -> Verdict {
    let commands = tasks.iter().map(|(_, insns)| format!("[\"{PROGRAM}\", \"{insns}\"]"));
    let planned = tasks.iter().map(|(insns, _)| insns.to_string());
    let list = |all: Vec<String>| all.join(", ");
    let text = format!(
        "name = \"{name}\"\ndeadline_ns = \"600s\"\n[[process]]\nid = 1\n\
         memory_bytes = 4_000_000\ncommands = [{}]\ntasks = [{}]\n",
        list(commands.collect()),
        list(planned.collect()),
    );
    fs::write(format!("{DIR}/{name}.toml"), text).context(name)
}

/// An application of a user, and what it says.
struct Application {
    child: Child,
    log: String,
}

impl Application {
    fn run(name: &str, uid: u32, arguments: &[&str]) -> Result<Self, String> {
        let log = format!("{DIR}/{name}.log");
        let says = File::create(&log).context(&log)?;
        let mut command = Command::new("pbsctl");
        command.args(["--json", "apps", "run"]).args(arguments);
        command.args(["--socket", MANAGER, "--node", SOCKET]);
        command.current_dir(DIR).env("PATH", "/usr/bin:/bin");
        command.uid(uid).gid(uid).stdin(Stdio::null());
        command.stderr(says.try_clone().context(&log)?).stdout(says);
        let child = command.spawn().context(name)?;
        Ok(Self { child, log })
    }

    /// Reports of the application so far about an event.
    fn events(&self, event: &str) -> Vec<Value> {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        lines.filter(|line: &Value| line["event"] == event).collect()
    }

    /// Number of its tasks that have ended with that outcome.
    fn ended(&self, outcome: &str) -> usize {
        let ended = self.events("task-ended");
        ended.iter().filter(|line| line["outcome"] == outcome).count()
    }

    fn signal(&self, signal: i32) -> Verdict {
        // SAFETY: no memory is involved; the child is waited for later.
        cvt(unsafe { libc::kill(self.child.id() as i32, signal) }).context("kill")?;
        Ok(())
    }

    fn wait(&mut self) -> Result<ExitStatus, String> {
        let begin = Instant::now();
        while begin.elapsed() < LONG {
            if let Some(status) = self.child.try_wait().context("wait")? {
                return Ok(status);
            }
            sleep(Duration::from_millis(20));
        }
        Err("it does not end".into())
    }
}

impl Drop for Application {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Everybody's logs with what went wrong.
fn with_logs(test: fn() -> Verdict) -> Verdict {
    with_log(test).map_err(|why| {
        let mut all = why;
        for name in ["manager", "sweep.log", "staged.log"] {
            let text = fs::read_to_string(format!("{DIR}/{name}")).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let last = lines[lines.len().saturating_sub(30)..].join("\n");
            all += &format!("\n{name}:\n{last}");
        }
        all
    })
}

fn until(what: &str, mut is_so: impl FnMut() -> Result<bool, String>) -> Verdict {
    let begin = Instant::now();
    while !is_so()? {
        check!(begin.elapsed() < LONG, "never: {what}");
        // To look takes time from those who are looked at.
        sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// On which CPUs of the class tasks of each user are: by process number, whose and where.
fn running() -> BTreeMap<i32, (u32, u32)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let comm = fs::read_to_string(entry.path().join("comm")).ok()?;
        if comm.trim() != PROGRAM || policy_of(pid).ok()? != SCHED_PBS {
            return None;
        }
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // Behind the name in brackets comes the third field; the CPU is the 39th.
        let (_, rest) = stat.rsplit_once(") ")?;
        let cpu = rest.split(' ').nth(36)?.parse().ok()?;
        Some((pid, (entry.metadata().ok()?.uid(), cpu)))
    });
    processes.collect()
}

/// CPUs that the manager has given to each user.
fn given(manager: &mut pbs_rms_api::Client) -> Result<BTreeSet<(u32, u32)>, String> {
    let sessions = manager.sessions().context("sessions")?;
    let given = sessions.iter().flat_map(|session| {
        let held = session.requests.iter().flat_map(|request| &request.held);
        held.map(|node| (session.uid, node + 1))
    });
    Ok(given.collect())
}

/// Checks that users run only where the manager permits it. Returns the number of users that run.
fn look(node: &mut Node) -> Result<usize, String> {
    let before = given(&mut node.manager)?;
    let running: BTreeSet<(u32, u32)> = running().into_values().collect();
    let after = given(&mut node.manager)?;
    for on in &running {
        check!(
            before.contains(on) || after.contains(on),
            "user and CPU {on:?}, given: {before:?}, then {after:?}"
        );
    }
    let users: BTreeSet<u32> = running.into_iter().map(|on| on.0).collect();
    Ok(users.len())
}

/// A sweep has all CPUs until an application with two stages comes. That one takes a CPU
/// without a word, for which a task is killed; announces that it needs it for longer when its
/// first job is late; and announces that it will need another one, for which the sweep
/// plans no more tasks there, and nothing is killed.
pub fn applications_evolve_under_plans() -> Verdict {
    with_logs(applications_evolve_under_plans_inner)
}

fn applications_evolve_under_plans_inner() -> Verdict {
    let mut node = node(&["--grace", "60s"])?;
    task("task", &[(100_000_000, 20_000_000)])?;
    let mut sweep = Application::run("sweep", ANN, &["psa", "--task", "2s", "--job", "task.toml"])?;
    until("the sweep has three CPUs and a task is done", || {
        let has_all = sweep.events("started").iter().any(|line| {
            let nodes = line["nodes"].as_array();
            nodes.is_some_and(|nodes| nodes.len() == 3)
        });
        look(&mut node)?;
        Ok(has_all && sweep.ended("complete") > 3)
    })?;
    check_eq!(sweep.ended("killed"), 0, "killed while it was alone");

    // Its first job is planned with 6.6 s, and takes 9.2 s of a CPU that nobody emulates beside.
    let late = [(150_000_000, 300_000_000), (1_500_000_000, 2_000_000_000)];
    task("late", &late)?;
    task("part", &[(100_000_000, 20_000_000)])?;
    // It says so several tasks of the sweep before: who plans has little of this machine.
    let stages = ["--stage", "1=8s", "--stage", "2=8s", "--announce", "5s"];
    let jobs = ["--job", "late.toml", "--job", "part.toml"];
    let arguments = [&["staged"][..], &stages, &jobs].concat();
    let mut staged = Application::run("staged", BOB, &arguments)?;
    let mut together = 0;
    // Stages of the other one's life, and what the sweep had lost then.
    let mut lost_before_growth = None;
    until("both stages are over", || {
        together = together.max(look(&mut node)?);
        let grows = |line: &&Value| line["node_count"] == 2 && line["announce_ns"] != 0;
        if lost_before_growth.is_none() && staged.events("updated").iter().any(|it| grows(&it)) {
            lost_before_growth = Some(sweep.ended("killed"));
        }
        Ok(staged.child.try_wait().context("wait")?.is_some())
    })?;
    let status = staged.wait()?;
    check!(status.success(), "the stages: {status}");
    check_eq!(together, 2, "users whose tasks ran at the same time");
    // Of a job whose end is told while another one's plan takes over nobody may know how it was.
    let known = staged.ended("complete");
    check_eq!(known + staged.ended("unknown"), 3, "tasks of the stages");
    check!(known > 0, "tasks of the stages that are known to be complete");
    check_eq!(staged.events("refused").len(), 0, "refused");

    let updates = staged.events("updated");
    let longer = |line: &&Value| line["node_count"] == 1 && line["announce_ns"] != 0;
    check!(
        updates.iter().any(|it| longer(&it)),
        "that it needs its CPU for longer was not announced: {updates:?}"
    );
    let Some(lost) = lost_before_growth else {
        return Err(format!("its growth was not announced: {updates:?}"));
    };
    check!(lost > 0, "nothing was killed for the CPU that it took at once");
    check_eq!(sweep.ended("killed"), lost, "killed for what was announced");
    check_eq!(sweep.events("violation").len(), 0, "violations");

    // The sweep has all of it again; and leaves nothing when it ends.
    let done = sweep.ended("complete");
    until("it goes on", || Ok(sweep.ended("complete") > done + 3))?;
    sweep.signal(libc::SIGTERM)?;
    let status = sweep.wait()?;
    check!(status.success(), "the sweep: {status}");
    let jobs = all(&mut node.client)?;
    check!(jobs.iter().all(|job| job.state == "over"), "left: {jobs:?}");
    check!(jobs.iter().all(|job| job.cpus.is_some()), "not confined: {jobs:?}");
    let accounts = node.manager.accounts().context("accounts")?;
    let wasted = accounts.iter().filter(|account| account.uid == ANN);
    check!(wasted.map(|account| account.wasted_node_s).sum::<u64>() < 60, "{accounts:?}");
    let log = fs::read_to_string(format!("{DIR}/manager")).unwrap_or_default();
    check!(!log.contains("cancelled"), "somebody had to be stopped: {log}");
    Ok(())
}

/// Jobs that a killed application leaves behind, and jobs that a user has planned on a CPU of
/// another user, are cancelled. Jobs that are not confined to such CPUs continue.
pub fn what_is_left_behind_is_cancelled() -> Verdict {
    with_logs(what_is_left_behind_is_cancelled_inner)
}

fn what_is_left_behind_is_cancelled_inner() -> Verdict {
    let mut node = node(&["--absence", "1s"])?;
    let endless = 500_000_000_000_u64;
    task("task", &[(endless, endless)])?;
    let file = fs::read_to_string(format!("{DIR}/task.toml")).context("task.toml")?;
    let patient = file.replace("\"600s\"", "\"6000s\"");
    fs::write(format!("{DIR}/task.toml"), patient).context("task.toml")?;
    let arguments = ["psa", "--task", "2000s", "--job", "task.toml"];
    let mut sweep = Application::run("sweep", ANN, &arguments)?;
    until("it runs on three CPUs", || {
        look(&mut node)?;
        Ok(running().len() == 3)
    })?;
    sweep.signal(libc::SIGKILL)?;
    sweep.wait()?;
    until("its jobs are cancelled", || {
        let jobs = all(&mut node.client)?;
        Ok(jobs.iter().all(|job| job.outcome.as_deref() == Some("cancelled")))
    })?;
    check_eq!(running().len(), 0, "tasks that run");
    check_eq!(given(&mut node.manager)?.len(), 0, "CPUs that are given");

    // Nobody has a CPU now, and one job claims one.
    let mut free = job("free", "pbs_retire 20000000", 100_000_000, 600_000);
    let mut bold = job("bold", "pbs_retire 500000000000", endless, 6_000_000);
    bold.request = pbs_job::with_values(&bold.request, &[("cpus", "[2]".into())]);
    free.directory = DIR.into();
    node.client.submit(&[free, bold]).context("submit")?;
    until("both are over", || {
        let jobs = all(&mut node.client)?;
        Ok(jobs.iter().all(|job| job.state == "over"))
    })?;
    for job in all(&mut node.client)? {
        let expected = if job.name == "free" { "complete" } else { "cancelled" };
        check_eq!(job.outcome.as_deref(), Some(expected), "{job:?}");
    }
    Ok(())
}
