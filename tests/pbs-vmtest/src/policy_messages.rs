// SPDX-License-Identifier: GPL-2.0
//! Messages of real programs: their planned arrivals, and the signals about them.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};

use pbs_core::{Config, Threshold};
use pbs_uapi::{Cause, Device, Event, EventKind};
use pbs_vmtest::{check, check_eq, shared};

use crate::jobs::{ask, prepare};

use crate::harness::{burn, work_tasks, Context, Node, Plan, Scene, Verdict};
use crate::policy_cpus::uncounted;

const TASK_INSNS: u64 = 2_000_000;

/// The word that is sent.
const WORD: u64 = 0x6d65_7373_6167_6573;

/// The sender has computed for this long beyond its planned length.
const LATE_INSNS: u64 = 60_000_000;

const LATE_NS: u64 = 10_000_000;

/// Messages alone, with levels and without stress.
fn watched() -> Config {
    Config {
        thresholds: Threshold::T2Message as u64
            | Threshold::Tm2Message as u64
            | Threshold::Info as u64,
        t2_message_ns: LATE_NS,
        stress_reset: 0,
        ..uncounted()
    }
}

/// The plan of a sender on CPU 0 and a receiver on CPU 1, whose second task waits for the message.
fn plan(arrival_ns: u64) -> Plan {
    let plan = Plan::new(1).config(watched());
    let plan = plan.cpu(0).idle(20_000_000).slot(1, 0, TASK_INSNS).slot(1, 1, TASK_INSNS);
    let plan = plan.cpu(1).idle(20_000_000).slot(2, 0, TASK_INSNS).slot(2, 1, TASK_INSNS);
    plan.edge(2, 1, 1, 0).arrival(arrival_ns)
}

/// Runs a sender and a receiver; `send` and `receive` use what is between them.
fn run(
    arrival_ns: u64,
    send: impl FnOnce(),
    receive: impl FnOnce() -> u64,
) -> Result<Node, String> {
    let mut scene = Scene::new()?;
    scene.process(1, |device: &Device| {
        burn(TASK_INSNS + LATE_INSNS);
        send();
        device.task_end(None).expect("the end of the sender");
        burn(TASK_INSNS / 2);
    })?;
    scene.process(2, |device: &Device| {
        work_tasks(device, &[TASK_INSNS / 2]);
        device.task_end(None).expect("the end of the task before the receiver");
        // The order of tasks has held it back: the whole message is there.
        assert_eq!(receive(), WORD, "what was received");
        burn(TASK_INSNS / 2);
    })?;
    let mut scene = scene.start(&plan(arrival_ns))?;
    scene.node.read_until(EventKind::PlanEnded, 2)?;
    scene.finish()
}

/// Signals about messages of that kind.
fn told(node: &Node, kind: EventKind) -> Vec<Event> {
    let events = node.of(kind).into_iter();
    events.filter(|event| event.reason == Cause::Message as u16).collect()
}

/// The message was late, with both ends; its receiver was not.
fn check_late(node: &Node, through: &str) -> Verdict {
    let log = node.log();
    let late = told(node, EventKind::Late);
    let ends = late.iter().map(|event| (event.process, event.task, event.value));
    check_eq!(ends.collect::<Vec<_>>(), [(2, 1, 1 << 32)], "{through}: late\n{log}");
    let levels: Vec<_> = told(node, EventKind::Info).iter().map(|e| e.level_percent).collect();
    let rises = levels.windows(2).all(|pair| pair[0] < pair[1]);
    check!(rises, "{through}: levels {levels:?}\n{log}");
    for event in node.of(EventKind::TaskEnded).iter().filter(|event| event.process == 2) {
        check!(event.lateness_insns <= 0, "{through}: the receiver was late\n{log}");
    }
    let ended = node.of(EventKind::TaskEnded);
    let place = |task| ended.iter().position(|event| (event.process, event.task) == task);
    check!(place((1, 0)) < place((2, 1)), "{through}: received before it was sent\n{log}");
    Ok(())
}

