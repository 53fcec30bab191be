// SPDX-License-Identifier: GPL-2.0

//! `/dev/pbs_inputs`: all that the policy of each CPU is told, for who tells it again elsewhere.
//!
//! While somebody has the device open a static key is on, by which every [`Node`] notes what it is
//! told in the ring of its CPU (`pbs_core`, `record.rs`). The ring's one writer is the [`Tap`] of the
//! node in force, so who writes has the run queue locked; it goes from node to node as plans change,
//! and stands in the CPU's [`State`] while there is none. Readers map the rings. Nobody is woken: who
//! records looks again every now and then, and is told by the ring what it has missed.
//!
//! A plan comes into force under a number. What was written is kept under that number as long as
//! somebody records ([`Kept`], under the control mutex), for a node can't be made again without it.
//!
//! The key is switched with the lock of CPU hotplug and the control mutex held. So the plan of whoever
//! is writing one is recorded from its begin on, or not at all.
//!
//! [`Node`]: crate::pbs_core::Node
//! [`State`]: crate::state::State

use crate::{
    linux::{
        storage::CHARGED,
        wire::{self, Wire},
    },
    pbs_core::{self, wire::encode, Config, Input, InputKind, Rate},
    percpu::cpu::Cpu,
    plans::global::{pbs, Control},
};
use core::mem::{offset_of, size_of};
use kernel::{
    alloc::{KVVec, KVec},
    bindings, c_str,
    capability::{capable, Capability},
    ioctl::{_IOR, _IOWR},
    miscdevice::{MiscDevice, MiscDeviceRegistration, Options},
    mmap::MmapArea,
    prelude::*,
    record_ring::{RecordRing, RingName, RingTable, RingWriter},
    sync::Arc,
    uaccess::UserSlice,
};

/// Inputs held of each CPU: 2 MiB. Who records and sleeps for 20 ms may miss some where a CPU is told
/// more than three things a microsecond.
const CAPACITY: usize = 1 << 16;

/// The inputs of one CPU.
type Ring = RecordRing<Wire<Input>, CAPACITY>;

/// Whether somebody records.
#[inline(always)]
fn is_recorded() -> bool {
    // SAFETY: The key is defined in linux.c, which is built in.
    unsafe {
        kernel::static_branch_unlikely!(
            kernel::bindings::sched_pbs_recorded,
            kernel::bindings::static_key_false,
            key
        )
    }
}

/// Notes what the policy of a CPU is told. It is a part of the CPU's state, so who has it has locked
/// the run queue, and is the only one.
#[derive(Default)]
pub(crate) struct Tap {
    /// `None` until the CPU has a ring.
    ring: Option<RingWriter<Wire<Input>, CAPACITY>>,
}

impl pbs_core::Tap for Tap {
    #[inline(always)]
    fn is_on(&self) -> bool {
        is_recorded()
    }

    #[inline]
    fn note(&mut self, input: Input) {
        if let Some(ring) = &mut self.ring {
            ring.write(|| Wire(input), |_| ());
        }
    }
}

/// The rings of inputs.
pub(crate) struct Inputs {
    rings: RingTable<Wire<Input>, CAPACITY>,
}

impl Inputs {
    /// No ring yet.
    pub(crate) fn new() -> Result<Self> {
        let rings = RingTable::new(kernel::cpu::nr_cpu_ids() as usize)?;
        Ok(Self { rings })
    }

    /// Sees to it that a CPU has a ring if somebody records. Sleeps.
    pub(crate) fn prepare(&self, control: &mut Control, cpu: &Cpu) -> Result {
        if control.kept.recorders == 0 || self.of_cpu(cpu.number()).is_some() {
            return Ok(());
        }
        let (ring, writer) = Ring::new(RingName {
            magic: bindings::PBS_INPUTS_MAGIC,
            version: bindings::PBS_INPUTS_VERSION as u16,
            number: cpu.number(),
        })?;
        self.rings.add(ring)?;
        cpu.lock(|_, _, state| state.tap_mut().ring = Some(writer));
        Ok(())
    }

    fn of_cpu(&self, cpu: u32) -> Option<&'static Ring> {
        self.rings.iter().find(|ring| ring.number() == cpu)
    }
}

