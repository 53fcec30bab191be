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
//! they may be part of a text that the script writes.

use std::fmt;

/// Prefix of options.
pub const PREFIX: &str = "#CCS";

/// Options in a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// In the order of the script.
    pub words: Vec<Word>,
    /// Lines, counted from 1, that would be options but are below the first command; worth
    /// a warning.
    pub ignored_lines: Vec<usize>,
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

/// The options of a script. Words are apart by spaces; quotes and backslashes keep
/// spaces as in a shell, but nothing is put in for variables. A word that begins with `#`
/// begins a comment.
///
/// # Errors
///
/// A quote has no end.
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
    let mut is_below_command = false;
    for (line, content) in (1..).zip(text.lines()) {
        let Some(options) = options(content) else {
            let content = content.trim_start();
            is_below_command |= !content.is_empty() && !content.starts_with('#');
            continue;
        };
        if is_below_command {
            script.ignored_lines.push(line);
            continue;
        }
        let words = words(options).map_err(|quote| Error {
            line,
            message: format!("a {quote} has no end; add the second one"),
        })?;
        script.words.extend(words.into_iter().map(|text| Word { line, text }));
    }
    Ok(script)
}

/// Returns the text after `#CCS` in a line.
fn options(line: &str) -> Option<&str> {
    let options = line.strip_prefix(PREFIX)?;
    let is_alone = options.is_empty() || options.starts_with(char::is_whitespace);
    is_alone.then_some(options)
}

/// The words of a line, or the quote that has no end.
fn words(line: &str) -> Result<Vec<String>, char> {
    let mut words = Vec::new();
    // A word may be empty: "".
    let mut word: Option<String> = None;
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
            // At the end of the line it stands for itself.
            '\\' => word.get_or_insert_default().push(letters.next().unwrap_or('\\')),
            letter if letter.is_whitespace() => words.extend(word.take()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    Ok(words)
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
        assert_eq!(read.ignored_lines, [9]);
    }

    #[test]
    fn quotes_keep_spaces() {
        assert_eq!(
            texts("#CCS -N 'a b' \"c \\\" d\" e\\ f '' g#h"),
            ["-N", "a b", "c \" d", "e f", "", "g#h"]
        );
        assert!(texts("#CCS\n#CCSx\n#ccs -t 1h\n").is_empty());
        assert_eq!(texts("#CCS -t 1h\r\n#CCS -g G\\"), ["-t", "1h", "-g", "G\\"]);
        let error = read("#!/bin/sh\n#CCS -N 'a b\n").unwrap_err();
        assert_eq!(error.to_string(), "line 2: a ' has no end; add the second one");
    }
}
