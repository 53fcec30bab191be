// SPDX-License-Identifier: GPL-2.0
//! A real Slurm, and `pbsctl cluster serve --slurm`: features and traps by their numbers.
//!
//! They need a cluster, and are run in one by `scripts/slurm-cluster run -- cargo test -p pbsctl
//! --test slurm -- --ignored --test-threads 1 --skip kill_wait --skip accounting`; those called
//! `kill_wait` in one with `--kill-wait 30`, and those called `accounting` in one with
//! `--accounting`. Jobs are those of the user `games`, the service runs as SlurmUser.

#[path = "common/slurm.rs"]
mod lab;
#[path = "common/slurmctld.rs"]
mod slurmctld;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use lab::*;
use pbs_site::Site;
use pbs_slurm::conf::site_of;
use serde_json::Value;
use slurmctld::{shown, Slurmctld, HERE, PARTITION};

#[test]
#[ignore = "needs a cluster"]
fn submitted_jobs_are_held_planned_and_shown() {
    let lab = Lab::new("submitted-jobs");
    let (said, is_well) = user(&["sbatch", "-p", "plan", "--wrap", "true"]);
    assert!(!is_well && said.contains("--time"), "{said}");
    let all = submit(&["-N16", "-n32", "-t1"], "sleep 5");
    let next = submit(&["-N2", "-n4", "-t1"], "sleep 1");
    until("it is held for good", || show(&next, "Reason") == "JobHeldAdmin");
    until("its plan is shown", || show(&next, "AdminComment").starts_with("\"planned"));
    // A date, as in "planned for 2026-12-01T08:00:00+00:00 on n[01-02]".
    let (text, _) = try_run("scontrol", &["show", "job", "-o", &next]);
    let told = text.split("AdminComment=\"planned for ").nth(1).unwrap_or_default();
    assert!(told.contains("T") && told.contains("+00:00 on n"), "{text}");
    // Neither its user nor anybody else's commands let it go.
    for attempt in [
        vec!["scontrol", "release", &*next],
        vec!["scontrol", "update", "JobId", &*next, "Priority=100"],
        vec!["scontrol", "update", "JobId", &*next, "ReqNodeList=n01"],
        vec!["scontrol", "update", "JobId", &*next, "StartTime=now"],
    ] {
        let (said, is_well) = user(&attempt);
        assert!(!is_well, "{attempt:?}: {said}");
    }
    lab.ends_as(&all, "completed");
    lab.ends_as(&next, "completed");
    let ran = nodes_of(&show(&next, "NodeList"));
    assert_eq!(ran, lab.planned_nodes(&next));
}

#[test]
#[ignore = "needs a cluster"]
fn arrays_steps_and_followers_run_as_planned() {
    let lab = Lab::new("arrays-steps");
    let array = submit(&["-N1", "-n1", "--mem=100", "-t1", "-a", "3-6"], "sleep 1");
    let after =
        submit(&["-N1", "-n1", "--mem=100", "-t1", "-d", &format!("afterok:{array}_4")], "true");
    for index in 3..=6 {
        lab.ends_as(&format!("{array}_{index}"), "completed");
    }
    lab.ends_as(&after, "completed");
    // Who waits for its job at the terminal waits for its plan.
    let (said, is_well) = user(&["srun", "-p", "plan", "-t1", "-n1", "--mem=100", "true"]);
    assert!(is_well, "{said}");
}

#[test]
#[ignore = "needs a cluster"]
fn drains_alterations_and_cancels_in_the_window_lead_to_new_plans() {
    let lab = Lab::new("drains-alterations");
    let job = submit(&["-N16", "-n16", "--mem=100", "-t1"], "sleep 8");
    until("it runs", || state(&job) == "RUNNING");
    // Its user wants more nodes.
    let next = submit(&["-N2", "-n4", "--exclusive", "--mem=100", "-t1"], "sleep 1");
    until("it is planned", || lab.planned_nodes(&next).len() == 2);
    let (said, is_well) = user(&["scontrol", "update", &format!("JobId={next}"), "NumNodes=4-4"]);
    assert!(is_well, "{said}");
    until("it is planned anew", || lab.planned_nodes(&next).len() == 4);
    // A node of it is drained.
    let node = lab.planned_nodes(&next)[0].clone();
    let drain = format!("NodeName={node}");
    run("scontrol", &["update", &drain, "State=DRAIN", "Reason=test"]);
    until("it is planned elsewhere", || {
        let nodes = lab.planned_nodes(&next);
        nodes.len() == 4 && !nodes.contains(&node)
    });
    lab.ends_as(&next, "completed");
    assert!(!nodes_of(&show(&next, "NodeList")).contains(&node));
    run("scontrol", &["update", &drain, "State=RESUME"]);
    // And one is cancelled.
    let last = submit(&["-N16", "-n32", "-t1"], "sleep 30");
    until("it has a plan", || !lab.rows(&last).is_empty());
    let (said, is_well) = user(&["scancel", &last]);
    assert!(is_well, "{said}");
    lab.ends_as(&last, "cancelled");
    lab.ends_as(&job, "completed");
}

