// SPDX-License-Identifier: GPL-2.0

//! `/dev/pbs_plan`: plans in, events out, and the calls of plan processes.
//!
//! See `include/uapi/linux/pbs.h` for the format.

use crate::{
    linux::{
        storage::CHARGED,
        wire::{self, Wire},
    },
    pbs_core::{
        wire::{self as format, encode},
        Config, Errno,
    },
    percpu::cpus,
    plans::{change, read_back},
    protect::watchdog,
    rings::events::{self, Reader},
    show::process,
    thread::{
        attach,
        end::{self, NotEnded},
        leave,
    },
};
use core::{
    fmt::{self, Write},
    mem::offset_of,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};
use kernel::{
    alloc::KVVec,
    bindings, c_str,
    capability::{capable, Capability},
    current,
    ioctl::{_IOR, _IOW, _IOWR},
    iov::{IovIterDest, IovIterSource},
    miscdevice::{MiscDevice, MiscDeviceRegistration, Options},
    mmap::MmapArea,
    new_mutex,
    poll::PollTable,
    prelude::*,
    sync::{Arc, Mutex},
    task::Task,
    task_ext::{give_way, may_log},
    types::ARef,
    uaccess::UserSlice,
    uaccess_ext::put_user_u32,
};

/// The largest plan that is accepted: all CPUs of a large node, or one with all slots.
const MAX_PLAN_BYTES: usize = 256 << 20;

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
    /// The next event that this reader gets. Held while events are copied: this way two threads
    /// that read one file share the events between them.
    #[pin]
    reader: Mutex<Reader>,
    /// Reason why the last call was refused.
    #[pin]
    refusal: Mutex<bindings::pbs_error>,
    /// Whether a call was refused: a caller that only succeeds has no use for the lock.
    refused: AtomicBool,
    /// Whether a plan was written here, and the id of the last one.
    wrote: AtomicBool,
    plan_id: AtomicU64,
}

/// Writes text into the reason of a refusal; what does not fit is cut off.
struct RefusalText<'a> {
    text: &'a mut [kernel::ffi::c_char],
    used: usize,
}

impl fmt::Write for RefusalText<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // The last byte stays zero.
        let end = self.text.len() - 1;
        let room = self.text.get_mut(self.used..end).unwrap_or_default();
        for (to, from) in room.iter_mut().zip(text.bytes()) {
            *to = from as _;
            self.used += 1;
        }
        Ok(())
    }
}

impl File {
    /// Stores the reason of a refusal for `PBS_IOC_ERROR`; returns the error.
    fn refuse(&self, error: Error, text: fmt::Arguments<'_>) -> Error {
        self.refuse_at(u64::MAX, error, text)
    }

    /// Stores the reason of a refusal that is about a place in the written plan.
    fn refuse_at(&self, offset_bytes: u64, error: Error, text: fmt::Arguments<'_>) -> Error {
        let mut refusal = self.refusal.lock();
        self.refused.store(true, Ordering::Relaxed);
        *refusal = bindings::pbs_error {
            error: -error.to_errno(),
            offset_bytes,
            ..bindings::pbs_error::default()
        };
        let mut reason = RefusalText {
            text: &mut refusal.text,
            used: 0,
        };
        // Writing a reason does not fail.
        let _ = reason.write_fmt(text);
        error
    }

    /// Performs a call, and ensures that a refusal has a reason.
    fn call<T>(&self, call: impl FnOnce() -> Result<T>) -> Result<T> {
        if self.refused.load(Ordering::Relaxed) {
            let mut refusal = self.refusal.lock();
            refusal.error = 0;
            self.refused.store(false, Ordering::Relaxed);
        }
        let result = call();
        if let Err(error) = result {
            if !self.refused.load(Ordering::Relaxed) {
                self.refuse(error, format_args!("the kernel refused it: {error:?}"));
            }
        }
        result
    }
}

/// Whether the caller may change plans and attach threads.
fn privileged(file: &File) -> Result {
    if capable(Capability::SysNice) {
        Ok(())
    } else {
        Err(file.refuse(EPERM, format_args!("this needs CAP_SYS_NICE")))
    }
}

/// The thread of that id, as the caller numbers threads; 0 is the caller.
fn thread(file: &File, pid: i32) -> Result<ARef<Task>> {
    if pid == 0 {
        Ok(current!().into())
    } else {
        Task::find_by_vpid(pid)
            .ok_or_else(|| file.refuse(ESRCH, format_args!("there is no thread {pid}")))
    }
}

