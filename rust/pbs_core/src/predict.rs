// SPDX-License-Identifier: GPL-2.0

//! When a count will be reached: the moment to which a timer is set.
//!
//! A prediction is made of what is left to retire, of the pace at which the
//! thread retires, and of the way: the time in which it retires nothing, from
//! setting the timer to user space and from the interrupt to the next reading.
//! Pace and way are learned from how the predictions before have turned out, so
//! that a slow interrupt path, as that of a kernel with many checks, needs no
//! number of its own.
//!
//! A timer that comes too early costs another interrupt; one that comes too late
//! lets the thread go too far.  So the pace is the fastest seen lately, and the
//! way the shortest.

use super::rate::scale;
use super::Rate;

/// Where the timer is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// In the timer's own interrupt: the way back to user space is always the
    /// same.
    Expiry,
    /// Anywhere else: in a system call, or on the way from another thread.
    Elsewhere,
}

/// The least way: no interrupt takes less.
const LEAST_WAY_NS: u64 = 200;

/// The greatest way that is believed, and so the longest that a thread may run
/// beyond a count because the way there had no progress before.
const GREATEST_WAY_NS: u64 = 1_000_000;

/// A time in user space of up to so many ways tells of the way, as does one that
/// the pace predicts well.
const SHORT: u64 = 4;

/// One of so many ways or more tells of the pace.
const LONG: u64 = 64;

/// One, as a deviation of the pace.
const DEVIATION_ONE: u64 = 1024;

/// How far off a pace is that has always been met.
const LEAST_DEVIATION: u64 = DEVIATION_ONE / 256;

/// What was predicted last.
#[derive(Clone, Copy, Debug)]
struct Set {
    at_ns: u64,
    count_insns: u64,
    origin: Origin,
}

/// Predicts for one CPU.
#[derive(Clone, Copy, Debug)]
pub struct Predictor {
    ns_per_insn_fp32: u64,
    /// At the rate of the CPU: the pace is never slower.
    nominal_fp32: u64,
    /// How much faster than the pace it may go, in parts of [`DEVIATION_ONE`].
    deviation: u64,
    /// The way from the timer's interrupt.
    way_ns: u64,
    /// The way from elsewhere.
    elsewhere_ns: u64,
    /// No timer before this time from now: the last one came before anything
    /// was retired.
    backoff_ns: u64,
    set: Option<Set>,
}

impl Predictor {
    /// Knows nothing but the rate of the CPU.
    pub const fn new(rate: Rate) -> Predictor {
        Predictor {
            ns_per_insn_fp32: rate.ns_per_insn_fp32(),
            nominal_fp32: rate.ns_per_insn_fp32(),
            deviation: DEVIATION_ONE / 16,
            way_ns: 10 * LEAST_WAY_NS,
            elsewhere_ns: 10 * LEAST_WAY_NS,
            backoff_ns: 0,
            set: None,
        }
    }

    /// When the timer should expire, if it is set at `now_ns` and the thread is
    /// to retire `left_insns` more.
    ///
    /// A count that is far away is aimed at from before, by as much as the pace
    /// is off: what is left then is short, and met.
    pub fn expiry_ns(&self, now_ns: u64, left_insns: u64, origin: Origin) -> u64 {
        let user_ns = scale(left_insns, self.ns_per_insn_fp32);
        let way_ns = match origin {
            Origin::Expiry => self.way_ns,
            Origin::Elsewhere => self.elsewhere_ns,
        };
        let early_ns = self.uncertain_ns(user_ns).saturating_mul(2);
        let delay_ns = if early_ns < way_ns / 8 {
            user_ns.saturating_add(way_ns)
        } else {
            user_ns.saturating_sub(early_ns).max(user_ns / 4) + way_ns
        };
        now_ns.saturating_add(delay_ns)
    }

