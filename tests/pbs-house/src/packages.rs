// SPDX-License-Identifier: GPL-2.0
//! The packages of the workspace, as Cargo knows them.

use std::process::Command;

use serde_json::Value;

use crate::tree;

/// One package of the workspace.
pub struct Package {
    /// Name of the package in Cargo.toml.
    pub name: String,
    /// Folder of the package, relative to the top of the repository.
    pub folder: String,
    /// Description of the package in Cargo.toml, empty if there is none.
    pub description: String,
    /// Names of the workspace's packages that it uses, its tests included.
    pub uses: Vec<String>,
    /// The main source files of its libraries and programs, relative to the top.
    pub roots: Vec<String>,
}

/// All packages of the workspace, ordered by folder.
///
/// # Panics
///
/// If `cargo metadata` fails or prints something unexpected.
pub fn packages() -> Vec<Package> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(tree::top())
        .output()
        .expect("cargo can be started");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata: {errors}");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("metadata is JSON");
    let packages = array(&metadata["packages"]);
    let names: Vec<&str> = packages.iter().map(|package| string(&package["name"])).collect();
    let mut found: Vec<Package> = packages.iter().map(|package| read(package, &names)).collect();
    found.sort_by(|a, b| a.folder.cmp(&b.folder));
    found
}

fn read(package: &Value, names: &[&str]) -> Package {
    let manifest = relative(string(&package["manifest_path"]));
    let dependencies = array(&package["dependencies"]).iter().map(|used| string(&used["name"]));
    let mut uses: Vec<String> =
        dependencies.filter(|used| names.contains(used)).map(String::from).collect();
    uses.sort();
    uses.dedup();
    let has_sources = |target: &&Value| {
        array(&target["kind"]).iter().any(|kind| {
            let kind = string(kind);
            kind == "bin" || kind.ends_with("lib")
        })
    };
    let targets = array(&package["targets"]).iter().filter(has_sources);
    Package {
        name: string(&package["name"]).into(),
        folder: manifest.trim_end_matches("/Cargo.toml").into(),
        description: package["description"].as_str().unwrap_or_default().into(),
        uses,
        roots: targets.map(|target| relative(string(&target["src_path"]))).collect(),
    }
}

fn relative(path: &str) -> String {
    let top = tree::top();
    let path = std::path::Path::new(path);
    path.strip_prefix(&top).unwrap_or(path).to_string_lossy().into_owned()
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The table of all packages for `Documentation/source-tree.rst`, in reStructuredText.
pub fn table() -> String {
    let packages = packages();
    let quoted = |package: &Package| format!("``{}``", package.folder);
    let width = packages.iter().map(|package| quoted(package).len()).max().unwrap_or(0);
    let words = packages.iter().map(|package| package.description.len()).max().unwrap_or(0);
    let line = format!("{} {}\n", "=".repeat(width), "=".repeat(words));
    let mut table = format!("{line}{:width$} Subject\n{line}", "Package");
    for package in &packages {
        table += &format!("{:width$} {}\n", quoted(package), package.description);
    }
    table + &line
}
