// SPDX-License-Identifier: GPL-2.0
//! Releases of Slurm, and what differs in the interfaces that are used here.
//!
//! The interfaces are the columns of `squeue` and `sinfo`, the rows of `scontrol show`, the answers
//! of `scontrol` at the end of a pipe, the two scripts in Lua and the plugin of slurmstepd. They were
//! compared in the sources of these releases. Only those that are marked were tried.

use crate::conf::check::{Finding, Level};

/// Release of Slurm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// Name of the release: `22.05`.
    pub name: &'static str,
    /// Whether a real Slurm of this release is part of the tests.
    pub is_tested: bool,
    /// Difference from the tested release; empty: none in these interfaces.
    pub differs: &'static str,
}

const fn untested(name: &'static str, differs: &'static str) -> Release {
    Release { name, is_tested: false, differs }
}

/// Plugin of slurmstepd, which Slurm loads only if it is made for that release.
const PLUGIN: &str = "the plugin of slurmstepd must be made for it";

/// Releases whose interfaces are known.
pub const RELEASES: [Release; 7] = [
    Release { name: "22.05", is_tested: true, differs: "" },
    untested("23.02", PLUGIN),
    untested("23.11", PLUGIN),
    untested("24.05", PLUGIN),
    untested("24.11", PLUGIN),
    untested("25.05", PLUGIN),
    untested(
        "25.11",
        "the plugin of slurmstepd must be made for it; rows of reservations have more \
                       words at their ends, which are not read",
    ),
];

/// Finding about the release in what `scontrol --version` has printed; `None`: it is tested.
pub fn release_finding(text: &str) -> Option<Finding> {
    let version = text.split_whitespace().last().unwrap_or("");
    let mut parts = version.split('.');
    let name = parts.next().zip(parts.next()).map(|(year, month)| format!("{year}.{month}"));
    let release = RELEASES.iter().find(|of| Some(of.name) == name.as_deref());
    let tested: Vec<&str> = RELEASES.iter().filter(|of| of.is_tested).map(|of| of.name).collect();
    let why = match release {
        Some(of) if of.is_tested => return None,
        Some(of) => format!(
            "its interfaces were compared with those of the tested release, and it was not tried: {}",
            of.differs
        ),
        None => "nothing is known of its interfaces; try it with a cluster of your own before".into(),
    };
    Some(Finding {
        level: Level::Advice,
        key: "release of Slurm".into(),
        is: Some(if version.is_empty() { "unknown".into() } else { version.into() }),
        should: format!("{}, which is tested", tested.join(" or ")),
        why,
        place: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tested_releases_have_no_finding() {
        assert_eq!(release_finding("slurm-wlm 22.05.8\n"), None);
        for (text, is, why) in [
            ("slurm 24.05.3", "24.05.3", "plugin of slurmstepd"),
            ("slurm 25.11.0-0rc1", "25.11.0-0rc1", "more words"),
            ("slurm 21.08.1", "21.08.1", "nothing is known"),
            ("slurm 22.5.1", "22.5.1", "nothing is known"),
            ("", "unknown", "nothing is known"),
        ] {
            let found = release_finding(text).unwrap();
            assert_eq!((found.level, found.is.as_deref()), (Level::Advice, Some(is)), "{text}");
            assert!(found.why.contains(why), "{text}: {}", found.why);
            assert_eq!(found.should, "22.05, which is tested");
        }
    }
}
