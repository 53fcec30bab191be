// SPDX-License-Identifier: GPL-2.0
//! Documentation/features.rst names the tests of each feature; these tests hold it to that.

use std::collections::{BTreeMap, BTreeSet};

use pbs_house::{packages, tree};

const DOCUMENT: &str = "Documentation/features.rst";
/// The tests that run in the virtual machine, one a line that begins with the name.
const IN_THE_MACHINE: &str = "tests/pbs-vmtest/tests.list";

/// One entry of the document.
struct Feature {
    section: String,
    name: String,
    sentence: String,
    tests: Vec<String>,
}

/// All entries: a name at the begin of a line, then indented lines with the sentence and the
/// list of tests.
fn features() -> Vec<Feature> {
    let text = tree::text(DOCUMENT);
    let lines: Vec<&str> = text.lines().collect();
    let mut features: Vec<Feature> = Vec::new();
    let mut section = "";
    for (line, next) in lines.iter().zip(&lines[1..]) {
        if next.starts_with("====") {
            section = line;
        } else if let Some(indented) = line.strip_prefix("    ") {
            let feature = features.last_mut().expect("an indented line is of an entry");
            match indented.strip_prefix("- ``") {
                Some(test) => feature.tests.push(test.trim_end_matches("``").into()),
                None => feature.sentence += indented,
            }
        } else if next.starts_with("    ") && !line.is_empty() {
            features.push(Feature {
                section: section.into(),
                name: (*line).into(),
                sentence: String::new(),
                tests: Vec::new(),
            });
        }
    }
    // The last line has none after it.
    let last = lines.last().and_then(|line| line.strip_prefix("    - ``"));
    if let (Some(test), Some(feature)) = (last, features.last_mut()) {
        feature.tests.push(test.trim_end_matches("``").into());
    }
    features
}

/// The path of a file of a package, as the document writes it: without the first folder and
/// without names that stand for their folder.
fn path_of(file: &str) -> Vec<&str> {
    let mut path: Vec<&str> = file.trim_end_matches(".rs").split('/').collect();
    if path.len() > 1 && ["src", "tests", "unit"].contains(&path[0]) {
        path.remove(0);
    }
    if path.last().is_some_and(|last| ["mod", "lib", "main"].contains(last)) {
        path.pop();
    }
    path
}

/// Names of the tests of a file.
fn tests_of(text: &str) -> Vec<String> {
    let mut is_test = false;
    let mut names = Vec::new();
    for line in text.lines().map(str::trim_start) {
        if line == "#[test]" {
            is_test = true;
        } else if let Some(function) = line.strip_prefix("fn ").filter(|_| is_test) {
            names.push(function.split('(').next().unwrap_or_default().into());
            is_test = false;
        } else if !line.starts_with("#[") && !line.starts_with("//") {
            is_test = false;
        }
    }
    names
}

/// Number of tests of each name, by the form in which the document writes it.
fn existing() -> BTreeMap<String, usize> {
    let mut tests = BTreeMap::new();
    let mut add = |test: String| *tests.entry(test).or_insert(0) += 1;
    for package in packages::packages() {
        let files = tree::files(&package.folder);
        for file in files.iter().filter(|file| file.ends_with(".rs")) {
            let path = path_of(&file[package.folder.len() + 1..]);
            for test in tests_of(&tree::text(file)) {
                add([&[package.name.as_str()], &path[..], &[&test]].concat().join("::"));
            }
        }
    }
    let in_the_machine = tree::text(IN_THE_MACHINE);
    for line in in_the_machine.lines().filter(|line| !line.starts_with('#')) {
        add(format!("pbs-vmtest::{}", line.split(' ').next().unwrap_or_default()));
    }
    tests
}

/// Whether a name begins with letters and a number, as of a row of a table: `f12_`, `case_3_`.
///
/// Thresholds of the policy, levels of validation and one checksum have numbers of their own.
fn begins_with_a_number(test: &str) -> bool {
    let own = ["t1_", "t2_", "tm2_", "level_", "fnv_1a_"];
    // Tests of the virtual machine have dashes.
    let test = &test.replace('-', "_");
    let rest = test.trim_start_matches(|c: char| c.is_ascii_lowercase());
    let rest = rest.strip_prefix('_').unwrap_or(rest);
    rest.starts_with(|c: char| c.is_ascii_digit()) && !own.iter().any(|own| test.starts_with(own))
}

#[test]
fn no_test_is_named_by_a_number() {
    let tests = existing().into_keys();
    let numbered: Vec<String> = tests
        .filter(|test| begins_with_a_number(test.rsplit("::").next().unwrap_or_default()))
        .collect();
    assert!(numbered.is_empty(), "name these for what they show:\n{}", numbered.join("\n"));
}

#[test]
fn each_named_test_exists_once() {
    let existing = existing();
    let wrong: Vec<String> = features()
        .into_iter()
        .flat_map(|feature| feature.tests)
        .filter_map(|test| match existing.get(&test) {
            Some(1) => None,
            Some(times) => Some(format!("{test} stands {times} times in its file")),
            None => Some(format!("{test} does not exist")),
        })
        .collect();
    assert!(wrong.is_empty(), "{DOCUMENT}:\n{}", wrong.join("\n"));
}

#[test]
fn each_feature_has_a_name_a_sentence_and_a_test() {
    let features = features();
    assert!(features.len() > 200, "only {} were found", features.len());
    let mut names = BTreeSet::new();
    for feature in &features {
        let name = &feature.name;
        assert!(
            names.insert((&feature.section, name)),
            "{DOCUMENT}: {name} stands twice in its section"
        );
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(name.chars().all(is_plain), "{DOCUMENT}: name {name:?}");
        assert!(
            feature.sentence.ends_with('.') && !feature.tests.is_empty(),
            "{DOCUMENT}: {name} needs a sentence and a test"
        );
    }
}
