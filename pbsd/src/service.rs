// SPDX-License-Identifier: GPL-2.0
//! The thread that has the node: it alone plans, starts and records.
//!
//! It takes all requests that wait at once, so that many jobs that come together are
//! started with one plan.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use pbs_history::{Last, RunId};
use pbs_launch::signals::{sooner, wait_for, Signals};
use pbs_launch::NoticeSignal;
use pbs_node::device::kernel_release;
use pbs_node::queue::RunSummary;
use pbs_node::{process_of, usage_of, Alteration, Error, Held, Moved, Next, Node};
use pbs_node::{Rewrite, RunDetails, Submission};
use pbs_node_api::{
    Allocated, Deallocated, Explanation, Filter, Job, JobKey, Metrics, Notified, OpenJobs, Plan,
    Refusal, Resource, Shown, Status,
};
use pbs_socket::{journal, known_user, user_name, AccountFiles, Accounts, Caller};
use pbs_uapi::clock::unix_ns;

use crate::allocations::{Allocations, Step};
use crate::amounts::Amounts;
use crate::counted::Counted;
use crate::drained::Drained;
use crate::inbox::{Answer, Inbox, Request};
use crate::limits::{Limits, ENDED_OF_ANSWER, ENDED_OF_OPERATOR, SUBMISSION_JOBS};
use crate::refusal::refusal;
use crate::teller::Teller;
use crate::wanted::{few_programs, invalid, is_name, may_have_priority, not_permitted, rewritten};
use crate::wanted::{Asked, Wanted};

/// Requests that are answered before the node is looked after again.
const AT_ONCE: usize = 16;
/// Time after which no further request is answered before that.
const TURN: Duration = Duration::from_millis(20);
/// The longest reason of a job in a list; `Show` has all of it.
const LISTED_REASON_CHARS: usize = 300;
/// Interval at which processes that hold allocations are checked for exit.
const LOOK: Duration = Duration::from_secs(10);

/// The service of a node.
pub struct Service {
    node: Node<Teller>,
    signals: Signals,
    allocations: Allocations,
    limits: Limits,
    drained: Drained,
    amounts: Amounts,
    counted: Counted,
    account_files: AccountFiles,
    looked: Instant,
    since_unix_ns: u64,
    /// Submissions whose jobs are about to be started.
    starting: Vec<Started>,
}

/// Runs that were accepted, and the receiver of the answer whether they were started.
type Started = (Vec<RunId>, Answer<Vec<Job>>);

impl Service {
    /// The service of a node that runs jobs. `signals` are those of the thread that runs
    /// it. `drained` and `amounts` are files by which the next service knows of a drain and of
    /// amounts that were set.
    pub fn new(
        node: Node<Teller>,
        signals: Signals,
        allocations: Allocations,
        limits: Limits,
        drained: Drained,
        amounts: Amounts,
    ) -> Self {
        Self {
            node,
            signals,
            allocations,
            limits,
            drained,
            amounts,
            counted: Counted::default(),
            account_files: AccountFiles::default(),
            looked: Instant::now(),
            since_unix_ns: unix_ns(),
            starting: Vec::new(),
        }
    }

    /// Serves until somebody wants it to stop. What runs goes on, and is taken over by the
    /// next service.
    pub fn run(&mut self, inbox: &mut Inbox) -> Result<(), Error> {
        self.take_over_allocations()?;
        for run in self.node.standing(&Last::default())? {
            if let Some(uid) = run.uid {
                self.node.listener.own(run.run, uid);
            }
        }
        loop {
            let heard = self.node.hear()?;
            let asked = self.serve(inbox)?;
            let stop = self.signals.want_stop();
            if stop.map_err(|error| Error::File("signals".into(), error))? {
                return Ok(());
            }
            if heard > 0 {
                continue;
            }
            let timeout_ms = match self.node.act()? {
                Next::Wait(timeout_ms) => timeout_ms,
                Next::Over(_) => {
                    self.node.finish();
                    -1
                }
            };
            self.look_at_allocations()?;
            // What has ended may be what others wait for.
            self.start(Vec::new())?;
            self.count_ended();
            // More requests may wait than were taken, and their wake-up was already consumed.
            let asked_ms = if asked > 0 { 0 } else { -1 };
            let look_ms = if self.allocations.is_empty() { -1 } else { LOOK.as_millis() as i32 };
            let others_ms = [self.node.admission_ms(), self.node.starting_ms(), asked_ms, look_ms];
            let timeout_ms = others_ms.into_iter().fold(timeout_ms, sooner);
            let fds = [self.node.as_fd(), self.signals.as_fd(), inbox.as_fd()];
            let waited = wait_for(fds.into_iter().chain(self.node.reports()), timeout_ms);
            waited.map_err(|error| Error::File("events".into(), error))?;
        }
    }

