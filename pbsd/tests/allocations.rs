// SPDX-License-Identifier: GPL-2.0
//! Allocations of another resource manager: who may say what, whose jobs they are for, and
//! that a service that is started anew has them.

mod common;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{ask, connect, serve_allocations};
use pbs_job::{job_from_toml, Job};
use pbs_node_api::{Client, Failure, Refusal, Submission};
use pbs_socket::Caller;
use pbsd::allocations::{Allocations, Step};
use pbsd::topology::Topology;

/// Users who are nobody in particular.
const ANN: u32 = 1000;
const BOB: u32 = 1001;

fn directory(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("pbsd-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory
}

fn user(uid: u32) -> Caller {
    Caller {
        uid,
        gid: uid,
        groups: Vec::new(),
        is_operator: uid == 0,
        pid: std::process::id(),
        account: uid,
    }
}

fn root() -> Caller {
    user(0)
}

fn step(job: u32, step: u32, uid: u32, cores: &[u32]) -> Step {
    Step { job, step, uid, cores: cores.to_vec(), ..Step::default() }
}

/// A machine of four cores with two threads each.
fn topology() -> Topology {
    Topology::of_cores((0..4).map(|core| [core, core + 4].into()).collect())
}

fn opened(directory: &Path) -> Allocations {
    Allocations::open(&directory.join("allocations"), topology())
}

fn job(memory_bytes: u64) -> Job {
    let text = format!(
        "name = \"j\"\ndeadline_ns = 9_000_000_000\n[[process]]\nid = 1\n\
         memory_bytes = {memory_bytes}\ncommand = [\"true\"]\ntasks = [1_000_000]\n"
    );
    job_from_toml(&text).unwrap()
}

#[track_caller]
fn not_permitted<T: std::fmt::Debug>(answer: Result<T, Refusal>) {
    assert!(matches!(answer, Err(Refusal::NotPermitted { .. })), "{answer:?}");
}

#[track_caller]
fn failed<T: std::fmt::Debug>(answer: Result<T, Refusal>, with: &str) {
    assert!(matches!(&answer, Err(Refusal::Failed { why }) if why.contains(with)), "{answer:?}");
}

#[test]
fn only_root_allocates() {
    let directory = directory("root");
    let mut all = opened(&directory);
    let operator = Caller { is_operator: true, ..user(ANN) };
    not_permitted(all.allocate(&operator, &step(7, 0, ANN, &[0])));
    not_permitted(all.deallocate(&operator, 7, 0));
    assert!(all.is_empty());
    let cpus = all.allocate(&root(), &step(7, 0, ANN, &[0, 2])).unwrap();
    assert_eq!(cpus, [0, 2, 4, 6]);
    not_permitted(all.deallocate(&operator, 7, 0));
    assert!(all.has(7));
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn an_allocation_is_for_its_user() {
    let directory = directory("user");
    let mut all = opened(&directory);
    all.allocate(&root(), &step(7, 0, ANN, &[0])).unwrap();
    all.may_have(&user(ANN), 7, &job(4096)).unwrap();
    not_permitted(all.may_have(&user(BOB), 7, &job(4096)));
    // Nor for root, whose job it is not.
    not_permitted(all.may_have(&root(), 7, &job(4096)));
    not_permitted(all.may_have(&user(ANN), 8, &job(4096)));
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_job_has_no_more_memory_than_its_allocation() {
    let directory = directory("memory");
    let mut all = opened(&directory);
    let with_memory = Step { memory_bytes: Some(1 << 20), ..step(7, 0, ANN, &[0]) };
    all.allocate(&root(), &with_memory).unwrap();
    all.may_have(&user(ANN), 7, &job(1 << 20)).unwrap();
    let declined = all.may_have(&user(ANN), 7, &job((1 << 20) + 4096));
    assert!(matches!(declined, Err(Refusal::Declined { .. })), "{declined:?}");
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn impossible_allocations_are_refused() {
    let directory = directory("refused");
    let mut all = opened(&directory);
    failed(all.allocate(&root(), &step(7, 0, ANN, &[4])), "no core 4");
    failed(all.allocate(&root(), &step(7, 0, ANN, &[])), "no core on this node");
    all.allocate(&root(), &step(7, 0, ANN, &[0])).unwrap();
    failed(all.allocate(&root(), &step(7, 1, BOB, &[0])), "has not ended");
    failed(all.allocate(&root(), &step(7, 1, ANN, &[0, 1])), "has not ended");
    // What was refused has changed nothing.
    assert!(all.deallocate(&root(), 7, 0).unwrap());
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn steps_share_the_cores_of_their_job_and_the_last_one_frees_them() {
    let directory = directory("steps");
    let mut all = opened(&directory);
    let until = Step { until_unix_s: Some(5), ..step(7, 0, ANN, &[1]) };
    all.allocate(&root(), &until).unwrap();
    // Also said twice.
    for _ in 0..2 {
        let cpus = all.allocate(&root(), &step(7, 1, ANN, &[1])).unwrap();
        assert_eq!(cpus, [1, 5]);
    }
    let of_node = all.of_node();
    assert_eq!(of_node[&7].until_unix_ns, Some(5_000_000_000));
    assert!(!all.deallocate(&root(), 7, 0).unwrap());
    assert!(!all.deallocate(&root(), 7, 0).unwrap());
    all.may_have(&user(ANN), 7, &job(4096)).unwrap();
    assert!(all.deallocate(&root(), 7, 1).unwrap());
    assert!(!all.deallocate(&root(), 7, 1).unwrap());
    assert!(all.is_empty() && all.of_node().is_empty());
    fs::remove_dir_all(&directory).unwrap();
}

/// Two jobs of Slurm's on one node never have a CPU in common, whatever is said.
#[test]
fn two_jobs_have_distinct_cores() {
    let directory = directory("distinct");
    let mut all = opened(&directory);
    all.allocate(&root(), &step(7, 0, ANN, &[0, 1])).unwrap();
    let refused = all.allocate(&root(), &step(8, 0, BOB, &[1, 2]));
    failed(refused, "allocated to 7");
    not_permitted(all.may_have(&user(BOB), 8, &job(4096)));
    all.allocate(&root(), &step(8, 0, BOB, &[2, 3])).unwrap();
    let of_node = all.of_node();
    assert!(of_node[&7].cpus.is_disjoint(&of_node[&8].cpus));
    // Once it is free another has it.
    all.deallocate(&root(), 7, 0).unwrap();
    all.allocate(&root(), &step(9, 0, ANN, &[1])).unwrap();
    fs::remove_dir_all(&directory).unwrap();
}

/// A job that is cancelled before it was known: its end is told first, or who would tell it
/// has gone. Nothing of it remains.
#[test]
fn a_job_that_ends_before_its_registration_leaves_nothing() {
    let directory = directory("early");
    let mut all = opened(&directory);
    assert!(!all.deallocate(&root(), 7, 0).unwrap());
    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
    let caller = Caller { pid: child.id(), ..root() };
    child.kill().unwrap();
    child.wait().unwrap();
    // Its message has waited, and is read only now.
    failed(all.allocate(&caller, &step(7, 0, ANN, &[0])), "has ended");
    assert!(all.is_empty());
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn nothing_is_submitted_after_the_end() {
    let directory = directory("late");
    let mut all = opened(&directory);
    all.allocate(&root(), &step(7, 0, ANN, &[0])).unwrap();
    all.deallocate(&root(), 7, 0).unwrap();
    not_permitted(all.may_have(&user(ANN), 7, &job(4096)));
    fs::remove_dir_all(&directory).unwrap();
}

/// One who is killed can't say that his step is over.
#[test]
fn a_step_ends_with_the_process_that_registered_it() {
    let directory = directory("killed");
    let mut all = opened(&directory);
    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
    let caller = Caller { pid: child.id(), ..root() };
    all.allocate(&caller, &step(7, 0, ANN, &[0])).unwrap();
    all.allocate(&caller, &step(8, 0, ANN, &[1])).unwrap();
    all.allocate(&root(), &step(8, 1, ANN, &[1])).unwrap();
    assert_eq!(all.look(), Vec::<u32>::new());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(all.look(), [7]);
    assert!(!all.has(7) && all.has(8));
    assert_eq!(all.look(), Vec::<u32>::new());
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_restart_keeps_allocations() {
    let directory = directory("restart");
    let mut before = opened(&directory);
    let whole =
        Step { memory_bytes: Some(1 << 20), until_unix_s: Some(5), ..step(7, 0, ANN, &[0]) };
    before.allocate(&root(), &whole).unwrap();
    before.allocate(&root(), &step(7, 1, ANN, &[0])).unwrap();
    before.allocate(&root(), &step(8, 0, BOB, &[1])).unwrap();
    before.deallocate(&root(), 8, 0).unwrap();
    let of_node = before.of_node();
    drop(before);

    let mut after = opened(&directory);
    assert_eq!(after.look(), Vec::<u32>::new());
    assert_eq!(after.of_node(), of_node);
    after.may_have(&user(ANN), 7, &job(1 << 20)).unwrap();
    assert!(after.may_have(&user(ANN), 7, &job(1 << 21)).is_err());
    assert!(!after.deallocate(&root(), 7, 1).unwrap());
    assert!(after.deallocate(&root(), 7, 0).unwrap());
    assert!(opened(&directory).is_empty());
    fs::remove_dir_all(&directory).unwrap();
}

/// A file that can't be read, and one that can't be written, are no reason not to serve.
#[test]
fn the_service_continues_without_its_file_of_allocations() {
    let directory = directory("nofile");
    fs::write(directory.join("allocations"), "{\"7\":").unwrap();
    let mut all = opened(&directory);
    assert!(all.is_empty());
    fs::remove_dir_all(&directory).unwrap();
    all.allocate(&root(), &step(7, 0, ANN, &[0])).unwrap();
    assert!(all.has(7));
}

/// Over the socket: who asks is what the kernel says, and the answers are those of the
/// interface.
#[test]
fn allocations_arrive_over_the_socket() {
    // SAFETY: it only answers.
    #[allow(unsafe_code)]
    let uid = unsafe { libc::geteuid() };
    let directory = directory("socket-file");
    let served = serve_allocations("allocations", opened(&directory));
    let mut client = Client::connect(&served.path).unwrap();
    let answer = client.allocate((7, 0), uid, &[3], None, None);
    if uid != 0 {
        let refused = matches!(answer, Err(Failure::Refused(Refusal::NotPermitted { .. })));
        assert!(refused, "{answer:?}");
        pbs_text::skipped("the answers to an operator need root");
        return;
    }
    assert_eq!(answer.unwrap(), [3, 7]);
    let submission =
        |allocation| Submission { allocation: Some(allocation), ..Submission::default() };
    client.submit(&[submission(7)]).unwrap();
    let refused = client.submit(&[submission(8)]).unwrap_err().to_string();
    assert!(refused.contains("allocation 8"), "{refused}");
    let said = asked_by_another(
        &served.path,
        r#"{"method":"org.sched-pbs.Node.Deallocate","parameters":{"job":7,"step":0}}"#,
    );
    assert!(said.contains("NotPermitted"), "{said}");
    client.submit(&[submission(7)]).unwrap();
    assert_eq!(client.deallocate(7, 0).unwrap(), Vec::<u64>::new());
    assert!(client.submit(&[submission(7)]).is_err());
    fs::remove_dir_all(&directory).unwrap();
}

/// The answer to a call of another user, who is nobody in particular.
fn asked_by_another(path: &Path, call: &str) -> String {
    let (mut own, theirs) = UnixStream::pair().unwrap();
    // SAFETY: the child only makes calls with what is there, and ends without what this
    // process does at its end.
    #[allow(unsafe_code)]
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: gives up root in this process alone, which has one thread.
        #[allow(unsafe_code)]
        let became = unsafe { libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534) } == 0;
        if became {
            let mut other = connect(path);
            let answer = ask(&mut other, call);
            let _ = (&theirs).write_all(answer.as_bytes());
        }
        // SAFETY: ends the child at once.
        #[allow(unsafe_code)]
        unsafe {
            libc::_exit(0)
        };
    }
    drop(theirs);
    let mut said = String::new();
    own.read_to_string(&mut said).unwrap();
    let mut status = 0;
    // SAFETY: waits for that child; `status` is valid for writing.
    #[allow(unsafe_code)]
    unsafe {
        libc::waitpid(child, &mut status, 0)
    };
    said
}
