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
    // Some editors put a mark of the encoding before all.
    let text = format!("\u{feff}{text}");
    let ran = pbsctl(&["plan", "import", "-", "--name", "new"], &text);
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
                -> done [bytes=64, style=dotted];\n  subgraph cluster_0 { sort [Cores=2, label=\"\"] }\n\
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

/// Fields of a task that the result lacks are named, also fields that nobody here knows.
#[test]
fn fields_that_are_not_read_are_named() {
    let text = r#"{"workflow": {"specification": {"tasks": [
        {"name": "a", "id": "1", "parents": [], "inputFiles": [], "executedAt": "now"},
        {"name": "b", "id": "2", "parents": ["1"], "outputFiles": ["f"], "deadline": 5}],
        "files": [{"id": "f", "sizeInBytes": 1.5}]},
        "execution": {"tasks": [
        {"id": "1", "runtimeInSeconds": 1, "machines": ["m"], "priority": 20},
        {"id": "9", "runtimeInSeconds": 7}]}}}"#;
    let ran = pbsctl(&["plan", "import", "-", "--runtime", "1"], text);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    for told in [
        "fields of tasks are left out: deadline, machines, priority\n",
        "1 task of the execution is left out: no task has its id",
    ] {
        assert!(ran.stderr.contains(told), "{told}: {}", ran.stderr);
    }
}

