// SPDX-License-Identifier: GPL-2.0
//! Graphs and regions.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::Duration;

use pbs_runtime::{Access, Body, Context, Graph, Kernel, Region, Task, Variant};

use crate::error::{exclusive, free, handle, invalid, needed, number, shared, text, Failure};
use crate::options::model;

/// Data of the caller.
#[derive(Clone, Debug)]
pub struct OwnRegion {
    pub(crate) region: Region,
    pub(crate) data: *mut u8,
    pub(crate) bytes: usize,
    /// Whether a graph that has it is running. Copies of a region have the same.
    pub(crate) is_running: Arc<AtomicBool>,
}

/// A graph under construction. It is built when it runs: regions that a task has make
/// dependencies only when all of them are known.
#[derive(Debug, Default)]
pub struct OwnGraph {
    tasks: Vec<(Task, Vec<usize>)>,
    deadline: Option<Duration>,
    regions: Vec<OwnRegion>,
}

type FunctionOfC = unsafe extern "C" fn(*mut Context<'_>, *mut c_void) -> c_int;

/// A function and its argument.
struct Call {
    function: FunctionOfC,
    argument: *mut c_void,
}

// SAFETY: the header says that it runs in threads of the library, several at a time.
unsafe impl Send for Call {}
// SAFETY: as above.
unsafe impl Sync for Call {}

impl Call {
    fn run(&self, context: &mut Context<'_>) -> Result<(), String> {
        // SAFETY: the function is the caller's, for a context and this argument; the context
        // lives through the call.
        match unsafe { (self.function)(context, self.argument) } {
            0 => Ok(()),
            other => Err(format!("its function has answered {other}")),
        }
    }
}

impl OwnGraph {
    /// The graph, built.
    pub(crate) fn build(&self) -> Graph {
        let mut graph = Graph::new();
        if let Some(deadline) = self.deadline {
            graph.set_deadline(deadline);
        }
        let ids: Vec<_> = self.tasks.iter().map(|(task, _)| graph.add(task.clone())).collect();
        for ((_, after), id) in self.tasks.iter().zip(&ids) {
            for before in after {
                graph.depend(*id, ids[*before]);
            }
        }
        graph
    }

    pub(crate) fn regions(&self) -> &[OwnRegion] {
        &self.regions
    }

    fn task(&mut self, task: c_int) -> Result<&mut (Task, Vec<usize>), Failure> {
        let task = usize::try_from(task).ok();
        let task = task.and_then(|task| self.tasks.get_mut(task));
        task.ok_or_else(|| invalid("the graph has no such task"))
    }

    /// Replaces a task by what is made of it.
    fn change(&mut self, task: c_int, change: impl FnOnce(Task) -> Task) -> Result<(), Failure> {
        let own = &mut self.task(task)?.0;
        *own = change(std::mem::replace(own, Task::new("")));
        Ok(())
    }

    fn add_variant(&mut self, task: c_int, variant: Variant, ns: u64) -> Result<c_int, Failure> {
        let variant = match ns {
            0 => variant,
            ns => variant.taking(Duration::from_nanos(ns)),
        };
        self.change(task, |own| own.variant(variant))?;
        Ok(0)
    }
}

/// A region of the caller's data.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_region_new(data: *mut c_void, bytes: usize) -> *mut OwnRegion {
    handle(|| {
        if data.is_null() && bytes > 0 {
            return Err(invalid("data are NULL"));
        }
        let mut content = Vec::new();
        let has_room = content.try_reserve_exact(bytes);
        has_room.map_err(|_| invalid("there is not so much memory"))?;
        content.resize(bytes, 0);
        Ok(OwnRegion {
            region: Region::new(content),
            data: data.cast(),
            bytes,
            is_running: Arc::default(),
        })
    })
}

/// Frees a region.
///
/// # Safety
///
/// Null, or of [`pbs_rt_region_new`] and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_region_free(region: *mut OwnRegion) {
    // SAFETY: as the caller has said.
    unsafe { free(region) };
}

/// A graph without tasks.
#[unsafe(no_mangle)]
pub extern "C" fn pbs_rt_graph_new() -> *mut OwnGraph {
    handle(|| Ok(OwnGraph::default()))
}