    /// Counts the jobs that have ended since the last time.
    fn count_ended(&mut self) {
        for run in self.node.listener.take_ended() {
            match self.node.standing_of(run) {
                // Its end could not be recorded yet.
                Ok(job) if job.state != "over" => self.node.listener.count_later(run),
                Ok(job) => {
                    let accounts = self.account_files.accounts();
                    self.counted.ended(&job, job.uid.map(|uid| accounts.of(uid)));
                }
                // One that can't be read is counted nowhere, and was told when it ended.
                Err(_) => {}
            }
        }
    }

    /// The counts of users and of open jobs; those of the calls are elsewhere.
    fn metrics(&mut self) -> Result<Metrics, Refusal> {
        self.count_ended();
        let accounts = self.account_files.accounts();
        let mut held: BTreeMap<Option<u32>, Held> = BTreeMap::new();
        for (uid, of_user) in self.node.held_by_users().map_err(refusal)? {
            *held.entry(uid.map(|uid| accounts.of(uid))).or_default() += of_user;
        }
        let runs = self.node.standing(&Last::default()).map_err(refusal)?;
        let open_jobs = ["held", "waiting", "planned", "running"].map(|state| {
            let jobs = runs.iter().filter(|run| run.state == state).count() as u64;
            OpenJobs { state: state.into(), jobs }
        });
        let unrecorded = self.node.unrecorded();
        Ok(Metrics {
            open_jobs: open_jobs.into(),
            users: self.counted.users(&held, &self.limits),
            methods: Vec::new(),
            results_unrecorded: Some(unrecorded.waiting),
            results_lost: Some(unrecorded.lost),
        })
    }

    /// Answers requests for a while, and starts what they submit. Returns the number of requests.
    fn serve(&mut self, inbox: &mut Inbox) -> Result<usize, Error> {
        let begun = Instant::now();
        let mut started: Vec<Started> = Vec::new();
        let mut asked = 0;
        inbox.begin();
        while asked < AT_ONCE && (asked == 0 || begun.elapsed() < TURN) {
            let Some((caller, request)) = inbox.take() else {
                break;
            };
            asked += 1;
            self.answer(&caller, request, &mut started);
        }
        self.start(started)?;
        Ok(asked)
    }

    /// Starts the jobs that can start now. Answers each submission when none of its jobs is still
    /// being started.
    fn start(&mut self, started: Vec<Started>) -> Result<(), Error> {
        self.starting.extend(started);
        self.node.promote()?;
        let mut failed: BTreeMap<RunId, Refusal> = BTreeMap::new();
        let mut none_started = None;
        match self.node.start_ready(&self.signals) {
            Ok(not_started) => {
                for (id, error) in not_started {
                    journal::warning(&format!("a job could not be started: {error}"));
                    if let Some(id) = id {
                        failed.insert(id, refusal(error));
                    }
                }
            }
            // They are over, and say why, or wait again.
            Err(error) => {
                journal::warning(&format!("jobs could not be started: {error}"));
                none_started = Some(refusal(error));
            }
        }
        let node = &self.node;
        let is_settled = |(ids, _): &mut Started| !ids.iter().any(|&id| node.is_starting(id));
        let settled: Vec<_> = self.starting.extract_if(.., is_settled).collect();
        for (ids, answer) in settled {
            let only = match ids.as_slice() {
                [only] => failed.remove(only),
                _ => None,
            };
            let answered = match only {
                Some(refusal) => Err(refusal),
                None => self.jobs_of(&ids).map_err(refusal),
            };
            let answered = match (answered, &none_started) {
                (Ok(jobs), Some(why)) if jobs.iter().all(|job| job.state == "over") => {
                    Err(why.clone())
                }
                (answered, _) => answered,
            };
            for job in answered.iter().flatten() {
                let text = format!("job {} is {}", job.name, job.state);
                let (number, brief) = (Some(job.number), Some(text.clone()));
                self.node.listener.notice(number, job.uid, &job.state, text, brief);
            }
            give(answer, answered);
        }
        Ok(())
    }

