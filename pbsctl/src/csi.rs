// SPDX-License-Identifier: GPL-2.0
//! `pbsctl cosched csi`: data that co-scheduled processes share, for operators.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use pbs_csi::{Entry, Listed, Options, Removal, State, Status, OVERDUE_FACTOR};
use pbs_text::{columns, grouped};
use pbs_uapi::clock::monotonic_ns;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{counted, Output};

const CSI_HELP: &str = "\
Examples:
  pbsctl cosched csi list             Show waiting and running tasks, and the master
  pbsctl cosched csi clean            Remove what dead processes left behind
  pbsctl cosched csi clean --overdue  Free devices of stopped and stuck processes
  pbsctl cosched csi clean --force    Remove everything, such as a damaged file";

/// Remedy for damaged files, as errors name it.
const CLEAN: &str = "pbsctl cosched csi clean --force";

/// Names of the models, by number.
const MODELS: [&str; 5] = ["CPU", "OMP", "GPU", "CUDA", "OCL"];

#[derive(Args, Debug)]
#[command(after_help = CSI_HELP)]
pub(crate) struct CsiOptions {
    #[command(subcommand)]
    what: CsiCommand,

    /// Directory of the shared files
    #[arg(
        long,
        global = true,
        env = "PBS_CSI",
        value_name = "DIRECTORY",
        default_value = pbs_csi::DEFAULT_DIRECTORY
    )]
    directory: PathBuf,

    /// Multiple of its expected runtime after which a running task is overdue; 0: never
    #[arg(long, global = true, value_name = "FACTOR", default_value_t = OVERDUE_FACTOR)]
    overdue_factor: u32,
}

#[derive(Debug, Subcommand)]
enum CsiCommand {
    /// Show the status, the devices and the tasks
    List,

    /// Remove what dead processes left behind
    Clean {
        /// Remove everything; processes that use it continue without co-scheduling
        #[arg(long)]
        force: bool,

        /// Remove overdue tasks of stopped or stuck processes, too; the processes continue
        #[arg(long, conflicts_with = "force")]
        overdue: bool,
    },
}

#[derive(Serialize)]
struct List {
    directory: PathBuf,
    is_there: bool,
    #[serde(flatten)]
    there: Option<There>,
}

#[derive(Serialize)]
struct There {
    status: &'static str,
    master_pid: Option<u32>,
    generation: u64,
    devices: Vec<Device>,
    tasks: Vec<Task>,
    csis: usize,
}

#[derive(Serialize)]
struct Device {
    name: String,
    models: Vec<&'static str>,
    count: u32,
}

#[derive(Serialize)]
struct Task {
    pid: u32,
    task: u64,
    state: &'static str,
    device: Option<String>,
    units: u32,
    models: Vec<&'static str>,
    is_scheduled: bool,
    is_ready: bool,
    round: Option<u32>,
    age_ns: u64,
    runtime_ns: u64,
    left_ns: Option<u64>,
    is_stopped: bool,
    is_overdue: bool,
    overdue_ns: Option<u64>,
}

#[derive(Serialize)]
struct Clean {
    directory: PathBuf,
    tasks: usize,
    csis: usize,
    csimf: bool,
    overdue: usize,
    left: Vec<Left>,
}

/// Overdue task that was not removed.
#[derive(Serialize)]
struct Left {
    pid: u32,
    task: u64,
    is_stopped: bool,
    overdue_ns: u64,
}

pub(crate) fn csi(out: Output, options: &CsiOptions) -> Result<ExitCode, Failure> {
    let mut shared = Options::new(&options.directory);
    shared.overdue_factor = (options.overdue_factor > 0).then_some(options.overdue_factor);
    let done = match options.what {
        CsiCommand::List => list(out, &shared),
        CsiCommand::Clean { force: true, .. } => clean(out, &shared, Removal::Everything),
        CsiCommand::Clean { overdue: true, .. } => clean(out, &shared, Removal::Overdue),
        CsiCommand::Clean { .. } => clean(out, &shared, Removal::Gone),
    };
    done.map_err(|failure| with_directory(failure, &options.directory))?;
    Ok(ExitCode::SUCCESS)
}

/// Adds the directory to the remedy that a failure names.
fn with_directory(failure: Failure, directory: &Path) -> Failure {
    match failure {
        Failure::Failed(message) if directory != Path::new(pbs_csi::DEFAULT_DIRECTORY) => {
            let command = format!("{CLEAN} --directory {}", quoted(directory));
            Failure::Failed(message.replace(CLEAN, &command))
        }
        failure => failure,
    }
}

