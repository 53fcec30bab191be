// SPDX-License-Identifier: GPL-2.0
//! Plans that keep their promises when nodes, sites and requests change.

mod common;

use common::*;
use pbs_cluster_planner::{Cause, When};
use pbs_manager::ledger::{After, NodeState, Outcome, State};
use pbs_manager::{Change, Manager, Simulated, Wish};
use pbs_site::Whom;

/// A cluster of the site whose description this is.
fn of(test: &str, site: &str) -> Cluster {
    let path = directory(test).join("ledger");
    let manager = Manager::create(&path, site, T, Simulated::default()).unwrap();
    Cluster { manager, path }
}

fn nodes(count: u64, cores: u64) -> String {
    format!("name = 'a'\n[[nodes]]\nname = 'n%d'\ncount = {count}\nhas = 'ncpus={cores}'\n")
}

/// Start of a request, counted from the initial time.
fn start_s(cluster: &Cluster, id: u64) -> Option<u64> {
    cluster.row(id).start_s.map(|start_s| start_s - T)
}

#[test]
fn a_pool_is_kept_free_when_a_node_is_lost() {
    for free in ["10", "25%"] {
        let pool = format!(
            "[[pool]]\nname = 'vip'\nresource = 'ncpus'\nfree = '{free}'\naccess = 'group:vip'\n"
        );
        let mut cluster = of("pool-kept", &(nodes(4, 10) + &pool));
        let vip = Wish { group: "vip".into(), ..wish("4:ncpus=10", 100) };
        cluster.submit(&vip);
        for (rset, seconds) in [("20:ncpus=1", 50), ("10:ncpus=1", 50), ("ncpus=1", 50)] {
            cluster.submit(&wish(rset, seconds));
        }
        let lose = |cluster: &mut Cluster| {
            cluster.manager.node_out(&operator(), "n1", NodeState::Offline, "").unwrap();
            let at_start = cluster.rows().into_iter().filter(|row| row.start_s == Some(T));
            at_start.map(|row| row.cores).sum::<u64>()
        };
        // Of 30 cores the pool keeps 10, or a quarter.
        let most = if free == "10" { 20 } else { 23 };
        let used = lose(&mut cluster);
        assert!(used > 0 && used <= most, "{free}: {used}");
        cluster.manager.node_back(&operator(), "n1").unwrap();
        // With all nodes 30 are free for everybody, after all that is planned.
        cluster.manager.advance(T + 1_000).unwrap();
        let most = cluster.submit(&wish("30:ncpus=1", 10));
        assert_eq!(start_s(&cluster, most), Some(1_000));
    }
}

#[test]
fn a_reservation_outlives_one_of_its_nodes() {
    let mut cluster = of("reservation-node", &nodes(2, 4));
    let reserved = Wish { when: When::Fixed { start_s: T }, ..wish("2:ncpus=4", 100) };
    let id = cluster.manager.reserve(&operator(), &Wish { user: "op".into(), ..reserved }).unwrap();
    let inside = |cluster: &mut Cluster| {
        let wish = Wish { within: Some(id), user: "op".into(), ..wish("ncpus=4", 20) };
        cluster.manager.submit(&operator(), &wish).unwrap()[0]
    };
    let all = [inside(&mut cluster), inside(&mut cluster), inside(&mut cluster)];
    cluster.manager.advance(T + 5).unwrap();
    let lost = cluster.node_of(all[0]);
    cluster.manager.node_out(&operator(), &lost, NodeState::Down, "smoke").unwrap();
    assert_eq!(cluster.row(id).state, State::Running);
    assert_eq!(cluster.row(all[0]).outcome, Some(format!("node {lost} failed")));
    assert_eq!(cluster.row(all[1]).state, State::Running);
    let last = cluster.row(all[2]);
    assert_eq!((last.state, last.nodes[0].node == lost), (State::Planned, false));
    cluster.manager.advance(T + 60).unwrap();
    assert!(all[1..].iter().all(|&id| cluster.row(id).outcome.as_deref() == Some("completed")));
}

