// SPDX-License-Identifier: GPL-2.0
//! The command as people and scripts use it, as far as it goes without the
//! kernel's device.

use std::path::Path;

mod common;

use common::{pbsctl, scratch, VERBS};

const VALID: &str = "plan_id = 9\n[[process]]\nid = 1\ntasks = [1_000, 3_000]\n\
                     [[cpu]]\ncpu = 2\nslots = [1, \"idle 500\", 1]\n";
const INVALID: &str = "[[process]]\nid = 3\ntasks = [10]\n[[cpu]]\ncpu = 0\nslots = [\"idle 5\"]\n";
const LINE: &str = "1;0,9000;;;0,4,1200,1150;-1,-1,300,310;\n";

#[test]
fn check_sums_a_valid_plan_up() {
    let ran = pbsctl(&["check", "-"], VALID);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    assert_eq!(
        ran.stdout,
        "standard input: valid plan\n  CPU 2: 1 process, 3 slots of which 1 idle, \
         4,500 instructions of which 500 idle\n"
    );
    let json = pbsctl(&["--json", "check", "-"], VALID).json();
    assert_eq!(json["valid"], true);
    assert_eq!(json["plan"]["cpus"][0]["planned_insns"], 4500);
}

/// A job with a value or a penalty is summed up with both, and one without as before.
#[test]
fn a_job_is_shown_with_its_value() {
    let text = |keys: &str| {
        format!(
            "name = \"a\"\ndeadline_ns = \"2s\"\n{keys}[[process]]\nid = 1\n\
             memory_bytes = 4096\ntasks = [7_000]\n"
        )
    };
    let shown = |keys: &str| pbsctl(&["job", "check", "-"], &text(keys)).stdout;
    assert!(shown("").ends_with("deadline 2 s\n"), "{}", shown(""));
    let with_value = shown("value = 1_500\n");
    assert!(with_value.ends_with("deadline 2 s, value 1,500, penalty 0\n"), "{with_value}");
    let json = pbsctl(&["--json", "job", "check", "-"], &text("penalty = 3\n")).json();
    assert_eq!(json["normalized"]["value"], 1);
    assert_eq!(json["normalized"]["penalty"], 3);
    let ran = pbsctl(&["job", "check", "-"], &text("penalty = 2_000_000_000_000\n"));
    assert_eq!(ran.status, 3);
    let told = "standard input:3: penalty is 2_000_000_000_000; it must be between 0 and 1_000_000_000_000";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
}

#[test]
fn check_says_where_and_what_instead() {
    let file = scratch("invalid.toml");
    std::fs::write(&file, INVALID).unwrap();
    let name = file.to_str().unwrap();
    let message = "process 3 has no slot; add it to a [[cpu]] slots list or remove the process";

    let ran = pbsctl(&["check", name], "");
    assert_eq!((ran.status, ran.stdout.as_str()), (3, ""));
    assert!(ran.stderr.contains(&format!("{name}:1: {message}\n")), "{}", ran.stderr);

    let ran = pbsctl(&["check", name, "--json"], "");
    assert_eq!(ran.status, 3);
    let json = ran.json();
    assert_eq!(json["valid"], false);
    assert_eq!(json["problems"][0]["file"], name);
    assert_eq!(json["problems"][0]["line"], 1);
    assert_eq!(json["problems"][0]["message"], message);
}

#[test]
fn import_writes_what_check_takes() {
    let toml = pbsctl(&["import", "-", "--cpu", "1", "--plan-id", "4"], LINE).stdout;
    assert!(toml.starts_with("plan_id = 4\n"), "{toml}");
    let json = pbsctl(&["--json", "check", "-"], &toml).json();
    assert_eq!(json["plan"]["plan_id"], 4);
    assert_eq!(json["plan"]["cpus"][0]["cpu"], 1);

    let file = scratch("imported.toml");
    let ran = pbsctl(&["import", "-", "-o", file.to_str().unwrap()], LINE);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(pbsctl(&["check", file.to_str().unwrap()], "").status, 0);

    let json = pbsctl(&["import", "-", "--json"], LINE).json();
    assert!(json["toml"].as_str().unwrap().contains("real_insns = 1_150"));
}