#[test]
#[ignore = "needs a cluster"]
fn a_killed_planner_starts_nothing_twice() {
    let mut lab = Lab::new("killed-planner");
    let marks = lab.directory.join("marks");
    fs::create_dir(&marks).unwrap();
    fs::set_permissions(&marks, fs::Permissions::from_mode(0o777)).unwrap();
    let jobs: Vec<String> = (0..6)
        .map(|number| {
            let mark = marks.join(number.to_string());
            let script = format!("echo x >> {}; sleep 1", mark.display());
            submit(&["-N16", "-n32", "-t1"], &script)
        })
        .collect();
    for pause_ms in [0, 700, 1500, 300] {
        sleep(Duration::from_millis(pause_ms));
        lab.kill();
        // Dead for a while: what was let go may start, and nothing else does.
        sleep(Duration::from_millis(1500));
        let running = run("squeue", &["-h", "-t", "R", "-o", "%i"]);
        assert!(running.lines().count() <= 1, "{running}");
        lab.start();
    }
    for job in &jobs {
        lab.ends_as(job, "completed");
    }
    for number in 0..jobs.len() {
        let starts = fs::read_to_string(marks.join(number.to_string())).unwrap();
        assert_eq!(starts, "x\n", "job {number}");
    }
}

#[test]
#[ignore = "needs a cluster"]
fn a_killed_slurm_returns_with_its_jobs() {
    let lab = Lab::new("killed-slurm");
    let cluster = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/slurm-cluster");
    let long = submit(&["-N16", "-n16", "--mem=100", "-t1"], "sleep 16");
    let old = submit(&["-N16", "-n32", "-t1"], "sleep 1");
    until("it runs", || state(&long) == "RUNNING");
    until("it is planned", || !lab.planned_nodes(&old).is_empty());
    // What is older than some seconds is on Slurm's disk.
    sleep(Duration::from_secs(7));
    let new = submit(&["-N16", "-n32", "-t1"], "sleep 1");
    until("it has been seen", || !lab.rows(&new).is_empty());
    let pid = fs::read_to_string(slurm_directory().join("slurmctld.pid")).unwrap();
    run("kill", &["-KILL", pid.trim()]);
    sleep(Duration::from_secs(2));
    run(&cluster.to_string_lossy(), &["start-ctld"]);
    lab.ends_as(&long, "completed");
    lab.ends_as(&old, "completed");
    // The new one was saved, or it is told that it was not.
    until("the new one has ended", || !lab.outcome(&new).is_empty());
    let outcome = lab.outcome(&new);
    assert!(outcome == "completed" || outcome.starts_with("lost"), "{outcome}");
    // Its user is told that, too.
    let listed = lab.pbsctl(&["lost", "--user", USER]);
    let job = listed.lines().any(|line| line.split_whitespace().next() == Some(&*new));
    assert_eq!(job, outcome.starts_with("lost"), "{listed}");
    assert!(lab.pbsctl(&["lost", "--user", "nobody"]).starts_with("0 lost jobs"));
}

#[test]
#[ignore = "needs a cluster"]
fn requeued_jobs_wait_for_a_plan() {
    let lab = Lab::new("requeued-jobs");
    let job = submit(&["-N1", "-n1", "--mem=100", "-t1"], "sleep 4");
    until("it runs", || state(&job) == "RUNNING");
    let (_, is_well) = user(&["scontrol", "requeue", &job]);
    assert!(!is_well);
    run("scontrol", &["update", &format!("JobId={job}"), "Requeue=1"]);
    run("scontrol", &["requeue", &job]);
    until("it is another request", || lab.rows(&job).len() == 2);
    lab.ends_as(&job, "completed");
}

