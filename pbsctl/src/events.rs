// SPDX-License-Identifier: GPL-2.0
//! The command that prints events.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use pbs_node::device::open;
use pbs_report::{describe, EventView};
use pbs_uapi::{Event, EventKind};

use crate::failure::Failure;
use crate::output::Output;

const EVENTS_HELP: &str = "\
Examples:
  pbsctl node events                  Print the events that the kernel still holds
  pbsctl node events --follow         ... and new ones as they occur
  pbsctl node events --since 1200     Print the events from number 1200 on
  pbsctl --json node events --cpu 0   Print one JSON object a line

Events are numbered from boot. If events were lost because they were read too late, an event
\"overrun\" has their number.";

#[derive(Args, Debug)]
#[command(after_help = EVENTS_HELP)]
pub(crate) struct EventsOptions {
    /// Follow new events until interrupted
    #[arg(long, short)]
    pub(crate) follow: bool,

    /// Start with the event of this number instead of the oldest one held
    #[arg(long, value_name = "SEQ")]
    pub(crate) since: Option<u64>,

    /// Print only events of this CPU
    #[arg(long, value_name = "N")]
    pub(crate) cpu: Option<u32>,
}

/// Events read at once.
const BATCH: usize = 1024;

pub(crate) fn events(
    out: Output,
    path: &Path,
    options: &EventsOptions,
) -> Result<ExitCode, Failure> {
    let device = open(path)?;
    let first = match options.since {
        Some(seq) => seq,
        None => {
            let info = device.info();
            info.map_err(|refused| Failure::refused("events", &refused))?.first_seq
        }
    };
    device.seek(first).map_err(|refused| Failure::refused(&format!("event {first}"), &refused))?;
    let mut batch = vec![Event::default(); BATCH];
    loop {
        let count = device.read_events(&mut batch).map_err(|error| Failure::file(path, &error))?;
        for event in &batch[..count] {
            // What was lost may have been of any CPU.
            let lost = event.kind == EventKind::Overrun as u16;
            if lost || options.cpu.is_none_or(|cpu| cpu == event.cpu) {
                out.print_line(&EventView::from(event), || describe(event))?;
            }
        }
        if count == 0 {
            if !options.follow {
                return Ok(ExitCode::SUCCESS);
            }
            device.poll(-1).map_err(|error| Failure::file(path, &error))?;
        }
    }
}
