// SPDX-License-Identifier: GPL-2.0

//! The parts of the class that a test has made to fail.

/// A part of the class that can be made to fail, as a bit.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(crate) enum Fault {
    /// No decision is made any more.
    Decision = 1 << 0,
    /// No thread is woken up that is granted the CPU.
    WakeUp = 1 << 1,
    /// The timer does not expire.
    Timer = 1 << 2,
    /// The counter is not checked for faults.
    Look = 1 << 3,
}

/// The faults of one CPU, until its plan goes. Without `CONFIG_SCHED_CLASS_PBS_FAULTS` there are
/// none.
#[derive(Default)]
pub(crate) struct Faults {
    #[cfg(CONFIG_SCHED_CLASS_PBS_FAULTS)]
    bits: u32,
}

impl Faults {
    /// Whether that part was made to fail. The check costs a `nop` until the first part fails, and
    /// nothing where it can't fail.
    #[inline(always)]
    pub(crate) fn fails(&self, fault: Fault) -> bool {
        #[cfg(CONFIG_SCHED_CLASS_PBS_FAULTS)]
        // SAFETY: The key is defined in fault.c, which is built in.
        let fails = unsafe {
            kernel::static_branch_unlikely!(
                kernel::bindings::pbs_fault_key,
                kernel::bindings::static_key_false,
                key
            )
        } && self.bits & fault as u32 != 0;
        #[cfg(not(CONFIG_SCHED_CLASS_PBS_FAULTS))]
        let fails = {
            let _ = fault;
            false
        };
        fails
    }

    /// Makes that part fail.
    #[cfg(CONFIG_SCHED_CLASS_PBS_FAULTS)]
    pub(crate) fn add(&mut self, fault: Fault) {
        self.bits |= fault as u32;
    }

    /// Removes all faults, as the plan has gone.
    pub(crate) fn mend(&mut self) {
        *self = Self::default();
    }
}
