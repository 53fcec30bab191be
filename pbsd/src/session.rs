// SPDX-License-Identifier: GPL-2.0
//! Methods of the interface, as one caller may use them.

use std::io;
use std::os::unix::net::UnixListener;

use pbs_node_api::{
    Allocated, Alteration, AnswersWithin, Array, Budget, Deallocated, EndedJobs, Environment,
    Explanation, Filter, Job, JobKey, Limit, Listed, MethodMetrics, Metrics, Notice, Notified,
    OpenJobs, Plan, Process, Program, Refusal, Resource, Shown, Status, Submission, Submitted,
    Usage, UserMetrics,
};
use pbs_socket::{notify, Caller, ConnectionLimits, Watch};
use tokio::sync::broadcast;
use zlink::futures_util::{Stream, StreamExt};
use zlink::Reply;

use crate::allocations::Step;
use crate::inbox::{Request, Sender};

/// Events, for sessions that watch.
pub type Notices = broadcast::Sender<Told>;

/// Notice of an event, and what users get of it who may not read the job that it is about.
#[derive(Clone, Debug)]
pub struct Told {
    /// The notice.
    pub notice: Notice,
    /// The user of the job; `None`: it is about no job, or nobody knows whose.
    pub uid: Option<u32>,
    /// Text for users who are neither that user nor operators; `None`: nothing is for them.
    pub brief: Option<String>,
}

impl Told {
    /// Whether a caller gets something of it.
    fn is_for(&self, caller: &Caller) -> bool {
        caller.may(self.uid) || self.brief.is_some()
    }

    /// The notice as a caller gets it.
    fn told_to(self, caller: &Caller) -> Notice {
        let Self { notice, uid, brief } = self;
        if caller.may(uid) {
            notice
        } else {
            Notice { text: brief.unwrap_or_default(), ..notice }
        }
    }
}

/// The service, as one caller sees it.
pub struct Session {
    /// The caller.
    pub caller: Caller,
    /// To the thread that has the node.
    pub node: Sender,
    /// From it.
    pub notices: Notices,
}

/// Serves callers, as long as that works: it ends with an error only.
///
/// # Errors
///
/// The socket is no more.
pub fn serve(
    listener: UnixListener,
    limits: ConnectionLimits,
    node: &Sender,
    notices: &Notices,
) -> io::Result<()> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let local = tokio::task::LocalSet::new();
    if let Some(every) = notify::watched_every() {
        local.spawn_local(notify::watch(node.queue.clone(), every));
    }
    let session = |caller| Session { caller, node: node.clone(), notices: notices.clone() };
    local.block_on(&runtime, pbs_socket::serve(listener, limits, session))
}

#[zlink::service(
    interface = "org.sched-pbs.Node",
    types = [
        Alteration, AnswersWithin, Array, Budget, EndedJobs, Environment, Filter, Job, JobKey,
        Limit, MethodMetrics, OpenJobs, Process, Program, Resource, Submission, Usage, UserMetrics
    ],
    vendor = "sched-pbs",
    product = "pbsd",
    version = env!("CARGO_PKG_VERSION")
)]
impl Session {
    /// Submits jobs: all of them, or none. The answer arrives when they are planned and
    /// the plan is in force, or when they wait.
    async fn submit(&self, jobs: Vec<Submission>) -> Result<Submitted, Refusal> {
        let jobs = jobs.into_iter().map(Into::into).collect();
        let ask = |answer| Request::Submit(jobs, answer);
        let jobs = self.node.ask(&self.caller, ask).await?;
        Ok(Submitted { jobs })
    }

    /// Cancels a job: its programs are signalled to end, and killed if they do not. A job whose
    /// file has a checkpoint is asked to save its work first; a second call ends it.
    async fn cancel(&self, job: JobKey) -> Result<Shown, Refusal> {
        let ask = |answer| Request::Cancel(job, answer);
        self.node.ask(&self.caller, ask).await
    }

    /// Notifies the programs of a running job by a signal (HUP, INT, TERM, USR1 or USR2). Only
    /// processes that handle the signal get it, up to 256.
    async fn notify(&self, job: JobKey, signal: String) -> Result<Notified, Refusal> {
        let ask = |answer| Request::Notify(job, signal, answer);
        self.node.ask(&self.caller, ask).await
    }

    /// Asks the programs of a running job to save their work, by the signal that its file declares
    /// (checkpoint). The job continues. Only processes that handle the signal get it, up to 256.
    async fn checkpoint(&self, job: JobKey) -> Result<Notified, Refusal> {
        let ask = |answer| Request::Checkpoint(job, answer);
        self.node.ask(&self.caller, ask).await
    }

    /// Holds a waiting job: it is not planned until it is released.
    async fn hold(&self, job: JobKey) -> Result<Shown, Refusal> {
        let ask = |answer| Request::Hold(job, true, answer);
        self.node.ask(&self.caller, ask).await
    }

    /// Releases a job that is held.
    async fn release(&self, job: JobKey) -> Result<Shown, Refusal> {
        let ask = |answer| Request::Hold(job, false, answer);
        self.node.ask(&self.caller, ask).await
    }

    /// Changes the deadline or the priority of a job, or the job itself while it waits.
    async fn alter(&self, job: JobKey, alteration: Alteration) -> Result<Shown, Refusal> {
        let ask = |answer| Request::Alter(job, alteration, None, answer);
        self.node.ask(&self.caller, ask).await
    }

