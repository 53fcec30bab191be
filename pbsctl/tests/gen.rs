// SPDX-License-Identifier: GPL-2.0
//! `pbsctl gen` as people and scripts use it.

mod common;

use common::{pbsctl, scratch};

const SMALL: [&str; 9] = [
    "gen",
    "--tasks",
    "3..8",
    "--task-insns",
    "200_000..5_000_000",
    "--idle-insns",
    "100_000..1_000_000",
    "--processes",
    "4",
];

fn small(more: &[&str]) -> common::Ran {
    pbsctl(&[&SMALL[..], more].concat(), "")
}

#[test]
fn gen_writes_what_check_takes() {
    for scenario in [
        "normal",
        "one-over",
        "all-slightly-late",
        "long-then-short",
        "early-node",
        "endless-loop",
        "scatter-gather",
        "rogue-task",
    ] {
        let ran = small(&[scenario, "--cpu", "2", "--plan-id", "12"]);
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{scenario}");
        let json = pbsctl(&["--json", "check", "-"], &ran.stdout).json();
        assert_eq!(json["plan"]["plan_id"], 12);
        assert_eq!(json["plan"]["cpus"][0]["cpu"], 2);
        assert_eq!(json["plan"]["cpus"][0]["processes"], 4);
    }
}

/// The first line is the command that makes the plan, with nothing left to
/// defaults.
#[test]
fn the_first_line_makes_the_same_plan_again() {
    for options in [
        &["--seed", "77"][..],
        &["early-node"],
        &["--order", "turns"],
        &["rogue-task", "--runnable"],
    ] {
        let plan = small(options).stdout;
        let (first, _) = plan.split_once('\n').unwrap();
        let command = first.strip_prefix("# pbsctl ").unwrap();
        let arguments: Vec<_> = command.split(' ').collect();
        assert_eq!(pbsctl(&arguments, "").stdout, plan, "{options:?}");
        let help = pbsctl(&["gen", "-h"], "").stdout;
        for option in arguments.iter().filter(|word| word.starts_with("--")) {
            assert!(help.contains(*option), "{option}");
        }
        // All but how and where the plan is written; a switch has no value.
        let said = help.matches(" <").count() - ["device", "format", "output"].len();
        let without = usize::from(!first.contains("--deviation-permille"));
        let is_option = |word: &&&str| word.starts_with("--") && **word != "--runnable";
        let options = arguments.iter().filter(is_option);
        assert_eq!(options.count() + without, said, "{help}");
    }
}

/// The programs are told what the tasks really take, and where they wait; the slots
/// are those of the plan without programs, but for the one in which they are loaded.
#[test]
fn a_runnable_plan_has_a_program_for_each_process() {
    let toml = small(&["scatter-gather", "--runnable"]).stdout;
    let plan = pbs_plan::from_toml(&toml).unwrap();
    let bare = pbs_plan::from_toml(&small(&["scatter-gather"]).stdout).unwrap();
    assert_eq!(plan.cpus[0].slots[1..], bare.cpus[0].slots);
    let lead_in = pbs_plan::Slot::Idle { length_insns: 40_000_000, real_insns: None };
    assert_eq!(plan.cpus[0].slots[0], lead_in);
    let mut waits = 0;
    for process in &plan.processes {
        let [command] = process.commands() else {
            panic!("{process:?}");
        };
        let mut words = command.argv.iter().map(String::as_str);
        assert_eq!(words.next(), Some("pbs_retire"));
        for task in &process.tasks {
            if let Some(wait_insns) = task.wait_insns {
                assert_eq!(words.next(), Some(&*format!("wait:{wait_insns}")));
                waits += 1;
            }
            let real_insns = task.real_insns.unwrap().to_string();
            assert_eq!(words.next(), Some(&*real_insns));
        }
        assert_eq!(words.next(), None);
    }
    assert!(waits > 0);
    // A simulation needs no program.
    let simulated = pbsctl(&["sim", "-", "--json"], &toml);
    assert_eq!((simulated.status, simulated.stderr.as_str()), (0, ""));

    let ran = small(&["--runnable", "--format", "leppert"]);
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("leave out --format"), "{}", ran.stderr);
}

