// SPDX-License-Identifier: GPL-2.0
//! Finds the function of each test in `tests.list`: the test `tier-clock` is the function
//! `tier_clock`, which has no arguments, in whichever module has one of that name.

use std::collections::HashMap;
use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=tests.list");
    println!("cargo:rerun-if-changed=src");
    let mut modules = HashMap::new();
    find(Path::new("src"), "crate", &mut modules)?;
    let mut table = String::from("&[\n");
    for line in fs::read_to_string("tests.list")?.lines() {
        let Some(name) = line.split_whitespace().next() else {
            continue;
        };
        if name.starts_with('#') {
            continue;
        }
        let function = name.replace('-', "_");
        let Some(module) = modules.get(&function) else {
            let why = format!("no file below src has a `pub fn {function}() -> Verdict`");
            return Err(format!("tests.list: {name}: {why}").into());
        };
        writeln!(table, "(\"{name}\", {module}::{function}),")?;
    }
    let out = env::var("OUT_DIR")?;
    fs::write(Path::new(&out).join("tests.rs"), table + "]")?;
    Ok(())
}

/// Notes the module of each function below a directory that may be a test.
fn find(
    directory: &Path,
    module: &str,
    modules: &mut HashMap<String, String>,
) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let stem = stem.ok_or("a file's name is no text")?;
        let module = match stem {
            "main" | "lib" | "mod" => module.to_string(),
            name => format!("{module}::{name}"),
        };
        if path.is_dir() {
            find(&path, &module, modules)?;
            continue;
        }
        for line in fs::read_to_string(&path)?.lines() {
            let function = line.strip_prefix("pub fn ");
            if let Some(name) = function.and_then(|rest| rest.strip_suffix("() -> Verdict {")) {
                if let Some(other) = modules.insert(name.into(), module.clone()) {
                    return Err(format!("{name} is a test in {other} and in {module}").into());
                }
            }
        }
    }
    Ok(())
}
