// SPDX-License-Identifier: GPL-2.0
//! Events: every reader has the whole stream, or is told what it missed.

use pbs_core::Config;
use pbs_uapi::{Event, EventKind};

use crate::harness::{Context, Node, Plan, Scene, Verdict, CONFIG};
use crate::{check, check_eq};

/// Two readers get the same events, whatever pieces they read in; numbers rise
/// by one, and times never fall.
pub fn readers_get_the_same() -> Verdict {
    let mut plan = Plan::new(1).lead_in();
    for task in 0..20 {
        plan = plan.slot(1, task, 300_000).slot(2, task, 200_000);
    }
    let mut scene = Scene::new()?;
    scene.tasks(1, &[250_000; 20])?;
    scene.tasks(2, &[250_000; 20])?;
    let slow = Node::open()?;
    let mut fast = scene.run(&plan)?;
    fast.read()?;

    let mut single = Vec::new();
    let mut event = [Event::default()];
    while slow.device.read_events(&mut event).context("read")? == 1 {
        single.push(event[0]);
    }
    check!(single.len() > 80, "only {} events", single.len());
    check_eq!(single, fast.events, "what one reader got, and the other");
    for pair in single.windows(2) {
        check_eq!(pair[1].seq, pair[0].seq + 1, "number of an event");
        check!(pair[1].time_ns >= pair[0].time_ns, "time fell at event {}", pair[1].seq);
    }

    // Who starts over gets them again.
    slow.device.seek(single[0].seq).context("seek")?;
    let mut again = vec![Event::default(); single.len()];
    let count = slow.device.read_events(&mut again).context("read")?;
    check_eq!(count, single.len(), "events after seeking back");
    check_eq!(again, single, "events after seeking back");
    Ok(())
}

/// Number of tasks that cause more events than a ring holds.
const TASKS: u32 = 40_000;

/// Runs a process on a CPU that ends them one after the other, to the end of the
/// plan.
pub fn more_than_is_held(cpu: u32) -> Result<Node, String> {
    // The quick reader reads in each window, before a ring is full.
    let config =
        Config { window_period_ns: 40_000_000, window_unallocated_ns: 4_000_000, ..CONFIG };
    let mut plan = Plan::new(1).config(config).cpu(cpu).lead_in();
    for task in 0..TASKS {
        plan = plan.slot(1, task, 10_000);
    }
    let mut scene = Scene::new()?;
    scene.process(1, |device| {
        for _ in 0..TASKS {
            device.task_end(None).expect("task end");
        }
    })?;
    scene.run(&plan)
}

/// A reader that sleeps while more happens than the ring holds is told how many
/// events it lost, and then has all that are held.
pub fn slow_reader_is_told() -> Verdict {
    let slow = Node::open()?;
    let old_seq = slow.device.info().context("info")?.next_seq;
    let node = more_than_is_held(0)?;
    check_eq!(node.of(EventKind::Overrun).len(), 0, "overruns of the quick reader");
    check_eq!(node.of(EventKind::TaskEnded).len(), TASKS as usize, "tasks that ended");

    let info = slow.device.info().context("info")?;
    println!("events {} to {} are held", info.first_seq, info.next_seq);
    check!(info.first_seq > old_seq, "nothing was lost, so this proves nothing");
    let mut slow = slow;
    slow.read()?;
    let overruns = slow.of(EventKind::Overrun);
    check_eq!(overruns.len(), 1, "reports of a loss");
    check_eq!(overruns[0].value, info.first_seq - old_seq, "events that were lost");
    check_eq!(slow.events[0], overruns[0], "first that the slow reader gets");
    check_eq!(slow.events[1].seq, info.first_seq, "first event that is held");
    let held = (info.next_seq - info.first_seq) as usize;
    check_eq!(slow.events.len() - 1, held, "events after the report");
    check_eq!(
        slow.events[1..],
        node.events[node.events.len() - held..],
        "events that the slow reader and the quick one got"
    );

    // Back to the oldest: no loss this time.
    slow.device.seek(info.first_seq).context("seek")?;
    slow.events.clear();
    slow.read()?;
    check_eq!(slow.events.len(), held, "events after seeking to the oldest");
    check_eq!(slow.events[0].seq, info.first_seq, "first of them");
    Ok(())
}

/// `pbsctl top` shows how far the plan has come, and what happened since the view
/// before.
pub fn top_shows_the_node() -> Verdict {
    let mut plan = Plan::new(9).lead_in();
    for task in 0..5 {
        plan = plan.slot(1, task, 300_000);
    }
    let mut scene = Scene::new()?;
    scene.tasks(1, &[200_000; 5])?;
    // What is there at its first view is not counted at its second.
    scene.run(&plan)?;
    let run = std::process::Command::new("pbsctl")
        .args(["--json", "top", "--count", "2", "--interval", "1"])
        .output()
        .context("pbsctl")?;
    let said = String::from_utf8_lossy(&run.stdout);
    check!(run.status.success(), "pbsctl top: {}", String::from_utf8_lossy(&run.stderr));
    let views: Vec<_> = said.lines().collect();
    check_eq!(views.len(), 2, "views: {said}");
    for text in [
        r#""cpu":0,"state":"ended","plan_id":9,"slot":6,"slots":6,"process":null"#,
        r#""processes_unfinished":0"#,
    ] {
        check!(views.iter().all(|view| view.contains(text)), "no {text}: {said}");
    }
    check!(views[0].contains(r#""per_s":null"#), "rates: {said}");
    check!(views[1].contains(r#""per_s":[0.0,0.0,0.0,0.0,0.0]"#), "rates: {said}");
    Ok(())
}
