// SPDX-License-Identifier: GPL-2.0
//! The cluster that is planned, over nodes that run plans.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pbs_cluster_planner::{
    Machine, NodeSpec, Planner, Request, RequestId, Resource, Rules, State, When,
};
use pbs_resources::{Arrangement, Chunk, Item, Placement, Rset, Value};

use crate::whole::node::{course, list_beside_others_s, list_s, Course, Prediction};
use crate::whole::{Error, Fate, Options, WholeJob};

/// A job gets at most so much more than it asked for.
pub const MOST_EXTENSION_PERMILLE: u64 = 100;

/// Requests that are looked at for an earlier place at once; then for the next ones.
const BACKFILLS: usize = 1000;
const NS_PER_S: u64 = 1_000_000_000;

/// Execution of jobs on their nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nodes {
    /// Execution by plans, under the class.
    Plans,
    /// Without: as under the yardsticks. Nobody foresees anything, so nobody gets more time.
    /// What is left of the system is its admission.
    Lists,
    /// Without, and each core leaves to others what a plan has to.
    ListsBesideOthers,
}

impl Nodes {
    /// Returns the course of a job on these cores.
    fn course(self, cores: &[u32], job: &WholeJob) -> Result<Course, Error> {
        let list_s = match self {
            Self::Plans => return course(cores, &job.processes, job.duration_s),
            Self::Lists => list_s(job.cores, &job.processes),
            Self::ListsBesideOthers => list_beside_others_s(job.cores, &job.processes),
        };
        Ok(Course { end_ns: Some(list_s * NS_PER_S), ..Course::default() })
    }
}

/// A job that has its cores.
struct Running {
    job: usize,
    start_s: u64,
    course: Course,
    /// Number of predictions that were reported.
    told: usize,
}

impl Running {
    /// Returns the end of the job if it is not interrupted.
    fn over_s(&self) -> Option<u64> {
        let end_ns = self.course.end_ns?;
        Some(self.start_s + end_ns.div_ceil(NS_PER_S).max(1))
    }

    /// Returns the next prediction and its time.
    fn next_told(&self) -> Option<(u64, Prediction)> {
        let told = self.course.predictions.get(self.told)?;
        Some((self.start_s + told.told_ns.div_ceil(NS_PER_S), *told))
    }
}

struct Whole<'a> {
    nodes: Nodes,
    jobs: &'a [WholeJob],
    planner: Planner,
    fates: Vec<Fate>,
    requests: BTreeMap<RequestId, usize>,
    running: BTreeMap<RequestId, Running>,
    /// Free cores of each node.
    free_cores: Vec<BTreeSet<u32>>,
}

/// Returns the fates of the jobs, which are in the order of submission.
///
/// # Errors
///
/// A job can't be planned or simulated on its node.
pub fn planned(options: &Options, jobs: &[WholeJob], nodes: Nodes) -> Result<Vec<Fate>, Error> {
    let mut whole = Whole::new(options, jobs, nodes);
    let mut next_job = 0;
    loop {
        let submit_s = jobs.get(next_job).map(|job| job.submit_s);
        let next_s = [submit_s, whole.planner.next_start_s(), whole.next_s()];
        let Some(now_s) = next_s.into_iter().flatten().min() else {
            break;
        };
        whole.planner.forget_before(now_s);
        whole.end_what_is_over(now_s);
        whole.tell(now_s);
        whole.abort_what_is_overdue(now_s);
        while whole.planner.is_backfilling() {
            whole.planner.backfill(now_s, BACKFILLS);
        }
        while jobs.get(next_job).is_some_and(|job| job.submit_s <= now_s) {
            whole.submit(now_s, next_job);
            next_job += 1;
        }
        whole.start(now_s)?;
    }
    Ok(whole.fates)
}

impl<'a> Whole<'a> {
    fn new(options: &Options, jobs: &'a [WholeJob], how: Nodes) -> Self {
        let ncpus = Resource { name: "ncpus".into(), job_wide: None };
        let nodes = (0..options.nodes)
            .map(|number| NodeSpec::new(format!("n{number:04}"), vec![options.cores.into()]));
        let nodes: Vec<_> = nodes.collect();
        let machine = Arc::new(Machine::new(vec![ncpus], &nodes));
        let fate = |job: &WholeJob| Fate { end_s: job.submit_s, ..Fate::default() };
        Self {
            nodes: how,
            jobs,
            planner: Planner::new(machine, Rules::default()),
            fates: jobs.iter().map(fate).collect(),
            requests: BTreeMap::new(),
            running: BTreeMap::new(),
            free_cores: vec![(0..options.cores).collect(); nodes.len()],
        }
    }

    /// Returns the end of a job's allocation.
    fn end_s(&self, id: RequestId) -> Option<u64> {
        match self.planner.state(id) {
            Some(State::Running { end_s, .. }) => Some(end_s),
            _ => None,
        }
    }

