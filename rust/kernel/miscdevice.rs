// SPDX-License-Identifier: GPL-2.0

//! Character devices of the misc class, with a dynamic minor number.
//!
//! The devices are for code that is part of the kernel image: nothing here counts references to a
//! module.
//!
//! C header: [`include/linux/miscdevice.h`](srctree/include/linux/miscdevice.h)
//!
//! # Examples
//!
//! ```
//! use kernel::{
//!     c_str,
//!     iov::IovIterDest,
//!     miscdevice::{MiscDevice, MiscDeviceRegistration, Options},
//! };
//!
//! /// A device from which one reads the same answer always.
//! struct Answer;
//!
//! #[vtable]
//! impl MiscDevice for Answer {
//!     type Ptr = KBox<u8>;
//!
//!     fn open() -> Result<KBox<u8>> {
//!         Ok(KBox::new(42, GFP_KERNEL)?)
//!     }
//!
//!     fn read(data: &u8, user: &mut IovIterDest<'_>, _nonblock: bool) -> Result<usize> {
//!         while !user.write_nofault(data) {
//!             user.fault_in(1)?;
//!         }
//!         Ok(1)
//!     }
//! }
//!
//! let options = Options { name: c_str!("answer"), mode: 0o400 };
//! let device = KBox::pin_init(MiscDeviceRegistration::<Answer>::new(options), GFP_KERNEL)?;
//! # Ok::<(), Error>(())
//! ```

use crate::{
    bindings, build_error,
    error::{from_result, to_result, VTABLE_DEFAULT_ERROR},
    ffi::{c_int, c_long, c_uint, c_ulong},
    init::pin_init_from_closure,
    iov::{IovIterDest, IovIterSource},
    mmap::MmapArea,
    poll::PollTable,
    prelude::*,
    str::CStr,
    types::{ForeignOwnable, Opaque},
};
use core::marker::PhantomData;

/// The data of an open file, borrowed for a call.
pub type Borrowed<'a, T> = <<T as MiscDevice>::Ptr as ForeignOwnable>::Borrowed<'a>;

/// Name and permissions of a device.
#[derive(Clone, Copy)]
pub struct Options {
    /// Name of the device in `/dev`.
    pub name: &'static CStr,
    /// The permissions of its node, e.g. `0o600`.
    pub mode: u16,
}

/// Operations of a device.
///
/// Every open file is a stream: it has no position, `lseek(2)` and `pread(2)` fail, and a read that
/// waits does not hold up a write on the same file. The pieces of a `readv(2)` or `writev(2)`
/// arrive as one.
#[vtable]
pub trait MiscDevice: Sized {
    /// The data of an open file.
    type Ptr: ForeignOwnable + Send + Sync;

    /// Opens the device.
    fn open() -> Result<Self::Ptr>;

    /// The last reference to an open file is gone.
    fn release(data: Self::Ptr) {
        drop(data);
    }

    /// Reads from the device. Returns the number of bytes that were given to the user.
    ///
    /// If `nonblock` is set and there is nothing to read, it fails with [`EAGAIN`].
    fn read(data: Borrowed<'_, Self>, user: &mut IovIterDest<'_>, nonblock: bool) -> Result<usize> {
        let _ = (data, user, nonblock);
        build_error(VTABLE_DEFAULT_ERROR)
    }

    /// Writes to the device. Returns the number of bytes that were taken from the user.
    fn write(
        data: Borrowed<'_, Self>,
        user: &mut IovIterSource<'_>,
        nonblock: bool,
    ) -> Result<usize> {
        let _ = (data, user, nonblock);
        build_error(VTABLE_DEFAULT_ERROR)
    }

