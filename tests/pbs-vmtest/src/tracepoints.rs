// SPDX-License-Identifier: GPL-2.0
//! The tracepoints `pbs:*`, as tools read them: the files of tracefs, and
//! perf_event_open(2).

use std::collections::HashMap;
use std::fs;
use std::io::{ErrorKind, Read};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use pbs_uapi::{Event, EventKind, IDLE};

use crate::harness::{cvt, ns, Context, Node, Plan, Scene, Verdict, CONFIG};
use crate::{check, check_eq};

const TRACEFS: &str = "/sys/kernel/tracing";

fn read(file: &str) -> Result<String, String> {
    let path = format!("{TRACEFS}/{file}");
    fs::read_to_string(&path).context(&path)
}

fn write(file: &str, text: &str) -> Verdict {
    let path = format!("{TRACEFS}/{file}");
    fs::write(&path, text).context(&path)
}

/// Empties the trace and switches tracepoints on or off: all of ours, or one.
fn trace(tracepoint: Option<&str>, on: bool) -> Verdict {
    write("trace", "")?;
    let file = tracepoint.map_or_else(
        || "events/pbs/enable".to_string(),
        |name| format!("events/pbs/{name}/enable"),
    );
    write(&file, if on { "1" } else { "0" })
}

/// A line of a trace: the tracepoint, and what stands behind it.
#[derive(Debug)]
struct Line {
    tracepoint: String,
    fields: HashMap<String, String>,
}

impl Line {
    /// `   prog-12  [000] d..3.  1.234567: pbs_grant: cpu=0 seq=5 ...`
    fn parse(line: &str) -> Option<Self> {
        let (_, rest) = line.split_once(": pbs_")?;
        let (name, fields) = rest.split_once(": ")?;
        let fields = fields.split_whitespace().filter_map(|f| f.split_once('='));
        Some(Self {
            tracepoint: format!("pbs_{name}"),
            fields: fields.map(|(k, v)| (k.into(), v.into())).collect(),
        })
    }

    fn text(&self, field: &str) -> Result<&str, String> {
        let text = self.fields.get(field).map(String::as_str);
        text.ok_or_else(|| format!("no {field} in {self:?}"))
    }

    fn number(&self, field: &str) -> Result<i64, String> {
        self.text(field)?.parse().context(field)
    }
}

fn lines(text: &str) -> Vec<Line> {
    text.lines().filter_map(Line::parse).collect()
}

