// SPDX-License-Identifier: GPL-2.0
//! Options in a job script.
//!
//! A line that begins with `#CCS` holds words of the command line, so that a script says
//! what it needs:
//!
//! ```text
//! #!/bin/sh
//! #CCS --res=rset=1:gtx1080=1,place=:excl
//! #CCS -t 7d -g G1
//! ./app
//! ```
//!
//! They are read up to the first command, as those of other batch systems are; below it
//! they may be part of a text that the script writes. A backslash at the end of such a line
//! continues it in the next one, which begins with `#CCS` too.
//!
//! Lines that look like options and are none are listed in [`Script::unread`]: a caller reports
//! them, so that no option is lost in silence.

use std::fmt;

/// Prefix of options.
pub const PREFIX: &str = "#CCS";

/// Prefixes of other batch systems, whose options are not read.
const FOREIGN: [&str; 10] =
    ["#PBS", "#SBATCH", "#BSUB", "#FLUX:", "#flux:", "#OAR", "#COBALT", "#MSUB", "#PJM", "#DSUB"];

/// Prefixes of other batch systems that an option may follow without a space.
const SHORT_FOREIGN: [&str; 3] = ["#$", "#@", "# @"];

/// Maximum number of lines that a message lists.
const SHOWN_LINES: usize = 8;

/// Options in a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// In the order of the script.
    pub words: Vec<Word>,
    /// Lines that look like options and are not read, by reason; worth a warning.
    pub unread: Vec<Unread>,
}

/// Lines of a script that look like options and are not read for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// Reason for which the lines are not read.
    pub why: Why,
    /// The lines, counted from 1.
    pub lines: Vec<usize>,
}

/// Reason for which lines that look like options are not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A command stands above the lines.
    BelowCommand {
        /// Line of the first command, counted from 1.
        command_line: usize,
    },
    /// The prefix has another spelling, such as `# CCS -t 1h` or `#ccs -t 1h`.
    Misspelled,
    /// The lines are for another batch system, whose prefix this is.
    Foreign(&'static str),
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.lines.len() == 1 { "line " } else { "lines " })?;
        for (index, line) in self.lines.iter().take(SHOWN_LINES).enumerate() {
            write!(f, "{}{line}", if index > 0 { ", " } else { "" })?;
        }
        if self.lines.len() > SHOWN_LINES {
            write!(f, " and {} more", self.lines.len() - SHOWN_LINES)?;
        }
        let (is, stand) =
            if self.lines.len() == 1 { ("is", "it stands") } else { ("are", "they stand") };
        match self.why {
            Why::BelowCommand { command_line } => write!(
                f,
                " with {PREFIX} {is} ignored: {stand} below the first command, which is in line \
                 {command_line}; move it below all {PREFIX} lines"
            ),
            Why::Misspelled => {
                write!(f, " {is} ignored: options begin with {PREFIX} and a space")
            }
            Why::Foreign(prefix) => write!(
                f,
                " with {prefix} {is} not read; write {PREFIX} lines instead, such as \
                 {PREFIX} --res=rset=2:ncpus=16:mem=32g -t 24h"
            ),
        }
    }
}

/// One word of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The line that it stands in, counted from 1.
    pub line: usize,
    /// Without quotes.
    pub text: String,
}

/// Reason for which the options of a script can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The line of the script, counted from 1.
    pub line: usize,
    /// Description of the error and of its correction.
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for Error {}

/// Reads the options of a script. Words are apart by spaces; quotes and backslashes keep
/// spaces as in a shell, but nothing is put in for variables. A word that begins with `#`
/// begins a comment. Spaces before `#CCS` and a byte order mark are skipped.
///
/// # Errors
///
/// A quote has no end, a continued line has no continuation, or an option is not UTF-8: it has
/// the character that stands for bytes which are none.
///
/// ```
/// let script = "#!/bin/sh\n#CCS --res=rset=1:gtx1080=1,place=:excl\n#CCS -N 'my job'\nrun\n";
/// let script = pbs_resources::script::read(script)?;
/// let words: Vec<_> = script.words.iter().map(|word| word.text.as_str()).collect();
/// assert_eq!(words, ["--res=rset=1:gtx1080=1,place=:excl", "-N", "my job"]);
/// # Ok::<(), pbs_resources::script::Error>(())
/// ```
pub fn read(text: &str) -> Result<Script, Error> {
    let mut script = Script::default();
    let mut command_line = None;
    // Line whose last backslash continues it.
    let mut continued: Option<usize> = None;
    for (line, content) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        let content = content.trim();
        let options = options(content);
        if let Some(before) = continued.take().filter(|_| options.is_none()) {
            return Err(no_continuation(before));
        }
        let Some(options) = options else {
            script.look(line, content);
            let is_command = !content.is_empty() && !content.starts_with('#');
            command_line = command_line.or(is_command.then_some(line));
            continue;
        };
        if let Some(command_line) = command_line {
            script.leave(line, Why::BelowCommand { command_line });
            continue;
        }
        let wrong = |message: String| Error { line, message };
        let (words, is_continued) = words(options)
            .map_err(|quote| wrong(format!("a {quote} has no end; add the second one")))?;
        if words.iter().any(|word| word.contains(char::REPLACEMENT_CHARACTER)) {
            return Err(wrong(
                "an option is not UTF-8; write it in UTF-8 or in plain letters".into(),
            ));
        }
        continued = is_continued.then_some(line);
        script.words.extend(words.into_iter().map(|text| Word { line, text }));
    }
    continued.map_or(Ok(script), |before| Err(no_continuation(before)))
}

