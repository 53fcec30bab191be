// SPDX-License-Identifier: GPL-2.0
//! CPUs whose tasks slow each other.

use super::{Machine, Step};

impl Machine<'_> {
    /// Now that it is known who runs, all who run get the pace that they have beside
    /// each other.
    pub(super) fn slow(machines: &[Self], steps: &mut [Option<Step>]) {
        let Some(Some(interference)) = machines.first().map(|of| &of.options.interference) else {
            return;
        };
        let all = machines.iter().zip(&*steps);
        let running = all.filter_map(|(machine, step)| {
            let Some(Step::Run { p, .. }) = step else {
                return None;
            };
            let program = &machine.programs[*p as usize];
            let task = program.current()?.id;
            Some((machine.cpu.cpu, (program.id, task)))
        });
        let running: Vec<_> = running.collect();
        for (machine, step) in machines.iter().zip(steps) {
            if let Some(Step::Run { p, pace, bounds, .. }) = *step {
                let pace = interference.pace(pace, machine.cpu.cpu, &running);
                *step = Some(machine.run_at(p, pace, bounds));
            }
        }
    }
}
