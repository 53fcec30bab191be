// SPDX-License-Identifier: GPL-2.0
//! The socket of the resource manager, and the nodes that it manages, in words.

use std::path::PathBuf;

use clap::Args;

/// Socket of the resource manager
#[derive(Args, Debug)]
pub(crate) struct ManagerSocket {
    /// The socket of the resource manager
    #[arg(
        long,
        global = true,
        env = "PBS_RMS_SOCKET",
        value_name = "PATH",
        default_value = pbs_rms_api::SOCKET
    )]
    pub(crate) socket: PathBuf,
}

/// Node numbers as ranges: the first twelve, and the number of ranges left out.
pub(crate) fn numbers(nodes: &[u32]) -> String {
    const SHOWN: usize = 12;
    let mut runs: Vec<String> = Vec::new();
    let mut sorted = nodes.to_vec();
    sorted.sort_unstable();
    for run in sorted.chunk_by(|a, b| a + 1 == *b) {
        match run {
            [one] => runs.push(one.to_string()),
            [first, .., last] => runs.push(format!("{first}-{last}")),
            [] => {}
        }
    }
    let more = runs.len().saturating_sub(SHOWN);
    runs.truncate(SHOWN);
    match more {
        0 => runs.join(","),
        more => format!("{} and {more} more", runs.join(",")),
    }
}
