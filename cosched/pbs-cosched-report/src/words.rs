// SPDX-License-Identifier: GPL-2.0
//! Reasons in words, with times as tables have them.

use pbs_cosched::{Necessity, Reason};
use pbs_text::ms;

/// Describes the figure that decided between two schedules.
pub(crate) fn reason(reason: Reason) -> String {
    let (what, without_ns, with_ns) = match reason {
        Reason::MakespanNs(without_ns, with_ns) => {
            ("everything has ended after", without_ns, with_ns)
        }
        Reason::TurnaroundsNs(without_ns, with_ns) => ("turnarounds sum to", without_ns, with_ns),
        Reason::RuntimesNs(without_ns, with_ns) => ("runtimes sum to", without_ns, with_ns),
        // What has no times is as it says itself.
        other => return other.to_string(),
    };
    let (with, without) = (ms(with_ns), ms(without_ns));
    // What differs by less than tables show does not look the same.
    if with == without {
        format!("{what} {with_ns} ns instead of {without_ns} ns")
    } else {
        format!("{what} {with} ms instead of {without} ms")
    }
}

/// Describes the reason for which co-scheduling is necessary, or not.
pub(crate) fn necessity(necessity: Necessity) -> String {
    let (what, ns, cost_ns) = match necessity {
        Necessity::Speedup { saved_ns, cost_ns } => {
            ("desired devices would save", saved_ns, cost_ns)
        }
        Necessity::Amortization { wait_ns, cost_ns } => ("tasks wait", wait_ns, cost_ns),
        other => return other.to_string(),
    };
    format!("{what} {} ms, co-scheduling costs {} ms", ms(ns), ms(cost_ns))
}
