// SPDX-License-Identifier: GPL-2.0
//! Reading and writing files.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::num::NonZeroU32;
use std::os::unix::fs::{fchown, MetadataExt};
use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};
use pbs_plan::{from_toml, leppert, Plan};
use pbs_text::json::{is_json, toml_of_json};
use pbs_text::reader::closest;
use pbs_text::Problem;
use serde::de::IgnoredAny;
use serde::Deserialize;

use crate::failure::Failure;

/// The text of a file; `-` is standard input. A plan, a job or a machine in JSON is TOML then.
pub(crate) fn read(file: &Path) -> Result<String, Failure> {
    to_toml(read_as_it_is(file)?, file)
}

/// The text of `file`, which is TOML afterwards if it was a plan, a job or a machine in JSON.
fn to_toml(text: String, file: &Path) -> Result<String, Failure> {
    if !is_json(&text) || !serde_json::from_str(&text).is_ok_and(|keys: Keys| keys.is_file()) {
        return Ok(text);
    }
    toml_of_json(&text)
        .map_err(|problem| Failure::Invalid { file: name(file), problems: vec![problem] })
}

/// Keys by which JSON is a plan, a job, a task graph or a machine, and no recording. An empty
/// object is such a file without its keys.
#[derive(Deserialize)]
struct Keys {
    process: Option<IgnoredAny>,
    cpu: Option<IgnoredAny>,
    task: Option<IgnoredAny>,
    node: Option<IgnoredAny>,
    #[serde(flatten)]
    others: BTreeMap<String, IgnoredAny>,
}

impl Keys {
    fn is_file(&self) -> bool {
        let keys = [&self.process, &self.cpu, &self.task, &self.node];
        self.others.is_empty() || keys.into_iter().any(Option::is_some)
    }
}

/// Refuses JSON that is no plan, job, task graph or machine: with a mistake in its syntax, or with
/// other keys.
fn refuse_json(wanted: Kind, text: &str) -> Result<(), Problem> {
    if !is_json(text) {
        return Ok(());
    }
    toml_of_json(text)?;
    let kind = wanted.name();
    let message = format!(
        "this is JSON, such as a recording or an answer of pbsctl --json, and no {kind}; write a \
         {kind} in TOML or JSON{}",
        match wanted {
            Kind::Plan => " (see pbs-plan(5))",
            Kind::Job | Kind::Graph => " (see pbs-job(5))",
            Kind::Machine => " (see pbs-machine(5))",
        }
    );
    Err(Problem::at(None, message))
}

const BYTE_ORDER_MARK: char = '\u{feff}';

/// Longer files are none of ours: devices and pipes without an end, for instance.
const MOST_BYTES: u64 = 1 << 30;

fn read_as_it_is(file: &Path) -> Result<String, Failure> {
    let read = if file == Path::new("-") {
        text_of(io::stdin(), MOST_BYTES)
    } else {
        File::open(file).and_then(|file| text_of(file, MOST_BYTES))
    };
    read.map_err(|error| unreadable(file, &error))
}

/// The text of a file that has at most so many bytes.
fn text_of(from: impl Read, most_bytes: u64) -> io::Result<String> {
    let mut text = String::new();
    let count = from.take(most_bytes + 1).read_to_string(&mut text)?;
    if count as u64 > most_bytes {
        let what = format!("it is longer than {}; name another file", pbs_text::bytes(most_bytes));
        return Err(io::Error::new(ErrorKind::FileTooLarge, what));
    }
    // Some editors put a mark of the encoding before all.
    if text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len_utf8());
    }
    Ok(text)
}

fn unreadable(file: &Path, error: &std::io::Error) -> Failure {
    if error.kind() != ErrorKind::InvalidData {
        return Failure::file(name(file), error);
    }
    let is_recording = File::open(file).is_ok_and(|file| {
        let mut first = Vec::new();
        file.take(64).read_to_end(&mut first).is_ok() && pbs_record::is_recording(&first)
    });
    let message = if is_recording {
        format!("this is a recording of inputs; replay it: pbsctl node replay {}", file.display())
    } else {
        "this is not UTF-8 text, as plans, jobs and machines are; name another file".into()
    };
    Failure::Invalid { file: name(file), problems: vec![Problem::at(None, message)] }
}

/// Name of a file in messages.
pub(crate) fn name(file: &Path) -> String {
    if file == Path::new("-") {
        "standard input".into()
    } else {
        file.display().to_string()
    }
}

