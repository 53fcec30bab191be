// SPDX-License-Identifier: GPL-2.0
//! "shm layout 1": what stands where in the files (§5.3.1, 5.3.2, 6.6).
//!
//! Numbers are in the order of the machine's bytes: the files never leave it. The same is
//! in `include/pbs_csi.h` for programs in C; a test compares both.
//!
//! | | seed (§6.6) | here |
//! |---|---|---|
//! | CSIMF | 256 KiB | 256 KiB |
//! | header | 64 | 128 |
//! | entry | 151, padded 160 | 128, no file descriptor, no mutex |
//! | tasks | 1,638 | 2,031 |
//! | CSI | 2 KiB | 2 KiB |

/// The layout that this crate reads and writes.
pub const LAYOUT: u32 = 1;
/// The first bytes of the CSIMF.
pub const CSIMF_MAGIC: [u8; 8] = *b"PBSCSIMF";
/// The first bytes of a CSI.
pub const CSI_MAGIC: [u8; 8] = *b"PBS--CSI";
/// The name of the CSIMF in its directory: static, so that all find it (§4.2.2).
pub const CSIMF_NAME: &str = "pbs-csimf";
/// Prefix of the name of a CSI's file; `PID-START-TASK` follows, where START is the start time of
/// the process in ticks since boot.
pub const CSI_PREFIX: &str = "pbs-csi-";

/// Length of the CSIMF in bytes.
pub const CSIMF_BYTES: usize = 256 * 1024;
/// Maximum number of device types.
pub const DEVICE_CAPACITY: usize = 32;
/// Offset of the table of devices.
pub const DEVICES_AT: usize = CsimfHeader::BYTES;
/// Offset of the entries.
pub const ENTRIES_AT: usize = DEVICES_AT + DEVICE_CAPACITY * DeviceRecord::BYTES;
/// Maximum number of tasks, waiting and running.
pub const ENTRY_CAPACITY: usize = (CSIMF_BYTES - ENTRIES_AT) / EntryRecord::BYTES;
/// Maximum number of dependencies in a CSI, and of reverse dependencies; a task may have more.
pub const DEPENDENCY_CAPACITY: usize = 48;
/// Maximum number of variants of a task. §6.6.2 has never seen more than 50.
pub const VARIANT_CAPACITY: usize = 50;

// An entry never lies in two pages: a killed process has written all of one or nothing.
const _: () =
    assert!(ENTRIES_AT.is_multiple_of(EntryRecord::BYTES) && 4096 % EntryRecord::BYTES == 0);
const _: () = assert!(ENTRY_CAPACITY == 2031);

/// Status of the co-scheduling: none is calculated, and all have fetched the last (§5.3.1).
pub const NOT_STARTED: u32 = 0;
/// The master calculates.
pub const RUNNING: u32 = 1;
/// A result is there, and not all have fetched it.
pub const DONE: u32 = 2;

/// State of an entry: nobody's.
pub const FREE: u8 = 0;
/// The task waits: its CSI is there.
pub const WAITING: u8 = 1;
/// The task is in execution; its CSI is gone (§4.2.3).
pub const IN_EXECUTION: u8 = 2;

/// No device, and no best index.
pub const NONE: u32 = u32::MAX;

