// SPDX-License-Identifier: GPL-2.0
//! `pbsctl study`: the numbers belong together.

mod common;

use common::pbsctl;
use serde_json::Value;

fn number(row: &Value, field: &str) -> u64 {
    row[field].as_u64().unwrap_or_else(|| panic!("{field} in {row}"))
}

#[test]
fn deadlines_add_up() {
    let arguments = ["study", "deadlines", "--plans", "21", "--seed", "3"];
    let json = pbsctl(&[&["--json"], &arguments[..]].concat(), "").json();
    let rows = json["rows"].as_array().unwrap();
    let cases = json["cases"].as_array().unwrap();
    assert_eq!(rows.len(), 6 * 12);
    for row in rows {
        let off = rows
            .iter()
            .find(|off| off["setup"] == "off" && off["deviation"] == row["deviation"])
            .unwrap();
        let because = number(row, "because");
        assert_eq!(number(row, "kept"), number(off, "kept") + number(row, "saved") - because);
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
        assert!(case["ended_ns"].as_u64().is_none_or(|ended_ns| ended_ns > deadline_ns));
        let avoided_by = case["avoided_by"].as_array().unwrap();
        assert!(!avoided_by.contains(&case["setup"]));
    }
    // The same again, whoever runs it.
    let again = pbsctl(&[&["--json"], &arguments[..]].concat(), "").json();
    assert_eq!(json, again);
    // The first plans of more plans are the same.
    let fewer = pbsctl(&["--json", "study", "deadlines", "--plans", "7", "--seed", "3"], "");
    for case in fewer.json()["cases"].as_array().unwrap() {
        assert!(cases.contains(case), "{case}");
    }
}

#[test]
fn idle_policies_are_compared() {
    let json = pbsctl(&["--json", "study", "idle", "--plans", "12"], "").json();
    let rows = json["rows"].as_array().unwrap();
    // By deviation and by whether last slots are spared.
    let policies = pbs_plan::IdlePolicy::ALL.len();
    assert_eq!(rows.len(), 4 * 2 * policies * 4);
    for of_plans in rows.chunks(policies * 4) {
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
    }
    let sum = |policy: &str, key: &str| -> u64 {
        let rows = rows.iter().filter(|row| row["idle_policy"] == policy);
        rows.map(|row| number(row, key)).sum()
    };
    // Who is given a slot whole leaves more of it idle; pieces cost switches.
    assert!(sum("round_robin", "idle_ns") > sum("latest", "idle_ns"));
    assert!(sum("pieces", "switches") > sum("latest", "switches"));
}

/// Rows of `study compare`, by scheduler.
fn compared<'a>(json: &'a Value, scheduler: &str) -> Vec<&'a Value> {
    let rows = json["rows"].as_array().unwrap().iter();
    rows.filter(|row| row["scheduler"] == scheduler).collect()
}

#[test]
fn plans_are_compared_with_other_schedulers() {
    let arguments = ["--json", "study", "compare", "--plans", "12", "--load", "70,100"];
    let json = pbsctl(&arguments, "").json();
    let percent = |row: &Value, field: &str| row[field].as_f64().unwrap();
    // By load and number of rogues.
    for (place, plan) in compared(&json, "plan").into_iter().enumerate() {
        let admitted = number(plan, "accepted");
        assert_eq!(number(plan, "jobs"), 12 * (20 - number(plan, "rogues")));
        for scheduler in ["edf-admitted", "edf-windows", "eevdf-admitted", "optimum-admitted"] {
            assert_eq!(number(compared(&json, scheduler)[place], "accepted"), admitted);
        }
        for (best, others) in [
            ("optimum-admitted", &["plan", "edf-admitted", "eevdf-admitted"][..]),
            ("optimum-all", &["edf-all", "eevdf-all", "deadline", "deadline-padded"]),
        ] {
            let most = number(compared(&json, best)[place], "kept");
            for other in others {
                assert!(number(compared(&json, other)[place], "kept") <= most, "{other}");
            }
        }
        for row in ["edf-all", "eevdf-all", "optimum-all"] {
            assert_eq!(percent(compared(&json, row)[place], "accepted_percent"), 100.0);
        }
    }
    assert_eq!(json, pbsctl(&arguments, "").json());
}