fn no_continuation(line: usize) -> Error {
    let message = format!(
        "it ends with a backslash, but the next line has no {PREFIX}; remove the backslash, or \
         begin the next line with {PREFIX}"
    );
    Error { line, message }
}

impl Script {
    /// Notes a line that is no option of ours but looks like one.
    fn look(&mut self, line: usize, content: &str) {
        let is_foreign = |prefix: &&&str| {
            let rest = content.strip_prefix(**prefix);
            // #FLUX: ends with a colon, and needs no space.
            rest.is_some_and(|rest| prefix.ends_with(':') || rest.starts_with(char::is_whitespace))
        };
        let is_short = |prefix: &&&str| {
            content
                .strip_prefix(**prefix)
                .is_some_and(|rest| is_option_of(prefix, rest.trim_start()))
        };
        let foreign = FOREIGN.iter().find(is_foreign);
        if let Some(prefix) = foreign.or_else(|| SHORT_FOREIGN.iter().find(is_short)) {
            self.leave(line, Why::Foreign(prefix));
        } else if is_misspelled(content) {
            self.leave(line, Why::Misspelled);
        }
    }

    fn leave(&mut self, line: usize, why: Why) {
        match self.unread.iter_mut().find(|of| of.why == why) {
            Some(of) => of.lines.push(line),
            None => self.unread.push(Unread { why, lines: vec![line] }),
        }
    }
}

/// Whether an option of another batch system follows its prefix: Grid Engine has `#$ -N name`, and
/// LoadLeveler `# @ class = long` and `# @ queue`. A sentence has neither.
fn is_option_of(prefix: &str, rest: &str) -> bool {
    if prefix == "#$" {
        return rest.starts_with('-');
    }
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
    let (word, behind) = rest.split_at(end);
    let behind = behind.trim_start();
    !word.is_empty() && (behind.starts_with('=') || (word == "queue" && behind.is_empty()))
}

/// Whether a comment has the prefix in another spelling and an option behind it. A sentence about
/// CCS has none.
fn is_misspelled(content: &str) -> bool {
    let Some(comment) = content.strip_prefix('#') else {
        return false;
    };
    let comment = comment.trim_start_matches('#').trim_start();
    let (name, rest) = comment.split_at_checked(PREFIX.len() - 1).unwrap_or_default();
    name.eq_ignore_ascii_case(&PREFIX[1..])
        && rest.trim_start_matches([' ', '\t', ':']).starts_with('-')
}

/// Returns the text after `#CCS` in a line.
fn options(line: &str) -> Option<&str> {
    let options = line.strip_prefix(PREFIX)?;
    let is_alone = options.is_empty() || options.starts_with(char::is_whitespace);
    is_alone.then_some(options)
}

