// SPDX-License-Identifier: GPL-2.0
//! Recordings of simulations: replayed, damaged, cut short.

use pbs_core::{Config, EventKind, IdlePolicy, Input};
use pbs_record::{write_simulated, ReadError, Recording, Stretch, Writer};
use pbs_sim::{simulate, NoAnswer, Options, Stretch as Stretcher};
use proptest::prelude::*;

/// Two CPUs, tasks that are late and early, one that waits for one on the other CPU.
const PLAN: &str = r#"
plan_id = 7

[config]
thresholds = ["t1", "t2_task", "t2_process", "t2_node", "tm2_task", "t2_memory"]

[[process]]
id = 1
name = "first"
memory_bytes = 1000
tasks = [
    { name = "a", planned_insns = 60_000_000, real_insns = 150_000_000 },
    { name = "b", planned_insns = 50_000_000 },
]

[[process]]
id = 2
name = "second"
tasks = [{ planned_insns = 20_000_000, real_insns = 5_000_000 }]

[[process]]
id = 3
name = "third"
tasks = [
    { planned_insns = 10_000_000, after = ["first/a"] },
    { planned_insns = 40_000_000, real_insns = 90_000_000 },
]

[[cpu]]
cpu = 0
slots = ["first", "second", { idle_insns = 30_000_000 }, "first"]

[[cpu]]
cpu = 1
slots = ["third", "third"]
"#;

fn simulated(answers: bool) -> (Vec<u8>, Vec<pbs_sim::RecordedInputs>, Vec<u16>) {
    let plan = pbs_plan::from_toml(PLAN).unwrap_or_else(|problems| panic!("{problems:?}"));
    let options = Options { record_inputs: true, ..Options::default() };
    let simulation = if answers {
        simulate(&plan, &options, &mut Stretcher::default())
    } else {
        simulate(&plan, &options, &mut NoAnswer)
    };
    let simulation = simulation.unwrap();
    assert!(simulation.ended());
    let mut bytes = Vec::new();
    let inputs = write_simulated(&simulation, &mut bytes).unwrap();
    assert_eq!(Recording::read(&bytes).unwrap().inputs(), inputs);
    let kinds = simulation.events.iter().map(|event| event.kind);
    (bytes, simulation.recorded.clone(), kinds.collect())
}

#[test]
fn simulations_come_out_the_same() {
    for answers in [false, true] {
        let (bytes, recorded, kinds) = simulated(answers);
        let recording = Recording::read(&bytes).unwrap();
        assert!(recording.complete && recording.damage.is_empty());
        let replays = recording.replay(true);
        assert_eq!(replays.len(), 2);
        let mut emitted = Vec::new();
        for (replay, recorded) in replays.iter().zip(&recorded) {
            assert_eq!(replay.difference, None);
            assert_eq!(replay.skipped, 0);
            assert_eq!(replay.inputs, recorded.inputs.len() as u64);
            assert!(replay.decisions > 0);
            emitted.extend(replay.emitted.iter().map(|emitted| emitted.event.kind as u16));
        }
        // All but what the simulator tells itself, as the kernel does.
        let outside = [EventKind::PlanInstalled as u16, EventKind::Attached as u16];
        let mut kinds: Vec<_> = kinds.into_iter().filter(|kind| !outside.contains(kind)).collect();
        kinds.sort_unstable();
        emitted.sort_unstable();
        assert_eq!(emitted, kinds);
        let plans: u64 = replays.iter().map(|replay| replay.plans).sum();
        assert_eq!(plans > 2, answers);
        for needed in [EventKind::Preempted, EventKind::Late, EventKind::Waits] {
            assert!(kinds.contains(&(needed as u16)), "{}", needed.name());
        }
    }
}

