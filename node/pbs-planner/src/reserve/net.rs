// SPDX-License-Identifier: GPL-2.0
//! Remaining net of a job and its shortest times, shared by all tries to plan the job.

use std::collections::BTreeMap;

use pbs_job::{Action, Job, Node};
use pbs_profile::Profile;

use super::confined::Confined;
use super::{Progress, Request};
use crate::store::{Needs, Site, Store};

/// The open part of a task net.
#[derive(Clone, Debug)]
pub(crate) struct Net {
    /// Per task: what a core would retire at its own rate in the time that what is
    /// left of it takes; of ended tasks nothing.
    pub(crate) insns: Vec<u64>,
    /// Per task: whether it needs a reservation.
    pub(crate) open: Vec<bool>,
    /// Per task: how many open tasks it waits for.
    pub(crate) waits_for: Vec<u32>,
    /// Per task: the time from its start to the end of the job, when every
    /// task runs on the fastest core and waits for no core: the upward rank.
    pub(crate) rank_ns: Vec<u64>,
    /// Per task: how long it takes on the fastest core.
    pub(crate) shortest_ns: Vec<u64>,
    /// Per process: the same of the first task that takes time. A core must have
    /// time for that one: where the first takes none, as the start of a job does as a
    /// rule, every core would do at any time, and the process would be tied to one
    /// that is busy. After a join, which waits for others, nothing is said: 0.
    pub(crate) first_insns: Vec<u64>,
    /// Per process: the same of all that is left of it.
    pub(crate) process_insns: Vec<u64>,
    /// Per process: the time from its start to its end in the sense of
    /// `rank_ns`.
    pub(crate) span_ns: Vec<u64>,
    /// Per process: memory and resources that it holds.
    pub(crate) needs: Vec<Needs>,
    pub(crate) open_tasks: usize,
    /// Per task: first tasks of processes that begin after it, since their work waits for it.
    holds_back: BTreeMap<usize, Vec<usize>>,
    /// Per such first task: all of those.
    held_back_by: BTreeMap<usize, Vec<usize>>,
    /// Cores that may be used, if not all.
    pub(crate) confined: Option<Confined>,
}

impl Net {
    pub(crate) fn new(request: &Request<'_>, store: &Store) -> Self {
        let job = request.job;
        let tasks = job.tasks.len();
        let mut net = Self {
            insns: job.tasks.iter().map(|task| task.insns).collect(),
            open: vec![true; tasks],
            waits_for: vec![0; tasks],
            rank_ns: vec![0; tasks],
            shortest_ns: vec![0; tasks],
            first_insns: vec![0; job.processes.len()],
            process_insns: vec![0; job.processes.len()],
            span_ns: vec![0; job.processes.len()],
            needs: (0..job.processes.len()).map(|it| Needs::new(job, it, store)).collect(),
            open_tasks: 0,
            holds_back: BTreeMap::new(),
            held_back_by: BTreeMap::new(),
            confined: None,
        };
        net.confined = Confined::new(request, store, &net.needs);
        for (index, process) in job.processes.iter().enumerate() {
            let ended = match request.progress_of(index) {
                Progress::Waiting | Progress::Attached { .. } => 0,
                Progress::Running { position, retired_insns, .. } => {
                    let task = process.tasks[position];
                    // It has not said that it has ended, so something is left.
                    let left_insns = net.insns[task].saturating_sub(retired_insns);
                    net.insns[task] = left_insns.max(1);
                    position
                }
                Progress::Ended => process.tasks.len(),
            };
            for &task in &process.tasks[..ended] {
                net.open[task] = false;
                net.insns[task] = 0;
            }
            for &task in &process.tasks[ended..] {
                net.insns[task] = store.core_insns(process, net.insns[task]);
            }
            let free = process.tasks[ended..].iter().take_while(|&&task| {
                !matches!(job.tasks[task].action, Action::Join { child: Some(_) })
            });
            let mut insns = free.map(|&task| net.insns[task]);
            net.first_insns[index] = insns.find(|&insns| insns > 0).unwrap_or(0);
            let left = process.tasks[ended..].iter().map(|&task| net.insns[task]);
            net.process_insns[index] = left.fold(0, u64::saturating_add);
            net.open_tasks += process.tasks.len() - ended;
        }
        net.measure(request, store);
        net.hold_back(request);
        net
    }

    /// A process begins when its work can, not when it was forked: its first tasks, which take no
    /// time, wait for all that the first after them waits for. Otherwise it would be tied to a core
    /// that is free while it waits, and hold its memory meanwhile. Where others wait for one of
    /// those tasks, a child for example, the process begins at once.
    fn hold_back(&mut self, request: &Request<'_>) {
        let job = request.job;
        for (index, process) in job.processes.iter().enumerate() {
            let tasks = &process.tasks;
            let has_begun = !matches!(
                request.progress_of(index),
                Progress::Waiting | Progress::Attached { .. }
            );
            let work = tasks.iter().position(|&task| self.insns[task] > 0);
            let Some(work) = work.filter(|&work| work > 0 && !has_begun) else { continue };
            let mut pairs = tasks[..=work].windows(2);
            if !pairs.all(|pair| job.successors(pair[0]).all(|after| after == pair[1])) {
                continue;
            }
            let before = tasks[1..=work].iter().flat_map(|&task| job.predecessors(task));
            let others = before.filter(|&task| job.tasks[task].process != index && self.open[task]);
            let others: Vec<usize> = others.collect();
            if others.is_empty() {
                continue;
            }
            let first = tasks[0];
            self.waits_for[first] += others.len() as u32;
            for &before in &others {
                self.holds_back.entry(before).or_default().push(first);
            }
            self.held_back_by.insert(first, others);
        }
    }

