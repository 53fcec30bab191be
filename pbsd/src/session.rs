// SPDX-License-Identifier: GPL-2.0
//! What one caller may ask: the methods of the interface.

use std::io;
use std::os::unix::net::UnixListener;

use pbs_node_api::{
    Allocated, Alteration, Array, Deallocated, Environment, Explanation, Filter, Job, JobKey,
    Limit, Listed, Notice, Plan, Process, Program, Refusal, Shown, Status, Submission, Submitted,
};
use pbs_socket::Caller;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::Receiver;
use zlink::futures_util::stream::{unfold, Stream, StreamExt};
use zlink::Reply;

use crate::allocations::Step;
use crate::inbox::{Request, Sender};
use crate::notify;

/// What happens, for those who watch.
pub type Notices = broadcast::Sender<Notice>;

/// The service, as one caller sees it.
pub struct Session {
    /// Who asks.
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
pub fn serve(listener: UnixListener, node: &Sender, notices: &Notices) -> io::Result<()> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let local = tokio::task::LocalSet::new();
    if let Some(every) = notify::watched_every() {
        local.spawn_local(notify::watch(node.clone(), every));
    }
    let session = |caller| Session { caller, node: node.clone(), notices: notices.clone() };
    local.block_on(&runtime, pbs_socket::serve(listener, session))
}

/// Jobs in one submission, with all of their arrays, at most.
pub const MOST_JOBS: u64 = 1000;

#[zlink::service(
    interface = "org.sched-pbs.Node",
    types = [
        Alteration, Array, Environment, Filter, Job, JobKey, Limit, Process, Program, Submission
    ],
    vendor = "sched-pbs",
    product = "pbsd",
    version = env!("CARGO_PKG_VERSION")
)]
impl Session {
    /// Has jobs be run: all of them, or none. The answer comes when they are planned and
    /// the plan is in force, or wait.
    async fn submit(&self, jobs: Vec<Submission>) -> Result<Submitted, Refusal> {
        let ask = |answer| Request::Submit(jobs, answer);
        let jobs = self.node.ask(&self.caller, ask).await?;
        Ok(Submitted { jobs })
    }

    /// Has a job be over before its time: its programs are told to end, and killed if they
    /// do not.
    async fn cancel(&self, job: JobKey) -> Result<Shown, Refusal> {
        let ask = |answer| Request::Cancel(job, answer);
        self.node.ask(&self.caller, ask).await
    }

    /// Has a job that waits not be planned until it is released.
    async fn hold(&self, job: JobKey) -> Result<Shown, Refusal> {
        let ask = |answer| Request::Hold(job, true, answer);
        self.node.ask(&self.caller, ask).await
    }

    /// Has a job that is held be planned.
    async fn release(&self, job: JobKey) -> Result<Shown, Refusal> {
        let ask = |answer| Request::Hold(job, false, answer);
        self.node.ask(&self.caller, ask).await
    }

    /// Changes the deadline or the priority of a job, or the job itself while it waits.
    async fn alter(&self, job: JobKey, alteration: Alteration) -> Result<Shown, Refusal> {
        let ask = |answer| Request::Alter(job, alteration, answer);
        self.node.ask(&self.caller, ask).await
    }

    /// How jobs stand.
    async fn list(&self, filter: Filter) -> Result<Listed, Refusal> {
        let ask = |answer| Request::List(filter, answer);
        let jobs = self.node.ask(&self.caller, ask).await?;
        Ok(Listed { jobs })
    }

    /// All that is known of a job.
    async fn show(&self, job: JobKey) -> Result<Shown, Refusal> {
        let ask = |answer| Request::Show(job, answer);
        self.node.ask(&self.caller, ask).await
    }

    /// What would be said of a job now; nothing changes.
    async fn explain(&self, job: Submission) -> Result<Explanation, Refusal> {
        let ask = |answer| Request::Explain(job, answer);
        self.node.ask(&self.caller, ask).await
    }

    /// The plan of all jobs that was written last.
    async fn plan(&self) -> Result<Plan, Refusal> {
        self.node.ask(&self.caller, Request::Plan).await
    }

    /// Has nothing new be planned; what is planned goes on.
    async fn drain(&self) -> Result<Status, Refusal> {
        let ask = |answer| Request::Drain(true, answer);
        self.node.ask(&self.caller, ask).await
    }

    /// Has what waits be planned again.
    async fn resume(&self) -> Result<Status, Refusal> {
        let ask = |answer| Request::Drain(false, answer);
        self.node.ask(&self.caller, ask).await
    }

    /// How the service is.
    async fn status(&self) -> Result<Status, Refusal> {
        self.node.ask(&self.caller, Request::Status).await
    }

    /// Has cores be only for jobs of a user in an allocation that another resource manager
    /// has made: his submissions name its number. For root only, who says it of each step of
    /// the allocation; it lasts until all of them are over, or their processes have ended
    /// that have said so. Cores are counted as Slurm does: by sockets, without threads.
    /// `job`: the number of the allocation. `until_unix_s`: when it ends at the latest.
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

    /// Has a step of an allocation be over; with the last one the allocation ends, and what
    /// still runs of its jobs is cancelled. For root only.
    async fn deallocate(&self, job: u32, step: u32) -> Result<Deallocated, Refusal> {
        let ask = |answer| Request::Deallocate(job, step, answer);
        self.node.ask(&self.caller, ask).await
    }

    /// What happens from now on, of all jobs or of one.
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
        let watched = match number {
            Ok(number) => Watched::Notices(self.notices.subscribe(), number),
            Err(refusal) => Watched::Refused(refusal),
        };
        let next = move |watched| async move {
            match watched {
                Watched::Notices(mut notices, number) => {
                    let notice = next_of(&mut notices, number).await?;
                    let after = match (&notice, more) {
                        (Ok(_), true) => Watched::Notices(notices, number),
                        _ => Watched::Over,
                    };
                    let reply = |notice| Reply::new(Some(notice)).set_continues(Some(more));
                    Some((notice.map(reply), after))
                }
                Watched::Refused(refusal) => Some((Err(refusal), Watched::Over)),
                Watched::Over => None,
            }
        };
        unfold(watched, next).boxed()
    }
}

/// What there is to be watched.
enum Watched {
    Notices(Receiver<Notice>, Option<u64>),
    Refused(Refusal),
    Over,
}

/// The next one of that job; `None`: the service ends.
async fn next_of(
    notices: &mut Receiver<Notice>,
    number: Option<u64>,
) -> Option<Result<Notice, Refusal>> {
    loop {
        match notices.recv().await {
            Ok(notice) if number.is_none() || notice.job == number => return Some(Ok(notice)),
            Ok(_) => {}
            Err(RecvError::Lagged(_)) => return Some(Err(Refusal::Lagged)),
            Err(RecvError::Closed) => return None,
        }
    }
}
