// SPDX-License-Identifier: GPL-2.0
//! Resources of a machine beside its cores: accelerators, and the parts that its CPUs share.

use std::collections::BTreeSet;

use pbs_text::reader::{Reader, Value};
use pbs_text::{append, append_line, quoted, underscored, write_list, Line, Problem, Problems};
use toml::de::DeValue;

use crate::{Device, Machine, Sharing, MAX_BANDWIDTH_BYTES_PER_S};

const DEVICE_KEYS: &[&str] =
    &["kind", "models", "count", "host_cpu", "host_permille", "link_bytes_per_s"];
const SHARING_KEYS: &[&str] = &["level", "cpus"];
/// Accelerators of a kind; no node has more.
const MAX_COUNT: u64 = 1024;

pub(super) fn device(reader: &mut Reader, line: Line, value: &Value<'_>) -> Option<Device> {
    let mut table = reader.table(line, value, "[[device]]", DEVICE_KEYS)?;
    let Some((kind_line, kind)) = table.entries.remove("kind") else {
        reader.problem(line, "the device has no kind; add kind = \"gpu\"");
        return None;
    };
    let mut device = Device {
        kind: reader.string(kind_line, "kind", kind)?,
        count: 1,
        line,
        ..Device::default()
    };
    match table.entries.remove("models") {
        Some((line, value)) => {
            device.models = list(reader, line, value, "models", |reader, line, item| {
                reader.string(line, "a model", item)
            })?;
        }
        None => {
            let message =
                format!("device {} has no programming models; add models = [\"ocl\"]", device.kind);
            reader.problem(line, message);
        }
    }
    if let Some((line, value)) = table.entries.remove("count") {
        device.count = reader.number_in(line, "count", value, 1..=MAX_COUNT)?;
    }
    if let Some((line, value)) = table.entries.remove("host_cpu") {
        device.host_cpu = reader.number(line, "host_cpu", value);
    }
    if let Some((line, value)) = table.entries.remove("host_permille") {
        device.host_permille = reader.number(line, "host_permille", value)?;
    }
    if let Some((line, value)) = table.entries.remove("link_bytes_per_s") {
        let range = 1..=MAX_BANDWIDTH_BYTES_PER_S;
        device.link_bytes_per_s = reader.number_in(line, "link_bytes_per_s", value, range);
    }
    Some(device)
}

pub(super) fn sharing(reader: &mut Reader, line: Line, value: &Value<'_>) -> Option<Sharing> {
    let mut table = reader.table(line, value, "[[sharing]]", SHARING_KEYS)?;
    let level = table.entries.remove("level");
    let cpus = table.entries.remove("cpus");
    let (Some((level_line, level)), Some((cpus_line, cpus))) = (level, cpus) else {
        reader.problem(
            line,
            "what CPUs share has a level and the CPUs: level = \"llc\", cpus = [0, 1]",
        );
        return None;
    };
    let name = reader.string(level_line, "level", level)?;
    reader.one_of(level_line, "level", &name, &Sharing::LEVELS)?;
    let mut cpus = list(reader, cpus_line, cpus, "cpus", |reader, line, item| {
        reader.number::<u32>(line, "a CPU", item)
    })?;
    cpus.sort_unstable();
    Some(Sharing { level: name, cpus, line })
}

/// The items of a list, or `None` if one of them is none.
fn list<T>(
    reader: &mut Reader,
    line: Line,
    value: &Value<'_>,
    what: &str,
    mut item: impl FnMut(&mut Reader, Line, &Value<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let DeValue::Array(items) = value.get_ref() else {
        let message = format!("{what} is no list; write it in brackets: {what} = [...]");
        reader.problem(line, message);
        return None;
    };
    items.iter().map(|value| item(reader, line, value)).collect()
}

/// Checks the accelerators and the shared parts.
pub(super) fn check(machine: &Machine, problems: &mut Problems) {
    let mut problem = |line, message: String| problems.push(Problem::at(line, message));
    let cpus: BTreeSet<u32> = machine.cpus().collect();
    let mut kinds = BTreeSet::new();
    for device in &machine.devices {
        let kind = &device.kind;
        if !kinds.insert(kind) {
            problem(
                device.line,
                format!("devices of kind {kind} are declared already; add these to their count"),
            );
        }
        if device.kind == "cpu" {
            let message = "kind cpu is reserved for cores; choose another kind".into();
            problem(device.line, message);
        }
        if device.models.is_empty() {
            let message = format!("models of device {kind} is empty; write models = [\"ocl\"]");
            problem(device.line, message);
        }
        if !(1..=MAX_COUNT).contains(&device.count.into()) {
            let count = device.count;
            let message =
                format!("count of device {kind} is {count}; it must be between 1 and {MAX_COUNT}");
            problem(device.line, message);
        }
        if let Some(cpu) = device.host_cpu.filter(|cpu| !cpus.contains(cpu)) {
            let message = format!(
                "host_cpu of device {kind} is {cpu}, which the machine does not have; name one of \
                 its cores"
            );
            problem(device.line, message);
        }
        if device.host_permille > 1000 {
            let message = format!(
                "host_permille of device {kind} is {}; it must be between 0 and 1000, for all of \
                 the time",
                underscored(device.host_permille.into())
            );
            problem(device.line, message);
        }
        let rates = 1..=MAX_BANDWIDTH_BYTES_PER_S;
        if let Some(rate) = device.link_bytes_per_s.filter(|rate| !rates.contains(rate)) {
            let (rate, most) = (underscored(rate), underscored(MAX_BANDWIDTH_BYTES_PER_S));
            let message = format!(
                "link_bytes_per_s of device {kind} is {rate}; it must be between 1 and {most}"
            );
            problem(device.line, message);
        }
    }
    for sharing in &machine.sharing {
        let level = &sharing.level;
        let strange = sharing.cpus.iter().find(|cpu| !cpus.contains(cpu));
        if let Some(cpu) = strange {
            let message = format!(
                "CPU {cpu} shares {level}, but the machine does not have this \
                                   CPU; name one of its cores"
            );
            problem(sharing.line, message);
        }
        let several: BTreeSet<_> = sharing.cpus.iter().collect();
        if several.len() < 2 || several.len() < sharing.cpus.len() {
            let message = format!("{level} is shared by at least two CPUs, each named once");
            problem(sharing.line, message);
        }
    }
}

pub(super) fn write(out: &mut String, machine: &Machine) {
    for device in &machine.devices {
        append!(out, "\n[[device]]\nkind = {}\n", quoted(&device.kind));
        write_list(out, "models", device.models.iter().map(|model| quoted(model)), false);
        append_line!(out, "count = {}", device.count);
        if let Some(cpu) = device.host_cpu {
            append_line!(out, "host_cpu = {cpu}");
        }
        if device.host_permille > 0 {
            append_line!(out, "host_permille = {}", device.host_permille);
        }
        if let Some(rate) = device.link_bytes_per_s {
            append_line!(out, "link_bytes_per_s = {}", underscored(rate));
        }
    }
    for sharing in &machine.sharing {
        append!(out, "\n[[sharing]]\nlevel = {}\n", quoted(&sharing.level));
        write_list(out, "cpus", sharing.cpus.iter().map(u32::to_string), false);
    }
}