#[test]
#[ignore = "needs a cluster"]
fn an_overrunning_job_is_ended_and_minutes_are_whole() {
    let lab = Lab::new("overrunning-job");
    let job = submit(&["-N1", "-n1", "--mem=100", "-t", "00:00:30"], "sleep 3");
    until("it is planned", || !lab.rows(&job).is_empty());
    let duration = lab.rows(&job)[0]["duration_s"].as_u64();
    assert_eq!(duration, Some(60 + 5 + 5));
    lab.ends_as(&job, "completed");
}

/// Names of the nodes that are out of use, with the reasons.
fn nodes_out(lab: &Lab) -> Vec<(String, String)> {
    let all: Value = serde_json::from_str(&lab.pbsctl(&["node", "--json"])).unwrap();
    let out = all["out"].as_array().cloned().unwrap_or_default().into_iter();
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_string();
    out.map(|row| (text(&row, "name"), text(&row, "why"))).collect()
}

#[test]
#[ignore = "needs a cluster"]
fn what_users_ask_of_nodes_and_limits_disturbs_no_neighbour() {
    let lab = Lab::new("no-neighbour");
    let neighbours: Vec<String> =
        (0..8).map(|_| submit(&["-N1", "-n1", "--mem=100", "-t1"], "sleep 12")).collect();
    // Slurm shows other numbers of cores and nodes for these once their nodes are set.
    let shapes: [&[&str]; 4] = [
        &["-N2-4", "--mem=100", "-t1"],
        &["-N2", "--mincpus=2", "--mem=100", "-t1"],
        &["-n3", "-c2", "--mem=100", "-t1"],
        &["-n3", "-N2", "--ntasks-per-node=2", "--mem-per-cpu=100", "-t1"],
    ];
    let mut jobs: Vec<String> = shapes.iter().map(|shape| submit(shape, "sleep 1")).collect();
    // And one whose user changes his mind at once.
    let altered = submit(&["-N1", "-n1", "--mem=100", "-t2"], "sleep 1");
    let (said, is_well) = user(&["scontrol", "update", &format!("JobId={altered}"), "TimeLimit=1"]);
    assert!(is_well, "{said}");
    jobs.push(altered);
    for job in jobs.iter().chain(&neighbours) {
        lab.ends_as(job, "completed");
    }
    assert_eq!(nodes_out(&lab), []);
    assert!(!lab.log().contains("declined"), "{}", lab.log());
}

/// In a cluster with `--kill-wait 30`, which is Slurm's default.
#[test]
#[ignore = "needs a cluster"]
fn kill_wait_beyond_the_timeout_ends_no_neighbour() {
    let config = run("scontrol", &["show", "config"]);
    let kill_wait = config.lines().find(|line| line.starts_with("KillWait")).unwrap_or_default();
    assert!(kill_wait.contains("= 30 "), "{kill_wait}: start the cluster with --kill-wait 30");
    let lab = Lab::new("kill-wait");
    let ignores = "trap '' TERM; while :; do sleep 1; done";
    let job = submit(&["-N1", "-n1", "--mem=100", "-t2"], ignores);
    let neighbour = submit(&["-N1", "-n1", "--mem=100", "-t2"], "sleep 50");
    until("both run", || state(&job) == "RUNNING" && state(&neighbour) == "RUNNING");
    let node = show(&job, "NodeList");
    assert_eq!(show(&neighbour, "NodeList"), node);
    let (said, is_well) = user(&["scancel", &job]);
    assert!(is_well, "{said}");
    // It is killed after half a minute, and its nodes were to be free after five seconds.
    until("the node is late", || nodes_out(&lab).iter().any(|out| out.0 == node));
    assert!(nodes_out(&lab)[0].1.starts_with("not free of request"), "{:?}", nodes_out(&lab));
    assert_eq!(state(&neighbour), "RUNNING");
    // Others get nodes meanwhile, and that one afterwards.
    let other = submit(&["-N1", "-n1", "--mem=100", "-t1"], "sleep 1");
    lab.ends_as(&other, "completed");
    until("the node is in use again", || nodes_out(&lab).is_empty());
    lab.ends_as(&job, "cancelled");
    lab.ends_as(&neighbour, "completed");
}

