// SPDX-License-Identifier: GPL-2.0
//! The command that explains whether jobs would be admitted (Glaß 2024, 5.1.3).

mod critical;
mod declined;
mod figures;
mod served;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use pbs_node::{Answered, Planning, LEAD_NS};
use pbs_node_api::Client;
use pbs_planner::{Declined, Limit, Planned, Rejection, Run, Strategy};
use pbs_text::{columns, grouped};
use serde::Serialize;

use crate::admission::{Admission, AdmissionOptions, AdmissionView, Verdict};
use crate::failure::{Failure, DECLINED};
use crate::hints::report_hints;
use crate::history_file::own_uid;
use crate::jobs;
use crate::output::{counted, report, Output};
use crate::planning::{
    history_file, history_text, nanoseconds, AttemptView, CutShortView, MachineView, NodeView,
    PlanningOptions, ResourceView,
};
use crate::quantities::ns;
use crate::socket::Socket;
use critical::CriticalView;
use declined::DeclinedView;
use figures::FigureView;
use served::ServedView;

const EXPLAIN_HELP: &str = "\
Examples:
  pbsctl job explain job.toml                          On this node
  pbsctl job explain job.toml --machine lab.toml       On another machine
  pbsctl job explain a.toml b.toml --machine lab.toml  One after the other
  pbsctl job explain job.toml --history old.db         With the predictions of these runs
  pbsctl --json job explain job.toml | jq '.jobs[].declined.earliest_deadline_ns'

Where the service pbsd runs, it answers whether it would admit each job, and its answer counts. It
is not asked about another machine, another history, or another way to plan.

Otherwise, and for all figures, the machine is assumed to be empty. Times count from the submission
of the jobs. Nothing is planned in the first 100 ms (--lead): pbsctl run and pbsd make the plan and
bring it into force in this time. Nothing is reserved or started, and root is not needed.

A job is validated, and then planned:
  level 1, general check   the deadline and the memory of the machine
  level 2, job check       memory times time: CAL_WANT_TYPE, MIN_MEM_PERCENTAGE
  level 3, process check   a test mapping of its processes to cores:
                           PROCESS_IDLE_PERCENTAGE, FORK_TIME, INIT_TIME
  reservation              every strategy tries to find a plan
Levels 2 and 3 are estimates. They only print their result, unless --estimates-refuse is given.

For an admitted job, the output has its critical path: the tasks that determine its end, each
of which starts when the one before has ended, because it waits for it or for its core. The
bound is the time before which no plan of the search can end, because of the job's path, the time
of all cores, the memory of all nodes, or a resource. The demand test gives a job more of each core
than the search, and may admit it with a deadline before the bound.

The demand test admits a job without a place if its processes do not wait for each other and all
of a core can move so that every deadline is kept (demand_permille of the machine). If the test
fails, the output has the interval that asks for more time than it has.

A large job gets a plan within --max-work steps of work, in less than a second. If this ends the
search, the output says what was cut short: a better plan may exist, or one at all.

For a declined job, the output has the failed check, the process, what was missing, and the
earliest deadline that would be admitted. Exit status 6 means that a job was declined.

With --admission, a command gets each job, the machine and its plan so far, and answers with a plan
or with a reason (Documentation/own-planner.rst). Its answer counts, and the figures of the built-in
planner stand beside it. Without a usable answer in time, the built-in planner decides.";

#[derive(Args, Debug)]
#[command(after_help = EXPLAIN_HELP)]
pub(crate) struct ExplainOptions {
    /// Jobs in TOML or JSON; - reads standard input
    #[arg(required = true, value_name = "JOB")]
    pub(crate) jobs: Vec<PathBuf>,

    /// Time from the submission of a job until its plan is in force, in nanoseconds or with a unit,
    /// such as 100ms; by default the time that pbsctl run and pbsd assume, or 0 with --whole-rate
    #[arg(long, value_name = "NS", value_parser = ns)]
    lead: Option<u64>,

    #[command(flatten)]
    pub(crate) planning: PlanningOptions,

