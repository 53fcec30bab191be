// SPDX-License-Identifier: GPL-2.0
//! The command that replays recorded inputs through the policy.

mod policy;
mod until;
mod what_if;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use pbs_core::{IdlePolicy, Input};
use pbs_record::{CpuReplay, Difference, Recording};
use pbs_report::{describe, EventView};
use pbs_sim::HeldNode;
use pbs_text::{grouped, ms, span};
use serde::Serialize;
use until::Until;

use crate::complete;
use crate::failure::{Failure, DIFFERS, INCOMPLETE};
use crate::output::{counted, Output};
use crate::sim::held;

const REPLAY_HELP: &str = "\
Examples:
  pbsctl node record -o run.inputs -- pbsctl run plan.toml
  pbsctl node replay run.inputs
  pbsctl node replay run.inputs --events
  pbsctl --json node replay run.inputs
  pbsctl node replay run.inputs --until late
  pbsctl node replay run.inputs --config sigma_t2_permille=2000
  pbsctl node replay run.inputs --policy least_slack

Passes all recorded inputs to the policy of this pbsctl, and compares the result of each call:
decisions, events, and the state after the call. Needs neither the device nor root.

A difference is reported with the CPU, the number of the input, the time, the recorded input and
the replayed one. Everything before it was equal.

With --config, the recorded inputs are given to a node with another configuration, beside the
recorded one. The events of both are compared. Recorded inputs are a prediction as long as both let
the same process run; pbsctl reports the place where they part, and compares nothing after it.

With --policy, the first plan of the recording is simulated from its beginning, once under its own
policy of idle slots and once under the other one. Tasks have the lengths that were recorded.
Tables compare the events, the end of each process, and the deadlines kept.";

#[derive(Args, Debug)]
#[command(after_help = REPLAY_HELP)]
pub(crate) struct ReplayOptions {
    /// Recording, from pbsctl node record or pbsctl sim --record
    file: PathBuf,

    /// Print the replayed events before the summary
    #[arg(long)]
    events: bool,

    /// Stop at an event, and print the state of each node: its number, a kind such as late for the
    /// first of that kind, or a time since the first plan, such as 780ms
    #[arg(long, value_name = "EVENT", conflicts_with = "config", value_parser = Until::parse)]
    until: Option<Until>,

    /// Compare with another configuration: a value of the policy by its name in [config], as for
    /// pbsctl sim
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "events", add = complete::config_keys())]
    config: Vec<String>,

    /// Simulate the recording from its beginning under another policy of idle slots, such as
    /// least_slack, and compare with the recorded policy
    #[arg(
        long,
        value_name = "POLICY",
        conflicts_with_all = ["events", "until", "config"],
        value_parser = policy::parse,
        add = complete::idle_policies()
    )]
    policy: Option<IdlePolicy>,
}

/// Result of the replay of a recording.
#[derive(Serialize)]
struct View {
    file: PathBuf,
    same: bool,
    complete: bool,
    recorded: u64,
    inputs: u64,
    decisions: u64,
    emitted: u64,
    plans: u64,
    skipped: u64,
    lost: u64,
    read_ns: u64,
    replay_ns: u64,
    damage: Vec<DamageView>,
    cpus: Vec<CpuView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<Vec<EventView>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<Vec<HeldNode>>,
}

#[derive(Serialize)]
struct DamageView {
    offset_bytes: u64,
    cpu: Option<u32>,
    first_input: u64,
    inputs: u64,
}

#[derive(Serialize)]
struct CpuView {
    cpu: u32,
    inputs: u64,
    decisions: u64,
    emitted: u64,
    plans: u64,
    skipped: u64,
    lost: u64,
    after: u64,
    unknown_plans: Vec<u64>,
    refused_snapshots: Vec<String>,
    difference: Option<DifferenceView>,
}

#[derive(Serialize)]
struct DifferenceView {
    number: u64,
    time_ns: u64,
    recorded: InputView,
    came_out: Option<InputView>,
}

#[derive(Serialize)]
struct InputView {
    kind: Option<&'static str>,
    time_ns: u64,
    process: u32,
    reason: u16,
    value: u64,
    more: u64,
}

impl From<&Input> for InputView {
    fn from(input: &Input) -> Self {
        Self {
            kind: input.name(),
            time_ns: input.time_ns,
            process: input.process,
            reason: input.reason,
            value: input.value,
            more: input.more,
        }
    }
}

impl From<&Difference> for DifferenceView {
    fn from(difference: &Difference) -> Self {
        Self {
            number: difference.number,
            time_ns: difference.time_ns,
            recorded: InputView::from(&difference.recorded),
            came_out: difference.came_out.as_ref().map(InputView::from),
        }
    }
}

impl From<&CpuReplay> for CpuView {
    fn from(replay: &CpuReplay) -> Self {
        Self {
            cpu: replay.cpu,
            inputs: replay.inputs,
            decisions: replay.decisions,
            emitted: replay.events,
            plans: replay.plans,
            skipped: replay.skipped,
            lost: replay.lost,
            after: replay.after,
            unknown_plans: replay.unknown_plans.iter().copied().collect(),
            refused_snapshots: replay.refused_snapshots.clone(),
            difference: replay.difference.as_ref().map(DifferenceView::from),
        }
    }
}

