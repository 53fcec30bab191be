// SPDX-License-Identifier: GPL-2.0
//! A member of the group that wants to harm: the graph runs all the same.

mod common;

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, Mutex, OnceLock};

use common::{add, gpu, number, Directory, MILLISECOND};
use pbs_cosched::Determination;
use pbs_csi::layout::{
    CsimfHeader, DeviceRecord, EntryRecord, CSIMF_BYTES, DEVICES_AT, ENTRIES_AT, RUNNING,
};
use pbs_csi::{Claim, Claimed, Csi, Device, Entry, NewTask, Node, State};
use pbs_runtime::{Access, Graph, Model, Options, Region, Report, Runtime, Task, Variant};

const TASKS: u64 = 12;

fn options(directory: &Directory) -> Options {
    let mut own = directory.options(2);
    own.devices.push(gpu("gpu", 1, 1 << 20));
    if let Some(how) = &mut own.co_scheduling {
        how.determination = Determination::ALWAYS;
        how.shared.patience = 5 * MILLISECOND;
    }
    own
}

/// Runs a chain, while somebody does this again and again, with the file and a number.
fn attacked(name: &str, does: impl Fn(&fs::File, u64) + Sync) -> Report {
    let directory = Directory::new(name);
    let runtime = Runtime::new(options(&directory)).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut options = OpenOptions::new();
            let csimf = directory.path().join("pbs-csimf");
            let file = options.read(true).write(true).open(csimf).unwrap();
            let mut random = 1_u64;
            while !is_over.load(Ordering::Relaxed) {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                does(&file, random >> 33);
            }
        });
        let region = number(0);
        let mut graph = Graph::new();
        for index in 0..TASKS {
            let on_gpu = Variant::simulated(Model::Gpu, MILLISECOND / 10, |context| {
                common::adding(context, 1)
            });
            let task = Task::new(&format!("t{index}")).kind("t").variant(on_gpu);
            let task = task.variant(add(1).taking(MILLISECOND / 5));
            graph.add(task.region(&region, Access::ReadWrite));
        }
        let report = runtime.run(&graph);
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(region.content(), TASKS.to_ne_bytes());
        assert_eq!(runtime.device_memory_bytes(), 0);
        report.unwrap()
    })
}

fn at(name: &str) -> u64 {
    let mut fields = CsimfHeader::FIELDS.iter();
    fields.find(|(of, _, _)| *of == name).unwrap().1 as u64
}

#[test]
fn an_ever_changing_generation_does_not_keep_tasks_from_starting() {
    let generation = at("generation");
    attacked("generation", |file, number| {
        file.write_all_at(&number.to_ne_bytes(), generation).unwrap();
    });
}

/// CSIMF in which a new generation is written before each change of this process.
static CSIMF: OnceLock<fs::File> = OnceLock::new();

fn another_generation() {
    static NEXT: AtomicU64 = AtomicU64::new(1 << 40);
    if let Some(csimf) = CSIMF.get() {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        csimf.write_all_at(&next.to_ne_bytes(), at("generation")).unwrap();
    }
}

/// Whoever looks finds another one each time.
#[test]
fn mappings_that_change_before_any_task_starts_are_given_up() {
    let directory = Directory::new("no-rest");
    let mut own = options(&directory);
    if let Some(how) = &mut own.co_scheduling {
        how.shared.on_step = Some(another_generation);
        how.determination = Determination::NEVER;
    }
    let runtime = Runtime::new(own).unwrap();
    let mut options = OpenOptions::new();
    let csimf = options.write(true).open(directory.path().join("pbs-csimf"));
    CSIMF.set(csimf.unwrap()).unwrap();
    let region = number(0);
    let mut graph = Graph::new();
    let task = Task::new("t").variant(add(1).taking(MILLISECOND));
    graph.add(task.region(&region, Access::ReadWrite));
    let report = runtime.run(&graph).unwrap();
    assert_eq!(region.content(), 1_u64.to_ne_bytes());
    let why = report.alone_because.unwrap();
    assert_eq!(why, "mappings have changed so fast that no task could start");
}

#[test]
fn a_master_that_never_finishes_is_not_waited_for() {
    let status = at("status");
    attacked("status", |file, _| {
        file.write_all_at(&RUNNING.to_ne_bytes(), status).unwrap();
    });
}

