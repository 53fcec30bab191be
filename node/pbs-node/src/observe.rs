// SPDX-License-Identifier: GPL-2.0
//! Watching a node whose plans are somebody else's.

use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};

use pbs_launch::signals::{wait, Signals};
use pbs_plan::{wire, Plan};
use pbs_report::{tier_name, Facts, Opened, Source};
use pbs_uapi::{Device, Event, EventKind, IDLE};

use crate::device::{self, kernel_release, BATCH};
use crate::Error;

/// For how long a node is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Only what it still holds.
    Now,
    /// Also what comes in that time, unless interrupted.
    After(Duration),
    /// Until interrupted.
    Stopped,
}

/// Result of an observation.
#[derive(Debug)]
pub struct Observed {
    /// The plans with their events, as a recording has them.
    pub opened: Opened,
    /// The numbers of plans that nobody has any more.
    pub missing: Vec<u64>,
}

/// Collects the events that the node holds and, on request, those that follow. `files` are plans
/// with names, as their authors wrote them; others are read back from the kernel.
///
/// # Errors
///
/// The plan of none of the events is known.
pub fn observe(path: &Path, files: Vec<Plan>, until: Until) -> Result<Observed, Error> {
    let device = device::open(path)?;
    let info = device.info().map_err(Error::refused("events"))?;
    device.seek(info.first_seq).map_err(Error::refused("events"))?;
    let config = device::config()?;
    let mut plans = Plans::new(files);
    let mut events = Vec::new();
    let signals_failed = |error| Error::file("signals", error);
    let failed = |error| Error::file(path, error);
    let signals = Signals::new().map_err(signals_failed)?;
    let end = match until {
        Until::After(length) => Some(Instant::now() + length),
        Until::Now | Until::Stopped => None,
    };
    let mut batch = vec![Event::default(); BATCH];
    loop {
        let count = device.read_events(&mut batch).map_err(failed)?;
        for event in &batch[..count] {
            plans.learn(&device, event);
        }
        events.extend_from_slice(&batch[..count]);
        if count != 0 {
            continue;
        }
        let now = Instant::now();
        let stop = signals.want_stop().map_err(signals_failed)?;
        if until == Until::Now || stop || end.is_some_and(|end| end <= now) {
            break;
        }
        let left = end.map(|end| end.saturating_duration_since(now).as_millis() + 1);
        let timeout_ms = left.map_or(-1, |ms| i32::try_from(ms).unwrap_or(i32::MAX));
        wait(&signals, &device, timeout_ms).map_err(failed)?;
    }
    if plans.known.is_empty() {
        return Err(Error::NothingSeen);
    }
    let opened = Opened {
        deadlines: Vec::new(),
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
    Ok(Observed { opened, missing: plans.missing })
}

/// The plans that events are about.
struct Plans {
    /// With names, as their authors wrote them.
    files: Vec<Plan>,
    /// In the order of coming into force.
    known: Vec<Plan>,
    /// CPU and plan that were looked for.
    asked: HashSet<(u32, u64)>,
    /// Plans that are no longer available.
    missing: Vec<u64>,
}

impl Plans {
    fn new(files: Vec<Plan>) -> Self {
        Self { files, known: Vec::new(), asked: HashSet::new(), missing: Vec::new() }
    }

    /// Gets the plan that `event` is about, unless it is known: from the files,
    /// or back from the kernel.
    fn learn(&mut self, device: &Device, event: &Event) {
        let of_a_plan = event.process != IDLE || event.kind == EventKind::PlanInstalled as u16;
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
        // A plan that cannot be read back counts as missing.
        let read_back = || wire::decode(&device.get_plan(event.cpu).ok()?).ok();
        match from_file.or_else(|| read_back().filter(is_it)) {
            Some(plan) => self.known.push(plan),
            None => self.missing.push(event.plan_id),
        }
    }
}
