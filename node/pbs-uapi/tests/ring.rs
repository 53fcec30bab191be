// SPDX-License-Identifier: GPL-2.0
//! The reader of mapped rings, against rings that are made here.
#![allow(unsafe_code)]

use std::fs::File;
use std::mem::offset_of;
use std::os::fd::{AsFd, FromRawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{fence, AtomicBool, AtomicU64, Ordering};

use pbs_uapi::record::{bytes_of, RingHeader};
use pbs_uapi::{Event, EventKind, Info, Ring, RingRead, Rings, IDLE, RING_MAGIC, RING_VERSION};

const CAPACITY: u64 = 8;
const RECORDS_OFFSET: u64 = 4096;
const RING_BYTES: u64 = 8192;

/// A file with the rings of some CPUs, as the device has them, and their writer.
struct RingFile {
    file: File,
    info: Info,
}

impl RingFile {
    /// Empty rings of the CPUs `0..cpus`.
    fn new(cpus: u32) -> Self {
        let fd = unsafe { libc::memfd_create(c"rings".as_ptr(), 0) };
        assert!(fd >= 0);
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len(u64::from(cpus) * RING_BYTES).unwrap();
        let made = Self {
            file,
            info: Info {
                ring_bytes: RING_BYTES,
                nr_cpu_ids: cpus,
                nr_rings: cpus,
                ..Info::default()
            },
        };
        for cpu in 0..cpus {
            made.set_header(cpu, &header(cpu));
        }
        made
    }

    fn set_header(&self, cpu: u32, header: &RingHeader) {
        let at = u64::from(cpu) * RING_BYTES;
        self.file.write_all_at(bytes_of(header), at).unwrap();
    }

    fn word(&self, cpu: u32, field: usize) -> u64 {
        let mut bytes = [0; 8];
        let at = u64::from(cpu) * RING_BYTES + field as u64;
        self.file.read_exact_at(&mut bytes, at).unwrap();
        u64::from_ne_bytes(bytes)
    }

    fn set_word(&self, cpu: u32, field: usize, value: u64) {
        let at = u64::from(cpu) * RING_BYTES + field as u64;
        self.file.write_all_at(&value.to_ne_bytes(), at).unwrap();
    }

    /// Writes the first half of the event `seq` on `cpu`: all but the head.
    fn begin(&self, cpu: u32, seq: u64) {
        let head = self.word(cpu, HEAD);
        self.set_word(cpu, TAIL, (head + 1).saturating_sub(CAPACITY));
        let event = event(cpu, seq);
        let place = head % CAPACITY * size_of::<Event>() as u64;
        let at = u64::from(cpu) * RING_BYTES + RECORDS_OFFSET + place;
        self.file.write_all_at(bytes_of(&event), at).unwrap();
    }

    fn end(&self, cpu: u32) {
        self.set_word(cpu, HEAD, self.word(cpu, HEAD) + 1);
    }

    fn write(&self, cpu: u32, seq: u64) {
        self.begin(cpu, seq);
        self.end(cpu);
    }

    fn rings(&self, seq: u64) -> Rings {
        let mut rings = Rings::new(seq);
        rings.renew(self.file.as_fd(), &self.info).unwrap();
        rings
    }
}

const HEAD: usize = offset_of!(RingHeader, head);
const TAIL: usize = offset_of!(RingHeader, tail);

fn header(cpu: u32) -> RingHeader {
    RingHeader {
        magic: RING_MAGIC,
        version: RING_VERSION,
        record_bytes: size_of::<Event>() as u16,
        cpu,
        records_offset_bytes: RECORDS_OFFSET as u32,
        capacity_records: CAPACITY,
        ..RingHeader::default()
    }
}

fn event(cpu: u32, seq: u64) -> Event {
    Event { seq, cpu, kind: EventKind::Grant as u16, value: !seq, ..Event::default() }
}

/// All that there is, in pieces of `batch`.
fn read(rings: &mut Rings, batch: usize) -> Vec<Event> {
    let mut events = Vec::new();
    let mut piece = vec![Event::default(); batch];
    loop {
        let count = rings.read(&mut piece);
        if count == 0 {
            return events;
        }
        events.extend_from_slice(&piece[..count]);
    }
}

fn overrun(seq: u64, value: u64) -> Event {
    Event {
        seq,
        value,
        kind: EventKind::Overrun as u16,
        process: IDLE,
        task: pbs_uapi::NO_TASK,
        slot: pbs_uapi::NO_SLOT,
        ..Event::default()
    }
}

#[test]
fn two_rings_are_one_stream() {
    let made = RingFile::new(3);
    let mut rings = made.rings(0);
    assert_eq!(rings.len(), 3);
    assert_eq!(read(&mut rings, 4), []);
    let of_cpu = [0, 0, 2, 0, 2, 2, 1, 0];
    for (seq, &cpu) in of_cpu.iter().enumerate() {
        made.write(cpu, seq as u64);
    }
    let expected: Vec<_> = (0..).zip(of_cpu).map(|(seq, cpu)| event(cpu, seq)).collect();
    assert_eq!(read(&mut rings, 3), expected);
    // Back, and into the middle.
    rings.seek(0);
    assert_eq!(read(&mut rings, 64), expected);
    rings.seek(5);
    assert_eq!(read(&mut rings, 1), expected[5..]);
    assert_eq!(rings.seq(), 8);
}

#[test]
fn what_is_being_written_is_waited_for() {
    let made = RingFile::new(2);
    let mut rings = made.rings(0);
    // CPU 1 has number 1, and CPU 0 is quicker.
    made.write(0, 0);
    made.begin(1, 1);
    made.write(0, 2);
    assert_eq!(read(&mut rings, 8), [event(0, 0)]);
    assert_eq!(read(&mut rings, 8), []);
    made.end(1);
    assert_eq!(read(&mut rings, 8), [event(1, 1), event(0, 2)]);
}

#[test]
fn what_comes_late_before_the_position_is_passed_over() {
    let made = RingFile::new(2);
    made.begin(1, 0);
    made.write(0, 1);
    // It begins after number 0, which is being written.
    let mut rings = made.rings(1);
    made.end(1);
    made.write(1, 2);
    assert_eq!(read(&mut rings, 8), [event(0, 1), event(1, 2)]);
}

#[test]
fn slow_reader_is_told_how_many() {
    let made = RingFile::new(2);
    let mut rings = made.rings(0);
    made.write(1, 0);
    for seq in 1..=20 {
        made.write(0, seq);
    }
    // CPU 1 holds number 0, and CPU 0 holds 13 to 20.
    let mut expected = vec![event(1, 0), overrun(1, 12)];
    expected.extend((13..=20).map(|seq| event(0, seq)));
    assert_eq!(read(&mut rings, 5), expected);
    // From the oldest on there is no loss; before it there is.
    rings.seek(13);
    assert_eq!(read(&mut rings, 5), expected[2..]);
    rings.seek(12);
    assert_eq!(read(&mut rings, 1)[..2], [overrun(12, 1), event(0, 13)]);
    // Nor is there one for who has read all, whatever was overwritten.
    made.write(1, 21);
    assert_eq!(read(&mut rings, 5), [event(1, 21)]);
}

#[test]
fn a_full_ring_has_lost_nothing() {
    let made = RingFile::new(1);
    let mut rings = made.rings(0);
    for seq in 0..CAPACITY {
        made.write(0, seq);
    }
    let ring: Ring = Ring::map(made.file.as_fd(), made.info.ring_bytes, 0).unwrap();
    assert_eq!(ring.bounds(), (0, CAPACITY));
    assert_eq!(read(&mut rings, 3).len(), 8);
}

#[test]
fn a_record_that_is_being_overwritten_is_lost() {
    let made = RingFile::new(1);
    for seq in 0..CAPACITY {
        made.write(0, seq);
    }
    let ring: Ring = Ring::map(made.file.as_fd(), made.info.ring_bytes, 0).unwrap();
    assert_eq!(ring.look(0), RingRead::Record(event(0, 0)));
    made.begin(0, CAPACITY);
    assert_eq!(ring.bounds(), (1, CAPACITY));
    assert_eq!(ring.look(0), RingRead::Lost);
    assert_eq!(ring.look(1), RingRead::Record(event(0, 1)));
    assert_eq!(ring.look(CAPACITY), RingRead::NotYet);
    let mut rings = made.rings(0);
    let mut expected = vec![overrun(0, 1)];
    expected.extend((1..CAPACITY).map(|seq| event(0, seq)));
    assert_eq!(read(&mut rings, 9), expected);
}

#[test]
fn rings_that_come_later_are_mapped() {
    let mut made = RingFile::new(2);
    made.info.nr_cpu_ids = 1;
    made.info.nr_rings = 1;
    let mut rings = made.rings(0);
    made.write(0, 0);
    made.write(1, 1);
    made.write(0, 2);
    assert_eq!(read(&mut rings, 8), [event(0, 0)]);
    made.info.nr_cpu_ids = 2;
    made.info.nr_rings = 2;
    rings.renew(made.file.as_fd(), &made.info).unwrap();
    assert_eq!(read(&mut rings, 8), [event(1, 1), event(0, 2)]);
}

#[test]
fn what_is_no_ring_is_refused() {
    type Spoil = fn(&mut RingHeader);
    let spoils: [Spoil; 8] = [
        |header| header.magic += 1,
        |header| header.version += 1,
        |header| header.record_bytes = 64,
        |header| header.records_offset_bytes = 4095,
        |header| header.records_offset_bytes = 64,
        |header| header.capacity_records = 12,
        |header| header.capacity_records = 64,
        |header| header.capacity_records = 1 << 63,
    ];
    for (number, spoil) in spoils.into_iter().enumerate() {
        let made = RingFile::new(1);
        let mut spoilt = header(0);
        spoil(&mut spoilt);
        made.set_header(0, &spoilt);
        let error = Ring::<Event>::map(made.file.as_fd(), made.info.ring_bytes, 0).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData, "{number}");
    }
    // A kernel that knows of no rings.
    let made = RingFile::new(1);
    let error = Ring::<Event>::map(made.file.as_fd(), 0, 0).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::Unsupported);
}

