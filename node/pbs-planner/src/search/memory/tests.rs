// SPDX-License-Identifier: GPL-2.0
//! Tests: the free memory of blocks of points is that of a list of all holds, which is slow and
//! plain.

use pbs_random::Random;

use super::*;

/// A part of a memory that a process of the job holds.
struct Hold {
    process: u32,
    start_ns: u64,
    /// `u64::MAX`: not known yet.
    end_ns: u64,
    bytes: u64,
}

/// All holds in a list, of which every question looks at every one.
#[derive(Default)]
struct List(Vec<Hold>);

/// The last task of a process, for the tests.
fn last_task(process: u32) -> u32 {
    process ^ 5
}

fn free_bytes(memory: &Memory, time_ns: u64) -> u64 {
    let begun = memory.steps().iter().rev().find(|step| step.0 <= time_ns);
    begun.map_or(0, |step| step.1)
}

fn steps_after(memory: &Memory, time_ns: u64) -> impl Iterator<Item = u64> + '_ {
    let steps = memory.steps().iter().map(|step| step.0);
    steps.filter(move |&step_ns| step_ns > time_ns)
}

impl List {
    fn give_back(&mut self, memory: &Memory, process: u32, end_ns: u64) -> bool {
        let hold = self.0.iter_mut().find(|hold| hold.process == process).unwrap();
        hold.end_ns = end_ns;
        let start_ns = hold.start_ns;
        self.first_lack(memory, 0, start_ns, end_ns).is_none()
    }

    fn first_free(
        &self,
        memory: &Memory,
        windows: &[Range<u64>],
        bytes: u64,
        from_ns: u64,
        span_ns: u64,
    ) -> Option<(u64, u32)> {
        let mut from = (from_ns, NONE);
        loop {
            let window = windows.iter().find(|window| {
                let end_ns = window.start.max(from.0).saturating_add(span_ns);
                end_ns <= window.end
            })?;
            if window.start > from.0 {
                from = (window.start, NONE);
            }
            let until_ns = from.0.saturating_add(span_ns);
            let Some(lack_ns) = self.first_lack(memory, bytes, from.0, until_ns) else {
                return Some(from);
            };
            from = (lack_ns, NONE);
            while self.lacks(memory, bytes, from.0) {
                // The next time at which somebody gives some back.
                let ends = self.0.iter().filter(|hold| hold.end_ns != u64::MAX);
                let ends = ends.map(|hold| (hold.end_ns, last_task(hold.process)));
                let end = ends.filter(|end| end.0 > from.0).min();
                let step = steps_after(memory, from.0).next();
                from = end.into_iter().chain(step.map(|step_ns| (step_ns, NONE))).min()?;
            }
        }
    }

    fn lacks(&self, memory: &Memory, bytes: u64, time_ns: u64) -> bool {
        let held = self.0.iter();
        let held = held.filter(|hold| hold.start_ns <= time_ns && time_ns < hold.end_ns);
        let wanted_bytes = held.fold(bytes, |sum, hold| sum.saturating_add(hold.bytes));
        wanted_bytes > free_bytes(memory, time_ns)
    }

    fn first_lack(&self, memory: &Memory, bytes: u64, from_ns: u64, until_ns: u64) -> Option<u64> {
        if self.lacks(memory, bytes, from_ns) {
            return Some(from_ns);
        }
        // Less is free from a start or a step on.
        let lacks = |&time_ns: &u64| self.lacks(memory, bytes, time_ns);
        let starts = self.0.iter().map(|hold| hold.start_ns);
        let start_ns = starts.filter(|&start_ns| from_ns < start_ns).filter(lacks).min();
        let mut steps = steps_after(memory, from_ns).take_while(|&step_ns| step_ns < until_ns);
        start_ns.into_iter().chain(steps.find(lacks)).min()
    }
}

/// Other jobs' steps, a few or many, of few times and amounts: they meet often.
fn memory(random: &mut Random) -> Memory {
    let steps = [1, 4, 12, 90][random.below(4) as usize];
    let mut time_ns = random.below(3);
    let steps = (0..steps).map(|_| {
        let step = (time_ns, random.below(5) * 25);
        time_ns += 1 + random.below(6);
        step
    });
    Memory::of_steps(steps.collect())
}

/// Processes take memory where it is free, and end; in each state both are asked the same.
#[test]
fn blocks_answer_as_a_list_does() {
    let (mut found, mut not_found, mut blocked) = (0, 0, 0);
    for seed in 0..400 {
        let random = &mut Random::new(seed);
        let work = Budget::unbounded();
        let memory = memory(random);
        let (mut list, mut holds) = (List::default(), Holds::default());
        let mut open: Vec<(u32, u64, u64)> = Vec::new();
        // Also one that was used before.
        for _ in 0..2 {
            holds.clear(&memory);
            list.0.clear();
            open.clear();
        }
        for process in 0..[6, 40, 250][random.below(3) as usize] {
            let (bytes, span_ns) = (random.below(60), random.below(12));
            let from_ns = 3 + random.below(80);
            let windows = memory.windows(bytes, span_ns);
            let expected = list.first_free(&memory, &windows, bytes, from_ns, span_ns);
            let answer = holds.first_free(&work, &windows, bytes, from_ns, span_ns);
            assert_eq!(answer, expected, "seed {seed}, process {process}");
            blocked += u64::from(answer.is_some_and(|free| free.1 != NONE));
            if holds.most_bytes(&work, from_ns) < bytes.into() {
                assert_eq!(expected, None, "seed {seed}, process {process}");
            }
            match expected {
                Some((start_ns, _)) => {
                    found += 1;
                    list.0.push(Hold { process, start_ns, end_ns: u64::MAX, bytes });
                    holds.take(&work, bytes, start_ns);
                    open.push((process, start_ns, bytes));
                }
                None => not_found += 1,
            }
            while open.len() > 2 || !open.is_empty() && random.below(2) == 0 {
                let ended = open.swap_remove(random.below(open.len() as u64) as usize);
                let (process, start_ns, bytes) = ended;
                let end_ns = start_ns + random.below(14);
                let could_hold = list.give_back(&memory, process, end_ns);
                let held = start_ns..end_ns;
                let answer = holds.give_back(&work, bytes, last_task(process), held);
                assert_eq!(answer, could_hold, "seed {seed}, process {process}");
            }
        }
    }
    assert!(found > 5_000 && not_found > 2_000 && blocked > 500, "{found} {not_found} {blocked}");
}

/// A question passes over blocks: among twenty times as many processes it takes a part of that.
#[test]
fn a_question_does_not_look_at_every_hold() {
    let steps_of = |processes: u64| {
        let memory = Memory::of_steps(vec![(0, 100)]);
        let mut holds = Holds::default();
        holds.clear(&memory);
        let work = Budget::unbounded();
        for process in 0..processes {
            let start_ns = 10 * process;
            holds.take(&work, 60, start_ns);
            assert!(holds.give_back(&work, 60, process as u32, start_ns..start_ns + 8));
        }
        let before = work.done();
        let windows = memory.windows(50, 5);
        let free = holds.first_free(&work, &windows, 50, 0, 5);
        assert_eq!(free, Some((10 * processes - 2, processes as u32 - 1)));
        work.done() - before
    };
    let (few, many) = (steps_of(500), steps_of(10_000));
    assert!(many < 2 * 10_000 / 10 && many < 8 * few, "{few} {many}");
}
