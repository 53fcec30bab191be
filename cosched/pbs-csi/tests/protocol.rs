// SPDX-License-Identifier: GPL-2.0
//! Registering, computing, fetching, claiming, by one process with several open nodes.

mod common;

use common::{all_on_gpu, claim_of, csi_name, devices, master, task, Directory, MILLISECOND};
use pbs_csi::layout::{DEPENDENCY_CAPACITY, ENTRY_CAPACITY, VARIANT_CAPACITY};
use pbs_csi::{Claimed, Device, Error, Node, State, Status};

fn registered(node: &Node, tasks: &[(u64, &[u64])]) -> Vec<(u32, u64)> {
    let mut locked = node.lock().unwrap();
    locked.join_devices(&devices()).unwrap();
    let new: Vec<_> = tasks.iter().map(|(number, after)| task(*number, after)).collect();
    let slots = locked.register(&new).unwrap();
    slots.into_iter().zip(tasks.iter().map(|of| of.0)).collect()
}

#[test]
fn entries_and_csis_hold_the_registered_values() {
    let directory = Directory::new("registered");
    let node = directory.node();
    let own = registered(&node, &[(7, &[]), (8, &[7])]);
    let locked = node.lock().unwrap();
    let entries = locked.entries().unwrap();
    let of = |task| entries.iter().find(|entry| entry.task == task).unwrap();
    assert_eq!(entries.len(), 2);
    let (first, second) = (of(7), of(8));
    assert_eq!((first.owner, first.slot), (node.owner(), own[0].0));
    assert_eq!(first.state, State::Waiting);
    assert_eq!(first.capabilities, 0b101, "CPU and GPU");
    assert!(first.is_ready && !second.is_ready && !first.is_scheduled);
    assert!(first.submission < second.submission);
    assert!(first.registered_ns <= second.registered_ns && first.registered_ns > 0);
    assert_eq!((first.round, first.priority, first.device), (0, 0, Some(1)));
    let csi = locked.csi(second).unwrap().unwrap();
    assert_eq!(csi.dependencies, [7]);
    assert_eq!(csi.best_index, None);
    assert_eq!(csi.variants, task(8, &[]).csi.variants);
    assert_eq!((csi.transfer_ns, csi.is_transfer), (10, false));
    let csis = [7, 8].map(|task| csi_name(node.owner(), task));
    assert_eq!(directory.files()[..2], csis);
}

#[test]
fn the_status_goes_round_with_one_master() {
    let directory = Directory::new("round");
    let (node, other) = (directory.node(), directory.node());
    let own = registered(&node, &[(1, &[]), (2, &[])]);
    let theirs = registered(&other, &[(3, &[])]);
    let status = || node.lock().unwrap().status();
    assert_eq!(status(), Status::NotStarted);
    let before = node.generation();
    let snapshot = master(&node);
    assert_eq!(status(), Status::Running(node.owner()));
    assert_ne!(node.generation(), before, "all have to look");
    assert_eq!(snapshot.waiting.len(), 3);
    assert!(matches!(
        other.lock().unwrap().begin().unwrap(),
        pbs_csi::Begun::Other(owner) if owner == node.owner()
    ));
    // Who looks now waits.
    assert!(other.lock().unwrap().fetch(&theirs).unwrap().is_none());
    let mut locked = node.lock().unwrap();
    locked.publish(snapshot.generation, &all_on_gpu(&snapshot)).unwrap();
    drop(locked);
    assert_eq!(status(), Status::Done);
    let (generation, fetched) = node.lock().unwrap().fetch(&own).unwrap().unwrap();
    assert_eq!(generation, node.generation());
    assert_eq!(fetched.len(), 2);
    assert!(fetched.iter().all(|of| of.best_index == Some(1)));
    assert!(fetched[0].place < fetched[1].place, "in the order of rounds");
    assert_eq!(status(), Status::Done, "one has not acknowledged");
    other.lock().unwrap().fetch(&theirs).unwrap().unwrap();
    assert_eq!(status(), Status::NotStarted, "all have");
    // A result of before is none any more.
    let late = node.lock().unwrap().publish(snapshot.generation, &[]);
    assert!(matches!(late, Err(Error::Superseded)), "{late:?}");
}

#[test]
fn a_new_result_comes_before_all_have_fetched_the_last() {
    let directory = Directory::new("again");
    let node = directory.node();
    let own = registered(&node, &[(1, &[])]);
    for _ in 0..2 {
        let snapshot = master(&node);
        let mut locked = node.lock().unwrap();
        locked.publish(snapshot.generation, &all_on_gpu(&snapshot)).unwrap();
    }
    let (_, fetched) = node.lock().unwrap().fetch(&own).unwrap().unwrap();
    assert_eq!(fetched[0].best_index, Some(1));
    assert_eq!(node.lock().unwrap().status(), Status::NotStarted);
}

