// SPDX-License-Identifier: GPL-2.0
//! Directed graphs in DOT, the language of Graphviz. Nodes are tasks; an arrow says that the task
//! at its head waits for the one at its tail. Of a node `label`, `runtime` (seconds), `cores` and
//! `memory` (bytes) are read, of an arrow `bytes`.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU32;

use pbs_job::{Problem, MAX_NAME_BYTES};

use super::model::{seconds_ns, Step, Workflow};

/// Arrows at most, with those that are written several times.
const MAX_ARROWS: usize = 1 << 20;

/// Nesting of groups at most.
const MAX_DEPTH: usize = 64;

/// Attributes in which other programs store the length of a task or the size of data.
const OTHER_FIGURES: [&str; 8] =
    ["size", "weight", "time", "duration", "cost", "wcet", "exec_time", "execution_time"];

/// Whether a text begins as a graph does.
pub(super) fn is_it(text: &str) -> bool {
    let mut tokens = Tokens::new(text);
    let Ok(mut first) = tokens.next() else { return false };
    if first.is_word("strict") {
        let Ok(second) = tokens.next() else { return false };
        first = second;
    }
    first.is_word("digraph") || first.is_word("graph")
}

/// Reads a graph.
pub(super) fn read(text: &str) -> Result<Workflow, Vec<Problem>> {
    let mut reader = Reader { tokens: Tokens::new(text), ..Reader::default() };
    match reader.graph() {
        Ok(()) => Ok(reader.named()),
        Err(problem) => Err(vec![problem]),
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Token {
    /// A name or number; `true`: in quotes.
    Word(String, bool),
    Arrow,
    Line,
    Sign(char),
    #[default]
    End,
}

impl Token {
    /// Whether it is that keyword, which has no quotes and any case.
    fn is_word(&self, keyword: &str) -> bool {
        matches!(self, Self::Word(word, false) if word.eq_ignore_ascii_case(keyword))
    }

    fn told(&self) -> String {
        match self {
            Self::Word(word, _) => word.clone(),
            Self::Arrow => "->".into(),
            Self::Line => "--".into(),
            Self::Sign(sign) => sign.to_string(),
            Self::End => "the end of the file".into(),
        }
    }
}

/// The words and signs of a text.
#[derive(Clone, Debug, Default)]
struct Tokens<'a> {
    rest: &'a str,
    line: u32,
}

impl<'a> Tokens<'a> {
    fn new(text: &'a str) -> Self {
        Self { rest: text, line: 1 }
    }

    fn problem(&self, message: impl Into<String>) -> Problem {
        Problem::at(NonZeroU32::new(self.line), message)
    }

    fn skip(&mut self, bytes: usize) -> &'a str {
        let (skipped, rest) = self.rest.split_at(bytes);
        self.line += skipped.matches('\n').count() as u32;
        self.rest = rest;
        skipped
    }

    /// Skips white space and comments.
    fn skip_blank(&mut self) -> Result<(), Problem> {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.skip(blank);
            if self.rest.starts_with("//") || self.rest.starts_with('#') {
                self.skip(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else if self.rest.starts_with("/*") {
                let end = self.rest.find("*/");
                let end = end.ok_or_else(|| self.problem("a comment /* has no end"))?;
                self.skip(end + 2);
            } else {
                return Ok(());
            }
        }
    }

    fn next(&mut self) -> Result<Token, Problem> {
        self.skip_blank()?;
        let Some(first) = self.rest.chars().next() else {
            return Ok(Token::End);
        };
        for (text, token) in [("->", Token::Arrow), ("--", Token::Line)] {
            if self.rest.starts_with(text) {
                self.skip(2);
                return Ok(token);
            }
        }
        match first {
            '"' => return self.joined(),
            '<' => return self.html(),
            _ => {}
        }
        let is_part = |sign: char| sign.is_alphanumeric() || sign == '_' || sign == '.';
        let end = self.rest[first.len_utf8()..].find(|sign| !is_part(sign));
        let end = end.map_or(self.rest.len(), |end| end + first.len_utf8());
        if is_part(first) || first == '-' {
            return Ok(Token::Word(self.skip(end).into(), false));
        }
        self.skip(first.len_utf8());
        Ok(Token::Sign(first))
    }

    /// Reads quoted text and all that is joined to it by `+`.
    fn joined(&mut self) -> Result<Token, Problem> {
        let mut word = self.quoted()?;
        loop {
            let mut behind = self.clone();
            behind.skip_blank()?;
            if !behind.rest.starts_with('+') {
                return Ok(Token::Word(word, true));
            }
            behind.skip(1);
            behind.skip_blank()?;
            if !behind.rest.starts_with('"') {
                return Err(behind.problem("+ joins quoted text; write \"a\" + \"b\""));
            }
            *self = behind;
            word += &self.quoted()?;
        }
    }

    /// Reads a text in HTML, `<a <b>bold</b> name>`: its words, without the marks.
    fn html(&mut self) -> Result<Token, Problem> {
        let mut text = String::new();
        let mut depth = 0_u32;
        for (at, sign) in self.rest.char_indices() {
            match sign {
                '<' => {
                    depth += 1;
                    text.push(' ');
                }
                '>' => {
                    depth -= 1;
                    if depth == 0 {
                        self.skip(at + 1);
                        let words: Vec<_> = text.split_whitespace().collect();
                        return Ok(Token::Word(words.join(" "), true));
                    }
                }
                sign if depth == 1 => text.push(sign),
                _ => {}
            }
        }
        Err(self.problem("a text in HTML, which begins with <, has no end"))
    }

    fn quoted(&mut self) -> Result<String, Problem> {
        let mut word = String::new();
        let mut signs = self.rest.char_indices().skip(1);
        while let Some((at, sign)) = signs.next() {
            match sign {
                '"' => {
                    self.skip(at + 1);
                    return Ok(word);
                }
                '\\' => match signs.next() {
                    Some((_, '"')) => word.push('"'),
                    Some((_, '\n')) => {}
                    Some((_, other)) => word.extend(['\\', other]),
                    None => break,
                },
                other => word.push(other),
            }
        }
        Err(self.problem("a quoted name has no end"))
    }
}

/// The attributes in brackets.
type Attributes = Vec<(String, String)>;

/// Attributes of tasks and arrows that have none of their own, in a group and the groups in it.
#[derive(Clone, Debug, Default)]
struct Defaults {
    tasks: Attributes,
    arrows: Attributes,
}

/// Changes defaults; of each name, they have the last value.
fn change(defaults: &mut Attributes, attributes: Attributes) {
    for (name, value) in attributes {
        defaults.retain(|(known, _)| !known.eq_ignore_ascii_case(&name));
        defaults.push((name, value));
    }
}

#[derive(Debug, Default)]
struct Reader<'a> {
    tokens: Tokens<'a>,
    workflow: Workflow,
    places: HashMap<String, usize>,
    /// Labels of the tasks, by their places.
    labels: HashMap<usize, String>,
    arrows: usize,
    /// Whether an arrow that is written several times is one.
    is_strict: bool,
    defaults: Defaults,
}

