// SPDX-License-Identifier: GPL-2.0
//! JSON Schemas describe the files that `pbsctl` reads, and nothing else.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use common::schemas::Schemas;
use common::{directory, pbsctl, LATE};
use pbs_text::json::json_of_toml;
use serde_json::{json, Value};

const TOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// All files in TOML below a folder.
fn files(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|it| it == "toml") {
            found.push(path.to_str().unwrap().to_owned());
        }
    }
}

#[test]
fn every_sample_is_valid_and_so_are_its_normalized_values() {
    let schemas = Schemas::read();
    let mut samples = Vec::new();
    files(&Path::new(TOP).join("samples"), &mut samples);
    files(&Path::new(TOP).join("studies/pbs-reproduce"), &mut samples);
    let mut seen = Vec::new();
    for sample in samples {
        let ran = pbsctl(&["--json", "plan", "check", &sample], "");
        // Sites, packages and jobs of a sample with a format of its own are no files of these.
        if ran.status != 0 {
            continue;
        }
        let checked = ran.json();
        let kind = checked["kind"].as_str().unwrap().to_owned();
        let value = json_of_toml(&fs::read_to_string(&sample).unwrap()).unwrap();
        assert_eq!(schemas.problem(&kind, &value), None, "{sample}");
        let normalized = &checked["normalized"];
        assert_eq!(schemas.problem(&kind, normalized), None, "{sample}");
        // The normalized file means the same.
        let again = pbsctl(&["--json", "plan", "check", "-"], &normalized.to_string());
        assert_eq!(again.status, 0, "{sample}: {}{normalized}", again.stderr);
        assert_eq!(again.json(), checked, "{sample}");
        seen.push(kind);
    }
    for (kind, least) in [("plan", 15), ("job", 8), ("graph", 3), ("machine", 3)] {
        let number = seen.iter().filter(|it| *it == kind).count();
        assert!(number >= least, "only {number} of kind {kind}");
    }
}

#[test]
fn quantities_and_names_are_normalized() {
    let plan = "lease_ns = \"2s\"\n[config]\nsigma_t1_permille = \"106%\"\n\
                idle_policy = \"pieces\"\nthresholds = [\"t1\"]\n[[process]]\nid = 3\n\
                name = \"a\"\ntasks = [\"2M\", { planned_insns = 5, after = [\"b\"] }]\n\
                deadline = \"3 ms\"\n[[process]]\nid = 4\nname = \"b\"\ntasks = [1]\n\
                [[cpu]]\ncpu = 0\nslots = [\"a\", \"b\", \"idle 1k\", \"a\"]\n";
    let ran = pbsctl(&["--json", "plan", "check", "-"], plan);
    let mut plan = ran.json()["normalized"].take();
    let config = plan["config"].take();
    for (key, value) in [
        ("sigma_t1_permille", json!(1060)),
        ("idle_policy", json!("pieces")),
        ("thresholds", json!(["t1"])),
        ("dispatch", json!("thesis")),
        ("t1_spares_last_slot", json!(true)),
        ("window_period_ns", json!(100_000_000)),
    ] {
        assert_eq!(config[key], value, "{key}");
    }
    let process = |id: u32, name: &str, tasks: Value| {
        json!({ "id": id, "name": name, "tasks": tasks, "buffer_insns": 0, "memory_bytes": 0,
                "rate_insns_per_ms": 0 })
    };
    let a_tasks = json!([
        { "id": 0, "planned_insns": 2_000_000, "after": [] },
        { "id": 1, "planned_insns": 5, "after": ["4/0"] },
    ]);
    let mut a = process(3, "a", a_tasks);
    a["deadline"] = json!(3_000_000);
    let b = process(4, "b", json!([{ "id": 0, "planned_insns": 1, "after": [] }]));
    let slots = json!([3, 4, { "idle_insns": 1000 }, 3]);
    assert_eq!(
        plan,
        json!({ "plan_id": 0, "dealt_seq": 0, "lease_ns": 2_000_000_000u64, "memory_bytes": 0,
                "config": null, "process": [a, b],
                "cpu": [{ "cpu": 0, "rate_insns_per_ms": 0, "slots": slots }] })
    );
}

