// SPDX-License-Identifier: GPL-2.0
//! Scenes worked by hand, and what holds whatever happens.

use pbs_cluster_sim::whole::{
    compare, course, jobs, list_beside_others_s, list_s, planned, span_s, yardstick, Fate, Figures,
    Length, Nodes, Options, WholeJob, Yardstick, MOST_EXTENSION_PERMILLE,
};

const S: u64 = 1_000_000_000;

/// A process of ten tasks that is planned to take 100 s of a core, and takes so many.
fn process(real_s: u64) -> Vec<Length> {
    let task = Length { planned_insns: 10 * S, real_insns: real_s * S / 10 };
    vec![task; 10]
}

/// The planner leaves a twentieth of the time to others, and takes the node to be slower by
/// the capacity buffer of 1.111: 100 s / 0.95 * 1.111.
const DURATION_S: u64 = 117;
/// End of a job that is as long as planned and therefore does not need the buffer: 100 s / 0.95.
const OVER_S: u64 = 106;

/// A job of one core.
fn job(submit_s: u64, deadline_s: u64, real_s: u64) -> WholeJob {
    let job = WholeJob::new(1, vec![process(real_s)]).unwrap();
    assert_eq!(job.duration_s, DURATION_S);
    WholeJob { submit_s, deadline_s, ..job }
}

fn one_core() -> Options {
    Options { nodes: 1, cores: 1, ..Options::default() }
}

fn some() -> Options {
    Options { nodes: 2, cores: 4, jobs: 40, load_permille: 1300, ..Options::default() }
}

fn over(fate: &Fate) -> (u64, u64) {
    (fate.start_s.unwrap(), fate.end_s)
}

#[test]
fn counts_worked_by_hand() {
    // The second could end at 234 s; the third starts when the first has ended.
    let jobs = [job(0, 117, 100), job(0, 150, 100), job(10, 400, 100)];
    let fates = planned(&one_core(), &jobs, Nodes::Plans).unwrap();
    let figures = Figures::of("planned", &one_core(), &jobs, &fates);
    assert_eq!(over(&fates[0]), (0, OVER_S));
    assert_eq!(over(&fates[2]), (OVER_S, 2 * OVER_S));
    let counts = |of: &Figures| [of.accepted, of.declined, of.kept, of.late, of.aborted];
    assert_eq!(counts(&figures), [2, 1, 2, 0, 0]);
    assert_eq!(figures.kept_of_accepted_permille, 1000);
    assert_eq!(figures.kept_of_all_permille, 666);
    assert_eq!(figures.mean_wait_s, (OVER_S - 10) as f64 / 2.0);
    assert_eq!(figures.utilisation_permille, 1000);
    assert_eq!(figures.useful_permille, 1000);
    let fates = planned(&one_core(), &jobs, Nodes::Lists).unwrap();
    assert_eq!(over(&fates[0]), (0, 100));
    assert_eq!(over(&fates[2]), (100, 200));
    let fates = planned(&one_core(), &jobs, Nodes::ListsBesideOthers).unwrap();
    assert_eq!(over(&fates[0]), (0, 106));
    assert_eq!(over(&fates[2]), (106, 212));

    // Nobody is declined: from 0 s, 100 s and 200 s, and the second is late.
    for policy in [Yardstick::Easy, Yardstick::Fcfs] {
        let fates = yardstick(&one_core(), &jobs, policy).unwrap();
        let figures = Figures::of(policy.name(), &one_core(), &jobs, &fates);
        assert_eq!(counts(&figures), [3, 0, 2, 1, 0]);
        assert_eq!(figures.mean_wait_s, (100.0 + 190.0) / 3.0);
        assert_eq!(figures.useful_permille, 666);
    }
}

#[test]
fn what_ends_early_lets_others_start_earlier() {
    let starts_s = |real_s| {
        let jobs = [job(0, 117, real_s), job(1, 400, 100)];
        planned(&one_core(), &jobs, Nodes::Plans).unwrap()[1].start_s
    };
    assert_eq!(starts_s(100), Some(OVER_S));
    // 50 s / 0.95.
    assert_eq!(starts_s(50), Some(53));
}

#[test]
fn what_is_late_gets_more_time_where_it_is_free() {
    // 120 s / 0.95 are 127 s, of 117 s and a tenth at most.
    let jobs = [job(0, 130, 120)];
    let fate = &planned(&one_core(), &jobs, Nodes::Plans).unwrap()[0];
    assert_eq!((over(fate), fate.is_aborted), ((0, 127), false));
    assert!(fate.extensions > 0 && fate.signals > 0 && fate.replans > 0);
    assert!(fate.extended_s >= 10 && fate.extended_s <= 11, "{fate:?}");
    assert!(fate.keeps(130) && !fate.keeps(126));

    // Others have the core then.
    let jobs = [job(0, 130, 120), job(1, 240, 100)];
    let fates = planned(&one_core(), &jobs, Nodes::Plans).unwrap();
    assert_eq!((over(&fates[0]), fates[0].is_aborted), ((0, 117), true));
    assert!(fates[0].refused_extensions > 0 && fates[0].extended_s == 0);
    assert_eq!((over(&fates[1]), fates[1].is_aborted), ((117, 223), false));

    // Without a plan it ends just in time or not at all.
    let fates = planned(&one_core(), &jobs, Nodes::Lists).unwrap();
    assert_eq!((over(&fates[0]), fates[0].is_aborted), ((0, 117), true));

    // A tenth is not enough.
    let jobs = [job(0, 400, 300)];
    let fate = &planned(&one_core(), &jobs, Nodes::Plans).unwrap()[0];
    assert_eq!((over(fate), fate.is_aborted), ((0, 128), true));
}

