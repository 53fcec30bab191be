// SPDX-License-Identifier: GPL-2.0
//! Properties of any workload, tried on random ones.

mod common;

use common::{judge, random_workload, Dice};
use pbs_cosched::{
    accept, brute_force, check, evaluations, greedy, heft, necessary, not_co_scheduled, schedule,
    score, simulate, timing, Amortization, Cost, Determination, EnhancedOptions, Entry,
    ExecutionTarget, GreedyOptions, Mapping, Necessity, Objective, Options, Platform, Priority,
    Queues, Reason, Scheduler, State, Timeline, Where, Workload,
};

const OBJECTIVES: [Objective; 3] = [Objective::Lexicographic, Objective::Makespan, Objective::Sum];

fn schedulers(seed: u64) -> Vec<Scheduler> {
    let enhanced = EnhancedOptions { min_iterations: 5, max_iterations: 50 };
    let mut all = vec![
        Scheduler::PlainRandom(seed),
        Scheduler::EnhancedRandom(enhanced, seed),
        Scheduler::Evolutionary(seed),
        Scheduler::Heft,
    ];
    for contention in [Priority::Successors, Priority::Runtime, Priority::Age] {
        for leftovers in [Priority::Successors, Priority::Runtime, Priority::Age] {
            let stickiness = seed.is_multiple_of(2);
            all.push(Scheduler::Greedy(GreedyOptions { contention, leftovers, stickiness }));
        }
    }
    all
}

/// The middle of a run: some tasks have ended, some run, the others wait; and what started ran as.
fn in_the_middle(dice: &mut Dice, workload: &Workload, on: &Platform) -> (Queues, Mapping) {
    let mut queues = Queues::idle(on);
    let before = not_co_scheduled(workload, on, &queues);
    let timeline = timing(workload, on, &queues, &before).unwrap();
    queues.now_ns = dice.below(timeline.end_ns() * 3 / 2);
    if dice.below(3) == 0 {
        queues.now_ns = 0;
    }
    for (task, slot) in timeline.slots.iter().enumerate() {
        let slot = slot.clone().unwrap();
        if slot.start_ns >= queues.now_ns {
            queues.tasks.push(State::Waiting);
            continue;
        }
        let entry = Entry {
            process: workload.tasks[task].process,
            in_execution: true,
            runtime_ns: slot.end_ns - slot.start_ns,
            end_ns: slot.end_ns,
        };
        if slot.end_ns > queues.now_ns {
            queues.push(&slot.place, entry);
        }
        queues.tasks.push(State::Started(slot));
    }
    (queues, before)
}

/// Start, end, and the accelerator.
type Plain = (u64, u64, Option<(usize, usize)>);

/// Starts and ends as the queues' rules say, in the plainest way.
fn plain_timing(
    workload: &Workload,
    on: &Platform,
    queues: &Queues,
    mapping: &Mapping,
) -> Vec<(u64, u64)> {
    let through =
        |queue: &Vec<Entry>| queue.iter().map(|of| of.end_ns).max().unwrap_or(0).max(queues.now_ns);
    let mut threads: Vec<u64> = queues.threads.iter().map(through).collect();
    let mut devices: Vec<Vec<u64>> =
        queues.devices.iter().map(|of| of.iter().map(through).collect()).collect();
    assert_eq!((threads.len(), devices.len()), (on.threads as usize, on.devices.len()));
    let mut done: Vec<Plain> = (0..workload.tasks.len())
        .map(|task| match queues.slot(task) {
            Some(slot) => match slot.place {
                Where::Threads(_) => (slot.start_ns, slot.end_ns, None),
                Where::Device { device, instance } => {
                    (slot.start_ns, slot.end_ns, Some((device, instance as usize)))
                }
            },
            None => (0, 0, None),
        })
        .collect();
    for task in mapping.order() {
        let of = &workload.tasks[task];
        let variant = &of.variants[mapping.choices[task].unwrap().variant];
        let data = |memory: Option<(usize, usize)>| {
            let mut ready = queues.now_ns.max(workload.processes[of.process].arrival_ns);
            for edge in &of.after {
                let (_, end, there) = done[edge.task];
                ready = ready.max(if there == memory { end } else { end + edge.transfer_ns });
            }
            ready
        };
        match variant.place {
            ExecutionTarget::Threads(needed) => {
                threads.sort();
                let start = threads[needed as usize - 1].max(data(None));
                threads[..needed as usize].fill(start + variant.runtime_ns);
                done[task] = (start, start + variant.runtime_ns, None);
            }
            ExecutionTarget::Device(device) => {
                let starts = devices[device].iter().enumerate();
                let starts = starts.map(|(at, &free)| (free.max(data(Some((device, at)))), at));
                let (start, at) = starts.min().unwrap();
                devices[device][at] = start + variant.runtime_ns;
                done[task] = (start, start + variant.runtime_ns, Some((device, at)));
            }
        }
    }
    done.into_iter().map(|(start, end, _)| (start, end)).collect()
}

