// SPDX-License-Identifier: GPL-2.0
//! Tasks that wait for tasks of other processes.

use pbs_uapi::{Event, EventKind, Wait};

use crate::harness::{sleep_ms, work_tasks, Context, Node, Plan, Scene, Verdict};
use crate::policy_cpus::uncounted;
use crate::{check, check_eq};

const TASK_INSNS: u64 = 2_000_000;

fn place(node: &Node, kind: EventKind, process: u32, task: u32) -> Result<u64, String> {
    let events = node.of(kind);
    let found = events.iter().find(|event| (event.process, event.task) == (process, task));
    let found = found.map(|event| event.seq);
    found.ok_or_else(|| format!("no {} {process}/{task}\n{}", kind.name(), node.log()))
}

/// A pipeline whose first stage takes three times what was planned: the others
/// wait for it, are told so once, and are not late for it.
pub fn late_stage_holds_the_next() -> Verdict {
    let plan = Plan::new(1).lead_in();
    let plan = plan.slot(1, 0, TASK_INSNS).slot(2, 0, TASK_INSNS);
    let plan = plan.slot(3, 0, TASK_INSNS).slot(3, 1, TASK_INSNS);
    let plan = plan.edge(2, 0, 1, 0).edge(3, 0, 2, 0);
    let mut scene = Scene::new()?;
    scene.tasks(1, &[3 * TASK_INSNS])?;
    scene.tasks(2, &[TASK_INSNS - 100_000])?;
    scene.tasks(3, &[TASK_INSNS - 100_000; 2])?;
    let node = scene.run(&plan)?;
    let log = node.log();
    let ended = node.of(EventKind::TaskEnded);
    let order = ended.iter().map(|event| (event.process, event.task));
    check_eq!(order.collect::<Vec<_>>(), [(1, 0), (2, 0), (3, 0), (3, 1)], "order\n{log}");
    let waits = node.of(EventKind::Waits);
    let waits = waits.iter().map(|event| (event.process, event.task, event.value));
    check_eq!(waits.collect::<Vec<_>>(), [(2, 0, 1 << 32)], "waits\n{log}");
    for event in ended.iter().filter(|event| event.process != 1) {
        check!(event.lateness_insns <= 0, "late for another\n{log}");
        check_eq!(event.preemptions, 0, "preempted\n{log}");
    }
    Ok(())
}

/// Two processes on two CPUs that take turns: each task waits for the last one of
/// the other.
pub fn cpus_take_turns() -> Verdict {
    const TURNS: u32 = 60;
    let mut plan = Plan::new(1).config(uncounted());
    for cpu in 0..2 {
        plan = plan.cpu(cpu).idle(20_000_000);
        for task in 0..TURNS {
            plan = plan.slot(1 + cpu, task, 200_000);
            if cpu == 1 {
                plan = plan.edge(2, task, 1, task);
            } else if task > 0 {
                plan = plan.edge(1, task, 2, task - 1);
            }
        }
    }
    let mut scene = Scene::new()?;
    for process in 1..=2 {
        scene.tasks(process, &[150_000; TURNS as usize])?;
    }
    let mut scene = scene.start(&plan)?;
    scene.node.read_until(EventKind::PlanEnded, 2)?;
    let node = scene.finish()?;
    let ended = node.of(EventKind::TaskEnded);
    let order = ended.iter().map(|event| (event.process, event.task));
    let turns = (0..TURNS).flat_map(|task| [(1, task), (2, task)]);
    check_eq!(order.collect::<Vec<_>>(), turns.collect::<Vec<_>>(), "order\n{}", node.log());
    // Who waits is told once a task.
    let waits = node.of(EventKind::Waits).len();
    check!(
        (TURNS as usize / 2..2 * TURNS as usize).contains(&waits),
        "{waits} waits\n{}",
        node.log()
    );
    println!("{waits} waits in {} turns", 2 * TURNS);
    Ok(())
}