    fn answer(&mut self, caller: &Caller, request: Request, started: &mut Vec<Started>) {
        match request {
            Request::Submit(submissions, answer) => {
                match self.submit(caller, submissions) {
                    Ok(ids) => started.push((ids, answer)),
                    Err(refusal) => give(answer, Err(refusal)),
                };
            }
            Request::Explain(submission, answer) => {
                give(answer, self.explain(caller, submission));
            }
            Request::Cancel(key, answer) => {
                give(answer, self.cancel(caller, &key));
            }
            Request::Notify(key, signal, answer) => {
                give(answer, self.notify(caller, &key, &signal));
            }
            Request::Checkpoint(key, answer) => {
                give(answer, self.checkpoint(caller, &key));
            }
            Request::Hold(key, hold, answer) => {
                give(answer, self.hold(caller, &key, hold));
            }
            Request::Alter(key, alteration, read, answer) => {
                give(answer, self.alter(caller, &key, alteration, read));
            }
            Request::List(filter, answer) => {
                give(answer, self.list(caller, &filter));
            }
            Request::Show(key, answer) => {
                let of = self.find(caller, &key);
                give(answer, of.and_then(|id| self.shown(caller, id)));
            }
            Request::Plan(answer) => {
                give(
                    answer,
                    if caller.is_operator {
                        Ok(Plan { plan: self.node.plan_text().map(str::to_string) })
                    } else {
                        Err(not_permitted("seeing the plan of all jobs"))
                    },
                );
            }
            Request::Drain(drained, answer) => {
                give(
                    answer,
                    if caller.is_operator {
                        self.drain(drained)
                    } else {
                        Err(not_permitted("draining the node"))
                    },
                );
            }
            Request::SetResource(name, amount, answer) => {
                give(
                    answer,
                    if caller.is_operator {
                        self.set_resource(caller, &name, amount)
                    } else {
                        Err(not_permitted("setting the amount of a resource"))
                    },
                );
            }
            Request::Status(answer) => {
                give(answer, self.status());
            }
            Request::Metrics(answer) => {
                give(answer, self.metrics());
            }
            Request::Allocate(step, answer) => {
                give(answer, self.allocate(caller, &step));
            }
            Request::Deallocate(job, step, answer) => {
                give(answer, self.deallocate(caller, job, step));
            }
        }
    }

    fn submit(&mut self, caller: &Caller, submissions: Vec<Asked>) -> Result<Vec<RunId>, Refusal> {
        let mut wanted = Vec::new();
        let mut more = Held::default();
        // One sum serves all jobs of the submission: no other call is accepted meanwhile.
        let (own, all) = self.held(caller)?;
        let user = known_user(caller.uid);
        for submission in submissions {
            let mut one = submission.read(caller)?;
            one.bound_limits(caller)?;
            one.of_user(user.clone());
            more += one.held();
            if more.jobs as u64 > SUBMISSION_JOBS {
                return Err(Refusal::Failed {
                    why: format!(
                        "these are more than {SUBMISSION_JOBS} jobs; submit fewer at once"
                    ),
                });
            }
            self.limits.allow(caller, own, all, more)?;
            wanted.push(one);
        }
        if wanted.is_empty() {
            return Err(Refusal::Failed {
                why: "the submission has no job; name at least one".into(),
            });
        }
        few_programs(caller, more)?;
        for one in &wanted {
            self.may_have_allocation(caller, one)?;
        }
        let orders = wanted.into_iter().flat_map(Wanted::into_orders).collect();
        self.node.listener.accepts_from(Some(caller.uid));
        let ids = self.node.order(orders);
        self.node.listener.accepts_from(None);
        let ids = ids.map_err(refusal)?;
        self.counted.submitted(caller.account, ids.len());
        for id in &ids {
            let text = format!("submitted by user {}", caller.uid);
            self.node.listener.own(*id, caller.uid);
            self.tell(*id, Some(caller.uid), "submitted", text);
        }
        Ok(ids)
    }

