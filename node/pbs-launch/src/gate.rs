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

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::child::Child;
use crate::child_report::{ChildReport, Step};
use crate::files::Named;
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
    /// Has a byte once they are to go on.
    commit: File,
}

impl Gate {
    /// `commit`: the file by which who comes next knows; `None`: nobody has to.
    pub fn new(commit: Option<&Path>) -> io::Result<Self> {
        let (wait, open) = pipe()?;
        let commit = match commit {
            Some(path) => {
                OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?
            }
            None => nameless()?,
        };
        Ok(Self { wait, open, commit })
    }

    /// Forks a program, which goes as far as the gate; `cgroup`: its control group. `signals` is the mask that the program is to have.
    #[allow(unsafe_code)]
    pub fn fork(
        &self,
        prepared: &Prepared,
        cgroup: Option<&File>,
        signals: &libc::sigset_t,
    ) -> io::Result<Child> {
        let (reports, say) = pipe()?;
        let mut say = File::from(say);
        let argv = pointers(&prepared.argv);
        let environment = pointers(&prepared.environment);
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
                let report = self.child(prepared, &argv, &environment, signals, &mut say);
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
        argv: &[*const libc::c_char],
        environment: &[*const libc::c_char],
        signals: &libc::sigset_t,
        say: &mut File,
    ) -> ChildReport {
        // SAFETY: closes a descriptor that the child does not use after this, and it ends
        // without dropping it; calls with valid arguments.
        unsafe {
            libc::close(self.open.as_raw_fd());
            // Rust's runtime ignores it, programs do not expect that.
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            libc::sigprocmask(libc::SIG_SETMASK, signals, std::ptr::null_mut());
            if prepared.output_to_error && libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO) < 0
            {
                return ChildReport::failed(Step::Output);
            }
        }
        if prepared.program.itself {
            // It has all CPUs, wherever who started it is.
            // SAFETY: a mask of all, as long as it says.
            unsafe { libc::sched_setaffinity(0, size_of_val(&EVERYWHERE), &EVERYWHERE) };
        }
        if let Err(report) = stand_in(&prepared.files) {
            return report;
        }
        if let Files::Of(..) = prepared.files {
            // Before waiting, too: otherwise the sockets of a killed service would stay open
            // in its waiting children.
            close_others([&self.wait.as_fd(), &self.commit.as_fd(), &say.as_fd()]);
        }
        if say.write_all(&ChildReport::new(Step::Ready, 0).bytes()).is_err() {
            return ChildReport::failed(Step::Ready);
        }
        if !self.wait() {
            return ChildReport::new(Step::Execute, libc::ECANCELED);
        }
        // SAFETY: calls with valid arguments; the vectors for execve end with null and
        // point to live C strings.
        unsafe {
            if let Some(input) = &prepared.late_input {
                let input = libc::open(input.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
                if input < 0 || libc::dup2(input, libc::STDIN_FILENO) < 0 {
                    return ChildReport::failed(Step::Input);
                }
            }
            let mut report = ChildReport::new(Step::Execute, libc::ENOENT);
            for path in &prepared.paths {
                libc::execve(path.as_ptr(), argv.as_ptr(), environment.as_ptr());
                let failed = ChildReport::failed(Step::Execute);
                match failed.errno {
                    libc::ENOENT | libc::ENOTDIR => {}
                    // One further on may be executed (execvp(3)).
                    libc::EACCES => report = failed,
                    _ => return failed,
                }
            }
            report
        }
    }

    /// Waits for the gate; whether to go on.
    #[allow(unsafe_code)]
    fn wait(&self) -> bool {
        let mut gate = libc::pollfd {
            fd: self.wait.as_raw_fd(),
            // Nothing but the hang-up that comes when the node closes it.
            events: 0,
            revents: 0,
        };
        // SAFETY: `gate` is valid for writing, `file` too, and all of it is written if the
        // call succeeds.
        unsafe {
            while libc::poll(&raw mut gate, 1, -1) < 1 {}
            let mut file = std::mem::MaybeUninit::<libc::stat>::uninit();
            libc::fstat(self.commit.as_raw_fd(), file.as_mut_ptr()) == 0
                && file.assume_init().st_size > 0
        }
    }

