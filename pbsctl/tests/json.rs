// SPDX-License-Identifier: GPL-2.0
//! The JSON output is the one described in Documentation/json.rst.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use common::schemas::Schemas;
use common::{directory, pbsctl, slowed, VERBS};
use serde_json::Value;

const DOCUMENT: &str = include_str!("../../Documentation/json.rst");
const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../samples");

/// Answers of the commands of `cluster` that work on a ledger.
const CLUSTER: [&str; 13] = [
    "systems", "clock", "requests", "request", "why", "nodes", "limits", "stat", "whole", "doctor",
    "ran", "lost", "workload",
];

/// Answers of the commands of `cosched`.
const COSCHED: [&str; 4] = ["plan", "explain", "sim", "compare"];

/// Answers about the manager of applications that evolve.
const RMS: [&str; 5] = ["requests", "views", "nodes", "accounts", "users"];

/// Answers about the slow-downs in runs.
const INTERFERENCE: [&str; 2] = ["show", "predict"];
/// Answers about the shared data of co-scheduled processes.
const CSI: [&str; 2] = ["list", "clean"];

/// The keys of a table and their types.
type Table = BTreeMap<String, String>;

/// The tables of a schema; none: it is documented elsewhere.
fn tables() -> BTreeMap<String, Vec<Table>> {
    let mut all: BTreeMap<String, Vec<Table>> = BTreeMap::new();
    let lines: Vec<_> = DOCUMENT.lines().collect();
    let mut names: Vec<String> = Vec::new();
    for (place, line) in lines.iter().enumerate() {
        let next = lines.get(place + 1).copied().unwrap_or_default();
        if line.starts_with("pbs.") && next.starts_with("===") {
            names = line.split(", ").map(str::to_string).collect();
            for name in &names {
                all.insert(name.clone(), Vec::new());
            }
        }
        if line.starts_with("key ") {
            for name in &names {
                all.get_mut(name).unwrap().push(Table::new());
            }
        }
        let row = line.strip_prefix("``").and_then(|rest| rest.split_once("``"));
        // Rows, not text that begins with a name.
        let row = row.filter(|(_, rest)| rest.starts_with("  ") || rest.starts_with(" n"));
        for name in names.iter().filter(|_| row.is_some()) {
            let (key, rest) = row.unwrap();
            let kind = rest.split_whitespace().next().unwrap();
            let table = all.get_mut(name).unwrap().last_mut();
            table.unwrap().insert(key.into(), kind.into());
        }
    }
    all
}

