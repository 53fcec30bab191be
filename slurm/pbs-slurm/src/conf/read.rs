// SPDX-License-Identifier: GPL-2.0
//! The files themselves: lines, keys, what they include.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::conf::entry::{Entry, Error, Place, Setting, MOST_FILE_BYTES};
use crate::conf::hooks::{Hook, Lua};
use crate::conf::nodes::{self, Node, Partition};
use crate::conf::topology::{self, Switches, Unplanned};

/// Files that include each other go no deeper.
const MOST_DEPTH: usize = 8;
/// Greatest number of lines of all files together.
const MOST_LINES: usize = 200_000;

/// Keys that begin such a line.
const ENTRIES: [&str; 6] =
    ["nodename", "partitionname", "nodeset", "downnodes", "frontendname", "switchname"];

/// Slurm's configuration.
#[derive(Clone, Debug)]
pub struct Conf {
    /// The file that was read first.
    pub path: PathBuf,
    settings: BTreeMap<String, Setting>,
    /// All nodes, in the order of the files.
    pub nodes: Vec<Node>,
    /// All partitions.
    pub partitions: Vec<Partition>,
    /// Leaf switches of topology.conf with their nodes, if Slurm uses that file.
    pub switches: Switches,
    /// Parts of topology.conf that the site does not have.
    pub(crate) unplanned: Vec<Unplanned>,
    /// Lines of plugstack.conf that load a plugin.
    pub plugins: Vec<Setting>,
    /// Files beside slurm.conf that exist, or that Slurm needs, and can't be read; or lines of them.
    pub unread: Vec<Error>,
    /// job_submit.lua.
    pub job_submit: Lua,
    /// jobcomp.lua.
    pub jobcomp: Lua,
    /// Hook that PrologSlurmctld names.
    pub prolog: Option<Hook>,
    /// Hook that EpilogSlurmctld names.
    pub epilog: Option<Hook>,
    /// The number of SlurmUser, if /etc/passwd or slurm.conf has it.
    pub slurm_uid: Option<u32>,
}

impl Conf {
    /// Returns the setting of a key, which is compared without regard to case. If there are
    /// several, the last counts.
    pub fn setting(&self, key: &str) -> Option<&Setting> {
        self.settings.get(&key.to_ascii_lowercase())
    }

    /// Returns the value of a key.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.setting(key).map(|of| of.value.as_str())
    }

    /// Whether one of the words of a list, as `lua` of `lua,throttle`, is there.
    pub fn has_word(&self, key: &str, word: &str) -> bool {
        let mut words = self.value(key).unwrap_or_default().split(',');
        words.any(|of| of.trim().eq_ignore_ascii_case(word))
    }

    /// Whether a list of plugins of a kind has one: `affinity` of `task/affinity,task/cgroup`,
    /// which Slurm also reads as `affinity,cgroup`.
    pub(crate) fn has_plugin(&self, key: &str, kind: &str, name: &str) -> bool {
        self.has_word(key, name) || self.has_word(key, &format!("{kind}/{name}"))
    }

    /// The partition of that name.
    pub fn partition(&self, name: &str) -> Option<&Partition> {
        self.partitions.iter().find(|of| of.name == name)
    }

    /// The nodes of a partition that Slurm has: without those that are declared for the future.
    pub fn nodes(&self, partition: &str) -> Vec<Node> {
        let mut nodes = self.declared_nodes(partition);
        nodes.retain(|of| !of.is_future());
        nodes
    }

    /// The parts of nodes that Slurm allocates in a partition: its `SelectTypeParameters`, or else
    /// those of the cluster. In lower case.
    pub(crate) fn select_parameters(&self, partition: &str) -> String {
        let of = self.partition(partition).and_then(|of| of.value("SelectTypeParameters"));
        let of = of.or(self.value("SelectTypeParameters")).unwrap_or_default();
        of.to_ascii_lowercase()
    }

    /// Number of CPUs of a core on all nodes of a partition, if there are several. Slurm gives no
    /// core to two jobs, with `CR_CPU` neither.
    pub(crate) fn cpus_per_core(&self, partition: &str) -> Option<u64> {
        let nodes = self.nodes(partition);
        let cpus = nodes.first().map(|of| of.cpus_per_core).filter(|&cpus| cpus > 1)?;
        let are_alike = nodes.iter().all(|of| of.cpus_per_core == cpus);
        are_alike.then_some(cpus)
    }

    /// All nodes that a partition lists.
    pub(crate) fn declared_nodes(&self, partition: &str) -> Vec<Node> {
        let names = self.partition(partition).map(|of| of.nodes.as_slice());
        let by_name: BTreeMap<_, _> = self.nodes.iter().map(|of| (of.name.as_str(), of)).collect();
        let found = names.unwrap_or_default().iter();
        found.filter_map(|name| by_name.get(name.as_str()).copied().cloned()).collect()
    }
}

