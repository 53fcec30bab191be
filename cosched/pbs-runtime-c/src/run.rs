// SPDX-License-Identifier: GPL-2.0
//! Running graphs, and what functions see meanwhile.

use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};

use pbs_runtime::{Context, Options, Runtime};

use crate::error::{exclusive, free, handle, invalid, number, remember, shared, Failure};
use crate::graph::{OwnGraph, OwnRegion};

/// Report of a graph's run; see the header.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Report {
    /// Tasks of the graph.
    pub tasks: u32,
    /// Number of times that the graph was rebuilt after a co-scheduling.
    pub rebuilds: u32,
    /// Number of co-schedulings that this process computed.
    pub co_schedulings: u32,
    /// 1: run to measure variants.
    pub is_calibration: u32,
    /// 1: without the others, though it was to be with them.
    pub is_alone: u32,
    /// 0.
    pub reserved: u32,
    /// Bytes of device memory freed on early exits.
    pub freed_on_exit_bytes: u64,
}

const _: () = assert!(size_of::<Report>() == 32);

/// A runtime.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_new(options: *const Options) -> *mut Runtime {
    handle(|| {
        // SAFETY: as the caller has said.
        let options = unsafe { shared(options) }?;
        Ok(Runtime::new(options.clone())?)
    })
}

/// Frees a runtime.
///
/// # Safety
///
/// Null, or of [`pbs_rt_new`] and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_free(runtime: *mut Runtime) {
    // SAFETY: as the caller has said.
    unsafe { free(runtime) };
}

/// Whether it can't co-schedule though it should.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_is_alone(runtime: *const Runtime) -> c_int {
    number(|| {
        // SAFETY: as the caller has said.
        match unsafe { shared(runtime) }?.alone_because() {
            None => Ok(0),
            Some(why) => {
                remember(why.to_string());
                Ok(1)
            }
        }
    })
}

/// The regions of a graph that is running, until this is dropped: no other graph has them.
#[derive(Debug, Default)]
pub(crate) struct Running<'a>(Vec<&'a AtomicBool>);

impl<'a> Running<'a> {
    pub(crate) fn new(regions: &'a [OwnRegion]) -> Result<Self, Failure> {
        let mut running = Self::default();
        for region in regions {
            if region.is_running.swap(true, Ordering::AcqRel) {
                return Err(invalid("a region is of a graph that is running"));
            }
            running.0.push(&region.is_running);
        }
        Ok(running)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        for is_running in &self.0 {
            is_running.store(false, Ordering::Release);
        }
    }
}

/// Runs a graph.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_run(
    runtime: *mut Runtime,
    graph: *mut OwnGraph,
    report: *mut Report,
) -> c_int {
    number(|| {
        // SAFETY: as the caller has said.
        let (runtime, graph) = unsafe { (shared(runtime)?, shared(graph)?) };
        let running = Running::new(graph.regions())?;
        let ran = run(runtime, graph, running)?;
        // SAFETY: as the caller has said.
        unsafe { ran.tell(report) };
        Ok(0)
    })
}

/// Result of a run, and why it was alone.
#[derive(Debug)]
pub(crate) struct Ran {
    report: Report,
    alone_because: Option<String>,
}

impl Ran {
    /// Writes the report, and remembers the reason.
    ///
    /// # Safety
    ///
    /// The report is null, or valid.
    pub(crate) unsafe fn tell(self, report: *mut Report) {
        if let Some(why) = self.alone_because {
            remember(why);
        }
        if !report.is_null() {
            // SAFETY: not null, and of the type that the header says.
            unsafe { report.write(self.report) };
        }
    }
}

/// Runs a graph with the caller's data.
pub(crate) fn run(
    runtime: &Runtime,
    graph: &OwnGraph,
    running: Running<'_>,
) -> Result<Ran, Failure> {
    for region in graph.regions() {
        if region.bytes > 0 {
            // SAFETY: the caller's data, of so many bytes, which he does not use now.
            let data = unsafe { slice::from_raw_parts(region.data, region.bytes) };
            region.region.fill(data);
        }
    }
    let ran = runtime.run(&graph.build());
    for region in graph.regions() {
        if region.bytes > 0 {
            // SAFETY: as above; no other reference to it is there.
            let data = unsafe { slice::from_raw_parts_mut(region.data, region.bytes) };
            region.region.copy_to(data);
        }
    }
    drop(running);
    let ran = ran?;
    let report = Report {
        tasks: ran.tasks.len() as u32,
        rebuilds: ran.rebuilds,
        co_schedulings: ran.co_schedulings,
        is_calibration: ran.is_calibration.into(),
        is_alone: ran.alone_because.is_some().into(),
        reserved: 0,
        freed_on_exit_bytes: ran.freed_on_exit_bytes,
    };
    Ok(Ran { report, alone_because: ran.alone_because })
}

/// Threads that a variant may use.
///
/// # Safety
///
/// The context is that of a function that is running, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_context_threads(context: *const Context<'_>) -> u32 {
    // SAFETY: as the caller has said.
    unsafe { context.as_ref() }.map_or(0, Context::threads)
}

/// A region's content.
///
/// # Safety
///
/// As for [`pbs_rt_context_threads`]; `bytes` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_context_read(
    context: *const Context<'_>,
    region: usize,
    bytes: *mut usize,
) -> *const c_void {
    let mut found: (*const c_void, usize) = (null(), 0);
    let done = number(|| {
        // SAFETY: as the caller has said.
        let content = unsafe { shared(context) }?.read(region);
        let content = content.map_err(crate::error::invalid)?;
        found = (content.as_ptr().cast(), content.len());
        Ok(0)
    });
    if !bytes.is_null() {
        // SAFETY: not null, and valid.
        unsafe { bytes.write(found.1) };
    }
    if done == 0 {
        found.0
    } else {
        null()
    }
}

/// A region's content, to write it.
///
/// # Safety
///
/// As for [`pbs_rt_context_read`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_context_write(
    context: *mut Context<'_>,
    region: usize,
    bytes: *mut usize,
) -> *mut c_void {
    let mut found: (*mut c_void, usize) = (null_mut(), 0);
    let done = number(|| {
        // SAFETY: as the caller has said.
        let content = unsafe { exclusive(context) }?.write(region);
        let content = content.map_err(crate::error::invalid)?;
        found = (content.as_mut_ptr().cast(), content.len());
        Ok(0)
    });
    if !bytes.is_null() {
        // SAFETY: not null, and valid.
        unsafe { bytes.write(found.1) };
    }
    if done == 0 {
        found.0
    } else {
        null_mut()
    }
}