record! {
    /// The beginning of the CSIMF (T5.1). The master's descriptor and the mutex of the
    /// seed are not here; see the crate for why.
    pub struct CsimfHeader: 128 {
        /// [`CSIMF_MAGIC`].
        pub magic: [u8; 8],
        /// [`LAYOUT`].
        pub layout: u32,
        /// Length of this header in bytes.
        pub header_bytes: u32,
        /// Length of a device in bytes.
        pub device_bytes: u32,
        /// Devices that have room.
        pub device_capacity: u32,
        /// Length of an entry in bytes.
        pub entry_bytes: u32,
        /// Entries that have room.
        pub entry_capacity: u32,
        /// Length of a CSI in bytes.
        pub csi_bytes: u32,
        /// 0.
        pub reserved: u32,
        /// `/proc/sys/kernel/random/boot_id`, without dashes: owners are of this boot.
        pub boot_id: [u8; 16],
        /// Inode of the namespace of pids, and in the upper half that of clocks, if it is not the
        /// first one.
        pub pid_namespace: u64,
        /// Number that changes with each event that processes must check: the status became RUNNING
        /// or DONE, or a result was taken back. Loaded before every task (§5.6.2).
        pub generation: u64,
        /// [`NOT_STARTED`], [`RUNNING`] or [`DONE`].
        pub status: u32,
        /// Holder of the lock, to detect afterwards that it died with the lock; otherwise 0.
        pub holder_pid: u32,
        /// Start time of the holder.
        pub holder_start_ticks: u64,
        /// Start time of the master.
        pub master_start_ticks: u64,
        /// Process that calculates, or has calculated; 0: none.
        pub master_pid: u32,
        /// Devices in use, from the first on.
        pub device_count: u32,
        /// Tasks that were registered so far: the order of submission.
        pub submissions: u64,
        /// `CLOCK_MONOTONIC` when the status became RUNNING, in ns.
        pub started_ns: u64,
        /// Entries from this one on were never used.
        pub entry_limit: u32,
        /// 0.
        pub reserved_end: u32,
    }
}

record! {
    /// A type of device, of all processes of the node.
    pub struct DeviceRecord: 64 {
        /// Name of the type, filled with zeros.
        pub name: [u8; 32],
        /// Bit set of programming models that run on it: 1 << model.
        pub models: u32,
        /// Devices of this type that can be used at a time; of the CPU its threads.
        pub count: u32,
        /// 0.
        pub reserved: [u64; 3],
    }
}

record! {
    /// A task (T5.2), and its place in the waiting queue of its device (§2.6.2): entries
    /// with the same device are its queue, in the order of round and submission.
    pub struct EntryRecord: 128 {
        /// `PID-TASK`, filled with zeros.
        pub name: [u8; 32],
        /// Start time of the process whose task it is, in ticks since boot.
        pub owner_start_ticks: u64,
        /// The process whose task it is.
        pub owner_pid: u32,
        /// [`FREE`], [`WAITING`] or [`IN_EXECUTION`].
        pub state: u8,
        /// 1: a co-scheduling gave it a variant.
        pub scheduled: u8,
        /// 1: all tasks that it depends on have ended.
        pub ready: u8,
        /// 0.
        pub reserved_flags: u8,
        /// Number of the task in its process.
        pub task: u64,
        /// Position in the order of submission, over all processes.
        pub submission: u64,
        /// `CLOCK_MONOTONIC` at registration in ns: its age (§5.4.2).
        pub registered_ns: u64,
        /// Priority that the co-scheduler gave it; greater goes first.
        pub priority: u64,
        /// Round in which it was scheduled, from 1; 0: not scheduled.
        pub round: u32,
        /// Bit set of programming models that it has variants of: 1 << model.
        pub capabilities: u32,
        /// Index of the device in whose queue it is; [`NONE`]: in no queue.
        pub device: u32,
        /// Devices, or threads of the CPU, that it takes there.
        pub units: u32,
        /// In execution: `CLOCK_MONOTONIC` when it should end, in ns. Else 0.
        pub expected_end_ns: u64,
        /// Expected runtime of the variant that it waits with, in ns.
        pub runtime_ns: u64,
        /// Generation that its owner has fetched.
        pub acknowledged: u64,
        /// In execution: the first of the devices, or threads, that it has; they follow each
        /// other. [`NONE`]: it has so many threads, but no certain ones.
        pub instance: u32,
        /// 0.
        pub reserved: u32,
    }
}