#[test]
fn leppert_s_grammar_comes_back_by_import() {
    let toml = small(&["--seed", "5"]).stdout;
    let log = small(&["--seed", "5", "--format", "leppert"]).stdout;
    assert_eq!(log.lines().count(), 1);
    let imported = pbsctl(&["import", "-"], &log).stdout;
    // Processes have other numbers there, and tasks, too; all lengths are the same.
    for key in ["buffer_insns = ", "planned_insns = ", "real_insns = ", "idle_insns = "] {
        let lengths = |text: &str| -> Vec<String> {
            let after = text.split(key).skip(1);
            after.map(|rest| rest.split([',', ' ', '\n']).next().unwrap().to_owned()).collect()
        };
        assert!(key == "idle_insns = " || !lengths(&toml).is_empty(), "{key}");
        assert_eq!(lengths(&imported), lengths(&toml), "{key}");
    }
    let generated = imported.as_str();

    // The simulation prints a table for people behind the plan.
    let (_, tasks) = log.trim().split_once(";;;").unwrap();
    let table = tasks.replace(',', " ").replace(';', "\n");
    let output = format!("{log}\n\n#########\n\npid - tid - len_plan - len-real\n{table}");
    let ran = pbsctl(&["import", "-"], &output);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, generated));
    let damaged = output.trim().to_owned() + "7";
    let ran = pbsctl(&["import", "-"], &damaged);
    assert_eq!(ran.status, 3);
    assert!(ran.stderr.contains("correct one of them"), "{}", ran.stderr);

    let ran = small(&["scatter-gather", "--format", "leppert"]);
    assert_eq!(ran.status, 2);
    assert!(
        ran.stderr.contains("has wait_insns, which Leppert's grammar has not; write TOML"),
        "{}",
        ran.stderr
    );
    for (options, key) in [
        (["--edge-permille", "500", "--message-permille", "0"], "after"),
        (["--edge-permille", "500", "--message-permille", "1000"], "after"),
        (["--memory-bytes", "4096..8192", "--memory-sigma-permille", "0"], "memory_bytes"),
    ] {
        let ran = small(&[&options[..], &["--format", "leppert"]].concat());
        assert_eq!(ran.status, 2, "{options:?}: {}", ran.stdout);
        let words = format!(" has {key}, which Leppert's grammar has not; write TOML");
        assert!(ran.stderr.contains(&words), "{options:?}: {}", ran.stderr);
    }
}

#[test]
fn a_name_that_promises_another_format_is_refused() {
    for (options, words) in [
        (["-o", "x.json", "--format", "toml"], "written as TOML, and not as json; name a file"),
        (["-o", "x.toml", "--format", "leppert"], "in Leppert's grammar, and not as toml; name"),
    ] {
        let ran = small(&options);
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{options:?}");
        assert!(ran.stderr.contains(words), "{options:?}: {}", ran.stderr);
        assert!(!std::path::Path::new(options[1]).exists(), "{options:?}");
    }
}

#[test]
fn json_has_parameters_and_plan() {
    let json = small(&["one-over", "--json"]).json();
    assert_eq!(json["parameters"]["scenario"], "one-over");
    assert_eq!(json["parameters"]["task_insns"]["max"], 5_000_000);
    assert_eq!(json["plan"]["cpus"][0]["processes"], 4);
    assert_eq!(json["toml"], small(&["one-over"]).stdout);

    let file = scratch("generated.toml");
    let name = file.to_str().unwrap();
    let json = small(&["one-over", "--json", "-o", name]).json();
    assert_eq!(json["written"], name);
    assert_eq!(json["toml"], serde_json::Value::Null);
    let written = std::fs::read_to_string(&file).unwrap();
    assert_eq!(written, small(&["one-over"]).stdout);
}

#[test]
fn list_explains_every_scenario() {
    let text = pbsctl(&["gen", "--list"], "").stdout;
    let json = pbsctl(&["gen", "--list", "--json"], "").json();
    let scenarios = json["scenarios"].as_array().unwrap();
    assert_eq!(scenarios.len(), 8);
    for scenario in scenarios {
        let (name, summary) = (&scenario["name"], &scenario["summary"]);
        let heading = format!("{}: {}\n", name.as_str().unwrap(), summary.as_str().unwrap());
        assert!(text.contains(&heading), "{heading}");
        let permille = &scenario["default_deviation_permille"];
        let said = format!("{heading}    {}", scenario["shows"].as_str().unwrap());
        // The same words, however the lines are broken.
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&text).contains(&words(&said)), "{said}");
        if let Some(permille) = permille.as_u64() {
            assert!(text.contains(&format!("    --deviation-permille {permille}\n")));
        }
    }
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
}

