// SPDX-License-Identifier: GPL-2.0
//! The [config] section.

use pbs_text::reader::{Reader, Table, Value};
use pbs_text::Line;
use toml::de::DeValue;

use crate::check::config_ranges;
use crate::{config_is_flag, config_words, Config, Plan, Threshold};

/// Hint at the notation of thresholds.
const WRITE_THRESHOLDS: &str = "write the names of those that are on: \
                                thresholds = [\"t1\", \"t2_task\"]";

pub(super) fn read_config(reader: &mut Reader, line: Line, value: &Value<'_>, plan: &mut Plan) {
    let Some(table) = reader.table(line, value, "[config]", &Config::NAMES) else {
        return;
    };
    let config = numbers(reader, table, &Config::DEFAULT, &mut plan.config_lines);
    plan.config = Some(config);
}

/// `base` with the numbers that stand in the table, and their lines.
pub(super) fn numbers(
    reader: &mut Reader,
    mut table: Table<'_, '_>,
    base: &Config,
    lines: &mut [Line; Config::COUNT],
) -> Config {
    let mut values = base.values();
    for (index, name) in Config::NAMES.iter().enumerate() {
        let Some((line, value)) = table.entries.remove(name) else {
            continue;
        };
        lines[index] = line;
        let read = match *name {
            "thresholds" => thresholds(reader, line, value),
            "idle_policy" => word(reader, line, name, "idle policy", value),
            "preemption_way" => word(reader, line, name, "way of preemption", value),
            "stress_cause" => word(reader, line, name, "cause of stress", value),
            "t1_state" => word(reader, line, name, "state of the node", value),
            "dispatch" => word(reader, line, name, "dispatch", value),
            _ if config_is_flag(name) => reader.flag(line, name, value).map(u64::from),
            _ => {
                let (least, most) = config_ranges(base)[index];
                reader.number_in(line, name, value, least..=most)
            }
        };
        values[index] = read.unwrap_or(values[index]);
    }
    Config::from_values(values)
}

fn thresholds(reader: &mut Reader, line: Line, value: &Value<'_>) -> Option<u64> {
    let DeValue::Array(items) = value.get_ref() else {
        reader.problem(line, format!("thresholds is no list; {WRITE_THRESHOLDS}"));
        return None;
    };
    let mut bits = 0;
    for item in items.iter() {
        let line = reader.line_of(item);
        let DeValue::String(name) = item.get_ref() else {
            reader.problem(line, format!("a threshold is named, not numbered; {WRITE_THRESHOLDS}"));
            continue;
        };
        let names = Threshold::ALL.map(Threshold::name);
        let Some(at) = reader.one_of(line, "threshold", name, &names) else {
            continue;
        };
        let bit = Threshold::ALL[at] as u64;
        if bits & bit != 0 {
            reader.problem(line, format!("threshold {name} stands there twice; remove one"));
        }
        bits |= bit;
    }
    Some(bits)
}

/// A number that is written as one of its words.
fn word(reader: &mut Reader, line: Line, name: &str, what: &str, value: &Value<'_>) -> Option<u64> {
    let word = reader.string(line, name, value)?;
    let at = reader.one_of(line, what, &word, &config_words(name))?;
    Some(at as u64)
}
