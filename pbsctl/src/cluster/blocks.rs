// SPDX-License-Identifier: GPL-2.0
//! Long arrays, which a service plans in blocks: it answers others between two of them.

use pbs_cluster_api::{Client, Refusal, Submission};
use pbs_manager::ledger::Row;
use pbs_manager::Wish;

use crate::failure::Failure;
use crate::output::counted;

/// Number of requests that are submitted by one call (Keller, section 6).
const BLOCK: usize = 500;

/// Submits a request, or all requests of an array. If a block of an array is refused, the requests
/// of the blocks before it are ended.
pub(super) fn submit(client: &mut Client, wish: &Wish) -> Result<Vec<Row>, Failure> {
    let indices = wish.array.as_deref().unwrap_or_default();
    if indices.len() <= BLOCK {
        return Ok(client.submit(&Submission::from(wish))?);
    }
    let mut rows: Vec<Row> = Vec::with_capacity(indices.len());
    for block in indices.chunks(BLOCK) {
        let of_block = Wish { array: Some(block.to_vec()), ..wish.clone() };
        match client.submit(&Submission::from(&of_block)) {
            Ok(more) => rows.extend(more),
            Err(why) => return Err(taken_back(client, &rows, why.into())),
        }
    }
    Ok(rows)
}

/// Ends the requests of an array whose next block was refused. Returns the failure, which names the
/// requests that could not be ended.
fn taken_back(client: &mut Client, rows: &[Row], why: Failure) -> Failure {
    let ids: Vec<u64> = rows.iter().map(|row| row.id).collect();
    let mut left: Vec<u64> = Vec::new();
    for block in ids.chunks(BLOCK) {
        if client.kill(block).is_ok() {
            continue;
        }
        // One that has ended by itself refuses the call for those behind it.
        left.extend(block.iter().filter(|&&id| {
            let killed = client.kill(&[id]);
            killed.is_err_and(|failure| {
                !matches!(failure, pbs_cluster_api::Failure::Refused(Refusal::NoSuchRequest { .. }))
            })
        }));
    }
    let rest = match (left.first(), left.last()) {
        (Some(first), Some(last)) => format!(
            "{}, {first} to {last}, could not be ended; end them with pbsctl cluster kill",
            counted(left.len() as u64, "request of the array", "requests of the array"),
        ),
        _ if ids.is_empty() => return why,
        _ => format!(
            "{} before it {} ended again",
            counted(ids.len() as u64, "request of the array", "requests of the array"),
            if ids.len() == 1 { "is" } else { "are" }
        ),
    };
    match why {
        Failure::NotPlanned(why) => Failure::NotPlanned(format!("{why}; {rest}")),
        Failure::Failed(why) => Failure::Failed(format!("{why}; {rest}")),
        other => other,
    }
}
