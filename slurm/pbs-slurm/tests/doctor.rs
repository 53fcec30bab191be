// SPDX-License-Identifier: GPL-2.0
//! Findings in files as operators have them.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use pbs_site::Site;
use pbs_slurm::conf::{check, read, site_of, Conf, Finding, Level};

const HOOKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../slurm/hooks");

/// A directory as /etc/slurm, with all that is to be there.
struct Etc(PathBuf);

/// A configuration in which nothing is missing but what is above it.
const BASE: &str = "\
ClusterName=lab
SlurmctldHost=head
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=500
TaskPlugin=task/affinity,task/cgroup
ProctrackType=proctrack/cgroup
NodeName=n[01-16] CPUs=2 RealMemory=1000
";

impl Etc {
    fn new(test: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        let etc = Self(path.canonicalize().unwrap());
        // SlurmUser is who runs this test, by number, unless that is root.
        let uid = fs::metadata(&etc.0).unwrap().uid();
        let user = if uid == 0 { 65_534 } else { uid };
        etc.write("events", "");
        let events = etc.path("events");
        fs::set_permissions(&events, fs::Permissions::from_mode(0o600)).unwrap();
        let _ = std::os::unix::fs::chown(&events, Some(user), None);
        for name in ["job_submit.lua", "jobcomp.lua", "pbs-event", "plan.conf"] {
            let text = fs::read_to_string(format!("{HOOKS}/{name}")).unwrap();
            let text = text
                .replace("/var/lib/pbs-slurm/events", events.to_str().unwrap())
                .replace("/etc/slurm/pbs-event", etc.path("pbs-event").to_str().unwrap())
                .replace("SLURM_UID = 64030", &format!("SLURM_UID = {user}"));
            etc.write(name, &text);
        }
        let run = fs::Permissions::from_mode(0o755);
        fs::set_permissions(etc.path("pbs-event"), run).unwrap();
        etc.write("plugstack.conf", "# none\noptional /usr/lib/spank_pbsd.so\n");
        etc.conf(&format!("{BASE}SlurmUser={user}\nInclude plan.conf\n"));
        etc
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn conf(&self, text: &str) {
        self.write("slurm.conf", text);
    }

    fn change(&self, name: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path(name)).unwrap();
        assert!(text.contains(from), "{name} has no {from}");
        self.write(name, &text.replace(from, to));
    }

    fn read(&self) -> Conf {
        read(&self.path("slurm.conf")).unwrap()
    }

    /// The findings, except that there is no Lua compiler on this machine.
    fn found(&self) -> Vec<Finding> {
        let mut found = check(&self.read(), "plan", 60);
        found.retain(|of| of.is.as_deref() != Some("not tried"));
        found
    }

    /// The only finding after a change.
    #[track_caller]
    fn finds(&self, name: &str, from: &str, to: &str) -> Finding {
        let before = fs::read_to_string(self.path(name)).unwrap();
        self.change(name, from, to);
        let found = self.found();
        self.write(name, &before);
        assert_eq!(found.len(), 1, "{from} -> {to}: {found:#?}");
        found[0].clone()
    }
}

#[test]
fn what_is_installed_as_documented_is_right() {
    let etc = Etc::new("doctor-right");
    assert_eq!(etc.found(), []);
}

/// The nodes' own Epilog may report that they are free, in place of the one of slurmctld.
#[test]
fn an_epilog_of_nodes_takes_the_place_of_that_of_slurmctld() {
    let etc = Etc::new("doctor-epilog");
    let of_slurmctld = format!("EpilogSlurmctld={}\n", etc.path("pbs-event").display());
    let found =
        etc.finds("plan.conf", &of_slurmctld, &format!("{of_slurmctld}Epilog=/opt/clean\n"));
    assert_eq!((found.level, &*found.key), (Level::Advice, "EpilogSlurmctld"));
    let found = etc.finds("plan.conf", &of_slurmctld, "Epilog=/opt/clean\n");
    assert_eq!((found.level, &*found.key), (Level::Error, "EpilogSlurmctld"));
    etc.write("clean", "#!/bin/sh\nexec /etc/slurm/pbs-event\n");
    let own = format!("Epilog={}\n", etc.path("clean").display());
    etc.change("plan.conf", &of_slurmctld, &own);
    assert_eq!(etc.found(), []);
    etc.write("clean", "#!/bin/sh\n# no pbs-event here\ntrue\n");
    let keys = |etc: &Etc| etc.found().into_iter().map(|of| of.key).collect::<Vec<_>>();
    assert_eq!(keys(&etc), ["EpilogSlurmctld"]);
    // On nodes it may be elsewhere.
    etc.change("plan.conf", &own, "Epilog=/nowhere/pbs-event\n");
    assert_eq!(etc.found(), []);
    etc.change("plan.conf", "Epilog=/nowhere/", "Epilog=");
    assert_eq!(keys(&etc), ["Epilog"]);
}

