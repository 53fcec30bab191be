// SPDX-License-Identifier: GPL-2.0
//! Lists of files that scripts read: each is as long as what it lists.

use std::collections::BTreeSet;

use pbs_house::tree;

/// The sections of the series that is posted; `scripts/series` reads it.
const POSTING: &str = "patches/posting";
/// The list of contents of the package; `tests/packages` compares it with a package.
const CONTENTS: &str = "packaging/pbs/contents";

/// Folders whose files are laid over the kernel's source, with their place there and the ends of
/// the names that are laid, as in `scripts/source`.
const OVERLAY: [(&str, &str, &[&str]); 7] = [
    ("rust/kernel/", "rust/kernel/", &[".rs"]),
    ("rust/helpers/", "rust/helpers/", &[".c"]),
    ("rust/bindings/", "rust/bindings/", &[".h"]),
    ("include/", "include/", &[".h"]),
    ("tests/kselftest/", "tools/testing/selftests/sched_pbs/", &[""]),
    ("rust/pbs_core/src/", "kernel/sched/pbs/pbs_core/src/", &[".rs"]),
    ("rust/sched_pbs/", "kernel/sched/pbs/sched_pbs/", &[".rs", ".c", ".h", "Makefile", "Kconfig"]),
];

/// Paths of our files in the kernel.
fn laid_over() -> BTreeSet<String> {
    let mut laid = BTreeSet::new();
    for (from, to, ends) in OVERLAY {
        for path in tree::files(from) {
            if ends.iter().any(|end| path.ends_with(end)) {
                laid.insert(path.replacen(from, to, 1));
            }
        }
    }
    laid
}

/// The paths that the sections name; a folder ends with `/`.
fn posted() -> Vec<String> {
    let mut paths = Vec::new();
    let mut is_message = true;
    for line in tree::text(POSTING).lines() {
        if line.starts_with("== ") {
            is_message = true;
        } else if line == "---" {
            is_message = false;
        } else if !is_message && !line.trim().is_empty() {
            paths.push(line.into());
        }
    }
    paths
}

#[test]
fn each_file_of_the_kernel_is_in_one_patch() {
    let posted = posted();
    let holds = |file: &str, path: &String| {
        file == path || path.ends_with('/') && file.starts_with(path.as_str())
    };
    let mut wrong = Vec::new();
    for file in laid_over() {
        let patches = posted.iter().filter(|path| holds(&file, path)).count();
        if patches != 1 {
            wrong.push(format!("{file} is in {patches} patches"));
        }
    }
    assert!(wrong.is_empty(), "{POSTING}:\n{}", wrong.join("\n"));
}

#[test]
fn the_package_has_all_schemas() {
    let listed: BTreeSet<String> = tree::text(CONTENTS)
        .lines()
        .filter_map(|line| line.split_once("usr/share/pbs/schemas/"))
        .map(|(_, name)| name.into())
        .collect();
    let names = tree::files("schemas").into_iter();
    let there: BTreeSet<String> =
        names.filter_map(|path| Some(path.strip_prefix("schemas/")?.into())).collect();
    assert!(!there.is_empty());
    assert_eq!(listed, there, "{CONTENTS} on the left, schemas/ on the right");
}