/// The elements have their starts from the beginning, and no more of them run than their user wants.
#[test]
#[ignore = "needs a cluster"]
fn an_array_runs_as_many_elements_at_once_as_its_user_wants() {
    let lab = Lab::new("throttled-array");
    let array = submit(&["-n1", "--mem=100", "-t1", "--array=0-5%2"], "sleep 3");
    let name = |index: u32| format!("{array}_{index}");
    let most_at_once = |most: usize| {
        let running = run("squeue", &["-h", "-r", "-j", &array, "-t", "R", "-o", "%i"]);
        assert!(running.lines().count() <= most, "{running}");
        running.lines().count()
    };
    let mut seen = 0;
    until("two elements run", || {
        seen = seen.max(most_at_once(2));
        seen == 2
    });
    until("all have a start", || (0..6).all(|index| !lab.rows(&name(index)).is_empty()));
    let starts = (0..6).map(|index| lab.rows(&name(index))[0]["start_s"].to_string());
    let starts: std::collections::BTreeSet<String> = starts.collect();
    assert!(starts.len() >= 3, "{starts:?}");
    let all = format!("JobId={array}");
    let (said, is_well) = user(&["scontrol", "update", &all, "ArrayTaskThrottle=3"]);
    assert!(is_well, "{said}");
    until("all are over", || {
        most_at_once(3);
        (0..6).all(|index| lab.outcome(&name(index)) == "completed")
    });
}

/// Slurm has less memory than the site says: what can't start is committed once.
#[test]
#[ignore = "needs a cluster"]
fn a_job_that_slurm_would_never_start_is_declined() {
    let lab = Lab::of_site("never-started", &SITE.replace("mem=1000m", "mem=4000m"));
    let job = submit(&["-N1", "-n1", "--mem=2000", "-t1"], "true");
    until("Slurm's reason is shown", || {
        let (text, _) = try_run("scontrol", &["show", "job", "-o", &job]);
        text.contains("AdminComment=\"declined: Slurm cannot start it as it is (BadConstraints)")
    });
    let row = lab.rows(&job).pop().unwrap();
    let next = submit(&["-N1", "-n1", "--mem=100", "-t1"], "true");
    lab.ends_as(&next, "completed");
    // The end of another is no reason to try it again.
    assert_eq!(lab.rows(&job), [row]);
    let (said, is_well) =
        user(&["scontrol", "update", &format!("JobId={job}"), "MinMemoryNode=100"]);
    assert!(is_well, "{said}");
    lab.ends_as(&job, "completed");
}

/// A reservation for maintenance keeps jobs away from its nodes. They are not out of use, and what
/// is planned behind them moves up when the reservation is deleted.
#[test]
#[ignore = "needs a cluster"]
fn plans_go_round_reservations_of_slurm() {
    let lab = Lab::new("reservations");
    let nodes = "Nodes=n[01-15]";
    let mut create = vec!["create", "reservation", "ReservationName=maint", "StartTime=now+12"];
    create.extend(["Duration=2", "Users=root", "Flags=MAINT,IGNORE_JOBS", nodes]);
    run("scontrol", &create);
    let wide = submit(&["-N16", "-n16", "--mem=100", "-t1"], "true");
    until("it is planned", || lab.rows(&wide).iter().any(|row| row["start_s"].as_u64().is_some()));
    let start_s = || lab.rows(&wide)[0]["start_s"].as_u64().unwrap();
    let planned_s = start_s();
    let all: Value = serde_json::from_str(&lab.pbsctl(&["node", "--json"])).unwrap();
    let closed = all["closed"].as_array().unwrap();
    assert_eq!(closed.len(), 15, "{all}");
    assert_eq!(closed[0]["why"], "reservation maint for users root");
    assert!(planned_s >= closed[0]["times"][0][1].as_u64().unwrap(), "{planned_s}: {all}");
    // Who may not use it is refused by Slurm.
    let (said, is_well) =
        user(&["sbatch", "-p", "plan", "-t1", "--reservation=maint", "--wrap", "true"]);
    assert!(!is_well && said.contains("reservation"), "{said}");
    until("the reservation is active", || {
        run("sinfo", &["-h", "-N", "-n", "n01", "-o", "%T"]).starts_with("maint")
    });
    let small = submit(&["-N1", "-n1", "--mem=100", "-t1"], "true");
    lab.ends_as(&small, "completed");
    assert_eq!(show(&small, "NodeList"), "n16");
    assert_eq!(nodes_out(&lab), []);
    assert!(state(&wide) == "PENDING" && start_s() >= planned_s, "{}", start_s());
    run("scontrol", &["delete", "ReservationName=maint"]);
    lab.ends_as(&wide, "completed");
    assert!(start_s() < planned_s);
}

