// SPDX-License-Identifier: GPL-2.0
//! The machine that this node is.

use std::fs;
use std::path::Path;

use pbs_job::{cpus_of_list, Core, Machine, Node, TICK_NS};

use crate::Error;

/// The machine of the node that this is: its CPUs, all of the same rate, and its memory.
pub fn this_node(rate_insns_per_ms: u64) -> Result<Machine, Error> {
    let online = Path::new("/sys/devices/system/cpu/online");
    let text = fs::read_to_string(online).map_err(|error| Error::file(online, error))?;
    let cpus =
        cpus_of_list(text.trim()).ok_or_else(|| Error::not_as_it_should(online, text.clone()))?;
    let meminfo = Path::new("/proc/meminfo");
    let text = fs::read_to_string(meminfo).map_err(|error| Error::file(meminfo, error))?;
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
        ..Machine::default()
    })
}
