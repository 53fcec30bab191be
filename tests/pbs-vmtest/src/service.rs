// SPDX-License-Identifier: GPL-2.0
//! The service: jobs come over its socket while a plan runs, each as its owner, and none
//! is lost when it is killed.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use pbs_node_api::{
    Alteration, Array, Client, Environment, Failure, Filter, Job, JobKey, Limit, Refusal,
    Submission,
};

use crate::harness::{cvt, set_sysfs, Context, Verdict};
use crate::jobs::{Disk, MACHINE};
use crate::own_planner::with_planner;
use crate::{check, check_eq};

pub(crate) const DIR: &str = "/tmp/service";
pub(crate) const SOCKET: &str = "/tmp/service/run/pbs.sock";
const HISTORY: &str = "/tmp/service/history.db";
/// A user who is nobody in particular, and another.
pub(crate) const ANN: u32 = 1000;
pub(crate) const BOB: u32 = 1001;

/// The service, which ends with the test.
pub(crate) struct Service(pub(crate) Child);

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An empty directory in which everybody may write.
pub(crate) fn prepare() -> Verdict {
    let _ = fs::remove_dir_all(DIR);
    fs::create_dir_all(DIR).context(DIR)?;
    fs::set_permissions(DIR, fs::Permissions::from_mode(0o777)).context(DIR)?;
    fs::write(format!("{DIR}/data"), vec![7; 2_000_000]).context("data")?;
    fs::write(format!("{DIR}/machine.toml"), MACHINE).context("machine.toml")
}

/// Adds the output of the service to the report of a failure.
pub(crate) fn with_log(test: fn() -> Verdict) -> Verdict {
    test().map_err(|why| {
        let log = fs::read_to_string(format!("{DIR}/log")).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(30)..].join("\n");
        format!("{why}\nthe service:\n{last}")
    })
}

/// Starts it, and waits until it answers.
pub(crate) fn serve() -> Result<(Service, Client), String> {
    serve_with(command(HISTORY))
}

/// Starts the service, whose plans keep the order of their slots.
pub(crate) fn serve_in_order() -> Result<(Service, Client), String> {
    let mut command = command(HISTORY);
    command.args(["--dispatch", "thesis"]);
    serve_with(command)
}

/// Starts the service, which limits the memory of each job and therefore counts it.
pub(crate) fn serve_with_limits() -> Result<(Service, Client), String> {
    let mut command = command(HISTORY);
    command.arg("--limit-memory");
    serve_with(command)
}

/// The service, with the test's socket and machine.
fn command(history: &str) -> Command {
    let machine = format!("{DIR}/machine.toml");
    let mut command = Command::new("pbsd");
    command.args(["--socket", SOCKET, "--history", history]);
    command.args(["--machine", &machine]).stdin(Stdio::null());
    command
}

fn serve_with(mut command: Command) -> Result<(Service, Client), String> {
    let log = fs::OpenOptions::new().create(true).append(true).open(format!("{DIR}/log"));
    let service = command.stdout(Stdio::null()).stderr(log.context("log")?).spawn();
    let mut service = Service(service.context("pbsd")?);
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Ok(client) = Client::connect(Path::new(SOCKET)) {
            return Ok((service, client));
        }
        let ended = service.0.try_wait().context("pbsd")?;
        if ended.is_some() || Instant::now() > deadline {
            let log = fs::read_to_string(format!("{DIR}/log")).unwrap_or_default();
            return Err(format!("the service does not answer: {ended:?}: {log}"));
        }
        sleep(Duration::from_millis(5));
    }
}

/// A job of one process that executes those words of the shell.
pub(crate) fn job(name: &str, shell: &str, insns: u64, deadline_ms: u64) -> Submission {
    let request = format!(
        "name = \"{name}\"\ndeadline_ns = {deadline_ms}_000_000\n[[process]]\nid = 1\n\
         memory_bytes = 32_000_000\ncommand = ['sh', '-c', '''{shell}''']\ntasks = [{insns}]\n"
    );
    Submission {
        file: format!("{name}.toml"),
        request,
        directory: DIR.into(),
        umask: 0o022,
        environment: vec![Environment { name: "PATH".into(), value: "/usr/bin:/bin".into() }],
        ..Submission::default()
    }
}

pub(crate) fn number(number: u64) -> JobKey {
    JobKey { number: Some(number), name: None }
}

fn named(name: &str) -> JobKey {
    JobKey { number: None, name: Some(name.into()) }
}

pub(crate) fn all(client: &mut Client) -> Result<Vec<Job>, String> {
    let filter = Filter { last: Some(10_000), ..Filter::default() };
    client.list(&filter).context("list")
}

/// Whether it is in the plan, or has been: it may begin before the answer is made.
fn is_planned(job: &Job) -> bool {
    ["planned", "running", "over"].contains(&&*job.state)
}

/// Waits until all jobs are over.
pub(crate) fn all_over(client: &mut Client) -> Result<Vec<Job>, String> {
    let deadline = Instant::now() + Duration::from_secs(600);
    loop {
        let jobs = all(client)?;
        if jobs.iter().all(|job| job.state == "over") {
            return Ok(jobs);
        }
        check!(Instant::now() < deadline, "still not over: {jobs:?}");
        sleep(Duration::from_millis(20));
    }
}

/// A command of the service's options admits and declines jobs, as another user and without the
/// service waiting for it.
pub fn command_admits_jobs_of_the_service() -> Verdict {
    with_log(|| with_planner(command_admits_inner))
}

