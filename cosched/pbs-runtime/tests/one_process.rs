// SPDX-License-Identifier: GPL-2.0
//! A process alone: graphs, devices, calibration.

mod common;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{add, gpu, number, options, Directory};
use pbs_runtime::{
    Accelerator, Access, Argument, Body, Buffer, DeviceSpec, Error, Graph, InMemory, Key, Model,
    Options, Profiles, Region, Runtime, Simulated, Task, Unprofiled, Variant, MOST_UNITS,
};

const SHORT: Duration = Duration::from_micros(200);

/// A chain over one region, whose tasks add 1, 2, 3 ...
fn chain(region: &Region, tasks: u64, variants: &[Variant]) -> Graph {
    let mut graph = Graph::new();
    for number in 1..=tasks {
        let mut task = Task::new(&format!("t{number}")).kind("add");
        for variant in variants {
            task = task.variant(variant.clone());
        }
        graph.add(task.region(region, Access::ReadWrite));
    }
    graph
}

#[test]
fn a_chain_runs_in_order_on_the_cpu() {
    let runtime = Runtime::new(options(2)).unwrap();
    let region = number(0);
    let graph = chain(&region, 5, &[add(1).taking(SHORT)]);
    let report = runtime.run(&graph).unwrap();
    assert_eq!(region.content(), 5_u64.to_ne_bytes());
    let ends: Vec<_> = report.tasks.iter().map(|task| task.ended_ns).collect();
    assert!(ends.is_sorted(), "{ends:?}");
    assert_eq!(report.rebuilds, 0);
}

/// Who ends a task of a chain executes the next one.
#[test]
fn a_chain_takes_one_thread() {
    let runtime = Runtime::new(options(2)).unwrap();
    let region = number(0);
    let threads: Arc<Mutex<Vec<_>>> = Arc::default();
    let noting = threads.clone();
    let notes = Variant::cpu(move |_| {
        noting.lock().unwrap().push(std::thread::current().id());
        Ok(())
    });
    runtime.run(&chain(&region, 200, &[notes.taking(SHORT)])).unwrap();
    let threads = threads.lock().unwrap();
    assert_eq!(threads.len(), 200);
    assert!(threads.iter().all(|thread| *thread == threads[0]), "{threads:?}");
}

/// A profile that panics at one of the runs of which it is told.
#[derive(Debug, Default)]
struct Panicking {
    runs: AtomicU32,
    profiles: InMemory,
}

impl Profiles for Panicking {
    fn runtime_ns(&self, key: &Key) -> Option<u64> {
        self.profiles.runtime_ns(key)
    }

    fn ran(&self, _: &Key, _: u64) {
        assert_ne!(self.runs.fetch_add(1, Ordering::Relaxed), 3, "as it was told to");
    }

    fn transfer_ns(&self, device: &str, bytes: u64) -> Option<u64> {
        self.profiles.transfer_ns(device, bytes)
    }

    fn transferred(&self, _: &str, _: u64, _: u64) {}

    fn cost(&self, scheduler: &str) -> Option<pbs_cosched::Cost> {
        self.profiles.cost(scheduler)
    }

    fn co_scheduled(&self, _: &str, _: usize, _: u64) {}
}

/// After a panic in what a worker calls, the tasks of other workers end, and no other task begins.
#[test]
fn nothing_runs_after_a_panic_of_a_profile() {
    let own = Options { profiles: Arc::new(Panicking::default()), ..options(2) };
    let runtime = Runtime::new(own).unwrap();
    let (begun, ended) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let counts = (begun.clone(), ended.clone());
    let counting = Variant::cpu(move |_| {
        counts.0.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(5));
        counts.1.fetch_add(1, Ordering::SeqCst);
        Ok(())
    });
    let mut graph = Graph::new();
    for number in 0..40 {
        let task = Task::new(&format!("t{number}")).kind("counts");
        graph.add(task.variant(counting.clone().taking(SHORT)));
    }
    assert!(runtime.run(&graph).is_err());
    let at_its_end = begun.load(Ordering::SeqCst);
    assert_eq!(ended.load(Ordering::SeqCst), at_its_end);
    assert!(at_its_end < 40);
    std::thread::sleep(Duration::from_millis(30));
    assert_eq!(begun.load(Ordering::SeqCst), at_its_end);
    // Nothing of the graph is left.
    drop((graph, counting));
    assert_eq!(Arc::strong_count(&begun), 1);
}

