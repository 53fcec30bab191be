// SPDX-License-Identifier: GPL-2.0

//! Predictions of the moment at which a count will be reached, to which a timer is set.
//!
//! A prediction depends on the instructions left to retire, on the pace at which the thread retires
//! them, and on the way: the time from setting the timer to user space, in which the thread retires
//! nothing.  Pace and ways are learned from the outcomes of earlier predictions.  Therefore a slow
//! interrupt path, such as that of a kernel with many checks, needs no number of its own.
//!
//! A timer that expires too early costs another interrupt; one that expires too late lets the
//! thread run too far.  Therefore the pace is the fastest one seen lately, and the way back from
//! the timer's own interrupt, which is the last one before the count is met, is the shortest one
//! seen.  The ways from other origins are as long as most that were seen: if a way and the pace are
//! constant, the first interrupt meets the count.
//!
//! The expiry of a timer shows the way, whatever the timer was set for, and wherever it interrupts
//! the thread.  Therefore a timer expires for nothing only a few times, however often a thread that
//! needs no timer gets the CPU.

use super::rate::{scale, Rate};

/// Place where the timer is set: each has a way of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// In the timer's own interrupt: the way back to user space is constant.
    Expiry,
    /// In another interrupt, as the tick's, for the thread that it interrupted.
    Interrupt,
    /// In the kernel, for the thread that is there.
    Call,
    /// In an interrupt, for the thread that runs next.
    InterruptSwitch,
    /// In the kernel, for the thread that runs next.
    CallSwitch,
}

impl Origin {
    const COUNT: usize = Origin::CallSwitch as usize + 1;

    fn is_switch(self) -> bool {
        matches!(self, Origin::InterruptSwitch | Origin::CallSwitch)
    }

    /// Returns the origin for the thread that runs next.
    pub fn switch(self) -> Origin {
        match self {
            Origin::Expiry | Origin::Interrupt => Origin::InterruptSwitch,
            _ => Origin::CallSwitch,
        }
    }
}

/// Shortest way: no interrupt takes less.
const LEAST_WAY_NS: u64 = 200;

/// Longest way that is believed.  Also the longest time that a thread may run beyond a count
/// because the way there had no progress before.
const GREATEST_WAY_NS: u64 = 1_000_000;

/// A time in user space of up to this many ways shows the way, as does a time that the pace
/// predicts well.
const SHORT: u64 = 4;

/// A time in user space of this many ways or more shows the pace.
const LONG: u64 = 64;

/// Number of times that no pace is faster than the nominal one.
const FASTEST: u64 = 64;

/// One, as a deviation of the pace.
const DEVIATION_ONE: u64 = 1 << 20;

/// Deviation of a pace that has always been met.
const LEAST_DEVIATION: u64 = DEVIATION_ONE >> 16;

/// The last setting of the timer.
#[derive(Clone, Copy, Debug)]
struct Set {
    at_ns: u64,
    expiry_ns: u64,
    count_insns: u64,
    origin: Origin,
}

/// The time from one origin in which nothing is retired.
#[derive(Clone, Copy, Debug)]
struct Way {
    ns: u64,
    /// Variation of the way from time to time.
    jitter_ns: u64,
}

impl Way {
    const UNKNOWN: Way = Way {
        ns: 10 * LEAST_WAY_NS,
        jitter_ns: 10 * LEAST_WAY_NS,
    };

    /// Follows a way that took `seen_ns`.
    ///
    /// The estimate becomes as long as four of five ways that are seen, or hardly longer.  Its
    /// steps are those of the jitter, whatever the difference, and four times as great upwards as
    /// downwards.
    fn follow(&mut self, seen_ns: u64) {
        let mut off_ns = seen_ns.abs_diff(self.ns);
        let is_longer = seen_ns > self.ns;
        if is_longer {
            // A single disturbance, such as another interrupt, counts for little.
            off_ns = off_ns.min(2 * self.jitter_ns + LEAST_WAY_NS);
        }
        let jitter_ns = self.jitter_ns - self.jitter_ns / 4 + off_ns / 4;
        self.jitter_ns = jitter_ns.min(GREATEST_WAY_NS);
        let ns = if is_longer {
            self.ns + off_ns.min(self.jitter_ns / 2)
        } else if off_ns > self.ns / 4 {
            // No jitter is that great.
            self.ns - off_ns / 2
        } else if off_ns > self.ns / 128 {
            self.ns - off_ns.min(self.jitter_ns / 8)
        } else {
            self.ns
        };
        self.ns = ns.clamp(LEAST_WAY_NS, GREATEST_WAY_NS);
    }
}

/// Predictor of one CPU.
#[derive(Clone, Copy, Debug)]
pub struct Predictor {
    ns_per_insn_fp32: u64,
    /// Time of an instruction at the rate of the CPU: the pace is never slower.
    nominal_fp32: u64,
    /// Possible excess of the speed over the pace, in parts of [`DEVIATION_ONE`].
    deviation: u64,
    /// Ways by origin.
    ways: [Way; Origin::COUNT],
    /// No timer may expire within this time from now: the last one expired before anything was
    /// retired.
    backoff_ns: u64,
    set: Option<Set>,
}