    #[command(flatten)]
    admission: AdmissionOptions,

    #[command(flatten)]
    socket: Socket,
}

impl ExplainOptions {
    fn lead_ns(&self) -> u64 {
        // Jobs never run on machines with whole rates.
        let default = if self.planning.is_whole_rate() { 0 } else { LEAD_NS };
        self.lead.unwrap_or(default)
    }

    /// The service that would get the jobs, if they are planned as for their submission.  A service
    /// that does not answer is reported.
    fn service(&self) -> Option<Client> {
        let is_asked = self.planning.is_usual()
            && self.lead.is_none()
            && self.admission.command().is_none()
            && self.socket.is_there();
        if !is_asked {
            return None;
        }
        let connected = self.socket.connect();
        connected
            .map_err(|failure| report(&format!("{failure}. The answer is of an empty node.")))
            .ok()
    }
}

pub(crate) fn explain(
    out: Output,
    device: &Path,
    options: &ExplainOptions,
) -> Result<ExitCode, Failure> {
    let jobs = jobs::read(&options.jobs)?;
    jobs.iter().for_each(|job| report_hints(out, &job.request, &job.file));
    let mut service = options.service();
    let mut planning = options.planning.planning(device)?.with_lead(options.lead_ns());
    if let Some(uid) = service.as_ref().and_then(|_| own_uid()) {
        planning = planning.with_runs_of(uid);
    }
    let mut admission = options.admission.admission();
    let jobs =
        jobs.into_iter().zip(&options.jobs).enumerate().map(|(place, (submission, file))| {
            let answered = planning.admit(submission)?;
            let mut view = JobView::new(&mut planning, &answered);
            if let Some(service) = &mut service {
                let served = ServedView::ask(service, answered.submission.request.clone(), file)?;
                // The service knows the runs and jobs of the node, and not the jobs before this one.
                view.admitted = served.admitted && (place == 0 || view.admitted);
                view.service = Some(served);
            }
            Ok(view.asked(admission.as_mut(), &planning, &answered))
        });
    let jobs: Vec<_> = jobs.collect::<Result<_, Failure>>()?;
    let admitted = jobs.iter().all(|job| job.admitted);
    let view = View {
        admitted,
        machine: MachineView::new(&planning.store),
        history: history_file(&planning),
        jobs,
    };
    out.print(&view, || {
        let jobs = view.jobs.iter();
        let jobs: Vec<_> = jobs.map(|job| job.text(view.history.is_some())).collect();
        jobs.join("\n") + "\n" + &history_text(&planning)
    })?;
    Ok(if admitted { ExitCode::SUCCESS } else { ExitCode::from(DECLINED) })
}

#[derive(Serialize)]
struct View<'a> {
    /// All of them.
    admitted: bool,
    machine: MachineView,
    /// The file of the runs before; `None`: there is none.
    history: Option<&'a str>,
    jobs: Vec<JobView>,
}

/// Answer for a job.
#[derive(Serialize)]
struct JobView {
    file: String,
    job: String,
    admitted: bool,
    start_ns: u64,
    /// Until the plan is in force; nothing is planned earlier.
    lead_ns: u64,
    deadline_ns: u64,
    /// No plan of the search ends earlier; the demand test may admit an earlier deadline.
    bound: BoundView,
    /// Estimate of level 2 or 3, if it finds no room for the job.
    estimate: Option<String>,
    plan: Option<PlanView>,
    declined: Option<DeclinedView>,
    figures: Vec<FigureView>,
    /// Answer of a command that admits jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    admission: Option<AdmissionView>,
    /// Answer of the service of this node, if it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<ServedView>,
}

/// The plan of a job that would be admitted.
#[derive(Serialize)]
struct PlanView {
    /// Test that has admitted the job: "search", "demand", or "best effort" where nothing is
    /// promised.
    test: &'static str,
    strategy: &'static str,
    end_ns: u64,
    /// From the end to the deadline.
    slack_ns: u64,
    /// Path that determines the end.
    critical_path: Vec<CriticalView>,
    memory: Vec<NodeView>,
    resources: Vec<ResourceView>,
    attempts: Vec<AttemptView>,
    /// The search for a better plan ended before it was through.
    cut_short: Option<CutShortView>,
}

