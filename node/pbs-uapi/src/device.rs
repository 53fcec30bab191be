// SPDX-License-Identifier: GPL-2.0
//! `/dev/pbs_plan` as an open file.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::ioctl::ioctl;
use crate::record::{
    bytes_of_slice_mut, Attach, Configure, Error, Event, GetPlan, Info, PlanHeader, Process,
    Record, TaskEnd,
};
use crate::{ioc, EventKind, Rings, NO_TASK};

/// Path of the device.
pub const DEVICE_PATH: &str = "/dev/pbs_plan";

/// The kernel said no, and why.
#[derive(Debug)]
pub struct Refused {
    /// The errno.
    pub error: io::Error,
    /// The reason in words, where the kernel gave one.
    pub reason: Option<String>,
    /// Offset in the written plan.
    pub offset_bytes: Option<u64>,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Some(reason) => write!(f, "{reason} ({})", self.error),
            None => self.error.fmt(f),
        }
    }
}

impl std::error::Error for Refused {}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self { error, reason: None, offset_bytes: None }
    }
}

/// An open `/dev/pbs_plan`. Each has a reading position of its own, which
/// stands at the next event when it is opened.
#[derive(Debug)]
pub struct Device {
    file: File,
    mapped: Option<Mutex<Mapped>>,
}

/// The events of a device that are read where the kernel writes them.
#[derive(Debug, Default)]
struct Mapped {
    /// `None` until it is known which event is the next one.
    rings: Option<Rings>,
    /// They can't be mapped, or the kernel has none.
    refused: bool,
}

/// Threads that share a device share its events.
fn locked(mapped: &Mutex<Mapped>) -> MutexGuard<'_, Mapped> {
    mapped.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Mapped {
    /// The next event is number `seq`.
    fn seek(&mut self, seq: u64) {
        self.rings.get_or_insert_default().seek(seq);
    }
}

impl Device {
    /// Opens [`DEVICE_PATH`]; reading waits for events.
    pub fn open() -> io::Result<Self> {
        Self::open_path(Path::new(DEVICE_PATH), false)
    }

