// SPDX-License-Identifier: GPL-2.0
//! The command that makes a trace for Perfetto.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use pbs_node::{observe, Observed, Until};
use pbs_plan::{Config, Plan};
use pbs_report::trace::Trace;
use pbs_report::{EventView, Facts, Opened, Source};
use pbs_uapi::Event;
use serde_json::json;

use crate::failure::Failure;
use crate::files;
use crate::output::{counted, to_json_line, Output};
use crate::quantities;

const TRACE_HELP: &str = "\
Examples:
  pbsctl run plan.toml --report run.json
  pbsctl node trace run.json -o trace.json             Convert a recording
  pbsctl node trace -o trace.json                      Convert the events that the kernel holds
  pbsctl node trace --follow --seconds 10 -o trace.json  ... and new ones
  pbsctl --json node events > events.json
  pbsctl node trace events.json --plan plan.toml --rate 250000 -o trace.json

Open the file with https://ui.perfetto.dev; it stays on your machine. Each CPU has a track of the
plan above one of the actual run, with preemptions and signals below, and counters of lateness
and stress. The format is Chrome's JSON, which other viewers read too.

Without FILE the plans are read from the kernel, which has no names; --plan adds them.";

#[derive(Args, Debug)]
#[command(after_help = TRACE_HELP)]
pub(crate) struct TraceOptions {
    /// Recording of run --report or --json sim, or output of --json node events; - reads standard
    /// input. Without it, the events that the kernel holds
    pub(crate) file: Option<PathBuf>,

    /// Write to FILE instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Plan of the events, in TOML or JSON; may be repeated, in the order of coming into force
    #[arg(long = "plan", value_name = "FILE")]
    pub(crate) plans: Vec<PathBuf>,

    /// Instructions that a CPU retires in a millisecond, for a file of events
    #[arg(long, value_name = "N", value_parser = quantities::rate)]
    pub(crate) rate: Option<u64>,

    /// Follow new events until interrupted
    #[arg(long, short, conflicts_with = "file")]
    pub(crate) follow: bool,

    /// Follow for this many seconds, or for a time with a unit, such as 250ms
    #[arg(long, value_name = "S", requires = "follow", value_parser = quantities::interval)]
    pub(crate) seconds: Option<u64>,
}

pub(crate) fn trace(
    out: Output,
    device: &Path,
    options: &TraceOptions,
) -> Result<ExitCode, Failure> {
    let plans = options.plans.iter().map(|file| files::read_plan(file));
    let plans: Vec<_> = plans.collect::<Result<_, _>>()?;
    let (opened, missing) = match &options.file {
        Some(file) => (recorded(file, plans, options.rate)?, Vec::new()),
        None => {
            let until = match (options.follow, options.seconds) {
                (false, _) => Until::Now,
                (true, Some(ns)) => Until::After(Duration::from_nanos(ns)),
                (true, None) => Until::Stopped,
            };
            let Observed { opened, missing } = observe(device, plans, until)?;
            (opened, missing)
        }
    };
    let trace = Trace::new(&opened);
    let json = to_json_line(&trace);
    let missing: Vec<_> = missing.iter().collect();
    match &options.output {
        Some(file) => {
            files::write(file, &json)?;
            let facts = json!({
                "written": file,
                "bytes": json.len(),
                "trace_events": trace.trace_events.len(),
                "plans": opened.plans.iter().map(|plan| plan.plan_id).collect::<Vec<_>>(),
                "missing_plans": missing,
            });
            out.print(&facts, || {
                let file = file.display();
                let mut text = format!(
                    "{file}: {} of {}; open it with https://ui.perfetto.dev\n",
                    counted(trace.trace_events.len() as u64, "trace event", "trace events"),
                    counted(opened.plans.len() as u64, "plan", "plans"),
                );
                for plan_id in &missing {
                    text += &format!(
                        "Plan {plan_id} was replaced before it could be read, and is left out; \
                         name its file with --plan\n"
                    );
                }
                text
            })?;
        }
        None => out.print_foreign(&trace, || json + "\n")?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads a file: a recording, or the lines of `pbsctl --json events`.
fn recorded(file: &Path, plans: Vec<Plan>, rate: Option<u64>) -> Result<Opened, Failure> {
    let text = files::read(file)?;
    let name = files::name(file);
    let failed = |message: String| Failure::Failed(format!("{name}: {message}"));
    if text.trim().is_empty() {
        return Err(failed(crate::report::EMPTY.into()));
    }
    let first = text.lines().next().unwrap_or_default();
    if serde_json::from_str::<EventView>(first).is_err() || !first.contains("\"kind\"") {
        if !plans.is_empty() || rate.is_some() {
            return Err(Failure::Usage(format!(
                "--plan and --rate are only for events, as pbsctl --json node events prints them; \
                 {name} is a recording, which has its plans and its rate; leave them out"
            )));
        }
        return Opened::from_json(&text).map_err(failed);
    }
    let Some(rate_insns_per_ms) = rate else {
        return Err(Failure::Usage(
            "the file has no rate of its node; add --rate (rate_insns_per_ms of pbsctl node stat \
             there)"
                .into(),
        ));
    };
    if plans.is_empty() {
        return Err(Failure::Usage(
            "the file has no plans; add each plan with --plan, in the order in which they came \
             into force"
                .into(),
        ));
    }
    let event = |(number, line): (usize, &str)| {
        let view: EventView = serde_json::from_str(line)
            .map_err(|error| failed(format!("line {}: {error}", number + 1)))?;
        Event::try_from(&view).map_err(|words| failed(format!("line {}: {words}", number + 1)))
    };
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    Ok(Opened {
        deadlines: Vec::new(),
        plans,
        config: Config::DEFAULT,
        events: lines.map(event).collect::<Result<_, _>>()?,
        facts: Facts { rate_insns_per_ms, ..Facts::default() },
        source: Source::Run,
    })
}
