// SPDX-License-Identifier: GPL-2.0
//! The library from C: the header says what is exported, and programs run.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the path at which cargo puts the library when it builds tests.
fn library() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let directory = own.parent().unwrap();
    let library = directory.join("libpbsruntime.so");
    assert!(library.exists(), "{}", library.display());
    library
}

fn scratch(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("pbs-runtime-c-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir(&path).unwrap();
    path
}

fn compile(source: &str, program: &Path) {
    compile_by("gcc", "-std=gnu11", source, program);
}

fn compile_by(compiler: &str, language: &str, source: &str, program: &Path) {
    let library = library();
    let directory = library.parent().unwrap();
    // A program loads the library by the name with its number, as an installed one has.
    let beside = program.parent().unwrap();
    symlink(&library, beside.join("libpbsruntime.so.0")).unwrap();
    let compiled = Command::new(compiler)
        .args([language, "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(here().join("include"))
        .arg(here().join(source))
        .arg("-o")
        .arg(program)
        .arg("-L")
        .arg(directory)
        .arg("-lpbsruntime")
        .arg(format!("-Wl,-rpath,{}", beside.display()))
        .output()
        .expect(compiler);
    let told = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{told}");
}

fn text(output: &Output) -> String {
    let all = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8(all).unwrap()
}

#[test]
fn the_header_declares_what_is_exported_and_nothing_else() {
    let header = fs::read_to_string(here().join("include/pbs_runtime.h")).unwrap();
    let code = header.split("/*").map(|part| part.split_once("*/").map_or(part, |of| of.1));
    let code: String = code.collect();
    let mut declared = BTreeSet::new();
    for (at, _) in code.match_indices("pbs_rt_") {
        let name: String = code[at..]
            .chars()
            .take_while(|letter| letter.is_ascii_lowercase() || *letter == '_')
            .collect();
        if code[at + name.len()..].starts_with('(') {
            declared.insert(name);
        }
    }
    let listed = Command::new("nm")
        .args(["-D", "--defined-only", "--format=just-symbols"])
        .arg(library())
        .output()
        .expect("nm");
    let listed = String::from_utf8(listed.stdout).unwrap();
    let exported: BTreeSet<String> = listed.lines().map(str::to_string).collect();
    assert!(declared.len() > 20, "{declared:?}");
    assert_eq!(declared, exported);
}

#[test]
fn the_sample_runs_alone_and_with_others() {
    let directory = scratch("sample");
    let program = directory.join("sum");
    compile("samples/sum.c", &program);
    // Of all squares below 4000.
    let expected = "21325334000, of 5 tasks\n";
    let alone = Command::new(&program).output().unwrap();
    assert_eq!(text(&alone), expected);
    let shared = directory.join("shared");
    fs::create_dir(&shared).unwrap();
    let start = || {
        let mut command = Command::new(&program);
        command.arg(&shared).stdout(Stdio::piped()).spawn().unwrap()
    };
    for child in [start(), start(), start()] {
        assert_eq!(text(&child.wait_with_output().unwrap()), expected);
    }
    let left: Vec<_> = fs::read_dir(&shared).unwrap().map(|of| of.unwrap().file_name()).collect();
    assert_eq!(left, ["pbs-csimf"]);
    fs::remove_dir_all(directory).unwrap();
}

/// The file has the format of task graphs, and names the program with its arguments.
#[test]
fn a_program_announces_its_graph() {
    let directory = scratch("announced");
    let program = directory.join("sum");
    compile("samples/sum.c", &program);
    let file = directory.join("sum.json");
    let ran = Command::new(&program).env("SCHED_PBS_GRAPH", &file).output().unwrap();
    let told = format!(
        "the graph was not run, but written to {}; unset SCHED_PBS_GRAPH to run it (the graph was \
         written to a file, and not run)\n",
        file.display()
    );
    assert_eq!((ran.status.code(), text(&ran)), (Some(1), told));
    let written: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(written["name"], "sum");
    assert_eq!(written["program"], serde_json::json!([program]));
    assert_eq!(written["deadline_ns"], 10_000_000_000_u64);
    let tasks = written["task"].as_array().unwrap();
    assert_eq!(tasks.len(), 5);
    assert_eq!(tasks[0]["variant"][1]["device"], "gpu");
    assert_eq!(tasks[0]["variant"][1]["runtime_ns"], 500_000);
    let after = serde_json::json!({ "task": "part-1", "bytes": 32 });
    assert_eq!(tasks[4]["after"][1], after);
    fs::remove_dir_all(directory).unwrap();
}

/// Programs are built with the flags of pkg-config.
#[test]
fn an_installed_library_is_found_by_pkg_config() {
    let directory = scratch("installed");
    let prefix = directory.join("usr");
    let install = |words: &[&Path]| {
        Command::new(here().join("../../scripts/install-runtime")).args(words).output().unwrap()
    };
    let relative = install(&[Path::new("usr"), &library()]);
    assert!(!relative.status.success());
    assert!(text(&relative).contains("usr is no absolute path"), "{}", text(&relative));
    let missing = install(&[&prefix, &directory.join("none.so")]);
    assert!(text(&missing).contains("cargo build --release -p pbs-runtime-c"));
    let installed = install(&[&prefix, &library()]);
    assert!(installed.status.success(), "{}", text(&installed));
    let told = Command::new("pkg-config")
        .args(["--cflags", "--libs", "pbsruntime"])
        .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"))
        .output()
        .expect("pkg-config");
    let flags = text(&told);
    let program = directory.join("sum");
    let compiled = Command::new("gcc")
        .arg(here().join("samples/sum.c"))
        .args(flags.split_whitespace())
        .arg("-o")
        .arg(&program)
        .output()
        .expect("gcc");
    assert!(compiled.status.success(), "{flags}: {}", text(&compiled));
    let ran = Command::new(&program).env("LD_LIBRARY_PATH", prefix.join("lib")).output().unwrap();
    assert_eq!(text(&ran), "21325334000, of 5 tasks\n");
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn mistakes_are_errors() {
    let directory = scratch("misuse");
    let program = directory.join("misuse");
    compile("tests/misuse.c", &program);
    let ran = Command::new(program).output().unwrap();
    assert!(ran.status.success(), "{}", text(&ran));
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn objects_of_cpp_run_graphs_and_throw_errors() {
    let directory = scratch("objects");
    let program = directory.join("objects");
    compile_by("g++", "-std=c++17", "tests/objects.cpp", &program);
    let ran = Command::new(program).output().unwrap();
    assert!(ran.status.success(), "{}", text(&ran));
    fs::remove_dir_all(directory).unwrap();
}

/// The library stays in memory, because its signal handler stays installed.
#[test]
fn the_library_stays_in_memory() {
    let told = Command::new("readelf").arg("-d").arg(library()).output();
    let told = text(&told.expect("readelf"));
    let flags = told.lines().find(|line| line.contains("(FLAGS_1)"));
    assert!(flags.is_some_and(|of| of.contains("NODELETE")), "{told}");
}
