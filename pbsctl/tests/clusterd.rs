// SPDX-License-Identifier: GPL-2.0
//! Commands for clusters that call the service, which runs in the process of the test.

mod common;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use common::schemas::Schemas;
use common::{directory, pbsctl, Ran};
use pbs_clusterd::limits::{Limits, CALLS, OPERATOR_SHARE};
use pbs_clusterd::pace::Clock;
use pbs_clusterd::service::Service;
use pbs_clusterd::session::{self, Notices};
use pbs_launch::signals::Signals;
use pbs_manager::ledger::{Access, Ledger};
use pbs_manager::{Manager, Simulated};
use pbs_socket::ConnectionLimits;
use serde_json::Value;

const SITE: &str = "name = 'lab'\n[[nodes]]\nname = 'n%02d'\ncount = 2\nhas = 'ncpus=16'\n";

/// A ledger that a service has, and one with the same site and clock in a file alone.
struct Lab {
    socket: PathBuf,
    file: PathBuf,
    user: String,
    /// A time for which both plan the same.
    later: String,
    notices: Notices,
}

impl Lab {
    fn new(test: &str) -> Self {
        Self::with_limits(test, Limits::DEFAULT)
    }

    fn with_limits(test: &str, limits: Limits) -> Self {
        Self::of_site(test, SITE, limits)
    }

    fn of_site(test: &str, site: &str, limits: Limits) -> Self {
        let files = directory(test, &[]);
        let (served, file) = (files.join("served.db"), files.join("file.db"));
        let clock_s = pbs_uapi::clock::unix_s();
        for ledger in [&served, &file] {
            Ledger::create(ledger, site, clock_s).unwrap();
        }
        // Names of sockets are short.
        let name = format!("pbsctl-{test}-{}", std::process::id());
        let socket = std::env::temp_dir().join(name).join("s");
        let notices = serve(&socket, served, limits);
        let uid = fs::metadata("/proc/self").unwrap().uid();
        let user = pbs_socket::user_name(uid);
        Self { socket, file, user, later: format!("@{}", clock_s + 86_400), notices }
    }

    /// Runs a command with the service, and with the file.
    fn both(&self, arguments: &[&str]) -> [Ran; 2] {
        let (socket, file) = (self.socket.to_str().unwrap(), self.file.to_str().unwrap());
        let with = |more: &[&str]| {
            let place = arguments.iter().position(|it| *it == "cluster").map_or(0, |at| at + 2);
            let mut all = arguments.to_vec();
            all.splice(place..place, more.iter().copied());
            pbsctl(&all, "")
        };
        [with(&["--service", socket]), with(&["--ledger", file, "--user", &self.user])]
    }

    /// Returns what both say, which must be the same.
    #[track_caller]
    fn say(&self, arguments: &[&str]) -> String {
        let [of_service, of_file] = self.both(arguments);
        assert_eq!(of_service.stderr, of_file.stderr, "{arguments:?}");
        assert_eq!(of_service.stdout, of_file.stdout, "{arguments:?}");
        assert_eq!(of_service.status, of_file.status, "{arguments:?}");
        of_service.stdout + &of_service.stderr
    }
}

fn serve(socket: &Path, ledger: PathBuf, held: Limits) -> Notices {
    let listener = pbs_socket::listen(socket).unwrap();
    let (sender, mut inbox) = pbs_socket::inbox(CALLS).unwrap();
    let notices = session::notices();
    let (of_thread, of_lab) = (notices.downgrade(), notices.clone());
    let (stop, stopped) = session::stop();
    let limits = ConnectionLimits::DEFAULT;
    thread::spawn(move || session::serve(listener, limits, &sender, &of_thread, stopped));
    thread::spawn(move || {
        let _stop = stop;
        let signals = Signals::new().unwrap();
        let opened = Manager::open(&ledger, Access::Write, Simulated::default());
        let cluster = opened.unwrap().0;
        Service::new(cluster, Clock, signals, held, notices).run(&mut inbox).unwrap();
    });
    of_lab
}