/// A panic in what a worker calls ends the graph, and the runtime goes on.
#[test]
fn a_panic_of_a_profile_ends_its_graph_alone() {
    let own = Options { profiles: Arc::new(Panicking::default()), ..options(2) };
    let runtime = Runtime::new(own).unwrap();
    let graph = |region: &Region| chain(region, 5, &[add(1).taking(SHORT)]);
    let told = runtime.run(&graph(&number(0))).unwrap_err().to_string();
    assert_eq!(told, "a thread of the runtime has panicked");
    for _ in 0..8 {
        let region = number(0);
        runtime.run(&graph(&region)).unwrap();
        assert_eq!(region.content(), 5_u64.to_ne_bytes());
    }
}

#[test]
fn simulated_accelerators_give_the_result_of_the_host() {
    let mut own = options(1);
    own.devices.push(gpu("gpu", 2, 1 << 20));
    let runtime = Runtime::new(own).unwrap();
    let regions = [number(10), number(20), number(30)];
    let mut graph = Graph::new();
    for (index, region) in regions.iter().enumerate() {
        let add = |context: &mut pbs_runtime::Context<'_>| {
            let content = context.write(0)?;
            content[0] += 1;
            Ok(())
        };
        let variant = Variant::simulated(Model::Gpu, SHORT, add);
        graph.add(
            Task::new(&format!("t{index}")).variant(variant).region(region, Access::ReadWrite),
        );
    }
    let report = runtime.run(&graph).unwrap();
    for (region, expected) in regions.iter().zip([11, 21, 31_u64]) {
        assert_eq!(region.content(), expected.to_ne_bytes());
    }
    for task in &report.tasks {
        assert_eq!((task.model, task.device.as_str()), (Model::Gpu, "gpu"));
        assert!(task.ended_ns - task.started_ns >= SHORT.as_nanos() as u64);
        assert!(task.instance.is_some_and(|instance| instance < 2));
    }
    // Two devices: the third had to wait for one of the first.
    let mut spans: Vec<_> = report.tasks.iter().map(|of| (of.started_ns, of.ended_ns)).collect();
    spans.sort_unstable();
    assert!(spans[2].0 >= spans[0].1.min(spans[1].1), "{spans:?}");
    assert_eq!(runtime.device_memory_bytes(), 0);
}

#[test]
fn variants_that_never_ran_are_refused_by_name() {
    let mut own = options(2);
    own.unprofiled = Unprofiled::Refuse;
    let runtime = Runtime::new(own).unwrap();
    let graph = chain(&number(0), 2, &[add(1), Variant::omp(2, |_| Ok(()))]);
    let told = runtime.run(&graph).unwrap_err().to_string();
    assert_eq!(
        told,
        "not profiled: add as CPU with 1 threads on cpu, add as OMP with 2 threads on cpu; \
         run once with calibration, or give runtimes"
    );
}

#[test]
fn variants_that_never_ran_are_calibrated_each_once() {
    let profiles = Arc::new(InMemory::default());
    let mut own = options(2);
    own.profiles = profiles.clone();
    own.devices.push(gpu("gpu", 1, 1 << 20));
    let runtime = Runtime::new(own).unwrap();
    let calls: [Arc<AtomicU32>; 3] = Default::default();
    let counted = |which: usize| {
        let calls = calls[which].clone();
        move |context: &mut pbs_runtime::Context<'_>| {
            calls.fetch_add(1, Ordering::Relaxed);
            context.write(0)?[0] += 1;
            Ok(())
        }
    };
    let gpu = pbs_runtime::Body::Function(Arc::new(counted(2)));
    let variants =
        [Variant::cpu(counted(0)), Variant::omp(2, counted(1)), Variant::new(Model::Gpu, 1, gpu)];
    let region = number(0);
    let graph = chain(&region, 3, &variants);
    let report = runtime.run(&graph).unwrap();
    assert!(report.is_calibration);
    // Three variants of the first task, then one of each other one; each adds once.
    let calls: u32 = calls.iter().map(|of| of.load(Ordering::Relaxed)).sum();
    assert_eq!(calls, 5);
    assert_eq!(region.content(), 3_u64.to_ne_bytes());
    for (model, threads, device) in
        [(Model::Cpu, 1, "cpu"), (Model::Omp, 2, "cpu"), (Model::Gpu, 1, "gpu")]
    {
        let key = Key { task: "add".into(), model, threads, device: device.into() };
        assert!(profiles.runtime_ns(&key).is_some(), "{key:?}");
    }
    assert!(profiles.transfer_ns("gpu", 8).is_some());
    assert!(!runtime.run(&graph).unwrap().is_calibration);
}

