// SPDX-License-Identifier: GPL-2.0
//! A directory of a test, a job in it, and who waits for a step.

#![allow(dead_code)] // No test needs all of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use pbs_job::{job_from_toml, Job};
use pbs_node_api::{Environment, Submission};
use pbs_slurm_step::{End, Error, Request, Waits};

pub(crate) fn directory(name: &str) -> PathBuf {
    let directory =
        std::env::temp_dir().join(format!("pbs-slurm-step-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// Notes of all reports; the step must end once the file exists.
#[derive(Default)]
pub(crate) struct Notes {
    pub(crate) told: Vec<String>,
    pub(crate) stop: Option<PathBuf>,
}

impl Waits for Notes {
    fn wait(&mut self, time: Duration) -> bool {
        sleep(time.min(Duration::from_millis(5)));
        self.stop.as_ref().is_some_and(|file| file.exists())
    }

    fn tell(&mut self, what: &str) {
        self.told.push(what.into());
    }
}

/// A job with those processes.
pub(crate) fn job(processes: &str) -> Job {
    let head = "name = \"j\"\ndeadline_ns = 9_000_000_000\n";
    job_from_toml(&format!("{head}{processes}")).unwrap()
}

pub(crate) fn submission(directory: &Path) -> Submission {
    Submission {
        allocation: Some(71),
        directory: directory.display().to_string(),
        environment: vec![Environment { name: "PATH".into(), value: "/usr/bin:/bin".into() }],
        ..Submission::default()
    }
}

/// Runs it there; the device is one that is there, or is not.
pub(crate) fn run(
    directory: &Path,
    device: &str,
    job: &Job,
    told: &mut Notes,
) -> Result<End, Error> {
    let request = Request {
        socket: &directory.join("pbs.sock"),
        device: Path::new(device),
        submission: submission(directory),
        job,
        output_to_error: false,
    };
    pbs_slurm_step::run(request, told)
}
