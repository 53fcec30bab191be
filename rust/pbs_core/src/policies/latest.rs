// SPDX-License-Identifier: GPL-2.0

//! The choice of the thesis (Leppert 2021, 3.2.3, listing 2): the greatest lateness.

use super::decisions::Decisions;

pub(super) struct Latest;

impl Decisions for Latest {}
