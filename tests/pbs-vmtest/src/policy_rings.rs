// SPDX-License-Identifier: GPL-2.0
//! The mapped rings of events: they say what `read(2)` says, and cannot be written to.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::process::Command;

use libc::{c_int, EACCES, EFAULT, EINVAL, ENODEV, ENOENT, EPERM};
use pbs_uapi::{Device, Event, EventKind, Info, Ring, RingRead, Rings, DEVICE_PATH};

use crate::harness::{Context, Node, Plan, Scene, Verdict};
use crate::policy_cpus::uncounted;
use crate::policy_events::more_than_is_held;
use crate::{check, check_eq};

/// All rings that there are, for a reader at `seq`.
fn rings(device: &Device, seq: u64) -> Result<Rings, String> {
    let mut rings = Rings::new(seq);
    let info = device.info().context("info")?;
    rings.renew(device.as_fd(), &info).context("map")?;
    check_eq!(rings.len(), info.nr_rings as usize, "rings");
    Ok(rings)
}

/// All that a reader of rings gets.
fn read(rings: &mut Rings) -> Vec<Event> {
    let mut events = Vec::new();
    let mut batch = [Event::default(); 100];
    loop {
        match rings.read(&mut batch) {
            0 => return events,
            count => events.extend_from_slice(&batch[..count]),
        }
    }
}

/// A plan of so many slots for two processes, and what they do.
fn two_processes(plan: Plan, tasks: u32) -> Result<(Plan, Scene), String> {
    let mut plan = plan.lead_in();
    for task in 0..tasks {
        plan = plan.slot(1, task, 300_000).slot(2, task, 200_000);
    }
    let mut scene = Scene::new()?;
    for process in 1..=2 {
        scene.tasks(process, &vec![150_000; tasks as usize])?;
    }
    Ok((plan, scene))
}

/// A reader that maps the rings gets what others read, whether it was there all the time or comes
/// afterwards, reads the rings itself or leaves that to the library.
pub fn mapped_readers_get_the_same() -> Verdict {
    let (plan, scene) = two_processes(Plan::new(1), 20)?;
    let first = scene.node.device.info().context("info")?.next_seq;
    let mut follower = Node::open()?;
    follower.device.map_events();
    // It polls and reads while the plan runs.
    let mut scene = scene.start(&plan)?;
    follower.read_until(EventKind::PlanEnded, 1)?;
    scene.node.read()?;
    let node = scene.finish()?;
    follower.read()?;
    check!(node.events.len() > 80, "only {} events", node.events.len());
    check_eq!(follower.events, node.events, "what the follower got");

    let mut rings = rings(&node.device, first)?;
    check_eq!(read(&mut rings), node.events, "what is in the rings");
    // Nobody takes anything away, and who starts over gets all again.
    rings.seek(first);
    check_eq!(read(&mut rings), node.events, "what is in the rings again");
    follower.device.seek(first).context("seek")?;
    follower.events.clear();
    follower.read()?;
    check_eq!(follower.events, node.events, "what the follower got again");
    Ok(())
}

/// A reader of a mapped ring that sleeps while more happens than it holds knows how
/// many events it lost, as one that reads is told.
pub fn slow_mapped_reader_is_told() -> Verdict {
    // So that there is a ring.
    let (short_plan, scene) = two_processes(Plan::new(2), 1)?;
    scene.run(&short_plan)?;
    let mut slow = Node::open()?;
    let first = slow.device.info().context("info")?.next_seq;
    let mut mapped = rings(&slow.device, first)?;
    let node = more_than_is_held(0)?;
    slow.read()?;
    let info = slow.device.info().context("info")?;
    check!(info.first_seq > first, "nothing was lost");
    let events = read(&mut mapped);
    check_eq!(events[0].kind, EventKind::Overrun as u16, "first");
    check_eq!(events[0].value, info.first_seq - first, "events lost");
    check_eq!(events.len(), slow.events.len(), "events of the two");
    check!(events == slow.events, "they got different events");
    let held = events.len() - 1;
    check!(
        events[1..] == node.events[node.events.len() - held..],
        "the quick one got other events"
    );
    Ok(())
}

