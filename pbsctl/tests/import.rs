// SPDX-License-Identifier: GPL-2.0
//! `pbsctl plan import` of workflows.

mod common;

use common::pbsctl;

/// WfFormat 1.5: files stand apart, figures in the execution.
const MONTAGE: &str = r#"{"name": "montage", "schemaVersion": "1.5", "workflow": {
"specification": {
  "tasks": [
    {"name": "project", "id": "project_1", "parents": [], "children": ["add_3"],
     "inputFiles": ["raw"], "outputFiles": ["flat", "log"]},
    {"name": "project", "id": "project_2", "parents": [], "children": [],
     "inputFiles": ["raw"], "outputFiles": ["flat2"]},
    {"name": "add", "id": "add_3", "parents": ["project_2"], "children": [],
     "inputFiles": ["flat", "flat2"], "outputFiles": []}],
  "files": [{"id": "raw", "sizeInBytes": 9}, {"id": "flat", "sizeInBytes": 5000000},
            {"id": "flat2", "sizeInBytes": 7}, {"id": "log", "sizeInBytes": 8}]},
"execution": {"makespanInSeconds": 5, "tasks": [
  {"id": "project_1", "runtimeInSeconds": 2.5, "coreCount": 4, "memoryInBytes": 1000000,
   "command": {"program": "mProject"}, "avgCPU": 98.5},
  {"id": "project_2", "runtimeInSeconds": 0},
  {"id": "add_3", "runtimeInSeconds": 3}]}}}"#;

#[test]
fn a_workflow_of_wfcommons_becomes_a_task_graph() {
    let ran = pbsctl(&["plan", "import", "-"], MONTAGE);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(
        ran.stdout,
        r#"name = "montage"

[[task]]
name = "project_1"
memory_bytes = 1_000_000
[[task.variant]]
model = "cpu"
threads = 4
runtime_ns = 2_500_000_000

[[task]]
name = "project_2"
[[task.variant]]
model = "cpu"
runtime_ns = 0

[[task]]
name = "add_3"
after = [{ task = "project_1", bytes = 5_000_000 }, { task = "project_2", bytes = 7 }]
[[task.variant]]
model = "cpu"
runtime_ns = 3_000_000_000
"#
    );
    for told in ["commands are left out", "avgCPU is left out"] {
        assert!(ran.stderr.contains(told), "{told}: {}", ran.stderr);
    }
    let checked = pbsctl(&["job", "check", "-"], &ran.stdout);
    assert!(checked.stdout.contains("valid task graph"), "{}{}", checked.stdout, checked.stderr);
}

/// Before 1.5 each task had all of its figures, and parents were named by name.
#[test]
fn older_versions_are_read() {
    let text = r#"{"name": "old", "schemaVersion": "1.3", "workflow": {"tasks": [
        {"name": "split", "id": "1", "runtime": 1.5, "parents": [], "children": ["work"],
         "cores": 1, "files": [{"link": "output", "name": "part", "size": 12}]},
        {"name": "work", "id": "2", "runtimeInSeconds": 4, "parents": ["split"], "children": [],
         "files": [{"link": "input", "name": "part", "size": 12}]}]}}"#;
    let ran = pbsctl(&["plan", "import", "-", "--name", "new"], text);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    for line in [
        "name = \"new\"",
        "runtime_ns = 1_500_000_000",
        "after = [{ task = \"1\", bytes = 12 }]",
        "runtime_ns = 4_000_000_000",
    ] {
        assert!(ran.stdout.contains(line), "{line}: {}", ran.stdout);
    }
}

#[test]
fn a_workflow_becomes_a_job_at_a_rate() {
    let ran = pbsctl(&["plan", "import", "-", "--rate", "2G", "--json"], MONTAGE);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let json = ran.json();
    let toml = json["toml"].as_str().unwrap();
    for line in [
        "deadline_ns = 5_500_000_000",
        "tasks = [{ name = \"project_1\", insns = 5_000_000_000 }]",
        "insns = 6_000_000_000, after = [\"project_1\", \"project_2\"] }]",
        "memory_bytes = 67_108_864",
    ] {
        assert!(toml.contains(line), "{line}: {toml}");
    }
    let left_out = json["left_out"].as_array().unwrap();
    assert_eq!(left_out.len(), 6, "{left_out:?}");
    let checked = pbsctl(&["job", "check", "-"], toml);
    assert!(checked.stdout.contains("valid job"), "{}{}", checked.stdout, checked.stderr);
}

