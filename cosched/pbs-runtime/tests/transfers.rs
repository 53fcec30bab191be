// SPDX-License-Identifier: GPL-2.0
//! Transfers in decisions: sizes and links that programs declare.

mod common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{gpu, options};
use pbs_runtime::{Access, Graph, InMemory, Model, Profiles, Region, Runtime, Task, Variant};

const MEBIBYTE: usize = 1 << 20;
/// A mebibyte takes 10 ms.
const SLOW_LINK_BYTES_PER_S: u64 = 100 * MEBIBYTE as u64;

/// A task that is slower by 4 ms on the CPU, and notes the model as which it runs.
fn faster_on_the_gpu(ran: &Arc<Mutex<Vec<Model>>>) -> Task {
    let note = |model: Model| {
        let ran = ran.clone();
        move |_: &mut pbs_runtime::Context<'_>| {
            ran.lock().unwrap().push(model);
            Ok(())
        }
    };
    let on_cpu = Variant::cpu(note(Model::Cpu)).taking(Duration::from_millis(5));
    let on_gpu = Variant::simulated(Model::Gpu, Duration::from_millis(1), note(Model::Gpu));
    Task::new("work").variant(on_cpu).variant(on_gpu)
}

/// Returns the model as which the last task of a graph runs, with a link that slow.
fn chosen(link_bytes_per_s: Option<u64>, graph: impl Fn(Task) -> Graph) -> Model {
    let mut own = options(1);
    own.devices.push(gpu("gpu", 1, 1 << 30));
    own.devices[0].link_bytes_per_s = link_bytes_per_s;
    let ran = Arc::new(Mutex::new(Vec::new()));
    Runtime::new(own).unwrap().run(&graph(faster_on_the_gpu(&ran))).unwrap();
    let ran = ran.lock().unwrap();
    *ran.last().unwrap()
}

/// The first transfers of a device are those of a region without bytes.
#[test]
fn an_empty_region_says_nothing_of_a_link() {
    let profiles = Arc::new(InMemory::default());
    let mut own = options(1);
    own.devices.push(gpu("gpu", 1, 1 << 20));
    own.profiles = profiles.clone();
    let runtime = Runtime::new(own).unwrap();
    let run = |bytes: usize| {
        let on_gpu = Variant::simulated(Model::Gpu, Duration::from_micros(10), |_| Ok(()));
        let region = Region::new(vec![0; bytes]);
        let mut graph = Graph::new();
        graph.add(Task::new("work").variant(on_gpu).region(&region, Access::ReadWrite));
        runtime.run(&graph).unwrap();
    };
    run(0);
    assert_eq!(profiles.transfer_ns("gpu", 1), None);
    run(MEBIBYTE / 2);
    assert!(profiles.transfer_ns("gpu", 1).is_some());
}

fn alone(task: Task) -> Graph {
    let mut graph = Graph::new();
    graph.add(task);
    graph
}

/// A task behind one that runs on the CPU alone.
fn second(task: Task) -> Graph {
    let mut graph = Graph::new();
    let first = Variant::cpu(|_| Ok(())).taking(Duration::from_millis(1));
    let first = graph.add(Task::new("first").variant(first));
    graph.add(task.after(first));
    graph
}

#[test]
fn declared_bytes_keep_a_task_from_a_device_behind_a_slow_link() {
    let slow = Some(SLOW_LINK_BYTES_PER_S);
    for graph in [alone, second] {
        assert_eq!(chosen(slow, graph), Model::Gpu, "it transfers nothing");
        let transferring = |task: Task| graph(task.transferring(MEBIBYTE as u64));
        assert_eq!(chosen(slow, transferring), Model::Cpu);
        assert_eq!(chosen(Some(u64::MAX), transferring), Model::Gpu, "the link is fast");
        assert_eq!(chosen(None, transferring), Model::Gpu, "the link is unknown");
    }
}

#[test]
fn regions_that_are_read_are_transferred_unless_a_task_declares_less() {
    let slow = Some(SLOW_LINK_BYTES_PER_S);
    let region = Region::new(vec![0; MEBIBYTE]);
    let with = |access| {
        let region = region.clone();
        move |task: Task| alone(task.region(&region, access))
    };
    assert_eq!(chosen(slow, with(Access::Read)), Model::Cpu);
    assert_eq!(chosen(slow, with(Access::Write)), Model::Gpu);
    let reads_little = |task: Task| with(Access::Read)(task.transferring(64));
    assert_eq!(chosen(slow, reads_little), Model::Gpu);
}
