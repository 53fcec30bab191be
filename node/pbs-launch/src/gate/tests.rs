// SPDX-License-Identifier: GPL-2.0
use super::*;
use crate::program::{empty_outputs, prepare_plan};
use crate::{Limit, Owner};
use pbs_plan::from_toml;
use pbs_report::Exit;
use std::env;
use std::ffi::CString;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time that a child of a test has to come to the gate.
const PATIENCE: Duration = Duration::from_secs(20);

/// A gate of another thread would be inherited by the children of this
/// one, and stay open; a node has one gate at a time.
static ONE_GATE: Mutex<()> = Mutex::new(());

/// Waits until all of them stand at the gate, and kills those that do not in time.
fn ready(children: &mut [Child]) -> std::io::Result<()> {
    let until = Some(Instant::now() + PATIENCE);
    let ready: Vec<_> = children.iter_mut().map(|child| child.wait_ready(until)).collect();
    for (child, _) in children.iter_mut().zip(&ready).filter(|(_, ready)| ready.is_err()) {
        child.signal(libc::SIGKILL);
    }
    ready.into_iter().collect()
}

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
    let signals = no_signals();
    let gate = Gate::new(None).unwrap();
    let mut children: Vec<_> =
        prepared.iter().map(|one| gate.fork(one, None, &signals).unwrap()).collect();
    ready(&mut children).unwrap();
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

/// The memory of the node is not charged to a program that waits.
#[test]
fn who_waits_has_none_of_the_memory() {
    let _one = ONE_GATE.lock().unwrap_or_else(PoisonError::into_inner);
    let large = vec![1u8; 64 << 20];
    // Areas of a small service.
    let small: Vec<_> = (0..16).map(|_| vec![1u8; 512 << 10]).collect();
    let plan = "[[process]]\nid = 1\ncommand = ['test', 'some', '=', 'some']\ntasks = [1]\n\
                [[cpu]]\ncpu = 0\nslots = [1]\n";
    let prepared = prepare_plan(&from_toml(plan).unwrap(), Path::new("/dev/null"), true).unwrap();
    let gate = Gate::new(None).unwrap();
    let mut children = [gate.fork(&prepared[0], None, &no_signals()).unwrap()];
    ready(&mut children).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", children[0].pid)).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let used_kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(used_kib < 4 << 10, "{line}");
    assert!(large.iter().chain(small.iter().flatten()).all(|byte| *byte == 1));
    gate.release().unwrap();
    assert!(children[0].wait(0));
    assert_eq!(children[0].exit().code, Some(0));
}

/// A program that is let go is not executed before its time.
#[test]
fn a_program_waits_for_its_start() {
    let now_ns = || pbs_uapi::clock::monotonic_ns();
    let _one = ONE_GATE.lock().unwrap_or_else(PoisonError::into_inner);
    let plan =
        "[[process]]\nid = 1\ncommand = ['true']\ntasks = [1]\n[[cpu]]\ncpu = 0\nslots = [1]\n";
    let prepared = prepare_plan(&from_toml(plan).unwrap(), Path::new("/dev/null"), true).unwrap();
    let start_ns = now_ns() + 1_000_000_000;
    let gate = Gate::new(None).unwrap();
    let prepared = prepared.into_iter().map(|one| one.not_before(start_ns));
    let mut children: Vec<_> =
        prepared.map(|one| gate.fork(&one, None, &no_signals()).unwrap()).collect();
    ready(&mut children).unwrap();
    gate.release().unwrap();
    assert!(children[0].wait(0));
    assert!(now_ns() >= start_ns);
    assert_eq!(children[0].exit().code, Some(0));
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
        Prepared::of_process(&process, 0, Path::new("/dev/null"), true, None, &[])
    };
    let missing = prepared(0..2).unwrap_err().message;
    assert!(missing.contains("cat needs it"), "{missing}");
    let owner = Owner::new(0, 0);
    let others = Prepared::of_process(process, 0, Path::new("/dev/null"), true, Some(&owner), &[]);
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
    Prepared::of_process(process, 0, Path::new("/dev/null"), false, Some(owner), &[]).unwrap()
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
        let owner = Owner::new(0, 0);
        let prepared = owned(&command, &owner);
        assert!(!was_released(&commit));
        // SAFETY: the child uses no lock that another thread may hold; it plays the
        // node, and is killed.
        let node = unsafe { libc::fork() };
        if node == 0 {
            let gate = Gate::new(Some(&commit)).unwrap();
            let child = gate.fork(&prepared[0], None, &no_signals()).unwrap();
            ready(&mut [child]).unwrap();
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

/// Reason for which a test is skipped that gives programs to other users.
const NEEDS_ROOT: &str = "it needs root, to run programs as other users";

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
    let ready = ready(&mut children);
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
    let owner = Owner { output: Some("/dev/null".into()), ..Owner::new(0, 0) };
    if !is_root() {
        pbs_text::skipped(NEEDS_ROOT);
        return;
    }
    let prepared = owned("{ command = ['true'] }", &owner);
    let gate = Gate::new(None).unwrap();
    let mut children = [gate.fork(&prepared[0], None, &no_signals()).unwrap()];
    ready(&mut children).unwrap();
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
        pbs_text::skipped(NEEDS_ROOT);
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
        pbs_text::skipped(NEEDS_ROOT);
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
        let what = format!("{what}, {}: Permission denied", file.display());
        let is_told = refused.contains(&what);
        assert!(is_told, "{refused}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept");
    }
    let inner = dir.join("inner");
    std::fs::create_dir(&inner).unwrap();
    std::fs::set_permissions(&inner, std::fs::Permissions::from_mode(0o700)).unwrap();
    let refused = run_owned("{ command = ['true'] }", &nobody(&inner)).unwrap_err();
    let what = format!("working directory, {}: Permission", inner.display());
    assert!(refused.contains(&what), "{refused}");
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

