// SPDX-License-Identifier: GPL-2.0
//! Numbers of the policy on the command line: `--config KEY=VALUE`.

use std::collections::HashSet;

use pbs_plan::{config_faults, config_from_toml, config_words, Config, Threshold};
use pbs_sim::ConfigChange;
use pbs_text::{between, underscored};

use crate::failure::Failure;
use crate::quantities;

/// `base` with the numbers that `--config KEY=VALUE` has on the command line.
pub(crate) fn with_numbers(given_numbers: &[String], base: Config) -> Result<Config, Failure> {
    numbers_of("--config", "--config ", given_numbers, base)
}

/// `base` with the numbers of `given_numbers`.  An error begins with `option`, and suggests another
/// number behind `prefix`.
pub(crate) fn numbers_of<'a>(
    option: &str,
    prefix: &str,
    given_numbers: impl IntoIterator<Item = &'a String>,
    base: Config,
) -> Result<Config, Failure> {
    let failed = |words: &str| Failure::Usage(format!("{option}: {words}"));
    let mut toml = String::new();
    let mut given = HashSet::new();
    for item in given_numbers {
        let (key, value) = item.split_once('=').ok_or_else(|| {
            failed(&format!("\"{item}\" has no \"=\"; write KEY=VALUE, such as idle_policy=pieces"))
        })?;
        given.insert(key);
        let value = match key {
            "thresholds" => format!("{:?}", thresholds(value)),
            _ if !config_words(key).is_empty() => format!("{value:?}"),
            // With a unit: 4ms, 20%.
            _ if value.starts_with(|c: char| c.is_ascii_digit())
                && value.contains(|c: char| c.is_alphabetic() || c == '%') =>
            {
                format!("{value:?}")
            }
            _ => value.into(),
        };
        toml.push_str(&format!("{key} = {value}\n"));
    }
    let config = config_from_toml(&toml, &base).map_err(|problems| {
        let words: Vec<_> = problems.into_iter().map(|problem| problem.message).collect();
        failed(&words.join("; "))
    })?;
    let faults = config_faults(&config);
    let words: Vec<_> = faults
        .iter()
        .map(|fault| {
            let (name, value, least, most) = (fault.name, fault.value, fault.least, fault.most);
            let range = format!("it must be {}{}", between(least, most), fault.why);
            let (value, closest) = (underscored(value), value.clamp(least, most));
            if given.contains(name) {
                format!("{name} is {value}; {range}")
            } else {
                format!(
                    "{name} is {value}, but with the other numbers {range}; \
                     add {prefix}{name}={}",
                    underscored(closest)
                )
            }
        })
        .collect();
    if words.is_empty() {
        Ok(config)
    } else {
        Err(failed(&words.join("; ")))
    }
}

/// The changes of `--change TIME:KEY=VALUE`, ascending by time.  Those of one time are one change.
/// `config` is the configuration before the first.
pub(crate) fn config_changes(
    given: &[String],
    config: Config,
) -> Result<Vec<ConfigChange>, Failure> {
    let mut changes = Vec::new();
    for item in given {
        let (time, number) = item.split_once(':').ok_or_else(|| {
            let missing = if item.contains('=') { "no TIME" } else { "no KEY=VALUE" };
            Failure::Usage(format!(
                "--change: \"{item}\" has {missing}; write TIME:KEY=VALUE, such as \
                 50ms:idle_policy=pieces"
            ))
        })?;
        let at_ns = quantities::ms(time)
            .map_err(|words| Failure::Usage(format!("--change: \"{time}\": {words}")))?;
        changes.push((at_ns, number.to_string()));
    }
    changes.sort_by_key(|change| change.0);
    let mut before = config;
    let mut merged: Vec<ConfigChange> = Vec::new();
    for same_time in changes.chunk_by(|one, other| one.0 == other.0) {
        let at_ns = same_time[0].0;
        let option = format!("--change at {}", pbs_text::span(at_ns));
        let numbers = same_time.iter().map(|change| &change.1);
        before = numbers_of(&option, "--change TIME:", numbers, before)?;
        let keys = same_time.iter().filter_map(|change| change.1.split_once('='));
        let places = keys.filter_map(|(key, _)| Config::NAMES.iter().position(|name| *name == key));
        let values = before.values();
        let values = places.map(|place| (place, values[place])).collect();
        merged.push(ConfigChange { at_ns, values });
    }
    Ok(merged)
}

/// The names of thresholds in an option.
fn thresholds(value: &str) -> Vec<&str> {
    match value {
        "none" => Vec::new(),
        "all" => Threshold::ALL.map(Threshold::name).to_vec(),
        names => names.split(',').filter(|name| !name.is_empty()).collect(),
    }
}
