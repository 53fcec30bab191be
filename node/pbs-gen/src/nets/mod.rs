// SPDX-License-Identifier: GPL-2.0
//! Machines and task nets of any size, the same for the same seed, for tests,
//! benchmarks and studies of the planner.

mod fan;
mod small;

pub use fan::Fan;
pub use small::{small, Small, SMALL_TICK_NS};

use pbs_job::{Action, Core, Job, Machine, Node, Process, Task};

/// A generator of its own, so that what fails can be repeated by its seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(2).wrapping_add(1))
    }

    /// One of `0..end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) % end
    }

    pub fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize]
    }
}

pub fn machine(tick_ns: u64, nodes: &[(u64, &[u64])]) -> Machine {
    let node = |(number, (memory_bytes, rates)): (usize, &(u64, &[u64]))| Node {
        name: format!("n{number}"),
        memory_bytes: *memory_bytes,
        cores: (rates.iter().enumerate())
            .map(|(number, &rate_insns_per_s)| Core {
                name: format!("c{number}"),
                cpu: None,
                rate_insns_per_s,
            })
            .collect(),
        line: None,
    };
    Machine {
        name: None,
        tick_ns,
        nodes: nodes.iter().enumerate().map(node).collect(),
        ..Machine::default()
    }
}

/// A net whose initial process forks `children` processes at most, which may
/// fork of them again, with at most `tasks` more tasks in each process.
pub fn random_job(random: &mut Random, children: usize, tasks: u64, memory_bytes: u64) -> Job {
    // Per process.
    let mut items: Vec<Vec<Action>> = vec![vec![Action::Start]];
    let mut next = 0;
    while next < items.len() {
        let mut own = std::mem::take(&mut items[next]);
        for _ in 0..1 + random.below(tasks) {
            own.push(match random.below(4) {
                0 => Action::Communication { partner: None },
                _ => Action::Calculation,
            });
        }
        let mut forks = random.below(4).min((children + 1 - items.len()) as u64);
        if next == 0 && children > 0 {
            forks = forks.max(1);
        }
        for _ in 0..forks {
            let child = items.len();
            items.push(vec![Action::ForkEnd]);
            let fork = 1 + random.below(own.len() as u64) as usize;
            own.insert(fork, Action::Fork { child });
            let rest = (own.len() - fork) as u64;
            let join = fork + 1 + random.below(rest) as usize;
            own.insert(join, Action::Join { child: Some(child) });
        }
        if next == 0 {
            own.push(Action::End);
        }
        items[next] = own;
        next += 1;
    }
    job_of(random, &items, memory_bytes, 12)
}

/// The job whose processes have these items.
pub fn job_of(
    random: &mut Random,
    items: &[Vec<Action>],
    memory_bytes: u64,
    most_insns: u64,
) -> Job {
    let mut job =
        Job { name: "random".into(), start_ns: 0, deadline_ns: u64::MAX, ..Job::default() };
    for (index, items) in items.iter().enumerate() {
        let bytes = 1 + random.below(memory_bytes);
        let mut process = Process { id: index as u32, memory_bytes: bytes, ..Process::default() };
        for (position, &action) in items.iter().enumerate() {
            let calculates = matches!(action, Action::Calculation | Action::Communication { .. });
            let none = !calculates && random.below(3) == 0;
            process.tasks.push(job.tasks.len());
            job.tasks.push(Task {
                insns: if none { 0 } else { 1 + random.below(most_insns) },
                memory_bytes: random.below(bytes + 1),
                ..task(job.tasks.len(), index, position, action)
            });
        }
        job.processes.push(process);
    }
    link_children(&mut job);
    job
}

/// A task of a process, without instructions and memory.
fn task(index: usize, process: usize, position: usize, action: Action) -> Task {
    Task {
        id: index as u32,
        name: None,
        process,
        position,
        action,
        insns: 0,
        memory_bytes: 0,
        message_bytes: None,
        senders: Vec::new(),
        after: Vec::new(),
        before: Vec::new(),
        line: None,
    }
}

/// Notes for each process the tasks that fork and join it.
fn link_children(job: &mut Job) {
    for task in 0..job.tasks.len() {
        match job.tasks[task].action {
            Action::Fork { child } => job.processes[child].forked_by = Some(task),
            Action::Join { child: Some(child) } => job.processes[child].joined_by = Some(task),
            _ => {}
        }
    }
}

/// A net of exactly so many tasks and processes: every process but the first is
/// forked by one of those before it and joined by the same.
pub fn large_job(
    random: &mut Random,
    processes: usize,
    tasks: usize,
    memory_bytes: u64,
    most_insns: u64,
) -> Job {
    let mut items: Vec<Vec<Action>> = vec![vec![Action::ForkEnd]; processes];
    items[0] = vec![Action::Start, Action::End];
    let children = processes - 1;
    // Besides the start and the end a child has its fork, fork end and join.
    for number in 0..tasks - 2 - 3 * children {
        let process =
            if number < processes { number } else { random.below(processes as u64) as usize };
        let end = usize::from(process == 0);
        let place = items[process].len() - end;
        items[process].insert(place, Action::Calculation);
    }
    for child in 1..processes {
        // Among the last few, so that the net is deep and wide.
        let first = child.saturating_sub(40);
        let parent = first + random.below((child - first) as u64) as usize;
        let own = &mut items[parent];
        let end = own.len() - usize::from(parent == 0);
        let fork = 1 + random.below(end as u64) as usize;
        own.insert(fork, Action::Fork { child });
        let rest = (end - fork) as u64 + 1;
        let join = fork + 1 + random.below(rest) as usize;
        own.insert(join, Action::Join { child: Some(child) });
    }
    job_of(random, &items, memory_bytes, most_insns)
}

/// Every process but the last forks one child, and waits for it.
pub fn deep_job(random: &mut Random, processes: usize) -> Job {
    let items: Vec<Vec<Action>> = (0..processes)
        .map(|process| {
            let child = process + 1;
            let first = if process == 0 { Action::Start } else { Action::ForkEnd };
            let mut items = vec![first, Action::Calculation];
            if child < processes {
                let join = Action::Join { child: Some(child) };
                items.extend([Action::Fork { child }, join]);
            }
            if process == 0 {
                items.push(Action::End);
            }
            items
        })
        .collect();
    job_of(random, &items, 1, 12)
}

/// Nodes of equal cores; every fourth node is slower by a third.
pub fn large_machine(nodes: usize, cores: usize, memory_bytes: u64) -> Machine {
    let (fast, slow) = (vec![3_000_000_000; cores], vec![2_000_000_000; cores]);
    let nodes: Vec<(u64, &[u64])> = (0..nodes)
        .map(|node| (memory_bytes, if node % 4 == 3 { &slow[..] } else { &fast[..] }))
        .collect();
    machine(1, &nodes)
}
