// SPDX-License-Identifier: GPL-2.0

//! `/dev/pbs_inputs`: all inputs of the policy of each CPU, for a replay elsewhere.
//!
//! Inputs are recorded as long as the device is open. Readers map the rings
//! ([`rings::inputs`](crate::rings::inputs)). No reader is woken: a recorder checks again at
//! intervals, and the ring shows the number of inputs that it has missed.

use crate::{
    linux::{storage::CHARGED, wire},
    pbs_core::wire::encode,
    percpu::cpus,
    plans::{
        control,
        recorder::Recorder,
        snapshot::{self, Taken},
    },
    rings::inputs::{self, Ring},
};
use kernel::{
    bindings, c_str,
    capability::{capable, Capability},
    ioctl::{_IOR, _IOWR},
    miscdevice::{MiscDevice, MiscDeviceRegistration, Options},
    mmap::MmapArea,
    prelude::*,
    sync::Arc,
    uaccess::UserSlice,
};

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
const SNAPSHOT: u32 = _IOWR::<bindings::pbs_snapshot>(MAGIC, 18);

#[vtable]
impl MiscDevice for Device {
    type Ptr = Arc<Recorder>;

    fn open() -> Result<Arc<Recorder>> {
        // Like a writer of plans, which are read here.
        if !capable(Capability::SysNice) {
            return Err(EPERM);
        }
        Ok(Arc::new(Recorder::new()?, CHARGED)?)
    }

    fn mmap(
        _recorder: <Arc<Recorder> as kernel::types::ForeignOwnable>::Borrowed<'_>,
        area: &mut MmapArea<'_>,
    ) -> Result {
        let cpu = cpus::of_ring::<{ Ring::BYTES }>(area.offset_bytes())?;
        inputs::of_cpu(cpu.number()).ok_or(ENOENT)?.map(area)
    }

    fn ioctl(
        _recorder: <Arc<Recorder> as kernel::types::ForeignOwnable>::Borrowed<'_>,
        cmd: u32,
        arg: usize,
    ) -> Result<isize> {
        match cmd {
            INFO => wire::put(arg, info()?)?,
            KEPT_PLAN => kept_plan(arg)?,
            SNAPSHOT => take_snapshot(arg)?,
            _ => return Err(ENOTTY),
        }
        Ok(0)
    }
}

fn info() -> Result<bindings::pbs_inputs_info> {
    Ok(bindings::pbs_inputs_info {
        version: bindings::PBS_INPUTS_VERSION,
        nr_cpu_ids: kernel::cpu::nr_cpu_ids(),
        ring_bytes: Ring::BYTES as u64,
        next_plan: control::get()?.lock_killable()?.kept.next(),
        ..bindings::pbs_inputs_info::default()
    })
}

fn kept_plan(arg: usize) -> Result {
    let mut request: bindings::pbs_kept_plan = wire::get(arg)?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    // Not with the mutex: user memory may take as long as it likes.
    let kept = control::get()?
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

fn take_snapshot(arg: usize) -> Result {
    let mut request: bindings::pbs_snapshot = wire::get(arg)?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let taken = match snapshot::take(request.cpu, request.bytes)? {
        Taken::Snapshot(snapshot) => snapshot,
        Taken::TooSmall {
            plan_bytes,
            enough_bytes,
        } => {
            request.plan_bytes = plan_bytes;
            request.bytes = enough_bytes;
            wire::put(arg, request)?;
            return Err(ENOSPC);
        }
    };
    let words = taken.words();
    request.next_input = taken.next_input;
    request.time_ns = taken.time_ns;
    request.installed_ns = taken.installed_ns;
    request.plan_bytes = taken.plan.len() as u64;
    request.bytes = (taken.plan.len() + words.len()) as u64;
    wire::put(arg, request)?;
    // The caller has room for more: what `take` compared is a bound of both.
    let mut user = UserSlice::new(request.buffer as _, request.bytes as usize).writer();
    user.write_slice(&taken.plan)?;
    user.write_slice(words)
}
