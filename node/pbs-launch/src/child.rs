// SPDX-License-Identifier: GPL-2.0
//! A program that was forked, until it has ended.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pbs_report::Exit;
use pbs_uapi::{Device, Refused, ATTACH_ONE_TASK};

use crate::child_report::{ChildReport, Step};
use crate::program::Program;
use crate::signals::wait_for;

/// Number of children of this process that were found to have ended.
static ENDS: AtomicU64 = AtomicU64::new(0);

/// A forked program.
#[derive(Debug)]
pub struct Child {
    /// The program.
    pub program: Program,
    /// Process id of the child.
    pub pid: i32,
    /// Reports of the child on itself; `None`: it was executed or killed, and sends no more.
    reports: Option<File>,
    /// Whether it has reported that it stands at the gate.
    is_ready: bool,
    /// Reason for which it was not executed, once that was read.
    report: Option<ChildReport>,
    status: Option<i32>,
    /// Number of its end: of two children, the one that was found first has the lower number.
    end: u64,
    /// Whether this process has sent it a signal.
    was_signalled: bool,
    /// For how long it had a CPU, once it has ended; 0: that is not known.
    pub(crate) ran_ns: u64,
}

impl Child {
    /// A program that was just forked; `reports` is what it writes about itself.
    pub(crate) fn new(program: &Program, pid: i32, reports: File) -> Self {
        Self {
            program: program.clone(),
            pid,
            reports: Some(reports),
            is_ready: false,
            report: None,
            status: None,
            end: 0,
            was_signalled: false,
            ran_ns: 0,
        }
    }

    /// Whether the child stands at the gate, on the CPU of its process; does not wait. Until then
    /// it is on any CPU: on that one it might hardly run.
    ///
    /// # Errors
    ///
    /// The child can't stand at the gate, or does not any more: it has ended.
    pub fn is_ready(&mut self) -> io::Result<bool> {
        self.close_descriptor();
        let has_ended = self.is_ready && self.has_ended();
        if has_ended {
            return Err(self.killed_before_it_began());
        }
        let name = &self.program.name;
        match (self.is_ready, self.report, &self.reports) {
            (true, ..) => Ok(true),
            (false, Some(report), _) => {
                let kind = io::Error::from_raw_os_error(report.errno).kind();
                let words = report.in_words(&self.program.places);
                Err(io::Error::new(kind, format!("{name}: {words}")))
            }
            (false, None, None) => Err(self.killed_before_it_began()),
            (false, None, Some(_)) => Ok(false),
        }
    }

