// SPDX-License-Identifier: GPL-2.0
//! The commands of a cluster with a ledger, as users and operators type them.

mod common;

use std::fs;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use common::{directory, pbsctl, Ran};
use pbs_manager::ledger::{Access, Served};
use pbs_manager::{Manager, Simulated};

const SITE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../samples/cluster/site.toml");

struct Lab(PathBuf);

impl Lab {
    /// On a Monday at eight.
    fn new(test: &str) -> Self {
        let lab = Self(directory(test, &[]));
        let made = lab.run(&["new", "--site", SITE, "--at", "2026-11-23T08:00"]);
        assert_eq!(made.status, 0, "{}", made.stderr);
        lab
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let ledger = self.0.join("cluster.db");
        let mut all = vec!["cluster"];
        all.extend(arguments.first());
        all.extend(["--ledger", ledger.to_str().unwrap()]);
        all.extend(&arguments[1..]);
        pbsctl(&all, "")
    }

    /// Returns the output of a command, which must succeed.
    #[track_caller]
    fn says(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.status, 0, "{arguments:?}: {}", ran.stderr);
        ran.stdout
    }
}

const RUN: [&str; 9] = ["alloc", "--user", "anna", "-g", "physics", "-N", "run", "-t", "4h"];

fn run_on<'a>(rset: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut all = RUN.to_vec();
    all.extend(["--res", rset]);
    all.extend(more);
    all
}

#[test]
fn who_asks_is_told_when_and_where() {
    let lab = Lab::new("cluster-alloc");
    let said = lab.says(&run_on("rset=2:ncpus=16,place=scatter", &["--", "./app", "-x"]));
    let expected = "request 1: planned, 2026-11-23T08:00:00+01:00 to 2026-11-23T12:00:00+01:00, node01 node02\n";
    assert_eq!(said, expected);
    let said = lab.says(&run_on("rset=24:ncpus=16,place=scatter", &[]));
    assert!(said.contains("planned, 2026-11-23T12:00:00+01:00"), "{said}");
    let said = lab.says(&["why", "2"]);
    assert!(said.contains("pool small: until 2026-11-23T12:00:00+01:00"), "{said}");
    let said = lab.says(&["info", "1"]);
    assert!(said.contains("command    ./app -x") && said.contains("submitted  by anna"), "{said}");
    assert_eq!(lab.says(&["info", "--user", "bert"]).lines().count(), 1);
}

#[test]
fn a_script_says_what_it_needs() {
    let lab = Lab::new("cluster-script");
    let script = lab.0.join("job.sh");
    let text =
        "#!/bin/sh\n#CCS --res=rset=1:tesla=1,place=:excl\n#CCS -t 2h -g physics -N gpu\nrun\n";
    fs::write(&script, text).unwrap();
    let script = script.to_str().unwrap();
    let said = lab.says(&["alloc", "--user", "anna", "-t", "1h", "--", script]);
    assert_eq!(
        said,
        "request 1: planned, 2026-11-23T08:00:00+01:00 to 2026-11-23T09:00:00+01:00, gpu1\n"
    );
    fs::write(script, "#CCS --rest=1\n").unwrap();
    let ran = lab.run(&["alloc", "--", script]);
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("line 1: unexpected argument '--rest' found\n"), "{}", ran.stderr);
}

#[test]
fn lines_of_a_script_that_are_not_read_are_reported() {
    let lab = Lab::new("cluster-script-lines");
    let script = lab.0.join("job.sh");
    let named = script.to_str().unwrap();
    let ask = |text: &[u8], more: &[&str]| {
        fs::write(&script, text).unwrap();
        let mut all = vec!["alloc", "--user", "anna", "-g", "physics"];
        all.extend(more);
        all.extend(["--", named]);
        lab.run(&all)
    };
    let res = ["--res", "rset=ncpus=1"];
    let ran = ask(b"#!/bin/sh\nset -e\n#CCS -t 2h\n", &res);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("line 3 with #CCS is ignored"), "{}", ran.stderr);
    let ran = ask(b"#!/bin/sh\n#PBS -l walltime=1:00:00\nrun\n", &[]);
    assert_eq!(ran.status, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("line 2 with #PBS is not read; write #CCS"), "{}", ran.stderr);
    // A comment in another encoding loses no option.
    let ran = ask(b"#!/bin/sh\n# M\xfcller\n #CCS -t 3h -o out.txt\nrun\n", &res);
    assert!(ran.stdout.contains("to 2026-11-23T11:00:00+01:00"), "{}", ran.stdout);
    assert!(ran.stderr.contains("no effect here: -o (line 3)"), "{}", ran.stderr);
    // Nor is a program in machine code a script.
    let ran = ask(b"\x7fELF\0#CCS -t 9h\n", &res);
    assert!(ran.stderr.is_empty(), "{}", ran.stderr);
}

