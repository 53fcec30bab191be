// SPDX-License-Identifier: GPL-2.0
//! Plans for the scheduling class: per core an ordered list of slots in
//! instructions, with idle slots in between.

use std::collections::BTreeMap;

use pbs_job::Job;
use pbs_plan::{Config, Cpu, Dispatch, Plan, Process, Slot, Start, Task};
use pbs_text::{underscored, Problem};
use pbs_uapi::{MAX_BUFFER_INSNS, MAX_SLOT_INSNS};

use super::buffer::slack;
use super::dependencies::{SlotDependencies, MOST_DEPENDENCIES};
use super::handing_on::{self, Hold, Holder};
use super::Entry;
use crate::{Budget, Progress, RunId, Store, TaskReservation};

const NS_PER_S: u128 = 1_000_000_000;

/// The numbers that processes have in plans. A process keeps its number from
/// plan to plan, since the class knows it by that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessIds {
    ids: BTreeMap<(RunId, usize), u32>,
    processes: BTreeMap<u32, (RunId, usize)>,
    next: u32,
}

/// Settings that all plans have in common.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The planner's name for them, repeated in events.
    pub plan_id: u64,
    /// They deal with the prediction failures of all events with a smaller
    /// number.
    pub dealt_seq: u64,
    /// `None`: each node's defaults.
    pub config: Option<Config>,
    /// Start of the plans. Earlier reservations must have ended.
    pub start_ns: u64,
    /// Cores that have a plan even if nothing is reserved there: one without slots,
    /// by which what an earlier plan has there leaves the class.
    pub cleared: Vec<usize>,
    /// Whether a process also waits for those whose memory it gets, as it does for those whose
    /// resources it gets, and never begins before they are gone. Where slots float by deadlines it always waits: times mean nothing there. If a
    /// process dies in its last task, the processes that wait for it continue only with a new plan,
    /// even one for another job.
    pub memory_order: bool,
    /// Instructions of the capacity buffer that are used up, by run and process. No idle slot is
    /// planned for them again.
    pub used_buffer_insns: BTreeMap<(RunId, usize), u64>,
}

/// The plan of a node.
#[derive(Clone, Debug)]
pub struct NodePlan {
    /// Index of the node on the machine.
    pub node: usize,
    /// Plan of the node.
    pub plan: Plan,
}

impl ProcessIds {
    /// Numbers from `first` on. Where another planner's processes may still be in
    /// the class, those must have had others.
    pub fn from(first: u32) -> Self {
        Self { next: first, ..Self::default() }
    }

    /// Takes note of a number that the process has already. `false`: another one
    /// has it.
    pub fn take(&mut self, run: RunId, process: usize, id: u32) -> bool {
        let free = !self.processes.contains_key(&id) && !self.ids.contains_key(&(run, process));
        if free {
            self.ids.insert((run, process), id);
            self.processes.insert(id, (run, process));
            self.next = self.next.max(id.wrapping_add(1));
        }
        free
    }

    /// The number of the process, given by its index in the job.
    pub fn get(&mut self, run: RunId, process: usize) -> u32 {
        let known = self.ids.entry((run, process));
        *known.or_insert_with(|| {
            let id = self.next;
            // After 2^32 processes those that are over by far have had theirs.
            self.next = self.next.wrapping_add(1);
            self.processes.insert(id, (run, process));
            id
        })
    }

    /// Returns the run and the index of the process that has this number.
    pub fn process(&self, id: u32) -> Option<(RunId, usize)> {
        self.processes.get(&id).copied()
    }

    /// Forgets a run that is over. Its numbers are not given again.
    pub fn forget(&mut self, run: RunId) {
        self.ids.retain(|&(of, _), _| of != run);
        self.processes.retain(|_, &mut (of, _)| of != run);
    }
}