#[test]
fn import_refuses_other_files() {
    let ran = pbsctl(&["import", "-"], VALID);
    assert_eq!(ran.status, 3);
    assert!(ran.stderr.starts_with("standard input"), "{}", ran.stderr);
}

#[test]
fn other_files_than_plans_in_toml_are_recognised() {
    for (text, words) in [
        (LINE, "convert it to TOML first: pbsctl plan import - > plan.toml"),
        ("{ \"version\": 1 }", "this is JSON"),
    ] {
        for command in ["check", "load", "run"] {
            let ran = pbsctl(&[command, "-"], text);
            assert_eq!(ran.status, 3, "{command}");
            assert!(ran.stderr.contains(words), "{}", ran.stderr);
        }
    }
}

#[test]
fn missing_files_and_devices_are_named() {
    let ran = pbsctl(&["check", "/nonexistent/plan.toml"], "");
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("/nonexistent/plan.toml: No such file"), "{}", ran.stderr);

    for arguments in [
        &["stat"][..],
        &["stat", "--process", "1"],
        &["events"],
        &["drop", "--cpu", "0"],
        &["show", "--cpu", "0"],
        &["load", "-"],
    ] {
        let mut arguments = arguments.to_vec();
        arguments.extend(["--device", "/nonexistent/pbs_plan", "--json"]);
        let ran = pbsctl(&arguments, VALID);
        assert_eq!(ran.status, 1, "{arguments:?}");
        assert!(ran.stderr.contains("CONFIG_SCHED_CLASS_PBS"), "{}", ran.stderr);
        let json = ran.json();
        assert!(json["error"].as_str().unwrap().contains("/nonexistent/pbs_plan"));
    }
}

#[test]
fn run_finds_missing_programs_before_it_starts_any() {
    let ran = pbsctl(&["run", "-"], VALID);
    assert_eq!(ran.status, 3);
    assert!(
        ran.stderr.contains("standard input:2: process 1 has nothing to run; add command"),
        "{}",
        ran.stderr
    );

    let text = "[[process]]\nid = 1\ntasks = [5, 5]\ncommands = [\n    [\"true\"],\n    \
                [\"no-such-program\"],\n]\n[[cpu]]\ncpu = 0\nslots = [1, 1]\n";
    let ran = pbsctl(&["run", "-"], text);
    assert_eq!(ran.status, 3);
    assert!(
        ran.stderr.contains("standard input:6: there is no program no-such-program"),
        "{}",
        ran.stderr
    );
}

/// A plan runs as it stands in its file, and options that would change jobs are refused.
#[test]
fn options_of_jobs_are_refused_beside_a_plan() {
    let plan =
        "[[process]]\nid = 1\ncommand = [\"true\"]\ntasks = [5]\n[[cpu]]\ncpu = 0\nslots = [1]\n";
    let file = scratch("run-options.toml");
    std::fs::write(&file, plan).unwrap();
    let file = file.to_str().unwrap();
    for options in [
        &["--config", "idle_policy=pieces"][..],
        &["--machine", "lab.toml"],
        &["--best-effort"],
        &["--slowdowns", "history"],
    ] {
        let ran = pbsctl(&[&["run", file], options].concat(), "");
        assert_eq!(ran.status, 2, "{options:?}: {}", ran.stderr);
        let told = format!("pbsctl: {} is for jobs, and {file} is a plan", options[0]);
        assert!(ran.stderr.starts_with(&told), "{options:?}: {}", ran.stderr);
    }
    let directory = scratch("import-options");
    std::fs::create_dir_all(&directory).unwrap();
    let ran = pbsctl(&["import", directory.to_str().unwrap(), "--rate", "5"], "");
    assert!(ran.stderr.contains("leave out --rate and --runtime"), "{}", ran.stderr);
    let ran = pbsctl(&["import", "-", "--plan-id", "5"], "digraph { a }");
    assert!(ran.stderr.contains("--machine, --job, --cpu and --plan-id are for"), "{}", ran.stderr);
}

