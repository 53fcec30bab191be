// SPDX-License-Identifier: GPL-2.0
//! Cost of co-scheduling for a process: the check before a task, and the steps of one round.
//!
//! `cargo run --release -p pbs-runtime --example steps [DIRECTORY]`; medians, in a new directory
//! below `/dev/shm` if none is named.

use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pbs_cosched::{Determination, GreedyOptions};
use pbs_csi::{Begun, Claim, Claimed, Csi, Device, NewTask, Node, Options, Placement, Variant};
use pbs_runtime::{CoScheduling, Graph, Runtime, Scheduler, Task};

type Failure = Box<dyn std::error::Error>;

/// Number of rounds for each number of tasks.
const ROUNDS: usize = 51;
const CHECKS: u32 = 1_000_000;

fn main() -> Result<(), Failure> {
    let mut words = std::env::args_os().skip(1);
    let named = words.next().map(PathBuf::from);
    if let Some(word) = named.as_ref().filter(|word| is_option(word)) {
        return Err(format!("{} is no directory: usage: steps [DIRECTORY]", word.display()).into());
    }
    if let (Some(directory), Some(_)) = (&named, words.next()) {
        return wait_elsewhere(directory);
    }
    let own = format!("/dev/shm/pbs-overhead-{}", std::process::id());
    let directory = named.clone().unwrap_or(PathBuf::from(own));
    std::fs::create_dir_all(&directory)?;
    let result = measure(&directory);
    if named.is_none() {
        std::fs::remove_dir_all(&directory)?;
    }
    result
}

/// Whether a word asks for an option: a directory would be made with that name.
fn is_option(word: &Path) -> bool {
    word.as_os_str().as_encoded_bytes().starts_with(b"-")
}

fn measure(directory: &Path) -> Result<(), Failure> {
    let node = Node::open(&Options::new(directory))?;
    let mut checks = Vec::new();
    let fetched = node.generation();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        for _ in 0..CHECKS {
            black_box(black_box(&node).generation() != black_box(fetched));
        }
        checks.push(began.elapsed());
    }
    let check = median(&mut checks).as_nanos() as f64 / f64::from(CHECKS);
    println!("check before a task: {check:.2} ns");
    println!("tasks  register     begin   publish     fetch     claim    finish   (us; claim and finish of one)");
    for tasks in [1, 10, 100, 1000] {
        steps(&node, tasks)?;
    }
    println!(
        "tasks       off     alone determine    always   (us; a graph of independent tasks that \
         do nothing: without co-scheduling; contention, with nobody else; contention, with a \
         task of another process elsewhere; always, with greedy)"
    );
    for tasks in [1, 10, 100] {
        graphs(directory, tasks)?;
    }
    Ok(())
}

/// The other process: has a task that waits for a device which nobody else wants.
fn wait_elsewhere(directory: &Path) -> Result<(), Failure> {
    let node = Node::open(&Options::new(directory))?;
    let device = |name: &str, models, count| Device { name: name.into(), models, count };
    let threads = pbs_runtime::allowed_cpus()?.len() as u32;
    let mut locked = node.lock()?;
    locked.join_devices(&[device("cpu", 0b11, threads), device("gpu", 0b100, 1)])?;
    let mut task = task(&node, 0);
    for variant in &mut task.csi.variants {
        (variant.model, variant.device) = (2, 1);
    }
    task.device = Some(1);
    let slots = locked.register(&[task])?;
    drop(locked);
    println!("here");
    // Until the other one is done with it.
    std::io::stdin().read_line(&mut String::new())?;
    node.lock()?.withdraw(slots[0], 0)?;
    Ok(())
}

fn median(of: &mut [Duration]) -> Duration {
    of.sort_unstable();
    of[of.len() / 2]
}

fn microseconds(of: &mut [Duration]) -> f64 {
    median(of).as_nanos() as f64 / 1e3
}

