// SPDX-License-Identifier: GPL-2.0
//! Planning as it is asked for on the command line, and its results in words.

mod options;
mod view;

pub(crate) use options::PlanningOptions;
pub(crate) use view::{
    history_file, history_text, nanoseconds, AttemptView, CutShortView, MachineView, NodeView,
    ResourceView,
};
