// SPDX-License-Identifier: GPL-2.0
//! Hints for options of other batch systems.

use clap::error::ContextKind;

/// Options of sbatch and qsub, as a user of these would write them after `cluster alloc`.
const OPTIONS_OF_OTHERS: [&str; 16] = [
    "-l",
    "-n",
    "-c",
    "-q",
    "-p",
    "-A",
    "--nodes",
    "--ntasks",
    "--ntasks-per-node",
    "--cpus-per-task",
    "--mem",
    "--mem-per-cpu",
    "--gres",
    "--partition",
    "--account",
    "--wrap",
];

/// The hint for a request in options of another batch system.
pub(crate) fn hint_of_others(told: &clap::Error) -> Option<&'static str> {
    let words: Vec<_> = std::env::args_os().collect();
    let is_request = words.iter().any(|word| word == "cluster")
        && words.iter().any(|word| word == "alloc" || word == "reserve");
    let option = told.get(ContextKind::InvalidArg).map(ToString::to_string)?;
    let option = option.split('=').next().unwrap_or_default();
    (is_request && OPTIONS_OF_OTHERS.contains(&option)).then_some(
        "pbsctl: resources are written as --res rset=2:ncpus=16:mem=32g (chunks, and what each \
         has), the run time as -t 4h, the account as -g NAME, and the command of alloc behind --",
    )
}
