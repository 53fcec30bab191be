// SPDX-License-Identifier: GPL-2.0
//! The kernel's answers about a process by its number.

use std::os::fd::AsRawFd;
use std::process::Command;

use libc::EINVAL;
use pbs_uapi::{ioc, Event, EventKind, Process, ProcessState, IDLE, NO_TASK};
use serde_json::Value;

use crate::harness::{sleep_ms, Context, Node, Pipe, Plan, Scene, Verdict};
use crate::input::kit::ioctl;
use crate::{check, check_eq};

fn ask(node: &Node, process: u32) -> Result<Process, String> {
    let known = node.device.process(process);
    let known = known.context(&format!("ask for process {process}"))?;
    known.ok_or_else(|| format!("no plan has process {process}"))
}

fn check_state(known: &Process, state: ProcessState, task: u32, ended: u32, of: u32) -> Verdict {
    let name = format!("process {}", known.process);
    check_eq!(ProcessState::from_raw(known.state), Some(state), "state of {name}");
    check_eq!(known.task, task, "current task of {name}");
    check_eq!(known.ended_tasks, ended, "ended tasks of {name}");
    check_eq!(known.tasks, of, "tasks of {name}");
    check_eq!((known.cpu, known.plan_id), (0, 1), "place of {name}");
    let waits = state == ProcessState::Waits;
    check!(
        waits || (known.after_process, known.after_task) == (IDLE, NO_TASK),
        "{name} waits for task {} of {}",
        known.after_task,
        known.after_process
    );
    Ok(())
}

/// One that has ended, one that blocks, one without a thread, one whose task waits
/// for another's, and one that nobody has written.
pub fn states_of_processes() -> Verdict {
    let hold = Pipe::new()?;
    let plan = Plan::new(1)
        .lead_in()
        .buffer(1, 9_000)
        .slot(1, 0, 2_000_000)
        .slot(1, 1, 2_000_000)
        .slot(2, 0, 1_000_000)
        .slot(3, 7, 1_000_000)
        .slot(4, 0, 1_000_000)
        .edge(4, 0, 2, 0);
    let mut scene = Scene::new()?;
    scene.tasks(1, &[1_500_000, 2_500_000])?;
    scene.process(2, |_| {
        let mut byte = 0u8;
        // SAFETY: there is room for the byte.
        let read = unsafe { libc::read(hold.read.as_raw_fd(), (&raw mut byte).cast(), 1) };
        assert_eq!(read, 1);
    })?;
    scene.tasks(4, &[500_000])?;
    let mut scene = scene.start(&plan)?;
    scene.node.read_until(EventKind::Waits, 1)?;

    let node = &scene.node;
    let ended = ask(node, 1)?;
    check_state(&ended, ProcessState::Done, NO_TASK, 2, 2)?;
    check_eq!(ended.buffer_insns, 9_000, "plan buffer");
    let second = node.task_ended(1, 1)?;
    check_eq!(ended.lateness_insns, second.lateness_insns, "lateness of process 1");
    check!(ended.peak_rss_bytes > 0, "no peak of process 1");
    check_state(&ask(node, 2)?, ProcessState::Blocked, 0, 0, 1)?;
    let absent = ask(node, 3)?;
    check_state(&absent, ProcessState::Absent, 7, 0, 1)?;
    check_eq!(absent.planned_insns, 1_000_000, "length of the task");
    let waits = ask(node, 4)?;
    check_state(&waits, ProcessState::Waits, 0, 0, 1)?;
    check_eq!((waits.after_process, waits.after_task), (2, 0), "what process 4 waits for");
    let said = Command::new("pbsctl").args(["--json", "stat", "--process", "4"]).output();
    let said = said.context("pbsctl")?;
    let said: Value = serde_json::from_slice(&said.stdout).context("JSON of pbsctl")?;
    check_eq!(said["state"], "waits", "what pbsctl says: {said}");
    check_eq!(said["after"]["process"], 2, "what pbsctl says: {said}");
    let nobody = node.device.process(99).context("ask for process 99")?;
    check!(nobody.is_none(), "process 99: {nobody:?}");

    for word in 0..Process::default().reserved.len() {
        let mut request = Process { process: 1, ..Process::default() };
        request.reserved[word] = 1;
        let result = ioctl(&node.device, ioc::GET_PROCESS, &raw mut request as usize);
        check_eq!(result, Err(EINVAL), "reserved field");
    }

    // SAFETY: the byte is there.
    let wrote = unsafe { libc::write(hold.write.as_raw_fd(), [1u8].as_ptr().cast(), 1) };
    check_eq!(wrote, 1, "bytes written");
    for child in &mut scene.children {
        child.wait_ok()?;
    }
    for process in [2, 4] {
        let known = ask(&scene.node, process)?;
        check_state(&known, ProcessState::Done, NO_TASK, 1, 1)?;
    }
    check_state(&ask(&scene.node, 3)?, ProcessState::Absent, 7, 0, 1)?;
    scene.node.device.drop_plan(0).context("drop")?;
    let gone = scene.node.device.process(1).context("ask for process 1")?;
    check!(gone.is_none(), "a process of a dropped plan: {gone:?}");
    Ok(())
}

/// The answer is of the moment that `next_seq` names. A reader that lost all events before that and
/// reads those after it misses nothing and receives nothing twice.
pub fn state_and_events_join() -> Verdict {
    const TASKS: u32 = 120;
    let mut plan = Plan::new(1).lead_in();
    for task in 0..TASKS {
        plan = plan.slot(1, task, 1_000_000).slot(2, task, 700_000);
    }
    let mut scene = Scene::new()?;
    // Every third task is late and ends in the next slot.
    let burns = |late_insns: u64| -> Vec<u64> {
        let burn = |task| if task % 3 == 0 { late_insns } else { 500_000 };
        (0..TASKS).map(burn).collect()
    };
    scene.tasks(1, &burns(1_300_000))?;
    scene.tasks(2, &burns(900_000))?;
    let scene = scene.start(&plan)?;
    let mut answers = Vec::new();
    loop {
        let known = [ask(&scene.node, 1)?, ask(&scene.node, 2)?];
        answers.extend(known);
        if known.iter().all(|p| p.state == ProcessState::Done as u32) {
            break;
        }
        sleep_ms(1);
    }
    let node = scene.finish()?;

    let mut between = 0;
    for known in &answers {
        let of_it = node.events.iter().filter(|e| e.process == known.process);
        let ends = of_it.filter(|e| e.kind == EventKind::TaskEnded as u16);
        let (before, after): (Vec<&Event>, Vec<_>) = ends.partition(|e| e.seq < known.next_seq);
        check_eq!(
            before.len(),
            known.ended_tasks as usize,
            "ends before event {} of process {}",
            known.next_seq,
            known.process
        );
        match after.first() {
            Some(next) => {
                check_eq!(next.task, known.task, "the task that ends next");
                check!(
                    known.retired_insns <= next.retired_insns,
                    "task {} had retired {} of {}",
                    known.task,
                    known.retired_insns,
                    next.retired_insns
                );
                between += usize::from(!before.is_empty());
            }
            None => check_eq!(known.task, NO_TASK, "the task that ends next"),
        }
    }
    let asked = answers.len();
    println!("{between} of {asked} answers came while tasks ran");
    check!(between >= 10, "too few answers came while tasks ran");
    Ok(())
}
