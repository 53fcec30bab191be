// SPDX-License-Identifier: GPL-2.0
//! `pbsctl cosched` and `pbsctl study cosched`, with the values of the thesis as corrected.

mod common;

use std::fs;

use common::{directory, pbsctl, Ran};
use pbs_history::{Decision, Options, Store};
use serde_json::Value;

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../samples/cosched");

/// `pbsctl cosched VERB` of samples, on a machine of them, with more options.
fn cosched(verb: &str, workloads: &[&str], machine: &str, options: &[&str]) -> Ran {
    let path = |name: &&str| format!("{SAMPLES}/{name}.toml");
    let workloads: Vec<String> = workloads.iter().map(path).collect();
    let machine = path(&machine);
    let mut arguments = vec!["cosched", verb];
    arguments.extend(workloads.iter().map(String::as_str));
    // No run of anybody is known.
    arguments.extend(["--machine", &machine, "--history", "/nonexistent/history.db"]);
    arguments.extend(options);
    pbsctl(&arguments, "")
}

#[track_caller]
fn answer(verb: &str, workloads: &[&str], machine: &str, options: &[&str]) -> Value {
    let ran = cosched(verb, workloads, machine, &[options, &["--json"]].concat());
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let json = ran.json();
    assert_eq!(json["schema"], format!("pbs.cosched-{verb}/1"));
    json
}

fn turnaround(measured: &Value, process: &str) -> u64 {
    let all = measured["turnarounds"].as_array().unwrap();
    let own = all.iter().find(|of| of["process"] == process).unwrap();
    own["turnaround_ns"].as_u64().unwrap()
}

fn near(value: &Value, wanted: f64) -> bool {
    (value.as_f64().unwrap() - wanted).abs() < 0.00005
}

/// §2.5.1: the first task of p1 runs on all threads when p2 comes.
#[test]
fn the_chains_of_table_2_3_are_planned() {
    let measures = |json: Value| json["measures"].clone();
    let greedy = ["--scheduler", "greedy"];
    let at = ["--scheduler", "greedy", "--at", "1ns"];
    for (verb, options) in [("sim", &greedy[..]), ("plan", &at)] {
        let both = measures(answer(verb, &["p1", "p2"], "machine", options));
        let (without, with) = (&both["without"], &both["with"]);
        assert_eq!(without["makespan_ns"], 2_219_515_000_u64, "{verb}");
        assert_eq!(with["makespan_ns"], 1_756_311_000_u64, "{verb}");
        assert_eq!(turnaround(with, "p1"), 921_149_000);
        assert!(near(&both["speed_up"], 1.26374), "{both}");
        assert!(near(&with["load"], 0.9398) && near(&with["load_monolithic"], 0.7293));
        assert!(near(&without["load"], 8.0 / 9.0) && near(&without["load_monolithic"], 0.5));
    }
    let text = cosched("sim", &["p1", "p2"], "machine", &greedy).stdout;
    assert!(text.contains("greedy, contention: 26.4 % faster."), "{text}");
    assert!(text.contains("1,756.311"), "{text}");
}

/// Whoever knows both processes beforehand leaves the accelerator to the first from the start.
#[test]
fn the_optimum_is_proved() {
    let json = answer("plan", &["p1", "p2"], "machine", &[]);
    // The second comes a nanosecond later.
    assert_eq!(json["measures"]["with"]["makespan_ns"], 1_640_510_001_u64);
    assert_eq!(json["proved"], true);
    assert_eq!(json["verdict"]["taken"], true);
}

/// §6.3.2, by our fit.
#[test]
fn the_means_of_section_6_3() {
    let json = answer("sim", &["mandelbrot", "filter"], "node", &["--scheduler", "greedy"]);
    let both = &json["measures"];
    assert_eq!(both["without"]["makespan_ns"], 96_186_450_000_u64);
    assert_eq!(both["with"]["makespan_ns"], 76_008_520_000_u64);
    assert!(near(&both["with"]["load_monolithic"], 0.8452), "{both}");
}

