// SPDX-License-Identifier: GPL-2.0
//! CPUs that another resource manager has given to certain runs.
//!
//! A run in an allocation is planned on the CPUs of that, and to end before it does. A run
//! in none is planned on CPUs that are in none. What was planned before is not moved: its
//! programs have their CPUs from then on, and others are planned beside them.

use std::collections::{BTreeMap, BTreeSet};

use pbs_job::{Job, Machine};

use crate::clock::unix_ns;

/// Resources that a resource manager has allocated to one of its own jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allocation {
    /// The CPUs, by their numbers in Linux.
    pub cpus: BTreeSet<u32>,
    /// End of the allocation; `None`: it is not known.
    pub until_unix_ns: Option<u64>,
}

/// All of them, by the numbers of that manager's jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allocations(pub(crate) BTreeMap<u32, Allocation>);

/// Differences between allocations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Touched {
    /// Numbers of allocations that began, ended or changed.
    pub(crate) numbers: BTreeSet<u32>,
    /// CPUs that were allocated or released.
    pub(crate) cpus: BTreeSet<u32>,
}

impl Allocations {
    /// Returns what differs from those allocations.
    pub(crate) fn difference(&self, others: &Self) -> Touched {
        let mut touched = Touched::default();
        for (one, other) in [(self, others), (others, self)] {
            for (&number, allocation) in &one.0 {
                let before = other.0.get(&number);
                if before == Some(allocation) {
                    continue;
                }
                touched.numbers.insert(number);
                let had = |cpu: &u32| before.is_some_and(|before| before.cpus.contains(cpu));
                touched.cpus.extend(allocation.cpus.iter().filter(|cpu| !had(cpu)));
            }
        }
        touched
    }

    /// Bounds a job, whose times are those of a clock that says `now_ns`, to the allocation
    /// of its run, or to what is in none.
    ///
    /// # Errors
    ///
    /// In words, why it can run nowhere.
    pub(crate) fn bound(
        &self,
        job: &mut Job,
        allocation: Option<u32>,
        machine: &Machine,
        now_ns: u64,
    ) -> Result<(), String> {
        let Some(number) = allocation else {
            return self.keep_out(job, machine);
        };
        let allocation = self.0.get(&number);
        let allocation = allocation.ok_or_else(|| format!("its allocation {number} has ended"))?;
        job.deadline_ns = self.deadline_ns(Some(number), job.deadline_ns, now_ns);
        job.cpus = its_cpus(job, machine, |cpu| allocation.cpus.contains(&cpu));
        if job.cpus.is_empty() {
            Err(format!(
                "its allocation {number} has no CPU that it may run on and that is planned"
            ))
        } else {
            confine_processes(job)
        }
    }

    /// The deadline of a run, and not later than its allocation ends; as in
    /// [`Allocations::bound`].
    pub(crate) fn deadline_ns(
        &self,
        allocation: Option<u32>,
        deadline_ns: u64,
        now_ns: u64,
    ) -> u64 {
        let allocation = allocation.and_then(|number| self.0.get(&number));
        let until_unix_ns = allocation.and_then(|allocation| allocation.until_unix_ns);
        until_unix_ns.map_or(deadline_ns, |until| {
            let left_ns = until.saturating_sub(unix_ns());
            deadline_ns.min(now_ns.saturating_add(left_ns))
        })
    }

    /// Keeps a job without an allocation off the allocated CPUs. If all CPUs of the job are free,
    /// the job is not confined to them; this way it may move when it is planned again.
    fn keep_out(&self, job: &mut Job, machine: &Machine) -> Result<(), String> {
        let is_taken = |cpu: u32| self.0.values().any(|it| it.cpus.contains(&cpu));
        let its = its_cpus(job, machine, |_| true);
        let free = its_cpus(job, machine, |cpu| !is_taken(cpu));
        match (free.len() == its.len(), free.is_empty()) {
            (true, _) => Ok(()),
            (false, true) => Err("all CPUs that it may run on are allocated to others".into()),
            (false, false) => {
                job.cpus = free;
                confine_processes(job)
            }
        }
    }
}

/// Confines the processes of a job to its CPUs: a file in which one has others is refused, and so
/// would the saved job be.
fn confine_processes(job: &mut Job) -> Result<(), String> {
    for process in &mut job.processes {
        if process.cpus.is_empty() {
            continue;
        }
        process.cpus.retain(|cpu| job.cpus.contains(cpu));
        if process.cpus.is_empty() {
            return Err(format!(
                "process {} may run on none of the CPUs that are left for the job",
                process.label()
            ));
        }
    }
    Ok(())
}

