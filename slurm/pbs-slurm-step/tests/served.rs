// SPDX-License-Identifier: GPL-2.0
//! Steps with the service of the node, of which all is real but the node: its socket, and its
//! interface.

mod common;

use std::fs;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use common::{directory, job, run, Notes};
use pbs_launch::signals::wait_for;
use pbs_node_api::{Job, Program, Refusal, Shown, Status, Submission};
use pbs_slurm_step::{End, Error};
use pbsd::inbox::{inbox, Inbox, Request};
use pbsd::session;
use tokio::sync::broadcast;

/// The device is there, and is not looked at further.
const DEVICE: &str = "/dev/null";

const TOUCH: &str = "[[process]]\nid = 1\nmemory_bytes = 4096\n\
                     command = ['touch', 'ran']\ntasks = [10]\n";

/// Behaviour of the node of a test.
#[derive(Clone)]
struct Played {
    /// Refusal of submissions.
    refuses: Option<Refusal>,
    /// Number of looks after which a job is over.
    looks: u32,
    over: Shown,
}

/// Calls that the service received.
#[derive(Default)]
struct ServiceCalls {
    submitted: Vec<Submission>,
    cancelled: bool,
}

/// Serves in the directory.
fn serve(directory: &Path, played: Played) -> Arc<Mutex<ServiceCalls>> {
    let listener = pbs_socket::listen(&directory.join("pbs.sock")).unwrap();
    let (sender, inbox) = inbox().unwrap();
    let (notices, _) = broadcast::channel(8);
    let limits = pbs_socket::ConnectionLimits::DEFAULT;
    thread::spawn(move || session::serve(listener, limits, &sender, &notices));
    let asked: Arc<Mutex<ServiceCalls>> = Arc::default();
    let of_thread = Arc::clone(&asked);
    thread::spawn(move || answer(inbox, &played, &of_thread));
    asked
}

fn answer(mut inbox: Inbox, played: &Played, asked: &Mutex<ServiceCalls>) {
    let mut looks = 0;
    loop {
        wait_for([inbox.as_fd()], -1).unwrap();
        inbox.begin();
        while let Some((_, request)) = inbox.take() {
            let mut asked = asked.lock().unwrap();
            match request {
                Request::Status(answer) => drop(answer.send(Ok(Status::default()))),
                Request::Submit(jobs, answer) => {
                    let sent = jobs.iter().filter_map(|job| job.sent().cloned());
                    asked.submitted.extend(sent);
                    let job = Job { number: 5, ..Job::default() };
                    let answered = played.refuses.clone().map_or(Ok(vec![job]), Err);
                    let _ = answer.send(answered);
                }
                Request::Show(key, answer) => {
                    assert_eq!(key.number, Some(5));
                    looks += 1;
                    let mut shown = Shown::default();
                    shown.job.state = "running".into();
                    if asked.cancelled {
                        shown.job.state = "over".into();
                        shown.job.outcome = Some("cancelled".into());
                    } else if looks > played.looks {
                        shown = played.over.clone();
                        shown.job.state = "over".into();
                    }
                    let _ = answer.send(Ok(shown));
                }
                Request::Cancel(_, answer) => {
                    asked.cancelled = true;
                    let _ = answer.send(Ok(Shown::default()));
                }
                other => drop(other),
            }
        }
    }
}

fn over(outcome: &str, codes: &[i32]) -> Shown {
    let mut shown = Shown::default();
    shown.job.outcome = Some(outcome.into());
    shown.job.kept = Some(true);
    let programs = codes.iter().map(|&code| Program { code: Some(code), ..Program::default() });
    shown.programs = programs.collect();
    shown
}

fn played(over: Shown) -> Played {
    Played { refuses: None, looks: 2, over }
}

/// The step is submitted once, in its allocation, and does not run the programs itself.
#[test]
fn a_step_is_a_job_of_the_service() {
    for (codes, end) in [(&[0, 0][..], End::Well), (&[0, 9], End::Program(9))] {
        let directory = directory("served");
        let asked = serve(&directory, played(over("complete", codes)));
        let mut told = Notes::default();
        let ended = run(&directory, DEVICE, &job(TOUCH), &mut told);
        assert_eq!(ended.unwrap(), end);
        let asked = asked.lock().unwrap();
        assert_eq!(asked.submitted.len(), 1);
        assert_eq!(asked.submitted[0].allocation, Some(71));
        assert!(!asked.cancelled && told.told.is_empty(), "{:?}", told.told);
        assert!(!directory.join("ran").exists());
        fs::remove_dir_all(&directory).unwrap();
    }
}

#[test]
fn an_ending_step_cancels_its_job() {
    let directory = directory("cancelled");
    let never = Played { looks: u32::MAX, ..played(Shown::default()) };
    let asked = serve(&directory, never);
    let mut told = Notes { stop: Some(directory.clone()), ..Notes::default() };
    let ended = run(&directory, DEVICE, &job(TOUCH), &mut told);
    assert_eq!(ended.unwrap(), End::Cancelled);
    assert!(asked.lock().unwrap().cancelled);
    fs::remove_dir_all(&directory).unwrap();
}

/// A job that does not fit is not run without a plan: its user wants its deadline.
#[test]
fn declined_jobs_are_not_run() {
    let directory = directory("declined");
    let declined =
        Refusal::Declined { job: "j".into(), why: "late".into(), earliest_deadline_ns: None };
    let refuses = Played { refuses: Some(declined), ..played(Shown::default()) };
    serve(&directory, refuses);
    let refused = run(&directory, DEVICE, &job(TOUCH), &mut Notes::default());
    assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
    assert!(!directory.join("ran").exists());
    fs::remove_dir_all(&directory).unwrap();
}

/// Slurm's plugin has not told the service of the step: it runs without a plan, and that is
/// told.
#[test]
fn without_an_allocation_programs_run_all_the_same() {
    let directory = directory("unknown");
    let refuses = Played {
        refuses: Some(Refusal::NotPermitted { what: "a job in allocation 71".into() }),
        ..played(Shown::default())
    };
    serve(&directory, refuses);
    let mut told = Notes::default();
    let ended = run(&directory, DEVICE, &job(TOUCH), &mut told);
    assert_eq!(ended.unwrap(), End::Well);
    assert!(told.told[0].contains("allocation 71"), "{:?}", told.told);
    assert!(directory.join("ran").exists());
    fs::remove_dir_all(&directory).unwrap();
}