/// Three processes, of which the last misses its deadline where nobody or greedy
/// co-schedules.
#[test]
fn three_processes_are_compared() {
    let json = answer("compare", &["p1", "p2", "urgent"], "machine", &[]);
    assert_eq!(json["without"]["misses"], 1);
    let rows = json["rows"].as_array().unwrap();
    let of = |scheduler: &str, determination: &str| {
        let is_it =
            |row: &&Value| row["scheduler"] == scheduler && row["determination"] == determination;
        rows.iter().find(is_it).unwrap()
    };
    assert_eq!(of("greedy", "contention")["measured"]["misses"], 1);
    assert_eq!(of("evolutionary", "contention")["measured"]["misses"], 0);
    // Nobody is worse than not co-scheduling.
    let without_ns = json["without"]["makespan_ns"].as_u64().unwrap();
    for row in rows {
        let measured = &row["measured"];
        let is_no_worse = measured["makespan_ns"].as_u64().unwrap() <= without_ns;
        assert!(measured["misses"] == 0 || is_no_worse, "{row}");
    }
    // A device is free at every arrival, so nobody is asked.
    assert_eq!(of("greedy", "all-occupied")["taken"], 0);
    assert_eq!(json["oracle_left_out"], true);
}

#[test]
fn why_is_told_of_rounds_and_alternatives() {
    let options = ["--scheduler", "greedy", "--at", "1ns", "--cost", "5ms"];
    let json = answer("explain", &["p1", "p2"], "machine", &options);
    assert_eq!(json["newcomer"], "p2");
    let said = json["determinations"].as_array().unwrap();
    let amortization = said.iter().find(|said| said["determination"] == "amortization");
    let amortization = amortization.unwrap();
    assert_eq!(amortization["wait_ns"], 579_005_000_u64 - 1);
    assert_eq!(amortization["cost_ns"], 5_000_000);
    let given = json["rounds"]["given"].as_array().unwrap();
    assert_eq!(given[0]["what"], "gpu");
    assert_eq!((&given[0]["round"], &given[0]["task"]), (&2.into(), &"t.2".into()));
    let of_p1 = &json["alternatives"][0];
    assert_eq!(of_p1["variants"].as_array().unwrap().len(), 9);
    assert_eq!(of_p1["variants"][0]["chosen"], true);
    assert_eq!(of_p1["variants"][1]["all_end_ns"], 1_872_112_000_u64);
    let text = cosched("explain", &["p1", "p2"], "machine", &options).stdout;
    assert!(text.contains("not omp 8"), "{text}");
    // Of nine variants one is chosen, and three others are told.
    assert!(text.contains("... and 5 more"), "{text}");
}

#[test]
fn every_sample_is_checked_and_planned() {
    let mut graphs = 0;
    for entry in fs::read_dir(SAMPLES).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|of| of != "toml") {
            continue;
        }
        let file = path.to_str().unwrap();
        let json = pbsctl(&["--json", "check", file], "").json();
        assert_eq!(json["valid"], true, "{file}");
        if json["kind"] == "machine" {
            continue;
        }
        assert_eq!(json["kind"], "graph", "{file}");
        graphs += 1;
        let name = path.file_stem().unwrap().to_str().unwrap();
        let machine = match name {
            "mandelbrot" | "filter" => "node",
            _ => "machine",
        };
        let json = answer("plan", &[name], machine, &[]);
        let tasks = json["tasks"].as_array().unwrap();
        assert!(!tasks.is_empty() && tasks.iter().all(|task| task["placed"].is_object()));
    }
    assert_eq!(graphs, 6);
    let text = pbsctl(&["check", &format!("{SAMPLES}/p1.toml")], "").stdout;
    assert!(text.contains("valid task graph"), "{text}");
    assert!(text.contains("5 tasks of which 1 at once, 45 variants, some for gpu"), "{text}");
}