#[allow(unsafe_code)]
fn make_fifo(path: &Path) {
    let name = CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: the name is a C string.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o666) }, 0);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666)).unwrap();
}

/// Opening a FIFO without a reader would last for ever.
#[test]
fn a_fifo_without_a_reader_is_refused_at_once() {
    if !is_root() {
        pbs_text::skipped(NEEDS_ROOT);
        return;
    }
    let dir = scratch("fifo-out");
    make_fifo(&dir.join("fifo"));
    for (file, what) in [("stdout", "standard output"), ("stderr", "standard error")] {
        let refused =
            run_owned(&format!("{{ command = ['true'], {file} = 'fifo' }}"), &nobody(&dir));
        let refused = refused.unwrap_err();
        let is_told = refused.contains(what) && refused.contains("No such device or address");
        assert!(is_told, "{refused}");
    }
    // With a reader it is written to, and writing waits as it should.
    let path = dir.join("fifo");
    let reads = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let script = "seq 30000";
    let reader = std::thread::spawn(move || {
        let mut line = String::new();
        let mut reads = std::io::BufReader::new(reads);
        while line != "30000\n" {
            line.clear();
            std::io::BufRead::read_line(&mut reads, &mut line).unwrap();
        }
    });
    let command = format!("{{ command = ['sh', '-c', '{script}'], stdout = 'fifo' }}");
    let exits = run_owned(&command, &nobody(&dir)).unwrap();
    assert!(exits[0].success(), "{exits:?}");
    reader.join().unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
}

/// Only the program itself waits for whoever writes to its standard input.
#[test]
fn a_fifo_without_a_writer_delays_the_program_alone() {
    if !is_root() {
        pbs_text::skipped(NEEDS_ROOT);
        return;
    }
    let dir = scratch("fifo-in");
    make_fifo(&dir.join("fifo"));
    let path = dir.join("fifo");
    let writer = std::thread::spawn(move || {
        // Until somebody has it open for reading.
        let mut writes = OpenOptions::new().write(true).open(&path).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        writes.write_all(b"late\n").unwrap();
    });
    let exits = run_owned("{ command = ['cat'], stdin = 'fifo' }", &nobody(&dir)).unwrap();
    writer.join().unwrap();
    assert!(exits[0].success(), "{exits:?}");
    assert_eq!(std::fs::read_to_string(dir.join("out")).unwrap(), "late\n");
    std::fs::remove_dir_all(&dir).unwrap();
}

/// A child that is stopped before it has come to the gate is reported after its deadline.
#[test]
#[allow(unsafe_code)]
fn a_child_that_is_never_ready_is_given_up() {
    let _one = ONE_GATE.lock().unwrap_or_else(PoisonError::into_inner);
    let (reports, _open) = pipe().unwrap();
    unblock(&reports).unwrap();
    let prepared = owned("{ command = ['true'] }", &Owner::new(0, 0));
    // SAFETY: the child only waits to be killed.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        loop {
            // SAFETY: waits for a signal.
            unsafe { libc::pause() };
        }
    }
    let mut child = Child::new(&prepared[0].program, pid, reports.into());
    let until = Some(Instant::now() + Duration::from_millis(30));
    let error = child.wait_ready(until).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert!(error.to_string().contains("true: it was not ready in time"), "{error}");
    child.signal(libc::SIGKILL);
    assert!(child.wait(0));
    // Nobody waits for the report of one that has ended, either.
    assert_eq!((child.exit().signal, child.exit().error), (Some(libc::SIGKILL), None));
}

/// Result of `what` in a process of its own, with signals and keys that nobody else has.
#[allow(unsafe_code)]
fn in_another_process(what: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child holds the lock of the gates, and ends without unwinding.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let is_well = what();
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(i32::from(!is_well)) };
    }
    let mut status = 0;
    // SAFETY: `status` is valid for writing.
    unsafe { libc::waitpid(pid, &mut status, 0) };
    status == 0
}

