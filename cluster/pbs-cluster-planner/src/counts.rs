// SPDX-License-Identifier: GPL-2.0
//! Numbers of unfinished requests of users and groups, against their limits.

use std::collections::HashMap;

use crate::request::Refusal;
use crate::rules::{Limited, Rules};
use crate::types::{Holder, Who};

/// Unfinished requests by consumer: of all, and of arrays.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts(HashMap<Holder, [u64; 2]>);

impl Counts {
    /// Checks that one more request keeps the limits of its user and its group.
    pub(crate) fn check(
        &self,
        rules: &Rules,
        now_s: u64,
        who: &Who,
        of_array: bool,
    ) -> Result<(), Refusal> {
        for holder in who.holders() {
            let counts = self.0.get(holder).copied().unwrap_or_default();
            let all = [
                (Limited::Requests, counts[0], true),
                (Limited::ArrayRequests, counts[1], of_array),
            ];
            for (of, count, is_asked) in all {
                let most = rules.most_requests(&holder.whom, of, now_s);
                if is_asked && count >= most {
                    let whom = holder.whom.clone();
                    return Err(Refusal::TooMany { whom, of, most });
                }
            }
        }
        Ok(())
    }

    /// Whether nobody has an unfinished request.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Counts a request that came, or one that is over.
    pub(crate) fn count(&mut self, rules: &Rules, who: &Who, of_array: bool, is_more: bool) {
        if rules.limits.is_empty() {
            return;
        }
        for holder in who.holders() {
            let counts = self.0.entry(holder.clone()).or_default();
            for count in counts.iter_mut().take(1 + usize::from(of_array)) {
                *count = if is_more { *count + 1 } else { count.saturating_sub(1) };
            }
            if *counts == [0, 0] {
                self.0.remove(holder);
            }
        }
    }
}