    fn may_have_allocation(&self, caller: &Caller, wanted: &Wanted) -> Result<(), Refusal> {
        let number = wanted.allocation();
        number.map_or(Ok(()), |number| self.allocations.may_have(caller, number, wanted.job()))
    }

    /// Size of the open jobs of the caller's account, and of those of all users.
    fn held(&mut self, caller: &Caller) -> Result<(Held, Held), Refusal> {
        let users = self.node.held_by_users().map_err(refusal)?;
        let own = held_by(caller.account, &users, &self.account_files.accounts());
        Ok((own, users.values().copied().sum()))
    }

    /// Whether the caller may have so much more in open jobs, and less of what it replaces.
    fn may_hold(&mut self, caller: &Caller, more: Held, replaced: Held) -> Result<(), Refusal> {
        let (own, all) = self.held(caller)?;
        self.limits.allow(caller, own.without(replaced), all.without(replaced), more)
    }

    fn explain(&mut self, caller: &Caller, submission: Asked) -> Result<Explanation, Refusal> {
        let wanted = submission.first().read(caller)?;
        self.may_hold(caller, wanted.held(), Held::default())?;
        few_programs(caller, wanted.held())?;
        self.may_have_allocation(caller, &wanted)?;
        let Some(order) = wanted.into_orders().next() else {
            return Ok(Explanation::default());
        };
        match self.node.would_order(&order) {
            Ok(expected) => Ok(Explanation {
                admitted: true,
                expected_start_unix_ns: expected.start_unix_ns,
                expected_end_unix_ns: Some(expected.end_unix_ns),
                slowdowns: expected.moved.map(|moved| told(&moved, caller)),
                ..Explanation::default()
            }),
            Err(Error::Declined(declined)) => Ok(Explanation {
                why: Some(declined.why),
                earliest_deadline_ns: declined.earliest_deadline_ns,
                ..Explanation::default()
            }),
            Err(error) => Err(refusal(error)),
        }
    }

    fn allocate(&mut self, caller: &Caller, step: &Step) -> Result<Allocated, Refusal> {
        // Slurm may give cores to another as soon as it knows that their daemon has gone.
        self.end_unspoken().map_err(refusal)?;
        let cpus = self.allocations.allocate(caller, step)?;
        self.tell_allocations().map_err(refusal)?;
        Ok(Allocated { cpus })
    }

    fn deallocate(&mut self, caller: &Caller, job: u32, step: u32) -> Result<Deallocated, Refusal> {
        let over = self.allocations.deallocate(caller, job, step)?;
        if !over {
            return Ok(Deallocated::default());
        }
        self.tell_allocations().map_err(refusal)?;
        let ending = self.end_those(|of| of == job).map_err(refusal)?;
        Ok(Deallocated { ending })
    }

    /// Goes on with the allocations that the service before has left. Jobs in any other are
    /// cancelled.
    fn take_over_allocations(&mut self) -> Result<(), Error> {
        self.allocations.look();
        self.tell_allocations()?;
        let known = self.allocations.of_node();
        self.end_those(|of| !known.contains_key(&of)).map(drop)
    }

    /// Ends allocations whose processes have all exited.
    fn end_unspoken(&mut self) -> Result<(), Error> {
        self.looked = Instant::now();
        let over = self.allocations.look();
        if over.is_empty() {
            return Ok(());
        }
        self.tell_allocations()?;
        self.end_those(|of| over.contains(&of)).map(drop)
    }

    /// Checks the processes that hold allocations, if it is time to do so.
    fn look_at_allocations(&mut self) -> Result<(), Error> {
        if self.allocations.is_empty() || self.looked.elapsed() < LOOK {
            return Ok(());
        }
        self.end_unspoken()
    }

    fn tell_allocations(&mut self) -> Result<(), Error> {
        self.node.allocate(self.allocations.of_node())
    }

