// SPDX-License-Identifier: GPL-2.0
//! Measurements beside the runs of jobs.

use std::fs;
use std::path::Path;
use std::time::Duration;

use pbs_history::{
    Corun, Decision, Error, Fingerprint, Options, Outcome, RunEnd, Store, Transfer, VariantKey,
    VariantRun,
};
use pbs_interference::{Beside, Key, Level, Neighbour, Sample};
use rusqlite::Connection;

use crate::common::{begin, process, scratch, task};

fn variant(model: &str, threads: u32) -> VariantKey {
    VariantKey {
        job: "particles".into(),
        task: "filter".into(),
        fingerprint: Fingerprint::of(["filter"]),
        model: model.into(),
        threads,
        device: if threads == 0 { "gpu" } else { "" }.into(),
    }
}

fn ran(variant: VariantKey, ran_ns: u64) -> VariantRun {
    VariantRun { variant, ran_ns, insns: 2 * (ran_ns % 1_000_000) }
}

fn transfer(to: &str, bytes: u64) -> Transfer {
    Transfer { from: "host".into(), to: to.into(), bytes, took_ns: 1000 + bytes / 4 }
}

fn decision(scheduler: &str, tasks: u64) -> Decision {
    Decision { scheduler: scheduler.into(), tasks, took_ns: 50 * tasks + 7 }
}

fn corun(victim: u64, task: u32, ran_ns: u64) -> Corun {
    let by = Neighbour { level: Level::Llc, key: Key { fingerprint: 9, task: 4, variant: 1 } };
    let beside = |neighbours, duration_ns| Beside { neighbours, duration_ns };
    Corun {
        sample: Sample {
            victim: Key { fingerprint: victim, task, variant: 0 },
            insns: 3 * ran_ns,
            ran_ns,
            beside: vec![beside(vec![], ran_ns / 4), beside(vec![by], ran_ns - ran_ns / 4)],
        },
        by_clock: false,
    }
}

/// A file with some of each.
pub(crate) fn fill(path: &Path) {
    let mut store = Store::open(path, Options::DEFAULT).unwrap();
    let runs = [ran(variant("omp", 4), 100), ran(variant("cuda", 0), 20)];
    store.record_variant_runs(&runs).unwrap();
    store.record_transfers(&[transfer("gpu", 64)]).unwrap();
    store.record_decisions(&[decision("greedy", 5)]).unwrap();
    let coruns = [corun(u64::MAX, 1, 800), corun(1, 1, 400)];
    store.record_coruns(&coruns).unwrap();
}

/// All that there is of it.
pub(crate) fn read(store: &Store) -> Result<String, Error> {
    let variants = (store.variant_runs()?, store.variants(None)?);
    let rest = (store.transfers()?, store.decisions()?, store.coruns()?);
    Ok(format!("{variants:?} {rest:?}"))
}

#[test]
fn recorded_measurements_are_found_by_their_key() {
    let path = scratch("measured").join("history.db");
    fill(&path);
    let mut store = Store::open(&path, Options::DEFAULT).unwrap();
    assert_eq!(store.coruns().unwrap()[1], corun(1, 1, 400));
    // Those with all 64 bits are no other.
    assert_eq!(store.coruns().unwrap()[0].sample.victim.fingerprint, u64::MAX);
    let told = store.variants(Some("particles")).unwrap();
    let of: Vec<_> = told
        .iter()
        .map(|(key, told)| (key.model.as_str(), told.ran_ns, told.insns, told.runs))
        .collect();
    assert_eq!(of, [("cuda", 20, Some(40), 1), ("omp", 100, Some(200), 1)]);
    assert_eq!(store.variants(Some("others")).unwrap(), []);
    // Other threads are another variant; the same again is not.
    let more = [ran(variant("omp", 2), 180), ran(variant("omp", 4), 110)];
    store.record_variant_runs(&more).unwrap();
    let told = store.variants(None).unwrap();
    let of: Vec<_> = told.iter().map(|(key, told)| (key.threads, told.runs, told.ran_ns)).collect();
    assert_eq!((of[0], of[1]), ((0, 1, 20), (2, 1, 180)));
    assert_eq!((of[2].0, of[2].1), (4, 2));
    assert!((101..110).contains(&of[2].2), "{of:?}");

    let cost = store.transfer_cost("host", "gpu").unwrap().unwrap();
    assert_eq!((cost.ns(64), cost.samples), (1016, 1));
    assert_eq!(store.transfer_cost("gpu", "host").unwrap(), None);
    let more = [20, 300, 4000].map(|tasks| decision("greedy", tasks));
    store.record_decisions(&more).unwrap();
    let cost = store.decision_cost("greedy").unwrap().unwrap();
    assert!(cost.ns(1000).abs_diff(50_007) <= 1, "{cost:?}");
    assert_eq!(store.decision_cost("random").unwrap(), None);
}

