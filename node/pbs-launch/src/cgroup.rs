// SPDX-License-Identifier: GPL-2.0
//! The control group of a job (cgroup v2): all that its programs start is in it, and
//! ends with it.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::process::{pidfd_open, pidfd_send_signal, Pid, PidfdFlags, Signal};

use crate::notice::NoticeSignal;

/// Mount point of the control groups.
const ROOT: &str = "/sys/fs/cgroup";

/// Processes of a group that get a signal: each takes a descriptor meanwhile.
const SIGNALLED_PROCESSES: usize = 256;

/// Processes of a group that are asked whether they handle a signal: each has a file that is read.
const LOOKED_AT_PROCESSES: usize = 1024;

/// Limits of what is in a control group, where that is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupLimits {
    /// Memory of all its processes together.
    pub memory_bytes: Option<u64>,
    /// Number of its processes and threads.
    pub pids: Option<u64>,
}

/// Controllers of the limits, as the kernel calls them.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];

/// The longest file of a control group that is read for its figures.
const MOST_FIGURE_BYTES: u64 = 8192;

/// Resources that all processes of a control group have used since it was made, also those that
/// have ended. `None`: the kernel does not count it, or its file cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupUsage {
    /// CPU time, which every group of cgroup v2 has.
    pub cpu_ns: Option<u64>,
    /// Greatest memory, with file cache, where the memory controller counts it.
    pub peak_memory_bytes: Option<u64>,
}

/// The control group of a job.
#[derive(Debug, PartialEq, Eq)]
pub struct Cgroup {
    directory: PathBuf,
}

impl Cgroup {
    /// Makes one below another, with limits of what is counted there. `is_own`: a group of that name
    /// that is there is its own, of an earlier attempt, and is taken as it is.
    ///
    /// # Errors
    ///
    /// Fails with [`io::ErrorKind::AlreadyExists`] if a group of that name is there that is not its
    /// own and cannot be removed: processes of others are in it.
    pub fn create(
        parent: &Path,
        name: &str,
        limits: GroupLimits,
        is_own: bool,
    ) -> io::Result<Self> {
        let group = Self { directory: parent.join(name) };
        match fs::create_dir(&group.directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Err(error) if !is_own => {
                // What it has counted is that of others, too.
                let is_removed = group.is_empty() && group.remove().is_ok();
                if !is_removed {
                    return Err(error);
                }
                fs::create_dir(&group.directory)?;
            }
            _ => {}
        }
        group.limit(limits)?;
        Ok(group)
    }

    /// A group that another service has made; `None`: it is gone. Its limits are gone
    /// ([`make_way`]) and have to be set again ([`Cgroup::limit`]).
    pub fn open(parent: &Path, name: &str) -> Option<Self> {
        let directory = parent.join(name);
        directory.is_dir().then_some(Self { directory })
    }

    /// Returns the groups below another whose names begin with a word, by name.
    pub fn below(parent: &Path, prefix: &str) -> io::Result<Vec<(String, Self)>> {
        let mut groups = Vec::new();
        for entry in fs::read_dir(parent)? {
            let entry = entry?;
            let name = entry.file_name().into_string();
            if let Some(name) = name.ok().filter(|name| name.starts_with(prefix)) {
                groups.extend(Self::open(parent, &name).map(|group| (name, group)));
            }
        }
        groups.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(groups)
    }

    /// Limits what is in the group. Limited memory is not swapped: a group at its limit would fill
    /// the swap space, and slow the disk down for all others.
    pub fn limit(&self, limits: GroupLimits) -> io::Result<()> {
        let swap_bytes = limits.memory_bytes.map(|_| 0);
        let files = [
            ("memory.swap.max", swap_bytes),
            ("memory.max", limits.memory_bytes),
            ("pids.max", limits.pids),
        ];
        for (file, limit) in files {
            let file = self.directory.join(file);
            if let Some(limit) = limit.filter(|_| file.exists()) {
                fs::write(file, limit.to_string())?;
            }
        }
        Ok(())
    }

    /// Asks all that is in it to end (SIGTERM), up to 256 processes.
    pub fn terminate(&self) -> io::Result<()> {
        self.signal(Signal::TERM, |_| true).map(drop)
    }

    /// Sends a notice to the processes in it that handle the signal, up to 256. Returns their
    /// number. Only the first 1024 processes, by their ids, are looked at.
    pub fn notify(&self, notice: NoticeSignal) -> io::Result<usize> {
        self.signal(notice.signal(), |pid| notice.is_handled_by(pid))
    }

