// SPDX-License-Identifier: GPL-2.0
//! Settings that are missing, or in the way, before jobs of a partition can be planned.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::conf::compress;
use crate::conf::entry::{Place, Setting};
use crate::conf::hooks::{Hook, Lua};
use crate::conf::nodes::{Node, Partition};
use crate::conf::read::Conf;
use crate::conf::times::seconds;
use crate::conf::topology::Unplanned;
use crate::demands::{gres_of, licenses_of};

/// Number of jobs that may wait in Slurm, as jobs that are planned far ahead do; Slurm's default is
/// 10000.
const MANY_JOBS: u64 = 20_000;
/// Slurm's default of `MinJobAge`, in seconds: the time for which it remembers jobs that are over.
const MIN_JOB_AGE_S: u64 = 300;
/// Slurm's default of `KillWait`, in seconds.
const KILL_WAIT_S: u64 = 30;
/// Seconds from the end of its last process until Slurm reports that the nodes of a job are free.
const CLEANING_S: u64 = 5;

/// Name of the program that reports starts of jobs, and free nodes.
const EVENT_PROGRAM: &str = "pbs-event";

/// Value of `SLURM_SCRIPT_CONTEXT` in an Epilog of a node. Older versions of the program do not know
/// it.
const OF_NODES: &str = "epilog_slurmd";

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Without it jobs are not planned, or start elsewhere or at another time.
    Error,
    /// The setting works, and would be better otherwise.
    Advice,
}

impl Level {
    /// Name of the level in the output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Advice => "advice",
        }
    }
}

/// One thing that should be another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Severity of the finding.
    pub level: Level,
    /// The key of slurm.conf, or the file.
    pub key: String,
    /// Present value; none: it is missing.
    pub is: Option<String>,
    /// Required value.
    pub should: String,
    /// Reason.
    pub why: String,
    /// Place of the setting; none: nowhere.
    pub place: Option<Place>,
}

/// Time that Slurm gives a job that ignores SIGTERM.
fn kill_wait_s(conf: &Conf) -> u64 {
    conf.value("KillWait").and_then(|value| value.parse().ok()).unwrap_or(KILL_WAIT_S)
}

/// Shortest time for the release of nodes in which a job that ignores SIGTERM has ended.
pub(super) fn needed_release_timeout_s(conf: &Conf) -> u64 {
    kill_wait_s(conf).saturating_add(CLEANING_S)
}

/// Returns the changes that an operator must make before jobs of a partition can be planned: errors
/// first, in the order of the documentation. `release_timeout_s` is the time in which the site
/// expects nodes to be free of a job.
pub fn check(conf: &Conf, partition: &str, release_timeout_s: u64) -> Vec<Finding> {
    let mut checks = Checks { conf, findings: Vec::new() };
    checks.user();
    checks.submission(partition);
    checks.completion();
    checks.programs();
    checks.event_files();
    checks.scheduler();
    checks.accounting();
    checks.selection(partition);
    checks.partition(partition);
    checks.ends(release_timeout_s);
    checks.nodes(partition);
    checks.licenses();
    checks.confinement();
    checks.topology();
    checks.files();
    let mut findings = checks.findings;
    findings.sort_by_key(|of| of.level);
    findings
}

/// Whether a file is the program of slurm/hooks, by its name.
fn is_event_program(hook: &Hook) -> bool {
    hook.path.ends_with(EVENT_PROGRAM)
}

/// Whether a script calls the program.
fn calls(hook: &Hook) -> bool {
    says(hook, EVENT_PROGRAM)
}

/// Whether a word stands in a script, outside of its lines of comment.
fn says(hook: &Hook, word: &str) -> bool {
    let mut lines = hook.text.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines.any(|line| line.contains(word))
}

struct Checks<'a> {
    conf: &'a Conf,
    findings: Vec<Finding>,
}

use Level::{Advice, Error};

