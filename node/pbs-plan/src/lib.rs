// SPDX-License-Identifier: GPL-2.0
//! Plans for people.
//!
//! A [`Plan`] is read from TOML ([`from_toml`]) or from a log in Leppert's
//! grammar ([`leppert::import`]), written as TOML ([`to_toml`]), and goes to
//! the kernel and back in the wire format ([`wire`]). Whether it is valid is
//! decided by `pbs_core`, the code that the kernel runs.

use pbs_text::Problem;

mod check;
mod export;
mod json;
pub mod leppert;
mod model;
mod names;
mod order;
mod parse;
pub mod wire;

pub use check::{config_faults, name_fault, ConfigFault};
pub use export::{to_toml, write_start};
pub use json::{config_to_json, put_start, to_json};
pub use model::{After, Command, ConfigLines, Cpu, PlacedSlot, Plan, Process, Slot, Start, Task};
pub use parse::read_start;
pub use pbs_core::wire::LEASE_NS;
pub use pbs_core::{Config, Dispatch, IdlePolicy, PreemptionWay, StressCause, T1State, Threshold};

/// Reads a plan from TOML and checks it, up to the kernel's own validator.
pub fn from_toml(text: &str) -> Result<Plan, Vec<Problem>> {
    let plan = parse::parse(text)?;
    check(&plan)?;
    Ok(plan)
}

/// Reads what may stand below `[config]` of a plan: `base` with those numbers.
/// Whether they are in their ranges is for [`Config::check`].
pub fn config_from_toml(text: &str, base: &Config) -> Result<Config, Vec<Problem>> {
    parse::config(text, base)
}

/// The words that stand in `[config]` for the values of a number, in their order; none
/// where it stands there as a number, as `true` or `false`, or as a list.
pub fn config_words(name: &str) -> Vec<&'static str> {
    match name {
        "idle_policy" => IdlePolicy::ALL.map(IdlePolicy::name).into(),
        "preemption_way" => PreemptionWay::ALL.map(PreemptionWay::name).into(),
        "dispatch" => Dispatch::ALL.map(Dispatch::name).into(),
        "stress_cause" => StressCause::ALL.map(StressCause::name).into(),
        "t1_state" => T1State::ALL.map(T1State::name).into(),
        _ => Vec::new(),
    }
}

/// Numbers that stand in `[config]` as `true` or `false`.
const FLAGS: &[&str] = &[
    "idle_is_lateness",
    "t1_spares_last_slot",
    "reschedule_time_measured",
    "info_is_dealt",
    "suspends_failed",
];

/// Whether a number stands in `[config]` as `true` or `false`.
pub fn config_is_flag(name: &str) -> bool {
    FLAGS.contains(&name)
}

/// The word for a value of that number, where it has words.
pub fn config_word(name: &str, value: u64) -> Option<&'static str> {
    let words = config_words(name);
    words.get(usize::try_from(value).ok()?).copied()
}

/// Whether the plan is valid, up to the kernel's own validator.
pub fn check(plan: &Plan) -> Result<(), Vec<Problem>> {
    check::check(plan)?;
    wire::validate(&wire::encode(plan)).map_err(|problem| vec![problem])
}
