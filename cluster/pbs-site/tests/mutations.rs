// SPDX-License-Identifier: GPL-2.0
//! Site files that were changed at random: nothing panics, each problem can be found, and
//! what is read is written so that it is read as the same again.

use jiff::tz::TimeZone;
use pbs_gen::{Random, Stream};
use pbs_site::{Site, Validity};

const LETTERS: &str = "0123456789.,:;-+*/#%=&|()[]{}\"' \nabcdeghijmnoprstuxyä@";

const SITE: &str = r#"
name = "small"
time_zone = "CET-1CEST,M3.5.0,M10.5.0/3"
min_dist = "1s"
max_extension = "10%"
planning_horizon = "4w"
planning_threads = 2
watchdog = "5m"
mapping = "switches"
defaults = { mem = "2g" }
[resource.sw]
scope = "job"
items = { g03 = 4 }
validity = "until 31.08.17"
[resource.rack]
kind = "attribute"
[priority]
deadline = 5
resource = { tesla = 3 }
[optimise]
promises = ["none", "start"]
slowdown = 300
even_after = "1h"
run_times = "quantile"
[[nodes]]
name = "smp%02d"
count = 4
has = "ncpus=32:mem=1t:arch=linux:rack=8"
prio = 0
only_if = "vmem>=80g | mem>=66g | ncpus>=17 | duration<=12h"
switch = "leaf%d"
per_switch = 2
[[nodes]]
name = "gpu"
has = "ncpus=16:tesla=2:net=IB:net=Eth"
kept = { cores = 2, for = "tesla" }
[[group]]
name = "G1"
privileges = ["reserve"]
[[user]]
name = "alice"
groups = ["G1"]
force = { arch = "linux", sw = "g03" }
priority = -1
[[limit]]
for = "group:G1"
resource = "ncpus"
items = "30/45%"
soft = "70%"
duration = "4d3h"
area = "1024h"
validity = "01.08.17-31.08.17"
[[pool]]
name = "small"
resource = "ncpus"
free = "10/20%"
access = "ncpus<4 & duration<1h"
validity = "cron 0 7 * * 1,5 +4h"
"#;

fn mutated(random: &mut Random, text: &str) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    let others: Vec<char> = LETTERS.chars().collect();
    for _ in 0..1 + random.index(2) {
        let at = random.index(letters.len());
        let letter = others[random.index(others.len())];
        match random.index(3) {
            0 => letters.insert(at, letter),
            1 => letters[at] = letter,
            _ => {
                letters.remove(at);
            }
        }
    }
    letters.into_iter().collect()
}

/// A line that stands elsewhere, twice or not at all.
fn shuffled(random: &mut Random, text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let line = lines[random.index(lines.len())];
    match random.index(3) {
        0 => lines.retain(|other| *other != line),
        1 => lines.insert(random.index(lines.len()), line),
        _ => {
            lines.retain(|other| *other != line);
            lines.insert(random.index(lines.len()), line);
        }
    }
    lines.join("\n")
}

#[test]
fn nothing_panics() {
    let mut random = Random::new(1, Stream::Scenario);
    let mut right = 0;
    for round in 0..6000 {
        let text = match round % 2 {
            0 => mutated(&mut random, SITE),
            _ => shuffled(&mut random, SITE),
        };
        match Site::from_toml(&text) {
            Ok(site) => {
                right += 1;
                let written = site.to_toml();
                assert_eq!(Site::from_toml(&written).as_ref(), Ok(&site), "{text}\n{written}");
            }
            Err(problems) => {
                assert!(!problems.is_empty());
                let lines = text.lines().count() as u32 + 1;
                for problem in problems {
                    assert!(problem.line.is_none_or(|line| line.get() <= lines), "{problem:?}");
                    assert!(problem.message.len() > 10, "{problem:?}");
                }
            }
        }
    }
    // Many of them are still right; else this tests nothing.
    assert!(right > 500, "{right}");
}

#[test]
fn no_validity_panics() {
    let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
    let texts = [
        "cron 0 7 * * 1,5 +4h",
        "cron */15 8-18/2 1-7 jan-jun,9 mon#2 +10m",
        "01.08.17-31.08.17",
        "2017-08-01/2017-08-31",
        "2017-08-01T07:30+02:00/2017-08-31T18:00:30Z",
        "01.08.17 07:30 - @1504224000",
        "until 31.08.2017 18:00:30",
    ];
    let mut random = Random::new(2, Stream::Scenario);
    let mut right = 0;
    for _ in 0..6000 {
        let text = texts[random.index(texts.len())];
        let text = mutated(&mut random, text);
        match Validity::parse(&text, &zone) {
            Ok(validity) => {
                right += 1;
                let written = validity.to_text(&zone);
                let again = Validity::parse(&written, &zone);
                assert_eq!(again.as_ref(), Ok(&validity), "{text}: {written}");
                let some: Vec<_> = validity.windows(1_500_000_000..1_510_000_000).take(9).collect();
                assert!(some.iter().all(|window| validity.holds_at(window.start)), "{text}");
                assert!(some.iter().all(|window| validity.holds_at(window.end - 1)), "{text}");
            }
            Err(error) => {
                let columns = text.chars().count() + 1;
                assert!((1..=columns).contains(&error.column), "{text:?}: {error}");
            }
        }
    }
    assert!(right > 300, "{right}");
}