/// The tracepoint of an event, and the fields that it must have beside `seq`
/// and `cpu`.
fn expected(event: &Event) -> Option<(&'static str, Vec<(&'static str, String)>)> {
    let number = |value: i64| value.to_string();
    let count = |value: u64| value.to_string();
    // None of something is -1.
    let plan_id = ("plan_id", count(event.plan_id));
    let place = || {
        vec![
            plan_id.clone(),
            ("slot", number(event.slot as i64)),
            ("process", number((event.process as i32).into())),
            ("task", number((event.task as i32).into())),
        ]
    };
    let counts = [
        ("planned_insns", count(event.planned_insns)),
        ("retired_insns", count(event.retired_insns)),
    ];
    let lateness = ("lateness_insns", number(event.lateness_insns));
    let node = ("node_lateness_insns", number(event.node_lateness_insns));
    let preemptions = ("preemptions", count(event.preemptions.into()));
    let with = |more: &[(&'static str, String)]| [place(), more.to_vec()].concat();
    let kind = EventKind::from_raw(event.kind)?;
    let named = ("kind", kind.name().to_string());
    Some(match kind {
        EventKind::Grant => {
            let reason = pbs_uapi::Grant::from_raw(event.reason)?.name().to_string();
            ("pbs_grant", with(&[("reason", reason), counts[1].clone()]))
        }
        EventKind::TaskEnded => {
            let more = [
                counts[0].clone(),
                counts[1].clone(),
                lateness,
                node,
                preemptions,
                ("tid", number(event.pid.into())),
                ("peak_vm_bytes", count(event.peak_vm_bytes)),
                ("peak_rss_bytes", count(event.peak_rss_bytes)),
            ];
            ("pbs_task_end", with(&more))
        }
        EventKind::Preempted => {
            let t1 = ("t1_insns", count(event.value));
            let more = [t1, counts[0].clone(), counts[1].clone(), lateness, preemptions];
            ("pbs_preempt", with(&more))
        }
        EventKind::Ceiling => {
            let ceiling = ("ceiling_ns", count(event.value));
            ("pbs_ceiling", with(&[ceiling, counts[0].clone(), counts[1].clone()]))
        }
        EventKind::Late | EventKind::Early | EventKind::Info => {
            let cause = pbs_uapi::Cause::from_raw(event.reason)?.name().to_string();
            let more = [
                named,
                ("cause", cause),
                ("threshold", number(event.value as i64)),
                ("level_percent", count(event.level_percent.into())),
                ("stress", count(event.stress.into())),
                counts[0].clone(),
                counts[1].clone(),
                lateness,
                node,
                ("memory_bytes", count(event.memory_bytes)),
                preemptions,
            ];
            ("pbs_signal", with(&more))
        }
        EventKind::PlanInstalled | EventKind::PlanDropped => {
            ("pbs_plan_swap", vec![plan_id, named, ("slots", count(event.value))])
        }
        EventKind::PlanEnded => ("pbs_plan_end", vec![plan_id, ("unfinished", count(event.value))]),
        EventKind::Attached => {
            let process = ("process", count(event.process.into()));
            ("pbs_attach", vec![plan_id, process, ("tid", number(event.pid.into()))])
        }
        EventKind::Waits => {
            let reason = pbs_uapi::Wait::from_raw(event.reason)?.name().to_string();
            let more = [
                ("after_process", count(event.value >> 32)),
                ("after_task", count(event.value & 0xffff_ffff)),
                ("reason", reason),
            ];
            ("pbs_wait", with(&more))
        }
        _ => return None,
    })
}

/// Late, early, on time, idle slots, and a slot that ends at its ceiling, whose task waits for
/// another.
fn plan(id: u64) -> Plan {
    let config = pbs_core::Config {
        ceiling_factor_permille: 2_000,
        ceiling_extra_ns: 1_000_000,
        preemption_limit_ns: ns(500_000),
        t2_task_signaling_limit_ns: ns(1_000_000),
        ..CONFIG
    };
    Plan::new(id)
        .config(config)
        .lead_in()
        .slot(1, 0, 2_000_000)
        .slot(2, 0, 1_000_000)
        .idle(1_000_000)
        .slot(3, 0, 100_000)
        .edge(3, 0, 1, 1)
        .slot(1, 1, 2_000_000)
        .slot(2, 1, 60_000_000)
}

/// A scene of processes that deviate from the plan: process 1 is late, 2 is early, and 3 sleeps
/// through its slot.
fn scene() -> Result<Scene, String> {
    let mut scene = Scene::new()?;
    scene.tasks(1, &[2_600_000, 1_000_000])?;
    scene.tasks(2, &[900_000, 10_000_000])?;
    scene.process(3, |_| crate::harness::sleep_ms(50))?;
    Ok(scene)
}

/// Every event that has a tracepoint is in the trace with what it says, and
/// nothing else is; slots begin and end in the plan's order, with what was
/// retired in them. So it is when a plan takes over and when one is dropped.
pub fn tracepoints_tell_the_events() -> Verdict {
    let scene = scene()?;
    trace(None, true)?;
    let mut node = scene.run(&plan(7))?;
    let first = read("trace")?;
    // The plan that takes over is never carried out, as nobody is there.
    node.load(&Plan::new(8).slot(1, 0, 1_000_000_000))?;
    node.load(&Plan::new(9).slot(1, 0, 1_000_000_000))?;
    node.device.drop_plan(0).context("drop")?;
    node.read()?;
    let whole = read("trace")?;
    trace(None, false)?;
    let begin = first.lines().find(|line| !line.starts_with('#'));
    check!(whole.lines().any(|line| Some(line) == begin), "the trace was cut");

    let traced = lines(&whole);
    check_eq!(lines(&first).is_empty(), false, "nothing traced: {first}");
    let slots = |line: &&Line| line.tracepoint.starts_with("pbs_slot_");
    let told: Vec<_> = traced.iter().filter(|line| !slots(line)).collect();
    let mut kinds = HashMap::new();
    let mut number = 0;
    for event in &node.events {
        let Some((tracepoint, fields)) = expected(event) else {
            continue;
        };
        let line = told
            .get(number)
            .ok_or_else(|| format!("no trace of {}", crate::harness::line(event)))?;
        number += 1;
        *kinds.entry(tracepoint).or_insert(0) += 1;
        check_eq!(line.tracepoint, tracepoint, "tracepoint {number}");
        check_eq!(line.number("seq")?, event.seq as i64, "seq of {line:?}");
        check_eq!(line.number("cpu")?, i64::from(event.cpu), "cpu of {line:?}");
        for (field, value) in fields {
            check_eq!(line.text(field)?, value, "{field} of {line:?}");
        }
    }
    check_eq!(told.len(), number, "records of events");
    println!("{kinds:?}");
    for tracepoint in [
        "pbs_grant",
        "pbs_task_end",
        "pbs_preempt",
        "pbs_ceiling",
        "pbs_signal",
        "pbs_plan_swap",
        "pbs_plan_end",
        "pbs_attach",
        "pbs_wait",
    ] {
        check!(kinds.contains_key(tracepoint), "{tracepoint} never fired");
    }

    check_slots(traced.iter().filter(slots).collect(), &node)
}

/// Checks the tracepoints of slots for [`plan`], and for plan 9 behind it.
fn check_slots(slots: Vec<&Line>, node: &Node) -> Verdict {
    // What begins ends, before the next begins.
    let mut number = -1;
    let mut plan_id = 7;
    for pair in slots.chunks(2) {
        let [begin, end] = pair else {
            return Err(format!("a slot without an end: {pair:?}"));
        };
        check_eq!(begin.tracepoint, "pbs_slot_begin", "first of {pair:?}");
        check_eq!(end.tracepoint, "pbs_slot_end", "second of {pair:?}");
        for field in ["cpu", "plan_id", "slot", "process", "task", "length_insns"] {
            check_eq!(begin.text(field)?, end.text(field)?, "{field} of {pair:?}");
        }
        if begin.number("plan_id")? != plan_id {
            plan_id = begin.number("plan_id")?;
            number = -1;
        }
        check!(begin.number("slot")? > number, "order: {pair:?}");
        number = begin.number("slot")?;
        check!(begin.number("limit_ns")? > 0, "limit: {pair:?}");
        let process = begin.number("process")?;
        let (t1, count) = (begin.number("t1_insns")?, end.number("count_insns")?);
        if process == i64::from(IDLE as i32) {
            check_eq!((t1, count), (0, 0), "idle slot {pair:?}");
            continue;
        }
        check!(t1 > begin.number("length_insns")?, "t1 of {pair:?}");
        // The slots that reached it are those that were preempted.
        let preempted = node.of(EventKind::Preempted);
        let reached = preempted
            .iter()
            .any(|event| (event.plan_id as i64, event.slot as i64) == (plan_id, number));
        check_eq!(count >= t1, reached, "count in slot {pair:?}");
    }
    let of_plan = |id: i64| {
        let of_plan = |line: &&&Line| line.number("plan_id") == Ok(id);
        slots.iter().filter(of_plan).count() / 2
    };
    println!("slots traced: {} of plan 7, {} of 8", of_plan(7), of_plan(8));
    check!(of_plan(7) >= 6, "slots of plan 7: {slots:?}");
    // One was taken over and one dropped in their first slot.
    check_eq!((of_plan(8), of_plan(9)), (1, 1), "slots of plans 8 and 9");
    // What was granted as a slot began as one.
    for (process, slot) in node.grants(pbs_uapi::Grant::Slot) {
        let same = |line: &&&Line| {
            line.number("slot") == Ok(slot as i64) && line.number("process") == Ok(process.into())
        };
        check_eq!(slots.iter().filter(same).count(), 2, "slot {slot}");
    }
    Ok(())
}

/// Off, no record is made; of one that is on, only its own.
pub fn tracepoints_off_tell_nothing() -> Verdict {
    trace(None, false)?;
    write("tracing_on", "1")?;
    let node = scene()?.run(&plan(1))?;
    check!(node.events.len() > 10, "nothing happened");
    let text = read("trace")?;
    check_eq!(lines(&text).len(), 0, "records with all off:\n{text}");

    let scene = scene()?;
    trace(Some("pbs_preempt"), true)?;
    let node = scene.run(&plan(2))?;
    let text = read("trace")?;
    trace(Some("pbs_preempt"), false)?;
    let preempted = node.of(EventKind::Preempted).len();
    check!(preempted > 0, "nobody was preempted");
    check_eq!(lines(&text).len(), preempted, "records with one on:\n{text}");
    Ok(())
}

/// `struct perf_event_attr` up to where a counter of a tracepoint needs it,
/// which is its first published size.
#[repr(C)]
#[derive(Default)]
struct PerfEventAttr {
    kind: u32,
    size: u32,
    config: u64,
    unused: [u64; 6],
}

const _: () = assert!(size_of::<PerfEventAttr>() == 64);
const PERF_TYPE_TRACEPOINT: u32 = 2;

fn counter(tracepoint: &str) -> Result<fs::File, String> {
    let id = read(&format!("events/pbs/{tracepoint}/id"))?;
    let attr = PerfEventAttr {
        kind: PERF_TYPE_TRACEPOINT,
        size: size_of::<PerfEventAttr>() as u32,
        config: id.trim().parse().context("id")?,
        ..PerfEventAttr::default()
    };
    // SAFETY: the structure has the size that it says, and is only read. All
    // threads on CPU 0, no group, no flags.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attr, -1, 0, -1, 0) };
    let fd = cvt(fd as libc::c_int).context("perf_event_open")?;
    // SAFETY: it was just opened and is nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) }.into())
}

/// perf_event_open(2) of a tracepoint counts what happens.
pub fn tracepoints_can_be_counted() -> Verdict {
    let scene = scene()?;
    let mut counters = HashMap::new();
    for name in ["pbs_grant", "pbs_task_end", "pbs_preempt", "pbs_plan_swap"] {
        counters.insert(name, counter(name)?);
    }
    let node = scene.run(&plan(1))?;
    let mut expected_counts: HashMap<&str, u64> = HashMap::new();
    for (tracepoint, _) in node.events.iter().filter_map(expected) {
        *expected_counts.entry(tracepoint).or_default() += 1;
    }
    for (name, counter) in &mut counters {
        let mut count = [0; 8];
        counter.read_exact(&mut count).context(name)?;
        let count = u64::from_ne_bytes(count);
        println!("{name}: {count}");
        check!(count > 0, "{name} was not counted");
        check_eq!(Some(&count), expected_counts.get(name), "{name}");
    }
    Ok(())
}

/// A reader of `trace_pipe` gets the records while the plan runs.
pub fn trace_pipe_while_a_plan_runs() -> Verdict {
    let mut plan = Plan::new(1).lead_in();
    for task in 0..40 {
        plan = plan.slot(1, task, 2_000_000).idle(500_000);
    }
    let mut scene = Scene::new()?;
    scene.tasks(1, &[1_900_000; 40])?;
    trace(None, true)?;
    let mut pipe = fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(format!("{TRACEFS}/trace_pipe"))
        .context("trace_pipe")?;
    let mut scene = scene.start(&plan)?;
    let (mut text, mut before_the_end) = (String::new(), 0);
    let mut buffer = vec![0; 1 << 16];
    while scene.node.of(EventKind::PlanEnded).is_empty() {
        before_the_end = lines(&text).len();
        loop {
            match pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(bytes) => text += &String::from_utf8_lossy(&buffer[..bytes]),
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) => return Err(format!("trace_pipe: {e}")),
            }
        }
        scene.node.device.poll(1000).context("poll")?;
        scene.node.read()?;
    }
    trace(None, false)?;
    let node = scene.finish()?;
    println!("{before_the_end} records before the end");
    check!(before_the_end > 40, "only {before_the_end} records before the end:\n{text}");
    let granted = node.grants(pbs_uapi::Grant::Slot).len();
    check!(granted >= 40, "only {granted} slots");
    Ok(())
}

/// `pbsctl trace` on the node itself: the plan is read back, each slot of it is
/// laid out, and who had the CPU is there.
pub fn live_trace_of_a_run() -> Verdict {
    let scene = scene()?;
    let node = scene.run(&plan(11))?;
    let run = std::process::Command::new("pbsctl").arg("trace").output();
    let run = run.context("pbsctl")?;
    let trace = String::from_utf8_lossy(&run.stdout);
    check!(run.status.success(), "pbsctl trace: {}", String::from_utf8_lossy(&run.stderr));
    let count = |text: &str| trace.matches(text).count();
    check_eq!(count(r#""cat":"planned""#), 7, "planned slots\n{trace}");
    let granted = node.grants(pbs_uapi::Grant::Slot).len();
    // A task that goes on in the slot of the next one is a slice of its own.
    check!(count(r#""cat":"slot""#) >= granted, "granted slots\n{trace}");
    let preempted = node.of(EventKind::Preempted).len();
    check_eq!(count(r#""ph":"i""#) >= preempted, true, "instants\n{trace}");
    for text in [r#""name":"CPU 0""#, r#""name":"lateness: node""#, r#""name":"stress""#] {
        check!(trace.contains(text), "no {text}\n{trace}");
    }
    Ok(())
}