/// Frees a graph.
///
/// # Safety
///
/// Null, or of [`pbs_rt_graph_new`] and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_graph_free(graph: *mut OwnGraph) {
    // SAFETY: as the caller has said.
    unsafe { free(graph) };
}

/// Adds a task.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_graph_task(
    graph: *mut OwnGraph,
    name: *const c_char,
    kind: *const c_char,
) -> c_int {
    number(|| {
        // SAFETY: as the caller has said.
        let (graph, name, kind) = unsafe { (exclusive(graph)?, needed(name)?, text(kind)?) };
        let own = c_int::try_from(graph.tasks.len());
        let own = own.map_err(|_| invalid("there are too many tasks"))?;
        let mut task = Task::new(&name);
        if let Some(kind) = kind {
            task = task.kind(&kind);
        }
        graph.tasks.push((task, Vec::new()));
        Ok(own)
    })
}

/// Adds a function as a variant.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_task_function(
    graph: *mut OwnGraph,
    task: c_int,
    of: c_int,
    threads: u32,
    takes_ns: u64,
    function: Option<FunctionOfC>,
    argument: *mut c_void,
) -> c_int {
    number(|| {
        // SAFETY: as the caller has said.
        let graph = unsafe { exclusive(graph) }?;
        let function = function.ok_or_else(|| invalid("the function is NULL"))?;
        let call = Call { function, argument };
        let body = Body::Function(Arc::new(move |context: &mut Context<'_>| call.run(context)));
        graph.add_variant(task, Variant::new(model(of)?, threads, body), takes_ns)
    })
}

/// Adds a kernel as a variant.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_task_kernel(
    graph: *mut OwnGraph,
    task: c_int,
    source: *const c_char,
    name: *const c_char,
    items: usize,
    expected_ns: u64,
) -> c_int {
    number(|| {
        // SAFETY: as the caller has said.
        let (graph, source, name) = unsafe { (exclusive(graph)?, needed(source)?, needed(name)?) };
        if source.is_empty() {
            return Err(invalid(format!("kernel {name} has no source")));
        }
        let kernel = Kernel { source, name, items };
        graph.add_variant(task, Variant::kernel(kernel), expected_ns)
    })
}

/// Gives a task a region.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_task_region(
    graph: *mut OwnGraph,
    task: c_int,
    region: *mut OwnRegion,
    access: c_int,
) -> c_int {
    number(|| {
        // SAFETY: as the caller has said.
        let (graph, region) = unsafe { (exclusive(graph)?, shared(region)?) };
        let access = match access {
            1 => Access::Read,
            2 => Access::Write,
            3 => Access::ReadWrite,
            other => return Err(invalid(format!("{other} is no access"))),
        };
        graph.change(task, |own| own.region(&region.region, access))?;
        if !graph.regions.iter().any(|of| of.region.is(&region.region)) {
            graph.regions.push(region.clone());
        }
        Ok(0)
    })
}

/// Sets the size of a task's transfer.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_task_transfer(
    graph: *mut OwnGraph,
    task: c_int,
    bytes: u64,
) -> c_int {
    number(|| {
        // SAFETY: as the caller has said.
        unsafe { exclusive(graph) }?.change(task, |own| own.transferring(bytes))?;
        Ok(0)
    })
}

/// Makes a task wait for another.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_task_after(
    graph: *mut OwnGraph,
    task: c_int,
    before: c_int,
) -> c_int {
    number(|| {
        // SAFETY: as the caller has said.
        let graph = unsafe { exclusive(graph) }?;
        graph.task(before)?;
        let before = usize::try_from(before).unwrap_or(0);
        graph.task(task)?.1.push(before);
        Ok(0)
    })
}

/// Sets the deadline of a graph.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_graph_deadline(graph: *mut OwnGraph, deadline_ns: u64) -> c_int {
    number(|| {
        // SAFETY: as the caller has said.
        let graph = unsafe { exclusive(graph) }?;
        if deadline_ns == 0 {
            return Err(invalid("a deadline of 0 ns can't be met: write at least 1"));
        }
        graph.deadline = Some(Duration::from_nanos(deadline_ns));
        Ok(0)
    })
}
