// SPDX-License-Identifier: GPL-2.0

//! The wire format: a valid plan is read as it was written, and any other is refused with its
//! reason.

use std::format;
use std::string::ToString;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};

use crate::wire::{
    encode, Message, CONFIG_BYTES, HEADER_BYTES, IDLE, LEAST_CONFIG_BYTES, MAX_SLOT_INSNS,
    NO_DEADLINE, NO_TASK, PROCESS_BYTES, PROCESS_BYTES_2, VERSION, VERSION_1, VERSION_2,
};
use crate::{
    Circle, Config, Dispatch, Errno, Fault, Interrupted, Memory, NoMemory, Node, Part, Plan,
    PreemptionWay, Rate, Refusal, StdMemory,
};

use super::scene::RATE;
use super::text::{read, write, Cpu};
use super::AtOne;

fn two_cpus() -> Vec<Cpu> {
    vec![
        Cpu {
            cpu: 0,
            processes: vec![(1, 5_000), (7, 0)],
            slots: vec![
                (1000, 1, 0),
                (2000, 7, 4),
                (500, IDLE, NO_TASK),
                (300, 1, 3),
                (MAX_SLOT_INSNS, 7, 5),
            ],
            edges: Vec::new(),
            deadlines: Vec::new(),
            arrivals_ns: Vec::new(),
        },
        Cpu {
            cpu: 3,
            processes: vec![(2, 1 << 56)],
            slots: vec![(1, 2, NO_TASK - 1)],
            edges: Vec::new(),
            deadlines: Vec::new(),
            arrivals_ns: Vec::new(),
        },
    ]
}

// Offsets in `two_cpus()` written without a configuration.
const CPU_0: usize = 64;
const PROCESS_1: usize = CPU_0 + 32;
const PROCESS_7: usize = PROCESS_1 + PROCESS_BYTES;
const SLOT_0: usize = PROCESS_7 + PROCESS_BYTES;
const SLOT_2: usize = SLOT_0 + 2 * 16;
const SLOT_3: usize = SLOT_0 + 3 * 16;
const CPU_3: usize = SLOT_0 + 5 * 16;
const PROCESS_2: usize = CPU_3 + 32;
const END: usize = PROCESS_2 + PROCESS_BYTES + 16;

/// Count of numbers of a configuration in version 1.
const OF_VERSION_1: usize = 25;

/// Reads a plan and writes it again.
fn again(bytes: &[u8]) -> Result<Vec<u8>, Refusal> {
    let message = Message::parse::<StdMemory>(bytes)?;
    let header = encode::Header {
        plan_id: message.plan_id(),
        total_bytes: bytes.len() as u64,
        nr_cpus: message.nr_cpus(),
        with_config: message.config(RATE).is_some(),
        with_arrivals: read(bytes)?.iter().any(|(_, plan)| plan.has_arrivals()),
        dealt_seq: message.dealt_seq(),
        lease_ns: message.lease_ns(),
        memory_bytes: message.memory_bytes(),
    };
    let mut written = header.bytes().to_vec();
    written[4..6].copy_from_slice(&message.version().to_ne_bytes());
    if let Some(config) = message.config(RATE) {
        let mut config = encode::config(&config).to_vec();
        if message.version() != VERSION {
            config.truncate(LEAST_CONFIG_BYTES);
            written[28..32].copy_from_slice(&(LEAST_CONFIG_BYTES as u32).to_ne_bytes());
        }
        if message.version() == 1 {
            // Numbers that did not exist yet.
            config[8 * OF_VERSION_1..].fill(0);
        }
        written.extend(config);
    }
    for (cpu, plan) in read(bytes)? {
        written.extend(plan.cpu_record(cpu).bytes());
        let processes = plan.processes().iter();
        let process_bytes = match message.version() {
            VERSION => PROCESS_BYTES,
            _ => PROCESS_BYTES_2,
        };
        written.extend(processes.flat_map(|process| {
            let record = process.record().bytes();
            record.into_iter().take(process_bytes)
        }));
        written.extend(plan.slots().iter().flat_map(|slot| {
            let process = plan.process(slot.process).map_or(IDLE, |p| p.id);
            encode::slot(slot.length_insns, process, slot.task)
        }));
        let edges = 0..plan.edges().len() as u32;
        written.extend(edges.flat_map(|edge| plan.edge_record(edge)));
        if plan.has_arrivals() {
            let edges = 0..plan.edges().len() as u32;
            written.extend(edges.flat_map(|edge| plan.arrival_record(edge)));
        }
    }
    Ok(written)
}