/// Jobs of a reservation run on its nodes in its time, and nobody else is planned there. What waits
/// when it ends waits for its user.
#[test]
#[ignore = "needs a cluster"]
fn jobs_in_reservations_of_slurm_are_left_to_it() {
    let lab = Lab::new("left");
    let create = |name: &str, start: &str, nodes: &str, flags: &str| {
        let all = [format!("ReservationName={name}"), format!("StartTime={start}")];
        let rest = ["Duration=1".into(), "Users=games".into(), format!("Nodes={nodes}")];
        let flags = format!("Flags=IGNORE_JOBS{flags}");
        let mut words = vec!["create", "reservation"];
        words.extend(all.iter().chain(&rest).map(String::as_str).chain([&*flags]));
        run("scontrol", &words);
    };
    create("course", "now+20", "n[01-02]", "");
    create("flex", "now+600", "n[03-04]", ",FLEX");
    let in_course = ["-N2", "-n4", "--mem=100", "-t1", "--reservation=course"];
    let first = submit(&in_course, "sleep 3");
    let long = submit(&[&in_course[..3], &["-t9", "--reservation=course"]].concat(), "sleep 400");
    let next = submit(&in_course, "true");
    let flex = submit(&["-n1", "--mem=100", "-t1", "--reservation=flex"], "true");
    let told = |job: &str| {
        let (text, _) = try_run("scontrol", &["show", "job", "-o", job]);
        let text = text.split("AdminComment=\"").nth(1).unwrap_or_default().to_string();
        text.split('"').next().unwrap_or_default().to_string()
    };
    until("it is left to Slurm", || told(&first) == "left to Slurm in reservation course");
    until("one that could go elsewhere is declined", || told(&flex).contains("(FLEX)"));
    assert_eq!(show(&flex, "Reason"), "JobHeldAdmin");
    // Others run beside, and on all nodes afterwards.
    let beside = submit(&["-N14", "-n28", "--mem=100", "-t1"], "true");
    let wide = submit(&["-N16", "-n16", "--mem=100", "-t1"], "true");
    lab.ends_as(&beside, "completed");
    assert_eq!(show(&beside, "NodeList"), "n[03-16]");
    // Its user takes a job out of the reservation: only while it is held.
    let other = submit(&in_course, "true");
    until("it is left to Slurm", || show(&other, "Reason") == "Reservation");
    let job = format!("JobId={other}");
    let out = ["scontrol", "update", &job, "ReservationName="];
    assert!(!user(&out).1, "it would start at once");
    assert!(user(&["scontrol", "hold", &other]).1 && user(&out).1);
    assert!(user(&["scontrol", "release", &other]).1);
    lab.ends_as(&other, "completed");
    until("the first one is over", || state(&first) == "COMPLETED");
    assert_eq!(show(&first, "NodeList"), "n[01-02]");
    until("the next one runs", || state(&long) == "RUNNING");
    let planned_s = lab.rows(&wide)[0]["start_s"].as_u64().unwrap();
    sleep(Duration::from_secs(45));
    until("Slurm ends it with the reservation", || state(&long) == "TIMEOUT");
    until("the last one waits for its user", || told(&next).starts_with("held, since its res"));
    assert!(user(&["scontrol", "release", &next]).1);
    lab.ends_as(&wide, "completed");
    lab.ends_as(&next, "completed");
    assert!(lab.rows(&wide)[0]["start_s"].as_u64().unwrap() <= planned_s);
    for job in [&first, &long] {
        assert!(lab.rows(job).is_empty());
    }
    run("scancel", &[&flex]);
    assert_eq!(nodes_out(&lab), []);
}

/// Two jobs of one core would have room beside each other on each node, but for their disk space.
#[test]
#[ignore = "needs a cluster"]
fn disk_space_of_nodes_is_planned() {
    let lab = Lab::of_site("disk-space", &SITE.replace("mem=1000m", "mem=1000m:tmp-disk=2000m"));
    let options = ["-N16", "-n16", "--mem=100", "-t1"];
    let with = |tmp: &'static str| [&options[..], &[tmp]].concat();
    let jobs: Vec<String> =
        ["--tmp=1500", "--tmp=1G"].map(|tmp| submit(&with(tmp), "sleep 2")).into();
    let start_s = |job: &String| lab.rows(job).first().and_then(|row| row["start_s"].as_u64());
    until("both are planned", || jobs.iter().all(|job| start_s(job).is_some()));
    assert_ne!(start_s(&jobs[0]), start_s(&jobs[1]));
    for job in &jobs {
        lab.ends_as(job, "completed");
    }
    assert!(start_s(&jobs[1]) > start_s(&jobs[0]));
}

