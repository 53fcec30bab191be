// SPDX-License-Identifier: GPL-2.0
//! Tests of the rows against figures worked by hand.

use std::sync::OnceLock;
use std::time::Duration;

use pbs_study::cosched::{claims, costs, gaps, overheads, ComparedClaim, Verdict};

fn rows() -> &'static [ComparedClaim] {
    static ROWS: OnceLock<Vec<ComparedClaim>> = OnceLock::new();
    ROWS.get_or_init(claims)
}

fn row(claim: &str) -> &'static ComparedClaim {
    let mut found = rows().iter().filter(|row| row.claim == claim);
    let row = found.next().unwrap_or_else(|| panic!("no row {claim:?}"));
    assert_eq!(found.next(), None, "two rows {claim:?}");
    row
}

fn expect(claim: &str, verdict: Verdict, recomputed: &str) {
    let row = row(claim);
    assert_eq!((row.verdict, row.recomputed.as_str()), (verdict, recomputed), "{claim}");
}

#[test]
fn errors_of_table_2_3_are_found() {
    use Verdict::{Holds, Off};
    expect("T_total, P2 waits", Holds, "2219.515 ms");
    expect("T_total, CPUs shared at half speed", Holds, "2219.515 ms");
    expect("P2's part alone if the CPUs are shared", Off, "1061.505 ms");
    expect("P1's end, co-scheduled", Off, "921.149 ms");
    expect("P2's end, co-scheduled", Holds, "1756.311 ms");
    expect("speed-up", Holds, "126.37 %");
    expect("load after, of nine devices", Holds, "93.98 %");
    expect("the same, optimum", Verdict::Ours, "1729.312 ms, 1.2835 times as fast");
    expect(
        "speed-ups of table 2.3",
        Off,
        "13 of 17 as printed, not P1 n=3 277.93 (277.78), P1 n=7 391.16 (391.11), P2 n=4 398.14 \
         (398.15), P2 n=7 688.74 (688.73)",
    );
    let independent = row("T_total of greedy if the tasks are independent");
    assert_eq!(independent.recomputed, "2684.619 ms, 0.827 times as fast as not co-scheduling");
    assert_eq!(row("speed-up").remark, "a ratio: 26.4 % faster");
}

#[test]
fn rows_are_told_apart_and_have_their_numbers() {
    let mut ids: Vec<&str> = rows().iter().map(|row| row.id.as_str()).collect();
    ids.sort_unstable();
    let count = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), count);
    let figure = |id: &str, name: &str| {
        let row = rows().iter().find(|row| row.id == id);
        row.unwrap_or_else(|| panic!("no row {id}")).figures[name]
    };
    assert_eq!(figure("2.5.1-p2-s-end-co-scheduled", "value"), 1756.311);
    assert_eq!(figure("6.6.1-csimf-entry", "value"), 151.0);
    assert_eq!(figure("2.5.1-the-same-optimum", "ms"), 1729.312);
    assert_eq!(figure("2.5.1-speed-ups-of-table-2.3", "as_printed"), 13.0);
    assert_eq!(figure("6.4.2-sum-of-execution-times-is-greater", "with_s"), 60.0);
    let load = |id| (figure(id, "value") * 100.0).round() / 100.0;
    assert_eq!(load("2.5.1-load-after-cpu-as-one"), 72.93);
    assert_eq!(load("6.3.3-load-after-cpu-as-one"), 96.02);
    let gib = figure("4.4.4-160-b-each-take", "gib");
    assert!((gib / 4.19e7 - 1.0).abs() < 1e-2, "{gib}");
    let iterations =
        "6.3.2-the-more-iterations-enhanced-random-does-the-better-few-take-up-to-10-minutes";
    assert!(figure(iterations, "mean_42_s") < figure(iterations, "mean_2_s"));
}

