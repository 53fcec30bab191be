// SPDX-License-Identifier: GPL-2.0
//! The programs of a plan: forked up front, held at a gate, let go together.
//!
//! A program must not run before it is attached, or it would run as a normal
//! one; and once the first is let go, the node may hardly get the CPU any more.
//! So all children wait at one pipe, and closing its other end lets them all
//! go in one call.
//!
//! From then on the class is what starts them: a program is executed when its
//! process is first granted the CPU, in its slot and not before the tasks have
//! ended that its own waits for. So no time is lost between the end of one and
//! the start of the next, and nothing depends on when the node gets to run. What a
//! program reads that waits for others may be made by them; it is opened as late.

use std::env;
use std::ffi::{CStr, CString, OsStr};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use pbs_plan::{Command, Plan, Problem, Process, Start};
use pbs_report::Exit;
use pbs_uapi::{Device, Refused, ATTACH_ONE_TASK};

use crate::Error;

/// What a child answers when it was not executed.
const NOT_EXECUTED: i32 = 127;

/// A program of a plan.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// The number of its process.
    pub(crate) process: u32,
    /// The number of its task, if it is one task.
    pub(crate) task: Option<u32>,
    /// Whether it attaches itself.
    pub(crate) itself: bool,
    /// Whether another program of the process comes after it: [`ATTACH_ONE_TASK`].
    one_of_several: bool,
    pub(crate) name: String,
}

impl Program {
    /// The one with that place among the commands of its process.
    fn new(process: &Process, place: usize, name: &str) -> Self {
        let one_of_several = matches!(process.start, Start::Commands(_));
        let is_task = one_of_several || matches!(process.start, Start::Command(_));
        let task = process.tasks.get(place).filter(|_| is_task);
        Self {
            process: process.id,
            task: task.map(|task| task.id),
            itself: matches!(process.start, Start::Itself(_)),
            one_of_several,
            name: name.into(),
        }
    }
}

/// A plan with its programs, which are ready to be started.
#[derive(Debug)]
pub struct Launch {
    pub(crate) plan: Plan,
    pub(crate) programs: Vec<Prepared>,
    /// What the plan is called in messages.
    pub(crate) file: String,
}

impl Launch {
    /// Of all processes of a plan. `device` is for those who attach themselves;
    /// `output_to_error` keeps what they print out of the own standard output.
    ///
    /// # Errors
    ///
    /// Everything that can be wrong with the programs, before any is started.
    pub fn of_plan(
        plan: Plan,
        device: &Path,
        output_to_error: bool,
        file: String,
    ) -> Result<Self, Error> {
        Self::new(plan, |_| true, device, output_to_error, file)
    }

    /// Of those processes.
    pub(crate) fn new(
        plan: Plan,
        is_wanted: impl Fn(&Process) -> bool,
        device: &Path,
        output_to_error: bool,
        file: String,
    ) -> Result<Self, Error> {
        let mut programs = Vec::new();
        let mut problems = Vec::new();
        let processes = plan.processes.iter().enumerate();
        for (index, process) in processes.filter(|(_, process)| is_wanted(process)) {
            if process.start == Start::Unsaid {
                problems.push(Problem::at(
                    process.line,
                    format!(
                        "process {} has nothing to run; add command = [\"program\", \
                         \"argument\"], or attaches = \"itself\" if somebody else starts it",
                        process.label()
                    ),
                ));
            }
            let cpu = plan.cpu_of(index).map_or(0, |cpu| cpu.cpu);
            for place in 0..process.commands().len() {
                match Prepared::new(process, place, cpu, device, output_to_error) {
                    Ok(one) => programs.push(one),
                    Err(problem) => problems.push(problem),
                }
            }
        }
        if problems.is_empty() {
            Ok(Self {
                plan,
                programs,
                file,
            })
        } else {
            Err(Error::Invalid { file, problems })
        }
    }
}

