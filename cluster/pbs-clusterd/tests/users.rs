// SPDX-License-Identifier: GPL-2.0
//! Users of the service: each is who the kernel says, and has the rights that the site gives.

mod common;

use common::{is_root, serve, serve_prepared, site, wanted, BIN, DAEMON};
use pbs_cluster_api::{Alteration, Failure, Filter, Object, Refusal, Submission};
use pbs_manager::ledger::{After, Outcome, State};
use pbs_manager::{Caller, Manager, Simulated, Wish};
use pbs_site::User;

fn refusal<T: std::fmt::Debug>(answer: Result<T, Failure>) -> Refusal {
    match answer {
        Err(Failure::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

/// A user's requests are the user's own: others see them, without the command, and change nothing.
#[test]
fn only_the_owner_and_operators_change_a_request() {
    if !is_root() {
        pbs_text::skipped("it needs root, to connect as other users");
        return;
    }
    let served = serve("users", &site(2), &[]);
    let mut owner = served.client_of(DAEMON);
    let mut other = served.client_of(BIN);
    let mut root = served.client();
    let command = Some(vec!["./secret".to_string()]);
    let submission = Submission { command: command.clone(), ..wanted("ncpus=4", 600) };
    let rows = owner.submit(&submission).unwrap();
    assert_eq!((rows.len(), rows[0].user.as_str()), (1, "daemon"));
    assert_eq!(Some(&rows[0].command), command.as_ref());
    let id = rows[0].id;

    let Object(seen) = other.show(id).unwrap().request;
    assert_eq!((seen.user.as_str(), seen.command.len()), ("daemon", 0));
    assert!(other.list(&Filter::default()).unwrap().1[0].command.is_empty());
    assert!(matches!(refusal(other.kill(&[id])), Refusal::NotPermitted { .. }));
    assert!(matches!(refusal(other.extend(id, 60)), Refusal::NotPermitted { .. }));
    let in_name = Submission { user: Some("daemon".into()), ..wanted("ncpus=1", 60) };
    assert!(matches!(refusal(other.submit(&in_name)), Refusal::NotPermitted { .. }));
    let out = other.set_nodes(&["n001"], "offline", "");
    assert!(matches!(refusal(out), Refusal::NotPermitted { .. }));
    let defect = other.set_defect(&["n001"], "ncpus=1", "");
    assert!(matches!(refusal(defect), Refusal::NotPermitted { .. }));

    assert_eq!(root.submit(&in_name).unwrap()[0].user, "daemon");
    assert_eq!(root.set_nodes(&["n002"], "offline", "disk").unwrap().nodes_out.len(), 1);
    let of_owner = Filter { user: Some("daemon".into()), ..Filter::default() };
    assert_eq!(other.list(&of_owner).unwrap().1.len(), 2);
    assert_eq!(owner.kill(&[id]).unwrap()[0].state, State::Ended);
    assert!(
        matches!(refusal(owner.kill(&[id])), Refusal::NoSuchRequest { request } if request == id)
    );
    let all = Filter { ended: Some(true), ..Filter::default() };
    let outcomes = other.list(&all).unwrap().1.into_iter().map(|row| row.outcome);
    assert_eq!(outcomes.collect::<Vec<_>>(), [Some("killed by daemon".into()), None]);
}

/// A user who has the name of an earlier one gets none of the earlier user's requests.
#[test]
fn a_reused_name_gets_no_requests() {
    if !is_root() {
        pbs_text::skipped("it needs root, to connect as other users");
        return;
    }
    let mut served = serve_prepared("reused", &["--user-requests", "1"], |ledger| {
        let clock_s = pbs_uapi::clock::unix_s();
        let mut cluster = Manager::create(ledger, &site(2), clock_s, Simulated::default()).unwrap();
        let caller = Caller { user: User::with_uid("daemon", 12_345), is_operator: false };
        let wish = Wish {
            duration_s: 600,
            command: vec!["./secret".into()],
            ..Wish::new("ncpus=1".parse().unwrap(), caller.user.clone(), "")
        };
        cluster.submit(&caller, &wish).unwrap();
    });
    // What the ledger restores is the same.
    for _ in 0..2 {
        let mut other = served.client_of(DAEMON);
        let Object(seen) = other.show(1).unwrap().request;
        assert_eq!((&*seen.user, seen.uid, seen.command.len()), ("daemon", Some(12_345), 0));
        assert!(matches!(refusal(other.kill(&[1])), Refusal::NotPermitted { .. }));
        let change = Alteration { duration_s: Some(60), ..Alteration::default() };
        assert!(matches!(refusal(other.alter(1, &change)), Refusal::NotPermitted { .. }));
        served.restart();
    }
    // The earlier user's request is none of the only one that each may have.
    let mut other = served.client_of(DAEMON);
    let own = other.submit(&wanted("ncpus=1", 60)).unwrap();
    assert_eq!((&*own[0].user, own[0].uid, own[0].submitted_by_uid), ("daemon", Some(1), Some(1)));
    let in_name = Submission { user: Some("daemon".into()), ..wanted("ncpus=1", 60) };
    let by_root = served.client().submit(&in_name).unwrap();
    assert_eq!((by_root[0].uid, by_root[0].submitted_by_uid), (Some(1), Some(0)));
}

/// The reason for which an engine refused a request has paths and words of its owner's files:
/// others see that it was refused.
#[test]
fn only_the_owner_sees_why_a_request_was_refused() {
    if !is_root() {
        pbs_text::skipped("it needs root, to connect as other users");
        return;
    }
    let whole = "refused: /home/daemon/secret.toml: line 3: key = 'x'";
    let served = serve_prepared("reasons", &[], |ledger| {
        let clock_s = pbs_uapi::clock::unix_s();
        let mut cluster = Manager::create(ledger, &site(2), clock_s, Simulated::default()).unwrap();
        let caller = Caller { user: User::with_uid("daemon", 1), is_operator: false };
        let wish = Wish::new("ncpus=1".parse().unwrap(), caller.user.clone(), "");
        let ids = cluster.submit(&caller, &Wish { duration_s: 600, ..wish }).unwrap();
        cluster.decline(ids[0], whole).unwrap();
    });
    let seen = |uid: Option<u32>| {
        let mut client = uid.map_or_else(|| served.client(), |uid| served.client_of(uid));
        let shown = client.show(1).unwrap();
        let Object(row) = shown.request;
        let Object(last) = shown.events.into_iter().next_back().unwrap();
        (row.outcome.unwrap(), last.text)
    };
    assert_eq!(seen(Some(BIN)), ("refused".into(), "refused".into()));
    for uid in [Some(DAEMON), None] {
        assert_eq!(seen(uid), (whole.into(), whole.into()));
    }
}

/// The site makes operators, by a user's own privileges or by those of a group that it lists for
/// the user; naming the group is not enough.
#[test]
fn the_site_names_operators() {
    if !is_root() {
        pbs_text::skipped("it needs root, to connect as other users");
        return;
    }
    let site = format!(
        "{}[[group]]\nname = 'ops'\nprivileges = ['reserve', 'operator']\n[[user]]\nname = \
         'daemon'\ngroups = ['ops']\n[[user]]\nname = 'bin'\n[[user]]\nname = 'root'\n",
        site(2)
    );
    let served = serve("operators", &site, &[]);
    let mut other = served.client_of(BIN);
    let row = other.submit(&Submission { group: Some("ops".into()), ..wanted("ncpus=1", 60) });
    let id = row.unwrap()[0].id;
    let in_name = Submission {
        user: Some("root".into()),
        group: Some("ops".into()),
        ..wanted("ncpus=1", 60)
    };
    assert!(matches!(refusal(other.submit(&in_name)), Refusal::NotPermitted { .. }));
    assert!(served.client_of(DAEMON).kill(&[id]).is_ok());
}

/// Growth of a request is bounded: those that it follows, its names, and reservations.
#[test]
fn parts_of_requests_are_bounded() {
    if !is_root() {
        pbs_text::skipped("it needs root, to connect as other users");
        return;
    }
    let limits = ["--user-reservations", "1", "--user-bytes", "20000"];
    let served = serve("parts", &site(2), &limits);
    let mut greedy = served.client_of(DAEMON);
    let id = greedy.submit(&wanted("ncpus=1", 600)).unwrap()[0].id;
    let after = |count| {
        let after = Object(After { request: id, outcome: Outcome::Any });
        Submission { after: Some(vec![after; count]), ..wanted("ncpus=1", 60) }
    };
    let behind = greedy.submit(&after(64)).unwrap()[0].id;
    let refused = refusal(greedy.submit(&after(65)));
    assert!(matches!(&refused, Refusal::Invalid { what } if what.contains("at most 64 others")));
    let group = Submission { group: Some("x".repeat(201)), ..wanted("ncpus=1", 60) };
    let refused = refusal(greedy.submit(&group));
    assert!(matches!(&refused, Refusal::Invalid { what } if what.contains("the group is longer")));
    greedy.reserve(&wanted("ncpus=1", 60)).unwrap();
    let refused = refusal(greedy.reserve(&wanted("ncpus=1", 60)));
    assert!(matches!(&refused, Refusal::Failed { why } if why.contains("(user-reservations)")));

    // A change may not make a request larger than a submission.
    let word = format!("ncpus=1:{}=1", "x".repeat(30_000));
    let change = Alteration { rset: Some(word), ..Alteration::default() };
    let refused = refusal(greedy.alter(behind, &change));
    assert!(matches!(&refused, Refusal::Failed { why } if why.contains("(user-bytes)")));
    let refused = refusal(served.client_of(BIN).alter(behind, &change));
    assert!(matches!(refused, Refusal::NotPermitted { .. }));
}

/// One user's requests are bounded, and others are accepted meanwhile; an array is bounded, too.
#[test]
fn a_user_has_a_share() {
    if !is_root() {
        pbs_text::skipped("it needs root, to connect as other users");
        return;
    }
    let served = serve("share", &site(2), &["--user-requests", "3"]);
    let mut greedy = served.client_of(DAEMON);
    let array = |first: u64, last: u64| Submission {
        array: Some((first..=last).collect()),
        ..wanted("ncpus=1", 600)
    };
    assert_eq!(greedy.submit(&array(1, 3)).unwrap().len(), 3);
    let refused = refusal(greedy.submit(&wanted("ncpus=1", 60)));
    assert!(matches!(&refused, Refusal::Failed { why } if why.contains("(user-requests)")));
    assert_eq!(served.client_of(BIN).submit(&array(1, 3)).unwrap().len(), 3);
    let long = refusal(served.client().submit(&array(1, 5000)));
    assert!(matches!(&long, Refusal::Invalid { what } if what.contains("5000 requests")));
    greedy.kill(&[1]).unwrap();
    assert_eq!(greedy.submit(&wanted("ncpus=1", 60)).unwrap().len(), 1);
}
