// SPDX-License-Identifier: GPL-2.0

//! When a count will be reached: the moment to which a timer is set.
//!
//! A prediction is made of what is left to retire, of the pace at which the
//! thread retires, and of the way: the time in which it retires nothing, from
//! setting the timer to user space.
//! Pace and ways are learned from how the predictions before have turned out, so
//! that a slow interrupt path, as that of a kernel with many checks, needs no
//! number of its own.
//!
//! A timer that comes too early costs another interrupt; one that comes too late
//! lets the thread go too far.  So the pace is the fastest seen lately, and the
//! way back from the timer's own interrupt, which is the last one before the
//! count is met, the shortest.  The ways from elsewhere are as long as most that
//! were seen: where one is always the same, as is the pace, the count is met by the
//! first interrupt.  Whatever the timer was set for, and wherever it interrupts the
//! thread, it tells of the way; so one that comes for nothing does so a few times
//! only, however often a thread that needs none gets the CPU.

use super::rate::{scale, Rate};

/// Where the timer is set: each has a way of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// In the timer's own interrupt: the way back to user space is always the
    /// same.
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

    /// The same for the thread that runs next.
    pub fn switch(self) -> Origin {
        match self {
            Origin::Expiry | Origin::Interrupt => Origin::InterruptSwitch,
            _ => Origin::CallSwitch,
        }
    }
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
const DEVIATION_ONE: u64 = 1 << 20;

/// How far off a pace is that has always been met.
const LEAST_DEVIATION: u64 = DEVIATION_ONE >> 16;

/// How the timer was set last.
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
    /// By how much it differs from time to time.
    jitter_ns: u64,
}

impl Way {
    const UNKNOWN: Way = Way {
        ns: 10 * LEAST_WAY_NS,
        jitter_ns: 10 * LEAST_WAY_NS,
    };