/// Keys that the reader accepts where a document has the key `zzz`.
fn accepted(document: &Value) -> BTreeSet<String> {
    let ran = pbsctl(&["plan", "check", "-"], &document.to_string());
    let (_, rest) = ran.stderr.split_once("no key zzz; it can have ").unwrap_or_else(|| {
        panic!("{document}: {}", ran.stderr);
    });
    let rest = rest.lines().next().unwrap().replace(" and ", ", ").replace(" or ", ", ");
    rest.split(',').map(|key| key.trim().trim_end_matches('.').to_owned()).collect()
}

#[test]
fn keys_of_schemas_are_those_of_the_reader() {
    let schemas = Schemas::read();
    let cpu = json!([{ "cpu": 0, "slots": [] }]);
    let device = json!([{ "zzz": 1, "kind": "gpu", "models": ["ocl"] }]);
    let sharing = json!([{ "zzz": 1, "level": "llc", "cpus": [0, 1] }]);
    for (kind, pointer, document) in [
        ("plan", "", json!({ "zzz": 1, "cpu": cpu })),
        ("plan", "/$defs/config", json!({ "config": { "zzz": 1 }, "cpu": cpu })),
        ("plan", "/$defs/process", json!({ "process": [{ "zzz": 1, "id": 1 }], "cpu": cpu })),
        (
            "plan",
            "/$defs/task/anyOf/1",
            json!({ "process": [{ "id": 1, "tasks": [{ "zzz": 1 }] }], "cpu": cpu }),
        ),
        (
            "plan",
            "/$defs/command/anyOf/1",
            json!({ "process": [{ "id": 1, "tasks": [1], "commands": [{ "zzz": 1 }] }], "cpu": cpu }),
        ),
        ("plan", "/$defs/cpu", json!({ "cpu": [{ "zzz": 1 }] })),
        ("plan", "/$defs/idle", json!({ "cpu": [{ "cpu": 0, "slots": [{ "zzz": 1 }] }] })),
        ("job", "", json!({ "zzz": 1, "deadline_ns": 5, "process": [] })),
        ("job", "/$defs/jobprocess", json!({ "deadline_ns": 5, "process": [{ "zzz": 1 }] })),
        (
            "job",
            "/$defs/jobtask/anyOf/1",
            json!({ "deadline_ns": 5, "process": [{ "id": 1, "tasks": [{ "zzz": 1 }] }] }),
        ),
        ("graph", "", json!({ "zzz": 1, "task": [] })),
        ("graph", "/$defs/graphtask", json!({ "task": [{ "zzz": 1, "name": "a" }] })),
        (
            "graph",
            "/$defs/edge/anyOf/1",
            json!({ "task": [{ "name": "a", "after": [{ "zzz": 1, "task": "a" }] }] }),
        ),
        (
            "graph",
            "/$defs/variant",
            json!({ "task": [{ "name": "a", "variant": [{ "zzz": 1, "model": "cpu" }] }] }),
        ),
        ("machine", "", json!({ "zzz": 1, "node": [] })),
        ("machine", "/$defs/node", json!({ "node": [{ "zzz": 1 }] })),
        ("machine", "/$defs/core/anyOf/1", json!({ "node": [{ "cores": [{ "zzz": 1 }] }] })),
        ("machine", "/$defs/link", json!({ "node": [], "link": [{ "zzz": 1 }] })),
        ("machine", "/$defs/device", json!({ "node": [], "device": device })),
        ("machine", "/$defs/sharing", json!({ "node": [], "sharing": sharing })),
    ] {
        let schema = schemas.named(kind).pointer(pointer).unwrap_or_else(|| panic!("{pointer}"));
        let keys = schema["properties"].as_object().unwrap().keys().cloned();
        assert_eq!(keys.collect::<BTreeSet<_>>(), accepted(&document), "{kind}{pointer}");
    }
}

