// SPDX-License-Identifier: GPL-2.0

//! Those who record the inputs of the policy.
//!
//! Recording is switched on and off with the lock of CPU hotplug and the control mutex held. So the
//! plan of whoever is writing one is recorded from its begin on, or not at all.

use super::control::{self, Control};
use crate::{
    percpu::{cpu::Cpu, cpus},
    rings::{
        events,
        inputs::{self, set_recorded},
    },
};
use kernel::prelude::*;

/// Somebody who records, as long as it is there.
pub(crate) struct Recorder;

impl Recorder {
    /// One more records, as long as it is there.
    pub(crate) fn new() -> Result<Self> {
        let hotplug = kernel::cpu::hotplug_read_lock();
        let mut control = control::get()?.lock_killable()?;
        control.kept.add_recorder();
        set_recorded(&hotplug, true);
        // From here on it takes itself back.
        let recorder = Self;
        for cpu in cpus::all() {
            if events::of_cpu(cpu.number()).is_none() {
                // It gets one with its first plan.
                continue;
            }
            if let Err(error) = prepare(&mut control, cpu) {
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
        let Ok(control) = control::get() else { return };
        let hotplug = kernel::cpu::hotplug_read_lock();
        let mut control = control.lock();
        set_recorded(&hotplug, false);
        control.kept.remove_recorder();
    }
}

/// Makes the ring of inputs of a CPU that has none, if somebody records. Sleeps.
pub(crate) fn prepare(control: &mut Control, cpu: &Cpu) -> Result {
    if !control.kept.is_recorded() || inputs::of_cpu(cpu.number()).is_some() {
        return Ok(());
    }
    let ring = inputs::add(cpu.number())?;
    cpu.lock(|_, _, state| state.tap_mut().write_to(ring));
    Ok(())
}
