// SPDX-License-Identifier: GPL-2.0
//! Lines of no more points than can be seen.

use crate::point::Point;

/// The line with about `most` points at most. Of each stretch of time the
/// first, least, greatest and last point stay, so that no peak is lost.
pub(crate) fn thin(line: &[Point], most: usize) -> Vec<Point> {
    let (Some(first), Some(last)) = (line.first(), line.last()) else {
        return Vec::new();
    };
    if line.len() <= most {
        return line.to_vec();
    }
    let stretches = (most / 4).max(1) as u128;
    let span = u128::from(last.0 - first.0) + 1;
    let stretch_of = |point: &Point| u128::from(point.0 - first.0) * stretches / span;
    let mut out = Vec::new();
    for points in line.chunk_by(|a, b| stretch_of(a) == stretch_of(b)) {
        let by_value = |&position: &usize| points[position].1;
        let positions = || 0..points.len();
        let mut kept = vec![0, points.len() - 1];
        kept.extend(positions().min_by_key(by_value));
        kept.extend(positions().max_by_key(by_value));
        kept.sort_unstable();
        kept.dedup();
        out.extend(kept.into_iter().map(|position| points[position]));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_and_ends_stay() {
        let mut line: Vec<_> = (0..10_000).map(|time| Point(time, 5)).collect();
        line[1234].1 = 99;
        line[7777].1 = -99;
        let thinned = thin(&line, 100);
        assert!(thinned.len() <= 100, "{}", thinned.len());
        assert!(thinned.contains(&Point(1234, 99)) && thinned.contains(&Point(7777, -99)));
        assert_eq!((thinned[0], thinned[thinned.len() - 1]), (line[0], line[9999]));
        assert!(thinned.is_sorted_by_key(|point| point.0));
    }

    #[test]
    fn short_lines_stay_as_they_are() {
        let line = [Point(3, 1), Point(3, 7), Point(9, 0)];
        assert_eq!(thin(&line, 3), line);
        assert!(thin(&[], 3).is_empty());
        // All at one moment.
        let moment = [Point(4, 2), Point(4, 9), Point(4, -1), Point(4, 3), Point(4, 0)];
        assert_eq!(thin(&moment, 4), [Point(4, 2), Point(4, 9), Point(4, -1), Point(4, 0)]);
    }
}
