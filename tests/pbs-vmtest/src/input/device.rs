// SPDX-License-Identifier: GPL-2.0
//! Reading with buffers that are too small, and from where nothing is.

use std::os::fd::{AsFd, AsRawFd};

use libc::{EAGAIN, EFAULT, EINVAL, ENOSPC};
use pbs_uapi::record::{from_bytes, GetPlan};
use pbs_uapi::{ioc, Device, Event};

use super::kit::{ioctl, last_refusal, refused, Running};
use crate::harness::{Context, Verdict};
use crate::linux::scene::PLAN_CPU;
use crate::{check, check_eq};

const EVENT: usize = size_of::<Event>();

/// read(2) of so many bytes to an address; the errno if it fails.
fn read(device: &Device, address: usize, bytes: usize) -> Result<usize, i32> {
    let fd = device.as_fd().as_raw_fd();
    // SAFETY: the address is that of a large enough buffer, or of nothing.
    let result = unsafe { libc::read(fd, address as *mut libc::c_void, bytes) };
    usize::try_from(result).map_err(|_| std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

pub fn short_buffers() -> Verdict {
    let running = Running::new()?;
    let path = std::path::Path::new(pbs_uapi::DEVICE_PATH);
    let device = Device::open_path(path, true).context("open")?;
    let first = running.scene.node.events.first().map_or(0, |event| event.seq);
    device.seek(first).context("seek")?;

    let mut buffer = [0u8; 4 * EVENT];
    let address = buffer.as_mut_ptr() as usize;
    for bytes in [0, 1, 8, EVENT - 1] {
        check_eq!(read(&device, address, bytes), Err(EINVAL), "read of {bytes} bytes");
    }
    // What could not be delivered is not lost.
    check_eq!(read(&device, 8, EVENT), Err(EFAULT), "read to nowhere");
    check_eq!(read(&device, usize::MAX - 7, EVENT), Err(EFAULT), "read to the end of all");
    check_eq!(read(&device, address, EVENT), Ok(EVENT), "read of one event");
    let event: Option<Event> = from_bytes(&buffer);
    check_eq!(event.map(|event| event.seq), Some(first), "the first event");
    check_eq!(read(&device, address, 2 * EVENT - 1), Ok(EVENT), "read of nearly two");
    let event: Option<Event> = from_bytes(&buffer);
    check_eq!(event.map(|event| event.seq), Some(first + 1), "the second event");
    let end = device.info().context("info")?.next_seq;
    refused("seek to what is to come", device.seek(end + 1000), EINVAL)?;
    device.seek(end).context("seek")?;
    // It says so when it has none left.
    let mut result = Ok(EVENT);
    for _ in 0..1000 {
        result = read(&device, address, EVENT);
        if result != Ok(EVENT) {
            break;
        }
    }
    check_eq!(result, Err(EAGAIN), "read of what is to come");

    let whole = device.get_plan(PLAN_CPU).context("get the plan")?;
    let mut place = vec![0xa5u8; whole.len() + 16];
    for room in [0, 1, whole.len() - 1] {
        let mut get = GetPlan {
            cpu: PLAN_CPU,
            generation: 0,
            buffer: place.as_mut_ptr() as u64,
            bytes: room as u64,
        };
        let result = ioctl(&device, ioc::GET_PLAN, &raw mut get as usize);
        check_eq!(result, Err(ENOSPC), "plan into {room} bytes");
        check_eq!(get.bytes, whole.len() as u64, "size of the plan");
        check!(!last_refusal(&device)?.message().is_empty(), "no reason in words");
        check!(place.iter().all(|&byte| byte == 0xa5), "something was written all the same");
    }
    let mut get = GetPlan { cpu: PLAN_CPU, generation: 0, buffer: 8, bytes: whole.len() as u64 };
    let result = ioctl(&device, ioc::GET_PLAN, &raw mut get as usize);
    check_eq!(result, Err(EFAULT), "plan to nowhere");
    get = GetPlan { buffer: place.as_mut_ptr() as u64, ..get };
    let mut generations = Vec::new();
    for _ in 0..2 {
        // The call does not read what the one before has written.
        let result = ioctl(&device, ioc::GET_PLAN, &raw mut get as usize);
        check_eq!(result, Ok(0), "the plan");
        generations.push(get.generation);
    }
    check_eq!(generations[0], generations[1], "generations of one configuration");
    for number in [
        ioc::INFO,
        ioc::ERROR,
        ioc::SEEK,
        ioc::TASK_END,
        ioc::DETACH,
        ioc::DROP,
        ioc::GET_PROCESS,
        ioc::CONFIGURE,
    ] {
        check_eq!(ioctl(&device, number, 8), Err(EFAULT), "call {number:#x} from nowhere");
    }
    check_eq!(ioctl(&device, 0, 0), Err(libc::ENOTTY), "call 0");
    // Nothing of that was in the way of the device itself.
    check_eq!(device.get_plan(PLAN_CPU).context("get the plan")?, whole, "the plan");
    running.completes()
}
