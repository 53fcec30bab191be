// SPDX-License-Identifier: GPL-2.0

//! `/dev/pbs_plan`: plans in, events out, and the calls of plan processes.
//!
//! See `include/uapi/linux/pbs.h` for the format.

use super::{
    attach::{self, NotEnded},
    clock, events,
    global::pbs,
    pbs_core::{wire as format, Errno, Refusal},
    plan, wire,
};
use core::fmt::{self, Write};
use kernel::{
    alloc::KVVec,
    bindings, c_str,
    capability::{capable, Capability},
    current,
    ioctl::{_IOR, _IOW, _IOWR},
    miscdevice::{MiscDevice, MiscDeviceRegistration, Options},
    new_mutex,
    poll::PollTable,
    prelude::*,
    sync::{Arc, Mutex},
    task::Task,
    types::ARef,
    uaccess::{UserSlice, UserSliceReader, UserSliceWriter},
};

/// The largest plan that is taken in: all CPUs of a large node, or one with all slots.
const MAX_PLAN_BYTES: usize = 256 << 20;

/// How many events are copied at a time.
const BATCH: usize = 16;

/// Registers the device.
pub(crate) fn register() -> Result<Pin<KBox<MiscDeviceRegistration<Device>>>> {
    KBox::pin_init(
        MiscDeviceRegistration::new(Options {
            name: c_str!("pbs_plan"),
            mode: 0o600,
        }),
        GFP_KERNEL,
    )
}

/// The device.
pub(crate) struct Device;

/// An open file.
#[pin_data]
pub(crate) struct File {
    /// The next event that this reader gets. Held while events are copied, so that two threads
    /// that read one file share the events between them.
    #[pin]
    position: Mutex<u64>,
    /// Why the last call was refused.
    #[pin]
    refusal: Mutex<bindings::pbs_error>,
}

/// A refused call: the error, and in words.
struct Refused {
    error: Error,
    offset_bytes: u64,
    text: Text,
}

impl Refused {
    fn new(error: Error, text: fmt::Arguments<'_>) -> Self {
        let mut refused = Self {
            error,
            offset_bytes: u64::MAX,
            text: Text::default(),
        };
        // What does not fit is cut off.
        let _ = refused.text.write_fmt(text);
        refused
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Refused::new(error, format_args!("the kernel refused it: {error:?}"))
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        let error = match refusal.errno() {
            Errno::Invalid => EINVAL,
            Errno::TooBig => E2BIG,
            Errno::NoMemory => ENOMEM,
            Errno::NoDevice => ENODEV,
        };
        let mut refused = Refused::new(error, format_args!("{refusal}"));
        refused.offset_bytes = refusal.offset_bytes;
        refused
    }
}

impl From<plan::Refused> for Refused {
    fn from(refused: plan::Refused) -> Self {
        match refused {
            plan::Refused::Plan(refusal) => refusal.into(),
            plan::Refused::NoCpu { cpu, offset_bytes } => Refused {
                offset_bytes,
                ..Refused::new(
                    ENODEV,
                    format_args!("CPU {cpu} is not online; plan for a CPU that is"),
                )
            },
            plan::Refused::Elsewhere { process, cpu } => Refused::new(
                EEXIST,
                format_args!(
                    "process {process} is in the plan of CPU {cpu}, which this plan does not \
                     replace; name that CPU too, or take another id"
                ),
            ),
            plan::Refused::Kernel(error) => error.into(),
        }
    }
}

/// A line of text of limited length.
struct Text {
    bytes: [u8; 240],
    used: usize,
}

impl Default for Text {
    fn default() -> Self {
        Self {
            bytes: [0; 240],
            used: 0,
        }
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // One byte stays for the NUL.
        let room = self.bytes.len() - 1 - self.used;
        let fits = text.len().min(room);
        for (to, from) in self
            .bytes
            .iter_mut()
            .skip(self.used)
            .zip(text.bytes().take(fits))
        {
            *to = from;
        }
        self.used += fits;
        if fits == text.len() {
            Ok(())
        } else {
            Err(fmt::Error)
        }
    }
}