/// Text, errors and exit statuses do not depend on the way to the cluster.
#[test]
fn commands_say_the_same_of_a_service_and_a_file() {
    let lab = Lab::new("clusterd-same");
    let at = ["--start", &lab.later, "-t", "1h"];
    let alloc = |more: &[&str]| {
        let mut all = vec!["cluster", "alloc"];
        all.extend(at);
        all.extend(more);
        lab.say(&all)
    };
    let said = alloc(&["--res", "rset=2:ncpus=16,place=scatter", "-N", "run", "--", "./app"]);
    assert!(said.starts_with("request 1: planned, ") && said.contains("n01 n02"), "{said}");
    let said = alloc(&["--res", "rset=ncpus=1"]);
    assert!(said.contains("the request is declined: "), "{said}");
    let said = alloc(&["--res", "rset=gpus=1"]);
    assert!(said.contains("the site has no resource gpus"), "{said}");
    let said = lab.say(&["cluster", "alter", "1", "-t", "2h"]);
    assert!(said.starts_with("request 1: planned, "), "{said}");
    let said = lab.say(&["cluster", "extend", "1", "1h"]);
    assert!(said.contains("request 1 is not running"), "{said}");
    let said = lab.say(&["cluster", "why", "1"]);
    assert!(said.starts_with("request 1 starts "), "{said}");
    let said = lab.say(&["cluster", "plan"]);
    assert!(said.contains("run"), "{said}");
    let said = lab.say(&["cluster", "kill", "1"]);
    assert_eq!(said, format!("request 1: killed by {}\n", lab.user));
    let said = lab.say(&["cluster", "kill", "1"]);
    assert!(said.contains("there is no request 1, or it has ended"), "{said}");
    let said = lab.say(&["cluster", "node"]);
    assert_eq!(said, "2 nodes, 0 out of use\n");
}

/// An array longer than a call is submitted in blocks. If a block is refused, none is left.
#[test]
fn a_long_array_is_submitted_in_blocks_and_taken_back_if_one_is_refused() {
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    // Root is an operator, and may have more.
    let user_requests = if is_root { 1_200 / OPERATOR_SHARE } else { 1_200 };
    let limits = Limits { user_requests, ..Limits::DEFAULT };
    let lab = Lab::with_limits("clusterd-blocks", limits);
    let socket = lab.socket.to_str().unwrap();
    let array = |numbers: &str| {
        let all = ["--json", "cluster", "alloc", "--service", socket, "--after", &lab.later];
        let last = ["-t", "1m", "--res", "rset=ncpus=1", "-J", numbers];
        pbsctl(&[&all[..], &last].concat(), "")
    };
    let open = || {
        let listed = pbsctl(&["--json", "cluster", "info", "--service", socket], "").json();
        listed["requests"].as_array().unwrap().len()
    };
    let ran = array("0-1299");
    assert_ne!(ran.status, 0);
    assert!(
        ran.stderr.contains("1,000 requests of the array before it are ended"),
        "{}",
        ran.stderr
    );
    assert_eq!(open(), 0);
    let submitted = array("1-1100").json();
    let indices = submitted["requests"].as_array().unwrap().iter();
    let indices: Vec<u64> = indices.map(|of| of["array_index"].as_u64().unwrap()).collect();
    assert_eq!(indices, (1..=1100).collect::<Vec<_>>());
    assert_eq!(open(), 1100);
}

/// JSON has the same keys and values, but for the time of submission.
#[test]
fn json_is_the_same_of_a_service_and_a_file() {
    let lab = Lab::new("clusterd-json");
    let same = |arguments: &[&str]| {
        let mut all = vec!["--json", "cluster"];
        all.extend(arguments);
        let [mut of_service, mut of_file] = lab.both(&all).map(|ran| ran.json());
        for value in [&mut of_service, &mut of_file] {
            without_times(value);
        }
        assert_eq!(of_service, of_file, "{arguments:?}");
        of_service
    };
    let res = ["--res", "rset=ncpus=2", "--start", &lab.later, "-t", "1h"];
    let alloc = [&["alloc"], &res[..], &["-J", "3-4", "--", "./app"]].concat();
    let said = same(&alloc);
    assert_eq!(said["requests"][1]["array_index"], 4);
    assert_eq!(same(&["info"])["requests"].as_array().unwrap().len(), 2);
    assert_eq!(same(&["info", "1"])["events"][0]["what"], "submitted");
    assert_eq!(same(&["why", "2"])["id"], 2);
    same(&["kill", "2"]);
    assert_eq!(same(&["info", "--all"])["requests"][1]["state"], "ended");
    same(&["node"]);
}

/// Removes the times at which something was done.
fn without_times(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for key in ["clock_s", "submit_s", "time_s"] {
                map.remove(key);
            }
            if map.get("state") == Some(&"ended".into()) {
                map.remove("end_s");
            }
            map.values_mut().for_each(without_times);
        }
        Value::Array(values) => values.iter_mut().for_each(without_times),
        _ => {}
    }
}