/// A program that is ready to be forked: nothing is left that could fail
/// between fork and exec but exec itself.
#[derive(Debug)]
pub(crate) struct Prepared {
    program: Program,
    path: CString,
    argv: Vec<CString>,
    environment: Vec<CString>,
    /// What stands in for standard input, output and error.
    redirections: Vec<(File, RawFd)>,
    /// What stands in for standard input and is opened only when it is executed.
    late_input: Option<CString>,
    /// Its standard output is the standard error, unless redirected.
    output_to_error: bool,
    /// The CPU of its process, as a mask.
    affinity: Vec<libc::c_ulong>,
}

impl Prepared {
    /// Finds the program with that place among the commands of a process, and opens
    /// its files, but for the input of one that is to wait for others.
    fn new(
        process: &Process,
        place: usize,
        cpu: u32,
        device: &Path,
        output_to_error: bool,
    ) -> Result<Self, Problem> {
        let command = &process.commands()[place];
        let program = command.argv.first().map_or("", String::as_str);
        let path = path_of(command)?;
        let itself = matches!(process.start, Start::Itself(_));
        let mut environment: Vec<_> = env::vars_os()
            .filter(|(name, _)| !itself || (name != "PBS_DEVICE" && name != "PBS_PROCESS"))
            .map(|(name, value)| assignment(&name, &value))
            .collect();
        if itself {
            environment.push(assignment("PBS_DEVICE".as_ref(), device.as_os_str()));
            let id = process.id.to_string();
            environment.push(assignment("PBS_PROCESS".as_ref(), id.as_ref()));
        }
        let late = waits(process, place);
        let late_input = command.stdin.as_ref().filter(|_| late);
        let mut redirections = Vec::new();
        for (file, fd) in [
            (&command.stdin.clone().filter(|_| !late), libc::STDIN_FILENO),
            (&command.stdout, libc::STDOUT_FILENO),
            (&command.stderr, libc::STDERR_FILENO),
        ] {
            if let Some(file) = file {
                let opened = open(file, fd).map_err(|error| {
                    Problem::at(
                        command.line,
                        format!("{}: {error}; {program} needs it", file.display()),
                    )
                })?;
                redirections.push((opened, fd));
            }
        }
        Ok(Self {
            program: Program::new(process, place, program),
            path: c_string(path.as_os_str()),
            argv: command
                .argv
                .iter()
                .map(|word| c_string(word.as_ref()))
                .collect(),
            environment,
            redirections,
            late_input: late_input.map(|file| c_string(file.as_os_str())),
            output_to_error,
            affinity: mask(cpu),
        })
    }
}

/// Whether the class holds the program back until tasks of other processes have
/// ended. One that attaches itself is let go at once, and held where it attaches.
fn waits(process: &Process, place: usize) -> bool {
    let tasks = match &process.start {
        Start::Command(_) => process.tasks.len(),
        Start::Commands(_) => place + 1,
        Start::Itself(_) | Start::Unsaid => 0,
    };
    let mut tasks = process.tasks.iter().take(tasks);
    tasks.any(|task| !task.after.is_empty())
}

/// Output files are appended to, since several commands of a process may write
/// to the same one; `empty_outputs` empties them once.
fn open(file: &Path, fd: RawFd) -> io::Result<File> {
    if fd == libc::STDIN_FILENO {
        File::open(file)
    } else {
        OpenOptions::new().create(true).append(true).open(file)
    }
}

/// Empties the files that the programs write to.
pub(crate) fn empty_outputs(prepared: &[Prepared]) -> io::Result<()> {
    for (file, fd) in prepared.iter().flat_map(|one| &one.redirections) {
        if *fd != libc::STDIN_FILENO && file.metadata()?.is_file() {
            file.set_len(0)?;
        }
    }
    Ok(())
}

/// Where the program of a command is, or that it is missing.
pub(crate) fn path_of(command: &Command) -> Result<PathBuf, Problem> {
    let program = command.argv.first().map_or("", String::as_str);
    find(program).ok_or_else(|| {
        Problem::at(
            command.line,
            format!("program {program} is not there; write the path of an executable file"),
        )
    })
}

fn find(program: &str) -> Option<PathBuf> {
    let executable = |path: &Path| {
        path.metadata()
            .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| executable(path));
    }
    env::split_paths(&env::var_os("PATH")?)
        .map(|directory| directory.join(program))
        .find(|path| executable(path))
}

