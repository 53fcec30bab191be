// SPDX-License-Identifier: GPL-2.0
//! Lists of hosts: `n[01-03,7],login`.

use std::fmt;

/// A list with more hosts is refused: as many as Slurm itself takes, and one that a user
/// writes does not fill the memory.
pub const MOST_HOSTS: usize = 1 << 16;
/// Longer texts are no list: more than all that so many hosts with names of 64 bytes take.
const MOST_BYTES: usize = 4 << 20;
/// Longer names are none.
const MOST_NAME_BYTES: usize = 255;
/// Greatest number of digits of a number.
const MOST_DIGITS: usize = 18;

/// Reason why a list of hosts can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListError {
    /// The list has more than [`MOST_HOSTS`].
    TooMany,
    /// The list, or a name in it, is longer than any can be.
    TooLong,
    /// A syntax error, with the part of the list.
    Syntax(String),
}

impl fmt::Display for ListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany => write!(f, "the list has more than {MOST_HOSTS} hosts"),
            Self::TooLong => write!(f, "the list, or a name in it, is too long"),
            Self::Syntax(what) => write!(f, "{what}; lists are like n[01-16,20],login"),
        }
    }
}

impl std::error::Error for ListError {}

fn wrong<T>(what: impl Into<String>) -> Result<T, ListError> {
    Err(ListError::Syntax(what.into()))
}

/// The hosts of a list, in its order, as often as they are named.
///
/// ```
/// use pbs_slurm::conf::expand;
///
/// assert_eq!(expand("n[01-03,7]").unwrap(), ["n01", "n02", "n03", "n7"]);
/// assert_eq!(expand("r[1-2]n[8-9]").unwrap(), ["r1n8", "r1n9", "r2n8", "r2n9"]);
/// assert!(expand("n[1-99999999]").is_err());
/// ```
pub fn expand(list: &str) -> Result<Vec<String>, ListError> {
    if list.len() > MOST_BYTES {
        return Err(ListError::TooLong);
    }
    let mut hosts = Vec::new();
    for item in items(list)? {
        let left = MOST_HOSTS - hosts.len();
        hosts.extend(expand_item(item, left)?);
    }
    Ok(hosts)
}

/// Items of a list, separated by commas outside brackets.
fn items(list: &str) -> Result<Vec<&str>, ListError> {
    let mut items = Vec::new();
    let mut is_inside = false;
    let mut from = 0;
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'[' if is_inside => return wrong("a bracket in brackets"),
            b'[' => is_inside = true,
            b']' if !is_inside => return wrong("a bracket ends that was not begun"),
            b']' => is_inside = false,
            b',' if !is_inside => {
                items.push(list[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    if is_inside {
        return wrong("a bracket does not end");
    }
    items.push(list[from..].trim());
    items.retain(|item| !item.is_empty());
    Ok(items)
}

/// The hosts of one item: each pair of brackets multiplies them.
fn expand_item(item: &str, most: usize) -> Result<Vec<String>, ListError> {
    if item.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return wrong(format!("{item:?} has a space in it"));
    }
    let mut hosts = vec![String::new()];
    let mut rest = item;
    while !rest.is_empty() {
        let (fixed, behind) = rest.split_once('[').unwrap_or((rest, ""));
        if hosts[0].len() + fixed.len() > MOST_NAME_BYTES {
            return Err(ListError::TooLong);
        }
        hosts.iter_mut().for_each(|host| host.push_str(fixed));
        rest = "";
        if let Some((ranges, behind)) = behind.split_once(']') {
            let most_numbers = most / hosts.len();
            let numbers = numbers(ranges, most_numbers)?;
            let mut products = Vec::with_capacity(hosts.len() * numbers.len());
            for host in &hosts {
                products.extend(numbers.iter().map(|number| format!("{host}{number}")));
            }
            hosts = products;
            rest = behind;
        }
        if hosts.len() > most {
            return Err(ListError::TooMany);
        }
    }
    Ok(hosts)
}

/// Numbers in brackets: `01-03,7`.
fn numbers(ranges: &str, most: usize) -> Result<Vec<String>, ListError> {
    let mut numbers = Vec::new();
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (Some(from), Some(to)) = (number(first), number(last)) else {
            return wrong(format!("{range:?} is no range of numbers"));
        };
        if from > to {
            return wrong(format!("the range {range} goes down"));
        }
        // Compared before anything is made of it.
        if to - from >= (most - numbers.len()) as u64 {
            return Err(ListError::TooMany);
        }
        let width = first.len();
        numbers.extend((from..=to).map(|number| format!("{number:0width$}")));
    }
    Ok(numbers)
}

fn number(text: &str) -> Option<u64> {
    let is_one =
        (1..=MOST_DIGITS).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| is_one)
}

/// The shortest list of these hosts: in order, each once.
///
/// ```
/// use pbs_slurm::conf::compress;
///
/// assert_eq!(compress(&["n02", "n01", "n03", "login"]), "login,n[01-03]");
/// assert_eq!(compress(&["n9", "n10", "n12"]), "n[9-10,12]");
/// ```
pub fn compress(hosts: &[&str]) -> String {
    let mut names: Vec<(&str, Option<u64>, &str)> = hosts.iter().map(|host| parts(host)).collect();
    names.sort_unstable_by_key(|&(prefix, number, digits)| {
        (prefix, number.is_some(), number, digits.len())
    });
    names.dedup();
    let mut list: Vec<String> = Vec::new();
    let mut rest = names.as_slice();
    while let Some(&(prefix, number, _)) = rest.first() {
        if number.is_none() {
            list.push(prefix.into());
            rest = &rest[1..];
            continue;
        }
        let same = rest.iter().take_while(|&&(of, number, _)| of == prefix && number.is_some());
        let (these, others) = rest.split_at(same.count());
        let ranges = ranges(these);
        list.push(match these {
            [(_, _, digits)] => format!("{prefix}{digits}"),
            _ => format!("{prefix}[{}]", ranges.join(",")),
        });
        rest = others;
    }
    list.join(",")
}

