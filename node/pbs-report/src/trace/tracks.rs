// SPDX-License-Identifier: GPL-2.0
//! The tracks of a CPU.

use crate::{CpuSeries, CpuTimeline, Mark, MarkKind, PlannedSlot, Point, Series, Signal};
use serde_json::{json, Map, Value};

use crate::trace::format::{args, Event, Phase, Scope};
use crate::trace::Names;

/// The tracks of a CPU, from above.
#[derive(Clone, Copy)]
enum Track {
    Planned = 1,
    Actual = 2,
    Signals = 3,
}

/// Threads of different processes have different numbers in a trace.
const TRACKS_A_CPU: u64 = 10;

fn pid(cpu: u32) -> u64 {
    u64::from(cpu) + 1
}

fn tid(cpu: u32, track: Track) -> u64 {
    pid(cpu) * TRACKS_A_CPU + track as u64
}

/// Input for the tracks of a CPU.
pub(crate) struct Tracks<'a> {
    pub(crate) timeline: &'a CpuTimeline,
    pub(crate) first_plan_id: u64,
    pub(crate) names: &'a Names,
}

impl Tracks<'_> {
    pub(crate) fn add_to(&self, events: &mut Vec<Event>) {
        let cpu = self.timeline.cpu;
        events.push(name_of("process_name", cpu, 0, json!(format!("CPU {cpu}"))));
        events.push(sort_index("process_sort_index", cpu, 0, cpu.into()));
        let tracks = [
            (Track::Planned, "planned"),
            (Track::Actual, "actual"),
            (Track::Signals, "preemptions and signals"),
        ];
        for (track, name) in tracks {
            let tid = tid(cpu, track);
            events.push(name_of("thread_name", cpu, tid, json!(name)));
            events.push(sort_index("thread_sort_index", cpu, tid, track as u64));
        }
        self.add_planned(events);
        self.add_actual(events);
        // Late, early and info come with what they say; see `signal`.
        let here = self.timeline.marks.iter();
        let here = here.filter(|mark| mark_name(mark.kind).is_some());
        events.extend(here.map(|mark| self.mark(mark)));
    }

    fn event(&self, track: Track, phase: Phase, name: String, ts: u64) -> Event {
        Event {
            name,
            phase,
            ts,
            dur: None,
            pid: pid(self.timeline.cpu),
            tid: tid(self.timeline.cpu, track),
            scope: None,
            category: None,
            args: Map::new(),
        }
    }

    /// The slots of each plan, end to end from the time when it came into force
    /// until another one takes over.
    fn add_planned(&self, events: &mut Vec<Event>) {
        let timeline = self.timeline;
        // Of a plan that came before the recording it is not known when.
        let Some(installed_ns) = timeline.installed_ns else {
            return;
        };
        let first = (installed_ns, self.first_plan_id, &timeline.planned);
        let later = timeline.later.iter();
        let later = later.map(|plan| (plan.installed_ns, plan.plan_id, &plan.planned));
        let plans: Vec<_> = std::iter::once(first).chain(later).collect();
        for (number, &(begin_ns, plan_id, slots)) in plans.iter().enumerate() {
            let until_ns = plans.get(number + 1).map_or(u64::MAX, |next| next.0);
            let slots = slots.iter();
            events.extend(slots.map_while(|slot| self.slot(slot, begin_ns, plan_id, until_ns)));
        }
    }

    /// A slot of a plan that holds until `until_ns`, if it begins before that.
    fn slot(
        &self,
        slot: &PlannedSlot,
        begin_ns: u64,
        plan_id: u64,
        until_ns: u64,
    ) -> Option<Event> {
        let from_ns = begin_ns.saturating_add(slot.start_ns);
        if from_ns >= until_ns {
            return None;
        }
        let to_ns = begin_ns.saturating_add(slot.end_ns);
        let name = match slot.process {
            Some(process) => self.names.of(process, slot.task),
            None => "idle".into(),
        };
        let cut = (to_ns > until_ns).then_some(true);
        Some(Event {
            dur: Some(to_ns.min(until_ns) - from_ns),
            category: Some("planned"),
            args: args([
                ("plan_id", json!(plan_id)),
                ("slot", json!(slot.slot)),
                ("process", json!(slot.process)),
                ("task", json!(slot.task)),
                ("length_insns", json!(slot.length_insns)),
                ("cut_by_next_plan", json!(cut)),
            ]),
            ..self.event(Track::Planned, Phase::Complete, name, from_ns)
        })
    }

    fn add_actual(&self, events: &mut Vec<Event>) {
        let later = &self.timeline.later;
        for segment in &self.timeline.actual {
            let name = self.names.of(segment.process, segment.task);
            let plan = segment.plan.checked_sub(1).and_then(|plan| later.get(plan));
            events.push(Event {
                dur: Some(segment.end_ns - segment.start_ns),
                category: Some(segment.reason),
                args: args([
                    ("plan_id", json!(plan.map_or(self.first_plan_id, |p| p.plan_id))),
                    ("slot", json!(segment.slot)),
                    ("process", json!(segment.process)),
                    ("task", json!(segment.task)),
                    ("reason", json!(segment.reason)),
                ]),
                ..self.event(Track::Actual, Phase::Complete, name, segment.start_ns)
            });
        }
    }

    fn mark(&self, mark: &Mark) -> Event {
        let kind = mark_name(mark.kind).unwrap_or_default();
        let who = self.names.of(mark.process, mark.task);
        let name = format!("{kind}: {who}");
        let value = match mark.kind {
            MarkKind::Preempted | MarkKind::Pushed => ("t1_insns", json!(mark.value)),
            MarkKind::Ceiling => ("ceiling_ns", json!(mark.value)),
            _ => ("value", Value::Null),
        };
        Event {
            scope: Some(Scope::Thread),
            category: Some(kind),
            args: args([
                ("slot", json!(mark.slot)),
                ("process", json!(mark.process)),
                ("task", json!(mark.task)),
                ("retired_insns", json!(mark.retired_insns)),
                value,
            ]),
            ..self.event(Track::Signals, Phase::Instant, name, mark.time_ns)
        }
    }
}