/// Four CPUs, each of whose tasks waits for one on each of the others.
pub fn cpus_meet() -> Verdict {
    const CPUS: u32 = 4;
    const MEETINGS: u32 = 25;
    let mut plan = Plan::new(1).config(uncounted());
    for cpu in 0..CPUS {
        plan = plan.cpu(cpu).idle(20_000_000);
        for task in 0..MEETINGS {
            plan = plan.slot(cpu, task, 200_000);
            for other in (0..CPUS).filter(|&other| other != cpu && task > 0) {
                plan = plan.edge(cpu, task, other, task - 1);
            }
        }
    }
    let mut scene = Scene::new()?;
    for process in 0..CPUS {
        let burns: Vec<u64> = (0..MEETINGS)
            .map(|task| 50_000 + 40_000 * u64::from((task + process) % CPUS))
            .collect();
        scene.tasks(process, &burns)?;
    }
    let mut scene = scene.start(&plan)?;
    scene.node.read_until(EventKind::PlanEnded, CPUS as usize)?;
    let node = scene.finish()?;
    let ended = node.of(EventKind::TaskEnded);
    check_eq!(ended.len() as u32, CPUS * MEETINGS, "tasks\n{}", node.log());
    // None of a round ends before all of the round before have.
    let rounds: Vec<u32> = ended.iter().map(|event| event.task).collect();
    check!(rounds.windows(2).all(|pair| pair[0] <= pair[1]), "order of rounds: {rounds:?}");
    Ok(())
}

fn gone(node: &Node, process: u32) -> Option<Event> {
    let waits = node.of(EventKind::Waits);
    let is_gone = |event: &&Event| event.reason == Wait::Gone as u16;
    waits.into_iter().find(|event| event.process == process && is_gone(&event))
}

/// A process that waits for one that is killed, on the same CPU and on another, receives that,
/// waits on, and continues under a plan that does not make it wait.
pub fn dead_are_not_waited_for() -> Verdict {
    let plan = Plan::new(1).config(uncounted());
    let plan = plan.cpu(0).idle(20_000_000);
    let plan = plan.slot(1, 0, 200_000).slot(1, 1, 1 << 40);
    let plan = plan.slot(2, 0, 200_000).edge(2, 0, 1, 1);
    let plan = plan.cpu(1).idle(20_000_000);
    let plan = plan.slot(3, 0, 200_000).edge(3, 0, 1, 1);
    let mut scene = Scene::new()?;
    scene.process(1, |device| {
        work_tasks(device, &[150_000]);
        let _ = device.task_end(None);
        loop {
            sleep_ms(1);
        }
    })?;
    scene.tasks(2, &[150_000])?;
    scene.tasks(3, &[150_000])?;
    let mut scene = scene.start(&plan)?;
    while place(&scene.node, EventKind::TaskEnded, 1, 0).is_err() {
        scene.node.read()?;
    }
    sleep_ms(50);
    scene.node.read()?;
    check!(scene.node.of(EventKind::TaskEnded).len() == 1, "went on");
    scene.children[0].kill(libc::SIGKILL)?;
    let _ = scene.children[0].wait();
    scene.children.remove(0);
    for process in 2..=3 {
        while gone(&scene.node, process).is_none() {
            scene.node.read()?;
        }
        let event = gone(&scene.node, process);
        check_eq!(event.map(|event| event.value), Some(1 << 32 | 1), "whom");
    }
    sleep_ms(50);
    scene.node.read()?;
    // The death has ended the task of the dead, and nobody else's.
    let ended = scene.node.of(EventKind::TaskEnded);
    check!(ended.iter().all(|event| event.process == 1), "went on\n{}", scene.node.log());
    // The planner's answer is a plan without the dead, and the edges.
    let plan = Plan::new(2).config(uncounted());
    let plan = plan.cpu(0).slot(2, 0, 200_000);
    scene.node.load(&plan.cpu(1).slot(3, 0, 200_000))?;
    let node = scene.finish()?;
    place(&node, EventKind::TaskEnded, 2, 0)?;
    place(&node, EventKind::TaskEnded, 3, 0)?;
    Ok(())
}

