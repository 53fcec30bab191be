// SPDX-License-Identifier: GPL-2.0
//! Life of requests that follow others, of running requests, and of their nodes.

mod common;

use common::*;
use pbs_cluster_planner::When;
use pbs_manager::ledger::{After, NodeState, Outcome, Phase, State};
use pbs_manager::{Allocation, Engine, Error, Happened, Manager, Simulated, Wish};

fn after(request: u64, outcome: Outcome, wish: Wish) -> Wish {
    Wish { after: vec![After { request, outcome }], ..wish }
}

#[test]
fn steps_follow_each_other() {
    let mut cluster = small("steps-follow");
    let first = cluster.submit(&Wish { run_s: Some(40), ..wish("ncpus=8", 100) });
    let second = cluster.submit(&after(first, Outcome::Ok, wish("ncpus=8", 50)));
    let remedy = cluster.submit(&after(first, Outcome::NotOk, wish("ncpus=8", 50)));
    let last = cluster.submit(&after(second, Outcome::Any, wish("ncpus=8", 50)));
    let of_remedy = cluster.submit(&after(remedy, Outcome::Ok, wish("ncpus=1", 5)));
    assert_eq!(cluster.row(second).start_s, Some(T + 100));
    assert_eq!(cluster.row(last).start_s, Some(T + 150));
    assert_eq!(cluster.row(remedy).state, State::Waiting);
    cluster.reopen();
    cluster.manager.advance(T + 45).unwrap();
    assert_eq!(cluster.row(first).outcome.unwrap(), "completed");
    let row = cluster.row(second);
    assert_eq!((row.state, row.start_s), (State::Running, Some(T + 40)));
    assert_eq!(cluster.row(last).start_s, Some(T + 90));
    // What was not needed is over, with what follows it.
    let why = format!("not to run: request {first} completed");
    assert_eq!(cluster.row(remedy).outcome.unwrap(), why);
    let why = cluster.row(of_remedy).outcome.unwrap();
    assert!(why.starts_with(&format!("not to run: request {remedy}")), "{why}");
    cluster.reopen();
    cluster.manager.kill(&user("u"), second).unwrap();
    cluster.manager.advance(T + 50).unwrap();
    assert_eq!(cluster.row(last).state, State::Running, "whatever became of it");
}

#[test]
fn a_failure_starts_its_remedy_and_ends_its_followers() {
    let mut cluster = small("failure-starts");
    let first = cluster.submit(&wish("2:ncpus=8", 100));
    let second = cluster.submit(&after(first, Outcome::Ok, wish("ncpus=8", 50)));
    let third = cluster.submit(&after(second, Outcome::Ok, wish("ncpus=8", 50)));
    let remedy = cluster.submit(&after(first, Outcome::NotOk, wish("ncpus=8", 50)));
    cluster.manager.advance(T + 10).unwrap();
    cluster.manager.kill(&user("u"), first).unwrap();
    assert_eq!(cluster.row(remedy).start_s, Some(T + 10));
    for id in [second, third] {
        let why = cluster.row(id).outcome.unwrap();
        assert!(why.starts_with("not to run: request"), "{why}");
    }
    cluster.reopen();
    // What is over already counts, or is refused.
    let more = after(first, Outcome::NotOk, wish("ncpus=1", 5));
    assert_eq!(cluster.submit(&more), remedy + 1);
    let never = after(first, Outcome::Ok, wish("ncpus=1", 5));
    let refused = cluster.manager.submit(&user("u"), &never);
    assert!(matches!(refused, Err(Error::Wrong(_))), "{refused:?}");
    let unknown = after(999, Outcome::Any, wish("ncpus=1", 5));
    let refused = cluster.manager.submit(&user("u"), &unknown);
    assert!(matches!(refused, Err(Error::NoRequest(999))), "{refused:?}");
}

#[test]
fn a_long_chain_ends_at_once() {
    let mut cluster = small("long-chain");
    let mut last = cluster.submit(&wish("ncpus=1", 1));
    for _ in 0..10 {
        last = cluster.submit(&after(last, Outcome::Ok, wish("ncpus=1", 1)));
    }
    assert_eq!(cluster.row(last).start_s, Some(T + 10));
    let first = last - 10;
    cluster.manager.kill(&user("u"), first).unwrap();
    assert!(cluster.rows().is_empty());
}

const WITH_TIMES: &str = r#"
allocate_timeout = "30s"
release_timeout = "20s"
watchdog = "60s"
[[nodes]]
name = "n%d"
count = 2
has = "ncpus=8"
"#;