/// Users of sbatch and qsub are told what to write instead.
#[test]
fn habits_of_other_systems_have_hints() {
    let lab = Lab::new("cluster-habits");
    let script = lab.0.join("slurm.sh");
    fs::write(&script, "#!/bin/sh\n#SBATCH -n 4\n#SBATCH -t 10\nrun\n").unwrap();
    let script = script.to_str().unwrap();
    let ran = lab.run(&["alloc", script, "arg"]);
    assert_eq!(ran.status, 2, "{}", ran.stderr);
    let told = format!(
        "pbsctl: the command stands behind --, such as pbsctl cluster alloc --res rset=ncpus=4 -t \
         1h -- {script} arg; lines 2, 3 with #SBATCH are not read; write #CCS lines instead"
    );
    assert!(ran.stderr.starts_with(&told), "{}", ran.stderr);
    for (words, told) in [
        (
            &["--res", "select=2:ncpus=4:mem=4gb"][..],
            "select= is of PBS Pro; write the number of chunks and a chunk: rset=2:ncpus=4:mem=4gb",
        ),
        (
            &["--res", "nodes=2:ppn=8"],
            "nodes= and ppn= are of Torque; write the number of chunks and a chunk: rset=2:ncpus=8",
        ),
        (&["-l", "select=2:ncpus=4"], "pbsctl: resources are written as --res rset=2:ncpus=16"),
        (&["--ntasks=4"], "pbsctl: resources are written as --res rset=2:ncpus=16"),
    ] {
        let ran = lab.run(&[&["alloc"], words].concat());
        assert_eq!(ran.status, 2, "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(told), "{words:?}: {}", ran.stderr);
    }
    // A script that is not there has no options to read.
    let missing = lab.0.join("none.sh");
    let missing = missing.to_str().unwrap();
    let ran = lab.run(&["alloc", "--", missing]);
    assert_eq!(ran.status, 2, "{}", ran.stderr);
    let told =
        format!("pbsctl: {missing}: there is no such file here, and no options in it are read");
    assert!(ran.stderr.starts_with(&told), "{}", ran.stderr);
    let ran = lab.run(&run_on("rset=ncpus=1", &["--", missing]));
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    let doctor = pbsctl(&["cluster", "doctor", "long"], "");
    assert_eq!(doctor.status, 2, "{}", doctor.stderr);
    assert!(doctor.stderr.contains("write pbsctl cluster doctor --partition long"));
}

/// The planner for Slurm says what is missing of its hooks, and what keeps it from planning.
#[test]
fn the_planner_for_slurm_says_what_is_missing() {
    let files = [("slurm.conf", "ClusterName=lab\nNodeName=n1 CPUs=4\n")];
    let directory = directory("cluster-serve-slurm", &files);
    let events = directory.join("none/events");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_pbsctl"))
        .args(["cluster", "serve", "--slurm", "--partition", "long", "--events"])
        .arg(&events)
        .env("SLURM_CONF", directory.join("slurm.conf"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    for part in [
        "jobs of long can't be planned with them; pbsctl cluster doctor --partition long lists",
        "none/events: No such file or directory",
        "install them and make its directory",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn times_and_numbers_are_those_of_other_systems() {
    let lab = Lab::new("cluster-times-numbers");
    let anna = |more: &[&str]| {
        let mut all = vec!["alloc", "--user", "anna", "-g", "physics", "--res", "rset=ncpus=1"];
        all.extend(more);
        lab.run(&all)
    };
    let ran = anna(&["-t", "10m", "--after", "16:00"]);
    assert!(ran.stdout.contains("planned, 2026-11-23T16:00:00+01:00"), "{}", ran.stdout);
    let ran = anna(&["-t", "10m", "--after", "07:30"]);
    assert!(ran.stdout.contains("planned, 2026-11-24T07:30:00+01:00"), "{}", ran.stdout);
    let ran = anna(&["-t", "10m", "--after", "now+1hour"]);
    assert!(ran.stderr.contains("16:00 is the next such time, +2h is two"), "{}", ran.stderr);
    let ran = anna(&["-t", "1m", "-J", "1-5:2,8"]);
    assert_eq!(ran.stdout.lines().count(), 4, "{}{}", ran.stdout, ran.stderr);
    let ran = anna(&["-t", "1m", "--depend", "afterok:3-5:6,afterany:1"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let said = lab.says(&["info", "7"]);
    assert!(said.contains("afterok:3 afterok:4 afterok:5 afterok:6 afterany:1"), "{said}");
    for (options, words) in [
        (["-t", "0"], "at least a second"),
        (["-t", "0s"], "at least a second"),
        (["-J", "0-15%4"], "has no such limit: write 0-15"),
        (["--depend", "afterok:1,afternotok:1"], "can't both complete and fail"),
    ] {
        let ran = anna(&options);
        assert_ne!(ran.status, 0, "{options:?}");
        assert!(ran.stderr.contains(words), "{options:?}: {}", ran.stderr);
    }
    let fixed = |at| {
        let operator = ["alloc", "--user", "op", "-g", "operators", "--res", "rset=ncpus=1"];
        lab.run(&[&operator[..], &["-t", "10m", "--start", at]].concat())
    };
    let ran = fixed("2025-01-01T08:00");
    assert!(ran.stderr.contains("2025-01-01T08:00:00+01:00, is past"), "{}", ran.stderr);
}

#[test]
fn what_is_declined_says_why() {
    let lab = Lab::new("cluster-declined");
    for (arguments, words) in [
        (run_on("rset=ncpus=99", &[]), "no node has ncpus=99"),
        (
            run_on("rset=ncpus=1", &["--deadline", "+3h"]),
            "it would end at 2026-11-23T12:00:00+01:00 at the earliest, which is too late",
        ),
        (vec!["alloc", "--user", "bob", "-g", "students", "--res", "rset=20:ncpus=16"], ""),
        (
            vec!["alloc", "--user", "bob", "-g", "students", "--res", "rset=ncpus=1", "-t", "8d"],
            "limit of user:bob on the duration for ncpus",
        ),
        (
            vec!["alloc", "--user", "bob", "-g", "others", "--res", "rset=ncpus=1"],
            "the site has no user bob with group others",
        ),
        (
            vec![
                "alloc",
                "--user",
                "bob",
                "-g",
                "students",
                "--res",
                "rset=ncpus=1",
                "--start",
                "+1h",
            ],
            "the user needs the privilege \"fixed_start\"; ask an operator",
        ),
    ] {
        let ran = lab.run(&arguments);
        assert_eq!(ran.status, 6, "{arguments:?}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    }
    for (arguments, words) in [
        (vec!["alloc"], "the request names no resources"),
        (run_on("rset=ncpus=1", &["-J", "9-0"]), "write FIRST-LAST, such as 0-99"),
        (run_on("ncpus", &[]), "column"),
        (run_on("rset=ncpus=1", &["--start", "yesterday"]), "is no date; write 2017-08-31"),
        (vec!["alter", "1"], "nothing to change is given"),
        (vec!["advance", "2020-01-01"], "time does not go back"),
    ] {
        let ran = lab.run(&arguments);
        assert_eq!(ran.status, 2, "{arguments:?}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn time_goes_on_and_operators_act() {
    let lab = Lab::new("cluster-time");
    lab.says(&run_on("rset=ncpus=16", &["-J", "0-23", "--run", "90m"]));
    lab.says(&run_on("rset=24:ncpus=16,place=scatter", &["--notify", "10m"]));
    let said = lab.says(&["node", "offline", "node07", "node08", "--why", "fans"]);
    assert!(said.contains("node07 offline since 2026-11-23T08:00:00+01:00  fans"), "{said}");
    // The student may not.
    let ran = lab.run(&["node", "--user", "bob", "online", "node07"]);
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("operators may"), "{}", ran.stderr);
    let said = lab.says(&["advance", "+3h"]);
    assert!(said.starts_with("lab: 2026-11-23T11:00:00+01:00, "), "{said}");
    let said = lab.says(&["node", "online", "node07", "node08"]);
    assert!(said.contains("0 out of use"), "{said}");
    let ran = lab.run(&["extend", "25", "1h"]);
    assert_eq!(ran.status, 6);
    assert!(ran.stderr.contains("it may run for at most 4h24m"), "{}", ran.stderr);
    let said = lab.says(&["extend", "25", "20m"]);
    assert!(said.starts_with("request 25: running, 2026-11-23T0"), "{said}");
}

/// Parts of a node are out of use until it is repaired, and lists show them.
#[test]
fn a_node_has_a_defect() {
    let lab = Lab::new("cluster-defect");
    let defect = ["node", "defect", "node07", "--parts", "ncpus=2:mem=8g", "--why", "DIMM"];
    let line = "node07 defective ncpus=2:mem=8g since 2026-11-23T08:00:00+01:00  DIMM\n";
    for arguments in [&defect[..], &["node"], &["info"]] {
        let said = lab.says(arguments);
        assert!(said.contains(line), "{arguments:?}: {said}");
    }
    for wrong in [&["node", "defect", "node07"][..], &["node", "--parts", "none"]] {
        let ran = lab.run(wrong);
        assert_eq!(ran.status, 2, "{wrong:?}: {}", ran.stdout);
        assert!(ran.stderr.contains("defect and --parts go together"), "{}", ran.stderr);
    }
    let ran = lab.run(&["node", "defect", "node07", "--parts", "ncpus=999"]);
    assert_eq!(ran.status, 1, "{}", ran.stdout);
    assert!(
        ran.stderr.contains("ncpus=999 is more than node07 has; write at most"),
        "{}",
        ran.stderr
    );
    let said = lab.says(&["node", "defect", "node07", "--parts", "none"]);
    assert!(!said.contains("defective"), "{said}");
}

/// Node, site, clock and service are of all users.
#[test]
fn only_operators_act_on_the_whole_cluster() {
    let lab = Lab::new("cluster-operators");
    let site = lab.0.join("other.toml");
    let text = fs::read_to_string(SITE).unwrap();
    let root = "[[user]]\nname = \"root\"\ngroups = [\"operators\"]\n\
                privileges = [\"operator\"]\n[[user]]\nname = \"bob\"\ngroups = [\"students\"]\n";
    fs::write(&site, format!("{text}\n{root}")).unwrap();
    let site = site.to_str().unwrap();
    lab.says(&["site", site]);
    let ran = lab.run(&["node", "--user", "bob", "offline", "node07"]);
    assert_eq!(ran.status, 1, "{}", ran.stdout);
    assert!(ran.stderr.contains("operators may"), "{}", ran.stderr);
    lab.says(&["node", "--user", "root", "offline", "node07"]);
    // These are for whoever may write the file, and take no user.
    for (command, arguments) in
        [("site", &[SITE][..]), ("advance", &["+1h"]), ("serve", &["--until-idle"])]
    {
        let ran = lab.run(&[&[command, "--user", "bob"], arguments].concat());
        assert_eq!(ran.status, 2, "{command}: {}", ran.stdout);
        assert!(ran.stderr.contains("--user"), "{command}: {}", ran.stderr);
    }
}

/// Other sites have resources that this one has not, and nobody wants.
#[test]
fn none_of_an_unknown_resource_is_noted() {
    let lab = Lab::new("cluster-none");
    let ran = lab.run(&run_on("rset=ncpus=1:smp=f:cell=0+2:ncpus=16", &[]));
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let noted = "pbsctl: the site has no smp; smp=f is satisfied by all nodes\n\
                 pbsctl: the site has no cell; cell=0 is satisfied by all nodes\n";
    assert_eq!(ran.stderr, noted);
    assert_eq!(lab.run(&run_on("rset=ncpus=1:smp=t", &[])).status, 6);
}

/// Memory without a unit is bytes, which nobody means.
#[test]
fn memory_without_a_unit_is_noted() {
    let lab = Lab::new("cluster-memory-unit");
    let ran = lab.run(&run_on("rset=ncpus=1:mem=4096", &[]));
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let noted =
        "pbsctl: mem=4096 is 4096 bytes; write a unit, as in mem=4096m for MiB or mem=4096g \
                 for GiB\n";
    assert_eq!(ran.stderr, noted);
    assert_eq!(lab.run(&run_on("rset=ncpus=1:mem=4096k", &[])).stderr, "");
}

/// A name, an argument and a reason stay on their lines.
#[test]
fn no_user_forges_a_line_of_a_request() {
    let lab = Lab::new("cluster-foreign");
    let forged = "a\n2026-11-23T08:00:00+01:00  completed  forged\u{1b}[2J\u{202e}";
    let asks = ["alloc", "--user", "anna", "-g", "physics", "-t", "1h", "--res", "rset=ncpus=1"];
    lab.says(&[&asks[..], &["-N", forged, "--", "./app", forged]].concat());
    lab.says(&["node", "offline", "node07", "--why", forged]);
    let said = lab.says(&["info", "1"]) + &lab.says(&["info"]);
    assert!(!said.lines().any(|line| line.contains("forged") && line.starts_with("2026-11-23T08")));
    assert_eq!(said.lines().filter(|line| line.contains("forged")).count(), 4, "{said}");
    assert!(!said.contains(['\u{1b}', '\u{202e}']), "{said:?}");
}

#[test]
fn steps_follow_each_other() {
    let lab = Lab::new("cluster-steps");
    lab.says(&run_on("rset=ncpus=16", &["--run", "1h"]));
    let said = lab.says(&run_on("rset=ncpus=16", &["--depend", "afterok:1"]));
    assert!(said.starts_with("request 2: planned, 2026-11-23T12:00:00+01:00"), "{said}");
    let said = lab.says(&run_on("rset=ncpus=1", &["--depend", "afternotok:1,afterany:2"]));
    assert_eq!(said, "request 3: waiting, afternotok:1 afterany:2\n");
    let said = lab.says(&["why", "2"]);
    assert!(
        said.contains("request 1, which must end first: until 2026-11-23T12:00:00+01:00"),
        "{said}"
    );
    lab.says(&["advance", "+1h"]);
    let said = lab.says(&["info", "3"]);
    assert!(said.contains("not to run: request 1 completed"), "{said}");
    let ran = lab.run(&run_on("rset=ncpus=1", &["--depend", "after:1"]));
    assert_eq!(ran.status, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("write afterok:7"), "{}", ran.stderr);
}

/// A broken agreement has an exit status of its own, from the plan on.
#[test]
fn a_broken_agreement_has_an_exit_status() {
    let lab = Lab::new("cluster-agreement");
    let all = "rset=24:ncpus=16,place=scatter";
    lab.says(&run_on(all, &[]));
    let broken = lab.run(&run_on(all, &["--sla", "+5h"]));
    assert_eq!(broken.status, 7, "{}", broken.stderr);
    assert!(broken.stdout.contains("it ends 3h later than agreed"), "{}", broken.stdout);
    for command in [&["info", "2"][..], &["why", "2"], &["alter", "2", "-t", "3h"]] {
        assert_eq!(lab.run(command).status, 7, "{command:?}");
    }
    // The others are no matter of this request.
    assert_eq!(lab.run(&["info"]).status, 0);
    lab.says(&["alter", "2", "-t", "1h"]);
    lab.says(&["info", "2"]);
}

/// The end of a request in a file is answered, and written, before others move up.
#[test]
fn the_end_of_a_request_is_answered_before_others_move_up() {
    let lab = Lab::new("cluster-kill");
    lab.says(&run_on("rset=24:ncpus=16,place=scatter", &[]));
    lab.says(&run_on("rset=ncpus=16", &["-J", "0-9"]));
    let ledger = lab.0.join("cluster.db");
    let rows = || {
        let (manager, _) = Manager::open(&ledger, Access::Read, Simulated::default()).unwrap();
        manager.rows().unwrap()
    };
    let starts = || -> Vec<_> { rows()[1..].iter().map(|row| row.start_s).collect() };
    let before = starts();
    // Nobody reads the answer: the socket is full, and the command waits.
    let (mut reader, mut full) = UnixStream::pair().unwrap();
    full.set_nonblocking(true).unwrap();
    while full.write(&[b'x'; 4096]).is_ok() {}
    full.set_nonblocking(false).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pbsctl"));
    command.args(["cluster", "kill", "1", "--ledger"]).arg(&ledger);
    let mut kill = command.stdout(Stdio::from(OwnedFd::from(full))).spawn().unwrap();
    drop(command);
    while rows()[0].outcome.is_none() {
        assert!(kill.try_wait().unwrap().is_none(), "the command has ended without an answer");
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(starts(), before);
    let mut said = Vec::new();
    reader.read_to_end(&mut said).unwrap();
    assert!(String::from_utf8_lossy(&said).contains("request 1: "));
    assert!(kill.wait().unwrap().success());
    let after = starts();
    assert!(after != before && after.iter().zip(&before).all(|(now, before)| now <= before));
}

#[test]
fn running_requests_are_resized() {
    let lab = Lab::new("cluster-resize");
    lab.says(&run_on("rset=3:ncpus=16", &[]));
    lab.says(&["advance", "+1m"]);
    let said = lab.says(&["resize", "1", "--res", "rset=2:ncpus=16"]);
    assert!(said.contains("node01 node02\n"), "{said}");
    let said = lab.says(&["resize", "1", "--res", "rset=4:ncpus=16"]);
    assert!(said.contains("node01 node02 node03 node04\n"), "{said}");
    let ran = lab.run(&["resize", "1", "--res", "rset=4:ncpus=8"]);
    assert_eq!(ran.status, 6, "{}", ran.stderr);
    assert!(ran.stderr.contains("only get more or fewer of its chunks"), "{}", ran.stderr);
}

#[test]
fn several_systems_are_shown_at_once() {
    let lab = Lab::new("cluster-systems");
    lab.says(&run_on("rset=ncpus=16", &[]));
    let other = lab.0.join("another.db");
    let other = other.to_str().unwrap();
    let ran = pbsctl(&["cluster", "new", "--ledger", other, "--site", SITE], "");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    fs::write(lab.0.join("torn.db"), "not a ledger").unwrap();
    let directory = lab.0.to_str().unwrap();
    let ran = pbsctl(&["cluster", "systems", directory], "");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    let has = |name: &str| lines.iter().filter(|line| line.starts_with(name)).count();
    assert_eq!((has("another "), has("torn: ")), (1, 1), "{}", ran.stdout);
    assert_eq!(lines.len(), 4, "{}", ran.stdout);
}

#[test]
fn the_plan_is_a_picture() {
    let lab = Lab::new("cluster-gantt");
    lab.says(&run_on("rset=2:ncpus=16", &[]));
    let reserved = lab.says(&[
        "reserve",
        "--user",
        "op",
        "-g",
        "operators",
        "-t",
        "2h",
        "--start",
        "+5h",
        "-N",
        "class",
        "--res",
        "rset=4:ncpus=16",
    ]);
    assert!(reserved.contains("request 2: planned, 2026-11-23T13:00:00+01:00"), "{reserved}");
    let inside = lab.says(&[
        "alloc",
        "--user",
        "op",
        "-g",
        "operators",
        "-t",
        "1h",
        "--within",
        "2",
        "--res",
        "rset=ncpus=8",
    ]);
    assert!(inside.contains("2026-11-23T13:00:00+01:00 to 2026-11-23T14:00:00+01:00"), "{inside}");
    let picture = lab.0.join("plan.svg");
    lab.says(&["plan", "--gantt", picture.to_str().unwrap()]);
    let picture = fs::read_to_string(picture).unwrap();
    let drawn = roxmltree::Document::parse(&picture).unwrap();
    let titles = drawn.descendants().filter(|node| node.has_tag_name("title"));
    let titles: Vec<_> = titles.filter_map(|node| node.text()).collect();
    assert!(titles.iter().any(|title| title.starts_with("2 class: op of operators")), "{titles:?}");
    lab.says(&["kill", "1", "2"]);
    let said = lab.says(&["stat"]);
    assert!(said.contains("killed") && said.contains("its reservation is over"), "{said}");
}

#[test]
fn the_doctor_of_slurm_says_what_is_missing_and_what_site_it_is() {
    let files = [
        (
            "slurm.conf",
            "ClusterName=lab\nNodeName=n[1-3] CPUs=4 RealMemory=1000\nInclude parts.conf\n",
        ),
        ("parts.conf", "# ours\nPartitionName=plan Nodes=n[1-2]\n"),
    ];
    let directory = directory("cluster-doctor", &files);
    let path = |name: &str| directory.join(name).to_str().unwrap().to_string();
    let (conf, site, ledger) = (path("slurm.conf"), path("site.toml"), path("cluster.db"));
    let asked = ["cluster", "doctor", "--conf", &conf, "--site", &site];
    let ran = pbsctl(&asked, "");
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    for line in [
        "error: JobCompType is missing\n    should be: jobcomp/lua\n",
        &format!("{}:2: advice: MaxTime is missing\n", path("parts.conf")),
        "partition plan: 2 nodes with 8 CPUs; ",
    ] {
        assert!(ran.stdout.contains(line), "{line}: {}", ran.stdout);
    }
    let made = pbsctl(&["cluster", "new", "--ledger", &ledger, "--site", &site], "");
    assert_eq!(made.status, 0, "{}", made.stderr);
    let other = pbsctl(&["cluster", "doctor", "--conf", &conf, "--partition", "x"], "");
    assert!(other.stdout.contains("error: PartitionName is plan"), "{}", other.stdout);
    assert!(other.stdout.contains("name another one with --partition"), "{}", other.stdout);
    let none = pbsctl(&["cluster", "doctor", "--conf", &path("none.conf")], "");
    assert_eq!((none.status, none.stdout.as_str()), (1, ""));
    assert!(none.stderr.contains("none.conf: No such file"), "{}", none.stderr);
    assert!(none.stderr.contains("name Slurm's configuration with --conf"), "{}", none.stderr);
}

#[test]
fn a_reader_needs_no_right_to_write() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    let lab = Lab::new("cluster-reader");
    lab.says(&run_on("rset=ncpus=16", &[]));
    let set = |path: &std::path::Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let ledger = lab.0.join("cluster.db");
    set(&ledger, 0o444);
    set(&lab.0, 0o555);
    let read = |command: &str| {
        let mut reader = Command::new(env!("CARGO_BIN_EXE_pbsctl"));
        reader.args(["cluster", command, "--ledger", ledger.to_str().unwrap()]);
        // Permissions don't bind root.
        if fs::metadata("/proc/self").unwrap().uid() == 0 {
            reader.uid(65_534).gid(65_534);
        }
        let output = reader.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    for command in ["info", "plan", "stat"] {
        let (status, _, told) = read(command);
        assert_eq!((status, told.as_str()), (Some(0), ""), "{command}");
    }
    let (_, said, _) = read("info");
    assert!(said.contains("run") && said.contains("planned"), "{said}");
    // The last change is still in the log while a writer has the ledger open.
    set(&lab.0, 0o755);
    set(&ledger, 0o644);
    let writer =
        Manager::open(&ledger, Access::Write, Simulated::default()).map(|(writer, _)| writer);
    let mut writer = writer.unwrap();
    writer.advance(writer.clock_s() + 1000).unwrap();
    let (status, said, told) = read("info");
    assert_eq!((status, told.as_str()), (Some(0), ""));
    assert!(!said.contains("planned"), "{said}");
    drop(writer);
    // A reader of its own is told of the group.
    set(&ledger, 0o640);
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        let (status, _, told) = read("info");
        assert_eq!(status, Some(1));
        assert!(told.contains("let an operator add you to that group"), "{told}");
    }
    // A ledger that can't be seen is not one that does not exist.
    set(&lab.0, 0o000);
    let (status, _, told) = read("info");
    set(&lab.0, 0o755);
    set(&ledger, 0o644);
    assert_eq!(status, Some(1));
    assert!(told.contains("Permission denied") && !told.contains("no such ledger"), "{told}");
}

/// A directory with traces of the Standard Workload Format.
fn traces(test: &str) -> PathBuf {
    let chain = "; MaxProcs: 16\n; Computer: small\n\
                 1 0 -1 100 4 -1 -1 4 200 -1 1 1 1 -1 -1 -1 -1 -1\n\
                 2 5 -1 50 4 -1 -1 4 60 -1 1 -1 -1 -1 3 -1 1 10 extra\n\
                 3 5 -5 50 4 -1 -1 4 60 -1 1 1 1 -1 -1 -1 -1 -1\n";
    let memory = "1 0 -1 100 4 -1 -1 4 200 4194304 1 1 1 -1 -1 -1 -1 -1\n\
                  2 1 -1 100 4 -1 -1 4 200 33554432 1 1 1 -1 -1 -1 -1 -1\n\
                  3 1 -1 100 8 -1 -1 8 200 16777216 1 1 1 -1 -1 -1 -1 -1\n";
    let site = "name = 'small'\n[[nodes]]\nname = 'n%d'\ncount = 8\nhas = 'ncpus=8:mem=20g'\n";
    let ruled = "name = 'ruled'\n[[nodes]]\nname = 'n'\nhas = 'ncpus=16'\n\
                 [[limit]]\nfor = 'group:G1'\nresource = 'ncpus'\nitems = 4\n";
    let files =
        [("chain.swf", chain), ("memory.swf", memory), ("small.toml", site), ("ruled.toml", ruled)];
    directory(test, &files)
}

fn replay(directory: &std::path::Path, arguments: &[&str], stdin: &str) -> Ran {
    let mut all = vec!["cluster".to_string(), "replay".into()];
    let is_file = |word: &str| word.ends_with(".swf") || word.ends_with(".toml");
    all.extend(arguments.iter().map(|word| {
        if is_file(word) {
            directory.join(word).to_str().unwrap().to_string()
        } else {
            word.to_string()
        }
    }));
    pbsctl(&all.iter().map(String::as_str).collect::<Vec<_>>(), stdin)
}

/// A trace without a job is told from one, and jobs that follow too large ones are counted.
#[test]
fn jobs_that_are_missing_in_a_trace_are_reported() {
    let traces = directory("cluster-trace-missing", &[]);
    let line = |number: u64, cores: u64, preceding: i64| {
        format!("{number} 0 -1 50 {cores} -1 -1 {cores} 60 -1 1 1 1 -1 -1 -1 {preceding} 10\n")
    };
    let asked = ["-", "--cores", "8", "--policy", "easy"];
    let text = [line(1, 99, -1), line(2, 4, 1), line(3, 4, 2)].concat();
    let ran = replay(&traces, &asked, &text);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let told =
        "1 job follows others that are too large for the cluster, at the times of the trace; to \
                replay all, describe a larger cluster with --site or --cores";
    assert!(ran.stdout.contains(told), "{}", ran.stdout);
    for (text, told) in [
        (String::new(), "standard input: no job can be replayed: it has no line with a job; name"),
        (line(1, 99, -1), "1 job is too large for the cluster; describe a larger one with --site"),
        ("1 0 -1 -1 0 -1 -1 0 0 -1 1 1 1 -1 -1 -1 -1 -1\n".into(), "left out (line 1"),
    ] {
        let ran = replay(&traces, &asked, &text);
        assert_eq!(ran.status, 1, "{text}: {}", ran.stdout);
        assert!(ran.stderr.contains(told), "{text}: {}", ran.stderr);
    }
}

/// Jobs of Slurm's accounting are replayed; what can't be is named.
#[test]
fn accounting_of_slurm_is_replayed() {
    let titles = "JobIDRaw|JobName|User|Account|Partition|Submit|Eligible|Start|End|TimelimitRaw|\
                  ReqTRES|AllocTRES|State\n";
    let job = |id: u64, start_s: u64, cpus: u64| {
        let end_s = start_s + 60;
        format!(
            "{id}|a job|anna|physics|batch|1000|1000|{start_s}|{end_s}|2|cpu={cpus}|cpu={cpus}|\
             COMPLETED\n"
        )
    };
    let text = [titles, &job(7, 1000, 3), &job(8, 1060, 2), &job(9, 1120, 1)].concat();
    let step = format!("{text}9.0|x||||||||||cpu=1|COMPLETED\n");
    let trace = pbsctl(&["cluster", "accounting", "-", "--cores", "4"], &step);
    assert_eq!(trace.status, 0, "{}", trace.stderr);
    assert!(trace.stderr.contains("left out: 1 line of steps"), "{}", trace.stderr);
    let traces = directory("cluster-accounting", &[]);
    let ran = replay(&traces, &["-", "--policy", "easy", "--json"], &trace.stdout);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let policy = &ran.json()["policies"][0];
    // The last one starts beside the first, and not after two others.
    assert_eq!(policy["wait_s"]["mean"].as_f64(), Some(20.0));
    let json = pbsctl(&["--json", "cluster", "accounting", "-"], &text).json();
    assert_eq!((&json["schema"], &json["jobs"]), (&"pbs.cluster-workload/1".into(), &3.into()));
    let none = pbsctl(&["cluster", "accounting", "-"], titles);
    assert_eq!(none.status, 1);
    assert!(none.stderr.contains("standard input: it has no job that is over"), "{}", none.stderr);
}

/// The calendar of a site is read by the begin of the trace.
#[test]
fn a_calendar_is_read_by_the_begin_of_a_trace() {
    // At noon, each may have one core for an hour.
    let site = "name = 'day'\ntime_zone = 'UTC'\n[[nodes]]\nname = 'n'\nhas = 'ncpus=4'\n\
                [[limit]]\nfor = 'everyone'\nresource = 'ncpus'\nitems = 1\n\
                validity = 'cron 0 12 * * * +1h'\n";
    let traces = directory("cluster-calendar", &[("day.toml", site)]);
    let job = "1 0 -1 60 4 -1 -1 4 60 -1 1 1 1 -1 -1 -1 -1 -1\n";
    let wait_s = |header: &str| {
        let text = format!("{header}{job}");
        let asked = ["-", "--site", "day.toml", "--policy", "planned", "--json"];
        let ran = replay(&traces, &asked, &text);
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        let json = ran.json();
        let remarks = json["remarks"].to_string();
        assert_eq!(remarks.contains("add a line"), header.is_empty(), "{remarks}");
        json["policies"][0]["wait_s"]["mean"].as_f64()
    };
    assert_eq!(wait_s(""), Some(0.0));
    // In the afternoon.
    assert_eq!(wait_s("; UnixStartTime: 1764000600\n"), Some(0.0));
    let noon_s = 1_764_028_800 / 86_400 * 86_400 + 12 * 3600;
    assert_eq!(wait_s(&format!("; UnixStartTime: {}\n", noon_s + 600)), Some(3000.0));
}

#[test]
fn a_trace_is_replayed_on_its_own_machine() {
    let traces = traces("cluster-trace-machine");
    let ran = replay(&traces, &["chain.swf", "--policy", "easy", "--output", "out.swf"], "");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines[0], "On the machine of the trace, small:");
    let said = &ran.stdout;
    assert!(
        said.contains("1 line has a number that no job has; left out (line 5: field 3"),
        "{said}"
    );
    assert!(said.contains("1 line has more than 18 columns"), "{said}");
    assert!(said.contains("2 jobs on 16 cores"), "{said}");
    let written = fs::read_to_string(traces.join("out.swf")).unwrap();
    assert!(written.contains("; Computer: small\n"), "{written}");
    assert!(written.contains("\n2 110 0 50 4 -1 -1 4 60 -1 1 -1 -1 -1 3 -1 1 10\n"), "{written}");
    // Standard input is a trace, too.
    let text = fs::read_to_string(traces.join("chain.swf")).unwrap();
    let ran = replay(&traces, &["-", "--cores", "8", "--policy", "easy"], &text);
    assert!(ran.stdout.contains("standard input: 2 jobs on 8 cores"), "{}", ran.stdout);
    let headless = text.replace("; MaxProcs: 16\n", "");
    let ran = replay(&traces, &["-", "--policy", "easy"], &headless);
    assert!(ran.stdout.contains("names no number of cores (MaxProcs)"), "{}", ran.stdout);
}

#[test]
fn a_compressed_trace_says_how_to_read_it() {
    let traces = traces("cluster-trace-compressed");
    fs::write(traces.join("zipped.swf"), b"\x1f\x8b\x08\0\xff").unwrap();
    let ran = replay(&traces, &["zipped.swf"], "");
    assert_eq!(ran.status, 1);
    let file = traces.join("zipped.swf");
    let expected = format!(
        "pbsctl: {0}: it is compressed with gzip; write zcat {0} | pbsctl cluster replay -\n",
        file.display()
    );
    assert_eq!(ran.stderr, expected);
    for (bytes, expected) in [
        (&b"\x1f\x9d\x90"[..], "it is compressed with compress; write zcat "),
        (b"PK\x03\x04\x14\0", "it is compressed with zip; write unzip -p "),
    ] {
        fs::write(traces.join("zipped.swf"), bytes).unwrap();
        let ran = replay(&traces, &["zipped.swf"], "");
        assert_eq!(ran.status, 1);
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    }
}

/// Options of generated jobs have no effect on a trace, and are refused beside one.
#[test]
fn options_of_generated_jobs_are_refused_beside_a_trace() {
    let traces = traces("cluster-trace-options");
    for option in ["--jobs", "--load", "--seed", "--seeds", "--accuracy"] {
        let ran = replay(&traces, &["memory.swf", "--cores", "64", option, "5"], "");
        assert_eq!(ran.status, 2, "{option}: {}", ran.stdout);
        assert!(ran.stderr.contains("cannot be used with"), "{option}: {}", ran.stderr);
    }
}

/// Options that no scheduler of a replay reads, and no model of jobs, are refused with what they
/// need.
#[test]
fn options_without_effect_are_refused() {
    let traces = traces("cluster-trace-unread");
    let refused = |command: &[&str], options: &[&str], told: &str| {
        let ran = replay(&traces, &[command, options].concat(), "");
        assert_eq!(ran.status, 2, "{options:?}: {}{}", ran.stdout, ran.stderr);
        let option = options[options.len() - 2];
        let begin = format!("pbsctl: {option} has no effect here: it needs {told}");
        assert!(ran.stderr.starts_with(&begin), "{options:?}: {}", ran.stderr);
    };
    let easy = ["memory.swf", "--cores", "64", "--policy", "easy"];
    let optimised = "--policy optimised or planned-optimised";
    for (options, told) in [
        (&["--learner", "quantile"][..], "--policy easy++, or optimised with --estimates learned"),
        (&["--estimates", "learned"], "--policy optimised, optimised-start or"),
        (&["--backfills", "5"], "--policy planned or conservative, or easy on the nodes of a site"),
        (&["--deadline-cost", "5"], "--policy optimised-deadline or planned-optimised"),
        (&["--express", "5"], "--policy optimised-deadline"),
        (&["--express-below", "5m"], "--policy optimised-deadline"),
        (&["--orders", "5"], optimised),
        (&["--placements", "5"], optimised),
        (&["--slowdown-cost", "5"], optimised),
        (&["--fairness-cost", "5"], optimised),
        (&["--length-cost", "5"], optimised),
        (&["--even-after", "5s"], optimised),
        (&["--search-seed", "5"], optimised),
        (&["--policy", "planned", "--queues-on", "pool"], "--policy fcfs, easy or sjf-easy"),
    ] {
        // The last policy option counts with those before it.
        let easy = if options[0] == "--policy" { &easy[..3] } else { &easy[..] };
        refused(easy, options, told);
    }
    let oculus = ["--generate", "oculus", "--jobs", "5"];
    refused(&oculus, &["--accuracy", "50"], "--generate lublin");
    // On the nodes of a site, easy reads it; and learned run times are read by easy++.
    for options in [
        &["memory.swf", "--site", "small.toml", "--policy", "easy", "--backfills", "5"][..],
        &["memory.swf", "--cores", "64", "--policy", "easy++", "--learner", "quantile"],
    ] {
        let ran = replay(&traces, options, "");
        assert_eq!(ran.status, 0, "{options:?}: {}", ran.stderr);
    }
    let lublin = ["--generate", "lublin", "--cores", "64", "--jobs", "5", "--seeds", "2"];
    let ran = replay(&traces, &[&lublin[..], &["--output", "out.swf"]].concat(), "");
    assert_eq!(ran.status, 2, "{}", ran.stdout);
    assert!(ran.stderr.contains("--output holds one replay, and --seeds 2 replays several"));
    let workload = |options: &[&str]| pbsctl(&[&["cluster", "workload"], options].concat(), "");
    for (options, told) in [
        (["--cores", "5"], "--cores has no effect here: it needs --model lublin"),
        (["--load", "5"], "--load has no effect here: it needs --model lublin"),
        (["--accuracy", "5"], "--accuracy has no effect here: it needs --model lublin"),
        (["--jobs", "0"], "invalid value '0' for '--jobs <N>'"),
        (["--per-day", "0"], "invalid value '0' for '--per-day <N>'"),
    ] {
        let ran = workload(&options);
        assert_eq!(ran.status, 2, "{options:?}: {}", ran.stdout);
        assert!(ran.stderr.contains(told), "{options:?}: {}", ran.stderr);
    }
    let ran = workload(&["--model", "lublin", "--per-day", "5"]);
    assert!(ran.stderr.contains("--per-day has no effect here: it needs --model oculus"));
    for option in ["--events", "--window", "--grace"] {
        let ran = pbsctl(&["cluster", "serve", option, "5s"], "");
        assert_eq!(ran.status, 2, "{option}: {}", ran.stderr);
        assert!(ran.stderr.contains("has no effect here: it needs --slurm"), "{}", ran.stderr);
    }
}

#[test]
fn memory_of_a_trace_is_planned_or_said_not_to_be() {
    let traces = traces("cluster-trace-memory");
    let on_site = ["memory.swf", "--site", "small.toml", "--policy", "planned"];
    let ran = replay(&traces, &on_site, "");
    assert!(
        ran.stdout.contains("1 job is larger than the cluster, and left out"),
        "{}",
        ran.stdout
    );
    let why =
        "1 job is too large for the memory of the nodes alone, such as job 2, which has 32.0 GiB \
               for each core; fields 7 and 10 of a trace are in KiB";
    assert!(ran.stdout.contains(why), "{}", ran.stdout);
    assert!(ran.stdout.contains("2 jobs on 64 cores"), "{}", ran.stdout);
    // Eight cores with 16 GiB each need eight nodes: the first job has one of them for 100 s.
    let json = replay(&traces, &[&on_site[..], &["--json"]].concat(), "").json();
    assert_eq!(json["policies"][0]["wait_s"]["max"], 99.0);
    assert_eq!(json["too_large"], 1);
    let easy = ["memory.swf", "--site", "small.toml", "--policy", "easy"];
    let ran = replay(&traces, &[&easy[..], &["--queues-on", "pool"]].concat(), "");
    assert!(ran.stdout.contains("the cluster is cores only"), "{}", ran.stdout);
    // A queue on the site plans memory like the planner.
    let json = replay(&traces, &[&easy[..], &["--json"]].concat(), "").json();
    assert_eq!(json["policies"][0]["wait_s"]["max"], 99.0);
    let ran = replay(&traces, &["memory.swf", "--cores", "64", "--policy", "planned"], "");
    assert!(ran.stdout.contains("memory is not considered"), "{}", ran.stdout);
    assert!(ran.stdout.contains("3 jobs on 64 cores"), "{}", ran.stdout);
}

/// Jobs that never ran are counted by reason under each scheduler, and so are those that are left
/// out.
#[test]
fn jobs_that_never_ran_have_reasons() {
    let traces = traces("cluster-trace-unstarted");
    // Group 1 may have 4 cores at once.
    let jobs = "1 0 -1 100 8 -1 -1 8 200 -1 1 1 1 -1 -1 -1 -1 -1\n\
                2 1 -1 50 1 -1 -1 1 60 -1 1 2 2 -1 -1 -1 1 5\n\
                3 2 -1 50 99 -1 -1 99 60 -1 1 2 2 -1 -1 -1 -1 -1\n";
    let asked = ["-", "--site", "ruled.toml", "--policy", "easy,planned,conservative"];
    let ran = replay(&traces, &asked, jobs);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let reasons =
        "2 jobs never ran: 1 is excluded by rules of the site (job 1), 1 follows a job that \
                   never ran (job 2)\n";
    for line in [
        &format!("\nEASY: {reasons}"),
        &format!("\nplanned: {reasons}"),
        "1 job is larger than the cluster, and left out: 1 needs more cores than the cluster has \
         (job 3)\n",
    ] {
        assert!(ran.stdout.contains(line), "{line}: {}", ran.stdout);
    }
    assert!(!ran.stdout.contains("\nconservative: "), "{}", ran.stdout);
    let json = replay(&traces, &[&asked[..], &["--json"]].concat(), jobs).json();
    let of = |why: &str, first: u64| serde_json::json!({ "why": why, "jobs": 1, "first": first });
    let unstarted = &json["policies"][0]["unstarted_by_reason"];
    assert_eq!(*unstarted, serde_json::json!([of("rules", 1), of("predecessor", 2)]));
    assert_eq!(json["too_large_by_reason"], serde_json::json!([of("cores", 3)]));
    // Generated jobs of OCuLUS are too large for a small machine.
    let generate = ["--generate", "oculus", "--cores", "2", "--jobs", "300", "--policy", "fcfs"];
    let json = replay(&traces, &[&generate[..], &["--json"]].concat(), "").json();
    let of_seed = &json["replays"][0];
    let too_large = of_seed["too_large"].as_u64().unwrap();
    assert_eq!(too_large + of_seed["jobs"].as_u64().unwrap(), 300);
    assert!(too_large > 0 && of_seed["too_large_by_reason"][0]["why"] == "cores", "{of_seed}");
    let ran = replay(&traces, &generate, "");
    assert!(ran.stdout.contains("larger than the cluster, and left out: "), "{}", ran.stdout);
}

#[test]
fn queues_obey_the_rules_of_the_site() {
    let traces = traces("cluster-trace-rules");
    // Two jobs of group 1 with 4 cores each, where the group may have 4 at once.
    let jobs = "1 0 -1 100 4 -1 -1 4 200 -1 1 1 1 -1 -1 -1 -1 -1\n\
                2 0 -1 50 4 -1 -1 4 60 -1 1 2 1 -1 -1 -1 -1 -1\n";
    let all = ["-", "--site", "ruled.toml", "--json", "--policy", "fcfs,easy,conservative,planned"];
    let waits = |more: &[&str]| {
        let json = replay(&traces, &[&all[..], more].concat(), jobs).json();
        let of = json["policies"].as_array().unwrap().iter();
        let waits: Vec<f64> = of.map(|of| of["wait_s"]["max"].as_f64().unwrap()).collect();
        (waits, json["remarks"][0].as_str().unwrap_or_default().to_string())
    };
    let (on_site, remark) = waits(&[]);
    assert_eq!(on_site, [100.0, 100.0, 0.0, 100.0]);
    assert!(remark.starts_with("rules bind fcfs, easy, planned, but not conservative: 1 limit"));
    let (on_pool, remark) = waits(&["--queues-on", "pool"]);
    assert_eq!(on_pool, [0.0, 0.0, 0.0, 100.0]);
    assert!(remark.starts_with("rules bind planned, but not fcfs, easy, conservative: 1 limit"));
    assert_eq!(waits(&["--without-rules"]), (vec![0.0; 4], String::new()));
}

#[test]
fn optimised_plans_are_compared_with_queues() {
    let traces = traces("cluster-trace-optimised");
    let all = "fcfs,easy,sjf-easy,easy++,conservative,planned,optimised,optimised-start";
    let generate = ["--generate", "lublin", "--cores", "64", "--jobs", "300"];
    let ran = replay(&traces, &[&generate[..], &["--policy", all, "--json"]].concat(), "");
    let json = ran.json();
    let policies = json["replays"][0]["policies"].as_array().unwrap();
    let names: Vec<&str> = policies.iter().map(|of| of["policy"].as_str().unwrap()).collect();
    let optimised = ["optimised", "optimised, start promised"];
    assert_eq!(names[..4], ["FCFS", "EASY", "SJF-EASY", "EASY++"]);
    assert_eq!(names[4..6], ["conservative", "planned"]);
    assert_eq!(names[6..], optimised);
    assert!(policies[1]["work"].is_null() && policies[6]["work"]["orders"].as_u64() > Some(300));
    assert!(policies[6]["broken_promises"].is_null());
    assert_eq!(policies[7]["broken_promises"], 0);
    assert!(policies.iter().all(|of| of["event_ns"].as_u64() > Some(0)));
    let learned = ["--policy", "optimised", "--estimates", "learned"];
    let ran = replay(&traces, &[&generate[..], &learned].concat(), "");
    assert!(ran.stdout.contains("optimised, quantile "), "{}", ran.stdout);
    assert!(ran.stdout.contains("orders per event"), "{}", ran.stdout);
}

/// Each scheduler is compared with each of the estimates, once where two are the same to it. The
/// results do not depend on the number of replays at a time.
#[test]
fn schedulers_are_compared_with_several_estimates() {
    let traces = traces("cluster-trace-estimates");
    let generate = ["--generate", "lublin", "--cores", "64", "--jobs", "200", "--json"];
    let all = ["--policy", "easy,optimised", "--estimates", "users,learned,perfect"];
    let of = |more: &[&str]| {
        let mut json = replay(&traces, &[&generate[..], more].concat(), "").json();
        let policies = json["replays"][0]["policies"].as_array_mut().unwrap();
        for of in &mut *policies {
            of["event_ns"] = 0.into();
        }
        policies.clone()
    };
    let together = of(&[&all[..], &["--threads", "3"]].concat());
    let names: Vec<&str> = together.iter().map(|of| of["policy"].as_str().unwrap()).collect();
    assert_eq!(names[..3], ["EASY", "optimised", "optimised, quantile"]);
    assert_eq!(names[3..], ["EASY, perfect estimates", "optimised, perfect estimates"]);
    assert_eq!(together, of(&[&all[..], &["--threads", "1"]].concat()));
    let mut perfect = of(&["--policy", "easy", "--estimates", "perfect"]);
    assert_eq!(perfect[0]["policy"], "EASY");
    perfect[0]["policy"] = together[3]["policy"].clone();
    assert_eq!(perfect[0], together[3]);
}

/// Figures without the jobs at the begin and the end of a trace are those of the others in the
/// schedule, which has all jobs.
#[test]
fn jobs_at_the_begin_and_the_end_are_left_out() {
    let traces = traces("cluster-trace-left-out");
    let generate = ["--generate", "lublin", "--cores", "64", "--jobs", "300", "--policy", "easy"];
    let file = traces.join("easy.swf").to_string_lossy().into_owned();
    let whole = replay(&traces, &[&generate[..], &["--json", "--output", &file]].concat(), "");
    let whole = whole.json()["replays"][0].clone();
    assert_eq!((whole["jobs"].as_u64(), whole["jobs_left_out"].as_u64()), (Some(300), Some(0)));
    let written = std::fs::read_to_string(&file).unwrap();
    let lines = written.lines().filter(|line| !line.starts_with(';'));
    let times: Vec<[u64; 2]> = lines
        .map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            [fields[1], fields[2]].map(|field| field.parse().unwrap())
        })
        .collect();
    let last_s = times.iter().map(|[submit_s, _]| *submit_s).max().unwrap();
    let first_s = times.iter().map(|[submit_s, _]| *submit_s).min().unwrap();
    let counted =
        times.iter().filter(|[at_s, _]| *at_s >= first_s + 7200 && *at_s + 7200 <= last_s);
    let waits: Vec<u64> = counted.map(|[_, wait_s]| *wait_s).collect();
    assert!(!waits.is_empty() && waits.len() < 300);
    let errors = ["--json", "--leave-out", "2h", "--run-time-errors"];
    let part = replay(&traces, &[&generate[..], &errors].concat(), "");
    let part = part.json()["replays"][0].clone();
    assert_eq!(part["jobs"].as_u64(), Some(waits.len() as u64));
    assert_eq!(part["jobs_left_out"].as_u64(), Some(300 - waits.len() as u64));
    assert_eq!(part["run_time_errors"]["jobs"], part["policies"][0]["jobs"]);
    let mean_s = waits.iter().sum::<u64>() as f64 / waits.len() as f64;
    let said_s = part["policies"][0]["wait_s"]["mean"].as_f64().unwrap();
    assert!((said_s - mean_s).abs() < 0.001, "{said_s} {mean_s}");
    assert_ne!(part["policies"][0]["wait_s"], whole["policies"][0]["wait_s"]);
    let none = replay(&traces, &[&generate[..], &["--leave-out", "1000d"]].concat(), "");
    assert_eq!(none.status, 2);
    assert!(none.stderr.contains("--leave-out: no job is left"), "{}", none.stderr);
}

#[test]
fn errors_of_expected_run_times_are_shown() {
    let traces = traces("cluster-trace-errors");
    let generate = ["--generate", "lublin", "--cores", "64", "--jobs", "300", "--policy", "easy"];
    let json = replay(&traces, &[&generate[..], &["--json"]].concat(), "").json();
    assert!(json["replays"][0]["run_time_errors"].is_null(), "nobody wants them");
    let asked = [&generate[..], &["--run-time-errors"]].concat();
    let json = replay(&traces, &[&asked[..], &["--json"]].concat(), "").json();
    let errors = &json["replays"][0]["run_time_errors"];
    assert_eq!((&errors["jobs"], &errors["limit"]["too_short"]), (&300.into(), &0.0.into()));
    assert!(errors["last_two"]["too_short"].as_f64() > Some(0.0));
    let users = errors["users"].as_array().unwrap();
    let jobs: Vec<u64> = users.iter().map(|of| of["jobs"].as_u64().unwrap()).collect();
    assert!(jobs.is_sorted_by(|one, next| one >= next) && jobs.len() <= 20, "{jobs:?}");
    let text = replay(&traces, &asked, "").stdout;
    assert!(text.contains("Accuracy of the run times of users with the most jobs"), "{text}");
    assert!(text.contains("regression"), "{text}");
}

#[test]
fn deadlines_are_kept_of_all_and_of_accepted() {
    let traces = traces("cluster-trace-deadlines");
    let jobs = ["--generate", "lublin", "--cores", "64", "--jobs", "300", "--load", "120"];
    let policies =
        ["--policy", "optimised-deadline,planned-optimised,planned-optimised-start,easy"];
    let options = ["--deadlines", "50", "--estimates", "perfect", "--orders", "20"];
    let asked = [&jobs[..], &policies, &options].concat();
    let text = replay(&traces, &asked, "").stdout;
    assert!(text.contains("deadlines kept") && text.contains("of accepted"), "{text}");
    let json = replay(&traces, &[&asked[..], &["--json"]].concat(), "").json();
    let of = |policy: usize, key: &str| json["replays"][0]["policies"][policy][key].clone();
    let names = [0, 1, 2, 3].map(|policy| of(policy, "policy"));
    let optimised = "planned, optimised";
    assert_eq!(names[..2], ["optimised, deadlines promised", optimised]);
    assert_eq!(names[2..], ["planned, optimised, start promised", "EASY"]);
    assert_eq!(of(0, "deadlines_kept"), of(0, "deadlines_accepted"));
    assert!(of(0, "deadlines_kept").as_u64() > of(3, "deadlines_kept").as_u64());
    assert_eq!((of(0, "broken_promises"), of(2, "broken_promises")), (0.into(), 0.into()));
    assert!(of(1, "work")["orders"].as_u64() > Some(100), "{}", of(1, "work"));

    // The same on nodes, under the rules of a site.
    let policies = ["--policy", "planned-optimised-deadline,planned-deadlines"];
    let asked = [&jobs[..], &policies, &options, &["--json"]].concat();
    let json = replay(&traces, &asked, "").json();
    let of = |policy: usize, key: &str| json["replays"][0]["policies"][policy][key].clone();
    assert_eq!(of(0, "policy"), "planned to deadlines, optimised");
    assert_eq!(of(0, "deadlines_kept"), of(0, "deadlines_accepted"));
    assert!(of(0, "deadlines_kept").as_u64() > of(1, "deadlines_kept").as_u64());
}

#[test]
fn costs_and_promises_of_a_site_are_shown() {
    let nodes = "[[nodes]]\nname = 'n1'\nhas = 'ncpus=4'\n";
    let text = format!("[optimise]\npromises = ['none', 'start']\nfairness = 7\n{nodes}");
    let site = directory("cluster-optimise", &[("site.toml", &text)]).join("site.toml");
    let check = ["cluster", "check", site.to_str().unwrap()];
    let shown = pbsctl(&check, "").stdout;
    assert!(shown.contains("promises none, start;") && shown.contains("fairness 7"), "{shown}");
    let json = pbsctl(&[&check[..], &["--json"]].concat(), "").json();
    assert_eq!(json["optimise"]["fairness"], 7);
    assert_eq!(json["optimise"]["promises"], serde_json::json!(["none", "start"]));
    let lab = Lab::new("cluster-promise");
    lab.says(&run_on("rset=1:ncpus=4", &["--promise", "none"]));
    let said = lab.says(&["info", "1"]);
    assert!(said.contains("promise    none"), "{said}");
}

/// One number that does not exist: no request is ended, and the message names it.
#[test]
fn requests_are_ended_all_or_none() {
    let lab = Lab::new("all-or-none");
    for _ in 0..2 {
        lab.says(&run_on("rset=1:ncpus=1", &[]));
    }
    let refused = lab.run(&["kill", "1", "2", "9999"]);
    assert_ne!(refused.status, 0);
    assert!(refused.stderr.contains("9999"), "{}", refused.stderr);
    assert!(lab.says(&["info"]).contains("2 requests"), "{}", lab.says(&["info"]));
    lab.says(&run_on("rset=1:ncpus=1", &["--depend", "afterok:1"]));
    // Number 3 ends with number 1, which it follows.
    let ended = lab.says(&["kill", "2", "1", "2", "3"]);
    assert_eq!(ended.lines().count(), 3, "{ended}");
    assert!(lab.says(&["info"]).contains(", 0 requests"), "{}", lab.says(&["info"]));
}

/// The time of a ledger that is carried out is that of the machine.
#[test]
fn time_goes_on_by_hand_only_where_nobody_carries_the_ledger_out() {
    let lab = Lab::new("by-hand");
    let served = Served::take(&lab.0.join("cluster.db")).unwrap();
    let refused = lab.run(&["advance", "+1h"]);
    assert_ne!(refused.status, 0);
    assert!(refused.stderr.contains("carries out this ledger"), "{}", refused.stderr);
    drop(served);
    lab.says(&["advance", "+1h"]);
}
