// SPDX-License-Identifier: GPL-2.0
//! Executing one variant, in a worker.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;

use pbs_csi::now_ns;

use crate::accelerator::Argument;
use crate::context::{Context, Guard};
use crate::graph::{Body, Task};
use crate::memory::Memory;
use crate::region::{Region, Transferred};

/// How a variant ran; transfers are before it.
pub(crate) struct Ran {
    pub(crate) started_ns: u64,
    pub(crate) ended_ns: u64,
    pub(crate) transfers: Vec<Transferred>,
}

/// Executes a variant: brings its data, runs it, and says what is new.
pub(crate) fn execute(
    task: &Task,
    variant: usize,
    memory: Option<&Arc<Memory>>,
    all: &[Region],
) -> Result<Ran, String> {
    let mut transfers = Vec::new();
    let variant = &task.variants[variant];
    let run = || -> Result<(u64, u64), String> {
        match memory {
            None => {
                for (region, access) in &task.regions {
                    if access.reads() {
                        transfers.extend(region.to_host()?);
                    }
                }
                let Body::Function(function) = &variant.body else {
                    return Err("the CPU executes functions only".into());
                };
                let mut guards = Vec::with_capacity(task.regions.len());
                for (region, access) in &task.regions {
                    guards.push(Guard::new(&region.0.host, *access)?);
                }
                let started_ns = now_ns();
                function(&mut Context::new(guards, variant.threads))?;
                Ok((started_ns, now_ns()))
            }
            Some(memory) => {
                let mut buffers = Vec::with_capacity(task.regions.len());
                for (region, access) in &task.regions {
                    let mut buffer = region.to_memory(memory, access.reads(), &mut transfers)?;
                    if buffer.is_none() {
                        make_room(task, memory, all)?;
                        buffer = region.to_memory(memory, access.reads(), &mut transfers)?;
                    }
                    buffers.push(buffer.ok_or("the device has too little memory for its regions")?);
                }
                let arguments: Vec<Argument<'_>> = task
                    .regions
                    .iter()
                    .zip(&buffers)
                    .map(|((region, access), buffer)| Argument {
                        buffer,
                        bytes: region.len(),
                        access: *access,
                    })
                    .collect();
                let started_ns = now_ns();
                let accelerator = memory.accelerator();
                accelerator.execute(&variant.body, &arguments, variant.takes)?;
                Ok((started_ns, now_ns()))
            }
        }
    };
    let (started_ns, ended_ns) = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(ran) => ran?,
        Err(panic) => return Err(panicked(&*panic)),
    };
    for (region, access) in &task.regions {
        if access.writes() {
            region.written(memory);
        }
    }
    Ok(Ran {
        started_ns,
        ended_ns,
        transfers,
    })
}

/// What other tasks have left on a device goes home.
fn make_room(task: &Task, memory: &Arc<Memory>, all: &[Region]) -> Result<(), String> {
    for region in all {
        if !task.regions.iter().any(|(own, _)| own.is(region)) {
            region.evict(memory)?;
        }
    }
    Ok(())
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("it panicked: {}", text.as_deref().unwrap_or("no reason"))
}
