// SPDX-License-Identifier: GPL-2.0
//! The plan as it is planned.

#[allow(dead_code)]
mod common;

use std::collections::HashMap;

use common::{idle, order, plan, small, tasks};
use pbs_gen::{Parameters, Scenario, SlotOrder, Span};
use pbs_plan::{check, to_toml};

/// Random numbers for parameters, of another kind than those under test.
struct Random(u64);

impl Random {
    fn within(&mut self, min: u64, max: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        min + self.0 % (max - min + 1)
    }

    fn span(&mut self, min: u64, max: u64) -> Span {
        let (a, b) = (self.within(min, max), self.within(min, max));
        Span::new(a.min(b), a.max(b))
    }

    /// Lengths of every magnitude.
    fn lengths(&mut self) -> Span {
        let magnitude = self.within(0, 37);
        self.span(1, 2 << magnitude)
    }

    /// Any parameters that are in range, of a plan with few tasks.
    fn parameters(&mut self) -> Parameters {
        loop {
            let scenario = Scenario::ALL[self.within(0, 7) as usize];
            let parameters = Parameters {
                scenario,
                processes: self.within(1, 12),
                tasks: self.span(1, 40),
                task_insns: self.lengths(),
                idle_permille: self.within(0, 900),
                idle_insns: self.lengths(),
                buffer_permille: self.span(0, 100_000),
                order: SlotOrder::ALL[self.within(0, 2) as usize],
                task_sigma_permille: self.within(0, 1000),
                edge_permille: self.within(0, 1000),
                message_permille: self.within(0, 1000),
                message_sigma_permille: self.within(0, 1000),
                memory_bytes: self.span(0, 1 << 40),
                memory_sigma_permille: self.within(0, 1000),
                deviation_permille: scenario
                    .default_deviation_permille()
                    .map(|_| self.within(0, if scenario.is_early() { 1000 } else { 100_000 })),
                seed: self.within(0, u64::MAX - 1),
                cpu: self.within(0, 7) as u32,
                plan_id: self.within(0, 1 << 40),
            };
            // Idle slots far shorter than tasks are a test of their own.
            let idle_slots = parameters.tasks.max
                * parameters.processes
                * 9
                * (parameters.task_insns.max / parameters.idle_insns.min + 1);
            if parameters.check().is_ok() && idle_slots < 100_000 {
                return parameters;
            }
        }
    }
}

/// A share of the dependencies carry a message, which is planned to arrive when the slot of its
/// sender ends. The real lengths of senders have a sigma of their own, and all else stays.
#[test]
fn messages_arrive_when_their_senders_end() {
    let without = Parameters { edge_permille: 600, ..small() };
    let with = Parameters { message_permille: 500, message_sigma_permille: 0, ..without };
    let (mut edges, mut messages, mut senders) = (0, 0, 0);
    for seed in 1..=50 {
        let [plain, plan] = [without, with].map(|of| plan(&Parameters { seed, ..of }));
        let mut end_ns = 0;
        let mut ends_ns = HashMap::new();
        for slot in plan.place(&plan.cpus[0]) {
            end_ns += slot.length_insns;
            ends_ns.extend(slot.task.map(|(process, task)| {
                let process = &plan.processes[process];
                ((process.id, process.tasks[task].id), end_ns)
            }));
        }
        let after: Vec<_> = tasks(&plan).flat_map(|(_, task)| task.after.clone()).collect();
        let sent = after.iter();
        let sent = sent.filter_map(|it| Some(((it.process, it.task), it.arrival_ns?)));
        let sent: HashMap<_, _> = sent.collect();
        edges += after.len();
        messages += after.iter().filter(|after| after.arrival_ns.is_some()).count();
        senders += sent.len();
        for (sender, arrival_ns) in &sent {
            assert_eq!(ends_ns[sender], *arrival_ns);
        }
        for ((process, task), (_, before)) in tasks(&plan).zip(tasks(&plain)) {
            let is_sender = sent.contains_key(&(process.id, task.id));
            let expected = if is_sender { Some(task.planned_insns) } else { before.real_insns };
            assert_eq!((task.planned_insns, task.real_insns), (before.planned_insns, expected));
        }
        assert!(check(&plan).is_ok());
        assert_eq!(to_toml(&pbs_plan::from_toml(&to_toml(&plan)).unwrap()), to_toml(&plan));
    }
    assert!(senders > 100, "{senders}");
    assert!((400..600).contains(&(1000 * messages / edges)), "{messages} of {edges}");
}