/// `01-03` and `7` of numbers in order.
fn ranges(of: &[(&str, Option<u64>, &str)]) -> Vec<String> {
    let mut ranges: Vec<(&str, &str, u64)> = Vec::new();
    for &(_, number, digits) in of {
        let number = number.unwrap_or_default();
        // One number can be there with several widths; each may go on, if that is what
        // expand() writes.
        let goes_on = |&&mut (first, _, last): &&mut (&str, &str, u64)| {
            let width = first.len();
            number == last + 1 && format!("{number:0width$}") == digits
        };
        let open = ranges.iter_mut().rev().take(2 * MOST_DIGITS);
        if let Some((_, last, last_number)) = open.into_iter().find(goes_on) {
            (*last, *last_number) = (digits, number);
            continue;
        }
        ranges.push((digits, digits, number));
    }
    let text = |(first, last, _): &(&str, &str, u64)| {
        if first == last {
            (*first).to_string()
        } else {
            format!("{first}-{last}")
        }
    };
    ranges.iter().map(text).collect()
}

/// The part before the last digits of a name, the digits as a number, and the digits as text.
fn parts(host: &str) -> (&str, Option<u64>, &str) {
    let digits = host.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (prefix, digits) = host.split_at(host.len() - digits);
    match number(digits) {
        Some(number) => (prefix, Some(number), digits),
        None => (host, None, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_slurm_writes_is_read() {
        for (list, hosts) in [
            ("", &[][..]),
            ("n1", &["n1"]),
            ("n1, n2,", &["n1", "n2"]),
            ("n[01-03,7]", &["n01", "n02", "n03", "n7"]),
            ("n[9-11]", &["n9", "n10", "n11"]),
            ("n[099-100]", &["n099", "n100"]),
            ("a[1-2]-ib", &["a1-ib", "a2-ib"]),
            ("r[1-2]n[3,5],x", &["r1n3", "r1n5", "r2n3", "r2n5", "x"]),
        ] {
            assert_eq!(expand(list).unwrap(), hosts, "{list}");
        }
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for list in [
            "n[",
            "n]",
            "n[1",
            "n[[1]]",
            "n[a]",
            "n[]",
            "n[3-1]",
            "n[1-]",
            "n[+1]",
            "n 1",
            "n[1,]",
            "n[1-2-3]",
            "n[1234567890123456789]",
        ] {
            let error = expand(list);
            assert!(matches!(error, Err(ListError::Syntax(_))), "{list}: {error:?}");
        }
    }

    #[test]
    fn lists_that_would_fill_the_memory_are_refused_at_once() {
        for list in [
            "n[0-999999999999999999]",
            "n[1-65537]",
            "n[1-65536],m",
            "n[1-300][1-300]",
            "n[1-9][1-9][1-9][1-9][1-9][1-9][1-9][1-9][1-9][1-9]",
            "n[1-40000,1-40000]",
        ] {
            assert_eq!(expand(list), Err(ListError::TooMany), "{list}");
        }
        let long = "x".repeat(300);
        assert_eq!(expand(&long), Err(ListError::TooLong));
        assert_eq!(expand(&format!("{long}[1-60000]")), Err(ListError::TooLong));
        assert_eq!(expand(&format!("[1-60000]{long}")), Err(ListError::TooLong));
        assert_eq!(expand(&",".repeat(MOST_BYTES + 1)), Err(ListError::TooLong));
        assert_eq!(expand("n[1-65536]").unwrap().len(), MOST_HOSTS);
    }

    #[test]
    fn names_are_written_short_and_read_again() {
        for (hosts, list) in [
            (&[][..], ""),
            (&["a"], "a"),
            (&["n1"], "n1"),
            (&["n2", "n1", "n2"], "n[1-2]"),
            (&["n08", "n09", "n10", "n11"], "n[08-11]"),
            (&["n8", "n9", "n10", "m1"], "m1,n[8-10]"),
            (&["n1", "n01", "n2", "n02"], "n[1-2,01-02]"),
            (&["a1-ib", "a2-ib"], "a1-ib,a2-ib"),
            (&["1", "2"], "[1-2]"),
        ] {
            assert_eq!(compress(hosts), list);
            let mut sorted: Vec<_> = hosts.iter().map(ToString::to_string).collect();
            sorted.sort();
            sorted.dedup();
            let mut again = expand(list).unwrap();
            again.sort();
            assert_eq!(again, sorted);
        }
    }

    /// All sets of some names that are easily confused.
    #[test]
    fn no_set_of_names_becomes_another() {
        let names = [
            "n1", "n01", "n001", "n2", "n02", "n9", "n10", "n010", "n", "m1", "n1x", "n99", "n100",
        ];
        for set in 0..1u32 << names.len() {
            let chosen = (0..names.len()).filter(|at| set >> at & 1 == 1);
            let mut chosen: Vec<_> = chosen.map(|at| names[at]).collect();
            let mut again = expand(&compress(&chosen)).unwrap();
            again.sort();
            chosen.sort_unstable();
            assert_eq!(again, chosen);
        }
    }
}
