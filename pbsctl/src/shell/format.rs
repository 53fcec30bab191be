// SPDX-License-Identifier: GPL-2.0
//! Pages of section 5, on the formats of files, made of the documentation.

use pbs_text::append_line;

const JOBS: &str = include_str!("../../../Documentation/jobs.rst");
const PLANS: &str = include_str!("../../../Documentation/plan-format.rst");

/// A page of section 5.
pub(super) struct Format {
    pub(super) name: &'static str,
    /// Subject of the page, in a line.
    about: &'static str,
    text: &'static str,
    /// The sections of the text that belong to the page; none: all.
    sections: &'static [&'static str],
}

pub(super) const FORMATS: [Format; 3] = [
    Format {
        name: "pbs-job",
        about: "jobs: programs, their requirements, and their deadline",
        text: JOBS,
        sections: &["A job", "The task net"],
    },
    Format {
        name: "pbs-machine",
        about: "machines to plan jobs for",
        text: JOBS,
        sections: &["The machine"],
    },
    Format {
        name: "pbs-plan",
        about: "plans: the order of tasks on each CPU",
        text: PLANS,
        sections: &[],
    },
];

impl Format {
    /// The page.
    pub(super) fn page(&self) -> String {
        let Self { name, about, .. } = self;
        let mut page = format!(
            ".TH {} 5\n.SH NAME\n{} \\- {}\n.SH DESCRIPTION\n",
            name.to_uppercase(),
            escaped(name),
            escaped(about)
        );
        for (title, lines) in sections(self.text) {
            if let Some(title) = title {
                if !self.sections.is_empty() && !self.sections.contains(&title) {
                    continue;
                }
                append_line!(page, ".SH {}", title.to_uppercase());
            }
            blocks(&lines, &mut page);
        }
        let others = FORMATS.iter().filter(|other| other.name != *name);
        let others = others.map(|other| format!(".BR {} (5)", escaped(other.name)));
        let others: Vec<_> = others.collect();
        append_line!(page, ".SH SEE ALSO\n.BR pbsctl (1),\n{}", others.join(",\n"));
        page
    }
}

/// The sections of a text with their titles; what stands before the first has none.
fn sections(text: &str) -> Vec<(Option<&str>, Vec<&str>)> {
    let lines: Vec<_> = text.lines().collect();
    let is_rule = |line: &str| !line.is_empty() && line.chars().all(|letter| letter == '=');
    let mut sections = vec![(None, Vec::new())];
    let mut place = 0;
    while let Some(line) = lines.get(place) {
        let next = lines.get(place + 1).copied().unwrap_or_default();
        place += match (is_rule(line), is_rule(next) && !line.is_empty()) {
            // The title of all, between two rules.
            (true, _) => 3,
            (false, true) => {
                sections.push((Some(*line), Vec::new()));
                2
            }
            _ => {
                if let Some((_, lines)) = sections.last_mut() {
                    lines.push(*line);
                }
                1
            }
        };
    }
    sections
}

/// Indentation of a line; `None`: it is empty.
fn indent(line: &str) -> Option<usize> {
    (!line.trim().is_empty()).then(|| line.len() - line.trim_start().len())
}

/// Number of lines from the first on that form a block with that indentation.
fn indented(lines: &[&str], by: usize) -> usize {
    let ends = |line: &&str| indent(line).is_some_and(|indent| indent < by);
    let count = lines.iter().position(ends).unwrap_or(lines.len());
    let full = lines[..count].iter().rposition(|line| indent(line).is_some());
    full.map_or(0, |last| last + 1)
}

/// The lines without so many blanks before them.
fn dedented<'a>(lines: &[&'a str], by: usize) -> Vec<&'a str> {
    let dedented = lines.iter().map(|line| line.get(by..).unwrap_or_default());
    dedented.collect()
}

