// SPDX-License-Identifier: GPL-2.0
//! The gate: programs are forked up front, held there, and let go together.
//!
//! A program must not run before it is attached: it would run as a normal one. Once the
//! first program runs, the node may hardly get the CPU any more. Therefore all children
//! wait at one pipe, and closing its other end releases them all in one call. They continue
//! only if the node has written a byte to a file that they have open. It does not matter
//! whether the node closed the pipe or died: that byte is the one point at which they are
//! started. The successor of a node that died checks the file.
//!
//! From then on the class starts them: a program is executed when its process is first
//! granted the CPU, in its slot, after all tasks that its own task waits for. No time is
//! lost between the end of one and the start of the next, and nothing depends on when the
//! node gets to run. The input of a program that waits for others may be made by them, and
//! is opened as late.
//!
//! A child that waits has given back the memory of the node (`memory.rs`): from its first grant
//! on, memory is what the class sees of its process.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::child::Child;
use crate::child_report::{ChildReport, Step};
use crate::inside::{close_others, forget_signals, stand_in, wait_for_writer, wait_until, Input};
use crate::memory::{Areas, Words};
use crate::program::{Files, Prepared};

/// Exit status of a child that did not execute its program.
const NOT_EXECUTED: i32 = 127;

/// Flag from linux/sched.h; the type of libc's constant has too few bits.
const CLONE_INTO_CGROUP: u64 = 1 << 33;

/// All CPUs that there may be.
// SAFETY: any bits are a set.
#[allow(unsafe_code)]
const EVERYWHERE: libc::cpu_set_t =
    unsafe { std::mem::transmute([u8::MAX; size_of::<libc::cpu_set_t>()]) };

/// Gate at which the children wait.
#[derive(Debug)]
pub struct Gate {
    /// The children wait for all writers to go.
    wait: OwnedFd,
    open: OwnedFd,
    /// File that holds a byte once the children may continue.
    commit: File,
    /// Memory of this process that children do not need.
    areas: Areas,
}

impl Gate {
    /// Descriptors that are open for a gate while it stands.
    pub const DESCRIPTORS: usize = 3;

    /// `commit`: the file by which who comes next knows; `None`: nobody has to.
    pub fn new(commit: Option<&Path>) -> io::Result<Self> {
        let (wait, open) = pipe()?;
        let commit = match commit {
            Some(path) => {
                OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?
            }
            None => nameless()?,
        };
        Ok(Self { wait, open, commit, areas: Areas::own() })
    }

    /// Forks a program, which goes as far as the gate; `cgroup`: its control group. `signals`
    /// is the mask of a program without an owner; one with an owner has an empty mask.
    #[allow(unsafe_code)]
    pub fn fork(
        &self,
        prepared: &Prepared,
        cgroup: Option<&File>,
        signals: &libc::sigset_t,
    ) -> io::Result<Child> {
        let (reports, say) = pipe()?;
        unblock(&reports)?;
        let mut say = File::from(say);
        let words = Words::of(prepared)?;
        // SAFETY: other threads may hold locks that nobody opens in the child; it
        // takes none, allocates nothing, and leaves by exec or _exit only.
        let pid = unsafe {
            match cgroup {
                None => libc::fork(),
                Some(cgroup) => fork_into(cgroup),
            }
        };
        match pid {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                let report = self.child(prepared, &words, signals, &mut say);
                // Without a parent nobody reads the report.
                let _ = say.write_all(&report.bytes());
                // SAFETY: ends the child at once, without running what the
                // parent has to run at its end.
                unsafe { libc::_exit(NOT_EXECUTED) }
            }
            _ => Ok(Child::new(&prepared.program, pid, reports.into())),
        }
    }

    /// Runs in the child; returns the reason for which the program was not executed.
    #[allow(unsafe_code)]
    fn child(
        &self,
        prepared: &Prepared,
        words: &Words,
        signals: &libc::sigset_t,
        say: &mut File,
    ) -> ChildReport {
        // Before anything that may take long: a waiting child keeps no socket of a killed
        // service open.
        if let Files::Of(..) = prepared.files {
            close_others([&self.wait.as_fd(), &self.commit.as_fd(), &say.as_fd()]);
            forget_signals();
        } else {
            // SAFETY: closes a descriptor that the child does not use after this, and it
            // ends without dropping it; calls with valid arguments.
            unsafe {
                libc::close(self.open.as_raw_fd());
                // Rust's runtime ignores it, programs do not expect that.
                libc::signal(libc::SIGPIPE, libc::SIG_DFL);
                libc::sigprocmask(libc::SIG_SETMASK, signals, std::ptr::null_mut());
            }
        }
        // SAFETY: the arguments are valid.
        if prepared.output_to_error
            && unsafe { libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO) } < 0
        {
            return ChildReport::failed(Step::Output);
        }
        if prepared.program.itself {
            // It has all CPUs, wherever who started it is.
            // SAFETY: a mask of all, as long as it says.
            unsafe { libc::sched_setaffinity(0, size_of_val(&EVERYWHERE), &EVERYWHERE) };
        }
        let input = match stand_in(&prepared.files) {
            Ok(input) => input,
            Err(report) => return report,
        };
        let rest = Rest {
            wait: self.wait.as_raw_fd(),
            commit: self.commit.as_raw_fd(),
            input,
            not_before_ns: prepared.not_before_ns,
        };
        let (areas, area) = (self.areas, words.area());
        // SAFETY: a forked process has one thread. From here on it uses `rest`, `words` and `say`,
        // which are on the stack, and the area of the words.
        unsafe { areas.give_back(&area) };
        if say.write_all(&ChildReport::new(Step::Ready, 0).bytes()).is_err() {
            return ChildReport::failed(Step::Ready);
        }
        rest.execute(words)
    }

    /// Lets all children go, in one step.
    pub fn release(mut self) -> io::Result<()> {
        self.commit.write_all(&[1])
        // Closing the pipe, on return, opens the gate.
    }
}

