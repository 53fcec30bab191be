// SPDX-License-Identifier: GPL-2.0
//! The numbers of a line.

pub(super) const FIELDS: usize = 18;

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

/// The numbers of a line, or what is wrong with it. Fractions, which the archive has in
/// times, are rounded.
pub(super) fn numbers(text: &str) -> Result<[i64; FIELDS], String> {
    let mut numbers = [-1; FIELDS];
    let mut count = 0;
    for word in text.split_ascii_whitespace() {
        let Some(number) = numbers.get_mut(count) else {
            return Err(format!(
                "there are more than {FIELDS} fields; remove those after {}",
                NAMES[FIELDS - 1]
            ));
        };
        *number = parse(word).map_err(|what| {
            let name = NAMES[count];
            let word: String = word.chars().take(40).collect();
            format!("field {} ({name}) is {word:?}; {what}", count + 1)
        })?;
        count += 1;
    }
    match NAMES.get(count) {
        None => Ok(numbers),
        Some(name) => Err(format!(
            "there are {count} of {FIELDS} fields; write −1 for what is unknown, from field {} \
             ({name}) on",
            count + 1
        )),
    }
}

fn parse(word: &str) -> Result<i64, &'static str> {
    let number = match word.parse::<i64>() {
        Ok(number) => number,
        Err(_) => {
            let number: f64 = word.parse().map_err(|_| "write a number, −1 if it is unknown")?;
            if !number.is_finite() {
                return Err("write a number, −1 if it is unknown");
            }
            // Too great a number becomes the greatest there is, and is refused below.
            number.round() as i64
        }
    };
    match number {
        ..-1 => Err("write −1 if it is unknown; nothing else is less than 0"),
        -1..=MAX => Ok(number),
        _ => Err("that is more than any cluster has; write at most 2^40"),
    }
}
