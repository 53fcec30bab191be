// SPDX-License-Identifier: GPL-2.0
//! A real Slurm, a ledger, and `pbsctl cluster serve --slurm`.

#![allow(dead_code)] // No test needs all of it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

pub(crate) const USER: &str = "games";
pub(crate) const SITE: &str = "
name = 'lab'
allocate_timeout = '5s'
release_timeout = '5s'
[[nodes]]
name = 'n%02d'
count = 16
has = 'ncpus=2:mem=1000m'
";
/// Time after which a step counts as failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A ledger, and the service that plans in it.
pub(crate) struct Lab {
    pub(crate) directory: PathBuf,
    service: Option<Child>,
}

/// Returns the output of a program, which must succeed.
pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    let (text, is_well) = try_run(program, arguments);
    assert!(is_well, "{program} {arguments:?}: {text}");
    text
}

pub(crate) fn try_run(program: &str, arguments: &[&str]) -> (String, bool) {
    let output = Command::new(program).args(arguments).output().unwrap();
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text += &String::from_utf8_lossy(&output.stderr);
    (text, output.status.success())
}

pub(crate) fn as_user<'a>(user: &'a str, command: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["--reuid", user, "--regid", user, "--clear-groups"];
    all.extend(command);
    all
}

pub(crate) fn user(command: &[&str]) -> (String, bool) {
    try_run("setpriv", &as_user(USER, command))
}

/// Submits a script; its number.
pub(crate) fn submit(options: &[&str], script: &str) -> String {
    submit_as(USER, options, script)
}

/// Submits a script of a user; its number.
pub(crate) fn submit_as(user: &str, options: &[&str], script: &str) -> String {
    let mut command = vec!["sbatch", "--parsable", "-p", "plan", "-o", "/dev/null", "-D", "/tmp"];
    command.extend(options);
    command.extend(["--wrap", script]);
    let (text, is_well) = try_run("setpriv", &as_user(user, &command));
    assert!(is_well, "{options:?}: {text}");
    text.lines().next().unwrap_or_default().to_string()
}

pub(crate) fn show(job: &str, name: &str) -> String {
    let (text, _) = try_run("scontrol", &["show", "job", "-o", job]);
    let start = format!(" {name}=");
    let value = text.split(&start).nth(1).unwrap_or_default();
    value.split(' ').next().unwrap_or_default().to_string()
}

pub(crate) fn state(job: &str) -> String {
    let (text, _) = try_run("scontrol", &["show", "job", "-o", job]);
    let state = text.split("JobState=").nth(1).unwrap_or("GONE");
    state.split_whitespace().next().unwrap_or_default().to_string()
}

pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "not so in time: {what}");
        sleep(Duration::from_millis(50));
    }
}

pub(crate) fn slurm_directory() -> PathBuf {
    let directory = std::env::var("PBS_SLURM_DIR");
    directory.expect("run it by scripts/slurm-cluster").into()
}

impl Lab {
    pub(crate) fn new(name: &str) -> Self {
        Self::of_site(name, SITE)
    }

    /// A lab of the site whose description this is.
    pub(crate) fn of_site(name: &str, site: &str) -> Self {
        let directory = slurm_directory().join(name);
        fs::create_dir_all(&directory).unwrap();
        let program = directory.join("pbsctl");
        fs::copy(env!("CARGO_BIN_EXE_pbsctl"), &program).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(directory.join("site.toml"), site).unwrap();
        run("chown", &["-R", "slurm", &directory.to_string_lossy()]);
        let mut this = Self { directory, service: None };
        this.pbsctl(&["new", "--site", &this.path("site.toml")]);
        this.start();
        this
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.directory.join(name).to_string_lossy().into_owned()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let (program, ledger) = (self.path("pbsctl"), self.path("cluster.db"));
        let mut all = vec![&*program, "cluster"];
        all.extend(arguments);
        all.extend(["--ledger", &ledger]);
        let mut command = Command::new("setpriv");
        command.args(as_user("slurm", &all));
        command
    }

    pub(crate) fn pbsctl(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn start(&mut self) {
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.directory.join("serve.log"))
            .unwrap();
        let mut command = self.command(&["serve", "--slurm"]);
        command.stdout(Stdio::null()).stderr(log);
        self.service = Some(command.spawn().unwrap());
    }

    /// Kills the service, as if the machine of the planner had lost its power.
    pub(crate) fn kill(&mut self) {
        if let Some(mut service) = self.service.take() {
            service.kill().unwrap();
            service.wait().unwrap();
        }
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.directory.join("serve.log")).unwrap_or_default()
    }

    /// All requests of a job, as the ledger has them.
    pub(crate) fn rows(&self, job: &str) -> Vec<Value> {
        let all: Value = serde_json::from_str(&self.pbsctl(&["info", "--all", "--json"])).unwrap();
        let rows = all["requests"].as_array().cloned().unwrap_or_default();
        let mark = format!("{job}@");
        let is_of = |row: &Value| {
            row["command"][0].as_str().is_some_and(|command| command.starts_with(&mark))
        };
        rows.into_iter().filter(is_of).collect()
    }

    pub(crate) fn outcome(&self, job: &str) -> String {
        let rows = self.rows(job);
        let outcome = rows.last().and_then(|row| row["outcome"].as_str());
        outcome.unwrap_or_default().to_string()
    }

    pub(crate) fn planned_nodes(&self, job: &str) -> Vec<String> {
        let rows = self.rows(job);
        let nodes = rows.last().and_then(|row| row["nodes"].as_array().cloned());
        let nodes = nodes.unwrap_or_default().into_iter();
        let mut nodes: Vec<String> =
            nodes.map(|node| node["node"].as_str().unwrap_or_default().to_string()).collect();
        nodes.sort_unstable();
        nodes
    }

    pub(crate) fn ends_as(&self, job: &str, outcome: &str) {
        until(&format!("job {job} is {outcome}; {}", self.log()), || self.outcome(job) == outcome);
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = try_run("scancel", &["-u", USER]);
        let _ = try_run("scancel", &["-u", "root"]);
        sleep(Duration::from_millis(500));
        self.kill();
        if std::thread::panicking() {
            eprintln!("{}", self.log());
        }
    }
}

/// The nodes of a list of Slurm's, one by one.
pub(crate) fn nodes_of(list: &str) -> Vec<String> {
    let text = run("scontrol", &["show", "hostnames", list]);
    text.lines().map(str::to_string).collect()
}
