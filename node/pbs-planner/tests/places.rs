// SPDX-License-Identifier: GPL-2.0
//! Choice of the core for a process.

mod common;

use common::nets::machine;
use pbs_job::job_from_toml;
use pbs_planner::{reserve, Balancing, Options, Request, RunId, Store, Strategy};

/// The start of a job takes no time, so every core would do for it at any time; the
/// core that counts is the one that has time for what comes after it.
#[test]
fn a_start_without_instructions_is_no_reason_for_a_busy_core() {
    let text = "name = \"one\"\ndeadline_ns = 1_000\n[[process]]\nid = 1\n\
                memory_bytes = 1\ntasks = [900]\n";
    let job = job_from_toml(text).unwrap();
    assert!(job.tasks.iter().any(|task| task.insns == 0));
    // The local search makes a plan better that others have made.
    let own = |strategy: &Strategy| *strategy != Strategy::LocalSearch;
    for strategy in Strategy::ALL.into_iter().filter(own) {
        let options = Options { strategies: vec![strategy], ..Options::default() };
        let rate = 1_000_000_000;
        let mut store = Store::new(machine(1, &[(10, &[rate; 3])]), Balancing::Dynamic);
        for run in 0..3 {
            let request = Request::new(RunId(run), &job);
            let planned = reserve(&mut store, &request, &options);
            let planned = planned.unwrap_or_else(|refused| panic!("{strategy:?}: {refused:?}"));
            assert_eq!(planned.end_ns, 900, "{strategy:?}");
        }
        reserve(&mut store, &Request::new(RunId(3), &job), &options).unwrap_err();
    }
}
