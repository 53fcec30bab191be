// SPDX-License-Identifier: GPL-2.0
//! An adaptive mesh and a parameter sweep on a machine of which all is known at once: no
//! manager, no interval between passes, and whoever has to give nodes back does so at once.

use std::collections::VecDeque;

use pbs_rms_apps::{
    Account, Allocation, Amr, Application, KillOrder, Psa, SpeedUp, Step, Updates, View, Views,
    Wish, WorkingSet, FOREVER, MOST_MIB,
};

/// Course of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Course {
    pub(crate) ended_ns: u64,
    pub(crate) nodes: u64,
    /// Node-time that the mesh had.
    pub(crate) mesh_node_ns: u128,
    /// Node-time that the sweep had.
    pub(crate) sweep_node_ns: u128,
    pub(crate) sweep: Account,
}

impl Course {
    fn total(&self) -> f64 {
        self.nodes as f64 * self.ended_ns as f64
    }

    /// (allocated − waste) / total.
    pub(crate) fn used(&self) -> f64 {
        let allocated = (self.mesh_node_ns + self.sweep_node_ns) as f64;
        (allocated - self.sweep.wasted_node_ns as f64) / self.total()
    }

    pub(crate) fn waste(&self) -> f64 {
        self.sweep.wasted_node_ns as f64 / self.total()
    }
}

/// The steps of a seed at 75 %.
pub(crate) fn steps(seed: u64) -> Allocation {
    Allocation::new(&WorkingSet::new(seed), MOST_MIB, 0.75, SpeedUp::default())
}

struct Machine {
    nodes: u64,
    now_ns: u64,
    mesh: Amr,
    mesh_nodes: u64,
    /// Next change of the mesh's nodes: its time and the new number.
    change: Option<(u64, u64)>,
    sweep: Psa,
    course: Course,
}

/// Runs both applications together until the mesh has ended.
pub(crate) fn run(nodes: u64, mesh: Amr, task_ns: u64, order: KillOrder) -> Course {
    let mut machine = Machine {
        nodes,
        now_ns: 0,
        mesh,
        mesh_nodes: 0,
        change: None,
        sweep: Psa::new(task_ns).with_kill_order(order),
        course: Course {
            ended_ns: 0,
            nodes,
            mesh_node_ns: 0,
            sweep_node_ns: 0,
            sweep: Account::default(),
        },
    };
    let wishes = machine.mesh.connect(0);
    machine.of_mesh(wishes);
    let wishes = machine.sweep.connect(0);
    machine.of_sweep(wishes);
    while !machine.mesh.has_ended() {
        machine.advance();
    }
    machine.sweep.stop(machine.now_ns);
    machine.course.ended_ns = machine.now_ns;
    machine.course.sweep = machine.sweep.account();
    machine.course
}

/// The mesh of a seed.
pub(crate) fn mesh(seed: u64, updates: Updates) -> Amr {
    let steps = steps(seed);
    let pre_allocation = steps.equivalent_nodes();
    Amr::new(steps, pre_allocation, updates)
}

impl Machine {
    fn advance(&mut self) {
        let mesh_ns = self.mesh.next_ns().unwrap_or(FOREVER);
        let sweep_ns = self.sweep.next_ns().unwrap_or(FOREVER);
        let change_ns = self.change.map_or(FOREVER, |change| change.0);
        let to_ns = mesh_ns.min(sweep_ns).min(change_ns);
        assert!(self.now_ns <= to_ns && to_ns < FOREVER);
        let while_ns = u128::from(to_ns - self.now_ns);
        self.course.mesh_node_ns += u128::from(self.mesh_nodes) * while_ns;
        self.course.sweep_node_ns += u128::from(self.sweep.held()) * while_ns;
        self.now_ns = to_ns;
        // The step that ends has still the nodes that it had.
        if mesh_ns == to_ns {
            let wishes = self.mesh.wake(to_ns);
            self.of_mesh(wishes);
        }
        if let Some((ns, nodes)) = self.change {
            if ns <= self.now_ns {
                self.change = None;
                self.give(nodes);
            }
        }
        if sweep_ns <= to_ns {
            let wishes = self.sweep.wake(to_ns);
            self.of_sweep(wishes);
        }
        assert!(self.mesh.working() <= self.mesh_nodes);
        assert!(self.mesh_nodes + self.sweep.held() <= self.nodes);
        assert!(self.sweep.running() <= self.sweep.held());
    }

    /// The mesh has so many nodes from now on.
    fn give(&mut self, nodes: u64) {
        self.mesh_nodes = nodes;
        self.show();
        let wishes = self.mesh.started(self.now_ns, Amr::NODES, nodes);
        self.of_mesh(wishes);
    }

    fn view(&self) -> View {
        let now = self.nodes - self.mesh_nodes;
        let steps = match self.change {
            Some((ns, nodes)) => {
                vec![Step::new(ns - self.now_ns, now), Step::new(FOREVER, self.nodes - nodes)]
            }
            None => vec![Step::new(FOREVER, now)],
        };
        View::new(self.now_ns, &steps)
    }

    fn show(&mut self) {
        let view = self.view();
        let views = Views { non_preemptible: &View::default(), preemptible: &view };
        let wishes = self.sweep.views(self.now_ns, views);
        self.of_sweep(wishes);
    }

    fn of_mesh(&mut self, wishes: Vec<Wish>) {
        for wish in wishes {
            match wish {
                Wish::Request(request) if request.label == Amr::NODES => {
                    self.give(request.nodes);
                }
                Wish::Update { nodes, announce_ns, .. } => {
                    assert!(self.change.is_none());
                    if announce_ns == 0 {
                        self.give(nodes);
                    } else {
                        self.change = Some((self.now_ns + announce_ns, nodes));
                        self.show();
                    }
                }
                Wish::Request(_) | Wish::Done { .. } => (),
                _ => panic!("{wish:?}"),
            }
        }
    }

    fn of_sweep(&mut self, wishes: Vec<Wish>) {
        let mut wishes = VecDeque::from(wishes);
        while let Some(wish) = wishes.pop_front() {
            let nodes = match wish {
                Wish::Request(request) => request.nodes,
                Wish::Update { nodes, .. } => nodes,
                _ => continue,
            };
            if nodes > self.sweep.held() {
                let given = nodes.min(self.nodes - self.mesh_nodes);
                wishes.extend(self.sweep.started(self.now_ns, Psa::NODES, given));
            }
        }
    }
}
