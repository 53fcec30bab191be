// SPDX-License-Identifier: GPL-2.0
//! Lines that are compared, and bands about them.

use pbs_report::{curves, Band, Curve, Plot};

fn plot() -> Plot {
    Plot {
        title: "a < b".into(),
        across: "seconds".into(),
        up: "percent".into(),
        curves: vec![Curve {
            name: "median".into(),
            points: vec![(1.0, 2.0), (10.0, 3.0), (100.0, 4.0)],
        }],
        bands: vec![
            Band {
                name: "half of them".into(),
                points: vec![(1.0, (1.0, 3.0)), (10.0, (2.0, 4.0)), (100.0, (3.0, 20.0))],
            },
            Band { name: "none".into(), points: Vec::new() },
        ],
        ..Plot::default()
    }
}

/// The points of all elements of a name.
fn points(picture: &str, name: &str) -> Vec<Vec<(f64, f64)>> {
    let tree = roxmltree::Document::parse(picture).unwrap();
    let named = tree.descendants().filter(|node| node.has_tag_name(name));
    let pair = |text: &str| {
        let (x, y) = text.split_once(',').unwrap();
        (x.parse().unwrap(), y.parse().unwrap())
    };
    let points = named.map(|node| {
        let text = node.attribute("points").unwrap();
        text.split_whitespace().map(pair).collect()
    });
    points.collect()
}

#[test]
fn a_band_goes_there_and_back() {
    let picture = curves("several", "what there is", &[plot()]);
    let mut bands = points(&picture, "polygon");
    // The last is drawn first.
    bands.reverse();
    assert_eq!([bands[0].len(), bands[1].len()], [6, 0]);
    let line = &points(&picture, "polyline")[0];
    for (place, &(x, y)) in line.iter().enumerate() {
        let (low, high) = (bands[0][place], bands[0][5 - place]);
        assert!((low.0 - x).abs() < 0.1 && (high.0 - x).abs() < 0.1);
        // Up is less.
        assert!(high.1 < y && y < low.1, "{high:?} {y} {low:?}");
    }
    for name in ["median", "half of them", "none", "a &lt; b"] {
        assert!(picture.contains(name), "{name}");
    }
}

#[test]
fn axes_reach_as_far_as_bands() {
    let picture = curves("", "", &[plot()]);
    let top = points(&picture, "polygon")[1][3].1;
    let without = Plot { bands: Vec::new(), ..plot() };
    let line =
        |plot: &Plot| points(&curves("", "", std::slice::from_ref(plot)), "polyline")[0][2].1;
    // 20 is where 4 would be if there were no band.
    assert!((top - line(&without)).abs() < 60.0 && top < line(&plot()));
}

#[test]
fn what_no_logarithm_has_is_left_out() {
    let mut plot = plot();
    plot.is_logarithmic = true;
    plot.bands[0].points[0].0 = 0.0;
    plot.curves[0].points[2].1 = f64::NAN;
    let picture = curves("", "", &[plot]);
    assert_eq!(points(&picture, "polygon")[1].len(), 4);
    assert_eq!(points(&picture, "polyline")[0].len(), 2);
    assert!(!picture.contains("NaN") && !picture.contains("inf"));
}