fn assignment(name: &OsStr, value: &OsStr) -> CString {
    let mut text = name.to_os_string();
    text.push("=");
    text.push(value);
    c_string(&text)
}

/// The mask of one CPU.
fn mask(cpu: u32) -> Vec<libc::c_ulong> {
    let cpu = cpu as usize;
    let bits = libc::c_ulong::BITS as usize;
    let mut mask = vec![0; cpu / bits + 1];
    mask[cpu / bits] = 1 << (cpu % bits);
    mask
}

/// Words of plans and of the environment hold no NUL; the part before it would
/// do.
fn c_string(text: &OsStr) -> CString {
    let bytes = text.as_bytes();
    let end = bytes.iter().position(|&byte| byte == 0);
    CString::new(&bytes[..end.unwrap_or(bytes.len())]).unwrap_or_default()
}

/// A forked program.
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) program: Program,
    pid: i32,
    /// The child writes an errno here if it could not be executed.
    error: File,
    status: Option<i32>,
    /// For how long it had a CPU, once it has ended; 0: that is not known.
    ran_ns: u64,
}

impl Child {
    /// Attaches it to its process, unless it does that itself.
    pub(crate) fn attach(&self, device: &Device) -> Result<(), Refused> {
        if self.program.itself {
            return Ok(());
        }
        let flags = match self.program.one_of_several {
            true => ATTACH_ONE_TASK,
            false => 0,
        };
        device.attach(self.pid, self.program.process, flags)
    }

    /// For how long it had a CPU, without its children; 0: it has not ended, or that
    /// is not known.
    pub(crate) fn ran_ns(&self) -> u64 {
        self.ran_ns
    }

