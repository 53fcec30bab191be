// SPDX-License-Identifier: GPL-2.0
//! Measurement of the planner's benchmarks.
//!
//! Benchmarks of one thread measure the work done on one core. Therefore they count the time that
//! the thread had a core, not the clock: then other work of the machine hardly matters.

use std::time::Duration;

use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use criterion::Criterion;
use pbs_uapi::clock::thread_cpu_ns;

/// The time that this thread had a CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuTime;

pub(crate) fn now() -> Duration {
    Duration::from_nanos(thread_cpu_ns())
}

impl Measurement for CpuTime {
    type Intermediate = Duration;
    type Value = Duration;

    fn start(&self) -> Duration {
        now()
    }

    fn end(&self, start: Duration) -> Duration {
        now().saturating_sub(start)
    }

    fn add(&self, a: &Duration, b: &Duration) -> Duration {
        *a + *b
    }

    fn zero(&self) -> Duration {
        Duration::ZERO
    }

    fn to_f64(&self, value: &Duration) -> f64 {
        value.as_nanos() as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}

/// Configuration of all benchmarks.
pub(crate) fn config() -> Criterion<CpuTime> {
    Criterion::default()
        .with_measurement(CpuTime)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3))
        .sample_size(20)
        .without_plots()
}