/// A path as a shell takes it for one word.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:,@%".contains(c);
    if text.chars().all(is_plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

fn list(out: Output, shared: &Options) -> Result<(), Failure> {
    let there = pbs_csi::list(shared)?.map(|listed| There::new(listed, shared));
    let list = List { directory: shared.directory.clone(), is_there: there.is_some(), there };
    out.named("csi-list").print(&list, || match &list.there {
        None => format!("nothing in {}\n", list.directory.display()),
        Some(there) => there.text(),
    })
}

fn clean(out: Output, shared: &Options, removal: Removal) -> Result<(), Failure> {
    let cleaned = pbs_csi::clean(shared, removal)?;
    let now_ns = monotonic_ns();
    let left = cleaned.left.iter().map(|entry| Left {
        pid: entry.owner.pid,
        task: entry.task,
        is_stopped: entry.owner.is_stopped(),
        overdue_ns: entry.overdue_ns(now_ns, shared).unwrap_or(0),
    });
    let clean = Clean {
        directory: shared.directory.clone(),
        tasks: cleaned.entries,
        csis: cleaned.csis,
        csimf: cleaned.csimf,
        overdue: cleaned.overdue,
        left: left.collect(),
    };
    out.named("csi-clean").print(&clean, || {
        let what = match (removal == Removal::Everything, clean.csimf) {
            (false, _) => counted(clean.tasks as u64, "task", "tasks") + " of dead processes",
            (true, true) => "the management file".to_string(),
            (true, false) => "no management file".to_string(),
        };
        let files = counted(clean.csis as u64, "file of a task", "files of tasks");
        let mut text = match removal {
            Removal::Overdue => {
                let overdue = counted(clean.overdue as u64, "overdue task", "overdue tasks");
                format!("removed {what}, {overdue} and {files}\n")
            }
            _ => format!("removed {what} and {files}\n"),
        };
        for left in &clean.left {
            let (stopped, remedy) = if left.is_stopped {
                (", which is stopped,", "continue the process")
            } else {
                ("", "wait for its end")
            };
            text += &format!(
                "task {} of process {}{stopped} is overdue by {} ms: {remedy}, or free its \
                 device with --overdue\n",
                left.task,
                left.pid,
                grouped(left.overdue_ns / 1_000_000),
            );
        }
        text
    })
}

fn models(set: u32) -> Vec<&'static str> {
    let numbers = (0..).zip(MODELS);
    let in_set = numbers.filter(|(number, _)| set & 1 << number != 0);
    in_set.map(|(_, name)| name).collect()
}

impl There {
    fn new(listed: Listed, shared: &Options) -> Self {
        let (status, master_pid) = match listed.status {
            Status::NotStarted => ("NOT_STARTED", None),
            Status::Running(master) => ("RUNNING", Some(master.pid)),
            Status::Done => ("DONE", None),
        };
        let mut entries = listed.entries;
        // As in the queues: who is in execution is before all.
        entries.sort_by_key(|of| (of.device, of.state == State::Waiting, of.place()));
        let now_ns = monotonic_ns();
        let name = |device: u32| {
            let device = listed.devices.get(device as usize);
            device.map(|device| device.name.clone())
        };
        let tasks = entries
            .iter()
            .map(|entry| Task::new(entry, entry.device.and_then(name), now_ns, shared))
            .collect();
        let devices = listed.devices.iter().map(|device| Device {
            name: device.name.clone(),
            models: models(device.models),
            count: device.count,
        });
        Self {
            status,
            master_pid,
            generation: listed.generation,
            devices: devices.collect(),
            tasks,
            csis: listed.csis,
        }
    }
}

impl Task {
    fn new(entry: &Entry, device: Option<String>, now_ns: u64, shared: &Options) -> Self {
        let overdue_ns = entry.overdue_ns(now_ns, shared);
        let is_running = entry.state == State::InExecution;
        Self {
            pid: entry.owner.pid,
            task: entry.task,
            state: if !entry.owner.is_alive() {
                "gone"
            } else if is_running {
                "in execution"
            } else {
                "waiting"
            },
            device,
            units: entry.units,
            models: models(entry.capabilities),
            is_scheduled: entry.is_scheduled,
            is_ready: entry.is_ready,
            round: (entry.round > 0).then_some(entry.round),
            age_ns: now_ns.saturating_sub(entry.registered_ns),
            runtime_ns: entry.runtime_ns,
            left_ns: is_running.then(|| entry.expected_end_ns.saturating_sub(now_ns)),
            is_stopped: entry.owner.is_stopped(),
            is_overdue: overdue_ns.is_some(),
            overdue_ns,
        }
    }
}

impl Task {
    /// Returns the state with its flags.
    fn state_text(&self) -> String {
        let flags = [(self.is_overdue, ", overdue"), (self.is_stopped, ", stopped")];
        let flags = flags.iter().filter(|(is_set, _)| *is_set).map(|(_, text)| *text);
        std::iter::once(self.state).chain(flags).collect()
    }
}

impl There {
    fn text(&self) -> String {
        let mut text = format!("{}, generation {}", self.status, self.generation);
        if let Some(master) = self.master_pid {
            text += &format!(", process {master} is the master");
        }
        text += "\n";
        if !self.devices.is_empty() {
            let mut rows = vec![["device", "models", "count"].map(str::to_string).to_vec()];
            rows.extend(self.devices.iter().map(|device| {
                let models = device.models.join(",");
                vec![device.name.clone(), models, grouped(device.count)]
            }));
            text += &format!("\n{}", columns(&rows, 2));
        }
        if !self.tasks.is_empty() {
            let heads = [
                "process",
                "task",
                "state",
                "device",
                "models",
                "units",
                "round",
                "runtime ms",
                "age ms",
            ];
            let mut rows = vec![heads.map(str::to_string).to_vec()];
            let ms = |ns: u64| grouped(ns / 1_000_000);
            rows.extend(self.tasks.iter().map(|task| {
                vec![
                    task.pid.to_string(),
                    task.task.to_string(),
                    task.state_text(),
                    task.device.clone().unwrap_or("-".into()),
                    task.models.join(","),
                    grouped(task.units),
                    task.round.map_or("-".into(), grouped),
                    ms(task.runtime_ns),
                    ms(task.age_ns),
                ]
            }));
            text += &format!("\n{}", columns(&rows, 5));
        }
        text
    }
}
