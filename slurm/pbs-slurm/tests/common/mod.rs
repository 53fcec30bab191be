// SPDX-License-Identifier: GPL-2.0
//! A planner beside a batch system in virtual time.

#![allow(dead_code)] // No test needs all of it.

use std::path::PathBuf;
use std::time::Duration;

use pbs_manager::ledger::{Access, Row};
use pbs_manager::Manager;
use pbs_slurm::steer::{Hold, JobState, Key, Link, Settings, Simulated, Steer};

pub(crate) const T: u64 = 1_764_000_000;
pub(crate) const WINDOW_S: u64 = 10;
pub(crate) const SITE: &str = "
name = 'lab'
allocate_timeout = '4s'
release_timeout = '2s'
[[nodes]]
name = 'n%02d'
count = 4
has = 'ncpus=2:mem=1g'
";

pub(crate) fn settings() -> Settings {
    Settings { window: Duration::from_secs(WINDOW_S), ..Settings::default() }
}

/// A planner, and a batch system of four nodes with two cores each.
pub(crate) struct Lab {
    pub(crate) path: PathBuf,
    pub(crate) manager: Option<Manager<Link>>,
    pub(crate) steer: Steer,
    pub(crate) slurm: Simulated,
    pub(crate) now_s: u64,
}

impl Lab {
    pub(crate) fn new(name: &str) -> Self {
        Self::of_site(name, SITE, &["n01", "n02", "n03", "n04"])
    }

    /// A lab of another site, whose nodes have two cores each.
    pub(crate) fn of_site(name: &str, site: &str, nodes: &[&str]) -> Self {
        let directory = std::env::temp_dir().join(format!("pbs-steer-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join(name);
        let _ = std::fs::remove_file(&path);
        let manager = Manager::create(&path, site, T, Link::new(settings().window)).unwrap();
        let steer = Steer::new(&manager, settings());
        Self { path, manager: Some(manager), steer, slurm: Simulated::new(nodes, 2, T), now_s: T }
    }

    pub(crate) fn manager(&mut self) -> &mut Manager<Link> {
        self.manager.as_mut().unwrap()
    }

    /// The planner's turn, without time going on.
    pub(crate) fn turn(&mut self) {
        let now = Duration::from_secs(self.now_s);
        let manager = self.manager.as_mut().unwrap();
        self.steer.turn(manager, &mut self.slurm, now).unwrap();
    }

    pub(crate) fn seconds(&mut self, count: u64) {
        for _ in 0..count {
            self.now_s += 1;
            self.slurm.tick();
            self.turn();
            self.turn();
        }
    }

    /// The planner is away for so long.
    pub(crate) fn alone(&mut self, count: u64) {
        for _ in 0..count {
            self.now_s += 1;
            self.slurm.tick();
        }
    }

    /// The planner was killed, and is there again.
    pub(crate) fn restart(&mut self) {
        drop(self.manager.take());
        let (manager, _) =
            Manager::open(&self.path, Access::Write, Link::new(settings().window)).unwrap();
        self.steer = Steer::new(&manager, settings());
        self.manager = Some(manager);
    }

    pub(crate) fn state(&self, key: Key) -> JobState {
        self.slurm.job(key).unwrap().state.clone()
    }

    pub(crate) fn rows(&mut self, key: Key) -> Vec<Row> {
        let rows = self.manager().rows().unwrap().into_iter();
        rows.filter(|row| row.command == [key.to_string()]).collect()
    }

    pub(crate) fn row(&mut self, key: Key) -> Row {
        let mut rows = self.rows(key);
        assert_eq!(rows.len(), 1, "{rows:?}");
        rows.remove(0)
    }

    pub(crate) fn outcome(&mut self, key: Key) -> String {
        self.row(key).outcome.unwrap_or_default()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

pub(crate) fn committed(state: &JobState) -> bool {
    *state == JobState::Pending(Hold::No)
}
