// SPDX-License-Identifier: GPL-2.0
//! The command that runs models of applications under a resource manager.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use pbs_launch::signals::Signals;
use pbs_node_api::Submission;
use pbs_rms_api::Cluster;
use pbs_rms_apps::live::{Driver, News, RunEnd};
use pbs_rms_apps::node::Jobs;
use pbs_rms_apps::study::{Sample, TARGET};
use pbs_rms_apps::{
    Allocation, Amr, Application, Choice, Malleable, Moldable, Predictable, Psa, Rigid, Shape,
    SpeedUp, Staged, Step, Updates, FOREVER, MOST_MIB, SECOND_NS,
};
use serde::Serialize;

use crate::failure::Failure;
use crate::manager::{numbers, ManagerSocket};
use crate::output::{counted, Output};
use crate::quantities;
use crate::service::submission;
use crate::terms::Terms;

const APPS_HELP: &str = "\
Examples:
  pbsctl rms serve --cluster lab=1400 --interval 10ms &
  pbsctl rms apps run amr --speed 1000       An adaptive mesh, a thousand times faster
  pbsctl rms apps run psa --task 60s --speed 1000
  pbsctl rms apps run rigid --nodes 4 --duration 10min
  pbsctl rms apps run moldable --choice 8=10min --choice 4=15min
  pbsctl rms apps run predictable --phase 4=10min --phase 8=5min
  pbsctl rms apps run malleable --least 4 --most 64 --power-of-two --duration 1h

  pbsctl rms apps run psa --task 10s --count 100 --job task.toml
  pbsctl rms apps run staged --stage 1=20s --stage 3=10s --announce 5s --job part.toml

Without --job nothing is computed: the models only request nodes as such applications would.
With --job each task is a job of this node's service (see pbs-job(5)). It is planned on the CPU
that the application received for it, and finds the number of the task in PBS_TASK.";

#[derive(Args, Debug)]
#[command(after_help = APPS_HELP)]
pub(crate) struct AppsOptions {
    #[command(subcommand)]
    what: AppsCommand,
}

#[derive(Debug, Subcommand)]
enum AppsCommand {
    /// Run a model until it ends, its session ends, or the time of --stop is over
    Run(RunOptions),
}

#[derive(Args, Debug)]
struct RunOptions {
    #[command(subcommand)]
    model: Model,

    #[command(flatten)]
    manager: ManagerSocket,

    /// Run this many times faster than real time
    #[arg(
        long,
        global = true,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000)
    )]
    speed: u64,

    /// Stop after this time, which --speed does not shorten
    #[arg(long, global = true, value_name = "TIME", value_parser = quantities::ns)]
    stop: Option<u64>,

    /// Job to run for each task. With several stages, repeat the option: the last job also serves
    /// all later stages
    #[arg(long, global = true, value_name = "FILE", conflicts_with = "speed")]
    job: Vec<PathBuf>,

    /// Socket of the service of this node, which runs the jobs
    #[arg(
        long,
        global = true,
        env = "PBS_SOCKET",
        value_name = "PATH",
        default_value = pbs_node_api::SOCKET
    )]
    node: PathBuf,
}

#[derive(Debug, Subcommand)]
enum Model {
    /// A fixed number of nodes for a fixed time
    Rigid {
        /// Number of nodes
        #[arg(long, value_name = "N")]
        nodes: u64,
        /// Run time
        #[arg(long, value_name = "TIME", value_parser = quantities::ns)]
        duration: u64,
    },

    /// One of several shapes: the one that ends first, chosen again until it has started
    Moldable {
        /// A shape, such as 8=10min; may be repeated
        #[arg(long, value_name = "NODES=TIME", required = true, value_parser = nodes_and_ns)]
        choice: Vec<(u64, u64)>,
    },

    /// A minimum of nodes, and more while there are free ones
    Malleable {
        /// Minimum number of nodes
        #[arg(long, value_name = "N")]
        least: u64,
        /// Maximum number of additional nodes
        #[arg(long, value_name = "N")]
        most: u64,
        /// Use additional nodes only in numbers that are powers of two
        #[arg(long)]
        power_of_two: bool,
        /// Run time
        #[arg(long, value_name = "TIME", value_parser = quantities::ns)]
        duration: u64,
    },

    /// Phases one after the other, all declared in advance
    Predictable {
        /// A phase, such as 4=10min; may be repeated
        #[arg(long, value_name = "NODES=TIME", required = true, value_parser = nodes_and_ns)]
        phase: Vec<(u64, u64)>,
    },

    /// A parameter sweep: endless tasks of one node each, on all nodes that others leave
    Psa {
        /// Run time of a task; an estimate if tasks are jobs
        #[arg(long, value_name = "TIME", default_value = "10min", value_parser = quantities::ns)]
        task: u64,
        /// End after this many jobs
        #[arg(long, value_name = "N", requires = "job")]
        count: Option<u64>,
    },