#[test]
fn each_iteration_of_a_loop_has_a_mapping_of_its_own() {
    let mut own = options(1);
    own.devices.push(gpu("gpu", 1, 1 << 20));
    let runtime = Runtime::new(own).unwrap();
    // Independent iterations of the same kind: folded, all would be where the first is.
    let mut graph = Graph::new();
    for iteration in 0..6 {
        let both = Task::new(&format!("i{iteration}"))
            .kind("iteration")
            .variant(add(1).taking(SHORT))
            .variant(Variant::simulated(Model::Gpu, SHORT, |_| Ok(())));
        graph.add(both.region(&number(0), Access::ReadWrite));
    }
    let report = runtime.run(&graph).unwrap();
    let on_gpu = report.tasks.iter().filter(|of| of.model == Model::Gpu);
    let on_gpu = on_gpu.count();
    assert!((1..6).contains(&on_gpu), "{on_gpu} of 6 on the GPU");
}

#[test]
fn co_scheduling_off_touches_no_shared_memory() {
    let directory = Directory::new("off");
    let mut own = options(1);
    assert!(own.co_scheduling.is_none());
    own.threads = 1;
    let runtime = Runtime::new(own).unwrap();
    let report = runtime.run(&chain(&number(0), 2, &[add(1).taking(SHORT)])).unwrap();
    assert_eq!(report.alone_because, None);
    assert!(directory.files().is_empty());
    let mapped = std::fs::read_to_string("/proc/self/maps").unwrap();
    // Other tests of this program have theirs in directories of their own.
    assert!(!mapped.contains("/dev/shm/pbs-csimf"));
}

#[test]
fn shared_memory_that_cannot_be_used_is_told_and_the_graph_runs() {
    let directory = Directory::new("unusable");
    std::fs::write(directory.path().join("pbs-csimf"), "no CSIMF").unwrap();
    let runtime = Runtime::new(directory.options(1)).unwrap();
    let region = number(0);
    let report = runtime.run(&chain(&region, 2, &[add(1).taking(SHORT)])).unwrap();
    assert_eq!(region.content(), 2_u64.to_ne_bytes());
    let why = report.alone_because.unwrap();
    assert!(why.contains("8 bytes instead of 262144"), "{why}");
    assert!(why.ends_with("remove it with: pbsctl cosched csi clean --force"), "{why}");
}

#[test]
fn a_task_that_fails_or_panics_ends_the_run_and_leaves_nothing() {
    let directory = Directory::new("fails");
    let runtime = Runtime::new(directory.options(2)).unwrap();
    for (variant, expected) in [
        (Variant::cpu(|_| Err("no luck".into())), "task bad: no luck"),
        (Variant::cpu(|_| panic!("ouch")), "task bad: it panicked: ouch"),
    ] {
        let mut graph = Graph::new();
        let bad = graph.add(Task::new("bad").variant(variant.taking(SHORT)));
        graph.add(Task::new("after").variant(add(1).taking(SHORT)).after(bad));
        let told = runtime.run(&graph).unwrap_err().to_string();
        assert_eq!(told, expected);
        assert!(directory.entries().is_empty());
        assert_eq!(directory.files(), ["pbs-csimf"]);
    }
}

#[test]
fn what_fits_no_device_is_named() {
    let runtime = Runtime::new(options(1)).unwrap();
    let mut graph = Graph::new();
    graph.add(Task::new("wide").variant(Variant::omp(3, |_| Ok(()))));
    assert!(matches!(runtime.run(&graph), Err(Error::NothingFits(name)) if name == "wide"));
}

#[test]
fn device_memory_that_is_too_small_is_made_room_in() {
    let mut own = options(1);
    own.devices.push(gpu("gpu", 1, 12));
    let runtime = Runtime::new(own).unwrap();
    let (one, other) = (number(1), number(2));
    let mut graph = Graph::new();
    for (index, region) in [&one, &other, &one].into_iter().enumerate() {
        let variant = Variant::simulated(Model::Gpu, SHORT, |context| {
            context.write(0)?[0] += 1;
            Ok(())
        });
        let task = Task::new(&format!("t{index}")).variant(variant);
        graph.add(task.region(region, Access::ReadWrite));
    }
    runtime.run(&graph).unwrap();
    assert_eq!(one.content(), 3_u64.to_ne_bytes());
    assert_eq!(other.content(), 3_u64.to_ne_bytes());
    let mut graph = Graph::new();
    let large = Region::new(vec![0; 13]);
    let variant = Variant::simulated(Model::Gpu, SHORT, |_| Ok(()));
    graph.add(Task::new("large").variant(variant).region(&large, Access::Read));
    let told = runtime.run(&graph).unwrap_err().to_string();
    assert_eq!(told, "task large: the device has too little memory for its regions");
}

