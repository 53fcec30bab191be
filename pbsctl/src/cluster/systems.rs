// SPDX-License-Identifier: GPL-2.0
//! Views of several clusters at once (Keller, 3: one user interface for several systems).

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use pbs_cluster_planner::NCPUS;
use pbs_manager::ledger::{Access, State};
use pbs_manager::{Manager, Simulated};
use pbs_text::{grouped, Format, Table};
use serde::Serialize;

use super::ledger::clock;
use crate::failure::Failure;
use crate::output::Output;

#[derive(Args, Debug)]
pub(super) struct SystemsOptions {
    /// Directory with the ledgers: all files NAME.db
    #[arg(value_name = "DIRECTORY", env = "PBS_CLUSTERS", default_value = ".")]
    directory: PathBuf,
}

#[derive(Serialize)]
struct Systems {
    systems: Vec<System>,
}

#[derive(Serialize)]
struct System {
    ledger: String,
    /// Reason why the ledger can't be read; the others are shown all the same.
    error: Option<String>,
    site: String,
    clock_s: u64,
    nodes: usize,
    nodes_out: usize,
    cores: u64,
    cores_free: u64,
    running: usize,
    planned: usize,
    waiting: usize,
    #[serde(skip)]
    clock: String,
}

pub(super) fn systems(out: Output, options: &SystemsOptions) -> Result<(), Failure> {
    let directory = &options.directory;
    let entries = fs::read_dir(directory).map_err(|error| Failure::file(directory, &error))?;
    let mut ledgers: Vec<PathBuf> = entries
        // An entry that vanished is no ledger any more.
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|of| of == "db"))
        .collect();
    ledgers.sort();
    if ledgers.is_empty() {
        let what = format!(
            "{}: there is no ledger NAME.db; create one with pbsctl cluster new --ledger NAME.db",
            directory.display()
        );
        return Err(Failure::Failed(what));
    }
    let systems = ledgers.iter().map(|ledger| system(ledger)).collect();
    let systems = Systems { systems };
    out.named("cluster-systems").print(&systems, || text(&systems))
}

fn system(ledger: &Path) -> System {
    let name = ledger.file_stem().unwrap_or_default();
    let mut system = System {
        ledger: name.to_string_lossy().into_owned(),
        error: None,
        site: String::new(),
        clock_s: 0,
        nodes: 0,
        nodes_out: 0,
        cores: 0,
        cores_free: 0,
        running: 0,
        planned: 0,
        waiting: 0,
        clock: String::new(),
    };
    let cluster = match Manager::open(ledger, Access::Read, Simulated::default()) {
        Ok((cluster, _)) => cluster,
        Err(error) => {
            system.error = Some(error.to_string());
            return system;
        }
    };
    let machine = cluster.machine();
    let rows = cluster.open_rows();
    let count = |state| rows.iter().filter(|row| row.state == state).count();
    let free = cluster.planner().free(NCPUS);
    let now = free.take_while(|&(from_s, _)| from_s <= cluster.clock_s());
    system.site.clone_from(&cluster.site().name);
    system.clock_s = cluster.clock_s();
    system.nodes = machine.node_count();
    system.nodes_out = cluster.nodes_out().count();
    system.cores = machine.total(NCPUS);
    system.cores_free = now.last().map_or(0, |(_, free)| free);
    system.running = count(State::Running);
    system.planned = count(State::Planned);
    system.waiting = count(State::Waiting);
    system.clock = clock(&cluster);
    system
}

fn text(systems: &Systems) -> String {
    let titles = [
        "ledger", "site", "clock", "nodes", "out", "cores", "free", "running", "planned", "waiting",
    ];
    let mut table = Table::new(&titles, 3);
    let mut errors = String::new();
    for of in &systems.systems {
        if let Some(error) = &of.error {
            errors += &format!("{}: {error}\n", of.ledger);
            continue;
        }
        let mut row = vec![of.ledger.clone(), of.site.clone(), of.clock.clone()];
        let counts = [of.nodes, of.nodes_out];
        row.extend(counts.map(|count| count.to_string()));
        row.extend([of.cores, of.cores_free].map(grouped));
        let counts = [of.running, of.planned, of.waiting];
        row.extend(counts.map(|count| count.to_string()));
        table.push(row);
    }
    table.print(Format::Text) + &errors
}
