// SPDX-License-Identifier: GPL-2.0
//! Requests from the thread that has the socket to the one that has the node.

use std::io;
use std::time::Instant;

use pbs_node_api::{
    Allocated, Alteration, Deallocated, Explanation, Filter, Job, JobKey, Metrics, Notified, Plan,
    Refusal, Shown, Status, Submission,
};
use pbs_socket::{Call, Caller};
use tokio::sync::oneshot;

use crate::allocations::Step;
use crate::calls::Calls;
use crate::limits::CALLS;
use crate::wanted::{rewritten, Asked};

/// Receiver of the answer, which may have stopped waiting for it.
pub type Answer<T> = oneshot::Sender<Result<T, Refusal>>;

/// Request to the node.
#[derive(Debug)]
pub enum Request {
    Submit(Vec<Asked>, Answer<Vec<Job>>),
    Explain(Asked, Answer<Explanation>),
    Cancel(JobKey, Answer<Shown>),
    /// A job, and the name of the signal for its programs.
    Notify(JobKey, String, Answer<Notified>),
    Checkpoint(JobKey, Answer<Notified>),
    Hold(JobKey, bool, Answer<Shown>),
    /// The alteration of a job, with its request as it was read, if it was.
    Alter(JobKey, Alteration, Option<Box<pbs_node::Submission>>, Answer<Shown>),
    List(Filter, Answer<Vec<Job>>),
    Show(JobKey, Answer<Shown>),
    Plan(Answer<Plan>),
    Drain(bool, Answer<Status>),
    /// The name of a resource, and its amount for new jobs.
    SetResource(String, u64, Answer<Status>),
    Status(Answer<Status>),
    Metrics(Answer<Metrics>),
    Allocate(Step, Answer<Allocated>),
    Deallocate(u32, u32, Answer<Deallocated>),
}

/// Names of all methods that are counted.
pub(crate) const METHODS: [&str; 16] = [
    "Submit",
    "Explain",
    "Cancel",
    "Notify",
    "Hold",
    "Release",
    "Alter",
    "List",
    "Show",
    "Plan",
    "Drain",
    "Resume",
    "Status",
    "Metrics",
    "Allocate",
    "Deallocate",
];

impl Request {
    /// Name of the method that is called, one of [`METHODS`].
    fn method(&self) -> &'static str {
        match self {
            Self::Submit(..) => "Submit",
            Self::Explain(..) => "Explain",
            Self::Cancel(..) => "Cancel",
            Self::Notify(..) => "Notify",
            Self::Checkpoint(..) => "Checkpoint",
            Self::Hold(_, true, _) => "Hold",
            Self::Hold(_, false, _) => "Release",
            Self::Alter(..) => "Alter",
            Self::List(..) => "List",
            Self::Show(..) => "Show",
            Self::Plan(..) => "Plan",
            Self::Drain(true, _) => "Drain",
            Self::Drain(false, _) => "Resume",
            Self::SetResource(..) => "SetResource",
            Self::Status(..) => "Status",
            Self::Metrics(..) => "Metrics",
            Self::Allocate(..) => "Allocate",
            Self::Deallocate(..) => "Deallocate",
        }
    }
}

impl Call for Request {
    fn bytes(&self) -> usize {
        match self {
            Self::Submit(jobs, _) => jobs.iter().map(asked_bytes).sum(),
            Self::Explain(job, _) => asked_bytes(job),
            Self::Alter(_, alteration, ..) => alteration.request.as_ref().map_or(0, String::len),
            _ => 0,
        }
    }

    fn read(self, caller: &Caller) -> Option<Self> {
        match self {
            Self::Submit(jobs, answer) => {
                let read = jobs.into_iter().map(|job| job.read(caller).map(Asked::read_before));
                let jobs = or_refuse(read.collect::<Result<Vec<_>, _>>(), answer)?;
                Some(Self::Submit(jobs.0, jobs.1))
            }
            Self::Explain(job, answer) => {
                let job = or_refuse(job.first().read(caller).map(Asked::read_before), answer)?;
                Some(Self::Explain(job.0, job.1))
            }
            Self::Alter(key, mut alteration, None, answer) => {
                let request = alteration.request.take();
                let read = request.map(|request| rewritten(&key, request)).transpose();
                let (read, answer) = or_refuse(read, answer)?;
                Some(Self::Alter(key, alteration, read.map(Box::new), answer))
            }
            other => Some(other),
        }
    }
}

/// Sends a refusal; otherwise returns the result with the receiver of the answer.
fn or_refuse<T, U>(read: Result<T, Refusal>, answer: Answer<U>) -> Option<(T, Answer<U>)> {
    match read {
        Ok(read) => Some((read, answer)),
        Err(refusal) => {
            // The caller may have gone.
            let _ = answer.send(Err(refusal));
            None
        }
    }
}

