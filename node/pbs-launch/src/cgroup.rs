// SPDX-License-Identifier: GPL-2.0
//! The control group of a job (cgroup v2): all that its programs start is in it, and
//! ends with it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Mount point of the control groups.
const ROOT: &str = "/sys/fs/cgroup";

/// The control group of a job.
#[derive(Debug)]
pub struct Cgroup {
    directory: PathBuf,
}

impl Cgroup {
    /// Makes one below another, or takes one that is there; with a limit of its memory if
    /// that is counted there.
    pub fn create(parent: &Path, name: &str, memory_bytes: Option<u64>) -> io::Result<Self> {
        let directory = parent.join(name);
        match fs::create_dir(&directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        if let Some(memory_bytes) = memory_bytes {
            limit(&directory, memory_bytes)?;
        }
        Ok(Self { directory })
    }

    /// A group that another service has made; `None`: it is gone. Its limit is gone
    /// ([`make_way`]) and has to be set again ([`Cgroup::limit`]).
    pub fn open(parent: &Path, name: &str) -> Option<Self> {
        let directory = parent.join(name);
        directory.is_dir().then_some(Self { directory })
    }

    /// Limits the memory of the group.
    pub fn limit(&self, memory_bytes: u64) -> io::Result<()> {
        limit(&self.directory, memory_bytes)
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

    /// Takes it away, which works once it is empty.
    pub fn remove(&self) -> io::Result<()> {
        match fs::remove_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }
}

/// Limits what is in a group, if memory is counted there.
fn limit(directory: &Path, memory_bytes: u64) -> io::Result<()> {
    let limit = directory.join("memory.max");
    if limit.exists() {
        fs::write(limit, memory_bytes.to_string())
    } else {
        Ok(())
    }
}

/// Moves this process into a group of its own below its present group. The groups of jobs are
/// created beside it, because a group with processes can't contain groups that count.
///
/// `counts_memory`: whether memory is counted and can be limited there. From then on no process can
/// be put into the group above: see [`make_way`].
///
/// # Errors
///
/// Fails if there is no cgroup v2, or if this process may not change it.
pub fn prepare(counts_memory: bool) -> io::Result<PathBuf> {
    let own = own()?;
    let own = own.strip_suffix("/service").unwrap_or(&own);
    let parent = directory(own);
    enter_leaf(&parent, counts_memory)?;
    Ok(parent)
}

/// Stops counting and limiting memory in the group above this process's group, until the next
/// service takes over the jobs. The memory that they have by then is not counted again. systemd
/// runs this in a group of its own, after the service was in the group above. Otherwise systemd
/// could not start a service: no process can be put into a group whose child groups count memory.
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
    if counted.split_whitespace().any(|it| it == "memory") {
        fs::write(control, "-memory")
    } else {
        Ok(())
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

fn enter_leaf(parent: &Path, counts_memory: bool) -> io::Result<()> {
    let leaf = parent.join("service");
    if !leaf.is_dir() {
        fs::create_dir(&leaf)?;
    }
    fs::write(leaf.join("cgroup.procs"), "0")?;
    if counts_memory {
        // Without it the memory of jobs is counted by the class alone.
        let _ = fs::write(parent.join("cgroup.subtree_control"), "+memory");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory that plays cgroupfs.
    #[test]
    fn a_group_is_made_limited_killed_and_taken_away() {
        let parent = std::env::temp_dir().join(format!("pbs-cgroup-{}", std::process::id()));
        let _ = fs::remove_dir_all(&parent);
        fs::create_dir_all(parent.join("job-7")).unwrap();
        assert!(Cgroup::open(&parent, "job-8").is_none());
        let inner = parent.join("job-7");
        for file in ["memory.max", "cgroup.kill"] {
            fs::write(inner.join(file), "").unwrap();
        }
        fs::write(inner.join("cgroup.events"), "populated 1\nfrozen 0\n").unwrap();
        let group = Cgroup::create(&parent, "job-7", Some(4096)).unwrap();
        assert_eq!(fs::read_to_string(inner.join("memory.max")).unwrap(), "4096");
        assert!(group.descriptor().is_ok() && !group.is_empty());
        Cgroup::open(&parent, "job-7").unwrap().limit(8192).unwrap();
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

    /// Tests memory counting in a directory that stands in for the file system of control groups.
    #[test]
    fn memory_is_counted_only_where_it_is_limited() {
        let parent = std::env::temp_dir().join(format!("pbs-service-{}", std::process::id()));
        let _ = fs::remove_dir_all(&parent);
        fs::create_dir_all(&parent).unwrap();
        let control = parent.join("cgroup.subtree_control");
        enter_leaf(&parent, false).unwrap();
        let leaf = parent.join("service/cgroup.procs");
        assert_eq!(fs::read_to_string(leaf).unwrap(), "0");
        assert!(!control.exists());
        enter_leaf(&parent, true).unwrap();
        assert_eq!(fs::read_to_string(&control).unwrap(), "+memory");
        for (counted, written) in [("pids\n", "pids\n"), ("memory pids\n", "-memory")] {
            fs::write(&control, counted).unwrap();
            count_nothing(&parent).unwrap();
            assert_eq!(fs::read_to_string(&control).unwrap(), written);
        }
        fs::remove_dir_all(&parent).unwrap();
    }
}