impl Checks<'_> {
    /// Adds a finding about a key of slurm.conf, with its value and place.
    fn key(&mut self, level: Level, key: &str, should: impl Into<String>, why: &str) {
        let setting = self.conf.setting(key).cloned();
        self.say(level, key, setting, should, why);
    }

    fn say(
        &mut self,
        level: Level,
        key: &str,
        is: Option<Setting>,
        should: impl Into<String>,
        why: &str,
    ) {
        let (is, place) = is.map(|of| (of.value, of.place)).unzip();
        self.findings.push(Finding {
            level,
            key: key.into(),
            is,
            should: should.into(),
            why: why.into(),
            place,
        });
    }

    /// Adds a finding about a hook's file.
    fn file(&mut self, level: Level, file: &Path, is: &str, should: &str, why: &str, line: usize) {
        let name = file.file_name().unwrap_or(file.as_os_str());
        let is = Setting { value: is.into(), place: Place { file: file.into(), line } };
        self.say(level, &name.to_string_lossy(), Some(is), should, why);
    }

    fn user(&mut self) {
        let user = self.conf.value("SlurmUser").unwrap_or("root");
        if user == "root" || user == "0" {
            let why = "the planner runs as SlurmUser and needs no other rights";
            self.key(Error, "SlurmUser", "a user of its own, such as slurm", why);
        }
    }

    fn submission(&mut self, partition: &str) {
        if !self.conf.has_plugin("JobSubmitPlugins", "job_submit", "lua") {
            let why = "job_submit.lua holds jobs until the planner starts them";
            let with = with_word(self.conf.value("JobSubmitPlugins"), "lua");
            self.key(Error, "JobSubmitPlugins", with, why);
        }
        let lua = self.conf.job_submit.clone();
        if !self.script(&lua, "holds jobs until the planner starts them") {
            return;
        }
        let Some((ours, line)) = lua.hook.value("PARTITION") else {
            let why = "this script may not hold jobs; merge slurm/hooks/job_submit.lua into it";
            let should = "the script of slurm/hooks, or an equivalent one";
            self.file(Advice, &lua.hook.path, "another script", should, why, 1);
            return;
        };
        if ours != partition {
            let is = format!("PARTITION = \"{ours}\"");
            let should = format!("PARTITION = \"{partition}\"");
            let why = "the script holds only the jobs of that partition";
            self.file(Error, &lua.hook.path, &is, &should, why, line);
        }
        let uid = self.conf.slurm_uid.map(|of| of.to_string());
        if let (Some((is, line)), Some(uid)) = (lua.hook.value("SLURM_UID"), uid) {
            if is != uid {
                let is = format!("SLURM_UID = {is}");
                let should = format!("SLURM_UID = {uid}");
                let why = "otherwise the planner, which runs as SlurmUser, can't start jobs";
                self.file(Error, &lua.hook.path, &is, &should, why, line);
            }
        }
    }

    fn completion(&mut self) {
        let is = self.conf.value("JobCompType").unwrap_or_default();
        if !is.eq_ignore_ascii_case("jobcomp/lua") {
            let why = "jobcomp.lua tells the planner which jobs have ended";
            self.key(Error, "JobCompType", "jobcomp/lua", why);
        }
        let lua = self.conf.jobcomp.clone();
        self.script(&lua, "tells the planner which jobs have ended");
        let remembered_s = self.conf.value("MinJobAge").and_then(|of| of.parse::<u64>().ok());
        // With 0 it forgets none.
        if remembered_s.is_some_and(|age_s| age_s > 0 && age_s < MIN_JOB_AGE_S) {
            let why = "a planner that was away for longer does not see how jobs ended, and those \
                       that follow them do not start";
            self.key(Advice, "MinJobAge", format!("{MIN_JOB_AGE_S} or more, or 0"), why);
        }
    }

    /// Whether a script can be read; says so if not.
    fn script(&mut self, lua: &Lua, what: &str) -> bool {
        let path = &lua.hook.path;
        if !lua.hook.is_there {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let should = format!("the file of slurm/hooks, at {}", path.display());
            self.say(Error, &name, None, should, &format!("it {what}"));
            return false;
        }
        if self.cant_read(&lua.hook) {
            return false;
        }
        if let Some(fault) = &lua.fault {
            let why = "slurmctld does not start with this script";
            self.file(Error, path, fault, "valid Lua 5.1", why, 1);
        } else if !lua.is_compiled {
            let why = "slurmctld does not start with an invalid script";
            let should = "checked with luac5.1 -p; install lua5.1";
            self.file(Advice, path, "not tried", should, why, 1);
        }
        true
    }

    /// Whether a hook can't be read; says so then.
    fn cant_read(&mut self, hook: &Hook) -> bool {
        let Some(unread) = &hook.unread else {
            return false;
        };
        let why = "nothing that stands in it is known here";
        self.file(Advice, &hook.path, unread, "a file that can be read", why, 1);
        true
    }

    fn programs(&mut self) {
        let (prolog, epilog) = (self.conf.prolog.clone(), self.conf.epilog.clone());
        let of_nodes = self.epilog_of_nodes();
        // A script of the site's own may call the program.
        let is_of_nodes = of_nodes.as_ref().is_some_and(|of| is_event_program(of) || calls(of));
        if of_nodes.is_some() && epilog.is_some() {
            let why = "with an Epilog of the nodes that calls pbs-event, and without \
                       EpilogSlurmctld, Slurm starts the next job of a node at once";
            self.key(Advice, "EpilogSlurmctld", "none, if nodes have the event file", why);
        }
        for (key, hook, why) in [
            ("PrologSlurmctld", prolog, "the program reports starting jobs to the planner"),
            ("EpilogSlurmctld", epilog, "the program reports free nodes to the planner"),
        ] {
            if key == "EpilogSlurmctld" && hook.is_none() && is_of_nodes {
                // The nodes report that they are free.
                continue;
            }
            let should = "pbs-event of slurm/hooks, with its absolute path";
            match hook {
                None => self.key(Error, key, should, why),
                Some(hook) if !hook.path.is_absolute() => self.key(Error, key, should, why),
                Some(hook) if !hook.is_there => {
                    self.key(Error, key, "an existing file", why);
                }
                Some(hook) if !hook.is_executable => {
                    let why = "jobs do not start: a failing prolog drains nodes";
                    self.key(Error, key, "an executable file: chmod 755", why);
                }
                Some(hook) => {
                    self.cant_read(&hook);
                }
            }
        }
        if let Some(hook) = of_nodes.filter(is_event_program) {
            self.program_of_nodes(&hook);
        }
        let flags = ["Alloc", "Contain", "X11"];
        if !flags.iter().any(|flag| self.conf.has_word("PrologFlags", flag)) {
            let why = "otherwise nodes are prepared only when the first step starts";
            let with = with_word(self.conf.value("PrologFlags"), "Alloc");
            self.key(Advice, "PrologFlags", with, why);
        }
    }

    /// The Epilog of the nodes, as this machine has it.
    fn epilog_of_nodes(&self) -> Option<Hook> {
        let path = self.conf.value("Epilog").filter(|of| !of.is_empty())?;
        Some(Hook::look(Path::new(path)))
    }

    /// Checks the program as the Epilog of the nodes, which may have it at a place where this machine
    /// has none.
    fn program_of_nodes(&mut self, hook: &Hook) {
        if !hook.path.is_absolute() {
            let should = "pbs-event of slurm/hooks, with its absolute path";
            self.key(Error, "Epilog", should, "the program reports free nodes to the planner");
        } else if hook.is_there && !hook.is_executable {
            let why = "a failing epilog drains nodes";
            self.key(Error, "Epilog", "an executable file: chmod 755", why);
        } else if hook.is_there && !self.cant_read(hook) && !says(hook, OF_NODES) {
            let why = "the file does nothing as the Epilog of nodes, and nobody reports free nodes";
            let should = "pbs-event of slurm/hooks of this release";
            self.file(Error, &hook.path, "an older program", should, why, 1);
        }
    }

    /// All hooks write into one file, which is SlurmUser's.
    fn event_files(&mut self) {
        let conf = self.conf;
        let of_nodes = self.epilog_of_nodes().filter(is_event_program);
        let hooks: Vec<&Hook> = [
            Some(&conf.job_submit.hook),
            Some(&conf.jobcomp.hook),
            conf.prolog.as_ref(),
            conf.epilog.as_ref(),
            of_nodes.as_ref(),
        ]
        .into_iter()
        .flatten()
        .collect();
        let mut files = hooks
            .iter()
            .filter_map(|hook| hook.value("EVENTS").map(|(file, line)| (*hook, file, line)));
        let Some((first, events, line)) = files.next() else {
            return;
        };
        let mut seen = HashSet::new();
        for (hook, other, line) in files {
            if other != events && seen.insert(&hook.path) {
                let (is, should) = (format!("EVENTS = {other}"), format!("EVENTS = {events}"));
                let why = "the planner reads one file, the one of job_submit.lua";
                self.file(Error, &hook.path, &is, &should, why, line);
            }
        }
        let should = format!("install -o SlurmUser -m 600 /dev/null {events}");
        let is = match fs::metadata(events) {
            // Who may not look can't say.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return,
            Err(_) => format!("{events} is missing"),
            Ok(of) if conf.slurm_uid.is_some_and(|uid| uid != of.uid()) => {
                format!("{events} is not SlurmUser's")
            }
            Ok(of) if of.mode() & 0o077 != 0 => format!("{events} is readable by others"),
            Ok(_) => return,
        };
        let why = "hooks append to it as SlurmUser, and it lists users and their jobs";
        self.file(Advice, &first.path.clone(), &is, &should, why, line);
    }

    fn scheduler(&mut self) {
        let conf = self.conf;
        for (parameter, why) in [
            ("batch_sched_delay=0", "otherwise jobs start three seconds late"),
            ("sched_interval=1", "otherwise jobs start up to a minute late"),
        ] {
            if !conf.has_word("SchedulerParameters", parameter) {
                self.key(Error, "SchedulerParameters", parameter, why);
            }
        }
        let most = conf.value("MaxJobCount").and_then(|of| of.parse::<u64>().ok());
        if most.unwrap_or(10_000) < MANY_JOBS {
            let why = "jobs that are planned far ahead wait in Slurm, and so do declined ones";
            self.key(Advice, "MaxJobCount", format!("{MANY_JOBS} or more"), why);
        }
    }

    /// Limits that Slurm enforces and the plan does not know.
    fn accounting(&mut self) {
        let enforced = self.conf.value("AccountingStorageEnforce").unwrap_or_default();
        let enforced = enforced.to_ascii_lowercase();
        let mut words = enforced.split(',').map(str::trim);
        // Older releases have numbers for them, of which 2 and more contain limits.
        if words.any(|word| matches!(word, "limits" | "safe" | "qos" | "all" | "2" | "3")) {
            let why = "the plan does not know limits and priorities of QOS, accounts and \
                       associations; a job that Slurm does not start for them is delayed, and its \
                       comment has the reason";
            let should = "associations, with limits of users and groups in the site file";
            self.key(Advice, "AccountingStorageEnforce", should, why);
        }
    }

    fn selection(&mut self, partition: &str) {
        let conf = self.conf;
        let select = conf.value("SelectType").unwrap_or_default();
        if !select.eq_ignore_ascii_case("select/cons_tres") {
            let why = "the planner allocates CPUs, not whole nodes";
            self.key(Error, "SelectType", "select/cons_tres", why);
        }
        let by = conf.select_parameters(partition);
        let words: Vec<&str> = by.split(',').map(str::trim).collect();
        let is_by = |of: &str| words.iter().any(|word| word.starts_with(of));
        if !is_by("cr_core") && !is_by("cr_cpu") && !is_by("cr_socket") {
            let why = "the planner allocates CPUs and memory, and Slurm must too";
            self.key(Error, "SelectTypeParameters", "CR_Core_Memory", why);
        } else if !words.iter().any(|word| word.ends_with("_memory")) {
            let why = "otherwise Slurm starts more jobs on a node than its memory permits";
            self.key(Advice, "SelectTypeParameters", "CR_Core_Memory", why);
        }
    }

    /// Adds a finding about a partition's line.
    fn of_partition(&mut self, level: Level, of: &Partition, key: &str, should: &str, why: &str) {
        let is =
            of.value(key).map(|value| Setting { value: value.into(), place: of.place.clone() });
        self.say(level, key, is, should, why);
        if let Some(last) = self.findings.last_mut() {
            last.place = Some(of.place.clone());
        }
    }

    fn partition(&mut self, name: &str) {
        let conf = self.conf;
        let Some(of) = conf.partition(name) else {
            let names: Vec<_> = conf.partitions.iter().map(|of| of.name.as_str()).collect();
            let is = match names.as_slice() {
                [] => "none".to_string(),
                _ => names.join(", "),
            };
            let last = conf.partitions.last();
            let is = last.map(|of| Setting { value: is, place: of.place.clone() });
            let why = "there is no such partition: add it to slurm.conf with the nodes of the \
                       planner, or name another one with --partition";
            self.say(Error, "PartitionName", is, name, why);
            return;
        };
        if of.nodes.is_empty() {
            let why = "the partition has no nodes to plan";
            self.of_partition(Error, of, "Nodes", "the nodes of the planner", why);
        }
        let ours: HashSet<&String> = of.nodes.iter().collect();
        for other in conf.partitions.iter().filter(|other| other.name != name) {
            let shared: Vec<_> = other.nodes.iter().filter(|of| ours.contains(of)).collect();
            if !shared.is_empty() {
                let shared: Vec<_> = shared.into_iter().map(String::as_str).collect();
                let is = Setting {
                    value: format!("{} has {}", other.name, compress(&shared)),
                    place: other.place.clone(),
                };
                let should = format!("no nodes of {name}");
                let why = "jobs that Slurm starts there delay planned ones";
                self.say(Error, "PartitionName", Some(is), should, why);
            }
        }
        if conf.value("Licenses").is_some_and(|of| !of.is_empty()) && conf.partitions.len() > 1 {
            let why = "the planner does not see licences that jobs of other partitions hold, and \
                       jobs that Slurm does not start for that wait longer than planned";
            self.key(Advice, "Licenses", format!("licences that only jobs of {name} use"), why);
        }
        if of.value("State").is_some_and(|of| !of.eq_ignore_ascii_case("up")) {
            self.of_partition(Error, of, "State", "UP", "otherwise no job starts there");
        }
        for key in ["RootOnly", "Hidden"] {
            if of.value(key).is_some_and(is_yes) {
                let level = if key == "RootOnly" { Error } else { Advice };
                self.of_partition(level, of, key, "NO", "users must be able to submit there");
            }
        }
        let shares = of.value("OverSubscribe").or(of.value("Shared")).unwrap_or("no");
        if shares.to_ascii_lowercase().starts_with("force")
            || shares.to_ascii_lowercase().starts_with("yes")
        {
            let why = "otherwise other jobs on the same CPUs slow jobs down";
            self.of_partition(Advice, of, "OverSubscribe", "NO", why);
        }
        if of.value("MaxTime").and_then(seconds).is_none() {
            let why = "a job without a time limit keeps its nodes for ever";
            self.of_partition(Advice, of, "MaxTime", "a time, such as 7-00:00:00", why);
        }
        let keys = ["DefMemPerCPU", "DefMemPerNode"];
        let has_default = |key: &str| of.value(key).or(conf.value(key)).is_some();
        if conf.select_parameters(name).contains("_memory")
            && !keys.iter().any(|key| has_default(key))
        {
            let why = "otherwise a job that requests no memory gets all memory of a node";
            self.key(Advice, "DefMemPerCPU", "memory of a CPU, in MiB", why);
        }
    }

    /// A job that ignores SIGTERM keeps its nodes for as long as `KillWait` says.
    fn ends(&mut self, release_timeout_s: u64) {
        let given = self.conf.setting("KillWait").cloned();
        if kill_wait_s(self.conf) < release_timeout_s {
            return;
        }
        let needs_s = needed_release_timeout_s(self.conf);
        let should = format!(
            "less than the site's release_timeout of {release_timeout_s} s; or write \
             release_timeout = \"{needs_s}s\" in the site file"
        );
        let is = given.map_or_else(|| format!("{KILL_WAIT_S} by default"), |of| of.value);
        let why =
            "otherwise nodes of a job that ignores SIGTERM get nothing new until they are free";
        self.key(Advice, "KillWait", should, why);
        if let Some(last) = self.findings.last_mut() {
            last.is = Some(is);
        }
    }

    /// Adds findings about nodes of the partition that are alike, at the first one's line.
    fn of_nodes(
        &mut self,
        level: Level,
        nodes: &[Node],
        (key, is): (&str, Option<&str>),
        should: &str,
        why: &str,
    ) {
        let Some(first) = nodes.first() else {
            return;
        };
        let names: Vec<&str> = nodes.iter().map(|of| of.name.as_str()).collect();
        let names = compress(&names);
        let value = match is {
            Some(is) => format!("{is} on {names}"),
            None => format!("missing on {names}"),
        };
        let is = Setting { value, place: first.place.clone() };
        self.say(level, key, Some(is), should, why);
    }

    fn nodes(&mut self, partition: &str) {
        let conf = self.conf;
        let with = |wanted: &dyn Fn(&Node) -> bool| -> Vec<Node> {
            let nodes = conf.declared_nodes(partition);
            nodes.into_iter().filter(|of| wanted(of)).collect()
        };
        let future = with(&Node::is_future);
        let why =
            "the site has none of these nodes, because Slurm has none of them yet; write the \
                   site file again when they are there";
        self.of_nodes(Advice, &future, ("State", Some("FUTURE")), "UNKNOWN once they exist", why);
        let cloud = with(&|of| of.state == "CLOUD");
        let why = "the planner takes them for nodes that are up; a planned job waits while one is \
                   powered up";
        self.of_nodes(
            Advice,
            &cloud,
            ("State", Some("CLOUD")),
            "UNKNOWN, or another partition",
            why,
        );
        let is_out =
            |of: &Node| ["DOWN", "DRAIN", "FAIL"].iter().any(|state| of.state.starts_with(state));
        let out = with(&is_out);
        let state = out.first().map_or("DOWN", |of| of.state.as_str()).to_string();
        let why = "the site has these nodes, and they are planned again when Slurm reports them up";
        self.of_nodes(Advice, &out, ("State", Some(&state)), "UNKNOWN when they are repaired", why);
        let ignored = with(&|of| of.ignored_spec_list.is_some() && !of.is_future());
        let list = ignored.first().and_then(|of| of.ignored_spec_list.clone());
        let why = "Slurm ignores the list, because a node has fewer CPUs: jobs get all of them";
        let should = "CPUs that the node has, from 0 on";
        self.of_nodes(Advice, &ignored, ("CpuSpecList", list.as_deref()), should, why);
        let by = conf.select_parameters(partition);
        let without = with(&|of| !of.has_memory && !of.is_future());
        let level = if by.contains("_memory") { Error } else { Advice };
        let why = "Slurm takes 1 MiB then, and no job that requests memory is ever planned";
        let should = "the memory of a node in MiB, as slurmd -C prints it";
        self.of_nodes(level, &without, ("RealMemory", None), should, why);
        self.gres(&with(&|of| of.gres.is_some() && !of.is_future()));
        let threads = with(&|of| of.cpus_per_core > 1 && !of.is_future());
        let cpus = threads.first().map_or(1, |of| of.cpus_per_core);
        if conf.cpus_per_core(partition).is_some() {
            let why = format!(
                "a job of one CPU takes the {cpus} CPUs of a core: the planner books whole cores \
                 (threads_per_core in the site file)"
            );
            let should = "as it is, or CPUs= the number of cores to let jobs count cores";
            let is = cpus.to_string();
            self.of_nodes(Advice, &threads, ("ThreadsPerCore", Some(&is)), should, &why);
        } else if !threads.is_empty() {
            let why = "a job of one CPU takes a whole core there and one CPU elsewhere, and one \
                       site can't plan both exactly";
            let should = "the same on all nodes of the partition";
            let is = cpus.to_string();
            self.of_nodes(Error, &threads, ("ThreadsPerCore", Some(&is)), should, why);
        }
    }

    /// Generic resources that the site file does not have, or not exactly.
    fn gres(&mut self, nodes: &[Node]) {
        let first_with = |wanted: &dyn Fn(&str) -> bool| -> Vec<Node> {
            let is = |of: &&Node| of.gres.as_deref().is_some_and(wanted);
            nodes.iter().filter(is).cloned().collect()
        };
        let unread = first_with(&|text| gres_of(text).is_none());
        let is = unread.first().and_then(|of| of.gres.clone());
        let why = "the site has none of these resources; jobs that request them are declined";
        let should = "names with types and numbers, such as gpu:a100:2";
        self.of_nodes(Advice, &unread, ("Gres", is.as_deref()), should, why);
        let has_types = |text: &str| {
            // Unreadable ones are told above.
            let all = gres_of(text).unwrap_or_default();
            all.iter().any(|one| all.iter().filter(|of| of.name == one.name).count() > 1)
        };
        let typed = first_with(&has_types);
        let is = typed.first().and_then(|of| of.gres.clone());
        let why = "which type Slurm takes is not known before; jobs that request such a resource \
                   without a type are declined";
        self.of_nodes(Advice, &typed, ("Gres", is.as_deref()), "one type on each node", why);
    }

    /// Licences that the site file does not have.
    fn licenses(&mut self) {
        let of = self.conf.value("Licenses");
        if of.is_some_and(|of| licenses_of(of).is_none()) {
            let why = "the site has no licences; jobs that request them are declined";
            self.key(Advice, "Licenses", "names with numbers, such as matlab:4,ansys:2", why);
        }
    }

    /// Parts of topology.conf that the site does not have.
    fn topology(&mut self) {
        for unplanned in &self.conf.unplanned {
            let (place, is, should, why) = match unplanned {
                Unplanned::Unused(place) => (
                    place,
                    "not used".to_string(),
                    "read: write TopologyPlugin=topology/tree into slurm.conf, or remove the file",
                    "Slurm does not read it then, and the site has no switches",
                ),
                Unplanned::NoNodes(place, hosts) => (
                    place,
                    format!("naming {hosts}, without a NodeName in slurm.conf"),
                    "a list of nodes of slurm.conf",
                    "Slurm and the site leave these names out",
                ),
                Unplanned::Elsewhere(place, hosts) => (
                    place,
                    format!("naming {hosts} at a second switch"),
                    "each node at one leaf switch",
                    "the site has the node at the first of its switches",
                ),
            };
            let is = Setting { value: is, place: place.clone() };
            self.say(Advice, "topology.conf", Some(is), should, why);
        }
    }

    fn files(&mut self) {
        for unread in &self.conf.unread {
            let name = unread.file.file_name().unwrap_or(unread.file.as_os_str());
            let is = Setting {
                value: unread.message.clone(),
                place: Place { file: unread.file.clone(), line: unread.line.unwrap_or(1) },
            };
            let why = "nothing that stands in it is known here";
            let name = name.to_string_lossy();
            self.say(Advice, &name, Some(is), "a file that can be read", why);
        }
    }

    fn confinement(&mut self) {
        let conf = self.conf;
        for name in ["affinity", "cgroup"] {
            if !conf.has_plugin("TaskPlugin", "task", name) {
                let why = "otherwise a job runs on CPUs that are planned for others";
                self.key(Advice, "TaskPlugin", format!("task/{name}"), why);
            }
        }
        let tracks = conf.value("ProctrackType").unwrap_or("proctrack/cgroup");
        if !tracks.eq_ignore_ascii_case("proctrack/cgroup") {
            let why = "otherwise processes of a job can outlive it";
            self.key(Advice, "ProctrackType", "proctrack/cgroup", why);
        }
        if !conf.plugins.iter().any(|of| of.value.ends_with("spank_pbsd.so")) {
            let why = "otherwise plans inside a job don't know its CPUs";
            let should = "a line: optional spank_pbsd.so";
            self.say(Advice, "plugstack.conf", None, should, why);
        }
    }
}

/// Whether a value of Slurm is true.
fn is_yes(value: &str) -> bool {
    ["yes", "up", "true", "1"].iter().any(|yes| value.eq_ignore_ascii_case(yes))
}

/// A list with one more word.
fn with_word(list: Option<&str>, word: &str) -> String {
    match list.filter(|of| !of.is_empty()) {
        Some(list) => format!("{list},{word}"),
        None => word.into(),
    }
}
