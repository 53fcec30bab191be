// SPDX-License-Identifier: GPL-2.0
//! Workloads in few words, random ones, and a judge that shares no code with the crate.

#![allow(dead_code)] // Each file of tests uses a part.

pub(crate) mod slowed;

use pbs_cosched::{
    DeviceType, Edge, Entry, ExecutionTarget, Platform, Process, Queues, Slot, State, Task,
    Timeline, Variant, Where, Workload,
};

pub(crate) const GPU: ExecutionTarget = ExecutionTarget::Device(0);

pub(crate) fn cpu(threads: u32) -> ExecutionTarget {
    ExecutionTarget::Threads(threads)
}

pub(crate) fn platform(threads: u32, counts: &[u32]) -> Platform {
    let device = |(number, &count)| DeviceType {
        name: format!("type{number}"),
        count,
        ..DeviceType::default()
    };
    Platform { threads, devices: counts.iter().enumerate().map(device).collect() }
}

pub(crate) fn process(arrival_ns: u64) -> Process {
    Process { name: format!("at {arrival_ns}"), owner: 0, arrival_ns, deadline_ns: None }
}

pub(crate) fn variants(of: &[(ExecutionTarget, u64)]) -> Vec<Variant> {
    let variant = |&(place, runtime_ns)| {
        let model = match place {
            ExecutionTarget::Threads(_) => "OMP",
            ExecutionTarget::Device(_) => "OCL",
        };
        Variant { model: model.into(), place, runtime_ns }
    };
    of.iter().map(variant).collect()
}

impl Build {
    /// A task; returns its number.
    pub(crate) fn task(
        &mut self,
        process: usize,
        after: &[(usize, u64)],
        of: &[(ExecutionTarget, u64)],
    ) -> usize {
        let number = self.0.tasks.len();
        let edge = |&(task, transfer_ns)| Edge { task, transfer_ns };
        self.0.tasks.push(Task {
            name: format!("t{number}"),
            process,
            after: after.iter().map(edge).collect(),
            variants: variants(of),
        });
        number
    }

    /// Equal tasks, each behind the one before.
    pub(crate) fn chain(&mut self, process: usize, tasks: usize, of: &[(ExecutionTarget, u64)]) {
        for number in 0..tasks {
            let before = self.0.tasks.len().wrapping_sub(1);
            let after = if number > 0 { vec![(before, 0)] } else { Vec::new() };
            self.task(process, &after, of);
        }
    }

    /// Equal tasks of which none waits.
    pub(crate) fn heap(&mut self, process: usize, tasks: usize, of: &[(ExecutionTarget, u64)]) {
        for _ in 0..tasks {
            self.task(process, &[], of);
        }
    }
}

pub(crate) struct Build(pub(crate) Workload);

/// Processes that arrive then, without tasks.
pub(crate) fn build(arrivals_ns: &[u64]) -> Build {
    let processes = arrivals_ns.iter().map(|&arrival_ns| process(arrival_ns)).collect();
    Build(Workload { processes, tasks: Vec::new() })
}

/// Table 2.3, by threads, in ns.
pub(crate) const P1: [u64; 8] = [
    456_974_000,
    231_780_000,
    164_420_000,
    133_707_000,
    124_008_000,
    120_069_000,
    116_824_000,
    115_801_000,
];
pub(crate) const P1_GPU: u64 = 201_337_000;
pub(crate) const P2: [u64; 8] = [
    2_568_818_000,
    1_285_409_000,
    858_272_000,
    645_204_000,
    517_763_000,
    433_136_000,
    372_971_000,
    328_102_000,
];

fn on_threads(runtimes_ns: &[u64]) -> Vec<(ExecutionTarget, u64)> {
    (1..).map(cpu).zip(runtimes_ns.iter().copied()).collect()
}

/// §2.5.1: five tasks of each process, the second process right behind the first.
pub(crate) fn thesis_example(chains: bool) -> (Workload, Platform) {
    let mut of_p1 = on_threads(&P1);
    of_p1.push((GPU, P1_GPU));
    let mut all = build(&[0, 1]);
    for (process, of) in [of_p1, on_threads(&P2)].iter().enumerate() {
        if chains {
            all.chain(process, 5, of);
        } else {
            all.heap(process, 5, of);
        }
    }
    (all.0, platform(8, &[1]))
}

