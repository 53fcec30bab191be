// SPDX-License-Identifier: GPL-2.0
//! Ends that can't be recorded now, as on a full disk.

use rusqlite::Connection;

use super::*;

/// A waiting job that is cancelled while nothing can be written is over: for its owner, for jobs
/// that follow it, and, once something can be written, for the next service, which must not run it.
#[test]
fn a_cancelled_job_that_cannot_be_recorded_is_recorded_later() {
    let directory = scratch("pbs-full");
    let mut world = World::new(&directory);
    let held = order(world.name(), 900 * SECOND_NS, |terms| terms.hold = true);
    let id = world.jobs.order(vec![held], &mut Nobody).unwrap()[0];
    let follows = order(world.name(), 900 * SECOND_NS, |terms| terms.after.push(id.0));
    let after = world.jobs.order(vec![follows], &mut Nobody).unwrap()[0];
    let file = Connection::open(directory.join("history.db")).unwrap();
    let full = "CREATE TRIGGER full BEFORE UPDATE ON run BEGIN SELECT RAISE(ABORT, 'full'); END";
    file.execute_batch(full).unwrap();
    world.jobs.cancel(id, "cancelled by anna".into(), &mut Nobody).unwrap();
    let cancelled = Expected::unrun(id, Outcome::Cancelled, "cancelled by anna");
    world.expect(cancelled.clone());
    assert!(world.jobs.cancel(id, "again".into(), &mut Nobody).is_err());
    world.jobs.promote(&mut Nobody);
    world.has_not_begun(after, "planned");
    // Nothing happens on the node, and the record is tried again nevertheless.
    assert!(world.jobs.backlog.again_ms(std::time::Instant::now()) >= 0);
    file.execute_batch("DROP TRIGGER full").unwrap();
    world.jobs.ledger.keep(&mut Nobody);
    drop(world);
    let mut next = open(&directory);
    next.find_orders(&mut Nobody).unwrap();
    assert!(next.backlog.find(id).is_none() && next.backlog.find(after).is_some());
    assert_eq!(Expected::of(&next.standing_of(id).unwrap()), cancelled);
    drop((next, file));
    std::fs::remove_dir_all(&directory).unwrap();
}
