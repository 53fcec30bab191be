// SPDX-License-Identifier: GPL-2.0
//! Task graphs, and machines with devices: what is read of them, and what is told.

use pbs_job::graph::{
    graph_from_toml, is_graph, lanes_from_text, lanes_to_text, ProgramLane, Target,
};
use pbs_job::{machine_from_toml, machine_to_toml, Problem};

const GRAPH: &str = r#"
name = "filter"
deadline_ns = "10s"
priority = 3

[[task]]
name = "load"
memory_bytes = "4MiB"
[[task.variant]]
model = "cpu"
insns = "20M"
command = ["load", "{lane}", "{lanes}"]

[[task]]
name = "step"
repeat = 3
after = [{ task = "load", bytes = 8_000, transfer_ns = "1us" }]
variant = [
    { model = "omp", threads = 4, runtime_ns = "115.801ms" },
    { model = "ocl", device = "gpu", runtime_ns = 7 },
]

[[task]]
name = "side"
repeat = 2
chained = false
[[task.variant]]
model = "cpu"

[[task]]
name = "end"
after = ["step", "side", "step.1"]
[[task.variant]]
model = "cpu"
runtime_ns = 1
"#;

fn told<T>(result: Result<T, Vec<Problem>>) -> Vec<String> {
    let problems = result.err().unwrap_or_default();
    let told = problems.iter().map(|problem| problem.in_file("g").to_string());
    told.collect()
}

#[test]
fn graphs_are_read() {
    assert!(is_graph(GRAPH));
    assert!(!is_graph("name = \"a\"\n[[process]]\nid = 1\n"));
    let graph = graph_from_toml(GRAPH).unwrap();
    assert_eq!((graph.start_ns, graph.deadline_ns, graph.priority), (0, Some(10_000_000_000), 3));
    let names: Vec<_> = graph.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["load", "step.1", "step.2", "step.3", "side.1", "side.2", "end"]);
    let after =
        |task: usize| -> Vec<_> { graph.tasks[task].after.iter().map(|edge| edge.task).collect() };
    assert_eq!(after(1), [0]);
    assert_eq!(after(2), [1]);
    assert_eq!(after(5), [] as [usize; 0]);
    // Of a chain the last, of what is not chained all.
    assert_eq!(after(6), [3, 4, 5, 1]);
    let edge = graph.tasks[1].after[0];
    assert_eq!((edge.bytes, edge.transfer_ns), (8_000, Some(1_000)));
    let [omp, ocl] = &graph.tasks[3].variants[..] else { panic!("{:?}", graph.tasks[3]) };
    assert_eq!((omp.label(), ocl.label()), ("omp 4".into(), "ocl gpu".into()));
    assert_eq!(omp.target, Target::Threads(4));
    assert_eq!(omp.runtime_ns(1), Some(115_801_000));
    let load = &graph.tasks[0];
    assert_eq!(load.memory_bytes, 4 << 20);
    assert_eq!(load.variants[0].runtime_ns(1_000_000_000), Some(20_000_000));
    assert_eq!(load.variants[0].command, ["load", "{lane}", "{lanes}"]);
    assert_eq!(graph.tasks[4].variants[0].runtime_ns(1), None);
}

/// A cycle is refused with its tasks.
#[test]
fn cycles_are_named() {
    let text = GRAPH.replace("name = \"load\"\n", "name = \"load\"\nafter = [\"end\"]\n");
    assert_eq!(
        told(graph_from_toml(&text)),
        ["g:6: tasks load, step.1, step.2, step.3, end wait for each other in a circle and can \
             never start; remove one from an after"]
    );
    let itself = GRAPH.replace("name = \"load\"\n", "name = \"load\"\nafter = [\"load\"]\n");
    assert_eq!(
        told(graph_from_toml(&itself)),
        ["g:6: tasks load wait for each other in a circle and can never start; remove one from \
             an after"]
    );
}

#[test]
fn what_is_wrong_with_a_graph_is_told() {
    let cases: [(&str, &str, &str); 14] = [
        ("name = \"filter\"", "", "g: the job has no name"),
        (
            "deadline_ns = \"10s\"",
            "deadline_ns = 1\nstart_ns = 1",
            "g: the job's deadline is not after",
        ),
        ("[\"step\",", "[\"stop\",", "waits for stop, which is not there; did you mean step?"),
        ("\"step.1\"]", "\"step.3\"]", "waits for step.3 twice"),
        ("\"side\"\nrepeat", "\"step\"\nrepeat", "there is a task step already"),
        ("threads = 4,", "threads = 0,", "threads is 0; it must be between 1 and 8_192"),
        ("device = \"gpu\",", "device = \"gpu\", threads = 1,", "has both threads and a device"),
        ("model = \"ocl\",", "", "a variant of task step has no model"),
        ("repeat = 3", "repeat = 30_000", "repeat is 30_000; it must be between 1 and 10_000"),
        ("repeat = 3", "repeat = 9_999", "the job has 10003 tasks, and at most 10000 are allowed"),
        ("runtime_ns = 7", "runtime_ns = -1", "runtime_ns is -1; it must be between 0"),
        (
            "model = \"ocl\", device = \"gpu\"",
            "model = \"omp\", threads = 4",
            "has the variant omp 4 twice",
        ),
        ("chained = false", "chianed = false", "did you mean chained?"),
        (
            "[[task.variant]]\nmodel = \"cpu\"\n\n[[task]]\nname = \"end\"",
            "[[task]]\nname = \"end\"",
            "task side has no variant",
        ),
    ];
    for (from, to, expected) in cases {
        assert!(GRAPH.contains(from), "{from}");
        let told = told(graph_from_toml(&GRAPH.replacen(from, to, 1)));
        assert!(told.iter().any(|told| told.contains(expected)), "{expected}: {told:#?}");
    }
    assert_eq!(
        told(graph_from_toml("name = \"a\"")),
        ["g: the job has neither a [[process]] nor a [[task]]; add one"]
    );
}