/// A late sender writes to a pipe, to a socket and to shared memory: each time the message is a
/// prediction failure of its own.
pub fn late_messages_of_programs_are_signalled() -> Verdict {
    let (mut from, mut to) = std::io::pipe().map_err(|error| error.to_string())?;
    let node = run(
        1_000_000,
        || to.write_all(&WORD.to_ne_bytes()).expect("write to the pipe"),
        || {
            let mut word = [0; 8];
            from.read_exact(&mut word).expect("read from the pipe");
            u64::from_ne_bytes(word)
        },
    )
    .context("pipe")?;
    check_late(&node, "pipe")?;
    let (mut one, mut other) = UnixStream::pair().map_err(|error| error.to_string())?;
    let node = run(
        1_000_000,
        || one.write_all(&WORD.to_ne_bytes()).expect("write to the socket"),
        || {
            let mut word = [0; 8];
            other.read_exact(&mut word).expect("read from the socket");
            u64::from_ne_bytes(word)
        },
    )
    .context("socket")?;
    check_late(&node, "socket")?;
    let words: &[AtomicU64] = shared::of_processes(1)?;
    let node = run(
        1_000_000,
        || words[0].store(WORD, Ordering::Release),
        // Nothing here waits for the sender but the order of tasks.
        || words[0].load(Ordering::Acquire),
    )
    .context("shared memory")?;
    check_late(&node, "shared memory")
}

/// A message that is planned for much later ends a wait too early.
pub fn early_message_of_a_program_is_signalled() -> Verdict {
    let words: &[AtomicU64] = shared::of_processes(1)?;
    let node = run(
        3_600_000_000_000,
        || words[0].store(WORD, Ordering::Release),
        || words[0].load(Ordering::Acquire),
    )?;
    let log = node.log();
    let early = told(&node, EventKind::Early);
    let ends = early.iter().map(|event| (event.process, event.task, event.value));
    check_eq!(ends.collect::<Vec<_>>(), [(2, 1, 1 << 32)], "early\n{log}");
    check_eq!(told(&node, EventKind::Late).len(), 0, "late\n{log}");
    Ok(())
}

/// The plan of the programs that mark their sends and receives.
const MARKED: &str = include_str!("../../../samples/plans/messages.toml");

/// Programs in C mark what they send and receive, through a pipe and a socket. As many tasks end as
/// the plan has, each message is there when its receiver begins, and no end is out of order.
pub fn programs_mark_sends_and_receives() -> Verdict {
    for through in ["pipe", "socket"] {
        prepare(&MARKED.replace("\"pipe\"", &format!("\"{through}\"")))?;
        let run = ask(&["run", "job.toml"])?;
        check_eq!(run.status, Some(0), "{through}: status: {}", run.stderr);
        let tasks = run.json["tasks"].as_array().ok_or("tasks")?;
        check_eq!(tasks.len(), 7, "{through}: tasks: {}", run.json["tasks"]);
        let ended_ns = |process: u64, task: u64| {
            let ended = tasks.iter().find(|it| it["process"] == process && it["task"] == task);
            ended.and_then(|ended| ended["ended_ns"].as_u64()).ok_or("a task has not ended")
        };
        for message in 0..3 {
            let (sent_ns, processed_ns) = (ended_ns(1, message)?, ended_ns(2, message + 1)?);
            check!(sent_ns < processed_ns, "{through}: message {message}: {}", run.json["tasks"]);
        }
    }
    Ok(())
}

/// The kernel gives a plan with messages back as it was written.
pub fn messages_are_read_back() -> Verdict {
    let node = Node::open()?;
    let plan = plan(1_234_567);
    node.load(&plan)?;
    for cpu in 0..2 {
        let read = node.device.get_plan(cpu).context("read back")?;
        check_eq!(read, plan.read_back(cpu), "CPU {cpu}");
    }
    Ok(())
}
