// SPDX-License-Identifier: GPL-2.0
//! Queues on the nodes of a site, under its rules.
//!
//! FCFS and EASY of the literature see one pool of cores, which no site has. On a site with
//! limits, free pools and gates such a queue uses what a plan may not, and the comparison is
//! unfair. Here the queue asks the planner's own search whether a job may start now; therefore
//! both obey the same rules on the same nodes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use pbs_cluster_planner::{Machine, Planner, Request, RequestId, Rules, State, When, NCPUS};
use pbs_site::User;

use crate::requests::Requests;
use crate::{NeverRan, Policy, TraceJob};

/// Jobs that may start before the first of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overtaking {
    /// No job: first come, first served.
    Never,
    /// Jobs that do not delay the first, in the order of submission: EASY.
    InOrder,
    /// Jobs that do not delay the first, the shortest first: SJF-EASY.
    ShortestFirst,
}

/// A queue whose jobs start where the planner's search finds room at once.
#[derive(Clone, Debug)]
pub struct SiteQueue {
    planner: Planner,
    chunks: Requests,
    overtaking: Overtaking,
    /// Maximum number of jobs that are tried behind the first at each event.
    most_looks: usize,
    /// In the order in which they came, by a count of those.
    waiting: BTreeMap<u64, Waiter>,
    came: u64,
    running: HashMap<usize, RequestId>,
    /// Latest start of the first of the queue, at the last event.
    first_s: Option<u64>,
    /// Jobs that no plan can satisfy.
    declined: BTreeMap<usize, NeverRan>,
}

#[derive(Clone, Debug)]
struct Waiter {
    job: usize,
    cores: u64,
    request: Request,
    /// Entry of the planner that counts the job among the requests of its user, without a place.
    held: RequestId,
}

impl SiteQueue {
    /// Creates a queue on an empty machine.
    pub fn new(
        machine: Arc<Machine>,
        rules: Rules,
        policy: pbs_cluster_planner::Policy,
        overtaking: Overtaking,
        most_looks: usize,
    ) -> Self {
        Self {
            chunks: Requests::new(&machine),
            planner: Planner::with_policy(machine, rules, policy),
            overtaking,
            most_looks,
            waiting: BTreeMap::new(),
            came: 0,
            running: HashMap::new(),
            first_s: None,
            declined: BTreeMap::new(),
        }
    }

    /// Starts a job if it has room now. Otherwise it waits on.
    fn try_start(&mut self, now_s: u64, came: u64) -> Option<usize> {
        let waiter = self.waiting.get_mut(&came)?;
        self.planner.remove(now_s, waiter.held);
        let at_once = Request { when: When::Fixed { start_s: now_s }, ..waiter.request.clone() };
        match self.planner.submit(now_s, &at_once) {
            Ok(id) => {
                let job = waiter.job;
                self.waiting.remove(&came);
                self.running.insert(job, id);
                Some(job)
            }
            Err(_) => {
                self.hold(now_s, came);
                None
            }
        }
    }

    /// Gives a waiting job its entry without a place again.
    fn hold(&mut self, now_s: u64, came: u64) {
        if let Some(waiter) = self.waiting.get_mut(&came) {
            let held = Request { is_held: true, ..waiter.request.clone() };
            // There was room for the entry until just now.
            if let Ok(id) = self.planner.submit(now_s, &held) {
                waiter.held = id;
            }
        }
    }

    /// Books the earliest place for the first of the queue, until the caller removes it.
    fn reserve(&mut self, now_s: u64, came: u64) -> Option<RequestId> {
        let waiter = self.waiting.get(&came)?;
        self.planner.remove(now_s, waiter.held);
        // A refusal means that no place exists yet; the request is held instead.
        let id = self.planner.submit(now_s, &waiter.request).ok();
        if id.is_none() {
            self.hold(now_s, came);
        }
        id
    }

    /// Starts jobs behind the first that leave it its place.
    fn overtake(&mut self, now_s: u64, first: u64, started: &mut Vec<usize>) {
        let mut behind: Vec<u64> = self.waiting.range(first + 1..).map(|(&came, _)| came).collect();
        if self.overtaking == Overtaking::ShortestFirst {
            behind.sort_by_key(|came| self.waiting[came].request.duration_s);
        }
        let mut failed: HashSet<(String, u64, User, String)> = HashSet::new();
        let mut free_cores = self.free_cores();
        let mut looks = 0;
        for came in behind {
            let Some(waiter) = self.waiting.get(&came).filter(|of| of.cores <= free_cores) else {
                continue;
            };
            // Jobs of an array are alike: where one found no room the next finds none.
            let request = &waiter.request;
            let (user, group) = (request.user.clone(), request.group.clone());
            let alike = (format!("{:?}", request.rset), request.duration_s, user, group);
            if failed.contains(&alike) {
                continue;
            }
            looks += 1;
            match self.try_start(now_s, came) {
                Some(job) => {
                    started.push(job);
                    free_cores = self.free_cores();
                }
                None => {
                    failed.insert(alike);
                }
            }
            if looks == self.most_looks || free_cores == 0 {
                break;
            }
        }
    }