impl Reader<'_> {
    fn peek(&self) -> Result<Token, Problem> {
        self.tokens.clone().next()
    }

    fn takes(&mut self, sign: char) -> Result<bool, Problem> {
        let found = self.peek()? == Token::Sign(sign);
        if found {
            self.tokens.next()?;
        }
        Ok(found)
    }

    fn graph(&mut self) -> Result<(), Problem> {
        let mut first = self.tokens.next()?;
        if first.is_word("strict") {
            self.is_strict = true;
            first = self.tokens.next()?;
        }
        if !first.is_word("digraph") {
            let message =
                "a graph without directions says not which task waits; write digraph, and \
                           arrows ->";
            return Err(self.tokens.problem(message));
        }
        if let Token::Word(name, _) = self.peek()? {
            self.tokens.next()?;
            self.workflow.name = Some(name);
        }
        if !self.takes('{')? {
            return Err(self.tokens.problem("a graph is written in braces: digraph g { a -> b }"));
        }
        self.statements(0)?;
        match self.tokens.next()? {
            Token::End => Ok(()),
            other => {
                let message =
                    format!("{} follows the graph; name a file of one graph", other.told());
                Err(self.tokens.problem(message))
            }
        }
    }

    /// Reads statements up to the closing brace. Returns the tasks that they name.
    fn statements(&mut self, depth: usize) -> Result<Vec<usize>, Problem> {
        if depth > MAX_DEPTH {
            return Err(self.tokens.problem("groups are nested too deeply"));
        }
        let mut named = Vec::new();
        let outside = self.defaults.clone();
        loop {
            if self.takes('}')? {
                self.defaults = outside;
                named.sort_unstable();
                named.dedup();
                return Ok(named);
            }
            match self.peek()? {
                Token::Sign(';' | ',') => _ = self.tokens.next()?,
                Token::End => return Err(self.tokens.problem("a brace { has no end")),
                _ => named.extend(self.statement(depth)?),
            }
        }
    }

    fn statement(&mut self, depth: usize) -> Result<Vec<usize>, Problem> {
        let first = self.peek()?;
        let defaults = ["graph", "node", "edge"];
        if defaults.iter().any(|keyword| first.is_word(keyword)) {
            self.tokens.next()?;
            let mut attributes = self.attributes()?;
            if first.is_word("node") {
                self.note_others(&attributes);
                attributes.retain(|(name, _)| is_figure(name) || name == "label");
                change(&mut self.defaults.tasks, attributes);
            } else if first.is_word("edge") {
                attributes.retain(|(name, _)| is_bytes(name));
                change(&mut self.defaults.arrows, attributes);
            }
            return Ok(Vec::new());
        }
        let mut all = Vec::new();
        let mut tails: Option<Vec<usize>> = None;
        let mut arrows = Vec::new();
        loop {
            let heads = self.end_of_arrow(depth)?;
            let Some(heads) = heads else {
                // An attribute of the graph: name = value.
                return Ok(Vec::new());
            };
            let before = tails.as_ref().map_or(0, Vec::len);
            self.arrows = self.arrows.saturating_add(before.saturating_mul(heads.len()));
            if self.arrows > MAX_ARROWS {
                let message = format!("a workflow has at most {MAX_ARROWS} arrows");
                return Err(self.tokens.problem(message));
            }
            for &tail in tails.iter().flatten() {
                arrows.extend(heads.iter().map(|&head| (tail, head)));
            }
            all.extend(heads.iter().copied());
            match self.peek()? {
                Token::Arrow => _ = self.tokens.next()?,
                Token::Line => {
                    let message = "-- has no direction; write -> from the task that comes first";
                    return Err(self.tokens.problem(message));
                }
                _ => break,
            }
            tails = Some(heads);
        }
        let is_node = arrows.is_empty();
        let attributes = self.attributes()?;
        let stated = |all: &Attributes| -> Result<Option<u64>, Problem> {
            let last = all.iter().rev().find(|(name, _)| is_bytes(name) && !is_node);
            let number = last.map(|(name, value)| self.number(name, value)).transpose()?;
            Ok(number.map(|bytes| bytes as u64))
        };
        let (own, default) = (stated(&attributes)?, stated(&self.defaults.arrows)?);
        if !is_node && attributes.iter().any(|(name, _)| name == "size") {
            self.workflow.leave_out("size of arrows is left out; bytes is the size of their data");
        }
        for (tail, head) in arrows {
            let bytes = own.or(default).unwrap_or(0);
            let after = &mut self.workflow.tasks[head].after;
            match after.get_mut(&tail) {
                // One arrow, of which the last own words count.
                Some(known) if self.is_strict => *known = own.unwrap_or(*known),
                Some(known) => *known = known.saturating_add(bytes),
                None => _ = after.insert(tail, bytes),
            }
        }
        if is_node {
            for &task in &all {
                self.figures(task, &attributes)?;
            }
        }
        Ok(all)
    }

    /// Reads a task or a group of tasks; `None`: it was `name = value`.
    fn end_of_arrow(&mut self, depth: usize) -> Result<Option<Vec<usize>>, Problem> {
        let token = self.tokens.next()?;
        if token.is_word("subgraph") {
            if let Token::Word(..) = self.peek()? {
                self.tokens.next()?;
            }
            if !self.takes('{')? {
                return Err(self.tokens.problem("subgraph is followed by tasks in braces"));
            }
            return self.statements(depth + 1).map(Some);
        }
        let name = match token {
            Token::Sign('{') => return self.statements(depth + 1).map(Some),
            Token::Word(name, _) => name,
            other => {
                let message = format!("{} is no name of a task", other.told());
                return Err(self.tokens.problem(message));
            }
        };
        if self.takes('=')? {
            self.tokens.next()?;
            return Ok(None);
        }
        // A port says where the arrow is drawn.
        while self.takes(':')? {
            self.tokens.next()?;
        }
        if let Some(&place) = self.places.get(&name) {
            return Ok(Some(vec![place]));
        }
        let place = self.workflow.tasks.len();
        self.places.insert(name.clone(), place);
        self.workflow.tasks.push(Step { name, ..Step::default() });
        let defaults = self.defaults.tasks.clone();
        self.figures(place, &defaults)?;
        Ok(Some(vec![place]))
    }

    fn attributes(&mut self) -> Result<Attributes, Problem> {
        let mut attributes = Vec::new();
        while self.takes('[')? {
            while !self.takes(']')? {
                match self.tokens.next()? {
                    Token::Sign(';' | ',') => {}
                    Token::Word(name, _) => {
                        let value = if self.takes('=')? {
                            match self.tokens.next()? {
                                Token::Word(value, _) => value,
                                other => {
                                    let message = format!(
                                        "{} is no value of {name}; write it in quotes",
                                        other.told()
                                    );
                                    return Err(self.tokens.problem(message));
                                }
                            }
                        } else {
                            String::new()
                        };
                        attributes.push((name, value));
                    }
                    other => {
                        let message =
                            format!("{} is no attribute; close the list by ]", other.told());
                        return Err(self.tokens.problem(message));
                    }
                }
            }
        }
        Ok(attributes)
    }

    fn number(&self, name: &str, value: &str) -> Result<f64, Problem> {
        let number = value.parse().ok().filter(|number: &f64| *number >= 0.0 && number.is_finite());
        let unit = match &*name.to_ascii_lowercase() {
            "runtime" => "a number of seconds",
            "memory" | "bytes" => "a number of bytes",
            _ => "a number",
        };
        number.ok_or_else(|| {
            let value: String = value.chars().take(40).collect();
            self.tokens.problem(format!("{name} is {value}; write {unit}, from 0 on"))
        })
    }

    /// Notes figures of tasks under names that are not read.
    fn note_others(&mut self, attributes: &Attributes) {
        let is_other = |name: &str| OTHER_FIGURES.iter().any(|it| name.eq_ignore_ascii_case(it));
        if attributes.iter().any(|(name, _)| is_other(name)) {
            self.workflow.leave_out(
                "other figures of tasks, such as size, weight or time, are left out; runtime is a \
                 task's time in seconds",
            );
        }
    }

    fn figures(&mut self, task: usize, attributes: &Attributes) -> Result<(), Problem> {
        self.note_others(attributes);
        for (name, value) in attributes {
            if name == "label" {
                self.labels.insert(task, value.clone());
            }
            if !is_figure(name) {
                continue;
            }
            let number = self.number(name, value)?;
            let step = &mut self.workflow.tasks[task];
            match &*name.to_ascii_lowercase() {
                "runtime" => match seconds_ns(number) {
                    Some(ns) => step.runtime_ns = Some(ns),
                    None => {
                        let message = format!("the runtime {value} is too long; it is in seconds");
                        return Err(self.tokens.problem(message));
                    }
                },
                "cores" => step.threads = Some(number.ceil() as u64),
                _ => step.memory_bytes = Some(number.ceil() as u64),
            }
        }
        Ok(())
    }
}

