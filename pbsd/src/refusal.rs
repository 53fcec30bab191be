// SPDX-License-Identifier: GPL-2.0
//! Errors of the node as refusals.

use pbs_node::Error;
use pbs_node_api::Refusal;

/// Converts an error of the node to its form on the socket.
pub(crate) fn refusal(error: Error) -> Refusal {
    match error {
        Error::Declined(declined) => Refusal::Declined {
            job: declined.job,
            why: declined.why,
            earliest_deadline_ns: declined.earliest_deadline_ns,
        },
        Error::Invalid { file, problems } => Refusal::Invalid {
            problems: problems.iter().map(|it| it.in_file(&file).to_string()).collect(),
            file,
        },
        Error::History(pbs_history::Error::NoRun(id)) => Refusal::NoSuchJob { job: id.to_string() },
        Error::NotTheOwner(..) => Refusal::NotPermitted { what: error.to_string() },
        Error::DoesNotWait(..)
        | Error::DoesNotRun(..)
        | Error::NoCheckpoint(..)
        | Error::IsOver(..) => Refusal::NotInState { what: error.to_string() },
        other => Refusal::Failed { why: other.to_string() },
    }
}