/// The steps of a round, each with its lock.
fn steps(node: &Node, count: u64) -> Result<(), Failure> {
    let devices = [Device { name: "cpu".into(), models: 0b11, count: 2 }];
    let mut took: [Vec<Duration>; 6] = Default::default();
    for _ in 0..ROUNDS {
        let tasks: Vec<NewTask> = (0..count).map(|number| task(node, number)).collect();
        let mut began = Instant::now();
        let mut step = |which: usize| {
            let now = Instant::now();
            took[which].push(now - began);
            began = now;
        };
        let mut locked = node.lock()?;
        locked.join_devices(&devices)?;
        let slots = locked.register(&tasks)?;
        drop(locked);
        step(0);
        let Begun::Master(snapshot) = node.lock()?.begin()? else {
            return Err("another process is master".into());
        };
        step(1);
        let placements: Vec<Placement> = snapshot
            .waiting
            .iter()
            .zip(1..)
            .map(|(of, round)| Placement {
                slot: of.entry.slot,
                owner: of.entry.owner,
                task: of.entry.task,
                best_index: 0,
                round,
                priority: 0,
                device: 0,
                units: 1,
                runtime_ns: 1,
            })
            .collect();
        node.lock()?.publish(snapshot.generation, &placements)?;
        step(2);
        let own: Vec<(u32, u64)> = slots.into_iter().zip(0..).collect();
        let fetched = node.lock()?.fetch(&own)?;
        step(3);
        let (generation, _) = fetched.ok_or("a master is at work")?;
        let claim = Claim {
            slot: own[0].0,
            task: 0,
            generation,
            device: 0,
            units: 1,
            runtime_ns: 1,
            overtakes: false,
        };
        if !matches!(node.lock()?.claim(claim)?, Claimed::Started { .. }) {
            return Err("the device is taken".into());
        }
        step(4);
        node.lock()?.finish(own[0].0, 0, &[])?;
        step(5);
        for (slot, number) in &own[1..] {
            node.lock()?.withdraw(*slot, *number)?;
        }
    }
    let took = took.map(|mut of| format!("{:>9.1}", microseconds(&mut of)));
    println!("{count:>5} {}", took.join(" "));
    Ok(())
}

fn task(node: &Node, number: u64) -> NewTask {
    let variant = |threads| Variant { model: 1, threads, runtime_ns: 1000, device: 0 };
    NewTask {
        csi: Csi {
            owner: node.owner(),
            task: number,
            dependencies: Vec::new(),
            reverse_dependencies: Vec::new(),
            best_index: None,
            variants: vec![variant(1), variant(2)],
            transfer_ns: 0,
            is_transfer: false,
        },
        is_ready: true,
        device: Some(0),
        units: 1,
        runtime_ns: 1000,
    }
}

/// Whole graphs.
fn graphs(directory: &Path, count: u64) -> Result<(), Failure> {
    let mut graph = Graph::new();
    for number in 0..count {
        let nothing = pbs_runtime::Variant::cpu(|_| Ok(())).taking(Duration::from_micros(1));
        graph.add(Task::new(&format!("t{number}")).kind("t").variant(nothing));
    }
    let contention = Some(Determination::CONTENTION);
    let off = run(directory, &graph, None)?;
    let alone = run(directory, &graph, contention)?;
    let mut other = Command::new(std::env::current_exe()?)
        .arg(directory)
        .arg("elsewhere")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let out = other.stdout.take().ok_or("no output")?;
    BufReader::new(out).read_line(&mut String::new())?;
    let determine = run(directory, &graph, contention)?;
    drop(other.stdin.take());
    other.wait()?;
    let always = run(directory, &graph, Some(Determination::ALWAYS))?;
    println!("{count:>5} {off:>9.1} {alone:>9.1} {determine:>9.1} {always:>9.1}");
    Ok(())
}

fn run(
    directory: &Path,
    graph: &Graph,
    determination: Option<Determination>,
) -> Result<f64, Failure> {
    let runtime = Runtime::new(pbs_runtime::Options {
        co_scheduling: determination.map(|determination| CoScheduling {
            determination,
            scheduler: Scheduler::Greedy(GreedyOptions::default()),
            ..CoScheduling::new(Options::new(directory))
        }),
        ..pbs_runtime::Options::default()
    })?;
    let mut took = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let report = runtime.run(graph)?;
        took.push(began.elapsed());
        if let Some(why) = report.alone_because {
            return Err(why.into());
        }
    }
    Ok(microseconds(&mut took))
}