/// A job stays away from the nodes that its user excludes, at its submission or later.
#[test]
#[ignore = "needs a cluster"]
fn excluded_nodes_are_not_used() {
    let lab = Lab::new("excluded-nodes");
    let long = submit(&["-N2", "-n4", "--mem=100", "-t1", "--exclude=n[03-16]"], "sleep 6");
    until("it runs", || state(&long) == "RUNNING");
    assert_eq!(show(&long, "NodeList"), "n[01-02]");
    let next = submit(&["-N14", "-n28", "--mem=100", "-t1", "--exclude=n01,n02"], "sleep 3");
    let last = submit(&["-N1", "-n1", "--mem=100", "-t1", "--exclude=n03"], "true");
    until("it is planned", || !lab.planned_nodes(&last).is_empty());
    let of_last = format!("JobId={last}");
    let (said, is_well) = user(&["scontrol", "update", &of_last, "ExcNodeList=n[01-04]"]);
    assert!(is_well || state(&last) != "PENDING", "{said}");
    for job in [&long, &next, &last] {
        lab.ends_as(job, "completed");
    }
    assert_eq!(show(&next, "NodeList"), "n[03-16]");
    let ran = show(&last, "NodeList");
    assert!(!["n01", "n02", "n03", "n04"].contains(&&*ran) || !is_well, "{ran}");
}

/// The nodes of two jobs fail. One job was submitted with --requeue, and is planned anew; the other
/// is over.
#[test]
#[ignore = "needs a cluster"]
fn jobs_of_a_failed_node_wait_again_if_their_users_say() {
    let lab = Lab::new("failed-node");
    let cluster = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/slurm-cluster");
    let script = "[ -n \"$SLURM_RESTART_COUNT\" ] || sleep 100";
    let again = submit(&["-N1", "-n2", "--mem=100", "-t2", "--requeue"], script);
    let once = submit(&["-N1", "-n2", "--mem=100", "-t2"], script);
    until("both run", || state(&again) == "RUNNING" && state(&once) == "RUNNING");
    let nodes = [show(&again, "NodeList"), show(&once, "NodeList")];
    for node in &nodes {
        let pid = slurm_directory().join(format!("slurmd-{node}.pid"));
        run("kill", &["-KILL", fs::read_to_string(pid).unwrap().trim()]);
    }
    lab.ends_as(&once, "node failed");
    until("it is another request", || lab.rows(&again).len() == 2);
    lab.ends_as(&again, "completed");
    assert!(!nodes.contains(&show(&again, "NodeList")), "{nodes:?}");
    assert_eq!(lab.rows(&once).len(), 1);
    for node in &nodes {
        run(&cluster.to_string_lossy(), &["start-node", node]);
    }
    until("the nodes are back", || nodes_out(&lab).is_empty());
}

/// A planned job that loses its place shows no start and no nodes any more.
#[test]
#[ignore = "needs a cluster"]
fn a_job_without_a_place_shows_no_start() {
    let lab = Lab::new("no-start");
    let long = submit(&["-N16", "-n32", "-t1"], "sleep 8");
    let next = submit(&["-N16", "-n32", "-t1"], "true");
    until("the first one runs", || state(&long) == "RUNNING");
    until("its plan is shown", || show(&next, "AdminComment").starts_with("\"planned"));
    let start = || run("squeue", &["-h", "-j", &next, "-o", "%S"]);
    let planned = start();
    run("scontrol", &["update", "NodeName=n[01-16]", "State=DRAIN", "Reason=test"]);
    until("it shows that it waits", || show(&next, "AdminComment").starts_with("\"waits"));
    assert_ne!(start(), planned);
    lab.ends_as(&long, "completed");
    assert_eq!(state(&next), "PENDING");
    run("scontrol", &["update", "NodeName=n[01-16]", "State=RESUME"]);
    lab.ends_as(&next, "completed");
}

