// SPDX-License-Identifier: GPL-2.0
//! Record of the inputs of a node.

use pbs_core::{Notes, Tap};
use pbs_plan::wire;

use super::{elsewhere, Machine};
use crate::options::Options;
use crate::outcome::{BegunPlan, Snapshot};

impl Machine<'_> {
    /// Begins the record with a snapshot, if its time has come.
    pub(super) fn begin_late_record(&mut self) {
        let Options { record_inputs, record_from_ns, .. } = *self.options;
        if !record_inputs || self.now_ns < record_from_ns || self.node.tap_mut().is_on() {
            return;
        }
        let mut words = Vec::new();
        self.node.save(|word| words.push(word));
        self.snapshot = Some(Snapshot {
            plan: (self.begun.len() as u64).saturating_sub(1),
            time_ns: self.now_ns,
            // The first plan comes into force at 0.
            begun_ns: 0,
            config: *self.node.config(),
            words,
        });
        self.node.tap_mut().0 = Some(Vec::new());
    }

    /// The plan has come into force, and goes on with the record of the one before.
    pub(super) fn record(&mut self, tap: Notes, follows: bool) {
        if !self.options.record_inputs {
            return;
        }
        self.node.begin_record(tap, self.begun.len() as u64, follows);
        let mut plan = elsewhere::with_others(self.truth, &self.plan);
        if !follows {
            // There is nothing yet that it could deal with.
            plan.dealt_seq = 0;
        }
        self.begun.push(BegunPlan {
            config: *self.node.config(),
            rate_insns_per_ms: self.clock.rate().insns_per_ms(),
            message: wire::encode(&plan).bytes,
        });
    }
}
