// SPDX-License-Identifier: GPL-2.0

//! The numbers here against those of the C header, which defines the format.

use std::collections::BTreeMap;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use crate::wire::{self, encode};
use crate::{Cause, Config, EventKind, Grant, Wait};

const HEADER: &str = include_str!("../../../include/uapi/linux/pbs.h");

/// The value of `#define NAME value`.
fn define(name: &str) -> u64 {
    let line = HEADER
        .lines()
        .find_map(|line| {
            line.strip_prefix("#define ")?
                .strip_prefix(name)?
                .strip_prefix('\t')
        })
        .unwrap_or_else(|| panic!("no {name}"));
    let value = line.split("/*").next().unwrap().trim();
    let value = value.trim_matches(|c| c == '(' || c == ')');
    let number = |text: &str| {
        let digits = text.trim_end_matches(['u', 'l']);
        match digits.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).unwrap(),
            None => digits.parse().unwrap(),
        }
    };
    match value.split_once(" << ") {
        Some((one, bits)) => number(one) << number(bits),
        None => number(value),
    }
}

/// The numbers of the constants that begin with `prefix`, in lower case.
fn constants(prefix: &str) -> BTreeMap<String, u16> {
    let lines = HEADER.lines().filter_map(|line| {
        let (name, rest) = line.trim().strip_prefix(prefix)?.split_once('=')?;
        let number = rest.trim().split(',').next()?.parse().ok()?;
        Some((name.trim().to_ascii_lowercase(), number))
    });
    lines.collect()
}

/// The fields of a struct: name, offset, size.
fn fields(name: &str) -> Vec<(String, usize, usize)> {
    let start = HEADER.find(&format!("struct {name} {{")).unwrap();
    let body = HEADER[start..].split("};").next().unwrap();
    let mut offset = 0;
    let mut fields = Vec::new();
    for line in body.lines() {
        let words: Vec<&str> = line.split(['\t', ' ', ';', '[', ']']).collect();
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let size = match words.first() {
            Some(&"__u16") => 2,
            Some(&("__u32" | "__s32")) => 4,
            Some(&("__u64" | "__s64")) => 8,
            _ => continue,
        };
        let count = words.get(2).and_then(|word| word.parse().ok()).unwrap_or(1);
        fields.push((words[1].to_string(), offset, size * count));
        offset += size * count;
    }
    fields
}

fn bytes(name: &str) -> usize {
    fields(name).iter().map(|field| field.2).sum()
}

#[test]
fn constants_are_those_of_the_header() {
    assert_eq!(define("PBS_PLAN_MAGIC"), wire::MAGIC.into());
    assert_eq!(define("PBS_VERSION"), wire::VERSION.into());
    assert_eq!(define("PBS_IDLE"), wire::IDLE.into());
    assert_eq!(define("PBS_NO_TASK"), wire::NO_TASK.into());
    assert_eq!(define("PBS_NO_SLOT"), wire::NO_SLOT);
    assert_eq!(define("PBS_NO_DEADLINE"), wire::NO_DEADLINE);
    assert_eq!(define("PBS_NO_ARRIVAL"), wire::NO_ARRIVAL);
    assert_eq!(define("PBS_PLAN_ARRIVALS"), wire::PLAN_ARRIVALS);
    assert_eq!(define("PBS_MAX_SLOTS"), wire::MAX_SLOTS);
    assert_eq!(define("PBS_MAX_EDGES"), wire::MAX_EDGES);
    assert_eq!(define("PBS_MAX_PROCESSES"), wire::MAX_PROCESSES.into());
    assert_eq!(define("PBS_MAX_SLOT_INSNS"), wire::MAX_SLOT_INSNS);
    assert_eq!(define("PBS_MAX_BUFFER_INSNS"), wire::MAX_BUFFER_INSNS);
}