    /// Whether it has ended; does not wait.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.wait(libc::WNOHANG)
    }

    #[allow(unsafe_code)]
    fn wait(&mut self, flags: i32) -> bool {
        if self.status.is_none() && self.is_over(flags) {
            // Gone when it was waited for.
            self.ran_ns = cpu_time_ns(self.pid);
            let mut status = 0;
            // SAFETY: `status` is valid for writing; the child is ours and was
            // not waited for yet, so the number is not that of another.
            if unsafe { libc::waitpid(self.pid, &mut status, 0) } == self.pid {
                self.status = Some(status);
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
        let result = unsafe {
            libc::waitid(
                libc::P_PID,
                self.pid as libc::id_t,
                info.as_mut_ptr(),
                flags,
            )
        };
        // SAFETY: all of it was written, with zeroes at first; without a child that
        // has ended the number stays 0.
        result == 0 && unsafe { info.assume_init().si_pid() } == self.pid
    }

    /// Sends a signal if it has not ended.
    #[allow(unsafe_code)]
    pub(crate) fn signal(&mut self, signal: i32) {
        if !self.has_ended() {
            // SAFETY: sends a signal to a child that was not waited for.
            unsafe { libc::kill(self.pid, signal) };
        }
    }

    /// How it ended.
    pub(crate) fn exit(&mut self) -> Exit {
        let mut errno = [0; 4];
        let error = self
            .status
            .and_then(|_| self.error.read_exact(&mut errno).ok())
            .map(|()| io::Error::from_raw_os_error(i32::from_ne_bytes(errno)).to_string());
        let status = self.status.unwrap_or(0);
        let exited = self.status.is_some() && libc::WIFEXITED(status);
        let killed = self.status.is_some() && libc::WIFSIGNALED(status);
        Exit {
            process: self.program.process,
            program: self.program.name.clone(),
            pid: self.pid,
            code: exited.then(|| libc::WEXITSTATUS(status)),
            signal: killed.then(|| libc::WTERMSIG(status)),
            error,
        }
    }
}

/// For how long a process that was not waited for had a CPU; 0 if nobody can say.
#[allow(unsafe_code)]
fn cpu_time_ns(pid: i32) -> u64 {
    let mut clock = 0;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: both are valid for writing.
    let known = unsafe {
        libc::clock_getcpuclockid(pid, &mut clock) == 0
            && libc::clock_gettime(clock, &mut time) == 0
    };
    match known {
        true => time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64,
        false => 0,
    }
}

/// Where the children wait.
#[derive(Debug)]
pub(crate) struct Gate {
    /// The children wait for all writers to go.
    wait: OwnedFd,
    open: File,
    /// Each child says here that it holds no writer any more.
    ready: File,
    /// `None`: all that are to say so have been forked.
    say_ready: Option<OwnedFd>,
}

impl Gate {
    pub(crate) fn new() -> io::Result<Self> {
        let (wait, open) = pipe()?;
        let (ready, say_ready) = pipe()?;
        Ok(Self {
            wait,
            open: open.into(),
            ready: ready.into(),
            say_ready: Some(say_ready),
        })
    }

    /// Forks a program; it comes as far as the gate.
    ///
    /// `signals` is the mask that the program is to have.
    #[allow(unsafe_code)]
    pub(crate) fn fork(&self, prepared: &Prepared, signals: &libc::sigset_t) -> io::Result<Child> {
        let (error, say_error) = pipe()?;
        let argv = pointers(&prepared.argv);
        let environment = pointers(&prepared.environment);
        // SAFETY: other threads may hold locks that nobody opens in the child; it
        // takes none, allocates nothing, and leaves by exec or _exit only.
        let pid = unsafe { libc::fork() };
        match pid {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                let errno = self.child(prepared, &argv, &environment, signals);
                let mut say_error = File::from(say_error);
                let _ = say_error.write_all(&errno.to_ne_bytes());
                // SAFETY: ends the child at once, without running what the
                // parent has to run at its end.
                unsafe { libc::_exit(NOT_EXECUTED) }
            }
            _ => Ok(Child {
                program: prepared.program.clone(),
                pid,
                error: error.into(),
                status: None,
                ran_ns: 0,
            }),
        }
    }

    /// What the child does; the answer is the errno if it was not executed.
    #[allow(unsafe_code)]
    fn child(
        &self,
        prepared: &Prepared,
        argv: &[*const libc::c_char],
        environment: &[*const libc::c_char],
        signals: &libc::sigset_t,
    ) -> i32 {
        let path: &CStr = &prepared.path;
        // SAFETY: closes descriptors that the child does not use after this,
        // it ends without dropping them; calls with valid arguments; the
        // vectors for execve end with null and point to live C strings.
        unsafe {
            libc::close(self.open.as_raw_fd());
            // Rust's runtime ignores it, programs do not expect that.
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            libc::sigprocmask(libc::SIG_SETMASK, signals, std::ptr::null_mut());
            if prepared.output_to_error && libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO) < 0
            {
                return errno();
            }
            for (file, fd) in &prepared.redirections {
                if libc::dup2(file.as_raw_fd(), *fd) < 0 {
                    return errno();
                }
            }
            if !prepared.program.itself {
                // So it waits on the CPU of its process, and attaching need
                // not move it. If there is no such CPU the kernel says so
                // when it gets the plan.
                libc::sched_setaffinity(
                    0,
                    size_of_val(prepared.affinity.as_slice()),
                    prepared.affinity.as_ptr().cast(),
                );
            }
            let ready = 1u8;
            if let Some(say_ready) = &self.say_ready {
                libc::write(say_ready.as_raw_fd(), (&raw const ready).cast(), 1);
                libc::close(say_ready.as_raw_fd());
            }
            let mut gate = libc::pollfd {
                fd: self.wait.as_raw_fd(),
                // Nothing but the hang-up that comes when the node closes it.
                events: 0,
                revents: 0,
            };
            while libc::poll(&mut gate, 1, -1) < 1 {}
            // The node left a byte if it meant to, and none if it died.
            gate.events = libc::POLLIN;
            libc::poll(&mut gate, 1, 0);
            if gate.revents & libc::POLLIN == 0 {
                return libc::ECANCELED;
            }
            if let Some(input) = &prepared.late_input {
                let input = libc::open(input.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
                if input < 0 || libc::dup2(input, libc::STDIN_FILENO) < 0 {
                    return errno();
                }
            }
            libc::execve(path.as_ptr(), argv.as_ptr(), environment.as_ptr());
        }
        errno()
    }

    /// Waits until `count` children stand at the gate. It is an error if one of them
    /// has gone before.
    pub(crate) fn wait_ready(&mut self, count: usize) -> io::Result<()> {
        // With the children's own ends there is none then who could still write.
        self.say_ready = None;
        self.ready.read_exact(&mut vec![0; count])
    }

    /// Lets all children go, in one step.
    pub(crate) fn release(mut self) -> io::Result<()> {
        self.open.write_all(&[1])
        // Closing it, on return, opens the gate.
    }
}

fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings
        .iter()
        .map(|string| string.as_ptr())
        .chain(std::iter::once(std::ptr::null()))
        .collect()
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
mod tests {
    use super::*;
    use pbs_plan::from_toml;
    use std::sync::{Mutex, PoisonError};

    /// A gate of another thread would be inherited by the children of this
    /// one, and stay open; a node has one gate at a time.
    static ONE_GATE: Mutex<()> = Mutex::new(());

    /// Forks the commands of a plan that consists of them, then opens the
    /// gate, or not, and waits for the ends.
    fn run(commands: &str, release: bool) -> Vec<Exit> {
        ends(commands, release, Child::exit)
    }

    /// What there is to say of each when it has ended.
    fn ends<T>(commands: &str, release: bool, what: impl Fn(&mut Child) -> T) -> Vec<T> {
        let _one = ONE_GATE.lock().unwrap_or_else(PoisonError::into_inner);
        let tasks = vec!["1"; commands.matches("command = ").count()];
        let slots = tasks.join(", ");
        let plan = from_toml(&format!(
            "[[process]]\nid = 1\ncommands = [{commands}]\ntasks = [{slots}]\n\
             [[cpu]]\ncpu = 0\nslots = [{slots}]\n"
        ))
        .unwrap();
        let launch = Launch::of_plan(plan, Path::new("/dev/null"), true, String::new());
        let prepared = launch.unwrap().programs;
        empty_outputs(&prepared).unwrap();
        // SAFETY: sigemptyset fills the set.
        #[allow(unsafe_code)]
        let signals = unsafe {
            let mut signals = std::mem::MaybeUninit::uninit();
            libc::sigemptyset(signals.as_mut_ptr());
            signals.assume_init()
        };
        let mut gate = Gate::new().unwrap();
        let mut children: Vec<_> = prepared
            .iter()
            .map(|one| gate.fork(one, &signals).unwrap())
            .collect();
        gate.wait_ready(children.len()).unwrap();
        for child in &mut children {
            assert!(!child.has_ended(), "{} did not wait", child.program.name);
        }
        if release {
            gate.release().unwrap();
        } else {
            drop(gate);
        }
        children
            .iter_mut()
            .map(|child| {
                assert_eq!(child.ran_ns(), 0);
                assert!(child.wait(0));
                what(child)
            })
            .collect()
    }

    #[test]
    fn all_are_let_go_and_tell_how_they_ended() {
        let exits = run(
            "{ command = ['true'] }, { command = ['sh', '-c', 'exit 3'] }, \
             { command = ['sh', '-c', 'kill -9 $$'] }",
            true,
        );
        let ends: Vec<_> = exits.iter().map(|exit| (exit.code, exit.signal)).collect();
        assert_eq!(ends, [(Some(0), None), (Some(3), None), (None, Some(9))]);
        let succeeded: Vec<_> = exits.iter().map(Exit::success).collect();
        assert_eq!(succeeded, [true, false, false]);
    }

    /// What a program had of the CPU is known when it has ended, and what its
    /// children had is not counted.
    #[test]
    fn the_time_of_a_program_is_its_own() {
        let ran_ns = ends(
            "{ command = ['seq', '3000000'], stdout = '/dev/null' }, \
             { command = ['sh', '-c', 'seq 3000000; true'], stdout = '/dev/null' }",
            true,
            |child| child.ran_ns(),
        );
        assert!(ran_ns[1] > 0 && ran_ns[0] > 2 * ran_ns[1], "{ran_ns:?}");
    }

