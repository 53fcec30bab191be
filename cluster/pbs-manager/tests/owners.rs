// SPDX-License-Identifier: GPL-2.0
//! Owners of requests: the number of the user decides, and the name is for showing.

mod common;

use common::{operator, small, wish};
use pbs_manager::ledger::{Access, Ledger, Row, CONTROLLER};
use pbs_manager::{Caller, Change, Error, Manager, Simulated, Wish};
use pbs_site::User;
use rusqlite::Connection;

fn caller(name: &str, uid: u32) -> Caller {
    Caller { user: User::with_uid(name, uid), is_operator: false }
}

fn wish_of(caller: &Caller, duration_s: u64) -> Wish {
    Wish { user: caller.user.clone(), ..wish("ncpus=1", duration_s) }
}

/// Another user with the same name can't change a request, and has limits of their own. The owner
/// can, under another name, too.
#[test]
fn a_reused_name_has_no_rights() {
    let mut cluster = small("reused");
    let (before, after) = (caller("anna", 1000), caller("anna", 1001));
    let nobody = Caller { user: "anna".into(), is_operator: false };
    // The site allows each user twelve requests.
    let array = Wish { array: Some((1..=12).collect()), ..wish_of(&before, 100) };
    let ids = cluster.manager.submit(&before, &array).unwrap();
    for other in [&after, &nobody] {
        cluster.reopen();
        let manager = &mut cluster.manager;
        let change = Change { duration_s: Some(50), ..Change::default() };
        let refused = [
            manager.kill(other, ids[0]),
            manager.alter(other, ids[11], &change),
            manager.extend(other, ids[0], 10),
            manager.resize(other, ids[0], &"2:ncpus=1".parse().unwrap()),
            manager.confirm(other, ids[11]),
            manager.submit(other, &wish_of(&before, 1)).map(drop),
        ];
        for refused in refused {
            assert!(matches!(refused, Err(Error::NotPermitted(_))), "{refused:?}");
        }
        assert_eq!(manager.held_by(&other.user).requests, 0);
        let one = manager.submit(other, &wish_of(other, 10)).unwrap();
        manager.kill(other, one[0]).unwrap();
    }
    let renamed = caller("ann", 1000);
    assert_eq!(cluster.manager.held_by(&renamed.user).requests, 12);
    cluster.manager.kill(&renamed, ids[0]).unwrap();
    assert_eq!(cluster.row(ids[0]).outcome.as_deref(), Some("killed by ann"));
}

/// Makes a ledger as versions before the numbers of users wrote them.
fn make_older(path: &std::path::Path) {
    let connection = Connection::open(path).unwrap();
    let older = "UPDATE request SET body = json_remove(body, '$.uid', '$.submitted_by_uid');
                 PRAGMA user_version = 1";
    connection.execute_batch(older).unwrap();
}

/// Owners in an older ledger get the numbers of their accounts once. Those who have none are told,
/// and only operators end their requests.
#[test]
fn an_older_ledger_is_attributed_once() {
    let mut cluster = small("older");
    for name in ["root", "no:such", "root"] {
        let user = User::from(name);
        let by = Caller { user: user.clone(), is_operator: false };
        cluster.manager.submit(&by, &Wish { user, ..wish("ncpus=1", 60) }).unwrap();
    }
    // A job of a batch system, whose users are not those of this machine.
    let controller = Caller { user: CONTROLLER.into(), is_operator: true };
    let of_batch = Wish { user: "root".into(), ..wish("ncpus=1", 60) };
    cluster.manager.submit(&controller, &of_batch).unwrap();
    cluster.manager.kill(&operator(), 3).unwrap();
    let path = cluster.path.clone();
    let ownerless = |row: &Row| (row.owner().uid, row.submitter().unwrap().uid);
    let nowhere = path.with_extension("nowhere");
    let other = Manager::create(&nowhere, common::SITE, common::T, Simulated::default()).unwrap();
    drop(std::mem::replace(&mut cluster.manager, other));
    make_older(&path);

    let read = Ledger::open(&path, Access::Read).unwrap().rows().unwrap();
    assert!(read.iter().all(|row| ownerless(row) == (None, None)));
    let attributed = Ledger::attribute(&path).unwrap().unwrap();
    assert_eq!((attributed.requests, attributed.without), (1, 1));
    assert_eq!(attributed.names, ["no:such"]);
    assert_eq!(Ledger::attribute(&path).unwrap(), None);

    let (mut manager, _) = Manager::open(&path, Access::Write, Simulated::default()).unwrap();
    let rows = manager.rows().unwrap();
    let owners: Vec<_> = rows.iter().map(ownerless).collect();
    assert_eq!(owners, [(Some(0), Some(0)), (None, None), (Some(0), Some(0)), (None, None)]);
    let refused = manager.kill(&caller("no:such", 1000), 2);
    assert!(matches!(refused, Err(Error::NotPermitted(_))), "{refused:?}");
    manager.kill(&operator(), 2).unwrap();
    manager.kill(&caller("root", 0), 1).unwrap();
}

/// A ledger that was opened for writing keeps the names alone: accounts of later times are not
/// those of its owners.
#[test]
fn an_opened_ledger_is_not_attributed_later() {
    let mut cluster = small("opened");
    let root = Caller { user: "root".into(), is_operator: false };
    cluster.manager.submit(&root, &Wish { user: "root".into(), ..wish("ncpus=1", 60) }).unwrap();
    let path = cluster.path.clone();
    let nowhere = path.with_extension("nowhere");
    let other = Manager::create(&nowhere, common::SITE, common::T, Simulated::default()).unwrap();
    drop(std::mem::replace(&mut cluster.manager, other));
    make_older(&path);
    drop(Ledger::open(&path, Access::Write).unwrap());
    assert_eq!(Ledger::attribute(&path).unwrap(), None);
    assert_eq!(Ledger::open(&path, Access::Read).unwrap().rows().unwrap()[0].uid, None);
}