/// Data of a child that waits, beside the words of its program: nothing of it is on the heap.
struct Rest {
    wait: RawFd,
    commit: RawFd,
    input: Input,
    not_before_ns: u64,
}

impl Rest {
    /// Waits until the gate is open, and executes the program. Returns the reason for which it
    /// was not executed.
    #[allow(unsafe_code)]
    fn execute(&self, words: &Words) -> ChildReport {
        if !self.wait() {
            return ChildReport::new(Step::Execute, libc::ECANCELED);
        }
        wait_until(self.not_before_ns);
        if self.input == Input::Fifo {
            wait_for_writer();
        }
        // SAFETY: calls with valid arguments; the vectors end with null and point to live C
        // strings.
        unsafe {
            if !words.late_input.is_null() {
                // No terminal becomes that of its session.
                let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NOCTTY;
                let input = libc::open(words.late_input, flags);
                if input < 0 || libc::dup2(input, libc::STDIN_FILENO) < 0 {
                    return ChildReport::failed(Step::Input);
                }
            }
            let mut report = ChildReport::new(Step::Execute, libc::ENOENT);
            let mut path = words.paths;
            while !(*path).is_null() {
                libc::execve(*path, words.argv, words.environment);
                let failed = ChildReport::failed(Step::Execute);
                match failed.errno {
                    libc::ENOENT | libc::ENOTDIR => {}
                    // One further on may be executed (execvp(3)).
                    libc::EACCES => report = failed,
                    _ => return failed,
                }
                path = path.add(1);
            }
            report
        }
    }

    /// Waits for the gate; whether to go on.
    #[allow(unsafe_code)]
    fn wait(&self) -> bool {
        let mut gate = libc::pollfd {
            fd: self.wait,
            // Nothing but the hang-up that comes when the node closes it.
            events: 0,
            revents: 0,
        };
        // SAFETY: `gate` is valid for writing, `file` too, and all of it is written if the
        // call succeeds.
        unsafe {
            while libc::poll(&raw mut gate, 1, -1) < 1 {}
            let mut file = std::mem::MaybeUninit::<libc::stat>::uninit();
            libc::fstat(self.commit, file.as_mut_ptr()) == 0 && file.assume_init().st_size > 0
        }
    }
}

/// Forks like fork(2), but creates the child in the given control group.
///
/// # Safety
///
/// The requirements are those of fork(2) in a process with other threads. The C library is not
/// aware of the fork.
#[allow(unsafe_code)]
unsafe fn fork_into(cgroup: &File) -> libc::pid_t {
    // SAFETY: all zeroes are valid arguments that ask for nothing.
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.flags = CLONE_INTO_CGROUP;
    arguments.exit_signal = libc::SIGCHLD as u64;
    arguments.cgroup = cgroup.as_raw_fd() as u64;
    let bytes = size_of_val(&arguments);
    // SAFETY: the arguments are as long as it says; without memory in common the child goes
    // on with a stack of its own.
    unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, bytes) as libc::pid_t }
}

/// Whether those who waited at the gate with that file were let go.
pub fn was_released(commit: &Path) -> bool {
    commit.metadata().is_ok_and(|file| file.len() > 0)
}

/// A file without a name.
#[allow(unsafe_code)]
fn nameless() -> io::Result<File> {
    // SAFETY: the name is a C string; the call gives a new descriptor, or -1.
    unsafe {
        match libc::memfd_create(c"pbs-gate".as_ptr(), libc::MFD_CLOEXEC) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(File::from_raw_fd(fd)),
        }
    }
}

/// Makes reading return at once when there is nothing to read.
#[allow(unsafe_code)]
fn unblock(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: the descriptor is open; the call has no pointer.
    match unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The reading and the writing end of a pipe that programs do not inherit.
#[allow(unsafe_code)]
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just opened both, and nobody else owns them.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

#[cfg(test)]
mod tests;
