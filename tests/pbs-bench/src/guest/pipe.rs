// SPDX-License-Identifier: GPL-2.0
//! A byte there and a byte back through pipes, between two processes.

use std::fs::File;
use std::io::{Read, Write};

use pbs_vmtest::harness::{burn, Pipe, Plan};

use super::class::{run, Class};
use super::probe::Probe;

/// Round trips that are measured, and those before them.
const TRIPS: u64 = 20_000;
const WARM_UP: u64 = 200;

/// Few enough that their instructions can be written down one by one.
const PROFILED_TRIPS: u64 = 100;

/// Long enough for a slot that is over at once, and longer than its t1.
const SHORT_INSNS: u64 = 1_000;
const LATE_INSNS: u64 = 50_000;

/// One end of the way there and back.
struct Player {
    from: File,
    to: File,
}

impl Player {
    fn pair() -> Result<[Self; 2], String> {
        let (there, back) = (Pipe::new()?, Pipe::new()?);
        Ok([
            Self { from: back.read.into(), to: there.write.into() },
            Self { from: there.read.into(), to: back.write.into() },
        ])
    }

    fn send(&self) {
        (&self.to).write_all(&[0]).expect("a pipe that takes a byte");
    }

    fn receive(&self) {
        (&self.from).read_exact(&mut [0]).expect("a byte");
    }

    /// Round trips of the process that begins.
    fn serve(&self, trips: u64) {
        for _ in 0..trips {
            self.send();
            self.receive();
        }
    }

    /// Round trips of the process that answers.
    fn answer(&self, trips: u64) {
        for _ in 0..trips {
            self.receive();
            self.send();
        }
    }
}

/// Kernel instructions of a round trip.
fn round_trip(probe: &Probe, class: &Class) -> Result<f64, String> {
    let trips = if probe.is_profiled() { PROFILED_TRIPS } else { TRIPS };
    let [first, second] = Player::pair()?;
    // A plan process is late by this, and a candidate for what is nobody's.
    let late = matches!(class, Class::Pbs(_));
    probe.of_each(trips, || {
        run(
            class,
            vec![
                Box::new(|| {
                    if late {
                        burn(LATE_INSNS);
                    }
                    first.serve(WARM_UP);
                    probe.measure(|| first.serve(trips));
                }),
                Box::new(|| {
                    if late {
                        burn(LATE_INSNS);
                    }
                    second.answer(WARM_UP + trips);
                }),
            ],
        )
    })
}

pub fn fifo(probe: &Probe) -> Result<f64, String> {
    round_trip(probe, &Class::Fifo)
}

pub fn other(probe: &Probe) -> Result<f64, String> {
    round_trip(probe, &Class::Other)
}

pub fn deadline(probe: &Probe) -> Result<f64, String> {
    round_trip(probe, &Class::Deadline)
}

/// Both are late when the last slot is over, so either runs when the other
/// cannot, the later one first.
pub fn after_plan(probe: &Probe) -> Result<f64, String> {
    let plan = Plan::new(1).lead_in().slot(1, 0, SHORT_INSNS).slot(2, 0, SHORT_INSNS);
    round_trip(probe, &Class::Pbs(plan.into()))
}

/// The first process has a slot for all, and the second, whose slot is over,
/// fills it when the first one waits.
pub fn in_slot(probe: &Probe) -> Result<f64, String> {
    let plan = Plan::new(1).lead_in().slot(2, 0, SHORT_INSNS).slot(1, 0, 1 << 32);
    round_trip(probe, &Class::Pbs(plan.into()))
}