    /// Returns the number of cores that no running job has now.
    fn free_cores(&self) -> u64 {
        self.planner.free(NCPUS).next().map_or(0, |(_, cores)| cores)
    }
}

impl Policy for SiteQueue {
    fn name(&self) -> &str {
        match self.overtaking {
            Overtaking::Never => "FCFS",
            Overtaking::InOrder => "EASY",
            Overtaking::ShortestFirst => "SJF-EASY",
        }
    }

    fn submit(&mut self, now_s: u64, job: usize, what: &TraceJob) {
        let request = self.chunks.of(what);
        // A job that no plan can satisfy would block the queue for ever.
        let held = match self.planner.submit(now_s, &request) {
            Ok(held) => held,
            Err(refusal) => {
                self.declined.insert(job, NeverRan::of(&refusal));
                return;
            }
        };
        self.planner.set_held(now_s, held, true);
        self.waiting.insert(self.came, Waiter { job, cores: what.cores, request, held });
        self.came += 1;
    }

    fn ended(&mut self, now_s: u64, job: usize) {
        if let Some(id) = self.running.remove(&job) {
            self.planner.remove(now_s, id);
        }
    }

    fn start(&mut self, now_s: u64, started: &mut Vec<usize>) {
        self.planner.forget_before(now_s);
        self.first_s = None;
        let first = loop {
            let Some(&first) = self.waiting.keys().next() else {
                break None;
            };
            match self.try_start(now_s, first) {
                Some(job) => started.push(job),
                None => break Some(first),
            }
        };
        if let Some(first) = first {
            let reserved = self.reserve(now_s, first);
            if let Some(State::Planned { start_s }) = reserved.and_then(|id| self.planner.state(id))
            {
                self.first_s = Some(start_s);
            }
            if self.overtaking != Overtaking::Never {
                self.overtake(now_s, first, started);
            }
            if let Some(id) = reserved {
                self.planner.remove(now_s, id);
                self.hold(now_s, first);
            }
        }
        // The planner's own list of starts follows; the jobs are known already.
        self.planner.start(now_s, &mut Vec::new());
    }

    fn next_s(&self) -> Option<u64> {
        // A pool or a limit may give way at that time, without any event.
        self.first_s
    }

    fn declined(&self) -> BTreeMap<usize, NeverRan> {
        self.declined.clone()
    }
}

#[cfg(test)]
mod tests {
    use pbs_cluster_planner::{NodeSpec, Resource};
    use pbs_gen::{Random, Stream};

    use super::*;
    use crate::{check, replay, Easy, Fcfs, Outcome};

    fn machine(cores: u64) -> Arc<Machine> {
        let node = NodeSpec::new("n1", vec![cores]);
        let ncpus = Resource { name: "ncpus".into(), job_wide: None };
        Arc::new(Machine::new(vec![ncpus], &[node]))
    }

    fn outcomes(jobs: &[TraceJob], cores: u64, overtaking: Overtaking) -> Vec<Outcome> {
        let mut queue = SiteQueue::new(
            machine(cores),
            Rules::default(),
            pbs_cluster_planner::Policy::default(),
            overtaking,
            usize::MAX,
        );
        replay(jobs, &mut queue, |_| ()).unwrap()
    }

    #[test]
    fn on_one_node_without_rules_the_queues_are_those_of_the_literature() {
        let mut random = Random::new(7, Stream::Trace);
        for _ in 0..200 {
            let job = |random: &mut Random| {
                let requested_s = 1 + random.below(60);
                let run_s = 1 + random.below(requested_s);
                TraceJob::new(random.below(100), run_s, requested_s, 1 + random.below(8))
            };
            let jobs: Vec<_> = (0..30).map(|_| job(&mut random)).collect();
            let in_order = outcomes(&jobs, 8, Overtaking::Never);
            assert_eq!(in_order, replay(&jobs, &mut Fcfs::new(8), |_| ()).unwrap());
            let easy = outcomes(&jobs, 8, Overtaking::InOrder);
            assert_eq!(easy, replay(&jobs, &mut Easy::new(8), |_| ()).unwrap());
            assert_eq!(check(&jobs, &outcomes(&jobs, 8, Overtaking::ShortestFirst), 8), Ok(()));
        }
    }
}