#[test]
fn threads_stay_on_the_cpus_of_their_task() {
    let own = Options::default();
    let first = own.cpus[0];
    let runtime = Runtime::new(own).unwrap();
    let region = Region::new(vec![0; 8]);
    let mut graph = Graph::new();
    let where_it_is = Variant::cpu(|context| {
        let cpus = pbs_runtime::allowed_cpus().map_err(|error| error.to_string())?;
        let content = context.write(0)?;
        content[..4].copy_from_slice(&(cpus.len() as u32).to_ne_bytes());
        content[4..].copy_from_slice(&cpus[0].to_ne_bytes());
        Ok(())
    });
    graph.add(Task::new("t").variant(where_it_is.taking(SHORT)).region(&region, Access::Write));
    runtime.run(&graph).unwrap();
    let expected = [1_u32.to_ne_bytes(), first.to_ne_bytes()].concat();
    assert_eq!(region.content(), expected);
}

#[test]
fn the_measured_cost_of_co_scheduling_decides() {
    let directory = Directory::new("cost");
    let profiles = Arc::new(InMemory::default());
    let mut own = directory.options(1);
    own.profiles = profiles.clone();
    if let Some(how) = &mut own.co_scheduling {
        how.determination = pbs_cosched::Determination::ALWAYS;
    }
    let runtime = Runtime::new(own).unwrap();
    let report = runtime.run(&chain(&number(0), 3, &[add(1).taking(SHORT)])).unwrap();
    assert_eq!(report.co_schedulings, 1);
    assert!(profiles.cost("evolutionary").is_some_and(|cost| cost.ns(3) > 0));
}

/// A CSI has no room for all dependencies of such a task.
#[test]
fn a_task_behind_and_before_many_others_is_co_scheduled() {
    const TASKS: u32 = 100;
    let directory = Directory::new("fork-join");
    let mut own = directory.options(2);
    if let Some(how) = &mut own.co_scheduling {
        how.determination = pbs_cosched::Determination::ALWAYS;
    }
    let runtime = Runtime::new(own).unwrap();
    let ended = Arc::new(AtomicU32::new(0));
    let counting = |before: Option<u32>| {
        let ended = ended.clone();
        let count = move |_: &mut pbs_runtime::Context<'_>| {
            let others = ended.fetch_add(1, Ordering::Relaxed);
            before.is_none_or(|before| before == others).then_some(()).ok_or("too early".into())
        };
        Variant::cpu(count).taking(SHORT)
    };
    let mut graph = Graph::new();
    let fork = graph.add(Task::new("fork").variant(counting(Some(0))));
    let parts: Vec<_> = (0..TASKS)
        .map(|part| {
            let task = Task::new(&format!("part-{part}")).kind("part");
            graph.add(task.variant(counting(None)).after(fork))
        })
        .collect();
    let join = Task::new("join").variant(counting(Some(TASKS + 1)));
    graph.add(parts.into_iter().fold(join, Task::after));
    let report = runtime.run(&graph).unwrap();
    assert_eq!(report.alone_because, None);
    assert!(report.tasks.iter().all(|of| of.is_co_scheduled));
    assert_eq!(directory.files(), ["pbs-csimf"]);
}

#[test]
fn alone_nothing_is_co_scheduled_but_by_always() {
    let directory = Directory::new("alone");
    let runtime = Runtime::new(directory.options(1)).unwrap();
    let report = runtime.run(&chain(&number(0), 2, &[add(1).taking(SHORT)])).unwrap();
    assert_eq!((report.co_schedulings, report.rebuilds), (0, 0));
    assert_eq!(report.alone_because, None);
    assert!(!report.tasks[0].is_co_scheduled);
    assert_eq!(directory.files(), ["pbs-csimf"]);
}

#[test]
fn graphs_of_several_threads_run_one_after_the_other() {
    let mut own = options(2);
    own.devices.push(gpu("gpu", 1, 1 << 10));
    let runtime = Runtime::new(own).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let region = number(0);
                let on_gpu =
                    Variant::simulated(Model::Gpu, SHORT, |context| common::adding(context, 1));
                runtime.run(&chain(&region, 5, &[on_gpu])).unwrap();
                assert_eq!(region.content(), 5_u64.to_ne_bytes());
            });
        }
    });
}