/// Options that a study does not read are refused with what they need.
#[test]
fn options_without_effect_are_refused() {
    for (options, told) in [
        (&["arrays", "--plans", "5"][..], "--plans has no effect here: it needs a study of plans"),
        (&["arrays", "--seed", "5"], "--seed has no effect here: it needs a study with random"),
        (&["evolving", "--plans", "5"], "--plans has no effect here: it needs a study of plans"),
        (&["evolving", "--figure", "3", "--node-memory", "5"], "it needs figure 4"),
        (&["compare", "--rogues", "0", "--rogue-factor", "5"], "it needs --rogues of more than 0"),
        (&["deadlines", "--format", "rst", "--json"], "--format has no effect here"),
        (&["deadlines", "--plans", "0"], "invalid value '0' for '--plans <N>'"),
        (&["compare", "--plans", "1", "--svg", "out.svg"], "name a directory, such as out\n"),
        (&["evolving", "--figure", "3", "--svg", "out.png"], "name a directory, such as out\n"),
    ] {
        let ran = pbsctl(&[&["study"], options].concat(), "");
        assert_eq!(ran.status, 2, "{options:?}: {}", ran.stdout);
        assert!(ran.stderr.contains(told), "{options:?}: {}", ran.stderr);
    }
}

/// In unallocated time nobody of the plan runs, therefore a normal task waits no longer than
/// the execution time of a window.
#[test]
fn windows_bound_the_wait_of_a_normal_task() {
    let longest = |window: &str| {
        let arguments = ["--json", "study", "compare", "--plans", "12", "--window", window];
        let json = pbsctl(&arguments, "").json();
        let rows = [compared(&json, "plan"), compared(&json, "edf-windows")].concat();
        rows.iter().map(|row| row["longest_run_ms"].as_f64().unwrap()).fold(0.0, f64::max)
    };
    assert!(longest("100:5") > 80.0 && longest("100:5") <= 95.0);
    assert_eq!(longest("20:1"), 19.0);
}

#[test]
fn a_sweep_says_which_bars_are_reached() {
    let arguments = ["study", "compare", "--sweep", "--plans", "2"];
    let json = pbsctl(&[&["--json"], &arguments[..]].concat(), "").json();
    let bars = json["bars"].as_array().unwrap();
    assert_eq!(compared(&json, "plan").len(), 4 * 4 * 4 * 2);
    for bar in bars {
        let is_reached = bar["is_reached"].as_bool().unwrap();
        assert_eq!(is_reached, number(bar, "missed") == 0, "{bar}");
        assert_eq!(is_reached, bar["worst_margin"].as_f64().unwrap() >= -1e-9, "{bar}");
    }
    assert!(bars.iter().any(|bar| bar["cells"] == 96));
    let text = pbsctl(&arguments, "").stdout;
    assert!(text.contains("Worst cell") && text.contains("kept, EEVDF of the same jobs"), "{text}");
    assert_eq!(pbsctl(&[&arguments[..], &["--load", "70"]].concat(), "").status, 2);
}

/// The table of Documentation/simulation.rst is what the command prints.
#[test]
fn the_page_of_simulations_has_the_table_of_schedulers() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../Documentation/simulation.rst");
    let page = std::fs::read_to_string(page).unwrap();
    let ran = pbsctl(&["study", "compare", "--use-unallocated", "--format", "rst"], "");
    assert!(page.contains(ran.stdout.trim_end()), "the page has other numbers:\n{}", ran.stdout);
}

#[test]
fn the_configuration_of_compared_plans_is_checked() {
    let refused = |option: &str, value: &str| {
        let ran = pbsctl(&["study", "compare", "--plans", "1", option, value], "");
        assert_eq!(ran.status, 2, "{option} {value}");
        ran.stderr
    };
    assert!(refused("--config", "sigma_t1_permille=5").contains("sigma_t1_permille"));
    assert!(refused("--config", "no_such_number=5").contains("no_such_number"));
    assert!(refused("--window", "20").contains("PERIOD:UNALLOCATED"));
    assert!(refused("--window", "20:20").contains("--window: window_unallocated_ns is 20_000_000"));
    assert!(refused("--scheduler", "lottery").contains("edf-admitted"));
    assert!(refused("--shape", "round").contains("skewed"));
}