/// The plans of all nodes on which one of the runs has something to do.
///
/// A task becomes a slot of its process, as long as the task's instructions; the
/// time between two tasks of a core becomes an idle slot, as long as the core's
/// instructions in the execution time of that time. The plan says the rate of each
/// core, and of each process that has its own. A task without instructions
/// has no slot, since a plan has none of length 0. Of fork, join and messages the
/// plan has the order: a task waits for those of other processes ([`SlotDependencies`]), and
/// a message with a size has a planned arrival. The
/// memory that was reserved for a process is its planned peak, and that of the node
/// the plan's limit. Where the plan's processes run by deadline, each has the latest end
/// with which its job keeps the deadline.
///
/// # Errors
///
/// What the class would refuse.
pub fn class_plans(
    store: &Store,
    entries: &[Entry<'_>],
    ids: &mut ProcessIds,
    settings: &Settings,
) -> Result<Vec<NodePlan>, Vec<Problem>> {
    let mut plans: Vec<NodePlan> = (0..store.machine().nodes.len())
        .map(|node| NodePlan {
            node,
            plan: Plan {
                plan_id: settings.plan_id,
                memory_bytes: store.machine().nodes[node].memory_bytes,
                dealt_seq: settings.dealt_seq,
                config: settings.config,
                ..Plan::default()
            },
        })
        .collect();
    let by_deadline = settings.config.is_some_and(|config| config.dispatch() == Dispatch::Deadline);
    let rates: Vec<u64> =
        (store.machine().cores()).map(|(_, core)| core.rate_insns_per_s).collect();
    // By node and process: what is left of the capacity buffer, for a CPU of that rate.
    let mut catch_up_insns: Vec<Vec<u64>> = plans.iter().map(|_| Vec::new()).collect();
    let mut holds: Vec<Hold> = Vec::new();
    let mut on_core: Vec<Vec<Placed>> = vec![Vec::new(); store.sites().len()];
    let dependencies = Budget::new(MOST_DEPENDENCIES);
    for entry in entries {
        let Some(run) = store.run(entry.run) else {
            continue;
        };
        let slack = slack(entry, run);
        let mut of_process: Vec<Vec<&TaskReservation>> =
            vec![Vec::new(); entry.job.processes.len()];
        for task in run.tasks.iter().filter(|task| task.start_ns < task.end_ns) {
            of_process[task.process].push(task);
        }
        let slots = of_process.iter().flatten();
        let slots = slots.map(|task| (task.task, store.sites()[task.core].node, task.end_ns));
        let open = run.tasks.iter().map(|task| task.task);
        let order = SlotDependencies::new(entry.job, open, slots, &dependencies);
        let mut holders = vec![None; entry.job.processes.len()];
        for (index, mut tasks) in of_process.into_iter().enumerate() {
            let Some(core) = tasks.first().map(|task| task.core) else {
                continue;
            };
            tasks.sort_unstable_by_key(|task| entry.job.tasks[task.task].position);
            let site = store.sites()[core];
            let process = &entry.job.processes[index];
            let buffer_insns = insns(slack.buffers_ns[index], site.rate_insns_per_s);
            let buffer_insns = store.process_insns(process, buffer_insns);
            // Without one of its own it has that of the CPU.
            let own = process.rate_insns_per_s;
            let own = own.map_or(0, |_| per_ms(store.process_insns(process, rates[core])));
            let latest_end_ns = slack.latest_ends_ns[index];
            let latest_end_ns = Some(latest_end_ns).filter(|&ns| by_deadline && ns != u64::MAX);
            let plan = &mut plans[site.node].plan;
            let place = plan.processes.len();
            plan.processes.push(Process {
                id: ids.get(entry.run, index),
                name: Some(name(entry, entries.len(), index)),
                cpu: None,
                buffer_insns: buffer_insns.min(MAX_BUFFER_INSNS),
                memory_bytes: process.memory_bytes,
                rate_insns_per_ms: own,
                deadline_ns: latest_end_ns.map(|end_ns| end_ns.saturating_sub(settings.start_ns)),
                real_memory_bytes: None,
                start: start(entry, index),
                tasks: tasks
                    .iter()
                    .map(|task| Task {
                        after: order.after(task.task, settings.start_ns, |process| {
                            ids.get(entry.run, process)
                        }),
                        ..class_task(entry, task.task)
                    })
                    .collect(),
                line: None,
            });
            let used_insns = settings.used_buffer_insns.get(&(entry.run, index));
            let catch_up = catch_up(store, &plan.processes[place], used_insns, rates[core]);
            catch_up_insns[site.node].push(catch_up);
            let lengths_ns = tasks.iter().map(|task| task.end_ns - task.start_ns);
            let length_ns = lengths_ns.sum();
            holders[index] = Some(Holder { node: site.node, process: place, length_ns });
            let placed = tasks.iter().map(|task| Placed {
                start_ns: task.start_ns,
                length_ns: run.stretches(task).map(|over| over.end - over.start).sum(),
                process: place,
            });
            on_core[core].extend(placed);
        }
        if dependencies.is_spent() {
            return Err(vec![too_many_dependencies(entry.job)]);
        }
        holds.extend(handing_on::holds(entry, store, run, &holders));
    }
    handing_on::order(store, holds, &mut plans, settings.memory_order || by_deadline);
    let cores = store.machine().cores().zip(store.machine().cpus());
    for (number, (((node, core), cpu), placed)) in cores.zip(on_core).enumerate() {
        if placed.is_empty() && !settings.cleared.contains(&number) {
            continue;
        }
        let of_processes = &catch_up_insns[node];
        let slots = slots(store, core.rate_insns_per_s, placed, settings.start_ns, of_processes);
        plans[node].plan.cpus.push(Cpu {
            cpu,
            rate_insns_per_ms: per_ms(core.rate_insns_per_s),
            slots,
            ..Cpu::default()
        });
    }
    plans.retain(|node| !node.plan.cpus.is_empty());
    for node in &plans {
        pbs_plan::check(&node.plan)?;
    }
    Ok(plans)
}

/// Refusal of a plan with more dependencies than can be planned with.
fn too_many_dependencies(job: &Job) -> Problem {
    let most = underscored(MOST_DEPENDENCIES);
    let message = format!(
        "with job {}, the tasks of the plan wait for each other more than {most} times, also \
         through tasks without instructions; let fewer tasks wait for one that joins many \
         processes, or plan the job later",
        job.name
    );
    Problem::at(None, message)
}

/// A task on its core.
#[derive(Clone, Copy, Debug)]
struct Placed {
    start_ns: u64,
    /// The time of the core that it has: less than until its end, if it is interrupted.
    length_ns: u64,
    /// Index into the plan's processes.
    process: usize,
}

/// The slots of a core, in order.
fn slots(
    store: &Store,
    rate_insns_per_s: u64,
    mut placed: Vec<Placed>,
    start_ns: u64,
    of_processes: &[u64],
) -> Vec<Slot> {
    placed.sort_unstable_by_key(|task| task.start_ns);
    let mut last_of = vec![0; of_processes.len()];
    for (place, task) in placed.iter().enumerate() {
        last_of[task.process] = place;
    }
    let mut slots = Vec::with_capacity(placed.len());
    let mut time_ns = start_ns;
    // What stands behind the process that has just had its last slot.
    let mut catch_up_insns = 0;
    for (place, task) in placed.iter().enumerate() {
        let gap_ns = task.start_ns.saturating_sub(time_ns);
        let gap_ns = store.capacity().execution_ns(gap_ns);
        let mut idle_insns = insns(gap_ns, rate_insns_per_s).max(catch_up_insns);
        while idle_insns > 0 {
            let length_insns = idle_insns.min(MAX_SLOT_INSNS);
            slots.push(Slot::Idle { length_insns, real_insns: None });
            idle_insns -= length_insns;
        }
        slots.push(Slot::Process { process: task.process });
        // The rest of a task that is interrupted is in its slot, before those that
        // interrupt it: the node orders them by their deadlines.
        time_ns = time_ns.max(task.start_ns).saturating_add(task.length_ns);
        catch_up_insns =
            if last_of[task.process] == place { of_processes[task.process] } else { 0 };
    }
    slots
}

/// The capacity buffer of what is planned of a process: as much it may be late
/// before the node signals it (Leppert 2021, 3.3.6), t2_process being less.
///
/// What is preempted goes on in the next slot of its process, and behind the last
/// one there is none: it would wait for all that others have planned there. So an
/// idle slot of that length stands there, which goes to the latest process. The
/// time for it is reserved, since the planner takes the node for slower than it is
/// by the capacity buffer (3.3.6). If nobody is late, lower classes have it. It is
/// as long as that of the process, on a CPU of that rate, less what is used up.
fn catch_up(store: &Store, process: &Process, used_insns: Option<&u64>, rate: u64) -> u64 {
    let tasks = process.tasks.iter().map(|task| task.planned_insns);
    let planned = tasks.fold(0, u64::saturating_add);
    let share_permille = store.capacity().capacity_buffer_permille.saturating_sub(1000);
    let buffer = u128::from(planned) * u128::from(share_permille) / 1000;
    let buffer = buffer.saturating_sub(used_insns.copied().unwrap_or(0).into());
    let buffer = match process.rate_insns_per_ms {
        0 => buffer,
        own => buffer * u128::from(per_ms(rate)) / u128::from(own),
    };
    u64::try_from(buffer).unwrap_or(u64::MAX)
}

fn class_task(entry: &Entry<'_>, index: usize) -> Task {
    let task = &entry.job.tasks[index];
    let retired_insns = match entry.progress.get(task.process) {
        Some(&Progress::Running { position, retired_insns, .. }) if position == task.position => {
            retired_insns
        }
        _ => 0,
    };
    Task {
        id: task.position as u32,
        name: task.name.clone(),
        // The class goes on to count what it has counted of the task.
        planned_insns: task.insns.max(retired_insns.saturating_add(1)).min(MAX_SLOT_INSNS),
        ..Task::default()
    }
}

/// Returns the way in which the process is started. A process that has begun has its programs
/// already, perhaps more of them than remaining tasks.
fn start(entry: &Entry<'_>, process: usize) -> Start {
    match entry.progress.get(process) {
        Some(Progress::Attached { .. } | Progress::Running { .. } | Progress::Ended) => {
            Start::Itself(None)
        }
        Some(Progress::Waiting) | None => entry.job.processes[process].start.clone(),
    }
}

/// Returns the readable name of the process, which no other process of the plan has.
fn name(entry: &Entry<'_>, entries: usize, process: usize) -> String {
    let label = entry.job.processes[process].label();
    let label = if label.starts_with(char::is_alphabetic) && !label.starts_with("idle") {
        label
    } else {
        format!("process-{label}")
    };
    if entries > 1 {
        format!("{label}.{}", entry.run)
    } else {
        label
    }
}

/// Converts a rate to instructions per millisecond, the unit of plans.
fn per_ms(rate_insns_per_s: u64) -> u64 {
    (rate_insns_per_s / 1000).clamp(1, u32::MAX.into())
}

fn insns(time_ns: u64, rate_insns_per_s: u64) -> u64 {
    let insns = u128::from(time_ns) * u128::from(rate_insns_per_s) / NS_PER_S;
    u64::try_from(insns).unwrap_or(u64::MAX)
}