/// mmap(2) of a file; the errno if it fails.
fn map(
    fd: BorrowedFd<'_>,
    bytes: u64,
    protection: c_int,
    flags: c_int,
    at: u64,
) -> Result<usize, i32> {
    // SAFETY: a new mapping, wherever there is room.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes as usize,
            protection,
            flags,
            fd.as_raw_fd(),
            at as libc::off_t,
        )
    };
    if start == libc::MAP_FAILED {
        Err(errno())
    } else {
        Ok(start as usize)
    }
}

fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Whoever wants to write is refused, also later and in other ways; so is what is not
/// one whole ring.
pub fn rings_are_read_only() -> Verdict {
    use libc::{MAP_PRIVATE, MAP_SHARED, PROT_READ, PROT_WRITE};
    let (plan, scene) = two_processes(Plan::new(1), 3)?;
    let node = scene.run(&plan)?;
    let info = node.device.info().context("info")?;
    check_eq!(info.nr_rings, 1, "rings: CPU 1 has no plan");
    let (fd, bytes) = (node.device.as_fd(), info.ring_bytes);
    // SAFETY: no memory is involved.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
    check_eq!(bytes % page, 0, "part of a page in a ring");

    let both = PROT_READ | PROT_WRITE;
    for (what, bytes, protection, flags, at, errno) in [
        ("writable", bytes, both, MAP_SHARED, 0, EPERM),
        ("write-only", bytes, PROT_WRITE, MAP_SHARED, 0, EPERM),
        ("private", bytes, PROT_READ, MAP_PRIVATE, 0, EINVAL),
        ("private copy", bytes, both, MAP_PRIVATE, 0, EINVAL),
        ("a page", page, PROT_READ, MAP_SHARED, 0, EINVAL),
        ("too short", bytes - page, PROT_READ, MAP_SHARED, 0, EINVAL),
        ("too long", bytes + page, PROT_READ, MAP_SHARED, 0, EINVAL),
        ("two", 2 * bytes, PROT_READ, MAP_SHARED, 0, EINVAL),
        ("not at a ring", bytes, PROT_READ, MAP_SHARED, page, EINVAL),
        ("of a CPU without", bytes, PROT_READ, MAP_SHARED, bytes, ENOENT),
        ("of no CPU", bytes, PROT_READ, MAP_SHARED, bytes * u64::from(info.nr_cpu_ids), ENODEV),
    ] {
        let said = map(fd, bytes, protection, flags, at);
        check_eq!(said, Err(errno), "map: {what}");
    }

    // Who may not read may not map, and who may not write may.
    let open = |read, write| {
        let file = OpenOptions::new().read(read).write(write).open(DEVICE_PATH);
        file.context("open")
    };
    let said = map(open(false, true)?.as_fd(), bytes, PROT_READ, MAP_SHARED, 0);
    check_eq!(said, Err(EACCES), "map for writing only");
    for file in [open(true, false)?, open(true, true)?] {
        let start = map(file.as_fd(), bytes, PROT_READ, MAP_SHARED, 0);
        let start = start.map_err(|errno| format!("map: errno {errno}"))?;
        let memory = start as *mut libc::c_void;
        // SAFETY: the mapping made above, of which nobody has a reference.
        let said = unsafe { libc::mprotect(memory, bytes as usize, both) };
        check_eq!((said, errno()), (-1, EACCES), "making it writable");
        // SAFETY: as above; it does not move.
        let said = unsafe { libc::mremap(memory, bytes as usize, 2 * bytes as usize, 0) };
        check_eq!((said, errno()), (libc::MAP_FAILED, EFAULT), "making it larger");
        let memory = OpenOptions::new().write(true).open("/proc/self/mem");
        let memory = memory.context("/proc/self/mem")?;
        let said = memory.write_at(&[1], start as u64);
        check!(said.is_err(), "written to by /proc/self/mem");
        // SAFETY: as above.
        let said = unsafe { libc::munmap(start as *mut libc::c_void, bytes as usize) };
        check_eq!(said, 0, "munmap");
    }
    check_eq!(
        read(&mut rings(&node.device, node.events[0].seq)?),
        node.events,
        "the events after all that"
    );
    Ok(())
}

