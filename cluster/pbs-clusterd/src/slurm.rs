// SPDX-License-Identifier: GPL-2.0
//! The plan of a partition of Slurm: the steering has its turns between the calls of users.
//!
//! A turn changes the plan and gives orders. They leave for the thread that talks to Slurm once the
//! ledger has been written, and their answers ring the bell of the service. While Slurm is silent,
//! the time of the cluster stands still and calls are answered.

use std::time::{Duration, Instant};

use pbs_manager::{Error, Manager};
use pbs_slurm::steer::{Link, Settings, Steer};
use pbs_slurm::Relay;
use pbs_socket::journal;
use pbs_uapi::clock::since_1970;

use crate::pace::Pace;

/// Least time between two turns without a report.
const TURNS: Duration = Duration::from_millis(20);
/// Least time between two turns without a report, while Slurm is looked at.
const TURNS_LOOKING: Duration = Duration::from_millis(200);

/// The steering of a partition of Slurm.
#[derive(Debug)]
pub struct Steered {
    steer: Steer,
    relay: Relay,
    /// Time of the last turn; `None`: there was none.
    turned: Option<Instant>,
    /// Time from the last turn to the next one, if nothing is reported and nobody orders anything.
    rest: Duration,
    /// Version of the plan after the last turn.
    version: u64,
}

impl Steered {
    /// Steers the requests of a ledger that was opened just now.
    pub fn new(cluster: &Manager<Link>, settings: Settings, relay: Relay) -> Self {
        let settings = Settings { has_accounts: true, ..settings };
        let steer = Steer::new(cluster, settings);
        Self { steer, relay, turned: None, rest: Duration::ZERO, version: 0 }
    }

    /// Time until the next turn without a report.
    fn next_turn(&self, cluster: &mut Manager<Link>) -> Duration {
        let Some(turned) = self.turned else {
            return Duration::ZERO;
        };
        let pause = if self.relay.is_looking() { TURNS_LOOKING } else { TURNS };
        // Requests have moved up since, and may have to be let go.
        let has_moved = cluster.planner().version() != self.version && !cluster.is_moving_up();
        let is_next = has_moved || cluster.engine_mut().has_orders();
        let rest = if is_next { pause } else { self.rest.max(pause) };
        rest.saturating_sub(turned.elapsed())
    }
}

impl Pace<Link> for Steered {
    fn begin(&mut self, _: &mut Manager<Link>) {}

    fn pass_time(&mut self, cluster: &mut Manager<Link>) -> Result<(), Error> {
        if self.relay.has_ended() {
            return Err(Error::Wrong("the thread that talks to Slurm failed".into()));
        }
        if !self.relay.has_reports() && !self.next_turn(cluster).is_zero() {
            return Ok(());
        }
        self.turned = Some(Instant::now());
        let now = since_1970();
        self.steer.turn(cluster, &mut self.relay, now)?;
        self.rest = self.steer.next(cluster, now).saturating_sub(now);
        self.version = cluster.planner().version();
        for news in self.steer.news() {
            journal::info(&format!("pbs-clusterd: {news}"));
        }
        Ok(())
    }

    fn timeout_ms(&self, cluster: &mut Manager<Link>) -> i32 {
        let next = self.next_turn(cluster).as_nanos().div_ceil(1_000_000);
        i32::try_from(next).unwrap_or(i32::MAX)
    }

    fn has_orders(&self) -> bool {
        self.relay.has_orders()
    }

    fn written(&mut self) {
        self.relay.send();
    }
}