    /// Cancels the jobs in such allocations; the answer is which those are.
    fn end_those(&mut self, is_over: impl Fn(u32) -> bool) -> Result<Vec<u64>, Error> {
        let mut ending = Vec::new();
        for run in self.node.standing(&Last::default())? {
            let Some(number) = run.allocation.filter(|&number| is_over(number)) else {
                continue;
            };
            let why = format!("its allocation {number} has ended");
            match self.node.cancel_run(run.run, why.clone()) {
                Ok(()) => {
                    self.tell(run.run, run.uid, "cancelled", why);
                    ending.push(run.run.0);
                }
                // It has ended since.
                Err(Error::IsOver(..)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(ending)
    }

    fn cancel(&mut self, caller: &Caller, key: &JobKey) -> Result<Shown, Refusal> {
        let (id, owner) = self.own(caller, key, "cancelling the job of another user")?;
        let why = format!("cancelled by {}", user_name(caller.uid));
        self.node.cancel_run(id, why.clone()).map_err(refusal)?;
        self.tell(id, owner, "cancelled", why);
        self.shown(caller, id)
    }

    fn notify(&self, caller: &Caller, key: &JobKey, signal: &str) -> Result<Notified, Refusal> {
        let (id, _) = self.own(caller, key, "notifying programs of the job of another user")?;
        let notice = signal.parse::<NoticeSignal>().map_err(|what| invalid("signal", &what))?;
        let processes = self.node.notify_run(id, notice).map_err(refusal)?;
        Ok(Notified { processes: processes as u64 })
    }

    fn checkpoint(&self, caller: &Caller, key: &JobKey) -> Result<Notified, Refusal> {
        let (id, owner) = self.own(caller, key, "checkpointing the job of another user")?;
        let processes = self.node.checkpoint_run(id).map_err(refusal)?;
        let by = user_name(caller.uid);
        let text = format!("asked to save itself by {by}: {processes} processes");
        self.node.listener.notice(Some(id.0), owner, "news", text, None);
        Ok(Notified { processes: processes as u64 })
    }

    fn hold(&mut self, caller: &Caller, key: &JobKey, hold: bool) -> Result<Shown, Refusal> {
        let what = if hold {
            "holding the job of another user"
        } else {
            "releasing the job of another user"
        };
        let (id, owner) = self.own(caller, key, what)?;
        self.node.hold(id, hold).map_err(refusal)?;
        let kind = if hold { "held" } else { "released" };
        let text = format!("{kind} by {}", user_name(caller.uid));
        self.tell(id, owner, kind, text);
        self.shown(caller, id)
    }

    fn alter(
        &mut self,
        caller: &Caller,
        key: &JobKey,
        alteration: pbs_node_api::Alteration,
        read: Option<Box<Submission>>,
    ) -> Result<Shown, Refusal> {
        let (id, owner) = self.own(caller, key, "changing the job of another user")?;
        let sent = alteration.request.map(|request| rewritten(key, request)).transpose()?;
        let submission = read.map(|read| *read).or(sent);
        if let Some(submission) = &submission {
            is_name(&submission.job.name).map_err(|what| invalid(&format!("job {id}"), &what))?;
            let summary = self.node.standing_of(id).map_err(refusal)?;
            may_rewrite(caller, summary.uid)?;
            let replaced = self.node.held_of_waiting(id).map_err(refusal)?.unwrap_or_default();
            let more = Held::of(&submission.job, &submission.request, 0);
            few_programs(caller, more)?;
            self.may_hold(caller, more, replaced)?;
            if let Some(number) = summary.allocation {
                self.allocations.has_memory(number, &submission.job)?;
            }
        }
        let asked = submission.as_ref().map(|submission| submission.job.priority);
        may_have_priority(caller, alteration.priority.or(asked).unwrap_or(0))?;
        let alteration = Alteration {
            deadline_ns: alteration.deadline_ns,
            priority: alteration.priority,
            rewrite: submission.map(|submission| Rewrite { uid: caller.uid, submission }),
        };
        self.node.alter(id, alteration).map_err(refusal)?;
        let text = format!("altered by {}", user_name(caller.uid));
        self.tell(id, owner, "altered", text);
        self.shown(caller, id)
    }

    /// Tells that somebody did something with a job. Who that was is for its user alone.
    fn tell(&self, id: RunId, owner: Option<u32>, kind: &str, text: String) {
        self.node.listener.notice(Some(id.0), owner, kind, text, Some(kind.into()));
    }

    fn list(&self, caller: &Caller, filter: &Filter) -> Result<Vec<Job>, Refusal> {
        let wants_ended = filter.state.as_deref().is_none_or(|state| state == "over");
        let count = filter.last.filter(|_| wants_ended).unwrap_or(0);
        let count = count.min(if caller.is_operator { ENDED_OF_OPERATOR } else { ENDED_OF_ANSWER });
        // The last ones of those that are wanted, and not the wanted ones of the last.
        let last = Last { count: count as usize, job: filter.name.as_deref(), uid: filter.uid };
        let runs = self.node.standing(&last).map_err(refusal)?;
        let jobs = runs.into_iter().map(|run| listed(caller, run, LISTED_REASON_CHARS));
        let wanted = jobs.filter(|job| {
            let of_state = filter.state.as_ref().is_none_or(|state| *state == job.state);
            let of_name = filter.name.as_ref().is_none_or(|name| *name == job.name);
            of_state && of_name && (filter.uid.is_none() || filter.uid == job.uid)
        });
        Ok(wanted.collect())
    }

    fn shown(&self, caller: &Caller, id: RunId) -> Result<Shown, Refusal> {
        let RunDetails { summary, figures, terms: _, ending, request } =
            self.node.details(id).map_err(refusal)?;
        let may_read = caller.may(summary.uid);
        let processes = figures.processes.iter().map(process_of);
        let programs = ending.programs.into_iter().map(|end| pbs_node_api::Program {
            process: end.process,
            program: end.program,
            code: end.code,
            signal: end.signal,
            error: end.error,
        });
        Ok(Shown {
            job: readable(caller, Job::from(summary)),
            request: request.filter(|_| may_read),
            processes: processes.filter(|_| may_read).collect(),
            programs: programs.filter(|_| may_read).collect(),
            usage: usage_of(&figures).filter(|_| may_read),
        })
    }

    /// Stops admission, or resumes it, for this service and those after it.
    fn drain(&mut self, drained: bool) -> Result<Status, Refusal> {
        self.drained.set(drained).map_err(|error| Refusal::Failed {
            why: format!("{}: {error}", self.drained.path().display()),
        })?;
        self.node.drain(drained).map_err(refusal)?;
        self.status()
    }

    /// Sets the amount of a resource, for this service and those after it.
    fn set_resource(
        &mut self,
        caller: &Caller,
        name: &str,
        amount: u64,
    ) -> Result<Status, Refusal> {
        self.node.set_amount(name, amount).map_err(refusal)?;
        let resources = self.node.resources();
        let set = resources.iter().filter(|it| it.amount != it.declared);
        let set = set.map(|it| (it.name.clone(), it.amount)).collect();
        if let Err(error) = self.amounts.write(set) {
            return Err(Refusal::Failed {
                why: format!(
                    "resource {name} has the amount until the service ends, but the next service \
                     will not know: {}: {error}; make room, and set it again",
                    self.amounts.path().display()
                ),
            });
        }
        for resource in resources.iter().filter(|it| it.name == name) {
            let exceeding = match resource.exceeding() {
                0 => String::new(),
                _ => format!("; {} were promised before and are kept", resource.promised),
            };
            let by = user_name(caller.uid);
            let text = format!("resource {name} has {amount} for new jobs, by {by}{exceeding}");
            journal::info(&text);
            self.node.listener.notice(None, None, "news", text.clone(), Some(text));
        }
        self.status()
    }

    fn status(&self) -> Result<Status, Refusal> {
        let runs = self.node.standing(&Last::default()).map_err(refusal)?;
        let count = |states: &[&str]| {
            let of = runs.iter().filter(|run| states.contains(&run.state));
            of.count() as u64
        };
        Ok(Status {
            version: env!("CARGO_PKG_VERSION").into(),
            state: if self.node.is_drained() { "draining".into() } else { "running".into() },
            kernel: kernel_release(),
            rate_insns_per_ms: self.node.info().rate_insns_per_ms,
            since_unix_ns: self.since_unix_ns,
            waiting: count(&["held", "waiting"]),
            planned: count(&["planned"]),
            running: count(&["running"]),
            recorded: !self.node.unrecorded().fails,
            resources: Some(self.resources()).filter(|resources| !resources.is_empty()),
        })
    }

    fn resources(&self) -> Vec<Resource> {
        let resources = self.node.resources().into_iter().map(|it| Resource {
            name: it.name,
            amount: it.amount,
            declared: it.declared,
            promised: it.promised,
        });
        resources.collect()
    }

    fn jobs_of(&self, ids: &[RunId]) -> Result<Vec<Job>, Error> {
        let jobs = ids.iter().map(|&id| self.node.standing_of(id).map(Job::from));
        jobs.collect()
    }

    /// The job that is meant. By name it is one of the caller's that is not over, or of
    /// anybody's for an operator.
    fn find(&self, caller: &Caller, key: &JobKey) -> Result<RunId, Refusal> {
        if let Some(number) = key.number {
            return Ok(RunId(number));
        }
        let name = key.name.as_deref().unwrap_or_default();
        let runs = self.node.standing(&Last::default()).map_err(refusal)?;
        let named = runs.iter().filter(|run| run.job == name && caller.may(run.uid));
        let ids: Vec<_> = named.map(|run| run.run).collect();
        match ids.as_slice() {
            [id] => Ok(*id),
            [] => Err(Refusal::NoSuchJob { job: name.into() }),
            several => Err(Refusal::NotInState {
                what: format!(
                    "{} jobs are called {name}; name one by its number, such as {}",
                    several.len(),
                    several[0]
                ),
            }),
        }
    }

    /// One that the caller may do something with, and its user.
    fn own(
        &self,
        caller: &Caller,
        key: &JobKey,
        what: &str,
    ) -> Result<(RunId, Option<u32>), Refusal> {
        let id = self.find(caller, key)?;
        let summary = self.node.standing_of(id).map_err(refusal)?;
        if caller.may(summary.uid) {
            Ok((id, summary.uid))
        } else {
            Err(not_permitted(what))
        }
    }
}

/// Only the owner of a job may say what it runs: that is run as the owner. To have authority
/// over a job is not to be its owner.
fn may_rewrite(caller: &Caller, owner: Option<u32>) -> Result<(), Refusal> {
    if owner == Some(caller.uid) {
        Ok(())
    } else {
        Err(not_permitted("to change what a job of another user runs"))
    }
}

/// Size of the open jobs of a user and of all its subordinate users.
fn held_by(account: u32, users: &BTreeMap<Option<u32>, Held>, accounts: &Accounts) -> Held {
    let counts = |uid: Option<u32>| uid.is_some_and(|uid| accounts.of(uid) == account);
    users.iter().filter(|(&uid, _)| counts(uid)).map(|(_, &held)| held).sum()
}

/// Leaves out of a job what a caller may not read: others than its user and operators get its state
/// and its outcome, and not how its programs ended.
fn readable(caller: &Caller, job: Job) -> Job {
    if caller.may(job.uid) {
        job
    } else {
        Job { reason: None, exit_code: None, signal: None, ..job }
    }
}

/// Converts a run to its form on the socket, with so much of its reason: a list has the reasons of
/// many.
fn listed(caller: &Caller, run: RunSummary, reason_chars: usize) -> Job {
    let mut job = readable(caller, Job::from(run));
    job.reason = job.reason.map(|reason| match reason.char_indices().nth(reason_chars) {
        Some((end, _)) => format!("{} …", &reason[..end]),
        None => reason,
    });
    job
}

/// Gives a caller its answer.
fn give<T>(answer: Answer<T>, answered: Result<T, Refusal>) {
    // A caller that has hung up needs no answer; the request was carried out.
    let _ = answer.send(answered);
}

/// Returns what a caller may know about the change of a job's CPUs.
fn told(moved: &Moved, caller: &Caller) -> String {
    if caller.is_operator {
        moved.to_string()
    } else {
        moved.in_brief().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wanted::tests::caller;

    /// The reason of an end is for the job's user and for operators: it names files and programs.
    #[test]
    fn others_get_the_outcome_of_a_job_alone() {
        let operator = Caller { is_operator: true, ..caller() };
        let run = run();
        let full = Job::from(run.clone());
        assert_eq!(listed(&operator, run.clone(), 300), full);
        let own = RunSummary { uid: Some(1000), ..run.clone() };
        assert_eq!(listed(&caller(), own.clone(), 300), Job::from(own));
        let of_other = listed(&caller(), run, 300);
        assert_eq!(of_other.outcome.as_deref(), Some("failed"));
        let left_out = (of_other.reason, of_other.exit_code, of_other.signal);
        assert_eq!(left_out, (None, None, None));
    }

    /// Each figure of a run has its own place on the socket.
    #[test]
    fn a_job_on_the_socket_has_the_figures_of_its_run() {
        let run = run();
        let of_run = serde_json::to_value(&run).unwrap();
        let of_job = serde_json::to_value(Job::from(run)).unwrap();
        for (key, value) in of_job.as_object().unwrap() {
            let key = match key.as_str() {
                "number" => "run",
                "name" => "job",
                same => same,
            };
            assert_eq!(of_run[key], *value, "{key}");
        }
    }

    fn run() -> RunSummary {
        RunSummary {
            run: RunId(1),
            job: "sort".into(),
            kind: pbs_history::Kind::Plan,
            state: "over",
            submitted_unix_ns: 2,
            ended_unix_ns: Some(3),
            outcome: Some(pbs_history::Outcome::Failed),
            tasks: 4,
            tasks_ended: 5,
            uid: Some(6),
            priority: Some(7),
            best_effort: Some(true),
            cpus: Some(vec![8]),
            allocation: Some(9),
            reason: Some("why".into()),
            deadline_unix_ns: Some(10),
            expected_start_unix_ns: Some(11),
            expected_end_unix_ns: Some(12),
            started_unix_ns: Some(13),
            begun_unix_ns: Some(14),
            kept: Some(false),
            exit_code: Some(15),
            signal: Some("SIGTERM".into()),
        }
    }

    /// The jobs of all subordinate users of a user have one budget, that of the user.
    #[test]
    fn jobs_of_subordinate_users_count_to_their_owner() {
        let accounts = Accounts::of_text("ann:100000:65536\n", "ann:x:1000:1000::/:/bin/sh\n");
        let one = Held { jobs: 1, tasks: 3, programs: 1, bytes: 10 };
        let uids = [None, Some(0), Some(1000), Some(1001), Some(100_000), Some(165_535)];
        let users = uids.into_iter().map(|uid| (uid, one)).collect();
        assert_eq!(held_by(1000, &users, &accounts), one * 3);
        assert_eq!(held_by(1001, &users, &accounts), one);
        assert_eq!(held_by(1000, &users, &Accounts::default()), one);
    }

    /// The number of jobs of others that slow-downs would make late is told to operators alone.
    #[test]
    fn users_are_told_little_about_slowdowns() {
        let moved = Moved { cpus: vec![1], instead: vec![0], kept: 3, earlier_ns: 0 };
        let text = told(&moved, &caller());
        assert_eq!(text, "planned on other CPUs because of the slow-downs of earlier runs");
        let text = told(&moved, &Caller { is_operator: true, ..caller() });
        assert!(text.ends_with("3 more would keep their deadlines"), "{text}");
    }

    /// Operators, root among them, may not have a program of theirs run as somebody else.
    #[test]
    fn only_the_owner_rewrites_a_job() {
        let operator = |uid| Caller { uid, is_operator: true, ..caller() };
        assert!(may_rewrite(&caller(), Some(1000)).is_ok());
        assert!(may_rewrite(&operator(0), Some(0)).is_ok());
        for (caller, owner) in [
            (operator(1001), Some(0)),
            (operator(1001), Some(1000)),
            (operator(0), Some(1000)),
            (operator(0), None),
            (caller(), Some(0)),
        ] {
            assert!(caller.is_operator == caller.may(owner));
            let refused = may_rewrite(&caller, owner);
            assert!(matches!(refused, Err(Refusal::NotPermitted { .. })), "{refused:?}");
        }
    }
}
