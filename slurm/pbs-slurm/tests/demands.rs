// SPDX-License-Identifier: GPL-2.0
//! Demands of jobs beside cores and memory: limits of arrays, accelerators, features and licences,
//! and jobs that Slurm would never start.

mod common;

use common::*;
use pbs_slurm::steer::{Hold, JobState, Key};
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
has = 'ncpus=2:mem=1g:gres-gpu=2:tmp-disk=100m'
[[nodes]]
name = 'n02'
has = 'ncpus=2:mem=1g:feature-ib=yes'
";

fn gpu_lab(name: &str) -> Lab {
    let mut lab = Lab::of_site(name, GPUS, &["n01", "n02"]);
    lab.slurm.has("n01", Gres { name: "gpu".into(), kind: None, count: 2 });
    lab.slurm.licenses.insert("matlab".into(), 2);
    lab
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

/// The outcome of the last request of a job.
fn last_outcome(lab: &mut Lab, key: Key) -> String {
    lab.rows(key).pop().unwrap().outcome.unwrap()
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
        assert_eq!(last_outcome(&mut lab, key), "completed");
    }
}

/// An array of which many elements run gets a limit, and then a lower one: those that run count, and
/// no element is let go that Slurm would not start. Who follows an element waits for its end.
#[test]
fn elements_that_run_count_for_a_limit_that_comes_later() {
    let mut lab = Lab::new("later-throttle");
    // It leaves half of the cores early.
    let other = lab.slurm.submit(3, 2, 4, 60, 6);
    lab.seconds(2);
    let array = lab.slurm.submit_array(1, 12, 40, 0);
    lab.seconds(2);
    assert_eq!(running(&lab, &array), 4);
    let waits = array[11];
    let follower = lab.slurm.submit(2, 1, 1, 60, 5);
    lab.slurm.alter(follower, |job| job.after = "afterany:1_11(unfulfilled)".into());
    lab.turn();
    let id = lab.row(waits).id;
    let place = lab.row(follower).id;
    let commits = lab.slurm.commits.len();
    for most in [4, 2] {
        for &key in &array {
            lab.slurm.alter(key, |job| job.demands.throttle = most);
        }
        lab.seconds(10);
    }
    // Both are the requests that they were.
    assert_eq!((lab.row(waits).id, lab.row(follower).id), (id, place));
    assert_eq!(lab.slurm.commits.len(), commits);
    let mut most = 0;
    for _ in 0..300 {
        lab.seconds(1);
        if running(&lab, &array[..4]) == 0 {
            most = most.max(running(&lab, &array));
        }
        if lab.outcome(waits) == "completed" {
            lab.slurm.alter(follower, |job| job.after.clear());
        }
    }
    assert_eq!(most, 2);
    // Each was let go once, and started.
    assert_eq!(lab.slurm.commits.len(), 14);
    for &key in array.iter().chain([&follower, &other]) {
        assert_eq!(lab.outcome(key), "completed");
    }
}

/// Followers of a job that is changed so that it has no place are neither let go nor ended.
#[test]
fn followers_of_a_job_without_a_place_wait_for_it() {
    let mut lab = Lab::new("no-place");
    let job = lab.slurm.submit(1, 1, 1, 60, 5);
    lab.slurm.alter(job, |job| job.start_s = Some(T + 60));
    let followers: Vec<Key> = ["afterany", "afternotok", "afterok"]
        .into_iter()
        .zip(2..)
        .map(|(kind, number)| {
            let key = lab.slurm.submit(number, 1, 1, 60, 5);
            lab.slurm.alter(key, |job| job.after = format!("{kind}:1(unfulfilled)"));
            key
        })
        .collect();
    let last = lab.slurm.submit(5, 1, 1, 60, 5);
    lab.slurm.alter(last, |job| job.after = "afterany:2(unfulfilled)".into());
    lab.seconds(2);
    assert!(lab.row(followers[0]).start_s.unwrap() > T + 60);
    // More cores than a node has.
    lab.slurm.alter(job, |job| (job.cpus, job.min_cpus) = (99, 99));
    lab.seconds(20);
    assert_eq!(lab.slurm.commits, []);
    for key in followers.iter().chain([&last]) {
        let told = &lab.slurm.told[key];
        assert!(told.contains("is not planned; it is tried again when that job is"), "{told}");
    }
    lab.slurm.alter(job, |job| (job.cpus, job.min_cpus) = (1, 1));
    lab.seconds(50);
    assert_eq!(last_outcome(&mut lab, job), "completed");
    // As Slurm has it then.
    for &key in &[followers[0], followers[2]] {
        lab.slurm.alter(key, |job| job.after.clear());
    }
    lab.seconds(20);
    assert_eq!(last_outcome(&mut lab, followers[0]), "completed");
    assert_eq!(last_outcome(&mut lab, followers[2]), "completed");
}

