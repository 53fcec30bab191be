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
    // By deviation and by whether last slots are spared.
    assert_eq!(rows.len(), 4 * 2 * 7 * 4);
    for of_plans in rows.chunks(7 * 4) {
        let chosen = &of_plans[0];
        assert_eq!(chosen["idle_policy"], "latest");
        assert_eq!(chosen["preemption_way"], "capped");
        for row in of_plans {
            assert_eq!(row["deviation"], chosen["deviation"]);
            assert_eq!(row["t1_spares_last_slot"], chosen["t1_spares_last_slot"]);
            assert_eq!(
                number(chosen, "kept") + number(row, "kept_here_alone"),
                number(row, "kept") + number(row, "missed_here_alone")
            );
            // Each process may be preempted as it likes where no number is a failure.
            let way = row["preemption_way"].as_str().unwrap();
            if ["once", "every_slot"].contains(&way) {
                assert_eq!(number(row, "preemption_failures"), 0);
            }
            let most = number(row, "most_filled_ns");
            assert!(most <= number(row, "filled_ns"));
            assert!(most * number(row, "fillers") >= number(row, "filled_ns"));
        }
        // Whoever is given a slot whole leaves more of it idle.
        let capped = |policy: &str| {
            let mut rows = of_plans.iter();
            rows.find(|row| row["idle_policy"] == policy && row["preemption_way"] == "capped")
                .unwrap()
        };
        assert!(number(capped("round_robin"), "idle_ns") > number(chosen, "idle_ns"));
        assert!(number(capped("pieces"), "switches") > number(chosen, "switches"));
    }
}

/// Every line of a simple table ends within its rules.
#[test]
fn tables_are_restructured_text() {
    let ran = pbsctl(&["study", "idle", "--plans", "3", "--format", "rst"], "");
    // The first of its tables.
    let lines: Vec<_> = ran
        .stdout
        .lines()
        .take_while(|line| !line.is_empty())
        .collect();
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

/// Plans without enough memory break promises, and an order of memory keeps them.
#[test]
fn memory_is_worth_looking_at() {
    let arguments = ["--json", "study", "memory", "--plans", "6"];
    let json = pbsctl(&arguments, "").json();
    assert_eq!(json, pbsctl(&arguments, "").json());
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 7 * 5);
    for of_level in rows.chunks(5) {
        for row in of_level {
            assert_eq!(number(row, "jobs"), 6 * 8);
            assert!(number(row, "kept_kill") <= number(row, "admitted"));
            assert!(number(row, "kept_swap") <= number(row, "admitted"));
            // Of those that are admitted.
            let broken = number(row, "kept_kill") < number(row, "admitted");
            assert!(broken || number(row, "killed") == 0, "{row}");
        }
        let [blind, aware, in_order, more, both] = of_level else {
            panic!("{of_level:?}")
        };
        assert_eq!(blind["planner"], "blind");
        assert_eq!(both["planner"], "aware, both");
        // Who reserves alike admits alike.
        assert_eq!(number(aware, "admitted"), number(in_order, "admitted"));
        assert_eq!(number(more, "admitted"), number(both, "admitted"));
        assert!(number(blind, "admitted") >= number(aware, "admitted"));
        assert!(number(blind, "killed") >= number(aware, "killed"));
        assert!(number(aware, "killed") >= number(in_order, "killed"));
        assert_eq!(number(both, "killed"), 0);
        assert_eq!(number(both, "kept_kill"), number(both, "admitted"));
    }
    let (plenty, scarce) = (&rows[0], &rows[rows.len() - 5..]);
    assert_eq!(number(plenty, "kept_kill"), number(plenty, "jobs"));
    let kept = |row: &Value| number(row, "kept_kill");
    assert!(kept(&scarce[0]) < kept(&scarce[1]), "{scarce:?}");
    assert!(kept(&scarce[1]) < kept(&scarce[4]), "{scarce:?}");
}

/// A level that proves is never wrong; one that estimates may be, and the planner
/// takes nothing that is proven to have no plan.
#[test]
fn levels_are_held_against_what_is_known() {
    let arguments = ["--json", "study", "admission", "--plans", "24"];
    let json = pbsctl(&arguments, "").json();
    assert_eq!(json, pbsctl(&arguments, "").json());
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 6 * 5);
    let nets = number(&json, "nets") - number(&json, "without_plan");
    let (mut planned, mut impossible) = (0, 0);
    for row in rows {
        assert!(number(row, "planned") + number(row, "impossible") <= nets);
        let short = number(row, "deadline_percent") < 100;
        assert_eq!(number(row, "planned"), if short { 0 } else { nets });
        let wrong_no = number(row, "refused_though_planned");
        let wrong_yes = number(row, "taken_though_impossible");
        match row["judge"].as_str().unwrap() {
            "level 1" => assert_eq!((wrong_no, wrong_yes), (0, 0), "{row}"),
            "level 1, planner" => assert_eq!(wrong_yes, 0, "{row}"),
            "level 2" | "level 3" => {
                planned += wrong_no;
                impossible += wrong_yes;
            }
            other => assert_eq!(other, "levels 1 to 3"),
        }
    }
    assert!(impossible > planned, "{impossible} {planned}");
}