impl Predictor {
    /// A predictor that has only the rate of the CPU.
    pub const fn new(rate: Rate) -> Predictor {
        Predictor {
            ns_per_insn_fp32: rate.ns_per_insn_fp32(),
            nominal_fp32: rate.ns_per_insn_fp32(),
            deviation: DEVIATION_ONE / 16,
            ways: [Way::UNKNOWN; Origin::COUNT],
            backoff_ns: 0,
            set: None,
        }
    }

    /// Returns the time at which the timer should expire, if it is set at `now_ns` and the thread
    /// is to retire `left_insns` more.
    ///
    /// If the moment of the count is uncertain, the timer expires before it: the rest is then
    /// short, and is met.
    pub fn expiry_ns(&self, now_ns: u64, left_insns: u64, origin: Origin) -> u64 {
        let user_ns = scale(left_insns, self.ns_per_insn_fp32);
        let way = &self.ways[origin as usize];
        let (way_off_ns, late_ns) = match origin {
            // Better a little late than another interrupt: this is the shortest way known.
            Origin::Expiry => (0, way.ns / 16 + LEAST_WAY_NS / 2),
            _ => (way.jitter_ns, LEAST_WAY_NS / 8),
        };
        let off_ns = self.uncertain_ns(user_ns).saturating_add(way_off_ns);
        let delay_ns = if off_ns < way.ns / 8 {
            user_ns.saturating_add(way.ns).saturating_add(late_ns)
        } else {
            let early_ns = off_ns.saturating_mul(2);
            user_ns.saturating_sub(early_ns).max(user_ns / 4) + way.ns
        };
        now_ns.saturating_add(delay_ns)
    }

    /// Least time after setting the timer in which `insns` can be retired.
    #[inline]
    pub fn least_ns(&self, insns: u64) -> u64 {
        scale(insns, self.ns_per_insn_fp32) / 4
    }