    /// Waits until those children stand at the gate, each on the CPU of its process. Until
    /// then they are on any: on that one they might hardly run.
    ///
    /// # Errors
    ///
    /// One of them can't, and why. The others stand there, or will.
    pub fn wait_ready(&self, children: &mut [Child]) -> io::Result<()> {
        for child in children {
            match ChildReport::read(&mut child.reports) {
                Some(ChildReport { step: Step::Ready, .. }) => child.pin(),
                Some(report) => {
                    let kind = io::Error::from_raw_os_error(report.errno).kind();
                    let text = format!("{}: {report}", child.program.name);
                    return Err(io::Error::new(kind, text));
                }
                None => {
                    let text = format!("{}: killed before it started", child.program.name);
                    return Err(io::Error::other(text));
                }
            }
        }
        Ok(())
    }

    /// Lets all children go, in one step.
    pub fn release(mut self) -> io::Result<()> {
        self.commit.write_all(&[1])
        // Closing the pipe, on return, opens the gate.
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

/// In the child: becomes who it is to be, and has its files stand in.
fn stand_in(files: &Files) -> Result<(), ChildReport> {
    match files {
        Files::Opened(files) => {
            for (file, fd) in files {
                stands_for(file.as_fd().as_raw_fd(), *fd)?;
            }
        }
        Files::Of(rights, files) => {
            rights.assume().map_err(ChildReport::failed)?;
            for file in files {
                stands_for(open(file)?, file.fd)?;
            }
        }
    }
    Ok(())
}

/// Closes all but the standard descriptors and those.
#[allow(unsafe_code)]
fn close_others(kept: [&BorrowedFd<'_>; 3]) {
    let mut kept = kept.map(|fd| fd.as_raw_fd() as libc::c_uint);
    kept.sort_unstable();
    let mut first: libc::c_uint = 3;
    for fd in kept.into_iter().chain([libc::c_uint::MAX]) {
        if first < fd {
            // SAFETY: the child does not use those descriptors any more, and ends without
            // dropping what owns them.
            unsafe { libc::syscall(libc::SYS_close_range, first, fd - 1, 0) };
        }
        first = first.max(fd.saturating_add(1));
    }
}

#[allow(unsafe_code)]
fn open(file: &Named) -> Result<RawFd, ChildReport> {
    let flags = file.flags | libc::O_CLOEXEC | libc::O_NOCTTY;
    // SAFETY: the path is a live C string.
    match unsafe { libc::open(file.path.as_ptr(), flags, 0o666) } {
        -1 => Err(ChildReport::failed(Step::of_file(file.fd))),
        opened => Ok(opened),
    }
}

#[allow(unsafe_code)]
fn stands_for(file: RawFd, fd: RawFd) -> Result<(), ChildReport> {
    // SAFETY: replaces a descriptor of the child, which uses it no more.
    match unsafe { libc::dup2(file, fd) } {
        -1 => Err(ChildReport::failed(Step::of_file(fd))),
        _ => Ok(()),
    }
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|string| string.as_ptr()).chain(std::iter::once(std::ptr::null())).collect()
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
    use crate::program::{empty_outputs, prepare_plan};
    use crate::{Limit, Owner};
    use pbs_plan::from_toml;
    use pbs_report::Exit;
    use std::env;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::PathBuf;
    use std::sync::{Mutex, PoisonError};

    /// A gate of another thread would be inherited by the children of this
    /// one, and stay open; a node has one gate at a time.
    static ONE_GATE: Mutex<()> = Mutex::new(());

    /// Forks the commands of a plan that consists of them, then opens the
    /// gate, or not, and waits for the ends.
    fn run(commands: &str, release: bool) -> Vec<Exit> {
        ends(commands, release, Child::exit)
    }

    /// Returns the results of `what` for each child after it has ended.
    fn ends<T>(commands: &str, release: bool, what: impl Fn(&mut Child) -> T) -> Vec<T> {
        let _one = ONE_GATE.lock().unwrap_or_else(PoisonError::into_inner);
        let tasks = vec!["1"; commands.matches("command = ").count()];
        let slots = tasks.join(", ");
        let plan = from_toml(&format!(
            "[[process]]\nid = 1\ncommands = [{commands}]\ntasks = [{slots}]\n\
             [[cpu]]\ncpu = 0\nslots = [{slots}]\n"
        ))
        .unwrap();
        let prepared = prepare_plan(&plan, Path::new("/dev/null"), true).unwrap();
        empty_outputs(&prepared).unwrap();
        // SAFETY: sigemptyset fills the set.
        #[allow(unsafe_code)]
        let signals = unsafe {
            let mut signals = std::mem::MaybeUninit::uninit();
            libc::sigemptyset(signals.as_mut_ptr());
            signals.assume_init()
        };
        let gate = Gate::new(None).unwrap();
        let mut children: Vec<_> =
            prepared.iter().map(|one| gate.fork(one, None, &signals).unwrap()).collect();
        gate.wait_ready(&mut children).unwrap();
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
                assert_eq!(child.ran_ns, 0);
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

    /// The CPU time of a program is known after its end, and does not include that of its children.
    #[test]
    fn the_time_of_a_program_is_its_own() {
        let ran_ns = ends(
            "{ command = ['seq', '3000000'], stdout = '/dev/null' }, \
             { command = ['sh', '-c', 'seq 3000000; true'], stdout = '/dev/null' }",
            true,
            |child| child.ran_ns,
        );
        assert!(ran_ns[1] > 0 && ran_ns[0] > 2 * ran_ns[1], "{ran_ns:?}");
    }

    #[test]
    fn output_goes_to_standard_error_unless_redirected() {
        let same = "command = ['test', '/proc/self/fd/1', '-ef', '/proc/self/fd/2']";
        let exits = run(&format!("{{ {same} }}, {{ {same}, stdout = '/dev/null' }}"), true);
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
        let prepared = |commands: std::ops::Range<usize>| {
            let mut process = process.clone();
            if let pbs_plan::Start::Commands(all) = &mut process.start {
                *all = all[commands].to_vec();
            }
            Prepared::of_process(&process, 0, Path::new("/dev/null"), true, None)
        };
        let missing = prepared(0..2).unwrap_err().message;
        assert!(missing.contains("cat needs it"), "{missing}");
        let owner = Owner::default();
        let others = Prepared::of_process(process, 0, Path::new("/dev/null"), true, Some(&owner));
        assert!(others.is_ok());
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

    fn no_signals() -> libc::sigset_t {
        let mut signals = std::mem::MaybeUninit::uninit();
        // SAFETY: sigemptyset fills the set.
        #[allow(unsafe_code)]
        unsafe {
            libc::sigemptyset(signals.as_mut_ptr());
            signals.assume_init()
        }
    }

    fn scratch(name: &str) -> PathBuf {
        let dir = env::temp_dir().join(format!("pbs-gate-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o777)).unwrap();
        dir
    }

    /// The programs of a process, as of that owner.
    fn owned(commands: &str, owner: &Owner) -> Vec<Prepared> {
        let count = commands.matches("command = ").count();
        let tasks = vec!["1"; count].join(", ");
        let text = format!(
            "[[process]]\nid = 1\ncommands = [{commands}]\ntasks = [{tasks}]\n\
             [[cpu]]\ncpu = 0\nslots = [{tasks}]\n"
        );
        let plan = from_toml(&text).unwrap();
        let process = &plan.processes[0];
        Prepared::of_process(process, 0, Path::new("/dev/null"), false, Some(owner)).unwrap()
    }

    /// Whoever died after the byte was written has let them go, and before it has not; who
    /// comes next knows which.
    #[test]
    #[allow(unsafe_code)]
    fn who_dies_has_let_them_go_or_not() {
        let _one = ONE_GATE.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = scratch("dies");
        for (releases, commit) in [(false, dir.join("not")), (true, dir.join("commit"))] {
            let made = dir.join(format!("made-{releases}"));
            let command = format!("{{ command = ['touch', '{}'] }}", made.display());
            let owner = Owner { directory: "/".into(), ..Owner::default() };
            let prepared = owned(&command, &owner);
            assert!(!was_released(&commit));
            // SAFETY: the child uses no lock that another thread may hold; it plays the
            // node, and is killed.
            let node = unsafe { libc::fork() };
            if node == 0 {
                let gate = Gate::new(Some(&commit)).unwrap();
                let child = gate.fork(&prepared[0], None, &no_signals()).unwrap();
                gate.wait_ready(&mut [child]).unwrap();
                if releases {
                    (&gate.commit).write_all(&[1]).unwrap();
                }
                // SAFETY: ends it at the worst moment.
                unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
            }
            // SAFETY: waits for that child.
            unsafe { libc::waitpid(node, std::ptr::null_mut(), 0) };
            assert_eq!(was_released(&commit), releases);
            let mut looks = 0;
            while made.exists() != releases && looks < 2000 {
                std::thread::sleep(std::time::Duration::from_millis(5));
                looks += 1;
            }
            if !releases {
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
            assert_eq!(made.exists(), releases);
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[allow(unsafe_code)]
    fn is_root() -> bool {
        // SAFETY: it only answers.
        unsafe { libc::geteuid() == 0 }
    }

    /// The owner who has nothing, who is in two groups.
    fn nobody(directory: &Path) -> Owner {
        Owner {
            uid: 65534,
            gid: 65533,
            groups: vec![65533, 4711],
            directory: directory.into(),
            umask: 0o027,
            environment: vec![
                ("PATH".into(), "/usr/bin:/bin".into()),
                ("COLOUR".into(), "blue".into()),
            ],
            limits: vec![Limit { resource: "nofile".into(), soft: 77, hard: 88 }],
            output: Some("out".into()),
        }
    }

    fn run_owned(commands: &str, owner: &Owner) -> Result<Vec<Exit>, String> {
        let _one = ONE_GATE.lock().unwrap_or_else(PoisonError::into_inner);
        let prepared = owned(commands, owner);
        let gate = Gate::new(None).unwrap();
        let children = prepared.iter().map(|one| gate.fork(one, None, &no_signals()));
        let mut children: Vec<_> = children.map(Result::unwrap).collect();
        let ready = gate.wait_ready(&mut children);
        gate.release().unwrap();
        for child in &mut children {
            assert!(child.wait(0));
        }
        ready.map_err(|error| error.to_string())?;
        Ok(children.iter_mut().map(Child::exit).collect())
    }

    /// While it waits it has nothing open of the service's.
    #[test]
    fn who_waits_holds_nothing() {
        let _one = ONE_GATE.lock().unwrap_or_else(PoisonError::into_inner);
        let (listens, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let owner =
            Owner { directory: "/".into(), output: Some("/dev/null".into()), ..Owner::default() };
        if !is_root() {
            return;
        }
        let prepared = owned("{ command = ['true'] }", &owner);
        let gate = Gate::new(None).unwrap();
        let mut children = [gate.fork(&prepared[0], None, &no_signals()).unwrap()];
        gate.wait_ready(&mut children).unwrap();
        let open = std::fs::read_dir(format!("/proc/{}/fd", children[0].pid)).unwrap();
        let open: Vec<_> = open
            .map(|fd| std::fs::read_link(fd.unwrap().path()).unwrap())
            .filter(|path| path.to_string_lossy().starts_with("socket"))
            .collect();
        assert_eq!(open, Vec::<PathBuf>::new());
        assert!(listens.peer_addr().is_ok());
        gate.release().unwrap();
        assert!(children[0].wait(0));
    }

    /// All that a program has is its owner's: user, groups, mask, directory, environment,
    /// limits, files; and nothing of the service is open in it.
    #[test]
    fn a_program_has_what_its_owner_has() {
        if !is_root() {
            return;
        }
        let dir = scratch("owner");
        let secret = std::fs::File::open("/etc/shadow").unwrap();
        // A descriptor that somebody forgot, and one that is not for it to wait with.
        // SAFETY: takes the flag from a descriptor of this test.
        #[allow(unsafe_code)]
        unsafe {
            libc::fcntl(secret.as_raw_fd(), libc::F_SETFD, 0);
        }
        let script = "id -u; id -g; id -G; umask; pwd; echo $COLOUR $HOME; ulimit -n; \
                      ulimit -Hn; echo to-error >&2; for f in /proc/self/fd/*; do \
                      readlink $f; done | grep -c shadow; touch made";
        let exits = run_owned(&format!("{{ command = ['sh', '-c', '{script}'] }}"), &nobody(&dir));
        let exits = exits.unwrap();
        assert!(exits[0].success(), "{exits:?}");
        let out = std::fs::read_to_string(dir.join("out")).unwrap();
        let dir_text = dir.display();
        assert_eq!(
            out,
            format!("65534\n65533\n65533 4711\n0027\n{dir_text}\nblue\n77\n88\nto-error\n0\n")
        );
        let made = dir.join("made").metadata().unwrap();
        let of = (made.uid(), made.gid(), made.mode() & 0o777);
        assert_eq!(of, (65534, 65533, 0o640));
        std::fs::remove_dir_all(&dir).unwrap();
    }

    /// A file that the owner may not open is not opened, and a file that he may not write keeps its
    /// content. A program that he may not execute is not executed, and a directory that he may not
    /// enter is not entered.
    #[test]
    fn nothing_is_done_with_other_rights_than_the_owners() {
        if !is_root() {
            return;
        }
        let dir = scratch("rights");
        let file = dir.join("of-root");
        std::fs::write(&file, "kept").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let owner = nobody(&dir);
        for (files, what) in [
            (format!("stdout = '{}'", file.display()), "standard output"),
            (format!("stderr = '{}'", file.display()), "standard error"),
            (format!("stdin = '{}'", file.display()), "standard input"),
        ] {
            let refused = run_owned(&format!("{{ command = ['true'], {files} }}"), &owner);
            let refused = refused.unwrap_err();
            let is_told = refused.contains(what) && refused.contains("Permission denied");
            assert!(is_told, "{refused}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept");
        }
        let inner = dir.join("inner");
        std::fs::create_dir(&inner).unwrap();
        std::fs::set_permissions(&inner, std::fs::Permissions::from_mode(0o700)).unwrap();
        let refused = run_owned("{ command = ['true'] }", &nobody(&inner)).unwrap_err();
        assert!(refused.contains("working directory: Permission"), "{refused}");
        // Its path is looked through, and the directory that is closed to it passed over.
        let program = dir.join("program");
        std::fs::write(&program, "#!/bin/sh\nexit 7\n").unwrap();
        std::fs::copy(&program, inner.join("program")).unwrap();
        for (mode, code, path) in [
            (0o755, Some(7), format!("{0}/inner:{0}", dir.display())),
            (0o700, Some(NOT_EXECUTED), format!("{0}/inner:{0}", dir.display())),
            (0o755, Some(NOT_EXECUTED), "/no-such-directory".into()),
        ] {
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(mode)).unwrap();
            let mut owner = nobody(&dir);
            owner.environment[0].1 = path;
            let exits = run_owned("{ command = ['program'] }", &owner).unwrap();
            assert_eq!(exits[0].code, code, "{exits:?}");
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
