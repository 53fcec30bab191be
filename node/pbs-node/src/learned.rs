// SPDX-License-Identifier: GPL-2.0
//! Slow-downs that a service learns from the runs that it records.
//!
//! The runs are those in memory. A thread that read them from the history would keep the service
//! from writing there, and so from every answer. Learning itself takes long: a thread of its own
//! does that, while the service continues with what was learned before. Users name the programs in
//! these runs: memory and work are bounded, and little is concluded from what was measured rarely.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use pbs_history::{Corun, Options};
use pbs_interference::{Key, Neighbour, Slowdowns};

use crate::companions::of_runs;
use crate::{Listener, News};

/// Least time from the end of a learning to the next.
const LEARN_EVERY: Duration = Duration::from_secs(60);

/// Memory of the runs from which slow-downs are learned.
pub(crate) const MOST_BYTES: usize = 16 << 20;

/// Memory of a run beside its own: its places in the tables.
const PLACE_BYTES: usize = 256;

/// Runs of a task that are held: as many as the history has.
const KEEP: usize = Options::DEFAULT.keep_samples as usize;

/// Runs of a task beside others from which its slow-down is believed: eight are within 5 % of it.
const LEAST_RUNS: u64 = 8;

/// Sets of others beside which a task may have run. The work of learning grows with their third
/// power, and a set that never comes again teaches nothing.
const MOST_SETS: usize = 64;

/// Steps of work of a learning ([`steps_of`]). A core does them in less than half a second, and in
/// about one if the equations of no task converge.
const MOST_STEPS: u64 = 16_000_000;

/// Steps for each column of a row beside its products with the others: it has an exponential.
const COLUMN_STEPS: u64 = 64;

/// Task, and whether its instructions were counted by the clock.
type Victim = (Key, bool);

fn victim(corun: &Corun) -> Victim {
    (corun.sample.victim, corun.by_clock)
}

/// Last runs of tasks beside others: of each task as many as the history has, and of all together
/// as many as fit.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    /// Runs by their numbers; the oldest is first.
    coruns: BTreeMap<u64, Arc<Corun>>,
    /// Numbers of the runs of each task.
    of_tasks: BTreeMap<Victim, VecDeque<u64>>,
    bytes: usize,
    next: u64,
    /// Whether there are runs from which nothing was learned yet.
    is_new: bool,
}

impl Recent {
    /// Adds runs in the order in which they were recorded. The oldest make room.
    pub(crate) fn add(&mut self, coruns: &[Corun]) {
        for corun in coruns {
            self.add_within(corun, MOST_BYTES);
        }
    }

    fn add_within(&mut self, corun: &Corun, most_bytes: usize) {
        let numbers = self.of_tasks.entry(victim(corun)).or_default();
        numbers.push_back(self.next);
        let too_old = numbers.front().copied().filter(|_| numbers.len() > KEEP);
        self.bytes += corun.held_bytes() + PLACE_BYTES;
        self.coruns.insert(self.next, Arc::new(corun.clone()));
        self.next += 1;
        self.is_new = true;
        if let Some(number) = too_old {
            self.remove(number);
        }
        while self.bytes > most_bytes {
            let Some(&oldest) = self.coruns.keys().next() else {
                break;
            };
            self.remove(oldest);
        }
    }

    /// Removes the oldest run of a task.
    fn remove(&mut self, number: u64) {
        let Some(corun) = self.coruns.remove(&number) else {
            return;
        };
        self.bytes -= corun.held_bytes() + PLACE_BYTES;
        let of_task = victim(&corun);
        if let Some(numbers) = self.of_tasks.get_mut(&of_task) {
            numbers.pop_front();
            if numbers.is_empty() {
                self.of_tasks.remove(&of_task);
            }
        }
    }

    /// Returns the runs, the oldest first; `None`: there are no new ones since the last call.
    pub(crate) fn take(&mut self) -> Option<Vec<Arc<Corun>>> {
        std::mem::take(&mut self.is_new).then(|| self.coruns.values().cloned().collect())
    }

    /// Runs from which nothing was learned after they were taken are new again.
    fn put_back(&mut self) {
        self.is_new = true;
    }
}

/// Slow-downs of the last runs, which are learned anew once in a while.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    known: Arc<Slowdowns>,
    learning: Option<JoinHandle<Slowdowns>>,
    /// End of the last learning.
    ended: Option<Instant>,
    /// Whether the last learning failed.
    failed: bool,
}

