// SPDX-License-Identifier: GPL-2.0

//! Arrival and departure of CPUs.

use super::{calibrate, change, control, usage};
use crate::{
    linux::sched_class::RunQueueGuard,
    percpu::{access, cpus},
    state::insn_clock::Tier,
    thread::leave,
};
use kernel::{c_str, cpuhp::CpuHotplug, prelude::*, str::CStr};

/// A CPU is about to be deactivated: its plan goes, and its threads while it still runs them.
#[no_mangle]
extern "C" fn sched_pbs_cpu_deactivate(number: u32) {
    let (Some(cpu), Ok(control)) = (cpus::get(number), control::get()) else {
        return;
    };
    let mut locked = control.lock();
    if let Err(error) = change::remove(&mut locked, cpu, None) {
        pr_warn!("CPU {number}: could not take its plan away: {error:?}\n");
    }
    drop(locked);
    leave::eject_leaving(cpu);
    usage::give_back(&mut control.lock(), cpu);
}

/// Detects how a CPU that comes up can count, and takes its counter away when it goes.
pub(crate) struct CpuUp;

impl CpuHotplug for CpuUp {
    const NAME: &'static CStr = c_str!("sched/pbs:online");

    fn online(number: u32) -> Result {
        let cpu = cpus::get(number).ok_or(ENODEV)?;
        let rate = calibrate::measure_rate();
        cpu.counter
            .set_found(calibrate::find(cpu), rate.rate, rate.spread_permille);
        let mut rq = RunQueueGuard::lock(cpu.id());
        access::set_cpu(rq.as_mut(), cpu);
        access::with_state(rq.as_mut(), |_, cpu, state| state.set_rate(cpu));
        Ok(())
    }

    fn offline(number: u32) -> Result {
        let cpu = cpus::get(number).ok_or(ENODEV)?;
        // The CPU has a counter only if a thread is left that could not be taken out of the class.
        drop(cpu.lock(|_, _, state| state.insn_clock.install(None, Tier::Clock)));
        Ok(())
    }
}