#[test]
fn means_and_loads_of_the_heterogeneous_scenario() {
    use Verdict::{Holds, Off};
    let split = "Mandelbrot tasks that ran on the GPU with co-scheduling";
    expect(split, Verdict::Ours, "[2] of 5");
    expect("mean without co-scheduling", Holds, "96.1865 s");
    expect("mean of greedy", Holds, "76.0085 s");
    expect("speed-up of the means", Holds, "126.547 %");
    expect("GPU in use with co-scheduling", Holds, "69.96 s");
    expect("GPU idle with co-scheduling", Off, "6.0485 s");
    expect("load before, of 49 devices", Holds, "2.04 %");
    let fit = &row("mean of greedy").remark;
    for runtime in ["GPU 8.74217 s", "CPU 19.50806 s", "filter 2.62378 s"] {
        assert!(fit.contains(runtime), "{fit}");
    }
    let claims = claims();
    let mut loads = claims.iter().filter(|row| row.claim == "load after, CPU as one");
    assert_eq!(loads.next().unwrap().recomputed, "72.93 %");
    let load = loads.next().unwrap();
    assert_eq!((load.verdict, load.recomputed.as_str()), (Off, "96.02 %"));
    assert!(load.remark.ends_with("84.52 %"), "{}", load.remark);
}

#[test]
fn memory_and_mappings() {
    use Verdict::{Holds, Off};
    expect("CSIMF header", Holds, "64 B");
    expect("CSIMF entry", Off, "151 B");
    expect("entries that fit into 256 KiB", Off, "1638");
    expect("CSI header, 3 dependencies and 1 reverse", Holds, "288 B");
    expect("CSI payload", Off, "24 B");
    expect("spare in 2 KiB with 50 variants", Holds, "560 B");
    expect("least memory overhead", Holds, "264192 B");
    expect("ways to run an OMP task on 48 threads", Holds, "281474976710655");
    expect("counting them at 3 GHz takes", Holds, "26.06 h");
    expect("160 B each take", Off, "40 PiB = 4.19·10⁷ GiB");
}

#[test]
fn the_homogeneous_scenario_is_fairer_and_longer_in_sum() {
    expect("sum of execution times is greater", Verdict::Holds, "60 s instead of 50 s");
    expect("difference Δ of execution times is lower", Verdict::Holds, "0 s instead of 10 s");
    let always = row("the sum is always greater");
    assert_eq!(always.verdict, Verdict::Off, "{}", always.recomputed);
}

#[test]
fn published_overheads_if_they_are_ns() {
    for (scheduler, ms) in [
        ("greedy, age", "10.3 ms"),
        ("greedy, runtime", "16.6 ms"),
        ("greedy, successors", "11.3 ms"),
        ("plain random", "4.6 ms"),
        ("enhanced random, at least 2", "59.6 ms"),
        ("enhanced random, at least 10", "111.8 ms"),
        ("enhanced random, at least 30", "164.8 ms"),
    ] {
        let row = row(&format!("runtime overhead of {scheduler}"));
        assert!(row.recomputed.starts_with(&format!("{ms} for 100 tasks")), "{}", row.recomputed);
    }
}

#[test]
fn enhanced_random_improves_with_iterations() {
    let claim = "the more iterations enhanced random does, the better; few take up to 10 minutes";
    assert_eq!(row(claim).verdict, Verdict::Holds);
}

#[test]
fn the_four_strategies_differ() {
    let episodes: Vec<Vec<&str>> = rows()
        .iter()
        .filter(|row| row.claim.starts_with("when the strategies differ: "))
        .map(|row| row.recomputed.split(", ").collect())
        .collect();
    assert_eq!(episodes.len(), 5);
    for one in 0..4 {
        // What it decided in the four episodes, and the sum in the last row.
        let decided = |of: usize| -> Vec<bool> {
            episodes[..4].iter().map(|episode| episode[of].contains(" yes ")).collect()
        };
        let sum = |of: usize| episodes[4][of].split(' ').nth(1).map(str::to_owned);
        for other in 0..one {
            assert_ne!(decided(one), decided(other));
            assert_ne!(sum(one), sum(other));
        }
    }
}

