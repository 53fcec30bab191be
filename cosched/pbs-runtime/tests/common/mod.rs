// SPDX-License-Identifier: GPL-2.0
//! Common parts of the runtime's tests.
#![allow(dead_code)] // Not every test uses all of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pbs_csi::Entry;
use pbs_runtime::{
    Accelerator, CoScheduling, DeviceSpec, Model, Options, Region, Simulated, Variant,
};

/// Maximum number of tries; a test that waits longer has failed.
const TRIES: u32 = 20_000;

/// Waits for something to happen.
pub(crate) fn until(what: &str, mut is: impl FnMut() -> bool) {
    for _ in 0..TRIES {
        if is() {
            return;
        }
        std::thread::sleep(MILLISECOND);
    }
    panic!("{what} has not happened");
}

/// A directory in the place of `/dev/shm`, removed at the end.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("pbs-runtime-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn shared(&self) -> pbs_csi::Options {
        pbs_csi::Options::new(&self.0)
    }

    /// Returns the options of a process with that many threads, which co-schedules in this
    /// directory.
    pub(crate) fn options(&self, threads: u32) -> Options {
        co_scheduled(&self.0, threads)
    }

    pub(crate) fn files(&self) -> Vec<String> {
        let read = std::fs::read_dir(&self.0).unwrap();
        let names = read.map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        let listed = pbs_csi::list(&self.shared()).unwrap();
        listed.map_or_else(Vec::new, |of| of.entries)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn co_scheduled(directory: &Path, threads: u32) -> Options {
    let mut own = options(threads);
    own.co_scheduling = Some(CoScheduling::new(pbs_csi::Options::new(directory)));
    own
}

/// Returns options with that many threads, regardless of the CPUs.
pub(crate) fn options(threads: u32) -> Options {
    Options { threads, ..Options::default() }
}

pub(crate) fn gpu(name: &str, count: usize, memory_bytes: u64) -> DeviceSpec {
    let one = || Arc::new(Simulated::new(&[Model::Gpu], memory_bytes)) as Arc<dyn Accelerator>;
    let instances = (0..count).map(|_| one()).collect();
    DeviceSpec { name: name.into(), instances, link_bytes_per_s: None }
}

pub(crate) fn number(value: u64) -> Region {
    Region::new(value.to_ne_bytes().to_vec())
}

/// Adds to the first region.
pub(crate) fn add(what: u64) -> Variant {
    Variant::cpu(move |context| adding(context, what))
}

pub(crate) fn adding(context: &mut pbs_runtime::Context<'_>, what: u64) -> Result<(), String> {
    let content = context.write(0)?;
    let mut bytes = [0; 8];
    bytes.copy_from_slice(content);
    let sum = u64::from_ne_bytes(bytes) + what;
    content.copy_from_slice(&sum.to_ne_bytes());
    Ok(())
}

pub(crate) const MILLISECOND: Duration = Duration::from_millis(1);
