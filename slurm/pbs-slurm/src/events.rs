// SPDX-License-Identifier: GPL-2.0
//! Hints that something happened: lines that Slurm's hooks append to a file.
//!
//! Lines may be lost, and nothing is lost with them but time: what is true is looked up.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::steer::Event;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fs::inotify;

use crate::columns::{outcome_of, Ends};

/// A file that has grown so far begins anew.
const MOST_BYTES: u64 = 1 << 20;
/// Ends that are remembered until it was seen that they are.
const MOST_ENDS: usize = 65_536;

/// The file with the hints.
#[derive(Debug)]
pub struct Hints {
    path: PathBuf,
    watch: OwnedFd,
    file: File,
    at: u64,
    /// Outcomes of runs.
    pub(crate) ends: Ends,
    /// Numbers of jobs that a user has changed.
    pub(crate) altered: HashSet<u32>,
}

impl Hints {
    /// Opens the hints that arrive from now on; the file is made if it does not exist.
    ///
    /// # Errors
    ///
    /// Errors of the disk.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file =
            OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
        let watch = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC)?;
        inotify::add_watch(&watch, path, inotify::WatchFlags::MODIFY)?;
        let at = file.seek(SeekFrom::End(0))?;
        let (ends, altered) = (Ends::new(), HashSet::new());
        Ok(Self { path: path.into(), watch, file, at, ends, altered })
    }

    /// Waits until there is a hint, or something at the bell, at most for that time.
    pub fn wait(&self, bell: Option<BorrowedFd<'_>>, most: Duration) {
        let of_file = self.watch.as_fd();
        let fds = [Some(of_file), bell].into_iter().flatten();
        let mut fds: Vec<PollFd<'_>> =
            fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let time = Timespec::try_from(most).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        // A signal ends it early, which does no harm.
        let _ = poll(&mut fds, Some(&time));
    }

    /// Takes the hints that have arrived since the last call.
    pub fn take(&mut self) -> Vec<Event> {
        let mut buffer = [0; 4096];
        while rustix::io::read(&self.watch, &mut buffer).is_ok_and(|read| read > 0) {}
        match self.read() {
            Ok(text) => self.events_of(&text),
            Err(_) => {
                // Somebody has taken it away; its place is watched again.
                if let Ok(again) = Self::open(&self.path) {
                    let ends = std::mem::take(&mut self.ends);
                    let altered = std::mem::take(&mut self.altered);
                    *self = Self { ends, altered, ..again };
                }
                vec![Event::Resync]
            }
        }
    }

    fn read(&mut self) -> io::Result<String> {
        let length = self.file.metadata()?.len();
        if length < self.at {
            self.at = 0;
        }
        self.file.seek(SeekFrom::Start(self.at))?;
        let mut text = Vec::new();
        (&self.file).take(MOST_BYTES).read_to_end(&mut text)?;
        self.at += text.len() as u64;
        if self.at >= MOST_BYTES && self.at >= length {
            // What is appended between these two is lost, as any hint may be: but then there
            // is one more look, since the file has changed.
            self.file.set_len(0)?;
            self.at = 0;
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    fn events_of(&mut self, text: &str) -> Vec<Event> {
        if text.is_empty() {
            return Vec::new();
        }
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let ["alter", job, ..] = words[..] {
                self.altered.extend(job.parse::<u32>());
            }
            if let ["end", job, submit_s, state, ..] = words[..] {
                let outcome = state.parse().ok().and_then(outcome_of);
                if let (Ok(job), Ok(submit_s), Some(outcome)) =
                    (job.parse(), submit_s.parse(), outcome)
                {
                    if self.ends.len() >= MOST_ENDS {
                        self.ends.clear();
                    }
                    self.ends.insert((job, submit_s), outcome);
                }
            }
        }
        vec![Event::Look]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::thread;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("pbs-slurm-{name}-{}", std::process::id()))
    }

    #[test]
    fn a_line_wakes_the_waiting_planner() {
        let path = path("wakes");
        let _ = std::fs::remove_file(&path);
        let mut hints = Hints::open(&path).unwrap();
        assert_eq!(hints.take(), []);
        let other = path.clone();
        let writer = thread::spawn(move || {
            let mut file = OpenOptions::new().append(true).open(other).unwrap();
            file.write_all(b"start 7\nend 8 1795597640 5 256 n01\n").unwrap();
        });
        // It would end only with the test otherwise.
        hints.wait(None, Duration::from_secs(600));
        writer.join().unwrap();
        assert_eq!(hints.take(), [Event::Look]);
        assert_eq!(hints.ends[&(8, 1_795_597_640)], "failed");
        assert_eq!(hints.take(), []);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_job_that_is_sent_back_has_not_ended() {
        let path = path("sent-back");
        let mut hints = Hints::open(&path).unwrap();
        // As Slurm tells it: sent back, and the end of its next run.
        std::fs::write(&path, "end 1 10 1024 0 n01\nend 1 12 32771 0 n01\n").unwrap();
        assert_eq!(hints.take(), [Event::Look]);
        assert_eq!(hints.ends, Ends::from([((1, 12), "completed".into())]));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_restarted_file_is_read_from_its_beginning() {
        let path = path("anew");
        let _ = std::fs::remove_file(&path);
        let mut hints = Hints::open(&path).unwrap();
        std::fs::write(&path, "start 1\n".repeat(10)).unwrap();
        assert_eq!(hints.take(), [Event::Look]);
        std::fs::write(&path, "end 9 1 3 0 -\n").unwrap();
        assert_eq!(hints.take(), [Event::Look]);
        assert_eq!(hints.ends[&(9, 1)], "completed");
        // It does not grow for ever.
        let big = "start 1\n".repeat(200_000);
        std::fs::write(&path, &big).unwrap();
        while hints.take() == [Event::Look] {}
        assert!(std::fs::metadata(&path).unwrap().len() < big.len() as u64);
        std::fs::remove_file(path).unwrap();
    }
}