    /// Waits until the child stands at the gate. `until`: its owner may stop the child, or let it
    /// wait for a file; `None`: nobody can. For callers that nobody else depends on.
    ///
    /// # Errors
    ///
    /// The child can't stand at the gate, or does not by then.
    pub fn wait_ready(&mut self, until: Option<Instant>) -> io::Result<()> {
        while !self.is_ready()? {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Err(self.not_ready_in_time());
            }
            let left_ms = left.map(|left| i32::try_from(left.as_millis()).unwrap_or(i32::MAX));
            wait_for(self.reports(), left_ms.map_or(-1, |ms| ms.saturating_add(1)))?;
        }
        Ok(())
    }

    fn killed_before_it_began(&self) -> io::Error {
        io::Error::other(format!("{}: it was killed before it began", self.program.name))
    }

    /// Describes that the child did not come to the gate in the time that it had.
    pub fn not_ready_in_time(&self) -> io::Error {
        let text = format!(
            "{}: it was not ready in time; its working directory or one of its files does not \
             answer, or it was stopped",
            self.program.name
        );
        io::Error::new(io::ErrorKind::TimedOut, text)
    }

    /// Returns a descriptor that can be read when the child reports something, if it still does.
    pub fn reports(&self) -> Option<BorrowedFd<'_>> {
        self.reports.as_ref().map(|reports| reports.as_fd())
    }

    /// Makes it wait on the CPU of its process: attaching need not move it then. If there is
    /// no such CPU, the kernel refuses the plan.
    #[allow(unsafe_code)]
    pub(crate) fn pin(&self) {
        let cpus = &self.program.affinity;
        if !self.program.itself && !self.is_reaped() {
            // SAFETY: the mask is as long as it says; the child was not waited for.
            unsafe {
                libc::sched_setaffinity(
                    self.pid,
                    size_of_val(cpus.as_slice()),
                    cpus.as_ptr().cast(),
                )
            };
        }
    }

    /// Attaches it to its process, unless it does that itself.
    ///
    /// # Errors
    ///
    /// The kernel refuses it, or the child was waited for: its process id may be that of another.
    pub fn attach(&self, device: &Device) -> Result<(), Refused> {
        if self.is_reaped() {
            return Err(Refused {
                error: io::Error::from_raw_os_error(libc::ESRCH),
                reason: Some("the program was killed before it began".into()),
                offset_bytes: None,
            });
        }
        if self.program.itself {
            return Ok(());
        }
        let flags = if self.program.one_of_several { ATTACH_ONE_TASK } else { 0 };
        device.attach(self.pid, self.program.process, flags)
    }

    /// Whether it has ended; does not wait.
    pub fn has_ended(&mut self) -> bool {
        self.wait(libc::WNOHANG)
    }

    #[allow(unsafe_code)]
    pub(crate) fn wait(&mut self, flags: i32) -> bool {
        if self.status.is_none() && self.is_over(flags) {
            // Gone when it was waited for.
            self.ran_ns = cpu_time_ns(self.pid);
            let mut status = 0;
            // SAFETY: `status` is valid for writing; the child is ours and was
            // not waited for yet, so the number is not that of another.
            if unsafe { libc::waitpid(self.pid, &mut status, 0) } == self.pid {
                self.status = Some(status);
                self.end = ENDS.fetch_add(1, Ordering::Relaxed) + 1;
            }
        }
        self.status.is_some()
    }

    /// Whether it has ended, and can be waited for.
    #[allow(unsafe_code)]
    fn is_over(&self, flags: i32) -> bool {
        let flags = flags | libc::WEXITED | libc::WNOWAIT;
        let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: `info` is valid for writing; the child is ours, as below.
        let result =
            unsafe { libc::waitid(libc::P_PID, self.pid as libc::id_t, info.as_mut_ptr(), flags) };
        // SAFETY: all of it was written, with zeroes at first; without a child that
        // has ended the number stays 0.
        result == 0 && unsafe { info.assume_init().si_pid() } == self.pid
    }

    /// Sends a signal if it has not ended.
    #[allow(unsafe_code)]
    pub fn signal(&mut self, signal: i32) {
        if !self.has_ended() {
            // SAFETY: sends a signal to a child that was not waited for.
            unsafe { libc::kill(self.pid, signal) };
            self.was_signalled = true;
        }
    }

    /// Whether a descriptor of this process is open for it, by which it reports on itself.
    pub fn has_descriptor(&self) -> bool {
        self.reports.is_some()
    }

    /// Reads its reports, and closes its descriptor if it sends no more: it was executed, or has
    /// ended. Does not wait.
    pub fn close_descriptor(&mut self) {
        while let Some(reports) = &mut self.reports {
            match ChildReport::read(reports) {
                Ok(Some(ChildReport { step: Step::Ready, .. })) => {
                    self.is_ready = true;
                    self.pin();
                }
                Ok(Some(report)) => self.report = Some(report),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Ok(None) | Err(_) => self.reports = None,
            }
        }
    }

    /// Returns for how long it had a CPU until now, or until it ended; `None`: nobody can say, or
    /// it attaches itself, and may be several processes.
    pub fn cpu_ns(&self) -> Option<u64> {
        let ran_ns = if self.is_reaped() { self.ran_ns } else { cpu_time_ns(self.pid) };
        Some(ran_ns).filter(|&ns| ns > 0 && !self.program.itself)
    }

    /// Whether it was waited for.
    pub fn is_reaped(&self) -> bool {
        self.status.is_some()
    }

    /// Returns the exit of the program, with its CPU time.
    pub fn exited(&mut self) -> Exited {
        Exited {
            exit: self.exit(),
            task: self.program.task,
            itself: self.program.itself,
            ran_ns: self.ran_ns,
            end: self.end,
            was_signalled: self.was_signalled,
        }
    }

    /// Returns the exit of the program.
    pub fn exit(&mut self) -> Exit {
        if self.status.is_some() {
            self.close_descriptor();
        }
        let status = self.status.unwrap_or(0);
        let exited = self.status.is_some() && libc::WIFEXITED(status);
        let killed = self.status.is_some() && libc::WIFSIGNALED(status);
        Exit {
            process: self.program.process,
            program: self.program.name.clone(),
            pid: self.pid,
            code: exited.then(|| libc::WEXITSTATUS(status)),
            signal: killed.then(|| libc::WTERMSIG(status)),
            error: self.report.map(|report| report.in_words(&self.program.places)),
        }
    }
}

/// End of a program.
#[derive(Debug)]
pub struct Exited {
    /// Exit status, or the signal that killed the program.
    pub exit: Exit,
    /// The number of its task in the plan, if it is one task.
    pub task: Option<u32>,
    /// Whether it attached itself.
    pub itself: bool,
    /// For how long it had a CPU.
    pub ran_ns: u64,
    /// Number of its end: of two programs, the one that was found to have ended first has the
    /// lower number. 0: it has not ended.
    pub end: u64,
    /// Whether this process has sent it a signal before it ended.
    pub was_signalled: bool,
}

/// For how long a process that was not waited for had a CPU; 0 if nobody can say.
#[allow(unsafe_code)]
fn cpu_time_ns(pid: i32) -> u64 {
    let mut clock = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both are valid for writing.
    let known = unsafe {
        libc::clock_getcpuclockid(pid, &mut clock) == 0
            && libc::clock_gettime(clock, &mut time) == 0
    };
    if known {
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    } else {
        0
    }
}