/// A job that Slurm does not start as planned leaves its nodes to others after a few times.
#[test]
fn a_job_that_slurm_does_not_start_waits_a_while() {
    let mut lab = Lab::new("not-started");
    let job = lab.slurm.submit(1, 1, 1, 60, 5);
    lab.seconds(1);
    lab.slurm.alter(job, |job| job.after = "singleton".into());
    lab.seconds(60);
    let tried = lab.slurm.commits.iter().filter(|(_, key, _)| *key == job).count();
    assert_eq!(tried, 3);
    let told = &lab.slurm.told[&job];
    assert!(
        told.contains("(Dependency)") && told.contains("planned again from 2025-11-24T16:0"),
        "{told}"
    );
    lab.slurm.alter(job, |job| job.after.clear());
    lab.seconds(90);
    assert_eq!(last_outcome(&mut lab, job), "completed");
}

/// A reservation that can't be planned keeps nodes for others; a job that waits there is no reason to
/// try without end.
#[test]
fn a_job_in_the_way_of_an_unplanned_reservation_waits_a_while() {
    let mut lab = Lab::new("unplanned-reservation");
    lab.slurm.hidden = ["n01", "n02", "n03", "n04"].map(String::from).into();
    let job = lab.slurm.submit(1, 1, 1, 60, 5);
    lab.seconds(60);
    let tried = lab.slurm.commits.iter().filter(|(_, key, _)| *key == job).count();
    assert_eq!(tried, 3);
    let told = &lab.slurm.told[&job];
    assert!(
        told.contains("ReqNodeNotAvail") && told.contains("planned again from 2025-11-24T16:0"),
        "{told}"
    );
    lab.slurm.hidden.clear();
    lab.seconds(90);
    assert_eq!(last_outcome(&mut lab, job), "completed");
}

/// A job of which a part is not known is neither planned anew nor let go. What it was is known, and
/// what it is may be another thing.
#[test]
fn a_job_that_is_not_known_whole_waits() {
    let mut lab = Lab::new("unclear");
    let jobs = [lab.slurm.submit(1, 1, 1, 60, 5), lab.slurm.submit(2, 1, 1, 60, 5)];
    lab.slurm.alter(jobs[0], |job| job.start_s = Some(T + 20));
    lab.slurm.alter(jobs[1], |job| job.is_unclear = true);
    lab.seconds(2);
    assert!(lab.rows(jobs[1]).is_empty());
    let id = lab.row(jobs[0]).id;
    lab.slurm.alter(jobs[0], |job| job.is_unclear = true);
    lab.seconds(40);
    assert_eq!(lab.slurm.commits, []);
    // Somebody lets it go.
    lab.slurm.alter(jobs[0], |job| job.state = JobState::Pending(Hold::No));
    lab.seconds(1);
    assert_eq!(lab.state(jobs[0]), JobState::Pending(Hold::Admin));
    for key in jobs {
        lab.slurm.alter(key, |job| job.is_unclear = false);
    }
    lab.seconds(60);
    for key in jobs {
        assert_eq!(last_outcome(&mut lab, key), "completed");
    }
    assert_eq!(lab.rows(jobs[0])[0].id, id);
}

/// A job that is late for a reason that is not its own keeps its request and its turn.
#[test]
fn a_job_that_is_late_for_others_keeps_its_turn() {
    let mut lab = Lab::new("others-reason");
    let job = lab.slurm.submit(1, 1, 1, 60, 5);
    lab.slurm.is_stuck = true;
    lab.seconds(60);
    assert!(lab.slurm.commits.len() > 3);
    lab.slurm.is_stuck = false;
    lab.seconds(30);
    assert_eq!(lab.outcome(job), "completed");
}

