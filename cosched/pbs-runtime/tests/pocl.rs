// SPDX-License-Identifier: GPL-2.0
//! Kernels on whatever OpenCL is there; skipped, with the reason, where there is none.

use std::time::Duration;

use pbs_runtime::opencl::{devices, FoundDevice};
use pbs_runtime::{Access, Error, Graph, Kernel, Model, Options, Region, Runtime, Task, Variant};

const SHORT: Duration = Duration::from_millis(1);
const DOUBLE: &str = "__kernel void twice(__global const uint *from, __global uint *to) {
    size_t i = get_global_id(0);
    to[i] = from[i] * 2;
}
__kernel void number(uint by) { }";

/// A runtime with one thread and the first OpenCL device.
fn runtime() -> Option<Runtime> {
    let mut found = match devices() {
        Ok(found) => found,
        Err(why) => {
            pbs_text::skipped(&format!("it needs OpenCL ({why}): make setup FOR=opencl"));
            return None;
        }
    };
    found.truncate(1);
    assert!(found[0].memory_bytes > 0 && !found[0].name.is_empty());
    let options = Options {
        threads: 1,
        devices: vec![FoundDevice::spec("opencl", &found)],
        ..Options::default()
    };
    Some(Runtime::new(options).unwrap())
}

fn kernel(source: &str, name: &str) -> Variant {
    let kernel = Kernel { source: source.into(), name: name.into(), items: 4 };
    Variant::kernel(kernel).taking(SHORT)
}

#[test]
fn an_opencl_kernel_and_the_host_have_the_same_result() {
    let Some(runtime) = runtime() else { return };
    let content: Vec<u8> = [1_u32, 2, 3, 4].iter().flat_map(|of| of.to_ne_bytes()).collect();
    let (from, to, last) =
        (Region::new(content), Region::new(vec![0; 16]), Region::new(vec![0; 16]));
    let on_host = Variant::cpu(|context| {
        let (from, to) = context.read_write(0, 1)?;
        for (from, to) in from.chunks_exact(4).zip(to.chunks_exact_mut(4)) {
            let number = u32::from_ne_bytes([from[0], from[1], from[2], from[3]]);
            to.copy_from_slice(&(number * 2).to_ne_bytes());
        }
        Ok(())
    });
    let mut graph = Graph::new();
    let twice = |name: &str, variant: Variant, from: &Region, to: &Region| {
        let task = Task::new(name).variant(variant);
        task.region(from, Access::Read).region(to, Access::Write)
    };
    graph.add(twice("device", kernel(DOUBLE, "twice"), &from, &to));
    graph.add(twice("host", on_host.taking(SHORT), &to, &last));
    let report = runtime.run(&graph).unwrap();
    let models: Vec<_> = report.tasks.iter().map(|task| task.model).collect();
    assert_eq!(models, [Model::Ocl, Model::Cpu]);
    let expected = |by: u32| -> Vec<u8> {
        let numbers = [1_u32, 2, 3, 4].into_iter();
        numbers.flat_map(|of| (of * by).to_ne_bytes()).collect()
    };
    assert_eq!((to.content(), last.content()), (expected(2), expected(4)));
    assert_eq!(runtime.device_memory_bytes(), 0);
}

#[test]
fn kernels_that_cannot_be_are_told() {
    let Some(runtime) = runtime() else { return };
    let regions = [Region::new(vec![0; 16]), Region::new(vec![0; 16])];
    let cases = [
        ("__kernel void broken( {", "broken", 2, "kernel broken is not built"),
        ("", "empty", 2, "kernel empty has no source"),
        (DOUBLE, "nothing", 2, "the program has no kernel nothing"),
        (DOUBLE, "twice", 1, "the kernel has 2 arguments, and the task 1 regions"),
        (DOUBLE, "number", 1, "argument 0 of kernel number is not in global memory"),
    ];
    for (source, name, count, expected) in cases {
        let mut task = Task::new("t").variant(kernel(source, name));
        for region in &regions[..count] {
            task = task.region(region, Access::ReadWrite);
        }
        let mut graph = Graph::new();
        graph.add(task);
        let Err(Error::Failed { why, .. }) = runtime.run(&graph) else { panic!("{name} ran") };
        assert!(why.contains(expected), "{why}");
    }
}