fn key(workload: &Workload, timeline: &Timeline, objective: Objective) -> [u64; 3] {
    score(workload, timeline).key(objective)
}

#[test]
fn every_scheduler_gives_a_timeline_a_machine_can_keep() {
    let mut dice = Dice(2);
    for seed in 0..400 {
        let (workload, on) = random_workload(&mut dice, 12, true);
        check(&workload, &on).unwrap();
        let (queues, before) = in_the_middle(&mut dice, &workload, &on);
        let objective = OBJECTIVES[seed as usize % 3];
        let mut keys = Vec::new();
        for scheduler in schedulers(seed) {
            let mut keep_going = evaluations(60);
            let mapping = schedule(&workload, &on, &queues, &scheduler, objective, &mut keep_going);
            let timeline = timing(&workload, &on, &queues, &mapping).unwrap();
            judge(&workload, &on, &timeline, |task| {
                assert_eq!(mapping.choices[task].is_some(), queues.waits(task));
                mapping.choices[task].or(before.choices[task]).unwrap().variant
            });
            let plain = plain_timing(&workload, &on, &queues, &mapping);
            for (task, slot) in timeline.slots.iter().enumerate() {
                let slot = slot.as_ref().unwrap();
                assert_eq!((slot.start_ns, slot.end_ns), plain[task]);
                assert!(!queues.waits(task) || slot.start_ns >= queues.now_ns);
                assert!(queues.slot(task).is_none_or(|before| before == slot));
            }
            keys.push((scheduler, key(&workload, &timeline, objective)));
        }
        // Never worse than HEFT, not co-scheduling, or any greedy with one priority.
        let best = keys[2].1;
        assert!(best <= keys[3].1);
        let none = not_co_scheduled(&workload, &on, &queues);
        let none = timing(&workload, &on, &queues, &none).unwrap();
        assert!(best <= key(&workload, &none, objective));
        for (scheduler, key) in keys {
            if let Scheduler::Greedy(options) = scheduler {
                assert!(options.contention != options.leftovers || best <= key);
            }
        }
    }
}

