// SPDX-License-Identifier: GPL-2.0
//! The program that slurmctld and nodes run at starts and ends of jobs, without Slurm.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

const HOOK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../hooks/pbs-event");

struct Place(PathBuf);

impl Place {
    fn new(test: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("bin")).unwrap();
        let place = Self(path);
        let hook = fs::read_to_string(HOOK).unwrap();
        let events = place.path("events");
        place.program("hook", &hook.replace("/var/lib/pbs-slurm/events", events.to_str().unwrap()));
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn program(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs the hook as Slurm does: in a process group of its own, whose rest is killed afterwards.
    fn run(&self, context: &str) {
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap());
        let mut child = Command::new(self.path("hook"))
            .env("SLURM_SCRIPT_CONTEXT", context)
            .env("SLURM_JOB_ID", "7")
            .env("PATH", path)
            .process_group(0)
            .spawn()
            .unwrap();
        assert!(child.wait().unwrap().success(), "{context}");
        let rest = format!("kill -KILL -- -{} 2>/dev/null", child.id());
        let _ = Command::new("sh").args(["-c", &rest]).status().unwrap();
    }

    fn events(&self) -> String {
        fs::read_to_string(self.path("events")).unwrap_or_default()
    }
}

/// A node whose file system does not answer is free nevertheless: the line is written by a process
/// that nobody waits for.
#[test]
fn a_node_does_not_wait_for_its_line() {
    let place = Place::new("hook-waits");
    fs::write(place.path("events"), "").unwrap();
    // It writes nothing before the test says so.
    let go = place.path("go");
    let wait = format!(
        "#!/bin/sh\nwhile ! [ -e {} ]; do sleep 0.05; done\nwhile [ \"$1\" != sh ]; do shift; done\n\
         exec \"$@\"\n",
        go.display()
    );
    place.program("bin/timeout", &wait);
    place.run("epilog_slurmd");
    assert_eq!(place.events(), "");
    fs::write(go, "").unwrap();
    // It would end only with the test otherwise.
    while place.events().is_empty() {
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(place.events(), "freed 7\n");
}

/// A node makes no event file: it would be root's, and the planner could not open it.
#[test]
fn a_node_makes_no_event_file() {
    let place = Place::new("hook-makes");
    // The end of the process that would write is seen by this.
    let done = place.path("done");
    place.program(
        "bin/timeout",
        &format!("#!/bin/sh\n/usr/bin/timeout \"$@\"\n: >{}\n", done.display()),
    );
    place.run("epilog_slurmd");
    while !done.exists() && !place.path("events").exists() {
        thread::sleep(Duration::from_millis(10));
    }
    assert!(!place.path("events").exists());
    // In slurmctld, whose user is that of the planner, it may.
    place.run("prolog_slurmctld");
    place.run("epilog_slurmctld");
    place.run("prolog_slurmd");
    assert_eq!(place.events(), "start 7\nfreed 7\n");
}