impl Reader<'_> {
    /// The workflow whose tasks are called by their labels. Tasks with the same label have their
    /// node's name behind it.
    fn named(mut self) -> Workflow {
        let tasks = &mut self.workflow.tasks;
        let labels: Vec<Option<String>> = (0..tasks.len())
            .map(|place| {
                let label = shown(self.labels.get(&place)?, &tasks[place].name);
                Some(label).filter(|label| !label.is_empty())
            })
            .collect();
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for label in labels.iter().flatten() {
            *counts.entry(label).or_default() += 1;
        }
        // The names of others are not free: of them only nodes without a label keep theirs.
        let taken: HashSet<String> = tasks.iter().map(|task| task.name.clone()).collect();
        for (task, label) in tasks.iter_mut().zip(&labels) {
            let Some(label) = label.as_ref().filter(|label| **label != task.name) else {
                continue;
            };
            let is_free = |name: &str| name.len() <= MAX_NAME_BYTES && !taken.contains(name);
            let with_node = format!("{label} ({})", task.name);
            if counts[&**label] == 1 && is_free(label) {
                task.name = label.clone();
            } else if is_free(&with_node) && !counts.contains_key(&*with_node) {
                task.name = with_node;
            }
        }
        self.workflow
    }
}

/// The words of a label as Graphviz shows them, in one line: `\\N` is the name of the node.
fn shown(label: &str, node: &str) -> String {
    let mut text = String::new();
    let mut signs = label.chars();
    while let Some(sign) = signs.next() {
        match sign {
            '\\' => match signs.next() {
                Some('n' | 'l' | 'r') => text.push(' '),
                Some('N') => text += node,
                other => text.extend(other),
            },
            sign => text.push(sign),
        }
    }
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ")
}

/// Whether the size of an arrow's data stands under that name.
fn is_bytes(name: &str) -> bool {
    name.eq_ignore_ascii_case("bytes")
}

/// Whether a figure of a task stands under that name.
fn is_figure(name: &str) -> bool {
    ["runtime", "cores", "memory"].iter().any(|figure| name.eq_ignore_ascii_case(figure))
}
