// SPDX-License-Identifier: GPL-2.0
//! The files of the repository.

use std::fs;
use std::path::{Path, PathBuf};

/// The top folder of the repository.
pub fn top() -> PathBuf {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    top.canonicalize().expect("the repository has a top folder")
}

/// The text of a file, whose path is relative to [`top`].
///
/// # Panics
///
/// If the file cannot be read: a test that needs it has failed.
pub fn text(path: &str) -> String {
    fs::read_to_string(top().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The text of a file whose path is relative to [`top`], or nothing if it cannot be read.
pub fn read(path: &Path) -> Option<String> {
    fs::read_to_string(top().join(path)).ok()
}

/// The main files of all crates: those of the workspace's packages and that of the class.
pub fn crate_roots() -> Vec<String> {
    let packages = crate::packages::packages();
    let mut roots: Vec<String> = packages.into_iter().flat_map(|package| package.roots).collect();
    roots.push("rust/sched_pbs/sched_pbs.rs".into());
    roots
}

/// The paths of all files below a folder, relative to [`top`] and in order.
///
/// Leaves out `build/`, `target/` and `.git/`, which hold no sources.
pub fn files(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    walk(&top(), Path::new(folder), &mut found);
    found.sort();
    found
}

/// Paths of all Rust files below a folder.
pub fn rust_files(folder: &str) -> Vec<String> {
    files(folder).into_iter().filter(|path| path.ends_with(".rs")).collect()
}

/// Paths of all Rust files of programs and libraries: those of tests and examples are left out.
pub fn sources() -> Vec<String> {
    let others = ["tests", "examples", "benches", "unit", "kunit"];
    let is_source = |path: &String| {
        let mut folders = path.split('/');
        !folders.any(|part| others.contains(&part)) && !path.ends_with("/tests.rs")
    };
    rust_files("").into_iter().filter(is_source).collect()
}

/// Paths of all documents below a folder: reStructuredText and Markdown.
pub fn documents(folder: &str) -> Vec<String> {
    let is_document = |path: &String| path.ends_with(".rst") || path.ends_with(".md");
    files(folder).into_iter().filter(is_document).collect()
}

fn walk(top: &Path, folder: &Path, found: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(top.join(folder)) else {
        return;
    };
    for entry in entries.flatten() {
        let path = folder.join(entry.file_name());
        let name = entry.file_name();
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if !kind.is_dir() {
            found.push(path.to_string_lossy().into_owned());
        } else if !["build", "target", ".git"].iter().any(|skipped| name == *skipped) {
            walk(top, &path, found);
        }
    }
}