/// Reads slurm.conf, what it includes, and what stands beside it.
///
/// A Lua compiler is asked whether the scripts can be read; nothing else is run.
pub fn read(path: &Path) -> Result<Conf, Error> {
    let mut lines = Lines::default();
    lines.file(path, path.parent().unwrap_or(Path::new("")), 0)?;
    let directory = path.parent().unwrap_or(Path::new("")).to_path_buf();
    let of = |kind: &'static str| {
        let entries = lines.entries.iter();
        entries.filter(move |entry| entry.keys.contains_key(kind))
    };
    let mut nodes = nodes::nodes(of("nodename"))?;
    nodes::down(of("downnodes"), &mut nodes)?;
    let partitions = nodes::partitions(of("partitionname"), of("nodeset"), &nodes)?;
    let value = |key: &str| lines.settings.get(key).map(|of| of.value.as_str());
    let hook = |key| value(key).map(|path| Hook::look(Path::new(path)));
    let plugstack = match value("plugstackconfig") {
        Some(path) => directory.join(path),
        None => directory.join("plugstack.conf"),
    };
    let mut unread = Vec::new();
    let plugins = plugins(&plugstack, 0, &mut unread);
    let mut unplanned = Vec::new();
    let uses_tree = value("topologyplugin").is_some_and(topology::is_tree);
    let switches = if uses_tree {
        switches(&directory.join("topology.conf"), &nodes, &mut unread, &mut unplanned)?
    } else {
        let file = directory.join("topology.conf");
        // A site that has chosen another plugin knows.
        if file.exists() && value("topologyplugin").is_none() {
            unplanned.push(Unplanned::Unused(Place { file, line: 1 }));
        }
        Switches::default()
    };
    Ok(Conf {
        path: path.into(),
        nodes,
        partitions,
        switches,
        unplanned,
        plugins,
        unread,
        job_submit: Lua::look(&directory.join("job_submit.lua")),
        jobcomp: Lua::look(&directory.join("jobcomp.lua")),
        prolog: hook("prologslurmctld"),
        epilog: hook("epilogslurmctld"),
        slurm_uid: uid(value("slurmuser").unwrap_or("root")),
        settings: lines.settings,
    })
}

/// The number of a user, of this machine's own.
fn uid(name: &str) -> Option<u32> {
    if name == "root" {
        return Some(0);
    }
    // A user whom the file does not name may be given by number.
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let found = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok())?
    });
    found.or_else(|| name.parse().ok())
}

fn text_of(file: &Path) -> Result<String, Error> {
    let fails = |message: String| Error { file: file.into(), line: None, message };
    let mut bytes = Vec::new();
    let opened =
        File::open(file).and_then(|file| file.take(MOST_FILE_BYTES + 1).read_to_end(&mut bytes));
    match opened {
        Ok(_) if bytes.len() as u64 > MOST_FILE_BYTES => Err(fails("is too long".into())),
        // Slurm reads bytes: letters of other encodings stand in comments.
        Ok(_) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) => Err(fails(error.to_string())),
    }
}

/// Lines with those that go on (`\`) joined and comments left out, and where each begins.
fn joined(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (line, number) in text.lines().zip(1..) {
        let line = before_comment(line).trim_end();
        let (part, next_goes_on) = match line.strip_suffix('\\') {
            Some(part) => (part, true),
            None => (line, false),
        };
        match lines.last_mut().filter(|_| goes_on) {
            Some((_, joined)) => joined.push_str(part),
            None => lines.push((number, part.into())),
        }
        goes_on = next_goes_on;
    }
    lines
}