#[test]
fn plan_is_read_as_it_was_written() {
    let config = Config {
        sigma_t1_permille: 1234,
        ..Config::DEFAULT
    };
    for config in [None, Some(&config)] {
        let bytes = write(99, config, &two_cpus());
        let message = Message::parse::<StdMemory>(&bytes).unwrap();
        assert_eq!(message.plan_id(), 99);
        assert_eq!(message.config(RATE).as_ref(), config);
        assert_eq!(message.nr_cpus(), 2);
        assert_eq!(again(&bytes).unwrap(), bytes);
    }
}

/// Zeros from planners without the last two numbers mean that those were not declared.
#[test]
fn numbers_that_were_reserved_are_as_nothing_was_said() {
    let written = Config {
        preemption_way: PreemptionWay::Once as u64,
        ..Config::DEFAULT
    };
    let mut bytes = write(1, Some(&written), &two_cpus());
    let preemption_way = Config::NAMES
        .iter()
        .position(|&name| name == "preemption_way");
    bytes[64 + 8 * preemption_way.unwrap()..64 + 256].fill(0);
    let message = Message::parse::<StdMemory>(&bytes).unwrap();
    let expected = Config {
        preemption_way: PreemptionWay::Capped as u64,
        idle_piece_ns: 0,
        ..Config::DEFAULT
    };
    assert_eq!(message.config(RATE), Some(expected));
}

/// A plan with `config` of that many bytes.
fn cut_to(config_bytes: usize, config: &Config) -> Vec<u8> {
    let mut bytes = write(1, Some(config), &two_cpus());
    bytes.drain(HEADER_BYTES + config_bytes..HEADER_BYTES + CONFIG_BYTES);
    let total_bytes = bytes.len() as u64;
    bytes[8..16].copy_from_slice(&total_bytes.to_ne_bytes());
    bytes[28..32].copy_from_slice(&(config_bytes as u32).to_ne_bytes());
    bytes
}

#[test]
fn numbers_after_the_end_of_a_configuration_have_their_defaults() {
    let written = Config::from_values(Config::DEFAULT.values().map(|value| match value {
        0 => 1,
        other => other,
    }));
    for config_bytes in (LEAST_CONFIG_BYTES..=CONFIG_BYTES).step_by(8) {
        let bytes = cut_to(config_bytes, &written);
        let message = Message::parse::<StdMemory>(&bytes).unwrap();
        let mut expected = Config::DEFAULT.values();
        let there = config_bytes / 8;
        expected[..there].copy_from_slice(&written.values()[..there]);
        assert_eq!(message.config(RATE), Some(Config::from_values(expected)));
        assert_eq!(message.nr_cpus(), 2);
    }
    for config_bytes in [8, LEAST_CONFIG_BYTES - 8, LEAST_CONFIG_BYTES + 4] {
        let refusal = read(&cut_to(config_bytes, &written)).err().unwrap();
        let text = format!("config_bytes is {config_bytes}; write 0 for the node's defaults, or ");
        assert!(refusal.to_string().starts_with(&text), "{refusal}");
    }
}

/// `cpus` as a version before the present one has them.
fn in_version(version: u16, config: Option<&Config>, cpus: &[Cpu]) -> Vec<u8> {
    let now = write(99, config, cpus);
    let mut rest = now.as_slice();
    let mut old = Vec::new();
    let mut take = |rest: &mut &[u8], bytes: usize, kept: usize| {
        let (record, after) = rest.split_at(bytes);
        old.extend(&record[..kept]);
        *rest = after;
    };
    take(&mut rest, HEADER_BYTES, HEADER_BYTES);
    if config.is_some() {
        take(&mut rest, CONFIG_BYTES, LEAST_CONFIG_BYTES);
    }
    for cpu in cpus {
        take(&mut rest, 32, 32);
        for _ in &cpu.processes {
            take(&mut rest, PROCESS_BYTES, PROCESS_BYTES_2);
        }
        let others = 16 * (cpu.slots.len() + cpu.edges.len());
        take(&mut rest, others, others);
    }
    assert!(rest.is_empty());
    let total_bytes = old.len() as u64;
    old[4..6].copy_from_slice(&version.to_ne_bytes());
    old[8..16].copy_from_slice(&total_bytes.to_ne_bytes());
    if config.is_some() {
        old[28..32].copy_from_slice(&(LEAST_CONFIG_BYTES as u32).to_ne_bytes());
    }
    old
}

/// `two_cpus()` in version 1, with the numbers of `config` as instructions.
fn version_1(config: &Config) -> Vec<u8> {
    let mut bytes = in_version(VERSION_1, Some(config), &two_cpus());
    bytes[64 + 8 * OF_VERSION_1..64 + 256].fill(0);
    bytes
}

