// SPDX-License-Identifier: GPL-2.0
//! Recording of the policy's inputs: a replay gives the same result, or reports why not.

use std::collections::BTreeMap;

use pbs_record::{CpuReplay, Recorder, Recording};
use pbs_uapi::{Event, EventKind, Inputs};

use crate::harness::{cvt, fork, sleep_ms, Context, Node, Plan, Scene, Verdict};
use crate::policy_events::more_than_is_held;
use crate::{
    check, check_eq, policy, policy_ceiling, policy_fill, policy_memory, policy_order, policy_swap,
};

/// File in which the host finds the recording, if it shares a folder.
const KEPT: &str = "/mnt/recording";

/// Stores the recording for the analysis of a failed test.
pub fn keep(recorder: Recorder<Vec<u8>>) {
    let kept = recorder.end().map(|bytes| std::fs::write(KEPT, bytes));
    match kept {
        Ok(Ok(())) => println!("what the policy was told: {KEPT}"),
        Ok(Err(error)) | Err(error) => println!("{KEPT}: {error}"),
    }
}

/// Records from now on, where the kernel can.
pub fn begin() -> Option<Recorder<Vec<u8>>> {
    Recorder::new(Inputs::open().ok()?, Vec::new()).ok()
}

fn recorder() -> Result<Recorder<Vec<u8>>, String> {
    let inputs = Inputs::open().context(pbs_uapi::INPUTS_PATH)?;
    Recorder::new(inputs, Vec::new()).context("record")
}

/// Ends it and tells it all again.
fn replayed(recorder: Recorder<Vec<u8>>) -> Result<(Recording, Vec<CpuReplay>), String> {
    let bytes = recorder.end().context("end of the recording")?;
    // For the host, whose replay is to say the same.
    let _ = std::fs::write(KEPT, &bytes);
    let recording = Recording::read(&bytes).context("recording")?;
    let replays = recording.replay(true);
    Ok((recording, replays))
}

fn check_same(replays: &[CpuReplay]) -> Verdict {
    for replay in replays {
        check!(
            replay.difference.is_none(),
            "CPU {}: {:?} after {} inputs",
            replay.cpu,
            replay.difference,
            replay.inputs
        );
    }
    Ok(())
}