#[track_caller]
fn agrees(table: &Table, object: &Value, what: &str) {
    let object = object.as_object().unwrap();
    for (key, value) in object.iter().filter(|(key, _)| *key != "schema") {
        let kind = table.get(key);
        let kind = kind.unwrap_or_else(|| panic!("{what}: {key} is not documented"));
        let is = match value {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let may = match kind.strip_suffix('?') {
            Some("any") => true,
            Some(kind) => is == kind || is == "null",
            None => is == kind,
        };
        assert!(may, "{what}: {key} is {is}, not {kind}");
    }
    for (key, _) in table.iter().filter(|(_, kind)| !kind.ends_with('?')) {
        assert!(object.contains_key(key), "{what}: {key} is missing");
    }
}

#[test]
fn every_command_has_a_schema() {
    let documented: BTreeSet<_> = tables().into_keys().collect();
    let mut named: BTreeSet<_> = VERBS.iter().map(|name| format!("pbs.{name}")).collect();
    // A command that never was a verb of its own.
    named.insert("pbs.metrics".into());
    // The test in the virtual machine node-configure has its answer, of a kernel.
    named.insert("pbs.configure".into());
    named.insert("pbs.failure".into());
    named.insert("pbs.what-if".into());
    named.insert("pbs.what-if-policy".into());
    // tests/answers.rs has their answers, of a service.
    named.extend(["pbs.checkpoint".into(), "pbs.set-resource".into()]);
    // tests/clusterd.rs has their answers, of a service.
    named.extend(["pbs.cluster-optimiser".into(), "pbs.cluster-watch".into()]);
    named.extend(CLUSTER.map(|name| format!("pbs.cluster-{name}")));
    named.remove("pbs.cosched");
    named.extend(COSCHED.map(|name| format!("pbs.cosched-{name}")));
    named.extend(INTERFERENCE.map(|name| format!("pbs.interference-{name}")));
    named.extend(RMS.map(|name| format!("pbs.rms-{name}")));
    named.remove("pbs.csi");
    named.extend(CSI.map(|name| format!("pbs.csi-{name}")));
    assert_eq!(documented, named);
    let schemas = Schemas::read();
    let answers = schemas.names().filter(|name| name.starts_with("pbs.")).map(str::to_owned);
    assert_eq!(answers.collect::<BTreeSet<_>>(), named);
}

#[test]
fn what_is_printed_is_what_is_documented() {
    let directory = directory("json", &[]);
    let path = |name: &str| directory.join(name).to_str().unwrap().to_string();
    let (history, run, missing) = (path("history.db"), path("run.json"), path("none"));
    let (plan, job) = (format!("{SAMPLES}/plans/first.toml"), path("job.toml"));
    let machine = format!("{SAMPLES}/machines/vm.toml");
    let site = format!("{SAMPLES}/cluster/site.toml");
    let [p1, p2, gpu] =
        ["p1", "p2", "machine"].map(|name| format!("{SAMPLES}/cosched/{name}.toml"));
    let (ledger, inputs) = (path("cluster.db"), path("run.inputs"));
    let conf = path("slurm.conf");
    std::fs::write(&conf, "NodeName=n1\nPartitionName=plan Nodes=ALL\n").unwrap();
    let ran = format!("one={}", path("ran"));
    std::fs::write(path("ran"), "1.60 1000 1000 1001 1:00 COMPLETED n1\n").unwrap();
    let ratios = path("ratios");
    std::fs::write(&ratios, "0.9\n1.1\n").unwrap();
    let slow = path("slow.db");
    slowed(Path::new(&slow));
    let text = "name = \"sort\"\ndeadline_ns = 9_000_000_000\n[[process]]\nid = 1\n\
                memory_bytes = 4_000_000\ncommand = [\"true\"]\ntasks = [1_000_000]\n";
    std::fs::write(&job, text).unwrap();
    let recording = pbsctl(&["--json", "sim", &plan], "").stdout;
    std::fs::write(&run, recording).unwrap();
    let (documented, schemas) = (tables(), Schemas::read());
    let mut seen = BTreeSet::new();
    for (name, arguments) in [
        ("check", &["check", &plan][..]),
        ("check", &["check", &job]),
        ("check", &["check", &machine]),
        ("submit", &["submit", &job, "--machine", &machine, "--history", &history]),
        ("jobs", &["jobs", "--history", &history]),
        ("jobs", &["jobs", "--columns", "help"]),
        ("jobs", &["jobs", "--history", &history, "--watch", "1ms", "--count", "1"]),
        ("withdraw", &["withdraw", "1", "--history", &history]),
        ("history", &["history", "--history", &history]),
        ("history", &["history", "sort", "--history", &history]),
        ("sim", &["sim", &plan, "--record", &inputs]),
        ("replay", &["replay", &inputs]),
        ("replay", &["replay", &inputs, "--events"]),
        ("replay", &["replay", &inputs, "--until", "task_ended"]),
        ("what-if", &["replay", &inputs, "--config", "thresholds=none"]),
        ("what-if-policy", &["replay", &inputs, "--policy", "pieces"]),
        ("report", &["report", &run]),
        ("report", &["report", &run, "--chart", "gantt"]),
        ("trace", &["trace", &run, "-o", &path("trace.json")]),
        ("study", &["study", "deadlines", "--plans", "1"]),
        ("study", &["study", "idle", "--plans", "1"]),
        ("study", &["study", "compare", "--plans", "1", "--sweep"]),
        ("study", &["study", "memory", "--plans", "1"]),
        ("study", &["study", "ablation", "--plans", "1"]),
        ("study", &["study", "deviations", "--plans", "2", "--measured", &ratios]),
        ("study", &["study", "resolution", "--plans", "1"]),
        ("study", &["study", "stress", "--plans", "1"]),
        ("study", &["study", "strategies", "--plans", "1"]),
        ("study", &["study", "arrays"]),
        ("study", &["study", "evolving", "--figure", "11", "--meshes", "1"]),
        ("explain", &["explain", &job, "--machine", &machine, "--history", &history]),
        ("plan", &["plan", "show", &job, "--machine", &machine, "--history", &history]),
        (
            "interference",
            &[
                "interference",
                "measure",
                "--rounds",
                "1",
                "--hogs",
                "compute",
                "--seconds-per-round",
                "5ms",
            ],
        ),
        ("check", &["check", &p1]),
        ("study", &["study", "cosched", "--plans", "1"]),
        ("cosched-plan", &["cosched", "plan", &p1, &p2, "--machine", &gpu]),
        (
            "cosched-explain",
            &["cosched", "explain", &p1, &p2, "--machine", &gpu, "--scheduler", "greedy"],
        ),
        ("cosched-sim", &["cosched", "sim", &p1, &p2, "--machine", &gpu]),
        ("cosched-compare", &["cosched", "compare", &p1, &p2, "--machine", &gpu]),
        ("interference-show", &["interference", "show", "--history", &slow]),
        (
            "interference-predict",
            &["interference", "predict", "render", "--beside", "backup", "--history", &slow],
        ),
        ("gen", &["gen", "--list"]),
        ("gen", &["gen", "--processes", "1"]),
        ("gen", &["gen", "--format", "leppert"]),
        ("gen", &["gen", "-o", &path("gen.toml")]),
        ("cluster-whole", &["cluster", "whole", "--nodes", "1", "--jobs", "2"]),
        ("cluster-workload", &["cluster", "workload", "--jobs", "3"]),
        (
            "cluster",
            &[
                "cluster",
                "replay",
                "--generate",
                "lublin",
                "--cores",
                "16",
                "--jobs",
                "20",
                "--seeds",
                "2",
                "--deadlines",
                "50",
                "--policy",
                "easy,planned-deadlines",
            ],
        ),
        ("cluster-doctor", &["cluster", "doctor", "--conf", &conf]),
        ("cluster-ran", &["cluster", "ran", &ran]),
        ("completions", &["completions", "fish"]),
        ("schema", &["schema", "plan"]),
        ("cluster-clock", &["cluster", "new", "--ledger", &ledger, "--site", &site]),
        (
            "cluster-requests",
            &[
                "cluster",
                "alloc",
                "--ledger",
                &ledger,
                "-g",
                "physics",
                "--res",
                "rset=ncpus=4",
                "-N",
                "job",
                "--",
                "./app",
            ],
        ),
        ("cluster-requests", &["cluster", "info", "--ledger", &ledger]),
        ("cluster-request", &["cluster", "info", "--ledger", &ledger, "1"]),
        ("cluster-why", &["cluster", "why", "--ledger", &ledger, "1"]),
        (
            "cluster-nodes",
            &["cluster", "node", "--ledger", &ledger, "defect", "smp1", "--parts", "ncpus=1"],
        ),
        ("cluster-nodes", &["cluster", "node", "--ledger", &ledger, "offline", "smp1"]),
        ("cluster-limits", &["cluster", "limits", "--ledger", &ledger]),
        ("cluster-lost", &["cluster", "lost", "--ledger", &ledger]),
        ("cluster-requests", &["cluster", "plan", "--ledger", &ledger]),
        ("cluster-stat", &["cluster", "stat", "--ledger", &ledger]),
        ("cluster-systems", &["cluster", "systems", &path("")]),
        ("failure", &["cluster", "why", "--ledger", &ledger, "9"]),
        ("failure", &["cluster", "alloc", "--ledger", &ledger, "--res", "rset=ncpus=99"]),
        ("man", &["man", &path("man")]),
        ("metrics", &["node", "metrics", "--device", &missing, "--socket", &missing]),
        ("failure", &["check", &missing]),
        ("failure", &["check", &run]),
        ("failure", &["stat", "--device", &missing]),
    ] {
        let mut all = vec!["--json"];
        all.extend(arguments);
        let ran = pbsctl(&all, "");
        let what = format!("{arguments:?}: {}", ran.stderr);
        let json = ran.json();
        assert_eq!(json["schema"], format!("pbs.{name}/1"), "{what}");
        seen.insert(name);
        assert_eq!(schemas.answer_problem(&json), None, "{what}");
        let tables = &documented[&format!("pbs.{name}")];
        if let Some(table) = tables.first() {
            agrees(table, &json, &what);
        }
        for rows in [
            "runs",
            "requests",
            "limits",
            "policies",
            "systems",
            "tasks",
            "rows",
            "runs",
            "requests",
            "limits",
            "policies",
            "systems",
            "slowdowns",
            "predictions",
            "findings",
        ] {
            if let (Some(table), Some(rows)) = (tables.get(1), json[rows].as_array()) {
                assert!(!rows.is_empty(), "{what}");
                for row in rows {
                    agrees(table, row, &what);
                }
            }
        }
    }
    for name in COSCHED {
        assert!(seen.contains(format!("cosched-{name}").as_str()), "{name}");
    }
    for name in CLUSTER {
        assert!(seen.contains(format!("cluster-{name}").as_str()), "{name}");
    }
    assert!(seen.len() > 12, "{seen:?}");
}

/// A manager with a session that has something.
#[test]
fn output_of_the_resource_manager_is_documented() {
    let directory = directory("json-rms", &[]);
    let path = directory.join("rms.sock");
    let listener = pbs_socket::listen(&path).unwrap();
    std::thread::spawn(move || {
        let settings = pbs_rms_server::Settings {
            clusters: vec![pbs_rms_server::Managed::new("lab", 8)],
            policy: pbs_rms::Policy::default(),
            absence_grace_ns: 60_000_000_000,
            most_sessions: 64,
            longest_ns: u64::MAX,
        };
        let hub = pbs_rms_server::Hub::open(settings, None).unwrap();
        pbs_rms_server::serve(listener, hub)
    });
    let mut client = pbs_rms_api::Client::connect_to(&path).unwrap();
    let session = client.connect("it").unwrap().session;
    let asked = pbs_rms_api::Asked {
        nodes: 3,
        kind: "non-preemptible".into(),
        ..pbs_rms_api::Asked::default()
    };
    client.request(session, &asked).unwrap();
    let (documented, schemas) = (tables(), Schemas::read());
    let socket = path.to_str().unwrap();
    let mut seen = Vec::new();
    for (name, arguments) in [
        ("rms-requests", &["requests"][..]),
        ("rms-views", &["views", "1"]),
        ("rms-accounts", &["accounts"]),
        ("rms-users", &["accounts", "--by-user"]),
        ("rms-nodes", &["nodes"]),
        // As many as before: that is right whether it has started or not.
        ("rms", &["update", "1", "1", "--nodes", "3"]),
        ("rms", &["end", "1"]),
        ("failure", &["end", "1"]),
    ] {
        let all = [&["--json", "rms", "--socket", socket][..], arguments].concat();
        let ran = pbsctl(&all, "");
        let what = format!("{arguments:?}: {}", ran.stderr);
        let json = ran.json();
        assert_eq!(json["schema"], format!("pbs.{name}/1"), "{what}");
        assert_eq!(schemas.answer_problem(&json), None, "{what}");
        let tables = &documented[&format!("pbs.{name}")];
        agrees(&tables[0], &json, &what);
        for rows in ["sessions", "views", "accounts", "users", "clusters"] {
            if let (Some(table), Some(rows)) = (tables.get(1), json[rows].as_array()) {
                assert!(!rows.is_empty(), "{what}");
                for row in rows {
                    agrees(table, row, &what);
                }
            }
        }
        seen.push(name);
    }
    // A line for each thing that happens: nothing happens to two nodes for a moment but that.
    let rigid = ["rigid", "--nodes", "2", "--duration", "10ms"];
    let run = [&["--json", "apps", "run", "--socket", socket][..], &rigid].concat();
    let ran = pbsctl(&run, "");
    let line: Value = serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(line["schema"], "pbs.apps/1", "{}", ran.stderr);
    agrees(&documented["pbs.apps"][0], &line, "apps");
    for line in ran.stdout.lines() {
        assert_eq!(schemas.answer_problem(&serde_json::from_str(line).unwrap()), None);
    }
    assert_eq!(line["nodes"].as_array().map(Vec::len), Some(2));
    let all = RMS.map(|name| format!("rms-{name}"));
    assert!(all.iter().all(|name| seen.contains(&name.as_str())));
}

/// The viewer of a trace knows no schema.
#[test]
fn the_format_of_others_is_as_it_was() {
    let plan = format!("{SAMPLES}/plans/first.toml");
    let recording = pbsctl(&["--json", "sim", &plan], "").stdout;
    let trace = pbsctl(&["--json", "trace", "-"], &recording).json();
    assert!(trace["traceEvents"].is_array());
    assert!(trace["schema"].is_null());
}

/// A process that shares a task, and one that has gone.
#[test]
fn what_co_scheduled_processes_share_is_what_is_documented() {
    let directory = directory("json-csi", &[]);
    let at = directory.to_str().unwrap();
    let (documented, schemas) = (tables(), Schemas::read());
    let look = |name: &str, arguments: &[&str]| {
        let all = [&["--json", "csi", "--directory", at][..], arguments].concat();
        let ran = pbsctl(&all, "");
        let json = ran.json();
        let what = format!("{arguments:?}: {}", ran.stderr);
        assert_eq!(json["schema"], format!("pbs.{name}/1"), "{what}");
        assert_eq!(schemas.answer_problem(&json), None, "{what}");
        agrees(&documented[&format!("pbs.{name}")][0], &json, &what);
        json
    };
    assert_eq!(look("csi-list", &["list"])["is_there"], false);
    let node = pbs_csi::Node::open(&pbs_csi::Options::new(at)).unwrap();
    let csi = pbs_csi::Csi {
        owner: node.owner(),
        task: 1,
        dependencies: Vec::new(),
        reverse_dependencies: Vec::new(),
        best_index: None,
        variants: Vec::new(),
        transfer_ns: 0,
        is_transfer: false,
    };
    let task = pbs_csi::NewTask { csi, is_ready: true, device: None, units: 0, runtime_ns: 0 };
    node.lock().unwrap().register(&[task]).unwrap();
    let listed = look("csi-list", &["list"]);
    let tasks = listed["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), 1);
    agrees(&documented["pbs.csi-list"][1], &tasks[0], "a task");
    look("csi-clean", &["clean"]);
    assert_eq!(look("csi-clean", &["clean", "--force"])["csimf"], true);
}

/// The rows of `study idle` stand there in words.
#[test]
fn rows_of_the_study_of_idle_slots_are_documented() {
    let begin = DOCUMENT.find("``rows`` of ``study idle``").unwrap();
    let end = begin + DOCUMENT[begin..].find("pbs.submit").unwrap();
    let words = &DOCUMENT[begin..end];
    let json = pbsctl(&["--json", "study", "idle", "--plans", "1"], "").json();
    for key in json["rows"][0].as_object().unwrap().keys() {
        assert!(words.contains(&format!("``{key}``")), "{key}");
    }
}
