// SPDX-License-Identifier: GPL-2.0
//! Resources that a run used as a whole, with all processes that its programs started.

use rusqlite::{params, Connection, OptionalExtension};
use serde::Serialize;

use crate::digest::Digest;
use crate::limits::kept;
use crate::tables::same;
use crate::{Error, Fingerprint, RunId};

/// CPU time of other processes below which nobody is told of them: a program that exits in the
/// middle of a measurement has as much.
const LEAST_OTHERS_NS: u64 = 10_000_000;
/// Share of the CPU time of the programs themselves below which nobody is told of other processes.
const LEAST_OTHERS_PERCENT: u64 = 1;

/// Resources of a run as a whole. A figure is unknown if nobody has measured it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RunUsage {
    /// CPU time of all processes that were in the control group of the run.
    pub group_cpu_ns: Option<u64>,
    /// CPU time of the programs of its processes, without processes that these started.
    pub programs_cpu_ns: Option<u64>,
    /// Greatest memory of the control group, with its file cache.
    pub group_peak_bytes: Option<u64>,
}

impl RunUsage {
    /// CPU time that processes used outside of the plan which the programs have started.
    pub fn others_cpu_ns(&self) -> Option<u64> {
        Some(self.group_cpu_ns?.saturating_sub(self.programs_cpu_ns?))
    }

    /// CPU time of other processes, if it is so much that the user should know of it: at least
    /// 10 ms, and 1 % of the time of the programs themselves.
    pub fn notable_others_ns(&self) -> Option<u64> {
        let share_ns = self.programs_cpu_ns? / 100 * LEAST_OTHERS_PERCENT;
        self.others_cpu_ns().filter(|&ns| ns >= LEAST_OTHERS_NS.max(share_ns))
    }

    /// Memory that has to be reserved for all processes of the run together; `None`: the memory of
    /// its own processes is all that is known.
    ///
    /// The figure includes file cache, which the kernel takes back when memory is short. It
    /// therefore counts only for a run whose programs have started others.
    pub(crate) fn needed_bytes(&self) -> Option<u64> {
        self.notable_others_ns().and(self.group_peak_bytes)
    }

    fn digest(&self, run: RunId) -> u64 {
        let mut digest = Digest::new();
        digest.number(run.0);
        for figure in [self.group_cpu_ns, self.programs_cpu_ns, self.group_peak_bytes] {
            digest.number(figure.is_some().into());
            digest.number(figure.unwrap_or(0));
        }
        digest.value()
    }

    /// Whether SQLite can keep the figures.
    pub(crate) fn check(&self) -> Result<(), Error> {
        kept("the CPU time of a control group", self.group_cpu_ns.unwrap_or(0))?;
        kept("the CPU time of programs", self.programs_cpu_ns.unwrap_or(0))?;
        kept("the memory of a control group", self.group_peak_bytes.unwrap_or(0))
    }
}

/// Fingerprint of all programs of a job: of its processes, each with its number.
pub(crate) fn all_programs(processes: impl Iterator<Item = (u32, Fingerprint)>) -> Fingerprint {
    let mut processes: Vec<_> = processes.collect();
    processes.sort_unstable();
    let words = processes.iter().map(|(process, of)| format!("{process} {of}"));
    Fingerprint::of(words)
}

/// Writes the figures of a run that is over, unless all are unknown.
pub(crate) fn write_usage(
    connection: &Connection,
    id: RunId,
    usage: &RunUsage,
) -> rusqlite::Result<()> {
    if *usage != RunUsage::default() {
        let digest = usage.digest(id) as i64;
        let &RunUsage { group_cpu_ns, programs_cpu_ns, group_peak_bytes } = usage;
        connection.execute(
            "INSERT OR REPLACE INTO used VALUES (?, ?, ?, ?, ?)",
            params![id.0, group_cpu_ns, programs_cpu_ns, group_peak_bytes, digest],
        )?;
    }
    Ok(())
}

/// Reads the figures of a run. Where the file has none, all are unknown.
pub(crate) fn usage_of(connection: &Connection, id: RunId) -> rusqlite::Result<RunUsage> {
    let sql = "SELECT group_cpu_ns, programs_cpu_ns, group_peak_bytes, digest FROM used \
               WHERE run = ?";
    let mut statement = connection.prepare_cached(sql)?;
    let known = statement.query_row([id.0], |row| {
        let usage = RunUsage {
            group_cpu_ns: row.get(0)?,
            programs_cpu_ns: row.get(1)?,
            group_peak_bytes: row.get(2)?,
        };
        same(row, 3, usage.digest(id))?;
        Ok(usage)
    });
    Ok(known.optional()?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(group_ms: u64, programs_ms: u64) -> RunUsage {
        RunUsage {
            group_cpu_ns: Some(group_ms * 1_000_000),
            programs_cpu_ns: Some(programs_ms * 1_000_000),
            group_peak_bytes: Some(77),
        }
    }

    /// Little time of others is not worth a word, and the clocks of the two figures may differ.
    #[test]
    fn little_time_of_others_is_not_told() {
        let notable_ms = |group_ms, programs_ms| {
            usage(group_ms, programs_ms).notable_others_ns().map(|ns| ns / 1_000_000)
        };
        assert_eq!(notable_ms(109, 100), None);
        assert_eq!(notable_ms(110, 100), Some(10));
        assert_eq!(notable_ms(5_049, 5_000), None);
        assert_eq!(notable_ms(5_050, 5_000), Some(50));
        assert_eq!(notable_ms(99, 100), None);
        assert_eq!(usage(99, 100).others_cpu_ns(), Some(0));
    }

    /// Unknown figures are not 0, and no reason to reserve memory.
    #[test]
    fn unknown_figures_stay_unknown() {
        let whole = usage(900, 100);
        assert_eq!(whole.needed_bytes(), Some(77));
        for part in
            [RunUsage { group_cpu_ns: None, ..whole }, RunUsage { programs_cpu_ns: None, ..whole }]
        {
            assert_eq!((part.others_cpu_ns(), part.notable_others_ns()), (None, None));
            assert_eq!(part.needed_bytes(), None);
        }
        assert_eq!(RunUsage { group_peak_bytes: None, ..whole }.needed_bytes(), None);
        assert_eq!(usage(100, 100).needed_bytes(), None);
    }
}
