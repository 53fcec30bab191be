// SPDX-License-Identifier: GPL-2.0
//! Long arrays, which a service plans in blocks: it answers others between two of them.

use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};

use pbs_cluster_api::{Client, Refusal, Submission};
use pbs_launch::signals::{wait_for, Signals};
use pbs_manager::ledger::Row;
use pbs_manager::Wish;

use crate::failure::{Failure, INTERRUPTED};
use crate::output::{counted, report};

/// Number of requests that are submitted by one call (Keller, section 6).
const BLOCK: usize = 500;

/// Submits a request, or all requests of an array. If a block of an array is refused, the requests
/// of the blocks before it are ended. A user who interrupts a long array is told of its requests.
pub(super) fn submit(client: &mut Client, wish: &Wish) -> Result<Vec<Row>, Failure> {
    let indices = wish.array.as_deref().unwrap_or_default();
    if indices.len() <= BLOCK {
        return Ok(client.submit(&Submission::from(wish))?);
    }
    let taken = Taken::default();
    taken.report_when_interrupted()?;
    let mut rows: Vec<Row> = Vec::with_capacity(indices.len());
    for block in indices.chunks(BLOCK) {
        let of_block = Wish { array: Some(block.to_vec()), ..wish.clone() };
        taken.sends(block);
        match client.submit(&Submission::from(&of_block)) {
            Ok(more) => {
                taken.adds(&more);
                rows.extend(more);
            }
            Err(why) => return Err(taken_back(client, &rows, block, why)),
        }
    }
    taken.sends(&[]);
    Ok(rows)
}

/// Requests of an array that the service has taken up to now.
#[derive(Clone, Default)]
struct Taken(Arc<Mutex<Progress>>);

#[derive(Default)]
struct Progress {
    ids: Vec<u64>,
    /// First and last index of the block that was sent and not answered.
    sent: Option<(u64, u64)>,
}

impl Taken {
    fn sends(&self, block: &[u64]) {
        let sent = block.first().copied().zip(block.last().copied());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).sent = sent;
    }

    fn adds(&self, rows: &[Row]) {
        let mut progress = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        progress.ids.extend(rows.iter().map(|row| row.id));
        progress.sent = None;
    }

    /// Reports the requests if the command is interrupted, and ends it then. A thread of its own does
    /// so: the command waits for answers of the service.
    fn report_when_interrupted(&self) -> Result<(), Failure> {
        let failed = |error| Failure::file("signals", &error);
        let (taken, signals) = (self.clone(), Signals::new().map_err(failed)?);
        let wait = move || {
            while !signals.want_stop().unwrap_or(true) {
                if wait_for([signals.as_fd()], -1).is_err() {
                    return;
                }
            }
            let progress = taken.0.lock().unwrap_or_else(PoisonError::into_inner);
            report(&format!("pbsctl: interrupted; {}", progress.describe()));
            std::process::exit(INTERRUPTED.into());
        };
        let started = std::thread::Builder::new().name("signals".into()).spawn(wait);
        started.map(drop).map_err(failed)
    }
}

impl Progress {
    /// Says which requests the service has taken, and how to end them.
    fn describe(&self) -> String {
        let taken = match self.ids.len() as u64 {
            0 => "no request of the array was answered".to_owned(),
            count => format!(
                "{} planned; end them with {}",
                counted(count, "request of the array is", "requests of the array are"),
                kill_all(&self.ids)
            ),
        };
        match self.sent {
            Some(sent) => format!("{taken}; {}", unknown(sent)),
            None => taken,
        }
    }
}

/// Says that nobody knows whether the service has taken a block of an array.
fn unknown((first, last): (u64, u64)) -> String {
    format!(
        "the elements {first} to {last} of the array were sent, and may be planned: see pbsctl \
         cluster info"
    )
}

/// Returns the command that ends all these requests, which are in the order of their numbers.
fn kill_all(ids: &[u64]) -> String {
    let parts = ids.chunk_by(|one, next| one + 1 == *next).map(|part| match part {
        [first, .., last] => format!(" $(seq {first} {last})"),
        _ => part.iter().map(|id| format!(" {id}")).collect(),
    });
    format!("pbsctl cluster kill{}", parts.collect::<String>())
}

/// Ends the requests of an array whose next block was refused, or whose service does not answer any
/// more. Returns the failure, which names the requests that could not be ended.
fn taken_back(
    client: &mut Client,
    rows: &[Row],
    block: &[u64],
    why: pbs_cluster_api::Failure,
) -> Failure {
    let is_refused = matches!(why, pbs_cluster_api::Failure::Refused(_));
    let ids: Vec<u64> = rows.iter().map(|row| row.id).collect();
    let mut left: Vec<u64> = Vec::new();
    for block in ids.chunks(BLOCK) {
        if !is_refused {
            // The connection is lost.
            left.extend(block);
            continue;
        }
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
    let mut rest = Vec::new();
    if !left.is_empty() {
        rest.push(format!(
            "{} not ended; end them with {}",
            counted(left.len() as u64, "request of the array is", "requests of the array are"),
            kill_all(&left)
        ));
    } else if !ids.is_empty() {
        rest.push(format!(
            "{} before it {} ended again",
            counted(ids.len() as u64, "request of the array", "requests of the array"),
            if ids.len() == 1 { "is" } else { "are" }
        ));
    }
    let sent = block.first().copied().zip(block.last().copied());
    rest.extend(sent.filter(|_| !is_refused).map(unknown));
    let rest: String = rest.iter().map(|part| format!("; {part}")).collect();
    match Failure::from(why) {
        Failure::NotPlanned(why) => Failure::NotPlanned(format!("{why}{rest}")),
        Failure::Failed(why) => Failure::Failed(format!("{why}{rest}")),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_array_names_its_requests() {
        let of = |ids: &[u64], sent| Progress { ids: ids.to_vec(), sent }.describe();
        assert_eq!(
            of(&[7, 8, 9, 12, 20, 21], None),
            "6 requests of the array are planned; end them with pbsctl cluster kill $(seq 7 9) 12 \
             $(seq 20 21)"
        );
        assert_eq!(
            of(&[], Some((0, 499))),
            "no request of the array was answered; the elements 0 to 499 of the array were sent, \
             and may be planned: see pbsctl cluster info"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_array_names_what_was_taken_and_what_is_not_known() {
        let progress = Progress { ids: vec![3, 4, 5, 9], sent: Some((500, 999)) };
        assert_eq!(
            progress.describe(),
            "4 requests of the array are planned; end them with pbsctl cluster kill $(seq 3 5) 9; \
             the elements 500 to 999 of the array were sent, and may be planned: see pbsctl cluster \
             info"
        );
        let progress = Progress { ids: Vec::new(), sent: None };
        assert_eq!(progress.describe(), "no request of the array was answered");
    }
}