fn manager<E: Engine>(test: &str, engine: E) -> (std::path::PathBuf, Manager<E>) {
    let path = directory(test).join("ledger");
    let manager = Manager::create(&path, WITH_TIMES, T, engine).unwrap();
    (path, manager)
}

#[test]
fn the_plan_has_time_to_allocate_and_release() {
    let mut engine = Simulated::with_phases(10, 5);
    let (path, mut manager) = manager("plan-times", &mut engine);
    let caller = user("u");
    let run = |run_s| Wish { run_s: Some(run_s), ..wish("2:ncpus=8", 100) };
    let first = manager.submit(&caller, &run(40)).unwrap()[0];
    let second = manager.submit(&caller, &run(400)).unwrap()[0];
    let row = |manager: &Manager<&mut Simulated>, id| manager.details(id).unwrap().0;
    assert_eq!(row(&manager, first).end_s, Some(T + 150), "30 + 100 + 20");
    assert_eq!(row(&manager, second).start_s, Some(T + 150));
    manager.advance(T + 1).unwrap();
    assert_eq!(row(&manager, first).phase, Some(Phase::Allocating));
    manager.advance(T + 10).unwrap();
    let running = row(&manager, first);
    assert_eq!((running.phase, running.ready_s), (None, Some(T + 10)));
    // It is over at 50, and its nodes are to be free until 70.
    manager.advance(T + 50).unwrap();
    let releasing = row(&manager, first);
    let expected = (Some(Phase::Releasing), Some(T + 70), Some("completed"));
    let found = (releasing.phase, releasing.end_s, releasing.outcome.as_deref());
    assert_eq!(found, expected);
    assert_eq!(row(&manager, second).start_s, Some(T + 70));
    // The planner that is started anew knows all of that.
    drop(manager);
    let access = pbs_manager::ledger::Access::Write;
    let (mut manager, recovered) = Manager::open(&path, access, &mut engine).unwrap();
    assert_eq!((recovered.moved.len(), recovered.lost.len()), (0, 0));
    assert_eq!(row(&manager, first), releasing);
    manager.advance(T + 56).unwrap();
    let over = row(&manager, first);
    assert_eq!((over.state, over.phase), (State::Ended, None));
    assert_eq!(over.outcome.unwrap(), "completed");
    let next = row(&manager, second);
    assert_eq!((next.start_s, next.phase), (Some(T + 55), Some(Phase::Allocating)));
    // Its hundred seconds count from when its nodes are ready.
    manager.advance(T + 164).unwrap();
    assert_eq!(row(&manager, second).phase, None);
    manager.advance(T + 165).unwrap();
    let late = row(&manager, second);
    assert_eq!(late.phase, Some(Phase::Releasing));
    assert_eq!(late.outcome.as_deref(), Some("aborted at its end"));
    manager.advance(T + 200).unwrap();
    assert_eq!(row(&manager, second).end_s, Some(T + 170));
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

#[test]
fn nodes_that_are_not_ready_in_time_are_down() {
    let (path, mut manager) = manager("nodes-not-ready", Simulated::with_phases(31, 5));
    let caller = user("u");
    let mine = Wish { run_s: Some(10), ..wish("ncpus=8", 100) };
    let id = manager.submit(&caller, &mine).unwrap()[0];
    manager.advance(T + 29).unwrap();
    let (row, _) = manager.details(id).unwrap();
    let node = row.nodes[0].node.clone();
    manager.advance(T + 30).unwrap();
    assert_eq!(manager.node_state(&node), Some(NodeState::Down));
    let out: Vec<_> = manager.nodes_out().map(|row| row.why.clone()).collect();
    assert_eq!(out, [format!("not ready for request {id} within 30s")]);
    // It has not begun, and starts on the other.
    let (row, _) = manager.details(id).unwrap();
    assert_ne!(row.nodes[0].node, node);
    assert_eq!((row.phase, row.start_s), (Some(Phase::Allocating), Some(T + 30)));
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

#[test]
fn nodes_that_are_not_free_in_time_are_down() {
    let (path, mut manager) = manager("nodes-not-free", Simulated::with_phases(1, 21));
    let caller = user("u");
    let mine = Wish { run_s: Some(10), ..wish("ncpus=8", 100) };
    let id = manager.submit(&caller, &mine).unwrap()[0];
    manager.advance(T + 31).unwrap();
    let (row, _) = manager.details(id).unwrap();
    assert_eq!((row.state, row.outcome.as_deref()), (State::Ended, Some("completed")));
    let out: Vec<_> = manager.nodes_out().map(|row| row.why.clone()).collect();
    assert_eq!(out, [format!("not free of request {id} within 20s")]);
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

#[test]
fn silent_nodes_are_down_until_they_report() {
    let mut engine = Observed::default();
    let (path, mut manager) = manager("silent-nodes", &mut engine);
    let caller = user("u");
    let again = Wish { is_restartable: true, ..wish("ncpus=8", 1000) };
    let id = manager.submit(&caller, &again).unwrap()[0];
    manager.advance(T + 10).unwrap();
    let (row, _) = manager.details(id).unwrap();
    assert_eq!(row.nodes[0].node, "n1");
    drop(manager);
    let write = pbs_manager::ledger::Access::Write;
    // Nobody waits for a node that was never heard of.
    engine.heard = vec![("n1".into(), T + 10), ("elsewhere".into(), T)];
    let mut manager = Manager::open(&path, write, &mut engine).unwrap().0;
    assert_eq!(manager.next_s(), Some(T + 70));
    manager.advance(T + 69).unwrap();
    assert_eq!(manager.node_state("n1"), None);
    manager.advance(T + 71).unwrap();
    assert_eq!(manager.node_state("n1"), Some(NodeState::Down));
    assert_eq!(manager.node_state("n2"), None);
    let (row, _) = manager.details(id).unwrap();
    assert_eq!((row.nodes[0].node.as_str(), row.start_s), ("n2", Some(T + 70)));
    drop(manager);
    engine.heard = vec![("n1".into(), T + 80)];
    let mut manager = Manager::open(&path, write, &mut engine).unwrap().0;
    manager.advance(T + 80).unwrap();
    assert_eq!(manager.node_state("n1"), None);
    // What an operator took out stays out.
    let offline = NodeState::Offline;
    manager.node_out(&operator(), "n1", offline, "disk").unwrap();
    manager.advance(T + 90).unwrap();
    assert_eq!(manager.node_state("n1"), Some(offline));
    drop(manager);
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

#[test]
fn the_horizon_of_a_site_is_kept() {
    let mut cluster = small("horizon-site");
    let text = format!("planning_horizon = '1m40s'\n{SITE}");
    cluster.reopen_with(&text);
    let ids: Vec<_> = (0..3)
        .map(|_| cluster.submit(&Wish { run_s: Some(30), ..wish("2:ncpus=8", 80) }))
        .collect();
    assert_eq!(cluster.row(ids[1]).start_s, Some(T + 80));
    assert_eq!(cluster.row(ids[2]).state, State::Waiting);
    cluster.reopen();
    // Nothing else happens until it is near enough.
    cluster.manager.advance(T + 29).unwrap();
    assert_eq!(cluster.row(ids[2]).state, State::Waiting);
    cluster.manager.advance(T + 1000).unwrap();
    let ends: Vec<_> = ids.iter().map(|&id| cluster.row(id).end_s).collect();
    assert_eq!(ends, [Some(T + 30), Some(T + 60), Some(T + 90)]);
}

#[test]
fn users_resize_running_requests() {
    let mut cluster = small("users-resize");
    let mine = cluster.submit(&wish("4:ncpus=4", 100));
    let next = cluster.submit(&wish("ncpus=4", 10));
    let rset = |count| format!("{count}:ncpus=4").parse().unwrap();
    let (me, other) = (user("u"), user("other"));
    let refused = cluster.manager.resize(&me, mine, &rset(2));
    assert!(matches!(refused, Err(Error::Wrong(_))), "{refused:?}");
    cluster.manager.advance(T + 10).unwrap();
    let refused = cluster.manager.resize(&other, mine, &rset(2));
    assert!(matches!(refused, Err(Error::NotPermitted(_))), "{refused:?}");
    cluster.manager.resize(&me, mine, &rset(2)).unwrap();
    assert_eq!(cluster.row(mine).cores, 8);
    assert_eq!(cluster.row(next).start_s, Some(T + 10));
    cluster.manager.advance(T + 10).unwrap();
    let before = cluster.rows();
    let refused = cluster.manager.resize(&me, mine, &rset(4));
    assert!(matches!(refused, Err(Error::Declined(_))), "{refused:?}");
    assert_eq!(cluster.rows(), before);
    cluster.manager.resize(&me, mine, &rset(3)).unwrap();
    assert_eq!(cluster.row(mine).cores, 12);
    cluster.reopen();
    assert_eq!(cluster.row(mine).rset, "rset=3:ncpus=4");
    cluster.manager.advance(T + 200).unwrap();
    assert_eq!(cluster.row(mine).outcome.unwrap(), "completed");
}

#[test]
fn users_are_locked_by_time() {
    let mut cluster = small("users-locked");
    let text = format!(
        "{SITE}[[user]]\nname = 'u'\nvalidity = 'until @{}'\n[[user]]\nname = 'v'\n",
        T + 100
    );
    cluster.reopen_with(&text);
    cluster.submit(&wish("ncpus=1", 1));
    cluster.manager.advance(T + 100).unwrap();
    let refused = cluster.manager.submit(&user("u"), &wish("ncpus=1", 1));
    assert!(matches!(refused, Err(Error::Declined(_))), "{refused:?}");
    cluster.submit(&Wish { user: "v".into(), ..wish("ncpus=1", 1) });
}

#[test]
fn unsupported_requests_are_refused() {
    let mut cluster = small("unsupported-requests");
    // Malleable: from 2 to 8 cores.
    assert!("ncpus=2-8".parse::<pbs_resources::Rset>().is_err());
    // Preempting: an urgent request does not displace what is planned or runs.
    let first = cluster.submit(&wish("2:ncpus=8", 100));
    cluster.manager.advance(T + 1).unwrap();
    let urgent =
        Wish { when: When::Deadline { end_s: T + 50, late: false }, ..wish("ncpus=8", 10) };
    let refused = cluster.manager.submit(&user("u"), &urgent);
    assert!(matches!(refused, Err(Error::Declined(_))), "{refused:?}");
    assert_eq!(cluster.row(first).state, State::Running);
}

#[test]
fn programs_are_told_their_threads() {
    let mut engine = Observed::default();
    let (path, mut manager) = manager("threads", &mut engine);
    for rset in ["1:ncpus=1:ompthreads=2+1:ncpus=1:ompthreads=3", "ncpus=1"] {
        manager.submit(&user("u"), &Wish { run_s: Some(10), ..wish(rset, 100) }).unwrap();
        manager.advance(T + 1).unwrap();
    }
    drop(manager);
    assert_eq!(engine.threads, [Some(3), None]);
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

/// Engine that starts, watches and ends requests by itself, as a batch system does.
struct Watches(Simulated, Vec<Happened>);

impl Engine for Watches {
    fn start(&mut self, allocation: &Allocation) {
        self.0.start(allocation);
    }

    fn stop(&mut self, request: u64) {
        self.0.stop(request);
    }

    fn extend(&mut self, request: u64, until_s: u64) {
        self.0.extend(request, until_s);
    }

    fn notify(&mut self, _: u64) {}

    fn has_phases(&self) -> bool {
        true
    }

    fn fixed_before_s(&self) -> Option<u64> {
        Some(5)
    }

    fn next_s(&self) -> Option<u64> {
        self.0.next_s()
    }

    fn happened(&mut self, now_s: u64) -> Vec<Happened> {
        let told = std::mem::take(&mut self.1);
        told.into_iter().chain(self.0.happened(now_s)).collect()
    }
}

#[test]
fn a_watched_request_that_is_late_ends_no_other() {
    // Nodes are free 50 seconds after an end, and the site expects it after 20.
    let mut engine = Watches(Simulated::with_phases(1, 50), Vec::new());
    let (path, mut manager) = manager("watched-late", &mut engine);
    let caller = user("u");
    let run = |rset, run_s| Wish { run_s: Some(run_s), ..wish(rset, 100) };
    let first = manager.submit(&caller, &run("ncpus=4", 10)).unwrap()[0];
    let other = manager.submit(&caller, &run("ncpus=4", 90)).unwrap()[0];
    manager.advance(T + 35).unwrap();
    let row = |manager: &Manager<&mut Watches>, id| manager.details(id).unwrap().0;
    assert_eq!(row(&manager, first).nodes, row(&manager, other).nodes);
    let out: Vec<_> = manager.nodes_out().cloned().collect();
    assert_eq!((out.len(), out[0].state, out[0].is_late()), (1, NodeState::Offline, true));
    assert_eq!(out[0].why, format!("not free of request {first} within 20s"));
    // It is not over yet, the other runs on, and nothing new is planned there.
    assert_eq!(row(&manager, first).phase, Some(Phase::Releasing));
    assert_eq!((row(&manager, other).state, row(&manager, other).phase), (State::Running, None));
    let next = manager.submit(&caller, &run("ncpus=1", 10)).unwrap()[0];
    assert_ne!(row(&manager, next).nodes[0].node, out[0].name);
    manager.advance(T + 62).unwrap();
    assert_eq!(row(&manager, first).outcome.as_deref(), Some("completed"));
    // Not even a failed node ends what its engine watches.
    let node = out[0].name.clone();
    manager.engine_mut().1.push(Happened::NodeFailed { node, why: "test".into() });
    manager.advance(T + 64).unwrap();
    assert_eq!((row(&manager, other).state, row(&manager, other).phase), (State::Running, None));
    manager.advance(T + 200).unwrap();
    assert_eq!(row(&manager, other).outcome.as_deref(), Some("completed"));
    drop(manager);
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

/// Nodes that an engine reports together are planned round once: each request hears of it once.
#[test]
fn nodes_that_are_reported_together_move_each_request_once() {
    let site = "name = 'small'\n[[nodes]]\nname = 'n%d'\ncount = 4\nhas = 'ncpus=8'\n";
    let mut engine = Watches(Simulated::with_phases(1, 1), Vec::new());
    let path = directory("reported-together").join("ledger");
    let mut manager = Manager::create(&path, site, T, &mut engine).unwrap();
    let when = When::Fixed { start_s: T + 500 };
    let later = manager.submit(&user("u"), &Wish { when, ..wish("2:ncpus=8", 100) }).unwrap()[0];
    let row = |manager: &Manager<&mut Watches>| manager.details(later).unwrap().0;
    let names: Vec<String> = row(&manager).nodes.iter().map(|part| part.node.clone()).collect();
    // The same node twice, and one that the site does not have.
    let drained = [&names[0], &names[1], &names[1], &"n9".to_owned()]
        .map(|node| Happened::NodeDrained { node: node.clone(), why: "smoke".into() });
    manager.engine_mut().1.extend(drained);
    manager.advance(T + 2).unwrap();
    let told = manager.details(later).unwrap().1;
    let moved: Vec<_> = told.iter().filter(|event| event.what == "moved").collect();
    assert_eq!(moved.len(), 1, "{told:?}");
    assert!(row(&manager).nodes.iter().all(|part| !names.contains(&part.node)));
    assert_eq!(manager.nodes_out().count(), 2);
    let back = names.iter().map(|node| Happened::NodeBack { node: node.clone() });
    manager.engine_mut().1.extend(back);
    manager.advance(T + 4).unwrap();
    assert_eq!(manager.nodes_out().count(), 0);
    drop(manager);
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

/// Nodes that fail together abort each request once, and a reservation only if it has no other
/// node. Requests are told of all these nodes. One unknown name changes nothing.
#[test]
fn nodes_that_are_lost_together_are_told_together() {
    let mut cluster = small("lost-together");
    let site = "name = 'small'\n[[nodes]]\nname = 'n%d'\ncount = 4\nhas = 'ncpus=8'\n";
    cluster.reopen_with(site);
    let wide = cluster.submit(&wish("2:ncpus=8", 100));
    let held = Wish { user: "op".into(), ..wish("2:ncpus=4,place=scatter", 100) };
    let held = cluster.manager.reserve(&operator(), &held).unwrap();
    cluster.manager.advance(T).unwrap();
    let later = cluster.submit(&wish("4:ncpus=8", 50));
    assert_eq!(cluster.row(later).start_s, Some(T + 100));
    let name = |id, part: usize| cluster.row(id).nodes[part].node.clone();
    let names = [name(wide, 0), name(wide, 1), name(held, 0)];
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    let out = |cluster: &mut Cluster, names: &[&str]| {
        cluster.manager.nodes_out_of_use(&operator(), names, NodeState::Down, "smoke")
    };
    names.push("n9");
    assert!(matches!(out(&mut cluster, &names), Err(Error::NoNode(_))));
    assert_eq!(cluster.manager.nodes_out().count(), 0);
    names.pop();
    let replanned = out(&mut cluster, &names).unwrap();
    assert_eq!((replanned.aborted, replanned.waiting), (vec![wide], vec![later]));
    assert_eq!(cluster.row(held).state, State::Running);
    let told = cluster.manager.details(later).unwrap().1;
    let why = format!("nodes {} are down", names.join(" "));
    assert_eq!(told.iter().filter(|event| event.text == why).count(), 1, "{told:?}");
    cluster.reopen();
    assert_eq!(cluster.manager.nodes_out().count(), 3);
    let back = cluster.manager.nodes_back(&operator(), &names).unwrap();
    assert_eq!(back.moved, [later]);
    cluster.reopen();
    assert_eq!(cluster.manager.nodes_out().count(), 0);
}