/// An Epilog that is pbs-event has to run, to know that it is an Epilog, and to write into the event
/// file.
#[test]
fn an_epilog_of_nodes_is_checked_like_other_hooks() {
    let etc = Etc::new("doctor-epilog-file");
    fs::create_dir(etc.path("nodes")).unwrap();
    let of_slurmctld = format!("EpilogSlurmctld={}\n", etc.path("pbs-event").display());
    let of_nodes = format!("Epilog={}\n", etc.path("nodes/pbs-event").display());
    etc.change("plan.conf", &of_slurmctld, &of_nodes);
    fs::copy(etc.path("pbs-event"), etc.path("nodes/pbs-event")).unwrap();
    assert_eq!(etc.found(), []);
    let events = etc.path("events").display().to_string();
    let found = etc.finds("nodes/pbs-event", &events, "/elsewhere");
    assert_eq!((found.level, &*found.key), (Level::Error, "pbs-event"));
    let found = etc.finds("nodes/pbs-event", "epilog_slurmd", "epilog");
    assert_eq!((found.level, &*found.key), (Level::Error, "pbs-event"));
    fs::set_permissions(etc.path("nodes/pbs-event"), fs::Permissions::from_mode(0o644)).unwrap();
    let found = etc.found();
    assert_eq!((found.len(), &*found[0].key), (1, "Epilog"), "{found:?}");
}

#[test]
fn each_thing_that_is_missing_is_found() {
    let etc = Etc::new("doctor-missing");
    for (file, from, to, level, key) in [
        (
            "plan.conf",
            "JobSubmitPlugins=lua",
            "JobSubmitPlugins=throttle",
            Level::Error,
            "JobSubmitPlugins",
        ),
        (
            "plan.conf",
            "JobCompType=jobcomp/lua",
            "JobCompType=jobcomp/none",
            Level::Error,
            "JobCompType",
        ),
        ("plan.conf", "PrologSlurmctld=", "Prolog=", Level::Error, "PrologSlurmctld"),
        (
            "plan.conf",
            "EpilogSlurmctld=",
            "EpilogSlurmctld=/nowhere",
            Level::Error,
            "EpilogSlurmctld",
        ),
        ("plan.conf", "PrologFlags=Alloc", "PrologFlags=Serial", Level::Advice, "PrologFlags"),
        (
            "plan.conf",
            "batch_sched_delay=0",
            "batch_sched_delay=3",
            Level::Error,
            "SchedulerParameters",
        ),
        (
            "plan.conf",
            ",sched_interval=1",
            ",sched_interval=60",
            Level::Error,
            "SchedulerParameters",
        ),
        ("plan.conf", "MaxJobCount=20000", "MaxJobCount=10000", Level::Advice, "MaxJobCount"),
        ("plan.conf", "PartitionName=plan", "PartitionName=other", Level::Error, "PartitionName"),
        ("plan.conf", "MaxTime=7-00:00:00", "MaxTime=INFINITE", Level::Advice, "MaxTime"),
        ("plan.conf", "State=UP", "State=DOWN", Level::Error, "State"),
        ("plan.conf", "State=UP", "State=UP RootOnly=YES", Level::Error, "RootOnly"),
        ("plan.conf", "OverSubscribe=NO", "OverSubscribe=FORCE:2", Level::Advice, "OverSubscribe"),
        ("slurm.conf", "select/cons_tres", "select/linear", Level::Error, "SelectType"),
        (
            "slurm.conf",
            "CR_Core_Memory",
            "CR_ONE_TASK_PER_CORE",
            Level::Error,
            "SelectTypeParameters",
        ),
        ("slurm.conf", "CR_Core_Memory", "CR_Core", Level::Advice, "SelectTypeParameters"),
        ("slurm.conf", "DefMemPerCPU", "MaxMemPerCPU", Level::Advice, "DefMemPerCPU"),
        (
            "slurm.conf",
            "DefMemPerCPU",
            "AccountingStorageEnforce=associations,qos\nDefMemPerCPU",
            Level::Advice,
            "AccountingStorageEnforce",
        ),
        ("slurm.conf", "task/affinity,", "", Level::Advice, "TaskPlugin"),
        ("slurm.conf", ",task/cgroup", "", Level::Advice, "TaskPlugin"),
        ("slurm.conf", "proctrack/cgroup", "proctrack/linuxproc", Level::Advice, "ProctrackType"),
        ("plugstack.conf", "optional ", "# ", Level::Advice, "plugstack.conf"),
        (
            "job_submit.lua",
            "PARTITION = \"plan\"",
            "PARTITION = \"debug\"",
            Level::Error,
            "job_submit.lua",
        ),
        ("job_submit.lua", "SLURM_UID = ", "SLURM_UID = 9", Level::Error, "job_submit.lua"),
        ("jobcomp.lua", "/events\"", "/others\"", Level::Error, "jobcomp.lua"),
    ] {
        let found = etc.finds(file, from, to);
        assert_eq!((found.level, found.key.as_str()), (level, key), "{from} -> {to}");
        assert!(!found.should.is_empty() && !found.why.is_empty());
    }
    assert_eq!(etc.found(), []);
    // What has no limits is no finding.
    etc.change("slurm.conf", "DefMemPerCPU", "AccountingStorageEnforce=associations\nDefMemPerCPU");
    assert_eq!(etc.found(), []);
}