pub(crate) fn replay(out: Output, options: &ReplayOptions) -> Result<ExitCode, Failure> {
    let file = &options.file;
    let bytes = std::fs::read(file).map_err(|error| Failure::file(file, &error))?;
    let begun = Instant::now();
    let recording = Recording::read(&bytes)
        .map_err(|error| Failure::Failed(format!("{}: {error}", file.display())))?;
    let read_ns = passed_ns(begun);
    if !options.config.is_empty() {
        return what_if::what_if(out, file, &recording, &options.config);
    }
    if let Some(policy) = options.policy {
        return policy::compare(out, file, &recording, policy);
    }
    let until_ns = match &options.until {
        Some(until) => until.time_ns(&recording)?,
        None => u64::MAX,
    };
    let begun = Instant::now();
    let replays = recording.replay_until(until_ns, options.events);
    let replay_ns = passed_ns(begun);
    let sum = |of: fn(&CpuReplay) -> u64| replays.iter().map(of).sum();
    let mut emitted: Vec<_> = replays.iter().flat_map(CpuReplay::in_wire).collect();
    emitted.sort_by_key(|event| event.seq);
    let view = View {
        file: file.clone(),
        same: replays.iter().all(|replay| replay.difference.is_none()),
        complete: recording.complete,
        recorded: recording.inputs(),
        inputs: sum(|replay| replay.inputs),
        decisions: sum(|replay| replay.decisions),
        emitted: sum(|replay| replay.events),
        plans: sum(|replay| replay.plans),
        skipped: sum(|replay| replay.skipped),
        lost: recording.lost(),
        read_ns,
        replay_ns,
        damage: recording
            .damage
            .iter()
            .map(|damage| DamageView {
                offset_bytes: damage.offset_bytes,
                cpu: damage.cpu,
                first_input: damage.inputs.first,
                inputs: damage.inputs.count,
            })
            .collect(),
        cpus: replays.iter().map(CpuView::from).collect(),
        events: options.events.then(|| emitted.iter().map(EventView::from).collect()),
        held: options
            .until
            .is_some()
            .then(|| replays.iter().filter_map(|replay| replay.held.clone()).collect()),
    };
    let configs = recording.plans.values().map(|plan| plan.config.nominal_tick_ns);
    let tick_ns = configs.max().unwrap_or(0);
    out.print(&view, || {
        let events = emitted.iter().map(|event| describe(event) + "\n");
        let held = view.held.iter().flatten().map(|node| held::of_node(node, tick_ns));
        events.collect::<String>() + &text(&view) + &held.collect::<String>()
    })?;
    Ok(code(&view))
}

fn passed_ns(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

fn code(view: &View) -> ExitCode {
    let whole = view.complete && view.damage.is_empty() && view.lost == 0 && view.skipped == 0;
    match (view.same, whole) {
        (false, _) => ExitCode::from(DIFFERS),
        (true, false) => ExitCode::from(INCOMPLETE),
        (true, true) => ExitCode::SUCCESS,
    }
}

fn text(view: &View) -> String {
    let mut text = format!(
        "{}: {} replayed in {}, with {}, {} and {}\n",
        view.file.display(),
        counted(view.inputs, "input", "inputs"),
        span(view.replay_ns),
        counted(view.decisions, "decision", "decisions"),
        counted(view.emitted, "event", "events"),
        counted(view.plans, "plan", "plans"),
    );
    for cpu in &view.cpus {
        match &cpu.difference {
            None => {
                text += &format!(
                    "CPU {}: the same, in {}\n",
                    cpu.cpu,
                    counted(cpu.inputs, "input", "inputs")
                );
            }
            Some(difference) => text += &different(cpu, difference),
        }
        if cpu.lost > 0 {
            text += &format!(
                "CPU {}: the recorder missed {}\n",
                cpu.cpu,
                counted(cpu.lost, "input", "inputs")
            );
        }
        if cpu.skipped > 0 {
            text += &format!(
                "CPU {}: {} skipped, since the recording does not have the beginning of their \
                 plan\n",
                cpu.cpu,
                counted(cpu.skipped, "input is", "inputs are")
            );
        }
        for words in &cpu.refused_snapshots {
            text +=
                &format!("CPU {}: the replay does not begin at the snapshot: {words}\n", cpu.cpu);
        }
        for plan in &cpu.unknown_plans {
            text += &format!(
                "CPU {}: plan {plan} came into force there, and the recording does not have it\n",
                cpu.cpu
            );
        }
    }
    for damage in &view.damage {
        let what = match damage.cpu {
            Some(cpu) => format!(
                "inputs {} to {} of CPU {cpu} were changed",
                grouped(damage.first_input),
                grouped(damage.first_input + damage.inputs.saturating_sub(1))
            ),
            None => "a block was changed".into(),
        };
        text += &format!("The file is damaged at byte {}: {what}\n", damage.offset_bytes);
    }
    if !view.complete {
        text += "The recording was cut short: the recorder did not end properly\n";
    }
    text
}

fn different(cpu: &CpuView, difference: &DifferenceView) -> String {
    let mut text = format!(
        "CPU {}: input {} differs, at {} ms, after {} equal ones\n  recorded: {}\n",
        cpu.cpu,
        difference.number,
        ms(difference.time_ns),
        grouped(cpu.inputs),
        in_words(&difference.recorded),
    );
    match &difference.came_out {
        Some(input) => text += &format!("  replayed: {}\n", in_words(input)),
        None => text += "  replayed: nothing\n",
    }
    text += &format!(
        "CPU {}: {} after that {} not compared\n",
        cpu.cpu,
        counted(cpu.after, "input", "inputs"),
        if cpu.after == 1 { "is" } else { "are" }
    );
    text
}

fn in_words(input: &InputView) -> String {
    let process = match input.process {
        pbs_uapi::IDLE => String::new(),
        process => format!(" process {process}"),
    };
    format!(
        "{}{process} reason {} value {} more {}{}",
        input.kind.unwrap_or("of an unknown kind"),
        input.reason,
        input.value,
        input.more,
        match input.time_ns {
            0 => String::new(),
            time_ns => format!(" time {time_ns} ns"),
        }
    )
}
