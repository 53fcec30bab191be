// SPDX-License-Identifier: GPL-2.0

//! The moment to which a timer is set, on a machine whose ways and pace are known.

use crate::{Origin, Predictor, Rate};

/// A CPU with a timer, and a thread that retires all the time that it has.
struct Machine {
    predictor: Predictor,
    now_ns: u64,
    /// In thousandths of an instruction.
    count_milli: u64,
    /// In thousandths of an instruction a nanosecond.
    pace_milli: u64,
    /// From the interrupt to user space and to the next reading.
    way_ns: u64,
    elsewhere_ns: u64,
    /// From where the timer is set first.
    first: Origin,
    /// Time from the timer's expiry until it is noticed.
    late_ns: u64,
    /// Whether time is counted: also on the ways, and until the expiry is noticed.
    by_clock: bool,
}

impl Machine {
    fn new(way_ns: u64) -> Machine {
        Machine {
            predictor: Predictor::new(Rate::new(250_000)),
            now_ns: 1_000_000_000,
            count_milli: 0,
            pace_milli: 250,
            way_ns,
            elsewhere_ns: way_ns * 2,
            first: Origin::Call,
            late_ns: 0,
            by_clock: false,
        }
    }

    /// Runs until the count has grown by `insns`.  Returns the number of interrupts that this took,
    /// and the excess of the count.
    fn run(&mut self, insns: u64) -> (u32, u64) {
        let target_milli = self.count_milli + insns * 1000;
        let mut origin = self.first;
        let mut interrupts = 0;
        while self.count_milli < target_milli {
            assert!(interrupts < 200, "no end: {:?}", self.predictor);
            let count_insns = self.count_milli / 1000;
            let left_insns = (target_milli - self.count_milli).div_ceil(1000);
            let at_ns = self.predictor.expiry_ns(self.now_ns, left_insns, origin);
            let at_ns = at_ns.max(self.predictor.earliest_ns(self.now_ns));
            self.predictor.set(self.now_ns, at_ns, count_insns, origin);
            let way_ns = match origin {
                Origin::Expiry => self.way_ns,
                _ => self.elsewhere_ns,
            };
            let elapsed_ns = at_ns - self.now_ns;
            // An interrupt that arrives before the way back is over takes effect at its end.
            let passed_ns = elapsed_ns.max(way_ns) + self.late_ns;
            let counted_ns = if self.by_clock {
                passed_ns
            } else {
                elapsed_ns.saturating_sub(way_ns)
            };
            self.count_milli += counted_ns * self.pace_milli;
            self.now_ns += passed_ns;
            self.predictor
                .expired(self.now_ns, self.count_milli / 1000, true, self.by_clock);
            interrupts += 1;
            origin = Origin::Expiry;
        }
        (interrupts, (self.count_milli - target_milli) / 1000)
    }
}

#[test]
fn a_count_is_met_once_the_ways_are_known() {
    for way_ns in [300, 2_000, 10_000, 40_000, 150_000] {
        let mut machine = Machine::new(way_ns);
        for _ in 0..20 {
            machine.run(1_000_000);
            machine.run(way_ns / 4);
        }
        for insns in [1_000, 20_000, 400_000, 1_000_000, 50_000_000] {
            let (interrupts, beyond_insns) = machine.run(insns);
            // A way that was too short before is taken for an eighth longer than it was.
            let margin_insns = way_ns / 4 / 3 + 100;
            assert!(
                beyond_insns <= margin_insns,
                "{beyond_insns} beyond {insns}, way {way_ns} ns"
            );
            assert!(
                interrupts <= 5,
                "{interrupts} interrupts for {insns}, way {way_ns} ns"
            );
        }
    }
}

/// An interrupt path that is longer than any prediction must not stop progress.
#[test]
fn a_slow_way_is_learned_from_no_progress() {
    let mut machine = Machine::new(480_000);
    let (interrupts, _) = machine.run(10_000);
    assert!(interrupts <= 12, "{interrupts} interrupts");
    for _ in 0..10 {
        machine.run(10_000);
    }
    let (interrupts, beyond_insns) = machine.run(10_000);
    assert!(interrupts <= 2, "{interrupts} interrupts");
    assert!(
        beyond_insns <= 480_000 / 4 / 8 + 100,
        "{beyond_insns} beyond"
    );
}

