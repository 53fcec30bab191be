// SPDX-License-Identifier: GPL-2.0
//! The tasks of a process, and the neighbours of a task, as bytes.

use pbs_interference::{Beside, Key, Level, Neighbour};

use crate::{Outcome, TaskRun};

/// The bytes of a task without its name.
const TASK_BYTES: usize = 4 + 1 + 4 + 3 * 8 + 4;
/// Length of a name that is not there.
const NO_NAME: u32 = u32::MAX;

/// Task after task, each: number, outcome, preemptions, planned, retired, peak,
/// length of the name and the name; all little-endian. A job can have tens of
/// thousands, which a planner reads of many runs: a row for each would take
/// several times as long.
pub(crate) fn pack(tasks: &[TaskRun]) -> Vec<u8> {
    let mut out = Vec::with_capacity(tasks.len() * TASK_BYTES);
    for task in tasks {
        out.extend(task.task.to_le_bytes());
        let outcome = Outcome::ALL.iter().position(|&known| known == task.outcome);
        out.push(outcome.unwrap_or(0) as u8);
        out.extend(task.preemptions.to_le_bytes());
        for figure in [task.planned_insns, task.retired_insns, task.peak_memory_bytes] {
            out.extend(figure.to_le_bytes());
        }
        let name = task.name.as_deref();
        out.extend(name.map_or(NO_NAME, |name| name.len() as u32).to_le_bytes());
        out.extend(name.unwrap_or("").as_bytes());
    }
    out
}

/// Whether one of the packed tasks has ended.
pub(crate) fn has_complete(mut bytes: &[u8]) -> bool {
    let complete = Outcome::ALL.iter().position(|&known| known == Outcome::Complete);
    let mut next = || {
        let [_, _, _, _, outcome] = take::<5>(&mut bytes)?;
        take::<{ TASK_BYTES - 4 - 5 }>(&mut bytes)?;
        let length = Some(number(&mut bytes)?).filter(|&length| length != NO_NAME);
        bytes = bytes.get(length.unwrap_or(0) as usize..)?;
        Some(Some(usize::from(outcome)) == complete)
    };
    std::iter::from_fn(&mut next).any(|is_complete| is_complete)
}

/// `None`: these are not packed tasks.
pub(crate) fn unpack(mut bytes: &[u8]) -> Option<Vec<TaskRun>> {
    let mut tasks = Vec::with_capacity(bytes.len() / TASK_BYTES);
    while !bytes.is_empty() {
        let task = number(&mut bytes)?;
        let outcome = *Outcome::ALL.get(usize::from(take::<1>(&mut bytes)?[0]))?;
        let preemptions = number(&mut bytes)?;
        let planned_insns = u64::from_le_bytes(take(&mut bytes)?);
        let retired_insns = u64::from_le_bytes(take(&mut bytes)?);
        let peak_memory_bytes = u64::from_le_bytes(take(&mut bytes)?);
        let name = match number(&mut bytes)? {
            NO_NAME => None,
            length => {
                let (name, rest) = bytes.split_at_checked(length as usize)?;
                bytes = rest;
                Some(std::str::from_utf8(name).ok()?.into())
            }
        };
        tasks.push(TaskRun {
            task,
            name,
            planned_insns,
            retired_insns,
            peak_memory_bytes,
            preemptions,
            outcome,
        });
    }
    Some(tasks)
}

/// Set after set of neighbours, each: for how long, how many, and of each of them the
/// level, the fingerprint, the task and the variant; all little-endian.
pub(crate) fn pack_beside(beside: &[Beside]) -> Vec<u8> {
    let mut out = Vec::new();
    for beside in beside {
        out.extend(beside.duration_ns.to_le_bytes());
        out.extend((beside.neighbours.len() as u32).to_le_bytes());
        for Neighbour { level, key } in &beside.neighbours {
            out.push(*level as u8);
            out.extend(key.fingerprint.to_le_bytes());
            out.extend(key.task.to_le_bytes());
            out.extend(key.variant.to_le_bytes());
        }
    }
    out
}

/// `None`: these are not packed neighbours.
pub(crate) fn unpack_beside(mut bytes: &[u8]) -> Option<Vec<Beside>> {
    let mut beside = Vec::new();
    while !bytes.is_empty() {
        let duration_ns = u64::from_le_bytes(take(&mut bytes)?);
        let count = number(&mut bytes)?;
        let neighbours = (0..count).map(|_| {
            Some(Neighbour {
                level: *Level::ALL.get(usize::from(take::<1>(&mut bytes)?[0]))?,
                key: Key {
                    fingerprint: u64::from_le_bytes(take(&mut bytes)?),
                    task: number(&mut bytes)?,
                    variant: number(&mut bytes)?,
                },
            })
        });
        beside.push(Beside { neighbours: neighbours.collect::<Option<_>>()?, duration_ns });
    }
    Some(beside)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

fn number(bytes: &mut &[u8]) -> Option<u32> {
    take(bytes).map(u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(task: u32, name: Option<&str>) -> TaskRun {
        TaskRun {
            task,
            name: name.map(Into::into),
            planned_insns: 1 << 40,
            retired_insns: 3,
            peak_memory_bytes: 4096,
            preemptions: 2,
            outcome: Outcome::Killed,
        }
    }

    #[test]
    fn tasks_come_out_as_they_went_in() {
        let tasks = [task(1, None), task(2, Some("")), task(u32::MAX, Some("größer"))];
        assert_eq!(unpack(&pack(&tasks)).as_deref(), Some(&tasks[..]));
        assert_eq!(unpack(&[]), Some(Vec::new()));
    }

    #[test]
    fn tasks_that_are_cut_off_are_none() {
        let packed = pack(&[task(1, Some("a"))]);
        for length in 1..packed.len() {
            assert_eq!(unpack(&packed[..length]), None, "{length}");
        }
        let mut other = packed.clone();
        other[4] = 200;
        assert_eq!(unpack(&other), None, "an outcome that there is not");
        let mut other = packed;
        let end = other.len() - 1;
        other[end] = 0xff;
        assert_eq!(unpack(&other), None, "a name that is no text");
    }

    #[test]
    fn neighbours_come_out_as_they_went_in() {
        let by = |level, task| Neighbour {
            level,
            key: Key { fingerprint: u64::MAX - 1, task, variant: 2 },
        };
        let beside = [
            Beside::default(),
            Beside {
                neighbours: vec![by(Level::Smt, 1), by(Level::Node, u32::MAX)],
                duration_ns: 1 << 40,
            },
        ];
        let packed = pack_beside(&beside);
        assert_eq!(unpack_beside(&packed).as_deref(), Some(&beside[..]));
        for length in (1..packed.len()).filter(|&length| length != 12) {
            assert_eq!(unpack_beside(&packed[..length]), None, "{length}");
        }
        // More neighbours than there are bytes; a level that there is not.
        let mut other = packed.clone();
        other[8] = 200;
        assert_eq!(unpack_beside(&other), None);
        let mut other = packed;
        other[24] = 4;
        assert_eq!(unpack_beside(&other), None);
    }
}
