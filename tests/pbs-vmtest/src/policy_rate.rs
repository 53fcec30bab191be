// SPDX-License-Identifier: GPL-2.0
//! The rate of a CPU, as an operator says it.

use pbs_core::{Config, Rate};
use pbs_uapi::EventKind;

use crate::harness::{
    burn, ns, overshoot_limit_insns, rate, set_sysfs, sleep_ms, sysfs, sysfs_number, Context, Node,
    Plan, Scene, Verdict, CONFIG,
};
use crate::{check, check_eq};

const RATE: &str = "cpu0/rate_insns_per_ms";

/// In the middle of a plan a CPU is said to be four times as slow as was measured:
/// the next ceiling and the next t1 are formed with that; the ceiling of a process
/// that has a rate by the plan is not. It stays said until it is taken back.
pub fn rate_as_it_is_said() -> Verdict {
    const EXTRA_NS: u64 = 5_000_000;
    const OWN_INSNS_PER_MS: u64 = 100_000;
    let measured = rate();
    let slow = Rate::new(measured.insns_per_ms() / 4);
    let config = Config {
        sigma_t1_permille: 1_001,
        no_preemption_ns: ns(200_000),
        ceiling_factor_permille: 2_000,
        ceiling_extra_ns: EXTRA_NS,
        ..CONFIG
    };
    let plan = Plan::new(1)
        .config(config)
        .rate(3, OWN_INSNS_PER_MS)
        .lead_in()
        .slot(1, 0, 1_000_000)
        .slot(2, 0, 1_000_000)
        .slot(1, 1, 1_000_000)
        .slot(3, 0, 1_000_000)
        .slot(2, 1, 1_000_000);
    let mut scene = Scene::new()?;
    // Two blocked ones, whose slots end at their ceilings.
    scene.process(1, |device| {
        sleep_ms(500);
        burn(500_000);
        device.task_end(None).expect("task end");
        burn(500_000);
    })?;
    scene.process(3, |_| {
        sleep_ms(500);
        burn(500_000);
    })?;
    scene.process(2, move |device| {
        burn(500_000);
        set_sysfs(RATE, &slow.insns_per_ms().to_string()).expect("a slower CPU");
        device.task_end(None).expect("task end");
        burn(2_000_000);
    })?;
    let node = scene.run(&plan)?;
    let log = node.log();
    let ceilings: Vec<_> =
        node.of(EventKind::Ceiling).iter().map(|event| (event.process, event.value)).collect();
    let expected = [(1, measured), (1, slow), (3, Rate::new(OWN_INSNS_PER_MS))];
    check_eq!(ceilings.len(), expected.len(), "ceilings\n{log}");
    for (is, (process, rate)) in ceilings.into_iter().zip(expected) {
        let expected_ns = rate.length_ns(2_000_000) + EXTRA_NS;
        println!("ceiling of {}: {} ns, {expected_ns} ns", is.0, is.1);
        check!(
            is.0 == process && is.1.abs_diff(expected_ns) <= 1_000,
            "ceiling {is:?}, expected {process} and {expected_ns} ns\n{log}"
        );
    }
    let preempted = node.first(EventKind::Preempted, 2)?;
    check_eq!(preempted.slot, 5, "slot that ended at t1\n{log}");
    let t1_insns = 1_000_000 + slow.length_insns(config.no_preemption_ns);
    check_eq!(preempted.value, t1_insns, "t1\n{log}");
    check!(
        preempted.retired_insns.wrapping_sub(t1_insns) < overshoot_limit_insns(),
        "preempted at {}, t1 is {t1_insns}",
        preempted.retired_insns
    );
    is_said(slow)?;
    for wrong in ["-1", "4294967296", "1.5", "fast", " "] {
        check!(set_sysfs(RATE, wrong).is_err(), "{wrong:?} was taken");
        is_said(slow)?;
    }
    set_sysfs(RATE, "4294967295")?;
    check_eq!(sysfs_number(RATE)?, i64::from(u32::MAX), "the greatest");
    set_sysfs(RATE, "0")?;
    is_said(measured)
}

/// The CPU's, and that of the node, of which it is the slowest.
fn is_said(rate: Rate) -> Verdict {
    let insns_per_ms = rate.insns_per_ms();
    check_eq!(sysfs(RATE)?, insns_per_ms.to_string(), "rate of the CPU");
    let info = Node::open()?.device.info().context("info")?;
    check_eq!(info.rate_insns_per_ms, insns_per_ms, "rate of the node");
    Ok(())
}

/// A CPU that goes and comes back is still as fast as was said, and measured anew
/// behind that.
pub fn said_rate_outlives_offline() -> Verdict {
    const OTHER: &str = "cpu1/rate_insns_per_ms";
    let online = |value| {
        let path = "/sys/devices/system/cpu/cpu1/online";
        std::fs::write(path, value).context(path)
    };
    set_sysfs(OTHER, "12345")?;
    online("0")?;
    check_eq!(sysfs(OTHER)?, "12345", "rate of a CPU that is offline");
    // Of those that are online none is that slow.
    check!(
        sysfs_number("rate_insns_per_ms")? > 23456,
        "the node's rate is that of a CPU that is offline"
    );
    set_sysfs(OTHER, "23456")?;
    online("1")?;
    check_eq!(sysfs(OTHER)?, "23456", "rate after it");
    check_eq!(sysfs("rate_insns_per_ms")?, "23456", "rate of the node");
    // With it the plans of that CPU go on.
    let plan = Plan::new(1).cpu(1);
    let plan = plan.slot(1, 0, 1_000_000).slot(1, 1, 1_000_000);
    let mut scene = Scene::new()?;
    scene.tasks(1, &[500_000, 500_000])?;
    let node = scene.run(&plan)?;
    check_eq!(node.task_ended(1, 1)?.slot, 1, "slot\n{}", node.log());
    set_sysfs(OTHER, "0")?;
    check!(sysfs_number(OTHER)? > 23456, "what was said came for what was measured");
    Ok(())
}