#[test]
fn resources_are_there_only_while_they_are_valid() {
    // The initial time is Friday, 15 January 2027, 8:00.
    let site = "name = 'r'\n[resource.tesla]\nvalidity = 'until 2027-01-15T12:00'\n\
                [resource.sw]\nscope = 'job'\nitems = { g03 = 2 }\nvalidity = '2027-01-16/'\n\
                [resource.lic]\nscope = 'job'\namount = 2\nvalidity = 'cron 0 9 * * 1-5 +2h'\n\
                [[nodes]]\nname = 'n1'\nhas = 'ncpus=4:tesla=1'\n";
    let mut cluster = of("validity", site);
    let fits = cluster.submit(&wish("ncpus=1:tesla=1", 4 * 3_600));
    assert_eq!(start_s(&cluster, fits), Some(0));
    // The resource is gone before this one would end.
    let late =
        Wish { when: When::After { start_s: T + 3_600 }, ..wish("ncpus=1:tesla=1", 4 * 3_600) };
    assert!(cluster.manager.submit(&user("u"), &late).is_err());
    let licensed = cluster.submit(&wish("ncpus=1,lic=1", 3_600));
    assert_eq!(start_s(&cluster, licensed), Some(3_600));
    // Two hours a day, of which one is left: the next day is Monday.
    let second = cluster.submit(&wish("ncpus=1,lic=2", 7_200));
    assert_eq!(start_s(&cluster, second), Some(3 * 86_400 + 3_600));
    let by_word = cluster.submit(&wish("ncpus=1,sw=g03", 10));
    assert_eq!(start_s(&cluster, by_word), Some(16 * 3_600));
    // Requests of other resources don't notice, nor do those that take a node whole.
    let other = cluster.submit(&wish("ncpus=1", 86_400));
    assert_eq!(start_s(&cluster, other), Some(0));
    let alone =
        Wish { when: When::After { start_s: T + 8 * 86_400 }, ..wish("ncpus=4,place=:excl", 10) };
    let alone = cluster.submit(&alone);
    assert_eq!(start_s(&cluster, alone), Some(8 * 86_400));
}

#[test]
fn a_request_is_not_extended_beyond_its_reservation() {
    let mut cluster = of("extend-inside", &nodes(1, 4));
    let reserved =
        Wish { when: When::Fixed { start_s: T }, user: "op".into(), ..wish("ncpus=4", 100) };
    let id = cluster.manager.reserve(&operator(), &reserved).unwrap();
    let inside = |seconds| Wish {
        within: Some(id),
        user: "op".into(),
        run_s: Some(200),
        ..wish("ncpus=2", seconds)
    };
    let long = cluster.manager.submit(&operator(), &inside(100)).unwrap()[0];
    let short = cluster.manager.submit(&operator(), &inside(50)).unwrap()[0];
    cluster.submit(&wish("ncpus=4", 50));
    cluster.manager.advance(T + 5).unwrap();
    let refused = cluster.manager.extend(&operator(), long, 5).unwrap_err();
    assert!(refused.to_string().contains("extend the reservation first"), "{refused}");
    assert_eq!(cluster.row(long).end_s, Some(T + 100));
    cluster.manager.extend(&operator(), short, 5).unwrap();
    assert_eq!(cluster.row(short).end_s, Some(T + 55));
}

#[test]
fn a_broken_agreement_is_reported_at_its_end() {
    let mut cluster = of("agreement", &nodes(1, 4));
    cluster.submit(&wish("ncpus=4", 100));
    let agreed =
        |seconds| Wish { when: When::Agreement { end_s: T + 120 }, ..wish("ncpus=4", seconds) };
    let kept = cluster.submit(&agreed(20));
    let broken = cluster.submit(&agreed(50));
    let row = cluster.row(broken);
    assert_eq!(row.broken_by_s(row.end_s.unwrap()), Some(50));
    cluster.manager.advance(T + 300).unwrap();
    let events = |id| {
        let (_, events) = cluster.manager.details(id).unwrap();
        let of = events.into_iter().filter(|of| of.what == "agreement broken");
        of.map(|of| of.text).collect::<Vec<_>>()
    };
    assert_eq!(
        (events(kept), events(broken)),
        (vec![], vec!["ended 50s later than agreed".into()])
    );
}

#[test]
fn another_site_moves_requests_up() {
    let mut cluster = of("site-more", &nodes(1, 4));
    cluster.submit(&wish("ncpus=4", 100));
    let second = cluster.submit(&wish("ncpus=4", 100));
    assert_eq!(start_s(&cluster, second), Some(100));
    cluster.reopen_with(&nodes(2, 4));
    assert_eq!(start_s(&cluster, second), Some(0));
}

#[test]
fn an_altered_request_leaves_no_hole() {
    let mut cluster = of("alter-hole", &nodes(1, 4));
    let ids = [10, 20, 50].map(|seconds| cluster.submit(&wish("ncpus=4", seconds)));
    let change = Change { duration_s: Some(60), ..Change::default() };
    cluster.manager.alter(&user("u"), ids[1], &change).unwrap();
    assert_eq!(ids.map(|id| start_s(&cluster, id)), [Some(0), Some(60), Some(10)]);
}

/// A user's validity bounds all of a request, and a request may be planned into it ahead.
#[test]
fn requests_are_in_the_validity_of_their_user() {
    let site = format!(
        "{}[[user]]\nname = 'u'\nvalidity = '@{}/@{}'\n[[user]]\nname = 'v'\n",
        nodes(1, 4),
        T + 100,
        T + 200
    );
    let mut cluster = of("user-validity", &site);
    let id = cluster.submit(&wish("ncpus=1", 60));
    assert_eq!(start_s(&cluster, id), Some(100));
    let refused = cluster.manager.submit(&user("u"), &wish("ncpus=1", 150)).unwrap_err();
    assert_eq!(
        cluster.manager.in_words(&refused),
        "there is no time at which it could run: validity of user:u"
    );
    let causes = cluster.manager.why(id).unwrap();
    let of_user = Cause::Locked(Whom::User("u".into()));
    assert!(causes.contains(&(of_user, Some(T + 100))), "{causes:?}");
    let other = cluster.submit(&Wish { user: "v".into(), ..wish("ncpus=1", 150) });
    assert_eq!(start_s(&cluster, other), Some(0));
}