#[test]
fn lengths_of_version_1_are_instructions() {
    let written = Config {
        preemption_limit_ns: 1_234_567,
        no_preemption_ns: 1000,
        t2_spacer_ns: 1001,
        t2_min_process_ns: 777_777,
        stress_gain_ns: 3,
        ..Config::DEFAULT
    };
    let bytes = version_1(&written);
    let message = Message::parse::<StdMemory>(&bytes).unwrap();
    let lengths = |policy: &crate::Policy| {
        [
            policy.preemption_limit_insns,
            policy.no_preemption_insns,
            policy.t2_spacer_insns,
            policy.t2_task_signaling_limit_insns,
            policy.reschedule_time_insns,
            policy.t2_min_process_insns,
            policy.stress_gain_insns,
            policy.tm2_node_lower_bound_insns,
        ]
    };
    // The lower bound of tm2_node was that of t2_process.
    let expected = Config {
        tm2_node_lower_bound_ns: 777_777,
        ..written
    };
    let expected = lengths(&expected.at_one());
    for insns_per_ms in [
        2,
        7,
        333_333,
        999_999,
        1_000_000,
        1_000_001,
        3_141_592,
        u32::MAX.into(),
    ] {
        let rate = Rate::new(insns_per_ms);
        let config = message.config(rate).unwrap();
        assert_eq!(config.check(), Ok(()), "{insns_per_ms}");
        let policy = crate::Policy::new(config, rate);
        for (got, expected) in lengths(&policy).into_iter().zip(expected) {
            // At most one less than what is retired in a nanosecond; and T2_SPACER, which is
            // one more than NO_PREEMPTION here, stays more.
            let least_step = insns_per_ms.div_ceil(1_000_000);
            let most = expected + 2 * least_step - 2;
            assert!(
                (expected..=most).contains(&got),
                "{got} for {expected}, {insns_per_ms}"
            );
        }
    }
    // A time in nanoseconds is a time in version 1, too.
    assert_eq!(
        message.config(Rate::new(7)).unwrap().ceiling_extra_ns,
        10_000_000
    );
}

#[test]
fn longest_lengths_of_version_1_are_cut_off_at_the_longest_times() {
    let written = Config {
        preemption_limit_ns: 1 << 48,
        no_preemption_ns: (1 << 48) - 1,
        t2_spacer_ns: 1 << 48,
        t2_task_signaling_limit_ns: 1 << 49,
        t2_min_process_ns: 1 << 48,
        ..Config::DEFAULT
    };
    let bytes = version_1(&written);
    let message = Message::parse::<StdMemory>(&bytes).unwrap();
    let config = message.config(Rate::new(1)).unwrap();
    assert_eq!(config.check(), Ok(()));
    assert_eq!(config.preemption_limit_ns, 1 << 48);
    assert_eq!(config.t2_spacer_ns, 1 << 49);
    assert_eq!(config.t2_task_signaling_limit_ns, 1 << 49);
}

#[test]
fn configuration_of_version_1_is_refused_by_its_own_names() {
    let config = Config {
        no_preemption_ns: 50_000_001,
        ..Config::DEFAULT
    };
    let refusal = read(&version_1(&config)).err().unwrap();
    let text = "no_preemption_insns is 50000001; write 0 to 50000000";
    assert_eq!(
        (refusal.to_string().as_str(), refusal.offset_bytes),
        (text, 80)
    );
    // A number that version 1 does not have.
    let mut bytes = version_1(&Config::DEFAULT);
    bytes[64 + 8 * OF_VERSION_1] = 1;
    let refusal = read(&bytes).err().unwrap();
    assert_eq!(refusal.fault, Fault::Reserved { part: Part::Config });
    assert_eq!(refusal.offset_bytes, 64 + 8 * OF_VERSION_1 as u64);
}

/// A plan of version 1 has no edges, memory or rates, and their places are reserved.
#[test]
fn plan_of_version_1_is_read() {
    let bytes = in_version(VERSION_1, None, &two_cpus());
    assert_eq!(again(&bytes).unwrap(), bytes);
    let process_7 = PROCESS_1 + PROCESS_BYTES_2;
    let cpu_3 = process_7 + PROCESS_BYTES_2 + 5 * 16;
    let cases = [
        (63, Part::Header, 56),
        (cpu_3 + 16, Part::Cpu, cpu_3 + 16),
        (cpu_3 + 31, Part::Cpu, cpu_3 + 24),
        (process_7 + 16, Part::Process, process_7 + 16),
        (process_7 + 31, Part::Process, process_7 + 24),
    ];
    for (at, part, offset) in cases {
        let mut bytes = bytes.clone();
        bytes[at] = 1;
        assert_eq!(
            read(&bytes).err(),
            Some(Fault::Reserved { part }.at(offset))
        );
    }
}