#[test]
fn a_master_without_a_result_gives_its_part_back() {
    let directory = Directory::new("abandon");
    let node = directory.node();
    let own = registered(&node, &[(1, &[])]);
    let snapshot = master(&node);
    node.lock().unwrap().abandon(snapshot.generation).unwrap();
    assert_eq!(node.lock().unwrap().status(), Status::NotStarted);
    assert_ne!(node.generation(), snapshot.generation);
    let (_, fetched) = node.lock().unwrap().fetch(&own).unwrap().unwrap();
    assert_eq!(fetched[0].best_index, None);
}

/// A master that lives, but is stopped or computes for ever, is replaced.
#[test]
fn a_master_whose_time_is_up_is_replaced() {
    let directory = Directory::new("patience");
    let mut options = directory.options();
    options.patience = MILLISECOND;
    let (node, slow) = (Node::open(&options).unwrap(), directory.node());
    registered(&node, &[(1, &[])]);
    let old = master(&slow);
    std::thread::sleep(2 * MILLISECOND);
    let new = master(&node);
    let late = slow.lock().unwrap().publish(old.generation, &all_on_gpu(&old));
    assert!(matches!(late, Err(Error::Superseded)), "{late:?}");
    node.lock().unwrap().publish(new.generation, &all_on_gpu(&new)).unwrap();
}

#[test]
fn a_queue_keeps_owner_state_and_expected_end() {
    let directory = Directory::new("queue");
    let (node, other) = (directory.node(), directory.node());
    let own = registered(&node, &[(1, &[]), (2, &[])]);
    let generation = node.generation();
    let claim = |(slot, number): (u32, u64), device| {
        let mut locked = other.lock().unwrap();
        locked.claim(claim_of(slot, number, generation, device, 1, 1_000_000)).unwrap()
    };
    let started = |instance| Claimed::Started { instance: Some(instance) };
    assert_eq!(claim(own[0], 1), started(0));
    let pid = std::process::id();
    assert!(!directory.files().contains(&format!("pbs-csi-{pid}-1")), "gone at the start");
    let entry = node.lock().unwrap().entries().unwrap().remove(0);
    assert_eq!(entry.state, State::InExecution);
    assert_eq!((entry.device, entry.instance), (Some(1), Some(0)));
    assert!(entry.expected_end_ns >= entry.registered_ns + 1_000_000);
    let Claimed::Busy { until_ns } = claim(own[1], 1) else { panic!("there is one GPU") };
    assert_eq!(until_ns, entry.expected_end_ns);
    // A co-scheduling takes away what is not in execution, and nothing else.
    let snapshot = master(&node);
    assert_eq!(snapshot.in_execution, [entry]);
    assert_eq!(snapshot.waiting[0].entry.device, None);
    node.lock().unwrap().abandon(snapshot.generation).unwrap();
    node.lock().unwrap().finish(own[0].0, own[0].1, &[]).unwrap();
    let generation = node.generation();
    let mut locked = node.lock().unwrap();
    let claimed = locked.claim(claim_of(own[1].0, own[1].1, generation, 1, 1, 1)).unwrap();
    assert_eq!(claimed, started(0));
}

#[test]
fn a_claim_with_an_old_generation_is_refused() {
    let directory = Directory::new("old");
    let node = directory.node();
    let own = registered(&node, &[(1, &[])]);
    let (slot, number) = own[0];
    let before = node.generation();
    let claim = || {
        let mut locked = node.lock().unwrap();
        locked.claim(claim_of(slot, number, before, 1, 1, 1)).unwrap()
    };
    let snapshot = master(&node);
    assert_eq!(claim(), Claimed::Changed, "one is calculated");
    let mut locked = node.lock().unwrap();
    locked.publish(snapshot.generation, &all_on_gpu(&snapshot)).unwrap();
    drop(locked);
    assert_eq!(claim(), Claimed::Changed, "there is one");
    let (generation, _) = node.lock().unwrap().fetch(&own).unwrap().unwrap();
    let mut locked = node.lock().unwrap();
    let claimed = locked.claim(claim_of(slot, number, generation, 1, 1, 1)).unwrap();
    assert!(matches!(claimed, Claimed::Started { .. }));
}

