// SPDX-License-Identifier: GPL-2.0
//! Checkpoints of jobs in files.

use pbs_text::reader::{Reader, Value};
use pbs_text::{append_line, quoted, underscored, Line};
use serde_json::json;

use crate::{Checkpoint, MAX_NS, NOTICE_SIGNALS};

const KEYS: &[&str] = &["signal", "within_ns"];

const WRITE: &str = "write checkpoint = { signal = \"USR1\", within_ns = \"2s\" }";

/// Reads the checkpoint of a job.
pub(crate) fn read_checkpoint(
    reader: &mut Reader,
    line: Line,
    value: &Value<'_>,
) -> Option<Checkpoint> {
    let mut table = reader.table(line, value, "checkpoint", KEYS)?;
    for key in KEYS {
        if !table.entries.contains_key(*key) {
            reader.problem(line, format!("checkpoint has no {key}; {WRITE}"));
        }
    }
    let signal = table.entries.remove("signal").and_then(|(line, value)| {
        let signal = reader.string(line, "signal", value)?;
        let signal = signal.strip_prefix("SIG").unwrap_or(&signal).to_string();
        let fault = signal_fault(&signal);
        if let Some(fault) = &fault {
            reader.problem(line, fault.clone());
        }
        fault.is_none().then_some(signal)
    });
    let within_ns = table
        .entries
        .remove("within_ns")
        .and_then(|(line, value)| reader.number_in(line, "within_ns", value, 1..=MAX_NS));
    Some(Checkpoint { signal: signal?, within_ns: within_ns? })
}

/// Fault of the signal of a checkpoint; `None`: it has none.
pub(crate) fn signal_fault(signal: &str) -> Option<String> {
    let is_known = NOTICE_SIGNALS.contains(&signal);
    let names = || NOTICE_SIGNALS.join(", ");
    (!is_known)
        .then(|| format!("signal {signal} cannot ask a program to save; write one of {}", names()))
}

/// Writes the checkpoint of a job in TOML.
pub(crate) fn write_checkpoint(out: &mut String, checkpoint: Option<&Checkpoint>) {
    if let Some(Checkpoint { signal, within_ns }) = checkpoint {
        let (signal, within_ns) = (quoted(signal), underscored(*within_ns));
        append_line!(out, "checkpoint = {{ signal = {signal}, within_ns = {within_ns} }}");
    }
}

/// The checkpoint of a job in JSON.
pub(crate) fn checkpoint_to_json(checkpoint: Option<&Checkpoint>) -> Option<serde_json::Value> {
    checkpoint.map(|it| json!({ "signal": it.signal, "within_ns": it.within_ns }))
}
