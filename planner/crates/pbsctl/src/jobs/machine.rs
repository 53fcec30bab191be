// SPDX-License-Identifier: GPL-2.0
//! The machine that jobs are planned for.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use pbs_job::{machine_from_toml, Core, Machine, Node, TICK_NS};

use crate::failure::Failure;
use crate::files;

/// The machine that jobs are planned for, wherever one is.
#[derive(Args, Debug)]
pub(crate) struct MachineFile {
    /// The machine that jobs are planned for, in TOML, instead of this node with
    /// all its CPUs
    #[arg(id = "machine", long, value_name = "FILE")]
    path: Option<PathBuf>,
}

impl MachineFile {
    /// The machine of the file. Without one this node, whose CPUs retire so many
    /// instructions in a millisecond, as `rate_insns_per_ms` answers.
    pub(crate) fn read(
        &self,
        rate_insns_per_ms: impl FnOnce() -> Result<u64, Failure>,
    ) -> Result<Machine, Failure> {
        match &self.path {
            Some(path) => machine_of(&files::read(path)?, path),
            None => this_node(rate_insns_per_ms()?),
        }
    }
}

/// The machine that a file holds.
pub(crate) fn machine_of(text: &str, path: &Path) -> Result<Machine, Failure> {
    machine_from_toml(text).map_err(|problems| Failure::Invalid {
        file: files::name(path),
        problems,
    })
}

/// The node that this is: its CPUs, all of the same rate, and its memory.
fn this_node(rate_insns_per_ms: u64) -> Result<Machine, Failure> {
    let online = Path::new("/sys/devices/system/cpu/online");
    let text = fs::read_to_string(online).map_err(|error| Failure::file(online, &error))?;
    let cpus = ranges(text.trim())
        .ok_or_else(|| Failure::Failed(format!("{}: {text}", online.display())))?;
    let meminfo = Path::new("/proc/meminfo");
    let text = fs::read_to_string(meminfo).map_err(|error| Failure::file(meminfo, &error))?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib: Option<u64> = total.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    let cores = cpus.into_iter().map(|cpu| Core {
        name: format!("cpu{cpu}"),
        cpu: Some(cpu),
        rate_insns_per_s: rate_insns_per_ms.saturating_mul(1000).max(1),
    });
    Ok(Machine {
        name: None,
        tick_ns: TICK_NS,
        nodes: vec![Node {
            name: "this".into(),
            memory_bytes: kib.unwrap_or(0).saturating_mul(1024),
            cores: cores.collect(),
            line: None,
        }],
        links: Vec::new(),
    })
}

/// The numbers of `0-3,8`.
fn ranges(text: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        numbers.extend(first..=last);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::ranges;

    #[test]
    fn cpu_lists() {
        assert_eq!(ranges("0"), Some(vec![0]));
        assert_eq!(ranges("0-2,5"), Some(vec![0, 1, 2, 5]));
        assert_eq!(ranges("a"), None);
    }
}