#[test]
fn a_finding_says_what_is_and_where() {
    let etc = Etc::new("doctor-where");
    let found = etc.finds("plan.conf", "MaxJobCount=20000", "MAXJOBCOUNT = 500");
    assert_eq!(found.is.as_deref(), Some("500"));
    let place = found.place.unwrap();
    assert_eq!(place.file, etc.path("plan.conf"));
    let text = fs::read_to_string(etc.path("plan.conf")).unwrap();
    let line = text.lines().nth(place.line - 1).unwrap();
    assert_eq!(line, "MaxJobCount=20000");
    let found = etc.finds("plan.conf", "JobSubmitPlugins=lua", "JobSubmitPlugins=throttle");
    assert_eq!(found.should, "throttle,lua");
    let found = etc.finds("plan.conf", "JobCompType=jobcomp/lua", "#");
    assert_eq!((found.is, found.place), (None, None));
}

#[test]
fn nodes_that_belong_to_others_too_are_named() {
    let etc = Etc::new("doctor-shared");
    let more = "PartitionName=debug Nodes=ALL\nPartitionName=x Nodes=n[02-03,05] Default=YES\n";
    etc.change("slurm.conf", "Include", &format!("{more}Include"));
    let found = etc.found();
    let said: Vec<_> = found.iter().map(|of| of.is.as_deref().unwrap()).collect();
    assert_eq!(said, ["debug has n[01-16]", "x has n[02-03,05]"]);
    assert!(found.iter().all(|of| of.level == Level::Error));
}

#[test]
fn licences_that_other_partitions_may_hold_are_named() {
    let etc = Etc::new("doctor-licences");
    let licences = "Licenses=matlab:4\n";
    etc.change("slurm.conf", "Include", &format!("{licences}Include"));
    assert_eq!(etc.found(), []);
    etc.change("slurm.conf", licences, &format!("{licences}PartitionName=debug\n"));
    let found = etc.found();
    let [found] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!((found.level, found.key.as_str()), (Level::Advice, "Licenses"));
    assert_eq!(found.is.as_deref(), Some("matlab:4"));
}

#[test]
fn nodes_need_as_long_as_slurm_waits_before_it_kills() {
    let etc = Etc::new("doctor-kill-wait");
    let found = |release_timeout_s| {
        let mut found = check(&etc.read(), "plan", release_timeout_s);
        found.retain(|of| of.key == "KillWait");
        found
    };
    // Slurm's default.
    assert_eq!(found(31), []);
    let advice = found(5).remove(0);
    assert_eq!((advice.level, advice.is.as_deref()), (Level::Advice, Some("30 by default")));
    assert!(advice.should.contains("release_timeout = \"35s\""), "{advice:?}");
    etc.change("slurm.conf", "ClusterName=lab", "ClusterName=lab\nKillWait=90");
    let advice = found(60).remove(0);
    assert_eq!((advice.is.as_deref(), advice.place.map(|of| of.line)), (Some("90"), Some(2)));
    assert_eq!(found(91), []);
}

#[test]
fn jobs_that_are_over_are_remembered_until_the_planner_is_back() {
    let etc = Etc::new("doctor-min-job-age");
    let found = || etc.found().into_iter().find(|of| of.key == "MinJobAge");
    assert_eq!(found(), None);
    for (age, is_advised) in [("10", true), ("299", true), ("300", false), ("0", false)] {
        etc.change("slurm.conf", "ClusterName=lab", &format!("ClusterName=lab\nMinJobAge={age}"));
        let advice = found();
        assert_eq!(advice.is_some(), is_advised, "{age}");
        if let Some(advice) = advice {
            assert_eq!((advice.level, advice.is.as_deref()), (Level::Advice, Some(age)));
        }
        etc.change("slurm.conf", &format!("ClusterName=lab\nMinJobAge={age}"), "ClusterName=lab");
    }
}

#[test]
fn a_list_of_cpus_that_slurm_ignores_is_found() {
    let etc = Etc::new("doctor-spec-list");
    let found = || etc.found().into_iter().find(|of| of.key == "CpuSpecList");
    for (list, is_found) in [("0", false), ("0,2", true)] {
        etc.change("slurm.conf", "CPUs=2 ", &format!("CPUs=2 CpuSpecList={list} "));
        let advice = found();
        assert_eq!(advice.is_some(), is_found, "{list}");
        if let Some(advice) = advice {
            let is = advice.is.as_deref();
            assert_eq!((advice.level, is), (Level::Advice, Some("0,2 on n[01-16]")));
        }
        etc.change("slurm.conf", &format!("CPUs=2 CpuSpecList={list} "), "CPUs=2 ");
    }
}