#[test]
fn a_file_that_shrinks_and_grows_does_not_end_the_process() {
    attacked("length", |file, number| {
        let length = if number % 2 == 0 { CSIMF_BYTES as u64 } else { number % 8192 };
        file.set_len(length).unwrap();
    });
}

#[test]
fn ever_changing_entries_and_devices_do_no_harm() {
    attacked("entries", |file, number| {
        let entries = (ENTRIES_AT + 16 * EntryRecord::BYTES) as u64;
        file.write_all_at(&number.to_ne_bytes(), 128 + number % entries).unwrap();
    });
}

#[test]
fn removed_files_do_no_harm() {
    let directory = Directory::new("removed");
    let mut own = options(&directory);
    own.threads = 1;
    let runtime = Runtime::new(own).unwrap();
    let region = number(0);
    let mut graph = Graph::new();
    for index in 0..4 {
        let path = directory.path().to_path_buf();
        let variant = Variant::cpu(move |context| {
            for file in fs::read_dir(&path).map_err(|error| error.to_string())? {
                let _ = fs::remove_file(file.map_err(|error| error.to_string())?.path());
            }
            common::adding(context, 1)
        });
        let task = Task::new(&format!("t{index}")).variant(variant.taking(MILLISECOND));
        graph.add(task.region(&region, Access::ReadWrite));
    }
    let report = runtime.run(&graph).unwrap();
    assert_eq!(region.content(), 4_u64.to_ne_bytes());
    let why = report.alone_because.unwrap();
    assert!(why.contains("it was removed while it was in use"), "{why}");
}

/// A task that adds one to a region, on the GPU.
fn on_gpu(region: &Region) -> Task {
    let adds = Variant::simulated(Model::Gpu, MILLISECOND, |context| common::adding(context, 1));
    let task = Task::new("adds").variant(adds);
    task.region(region, Access::ReadWrite)
}

/// Somebody stops while he has the lock, just when a task ends.
#[test]
fn a_missed_lock_leaves_no_device_taken() {
    let directory = Directory::new("locked");
    let runtime = Runtime::new(options(&directory)).unwrap();
    let region = number(0);
    let (now, is_now) = channel::<()>();
    let (held, is_held) = channel::<()>();
    let (release, is_released) = channel::<()>();
    std::thread::scope(|scope| {
        let shared = directory.shared();
        scope.spawn(move || {
            let node = Node::open(&shared).unwrap();
            is_now.recv().unwrap();
            let _locked = node.lock().unwrap();
            held.send(()).unwrap();
            let _ = is_released.recv();
        });
        let is_held = Mutex::new(is_held);
        let stops = Variant::simulated(Model::Gpu, MILLISECOND, move |context| {
            now.send(()).map_err(|error| error.to_string())?;
            let is_held = is_held.lock().map_err(|error| error.to_string())?;
            is_held.recv().map_err(|error| error.to_string())?;
            common::adding(context, 1)
        });
        let mut graph = Graph::new();
        let task = Task::new("stops").variant(stops);
        graph.add(task.region(&region, Access::ReadWrite));
        let report = runtime.run(&graph).unwrap();
        let why = report.alone_because.unwrap();
        assert!(why.contains("the lock was not released in time"), "{why}");
        drop(release);
    });
    assert_eq!(directory.entries().len(), 1, "it could not be withdrawn");
    let mut graph = Graph::new();
    let task = Task::new("next").variant(add(1).taking(MILLISECOND));
    graph.add(task.region(&region, Access::ReadWrite));
    let report = runtime.run(&graph).unwrap();
    assert_eq!(report.alone_because, None);
    assert_eq!(region.content(), 2_u64.to_ne_bytes());
    assert!(directory.entries().is_empty());
    assert_eq!(directory.files(), ["pbs-csimf"]);
}

