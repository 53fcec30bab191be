// SPDX-License-Identifier: GPL-2.0
//! The time of cores during a test mapping: what is free, and the idle time of
//! processes that have been mapped.

use std::collections::BTreeMap;
use std::ops::Range;

use pbs_profile::Error;

use crate::store::{Booking, Store};

/// Core and time at which a process could run.
pub(super) struct Frame {
    pub(super) core: usize,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    /// Parts of the core's free time that the process uses.
    free: Vec<Range<u64>>,
    /// Idle time of mapped processes that the process uses, by their numbers.
    idle: Vec<(usize, u64)>,
}

/// The time of all cores.
pub(super) struct CoreTime {
    idle_permille: u64,
    /// Per mapped process: how much of its idle time is left.
    idle_ns: Vec<u64>,
    /// Per core: when mapped processes use it, in the order of time, with their
    /// numbers. Only of those with idle time.
    used: BTreeMap<usize, Vec<(Range<u64>, usize)>>,
}

impl Frame {
    pub(super) fn in_one_piece(core: usize, start_ns: u64, end_ns: u64) -> Self {
        let free = start_ns..end_ns;
        Self { core, start_ns, end_ns, free: vec![free], idle: Vec::new() }
    }
}

impl CoreTime {
    pub(super) fn new(idle_permille: u32) -> Self {
        Self {
            idle_permille: u64::from(idle_permille.min(1000)),
            idle_ns: Vec::new(),
            used: BTreeMap::new(),
        }
    }

    /// Returns the frame of a process that needs the core for `runtime_ns` and takes all time that
    /// it can get from `from_ns` on. `None`: there is no end.
    pub(super) fn frame(
        &self,
        store: &Store,
        core: usize,
        from_ns: u64,
        runtime_ns: u64,
    ) -> Option<Frame> {
        let mut walk = Walk::new(core, from_ns, runtime_ns);
        let steps = store.core(core).steps_from(from_ns);
        let steps = steps.filter(|step| step.value > 0);
        let mut free = steps.map(|step| step.from.max(from_ns)..step.until).peekable();
        let used = self.used.get(&core).into_iter().flatten();
        let mut used = used.filter(|(over, _)| over.end > from_ns).peekable();
        while walk.need_ns > 0 {
            let free_ns = free.peek().map(|over| over.start);
            let idle = used.next_if(|(over, _)| free_ns.is_none_or(|free_ns| over.start < free_ns));
            match idle {
                Some((over, process)) => walk.idle(over, *process, self.idle_ns[*process]),
                None => walk.free(free.next()?),
            }
        }
        Some(walk.frame).filter(|frame| frame.end_ns < u64::MAX)
    }

    /// Maps a process.
    pub(super) fn take(
        &mut self,
        booking: &mut Booking<'_>,
        frame: &Frame,
        memory_bytes: u64,
    ) -> Result<(), Error> {
        for over in &frame.free {
            booking.take_core(frame.core, over.clone())?;
        }
        booking.take_memory(frame.core, frame.start_ns..frame.end_ns, memory_bytes)?;
        for &(process, gone_ns) in &frame.idle {
            self.idle_ns[process] -= gone_ns;
        }
        let taken_ns: u64 = frame.free.iter().map(|over| over.end - over.start).sum();
        let idle_ns = u128::from(taken_ns) * u128::from(self.idle_permille) / 1000;
        // Not more than what was taken.
        let idle_ns = u64::try_from(idle_ns).unwrap_or(taken_ns);
        if idle_ns > 0 {
            let process = self.idle_ns.len();
            self.idle_ns.push(idle_ns);
            let used = self.used.entry(frame.core).or_default();
            used.extend(frame.free.iter().map(|over| (over.clone(), process)));
            used.sort_unstable_by_key(|(over, _)| over.start);
        }
        Ok(())
    }
}

/// Time of a core that a process gets, collected in the order of time.
struct Walk {
    from_ns: u64,
    need_ns: u64,
    frame: Frame,
}

impl Walk {
    fn new(core: usize, from_ns: u64, need_ns: u64) -> Self {
        Self {
            from_ns,
            need_ns,
            frame: Frame {
                core,
                start_ns: from_ns,
                end_ns: from_ns,
                free: Vec::new(),
                idle: Vec::new(),
            },
        }
    }

    fn free(&mut self, over: Range<u64>) {
        let got_ns = self.get(over.start, over.end - over.start);
        self.frame.free.push(over.start..over.start + got_ns);
    }

    /// `idle_ns`: the idle time of that process before this walk.
    fn idle(&mut self, over: &Range<u64>, process: usize, idle_ns: u64) {
        let gone = self.frame.idle.iter().filter(|(other, _)| *other == process);
        let gone_ns: u64 = gone.map(|(_, gone_ns)| gone_ns).sum();
        let at_ns = over.start.max(self.from_ns);
        let got_ns = self.get(at_ns, (idle_ns - gone_ns).min(over.end - at_ns));
        if got_ns > 0 {
            self.frame.idle.push((process, got_ns));
        }
    }

    fn get(&mut self, at_ns: u64, most_ns: u64) -> u64 {
        let got_ns = self.need_ns.min(most_ns);
        if got_ns > 0 {
            if self.frame.free.is_empty() && self.frame.idle.is_empty() {
                self.frame.start_ns = at_ns;
            }
            self.frame.end_ns = at_ns + got_ns;
            self.need_ns -= got_ns;
        }
        got_ns
    }
}
