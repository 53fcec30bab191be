// SPDX-License-Identifier: GPL-2.0
//! A run from its beginning to where it is forgotten.

use pbs_history::{
    to_csv, EndedLimits, Error, Fingerprint, InForce, Kind, Last, NewRun, Options, Order, Outcome,
    ProcessRun, RunEnd, RunId, RunUsage, State, Store, Takeover, TaskRun,
};

use crate::common::{begin, fingerprint, process, record, scratch, task};

fn store(name: &str) -> Store {
    let file = scratch(name).join("history.db");
    Store::open(&file, Options::DEFAULT).unwrap()
}

#[test]
fn a_run_is_planned_runs_and_is_over() {
    let path = scratch("life").join("history.db");
    let mut store = Store::open(&path, Options::DEFAULT).unwrap();
    let id = store
        .begin_run(&NewRun {
            job: "sort",
            kind: Kind::Profile,
            submitted_unix_ns: 5,
            request: "name = \"sort\"",
            reservation: "",
            order: None,
        })
        .unwrap();
    let run = store.run(id).unwrap();
    assert_eq!((run.kind, run.state), (Kind::Profile, State::Planned));
    assert_eq!((run.ended_unix_ns, run.outcome), (None, None));

    let takeover = Takeover {
        request: "name = \"sort\"".into(),
        reservation: "core 0 from 7".into(),
        boot_id: "b".into(),
        first_seq: 100,
    };
    store.update_run(id, State::Running, &takeover, &[]).unwrap();
    let later = Takeover { reservation: "core 0 from 9".into(), ..takeover };
    let so_far = [process(3, vec![task(1, 10, 4)])];
    let in_force = InForce {
        plan: "plan_id = 12".into(),
        plan_id: u64::MAX,
        boot_id: "b".into(),
        next_seq: 200,
    };
    assert_eq!(store.in_force().unwrap(), None);
    let run = (id, State::Running, Some(&later), &so_far[..]);
    store.update_runs(&[run], Some(&in_force)).unwrap();
    // Who has nothing new to say of a take-over keeps what is there.
    store.update_runs(&[(id, State::Running, None, &so_far[..])], None).unwrap();
    drop(store);

    // Another planner takes over.
    let mut store = Store::open(&path, Options::DEFAULT).unwrap();
    assert_eq!(store.run(id).unwrap().state, State::Running);
    let found = store.takeover(id).unwrap().unwrap();
    assert_eq!(found, later);
    assert_eq!(store.in_force().unwrap(), Some(in_force));
    assert_eq!(store.figures_of(id).unwrap().processes, so_far);
    assert_eq!(store.figures("sort").unwrap(), []);

    let processes = [
        ProcessRun {
            process: 3,
            name: Some("größer, als".into()),
            fingerprint: fingerprint(),
            outcome: Outcome::Killed,
            ran_ns: 123_456_789,
            tasks: vec![
                TaskRun { name: Some("read".into()), preemptions: 4, ..task(1, 10, 12) },
                TaskRun { outcome: Outcome::Killed, ..task(2, 20, 7) },
            ],
        },
        process(9, vec![task(0, 1 << 48, i64::MAX as u64)]),
    ];
    store.finish_run(id, 8, Outcome::Killed, &processes).unwrap();
    let figures = store.figures("sort").unwrap();
    assert_eq!(figures.len(), 1);
    assert_eq!(figures[0].processes, processes);
    assert_eq!(figures[0].run.state, State::Over);
    assert_eq!(figures[0].run.ended_unix_ns, Some(8));
    assert_eq!(figures[0].run.outcome, Some(Outcome::Killed));
    assert_eq!(store.takeover(id).unwrap(), None);

    let csv = to_csv(&figures);
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(lines.len(), 4);
    let print = fingerprint();
    assert_eq!(
        lines[1],
        format!(
            "sort,{id},profile,5,8,killed,3,\"größer, als\",{print},killed,1,read,10,12,\
             1048576,4,complete"
        )
    );
    assert!(lines.iter().all(|line| line.matches(',').count() >= 16));
    let json = serde_json::to_value(&figures).unwrap();
    assert_eq!(json[0]["run"]["kind"], "profile");
    assert_eq!(json[0]["processes"][0]["tasks"][0]["retired_insns"], 12);
    assert_eq!(json[0]["processes"][0]["fingerprint"], print.to_string());
}

