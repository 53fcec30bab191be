// SPDX-License-Identifier: GPL-2.0
//! Options in a job script, and what is reported of its other lines.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use clap::error::ContextKind;
use clap::{Args, Parser};
use pbs_resources::script::{self, Script, Unread};

use super::requirements::Requirements;
use crate::failure::Failure;
use crate::output::report;

/// Longest part of a script in which options are looked for, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// The words of a script.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct ScriptOptions {
    #[command(flatten)]
    asked: Requirements,

    #[command(flatten)]
    unused: UnusedOptions,
}

/// Options of OpenCCS without effect here: scripts have them beside the resources.
#[derive(Args)]
struct UnusedOptions {
    /// File for the output
    #[arg(short, long, value_name = "FILE")]
    output: Option<String>,

    /// File for the errors
    #[arg(short = 'e', long, value_name = "FILE")]
    stderr: Option<String>,

    /// File for the output
    #[arg(long, value_name = "FILE")]
    stdout: Option<String>,

    /// Streams to join
    #[arg(short = 'j', long, value_name = "STREAMS")]
    join: Option<String>,

    /// Events of which a mail informs
    #[arg(short = 'm', long, value_name = "EVENTS")]
    mail: Option<String>,

    /// Addressees of mails
    #[arg(short = 'M', long, value_name = "USERS")]
    mail_users: Option<String>,

    /// The machine
    #[arg(long, value_name = "NAME")]
    island: Option<String>,

    /// File for the trace of the request
    #[arg(long, value_name = "FILE")]
    tracefile: Option<String>,
}

impl UnusedOptions {
    /// The spellings of each option that is set.
    fn set(&self) -> Vec<[&'static str; 2]> {
        let all = [
            (&self.output, ["-o", "--output"]),
            (&self.stderr, ["-e", "--stderr"]),
            (&self.stdout, ["--stdout", "--stdout"]),
            (&self.join, ["-j", "--join"]),
            (&self.mail, ["-m", "--mail"]),
            (&self.mail_users, ["-M", "--mail-users"]),
            (&self.island, ["--island", "--island"]),
            (&self.tracefile, ["--tracefile", "--tracefile"]),
        ];
        let set = all.into_iter().filter(|(value, _)| value.is_some());
        set.map(|(_, names)| names).collect()
    }
}

/// Refuses a command that does not stand behind `--`, and says what of a script is not read.
pub(super) fn refuse_misplaced(words: &[String]) -> Result<(), Failure> {
    let Some(first) = words.first() else {
        return Ok(());
    };
    let mut what = format!(
        "the command stands behind --, such as pbsctl cluster alloc --res rset=ncpus=4 -t 1h -- {}",
        words.join(" ")
    );
    for lines in unread_lines(first) {
        what += &format!("; {lines}");
    }
    Err(Failure::Usage(what))
}

/// Lines of a script that are options of other systems; none if it can't be read, which is told when
/// it stands where it belongs.
fn unread_lines(file: &str) -> Vec<Unread> {
    if !Path::new(file).is_file() {
        return Vec::new();
    }
    let Ok(Some(text)) = text_of(file) else {
        return Vec::new();
    };
    script::read(&text).map_or_else(|_| Vec::new(), |script| script.unread)
}

/// Reports a script that is not there, and whose options are needed. A request that has its
/// resources may be for a later time, or for other nodes, and is planned all the same.
fn report_missing(file: &str) {
    const ENDINGS: [&str; 9] = ["bash", "ccs", "csh", "ksh", "pbs", "pl", "sh", "slurm", "zsh"];
    let path = Path::new(file);
    // A program in PATH may have a number behind a point.
    let ending = path.extension().and_then(|ending| ending.to_str());
    let is_script = ending.is_some_and(|ending| ENDINGS.contains(&ending));
    if (file.contains('/') || is_script) && !path.exists() {
        report(&format!(
            "pbsctl: {file}: there is no such file here, and no options in it are read; name a \
             script that exists"
        ));
    }
}

