// SPDX-License-Identifier: GPL-2.0
//! Several CPUs, each with its own plan.

use pbs_core::Config;
use pbs_uapi::{EventKind, Grant};

use crate::harness::{sleep_ms, work_tasks, Context, Plan, Random, Scene, Verdict, CONFIG};
use crate::{check, check_eq};

/// Two CPUs execute their plans at once, each in its own order.
pub fn two_cpus_at_once() -> Verdict {
    cpus_at_once(2)
}

/// Four CPUs do.
pub fn four_cpus_at_once() -> Verdict {
    cpus_at_once(4)
}

/// Threads that come and go, at the request of another CPU, take nothing away of
/// what is counted of the one that runs.
pub fn comings_and_goings_keep_the_count() -> Verdict {
    const BURN_INSNS: u64 = 60_000_000;
    let plan = Plan::new(1).config(uncounted()).lead_in();
    let plan = plan.slot(1, 0, BURN_INSNS).slot(2, 0, 1_000_000);
    let mut scene = Scene::new()?;
    scene.tasks(1, &[BURN_INSNS])?;
    // It stays where it is while it is not attached.
    scene.process(2, |device| {
        sleep_ms(2000);
        work_tasks(device, &[500_000]);
    })?;
    let mut scene = scene.start(&plan)?;
    let waiting = scene.children[1].pid;
    let mut times = 0;
    while scene.node.of(EventKind::TaskEnded).is_empty() {
        scene.node.device.detach(waiting).context("detach")?;
        scene.node.device.attach(waiting, 2, 0).context("attach")?;
        times += 1;
        scene.node.read()?;
    }
    let node = scene.finish()?;
    check!(times > 10, "detached {times} times only");
    let retired_insns = node.task_ended(1, 0)?.retired_insns;
    println!("{retired_insns} of {BURN_INSNS} counted, detached {times} times");
    check!(
        retired_insns >= BURN_INSNS,
        "{retired_insns} of {BURN_INSNS} counted, detached {times} times"
    );
    Ok(())
}

/// With several CPUs the emulated counters count the instructions of all, so
/// that neither thresholds nor ceilings may matter: only orders can be looked
/// at.
pub fn uncounted() -> Config {
    Config { thresholds: 0, ceiling_factor_permille: 1_000_000, ..CONFIG }
}

fn cpus_at_once(cpus: u32) -> Verdict {
    let mut random = Random::new(u64::from(cpus));
    let mut plan = Plan::new(1).config(uncounted());
    let mut scene = Scene::new()?;
    let mut expected = Vec::new();
    for cpu in 0..cpus {
        plan = plan.cpu(cpu).idle(20_000_000);
        let mut order = Vec::new();
        let mut burns = vec![Vec::new(); 3];
        for _ in 0..20 {
            let chosen = random.between(0, 2);
            let length_insns = random.between(200_000, 800_000);
            let of_process = &mut burns[chosen as usize];
            let (process, task) = (10 * cpu + chosen as u32, of_process.len() as u32);
            plan = plan.slot(process, task, length_insns);
            order.push((process, task));
            of_process.push(length_insns);
        }
        for (process, burns) in (10 * cpu..).zip(&burns) {
            if !burns.is_empty() {
                scene.tasks(process, burns)?;
            }
        }
        expected.push(order);
    }
    let mut scene = scene.start(&plan)?;
    scene.node.read_until(EventKind::PlanEnded, cpus as usize)?;
    let node = scene.finish()?;
    let log = node.log();

    let ended = node.of(EventKind::TaskEnded);
    for (cpu, order) in (0..).zip(&expected) {
        let on_cpu: Vec<_> = ended
            .iter()
            .filter(|event| event.cpu == cpu)
            .map(|event| (event.process, event.task))
            .collect();
        check_eq!(&on_cpu, order, "order of CPU {cpu}\n{log}");
        let granted = node.of(EventKind::Grant);
        let granted =
            granted.iter().filter(|event| event.cpu == cpu && event.reason == Grant::Slot as u16);
        check_eq!(granted.count(), order.len(), "slots of CPU {cpu}\n{log}");
        let ends = node.of(EventKind::PlanEnded);
        check_eq!(
            ends.iter().filter(|event| event.cpu == cpu).count(),
            1,
            "ends of the plan of CPU {cpu}\n{log}"
        );
    }
    check_eq!(ended.len(), 20 * cpus as usize, "tasks that ended\n{log}");
    // At once means that every plan began before any ended.  The emulator may keep a
    // CPU standing for long, so it is not asked how far each had come.
    let last_begin = (0..cpus)
        .filter_map(|cpu| {
            let mut grants = node.of(EventKind::Grant).into_iter();
            grants.find(|event| event.cpu == cpu && event.reason == Grant::Slot as u16)
        })
        .map(|event| event.seq)
        .max();
    let first_end = node.of(EventKind::PlanEnded).iter().map(|event| event.seq).min();
    check!(last_begin < first_end, "the plans ran one after the other\n{log}");
    Ok(())
}
