// SPDX-License-Identifier: GPL-2.0
//! Resources that the CPUs of this machine share, as the kernel reports them.

use std::fs;
use std::path::Path;

use pbs_interference::{Level, Sharing};
use pbs_job::cpus_of_list;

/// Directory in which the kernel reports them.
pub const SYSFS: &str = "/sys/devices/system/cpu";

/// Returns the resources that these CPUs share; a CPU without a report only shares the node.
pub fn sharing(sysfs: &Path, cpus: &[u32]) -> Sharing {
    let mut groups = Vec::new();
    for &cpu in cpus {
        let at = sysfs.join(format!("cpu{cpu}"));
        groups.extend(group(&at.join("topology/thread_siblings_list"), Level::Smt));
        let caches = caches(&at);
        let last = caches.iter().map(|cache| cache.level).max();
        for cache in &caches {
            let level = match cache.level {
                2 => Level::L2,
                level if Some(level) == last && level > 2 => Level::Llc,
                _ => continue,
            };
            groups.push((level, cache.cpus.clone()));
        }
    }
    groups.sort_unstable();
    groups.dedup();
    groups.retain(|(_, cpus)| cpus.len() > 1);
    Sharing::new(groups)
}

/// The size of the last cache of a CPU; `None`: it is not told.
pub fn last_cache_bytes(sysfs: &Path, cpu: u32) -> Option<usize> {
    let caches = caches(&sysfs.join(format!("cpu{cpu}")));
    let last = caches.into_iter().max_by_key(|cache| cache.level)?;
    last.bytes
}

struct Cache {
    level: u32,
    bytes: Option<usize>,
    cpus: Vec<u32>,
}

/// Returns the caches that hold data.
fn caches(cpu: &Path) -> Vec<Cache> {
    let Ok(entries) = fs::read_dir(cpu.join("cache")) else {
        return Vec::new();
    };
    let caches = entries.flatten().filter_map(|entry| {
        let at = entry.path();
        // A cache without these files is not described, and left out.
        let text = |name: &str| fs::read_to_string(at.join(name)).ok();
        if text("type")?.trim() == "Instruction" {
            return None;
        }
        Some(Cache {
            level: text("level")?.trim().parse().ok()?,
            bytes: text("size").and_then(|size| bytes(size.trim())),
            cpus: cpus_of_list(text("shared_cpu_list")?.trim())?,
        })
    });
    caches.collect()
}

fn group(list: &Path, level: Level) -> Option<(Level, Vec<u32>)> {
    // A group without a list is not described, and left out.
    let text = fs::read_to_string(list).ok()?;
    Some((level, cpus_of_list(text.trim())?))
}

/// `32768K` as bytes.
fn bytes(text: &str) -> Option<usize> {
    let units = [("K", 10), ("M", 20), ("G", 30), ("", 0)];
    units.into_iter().find_map(|(unit, shift)| {
        let number: usize = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(1 << shift)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!(bytes("32768K"), Some(32 << 20));
        assert_eq!(bytes("12"), Some(12));
        assert_eq!(bytes("x"), None);
    }

    #[test]
    fn the_closest_that_two_share_counts() {
        let root = std::env::temp_dir().join(format!("pbs-hogs-{}", std::process::id()));
        for cpu in 0..4 {
            let write = |name: &str, text: &str| {
                let file = root.join(format!("cpu{cpu}/{name}"));
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, text).unwrap();
            };
            let (pair, third) = if cpu < 2 { ("0-1", "0-2") } else { ("2-3", "0-2") };
            let third = if cpu == 3 { "3" } else { third };
            let own = cpu.to_string();
            let siblings = if cpu < 2 { pair } else { &own };
            write("topology/thread_siblings_list", siblings);
            for (index, level, kind, list) in [
                (0, "1", "Data", own.as_str()),
                (1, "1", "Instruction", "0-3"),
                (2, "2", "Unified", pair),
                (3, "3", "Unified", third),
            ] {
                write(&format!("cache/index{index}/level"), level);
                write(&format!("cache/index{index}/type"), kind);
                write(&format!("cache/index{index}/size"), "64K\n");
                write(&format!("cache/index{index}/shared_cpu_list"), list);
            }
        }
        let sharing = sharing(&root, &[0, 1, 2, 3]);
        assert_eq!(sharing.level(0, 1), Level::Smt);
        assert_eq!(sharing.level(2, 3), Level::L2);
        assert_eq!(sharing.level(0, 2), Level::Llc);
        assert_eq!(sharing.level(0, 3), Level::Node);
        assert_eq!(last_cache_bytes(&root, 0), Some(64 << 10));
        assert_eq!(last_cache_bytes(&root, 9), None);
        fs::remove_dir_all(root).unwrap();
    }
}
