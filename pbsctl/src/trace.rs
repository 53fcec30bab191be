// SPDX-License-Identifier: GPL-2.0
//! The command that makes a trace for Perfetto.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use pbs_node::device::{self, kernel_release, open};
use pbs_node::signals::{wait, Signals};
use pbs_plan::{wire, Config, Plan};
use pbs_report::{tier_name, EventView, Facts, Opened, Source};
use pbs_trace::Trace;
use pbs_uapi::{Device, Event};
use serde_json::json;

use crate::cli::TraceOptions;
use crate::failure::Failure;
use crate::files;
use crate::output::{counted, Output};

/// Events read at once.
const BATCH: usize = 1024;

pub(crate) fn trace(
    out: Output,
    device: &Path,
    options: &TraceOptions,
) -> Result<ExitCode, Failure> {
    let plans = options.plans.iter().map(|file| files::read_plan(file));
    let plans: Vec<_> = plans.collect::<Result<_, _>>()?;
    let (opened, missing) = match &options.file {
        Some(file) => (recorded(file, plans, options.rate)?, Vec::new()),
        None => live(device, plans, options)?,
    };
    let trace = Trace::new(&opened);
    let json = serde_json::to_string(&trace).unwrap_or_default();
    let missing: Vec<_> = missing.iter().collect();
    match &options.output {
        Some(file) => {
            files::write(file, &json)?;
            let facts = json!({
                "written": file,
                "bytes": json.len(),
                "trace_events": trace.trace_events.len(),
                "plans": opened.plans.iter().map(|plan| plan.plan_id).collect::<Vec<_>>(),
                "missing_plans": missing,
            });
            out.print(&facts, || {
                let file = file.display();
                let mut text = format!(
                    "{file}: {} of {}; open it with https://ui.perfetto.dev\n",
                    counted(
                        trace.trace_events.len() as u64,
                        "trace event",
                        "trace events"
                    ),
                    counted(opened.plans.len() as u64, "plan", "plans"),
                );
                for plan_id in &missing {
                    text += &format!(
                        "Plan {plan_id} was replaced before it could be read back, and is left \
                         out: name its file with --plan\n"
                    );
                }
                text
            })?;
        }
        None => out.print(&trace, || json + "\n")?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What a file holds: a recording, or the lines of `pbsctl --json events`.
fn recorded(file: &Path, plans: Vec<Plan>, rate: Option<u64>) -> Result<Opened, Failure> {
    let text = files::read(file)?;
    let name = files::name(file);
    let failed = |message: String| Failure::Failed(format!("{name}: {message}"));
    let first = text.lines().next().unwrap_or_default();
    if serde_json::from_str::<EventView>(first).is_err() || !first.contains("\"kind\"") {
        if !plans.is_empty() || rate.is_some() {
            return Err(Failure::Usage(format!(
                "--plan and --rate go with events alone, as pbsctl --json events prints them; \
                 {name} would be a recording, which has its plans and its rate"
            )));
        }
        return Opened::from_json(&text).map_err(failed);
    }
    let Some(rate_insns_per_ms) = rate else {
        return Err(Failure::Usage(
            "events do not tell the rate of their node: give --rate; pbsctl stat shows it there \
             as rate_insns_per_ms"
                .into(),
        ));
    };
    if plans.is_empty() {
        return Err(Failure::Usage(
            "events do not tell what was planned: give each plan with --plan, in the order in \
             which they came into force"
                .into(),
        ));
    }
    let event = |(number, line): (usize, &str)| {
        let view: EventView = serde_json::from_str(line)
            .map_err(|error| failed(format!("line {}: {error}", number + 1)))?;
        Event::try_from(&view).map_err(|words| failed(format!("line {}: {words}", number + 1)))
    };
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    Ok(Opened {
        deadlines: BTreeMap::new(),
        plans,
        config: Config::DEFAULT,
        events: lines.map(event).collect::<Result<_, _>>()?,
        facts: Facts {
            rate_insns_per_ms,
            ..Facts::default()
        },
        source: Source::Run,
    })
}

/// What the node holds and, if asked for, what comes; and the numbers of plans
/// that are gone.
fn live(
    path: &Path,
    files: Vec<Plan>,
    options: &TraceOptions,
) -> Result<(Opened, Vec<u64>), Failure> {
    let device = open(path)?;
    let info = device
        .info()
        .map_err(|refused| Failure::refused("events", &refused))?;
    device
        .seek(info.first_seq)
        .map_err(|refused| Failure::refused("events", &refused))?;
    let config = device::config()?;
    let mut plans = Plans::new(files);
    let mut events = Vec::new();
    let signals = Signals::new().map_err(|error| Failure::file("signals", &error))?;
    let end = options
        .seconds
        .map(|s| Instant::now() + Duration::from_secs(s));
    let mut batch = vec![Event::default(); BATCH];
    loop {
        let count = device
            .read_events(&mut batch)
            .map_err(|error| Failure::file(path, &error))?;
        for event in &batch[..count] {
            plans.learn(&device, event);
        }
        events.extend_from_slice(&batch[..count]);
        if count != 0 {
            continue;
        }
        let now = Instant::now();
        let stop = signals
            .want_stop()
            .map_err(|error| Failure::file("signals", &error))?;
        if !options.follow || stop || end.is_some_and(|end| end <= now) {
            break;
        }
        let left = end.map(|end| end.saturating_duration_since(now).as_millis() + 1);
        let timeout_ms = left.map_or(-1, |ms| i32::try_from(ms).unwrap_or(i32::MAX));
        wait(&signals, &device, timeout_ms).map_err(|error| Failure::file(path, &error))?;
    }
    if plans.known.is_empty() {
        return Err(Failure::Failed(
            "no plan has come into force as far back as the node remembers; load one, or wait for \
             one with --follow"
                .into(),
        ));
    }
    let opened = Opened {
        deadlines: BTreeMap::new(),
        plans: plans.known,
        config,
        events,
        facts: Facts {
            kernel: kernel_release(),
            tier: tier_name(info.tier),
            rate_insns_per_ms: info.rate_insns_per_ms,
            ..Facts::default()
        },
        source: Source::Run,
    };
    Ok((opened, plans.missing))
}

/// The plans that events are about.
struct Plans {
    /// With names, as their authors wrote them.
    files: Vec<Plan>,
    /// In the order of coming into force.
    known: Vec<Plan>,
    /// CPU and plan that were looked for.
    asked: HashSet<(u32, u64)>,
    /// Those that nobody has any more.
    missing: Vec<u64>,
}

impl Plans {
    fn new(files: Vec<Plan>) -> Self {
        Self {
            files,
            known: Vec::new(),
            asked: HashSet::new(),
            missing: Vec::new(),
        }
    }

    /// Gets the plan that `event` is about, unless it is known: from the files,
    /// or back from the kernel.
    fn learn(&mut self, device: &Device, event: &Event) {
        let of_a_plan = event.process != pbs_uapi::IDLE
            || event.kind == pbs_uapi::EventKind::PlanInstalled as u16;
        if !of_a_plan || !self.asked.insert((event.cpu, event.plan_id)) {
            return;
        }
        let is_it = |plan: &Plan| {
            plan.plan_id == event.plan_id && plan.cpus.iter().any(|cpu| cpu.cpu == event.cpu)
        };
        if self.known.iter().any(is_it) {
            return;
        }
        let from_file = self.files.iter().find(|plan| is_it(plan)).cloned();
        let read_back = || wire::decode(&device.get_plan(event.cpu).ok()?).ok();
        match from_file.or_else(|| read_back().filter(is_it)) {
            Some(plan) => self.known.push(plan),
            None => self.missing.push(event.plan_id),
        }
    }
}