#[test]
fn a_way_that_becomes_short_is_believed_soon() {
    let mut machine = Machine::new(200_000);
    for _ in 0..10 {
        machine.run(50_000);
    }
    machine.way_ns = 3_000;
    machine.elsewhere_ns = 3_000;
    for _ in 0..10 {
        machine.run(10_000);
    }
    let (_, beyond_insns) = machine.run(50_000);
    assert!(beyond_insns <= 1_000, "{beyond_insns} beyond");
}

/// A machine whose ways and pace are always the same needs one interrupt for a slot, from wherever
/// the timer is set, and one whose ways differ a little not many more.
#[test]
fn one_interrupt_meets_a_slot() {
    for (first, shakes_ns) in [Origin::Call, Origin::InterruptSwitch, Origin::CallSwitch]
        .into_iter()
        .flat_map(|first| [(first, 0), (first, 60)])
    {
        let mut machine = Machine::new(4_000);
        machine.first = first;
        let way_ns = machine.elsewhere_ns;
        for _ in 0..40 {
            machine.run(250_000);
        }
        let (mut interrupts, mut most_insns) = (0, 0);
        for slot in 0..200u64 {
            machine.elsewhere_ns = way_ns + slot * 7919 % (shakes_ns + 1);
            let (needed, beyond_insns) = machine.run(250_000);
            interrupts += needed;
            most_insns = most_insns.max(beyond_insns);
        }
        assert!(interrupts <= 200 + shakes_ns as u32 * 2, "{interrupts}");
        assert!(most_insns <= 100, "{most_insns} beyond");
    }
}

/// Number of expiries of the timer for nothing in `switches` switches between tasks of
/// `task_insns`.  Each switch sets the timer for `late_insns`, which no task reaches.
fn expiries_for_nothing(
    predictor: &mut Predictor,
    switches: u32,
    way_ns: u64,
    task_insns: u64,
    late_insns: u64,
) -> u32 {
    const NS_PER_INSN: u64 = 4;
    // Into the kernel, by an interrupt or a call.
    let in_ns = way_ns / 8 + 200;
    let back_ns = way_ns / 3 + 200;
    let (mut now_ns, mut count_insns, mut expiries) = (1_000_000_000, 0, 0);
    for _ in 0..switches {
        let mut at_ns = predictor.expiry_ns(now_ns, late_insns, Origin::CallSwitch);
        predictor.set(now_ns, at_ns, count_insns, Origin::CallSwitch);
        // Time at which it continues in user space, and instructions retired until then.
        let (mut user_ns, mut retired_insns) = (now_ns + way_ns, 0);
        now_ns = loop {
            let end_ns = user_ns + (task_insns - retired_insns) * NS_PER_INSN;
            if at_ns >= end_ns + in_ns {
                break end_ns + in_ns;
            }
            expiries += 1;
            let here_ns = at_ns.max(user_ns) + in_ns;
            retired_insns += at_ns.min(end_ns).saturating_sub(user_ns) / NS_PER_INSN;
            predictor.expired(here_ns, count_insns + retired_insns, at_ns < end_ns, false);
            user_ns = here_ns + back_ns;
            if at_ns >= end_ns {
                break user_ns;
            }
            let left_insns = late_insns - retired_insns;
            at_ns = predictor.expiry_ns(here_ns, left_insns, Origin::Expiry);
            let count_insns = count_insns + retired_insns;
            predictor.set(here_ns, at_ns, count_insns, Origin::Expiry);
        };
        count_insns += task_insns;
        if task_insns > retired_insns {
            predictor.progress();
        }
    }
    expiries
}

/// However the ends of tasks, the ways and the timer coincide, the timer soon expires for nothing
/// no more.
#[test]
fn no_interrupt_comes_for_tasks_that_end_before() {
    for way_ns in [1_000, 4_000, 8_000, 19_000, 30_000, 60_000] {
        for part in 1..95 {
            let mut predictor = Predictor::new(Rate::new(250_000));
            let task_insns = 100 * part;
            let mut run = |switches| {
                expiries_for_nothing(&mut predictor, switches, way_ns, task_insns, 10_000)
            };
            let learning = run(1_000);
            let later = run(1_000);
            assert!(
                learning <= 100 && later <= 10,
                "{learning} interrupts, then {later}: way {way_ns} ns, tasks of {task_insns}"
            );
        }
    }
}