/// A limit of an account or a QOS, which the plan does not know, delays only jobs of that user. The
/// comment of such a job has the reason, and its nodes are free for others.
#[test]
fn a_limit_of_an_account_delays_only_its_own_jobs() {
    let mut lab = Lab::new("account-limit");
    lab.slurm.most_of_user = Some(1);
    let jobs: Vec<Key> = (1..4).map(|job| lab.slurm.submit(job, 1, 2, 300, 250)).collect();
    lab.seconds(40);
    assert_eq!(running(&lab, &jobs), 1);
    for key in jobs.iter().filter(|&&key| lab.state(key) != JobState::Running) {
        let told = &lab.slurm.told[key];
        assert!(told.starts_with("waits: ") && told.contains("(QOSMaxJobsPerUserLimit)"), "{told}");
    }
    // Jobs of another user have the whole rest of the cluster at once.
    let other = lab.slurm.submit(9, 3, 6, 60, 5);
    lab.slurm.alter(other, |job| job.user = "ben".into());
    lab.seconds(10);
    assert_ne!(lab.state(other), JobState::Pending(Hold::Admin));
    lab.seconds(2000);
    for &key in jobs.iter().chain([&other]) {
        assert_eq!(last_outcome(&mut lab, key), "completed");
    }
}

/// Licences that others hold, whom the plan does not know, keep a job waiting with the reason.
#[test]
fn licences_and_accelerators_that_are_not_there_keep_jobs_waiting() {
    let mut lab = gpu_lab("missing-licence");
    lab.slurm.licenses.clear();
    let demands = Demands { licenses: vec![("matlab".into(), 1)], ..Demands::default() };
    let job = submit(&mut lab, 1, demands);
    lab.seconds(40);
    let told = &lab.slurm.told[&job];
    assert!(told.starts_with("waits: ") && told.contains("(Licenses)"), "{told}");
    lab.slurm.licenses.insert("matlab".into(), 2);
    lab.seconds(200);
    assert_eq!(last_outcome(&mut lab, job), "completed");
    // Two jobs have the two accelerators, and the third waits for one.
    let jobs: Vec<Key> = (2..5).map(|number| submit(&mut lab, number, gpus(1))).collect();
    for _ in 0..200 {
        lab.seconds(1);
        assert!(running(&lab, &jobs) <= 2);
    }
    for key in jobs {
        assert_eq!(last_outcome(&mut lab, key), "completed");
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
        (spread, "write --gpus-per-node instead"),
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

/// Disk space is planned like memory, though Slurm starts both jobs together on a node that has
/// enough for each of them.
#[test]
fn disk_space_is_planned_like_memory() {
    let mut lab = gpu_lab("disk-space");
    let tmp = |mib: u64| Demands { tmp_bytes: mib << 20, ..Demands::default() };
    let small = submit(&mut lab, 1, tmp(40));
    let other = submit(&mut lab, 2, tmp(50));
    let next = submit(&mut lab, 3, tmp(60));
    let much = submit(&mut lab, 4, tmp(101));
    lab.turn();
    let planned = starts(&mut lab, &[small, other, next]);
    assert!(planned[0] == planned[1] && planned[2] >= planned[1] + 60, "{planned:?}");
    for job in [small, other, next] {
        assert_eq!(lab.row(job).nodes[0].node, "n01");
    }
    let told = &lab.slurm.told[&much];
    assert!(told.contains("tmp-disk"), "{told}");
    lab.seconds(90);
    assert_eq!(lab.outcome(next), "completed");
}

/// A job is never planned on a node that it excludes, also if its user changes that, and is declined
/// if no other node would do.
#[test]
fn excluded_nodes_are_never_planned() {
    let mut lab = Lab::new("excluded-nodes");
    let without = |nodes: &[&str]| Demands {
        excluded: nodes.iter().map(|&node| node.into()).collect(),
        ..Demands::default()
    };
    let job = submit(&mut lab, 1, without(&["n01", "n02", "other"]));
    let wide = lab.slurm.submit(2, 3, 6, 60, 20);
    lab.slurm.alter(wide, |job| job.demands = without(&["n03"]));
    let all = ["n01", "n02", "n03", "n04"];
    let none = submit(&mut lab, 3, without(&all));
    lab.turn();
    assert_eq!(lab.row(job).nodes[0].node, "n03");
    let nodes: Vec<_> = lab.row(wide).nodes.iter().map(|part| part.node.clone()).collect();
    assert_eq!(nodes, ["n01", "n02", "n04"]);
    assert!(lab.slurm.told[&none].starts_with("declined: "), "{}", lab.slurm.told[&none]);
    // Its user needs less, and the other one more, while there is no planner.
    let late = submit(&mut lab, 4, Demands::default());
    lab.slurm.alter(late, |job| job.start_s = Some(T + 100));
    lab.seconds(2);
    let before = lab.row(late).nodes[0].node.clone();
    lab.slurm.alter(late, |job| job.demands = without(&[&before]));
    lab.slurm.alter(none, |job| job.demands = without(&all[1..]));
    lab.restart();
    lab.seconds(2);
    assert_ne!(lab.row(late).nodes[0].node, before);
    lab.seconds(140);
    for job in [job, wide, late, none] {
        assert_eq!(last_outcome(&mut lab, job), "completed");
    }
    assert_eq!(lab.slurm.job(none).unwrap().nodes, ["n01"]);
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
            lab.slurm.alter(job, |job| (job.is_refused, job.reason) = (true, why.into()));
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
            job.is_refused = false;
            job.limit_s = Some(120);
        });
        lab.seconds(30);
        assert_eq!(last_outcome(&mut lab, job), "completed");
    }
}

