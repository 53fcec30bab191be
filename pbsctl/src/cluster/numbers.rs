// SPDX-License-Identifier: GPL-2.0
//! Numbers of arrays, and of requests that others depend on, on the command line.

use std::collections::BTreeSet;

use pbs_manager::ledger::{After, Outcome};

/// Largest number of requests of an array.
const MOST: u64 = 100_000;

const ARRAYS: &str = "write FIRST-LAST, such as 0-99, FIRST-LAST:STEP, such as 1-10:2, or a list \
                      of them, such as 1,3,5-9; at most 100000 numbers";

/// Numbers of an array, in increasing order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Array(pub(super) Vec<u64>);

/// Reads `0-99`, `1-10:2` or `1,3,5-9`.
pub(super) fn array(text: &str) -> Result<Array, String> {
    if let Some((list, limit)) = text.split_once('%') {
        return Err(format!(
            "%{limit} limits how many of an array run at once, and the planner has no such limit: \
             write {list}; a limit of the site bounds what a user has at once"
        ));
    }
    let mut numbers = BTreeSet::new();
    for part in text.split(',') {
        let (first, last, step) = range(part.trim()).ok_or_else(|| ARRAYS.to_string())?;
        if (last - first) / step >= MOST {
            return Err(ARRAYS.into());
        }
        for number in (first..=last).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
            if !numbers.insert(number) {
                return Err(format!("{number} is in the array twice; write each number once"));
            }
        }
        if numbers.len() as u64 > MOST {
            return Err(ARRAYS.into());
        }
    }
    Ok(Array(numbers.into_iter().collect()))
}

/// Reads `7`, `0-99` or `0-99:2`.
fn range(text: &str) -> Option<(u64, u64, u64)> {
    let (range, step) = match text.split_once(':') {
        Some((range, step)) if range.contains('-') => (range, number(step)?),
        Some(_) => return None,
        None => (text, 1),
    };
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let (first, last) = (number(first)?, number(last)?);
    (first <= last && step > 0).then_some((first, last, step))
}

/// A number without a sign.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Requests that one part of `--depend` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dependencies(pub(super) Vec<After>);

/// Reads `afterok:7`, `afterok:7:8` or `afterok:7-16`, as the requests of an array are numbered.
pub(super) fn depend(text: &str) -> Result<Dependencies, String> {
    let wrong = || {
        "write afterok:7, afternotok:7 or afterany:7, with several requests as afterok:7:8, all of \
         an array as afterok:7-16, and commas between different conditions"
            .to_string()
    };
    let (how, ids) = text.split_once(':').ok_or_else(wrong)?;
    let outcome = match how {
        "afterok" => Outcome::Ok,
        "afternotok" => Outcome::NotOk,
        "afterany" => Outcome::Any,
        _ => return Err(wrong()),
    };
    let mut all = Vec::new();
    for part in ids.split(':') {
        let (first, last, _) = range(part).ok_or_else(wrong)?;
        if last - first >= MOST {
            return Err(wrong());
        }
        all.extend((first..=last).map(|request| After { request, outcome }));
    }
    Ok(Dependencies(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_ranges_steps_and_lists() {
        let numbers = |text| array(text).unwrap().0;
        assert_eq!(numbers("4"), [4]);
        assert_eq!(numbers("1,3,5"), [1, 3, 5]);
        assert_eq!(numbers("1-10:2"), [1, 3, 5, 7, 9]);
        assert_eq!(numbers("8-9,1-2"), [1, 2, 8, 9]);
        assert_eq!(numbers("0-99999").len(), 100_000);
        for (text, words) in [
            ("0-15%4", "no such limit: write 0-15"),
            ("1,1", "1 is in the array twice"),
            ("3-1", "such as 0-99"),
            ("1-5:0", "such as 0-99"),
            ("4:2", "such as 0-99"),
            ("", "such as 0-99"),
            ("+1", "such as 0-99"),
            ("0-100000", "such as 0-99"),
            ("0-99999,100000", "at most 100000 numbers"),
            ("0-18446744073709551615", "such as 0-99"),
        ] {
            let error = array(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn a_dependency_names_several_requests() {
        let requests = |text| {
            let Dependencies(all) = depend(text).unwrap();
            all.iter().map(|after| after.request).collect::<Vec<_>>()
        };
        assert_eq!(requests("afterok:7"), [7]);
        assert_eq!(requests("afterany:1:2:5-7"), [1, 2, 5, 6, 7]);
        assert_eq!(depend("afternotok:1").unwrap().0[0].outcome, Outcome::NotOk);
        for text in ["afterok", "afterok:", "after:1", "afterok:1:", "afterok:2-1", "afterok:x"] {
            assert!(depend(text).unwrap_err().contains("afterok:7-16"), "{text}");
        }
    }
}
