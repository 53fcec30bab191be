// SPDX-License-Identifier: GPL-2.0
//! Files with content that a member of the group, or chance, has put there.

mod common;

use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::{symlink, FileExt, MetadataExt, PermissionsExt};

use common::{all_on_gpu, claim_of, csi_name, devices, master, task, Directory, MILLISECOND};
use pbs_csi::layout::{CsimfHeader, EntryRecord, CSIMF_BYTES, ENTRIES_AT, ENTRY_CAPACITY, RUNNING};
use pbs_csi::{clean, list, Claimed, Error, Node, Owner, Removal};
use proptest::collection::vec;
use proptest::prelude::*;

fn refused(directory: &Directory) -> String {
    let error = Node::open(&directory.options()).unwrap_err();
    assert!(!matches!(error, Error::Io { .. }), "{error}");
    error.to_string()
}

fn write(directory: &Directory, at: usize, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(directory.csimf()).unwrap();
    file.write_all_at(bytes, at as u64).unwrap();
}

#[test]
fn files_belong_to_owner_and_group_whatever_the_mask() {
    let directory = Directory::new("own");
    let node = directory.node();
    node.lock().unwrap().register(&[task(1, &[])]).unwrap();
    for name in directory.files() {
        let about = fs::metadata(directory.path().join(&name)).unwrap();
        assert_eq!(about.mode() & 0o7777, 0o600, "{name}");
    }
    let directory = Directory::new("mode");
    let group = fs::metadata(directory.path()).unwrap().gid();
    let mut options = directory.options();
    options.group = Some(group);
    let node = Node::open(&options).unwrap();
    node.lock().unwrap().register(&[task(1, &[])]).unwrap();
    for name in directory.files() {
        let about = fs::metadata(directory.path().join(&name)).unwrap();
        assert_eq!((about.mode() & 0o7777, about.gid()), (0o660, group), "{name}");
    }
}

#[test]
fn world_writable_files_and_links_are_not_used() {
    let directory = Directory::new("trust");
    drop(directory.node());
    let csimf = directory.csimf();
    fs::set_permissions(&csimf, Permissions::from_mode(0o666)).unwrap();
    assert!(refused(&directory).contains("everybody may write it"));
    fs::set_permissions(&csimf, Permissions::from_mode(0o600)).unwrap();
    // Whoever is of that group is not whom we share with.
    fs::set_permissions(&csimf, Permissions::from_mode(0o660)).unwrap();
    assert!(refused(&directory).contains("may write it, which was not named"));
    fs::set_permissions(&csimf, Permissions::from_mode(0o600)).unwrap();
    let other = directory.path().join("other");
    fs::hard_link(&csimf, &other).unwrap();
    assert!(refused(&directory).contains("it has another name"));
    fs::remove_file(&csimf).unwrap();
    symlink(&other, &csimf).unwrap();
    assert!(refused(&directory).contains("symbolic link"));
    fs::remove_file(&csimf).unwrap();
    fs::create_dir(&csimf).unwrap();
    assert!(Node::open(&directory.options()).is_err());
}

#[test]
fn truncated_foreign_older_and_damaged_files_name_a_remedy() {
    let directory = Directory::new("damaged");
    let csimf = directory.csimf();
    let fresh = || {
        let _ = fs::remove_file(&csimf);
        drop(directory.node());
    };
    let field = |name: &str| {
        let mut fields = CsimfHeader::FIELDS.iter();
        fields.find(|(of, _, _)| *of == name).unwrap().1
    };
    fs::write(&csimf, [0; 100]).unwrap();
    fs::set_permissions(&csimf, Permissions::from_mode(0o600)).unwrap();
    let cases: [(&str, &[u8], &str); 7] = [
        ("magic", b"whatever", "it is no CSIMF"),
        ("layout", &[2, 0, 0, 0], "it has shm layout 2, and this program knows 1"),
        ("entry_bytes", &[160, 0, 0, 0], "its records have other sizes"),
        ("boot_id", &[9; 16], "it is of another boot"),
        ("pid_namespace", &[9; 8], "it is of another container"),
        ("status", &[7, 0, 0, 0], "its content can't be"),
        ("device_count", &[255; 4], "its content can't be"),
    ];
    assert!(refused(&directory).contains("it has 100 bytes instead of 262144"));
    for (name, bytes, expected) in cases {
        fresh();
        write(&directory, field(name), bytes);
        let told = refused(&directory);
        assert!(told.contains(expected), "{name}: {told}");
        assert!(told.ends_with("remove it with: pbsctl cosched csi clean --force"), "{told}");
    }
    // And that is what helps.
    assert!(clean(&directory.options(), Removal::Everything).unwrap().csimf);
    drop(directory.node());
}