/// Accelerators, features, licences and times that are changed while there is no planner are those
/// that the next planner plans.
#[test]
fn demands_changed_without_a_planner_are_planned() {
    let feature = || Demands { features: vec!["ib".into()], ..Demands::default() };
    let license =
        |count| Demands { licenses: vec![("matlab".into(), count)], ..Demands::default() };
    for (name, before, after, node) in [
        ("more", Demands::default(), gpus(1), Some("n01")),
        ("feature", gpus(1), feature(), Some("n02")),
        ("less", license(2), Demands::default(), None),
        ("license", license(1), license(2), None),
        (
            "disk",
            Demands::default(),
            Demands { tmp_bytes: 1 << 20, ..Demands::default() },
            Some("n01"),
        ),
    ] {
        let mut lab = gpu_lab(&format!("demands-without-planner-{name}"));
        let first = lab.slurm.submit(1, 2, 4, 60, 58);
        lab.turn();
        lab.turn();
        let job = submit(&mut lab, 2, before);
        lab.seconds(2);
        let planned = lab.row(job).rset;
        lab.slurm.alter(job, |job| job.demands = after);
        lab.restart();
        lab.turn();
        assert_ne!(lab.row(job).rset, planned, "{name}");
        lab.seconds(90);
        assert_eq!(lab.outcome(first), "completed");
        assert_eq!(last_outcome(&mut lab, job), "completed", "{name}");
        if let Some(node) = node {
            assert_eq!(lab.slurm.job(job).unwrap().nodes, [node], "{name}");
        }
    }
}

/// Words about its time that a user changes while there is no planner are valid for the next one;
/// unchanged ones leave the plan as it is.
#[test]
fn times_changed_without_a_planner_are_planned() {
    let at = format!("pbs start={}", T + 300);
    for (before, after) in [
        ("pbs", "pbs deadline=1h late"),
        ("pbs deadline=1h", "pbs deadline=2h"),
        ("pbs deadline=1h", "pbs"),
        ("pbs", &at),
        (&at, "pbs"),
        ("pbs deadline=1h late", "pbs deadline=1h late"),
        (&at, &at),
        ("pbs", "my words"),
    ] {
        let name = format!("times-without-planner-{before}-{after}");
        let mut lab = gpu_lab(&name.replace(' ', "-"));
        lab.slurm.submit(1, 2, 4, 60, 58);
        lab.turn();
        lab.turn();
        let job = submit(&mut lab, 2, gpus(1));
        lab.slurm.alter(job, |job| job.words = before.into());
        lab.seconds(2);
        let planned = lab.row(job).when;
        lab.slurm.alter(job, |job| job.words = after.into());
        lab.restart();
        lab.turn();
        let is_other = before != after && after != "my words";
        assert_eq!(lab.row(job).when != planned, is_other, "{before}, {after}");
        assert!(lab.steer.news().is_empty());
    }
}