impl File {
    /// Keeps the reason of a refusal for `PBS_IOC_ERROR`.
    fn keep<T>(&self, result: Result<T, Refused>) -> Result<T> {
        result.map_err(|refused| {
            *self.refusal.lock() = bindings::pbs_error {
                error: -refused.error.to_errno(),
                reserved: 0,
                offset_bytes: refused.offset_bytes,
                text: refused.text.bytes.map(|byte| byte as _),
            };
            refused.error
        })
    }
}

/// Whether the caller may change plans and attach threads.
fn privileged() -> Result<(), Refused> {
    if capable(Capability::SysNice) {
        Ok(())
    } else {
        Err(Refused::new(EPERM, format_args!("this needs CAP_SYS_NICE")))
    }
}

/// The thread of that id, as the caller numbers threads; 0 is the caller.
fn thread(pid: i32) -> Result<ARef<Task>, Refused> {
    if pid == 0 {
        Ok(current!().into())
    } else {
        Task::find_by_vpid(pid)
            .ok_or_else(|| Refused::new(ESRCH, format_args!("there is no thread {pid}")))
    }
}

fn no_reserved(reserved: &[u32]) -> Result<(), Refused> {
    if reserved.iter().all(|word| *word == 0) {
        Ok(())
    } else {
        Err(Refused::new(
            EINVAL,
            format_args!("a reserved field is not zero"),
        ))
    }
}

fn write_plan(mut reader: UserSliceReader) -> Result<usize, Refused> {
    privileged()?;
    let len = reader.len();
    if len > MAX_PLAN_BYTES {
        return Err(Refused::new(
            E2BIG,
            format_args!("a plan of {len} bytes is over the limit of {MAX_PLAN_BYTES}"),
        ));
    }
    let mut bytes = KVVec::with_capacity(len, GFP_KERNEL).map_err(Error::from)?;
    bytes
        .extend_with(len, 0u8, GFP_KERNEL)
        .map_err(Error::from)?;
    reader.read_slice(&mut bytes)?;
    plan::install(&bytes)?;
    Ok(len)
}

fn attach_thread(arg: usize) -> Result<(), Refused> {
    privileged()?;
    let request: bindings::pbs_attach = wire::get(arg)?;
    no_reserved(&request.reserved)?;
    if request.flags & !bindings::PBS_ATTACH_ONE_TASK != 0 {
        return Err(Refused::new(
            EINVAL,
            format_args!("unknown flags {:#x}", request.flags),
        ));
    }
    let process = request.process;
    let task = thread(request.pid)?;
    let one_task = request.flags & bindings::PBS_ATTACH_ONE_TASK != 0;
    attach::attach(&task, process, one_task).map_err(|refused| match refused {
        attach::Refused::NoProcess => Refused::new(
            ENOENT,
            format_args!("no plan has process {process}; write the plan first"),
        ),
        attach::Refused::Occupied => Refused::new(
            EBUSY,
            format_args!("process {process} has a thread already"),
        ),
        attach::Refused::Done => Refused::new(
            ENOENT,
            format_args!("process {process} has ended all its tasks"),
        ),
        attach::Refused::Attached => Refused::new(
            EBUSY,
            format_args!("thread {} is attached already", task.pid()),
        ),
        attach::Refused::Kthread => Refused::new(
            EINVAL,
            format_args!("thread {} is a kernel thread", task.pid()),
        ),
        attach::Refused::Exiting => {
            Refused::new(ESRCH, format_args!("thread {} is exiting", task.pid()))
        }
        attach::Refused::Kernel(error) => error.into(),
    })
}