#[test]
fn another_instruction_is_found_where_it_was_charged() {
    let (bytes, recorded, _) = simulated(false);
    let mut recording = Recording::read(&bytes).unwrap();
    let at = recorded[0].inputs.iter().rposition(|input| input.name() == Some("charge"));
    let at = at.unwrap();
    let Some(Stretch::Inputs(part)) = recording.cpus.get_mut(&0).and_then(|all| all.first_mut())
    else {
        panic!("no inputs");
    };
    part.inputs[at].value ^= 1;
    let replays = recording.replay(false);
    let difference = replays[0].difference.unwrap();
    assert_eq!(difference.number, at as u64);
    assert_eq!(difference.recorded, part_input(&recording, at));
    let came_out = difference.came_out.unwrap();
    assert_eq!(came_out.more, recorded[0].inputs[at].more ^ 1);
    assert_eq!(replays[0].inputs, at as u64);
    assert_eq!(replays[0].after + replays[0].inputs, recorded[0].inputs.len() as u64);
    // The other CPU has nothing to do with it.
    assert_eq!(replays[1].difference, None);
}

fn part_input(recording: &Recording, at: usize) -> Input {
    match &recording.cpus[&0][0] {
        Stretch::Inputs(part) => part.inputs[at],
        Stretch::Lost(_) | Stretch::Snapshot(_) => panic!("no inputs"),
    }
}

#[test]
fn no_bit_can_change_unseen() {
    let (bytes, recorded, _) = simulated(false);
    let whole = Recording::read(&bytes).unwrap();
    let inputs: usize = recorded.iter().map(|recorded| recorded.inputs.len()).sum();
    // Every 5th byte, each time another bit.
    for at in (0..bytes.len()).step_by(5) {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1 << (at / 5 % 8);
        match Recording::read(&bytes) {
            Err(_) => {}
            Ok(read) => {
                // What stands between pieces is nothing.
                assert!(read == whole || !read.damage.is_empty(), "byte {at}");
                let told: u64 =
                    read.replay(false).iter().map(|one| one.inputs + one.after + one.skipped).sum();
                assert_eq!(told, inputs as u64, "byte {at}");
            }
        }
    }
}

#[test]
fn what_is_cut_short_is_replayed_as_far_as_it_goes() {
    let (bytes, ..) = simulated(false);
    let whole = Recording::read(&bytes).unwrap().inputs();
    let mut before = 0;
    for length in 16..bytes.len() {
        let read = Recording::read(&bytes[..length]).unwrap();
        assert!(!read.complete);
        let inputs = read.inputs();
        assert!(inputs >= before && inputs <= whole);
        before = inputs;
        if length % 97 == 0 {
            assert!(read.replay(false).iter().all(|one| one.difference.is_none()));
        }
    }
    assert_eq!(before, whole);
}

#[test]
fn what_is_lost_is_told_and_not_made_up() {
    let (_, recorded, _) = simulated(true);
    let cpu = &recorded[0];
    let mut writer = Writer::new(Vec::new()).unwrap();
    for (plan, number) in cpu.plans.iter().zip(0..) {
        let plan = pbs_record::KeptPlan {
            rate_insns_per_ms: plan.rate_insns_per_ms,
            config: plan.config,
            message: plan.message.clone(),
        };
        writer.plan(number, 0, &plan).unwrap();
    }
    let (some, rest) = cpu.inputs.split_at(5);
    writer.inputs(0, 100, some).unwrap();
    writer.lost(0, 105, 3).unwrap();
    writer.inputs(0, 108, &rest[3..]).unwrap();
    // A plan that comes where none is is a new begin.
    writer.inputs(0, 108 + rest.len() as u64 - 3, &cpu.inputs).unwrap();
    let bytes = writer.end().unwrap();
    let recording = Recording::read(&bytes).unwrap();
    assert_eq!(recording.lost(), 3);
    let replay = &recording.replay(false)[0];
    assert_eq!(replay.difference, None);
    assert_eq!(replay.lost, 3);
    assert_eq!(replay.skipped, rest.len() as u64 - 3);
    assert_eq!(replay.inputs, 5 + cpu.inputs.len() as u64);
}