/// The four strategies, in the plainest way; nothing if no strategy is asked.
fn plain_necessity(
    workload: &Workload,
    on: &Platform,
    queues: &Queues,
    process: usize,
    determination: &Determination,
    cost: &Cost,
) -> Necessity {
    let waiting: Vec<usize> = (0..workload.tasks.len()).filter(|&at| queues.waits(at)).collect();
    let mine = waiting.iter().filter(|&&at| workload.tasks[at].process == process);
    let cost_ns = cost.ns(waiting.len());
    // By queue of a kind, what is in it.
    let kind = |place| match place {
        ExecutionTarget::Threads(needed) => (queues.threads.clone(), needed as usize),
        ExecutionTarget::Device(at) => (queues.devices.get(at).cloned().unwrap_or_default(), 1),
    };
    let fits = |place: ExecutionTarget| {
        let (of, needed) = kind(place);
        needed > 0 && needed <= of.len() && on.threads as usize == queues.threads.len()
    };
    let wait = |place| {
        let (of, needed) = kind(place);
        let until = |queue: &Vec<Entry>| queue.iter().map(|of| of.end_ns).max().unwrap_or(0);
        let mut waits: Vec<u64> =
            of.iter().map(|queue| until(queue).saturating_sub(queues.now_ns)).collect();
        waits.sort();
        waits[needed - 1]
    };
    let fitting = |task: usize| workload.tasks[task].variants.iter().filter(|of| fits(of.place));
    let desired = |task: usize| {
        let threads = |place| match place {
            ExecutionTarget::Threads(threads) => threads,
            ExecutionTarget::Device(_) => 0,
        };
        fitting(task).min_by_key(|of| (of.runtime_ns, threads(of.place))).unwrap()
    };
    if determination.always {
        return Necessity::Always;
    }
    if waiting.iter().all(|&at| workload.tasks[at].process == process) {
        return Necessity::Alone;
    }
    if determination.contention {
        let mut contended = false;
        for &task in mine {
            let (of, needed) = kind(desired(task).place);
            let other = |queue: &&Vec<Entry>| queue.iter().any(|of| of.process != process);
            contended |= of.len() - of.iter().filter(other).count() < needed;
        }
        return Necessity::Contention(contended);
    }
    if determination.speedup {
        let mut saved_ns = 0;
        for &task in mine {
            let free = fitting(task).filter(|of| wait(of.place) == 0).map(|of| of.runtime_ns);
            let first = fitting(task).map(|of| of.runtime_ns + wait(of.place)).min();
            saved_ns += free.min().or(first).unwrap() - desired(task).runtime_ns;
        }
        return Necessity::Speedup { saved_ns, cost_ns };
    }
    let wait_ns = match determination.amortization {
        None => return Necessity::NoStrategy,
        Some(Amortization::Longest) => mine.map(|&task| wait(desired(task).place)).max(),
        Some(Amortization::AllOccupied) => {
            let all = (0..on.devices.len())
                .map(ExecutionTarget::Device)
                .chain([ExecutionTarget::Threads(1)]);
            all.filter(|&place| fits(place)).map(wait).min()
        }
    };
    Necessity::Amortization { wait_ns: wait_ns.unwrap_or(0), cost_ns }
}

#[test]
fn the_determination_is_what_the_strategies_say() {
    let mut dice = Dice(8);
    let (mut yes, mut no) = (0, 0);
    for seed in 0..1500 {
        let (workload, on) = random_workload(&mut dice, 12, true);
        let (mut queues, _) = in_the_middle(&mut dice, &workload, &on);
        // Some that are not in execution.
        for queue in queues.threads.iter_mut().chain(queues.devices.iter_mut().flatten()) {
            if dice.below(2) == 0 {
                let process = dice.below(4) as usize;
                let last_ns = queue.iter().map(|of| of.end_ns).max().unwrap_or(queues.now_ns);
                let runtime_ns = dice.below(20);
                let end_ns = last_ns + runtime_ns;
                queue.push(Entry { process, in_execution: false, runtime_ns, end_ns });
            }
        }
        let Options { determination, cost, .. } = random_options(&mut dice, seed);
        for process in 0..workload.processes.len() {
            let said = necessary(&workload, &on, &queues, process, &determination, &cost);
            let plain = plain_necessity(&workload, &on, &queues, process, &determination, &cost);
            assert_eq!(said, plain);
            *(if said.is_necessary() { &mut yes } else { &mut no }) += 1;
        }
    }
    assert!(yes > 300 && no > 300, "{yes} {no}");
}

