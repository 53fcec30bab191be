// SPDX-License-Identifier: GPL-2.0
//! Numbers that stand for contents: FNV-1a of 64 bits.
//!
//! It is the same on every machine and in every release, and a change of one
//! byte always changes it. It does not resist somebody who wants two contents
//! to have the same one.

use std::fmt;

use serde::{Serialize, Serializer};

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Digest(u64);

impl Digest {
    pub(crate) fn new() -> Self {
        Self(OFFSET)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(PRIME);
        }
    }

    pub(crate) fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    /// The length stands before it, so that `ab c` is not `a bc`.
    pub(crate) fn text(&mut self, text: &[u8]) {
        self.number(text.len() as u64);
        self.bytes(text);
    }

    pub(crate) fn value(self) -> u64 {
        self.0
    }
}

/// Fingerprint of the program that a process executes, as a number.
///
/// A prediction only uses runs of a process with the same fingerprint. A process whose command was
/// changed starts again from the user's figures. The recorder of a run decides what belongs to the
/// fingerprint: usually the words of the command, but not words that change from run to run, such
/// as the name of an output file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub u64);

impl Fingerprint {
    /// Returns the fingerprint of words, in this order.
    pub fn of<W: AsRef<[u8]>>(words: impl IntoIterator<Item = W>) -> Self {
        let mut digest = Digest::new();
        for word in words {
            digest.text(word.as_ref());
        }
        Self(digest.value())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Serializes as text, since many readers of JSON have no integers of 64 bits.
impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv_1a_is_what_it_is_elsewhere() {
        let mut digest = Digest::new();
        digest.bytes(b"foobar");
        assert_eq!(digest.value(), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn words_are_told_apart() {
        let words = |words: &[&str]| Fingerprint::of(words);
        assert_eq!(words(&["sort", "a"]), words(&["sort", "a"]));
        assert_ne!(words(&["sort", "a"]), words(&["sorta"]));
        assert_ne!(words(&["sort", "a"]), words(&["sort", "a", ""]));
        assert_ne!(words(&["sort", "a"]), words(&["a", "sort"]));
    }
}
