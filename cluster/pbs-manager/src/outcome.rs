// SPDX-License-Identifier: GPL-2.0
//! Outcomes of requests that the manager writes into the ledger, and reads there again.

use crate::ledger::Row;

/// Outcome of a request whose time is over.
pub(crate) const ABORTED: &str = "aborted at its end";
/// Beginning of the outcome of a request that a caller ended.
pub(crate) const KILLED: &str = "killed by ";

/// Outcome of a request that its engine refused, before the reason: that may show paths and words
/// of its owner's files.
const REFUSED: &str = "refused";

/// Returns a text about a request for others than its owner: without the reason for which an engine
/// refused the request.
pub fn without_reason(text: &str) -> &str {
    let reason = text.match_indices(REFUSED).find(|(at, _)| {
        let is_word = *at == 0 || text[..*at].ends_with(' ');
        is_word && text[at + REFUSED.len()..].starts_with(": ")
    });
    reason.map_or(text, |(at, _)| &text[..at + REFUSED.len()])
}

impl Row {
    /// Whether a caller ended the request.
    pub fn is_killed(&self) -> bool {
        self.outcome.as_ref().is_some_and(|outcome| outcome.starts_with(KILLED))
    }

    /// Whether the request ended because its time was over.
    pub fn is_aborted(&self) -> bool {
        self.outcome.as_deref() == Some(ABORTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Others see that a request was refused, and not why, also where it was followed.
    #[test]
    fn reasons_are_for_the_owner() {
        for (text, public) in [
            ("refused: /home/anna/secret.toml: line 3: key = 'x'", "refused"),
            (
                "not to run: request 7 refused: /home/anna/x: refused: y",
                "not to run: request 7 refused",
            ),
            ("killed by anna", "killed by anna"),
            ("exit 1", "exit 1"),
            ("unrefused: x", "unrefused: x"),
        ] {
            assert_eq!(without_reason(text), public);
        }
    }
}
