// SPDX-License-Identifier: GPL-2.0
//! CPUs of each core that Slurm names by its number.
//!
//! Slurm counts the cores of a node, not its CPUs: those of its first socket, then those of the
//! next, each once however many threads it has. The kernel numbers CPUs another way, as the
//! firmware likes: therefore the two differ if there are several threads or sockets.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use pbs_job::cpus_of_list;

/// Directory in which the kernel describes CPUs.
const CPUS: &str = "/sys/devices/system/cpu";

/// The CPUs of each core, in Slurm's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    cores: Vec<BTreeSet<u32>>,
}

impl Topology {
    /// The topology of this machine; empty if the kernel does not report it.
    pub fn of_this_machine() -> Self {
        Self::read(Path::new(CPUS))
    }

    /// One of those cores, each with its CPUs.
    pub fn of_cores(cores: Vec<BTreeSet<u32>>) -> Self {
        Self { cores }
    }

    fn read(directory: &Path) -> Self {
        let number = |name: &str| name.strip_prefix("cpu")?.parse::<u32>().ok();
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let cpus = entries.filter_map(|entry| number(entry.file_name().to_str()?));
        // By the first CPU of the socket and that of the core: numbers of either are the
        // firmware's, and have gaps.
        let mut sockets: BTreeMap<String, Vec<BTreeSet<u32>>> = BTreeMap::new();
        for cpu in cpus.collect::<BTreeSet<_>>() {
            let topology = directory.join(format!("cpu{cpu}/topology"));
            // A CPU without these files is offline.
            let text = |file: &str| fs::read_to_string(topology.join(file)).ok();
            // One that is off has no topology, and no core of Slurm's either.
            let (Some(socket), Some(threads)) =
                (text("physical_package_id"), text("thread_siblings_list"))
            else {
                continue;
            };
            // A list that cannot be read describes no core.
            let threads = cpus_of_list(threads.trim()).unwrap_or_default();
            let core: BTreeSet<u32> = threads.into_iter().collect();
            let cores = sockets.entry(socket).or_default();
            if !core.is_empty() && !cores.contains(&core) {
                cores.push(core);
            }
        }
        let mut sockets: Vec<_> = sockets.into_values().filter(|it| !it.is_empty()).collect();
        sockets.sort_by_key(|cores| cores[0].first().copied());
        Self { cores: sockets.into_iter().flatten().collect() }
    }

    /// The CPUs of those cores.
    ///
    /// # Errors
    ///
    /// The first that there is not.
    pub fn cpus_of(&self, cores: &[u32]) -> Result<BTreeSet<u32>, u32> {
        let mut cpus = BTreeSet::new();
        for &core in cores {
            let of_core = usize::try_from(core).ok().and_then(|at| self.cores.get(at));
            cpus.extend(of_core.ok_or(core)?);
        }
        Ok(cpus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine of so many CPUs, each with its socket and the threads of its core.
    fn machine(name: &str, cpus: &[(&str, &str)]) -> Topology {
        let directory = std::env::temp_dir();
        let directory = directory.join(format!("pbsd-{name}-{}", std::process::id()));
        for (cpu, (socket, threads)) in cpus.iter().enumerate() {
            let topology = directory.join(format!("cpu{cpu}/topology"));
            fs::create_dir_all(&topology).unwrap();
            fs::write(topology.join("physical_package_id"), socket).unwrap();
            fs::write(topology.join("thread_siblings_list"), threads).unwrap();
        }
        fs::create_dir_all(directory.join("cpufreq")).unwrap();
        let read = Topology::read(&directory);
        fs::remove_dir_all(&directory).unwrap();
        read
    }

    #[test]
    fn with_a_thread_a_core_threads_and_cores_are_the_same() {
        let two = machine("one-thread", &[("0\n", "0\n"), ("0\n", "1\n")]);
        assert_eq!(two.cpus_of(&[1, 0]), Ok([0, 1].into()));
        assert_eq!(two.cpus_of(&[1, 2]), Err(2));
        assert_eq!(Topology::default().cpus_of(&[0]), Err(0));
    }

    #[test]
    fn cores_are_counted_by_sockets_and_have_all_their_threads() {
        // Sockets take turns, and the second thread of a core is four CPUs further.
        let cpus = [
            ("7\n", "0,4\n"),
            ("2\n", "1,5\n"),
            ("7\n", "2,6\n"),
            ("2\n", "3,7\n"),
            ("7\n", "0,4\n"),
            ("2\n", "1,5\n"),
            ("7\n", "2,6\n"),
            ("2\n", "3,7\n"),
        ];
        let machine = machine("threads", &cpus);
        assert_eq!(machine.cpus_of(&[0]), Ok([0, 4].into()));
        assert_eq!(machine.cpus_of(&[1]), Ok([2, 6].into()));
        assert_eq!(machine.cpus_of(&[2, 3]), Ok([1, 3, 5, 7].into()));
        assert_eq!(machine.cpus_of(&[4]), Err(4));
    }
}
