// SPDX-License-Identifier: GPL-2.0

use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use pbs_control::Options;
use pbs_history::{Corun, RunId};
use pbs_interference::{Beside, Entry, Key, Level, Neighbour, Sample, Sharing, Slowdowns};
use pbs_job::{job_from_toml, machine_from_toml};

use super::*;
use crate::admission::Allowance;
use crate::candidate::Candidate;
use crate::clock::monotonic_ns;
use crate::companions;
use crate::jobs::Jobs;
use crate::learned::Learned;
use crate::orders::{Order, Terms};
use crate::{Expected, Listener, News, Submission};

/// Remembers the messages.
#[derive(Default)]
struct Hears(Vec<String>);

impl Listener for Hears {
    fn news(&mut self, news: News) {
        assert!(!news.is_alarm(), "{news}");
        self.0.push(news.to_string());
    }

    fn moved(&mut self, run: RunId, job: &str, moved: &Moved) {
        self.0.push(format!("{run} job {job} is {moved}"));
    }
}

const MACHINE: &str = "[[node]]\nname = \"lab\"\nmemory_bytes = 67_108_864\ncores = [
    { name = \"a\", cpu = 0, rate_insns_per_s = 250_000_000 },
    { name = \"b\", cpu = 1, rate_insns_per_s = 250_000_000 },
]\n";

/// The jobs of a node of two CPUs.
struct Node {
    directory: PathBuf,
    jobs: Jobs,
    hears: Hears,
}

impl Node {
    fn new(name: &str) -> Self {
        let directory = format!("pbs-node-placed-{name}-{}", std::process::id());
        let directory = std::env::temp_dir().join(directory);
        std::fs::create_dir_all(&directory).unwrap();
        let mut hears = Hears::default();
        let jobs = crate::model::open_on(MACHINE, &directory, &mut hears);
        Self { directory, jobs, hears }
    }

    /// A node that knows how many times as long the program takes beside itself.
    fn slowed(name: &str, slowdown: f64) -> Self {
        let mut node = Self::new(name);
        node.jobs.learned = Learned::always(slowdowns(slowdown));
        node
    }

    fn order(&mut self, order: Order) -> RunId {
        self.jobs.order(vec![order], &mut self.hears).unwrap()[0]
    }

    /// CPU of the first process of each job.
    fn cpus(&self) -> Vec<u32> {
        let plan = self.jobs.next_plan.as_ref().unwrap();
        (0..plan.processes.len()).map(|index| plan.cpu_of(index).unwrap().cpu).collect()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // What stays there is in a directory for what may be lost.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// A job of one process and a quarter of a second.
fn text(deadline_ms: u64) -> String {
    format!(
        "name = \"sorts\"\ndeadline_ns = \"{deadline_ms}ms\"\n[[process]]\nid = 2\n\
         memory_bytes = 4096\ncommand = [\"sort\"]\ntasks = [62_500_000]\n"
    )
}

fn order_of(text: String) -> Order {
    let submission = Submission::from_text(text, "sorts.toml".into()).unwrap();
    Order::new(submission, Terms::new(pbs_launch::Owner::new(1000, 1000)))
}

fn order(deadline_ms: u64) -> Order {
    order_of(text(deadline_ms))
}

fn sort() -> Key {
    let job = job_from_toml(&text(1)).unwrap();
    let task = job.tasks.iter().position(|task| task.insns > 0).unwrap();
    companions::key(&job, task)
}

/// Slow-downs of the program beside itself, as any of the first tasks of a job.
fn slowdowns(slowdown: f64) -> Slowdowns {
    let tasks = || (0..40).map(|task| Key { task, ..sort() });
    let pairs = tasks().flat_map(|victim| tasks().map(move |beside| (victim, beside)));
    let entries = pairs.map(|(victim, beside)| Entry {
        victim,
        beside: vec![(Level::Node, beside)],
        slowdown,
        low: slowdown,
        high: slowdown,
        samples: 10,
    });
    Slowdowns::new(entries.collect())
}

/// Runs of the program: each time once alone, and once beside itself as many times as long.
fn runs(count: usize, slowdown: u64) -> Vec<Corun> {
    let neighbours = vec![Neighbour { level: Level::Node, key: sort() }];
    let run = |neighbours: &[Neighbour], ran_ns| Corun {
        sample: Sample {
            victim: sort(),
            insns: 62_500_000,
            ran_ns,
            beside: vec![Beside { neighbours: neighbours.to_vec(), duration_ns: ran_ns }],
        },
        by_clock: false,
    };
    let alone_ns = 250_000_000;
    let both = || [run(&[], alone_ns), run(&neighbours, slowdown * alone_ns)];
    (0..count).flat_map(|_| both()).collect()
}

/// The CPU of a job is chosen by what the history has, which the answer about a job and the messages
/// tell. Too few runs change nothing, and neither do any runs for a node that does not learn.
#[test]
fn orders_are_placed_with_the_slowdowns_of_the_history() {
    for (count, learns, cpus) in [(10, true, [0, 0]), (7, true, [0, 1]), (10, false, [0, 1])] {
        let mut node = Node::new(&format!("history-{count}-{learns}"));
        node.jobs.ledger.record_coruns(&runs(count, 3));
        if learns {
            node.jobs.ledger.hold_recent().unwrap();
        }
        while learns && !node.jobs.learned.has_learned() {
            node.jobs.learned.refresh(node.jobs.ledger.recent.as_mut(), &mut node.hears);
            sleep(Duration::from_millis(1));
        }
        node.order(order(60_000));
        let Expected { moved, .. } = node.jobs.would_order(&order(60_000)).unwrap();
        assert_eq!(node.hears.0, [""; 0]);
        let run = node.order(order(60_000));
        assert_eq!(node.cpus(), cpus);
        let is_moved = cpus == [0, 0];
        assert_eq!(moved.is_some(), is_moved);
        for news in &node.hears.0 {
            let begin = format!(
                "{run} job sorts is planned on CPU 0 instead of 1: with the slow-downs of earlier \
                 runs, all jobs together end "
            );
            assert!(news.starts_with(&begin), "{news}");
        }
        assert_eq!(node.hears.0.len(), usize::from(is_moved));
    }
}

/// Beside each other two jobs end sooner than one after the other, unless one takes more than twice
/// as long.
#[test]
fn a_job_stays_beside_others_that_slow_it_little() {
    for (slowdown, cpus) in [(1.8, [0, 1]), (2.2, [0, 0])] {
        let mut node = Node::slowed("little", slowdown);
        node.order(order(60_000));
        node.order(order(60_000));
        assert_eq!(node.cpus(), cpus);
    }
}

/// A job that would be late behind the other without slow-downs stays beside it. So does one whose
/// owner names its CPU.
#[test]
fn slowdowns_cost_no_promise_and_no_confinement() {
    let mut node = Node::slowed("promise", 2.2);
    node.order(order(500));
    node.order(order(500));
    assert_eq!(node.cpus(), [0, 1]);

    let mut node = Node::slowed("confined", 2.2);
    let confined = |cpu: u32| order_of(format!("cpus = [{cpu}]\n{}", text(60_000)));
    node.order(confined(0));
    node.order(confined(1));
    assert_eq!(node.cpus(), [0, 1]);
    assert_eq!(node.hears.0, [""; 0]);
}

/// A job that slow-downs would make late has another CPU, though the last end is later.
#[test]
fn fewer_late_jobs_come_first() {
    let controller = |cpu: u32, deadline_ms: u64| {
        let machine = machine_from_toml(MACHINE).unwrap();
        let mut controller = Controller::new(machine, Options::default(), 1, 1);
        let on = |cpu: u32, deadline_ms: u64| {
            job_from_toml(&format!("cpus = [{cpu}]\n{}", text(deadline_ms))).unwrap()
        };
        controller.admit(on(0, 60_000), 0).unwrap();
        controller.admit(on(cpu, deadline_ms), 0).unwrap();
        controller
    };
    let (slowdowns, sharing) = (slowdowns(1.8), Sharing::default());
    let companions = Companions { slowdowns: &slowdowns, sharing: &sharing, key: &companions::key };
    let ends = |cpu, deadline_ms| {
        let controller = controller(cpu, deadline_ms);
        controller.stretches(&companions, 0).ends(&companions).unwrap()
    };
    assert!(!ends(0, 60_000).is_better_than(&ends(1, 60_000)));
    let (behind, beside) = (ends(0, 450), ends(1, 450));
    assert_eq!((behind.late.len(), beside.late.len()), (0, 1));
    assert!(behind.makespan_ns > beside.makespan_ns);
    assert!(behind.is_better_than(&beside) && !beside.is_better_than(&behind));
}

/// All tries of a request are within its work, and within their number.
#[test]
fn tries_are_bounded() {
    let mut node = Node::slowed("bounded", 3.0);
    node.order(order(60_000));
    let process = |id: u32| {
        format!(
            "[[process]]\nid = {id}\nmemory_bytes = 4096\ncommand = [\"sort\"]\n\
             tasks = [62_500_000]\n"
        )
    };
    let job = |processes: u32| {
        let all: String = (0..processes).map(process).collect();
        Arc::new(job_from_toml(&format!("name = \"wide\"\ndeadline_ns = \"600s\"\n{all}")).unwrap())
    };
    let (slowdowns, sharing) = (slowdowns(3.0), Sharing::default());
    let companions = Companions { slowdowns: &slowdowns, sharing: &sharing, key: &companions::key };
    let copy = node.jobs.controller.size() as u64 * COPY_STEPS;
    let mut controller = node.jobs.controller.clone();
    controller.admit(job(8), 0).unwrap();
    let timings = 2 * controller.stretches(&companions, 0).look_ups() * LOOK_UP_STEPS;
    // How many processes the job has, its tries and work, the tries that are left, and whether a
    // process has moved.
    for (processes, tries, steps, left, moves) in [
        (40, MOST_TRIES, 100_000_000, 0, true),
        (8, MOST_TRIES, 100_000_000, 24, true),
        (8, 0, 100_000_000, 0, false),
        (8, MOST_TRIES, 1, MOST_TRIES, false),
        // After both timings, less is left than a copy takes.
        (8, MOST_TRIES, timings + copy, MOST_TRIES, false),
        (8, MOST_TRIES, timings + copy + 1, MOST_TRIES - 1, false),
        (300, MOST_TRIES, 100_000_000, MOST_TRIES, false),
    ] {
        let before = node.jobs.controller.clone();
        let mut controller = before.clone();
        let job = job(processes);
        let admitted = controller.admit(job.clone(), 0).unwrap();
        let first = Placed { controller, admitted, moved: None };
        let mut tries = tries;
        let mut work = Tries { steps, left: &mut tries };
        let placed = place(&before, first, &job, &node.jobs.machine, &companions, (0, &mut work));
        let found = (tries, placed.moved.is_some());
        assert_eq!(found, (left, moves), "{processes} processes, {steps} steps");
    }
}

/// The tries of a job leave the rest of the request its work, for which best effort is placed.
#[test]
fn tries_leave_work_for_best_effort() {
    let mut node = Node::slowed("work", 3.0);
    node.order(order(60_000));
    let steps = 2_000_000;
    let mut trial = node.jobs.trial_within(monotonic_ns(), Allowance::new(steps, 1));
    let candidate = Candidate {
        submission: order(60_000).submission,
        id: None,
        submitted_ns: trial.now_ns(),
        terms: None,
        kind: pbs_history::Kind::Plan,
    };
    node.jobs.take(&mut trial, candidate).unwrap();
    assert!(trial.expected().unwrap().moved.is_some());
    let left = trial.steps_left().unwrap();
    assert!((steps / 2..steps).contains(&left), "{left}");
    assert_eq!(trial.work_left(), Some(left));
}

/// Jobs of best effort are not timed, but are copied by each try. Beyond a number of tasks and of
/// dependencies, nothing is tried.
#[test]
fn jobs_that_are_copied_have_a_bound() {
    let large = |processes: u64, named: u64| {
        let wide = (0..processes).map(|id| {
            // Tasks have the numbers of their places in the text.
            let after: Vec<String> = (0..named.min(id)).map(|task| task.to_string()).collect();
            format!(
                "[[process]]\nid = {}\nmemory_bytes = 4096\ncommand = [\"sort\"]\n\
                 tasks = [{{ insns = 1000, after = [{}] }}]\n",
                id + 2,
                after.join(", ")
            )
        });
        let wide: String = wide.collect();
        format!("name = \"large\"\nbest_effort = true\ndeadline_ns = \"600s\"\n{wide}")
    };
    for (large, is_moved) in [
        (None, true),
        (Some(large(60, 0)), true),
        (Some(large(600, 0)), false),
        (Some(large(60, 59)), false),
    ] {
        let mut node = Node::slowed("copied", 3.0);
        node.order(order(60_000));
        if let Some(large) = large {
            node.order(order_of(large));
        }
        let expected = node.jobs.would_order(&order(60_000)).unwrap();
        assert_eq!(expected.moved.is_some(), is_moved);
    }
}

#[test]
#[ignore = "prints times"]
fn timings_are_measured() {
    let node = Node::slowed("measured", 1.5);
    let (slowdowns, sharing) = (slowdowns(1.5), Sharing::default());
    let companions = Companions { slowdowns: &slowdowns, sharing: &sharing, key: &companions::key };
    for cpus in [2, 16] {
        let cores: Vec<_> = (0..cpus).map(|cpu| format!("\"c{cpu}\"")).collect();
        let machine = format!(
            "[[node]]\nname = \"n\"\nmemory_bytes = 67_108_864\nrate_insns_per_s = 250_000_000\n\
             cores = [{}]\n",
            cores.join(", ")
        );
        let machine = machine_from_toml(&machine).unwrap();
        let mut controller = Controller::new(machine, Options::default(), 1, 1);
        for _ in 0..MOST_STRETCHES {
            controller.admit(job_from_toml(&text(600_000)).unwrap(), 0).unwrap();
        }
        let stretches = controller.stretches(&companions, 0);
        let (begun, look_ups) = (std::time::Instant::now(), stretches.look_ups());
        stretches.ends(&companions).unwrap();
        let took = begun.elapsed();
        println!("{cpus} CPUs, {} stretches: {took:?}, {look_ups} look-ups", stretches.count());
        let begun = std::time::Instant::now();
        let copy = controller.clone();
        println!("copy of {} tasks and processes: {:?}", copy.size(), begun.elapsed());
    }
    drop(node);
}
