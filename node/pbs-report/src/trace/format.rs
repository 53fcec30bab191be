// SPDX-License-Identifier: GPL-2.0
//! The events of Chrome's trace event format, as far as they are needed here.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// An event of the trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// What it is called; of metadata, what is named.
    pub name: String,
    /// What kind of event it is.
    #[serde(rename = "ph")]
    pub phase: Phase,
    /// When, in nanoseconds; the file has microseconds.
    #[serde(serialize_with = "micros")]
    pub ts: u64,
    /// How long a slice lasts, likewise.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "some_micros")]
    pub dur: Option<u64>,
    /// The number of the CPU, plus one: Perfetto takes 0 for the idle process
    /// of a kernel.
    pub pid: u64,
    /// The track.
    pub tid: u64,
    /// Of instants: how far they reach.
    #[serde(rename = "s", skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// What kind of thing it shows, to search for.
    #[serde(rename = "cat", skip_serializing_if = "Option::is_none")]
    pub category: Option<&'static str>,
    /// What is shown when it is clicked on; of counters, their values.
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
    /// Something without duration.
    #[serde(rename = "i")]
    Instant,
    /// A value from here on.
    #[serde(rename = "C")]
    Counter,
}

/// What an instant belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Scope {
    /// Its track.
    #[serde(rename = "t")]
    Thread,
}

impl Event {
    /// How long it lasts, in nanoseconds.
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
