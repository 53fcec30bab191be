// SPDX-License-Identifier: GPL-2.0
//! An OpenCL device as an accelerator of the runtime.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::{Accelerator, Argument, Body, Buffer, DeviceSpec, Model};

use crate::opencl::handles::{self, Device, Kernel};

/// Reason for which there are no OpenCL devices, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable(pub String);

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no OpenCL: {}", self.0)
    }
}

impl std::error::Error for Unavailable {}

/// A device that OpenCL lists.
#[derive(Clone, Debug)]
pub struct FoundDevice {
    /// Name according to its manufacturer.
    pub name: String,
    /// Size of its memory in bytes.
    pub memory_bytes: u64,
    /// To execute kernels.
    pub accelerator: Arc<OpenCl>,
}

impl FoundDevice {
    /// Devices as a type of the runtime.
    pub fn spec(name: &str, found: &[Self]) -> DeviceSpec {
        let instances = found.iter().map(|of| of.accelerator.clone() as Arc<dyn Accelerator>);
        DeviceSpec { name: name.into(), instances: instances.collect(), link_bytes_per_s: None }
    }
}

/// All OpenCL devices of this machine.
///
/// # Errors
///
/// [`Unavailable`]: no library, or no device.
pub fn devices() -> Result<Vec<FoundDevice>, Unavailable> {
    let devices = handles::all().map_err(Unavailable)?;
    let found = devices.into_iter().map(|device| FoundDevice {
        name: device.name.clone(),
        memory_bytes: device.memory_bytes,
        accelerator: Arc::new(OpenCl { device, kernels: Mutex::default() }),
    });
    Ok(found.collect())
}

/// A device that executes kernels in OpenCL C.
#[derive(Debug)]
pub struct OpenCl {
    device: Device,
    /// Kernels by source and name, each built once.
    kernels: Mutex<HashMap<(String, String), Kernel>>,
}

fn own(buffer: &Buffer) -> Result<&handles::Buffer, String> {
    let own = buffer.0.downcast_ref::<handles::Buffer>();
    own.ok_or_else(|| "the buffer is not of OpenCL".into())
}

impl Accelerator for OpenCl {
    fn models(&self) -> Vec<Model> {
        vec![Model::Ocl]
    }

    fn memory_bytes(&self) -> u64 {
        self.device.memory_bytes
    }

    fn allocate(&self, bytes: usize) -> Result<Buffer, String> {
        Ok(Buffer(Box::new(self.device.buffer(bytes)?)))
    }

    fn free(&self, _: &Buffer) {
        // Released when it is dropped, after the last who has it.
    }

    fn write(&self, buffer: &Buffer, content: &[u8]) -> Result<(), String> {
        self.device.write(own(buffer)?, content)
    }

    fn read(&self, buffer: &Buffer, content: &mut [u8]) -> Result<(), String> {
        self.device.read(own(buffer)?, content)
    }

    fn execute(
        &self,
        body: &Body,
        arguments: &[Argument<'_>],
        _: Option<Duration>,
    ) -> Result<(), String> {
        let Body::Kernel(kernel) = body else {
            return Err("OpenCL executes kernels only".into());
        };
        let buffers = arguments.iter().map(|argument| own(argument.buffer));
        let buffers: Vec<_> = buffers.collect::<Result<_, _>>()?;
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (kernel.source.clone(), kernel.name.clone());
        if !kernels.contains_key(&key) {
            let built = self.device.kernel(&kernel.source, &kernel.name)?;
            kernels.insert(key.clone(), built);
        }
        let built = kernels.get_mut(&key).ok_or("the kernel was not built")?;
        self.device.execute(built, &buffers, kernel.items)
    }
}