/// A task runs since `start_ns`.
pub(crate) fn start(queues: &mut Queues, tasks: usize, task: usize, process: usize, slot: Slot) {
    let entry = Entry {
        process,
        in_execution: true,
        runtime_ns: slot.end_ns - slot.start_ns,
        end_ns: slot.end_ns,
    };
    queues.push(&slot.place, entry);
    queues.tasks.resize(tasks, State::Waiting);
    queues.tasks[task] = State::Started(slot);
}

/// Numbers that look like chance.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % end.max(1)
    }
}

/// Up to three processes, any graph, any variants, some of which do not fit.
pub(crate) fn random_workload(dice: &mut Dice, most: u64, transfers: bool) -> (Workload, Platform) {
    let counts: Vec<u32> = (0..dice.below(3)).map(|_| dice.below(3) as u32).collect();
    let on = platform(1 + dice.below(4) as u32, &counts);
    let arrivals_ns: Vec<u64> = (0..1 + dice.below(3)).map(|_| dice.below(3) * 15).collect();
    let mut all = build(&arrivals_ns);
    for of in &mut all.0.processes {
        of.owner = dice.below(2);
        if dice.below(3) == 0 {
            of.deadline_ns = Some(of.arrival_ns + dice.below(80));
        }
    }
    for number in 0..1 + dice.below(most) as usize {
        let process = dice.below(arrivals_ns.len() as u64) as usize;
        let after: Vec<(usize, u64)> = (0..number)
            .filter(|_| dice.below(4) == 0)
            .collect::<Vec<_>>()
            .into_iter()
            .map(|before| (before, if transfers { dice.below(8) } else { 0 }))
            .collect();
        // One that surely fits, and others.
        let mut of = vec![if counts.contains(&1) && dice.below(3) == 0 {
            let device = counts.iter().position(|&count| count == 1).unwrap();
            (ExecutionTarget::Device(device), 1 + dice.below(30))
        } else {
            (cpu(1 + dice.below(u64::from(on.threads)) as u32), 1 + dice.below(40))
        }];
        for _ in 0..dice.below(4) {
            let place = match dice.below(2) {
                0 => cpu(dice.below(6) as u32),
                _ => ExecutionTarget::Device(dice.below(3) as usize),
            };
            of.push((place, dice.below(40)));
        }
        all.task(process, &after, &of);
    }
    (all.0, on)
}

/// Panics unless a timeline is one that a machine can keep: each task once, for as long as its
/// variant runs, after its process has come and its data have, and nothing twice on a lane.
pub(crate) fn judge(
    workload: &Workload,
    platform: &Platform,
    timeline: &Timeline,
    variant: impl Fn(usize) -> usize,
) {
    assert_eq!(timeline.slots.len(), workload.tasks.len());
    let slot = |task: usize| timeline.slots[task].as_ref().expect("each task runs");
    let mut lanes: Vec<((usize, u32), u64, u64)> = Vec::new();
    for (task, of) in workload.tasks.iter().enumerate() {
        let (this, way) = (slot(task), &of.variants[variant(task)]);
        assert_eq!(this.end_ns - this.start_ns, way.runtime_ns);
        assert!(this.start_ns >= workload.processes[of.process].arrival_ns);
        match (&this.place, way.place) {
            (Where::Threads(threads), ExecutionTarget::Threads(needed)) => {
                let mut different = threads.clone();
                different.dedup();
                assert_eq!(different.len(), needed as usize);
                for &thread in threads {
                    assert!(thread < platform.threads);
                    lanes.push(((usize::MAX, thread), this.start_ns, this.end_ns));
                }
            }
            (&Where::Device { device, instance }, ExecutionTarget::Device(wanted)) => {
                assert_eq!(device, wanted);
                assert!(instance < platform.devices[device].count);
                lanes.push(((device, instance), this.start_ns, this.end_ns));
            }
            (place, way) => panic!("{way:?} runs on {place:?}"),
        }
        for edge in &of.after {
            let before = slot(edge.task);
            let same = match (&before.place, &this.place) {
                (Where::Threads(_), Where::Threads(_)) => true,
                (one, other) => one == other,
            };
            let travels_ns = if same { 0 } else { edge.transfer_ns };
            assert!(this.start_ns >= before.end_ns + travels_ns, "task {task} has no data");
        }
    }
    lanes.sort();
    for pair in lanes.windows(2) {
        assert!(pair[0].0 != pair[1].0 || pair[1].1 >= pair[0].2, "two tasks on {:?}", pair[0].0);
    }
}