    /// Tells which of [`poll`](crate::poll)'s conditions hold, after registering the queues that
    /// are woken when this changes.
    fn poll<'a>(data: Borrowed<'a, Self>, table: &PollTable<'a>) -> u32 {
        let _ = (data, table);
        build_error(VTABLE_DEFAULT_ERROR)
    }

    /// Fills an area of the caller's address space with what the file has at the area's offset.
    ///
    /// The file stays open as long as the area is there.
    fn mmap(data: Borrowed<'_, Self>, area: &mut MmapArea<'_>) -> Result {
        let _ = (data, area);
        build_error(VTABLE_DEFAULT_ERROR)
    }

    /// Carries out the command `cmd`. An unknown command fails with [`ENOTTY`].
    ///
    /// A 32-bit caller's `arg` is taken as a pointer. Therefore all arguments must be pointers to
    /// structures with the same layout for 32 and 64 bits, or unused.
    fn ioctl(data: Borrowed<'_, Self>, cmd: u32, arg: usize) -> Result<isize> {
        let _ = (data, cmd, arg);
        build_error(VTABLE_DEFAULT_ERROR)
    }
}

/// A registered device. Dropping it removes the device; files that are open stay so.
///
/// # Invariants
///
/// `inner` is registered.
#[pin_data(PinnedDrop)]
pub struct MiscDeviceRegistration<T: MiscDevice> {
    #[pin]
    inner: Opaque<bindings::miscdevice>,
    _device: PhantomData<T>,
}

// SAFETY: A `struct miscdevice` may be deregistered by any thread; there is no `T` in this.
unsafe impl<T: MiscDevice> Send for MiscDeviceRegistration<T> {}

// SAFETY: There is nothing to do with a shared reference to this.
unsafe impl<T: MiscDevice> Sync for MiscDeviceRegistration<T> {}

impl<T: MiscDevice> MiscDeviceRegistration<T> {
    /// Registers a device. Sleeps.
    pub fn new(options: Options) -> impl PinInit<Self, Error> {
        let register = move |slot: *mut Opaque<bindings::miscdevice>| {
            let slot = Opaque::raw_get(slot);
            // SAFETY: `slot` is valid for writes.
            unsafe {
                slot.write(bindings::miscdevice {
                    minor: bindings::MISC_DYNAMIC_MINOR as _,
                    name: options.name.as_char_ptr(),
                    fops: &FileOperations::<T>::TABLE,
                    mode: options.mode,
                    ..Default::default()
                })
            };
            // SAFETY: `slot` is initialised. It stays where it is until it is dropped, since it is
            // pinned, and dropping it deregisters it. The name and the table live for ever.
            to_result(unsafe { bindings::misc_register(slot) })
        };

        // INVARIANT: If `register` succeeds, `inner` is registered.
        try_pin_init!(Self {
            // SAFETY: `register` has initialised its argument if it succeeds, and has left nothing
            // behind if it fails.
            inner <- unsafe { pin_init_from_closure::<_, Error>(register) },
            _device: PhantomData,
        })
    }
}

#[pinned_drop]
impl<T: MiscDevice> PinnedDrop for MiscDeviceRegistration<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariant, `inner` is registered.
        unsafe { bindings::misc_deregister(self.inner.get()) };
    }
}

/// The C side of a [`MiscDevice`].
///
/// All the functions here have these requirements: C code calls them with a valid `file`; `open`
/// first and once; none of the others unless `open` has succeeded; and `release` last and once.
struct FileOperations<T>(PhantomData<T>);

impl<T: MiscDevice> FileOperations<T> {
    const TABLE: bindings::file_operations = bindings::file_operations {
        open: Some(Self::open),
        release: Some(Self::release),
        read_iter: if T::HAS_READ {
            Some(Self::read_iter)
        } else {
            None
        },
        write_iter: if T::HAS_WRITE {
            Some(Self::write_iter)
        } else {
            None
        },
        poll: if T::HAS_POLL { Some(Self::poll) } else { None },
        mmap: if T::HAS_MMAP { Some(Self::mmap) } else { None },
        unlocked_ioctl: if T::HAS_IOCTL {
            Some(Self::ioctl)
        } else {
            None
        },
        #[cfg(CONFIG_COMPAT)]
        compat_ioctl: if T::HAS_IOCTL {
            Some(bindings::compat_ptr_ioctl)
        } else {
            None
        },
        // SAFETY: All fields are integers, pointers and optional functions, so zero is valid.
        ..unsafe { core::mem::MaybeUninit::zeroed().assume_init() }
    };