/// The mapping of a ring has the flag `dc` of proc_pid_smaps(5): a fork does not copy it.
#[test]
fn a_forked_child_has_no_ring() {
    let made = RingFile::new(1);
    let ring = Ring::<Event>::map(made.file.as_fd(), made.info.ring_bytes, 0).unwrap();
    let inode = made.file.metadata().unwrap().ino().to_string();
    let areas = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut lines = areas.lines().skip_while(|line| line.split_whitespace().nth(4) != Some(&inode));
    let flags = lines.find_map(|line| line.strip_prefix("VmFlags:")).unwrap();
    assert!(flags.split_whitespace().any(|flag| flag == "dc"), "{flags}");
    drop(ring);
}

/// A writer that never stops: the reader is overtaken in the middle of copies, and yet
/// each event that it gets is whole, and it knows of each that it does not get.
#[test]
fn no_event_is_torn() {
    const EVENTS: u64 = 2_000_000;
    let made = RingFile::new(1);
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            RING_BYTES as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            std::os::fd::AsRawFd::as_raw_fd(&made.file),
            0,
        )
    } as usize;
    let done = AtomicBool::new(false);
    let word = |offset: usize| unsafe { &*((start + offset) as *const AtomicU64) };
    let (mut got, mut lost, mut next) = (0, 0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for seq in 0..EVENTS {
                let tail = (seq + 1).saturating_sub(CAPACITY);
                word(TAIL).store(tail, Ordering::Relaxed);
                fence(Ordering::Release);
                let place = RECORDS_OFFSET + seq % CAPACITY * size_of::<Event>() as u64;
                let place = (start as u64 + place) as *mut Event;
                unsafe { place.write_volatile(event(seq as u32, seq)) };
                word(HEAD).store(seq + 1, Ordering::Release);
            }
            done.store(true, Ordering::Release);
        });
        let mut rings = made.rings(0);
        loop {
            let is_last = done.load(Ordering::Acquire);
            for told in read(&mut rings, 5) {
                assert_eq!(told.seq, next);
                if told.kind == EventKind::Overrun as u16 {
                    lost += told.value;
                    next += told.value;
                } else {
                    assert_eq!(told, event(told.seq as u32, told.seq));
                    got += 1;
                    next += 1;
                }
            }
            if is_last {
                break;
            }
        }
    });
    assert_eq!(got + lost, EVENTS);
    println!("{got} events, {lost} lost");
    unsafe { libc::munmap(start as *mut libc::c_void, RING_BYTES as usize) };
}