/// Number of prediction failures with a cause that were signalled when the plan of the scenario was
/// simulated.
fn signals(gen: &[&str], sim: &[&str]) -> impl Fn(&str, &str) -> u64 {
    let plan = pbsctl(&[&["gen"], gen].concat(), "");
    assert_eq!(plan.status, 0, "{}", plan.stderr);
    let ran = pbsctl(&[&["--json", "sim", "-"], sim].concat(), &plan.stdout);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let counts = ran.json()["counts"]["signals"].clone();
    move |signal, cause| counts[signal][cause].as_u64().unwrap_or(0)
}

/// The policy sees in each scenario what it is there for.
#[test]
fn scenarios_show_what_they_are_said_to_show() {
    let count = signals(&["normal"], &[]);
    for cause in ["task", "process", "node", "preemptions"] {
        assert_eq!(count("late", cause), 0, "{cause}");
    }
    let count = signals(&["one-over"], &[]);
    assert!(count("late", "task") > 80);
    assert_eq!(count("late", "process"), 1);

    let count = signals(&["all-slightly-late", "--task-sigma-permille", "0"], &[]);
    assert_eq!(count("late", "task"), 0);
    assert_eq!(count("late", "process"), 3);
    assert_eq!(count("late", "node"), 1);

    let count = signals(&["long-then-short"], &[]);
    assert_eq!(count("late", "task"), 0);
    assert!(count("late", "preemptions") > 0);

    let count = signals(&["early-node", "--task-sigma-permille", "0"], &[]);
    assert_eq!(count("early", "task"), 0);
    assert_eq!(count("early", "node"), 1);

    let count = signals(&["endless-loop", "--task-sigma-permille", "0"], &[]);
    assert_eq!(count("late", "task"), 1);
    let count = signals(&["rogue-task", "--task-sigma-permille", "0"], &[]);
    assert_eq!(count("late", "task"), 1);
}

/// Leppert 2021, 3.3.8, "Accumulating earliness".
#[test]
fn waiting_rounds_are_early_only_where_idle_time_is_not_lateness() {
    let gen = [
        "scatter-gather",
        "--task-insns",
        "50_000_000..100_000_000",
        "--idle-insns",
        "50_000_000..100_000_000",
    ];
    assert_eq!(signals(&gen, &[])("early", "node"), 1);
    let sim = ["--config", "idle_is_lateness=true"];
    assert_eq!(signals(&gen, &sim)("early", "node"), 0);
}

#[test]
fn wrong_options_are_named() {
    for (options, expected) in [
        (
            &["--task-insns", "5..3"][..],
            "pbsctl: --task-insns is 5..3; write the least first: 3..5\n",
        ),
        (
            &["--deviation-permille", "7"],
            "pbsctl: --deviation-permille has no meaning in normal; leave it out\n",
        ),
        (
            &["--message-permille", "500"],
            "--message-permille has no effect here: it needs --edge-permille of more than 0",
        ),
        (
            &["--message-sigma-permille", "500"],
            "--message-sigma-permille has no effect here: it needs --message-permille of more",
        ),
        (
            &["--memory-sigma-permille", "500"],
            "--memory-sigma-permille has no effect here: it needs --memory-bytes of more than 0",
        ),
        (
            &["--idle-permille", "0", "--idle-insns", "1..2"],
            "--idle-insns has no effect here: it needs --idle-permille of more than 0",
        ),
        (&["--tasks", "many"], "\"many\" is no whole number; write MIN..MAX, as 20_000..3_000_000"),
        (&["one-ovr"], "a similar value exists: 'one-over'"),
    ] {
        let ran = pbsctl(&[&["gen"], options].concat(), "");
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{options:?}");
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    }
    let ran = pbsctl(&["gen", "--processes", "0", "--json"], "");
    assert_eq!(ran.status, 2);
    assert_eq!(ran.json()["error"], "--processes is 0; it must be between 1 and 1_024");
}
