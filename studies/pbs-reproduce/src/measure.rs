// SPDX-License-Identifier: GPL-2.0
//! A figure in the output of a command.

use serde_json::Value;

use crate::{Figure, Reduction};

/// The value of a figure in `output`.
///
/// [`Figure::measured`] is a JSON pointer with three more kinds of parts: `[key=value]` is
/// the first element of an array whose `key` has that value, `#` is how many elements an
/// array has, and `*` is each of them, of which [`Figure::over`] makes one.  An error says
/// where the way ends.
pub fn measure(output: &Value, figure: &Figure) -> Result<Value, String> {
    let parts = parts(&figure.measured)?;
    let mut found = Vec::new();
    follow(output, &parts, "", &mut found)?;
    let value = match figure.over {
        None if found.len() == 1 => found.remove(0),
        None => {
            return Err(format!(
                "{}: there are {} values; say over which of them",
                figure.measured,
                found.len()
            ))
        }
        Some(over) => {
            let numbers = found
                .iter()
                .map(|value| value.as_f64().ok_or_else(|| format!("{value} is no number")));
            Value::from(reduce(over, numbers.collect::<Result<_, _>>()?)?)
        }
    };
    match figure.scale {
        None => Ok(value),
        Some(scale) => match value.as_f64() {
            Some(number) => Ok(Value::from(number * scale)),
            None => Err(format!("{}: {value} can't be scaled", figure.measured)),
        },
    }
}

/// The parts of a pointer; a bracket may hold slashes.
fn parts(pointer: &str) -> Result<Vec<String>, String> {
    let mut parts: Vec<String> = Vec::new();
    let mut depth = 0;
    for c in pointer.chars() {
        match c {
            '/' if depth == 0 => parts.push(String::new()),
            _ => {
                depth += i32::from(c == '[') - i32::from(c == ']');
                parts
                    .last_mut()
                    .ok_or_else(|| format!("{pointer}: it begins with a slash"))?
                    .push(c);
            }
        }
    }
    // As JSON pointers write them.
    let plain = |part: String| part.replace("~1", "/").replace("~0", "~");
    Ok(parts.into_iter().map(plain).collect())
}

fn follow(
    value: &Value,
    parts: &[String],
    way: &str,
    found: &mut Vec<Value>,
) -> Result<(), String> {
    let Some((part, rest)) = parts.split_first() else {
        found.push(value.clone());
        return Ok(());
    };
    let here = format!("{way}/{part}");
    let array = || value.as_array().ok_or_else(|| format!("{here}: there is no array"));
    if part == "*" {
        for (index, element) in array()?.iter().enumerate() {
            follow(element, rest, &format!("{way}/{index}"), found)?;
        }
        return Ok(());
    }
    let next = if part == "#" {
        &Value::from(array()?.len())
    } else if let Some(wanted) = part.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
        let (key, wanted) =
            wanted.split_once('=').ok_or_else(|| format!("{here}: it is [key=value]"))?;
        let is_it = |element: &&Value| match &element[key] {
            Value::String(text) => text == wanted,
            other => format!("{other}") == wanted,
        };
        array()?.iter().find(is_it).ok_or_else(|| format!("{here}: none is so"))?
    } else {
        let step = match value {
            Value::Array(elements) => part.parse().ok().and_then(|n: usize| elements.get(n)),
            other => other.get(part),
        };
        step.ok_or_else(|| format!("{here}: it is not there"))?
    };
    follow(next, rest, &here, found)
}

fn reduce(over: Reduction, mut numbers: Vec<f64>) -> Result<f64, String> {
    if numbers.is_empty() {
        return Err("there is no value".into());
    }
    numbers.sort_by(f64::total_cmp);
    let count = numbers.len();
    let sum: f64 = numbers.iter().sum();
    Ok(match over {
        Reduction::Min => numbers[0],
        Reduction::Max => numbers[count - 1],
        Reduction::Median => (numbers[(count - 1) / 2] + numbers[count / 2]) / 2.0,
        Reduction::Mean => sum / count as f64,
        Reduction::Sum => sum,
    })
}
