// SPDX-License-Identifier: GPL-2.0
//! The service with the engine of Slurm, whose programs are scripts of the test.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::{is_root, serve_prepared, wanted, Served, DAEMON};
use pbs_cluster_api::{Alteration, Failure, Filter};
use pbs_manager::ledger::{Ledger, Row, State};
use pbs_uapi::clock::unix_s;

const SITE: &str = "
name = 'lab'
allocate_timeout = '5s'
release_timeout = '5s'
[[nodes]]
name = 'n%02d'
count = 2
has = 'ncpus=2:mem=1000m'
";
/// Time after which a step counts as failed.
const PATIENCE: Duration = Duration::from_secs(120);

/// Beginning of each script. A file `silent` makes it wait until the file is gone, and a file
/// `deaf` for good.
const WAIT: &str = "#!/bin/sh
dir=$(dirname \"$0\")
wait_if_silent()
{
	[ ! -e \"$dir/deaf\" ] || exec sleep 600
	while [ -e \"$dir/silent\" ]; do
		: >\"$dir/waits\"
		sleep 0.05
	done
}
wait_if_silent
";
const SQUEUE: &str = "case \" $* \" in
*' -O '*)
	cat \"$dir\"/extra.* 2>/dev/null
	exit 0
	;;
esac
for word; do
	case $word in
	*%F*) mark=${word%%%F*} ;;
	esac
done
cat \"$dir\"/job.* 2>/dev/null | sed \"s/^/$mark/\"
";
const SINFO: &str = "cat \"$dir/nodes\"
";
const SCONTROL: &str = "if [ $# -gt 0 ]; then
	exit 0
fi
change()
{
	awk -F '\\037' -v OFS='\\037' -v priority=\"$1\" -v reason=\"$2\" \\
		'{ $8 = priority; $19 = reason; print }' \"$dir/job.$3\" >\"$dir/new\" &&
		mv \"$dir/new\" \"$dir/job.$3\"
}
while read -r word rest; do
	wait_if_silent
	case $word in
	pbs-end-*)
		echo \"invalid keyword: $word\" >&2
		continue
		;;
	hold) change 0 JobHeldAdmin \"$rest\" ;;
	release) change 100 None \"$rest\" ;;
	esac
	echo \"$word $rest\" >>\"$dir/orders\"
done
";

const SCANCEL: &str = "echo \"cancel $1\" >>\"$dir/orders\"
";

/// A partition of two nodes with two cores each, and the service that plans in it.
struct Lab {
    served: Served,
}

impl Lab {
    fn new(name: &str, options: &[&str], jobs: &[Submitted]) -> Self {
        let name = format!("slurm-{name}");
        let directory =
            std::env::temp_dir().join(format!("pbs-clusterd-{name}-{}", std::process::id()));
        let events = directory.join("events").to_string_lossy().into_owned();
        let mut all = vec!["--engine", "slurm", "--events", &events];
        all.extend(options);
        let served = serve_prepared(&name, &all, |ledger| {
            Ledger::create(ledger, SITE, unix_s()).unwrap();
            let directory = ledger.parent().unwrap();
            let programs = [
                ("squeue", SQUEUE),
                ("sinfo", SINFO),
                ("scontrol", SCONTROL),
                ("scancel", SCANCEL),
            ];
            for (name, text) in programs {
                let path = directory.join(name);
                fs::write(&path, format!("{WAIT}{text}")).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            }
            let node = |name| {
                let columns = [name, "2", "1000", "0", "(null)", "(null)", "idle", "none"];
                columns.join("\u{1f}") + "\n"
            };
            fs::write(directory.join("nodes"), node("n01") + &node("n02")).unwrap();
            for &job in jobs {
                submit(directory, job);
            }
        });
        Self { served }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.served.directory.join(name)
    }

    /// A job starts on both nodes.
    fn starts(&self, job: u32) {
        let path = self.path(&format!("job.{job}"));
        let row = fs::read_to_string(&path).unwrap();
        let mut columns: Vec<String> = row.trim_end().split('\u{1f}').map(Into::into).collect();
        let now_s = unix_s();
        columns[6] = "RUNNING".into();
        columns[13] = now_s.to_string();
        columns[14] = (now_s + 3600).to_string();
        columns[15] = "n[01-02]".into();
        columns[18] = "None".into();
        write(&path, &(columns.join("\u{1f}") + "\n"));
        self.hint();
    }