#[test]
fn what_is_over_stays_as_it_is() {
    let mut store = store("over");
    let id = record(&mut store, "sort", &[process(1, vec![task(0, 5, 6)])]);
    let over = Error::WrongState(id, State::Over);
    let again = store.finish_run(id, 9, Outcome::Complete, &[]);
    assert_eq!(again, Err(over.clone()));
    let takeover = Takeover::default();
    assert_eq!(store.update_run(id, State::Running, &takeover, &[]), Err(over));
    let none = RunId(u64::MAX);
    assert_eq!(store.run(none), Err(Error::NoRun(none)));
    assert_eq!(store.finish_run(none, 9, Outcome::Complete, &[]), Err(Error::NoRun(none)));
    let id = begin(&mut store, "sort");
    store.update_run(id, State::Running, &takeover, &[]).unwrap();
    assert_eq!(
        store.update_run(id, State::Planned, &takeover, &[]),
        Err(Error::WrongState(id, State::Running))
    );
}

#[test]
fn a_run_is_there_whole_or_not_at_all() {
    let mut store = store("whole");
    let id = begin(&mut store, "sort");
    let before = store.takeover(id).unwrap();
    let good = process(1, vec![task(0, 5, 6)]);
    for (bad, error) in [
        (
            process(2, vec![task(0, 5, 1 << 63)]),
            Error::TooLarge("retired_insns of task 0 of process 2 (9223372036854775808)".into()),
        ),
        (
            process(2, vec![task(4, 5, 6), task(4, 5, 6)]),
            Error::Twice("task 4 of process 2".into()),
        ),
        (good.clone(), Error::Twice("process 1".into())),
    ] {
        let failed = store.finish_run(id, 9, Outcome::Complete, &[good.clone(), bad]);
        assert_eq!(failed, Err(error));
        assert_eq!(store.run(id).unwrap().state, State::Planned);
        assert_eq!(store.takeover(id).unwrap(), before);
        assert_eq!(store.figures("sort").unwrap(), []);
    }
    store.finish_run(id, 9, Outcome::Complete, &[good]).unwrap();
    assert_eq!(store.figures("sort").unwrap().len(), 1);
}

#[test]
fn the_oldest_runs_of_a_job_are_forgotten() {
    let path = scratch("prune").join("history.db");
    let options = Options { keep_runs: 3, ..Options::DEFAULT };
    let mut store = Store::open(&path, options).unwrap();
    let other = record(&mut store, "other", &[process(1, vec![task(0, 1, 1)])]);
    let open = begin(&mut store, "sort");
    let tasks: Vec<_> = (0..500).map(|number| task(number, 5, 6)).collect();
    let mut ids = Vec::new();
    let mut sizes = Vec::new();
    for _ in 0..40 {
        ids.push(record(&mut store, "sort", &[process(1, tasks.clone())]));
        sizes.push(path.metadata().unwrap().len());
    }
    let kept: Vec<_> = store.figures("sort").unwrap();
    let kept: Vec<_> = kept.iter().map(|figures| figures.run.id).collect();
    assert_eq!(kept, ids[37..]);
    assert!(kept.iter().all(|id| *id > other));
    // Neither those of others nor those that are not over.
    assert_eq!(store.figures("other").unwrap().len(), 1);
    assert_eq!(store.run(open).unwrap().state, State::Planned);
    assert_eq!(store.run(ids[0]), Err(Error::NoRun(ids[0])));
    assert_eq!(sizes[39], sizes[5], "{sizes:?}");

    let jobs = store.jobs().unwrap();
    let jobs: Vec<_> =
        jobs.iter().map(|job| (job.job.as_str(), job.runs, job.complete, job.open)).collect();
    assert_eq!(jobs, [("other", 1, 1, 0), ("sort", 3, 3, 1)]);
}