/// Version 2 has all but deadlines.
#[test]
fn plan_of_version_2_is_read() {
    let config = Config {
        sigma_t1_permille: 1234,
        ..Config::DEFAULT
    };
    for config in [None, Some(&config)] {
        let bytes = in_version(VERSION_2, config, &two_cpus());
        assert_eq!(again(&bytes).unwrap(), bytes);
        for (_, plan) in read(&bytes).unwrap() {
            let deadlines = plan.processes().iter().map(|process| process.deadline_ns);
            assert!(deadlines.into_iter().all(|ns| ns == NO_DEADLINE));
        }
    }
}

/// A plan of before deadlines runs as then, unless its configuration has another dispatch.
#[test]
fn plan_without_deadlines_runs_in_the_order_of_the_thesis() {
    let node = Config {
        max_preemptions: 7,
        dispatch: Dispatch::Deadline as u64,
        ..Config::DEFAULT
    };
    let of = |bytes: &[u8]| {
        let message = Message::parse::<StdMemory>(bytes).unwrap();
        let config = message.config_or(&node, RATE);
        (config.max_preemptions, config.dispatch())
    };
    let other = |dispatch| Config {
        dispatch: dispatch as u64,
        ..Config::DEFAULT
    };
    let [thesis, deadline] = Dispatch::ALL.map(other);
    let written = |version, config| in_version(version, config, &two_cpus());
    assert_eq!(of(&written(VERSION_1, None)), (7, Dispatch::Thesis));
    assert_eq!(of(&written(VERSION_2, None)), (7, Dispatch::Thesis));
    assert_eq!(of(&write(1, None, &two_cpus())), (7, Dispatch::Deadline));
    let own = |dispatch| (Config::DEFAULT.max_preemptions, dispatch);
    assert_eq!(of(&version_1(&thesis)), own(Dispatch::Thesis));
    for config in [&thesis, &deadline] {
        let bytes = [
            written(VERSION_2, Some(config)),
            write(1, Some(config), &two_cpus()),
        ];
        for bytes in bytes {
            assert_eq!(of(&bytes), own(config.dispatch()));
        }
    }
}

#[test]
fn deadline_of_a_process_is_read_as_it_was_written() {
    let mut bytes = write(99, None, &two_cpus());
    for (at, deadline_ns) in [(PROCESS_7, 250_000_000_u64), (PROCESS_2, 0)] {
        bytes[at + 32..at + 40].copy_from_slice(&deadline_ns.to_ne_bytes());
    }
    assert_eq!(again(&bytes).unwrap(), bytes);
    let plans = read(&bytes).unwrap();
    let plans = plans.iter().flat_map(|(_, plan)| plan.processes());
    let deadlines: Vec<_> = plans.map(|process| process.deadline_ns).collect();
    assert_eq!(deadlines, [NO_DEADLINE, 250_000_000, 0]);
}

/// A CPU for which nothing is planned has a plan all the same; in version 1 it is refused.
#[test]
fn cpu_without_processes_is_read() {
    let mut cpus = two_cpus();
    cpus[0].processes.clear();
    cpus[0].slots.clear();
    let mut bytes = write(99, None, &cpus);
    assert_eq!(again(&bytes).unwrap(), bytes);
    let node = Node::new(
        read(&bytes).unwrap().remove(0).1,
        Config::DEFAULT,
        Rate::new(1_000_000),
        1,
        0,
    );
    assert_eq!(node.unwrap().unfinished(), 0);
    bytes = in_version(VERSION_1, None, &cpus);
    let fault = Fault::NoProcesses { cpu: 0 };
    assert_eq!(read(&bytes).err(), Some(fault.at(CPU_0 + 4)));
}

#[test]
fn slots_of_a_process_are_linked() {
    let (_, plan) = read(&write(1, None, &two_cpus())).unwrap().remove(0);
    assert_eq!(plan.order(), [0, 3, 1, 4]);
    assert_eq!(plan.find(7), Some(1));
    assert_eq!(plan.find(2), None);
    assert_eq!((plan.own_slot(1, 1), plan.own_slot(1, 2)), (Some(4), None));
    let positions: Vec<u32> = plan.slots().iter().map(|slot| slot.position).collect();
    assert_eq!(positions, [0, 0, 0, 1, 1]);
    // The first task of process 1 whose id is not less.
    let position_of = [0, 1, 3, 4].map(|task| plan.position_of(0, task));
    assert_eq!(position_of, [0, 1, 1, 2]);
}

#[test]
fn plan_in_use_takes_40_bytes_a_task() {
    assert!(size_of::<crate::Slot>() + size_of::<u32>() <= 40);
}

