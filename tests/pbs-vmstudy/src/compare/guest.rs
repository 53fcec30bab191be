// SPDX-License-Identifier: GPL-2.0
//! One run: the jobs as processes of a class, with a normal task beside them.

use std::fs;
use std::sync::atomic::Ordering::SeqCst;

use pbs_plan::{Config, Dispatch};
use pbs_planner::plan_building::planner_config;
use pbs_uapi::Device;
use pbs_vmtest::check;
use pbs_vmtest::harness::{burn, now_ns, Child, Context, Gate, Verdict};
use pbs_vmtest::sched_attr::SchedAttr;
use pbs_vmtest::shared;

use super::plan::Planner;
use super::{Outcome, Run, Scheduler};
use crate::beside::{sleep_until, Cron};
use pbs_gen::deadline_jobs::{jobs, time_ns, DeadlineJob, Setting};

/// From the first look at the jobs to the first release: admission and the first plan take
/// place before.
const LEAD_NS: u64 = 1_500_000_000;
/// The first plan is made so long before the first release, as `pbsctl run` makes it.
const PLAN_BEFORE_NS: u64 = 150_000_000;

/// Reservation of the process that hands jobs to SCHED_DEADLINE: it must come before them.
const LAUNCHER_NS: (u64, u64) = (100_000, 10_000_000);
/// Time that a job needs beside its loop: it wakes up, and interrupts arrive meanwhile.
const OVERHEAD_NS: u64 = 200_000;
const OVERHEAD_PERMILLE: u64 = 20;

/// Context switches of children that were waited for.
fn children_switches() -> Result<u64, String> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: there is room for the answer, and zeroes are one, too.
    let usage = unsafe {
        let result = libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        check!(result == 0, "getrusage");
        usage.assume_init()
    };
    Ok((usage.ru_nvcsw + usage.ru_nivcsw) as u64)
}

/// Context switches of the machine since it was booted.
fn machine_switches() -> Result<u64, String> {
    let text = fs::read_to_string("/proc/stat").context("/proc/stat")?;
    let line = text.lines().find_map(|line| line.strip_prefix("ctxt "));
    line.and_then(|number| number.parse().ok()).ok_or_else(|| "/proc/stat has no ctxt".into())
}