#[test]
fn root_is_not_to_be_the_user() {
    let etc = Etc::new("doctor-root");
    etc.change("slurm.conf", "SlurmUser=", "#");
    let found = etc.found();
    assert_eq!((found[0].level, found[0].key.as_str()), (Level::Error, "SlurmUser"));
}

#[test]
fn hooks_that_are_not_there_or_may_not_run_are_found() {
    let etc = Etc::new("doctor-hooks");
    let deny = fs::Permissions::from_mode(0o644);
    fs::set_permissions(etc.path("pbs-event"), deny).unwrap();
    fs::remove_file(etc.path("jobcomp.lua")).unwrap();
    let found = etc.found();
    let keys: Vec<_> = found.iter().map(|of| of.key.as_str()).collect();
    assert_eq!(keys, ["jobcomp.lua", "PrologSlurmctld", "EpilogSlurmctld"]);
    assert!(found.iter().all(|of| of.level == Level::Error));
}

#[test]
fn the_event_file_is_slurms_alone() {
    let etc = Etc::new("doctor-events");
    let open = fs::Permissions::from_mode(0o644);
    fs::set_permissions(etc.path("events"), open).unwrap();
    let found = etc.found();
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].is.as_ref().unwrap().ends_with("is readable by others"));
    fs::remove_file(etc.path("events")).unwrap();
    let found = etc.found();
    assert!(found[0].is.as_ref().unwrap().ends_with("is missing"), "{found:#?}");
}

#[test]
fn lua_that_cannot_be_read_is_an_error() {
    let etc = Etc::new("doctor-lua");
    etc.change("job_submit.lua", "return slurm.SUCCESS", "return slurm.SUCCESS)");
    let conf = etc.read();
    if !conf.job_submit.is_compiled {
        pbs_text::skipped("it needs luac, to compile a script: install lua5.1");
        return;
    }
    let found = etc.found();
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].level, Level::Error);
    assert!(found[0].is.as_ref().unwrap().contains("job_submit.lua"), "{found:#?}");
}

#[test]
fn nodes_are_what_jobs_get_of_them() {
    let etc = Etc::new("doctor-nodes");
    etc.conf(
        "NodeName=DEFAULT RealMemory=64000 Weight=5\n\
         nodename=a[1-2] Sockets=2 CoresPerSocket=8 ThreadsPerCore=2 \\\n\
           CoreSpecCount=1 MemSpecLimit=4000 Features=gpu,fast\n\
         NodeName=b Boards=2 SocketsPerBoard=2 CoresPerSocket=4 RealMemory=100 Weight=1\n\
         NodeSet=gpus Feature=gpu\n\
         PartitionName=DEFAULT MaxTime=60\n\
         PartitionName=plan Nodes=b,gpus,a1\n\
         PartitionName=none\n",
    );
    let conf = etc.read();
    let nodes = conf.nodes("plan");
    let seen: Vec<_> =
        nodes.iter().map(|of| (of.name.as_str(), of.cpus, of.memory_mib, of.weight)).collect();
    // Two boards with two sockets of four cores each.
    assert_eq!(seen, [("b", 16, 100, 1), ("a1", 30, 60_000, 5), ("a2", 30, 60_000, 5)]);
    assert_eq!(nodes[1].features, ["gpu", "fast"]);
    assert_eq!(conf.partition("none").unwrap().value("maxtime"), Some("60"));
    assert!(conf.nodes("none").is_empty() && conf.nodes("nowhere").is_empty());
}

/// Both names of a key are one: that of a node counts before that of all nodes.
#[test]
fn a_key_with_two_names_is_one_key() {
    let etc = Etc::new("doctor-aliases");
    etc.conf(
        "NodeName=DEFAULT Features=old Sockets=1 CoresPerSocket=4 Weight=7\n\
         NodeName=a Feature=new SocketsPerBoard=2 Weight=INFINITE\n\
         NodeName=b Features=late,ib Feature=gpu\n\
         NodeName=c\nPartitionName=plan Nodes=ALL\n",
    );
    let nodes = etc.read().nodes("plan");
    let seen: Vec<_> = nodes.iter().map(|of| (of.features.join("+"), of.cpus, of.weight)).collect();
    let expected = [("new", 8, u64::from(u32::MAX)), ("gpu", 4, 7), ("old", 4, 7)];
    assert_eq!(seen, expected.map(|(features, cpus, weight)| (features.to_string(), cpus, weight)));
}

/// Slurm reads names of plugins with and without their kind, and quotes within a value.
#[test]
fn plugins_have_their_kind_or_not() {
    let etc = Etc::new("doctor-plugins");
    etc.change("slurm.conf", "task/affinity,task/cgroup", "affinity,Cgroup");
    etc.change("plan.conf", "JobSubmitPlugins=lua", "JobSubmitPlugins=throttle,job_submit/lua");
    etc.change("slurm.conf", "ClusterName", "AuthInfo=\"ttl=9\",\"cred_expire=9\"\nClusterName");
    assert_eq!(etc.found(), []);
}