impl Learned {
    /// Returns slow-downs that are never learned anew.
    #[cfg(test)]
    pub(crate) fn always(known: Slowdowns) -> Self {
        Self { known: Arc::new(known), ..Self::default() }
    }

    /// Returns the slow-downs that are known; `None`: no task slows another.
    pub(crate) fn known(&self) -> Option<Arc<Slowdowns>> {
        (self.known.worst() > 1.0).then(|| self.known.clone())
    }

    /// Returns whether the first learning has ended.
    #[cfg(test)]
    pub(crate) fn has_learned(&self) -> bool {
        self.ended.is_some()
    }

    /// Takes what was learned meanwhile, and begins to learn anew if the last time is long ago and
    /// runs were recorded since. Waits for nothing. `recent`: the last runs; `None`: the node does
    /// not learn.
    pub(crate) fn refresh(&mut self, recent: Option<&mut Recent>, listener: &mut dyn Listener) {
        if let Some(learning) = self.learning.take_if(|learning| learning.is_finished()) {
            self.ended = Some(Instant::now());
            match learning.join() {
                Ok(known) => {
                    self.known = Arc::new(known);
                    self.failed = false;
                }
                Err(_) => self.fail("the thread that learns them has failed".into(), listener),
            }
        }
        let is_due = self.ended.is_none_or(|ended| ended.elapsed() >= LEARN_EVERY);
        if self.learning.is_some() || !is_due {
            return;
        }
        let Some(recent) = recent else {
            return;
        };
        let Some(coruns) = recent.take() else {
            return;
        };
        match Builder::new().name("slow-downs".into()).spawn(move || of_many_runs(&coruns)) {
            Ok(learning) => self.learning = Some(learning),
            Err(why) => {
                recent.put_back();
                self.ended = Some(Instant::now());
                self.fail(why.to_string(), listener);
            }
        }
    }

    /// Reports a failure, unless the learning before has failed, too.
    fn fail(&mut self, why: String, listener: &mut dyn Listener) {
        if !std::mem::replace(&mut self.failed, true) {
            listener.news(News::NotLearned(why));
        }
    }
}

/// Learns what is sure enough to plan with.
fn of_many_runs(coruns: &[Arc<Corun>]) -> Slowdowns {
    let chosen = within(coruns, MOST_STEPS);
    let coruns: Vec<Corun> = chosen.iter().map(|&place| Corun::clone(&coruns[place])).collect();
    let all = of_runs(&coruns);
    let mut sure: Vec<_> = all.entries().to_vec();
    sure.retain(|entry| entry.samples >= LEAST_RUNS);
    // What may be none is none. Without its entry, it would be guessed from others.
    sure.iter_mut().filter(|entry| entry.low <= 1.0).for_each(|entry| entry.slowdown = 1.0);
    Slowdowns::new(sure)
}

/// Chooses the runs from which is learned, in their order: those of tasks with enough runs and few
/// enough sets of others, as far as the steps suffice. Tasks that ran last come first.
fn within(coruns: &[Arc<Corun>], mut steps: u64) -> Vec<usize> {
    let mut of_tasks: BTreeMap<Victim, Vec<usize>> = BTreeMap::new();
    for (place, corun) in coruns.iter().enumerate() {
        of_tasks.entry(victim(corun)).or_default().push(place);
    }
    let mut tasks: Vec<Vec<usize>> = of_tasks.into_values().collect();
    tasks.retain(|runs| runs.len() as u64 >= LEAST_RUNS);
    tasks.sort_unstable_by_key(|runs| Reverse(runs.last().copied()));
    let mut chosen = Vec::new();
    for runs in tasks {
        let beside = runs.iter().flat_map(|&place| &coruns[place].sample.beside);
        let sets: BTreeSet<&[Neighbour]> = beside.map(|beside| &beside.neighbours[..]).collect();
        if sets.len() > MOST_SETS {
            continue;
        }
        if let Some(rest) = steps.checked_sub(steps_of(runs.len(), sets.len())) {
            steps = rest;
            chosen.extend(runs);
        }
    }
    chosen.sort_unstable();
    chosen
}

/// Returns the steps of work that learning takes for so many runs of a task beside so many sets:
/// each run has a row with a column for each set, and the equations of all columns are solved.
fn steps_of(runs: usize, sets: usize) -> u64 {
    let (runs, columns) = (runs as u64, 1 + sets as u64);
    runs * columns * (columns + COLUMN_STEPS) + columns.pow(3)
}

