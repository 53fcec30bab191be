// SPDX-License-Identifier: GPL-2.0
#![allow(unsafe_code)] // Calls of a C library.
//! Objects of OpenCL with an owner: released when dropped, and errors with words.

use std::ffi::{c_char, c_void, CString};
use std::ptr::{null, null_mut};
use std::sync::{Mutex, PoisonError};

use crate::opencl::functions::{
    functions, Functions, Handle, ADDRESS_CONSTANT, ADDRESS_GLOBAL, ALL_DEVICES, BLOCKING,
    DEVICE_GLOBAL_MEM_SIZE, DEVICE_NAME, DEVICE_NOT_FOUND, KERNEL_ARG_ADDRESS_QUALIFIER,
    KERNEL_NUM_ARGS, MEM_READ_WRITE, PLATFORM_NOT_FOUND, PROGRAM_BUILD_LOG, SUCCESS,
};

/// No more platforms, or devices of one, are looked at.
const MOST: u32 = 64;

fn told(what: &str, status: i32) -> Result<(), String> {
    match status {
        SUCCESS => Ok(()),
        status => Err(format!("{what}: OpenCL error {status}")),
    }
}

/// A device, with a context and a queue of its own.
#[derive(Debug)]
pub(crate) struct Device {
    functions: &'static Functions,
    device: Handle,
    context: Handle,
    queue: Handle,
    pub(crate) name: String,
    pub(crate) memory_bytes: u64,
}

// SAFETY: OpenCL objects may be used by any thread; only clSetKernelArg on the same kernel
// may not be called by two at a time, and a `Kernel` is not `Sync`.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

/// All devices of all platforms.
pub(crate) fn all() -> Result<Vec<Device>, String> {
    // By one thread at a time: while one has pocl look for devices for the first time,
    // another one is told that there are none.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let functions = functions()?;
    let mut platforms = [null_mut(); MOST as usize];
    let mut count = 0;
    // SAFETY: there is room for as many as is said, and the count is valid.
    match unsafe { (functions.get_platforms)(MOST, platforms.as_mut_ptr(), &mut count) } {
        PLATFORM_NOT_FOUND => count = 0,
        status => told("platforms", status)?,
    }
    let mut devices = Vec::new();
    for platform in &platforms[..count.min(MOST) as usize] {
        let mut handles = [null_mut(); MOST as usize];
        let mut count = 0;
        // SAFETY: the platform is one that was given, and there is room.
        let status = unsafe {
            (functions.get_devices)(*platform, ALL_DEVICES, MOST, handles.as_mut_ptr(), &mut count)
        };
        if status == DEVICE_NOT_FOUND {
            continue;
        }
        told("devices", status)?;
        for device in &handles[..count.min(MOST) as usize] {
            devices.push(Device::new(functions, *device)?);
        }
    }
    if devices.is_empty() {
        Err("OpenCL knows no device: install its driver, or pocl-opencl-icd".into())
    } else {
        Ok(devices)
    }
}

impl Device {
    fn new(functions: &'static Functions, device: Handle) -> Result<Self, String> {
        let mut name = [0_u8; 256];
        let mut length = 0;
        // SAFETY: there is room for as many bytes as is said.
        let status = unsafe {
            let name = name.as_mut_ptr().cast();
            (functions.get_device_info)(device, DEVICE_NAME, 256, name, &mut length)
        };
        told("name of a device", status)?;
        let mut memory_bytes = 0_u64;
        // SAFETY: the answer is a u64, and there is room for it.
        let status = unsafe {
            let memory = (&raw mut memory_bytes).cast();
            (functions.get_device_info)(device, DEVICE_GLOBAL_MEM_SIZE, 8, memory, &mut length)
        };
        told("memory of a device", status)?;
        let mut status = 0;
        // SAFETY: one device, no properties, nobody to be called.
        let context = unsafe {
            (functions.create_context)(null(), 1, &device, null(), null_mut(), &mut status)
        };
        told("context", status)?;
        // SAFETY: both are valid.
        let queue = unsafe { (functions.create_queue)(context, device, 0, &mut status) };
        if let Err(error) = told("queue", status) {
            // SAFETY: made above, and not used any more.
            unsafe { (functions.release_context)(context) };
            return Err(error);
        }
        let name = String::from_utf8_lossy(&name);
        Ok(Self {
            functions,
            device,
            context,
            queue,
            name: name.trim_end_matches('\0').trim().to_string(),
            memory_bytes,
        })
    }

