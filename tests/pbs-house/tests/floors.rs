// SPDX-License-Identifier: GPL-2.0
//! Floors of the kernel class: each folder is one, and a file names no file of a higher floor.

use std::fs;

use pbs_house::circles::{circles, Arrows};
use pbs_house::{arrows, tree};

const FOLDER: &str = "rust/sched_pbs/";
const ROOT: &str = "rust/sched_pbs/sched_pbs.rs";

/// The floors from the ground up, as the table in the main file has them.
fn floors() -> Vec<String> {
    let text = tree::text(ROOT);
    let rows = text.lines().filter_map(|line| line.strip_prefix("//! | [`"));
    rows.filter_map(|row| Some(row.split_once("`] |")?.0.into())).collect()
}

/// The floor of a file; `None`: it is the main file, or one of the policy.
fn floor<'a>(floors: &'a [String], file: &str) -> Option<(usize, &'a String)> {
    let (folder, _) = file.strip_prefix(FOLDER)?.split_once('/')?;
    let mut numbered = floors.iter().enumerate();
    numbered.find(|(_, name)| *name == folder)
}

/// The arrows between files of floors.
fn arrows_of_the_class() -> Arrows {
    let floors = floors();
    let mut arrows = arrows::arrows(ROOT, &tree::read);
    arrows.retain(|file, _| floor(&floors, file).is_some());
    for files in arrows.values_mut() {
        files.retain(|file| floor(&floors, file).is_some());
    }
    arrows
}

#[test]
fn the_table_names_each_folder_once() {
    let mut named = floors();
    named.sort();
    let entries = fs::read_dir(tree::top().join(FOLDER)).expect("the class has a folder");
    let mut folders: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    folders.sort();
    assert_eq!(named, folders);
}

#[test]
fn no_file_names_one_of_a_higher_floor() {
    let floors = floors();
    let arrows = arrows_of_the_class();
    assert!(arrows.values().any(|files| !files.is_empty()));
    let mut wrong = Vec::new();
    for (from, files) in &arrows {
        for to in files {
            if floor(&floors, to) > floor(&floors, from) {
                wrong.push(format!("{from} names {to}"));
            }
        }
    }
    assert!(wrong.is_empty(), "arrows upwards:\n{}", wrong.join("\n"));
}

#[test]
fn no_files_name_each_other_in_a_circle() {
    let found = circles(&arrows_of_the_class());
    assert!(found.is_empty(), "circles: {found:?}");
}