/// Every line of a simple table ends within its rules.
#[test]
fn tables_are_restructured_text() {
    let ran = pbsctl(&["study", "idle", "--plans", "3", "--format", "rst"], "");
    // The first of its tables.
    let lines: Vec<_> = ran.stdout.lines().take_while(|line| !line.is_empty()).collect();
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
    assert_eq!(rows.len(), 7 * 6);
    for of_level in rows.chunks(6) {
        for row in of_level {
            assert_eq!(number(row, "jobs"), 6 * 8);
            assert!(number(row, "kept_kill") <= number(row, "admitted"));
            assert!(number(row, "kept_swap") <= number(row, "admitted"));
            // Of those that are admitted.
            let broken = number(row, "kept_kill") < number(row, "admitted");
            assert!(broken || number(row, "killed") == 0, "{row}");
        }
        let [blind, aware, in_order, more, both, by_deadline] = of_level else {
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
        assert_eq!(by_deadline["planner"], "aware, by deadline");
        assert_eq!(number(by_deadline, "killed"), 0);
        assert_eq!(number(by_deadline, "kept_kill"), number(by_deadline, "admitted"));
    }
    let (plenty, scarce) = (&rows[0], &rows[rows.len() - 6..]);
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

/// A threshold that is off does nothing. Without thresholds there are no signals, and without
/// signals no answers.
#[test]
fn thresholds_are_taken_away_one_by_one() {
    let arguments = ["--json", "study", "ablation", "--plans", "14"];
    let json = pbsctl(&arguments, "").json();
    assert_eq!(json, pbsctl(&arguments, "").json());
    let rows = json["rows"].as_array().unwrap();
    // Nothing off, nine thresholds, everything; then eight variants.
    assert_eq!(rows.len(), 4 * 2 * 19);
    for of in rows.chunks(19) {
        let all = &of[0];
        assert_eq!(all["off"], "nothing");
        assert_eq!(of[10]["off"], "everything");
        for row in of {
            assert_eq!(
                number(row, "kept") + number(row, "lost"),
                number(all, "kept") + number(row, "gained"),
                "{row}"
            );
            let is_answered = row["answers"].as_bool().unwrap();
            assert!(is_answered || number(row, "replans") == 0, "{row}");
            assert!(number(row, "replans") <= number(row, "signals"), "{row}");
            match row["off"].as_str().unwrap() {
                "t1" => assert_eq!(number(row, "preemptions"), 0),
                "info" => assert_eq!(number(row, "info"), 0),
                "everything" => assert_eq!(number(row, "signals") + number(row, "info"), 0),
                _ => {}
            }
        }
        let off = |name: &str| of.iter().find(|row| row["off"] == name).unwrap();
        let without = number(off("t2_process"), "signals");
        assert!(without <= number(all, "signals"), "{all}");
    }
    let signals = rows.iter().map(|row| number(row, "signals"));
    assert!(signals.sum::<u64>() > 0);
}

fn real(row: &Value, field: &str) -> f64 {
    row[field].as_f64().unwrap_or_else(|| panic!("{field} in {row}"))
}

/// Independent deviations average out, and common ones do not; a list is tested.
#[test]
fn deviations_average_out_if_they_are_independent() {
    let directory = common::scratch("study-deviations");
    std::fs::create_dir_all(&directory).unwrap();
    let list = directory.join("ratios");
    let pictures = directory.join("pictures");
    // Half of the tasks are as planned, half take twice as long: not normal.
    let ratios = "1.0 # as planned\n2\n\n".repeat(300);
    std::fs::write(&list, format!("# retired / planned\n{ratios}")).unwrap();
    let arguments = [
        "--json",
        "study",
        "deviations",
        "--plans",
        "50",
        "--measured",
        list.to_str().unwrap(),
        "--svg",
        pictures.to_str().unwrap(),
    ];
    let json = pbsctl(&arguments, "").json();
    assert_eq!(json, pbsctl(&arguments, "").json());
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3 * 7 + 1);
    for row in rows {
        let lengths = row["lengths"].as_array().unwrap();
        let growth = real(row, "growth_exponent");
        let over = |place: usize| number(&lengths[place], "over_buffer");
        match row["shape"].as_str().unwrap() {
            "common" => {
                assert!(growth > 0.9, "{row}");
                assert_eq!(over(0), over(6), "{row}");
            }
            shape => {
                assert!((0.4..0.6).contains(&growth), "{row}");
                // Those of the list are late by half as much as is planned, whatever
                // their number.
                assert!(shape == "measured" || over(6) == 0, "{row}");
            }
        }
        if row["shape"] == "normal" {
            assert!((real(row, "late_share") - 0.5).abs() < 0.01, "{row}");
        }
    }
    let of_list = &json["measured"];
    assert_eq!(number(of_list, "values"), 600);
    assert_eq!((real(of_list, "mean"), real(of_list, "sigma")), (1.5, 0.5));
    assert_eq!(of_list["holds"], false);
    let figure = &json["figure9"];
    let counts = figure["counts"].as_array().unwrap();
    assert_eq!(counts.len(), 1000);
    let sum: u64 = counts.iter().filter_map(Value::as_u64).sum();
    assert_eq!(sum + number(figure, "outside"), number(figure, "tasks"));
    let picture = std::fs::read_to_string(pictures.join("figure9.svg")).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("1,000 bins"));

    for (text, wrong) in [("1.0\nmuch\n", ":2: \"much\""), ("1\n", "fewer than two")] {
        std::fs::write(&list, text).unwrap();
        let ran = pbsctl(&arguments, "");
        assert_eq!(ran.status, 2);
        assert!(ran.stderr.contains(wrong), "{}", ran.stderr);
    }
}

