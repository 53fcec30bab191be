// SPDX-License-Identifier: GPL-2.0
//! What is common to all schedulers.

use crate::TraceJob;

/// A scheduler in virtual time. Jobs are known by their place in the trace.
///
/// At each time the ends are told first, then what comes; then it is asked what starts.
pub trait Policy {
    /// As tables call it.
    fn name(&self) -> &'static str;

    /// A job comes.
    fn submit(&mut self, now_s: u64, job: usize, what: &TraceJob);

    /// A job that was started has ended.
    fn ended(&mut self, now_s: u64, job: usize);

    /// Which jobs start now, added to `started`.
    fn start(&mut self, now_s: u64, started: &mut Vec<usize>);

    /// When it wants to be asked again at the latest, if nothing happens before.
    fn next_s(&self) -> Option<u64> {
        None
    }
}