#[test]
fn what_the_reader_refuses_is_not_valid() {
    let schemas = Schemas::read();
    let good = json_of_toml(LATE).unwrap();
    assert_eq!(schemas.problem("plan", &good), None);
    for (pointer, value, words) in [
        ("/process/0/id", json!("1"), "/id: no \"integer\""),
        ("/process/0/id", json!(-1), "too small"),
        ("/process/0/cpu", json!(1u64 << 32), "too large"),
        ("/process/0/tasks", json!([{ "insns": 5 }]), "unknown key insns"),
        ("/process/0/tasks", json!([0]), "too small"),
        ("/process/0/tasks", json!([]), "too few"),
        ("/process/0/tasks", json!(["5 ms"]), "no quantity"),
        ("/process/0/tasks", json!(["5"]), "no quantity"),
        ("/process/0/name", json!(""), "too short"),
        ("/process/0/buffer_insns", json!((1u64 << 56) + 1), "too large"),
        ("/process/0/command", json!([]), "too few"),
        ("/process/0/attaches", json!("myself"), "none of"),
        ("/cpu", json!([]), "too few"),
        ("/cpu/0/slots", json!([1.5]), "none of"),
        ("/config", json!({ "idle_policy": "first" }), "none of"),
        ("/config", json!({ "thresholds": ["t1", "t1"] }), "twice"),
        ("/config", json!({ "window_period_ns": 5 }), "too small"),
        ("/lease_ns", json!("2 hours"), "no quantity"),
    ] {
        let mut plan = good.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        plan.pointer_mut(parent).unwrap()[key] = value;
        let problem = schemas.problem("plan", &plan).unwrap_or_else(|| panic!("{plan}"));
        assert!(problem.contains(words), "{problem}");
        let ran = pbsctl(&["plan", "check", "-"], &plan.to_string());
        assert_eq!(ran.status, 3, "{plan}");
    }
}

#[test]
fn questions_of_the_simulator_are_valid() {
    let schemas = Schemas::read();
    let directory = directory("schema-question", &[]);
    let file = directory.join("question.json");
    let plan = LATE.replacen("\nid = ", "\ndeadline = \"900 ms\"\nid = ", 1);
    assert_ne!(plan, LATE);
    let line = format!("command cat >{}", file.display());
    assert_eq!(pbsctl(&["sim", "-", "--scheduler", &line], &plan).status, 0);
    let mut question: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(schemas.problem("question", &question), None);
    assert_eq!(schemas.problem("answer", &question["remaining"]), None);
    // In JSON, deadlines are plain numbers.
    assert!(question["remaining"]["process"][0]["deadline"].is_u64(), "{question}");
    assert!(question["remaining_toml"].as_str().unwrap().contains("deadline = \""));
    // New keys may be added, and all known ones are required.
    question["new"] = json!(1);
    assert_eq!(schemas.problem("question", &question), None);
    let keys: Vec<String> = question.as_object().unwrap().keys().cloned().collect();
    for key in keys.iter().filter(|key| *key != "new") {
        let mut without = question.clone();
        without.as_object_mut().unwrap().remove(key);
        assert!(schemas.problem("question", &without).is_some(), "{key}");
    }
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn schemas_have_versions_and_the_files_are_what_is_printed() {
    let schemas = Schemas::read();
    for name in schemas.names() {
        let schema = schemas.named(name);
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert_eq!(schema["$id"], format!("urn:sched-pbs:schema:{name}:1"));
        let printed = pbsctl(&["schema", name], "");
        assert_eq!(&serde_json::from_str::<Value>(&printed.stdout).unwrap(), schema);
    }
    assert_eq!(
        fs::read_dir(format!("{TOP}/schemas")).unwrap().count(),
        schemas.names().count(),
        "a file of another name"
    );
    let ran = pbsctl(&["schema", "plans"], "");
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("plan, job, graph, machine, question, answer"), "{}", ran.stderr);
}

#[test]
fn an_answer_has_no_key_that_its_schema_does_not_name() {
    let schemas = Schemas::read();
    let good = json!({ "schema": "pbs.withdraw/1", "withdrawn": 7 });
    assert_eq!(schemas.answer_problem(&good), None);
    let new = json!({ "schema": "pbs.withdraw/1", "withdrawn": 7, "new": 1 });
    let problem = schemas.answer_problem(&new).unwrap();
    assert!(problem.contains("unknown key new"), "{problem}");
    // A reader accepts it.
    assert_eq!(schemas.problem("pbs.withdraw", &new), None);
    for (bad, words) in [
        (json!({ "schema": "pbs.withdraw/1", "withdrawn": "7" }), "no \"integer\""),
        (json!({ "schema": "pbs.withdraw/1", "withdrawn": -7 }), "too small"),
        (json!({ "schema": "pbs.withdraw/1" }), "no key withdrawn"),
        (json!({ "schema": "pbs.withdraw/2", "withdrawn": 7 }), "none of"),
        (json!({ "schema": "pbs.nothing/1" }), "there is no schema"),
    ] {
        let problem = schemas.answer_problem(&bad).unwrap();
        assert!(problem.contains(words), "{problem}");
    }
}
