// SPDX-License-Identifier: GPL-2.0
//! Surroundings of a plan: programs that sleep when it begins, and the rest of the system, which
//! has unallocated time and gaps.

mod common;

use common::{config, ended, of_kind, plan, run, run_with};
use pbs_core::EventKind;
use pbs_plan::{Config, Dispatch, Plan};
use pbs_sim::Options;

/// 8 ms of each 10 ms.
fn short_windows(mut plan: Plan) -> Plan {
    plan.config = Some(Config {
        thresholds: 0,
        window_period_ns: 10_000_000,
        window_unallocated_ns: 2_000_000,
        ..config()
    });
    plan
}

/// The process waits for 500,000 ns. Awake it has the CPU before it finds that out.
#[test]
fn a_process_that_sleeps_when_the_plan_begins_is_not_granted_the_cpu() {
    let mut plan = plan("1: 100000\nslots: 1");
    plan.processes[0].tasks[0].wait_insns = Some(500_000);
    let grants = |options: &Options| {
        let simulation = run_with(&plan, options);
        assert_eq!(ended(&simulation), [(1, 0, 600_000)]);
        let grants = of_kind(&simulation, EventKind::Grant).into_iter();
        let of_process = grants.filter(|event| event.process == 1);
        of_process.map(|event| event.time_ns).collect::<Vec<_>>()
    };
    let asleep = Options { asleep_at_start: true, ..Options::default() };
    assert_eq!(grants(&asleep), [500_000]);
    assert_eq!(grants(&Options::default()), [0, 500_000]);
}

#[test]
fn a_plan_uses_unallocated_time_if_nothing_else_has_to_run() {
    let busy = Options { linux_is_idle: false, ..Options::default() };
    let thesis = short_windows(plan("1: 25000000\nslots: 1"));
    let mut floating = thesis.clone();
    floating.config.as_mut().unwrap().dispatch = Dispatch::Deadline as u64;
    for (plan, options) in [(&thesis, &Options::default()), (&thesis, &busy), (&floating, &busy)] {
        assert_eq!(ended(&run_with(plan, options)), [(1, 0, 31_000_000)]);
    }
    let simulation = run(&floating);
    assert_eq!(ended(&simulation), [(1, 0, 25_000_000)]);
    let cpu = &simulation.cpus[0];
    assert_eq!((cpu.unallocated_ns, cpu.running_ns), (0, 25_000_000));
    // The last 2 ms of two windows.
    assert_eq!(cpu.running_unallocated_ns, 4_000_000);
    let left = run_with(&floating, &busy);
    assert_eq!((left.cpus[0].unallocated_ns, left.cpus[0].running_unallocated_ns), (6_000_000, 0));
}

#[test]
fn the_longest_run_ends_with_unallocated_time_and_with_idle_time() {
    // Two processes run without a gap.
    let simulation = run(&plan("1: 1000000\n2: 300000\nslots: 1 2 i200000"));
    assert_eq!(simulation.cpus[0].longest_run_ns, 1_300_000);
    let simulation = run(&plan("1: 1000000 200000\n2: 300000\nslots: 2 i200000 1 1"));
    assert_eq!(simulation.cpus[0].longest_run_ns, 1_200_000);
    let windows = short_windows(plan("1: 25000000\nslots: 1"));
    assert_eq!(run(&windows).cpus[0].longest_run_ns, 8_000_000);
    // The rest of the system goes first there, though it has nothing to run.
    let mut floating = windows.clone();
    floating.config.as_mut().unwrap().dispatch = Dispatch::Deadline as u64;
    assert_eq!(run(&floating).cpus[0].longest_run_ns, 8_000_000);
}