/// Returns the name of a mark that is no signal.
fn mark_name(kind: MarkKind) -> Option<&'static str> {
    match kind {
        MarkKind::Preempted => Some("preempted"),
        MarkKind::Pushed => Some("pushed"),
        MarkKind::Ceiling => Some("ceiling"),
        MarkKind::Absent => Some("absent"),
        MarkKind::Waits => Some("waits"),
        MarkKind::Late | MarkKind::Early | MarkKind::Info => None,
    }
}

/// A prediction failure, or information on the way to one.
pub(crate) fn signal(signal: &Signal, series: &Series, names: &Names) -> Event {
    let kind = match signal.kind {
        MarkKind::Late => "late",
        MarkKind::Early => "early",
        _ => "info",
    };
    let cpu = series.cpus.iter().find(|cpu| cpu.cpu == signal.cpu);
    let begin_ns = cpu.map_or(0, |cpu| cpu.begin_ns);
    let who = names.of(signal.process, Some(signal.task));
    Event {
        name: format!("{kind} ({}): {who}", signal.cause),
        phase: Phase::Instant,
        ts: begin_ns + signal.time_ns,
        dur: None,
        pid: pid(signal.cpu),
        tid: tid(signal.cpu, Track::Signals),
        scope: Some(Scope::Thread),
        category: Some(kind),
        args: args([
            ("seq", json!(signal.seq)),
            ("cause", json!(signal.cause)),
            ("process", json!(signal.process)),
            ("task", json!(signal.task)),
            ("level_percent", json!(signal.level_percent)),
            ("compared", json!(signal.compared)),
            ("threshold", json!(signal.threshold)),
            ("stress", json!(signal.stress)),
            ("why", json!(signal.words)),
        ]),
    }
}

/// Lateness of the node and of each process, and the stress.
pub(crate) fn add_counters(cpu: &CpuSeries, events: &mut Vec<Event>) {
    let mut add = |name: String, unit: &str, line: &[Point]| {
        events.extend(line.iter().map(|&Point(time_ns, value)| Event {
            name: name.clone(),
            phase: Phase::Counter,
            ts: cpu.begin_ns + time_ns,
            dur: None,
            pid: pid(cpu.cpu),
            tid: 0,
            scope: None,
            category: None,
            args: args([(unit, json!(value))]),
        }));
    };
    add("lateness: node".into(), "insns", &cpu.lateness_insns);
    for process in &cpu.processes {
        let name = format!("lateness: {}", process.name);
        add(name, "insns", &process.lateness_insns);
    }
    add("stress".into(), "points", &cpu.stress);
}

fn name_of(what: &str, cpu: u32, tid: u64, name: Value) -> Event {
    metadata(what, cpu, tid, ("name", name))
}

fn sort_index(what: &str, cpu: u32, tid: u64, index: u64) -> Event {
    metadata(what, cpu, tid, ("sort_index", json!(index)))
}

fn metadata(what: &str, cpu: u32, tid: u64, (key, value): (&str, Value)) -> Event {
    Event {
        name: what.into(),
        phase: Phase::Metadata,
        ts: 0,
        dur: None,
        pid: pid(cpu),
        tid,
        scope: None,
        category: None,
        args: args([(key, value)]),
    }
}
