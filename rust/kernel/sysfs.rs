// SPDX-License-Identifier: GPL-2.0

//! Directories of attributes in sysfs.
//!
//! A [`Directory`] has data and a table of [`Attribute`]s, each of which shows or stores a value of
//! the data.
//!
//! C header: [`include/linux/sysfs.h`](srctree/include/linux/sysfs.h)
//! C header: [`include/linux/kobject.h`](srctree/include/linux/kobject.h)
//!
//! # Examples
//!
//! ```
//! use core::{fmt::Write, sync::atomic::{AtomicU32, Ordering}};
//! use kernel::{c_str, sysfs::{Attribute, Directory}};
//!
//! struct Lamp {
//!     watts: AtomicU32,
//! }
//!
//! static LAMP: [Attribute<Lamp>; 2] = [
//!     Attribute::read_only(c_str!("colour"), |_, out| Ok(writeln!(out, "green")?)),
//!     Attribute::read_write(
//!         c_str!("watts"),
//!         |lamp, out| Ok(writeln!(out, "{}", lamp.watts.load(Ordering::Relaxed))?),
//!         |lamp, text| {
//!             lamp.watts.store(text.parse().map_err(|_| EINVAL)?, Ordering::Relaxed);
//!             Ok(())
//!         },
//!     ),
//! ];
//!
//! let lamp = Lamp { watts: AtomicU32::new(60) };
//! let directory = Directory::under_kernel(c_str!("lamp"), lamp, &LAMP)?;
//! assert_eq!(directory.data().watts.load(Ordering::Relaxed), 60);
//! # Ok::<(), Error>(())
//! ```

use crate::{
    bindings, container_of,
    error::{from_result, to_result},
    ffi::c_char,
    page::PAGE_SIZE,
    prelude::*,
    str::CStr,
    types::Opaque,
};
use core::{
    fmt,
    marker::PhantomData,
    mem::MaybeUninit,
    ptr::{self, NonNull},
};

/// Output of an attribute: a page of text.
///
/// A value that does not fit is refused, rather than cut off.
pub struct Buffer<'a> {
    page: &'a mut [u8],
    used_bytes: usize,
}

impl fmt::Write for Buffer<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.used_bytes + text.len();
        // The last byte is left, as `sysfs_emit` leaves it for its NUL.
        if end >= self.page.len() {
            return Err(fmt::Error);
        }
        self.page[self.used_bytes..end].copy_from_slice(text.as_bytes());
        self.used_bytes = end;
        Ok(())
    }
}

/// Writes a value of `T` as text.
pub type Show<T> = fn(&T, &mut Buffer<'_>) -> Result;

/// Takes a value of `T` from text, from which white space at both ends was removed.
pub type Store<T> = fn(&T, &str) -> Result;

/// A file in a [`Directory<T>`].
#[repr(C)]
pub struct Attribute<T> {
    attribute: bindings::attribute,
    show: Show<T>,
    store: Option<Store<T>>,
}

// SAFETY: Nothing in an attribute changes, and its name is immutable and lives for ever.
unsafe impl<T> Sync for Attribute<T> {}

// SAFETY: As above.
unsafe impl<T> Send for Attribute<T> {}

impl<T> Attribute<T> {
    // Only lockdep has further fields in `struct attribute`.
    #[allow(clippy::needless_update)]
    const fn new(name: &'static CStr, mode: u16, show: Show<T>, store: Option<Store<T>>) -> Self {
        Self {
            attribute: bindings::attribute {
                name: name.as_char_ptr(),
                mode,
                // SAFETY: The other fields are for lockdep; zero is what C code begins with.
                ..unsafe { MaybeUninit::zeroed().assume_init() }
            },
            show,
            store,
        }
    }

    /// An attribute that everybody may read.
    pub const fn read_only(name: &'static CStr, show: Show<T>) -> Self {
        Self::new(name, 0o444, show, None)
    }

    /// An attribute that everybody may read and root may write.
    pub const fn read_write(name: &'static CStr, show: Show<T>, store: Store<T>) -> Self {
        Self::new(name, 0o644, show, Some(store))
    }
}

/// Data of a directory for C code.
struct Node<T> {
    kobject: Opaque<bindings::kobject>,
    data: T,
}

/// A directory in sysfs with its data. Dropping it removes the directory, and sleeps until nobody
/// reads or writes its attributes.
///
/// # Invariants
///
/// `node` is valid, its `kobject` is initialised with [`Directory::TYPE`] and this owns a reference
/// count of it.
pub struct Directory<T: Send + Sync + 'static> {
    node: NonNull<Node<T>>,
    _owned: PhantomData<T>,
}

// SAFETY: A `struct kobject` may be handled by any thread; `T` is `Send`.
unsafe impl<T: Send + Sync + 'static> Send for Directory<T> {}

// SAFETY: A `struct kobject` has locks of its own; `T` is `Sync`.
unsafe impl<T: Send + Sync + 'static> Sync for Directory<T> {}

