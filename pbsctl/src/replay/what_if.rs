// SPDX-License-Identifier: GPL-2.0
//! Recorded inputs under another configuration: both streams of events, and their differences.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use pbs_record::{CpuWhatIf, Parting, PartingCause, Recording};
use pbs_report::{describe, EventView};
use pbs_text::{columns, grouped, ms};
use pbs_uapi::Event;
use serde::Serialize;

use crate::config_option::with_numbers;
use crate::failure::{Failure, INCOMPLETE};
use crate::output::{counted, Output};

/// Different events that are printed as text; `--json` has all.
const MOST_LINES: usize = 20;

/// Both courses of the recorded node.
#[derive(Serialize)]
struct View<'a> {
    file: &'a Path,
    /// Time up to which the recorded inputs are a prediction; null: to their end.
    predicted_until_ns: Option<u64>,
    inputs: u64,
    skipped: u64,
    after: u64,
    lost: u64,
    partings: Vec<PartingView>,
    counts: Vec<Count>,
    only_recorded: Vec<EventView>,
    only_predicted: Vec<EventView>,
}

#[derive(Serialize)]
struct PartingView {
    cpu: u32,
    number: u64,
    time_ns: u64,
    cause: &'static str,
    recorded_process: Option<u32>,
    predicted_process: Option<u32>,
}

/// Numbers of events of one kind and reason.
#[derive(Serialize)]
struct Count {
    kind: String,
    reason: Option<String>,
    recorded: u64,
    predicted: u64,
}

/// Events that only one of the courses has.
#[derive(Default)]
struct Differences {
    only_recorded: Vec<Event>,
    only_predicted: Vec<Event>,
}

pub(super) fn what_if(
    out: Output,
    file: &Path,
    recording: &Recording,
    config: &[String],
) -> Result<ExitCode, Failure> {
    let mut configs = BTreeMap::new();
    for (key, plan) in &recording.plans {
        configs.insert(*key, with_numbers(config, plan.config)?);
    }
    let cpus = recording.what_if(&configs);
    let partings: Vec<_> = cpus.iter().filter_map(PartingView::new).collect();
    let until_ns = partings.iter().map(|parting| parting.time_ns).min();
    let before = |event: &Event| until_ns.is_none_or(|until_ns| event.time_ns <= until_ns);
    let mut differences = Differences::default();
    let mut counts = BTreeMap::new();
    for cpu in &cpus {
        let in_wire = |emitted: &[pbs_record::Emitted]| -> Vec<_> {
            emitted.iter().map(|one| one.in_wire(cpu.cpu)).filter(before).collect()
        };
        let (recorded, predicted) = (in_wire(&cpu.recorded), in_wire(&cpu.predicted));
        for event in &recorded {
            counts.entry((event.kind, event.reason)).or_insert((0, 0, *event)).0 += 1;
        }
        for event in &predicted {
            counts.entry((event.kind, event.reason)).or_insert((0, 0, *event)).1 += 1;
        }
        differences.only_recorded.extend(left_over(&recorded, &predicted));
        differences.only_predicted.extend(left_over(&predicted, &recorded));
    }
    differences.only_recorded.sort_by_key(|event| event.time_ns);
    differences.only_predicted.sort_by_key(|event| event.time_ns);
    let views = |events: &[Event]| events.iter().map(EventView::from).collect();
    let view = View {
        file,
        predicted_until_ns: until_ns,
        inputs: cpus.iter().map(|cpu| cpu.inputs).sum(),
        skipped: cpus.iter().map(|cpu| cpu.skipped).sum(),
        after: cpus.iter().map(|cpu| cpu.after).sum(),
        lost: recording.lost(),
        partings,
        counts: counts.into_values().map(Count::new).collect(),
        only_recorded: views(&differences.only_recorded),
        only_predicted: views(&differences.only_predicted),
    };
    if view.inputs == 0 && view.partings.is_empty() {
        return Err(Failure::Failed(format!(
            "{}: --config has no input to replay: {}",
            file.display(),
            without_inputs(&view)
        )));
    }
    out.named("what-if").print(&view, || view.text() + &differences.text())?;
    let is_whole =
        recording.complete && recording.damage.is_empty() && view.lost == 0 && view.skipped == 0;
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::from(INCOMPLETE) })
}

