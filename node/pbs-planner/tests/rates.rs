// SPDX-License-Identifier: GPL-2.0
//! Processes that retire fewer instructions in a second than their core, or more.

use pbs_job::{job_from_toml, machine_from_toml, Job, Machine};
use pbs_plan::Slot;
use pbs_planner::plan_building::{class_plans, Entry, ProcessIds, Settings};
use pbs_planner::{reserve, Balancing, Capacity, Options, Request, RunId, Store};

const MS: u64 = 1_000_000;

/// Two cores, of which the second is half as fast.
fn machine(cores: &str) -> Machine {
    let text = format!(
        "[[node]]\nname = \"n\"\nmemory_bytes = 1000\nrate_insns_per_s = 1_000_000_000\n\
         cores = [{cores}]\n"
    );
    machine_from_toml(&text).unwrap()
}

/// One process, of which 10 million instructions take 20 ms on the fastest core.
fn slow_job(deadline_ms: u64) -> Job {
    let text = format!(
        "name = \"slow\"\ndeadline_ns = {}\n[[process]]\nid = 1\nmemory_bytes = 10\n\
         rate_insns_per_s = 500_000_000\ncommands = [[\"a\"], [\"b\"]]\n\
         tasks = [10_000_000, 5_000_000]\n",
        deadline_ms * MS
    );
    job_from_toml(&text).unwrap()
}

fn planned(machine: Machine, capacity: Capacity, job: &Job) -> Option<Store> {
    let mut store = Store::with_capacity(machine, Balancing::Dynamic, capacity);
    let request = Request::new(RunId(1), job);
    let reserved = reserve(&mut store, &request, &Options::default());
    reserved.is_ok().then_some(store)
}

fn lengths_ms(store: &Store) -> Vec<u64> {
    let tasks = store.run(RunId(1)).unwrap().tasks.iter();
    let lengths = tasks.map(|task| (task.end_ns - task.start_ns) / MS);
    lengths.filter(|&ms| ms > 0).collect()
}

#[test]
fn tasks_take_the_time_of_their_process() {
    let job = slow_job(30);
    let store = planned(machine("\"a\""), Capacity::WHOLE, &job).unwrap();
    assert_eq!(lengths_ms(&store), [20, 10]);
    // At the core's rate they would take half of that, and less would do.
    assert!(planned(machine("\"a\""), Capacity::WHOLE, &slow_job(29)).is_none());
    let mut fast = slow_job(8);
    assert!(planned(machine("\"a\""), Capacity::WHOLE, &fast).is_none());
    fast.processes[0].rate_insns_per_s = Some(2_000_000_000);
    let store = planned(machine("\"a\""), Capacity::WHOLE, &fast).unwrap();
    assert_eq!(lengths_ms(&store), [5, 2]);
}

/// On a slower core the process is slower in proportion, and what a plan may use
/// of a core is what it may use of the process.
#[test]
fn cores_and_capacity_count_as_ever() {
    let slower = "{ name = \"b\", rate_insns_per_s = 250_000_000 }";
    let fast_is_taken = machine(&format!("\"a\", {slower}"));
    let mut store = Store::new(fast_is_taken, Balancing::Dynamic);
    let mut booking = store.book();
    booking.take_core(0, 0..u64::MAX).unwrap();
    booking.commit();
    let job = slow_job(1000);
    reserve(&mut store, &Request::new(RunId(1), &job), &Options::default()).unwrap();
    assert_eq!(lengths_ms(&store), [80, 40]);
    let half = Capacity { window_period_ns: 2, execution_ns: 1, capacity_buffer_permille: 1000 };
    let store = planned(machine("\"a\""), half, &job).unwrap();
    assert_eq!(lengths_ms(&store), [40, 20]);
}

/// The plan has the lengths in instructions of the process, and says both rates;
/// what is reserved between is idle in instructions of the core.
#[test]
fn plans_say_the_rates() {
    let job = slow_job(100);
    let capacity = Capacity { capacity_buffer_permille: 1250, ..Capacity::WHOLE };
    let two = "name = \"two\"\ndeadline_ns = 200_000_000\n[[process]]\nid = 1\nmemory_bytes = 10\n\
               command = [\"c\"]\ntasks = [1_000_000]\n";
    let other = job_from_toml(two).unwrap();
    let mut store = planned(machine("\"a\""), capacity, &job).unwrap();
    let request = Request::new(RunId(2), &other);
    reserve(&mut store, &request, &Options::default()).unwrap();
    let entry = |run, job, deadline_ns| Entry { run: RunId(run), job, progress: &[], deadline_ns };
    let entries = [entry(1, &job, 100 * MS), entry(2, &other, 200 * MS)];
    let mut ids = ProcessIds::default();
    let plans = class_plans(&store, &entries, &mut ids, &Settings::default()).unwrap();
    let plan = &plans[0].plan;
    assert_eq!(plan.cpus[0].rate_insns_per_ms, 1_000_000);
    let rates = plan.processes.iter().map(|process| process.rate_insns_per_ms);
    assert_eq!(rates.collect::<Vec<_>>(), [500_000, 0]);
    let lengths = plan.processes[0].tasks.iter().map(|task| task.planned_insns);
    assert_eq!(lengths.collect::<Vec<_>>(), [10_000_000, 5_000_000]);
    // From its end to its deadline, at 0.8 of its rate.
    let end_ns = store.run(RunId(1)).unwrap().tasks.iter().map(|task| task.end_ns);
    let left_ns = 100 * MS - end_ns.max().unwrap();
    assert_eq!(plan.processes[0].buffer_insns, left_ns * 4 / 10);
    // A quarter of its 15 million, which take as long as 30 of the core.
    let idle = plan.cpus[0].slots.iter().find_map(|slot| match *slot {
        Slot::Idle { length_insns, .. } => Some(length_insns),
        Slot::Process { .. } => None,
    });
    assert_eq!(idle, Some(7_500_000));
}