#[test]
fn a_plan_that_nobody_has_is_told() {
    let (bytes, ..) = simulated(false);
    let mut recording = Recording::read(&bytes).unwrap();
    recording.plans.retain(|(_, cpu), _| *cpu != 1);
    let replays = recording.replay(false);
    assert_eq!(replays[1].unknown_plans.iter().copied().collect::<Vec<_>>(), [0]);
    assert_eq!((replays[1].inputs, replays[1].difference), (0, None));
    assert!(replays[1].skipped > 0 && replays[0].skipped == 0);
}

#[test]
fn other_files_are_refused_by_name() {
    assert_eq!(Recording::read(b"").unwrap_err(), ReadError::NoRecording);
    let error = Recording::read(b"{\"schema\": \"pbs.sim/1\"}").unwrap_err();
    assert!(error.to_string().contains("no recording of inputs"));
    let mut bytes = Writer::new(Vec::new()).unwrap().end().unwrap();
    assert!(Recording::read(&bytes).unwrap().complete);
    bytes.push(0);
    assert!(Recording::read(&bytes).unwrap().complete);
    bytes.extend([0; 39]);
    let error = Recording::read(&bytes).unwrap_err().to_string();
    assert!(error.contains("there is data after the end"), "{error}");
    bytes[8] = 2;
    let error = Recording::read(&bytes).unwrap_err();
    assert_eq!(error, ReadError::Version(2));
}

/// A recording from that time on, under a policy of idle slots.
fn recorded_from(from_ns: u64, policy: IdlePolicy, answers: bool) -> Vec<u8> {
    let mut plan = pbs_plan::from_toml(PLAN).unwrap_or_else(|problems| panic!("{problems:?}"));
    plan.config = plan.config.map(|config| Config { idle_policy: policy as u64, ..config });
    let options = Options { record_inputs: true, record_from_ns: from_ns, ..Options::default() };
    let simulation = if answers {
        simulate(&plan, &options, &mut Stretcher::default())
    } else {
        simulate(&plan, &options, &mut NoAnswer)
    };
    let mut bytes = Vec::new();
    write_simulated(&simulation.unwrap(), &mut bytes).unwrap();
    bytes
}

/// A recording that begins in the middle is replayed from its snapshot, with the events and the
/// last state of a recording from the beginning.
#[test]
fn a_recording_begins_at_any_moment() {
    let mut in_the_middle = 0;
    for policy in IdlePolicy::ALL {
        for answers in [false, true] {
            let whole = Recording::read(&recorded_from(0, policy, answers)).unwrap();
            let whole = whole.replay(true);
            for from_ns in (1..400_000_000).step_by(23_456_789) {
                let what = format!("{} {answers} {from_ns}", policy.name());
                let recording = Recording::read(&recorded_from(from_ns, policy, answers));
                let recording = recording.unwrap();
                for replay in recording.replay(true) {
                    let cpu = whole.iter().find(|whole| whole.cpu == replay.cpu).unwrap();
                    assert_eq!(replay.difference, None, "{what}");
                    assert_eq!((replay.skipped, replay.refused_snapshots.len()), (0, 0), "{what}");
                    assert!(cpu.emitted.ends_with(&replay.emitted), "{what}");
                    assert_eq!(replay.held, cpu.held, "{what}");
                    let is_part = replay.inputs > 0 && replay.emitted.len() < cpu.emitted.len();
                    in_the_middle += u32::from(is_part);
                }
            }
        }
    }
    assert!(in_the_middle > 200, "{in_the_middle}");
}