/// Paragraphs, lists, explanations of terms, tables and examples, from the left edge on.
fn blocks(lines: &[&str], page: &mut String) {
    let mut place = 0;
    while let Some(line) = lines.get(place) {
        let rest = &lines[place..];
        let Some(depth) = indent(line) else {
            place += 1;
            continue;
        };
        if depth > 0 {
            let count = indented(rest, depth);
            inset(&dedented(&rest[..count], depth), page);
            place += count;
        } else if line.starts_with(".. ") {
            let count = indented(&rest[1..], 1);
            if line.contains("code-block") {
                example(&rest[1..=count], page);
            }
            place += 1 + count;
        } else if line.starts_with("- ") {
            let count = 1 + indented(&rest[1..], 2);
            page.push_str(".IP \\(bu 2\n");
            first_blocks(&dedented(&rest[..count], 2), page);
            place += count;
        } else if line.starts_with("===") {
            let count = rest.iter().position(|line| line.is_empty());
            let count = count.unwrap_or(rest.len());
            example(&rest[..count], page);
            place += count;
        } else if rest.get(1).and_then(|next| indent(next)).unwrap_or(0) > 0 {
            append_line!(page, ".PP\n{}", inline(line));
            place += 1;
        } else {
            let ends = |line: &&str| indent(line) != Some(0);
            let count = rest.iter().position(ends).unwrap_or(rest.len());
            let text = rest[..count].join("\n");
            place += count;
            let paragraph = text.strip_suffix("::").map(str::trim_end);
            let colon = if text.ends_with(" ::") || text.ends_with("\n::") { "" } else { ":" };
            match paragraph {
                Some(before) => {
                    append_line!(page, ".PP\n{}{colon}", inline(before));
                    let count = indented(&lines[place..], 1);
                    example(&lines[place..place + count], page);
                    place += count;
                }
                None => {
                    append_line!(page, ".PP\n{}", inline(&text));
                }
            }
        }
    }
}

/// Formats the lines that belong to the block before them.
fn inset(lines: &[&str], page: &mut String) {
    page.push_str(".RS 4\n");
    first_blocks(lines, page);
    page.push_str(".RE\n");
}

/// Formats blocks without an empty line before the first.
fn first_blocks(lines: &[&str], page: &mut String) {
    let start = page.len();
    blocks(lines, page);
    if page[start..].starts_with(".PP\n") {
        page.replace_range(start..start + ".PP\n".len(), "");
    }
}

/// Line by line as it stands.
fn example(lines: &[&str], page: &mut String) {
    let depth = lines.iter().filter_map(|line| indent(line)).min();
    page.push_str(".PP\n.RS 4\n.nf\n");
    let lines = dedented(lines, depth.unwrap_or(0));
    let first = lines.iter().position(|line| !line.is_empty());
    for line in &lines[first.unwrap_or(0)..] {
        // Names in tables keep their places without the marks.
        append_line!(page, "{}", escaped(&line.replace("``", "  ")));
    }
    page.push_str(".fi\n.RE\n");
}

/// Text in which what stands between marks is to be written as it stands.
fn inline(text: &str) -> String {
    let parts = text.split("``").enumerate().map(|(number, part)| {
        if number % 2 == 1 {
            return format!("\\fB{}\\fR", escaped(part));
        }
        let part = part
            // A reference to a section.
            .replace("_.", ".")
            .replace("plan-format.rst", "pbs-plan(5)")
            .replace("jobs.rst", "pbs-job(5)");
        escaped(&part)
    });
    parts.collect()
}

/// Text of which nothing means anything to who sets the page.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    let lines = text.lines().map(|line| {
        if line.starts_with(['.', '\'']) {
            format!("\\&{line}")
        } else {
            line.into()
        }
    });
    let mut escaped = lines.collect::<Vec<_>>().join("\n");
    if text.ends_with('\n') {
        escaped.push('\n');
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_what_the_documentation_says() {
        let text = "\
.. SPDX

=====
Title
=====

Before.  A ``key-word`` and
Order_.

Section
=======

``term``
    What it means:

    ``below``
        .more, and::

            a \\ b
              c

- one
  two
- three

=== ===
``a`` b
=== ===
";
        let mut page = String::new();
        for (title, lines) in sections(text) {
            page += title.unwrap_or("-");
            page.push('\n');
            blocks(&lines, &mut page);
        }
        assert_eq!(
            page,
            "\
-
.PP
Before.  A \\fBkey\\-word\\fR and
Order.
Section
.PP
\\fBterm\\fR
.RS 4
What it means:
.PP
\\fBbelow\\fR
.RS 4
\\&.more, and:
.PP
.RS 4
.nf
a \\e b
  c
.fi
.RE
.RE
.RE
.IP \\(bu 2
one
two
.IP \\(bu 2
three
.PP
.RS 4
.nf
=== ===
  a   b
=== ===
.fi
.RE
"
        );
    }
}
