// SPDX-License-Identifier: GPL-2.0
//! Calls by dice, with fixed seeds, of several processes at once.

use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;

use pbs_core::wire::encode;
use pbs_uapi::{ioc, Device, Event, DEVICE_PATH, IDLE};

use super::kit::{ioctl, Running, RUNNING_PLAN};
use crate::harness::{fork, setting, Context, Random, Verdict, CONFIG};
use crate::linux::scene::{dies, ends_well, SharedWords, PLAN_CPU};
use crate::{check, check_eq};

/// Number of calls of all processes, unless the environment sets it.
const CALLS: u32 = 20_000;

/// Number of processes that make them.
const CALLERS: u32 = 4;

/// The longest record, and room for what GET_PLAN writes; in words.
const RECORD: usize = 256;

/// An address that is nobody's, or nobody's to write to.
fn no_address(dice: &mut Random) -> usize {
    dice.one_of(&[0, 1, usize::MAX, usize::MAX - 8, 1 << 63, 4096])
}

/// A process that does what it may not, and some of what it may.
struct Caller {
    device: Device,
    dice: Random,
    /// A thread that lives as long as the callers.
    victim_pid: i32,
    /// Generation of the configuration of the plan that runs.
    generation: u32,
}

impl Caller {
    /// One call. Whether it was refused.
    fn call(&mut self) -> bool {
        match self.dice.below(9) {
            0 => self.read(false),
            1 => self.read(true),
            2 => self.write(),
            3 => self.map(),
            4 => self.configure(),
            _ => self.ioctl(),
        }
    }

    /// ioctl(2) with any number and any argument, among them numbers and records
    /// that are nearly right.
    fn ioctl(&mut self) -> bool {
        let dice = &mut self.dice;
        // DROP of the CPU whose plan runs is the one right call among them.
        let number = match dice.below(4) {
            0 => dice.roll() as u32,
            1 => (dice.roll() as u32 & 0xffff_00ff) | 0xbc00,
            _ => dice.one_of(&[
                ioc::INFO,
                ioc::ATTACH,
                ioc::TASK_END,
                ioc::DETACH,
                ioc::SEEK,
                ioc::ERROR,
                ioc::GET_PLAN,
                ioc::GET_PROCESS,
                ioc::CONFIGURE,
                ioc::DROP,
            ]),
        };
        let mut record = [0u32; RECORD];
        for word in &mut record {
            *word = if dice.below(3) == 0 { dice.roll() as u32 } else { 0 };
        }
        let victim = self.victim_pid as u32;
        record[0] = dice.one_of(&[0, u32::MAX, 2, i32::MAX as u32, victim, 1 << 31]);
        // Process 3 is free: who attaches to it waits for ever.
        let unknown = dice.roll() as u32 | 1 << 20;
        record[1] = dice.one_of(&[0, 1, 2, 9, IDLE, unknown]);
        if number == ioc::DROP {
            record[0] = dice.one_of(&[0, 2, 8, u32::MAX, 1 << 31]);
        }
        // An address of GET_PLAN's buffer, or CONFIGURE's, must not be one of this program.
        record[2] = dice.roll() as u32;
        record[3] = dice.one_of(&[0, u32::MAX, 1 << 31]);
        let argument = match dice.below(4) {
            0 => no_address(dice),
            _ => record.as_mut_ptr() as usize,
        };
        ioctl(&self.device, number, argument).is_err()
    }

    /// PBS_IOC_CONFIGURE for the plan that runs or for another one, with a length that may be right.
    /// Its configuration is the present one, has wrong numbers, or comes too late.
    fn configure(&mut self) -> bool {
        let dice = &mut self.dice;
        let mut bytes = encode::config(&CONFIG).to_vec();
        let mut generation = self.generation;
        match dice.below(4) {
            0 => {}
            1 => bytes.fill_with(|| dice.roll() as u8),
            2 => {
                // A number at random may be valid.
                let place = 8 * dice.below(bytes.len() / 8);
                let value = dice.roll() >> dice.below(64);
                bytes[place..place + 8].copy_from_slice(&value.to_ne_bytes());
                generation ^= 1 << dice.below(32);
            }
            _ => generation = dice.roll() as u32,
        }
        if dice.below(4) == 0 {
            let words = dice.below(bytes.len() / 8 + 2);
            bytes.resize(8 * words, 0);
        }
        let cpu = dice.one_of(&[PLAN_CPU, PLAN_CPU, 0, u32::MAX]);
        let plan_id = dice.one_of(&[RUNNING_PLAN, RUNNING_PLAN, RUNNING_PLAN + 1, u64::MAX]);
        self.device.configure(cpu, plan_id, generation, &bytes).is_err()
    }

