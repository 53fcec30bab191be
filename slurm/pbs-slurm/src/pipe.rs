// SPDX-License-Identifier: GPL-2.0
//! `scontrol` at the end of a pipe.
//!
//! It says nothing where all went well, and something on its standard error where it did not.
//! So a command is followed by a word that it does not know: what it says before it complains
//! of that word belongs to the command.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStderr, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use crate::steer::Fault;
use rustix::event::{poll, PollFd, PollFlags, Timespec};

/// Message about an unknown word, before the word.
const UNKNOWN: &str = "invalid keyword: ";
/// The word, with a number behind it.
const WORD: &str = "pbs-end-";

/// Greatest length of what it says before it answers.
const MOST_SAID: usize = 1 << 20;

/// Outcome of a command.
pub type Answer = Result<(), Fault>;

#[derive(Debug)]
struct Running {
    child: Child,
    stdin: ChildStdin,
    stderr: ChildStderr,
    /// Output that was read and belongs to no answer yet.
    said: String,
}

/// One `scontrol`, which is started when it is needed.
#[derive(Debug)]
pub struct Pipe {
    program: String,
    running: Option<Running>,
    count: u64,
    patience: Duration,
}

impl Pipe {
    /// A pipe to that program, which has `patience` for each command.
    pub fn new(program: &str, patience: Duration) -> Self {
        Self { program: program.into(), running: None, count: 0, patience }
    }

    /// Says commands, and tells what became of each.
    ///
    /// # Errors
    ///
    /// [`Fault::Unreachable`] if it does not answer; then it is not known what was done.
    pub fn say(&mut self, commands: &[String]) -> Result<Vec<Answer>, Fault> {
        let answers = self.try_say(commands);
        answers.map_err(|error| {
            // Another is started next time.
            if let Some(mut running) = self.running.take() {
                // A child that has ended cannot be killed.
                let _ = running.child.kill();
                // A child that was waited for has no status.
                let _ = running.child.wait();
            }
            Fault::Unreachable(format!("{}: {error}", self.program))
        })
    }

    fn try_say(&mut self, commands: &[String]) -> io::Result<Vec<Answer>> {
        let mut text = String::new();
        let first = self.count + 1;
        for command in commands {
            // A line is a command: none may smuggle in another.
            let line: String = command.chars().filter(|c| !c.is_control()).collect();
            self.count += 1;
            text += &format!("{line}\n{WORD}{}\n", self.count);
        }
        let patience = self.patience;
        let running = match &mut self.running {
            Some(running) => running,
            None => {
                let started = start(&self.program)?;
                self.running.insert(started)
            }
        };
        // What it says must be read before it has said too much, so not all at once.
        let mut answers = Vec::with_capacity(commands.len());
        let mut until = Instant::now() + patience;
        let mut rest = text.as_bytes();
        for number in first..=self.count {
            let end = format!("{UNKNOWN}{WORD}{number}\n");
            loop {
                if let Some(at) = running.said.find(&end) {
                    answers.push(answer_of(&running.said[..at]));
                    running.said.drain(..at + end.len());
                    until = Instant::now() + patience;
                    break;
                }
                running.go_on(&mut rest, until)?;
            }
        }
        Ok(answers)
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        if let Some(mut running) = self.running.take() {
            // A child that has ended cannot be killed.
            let _ = running.child.kill();
            // A child that was waited for has no status.
            let _ = running.child.wait();
        }
    }
}

fn start(program: &str) -> io::Result<Running> {
    let mut child = Command::new(program)
        .env("TERM", "dumb")
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
    let stdin = child.stdin.take().ok_or_else(gone)?;
    let stderr = child.stderr.take().ok_or_else(gone)?;
    Ok(Running { child, stdin, stderr, said: String::new() })
}

impl Running {
    /// Writes what it takes and reads what it says.
    fn go_on(&mut self, rest: &mut &[u8], until: Instant) -> io::Result<()> {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let (stdin, stderr) = (self.stdin.as_fd(), self.stderr.as_fd());
        let mut fds = vec![PollFd::new(&stderr, PollFlags::IN)];
        if !rest.is_empty() {
            fds.push(PollFd::new(&stdin, PollFlags::OUT));
        }
        let wait = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        poll(&mut fds, Some(&wait))?;
        let reads = !fds[0].revents().is_empty();
        let writes = fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
        if writes {
            // No more than a pipe takes for sure once it takes something.
            let most = rest.len().min(4096);
            let written = self.stdin.write(&rest[..most])?;
            *rest = &rest[written..];
        }
        if reads {
            let mut buffer = [0; 8192];
            match self.stderr.read(&mut buffer)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => self.said += &String::from_utf8_lossy(&buffer[..read]),
            }
            if self.said.len() > MOST_SAID {
                return Err(io::Error::other("it says too much"));
            }
        }
        Ok(())
    }
}