impl JobView {
    fn new(planning: &mut Planning, answered: &Answered) -> Self {
        let job = &answered.job;
        let (plan, declined) = match &answered.answer {
            Ok(planned) => {
                let none = Run::default();
                let run = planning.run(answered).unwrap_or(&none);
                let plan = PlanView::new(planned, run, planning, answered);
                (Some(plan), None)
            }
            Err(declined) => {
                let earliest = planning.earliest_deadline(answered);
                (None, Some(DeclinedView::new(declined, job, earliest)))
            }
        };
        // A level that has refused is not an estimate, and the demand test has the last word.
        let by_demand = plan.as_ref().is_some_and(PlanView::is_by_demand);
        let refused = matches!(&answered.answer, Err(Declined::Validation(_)));
        let estimate = planning.estimate(answered).filter(|_| !refused && !by_demand);
        Self {
            bound: BoundView::new(planning, answered),
            estimate: estimate.map(|rejection: Rejection| rejection.describe(job, 0)),
            file: answered.submission.file.clone(),
            job: job.name.clone(),
            admitted: answered.answer.is_ok(),
            start_ns: job.start_ns,
            lead_ns: planning.lead_ns(),
            deadline_ns: job.deadline_ns,
            plan,
            declined,
            figures: FigureView::all(job, &answered.forecasts),
            admission: None,
            service: None,
        }
    }

    /// The view with the answer of the command, if there is one.
    fn asked(
        self,
        admission: Option<&mut Admission>,
        planning: &Planning,
        answered: &Answered,
    ) -> Self {
        let Some(admission) = admission else { return self };
        let view = admission.ask(&answered.job, planning.store.machine(), planning.lead_ns());
        let admitted = match view.verdict {
            Verdict::Admitted => true,
            Verdict::Declined => false,
            Verdict::Fallback => self.admitted,
        };
        Self { admitted, admission: Some(view), ..self }
    }

    /// `with_figures`: with those of each task.
    fn text(&self, with_figures: bool) -> String {
        let verdict = if self.admitted { "would be admitted" } else { "is declined" };
        let mut rows = vec![row("deadline", nanoseconds(self.deadline_ns))];
        if self.start_ns > 0 {
            rows.insert(0, row("not before", nanoseconds(self.start_ns)));
        }
        if self.lead_ns > 0 {
            rows.insert(0, row("plan in force", nanoseconds(self.lead_ns)));
        }
        rows.extend(self.service.iter().flat_map(ServedView::rows));
        if let Some(admission) = &self.admission {
            let lines = admission.rows(self.deadline_ns).into_iter();
            rows.extend(lines.map(|(what, text)| row(what, text)));
        }
        if let Some(plan) = &self.plan {
            rows.extend(plan.rows());
        }
        if let Some(declined) = &self.declined {
            rows.extend(declined.rows(self.bound.end_ns));
        }
        rows.push(row("bound", self.bound.text()));
        rows.extend(self.estimate.clone().map(|text| row("estimate", text)));
        let all = self.figures.len() as u64;
        let measured = self.figures.iter().filter(|figure| figure.is_measured());
        let measured = measured.count() as u64;
        let figures = match measured {
            0 => "from the job file".into(),
            _ => format!(
                "from earlier runs for {} of {}",
                grouped(measured),
                counted(all, "task with instructions", "tasks with instructions")
            ),
        };
        if with_figures {
            rows.push(row("figures", figures));
        }
        let mut text = format!("{}: job {} {verdict}\n", self.file, self.job);
        text.push_str(&columns(&rows, 3));
        if with_figures {
            text.push('\n');
            text.push_str(&figures::text(&self.figures));
        }
        text
    }
}

