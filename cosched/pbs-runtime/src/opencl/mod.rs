// SPDX-License-Identifier: GPL-2.0
//! OpenCL devices for [`pbs_runtime`], where there is a library.
//!
//! `libOpenCL.so.1` is loaded when it is asked for; nothing is linked, and without it
//! [`devices`] says why there are none. What is bound is what a runtime needs: platforms,
//! devices, a context with a queue for each, buffers, programs from source, kernels.
//!
//! A kernel is code of the program that brings it, as its functions are. On a device that
//! is the CPU it can do all that they can, and writing outside of its regions harms the
//! process in the same way. What can be checked is: that it has an argument in global or
//! constant memory for each of the task's regions.

mod accelerator;
mod functions;
mod handles;

pub use accelerator::{devices, FoundDevice, OpenCl, Unavailable};
