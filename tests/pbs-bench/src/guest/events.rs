// SPDX-License-Identifier: GPL-2.0
//! Greatest density of the stream of events.

use pbs_uapi::{Event, EventKind};
use pbs_vmtest::check_eq;
use pbs_vmtest::harness::{burn, Context, Plan, Scene};

use super::named::Named;
use super::probe::Probe;

/// Events that the reader takes at once.
const BATCH: usize = 1024;

/// One process ends one task after the other, and a reader, in unallocated time,
/// takes what is told of that from the mapped ring, and sleeps when it has all:
/// kernel instructions by event, the reader's and all others with them, and how many
/// events it lost.
pub fn stream(probe: &Probe) -> Result<Vec<Named>, String> {
    const TASKS: u32 = 50_000;
    let mut plan = Plan::new(1).lead_in();
    for task in 0..TASKS {
        plan = plan.slot(1, task, 1_000);
    }
    let mut scene = Scene::new()?;
    scene.process(1, |device| {
        for _ in 0..TASKS {
            burn(500);
            device.task_end(None).expect("task end");
        }
    })?;
    scene.node.device.map_events();
    let mut batch = vec![Event::default(); BATCH];
    let (mut told, mut lost, mut ended, mut over) = (0, 0, 0, false);
    let start = probe.read();
    let mut scene = scene.start(&plan)?;
    while !over {
        let count = scene.node.device.read_events(&mut batch).context("read")?;
        if count == 0 {
            scene.node.device.poll(-1).context("poll")?;
        }
        for event in &batch[..count] {
            told += 1;
            match EventKind::from_raw(event.kind) {
                Some(EventKind::Overrun) => lost += event.value,
                Some(EventKind::TaskEnded) => ended += 1,
                Some(EventKind::PlanEnded) => over = true,
                _ => {}
            }
        }
    }
    let insns = probe.read() - start;
    scene.children[0].wait_ok()?;
    if lost == 0 {
        check_eq!(ended, TASKS, "tasks that ended");
    }
    let told = f64::from(told) + lost as f64;
    Ok(vec![
        Named::new("event-stream", insns as f64 / told, "insns/event"),
        Named::new("event-stream-lost", lost as f64, "events"),
    ])
}