    /// Opens the device at `path`. With `nonblock`, reading does not wait.
    pub fn open_path(path: &Path, nonblock: bool) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(if nonblock { libc::O_NONBLOCK } else { 0 })
            .open(path)?;
        Ok(file.into())
    }

    /// From now on [`Device::read_events`] takes events from the mapped rings, without
    /// a system call as long as there are any there. Where they can't be mapped all
    /// stays as it is. One thread at a time reads or seeks; where reading waits, the
    /// others do, too.
    pub fn map_events(&mut self) {
        self.mapped.get_or_insert_default();
    }

    /// Hands over one complete plan in the wire format.
    pub fn write_plan(&self, plan: &[u8]) -> Result<(), Refused> {
        let written = (&self.file).write(plan).map_err(|e| self.refused(e))?;
        if written == plan.len() {
            Ok(())
        } else {
            Err(io::Error::other("the kernel accepted only a part of the plan").into())
        }
    }

    /// Version, limits, counting tier and rate.
    pub fn info(&self) -> Result<Info, Refused> {
        let mut info = Info::default();
        self.ioctl(ioc::INFO, &mut info)?;
        Ok(info)
    }

    /// Makes thread `pid` (0: the caller) a thread of a process of the plan.
    pub fn attach(&self, pid: i32, process: u32, flags: u32) -> Result<(), Refused> {
        let mut attach = Attach { pid, process, flags, ..Attach::default() };
        self.ioctl(ioc::ATTACH, &mut attach)
    }

    /// Ends the caller's current task, which must be `task` if one is given.
    /// The answer is the next task, `None` after the last one.
    pub fn task_end(&self, task: Option<u32>) -> Result<Option<u32>, Refused> {
        let mut end =
            TaskEnd { task: task.unwrap_or(NO_TASK), next_task: NO_TASK, ..TaskEnd::default() };
        self.ioctl(ioc::TASK_END, &mut end)?;
        Ok(Some(end.next_task).filter(|&task| task != NO_TASK))
    }

    /// Takes thread `pid` (0: the caller) out of the class.
    pub fn detach(&self, pid: i32) -> Result<(), Refused> {
        self.ioctl(ioc::DETACH, &mut Word(pid))
    }

    /// Drops the plan of a CPU; its threads go back to the normal class.
    pub fn drop_plan(&self, cpu: u32) -> Result<(), Refused> {
        self.ioctl(ioc::DROP, &mut Word(cpu))
    }

    /// The lease of a CPU's plan begins anew.
    pub fn renew(&self, cpu: u32) -> Result<(), Refused> {
        self.ioctl(ioc::RENEW, &mut Word(cpu))
    }

    /// The next event to read is number `seq`.
    pub fn seek(&self, seq: u64) -> Result<(), Refused> {
        self.ioctl(ioc::SEEK, &mut Word(seq))?;
        if let Some(mapped) = &self.mapped {
            locked(mapped).seek(seq);
        }
        Ok(())
    }

    /// The plan of a CPU in the wire format, as a plan of that CPU alone.
    pub fn get_plan(&self, cpu: u32) -> Result<Vec<u8>, Refused> {
        self.get_plan_and_generation(cpu).map(|(plan, _)| plan)
    }

    /// The plan of a CPU in the wire format, and the generation of its configuration for
    /// [`Device::configure`].
    pub fn get_plan_and_generation(&self, cpu: u32) -> Result<(Vec<u8>, u32), Refused> {
        let mut buffer = vec![0u8; 1 << 16];
        loop {
            let mut get = GetPlan {
                cpu,
                generation: 0,
                buffer: buffer.as_mut_ptr() as u64,
                bytes: buffer.len() as u64,
            };
            let result = self.ioctl(ioc::GET_PLAN, &mut get);
            let bytes = usize::try_from(get.bytes).unwrap_or(usize::MAX);
            match result {
                Ok(()) if bytes <= buffer.len() => {
                    buffer.truncate(bytes);
                    return Ok((buffer, get.generation));
                }
                // The kernel says how much it needs, or nothing: then grow.
                Ok(()) => buffer.resize(bytes, 0),
                Err(e) if too_small(&e.error) && buffer.len() < MAX_PLAN_BYTES => {
                    let wanted = if bytes > buffer.len() { bytes } else { 2 * buffer.len() };
                    buffer.resize(wanted.min(MAX_PLAN_BYTES), 0);
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// Continues the plan `plan_id` of a CPU with another configuration, a `struct pbs_config` in
    /// the wire format, if the present one still is that of `generation`.
    pub fn configure(
        &self,
        cpu: u32,
        plan_id: u64,
        generation: u32,
        config: &[u8],
    ) -> Result<(), Refused> {
        let mut request = Configure {
            cpu,
            config_bytes: u32::try_from(config.len()).unwrap_or(u32::MAX),
            plan_id,
            config: config.as_ptr() as u64,
            generation,
            reserved: 0,
        };
        self.ioctl(ioc::CONFIGURE, &mut request)
    }

    /// Returns the kernel's state of a process of a plan; `None`: no plan has it.
    pub fn process(&self, process: u32) -> Result<Option<Process>, Refused> {
        let mut known = Process { process, ..Process::default() };
        match self.ioctl(ioc::GET_PROCESS, &mut known) {
            Ok(()) => Ok(Some(known)),
            Err(e) if e.error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Reads events into `events`; the answer is how many came. Waits for the
    /// first one unless the device was opened with `nonblock`, in which case
    /// 0 means that there is none yet.
    pub fn read_events(&self, events: &mut [Event]) -> io::Result<usize> {
        match self.mapped.as_ref().map(locked) {
            Some(mut mapped) if !mapped.refused => self.read_mapped(&mut mapped, events),
            _ => self.read_file(events),
        }
    }

    /// Reads from the rings. If they have nothing, the file may have: what has come
    /// meanwhile, or is in a ring that is not mapped yet. And there one can wait for
    /// events, and so the file's position follows.
    fn read_mapped(&self, mapped: &mut Mapped, events: &mut [Event]) -> io::Result<usize> {
        if let Some(rings) = &mut mapped.rings {
            let count = rings.read(events);
            if count > 0 {
                return Ok(count);
            }
            let mut position = Word(rings.seq());
            ioctl(&self.file, ioc::SEEK, &mut position)?;
        }
        let count = self.read_file(events)?;
        if let Some(last) = events[..count].last() {
            let lost = last.kind == EventKind::Overrun as u16;
            mapped.seek(last.seq + if lost { last.value } else { 1 });
            self.map_new_rings(mapped);
        }
        Ok(count)
    }

    fn map_new_rings(&self, mapped: &mut Mapped) {
        let Some(rings) = &mut mapped.rings else {
            return;
        };
        let mut info = Info::default();
        let told = ioctl(&self.file, ioc::INFO, &mut info);
        let renewed = told.and_then(|()| rings.renew(self.as_fd(), &info));
        mapped.refused = renewed.is_err();
    }

    fn read_file(&self, events: &mut [Event]) -> io::Result<usize> {
        match (&self.file).read(bytes_of_slice_mut(events)) {
            Ok(bytes) => Ok(bytes / size_of::<Event>()),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(e) => Err(e),
        }
    }

    /// Waits until there is an event to read, or for `timeout_ms` (negative:
    /// for ever). The answer is whether there is one.
    #[allow(unsafe_code)]
    pub fn poll(&self, timeout_ms: i32) -> io::Result<bool> {
        let mut fd = libc::pollfd { fd: self.file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: `fd` is one valid pollfd that outlives the call.
        match unsafe { libc::poll(&mut fd, 1, timeout_ms) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(fd.revents & libc::POLLIN != 0),
        }
    }

    fn ioctl<T: Record>(&self, number: u32, argument: &mut T) -> Result<(), Refused> {
        ioctl(&self.file, number, argument).map_err(|error| self.refused(error))
    }

    fn refused(&self, error: io::Error) -> Refused {
        let mut said = Error::default();
        let heard = ioctl(&self.file, ioc::ERROR, &mut said).is_ok();
        // A reason for another errno is that of an earlier call.
        if !heard || said.error == 0 || Some(said.error.abs()) != error.raw_os_error() {
            return error.into();
        }
        Refused {
            error,
            reason: Some(said.message()).filter(|text| !text.is_empty()),
            offset_bytes: Some(said.offset_bytes).filter(|&offset| offset != u64::MAX),
        }
    }
}

/// More than the largest plan of one CPU that version 1 allows.
const MAX_PLAN_BYTES: usize = 1 << 27;

fn too_small(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOSPC | libc::E2BIG | libc::EMSGSIZE | libc::EOVERFLOW | libc::ERANGE)
    )
}

/// The argument of a call that takes a bare number.
#[repr(transparent)]
#[derive(Clone, Copy, Default)]
struct Word<T>(T);

// SAFETY: a single integer.
#[allow(unsafe_code)]
unsafe impl Record for Word<i32> {}
// SAFETY: a single integer.
#[allow(unsafe_code)]
unsafe impl Record for Word<u32> {}
// SAFETY: a single integer.
#[allow(unsafe_code)]
unsafe impl Record for Word<u64> {}

impl From<File> for Device {
    fn from(file: File) -> Self {
        Self { file, mapped: None }
    }
}

impl From<OwnedFd> for Device {
    fn from(fd: OwnedFd) -> Self {
        File::from(fd).into()
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

// A plan cannot be larger than what its slots and processes take.
const _: () = assert!(
    MAX_PLAN_BYTES
        > size_of::<PlanHeader>()
            + size_of::<crate::record::Config>()
            + size_of::<crate::record::PlanCpu>()
            + crate::MAX_PROCESSES as usize * size_of::<crate::record::PlanProcess>()
            + crate::MAX_SLOTS as usize * size_of::<crate::record::PlanSlot>()
);
