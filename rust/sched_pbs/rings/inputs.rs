// SPDX-License-Identifier: GPL-2.0

//! The rings of inputs of the policy of each CPU.
//!
//! During a recording a static key is on, which makes every [`Node`](crate::state::node::Node) note
//! its inputs in the ring of its CPU (`pbs_core`, `record.rs`). The ring's one writer is the
//! [`Tap`] of the node in force: therefore a writer has the run queue locked. The writer moves from
//! node to node as plans change, and is in the CPU's state while there is none.

use crate::{
    linux::{published::Published, wire::Wire},
    pbs_core::{self, Input, InputKind},
};
use core::mem::{offset_of, size_of};
use kernel::{
    bindings,
    cpu::HotplugReadGuard,
    prelude::*,
    record_ring::{RecordRing, RingName, RingTable, RingWriter},
};

/// Inputs held of each CPU: 2 MiB. A recorder that sleeps for 20 ms may miss some if a CPU has more
/// than three inputs a microsecond.
const CAPACITY: usize = 1 << 16;

/// The inputs of one CPU.
pub(crate) type Ring = RecordRing<Wire<Input>, CAPACITY>;

/// Whether anyone records.
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

/// Counts one more recorder, or one less.
pub(crate) fn set_recorded(_hotplug: &HotplugReadGuard, on: bool) {
    // SAFETY: This requires the lock of CPU hotplug alone, which the guard holds.
    unsafe { bindings::sched_pbs_record(on) };
}

/// Receiver of the inputs of a CPU's policy. It is a part of the CPU's state: therefore its user
/// has locked the run queue, and is the only one.
#[derive(Default)]
pub(crate) struct Tap {
    /// The writer of the ring; `None` until the CPU has a ring.
    ring: Option<RingWriter<Wire<Input>, CAPACITY>>,
}

impl Tap {
    /// Notes in the ring of that writer from now on.
    pub(crate) fn write_to(&mut self, ring: RingWriter<Wire<Input>, CAPACITY>) {
        self.ring = Some(ring);
    }
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

static RINGS: Published<RingTable<Wire<Input>, CAPACITY>> = Published::none();

/// Makes the table of rings.
pub(crate) fn publish() -> Result {
    let rings = RingTable::new(kernel::cpu::nr_cpu_ids() as usize)?;
    RINGS.publish(KBox::pin(rings, GFP_KERNEL)?);
    Ok(())
}

/// The ring of a CPU, if it has one.
pub(crate) fn of_cpu(cpu: u32) -> Option<&'static Ring> {
    RINGS.get()?.iter().find(|ring| ring.number() == cpu)
}

/// Makes the ring of a CPU that has none. Returns its writer. Sleeps.
pub(crate) fn add(cpu: u32) -> Result<RingWriter<Wire<Input>, CAPACITY>> {
    let (ring, writer) = Ring::new(RingName {
        magic: bindings::PBS_INPUTS_MAGIC,
        version: bindings::PBS_INPUTS_VERSION as u16,
        number: cpu,
    })?;
    RINGS.get().ok_or(ENODEV)?.add(ring)?;
    Ok(writer)
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
    assert!(bindings::pbs_input_kind_PBS_IN_CONFIGURE == InputKind::Configure as u32);
};