#[cfg(test)]
mod tests {
    use pbs_interference::{Beside, Level, Sample};

    use super::*;

    fn key(fingerprint: u64) -> Key {
        Key { fingerprint, ..Key::default() }
    }

    /// A run of a task.
    fn run(task: u64, insns: u64) -> Corun {
        Corun { sample: Sample { victim: key(task), insns, ..Sample::default() }, by_clock: false }
    }

    /// Each task keeps its last runs, and all tasks together have a bound: the oldest runs go.
    #[test]
    fn runs_in_memory_have_a_bound() {
        let mut recent = Recent::default();
        assert!(recent.take().is_none());
        let bytes = run(0, 0).held_bytes() + PLACE_BYTES;
        for number in 0..3 * KEEP as u64 {
            recent.add_within(&run(0, number), 40 * bytes);
        }
        let first = |runs: &[Arc<Corun>]| (runs.len(), runs[0].sample.insns);
        assert_eq!(first(&recent.take().unwrap()), (KEEP, 2 * KEEP as u64));
        assert!(recent.take().is_none());
        for task in 1..=50 {
            recent.add_within(&run(task, task), 40 * bytes);
        }
        assert_eq!(first(&recent.take().unwrap()), (40, 11));
        assert_eq!((recent.bytes, recent.of_tasks.len()), (40 * bytes, 40));
        recent.add_within(&run(51, 51), bytes - 1);
        assert_eq!((recent.bytes, recent.coruns.len(), recent.of_tasks.len()), (0, 0, 0));
    }

    /// Learning has a bound, also of tasks that ran beside many sets of others. The last tasks come
    /// first, and a task with few runs takes no work.
    #[test]
    fn learning_has_a_bound() {
        let beside = |set: u64| Beside {
            neighbours: vec![Neighbour { level: Level::Node, key: key(set) }],
            duration_ns: 1000,
        };
        let run = |task: u64, sets: u64| {
            let mut corun = run(task, 1000);
            corun.sample.beside = (0..sets).map(beside).collect();
            Arc::new(corun)
        };
        let of = |task: u64, sets: u64| (0..8).map(move |_| run(task, sets));
        // The third task has too few runs, and the fourth one too many sets.
        let coruns = of(0, 2).chain(of(1, 40)).chain(of(2, 2).skip(1)).chain(of(3, 65));
        let coruns: Vec<_> = coruns.chain(of(4, 2)).collect();
        let tasks = |steps: u64| {
            let chosen = within(&coruns, steps).into_iter();
            let tasks: BTreeSet<_> =
                chosen.map(|place| coruns[place].sample.victim.fingerprint).collect();
            tasks.into_iter().collect::<Vec<_>>()
        };
        let (small, large) = (steps_of(8, 2), steps_of(8, 40));
        assert_eq!(tasks(u64::MAX), [0, 1, 4]);
        assert_eq!(tasks(2 * small + large), [0, 1, 4]);
        assert_eq!(tasks(small + large), [1, 4]);
        assert_eq!(tasks(2 * small + large - 1), [1, 4]);
        assert_eq!(tasks(2 * small), [0, 4]);
        assert_eq!(tasks(small), [4]);
        assert_eq!(tasks(small - 1), [0; 0]);
    }

    /// Runs of tasks that make learning as expensive as users can.
    #[test]
    #[ignore = "prints times"]
    fn learning_is_measured() {
        let others = |first: u64| {
            (0..15).map(move |it| Neighbour { level: Level::Node, key: key(first + it) })
        };
        let run = |victim: u64, ran: u64| Corun {
            sample: Sample {
                victim: key(victim),
                insns: 1_000_000 + ran,
                ran_ns: 64 * (1000 + ran),
                beside: (0..64)
                    .map(|set| Beside {
                        neighbours: others(set).collect(),
                        duration_ns: 1000 + ran * set,
                    })
                    .collect(),
            },
            by_clock: false,
        };
        let coruns: Vec<_> = (0..100)
            .flat_map(|victim| (0..32).map(move |ran| Arc::new(run(victim, ran))))
            .collect();
        let began = Instant::now();
        let known = of_many_runs(&coruns);
        println!("{:?}, {} slow-downs", began.elapsed(), known.entries().len());
    }
}
