// SPDX-License-Identifier: GPL-2.0
//! Numbers and lists in documents that a source has, too.

use pbs_house::{packages, tree};

/// The part of a text between two others.
fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let start = text.find(from).unwrap_or_else(|| panic!("no '{from}'")) + from.len();
    let end = text[start..].find(to).unwrap_or_else(|| panic!("no '{to}' after '{from}'"));
    &text[start..start + end]
}

/// The whole numbers of a text, in order.
fn numbers(text: &str) -> Vec<u64> {
    let digits = text.split(|c: char| !c.is_ascii_digit());
    digits.filter_map(|digits| digits.parse().ok()).collect()
}

#[test]
fn the_table_of_packages_is_that_of_cargo() {
    let document = tree::text("Documentation/source-tree.rst");
    let shown = between(&document, ".. begin of the table\n", ".. end of the table");
    assert_eq!(shown.trim(), packages::table().trim(), "make it anew with scripts/source-tree");
}

#[test]
fn only_one_document_has_a_table_of_packages() {
    let mut packages = packages::packages();
    // Rows that begin with these are commands.
    packages.retain(|package| !["pbsctl", "pbsd"].contains(&package.name.as_str()));
    for path in tree::files("Documentation") {
        if !path.ends_with(".rst") || path.ends_with("source-tree.rst") {
            continue;
        }
        let text = tree::text(&path);
        let begins = |line: &&str| {
            let first = line.split_whitespace().next().unwrap_or_default().trim_matches('`');
            line.contains("  ")
                && packages.iter().any(|package| first == package.name || first == package.folder)
        };
        let rows = text.lines().filter(begins).count();
        assert!(
            rows < 4,
            "{path} has {rows} rows of a table of packages; point to source-tree.rst"
        );
    }
}

#[test]
fn readme_counts_the_claims_as_their_verdicts_do() {
    let results: serde_json::Value =
        serde_json::from_str(&tree::text("Documentation/reproduction.json")).expect("JSON");
    let claims = results["claims"].as_array().expect("claims");
    let of = |verdict: &str| {
        claims.iter().filter(|claim| claim["verdict"]["is"] == verdict).count() as u64
    };
    let verdicts = [
        "reproduced",
        "within",
        "better",
        "by_construction",
        "undecided",
        "refuted",
        "cannot_be_tried",
        "not_tried",
    ];
    let verdicts = verdicts.map(of);
    let all = claims.len() as u64;
    assert_eq!(verdicts.iter().sum::<u64>(), all, "claims with a verdict of another name");
    let declared = tree::text("studies/pbs-reproduce/claims.toml");
    let declared = declared.lines().filter(|line| *line == "[[claim]]");
    assert_eq!(declared.count() as u64, all, "claims with a verdict, and declared claims");
    let readme = tree::text("README.md");
    let sentence = between(&readme, "`make reproduce` tries each. Of ", ".\n");
    assert_eq!(numbers(sentence), [&[all], &verdicts[..]].concat(), "README.md: {sentence}");
}

#[test]
fn the_version_of_plans_is_that_of_the_header() {
    let header = tree::text("include/uapi/linux/pbs.h");
    let version = numbers(between(&header, "#define PBS_VERSION", "/*"))[0];
    let document = tree::text("Documentation/pbs-uapi.rst");
    let stated = numbers(between(&document, "``PBS_VERSION`` is ", ".  "))[0];
    assert_eq!(stated, version, "Documentation/pbs-uapi.rst states PBS_VERSION");
}

#[test]
fn each_patch_of_the_series_is_explained() {
    let document = tree::text("Documentation/design.rst");
    let series = tree::text("patches/series");
    let names: Vec<&str> = series.lines().filter(|line| line.ends_with(".patch")).collect();
    for name in &names {
        let number = &name[..4];
        assert!(
            document.lines().any(|line| line.starts_with(number)),
            "Documentation/design.rst, table of hooks: no row for patches/{name}"
        );
    }
    let words = ["eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen"];
    let number = words[names.len() - 8];
    let readme = tree::text("README.md");
    assert!(readme.contains(&format!("{number} patches")), "README.md: there are {number} patches");
}

#[test]
fn each_exit_status_is_documented() {
    let source = tree::text("pbsctl/src/failure.rs");
    let document = tree::text("Documentation/pbsctl.rst");
    let table = between(&document, "\nExit status\n", "\nGenerated plans\n");
    let declared = source.lines().filter(|line| line.starts_with("pub(crate) const "));
    let declared = declared.filter(|line| line.contains(": u8 = "));
    let mut number = 0;
    for line in declared {
        let status = numbers(line.split('=').nth(1).unwrap_or_default())[0];
        let row = format!("{status} ");
        assert!(
            table.lines().any(|line| line.starts_with(&row)),
            "Documentation/pbsctl.rst, Exit status: no row for {status}"
        );
        number += 1;
    }
    assert!(number >= 9, "only {number} statuses were found in pbsctl/src/failure.rs");
}