    fn hint(&self) {
        let mut text = fs::read(self.path("events")).unwrap_or_default();
        text.extend(b"start 1\n");
        fs::write(self.path("events"), text).unwrap();
    }

    fn orders(&self) -> String {
        fs::read_to_string(self.path("orders")).unwrap_or_default()
    }

    /// Requests of a job, those that have ended too.
    fn rows(&self, job: u32) -> Vec<Row> {
        let filter = Filter { ended: Some(true), ..Filter::default() };
        let (_, rows) = self.served.client().list(&filter).unwrap();
        rows.into_iter().filter(|row| row.name == format!("job{job}")).collect()
    }

    /// Waits until a job has a request in that state.
    fn has(&self, job: u32, state: State) -> Row {
        let mut found = None;
        until(&format!("job {job} is {state:?}"), || {
            found = self.rows(job).into_iter().find(|row| row.state == state);
            found.is_some()
        });
        found.unwrap()
    }
}

/// A job of a user.
#[derive(Clone, Copy)]
struct Submitted {
    job: u32,
    nodes: u64,
    /// Whether it may begin only in an hour.
    is_later: bool,
}

/// A job that starts once its nodes are free.
fn soon(job: u32, nodes: u64) -> Submitted {
    Submitted { job, nodes, is_later: false }
}

/// A job that waits for its time.
fn later(job: u32) -> Submitted {
    Submitted { job, nodes: 2, is_later: true }
}

/// A user submits a job to so many whole nodes, and the hook holds it.
fn submit(directory: &Path, Submitted { job, nodes, is_later }: Submitted) {
    let cpus = 2 * nodes;
    let begin = if is_later { (unix_s() + 3600).to_string() } else { "N/A".into() };
    let (number, submitted) = (job.to_string(), unix_s().to_string());
    let (nodes, cpus, name) = (nodes.to_string(), cpus.to_string(), format!("job{job}"));
    let columns = [
        &*number,
        "N/A",
        &number,
        &submitted,
        "daemon",
        "(null)",
        "PENDING",
        "0",
        &nodes,
        &cpus,
        "1",
        "300M",
        "1:00:00",
        &begin,
        "N/A",
        "",
        "",
        "",
        "JobHeldUser",
        "OK",
        "N/A",
        "(null)",
        "(null)",
        "(null)",
        "(null)",
        "0",
        "0:00",
        "(null)",
        &name,
    ];
    let tres = format!("cpu={cpus},mem={cpus}00M,node={nodes},billing={cpus}");
    let extra = format!("{number} N/A N/A {cpus} 1 {nodes} N/A N/A N/A N/A N/A N/A N/A 0 {tres}\n");
    write(&directory.join(format!("extra.{job}")), &extra);
    write(&directory.join(format!("job.{job}")), &(columns.join("\u{1f}") + "\n"));
}

/// Writes a file as a whole: scripts read it meanwhile.
fn write(path: &Path, text: &str) {
    let new = path.with_file_name("written");
    fs::write(&new, text).unwrap();
    fs::rename(&new, path).unwrap();
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "not so in time: {what}");
        sleep(Duration::from_millis(20));
    }
}

fn refusal<T: std::fmt::Debug>(answer: Result<T, Failure>) -> String {
    format!("{:?}", answer.unwrap_err())
}

#[test]
fn a_submission_is_refused_and_names_sbatch() {
    let lab = Lab::new("sbatch", &[], &[later(7)]);
    let id = lab.has(7, State::Planned).id;
    let mut client = lab.served.client();
    let said = refusal(client.submit(&wanted("rset=1:ncpus=1", 60)));
    assert!(said.contains("submit it with sbatch"), "{said}");
    // What a job asks for is changed in Slurm.
    let alteration = Alteration { duration_s: Some(60), ..Alteration::default() };
    let said = refusal(client.alter(id, &alteration));
    assert!(said.contains("scontrol update JobId=7"), "{said}");
    let said = refusal(client.reserve(&wanted("rset=1:ncpus=1", 60)));
    assert!(said.contains("scontrol create reservation"), "{said}");
}