/// The CPUs of the machine on which a job may run, of those, ascending.
fn its_cpus(job: &Job, machine: &Machine, of: impl Fn(u32) -> bool) -> Vec<u32> {
    let may = |cpu: &u32| job.cpus.is_empty() || job.cpus.contains(cpu);
    let cpus = machine.cpus().filter(|cpu| may(cpu) && of(*cpu));
    let cpus: BTreeSet<u32> = cpus.collect();
    cpus.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pbs_job::{job_from_toml, machine_from_toml};

    const S: u64 = 1_000_000_000;

    fn machine() -> Machine {
        let text = "[[node]]\nname = \"n\"\nmemory_bytes = 1_000_000_000\n\
                    rate_insns_per_s = 250_000_000\n\
                    cores = [{ name = \"a\", cpu = 0 }, { name = \"b\", cpu = 1 }, \
                    { name = \"c\", cpu = 2 }, { name = \"d\", cpu = 3 }]\n";
        machine_from_toml(text).unwrap()
    }

    fn job(cpus: &str) -> Job {
        let text = format!(
            "name = \"j\"\ndeadline_ns = 9_000_000_000\n{cpus}\n[[process]]\nid = 1\n\
             memory_bytes = 4096\ncommand = [\"true\"]\ntasks = [1_000_000]\n"
        );
        job_from_toml(&text).unwrap()
    }

    fn allocations(of: &[(u32, &[u32], Option<u64>)]) -> Allocations {
        let of = of.iter().map(|(number, cpus, until_unix_ns)| {
            let allocation =
                Allocation { cpus: cpus.iter().copied().collect(), until_unix_ns: *until_unix_ns };
            (*number, allocation)
        });
        Allocations(of.collect())
    }

    /// The CPUs that the job gets.
    fn bound(of: &Allocations, cpus: &str, allocation: Option<u32>) -> Result<Vec<u32>, String> {
        let mut job = job(cpus);
        of.bound(&mut job, allocation, &machine(), 0)?;
        Ok(job.cpus)
    }

    /// A process has no CPU that its job has not: the saved job could not be read.
    #[test]
    fn processes_are_confined_with_their_job() {
        let of = allocations(&[(7, &[2, 1], None)]);
        let confined = |allocation, cpus: &[u32]| {
            let mut job = job("");
            job.processes[0].cpus = cpus.to_vec();
            of.bound(&mut job, allocation, &machine(), 0).map(|()| job.processes.remove(0).cpus)
        };
        assert!(confined(Some(7), &[]).unwrap().is_empty());
        assert_eq!(confined(Some(7), &[0, 1, 3]).unwrap(), [1]);
        assert_eq!(confined(None, &[0, 1]).unwrap(), [0]);
        let none = confined(None, &[1, 2]).unwrap_err();
        assert!(none.contains("may run on none of the CPUs"), "{none}");
    }

    #[test]
    fn jobs_in_allocations_have_distinct_cpus_and_others_have_the_rest() {
        let of = allocations(&[(7, &[2, 1], None), (8, &[3], None)]);
        assert_eq!(bound(&of, "", Some(7)).unwrap(), [1, 2]);
        assert_eq!(bound(&of, "", Some(8)).unwrap(), [3]);
        assert_eq!(bound(&of, "", None).unwrap(), [0]);
        // What they ask for themselves bounds them further.
        assert_eq!(bound(&of, "cpus = [0, 2, 3]", Some(7)).unwrap(), [2]);
        assert_eq!(bound(&of, "cpus = [0, 2]", None).unwrap(), [0]);
        let none = bound(&of, "cpus = [1, 2]", None).unwrap_err();
        assert!(none.contains("allocated to others"), "{none}");
        let none = bound(&of, "cpus = [0]", Some(8)).unwrap_err();
        assert!(none.contains("allocation 8 has no CPU"), "{none}");
        let none = bound(&of, "", Some(9)).unwrap_err();
        assert!(none.contains("allocation 9 has ended"), "{none}");
    }

    /// A CPU that an allocation keeps is not touched by its change.
    #[test]
    fn allocations_differ_in_what_was_allocated_or_released() {
        let before = allocations(&[(7, &[0, 1], None), (8, &[2], None), (9, &[4], None)]);
        let after = allocations(&[(7, &[1, 3], None), (8, &[2], None), (9, &[4], Some(S))]);
        let touched = Touched { numbers: [7, 9].into(), cpus: [0, 3].into() };
        assert_eq!(before.difference(&after), touched);
        assert_eq!(after.difference(&before), touched);
        assert_eq!(before.difference(&before), Touched::default());
        let none = Touched { numbers: [7, 8, 9].into(), cpus: [0, 1, 2, 4].into() };
        assert_eq!(before.difference(&Allocations::default()), none);
    }

    #[test]
    fn without_allocations_no_job_is_confined() {
        let of = allocations(&[]);
        assert!(bound(&of, "", None).unwrap().is_empty());
        // Nor by one of CPUs that are not planned.
        let of = allocations(&[(7, &[9], None)]);
        assert!(bound(&of, "", None).unwrap().is_empty());
        assert!(bound(&of, "", Some(7)).is_err());
    }

    #[test]
    fn a_deadline_is_not_later_than_the_end_of_the_allocation() {
        let deadline_ns = |until_unix_ns| {
            let of = allocations(&[(7, &[1], Some(until_unix_ns))]);
            let mut job = job("");
            of.bound(&mut job, Some(7), &machine(), 2 * S).unwrap();
            job.deadline_ns
        };
        // One in the past leaves nothing.
        assert_eq!(deadline_ns(S), 2 * S);
        assert_eq!(deadline_ns(u64::MAX), 9 * S);
        let soon_ns = deadline_ns(unix_ns() + 5 * S);
        assert!((2 * S..=7 * S).contains(&soon_ns), "{soon_ns}");
    }
}
