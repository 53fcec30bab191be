// SPDX-License-Identifier: GPL-2.0
//! Prints what documents show of the source tree; `scripts/source-tree` puts it there.

use std::process::ExitCode;

use pbs_house::{arrows, circles, packages, tree};

const USAGE: &str = "usage: pbs-house packages | circles

  packages   Print the table of packages for Documentation/source-tree.rst.
  circles    List the files that take names from each other in a loop.";

fn main() -> ExitCode {
    let word = std::env::args().nth(1).unwrap_or_default();
    match word.as_str() {
        "packages" => print!("{}", packages::table()),
        "circles" => print_circles(),
        "--help" => println!("{USAGE}"),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn print_circles() {
    for root in tree::crate_roots() {
        for circle in circles::circles(&arrows::arrows(&root, &tree::read)) {
            println!("{} files:", circle.len());
            for file in circle {
                println!("  {file}");
            }
        }
    }
}