fn end_task(arg: usize) -> Result<(), Refused> {
    let mut request: bindings::pbs_task_end = wire::get(arg)?;
    no_reserved(&request.reserved)?;
    // Written first: once the task has ended the call must not fail any more.
    request.next_task = bindings::PBS_NO_TASK;
    wire::put(arg, request)?;
    let expected = (request.task != bindings::PBS_NO_TASK).then_some(request.task);
    let ended = attach::end_task(current!(), expected).map_err(|refused| match refused {
        NotEnded::NotAttached => Refused::new(
            ESRCH,
            format_args!("the caller is not attached to a plan process"),
        ),
        NotEnded::NotActive => Refused::new(
            EBUSY,
            format_args!("another thread of the process has its turn"),
        ),
        NotEnded::Other(task) => Refused::new(
            EINVAL,
            format_args!("the caller's task is {task}, not {}", request.task),
        ),
    })?;
    request.next_task = ended.next.unwrap_or(bindings::PBS_NO_TASK);
    // The page was writable a moment ago; if it isn't any more, the answer is lost, not the end.
    let _ = wire::put(arg, request);
    Ok(())
}

fn get_plan(arg: usize) -> Result<(), Refused> {
    // A page fault here can keep plans from changing, so this is not for everybody.
    privileged()?;
    let mut request: bindings::pbs_get_plan = wire::get(arg)?;
    no_reserved(&[request.reserved])?;
    let room = request.bytes;
    let address = request.buffer as usize;
    let mut bytes = 0;
    let mut writer = UserSlice::new(address as _, room as usize).writer();
    let read = plan::read_back(
        request.cpu,
        |size| {
            bytes = size;
            if size > room {
                Err(ENOSPC)
            } else {
                Ok(())
            }
        },
        |piece| writer.write_slice(piece),
    );
    request.bytes = bytes;
    if bytes != 0 {
        wire::put(arg, request)?;
    }
    read.map_err(|error| match error {
        error if error == ENOENT => {
            Refused::new(ENOENT, format_args!("CPU {} has no plan", request.cpu))
        }
        error if error == ENOSPC => Refused::new(
            ENOSPC,
            format_args!("the plan has {bytes} bytes, the buffer {room}"),
        ),
        error => error.into(),
    })
}

fn info() -> Result<bindings::pbs_info> {
    let (first_seq, next_seq) = pbs().ok_or(ENODEV)?.events.bounds();
    Ok(bindings::pbs_info {
        version: bindings::PBS_VERSION,
        tier: clock::tier(),
        max_slots: format::MAX_SLOTS as u32,
        max_processes: format::MAX_PROCESSES as u32,
        max_slot_insns: format::MAX_SLOT_INSNS,
        rate_insns_per_ms: clock::rate().insns_per_ms(),
        first_seq,
        next_seq,
        ..bindings::pbs_info::default()
    })
}

const MAGIC: u32 = bindings::PBS_IOC_MAGIC;
const INFO: u32 = _IOR::<bindings::pbs_info>(MAGIC, 0);
const ATTACH: u32 = _IOW::<bindings::pbs_attach>(MAGIC, 1);
const TASK_END: u32 = _IOWR::<bindings::pbs_task_end>(MAGIC, 2);
const DETACH: u32 = _IOW::<i32>(MAGIC, 3);
const DROP: u32 = _IOW::<u32>(MAGIC, 4);
const SEEK: u32 = _IOW::<u64>(MAGIC, 5);
const ERROR: u32 = _IOR::<bindings::pbs_error>(MAGIC, 6);
const GET_PLAN: u32 = _IOWR::<bindings::pbs_get_plan>(MAGIC, 7);

#[vtable]
impl MiscDevice for Device {
    type Ptr = Arc<File>;

