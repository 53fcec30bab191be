// SPDX-License-Identifier: GPL-2.0
//! The configuration of a plan in force changes, and the plan continues.

use std::process::Command;

use libc::{EFAULT, EINVAL, ENODEV, ENOENT};
use pbs_core::wire::encode;
use pbs_core::{Config, Dispatch, IdlePolicy, InputKind, Threshold};
use pbs_record::{Recorder, Recording, Stretch};
use pbs_uapi::{ioc, Device, EventKind, Inputs};
use serde_json::Value;

use crate::harness::{
    sleep_ms, sysfs_number, Context, Counting, Node, Plan, Scene, Verdict, CONFIG,
};
use crate::input::kit::{ioctl, refused};
use crate::{check, check_eq};

/// Number of tasks that outlast the changes.
const TASKS: u32 = 120;
const SLOT_INSNS: u64 = 2_000_000;
const BURN_INSNS: u64 = 1_900_000;

/// Two processes in turn, with an idle slot after each pair.
fn plan(id: u64) -> Plan {
    let mut plan = Plan::new(id).config(CONFIG).lead_in();
    for task in 0..TASKS {
        plan = plan.slot(1, task, SLOT_INSNS).slot(2, task, SLOT_INSNS).idle(SLOT_INSNS / 4);
    }
    plan
}

/// Configurations that follow each other, none of which makes tasks fail.
fn configs() -> Vec<Config> {
    let config = |policy: IdlePolicy, period_ns: u64| Config {
        idle_policy: policy as u64,
        window_period_ns: period_ns,
        window_unallocated_ns: period_ns / 10,
        thresholds: Threshold::T1 as u64 | Threshold::T2Preemptions as u64,
        max_preemptions: 1_000_000,
        ..CONFIG
    };
    let periods_ns = [20_000_000, 50_000_000, 100_000_000];
    let policies = IdlePolicy::ALL.into_iter().cycle().zip(periods_ns.into_iter().cycle());
    policies.map(|(policy, period_ns)| config(policy, period_ns)).take(15).collect()
}

/// The configuration with which the plan of CPU 0 is read back.
fn in_force(device: &Device) -> Result<Config, String> {
    let bytes = device.get_plan(0).context("get the plan")?;
    let plan = pbs_plan::wire::decode(&bytes);
    let plan = plan.map_err(|problem| format!("{problem:?}"))?;
    plan.config.ok_or_else(|| "a plan without its configuration".into())
}

/// Every change is in force at once, and no task loses its progress, no process its thread, and
/// the plan its place. The recording has the changes, and replays.
pub fn configuration_changes_under_load() -> Verdict {
    let counting = Counting::here();
    let inputs = Inputs::open().context(pbs_uapi::INPUTS_PATH)?;
    let recorder = Recorder::new(inputs, Vec::new()).context("record")?;
    let mut scene = Scene::new()?;
    for process in 1..3 {
        scene.tasks(process, &[BURN_INSNS; TASKS as usize])?;
    }
    let scene = scene.start(&plan(1))?;
    let configs = configs();
    for config in &configs {
        sleep_ms(23);
        let device = &scene.node.device;
        device.configure(0, 1, &encode::config(config)).context("configure")?;
        check_eq!(in_force(device)?, *config, "configuration in force");
        // As it is already: nothing happens.
        device.configure(0, 1, &encode::config(config)).context("the same once more")?;
    }
    let longest_ns = sysfs_number("cpu0/longest_swap_ns")?;
    let node = scene.finish()?;
    let log = node.log();
    let changed = node.of(EventKind::Configured);
    check_eq!(changed.len(), configs.len(), "events of changes\n{log}");
    check_eq!(node.of(EventKind::PlanInstalled).len(), 1, "plans\n{log}");
    check_eq!(node.of(EventKind::Ejected).len(), 0, "ejections\n{log}");
    let last = node.task_ended(1, TASKS - 1)?;
    let met_running = changed.iter().filter(|event| event.seq < last.seq).count();
    println!(
        "{met_running} of {} changes came while tasks ran; the run queue was locked for {} us at \
         most",
        configs.len(),
        longest_ns / 1000
    );
    check!(met_running >= 6, "too few changes met a running plan\n{log}");
    for process in 1..3 {
        for task in 0..TASKS {
            let event = node.task_ended(process, task)?;
            check!(
                counting.agrees(event.retired_insns, BURN_INSNS),
                "process {process} lost counts of task {task}: {}\n{log}",
                event.retired_insns
            );
        }
    }
    let slots: Vec<_> = node.of(EventKind::TaskEnded).iter().map(|event| event.slot).collect();
    check!(slots.is_sorted(), "the plan went back: {slots:?}\n{log}");
    let bytes = recorder.end().context("end of the recording")?;
    let recording = Recording::read(&bytes).context("recording")?;
    for replay in recording.replay(false) {
        check!(replay.difference.is_none(), "CPU {}: {:?}", replay.cpu, replay.difference);
    }
    let stretches = recording.cpus.values().flatten();
    let parts = stretches.filter_map(|stretch| match stretch {
        Stretch::Inputs(part) => Some(&part.inputs),
        Stretch::Lost(_) => None,
    });
    let recorded = parts.flatten().filter(|i| i.input_kind() == Some(InputKind::Configure));
    check_eq!(recorded.count(), configs.len(), "recorded changes");
    Ok(())
}

