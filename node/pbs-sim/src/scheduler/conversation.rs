// SPDX-License-Identifier: GPL-2.0
//! One question to a command, and its answer.
//!
//! The caller looks from time to time; nothing here waits for the command, which may read
//! slowly, write without end, or never end.

use std::fmt;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use pbs_plan::{from_toml, Plan};
use pbs_text::json::{is_json, toml_of_json};
use rustix::io::ioctl_fionbio;
use rustix::process::{kill_process_group, waitid, Pid, Signal, WaitId, WaitIdOptions};

/// The longest answer of a command: a plan of several hundred thousand tasks.
pub const MAX_ANSWER_BYTES: usize = 64 << 20;

/// User and group that a command runs as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunAs {
    /// Number of the user.
    pub uid: u32,
    /// Number of the group.
    pub gid: u32,
}

/// Reason for which a command gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoReply {
    /// The command could not be run.
    NotRun(String),
    /// The command ended with a status other than 0, or by a signal.
    Ended(String),
    /// The answer is longer than [`MAX_ANSWER_BYTES`].
    TooLong,
    /// The answer is no text.
    NotText,
    /// The answer is no valid plan: one line for each problem.
    NotValid(String),
}

impl fmt::Display for NoReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRun(why) => write!(f, "could not be run: {why}"),
            Self::Ended(how) => write!(f, "ended with {how}"),
            Self::TooLong => write!(f, "wrote more than {MAX_ANSWER_BYTES} bytes"),
            Self::NotText => write!(f, "wrote output that is not UTF-8 text"),
            Self::NotValid(problems) => write!(f, "wrote a plan that is not valid: {problems}"),
        }
    }
}

impl NoReply {
    fn not_run(error: &io::Error) -> Self {
        Self::NotRun(error.to_string())
    }
}

/// A command that was asked one question. It is killed with all its descendants when the
/// conversation is dropped. Nobody waits for it: one that the kernel does not end at once remains
/// a child that has not been waited for.
#[derive(Debug)]
pub struct Conversation {
    child: Child,
    /// `None`: the command has read all, or reads no more.
    input: Option<ChildStdin>,
    output: ChildStdout,
    question: Vec<u8>,
    written_bytes: usize,
    answer: Vec<u8>,
    max_bytes: usize,
    /// The command has closed its output.
    is_closed: bool,
    /// Exit status of the shell, once it was waited for.
    status: Option<ExitStatus>,
}

impl Conversation {
    /// Runs `line` with `sh -c` and the question on its standard input, in a process group of
    /// its own.
    pub fn start(line: &str, run_as: Option<RunAs>, question: Vec<u8>) -> Result<Self, NoReply> {
        Self::start_with(line, run_as, question, |command| _ = command.process_group(0))
    }

    /// Like [`Conversation::start`], but `prepare` says how the shell is started: it puts the shell
    /// into a process group of its own. With `run_as` the shell has an environment of its own, too.
    pub fn start_with(
        line: &str,
        run_as: Option<RunAs>,
        question: Vec<u8>,
        prepare: impl FnOnce(&mut Command),
    ) -> Result<Self, NoReply> {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        if let Some(RunAs { uid, gid }) = run_as {
            // The groups of the caller are left, too.
            command.uid(uid).gid(gid).current_dir("/");
            command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", "/");
        }
        prepare(&mut command);
        let mut child = command.spawn().map_err(|error| NoReply::not_run(&error))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (input, output) =
            pipes.ok_or_else(|| NoReply::NotRun("it has no pipes".to_string()))?;
        let conversation = Self {
            child,
            input: Some(input),
            output,
            question,
            written_bytes: 0,
            answer: Vec::new(),
            max_bytes: MAX_ANSWER_BYTES,
            is_closed: false,
            status: None,
        };
        let unblocked = ioctl_fionbio(&conversation.output, true).and_then(|()| {
            conversation.input.as_ref().map_or(Ok(()), |input| ioctl_fionbio(input, true))
        });
        unblocked.map_err(|error| NoReply::not_run(&error.into()))?;
        Ok(conversation)
    }

    /// Conversation whose answer may have so many bytes.
    pub fn at_most(mut self, max_bytes: usize) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    /// Process id of the shell that runs the command.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes what is possible at once of the question. Whether the command has all of it, or reads
    /// no more.
    pub fn has_asked(&mut self) -> bool {
        self.write();
        self.input.is_none()
    }

    /// Writes and reads what is possible at once. Returns the answer when the command has
    /// ended: a plan, or `None` if the plan in force shall stay; and `None` before.
    pub fn look(&mut self) -> Option<Result<Option<Plan>, NoReply>> {
        Some(self.look_text()?.and_then(|text| plan_of_answer(&text)))
    }

    /// Like [`Conversation::look`], but returns the text of the answer, which need not be a plan.
    pub fn look_text(&mut self) -> Option<Result<String, NoReply>> {
        self.write();
        if let Err(why) = self.read() {
            return Some(Err(why));
        }
        if !self.has_ended() {
            return None;
        }
        // What it wrote last, which nobody can add to: its descendants were killed.
        if let Err(why) = self.read() {
            return Some(Err(why));
        }
        let status = self.status?;
        if !status.success() {
            return Some(Err(NoReply::Ended(status.to_string())));
        }
        let answer = std::mem::take(&mut self.answer);
        Some(String::from_utf8(answer).map_err(|_| NoReply::NotText))
    }