/// Bytes of a submission that was sent; 0: it was read.
fn asked_bytes(asked: &Asked) -> usize {
    asked.sent().map_or(0, submission_bytes)
}

/// Bytes of a submission: its texts, and what each item of a list takes besides.
fn submission_bytes(job: &Submission) -> usize {
    const ITEM_BYTES: usize = 48;
    let variables = job.environment.iter().map(|it| ITEM_BYTES + it.name.len() + it.value.len());
    let limits = job.limits.iter().flatten().map(|it| ITEM_BYTES + it.resource.len());
    let texts = [&job.name, &job.output].into_iter().flatten().map(String::len);
    let numbers = [&job.after, &job.afterok].into_iter().flatten();
    size_of::<Submission>()
        + job.file.len()
        + job.request.len()
        + job.directory.len()
        + variables.sum::<usize>()
        + limits.sum::<usize>()
        + texts.sum::<usize>()
        + numbers.map(|ids| size_of_val(&ids[..])).sum::<usize>()
}

/// The end of the queue for the node.
pub type Inbox = pbs_socket::Inbox<Request>;

/// The end of the queue for senders.
#[derive(Clone, Debug)]
pub struct Sender {
    /// The queue.
    pub queue: pbs_socket::Sender<Request>,
    /// Counts of the calls.
    pub calls: Calls,
}

/// Both ends.
pub fn inbox() -> io::Result<(Sender, Inbox)> {
    let (queue, inbox) = pbs_socket::inbox(CALLS)?;
    Ok((Sender { queue, calls: Calls::default() }, inbox))
}

impl Sender {
    /// Asks, and waits for the answer.
    pub async fn ask<T>(
        &self,
        caller: &Caller,
        request: impl FnOnce(Answer<T>) -> Request,
    ) -> Result<T, Refusal> {
        let (answer, answered) = oneshot::channel();
        let request = request(answer);
        let (method, begun) = (request.method(), Instant::now());
        let answer = self.queue.ask(caller, request, answered).await;
        self.calls.answered(method, begun.elapsed(), answer.is_err());
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use pbs_launch::signals::wait_for;
    use pbs_socket::LONG_BYTES;

    use super::*;

    fn caller(uid: u32) -> Caller {
        Caller { uid, gid: uid, groups: Vec::new(), is_operator: uid == 0, pid: 0, account: uid }
    }

    /// A long request is read before its turn, and one that is invalid never comes to the node.
    #[test]
    fn long_requests_are_read_before_they_are_taken() {
        let (sender, mut inbox) = inbox().unwrap();
        let send = |tasks: &str| {
            let request = format!(
                "name = \"long\"\ndeadline_ns = \"1h\"\n[[process]]\nid = 1\nmemory_bytes = 0\n\
                 attaches = \"itself\"\ntasks = [{tasks}]\n"
            );
            let job = Submission { request, directory: "/".into(), ..Submission::default() };
            let (answer, answered) = oneshot::channel();
            let request = Request::Submit(vec![job.into()], answer);
            sender.queue.send(&caller(1), request).unwrap();
            answered
        };
        let long = "1,".repeat(LONG_BYTES / 2);
        let invalid = send(&format!("{long}\"no task\""));
        let valid: Vec<_> = (0..3).map(|_| send(&long)).collect();
        let refused = invalid.blocking_recv().unwrap();
        assert!(matches!(refused, Err(Refusal::Invalid { .. })), "{refused:?}");
        for _ in &valid {
            wait_for([inbox.as_fd()], 60_000).unwrap();
            inbox.begin();
            let (_, taken) = std::iter::from_fn(|| Some(inbox.take())).flatten().next().unwrap();
            let Request::Submit(jobs, _) = taken else { panic!("{taken:?}") };
            assert!(jobs.iter().all(|job| job.sent().is_none()), "it was not read");
        }
        // A short one is read when it is taken.
        let _short = send("1");
        let (_, taken) = inbox.take().unwrap();
        assert!(matches!(taken, Request::Submit(jobs, _) if jobs[0].sent().is_some()));
    }

    /// All parts of a request count, not only the file of its job.
    #[test]
    fn all_of_a_submission_counts() {
        let environment = |count| {
            let variable = pbs_node_api::Environment { name: "A".into(), value: "b".into() };
            Submission { environment: vec![variable; count], ..Submission::default() }
        };
        let bytes = submission_bytes(&environment(40_000)) - submission_bytes(&environment(0));
        assert_eq!(bytes, 40_000 * 50);
        let (answer, _answered) = oneshot::channel();
        let jobs = (0..3).map(|_| environment(0).into()).collect();
        let request = Request::Submit(jobs, answer);
        assert_eq!(request.bytes(), 3 * submission_bytes(&environment(0)));
    }
}
