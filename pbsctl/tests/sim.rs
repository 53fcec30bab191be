// SPDX-License-Identifier: GPL-2.0
//! `pbsctl sim` as people and scripts use it.

mod common;

use common::{pbsctl, pbsctl_of_bytes, scratch, LATE};
use pbs_report::Recording;

const LINE: &str = "1;0,9000000;;;0,4,1200000,1150000;-1,-1,300000,310000;\n";

#[test]
fn sim_tells_what_became_of_the_plan() {
    let ran = pbsctl(&["sim", "-"], LATE);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    let words: Vec<_> = ran.stdout.split_whitespace().collect();
    let said = words.join(" ");
    for part in [
        "far 0 0 50,000,000 150,000,000 150,000,000",
        "2 0 0 20,000,000 20,000,000 20,000,000 0 72.500",
        "far MISSED 0 185.000",
        "2 kept 0 72.500",
        "CPU 0: all processes ended after 185.000 ms",
    ] {
        assert!(said.contains(part), "{part} is not in {}", ran.stdout);
    }
    assert!(!said.contains("cpu0"), "{}", ran.stdout);
    let ran = pbsctl(&["sim", "-", "--events"], LATE);
    assert!(ran.stdout.contains("cpu0"), "{}", ran.stdout);
}

/// The sample of a net, in which a task takes longer than planned.
#[test]
fn sim_tells_who_waited() {
    let net = include_str!("../../samples/plans/net.toml");
    let late = net
        .replace("planned_insns = 6_900_000", "planned_insns = 6_900_000, real_insns = 9_000_000");
    assert_ne!(net, late);
    let ran = pbsctl(&["sim", "-"], &late);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    let words: Vec<_> = ran.stdout.split_whitespace().collect();
    let said = words.join(" ");
    assert!(
        said.contains("WAITING PROCESS TASK WAITED FOR TASK WAITED ms sort 0 stages 0 sieve"),
        "{}",
        ran.stdout
    );
    assert!(!pbsctl(&["sim", "-"], LATE).stdout.contains("WAITING PROCESS"));
}

/// A plan whose slots float also runs in unallocated time, and is faster than planned for it.
#[test]
fn sim_tells_of_unallocated_time_that_the_plan_uses() {
    let said = |config| pbsctl(&["sim", "-", "--config", config], LATE).stdout;
    let floating = said("dispatch=deadline");
    let told = "CPU 0: 5.000 ms of the running time are unallocated; slots float there";
    assert!(floating.contains(told), "{floating}");
    assert!(floating.contains(", unallocated 0.000\n"), "{floating}");
    let thesis = said("dispatch=thesis");
    assert!(!thesis.contains("are unallocated"), "{thesis}");
    assert!(thesis.contains(", unallocated 5.000\n"), "{thesis}");
}

#[test]
fn json_is_a_recording_with_more() {
    let ran = pbsctl(&["--json", "sim", "-", "--scheduler", "stretch"], LATE);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let opened = Recording::from_json(&ran.stdout).unwrap().open().unwrap();
    let json = ran.json();
    assert_eq!(json["source"], "simulation");
    assert_eq!(json["tasks"][0]["retired_insns"], 150_000_000);
    assert_eq!(json["processes"][0]["kept"], false);
    let late = json["counts"]["signals"]["late"]["process"].as_u64().unwrap();
    assert!(late > 0);
    let replans = json["replans"].as_array().unwrap();
    assert_eq!(opened.plans.len(), 1 + replans.len());
    assert_eq!(opened.plans[1].plan_id, 8);
    assert!(opened.plans[1].dealt_seq > 0);
}

#[test]
fn sim_reads_both_formats() {
    let ran = pbsctl(&["sim", "-", "--json"], LINE);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(ran.json()["tasks"][0]["real_insns"], 1_150_000);
    let ran = pbsctl(&["sim", "-"], "1;0,9000000;;;nonsense");
    assert_eq!(ran.status, 3);
    assert!(ran.stderr.starts_with("standard input:1: "), "{}", ran.stderr);
}