record! {
    /// A way to execute a task (T5.4).
    pub struct VariantRecord: 24 {
        /// Number of the programming model.
        pub model: u32,
        /// Threads that it uses.
        pub threads: u32,
        /// Profiled runtime in ns.
        pub runtime_ns: u64,
        /// Index of the device that it runs on.
        pub device: u32,
        /// 0.
        pub reserved: u32,
    }
}

record! {
    /// All of a CSI (T5.3), header and payload, in its fixed 2 KiB.
    pub struct CsiRecord: 2048 {
        /// [`CSI_MAGIC`].
        pub magic: [u8; 8],
        /// [`LAYOUT`].
        pub layout: u32,
        /// The process whose task it is.
        pub owner_pid: u32,
        /// Start time of that process, in ticks since boot.
        pub owner_start_ticks: u64,
        /// Number of the task in its process.
        pub task: u64,
        /// Index of the variant that was chosen; [`NONE`]: none yet.
        pub best_index: u32,
        /// Dependencies in use.
        pub dependency_count: u32,
        /// Reverse dependencies in use.
        pub reverse_count: u32,
        /// Variants in use.
        pub variant_count: u32,
        /// Tasks of the same process that it depends on.
        pub dependencies: [u64; 48],
        /// Tasks of the same process that depend on it.
        pub reverse_dependencies: [u64; 48],
        /// 50 variants.
        pub variants: [u8; 1200],
        /// Time that its data need to come to another memory, in ns.
        pub transfer_ns: u64,
        /// 1: the task is a transfer, which stands for an indirect dependency (§5.3.2).
        pub is_transfer: u32,
        /// 0.
        pub reserved: u32,
        /// 0.
        pub reserved_end: [u64; 2],
    }
}
const _: () = assert!(VARIANT_CAPACITY * VariantRecord::BYTES == 1200 && DEPENDENCY_CAPACITY == 48);

/// Offset of the best index in a CSI: what the master writes.
pub(crate) const BEST_INDEX_AT: u64 = std::mem::offset_of!(CsiRecord, best_index) as u64;
/// Offset of the generation in the CSIMF.
pub(crate) const GENERATION_AT: usize = std::mem::offset_of!(CsimfHeader, generation);
/// Offset of the part of the header that changes, after the generation.
pub(crate) const STATE_AT: usize = std::mem::offset_of!(CsimfHeader, status);

/// Puts a name into a field, cut where it does not fit.
pub(crate) fn name_field(name: &str) -> [u8; 32] {
    let mut field = [0; 32];
    let length = name.len().min(31);
    field[..length].copy_from_slice(&name.as_bytes()[..length]);
    field
}

/// The name of a field: up to the first zero, and only of visible ASCII characters.
pub(crate) fn name_of(field: &[u8; 32]) -> Option<String> {
    let length = field.iter().position(|byte| *byte == 0)?;
    let name = std::str::from_utf8(&field[..length]).ok()?;
    (length > 0 && name.bytes().all(|byte| byte.is_ascii_graphic())).then(|| name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_as_they_went() {
        let mut entry = EntryRecord::zero();
        entry.name = name_field("12-7");
        entry.owner_pid = 12;
        entry.acknowledged = u64::MAX - 1;
        entry.state = WAITING;
        assert_eq!(EntryRecord::from_bytes(&entry.to_bytes()), entry);
        assert_eq!(name_of(&entry.name).as_deref(), Some("12-7"));
    }

    #[test]
    fn names_without_an_end_or_with_controls_are_none() {
        assert_eq!(name_of(&[b'a'; 32]), None);
        assert_eq!(name_of(&name_field("a\nb")), None);
        assert_eq!(name_of(&[0; 32]), None);
    }

    /// §6.6 sums 64 + n·139 and gets 1,885 tasks; the fields sum to 151, padded 160.
    #[test]
    fn the_seed_counts_too_many_entries() {
        assert_eq!((262_144 - 64) / 139, 1885);
        assert_eq!((262_144 - 64) / 160, 1638);
        const { assert!(ENTRY_CAPACITY >= 1638) };
    }
}