/// Form of a file, as its beginning shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A plan of Leppert's simulation.
    Leppert,
    /// JSON, as a recording.
    Json,
    /// Any other text: a plan in TOML, or no file of ours.
    Toml,
}

impl Form {
    pub(crate) fn of(text: &str) -> Self {
        if leppert::is_it(text) {
            Self::Leppert
        } else if text.trim_start().starts_with('{') {
            Self::Json
        } else {
            Self::Toml
        }
    }
}

/// Intended kind of a file in TOML, as its tables and keys show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Any other file: the check of plans reports its problems.
    Plan,
    Job,
    /// A job whose tasks have variants.
    Graph,
    Machine,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Job => "job",
            Self::Graph => "task graph",
            Self::Machine => "machine",
        }
    }

    /// Intended kind of a text; `otherwise`: that of a text that shows none.
    pub(crate) fn of(text: &str, otherwise: Self) -> Self {
        Self::shown(text).map_or(otherwise, |(kind, _)| kind)
    }

    /// Intended kind of a text whose table is misspelled: [[taks]].
    fn misspelled(text: &str) -> Option<(Self, u32)> {
        let tables = [("task", Self::Graph), ("node", Self::Machine), ("cpu", Self::Plan)];
        // These tables are of others, too, or of other files.
        let others = ["process", "nodes", "pool", "link", "device", "group", "limit"];
        text.lines().zip(1..).find_map(|(line, number)| {
            let name = line.trim_start().strip_prefix("[[")?;
            let name = &name[..name.find([']', '.'])?];
            if others.contains(&name) {
                return None;
            }
            let all = others.into_iter().chain(tables.map(|(table, _)| table));
            let meant = closest(name, all)?;
            let (_, kind) = tables.into_iter().find(|&(table, _)| table == meant)?;
            Some((kind, number))
        })
    }

    /// Kind that a text plainly shows, and the number of the line that shows it.
    fn shown(text: &str) -> Option<(Self, u32)> {
        let first = |starts: &[&str]| {
            let mut lines = text.lines().zip(1..);
            let is_it = |line: &str| starts.iter().any(|start| line.starts_with(start));
            // In what was JSON, keys are quoted.
            let unquoted = |line: &'_ str| line.trim_start_matches(['"', ' ', '\t']).to_owned();
            lines.find_map(|(line, number)| is_it(&unquoted(line)).then_some(number))
        };
        if Form::of(text) != Form::Toml {
            return None;
        }
        // A job that lacks its deadline is still meant to be one.
        let keys = ["deadline_ns", "start_ns", "memory_bytes", "runtime_ns", "priority", "cpus"];
        let plan = first(&["[[cpu]]", "cpu\" = ["]).map(|line| (Self::Plan, line));
        let graph = || first(&["[[task]]", "task\" = ["]).map(|line| (Self::Graph, line));
        let machine = || first(&["[[node]]", "node\" = ["]).map(|line| (Self::Machine, line));
        let job = || first(&keys).map(|line| (Self::Job, line));
        let known = plan.or_else(graph).or_else(machine);
        known.or_else(|| Self::misspelled(text)).or_else(job)
    }
}

/// Refuses a file of another kind, and names its use. A file of no known kind is left to the check
/// of the wanted kind.
pub(crate) fn expect(wanted: Kind, text: &str, file: &Path) -> Result<(), Failure> {
    refuse_json(wanted, text)
        .map_err(|problem| Failure::Invalid { file: self::name(file), problems: vec![problem] })?;
    let Some((found, line)) = Kind::shown(text).filter(|&(found, _)| found != wanted) else {
        return Ok(());
    };
    let name = file.display();
    let what_to_do = match (wanted, found) {
        (Kind::Job, Kind::Plan) => {
            format!("simulate the plan with pbsctl sim {name}, or run it with pbsctl run {name}")
        }
        (Kind::Plan, Kind::Job) => format!(
            "plan the job first: pbsctl plan show {name} --output plan.toml, with --machine FILE \
             for another machine than this one; or run it with pbsctl run {name}"
        ),
        (Kind::Job | Kind::Plan, Kind::Graph) => format!(
            "choose the variants of its tasks first: pbsctl run --cosched {name} chooses them and \
             runs it, pbsctl cosched plan {name} --jobs DIR writes a job"
        ),
        (_, Kind::Graph) => "use it as a workload, and name a machine with --machine".into(),
        (Kind::Graph, Kind::Job | Kind::Plan) => {
            "tasks to be co-scheduled have variants; write [[task]] and [[task.variant]]".into()
        }
        (_, Kind::Machine) => "use it with --machine, beside a job".into(),
        (_, Kind::Job) => "use it as a job, and name a machine with --machine".into(),
        (_, Kind::Plan) => "name a machine, such as those in samples/machines".into(),
    };
    let message = format!("this is a {}, not a {}; {what_to_do}", found.name(), wanted.name());
    Err(Failure::Invalid {
        file: self::name(file),
        problems: vec![Problem::at(NonZeroU32::new(line), message)],
    })
}