#[test]
fn plan_of_a_cpu_is_read_back() {
    let mut cpus = two_cpus();
    cpus.truncate(1);
    let config = Config::DEFAULT;
    let written = write(5, Some(&config), &cpus);
    let (cpu, plan) = read(&written).unwrap().remove(0);
    let mut bytes = Vec::new();
    let sink = |piece: &[u8]| {
        bytes.extend_from_slice(piece);
        Ok::<(), ()>(())
    };
    plan.encode(cpu, &config, 5, sink).unwrap();
    assert_eq!(bytes, written);
    assert_eq!(plan.encoded_bytes(), written.len() as u64);
    assert_eq!(plan.encode(cpu, &config, 5, |_| Err(14)), Err(14));
}

/// The refusal of `two_cpus()` with `field` at `at`.
fn refused<const N: usize>(at: usize, field: [u8; N]) -> Refusal {
    let mut bytes = write(99, None, &two_cpus());
    assert_eq!(bytes.len(), END);
    bytes[at..at + N].copy_from_slice(&field);
    read(&bytes).err().expect("a refusal")
}

#[test]
fn each_fault_is_refused_where_it_is() {
    let u16 = u16::to_ne_bytes;
    let u32 = u32::to_ne_bytes;
    let u64 = u64::to_ne_bytes;
    let cases = [
        (refused(0, u32(1)), Fault::Magic { found: 1 }, 0),
        (refused(4, u16(0)), Fault::Version { found: 0 }, 4),
        (refused(4, u16(4)), Fault::Version { found: 4 }, 4),
        (refused(6, u16(72)), Fault::HeaderBytes { found: 72 }, 6),
        (
            refused(8, u64(1000)),
            Fault::TotalBytes {
                said_bytes: 1000,
                have_bytes: END as u64,
            },
            8,
        ),
        (refused(24, u32(0)), Fault::NoCpus, 24),
        (
            refused(24, u32(1)),
            Fault::Trailing {
                extra_bytes: (END - CPU_3) as u64,
            },
            CPU_3,
        ),
        (
            refused(24, u32(3)),
            Fault::Truncated {
                part: Part::Cpu,
                need_bytes: 32,
                have_bytes: 0,
            },
            END,
        ),
        (refused(28, u32(255)), Fault::ConfigBytes { found: 255 }, 28),
        (
            refused(32, u64(2)),
            Fault::Flags {
                part: Part::Header,
                found: 2,
            },
            32,
        ),
        (
            refused(CPU_3, u32(0)),
            Fault::CpuOrder { cpu: 0, before: 0 },
            CPU_3,
        ),
        (
            refused(CPU_0, u32(4)),
            Fault::CpuOrder { cpu: 3, before: 4 },
            CPU_3,
        ),
        (
            refused(CPU_0 + 4, u32(0)),
            Fault::NoProcesses { cpu: 0 },
            CPU_0 + 4,
        ),
        (
            refused(CPU_0 + 4, u32(1025)),
            Fault::ManyProcesses {
                cpu: 0,
                found: 1025,
            },
            CPU_0 + 4,
        ),
        (
            refused(CPU_0 + 4, u32(10)),
            Fault::Truncated {
                part: Part::Process,
                need_bytes: 10 * PROCESS_BYTES as u64,
                have_bytes: (END - PROCESS_1) as u64,
            },
            PROCESS_1,
        ),
        (
            refused(CPU_0 + 8, u64(0)),
            Fault::NoSlots { cpu: 0 },
            CPU_0 + 8,
        ),
        (
            refused(CPU_0 + 8, u64(u64::MAX)),
            Fault::ManySlots {
                cpu: 0,
                found: u64::MAX,
            },
            CPU_0 + 8,
        ),
        (
            refused(CPU_0 + 8, u64(1 << 22)),
            Fault::Truncated {
                part: Part::Slot,
                need_bytes: 16 << 22,
                have_bytes: (END - SLOT_0) as u64,
            },
            SLOT_0,
        ),
        (
            refused(CPU_3 + 16, u64((1 << 22) + 1)),
            Fault::ManyEdges {
                cpu: 3,
                found: (1 << 22) + 1,
            },
            CPU_3 + 16,
        ),
        (
            refused(CPU_0 + 16, u64(1 << 22)),
            Fault::Truncated {
                part: Part::Edge,
                need_bytes: 16 << 22,
                have_bytes: (END - CPU_3) as u64,
            },
            CPU_3,
        ),
        (
            refused(CPU_0 + 24, u64(1 << 32)),
            Fault::Rate {
                cpu: 0,
                found: 1 << 32,
            },
            CPU_0 + 24,
        ),
        (
            refused(PROCESS_7, u32(IDLE)),
            Fault::IdleAsProcess { cpu: 0 },
            PROCESS_7,
        ),
        (
            refused(PROCESS_7, u32(1)),
            Fault::DuplicateProcess { cpu: 0, process: 1 },
            PROCESS_7,
        ),
        (
            refused(PROCESS_7, u32(0)),
            Fault::ProcessOrder {
                cpu: 0,
                process: 0,
                before: 1,
            },
            PROCESS_7,
        ),
        (
            refused(PROCESS_2, u32(7)),
            Fault::ProcessOnTwoCpus {
                process: 7,
                cpu: 0,
                other_cpu: 3,
            },
            PROCESS_2,
        ),
        (
            refused(PROCESS_7 + 4, u32(1)),
            Fault::Flags {
                part: Part::Process,
                found: 1,
            },
            PROCESS_7 + 4,
        ),
        (
            refused(PROCESS_7 + 8, u64((1 << 56) + 1)),
            Fault::Buffer {
                cpu: 0,
                process: 7,
                found_insns: (1 << 56) + 1,
            },
            PROCESS_7 + 8,
        ),
        (
            refused(PROCESS_7 + 24, u64(1 << 32)),
            Fault::ProcessRate {
                cpu: 0,
                process: 7,
                found: 1 << 32,
            },
            PROCESS_7 + 24,
        ),
        (
            refused(SLOT_2, u64(0)),
            Fault::SlotLength {
                cpu: 0,
                slot: 2,
                found_insns: 0,
            },
            SLOT_2,
        ),
        (
            refused(SLOT_2, u64(MAX_SLOT_INSNS + 1)),
            Fault::SlotLength {
                cpu: 0,
                slot: 2,
                found_insns: MAX_SLOT_INSNS + 1,
            },
            SLOT_2,
        ),
        (
            refused(SLOT_2 + 12, u32(0)),
            Fault::IdleTask {
                cpu: 0,
                slot: 2,
                task: 0,
            },
            SLOT_2 + 12,
        ),
        (
            refused(SLOT_3 + 8, u32(2)),
            Fault::UnknownProcess {
                cpu: 0,
                slot: 3,
                process: 2,
            },
            SLOT_3 + 8,
        ),
        (
            refused(SLOT_3 + 12, u32(NO_TASK)),
            Fault::NoTask {
                cpu: 0,
                slot: 3,
                process: 1,
            },
            SLOT_3 + 12,
        ),
        (
            refused(SLOT_3 + 12, u32(0)),
            Fault::DuplicateTask {
                cpu: 0,
                slot: 3,
                process: 1,
                task: 0,
            },
            SLOT_3 + 12,
        ),
        (
            refused(SLOT_0 + 12, u32(9)),
            Fault::TaskOrder {
                cpu: 0,
                slot: 3,
                process: 1,
                task: 3,
                before: 9,
            },
            SLOT_3 + 12,
        ),
    ];
    for (refusal, fault, offset_bytes) in cases {
        assert_eq!(
            (refusal.fault, refusal.offset_bytes),
            (fault, offset_bytes as u64)
        );
        let too_big = matches!(
            fault,
            Fault::ManyProcesses { .. } | Fault::ManySlots { .. } | Fault::ManyEdges { .. }
        );
        let errno = if too_big {
            Errno::TooBig
        } else {
            Errno::Invalid
        };
        assert_eq!(refusal.errno(), errno);
    }
}