/// Slurm takes several words for yes, and a partition may have its own parts of nodes.
#[test]
fn settings_of_a_partition_are_read_as_by_slurm() {
    let etc = Etc::new("doctor-partition");
    for word in ["TRUE", "1", "yes", "Up"] {
        let found = etc.finds("plan.conf", "State=UP", &format!("State=UP RootOnly={word}"));
        assert_eq!((found.level, found.key.as_str()), (Level::Error, "RootOnly"), "{word}");
    }
    etc.change("slurm.conf", "CPUs=2 ", "Sockets=1 CoresPerSocket=1 ThreadsPerCore=2 ");
    let site = |etc: &Etc| Site::from_toml(&site_of(&etc.read(), "plan")).unwrap();
    assert_eq!(site(&etc).threads_per_core, 2);
    etc.change("slurm.conf", "CR_Core_Memory", "CR_CPU_Memory");
    assert_eq!(site(&etc).threads_per_core, 2);
    etc.change("plan.conf", "State=UP", "State=UP SelectTypeParameters=CR_Core");
    assert_eq!(site(&etc).threads_per_core, 2);
    assert!(etc.found().iter().any(|of| of.key == "SelectTypeParameters"), "{:#?}", etc.found());
}

/// A site file that is written waits longer for nodes than Slurm does, which then is no finding.
#[test]
fn a_site_waits_longer_than_slurm() {
    let etc = Etc::new("doctor-release");
    let release_timeout_s =
        |etc: &Etc| Site::from_toml(&site_of(&etc.read(), "plan")).unwrap().release_timeout_s;
    assert_eq!(release_timeout_s(&etc), 60);
    etc.change("slurm.conf", "ClusterName=lab", "ClusterName=lab\nKillWait=90");
    assert_eq!(release_timeout_s(&etc), 95);
    let findings = check(&etc.read(), "plan", release_timeout_s(&etc));
    assert!(findings.iter().all(|of| of.key != "KillWait"));
}

#[test]
fn the_site_of_a_partition_is_one() {
    let etc = Etc::new("doctor-site");
    let site = Site::from_toml(&site_of(&etc.read(), "plan")).unwrap();
    assert_eq!(site.name, "lab");
    let names: Vec<_> = site.nodes.iter().map(|of| of.name.as_str()).collect();
    assert_eq!((names.len(), names[0], names[15]), (16, "n01", "n16"));
    assert!(site.nodes.iter().all(|of| of.amount("ncpus") == 2));
    assert!(site.nodes.iter().all(|of| of.amount("mem") == 1_000 << 20));
    assert_eq!(site.limits.len(), 1);

    etc.conf(
        "ClusterName=\"the lab\"\n\
         NodeName=n[8-11,13],login CPUs=4 RealMemory=100\n\
         NodeName=n[012-013]x CPUs=1 Weight=9\n\
         PartitionName=plan Nodes=ALL DefaultTime=30\n",
    );
    let text = site_of(&etc.read(), "plan");
    let site = Site::from_toml(&text).unwrap();
    let seen: Vec<_> = site.nodes.iter().map(|of| (of.name.as_str(), of.prio)).collect();
    let cheap = ["n8", "n9", "n10", "n11", "n13", "login"].map(|name| (name, 0));
    let dear = ["n012x", "n013x"].map(|name| (name, 1));
    assert_eq!(seen, [&cheap[..], &dear].concat());
    assert_eq!(text.matches("[[nodes]]").count(), 5, "{text}");
    assert_eq!((site.default_duration_s, site.limits.len()), (1_800, 0));
}

#[test]
fn files_that_are_wrong_are_told_with_their_line() {
    let etc = Etc::new("doctor-wrong");
    let expected = |text: &str| {
        etc.conf(text);
        let error = read(&etc.path("slurm.conf")).unwrap_err().to_string();
        error.replace(etc.0.to_str().unwrap(), "")
    };
    for (text, error) in [
        (
            "A=1\n\nnonsense\n",
            "/slurm.conf:3: \"nonsense\" is not KEY=VALUE; write a value with spaces in quotes",
        ),
        (
            "\nNodeName=n[1-\n",
            "/slurm.conf:2: a bracket does not end; lists are like n[01-16,20],login",
        ),
        ("NodeName=n[1-99999999]\n", "/slurm.conf:1: the list has more than 65536 hosts"),
        ("NodeName=n1\nNodeName=n1\n", "/slurm.conf:2: node n1 is declared twice"),
        (
            "NodeName=n1 CPUs=many\n",
            "/slurm.conf:1: CPUs=many is not a number; write a number from 0 on",
        ),
        (
            "PartitionName=p Nodes=n1\n",
            "/slurm.conf:1: there is no node and no NodeSet n1; declare it by NodeName or NodeSet, \
             or include the file that does",
        ),
        (
            "Include none.conf\n",
            "/slurm.conf:1: /none.conf: No such file or directory (os error 2)",
        ),
        (
            "ClusterName=Lab\nInclude %c.conf\n",
            "/slurm.conf:2: /lab.conf: No such file or directory (os error 2)",
        ),
        (
            "Include slurm.conf\n",
            "/slurm.conf:1: files include each other too deeply; check for a circle",
        ),
    ] {
        assert_eq!(expected(text), error, "{text}");
    }
    let missing = read(Path::new("/none/slurm.conf")).unwrap_err();
    assert_eq!(missing.line, None);
}

