// SPDX-License-Identifier: GPL-2.0
//! `pbsctl study`: the numbers belong together.

mod common;

use common::pbsctl;
use serde_json::Value;

fn number(row: &Value, field: &str) -> u64 {
    row[field]
        .as_u64()
        .unwrap_or_else(|| panic!("{field} in {row}"))
}

#[test]
fn deadlines_add_up() {
    let arguments = ["study", "deadlines", "--plans", "21", "--seed", "3"];
    let json = pbsctl(&[&["--json"], &arguments[..]].concat(), "").json();
    let rows = json["rows"].as_array().unwrap();
    let cases = json["cases"].as_array().unwrap();
    assert_eq!(rows.len(), 4 * 12);
    for row in rows {
        let off = rows
            .iter()
            .find(|off| off["setup"] == "off" && off["deviation"] == row["deviation"])
            .unwrap();
        let because = number(row, "because");
        assert_eq!(
            number(row, "kept"),
            number(off, "kept") + number(row, "saved") - because
        );
        assert_eq!(number(row, "processes"), number(off, "processes"));
        let missed = number(row, "processes") - number(row, "kept");
        assert_eq!(missed == 0, number(row, "tardiness_ns") == 0);
        let listed = cases
            .iter()
            .filter(|case| case["setup"] == row["setup"] && case["deviation"] == row["deviation"]);
        assert_eq!(listed.count() as u64, because);
        // What is off does nothing.
        let has_t1 = !["off", "no t1"].contains(&row["setup"].as_str().unwrap());
        assert!(has_t1 || number(row, "preemptions") == 0);
        if ["off", "t1"].contains(&row["setup"].as_str().unwrap()) {
            assert_eq!(number(row, "failures") + number(row, "answers"), 0);
        }
    }
    assert!(!cases.is_empty());
    for case in cases {
        let deadline_ns = number(case, "deadline_ns");
        assert!(number(case, "ended_off_ns") <= deadline_ns);
        assert!(case["ended_ns"]
            .as_u64()
            .is_none_or(|ended_ns| ended_ns > deadline_ns));
        let avoided_by = case["avoided_by"].as_array().unwrap();
        assert!(!avoided_by.contains(&case["setup"]));
    }
    // The same again, whoever runs it.
    let again = pbsctl(&[&["--json"], &arguments[..]].concat(), "").json();
    assert_eq!(json, again);
    // The first plans of more plans are the same.
    let fewer = pbsctl(
        &[
            "--json",
            "study",
            "deadlines",
            "--plans",
            "7",
            "--seed",
            "3",
        ],
        "",
    );
    for case in fewer.json()["cases"].as_array().unwrap() {
        assert!(cases.contains(case), "{case}");
    }
}

#[test]
fn idle_policies_are_compared() {
    let json = pbsctl(&["--json", "study", "idle", "--plans", "21"], "").json();
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4 * 2);
    for pair in rows.chunks(2) {
        let [latest, least_slack] = pair else {
            panic!("{pair:?}")
        };
        assert_eq!(latest["idle_policy"], "latest");
        assert_eq!(least_slack["idle_policy"], "least_slack");
        assert_eq!(
            number(latest, "kept") + number(least_slack, "kept_here_alone"),
            number(least_slack, "kept") + number(latest, "kept_here_alone")
        );
    }
}

/// Every line of a simple table ends within its rules.
#[test]
fn tables_are_restructured_text() {
    let ran = pbsctl(&["study", "idle", "--plans", "3", "--format", "rst"], "");
    let lines: Vec<_> = ran.stdout.lines().collect();
    let rule = lines[0];
    assert!(rule.chars().all(|c| c == '=' || c == ' ') && rule.starts_with('='));
    assert_eq!((lines[2], lines[lines.len() - 1]), (rule, rule));
    let gaps: Vec<_> = rule.match_indices(' ').map(|(at, _)| at).collect();
    for line in &lines[1..lines.len() - 1] {
        let cells: Vec<char> = line.chars().collect();
        assert!(cells.len() <= rule.len());
        assert!(line == &rule || cells[0] != ' ');
        let blank = |&&at: &&usize| cells.get(at).is_none_or(|&c| c == ' ');
        assert_eq!(gaps.iter().filter(blank).count(), gaps.len(), "{line}");
    }
}

#[test]
fn wrong_numbers_are_refused() {
    assert_eq!(pbsctl(&["study", "idle", "--plans", "0"], "").status, 2);
    assert_eq!(pbsctl(&["study", "deadline"], "").status, 2);
}
