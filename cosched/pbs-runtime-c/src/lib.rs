// SPDX-License-Identifier: GPL-2.0
#![allow(unsafe_code)] // A C interface: pointers come from outside.
//! [`pbs_runtime`] for programs in C: `libpbsruntime`, declared in `include/pbs_runtime.h`.
//!
//! Each function is one call of the runtime behind a guard: null handles and panics become
//! errors. What the header asks of callers is what the `SAFETY` comments here rely on:
//! handles are of the function that makes them and not freed, texts end with a zero, and
//! data of a region are not used while a graph runs.

mod error;
mod graph;
mod options;
mod run;
mod start;

pub use error::{pbs_rt_last_error, pbs_rt_strerror};
pub use graph::{
    pbs_rt_graph_deadline, pbs_rt_graph_free, pbs_rt_graph_new, pbs_rt_graph_task,
    pbs_rt_region_free, pbs_rt_region_new, pbs_rt_task_after, pbs_rt_task_function,
    pbs_rt_task_kernel, pbs_rt_task_region, pbs_rt_task_transfer,
};
pub use options::{
    pbs_rt_options_cost, pbs_rt_options_determination, pbs_rt_options_free, pbs_rt_options_history,
    pbs_rt_options_iterations, pbs_rt_options_link, pbs_rt_options_new, pbs_rt_options_opencl,
    pbs_rt_options_overdue_factor, pbs_rt_options_priority, pbs_rt_options_refuse,
    pbs_rt_options_scheduler, pbs_rt_options_search, pbs_rt_options_shared,
    pbs_rt_options_simulated, pbs_rt_options_threads,
};
pub use run::{
    pbs_rt_context_read, pbs_rt_context_threads, pbs_rt_context_write, pbs_rt_free,
    pbs_rt_is_alone, pbs_rt_new, pbs_rt_run, Report,
};
pub use start::{pbs_rt_is_done, pbs_rt_start, pbs_rt_wait, Started};