/// `\#` begins none.
fn before_comment(line: &str) -> &str {
    let mut before = 0 as char;
    for (at, c) in line.char_indices() {
        if c == '#' && before != '\\' {
            return &line[..at];
        }
        before = c;
    }
    line
}

/// All files' lines.
#[derive(Default)]
struct Lines {
    settings: BTreeMap<String, Setting>,
    entries: Vec<Entry>,
    count: usize,
}

impl Lines {
    fn file(&mut self, file: &Path, directory: &Path, depth: usize) -> Result<(), Error> {
        for (line, text) in joined(&text_of(file)?) {
            let place = Place { file: file.into(), line };
            self.count += 1;
            if self.count > MOST_LINES {
                return Err(Error::at(&place, "all files together have too many lines"));
            }
            if let Some(name) = included(&text) {
                if depth == MOST_DEPTH {
                    let message = "files include each other too deeply; check for a circle";
                    return Err(Error::at(&place, message));
                }
                // Relative names are beside slurm.conf, wherever they are included.
                let cluster = self.settings.get("clustername");
                let cluster = cluster.map_or("", |of| of.value.as_str()).to_ascii_lowercase();
                let name = name.replace("%c", &cluster);
                let included = directory.join(name);
                self.file(&included, directory, depth + 1).map_err(|error| match error.line {
                    Some(_) => error,
                    None => Error::at(&place, error.to_string()),
                })?;
                continue;
            }
            self.line(&text, place)?;
        }
        Ok(())
    }

    fn line(&mut self, text: &str, place: Place) -> Result<(), Error> {
        let pairs = pairs(text).map_err(|word| {
            let word: String = word.chars().take(40).collect();
            let message = format!("{word:?} is not KEY=VALUE; write a value with spaces in quotes");
            Error::at(&place, message)
        })?;
        let first = pairs.first().map(|(key, _)| key.as_str());
        if first.is_some_and(|key| ENTRIES.contains(&key)) {
            let keys = pairs.into_iter().collect();
            self.entries.push(Entry { keys, place });
            return Ok(());
        }
        for (key, value) in pairs {
            let place = place.clone();
            self.settings.insert(key, Setting { value, place });
        }
        Ok(())
    }
}

/// The file of a line `include FILE`.
fn included(line: &str) -> Option<&str> {
    let (word, rest) = line.trim_start().split_once([' ', '\t'])?;
    let is_include = word.eq_ignore_ascii_case("include");
    let name = rest.trim().trim_matches('"');
    (is_include && !name.is_empty() && !name.starts_with('=')).then_some(name)
}

/// `KEY=VALUE` and `KEY="VALUE WITH SPACES"`, keys in lower case; what is none, else.
fn pairs(line: &str) -> Result<Vec<(String, String)>, String> {
    let mut pairs = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let word = || rest.split_whitespace().next().unwrap_or_default().to_string();
        let (key, behind) = rest.split_once('=').ok_or_else(word)?;
        // `+=` adds to lists of what stands in one line; nothing that is asked here does.
        let key = key.trim_end().trim_end_matches(['+', '-', '*', '/']);
        let is_key = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        if key.is_empty() || !key.chars().all(is_key) {
            return Err(word());
        }
        let behind = behind.trim_start();
        let quoted = behind.strip_prefix('"').map(|quoted| quoted.split_once('"').ok_or_else(word));
        let (value, behind) = match quoted.transpose()? {
            Some((value, behind))
                if behind.is_empty() || behind.starts_with(char::is_whitespace) =>
            {
                (value, behind)
            }
            // Quotes within a value, as in "a","b", are part of it.
            _ => {
                let end = behind.find(char::is_whitespace).unwrap_or(behind.len());
                behind.split_at(end)
            }
        };
        pairs.push((key.to_ascii_lowercase(), value.replace("\\#", "#")));
        rest = behind.trim_start();
    }
    Ok(pairs)
}