fn command_admits_inner() -> Verdict {
    prepare()?;
    let plan = "[[process]]\nid = 1\nmemory_bytes = 32_000_000\ntasks = [20_000_000]\n[[cpu]]\n\
                cpu = 0\nrate_insns_per_ms = 250_000\nslots = [1]\n";
    fs::write(format!("{DIR}/plan.toml"), plan).context("plan.toml")?;
    let line = format!(
        "command test \"$(id -u) $(id -G)\" = '4711 4712' || exit 3; sleep 1; \
         if grep -q unwanted; then echo '{{\"declined\": \"it is Sunday\"}}'; \
         else cat {DIR}/plan.toml; fi"
    );
    let mut command = command(HISTORY);
    // The machine is emulated, and slow.
    command.args(["--admission", &line, "--admission-timeout", "30"]);
    command.args(["--admission-user", "planner"]);
    let (_service, mut client) = serve_with(command)?;
    let log = || fs::read_to_string(format!("{DIR}/log")).context("log");

    let jobs = client.submit(&[job("alone", "true", 20_000_000, 60_000)]).context("submit")?;
    check_eq!(jobs[0].state, "waiting", "the command thinks: {jobs:?}");
    let jobs = all_over(&mut client)?;
    check_eq!(jobs[0].outcome.as_deref(), Some("complete"), "admitted: {jobs:?}");
    check!(!log()?.contains("the built-in planner decides"), "log: {}", log()?);

    client.submit(&[job("unwanted", "true", 20_000_000, 60_000)]).context("submit")?;
    let jobs = all_over(&mut client)?;
    let unwanted = jobs.iter().find(|job| job.name == "unwanted").ok_or("unwanted")?;
    check_eq!(unwanted.outcome.as_deref(), Some("declined"), "declined: {unwanted:?}");
    check_eq!(unwanted.reason.as_deref(), Some("it is Sunday"), "why: {unwanted:?}");

    // The plan of the command has a shorter task.
    client.submit(&[job("long", "true", 30_000_000, 60_000)]).context("submit")?;
    let jobs = all_over(&mut client)?;
    let long = jobs.iter().find(|job| job.name == "long").ok_or("long")?;
    check_eq!(long.outcome.as_deref(), Some("complete"), "the built-in planner: {long:?}");
    check!(log()?.contains("with other tasks of process 1 of job long"), "log: {}", log()?);
    Ok(())
}

/// Jobs come while others run: they are planned beside them, wait for each other, are
/// held, altered, ended, or declined with the deadline that would do.
pub fn service_takes_jobs() -> Verdict {
    with_log(takes_jobs_inner)
}

fn takes_jobs_inner() -> Verdict {
    prepare()?;
    let (service, mut client) = serve()?;
    let long = job("long", "sha256sum data data data data", 600_000_000, 20_000);
    let jobs = client.submit(&[long]).context("submit")?;
    let long = jobs[0].number;
    check!(is_planned(&jobs[0]), "the first: {jobs:?}");
    let expected = jobs[0].expected_end_unix_ns;
    check!(expected <= jobs[0].deadline_unix_ns && expected.is_some(), "expected: {jobs:?}");

    let hasty = Alteration { deadline_ns: Some(1_000_000), ..Alteration::default() };
    let refused = client.alter(&number(long), &hasty);
    check!(
        matches!(refused, Err(Failure::Refused(Refusal::Declined { .. }))),
        "a deadline that its plan does not keep: {refused:?}"
    );

    // Behind it, into the running plan.
    let short = job("short", "echo short > short", 20_000_000, 20_000);
    let jobs = client.submit(&[short]).context("submit into the running plan")?;
    check!(is_planned(&jobs[0]), "the second: {jobs:?}");
    let short = jobs[0].number;

    // One that would be late, and what it says would do: even ahead of all others it would
    // take 80 ms from 100 ms on.
    let mut late = job("late", "true", 20_000_000, 150);
    let explained = client.explain(&late).context("explain")?;
    let refused = client.submit(std::slice::from_ref(&late));
    let Err(Failure::Refused(Refusal::Declined {
        earliest_deadline_ns: Some(earliest_ns), ..
    })) = refused
    else {
        return Err(format!("a job that would be late was not declined: {refused:?}"));
    };
    check!(!explained.admitted, "explain: {explained:?}");
    // The machine's time passes while it is submitted.
    late.request =
        (late.request).replace("150_000_000", &(earliest_ns + 20_000_000_000).to_string());
    let jobs = client.submit(&[late]).context("submit with that deadline")?;
    check!(is_planned(&jobs[0]), "with that deadline: {jobs:?}");
    // None or all.
    let one = job("one", "echo one > one", 20_000_000, 30_000);
    let never = job("never", "true", 20_000_000, 1);
    let refused = client.submit(&[one, never]);
    check!(refused.is_err(), "one of two that would be late: {refused:?}");

    let mut held = job("held", "echo held > held", 20_000_000, 30_000);
    held.hold = Some(true);
    let held = client.submit(&[held]).context("submit a held job")?.swap_remove(0);
    check_eq!(held.state, "held", "{held:?}");
    let mut after = job("after", "cat short held > after", 20_000_000, 30_000);
    // The first may have ended by now.
    after.afterok = Some(vec![short, held.number]);
    let mut array = job("array", "echo $SCHED_PBS_ARRAY_INDEX >> array", 20_000_000, 30_000);
    array.array = Some(Array { first: 1, last: 5, step: Some(2) });
    let mut unwanted = job("unwanted", "echo unwanted > unwanted", 20_000_000, 30_000);
    unwanted.request = format!("start_ns = 20_000_000_000\n{}", unwanted.request);
    let jobs = client.submit(&[after, array, unwanted]).context("submit more")?;
    let names: Vec<_> = jobs.iter().map(|job| &*job.name).collect();
    check_eq!(names, ["after", "array[1]", "array[3]", "array[5]", "unwanted"], "names");
    check_eq!(jobs[0].state, "waiting", "states: {jobs:?}");
    check!(jobs[1..].iter().all(is_planned), "states: {jobs:?}");
    let reason = jobs[0].reason.clone().unwrap_or_default();
    check!(reason.starts_with("after "), "reason: {reason}");
    check!(reason.ends_with(&held.number.to_string()), "reason: {reason}");

    client.cancel(&named("unwanted")).context("cancel")?;
    let alteration =
        Alteration { deadline_ns: Some(40_000_000_000), priority: Some(3), request: None };
    let altered = client.alter(&named("held"), &alteration).context("alter")?;
    check_eq!(altered.job.priority, Some(3), "altered: {altered:?}");
    let from_ns = altered.job.submitted_unix_ns;
    let deadline = altered.job.deadline_unix_ns;
    check_eq!(deadline, Some(from_ns + 40_000_000_000), "altered: {altered:?}");
    client.release(&named("held")).context("release")?;

    let over = all_over(&mut client)?;
    for job in &over {
        let outcome = job.outcome.as_deref();
        match &*job.name {
            "unwanted" => check_eq!(outcome, Some("cancelled"), "{job:?}"),
            _ => {
                check_eq!(outcome, Some("complete"), "{job:?}");
                check_eq!(job.kept, Some(true), "{job:?}");
            }
        }
    }
    check_eq!(over.len(), 9, "jobs: {over:?}");
    let read = |name: &str| fs::read_to_string(format!("{DIR}/{name}")).unwrap_or_default();
    check_eq!(read("short"), "short\n", "what the second wrote");
    check_eq!(read("after"), "short\nheld\n", "what the one after both read");
    check_eq!(read("held"), "held\n", "what the one that was held wrote");
    // They have one CPU, and no order.
    let array = read("array");
    let mut array: Vec<_> = array.lines().collect();
    array.sort_unstable();
    check_eq!(array, ["1", "3", "5"], "what the array wrote");
    for absent in ["unwanted", "one"] {
        check_eq!(read(absent), "", "what was not to run");
    }
    let shown = client.show(&number(short)).context("show")?;
    check_eq!(shown.programs.len(), 1, "programs: {shown:?}");
    check_eq!(shown.programs[0].code, Some(0), "programs: {shown:?}");
    check_eq!(shown.processes[0].ended_tasks, 1, "processes: {shown:?}");
    metrics_agree()?;

    // What is drained waits.
    client.drain(true).context("drain")?;
    let waits = job("waits", "true", 20_000_000, 30_000);
    let jobs = client.submit(&[waits]).context("submit while it drains")?;
    check_eq!(jobs[0].state, "waiting", "while it drains: {jobs:?}");
    check_eq!(jobs[0].reason.as_deref(), Some("draining"), "reason");
    // The next service is drained, too.
    drop((client, service));
    let (_service, mut client) = serve()?;
    check_eq!(client.status().context("status")?.state, "draining", "after a restart");
    let job = client.show(&number(jobs[0].number)).context("show")?.job;
    check_eq!(job.reason.as_deref(), Some("draining"), "reason after a restart");
    client.drain(false).context("resume")?;
    all_over(&mut client)?;
    Ok(())
}