#[test]
fn process_without_a_slot_is_refused() {
    let mut cpus = two_cpus();
    cpus[0].processes.push((8, 0));
    let refusal = read(&write(1, None, &cpus)).err().unwrap();
    let fault = Fault::NoSlotOfProcess { cpu: 0, process: 8 };
    assert_eq!(
        (refusal.fault, refusal.offset_bytes),
        (fault, PROCESS_7 as u64 + PROCESS_BYTES as u64)
    );
}

#[test]
fn plan_that_is_too_long_is_refused() {
    let long = |slots: usize| {
        let mut slots = vec![(1, MAX_SLOT_INSNS); slots];
        slots.push((IDLE, 1));
        read(&write(1, None, &[Cpu::numbered(0, &slots)]))
    };
    // 2^14 slots of 2^48 are 2^62; with one instruction more it is too long.
    let refusal = long(1 << 14).err().unwrap();
    let fault = Fault::PlanLength {
        cpu: 0,
        slot: 1 << 14,
    };
    assert_eq!(refusal.fault, fault);
    assert!(long((1 << 14) - 1).is_ok());
}

#[test]
fn configuration_in_a_plan_is_checked() {
    let config = Config {
        no_preemption_ns: 50_000_001,
        ..Config::DEFAULT
    };
    let refusal = read(&write(1, Some(&config), &two_cpus())).err().unwrap();
    let text = "no_preemption_ns is 50000001; write 0 to 50000000";
    assert_eq!(
        (refusal.to_string().as_str(), refusal.offset_bytes),
        (text, 80)
    );
    let crossed = Config {
        sigma_t2_permille: 1050,
        ..Config::DEFAULT
    };
    let refusal = read(&write(1, Some(&crossed), &two_cpus())).err().unwrap();
    let text = "sigma_t2_permille is 1050; write 1051 to 100000, as t1 must be less than t2_task";
    assert_eq!(refusal.to_string(), text);
    let mut bytes = write(1, Some(&Config::DEFAULT), &two_cpus());
    let last = 64 + LEAST_CONFIG_BYTES - 8;
    bytes[last] = 2;
    let refusal = read(&bytes).err().unwrap();
    let text = "dispatch is 2; write 0 to 1";
    assert_eq!(
        (refusal.to_string().as_str(), refusal.offset_bytes),
        (text, last as u64)
    );
}