/// All orders and variants.
fn best_of_all(
    workload: &Workload,
    on: &Platform,
    queues: &Queues,
    objective: Objective,
    sofar: &mut Vec<(usize, usize)>,
) -> Option<[u64; 3]> {
    let tasks = workload.tasks.len();
    let waiting: Vec<usize> = (0..tasks).filter(|&task| queues.waits(task)).collect();
    if sofar.len() == waiting.len() {
        let mapping = Mapping::in_order(tasks, sofar.iter().copied());
        return Some(key(workload, &timing(workload, on, queues, &mapping).unwrap(), objective));
    }
    let mut best = None;
    for task in waiting {
        let of = &workload.tasks[task];
        let given = |task| sofar.iter().any(|&(given, _)| given == task);
        let ready = of.after.iter().all(|edge| !queues.waits(edge.task) || given(edge.task));
        if given(task) || !ready {
            continue;
        }
        for variant in 0..of.variants.len() {
            let fits = match of.variants[variant].place {
                ExecutionTarget::Threads(threads) => (1..=on.threads).contains(&threads),
                ExecutionTarget::Device(at) => on.devices.get(at).is_some_and(|of| of.count > 0),
            };
            if fits {
                sofar.push((task, variant));
                let key = best_of_all(workload, on, queues, objective, sofar);
                sofar.pop();
                best = [best, key].into_iter().flatten().min();
            }
        }
    }
    best
}

#[test]
fn brute_force_finds_the_optimum_of_all_schedules() {
    let mut dice = Dice(3);
    for round in 0..300 {
        let (workload, on) = random_workload(&mut dice, 4, round % 2 == 0);
        let (queues, _) = in_the_middle(&mut dice, &workload, &on);
        let objective = OBJECTIVES[round % 3];
        let found = brute_force(&workload, &on, &queues, objective, &mut || true).unwrap();
        assert!(found.proved);
        let timeline = timing(&workload, &on, &queues, &found.mapping).unwrap();
        let best = best_of_all(&workload, &on, &queues, objective, &mut Vec::new()).unwrap();
        assert_eq!(key(&workload, &timeline, objective), best, "{workload:?} {on:?} {queues:?}");
    }
}

fn random_options(dice: &mut Dice, seed: u64) -> Options {
    let all = schedulers(seed);
    let flag = |dice: &mut Dice| dice.below(2) == 0;
    Options {
        determination: Determination {
            always: dice.below(4) == 0,
            contention: flag(dice),
            speedup: flag(dice),
            amortization: [None, Some(Amortization::Longest), Some(Amortization::AllOccupied)]
                [dice.below(3) as usize],
        },
        scheduler: all[dice.below(all.len() as u64) as usize],
        objective: OBJECTIVES[dice.below(3) as usize],
        cost: Cost { a: 0.1, b: 0.5, c: dice.below(10) as f64 },
        charge_cost: flag(dice),
        reject_worse: flag(dice),
        evaluations: 50,
    }
}

#[test]
fn a_simulated_run_is_one_a_machine_can_keep() {
    let mut dice = Dice(4);
    let mut taken = 0;
    for seed in 0..600 {
        let (workload, on) = random_workload(&mut dice, 10, true);
        let options = random_options(&mut dice, seed);
        let run = simulate(&workload, &on, &options).unwrap();
        judge(&workload, &on, &run.timeline, |task| run.variants[task].unwrap());
        assert_eq!(run.decisions.len(), workload.processes.len());
        for decision in &run.decisions {
            let verdict = decision.verdict;
            assert_eq!(
                verdict.is_some(),
                decision.necessity.is_necessary() && decision.waiting > 0
            );
            if let Some(verdict) = verdict {
                let again = accept(verdict.without, verdict.with, options.objective);
                assert_eq!(again, verdict);
                assert!(verdict.reason != Reason::Incomplete);
                assert_eq!(decision.taken, verdict.accepted || !options.reject_worse);
                taken += u32::from(decision.taken);
            }
        }
        let last = run.decisions.last().unwrap();
        if let (false, Some(verdict)) = (options.charge_cost, last.verdict) {
            let expected = if last.taken { verdict.with } else { verdict.without };
            assert_eq!(score(&workload, &run.timeline), expected);
        }
    }
    assert!(taken > 100, "{taken}");
}

