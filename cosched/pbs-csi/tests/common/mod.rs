// SPDX-License-Identifier: GPL-2.0
//! Common parts of tests with shared memory.
#![allow(dead_code)] // Not every test uses all of it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pbs_csi::{
    Begun, Claim, Csi, Device, NewTask, Node, Options, Owner, Placement, Snapshot, Variant,
};

/// A directory in the place of `/dev/shm`, removed at the end.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("pbs-csi-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn csimf(&self) -> PathBuf {
        self.0.join(pbs_csi::layout::CSIMF_NAME)
    }

    pub(crate) fn options(&self) -> Options {
        Options::new(&self.0)
    }

    pub(crate) fn node(&self) -> Node {
        Node::open(&self.options()).unwrap()
    }

    pub(crate) fn files(&self) -> Vec<String> {
        let read = std::fs::read_dir(&self.0).unwrap();
        let names = read.map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The name of the file of a CSI.
pub(crate) fn csi_name(owner: Owner, task: u64) -> String {
    format!("pbs-csi-{}-{}-{task}", owner.pid, owner.start_ticks)
}

/// Two threads of the CPU and a GPU.
pub(crate) fn devices() -> [Device; 2] {
    let device = |name: &str, models, count| Device { name: name.into(), models, count };
    [device("cpu", 0b11, 2), device("gpu", 0b100, 1)]
}

/// A task with a variant for the CPU and one for the GPU.
pub(crate) fn task(number: u64, after: &[u64]) -> NewTask {
    let variant = |model, runtime_ns, device| Variant { model, threads: 1, runtime_ns, device };
    NewTask {
        csi: Csi {
            // Registering sets it.
            owner: Owner { pid: 0, start_ticks: 0 },
            task: number,
            dependencies: after.to_vec(),
            reverse_dependencies: Vec::new(),
            best_index: None,
            variants: vec![variant(0, 500, 0), variant(2, 100, 1)],
            transfer_ns: 10,
            is_transfer: false,
        },
        is_ready: after.is_empty(),
        device: Some(1),
        units: 1,
        runtime_ns: 100,
    }
}

/// Becomes master, or the test fails.
pub(crate) fn master(node: &Node) -> Snapshot {
    match node.lock().unwrap().begin().unwrap() {
        Begun::Master(snapshot) => snapshot,
        Begun::Other(other) => panic!("{other:?} is master"),
    }
}

/// Places all waiting tasks on the GPU, in the order of submission.
pub(crate) fn all_on_gpu(snapshot: &Snapshot) -> Vec<Placement> {
    let waiting = snapshot.waiting.iter().zip(1..);
    waiting
        .map(|(of, round)| Placement {
            slot: of.entry.slot,
            owner: of.entry.owner,
            task: of.entry.task,
            best_index: 1,
            round,
            priority: 0,
            device: 1,
            units: 1,
            runtime_ns: 100,
        })
        .collect()
}

pub(crate) const MILLISECOND: Duration = Duration::from_millis(1);

/// A claim in the order of the queue.
pub(crate) fn claim_of(
    slot: u32,
    task: u64,
    generation: u64,
    device: u32,
    units: u32,
    runtime_ns: u64,
) -> Claim {
    Claim { slot, task, generation, device, units, runtime_ns, overtakes: false }
}