/// Values of `scontrol show node` for these lines, of Slurm 22.05.
#[test]
fn cpus_and_memory_are_those_of_slurm() {
    let etc = Etc::new("doctor-cpus");
    for (line, cpus, memory_mib) in [
        (
            "CPUs=16 Sockets=2 CoresPerSocket=8 ThreadsPerCore=2 CoreSpecCount=2 RealMemory=64000",
            14,
            64_000,
        ),
        ("Sockets=2 CoresPerSocket=8 CpuSpecList=0,8", 14, 1),
        ("Sockets=2 CoresPerSocket=8 ThreadsPerCore=2 CpuSpecList=0-1,8", 28, 1),
        ("Sockets=2 CoresPerSocket=8 ThreadsPerCore=2 CoreSpecCount=1", 30, 1),
        ("CPUs=32 ThreadsPerCore=2 CoreSpecCount=1", 30, 1),
        // Slurm corrects a number that is none of sockets, cores or threads.
        ("CPUs=24 Sockets=2 CoresPerSocket=8 ThreadsPerCore=2 CoreSpecCount=2", 28, 1),
        ("Boards=2 SocketsPerBoard=2 CoresPerSocket=4 CoreSpecCount=1 MemSpecLimit=1", 15, 1),
        ("", 1, 1),
        // SocketsPerBoard, which slurmd -C prints, counts before Sockets.
        ("Sockets=1 Boards=1 SocketsPerBoard=2 CoresPerSocket=4", 8, 1),
        // Sockets are derived from CPUs only where these are whole sockets.
        ("CPUs=10 CoresPerSocket=4", 4, 1),
        ("CPUs=8 CoresPerSocket=4 CoreSpecCount=9", 7, 1),
        ("CPUs=0x10 RealMemory=4K MemSpecLimit=010", 16, 4_088),
        // Slurm ignores a list with a CPU that the node does not have.
        ("CPUs=4 CpuSpecList=0,9", 4, 1),
        ("CPUs=8 CoresPerSocket=4 ThreadsPerCore=2 CpuSpecList=8 CoreSpecCount=1", 6, 1),
    ] {
        etc.conf(&format!("NodeName=n1 {line}\nPartitionName=plan Nodes=n1\n"));
        let nodes = etc.read().nodes("plan");
        assert_eq!((nodes[0].cpus, nodes[0].memory_mib), (cpus, memory_mib), "{line}");
    }
    for line in ["CPUs=08", "CPUs=-1", "CPUs=+1", "RealMemory=64G", "CPUs=0x", "CPUs=K"] {
        etc.conf(&format!("NodeName=n1 {line}\nPartitionName=plan Nodes=n1\n"));
        let error = read(&etc.path("slurm.conf")).unwrap_err().to_string();
        assert!(error.contains(&format!(":1: {line} is not a number; ")), "{error}");
    }
    etc.conf("NodeName=n1 CPUs=4 CpuSpecList=0-x\n");
    let error = read(&etc.path("slurm.conf")).unwrap_err();
    assert!(error.to_string().ends_with(":1: CpuSpecList=0-x is not a list of CPUs such as 0,8-9"));
}

#[test]
fn letters_of_other_encodings_are_read() {
    let etc = Etc::new("doctor-latin1");
    for (name, comment) in [("slurm.conf", "# Geh"), ("job_submit.lua", "-- H")] {
        let mut bytes = comment.as_bytes().to_vec();
        bytes.extend(b"\xf6rt zum Rechnerraum S\xfcd\n");
        bytes.extend(fs::read(etc.path(name)).unwrap());
        fs::write(etc.path(name), bytes).unwrap();
    }
    assert_eq!(etc.found(), []);
}

/// Generic resources of several types are planned only by type, and a topology that Slurm does not
/// read is not planned: both are reported.
#[test]
fn what_is_not_planned_is_reported() {
    let etc = Etc::new("doctor-gres");
    etc.change("slurm.conf", "RealMemory=1000", "RealMemory=1000 Gres=gpu:tesla:2,gpu:k40:1");
    etc.write("topology.conf", "SwitchName=s1 Nodes=n[01-16]\n");
    let found = etc.found();
    let told: Vec<_> =
        found.iter().map(|of| (of.level, of.key.as_str(), of.is.as_deref().unwrap())).collect();
    let gres = (Level::Advice, "Gres", "gpu:tesla:2,gpu:k40:1 on n[01-16]");
    assert!(told.contains(&gres), "{told:?}");
    let is_told = |of: &&(Level, &str, &str)| of.1 == "topology.conf" && of.2.contains("not used");
    assert_eq!((told.iter().filter(is_told).count(), told.len()), (1, 2), "{told:?}");
}