    fn open() -> Result<Arc<File>> {
        let (_, next_seq) = pbs().ok_or(ENODEV)?.events.bounds();
        let refusal = bindings::pbs_error {
            offset_bytes: u64::MAX,
            ..bindings::pbs_error::default()
        };
        Arc::pin_init(
            pin_init!(File {
                position <- new_mutex!(next_seq, "pbs_position"),
                refusal <- new_mutex!(refusal, "pbs_refusal"),
            }),
            GFP_KERNEL,
        )
    }

    fn read(
        file: <Arc<File> as kernel::types::ForeignOwnable>::Borrowed<'_>,
        mut user: UserSliceWriter,
        nonblock: bool,
    ) -> Result<usize> {
        const BYTES: usize = core::mem::size_of::<events::Record>();
        let events = &pbs().ok_or(ENODEV)?.events;
        if user.len() < BYTES {
            return Err(EINVAL);
        }
        let mut batch = [events::Record::default(); BATCH];
        let mut total = 0;
        loop {
            let position = {
                let mut position = file.position.lock();
                while user.len() >= BYTES {
                    let room = (user.len() / BYTES).min(BATCH);
                    let Some(batch) = batch.get_mut(..room) else {
                        break;
                    };
                    let before = *position;
                    let filled = events.take(&mut position, batch);
                    for record in batch.iter().take(filled) {
                        if let Err(error) = wire::write(&mut user, *record) {
                            *position = before;
                            return if total == 0 { Err(error) } else { Ok(total) };
                        }
                    }
                    total += filled * BYTES;
                    if filled < room {
                        break;
                    }
                }
                *position
            };
            if total != 0 {
                return Ok(total);
            }
            if nonblock {
                return Err(EAGAIN);
            }
            events.wait(position)?;
        }
    }

    fn write(
        file: <Arc<File> as kernel::types::ForeignOwnable>::Borrowed<'_>,
        user: UserSliceReader,
        _nonblock: bool,
    ) -> Result<usize> {
        file.keep(write_plan(user))
    }

    fn poll<'a>(
        file: <Arc<File> as kernel::types::ForeignOwnable>::Borrowed<'a>,
        table: &PollTable<'a>,
    ) -> u32 {
        let position = *file.position.lock();
        match pbs() {
            Some(pbs) => pbs.events.poll(position, table) | kernel::poll::OUT,
            None => kernel::poll::ERR,
        }
    }

    fn ioctl(
        file: <Arc<File> as kernel::types::ForeignOwnable>::Borrowed<'_>,
        cmd: u32,
        arg: usize,
    ) -> Result<isize> {
        match cmd {
            INFO => wire::put(arg, info()?)?,
            ERROR => {
                let refusal = *file.refusal.lock();
                wire::put(arg, refusal)?
            }
            SEEK => *file.position.lock() = wire::get(arg)?,
            ATTACH => file.keep(attach_thread(arg))?,
            TASK_END => file.keep(end_task(arg))?,
            DETACH => file.keep(detach_thread(arg))?,
            DROP => file.keep(drop_plan(arg))?,
            GET_PLAN => file.keep(get_plan(arg))?,
            _ => return Err(ENOTTY),
        }
        Ok(0)
    }
}

fn detach_thread(arg: usize) -> Result<(), Refused> {
    let pid: i32 = wire::get(arg)?;
    let task = thread(pid)?;
    if !core::ptr::eq(&*task, current!()) {
        privileged()?;
    }
    attach::detach(&task).map_err(|error| {
        if error == ESRCH {
            Refused::new(ESRCH, format_args!("thread {} is not attached", task.pid()))
        } else {
            error.into()
        }
    })
}

fn drop_plan(arg: usize) -> Result<(), Refused> {
    privileged()?;
    let cpu: u32 = wire::get(arg)?;
    plan::drop_plan(cpu).map_err(|error| {
        if error == ENOENT {
            Refused::new(ENOENT, format_args!("CPU {cpu} has no plan"))
        } else if error == ENODEV {
            Refused::new(ENODEV, format_args!("there is no CPU {cpu}"))
        } else {
            error.into()
        }
    })
}