/// A change is made at its time, on the plan in force, and takes nothing away from its tasks.
#[test]
fn configuration_changes_while_a_plan_is_in_force() {
    let sim = |changes: &[&str]| {
        let mut arguments = vec!["sim", "-", "--json"];
        changes.iter().for_each(|change| arguments.extend(["--change", change]));
        let ran = pbsctl(&arguments, LATE);
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        ran.json()
    };
    let of_kind = |json: &serde_json::Value, kind: &str| -> Vec<serde_json::Value> {
        let events = json["events"].as_array().unwrap().iter();
        events.filter(|event| event["kind"] == kind).cloned().collect()
    };
    let unchanged = sim(&[]);
    assert!(!of_kind(&unchanged, "late").is_empty());
    // The configuration of the plan, and not the default.
    assert_eq!(unchanged["config"]["no_preemption_ns"], 10_000);
    let changed = sim(&["10ms:max_preemptions=9", "80:thresholds=all", "10ms:thresholds=t1"]);
    let told = of_kind(&changed, "configured");
    let told: Vec<_> = told.iter().map(|event| (&event["time_ns"], &event["value"])).collect();
    assert_eq!(told, [(&10_000_000.into(), &2.into()), (&80_000_000.into(), &1.into())]);
    // Without its threshold, no task is late; with it again, it is.
    assert!(!of_kind(&changed, "late").is_empty());
    let silent = sim(&["10ms:thresholds=t1"]);
    assert!(of_kind(&silent, "late").is_empty());
    assert_eq!(silent["tasks"], unchanged["tasks"]);
    assert_eq!(of_kind(&changed, "plan_installed").len(), 1);
    assert_eq!(changed["tasks"], unchanged["tasks"]);
    // Values as they are already are no change.
    let same = sim(&["10ms:max_preemptions=5"]);
    assert_eq!(same["events"], unchanged["events"]);
    for (wrong, status, words) in [
        ("10ms", 2, "\"10ms\" has no KEY=VALUE; write TIME:KEY=VALUE"),
        ("idle_policy=pieces", 2, "has no TIME; write TIME:KEY=VALUE"),
        ("soon:idle_policy=pieces", 2, "\"soon\""),
        ("5ms:idle_policy=loudest", 2, "latest"),
        ("5ms:sigma_t1_permille=1600", 2, "add --change TIME:sigma_t2_permille=1_601"),
        ("5ms:dispatch=deadline", 1, "only another plan can change"),
    ] {
        let ran = pbsctl(&["sim", "-", "--change", wrong], LATE);
        assert_eq!(ran.status, status, "{wrong}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
}

/// Options that a simulation does not read are refused, and so is a change after its end.
#[test]
fn options_without_effect_are_refused() {
    for (options, told) in [
        (&["--max-answers", "5"][..], "--max-answers has no effect here: it needs --scheduler"),
        (&["--shared-answer", "5"], "--shared-answer has no effect here: it needs --scheduler"),
        (
            &["--change", "50ms:idle_policy=pieces", "--change", "1s:idle_policy=latest"],
            "--change: the simulation ends after 185 ms, before 1 s; write an earlier time",
        ),
    ] {
        let ran = pbsctl(&[&["sim", "-"], options].concat(), LATE);
        assert_eq!(ran.status, 2, "{options:?}: {}", ran.stdout);
        assert!(ran.stderr.contains(told), "{options:?}: {}", ran.stderr);
    }
    // Who stops a simulation earlier, or compares all schedulers, leaves the others as they are.
    for options in [
        &["--change", "1s:idle_policy=latest", "--until", "10"][..],
        &["--scheduler", "none", "--max-answers", "5"],
    ] {
        let ran = pbsctl(&[&["sim", "-"], options].concat(), LATE);
        assert_eq!(ran.status, 0, "{options:?}: {}", ran.stderr);
    }
}

#[test]
fn the_command_line_overrides_the_plan() {
    let (head, tail) = LATE.split_once("[config]").unwrap();
    let (_, tail) = tail.split_once("[[process]]").unwrap();
    let without = format!("{head}[[process]]{tail}");
    for plan in [LATE, without.as_str()] {
        let options = ["--config", "thresholds=t1,info", "--config", "max_preemptions=9"];
        let mut arguments = vec!["sim", "-", "--json", "--config", "idle_policy=least_slack"];
        arguments.extend(options);
        let json = pbsctl(&arguments, plan).json();
        assert!(json["counts"]["signals"]["late"].is_null());
        let toml = json["plans"][0]["toml"].as_str().unwrap();
        assert_eq!(plan == LATE, toml.contains("max_preemptions = 9"), "{toml}");
        assert_eq!(json["config"]["max_preemptions"], 9);
        assert_eq!(json["config"]["idle_policy"], 1);
    }
    for (wrong, words) in [
        ("max_preemptions", "write KEY=VALUE"),
        ("max_preemptions=0", "max_preemptions is 0; it must be between 1 and 1_000_000"),
        ("nonsense=1", "nonsense"),
        ("idle_policy=loudest", "latest"),
        ("thresholds=t1,non", "there is no threshold non"),
        ("sigma_t1_permille=1.05", "thousandths: write 1_050"),
        (
            "sigma_t1_permille=1600",
            "sigma_t2_permille is 1_500, but with the other numbers it must be \
             between 1_601 and 100_000, as t1 must be less than t2_task; \
             add --config sigma_t2_permille=1_601",
        ),
    ] {
        let ran = pbsctl(&["sim", "-", "--config", wrong], LATE);
        assert_eq!(ran.status, 2, "{wrong}");
        assert!(ran.stderr.starts_with("pbsctl: --config: "), "{}", ran.stderr);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
}

#[test]
fn thresholds_can_be_named_together() {
    let signals = |thresholds: &str| {
        let option = format!("thresholds={thresholds}");
        let ran = pbsctl(&["sim", "-", "--json", "--config", &option], LATE);
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        ran.json()["counts"]["signals"].clone()
    };
    assert_eq!(signals("none"), serde_json::json!({}));
    assert_eq!(signals(""), serde_json::json!({}));
    assert_eq!(signals("all")["late"]["task"], 1);
}

/// `count` tasks, the first of which is late.
fn many(count: usize) -> String {
    let more = "5_000_000, ".repeat(count - 1);
    let slots = "1, ".repeat(count);
    format!(
        "[[process]]\nid = 1\ntasks = [{{ name = \"first\", planned_insns = 50_000_000, \
         real_insns = 150_000_000 }}, {more}]\n[[cpu]]\ncpu = 0\nslots = [{slots}]\n"
    )
}

#[test]
fn many_tasks_are_listed_when_asked_for() {
    let row = "1 39 0 5,000,000 5,000,000 5,000,000";
    for (count, options, listed) in [
        (40, &["sim", "-"][..], true),
        (41, &["sim", "-"], false),
        (41, &["sim", "-", "--tasks"], true),
    ] {
        let text = pbsctl(options, &many(count)).stdout;
        let words: Vec<_> = text.split_whitespace().collect();
        assert_eq!(words.join(" ").contains(row), listed, "{text}");
        assert_eq!(text.contains("41 tasks; --tasks lists them."), !listed);
        assert!(text.contains("retired > t2_task 75,000,000"), "{text}");
        assert!(text.contains("0 first"), "{text}");
    }
}

#[test]
fn slots_that_reach_t1_are_counted_by_whose_fault_it_was() {
    // The late task is moved into the slot of the short one, which so is pushed.
    let plan = "[[process]]
id = 1
tasks = [{ planned_insns = 50_000_000, real_insns = 70_000_000 }, 20_000_000, 50_000_000]
[[cpu]]
cpu = 0
slots = [1, 1, 1]
";
    let json = pbsctl(&["sim", "-", "--json"], plan).json();
    let kinds = &json["counts"]["kinds"];
    let preempted = json["events"].as_array().unwrap().iter();
    let (over, pushed): (Vec<_>, Vec<_>) = preempted
        .filter(|event| event["kind"] == "preempted")
        .partition(|event| event["retired_insns"].as_u64() > event["planned_insns"].as_u64());
    assert!(!over.is_empty() && !pushed.is_empty(), "{kinds}");
    assert_eq!(kinds["preempted"], over.len());
    assert_eq!(kinds["pushed"], pushed.len());
}

#[test]
fn no_more_is_answered_than_is_allowed() {
    let options = ["sim", "-", "--scheduler", "stretch", "--max-answers", "1"];
    let ran = pbsctl(&options, LATE);
    assert!(ran.stdout.contains(" not answered, since --max-answers is 1\n"), "{}", ran.stdout);
    let json = pbsctl(&[&["--json"], &options[..]].concat(), LATE).json();
    assert_eq!(json["replans"].as_array().unwrap().len(), 1);
    assert_eq!(json["cpus"][0]["answers"], 1);
    assert!(json["cpus"][0]["unanswered"].as_u64() > Some(0));
}

#[test]
fn options_of_stretch_are_checked() {
    for (options, words) in [
        (&["--late", "500", "--scheduler", "stretch"][..], "cannot become shorter"),
        (&["--early", "1001", "--scheduler", "stretch"], "cannot become longer"),
        (&["--late", "1500"], "--late is only for --scheduler stretch"),
        (
            &["--early", "900", "--scheduler", "command true"],
            "--early is only for --scheduler stretch",
        ),
    ] {
        let ran = pbsctl(&[&["sim", "-"], options].concat(), LATE);
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{options:?}");
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
}

/// An answer that bears the number of the plan before it.
#[test]
fn equal_plan_ids_are_warned_of_once() {
    // The plan in the question, whose failures are dealt with.
    let line = "command python3 -c 'import json,sys
q=json.load(sys.stdin)
print(\"dealt_seq = %d\" % (q[\"failures\"][-1][\"seq\"]+1))
print(q[\"remaining_toml\"])'";
    let ran = pbsctl(&["sim", "-", "--json", "--scheduler", line], LATE);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let replans = ran.json()["replans"].as_array().unwrap().len();
    assert!(replans > 1, "{replans}");
    assert_eq!(ran.stderr.matches("has plan_id 7").count(), 1, "{}", ran.stderr);
    let ran = pbsctl(&["sim", "-", "--scheduler", "stretch"], LATE);
    assert_eq!(ran.stderr, "");
}

#[test]
fn a_simulation_that_does_not_end_says_so() {
    let ran = pbsctl(&["sim", "-", "--limit", "100"], LATE);
    assert_eq!(ran.status, 4);
    assert!(
        ran.stdout.contains("NOT all processes ended; the simulation stopped after 100.000 ms"),
        "{}",
        ran.stdout
    );
}

/// The state in the middle of a plan, as it was computed by hand.
/// A deadline that a stopped simulation has not reached is neither kept nor missed.
#[test]
fn a_deadline_after_the_end_of_a_simulation_is_open() {
    let said = |limit| {
        let ran = pbsctl(&["sim", "-", "--limit", limit], LATE);
        ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let stopped = said("10ms");
    assert!(stopped.contains("far open 0 not ended"), "{stopped}");
    let late = said("184ms");
    assert!(late.contains("far MISSED 0 not ended"), "{late}");
}

#[test]
fn a_simulation_stops_at_a_tick_and_prints_the_state() {
    let plan = "[[process]]\nid = 1\nbuffer_insns = 900\ntasks = [40_000_000, 20_000_000]\n\
                [[process]]\nid = 2\ntasks = [8_000_000]\n\
                [[cpu]]\ncpu = 0\nslots = [1, 2, 1]\n";
    let ran = pbsctl(&["sim", "-", "--until", "3"], plan);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.contains("CPU 0 after 3 ticks (12.000 ms): slot 0 for process 1"));
    let ran = pbsctl(&["--json", "sim", "-", "--until", "3"], plan);
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let held = &json["held"][0];
    // A nanosecond an instruction, and ticks of 4 ms.
    assert_eq!((&held["now_ns"], &held["slot"]), (&12_000_000.into(), &0.into()));
    assert_eq!(held["processes"][0]["retired_insns"], 12_000_000);
    assert_eq!(held["processes"][0]["t2_task_insns"], 60_000_000);
    assert_eq!(held["processes"][1]["retired_insns"], 0);
    assert_eq!(held["stress"], 47);
    assert_eq!((&held["active"], &held["granted"]), (&1.into(), &1.into()));
    // Without --until it is left out.
    let ran = pbsctl(&["--json", "sim", "-"], plan);
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(json.get("held").is_none());
    let ran = pbsctl(&["sim", "-", "--until", "3", "--limit", "1s"], plan);
    assert_eq!(ran.status, 2);
}

#[test]
fn states_at_all_ticks_are_a_table() {
    let plan = "[[process]]\nid = 1\nbuffer_insns = 900\ntasks = [40_000_000, 20_000_000]\n\
                [[process]]\nid = 2\ntasks = [8_000_000]\n\
                [[cpu]]\ncpu = 0\nslots = [1, 2, 1]\n";
    let written = |name: &str, options: &[&str]| {
        let file = scratch(name);
        let ran =
            pbsctl(&[&["sim", "-", "--ticks", file.to_str().unwrap()], options].concat(), plan);
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
        std::fs::read_to_string(file).unwrap()
    };
    let csv = written("ticks.csv", &[]);
    let rows: Vec<Vec<_>> = csv.lines().map(|line| line.split(',').collect()).collect();
    // 68 ms in ticks of 4 ms, with two processes, below the names of the columns.
    assert_eq!(rows.len(), 1 + 17 * 2, "{csv}");
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{csv}");
    let value = |row: usize, name: &str| {
        let column = rows[0].iter().position(|column| *column == name).unwrap();
        rows[row][column].to_string()
    };
    // The third tick, as in the test of --until.
    assert_eq!((value(5, "tick"), value(5, "now_ns")), ("3".into(), "12000000".into()));
    assert_eq!((value(5, "process"), value(5, "retired_insns")), ("1".into(), "12000000".into()));
    assert_eq!((value(5, "t2_task_insns"), value(5, "stress")), ("60000000".into(), "47".into()));
    assert_eq!((value(6, "process"), value(6, "retired_insns")), ("2".into(), "0".into()));

    // Each state in JSON is that at which --until stops.
    let json = written("ticks.json", &["--until", "12"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["nominal_tick_ns"], 4_000_000);
    assert_eq!(json["ticks"].as_array().unwrap().len(), 12);
    let ran = pbsctl(&["--json", "sim", "-", "--until", "12"], plan);
    let until: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["ticks"][11], until["held"][0]);

    let ran = pbsctl(&["sim", "-", "--ticks", "ticks.svg"], plan);
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("such as ticks.csv"), "{}", ran.stderr);
}

/// A tick of 100 µs and a task of almost two minutes, with one process: more than a million rows.
#[test]
fn a_table_of_too_many_ticks_is_refused() {
    let plan = "[config]\nnominal_tick_ns = 100_000\n[[process]]\nid = 1\n\
                tasks = [110_000_000_000]\n[[cpu]]\ncpu = 0\nslots = [1]\n";
    let file = scratch("too-many.csv");
    std::fs::write(&file, "before").unwrap();
    let ticks = ["sim", "-", "--ticks", file.to_str().unwrap()];
    let ran = pbsctl(&ticks, plan);
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("more than 1,000,000 rows"), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "before");
    let ran = pbsctl(&[&ticks[..], &["--until", "1000"]].concat(), plan);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
}

#[test]
fn the_job_scheduler_is_named() {
    let ran = pbsctl(&["sim", "-", "--scheduler", "strecth"], LATE);
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("none, stretch, or \"command LINE\""), "{}", ran.stderr);

    let seen = scratch("question.json");
    let line = format!("command cat > '{}'", seen.display());
    let ran = pbsctl(&["sim", "-", "--scheduler", &line], LATE);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let question: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(seen).unwrap()).unwrap();
    assert!(question["failures"][0]["seq"].is_u64());
    // As in [config] of a plan.
    let config = &question["config"];
    assert_eq!(config["thresholds"][0], "t1");
    assert_eq!(config["idle_policy"], "latest");
    assert_eq!(config["t1_spares_last_slot"], false);
    assert_eq!(config["max_preemptions"], 5);

    let ran = pbsctl(&["sim", "-", "--scheduler", "command exit 3"], LATE);
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("\"exit 3\" ended with exit status: 3"), "{}", ran.stderr);
}

/// A plan of three processes and some 300 tasks, as large as the one that belongs to Leppert's
/// simulation.
#[test]
fn a_large_plan_in_the_grammar_of_leppert_is_simulated() {
    let sizes = ["--processes", "3", "--tasks", "100", "--seed", "2"];
    let log = pbsctl(&[&["gen", "--format", "leppert"][..], &sizes].concat(), "").stdout;
    // A slot is process, task, planned and real length; idle slots have no process.
    let slots = log.trim().split(';').filter(|slot| slot.split(',').count() == 4);
    let number = slots.filter(|slot| !slot.starts_with('-')).count();
    assert!(number > 250, "{number}");
    for resolution in ["event", "tick"] {
        let ran = pbsctl(&["sim", "-", "--json", "--resolution", resolution], &log);
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        let json = ran.json();
        let tasks = json["tasks"].as_array().unwrap();
        assert_eq!(tasks.len(), number);
        assert!(tasks.iter().all(|task| task["retired_insns"] == task["real_insns"]));
        assert_eq!(json["cpus"][0]["ended"], true);
        let processes = json["processes"].as_array().unwrap();
        assert!(processes.iter().all(|process| process["kept"] == true));
    }
}

/// Two processes of 600 bytes on a node that has 1000, beside each other.
const CROWDED: &str = "memory_bytes = 1000
[[process]]
id = 1
memory_bytes = 500
real_memory_bytes = 600
tasks = [10_000_000]
[[process]]
id = 2
name = \"second\"
memory_bytes = 600
tasks = [10_000_000]
[[cpu]]
cpu = 0
slots = [1]
[[cpu]]
cpu = 1
slots = [\"second\"]
";

#[test]
fn memory_that_is_exceeded_is_told_kills_or_slows_down() {
    let run = |arguments: &[&str], status| {
        let ran = pbsctl(&[&["sim", "-"], arguments].concat(), CROWDED);
        assert_eq!(ran.status, status, "{}", ran.stderr);
        let json = pbsctl(&[&["--json", "sim", "-"], arguments].concat(), CROWDED).json();
        (ran.stdout, json)
    };
    let (text, json) = run(&[], 0);
    assert!(
        text.contains("Memory: 1.2 KiB at most of the 1000 B that the plan may use were in use\n"),
        "{text}"
    );
    assert!(text.contains("PLANNED PEAK  REAL PEAK"), "{text}");
    assert_eq!(json["memory"]["peak_bytes"], 1200);
    assert_eq!(json["counts"]["signals"]["late"]["node_memory"], 1);
    assert_eq!(json["processes"][0]["real_memory_bytes"], 600);
    assert_eq!(json["processes"][1]["planned_memory_bytes"], 600);

    let (text, json) = run(&["--memory-over", "kill"], 4);
    assert!(text.contains("1 process was killed"), "{text}");
    assert!(text.contains("second   KILLED"), "{text}");
    assert_eq!(json["memory"]["killed"], 1);
    assert_eq!(json["processes"][1]["killed_ns"], 0);
    assert_eq!(json["processes"][0]["kept"], true);

    // 200 of 1200 are not there: on average an instruction takes 15 times as long, with
    // a rate in whole instructions for each millisecond, and 5 ms are unallocated.
    let slow = ["--memory-over", "swap", "--swap-slowdown", "85"];
    let (_, json) = run(&slow, 0);
    let ended_ns = json["processes"][0]["ended_ns"].as_u64().unwrap();
    assert!((155_001_500..155_001_510).contains(&ended_ns), "{ended_ns}");
    assert_eq!(json["processes"][0]["kept"], false);

    let ran = pbsctl(&["sim", "-", "--swap-slowdown", "2"], CROWDED);
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("only for --memory-over swap"), "{}", ran.stderr);
}

/// A process on each of two CPUs.
const BOTH: &str = "plan_id = 1
[config]
thresholds = []
window_period_ns = 10_000_000_000
window_unallocated_ns = 100_000_000
[[process]]
id = 1
name = \"a\"
tasks = [60_000_000]
[[process]]
id = 2
name = \"b\"
tasks = [100_000_000]
[[cpu]]
cpu = 0
slots = [\"a\"]
[[cpu]]
cpu = 1
slots = [\"b\"]
";

const SLOWDOWNS: &str = "[[slowdown]]
victim = \"a\"
beside = [\"b\"]
level = \"llc\"
slowdown_permille = 2000

[[slowdown]]
victim = \"b/0\"
beside = [\"a\"]
level = \"llc\"
slowdown_permille = 1250
";

#[test]
fn slowdowns_are_read_from_a_file() {
    let file = scratch("sim-slowdowns.toml");
    std::fs::write(&file, SLOWDOWNS).unwrap();
    let file = file.to_str().unwrap();
    let ends = |arguments: &[&str]| {
        let ran = pbsctl(&[&["--json", "sim", "-"], arguments].concat(), BOTH);
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        let ends = ran.json()["tasks"].as_array().unwrap().clone();
        let ends = ends.iter().map(|task| task["ended_ns"].as_u64().unwrap());
        ends.collect::<Vec<_>>()
    };
    assert_eq!(ends(&[]), [60_000_000, 100_000_000]);
    let slowed = ["--slowdowns", file];
    assert_eq!(ends(&slowed), [120_000_000, 124_000_000]);
    // Those who share the memory only are not known to slow each other.
    let far = [&slowed[..], &["--shared", "node"]].concat();
    assert_eq!(ends(&far), [60_000_000, 100_000_000]);
}

#[test]
fn slowdowns_that_do_not_fit_are_told() {
    let told = |name: &str, text: &str, words: &str, status: i32| {
        let file = scratch(name);
        std::fs::write(&file, text).unwrap();
        let ran = pbsctl(&["sim", "-", "--slowdowns", file.to_str().unwrap()], BOTH);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
        assert_eq!(ran.status, status, "{}", ran.stderr);
    };
    let others = SLOWDOWNS.replace("\"a\"", "\"c\"");
    told("sim-others.toml", &others, "none of its tasks is in the plan", 1);
    told("sim-wrong.toml", "[[slowdown]]\n", ":1: there is no victim", 3);
    let unlike = SLOWDOWNS.replacen("llc", "smt", 1);
    told("sim-levels.toml", &unlike, "slow-downs for smt and llc; add --shared", 2);
    let ran = pbsctl(&["sim", "-", "--shared", "llc"], BOTH);
    assert_eq!(ran.status, 2, "{}", ran.stderr);
}

#[test]
fn a_batch_prints_for_each_line_what_a_simulation_prints() {
    let one = pbsctl(&["--json", "sim", "-", "--scheduler", "stretch"], LATE);
    let object = pbs_text::json::json_of_toml(LATE).unwrap();
    let options = serde_json::json!(["--scheduler", "stretch"]);
    let case = |plan: serde_json::Value| serde_json::json!({ "plan": plan, "options": options });
    let lines = [case(object.clone()), case(LATE.into()), case(object.to_string().into())];
    let lines = lines.map(|line| format!("{line}\n\n")).concat();
    let leppert = serde_json::json!({ "plan": LINE }).to_string();
    let ran = pbsctl(&["sim", "--batch"], &(lines + &leppert));
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    let results: Vec<serde_json::Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(results.len(), 4);
    for result in &results[..3] {
        assert_eq!(*result, one.json());
    }
    assert_eq!(results[3]["tasks"][0]["retired_insns"], 1_150_000);
}

#[test]
fn a_line_of_a_batch_that_fails_is_a_failure_and_the_others_are_simulated() {
    let good = serde_json::json!({ "plan": LATE, "options": ["--limit", "1ms"] }).to_string();
    for (bad, words) in [
        ("nonsense", "line 2: expected"),
        ("{}", "missing field `plan`"),
        ("{\"plan\": {}, \"option\": []}", "unknown field `option`"),
        ("[]", "line 2: this is no object; write {"),
        ("{\"plan\": \"plan.toml\"}", "write the plan itself there"),
        ("{\"plan\": {}, \"options\": [\"--json\"]}", "and without --json"),
        ("{\"plan\": {}, \"options\": [\"--seed\", \"-1\"]}", "unexpected argument '--seed'"),
        ("{\"plan\": {}, \"options\": [\"--rate\", \"-1\"]}", "invalid value '-1' for '--rate"),
        ("{\"plan\": {}}", "the plan has no process"),
        ("{\"plan\": {\"cpu\": null}}", "null is no value here"),
        ("{\"plan\": {}, \"options\": [\"--lat\", \"1\"]}", "line 2: unexpected argument '--lat'"),
        ("{\"plan\": {}, \"options\": [\"--batch\"]}", "cannot be used with '--batch'"),
        ("{\"plan\": \"cpu = 1\", \"options\": [\"plan.toml\"]}", "without the name of a file"),
        (
            "{\"plan\": {}, \"options\": [\"--slowdowns\", \"-\"]}",
            "line 2: standard input has the lines of the batch",
        ),
    ] {
        let ran = pbsctl(&["sim", "--batch"], &format!("{good}\n{bad}\n{good}\n"));
        assert_eq!((ran.status, ran.stderr.as_str()), (1, ""), "{bad}: {}", ran.stdout);
        let schemas: Vec<serde_json::Value> = ran
            .stdout
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["schema"].take())
            .collect();
        assert_eq!(schemas, ["pbs.sim/1", "pbs.failure/1", "pbs.sim/1"], "{bad}");
        let failure = ran.stdout.lines().nth(1).unwrap();
        assert!(failure.contains(words), "{bad}: {failure}");
    }
    // The plan did not end within its limit.
    assert_eq!(pbsctl(&["sim", "--batch"], &good).status, 4);
    for option in [&["plan.toml"][..], &["--events"], &["--rate", "5"], &["--shared", "l2"]] {
        let ran = pbsctl(&[&["sim", "--batch"], option].concat(), "");
        assert_eq!(ran.status, 2, "{option:?}");
        assert!(ran.stderr.contains("--batch"), "{}", ran.stderr);
    }
    let [plain, json] = [&["sim", "--batch"][..], &["sim", "--batch", "--json"]]
        .map(|arguments| pbsctl(arguments, &good).stdout);
    assert_eq!(plain, json);
}

#[test]
fn a_line_of_a_batch_that_is_no_text_is_a_failure_and_the_others_are_simulated() {
    let good = serde_json::json!({ "plan": LATE }).to_string();
    let input = [good.as_bytes(), b"{\"plan\": \"\xff\"}", good.as_bytes()].join(&b'\n');
    let ran = pbsctl_of_bytes(&["sim", "--batch"], &input);
    assert_eq!((ran.status, ran.stderr.as_str()), (1, ""));
    let lines: Vec<_> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0], lines[2]);
    assert!(lines[1].contains("pbs.failure/1"), "{}", lines[1]);
    assert!(lines[1].contains("line 2: byte 11 of this line is not UTF-8"), "{}", lines[1]);
}

/// Documentation/simulation.rst has these results of the sketch of a planner.
#[test]
fn the_sketch_does_on_generated_plans_what_its_page_says() {
    let seconds_left = |scenario: &str, options: &[&str]| -> Vec<f64> {
        let plan = pbsctl(&["plan", "generate", scenario], "").stdout;
        let json = pbsctl(&[&["--json", "sim", "-"], options].concat(), &plan).json();
        let processes = json["processes"].as_array().unwrap().iter();
        let left = processes.map(|process| {
            let ns = |key: &str| process[key].as_f64().unwrap();
            (ns("deadline_ns") - ns("ended_ns")) / 1e9
        });
        left.collect()
    };
    let (stretch, spared) =
        (["--scheduler", "stretch"], ["--scheduler", "stretch", "--early", "1000"]);
    for (scenario, options, range) in [
        ("scatter-gather", &[][..], 40.0..50.0),
        ("scatter-gather", &stretch, -30.0..0.0),
        ("scatter-gather", &spared, 40.0..50.0),
        ("all-slightly-late", &[], 21.5..26.5),
        ("all-slightly-late", &stretch, 1.5..3.5),
        ("all-slightly-late", &spared, 1.5..3.5),
    ] {
        let left = seconds_left(scenario, options);
        assert_eq!(left.len(), 3, "{scenario} {options:?}");
        assert!(left.iter().all(|s| range.contains(s)), "{scenario} {options:?}: {left:?}");
    }
}