#[test]
fn generic_resources_features_and_licences_are_in_the_site() {
    let etc = Etc::new("doctor-demands");
    let nodes = "NodeName=n[03-16] CPUs=2 RealMemory=1000\n\
                 NodeName=n[01-02] CPUs=2 RealMemory=1000 Gres=gpu:a100:2(S:0),fpga:1 \
                 Feature=ib,big TmpDisk=500\nGresTypes=gpu,fpga\nLicenses=matlab:4,an.sys";
    etc.change("slurm.conf", "NodeName=n[01-16] CPUs=2 RealMemory=1000", nodes);
    etc.change("plan.conf", "Nodes=n[01-16]", "Nodes=n[01-16] ");
    assert_eq!(etc.found(), []);
    let site = Site::from_toml(&site_of(&etc.read(), "plan")).unwrap();
    assert_eq!(site.nodes.len(), 16);
    for node in &site.nodes {
        let count = if ["n01", "n02"].contains(&&*node.name) { [2, 2, 1] } else { [0; 3] };
        let has = ["gres-gpu", "gres-gpu-a100", "gres-fpga"].map(|name| node.amount(name));
        assert_eq!(has, count, "{}", node.name);
        let is_there = node.has.iter().any(|item| item.resource == "feature-ib");
        assert_eq!(is_there, count[0] > 0);
        let tmp_mib = if is_there { 500 } else { 0 };
        assert_eq!(node.amount("tmp-disk"), tmp_mib << 20);
    }
    let amount = |name: &str| site.resources.iter().find(|of| of.name == name).unwrap().amount;
    assert_eq!((amount("license-matlab"), amount("license-an.sys")), (4, 1));
    etc.change("slurm.conf", "fpga:1 ", "fpga:no_consume:4 ");
    etc.change("slurm.conf", "an.sys", "ansys*2");
    let found = etc.found();
    let keys: Vec<_> = found.iter().map(|of| (of.level, &*of.key)).collect();
    assert_eq!(keys, [(Level::Advice, "Gres"), (Level::Advice, "Licenses")], "{found:#?}");
}

#[test]
fn cores_with_threads_are_booked_whole() {
    let etc = Etc::new("doctor-threads");
    let nodes = "Sockets=2 CoresPerSocket=8 ThreadsPerCore=2 RealMemory";
    etc.change("slurm.conf", "CPUs=2 RealMemory", nodes);
    let found = etc.found();
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((found[0].level, found[0].key.as_str()), (Level::Advice, "ThreadsPerCore"));
    assert_eq!(found[0].is.as_deref(), Some("2 on n[01-16]"));
    assert!(found[0].why.contains("a job of one CPU takes the 2 CPUs of a core"));
    let site = Site::from_toml(&site_of(&etc.read(), "plan")).unwrap();
    assert_eq!((site.threads_per_core, site.nodes[0].amount("ncpus")), (2, 32));
    // Slurm gives no core to two jobs, with CR_CPU neither.
    etc.change("slurm.conf", "CR_Core_Memory", "CR_CPU_Memory");
    assert_eq!(etc.found(), found);
    assert_eq!(Site::from_toml(&site_of(&etc.read(), "plan")).unwrap().threads_per_core, 2);
    // Where jobs count cores, or nodes have no threads, all is as it looks.
    etc.change("slurm.conf", "CR_CPU_Memory", "CR_Core_Memory");
    etc.change("slurm.conf", "Sockets=2 Cores", "CPUs=16 Sockets=2 Cores");
    assert_eq!(etc.found(), []);
    // Two kinds of nodes are one too many for one site.
    etc.change("slurm.conf", "n[01-16] CPUs=16", "n[01-15]");
    etc.change("slurm.conf", "SlurmUser=", "NodeName=n16 CPUs=4 RealMemory=1000\nSlurmUser=");
    let found = etc.found();
    assert_eq!((found[0].level, found[0].key.as_str()), (Level::Error, "ThreadsPerCore"));
}

#[test]
fn nodes_that_are_not_there_yet_are_not_in_the_site() {
    let etc = Etc::new("doctor-future");
    etc.change(
        "slurm.conf",
        "NodeName=n[01-16] CPUs=2 RealMemory=1000",
        "NodeName=n[01-04] CPUs=2 RealMemory=1000 State=UNKNOWN\n\
         NodeName=n[05-08] CPUs=2 RealMemory=1000 State=FUTURE\n\
         NodeName=n[09-12] CPUs=2 RealMemory=1000 State=Cloud\n\
         NodeName=n[13-16] CPUs=2 RealMemory=1000\n\
         DownNodes=n[13-14] Reason=\"bad board\"",
    );
    let said: Vec<_> = etc.found().into_iter().map(|of| (of.level, of.is.unwrap())).collect();
    let expected = ["FUTURE on n[05-08]", "CLOUD on n[09-12]", "DOWN on n[13-14]"];
    assert_eq!(said, expected.map(|is| (Level::Advice, is.to_string())));
    let site = Site::from_toml(&site_of(&etc.read(), "plan")).unwrap();
    assert_eq!(site.nodes.len(), 12);
    assert!(site.nodes.iter().all(|of| !["n05", "n08"].contains(&of.name.as_str())));
}