/// How much of plans is kept.
const MAX_KEPT_BYTES: usize = 256 << 20;

/// A plan that was written.
struct KeptPlan {
    number: u64,
    bytes: Arc<KVVec<u8>>,
    /// For each of its CPUs, with what it began.
    cpus: KVec<(u32, Config, Rate)>,
}

/// The plans that were written while somebody records.
#[derive(Default)]
pub(crate) struct Kept {
    /// How many record.
    recorders: u32,
    /// The number of the last plan that was written meanwhile.
    last: u64,
    /// By their numbers, each in the place of the one that came so many before.
    plans: KVec<Option<KeptPlan>>,
}

impl Kept {
    /// The number of the plan that is about to come into force; 0: nobody records.
    pub(crate) fn number(&mut self) -> u64 {
        if self.recorders == 0 {
            return 0;
        }
        self.last += 1;
        self.last
    }

    /// Keeps the plan that got the last number, which has come into force. If there is no memory for
    /// it, whoever asks for it is told that it is not kept.
    pub(crate) fn keep(
        &mut self,
        bytes: KVVec<u8>,
        cpus: impl Iterator<Item = (u32, Config, Rate)>,
    ) {
        if self.recorders == 0 {
            return;
        }
        let number = self.last;
        let keep = || -> Result<KeptPlan> {
            let mut begun = KVec::new();
            for cpu in cpus {
                begun.push(cpu, CHARGED)?;
            }
            Ok(KeptPlan {
                number,
                bytes: Arc::new(bytes, CHARGED)?,
                cpus: begun,
            })
        };
        let Ok(plan) = keep() else { return };
        while self.plans.len() < bindings::PBS_MAX_KEPT_PLANS as usize {
            if self.plans.push(None, CHARGED).is_err() {
                return;
            }
        }
        let place = number as usize % self.plans.len();
        if let Some(place) = self.plans.get_mut(place) {
            *place = Some(plan);
        }
        while self.bytes() > MAX_KEPT_BYTES {
            let kept = self.plans.iter_mut().filter(|place| place.is_some());
            let oldest = kept.min_by_key(|place| place.as_ref().map(|plan| plan.number));
            if let Some(oldest) = oldest {
                *oldest = None;
            }
        }
    }

    fn bytes(&self) -> usize {
        self.plans
            .iter()
            .flatten()
            .map(|plan| plan.bytes.len())
            .sum()
    }

    /// The plan of that number, and with what it began on that CPU.
    fn get(&self, number: u64, cpu: u32) -> Option<(Arc<KVVec<u8>>, Config, Rate)> {
        let plan = self
            .plans
            .iter()
            .flatten()
            .find(|plan| plan.number == number)?;
        let of_cpu = |begun: &&(u32, Config, Rate)| begun.0 == cpu;
        let (_, config, rate) = plan.cpus.iter().find(of_cpu)?;
        Some((plan.bytes.clone(), *config, *rate))
    }
}

/// Somebody who records, as long as it is there.
pub(crate) struct Recorder;

impl Recorder {
    fn new() -> Result<Self> {
        let pbs = pbs().ok_or(ENODEV)?;
        let hotplug = kernel::cpu::hotplug_read_lock();
        let mut control = pbs.control.lock_killable()?;
        control.kept.recorders += 1;
        set_recorded(true);
        // From here on it takes itself back.
        let recorder = Self;
        for cpu in pbs.cpus() {
            if pbs.events.of_cpu(cpu.number()).is_none() {
                // It gets one with its first plan.
                continue;
            }
            if let Err(error) = pbs.inputs.prepare(&mut control, cpu) {
                // Which takes both.
                drop(control);
                drop(hotplug);
                drop(recorder);
                return Err(error);
            }
        }
        Ok(recorder)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let Some(pbs) = pbs() else { return };
        let _hotplug = kernel::cpu::hotplug_read_lock();
        let mut control = pbs.control.lock();
        set_recorded(false);
        control.kept.recorders -= 1;
        if control.kept.recorders == 0 {
            control.kept.plans = KVec::new();
        }
    }
}