#[test]
fn truncated_plan_is_refused_at_every_length() {
    let whole = write(99, Some(&Config::DEFAULT), &two_cpus());
    for length in 0..whole.len() {
        // As a short write, and as one that declares how short it is.
        let mut bytes = whole[..length].to_vec();
        assert!(read(&bytes).is_err(), "{length}");
        if length >= 16 {
            bytes[8..16].copy_from_slice(&(length as u64).to_ne_bytes());
            let refusal = read(&bytes).err().unwrap();
            let truncated = matches!(refusal.fault, Fault::Truncated { .. });
            assert!(truncated, "{length}: {refusal}");
        }
    }
    let mut longer = whole.clone();
    longer.push(0);
    assert!(read(&longer).is_err());
    longer[8..16].copy_from_slice(&(whole.len() as u64 + 1).to_ne_bytes());
    let refusal = read(&longer).err().unwrap();
    assert_eq!(refusal.fault, Fault::Trailing { extra_bytes: 1 });
}

/// Memory of a writer that is killed.
struct Killed;

impl Memory for Killed {
    type Slice<T: Copy> = Vec<T>;
    type Tap = ();

    fn alloc<T: Copy>(len: usize, fill: T) -> Result<Vec<T>, NoMemory> {
        Ok(vec![fill; len])
    }

    fn pause() -> Result<(), Interrupted> {
        Err(Interrupted)
    }
}

#[test]
fn who_is_killed_reads_no_further() {
    let bytes = write(1, None, &two_cpus());
    let message = Message::parse::<Killed>(&bytes).err().unwrap();
    assert_eq!(message.errno(), Errno::Interrupted);
    let message = Message::parse::<StdMemory>(&bytes).unwrap();
    for section in message.sections() {
        let plan = Plan::<Killed>::build(&section).err().unwrap();
        assert_eq!(plan.errno(), Errno::Interrupted);
    }
}

/// Memory that is exhausted.
struct Poor;

impl Memory for Poor {
    type Slice<T: Copy> = Vec<T>;
    type Tap = ();

    fn alloc<T: Copy>(_: usize, _: T) -> Result<Vec<T>, NoMemory> {
        Err(NoMemory)
    }
}

#[test]
fn lack_of_memory_is_a_refusal() {
    let bytes = write(1, None, &two_cpus());
    assert_eq!(
        Message::parse::<Poor>(&bytes).err().unwrap().errno(),
        Errno::NoMemory
    );
    let message = Message::parse::<StdMemory>(&bytes).unwrap();
    let section = message.sections().next().unwrap();
    let refusal = Plan::<Poor>::build(&section).err().unwrap();
    assert_eq!(
        (refusal.errno().name(), refusal.offset_bytes),
        ("ENOMEM", u64::MAX)
    );
}