#[test]
fn a_task_runs_a_graph_on_another_runtime_only() {
    let runtimes = [1, 1].map(|threads| Arc::new(Runtime::new(options(threads)).unwrap()));
    let told = Arc::new(Mutex::new(Vec::new()));
    // By way of the other one it would wait for itself, too.
    let (outer, told_to) = (runtimes[0].clone(), told.clone());
    let innermost = Variant::cpu(move |_| {
        let ran = outer.run(&Graph::new()).map_err(|error| error.to_string());
        told_to.lock().unwrap().push(ran.map(|_| ()));
        Ok(())
    });
    let (own, other, told_to) = (runtimes[0].clone(), runtimes[1].clone(), told.clone());
    let outermost = Variant::cpu(move |_| {
        let mut graph = Graph::new();
        graph.add(Task::new("in").variant(innermost.clone().taking(SHORT)));
        for runtime in [&own, &other] {
            let ran = runtime.run(&graph).map_err(|error| error.to_string());
            told_to.lock().unwrap().push(ran.map(|_| ()));
        }
        Ok(())
    });
    let mut graph = Graph::new();
    graph.add(Task::new("out").variant(outermost.taking(SHORT)));
    runtimes[0].run(&graph).unwrap();
    let refused = "a task runs a graph on its own runtime: use another runtime for it";
    let refused = || Err(refused.to_string());
    assert_eq!(*told.lock().unwrap(), [refused(), refused(), Ok(())]);
    runtimes[0].run(&Graph::new()).unwrap();
}

/// Panics at the first transfer to it.
#[derive(Debug)]
struct Panics {
    simulated: Simulated,
    has_panicked: Arc<AtomicBool>,
}

impl Accelerator for Panics {
    fn models(&self) -> Vec<Model> {
        self.simulated.models()
    }

    fn memory_bytes(&self) -> u64 {
        self.simulated.memory_bytes()
    }

    fn allocate(&self, bytes: usize) -> Result<Buffer, String> {
        self.simulated.allocate(bytes)
    }

    fn free(&self, buffer: &Buffer) {
        self.simulated.free(buffer);
    }

    fn write(&self, buffer: &Buffer, content: &[u8]) -> Result<(), String> {
        assert!(self.has_panicked.swap(true, Ordering::Relaxed), "no link");
        self.simulated.write(buffer, content)
    }

    fn read(&self, buffer: &Buffer, content: &mut [u8]) -> Result<(), String> {
        self.simulated.read(buffer, content)
    }

    fn execute(
        &self,
        body: &Body,
        arguments: &[Argument<'_>],
        takes: Option<Duration>,
    ) -> Result<(), String> {
        self.simulated.execute(body, arguments, takes)
    }
}

#[test]
fn a_device_that_panics_while_data_are_brought_does_not_keep_the_graph() {
    let has_panicked = Arc::new(AtomicBool::new(false));
    let mut own = options(1);
    own.devices.push(DeviceSpec {
        name: "gpu".into(),
        instances: vec![Arc::new(Panics {
            simulated: Simulated::new(&[Model::Gpu], 1 << 10),
            has_panicked: has_panicked.clone(),
        })],
        link_bytes_per_s: None,
    });
    let runtime = Runtime::new(own).unwrap();
    // The first has the device until the data of the other were to be brought.
    let holds = Variant::simulated(Model::Gpu, SHORT, move |_| {
        while !has_panicked.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        Ok(())
    });
    let adds = Variant::simulated(Model::Gpu, SHORT, |context| common::adding(context, 1));
    let region = number(0);
    let mut graph = Graph::new();
    graph.add(Task::new("holds").variant(holds));
    let task = Task::new("adds").variant(adds);
    graph.add(task.region(&region, Access::ReadWrite));
    runtime.run(&graph).unwrap();
    assert_eq!(region.content(), 1_u64.to_ne_bytes());
    assert_eq!(runtime.device_memory_bytes(), 0);
}

#[test]
fn more_threads_or_devices_than_there_can_be_are_refused() {
    let mut many = options(1);
    many.devices.push(gpu("gpu", MOST_UNITS as usize + 1, 1));
    for own in [options(u32::MAX), options(MOST_UNITS + 1), many] {
        let told = Runtime::new(own).unwrap_err().to_string();
        assert_eq!(told, "there can be 1024 threads, or devices of a type");
    }
}
