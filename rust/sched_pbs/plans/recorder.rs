// SPDX-License-Identifier: GPL-2.0

//! Recorders of the inputs of the policy.
//!
//! Recording is switched on and off with the lock of CPU hotplug and the control mutex held.
//! Therefore a plan that is being written is recorded from its begin on, or not at all.

use super::control::{self, Control};
use crate::{
    percpu::{cpu::Cpu, cpus},
    rings::{
        events,
        inputs::{self, set_recorded},
    },
};
use kernel::prelude::*;

/// A recorder, as long as it exists.
pub(crate) struct Recorder;

impl Recorder {
    /// Adds a recorder, as long as the value exists.
    pub(crate) fn new() -> Result<Self> {
        let hotplug = kernel::cpu::hotplug_read_lock();
        let mut control = control::get()?.lock_killable()?;
        control.kept.add_recorder();
        set_recorded(&hotplug, true);
        // From here on dropping it removes the recorder.
        let recorder = Self;
        for cpu in cpus::all() {
            if events::of_cpu(cpu.number()).is_none() {
                // The CPU gets a ring with its first plan.
                continue;
            }
            if let Err(error) = prepare(&mut control, cpu) {
                // The removal takes both locks.
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

/// Makes the ring of inputs of a CPU that has none, if anyone records. Sleeps.
pub(crate) fn prepare(control: &mut Control, cpu: &Cpu) -> Result {
    if !control.kept.is_recorded() || inputs::of_cpu(cpu.number()).is_some() {
        return Ok(());
    }
    let ring = inputs::add(cpu.number())?;
    cpu.lock(|_, _, state| state.tap_mut().write_to(ring));
    Ok(())
}