/// Tools name nodes by numbers, and write the names of tasks into labels.
#[test]
fn tasks_are_called_by_their_labels() {
    let text =
        "digraph g {\n  0 [label=\"all\"]; 1 [label = \"sort\\nby: \" + \"name\", shape=box];\n\
                2 [label=\"map\"]; 3 [label=\"map\"]; 4 [label=<<b>the</b> <i>last</i>>]\n\
                a [label=a]; b [label=\"\\N 2\"]; c [label=0]; d [label=\"\"]; e\n\
                0 -> 1 -> {2 3} -> 4\n}\n";
    let ran = pbsctl(&["plan", "import", "-", "--runtime", "1"], text);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    let names: Vec<_> =
        ran.stdout.lines().filter_map(|line| line.strip_prefix("name = ")).collect();
    let expected = [
        "g",
        "all",
        "sort by: name",
        "map (2)",
        "map (3)",
        "the last",
        "a",
        "b 2",
        "0 (c)",
        "d",
        "e",
    ];
    assert_eq!(names, expected.map(|name| format!("\"{name}\"")));
    assert!(ran.stdout.contains("after = [\"map (2)\", \"map (3)\"]"), "{}", ran.stdout);
    let long = format!("digraph g {{ n [label=\"{}\"] }}", "x".repeat(201));
    let ran = pbsctl(&["plan", "import", "-", "--runtime", "1"], &long);
    assert!(ran.stdout.contains("name = \"n\""), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn figures_under_other_names_are_reported() {
    let text = "digraph g { a [size=5]; b [WCET=7, RunTime=2]; a -> b [size=8]; }";
    let ran = pbsctl(&["plan", "import", "-", "--runtime", "1"], text);
    for told in ["other figures of tasks, such as size", "size of arrows is left out"] {
        assert!(ran.stderr.contains(told), "{told}: {}", ran.stderr);
    }
    assert!(ran.stdout.contains("runtime_ns = 2_000_000_000"), "{}", ran.stdout);
}

#[test]
fn what_is_wrong_with_a_workflow_is_told() {
    for (text, arguments, told) in [
        ("digraph g { a -> b; b -> c; }", &[][..], "3 of 3 tasks have no run time; add --runtime"),
        // The line of a circle would be one of the result.
        ("digraph g { a -> b; b -> a; }", &["--runtime", "1"], "standard input: tasks a, b wait"),
        ("", &[], "standard input: it is empty; name a file with a plan"),
        ("<adag><job/></adag>", &[], "it is none of these; name a file with a plan"),
        ("{\"tasks\": []}", &[], "WfFormat (JSON with \"workflow\")"),
        ("graph g { a -- b }", &[], "write digraph"),
        ("digraph g { a -- b }", &[], "-- has no direction"),
        ("digraph g {\n a -> [b]", &[], "2: [ is no name of a task"),
        ("digraph g {\n a -> b", &[], "a brace { has no end"),
        ("digraph g { a [runtime=soon] }", &[], "runtime is soon; write a number of seconds"),
        ("digraph g { a [memory=4G] }", &[], "memory is 4G; write a number of bytes"),
        ("digraph g { a [label=<b> }", &[], "} is no attribute; close the list by ]"),
        ("digraph g { a [label=<<b> }", &[], "a text in HTML, which begins with <, has no end"),
        ("digraph g { a [label=\"b\" + c] }", &[], "+ joins quoted text"),
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
        (
            "{\"workflow\": {\"tasks\": [{\"id\": \"a\", \"runtime\": 5e9}]}}",
            &[],
            "the run time of task a is 5000000000.0; write seconds, at most 4e9",
        ),
        (
            "{\"workflow\": {\"tasks\": [{\"id\": \"a\", \"cores\": \"4\"}]}}",
            &[],
            "cores of task a is \"4\"; write a number",
        ),
        (
            "{\"workflow\": {\"tasks\": [{\"id\": \"a\", \"children\": [1]}]}}",
            &[],
            "names the child 1, which is no text",
        ),
        (
            "{\"workflow\": {\"tasks\": [{\"id\": \"1\", \"name\": \"x\"}, {\"id\": \"2\", \
             \"name\": \"x\"}, {\"id\": \"3\", \"parents\": [\"x\"]}]}}",
            &[],
            "names the parent x, which is the name of several tasks",
        ),
        (
            "{\"workflow\": {\"tasks\": [{\"id\": \"a\", \"files\": [{\"link\": \"output\", \
             \"name\": \"f\", \"size\": \"4K\"}]}]}}",
            &[],
            "the size of file f is \"4K\"; write a number of bytes",
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

/// The machine of a directory does not replace its job.
#[test]
fn job_and_machine_go_to_two_files() {
    let file = common::scratch("job-and-machine.toml");
    let (file, folder) = (file.to_str().unwrap(), file.parent().unwrap().to_str().unwrap());
    let import = ["plan", "import", folder, "--output", file, "--machine", file];
    let ran = pbsctl(&import, "");
    assert_eq!((ran.status, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains("--output and --machine both name"), "{}", ran.stderr);
    let ran = pbsctl(&["plan", "import", "-", "--output", "plan.json"], "1;0,9;;0,0,1,1;");
    assert_eq!((ran.status, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains("written as TOML, and not as json"), "{}", ran.stderr);
}

#[test]
fn a_plan_has_no_name() {
    let import = ["plan", "import", "-", "--name", "x"];
    let ran = pbsctl(&import, "1;0,9;;0,0,1,1;");
    assert_eq!((ran.status, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains("--name is for jobs: for workflows, and"), "{}", ran.stderr);
}

/// Figures of all tasks of a group, and sizes of data, are not lost; what is lost is named also
/// where the import fails.
#[test]
fn defaults_of_graphviz_are_read() {
    let text = "digraph g { node [runtime=10, cores=2]; edge [bytes=5]; a -> b;\n\
                subgraph s { node [runtime=3]; c } a -> c [bytes=64]; a -> c [bytes=6]; d }\n";
    let ran = pbsctl(&["plan", "import", "-", "--json"], text);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let json = ran.json();
    let toml = json["toml"].as_str().unwrap();
    assert_eq!(toml.matches("runtime_ns = 10_000_000_000").count(), 3, "{toml}");
    assert_eq!(toml.matches("runtime_ns = 3_000_000_000").count(), 1, "{toml}");
    for line in ["{ task = \"a\", bytes = 5 }", "{ task = \"a\", bytes = 70 }"] {
        assert!(toml.contains(line), "{line}: {toml}");
    }
    let strict = pbsctl(&["plan", "import", "-"], &format!("strict {text}"));
    assert!(strict.stdout.contains("{ task = \"a\", bytes = 6 }"), "{}", strict.stdout);
    let other = pbsctl(&["plan", "import", "-"], "digraph g { a [duration=5]; a -> b }");
    assert!(other.stderr.contains("runtime is a task's time in seconds"), "{}", other.stderr);
    assert!(other.stderr.contains("2 of 2 tasks have no run time"), "{}", other.stderr);
}

/// A file that many tasks read is looked at once for each of them, and problems are counted.
#[test]
fn a_workflow_of_many_parents_and_files_is_read() {
    const MANY: usize = 3_000;
    let names: Vec<String> = (0..MANY).map(|at| format!("t{at}")).collect();
    let task = |name: &String| {
        serde_json::json!({ "id": name, "runtimeInSeconds": 1, "outputFiles": [format!("{name}.out")],
            "children": ["last"] })
    };
    let mut tasks: Vec<_> = names.iter().map(task).collect();
    let outputs: Vec<String> = names.iter().map(|name| format!("{name}.out")).collect();
    tasks.push(serde_json::json!({ "id": "last", "runtimeInSeconds": 1, "parents": names,
        "inputFiles": outputs }));
    let files: Vec<_> =
        outputs.iter().map(|id| serde_json::json!({ "id": id, "sizeInBytes": 7 })).collect();
    let whole = serde_json::json!({ "name": "wide",
        "workflow": { "specification": { "tasks": tasks, "files": files } } });
    let ran = pbsctl(&["plan", "import", "-"], &whole.to_string());
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(ran.stdout.matches("bytes = 7 }").count(), MANY);
    let lost: Vec<_> = names
        .iter()
        .map(|name| serde_json::json!({ "id": name, "runtimeInSeconds": 1, "parents": ["x"] }))
        .collect();
    let lost = serde_json::json!({ "workflow": { "specification": { "tasks": lost } } });
    let ran = pbsctl(&["plan", "import", "-"], &lost.to_string());
    assert!(ran.stderr.contains("and 2988 more problems"), "{}", ran.stderr);
}
