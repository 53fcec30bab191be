// SPDX-License-Identifier: GPL-2.0
//! Tasks, their variants, and what they wait for (§2.4, 2.6.2).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::body::{Body, Kernel};
use crate::context::{Access, Context};
use crate::model::Model;
use crate::region::Region;
use crate::Error;

/// An implementation of a task for one target.
#[derive(Clone, Debug)]
pub struct Variant {
    pub(crate) model: Model,
    pub(crate) threads: u32,
    pub(crate) device: Option<String>,
    pub(crate) takes: Option<Duration>,
    pub(crate) body: Body,
}

impl Variant {
    /// A function of one thread.
    pub fn cpu<F>(function: F) -> Self
    where
        F: Fn(&mut Context<'_>) -> Result<(), String> + Send + Sync + 'static,
    {
        Self::new(Model::Cpu, 1, Body::Function(Arc::new(function)))
    }

    /// A function that starts so many threads, itself included.
    pub fn omp<F>(threads: u32, function: F) -> Self
    where
        F: Fn(&mut Context<'_>) -> Result<(), String> + Send + Sync + 'static,
    {
        Self::new(Model::Omp, threads, Body::Function(Arc::new(function)))
    }

    /// A function whose result a simulated accelerator gives after this time.
    pub fn simulated<F>(model: Model, takes: Duration, function: F) -> Self
    where
        F: Fn(&mut Context<'_>) -> Result<(), String> + Send + Sync + 'static,
    {
        let own = Self::new(model, 1, Body::Function(Arc::new(function)));
        own.taking(takes)
    }

    /// A kernel in OpenCL C.
    pub fn kernel(kernel: Kernel) -> Self {
        Self::new(Model::Ocl, 1, Body::Kernel(kernel))
    }

    /// Any.
    pub fn new(model: Model, threads: u32, body: Body) -> Self {
        Self { model, threads: threads.max(1), device: None, takes: None, body }
    }

    /// On this type of device, where several know the model.
    #[must_use]
    pub fn on(mut self, device: &str) -> Self {
        self.device = Some(device.into());
        self
    }

    /// Sets the runtime on a simulated accelerator. Elsewhere it is the expected runtime until one
    /// was measured.
    #[must_use]
    pub fn taking(mut self, takes: Duration) -> Self {
        self.takes = Some(takes);
        self
    }
}

/// A unit of work: a function with its variants, and its data.
#[derive(Clone, Debug)]
pub struct Task {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) variants: Vec<Variant>,
    pub(crate) regions: Vec<(Region, Access)>,
    pub(crate) after: Vec<TaskId>,
    pub(crate) transfer_bytes: Option<u64>,
}

impl Task {
    /// A task of this name. Its kind, which runtimes are kept of, has the same.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            kind: name.into(),
            variants: Vec::new(),
            regions: Vec::new(),
            after: Vec::new(),
            transfer_bytes: None,
        }
    }

    /// Runtimes are kept under this name: what does the same with as much data.
    #[must_use]
    pub fn kind(mut self, kind: &str) -> Self {
        self.kind = kind.into();
        self
    }

    /// Adds a variant.
    #[must_use]
    pub fn variant(mut self, variant: Variant) -> Self {
        self.variants.push(variant);
        self
    }

    /// Adds a region with the task's access to it.
    #[must_use]
    pub fn region(mut self, region: &Region, access: Access) -> Self {
        self.regions.push((region.clone(), access));
        self
    }

    /// Sets the number of bytes that are transferred if the task runs in another memory than the
    /// tasks before it. Without it, that is the size of the regions that it reads.
    #[must_use]
    pub fn transferring(mut self, bytes: u64) -> Self {
        self.transfer_bytes = Some(bytes);
        self
    }

    /// Returns the number of bytes that decisions assume for its transfer.
    pub(crate) fn transfer_bytes(&self) -> u64 {
        let read = || {
            let read = self.regions.iter().filter(|(_, access)| access.reads());
            read.map(|(region, _)| region.len() as u64).sum()
        };
        self.transfer_bytes.unwrap_or_else(read)
    }

    /// Adds a dependency on another task.
    #[must_use]
    pub fn after(mut self, task: TaskId) -> Self {
        self.after.push(task);
        self
    }
}

/// A task of a graph, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(pub(crate) usize);

/// Tasks and their order. Tasks that use the same region, one of them writing, are in the
/// order in which they were added.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    pub(crate) tasks: Vec<Arc<Task>>,
    pub(crate) deadline: Option<Duration>,
    /// Regions with their last users, each once, in the order of their first use.
    regions: Vec<(Region, Users)>,
    /// Index of each region in the list, by its identity.
    places: HashMap<usize, usize>,
}

/// Tasks that the next user of a region may have to wait for.
#[derive(Clone, Debug, Default)]
struct Users {
    /// The last writer.
    writer: Option<TaskId>,
    /// Tasks that read the region after that writer.
    readers: Vec<TaskId>,
}