#[inline]
fn no_reserved(file: &File, reserved: &[u32]) -> Result {
    if reserved.iter().fold(0, |all, word| all | word) == 0 {
        Ok(())
    } else {
        Err(file.refuse(EINVAL, format_args!("a reserved field is not zero")))
    }
}

/// Number of plans that may be written at a time; each takes memory several times of its size.
const MAX_WRITERS: u32 = 4;

/// Number of plans that are being written.
static WRITERS: AtomicU32 = AtomicU32::new(0);

/// A writer of a plan.
struct PlanWriter;

impl PlanWriter {
    fn new(file: &File) -> Result<Self> {
        let more = |writers| (writers < MAX_WRITERS).then_some(writers + 1);
        match WRITERS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(Self),
            Err(_) => Err(file.refuse(
                EBUSY,
                format_args!("{MAX_WRITERS} plans are being written already; try again"),
            )),
        }
    }
}

impl Drop for PlanWriter {
    fn drop(&mut self) {
        WRITERS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Size of the pieces in which a plan is copied.
const PIECE_BYTES: usize = 1 << 16;

/// Faults in succession after which memory of a reader counts as absent.
const MAX_FAULTS: u32 = 8;

/// Copies the written plan; stops if the caller is killed.
fn take_in(user: &mut IovIterSource<'_>) -> Result<KVVec<u8>> {
    let len = user.len();
    let mut bytes = KVVec::with_capacity(len, CHARGED)?;
    while bytes.len() < len {
        give_way()?;
        let from = bytes.len();
        bytes.extend_with(PIECE_BYTES.min(len - from), 0u8, CHARGED)?;
        user.read_slice(bytes.get_mut(from..).unwrap_or_default())?;
    }
    Ok(bytes)
}

fn write_plan(file: &File, user: &mut IovIterSource<'_>) -> Result<usize> {
    privileged(file)?;
    let len = user.len();
    if len > MAX_PLAN_BYTES {
        return Err(file.refuse(
            E2BIG,
            format_args!("a plan of {len} bytes is over the limit of {MAX_PLAN_BYTES}"),
        ));
    }
    let _writer = PlanWriter::new(file)?;
    let bytes = take_in(user)?;
    let plan_id = change::install(bytes, watchdog::begin).map_err(|refused| match refused {
        change::InstallRefusal::Plan(refusal) => {
            let error = match refusal.errno() {
                Errno::Invalid => EINVAL,
                Errno::TooBig => E2BIG,
                Errno::NoMemory => ENOMEM,
                Errno::NoDevice => ENODEV,
                Errno::NoProcess => ESRCH,
                Errno::Interrupted => EINTR,
            };
            file.refuse_at(refusal.offset_bytes, error, format_args!("{refusal}"))
        }
        change::InstallRefusal::NoCpu { cpu, offset_bytes } => file.refuse_at(
            offset_bytes,
            ENODEV,
            format_args!("CPU {cpu} is not online; plan for a CPU that is"),
        ),
        change::InstallRefusal::Elsewhere { process, cpu } => file.refuse(
            EEXIST,
            format_args!(
                "process {process} is in the plan of CPU {cpu}, which this plan does not \
                 replace; name that CPU too, or take another id"
            ),
        ),
        change::InstallRefusal::Kernel(error) => error,
    })?;
    file.plan_id.store(plan_id, Ordering::Relaxed);
    file.wrote.store(true, Ordering::Relaxed);
    Ok(len)
}

fn attach_thread(file: &File, arg: usize) -> Result {
    let request: bindings::pbs_attach = wire::get(arg)?;
    no_reserved(file, &request.reserved)?;
    if request.flags & !bindings::PBS_ATTACH_ONE_TASK != 0 {
        return Err(file.refuse(EINVAL, format_args!("unknown flags {:#x}", request.flags)));
    }
    let process = request.process;
    let task = thread(file, request.pid)?;
    let one_task = request.flags & bindings::PBS_ATTACH_ONE_TASK != 0;
    // In the order of sched_setscheduler(2), of which this is a kind.
    privileged(file)?;
    task.may_be_scheduled()
        .map_err(|error| file.refuse(error, format_args!("a security module refuses it")))?;
    attach::attach(&task, process, one_task).map_err(|refused| match refused {
        attach::AttachRefusal::NoProcess => file.refuse(
            ENOENT,
            format_args!("no plan has process {process}; write the plan first"),
        ),
        attach::AttachRefusal::Occupied => file.refuse(
            EBUSY,
            format_args!("process {process} has a thread already"),
        ),
        attach::AttachRefusal::Done => file.refuse(
            ENOENT,
            format_args!("process {process} has ended all its tasks"),
        ),
        attach::AttachRefusal::Attached => file.refuse(
            EBUSY,
            format_args!("thread {} is attached already", task.pid()),
        ),
        attach::AttachRefusal::Kthread => file.refuse(
            EINVAL,
            format_args!("thread {} is of the kernel", task.pid()),
        ),
        attach::AttachRefusal::Exiting => {
            file.refuse(ESRCH, format_args!("thread {} is exiting", task.pid()))
        }
        attach::AttachRefusal::Cpuset(cpu) => file.refuse(
            EINVAL,
            format_args!(
                "the cpuset of thread {} does not have CPU {cpu}",
                task.pid()
            ),
        ),
        attach::AttachRefusal::Kernel(error) => match error {
            EAGAIN => file.refuse(
                EAGAIN,
                format_args!("somebody changed the affinity of thread {}", task.pid()),
            ),
            ENOSPC => file.refuse(
                ENOSPC,
                format_args!("too many threads are attached on that CPU"),
            ),
            error => error,
        },
    })
}

fn end_task(file: &File, arg: usize) -> Result {
    let request: bindings::pbs_task_end = wire::get(arg)?;
    no_reserved(file, &request.reserved)?;
    // Written first: once the task has ended the call must not fail any more.
    let answer = arg.wrapping_add(offset_of!(bindings::pbs_task_end, next_task));
    put_user_u32(bindings::PBS_NO_TASK, answer)?;
    let expected = (request.task != bindings::PBS_NO_TASK).then_some(request.task);
    let ended = end::end_task(current!(), expected).map_err(|refused| match refused {
        NotEnded::NotAttached => file.refuse(
            ESRCH,
            format_args!("the caller is not attached to a plan process"),
        ),
        NotEnded::NotActive => file.refuse(
            EBUSY,
            format_args!("another thread of the process has its turn"),
        ),
        NotEnded::Other(task) => file.refuse(
            EINVAL,
            format_args!("the caller's task is {task}, not {}", request.task),
        ),
    })?;
    if let Some(next) = ended.next {
        // The page was writable a moment ago; if it isn't any more, the answer is lost, not the
        // end.
        let _ = put_user_u32(next, answer);
    }
    Ok(())
}

fn get_plan(file: &File, arg: usize) -> Result {
    privileged(file)?;
    let mut request: bindings::pbs_get_plan = wire::get(arg)?;
    let (plan, generation) = read_back::read_back(request.cpu)
        .map_err(|error| plan_refusal(file, request.cpu, error))?;
    let room = request.bytes;
    request.bytes = plan.len() as u64;
    request.generation = generation;
    wire::put(arg, request)?;
    if request.bytes > room {
        return Err(file.refuse(
            ENOSPC,
            format_args!("the plan has {} bytes, the buffer {room}", request.bytes),
        ));
    }
    UserSlice::new(request.buffer as _, plan.len())
        .writer()
        .write_slice(&plan)
}

fn get_process(file: &File, arg: usize) -> Result {
    privileged(file)?;
    let request: bindings::pbs_process = wire::get(arg)?;
    no_reserved(file, &[request.reserved32])?;
    if request.reserved.iter().any(|word| *word != 0) {
        no_reserved(file, &[1])?;
    }
    let id = request.process;
    let answer = process::read(id).map_err(|error| {
        if error == ENOENT {
            file.refuse(ENOENT, format_args!("no plan has process {id}"))
        } else {
            error
        }
    })?;
    wire::put(arg, answer)
}

fn configure(file: &File, arg: usize) -> Result {
    privileged(file)?;
    let request: bindings::pbs_configure = wire::get(arg)?;
    no_reserved(file, &[request.reserved])?;
    let (cpu, plan_id) = (request.cpu, request.plan_id);
    let bytes = request.config_bytes as usize;
    // Numbers that the caller does not know have their defaults, as in a plan.
    let mut written = encode::config(&Config::DEFAULT);
    let is_whole = bytes >= format::LEAST_CONFIG_BYTES && bytes % 8 == 0;
    let place = written.get_mut(..bytes).filter(|_| is_whole);
    let place = place.ok_or_else(|| {
        file.refuse(
            EINVAL,
            format_args!(
                "config_bytes is {bytes}; write {}, the size of struct pbs_config",
                format::CONFIG_BYTES
            ),
        )
    })?;
    UserSlice::new(request.config as _, bytes)
        .reader()
        .read_slice(place)?;
    let refused = |refusal| file.refuse(EINVAL, format_args!("{refusal}"));
    let config = format::config(&written).map_err(refused)?;
    let changed = change::configure(cpu, plan_id, request.generation, &config);
    changed.map_err(|refusal| match refusal {
        change::ConfigureRefusal::Config(refusal) => refused(refusal),
        change::ConfigureRefusal::OtherPlan(other) => file.refuse(
            ENOENT,
            format_args!(
                "CPU {cpu} has plan {other}, not plan {plan_id}; read its configuration again"
            ),
        ),
        change::ConfigureRefusal::Changed => file.refuse(
            EAGAIN,
            format_args!(
                "the configuration of CPU {cpu} has changed since it was read; \
                 read it and change it again"
            ),
        ),
        change::ConfigureRefusal::NoPlan => plan_refusal(file, cpu, ENOENT),
        change::ConfigureRefusal::Kernel(error) => plan_refusal(file, cpu, error),
    })
}

fn info() -> Result<bindings::pbs_info> {
    let events = events::get().ok_or(ENODEV)?;
    Ok(bindings::pbs_info {
        version: bindings::PBS_VERSION,
        tier: cpus::tier() as u32,
        max_slots: format::MAX_SLOTS as u32,
        max_processes: format::MAX_PROCESSES,
        max_slot_insns: format::MAX_SLOT_INSNS,
        rate_insns_per_ms: cpus::rate().insns_per_ms(),
        rate_spread_permille: cpus::rate_spread_permille(),
        first_seq: events.first_seq(),
        next_seq: events::next_seq(),
        ring_bytes: events::RING_BYTES as u64,
        nr_cpu_ids: kernel::cpu::nr_cpu_ids(),
        nr_rings: events.rings() as u32,
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
const RENEW: u32 = _IOW::<u32>(MAGIC, 8);
const GET_PROCESS: u32 = _IOWR::<bindings::pbs_process>(MAGIC, 9);
const CONFIGURE: u32 = _IOW::<bindings::pbs_configure>(MAGIC, 10);

#[vtable]
impl MiscDevice for Device {
    type Ptr = Arc<File>;

    fn open() -> Result<Arc<File>> {
        let events = events::get().ok_or(ENODEV)?;
        let reader = events.reader(events::next_seq())?;
        let refusal = bindings::pbs_error {
            offset_bytes: u64::MAX,
            ..bindings::pbs_error::default()
        };
        Arc::pin_init(
            pin_init!(File {
                reader <- new_mutex!(reader, "pbs_reader"),
                refusal <- new_mutex!(refusal, "pbs_refusal"),
                refused: AtomicBool::new(false),
                wrote: AtomicBool::new(false),
                plan_id: AtomicU64::new(0),
            }),
            CHARGED,
        )
    }

    fn release(file: Arc<File>) {
        let plan_id = file.plan_id.load(Ordering::Relaxed);
        if file.wrote.load(Ordering::Relaxed) && change::goes_on(plan_id) && may_log() {
            pr_info!("plan {plan_id} goes on without who wrote it, and has closed the device\n");
        }
    }

    fn read(
        file: <Arc<File> as kernel::types::ForeignOwnable>::Borrowed<'_>,
        user: &mut IovIterDest<'_>,
        nonblock: bool,
    ) -> Result<usize> {
        const BYTES: usize = core::mem::size_of::<events::Record>();
        let events = events::get().ok_or(ENODEV)?;
        if user.len() < BYTES {
            return Err(EINVAL);
        }
        let mut total = 0;
        // Memory may seem to be there, and not take what is written: by its tag, for example.
        let mut faults = 0;
        loop {
            let mut reader = file.reader.lock();
            let mut absent = false;
            while user.len() >= BYTES && !absent {
                let Some(record) = events.next(&mut reader) else {
                    break;
                };
                absent = !user.write_nofault(&Wire(record));
                if !absent {
                    reader.pass();
                    total += BYTES;
                    faults = 0;
                }
            }
            let seq = reader.seq();
            // A fault on user memory may take as long as its owner likes: not with the lock, which
            // other users of this file wait for.
            drop(reader);
            if absent {
                faults += 1;
                match give_way().and_then(|()| user.fault_in(BYTES)) {
                    Ok(()) if faults < MAX_FAULTS => continue,
                    Ok(()) if total == 0 => return Err(EFAULT),
                    Ok(()) => return Ok(total),
                    Err(error) if total == 0 => return Err(error),
                    Err(_) => return Ok(total),
                }
            }
            if total != 0 {
                return Ok(total);
            }
            if nonblock {
                return Err(EAGAIN);
            }
            events.wait(seq)?;
        }
    }

    fn write(
        file: <Arc<File> as kernel::types::ForeignOwnable>::Borrowed<'_>,
        user: &mut IovIterSource<'_>,
        _nonblock: bool,
    ) -> Result<usize> {
        file.call(|| write_plan(&file, user))
    }

    fn poll<'a>(
        file: <Arc<File> as kernel::types::ForeignOwnable>::Borrowed<'a>,
        table: &PollTable<'a>,
    ) -> u32 {
        let seq = file.reader.lock().seq();
        match events::get() {
            Some(events) => events.poll(seq, table) | kernel::poll::OUT,
            None => kernel::poll::ERR,
        }
    }

    fn mmap(
        _file: <Arc<File> as kernel::types::ForeignOwnable>::Borrowed<'_>,
        area: &mut MmapArea<'_>,
    ) -> Result {
        let cpu = cpus::of_ring::<{ events::RING_BYTES }>(area.offset_bytes())?;
        events::of_cpu(cpu.number()).ok_or(ENOENT)?.map(area)
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
            SEEK => file.call(|| seek(&file, arg))?,
            ATTACH => file.call(|| attach_thread(&file, arg))?,
            TASK_END => file.call(|| end_task(&file, arg))?,
            DETACH => file.call(|| detach_thread(&file, arg))?,
            DROP => file.call(|| drop_plan(&file, arg))?,
            RENEW => file.call(|| renew(&file, arg))?,
            GET_PLAN => file.call(|| get_plan(&file, arg))?,
            GET_PROCESS => file.call(|| get_process(&file, arg))?,
            CONFIGURE => file.call(|| configure(&file, arg))?,
            _ => return Err(ENOTTY),
        }
        Ok(0)
    }
}

fn seek(file: &File, arg: usize) -> Result {
    let seq: u64 = wire::get(arg)?;
    let events = events::get().ok_or(ENODEV)?;
    let next_seq = events::next_seq();
    if seq > next_seq {
        return Err(file.refuse(
            EINVAL,
            format_args!("event {seq} has not happened; the next one is {next_seq}"),
        ));
    }
    events.seek(&mut file.reader.lock(), seq);
    Ok(())
}

fn detach_thread(file: &File, arg: usize) -> Result {
    let pid: i32 = wire::get(arg)?;
    let task = thread(file, pid)?;
    if !core::ptr::eq(&*task, current!()) {
        privileged(file)?;
    }
    leave::detach(&task).map_err(|error| {
        if error == ESRCH {
            file.refuse(ESRCH, format_args!("thread {} is not attached", task.pid()))
        } else {
            error
        }
    })
}

fn drop_plan(file: &File, arg: usize) -> Result {
    on_plan(file, arg, change::drop_plan)
}

fn renew(file: &File, arg: usize) -> Result {
    on_plan(file, arg, change::renew)
}

/// Calls `function` with the CPU that the call names, and reports why it has failed.
fn on_plan(file: &File, arg: usize, function: impl FnOnce(u32) -> Result) -> Result {
    privileged(file)?;
    let cpu: u32 = wire::get(arg)?;
    function(cpu).map_err(|error| plan_refusal(file, cpu, error))
}

/// Reports that a CPU, or its plan, does not exist.
fn plan_refusal(file: &File, cpu: u32, error: Error) -> Error {
    if error == ENOENT {
        file.refuse(ENOENT, format_args!("CPU {cpu} has no plan"))
    } else if error == ENODEV {
        file.refuse(ENODEV, format_args!("there is no CPU {cpu}"))
    } else {
        error
    }
}
