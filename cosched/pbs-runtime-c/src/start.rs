// SPDX-License-Identifier: GPL-2.0
//! Runs in the background.

use std::ffi::c_int;
use std::thread::{Builder, JoinHandle};

use pbs_runtime::{Nesting, Runtime};

use crate::error::{handle, invalid, number, panicked, shared, Failure};
use crate::graph::OwnGraph;
use crate::run::{run, Ran, Report, Running};

/// A graph that runs in a thread of its own.
#[derive(Debug)]
pub struct Started(JoinHandle<Result<Ran, Failure>>);

/// Values of the caller that the thread has.
struct Lent {
    runtime: &'static Runtime,
    graph: &'static OwnGraph,
    running: Running<'static>,
}

// SAFETY: the header says that both live and are not changed until the run is waited for.
unsafe impl Send for Lent {}

impl Lent {
    fn run(self) -> Result<Ran, Failure> {
        run(self.runtime, self.graph, self.running)
    }
}

/// Starts a graph.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_start(runtime: *mut Runtime, graph: *mut OwnGraph) -> *mut Started {
    handle(|| {
        // SAFETY: as the caller has said: they live until the run is waited for.
        let (runtime, graph) = unsafe { (shared(runtime)?, shared::<OwnGraph>(graph)?) };
        let running = Running::new(graph.regions())?;
        let lent = Lent { runtime, graph, running };
        // A task that waits for the run has its runtime until then.
        let nesting = Nesting::of_this_thread();
        let thread = Builder::new().name("pbs-run".into()).spawn(|| {
            nesting.pass_to_this_thread();
            lent.run()
        });
        let thread = thread.map_err(|error| invalid(format!("no thread for the run: {error}")))?;
        Ok(Started(thread))
    })
}

/// Whether a run has ended.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_is_done(started: *const Started) -> c_int {
    number(|| {
        // SAFETY: as the caller has said.
        Ok(unsafe { shared(started) }?.0.is_finished().into())
    })
}

/// Waits for the end of a run.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_wait(started: *mut Started, report: *mut Report) -> c_int {
    number(|| {
        if started.is_null() {
            return Err(invalid("no run was started"));
        }
        // SAFETY: as the caller has said: of pbs_rt_start(), and not waited for.
        let started = unsafe { Box::from_raw(started) };
        let ended = started.0.join();
        let ran = ended.unwrap_or_else(|_| Err(panicked()))?;
        // SAFETY: as the caller has said.
        unsafe { ran.tell(report) };
        Ok(0)
    })
}

#[cfg(test)]
mod tests {
    use std::ptr::null_mut;
    use std::thread::spawn;

    use super::*;

    /// A run in the background fails as one of [`crate::pbs_rt_run`] does.
    #[test]
    fn a_run_that_panics_is_a_mistake_in_the_library() {
        let started = Box::into_raw(Box::new(Started(spawn(|| panic!("on purpose")))));
        // SAFETY: the run is waited for once, and there is no report.
        let ended = unsafe { pbs_rt_wait(started, null_mut()) };
        let expected = number(|| panic!("on purpose"));
        assert_eq!((ended, ended), (expected, -10));
    }
}