#[test]
fn wrong_usage_has_a_status_of_its_own() {
    assert_eq!(pbsctl(&["chekc"], "").status, 2);
    assert_eq!(pbsctl(&["drop"], "").status, 2);
}

#[test]
fn the_first_page_fits_a_screen_and_shows_what_people_do_most() {
    for option in ["--help", "-h"] {
        let help = pbsctl(&[option], "").stdout;
        assert!(help.lines().count() <= 44, "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
        let (_, most) = help.split_once("What people do most:\n").unwrap();
        let (most, _) = most.split_once("\n\n").unwrap();
        assert_eq!(most.lines().count(), 10, "{most}");
        for line in most.lines() {
            let words: Vec<&str> = line.split_whitespace().skip(1).collect();
            let command = if ["job", "plan", "node"].contains(&words[0]) { 2 } else { 1 };
            let asked: Vec<&str> = words[..command].iter().copied().chain(["--help"]).collect();
            assert_eq!(pbsctl(&asked, "").status, 0, "{line}");
        }
    }
}

#[test]
fn verbs_from_before_the_groups_still_work() {
    for verb in VERBS {
        let ran = pbsctl(&[verb, "--help"], "");
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{verb}");
        let usage = format!("Usage: pbsctl {verb}");
        assert!(ran.stdout.contains(&usage), "{verb}: {}", ran.stdout);
    }
    // "job" shows a job, as it did, and is a group too.
    let old = pbsctl(&["job", "7", "--socket", "none.sock"], "");
    let new = pbsctl(&["job", "show", "7", "--socket", "none.sock"], "");
    assert_eq!((old.status, old.stderr), (new.status, new.stderr));
    assert_eq!(old.status, 1);
}

#[test]
fn a_group_without_a_command_shows_its_commands() {
    for group in ["job", "plan", "node", "service"] {
        let ran = pbsctl(&[group], "");
        assert_eq!(ran.status, 2, "{group}");
        assert!(ran.stderr.contains("Commands:"), "{group}: {}", ran.stderr);
    }
}

#[test]
fn sample_plans_are_valid() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples/plans");
    let mut plans = 0;
    for file in std::fs::read_dir(dir).unwrap() {
        let file = file.unwrap().path();
        if file.extension().is_some_and(|extension| extension == "toml") {
            let ran = pbsctl(&["check", file.to_str().unwrap()], "");
            assert_eq!(ran.status, 0, "{}", ran.stderr);
            plans += 1;
        }
    }
    assert!(plans > 0);
}

/// A plan given where a job is expected, or the other way round, is reported as such, with a
/// remedy.
#[test]
fn a_file_of_another_kind_is_called_by_its_name() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples");
    let path = |name: &str| samples.join(name).to_str().unwrap().to_string();
    let (plan, job) = (path("plans/first.toml"), path("jobs/stages.toml"));
    let machine = path("machines/vm.toml");
    let is_plan = format!(
        "{plan}:22: this is a plan, not a job; simulate the plan with pbsctl \
                           sim {plan}, or run it with pbsctl run {plan}\n"
    );
    let is_job = format!(
        "{job}:6: this is a job, not a plan; plan the job first: pbsctl plan show \
                          {job} --output plan.toml, "
    );
    let is_machine = format!("{machine}:6: this is a machine, not a ");
    let no_machine = format!("{job}:6: this is a job, not a machine; ");
    for (arguments, words) in [
        (&["explain", &plan, "--machine", &machine][..], &is_plan),
        (&["plan", "show", &plan, "--machine", &machine], &is_plan),
        (&["submit", &plan, "--machine", &machine], &is_plan),
        (&["sim", &job], &is_job),
        (&["load", &job], &is_job),
        (&["sim", &machine], &is_machine),
        (&["explain", &machine, "--machine", &machine], &is_machine),
        (&["explain", &job, "--machine", &job], &no_machine),
    ] {
        let ran = pbsctl(arguments, "");
        assert_eq!((ran.status, ran.stdout.as_str()), (3, ""), "{arguments:?}");
        assert!(ran.stderr.starts_with(words.as_str()), "{arguments:?}: {}", ran.stderr);
    }
}

