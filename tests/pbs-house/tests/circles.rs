// SPDX-License-Identifier: GPL-2.0
//! Files that take names from each other in a loop stay few.

use pbs_house::arrows::arrows;
use pbs_house::circles::circles;
use pbs_house::tree;

/// The most files of one circle.
const MOST_FILES: usize = 4;

#[test]
fn no_circle_has_more_than_four_files() {
    let mut wrong = Vec::new();
    let roots = tree::crate_roots();
    assert!(roots.len() > 40, "only {} crates were found", roots.len());
    for root in roots {
        let found = circles(&arrows(&root, &tree::read));
        wrong.extend(found.into_iter().filter(|circle| circle.len() > MOST_FILES));
    }
    let lines = wrong.iter().map(|circle| circle.iter().cloned().collect::<Vec<_>>().join("\n  "));
    let lines: Vec<String> = lines.collect();
    assert!(
        lines.is_empty(),
        "circles of more than {MOST_FILES} files:\n  {}",
        lines.join("\n\n  ")
    );
}
