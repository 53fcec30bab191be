// SPDX-License-Identifier: GPL-2.0
//! Numbers of the policy on the command line: `--config KEY=VALUE`.

use std::collections::HashSet;

use pbs_plan::{config_faults, config_from_toml, config_words, Config, Threshold};
use pbs_text::{between, underscored};

use crate::failure::Failure;

/// `base` with the numbers that `--config KEY=VALUE` has on the command line.
pub(crate) fn with_numbers(given_numbers: &[String], base: Config) -> Result<Config, Failure> {
    let failed = |words: &str| Failure::Usage(format!("--config: {words}"));
    let mut toml = String::new();
    let mut given = HashSet::new();
    for item in given_numbers {
        let (key, value) = item
            .split_once('=')
            .ok_or_else(|| failed(&format!("\"{item}\" has no \"=\"; write KEY=VALUE")))?;
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
                     add --config {name}={}",
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

/// The names of thresholds in an option.
fn thresholds(value: &str) -> Vec<&str> {
    match value {
        "none" => Vec::new(),
        "all" => Threshold::ALL.map(Threshold::name).to_vec(),
        names => names.split(',').filter(|name| !name.is_empty()).collect(),
    }
}
