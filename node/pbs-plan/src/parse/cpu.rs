// SPDX-License-Identifier: GPL-2.0
//! The [[cpu]] tables, with their slots.

use std::collections::HashMap;

use pbs_text::reader::{closest, Reader, Table, Value};
use pbs_text::{Line, Quantity};
use pbs_uapi::MAX_SLOT_INSNS;
use toml::de::DeValue;

use crate::{Cpu, Slot};

const CPU_KEYS: &[&str] = &["cpu", "rate_insns_per_ms", "slots"];
const IDLE_KEYS: &[&str] = &["idle_insns", "real_insns"];

pub(super) fn read_cpu(
    reader: &mut Reader,
    line: Line,
    value: &Value<'_>,
    indices: &HashMap<String, usize>,
) -> Option<Cpu> {
    let mut table = reader.table(line, value, "[[cpu]]", CPU_KEYS)?;
    let mut cpu = Cpu { line: table.line, ..Cpu::default() };
    match table.entries.remove("cpu") {
        Some((line, value)) => cpu.cpu = reader.number(line, "cpu", value).unwrap_or(0),
        None => reader.problem(table.line, "the CPU has no number; add cpu = 0"),
    }
    cpu.rate_insns_per_ms = rate(reader, &mut table);
    let Some((line, slots)) = table.entries.remove("slots") else {
        reader.problem(
            table.line,
            format!(
                "CPU {} has no slots; add their order: slots = [1, 2, \"idle 5_000_000\", 1], \
                 or slots = [] to have no process there",
                cpu.cpu
            ),
        );
        return Some(cpu);
    };
    let DeValue::Array(items) = slots.get_ref() else {
        reader.problem(line, "slots is no list; write slots = [1, 2, \"idle 5_000_000\", 1]");
        return Some(cpu);
    };
    for item in items.iter() {
        let line = reader.line_of(item);
        if let Some(slot) = slot(reader, line, item, indices) {
            cpu.slots.push(slot);
            cpu.slot_lines.push(line);
        }
    }
    Some(cpu)
}

/// The rate of a CPU, or of a process; 0 if none is said.
pub(super) fn rate(reader: &mut Reader, table: &mut Table<'_, '_>) -> u64 {
    const KEY: &str = "rate_insns_per_ms";
    let rate = table.entries.remove(KEY);
    let rate = rate.and_then(|(line, value)| reader.number::<u32>(line, KEY, value));
    rate.unwrap_or(0).into()
}

fn slot(
    reader: &mut Reader,
    line: Line,
    value: &Value<'_>,
    indices: &HashMap<String, usize>,
) -> Option<Slot> {
    let name = match value.get_ref() {
        DeValue::String(text) => match text.strip_prefix("idle") {
            Some(length) if length.is_empty() || length.starts_with(char::is_whitespace) => {
                return idle(reader, line, length);
            }
            _ => text.to_string(),
        },
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_string(),
        DeValue::Table(_) => return idle_table(reader, line, value),
        _ => {
            reader.problem(
                line,
                "a slot is the number or the name of a process, or \"idle 5_000_000\"",
            );
            return None;
        }
    };
    match indices.get(&name) {
        Some(&process) => Some(Slot::Process { process }),
        None => {
            let close = closest(&name, indices.keys().map(String::as_str));
            reader.problem(
                line,
                match close {
                    Some(close) => {
                        format!("there is no process {name}; did you mean {close}?")
                    }
                    None => format!(
                        "there is no process {name}; add a [[process]] for it, \
                         or write \"idle 5_000_000\" for an idle slot"
                    ),
                },
            );
            None
        }
    }
}

fn idle(reader: &mut Reader, line: Line, length: &str) -> Option<Slot> {
    match Quantity::Insns.parse(length) {
        Ok(length_insns) => Some(Slot::Idle { length_insns, real_insns: None }),
        Err(_) => {
            reader.problem(
                line,
                format!("\"idle{length}\" has no length in instructions; write \"idle 5_000_000\""),
            );
            None
        }
    }
}

fn idle_table(reader: &mut Reader, line: Line, value: &Value<'_>) -> Option<Slot> {
    let mut table = reader.table(line, value, "a slot", IDLE_KEYS)?;
    let Some((length_line, length)) = table.entries.remove("idle_insns") else {
        reader.problem(line, "a slot in braces is an idle one; write { idle_insns = 5_000_000 }");
        return None;
    };
    let real = table.entries.remove("real_insns");
    Some(Slot::Idle {
        length_insns: reader.insns(length_line, "idle_insns", length, 1..=MAX_SLOT_INSNS)?,
        real_insns: real
            .and_then(|(line, value)| reader.insns(line, "real_insns", value, 0..=MAX_SLOT_INSNS)),
    })
}
