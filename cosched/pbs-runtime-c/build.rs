// SPDX-License-Identifier: GPL-2.0
//! Linking of the library for programs in C.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // It stays in memory after dlclose(), as its handler for SIGBUS stays installed.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // A program asks for this name.  The number changes when older programs could not continue.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libpbsruntime.so.0");
}
