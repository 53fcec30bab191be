// SPDX-License-Identifier: GPL-2.0
//! `slowdowns.toml`: slow-downs with names, for people.
//!
//! ```toml
//! [[slowdown]]
//! victim = "render"             # who is slowed
//! beside = ["backup"]           # by whom; several: by all of them at once
//! level = "llc"                 # what they share: smt, l2, llc or node
//! slowdown_permille = 1_667     # its time beside them, in thousandths of alone
//! low_permille = 1_590          # one run of twenty is below; optional
//! high_permille = 1_748         # one run of twenty is above; optional
//! samples = 8                   # runs that it rests on; optional
//! disturbed = 0                 # rounds in which other programs had a CPU; optional
//! ```
//!
//! Where not all share the same with the victim, each says it for itself:
//! `beside = [{ name = "backup", level = "smt" }, "index"]`. Without `level` they
//! share the node.
//!
//! A name is that of a process, `process/task` or `process/task@variant`, each
//! also with `job:` before it; [`names`] has all that one key answers to. Of two
//! tables for the same the later one counts, so what is true of a whole process
//! stands before what is true of one of its tasks.

use std::collections::HashMap;

use pbs_text::reader::{read, Reader, Table, Value};
use pbs_text::{append, append_line, quoted, underscored, Line, Problem};
use toml::de::{DeTable, DeValue};

use crate::{Entry, Key, Level, LEAST_SLOWDOWN, MOST_SLOWDOWN};

const KEYS: &[&str] = &[
    "victim",
    "beside",
    "level",
    "slowdown_permille",
    "low_permille",
    "high_permille",
    "samples",
    "disturbed",
];
const WRITE_BESIDE: &str = "write the names of the tasks that run beside it: beside = [\"backup\"]";
/// One name stands for at most so many keys, and one table for so many entries.
const MOST_ENTRIES: usize = 1 << 16;

/// Reads the tables; all problems are told at once, each with its line.
pub fn slowdowns_from_toml(text: &str) -> Result<Vec<Entry<String>>, Vec<Problem>> {
    read(text, |reader, document| {
        let mut top = reader.open(document, "the file", None, &["slowdown"]);
        let tables = reader.tables(&mut top, "slowdown").into_iter();
        tables.filter_map(|(line, value)| entry(reader, line, value)).collect()
    })
}

/// The tables as [`slowdowns_from_toml`] reads them. Slow-downs are rounded to
/// thousandths.
pub fn slowdowns_to_toml(entries: &[Entry<String>]) -> String {
    to_toml(entries.iter().map(|entry| (entry, None)))
}

/// Tables of measurements, each with the number of rounds that other programs disturbed.
pub fn measured_to_toml(measured: &[(Entry<String>, usize)]) -> String {
    to_toml(measured.iter().map(|(entry, disturbed)| (entry, Some(*disturbed))))
}

fn to_toml<'a>(entries: impl Iterator<Item = (&'a Entry<String>, Option<usize>)>) -> String {
    let mut out = String::new();
    for (entry, disturbed) in entries {
        let first = entry.beside.first().map(|&(level, _)| level);
        let shared = first.unwrap_or(Level::Node);
        let beside = entry.beside.iter().map(|(level, name)| {
            if *level == shared {
                return quoted(name);
            }
            format!("{{ name = {}, level = \"{level}\" }}", quoted(name))
        });
        let beside: Vec<_> = beside.collect();
        let gap = if out.is_empty() { "" } else { "\n" };
        append!(
            out,
            "{gap}[[slowdown]]\nvictim = {}\nbeside = [{}]\nlevel = \"{shared}\"\n",
            quoted(&entry.victim),
            beside.join(", ")
        );
        for (key, slowdown) in [
            ("slowdown_permille", entry.slowdown),
            ("low_permille", entry.low),
            ("high_permille", entry.high),
        ] {
            append_line!(out, "{key} = {}", underscored(permille(slowdown)));
        }
        append_line!(out, "samples = {}", underscored(entry.samples));
        if let Some(disturbed) = disturbed {
            append_line!(out, "disturbed = {}", underscored(disturbed as u64));
        }
    }
    out
}

/// In thousandths, as files have it.
fn permille(slowdown: f64) -> u64 {
    let bounded = slowdown.clamp(LEAST_SLOWDOWN, MOST_SLOWDOWN);
    libm::round(1000.0 * bounded) as u64
}

fn entry(reader: &mut Reader, line: Line, value: &Value<'_>) -> Option<Entry<String>> {
    let mut table = reader.table(line, value, "[[slowdown]]", KEYS)?;
    let level = match table.entries.remove("level") {
        Some((line, value)) => level(reader, line, value),
        None => Some(Level::Node),
    };
    let victim = match table.entries.remove("victim") {
        Some((line, value)) => reader.string(line, "victim", value),
        None => {
            let message = "there is no victim; add the name of the slowed task: victim = \
                           \"render\"";
            reader.problem(line, message);
            None
        }
    };
    let beside = beside(reader, &mut table, level.unwrap_or(Level::Node));
    let slowdown = factor(reader, &mut table, "slowdown_permille");
    let low = factor(reader, &mut table, "low_permille");
    let high = factor(reader, &mut table, "high_permille");
    let samples = match table.entries.remove("samples") {
        Some((line, value)) => reader.number(line, "samples", value),
        None => Some(1),
    };
    if let Some((line, value)) = table.entries.remove("disturbed") {
        // For people: it changes no decision.
        let _: u64 = reader.number(line, "disturbed", value)?;
    }
    let Some((at, slowdown)) = slowdown else {
        if table.entries.contains_key("slowdown_permille") {
            return None;
        }
        let message = "the slow-down is missing; add it in thousandths of the time alone: \
                       slowdown_permille = 1_667";
        reader.problem(line, message);
        return None;
    };
    let (low, high) =
        (low.map_or(slowdown, |(_, low)| low), high.map_or(slowdown, |(_, high)| high));
    if !(low..=high).contains(&slowdown) {
        let message = "slowdown_permille must lie between low_permille and high_permille";
        reader.problem(at, message);
        return None;
    }
    Some(Entry { victim: victim?, beside: beside?, slowdown, low, high, samples: samples? })
}

