// SPDX-License-Identifier: GPL-2.0
//! The command that runs models of applications under a resource manager.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use pbs_apps::study::{Sample, TARGET};
use pbs_apps::{
    Allocation, Amr, Application, Choice, Malleable, Moldable, Predictable, Psa, Rigid, Shape,
    SpeedUp, Step, Updates, MOST_MIB, SECOND_NS,
};
use pbs_rms_apps::{Driver, News};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::Output;
use crate::quantities;
use crate::rms::numbers;

const APPS_HELP: &str = "\
Examples:
  pbsctl rms serve --cluster lab=1400 --interval 10ms &
  pbsctl apps run amr --speed 1000           A mesh, a thousand times faster
  pbsctl apps run psa --task 60s --speed 1000
  pbsctl apps run rigid --nodes 4 --duration 10min
  pbsctl apps run moldable --choice 8=10min --choice 4=15min
  pbsctl apps run predictable --phase 4=10min --phase 8=5min
  pbsctl apps run malleable --least 4 --most 64 --power-of-two --duration 1h

Nothing is computed: they only want what such applications want.";

#[derive(Args, Debug)]
#[command(after_help = APPS_HELP)]
pub(crate) struct AppsOptions {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Run one until it has ended, its session is over, or its time is
    Run(RunOptions),
}

#[derive(Args, Debug)]
struct RunOptions {
    #[command(subcommand)]
    model: Model,

    /// Where the manager listens
    #[arg(
        long,
        global = true,
        env = "PBS_RMS_SOCKET",
        value_name = "PATH",
        default_value = pbs_rms_wire::SOCKET
    )]
    socket: PathBuf,

    /// So many times faster than it would be
    #[arg(
        long,
        global = true,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000)
    )]
    speed: u64,

    /// Stop after so long, not made faster
    #[arg(long, global = true, value_name = "TIME", value_parser = quantities::ns)]
    stop: Option<u64>,
}

#[derive(Debug, Subcommand)]
enum Model {
    /// So many nodes for so long
    Rigid {
        /// How many
        #[arg(long, value_name = "N")]
        nodes: u64,
        /// For how long
        #[arg(long, value_name = "TIME", value_parser = quantities::ns)]
        duration: u64,
    },

    /// One of several ways: what ends first by its view, until it has started
    Moldable {
        /// A way, as 8=10min; several times
        #[arg(long, value_name = "NODES=TIME", required = true, value_parser = nodes_and_ns)]
        choice: Vec<(u64, u64)>,
    },

    /// At least so many nodes, and more as there are
    Malleable {
        /// How many at least
        #[arg(long, value_name = "N")]
        least: u64,
        /// How many more at most
        #[arg(long, value_name = "N")]
        most: u64,
        /// More only by a power of two
        #[arg(long)]
        power_of_two: bool,
        /// For how long
        #[arg(long, value_name = "TIME", value_parser = quantities::ns)]
        duration: u64,
    },

    /// Phases one after the other, all known beforehand
    Predictable {
        /// A phase, as 4=10min; several times
        #[arg(long, value_name = "NODES=TIME", required = true, value_parser = nodes_and_ns)]
        phase: Vec<(u64, u64)>,
    },

    /// A parameter sweep: tasks of one node without end, on whatever is left
    Psa {
        /// How long a task takes
        #[arg(long, value_name = "TIME", default_value = "10min", value_parser = quantities::ns)]
        task: u64,
    },

    /// An adaptive mesh of 1,000 steps, which needs other nodes for each
    Amr {
        /// Its pre-allocation over its equivalent static allocation
        #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
        factor: f64,
        /// Announce so long before that it needs other nodes
        #[arg(long, value_name = "TIME", value_parser = quantities::ns)]
        announce: Option<u64>,
        /// Use all of its pre-allocation, always
        #[arg(long, conflicts_with = "announce")]
        fixed: bool,
        /// Another seed, another mesh
        #[arg(long, value_name = "N", default_value_t = 1)]
        seed: u64,
    },
}

fn nodes_and_ns(text: &str) -> Result<(u64, u64), String> {
    let wrong = || "this is NODES=TIME, as 8=10min".to_string();
    let (nodes, time) = text.split_once('=').ok_or_else(wrong)?;
    let nodes = nodes.parse::<u64>().ok().filter(|&nodes| nodes > 0);
    Ok((nodes.ok_or_else(wrong)?, quantities::ns(time)?))
}