#[test]
fn reasons_fit_into_the_error_record() {
    let (cpu, process, task, before, other_cpu) =
        (u32::MAX, u32::MAX, u32::MAX, u32::MAX, u32::MAX);
    let edge = u32::MAX;
    let (slot, found_insns) = (u64::MAX, u64::MAX);
    let part = Part::Process;
    let faults = [
        Fault::Truncated {
            part,
            need_bytes: u64::MAX,
            have_bytes: u64::MAX,
        },
        Fault::Trailing {
            extra_bytes: u64::MAX,
        },
        Fault::Magic { found: u32::MAX },
        Fault::Version { found: u16::MAX },
        Fault::HeaderBytes { found: u16::MAX },
        Fault::TotalBytes {
            said_bytes: u64::MAX,
            have_bytes: u64::MAX,
        },
        Fault::ConfigBytes { found: u32::MAX },
        Fault::Flags {
            part,
            found: u64::MAX,
        },
        Fault::Reserved { part },
        Fault::NoCpus,
        Fault::Config {
            name: "preemption_limit_ns",
            value: u64::MAX,
            least: u64::MAX,
            most: u64::MAX,
        },
        Fault::CpuOrder { cpu, before },
        Fault::NoProcesses { cpu },
        Fault::ManyProcesses {
            cpu,
            found: u32::MAX,
        },
        Fault::NoSlots { cpu },
        Fault::ManySlots {
            cpu,
            found: u64::MAX,
        },
        Fault::IdleAsProcess { cpu },
        Fault::DuplicateProcess { cpu, process },
        Fault::ProcessOrder {
            cpu,
            process,
            before,
        },
        Fault::ProcessOnTwoCpus {
            process,
            cpu,
            other_cpu,
        },
        Fault::Buffer {
            cpu,
            process,
            found_insns,
        },
        Fault::SlotLength {
            cpu,
            slot,
            found_insns,
        },
        Fault::PlanLength { cpu, slot },
        Fault::IdleTask { cpu, slot, task },
        Fault::NoTask { cpu, slot, process },
        Fault::UnknownProcess { cpu, slot, process },
        Fault::DuplicateTask {
            cpu,
            slot,
            process,
            task,
        },
        Fault::TaskOrder {
            cpu,
            slot,
            process,
            task,
            before,
        },
        Fault::NoSlotOfProcess { cpu, process },
        Fault::CpuNotThere { cpu },
        Fault::Lease { found: u64::MAX },
        Fault::ManyEdges {
            cpu,
            found: u64::MAX,
        },
        Fault::EdgeOrder { cpu, edge },
        Fault::EdgeTask {
            cpu,
            edge,
            process,
            task,
        },
        Fault::EdgeAfter {
            cpu,
            edge,
            process,
            task,
        },
        Fault::EdgeSelf { cpu, edge, process },
        Fault::TaskBegun {
            process,
            task,
            after: process,
            after_task: task,
        },
        Fault::Circle {
            circle: Circle::longest(),
        },
        Fault::Rate {
            cpu,
            found: u64::MAX,
        },
        Fault::ProcessRate {
            cpu,
            process,
            found: u64::MAX,
        },
        Fault::NoMemory,
        Fault::Interrupted,
    ];
    for fault in faults {
        let text = fault.at(0).to_string();
        assert!(text.len() < 240, "{text}");
    }
}

/// Checks that a mutated plan is refused, or is written exactly as it was read.
fn check_mutated(bytes: &[u8]) -> bool {
    match again(bytes) {
        Ok(written) => {
            assert!(written == bytes, "read as another plan");
            true
        }
        Err(refusal) => {
            let within = refusal.offset_bytes <= bytes.len() as u64;
            assert!(within, "{refusal} at {}", refusal.offset_bytes);
            assert!(!format!("{refusal}").is_empty());
            false
        }
    }
}

#[test]
fn ten_thousand_mutated_plans() {
    let config = ProptestConfig {
        cases: 10_000,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(2021),
        ..ProptestConfig::default()
    };
    let mut cpus = two_cpus();
    cpus[0].edges = vec![(1, 3, 7, 4), (7, 5, 1, 3), (7, 5, 2, 3)];
    let whole = write(99, Some(&Config::DEFAULT), &cpus);
    let length = whole.len();
    let values = prop_oneof![
        any::<u32>(),
        Just(0),
        Just(1),
        Just(u32::MAX),
        0..10u32,
        (0..32u32).prop_map(|bit| 1 << bit),
    ];
    let overwrite = (0..length / 4, values, 1..=4usize);
    let overwrites = proptest::collection::vec(overwrite, 1..4);
    // Cut or copied: a range of the plan, put somewhere, with the total right.
    let splice = proptest::option::of((0..length, 0..length, 0..64usize));
    let (accepted, refused) = (core::cell::Cell::new(0), core::cell::Cell::new(0));
    let result = TestRunner::new(config).run(&(overwrites, splice), |(overwrites, splice)| {
        let mut bytes = whole.clone();
        for (word, value, size) in overwrites {
            bytes[4 * word..4 * word + size].copy_from_slice(&value.to_ne_bytes()[..size]);
        }
        if let Some((from, to, size)) = splice {
            let piece = bytes[from..(from + size).min(length)].to_vec();
            bytes.splice(to..(to + size / 2).min(length), piece);
            let total_bytes = bytes.len() as u64;
            if bytes.len() >= 16 {
                bytes[8..16].copy_from_slice(&total_bytes.to_ne_bytes());
            }
        }
        let count = if check_mutated(&bytes) {
            &accepted
        } else {
            &refused
        };
        count.set(count.get() + 1);
        Ok(())
    });
    result.unwrap();
    // Both outcomes are tested.
    assert!(accepted.get() > 100, "{accepted:?}");
    assert!(refused.get() > 1000, "{refused:?}");
}