    /// read(2) or pread(2) of so many bytes to a buffer, or to none.
    fn read(&mut self, at_an_offset: bool) -> bool {
        let mut buffer = [0u8; 64 * size_of::<Event>()];
        let bytes = self.dice.below(buffer.len() + 1);
        let address = match self.dice.below(4) {
            0 => no_address(&mut self.dice),
            _ => buffer.as_mut_ptr() as usize,
        };
        let to = address as *mut libc::c_void;
        let fd = self.device.as_fd().as_raw_fd();
        // SAFETY: there are so many bytes at the address, or none that are ours.
        let read = unsafe {
            if at_an_offset {
                libc::pread(fd, to, bytes, self.dice.roll() as libc::off_t)
            } else {
                libc::read(fd, to, bytes)
            }
        };
        read < 0
    }

    /// write(2) of what is no plan.
    fn write(&mut self) -> bool {
        let mut message = [0u8; 1024];
        for byte in &mut message {
            *byte = self.dice.roll() as u8;
        }
        let bytes = self.dice.below(message.len() + 1);
        let address = match self.dice.below(4) {
            0 => no_address(&mut self.dice),
            _ => message.as_ptr() as usize,
        };
        let fd = self.device.as_fd().as_raw_fd();
        // SAFETY: there are so many bytes at the address, or none that are ours.
        unsafe { libc::write(fd, address as *const libc::c_void, bytes) < 0 }
    }

    /// mmap(2) of any place of the rings, and a look at it.
    fn map(&mut self) -> bool {
        const PAGE_BYTES: usize = 4096;
        let dice = &mut self.dice;
        let bytes = match dice.below(3) {
            0 => dice.roll() as usize,
            _ => PAGE_BYTES << dice.below(12),
        };
        let offset = match dice.below(3) {
            0 => dice.roll() as usize,
            _ => PAGE_BYTES * dice.below(1024),
        };
        let protection = dice.one_of(&[libc::PROT_READ, libc::PROT_READ | libc::PROT_WRITE, 0]);
        let flags = dice.one_of(&[libc::MAP_SHARED, libc::MAP_PRIVATE]);
        let fd = self.device.as_fd().as_raw_fd();
        // SAFETY: a new mapping, of which nothing is expected, and which is given
        // back.
        unsafe {
            let no_hint = std::ptr::null_mut();
            let place = libc::mmap(no_hint, bytes, protection, flags, fd, offset as libc::off_t);
            if place == libc::MAP_FAILED {
                return true;
            }
            if protection != 0 {
                place.cast::<u32>().read_volatile();
            }
            libc::munmap(place, bytes);
        }
        false
    }
}

pub fn random_calls_do_no_harm() -> Verdict {
    let calls = setting("PBS_CALLS", CALLS)? / CALLERS;
    let seed = setting("PBS_SEED", 2)?;
    let running = Running::new()?;
    let device = &running.scene.node.device;
    let (_, generation) = device.get_plan_and_generation(PLAN_CPU).context("get the plan")?;
    let words = SharedWords::shared()?;
    let mut victim = fork(|| words.block())?;
    let victim_pid = victim.pid;
    let mut callers = Vec::new();
    for number in 0..CALLERS {
        callers.push(fork(|| {
            let device = Device::open_path(Path::new(DEVICE_PATH), true);
            let mut caller = Caller {
                device: device.expect("the device opens"),
                dice: Random::new(u64::from(CALLERS * seed + number)),
                victim_pid,
                generation,
            };
            for _ in 0..calls {
                let refused = caller.call();
                words.other.fetch_add(u32::from(refused), SeqCst);
                words.note.fetch_add(1, SeqCst);
            }
        })?);
    }
    for caller in &mut callers {
        ends_well(caller, "a caller")
            .map_err(|why| format!("{why} after {} calls", words.note.load(SeqCst)))?;
    }
    let calls = calls * CALLERS;
    check_eq!(words.note.load(SeqCst), calls, "calls");
    let failed = words.other.load(SeqCst);
    println!("{calls} calls, {failed} of them refused");
    check!(failed > calls / 2 && failed < calls, "{failed} of {calls} calls failed");
    words.release();
    check_eq!(dies(&mut victim, "the victim")?, 0, "wait status of the victim");
    running.completes()
}