#[test]
fn threads_are_beside_each_other_where_they_can_be() {
    let directory = Directory::new("threads");
    let node = directory.node();
    let mut locked = node.lock().unwrap();
    let four = Device { name: "four".into(), models: 0b11, count: 4 };
    locked.join_devices(&[devices()[0].clone(), four]).unwrap();
    let tasks: Vec<_> = (1..=4).map(|number| task(number, &[])).collect();
    let slots = locked.register(&tasks).unwrap();
    let generation = locked.generation();
    let mut claim = |which: usize, units| {
        let number = which as u64 + 1;
        locked.claim(claim_of(slots[which], number, generation, 1, units, 1)).unwrap()
    };
    let on = |instance| Claimed::Started { instance };
    assert_eq!(claim(0, 1), on(Some(0)));
    assert_eq!(claim(1, 2), on(Some(1)));
    assert!(matches!(claim(2, 2), Claimed::Busy { .. }));
    locked.finish(slots[0], 1, &[]).unwrap();
    let claimed = locked.claim(claim_of(slots[2], 3, generation, 1, 2, 1)).unwrap();
    assert_eq!(claimed, on(None), "0 and 3 are free");
}

#[test]
fn tasks_beyond_the_capacity_are_refused_and_nothing_of_them_stays() {
    let directory = Directory::new("full");
    let node = directory.node();
    let mut locked = node.lock().unwrap();
    locked.join_devices(&devices()).unwrap();
    let tasks: Vec<_> = (0..=ENTRY_CAPACITY as u64).map(|number| task(number, &[])).collect();
    let told = locked.register(&tasks).unwrap_err().to_string();
    assert_eq!(told, "there is no room in shared memory for more than 2031 tasks of all processes");
    assert!(locked.entries().unwrap().is_empty());
    // One that fails in the middle takes the others with it.
    let mut wide = task(3, &[]);
    wide.csi.variants = vec![wide.csi.variants[0]; VARIANT_CAPACITY + 1];
    let error = locked.register(&[task(1, &[]), task(2, &[]), wide]).unwrap_err();
    assert!(error.to_string().contains("more than 50 variants"), "{error}");
    assert!(locked.entries().unwrap().is_empty());
    drop(locked);
    assert_eq!(directory.files(), ["pbs-csimf"]);
}

/// Both ends of a fork-join graph.
#[test]
fn a_csi_has_the_last_of_many_dependencies() {
    let directory = Directory::new("many");
    let node = directory.node();
    let many: Vec<u64> = (0..=DEPENDENCY_CAPACITY as u64).collect();
    let mut both = task(100, &many);
    both.csi.reverse_dependencies = many.iter().map(|number| 200 + number).collect();
    let mut locked = node.lock().unwrap();
    locked.join_devices(&devices()).unwrap();
    locked.register(&[both]).unwrap();
    let entry = locked.entries().unwrap().remove(0);
    let csi = locked.csi(&entry).unwrap().unwrap();
    assert_eq!(csi.dependencies, many[1..]);
    let expected: Vec<u64> = (201..=248).collect();
    assert_eq!(csi.reverse_dependencies, expected);
}

#[test]
fn devices_are_the_same_for_all_or_named_differently() {
    let directory = Directory::new("devices");
    let node = directory.node();
    let mut locked = node.lock().unwrap();
    assert_eq!(locked.join_devices(&devices()).unwrap(), [0, 1]);
    locked.register(&[task(1, &[])]).unwrap();
    let [cpu, mut gpu] = devices();
    assert_eq!(locked.join_devices(&[gpu.clone(), cpu]).unwrap(), [1, 0]);
    gpu.count = 2;
    let told = locked.join_devices(&[gpu.clone()]).unwrap_err().to_string();
    assert_eq!(
        told,
        "device gpu differs from the one of the running processes: it has count 1 and models 0x4 \
         there, 2 and 0x4 here; use the same machine file, or another name"
    );
    // Without tasks nobody needs what is there.
    let slot = locked.entries().unwrap()[0].slot;
    locked.withdraw(slot, 1).unwrap();
    assert_eq!(locked.join_devices(&[gpu]).unwrap(), [0]);
}

#[test]
fn a_withdrawn_task_keeps_nobody_waiting() {
    let directory = Directory::new("withdrawn");
    let node = directory.node();
    let own = registered(&node, &[(1, &[])]);
    let snapshot = master(&node);
    let mut locked = node.lock().unwrap();
    locked.publish(snapshot.generation, &all_on_gpu(&snapshot)).unwrap();
    assert_eq!(locked.status(), Status::Done);
    locked.withdraw(own[0].0, own[0].1).unwrap();
    assert_eq!(locked.status(), Status::NotStarted);
    drop(locked);
    assert_eq!(directory.files(), ["pbs-csimf"]);
}