/// Lower bound of all plans of the search. The demand test plans with more of each core, therefore
/// it is no bound of the deadlines that this test admits.
#[derive(Serialize)]
struct BoundView {
    end_ns: u64,
    /// Cause of the bound: "critical path", "core time", "memory over time" or "resources over
    /// time".
    limit: &'static str,
    /// From there to the end of the plan: so much longer than the best one it is at
    /// most.
    plan_over_ns: Option<u64>,
}

impl BoundView {
    fn new(planning: &Planning, answered: &Answered) -> Self {
        let bound = planning.bound(answered);
        let over_ns = |planned: &Planned| planned.end_ns.saturating_sub(bound.end_ns);
        Self {
            end_ns: bound.end_ns,
            limit: match bound.limit {
                Limit::Path => "critical path",
                Limit::Cores => "core time",
                Limit::Memory => "memory over time",
                Limit::Resource => "resources over time",
            },
            // A job that is refused has no end; the refusal stands beside this.  A job that the
            // demand test admits may end before: it has no place with a reserve of its own.
            plan_over_ns: answered.answer.as_ref().ok().filter(|it| !is_by_demand(it)).map(over_ns),
        }
    }

    fn text(&self) -> String {
        let (end, limit) = (nanoseconds(self.end_ns), self.limit);
        let end = format!("no plan of the search ends before {end} ({limit})");
        match self.plan_over_ns {
            None => end,
            Some(0) => format!("{end}: this plan is the best of them"),
            Some(ns) => format!("{end}: the best is {} shorter at most", nanoseconds(ns)),
        }
    }
}

/// Whether the demand test has admitted a job.
fn is_by_demand(planned: &Planned) -> bool {
    planned.strategy == Strategy::EarliestDeadline
}

/// A line below the name of the job.
fn row(what: &str, text: String) -> Vec<String> {
    vec![String::new(), what.into(), text]
}

impl PlanView {
    fn new(planned: &Planned, run: &Run, planning: &Planning, answered: &Answered) -> Self {
        let job = &answered.job;
        let attempts = planned.attempts.iter();
        let test = match () {
            () if job.best_effort => "best effort",
            () if is_by_demand(planned) => "demand",
            () => "search",
        };
        Self {
            test,
            strategy: planned.strategy.name(),
            end_ns: planned.end_ns,
            slack_ns: job.deadline_ns.saturating_sub(planned.end_ns),
            critical_path: critical::path(job, run),
            memory: NodeView::all(&planning.store, run),
            resources: ResourceView::all(&planning.store, run),
            attempts: attempts.map(|attempt| AttemptView::new(attempt, job)).collect(),
            cut_short: planned.cut_short.as_ref().map(|it| CutShortView::new(it, "a better plan")),
        }
    }

    /// Whether the demand test has admitted the job.
    fn is_by_demand(&self) -> bool {
        self.test == "demand"
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let (end, slack) = (nanoseconds(self.end_ns), nanoseconds(self.slack_ns));
        let end = match self.test {
            "best effort" => format!("{end}, as best effort: nothing is promised"),
            _ => format!("{end}, {slack} before the deadline"),
        };
        let mut rows = vec![row("planned end", end), row("strategy", self.strategy.into())];
        if self.is_by_demand() {
            let text = "demand test: what is planned already moves".into();
            rows.push(row("admitted by", text));
        }
        let path = critical::text(&self.critical_path).into_iter();
        rows.extend(path.enumerate().map(|(place, text)| {
            let what = if place == 0 { "critical path" } else { "" };
            row(what, text)
        }));
        rows.extend(AttemptView::text(&self.attempts).map(|text| row("tried", text)));
        rows.extend(self.cut_short.iter().map(|it| row("cut short", it.text())));
        let memory = self.memory.iter().map(|node| ("memory", node.text()));
        let resources = self.resources.iter().map(|resource| ("resource", resource.text()));
        for (what, lines) in memory.chain(resources) {
            let lines = lines.into_iter().enumerate();
            rows.extend(lines.map(|(place, text)| {
                let what = if place == 0 { what } else { "" };
                row(what, text)
            }));
        }
        rows
    }
}
