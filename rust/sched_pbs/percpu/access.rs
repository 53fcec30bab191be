// SPDX-License-Identifier: GPL-2.0

//! The one way to the state of a CPU, by its run queue.

use super::cpu::Cpu;
use crate::{linux::sched_class::RunQueue, state::State};
use kernel::prelude::*;

/// Gives the run queue of a CPU that CPU's state. No other run queue gets it.
pub(crate) fn set_cpu(rq: Pin<&mut RunQueue>, cpu: &'static Cpu) {
    if rq.cpu() == cpu.number() {
        // SAFETY: The run queue is locked, and its state is not borrowed: it would have borrowed
        // `rq`.
        unsafe { (*rq.as_ptr()).pbs.state = core::ptr::from_ref(cpu).cast_mut().cast() };
    }
}

/// Calls `function` with the state of the run queue's CPU; `None` before the class is up.
///
/// This is the only access to that state: the lock of the run queue protects it. While the state is
/// borrowed, `rq` is borrowed too: `function` gets a shared reference, by which neither this nor
/// anything that calls back into the class can be called. The run queue's clock is up to date: the
/// core reads it before it calls the class.
pub(crate) fn with_state<'a, R>(
    rq: Pin<&'a mut RunQueue>,
    function: impl FnOnce(&'a RunQueue, &'static Cpu, &'a mut State) -> R,
) -> Option<R> {
    // SAFETY: The run queue is locked; `set_cpu` wrote the pointer, to something static.
    let cpu = unsafe { (*rq.as_ptr()).pbs.state.cast::<Cpu>().as_ref() }?;
    // SAFETY: The state is reached by this function only, and only through the one run queue of its
    // CPU, which `set_cpu` ensures. That is locked, as `rq` witnesses, and can't be used otherwise
    // as long as the state is borrowed: therefore this is not reached a second time.
    let state = unsafe { &mut *cpu.state() };
    let rq = rq.into_ref().get_ref();
    state.begin_section(rq);
    Some(function(rq, cpu, state))
}