/// A tick is late by up to its length, a timer by its delay, and the ideal by nothing.
#[test]
fn finer_looks_are_more_precise_and_ticks_cost() {
    let arguments = ["--json", "study", "resolution", "--plans", "30"];
    let json = pbsctl(&arguments, "").json();
    assert_eq!(json, pbsctl(&arguments, "").json());
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 4);
    for of in rows.chunks(4) {
        let [slow, fast, timer, ideal] = of else { panic!("{of:?}") };
        let most = |row| number(row, "overshoot_max_insns");
        // At 10^9 instructions a second; a look and a switch pass within a tick.
        assert!((1..4_000_000).contains(&most(slow)), "{slow}");
        assert!((1..1_000_000).contains(&most(fast)), "{fast}");
        assert_eq!(most(timer), number(&json, "timer_delay_insns"));
        assert_eq!(most(ideal), 0);
        assert_eq!(number(slow, "interrupts_per_s"), 250);
        assert_eq!(number(fast, "interrupts_per_s"), 1000);
        assert!(number(slow, "looks_per_s") <= 250, "{slow}");
        assert!(number(slow, "cost_ppm") < number(fast, "cost_ppm"));
        assert!(number(timer, "cost_ppm") < number(fast, "cost_ppm"));
    }
}

/// One job scheduler serves one node after the other, and stress has fewer signals sent.
#[test]
fn nodes_wait_for_their_job_scheduler() {
    let arguments = ["--json", "study", "stress", "--plans", "2"];
    let json = pbsctl(&arguments, "").json();
    assert_eq!(json, pbsctl(&arguments, "").json());
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3 * 4 * 3 * 6);
    let mut fewer = 0;
    for of in rows.chunks(6) {
        let [off, _, tenfold, ..] = of else { panic!("{of:?}") };
        assert_eq!((&off["stress"], &tenfold["stress"]), (&"off".into(), &"tenfold".into()));
        assert_eq!(number(off, "because") + number(off, "saved"), 0);
        for row in of {
            assert_eq!(
                number(row, "kept") + number(row, "because"),
                number(off, "kept") + number(row, "saved"),
                "{row}"
            );
            let answered = number(row, "replans") > 0;
            assert!(!answered || number(row, "response_mean_ns") >= number(row, "answer_ns"));
            assert!(number(row, "of_sums") <= number(row, "signals"));
            // It does one thing at a time.
            assert!(real(row, "load_percent") <= 100.0, "{row}");
        }
        fewer += i32::from(number(tenfold, "of_sums") < number(off, "of_sums"));
    }
    assert!(fewer > 18, "{fewer}");
    let response = |nodes: u64| {
        let row = rows.iter().find(|row| {
            row["jobs"] == "changed"
                && row["stress"] == "off"
                && number(row, "nodes") == nodes
                && number(row, "answer_ns") == 500_000_000
        });
        number(row.unwrap(), "response_mean_ns")
    };
    assert!(response(16) > response(1));
}

/// No plan ends before its bound, nor before the best; what fits with a part of the
/// memory for each core fits without parts.
#[test]
fn strategies_are_held_against_the_best() {
    let arguments = ["--json", "study", "strategies", "--plans", "8"];
    let json = pbsctl(&arguments, "").json();
    assert_eq!(json, pbsctl(&arguments, "").json());
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 8);
    for row in rows {
        assert!(number(row, "best") <= number(row, "planned"), "{row}");
        assert!(number(row, "optimal") <= number(row, "proven"), "{row}");
        assert!(real(row, "over_mean_percent") <= real(row, "over_max_percent"));
        let accepted = row["accepted"].as_array().unwrap();
        let accepted: Vec<_> = accepted.iter().filter_map(Value::as_u64).collect();
        assert!(accepted.is_sorted() && accepted[2] <= number(row, "planned"));
    }
    for of in rows.chunks(8) {
        let long = &of[7];
        assert_eq!(long["planner"], "long search");
        assert_eq!(number(long, "optimal"), number(long, "proven"));
        // The rules together are no worse than one of them.
        assert!(of[..4].iter().all(|rule| number(rule, "best") <= number(&of[5], "best")));
    }
    let balancing = &json["balancing"];
    let (of_static, of_dynamic) =
        (number(balancing, "planned_static"), number(balancing, "planned_dynamic"));
    assert!(of_static <= of_dynamic, "{balancing}");
    assert_eq!(of_static, number(&rows[6], "planned"));
}

#[test]
fn arrays_are_measured() {
    let json = pbsctl(&["--json", "study", "arrays"], "").json();
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 5);
    for row in rows {
        assert!(real(row, "core_ns") > 0.0 && real(row, "array_ns") > 0.0, "{row}");
    }
}