#[test]
fn without_a_strategy_a_run_is_not_co_scheduled() {
    let mut dice = Dice(5);
    for _ in 0..300 {
        let (workload, on) = random_workload(&mut dice, 10, true);
        let across = workload
            .tasks
            .iter()
            .any(|of| of.after.iter().any(|edge| workload.tasks[edge.task].process != of.process));
        if across {
            continue;
        }
        let options = Options { determination: Determination::NEVER, ..Options::default() };
        let run = simulate(&workload, &on, &options).unwrap();
        let queues = Queues::idle(&on);
        let mapping = not_co_scheduled(&workload, &on, &queues);
        let at_once = timing(&workload, &on, &queues, &mapping).unwrap();
        let times = |of: &Timeline| -> Vec<(u64, u64)> {
            of.slots.iter().flatten().map(|slot| (slot.start_ns, slot.end_ns)).collect()
        };
        assert_eq!(times(&run.timeline), times(&at_once));
    }
}

#[test]
fn late_arrivals_change_no_started_task() {
    let mut dice = Dice(6);
    let mut compared = 0;
    for seed in 0..400 {
        let (mut workload, on) = random_workload(&mut dice, 10, true);
        let processes: Vec<usize> = workload.tasks.iter().map(|of| of.process).collect();
        for of in &mut workload.tasks {
            let process = of.process;
            of.after.retain(|edge| processes[edge.task] == process);
        }
        let options = random_options(&mut dice, seed);
        let all = simulate(&workload, &on, &options).unwrap();
        let last_ns = workload.processes.iter().map(|of| of.arrival_ns).max().unwrap();
        // The same without those who come last.
        let mut fewer = workload.clone();
        let early = |of: &pbs_cosched::Process| of.arrival_ns < last_ns;
        let kept: Vec<usize> = (0..processes.len())
            .filter(|&task| early(&workload.processes[processes[task]]))
            .collect();
        fewer.tasks = kept.iter().map(|&task| workload.tasks[task].clone()).collect();
        for edge in fewer.tasks.iter_mut().flat_map(|of| &mut of.after) {
            edge.task = kept.iter().position(|&task| task == edge.task).unwrap();
        }
        let before = simulate(&fewer, &on, &options).unwrap();
        for (at, &task) in kept.iter().enumerate() {
            let slot = before.timeline.slots[at].as_ref().unwrap();
            if slot.start_ns < last_ns {
                assert_eq!(all.timeline.slots[task].as_ref(), Some(slot));
                assert_eq!(all.variants[task], before.variants[at]);
                compared += 1;
            }
        }
    }
    assert!(compared > 300, "{compared}");
}

#[test]
fn what_is_not_checked_is_no_reason_to_panic() {
    let mut dice = Dice(7);
    for seed in 0..500 {
        let (mut workload, on) = random_workload(&mut dice, 8, true);
        for task in 0..workload.tasks.len() {
            match dice.below(6) {
                0 => workload.tasks[task].variants.clear(),
                1 => workload.tasks[task].process = dice.below(9) as usize,
                2 => {
                    let edge = pbs_cosched::Edge { task: dice.below(12) as usize, transfer_ns: 1 };
                    workload.tasks[task].after.push(edge);
                }
                3 => workload.tasks[task].variants[0].runtime_ns = u64::MAX - dice.below(3),
                _ => {}
            }
        }
        let queues = Queues::default();
        for scheduler in schedulers(seed) {
            let mut keep_going = evaluations(40);
            let objective = Objective::default();
            let mapping = schedule(&workload, &on, &queues, &scheduler, objective, &mut keep_going);
            if let Ok(timeline) = timing(&workload, &on, &queues, &mapping) {
                let _ = pbs_cosched::measure(&workload, &on, &timeline);
            }
        }
        let _ = brute_force(&workload, &on, &queues, Objective::Sum, &mut evaluations(200));
        let _ = greedy(&workload, &on, &queues, &GreedyOptions::default());
        let _ = heft(&workload, &on, &queues);
        let _ = simulate(&workload, &on, &Options { evaluations: 20, ..Options::default() });
        if let Err(faults) = check(&workload, &on) {
            assert!(faults.iter().all(|fault| !fault.tell(&workload).is_empty()));
        }
        let determination = random_options(&mut dice, seed).determination;
        for process in 0..4 {
            let _ = necessary(&workload, &on, &queues, process, &determination, &Cost::default());
        }
    }
}
