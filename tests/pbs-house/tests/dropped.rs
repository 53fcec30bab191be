// SPDX-License-Identifier: GPL-2.0
//! Results that code drops have a reason.

use pbs_house::dropped::dropped;
use pbs_house::tree;

#[test]
fn dropped_results_have_a_reason() {
    let sources = tree::sources();
    assert!(sources.len() > 800, "only {} sources were found", sources.len());
    let of = |path: &String| {
        let found = dropped(&tree::text(path)).into_iter();
        found.map(|it| format!("{path}:{}: {}", it.line, it.form)).collect::<Vec<_>>()
    };
    let wrong: Vec<String> = sources.iter().flat_map(of).collect();
    assert!(
        wrong.is_empty(),
        "results that are dropped; return them, or give the reason in a comment above the line:\
         \n{}",
        wrong.join("\n")
    );
}

/// The lines of a function's body that drop a result.
fn lines(body: &str) -> Vec<usize> {
    let found = dropped(&format!("fn f() {{\n{body}\n}}\n"));
    found.into_iter().map(|it| it.line - 1).collect()
}

#[test]
fn a_result_without_a_reason_is_found() {
    assert_eq!(lines("let _ = write(file);"), [1]);
    assert_eq!(lines("let _ = std::fs::remove_file(path);"), [1]);
    assert_eq!(lines("let row = read(file).ok();"), [1]);
    assert_eq!(lines("read(file).unwrap_or_default()"), [1]);
    assert_eq!(lines("let run = simulate(plan);\nrun.unwrap_or_default()"), [2]);
    assert_eq!(lines("let rows = read(file);\nShown {\n  rows: rows.ok(),\n}"), [3]);
}

#[test]
fn a_reason_a_question_and_an_option_are_right() {
    assert!(lines("// Nobody reads it.\nlet _ = write(file);").is_empty());
    assert!(lines("let _ = write(file); // Nobody reads it.").is_empty());
    assert!(lines("let _ = unused;").is_empty());
    assert!(lines("let number = text.parse::<u64>().ok();").is_empty());
    assert!(lines("let found = all.binary_search(&one);\nfound.ok()").is_empty());
    assert!(lines("map.get(key).copied().unwrap_or_default()").is_empty());
    assert!(dropped(
        "/// Row, or nothing if it cannot be read.\nfn f() -> Option<u8> { r().ok() }"
    )
    .is_empty());
    assert!(dropped("#[cfg(test)]\nmod tests {\n  fn f() { let _ = write(); }\n}").is_empty());
}
