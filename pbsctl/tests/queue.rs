// SPDX-License-Identifier: GPL-2.0
//! `pbsctl submit` and `pbsctl jobs` as people and scripts use them.

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use common::{pbsctl, scratch, Ran};

const VM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../samples/machines/vm.toml");

/// A quarter of a second of the machine's CPU.
fn job(name: &str, deadline_ns: u64) -> String {
    job_of(name, deadline_ns, 62_500_000)
}

/// Hundred seconds of it: the time of a test does not count.
fn long_job(name: &str, deadline_s: u64) -> String {
    job_of(name, deadline_s * 1_000_000_000, 25_000_000_000)
}

fn job_of(name: &str, deadline_ns: u64, insns: u64) -> String {
    format!(
        "name = \"{name}\"\ndeadline_ns = {deadline_ns}\n[[process]]\nid = 1\n\
         memory_bytes = 4_000_000\ncommand = [\"true\"]\ntasks = [{insns}]\n"
    )
}

struct Queue {
    directory: PathBuf,
}

impl Queue {
    fn new(name: &str) -> Self {
        let directory = scratch(name);
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        Self { directory }
    }

    fn ask(&self, command: &str, arguments: &[&str], stdin: &str) -> Ran {
        // A directory that is not there yet is made.
        let history = self.directory.join("new/history.db");
        let mut all = vec![command, "--json", "--history", history.to_str().unwrap()];
        all.extend(arguments);
        pbsctl(&all, stdin)
    }

    fn submit(&self, text: &str) -> Ran {
        self.ask("submit", &["--machine", VM, "-"], text)
    }
}

#[test]
fn a_job_on_a_cpu_that_is_not_there_is_declined() {
    let queue = Queue::new("queue-cpus");
    let on = |cpus: &str| format!("cpus = {cpus}\n{}", job("a", 10_000_000_000));
    let ran = queue.submit(&on("[0, 4]"));
    assert_eq!(ran.status, 6, "{}", ran.stderr);
    let why = "the job is confined to CPUs that the machine does not have: 4; it has 0";
    let said = ran.json();
    let told = said["declined"]["why"].as_str().unwrap();
    assert!(told.contains(why), "{told}");
    let ran = queue.submit(&on("[0]"));
    assert_eq!(ran.status, 0, "{}", ran.stderr);
}

