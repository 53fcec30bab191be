// SPDX-License-Identifier: GPL-2.0
//! The recording of a simulation.

use std::io::{self, Write};

use pbs_sim::Simulation;

use crate::{KeptPlan, Writer};

/// Writes what was recorded of a simulation
/// ([`Options::record_inputs`](pbs_sim::Options::record_inputs)); returns how many
/// inputs.
pub fn write_simulated(simulation: &Simulation, to: impl Write) -> io::Result<u64> {
    let mut writer = Writer::new(to)?;
    let mut inputs = 0;
    for recorded in &simulation.recorded {
        for (plan, number) in recorded.plans.iter().zip(0..) {
            let kept = KeptPlan {
                rate_insns_per_ms: plan.rate_insns_per_ms,
                config: plan.config,
                message: plan.message.clone(),
            };
            writer.plan(number, recorded.cpu, &kept)?;
        }
        if let Some(snapshot) = &recorded.snapshot {
            writer.snapshot(recorded.cpu, 0, snapshot)?;
        }
        writer.inputs(recorded.cpu, 0, &recorded.inputs)?;
        inputs += recorded.inputs.len() as u64;
    }
    writer.end()?;
    Ok(inputs)
}