fn level(reader: &mut Reader, line: Line, value: &Value<'_>) -> Option<Level> {
    let name = reader.string(line, "level", value)?;
    let place = reader.one_of(line, "level", &name, &Level::NAMES)?;
    Some(Level::ALL[place])
}

fn beside(
    reader: &mut Reader,
    table: &mut Table<'_, '_>,
    shared: Level,
) -> Option<Vec<(Level, String)>> {
    let Some((line, value)) = table.entries.remove("beside") else {
        let message = format!("beside is missing; {WRITE_BESIDE}");
        reader.problem(table.line, message);
        return None;
    };
    let DeValue::Array(items) = value.get_ref() else {
        reader.problem(line, format!("beside is no list; {WRITE_BESIDE}"));
        return None;
    };
    if items.is_empty() {
        reader.problem(line, format!("beside is empty; {WRITE_BESIDE}"));
        return None;
    }
    let mut beside = Vec::new();
    for item in items.iter() {
        let line = reader.line_of(item);
        beside.push(match item.get_ref() {
            DeValue::Table(table) => neighbour(reader, line, table, shared)?,
            _ => (shared, reader.string(line, "a task of beside", item)?),
        });
    }
    Some(beside)
}

fn neighbour(
    reader: &mut Reader,
    line: Line,
    table: &DeTable<'_>,
    shared: Level,
) -> Option<(Level, String)> {
    let mut table = reader.open(table, "a task of beside", line, &["name", "level"]);
    let level = match table.entries.remove("level") {
        Some((line, value)) => level(reader, line, value)?,
        None => shared,
    };
    let Some((line, name)) = table.entries.remove("name") else {
        reader.problem(line, format!("the name is missing; {WRITE_BESIDE}"));
        return None;
    };
    Some((level, reader.string(line, "name", name)?))
}

/// A factor, and its line. The key stays in the table if it is no number.
fn factor(
    reader: &mut Reader,
    table: &mut Table<'_, '_>,
    key: &'static str,
) -> Option<(Line, f64)> {
    let &(line, value) = table.entries.get(key)?;
    let range = (1000.0 * LEAST_SLOWDOWN) as u64..=(1000.0 * MOST_SLOWDOWN) as u64;
    let permille: u64 = reader.number_in(line, key, value, range.clone())?;
    if !range.contains(&permille) {
        let between = pbs_text::between(*range.start(), *range.end());
        let found = pbs_text::underscored(permille);
        let message =
            format!("{key} is {found}; it must be {between}, in thousandths of the time alone");
        reader.problem(line, message);
        return None;
    }
    table.entries.remove(key);
    Some((line, permille as f64 / 1000.0))
}

/// All names of one key: of its process, of its task and of its variant, each
/// with and without its job.
pub fn names(
    job: Option<&str>,
    process: &str,
    task: u32,
    task_name: Option<&str>,
    variant: Option<&str>,
) -> Vec<String> {
    let mut names = vec![process.to_owned()];
    let number = task.to_string();
    for task in [Some(number.as_str()), task_name].into_iter().flatten() {
        names.push(format!("{process}/{task}"));
        names.extend(variant.map(|variant| format!("{process}/{task}@{variant}")));
    }
    if let Some(job) = job {
        let of_job: Vec<_> = names.iter().map(|name| format!("{job}:{name}")).collect();
        names.extend(of_job);
    }
    names
}

/// Keys by their names.
#[derive(Clone, Debug, Default)]
pub struct Names {
    keys: HashMap<String, Vec<Key>>,
}

impl Names {
    /// The key has those names ([`names`]).
    pub fn add(&mut self, key: Key, names: impl IntoIterator<Item = String>) {
        for name in names {
            let keys = self.keys.entry(name).or_default();
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
    }

    /// The keys of that name, in the order in which they came.
    pub fn of(&self, name: &str) -> &[Key] {
        self.keys.get(name).map_or(&[], Vec::as_slice)
    }

    /// The entries with keys for names. A name of several keys stands for each of
    /// them; an entry with a name that nobody has is left out.
    pub fn resolve(&self, entries: &[Entry<String>]) -> Vec<Entry<Key>> {
        let mut resolved = Vec::new();
        for entry in entries {
            let mut sets: Vec<Vec<(Level, Key)>> = vec![Vec::new()];
            for (level, name) in &entry.beside {
                let keys = self.of(name);
                let longer = sets.iter().flat_map(|set| {
                    keys.iter().map(|&key| {
                        let mut set = set.clone();
                        set.push((*level, key));
                        set
                    })
                });
                sets = longer.take(MOST_ENTRIES).collect();
            }
            for &victim in self.of(&entry.victim) {
                resolved.extend(sets.iter().map(|beside| Entry {
                    victim,
                    beside: beside.clone(),
                    slowdown: entry.slowdown,
                    low: entry.low,
                    high: entry.high,
                    samples: entry.samples,
                }));
            }
        }
        resolved
    }
}