    #[test]
    fn output_goes_to_standard_error_unless_redirected() {
        let same = "command = ['test', '/proc/self/fd/1', '-ef', '/proc/self/fd/2']";
        let exits = run(
            &format!("{{ {same} }}, {{ {same}, stdout = '/dev/null' }}"),
            true,
        );
        let codes: Vec<_> = exits.iter().map(|exit| exit.code).collect();
        assert_eq!(codes, [Some(0), Some(1)]);
    }

    #[test]
    fn commands_of_a_process_share_an_output_file() {
        let dir = env::temp_dir().join(format!("pbs-node-test-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (input, output) = (dir.join("in"), dir.join("out"));
        std::fs::write(&input, "first\n").unwrap();
        std::fs::write(&output, "what was there before\n").unwrap();
        // The second waits for the first, so that their order is known.
        let exits = run(
            &format!(
                "{{ command = ['cat'], stdin = '{0}', stdout = '{1}' }}, \
                 {{ command = ['sh', '-c', 'while ! grep -q first {1}; do :; done; \
                 echo second; echo >&2 third'], stdout = '{1}', stderr = '{1}' }}",
                input.display(),
                output.display()
            ),
            true,
        );
        assert!(exits.iter().all(Exit::success), "{exits:?}");
        let text = std::fs::read_to_string(&output).unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(text, "first\nsecond\nthird\n");
    }

    /// The input of a program that waits for another is opened when it is let go.
    #[test]
    fn what_others_make_need_not_be_there_before() {
        let file = env::temp_dir().join(format!("pbs-node-test-made-{}", std::process::id()));
        let text = format!(
            "[[process]]\nid = 1\ntasks = [1]\n[[process]]\nid = 2\n\
             commands = [{{ command = ['cat'], stdin = '{0}' }}, \
                         {{ command = ['cat'], stdin = '{0}' }}]\n\
             tasks = [1, {{ planned_insns = 1, after = [1] }}]\n\
             [[cpu]]\ncpu = 0\nslots = [1, 2, 2]\n",
            file.display()
        );
        let plan = from_toml(&text).unwrap();
        let process = &plan.processes[1];
        let prepared =
            |place: usize| Prepared::new(process, place, 0, Path::new("/dev/null"), true);
        let missing = prepared(0).unwrap_err().message;
        assert!(missing.contains("cat needs it"), "{missing}");
        assert!(prepared(1).is_ok());
    }

    /// What runs already is in the plan of what comes to it, and is not started again.
    #[test]
    fn only_what_is_new_is_started() {
        let text = "[[process]]\nid = 1\ncommand = ['true']\ntasks = [1]\n[[process]]\nid = 2\n\
                    commands = [['true'], ['false']]\ntasks = [1, 1]\n[[cpu]]\ncpu = 0\n\
                    slots = [1, 2, 2]\n";
        let plan = from_toml(text).unwrap();
        let is_new = |process: &Process| process.id == 2;
        let launch = Launch::new(plan, is_new, Path::new("/dev/null"), true, String::new());
        let programs = launch.unwrap().programs;
        let programs = programs.iter().map(|one| &one.program);
        let programs: Vec<_> = programs.map(|p| (p.process, p.task, &*p.name)).collect();
        assert_eq!(programs, [(2, Some(0), "true"), (2, Some(1), "false")]);
    }

    #[test]
    fn what_cannot_be_executed_says_so() {
        // It may be executed, but is no program of any kind.
        let file = env::temp_dir().join(format!("pbs-node-test-no-program-{}", std::process::id()));
        std::fs::write(&file, [0; 8]).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        let exits = run(&format!("{{ command = ['{}'] }}", file.display()), true);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(exits[0].code, Some(NOT_EXECUTED));
        let error = exits[0].error.as_deref().unwrap();
        assert!(error.contains("Exec format error"), "{error}");
    }

    #[test]
    fn nothing_runs_when_the_node_is_gone() {
        let exits = run("{ command = ['true'] }, { command = ['true'] }", false);
        for exit in exits {
            assert_eq!(exit.code, Some(NOT_EXECUTED));
            assert!(!exit.success());
        }
    }
}