#[test]
fn a_name_in_a_node_set_that_is_no_node_is_an_error() {
    let etc = Etc::new("doctor-nodeset");
    etc.conf(
        "NodeName=n[1-4] CPUs=16 Features=big\nNodeSet=big Feature=big\n\
         NodeSet=both Nodes=big,n4\nPartitionName=plan Nodes=both\n",
    );
    let error = read(&etc.path("slurm.conf")).unwrap_err();
    assert_eq!(error.line, Some(3));
    assert!(error.message.starts_with("there is no node big; a NodeSet lists nodes"), "{error}");
}

#[test]
fn nodes_without_memory_are_an_error() {
    let etc = Etc::new("doctor-memory");
    let found = etc.finds("slurm.conf", " RealMemory=1000", "");
    assert_eq!((found.level, found.key.as_str()), (Level::Error, "RealMemory"));
    assert_eq!(found.is.as_deref(), Some("missing on n[01-16]"));
}

#[test]
fn switches_are_those_of_the_topology() {
    let etc = Etc::new("doctor-topology");
    etc.change("slurm.conf", "SlurmUser=", "TopologyPlugin=topology/tree\nSlurmUser=");
    let found = etc.found();
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((found[0].level, found[0].key.as_str()), (Level::Advice, "topology.conf"));
    etc.write(
        "topology.conf",
        "# Leaves\nSwitchName=leaf1 Nodes=n[01-04]\nSwitchName=leaf2 Nodes=n[05-16]\n\
         SwitchName=top Switches=leaf[1-2]\n",
    );
    assert_eq!(etc.found(), []);
    let site = Site::from_toml(&site_of(&etc.read(), "plan")).unwrap();
    let switches: Vec<_> = site.nodes.iter().map(|of| of.switch.as_deref().unwrap()).collect();
    assert_eq!(switches, [&["leaf1"; 4][..], &["leaf2"; 12]].concat());
    assert_eq!(site.mapping, pbs_site::Mapping::Switches);
    // Each line has one finding, however many names are wrong.
    etc.write(
        "topology.conf",
        "\nSwitchName=leaf1 Nodes=n[01-19]\nSwitchName=leaf2 Nodes=n[15-16]\n",
    );
    let found = etc.found();
    assert_eq!(found.len(), 2, "{found:#?}");
    let said =
        ["naming n[17-19], without a NodeName in slurm.conf", "naming n[15-16] at a second switch"];
    for (found, (line, is)) in found.iter().zip((2..).zip(said)) {
        assert_eq!((found.key.as_str(), found.is.as_deref()), ("topology.conf", Some(is)));
        assert_eq!(found.place.as_ref().unwrap().line, line);
    }
    let site = Site::from_toml(&site_of(&etc.read(), "plan")).unwrap();
    assert!(site.nodes.iter().all(|of| of.switch.as_deref() == Some("leaf1")));
    // Other plugins don't read the file.
    // Switches that name more hosts than there can be are refused before they fill the memory.
    let named = etc.path("topology.conf");
    let line = |number: u64| format!("SwitchName=s{number} Nodes=n[1-65536]\n");
    for (text, what) in [
        ("SwitchName=s1 Nodes=n[0-99999999]\n".to_string(), "more than 65536 hosts"),
        ((0..5).map(line).collect(), "more than 262144 hosts"),
    ] {
        etc.write("topology.conf", &text);
        let error = read(&etc.path("slurm.conf")).unwrap_err();
        assert_eq!((&error.file, error.line.is_some()), (&named, true));
        assert!(error.message.contains(what), "{error}");
    }
    etc.write("topology.conf", "");
    etc.change("slurm.conf", "topology/tree", "topology/flat");
    assert_eq!(etc.found(), []);
}

#[test]
fn a_hook_that_cannot_be_read_is_no_other_script() {
    let etc = Etc::new("doctor-hook-unread");
    for (name, comment) in [("job_submit.lua", "-- long\n"), ("pbs-event", "# long\n")] {
        let before = fs::read_to_string(etc.path(name)).unwrap();
        etc.write(name, &(before.clone() + &comment.repeat(1 << 21)));
        let found = etc.found();
        etc.write(name, &before);
        assert!(found.iter().all(|of| of.is.as_deref() == Some("is too long")), "{found:#?}");
        assert!(found.iter().any(|of| of.key == name && of.level == Level::Advice), "{found:#?}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_no_empty_one() {
    let etc = Etc::new("doctor-unread");
    etc.change("plugstack.conf", "# none", "include more.conf");
    fs::create_dir(etc.path("more.conf")).unwrap();
    let found = etc.found();
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].key, "more.conf");
    assert!(found[0].why.contains("nothing that stands in it is known"));
}