    /// Returns the state of jobs.
    async fn list(&self, filter: Filter) -> Result<Listed, Refusal> {
        let ask = |answer| Request::List(filter, answer);
        let jobs = self.node.ask(&self.caller, ask).await?;
        Ok(Listed { jobs })
    }

    /// Returns all details of a job.
    async fn show(&self, job: JobKey) -> Result<Shown, Refusal> {
        let ask = |answer| Request::Show(job, answer);
        self.node.ask(&self.caller, ask).await
    }

    /// Returns the answer that a job would get now; nothing changes.
    async fn explain(&self, job: Submission) -> Result<Explanation, Refusal> {
        let ask = |answer| Request::Explain(job.into(), answer);
        self.node.ask(&self.caller, ask).await
    }

    /// Returns the plan of all jobs that was written last.
    async fn plan(&self) -> Result<Plan, Refusal> {
        self.node.ask(&self.caller, Request::Plan).await
    }

    /// Stops planning new jobs; planned jobs continue.
    async fn drain(&self) -> Result<Status, Refusal> {
        let ask = |answer| Request::Drain(true, answer);
        self.node.ask(&self.caller, ask).await
    }

    /// Resumes planning.
    async fn resume(&self) -> Result<Status, Refusal> {
        let ask = |answer| Request::Drain(false, answer);
        self.node.ask(&self.caller, ask).await
    }

    /// Sets the amount of a countable resource for new jobs, also of later services. Admitted jobs
    /// keep what they were promised. Jobs that need more than there is wait.
    async fn set_resource(&self, name: String, amount: u64) -> Result<Status, Refusal> {
        let ask = |answer| Request::SetResource(name, amount, answer);
        self.node.ask(&self.caller, ask).await
    }

    /// Returns the state of the service.
    async fn status(&self) -> Result<Status, Refusal> {
        self.node.ask(&self.caller, Request::Status).await
    }

    /// Returns what the service has counted since its start.
    async fn metrics(&self) -> Result<Metrics, Refusal> {
        let metrics = self.node.ask(&self.caller, Request::Metrics).await?;
        Ok(Metrics { methods: self.node.calls.methods(), ..metrics })
    }

    /// Reserves cores for jobs of a user in an allocation that another resource manager
    /// has made: submissions name its number. For root only, which reports each step of
    /// the allocation. It lasts until all steps are over, or the processes that reported
    /// them have ended. Cores are counted like Slurm does: by sockets, without threads.
    /// `job`: the number of the allocation. `until_unix_s`: its latest end.
    async fn allocate(
        &self,
        job: u32,
        step: u32,
        uid: u32,
        cores: Vec<u32>,
        memory_bytes: Option<u64>,
        until_unix_s: Option<u64>,
    ) -> Result<Allocated, Refusal> {
        let step = Step { job, step, uid, cores, memory_bytes, until_unix_s };
        let ask = |answer| Request::Allocate(step, answer);
        self.node.ask(&self.caller, ask).await
    }

    /// Ends a step of an allocation. With the last one the allocation ends, and its jobs
    /// that still run are cancelled. For root only.
    async fn deallocate(&self, job: u32, step: u32) -> Result<Deallocated, Refusal> {
        let ask = |answer| Request::Deallocate(job, step, answer);
        self.node.ask(&self.caller, ask).await
    }

    /// Reports events from now on, of all jobs or of one.
    #[zlink(more)]
    async fn watch(
        &self,
        more: bool,
        job: Option<JobKey>,
    ) -> impl Stream<Item = Result<Reply<Notice>, Refusal>> + Unpin {
        let number = match job {
            None => Ok(None),
            Some(key) => {
                let shown = self.node.ask(&self.caller, |answer| Request::Show(key, answer));
                shown.await.map(|shown| Some(shown.job.number))
            }
        };
        let (wants, gets) = (self.caller.clone(), self.caller.clone());
        let watch = number.map(|number| Watch {
            notices: self.notices.subscribe(),
            is_wanted: move |told: &Told| {
                (number.is_none() || told.notice.job == number) && told.is_for(&wants)
            },
            more,
            last: None,
        });
        let watched = pbs_socket::watch(watch, Refusal::Lagged);
        watched.map(move |told| told.map(|reply| reply.map(|told| told.told_to(&gets))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wanted::tests::caller;

    /// The text of a notice is for the user of the job and for operators, and others get the brief
    /// one, or nothing.
    #[test]
    fn notices_are_whole_for_who_may_read_the_job() {
        let told = |uid, brief: Option<&str>| Told {
            notice: Notice { job: Some(7), text: "why".into(), ..Notice::default() },
            uid,
            brief: brief.map(Into::into),
        };
        let gets =
            |caller: &Caller, told: Told| told.is_for(caller).then(|| told.told_to(caller).text);
        let operator = Caller { uid: 9, is_operator: true, ..caller() };
        for (uid, brief, own, of_operator) in [
            (Some(1000), None, Some("why"), Some("why")),
            (Some(1001), Some("over"), Some("over"), Some("why")),
            (Some(1001), None, None, Some("why")),
            (None, None, None, Some("why")),
        ] {
            assert_eq!(gets(&caller(), told(uid, brief)).as_deref(), own);
            assert_eq!(gets(&operator, told(uid, brief)).as_deref(), of_operator);
        }
    }
}