/// A program that cannot be started, and is tried again and again, pushes out no run in which a task
/// has ended, and has no more runs than others itself.
#[test]
fn runs_without_figures_push_no_others_out() {
    let path = scratch("apart").join("history.db");
    let options = Options { keep_runs: 3, ..Options::DEFAULT };
    let mut store = Store::open(&path, options).unwrap();
    let mut cut = task(0, 5, 6);
    (cut.outcome, cut.name) = (Outcome::Killed, Some("first".into()));
    let partly = [process(1, vec![cut.clone(), task(1, 5, 6)])];
    let mut kept: Vec<_> = (0..3).map(|_| record(&mut store, "sort", &partly)).collect();
    let nothing = [process(1, vec![cut])];
    let mut others = Vec::new();
    for _ in 0..5 {
        others.push(record(&mut store, "sort", &[]));
        others.push(record(&mut store, "sort", &nothing));
    }
    kept.extend(&others[7..]);
    let ids = |store: &Store| {
        let figures = store.figures("sort").unwrap();
        figures.iter().map(|figures| figures.run.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(&store), kept);
    kept.remove(0);
    kept.push(record(&mut store, "sort", &partly));
    assert_eq!(ids(&store), kept);
}

/// Runs of other programs under the same name are not read.
#[test]
fn only_the_history_of_the_same_programs_is_read() {
    let path = scratch("programs").join("history.db");
    let mut store = Store::open(&path, Options::DEFAULT).unwrap();
    let usage = RunUsage {
        group_cpu_ns: Some(9_000_000_000),
        programs_cpu_ns: Some(1),
        group_peak_bytes: Some(7 << 20),
    };
    let other = Fingerprint::of(["other"]);
    let elsewhere = ProcessRun { fingerprint: other, ..process(2, vec![task(0, 5, 6)]) };
    let figures = [process(1, vec![task(0, 5, 6), task(1, 5, 6)]), elsewhere];
    let id = begin(&mut store, "sort");
    let end = RunEnd { figures: &figures, usage, ..RunEnd::new(2_000, Outcome::Complete) };
    store.end_run(id, &end).unwrap();
    let own = [(1, fingerprint())];
    let both = [own[0], (2, other)];
    let known = |store: &Store, of: &[_]| {
        let history = store.history_for("sort", None, of).unwrap();
        let tasks: Vec<_> = history.tasks().map(|key| (key.process, key.task)).collect();
        (tasks, history.samples(), history.runs())
    };
    assert_eq!(known(&store, &both), (vec![(1, 0), (1, 1), (2, 0)], 3, 1));
    let whole = store.history("sort").unwrap().group_memory_bytes(both.into_iter());
    let of_both = store.history_for("sort", None, &both).unwrap();
    assert_eq!(of_both.group_memory_bytes(both.into_iter()), whole);
    assert_eq!(known(&store, &own), (vec![(1, 0), (1, 1)], 2, 1));
    assert_eq!(known(&store, &[(1, other)]), (Vec::new(), 0, 1));
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch("UPDATE process SET tasks = x'00' WHERE process = 2").unwrap();
    assert!(store.history("sort").is_err());
    assert_eq!(known(&store, &own).1, 2);
}

/// Environments of jobs are for the user of the service alone, whoever makes the file.
#[test]
fn a_new_file_is_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let path = scratch("mode").join("history.db");
    let mut store = Store::open(&path, Options::DEFAULT).unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    record(&mut store, "sort", &[]);
    // One that is there has the mode that it was given.
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
    drop(store);
    Store::open(&path, Options::DEFAULT).unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn numbers_out_of_range_are_refused() {
    let path = scratch("options").join("history.db");
    let options = Options { keep_runs: 0, ..Options::DEFAULT };
    let error = Store::open(&path, options).unwrap_err();
    assert_eq!(error, Error::Config("keep_runs", 1, 10_000));
    assert!(!path.exists());
}

/// Several come in together or not at all, each with who wants it; that stays when it is
/// over, and can be said anew.
#[test]
fn orders_come_with_their_runs() {
    let path = scratch("orders").join("history.db");
    let mut store = Store::open(&path, Options::DEFAULT).unwrap();
    let order = |uid, text: &str| Order { uid, text: text.into() };
    let (first, second) = (order(7, "held"), order(u32::MAX, "after 1"));
    let new = |order, submitted_unix_ns| NewRun {
        job: "sort",
        kind: Kind::Plan,
        submitted_unix_ns,
        request: "sort",
        reservation: "",
        order: Some(order),
    };
    let too_late = [new(&first, 5), new(&second, u64::MAX)];
    assert!(store.begin_runs(&too_late).is_err());
    assert_eq!(store.runs(None).unwrap(), []);

    let ids = store.begin_runs(&[new(&first, 5), new(&second, 6)]).unwrap();
    let open = |store: &Store| {
        let runs = store.open_runs().unwrap().into_iter();
        runs.map(|run| run.id).collect::<Vec<_>>()
    };
    let last = |store: &Store, count| {
        let runs = store.last_runs(&Last { count, ..Last::default() }).unwrap().into_iter();
        runs.map(|run| run.id).collect::<Vec<_>>()
    };
    assert_eq!(open(&store), ids);
    assert_eq!(last(&store, 9), []);
    store.finish_run(ids[0], 9, Outcome::Cancelled, &[]).unwrap();
    assert_eq!(open(&store), ids[1..]);
    store.set_order(ids[0], &order(7, "by user 0")).unwrap();
    store.finish_run(ids[1], 9, Outcome::Failed, &[]).unwrap();
    assert_eq!(last(&store, 9), ids);
    assert_eq!(last(&store, 1), ids[1..]);
    // The last ones of a job and of a user, however many others have ended since.
    let of = |job, uid| {
        let runs = store.last_runs(&Last { count: 1, job, uid }).unwrap().into_iter();
        runs.map(|run| run.id).collect::<Vec<_>>()
    };
    assert_eq!(of(None, Some(7)), ids[..1]);
    assert_eq!(of(Some("sort"), Some(7)), ids[..1]);
    assert_eq!(of(Some("sort"), None), ids[1..]);
    assert_eq!((of(Some("other"), None), of(None, Some(8))), (Vec::new(), Vec::new()));
    assert_eq!(store.order(ids[0]).unwrap(), Some(order(7, "by user 0")));
    assert_eq!(store.order(ids[1]).unwrap(), Some(second));
    assert_eq!(store.order(RunId(77)).unwrap(), None);
    let unknown = store.set_order(RunId(77), &first).unwrap_err();
    assert_eq!(unknown, Error::NoRun(RunId(77)));
}

/// A user who ends many runs, or large ones, loses the oldest of his own, and nobody else loses
/// any. Runs that are too old go, whosever they are. Runs that nobody has ordered stay.
#[test]
fn each_user_has_a_share_of_what_is_over() {
    let path = scratch("ended").join("history.db");
    let ended =
        EndedLimits { user_runs: 10, user_bytes: 100_000, all_bytes: 1_000_000, age_ns: 1000 };
    let options = Options { ended, ..Options::DEFAULT };
    let mut store = Store::open(&path, options).unwrap();
    let mut number = 0;
    let mut end = |store: &mut Store, uid: Option<u32>, bytes: usize, ended_unix_ns| {
        number += 1;
        let order = uid.map(|uid| Order { uid, text: "x".repeat(bytes) });
        let new = NewRun {
            // No two have the same name.
            job: &format!("job {number}"),
            kind: Kind::Plan,
            submitted_unix_ns: 0,
            request: "",
            reservation: "",
            order: order.as_ref(),
        };
        let id = store.begin_run(&new).unwrap();
        store.finish_run(id, ended_unix_ns, Outcome::Cancelled, &[]).unwrap();
        id
    };
    let left = |store: &Store| -> Vec<RunId> {
        store.runs(None).unwrap().into_iter().map(|run| run.id).collect()
    };
    let quiet = [end(&mut store, Some(1), 10, 5000), end(&mut store, None, 0, 5000)];
    // Root's have no number, and nobody's have no age.
    let of_root: Vec<_> = (0..50).map(|_| end(&mut store, Some(0), 10_000, 5000)).collect();
    let many: Vec<_> = (0..50).map(|_| end(&mut store, Some(2), 10, 5000)).collect();
    let large: Vec<_> = (0..5).map(|_| end(&mut store, Some(3), 40_000, 5000)).collect();
    assert_eq!(store.forget(5500, |uid| uid).unwrap(), 40 + 3);
    let mut kept = [&quiet[..], &of_root, &many[40..], &large[3..]].concat();
    kept.sort();
    assert_eq!(left(&store), kept);
    // A row that is larger than all that the user may have is forgotten itself.
    end(&mut store, Some(3), 200_000, 5000);
    assert_eq!(store.forget(5500, |uid| uid).unwrap(), 3);
    // Somebody with many user ids has no more than all users together.
    let subordinate: Vec<_> =
        (100..150).map(|uid| end(&mut store, Some(uid), 90_000, 5000)).collect();
    assert_eq!(store.forget(5500, |uid| uid).unwrap(), 1 + 10 + 39);
    let newest = [&of_root[..], &subordinate[39..]].concat();
    assert_eq!(left(&store).into_iter().filter(|id| *id != quiet[1]).collect::<Vec<_>>(), newest);
    // Runs of subordinate users count to the user whose they are.
    let many: Vec<_> = (300..320).map(|uid| end(&mut store, Some(uid), 10, 5000)).collect();
    let account_of = |uid| if (300..400).contains(&uid) { 9 } else { uid };
    assert_eq!(store.forget(5500, |uid| uid).unwrap(), 0);
    assert_eq!(store.forget(5500, account_of).unwrap(), 10);
    let is_many = |id: &RunId| many.contains(id);
    assert_eq!(left(&store).into_iter().filter(is_many).collect::<Vec<_>>(), many[10..]);
    // A clock that is ahead has all of them forgotten at once, and nothing tells it from a long time
    // but a run that ended since.
    assert!(!store.is_out_of_date(6000).unwrap() && store.is_out_of_date(6001).unwrap());
    assert_eq!(store.forget(6001, |uid| uid).unwrap(), 0);
    let last = end(&mut store, Some(4), 10, 6001);
    assert!(!store.is_out_of_date(6001).unwrap());
    // In time, all that was ordered goes.
    assert_eq!(store.forget(6001, |uid| uid).unwrap(), 50 + 11 + 10);
    assert_eq!(left(&store), [quiet[1], last]);

    // It is time to do so after some runs, or after many bytes.
    assert!(!store.is_to_forget());
    for _ in 0..256 {
        end(&mut store, Some(2), 10, 7000);
    }
    assert!(store.is_to_forget());
    assert_eq!(store.forget(7000, |uid| uid).unwrap(), 246);
    assert!(!store.is_to_forget());
    for _ in 0..2 {
        end(&mut store, Some(2), 8 << 20, 7000);
    }
    assert!(store.is_to_forget());
}

/// A run that goes on or waits, with a damaged row in any table, is over with an unknown outcome, and
/// what is damaged is told. The others are as they were. A damaged run would otherwise make the whole
/// file unreadable for who has to take over the others.
#[test]
fn damaged_open_runs_are_set_aside() {
    let directory = scratch("aside");
    let path = directory.join("history.db");
    let mut store = Store::open(&path, Options::DEFAULT).unwrap();
    let order = Order { uid: 7, text: "held".into() };
    let new = |job| NewRun {
        job,
        kind: Kind::Plan,
        submitted_unix_ns: 5,
        request: "sort",
        reservation: "",
        order: Some(&order),
    };
    let jobs = ["whole", "run", "takeover", "order", "last"];
    let ids = store.begin_runs(&jobs.map(new)).unwrap();
    assert_eq!(store.set_damaged_aside(9).unwrap(), []);
    let raw = rusqlite::Connection::open(&path).unwrap();
    let damage = |table: &str, column: &str, change: &str, id: RunId, key: &str| {
        let sql = format!("UPDATE {table} SET {column} = {change} WHERE {key} = {}", id.0);
        assert_eq!(raw.execute(&sql, []).unwrap(), 1);
    };
    damage("run", "state", "'gone'", ids[1], "id");
    damage("takeover", "request", "'other'", ids[2], "run");
    damage("orders", "uid", "0", ids[3], "run");
    assert!(matches!(store.open_runs(), Err(Error::Damaged(..))));
    let aside = store.set_damaged_aside(9).unwrap();
    assert_eq!(aside.iter().map(|(id, _)| *id).collect::<Vec<_>>(), ids[1..4]);
    let told = |at: usize| aside[at].1.contains("which means nothing");
    assert!(told(0) && !told(1) && aside[1].1.contains("values that were changed"), "{aside:?}");
    let open = store.open_runs().unwrap();
    assert_eq!(open.iter().map(|run| run.id).collect::<Vec<_>>(), [ids[0], ids[4]]);
    let over = store.last_runs(&Last { count: 9, ..Last::default() }).unwrap();
    let names: Vec<_> = over.iter().map(|run| run.job.as_str()).collect();
    assert_eq!(names, ["damaged", "takeover", "order"]);
    assert!(over.iter().all(|run| run.outcome == Some(Outcome::Unknown)));
    assert_eq!(store.order(ids[2]).unwrap(), Some(order.clone()));
    // Whose job it was is not guessed.
    assert_eq!(store.order(ids[3]).unwrap(), None);
    assert_eq!(store.set_damaged_aside(10).unwrap(), []);
    std::fs::remove_dir_all(directory).unwrap();
}

/// Resources of a run as a whole are recorded with its end. What is not known of them is not 0.
#[test]
fn resources_of_a_run_as_a_whole_are_recorded() {
    let mut store = store("usage");
    let figures = [process(1, vec![task(0, 1, 2)]), process(2, vec![task(1, 1, 2)])];
    let known = RunUsage {
        group_cpu_ns: Some(0),
        programs_cpu_ns: Some(5),
        group_peak_bytes: Some(i64::MAX as u64),
    };
    for usage in [known, RunUsage { group_cpu_ns: None, ..known }, RunUsage::default()] {
        let id = begin(&mut store, "sort");
        let end = RunEnd { figures: &figures, usage, ..RunEnd::new(2, Outcome::Complete) };
        store.end_run(id, &end).unwrap();
        assert_eq!(store.figures_of(id).unwrap().usage, usage);
        let all = store.figures("sort").unwrap();
        assert_eq!(all.last().unwrap().usage, usage);
        // Without a control group, the memory is that of the processes.
        let of_group = usage.group_peak_bytes.map(|bytes| (bytes, true));
        let memory = all.last().unwrap().peak_memory_bytes();
        assert_eq!(memory, of_group.or(Some((2 << 20, false))));
    }
    let id = begin(&mut store, "sort");
    let usage = RunUsage { group_cpu_ns: Some(u64::MAX), ..known };
    let end = RunEnd { figures: &figures, usage, ..RunEnd::new(2, Outcome::Complete) };
    assert!(matches!(store.end_run(id, &end), Err(Error::TooLarge(_))));
    assert_eq!(store.run(id).unwrap().state, State::Planned);
}
