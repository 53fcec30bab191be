// SPDX-License-Identifier: GPL-2.0
//! Events of a cluster as they happen.

use clap::Args;
use pbs_manager::ledger::Access;
use pbs_site::format_time;
use pbs_text::shown;

use super::reach::ReachOptions;
use crate::failure::Failure;
use crate::output::Output;

#[derive(Args, Debug)]
pub(super) struct WatchOptions {
    #[command(flatten)]
    reach: ReachOptions,

    /// Report only events of this request, until it has ended
    #[arg(value_name = "ID")]
    id: Option<u64>,
}

pub(super) fn watch(out: Output, options: &WatchOptions) -> Result<(), Failure> {
    let cluster = options.reach.reach(Access::Read)?;
    let zone = cluster.zone().clone();
    let out = out.named("cluster-watch");
    let mut printed = Ok(());
    cluster.watch(options.id, |event| {
        printed = out.print_line(&event, || {
            let id = event.request.map_or_else(|| "-".into(), |id| id.to_string());
            let time = format_time(event.time_s, &zone);
            let line = format!("{time}  {id}  {}  {}", event.what, shown(&event.text));
            line.trim_end().into()
        });
        printed.is_ok() && !(options.id.is_some() && event.what == "ended")
    })?;
    printed
}
