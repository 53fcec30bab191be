// SPDX-License-Identifier: GPL-2.0
//! `slowdowns.toml`.

use pbs_interference::{
    names, slowdowns_from_toml, slowdowns_to_toml, Entry, Key, Level, Names, Neighbour, Slowdowns,
};
use proptest::prelude::*;

const FILE: &str = "[[slowdown]]
victim = \"render\"
beside = [\"backup\"]
level = \"llc\"
slowdown_permille = 1_667
low_permille = 1_590
high_permille = 1_748
samples = 8

[[slowdown]]
victim = \"render/2\"
beside = [{ name = \"backup\", level = \"smt\" }, \"lab:index/sort@gpu\"]
slowdown_permille = 2500
";

#[test]
fn a_file_of_slowdowns_is_read() {
    let entries = slowdowns_from_toml(FILE).unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[0].slowdown, 1.667);
    assert_eq!((entries[0].low, entries[0].high), (1.59, 1.748));
    assert_eq!(entries[1].beside[0], (Level::Smt, "backup".into()));
    assert_eq!(entries[1].beside[1].0, Level::Node);
    let again = slowdowns_to_toml(&entries);
    assert_eq!(slowdowns_from_toml(&again).unwrap(), entries);
}

#[test]
fn all_problems_are_told_at_once_with_their_lines() {
    let text = "[[slowdown]]
victim = \"a\"
beside = []
slowdown_permille = 1.5
[[slowdown]]
beside = [\"b\"]
level = \"l3\"
slowdown_permille = 20
[[slowdown]]
victim = \"a\"
besides = [\"b\"]
[[slowdown]]
victim = \"a\"
beside = [{ level = \"llc\" }]
slowdown_permille = 1500
high_permille = 1400
";
    let problems = slowdowns_from_toml(text).unwrap_err();
    let told: Vec<_> = problems.iter().map(|problem| problem.in_file("f").to_string()).collect();
    let has = |words: &str| assert!(told.iter().any(|told| told.contains(words)), "{told:#?}");
    has("f:3: beside is empty");
    has("f:4: slowdown_permille must be a whole number; it is in thousandths: write 1_500");
    has("f:5: there is no victim");
    has("f:7: there is no level l3");
    has("f:8: slowdown_permille is 20; it must be between 100 and 1_000_000");
    has("f:9: beside is missing");
    has("f:9: the slow-down is missing");
    has("f:11: [[slowdown]] has no key besides; did you mean beside?");
    has("f:14: the name is missing");
    has("f:15: slowdown_permille must lie between");
    assert!(slowdowns_from_toml("x").is_err());
    assert_eq!(slowdowns_from_toml("").unwrap(), []);
}

#[test]
fn a_name_stands_for_all_who_have_it() {
    let key = |task| Key { fingerprint: 7, task, variant: 0 };
    let backup = Key { fingerprint: 8, ..Key::default() };
    let mut known = Names::default();
    for task in [1, 2] {
        known.add(key(task), names(Some("lab"), "render", task, None, None));
    }
    known.add(backup, names(None, "backup", 0, Some("copy"), None));
    let text = "[[slowdown]]\nvictim = \"lab:render\"\nbeside = [\"backup\"]\n\
                slowdown_permille = 1500\n\
                [[slowdown]]\nvictim = \"render/2\"\nbeside = [\"backup/copy\"]\n\
                slowdown_permille = 2000\n\
                [[slowdown]]\nvictim = \"render\"\nbeside = [\"nobody\"]\n\
                slowdown_permille = 9000\n";
    let table = Slowdowns::new(known.resolve(&slowdowns_from_toml(text).unwrap()));
    let beside = [Neighbour { level: Level::Node, key: backup }];
    assert_eq!(table.of(key(1), &beside).slowdown, 1.5);
    assert_eq!(table.of(key(2), &beside).slowdown, 2.0);
    assert_eq!(table.entries().len(), 3);
    assert_eq!(names(Some("j"), "p", 3, Some("t"), Some("v")).len(), 10);
}

fn entries() -> impl Strategy<Value = Vec<Entry<String>>> {
    let level = (0..4usize).prop_map(|place| Level::ALL[place]);
    let beside = prop::collection::vec((level, "[ -~]{1,8}"), 1..4);
    let factors = (100..1_000_000u64, 0..50u64, 0..50u64, 0..1000u64);
    let entry = ("\\PC{1,9}", beside, factors).prop_map(|(victim, beside, factors)| {
        let (slowdown, below, above, samples) = factors;
        let factor = |permille: u64| permille.clamp(100, 1_000_000) as f64 / 1000.0;
        Entry {
            victim,
            beside,
            slowdown: factor(slowdown),
            low: factor(slowdown.saturating_sub(below)),
            high: factor(slowdown + above),
            samples,
        }
    });
    prop::collection::vec(entry, 0..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read(entries in entries()) {
        let text = slowdowns_to_toml(&entries);
        prop_assert_eq!(slowdowns_from_toml(&text), Ok(entries), "{}", text);
    }

    #[test]
    fn no_text_is_too_odd(text in "(\\[\\[slowdown\\]\\]|victim|beside|level|=|\\[|\\]|\"|\\{|\\}|\n|a|1){0,40}") {
        let _ = slowdowns_from_toml(&text);
    }
}
