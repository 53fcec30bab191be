// SPDX-License-Identifier: GPL-2.0
//! The configuration of a plan in force changes, and the plan continues.

use std::process::Command;
use std::sync::atomic::Ordering::SeqCst;

use libc::{EAGAIN, EFAULT, EINVAL, ENODEV, ENOENT};
use pbs_core::wire::encode;
use pbs_core::{Config, Dispatch, IdlePolicy, InputKind, Threshold};
use pbs_record::{Recorder, Recording, Stretch};
use pbs_uapi::{ioc, Cause, Device, EventKind, Inputs, Refused};
use serde_json::Value;

use crate::harness::{
    burn, rate, sleep_ms, sysfs_number, Context, Counting, Mapping, Node, Plan, Scene, Verdict,
    CONFIG,
};
use crate::input::kit::{ioctl, refused};
use crate::linux::scene::{SharedWords, ENDLESS_INSNS};
use crate::{check, check_eq};

/// Number of tasks that outlast the changes.
const TASKS: u32 = 120;

/// Length of a slot: 3 ms, also on a CPU that is fast.
fn slot_insns() -> u64 {
    (3 * rate().insns_per_ms()).max(2_000_000)
}

/// Instructions of a task, within its slot.
fn burn_insns() -> u64 {
    slot_insns() / 20 * 19
}

/// Two processes in turn, with an idle slot after each pair.
fn plan(id: u64) -> Plan {
    let slot_insns = slot_insns();
    let mut plan = Plan::new(id).config(CONFIG).lead_in();
    for task in 0..TASKS {
        plan = plan.slot(1, task, slot_insns).slot(2, task, slot_insns).idle(slot_insns / 4);
    }
    plan
}

/// Gives the plan `plan_id` of CPU 0 another configuration, whatever it has now.
fn configure(device: &Device, plan_id: u64, config: &Config) -> Result<(), Refused> {
    let (_, generation) = device.get_plan_and_generation(0)?;
    device.configure(0, plan_id, generation, &encode::config(config))
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
    let burn_insns = burn_insns();
    for process in 1..3 {
        scene.tasks(process, &[burn_insns; TASKS as usize])?;
    }
    let scene = scene.start(&plan(1))?;
    let configs = configs();
    for config in &configs {
        sleep_ms(23);
        let device = &scene.node.device;
        configure(device, 1, config).context("configure")?;
        check_eq!(in_force(device)?, *config, "configuration in force");
        // As it is already: nothing happens.
        configure(device, 1, config).context("the same once more")?;
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
        node.ended_as_burned(counting, process, TASKS, burn_insns)?;
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
        Stretch::Lost(_) | Stretch::Snapshot(_) => None,
    });
    let recorded = parts.flatten().filter(|i| i.input_kind() == Some(InputKind::Configure));
    check_eq!(recorded.count(), configs.len(), "recorded changes");
    Ok(())
}

/// A threshold of memory that becomes smaller is compared although the memory stays the same.
pub fn changed_memory_threshold_holds_at_once() -> Verdict {
    let planned_bytes = Mapping::BYTES as u64 / 2;
    let strict = Config {
        ceiling_extra_ns: 10_000_000_000,
        thresholds: Threshold::T1 as u64 | Threshold::T2Memory as u64,
        ..CONFIG
    };
    // The task uses more than twice the planned peak, and less than nine times.
    let generous = Config { sigma_memory_permille: 9000, ..strict };
    let plan = Plan::new(1).config(generous).peak(1, planned_bytes).lead_in();
    let words = SharedWords::shared()?;
    let mut scene = Scene::new()?;
    scene.process(1, |_| {
        let memory = Mapping::touched();
        // From here on, the memory does not change.
        while words.go.load(SeqCst) == 0 {
            burn(100_000);
            words.progress.fetch_add(1, SeqCst);
        }
        drop(memory);
    })?;
    let mut scene = scene.start(&plan.slot(1, 0, ENDLESS_INSNS))?;
    words.runs("the process with its memory")?;
    // Ticks sample it.
    sleep_ms(50);
    scene.node.read()?;
    check_eq!(scene.node.of(EventKind::Late).len(), 0, "failures\n{}", scene.node.log());
    configure(&scene.node.device, 1, &strict).context("configure")?;
    scene.node.read_until(EventKind::Late, 1)?;
    words.release();
    let node = scene.finish()?;
    let late = node.of(EventKind::Late);
    let causes: Vec<_> = late.iter().map(|event| (event.reason, event.process)).collect();
    check_eq!(causes, [(Cause::Memory as u16, 1)], "failures\n{}", node.log());
    check_eq!(late[0].value, strict.t2_memory_bytes(planned_bytes), "threshold");
    Ok(())
}

/// A refused change changes nothing: the plan is read back as before, no event tells of a change,
/// and the tasks end as planned.
pub fn refused_change_changes_nothing() -> Verdict {
    let changes = sysfs_number("counts/configured")?;
    let mut scene = Scene::new()?;
    let burn_insns = burn_insns();
    for process in 1..3 {
        scene.tasks(process, &[burn_insns; TASKS as usize])?;
    }
    let scene = scene.start(&plan(7))?;
    let device = &scene.node.device;
    let (before, generation) = device.get_plan_and_generation(0).context("get the plan")?;
    let right = encode::config(&configs()[0]);
    let deadline = Config { dispatch: Dispatch::Deadline as u64, ..configs()[0] };
    let said = refused(
        "dispatch",
        device.configure(0, 7, generation, &encode::config(&deadline)),
        EINVAL,
    )?;
    check!(said.contains("the plan in force has dispatch = \"thesis\""), "dispatch: {said}");
    let outside = Config { sigma_t1_permille: 1000, ..configs()[0] };
    refused("out of range", device.configure(0, 7, generation, &encode::config(&outside)), EINVAL)?;
    refused("another plan", device.configure(0, 8, generation, &right), ENOENT)?;
    refused("no such CPU", device.configure(4096, 7, generation, &right), ENODEV)?;
    for bytes in [0, 248, 255, right.len() - 1] {
        refused("a part", device.configure(0, 7, generation, &right[..bytes]), EINVAL)?;
    }
    let mut long = right.to_vec();
    long.extend([0; 8]);
    refused("more than there is", device.configure(0, 7, generation, &long), EINVAL)?;
    let stale = generation.wrapping_sub(1);
    let said = refused("a stale one", device.configure(0, 7, stale, &right), EAGAIN)?;
    check!(said.contains("has changed since it was read"), "a stale one: {said}");
    // cpu, config_bytes, plan_id, an address that is nobody's, generation, reserved.
    let mut record = [0_u32, right.len() as u32, 7, 0, 0, 0, generation, 0];
    let unreadable = ioctl(device, ioc::CONFIGURE, record.as_mut_ptr() as usize);
    check_eq!(unreadable.err(), Some(EFAULT), "errno of an address of nobody");
    record[7] = 1;
    let reserved = ioctl(device, ioc::CONFIGURE, record.as_mut_ptr() as usize);
    check_eq!(reserved.err(), Some(EINVAL), "errno of a reserved field");
    check_eq!(device.get_plan(0).context("get the plan")?, before, "plan read back");
    let node = scene.finish()?;
    let log = node.log();
    check_eq!(node.of(EventKind::Configured).len(), 0, "events of changes\n{log}");
    node.task_ended(2, TASKS - 1)?;
    node.device.drop_plan(0).context("drop the plan")?;
    refused("no plan", node.device.configure(0, 7, generation, &right), ENOENT)?;
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