    /// The earliest time for any timer: an interrupt that takes longer than the time to the next
    /// one would keep the thread from running for ever.
    pub fn earliest_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_add(self.backoff_ns)
    }

    /// Notes that the timer is set at `now_ns` to `expiry_ns`, or was set to that before.
    /// `count_insns`: the present count of the thread that is to run.
    pub fn set(&mut self, now_ns: u64, expiry_ns: u64, count_insns: u64, origin: Origin) {
        self.set = Some(Set {
            at_ns: now_ns,
            expiry_ns,
            count_insns,
            origin,
        });
    }

    /// Forgets the setting: another thread runs, or none, or the count is not known.  The expiry of
    /// the timer then shows nothing.
    pub fn forget(&mut self) {
        self.set = None;
    }

    /// Ends the delay of timers: the thread has retired something, or another decision was made.
    pub fn progress(&mut self) {
        self.backoff_ns = 0;
    }

    /// Learns from an expiry of the timer, which found the count at `count_insns`.  `in_user`: it
    /// interrupted the thread in user space.  `by_clock`: the count is time, which has passed until
    /// `now_ns`.
    pub fn expired(&mut self, now_ns: u64, count_insns: u64, in_user: bool, by_clock: bool) {
        let Some(set) = self.set.take() else {
            // The timer must not expire at once again and again.
            self.backoff_ns = self.doubled(self.backoff_ns);
            return;
        };
        match count_insns.saturating_sub(set.count_insns) {
            0 => self.learn_from_none(&set, now_ns, in_user),
            retired_insns => {
                // Not the time since the expiry: the thread retires until the timer expires.
                let until_ns = if by_clock { now_ns } else { set.expiry_ns };
                self.learn_from(&set, until_ns, now_ns, retired_insns, in_user);
            }
        }
    }

    /// Learns from a timer that expired before anything was retired.
    fn learn_from_none(&mut self, set: &Set, now_ns: u64, in_user: bool) {
        let elapsed_ns = now_ns.saturating_sub(set.at_ns);
        if !in_user {
            if set.origin.is_switch() {
                // Unless the thread has more to do than return from the switch, the way is longer.
                let way = &mut self.ways[set.origin as usize];
                way.follow(elapsed_ns.saturating_add(elapsed_ns / 8));
            }
            self.backoff_ns = self.doubled(self.backoff_ns);
            return;
        }
        // The interrupt arrived at the end of the way: this is its length, or a little less, unless
        // that was no help before.
        let longer_ns = if self.backoff_ns == 0 {
            elapsed_ns.saturating_add(elapsed_ns / 8 + LEAST_WAY_NS)
        } else {
            self.doubled(elapsed_ns)
        };
        let longer_ns = longer_ns.min(GREATEST_WAY_NS);
        let way = &mut self.ways[set.origin as usize];
        way.ns = way.ns.max(longer_ns);
        if set.origin == Origin::Expiry {
            // The way from another interrupt is not shorter.
            let way = &mut self.ways[Origin::Interrupt as usize];
            way.ns = way.ns.max(longer_ns);
            self.backoff_ns = longer_ns;
        }
    }

    /// Learns from a timer that expired after `retired_insns` were retired until `until_ns`.
    fn learn_from(
        &mut self,
        set: &Set,
        until_ns: u64,
        now_ns: u64,
        retired_insns: u64,
        in_user: bool,
    ) {
        let elapsed_ns = until_ns.saturating_sub(set.at_ns);
        let user_ns = scale(retired_insns, self.ns_per_insn_fp32);
        let seen_ns = elapsed_ns.saturating_sub(user_ns);
        let expiry_ns = self.ways[Origin::Expiry as usize].ns;
        self.backoff_ns = if in_user {
            0
        } else {
            self.doubled(self.backoff_ns)
        };
        let way = &mut self.ways[set.origin as usize];
        let short = user_ns < SHORT * way.ns;
        if !in_user {
            if set.origin != Origin::Expiry && elapsed_ns >= user_ns {
                // The thread has been in the kernel since, for an unknown time, and the timer
                // expired for nothing: the next one is to expire a little later.
                way.follow(seen_ns.min(way.ns + way.ns / 16));
            }
            return;
        }
        // A long time in user space shows the way only if the pace predicts the rest of it.  The
        // excess must be likely for the way into the kernel and that of the timer's own interrupt.
        let in_ns = now_ns.saturating_sub(set.expiry_ns);
        let likely_ns = SHORT * way.ns.max(expiry_ns).max(SHORT * in_ns);
        if set.origin == Origin::Expiry {
            if short {
                self.shorten_way(seen_ns);
            }
        } else if short || elapsed_ns >= user_ns && seen_ns < likely_ns {
            way.follow(seen_ns);
        }
        let way_ns = self.ways[set.origin as usize].ns;
        let seen_ns = elapsed_ns.saturating_sub(way_ns);
        let off_ns = seen_ns.abs_diff(user_ns);
        if off_ns <= way_ns / 8 {
            // A difference this small is due to the way; at most it is due to the pace.
            let off = off_ns.saturating_mul(2 * DEVIATION_ONE) / user_ns.max(1);
            self.set_deviation(self.deviation.min(off.max(self.deviation / 4)));
        } else if user_ns >= LONG * way_ns {
            self.learn_pace(seen_ns, retired_insns);
        }
    }

    /// Follows a way back from the timer's own interrupt that took `seen_ns`.
    fn shorten_way(&mut self, seen_ns: u64) {
        let [way, others @ ..] = &mut self.ways;
        let new_ns = if seen_ns < way.ns {
            seen_ns
        } else {
            // A tick may have intervened.
            way.ns + (seen_ns - way.ns) / 16
        };
        // The other ways have more to do.
        let most_ns = others
            .iter()
            .fold(LEAST_WAY_NS, |most_ns, way| most_ns.max(way.ns));
        way.ns = new_ns.clamp(LEAST_WAY_NS, most_ns);
    }

    fn learn_pace(&mut self, user_ns: u64, retired_insns: u64) {
        // Twenty bits of fraction are enough, and leave room for hours.
        let seen_fp20 = (user_ns.min(1 << 43) << 20) / retired_insns.max(1);
        // A timer that came late says nothing of the pace: nothing is that much faster.
        let least_fp32 = (self.nominal_fp32 / FASTEST).max(1);
        let seen_fp32 = seen_fp20.saturating_mul(1 << 12).max(least_fp32);
        let pace_fp32 = self.ns_per_insn_fp32.max(1);
        let off = if seen_fp32 < pace_fp32 {
            self.ns_per_insn_fp32 = seen_fp32;
            (pace_fp32 - seen_fp32).saturating_mul(DEVIATION_ONE) / pace_fp32
        } else {
            let slower_fp32 = seen_fp32.min(self.nominal_fp32).max(pace_fp32);
            self.ns_per_insn_fp32 = pace_fp32 + (slower_fp32 - pace_fp32) / 16;
            0
        };
        self.set_deviation((self.deviation - self.deviation / 4).max(off));
    }

    fn set_deviation(&mut self, deviation: u64) {
        self.deviation = deviation.clamp(LEAST_DEVIATION, DEVIATION_ONE / 4);
    }

    /// Time by which the thread may be faster than `user_ns`.
    fn uncertain_ns(&self, user_ns: u64) -> u64 {
        user_ns.min(1 << 43) * self.deviation / DEVIATION_ONE
    }

    fn doubled(&self, ns: u64) -> u64 {
        ns.saturating_mul(2)
            .clamp(2 * LEAST_WAY_NS, GREATEST_WAY_NS)
    }
}