/// What happened, as JSON.
#[derive(Serialize)]
struct Line {
    at_ns: u64,
    event: &'static str,
    request: Option<u64>,
    nodes: Option<Vec<u32>>,
    why: Option<String>,
}

fn line(news: News) -> Line {
    let none = |at_ns, event| Line {
        at_ns,
        event,
        request: None,
        nodes: None,
        why: None,
    };
    match news {
        News::Started {
            at_ns,
            request,
            nodes,
        } => Line {
            request: Some(request),
            nodes: Some(nodes),
            ..none(at_ns, "started")
        },
        News::Refused { at_ns, why } => Line {
            why,
            ..none(at_ns, "refused")
        },
        News::Violation { at_ns } => none(at_ns, "violation"),
    }
}

fn text(line: &Line) -> String {
    let at_s = line.at_ns as f64 / SECOND_NS as f64;
    let what = match (line.event, line.request, &line.nodes) {
        ("started", Some(request), Some(nodes)) if nodes.is_empty() => {
            format!("request {request} has started")
        }
        ("started", Some(request), Some(nodes)) => {
            let count = nodes.len();
            format!("request {request} has {count} nodes: {}", numbers(nodes))
        }
        ("refused", ..) => {
            let why = line.why.as_deref().unwrap_or("there are not so many nodes");
            format!("refused: {why}")
        }
        ("violation", ..) => "nodes were kept for too long: the session is over".into(),
        (event, ..) => event.into(),
    };
    format!("{at_s:>10.1} s  {what}")
}

pub(crate) fn apps(out: Output, options: &AppsOptions) -> Result<ExitCode, Failure> {
    let What::Run(options) = &options.what;
    let (name, model): (&str, Box<dyn Application>) = match &options.model {
        Model::Rigid { nodes, duration } => ("rigid", Box::new(Rigid::new(*nodes, *duration))),
        Model::Moldable { choice } => {
            let choices = choice
                .iter()
                .map(|&(nodes, duration_ns)| Choice { nodes, duration_ns });
            ("moldable", Box::new(Moldable::new(choices.collect())))
        }
        Model::Malleable {
            least,
            most,
            power_of_two,
            duration,
        } => {
            let shape = match power_of_two {
                true => Shape::PowerOfTwo(*most),
                false => Shape::UpTo(*most),
            };
            (
                "malleable",
                Box::new(Malleable::new(*least, shape, *duration)),
            )
        }
        Model::Predictable { phase } => {
            let phases = phase.iter().map(|&(nodes, ns)| Step::new(ns, nodes));
            ("predictable", Box::new(Predictable::new(phases.collect())))
        }
        Model::Psa { task } => ("psa", Box::new(Psa::new(*task))),
        Model::Amr {
            factor,
            announce,
            fixed,
            seed,
        } => {
            let sample = Sample {
                seed: *seed,
                meshes: 1,
            };
            let sets = sample.working_sets();
            let set = sets
                .first()
                .ok_or_else(|| Failure::Usage("no mesh".into()))?;
            let steps = Allocation::new(set, MOST_MIB, TARGET, SpeedUp::default());
            let updates = match (fixed, announce) {
                (true, _) => Updates::Never,
                (false, Some(interval_ns)) => Updates::Announced {
                    interval_ns: *interval_ns,
                },
                (false, None) => Updates::Spontaneous,
            };
            let nodes = steps.overcommitted(*factor);
            ("amr", Box::new(Amr::new(steps, nodes, updates)))
        }
    };
    let failed = |failure: pbs_rms_wire::Failure| {
        let socket = options.socket.display();
        Failure::Failed(format!("{socket}: {failure}; pbsctl rms serve starts one"))
    };
    let driver = Driver::connect(&options.socket, name, model, options.speed);
    let mut driver = driver.map_err(failed)?;
    let begin = Instant::now();
    let stop = options.stop.map(Duration::from_nanos);
    let mut printed = Ok(());
    let ran = driver.run(
        |_| stop.is_none_or(|stop| begin.elapsed() < stop),
        |news| {
            let line = line(news);
            if printed.is_ok() {
                printed = out.print_line(&line, || text(&line));
            }
        },
    );
    ran.map_err(failed)?;
    printed?;
    driver.disconnect().map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}
