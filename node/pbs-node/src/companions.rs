// SPDX-License-Identifier: GPL-2.0
//! Slow-downs between the jobs that are planned.

use std::collections::BTreeSet;

use pbs_history::Corun;
use pbs_interference::{learn, names, Config, Entry, Key, Level, Names, Sharing, Slowdowns, Work};
use pbs_job::{Job, Machine};

use crate::predict::fingerprint;

/// Source of slow-downs.
#[derive(Clone, Debug)]
pub enum SlowdownSource {
    /// Measurements of earlier runs, in the history.
    History,
    /// A file, as [`pbs_interference::slowdowns_from_toml`] reads it.
    File(Vec<Entry<String>>),
}

/// Returns the key under which slow-downs of a job's task are stored.
pub(crate) fn key(job: &Job, task: usize) -> Key {
    let task = &job.tasks[task];
    Key { fingerprint: fingerprint(&job.processes[task.process]).0, task: task.id, variant: 0 }
}

/// Returns the resources that the machine declares as shared by its CPUs.
pub fn sharing(machine: &Machine) -> Sharing {
    let groups = machine.sharing.iter().filter_map(|shared| {
        let level = Level::from_name(&shared.level)?;
        Some((level, shared.cpus.clone()))
    });
    Sharing::new(groups.collect())
}

/// The slow-downs of a file, for tasks of those jobs.
pub(crate) fn of_file(entries: &[Entry<String>], jobs: &[&Job]) -> Slowdowns {
    let mut known = Names::default();
    for job in jobs {
        for (index, task) in job.tasks.iter().enumerate() {
            let label = job.processes[task.process].label();
            let name = task.name.as_deref();
            let names = names(Some(&job.name), &label, task.id, name, None);
            known.add(key(job, index), names);
        }
    }
    Slowdowns::new(known.resolve(entries))
}

/// Learns slow-downs from these runs. A count by the clock does not measure work. Therefore runs
/// with counted instructions and runs with clock counts are evaluated separately, and counted runs
/// take precedence.
pub fn of_runs(coruns: &[Corun]) -> Slowdowns {
    let of = |by_clock: bool, work: Work| {
        let samples = coruns.iter().filter(|corun| corun.by_clock == by_clock);
        let samples: Vec<_> = samples.map(|corun| corun.sample.clone()).collect();
        learn(&Config::DEFAULT, work, &samples)
    };
    let counted = of(false, Work::Retired);
    let victims: BTreeSet<Key> = counted.iter().map(|learnt| learnt.victim).collect();
    let timed = of(true, Work::Constant).into_iter();
    let timed = timed.filter(|learnt| !victims.contains(&learnt.victim));
    let all = timed.chain(counted).flat_map(|learnt| learnt.entries);
    Slowdowns::new(all.collect())
}

#[cfg(test)]
mod tests {
    use pbs_interference::{Beside, Neighbour, Sample};
    use pbs_job::job_from_toml;

    use super::*;

    const JOB: &str = "name = \"j\"\ndeadline_ns = 1000\n[[process]]\nid = 7\nname = \"p\"\n\
                       memory_bytes = 4000\ncommands = [[\"a\"], [\"b\"]]\n\
                       tasks = [{ id = 4, name = \"x\", insns = 100 }, 200]\n";

    fn neighbour(key: Key) -> Neighbour {
        Neighbour { level: Level::Node, key }
    }

    #[test]
    fn files_name_tasks_of_jobs() {
        let job = job_from_toml(JOB).unwrap();
        let place = |name: &str| {
            let named = job.tasks.iter().position(|task| task.name.as_deref() == Some(name));
            key(&job, named.unwrap())
        };
        let x = place("x");
        assert_eq!(x.task, 4);
        let entry = |victim: &str, beside: &str| Entry {
            victim: victim.into(),
            beside: vec![(Level::Node, beside.into())],
            slowdown: 1.5,
            low: 1.4,
            high: 1.6,
            samples: 3,
        };
        for name in ["j:p/x", "p/x", "p/4", "p"] {
            let table = of_file(&[entry(name, "p/5")], &[&job]);
            let other = Key { task: 5, ..x };
            assert_eq!(table.of(x, &[neighbour(other)]).slowdown, 1.5, "{name}");
        }
        let nobody = of_file(&[entry("q", "p")], &[&job]);
        assert!(nobody.entries().is_empty());
    }

    /// Runs that were counted go before those that were timed.
    #[test]
    fn runs_are_learnt_from_by_how_they_were_counted() {
        let key = |fingerprint| Key { fingerprint, ..Key::default() };
        // Of 1,000 instructions, alone and half of the time beside the other.
        let run = |beside_ns: u64, ran_ns: u64, by_clock| Corun {
            sample: Sample {
                victim: key(1),
                insns: 1_000_000,
                ran_ns,
                beside: vec![
                    Beside { neighbours: Vec::new(), duration_ns: ran_ns - beside_ns },
                    Beside { neighbours: vec![neighbour(key(2))], duration_ns: beside_ns },
                ],
            },
            by_clock,
        };
        let mut runs = Vec::new();
        for _ in 0..10 {
            // Alone 1 ms, beside the other 2: s = 2; by the clock 3.
            runs.extend([run(0, 1_000_000, false), run(2_000_000, 2_000_000, false)]);
            runs.extend([run(0, 1_000_000, true), run(3_000_000, 3_000_000, true)]);
        }
        let told = |runs: &[Corun]| of_runs(runs).of(key(1), &[neighbour(key(2))]).slowdown;
        assert!((told(&runs) - 2.0).abs() < 0.05, "{}", told(&runs));
        let timed: Vec<_> = runs.iter().filter(|run| run.by_clock).cloned().collect();
        assert!((told(&timed) - 3.0).abs() < 0.1, "{}", told(&timed));
        assert_eq!(told(&[]), 1.0);
    }
}