    /// Stages of jobs, each with a number of CPUs and an approximate run time
    ///
    /// A stage runs as many jobs at a time as it has CPUs. If it will need its CPUs for longer than
    /// declared, it announces that as soon as it expects it.
    #[command(arg_required_else_help = true)]
    Staged {
        /// A stage, such as 2=20s; may be repeated
        #[arg(long, value_name = "NODES=TIME", required = true, value_parser = nodes_and_ns)]
        stage: Vec<(u64, u64)>,
        /// Announce this long in advance that the next stage needs more CPUs
        #[arg(long, value_name = "TIME", value_parser = quantities::ns)]
        announce: Option<u64>,
    },

    /// An adaptive mesh of 1,000 steps, each with another number of nodes
    Amr {
        /// Ratio of the pre-allocation to the equivalent static allocation
        #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
        factor: f64,
        /// Announce this long in advance that other nodes are needed
        #[arg(long, value_name = "TIME", value_parser = quantities::ns)]
        announce: Option<u64>,
        /// Always use the whole pre-allocation
        #[arg(long, conflicts_with = "announce")]
        fixed: bool,
        /// Seed of the mesh
        #[arg(long, value_name = "N", default_value_t = 1)]
        seed: u64,
    },
}

fn nodes_and_ns(text: &str) -> Result<(u64, u64), String> {
    let wrong = || "write NODES=TIME, such as 8=10min".to_string();
    let (nodes, time) = text.split_once('=').ok_or_else(wrong)?;
    let nodes = nodes.parse::<u64>().ok().filter(|&nodes| nodes > 0);
    Ok((nodes.ok_or_else(wrong)?, quantities::ns(time)?))
}

/// An event, as JSON.
#[derive(Default, Serialize)]
struct Line {
    at_ns: u64,
    event: &'static str,
    request: Option<u64>,
    nodes: Option<Vec<u32>>,
    node_count: Option<u64>,
    announce_ns: Option<u64>,
    duration_ns: Option<u64>,
    task: Option<u64>,
    node: Option<u32>,
    outcome: Option<String>,
    why: Option<String>,
}

/// Formats an event as JSON and in words.
fn line(news: News) -> (Line, String) {
    let of = |at_ns, event| Line { at_ns, event, ..Line::default() };
    match news {
        News::Started { at_ns, request, nodes } => {
            let text = match nodes.len() {
                0 => format!("request {request} has started"),
                count => {
                    let count = counted(count as u64, "node", "nodes");
                    format!("request {request} has {count}: {}", numbers(&nodes))
                }
            };
            let line = Line { request: Some(request), nodes: Some(nodes), ..of(at_ns, "started") };
            (line, text)
        }
        News::Updated { at_ns, request, nodes, announce_ns, duration_ns } => {
            let ns = |ns| seconds_text(ns);
            let when = match announce_ns {
                0 => "now".into(),
                announce_ns => format!("in {}", ns(announce_ns)),
            };
            let long = match duration_ns {
                FOREVER => String::new(),
                duration_ns => format!(" for {}", ns(duration_ns)),
            };
            let line = Line {
                request: Some(request),
                node_count: Some(nodes),
                announce_ns: Some(announce_ns),
                duration_ns: Some(duration_ns).filter(|&ns| ns != FOREVER),
                ..of(at_ns, "updated")
            };
            let nodes = counted(nodes, "node", "nodes");
            (line, format!("request {request} will have {nodes} {when}{long}"))
        }
        News::TaskStarted { at_ns, task, node } => {
            let line = Line { task: Some(task), node: Some(node), ..of(at_ns, "task-started") };
            (line, format!("task {task} is planned on node {node}"))
        }
        News::TaskEnded { at_ns, task, outcome } => {
            let text = format!("task {task}: {outcome}");
            let line = Line { task: Some(task), outcome: Some(outcome), ..of(at_ns, "task-ended") };
            (line, text)
        }
        News::Trouble { at_ns, why } => {
            let text = format!("the state of tasks is unknown: {why}");
            let why = Some(why);
            (Line { why, ..of(at_ns, "trouble") }, text)
        }
        News::Refused { at_ns, why } => {
            let because = why.as_ref().map_or(String::new(), |why| format!(": {why}"));
            let text = format!("refused{because}");
            (Line { why, ..of(at_ns, "refused") }, text)
        }
        News::Violation { at_ns, why } => {
            let because = why.as_ref().map_or(String::new(), |why| format!(": {why}"));
            let text =
                format!("nodes were not released in time, and the session has ended{because}");
            (Line { why, ..of(at_ns, "violation") }, text)
        }
    }
}