/// Neither the session keyring of the service, nor the signals that it ignores or blocks, nor its
/// raised limit of open files are those of a program.
#[test]
#[allow(unsafe_code)]
fn nothing_of_the_service_is_left_to_a_program() {
    if !is_root() || !Path::new("/proc/keys").exists() {
        pbs_text::skipped("it needs root, and a kernel with keyrings");
        return;
    }
    let _one = ONE_GATE.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = scratch("left");
    let script = "grep -c of-the-service /proc/keys; grep -E '^Sig(Blk|Ign):' /proc/self/status; \
                  ulimit -Sn";
    let owner = Owner { limits: Vec::new(), ..nobody(&dir) };
    // SAFETY: calls of a process of its own, with valid arguments.
    let has_run = in_another_process(|| unsafe {
        libc::syscall(libc::SYS_keyctl, 1, std::ptr::null::<u8>());
        let (kind, name) = (c"user".as_ptr(), c"of-the-service".as_ptr());
        // -3: the session keyring.
        let key = libc::syscall(libc::SYS_add_key, kind, name, c"secret".as_ptr(), 6, -3);
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGPIPE, libc::SIGRTMIN()] {
            libc::signal(signal, libc::SIG_IGN);
        }
        let raised = libc::rlimit { rlim_cur: 4096, rlim_max: 4096 };
        libc::setrlimit(libc::RLIMIT_NOFILE, &raised);
        let mut blocked = no_signals();
        libc::sigaddset(&mut blocked, libc::SIGUSR1);
        libc::sigprocmask(libc::SIG_BLOCK, &blocked, std::ptr::null_mut());
        let prepared = owned(&format!("{{ command = ['sh', '-c', \"{script}\"] }}"), &owner);
        let gate = Gate::new(None).unwrap();
        let mut children = [gate.fork(&prepared[0], None, &blocked).unwrap()];
        ready(&mut children).unwrap();
        gate.release().unwrap();
        key > 0 && children[0].wait(0)
    });
    assert!(has_run);
    let out = std::fs::read_to_string(dir.join("out")).unwrap();
    let zero = "0000000000000000";
    assert_eq!(out, format!("0\nSigBlk:\t{zero}\nSigIgn:\t{zero}\n1024\n"));
    std::fs::remove_dir_all(&dir).unwrap();
}

/// A stored owner is read only as a whole: missing data are no user, and least of all root.
#[test]
fn an_owner_with_missing_data_is_unreadable() {
    let whole = r#"{"uid":1000,"gid":1000,"groups":[],"directory":"/","umask":63,
                    "environment":[],"limits":[],"output":null}"#;
    let read = |text: &str| serde_json::from_str::<Owner>(text);
    assert_eq!(read(whole).unwrap(), Owner::new(1000, 1000));
    for missing in ["\"uid\":1000,", "\"gid\":1000,", "\"groups\":[],", "\"umask\":63,"] {
        assert!(read(&whole.replace(missing, "")).is_err(), "{missing}");
    }
    assert!(read("{}").is_err());
}

/// A descriptor is open for a program until it is executed, and no longer; how one that could not
/// be executed failed is known all the same.
#[test]
fn a_program_that_runs_needs_no_descriptor() {
    if !is_root() {
        pbs_text::skipped(NEEDS_ROOT);
        return;
    }
    let _one = ONE_GATE.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = scratch("descriptor");
    let owner = nobody(&dir);
    let commands = "{ command = ['sleep', '1000'] }, { command = ['/does/not/exist'] }";
    let prepared = owned(commands, &owner);
    let gate = Gate::new(None).unwrap();
    let mut children: Vec<_> =
        prepared.iter().map(|one| gate.fork(one, None, &no_signals()).unwrap()).collect();
    ready(&mut children).unwrap();
    for child in &mut children {
        child.close_descriptor();
        assert!(child.has_descriptor(), "{} waits at the gate", child.program.name);
    }
    gate.release().unwrap();
    let until = Instant::now() + PATIENCE;
    for child in &mut children {
        while child.has_descriptor() {
            assert!(Instant::now() < until, "{} has its descriptor", child.program.name);
            std::thread::sleep(Duration::from_millis(1));
            child.close_descriptor();
        }
    }
    assert!(!children[0].has_ended());
    children[0].signal(libc::SIGKILL);
    let exits = children.iter_mut().map(|child| {
        assert!(child.wait(0));
        child.exit()
    });
    let exits: Vec<_> = exits.collect();
    assert_eq!((exits[0].signal, &exits[0].error), (Some(libc::SIGKILL), &None));
    let error = exits[1].error.as_deref().unwrap_or_default();
    assert!(error.contains("No such file"), "{exits:?}");
    std::fs::remove_dir_all(&dir).unwrap();
}