#[test]
fn a_snapshot_that_cannot_be_used_is_told() {
    let bytes = recorded_from(50_000_000, IdlePolicy::Latest, true);
    let whole = Recording::read(&bytes).unwrap();
    let refused = |change: &dyn Fn(&mut Recording)| {
        let mut recording = whole.clone();
        change(&mut recording);
        let replay = recording.replay(false).remove(0);
        assert_eq!((replay.inputs, replay.difference), (0, None));
        assert!(replay.skipped > 0);
        replay.refused_snapshots.join(" ")
    };
    assert_eq!(refused(&|all| all.plans.clear()), "the recording does not have plan 0");
    let of_snapshot = |recording: &mut Recording, change: fn(&mut Vec<u64>)| {
        for stretch in recording.cpus.values_mut().flatten() {
            if let Stretch::Snapshot(snapshot) = stretch {
                change(&mut snapshot.words);
            }
        }
    };
    let changed = refused(&|all| of_snapshot(all, |words| words[7] ^= 1));
    assert_eq!(changed, "the snapshot was changed");
    let short = refused(&|all| of_snapshot(all, |words| words.truncate(20)));
    assert_eq!(short, "the snapshot was changed");
    let none = refused(&|all| of_snapshot(all, Vec::clear));
    assert_eq!(none, "the snapshot is too long or too short");
    // Every 3rd byte, each time another bit.
    for at in (0..bytes.len()).step_by(3) {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1 << (at / 3 % 8);
        if let Ok(read) = Recording::read(&bytes) {
            assert!(read == whole || !read.damage.is_empty(), "byte {at}");
            assert_eq!(replayed(&read), whole.inputs(), "byte {at}");
        }
    }
}

fn kept() -> pbs_record::KeptPlan {
    pbs_record::KeptPlan {
        rate_insns_per_ms: 1_000_000,
        config: Config::DEFAULT,
        message: vec![1, 2, 3],
    }
}

/// Number of inputs that a replay accounts for.
fn replayed(recording: &Recording) -> u64 {
    recording.replay(true).iter().map(|one| one.inputs + one.after + one.skipped).sum()
}

/// Number of inputs in a recording.
fn held(recording: &Recording) -> u64 {
    let stretches = recording.cpus.values().flatten();
    let inputs = stretches.map(|stretch| match stretch {
        Stretch::Inputs(part) => part.inputs.len() as u64,
        _ => 0,
    });
    inputs.sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Each input of a file of any content is replayed, or counted with the reason why it is not.
    #[test]
    fn any_bytes(rest in prop::collection::vec(any::<u8>(), 0..400), at in 0..600_usize) {
        let mut writer = Writer::new(Vec::new()).unwrap();
        writer.plan(0, 0, &kept()).unwrap();
        let mut bytes = writer.end().unwrap();
        let at = at.min(bytes.len());
        bytes.splice(at.., rest);
        if let Ok(recording) = Recording::read(&bytes) {
            prop_assert_eq!(replayed(&recording), held(&recording));
        }
    }

    #[test]
    fn any_inputs(numbers in prop::collection::vec((any::<u64>(), 0..5_u64, any::<u64>(), 0..4_u32, 0..0x120_u16, 0..4_u16), 0..60)) {
        let (bytes, recorded, _) = simulated_once();
        let mut recording = Recording::read(bytes).unwrap();
        let inputs = numbers.into_iter().map(|(time_ns, value, more, process, kind, reason)| Input {
            time_ns, value, more, process, kind, reason,
        });
        let mut all = recorded.clone();
        all.extend(inputs);
        if let Some(Stretch::Inputs(part)) = recording.cpus.get_mut(&0).and_then(|all| all.first_mut()) {
            part.inputs = all;
        }
        prop_assert_eq!(replayed(&recording), held(&recording));
    }
}

fn simulated_once() -> &'static (Vec<u8>, Vec<Input>, ()) {
    static ONCE: std::sync::OnceLock<(Vec<u8>, Vec<Input>, ())> = std::sync::OnceLock::new();
    ONCE.get_or_init(|| {
        let (bytes, recorded, _) = simulated(false);
        let some = recorded[0].inputs.iter().take(12).copied().collect();
        (bytes, some, ())
    })
}