/// Tasks that are jobs of this machine's service.
fn jobs(
    node: &Path,
    cluster: &Cluster,
    submissions: Vec<(u64, Submission)>,
) -> Result<Jobs, Failure> {
    let Some(cpus) = cluster.cpus.clone() else {
        let name = &cluster.name;
        return Err(Failure::Failed(format!(
            "the nodes of cluster {name} are not CPUs of this machine; start their manager with \
             --cluster {name}=cpus:1-3, or with other CPUs that it may allocate"
        )));
    };
    Jobs::new(node, cpus, submissions)
        .map_err(|failure| Failure::Failed(format!("{}: {failure}", node.display())))
}

fn seconds_text(ns: u64) -> String {
    format!("{:.1} s", ns as f64 / SECOND_NS as f64)
}

/// Number of the first task of each job.
fn first_tasks(model: &Model, jobs: &[PathBuf]) -> Result<Vec<u64>, Failure> {
    let stages: Vec<u64> = match model {
        Model::Psa { .. } => vec![u64::MAX],
        Model::Staged { stage, .. } => stage.iter().map(|stage| stage.0).collect(),
        _ if jobs.is_empty() => return Ok(Vec::new()),
        _ => {
            let why = "only the tasks of psa and staged can be jobs; leave out --job";
            return Err(Failure::Usage(why.into()));
        }
    };
    if jobs.len() > stages.len() {
        let why = "there are more --job than --stage options; leave some jobs out";
        return Err(Failure::Usage(why.into()));
    }
    if jobs.is_empty() && matches!(model, Model::Staged { .. }) {
        let why = "staged needs a job for its tasks; add --job FILE";
        return Err(Failure::Usage(why.into()));
    }
    let mut first = 0_u64;
    let firsts = stages.into_iter().map(|tasks| {
        let this = first;
        first = first.saturating_add(tasks);
        this
    });
    Ok(firsts.take(jobs.len()).collect())
}

