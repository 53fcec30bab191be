// SPDX-License-Identifier: GPL-2.0
//! Prints what documents show of the source tree; `scripts/source-tree` puts it there.

use std::process::ExitCode;

use pbs_house::sentences::{sentences, MOST_WORDS};
use pbs_house::words::doc_comments;
use pbs_house::{arrows, circles, dropped, packages, tree};

const USAGE: &str =
    "usage: pbs-house packages | circles | dropped | words [FOLDER] | sentences [FOLDER]

  packages   Print the table of packages for Documentation/source-tree.rst.
  circles    List the files that take names from each other in a loop.
  dropped    List results that are dropped without a reason.
  words      List doc comments that open with a word that names nothing.
  sentences  List sentences of documents with more than 40 words.";

fn main() -> ExitCode {
    let word = std::env::args().nth(1).unwrap_or_default();
    let folder = std::env::args().nth(2).unwrap_or_default();
    match word.as_str() {
        "packages" => print!("{}", packages::table()),
        "circles" => print_circles(),
        "dropped" => print_dropped(),
        "words" => print_words(&folder),
        "sentences" => print_sentences(&folder),
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

fn print_dropped() {
    for path in tree::sources() {
        for found in dropped::dropped(&tree::text(&path)) {
            println!("{path}:{}: {}", found.line, found.form);
        }
    }
}

fn print_words(folder: &str) {
    let (mut all, mut bad) = (0, 0);
    for path in tree::rust_files(folder) {
        for comment in doc_comments(&tree::text(&path)) {
            all += 1;
            if comment.opens_badly() {
                bad += 1;
                println!("{path}:{}: {}", comment.line, comment.opening);
            }
        }
    }
    println!("{bad} of {all} doc comments");
}

fn print_sentences(folder: &str) {
    for path in tree::documents(folder) {
        for sentence in sentences(&tree::text(&path)) {
            if sentence.words > MOST_WORDS {
                println!("{path}:{}: {} words: {}", sentence.line, sentence.words, sentence.text);
            }
        }
    }
}
