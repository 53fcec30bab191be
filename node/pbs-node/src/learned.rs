// SPDX-License-Identifier: GPL-2.0
//! Slow-downs that a service learns from its history.
//!
//! Learning reads thousands of runs. A thread of its own does that, while the service continues with
//! what was learned before. Users name the programs in these runs: memory and work are bounded, and
//! little is concluded from what was measured rarely.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use pbs_history::{Corun, Options, Store};
use pbs_interference::{Key, Neighbour, Slowdowns};

use crate::companions::of_runs;
use crate::{Error, Listener, News};

/// Least time from one learning to the next.
const LEARN_EVERY: Duration = Duration::from_secs(60);

/// Memory of the runs from which slow-downs are learned.
const MOST_BYTES: usize = 16 << 20;

/// Runs of a task beside others from which its slow-down is believed: eight are within 5 % of it.
const LEAST_RUNS: u64 = 8;

/// Sets of others beside which a task may have run. The work of learning grows with their third
/// power, and a set that never comes again teaches nothing.
const MOST_SETS: usize = 64;

/// Slow-downs of a history, which are learned anew once in a while.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    /// File of the history; `None`: nothing is learned.
    history: Option<PathBuf>,
    known: Arc<Slowdowns>,
    learning: Option<JoinHandle<Result<Slowdowns, Error>>>,
    began: Option<Instant>,
    /// Whether the last learning failed.
    failed: bool,
}

impl Learned {
    /// Returns the slow-downs of a history, of which nothing is known yet.
    pub(crate) fn of(history: PathBuf) -> Self {
        Self { history: Some(history), ..Self::default() }
    }

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
        self.began.is_some() && self.learning.is_none()
    }

    /// Takes what was learned meanwhile, and begins to learn anew if the last time is long ago.
    /// Waits for nothing.
    pub(crate) fn refresh(&mut self, listener: &mut dyn Listener) {
        if let Some(learning) = self.learning.take_if(|learning| learning.is_finished()) {
            match learning.join() {
                Ok(Ok(known)) => {
                    self.known = Arc::new(known);
                    self.failed = false;
                }
                Ok(Err(why)) => self.fail(why.to_string(), listener),
                Err(_) => self.fail("the thread that learns them has failed".into(), listener),
            }
        }
        let Some(history) = &self.history else {
            return;
        };
        let is_due = self.began.is_none_or(|began| began.elapsed() >= LEARN_EVERY);
        if self.learning.is_some() || !is_due {
            return;
        }
        self.began = Some(Instant::now());
        let history = history.clone();
        match Builder::new().name("slow-downs".into()).spawn(move || learn(&history)) {
            Ok(learning) => self.learning = Some(learning),
            Err(why) => self.fail(why.to_string(), listener),
        }
    }

    /// Reports a failure, unless the learning before has failed, too.
    fn fail(&mut self, why: String, listener: &mut dyn Listener) {
        if !std::mem::replace(&mut self.failed, true) {
            listener.news(News::NotLearned(why));
        }
    }
}

/// Learns the slow-downs of a history.
fn learn(history: &Path) -> Result<Slowdowns, Error> {
    let store = Store::open_read_only(history, Options::DEFAULT)?;
    Ok(of_many_runs(store.last_coruns(MOST_BYTES)?))
}

/// Learns what is sure enough to plan with.
fn of_many_runs(mut coruns: Vec<Corun>) -> Slowdowns {
    let mut sets: BTreeMap<(Key, bool), BTreeSet<Vec<Neighbour>>> = BTreeMap::new();
    for corun in &coruns {
        let own = sets.entry((corun.sample.victim, corun.by_clock)).or_default();
        own.extend(corun.sample.beside.iter().map(|beside| beside.neighbours.clone()));
    }
    coruns.retain(|corun| sets[&(corun.sample.victim, corun.by_clock)].len() <= MOST_SETS);
    let all = of_runs(&coruns);
    let mut sure: Vec<_> = all.entries().to_vec();
    sure.retain(|entry| entry.samples >= LEAST_RUNS);
    // What may be none is none. Without its entry, it would be guessed from others.
    sure.iter_mut().filter(|entry| entry.low <= 1.0).for_each(|entry| entry.slowdown = 1.0);
    Slowdowns::new(sure)
}

#[cfg(test)]
mod tests {
    use pbs_interference::{Beside, Level, Sample};

    use super::*;

    /// Runs of tasks that make learning as expensive as users can.
    #[test]
    #[ignore = "prints times"]
    fn learning_is_measured() {
        let key = |fingerprint| Key { fingerprint, ..Key::default() };
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
        let coruns: Vec<_> =
            (0..22).flat_map(|victim| (0..32).map(move |ran| run(victim, ran))).collect();
        let began = Instant::now();
        let known = of_many_runs(coruns);
        println!("{:?}, {} slow-downs", began.elapsed(), known.entries().len());
    }
}