#[test]
fn a_plan_is_on_just_its_cores() {
    let short = process(100)[..5].to_vec();
    let processes = vec![process(100), process(100), short];
    assert_eq!(span_s(3, &processes), Ok(DURATION_S));
    assert_eq!((list_s(3, &processes), list_s(2, &processes)), (100, 150));
    // 100 s / 0.95 and 150 s / 0.95.
    let beside_s = |cores| list_beside_others_s(cores, &processes);
    assert_eq!((beside_s(3), beside_s(2)), (106, 158));
    // Names of cores do not matter, but how many there are.
    let on = |cpus: &[u32]| course(cpus, &processes, DURATION_S).unwrap();
    assert_eq!(on(&[0, 1, 2]), on(&[3, 5, 7]));
    let end_s = |cpus: &[u32]| on(cpus).end_ns.unwrap().div_ceil(S);
    // Idle slots float, and none is waited for: 150 s / 0.95.
    assert_eq!((end_s(&[4, 6, 7]), end_s(&[1, 2])), (OVER_S, 158));
}

/// Four processes that are all 5 % late take their real length: no capacity buffer passes idle.
#[test]
fn lateness_uses_the_idle_slots() {
    let task = Length { planned_insns: S, real_insns: S * 1050 / 1000 };
    let processes = vec![vec![task; 25]; 4];
    assert_eq!(span_s(1, &processes), Ok(DURATION_S));
    let course = course(&[0], &processes, DURATION_S).unwrap();
    // 105 s, of 0.95 of the time.
    assert_eq!(course.end_ns.map(|end_ns| end_ns / 100_000_000), Some(1105));
    assert!(course.signals_ns.is_empty() && course.predictions.is_empty());
}

#[test]
fn the_same_seed_gives_the_same() {
    let options = Options { jobs: 12, ..some() };
    let first = compare(&options).unwrap();
    assert_eq!(first, compare(&options).unwrap());
    let other = Options { seed: 2, ..options };
    assert_ne!(first.policies, compare(&other).unwrap().policies);
}

#[test]
fn without_deviations_every_accepted_deadline_is_kept() {
    let options = Options { deviation_permille: 0, ..some() };
    let comparison = compare(&options).unwrap();
    let planned = &comparison.policies[0];
    assert_eq!(planned.kept, planned.accepted);
    assert_eq!(comparison.policies[1].kept, comparison.policies[1].accepted);
    assert!(planned.declined > 0, "not all of them fit");
    assert_eq!(planned.signals + planned.extensions + planned.aborted, 0);
    for job in jobs(&options).unwrap() {
        assert!(list_s(job.cores, &job.processes) < job.duration_s);
    }
}

#[test]
fn with_deviations_the_sums_add_up_and_nobody_overlaps() {
    let options = some();
    let jobs = jobs(&options).unwrap();
    assert!(jobs.is_sorted_by_key(|job| job.submit_s));
    let comparison = compare(&options).unwrap();
    for of in &comparison.policies {
        assert_eq!(of.accepted + of.declined, 40, "{of:?}");
        assert_eq!(of.kept + of.late + of.aborted, of.accepted, "{of:?}");
        assert!(of.useful_permille <= of.utilisation_permille, "{of:?}");
        assert!(of.utilisation_permille <= 1000, "{of:?}");
    }
    let fates = planned(&options, &jobs, Nodes::Plans).unwrap();
    let sum = |of: fn(&Fate) -> u64| fates.iter().map(of).sum::<u64>();
    let figures = &comparison.policies[0];
    assert_eq!(figures.signals, sum(|fate| fate.signals));
    assert!(figures.signals >= figures.replans && figures.replans > 0);
    assert!(figures.extensions > 0 && figures.aborted > 0);
    let started = || (jobs.iter().zip(&fates)).filter(|(_, fate)| fate.start_s.is_some());
    for (job, fate) in started() {
        let (start_s, end_s) = over(fate);
        assert!(start_s >= job.submit_s && start_s + job.duration_s <= job.deadline_s);
        let most_s = job.duration_s * MOST_EXTENSION_PERMILLE / 1000;
        assert!(fate.extended_s <= most_s, "{fate:?}");
        let allocated_s = start_s + job.duration_s + fate.extended_s;
        assert!(end_s <= allocated_s, "{fate:?}");
        assert!(!fate.is_aborted || end_s == allocated_s, "{fate:?}");
        assert_eq!(fate.cores.len(), job.cores as usize);
    }
    for (number, (_, one)) in started().enumerate() {
        for (_, other) in started().skip(number + 1) {
            let (one_s, other_s) = (over(one), over(other));
            let at_once = one_s.0 < other_s.1 && other_s.0 < one_s.1;
            let shares = one.cores.iter().any(|core| other.cores.contains(core));
            assert!(!(at_once && one.node == other.node && shares), "{one:?} {other:?}");
        }
    }
}

#[test]
fn what_is_out_of_range_is_told() {
    let error = |options| compare(&options).unwrap_err().to_string();
    let nodes = error(Options { nodes: 0, ..Options::default() });
    assert_eq!(nodes, "nodes is 0; it must be between 1 and 1000");
    let deviation = error(Options { deviation_permille: 301, ..Options::default() });
    assert!(deviation.starts_with("deviation is 301"), "{deviation}");
}