/// The decision is a job that can be planned, and ends about when the schedule does.
#[test]
fn jobs_of_lanes_are_written() {
    let directory = directory("cosched-jobs", &[]);
    let jobs = directory.join("lanes");
    let options = ["--jobs", jobs.to_str().unwrap()];
    let json = answer("plan", &["urgent"], "machine", &options);
    let file = jobs.join("urgent.toml");
    assert_eq!(json["written"][0], file.to_str().unwrap());
    let makespan_ns = json["measures"]["with"]["makespan_ns"].as_u64().unwrap();
    let machine = format!("{SAMPLES}/machine.toml");
    let show = ["--json", "plan", "show", file.to_str().unwrap(), "--machine", &machine];
    let plan = pbsctl(&[&show[..], &["--whole-rate"]].concat(), "").json();
    // Jobs do not say that data take 4 ms to come from the accelerator.
    let end_ns = plan["jobs"][0]["end_ns"].as_u64().unwrap();
    let late_ns = (150_000_000 + makespan_ns).checked_sub(end_ns);
    assert!(late_ns.is_some_and(|ns| ns <= 4_000_000), "{late_ns:?}");
    // Plans need a deadline.
    let ran = cosched("plan", &["p1"], "machine", &options);
    assert_eq!(ran.status, 3);
    assert!(ran.stderr.contains("add deadline_ns"), "{}", ran.stderr);
}

#[test]
fn pictures_are_written() {
    let directory = directory("cosched-pictures", &[]);
    for (name, begins) in [("plan.svg", "<svg "), ("plan.html", "<!DOCTYPE html>")] {
        let file = directory.join(name);
        for verb in ["plan", "sim"] {
            let ran = cosched(verb, &["p1", "p2"], "machine", &["-o", file.to_str().unwrap()]);
            assert_eq!(ran.status, 0, "{}", ran.stderr);
            let text = fs::read_to_string(&file).unwrap();
            assert!(text.starts_with(begins), "{text}");
            assert!(text.contains("not co-scheduled"), "{text}");
        }
    }
}

/// Invalid input is refused before any decision, with a remedy.
#[test]
fn files_and_times_that_are_none_are_refused() {
    let directory = directory("cosched-refused", &[]);
    let png = directory.join("plan.png");
    for (options, words) in [
        (["-o", png.to_str().unwrap()], "ends in .svg, or in .html"),
        (["-o", "-"], "ends in .svg, or in .html"),
        (["--cost", "-5"], "invalid value '-5' for '--cost <NS>'"),
        (["--at", "-1"], "invalid value '-1' for '--at <NS>'"),
    ] {
        let ran = cosched("plan", &["p1"], "machine", &options);
        assert_eq!(ran.status, 2, "{options:?}");
        assert!(ran.stderr.contains(words), "{options:?}: {}", ran.stderr);
    }
    assert!(!png.exists() && !std::path::Path::new("-").exists());
}

/// A graph is known by its tables even if they are misspelled.
#[test]
fn misspelled_tables_are_told_from_others() {
    let file = directory(
        "cosched-misspelled",
        &[("a.toml", "name = \"a\"\ndeadline_ns = \"1s\"\n[[taks]]\nname = \"t\"\n")],
    );
    let file = file.join("a.toml");
    let ran = pbsctl(&["check", file.to_str().unwrap()], "");
    assert_eq!(ran.status, 3);
    assert!(ran.stderr.contains("did you mean task?"), "{}", ran.stderr);
}