/// The metrics have the jobs of the test, and figures of the kernel and of the calls.
fn metrics_agree() -> Verdict {
    let page = Command::new("pbsctl").args(["node", "metrics", "--socket", SOCKET]).output();
    let page = page.context("pbsctl node metrics")?;
    let page = String::from_utf8_lossy(&page.stdout);
    for line in [
        "pbs_class_up 1.0",
        "pbs_service_up 1.0",
        "pbs_jobs{state=\"running\"} 0.0",
        "pbs_jobs_submitted_total{user=\"root\"} 9.0",
        "pbs_jobs_ended_total{user=\"root\",outcome=\"cancelled\"} 1.0",
        "pbs_jobs_ended_total{user=\"root\",outcome=\"complete\"} 8.0",
        "pbs_deadlines_kept_total{user=\"root\"} 8.0",
        "pbs_deadlines_missed_total{user=\"root\"} 0.0",
        "pbs_user_budget_used{user=\"root\",resource=\"jobs\"} 0.0",
    ] {
        check!(page.lines().any(|it| it == line), "{line} is not in\n{page}");
    }
    let value = |series: &str| {
        let line = page.lines().find_map(|line| line.strip_prefix(series));
        line.and_then(|value| value.trim().parse::<f64>().ok()).unwrap_or(-1.0)
    };
    let ended = value("pbs_events_total{cpu=\"0\",kind=\"task_ended\"}")
        + value("pbs_events_total{cpu=\"1\",kind=\"task_ended\"}");
    check!(ended >= 8.0, "ended tasks: {ended} in\n{page}");
    let refused = value("pbs_calls_refused_total{method=\"Submit\"}");
    check!(refused >= 2.0, "refused submissions: {refused} in\n{page}");
    Ok(())
}

/// Calls `what` as another user, in a process of its own.
pub(crate) fn as_user(uid: u32, what: impl FnOnce() -> Verdict) -> Verdict {
    begin_as_user(uid, what)?.end()
}

/// A process that does something as another user.
pub(crate) struct OfUser {
    uid: u32,
    pid: i32,
}

impl OfUser {
    /// Waits until it has done that.
    pub(crate) fn end(self) -> Verdict {
        let mut status = 0;
        // SAFETY: `status` is valid for writing.
        cvt(unsafe { libc::waitpid(self.pid, &mut status, 0) }).context("wait")?;
        check_eq!(status, 0, "user {}", self.uid);
        Ok(())
    }
}

/// Begins to call `what` as another user, in a process of its own.
pub(crate) fn begin_as_user(uid: u32, what: impl FnOnce() -> Verdict) -> Result<OfUser, String> {
    // SAFETY: this program has one thread; the child ends below.
    let child = cvt(unsafe { libc::fork() }).context("fork")?;
    if child == 0 {
        // SAFETY: calls with valid arguments, in a process of one thread.
        let became = unsafe {
            libc::setgroups(1, [5000].as_ptr()) == 0
                && libc::setgid(uid) == 0
                && libc::setuid(uid) == 0
        };
        let verdict = if became { what() } else { Err("it could not become that user".into()) };
        if let Err(why) = &verdict {
            println!("user {uid}: {why}");
        }
        // SAFETY: ends the child, without what the parent does at its end.
        unsafe { libc::_exit(i32::from(verdict.is_err())) };
    }
    Ok(OfUser { uid, pid: child })
}

