// SPDX-License-Identifier: GPL-2.0
//! What is common to all schedulers.

use crate::TraceJob;

/// A scheduler in virtual time, of the caller's or of this crate.
///
/// Jobs are known by their place in the trace, counted from 0. At each time at which
/// something happens, ends are told first, then what comes, in the order of the trace; then
/// it is asked once what starts.
pub trait Policy {
    /// As tables call it.
    fn name(&self) -> &str;

    /// A job comes. `what.run_s` is what it asks for: how long it really runs is told to
    /// nobody. What the cluster can never run is not to be kept; it counts as declined.
    fn submit(&mut self, now_s: u64, job: usize, what: &TraceJob);

    /// A job that was started has ended, at the end of the time that it asked for or before.
    fn ended(&mut self, now_s: u64, job: usize);

    /// Which jobs start now, added to `started`. Each has to have come and not to have been
    /// started; [`replay`](crate::replay) ends with a fault otherwise.
    fn start(&mut self, now_s: u64, started: &mut Vec<usize>);

    /// When it wants to be asked again at the latest, if nothing happens before. What is not
    /// after the time of the last question is ignored.
    fn next_s(&self) -> Option<u64> {
        None
    }
}