#[test]
fn stickiness_and_more_than_two_processes_are_studied() {
    let stickiness: Vec<&ComparedClaim> =
        rows().iter().filter(|row| row.claim.starts_with("stickiness, ")).collect();
    assert_eq!(stickiness.len(), 3);
    for row in stickiness {
        let percent: f64 = row.recomputed.split(' ').next().unwrap().parse().unwrap();
        assert!(percent > 1.0, "{}", row.recomputed);
    }
    for count in [3, 4, 6] {
        let row = row(&format!("{count} processes of table 2.3"));
        let faster: Vec<f64> = row
            .recomputed
            .split("; ")
            .map(|of| {
                of.split(" times").next().unwrap().rsplit(' ').next().unwrap().parse().unwrap()
            })
            .collect();
        // Greedy as it is, without what is worse, evolutionary.
        assert!(faster[0] < faster[1] && faster[1] < faster[2], "{faster:?}");
        assert!(faster[1] > 1.0);
    }
}

#[test]
fn the_default_is_close_to_the_optimum() {
    let gaps = gaps(40, 5);
    let of = |name: &str| gaps.iter().find(|gap| gap.scheduler.starts_with(name)).unwrap();
    assert!(gaps.iter().all(|gap| gap.instances == 40 && gap.worst_percent >= 0.0));
    let best = of("evolutionary");
    assert!(best.median_percent <= 5.0);
    for gap in &gaps {
        assert!(best.mean_percent <= gap.mean_percent, "{gap:?}");
        assert!(gap.median_percent <= gap.percentile_95_percent);
    }
    assert!(of("plain random").worst_percent > 0.0);
}

/// The page about co-scheduling has the figures of the study.
#[test]
fn documented_figures_are_those_of_the_study() {
    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Documentation/coscheduling.rst");
    let page = std::fs::read_to_string(PAGE).unwrap();
    let count = |verdict| rows().iter().filter(|row| row.verdict == verdict).count();
    let [holds, off, ours] = [Verdict::Holds, Verdict::Off, Verdict::Ours].map(count);
    let told = format!(": {holds} hold, {off} are off, and {ours} figures beside them are ours");
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&told), "{told}");
    let mut documented = 0;
    for gap in gaps(1000, 1) {
        let name = gap.scheduler.split(" (").next().unwrap();
        let row = page.lines().find(|line| line.starts_with(&format!("{name}  ")));
        let Some(row) = row else { continue };
        let cells: Vec<&str> = row[name.len()..].split_whitespace().collect();
        let median = format!("{:.1}", gap.median_percent);
        let (mean, worst) =
            (format!("{:.2}", gap.mean_percent), format!("{:.1}", gap.worst_percent));
        let optimal = gap.optimal.to_string();
        assert_eq!(cells, [&optimal, &median, "%", &mean, "%", &worst, "%"], "{name}");
        documented += 1;
    }
    assert_eq!(documented, 6);
}

#[test]
fn overheads_are_told_with_what_the_thesis_took() {
    let overheads = overheads(Duration::ZERO);
    let of = |what: &str, tasks| {
        let mut of = overheads.iter().filter(|of| of.what == what && of.tasks == tasks);
        of.next().unwrap_or_else(|| panic!("no {what}"))
    };
    for strategy in ["always", "contention", "speedup", "amortization"] {
        assert_eq!(of(&format!("determination, {strategy}"), 1638).target_us, Some(20.0));
    }
    assert_eq!(of("greedy, age", 1000).target_us, Some(10_000.0));
    assert!((of("greedy, age", 100).published_us.unwrap() - 10_339.973).abs() < 1.0);
    assert!(overheads.iter().all(|of| of.median_us <= of.percentile_95_us));
    assert!(of("evolutionary", 100).remark.contains("mappings tried"));
}

#[test]
fn costs_are_fitted_beside_those_of_the_thesis() {
    let costs = costs();
    assert_eq!(costs.len(), 7);
    assert_eq!(costs[6].published_ns, [330.7, 13_240.0, -2_814.0]);
    assert!(costs.iter().all(|of| of.coefficients_ns.iter().all(|ns| ns.is_finite())));
}
