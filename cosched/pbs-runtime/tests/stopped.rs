// SPDX-License-Identifier: GPL-2.0
//! Processes that are stopped in the middle of their graphs: this program starts itself again as
//! each of them.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use common::{adding, co_scheduled, gpu, number, until, Directory, MILLISECOND};
use pbs_csi::{Begun, Csi, Device, Entry, NewTask, Node, Placement, State};
use pbs_runtime::{Access, CoScheduling, Graph, Model, Options, Region, Runtime, Task, Variant};
use rustix::process::{kill_process, Pid, Signal};

/// Variable with the role of a child.
const ROLE: &str = "PBS_RUNTIME_TEST_ROLE";
const SHARED: &str = "PBS_RUNTIME_TEST_SHARED";
/// Time after its expected end at which a task is overdue.
const PATIENCE: Duration = Duration::from_millis(100);

/// The children's entry.
#[test]
#[ignore = "a part of other tests"]
fn child() {
    let role = std::env::var(ROLE).expect("a test runs this child");
    let shared = PathBuf::from(std::env::var(SHARED).unwrap());
    match role.as_str() {
        "holder" => holder(&shared),
        "worker" => worker(&shared),
        "idler" => idler(&shared),
        other => panic!("{other}"),
    }
}

/// One thread and one GPU, always co-scheduled.
fn options(shared: &Path) -> Options {
    let mut of_file = pbs_csi::Options::new(shared);
    of_file.patience = PATIENCE;
    let determination = pbs_cosched::Determination::ALWAYS;
    let how = CoScheduling { determination, ..CoScheduling::new(of_file) };
    let mut own = co_scheduled(shared, 1);
    own.co_scheduling = Some(how);
    own.devices.push(gpu("gpu", 1, 1 << 20));
    own
}

fn value(region: &Region) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&region.content());
    u64::from_ne_bytes(bytes)
}

/// A task that has the GPU until the parent lets it go.
fn holder(shared: &Path) {
    let runtime = Runtime::new(options(shared)).unwrap();
    let region = number(0);
    let mut graph = Graph::new();
    let notes = shared.to_path_buf();
    let on_gpu = Variant::simulated(Model::Gpu, MILLISECOND, move |context| {
        fs::write(notes.join("note-holds"), "").unwrap();
        until("the parent lets it go", || notes.join("note-go").exists());
        adding(context, 1)
    });
    graph.add(Task::new("held").variant(on_gpu).region(&region, Access::ReadWrite));
    let report = runtime.run(&graph).unwrap();
    assert_eq!((value(&region), report.alone_because), (1, None));
}

/// Ten tasks in a row for the GPU only.
fn worker(shared: &Path) {
    let runtime = Runtime::new(options(shared)).unwrap();
    let region = number(0);
    let mut graph = Graph::new();
    for index in 0..10 {
        let on_gpu = Variant::simulated(Model::Gpu, MILLISECOND, move |context| adding(context, 1));
        let task = Task::new(&format!("w{index}")).kind("w").variant(on_gpu);
        graph.add(task.region(&region, Access::ReadWrite));
    }
    runtime.run(&graph).unwrap();
    assert_eq!(value(&region), 10);
}

/// A task that is ready for one of two threads, and does not start. All tasks of the other process
/// that wait are behind it.
fn idler(shared: &Path) {
    let node = Node::open(&options(shared).co_scheduling.unwrap().shared).unwrap();
    let mut locked = node.lock().unwrap();
    let cpu = Device { name: "cpu".into(), models: 0b11, count: 2 };
    let devices = locked.join_devices(&[cpu]).unwrap();
    let csi = Csi {
        owner: node.owner(),
        task: 1,
        dependencies: Vec::new(),
        reverse_dependencies: Vec::new(),
        best_index: None,
        variants: vec![pbs_csi::Variant {
            model: Model::Cpu.number(),
            threads: 1,
            runtime_ns: 1_000_000,
            device: devices[0],
        }],
        transfer_ns: 0,
        is_transfer: false,
    };
    let new =
        NewTask { csi, is_ready: true, device: Some(devices[0]), units: 1, runtime_ns: 1_000_000 };
    let slots = locked.register(&[new]).unwrap();
    drop(locked);
    fs::write(shared.join("note-idles"), "").unwrap();
    until("two tasks of the other process wait", || {
        let entries = node.lock().unwrap().entries().unwrap();
        entries.iter().filter(|of| of.state == State::Waiting).count() == 3
    });
    let Begun::Master(snapshot) = node.lock().unwrap().begin().unwrap() else {
        panic!("there is another master");
    };
    // In the order of registration.
    let placements = snapshot.waiting.iter().zip(1..).map(|(of, round)| Placement {
        slot: of.entry.slot,
        owner: of.entry.owner,
        task: of.entry.task,
        best_index: 0,
        round,
        priority: 0,
        device: devices[0],
        units: 1,
        runtime_ns: 1_000_000,
    });
    let placements: Vec<_> = placements.collect();
    node.lock().unwrap().publish(snapshot.generation, &placements).unwrap();
    node.lock().unwrap().fetch(&[(slots[0], 1)]).unwrap().unwrap();
    fs::write(shared.join("note-decided"), "").unwrap();
    until("the parent lets it go", || shared.join("note-go").exists());
}

