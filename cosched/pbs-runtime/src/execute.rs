// SPDX-License-Identifier: GPL-2.0
//! Executing one variant, in a worker.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;

use pbs_uapi::clock::monotonic_ns;

use crate::accelerator::Argument;
use crate::body::Body;
use crate::context::{Context, Guard};
use crate::graph::Task;
use crate::memory::Memory;
use crate::region::{Region, Transferred};

/// Execution of a variant, without the transfers before it.
#[derive(Debug)]
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
                    } else {
                        // Else who evicts a copy meanwhile would bring it home over this.
                        region.written(None);
                    }
                }
                let Body::Function(function) = &variant.body else {
                    return Err("the CPU executes functions only".into());
                };
                let mut guards = Vec::with_capacity(task.regions.len());
                for (region, access) in &task.regions {
                    guards.push(Guard::new(&region.0.host, *access)?);
                }
                let started_ns = monotonic_ns();
                function(&mut Context::new(guards, variant.threads))?;
                Ok((started_ns, monotonic_ns()))
            }
            Some(memory) => {
                let mut buffers = Vec::with_capacity(task.regions.len());
                for (region, access) in &task.regions {
                    let mut buffer = region.to_memory(memory, access.reads(), &mut transfers)?;
                    // Data of tasks that wait may take the room that was just made.
                    while buffer.is_none() && make_room(task, memory, all)? {
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
                let started_ns = monotonic_ns();
                let accelerator = memory.accelerator();
                accelerator.execute(&variant.body, &arguments, variant.takes)?;
                Ok((started_ns, monotonic_ns()))
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
    Ok(Ran { started_ns, ended_ns, transfers })
}

/// Copies other tasks' regions from a device back to the host. Returns whether there were any.
fn make_room(task: &Task, memory: &Arc<Memory>, all: &[Region]) -> Result<bool, String> {
    let mut has_freed = false;
    for region in all {
        if !task.regions.iter().any(|(own, _)| own.is(region)) {
            has_freed |= region.evict(memory)?;
        }
    }
    Ok(has_freed)
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("it panicked: {}", text.as_deref().unwrap_or("no reason"))
}

#[cfg(test)]
mod tests {
    use std::fmt;
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;
    use crate::accelerator::{Accelerator, Buffer, Simulated};
    use crate::graph::Variant;
    use crate::{Access, Model};

    /// Accelerator that calls a function at the first transfer to the host.
    struct AtRead(Simulated, Mutex<Option<Box<dyn FnOnce() + Send>>>);

    impl fmt::Debug for AtRead {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("AtRead")
        }
    }

    impl Accelerator for AtRead {
        fn models(&self) -> Vec<Model> {
            self.0.models()
        }

        fn memory_bytes(&self) -> u64 {
            self.0.memory_bytes()
        }

        fn allocate(&self, bytes: usize) -> Result<Buffer, String> {
            self.0.allocate(bytes)
        }

        fn free(&self, buffer: &Buffer) {
            self.0.free(buffer);
        }

        fn write(&self, buffer: &Buffer, content: &[u8]) -> Result<(), String> {
            self.0.write(buffer, content)
        }

        fn read(&self, buffer: &Buffer, content: &mut [u8]) -> Result<(), String> {
            let does = self.1.lock().unwrap().take();
            if let Some(does) = does {
                does();
            }
            self.0.read(buffer, content)
        }

        fn execute(
            &self,
            body: &Body,
            arguments: &[Argument<'_>],
            takes: Option<Duration>,
        ) -> Result<(), String> {
            self.0.execute(body, arguments, takes)
        }
    }

    #[test]
    fn room_that_is_taken_while_it_is_made_is_made_again() {
        let simulated = Simulated::new(&[Model::Gpu], 6);
        let accelerator = Arc::new(AtRead(simulated, Mutex::new(None)));
        let memory = Arc::new(Memory::new("gpu", accelerator.clone()));
        let region = |bytes| Region::new(vec![1; bytes]);
        let (staged, first, last, own) = (region(3), region(3), region(3), region(6));
        for left in [&first, &last] {
            left.to_memory(&memory, true, &mut Vec::new()).unwrap();
        }
        last.written(Some(&memory));
        // The first has gone by then.
        let (waiting, there) = (staged.clone(), memory.clone());
        let stage = move || {
            let here = waiting.to_memory(&there, true, &mut Vec::new());
            assert!(here.unwrap().is_some());
        };
        *accelerator.1.lock().unwrap() = Some(Box::new(stage));
        let variant = Variant::simulated(Model::Gpu, Duration::ZERO, |_| Ok(()));
        let task = Task::new("t").variant(variant).region(&own, Access::Read);
        let all = [staged, first, last, own];
        let ran = execute(&task, 0, Some(&memory), &all);
        assert_eq!(ran.err(), None);
        assert_eq!(memory.used_bytes(), 6);
    }
}