#[test]
fn jobs_wait_behind_each_other() {
    let queue = Queue::new("queue-wait");
    let ends: Vec<_> = ["a", "b"]
        .map(|name| {
            let ran = queue.submit(&job(name, 10_000_000_000));
            assert_eq!(ran.status, 0, "{}", ran.stderr);
            let end_ns = ran.json()["submitted"][0]["planned_end_ns"].as_u64();
            end_ns.unwrap()
        })
        .into();
    assert!(ends[0] >= 250_000_000 && ends[1] >= 2 * 250_000_000, "{ends:?}");

    let jobs = queue.ask("jobs", &[], "").json();
    let runs = jobs["runs"].as_array().unwrap();
    let names: Vec<_> = runs.iter().map(|run| run["job"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "b"]);
    assert!(runs.iter().all(|run| run["state"] == "waiting"), "{jobs}");

    // Who is withdrawn waits no more, and only once.
    for (status, words) in [(0, ""), (1, "is not waiting")] {
        let ran = queue.ask("withdraw", &["1"], "");
        assert_eq!(ran.status, status, "{}", ran.stderr);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
    let jobs = queue.ask("jobs", &[], "").json();
    assert_eq!(jobs["runs"][0]["outcome"], "cancelled", "{jobs}");
    assert_eq!(queue.ask("withdraw", &["99"], "").status, 1);
}

#[test]
fn who_would_be_late_does_not_wait() {
    let queue = Queue::new("queue-late");
    assert_eq!(queue.submit(&long_job("a", 200)).status, 0);
    let declined = queue.submit(&long_job("b", 200));
    assert_eq!(declined.status, 6, "{}", declined.stderr);
    // What it says would do does.
    let earliest_ns = declined.json()["declined"]["earliest_deadline_ns"].clone();
    let earliest_ns = earliest_ns.as_u64().unwrap();
    assert!(earliest_ns > 200_000_000_000, "{earliest_ns}");
    // By then a bit of the time of the first has passed.
    let patient = queue.submit(&job_of("b", earliest_ns, 25_000_000_000));
    assert_eq!(patient.status, 0, "{}", patient.stderr);
    let jobs = queue.ask("jobs", &["--all"], "").json();
    assert_eq!(jobs["runs"].as_array().unwrap().len(), 2);
}

/// A waiting job that has time moves for a job that has none.
#[test]
fn who_has_time_moves_for_who_is_urgent() {
    let queue = Queue::new("queue-moves");
    assert_eq!(queue.submit(&long_job("patient", 1_000)).status, 0);
    let urgent = queue.submit(&long_job("urgent", 120));
    assert_eq!(urgent.status, 0, "{}", urgent.stderr);
    let end_ns = urgent.json()["submitted"][0]["planned_end_ns"].as_u64().unwrap();
    assert!(end_ns <= 120_000_000_000, "{end_ns}");
}

/// A declined job is told of best effort, can be run so, and is in nobody's way then.
#[test]
fn a_declined_job_can_be_submitted_as_best_effort() {
    let queue = Queue::new("queue-best-effort");
    assert_eq!(queue.submit(&long_job("a", 200)).status, 0);
    let late = long_job("late", 200);
    let history = queue.directory.join("new/history.db");
    let arguments = ["submit", "--history", history.to_str().unwrap(), "--machine", VM, "-"];
    let declined = pbsctl(&arguments, &late);
    assert_eq!(declined.status, 6, "{}", declined.stderr);
    for part in ["demand test: between", "or with --best-effort, which promises nothing"] {
        assert!(declined.stderr.contains(part), "{}", declined.stderr);
    }
    let words = queue.ask("submit", &["--machine", VM, "--best-effort", "-"], &late);
    assert_eq!(words.status, 0, "{}", words.stderr);
    assert_eq!(words.json()["submitted"][0]["best_effort"], true);
    // As its file may say, too.
    let file = queue.submit(&format!("best_effort = true\n{}", long_job("idle", 1)));
    assert_eq!(file.status, 0, "{}", file.stderr);
    let promised = queue.submit(&long_job("b", 10_000)).json();
    assert_eq!(promised["submitted"][0]["best_effort"], false);
    let end_ns = promised["submitted"][0]["planned_end_ns"].as_u64().unwrap();
    assert!((200_000_000_000..250_000_000_000).contains(&end_ns), "behind a alone: {end_ns}");
    let jobs = queue.ask("jobs", &[], "").json();
    let runs = jobs["runs"].as_array().unwrap().iter();
    let best_effort: Vec<_> = runs.map(|run| run["best_effort"].as_bool()).collect();
    assert_eq!(best_effort, [false, true, true, false].map(Some));
    let arguments = ["jobs", "--history", history.to_str().unwrap()];
    let table = pbsctl(&[&arguments[..], &["--columns", "job,best-effort"]].concat(), "");
    let lines: Vec<Vec<&str>> =
        table.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["JOB", "BEST", "EFFORT"]);
    assert_eq!(lines[2], ["late", "yes"]);
}

#[test]
fn none_or_all_of_several_are_submitted() {
    let queue = Queue::new("queue-all");
    let file = |name: &str, text: &str| -> String {
        let path = queue.directory.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().into()
    };
    let good = file("good.toml", &job("good", 10_000_000_000));
    for (bad, status) in [(job("late", 1_000), 6), ("name = 5".into(), 3)] {
        let bad = file("bad.toml", &bad);
        let ran = queue.ask("submit", &["--machine", VM, &good, &bad], "");
        assert_eq!(ran.status, status, "{}", ran.stderr);
    }
    let jobs = queue.ask("jobs", &[], "");
    // There may be no history yet.
    if jobs.status == 0 {
        assert_eq!(jobs.json()["runs"].as_array().unwrap().len(), 0);
    }
}

#[test]
fn the_more_important_goes_first() {
    let queue = Queue::new("queue-priority");
    let machine = std::fs::read_to_string(VM).unwrap();
    let alone = queue.directory.join("alone.toml");
    fs::write(&alone, format!("demand_permille = 0\n{machine}")).unwrap();
    let submit =
        |text: &str| queue.ask("submit", &["--machine", alone.to_str().unwrap(), "-"], text);
    assert_eq!(submit(&long_job("patient", 1_000)).status, 0);
    let urgent = long_job("urgent", 150);
    let urgent = urgent.replace("[[process]]", "priority = 1\n[[process]]");
    let ran = submit(&urgent);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
}

