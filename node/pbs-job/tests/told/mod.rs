// SPDX-License-Identifier: GPL-2.0
//! Messages of faults, as people read them.

use pbs_text::Problem;

/// The messages of a result; `valid` if it has none.
pub(crate) fn told<T>(result: Result<T, Vec<Problem>>) -> Vec<String> {
    let Err(problems) = result else {
        return vec!["valid".into()];
    };
    problems.iter().map(|problem| problem.in_file("job").to_string()).collect()
}