    /// Whether the shell has ended. Its descendants are killed then, and it is waited for.
    pub fn has_ended(&mut self) -> bool {
        if self.status.is_some() {
            return true;
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let ended = self.group().map(|shell| waitid(WaitId::Pid(shell), options));
        if matches!(ended, Some(Ok(None))) {
            return false;
        }
        // As long as nobody has waited for it, no other process group has its number.
        self.kill();
        self.status = match self.child.try_wait() {
            Ok(status) => status,
            // Somebody else has waited for it.
            Err(_) => Some(ExitStatus::from_raw(1 << 8)),
        };
        self.status.is_some()
    }

    /// Kills the shell with its descendants, unless it was waited for. Does not wait.
    pub fn kill(&mut self) {
        if let Some(group) = self.group().filter(|_| self.status.is_none()) {
            // It may be gone already.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    fn group(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    fn write(&mut self) {
        while let Some(input) = &mut self.input {
            match input.write(&self.question[self.written_bytes..]) {
                Ok(0) => self.input = None,
                Ok(count) => self.written_bytes += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The command need not read all.
                Err(_) => self.input = None,
            }
            if self.written_bytes == self.question.len() {
                self.input = None;
            }
        }
    }

    fn read(&mut self) -> Result<(), NoReply> {
        let mut buffer = [0; 65536];
        while !self.is_closed {
            match self.output.read(&mut buffer) {
                Ok(0) => self.is_closed = true,
                Ok(count) => self.answer.extend(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(NoReply::not_run(&error)),
            }
            if self.answer.len() > self.max_bytes {
                return Err(NoReply::TooLong);
            }
        }
        Ok(())
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        if !self.has_ended() {
            // One that does not end at once is left to whoever waits for all children.
            self.kill();
            self.has_ended();
        }
    }
}

/// The plan of an answer in TOML or JSON; `None`: the text is empty.
///
/// # Errors
///
/// The text is no valid plan.
pub fn plan_of_answer(text: &str) -> Result<Option<Plan>, NoReply> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let plan = if is_json(text) {
        toml_of_json(text).map_err(|problem| vec![problem]).and_then(|text| from_toml(&text))
    } else {
        from_toml(text)
    };
    let plan = plan.map_err(|problems| {
        let problems = problems.iter().map(|problem| problem.in_file("answer").to_string());
        NoReply::NotValid(problems.collect::<Vec<_>>().join("\n"))
    })?;
    Ok(Some(plan))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const PLAN: &str = "plan_id = 9\n[[process]]\nid = 1\ntasks = [5]\n[[cpu]]\ncpu = 0\n\
                        rate_insns_per_ms = 1\nslots = [1]\n";

    fn answer(conversation: &mut Conversation) -> Result<Option<u64>, NoReply> {
        loop {
            if let Some(answer) = conversation.look() {
                return answer.map(|plan| plan.map(|plan| plan.plan_id));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn asked(line: &str, question: &str) -> Result<Option<u64>, NoReply> {
        answer(&mut Conversation::start(line, None, question.into()).unwrap())
    }

    #[test]
    fn the_answer_is_a_plan_or_nothing() {
        assert_eq!(asked("cat", PLAN), Ok(Some(9)));
        assert_eq!(asked("cat >/dev/null", PLAN), Ok(None));
        // A command need not read its question.
        assert_eq!(asked("true", &"long".repeat(100_000)), Ok(None));
    }

    #[test]
    fn the_plan_of_an_answer_may_be_json() {
        let plan = pbs_text::json::json_of_toml(PLAN).unwrap();
        assert_eq!(asked("cat", &plan.to_string()), Ok(Some(9)));
        assert_eq!(asked("cat", &format!("{plan:#}\n")), Ok(Some(9)));
    }

    #[test]
    fn a_command_may_write_before_it_has_read_all() {
        let long = PLAN.to_owned() + &"# A comment.\n".repeat(100_000);
        assert_eq!(asked("cat", &long), Ok(Some(9)));
    }

    #[test]
    fn every_fault_of_a_command_has_its_reason() {
        assert_eq!(asked("exit 3", PLAN), Err(NoReply::Ended("exit status: 3".into())));
        let killed = asked("kill -9 $$", PLAN).unwrap_err();
        assert!(matches!(&killed, NoReply::Ended(how) if how.contains("signal")), "{killed}");
        assert_eq!(asked("printf '\\377'", PLAN), Err(NoReply::NotText));
        let garbage = asked("echo '{\"no\": \"plan\"'", PLAN).unwrap_err();
        assert!(garbage.to_string().contains("answer:2: this is no JSON"), "{garbage}");
        let endless = Conversation::start("yes", None, Vec::new()).unwrap().at_most(100_000);
        assert_eq!(answer(&mut { endless }), Err(NoReply::TooLong));
    }

    #[test]
    fn a_command_that_does_not_end_is_killed_with_its_descendants() {
        let file = std::env::temp_dir().join(format!("pbs-silent-{}", std::process::id()));
        let line = format!("sleep 1000 & echo $! >{}; wait", file.display());
        let mut silent = Conversation::start(&line, None, Vec::new()).unwrap();
        let descendant = loop {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            if text.ends_with('\n') {
                break text.trim().to_owned();
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        assert!(silent.look().is_none() && !silent.has_ended());
        drop(silent);
        // Until somebody waits for it, it is there as one that has ended.
        let lives = || {
            let stat = std::fs::read_to_string(format!("/proc/{descendant}/stat"));
            stat.is_ok_and(|stat| !stat.contains(") Z "))
        };
        while lives() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::fs::remove_file(&file).unwrap();
    }
}