const MACHINE: &str = r#"
name = "lab"
[[node]]
name = "n"
memory_bytes = 1_000_000
rate_insns_per_s = 1_000
cores = ["c0", "c1"]
[[device]]
kind = "gpu"
models = ["ocl", "cuda"]
count = 2
host_cpu = 1
host_permille = 50
link_bytes_per_s = 4_000_000_000
[[sharing]]
level = "llc"
cpus = [1, 0]
"#;

/// Devices have kinds, and CPUs declare the memory that they share.
#[test]
fn machines_declare_devices_and_sharing_of_cpus() {
    let machine = machine_from_toml(MACHINE).unwrap();
    let gpu = &machine.devices[0];
    assert_eq!((gpu.count, gpu.host_cpu, gpu.host_permille), (2, Some(1), 50));
    assert_eq!(gpu.models, ["ocl", "cuda"]);
    assert_eq!(gpu.transfer_ns(4_000_000), 1_000_000);
    assert_eq!(machine.sharing[0].cpus, [0, 1]);
    let mut again = machine_from_toml(&machine_to_toml(&machine)).unwrap();
    // But for the lines.
    again.nodes[0].line = machine.nodes[0].line;
    again.devices[0].line = machine.devices[0].line;
    again.sharing[0].line = machine.sharing[0].line;
    assert_eq!(again, machine);
    let cases = [
        ("kind = \"gpu\"\n", "", "the device has no kind"),
        ("\"gpu\"", "\"cpu\"", "kind cpu is reserved for cores"),
        ("[\"ocl\", \"cuda\"]", "[]", "models of device gpu is empty"),
        ("= 50", "= 1001", "host_permille of device gpu is 1_001; it must be between 0 and 1000"),
        ("count = 2", "count = 0", "count of device gpu is 0; it must be between 1 and 1024"),
        ("host_cpu = 1", "host_cpu = 5", "host_cpu of device gpu is 5, which the machine does not"),
        ("\"llc\"", "\"l3\"", "there is no level l3"),
        ("[1, 0]", "[1, 7]", "CPU 7 shares llc, but the machine does not have this CPU"),
        ("[1, 0]", "[1, 1]", "llc is shared by at least two CPUs"),
        ("[1, 0]", "[1]", "llc is shared by at least two CPUs"),
    ];
    for (from, to, expected) in cases {
        let told = told(machine_from_toml(&MACHINE.replacen(from, to, 1)));
        assert!(told.iter().any(|told| told.contains(expected)), "{expected}: {told:#?}");
    }
}

/// A program that runs all tasks itself takes the place of the commands.
#[test]
fn a_program_runs_all_tasks_or_each_has_its_command() {
    let text = "name = \"sum\"\nprogram = [\"sum\", \"2\"]\n[[task]]\nname = \"add\"\n\
                [[task.variant]]\nmodel = \"CPU\"\n";
    let graph = graph_from_toml(text).unwrap();
    assert_eq!(graph.program, ["sum", "2"]);
    assert_eq!(pbs_job::graph_to_json(&graph)["program"], serde_json::json!(["sum", "2"]));
    assert_eq!(
        told(graph_from_toml(&format!("{text}command = [\"add\"]\n"))),
        ["g:3: task add has a command, and the job has a program that runs all tasks; remove one of \
          them"]
    );
    let no_list = text.replace("[\"sum\", \"2\"]", "\"sum 2\"");
    assert_eq!(
        told(graph_from_toml(&no_list)),
        ["g:2: program is no list; write its words: program = [\"prog\", \"argument\"]"]
    );
}

#[test]
fn lanes_of_programs_survive_the_environment() {
    let lane = |task, variant, instance| ProgramLane { task, variant, instance };
    let processes = vec![vec![lane(0, 1, 0), lane(3, 0, 2)], vec![lane(1, 0, 0)]];
    assert_eq!(lanes_to_text(&processes), "0:1:0,3:0:2;1:0:0");
    assert_eq!(lanes_from_text("0:1:0,3:0:2;1:0:0"), Some(processes));
    for wrong in ["", "0:1", "0:1:0:0", "0:1:0,", "0:1:-1", ";"] {
        assert_eq!(lanes_from_text(wrong), None, "{wrong}");
    }
}