/// A test of something else, which is recorded.
type Part = (&'static str, fn() -> Verdict);

/// A task that is late and preempted, ceilings, blocked and idle slots, memory, a change
/// of plans under load: replayed it makes the same decisions, and the same events as the
/// kernel has told.
pub fn recording_replays() -> Verdict {
    let parts: [Part; 6] = [
        ("late task", policy::late_task_ends_in_next_slot),
        ("ceiling", policy_ceiling::getppid_ends_at_ceiling),
        ("blocked slot", policy_fill::blocked_slot_is_filled),
        ("idle slot", policy_fill::idle_slot_goes_to_latest),
        ("memory", policy_memory::memory_beyond_the_planned_peak_is_told),
        ("change of plans", policy_swap::swap_under_load),
    ];
    let kinds = [EventKind::Preempted, EventKind::Ceiling, EventKind::Late];
    all_replay(&parts, 1, &kinds)
}

/// A recording of four CPUs, on which tasks wait for each other and one loses its plan to another
/// one, is replayed.
pub fn recording_of_four_cpus_replays() -> Verdict {
    let parts: [Part; 2] = [
        ("order", policy_order::cpus_meet),
        ("plan without slots", policy_swap::cpu_without_slots_is_cleared),
    ];
    all_replay(&parts, 4, &[EventKind::Waits])
}

fn all_replay(parts: &[Part], cpus: u32, kinds: &[EventKind]) -> Verdict {
    let mut told = Node::open()?;
    let mut recorder = recorder()?;
    for (name, part) in parts {
        part().map_err(|why| format!("{name}: {why}"))?;
        recorder.take().context("take")?;
        told.read()?;
        println!("{name}: {} inputs", recorder.taken());
        // What follows on these CPUs begins where no plan is.
        for cpu in 0..cpus {
            // Some have none.
            let _ = told.device.drop_plan(cpu);
        }
    }
    told.read()?;

    let (recording, replays) = replayed(recorder)?;
    check!(recording.complete, "no end");
    check_eq!(recording.lost(), 0, "inputs that were lost");
    check_eq!(replays.len() as u32, cpus, "CPUs");
    check_same(&replays)?;
    let skipped: u64 = replays.iter().map(|replay| replay.skipped).sum();
    check_eq!(skipped, 0, "inputs that were skipped");
    let plans: u64 = replays.iter().map(|replay| replay.plans).sum();
    println!(
        "{} inputs, {plans} plans, {} decisions",
        recording.inputs(),
        replays.iter().map(|replay| replay.decisions).sum::<u64>()
    );
    check!(plans >= parts.len() as u64, "only {plans} plans");

    // The kernel and the replay tell the same.
    let mut by_seq: BTreeMap<u64, Event> = BTreeMap::new();
    by_seq.extend(told.events.iter().map(|event| (event.seq, *event)));
    let mut seen: BTreeMap<u16, u64> = BTreeMap::new();
    for event in replays.iter().flat_map(CpuReplay::in_wire) {
        let told = by_seq.get(&event.seq).copied();
        // The policy knows no threads.
        let told = told.map(|told| Event { pid: 0, ..told });
        check_eq!(told, Some(event), "event {}", event.seq);
        *seen.entry(event.kind).or_default() += 1;
    }
    let always = [EventKind::TaskEnded, EventKind::Grant, EventKind::PlanEnded];
    for kind in always.iter().chain(kinds) {
        check!(seen.contains_key(&(*kind as u16)), "no {}", kind.name());
    }
    // What the replay has not made is what the policy knows nothing of.
    let outside = [
        EventKind::PlanInstalled,
        EventKind::PlanDropped,
        EventKind::Attached,
        EventKind::Ejected,
        EventKind::StopLong,
        EventKind::Tier,
        EventKind::Overrun,
    ];
    let outside = |event: &&Event| outside.iter().any(|kind| *kind as u16 == event.kind);
    let others = told.events.iter().filter(outside).count();
    let made: u64 = seen.values().sum();
    check_eq!(made + others as u64, told.events.len() as u64, "events that were told");
    Ok(())
}

/// A recorder that pauses for long receives the number of lost inputs, and the replay begins with
/// the next plan that begins where none is.
pub fn recording_tells_overruns() -> Verdict {
    let recorder = recorder()?;
    let node = more_than_is_held(0)?;
    node.device.drop_plan(0).context("drop")?;
    policy::order_equals_plan()?;
    let (recording, replays) = replayed(recorder)?;
    let lost = recording.lost();
    check!(lost > 0, "nothing was lost, so this proves nothing");
    check_eq!(replays.len(), 1, "CPUs");
    check_same(&replays)?;
    let replay = &replays[0];
    check_eq!(replay.lost, lost, "inputs that were lost");
    check!(replay.skipped > 0, "nothing was skipped");
    check!(replay.plans > 0, "no plan was replayed");
    check!(replay.decisions > 10, "decisions: {}", replay.decisions);
    println!("{lost} lost, {} skipped, {} replayed", replay.skipped, replay.inputs);
    Ok(())
}

/// A short plan of one process.
fn work() -> Verdict {
    let mut scene = Scene::new()?;
    scene.tasks(1, &[200_000, 200_000])?;
    let plan = Plan::new(1).lead_in().slot(1, 0, 300_000);
    scene.run(&plan.slot(1, 1, 300_000))?;
    Ok(())
}

/// Number of inputs that the ring of CPU 0 has had, if it has one.
fn noted() -> Result<u64, String> {
    let inputs = Inputs::open().context("open")?;
    let ring = inputs.ring(0).context("map")?;
    Ok(ring.map_or(0, |ring| ring.bounds().1))
}

/// Without a recorder nothing is noted, whatever has been recorded before and however that ended;
/// each of two recorders gets all inputs.
pub fn recording_is_of_who_records() -> Verdict {
    work()?;
    check_eq!(noted()?, 0, "inputs before anybody has recorded");

    // Snapshots of two moments would differ.
    Node::open()?.device.drop_plan(0).context("drop")?;
    let (one, two) = (recorder()?, recorder()?);
    work()?;
    let of_two = replayed(two)?;
    let of_one = replayed(one)?;
    check_same(&of_one.1)?;
    check!(of_one.0.inputs() > 10, "inputs: {}", of_one.0.inputs());
    check_eq!(of_one.0.cpus, of_two.0.cpus, "what both have");
    check_eq!(of_one.0.plans, of_two.0.plans, "the plans that both have");

    let before = noted()?;
    work()?;
    check_eq!(noted()?, before, "inputs while nobody records");

    // One that is killed leaves nothing behind.
    let mut child = fork(|| {
        let recorder = recorder();
        println!("records: {}", recorder.is_ok());
        sleep_ms(600_000);
    })?;
    sleep_ms(200);
    work()?;
    child.kill(libc::SIGKILL)?;
    child.wait()?;
    let after = noted()?;
    check!(after > before, "the child has not recorded");
    work()?;
    check_eq!(noted()?, after, "inputs after it was killed");

    // Who begins after the end of a plan begins with its snapshot.
    let third = recorder()?;
    check_eq!(third.snapshots(), 1, "snapshots");
    work()?;
    let (_, replays) = replayed(third)?;
    check_same(&replays)?;
    check!(replays[0].inputs > 0, "nothing was replayed");
    check_eq!(replays[0].skipped, 0, "inputs that were skipped");
    Ok(())
}

/// Time between the beginnings of two recordings in a plan.
const APART_MS: u64 = 7;
/// Recordings at the same time, at most.
const RECORDERS: usize = 16;

/// Recordings that begin at many moments of a plan: each replays from its snapshots, input for input
/// and event for event.
pub fn recording_begins_in_a_plan() -> Verdict {
    let parts: [Part; 4] = [
        ("turns of two CPUs", policy_order::cpus_take_turns),
        ("meetings of four CPUs", policy_order::cpus_meet),
        ("memory", policy_memory::memory_beyond_the_planned_peak_is_told),
        ("changes of plans", policy_swap::swap_under_load),
    ];
    for (name, part) in parts {
        begins_in(part).map_err(|why| format!("{name}: {why}"))?;
    }
    Ok(())
}

fn begins_in(part: fn() -> Verdict) -> Verdict {
    let mut told = Node::open()?;
    let mut child = fork(|| {
        // Its limits of times and counts are for one that nobody disturbs.  Tests of their own hold
        // it to them.
        let _ = part();
    })?;
    let mut recorders = Vec::new();
    while recorders.len() < RECORDERS && !child.has_ended()? {
        sleep_ms(APART_MS);
        let recorder = recorder()?;
        if recorder.snapshots() > 0 {
            recorders.push(recorder);
        }
    }
    child.wait_ok()?;
    told.read()?;
    let by_seq: BTreeMap<u64, Event> =
        told.events.iter().map(|event| (event.seq, *event)).collect();
    let (mut begun, mut events) = (0, 0);
    for recorder in recorders {
        let (_, replays) = replayed(recorder)?;
        check_same(&replays)?;
        for replay in &replays {
            check_eq!(replay.refused_snapshots, Vec::<String>::new(), "refused snapshots");
            check_eq!(replay.skipped, 0, "inputs that were skipped");
            for event in replay.in_wire() {
                let told = by_seq.get(&event.seq).map(|told| Event { pid: 0, ..*told });
                check_eq!(told, Some(event), "event {}", event.seq);
                events += 1;
            }
        }
        begun += u32::from(replays.iter().any(|replay| replay.decisions > 10));
    }
    println!("{begun} recordings began in a plan, with {events} events");
    check!(begun > 2, "too few recordings began in a plan");
    // What follows begins where no plan is.
    for cpu in 0..4 {
        // Some have none.
        let _ = told.device.drop_plan(cpu);
    }
    Ok(())
}

const NOBODY: libc::uid_t = 65534;

/// A user other than root can't record.
pub fn recording_is_for_root() -> Verdict {
    let mut child = fork(|| {
        // SAFETY: no memory is involved; the child has one thread.
        let dropped = cvt(unsafe { libc::setresuid(NOBODY, NOBODY, NOBODY) });
        let errno = Inputs::open().err().and_then(|error| error.raw_os_error());
        let refused = dropped.is_ok() && errno == Some(libc::EACCES);
        if !refused {
            println!("setresuid: {dropped:?}, errno of open: {errno:?}");
        }
        // SAFETY: ends the child.
        unsafe { libc::_exit(i32::from(!refused)) };
    })?;
    child.wait_ok()?;
    check!(Inputs::open().is_ok(), "root may not, either");
    Ok(())
}