#[test]
fn a_program_that_is_missing_is_told_at_once() {
    let queue = Queue::new("queue-missing");
    let text = job("a", 10_000_000_000).replace("\"true\"", "\"no-such-program\"");
    let ran = queue.submit(&text);
    assert_eq!(ran.status, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("no-such-program"), "{}", ran.stderr);
}

#[test]
fn without_a_history_there_are_no_jobs() {
    let queue = Queue::new("queue-none");
    let ran = queue.ask("jobs", &[], "");
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    assert_eq!(ran.json()["runs"].as_array().unwrap().len(), 0);
    // To look makes none.
    assert!(!Path::new(&queue.directory).join("new").exists());
    // Another file that is no history is told.
    let file = queue.directory.join("no.db");
    fs::write(&file, "none\n".repeat(300)).unwrap();
    let ran = pbsctl(&["jobs", "--history", file.to_str().unwrap()], "");
    assert_eq!(ran.status, 1, "{}", ran.stdout);
}

/// No service is no empty list, whether or not there is a history where it usually is.
#[test]
fn a_list_without_a_service_says_so() {
    let ran = pbsctl(&["jobs", "--socket", "none.sock"], "");
    assert!(
        ran.stderr.to_lowercase().contains("no service listens at none.sock"),
        "{}",
        ran.stderr
    );
}

#[test]
fn jobs_are_listed_as_asked_for() {
    let queue = Queue::new("queue-list");
    for name in ["sort-1", "pack", "sort-2"] {
        assert_eq!(queue.submit(&job(name, 10_000_000_000)).status, 0);
    }
    assert_eq!(queue.ask("withdraw", &["1"], "").status, 0);
    let history = queue.directory.join("new/history.db");
    let list = |words: &str| {
        let mut all = vec!["jobs", "--history", history.to_str().unwrap()];
        all.extend(words.split_whitespace());
        let ran = pbsctl(&all, "");
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        ran.stdout
    };
    let columns = "--columns job,state,outcome";
    assert_eq!(
        list(&format!("{columns} --sort job --reverse")),
        "JOB     STATE    OUTCOME\nsort-2  waiting  -\nsort-1  over     cancelled\n\
         pack    waiting  -\n"
    );
    assert_eq!(list("--columns job --no-header --name sort* --last 0"), "sort-2\n");
    assert!(list("--name nobody").contains("no such runs"));
    assert!(list("--columns help").contains("time until its deadline"));
    // Table after table, each with its own header.
    let watched = list("--watch 1ms --count 3 --columns run --state waiting");
    assert_eq!(watched.matches("RUN\n2\n3\n").count(), 3, "{watched}");
    let asked = ["--state", "over"];
    let runs = queue.ask("jobs", &asked, "").json()["runs"].clone();
    assert_eq!(runs[0]["job"], "sort-1");
    assert_eq!(runs.as_array().unwrap().len(), 1);
}

