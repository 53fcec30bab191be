// SPDX-License-Identifier: GPL-2.0
//! Everything that a parser accepts has an effect: keys of files, options of commands, fields of
//! answers and questions.

use std::collections::{BTreeMap, BTreeSet};

use pbs_house::fields::{accepted, used};
use pbs_house::packages::{packages, Package};
use pbs_house::tree;

/// Files of types that parsers of their own fill, without a derived trait.
const MODELS: [&str; 14] = [
    "cluster/pbs-site/src/consumer.rs",
    "cluster/pbs-site/src/limit.rs",
    "cluster/pbs-site/src/node.rs",
    "cluster/pbs-site/src/pool.rs",
    "cluster/pbs-site/src/resource.rs",
    "cluster/pbs-site/src/share.rs",
    "cluster/pbs-site/src/site.rs",
    "cluster/pbs-site/src/validity.rs",
    "cosched/pbs-cosched/src/model.rs",
    "node/pbs-job/src/machine.rs",
    "node/pbs-job/src/model.rs",
    "node/pbs-plan/src/model.rs",
    "rust/pbs_core/src/config.rs",
    "slurm/pbs-slurm/src/conf/nodes.rs",
];

/// Parts of the paths of files that only parse or write.
const PASS_ON: [&str; 5] = ["/parse/", "/read/", "/export.rs", "/json.rs", "/examples.rs"];

/// Fields whose readers do not name their type, each with the file that reads it.
const READ_IN: [(&str, &str); 28] = [
    ("DeclaredMutation.factor", "studies/pbs-reproduce/src/mutate.rs"),
    ("Ending.started_unix_ns", "node/pbs-node/src/queue.rs"),
    ("Limits.preferred", "rms/pbs-rms/src/rms.rs"),
    ("Made.until", "pbsctl/src/rms.rs"),
    ("Node.only_if", "cluster/pbs-cluster-planner/src/of_site.rs"),
    ("Node.prio", "cluster/pbs-cluster-planner/src/of_site.rs"),
    ("Node.switch", "cluster/pbs-cluster-planner/src/of_site.rs"),
    ("NodesChanged.nodes", "pbsctl/src/cluster/reach.rs"),
    ("NodesChanged.nodes_out", "pbsctl/src/cluster/reach.rs"),
    ("Notice.text", "pbsctl/src/service.rs"),
    ("Policy.choice", "rms/pbs-rms/src/pass.rs"),
    ("Process.ended_tasks", "pbsctl/src/service.rs"),
    ("ReservedCores.cores", "cluster/pbs-cluster-planner/src/of_site.rs"),
    ("Site.allocate_timeout_s", "cluster/pbs-manager/src/phases.rs"),
    ("Site.keep_ended_requests", "cluster/pbs-manager/src/forget.rs"),
    ("Site.keep_ended_s", "cluster/pbs-manager/src/forget.rs"),
    ("Site.max_extension_permille", "cluster/pbs-manager/src/operations.rs"),
    ("Site.watchdog_s", "cluster/pbs-manager/src/watchdog.rs"),
    ("StoredSession.session", "rms/pbs-rms-server/src/hub.rs"),
    ("StoredSession.uid", "rms/pbs-rms-server/src/hub.rs"),
    ("Weights.best_effort", "cluster/pbs-cluster-planner/src/of_site.rs"),
    ("Weights.deadline", "cluster/pbs-cluster-planner/src/of_site.rs"),
    ("Weights.fixed_start", "cluster/pbs-cluster-planner/src/of_site.rs"),
    ("Weights.per_node", "cluster/pbs-cluster-planner/src/of_site.rs"),
    ("Weights.provisional", "cluster/pbs-cluster-planner/src/of_site.rs"),
    ("Weights.reservation", "cluster/pbs-manager/src/operations.rs"),
    ("Weights.sla", "cluster/pbs-cluster-planner/src/of_site.rs"),
    ("Weights.slot_aware", "cluster/pbs-cluster-planner/src/of_site.rs"),
];

/// Fields that no expression reads, each with the reason.
const UNREAD: [(&str, &str); 6] = [
    ("Explanation.admitted", "an answer for other clients; pbsctl explains a job by itself"),
    ("Explanation.expected_end_unix_ns", "as Explanation.admitted"),
    ("Explanation.expected_start_unix_ns", "as Explanation.admitted"),
    ("Process.began_ticks", "a process is compared as a whole with the one of its number"),
    ("Status.is_settling", "an answer for clients that wait for better places, as benchmarks do"),
    ("SimOptions.batch", "clap demands a file or this; without a file it is a batch"),
];

/// Names that the sources of a package read.
#[derive(Default)]
struct Sources {
    /// Names of read fields and the words of each file.
    files: Vec<(String, BTreeSet<String>, BTreeSet<String>)>,
}

