// SPDX-License-Identifier: GPL-2.0
//! Conservative backfilling (Mu'alem and Feitelson 2001, *Utilization, predictability,
//! workloads, and user runtime estimates in scheduling the IBM SP2 with backfilling*): every
//! job has a reservation from its submission on, and where one ends early the others move up.
//!
//! In which order they do so the literature leaves open. Here it is that in which they came,
//! once through all of them, as Keller's planner does for jobs of the same priority (5.4).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pbs_profile::{Profile, FOREVER};

use crate::{Policy, TraceJob};

/// The reservations on a cluster of cores.
#[derive(Clone, Debug)]
pub struct Conservative {
    cores: u64,
    /// Cores that are neither used nor reserved, if all jobs run for their whole requested time.
    free_cores: Profile,
    /// In the order in which they came, by a count of those.
    waiting: BTreeMap<u64, Reservation>,
    came: u64,
    /// Start times of the reservations, each with the job's number of arrival.
    starts: BTreeSet<(u64, u64)>,
    running: HashMap<usize, (u64, u64)>,
    told_s: HashMap<usize, u64>,
    /// Cores were given back since the reservations were looked at.
    is_loose: bool,
    most_looks: usize,
}

#[derive(Clone, Copy, Debug)]
struct Reservation {
    job: usize,
    cores: u64,
    requested_s: u64,
    start_s: u64,
}

impl Reservation {
    /// Returns the end of the reservation; an end past the range of time means no end.
    fn end_s(&self) -> u64 {
        self.start_s.saturating_add(self.requested_s)
    }
}

impl Conservative {
    /// Creates a scheduler for that many idle cores.
    pub fn new(cores: u64) -> Self {
        Self {
            cores,
            free_cores: Profile::new(cores),
            waiting: BTreeMap::new(),
            came: 0,
            starts: BTreeSet::new(),
            running: HashMap::new(),
            told_s: HashMap::new(),
            is_loose: false,
            most_looks: usize::MAX,
        }
    }

    /// Limits the number of jobs that are searched for an earlier time whenever a job ends early;
    /// the earliest submitted are searched. Behind an array of a hundred thousand jobs, each end
    /// moves all of them, and a replay takes hours. Further jobs wait for the next time. Therefore
    /// starts can be later than those of the literature, though never later than promised.
    pub fn with_most_looks(mut self, jobs: usize) -> Self {
        self.most_looks = jobs;
        self
    }

    /// Returns the latest start of a job, in seconds, as promised at its arrival; `None` if it was
    /// declined. `job` is its index in the trace.
    pub fn told_s(&self, job: usize) -> Option<u64> {
        self.told_s.get(&job).copied()
    }

    /// Takes cores, of which the caller has checked that there are enough.
    fn take(&mut self, from_s: u64, until_s: u64, cores: u64) {
        let done = self.free_cores.subtract(from_s..until_s, cores);
        debug_assert_eq!(done, Ok(()));
    }

    /// Gives cores back that were taken.
    fn give(&mut self, from_s: u64, until_s: u64, cores: u64) {
        let done = self.free_cores.add(from_s..until_s.max(from_s), cores);
        debug_assert_eq!(done, Ok(()));
    }

    /// Whether there is an earlier time for a reservation. Without changing anything: one
    /// that is earlier and ends before the reservation begins is free as things are, and
    /// one that reaches into it needs the cores from just before it on.
    fn is_movable(&self, now_s: u64, of: &Reservation) -> bool {
        if of.start_s <= now_s {
            return false;
        }
        let free = &self.free_cores;
        free.value_at(of.start_s - 1) >= of.cores
            || free.find_first_hole(of.cores, of.requested_s, now_s..of.start_s).is_some()
    }

    /// Each looks for an earlier time, or keeps its own.
    fn compress(&mut self, now_s: u64) {
        let Some(&(last_s, _)) = self.starts.last() else {
            return;
        };
        // Wider ones than this find no time at all, and most often that is most of them.
        let widest = |free: &Profile| free.max_over(now_s..last_s).unwrap_or(0);
        let mut most_cores = widest(&self.free_cores);
        let mut from = 0;
        let mut looks = self.most_looks;
        while most_cores > 0 {
            let rest = self.waiting.range(from..).take(looks).enumerate();
            let mut movable =
                rest.filter(|(_, (_, of))| of.cores <= most_cores && self.is_movable(now_s, of));
            let Some((others, (&came, &of))) = movable.next() else {
                break;
            };
            self.give(of.start_s, of.end_s(), of.cores);
            let hole = self.free_cores.find_first_hole(of.cores, of.requested_s, now_s..FOREVER);
            let start_s = hole.unwrap_or(of.start_s);
            let moved = Reservation { start_s, ..of };
            self.take(start_s, moved.end_s(), of.cores);
            self.starts.remove(&(of.start_s, came));
            self.starts.insert((start_s, came));
            self.waiting.insert(came, moved);
            most_cores = widest(&self.free_cores);
            from = came + 1;
            looks -= others + 1;
        }
    }
}

impl Policy for Conservative {
    fn name(&self) -> &str {
        "conservative"
    }

    fn submit(&mut self, now_s: u64, job: usize, what: &TraceJob) {
        if !(1..=self.cores).contains(&what.cores) {
            return;
        }
        // Who came before has what was given back.
        if std::mem::take(&mut self.is_loose) {
            self.compress(now_s);
        }
        let (cores, requested_s) = (what.cores, what.requested_s);
        let hole = self.free_cores.find_first_hole(cores, requested_s, now_s..FOREVER);
        let Some(start_s) = hole else { return };
        let reservation = Reservation { job, cores, requested_s, start_s };
        self.take(start_s, reservation.end_s(), cores);
        self.starts.insert((start_s, self.came));
        self.waiting.insert(self.came, reservation);
        self.came += 1;
        self.told_s.insert(job, start_s);
    }

    fn ended(&mut self, now_s: u64, job: usize) {
        if let Some((end_s, cores)) = self.running.remove(&job) {
            self.is_loose |= end_s > now_s;
            self.give(now_s, end_s, cores);
        }
    }

    fn start(&mut self, now_s: u64, started: &mut Vec<usize>) {
        self.free_cores.forget_before(now_s);
        if std::mem::take(&mut self.is_loose) {
            self.compress(now_s);
        }
        while let Some(&(start_s, came)) = self.starts.first() {
            if start_s > now_s {
                break;
            }
            self.starts.pop_first();
            if let Some(of) = self.waiting.remove(&came) {
                self.running.insert(of.job, (of.end_s(), of.cores));
                started.push(of.job);
            }
        }
    }

    fn next_s(&self) -> Option<u64> {
        self.starts.first().map(|&(start_s, _)| start_s)
    }
}
