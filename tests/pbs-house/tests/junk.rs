// SPDX-License-Identifier: GPL-2.0
//! Files that nobody meant to keep.

use std::fs;
use std::io::Read;

use pbs_house::tree;

/// The largest file that is not text.
const MOST_BINARY_BYTES: u64 = 64 * 1024;

#[test]
fn no_name_begins_with_a_hyphen() {
    let begins = |path: &String| path.split('/').any(|part| part.starts_with('-'));
    let wrong: Vec<String> = tree::files("").into_iter().filter(begins).collect();
    assert!(wrong.is_empty(), "an option was taken for a file's name: {wrong:?}");
}

#[test]
fn no_large_file_is_binary() {
    let mut wrong = Vec::new();
    for path in tree::files("") {
        let file = tree::top().join(&path);
        let Ok(size) = fs::metadata(&file).map(|about| about.len()) else {
            continue;
        };
        if size > MOST_BINARY_BYTES && is_binary(&file) {
            wrong.push(format!("{path}: {size} bytes"));
        }
    }
    assert!(wrong.is_empty(), "binaries of more than {MOST_BINARY_BYTES} bytes: {wrong:?}");
}

/// Whether a file has a zero byte in its first 8 KiB.
fn is_binary(file: &std::path::Path) -> bool {
    let mut start = Vec::new();
    let opened = fs::File::open(file).and_then(|file| file.take(8192).read_to_end(&mut start));
    opened.is_ok() && start.contains(&0)
}