impl Graph {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a task. Each iteration of a loop is one of its own (§5.6.5).
    pub fn add(&mut self, mut task: Task) -> TaskId {
        let id = TaskId(self.tasks.len());
        let accesses: Vec<_> =
            task.regions.iter().map(|(region, access)| (self.place(region), *access)).collect();
        for &(place, access) in &accesses {
            let Users { writer, readers } = &self.regions[place].1;
            task.after.extend(writer);
            if access.writes() {
                task.after.extend(readers);
            }
        }
        for (place, access) in accesses {
            let users = &mut self.regions[place].1;
            if access.writes() {
                *users = Users { writer: Some(id), readers: Vec::new() };
            } else {
                users.readers.push(id);
            }
        }
        task.after.sort_unstable();
        task.after.dedup();
        self.tasks.push(Arc::new(task));
        id
    }

    /// Returns the index of a region in the list, to which a new one is added.
    fn place(&mut self, region: &Region) -> usize {
        let next = self.regions.len();
        let place = *self.places.entry(region.identity()).or_insert(next);
        if place == next {
            self.regions.push((region.clone(), Users::default()));
        }
        place
    }

    /// Sets the time from the submission by which plans end the last task.
    pub fn set_deadline(&mut self, deadline: Duration) {
        self.deadline = Some(deadline);
    }

    /// Makes a task wait for another one.
    pub fn depend(&mut self, task: TaskId, on: TaskId) {
        if let Some(task) = self.tasks.get_mut(task.0) {
            if !task.after.contains(&on) {
                Arc::make_mut(task).after.push(on);
            }
        }
    }

    /// All regions, each once.
    pub(crate) fn regions(&self) -> Vec<Region> {
        self.regions.iter().map(|(region, _)| region.clone()).collect()
    }

    /// Returns the successors of each task.
    pub(crate) fn successors(&self) -> Vec<Vec<usize>> {
        let mut successors = vec![Vec::new(); self.tasks.len()];
        for (index, task) in self.tasks.iter().enumerate() {
            for before in &task.after {
                if let Some(of) = successors.get_mut(before.0) {
                    of.push(index);
                }
            }
        }
        successors
    }

    /// The tasks, each behind all that it waits for.
    ///
    /// # Errors
    ///
    /// [`Error::Cycle`] with those that wait for each other; [`Error::Graph`].
    pub(crate) fn order(&self) -> Result<Vec<usize>, Error> {
        for task in &self.tasks {
            if task.after.iter().any(|before| before.0 >= self.tasks.len()) {
                let why = format!("task {} waits for one of another graph", task.name);
                return Err(Error::Graph(why));
            }
            if task.variants.is_empty() {
                return Err(Error::Graph(format!("task {} has no variant", task.name)));
            }
            for (index, (region, _)) in task.regions.iter().enumerate() {
                if task.regions[..index].iter().any(|(other, _)| other.is(region)) {
                    let why = format!("task {} has a region twice", task.name);
                    return Err(Error::Graph(why));
                }
            }
        }
        let successors = self.successors();
        let mut open: Vec<usize> = self.tasks.iter().map(|task| task.after.len()).collect();
        let mut order: Vec<usize> = (0..open.len()).filter(|&task| open[task] == 0).collect();
        let mut next = 0;
        while let Some(&task) = order.get(next) {
            next += 1;
            for &after in &successors[task] {
                open[after] -= 1;
                if open[after] == 0 {
                    order.push(after);
                }
            }
        }
        if order.len() == self.tasks.len() {
            Ok(order)
        } else {
            Err(Error::Cycle(self.cycle(&open)))
        }
    }

    /// Some tasks that wait for each other; there is an open one.
    fn cycle(&self, open: &[usize]) -> Vec<String> {
        let is_open = |task: usize| open[task] > 0;
        let mut path: Vec<usize> =
            (0..open.len()).find(|&task| is_open(task)).into_iter().collect();
        while let Some(&last) = path.last() {
            let before = self.tasks[last].after.iter().map(|before| before.0);
            let Some(before) = before.into_iter().find(|&before| is_open(before)) else {
                break;
            };
            if let Some(begin) = path.iter().position(|&task| task == before) {
                path.drain(..begin);
                break;
            }
            path.push(before);
        }
        let names = path.into_iter().map(|task| self.tasks[task].name.clone());
        names.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing() -> Variant {
        Variant::cpu(|_| Ok(()))
    }

    #[test]
    fn regions_make_order() {
        let region = Region::new(vec![0; 4]);
        let mut graph = Graph::new();
        let task = |name: &str, access| Task::new(name).variant(nothing()).region(&region, access);
        let write = graph.add(task("write", Access::Write));
        let one = graph.add(task("one", Access::Read));
        let other = graph.add(task("other", Access::Read));
        let last = graph.add(task("last", Access::ReadWrite));
        assert_eq!(graph.tasks[one.0].after, [write]);
        assert_eq!(graph.tasks[other.0].after, [write]);
        assert_eq!(graph.tasks[last.0].after, [write, one, other]);
        let behind = graph.add(task("behind", Access::Read));
        assert_eq!(graph.tasks[behind.0].after, [last], "the others are before the last writer");
    }

    #[test]
    fn cycles_are_named() {
        let mut graph = Graph::new();
        let a = graph.add(Task::new("a").variant(nothing()));
        let b = graph.add(Task::new("b").variant(nothing()).after(a));
        let c = graph.add(Task::new("c").variant(nothing()).after(b));
        graph.add(Task::new("d").variant(nothing()).after(c));
        graph.depend(b, c);
        let told = graph.order().unwrap_err().to_string();
        assert_eq!(told, "tasks wait for each other: b after c");
    }
}