impl<T: Send + Sync + 'static> Directory<T> {
    const OPERATIONS: bindings::sysfs_ops = bindings::sysfs_ops {
        show: Some(Self::show),
        store: Some(Self::store),
    };

    const TYPE: bindings::kobj_type = bindings::kobj_type {
        release: Some(Self::release),
        sysfs_ops: &Self::OPERATIONS,
        // SAFETY: All fields are pointers and optional functions, so zero is valid.
        ..unsafe { MaybeUninit::zeroed().assume_init() }
    };

    /// Creates a directory in `/sys/kernel`. Sleeps.
    pub fn under_kernel(name: &CStr, data: T, attributes: &'static [Attribute<T>]) -> Result<Self> {
        // SAFETY: C code sets this before the initcalls and leaves it.
        let parent = unsafe { bindings::kernel_kobj };
        // SAFETY: `parent` is valid or null.
        unsafe { Self::new(parent, name, data, attributes) }
    }

    /// Creates a directory in this one. Sleeps.
    pub fn subdirectory<U: Send + Sync + 'static>(
        &self,
        name: &CStr,
        data: U,
        attributes: &'static [Attribute<U>],
    ) -> Result<Directory<U>> {
        // SAFETY: By the type invariant, the kobject of this directory is valid.
        unsafe { Directory::<U>::new(self.kobject(), name, data, attributes) }
    }

    /// # Safety
    ///
    /// `parent` must be null or a valid kobject.
    unsafe fn new(
        parent: *mut bindings::kobject,
        name: &CStr,
        data: T,
        attributes: &'static [Attribute<T>],
    ) -> Result<Self> {
        let node = KBox::new(
            Node {
                kobject: Opaque::new(bindings::kobject::default()),
                data,
            },
            GFP_KERNEL,
        )?;
        let node = KBox::into_raw(node);

        // SAFETY: `node` is valid and its kobject is zero. The kobject has its place from here on.
        unsafe { bindings::kobject_init((*node).kobject.get(), &Self::TYPE) };

        // INVARIANT: As just done; the first reference count belongs to who initialises it. So an
        // early return drops the node by way of `release`.
        let directory = Self {
            // SAFETY: `into_raw` does not return null.
            node: unsafe { NonNull::new_unchecked(node) },
            _owned: PhantomData,
        };

        // SAFETY: The kobject is initialised, `parent` is valid or null by the function's
        // requirements, and the format takes one string.
        to_result(unsafe {
            bindings::kobject_add(
                directory.kobject(),
                parent,
                crate::c_str!("%s").as_char_ptr(),
                name.as_char_ptr(),
            )
        })?;
        for attribute in attributes {
            // SAFETY: The kobject was added, and the attribute lives for ever. C code casts it back
            // only in `show` and `store`, which know its type by that of the kobject.
            to_result(unsafe {
                bindings::sysfs_create_file_ns(
                    directory.kobject(),
                    ptr::addr_of!(attribute.attribute),
                    ptr::null(),
                )
            })?;
        }
        Ok(directory)
    }

    /// Returns the data.
    pub fn data(&self) -> &T {
        // SAFETY: By the type invariant, `node` is valid as long as this exists.
        unsafe { &self.node.as_ref().data }
    }

    fn kobject(&self) -> *mut bindings::kobject {
        // SAFETY: By the type invariant, `node` is valid as long as this exists.
        unsafe { self.node.as_ref().kobject.get() }
    }

    /// # Safety
    ///
    /// `kobject` must be that of a valid [`Node<T>`], and `attribute` that of an [`Attribute<T>`].
    unsafe fn resolve<'a>(
        kobject: *mut bindings::kobject,
        attribute: *mut bindings::attribute,
    ) -> (&'a T, &'a Attribute<T>) {
        // SAFETY: By the function's requirements. An attribute is the first field of its
        // `Attribute<T>`.
        unsafe {
            let node = container_of!(kobject, Node<T>, kobject);
            (&(*node).data, &*attribute.cast::<Attribute<T>>())
        }
    }

    /// # Safety
    ///
    /// C code must call this to read an attribute of a kobject of [`Directory::TYPE`], with a page
    /// to write to.
    unsafe extern "C" fn show(
        kobject: *mut bindings::kobject,
        attribute: *mut bindings::attribute,
        page: *mut c_char,
    ) -> isize {
        // SAFETY: Only this type's attributes are added to kobjects of its type, and sysfs waits
        // for this function before it lets go of the kobject.
        let (data, attribute) = unsafe { Self::resolve(kobject, attribute) };
        from_result(|| {
            let mut buffer = Buffer {
                // SAFETY: sysfs passes a zeroed page, which nobody else uses meanwhile.
                page: unsafe { core::slice::from_raw_parts_mut(page.cast(), PAGE_SIZE) },
                used_bytes: 0,
            };
            (attribute.show)(data, &mut buffer)?;
            Ok(buffer.used_bytes as isize)
        })
    }

    /// # Safety
    ///
    /// C code must call this to write an attribute of a kobject of [`Directory::TYPE`], with
    /// `bytes` bytes at `text`.
    unsafe extern "C" fn store(
        kobject: *mut bindings::kobject,
        attribute: *mut bindings::attribute,
        text: *const c_char,
        bytes: usize,
    ) -> isize {
        // SAFETY: As in `show`.
        let (data, attribute) = unsafe { Self::resolve(kobject, attribute) };
        from_result(|| {
            // SAFETY: By the function's requirements; nobody changes the text meanwhile.
            let text = unsafe { core::slice::from_raw_parts(text.cast(), bytes) };
            let text = core::str::from_utf8(text)?.trim();
            attribute.store.ok_or(EIO)?(data, text)?;
            Ok(bytes as isize)
        })
    }

    /// # Safety
    ///
    /// C code must call this when the last reference to a kobject of [`Directory::TYPE`] is gone.
    unsafe extern "C" fn release(kobject: *mut bindings::kobject) {
        // SAFETY: By the function's requirements, the kobject lies in a `Node<T>` that `new` made
        // with `into_raw`, and nobody uses it any more.
        drop(unsafe { KBox::from_raw(container_of!(kobject, Node<T>, kobject).cast_mut()) });
    }
}

impl<T: Send + Sync + 'static> Drop for Directory<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant, the kobject is initialised, which is enough for this.
        unsafe { bindings::kobject_del(self.kobject()) };
        // SAFETY: By the type invariant, this owns a reference count.
        unsafe { bindings::kobject_put(self.kobject()) };
    }
}
