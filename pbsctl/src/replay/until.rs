// SPDX-License-Identifier: GPL-2.0
//! Moment at which a replay stops.

use pbs_core::{EventKind, InputKind};
use pbs_record::{CpuReplay, Recording, Stretch};
use pbs_text::Quantity;

use crate::failure::Failure;

/// Moment of a recording.
#[derive(Clone, Debug)]
pub(super) enum Until {
    /// Event of that number.
    Number(u64),
    /// First event of that kind.
    Kind(EventKind),
    /// Time since the first plan came into force.
    Time(u64),
}

impl Until {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if let Ok(number) = text.parse() {
            return Ok(Self::Number(number));
        }
        if let Some(kind) = EventKind::ALL.into_iter().find(|kind| kind.name() == text) {
            return Ok(Self::Kind(kind));
        }
        Quantity::Ns.parse(text).map(Self::Time).map_err(|_| {
            let kinds = EventKind::ALL.map(EventKind::name).join(", ");
            format!("write the number of an event, a time with a unit, or one of {kinds}")
        })
    }

    /// Time of the moment, on the clock of the recording.
    pub(super) fn time_ns(&self, recording: &Recording) -> Result<u64, Failure> {
        let missing = |what: String| Failure::Failed(format!("the recording has no {what}"));
        match self {
            Self::Time(ns) => {
                let begin_ns = begin_ns(recording).ok_or_else(|| missing("plan".into()))?;
                Ok(begin_ns.saturating_add(*ns))
            }
            Self::Number(number) => {
                let time_ns = first(recording, |seq, _| seq == *number);
                time_ns.ok_or_else(|| {
                    let instead = match numbers(recording) {
                        Some((least, most)) => format!("write a number from {least} to {most}"),
                        None => "it has no event at all".into(),
                    };
                    missing(format!("event {number}; {instead}"))
                })
            }
            Self::Kind(kind) => {
                let time_ns = first(recording, |_, found| found == *kind);
                time_ns.ok_or_else(|| missing(format!("event of the kind {}", kind.name())))
            }
        }
    }
}

/// Time of the first event that is looked for.
fn first(recording: &Recording, is_it: impl Fn(u64, EventKind) -> bool) -> Option<u64> {
    let replays: Vec<CpuReplay> = recording.replay(true);
    let emitted = replays.iter().flat_map(|replay| &replay.emitted);
    let found = emitted.filter(|emitted| is_it(emitted.seq, emitted.event.kind));
    found.map(|emitted| emitted.event.time_ns).min()
}

/// The least and the greatest number of an event; `None`: there is none.
fn numbers(recording: &Recording) -> Option<(u64, u64)> {
    let replays: Vec<CpuReplay> = recording.replay(true);
    let numbers = || replays.iter().flat_map(|of| &of.emitted).map(|emitted| emitted.seq);
    Some((numbers().min()?, numbers().max()?))
}

/// Time at which the first plan came into force, also if it did before the recording.
fn begin_ns(recording: &Recording) -> Option<u64> {
    let of_stretch = |stretch: &Stretch| match stretch {
        Stretch::Inputs(part) => {
            let mut inputs = part.inputs.iter();
            let begin = inputs.find(|input| input.input_kind() == Some(InputKind::Begin));
            begin.map(|input| input.time_ns)
        }
        Stretch::Snapshot(snapshot) => Some(snapshot.begun_ns),
        Stretch::Lost(_) => None,
    };
    recording.cpus.values().flatten().filter_map(of_stretch).min()
}