/// A service that gives the same answer to everybody; what it was asked comes back.
fn service(socket: &Path, answer: &'static str, times: usize) -> JoinHandle<Vec<String>> {
    let listener = UnixListener::bind(socket).unwrap();
    thread::spawn(move || {
        let asked = (0..times).map(|_| {
            let (mut connection, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(connection.try_clone().unwrap());
            let mut call = Vec::new();
            reader.read_until(0, &mut call).unwrap();
            connection.write_all(answer.as_bytes()).unwrap();
            connection.write_all(&[0]).unwrap();
            String::from_utf8(call).unwrap()
        });
        asked.collect()
    })
}

#[test]
fn the_service_is_asked_if_there_is_one() {
    let queue = Queue::new("queue-service");
    let socket = queue.directory.join("pbs.sock");
    let jobs = |arguments: &[&str]| {
        let mut all = vec!["jobs", "--socket", socket.to_str().unwrap()];
        all.extend(arguments);
        pbsctl(&all, "")
    };
    let answer = "{\"parameters\":{\"jobs\":[\
        {\"number\":3,\"name\":\"far\",\"uid\":0,\"state\":\"over\",\
         \"outcome\":\"cancelled\",\"submitted_unix_ns\":5},\
        {\"number\":4,\"name\":\"near\",\"uid\":0,\"state\":\"held\",\"reason\":\"held\",\
         \"priority\":2,\"submitted_unix_ns\":7}]}}";
    let asked = service(&socket, answer, 3);
    let ran = jobs(&["--columns", "run,job,user,state,priority,outcome"]);
    assert_eq!(
        (ran.stdout.as_str(), ran.stderr.as_str()),
        (
            "RUN  JOB   USER  STATE  PRIORITY  OUTCOME\n3    far   root  over   -         \
             cancelled\n4    near  root  held   2         -\n",
            ""
        )
    );
    let json = jobs(&["--json", "--all"]).json();
    assert_eq!(json["runs"][1]["reason"], "held");
    // What is chosen here has to be chosen of all.
    assert_eq!(jobs(&["--state", "held", "--columns", "run"]).stdout, "RUN\n4\n");
    let asked = asked.join().unwrap();
    let last = asked.iter().map(|call| {
        assert!(call.contains("org.sched-pbs.Node.List"), "{call}");
        let call: serde_json::Value = serde_json::from_str(call.trim_end_matches('\0')).unwrap();
        call["parameters"]["filter"]["last"].as_u64().unwrap()
    });
    let all = i64::MAX as u64;
    assert_eq!(last.collect::<Vec<_>>(), [10, all, all]);

    // Of one that is gone the history is left, which this machine may have or not. Of another
    // history only that is told.
    let ran = jobs(&[]);
    let is_missing = ran.stderr.contains("there is no history yet");
    assert_eq!(ran.status, i32::from(is_missing), "{}", ran.stderr);
    assert!(ran.stderr.contains("the service pbsd is not running"), "{}", ran.stderr);
    let other = queue.directory.join("other.db");
    let ran = jobs(&["--history", other.to_str().unwrap()]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
}

/// A job is shown in the words in which it is listed: its user by name, and its processes with the
/// outcome of the run where events do not tell their own.
#[test]
fn a_job_is_shown_in_the_words_of_the_list() {
    let queue = Queue::new("queue-words");
    let shown = |name: &str, answer: &'static str| {
        let socket = queue.directory.join(name);
        let asked = service(&socket, answer, 1);
        let ran = pbsctl(&["job", "show", "3", "--socket", socket.to_str().unwrap()], "");
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
        asked.join().unwrap();
        ran.stdout
    };
    let killed = shown(
        "killed.sock",
        "{\"parameters\":{\"job\":{\"number\":3,\"name\":\"far\",\"uid\":0,\"state\":\"over\",\
         \"outcome\":\"killed\",\"submitted_unix_ns\":5},\"programs\":[],\"processes\":[\
         {\"number\":1,\"outcome\":\"unknown\",\"tasks\":2,\"ended_tasks\":1,\"planned_insns\":5,\
         \"retired_insns\":4,\"peak_memory_bytes\":0},\
         {\"number\":2,\"outcome\":\"complete\",\"tasks\":1,\"ended_tasks\":1,\"planned_insns\":5,\
         \"retired_insns\":5,\"peak_memory_bytes\":0}]}}",
    );
    for line in ["Outcome        killed\n", "User           root\n"] {
        assert!(killed.contains(line), "{killed}");
    }
    let words: Vec<_> = killed.split_whitespace().collect();
    assert!(words.join(" ").ends_with("1 killed 1/2 5 4 2 complete 1/1 5 5"), "{killed}");
    let running = shown(
        "running.sock",
        "{\"parameters\":{\"job\":{\"number\":3,\"name\":\"far\",\"uid\":0,\"state\":\"running\",\
         \"submitted_unix_ns\":5},\"programs\":[],\"processes\":[\
         {\"number\":1,\"outcome\":\"unknown\",\"tasks\":2,\"ended_tasks\":1,\"planned_insns\":5,\
         \"retired_insns\":4,\"peak_memory_bytes\":0}]}}",
    );
    let words: Vec<_> = running.split_whitespace().collect();
    assert!(words.join(" ").ends_with("1 - 1/2 5 4"), "{running}");
}

/// A job that `explain` would admit is admitted: with the same figures both plan the same, and both
/// allow for the time until its plan is in force.
#[test]
fn explain_and_submit_agree() {
    let queue = Queue::new("queue-explain");
    let file = queue.directory.join("job.toml");
    let file = file.to_str().unwrap();
    let ask = |command: &str, deadline_ns: u64| {
        fs::write(file, job("a", deadline_ns)).unwrap();
        queue.ask(command, &["--machine", VM, file], "")
    };
    let declined = [ask("explain", 1_000), ask("submit", 1_000)];
    for ran in &declined {
        assert_eq!(ran.status, 6, "{}", ran.stderr);
    }
    let [explained, submitted] = declined.map(|ran| ran.json());
    let earliest_ns = &explained["jobs"][0]["declined"]["earliest_deadline_ns"];
    assert_eq!(*earliest_ns, submitted["declined"]["earliest_deadline_ns"]);
    let earliest_ns = earliest_ns.as_u64().unwrap();
    // One nanosecond less is too little for both, and that much enough for both.
    assert_eq!(ask("explain", earliest_ns - 1).status, 6);
    assert_eq!(ask("submit", earliest_ns - 1).status, 6);
    let explained = ask("explain", earliest_ns);
    let submitted = ask("submit", earliest_ns);
    assert_eq!((explained.status, submitted.status), (0, 0));
    let explained = &explained.json()["jobs"][0];
    assert_eq!(explained["plan"]["end_ns"], submitted.json()["submitted"][0]["planned_end_ns"]);
    assert_eq!(explained["lead_ns"], 100_000_000);
}

/// The service does not look for programs and files of a user; the command does, and asks it only
/// if all are there. Without a service the words are the same.
#[test]
fn what_a_submission_lacks_is_named_before_the_service_is_asked() {
    let queue = Queue::new("queue-lacks");
    let socket = queue.directory.join("pbs.sock");
    let file = queue.directory.join("job.toml");
    let directory = queue.directory.to_str().unwrap();
    let submit = |text: String, arguments: &[&str]| {
        fs::write(&file, text).unwrap();
        let mut all = vec!["submit", "--socket", socket.to_str().unwrap(), file.to_str().unwrap()];
        all.extend(arguments);
        pbsctl(&all, "")
    };
    let missing = || job("lacks", 9_000_000_000).replace("true", "no-such-program");
    fs::write(&file, missing()).unwrap();
    let alone = queue.ask("submit", &["--machine", VM, file.to_str().unwrap()], "");
    let asked = service(&socket, "{\"parameters\":{\"jobs\":[]}}", 1);
    let there = ["--chdir", directory];
    let ran = submit(missing(), &there);
    assert!(ran.stderr.contains("there is no program no-such-program"), "{}", ran.stderr);
    assert_eq!((ran.status, &ran.stderr), (alone.status, &alone.stderr));
    let well = || job("well", 9_000_000_000);
    let input = "command = [\"true\"]\nstdin = \"gone\"";
    let ran = submit(well().replace("command = [\"true\"]", input), &there);
    assert!(ran.stderr.contains("gone: No such file or directory"), "{}", ran.stderr);
    let ran = submit(well(), &["--chdir", "/no/such/directory"]);
    assert!(ran.stderr.contains("/no/such/directory: No such file"), "{}", ran.stderr);
    let ran = submit(well(), &["--chdir", directory, "--output", "gone/out"]);
    assert!(ran.stderr.contains("gone/out: No such file or directory"), "{}", ran.stderr);
    assert_ne!(ran.status, 0);
    // The only one that comes to the service.
    let ran = submit(well(), &there);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    assert!(asked.join().unwrap()[0].contains("\\\"well\\\""));
}

/// A queued job is run by nothing until somebody acts, which is reported where nobody overlooks it;
/// until then it can be shown and cancelled like a job of the service.
#[test]
fn a_queued_job_is_shown_and_cancelled_without_a_service() {
    let queue = Queue::new("queue-alone");
    let ask = |command: &str, job: &str| queue.ask(command, &["--socket", "none.sock", job], "");
    let nobody = ask("job", "a");
    assert_eq!(nobody.status, 1, "{}", nobody.stdout);
    assert!(nobody.stderr.contains("no service listens at none.sock"), "{}", nobody.stderr);
    let submitted = queue.submit(&job("a", 10_000_000_000));
    for part in ["nothing runs this yet", "pbsctl run --history", "start pbsd"] {
        assert!(submitted.stderr.contains(part), "{}", submitted.stderr);
    }
    let history = queue.directory.join("new/history.db");
    let submitted = submitted.json();
    assert_eq!(submitted["queue"], history.to_str().unwrap());
    // The service that takes the file later writes the environments of jobs to it.
    let mode = fs::metadata(&history).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(submitted["service"], false);
    for job in ["1", "a"] {
        let shown = ask("job", job);
        assert_eq!(shown.status, 0, "{}", shown.stderr);
        assert_eq!(shown.json()["job"]["state"], "waiting");
        assert!(shown.json()["request"].as_str().unwrap().contains("name = \"a\""));
    }
    // Of two with one name a number is asked for.
    assert_eq!(queue.submit(&job("a", 10_000_000_000)).status, 0);
    let both = ask("cancel", "a");
    assert!(both.stderr.contains("write the number of one: 1, 2"), "{}", both.stderr);
    let cancelled = ask("cancel", "1");
    assert_eq!(cancelled.status, 0, "{}", cancelled.stderr);
    assert_eq!(cancelled.json()["job"]["outcome"], "cancelled");
    assert_eq!(ask("cancel", "a").json()["job"]["number"], 2);
    for (job, words) in [("7", "there is no job 7 in"), ("a", "no job named a waits in")] {
        let ran = ask("cancel", job);
        assert_eq!(ran.status, 1, "{}", ran.stdout);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
}

#[test]
fn an_unknown_user_is_no_empty_list() {
    let queue = Queue::new("queue-user");
    let ran = queue.ask("jobs", &["--user", "no:such"], "");
    assert_eq!(ran.status, 2, "{}", ran.stdout);
    assert!(ran.stderr.contains("there is no user no:such in /etc/passwd"), "{}", ran.stderr);
    for known in ["root", "4711"] {
        assert_eq!(queue.ask("jobs", &["--user", known], "").status, 0);
    }
}

/// Options replace times and names of the file, without a service too; those that only a service
/// can serve are named.
#[test]
fn options_of_a_queued_job_replace_values_of_its_file() {
    let queue = Queue::new("queue-options");
    let submit = |arguments: &[&str]| {
        let all = [&["--machine", VM, "--socket", "none.sock", "-"], arguments].concat();
        queue.ask("submit", &all, &job("a", 10_000_000_000))
    };
    let options = ["--name", "b", "--deadline", "90s", "--start", "1s", "--priority", "2"];
    let options = [&options[..], &["--value", "50", "--penalty", "1_000"]].concat();
    let ran = submit(&options);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let submitted = &ran.json()["submitted"][0];
    assert_eq!(
        (&submitted["job"], &submitted["deadline_ns"]),
        (&"b".into(), &90_000_000_000u64.into())
    );
    assert!(submitted["planned_end_ns"].as_u64().unwrap() >= 1_250_000_000);
    let shown = queue.ask("job", &["--socket", "none.sock", "b"], "").json();
    let request = shown["request"].as_str().unwrap();
    assert!(request.contains("priority = 2\n") && request.contains("start_ns = 1000000000"));
    assert!(request.contains("value = 50\npenalty = 1000\n"), "{request}");
    let submitted_ns = shown["job"]["submitted_unix_ns"].as_u64().unwrap();
    assert_eq!(shown["job"]["deadline_unix_ns"], submitted_ns + 90_000_000_000);
    // A point in time becomes a span from the submission.
    let moment = submit(&["--deadline", "2100-01-01T00:00:00Z"]);
    assert_eq!(moment.status, 0, "{}", moment.stderr);
    let shown = queue.ask("job", &["--socket", "none.sock", "a"], "").json();
    let deadline_ns = shown["job"]["deadline_unix_ns"].as_u64().unwrap();
    let far_ns = 4_102_444_800_000_000_000;
    assert!((far_ns..far_ns + 60_000_000_000).contains(&deadline_ns), "{deadline_ns}");
    for (arguments, status, words) in [
        (&["--deadline", "2020-01-01T00:00:00Z"][..], 2, "--deadline: the time has passed"),
        (&["--deadline", "90"], 2, "90 is 90 ns; write 90s for seconds"),
        (&["--hold", "--after", "7"], 2, "only the service can serve --hold and --after"),
    ] {
        let ran = submit(arguments);
        assert_eq!(ran.status, status, "{}", ran.stderr);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
}

/// Files are checked like options, with the line of each mistake.
#[test]
fn points_in_time_and_small_numbers_of_a_file_are_checked() {
    let check = |deadline: &str| {
        let text = job("a", 77).replace("77", deadline);
        pbsctl(&["job", "check", "-"], &text)
    };
    let ran = check("\"2100-01-01T00:00Z\"");
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    let ran = check("\"2020-01-01T00:00:00Z\"");
    assert_eq!(ran.status, 3);
    assert!(
        ran.stderr.contains(":2: deadline_ns 2020-01-01T00:00:00Z has passed"),
        "{}",
        ran.stderr
    );
    let ran = check("3");
    assert_eq!(ran.status, 0);
    let hint = ":2: deadline_ns = 3 is 3 ns; write deadline_ns = \"3s\" if seconds were meant";
    assert!(ran.stderr.contains(hint), "{}", ran.stderr);
}
