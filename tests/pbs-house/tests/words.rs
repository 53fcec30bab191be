// SPDX-License-Identifier: GPL-2.0
//! Words of doc comments and documents: rules of CONTRIBUTING.md that a machine can check.

use pbs_house::sentences::{sentences, MOST_WORDS};
use pbs_house::tree;
use pbs_house::words::{doc_comments, DocComment};

/// Doc comments of a thousand that may open with a word that names nothing. This only falls.
const MOST_PERMILLE: usize = 10;

fn comments() -> Vec<(String, DocComment)> {
    let of = |path: String| {
        let found = doc_comments(&tree::text(&path));
        found.into_iter().map(move |comment| (path.clone(), comment)).collect::<Vec<_>>()
    };
    tree::rust_files("").into_iter().flat_map(of).collect()
}

#[test]
fn doc_comments_open_with_the_noun() {
    let all = comments();
    assert!(all.len() > 10_000, "{} doc comments", all.len());
    let bad = all.iter().filter(|(_, comment)| comment.opens_badly()).count();
    let permille = bad * 1000 / all.len();
    assert!(
        permille <= MOST_PERMILLE,
        "{bad} of {} doc comments open with What, How, It and the like; list them with \
         cargo run -p pbs-house -- words",
        all.len()
    );
}

#[test]
fn no_doc_comment_points_to_its_neighbour() {
    let all = comments();
    let wrong = all.iter().filter(|(_, comment)| comment.points_back());
    let wrong: Vec<_> =
        wrong.map(|(path, it)| format!("{path}:{}: {}", it.line, it.opening)).collect();
    assert!(wrong.is_empty(), "comments that need the one before:\n{}", wrong.join("\n"));
}

#[test]
fn sentences_of_documents_are_short() {
    let mut wrong = Vec::new();
    for path in tree::documents("") {
        for sentence in sentences(&tree::text(&path)) {
            if sentence.words > MOST_WORDS {
                wrong.push(format!("{path}:{}: {}", sentence.line, sentence.text));
            }
        }
    }
    let list = wrong.join("\n");
    assert!(wrong.is_empty(), "sentences of more than {MOST_WORDS} words:\n{list}");
}
