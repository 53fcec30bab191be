// SPDX-License-Identifier: GPL-2.0
//! Numbers of unfinished requests of users and groups, against their limits.

use std::collections::HashMap;

use pbs_site::Whom;

use crate::request::Refusal;
use crate::rules::{Limited, Rules};
use crate::types::Who;

/// Unfinished requests by consumer: of all, and of arrays.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts(HashMap<Whom, [u64; 2]>);

impl Counts {
    /// Checks that one more request keeps the limits of its user and its group.
    pub(crate) fn check(
        &self,
        rules: &Rules,
        now_s: u64,
        who: &Who,
        of_array: bool,
    ) -> Result<(), Refusal> {
        for whom in who.consumers() {
            let counts = self.0.get(whom).copied().unwrap_or_default();
            let all = [
                (Limited::Requests, counts[0], true),
                (Limited::ArrayRequests, counts[1], of_array),
            ];
            for (of, count, is_asked) in all {
                let most = rules.most_requests(whom, of, now_s);
                if is_asked && count >= most {
                    let whom = whom.clone();
                    return Err(Refusal::TooMany { whom, of, most });
                }
            }
        }
        Ok(())
    }

    /// Counts a request that came, or one that is over.
    pub(crate) fn count(&mut self, rules: &Rules, who: &Who, of_array: bool, is_more: bool) {
        if rules.limits.is_empty() {
            return;
        }
        for consumer in who.consumers() {
            let counts = self.0.entry(consumer.clone()).or_default();
            for count in counts.iter_mut().take(1 + usize::from(of_array)) {
                *count = if is_more { *count + 1 } else { count.saturating_sub(1) };
            }
        }
    }
}
