// SPDX-License-Identifier: GPL-2.0
//! One run of the evaluation (5.1): a mesh, and sweeps that take what it leaves.

use pbs_rms::Policy;
use pbs_rms_apps::{
    Allocation, Amr, Application, KillOrder, Label, Psa, Updates, Views, Wish, SECOND_NS,
};
use serde::Serialize;

use crate::evolving::Sim;

/// The nodes for an overcommit factor of 1 (5.1.3).
pub(super) const NODES: f64 = 1400.0;

/// Parameters of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// φ: of the cluster and of what the mesh pre-allocates.
    pub factor: f64,
    /// Time at which the mesh requests other nodes.
    pub updates: Updates,
    /// Length of the tasks of each sweep, in seconds.
    pub tasks_s: Vec<u64>,
    /// Order in which tasks are killed.
    pub kill_order: KillOrder,
    /// Whether unused nodes stay unused, instead of being lent to another application.
    pub is_strict: bool,
}

impl Default for Evaluation {
    fn default() -> Self {
        Self {
            factor: 1.0,
            updates: Updates::Spontaneous,
            tasks_s: vec![600],
            kill_order: KillOrder::default(),
            is_strict: false,
        }
    }
}

/// Results of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// End of the mesh, in seconds.
    pub end_s: f64,
    /// Allocation of the mesh, in node seconds.
    pub mesh_node_s: f64,
    /// Allocation of all applications.
    pub allocated_node_s: f64,
    /// Lost work of killed tasks.
    pub wasted_node_s: f64,
    /// Capacity of the cluster.
    pub total_node_s: f64,
    /// Passes of the manager.
    pub passes: u64,
}

impl Outcome {
    /// "Used resources" of 5.3: the part that was allocated and not wasted, in percent of all.
    pub fn used_percent(&self) -> f64 {
        100.0 * (self.allocated_node_s - self.wasted_node_s) / self.total_node_s
    }

    /// The wasted part, in percent of all.
    pub fn wasted_percent(&self) -> f64 {
        100.0 * self.wasted_node_s / self.total_node_s
    }
}

enum Model {
    Mesh(Amr),
    Sweep(Psa),
}

impl Model {
    fn application(&mut self) -> &mut dyn Application {
        match self {
            Self::Mesh(mesh) => mesh,
            Self::Sweep(sweep) => sweep,
        }
    }
}

impl Application for Model {
    fn connect(&mut self, now_ns: u64) -> Vec<Wish> {
        self.application().connect(now_ns)
    }

    fn views(&mut self, now_ns: u64, views: Views<'_>) -> Vec<Wish> {
        self.application().views(now_ns, views)
    }

    fn started(&mut self, now_ns: u64, label: Label, nodes: u64) -> Vec<Wish> {
        self.application().started(now_ns, label, nodes)
    }

    fn refused(&mut self, now_ns: u64, label: Label) -> Vec<Wish> {
        self.application().refused(now_ns, label)
    }

    fn wake(&mut self, now_ns: u64) -> Vec<Wish> {
        self.application().wake(now_ns)
    }

    fn next_ns(&self) -> Option<u64> {
        match self {
            Self::Mesh(mesh) => mesh.next_ns(),
            Self::Sweep(sweep) => sweep.next_ns(),
        }
    }

    fn has_ended(&self) -> bool {
        match self {
            Self::Mesh(mesh) => mesh.has_ended(),
            Self::Sweep(sweep) => sweep.has_ended(),
        }
    }
}

impl Evaluation {
    /// Runs it with a mesh of these steps. None: the mesh has not come to its end.
    pub fn run(&self, steps: &Allocation) -> Option<Outcome> {
        let nodes = (NODES * self.factor).round() as u32;
        let policy = Policy { is_strict: self.is_strict, ..Policy::default() };
        let mesh = Amr::new(steps.clone(), steps.overcommitted(self.factor), self.updates);
        let sweeps = self.tasks_s.iter().map(|&seconds| {
            let sweep = Psa::new(seconds * SECOND_NS);
            Model::Sweep(sweep.with_kill_order(self.kill_order))
        });
        let mut sim = Sim::new(policy, nodes, std::iter::once(Model::Mesh(mesh)).chain(sweeps));
        if !sim.run_until_ended(0) {
            return None;
        }
        for place in 1..=self.tasks_s.len() {
            sim.tell(place, |model, now_ns| match model {
                Model::Sweep(sweep) => sweep.stop(now_ns),
                Model::Mesh(_) => Vec::new(),
            });
        }
        let seconds = |ns: u128| ns as f64 / SECOND_NS as f64;
        let mut outcome = Outcome {
            end_s: seconds(u128::from(sim.now_ns())),
            total_node_s: seconds(u128::from(sim.now_ns()) * u128::from(nodes)),
            passes: sim.passes(),
            ..Outcome::default()
        };
        for place in 0..=self.tasks_s.len() {
            let account = sim.app(place).and_then(|app| sim.rms().session(app)).map(|s| s.account);
            let account = account?;
            let firm = seconds(account.non_preemptible_node_ns);
            outcome.allocated_node_s += firm + seconds(account.preemptible_node_ns);
            match sim.model(place)? {
                Model::Mesh(_) => outcome.mesh_node_s += firm,
                Model::Sweep(sweep) => {
                    outcome.wasted_node_s += seconds(sweep.account().wasted_node_ns);
                }
            }
        }
        Some(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_time_is_allocated_time_without_waste() {
        let outcome = Outcome {
            mesh_node_s: 500.0,
            allocated_node_s: 900.0,
            wasted_node_s: 50.0,
            total_node_s: 1000.0,
            ..Outcome::default()
        };
        assert_eq!((outcome.used_percent(), outcome.wasted_percent()), (85.0, 5.0));
    }
}