/// The words of a file that may be names of types.
fn words(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let all = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let words = all.flat_map(|line| line.split(|c: char| !is_part(c)));
    words.filter(|word| word.starts_with(char::is_uppercase)).map(String::from).collect()
}

/// Folders of the packages that a package's types reach: its own, and those of its users.
fn users<'a>(of: &'a Package, all: &'a [Package]) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::from([of.name.as_str()]);
    loop {
        let uses = |package: &&Package| package.uses.iter().any(|it| names.contains(it.as_str()));
        let more: Vec<&str> = all.iter().filter(uses).map(|it| it.name.as_str()).collect();
        let before = names.len();
        names.extend(more);
        if names.len() == before {
            break;
        }
    }
    let is_user = |package: &&Package| names.contains(package.name.as_str());
    let mut folders: BTreeSet<&str> = all.iter().filter(is_user).map(|it| &*it.folder).collect();
    if of.folder == "rust/pbs_core" {
        folders.insert("rust/sched_pbs");
    }
    folders
}

/// Folder of the package that has a file; the class is no package of the workspace.
fn folder<'a>(path: &str, all: &'a [Package]) -> Option<&'a str> {
    if path.starts_with("rust/sched_pbs/") {
        return Some("rust/sched_pbs");
    }
    let has = |package: &&Package| {
        path.strip_prefix(&package.folder).is_some_and(|rest| rest.starts_with('/'))
    };
    all.iter().find(has).map(|package| package.folder.as_str())
}

#[test]
fn every_accepted_field_is_read() {
    let packages = packages();
    let paths = tree::sources();
    let mut of_folder: BTreeMap<&str, Sources> = BTreeMap::new();
    for path in paths.iter().filter(|path| !PASS_ON.iter().any(|part| path.contains(part))) {
        if let Some(folder) = folder(path, &packages) {
            let text = tree::text(path);
            let file = (path.clone(), used(&text), words(&text));
            of_folder.entry(folder).or_default().files.push(file);
        }
    }
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for path in &paths {
        let Some(package) = packages.iter().find(|it| folder(path, &packages) == Some(&it.folder))
        else {
            continue;
        };
        let users = users(package, &packages);
        for field in accepted(&tree::text(path), MODELS.contains(&path.as_str())) {
            let key = format!("{}.{}", field.of, field.name);
            let named = field.of.split("::").next().unwrap_or(&field.of).to_string();
            let files =
                users.iter().filter_map(|user| of_folder.get(user)).flat_map(|of| &of.files);
            let mut reading = files.filter(|(_, fields, _)| fields.contains(&field.name));
            let declared = READ_IN.iter().find(|(of, _)| *of == key).map(|(_, file)| *file);
            let is_read = match declared {
                Some(file) => reading.any(|(path, ..)| path == file),
                None => reading.any(|(_, _, words)| words.contains(&named)),
            };
            if !is_read && UNREAD.iter().all(|(of, _)| *of != key) {
                wrong.push(format!("{path}:{}: {key}", field.line));
            }
            seen.insert(key);
        }
    }
    assert!(seen.len() > 900, "only {} fields were found", seen.len());
    assert!(
        wrong.is_empty(),
        "fields that are accepted and not read; use them, refuse them or delete them (or name the \
         reader in READ_IN):\n{}",
        wrong.join("\n")
    );
    let listed = READ_IN.iter().chain(&UNREAD).map(|(of, _)| *of);
    let gone: Vec<&str> = listed.filter(|of| !seen.contains(*of)).collect();
    assert!(gone.is_empty(), "exceptions for fields that are gone: {gone:?}");
}

#[test]
fn fields_that_nothing_reads_are_found() {
    let text =
        "#[derive(serde::Deserialize)]\npub struct Answer {\n  number: u64,\n  name: String,\n}";
    let found = accepted(text, false);
    let names: Vec<(&str, usize)> = found.iter().map(|it| (it.name.as_str(), it.line)).collect();
    assert_eq!(names, [("number", 3), ("name", 4)]);
    assert!(accepted("struct Plain { number: u64 }", false).is_empty());
    assert_eq!(accepted("struct Plain { number: u64 }", true).len(), 1);
    // To be set, filled or skipped is not to be read.
    let set = "fn f(a: &mut Answer) { a.number = 1; let Answer { name: _, .. } = a; }";
    assert!(used(set).is_empty());
    assert!(used("fn f() -> Answer { Answer { number: 1, name: g() } }").is_empty());
    for reading in ["a.number", "a.number += 1", "let Answer { number, .. } = a", "p!(a.number)"] {
        assert!(used(&format!("fn f() {{ {reading}; }}")).contains("number"), "{reading}");
    }
}
