// SPDX-License-Identifier: GPL-2.0
//! Alone in its process, as it is about the first use.

use std::thread;

/// Whichever thread is the first, all find the same.
#[test]
fn threads_that_look_at_the_same_time_find_the_same() {
    let look = || thread::spawn(|| pbs_runtime::opencl::devices().map(|found| found.len()));
    let threads = [look(), look(), look(), look()];
    let found = threads.map(|thread| thread.join().unwrap());
    assert!(found.iter().all(|of| *of == found[0]), "{found:?}");
}