    /// Returns the time of the next event of a running job.
    fn next_s(&self) -> Option<u64> {
        let times = self.running.iter().flat_map(|(&id, running)| {
            let told_s = running.next_told().map(|told| told.0);
            [running.over_s(), told_s, self.end_s(id)]
        });
        times.flatten().min()
    }

    fn submit(&mut self, now_s: u64, number: usize) {
        let job = &self.jobs[number];
        let rset = Rset {
            chunks: vec![Chunk {
                count: 1,
                items: vec![Item {
                    resource: "ncpus".into(),
                    value: Value::Amount(job.cores.into()),
                }],
            }],
            job_wide: Vec::new(),
            place: Placement { arrangement: Arrangement::Free, sharing: None },
            avoid: Vec::new(),
        };
        let request = Request {
            when: When::Deadline { end_s: job.deadline_s, late: false },
            ..Request::new(rset, job.duration_s)
        };
        if let Ok(id) = self.planner.submit(now_s, &request) {
            self.requests.insert(id, number);
        }
    }

    fn start(&mut self, now_s: u64) -> Result<(), Error> {
        let mut started = Vec::new();
        self.planner.start(now_s, &mut started);
        for id in started {
            let Some(number) = self.requests.remove(&id) else {
                continue;
            };
            let job = &self.jobs[number];
            let placed = self.planner.placed(id).first();
            let node = placed.map_or(0, |placed| placed.node);
            let free = &mut self.free_cores[node as usize];
            let cores: Vec<u32> = free.iter().copied().take(job.cores as usize).collect();
            if cores.len() < job.cores as usize {
                return Err(Error(format!(
                    "job {number} starts at {now_s} s on node {node}, where others have the \
                     cores; this is an error of the planner, please report it with the options"
                )));
            }
            free.retain(|core| !cores.contains(core));
            let course = self.nodes.course(&cores, job)?;
            let running = Running { job: number, start_s: now_s, course, told: 0 };
            self.running.insert(id, running);
            let fate = &mut self.fates[number];
            fate.start_s = Some(now_s);
            fate.node = Some(node);
            fate.cores = cores;
        }
        Ok(())
    }

    fn end_what_is_over(&mut self, now_s: u64) {
        let over = self.running.iter().filter(|(&id, running)| {
            let over_s = running.over_s();
            over_s.is_some_and(|over_s| over_s <= now_s && Some(over_s) <= self.end_s(id))
        });
        let over: Vec<_> = over.map(|(&id, _)| id).collect();
        for id in over {
            self.end(now_s, id, false);
        }
    }

    fn abort_what_is_overdue(&mut self, now_s: u64) {
        for id in self.planner.overdue(now_s) {
            self.end(now_s, id, true);
        }
    }

    fn end(&mut self, now_s: u64, id: RequestId, is_aborted: bool) {
        self.planner.remove(now_s, id);
        let Some(running) = self.running.remove(&id) else {
            return;
        };
        let fate = &mut self.fates[running.job];
        let ran_ns = (now_s - running.start_s) * NS_PER_S;
        let until = |times_ns: &[u64]| times_ns.iter().filter(|&&at_ns| at_ns <= ran_ns).count();
        fate.end_s = now_s;
        fate.is_aborted = is_aborted;
        fate.signals = until(&running.course.signals_ns) as u64;
        fate.replans = until(&running.course.replans_ns) as u64;
        if let Some(node) = fate.node {
            self.free_cores[node as usize].extend(&fate.cores);
        }
    }

    /// The nodes tell what they foresee, and the planner gives more time where it can.
    fn tell(&mut self, now_s: u64) {
        let ids: Vec<_> = self.running.keys().copied().collect();
        for id in ids {
            let mut asked = None;
            if let Some(running) = self.running.get_mut(&id) {
                while let Some((_, told)) = running.next_told().filter(|told| told.0 <= now_s) {
                    running.told += 1;
                    asked = Some((running.job, running.start_s, told));
                }
            }
            if let Some((number, start_s, told)) = asked {
                self.extend(id, number, start_s, told);
            }
        }
    }

    fn extend(&mut self, id: RequestId, number: usize, start_s: u64, told: Prediction) {
        let duration_s = self.jobs[number].duration_s;
        let most_s = duration_s * (1000 + MOST_EXTENSION_PERMILLE) / 1000;
        let wanted_s = told.end_ns.map_or(most_s, |end_ns| end_ns.div_ceil(NS_PER_S));
        let Some(has_s) = self.end_s(id).map(|end_s| end_s - start_s) else {
            return;
        };
        let mut by_s = wanted_s.min(most_s).saturating_sub(has_s);
        if by_s == 0 {
            return;
        }
        let fate = &mut self.fates[number];
        // All of it, or else as much as is free of a half, a quarter and so on.
        while by_s > 0 {
            let extended = self.planner.extend(id, by_s, MOST_EXTENSION_PERMILLE);
            if extended.is_ok() {
                fate.extensions += 1;
                fate.extended_s += by_s;
                return;
            }
            by_s /= 2;
        }
        fate.refused_extensions += 1;
    }
}