/// All that is wrong is told at once, and not more than a dozen lines of it.
#[test]
fn all_problems_are_told() {
    let ran = cosched("plan", &["filter", "p1"], "machine", &[]);
    assert_eq!(ran.status, 3);
    let lines: Vec<_> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 13, "{}", ran.stderr);
    assert!(lines[0].starts_with("task step.1 of filter: the machine has nothing to run it on"));
    assert_eq!(lines[12], "8 more; --json has all");
    for (arguments, words) in [
        (
            &["cosched", "plan", "NODE", "--machine", "NODE"][..],
            "this is a machine, not a task graph",
        ),
        (&["cosched", "plan", "P1", "--machine", "P1"], "this is a task graph, not a machine"),
        (
            &["cosched", "plan", "P1", "P1", "P1", "--machine", "NODE", "--scheduler", "oracle"],
            "the oracle takes at most 10 tasks, and these are 15",
        ),
        (&["run", "P1"], "--cosched"),
        (&["explain", "P1", "--machine", "NODE"], "pbsctl cosched plan"),
        (
            &["cosched", "plan", "P1", "--machine", "NODE", "--priority", "age,age,age"],
            "--priority takes one name, or two",
        ),
        (
            &["cosched", "plan", "P1", "--machine", "NODE", "--priority", "runtime"],
            "--priority has no effect here: it needs --scheduler greedy",
        ),
        (
            &["cosched", "sim", "P1", "--machine", "NODE", "--no-stickiness"],
            "--no-stickiness has no effect here: it needs --scheduler greedy",
        ),
        (
            &[
                "cosched",
                "plan",
                "P1",
                "--machine",
                "NODE",
                "--scheduler",
                "heft",
                "--iterations",
                "5",
            ],
            "--iterations has no effect here: it needs --scheduler enhanced",
        ),
    ] {
        let path = |word: &&str| match *word {
            "P1" => format!("{SAMPLES}/p1.toml"),
            "NODE" => format!("{SAMPLES}/node.toml"),
            word => word.into(),
        };
        let arguments: Vec<String> = arguments.iter().map(path).collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let ran = pbsctl(&arguments, "");
        assert_ne!(ran.status, 0, "{arguments:?}");
        assert!(ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
    }
}

