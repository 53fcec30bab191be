// SPDX-License-Identifier: GPL-2.0
//! The command that records the inputs of the policy.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use clap::Args;
use pbs_launch::signals::{wait, Signals};
use pbs_record::Recorder;
use pbs_uapi::Inputs;
use serde::Serialize;

use crate::failure::{Failure, INCOMPLETE};
use crate::output::{counted, Output};
use crate::quantities;

const RECORD_HELP: &str = "\
Examples:
  pbsctl node record -o run.inputs -- pbsctl run plan.toml
  pbsctl node record -o run.inputs --for 10
  pbsctl node record -o run.inputs            Until interrupted
  pbsctl node replay run.inputs

Records all inputs of the policy of each CPU and its results, as the kernel sees them. A replay
passes the inputs to the same code again.

The recording may begin in the middle of a plan: a snapshot of each CPU takes the place of what
came before. Start it before you load the plan if you want to replay with --config or --policy.
Recording makes a switch a few percent longer. It needs root.";

#[derive(Args, Debug)]
#[command(after_help = RECORD_HELP)]
pub(crate) struct RecordOptions {
    /// File for the recording
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,

    /// Record for this many seconds, or for a time with a unit, such as 250ms
    #[arg(long = "for", value_name = "S", value_parser = quantities::interval)]
    for_ns: Option<u64>,

    /// Device with the inputs of the policy
    #[arg(long, value_name = "PATH", default_value = pbs_uapi::INPUTS_PATH, env = "PBS_INPUTS")]
    inputs: PathBuf,

    /// Command to run; the recording ends with it
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Interval at which the rings are read: they hold more inputs than a CPU has meanwhile.
const EVERY_MS: i32 = 10;

/// Summary of a recording.
#[derive(Serialize)]
struct Recorded<'a> {
    written: &'a Path,
    inputs: u64,
    lost: u64,
    plans: u64,
    snapshots: u64,
    without_snapshot: Vec<u32>,
    snapshots_in_vain: u64,
    command_status: Option<i32>,
}

pub(crate) fn record(out: Output, options: &RecordOptions) -> Result<ExitCode, Failure> {
    let failed = |error: std::io::Error| Failure::file(&options.output, &error);
    let signals = Signals::new().map_err(|error| Failure::file("signals", &error))?;
    let inputs = Inputs::open_path(&options.inputs)
        .map_err(|error| pbs_node::Error::Device(options.inputs.clone(), error))?;
    let file = File::create(&options.output).map_err(failed)?;
    let mut recorder = Recorder::new(inputs, BufWriter::new(file)).map_err(failed)?;
    let mut command = start(&options.command)?;
    let until = options.for_ns.map(|ns| Instant::now() + Duration::from_nanos(ns));
    let mut status = None;
    loop {
        recorder.take().map_err(failed)?;
        if until.is_some_and(|until| Instant::now() >= until) {
            break;
        }
        wait(&signals, &signals, EVERY_MS).map_err(|error| Failure::file("signals", &error))?;
        let stop = signals.want_stop();
        if stop.map_err(|error| Failure::file("signals", &error))? {
            break;
        }
        if let Some(child) = &mut command {
            status = child.try_wait().map_err(command_failed)?;
            if status.is_some() {
                break;
            }
        }
    }
    recorder.take().map_err(failed)?;
    let recorded = Recorded {
        written: &options.output,
        inputs: recorder.taken(),
        lost: recorder.lost(),
        plans: recorder.plans(),
        snapshots: recorder.snapshots(),
        without_snapshot: recorder.without_snapshot().iter().copied().collect(),
        snapshots_in_vain: recorder.in_vain().values().sum(),
        command_status: status.and_then(|status| status.code()),
    };
    recorder.end().map_err(failed)?;
    if let (Some(child), None) = (&mut command, status) {
        // It goes on without being recorded.
        status = Some(child.wait().map_err(command_failed)?);
    }
    out.print(&recorded, || text(&recorded))?;
    Ok(code(&recorded, status))
}

fn start(command: &[String]) -> Result<Option<Child>, Failure> {
    let Some((program, arguments)) = command.split_first() else {
        return Ok(None);
    };
    let started = Command::new(program).args(arguments).spawn();
    let started = started.map_err(|error| Failure::Failed(format!("{program}: {error}")))?;
    Ok(Some(started))
}

fn command_failed(error: std::io::Error) -> Failure {
    Failure::Failed(format!("the command: {error}"))
}

fn text(recorded: &Recorded<'_>) -> String {
    let mut text = format!(
        "{}: {} of {}; replay it with pbsctl node replay\n",
        recorded.written.display(),
        counted(recorded.inputs, "input", "inputs"),
        counted(recorded.plans, "plan", "plans"),
    );
    if recorded.lost > 0 {
        text += &format!(
            "{} missed, since the recorder got no CPU for too long: a replay continues with the \
             next snapshot, or the next plan of a CPU without one\n",
            counted(recorded.lost, "input was", "inputs were"),
        );
    }
    if recorded.snapshots_in_vain > 0 {
        text += &format!(
            "{} in vain, as inputs were missed again at once: the recorder falls behind, and took \
             fewer snapshots; give it more CPU time, for example with nice -n -10\n",
            counted(recorded.snapshots_in_vain, "snapshot was", "snapshots were"),
        );
    }
    for cpu in &recorded.without_snapshot {
        text += &format!(
            "CPU {cpu}: its plan was not recorded from the middle on, as it is too large for a \
             snapshot or the kernel is too old; start recording before you load the plan\n"
        );
    }
    text
}

fn code(recorded: &Recorded<'_>, status: Option<ExitStatus>) -> ExitCode {
    match status {
        Some(status) if !status.success() => {
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            ExitCode::from(code.unwrap_or(1))
        }
        _ if recorded.lost > 0 => ExitCode::from(INCOMPLETE),
        _ => ExitCode::SUCCESS,
    }
}
