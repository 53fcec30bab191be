// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::{Kind, TaskRun};

/// SQLite's own limit stands for a full disk: it answers the same.
#[test]
fn a_full_disk_leaves_all_as_it_was() {
    let path = std::env::temp_dir().join(format!("pbs-history-{}.db", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let mut store = Store::open(&path, Options::DEFAULT).unwrap();
    let new = NewRun {
        job: "sort",
        kind: Kind::Plan,
        submitted_unix_ns: 0,
        request: "",
        reservation: "",
        order: None,
    };
    let id = store.begin_run(&new).unwrap();
    let task = |task| TaskRun {
        task,
        name: None,
        planned_insns: 1,
        retired_insns: 1,
        peak_memory_bytes: 0,
        preemptions: 0,
        outcome: Outcome::Complete,
    };
    let process = ProcessRun {
        process: 1,
        name: None,
        fingerprint: crate::Fingerprint::default(),
        outcome: Outcome::Complete,
        ran_ns: 1,
        tasks: (0..10_000).map(task).collect(),
    };
    let processes = [process];
    let decision = crate::Decision { scheduler: "greedy".repeat(1000), tasks: 1, took_ns: 1 };
    let pages: u32 = 21;
    let limit = |store: &Store, pages| {
        let set = |row: &rusqlite::Row<'_>| row.get::<_, u32>(0);
        store.connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], set).unwrap()
    };
    assert_eq!(limit(&store, pages), pages);
    let full = store.finish_run(id, 1, Outcome::Complete, &processes);
    assert_eq!(full, Err(Error::Full(path.clone())));
    let full = store.record_decisions(&vec![decision.clone(); 10_000]);
    assert_eq!(full, Err(Error::Full(path.clone())));
    assert_eq!(store.decisions().unwrap(), []);
    assert_eq!(store.run(id).unwrap().state, State::Planned);
    assert!(store.takeover(id).unwrap().is_some());
    // Room was made.
    limit(&store, 1_000_000);
    store.record_decisions(&[decision]).unwrap();
    assert_eq!(store.decisions().unwrap().len(), 1);
    store.finish_run(id, 1, Outcome::Complete, &processes).unwrap();
    assert_eq!(store.figures("sort").unwrap()[0].processes, processes);
    drop(store);
    std::fs::remove_file(&path).unwrap();
}

/// A request and the order that belongs to it change together, or neither does.
#[test]
fn a_request_changes_with_its_order_or_not_at_all() {
    let path = std::env::temp_dir().join(format!("pbs-replaced-{}.db", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let mut store = Store::open(&path, Options::DEFAULT).unwrap();
    let order = |text: &str| Order { uid: 1000, text: text.into() };
    let before = order("before");
    let new = NewRun {
        job: "sort",
        kind: Kind::Plan,
        submitted_unix_ns: 0,
        request: "first",
        reservation: "",
        order: Some(&before),
    };
    let id = store.begin_run(&new).unwrap();
    let second = Takeover { request: "second".into(), ..Takeover::default() };
    // The order is written after the request.
    let refuse = "CREATE TEMP TRIGGER refuse BEFORE INSERT ON orders \
                  BEGIN SELECT RAISE(ABORT, 'refused'); END";
    store.connection.execute_batch(refuse).unwrap();
    store.replace_order(id, &order("after"), Some(&second)).unwrap_err();
    assert_eq!(store.takeover(id).unwrap().unwrap().request, "first");
    assert_eq!(store.order(id).unwrap(), Some(before));
    store.connection.execute_batch("DROP TRIGGER refuse").unwrap();
    store.replace_order(id, &order("after"), Some(&second)).unwrap();
    assert_eq!(store.takeover(id).unwrap().unwrap().request, "second");
    assert_eq!(store.order(id).unwrap(), Some(order("after")));
    drop(store);
    std::fs::remove_file(&path).unwrap();
}
