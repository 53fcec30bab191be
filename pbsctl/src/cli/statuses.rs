// SPDX-License-Identifier: GPL-2.0
//! Exit statuses.

use crate::failure::{
    DEADLINE_MISSED, DECLINED, DIFFERS, FAILED, INCOMPLETE, INTERRUPTED, INVALID_PLAN, NOT_ENDED,
    NO_READER, USAGE,
};

/// Exit statuses: the number, the commands that return it (none for all of them), and its
/// meaning.
pub(crate) const STATUSES: [(u8, &[&str], &str); 16] = [
    (0, &[], "success"),
    (FAILED, &[], "something failed: a file, the output, the device, or the kernel refused"),
    (USAGE, &[], "the command line is wrong"),
    (INVALID_PLAN, &[], "a plan, job or machine is not valid"),
    (INCOMPLETE, &["run", "profile"], "the plan ended, but a command failed or a task did not end"),
    (INCOMPLETE, &["sim"], "not all processes ended"),
    (INCOMPLETE, &["record"], "inputs were missed; if the command failed, its exit status"),
    (INCOMPLETE, &["replay"], "the recording is incomplete; the rest came out the same"),
    (INCOMPLETE, &["step"], "the job did not end; if a program failed, its exit status"),
    (NOT_ENDED, &["run", "profile"], "the plan was dropped or replaced, or its CPU went offline"),
    (DECLINED, &[], "a job was declined"),
    (DEADLINE_MISSED, &["run", "profile", "step"], "a job ended after its deadline"),
    (
        DEADLINE_MISSED,
        &["alloc", "alter", "info", "why"],
        "the request breaks its agreement (--sla)",
    ),
    (DIFFERS, &["replay"], "the replay differs from the recording"),
    (INTERRUPTED, &["run", "profile", "step"], "interrupted"),
    (NO_READER, &[], "the reader of the output has gone (| head); nothing is reported"),
];
