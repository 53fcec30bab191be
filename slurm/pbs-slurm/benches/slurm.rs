// SPDX-License-Identifier: GPL-2.0
//! Cost of making Slurm start planned jobs. The benchmark needs a cluster of 16 nodes, as
//! `scripts/slurm-cluster` makes it, and is run in it by `scripts/bench-slurm`.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use pbs_manager::ledger::Access;
use pbs_manager::Manager;
use pbs_slurm::steer::{Commitment, Controller, Key, Link, Settings, Steer};
use pbs_slurm::{serve, Hints, Options, Pipe, Serving, Slurm};
use pbs_uapi::clock::since_1970;

const USER: &str = "games";
const NODES: usize = 16;
const STARTS: usize = 40;
/// Elements of the array of short jobs, and how often it is run.
const ELEMENTS: usize = 1000;
const ARRAYS: usize = 3;
/// Short jobs that follow each other on each node.
const ROUNDS: usize = 5;
/// Command that calls `scontrol` as the user whose jobs these are: the planner has no events of what
/// SlurmUser does.
const USERS_SCONTROL: &str = "users-scontrol";
/// Word with which the benchmark is the planner.
const SERVE: &str = "--serve";
const SITE: &str = "
name = 'lab'
allocate_timeout = '5s'
release_timeout = '5s'
[[nodes]]
name = 'n%02d'
count = 16
has = 'ncpus=2:mem=1000m'
";

fn now_s() -> f64 {
    since_1970().as_secs_f64()
}

fn directory() -> PathBuf {
    let directory = std::env::var_os("PBS_SLURM_DIR").map(PathBuf::from);
    directory.expect("run it by scripts/bench-slurm")
}

fn events() -> PathBuf {
    let events = std::env::var_os("PBS_SLURM_EVENTS").map(PathBuf::from);
    events.expect("run it by scripts/bench-slurm")
}