/// A scenario in which the four strategies differ, stickiness, and more
/// than two processes.
#[test]
fn the_study_compares_strategies_stickiness_and_several_processes() {
    let study = ["--json", "study", "cosched", "--only", "claims,gaps", "--plans", "3"];
    let json = pbsctl(&study, "").json();
    let claims = json["claims"].as_array().unwrap();
    let about = |words: &str| {
        let is_it = |row: &&Value| row["claim"].as_str().unwrap().contains(words);
        claims.iter().filter(is_it).count()
    };
    assert!(about("when the strategies differ") >= 4);
    assert!(about("stickiness, 3 processes") == 1 && about("6 processes of table 2.3") == 1);
    let verdicts: Vec<_> = claims.iter().map(|row| &row["verdict"]).collect();
    for verdict in ["holds", "off", "ours"] {
        assert!(verdicts.contains(&&verdict.into()), "{verdict}");
    }
    let gaps = json["gaps"].as_array().unwrap();
    assert!(!gaps.is_empty() && gaps.iter().all(|gap| gap["instances"] == 3));
    assert!(json["overheads"].is_null() && json["costs"].is_null());
    let text = pbsctl(&study[1..], "").stdout;
    assert!(text.contains("921.149 ms, published as 317.139 ms"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
}

/// Two processes that are slowed beside each other, by a file.
#[test]
fn slowdowns_of_a_file_are_applied() {
    let table = |victim: &str, beside: &str| {
        format!(
            "[[slowdown]]\nvictim = \"{victim}\"\nbeside = [\"{beside}\"]\n\
             slowdown_permille = 2_000\n"
        )
    };
    let graph = |name: &str| {
        format!(
            "name = \"{name}\"\n[[task]]\nname = \"t\"\n[[task.variant]]\nmodel = \"omp\"\n\
             threads = 4\nruntime_ns = \"10ms\"\n"
        )
    };
    let (a, b) = (graph("a"), graph("b"));
    let slowdowns = table("a", "b") + &table("b/t@omp 4", "a/t");
    // The machine does not say what its CPUs share: the file does.
    let level = "level = \"llc\"\nslowdown_permille";
    let of_caches = slowdowns.replace("slowdown_permille", level);
    let files = [
        ("a.toml", a.as_str()),
        ("b.toml", &b),
        ("slowdowns.toml", &slowdowns),
        ("caches.toml", &of_caches),
        ("others.toml", &table("x", "y")),
    ];
    let directory = directory("cosched-slowdowns", &files);
    let path = |name: &str| directory.join(name).to_str().unwrap().to_string();
    let machine = format!("{SAMPLES}/machine.toml");
    for (verb, slowdowns, status) in [
        ("plan", "slowdowns.toml", 0),
        ("explain", "slowdowns.toml", 0),
        ("sim", "slowdowns.toml", 0),
        ("plan", "caches.toml", 0),
        ("plan", "others.toml", 2),
        ("plan", "a.toml", 3),
    ] {
        let (a, b, file) = (path("a.toml"), path("b.toml"), path(slowdowns));
        let arguments = ["--json", "cosched", verb, &a, &b, "--machine", &machine];
        let ran = pbsctl(&[&arguments[..], &["--slowdowns", &file]].concat(), "");
        assert_eq!(ran.status, status, "{verb} {slowdowns}: {}", ran.stderr);
        let json = ran.json();
        if status == 0 {
            // They run one behind the other, and the first one ends sooner. Where processes
            // arrive, nothing is mapped anew: no CPU is contended.
            let turnarounds_ns = if verb == "sim" { 40_000_000 } else { 30_000_000 };
            assert_eq!(json["measures"]["with"]["makespan_ns"], 20_000_000, "{verb}");
            assert_eq!(json["slowed"]["with"]["makespan_ns"], 20_000_000, "{verb}");
            assert_eq!(json["slowed"]["with"]["turnarounds_ns"], turnarounds_ns, "{verb}");
        }
    }
    let (a, b, file) = (path("a.toml"), path("b.toml"), path("slowdowns.toml"));
    let page = path("sim.html");
    let arguments = ["cosched", "sim", &a, &b, "--machine", &machine, "--slowdowns", &file];
    assert_eq!(pbsctl(&[&arguments[..], &["--output", &page]].concat(), "").status, 0);
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("Tasks, times with slow-downs") && !page.contains("without slow-downs"));
    let arguments = ["cosched", "compare", &a, &b, "--machine", &machine, "--slowdowns", &file];
    let json = pbsctl(&[&["--json"], &arguments[..]].concat(), "").json();
    assert_eq!((&json["with_slowdowns"], &json["oracle_left_out"]), (&true.into(), &false.into()));
    assert_eq!(json["without"]["turnarounds_ns"], 40_000_000);
    let by = |scheduler: &str| {
        let rows = json["rows"].as_array().unwrap().iter();
        let always = |row: &&Value| row["determination"] == "always";
        let mut rows = rows.filter(|row| row["scheduler"] == scheduler).filter(always);
        rows.next().unwrap()["measured"]["turnarounds_ns"].clone()
    };
    assert_eq!([by("oracle"), by("greedy"), by("random")], [30_000_000, 30_000_000, 40_000_000]);
    assert!(pbsctl(&arguments, "").stdout.contains("Times are with slow-downs"));
}

/// Tiles of a Cholesky factorization: nearly all tasks are fastest on the accelerator, and a search
/// finds those that the cores take beside it.
#[test]
fn a_tiled_cholesky_factorization_is_shared_by_cores_and_accelerator() {
    let makespans_ns = |scheduler: &str| {
        let json = answer("plan", &["cholesky"], "machine", &["--scheduler", scheduler]);
        let measures = &json["measures"];
        let tasks = json["tasks"].as_array().unwrap();
        assert_eq!(tasks.len(), 35);
        let on_cores = tasks.iter().filter(|task| task["placed"]["variant"] != "gpu").count();
        let of = |what: &str| measures[what]["makespan_ns"].as_u64().unwrap();
        (of("without"), of("with"), on_cores)
    };
    // The accelerator does 5 × 5367 + 10 × 6394 + 10 × 1403 + 10 × 2805 µs.
    let alone_ns = 132_855_000;
    let (without_ns, heft_ns, _) = makespans_ns("heft");
    assert_eq!((without_ns, heft_ns), (alone_ns, 128_646_000));
    let (_, evolved_ns, on_cores) = makespans_ns("evolutionary");
    assert!(evolved_ns < heft_ns && on_cores > 0, "{evolved_ns} ns, {on_cores} on cores");
}

/// The sample is what its script prints.
#[test]
fn the_factorization_is_that_of_its_script() {
    let script = format!("{SAMPLES}/cholesky.py");
    let Ok(printed) = std::process::Command::new("python3").args([&script, "5"]).output() else {
        pbs_text::skipped("there is no python3");
        return;
    };
    let file = fs::read(format!("{SAMPLES}/cholesky.toml")).unwrap();
    assert!(printed.status.success() && printed.stdout == file, "cholesky.py 5 >cholesky.toml");
}

/// Measured runtimes take precedence over the declared ones of the file.
#[test]
fn the_history_gives_runtimes_of_variants() {
    use pbs_history::{Options, Store, VariantRun};
    let directory = directory("cosched-history", &[]);
    let history = directory.join("history.db");
    let text = fs::read_to_string(format!("{SAMPLES}/urgent.toml")).unwrap();
    let graph = pbs_job::graph::graph_from_toml(&text).unwrap();
    let mut store = Store::open(&history, Options::DEFAULT).unwrap();
    // The encoder on the accelerator, in 10 ms instead of 110.
    let run = VariantRun {
        variant: pbs_cosched_report::lanes::variant_key(&graph, 2, 2),
        ran_ns: 10_000_000,
        insns: 0,
    };
    store.record_variant_runs(&[run]).unwrap();
    drop(store);
    let (workload, machine) = ("urgent.toml", "machine.toml");
    let [workload, machine] = [workload, machine].map(|name| format!("{SAMPLES}/{name}"));
    let arguments = ["--json", "cosched", "plan", &workload, "--machine", &machine];
    let json = pbsctl(&[&arguments[..], &["--history", history.to_str().unwrap()]].concat(), "");
    assert_eq!(json.status, 0, "{}", json.stderr);
    let json = json.json();
    assert_eq!(json["profiled"], 1);
    let encode = &json["tasks"][2]["placed"];
    assert_eq!(encode["variant"], "gpu");
    assert_eq!(encode["end_ns"], 280_000_000);
}

/// The cost of deciding comes from the history of the scheduler, unless --cost declares it.
#[test]
fn the_cost_of_deciding_is_that_of_earlier_decisions() {
    let directory = directory("cosched-cost", &[]);
    let history = directory.join("history.db");
    let mut store = Store::open(&history, Options::DEFAULT).unwrap();
    let decisions: Vec<Decision> = (1..=20)
        .map(|tasks| Decision {
            scheduler: "greedy".into(),
            tasks,
            took_ns: 1_000_000 + 100_000 * tasks,
        })
        .collect();
    store.record_decisions(&decisions).unwrap();
    drop(store);
    let history = history.to_str().unwrap();
    let cost_ns = |options: &[&str]| -> u64 {
        let p1 = format!("{SAMPLES}/p1.toml");
        let p2 = format!("{SAMPLES}/p2.toml");
        let machine = format!("{SAMPLES}/machine.toml");
        let arguments = ["--json", "cosched", "explain", &p1, &p2, "--machine", &machine];
        let more = ["--at", "1ns", "--history", history];
        let ran = pbsctl(&[&arguments[..], &more[..], options].concat(), "");
        let json = ran.json();
        let said = json["determinations"].as_array().unwrap_or_else(|| panic!("{json}"));
        let speedup = said.iter().find(|of| of["determination"] == "speedup").unwrap();
        speedup["cost_ns"].as_u64().unwrap()
    };
    // Of nine tasks that wait.
    let known = cost_ns(&["--scheduler", "greedy"]);
    assert!((1_850_000..1_950_000).contains(&known), "{known}");
    assert_eq!(cost_ns(&["--scheduler", "greedy", "--cost", "7"]), 7);
    // No decision of this one is known: it costs what it usually does.
    assert_eq!(cost_ns(&["--scheduler", "heft"]), 5_500);
}