#[test]
fn a_file_shortened_or_removed_in_use_is_reported() {
    let directory = Directory::new("in-use");
    let node = directory.node();
    let csimf = OpenOptions::new().write(true).open(directory.csimf()).unwrap();
    csimf.set_len(0).unwrap();
    assert_eq!(node.generation(), 0, "no SIGBUS, and something to look at");
    let told = node.lock().unwrap_err().to_string();
    assert!(told.contains("it was made shorter"), "{told}");
    csimf.set_len(CSIMF_BYTES as u64).unwrap();
    let told = node.lock().unwrap_err().to_string();
    assert!(told.contains("it is no CSIMF"), "{told}");
    let other = Directory::new("removed");
    let node = other.node();
    clean(&other.options(), Removal::Everything).unwrap();
    let told = node.lock().unwrap_err().to_string();
    assert!(told.contains("it was removed while it was in use"), "{told}");
}

/// Shorter, and then as it was: the page is not that of the file any more, and whoever has
/// it would never see a result again.
#[test]
fn a_file_shortened_and_restored_is_reported() {
    let directory = Directory::new("restored");
    let node = directory.node();
    let good = fs::read(directory.csimf()).unwrap();
    let csimf = OpenOptions::new().write(true).open(directory.csimf());
    let csimf = csimf.unwrap();
    csimf.set_len(0).unwrap();
    assert_eq!(node.generation(), 0);
    csimf.write_all_at(&good, 0).unwrap();
    let told = node.lock().unwrap_err().to_string();
    assert!(told.contains("it was made shorter"), "{told}");
    // Who opens it anew has its page again.
    drop(node);
    let node = directory.node();
    let generation = master(&node).generation;
    assert_eq!(directory.node().generation(), generation);
}

/// Without this check, processes that have the file open and new ones would each have their own
/// file and master.
#[test]
fn a_file_that_lost_its_name_is_reported() {
    let directory = Directory::new("nameless");
    let (csimf, other) = (directory.csimf(), directory.path().join("other"));
    for has_other_link in [false, true] {
        let node = directory.node();
        if has_other_link {
            fs::hard_link(&csimf, &other).unwrap();
            fs::remove_file(&csimf).unwrap();
        } else {
            fs::rename(&csimf, &other).unwrap();
        }
        let told = node.lock().unwrap_err().to_string();
        assert!(told.contains("its name was taken away"), "{told}");
        let new = directory.node();
        let told = node.lock().unwrap_err().to_string();
        assert!(told.contains("its name was taken away"), "{told}");
        new.lock().unwrap();
        fs::remove_file(&other).unwrap();
    }
}

/// A process had our pid, and its file can't be removed, as in `/dev/shm` if it was of
/// another user.
#[test]
fn names_left_by_an_earlier_process_of_this_pid_are_not_ours() {
    let directory = Directory::new("taken");
    let node = directory.node();
    let own = node.owner();
    let start_ticks = own.start_ticks - 1;
    let before = csi_name(Owner { start_ticks, ..own }, 1);
    // What is no file isn't removed as one, whoever we are.
    fs::create_dir(directory.path().join(&before)).unwrap();
    node.lock().unwrap().register(&[task(1, &[])]).unwrap();
    let mut files = [before, csi_name(own, 1), "pbs-csimf".into()];
    files.sort();
    assert_eq!(directory.files(), files);
}

/// Somebody who fills the directory holds up nobody: not all is looked at, and nothing with
/// the lock.
#[test]
fn a_crowded_directory_is_not_searched_under_the_lock() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static OTHER: std::sync::OnceLock<Node> = std::sync::OnceLock::new();
    static WITHOUT_LOCK: AtomicUsize = AtomicUsize::new(0);
    fn on_step() {
        let is_free = OTHER.get().is_some_and(|other| other.lock().is_ok());
        WITHOUT_LOCK.fetch_add(is_free.into(), Ordering::Relaxed);
    }
    let directory = Directory::new("full");
    let mut options = directory.options();
    options.patience = std::time::Duration::ZERO;
    OTHER.set(Node::open(&options).unwrap()).unwrap();
    // Of a process that there can't be.
    let (pid, start_ticks) = (u32::MAX, 1);
    let most = 2 * ENTRY_CAPACITY;
    let owner = Owner { pid, start_ticks };
    let name = |number| directory.path().join(csi_name(owner, number));
    fs::write(name(0), "").unwrap();
    // Only the names count, and further ones of a file are made faster than files.
    for number in 1..most as u64 + 10 {
        fs::hard_link(name(0), name(number)).unwrap();
    }
    options.on_step = Some(on_step);
    Node::open(&options).unwrap();
    assert_eq!(directory.files().len(), 10 + 1);
    assert!(WITHOUT_LOCK.load(Ordering::Relaxed) >= most);
    // An operator has all of them away.
    assert_eq!(clean(&directory.options(), Removal::Gone).unwrap().csis, 10);
}