/// Quantities with units mean the same as without.
#[test]
fn quantities_may_have_units() {
    let plain = [
        "--task-insns",
        "10_000_000..20_000_000",
        "--idle-permille",
        "200",
        "--memory-bytes",
        "1048576..67108864",
        "--idle-insns",
        "500000",
    ];
    let units = [
        "--task-insns",
        "10M..0.02G",
        "--idle-permille",
        "20%",
        "--memory-bytes",
        "1MiB..64 MiB",
        "--idle-insns",
        "500k",
    ];
    let small = ["gen", "--processes", "2", "--tasks", "3"];
    let [plain, units] = [plain, units].map(|options| pbsctl(&[&small[..], &options].concat(), ""));
    assert_eq!((units.status, units.stderr.as_str()), (0, ""));
    assert_eq!(units.stdout, plain.stdout);

    let plan = plain.stdout;
    let plain = [
        "sim",
        "-",
        "--limit",
        "20",
        "--look",
        "1000",
        "--rate",
        "500000",
        "--config",
        "no_preemption_ns=2000000",
    ];
    let units = [
        "sim",
        "-",
        "--limit",
        "20ms",
        "--look",
        "1us",
        "--rate",
        "500k",
        "--config",
        "no_preemption_ns=2ms",
    ];
    let [plain, units] = [plain, units].map(|options| pbsctl(&options, &plan));
    assert_eq!((units.status, units.stdout), (plain.status, plain.stdout));

    for (arguments, words) in [
        (&["gen", "--task-insns", "10MiB"][..], "write one as 20M"),
        (&["sim", "-", "--limit", "2 parsecs"], "write one as 4ms"),
        (&["sim", "-", "--config", "no_preemption_ns=2m"], "write one as 4ms"),
        (&["top", "--interval", "2d"], "write one as 4ms"),
        (&["top", "--interval", "48h"], "from 1ms to 24h"),
        (&["run", "-", "--lease", "2h"], "write 0.1 to 3600 seconds, or such a time with a unit"),
    ] {
        let ran = pbsctl(arguments, &plan);
        assert_eq!(ran.status, 2, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
    }
}

/// Files say the same with units as without, and others are refused with their lines.
#[test]
fn files_may_have_units() {
    let plain = "plan_id = 1\nlease_ns = 2_000_000_000\nmemory_bytes = 67108864\n[config]\n\
                 no_preemption_ns = 2_000_000\n[[process]]\nid = 1\nmemory_bytes = 1048576\n\
                 tasks = [20_000_000, { planned_insns = 1_500_000 }]\n[[cpu]]\ncpu = 0\n\
                 rate_insns_per_ms = 250_000\nslots = [1, \"idle 5_000_000\", 1]\n";
    let units = plain
        .replace("2_000_000_000", "\"2s\"")
        .replace("67108864", "\"64MiB\"")
        .replace("= 2_000_000\n", "= \"2ms\"\n")
        .replace("1048576", "\"1 MiB\"")
        .replace("[20_000_000", "[\"20M\"")
        .replace("1_500_000 ", "\"1.5M\" ")
        .replace("250_000\n", "\"250k\"\n")
        .replace("idle 5_000_000", "idle 5M");
    assert_eq!(units.matches('"').count(), 2 + 2 * 7);
    let [a, b] = [plain, &units].map(|plan| pbsctl(&["--json", "sim", "-"], plan));
    assert_eq!((b.status, b.stderr.as_str()), (0, ""), "{}", b.stdout);
    assert_eq!(a.json()["plans"], b.json()["plans"]);

    let job = "name = \"j\"\ndeadline_ns = 2_000_000_000\n[[process]]\nid = 1\n\
               memory_bytes = 4194304\ntasks = [20_000_000]\n";
    let units = job
        .replace("2_000_000_000", "\"2s\"")
        .replace("4194304", "\"4MiB\"")
        .replace("20_000_000", "\"20M\"");
    let [a, b] = [job, &units].map(|job| pbsctl(&["--json", "check", "-"], job).json());
    assert_eq!(a["valid"], true);
    assert_eq!(a, b);
    let wrong = units.replace("2s", "2sec").replace("20M", "20MiB");
    let ran = pbsctl(&["check", "-"], &wrong);
    assert_eq!(ran.status, 3);
    for line in [
        "standard input:2: deadline_ns: \"2sec\" is no number of nanoseconds; write one as 4ms",
        "standard input:6: a task: \"20MiB\" is no number of instructions; write one as 20M",
    ] {
        assert!(ran.stderr.contains(line), "{}", ran.stderr);
    }
}

/// A text that is no number is refused, with the name of what to write instead.
#[test]
fn a_wrong_number_is_refused_with_what_to_write() {
    for (number, words) in [
        ("x", "invalid value 'x' for '--priority <N>': write a whole number, such as 5"),
        ("99999999999", "99999999999 is not in 0..=4294967295"),
        ("", "write a whole number, such as 5"),
    ] {
        let ran = pbsctl(&["job", "alter", "1", "--priority", number], "");
        assert_eq!(ran.status, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
}

/// The numbers are those of the sample.
#[test]
fn the_net_of_a_job_is_drawn() {
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/../samples");
    let job = format!("{samples}/jobs/stages.toml");
    let machine = format!("{samples}/machines/vm.toml");
    let (file, timed) = (scratch("net.svg"), scratch("timed.svg"));
    let drawn = |file: &Path, more: &[&str]| {
        let net = ["job", "check", &job, "--net", file.to_str().unwrap()];
        let ran = pbsctl(&[&net, more].concat(), "");
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
        std::fs::read_to_string(file).unwrap()
    };
    let svg = drawn(&file, &[]);
    for text in ["Task net of job stages", "3 (hash)", "10,100,000 instr.", "7.6 MiB", "fork end"] {
        assert!(svg.contains(text), "{text}: {svg}");
    }
    assert!(svg.contains("5 waits for 8 (search)") && !svg.contains("40.4 ms"));
    // 250 million instructions a second.
    let svg = drawn(&timed, &["--machine", &machine]);
    assert!(svg.contains(">40.4 ms<"), "{svg}");

    let ran = pbsctl(&["job", "check", "-", "--net", file.to_str().unwrap()], VALID);
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("name the file of a job"), "{}", ran.stderr);
    let ran = pbsctl(&["job", "check", &job, "--net", "net.png"], "");
    assert_eq!(ran.status, 2);
    let ran = pbsctl(&["job", "check", &job, "--machine", &machine], "");
    assert_eq!(ran.status, 2);
}

/// The lengths are those of the sample: the first task of its file, which many wait for.
#[test]
fn a_task_graph_is_drawn() {
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/../samples");
    let graph = format!("{samples}/cosched/cholesky.toml");
    let file = scratch("graph.svg");
    let net = ["job", "check", &graph, "--net", file.to_str().unwrap()];
    let ran = pbsctl(&net, "");
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    let svg = std::fs::read_to_string(&file).unwrap();
    for text in ["Task graph cholesky", ">potrf-0<", ">omp: 18.85 ms<", ">gpu: 5.367 ms<"] {
        assert!(svg.contains(text), "{text}: {svg}");
    }
    assert!(svg.contains("trsm-1-0 waits for potrf-0<"), "{svg}");
    let machine = format!("{samples}/machines/vm.toml");
    let ran = pbsctl(&[&net[..], &["--machine", &machine]].concat(), "");
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("variants have their own"), "{}", ran.stderr);
}
