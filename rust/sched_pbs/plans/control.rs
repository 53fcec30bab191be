// SPDX-License-Identifier: GPL-2.0

//! The control of plans: one change of plans at a time.

use super::{fronts::Fronts, kept::KeptPlans};
use crate::{linux::published::Published, pbs_core::Config};
use kernel::{new_mutex, prelude::*, sync::Mutex};

/// The data that a change of plans needs, one change at a time.
pub(crate) struct Control {
    /// The configuration of plans that bring none.
    pub(crate) config: Config,
    /// The processes that other CPUs wait for.
    pub(crate) fronts: Fronts,
    /// The plans that were written during a recording.
    pub(crate) kept: KeptPlans,
}

/// Taken before the lock of any run queue, and after the one of CPU hotplug.
static CONTROL: Published<Mutex<Control>> = Published::none();

/// Makes the control, with the default configuration.
pub(crate) fn publish() -> Result {
    CONTROL.publish(KBox::pin_init(
        new_mutex!(
            Control {
                config: Config::DEFAULT,
                fronts: Fronts::default(),
                kept: KeptPlans::default(),
            },
            "pbs_control"
        ),
        GFP_KERNEL,
    )?);
    Ok(())
}

/// The control, once the class is up.
pub(crate) fn get() -> Result<&'static Mutex<Control>> {
    CONTROL.get().ok_or(ENODEV)
}
