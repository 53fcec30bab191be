// SPDX-License-Identifier: GPL-2.0
//! The views of CooRMv2 (Klein and Pérez 2011, 3.1.4 and A.3), on profiles.
//!
//! A [`Cap`] is what an application is told of a cluster: so many nodes for so long, one
//! after the other. The manager works on [`Profile`](crate::Profile)s, into which what
//! is booked goes; [`find_shape`] finds where several requests that hang together fit into
//! them, and [`Steps`] is a small function of time that is written often: what one
//! application has.

mod cap;
mod shape;
mod steps;

pub use crate::FOREVER;
pub use cap::{Cap, Step};
pub use shape::{find_shape, find_shape_within, segments, Part, Segment};
pub use steps::Steps;
