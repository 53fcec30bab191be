// SPDX-License-Identifier: GPL-2.0
//! Loops in a graph of files.

use std::collections::{BTreeMap, BTreeSet};

/// Arrows from each file to those whose names it takes.
pub type Arrows = BTreeMap<String, BTreeSet<String>>;

/// The groups of two or more files that reach each other, largest first.
///
/// A group is a strongly connected component of the graph.
pub fn circles(arrows: &Arrows) -> Vec<BTreeSet<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        arrows.keys().map(|file| (file, reach(arrows, file))).collect();
    let joined = |a: &String, b: &String| {
        let sees = |from, to| reached.get(from).is_some_and(|seen| seen.contains(to));
        sees(a, b) && sees(b, a)
    };
    let mut left: BTreeSet<&String> = arrows.keys().collect();
    let mut found = Vec::new();
    while let Some(file) = left.pop_first() {
        let others = left.iter().filter(|other| joined(file, other)).copied();
        let mut circle: BTreeSet<&String> = others.collect();
        left.retain(|other| !circle.contains(other));
        if !circle.is_empty() {
            circle.insert(file);
            found.push(circle.into_iter().cloned().collect::<BTreeSet<_>>());
        }
    }
    found.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    found
}

/// All files that one file reaches by one arrow or more.
fn reach<'a>(arrows: &'a Arrows, from: &String) -> BTreeSet<&'a String> {
    let mut seen = BTreeSet::new();
    let mut next: Vec<&String> = arrows.get(from).into_iter().flatten().collect();
    while let Some(file) = next.pop() {
        if seen.insert(file) {
            next.extend(arrows.get(file).into_iter().flatten());
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(arrows: &[(&str, &str)]) -> Arrows {
        let mut graph = Arrows::new();
        for (from, to) in arrows {
            graph.entry((*from).into()).or_default().insert((*to).into());
            graph.entry((*to).into()).or_default();
        }
        graph
    }

    #[test]
    fn a_line_of_arrows_is_no_circle() {
        assert!(circles(&graph(&[("a", "b"), ("b", "c"), ("a", "c")])).is_empty());
    }

    #[test]
    fn each_loop_is_one_circle_and_the_largest_comes_first() {
        let graph =
            graph(&[("a", "b"), ("b", "a"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "c")]);
        let found: Vec<Vec<String>> =
            circles(&graph).into_iter().map(|circle| circle.into_iter().collect()).collect();
        assert_eq!(found, [vec!["c", "d", "e"], vec!["a", "b"]]);
    }
}