/// What is refused changes nothing: the plan is read back as before, no event tells of a change,
/// and the tasks end as planned.
pub fn refused_change_changes_nothing() -> Verdict {
    let changes = sysfs_number("counts/configured")?;
    let mut scene = Scene::new()?;
    for process in 1..3 {
        scene.tasks(process, &[BURN_INSNS; TASKS as usize])?;
    }
    let scene = scene.start(&plan(7))?;
    let device = &scene.node.device;
    let before = device.get_plan(0).context("get the plan")?;
    let right = encode::config(&configs()[0]);
    let deadline = Config { dispatch: Dispatch::Deadline as u64, ..configs()[0] };
    let said = refused("dispatch", device.configure(0, 7, &encode::config(&deadline)), EINVAL)?;
    check!(said.contains("the plan in force has dispatch = \"thesis\""), "dispatch: {said}");
    let outside = Config { sigma_t1_permille: 1000, ..configs()[0] };
    refused("out of range", device.configure(0, 7, &encode::config(&outside)), EINVAL)?;
    refused("another plan", device.configure(0, 8, &right), ENOENT)?;
    refused("no such CPU", device.configure(4096, 7, &right), ENODEV)?;
    for bytes in [0, 248, 255, right.len() - 1] {
        refused("a part", device.configure(0, 7, &right[..bytes]), EINVAL)?;
    }
    let mut long = right.to_vec();
    long.extend([0; 8]);
    refused("more than there is", device.configure(0, 7, &long), EINVAL)?;
    // cpu, config_bytes, plan_id, and an address that is nobody's.
    let mut record = [0_u32, right.len() as u32, 7, 0, 0, 0];
    let unreadable = ioctl(device, ioc::CONFIGURE, record.as_mut_ptr() as usize);
    check_eq!(unreadable.err(), Some(EFAULT), "errno of an address of nobody");
    check_eq!(device.get_plan(0).context("get the plan")?, before, "plan read back");
    let node = scene.finish()?;
    let log = node.log();
    check_eq!(node.of(EventKind::Configured).len(), 0, "events of changes\n{log}");
    node.task_ended(2, TASKS - 1)?;
    node.device.drop_plan(0).context("drop the plan")?;
    refused("no plan", node.device.configure(0, 7, &right), ENOENT)?;
    check_eq!(sysfs_number("counts/configured")?, changes, "counted changes");
    Ok(())
}

/// The command of users changes what it is asked to, and says what was there before.
pub fn node_configure() -> Verdict {
    let changes = sysfs_number("cpu1/counts/configured")?;
    let node = Node::open()?;
    let config = Config { idle_policy: IdlePolicy::Latest as u64, ..CONFIG };
    node.load(&Plan::new(5).config(config).cpu(1).slot(1, 0, 1_000_000))?;
    let ask = |values: &[&str]| -> Result<(Option<i32>, Value, String), String> {
        let mut command = Command::new("pbsctl");
        command.args(["--json", "node", "configure", "--cpu", "1"]).args(values);
        let ran = command.output().context("pbsctl")?;
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        let json = serde_json::from_slice(&ran.stdout).unwrap_or(Value::Null);
        Ok((ran.status.code(), json, said))
    };
    let (status, json, said) = ask(&["idle_policy=pieces", "idle_piece_ns=2ms"])?;
    check_eq!(status, Some(0), "status: {said}");
    check_eq!(json["schema"], "pbs.configure/1", "schema");
    check_eq!((&json["cpu"], &json["plan_id"]), (&1.into(), &5.into()), "what changed: {json}");
    check_eq!(json["before"]["idle_policy"], "latest", "before: {json}");
    check_eq!(json["now"]["idle_policy"], "pieces", "now: {json}");
    check_eq!(json["now"]["idle_piece_ns"], 2_000_000, "now: {json}");
    let (status, json, said) = ask(&["idle_policy=pieces"])?;
    check_eq!(status, Some(0), "status: {said}");
    check_eq!(json["now"], serde_json::json!({}), "nothing new: {json}");
    let (status, json, said) = ask(&["dispatch=deadline"])?;
    check_eq!(status, Some(1), "status: {said}");
    check!(said.contains("only another plan can change"), "what was said: {said} {json}");
    check_eq!(sysfs_number("cpu1/counts/configured")?, changes + 1, "changes");
    let text = Command::new("pbsctl").args(["plan", "dump", "--cpu", "1"]).output();
    let text = String::from_utf8_lossy(&text.context("pbsctl")?.stdout).into_owned();
    check!(text.contains("idle_policy = \"pieces\""), "plan: {text}");
    Ok(())
}