#[test]
fn impossible_entries_are_ignored_and_removed() {
    let directory = Directory::new("entries");
    let node = directory.node();
    let mut locked = node.lock().unwrap();
    locked.join_devices(&devices()).unwrap();
    let slots = locked.register(&[task(1, &[]), task(2, &[])]).unwrap();
    drop(locked);
    // The first says that it is the second's; the name tells.
    let at = ENTRIES_AT + slots[0] as usize * EntryRecord::BYTES;
    write(&directory, at, b"../../etc/passwd\0");
    let mut locked = node.lock().unwrap();
    let tasks: Vec<u64> = locked.entries().unwrap().iter().map(|of| of.task).collect();
    assert_eq!(tasks, [2]);
    let generation = locked.generation();
    let claimed = locked.claim(claim_of(slots[0], 1, generation, 1, 1, 1)).unwrap();
    assert_eq!(claimed, Claimed::Gone);
    locked.sweep().unwrap();
}

#[test]
fn a_csi_is_not_read_through_links_and_its_content_is_checked() {
    let directory = Directory::new("csi");
    let node = directory.node();
    node.lock().unwrap().join_devices(&devices()).unwrap();
    node.lock().unwrap().register(&[task(1, &[]), task(2, &[]), task(3, &[])]).unwrap();
    let csi = |task| directory.path().join(csi_name(node.owner(), task));
    fs::remove_file(csi(1)).unwrap();
    symlink(csi(2), csi(1)).unwrap();
    let file = OpenOptions::new().write(true).open(csi(3)).unwrap();
    // More variants than there is room.
    file.write_all_at(&[255; 4], 44).unwrap();
    let snapshot = master(&node);
    let tasks: Vec<u64> = snapshot.waiting.iter().map(|of| of.entry.task).collect();
    assert_eq!(tasks, [2]);
    let mut locked = node.lock().unwrap();
    locked.publish(snapshot.generation, &all_on_gpu(&snapshot)).unwrap();
}

/// Somebody who lives claims to be master, since a time that is still to come.
#[test]
fn a_false_master_does_not_delay_others() {
    let directory = Directory::new("false");
    let mut options = directory.options();
    options.patience = MILLISECOND;
    let node = Node::open(&options).unwrap();
    let own = node.owner();
    let mut header = [0; CsimfHeader::BYTES];
    let file = OpenOptions::new().read(true).write(true).open(directory.csimf()).unwrap();
    file.read_exact_at(&mut header, 0).unwrap();
    let mut header = CsimfHeader::from_bytes(&header);
    header.status = RUNNING;
    header.master_pid = own.pid;
    header.master_start_ticks = own.start_ticks;
    header.started_ns = u64::MAX;
    file.write_all_at(&header.to_bytes(), 0).unwrap();
    assert!(node.lock().unwrap().fetch(&[]).unwrap().is_some());
}

#[test]
fn a_lock_held_for_long_is_reported_with_its_holder() {
    let directory = Directory::new("kept");
    let mut options = directory.options();
    options.patience = MILLISECOND;
    let (node, other) = (Node::open(&options).unwrap(), directory.node());
    let kept = other.lock().unwrap();
    let told = node.lock().unwrap_err().to_string();
    let expected = format!("process {} seems to hold it", std::process::id());
    assert!(told.contains(&expected), "{told}");
    drop(kept);
    node.lock().unwrap();
}

/// Calls all operations, on any content.
fn use_all(node: &Node) {
    let _ = node.generation();
    let own: Vec<(u32, u64)> = (0..4).zip(1..).collect();
    let Ok(mut locked) = node.lock() else { return };
    let _ = locked.status();
    let _ = locked.join_devices(&devices());
    let registered = locked.register(&[task(1, &[]), task(2, &[1])]);
    for entry in locked.entries().unwrap_or_default() {
        let _ = locked.csi(&entry);
    }
    drop(locked);
    let Ok(mut locked) = node.lock() else { return };
    if let Ok(pbs_csi::Begun::Master(snapshot)) = locked.begin() {
        let _ = locked.publish(snapshot.generation, &all_on_gpu(&snapshot));
    }
    let _ = locked.fetch(&own);
    let generation = locked.generation();
    for (slot, number) in own.into_iter().chain([(u32::MAX, 1)]) {
        let _ = locked.claim(claim_of(slot, number, generation, 1, 1, u64::MAX));
        let _ = locked.finish(slot, number, &[(slot, number), (9, 9)]);
    }
    for slot in registered.unwrap_or_default() {
        let _ = locked.withdraw(slot, 1);
    }
    let _ = locked.sweep();
}