/// Answer to a command, from its output.
fn answer_of(said: &str) -> Answer {
    let said = said.trim();
    if said.is_empty() {
        return Ok(());
    }
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let first = said.lines().next().unwrap_or_default().to_string();
    Err(if has(&["Invalid job id", "already completing or completed", "already finished"]) {
        Fault::Gone
    } else if has(&["no longer pending", "not supported on this system"]) {
        Fault::Started
    } else if has(&["try again in a bit"]) {
        Fault::Later
    } else if has(&[
        "Unable to contact",
        "Unexpected message received",
        "timed out",
        "Communication connection failure",
        "Zero Bytes",
    ]) {
        Fault::Unreachable(first)
    } else if has(&[
        "Requested partition configuration not available",
        "Requested node configuration is not available",
        "Requested time limit is invalid",
        "Node count specification invalid",
        "Invalid feature specification",
        "Invalid generic resource",
    ]) {
        Fault::Never(first)
    } else {
        Fault::Denied(first)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    fn script(name: &str, text: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("pbs-slurm-{name}-{}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    const TALKS: &str = "#!/bin/sh
while read -r word rest; do
	case $word in
	hold) [ \"$rest\" = 1 ] || echo \"Invalid job id specified for job $rest\" >&2 ;;
	die) exit 1 ;;
	sleep) sleep 100 ;;
	*) echo \"invalid keyword: $word\" >&2 ;;
	esac
done
";

    #[test]
    fn errors_are_matched_to_their_commands() {
        let path = script("talks", TALKS);
        let mut pipe = Pipe::new(path.to_str().unwrap(), Duration::from_secs(20));
        let say: Vec<String> = (0..2000).map(|job| format!("hold {}", job % 2)).collect();
        let answers = pipe.say(&say).unwrap();
        for (job, answer) in answers.into_iter().enumerate() {
            let expected = if job % 2 == 1 { Ok(()) } else { Err(Fault::Gone) };
            assert_eq!(answer, expected);
        }
        // A line that would be two is one.
        let answers = pipe.say(&["hold 1\nhold 7".into()]).unwrap();
        assert_eq!(answers, [Err(Fault::Gone)]);
        // It dies, and another is started.
        assert!(matches!(pipe.say(&["die".into()]), Err(Fault::Unreachable(_))));
        assert_eq!(pipe.say(&["hold 1".into()]).unwrap(), [Ok(())]);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_silent_scontrol_is_not_waited_for() {
        let path = script("sleeps", TALKS);
        let mut pipe = Pipe::new(path.to_str().unwrap(), Duration::from_millis(200));
        assert!(matches!(pipe.say(&["sleep".into()]), Err(Fault::Unreachable(_))));
        let mut pipe = Pipe::new("/no/such/program", Duration::from_millis(200));
        assert!(matches!(pipe.say(&["hold 1".into()]), Err(Fault::Unreachable(_))));
        std::fs::remove_file(path).unwrap();
    }

    /// Many commands at once are no reason to wait longer for the first of them.
    #[test]
    fn the_patience_is_that_of_each_command() {
        let path = script("many", TALKS);
        let begun = Instant::now();
        let mut pipe = Pipe::new(path.to_str().unwrap(), Duration::from_secs(1));
        let mut say = vec!["sleep".to_string()];
        say.resize(200, "hold 1".into());
        assert!(matches!(pipe.say(&say), Err(Fault::Unreachable(_))));
        assert!(begun.elapsed() < Duration::from_secs(100));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn one_that_says_too_much_is_ended() {
        let path = script("yells", "#!/bin/sh\nexec yes >&2\n");
        let mut pipe = Pipe::new(path.to_str().unwrap(), Duration::from_secs(600));
        let Err(Fault::Unreachable(why)) = pipe.say(&["hold 1".into()]) else {
            panic!("it has answered");
        };
        assert!(why.contains("says too much"), "{why}");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn error_messages_of_slurm_are_understood() {
        for (said, fault) in [
            ("Invalid job id specified for job 99", Fault::Gone),
            ("Job/step already completing or completed", Fault::Gone),
            ("Job has already finished for job 72", Fault::Gone),
            ("Requested operation not supported on this system for job 11", Fault::Started),
            ("Job is no longer pending execution for job 3", Fault::Started),
            (
                "Job update not available right now, the DB index is being set, try again in a bit",
                Fault::Later,
            ),
        ] {
            assert_eq!(answer_of(said), Err(fault), "{said}");
        }
        let never = "Requested partition configuration not available now for job 21";
        let answer = answer_of(&format!("{never}\nslurm_suspend error"));
        assert_eq!(answer, Err(Fault::Never(never.into())));
        let away = answer_of("scontrol: error: Unable to contact slurm controller");
        assert!(matches!(away, Err(Fault::Unreachable(_))));
        let denied = answer_of("Access/permission denied for job 7\nslurm_suspend error");
        assert_eq!(denied, Err(Fault::Denied("Access/permission denied for job 7".into())));
    }
}
