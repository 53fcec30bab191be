// SPDX-License-Identifier: GPL-2.0
//! Figures of plans besides the time that they take: lines of `{name, value, unit}`, for `make
//! bench-planner`. Documentation/planner-benchmarks.rst describes the measurements.

mod scenes;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use pbs_job::glass::{import_job, import_machine, Files};
use pbs_job::{Job, Machine};
use pbs_planner::{reserve, Balancing, Options, Request, Run, RunId, Store};

/// This program, called so, plans the large net and says what memory that took.
const LARGE_NET: &str = "large-net";
/// Id of the run, which is alone in its store.
const RUN: RunId = RunId(0);

fn main() -> Result<(), Box<dyn Error>> {
    if env::args().nth(1).as_deref() == Some(LARGE_NET) {
        println!("{}", large_net_peak_kib()?);
        return Ok(());
    }
    family_job()?;
    // A process of its own has no memory but for this.
    let child = Command::new(env::current_exe()?).arg(LARGE_NET).output()?;
    let peak_kib: f64 = String::from_utf8(child.stdout)?.trim().parse()?;
    figure("planner/large-net-memory", peak_kib * 1024.0 / 1e6, "MB");
    Ok(())
}

fn figure(name: &str, value: f64, unit: &str) {
    println!(r#"{{"name":"{name}","value":{value},"unit":"{unit}"}}"#);
}

/// Plans the net of the benchmark as that does, and returns the most memory that
/// this process has had.
fn large_net_peak_kib() -> Result<u64, Box<dyn Error>> {
    let (job, mut store) = (scenes::large_net(), scenes::empty());
    let request = Request::new(RUN, &job);
    let planned = reserve(&mut store, &request, &Options::default());
    planned.map_err(|refused| format!("the net was refused: {refused:?}"))?;
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = line.and_then(|line| line.split_whitespace().next());
    Ok(peak.ok_or("/proc/self/status has no VmHWM")?.parse()?)
}

/// A small job in the files of the prototype (Glaß 2024, 5.1), on its machine.
fn family_job() -> Result<(), Box<dyn Error>> {
    let node = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../node");
    let folder = node.join("pbs-job/tests/family");
    let read = |file: &str| fs::read_to_string(folder.join(file));
    let files = Files {
        details: &read("job_details_3.csv")?,
        processes: &read("job_processes_3.csv")?,
        tasks: &read("job_tasks_3.txt")?,
    };
    let job = import_job("3", &files).map_err(|faults| format!("{faults:?}"))?;
    let machine = import_machine(&read("machine_details.csv")?);
    let machine = machine.map_err(|problems| format!("{problems:?}"))?;
    // The worse of both ways to divide memory.
    let (mut makespan_ns, mut late_ns, mut over_bytes) = (0, 0, 0);
    for balancing in [Balancing::Static, Balancing::Dynamic] {
        let mut store = Store::new(machine.clone(), balancing);
        let request = Request::new(RUN, &job);
        let planned = reserve(&mut store, &request, &Options::default());
        planned.map_err(|refused| format!("the job was refused: {refused:?}"))?;
        let run = store.run(RUN).ok_or("the job has no reservations")?;
        makespan_ns = makespan_ns.max(run.end_ns() - job.start_ns);
        late_ns = late_ns.max(run.end_ns().saturating_sub(job.deadline_ns));
        over_bytes = over_bytes.max(most_over_bytes(&machine, &job, run, balancing));
    }
    let units = |time_ns: u64| time_ns as f64 / machine.tick_ns as f64;
    figure("family-job/makespan", units(makespan_ns), "time units");
    figure("family-job/late", units(late_ns), "time units");
    figure("family-job/memory-over", over_bytes as f64, "units");
    Ok(())
}

/// Greatest excess of a plan's memory over the available memory, at any place and time. Computed
/// from the places of tasks and the job's declarations, not from the reservations of memory.
fn most_over_bytes(machine: &Machine, job: &Job, run: &Run, balancing: Balancing) -> u64 {
    // Of each memory, by node and core: how much, and all that takes and gives back.
    let mut changes: BTreeMap<(usize, usize), Vec<(u64, i128)>> = BTreeMap::new();
    for (index, process) in job.processes.iter().enumerate() {
        let tasks = || run.tasks.iter().filter(|task| task.process == index);
        let (Some(first), Some(start_ns), Some(end_ns)) = (
            tasks().next(),
            tasks().map(|task| task.start_ns).min(),
            tasks().map(|task| task.end_ns).max(),
        ) else {
            continue;
        };
        let mut core = first.core;
        let mut node = 0;
        while core >= machine.nodes[node].cores.len() {
            core -= machine.nodes[node].cores.len();
            node += 1;
        }
        let memory = match balancing {
            Balancing::Static => (node, core),
            Balancing::Dynamic | Balancing::Blind => (node, 0),
        };
        let bytes = i128::from(process.memory_bytes);
        let of_memory = changes.entry(memory).or_default();
        of_memory.extend([(start_ns, bytes), (end_ns, -bytes)]);
    }
    let over = changes.into_iter().map(|((node, _), mut changes)| {
        // What is given back comes before what is taken at the same time.
        changes.sort_unstable();
        let node = &machine.nodes[node];
        let most_bytes = balancing.memory_bytes(node);
        let mut used_bytes = 0;
        let used = changes.into_iter().map(|(_, bytes)| {
            used_bytes += bytes;
            used_bytes
        });
        let over = used.max().unwrap_or(0) - i128::from(most_bytes);
        u64::try_from(over).unwrap_or(0)
    });
    over.max().unwrap_or(0)
}