    pub(crate) fn buffer(&self, bytes: usize) -> Result<Buffer, String> {
        let mut status = 0;
        // OpenCL has no buffers without bytes.
        let size = bytes.max(1);
        // SAFETY: the context is valid, and no host memory is given.
        let buffer = unsafe {
            (self.functions.create_buffer)(
                self.context,
                MEM_READ_WRITE,
                size,
                null_mut(),
                &mut status,
            )
        };
        told("buffer", status)?;
        Ok(Buffer { functions: self.functions, buffer, context: self.context, bytes })
    }

    fn fits(&self, buffer: &Buffer, bytes: usize) -> Result<(), String> {
        if buffer.context == self.context && bytes <= buffer.bytes {
            Ok(())
        } else {
            Err("the buffer is of another device, or shorter".into())
        }
    }

    pub(crate) fn write(&self, buffer: &Buffer, content: &[u8]) -> Result<(), String> {
        self.fits(buffer, content.len())?;
        if content.is_empty() {
            return Ok(());
        }
        // SAFETY: both have so many bytes, and it returns when they were copied.
        let status = unsafe {
            (self.functions.enqueue_write)(
                self.queue,
                buffer.buffer,
                BLOCKING,
                0,
                content.len(),
                content.as_ptr().cast(),
                0,
                null(),
                null_mut(),
            )
        };
        told("write", status)
    }

    pub(crate) fn read(&self, buffer: &Buffer, content: &mut [u8]) -> Result<(), String> {
        self.fits(buffer, content.len())?;
        if content.is_empty() {
            return Ok(());
        }
        // SAFETY: both have so many bytes, and it returns when they were copied.
        let status = unsafe {
            (self.functions.enqueue_read)(
                self.queue,
                buffer.buffer,
                BLOCKING,
                0,
                content.len(),
                content.as_mut_ptr().cast(),
                0,
                null(),
                null_mut(),
            )
        };
        told("read", status)
    }

    /// Builds a kernel. What the compiler says is the error.
    pub(crate) fn kernel(&self, source: &str, name: &str) -> Result<Kernel, String> {
        let functions = self.functions;
        // OpenCL takes a length of 0 for a text that ends with a zero.
        if source.is_empty() {
            return Err(format!("kernel {name} has no source"));
        }
        let name_of = CString::new(name).map_err(|_| "the kernel's name has a zero")?;
        let (text, length) = (source.as_ptr().cast::<c_char>(), source.len());
        let mut status = 0;
        // SAFETY: one text of the length that is given.
        let program =
            unsafe { (functions.create_program)(self.context, 1, &text, &length, &mut status) };
        told("program", status)?;
        let mut kernel = Kernel { functions, program, kernel: null_mut(), arguments: 0 };
        let options = c"-cl-kernel-arg-info".as_ptr();
        // SAFETY: the program is of this device's context; nobody is to be called.
        let built = unsafe {
            (functions.build_program)(program, 1, &self.device, options, null(), null_mut())
        };
        if built != SUCCESS {
            return Err(format!("kernel {name} is not built: {}", self.log(program)));
        }
        // SAFETY: the program was built, and the name ends with a zero.
        kernel.kernel =
            unsafe { (functions.create_kernel)(program, name_of.as_ptr(), &mut status) };
        if status != SUCCESS {
            kernel.kernel = null_mut();
            return Err(format!("the program has no kernel {name}: OpenCL error {status}"));
        }
        // SAFETY: the answer is a u32, and there is room for it.
        let status = unsafe {
            let arguments = (&raw mut kernel.arguments).cast();
            (functions.get_kernel_info)(kernel.kernel, KERNEL_NUM_ARGS, 4, arguments, null_mut())
        };
        told("arguments", status)?;
        kernel.check(name)?;
        Ok(kernel)
    }

