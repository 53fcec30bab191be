// SPDX-License-Identifier: GPL-2.0
//! Examples in the documentation of plans are valid.

use pbs_plan::{from_toml, Config};

const TEXT: &str = include_str!("../../../Documentation/plan-format.rst");

/// The plan in the documentation is one.
#[test]
fn documented_plan_is_valid() {
    let block = TEXT.split_once(".. code-block:: toml\n").unwrap().1;
    let lines: Vec<_> =
        block.lines().take_while(|line| line.is_empty() || line.starts_with("    ")).collect();
    assert!(lines.len() > 20);
    if let Err(problems) = from_toml(&lines.join("\n")) {
        panic!("{problems:?}");
    }
}

/// Every number of the configuration has a row in the table, with its default.
#[test]
fn documented_defaults_are_the_defaults() {
    for (name, default) in Config::NAMES.into_iter().zip(Config::DEFAULT.values()) {
        let row = TEXT
            .lines()
            .find_map(|line| line.trim_start().strip_prefix(&format!("``{name}``")))
            .unwrap_or_else(|| panic!("{name} is not documented"));
        let said = row.split_whitespace().next().unwrap().trim_matches(['`', '"']);
        let expected = match name {
            "thresholds" => "all".to_owned(),
            _ if pbs_plan::config_is_flag(name) => (default != 0).to_string(),
            _ => match pbs_plan::config_word(name, default) {
                Some(word) => word.to_owned(),
                None => default.to_string(),
            },
        };
        assert_eq!(said.replace(',', ""), expected, "{name}");
    }
}