/// Runs the jobs.
fn run(scheduler: Scheduler, setting: &Setting) -> Result<Run, String> {
    let jobs = jobs(&setting.into());
    let ends_ns = shared::of_processes(jobs.len())?;
    let base_ns = now_ns() + LEAD_NS;
    let mut planner = None;
    let mut accepted = vec![true; jobs.len()];
    if scheduler.asks_the_planner() {
        let asked = Planner::admit(&jobs, base_ns, scheduler.config())?;
        accepted = asked.accepted();
        planner = Some(asked);
    }
    let gate = Gate::new()?;
    let mut children = Vec::new();
    for ((job, end_ns), accepted) in jobs.iter().zip(ends_ns).zip(&accepted) {
        let work = || {
            sleep_until(base_ns + job.release_ns);
            burn(job.real_insns);
            end_ns.store(now_ns(), SeqCst);
        };
        // One that the launcher of SCHED_DEADLINE lets go waits at a gate of its own.
        let launched = scheduler.is_launched().then(Gate::new).transpose()?;
        let gate = launched.as_ref().unwrap_or(&gate);
        let child = accepted.then(|| gate.child(work)).transpose()?;
        children.push((child, launched));
    }
    let cron = Cron::new(base_ns)?;
    check!(now_ns() + PLAN_BEFORE_NS < base_ns, "the jobs are released before they are planned");
    sleep_until(base_ns - PLAN_BEFORE_NS);
    let (switches, all_switches) = (children_switches()?, machine_switches()?);
    let device = Device::open_path(pbs_uapi::DEVICE_PATH.as_ref(), true).context("device")?;
    let ended = || {
        let mut ends = ends_ns.iter().zip(&accepted);
        ends.all(|(end_ns, accepted)| !accepted || end_ns.load(SeqCst) != 0)
    };
    match scheduler {
        Scheduler::Plan
        | Scheduler::PlanUnanswered
        | Scheduler::PlanThesis
        | Scheduler::PlanT1Always => {
            let planner = planner.as_mut().ok_or("no planner")?;
            planner.begin(&device, children.iter().map(|(child, _)| child.as_ref()))?;
            gate.open()?;
            planner.follow(&device, scheduler != Scheduler::PlanUnanswered, ended)?;
        }
        Scheduler::Other | Scheduler::OtherAdmitted => gate.open()?,
        Scheduler::Fifo | Scheduler::FifoAdmitted => {
            for ((child, _), priority) in children.iter().zip(priorities(&jobs)) {
                if let Some(child) = child {
                    SchedAttr::fifo(priority).set(child.pid).context("SCHED_FIFO")?;
                }
            }
            gate.open()?;
        }
        Scheduler::Deadline | Scheduler::DeadlinePadded => {
            let padding_percent = match scheduler {
                Scheduler::DeadlinePadded => setting.error_percent,
                _ => 0,
            };
            accepted = launch(&jobs, &children, base_ns, padding_percent)?;
        }
    }
    for (child, _) in &mut children {
        if let Some(child) = child {
            child.wait()?;
        }
    }
    let switches = children_switches()? - switches;
    let all_switches = machine_switches()? - all_switches;
    let beside = cron.end()?;
    let plans = planner.map_or(0, |planner| planner.plans);
    if plans > 0 {
        device.drop_plan(0).context("drop the plan")?;
    }
    let outcomes: Vec<_> = jobs
        .into_iter()
        .zip(ends_ns)
        .zip(accepted)
        .map(|((job, end_ns), accepted)| Outcome {
            job,
            accepted,
            ended_ns: end_ns.load(SeqCst).checked_sub(base_ns),
        })
        .collect();
    for outcome in &outcomes {
        check!(
            outcome.accepted == outcome.ended_ns.is_some(),
            "a job that was to run did not end, or one that was not to run did"
        );
    }
    Ok(Run {
        scheduler,
        setting: *setting,
        switches,
        all_switches,
        plans,
        lasted_ns: outcomes.iter().filter_map(|job| job.ended_ns).max().unwrap_or(0),
        beside,
        jobs: outcomes,
    })
}

/// Priorities by job: the earlier its deadline, the greater.
fn priorities(jobs: &[DeadlineJob]) -> Vec<u32> {
    let later =
        |job: &DeadlineJob| jobs.iter().filter(|other| other.deadline_ns > job.deadline_ns).count();
    jobs.iter().map(|job| 1 + later(job) as u32).collect()
}

/// Hands each job to SCHED_DEADLINE when it is released, and lets it go; one that is not
/// admitted there is not run. By job: whether it was.
fn launch(
    jobs: &[DeadlineJob],
    children: &[(Option<Child>, Option<Gate>)],
    base_ns: u64,
    padding_percent: u64,
) -> Result<Vec<bool>, String> {
    let (runtime_ns, period_ns) = LAUNCHER_NS;
    let launcher = SchedAttr::deadline(runtime_ns, period_ns, period_ns);
    launcher.set(0).context("SCHED_DEADLINE of the launcher")?;
    let mut accepted = Vec::new();
    for (job, (child, gate)) in jobs.iter().zip(children) {
        let (Some(child), Some(gate)) = (child, gate) else {
            return Err("a job has no process".into());
        };
        sleep_until(base_ns + job.release_ns);
        let needs_ns = time_ns(job.planned_insns) * (100 + padding_percent) / 100;
        let runtime_ns = needs_ns + needs_ns * OVERHEAD_PERMILLE / 1000 + OVERHEAD_NS;
        let deadline_ns = job.deadline_ns - job.release_ns;
        let attr = SchedAttr::deadline(runtime_ns, deadline_ns, deadline_ns);
        let admitted = match attr.set(child.pid) {
            Ok(()) => true,
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => false,
            // It would need more than there is until its deadline.
            Err(error)
                if error.raw_os_error() == Some(libc::EINVAL) && runtime_ns > deadline_ns =>
            {
                false
            }
            Err(error) => return Err(format!("SCHED_DEADLINE: {error}")),
        };
        if admitted {
            gate.open()?;
        } else {
            child.kill(libc::SIGKILL)?;
        }
        accepted.push(admitted);
    }
    SchedAttr::other().set(0).context("SCHED_OTHER")?;
    Ok(accepted)
}