    /// Sends a signal to the wanted ones of the first processes in it, up to 256. Returns their
    /// number.
    fn signal(&self, signal: Signal, is_wanted: impl Fn(i32) -> bool) -> io::Result<usize> {
        // One that has ended has no descriptor.
        let open = |pid| Some((pid, pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?));
        let looked_at = self.processes()?.into_iter().take(LOOKED_AT_PROCESSES);
        let wanted = looked_at.filter(|&pid| is_wanted(pid));
        let wanted: Vec<_> = wanted.take(SIGNALLED_PROCESSES).filter_map(open).collect();
        // A process id may have become that of another process before its descriptor was opened.
        let still = self.processes()?;
        let sent = wanted.into_iter().filter(|(pid, process)| {
            // One that has ended meanwhile needs no signal.
            still.contains(pid) && pidfd_send_signal(process, signal).is_ok()
        });
        Ok(sent.count())
    }

    fn processes(&self) -> io::Result<BTreeSet<i32>> {
        let pids = fs::read_to_string(self.directory.join("cgroup.procs"))?;
        Ok(pids.lines().filter_map(|pid| pid.trim().parse().ok()).collect())
    }

    /// Returns a descriptor with which a child is created inside the group. To move a process there
    /// later takes as long as all CPUs need to take notice.
    pub fn descriptor(&self) -> io::Result<File> {
        File::open(&self.directory)
    }

    /// Kills all that is in it. It may take a moment until it is empty.
    pub fn kill(&self) -> io::Result<()> {
        fs::write(self.directory.join("cgroup.kill"), "1")
    }

    /// Whether nothing is in it any more.
    pub fn is_empty(&self) -> bool {
        let events = fs::read_to_string(self.directory.join("cgroup.events"));
        events.map_or(true, |events| events.lines().any(|line| line == "populated 0"))
    }

    /// Whether the kernel has killed a process in it for want of memory.
    pub fn was_over_memory(&self) -> bool {
        let events = fs::read_to_string(self.directory.join("memory.events"));
        events.is_ok_and(|events| {
            let mut counts = events.lines().filter_map(|line| line.strip_prefix("oom_kill "));
            counts.any(|count| count.trim() != "0")
        })
    }

    /// Reads the resources that all processes in it have used: two short files of the kernel.
    pub fn usage(&self) -> GroupUsage {
        GroupUsage { cpu_ns: self.cpu_ns(), peak_memory_bytes: self.peak_memory_bytes() }
    }

    /// Reads the CPU time that all processes in it have used.
    pub fn cpu_ns(&self) -> Option<u64> {
        let stat = self.figures("cpu.stat")?;
        let usec = stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
        usec.trim().parse::<u64>().ok()?.checked_mul(1000)
    }

    /// Reads the greatest memory that its processes had together, with file cache.
    pub fn peak_memory_bytes(&self) -> Option<u64> {
        self.figures("memory.peak")?.trim().parse().ok()
    }

