// SPDX-License-Identifier: GPL-2.0
//! Workload and platform of co-scheduling.

/// A node: CPU threads and accelerators by type (§2.5.1's system S).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Platform {
    /// Threads of the CPU that tasks may use.
    pub threads: u32,
    /// Accelerators, grouped by type (§5.4.1).
    pub devices: Vec<DeviceType>,
}

/// Accelerators of one type.  Each has its own memory and its own queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceType {
    /// Name for reports.
    pub name: String,
    /// Number of devices of the type.
    pub count: u32,
    /// Whether the transfers of a device take turns on its link.  Otherwise all of them can be under
    /// way at once.
    pub has_link: bool,
    /// Thread of the CPU that tasks on the device take, too; `None`: they take none.
    pub host: Option<Host>,
}

/// Part of a CPU thread's time that tasks on an accelerator take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// Number of the thread.
    pub thread: u32,
    /// Time on the thread, in parts of a thousand of the task's runtime; at the begin of the task.
    pub permille: u32,
}

impl DeviceType {
    /// Returns the number of links on which transfers take turns.
    pub fn links(&self) -> u32 {
        if self.has_link {
            self.count
        } else {
            0
        }
    }

    /// Returns the thread that a task on a device takes, and for how long; `None`: it takes none.
    pub fn host_time(&self, runtime_ns: u64) -> Option<(u32, u64)> {
        let host = self.host.filter(|host| host.permille > 0)?;
        Some((host.thread, host.taken_ns(runtime_ns)))
    }
}

impl Host {
    /// Returns how long a task of that runtime takes the thread.
    pub fn taken_ns(self, runtime_ns: u64) -> u64 {
        let ns = u128::from(runtime_ns) * u128::from(self.permille.min(1000)) / 1000;
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

/// Target that a variant runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ExecutionTarget {
    /// Number of threads of the CPU.
    Threads(u32),
    /// One accelerator of this type, an index into [`Platform::devices`].
    Device(usize),
}

/// One implementation of a task for one target: a proxy (§2.6.2), a row of a CSI's payload
/// (table 5.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Programming model: CPU, OMP, GPU, CUDA, OCL or another.
    pub model: String,
    /// Target of the execution.
    pub place: ExecutionTarget,
    /// Profiled runtime.
    pub runtime_ns: u64,
}

/// A dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The task that is waited for, an index into [`Workload::tasks`].
    pub task: usize,
    /// Duration of the data transfer if the memories of both tasks differ.  The host is one memory,
    /// each accelerator another.
    pub transfer_ns: u64,
}

/// A unit of work (§2.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Name of the task, unique within its process.
    pub name: String,
    /// Process of the task, an index into [`Workload::processes`].
    pub process: usize,
    /// Tasks for which it waits.
    pub after: Vec<Edge>,
    /// Variants of the task; at least one.
    pub variants: Vec<Variant>,
}

/// A program that was called, with its tasks (§2.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Name for reports.
    pub name: String,
    /// Owner of the process; breaks ties.
    pub owner: u64,
    /// Time at which the process submits its tasks.
    pub arrival_ns: u64,
    /// Time by which all its tasks should have ended, on the same clock.
    pub deadline_ns: Option<u64>,
}

/// Processes and their tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    /// The processes.
    pub processes: Vec<Process>,
    /// The tasks of all of them.  A dependency that is not listed is satisfied.
    pub tasks: Vec<Task>,
}

impl Workload {
    /// The tasks that wait for each.
    pub fn successors(&self) -> Vec<Vec<usize>> {
        let mut successors = vec![Vec::new(); self.tasks.len()];
        for (index, task) in self.tasks.iter().enumerate() {
            for edge in &task.after {
                if let Some(of) = successors.get_mut(edge.task) {
                    of.push(index);
                }
            }
        }
        successors
    }

    /// The tasks, each behind all that it waits for, else in the order of their processes'
    /// arrival and as they are listed; shorter than the list if there is a cycle.
    pub fn topological(&self) -> Vec<usize> {
        let successors = self.successors();
        let mut open = vec![0_usize; self.tasks.len()];
        for &next in successors.iter().flatten() {
            open[next] += 1;
        }
        let key = |task: usize| {
            let process = self.tasks[task].process;
            let arrival_ns = self.processes.get(process).map_or(0, |of| of.arrival_ns);
            std::cmp::Reverse((arrival_ns, process, task))
        };
        let mut ready: std::collections::BinaryHeap<_> =
            (0..self.tasks.len()).filter(|&task| open[task] == 0).map(key).collect();
        let mut order = Vec::with_capacity(self.tasks.len());
        while let Some(std::cmp::Reverse((_, _, task))) = ready.pop() {
            order.push(task);
            for &next in &successors[task] {
                open[next] -= 1;
                if open[next] == 0 {
                    ready.push(key(next));
                }
            }
        }
        order
    }
}
