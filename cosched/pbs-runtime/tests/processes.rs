// SPDX-License-Identifier: GPL-2.0
//! Several processes, really: this program starts itself again as each of them.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::Duration;

use common::{add, adding, co_scheduled, gpu, number, until, Directory, MILLISECOND};
use pbs_csi::{Node, Status};
use pbs_runtime::{Access, CoScheduling, Graph, Model, Region, Runtime, Task, Variant};

/// Variable with the role of a child.
const ROLE: &str = "PBS_RUNTIME_TEST_ROLE";
const SHARED: &str = "PBS_RUNTIME_TEST_SHARED";
const NOTES: &str = "PBS_RUNTIME_TEST_NOTES";

/// Processes of a test, with their shared memory and their notes.
struct Processes {
    shared: Directory,
    notes: Directory,
    children: Vec<Child>,
}

impl Processes {
    fn new(name: &str) -> Self {
        Self {
            shared: Directory::new(name),
            notes: Directory::new(&format!("{name}-notes")),
            children: Vec::new(),
        }
    }

    fn start(&mut self, role: &str) -> usize {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--ignored", "--nocapture"])
            .env(ROLE, role)
            .env(SHARED, self.shared.path())
            .env(NOTES, self.notes.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        self.children.push(child);
        self.children.len() - 1
    }

    fn note(&self, name: &str) -> PathBuf {
        self.notes.path().join(name)
    }

    fn end(&mut self, child: usize) {
        let status = self.children[child].wait().unwrap();
        assert!(status.success(), "{status}");
    }

    /// Returns a value that a child has noted at its end: the note has a key and a value per line.
    fn told(&self, name: &str, key: &str) -> String {
        let text = fs::read_to_string(self.note(name)).unwrap();
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        let found = lines.find(|(of, _)| *of == key);
        found.unwrap_or_else(|| panic!("no {key} in {text}")).1.into()
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The children's entry.
#[test]
#[ignore = "a part of other tests"]
fn child() {
    let role = std::env::var(ROLE).expect("a test runs this child");
    let shared = PathBuf::from(std::env::var(SHARED).unwrap());
    let notes = PathBuf::from(std::env::var(NOTES).unwrap());
    match role.as_str() {
        "long" => long(&shared, &notes),
        "short" => short(&shared, &notes, false),
        "behind" => short(&shared, &notes, true),
        "worker" => worker(&shared, &notes),
        "off" => off(&notes),
        "idle" => idle(&shared, &notes),
        other => panic!("{other}"),
    }
}

/// Notes that it has come so far, and waits until it may go on.
fn hold(notes: &Path, name: &str) {
    fs::write(notes.join(format!("{name}-is-here")), "").unwrap();
    until(name, || notes.join(format!("{name}-may-go")).exists());
}

fn how(shared: &Path) -> CoScheduling {
    let mut shared = pbs_csi::Options::new(shared);
    // On a machine that is busy with others things take their time.
    shared.patience = 5000 * MILLISECOND;
    CoScheduling { determination: pbs_cosched::Determination::ALWAYS, ..CoScheduling::new(shared) }
}

fn tell(notes: &Path, name: &str, report: &pbs_runtime::Report, content: u64) {
    let mut text = format!(
        "content={content}\nrebuilds={}\nmaster={}\nfreed={}\nalone={}\n",
        report.rebuilds,
        report.co_schedulings,
        report.freed_on_exit_bytes,
        report.alone_because.as_deref().unwrap_or("no"),
    );
    for task in &report.tasks {
        text += &format!("{}={} {} {}\n", task.name, task.model, task.reruns, task.is_co_scheduled);
    }
    fs::write(notes.join(name), text).unwrap();
}

fn value(region: &Region) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&region.content());
    u64::from_ne_bytes(bytes)
}

/// The runtime of the long process, for its tasks to look at.
static RUNTIME: OnceLock<Runtime> = OnceLock::new();

/// A chain of six tasks on the GPU, the second of which is held, and a task beside it whose
/// data are on the GPU before it runs.
fn long(shared: &Path, notes: &Path) {
    let mut own = co_scheduled(shared, 1);
    own.co_scheduling = Some(how(shared));
    own.devices.push(gpu("gpu", 1, 1 << 20));
    let runtime = RUNTIME.get_or_init(|| Runtime::new(own).unwrap());
    let region = number(0);
    let mut graph = Graph::new();
    for index in 0..6 {
        let notes = notes.to_path_buf();
        let on_gpu = Variant::simulated(Model::Gpu, MILLISECOND, move |context| {
            if index == 1 {
                // The data of the task beside it are there, too.
                until("1008 bytes on the device", || {
                    RUNTIME.get().is_some_and(|of| of.device_memory_bytes() == 1008)
                });
                hold(&notes, "long");
            }
            adding(context, 1)
        });
        let on_cpu = add(1).taking(5 * MILLISECOND);
        let task = Task::new(&format!("t{index}")).kind(&format!("t{index}"));
        let task = task.variant(on_gpu).variant(on_cpu);
        graph.add(task.region(&region, Access::ReadWrite));
    }
    let beside = Region::new(vec![7; 1000]);
    let only_gpu = Variant::simulated(Model::Gpu, MILLISECOND, |context| {
        context.write(0)?[0] += 1;
        Ok(())
    });
    let task = Task::new("beside").variant(only_gpu);
    graph.add(task.region(&beside, Access::ReadWrite));
    let report = runtime.run(&graph).unwrap();
    assert_eq!(beside.content()[..2], [8, 7]);
    assert_eq!(runtime.device_memory_bytes(), 0);
    tell(notes, "long", &report, value(&region));
}

/// Two tasks for the GPU only. The first may last until all others have acknowledged.
fn short(shared: &Path, notes: &Path, waits: bool) {
    let mut own = co_scheduled(shared, 1);
    let mut how = how(shared);
    if waits {
        how.shared.patience = 200 * MILLISECOND;
    }
    own.co_scheduling = Some(how);
    own.devices.push(gpu("gpu", 1, 1 << 20));
    let runtime = Runtime::new(own).unwrap();
    let region = number(0);
    let mut graph = Graph::new();
    for index in 0..2 {
        let path = shared.to_path_buf();
        let on_gpu = Variant::simulated(Model::Gpu, MILLISECOND, move |context| {
            until("acknowledged", || {
                let listed = pbs_csi::list(&pbs_csi::Options::new(&path)).unwrap().unwrap();
                let mut entries = listed.entries.iter();
                !waits || index > 0 || entries.all(|of| of.acknowledged == listed.generation)
            });
            adding(context, 1)
        });
        let task = Task::new(&format!("s{index}")).variant(on_gpu);
        graph.add(task.region(&region, Access::ReadWrite));
    }
    let report = runtime.run(&graph).unwrap();
    tell(notes, "short", &report, value(&region));
}

/// Ten tasks on threads only.
fn worker(shared: &Path, notes: &Path) {
    let mut own = co_scheduled(shared, 2);
    own.co_scheduling = Some(how(shared));
    let runtime = Runtime::new(own).unwrap();
    let region = number(0);
    let mut graph = Graph::new();
    for index in 0..10 {
        let variant = add(1).taking(MILLISECOND);
        let task = Task::new(&format!("w{index}")).kind("w").variant(variant);
        graph.add(task.region(&region, Access::ReadWrite));
    }
    let report = runtime.run(&graph).unwrap();
    let name = format!("worker-{}", std::process::id());
    tell(notes, &name, &report, value(&region));
}

/// Off, with nothing of shared memory in its maps or its open files.
fn off(notes: &Path) {
    let runtime = Runtime::new(common::options(1)).unwrap();
    let mut graph = Graph::new();
    graph.add(
        Task::new("t").variant(add(1).taking(MILLISECOND)).region(&number(0), Access::ReadWrite),
    );
    let report = runtime.run(&graph).unwrap();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    assert!(!maps.contains("pbs-csimf"));
    for file in fs::read_dir("/proc/self/fd").unwrap() {
        let file = fs::read_link(file.unwrap().path()).unwrap_or_default();
        assert!(!file.to_string_lossy().contains("pbs-cs"), "{file:?}");
    }
    tell(notes, "off", &report, 1);
}

/// A task for the GPU only, number 1 of the process.
fn on_gpu(node: &Node) -> pbs_csi::NewTask {
    pbs_csi::NewTask {
        csi: pbs_csi::Csi {
            owner: node.owner(),
            task: 1,
            dependencies: Vec::new(),
            reverse_dependencies: Vec::new(),
            best_index: None,
            variants: vec![pbs_csi::Variant { model: 2, threads: 1, runtime_ns: 1, device: 1 }],
            transfer_ns: 0,
            is_transfer: false,
        },
        is_ready: true,
        device: Some(1),
        units: 1,
        runtime_ns: 1,
    }
}

/// Registers a task for the GPU, follows what is decided, and never starts it.
fn idle(shared: &Path, notes: &Path) {
    let node = Node::open(&pbs_csi::Options::new(shared)).unwrap();
    let mut locked = node.lock().unwrap();
    let device = |name: &str, models, count| pbs_csi::Device { name: name.into(), models, count };
    let devices = [device("cpu", 0b11, 1), device("gpu", 0b100, 1)];
    locked.join_devices(&devices).unwrap();
    let task = on_gpu(&node);
    let slots = locked.register(&[task]).unwrap();
    drop(locked);
    fs::write(notes.join("idle-is-here"), "").unwrap();
    loop {
        let _ = node.lock().unwrap().fetch(&[(slots[0], 1)]).unwrap();
        sleep(MILLISECOND);
    }
}

/// A task of the idle process is before one of this process, which may not overtake it but
/// if it says so.
#[test]
fn queues_are_first_in_first_out_over_processes() {
    let mut processes = Processes::new("fifo");
    processes.start("idle");
    let here = processes.note("idle-is-here");
    until("the idle one", || here.exists());
    let node = Node::open(&processes.shared.shared()).unwrap();
    let slots = node.lock().unwrap().register(&[on_gpu(&node)]).unwrap();
    let begun = node.lock().unwrap().begin().unwrap();
    let pbs_csi::Begun::Master(snapshot) = begun else { panic!("another is master") };
    let placements: Vec<_> = snapshot
        .waiting
        .iter()
        .zip(1..)
        .map(|(of, round)| pbs_csi::Placement {
            slot: of.entry.slot,
            owner: of.entry.owner,
            task: of.entry.task,
            best_index: 0,
            round,
            priority: 0,
            device: 1,
            units: 1,
            runtime_ns: 1,
        })
        .collect();
    assert_eq!(placements.len(), 2);
    let mut locked = node.lock().unwrap();
    locked.publish(snapshot.generation, &placements).unwrap();
    let (generation, _) = locked.fetch(&[(slots[0], 1)]).unwrap().unwrap();
    drop(locked);
    until("acknowledged", || node.lock().unwrap().status() == Status::NotStarted);
    let claim = |overtakes| {
        let claim = pbs_csi::Claim {
            slot: slots[0],
            task: 1,
            generation,
            device: 1,
            units: 1,
            runtime_ns: 1,
            overtakes,
        };
        node.lock().unwrap().claim(claim).unwrap()
    };
    assert_eq!(claim(false), pbs_csi::Claimed::Busy { until_ns: 0 });
    let instance = Some(0);
    assert_eq!(claim(true), pbs_csi::Claimed::Started { instance });
}

/// A task that is before in the queue, and whose process lives, but that does not start, is
/// overtaken.
#[test]
fn a_process_that_does_not_start_its_task_is_overtaken() {
    let mut processes = Processes::new("idle");
    processes.start("idle");
    let here = processes.note("idle-is-here");
    until("the idle one", || here.exists());
    let short = processes.start("behind");
    processes.end(short);
    assert_eq!(processes.told("short", "content"), "2");
    assert_eq!(processes.told("short", "alone"), "no");
    assert_eq!(processes.shared.entries().len(), 1);
}

#[test]
fn two_processes_register_decide_fetch_run_and_leave_nothing() {
    let mut processes = Processes::new("two");
    let children = [processes.start("worker"), processes.start("worker")];
    let pids = children.map(|child| processes.children[child].id());
    for child in children {
        processes.end(child);
    }
    let mut masters = 0;
    for pid in pids {
        let name = format!("worker-{pid}");
        assert_eq!(processes.told(&name, "content"), "10");
        assert_eq!(processes.told(&name, "alone"), "no");
        masters += processes.told(&name, "master").parse::<u32>().unwrap();
        assert_eq!(processes.told(&name, "w9").rsplit_once(' ').unwrap().1, "true");
    }
    assert!(masters >= 1);
    assert_eq!(processes.shared.files(), ["pbs-csimf"]);
    let listed = pbs_csi::list(&processes.shared.shared()).unwrap().unwrap();
    assert!(listed.entries.is_empty());
    assert_eq!(listed.status, Status::NotStarted);
}

/// The long process is in the middle of its second task when the short one comes and
/// computes for both.
fn interrupted(name: &str) -> Processes {
    let mut processes = Processes::new(name);
    let long = processes.start("long");
    let here = processes.note("long-is-here");
    until("the second task", || here.exists());
    let node = Node::open(&processes.shared.shared()).unwrap();
    let before = node.generation();
    let short = processes.start("short");
    until("a result", || {
        node.generation() != before && node.lock().unwrap().status() == Status::Done
    });
    fs::write(processes.note("long-may-go"), "").unwrap();
    processes.end(long);
    processes.end(short);
    processes
}

#[test]
fn skipped_tasks_are_rerun_as_decided() {
    let processes = interrupted("rerun");
    assert_eq!(processes.told("long", "content"), "6");
    assert_eq!(processes.told("short", "content"), "2");
    assert_eq!(processes.told("long", "alone"), "no");
    // Once for its own co-scheduling, as in listing 5.4, and once for that of the other.
    assert_eq!(processes.told("long", "rebuilds"), "2");
    for task in ["t2", "t3", "t4", "t5"] {
        let told = processes.told("long", task);
        assert!(told.ends_with(" 2 true"), "{task}: {told}");
    }
    // Who came computed for both.
    assert_eq!(processes.told("short", "master"), "1");
    assert!(processes.shared.entries().is_empty());
    assert_eq!(processes.shared.files(), ["pbs-csimf"]);
}

#[test]
fn a_running_task_keeps_its_variant() {
    let processes = interrupted("keeps");
    // Skipped once, before it ran; not when the second result came.
    assert_eq!(processes.told("long", "t1"), "GPU 1 true");
}

#[test]
fn data_return_and_device_memory_of_skipped_tasks_is_freed() {
    let processes = interrupted("home");
    // What the chain has there, and what was brought for a task that was skipped.
    assert_eq!(processes.told("long", "freed"), "1008");
    assert_eq!(processes.told("long", "content"), "6");
}

#[test]
fn a_process_with_co_scheduling_off_has_nothing_open() {
    let mut processes = Processes::new("off");
    let child = processes.start("off");
    processes.end(child);
    assert_eq!(processes.told("off", "alone"), "no");
    assert!(processes.shared.files().is_empty());
}

/// A process that is killed in the middle of a task holds no device, and others go on.
#[test]
fn a_killed_process_leaves_no_device_taken() {
    let mut processes = Processes::new("killed");
    let long = processes.start("long");
    let here = processes.note("long-is-here");
    until("the second task", || here.exists());
    let short = processes.start("short");
    sleep(5 * MILLISECOND);
    processes.children[long].kill().unwrap();
    // It is not waited for yet: the rest of it is still to be seen by all.
    processes.end(short);
    assert_eq!(processes.told("short", "content"), "2");
    assert!(processes.shared.entries().is_empty());
    assert_eq!(processes.shared.files(), ["pbs-csimf"]);
}

/// The idle process stands in the queue of the GPU.
#[test]
fn contention_is_seen_in_the_queue_of_the_device_that_is_desired() {
    let mut processes = Processes::new("contention");
    processes.start("idle");
    let here = processes.note("idle-is-here");
    until("the idle one", || here.exists());
    let mut own = co_scheduled(processes.shared.path(), 1);
    own.co_scheduling = Some(CoScheduling {
        determination: pbs_cosched::Determination::CONTENTION,
        shared: pbs_csi::Options { patience: 200 * MILLISECOND, ..processes.shared.shared() },
        ..how(processes.shared.path())
    });
    own.devices.push(gpu("gpu", 1, 1 << 20));
    let runtime = Runtime::new(own).unwrap();
    let run = |variant: Variant| {
        let mut graph = Graph::new();
        graph.add(Task::new("t").variant(variant));
        runtime.run(&graph).unwrap().co_schedulings
    };
    assert_eq!(run(Variant::cpu(|_| Ok(())).taking(MILLISECOND)), 0);
    assert_eq!(run(Variant::simulated(Model::Gpu, MILLISECOND, |_| Ok(()))), 1);
}

/// Processes come, compute for all, and are killed at any time; those that are not come to
/// their end, and nothing is left.
#[test]
fn processes_finish_while_many_others_are_killed() {
    let mut processes = Processes::new("many");
    let mut random = 7_u64;
    let (mut survivors, mut killed) = (Vec::new(), Vec::new());
    for index in 0..8 {
        let child = processes.start("worker");
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        sleep(Duration::from_micros((random >> 33) % 8000));
        if index % 2 == 0 {
            survivors.push(child);
        } else {
            processes.children[child].kill().unwrap();
            killed.push(child);
        }
    }
    for child in survivors {
        let name = format!("worker-{}", processes.children[child].id());
        processes.end(child);
        assert_eq!(processes.told(&name, "content"), "10");
        assert_eq!(processes.told(&name, "alone"), "no");
    }
    // Who was killed last may be on its way yet, with a thread that runs.
    for child in killed {
        processes.children[child].wait().unwrap();
    }
    drop(Node::open(&processes.shared.shared()).unwrap());
    assert!(processes.shared.entries().is_empty());
    assert_eq!(processes.shared.files(), ["pbs-csimf"]);
}