/// A mapping outlives the file that it was made of, and the plan of its CPU; and the
/// next plan's events are in the same ring.
pub fn mapping_outlives_file_and_plan() -> Verdict {
    let (plan, scene) = two_processes(Plan::new(1), 3)?;
    let mut node = scene.run(&plan)?;
    let device = Device::open().context("open")?;
    let info = device.info().context("info")?;
    let ring: Ring = Ring::map(device.as_fd(), info.ring_bytes, 0).context("map")?;
    check_eq!(ring.cpu(), 0, "CPU");
    drop(device);
    node.device.drop_plan(0).context("drop")?;
    let (plan, scene) = two_processes(Plan::new(2), 3)?;
    drop(scene.run(&plan)?);
    node.read()?;
    let events: Vec<_> = (0..)
        .map_while(|number| match ring.look(number) {
            RingRead::Record(event) => Some(event),
            _ => None,
        })
        .collect();
    check_eq!(events, node.events, "the one CPU's ring and all events");
    let plans: Vec<_> = node.of(EventKind::PlanEnded);
    check_eq!(plans.len(), 2, "plans that ended");
    let again: Info = node.device.info().context("info")?;
    check_eq!(again.nr_rings, info.nr_rings, "rings");
    Ok(())
}

/// The rings of two CPUs, whose plans run at once, are one stream in order for each
/// reader; also for one that was there before the second had a ring, and for the
/// sample in C.
pub fn rings_of_two_cpus_are_one_stream() -> Verdict {
    // CPU 0 has a ring, and then a reader that maps.
    let (plan, scene) = two_processes(Plan::new(1), 1)?;
    scene.run(&plan)?;
    let mut follower = Node::open()?;
    follower.device.map_events();

    let mut plan = Plan::new(2).config(uncounted());
    let mut scene = Scene::new()?;
    for cpu in 0..2 {
        plan = plan.cpu(cpu).idle(20_000_000);
        for task in 0..30 {
            for process in 1..=2 {
                plan = plan.slot(10 * cpu + process, task, 400_000);
            }
        }
        for process in 1..=2 {
            scene.tasks(10 * cpu + process, &[200_000; 30])?;
        }
    }
    let mut scene = scene.start(&plan)?;
    scene.node.read_until(EventKind::PlanEnded, 2)?;
    let node = scene.finish()?;
    follower.read_until(EventKind::PlanEnded, 2)?;
    follower.read()?;
    check_eq!(follower.events, node.events, "what the follower got");
    let first = node.events[0].seq;
    for (seq, event) in (first..).zip(&node.events) {
        check_eq!(event.seq, seq, "number of an event");
    }
    let changes = node.events.windows(2);
    let changes = changes.filter(|pair| pair[0].cpu != pair[1].cpu).count();
    println!("{changes} times from one CPU to the other");
    check!(changes > 1, "the CPUs ran one after the other");
    let mut rings = rings(&node.device, first)?;
    check_eq!(rings.len(), 2, "rings");
    check_eq!(read(&mut rings), node.events, "what is in the rings");

    let run = Command::new("pbs_events").output().context("pbs_events")?;
    let said = String::from_utf8_lossy(&run.stderr);
    check!(run.status.success(), "pbs_events: {said}");
    let said = String::from_utf8_lossy(&run.stdout);
    let said: Vec<_> = said.lines().skip(first as usize).collect();
    let lines: Vec<_> = node.events.iter().map(line_of_sample).collect();
    check_eq!(said, lines, "what the sample prints");
    Ok(())
}

fn line_of_sample(event: &Event) -> String {
    format!(
        "{} {} {} {} {} {} {} {}",
        event.seq,
        event.time_ns,
        event.cpu,
        event.kind,
        event.reason,
        event.process as i32,
        event.task as i32,
        event.value
    )
}
