// SPDX-License-Identifier: GPL-2.0
//! The numbers of a line.

pub(super) const FIELDS: usize = 18;

/// The numbers of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) fields: [i64; FIELDS],
    /// Whether there are more columns, which some traces have for their own purposes.
    pub(super) has_more: bool,
}

/// Reason for which a line has no numbers of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The line is no line of the format.
    Wrong(String),
    /// A number is one that no job has, such as a negative time.
    Impossible(String),
}

/// No number is greater: 34,000 years in seconds, a PiB in KiB. So sums of millions of them
/// have room in 64 bits.
const MAX: i64 = 1 << 40;

/// Their names, for who has to mend one.
const NAMES: [&str; FIELDS] = [
    "job number",
    "submit time",
    "wait time",
    "run time",
    "allocated processors",
    "average CPU time",
    "used memory",
    "requested processors",
    "requested time",
    "requested memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding job",
    "think time",
];

/// Reads the numbers of a line. Fractions, which the archive has in times, are rounded; columns
/// after the last field are skipped.
pub(super) fn numbers(text: &str) -> Result<Numbers, Fault> {
    let mut numbers = Numbers { fields: [-1; FIELDS], has_more: false };
    let mut count = 0;
    let mut impossible = None;
    for word in text.split_ascii_whitespace() {
        let Some(field) = numbers.fields.get_mut(count) else {
            numbers.has_more = true;
            break;
        };
        let name = NAMES[count];
        count += 1;
        let fault = |what: &str| {
            let word: String = word.chars().take(40).collect();
            format!("field {count} ({name}) is {word:?}; {what}")
        };
        *field = parse(word).map_err(|what| Fault::Wrong(fault(what)))?;
        match *field {
            ..-1 => {
                impossible = impossible.or(Some(fault("nothing but −1, unknown, is less than 0")))
            }
            -1..=MAX => {}
            _ => {
                impossible =
                    impossible.or(Some(fault("that is more than 2^40, and than any cluster has")))
            }
        }
    }
    if let Some(name) = NAMES.get(count) {
        return Err(Fault::Wrong(format!(
            "there are {count} of {FIELDS} fields; write −1 for what is unknown, from field {} \
             ({name}) on",
            count + 1
        )));
    }
    impossible.map_or(Ok(numbers), |what| Err(Fault::Impossible(what)))
}

fn parse(word: &str) -> Result<i64, &'static str> {
    const NO_NUMBER: &str = "write a number, −1 if it is unknown";
    if word.contains([',', ';', '|']) {
        return Err("write spaces between the fields of a line, and numbers in them");
    }
    if let Ok(number) = word.parse() {
        return Ok(number);
    }
    let number: f64 = word.parse().map_err(|_| NO_NUMBER)?;
    // Too great a number becomes the greatest there is.
    number.is_finite().then_some(number.round() as i64).ok_or(NO_NUMBER)
}