/// Calls are answered while squeue is silent, and their orders reach Slurm later.
#[test]
fn a_silent_slurm_delays_no_call() {
    let lab = Lab::new("silent", &["--patience", "10m"], &[later(7)]);
    let id = lab.has(7, State::Planned).id;
    fs::write(lab.path("silent"), "").unwrap();
    lab.hint();
    until("a program waits", || lab.path("waits").exists());
    let begun = Instant::now();
    assert_eq!(lab.rows(7).len(), 1);
    let mut client = lab.served.client();
    client.kill(&[id]).unwrap();
    assert_eq!(lab.served.ledger().row(id).unwrap().unwrap().state, State::Ended);
    client.status().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(300));
    fs::remove_file(lab.path("silent")).unwrap();
    until("its user is told", || lab.orders().contains("not planned any more: killed by"));
    // It stays held, and is not planned again.
    lab.hint();
    submit(&lab.served.directory, later(8));
    lab.has(8, State::Planned);
    assert_eq!(lab.rows(7).len(), 1);
}

#[test]
fn a_silent_squeue_is_killed_and_asked_again() {
    let lab = Lab::new("deaf", &["--patience", "1s"], &[later(7)]);
    lab.has(7, State::Planned);
    fs::write(lab.path("deaf"), "").unwrap();
    lab.hint();
    // The program that is started now never ends by itself.
    sleep(Duration::from_secs(3));
    submit(&lab.served.directory, later(8));
    fs::remove_file(lab.path("deaf")).unwrap();
    lab.has(8, State::Planned);
}

#[test]
fn a_job_is_released_and_its_owner_ends_it() {
    if !is_root() {
        pbs_text::skipped("it needs root, for clients of other users");
        return;
    }
    let lab = Lab::new("released", &[], &[soon(7, 2)]);
    until("it is released", || lab.orders().contains("release 7"));
    assert!(lab.orders().contains("ReqNodeList=n01,n02"), "{}", lab.orders());
    lab.starts(7);
    let id = lab.has(7, State::Running).id;
    until("its nodes are ready", || lab.rows(7)[0].phase.is_none());
    let mut others = lab.served.client_of(2);
    assert!(refusal(others.kill(&[id])).contains("NotPermitted"));
    lab.served.client_of(DAEMON).kill(&[id]).unwrap();
    until("it is cancelled", || lab.orders().contains("cancel 7"));
    assert!(lab.orders().contains("ended by the planner: killed by daemon"), "{}", lab.orders());
}

#[test]
fn a_restarted_service_continues() {
    let mut lab = Lab::new("restart", &[], &[soon(7, 2)]);
    until("it is released", || lab.orders().contains("release 7"));
    lab.starts(7);
    let first = lab.has(7, State::Running);
    submit(&lab.served.directory, soon(8, 1));
    lab.hint();
    let second = lab.has(8, State::Planned);
    assert!(second.start_s > first.start_s.map(|start_s| start_s + 3600));
    for _ in 0..2 {
        lab.served.restart();
        let orders = lab.orders().len();
        submit(&lab.served.directory, soon(9, 1));
        lab.hint();
        lab.has(9, State::Planned);
        assert_eq!(lab.has(7, State::Running).id, first.id);
        assert_eq!(lab.has(8, State::Planned), second);
        let since = lab.orders().split_off(orders);
        assert!(!since.contains("release"), "{since}");
    }
}

#[test]
fn options_of_another_engine_are_refused() {
    let cases = [
        (["--partition", "p", "--engine", "node"], "--partition is an option of --engine slurm"),
        (
            ["--node-socket", "/s", "--engine", "slurm"],
            "--node-socket is an option of --engine node",
        ),
    ];
    for (options, expected) in cases {
        let ran = Command::new(env!("CARGO_BIN_EXE_pbs-clusterd")).args(options).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
    }
}