/// One more records, or one less. The lock of CPU hotplug is held.
fn set_recorded(on: bool) {
    // SAFETY: It has no other requirement than that lock.
    unsafe { bindings::sched_pbs_record(on) };
}

/// Registers the device.
pub(crate) fn register() -> Result<Pin<KBox<MiscDeviceRegistration<Device>>>> {
    KBox::pin_init(
        MiscDeviceRegistration::new(Options {
            name: c_str!("pbs_inputs"),
            mode: 0o600,
        }),
        GFP_KERNEL,
    )
}

/// The device.
pub(crate) struct Device;

const MAGIC: u32 = bindings::PBS_IOC_MAGIC;
const INFO: u32 = _IOR::<bindings::pbs_inputs_info>(MAGIC, 16);
const KEPT_PLAN: u32 = _IOWR::<bindings::pbs_kept_plan>(MAGIC, 17);

#[vtable]
impl MiscDevice for Device {
    type Ptr = Arc<Recorder>;

    fn open() -> Result<Arc<Recorder>> {
        // As who writes plans, which are read here.
        if !capable(Capability::SysNice) {
            return Err(EPERM);
        }
        Ok(Arc::new(Recorder::new()?, CHARGED)?)
    }

    fn mmap(
        _recorder: <Arc<Recorder> as kernel::types::ForeignOwnable>::Borrowed<'_>,
        area: &mut MmapArea<'_>,
    ) -> Result {
        let pbs = pbs().ok_or(ENODEV)?;
        let cpu = pbs.cpu_of_ring::<{ Ring::BYTES }>(area.offset_bytes())?;
        pbs.inputs.of_cpu(cpu.number()).ok_or(ENOENT)?.map(area)
    }

    fn ioctl(
        _recorder: <Arc<Recorder> as kernel::types::ForeignOwnable>::Borrowed<'_>,
        cmd: u32,
        arg: usize,
    ) -> Result<isize> {
        match cmd {
            INFO => wire::put(arg, info()?)?,
            KEPT_PLAN => kept_plan(arg)?,
            _ => return Err(ENOTTY),
        }
        Ok(0)
    }
}

fn info() -> Result<bindings::pbs_inputs_info> {
    let pbs = pbs().ok_or(ENODEV)?;
    Ok(bindings::pbs_inputs_info {
        version: bindings::PBS_INPUTS_VERSION,
        nr_cpu_ids: kernel::cpu::nr_cpu_ids(),
        ring_bytes: Ring::BYTES as u64,
        next_plan: pbs.control.lock_killable()?.kept.last + 1,
        ..bindings::pbs_inputs_info::default()
    })
}

fn kept_plan(arg: usize) -> Result {
    let mut request: bindings::pbs_kept_plan = wire::get(arg)?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let pbs = pbs().ok_or(ENODEV)?;
    // Not with the mutex: user memory may take as long as it likes.
    let kept = pbs
        .control
        .lock_killable()?
        .kept
        .get(request.number, request.cpu);
    let (plan, config, rate) = kept.ok_or(ENOENT)?;
    let config = encode::config(&config);
    let room = request.bytes;
    request.bytes = (config.len() + plan.len()) as u64;
    request.rate_insns_per_ms = rate.insns_per_ms();
    wire::put(arg, request)?;
    if request.bytes > room {
        return Err(ENOSPC);
    }
    let mut user = UserSlice::new(request.buffer as _, request.bytes as usize).writer();
    user.write_slice(&config)?;
    user.write_slice(&plan)
}

// The wire format and the policy mean the same.
const _: () = {
    assert!(size_of::<Input>() == size_of::<bindings::pbs_input>());
    assert!(offset_of!(Input, value) == offset_of!(bindings::pbs_input, value));
    assert!(offset_of!(Input, more) == offset_of!(bindings::pbs_input, more));
    assert!(offset_of!(Input, process) == offset_of!(bindings::pbs_input, process));
    assert!(offset_of!(Input, kind) == offset_of!(bindings::pbs_input, kind));
    assert!(offset_of!(Input, reason) == offset_of!(bindings::pbs_input, reason));
    assert!(Input::EVENT as u32 == bindings::PBS_IN_EVENT);
    assert!(bindings::pbs_input_kind_PBS_IN_ANSWER == InputKind::Answer as u32);
};
