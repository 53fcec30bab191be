// SPDX-License-Identifier: GPL-2.0
//! Plan processes that sleep in system calls of all kinds between their turns.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::atomic::Ordering::SeqCst;

use pbs_uapi::{Device, EventKind};

use crate::harness::{burn, fork, Child, Pipe, Plan, Random, Verdict, LEAD_IN_INSNS};
use crate::linux::accounts::all_at_rest;
use crate::linux::scene::{ends_well, eventually, futex, Scene, SharedWords, Turns, PLAN_CPU};
use crate::{check, check_eq};

pub fn sleep_us(us: u64) {
    std::thread::sleep(std::time::Duration::from_micros(us));
}

/// Number of times that the calling thread went to sleep.
pub fn own_voluntary_switches() -> u32 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` has room for the answer, and zero is a valid one.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    usage.ru_nvcsw as u32
}

/// Data of a process of the crew.
struct Member<'a> {
    device: &'a Device,
    number: usize,
    /// Bytes go round; each waits for one at its own pipe.
    ring: &'a [Ends],
    questions: &'a Ends,
    answers: &'a Ends,
}

/// The two ends of a pipe.
struct Ends {
    read: File,
    write: File,
}

impl Ends {
    fn new() -> Result<Self, String> {
        let pipe = Pipe::new()?;
        Ok(Self { read: pipe.read.into(), write: pipe.write.into() })
    }

    fn put(&self) -> bool {
        (&self.write).write_all(&[1]).is_ok()
    }

    fn take(&self) -> bool {
        (&self.read).read_exact(&mut [0]).is_ok()
    }

    /// Sleeps in poll(2), for a byte or a millisecond.
    fn poll(&self) {
        let mut poll = libc::pollfd { fd: self.read.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid record.
        unsafe { libc::poll(&mut poll, 1, 1) };
    }
}

impl Member<'_> {
    /// Another plan process wakes it, and it wakes another one.
    fn pass_on(&self) -> bool {
        let next = (self.number + 1) % self.ring.len();
        self.ring[self.number].take() && self.ring[next].put()
    }

    /// A normal process on another CPU wakes it. It does not matter whose answer it takes.
    fn ask(&self) -> bool {
        self.questions.put() && self.answers.take()
    }

    /// Sleeps, and not interruptibly, until its child has become another program.
    fn have_it_done() -> bool {
        let status = Command::new("/bin/true").status();
        status.is_ok_and(|status| status.success())
    }

    /// The host keeps the file; only a deadly signal would end the wait for it.
    fn keep_file(&self) -> bool {
        let path = format!("/mnt/crew{}", self.number);
        let kept = fs::write(&path, [1; 100]).and_then(|()| fs::read(&path));
        kept.is_ok_and(|bytes| bytes == [1; 100])
    }

    /// One thing that a process can sleep for, or none.
    fn sleep(&self, dice: &mut Random) -> bool {
        match dice.below(64) {
            0 => return Self::have_it_done(),
            1..=4 => return self.keep_file(),
            5..=12 => return self.ask(),
            13..=16 => self.ring[self.number].poll(),
            17..=28 => sleep_us(dice.between(1, 300)),
            29..=32 => drop(self.device.task_end(None)),
            33..=36 => std::thread::yield_now(),
            _ => {}
        }
        true
    }

    /// Adds to `note` for each round in which all was right.
    fn work(&self, rounds: u32, words: &SharedWords) {
        let mut dice = Random::new(self.number as u64 + 1);
        for _ in 0..rounds {
            let right = self.sleep(&mut dice) && self.pass_on();
            words.note.fetch_add(u32::from(right), SeqCst);
            burn(dice.between(1, 40_000));
        }
    }
}

/// Plan processes that sleep in every way there is, and talk to each other and to a normal
/// process on another CPU.
pub struct Crew {
    scene: Scene,
    members: Vec<(Child, &'static SharedWords)>,
    /// Killed when it is forgotten.
    _normal: Child,
    rounds: u32,
}

impl Crew {
    pub fn new(members: u32, rounds: u32) -> Result<Self, String> {
        let mut scene = Scene::new()?;
        let mut plan = Plan::new(14).config(Turns::config()).cpu(PLAN_CPU).idle(LEAD_IN_INSNS);
        for task in 0..3000 {
            for process in 1..=members {
                plan = plan.slot(process, task, 10_000);
            }
        }
        scene.node.load(&plan)?;
        let ring: Result<Vec<Ends>, String> = (0..members).map(|_| Ends::new()).collect();
        let (ring, questions, answers) = (ring?, Ends::new()?, Ends::new()?);
        // Two go round, so that one can run while another waits.
        check!(ring[0].put() && ring[0].put(), "the first bytes");
        let normal = fork(|| while questions.take() && answers.put() {})?;
        let device = Device::open().map_err(|error| error.to_string())?;
        let mut crew = Vec::new();
        for process in 1..=members {
            let words = SharedWords::shared()?;
            let member = Member {
                device: &device,
                number: process as usize - 1,
                ring: &ring,
                questions: &questions,
                answers: &answers,
            };
            let child = scene.spawn(process, || member.work(rounds, words))?;
            crew.push((child, words));
        }
        Ok(Self { scene, members: crew, _normal: normal, rounds })
    }

    /// All come to the end of their rounds, in which all was right.
    pub fn finish(mut self) -> Verdict {
        for (child, words) in &mut self.members {
            ends_well(child, "a process that sleeps")
                .map_err(|why| format!("{why}, after {} rounds", words.note.load(SeqCst)))?;
            check_eq!(words.note.load(SeqCst), self.rounds, "rounds that went right");
        }
        self.scene.plan_ends()
    }
}

/// A normal process on another CPU wakes a plan process at any moment of its way to sleep,
/// in its slot and where it has to wait for the next one.
pub fn wake_ups_meet_sleeps() -> Verdict {
    const ROUNDS: u32 = 800;
    // Longer than the way to sleep.
    const SWEEP_INSNS: u64 = 6_000;
    let mut scene = Scene::new()?;
    let mut plan = Plan::new(15)
        .config(Turns::config())
        .cpu(PLAN_CPU)
        .idle(LEAD_IN_INSNS)
        .slot(1, 0, 10_000_000);
    // Then there is another one, and each sleep ends where it may not run.
    for task in 1..20_000 {
        plan = plan.slot(2, task, 5_000).slot(1, task, 5_000);
    }
    scene.node.load(&plan)?;
    let (words, others) = (SharedWords::shared()?, SharedWords::shared()?);
    let mut sleeper = scene.spawn(1, || {
        for round in 0..ROUNDS {
            words.note.store(round + 1, SeqCst);
            while words.other.load(SeqCst) <= round {
                futex(&words.other, libc::FUTEX_WAIT, round);
            }
        }
    })?;
    let mut spinner = scene.spawn(2, || others.spin())?;
    for round in 0..ROUNDS {
        eventually("the process comes to its sleep", || words.note.load(SeqCst) > round)
            .map_err(|why| format!("{why}, the {round}th"))?;
        burn(1 + u64::from(round) * 37 % SWEEP_INSNS);
        words.other.store(round + 1, SeqCst);
        futex(&words.other, libc::FUTEX_WAKE, 1);
    }
    ends_well(&mut sleeper, "the process that is woken")?;
    others.runs("the other process")?;
    others.release();
    ends_well(&mut spinner, "the other process")?;
    scene.wait_kind(EventKind::ProcessEnded, 2)?;
    scene.plan_ends()?;
    all_at_rest()
}
