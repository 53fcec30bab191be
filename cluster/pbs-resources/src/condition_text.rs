// SPDX-License-Identifier: GPL-2.0
//! Parser and display of conditions.
//!
//! ```text
//! any     = all {"|" all}
//! all     = one {"&" one}
//! one     = "(" any ")" | "always" | "never" | "user:" name | "group:" name
//!         | name sign amount
//! sign    = "<" | "<=" | "=" | "!=" | ">=" | ">"
//! ```
//!
//! Spaces may be anywhere but within names and amounts. `||`, `&&` and `==` are read, too.

use std::fmt;
use std::str::FromStr;

use crate::cursor::{is_of_word, Cursor};
use crate::{format_duration, format_size, parse_duration_s, parse_size_bytes};
use crate::{Condition, Error, Op};

/// Parentheses in parentheses; more would take the stack.
const MOST_DEPTH: usize = 50;

const EXAMPLE: &str = "write one as ncpus<4 & duration<1h, or user:alice | group:G1";

impl FromStr for Condition {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let mut cursor = Cursor::new(text);
        let condition = any(&mut cursor, 0)?;
        if cursor.is_at_end() {
            return Ok(condition);
        }
        let found = cursor.found();
        Err(cursor.error(format!("{found} can't be here; join conditions with & (and) or | (or)")))
    }
}

fn any(cursor: &mut Cursor<'_>, depth: usize) -> Result<Condition, Error> {
    let mut of = vec![all(cursor, depth)?];
    while cursor.take("||") || cursor.take("|") {
        of.push(all(cursor, depth)?);
    }
    Ok(joined(
        of,
        |condition| match condition {
            Condition::Any(of) => Ok(of),
            other => Err(other),
        },
        Condition::Any,
    ))
}

fn all(cursor: &mut Cursor<'_>, depth: usize) -> Result<Condition, Error> {
    let mut of = vec![one(cursor, depth)?];
    while cursor.take("&&") || cursor.take("&") {
        of.push(one(cursor, depth)?);
    }
    Ok(joined(
        of,
        |condition| match condition {
            Condition::All(of) => Ok(of),
            other => Err(other),
        },
        Condition::All,
    ))
}

/// One condition as it is, of several one list without lists of the same kind in it: so
/// what means the same is the same.
fn joined(
    mut of: Vec<Condition>,
    parts: impl Fn(Condition) -> Result<Vec<Condition>, Condition>,
    join: impl Fn(Vec<Condition>) -> Condition,
) -> Condition {
    if of.len() == 1 {
        if let Some(condition) = of.pop() {
            return condition;
        }
    }
    let flat = of.into_iter().flat_map(|condition| match parts(condition) {
        // What never or always holds has no parts to join, and is kept.
        Ok(of) if of.is_empty() => vec![join(of)],
        Ok(of) => of,
        Err(other) => vec![other],
    });
    join(flat.collect())
}

fn one(cursor: &mut Cursor<'_>, depth: usize) -> Result<Condition, Error> {
    cursor.skip_spaces();
    let condition = if cursor.take("(") {
        if depth == MOST_DEPTH {
            return Err(cursor.error("there are too many parentheses; write fewer"));
        }
        let condition = any(cursor, depth + 1)?;
        if !cursor.take(")") {
            let found = cursor.found();
            return Err(cursor.error(format!("{found} stands where a ) is missing")));
        }
        condition
    } else {
        part(cursor)?
    };
    cursor.skip_spaces();
    Ok(condition)
}

fn part(cursor: &mut Cursor<'_>) -> Result<Condition, Error> {
    let start = *cursor;
    let name = cursor.take_while(is_of_word);
    if name.is_empty() {
        let found = cursor.found();
        return Err(start.error(format!("a condition can't begin with {found}; {EXAMPLE}")));
    }
    if matches!(name, "user" | "group") && cursor.take(":") {
        let who = cursor.take_while(is_of_word).to_string();
        if who.is_empty() {
            return Err(cursor.error(format!("{name}: has no name; {EXAMPLE}")));
        }
        return Ok(match name {
            "user" => Condition::User(who),
            _ => Condition::Group(who),
        });
    }
    cursor.skip_spaces();
    let Some(op) = Op::ALL.into_iter().find(|op| cursor.take(op.sign())) else {
        return match name {
            "always" => Ok(Condition::All(Vec::new())),
            "never" => Ok(Condition::Any(Vec::new())),
            _ => {
                let found = cursor.found();
                Err(cursor.error(format!(
                    "{name} is compared with nothing, but {found} follows; write {name}<4, \
                     with one of < <= = != >= >"
                )))
            }
        };
    };
    if op == Op::Equal {
        cursor.take("=");
    }
    cursor.skip_spaces();
    let before = cursor.column() - 1;
    let text = cursor.take_while(|c| is_of_word(c) || c == ':');
    let amount = if is_duration(name) { parse_duration_s(text) } else { parse_size_bytes(text) };
    Ok(Condition::Compare {
        name: name.to_string(),
        op,
        amount: amount.map_err(|error| error.after(before))?,
    })
}

/// Whether amounts of that name are written as durations.
fn is_duration(name: &str) -> bool {
    matches!(name, "duration" | "area")
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any(of) if of.is_empty() => f.write_str("never"),
            Self::All(of) if of.is_empty() => f.write_str("always"),
            Self::Any(of) => write_joined(f, of, " | "),
            Self::All(of) => write_joined(f, of, " & "),
            Self::Compare { name, op, amount } => {
                let amount =
                    if is_duration(name) { format_duration(*amount) } else { format_size(*amount) };
                write!(f, "{name}{op}{amount}")
            }
            Self::User(name) => write!(f, "user:{name}"),
            Self::Group(name) => write!(f, "group:{name}"),
        }
    }
}

fn write_joined(f: &mut fmt::Formatter<'_>, of: &[Condition], sign: &str) -> fmt::Result {
    for (index, condition) in of.iter().enumerate() {
        if index > 0 {
            f.write_str(sign)?;
        }
        let is_list = matches!(condition, Condition::Any(of) | Condition::All(of) if of.len() > 1);
        // & binds tighter, so only the other way round would be read as something else.
        let is_or_in_and = sign == " & " && matches!(condition, Condition::Any(_));
        if is_list && is_or_in_and {
            write!(f, "({condition})")?;
        } else {
            write!(f, "{condition}")?;
        }
    }
    Ok(())
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.sign())
    }
}
