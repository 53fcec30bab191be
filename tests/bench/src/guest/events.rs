// SPDX-License-Identifier: GPL-2.0
//! How dense the stream of events can be.

use pbs_uapi::EventKind;
use pbs_vmtest::check_eq;
use pbs_vmtest::harness::{burn, Plan, Scene};

use super::probe::Probe;
use super::Named;

/// One process ends one task after the other, and a reader, in unallocated time,
/// reads what is told of that: kernel instructions by event, the reader's and all
/// others with them, and how many events it lost.
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
    let start = probe.read();
    let node = scene.run(&plan)?;
    let insns = probe.read() - start;
    let lost = node.of(EventKind::Overrun);
    let lost: u64 = lost.iter().map(|event| event.value).sum();
    let ended = node.of(EventKind::TaskEnded).len();
    if lost == 0 {
        check_eq!(ended, TASKS as usize, "tasks that ended");
    }
    let told = node.events.len() as f64 + lost as f64;
    Ok(vec![
        Named::new("event-stream", insns as f64 / told, "insns/event"),
        Named::new("event-stream-lost", lost as f64, "events"),
    ])
}