/// The entry of a task is removed while another runs on the GPU.
#[test]
fn a_process_that_goes_alone_keeps_the_devices_of_running_tasks() {
    let directory = Directory::new("alone");
    let mut own = options(&directory);
    if let Some(how) = &mut own.co_scheduling {
        how.determination = Determination::NEVER;
    }
    let runtime = Runtime::new(own).unwrap();
    let of = |task: &Entry| (task.slot, task.task, task.state);
    let entries = || -> Vec<_> { directory.entries().iter().map(of).collect() };
    let shared = directory.shared();
    let is_on_gpu = Arc::new(Barrier::new(2));
    let is_seen = Arc::new(Barrier::new(2));
    let (on_gpu, seen) = (is_on_gpu.clone(), is_seen.clone());
    let runs = Variant::simulated(Model::Gpu, 1000 * MILLISECOND, move |context| {
        on_gpu.wait();
        seen.wait();
        common::adding(context, 1)
    });
    let removing = shared.clone();
    let removes = Variant::cpu(move |_| {
        is_on_gpu.wait();
        let node = Node::open(&removing).map_err(|error| error.to_string())?;
        let mut locked = node.lock().map_err(|error| error.to_string())?;
        for entry in locked.entries().map_err(|error| error.to_string())? {
            if entry.state == State::Waiting {
                let removed = locked.withdraw(entry.slot, entry.task);
                removed.map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    });
    let (see, is_listed) = channel();
    let sees = Variant::cpu(move |_| {
        let listed = pbs_csi::list(&shared).map_err(|error| error.to_string());
        is_seen.wait();
        see.send(listed?.unwrap().entries).map_err(|error| error.to_string())
    });
    let region = number(0);
    let mut graph = Graph::new();
    graph.add(Task::new("runs").variant(runs).region(&region, Access::ReadWrite));
    let first = graph.add(Task::new("removes").variant(removes.taking(MILLISECOND)));
    graph.add(Task::new("sees").variant(sees.taking(MILLISECOND)).after(first));
    let report = runtime.run(&graph).unwrap();
    let why = report.alone_because.unwrap();
    assert_eq!(why, "the entry of a task was removed by another process");
    let listed: Vec<_> = is_listed.recv().unwrap().iter().map(of).collect();
    assert!(matches!(listed[..], [(_, _, State::InExecution)]), "{listed:?}");
    assert!(entries().is_empty(), "{:?}", entries());
}

/// Enters another task of this process that occupies the only device.
fn take_gpu(node: &Node) -> u32 {
    let device = Device { name: "gpu".into(), models: 1 << Model::Gpu.number(), count: 1 };
    let mut locked = node.lock().unwrap();
    let device = locked.join_devices(&[device]).unwrap()[0];
    let variant =
        pbs_csi::Variant { model: Model::Gpu.number(), threads: 1, runtime_ns: 1, device };
    let task = NewTask {
        csi: Csi {
            owner: node.owner(),
            task: u64::MAX,
            dependencies: Vec::new(),
            reverse_dependencies: Vec::new(),
            best_index: None,
            variants: vec![variant],
            transfer_ns: 0,
            is_transfer: false,
        },
        is_ready: true,
        device: Some(device),
        units: 1,
        runtime_ns: 1,
    };
    let slot = locked.register(&[task]).unwrap()[0];
    let generation = locked.generation();
    let claimed = locked.claim(Claim {
        slot,
        task: u64::MAX,
        generation,
        device,
        units: 1,
        runtime_ns: 1,
        overtakes: true,
    });
    assert_eq!(claimed.unwrap(), Claimed::Started { instance: Some(0) });
    device
}

/// The only device is taken, and somebody writes that there are two.
#[test]
fn a_device_that_does_not_exist_is_not_used() {
    let directory = Directory::new("place");
    let mut own = options(&directory);
    if let Some(how) = &mut own.co_scheduling {
        how.determination = Determination::NEVER;
    }
    let runtime = Runtime::new(own).unwrap();
    let node = Node::open(&directory.shared()).unwrap();
    let device = take_gpu(&node) as usize;
    let csimf = directory.path().join("pbs-csimf");
    let csimf = OpenOptions::new().write(true).open(csimf).unwrap();
    let mut fields = DeviceRecord::FIELDS.iter();
    let count = fields.find(|(of, _, _)| *of == "count").unwrap().1;
    let count = DEVICES_AT + device * DeviceRecord::BYTES + count;
    let writes = Variant::cpu(move |_| {
        let two = 2_u32.to_ne_bytes();
        let written = csimf.write_all_at(&two, count as u64);
        written.map_err(|error| error.to_string())
    });
    let region = number(0);
    let mut graph = Graph::new();
    let first = graph.add(Task::new("writes").variant(writes.taking(MILLISECOND)));
    graph.add(on_gpu(&region).after(first));
    let report = runtime.run(&graph).unwrap();
    assert_eq!(region.content(), 1_u64.to_ne_bytes());
    let why = report.alone_because.as_deref();
    assert_eq!(why, Some("the place of a task is not here, or is taken"));
    assert_eq!(report.tasks[1].instance, Some(0));
}