    fn log(&self, program: Handle) -> String {
        let mut log = vec![0_u8; 4096];
        let mut length = 0;
        // SAFETY: there is room for as many bytes as is said.
        let status = unsafe {
            (self.functions.get_build_info)(
                program,
                self.device,
                PROGRAM_BUILD_LOG,
                log.len(),
                log.as_mut_ptr().cast(),
                &mut length,
            )
        };
        if status != SUCCESS {
            return format!("OpenCL error {status}");
        }
        log.truncate(length);
        let log = String::from_utf8_lossy(&log);
        log.trim_end_matches('\0').trim().to_string()
    }

    /// Executes a kernel over so many work items, to its end.
    pub(crate) fn execute(
        &self,
        kernel: &mut Kernel,
        buffers: &[&Buffer],
        items: usize,
    ) -> Result<(), String> {
        if buffers.len() != kernel.arguments as usize {
            return Err(format!(
                "the kernel has {} arguments, and the task {} regions",
                kernel.arguments,
                buffers.len()
            ));
        }
        for (buffer, number) in buffers.iter().zip(0..) {
            self.fits(buffer, 0)?;
            let value = (&raw const buffer.buffer).cast::<c_void>();
            // SAFETY: the argument is a pointer to global or constant memory, as was checked,
            // and the value is a buffer of the kernel's context.
            let status = unsafe {
                (self.functions.set_argument)(kernel.kernel, number, size_of::<Handle>(), value)
            };
            told("argument", status)?;
        }
        if items == 0 {
            return Ok(());
        }
        // SAFETY: one dimension; the kernel and its arguments are of the queue's context.
        let status = unsafe {
            (self.functions.enqueue_kernel)(
                self.queue,
                kernel.kernel,
                1,
                null(),
                &items,
                null(),
                0,
                null(),
                null_mut(),
            )
        };
        told("kernel", status)?;
        // SAFETY: the queue is valid.
        told("kernel", unsafe { (self.functions.finish)(self.queue) })
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: made by `new`. Buffers and kernels have a reference of their own to the
        // context.
        unsafe {
            (self.functions.release_queue)(self.queue);
            (self.functions.release_context)(self.context);
        }
    }
}

/// Memory of a device.
#[derive(Debug)]
pub(crate) struct Buffer {
    functions: &'static Functions,
    buffer: Handle,
    context: Handle,
    bytes: usize,
}

// SAFETY: OpenCL objects may be used by any thread.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: made by `Device::buffer`, and only released here.
        unsafe { (self.functions.release_buffer)(self.buffer) };
    }
}

/// A kernel, built for a device.
#[derive(Debug)]
pub(crate) struct Kernel {
    functions: &'static Functions,
    program: Handle,
    kernel: Handle,
    arguments: u32,
}

// SAFETY: it may be used by any thread, by one at a time: it is not `Sync`.
unsafe impl Send for Kernel {}

impl Kernel {
    /// A buffer is no value of an argument that is a number.
    fn check(&self, name: &str) -> Result<(), String> {
        for number in 0..self.arguments {
            let mut address = 0_u32;
            // SAFETY: the answer is a u32, and there is room for it.
            let status = unsafe {
                (self.functions.get_argument_info)(
                    self.kernel,
                    number,
                    KERNEL_ARG_ADDRESS_QUALIFIER,
                    4,
                    (&raw mut address).cast(),
                    null_mut(),
                )
            };
            told("argument", status)?;
            if ![ADDRESS_GLOBAL, ADDRESS_CONSTANT].contains(&address) {
                return Err(format!(
                    "argument {number} of kernel {name} is not in global memory: a task gives \
                     its regions only"
                ));
            }
        }
        Ok(())
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        // SAFETY: made by `Device::kernel`, and only released here.
        unsafe {
            if !self.kernel.is_null() {
                (self.functions.release_kernel)(self.kernel);
            }
            (self.functions.release_program)(self.program);
        }
    }
}
