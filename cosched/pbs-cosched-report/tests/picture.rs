// SPDX-License-Identifier: GPL-2.0
//! Links and hosts of accelerators in pictures.

use pbs_cosched_report::lanes::Question;
use pbs_cosched_report::{plan, Case, Settings};
use pbs_job::graph::graph_from_toml;
use pbs_job::machine_from_toml;

/// Two accelerators on one host: a task takes a tenth of its time, and a mebibyte takes 1 ms.
const MACHINE: &str = r#"
[[node]]
name = "n"
memory_bytes = 1_000_000_000
rate_insns_per_s = 1_000_000_000
cores = [{ name = "a", cpu = 4 }, { name = "b", cpu = 5 }]
[[device]]
kind = "gpu"
models = ["cuda"]
count = 2
host_cpu = 5
host_permille = 100
link_bytes_per_s = 1_048_576_000
"#;

/// Two tasks of the accelerators that need data from the CPU.
const GRAPH: &str = r#"
name = "g"
[[task]]
name = "load"
[[task.variant]]
model = "cpu"
runtime_ns = "10ms"
[[task]]
name = "left"
after = [{ task = "load", bytes = 2_097_152 }]
[[task.variant]]
model = "cuda"
device = "gpu"
runtime_ns = "50ms"
[[task]]
name = "right"
after = [{ task = "load", bytes = 1_048_576 }]
[[task.variant]]
model = "cuda"
device = "gpu"
runtime_ns = "50ms"
"#;

#[test]
fn pictures_show_links_and_what_tasks_take_of_their_host() {
    let machine = machine_from_toml(MACHINE).unwrap();
    let graph = graph_from_toml(GRAPH).unwrap();
    let question = Question::new(&[graph], &machine, |_, _, _| None).unwrap();
    let case = Case::new(&question, 0).unwrap();
    let planned = plan(&case, &Settings::default()).unwrap();
    let placements = planned.placements(&case);
    assert_eq!(placements.threads, ["CPU 4", "CPU 5"]);
    assert_eq!(placements.accelerators, ["gpu 0", "gpu 1", "gpu 0 link", "gpu 1 link"]);
    let placed = |task: &str, label: &str| {
        let tasks = &placements.panels[0].tasks;
        let found = tasks.iter().find(|of| of.task == task && of.label.starts_with(label));
        let found = found.unwrap_or_else(|| panic!("{task} {label}: {tasks:?}"));
        (found.rows.clone(), found.start_ns / 1_000, found.end_ns / 1_000)
    };
    assert_eq!(placed("left", "transfer"), (vec![4], 10_000, 12_000));
    assert_eq!(placed("right", "transfer"), (vec![5], 10_000, 11_000));
    // Both begin on CPU 5, one after the other; they run beside each other.
    assert_eq!(placed("left", "for gpu"), (vec![1], 12_000, 17_000));
    assert_eq!(placed("right", "for gpu"), (vec![1], 17_000, 22_000));
    assert_eq!(placed("left", "cuda gpu"), (vec![2], 12_000, 62_000));
    assert_eq!(placed("right", "cuda gpu"), (vec![3], 17_000, 67_000));
}