/// Reads the options in a script's #CCS lines, and reports lines and options that are not used;
/// none for a program that is no text.
///
/// `needs_options`: the command line names no resources.
pub(super) fn of_script(command: &[String], needs_options: bool) -> Result<Requirements, Failure> {
    command.first().filter(|_| needs_options).into_iter().for_each(|file| report_missing(file));
    let Some(file) = command.first().filter(|file| Path::new(file).is_file()) else {
        return Ok(Requirements::default());
    };
    let text = match text_of(file) {
        Ok(Some(text)) => text,
        Ok(None) => return Ok(Requirements::default()),
        Err(error) => {
            // Who may run a file may be forbidden to read it.
            report(&format!("pbsctl: {file}: options in it are not read: {error}"));
            return Ok(Requirements::default());
        }
    };
    let (requirements, warnings) =
        read(&text).map_err(|what| Failure::Failed(format!("{file}: {what}")))?;
    for warning in warnings {
        report(&format!("pbsctl: {file}: {warning}"));
    }
    Ok(requirements)
}

/// The beginning of a text file; `None` for a program in machine code. Letters of older encodings
/// are replaced: scripts have them in comments.
fn text_of(file: &str) -> std::io::Result<Option<String>> {
    let mut bytes = Vec::new();
    File::open(file)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
    let is_text = !bytes.contains(&0);
    Ok(is_text.then(|| String::from_utf8_lossy(&bytes).into_owned()))
}

/// Reads the options of a script; also what is to be reported of it.
fn read(text: &str) -> Result<(Requirements, Vec<String>), String> {
    let script = script::read(text).map_err(|error| error.to_string())?;
    let words = script.words.iter().map(|word| &word.text);
    let options = ScriptOptions::try_parse_from(words).map_err(|error| refusal(&error, &script))?;
    let mut warnings: Vec<String> = script.unread.iter().map(ToString::to_string).collect();
    let unused: Vec<String> =
        options.unused.set().iter().map(|names| found(names, &script)).collect();
    if !unused.is_empty() {
        warnings
            .push(format!("options of OpenCCS that have no effect here: {}", unused.join(", ")));
    }
    Ok((options.asked, warnings))
}

/// An option with its line.
fn found(names: &[&str; 2], script: &Script) -> String {
    let [short, long] = names;
    let is_it = |word: &str| {
        let behind = word.strip_prefix(long).map(|rest| rest.is_empty() || rest.starts_with('='));
        behind.unwrap_or_else(|| !short.starts_with("--") && word.starts_with(short))
    };
    match script.words.iter().find(|word| is_it(&word.text)) {
        Some(word) => format!("{} (line {})", word.text, word.line),
        None => (*long).into(),
    }
}

/// A refusal of clap in one line, with the line of the script.
fn refusal(error: &clap::Error, script: &Script) -> String {
    let text = error.to_string();
    let text = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    let option = error.get(ContextKind::InvalidArg).map(ToString::to_string).unwrap_or_default();
    let option = option.split([' ', '=']).next().unwrap_or_default();
    let word = script.words.iter().find(|word| !option.is_empty() && word.text.starts_with(option));
    match word {
        Some(word) => format!("line {}: {text}", word.line),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warnings(text: &str) -> Vec<String> {
        read(text).unwrap().1
    }

    #[test]
    fn options_of_openccs_are_taken_and_reported() {
        let said = warnings(
            "#!/bin/sh\n#CCS --island LAB\n#CCS -N nightly\n#CCS -t 1h\n#CCS -m abe -M anna\n\
             #CCS --output=out.txt\n#CCS --stderr=err.txt\n#CCS --join oe --tracefile t\n./app\n",
        );
        assert_eq!(
            said,
            ["options of OpenCCS that have no effect here: --output=out.txt (line 6), \
              --stderr=err.txt (line 7), --join (line 8), -m (line 5), -M (line 5), --island \
              (line 2), --tracefile (line 8)"]
        );
        let said = warnings("#CCS -o nightly.txt --res=rset=1:ncpus=1:mem=4g\n");
        assert_eq!(said, ["options of OpenCCS that have no effect here: -o (line 1)"]);
        assert!(warnings("#CCS -t 1h\n./app\n").is_empty());
    }

    #[test]
    fn lines_that_are_not_read_are_reported() {
        let said = warnings("#!/bin/sh\nset -e\n#CCS -t 2h\n");
        assert!(said[0].starts_with("line 3 with #CCS is ignored"), "{said:?}");
    }

    #[test]
    fn a_refusal_is_one_line_with_its_place() {
        let refused = |text: &str| match read(text) {
            Err(what) => what,
            Ok(_) => panic!("{text} was read"),
        };
        assert_eq!(
            refused("#!/bin/sh\n#CCS --rest=1\n"),
            "line 2: unexpected argument '--rest' found"
        );
        let said = refused("\n\n#CCS -N a\n#CCS -t 0\n");
        assert!(said.contains("at least a second") && !said.contains('\n'), "{said}");
    }
}
