// SPDX-License-Identifier: GPL-2.0
//! Applications that ask for other nodes while they run, and those that take what is left
//! (Klein and Pérez 2011, *An RMS for Non-predictably Evolving Applications*, INRIA RR-7644).
//!
//! The models: how the data of an adaptive mesh grow ([`WorkingSet`]), how long its steps
//! take ([`SpeedUp`]), and what a static allocation costs against a dynamic one
//! ([`Allocation`]).
//!
//! The applications of section 4, and of the evaluation in section 5: each is told what
//! happens and answers with [`Wish`]es ([`Application`]). There is no manager here, no clock
//! and no thread, so that a simulator and a real manager drive the same lines.
//!
//! | section 4 | here |
//! |---|---|
//! | rigid | [`Rigid`] |
//! | moldable | [`Moldable`] |
//! | malleable | [`Malleable`], and [`Psa`] of 5.1.2 |
//! | fully-predictably evolving | [`Predictable`] |
//! | marginally-predictably evolving (5.3) | [`Amr`] with [`Updates::Announced`], [`Staged`] |
//! | non-predictably evolving | [`Nea`], and [`Amr`] of 5.1.1 |

mod amr;
mod equivalent;
mod malleable;
mod moldable;
mod nea;
mod predictable;
mod psa;
mod rigid;
mod speed_up;
mod staged;
pub mod study;
mod time;
mod wish;
mod working_set;

pub use amr::{Amr, Updates};
pub use equivalent::Allocation;
pub use malleable::{Malleable, Shape};
pub use moldable::{Choice, Moldable};
pub use nea::{Execution, Nea};
pub use pbs_profile::view::{Cap as View, Step, FOREVER};
pub use predictable::Predictable;
pub use psa::{Account, KillOrder, Psa};
pub use rigid::Rigid;
pub use speed_up::{SpeedUp, MOST_MIB};
pub use staged::Staged;
pub use time::{ns, seconds, SECOND_NS};
pub use wish::{Application, How, Kind, Label, Request, Views, Wish};
pub use working_set::{WorkingSet, MOST, STEPS};