/// Jobs in a cluster with `--accounting` wait for a limit of their account or their QOS. Those of
/// others start as planned, and the ones that wait run when the limit lets them.
#[test]
#[ignore = "needs a cluster"]
fn accounting_limits_delay_only_jobs_of_their_users() {
    let config = run("scontrol", &["show", "config"]);
    let enforced = config.lines().find(|line| line.starts_with("AccountingStorageEnforce"));
    let enforced = enforced.unwrap_or_default();
    assert!(enforced.contains("limits"), "{enforced}: start the cluster with --accounting");
    let lab = Lab::new("accounting");
    let other = |options: &[&str], script: &str| submit_as("daemon", options, script);
    let one = |options: &[&str], script: &str| {
        submit(&[&["-N1", "-n2", "--mem=100", "-t1"], options].concat(), script)
    };
    let (said, is_well) = user(&["sbatch", "-p", "plan", "-t1", "--qos=absent", "--wrap", "true"]);
    assert!(!is_well && said.contains("qos"), "{said}");
    let first = [one(&["-A", "small"], "sleep 50"), one(&["--qos=one"], "sleep 50")];
    until("both run", || first.iter().all(|job| state(job) == "RUNNING"));
    let second = [one(&["-A", "small"], "true"), one(&["--qos=one"], "true")];
    // Those that wait have two nodes of their own, and are tried there again at once.
    let beside: Vec<String> =
        (0..5).map(|_| other(&["-N12", "-n24", "--mem=100", "-t1"], "sleep 5")).collect();
    let start_s = |job: &String| lab.rows(job).first().and_then(|row| row["start_s"].as_u64());
    until("the others are planned", || beside.iter().all(|job| start_s(job).is_some()));
    let planned: Vec<u64> = beside.iter().filter_map(start_s).collect();
    let told = |job: &str| try_run("scontrol", &["show", "job", "-o", job]).0;
    until("the reasons are told", || {
        told(&second[0]).contains("several times (AssocGrpCpuLimit)")
            && told(&second[1]).contains("several times (QOSMaxJobsPerUserLimit)")
    });
    for (job, planned_s) in beside.iter().zip(planned) {
        lab.ends_as(job, "completed");
        assert!(start_s(job) <= Some(planned_s), "{job}: {planned_s} {:?}", start_s(job));
        // In Slurm, it began when it was planned.
        let date = show(job, "StartTime");
        let began_s: u64 = run("date", &["-d", &date, "+%s"]).trim().parse().unwrap();
        assert!(began_s <= planned_s + 3, "{job}: {began_s} {planned_s}");
    }
    // They wait a while before they are planned again.
    sleep(Duration::from_secs(20));
    for job in first.iter().chain(&second) {
        lab.ends_as(job, "completed");
    }
    assert_eq!(nodes_out(&lab), []);
}

/// Nodes of many kinds, of which slurmctld says what jobs get.
const NODES: &[&str] = &[
    "CPUs=16 RealMemory=64000",
    "CPUs=16 CpuSpecList=0,8 RealMemory=64000 MemSpecLimit=4000",
    "CPUs=16 Sockets=2 CoresPerSocket=8 ThreadsPerCore=2 CoreSpecCount=2",
    "CPUs=16 Sockets=2 CoresPerSocket=8 ThreadsPerCore=2 CpuSpecList=0,8",
    "CPUs=32 Sockets=2 CoresPerSocket=8 ThreadsPerCore=2 CoreSpecCount=2",
    "Sockets=2 CoresPerSocket=8 ThreadsPerCore=2 CpuSpecList=0,1,4",
    "Sockets=2 CoresPerSocket=8 ThreadsPerCore=2 CpuSpecList=0-3",
    "Sockets=2 CoresPerSocket=8 ThreadsPerCore=4 CoreSpecCount=3",
    "Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 CpuSpecList=0,1,2 CoreSpecCount=3",
    "Boards=2 SocketsPerBoard=2 CoresPerSocket=2 ThreadsPerCore=2",
    "Boards=2 Sockets=4 CoresPerSocket=2",
    "Boards=2 CPUs=8",
    "CPUs=8 Sockets=2 SocketsPerBoard=4",
    "CPUs=12 CoresPerSocket=3 ThreadsPerCore=2",
    "CPUs=8 ThreadsPerCore=2",
    "",
    // Slurm corrects these.
    "CPUs=0",
    "CPUs=7 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2",
    "CPUs=10 CoresPerSocket=3",
    "CPUs=4 CoreSpecCount=4",
    "CPUs=4 CoreSpecCount=9",
    "CPUs=1 CoreSpecCount=1",
    "CPUs=4 CpuSpecList=0-3",
    "CPUs=8 CpuSpecList=3-1",
    "CPUs=4 RealMemory=100 MemSpecLimit=100",
    "CPUs=4 MemSpecLimit=2000 RealMemory=1000",
    // It ignores a list with a CPU that the node does not have.
    "CPUs=4 CpuSpecList=9",
    "CPUs=4 CpuSpecList=0,9",
    "CPUs=16 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 CpuSpecList=16 CoreSpecCount=1",
    "CPUs=8 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 CpuSpecList=12 CoreSpecCount=1",
    // Numbers as in C.
    "CPUs=010 RealMemory=64K",
    "Procs=8 RealMemory=0x100",
];
/// Values of nodes that do not declare them.
const DEFAULT: &str = "NodeName=DEFAULT CoreSpecCount=1 RealMemory=500 MemSpecLimit=100";
/// Nodes below that line.
const NODES_BY_DEFAULT: &[&str] = &[
    "CPUs=8",
    "CPUs=8 CpuSpecList=0-2",
    "CPUs=8 CoreSpecCount=0 MemSpecLimit=0",
    "CPUs=16 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 CpuSpecList=15",
];