    /// Whether the process begins when its work can, and the task is one of its own.
    pub(crate) fn begins_with_work(&self, job: &Job, process: usize, task: usize) -> bool {
        let first = job.processes[process].tasks[0];
        job.tasks[task].process == process && self.held_back_by.contains_key(&first)
    }

    /// The tasks that can only start after that task has ended, in a plan.
    pub(crate) fn successors<'a>(
        &'a self,
        job: &'a Job,
        task: usize,
    ) -> impl Iterator<Item = usize> + 'a {
        let later = self.holds_back.get(&task).into_iter().flatten();
        job.successors(task).chain(later.copied())
    }

    /// The tasks that must have ended before that task starts, in a plan.
    pub(crate) fn predecessors<'a>(
        &'a self,
        job: &'a Job,
        task: usize,
    ) -> impl Iterator<Item = usize> + 'a {
        let earlier = self.held_back_by.get(&task).into_iter().flatten();
        job.predecessors(task).chain(earlier.copied())
    }

    fn measure(&mut self, request: &Request<'_>, store: &Store) {
        let job = request.job;
        let fastest = self.fastest_rate(store);
        for task in (0..job.tasks.len()).filter(|&task| self.open[task]) {
            self.shortest_ns[task] = store.machine().duration_ns(self.insns[task], fastest);
            let open = job.predecessors(task).filter(|&before| self.open[before]);
            self.waits_for[task] = open.count() as u32;
        }
        for task in order(job, &self.open).into_iter().rev() {
            let after = job.successors(task).map(|after| self.rank_ns[after]);
            let after_ns = after.max().unwrap_or(0);
            self.rank_ns[task] = after_ns.saturating_add(self.shortest_ns[task]);
        }
        for (index, process) in job.processes.iter().enumerate() {
            let mut open = process.tasks.iter().filter(|&&task| self.open[task]);
            let (Some(&first), Some(&last)) = (open.next(), process.tasks.last()) else {
                continue;
            };
            let after_ns = self.rank_ns[last].saturating_sub(self.shortest_ns[last]);
            self.span_ns[index] = self.rank_ns[first].saturating_sub(after_ns);
        }
    }

    /// Whether the process is confined to cores by itself, beside its job.
    pub(crate) fn is_confined(&self, process: usize) -> bool {
        self.confined.as_ref().is_some_and(|confined| confined.has_own(process))
    }

    fn is_used(&self, of: impl Fn(&Confined) -> bool) -> bool {
        self.confined.as_ref().is_none_or(of)
    }

    /// The cores that processes of the job may be on.
    pub(crate) fn sites<'a>(&'a self, store: &'a Store) -> impl Iterator<Item = &'a Site> {
        let sites = store.sites().iter().enumerate();
        let sites = sites.filter(|&(core, _)| self.is_used(|confined| confined.uses(core)));
        sites.map(|(_, site)| site)
    }

    /// The nodes of those cores.
    pub(crate) fn nodes<'a>(&'a self, store: &'a Store) -> impl Iterator<Item = &'a Node> {
        let nodes = store.machine().nodes.iter().enumerate();
        let nodes = nodes.filter(|&(node, _)| self.is_used(|confined| confined.uses_node(node)));
        nodes.map(|(_, node)| node)
    }

    /// Returns the profiles of free memory of the cores that processes of the job may be on.
    pub(crate) fn memories<'a>(&'a self, store: &'a Store) -> impl Iterator<Item = &'a Profile> {
        let memories = store.memories().iter().enumerate();
        let memories =
            memories.filter(|&(memory, _)| self.is_used(|confined| confined.uses_memory(memory)));
        memories.map(|(_, memory)| memory)
    }

    /// Returns the number of instructions that the fastest of those cores retires in a second.
    pub(crate) fn fastest_rate(&self, store: &Store) -> u64 {
        let fastest = match &self.confined {
            None => store.groups_by_rate().map(|group| group.rate_insns_per_s).next(),
            Some(_) => self.sites(store).map(|site| site.rate_insns_per_s).max(),
        };
        fastest.unwrap_or(1)
    }

    /// The open tasks that wait for none.
    pub(crate) fn first(&self) -> impl Iterator<Item = usize> + '_ {
        let tasks = 0..self.open.len();
        tasks.filter(|&task| self.open[task] && self.waits_for[task] == 0)
    }
}

/// The tasks that are wanted, each after all wanted ones that it waits for.
/// Those that wait for each other are left out.
pub(crate) fn order(job: &Job, wanted: &[bool]) -> Vec<usize> {
    let mut order = Vec::new();
    let mut waits_for = vec![0; wanted.len()];
    for task in (0..wanted.len()).filter(|&task| wanted[task]) {
        let before = job.predecessors(task).filter(|&before| wanted[before]);
        waits_for[task] = before.count();
        if waits_for[task] == 0 {
            order.push(task);
        }
    }
    let mut done = 0;
    while let Some(&task) = order.get(done) {
        done += 1;
        for after in job.successors(task) {
            if waits_for[after] > 0 {
                waits_for[after] -= 1;
                if waits_for[after] == 0 {
                    order.push(after);
                }
            }
        }
    }
    order
}