/// A child, killed at the end of a test.
struct Process(Child);

impl Process {
    fn start(directory: &Directory, role: &str) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--ignored", "--nocapture"])
            .env(ROLE, role)
            .env(SHARED, directory.path())
            .stdout(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    fn ends_well(&mut self) {
        let mut status = None;
        until("the end of a process", || {
            status = self.0.try_wait().unwrap();
            status.is_some()
        });
        assert!(status.unwrap().success(), "{status:?}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn nothing_is_left(directory: &Directory) {
    drop(Node::open(&directory.shared()).unwrap());
    assert!(directory.entries().is_empty());
}

#[test]
fn a_stopped_process_keeps_nobody_waiting() {
    let directory = Directory::new("stopped");
    let mut holder = Process::start(&directory, "holder");
    let note = |name: &str| directory.path().join(name);
    until("the GPU is taken", || note("note-holds").exists());
    holder.signal(Signal::STOP);
    let mut worker = Process::start(&directory, "worker");
    worker.ends_well();
    // The stopped process was neither ended nor forgotten.
    let held = || -> Entry {
        let mut entries = directory.entries();
        assert_eq!(entries.len(), 1);
        entries.remove(0)
    };
    let before = held();
    assert_eq!((before.state, before.owner.pid), (State::InExecution, holder.0.id()));
    // It notices the stop.
    sleep(4 * PATIENCE);
    holder.signal(Signal::CONT);
    until("its end is expected anew", || held().expected_end_ns > before.expected_end_ns);
    fs::write(note("note-go"), "").unwrap();
    holder.ends_well();
    nothing_is_left(&directory);
}

/// A process that runs, but does not start its tasks, keeps others from no free thread for longer
/// than their patience, although they are busy on another thread.
#[test]
fn an_idle_process_keeps_nobody_from_free_threads() {
    let directory = Directory::new("idle");
    let note = |name: &str| directory.path().join(name);
    let mut idler = Process::start(&directory, "idler");
    until("a task waits", || note("note-idles").exists());
    let mut options = options(directory.path());
    options.threads = 2;
    let how = options.co_scheduling.as_mut().unwrap();
    how.determination = pbs_cosched::Determination::NEVER;
    let runtime = Runtime::new(options).unwrap();
    let mut graph = Graph::new();
    let decided = note("note-decided");
    let first = Variant::cpu(move |_| {
        until("the idle process decides", || decided.exists());
        Ok(())
    });
    let first = graph.add(Task::new("first").variant(first.taking(MILLISECOND)));
    let has_begun = Arc::new(AtomicU32::new(0));
    for name in ["one", "another"] {
        let has_begun = has_begun.clone();
        let both = Variant::cpu(move |_| {
            has_begun.fetch_add(1, Ordering::Relaxed);
            until("both run at once", || has_begun.load(Ordering::Relaxed) == 2);
            Ok(())
        });
        graph.add(Task::new(name).variant(both.taking(MILLISECOND)).after(first));
    }
    let report = runtime.run(&graph).unwrap();
    assert_eq!(report.alone_because, None);
    assert!(report.tasks[1..].iter().all(|of| of.is_co_scheduled));
    fs::write(note("note-go"), "").unwrap();
    idler.ends_well();
}

/// Others may have a task for overdue as soon as the patience is over.
#[test]
fn a_stop_within_the_patience_is_noticed() {
    let directory = Directory::new("short-stop");
    let mut holder = Process::start(&directory, "holder");
    let note = |name: &str| directory.path().join(name);
    until("the GPU is taken", || note("note-holds").exists());
    holder.signal(Signal::STOP);
    let expected_end_ns = || directory.entries().first().map(|of| of.expected_end_ns);
    let before_ns = expected_end_ns();
    sleep(PATIENCE * 9 / 10);
    holder.signal(Signal::CONT);
    until("its end is expected anew", || expected_end_ns() > before_ns);
    fs::write(note("note-go"), "").unwrap();
    holder.ends_well();
    nothing_is_left(&directory);
}

/// Processes are stopped at any time, with a device, as master, or with the lock.
#[test]
fn processes_finish_while_others_are_stopped() {
    let directory = Directory::new("many-stopped");
    let mut random = 11_u64;
    let (mut runs, mut stopped) = (Vec::new(), Vec::new());
    for index in 0..8 {
        let process = Process::start(&directory, "worker");
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        sleep(Duration::from_micros((random >> 33) % 12_000));
        if index % 2 == 0 {
            runs.push(process);
        } else {
            process.signal(Signal::STOP);
            stopped.push(process);
        }
    }
    for process in &mut runs {
        process.ends_well();
    }
    for process in &mut stopped {
        assert!(process.0.try_wait().unwrap().is_none_or(|status| status.success()));
        process.signal(Signal::CONT);
    }
    for process in &mut stopped {
        process.ends_well();
    }
    nothing_is_left(&directory);
}
