// SPDX-License-Identifier: GPL-2.0
//! Functions and kernels that variants execute.

use std::fmt;
use std::sync::Arc;

use crate::context::Context;

/// A kernel in OpenCL C. Its arguments are the task's regions, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The program.
    pub source: String,
    /// The kernel's name in it.
    pub name: String,
    /// Work items.
    pub items: usize,
}

/// A function of the host.
pub type Function = Arc<dyn Fn(&mut Context<'_>) -> Result<(), String> + Send + Sync>;

/// Code that a variant executes.
#[derive(Clone)]
pub enum Body {
    /// A function, on the CPU or on a simulated accelerator.
    Function(Function),
    /// A kernel, on a device that knows OpenCL.
    Kernel(Kernel),
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Function(_) => f.write_str("Function"),
            Self::Kernel(kernel) => kernel.fmt(f),
        }
    }
}
