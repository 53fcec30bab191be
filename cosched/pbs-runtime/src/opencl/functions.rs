// SPDX-License-Identifier: GPL-2.0
#![allow(unsafe_code)] // Functions of a library that is loaded at run time.
//! The functions of OpenCL 1.2 that are used, by name (Khronos, `CL/cl.h`).

use std::ffi::{c_char, c_void, CStr};
use std::sync::OnceLock;

/// The library that knows all others (the ICD loader).
const LIBRARY: &CStr = c"libOpenCL.so.1";

/// Object of the library, opaque to its users.
pub(crate) type Handle = *mut c_void;

pub(crate) const SUCCESS: i32 = 0;
pub(crate) const DEVICE_NOT_FOUND: i32 = -1;
/// `CL_PLATFORM_NOT_FOUND_KHR`: the loader knows no library.
pub(crate) const PLATFORM_NOT_FOUND: i32 = -1001;
pub(crate) const ALL_DEVICES: u64 = 0xFFFF_FFFF;
pub(crate) const DEVICE_NAME: u32 = 0x102B;
pub(crate) const DEVICE_GLOBAL_MEM_SIZE: u32 = 0x101F;
pub(crate) const MEM_READ_WRITE: u64 = 1;
pub(crate) const PROGRAM_BUILD_LOG: u32 = 0x1183;
pub(crate) const KERNEL_NUM_ARGS: u32 = 0x1191;
pub(crate) const KERNEL_ARG_ADDRESS_QUALIFIER: u32 = 0x1196;
pub(crate) const ADDRESS_GLOBAL: u32 = 0x119B;
pub(crate) const ADDRESS_CONSTANT: u32 = 0x119D;
pub(crate) const BLOCKING: u32 = 1;

macro_rules! functions {
    ($($field:ident = $symbol:literal: fn($($kind:ty),*) -> $result:ty;)*) => {
        /// The functions. They stay for as long as the process lives.
        #[derive(Debug)]
        pub(crate) struct Functions {
            $(pub(crate) $field: unsafe extern "C" fn($($kind),*) -> $result,)*
        }

        impl Functions {
            /// # Safety
            ///
            /// The library is open, stays so, and is OpenCL: its functions have these types.
            unsafe fn of(library: *mut c_void) -> Result<Self, String> {
                Ok(Self {
                    $($field: {
                        // SAFETY: the library is open, and the name ends with a zero.
                        let symbol = unsafe { libc::dlsym(library, $symbol.as_ptr()) };
                        if symbol.is_null() {
                            return Err(format!("libOpenCL.so.1 has no {:?}", $symbol));
                        }
                        // SAFETY: not null, and of this type, as the caller has said.
                        unsafe {
                            std::mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($kind),*) -> $result,
                            >(symbol)
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    get_platforms = c"clGetPlatformIDs": fn(u32, *mut Handle, *mut u32) -> i32;
    get_devices = c"clGetDeviceIDs": fn(Handle, u64, u32, *mut Handle, *mut u32) -> i32;
    get_device_info = c"clGetDeviceInfo": fn(Handle, u32, usize, *mut c_void, *mut usize) -> i32;
    create_context = c"clCreateContext": fn(*const isize, u32, *const Handle, *const c_void, *mut c_void, *mut i32) -> Handle;
    create_queue = c"clCreateCommandQueue": fn(Handle, Handle, u64, *mut i32) -> Handle;
    create_buffer = c"clCreateBuffer": fn(Handle, u64, usize, *mut c_void, *mut i32) -> Handle;
    create_program = c"clCreateProgramWithSource": fn(Handle, u32, *const *const c_char, *const usize, *mut i32) -> Handle;
    build_program = c"clBuildProgram": fn(Handle, u32, *const Handle, *const c_char, *const c_void, *mut c_void) -> i32;
    get_build_info = c"clGetProgramBuildInfo": fn(Handle, Handle, u32, usize, *mut c_void, *mut usize) -> i32;
    create_kernel = c"clCreateKernel": fn(Handle, *const c_char, *mut i32) -> Handle;
    get_kernel_info = c"clGetKernelInfo": fn(Handle, u32, usize, *mut c_void, *mut usize) -> i32;
    get_argument_info = c"clGetKernelArgInfo": fn(Handle, u32, u32, usize, *mut c_void, *mut usize) -> i32;
    set_argument = c"clSetKernelArg": fn(Handle, u32, usize, *const c_void) -> i32;
    enqueue_kernel = c"clEnqueueNDRangeKernel": fn(Handle, Handle, u32, *const usize, *const usize, *const usize, u32, *const Handle, *mut Handle) -> i32;
    enqueue_write = c"clEnqueueWriteBuffer": fn(Handle, Handle, u32, usize, usize, *const c_void, u32, *const Handle, *mut Handle) -> i32;
    enqueue_read = c"clEnqueueReadBuffer": fn(Handle, Handle, u32, usize, usize, *mut c_void, u32, *const Handle, *mut Handle) -> i32;
    finish = c"clFinish": fn(Handle) -> i32;
    release_buffer = c"clReleaseMemObject": fn(Handle) -> i32;
    release_kernel = c"clReleaseKernel": fn(Handle) -> i32;
    release_program = c"clReleaseProgram": fn(Handle) -> i32;
    release_queue = c"clReleaseCommandQueue": fn(Handle) -> i32;
    release_context = c"clReleaseContext": fn(Handle) -> i32;
}

/// The functions, or why there are none. Loaded once.
pub(crate) fn functions() -> Result<&'static Functions, &'static str> {
    static LOADED: OnceLock<Result<Functions, String>> = OnceLock::new();
    LOADED
        .get_or_init(|| {
            // SAFETY: the name ends with a zero. What the library does when it is loaded is
            // what the system's administrator has installed.
            let library = unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW) };
            if library.is_null() {
                return Err("libOpenCL.so.1 is not there: install ocl-icd-libopencl1".into());
            }
            // SAFETY: it is never closed, and has the name of OpenCL's loader.
            unsafe { Functions::of(library) }
        })
        .as_ref()
        .map_err(String::as_str)
}