#[test]
fn event_kinds_are_those_of_the_header() {
    let ours = EventKind::ALL.map(|kind| (kind.name().to_string(), kind as u16));
    assert_eq!(constants("PBS_EV_"), BTreeMap::from(ours));
    assert_eq!(
        EventKind::ALL.last().map(|&kind| kind as usize + 1),
        Some(EventKind::END)
    );
    let ours = [
        ("slot", Grant::Slot),
        ("idle_slot", Grant::IdleSlot),
        ("blocked_slot", Grant::BlockedSlot),
        ("after_plan", Grant::AfterPlan),
        ("none", Grant::None),
    ];
    let ours = ours.map(|(name, grant)| (name.to_string(), grant as u16));
    assert_eq!(constants("PBS_GRANT_"), BTreeMap::from(ours));
    let ours = [
        ("task", Cause::Task),
        ("process", Cause::Process),
        ("node", Cause::Node),
        ("preemptions", Cause::Preemptions),
        ("memory", Cause::Memory),
        ("node_memory", Cause::NodeMemory),
        ("message", Cause::Message),
        ("start", Cause::Start),
        ("end", Cause::End),
    ];
    let ours = ours.map(|(name, cause)| (name.to_string(), cause as u16));
    assert_eq!(constants("PBS_CAUSE_"), BTreeMap::from(ours));
    let ours = [("task", Wait::Task), ("gone", Wait::Gone)];
    let ours = ours.map(|(name, wait)| (name.to_string(), wait as u16));
    assert_eq!(constants("PBS_WAIT_"), BTreeMap::from(ours));
}

#[test]
fn records_have_the_sizes_of_the_header() {
    assert_eq!(bytes("pbs_plan_header"), wire::HEADER_BYTES);
    assert_eq!(bytes("pbs_config"), wire::CONFIG_BYTES);
    assert_eq!(bytes("pbs_plan_cpu"), wire::CPU_BYTES);
    assert_eq!(bytes("pbs_plan_process"), wire::PROCESS_BYTES);
    assert_eq!(bytes("pbs_plan_slot"), wire::SLOT_BYTES);
    assert_eq!(bytes("pbs_plan_edge"), wire::EDGE_BYTES);
}

/// Every field that is written stands where the header has it.
#[test]
fn records_have_the_fields_of_the_header() {
    let names: Vec<String> = fields("pbs_config")
        .into_iter()
        .map(|field| field.0)
        .collect();
    assert_eq!(names, Config::NAMES);
    let check = |name: &str, record: &[u8], values: &[(&str, u64)]| {
        for (field, offset, size) in fields(name) {
            let value = values
                .iter()
                .find(|value| value.0 == field)
                .map_or(0, |value| value.1);
            let place = &record[offset..offset + size];
            match size {
                2 => assert_eq!(place, (value as u16).to_ne_bytes(), "{field}"),
                4 => assert_eq!(place, (value as u32).to_ne_bytes(), "{field}"),
                8 => assert_eq!(place, value.to_ne_bytes(), "{field}"),
                _ => assert!(place.iter().all(|&byte| byte == 0), "{field}"),
            }
        }
    };
    check(
        "pbs_plan_header",
        &encode::Header {
            plan_id: 11,
            total_bytes: 12,
            nr_cpus: 13,
            with_config: true,
            with_arrivals: true,
            dealt_seq: 14,
            lease_ns: 15,
            memory_bytes: 16,
        }
        .bytes(),
        &[
            ("magic", wire::MAGIC.into()),
            ("version", wire::VERSION.into()),
            ("header_bytes", 64),
            ("total_bytes", 12),
            ("plan_id", 11),
            ("nr_cpus", 13),
            ("config_bytes", wire::CONFIG_BYTES as u64),
            ("flags", wire::PLAN_ARRIVALS),
            ("dealt_seq", 14),
            ("lease_ns", 15),
            ("memory_bytes", 16),
        ],
    );
    let record = encode::Cpu {
        cpu: 1,
        nr_processes: 2,
        nr_slots: 3,
        nr_edges: 4,
        rate_insns_per_ms: 5,
    };
    check(
        "pbs_plan_cpu",
        &record.bytes(),
        &[
            ("cpu", 1),
            ("nr_processes", 2),
            ("nr_slots", 3),
            ("nr_edges", 4),
            ("rate_insns_per_ms", 5),
        ],
    );
    let record = encode::Process {
        id: 1,
        buffer_insns: 2,
        memory_bytes: 3,
        rate_insns_per_ms: 4,
        deadline_ns: 5,
    };
    check(
        "pbs_plan_process",
        &record.bytes(),
        &[
            ("id", 1),
            ("buffer_insns", 2),
            ("memory_bytes", 3),
            ("rate_insns_per_ms", 4),
            ("deadline_ns", 5),
        ],
    );
    check(
        "pbs_plan_edge",
        &encode::edge(1, 2, 3, 4),
        &[
            ("process", 1),
            ("task", 2),
            ("after_process", 3),
            ("after_task", 4),
        ],
    );
    check(
        "pbs_plan_slot",
        &encode::slot(1, 2, 3),
        &[("length_insns", 1), ("process", 2), ("task", 3)],
    );
}