/// A CPU gets another plan, or loses it, while a process on another one waits for
/// one of its own.
pub fn plans_change_on_one_side() -> Verdict {
    let second = |plan: Plan| plan.cpu(1).slot(3, 0, 200_000).edge(3, 0, 1, 2);
    let first = |id: u64| {
        let plan = Plan::new(id).config(uncounted()).cpu(0);
        let plan = plan.slot(1, 0, 200_000).slot(1, 1, 200_000);
        plan.slot(1, 2, 200_000)
    };
    let mut scene = Scene::new()?;
    scene.process(1, |device| {
        for _ in 0..3 {
            sleep_ms(200);
            let _ = device.task_end(None);
        }
    })?;
    scene.tasks(3, &[150_000])?;
    let mut scene = scene.start(&second(first(1)))?;
    while place(&scene.node, EventKind::TaskEnded, 1, 0).is_err() {
        scene.node.read()?;
    }
    // The other one keeps its plan, and goes on to see what it waits for.
    scene.node.load(&first(2))?;
    while place(&scene.node, EventKind::TaskEnded, 3, 0).is_err() {
        scene.node.read()?;
    }
    let before = place(&scene.node, EventKind::TaskEnded, 1, 2)?;
    let after = place(&scene.node, EventKind::TaskEnded, 3, 0)?;
    check!(before < after, "order\n{}", scene.node.log());
    scene.finish()?;

    // The same, and the plan of the first is dropped.
    let mut scene = Scene::new()?;
    scene.process(1, |_| sleep_ms(2000))?;
    scene.tasks(3, &[150_000])?;
    let mut scene = scene.start(&second(first(3)))?;
    while place(&scene.node, EventKind::Waits, 3, 0).is_err() {
        scene.node.read()?;
    }
    scene.node.device.drop_plan(0).context("drop")?;
    while gone(&scene.node, 3).is_none() {
        scene.node.read()?;
    }
    scene.node.device.drop_plan(1).context("drop")?;
    for child in &mut scene.children {
        child.wait_ok()?;
    }
    Ok(())
}

/// No interrupt is sent to a CPU that has gone offline while one of its processes waited for one on
/// another CPU; the kernel would warn.
pub fn waiter_goes_offline() -> Verdict {
    let plan = Plan::new(1).config(uncounted()).cpu(0).slot(1, 0, 200_000);
    let plan = plan.cpu(1).slot(3, 0, 200_000).edge(3, 0, 1, 0);
    let mut scene = Scene::new()?;
    scene.process(1, |device| {
        sleep_ms(3000);
        let _ = device.task_end(None);
    })?;
    scene.tasks(3, &[150_000])?;
    let mut scene = scene.start(&plan)?;
    while place(&scene.node, EventKind::Waits, 3, 0).is_err() {
        scene.node.read()?;
    }
    let online = "/sys/devices/system/cpu/cpu1/online";
    std::fs::write(online, "0").context("offline")?;
    // If it has ended before that, nothing was tried.
    check!(
        place(&scene.node, EventKind::TaskEnded, 1, 0).is_err(),
        "too slow\n{}",
        scene.node.log()
    );
    while place(&scene.node, EventKind::TaskEnded, 1, 0).is_err() {
        scene.node.read()?;
    }
    std::fs::write(online, "1").context("online")?;
    for child in &mut scene.children {
        child.wait_ok()?;
    }
    Ok(())
}

/// A circle is refused, with its path, and so is an edge to nowhere.
pub fn circles_are_refused() -> Verdict {
    let node = Node::open()?;
    let plan = || {
        let plan = Plan::new(1).slot(1, 0, 1000).slot(2, 0, 1000);
        plan.edge(1, 0, 2, 0)
    };
    let refused = |plan: &Plan| match node.device.write_plan(&plan.bytes()) {
        Ok(_) => Err("was taken".to_string()),
        Err(refused) => Ok(refused.to_string()),
    };
    let text = refused(&plan().edge(2, 0, 1, 0))?;
    check!(text.contains("tasks wait in a circle: 1/0 for 2/0, 2/0 for 1/0"), "{text}");
    let text = refused(&plan().edge(2, 0, 7, 0))?;
    check!(text.contains("waits for task 0 of process 7"), "{text}");
    // Without the circle it is taken, and comes back as it was written.
    node.load(&plan())?;
    let back = node.device.get_plan(0).context("read back")?;
    check_eq!(back, plan().read_back(0), "as it is read back");
    node.device.drop_plan(0).context("drop")?;
    Ok(())
}
