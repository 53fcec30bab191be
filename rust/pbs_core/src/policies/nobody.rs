// SPDX-License-Identifier: GPL-2.0

//! Idle slots that stay idle: a yardstick for all other policies.

use super::super::division::Division;
use super::decisions::{Decisions, IdleSlot};

pub(super) struct Nobody;

impl Decisions for Nobody {
    fn divide(_slot: &IdleSlot) -> Division {
        Division::Nobody
    }
}
