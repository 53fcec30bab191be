// SPDX-License-Identifier: GPL-2.0
//! A message that comes in pieces is one message; and there is no place in a stream to read or
//! write it at.

use std::os::fd::{AsFd, AsRawFd};

use libc::{EFAULT, ESPIPE};
use pbs_uapi::record::from_bytes;
use pbs_uapi::{Device, Event, EventKind};

use super::kit::refused;
use crate::harness::{Context, Node, Plan, Verdict};
use crate::{check, check_eq};

const EVENT: usize = size_of::<Event>();

/// The errno, if the call has failed.
fn result(value: isize) -> Result<usize, i32> {
    usize::try_from(value).map_err(|_| std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

fn piece(address: usize, bytes: usize) -> libc::iovec {
    libc::iovec { iov_base: address as *mut libc::c_void, iov_len: bytes }
}

fn pieces_of(message: &[u8], lengths: &[usize]) -> Vec<libc::iovec> {
    let mut pieces = Vec::new();
    let mut at = 0;
    for &length in lengths {
        let length = length.min(message.len() - at);
        pieces.push(piece(message.as_ptr() as usize + at, length));
        at += length;
    }
    pieces.push(piece(message.as_ptr() as usize + at, message.len() - at));
    pieces
}

fn writev(device: &Device, pieces: &[libc::iovec]) -> Result<usize, i32> {
    let fd = device.as_fd().as_raw_fd();
    // SAFETY: the pieces are memory of this process, or of nobody.
    result(unsafe { libc::writev(fd, pieces.as_ptr(), pieces.len() as i32) })
}

fn readv(device: &Device, pieces: &[libc::iovec]) -> Result<usize, i32> {
    let fd = device.as_fd().as_raw_fd();
    // SAFETY: the pieces are memory of this process that may be written to.
    result(unsafe { libc::readv(fd, pieces.as_ptr(), pieces.len() as i32) })
}

/// A plan that is written in pieces is installed as if it were in one; a piece that can't be read
/// spoils it whole.
pub fn messages_come_in_pieces() -> Verdict {
    let device = Device::open().context("open")?;
    let fd = device.as_fd().as_raw_fd();
    let plan = Plan::new(77).cpu(0).slot(5, 0, 1000).idle(1000).bytes();
    let mut node = Node::open()?;

    let mut pieces = pieces_of(&plan, &[1, 7, 60]);
    pieces.insert(2, piece(8, 16));
    check_eq!(writev(&device, &pieces), Err(EFAULT), "a piece of nowhere");
    check!(device.get_plan(0).is_err(), "a plan came of it");
    // There is no plan in what is left of it.
    pieces.truncate(2);
    check_eq!(writev(&device, &pieces), Err(libc::EINVAL), "less than a header");

    check_eq!(writev(&device, &pieces_of(&plan, &[1, 7, 60])), Ok(plan.len()), "a plan in pieces");
    node.read_until(EventKind::PlanInstalled, 1)?;

    // One event, in pieces of odd lengths; and the next one in what two would have room for.
    let first = node.events.first().map_or(0, |event| event.seq);
    let mut buffer = [0u8; 2 * EVENT];
    let address = buffer.as_mut_ptr() as usize;
    device.seek(first).context("seek")?;
    let odd = [piece(address, 3), piece(address + 3, 61), piece(address + 64, EVENT - 64)];
    check_eq!(readv(&device, &odd), Ok(EVENT), "an event in pieces");
    let event: Option<Event> = from_bytes(&buffer);
    check_eq!(event.map(|event| event.seq), Some(first), "its number");
    let last = device.info().context("info")?.next_seq - 1;
    device.seek(last).context("seek")?;
    let two = [piece(address, EVENT), piece(address + EVENT, EVENT)];
    let read = readv(&device, &two);
    check!(matches!(read, Ok(bytes) if bytes >= EVENT), "what there is: {read:?}");

    // SAFETY: memory of this process.
    let at_places = unsafe {
        [
            result(libc::pread(fd, buffer.as_mut_ptr().cast(), EVENT, 0)),
            result(libc::pwrite(fd, plan.as_ptr().cast(), plan.len(), 0)),
            result(libc::lseek(fd, 0, libc::SEEK_CUR) as isize),
        ]
    };
    check_eq!(at_places, [Err(ESPIPE); 3], "pread, pwrite, lseek");
    refused("drop of no CPU", device.drop_plan(77), libc::ENODEV)?;
    device.drop_plan(0).context("drop")
}
