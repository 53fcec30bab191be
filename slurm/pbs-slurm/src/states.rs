// SPDX-License-Identifier: GPL-2.0
//! Slurm's words for the states of jobs that are over or not, as `squeue` and `sacct` print them.

/// Standing of a job by its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The job is not over.
    Open,
    /// The job ended by itself and well.
    Completed,
    /// Somebody took the job back.
    Cancelled,
    /// The job ended otherwise.
    Failed,
}

/// Returns the standing of a job in a state; `None`: it is no state of a job.
pub(crate) fn standing(state: &str) -> Option<Standing> {
    Some(match state {
        "PENDING" | "CONFIGURING" | "RUNNING" | "COMPLETING" | "STAGE_OUT" | "SIGNALING"
        | "SUSPENDED" | "STOPPED" | "REQUEUED" | "REQUEUE_FED" | "REQUEUE_HOLD"
        | "RESV_DEL_HOLD" | "RESIZING" | "SPECIAL_EXIT" => Standing::Open,
        "COMPLETED" => Standing::Completed,
        "CANCELLED" | "REVOKED" => Standing::Cancelled,
        "BOOT_FAIL" | "DEADLINE" | "FAILED" | "LAUNCH_FAILED" | "NODE_FAIL" | "OUT_OF_MEMORY"
        | "PREEMPTED" | "RECONFIG_FAIL" | "TIMEOUT" => Standing::Failed,
        _ => return None,
    })
}