#[test]
fn every_in_range_is_valid_and_as_asked() {
    let mut random = Random(0x5eed_0011);
    let mut scenarios = [0; Scenario::ALL.len()];
    let mut edges = 0;
    for _ in 0..2_000 {
        let asked = random.parameters();
        let plan = plan(&asked);
        if let Err(problems) = check(&plan) {
            panic!("{asked:?}: {problems:?}");
        }
        let at = Scenario::ALL.iter().position(|&s| s == asked.scenario);
        scenarios[at.unwrap()] += 1;

        assert_eq!((plan.plan_id, plan.cpus[0].cpu), (asked.plan_id, asked.cpu));
        assert_eq!(plan.processes.len() as u64, asked.processes);
        let mut planned_insns = 0;
        for process in &plan.processes {
            let tasks = process.tasks.len() as u64;
            assert!((asked.tasks.min..=asked.tasks.max).contains(&tasks), "{asked:?}");
            let sum: u64 = process.tasks.iter().map(|task| task.planned_insns).sum();
            planned_insns += sum;
            let buffer = |permille| u128::from(sum) * u128::from(permille) / 1000;
            let buffer_insns = u128::from(process.buffer_insns);
            assert!(buffer(asked.buffer_permille.min) <= buffer_insns, "{asked:?}");
            assert!(buffer(asked.buffer_permille.max) >= buffer_insns, "{asked:?}");
        }
        for (_, task) in tasks(&plan) {
            edges += task.after.len();
            assert!(asked.edge_permille > 0 || task.after.is_empty());
            let lengths = asked.task_insns.min..=asked.task_insns.max;
            assert!(lengths.contains(&task.planned_insns), "{asked:?}");
        }
        let mut idle_insns = 0;
        for (length_insns, _) in idle(&plan) {
            let lengths = asked.idle_insns.min..=asked.idle_insns.max;
            assert!(lengths.contains(&length_insns), "{asked:?}");
            idle_insns += length_insns;
        }
        // The share is kept to within half of the least idle slot.
        let wanted =
            planned_insns as f64 * asked.idle_permille as f64 / (1000 - asked.idle_permille) as f64;
        let off = (idle_insns as f64 - wanted).abs();
        assert!(off <= asked.idle_insns.min as f64 / 2.0 + 1.0, "{asked:?}: {off}");
    }
    assert!(edges > 1_000, "{edges}");
    assert!(scenarios.iter().all(|&count| count >= 10), "{scenarios:?}");
}

#[test]
fn the_same_seed_is_the_same_plan_and_another_one_is_not() {
    for scenario in Scenario::ALL {
        let parameters = Parameters { scenario, ..small() };
        let text = to_toml(&plan(&parameters));
        assert_eq!(text, to_toml(&plan(&parameters)), "{scenario}");
        let seed = parameters.seed + 1;
        let other = to_toml(&plan(&Parameters { seed, ..parameters }));
        assert_ne!(text, other, "{scenario}");
    }
}

/// In how many places a process has two slots in a row, with nothing but idle
/// ones between.
fn repeats(order: &[usize]) -> usize {
    order.windows(2).filter(|pair| pair[0] == pair[1]).count()
}