/// Bytes with which a header is written over, from where.
fn scratches(of: usize) -> impl Strategy<Value = Vec<(usize, Vec<u8>)>> {
    vec((0..of, vec(any::<u8>(), 1..24)), 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// A file of nothing but chance is refused, or used without harm.
    #[test]
    fn random_files_do_no_harm(bytes in vec(any::<u8>(), 0..4096), length in 0..CSIMF_BYTES * 2) {
        let directory = Directory::new("random");
        fs::write(directory.csimf(), &bytes).unwrap();
        fs::set_permissions(directory.csimf(), Permissions::from_mode(0o600)).unwrap();
        let file = OpenOptions::new().write(true).open(directory.csimf()).unwrap();
        file.set_len(length as u64).unwrap();
        prop_assert!(Node::open(&directory.options()).is_err());
        let _ = list(&directory.options());
        clean(&directory.options(), Removal::Everything).unwrap();
    }

    /// A good file that is scratched anywhere, and CSIs, too, before it is opened and while
    /// it is in use.
    #[test]
    fn scratched_files_do_no_harm(
        before in scratches(4096),
        header in scratches(64),
        meanwhile in scratches(4096),
        csi in scratches(2048),
    ) {
        let directory = Directory::new("scratched");
        let mut options = directory.options();
        options.patience = MILLISECOND;
        let node = Node::open(&options).unwrap();
        use_all(&node);
        let mut locked = node.lock().unwrap();
        let _ = locked.join_devices(&devices());
        let _ = locked.register(&[task(5, &[]), task(6, &[5])]);
        drop(locked);
        let name = csi_name(node.owner(), 5);
        if let Ok(file) = OpenOptions::new().write(true).open(directory.path().join(name)) {
            for (at, bytes) in csi {
                file.write_all_at(&bytes, at as u64).unwrap();
            }
        }
        // Behind what is looked at first, so that it comes further.
        for (at, bytes) in before.iter().chain(&meanwhile) {
            write(&directory, 64 + at, bytes);
        }
        for (at, bytes) in &header {
            write(&directory, 64 + at, bytes);
        }
        // A status that can be, that the rest is reached.
        write(&directory, 72, &[0, 0, 0, 0]);
        write(&directory, 100, &[3, 0, 0, 0]);
        use_all(&node);
        if let Ok(other) = Node::open(&options) {
            use_all(&other);
        }
        let _ = list(&options);
        let _ = clean(&options, Removal::Gone);
        clean(&options, Removal::Everything).unwrap();
        prop_assert!(directory.files().is_empty());
    }
}

/// Somebody writes at random, makes the file shorter and longer, all the time.
#[test]
fn random_writes_while_in_use_do_no_harm() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let directory = Directory::new("meanwhile");
    let mut options = directory.options();
    options.patience = MILLISECOND;
    let node = Node::open(&options).unwrap();
    let good = fs::read(directory.csimf()).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let file = OpenOptions::new().write(true).open(directory.csimf()).unwrap();
            let mut random = 1_u64;
            while !is_over.load(Ordering::Relaxed) {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let number = random >> 33;
                match number % 8 {
                    0 => file.set_len(number % 5000).unwrap(),
                    1 => file.set_len(CSIMF_BYTES as u64).unwrap(),
                    2 | 3 => file.write_all_at(&good, 0).unwrap(),
                    _ => {
                        let at = 64 + number % 4000;
                        file.write_all_at(&number.to_ne_bytes(), at).unwrap();
                    }
                }
            }
        });
        for _ in 0..300 {
            use_all(&node);
            // It has lost its page soon; one that is opened now has not.
            if let Ok(node) = Node::open(&options) {
                use_all(&node);
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    // With its old content, the file serves as before.
    fs::write(directory.csimf(), &good).unwrap();
    let again = Node::open(&options).unwrap();
    let slots = again.lock().unwrap().register(&[task(1, &[])]).unwrap();
    assert_eq!(slots.len(), 1);
}