/// Returns the words of a line, and whether its last backslash continues it; or the quote that has
/// no end.
fn words(line: &str) -> Result<(Vec<String>, bool), char> {
    let mut words = Vec::new();
    // A word may be empty: "".
    let mut word: Option<String> = None;
    let mut is_continued = false;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '#' if word.is_none() => break,
            quote @ ('"' | '\'') => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next().ok_or(quote)? {
                        letter if letter == quote => break,
                        '\\' if quote == '"' => word.push(letters.next().ok_or(quote)?),
                        letter => word.push(letter),
                    }
                }
            }
            '\\' => match letters.next() {
                Some(letter) => word.get_or_insert_default().push(letter),
                None => is_continued = true,
            },
            letter if letter.is_whitespace() => words.extend(word.take()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    Ok((words, is_continued))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(script: &str) -> Vec<String> {
        let script = read(script).unwrap();
        script.words.into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn options_of_public_scripts_are_read() {
        let script = "#!/bin/bash\n\
                      #CCS -N my_job   # a name\n\
                      #CCS -t 7d\n\
                      #CCS -g hpc-prf-group\n\
                      #CCS --res=rset=1:gtx1080=1,place=:excl\n\
                      \n\
                      # CCS is what runs this\n\
                      ./app\n\
                      #CCS -t 8d\n";
        let options = "-N my_job -t 7d -g hpc-prf-group --res=rset=1:gtx1080=1,place=:excl";
        assert_eq!(texts(script), options.split(' ').collect::<Vec<_>>());
        let read = read(script).unwrap();
        assert_eq!(read.words[2].line, 3);
        let unread = Unread { why: Why::BelowCommand { command_line: 8 }, lines: vec![9] };
        assert_eq!(read.unread, [unread]);
    }

    #[test]
    fn quotes_keep_spaces() {
        assert_eq!(
            texts("#CCS -N 'a b' \"c \\\" d\" e\\ f '' g#h"),
            ["-N", "a b", "c \" d", "e f", "", "g#h"]
        );
        assert!(texts("#CCS\n#CCSx\n#ccs -t 1h\n").is_empty());
        assert_eq!(texts("#CCS -t 1h\r\n#CCS -g G\r\n"), ["-t", "1h", "-g", "G"]);
        let error = read("#!/bin/sh\n#CCS -N 'a b\n").unwrap_err();
        assert_eq!(error.to_string(), "line 2: a ' has no end; add the second one");
    }
    #[test]
    fn directives_below_a_command_are_listed() {
        let script =
            read("#!/bin/bash\nset -euo pipefail\n#CCS --res=rset=2:ncpus=4\n#CCS -t 2h\n./app\n")
                .unwrap();
        assert!(script.words.is_empty());
        assert_eq!(
            script.unread[0].to_string(),
            "lines 3, 4 with #CCS are ignored: they stand below the first command, which is in \
             line 2; move it below all #CCS lines"
        );
        let many = read(&format!("run\n{}", "#CCS -t 1h\n".repeat(20))).unwrap();
        assert!(many.unread[0].to_string().starts_with("lines 2, 3, 4, 5, 6, 7, 8, 9 and 12 more"));
    }

    #[test]
    fn spaces_and_a_mark_before_directives_lose_nothing() {
        assert_eq!(
            texts("#!/bin/bash\n #CCS -N a\n\t#CCS -t 2h\n./app\n"),
            ["-N", "a", "-t", "2h"]
        );
        assert_eq!(texts("\u{feff}#!/bin/sh\n#CCS -t 30m\n"), ["-t", "30m"]);
        assert_eq!(texts("\u{feff}#CCS -t 30m\n"), ["-t", "30m"]);
    }

    #[test]
    fn a_backslash_continues_a_directive() {
        assert_eq!(
            texts("#CCS -t 30m \\\n#CCS --res=rset=1\\\r\n #CCS -N a\n"),
            ["-t", "30m", "--res=rset=1", "-N", "a"]
        );
        for script in ["#!/bin/sh\n#CCS -t 30m \\\n--res=rset=1\n", "\n#CCS -g G\\"] {
            let error = read(script).unwrap_err();
            assert_eq!(error.line, 2, "{script}");
            assert!(error.message.contains("no #CCS; remove the backslash"), "{error}");
        }
    }

    #[test]
    fn directives_of_other_systems_are_listed() {
        let script = read(
            "#!/bin/bash\n#PBS -N relax\n#PBS -l walltime=24:00:00\n#CCS -t 1h\n#PBSX\n\
             #SBATCH --nodes=2\n# PBS is not read\n#flux: x\n#$ -N relax\n#$-cwd\n# @ class = \
             long\n#@queue\n#$ is money\n# @ home\n# @anna wrote this\n#@\n",
        )
        .unwrap();
        let unread = |why, lines: &[usize]| Unread { why, lines: lines.to_vec() };
        let expected = [
            unread(Why::Foreign("#PBS"), &[2, 3]),
            unread(Why::Foreign("#SBATCH"), &[6]),
            unread(Why::Foreign("#flux:"), &[8]),
            unread(Why::Foreign("#$"), &[9, 10]),
            unread(Why::Foreign("# @"), &[11]),
            unread(Why::Foreign("#@"), &[12]),
        ];
        assert_eq!(script.unread, expected);
        assert!(script.unread[0]
            .to_string()
            .starts_with("lines 2, 3 with #PBS are not read; write"));
        assert_eq!(script.words.len(), 2);
    }

    #[test]
    fn other_spellings_are_listed() {
        let script =
            read("#ccs -t 1h\n# CCS --res=x\n#CCS-t 1h\n##CCS -t 1h\n# CCS is - here\n#é\n")
                .unwrap();
        let lines = vec![1, 2, 3, 4];
        assert_eq!(script.unread, [Unread { why: Why::Misspelled, lines }]);
        assert!(script.words.is_empty());
    }

    #[test]
    fn an_option_that_is_no_text_is_refused() {
        let text = String::from_utf8_lossy(b"#!/bin/sh\n# M\xfcller\n#CCS -N a\n");
        assert_eq!(texts(&text), ["-N", "a"]);
        let text = String::from_utf8_lossy(b"#CCS -N M\xfcller\n");
        assert_eq!(read(&text).unwrap_err().line, 1);
    }
}