#[test]
fn processes_alternate_as_far_as_they_can() {
    let mut random = Random(0x5eed_0012);
    let mut unavoidable = 0;
    for _ in 0..500 {
        let parameters = Parameters {
            processes: random.within(1, 6),
            tasks: random.span(1, 30),
            seed: random.within(0, u64::MAX - 1),
            ..small()
        };
        let plan = plan(&parameters);
        let counts = plan.processes.iter().map(|process| process.tasks.len());
        let (all, most) = (counts.clone().sum::<usize>(), counts.max().unwrap());
        // All others together part one task more than they are.
        let least = most.saturating_sub(all - most + 1);
        assert_eq!(repeats(&order(&plan)), least, "{parameters:?}");
        unavoidable += usize::from(least > 0);
    }
    assert!((50..450).contains(&unavoidable), "{unavoidable}");
}

#[test]
fn alternation_is_by_chance() {
    let parameters = Parameters { processes: 3, tasks: Span::new(400, 400), ..small() };
    let order = order(&plan(&parameters));
    // After one process both others follow about as often.
    for process in 0..3 {
        let after = order.windows(2).filter(|pair| pair[0] == process);
        let next = after.filter(|pair| pair[1] == (process + 1) % 3).count();
        assert!((150..250).contains(&next), "{next} times after {process}");
    }
}

#[test]
fn turns_and_blocks() {
    let order_of = |order| {
        let parameters =
            Parameters { processes: 3, tasks: Span::new(1, 4), seed: 3, order, ..small() };
        common::order(&plan(&parameters))
    };
    let blocks = order_of(SlotOrder::Blocks);
    assert!(blocks.is_sorted(), "{blocks:?}");
    let turns = order_of(SlotOrder::Turns);
    // The same slots, and the nth of a process stands before the next one's
    // (n+1)th.
    let mut sorted = turns.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, blocks);
    let mut rounds = [0; 3];
    let mut round_of = Vec::new();
    for &process in &turns {
        round_of.push((rounds[process], process));
        rounds[process] += 1;
    }
    assert!(round_of.is_sorted(), "{turns:?}");
    assert!(rounds.iter().max() > rounds.iter().min(), "{rounds:?}");
}

/// The default parameters generate these values; this test keeps the meaning of a seed from
/// changing.
#[test]
fn a_seed_keeps_its_meaning() {
    let plan = plan(&Parameters::default());
    let counts: Vec<_> = plan.processes.iter().map(|p| p.tasks.len()).collect();
    let planned: u64 = tasks(&plan).map(|(_, task)| task.planned_insns).sum();
    let real: u64 = tasks(&plan).map(|(_, task)| common::real(task)).sum();
    let buffers: Vec<_> = plan.processes.iter().map(|p| p.buffer_insns).collect();
    let idle = idle(&plan);
    let idle_planned: u64 = idle.iter().map(|slot| slot.0).sum();
    let idle_real: u64 = idle.iter().map(|slot| slot.1).sum();
    let first: Vec<_> = order(&plan).into_iter().take(10).collect();
    assert_eq!(counts, [94, 99, 100]);
    assert_eq!((planned, real), (216_793_174_210, 217_093_223_460));
    assert_eq!(buffers, [6_785_144_507, 6_192_220_752, 6_534_020_419]);
    assert_eq!((idle.len(), idle_planned, idle_real), (28, 21_441_083_163, 21_550_665_088));
    assert_eq!(first, [0, 1, 0, 1, 0, 2, 0, 1, 2, 1]);
}

#[test]
fn plans_of_a_seed_differ_only_in_what_is_asked() {
    let lengths = |parameters: &Parameters| {
        let plan = plan(parameters);
        let planned: Vec<_> = tasks(&plan).map(|(_, task)| task.planned_insns).collect();
        (planned, order(&plan), idle(&plan).len())
    };
    let base = lengths(&small());
    for scenario in Scenario::ALL {
        let own = matches!(scenario, Scenario::LongThenShort | Scenario::ScatterGather);
        let other = lengths(&Parameters { scenario, task_sigma_permille: 300, ..small() });
        assert_eq!(other == base, !own, "{scenario}");
    }
}