#[test]
fn the_last_measurements_of_each_key_are_kept() {
    let path = scratch("measured-prune").join("history.db");
    let options = Options { keep_samples: 3, ..Options::DEFAULT };
    let mut store = Store::open(&path, options).unwrap();
    fill(&path);
    let mut sizes = Vec::new();
    for round in 1..=8 {
        let runs = [ran(variant("omp", 4), round), ran(variant("omp", 8), round)];
        store.record_variant_runs(&runs).unwrap();
        // Small ones do not push out what is known of large ones.
        let sizes_of = [transfer("gpu", round % 2), transfer("gpu", 1 << 20)];
        store.record_transfers(&sizes_of).unwrap();
        store.record_decisions(&[decision("greedy", 5)]).unwrap();
        let coruns = [corun(1, 1, round * 100), corun(1, 2, round)];
        store.record_coruns(&coruns).unwrap();
        sizes.push(path.metadata().unwrap().len());
    }
    let runs = store.variant_runs().unwrap();
    let runs: Vec<_> = runs.iter().map(|run| (run.variant.threads, run.ran_ns)).collect();
    let kept = [(0, 20), (4, 6), (4, 7), (4, 8), (8, 6), (8, 7), (8, 8)];
    assert_eq!(runs, kept);
    let transfers = store.transfers().unwrap();
    let transfers: Vec<_> = transfers.iter().map(|transfer| transfer.bytes).collect();
    let large = [1 << 20; 3];
    assert_eq!(transfers[..7], [0, 0, 0, 1, 1, 1, 64]);
    assert_eq!(transfers[7..], large);
    assert_eq!(store.decisions().unwrap().len(), 3);
    let coruns = store.coruns().unwrap();
    let coruns: Vec<_> =
        coruns.iter().map(|it| (it.sample.victim.task, it.sample.ran_ns)).collect();
    let kept = [(1, 800), (1, 600), (1, 700), (1, 800), (2, 6), (2, 7), (2, 8)];
    assert_eq!(coruns, kept);
    assert_eq!(sizes[7], sizes[4], "{sizes:?}");
}

#[test]
fn a_run_is_stored_with_its_co_runners() {
    let path = scratch("measured-run").join("history.db");
    let mut store = Store::open(&path, Options::DEFAULT).unwrap();
    let id = begin(&mut store, "sort");
    let figures = [process(1, vec![task(0, 1, 1)])];
    let mut coruns = [corun(1, 1, 400), corun(1, 2, 400)];
    coruns[1].sample.insns = u64::MAX;
    let end = RunEnd { figures: &figures, ..RunEnd::new(9, Outcome::Complete) };
    let done = store.end_run(id, &RunEnd { coruns: &coruns, ..end });
    assert!(matches!(done, Err(Error::TooLarge(_))), "{done:?}");
    assert_eq!(store.coruns().unwrap(), []);
    coruns[1].sample.insns = 5;
    store.end_run(id, &RunEnd { coruns: &coruns, ..end }).unwrap();
    assert_eq!(store.coruns().unwrap(), coruns);
    // A run that is over is not recorded once more, nor is what belongs to it.
    let again = store.end_run(id, &RunEnd { coruns: &coruns, ..end });
    assert!(matches!(again, Err(Error::WrongState(..))), "{again:?}");
    assert_eq!(store.coruns().unwrap().len(), 2);
}