/// Submits a job of `USER`; its number.
fn submit(options: &[&str], script: &str) -> u32 {
    let output = Command::new("setpriv")
        .args(["--reuid", USER, "--regid", USER, "--clear-groups", "sbatch"])
        .args(["--parsable", "-p", "plan", "-o", "/dev/null", "-D", "/"])
        .args(options)
        .args(["--wrap", script])
        .output()
        .expect("there is setpriv");
    let said = String::from_utf8_lossy(&output.stdout);
    let number = said.trim().parse();
    number.unwrap_or_else(|_| panic!("sbatch: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Lets root call `scontrol` as SlurmUser, as the planner does: job_submit.lua takes a hold by root
/// for that of an operator. Another command calls it as `USER`.
fn as_others() {
    let bin = directory().join("bin");
    std::fs::create_dir_all(&bin).expect("the disk is well");
    let path = std::env::var("PATH").unwrap_or_default();
    for (name, user) in [("scontrol", "slurm"), (USERS_SCONTROL, USER)] {
        let script = format!(
            "#!/bin/sh\nPATH={path}\n[ \"$(id -u)\" != 0 ] || \
             exec setpriv --reuid {user} --regid {user} --clear-groups scontrol \"$@\"\n\
             exec scontrol \"$@\"\n"
        );
        let file = bin.join(name);
        std::fs::write(&file, script).expect("the disk is well");
        let run = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&file, run).expect("the disk is well");
    }
    std::env::set_var("PATH", format!("{}:{path}", bin.display()));
}

/// A commitment to nodes; without a start at once.
fn at(nodes: &[String], start_s: Option<u64>) -> Commitment {
    Commitment { nodes: nodes.to_vec(), start_s, ..Commitment::default() }
}

/// A key that a job is named by.
fn key(job: u32) -> Key {
    Key { job, index: None, submit_s: 0 }
}

fn slurm() -> Slurm {
    Slurm::new(&Options {
        partition: "plan".into(),
        events: events(),
        patience: Duration::from_secs(30),
    })
    .expect("the event file can be read")
}

/// Time that a job writes to that file, once it does.
fn mark(path: &Path) -> f64 {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if let (true, Ok(at)) = (text.ends_with('\n'), text.trim().parse()) {
            return at;
        }
        assert!(Instant::now() < until, "{} is not there", path.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn spread(what: &str, bar: &str, mut all_s: Vec<f64>) {
    all_s.sort_by(f64::total_cmp);
    let at = |percent: usize| all_s[(all_s.len() * percent).div_ceil(100).max(1) - 1];
    println!(
        "  {what:<44} {:>4}  {:>7.3} {:>7.3} {:>7.3} {:>7.3}   {bar}",
        all_s.len(),
        all_s[0],
        at(50),
        at(99),
        at(100)
    );
}

fn figure(what: &str, value: String, bar: &str) {
    println!("  {what:<44} {value:>38}   {bar}");
}

fn node(place: usize) -> Vec<String> {
    vec![format!("n{:02}", place % NODES + 1)]
}

/// From the call that lets a job go to the first command of its script.
fn releases(slurm: &mut Slurm, marks: &Path) {
    let mut all = Vec::new();
    for place in 0..STARTS {
        let path = marks.join(format!("release-{place}"));
        let job = submit(&["-N1", "-n2", "-t1"], &format!("date +%s.%N > {}", path.display()));
        slurm.hold(key(job)).expect("it can be held");
        // Not always in the same phase of Slurm's round.
        std::thread::sleep(Duration::from_millis((place as u64 * 37) % 1000));
        let from = now_s();
        let done = slurm.commit(key(job), &at(&node(place), None));
        assert_eq!(done, Ok(()));
        all.push(mark(&path) - from);
    }
    spread("release to start", "p50 0.6, max 1.2", all);
}

/// From the second for which a job is let go to the first command of its script.
fn committed(slurm: &mut Slurm, marks: &Path) {
    let jobs: Vec<(u32, PathBuf)> = (0..STARTS)
        .map(|place| {
            let path = marks.join(format!("committed-{place}"));
            let script = format!("date +%s.%N > {}", path.display());
            let job = submit(&["-N1", "-n2", "-t1"], &script);
            slurm.hold(key(job)).expect("it can be held");
            (job, path)
        })
        .collect();
    let first_s = now_s() as u64 + 6;
    let mut all = Vec::new();
    let mut at_s = Vec::new();
    for (place, (job, _)) in jobs.iter().enumerate() {
        let start_s = first_s + place as u64;
        // Let go five seconds before, as the service does.
        let left_s = start_s as f64 - 5.0 - now_s();
        std::thread::sleep(Duration::from_secs_f64(left_s.max(0.0)));
        let done = slurm.commit(key(*job), &at(&node(place), Some(start_s)));
        assert_eq!(done, Ok(()));
        at_s.push(start_s);
    }
    for ((_, path), start_s) in jobs.iter().zip(at_s) {
        all.push(mark(path) - start_s as f64);
    }
    spread("planned to real start", "0 to 1.2", all);
}

/// From the end of a job to the start of the one that waits for its node.
fn successors(slurm: &mut Slurm, marks: &Path) {
    let mut paths = Vec::new();
    for place in 0..STARTS {
        let (end, begin) =
            (marks.join(format!("end-{place}")), marks.join(format!("begin-{place}")));
        let first = submit(
            &["-N1", "-n2", "-t1"],
            &format!("sleep 2.{:02}; date +%s.%N > {}", place * 37 % 100, end.display()),
        );
        let second = submit(&["-N1", "-n2", "-t1"], &format!("date +%s.%N > {}", begin.display()));
        for job in [first, second] {
            slurm.hold(key(job)).expect("it can be held");
        }
        assert_eq!(slurm.commit(key(first), &at(&node(place), None)), Ok(()));
        std::thread::sleep(Duration::from_millis(1310));
        assert_eq!(slurm.commit(key(second), &at(&node(place), None)), Ok(()));
        paths.push((end, begin));
    }
    let all = paths.iter().map(|(end, begin)| mark(begin) - mark(end));
    spread("end to start of the next", "max 0.3", all.collect());
}

/// From a command to the event of it; the command is part of it.
fn hints(pipe: &mut Pipe) {
    let job = submit(&["-N1", "-n2", "-t1"], "true");
    pipe.say(&[format!("hold {job}")]).expect("it answers");
    let mut hints = Hints::open(&events()).expect("the event file can be read");
    let mut users = Pipe::new(USERS_SCONTROL, Duration::from_secs(30));
    let mut all = Vec::new();
    for number in 0..STARTS {
        std::thread::sleep(Duration::from_millis(30));
        hints.take();
        let begin = Instant::now();
        users.say(&[format!("update JobId={job} Comment={number}")]).expect("it answers");
        while hints.take().is_empty() {
            assert!(begin.elapsed() < Duration::from_secs(10), "no event came");
            hints.wait(None, Duration::from_secs(1));
        }
        all.push(begin.elapsed().as_secs_f64());
    }
    spread("command to its event, seen by inotify", "max 0.05", all);
    pipe.say(&[format!("update JobId={job} Comment=x")]).expect("it answers");
    const COMMANDS: usize = 2000;
    let commands: Vec<String> =
        (0..COMMANDS).map(|number| format!("update JobId={job} AdminComment={number}")).collect();
    let begin = Instant::now();
    let answers = pipe.say(&commands).expect("it answers");
    assert!(answers.iter().all(Result::is_ok));
    let rate = COMMANDS as f64 / begin.elapsed().as_secs_f64();
    figure("commands by the pipe", format!("{rate:.0}/s"), "500/s");
    let _ = Command::new("scancel").arg(job.to_string()).status();
}

/// The planner, as SlurmUser, for as long as it is not dropped.
struct Planner(Child);

impl Planner {
    fn start() -> Self {
        let ledger = directory().join("home/serve.db");
        // There is none the first time.
        let _ = std::fs::remove_file(&ledger);
        let child = Command::new("setpriv")
            .args(["--reuid", "slurm", "--regid", "slurm", "--clear-groups"])
            .arg(std::env::current_exe().expect("it has a name"))
            .arg(SERVE)
            .arg(ledger)
            .spawn();
        Self(child.expect("there is setpriv"))
    }
}

impl Drop for Planner {
    fn drop(&mut self) {
        // It may have ended by itself, which the figures show.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Plans all jobs until it is killed.
fn plan(ledger: &Path) {
    let link = Link::new(Duration::from_secs(5));
    drop(Manager::create(ledger, SITE, now_s() as u64, link).expect("the disk is well"));
    let heard = |news: &str| println!("    {news}");
    serve(ledger, &mut slurm(), Serving::default(), heard).expect("the disk is well");
}

/// Lines of a file to which jobs append, once there are so many.
fn lines(path: &Path, count: usize) -> Vec<String> {
    let until = Instant::now() + Duration::from_secs(300);
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if text.lines().count() >= count {
            return text.lines().map(Into::into).collect();
        }
        assert!(Instant::now() < until, "{} has {} lines", path.display(), text.lines().count());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// From the submission of a job to its first command, on nodes that are free.
fn submitted(marks: &Path) {
    let mut all = Vec::new();
    for place in 0..STARTS {
        let path = marks.join(format!("submitted-{place}"));
        std::thread::sleep(Duration::from_millis((place as u64 * 37) % 1000));
        let from = now_s();
        submit(&["-N1", "-n2", "-t1"], &format!("date +%s.%N > {}", path.display()));
        all.push(mark(&path) - from);
    }
    spread("planner: submission to start, nodes free", "", all);
}

/// From the end of a short job to the start of the next that the planner has on that node.
fn followed(marks: &Path) {
    let path = marks.join("followed");
    std::fs::write(&path, "").expect("the disk is well");
    // Its jobs append to it.
    let open = std::fs::Permissions::from_mode(0o666);
    std::fs::set_permissions(&path, open).expect("the disk is well");
    for number in 0..NODES * ROUNDS {
        let script = format!(
            "b=$(date +%s.%N); sleep {}.{:02}; echo $SLURMD_NODENAME $b $(date +%s.%N) >> {}",
            1 + number % 3,
            number * 37 % 100,
            path.display()
        );
        submit(&["-N1", "-n2", "-t1"], &script);
    }
    let mut runs: Vec<(String, f64, f64)> = Vec::new();
    for line in lines(&path, NODES * ROUNDS) {
        let words: Vec<&str> = line.split(' ').collect();
        let time = |word: &str| word.parse().expect("date has written it");
        runs.push((words[0].into(), time(words[1]), time(words[2])));
    }
    runs.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let pairs = runs.windows(2).filter(|pair| pair[0].0 == pair[1].0);
    let all = pairs.map(|pair| pair[1].1 - pair[0].2).collect();
    spread("planner: end to start of the next", "p50 0.3, p99 0.6", all);
}

/// From the submission of an array of elements of 0.2 s to the end of the last.
fn elements(marks: &Path) {
    let mut all = Vec::new();
    for array in 0..ARRAYS {
        let path = marks.join(format!("elements-{array}"));
        std::fs::write(&path, "").expect("the disk is well");
        let open = std::fs::Permissions::from_mode(0o666);
        std::fs::set_permissions(&path, open).expect("the disk is well");
        let from = now_s();
        let array = format!("0-{}", ELEMENTS - 1);
        let script = format!("sleep 0.2; date +%s.%N >> {}", path.display());
        submit(&["-n1", "-t1", "-a", &array], &script);
        let ends = lines(&path, ELEMENTS).into_iter().filter_map(|line| line.parse::<f64>().ok());
        all.push(ends.fold(from, f64::max) - from);
    }
    spread(&format!("planner: {ELEMENTS} elements of 0.2 s"), "15", all);
}

fn rss_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kb = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    kb.unwrap_or(0_u64) / 1024
}

fn since_epoch() -> Duration {
    Duration::from_secs_f64(now_s())
}

/// Many that wait: how long it takes to look, to plan all and to be there again.
fn held(slurm: &mut Slurm, count: usize) {
    for from in (0..count).step_by(1000) {
        let most = (count - from).min(1000) - 1;
        // They start in an hour, so that none runs meanwhile.
        submit(&["-N1", "-n2", "-t10", "-b", "now+3600", "-a", &format!("0-{most}")], "true");
    }
    let mut all = Vec::new();
    for _ in 0..5 {
        let begin = Instant::now();
        let world = slurm.snapshot().expect("it answers");
        assert!(world.jobs().len() >= count, "{}", world.jobs().len());
        all.push(begin.elapsed().as_secs_f64());
    }
    figure(&format!("first look at {count} that wait"), format!("{:.3} s", all.remove(0)), "");
    spread(&format!("later look at {count}"), "max 0.1", all);

    let path = directory().join("bench.db");
    let clock_s = now_s() as u64;
    let created = Manager::create(&path, SITE, clock_s, Link::new(Duration::from_secs(5)));
    let mut manager = created.expect("the disk is well");
    let mut steer = Steer::new(&manager, Settings::default());
    let before_mb = rss_mb();
    let begin = Instant::now();
    let mut turns = Vec::new();
    while manager.open_rows().len() < count {
        let turn = Instant::now();
        let turned = steer.turn(&mut manager, slurm, since_epoch());
        turned.expect("the disk is well");
        turns.push(turn.elapsed().as_secs_f64());
        assert!(turns.len() <= count, "it does not come to an end");
    }
    figure(
        &format!("{count} new ones held, planned, written"),
        format!("{:.1} s", begin.elapsed().as_secs_f64()),
        "",
    );
    spread("a turn of that", "", turns);
    for news in steer.news().iter().take(3) {
        println!("    {news}");
    }
    figure("memory of that", format!("{} MB", rss_mb().saturating_sub(before_mb)), "");
    drop((manager, steer));

    let mut again = self::slurm();
    let begin = Instant::now();
    let opened = Manager::open(&path, Access::Write, Link::new(Duration::from_secs(5)));
    let (mut manager, _) = opened.expect("a ledger");
    let opened_s = begin.elapsed().as_secs_f64();
    let mut steer = Steer::new(&manager, Settings::default());
    let turned = steer.turn(&mut manager, &mut again, since_epoch());
    turned.expect("the disk is well");
    let all_s = begin.elapsed().as_secs_f64();
    assert_eq!(manager.open_rows().len(), count);
    figure(
        &format!("started anew with {count}"),
        format!("{opened_s:.2} s the ledger, {all_s:.2} s in all"),
        "3 s",
    );
    let mut all = Vec::new();
    for _ in 0..5 {
        let begin = Instant::now();
        let turned = steer.turn(&mut manager, &mut again, since_epoch());
        turned.expect("the disk is well");
        all.push(begin.elapsed().as_secs_f64());
    }
    spread("a turn after that", "", all);
}

/// A step in which the planner runs, and one in which the benchmark lets jobs go.
type OfPlanner = fn(&Path);
type ByHand = fn(&mut Slurm, &Path);

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some(SERVE) {
        plan(Path::new(&arguments.next().expect("a ledger")));
        return;
    }
    let count = std::env::var("PBS_BENCH_HELD").ok();
    let count = count.and_then(|count| count.parse().ok()).unwrap_or(10_000);
    let steps = std::env::var("PBS_BENCH_STEPS").unwrap_or_default();
    let has = |step: &str| steps.is_empty() || steps.split(',').any(|named| named == step);
    let marks = directory().join("home");
    as_others();
    let mut slurm = slurm();
    let mut pipe = Pipe::new("scontrol", Duration::from_secs(30));
    println!(
        "  {:<44} {:>4}  {:>7} {:>7} {:>7} {:>7}   bar",
        "seconds", "n", "least", "p50", "p99", "most"
    );
    let planned: [(&str, OfPlanner); 3] =
        [("submitted", submitted), ("followed", followed), ("elements", elements)];
    if planned.iter().any(|(step, _)| has(step)) {
        let _planner = Planner::start();
        planned.iter().filter(|(step, _)| has(step)).for_each(|(_, run)| run(&marks));
    }
    let by_hand: [(&str, ByHand); 3] =
        [("releases", releases), ("committed", committed), ("successors", successors)];
    by_hand.iter().filter(|(step, _)| has(step)).for_each(|(_, run)| run(&mut slurm, &marks));
    if has("hints") {
        hints(&mut pipe);
    }
    if count > 0 && has("held") {
        held(&mut slurm, count);
    }
}
