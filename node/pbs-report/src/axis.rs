// SPDX-License-Identifier: GPL-2.0
//! Round numbers for axes.

use pbs_text::grouped;

/// A place on an axis.
pub(crate) struct Tick {
    pub(crate) at: f64,
    pub(crate) label: String,
}

/// Round numbers from 0 to `span`, about ten of them.
pub(crate) fn ticks(span: f64) -> Vec<Tick> {
    ticks_between(0.0, span, 10)
}

/// Round numbers from `least` to `most`, about `wanted` of them.
pub(crate) fn ticks_between(least: f64, most: f64, wanted: usize) -> Vec<Tick> {
    let rough = (most - least) / wanted as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= rough)
        .unwrap_or(10.0 * power);
    let decimals = (-step.log10().floor()).max(0.0) as usize;
    let first = (least / step - 1e-9).ceil() as i64;
    let last = (most / step + 1e-9).floor() as i64;
    (first..=last)
        .map(|number| {
            let at = number as f64 * step;
            let label =
                if step >= 1.0 { grouped(at.round() as i64) } else { format!("{at:.decimals$}") };
            Tick { at, label }
        })
        .collect()
}