/// A plan that is valid.
pub(crate) fn read_plan(file: &Path) -> Result<Plan, Failure> {
    plan_of(&read(file)?, file)
}

/// The valid plan that a file holds.
pub(crate) fn plan_of(text: &str, file: &Path) -> Result<Plan, Failure> {
    expect(Kind::Plan, text, file)?;
    let plan = match Form::of(text) {
        Form::Leppert => {
            let file = file.display();
            let message = format!(
                "this is a plan in Leppert's grammar; convert it to TOML first: pbsctl plan import \
                 {file} > plan.toml"
            );
            Err(vec![Problem::at(None, message)])
        }
        _ => from_toml(text),
    };
    told(plan, file)
}

/// A plan that is valid, in TOML or in Leppert's grammar.
pub(crate) fn read_any_plan(file: &Path) -> Result<Plan, Failure> {
    any_plan_of(read_as_it_is(file)?, file)
}

/// The valid plan of a text in TOML, in JSON or in Leppert's grammar; `file`: its name in messages.
pub(crate) fn any_plan_of(text: String, file: &Path) -> Result<Plan, Failure> {
    let text = to_toml(text, file)?;
    expect(Kind::Plan, &text, file)?;
    let plan = match Form::of(&text) {
        Form::Leppert => leppert::import(&text, 1, 0),
        _ => from_toml(&text),
    };
    told(plan, file)
}

fn told(plan: Result<Plan, Vec<Problem>>, file: &Path) -> Result<Plan, Failure> {
    plan.map_err(|problems| Failure::Invalid { file: name(file), problems })
}

/// Endings of names that promise a format. Other endings, such as those of temporary files, promise
/// nothing.
const FORMATS: [&str; 19] = [
    "bmp", "csv", "eps", "gif", "htm", "html", "jpeg", "jpg", "json", "md", "pdf", "png", "ps",
    "svg", "svgz", "tif", "tiff", "toml", "webp",
];

/// The format that a name promises by its ending, if that is another than the one written.
pub(crate) fn other_format<'a>(file: &'a Path, written: &[&str]) -> Option<&'a str> {
    let ending = file.extension()?.to_str()?;
    let is = |format: &&str| ending.eq_ignore_ascii_case(format);
    (FORMATS.iter().any(is) && !written.iter().any(is)).then_some(ending)
}

/// Reader of the name of a file that gets TOML, for options.
pub(crate) fn toml_file() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| named_for(path, "toml", "as TOML"))
}

/// Reader of the name of a file that gets a table in CSV, for options.
pub(crate) fn csv_file() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| named_for(path, "csv", "as CSV"))
}

/// The name of a file, unless its ending promises another format than the written one.
pub(crate) fn named_for(path: PathBuf, ending: &str, written: &str) -> Result<PathBuf, String> {
    match other_format(&path, &[ending]) {
        Some(other) => Err(format!(
            "the file is written {written}, and not as {other}; name a file such as {}",
            path.with_extension(ending).display()
        )),
        None => Ok(path),
    }
}

/// Refuses one file for two options: the text of the later one would replace that of the first.
pub(crate) fn refuse_same(options: &[(&str, Option<&Path>)]) -> Result<(), Failure> {
    let mut taken: Vec<(&str, PathBuf)> = Vec::new();
    let given = options.iter().filter_map(|&(option, path)| Some((option, path?)));
    for (option, path) in given {
        // Devices and pipes take one text after the other.
        if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
            continue;
        }
        let place = place(path);
        if let Some((first, _)) = taken.iter().find(|(_, other)| *other == place) {
            return Err(Failure::Usage(format!(
                "{first} and {option} both name {}, and one text would replace the other; name \
                 two files",
                path.display()
            )));
        }
        taken.push((option, place));
    }
    Ok(())
}

/// Absolute path of a file that need not exist.
fn place(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = fs::canonicalize(parent.unwrap_or(Path::new(".")));
        match (parent, path.file_name()) {
            (Ok(parent), Some(name)) => parent.join(name),
            _ => path.into(),
        }
    })
}