impl Scheduler {
    /// Whether only those jobs run that the planner admits.
    fn asks_the_planner(self) -> bool {
        matches!(
            self,
            Self::Plan
                | Self::PlanUnanswered
                | Self::PlanThesis
                | Self::PlanT1Always
                | Self::OtherAdmitted
                | Self::FifoAdmitted
        )
    }

    /// The configuration of its plans; for a class without plans, of the plans whose jobs it
    /// gets.
    fn config(self) -> Config {
        let planner = planner_config(Config::DEFAULT);
        let thesis = Config { dispatch: Dispatch::Thesis as u64, ..planner };
        match self {
            Self::PlanThesis => thesis,
            Self::PlanT1Always => Config { t1_spares_last_slot: 0, ..thesis },
            _ => planner,
        }
    }

    fn is_launched(self) -> bool {
        matches!(self, Self::Deadline | Self::DeadlinePadded)
    }
}

/// `pbs-vmstudy compare [--schedulers A,B] [--loads A,B] [--errors A,B] [--rogues] [--seeds N]`:
/// one line of JSON for each run.
pub fn measure(words: impl Iterator<Item = String>) -> Verdict {
    let asked = StudyOptions::of(words)?;
    for &load_percent in &asked.loads {
        for &(error_percent, rogue) in &asked.cases {
            for seed in 1..=asked.seeds {
                let setting = Setting { load_percent, error_percent, rogue, seed };
                for &scheduler in &asked.schedulers {
                    let run = run(scheduler, &setting)
                        .map_err(|why| format!("{}, {setting:?}: {why}", scheduler.name()))?;
                    println!("{}", serde_json::to_string(&run).map_err(|e| e.to_string())?);
                }
            }
        }
    }
    Ok(())
}

/// Runs of the study.
struct StudyOptions {
    schedulers: Vec<Scheduler>,
    loads: Vec<u64>,
    /// Greatest error in percent, and whether there is a rogue.
    cases: Vec<(u64, bool)>,
    seeds: u64,
}

impl StudyOptions {
    fn of(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut asked = Self {
            schedulers: Scheduler::ALL.to_vec(),
            loads: vec![100],
            cases: vec![(20, false), (20, true)],
            seeds: 1,
        };
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("{word} wants a value"))?;
            let values = value.split(',');
            match word.as_str() {
                "--schedulers" => {
                    asked.schedulers = values.map(scheduler).collect::<Result<_, _>>()?;
                }
                "--loads" => asked.loads = values.map(number).collect::<Result<_, _>>()?,
                "--cases" => asked.cases = values.map(case).collect::<Result<_, _>>()?,
                "--seeds" => asked.seeds = number(&value)?,
                _ => return Err(format!("unknown option {word}")),
            }
        }
        Ok(asked)
    }
}

fn scheduler(name: &str) -> Result<Scheduler, String> {
    let found = Scheduler::ALL.into_iter().find(|it| it.name() == name);
    found.ok_or_else(|| format!("no scheduler is called {name}"))
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().context(text)
}

/// `20`, or with a rogue `20r`.
fn case(text: &str) -> Result<(u64, bool), String> {
    match text.strip_suffix('r') {
        Some(percent) => Ok((number(percent)?, true)),
        None => Ok((number(text)?, false)),
    }
}