    /// Beginning of a file in it with figures; `None`: the file cannot be read.
    fn figures(&self, name: &str) -> Option<String> {
        let file = File::open(self.directory.join(name)).ok()?;
        let mut text = String::new();
        file.take(MOST_FIGURE_BYTES).read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// Takes it away, which works once it is empty.
    pub fn remove(&self) -> io::Result<()> {
        match fs::remove_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }
}

/// Moves this process into a group of its own below its present group. The groups of jobs are
/// created beside it, because a group with processes can't contain groups that count.
///
/// `counts`: what is counted and can be limited there; a limit says that something is. From then on
/// no process can be put into the group above: see [`make_way`].
///
/// # Errors
///
/// Fails if there is no cgroup v2, or if this process may not change it.
pub fn prepare(counts: GroupLimits) -> io::Result<PathBuf> {
    let own = own()?;
    let own = own.strip_suffix("/service").unwrap_or(&own);
    let parent = directory(own);
    enter_leaf(&parent, counts)?;
    Ok(parent)
}

/// Stops counting and limiting memory and processes in the group above this process's group, until
/// the next service takes over the jobs. The memory that they have by then is not counted again.
/// systemd runs this in a group of its own, after the service was in the group above. Otherwise
/// systemd could not start a service: no process can be put into a group whose child groups are
/// counted.
///
/// # Errors
///
/// This process is not in such a group, or has no right to change it.
pub fn make_way() -> io::Result<()> {
    let own = own()?;
    let above = own.strip_suffix("/.control");
    let above = above
        .ok_or_else(|| io::Error::other("systemd runs this after a service; nobody else need"))?;
    count_nothing(&directory(above))
}

fn count_nothing(parent: &Path) -> io::Result<()> {
    let control = parent.join("cgroup.subtree_control");
    let counted = fs::read_to_string(&control)?;
    let ours = counted.split_whitespace().filter(|it| CONTROLLERS.contains(it));
    let less: Vec<_> = ours.map(|it| format!("-{it}")).collect();
    if less.is_empty() {
        Ok(())
    } else {
        fs::write(control, less.join(" "))
    }
}

/// The group that this process is in, as the kernel calls it.
fn own() -> io::Result<String> {
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let own = own.ok_or_else(|| io::Error::other("there is no cgroup v2"))?;
    Ok(own.to_string())
}

fn directory(group: &str) -> PathBuf {
    Path::new(ROOT).join(group.trim_start_matches('/'))
}

fn enter_leaf(parent: &Path, counts: GroupLimits) -> io::Result<()> {
    let leaf = parent.join("service");
    if !leaf.is_dir() {
        fs::create_dir(&leaf)?;
    }
    fs::write(leaf.join("cgroup.procs"), "0")?;
    for (controller, limit) in CONTROLLERS.iter().zip([counts.memory_bytes, counts.pids]) {
        if limit.is_some() {
            let control =
                OpenOptions::new().write(true).open(parent.join("cgroup.subtree_control"));
            // In one write: the kernel takes each for itself.
            let wanted = format!("+{controller}");
            // Without it the memory of jobs is counted by the class alone, and processes by nobody.
            let _ = control.and_then(|mut control| control.write_all(wanted.as_bytes()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn limits(memory_bytes: u64) -> GroupLimits {
        GroupLimits { memory_bytes: Some(memory_bytes), pids: Some(7) }
    }

    /// Processes in the group are signalled. One that is listed and has ended does no harm.
    #[test]
    fn what_is_in_a_group_is_asked_to_end() {
        let directory = std::env::temp_dir().join(format!("pbs-asked-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let sleep = || std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let (mut inside, mut ended) = (sleep(), sleep());
        ended.kill().unwrap();
        ended.wait().unwrap();
        let listed = format!("{}\n{}\n", ended.id(), inside.id());
        fs::write(directory.join("cgroup.procs"), listed).unwrap();
        let group = Cgroup { directory: directory.clone() };
        group.terminate().unwrap();
        assert_eq!(inside.wait().unwrap().signal(), Some(libc::SIGTERM));
        fs::remove_dir_all(&directory).unwrap();
        assert!(group.terminate().is_err());
    }

    /// A group with many processes that do not handle a signal makes no call long.
    #[test]
    fn only_some_processes_of_a_group_are_looked_at() {
        let directory = std::env::temp_dir().join(format!("pbs-looked-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let pids = (1..=2 * LOOKED_AT_PROCESSES).map(|pid| format!("{pid}\n"));
        fs::write(directory.join("cgroup.procs"), pids.collect::<String>()).unwrap();
        let group = Cgroup { directory: directory.clone() };
        let looked_at = std::cell::Cell::new(0);
        let sent = group.signal(Signal::USR1, |_| {
            looked_at.set(looked_at.get() + 1);
            false
        });
        fs::remove_dir_all(&directory).unwrap();
        assert_eq!((sent.unwrap(), looked_at.get()), (0, LOOKED_AT_PROCESSES));
    }

    /// A notice arrives at programs that handle it. Others, which it would end, go on.
    #[test]
    fn only_programs_that_handle_a_notice_get_it() {
        let directory = std::env::temp_dir().join(format!("pbs-notice-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let run = |shell: &str| {
            let mut command = std::process::Command::new("sh");
            command.args(["-c", shell]).stdout(std::process::Stdio::piped()).spawn().unwrap()
        };
        let mut handles = run("trap 'exit 7' USR1; echo; while :; do sleep 0.01; done");
        let mut other = run("echo; exec sleep 60");
        for child in [&mut handles, &mut other] {
            let mut byte = [0];
            io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut byte).unwrap();
        }
        let listed = format!("{}\n{}\n", handles.id(), other.id());
        fs::write(directory.join("cgroup.procs"), listed).unwrap();
        let group = Cgroup { directory: directory.clone() };
        assert_eq!(group.notify("USR1".parse().unwrap()).unwrap(), 1);
        assert_eq!(handles.wait().unwrap().code(), Some(7));
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
        fs::remove_dir_all(&directory).unwrap();
    }

    /// A directory that plays cgroupfs.
    #[test]
    fn a_group_is_made_limited_killed_and_taken_away() {
        let parent = std::env::temp_dir().join(format!("pbs-cgroup-{}", std::process::id()));
        let _ = fs::remove_dir_all(&parent);
        fs::create_dir_all(parent.join("job-7")).unwrap();
        assert!(Cgroup::open(&parent, "job-8").is_none());
        let inner = parent.join("job-7");
        for file in ["memory.max", "memory.swap.max", "pids.max", "cgroup.kill"] {
            fs::write(inner.join(file), "").unwrap();
        }
        fs::write(inner.join("cgroup.events"), "populated 1\nfrozen 0\n").unwrap();
        let refused = Cgroup::create(&parent, "job-7", limits(4096), false).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        let group = Cgroup::create(&parent, "job-7", limits(4096), true).unwrap();
        assert_eq!(fs::read_to_string(inner.join("memory.swap.max")).unwrap(), "0");
        assert_eq!(fs::read_to_string(inner.join("memory.max")).unwrap(), "4096");
        assert_eq!(fs::read_to_string(inner.join("pids.max")).unwrap(), "7");
        assert!(group.descriptor().is_ok() && !group.is_empty());
        Cgroup::open(&parent, "job-7").unwrap().limit(limits(8192)).unwrap();
        assert_eq!(fs::read_to_string(inner.join("memory.max")).unwrap(), "8192");
        group.kill().unwrap();
        assert_eq!(fs::read_to_string(inner.join("cgroup.kill")).unwrap(), "1");
        fs::write(inner.join("cgroup.events"), "populated 0\nfrozen 0\n").unwrap();
        assert!(group.is_empty());
        assert!(group.remove().is_err());
        fs::remove_dir_all(&inner).unwrap();
        assert!(group.is_empty() && group.remove().is_ok());
        fs::remove_dir_all(&parent).unwrap();
    }

    /// The kernel's figures of a group are read as they are. A figure that is missing or that is no
    /// number is unknown, and not 0.
    #[test]
    fn resources_of_a_group_are_read_or_unknown() {
        let directory = std::env::temp_dir().join(format!("pbs-usage-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        let group = Cgroup { directory: directory.clone() };
        assert_eq!(group.usage(), GroupUsage::default());
        let usage = |stat: &str, peak: &str| {
            fs::write(directory.join("cpu.stat"), stat).unwrap();
            fs::write(directory.join("memory.peak"), peak).unwrap();
            let GroupUsage { cpu_ns, peak_memory_bytes } = group.usage();
            (cpu_ns, peak_memory_bytes)
        };
        let stat = "usage_usec 3200017\nuser_usec 3000000\nsystem_usec 200017\n";
        assert_eq!(usage(stat, "88080384\n"), (Some(3_200_017_000), Some(88_080_384)));
        assert_eq!(usage("user_usec 5\nusage_usec 0\n", "0\n"), (Some(0), Some(0)));
        assert_eq!(usage("user_usec 5\n", "max\n"), (None, None));
        assert_eq!(usage("usage_usec -5\n", ""), (None, None));
        assert_eq!(usage(&format!("usage_usec {}\n", u64::MAX), "5 6\n"), (None, None));
        // No more than the beginning of a file is read.
        let long = "x\n".repeat(1 << 20);
        assert_eq!(usage(&format!("{long}{stat}"), &long), (None, None));
        fs::remove_file(directory.join("memory.peak")).unwrap();
        fs::write(directory.join("cpu.stat"), stat).unwrap();
        let without_memory = GroupUsage { cpu_ns: Some(3_200_017_000), peak_memory_bytes: None };
        assert_eq!(group.usage(), without_memory);
        fs::remove_dir_all(&directory).unwrap();
    }

    /// Tests memory counting in a directory that stands in for the file system of control groups.
    #[test]
    fn memory_is_counted_only_where_it_is_limited() {
        let parent = std::env::temp_dir().join(format!("pbs-service-{}", std::process::id()));
        let _ = fs::remove_dir_all(&parent);
        fs::create_dir_all(&parent).unwrap();
        let control = parent.join("cgroup.subtree_control");
        enter_leaf(&parent, GroupLimits::default()).unwrap();
        let leaf = parent.join("service/cgroup.procs");
        assert_eq!(fs::read_to_string(leaf).unwrap(), "0");
        assert!(!control.exists());
        // The kernel takes each write for itself; a file keeps the longest.
        for (counts, written) in [
            (GroupLimits { memory_bytes: Some(0), pids: None }, "+memory"),
            (GroupLimits { memory_bytes: None, pids: Some(0) }, "+pids"),
        ] {
            fs::write(&control, "").unwrap();
            enter_leaf(&parent, counts).unwrap();
            assert_eq!(fs::read_to_string(&control).unwrap(), written);
        }
        for (counted, written) in
            [("cpu io\n", "cpu io\n"), ("cpu pids\n", "-pids"), ("memory pids\n", "-memory -pids")]
        {
            fs::write(&control, counted).unwrap();
            count_nothing(&parent).unwrap();
            assert_eq!(fs::read_to_string(&control).unwrap(), written);
        }
        fs::remove_dir_all(&parent).unwrap();
    }
}