    /// It took so long.
    ///
    /// It comes to be as long as four of five that are seen, or hardly longer: the steps are those
    /// of its jitter, whatever it differs by, and four times as great upwards as downwards.
    fn follow(&mut self, seen_ns: u64) {
        let mut off_ns = seen_ns.abs_diff(self.ns);
        let is_longer = seen_ns > self.ns;
        if is_longer {
            // What came between once, as another interrupt, counts for little.
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

/// Predicts for one CPU.
#[derive(Clone, Copy, Debug)]
pub struct Predictor {
    ns_per_insn_fp32: u64,
    /// At the rate of the CPU: the pace is never slower.
    nominal_fp32: u64,
    /// How much faster than the pace it may go, in parts of [`DEVIATION_ONE`].
    deviation: u64,
    /// By origin.
    ways: [Way; Origin::COUNT],
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
            ways: [Way::UNKNOWN; Origin::COUNT],
            backoff_ns: 0,
            set: None,
        }
    }

    /// When the timer should expire, if it is set at `now_ns` and the thread is
    /// to retire `left_insns` more.
    ///
    /// Where it is uncertain when that will be, it is aimed at from before: what
    /// is left then is short, and met.
    pub fn expiry_ns(&self, now_ns: u64, left_insns: u64, origin: Origin) -> u64 {
        let user_ns = scale(left_insns, self.ns_per_insn_fp32);
        let way = &self.ways[origin as usize];
        let (way_off_ns, late_ns) = match origin {
            // Rather a little late than once more: it is the shortest way that is known.
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

    /// No count is reached sooner than so long after the timer is set.
    #[inline]
    pub fn least_ns(&self, insns: u64) -> u64 {
        scale(insns, self.ns_per_insn_fp32) / 4
    }

    /// The earliest time for any timer: an interrupt that takes longer than the
    /// time to the next one would keep the thread from going on for ever.
    pub fn earliest_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_add(self.backoff_ns)
    }

    /// The timer is set at `now_ns` to `expiry_ns`, or was set to that before, when
    /// `count_insns` are counted of the thread that is to run.
    pub fn set(&mut self, now_ns: u64, expiry_ns: u64, count_insns: u64, origin: Origin) {
        self.set = Some(Set {
            at_ns: now_ns,
            expiry_ns,
            count_insns,
            origin,
        });
    }

    /// Another thread runs, or none, or the count is not known: when the timer
    /// expires that says nothing.
    pub fn forget(&mut self) {
        self.set = None;
    }

    /// The thread has retired something, or another decision was made: nothing
    /// stands still.
    pub fn progress(&mut self) {
        self.backoff_ns = 0;
    }

    /// The timer has expired, and found the count at `count_insns`; `in_user`: it
    /// interrupted the thread in user space; `by_clock`: what is counted is time,
    /// which has gone on until `now_ns`.
    pub fn expired(&mut self, now_ns: u64, count_insns: u64, in_user: bool, by_clock: bool) {
        let Some(set) = self.set.take() else {
            // It must not come at once again and again.
            self.backoff_ns = self.doubled(self.backoff_ns);
            return;
        };
        match count_insns.saturating_sub(set.count_insns) {
            0 => self.learn_from_none(&set, now_ns, in_user),
            retired_insns => {
                // Not what has passed since: it is until it expires that the thread retires.
                let until_ns = if by_clock { now_ns } else { set.expiry_ns };
                self.learn_from(&set, until_ns, now_ns, retired_insns, in_user);
            }
        }
    }

    /// Nothing was retired before the timer expired.
    fn learn_from_none(&mut self, set: &Set, now_ns: u64, in_user: bool) {
        let elapsed_ns = now_ns.saturating_sub(set.at_ns);
        if !in_user {
            if set.origin.is_switch() {
                // Unless it has more to do than come from the switch, the way is longer.
                let way = &mut self.ways[set.origin as usize];
                way.follow(elapsed_ns.saturating_add(elapsed_ns / 8));
            }
            self.backoff_ns = self.doubled(self.backoff_ns);
            return;
        }
        // The interrupt came at the end of the way, so this is its length, or a little less;
        // unless that was no help before.
        let longer_ns = if self.backoff_ns == 0 {
            elapsed_ns.saturating_add(elapsed_ns / 8 + LEAST_WAY_NS)
        } else {
            self.doubled(elapsed_ns)
        };
        let longer_ns = longer_ns.min(GREATEST_WAY_NS);
        let way = &mut self.ways[set.origin as usize];
        way.ns = way.ns.max(longer_ns);
        if set.origin == Origin::Expiry {
            // That of another interrupt is not shorter.
            let way = &mut self.ways[Origin::Interrupt as usize];
            way.ns = way.ns.max(longer_ns);
            self.backoff_ns = longer_ns;
        }
    }

    /// So much was retired until `until_ns`.
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
                // It has been in the kernel since, for an unknown time, and the timer came for
                // nothing: the next one is to come a little later.
                way.follow(seen_ns.min(way.ns + way.ns / 16));
            }
            return;
        }
        // A long time in user space tells of the way if it was as predicted but for that, and for no
        // more than is likely by the way into the kernel and by that of the timer's own interrupt.
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
            // So small a difference is that of the way; at most it is that of the pace.
            let off = off_ns.saturating_mul(2 * DEVIATION_ONE) / user_ns.max(1);
            self.set_deviation(self.deviation.min(off.max(self.deviation / 4)));
        } else if user_ns >= LONG * way_ns {
            self.learn_pace(seen_ns, retired_insns);
        }
    }

    /// The way back from the timer's own interrupt took so long.
    fn shorten_way(&mut self, seen_ns: u64) {
        let [way, others @ ..] = &mut self.ways;
        let new_ns = if seen_ns < way.ns {
            seen_ns
        } else {
            // A tick may have come between.
            way.ns + (seen_ns - way.ns) / 16
        };
        // There is more to do on the others.
        let most_ns = others
            .iter()
            .fold(LEAST_WAY_NS, |most_ns, way| most_ns.max(way.ns));
        way.ns = new_ns.clamp(LEAST_WAY_NS, most_ns);
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
        self.set_deviation((self.deviation - self.deviation / 4).max(off));
    }

    fn set_deviation(&mut self, deviation: u64) {
        self.deviation = deviation.clamp(LEAST_DEVIATION, DEVIATION_ONE / 4);
    }

    /// By how much sooner than after `user_ns` the thread may be there.
    fn uncertain_ns(&self, user_ns: u64) -> u64 {
        user_ns.min(1 << 43) * self.deviation / DEVIATION_ONE
    }

    fn doubled(&self, ns: u64) -> u64 {
        ns.saturating_mul(2)
            .clamp(2 * LEAST_WAY_NS, GREATEST_WAY_NS)
    }
}