/// A thread whose pace changes from slot to slot never gets far beyond: it takes more interrupts.
#[test]
fn a_pace_that_varies_is_aimed_at_from_before() {
    let mut machine = Machine::new(4_000);
    let mut interrupts = 0;
    for slot in 0..1_000u64 {
        machine.pace_milli = 250 + slot * 7919 % 41;
        let (needed, beyond_insns) = machine.run(250_000);
        if slot >= 100 {
            interrupts += needed;
            // A pace faster than all that was seen lately.
            assert!(beyond_insns <= 250_000 / 20, "{beyond_insns} beyond");
        }
    }
    assert!(interrupts <= 900 * 5, "{interrupts}");
}

#[test]
fn another_pace_is_learned() {
    for pace_milli in [25, 100, 500, 2_000] {
        let mut machine = Machine::new(5_000);
        machine.pace_milli = pace_milli;
        for _ in 0..40 {
            machine.run(4_000_000);
        }
        let (interrupts, beyond_insns) = machine.run(4_000_000);
        // A pace slower than the CPU's rate is approached step by step: never too late.
        let most = if pace_milli < 250 { 100 } else { 6 };
        assert!(
            interrupts <= most,
            "{interrupts} interrupts at {pace_milli}"
        );
        let margin_insns = (5_000 / 8 + 400) * pace_milli / 1000;
        assert!(
            beyond_insns <= margin_insns,
            "{beyond_insns} beyond at {pace_milli}"
        );
    }
}

/// If time is counted, an interrupt that arrives late does not make the pace fast: the next slots
/// need no more interrupts than before.
#[test]
fn a_late_interrupt_is_no_pace() {
    let mut machine = Machine::new(2_000);
    machine.by_clock = true;
    for _ in 0..20 {
        machine.run(1_000_000);
    }
    for late_ns in [20_000, 500_000, 5_000_000] {
        machine.late_ns = late_ns;
        machine.run(100_000);
        machine.late_ns = 0;
        let (interrupts, beyond_insns) = machine.run(1_000_000);
        assert!(interrupts <= 3, "{interrupts} interrupts after {late_ns}");
        assert!(beyond_insns <= 1_000, "{beyond_insns} beyond");
    }
}

/// Timers that expire for another reason than a count are delayed while nothing happens, and only
/// then.
#[test]
fn no_progress_puts_off_any_timer() {
    let mut predictor = Predictor::new(Rate::new(250_000));
    assert_eq!(predictor.earliest_ns(7), 7);
    let mut before_ns = 0;
    for _ in 0..30 {
        predictor.expired(100, 5, true, false);
        let after_ns = predictor.earliest_ns(0);
        assert!(after_ns >= before_ns && after_ns <= 1_000_000);
        before_ns = after_ns;
    }
    assert_eq!(before_ns, 1_000_000);
    predictor.progress();
    assert_eq!(predictor.earliest_ns(7), 7);
}

/// Numbers at their ends do no harm.
#[test]
fn extreme_numbers() {
    for rate in [0, 1, 250_000, u64::MAX] {
        let mut predictor = Predictor::new(Rate::new(rate));
        for (now_ns, insns) in [(0, 0), (u64::MAX, 1), (1, u64::MAX), (u64::MAX, u64::MAX)] {
            for origin in [
                Origin::Expiry,
                Origin::Interrupt,
                Origin::InterruptSwitch,
                Origin::Call,
            ] {
                assert!(predictor.expiry_ns(now_ns, insns, origin) >= now_ns);
                predictor.set(now_ns / 2, now_ns, insns / 3, origin);
                predictor.expired(now_ns, insns, true, insns == 1);
                predictor.set(now_ns, now_ns / 3, insns, origin);
                predictor.expired(0, 0, true, false);
                predictor.forget();
                predictor.expired(now_ns, insns, true, insns == 1);
            }
        }
    }
}