/// An allocation of Slurm for a job is for jobs of its user alone, also for a service that is
/// restarted, and its remaining jobs end with it.
pub fn service_has_allocations() -> Verdict {
    with_log(has_allocations_inner)
}

fn has_allocations_inner() -> Verdict {
    prepare()?;
    let second = r#"{ name = "cpu0", cpu = 0 }, { name = "cpu1", cpu = 1 }"#;
    let machine = MACHINE.replace(r#"{ name = "cpu0", cpu = 0 }"#, second);
    fs::write(format!("{DIR}/machine.toml"), machine).context("machine.toml")?;
    let (service, mut client) = serve()?;
    let in_allocation = |name: &str, shell: &str| Submission {
        allocation: Some(7),
        ..job(name, shell, 100_000_000, 60_000)
    };
    let is_not_permitted =
        |failure: &Failure| matches!(failure, Failure::Refused(Refusal::NotPermitted { .. }));
    let may_not = |what: Result<(), Failure>| {
        let refused = what.as_ref().is_err_and(is_not_permitted);
        check!(refused, "what one may not: {what:?}");
        Ok(())
    };
    as_user(ANN, || {
        let mut client = Client::connect(Path::new(SOCKET)).context("connect")?;
        may_not(client.allocate((7, 0), ANN, &[0], None, None).map(drop))?;
        may_not(client.submit(&[in_allocation("early", "true")]).map(drop))
    })?;
    let cpus = client.allocate((7, 0), ANN, &[0], None, None);
    check_eq!(cpus.context("allocate")?, [0], "its CPUs");
    let again = client.allocate((8, 0), BOB, &[0, 1], None, None);
    check!(again.is_err(), "a core of two: {again:?}");
    as_user(ANN, || {
        let mut client = Client::connect(Path::new(SOCKET)).context("connect")?;
        let jobs = client.submit(&[in_allocation("long", "sleep 1000")]);
        let jobs = jobs.context("submit in it")?;
        check_eq!(jobs[0].cpus, Some(vec![0]), "in it: {jobs:?}");
        check_eq!(jobs[0].allocation, Some(7), "in it: {jobs:?}");
        Ok(())
    })?;
    as_user(BOB, || {
        let mut client = Client::connect(Path::new(SOCKET)).context("connect")?;
        may_not(client.submit(&[in_allocation("thief", "true")]).map(drop))?;
        may_not(client.deallocate(7, 0).map(drop))?;
        let mut there = job("there", "true", 20_000_000, 20_000);
        there.request = format!("cpus = [0]\n{}", there.request);
        let refused = client.submit(&[there]);
        check!(
            matches!(refused, Err(Failure::Refused(Refusal::Declined { .. }))),
            "on hers: {refused:?}"
        );
        let beside = client.submit(&[job("beside", "true", 20_000_000, 20_000)]);
        let beside = beside.context("submit beside")?;
        check_eq!(beside[0].cpus, Some(vec![1]), "beside: {beside:?}");
        Ok(())
    })?;
    // One that is killed is followed by one that knows all of that.
    drop(service);
    let (_service, mut client) = serve()?;
    let long = client.show(&named("long")).context("show")?.job;
    check_eq!(long.allocation, Some(7), "after a restart: {long:?}");
    check!(long.state != "over", "after a restart: {long:?}");
    as_user(BOB, || {
        let mut client = Client::connect(Path::new(SOCKET)).context("connect")?;
        may_not(client.submit(&[in_allocation("thief", "true")]).map(drop))?;
        let beside = client.submit(&[job("beside", "true", 20_000_000, 20_000)]);
        let beside = beside.context("submit beside")?;
        check_eq!(beside[0].cpus, Some(vec![1]), "after a restart: {beside:?}");
        Ok(())
    })?;
    let ending = client.deallocate(7, 0).context("deallocate")?;
    check_eq!(ending, [long.number], "what ends with it");
    as_user(ANN, || {
        let mut client = Client::connect(Path::new(SOCKET)).context("connect")?;
        may_not(client.submit(&[in_allocation("late", "true")]).map(drop))
    })?;
    let over = all_over(&mut client)?;
    let long = over.iter().find(|job| job.number == long.number);
    let long = long.ok_or("it is gone")?;
    check_eq!(long.outcome.as_deref(), Some("cancelled"), "{long:?}");
    let why = long.reason.clone().unwrap_or_default();
    check!(why.contains("allocation 7 has ended"), "{long:?}");
    let free = client.submit(&[job("free", "true", 20_000_000, 20_000)]);
    let free = free.context("submit")?;
    check_eq!(free[0].cpus, None, "when it is free: {free:?}");
    all_over(&mut client)?;
    // One of a daemon that has ended without a word is over with it.
    as_user(0, || {
        let mut client = Client::connect(Path::new(SOCKET)).context("connect")?;
        let cpus = client.allocate((9, 0), BOB, &[1], None, None);
        check_eq!(cpus.context("allocate")?, [1], "of one who ends");
        Ok(())
    })?;
    let cpus = client.allocate((10, 0), ANN, &[1], None, None);
    check_eq!(cpus.context("allocate")?, [1], "of one who has ended");
    Ok(())
}

/// Users run their own jobs, as themselves, and have nothing to say about others'.
pub fn service_is_for_all_users() -> Verdict {
    with_log(is_for_all_users_inner)
}

fn is_for_all_users_inner() -> Verdict {
    prepare()?;
    let (_service, mut client) = serve()?;
    let script = "id -u; id -g; id -G; umask; pwd; echo $COLOUR; ulimit -n; \
         awk '/pending signals/ { print $4, $5 }' /proc/self/limits; \
         echo $SCHED_PBS_CPU $SCHED_PBS_PROGRAM $SCHED_PBS_MEMORY_BYTES; cat /proc/self/cgroup; \
                  (sleep 1000 &) ; touch made";
    as_user(ANN, || {
        let mut client = Client::connect(Path::new(SOCKET)).context("connect")?;
        let mut own = job("own", script, 100_000_000, 20_000);
        own.umask = 0o027;
        own.environment.push(Environment { name: "COLOUR".into(), value: "blue".into() });
        own.limits =
            Some(vec![Limit { resource: "nofile".into(), soft: Some(77), hard: Some(88) }]);
        own.output = Some("own.out".into());
        client.submit(&[own]).context("submit")?;
        // A file of root's is neither read nor emptied, nor does a priority come cheap.
        fs::write(format!("{DIR}/ann"), "").context("a file of hers")?;
        let mut steals = job("steals", "cat", 20_000_000, 20_000);
        steals.output = Some("/etc/passwd".into());
        let refused = client.submit(&[steals]);
        check!(
            matches!(&refused, Err(Failure::Refused(Refusal::Failed { why }))
                if why.contains("standard output") && why.contains("Permission denied")),
            "a file of root's: {refused:?}"
        );
        let mut vain = job("vain", "true", 20_000_000, 20_000);
        vain.priority = Some(1);
        let refused = client.submit(&[vain]);
        check!(
            matches!(refused, Err(Failure::Refused(Refusal::NotPermitted { .. }))),
            "a priority: {refused:?}"
        );
        let mut held = job("of-ann", "true", 20_000_000, 20_000);
        held.hold = Some(true);
        client.submit(&[held]).context("submit")?;
        Ok(())
    })?;
    as_user(BOB, || {
        let mut client = Client::connect(Path::new(SOCKET)).context("connect")?;
        let jobs = all(&mut client)?;
        let of_ann = jobs.iter().find(|job| job.name == "of-ann").ok_or("hers is not shown")?;
        check_eq!(of_ann.uid, Some(ANN), "whose it is");
        let key = number(of_ann.number);
        let shown = client.show(&key).context("show")?;
        check_eq!(shown.request, None, "what is hers to read");
        let refused = [
            client.cancel(&key).err(),
            client.hold(&key).err(),
            client.release(&key).err(),
            client.alter(&key, &Alteration::default()).err(),
            client.drain(true).err(),
            client.plan().err(),
        ];
        for refused in refused {
            check!(
                matches!(refused, Some(Failure::Refused(Refusal::NotPermitted { .. }))),
                "what is hers or an operator's: {refused:?}"
            );
        }
        let missing = client.cancel(&named("of-ann")).err();
        check!(
            matches!(missing, Some(Failure::Refused(Refusal::NoSuchJob { .. }))),
            "by its name: {missing:?}"
        );
        Ok(())
    })?;
    check!(!fs::read("/etc/passwd").unwrap_or_default().starts_with(b"\n"), "/etc/passwd");
    client.cancel(&named("of-ann")).context("root ends it")?;
    let over = all_over(&mut client)?;
    let own = over.iter().find(|job| job.name == "own").ok_or("own")?;
    check_eq!(own.outcome.as_deref(), Some("complete"), "own: {own:?}");
    let out = fs::read_to_string(format!("{DIR}/own.out")).context("own.out")?;
    let mut lines: Vec<_> = out.lines().collect();
    let cgroup = lines.pop().unwrap_or_default().to_string();
    check_eq!(
        lines,
        ["1000", "1000", "1000 5000", "0027", DIR, "blue", "77", "64 64", "0 1 32000000"],
        "what it has: {out}"
    );
    let group = format!("/job-{}", own.number);
    check!(cgroup.ends_with(&group), "its control group: {cgroup}");
    let made = Path::new(DIR).join("made").metadata().context("made")?;
    let of = (made.uid(), made.gid(), made.mode() & 0o777);
    check_eq!(of, (ANN, ANN, 0o640), "what it made");
    // What it left behind has ended with it.
    let deadline = Instant::now() + Duration::from_secs(10);
    while Path::new("/sys/fs/cgroup").join(&group[1..]).exists() {
        check!(Instant::now() < deadline, "its control group is still there");
        sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// The service is killed again and again, at any point, while jobs come: what it has
/// said to be taken is run, and nothing is run twice.
pub fn service_is_killed() -> Verdict {
    with_log(is_killed_inner)
}

fn is_killed_inner() -> Verdict {
    prepare()?;
    let kills = std::env::var("PBS_KILLS").ok();
    let kills = kills.and_then(|kills| kills.parse().ok()).unwrap_or(25u64);
    let mut taken: BTreeMap<u64, String> = BTreeMap::new();
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    for round in 0..kills {
        let (service, mut client) = serve()?;
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let until = Instant::now() + Duration::from_micros(random % 60_000);
        let pid = service.0.id() as i32;
        // It dies when it dies, whatever is being asked.
        let killer = std::thread::spawn(move || {
            sleep(until.saturating_duration_since(Instant::now()));
            // SAFETY: a child of this process that was not waited for yet.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        });
        for index in 0..50 {
            let name = format!("job-{round}-{index}");
            let shell = "echo $SCHED_PBS_JOB_ID >> ran";
            match client.submit(&[job(&name, shell, 20_000_000, 600_000)]) {
                Ok(jobs) => {
                    taken.insert(jobs[0].number, name);
                }
                Err(Failure::Connection(_)) => break,
                Err(other) => return Err(format!("{name}: {other}")),
            }
        }
        killer.join().map_err(|_| "killer")?;
        drop(service);
    }
    let (_service, mut client) = serve()?;
    let jobs = all_over(&mut client)?;
    let ran = fs::read_to_string(format!("{DIR}/ran")).unwrap_or_default();
    let mut times: BTreeMap<u64, u32> = BTreeMap::new();
    for line in ran.lines() {
        *times.entry(line.parse().context(line)?).or_default() += 1;
    }
    for (number, name) in &taken {
        let known = jobs.iter().find(|job| job.number == *number);
        check!(known.is_some_and(|job| job.name == *name), "{name} is lost");
    }
    for job in &jobs {
        let times = times.remove(&job.number).unwrap_or(0);
        check_eq!(times, 1, "how often {} was run: {job:?}", job.name);
    }
    check!(times.is_empty(), "what nobody knows has run: {times:?}");
    check!(!taken.is_empty(), "no job was taken in {kills} rounds");
    println!("{} jobs, of which {} were said to be taken", jobs.len(), taken.len());
    Ok(())
}

/// Many clients submit at once: all are answered, and all that is taken is run once. Says
/// how long an answer takes, which comes when the plan is in force.
pub fn service_answers_many() -> Verdict {
    with_log(answers_many_inner)
}

fn answers_many_inner() -> Verdict {
    prepare()?;
    let asked = |name: &str, default: usize| -> usize {
        let asked = std::env::var(name).ok();
        asked.and_then(|it| it.parse().ok()).unwrap_or(default)
    };
    let (all_clients, each) = (asked("PBS_CLIENTS", 10), asked("PBS_JOBS", 12));
    let planned_cpus = asked("PBS_CPUS", 1);
    let cores = (0..planned_cpus).map(|cpu| format!("{{ name = \"c{cpu}\", cpu = {cpu} }}"));
    let cores = cores.collect::<Vec<_>>().join(", ");
    let machine = MACHINE.replace("{ name = \"cpu0\", cpu = 0 }", &cores);
    fs::write(format!("{DIR}/machine.toml"), machine).context("machine.toml")?;
    let (service, mut client) = serve()?;
    // A plan is in force all the while, whose process sleeps; and the jobs begin only when
    // all are there. The emulator has one CPU after the other run for up to 100 ms, so where
    // two run there is nothing to be measured.
    let long = job("long", "sleep 2", 100_000_000, 600_000);
    for _ in 0..planned_cpus {
        client.submit(std::slice::from_ref(&long)).context("submit")?;
    }
    let clients: Vec<_> = (0..all_clients)
        .map(|who| {
            std::thread::spawn(move || -> Result<Vec<u64>, String> {
                let mut client = Client::connect(Path::new(SOCKET)).context("connect")?;
                let mut took_ns = Vec::new();
                for index in 0..each {
                    let name = format!("job-{who}-{index}");
                    let shell = "echo $SCHED_PBS_JOB_ID >> ran";
                    let mut one = job(&name, shell, 20_000_000, 3_600_000);
                    let later = "start_ns = 4_000_000_000\ndeadline_ns";
                    one.request = one.request.replace("deadline_ns", later);
                    let asked = Instant::now();
                    let jobs = client.submit(&[one]).context(&name)?;
                    took_ns.push(asked.elapsed().as_nanos() as u64);
                    check_eq!(jobs[0].name, name, "whose answer that is");
                }
                Ok(took_ns)
            })
        })
        .collect();
    let mut took_ns = Vec::new();
    for client in clients {
        took_ns.extend(client.join().map_err(|_| "a client")??);
    }
    let stat = fs::read_to_string(format!("/proc/{}/schedstat", service.0.id()));
    let ran_ns: u64 =
        stat.unwrap_or_default().split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0);
    took_ns.sort_unstable();
    let at = |permille: usize| took_ns[(took_ns.len() - 1) * permille / 1000] / 1000;
    println!(
        "{} answers: median {} us, 99 % {} us, longest {} us; the thread of the node had {} us \
         of a CPU for each",
        took_ns.len(),
        at(500),
        at(990),
        at(1000),
        ran_ns / 1000 / took_ns.len() as u64
    );
    let over = all_over(&mut client)?;
    check_eq!(over.len(), all_clients * each + planned_cpus, "jobs");
    for job in &over {
        check_eq!(job.outcome.as_deref(), Some("complete"), "{job:?}");
        check_eq!(job.kept, Some(true), "{job:?}");
    }
    let ran = fs::read_to_string(format!("{DIR}/ran")).unwrap_or_default();
    let mut numbers: Vec<u64> = ran.lines().filter_map(|line| line.parse().ok()).collect();
    check_eq!(numbers.len(), all_clients * each, "how many have run");
    numbers.sort_unstable();
    numbers.dedup();
    check_eq!(numbers.len(), all_clients * each, "how many have run once");
    Ok(())
}

/// systemd has the socket: who connects while there is no service is answered by the next
/// one, which listens nowhere else.
pub fn service_is_handed_a_socket() -> Verdict {
    with_log(is_handed_a_socket_inner)
}

fn is_handed_a_socket_inner() -> Verdict {
    const OTHER: &str = "/tmp/service/run/other.sock";
    prepare()?;
    fs::create_dir_all(format!("{DIR}/run")).context("run")?;
    // One that waits, which is how systemd hands it over.
    let listener = UnixListener::bind(SOCKET).context(SOCKET)?;
    let mut early = Client::connect(Path::new(SOCKET)).context("connect early")?;
    let service = serve_at(&listener, OTHER)?;
    early.status().context("who connected before")?;
    let mut late = Client::connect(Path::new(SOCKET)).context("connect late")?;
    late.status().context("who connected after")?;
    early.status().context("who connected before, again")?;
    check!(!Path::new(OTHER).exists(), "it listens at {OTHER}, too");
    let long = job("long", "sha256sum data data > sum", 300_000_000, 60_000);
    early.submit(&[long]).context("submit")?;

    drop(service);
    check!(early.status().is_err(), "somebody answers for the killed");
    let mut meanwhile = Client::connect(Path::new(SOCKET)).context("connect meanwhile")?;
    let _service = serve_at(&listener, OTHER)?;
    let jobs = all_over(&mut meanwhile)?;
    let outcomes: Vec<_> = jobs.iter().map(|job| job.outcome.as_deref()).collect();
    check_eq!(outcomes, [Some("complete")], "outcomes: {jobs:?}");
    Ok(())
}

/// Starts it with a socket at descriptor 3 (sd_listen_fds(3)), and one to listen at if it
/// takes no notice of that.
fn serve_at(listener: &UnixListener, other: &str) -> Result<Service, String> {
    let machine = format!("{DIR}/machine.toml");
    let log = fs::OpenOptions::new().create(true).append(true).open(format!("{DIR}/log"));
    let shell = "exec 3<&0 </dev/null; export LISTEN_PID=$$ LISTEN_FDS=1; exec pbsd \"$@\"";
    let service = Command::new("sh")
        .args(["-c", shell, "pbsd", "--socket", other])
        .args(["--history", HISTORY, "--machine", &machine])
        .stdin(OwnedFd::from(listener.try_clone().context("the socket")?))
        .stdout(Stdio::null())
        .stderr(log.context("log")?)
        .spawn();
    Ok(Service(service.context("pbsd")?))
}

/// The disk of the history becomes full while jobs run: they go on to their ends, what
/// comes is not taken, and when there is room again all goes on; what ended meanwhile is
/// recorded then. The clock is set back meanwhile.
pub fn service_has_no_room() -> Verdict {
    with_log(has_no_room_inner)
}

fn has_no_room_inner() -> Verdict {
    prepare()?;
    let disk = Disk::mount("size=512k")?;
    let (service, mut client) = serve_with(command(disk.file()))?;
    let before = job("before", "sha256sum data data > before", 600_000_000, 60_000);
    let meanwhile = job("meanwhile", "echo meanwhile > meanwhile", 20_000_000, 60_000);
    client.submit(&[meanwhile, before]).context("submit")?;
    disk.fill()?;
    let answer = client.submit(&[job("full", "true", 20_000_000, 60_000)]);
    check!(
        matches!(answer, Ok(_) | Err(Failure::Refused(Refusal::Failed { .. }))),
        "on a full disk: {answer:?}"
    );
    // Its order may fit in what SQLite has left of its own files, and its start may not: it
    // waits for another attempt then, or is over, and says why.
    let jobs = client.list(&Filter::default()).context("list")?;
    let full: Vec<_> = jobs.iter().filter(|job| job.name == "full").collect();
    check!(answer.is_err() || full.len() == 1, "it was taken and is not there: {jobs:?}");
    for job in &full {
        check!(
            job.state == "waiting" || job.outcome.as_deref() == Some("failed"),
            "on a full disk: {job:?}"
        );
        let why = job.reason.as_deref().unwrap_or_default();
        check!(why.contains("the disk is full"), "on a full disk: {job:?}");
    }
    let waits = full.iter().any(|job| job.state == "waiting");
    // It has ended, and so has the one before it, by the plan.
    written(&Path::new(DIR).join("before"))?;
    // More than a turn of the service.
    sleep(Duration::from_millis(300));
    disk.empty();
    // An hour back.
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is valid for reading and writing.
    unsafe {
        libc::clock_gettime(libc::CLOCK_REALTIME, &mut now);
        now.tv_sec -= 3600;
        cvt(libc::clock_settime(libc::CLOCK_REALTIME, &now)).context("clock")?;
    }
    let after = job("after", "echo after > after", 20_000_000, 60_000);
    let jobs = client.submit(&[after]).context("submit when there is room")?;
    check!(["planned", "running"].contains(&&*jobs[0].state), "when there is room: {jobs:?}");
    let mut over = all_over(&mut client)?;
    over.retain(|job| waits || job.name != "full");
    check_eq!(over.len(), 3 + usize::from(waits), "jobs: {over:?}");
    for job in &over {
        check_eq!(job.outcome.as_deref(), Some("complete"), "{job:?}");
        check_eq!(job.kept, Some(true), "{job:?}");
    }
    drop(service);
    Ok(())
}

/// Waits until a job has written its file.
fn written(file: &Path) -> Result<(), String> {
    let deadline = Instant::now() + Duration::from_secs(60);
    while fs::metadata(file).map_or(0, |file| file.len()) == 0 {
        check!(Instant::now() < deadline, "{} is not written", file.display());
        sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// A service that cannot start reports that in a line and ends: a history that can't be written, no
/// device. If the device file of a running service goes away, running and later jobs continue.
pub fn service_has_no_device() -> Verdict {
    with_log(has_no_device_inner)
}

/// Exit status and output of a service that can't start.
fn refuses(history: &str) -> Result<String, String> {
    let refused = command(history).output().context("pbsd")?;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    check_eq!(refused.status.code(), Some(1), "{said}");
    check!(!said.contains("panicked"), "{said}");
    check_eq!(said.lines().count(), 1, "{said}");
    Ok(said)
}

fn has_no_device_inner() -> Verdict {
    const DEVICE: &str = "/dev/pbs_plan";
    const AWAY: &str = "/dev/pbs_plan.away";
    prepare()?;
    let disk = Disk::mount("size=1m")?;
    let (service, mut client) = serve_with(command(disk.file()))?;
    client.submit(&[job("before", "true", 20_000_000, 60_000)]).context("submit")?;
    all_over(&mut client)?;
    drop(service);
    disk.remount("ro")?;
    let said = refuses(disk.file())?;
    check!(said.contains(disk.file()), "no word of the history: {said}");
    disk.remount("rw")?;

    fs::rename(DEVICE, AWAY).context(DEVICE)?;
    let said = refuses(disk.file());
    fs::rename(AWAY, DEVICE).context(DEVICE)?;
    check!(said.clone()?.contains(DEVICE), "no word of the device: {said:?}");

    let (_service, mut client) = serve_with(command(disk.file()))?;
    let during = job("during", "sha256sum data > during", 300_000_000, 60_000);
    client.submit(&[during]).context("submit")?;
    fs::rename(DEVICE, AWAY).context(DEVICE)?;
    let later = client.submit(&[job("later", "true", 20_000_000, 60_000)]);
    let over = later.map(|_| all_over(&mut client));
    fs::rename(AWAY, DEVICE).context(DEVICE)?;
    let over = over.context("submit without the device")??;
    check_eq!(over.len(), 3, "jobs: {over:?}");
    for job in &over {
        check_eq!(job.outcome.as_deref(), Some("complete"), "{job:?}");
    }
    Ok(())
}

/// The kernel's watchdog drops the plan: who ran under it goes on without, comes to its end
/// and is told of, and the service takes the next job.
pub fn service_survives_the_watchdog() -> Verdict {
    with_log(survives_the_watchdog_inner)
}

fn survives_the_watchdog_inner() -> Verdict {
    prepare()?;
    set_sysfs("watchdog_ms", "500")?;
    let (_service, mut client) = serve()?;
    let long = job("long", "sha256sum data data data > long", 900_000_000, 60_000);
    client.submit(&[long]).context("submit")?;
    let deadline = Instant::now() + Duration::from_secs(60);
    while all(&mut client)?[0].state != "running" {
        check!(Instant::now() < deadline, "it does not run");
        sleep(Duration::from_millis(5));
    }
    set_sysfs("cpu0/fault", "decision")?;
    let over = all_over(&mut client)?;
    check!(
        over[0].outcome.as_deref() != Some("complete"),
        "nothing is told of the plan that was dropped: {over:?}"
    );
    while fs::metadata(format!("{DIR}/long")).map_or(0, |of| of.len()) == 0 {
        check!(Instant::now() < deadline, "the program did not go on");
        sleep(Duration::from_millis(20));
    }
    client
        .submit(&[job("next", "echo next > next", 20_000_000, 60_000)])
        .context("submit after that")?;
    let over = all_over(&mut client)?;
    let next = over.iter().find(|job| job.name == "next");
    check_eq!(next.and_then(|job| job.outcome.as_deref()), Some("complete"), "{over:?}");
    Ok(())
}

/// A cluster of this node: what is planned there is started when its time has come, planned
/// by the service in the class, and its end is told upwards. One that would not be over in
/// its time is refused, and one that is started again after the cluster's side was killed
/// is not started twice.
pub fn service_carries_out_a_cluster() -> Verdict {
    with_log(carries_out_a_cluster_inner)
}

fn carries_out_a_cluster_inner() -> Verdict {
    prepare()?;
    let (service, mut client) = serve()?;
    let site = "name = \"vm\"\n[[nodes]]\nname = \"vm\"\nhas = \"ncpus=2\"\n";
    fs::write(format!("{DIR}/site.toml"), site).context("site.toml")?;
    for (name, insns) in [("one", 20_000_000_u64), ("two", 20_000_000), ("long", 900_000_000_000)] {
        let shell = format!("echo {name} >> {name}; sha256sum data");
        let job = job(name, &shell, insns, 1_000_000);
        fs::write(format!("{DIR}/{name}.toml"), job.request).context(name)?;
    }
    let cluster = |arguments: &[&str]| {
        let mut command = Command::new("pbsctl");
        command.arg("cluster").args(arguments).current_dir(DIR);
        command.env("PBS_SOCKET", SOCKET).env("PATH", "/usr/bin:/bin");
        command
    };
    let says = |arguments: &[&str]| {
        let ran = cluster(arguments).output().context("pbsctl")?;
        let text = String::from_utf8_lossy(&ran.stdout).into_owned();
        let error = String::from_utf8_lossy(&ran.stderr).into_owned();
        check!(ran.status.success(), "{arguments:?}: {text}{error}");
        Ok::<_, String>(text)
    };
    says(&["new", "--site", "site.toml"])?;
    for (name, duration) in [("one", "60s"), ("two", "60s"), ("long", "90s")] {
        let file = format!("{name}.toml");
        says(&["alloc", "--res", "rset=ncpus=1", "-t", duration, "-N", name, "--", &file])?;
    }
    // The first time it is killed as soon as something was started.
    let mut first = cluster(&["serve"]).spawn().context("serve")?;
    let mut handed = |count| -> Verdict {
        let deadline = Instant::now() + Duration::from_secs(60);
        while all(&mut client)?.len() < count {
            check!(Instant::now() < deadline, "{count} jobs are not with the service");
            sleep(Duration::from_millis(5));
        }
        Ok(())
    };
    handed(1)?;
    first.kill().context("kill")?;
    first.wait().context("wait")?;
    // And then the service goes away for a time.
    let mut second = cluster(&["serve", "--until-idle"]).spawn().context("serve")?;
    handed(2)?;
    drop(service);
    sleep(Duration::from_secs(1));
    let (_service, mut client) = serve()?;
    let ended = second.wait().context("wait")?;
    check!(ended.success(), "serve: {ended}");
    let shown = says(&["info", "--all"])?;
    for name in ["one", "two"] {
        let line = shown.lines().find(|line| line.contains(name)).unwrap_or_default();
        // How a program ended while no service was there, nobody knows.
        let has_ended = line.contains("completed") || line.contains("unknown");
        check!(has_ended, "{name}: {shown}");
        let wrote = fs::read_to_string(format!("{DIR}/{name}")).unwrap_or_default();
        check_eq!(wrote, format!("{name}\n"), "what {name} wrote");
    }
    let long = shown.lines().find(|line| line.contains("long")).unwrap_or_default();
    check!(long.contains("refused: job"), "long: {shown}");
    let jobs = all(&mut client)?;
    check_eq!(jobs.len(), 2, "jobs of the node: {jobs:?}");
    for job in &jobs {
        check!(job.name.starts_with("cluster-"), "its name: {job:?}");
        check_eq!(job.kept, Some(true), "{job:?}");
    }
    Ok(())
}