pub(crate) fn apps(out: Output, options: &AppsOptions) -> Result<ExitCode, Failure> {
    let AppsCommand::Run(options) = &options.what;
    let (name, model): (&str, Box<dyn Application>) = match &options.model {
        Model::Rigid { nodes, duration } => ("rigid", Box::new(Rigid::new(*nodes, *duration))),
        Model::Moldable { choice } => {
            let choices = choice.iter().map(|&(nodes, duration_ns)| Choice { nodes, duration_ns });
            ("moldable", Box::new(Moldable::new(choices.collect())))
        }
        Model::Malleable { least, most, power_of_two, duration } => {
            let shape = if *power_of_two { Shape::PowerOfTwo(*most) } else { Shape::UpTo(*most) };
            ("malleable", Box::new(Malleable::new(*least, shape, *duration)))
        }
        Model::Predictable { phase } => {
            let phases = phase.iter().map(|&(nodes, ns)| Step::new(ns, nodes));
            ("predictable", Box::new(Predictable::new(phases.collect())))
        }
        Model::Psa { task, .. } if options.job.is_empty() => ("psa", Box::new(Psa::new(*task))),
        Model::Psa { task, count } => {
            let sweep = Psa::of_jobs(*task, count.unwrap_or(u64::MAX));
            ("psa", Box::new(sweep))
        }
        Model::Staged { stage, announce } => {
            let stages = stage.iter().map(|&(nodes, ns)| Step::new(ns, nodes));
            let staged = Staged::new(stages.collect(), announce.unwrap_or(0));
            ("staged", Box::new(staged))
        }
        Model::Amr { factor, announce, fixed, seed } => {
            let sample = Sample { seed: *seed, meshes: 1 };
            let sets = sample.working_sets();
            let set = sets.first().ok_or_else(|| Failure::Usage("no mesh".into()))?;
            let steps = Allocation::new(set, MOST_MIB, TARGET, SpeedUp::default());
            let updates = match (fixed, announce) {
                (true, _) => Updates::Never,
                (false, Some(interval_ns)) => Updates::Announced { interval_ns: *interval_ns },
                (false, None) => Updates::Spontaneous,
            };
            let nodes = steps.overcommitted(*factor);
            ("amr", Box::new(Amr::new(steps, nodes, updates)))
        }
    };
    let failed = |failure| failed(&options.manager.socket, &failure);
    let firsts = first_tasks(&options.model, &options.job)?;
    let submissions = options.job.iter().map(|file| submission(file, &Terms::default()));
    let submissions: Vec<_> = submissions.collect::<Result<_, _>>()?;
    let submissions: Vec<_> = firsts.into_iter().zip(submissions).collect();
    let signals = Signals::new().map_err(|error| Failure::file("signals", &error))?;
    let driver = Driver::connect(&options.manager.socket, name, model, options.speed);
    let mut driver = driver.map_err(failed)?;
    if !submissions.is_empty() {
        match jobs(&options.node, driver.cluster(), submissions) {
            Ok(jobs) => driver.run_tasks_by(Box::new(jobs)),
            Err(failure) => {
                // The session has had nothing yet.
                let _ = driver.disconnect();
                return Err(failure);
            }
        }
    }
    let begin = Instant::now();
    let stop = options.stop.map(Duration::from_nanos);
    let mut printed = Ok(());
    let (mut bad_tasks, mut refused) = (0, None);
    let ran = driver.run(
        |_| {
            let is_time = stop.is_some_and(|stop| begin.elapsed() >= stop);
            !is_time && !signals.want_stop().unwrap_or(true)
        },
        |news| {
            match &news {
                News::TaskEnded { outcome, .. } => bad_tasks += u64::from(is_bad(outcome)),
                News::Refused { why, .. } => refused.clone_from(why),
                _ => {}
            }
            let (line, text) = line(news);
            if printed.is_ok() {
                let at = line.at_ns as f64 / SECOND_NS as f64;
                printed = out.print_line(&line, || format!("{at:>10.1} s  {text}"));
            }
        },
    );
    // Tasks end with the session, whatever became of that.
    let ended = driver.disconnect();
    let ran = ran.map_err(failed)?;
    printed?;
    ended.map_err(failed)?;
    match failure_of(ran, bad_tasks, refused) {
        Some(why) => Err(Failure::Failed(why)),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn failed(socket: &Path, failure: &pbs_rms_api::Failure) -> Failure {
    let hint = match failure {
        pbs_rms_api::Failure::Connection(_) => "; start a resource manager with pbsctl rms serve",
        pbs_rms_api::Failure::Refused(_) => "",
    };
    Failure::Failed(format!("{}: {failure}{hint}", socket.display()))
}

/// Whether a task has failed. One that its application has killed, or of which nobody knows how it
/// has ended, has not.
fn is_bad(outcome: &str) -> bool {
    !matches!(outcome, "complete" | "killed" | "unknown")
}

/// Describes the failure of a run, if it has not done what it was to do.
fn failure_of(ran: RunEnd, bad_tasks: u64, refused: Option<String>) -> Option<String> {
    let tasks = || {
        let tasks = counted(bad_tasks, "task has", "tasks have");
        (bad_tasks > 0).then(|| format!("{tasks} failed"))
    };
    match ran {
        RunEnd::Complete | RunEnd::Stopped => tasks(),
        RunEnd::Refused => {
            let why = refused.unwrap_or_else(|| "the manager gave no reason".into());
            Some(format!("its requests were refused: {why}"))
        }
        RunEnd::Violation => {
            Some("nodes were not released in time, and the session has ended".into())
        }
        RunEnd::Closed => Some("someone else has ended the session".into()),
        RunEnd::Disconnected => Some(
            "the resource manager has closed the connection; start it with pbsctl rms serve".into(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_run_that_has_done_its_work_succeeds() {
        let of = |ran, bad_tasks| failure_of(ran, bad_tasks, Some("11 nodes".into()));
        assert_eq!([of(RunEnd::Complete, 0), of(RunEnd::Stopped, 0)], [None, None]);
        assert_eq!(of(RunEnd::Complete, 1).as_deref(), Some("1 task has failed"));
        assert_eq!(of(RunEnd::Stopped, 2).as_deref(), Some("2 tasks have failed"));
        let all = [RunEnd::Refused, RunEnd::Violation, RunEnd::Closed, RunEnd::Disconnected];
        assert!(all.iter().all(|&ran| of(ran, 0).is_some()));
        assert!(of(RunEnd::Refused, 0).is_some_and(|why| why.ends_with("11 nodes")));
        assert_eq!(["complete", "unknown", "exit status 1"].map(is_bad), [false, false, true]);
    }

    #[test]
    fn a_refusal_is_no_missing_manager() {
        let refusal = pbs_rms_api::Refusal::TooManySessions { most: 3 };
        let text = |failure| match failed(Path::new("rms.sock"), &failure) {
            Failure::Failed(text) => text,
            other => panic!("{other:?}"),
        };
        let refused = text(pbs_rms_api::Failure::Refused(refusal));
        assert!(refused.ends_with("end some first"), "{refused}");
        let io = std::io::Error::from(std::io::ErrorKind::NotFound);
        let gone = text(pbs_rms_api::Failure::Connection(io.into()));
        assert!(gone.ends_with("start a resource manager with pbsctl rms serve"), "{gone}");
    }

    #[test]
    fn reasons_of_the_manager_are_passed_on() {
        let news = News::Refused { at_ns: 0, why: Some("its predecessor has ended".into()) };
        assert_eq!(line(news).1, "refused: its predecessor has ended");
        assert_eq!(line(News::Refused { at_ns: 0, why: None }).1, "refused");
    }
}