/// The followers of an extended request leave no hole, and a refusal names who is in the way.
#[test]
fn an_extension_leaves_no_hole_and_names_its_causes() {
    let site = format!("max_extension = '100%'\n{}", nodes(2, 4));
    let other = "[[nodes]]\nname = 'm'\nhas = 'ncpus=4:gpu=1'\n[resource.gpu]\n";
    let mut cluster = of(
        "extension",
        &site
            .replace("count = 2\n", "count = 1\n")
            .replace("[[nodes]]\nname = 'n%d'", &format!("{other}[[nodes]]\nname = 'n%d'")),
    );
    let first = cluster.submit(&Wish { run_s: Some(500), ..wish("ncpus=4", 100) });
    let after = vec![After { request: first, outcome: Outcome::Any }];
    let follower = cluster.submit(&Wish { after, ..wish("ncpus=4:gpu=1", 100) });
    let behind = cluster.submit(&wish("ncpus=4:gpu=1", 150));
    cluster.manager.advance(T + 1).unwrap();
    assert_eq!((start_s(&cluster, follower), start_s(&cluster, behind)), (Some(100), Some(200)));
    cluster.manager.extend(&operator(), first, 60).unwrap();
    assert_eq!((start_s(&cluster, follower), start_s(&cluster, behind)), (Some(160), Some(1)));
    let mut cluster = of("extension-refused", &site);
    let first = cluster.submit(&Wish { run_s: Some(500), ..wish("2:ncpus=4", 100) });
    let second = cluster.submit(&wish("ncpus=4", 150));
    cluster.manager.advance(T + 1).unwrap();
    let refused = cluster.manager.extend(&operator(), first, 60).unwrap_err();
    let told = cluster.manager.in_words(&refused);
    assert!(
        told.starts_with(&format!("it can't run longer: request {second}, which is")),
        "{told}"
    );
    assert!(told.contains("ncpus in use"), "{told}");
}

/// A reservation of all nodes that loses one of them before its start keeps the others, and nobody
/// is planned into it. What is planned in it stays.
#[test]
fn a_reservation_that_has_not_begun_outlives_one_of_its_nodes() {
    let mut cluster = of("reservation-before", &nodes(2, 4));
    let reserved = Wish {
        when: When::Fixed { start_s: T + 100 },
        user: "op".into(),
        ..wish("2:ncpus=4", 100)
    };
    let id = cluster.manager.reserve(&operator(), &reserved).unwrap();
    let inside = |cluster: &mut Cluster| {
        let wish = Wish { within: Some(id), user: "op".into(), ..wish("ncpus=4", 20) };
        cluster.manager.submit(&operator(), &wish).unwrap()[0]
    };
    let both = [inside(&mut cluster), inside(&mut cluster)];
    cluster.manager.node_out(&operator(), "n1", NodeState::Down, "smoke").unwrap();
    assert_eq!((cluster.row(id).state, start_s(&cluster, id)), (State::Planned, Some(100)));
    for id in both {
        let row = cluster.row(id);
        assert_eq!((row.state, &*row.nodes[0].node), (State::Planned, "n2"));
    }
    let other = cluster.submit(&wish("ncpus=4", 150));
    assert_eq!(start_s(&cluster, other), Some(200));
    cluster.reopen();
    cluster.manager.node_back(&operator(), "n1").unwrap();
    let third = inside(&mut cluster);
    assert_eq!(cluster.node_of(third), "n1");
    cluster.manager.advance(T + 160).unwrap();
    assert!(both.iter().all(|&id| cluster.row(id).outcome.as_deref() == Some("completed")));
}

/// Requests in a reservation go with it to other nodes.
#[test]
fn requests_move_with_their_reservation() {
    let mut cluster = of("reservation-moves", &nodes(2, 4));
    let reserved =
        Wish { when: When::Fixed { start_s: T + 100 }, user: "op".into(), ..wish("ncpus=4", 100) };
    let id = cluster.manager.reserve(&operator(), &reserved).unwrap();
    let inside = Wish { within: Some(id), user: "op".into(), ..wish("ncpus=2", 20) };
    let inside = cluster.manager.submit(&operator(), &inside).unwrap()[0];
    let lost = cluster.node_of(id);
    cluster.manager.node_out(&operator(), &lost, NodeState::Down, "smoke").unwrap();
    let (held, row) = (cluster.row(id), cluster.row(inside));
    assert_eq!((held.state, held.nodes[0].node == lost), (State::Planned, false));
    assert_eq!((row.state, row.nodes, row.start_s), (State::Planned, held.nodes, Some(T + 100)));
    cluster.reopen();
    cluster.manager.advance(T + 130).unwrap();
    assert_eq!(cluster.row(inside).outcome.as_deref(), Some("completed"));
}
