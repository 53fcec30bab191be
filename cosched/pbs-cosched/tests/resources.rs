// SPDX-License-Identifier: GPL-2.0
//! Links and hosts of accelerators: what else takes them waits, and schedules regard that.

use pbs_cosched::{
    brute_force, check, score, timing, DeviceType, Edge, ExecutionTarget, Host, Mapping, Objective,
    Platform, Process, Queues, Slot, State, Task, Transfer, Variant, Where, Workload,
};

const GPU: ExecutionTarget = ExecutionTarget::Device(0);
const CPU: ExecutionTarget = ExecutionTarget::Threads(1);

/// Two threads and two accelerators.
fn platform(has_link: bool, host: Option<Host>) -> Platform {
    Platform {
        threads: 2,
        devices: vec![DeviceType { name: "gpu".into(), count: 2, has_link, host }],
    }
}

/// Target and runtime of a task, and the tasks before it with the times of their transfers.
type Written<'a> = (ExecutionTarget, u64, &'a [(usize, u64)]);

fn workload(tasks: &[Written<'_>]) -> Workload {
    let task = |(number, &(place, runtime_ns, after)): (usize, &Written<'_>)| Task {
        name: number.to_string(),
        process: 0,
        after: after.iter().map(|&(task, transfer_ns)| Edge { task, transfer_ns }).collect(),
        variants: vec![Variant { model: "m".into(), place, runtime_ns }],
    };
    let process = Process { name: "p".into(), owner: 0, arrival_ns: 0, deadline_ns: None };
    Workload { processes: vec![process], tasks: tasks.iter().enumerate().map(task).collect() }
}

/// Returns begin and end of each task, in the order of the list.
fn times(workload: &Workload, platform: &Platform, queues: &Queues) -> Vec<(u64, u64)> {
    let order = (0..workload.tasks.len()).filter(|&task| queues.waits(task));
    let mapping = Mapping::in_order(workload.tasks.len(), order.map(|task| (task, 0)));
    let timeline = timing(workload, platform, queues, &mapping).unwrap();
    timeline.slots.iter().flatten().map(|slot| (slot.start_ns, slot.end_ns)).collect()
}

fn idle_times(workload: &Workload, platform: &Platform) -> Vec<(u64, u64)> {
    assert_eq!(check(workload, platform), Ok(()));
    times(workload, platform, &Queues::idle(platform))
}

#[test]
fn transfers_of_a_device_take_turns_on_its_link() {
    // Two producers on threads, and a consumer of both on an accelerator.
    let tasks = workload(&[(CPU, 10, &[]), (CPU, 10, &[]), (GPU, 5, &[(0, 30), (1, 40)])]);
    assert_eq!(idle_times(&tasks, &platform(false, None))[2], (50, 55));
    assert_eq!(idle_times(&tasks, &platform(true, None))[2], (80, 85));
    // Two consumers are on different accelerators, each with its own link.
    let tasks = workload(&[(CPU, 10, &[]), (GPU, 50, &[(0, 30)]), (GPU, 50, &[(0, 30)])]);
    assert_eq!(idle_times(&tasks, &platform(true, None))[1..], [(40, 90), (40, 90)]);
    // From one accelerator to the other the data take both links.
    let tasks = workload(&[
        (GPU, 10, &[]),
        (GPU, 10, &[]),
        (CPU, 1, &[(0, 30)]),
        (GPU, 5, &[(1, 7), (0, 20)]),
    ]);
    let timeline = times(&tasks, &platform(true, None), &Queues::idle(&platform(true, None)));
    // The first link is free at 40; the task stays with the data of the second one.
    assert_eq!(timeline[2..], [(40, 41), (47, 52)]);
}

#[test]
fn a_timeline_has_the_transfers_on_links() {
    let tasks = workload(&[(CPU, 10, &[]), (CPU, 12, &[]), (GPU, 5, &[(0, 30), (1, 40)])]);
    let mapping = Mapping::in_order(3, [(0, 0), (1, 0), (2, 0)]);
    let on = platform(true, None);
    let timeline = timing(&tasks, &on, &Queues::idle(&on), &mapping).unwrap();
    let transfer =
        |start_ns, end_ns| Transfer { task: 2, device: 0, instance: 0, start_ns, end_ns };
    assert_eq!(timeline.transfers, [transfer(10, 40), transfer(40, 80)]);
}

#[test]
fn a_task_on_a_device_takes_a_part_of_its_host() {
    let host = |permille| Some(Host { thread: 1, permille });
    let tasks = workload(&[(GPU, 100, &[]), (GPU, 100, &[]), (CPU, 40, &[]), (CPU, 40, &[])]);
    // Nothing is taken: both devices and both threads work from the begin.
    assert_eq!(idle_times(&tasks, &platform(false, None)), [(0, 100), (0, 100), (0, 40), (0, 40)]);
    // The devices begin one after the other, and thread 1 is free after that.
    assert_eq!(
        idle_times(&tasks, &platform(false, host(100))),
        [(0, 100), (10, 110), (0, 40), (20, 60)]
    );
    // All of the time: one after the other, and thread 0 has all of the CPU's tasks.
    assert_eq!(
        idle_times(&tasks, &platform(false, host(1000))),
        [(0, 100), (100, 200), (0, 40), (40, 80)]
    );
}

#[test]
fn a_started_task_keeps_its_host_busy() {
    let on = platform(false, Some(Host { thread: 0, permille: 500 }));
    let tasks = workload(&[(GPU, 100, &[]), (ExecutionTarget::Threads(2), 10, &[])]);
    let mut queues = Queues::idle(&on);
    queues.now_ns = 20;
    let place = Where::Device { device: 0, instance: 0 };
    let slot = Slot { start_ns: 0, end_ns: 100, place };
    queues.tasks = vec![State::Started(slot), State::Waiting];
    assert_eq!(times(&tasks, &on, &queues)[1], (50, 60));
}

/// Beside its host, an accelerator that takes all of the host's time saves nothing.
#[test]
fn the_oracle_knows_what_an_accelerator_takes_of_its_host() {
    let variant = |place, runtime_ns| Variant { model: "m".into(), place, runtime_ns };
    let mut tasks = workload(&[(CPU, 10, &[]), (CPU, 10, &[]), (CPU, 10, &[])]);
    for task in &mut tasks.tasks {
        task.variants.push(variant(GPU, 9));
    }
    let makespan_ns = |permille| {
        let on = platform(false, Some(Host { thread: 1, permille }));
        let queues = Queues::idle(&on);
        let best = brute_force(&tasks, &on, &queues, Objective::Makespan, &mut || true).unwrap();
        assert!(best.proved);
        score(&tasks, &timing(&tasks, &on, &queues, &best.mapping).unwrap()).makespan_ns
    };
    assert_eq!(makespan_ns(0), 10);
    assert_eq!(makespan_ns(100), 10);
    assert_eq!(makespan_ns(1000), 18);
}