/// Reader of the name of a file that gets a picture, for options.
pub(crate) fn picture() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(picture_of)
}

fn picture_of(path: PathBuf) -> Result<PathBuf, String> {
    match other_format(&path, &["svg"]) {
        Some(ending) => Err(format!(
            "the picture is written as SVG, and not as {ending}; name a file that ends in .svg, \
             such as {}",
            path.with_extension("svg").display()
        )),
        None => Ok(path),
    }
}

/// Reader of the name of a directory that gets pictures, for options.
pub(crate) fn pictures() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(pictures_of)
}

fn pictures_of(path: PathBuf) -> Result<PathBuf, String> {
    match other_format(&path, &[]).filter(|_| !path.is_dir()) {
        Some(ending) => Err(format!(
            "a directory is named here, into which pictures are written as SVG, and no file that \
             ends in .{ending}; name a directory, such as {}",
            path.with_extension("").display()
        )),
        None => Ok(path),
    }
}

/// Writes a file, or leaves what was there as it was.
pub(crate) fn write(file: &Path, text: &str) -> Result<(), Failure> {
    write_beside(file, text.as_bytes()).map_err(|error| {
        if is_standard_output(file) {
            Failure::output(file, &error)
        } else {
            Failure::file(file, &error)
        }
    })
}

/// Whether a file is what standard output goes to.
fn is_standard_output(file: &Path) -> bool {
    let of = |path: &Path| fs::metadata(path).map(|of| (of.dev(), of.ino()));
    matches!((of(file), of(Path::new("/proc/self/fd/1"))), (Ok(file), Ok(out)) if file == out)
}

/// Writes to a new file beside, which then takes the place of the old one: if the
/// disk is full, the old one is still there.
fn write_beside(file: &Path, text: &[u8]) -> io::Result<()> {
    let old = match fs::metadata(file) {
        // A pipe, a terminal or another device holds nothing that could be lost.
        Ok(old) if !old.is_file() => return fs::write(file, text),
        Ok(old) => Some(old),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if old.is_some() {
        // Who may not write to it may not replace it.
        OpenOptions::new().write(true).open(file)?;
    }
    // Where a link leads to is what is replaced.
    let file = match old {
        Some(_) => fs::canonicalize(file)?,
        None => file.into(),
    };
    let beside = file.with_file_name(format!(".pbsctl.{}", std::process::id()));
    // Of one that had the same number and died.
    let _ = fs::remove_file(&beside);
    let written = (|| {
        let mut new = File::create_new(&beside)?;
        new.write_all(text)?;
        if let Some(old) = &old {
            // Root may write what is another's; it stays theirs.
            let own = new.metadata()?;
            if (own.uid(), own.gid()) != (old.uid(), old.gid()) {
                fchown(&new, Some(old.uid()), Some(old.gid()))?;
            }
            new.set_permissions(old.permissions())?;
        }
        // Some file systems notice only now that they are full.
        new.sync_all()?;
        fs::rename(&beside, &file)
    })();
    if written.is_err() {
        // The error of the writing is the one to report.
        let _ = fs::remove_file(&beside);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_written_under_their_format() {
        let told = picture_of("out/plan.PNG".into()).unwrap_err();
        assert!(told.ends_with("such as out/plan.svg") && told.contains("not as PNG"), "{told}");
        for name in ["plan.svg", "plan.SVG", "plan", "/dev/stdout", "tmp.Xa3kd", "v1.2"] {
            assert_eq!(picture_of(name.into()), Ok(PathBuf::from(name)));
        }
        let told = pictures_of("figures.svg".into()).unwrap_err();
        assert!(told.ends_with("such as figures"), "{told}");
        for name in ["figures", "v1.2", "."] {
            assert_eq!(pictures_of(name.into()), Ok(PathBuf::from(name)));
        }
    }

    /// A device or a pipe may have no end.
    #[test]
    fn a_file_that_is_too_long_is_not_read() {
        assert_eq!(text_of(&b"abcd"[..], 4).unwrap(), "abcd");
        let error = text_of(io::repeat(b'a'), 2 << 20).unwrap_err();
        assert_eq!(error.to_string(), "it is longer than 2.0 MiB; name another file");
    }

    #[test]
    fn a_directory_is_no_file() {
        let Err(Failure::Failed(what)) = read(Path::new("/")) else {
            panic!("a directory was read");
        };
        assert_eq!(what, "/: it is a directory; name a file in it");
    }
}
