// SPDX-License-Identifier: GPL-2.0
//! How the library for programs in C is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // It stays in memory after dlclose(), as its handler for SIGBUS stays installed.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
