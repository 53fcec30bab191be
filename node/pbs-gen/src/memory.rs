// SPDX-License-Identifier: GPL-2.0
//! Peaks of memory, planned and real.

use pbs_plan::Process;

use crate::random::{Random, Stream};
use crate::Parameters;

/// Gives every process a planned peak and a real one.
pub(crate) fn peaks(parameters: &Parameters, processes: &mut [Process]) {
    if parameters.memory_bytes.max == 0 {
        return;
    }
    let mut random = Random::new(parameters.seed, Stream::Memory);
    for process in processes {
        let planned_bytes = random.within(parameters.memory_bytes);
        let deviation = random.normal() * parameters.memory_sigma_permille as f64 / 1000.0;
        let real_bytes = (planned_bytes as f64 * (1.0 + deviation)).round();
        process.memory_bytes = planned_bytes;
        // What would be less than nothing is nothing.
        process.real_memory_bytes = Some(real_bytes as u64);
    }
}
