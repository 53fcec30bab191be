// SPDX-License-Identifier: GPL-2.0
//! Folders of packages: a package has the name of its folder, and arrows run one way.

use pbs_house::packages::{packages, Package};

/// The folders from the ground up: a package uses packages of its own folder and of those
/// that stand before it. The service of the cluster joins the engines, of which one is Slurm's.
const ORDER: [&str; 12] = [
    "rust",
    "node",
    "pbsd",
    "cluster",
    "rms",
    "cosched",
    "slurm",
    "cluster/pbs-clusterd",
    "studies",
    "samples",
    "pbsctl",
    "tests",
];

/// Pairs of folders that know nothing of each other although one stands before the other.
const APART: [(&str, &str); 5] = [
    ("cluster", "rms"),
    ("cluster", "cosched"),
    ("rms", "cosched"),
    ("slurm", "rms"),
    ("slurm", "cosched"),
];

/// Greatest number of packages, as many as a reader can keep in mind.
const MOST_PACKAGES: usize = 50;

fn group(package: &Package) -> &str {
    if ORDER.contains(&&*package.folder) {
        return &package.folder;
    }
    package.folder.split('/').next().unwrap_or_default()
}

fn floor(package: &Package) -> usize {
    let found = ORDER.iter().position(|folder| *folder == group(package));
    found.unwrap_or_else(|| panic!("{}: no folder of the order {ORDER:?}", package.folder))
}

#[test]
fn arrows_between_folders_run_one_way() {
    let packages = packages();
    let mut wrong = Vec::new();
    for package in &packages {
        for name in &package.uses {
            let used = packages.iter().find(|used| used.name == *name).expect("a package");
            let pair = (group(package), group(used));
            let apart = APART.iter().any(|&(a, b)| pair == (a, b) || pair == (b, a));
            if apart || floor(used) > floor(package) {
                wrong.push(format!("{} uses {}", package.folder, used.folder));
            }
        }
    }
    assert!(wrong.is_empty(), "against the order {ORDER:?}:\n{}", wrong.join("\n"));
}

#[test]
fn a_package_has_the_name_of_its_folder_and_a_description() {
    for package in packages() {
        let folder = package.folder.rsplit('/').next().unwrap_or_default();
        assert_eq!(package.name, folder, "{}/Cargo.toml", package.folder);
        assert!(!package.description.is_empty(), "{}/Cargo.toml: no description", package.folder);
    }
}

#[test]
fn the_packages_stay_few() {
    let number = packages().len();
    assert!(number <= MOST_PACKAGES, "{number} packages, more than {MOST_PACKAGES}");
}
