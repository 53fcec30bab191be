// SPDX-License-Identifier: GPL-2.0
//! Jobs that come only after others: fields 17 and 18 of the Standard Workload Format.

use std::collections::HashMap;

use crate::TraceJob;

/// Returns the place of each job's predecessor. A predecessor is submitted earlier, or at the same
/// time and stands before; therefore no job waits for itself. Of several with its number the last
/// counts.
pub(crate) fn predecessors(jobs: &[TraceJob]) -> Vec<Option<usize>> {
    let mut predecessors = vec![None; jobs.len()];
    if jobs.iter().all(|job| job.preceding.is_none()) {
        return predecessors;
    }
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|&job| jobs[job].submit_s);
    let mut by_number = HashMap::new();
    for job in order {
        let preceding = jobs[job].preceding;
        predecessors[job] = preceding.and_then(|number| by_number.get(&number).copied());
        by_number.insert(jobs[job].number, job);
    }
    predecessors
}