/// Reads topology.conf, which Slurm needs for its tree of switches. A file that can't be read is
/// noted.
fn switches(
    file: &Path,
    nodes: &[Node],
    unread: &mut Vec<Error>,
    unplanned: &mut Vec<Unplanned>,
) -> Result<Switches, Error> {
    let text = match text_of(file) {
        Ok(text) => text,
        Err(error) => {
            unread.push(error);
            return Ok(Switches::default());
        }
    };
    let mut lines = Lines::default();
    for (line, text) in joined(&text) {
        lines.line(&text, Place { file: file.into(), line })?;
    }
    topology::switches(&lines.entries, nodes, unplanned)
}

/// Lines of plugstack.conf that load something. A file that exists and can't be read is noted.
fn plugins(file: &Path, depth: usize, unread: &mut Vec<Error>) -> Vec<Setting> {
    let text = match text_of(file) {
        Ok(text) => text,
        Err(error) => {
            if file.exists() {
                unread.push(error);
            }
            return Vec::new();
        }
    };
    let mut plugins = Vec::new();
    for (line, text) in joined(&text) {
        let mut words = text.split_whitespace();
        match (words.next(), words.next()) {
            (Some("include"), Some(name)) if depth < MOST_DEPTH => {
                for included in matching(file.parent().unwrap_or(Path::new("")), name) {
                    plugins.extend(self::plugins(&included, depth + 1, unread));
                }
            }
            (Some("required" | "optional"), Some(plugin)) => plugins
                .push(Setting { value: plugin.into(), place: Place { file: file.into(), line } }),
            _ => {}
        }
    }
    plugins
}

/// Files of a name whose last part may have one `*`, as in `plugstack.conf.d/*.conf`.
fn matching(directory: &Path, name: &str) -> Vec<PathBuf> {
    let path = directory.join(name);
    let last = path.file_name().unwrap_or_default().to_string_lossy();
    let Some((begin, end)) = last.split_once('*') else {
        return vec![path];
    };
    let entries = fs::read_dir(path.parent().unwrap_or(Path::new("")));
    let files = entries.into_iter().flatten().filter_map(|entry| {
        // A file that vanished is not included.
        let entry = entry.ok()?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let fits = name.starts_with(begin)
            && name.ends_with(end)
            && name.len() >= begin.len() + end.len()
            && !name.starts_with('.');
        fits.then(|| entry.path())
    });
    let mut files: Vec<_> = files.collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_joined_and_comments_left_out() {
        let text = "A=1 # a\nB=1,\\\n2,\\\n3\n# C=1\nD=x\\#y\n";
        let lines = joined(text);
        let expected = [(1, "A=1"), (2, "B=1,2,3"), (5, ""), (6, "D=x\\#y")];
        let expected = expected.map(|(line, text)| (line, text.to_string()));
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_line_has_keys_and_values() {
        let pair = |key: &str, value: &str| (key.to_string(), value.to_string());
        assert_eq!(
            pairs("  NodeName=n1 CPUs=2 Reason=\"a b\" Features = x\tX= ").unwrap(),
            [
                pair("nodename", "n1"),
                pair("cpus", "2"),
                pair("reason", "a b"),
                pair("features", "x"),
                pair("x", ""),
            ]
        );
        assert_eq!(
            pairs("A=\"x y\" B=\"p=1\",\"q=2\" C=\"\"").unwrap(),
            [pair("a", "x y"), pair("b", "\"p=1\",\"q=2\""), pair("c", "")]
        );
        assert_eq!(pairs("A=1 B C=2"), Err("B".into()));
        assert_eq!(pairs("word"), Err("word".into()));
        assert_eq!(pairs("A=\"x"), Err("A=\"x".into()));
        assert_eq!(pairs(" "), Ok(vec![]));
    }

    #[test]
    fn includes_are_told_from_keys() {
        assert_eq!(included("Include plan.conf"), Some("plan.conf"));
        assert_eq!(included("  INCLUDE\t\"a b\" "), Some("a b"));
        assert_eq!(included("include"), None);
        assert_eq!(included("IncludeX y"), None);
    }
}