#[test]
fn a_graph_of_graphviz_becomes_a_task_graph() {
    let text = "/* a flow */ strict digraph \"my flow\" {\n  rankdir = LR; node [shape=box];\n\
                # a comment\n  load [runtime=1.5, memory=\"4096\"]\n  load -> { sort:n; \"the \\\"pack\\\"\" } \
                -> done [bytes=64, style=dotted];\n  subgraph cluster_0 { sort [cores=2, label=\"S\"] }\n\
                lonely [runtime=0]\n}\n";
    let ran = pbsctl(&["plan", "import", "-", "--runtime", "500ms"], text);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    assert_eq!(
        ran.stdout,
        r#"name = "my flow"

[[task]]
name = "load"
memory_bytes = 4_096
[[task.variant]]
model = "cpu"
runtime_ns = 1_500_000_000

[[task]]
name = "sort"
after = [{ task = "load", bytes = 64 }]
[[task.variant]]
model = "cpu"
threads = 2
runtime_ns = 500_000_000

[[task]]
name = "the \"pack\""
after = [{ task = "load", bytes = 64 }]
[[task.variant]]
model = "cpu"
runtime_ns = 500_000_000

[[task]]
name = "done"
after = [{ task = "sort", bytes = 64 }, { task = "the \"pack\"", bytes = 64 }]
[[task.variant]]
model = "cpu"
runtime_ns = 500_000_000

[[task]]
name = "lonely"
[[task.variant]]
model = "cpu"
runtime_ns = 0
"#
    );
}

#[test]
fn what_is_wrong_with_a_workflow_is_told() {
    for (text, arguments, told) in [
        ("digraph g { a -> b; b -> c; }", &[][..], "3 of 3 tasks have no run time; add --runtime"),
        ("digraph g { a -> b; b -> a; }", &["--runtime", "1"], "wait"),
        ("graph g { a -- b }", &[], "write digraph"),
        ("digraph g { a -- b }", &[], "-- has no direction"),
        ("digraph g {\n a -> [b]", &[], "2: [ is no name of a task"),
        ("digraph g {\n a -> b", &[], "a brace { has no end"),
        ("digraph g { a [runtime=soon] }", &[], "runtime is soon; it must be a number"),
        ("digraph g { a } b", &[], "b follows the graph"),
        ("digraph g { }", &[], "has no tasks"),
        ("digraph g { a [runtime=1e11] }", &["--runtime", "1"], "the runtime 1e11 is too long"),
        (
            "{\"workflow\": {\"tasks\": [{\"id\": \"a\", \"parents\": [\"b\"]}]}}",
            &[],
            "names the parent b, which is not there",
        ),
        (
            "{\"workflow\": {\"tasks\": [{\"id\": \"a\"}, {\"id\": \"a\"}]}}",
            &[],
            "two tasks with the id a",
        ),
        (
            "{\"workflow\": {\"tasks\": [{\"id\": \"a\", \"runtime\": -1}]}}",
            &[],
            "the run time of task a is -1",
        ),
        ("{\"workflow\": 3}", &[], "is no list"),
        ("{\"workflow\": ", &[], "this is no JSON"),
        ("digraph g { a }", &["--machine", "m.toml", "--runtime", "1"], "leave them out"),
        ("PROCESSES", &["--rate", "1G"], "--rate and --runtime are for workflows"),
    ] {
        let ran = pbsctl(&[&["plan", "import", "-"], arguments].concat(), text);
        assert_ne!(ran.status, 0, "{text}: {}", ran.stdout);
        assert!(ran.stderr.contains(told), "{text}: {told}: {}", ran.stderr);
    }
    let names = |of: &str| (0..3000).map(|n| format!("{of}{n} ")).collect::<String>();
    let dense = format!("digraph g {{ {{ {} }} -> {{ {} }} }}", names("a"), names("b"));
    let ran = pbsctl(&["plan", "import", "-", "--runtime", "1"], &dense);
    assert!(ran.stderr.contains("at most 1048576 arrows"), "{}", ran.stderr);
    let nested = format!("digraph g {}", "{".repeat(100_000));
    let ran = pbsctl(&["plan", "import", "-"], &nested);
    assert!(ran.stderr.contains("nested too deeply"), "{}", ran.stderr);
}

/// A task of no length is taken, and keeps its place in the order.
#[test]
fn tasks_of_no_length_are_taken() {
    let job = "name = \"z\"\ndeadline_ns = \"100s\"\n[[process]]\nid = 1\nname = \"index\"\n\
               memory_bytes = \"1MiB\"\ntasks = [{ name = \"index\", insns = 0 }]\n[[process]]\nid = 2\n\
               name = \"map\"\nmemory_bytes = \"1MiB\"\n\
               tasks = [{ name = \"map\", insns = \"1G\", after = [\"index\"] }]\n";
    let graph = "name = \"z\"\n[[task]]\nname = \"index\"\n[[task.variant]]\nmodel = \"cpu\"\n\
                 runtime_ns = \"0s\"\n[[task]]\nname = \"map\"\nafter = [\"index\"]\n\
                 [[task.variant]]\nmodel = \"cpu\"\nruntime_ns = \"3s\"\n";
    for text in [job, graph] {
        let ran = pbsctl(&["job", "check", "-"], text);
        assert_eq!(ran.status, 0, "{}", ran.stderr);
    }
}