#[test]
fn figures_that_are_too_large_are_refused() {
    let path = scratch("measured-large").join("history.db");
    let mut store = Store::open(&path, Options::DEFAULT).unwrap();
    let runs = [ran(variant("omp", 4), 5), ran(variant("omp", 4), 1 << 63)];
    let endless = Decision { took_ns: 1 << 63, ..decision("greedy", 5) };
    let refused = [
        store.record_variant_runs(&runs),
        store.record_transfers(&[transfer("gpu", u64::MAX)]),
        store.record_decisions(&[decision("greedy", 5), endless]),
        store.record_coruns(&[Corun {
            sample: Sample { ran_ns: u64::MAX, ..Sample::default() },
            by_clock: true,
        }]),
    ];
    for refused in refused {
        assert!(matches!(refused, Err(Error::TooLarge(_))), "{refused:?}");
    }
    // Nothing of them is there.
    let empty = Store::open(&scratch("measured-none").join("history.db"), Options::DEFAULT);
    assert_eq!(read(&store).unwrap(), read(&empty.unwrap()).unwrap());
}

/// A reader sees the earlier state while another process writes.
#[test]
fn others_look_while_one_writes() {
    let path = scratch("measured-busy").join("history.db");
    fill(&path);
    let options = Options { wait: Duration::ZERO, ..Options::DEFAULT };
    let mut store = Store::open(&path, options).unwrap();
    let before = read(&store).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE; DELETE FROM corun; DELETE FROM cost").unwrap();
    assert_eq!(read(&store).unwrap(), before);
    let looking = Store::open_read_only(&path, options).unwrap();
    assert_eq!(read(&looking).unwrap(), before);
    let busy = store.record_coruns(&[corun(1, 1, 4)]);
    assert_eq!(busy, Err(Error::Busy(path.clone())));
    other.execute_batch("ROLLBACK").unwrap();
    store.record_coruns(&[corun(1, 1, 4)]).unwrap();
    assert_ne!(read(&looking).unwrap(), before);
}

#[test]
fn rows_that_were_changed_are_damage() {
    for sql in [
        "UPDATE variant_run SET ran_ns = 5 WHERE threads = 4",
        "UPDATE variant_run SET insns = 5 WHERE threads = 4",
        "UPDATE variant_run SET model = 'ocl' WHERE threads = 4",
        "UPDATE variant_run SET threads = 5 WHERE threads = 4",
        "UPDATE variant_run SET threads = -4 WHERE threads = 4",
        "UPDATE variant_run SET number = 7 WHERE threads = 4",
        "UPDATE variant_run SET digest = digest + 1",
        "UPDATE transfer SET took_ns = 5",
        "UPDATE transfer SET target = 'gpu1'",
        "UPDATE transfer SET bytes = -1",
        "UPDATE cost SET tasks = 6",
        "UPDATE cost SET scheduler = 'random'",
        "UPDATE corun SET insns = 5 WHERE fingerprint = 1",
        "UPDATE corun SET ran_ns = 5 WHERE fingerprint = 1",
        "UPDATE corun SET fingerprint = 2 WHERE fingerprint = 1",
        "UPDATE corun SET variant = 1 WHERE fingerprint = 1",
        "UPDATE corun SET by_clock = 1 WHERE fingerprint = 1",
        "UPDATE corun SET by_clock = 2 WHERE fingerprint = 1",
        "UPDATE corun SET beside = zeroblob(24) WHERE fingerprint = 1",
        "UPDATE corun SET beside = substr(beside, 1, 20) WHERE fingerprint = 1",
        "UPDATE corun SET beside = x'' WHERE fingerprint = 1",
    ] {
        let path = scratch("measured-changed").join("history.db");
        fill(&path);
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let before = fs::read(&path).unwrap();
        let store = Store::open_read_only(&path, Options::DEFAULT).unwrap();
        let error = read(&store).unwrap_err();
        assert!(matches!(error, Error::Damaged(..)), "{sql}: {error}");
        assert!(error.to_string().contains("damaged"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}
