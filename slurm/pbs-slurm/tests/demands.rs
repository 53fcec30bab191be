// SPDX-License-Identifier: GPL-2.0
//! Demands of jobs beside cores and memory: limits of arrays, accelerators, features and licences,
//! and jobs that Slurm would never start.

mod common;

use common::*;
use pbs_slurm::steer::{JobState, Key};
use pbs_slurm::{Demands, Gres, Per};

const GPUS: &str = "
name = 'lab'
allocate_timeout = '4s'
release_timeout = '2s'
[resource.license-matlab]
scope = 'job'
amount = 2
[[nodes]]
name = 'n01'
has = 'ncpus=2:mem=1g:gres-gpu=2'
[[nodes]]
name = 'n02'
has = 'ncpus=2:mem=1g:feature-ib=yes'
";

fn gpu_lab(name: &str) -> Lab {
    Lab::of_site(name, GPUS, &["n01", "n02"])
}

/// Submits a job of one core with such demands.
fn submit(lab: &mut Lab, number: u32, demands: Demands) -> Key {
    let key = lab.slurm.submit(number, 1, 1, 60, 20);
    lab.slurm.alter(key, |job| job.demands = demands);
    key
}

fn gpus(count: u64) -> Demands {
    let gpu = Gres { name: "gpu".into(), kind: None, count };
    Demands { gres: vec![(Per::Node, gpu)], ..Demands::default() }
}

fn starts(lab: &mut Lab, keys: &[Key]) -> Vec<u64> {
    keys.iter().map(|&key| lab.row(key).start_s.unwrap()).collect()
}

fn running(lab: &Lab, keys: &[Key]) -> usize {
    let runs = |key: &&Key| lab.state(**key) == JobState::Running;
    keys.iter().filter(runs).count()
}

/// All elements have a start from the beginning, and Slurm never has more of them than allowed.
#[test]
fn at_most_so_many_elements_of_an_array_run_at_the_same_time() {
    let mut lab = Lab::new("throttle");
    let array = lab.slurm.submit_array(1, 8, 30, 2);
    lab.seconds(2);
    let mut planned = starts(&mut lab, &array);
    planned.sort_unstable();
    planned.dedup();
    assert_eq!(planned.len(), 4, "{planned:?}");
    let other = lab.slurm.submit(2, 1, 2, 60, 10);
    let mut most = 0;
    for second in 0..60 {
        lab.seconds(1);
        most = most.max(running(&lab, &array));
        // A planner that starts anew knows the limit from its ledger.
        if second == 20 {
            lab.restart();
        }
    }
    assert_eq!(most, 2);
    // The array is not in the way of other jobs.
    assert_eq!(lab.outcome(other), "completed");
    // Its user wants more of it at the same time.
    for &key in &array {
        lab.slurm.alter(key, |job| job.demands.throttle = 3);
    }
    for _ in 0..120 {
        lab.seconds(1);
        most = most.max(running(&lab, &array));
    }
    assert_eq!(most, 3);
    for &key in &array {
        assert_eq!(lab.rows(key).pop().unwrap().outcome.unwrap(), "completed");
    }
}

/// A node with two accelerators has two jobs of one beside each other, and jobs of two one after
/// another.
#[test]
fn accelerators_are_planned_like_cores() {
    let mut lab = gpu_lab("accelerators");
    let ones = [submit(&mut lab, 1, gpus(1)), submit(&mut lab, 2, gpus(1))];
    lab.turn();
    let first = starts(&mut lab, &ones);
    assert_eq!(first[0], first[1]);
    let twos: Vec<Key> = (3..7).map(|number| submit(&mut lab, number, gpus(2))).collect();
    lab.turn();
    let mut planned = starts(&mut lab, &twos);
    planned.push(first[0]);
    planned.sort_unstable();
    // A minute, and what the site books for preparing and cleaning.
    assert!(planned.windows(2).all(|pair| pair[1] - pair[0] >= 66), "{planned:?}");
    for &key in ones.iter().chain(&twos) {
        assert_eq!(lab.row(key).nodes[0].node, "n01");
    }
    let three = submit(&mut lab, 8, gpus(3));
    let typed = Gres { name: "gpu".into(), kind: Some("a100".into()), count: 1 };
    let demands = Demands { gres: vec![(Per::Node, typed)], ..Demands::default() };
    let typed = submit(&mut lab, 9, demands);
    let spread = submit(&mut lab, 10, gpus(2));
    lab.slurm.alter(spread, |job| {
        job.demands.gres[0].0 = Per::Job;
        (job.nodes_wanted, job.max_nodes) = (2, Some(2));
    });
    lab.turn();
    for (key, why) in [
        (three, "3 gres-gpu are asked for, and there are 2"),
        (typed, "the site has no resource gres-gpu-a100"),
        (spread, "write those of each node (--gpus-per-node)"),
    ] {
        let told = &lab.slurm.told[&key];
        assert!(told.starts_with("declined: ") && told.contains(why), "{told}");
    }
}

#[test]
fn features_and_licences_are_planned() {
    let mut lab = gpu_lab("licences");
    let ib = Demands { features: vec!["ib".into()], ..Demands::default() };
    let both = Demands { features: vec!["ib".into(), "big".into()], ..Demands::default() };
    let matlab = |count| Demands { licenses: vec![("matlab".into(), count)], ..Demands::default() };
    let on = submit(&mut lab, 1, ib);
    let none = submit(&mut lab, 2, both);
    let licensed = [submit(&mut lab, 3, matlab(2)), submit(&mut lab, 4, matlab(1))];
    let many = submit(&mut lab, 5, matlab(3));
    lab.turn();
    assert_eq!(lab.row(on).nodes[0].node, "n02");
    assert!(lab.slurm.told[&none].contains("no resource feature-big"), "{}", lab.slurm.told[&none]);
    let planned = starts(&mut lab, &licensed);
    assert!(planned[1] >= planned[0] + 66, "{planned:?}");
    assert!(lab.slurm.told[&many].contains("3 license-matlab"), "{}", lab.slurm.told[&many]);
}

/// A job that Slurm would never start is committed once, and declined with Slurm's reason.
#[test]
fn a_job_that_slurm_would_never_start_is_declined_with_the_reason() {
    for at_once in [true, false] {
        let mut lab = Lab::new(if at_once { "refused-at-once" } else { "refused-later" });
        let job = lab.slurm.submit(1, 1, 1, 60, 10);
        let why = "BadConstraints";
        if at_once {
            lab.slurm.refuses.insert(job, why.into());
        } else {
            lab.slurm.alter(job, |job| job.refused = Some(why.into()));
        }
        lab.seconds(20);
        // Others end, and it is not tried again for that.
        let other = lab.slurm.submit(2, 4, 8, 60, 5);
        lab.seconds(40);
        assert_eq!(lab.outcome(other), "completed");
        assert_eq!(lab.slurm.commits.iter().filter(|(_, key, _)| *key == job).count(), 1);
        let told = &lab.slurm.told[&job];
        assert!(told.starts_with("declined: ") && told.contains(why), "{told}");
        // Its user changes it.
        lab.slurm.refuses.clear();
        lab.slurm.alter(job, |job| {
            job.refused = None;
            job.limit_s = Some(120);
        });
        lab.seconds(30);
        assert_eq!(lab.rows(job).pop().unwrap().outcome.unwrap(), "completed");
    }
}