/// Operations that a service lacks are refused with the remedy.
#[test]
fn a_service_knows_who_calls() {
    let lab = Lab::new("clusterd-who");
    let socket = lab.socket.to_str().unwrap();
    let ran = |arguments: &[&str]| {
        let mut all = vec!["cluster", arguments[0], "--service", socket];
        all.extend(&arguments[1..]);
        pbsctl(&all, "")
    };
    let kill = ran(&["kill", "--user", "anna", "1"]);
    assert_eq!(kill.status, 2);
    assert!(kill.stderr.contains("leave out --user"), "{}", kill.stderr);
    let svg = lab.file.with_extension("svg");
    let gantt = ran(&["plan", "--gantt", svg.to_str().unwrap()]);
    assert_eq!(gantt.status, 2);
    assert!(gantt.stderr.contains("with --ledger"), "{}", gantt.stderr);
    let away = pbsctl(&["cluster", "info", "--service", "/nowhere/s"], "");
    assert_eq!(away.status, 1);
    assert!(away.stderr.contains("the service pbs-clusterd is not running"), "{}", away.stderr);
}

/// A request is watched until it has ended.
#[test]
fn events_are_reported_as_they_happen() {
    let lab = Lab::new("clusterd-watch");
    let socket = lab.socket.to_str().unwrap().to_string();
    let alloc = ["--res", "rset=ncpus=2", "--start", &lab.later, "-t", "1h"];
    let mut all = vec!["cluster", "alloc", "--service", &socket];
    all.extend(alloc);
    assert_eq!(pbsctl(&all, "").status, 0);
    let of_thread = socket.clone();
    let watching = thread::spawn(move || {
        pbsctl(&["--json", "cluster", "watch", "--service", &of_thread, "1"], "")
    });
    while lab.notices.receiver_count() == 0 {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(pbsctl(&["cluster", "alter", "--service", &socket, "1", "-t", "2h"], "").status, 0);
    assert_eq!(pbsctl(&["cluster", "kill", "--service", &socket, "1"], "").status, 0);
    let ran = watching.join().unwrap();
    let lines: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines.len(), &lines[0]["what"]), (2, &"altered".into()));
    let last = &lines[1];
    assert_eq!((&last["schema"], &last["what"]), (&"pbs.cluster-watch/1".into(), &"ended".into()));
    assert!(lines.iter().all(|line| line["request"] == 1), "{lines:?}");
    assert_eq!(Schemas::read().answer_problem(last), None);
    let file = lab.file.to_str().unwrap();
    let of_file = pbsctl(&["cluster", "watch", "--ledger", file], "");
    assert_eq!(of_file.status, 2);
}

/// The service reports what its search has reached, by part of the cost; a file has no search.
#[test]
fn optimiser_reports_its_work_and_the_cost_of_the_plan() {
    let optimise = "[optimise]\nrun_times = 'quantile'\npromises = ['none']\n[[nodes]]\n";
    let site = SITE.replacen("[[nodes]]\n", optimise, 1);
    let lab = Lab::of_site("clusterd-optimiser", &site, Limits::DEFAULT);
    let socket = lab.socket.to_str().unwrap();
    let alloc = |limit: &str| {
        let alloc = ["cluster", "alloc", "--service", socket, "--res", "rset=2:ncpus=16"];
        let ran = pbsctl(&[&alloc[..], &["-t", limit]].concat(), "");
        assert_eq!(ran.status, 0, "{}", ran.stderr);
    };
    // One runs; the shortest of the others is the last.
    ["1h", "5h", "4h", "3h", "2h", "10m"].into_iter().for_each(alloc);
    let report = || {
        let ran = pbsctl(&["--json", "cluster", "optimiser", "--service", socket], "");
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        serde_json::from_str::<Value>(&ran.stdout).unwrap()
    };
    let mut of = report();
    for _ in 0..2_000 {
        if of["is_searching"] == false && of["plans"] != 0 {
            break;
        }
        thread::sleep(Duration::from_millis(5));
        of = report();
    }
    assert_ne!(of["plans"], 0, "{of}");
    assert_eq!(Schemas::read().answer_problem(&of), None);
    assert_eq!(of["run_times"], "quantile");
    let last = &of["last"];
    assert_eq!(last["requests"], 5);
    let number = |of: &Value| of.as_f64().unwrap();
    let parts = ["wait", "slowdown", "fairness", "missed_deadlines", "length"];
    for cost in [&last["before"], &last["after"]] {
        let sum: f64 = parts.iter().map(|part| number(&cost[part])).sum();
        assert!((sum - number(&cost["total"])).abs() < 1.0 && sum > 0.0, "{cost}");
    }
    assert!(number(&last["after"]["total"]) <= number(&last["before"]["total"]));
    assert!(number(&of["orders"]) >= 120.0 && number(&of["placements"]) > 120.0, "{of}");
    let ran = pbsctl(&["cluster", "optimiser", "--service", socket], "");
    assert!(ran.stdout.contains("missed deadlines") && ran.stdout.contains("rule quantile"));
    let of_file = pbsctl(&["cluster", "optimiser", "--ledger", lab.file.to_str().unwrap()], "");
    assert_eq!(of_file.status, 2);
    assert!(of_file.stderr.contains("--service"), "{}", of_file.stderr);
}
