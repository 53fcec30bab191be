// SPDX-License-Identifier: GPL-2.0
//! Steps where nobody plans.

mod common;

use std::fs;

use common::{directory, job, run, Notes};
use pbs_slurm_step::{End, Error};

const NO_DEVICE: &str = "/nowhere/pbs_plan";
/// One that is there, as the class's would be.
const DEVICE: &str = "/dev/null";

/// A process of that number that has the shell say those words.
fn process(id: u32, shell: &str, after: &str) -> String {
    format!(
        "[[process]]\nid = {id}\nmemory_bytes = 4096\ncommand = ['sh', '-c', '''{shell}''']\n\
         tasks = [{{ name = \"t{id}\", insns = 10{after} }}]\n"
    )
}

/// A parent that forks another after its first program and joins it before its last.
fn forks() -> String {
    "[[process]]\nid = 1\nmemory_bytes = 4096\n\
     commands = [['sh', '-c', 'echo first >> order'], ['sh', '-c', 'echo last >> order']]\n\
     tasks = [{ insns = 10 }, { action = \"fork\", child = 2 }, \
     { action = \"join\", child = 2 }, { insns = 10 }]\n\
     [[process]]\nid = 2\nmemory_bytes = 4096\ncommand = ['sh', '-c', 'echo child >> order']\n\
     tasks = [10]\n"
        .to_string()
}

/// The missing plan is reported once, and all programs run in the order of the net.
#[test]
fn without_the_class_programs_run_in_their_order() {
    let directory = directory("order");
    let mut told = Notes::default();
    let end = run(&directory, NO_DEVICE, &job(&forks()), &mut told);
    assert_eq!(end.unwrap(), End::Well);
    let order = fs::read_to_string(directory.join("order")).unwrap();
    assert_eq!(order, "first\nchild\nlast\n");
    assert_eq!(told.told.len(), 1, "{:?}", told.told);
    assert!(told.told[0].contains(NO_DEVICE), "{:?}", told.told);
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn without_a_service_programs_run_all_the_same() {
    let directory = directory("nobody");
    let mut told = Notes::default();
    let job = job(&process(1, "echo $SCHED_PBS_JOB_NAME > name", ""));
    assert_eq!(run(&directory, DEVICE, &job, &mut told).unwrap(), End::Well);
    assert!(told.told[0].contains("pbs.sock"), "{:?}", told.told);
    let name = fs::read_to_string(directory.join("name")).unwrap();
    assert_eq!(name, "j\n");
    fs::remove_dir_all(&directory).unwrap();
}

/// A program reads what another one writes, from a file opened only when the reader begins. One
/// file that two programs write to has the output of both.
#[test]
fn files_are_those_of_the_job() {
    let directory = directory("files");
    fs::write(directory.join("both"), "of another run\n").unwrap();
    let text = "[[process]]\nid = 1\nmemory_bytes = 4096\n\
                commands = [{ command = ['echo', 'made'], stdout = 'both' }, \
                { command = ['cat'], stdin = 'both', stdout = 'copy' }, \
                { command = ['echo', 'more'], stdout = 'both' }]\n\
                tasks = [10, 10, 10]\n";
    let end = run(&directory, NO_DEVICE, &job(text), &mut Notes::default());
    assert_eq!(end.unwrap(), End::Well);
    let read = |file| fs::read_to_string(directory.join(file)).unwrap();
    assert_eq!((read("copy").as_str(), read("both").as_str()), ("made\n", "made\nmore\n"));
    fs::remove_dir_all(&directory).unwrap();
}

/// The status is that of the first that did not succeed; the others run all the same, as they
/// do with a plan.
#[test]
fn the_status_of_programs_is_that_of_the_step() {
    let directory = directory("status");
    let text =
        process(1, "exit 3", "") + &process(2, "touch ran; kill -9 $$", ", after = [\"t1\"]");
    let end = run(&directory, NO_DEVICE, &after_fork(&text), &mut Notes::default());
    assert_eq!(end.unwrap(), End::Program(3));
    assert!(directory.join("ran").exists());
    let killed = job(&process(1, "kill -9 $$", ""));
    let end = run(&directory, NO_DEVICE, &killed, &mut Notes::default());
    assert_eq!(end.unwrap(), End::Program(137));
    let mut told = Notes::default();
    let missing =
        job("[[process]]\nid = 1\nmemory_bytes = 4096\ncommand = ['/nowhere/x']\ntasks = [10]\n");
    let end = run(&directory, NO_DEVICE, &missing, &mut told);
    assert_eq!(end.unwrap(), End::Program(127));
    assert!(told.told[1].contains("/nowhere/x"), "{:?}", told.told);
    fs::remove_dir_all(&directory).unwrap();
}

/// A job of those processes, which a third one forks.
fn after_fork(processes: &str) -> pbs_job::Job {
    let text = format!(
        "[[process]]\nid = 9\nmemory_bytes = 4096\n\
         tasks = [{{ action = \"fork\", child = 1 }}, {{ action = \"fork\", child = 2 }}, \
         {{ action = \"join\", child = 1 }}, {{ action = \"join\", child = 2 }}]\n{processes}"
    );
    job(&text)
}

/// Running programs are signalled to end, and killed if they do not; waiting ones never begin.
#[test]
fn an_ending_step_ends_its_programs() {
    let directory = directory("stopped");
    let deaf = "trap '' TERM; touch began; while :; do sleep 1; done";
    let text = format!(
        "[[process]]\nid = 1\nmemory_bytes = 4096\n\
         commands = [['sh', '-c', '''{deaf}'''], ['touch', 'never']]\ntasks = [10, 10]\n"
    );
    let mut told = Notes { stop: Some(directory.join("began")), ..Notes::default() };
    let end = run(&directory, NO_DEVICE, &job(&text), &mut told);
    assert_eq!(end.unwrap(), End::Cancelled);
    assert!(!directory.join("never").exists());
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn unusable_jobs_are_refused() {
    let directory = directory("invalid");
    let none = job("[[process]]\nid = 7\nmemory_bytes = 4096\ntasks = [10]\n");
    let refused = run(&directory, NO_DEVICE, &none, &mut Notes::default());
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    let text = "[[process]]\nid = 1\nmemory_bytes = 4096\ncommand = ['touch', 'never']\n\
                stdout = 'no/such/file'\ntasks = [10]\n";
    let refused = run(&directory, NO_DEVICE, &job(text), &mut Notes::default());
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    assert!(!directory.join("never").exists());
    fs::remove_dir_all(&directory).unwrap();
}