    /// The earliest time for any timer: an interrupt that takes longer than the
    /// time to the next one would keep the thread from going on for ever.
    pub fn earliest_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_add(self.backoff_ns)
    }

    /// The timer was set at `now_ns` while a thread runs that `count_insns` were
    /// counted of.
    pub fn set(&mut self, now_ns: u64, count_insns: u64, origin: Origin) {
        self.set = Some(Set {
            at_ns: now_ns,
            count_insns,
            origin,
        });
    }

    /// Another thread runs, or none: how the prediction turns out says nothing.
    pub fn forget(&mut self) {
        self.set = None;
    }

    /// The thread has retired something, or another decision was made: nothing
    /// stands still.
    pub fn progress(&mut self) {
        self.backoff_ns = 0;
    }

    /// The timer has expired, and found the count at `count_insns`; `in_user`: it
    /// interrupted the thread in user space.
    ///
    /// In the kernel a thread retires nothing that counts, which says nothing of
    /// the way.
    pub fn expired(&mut self, now_ns: u64, count_insns: u64, in_user: bool) {
        let Some(set) = self.set.take().filter(|_| in_user) else {
            // But that must not come at once again and again.
            self.backoff_ns = self.doubled(self.backoff_ns);
            return;
        };
        let elapsed_ns = now_ns.saturating_sub(set.at_ns);
        let retired_insns = count_insns.saturating_sub(set.count_insns);
        if retired_insns == 0 {
            // The interrupt came at the end of the way, so this is its length, or a little less;
            // unless that was no help before.
            let longer_ns = if self.backoff_ns == 0 {
                elapsed_ns.saturating_add(elapsed_ns / 8 + LEAST_WAY_NS)
            } else {
                self.doubled(elapsed_ns)
            };
            let longer_ns = longer_ns.min(GREATEST_WAY_NS);
            self.elsewhere_ns = self.elsewhere_ns.max(longer_ns);
            if set.origin == Origin::Expiry {
                self.way_ns = self.way_ns.max(longer_ns);
                self.backoff_ns = longer_ns;
            }
            return;
        }
        self.backoff_ns = 0;
        let user_ns = scale(retired_insns, self.ns_per_insn_fp32);
        let uncertain_ns = self.uncertain_ns(user_ns);
        let way_ns = match set.origin {
            Origin::Expiry => &mut self.way_ns,
            Origin::Elsewhere => &mut self.elsewhere_ns,
        };
        if user_ns < SHORT * *way_ns || uncertain_ns < *way_ns / 8 {
            let seen_ns = elapsed_ns.saturating_sub(user_ns);
            let new_ns = if seen_ns < *way_ns {
                seen_ns
            } else {
                // A tick may have come between.
                *way_ns + (seen_ns - *way_ns) / 16
            };
            *way_ns = new_ns.clamp(LEAST_WAY_NS, GREATEST_WAY_NS);
            // The way from elsewhere has more to do.
            self.way_ns = self.way_ns.min(self.elsewhere_ns);
        } else if user_ns >= LONG * *way_ns {
            let user_ns = elapsed_ns.saturating_sub(*way_ns);
            self.learn_pace(user_ns, retired_insns);
        }
    }

    fn learn_pace(&mut self, user_ns: u64, retired_insns: u64) {
        // Twenty bits of fraction are enough, and leave room for hours.
        let seen_fp20 = (user_ns.min(1 << 43) << 20) / retired_insns.max(1);
        let seen_fp32 = seen_fp20.saturating_mul(1 << 12).max(1);
        let pace_fp32 = self.ns_per_insn_fp32.max(1);
        let off = if seen_fp32 < pace_fp32 {
            self.ns_per_insn_fp32 = seen_fp32;
            (pace_fp32 - seen_fp32).saturating_mul(DEVIATION_ONE) / pace_fp32
        } else {
            let slower_fp32 = seen_fp32.min(self.nominal_fp32).max(pace_fp32);
            self.ns_per_insn_fp32 = pace_fp32 + (slower_fp32 - pace_fp32) / 16;
            0
        };
        let deviation = (self.deviation - self.deviation / 4).max(off);
        self.deviation = deviation.clamp(LEAST_DEVIATION, DEVIATION_ONE / 4);
    }

    /// By how much sooner than after `user_ns` the thread may be there.
    fn uncertain_ns(&self, user_ns: u64) -> u64 {
        (user_ns / DEVIATION_ONE).saturating_mul(self.deviation)
    }

    fn doubled(&self, ns: u64) -> u64 {
        ns.saturating_mul(2)
            .clamp(2 * LEAST_WAY_NS, GREATEST_WAY_NS)
    }
}
