// SPDX-License-Identifier: GPL-2.0
//! The events of Chrome's trace event format, as far as they are needed here.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// An event of the trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// Name of the event; for metadata, the kind of the named item.
    pub name: String,
    /// Kind of the event.
    #[serde(rename = "ph")]
    pub phase: Phase,
    /// Time in nanoseconds; the file has microseconds.
    #[serde(serialize_with = "micros")]
    pub ts: u64,
    /// Duration of a slice, in nanoseconds; the file has microseconds.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "some_micros")]
    pub dur: Option<u64>,
    /// The number of the CPU, plus one: Perfetto takes 0 for the idle process
    /// of a kernel.
    pub pid: u64,
    /// The track.
    pub tid: u64,
    /// Scope of an instant.
    #[serde(rename = "s", skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// Category of the event, for searches.
    #[serde(rename = "cat", skip_serializing_if = "Option::is_none")]
    pub category: Option<&'static str>,
    /// Data that are shown when the event is clicked on; for counters, their values.
    pub args: Map<String, Value>,
}

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Phase {
    /// A name, or a place among others.
    #[serde(rename = "M")]
    Metadata,
    /// A slice.
    #[serde(rename = "X")]
    Complete,
    /// An event without duration.
    #[serde(rename = "i")]
    Instant,
    /// A value from here on.
    #[serde(rename = "C")]
    Counter,
}

/// Scope of an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Scope {
    /// The track of the instant.
    #[serde(rename = "t")]
    Thread,
}

impl Event {
    /// Returns the duration in nanoseconds.
    pub(crate) fn lasts(&self) -> u64 {
        self.dur.unwrap_or(0)
    }
}

/// Exact below 2^53 ns, which are 104 days since boot; beyond, to some
/// nanoseconds.
fn micros<S: Serializer>(ns: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(*ns as f64 / 1000.0)
}

fn some_micros<S: Serializer>(ns: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    micros(&ns.unwrap_or(0), serializer)
}

/// `args` from pairs; `None` is left out.
pub(crate) fn args<const N: usize>(pairs: [(&str, Value); N]) -> Map<String, Value> {
    let pairs = pairs.into_iter().filter(|(_, value)| !value.is_null());
    pairs.map(|(key, value)| (key.into(), value)).collect()
}