/// The reason for which no input could be replayed, and what to do instead.
fn without_inputs(view: &View<'_>) -> String {
    if view.skipped == 0 {
        return "the recording has none; record while a plan is in force".into();
    }
    format!(
        "{} skipped, since the recording does not have the beginning of their plan; start the \
         recording before the plan is loaded, without --record-from",
        counted(view.skipped, "input is", "inputs are")
    )
}

/// Events of `these` without an equal one in `others`.  Events are equal if both are of the same
/// kind, reason, process and task; numbers and times may differ.
fn left_over(these: &[Event], others: &[Event]) -> Vec<Event> {
    let key = |event: &Event| (event.kind, event.reason, event.process, event.task);
    let mut equal: BTreeMap<_, u64> = BTreeMap::new();
    for event in others {
        *equal.entry(key(event)).or_default() += 1;
    }
    let is_left = |event: &&Event| match equal.get_mut(&key(event)) {
        Some(number) if *number > 0 => {
            *number -= 1;
            false
        }
        _ => true,
    };
    these.iter().filter(is_left).copied().collect()
}

impl PartingView {
    fn new(cpu: &CpuWhatIf) -> Option<Self> {
        let Parting { number, time_ns, cause } = cpu.parting?;
        let (cause, recorded_process, predicted_process) = match cause {
            PartingCause::Decision { recorded, predicted } => ("decision", recorded, predicted),
            PartingCause::Plan => ("plan", None, None),
            PartingCause::Configuration => ("configuration", None, None),
            PartingCause::Recording => ("recording", None, None),
        };
        Some(Self { cpu: cpu.cpu, number, time_ns, cause, recorded_process, predicted_process })
    }

    fn text(&self) -> String {
        let name = |process: Option<u32>| {
            process.map_or_else(|| "no process".into(), |id| format!("process {id}"))
        };
        let why = match self.cause {
            "decision" => format!(
                "the recorded node let {} run, the other one {}",
                name(self.recorded_process),
                name(self.predicted_process)
            ),
            "plan" => "a plan came into force after other signals than recorded".into(),
            "configuration" => {
                "a recorded change of the configuration contradicts the other configuration".into()
            }
            _ => "the recording differs from its own replay".into(),
        };
        format!(
            "CPU {}: parts at input {}, {} ms: {why}\n",
            self.cpu,
            self.number,
            ms(self.time_ns)
        )
    }
}

impl Count {
    fn new((recorded, predicted, event): (u64, u64, Event)) -> Self {
        let EventView { kind, reason, .. } = EventView::from(&event);
        Self { kind, reason, recorded, predicted }
    }
}

impl View<'_> {
    fn text(&self) -> String {
        let mut text = format!(
            "{}: {} under the other configuration\n",
            self.file.display(),
            counted(self.inputs, "input", "inputs")
        );
        if self.skipped > 0 {
            text += &format!(
                "{} skipped, since the recording does not have the beginning of their plan\n",
                counted(self.skipped, "input is", "inputs are")
            );
        }
        text.extend(self.partings.iter().map(PartingView::text));
        if self.predicted_until_ns.is_some() {
            text += &format!(
                "There, the recorded world and the decision part: {} after that {} no prediction\n",
                counted(self.after, "input", "inputs"),
                if self.after == 1 { "is" } else { "are" }
            );
        }
        let mut rows = vec![["EVENT", "REASON", "RECORDED", "WHAT IF"].map(String::from).to_vec()];
        rows.extend(self.counts.iter().map(|count| {
            let reason = count.reason.clone().unwrap_or_else(|| "-".into());
            vec![count.kind.clone(), reason, grouped(count.recorded), grouped(count.predicted)]
        }));
        text + "\n" + &columns(&rows, 2)
    }
}

impl Differences {
    fn text(&self) -> String {
        let lines = |title: &str, events: &[Event]| {
            if events.is_empty() {
                return format!("\n{title}: none\n");
            }
            let mut text = format!("\n{title}:\n");
            for event in events.iter().take(MOST_LINES) {
                text += &(describe(event) + "\n");
            }
            if let Some(more) = events.len().checked_sub(MOST_LINES).filter(|&more| more > 0) {
                text += &format!("{more} more; --json has all\n");
            }
            text
        };
        lines("Only recorded", &self.only_recorded)
            + &lines("Only under the other configuration", &self.only_predicted)
    }
}
