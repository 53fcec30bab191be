// SPDX-License-Identifier: GPL-2.0
//! Figures 1 to 4 of Klein and Pérez (2011): their claims, with the sample
//! that is the default, and their pictures.

use pbs_rms_apps::study::{
    equivalents, figure1, figure2, figure3, figure4, Sample, Tolerance, Verdict,
};

/// 4 GiB a node.
const NODE_MIB: f64 = 4096.0;

fn all_hold(verdicts: &[Verdict]) {
    assert!(!verdicts.is_empty());
    for verdict in verdicts {
        assert!(verdict.holds, "{verdict:?}");
    }
}

#[test]
fn working_sets_grow_as_in_figure_1() {
    let figure = figure1(Sample::default());
    assert_eq!(figure.sets.len(), 50);
    all_hold(&figure.verdicts());
}

#[test]
fn speed_up_has_the_published_constants_of_figure_2() {
    let figure = figure2();
    all_hold(&figure.verdicts());
    // On one node nearly all of it is A · S; on very many B · n is.
    let (first, last) = (figure.rows[0], figure.rows[figure.rows.len() - 1]);
    assert!((first.seconds[3] / 24_061.14 - 1.0).abs() < 1e-6, "{first:?}");
    assert!(last.seconds.iter().all(|&seconds| seconds > 16_384.0 * 1.23e-4 + 1.38));
    // What is computed in parallel gets no faster than what all do costs.
    let best = (figure.rows.iter()).min_by(|a, b| a.seconds[0].total_cmp(&b.seconds[0]));
    assert_eq!(best.map(|row| row.nodes), Some(256));
}

#[test]
fn end_times_differ_as_little_as_in_figure_3() {
    let figure = figure3(Sample::default());
    all_hold(&figure.verdicts());
    // The lower the target, the more it matters; at 30 % it no longer holds.
    let median = |row: usize| figure.rows[row].increase_percent.median;
    assert!((1..figure.rows.len()).all(|row| median(row) < median(row - 1)));
    let low = figure.rows.iter().find(|row| row.target == 0.3).unwrap();
    assert!(low.within < 0.8, "{low:?}");
    let usual = figure.rows.iter().find(|row| row.target == 0.75).unwrap();
    let median = usual.increase_percent.median;
    assert!((median - 0.8).abs() < 0.1, "{median} %");
}

#[test]
fn static_choices_are_bounded_as_in_figure_4() {
    let figure = figure4(Sample::default(), NODE_MIB);
    all_hold(&figure.verdicts());
    // Memory grows with the data, and the most nodes that pay do less: at some size there
    // is no choice left.
    let (first, last) = (figure.rows[0], figure.rows[figure.rows.len() - 1]);
    assert_eq!((first.possible, last.possible), (1.0, 0.0));
    let roomy = figure4(Sample::default(), 64.0 * NODE_MIB);
    assert!(roomy.rows.iter().all(|row| row.possible == 1.0));
}

#[test]
fn at_most_1400_nodes_are_equivalent() {
    let found = equivalents(Sample { seed: 0, meshes: 1_000 });
    all_hold(&found.verdicts());
    assert!(found.nodes.least > 700.0, "{:?}", found.nodes);
    // The peak is above n_eq, so the waste of figure 9 is constant from there on only, and
    // not from a factor of 1.
    assert!(found.peak.least > 1.0 && found.peak.most < 2.2, "{:?}", found.peak);
    assert!((found.peak.median - 1.3).abs() < 0.05, "{:?}", found.peak);
}

#[test]
fn values_out_of_tolerance_refute_a_figure() {
    let mut figure = figure3(Sample { seed: 0, meshes: 3 });
    figure.rows[8].within = 0.5;
    assert!(!figure.verdicts()[0].holds);
    assert_eq!(figure.verdicts()[0].tolerance, Tolerance::AtLeast(0.95));
}

#[test]
fn no_meshes_are_no_fault() {
    let none = Sample { seed: 0, meshes: 0 };
    let pictures =
        [figure1(none).picture(), figure3(none).picture(), figure4(none, NODE_MIB).picture()];
    for picture in pictures {
        roxmltree::Document::parse(&picture).unwrap();
    }
    assert_eq!(equivalents(none).nodes.most, 0.0);
}

#[test]
fn pictures_are_xml() {
    let sample = Sample { seed: 0, meshes: 10 };
    let pictures = [
        (figure1(sample).picture(), 4, 0),
        (figure3(sample).picture(), 3, 2),
        (figure4(sample, NODE_MIB).picture(), 2, 2),
    ];
    for (picture, lines, bands) in pictures {
        let tree = roxmltree::Document::parse(&picture).unwrap();
        let count = |name| tree.descendants().filter(|node| node.has_tag_name(name)).count();
        assert_eq!((count("polyline"), count("polygon")), (lines, bands));
        assert!(!picture.contains("NaN") && !picture.contains("inf"));
    }
}

#[test]
fn the_same_sample_gives_the_same_json() {
    let json = || serde_json::to_string(&figure3(Sample { seed: 5, meshes: 3 })).unwrap();
    assert_eq!(json(), json());
    let verdict = serde_json::to_value(Verdict::new("x", 1.0, Tolerance::AtMost(2.0))).unwrap();
    assert_eq!(verdict["tolerance"]["at_most"], 2.0);
}
