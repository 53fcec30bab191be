// SPDX-License-Identifier: GPL-2.0
//! Measurements beside the runs of jobs: additions and queries.
//!
//! The file stores the last [`Options::keep_samples`](crate::Options::keep_samples) measurements of
//! each variant, and of each task with its neighbours. For transfers between two memories and for
//! decisions of a scheduler, it stores as many for each power of two of their size.

use rusqlite::Connection;

use crate::limits::{check_coruns, kept};
use crate::store::Fault;
use crate::{measured_rows, Corun, Decision, DecisionCost, Error, Store, TimePrediction};
use crate::{Transfer, TransferCost, VariantKey, VariantRun};

impl Store {
    /// Adds runs of variants: all or none.
    pub fn record_variant_runs(&mut self, runs: &[VariantRun]) -> Result<(), Error> {
        for run in runs {
            kept("the time of a variant", run.ran_ns)?;
            kept("the instructions of a variant", run.insns)?;
        }
        self.record(runs, measured_rows::insert_variant_run)
    }

    /// All runs of variants; those of one together, the oldest first.
    pub fn variant_runs(&self) -> Result<Vec<VariantRun>, Error> {
        self.read(measured_rows::variant_runs)
    }

    /// Predicts the time of the next run of each variant, ascending; `job` restricts the variants
    /// to those of one job.
    pub fn variants(&self, job: Option<&str>) -> Result<Vec<(VariantKey, TimePrediction)>, Error> {
        let runs = self.variant_runs()?;
        let config = &self.options().estimate;
        let of_one = runs.chunk_by(|one, other| one.variant == other.variant);
        let told = of_one.filter_map(|runs| {
            let key = &runs.first()?.variant;
            let wanted = job.is_none_or(|job| key.job == job);
            wanted.then_some((key.clone(), TimePrediction::of(config, runs)?))
        });
        Ok(told.collect())
    }

    /// Adds transfers: all or none.
    pub fn record_transfers(&mut self, transfers: &[Transfer]) -> Result<(), Error> {
        for transfer in transfers {
            kept("the size of a transfer", transfer.bytes)?;
            kept("the time of a transfer", transfer.took_ns)?;
        }
        self.record(transfers, measured_rows::insert_transfer)
    }

    /// All transfers; those between the same two together.
    pub fn transfers(&self) -> Result<Vec<Transfer>, Error> {
        self.read(measured_rows::transfers)
    }

    /// Returns the cost of transfers from one memory to another; `None`: none was measured.
    pub fn transfer_cost(&self, from: &str, to: &str) -> Result<Option<TransferCost>, Error> {
        let mut transfers = self.transfers()?;
        transfers.retain(|transfer| transfer.from == from && transfer.to == to);
        Ok(TransferCost::of(&transfers))
    }

    /// Adds decisions: all or none.
    pub fn record_decisions(&mut self, decisions: &[Decision]) -> Result<(), Error> {
        for decision in decisions {
            kept("the tasks of a decision", decision.tasks)?;
            kept("the time of a decision", decision.took_ns)?;
        }
        self.record(decisions, measured_rows::insert_decision)
    }

    /// All decisions; those of one scheduler together.
    pub fn decisions(&self) -> Result<Vec<Decision>, Error> {
        self.read(measured_rows::decisions)
    }

    /// Returns the cost of decisions of a scheduler; `None`: it has not decided yet.
    pub fn decision_cost(&self, scheduler: &str) -> Result<Option<DecisionCost>, Error> {
        let mut decisions = self.decisions()?;
        decisions.retain(|decision| decision.scheduler == scheduler);
        Ok(DecisionCost::of(&decisions))
    }

    /// Adds runs of tasks with who ran beside them: all or none.
    pub fn record_coruns(&mut self, coruns: &[Corun]) -> Result<(), Error> {
        check_coruns(coruns)?;
        self.record(coruns, measured_rows::insert_corun)
    }

    /// All runs of tasks with who ran beside them; those of one task together, the oldest
    /// first.
    pub fn coruns(&self) -> Result<Vec<Corun>, Error> {
        self.read(measured_rows::coruns)
    }

    /// Returns the last runs of tasks with the tasks beside them, the oldest first: as many as fit
    /// into so many bytes of memory.
    pub fn last_coruns(&self, bytes: usize) -> Result<Vec<Corun>, Error> {
        self.read(|connection| measured_rows::last_coruns(connection, bytes))
    }

    fn record<T>(
        &mut self,
        all: &[T],
        insert: fn(&Connection, &T, u32) -> rusqlite::Result<()>,
    ) -> Result<(), Error> {
        if all.is_empty() {
            return Ok(());
        }
        let keep = self.options().keep_samples;
        self.write(|connection| {
            let inserted = all.iter().try_for_each(|it| insert(connection, it, keep));
            inserted.map_err(Fault::Sqlite)
        })
    }
}