#[test]
#[ignore = "needs a cluster"]
fn cpus_and_memory_of_nodes_are_those_of_slurmctld() {
    let mut lines = String::new();
    for (number, line) in NODES.iter().chain(NODES_BY_DEFAULT).enumerate() {
        if number == NODES.len() {
            lines += &format!("{DEFAULT}\n");
        }
        lines += &format!("NodeName=k{number} {HERE} {line}\n");
    }
    let all = NODES.len() + NODES_BY_DEFAULT.len();
    for select in ["CR_Core_Memory", "CR_CPU_Memory"] {
        let slurm = Slurmctld::new("kinds", select, &lines);
        let nodes = slurm.conf().nodes(PARTITION);
        let all_shown = slurm.ask("scontrol", &["show", "node", "-o"]);
        let all_shown: Vec<&str> = all_shown.lines().collect();
        assert_eq!((nodes.len(), all_shown.len()), (all, all));
        let mut different = Vec::new();
        for (node, line) in nodes.iter().zip(NODES.iter().chain(NODES_BY_DEFAULT)) {
            let name = format!("NodeName={} ", node.name);
            let text = all_shown.iter().find(|text| text.starts_with(&name)).unwrap();
            let of = |key| shown(text, key);
            let cores = of("Sockets") * of("CoresPerSocket");
            let (cpus, of_core) = (of("CPUTot"), (of("CPUTot") / cores.max(1)).max(1));
            let kept = of("CoreSpecCount") * of_core;
            assert_eq!(cpus - kept, of("CPUEfctv"), "{line}: {text}");
            let slurms = (of("CPUEfctv"), of_core, of("RealMemory") - of("MemSpecLimit"));
            let ours = (node.cpus, node.cpus_per_core, node.memory_mib);
            if ours != slurms {
                different.push(format!("{line}: {ours:?} and not {slurms:?}"));
            }
        }
        assert!(different.is_empty(), "{select}: {different:#?}");
    }
}

#[test]
#[ignore = "needs a cluster"]
fn a_job_of_one_cpu_takes_as_many_as_slurm_allocates_together() {
    let threads = "Sockets=1 CoresPerSocket=2 ThreadsPerCore=2";
    for (select, node, cpus) in [
        ("CR_Core", threads, 2),
        ("CR_CPU", threads, 2),
        ("CR_CPU", "CPUs=4", 1),
        ("CR_Core", "CPUs=2 Sockets=1 CoresPerSocket=2 ThreadsPerCore=2", 1),
    ] {
        let node = format!("NodeName=smt {HERE} RealMemory=500 {node}");
        let mut slurm = Slurmctld::new("smt", select, &node);
        let site = Site::from_toml(&site_of(&slurm.conf(), PARTITION)).unwrap();
        slurm.start_node("smt");
        slurm.ask("sbatch", &["-n1", "-t1", "-o", "/dev/null", "-D", "/tmp", "--wrap", "sleep 9"]);
        let mut allocated = 0;
        until("the job runs", || {
            allocated = shown(&slurm.ask("scontrol", &["show", "node", "-o", "smt"]), "CPUAlloc");
            allocated > 0
        });
        assert_eq!((allocated, site.threads_per_core), (cpus, cpus), "{select}: {node}");
    }
}