    /// Borrows the data of an open file.
    ///
    /// # Safety
    ///
    /// `file` must be open, and `release` must end `'a`.
    unsafe fn data<'a>(file: *mut bindings::file) -> Borrowed<'a, T> {
        // SAFETY: `open` has put there what `into_foreign` gave it, and only `release` takes it.
        unsafe { T::Ptr::borrow((*file).private_data) }
    }

    /// Returns whether calls on the file must not wait.
    ///
    /// # Safety
    ///
    /// `file` must be open.
    unsafe fn is_nonblock(file: *mut bindings::file) -> bool {
        // SAFETY: By the function's requirements. The read is volatile because `fcntl(2)` may
        // change the flags at the same time.
        let flags = unsafe { core::ptr::addr_of!((*file).f_flags).read_volatile() };
        flags & bindings::O_NONBLOCK != 0
    }

    /// # Safety
    ///
    /// See [`FileOperations`].
    unsafe extern "C" fn open(inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        from_result(|| {
            // SAFETY: C code passes a valid inode and file.
            to_result(unsafe { bindings::stream_open(inode, file) })?;
            let data = T::open()?;
            // SAFETY: The file is being opened, so nobody else looks at this field.
            unsafe { (*file).private_data = data.into_foreign().cast_mut() };
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// See [`FileOperations`].
    unsafe extern "C" fn release(_: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: `open` has put there what `into_foreign` gave it. No other call is under way, nor
        // will there be one.
        T::release(unsafe { T::Ptr::from_foreign((*file).private_data) });
        0
    }

    /// # Safety
    ///
    /// See [`FileOperations`].
    unsafe extern "C" fn read_iter(
        call: *mut bindings::kiocb,
        iter: *mut bindings::iov_iter,
    ) -> isize {
        // SAFETY: C code keeps the file open during the call. `iter` is this function's argument,
        // and what is made of it is gone when this function returns.
        let (data, nonblock, mut user) = unsafe {
            let file = (*call).ki_filp;
            (
                Self::data(file),
                Self::is_nonblock(file),
                IovIterDest::from_raw(iter),
            )
        };
        from_result(|| Ok(T::read(data, &mut user, nonblock)? as isize))
    }

    /// # Safety
    ///
    /// See [`FileOperations`].
    unsafe extern "C" fn write_iter(
        call: *mut bindings::kiocb,
        iter: *mut bindings::iov_iter,
    ) -> isize {
        // SAFETY: As for `read_iter`.
        let (data, nonblock, mut user) = unsafe {
            let file = (*call).ki_filp;
            (
                Self::data(file),
                Self::is_nonblock(file),
                IovIterSource::from_raw(iter),
            )
        };
        from_result(|| Ok(T::write(data, &mut user, nonblock)? as isize))
    }

    /// # Safety
    ///
    /// See [`FileOperations`].
    unsafe extern "C" fn poll(
        file: *mut bindings::file,
        table: *mut bindings::poll_table,
    ) -> bindings::__poll_t {
        // SAFETY: C code keeps the file open during the call, and `release` ends both.
        let (data, table) = unsafe { (Self::data(file), PollTable::new(file, table)) };
        T::poll(data, &table)
    }

    /// # Safety
    ///
    /// See [`FileOperations`].
    unsafe extern "C" fn mmap(
        file: *mut bindings::file,
        vma: *mut bindings::vm_area_struct,
    ) -> c_int {
        // SAFETY: C code keeps the file open during the call. `vma` is this function's argument,
        // and what is made of it is gone when this function returns.
        let (data, mut area) = unsafe { (Self::data(file), MmapArea::new(vma)) };
        from_result(|| {
            T::mmap(data, &mut area)?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// See [`FileOperations`].
    unsafe extern "C" fn ioctl(file: *mut bindings::file, cmd: c_uint, arg: c_ulong) -> c_long {
        // SAFETY: C code keeps the file open during the call.
        let data = unsafe { Self::data(file) };
        // Not the same type in every 6.12.
        #[allow(clippy::unnecessary_cast)]
        from_result(|| Ok(T::ioctl(data, cmd, arg as usize)? as c_long))
    }
}
