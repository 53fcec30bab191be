// SPDX-License-Identifier: GPL-2.0
//! `pbsctl csi`: looking into shared memory, and cleaning it.

mod common;

use std::fs;
use std::path::Path;

use common::{directory, pbsctl};
use pbs_csi::{Claim, Csi, Device, NewTask, Node, Options, Variant};

/// A process of two tasks: the first in execution on the GPU.
fn busy(path: &Path) -> (Node, Vec<u32>) {
    let node = Node::open(&Options::new(path)).unwrap();
    let mut locked = node.lock().unwrap();
    let device = |name: &str, models, count| Device { name: name.into(), models, count };
    let devices = [device("cpu", 0b11, 4), device("gpu", 0b100, 1)];
    locked.join_devices(&devices).unwrap();
    let task = |number, device| NewTask {
        csi: Csi {
            owner: node.owner(),
            task: number,
            dependencies: Vec::new(),
            reverse_dependencies: Vec::new(),
            best_index: None,
            variants: vec![Variant { model: 2, threads: 1, runtime_ns: 3_000_000, device }],
            transfer_ns: 0,
            is_transfer: false,
        },
        is_ready: true,
        device: Some(device),
        units: 1,
        runtime_ns: 3_000_000,
    };
    let slots = locked.register(&[task(1, 1), task(2, 1)]).unwrap();
    let generation = locked.generation();
    let claim = Claim {
        slot: slots[0],
        task: 1,
        generation,
        device: 1,
        units: 1,
        runtime_ns: 3_000_000,
        overtakes: false,
    };
    locked.claim(claim).unwrap();
    drop(locked);
    (node, slots)
}

#[test]
fn nothing_is_listed_and_cleaned_without_making_anything() {
    let path = directory("csi-nothing", &[]);
    let at = path.to_str().unwrap();
    let ran = pbsctl(&["csi", "list", "--directory", at], "");
    assert_eq!((ran.status, ran.stdout), (0, format!("nothing in {at}\n")));
    let ran = pbsctl(&["csi", "clean", "--directory", at], "");
    let expected = "removed 0 tasks of dead processes and 0 files of tasks\n";
    assert_eq!((ran.status, ran.stdout.as_str()), (0, expected));
    assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
}

#[test]
fn tasks_are_listed_by_device_as_in_the_queue_and_nothing_changes() {
    let path = directory("csi-busy", &[]);
    let (_node, _) = busy(&path);
    let before = fs::read(path.join("pbs-csimf")).unwrap();
    let ran = pbsctl(&["csi", "list", "--directory", path.to_str().unwrap()], "");
    let pid = std::process::id();
    let lines: Vec<Vec<&str>> =
        ran.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0][..1], ["NOT_STARTED,"]);
    assert_eq!(lines[3], ["cpu", "CPU,OMP", "4"]);
    assert_eq!(lines[4], ["gpu", "GPU", "1"]);
    let pid = pid.to_string();
    let running = [&pid, "1", "in", "execution", "gpu", "GPU", "1", "-", "3"];
    assert_eq!(lines[7][..9], running, "{}", ran.stdout);
    let waiting = [&pid, "2", "waiting", "gpu", "GPU", "1", "-", "3"];
    assert_eq!(lines[8][..8], waiting, "{}", ran.stdout);
    assert_eq!(fs::read(path.join("pbs-csimf")).unwrap(), before);
    // The process lives: nothing is removed.
    let ran = pbsctl(&["csi", "clean", "--directory", path.to_str().unwrap()], "");
    assert_eq!(ran.stdout, "removed 0 tasks of dead processes and 0 files of tasks\n");
}

#[test]
fn a_damaged_file_says_what_to_do_and_that_helps() {
    let path = directory("csi-damaged", &[("pbs-csimf", "what is this")]);
    let at = path.to_str().unwrap();
    for what in [&["csi", "list"][..], &["csi", "clean"]] {
        let ran = pbsctl(&[what, &["--directory", at]].concat(), "");
        assert_eq!(ran.status, 1);
        let told = format!(
            "it has 12 bytes instead of 262144; remove it with: pbsctl cosched csi clean --force \
             --directory {at}\n"
        );
        assert!(ran.stderr.ends_with(&told), "{}", ran.stderr);
    }
    let ran = pbsctl(&["csi", "clean", "--force", "--directory", at], "");
    assert_eq!(ran.stdout, "removed the management file and 0 files of tasks\n");
    assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
}

/// A process in use notices, and is not harmed.
#[test]
fn force_removes_what_is_in_use() {
    let path = directory("csi-force", &[]);
    let (node, _) = busy(&path);
    // A name that only begins as one of ours is left alone.
    fs::write(path.join("pbs-csi-mine"), "").unwrap();
    let ran = pbsctl(&["csi", "clean", "--force", "--directory", path.to_str().unwrap()], "");
    assert_eq!(ran.stdout, "removed the management file and 1 file of a task\n");
    assert_eq!(fs::read_dir(&path).unwrap().count(), 1);
    assert!(node.lock().is_err());
}

/// The process of this test goes on all the time, as one that is stuck.
#[test]
fn overdue_tasks_are_marked_and_removed_on_request() {
    let path = directory("csi-overdue", &[]);
    let (node, _) = busy(&path);
    let at = path.to_str().unwrap();
    let listed = || pbsctl(&["csi", "list", "--overdue-factor", "1", "--directory", at], "").stdout;
    // A second after its expected end.
    while !listed().contains("in execution, overdue") {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let never = pbsctl(&["csi", "list", "--overdue-factor", "0", "--directory", at], "");
    assert!(never.stdout.contains("in execution "), "{}", never.stdout);
    assert!(!never.stdout.contains("overdue"), "{}", never.stdout);
    let clean =
        |extra: &[&str]| pbsctl(&[&["csi", "clean", "--directory", at], extra].concat(), "");
    let told = clean(&["--overdue-factor", "1"]).stdout;
    let pid = std::process::id();
    assert!(told.contains(&format!("task 1 of process {pid} is overdue by ")), "{told}");
    assert!(told.ends_with("wait for its end, or free its device with --overdue\n"), "{told}");
    assert_eq!(node.lock().unwrap().entries().unwrap().len(), 2);
    let told = clean(&["--overdue-factor", "1", "--overdue"]).stdout;
    let expected = "removed 0 tasks of dead processes, 1 overdue task and 0 files of tasks\n";
    assert_eq!(told, expected);
    let left = node.lock().unwrap().entries().unwrap();
    assert_eq!(left.iter().map(|of| of.task).collect::<Vec<_>>(), [2]);
    let ran = clean(&["--overdue", "--force"]);
    assert_eq!(ran.status, 2, "{}", ran.stderr);
}
