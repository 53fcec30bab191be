// SPDX-License-Identifier: GPL-2.0
//! Accelerators: devices with a memory of their own that execute variants.

use std::any::Any;
use std::fmt::Debug;
use std::sync::{PoisonError, RwLock};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::body::Body;
use crate::context::{Access, Context, Guard};
use crate::model::Model;

/// Memory that a device has given: what it is only the device knows.
#[derive(Debug)]
pub struct Buffer(pub Box<dyn Any + Send + Sync>);

/// A region as a variant gets it on a device.
#[derive(Clone, Copy, Debug)]
pub struct Argument<'a> {
    /// Buffer with the content.
    pub buffer: &'a Buffer,
    /// Length of the content.
    pub bytes: usize,
    /// Access of the variant.
    pub access: Access,
}

/// A device that executes one variant at a time, in memory of its own.
///
/// The buffers that it gets are those that it gave. What goes wrong it says in words.
pub trait Accelerator: Debug + Send + Sync {
    /// Returns the programming models that the device can execute.
    fn models(&self) -> Vec<Model>;

    /// Returns the size of its memory, in bytes.
    fn memory_bytes(&self) -> u64;

    /// Memory for so many bytes.
    ///
    /// # Errors
    ///
    /// In words.
    fn allocate(&self, bytes: usize) -> Result<Buffer, String>;

    /// Gives it back.
    fn free(&self, buffer: &Buffer);

    /// Copies from the host.
    ///
    /// # Errors
    ///
    /// In words.
    fn write(&self, buffer: &Buffer, content: &[u8]) -> Result<(), String>;

    /// Copies to the host.
    ///
    /// # Errors
    ///
    /// In words.
    fn read(&self, buffer: &Buffer, content: &mut [u8]) -> Result<(), String>;

    /// Executes a variant to its end. `takes` is how long one that is simulated takes.
    ///
    /// # Errors
    ///
    /// In words.
    fn execute(
        &self,
        body: &Body,
        arguments: &[Argument<'_>],
        takes: Option<Duration>,
    ) -> Result<(), String>;
}

/// A simulated accelerator: the host computes the result, and the device is taken for the
/// time that the variant says. Its memory is counted as that of a real one is.
#[derive(Debug)]
pub struct Simulated {
    models: Vec<Model>,
    memory_bytes: u64,
}

impl Simulated {
    /// Creates an accelerator that executes variants of these models. Transfers take only the time
    /// of the copy.
    pub fn new(models: &[Model], memory_bytes: u64) -> Self {
        Self { models: models.to_vec(), memory_bytes }
    }
}

type Content = RwLock<Vec<u8>>;

fn content(buffer: &Buffer) -> Result<&Content, String> {
    let content = buffer.0.downcast_ref::<Content>();
    content.ok_or_else(|| "the buffer is of another device".into())
}

impl Accelerator for Simulated {
    fn models(&self) -> Vec<Model> {
        self.models.clone()
    }

    fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    fn allocate(&self, bytes: usize) -> Result<Buffer, String> {
        Ok(Buffer(Box::new(Content::new(vec![0; bytes]))))
    }

    fn free(&self, buffer: &Buffer) {
        if let Ok(content) = content(buffer) {
            let mut content = content.write().unwrap_or_else(PoisonError::into_inner);
            *content = Vec::new();
        }
    }

    fn write(&self, buffer: &Buffer, from: &[u8]) -> Result<(), String> {
        let mut to = content(buffer)?.write();
        let to = to.as_deref_mut().map_err(|_| "a task has panicked")?;
        to.clear();
        to.extend_from_slice(from);
        Ok(())
    }

    fn read(&self, buffer: &Buffer, to: &mut [u8]) -> Result<(), String> {
        let from = content(buffer)?.read();
        let from = from.as_deref().map_err(|_| "a task has panicked")?;
        if from.len() == to.len() {
            to.copy_from_slice(from)
        } else {
            return Err("the buffer was given back".into());
        }
        Ok(())
    }

    fn execute(
        &self,
        body: &Body,
        arguments: &[Argument<'_>],
        takes: Option<Duration>,
    ) -> Result<(), String> {
        let Body::Function(function) = body else {
            return Err("a simulated accelerator executes functions of the host only".into());
        };
        let until = Instant::now() + takes.unwrap_or_default();
        let mut guards = Vec::with_capacity(arguments.len());
        for argument in arguments {
            guards.push(Guard::new(content(argument.buffer)?, argument.access)?);
        }
        let result = function(&mut Context::new(guards, 1));
        sleep(until.saturating_duration_since(Instant::now()));
        result
    }
}
