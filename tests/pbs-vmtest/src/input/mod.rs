// SPDX-License-Identifier: GPL-2.0
//! What is wrong is refused with an errno and a reason in words, and changes
//! nothing.

mod attach;
mod calls;
mod device;
pub mod kit;
mod memory;
mod permission;
mod pieces;
mod plans;
mod random;
mod scarcity;
mod writers;

/// The tests by their names.
pub const TESTS: &[(&str, crate::Test)] = &[
    ("bad-plans-are-refused", plans::bad_plans_are_refused),
    (
        "truncated-plans-are-refused",
        plans::truncated_plans_are_refused,
    ),
    (
        "mutated-plans-are-refused",
        random::mutated_plans_are_refused,
    ),
    ("random-calls-do-no-harm", calls::random_calls_do_no_harm),
    ("nobody-may-not-plan", permission::nobody_may_not_plan),
    ("one-of-two-writers-wins", writers::one_of_two_writers_wins),
    (
        "wrong-attachments-are-refused",
        attach::wrong_attachments_are_refused,
    ),
    (
        "refused-attach-changes-nothing",
        attach::refused_attach_changes_nothing,
    ),
    ("drop-beside-attachers", attach::drop_beside_attachers),
    ("messages-come-in-pieces", pieces::messages_come_in_pieces),
    (
        "killed-writer-changes-nothing",
        writers::killed_writer_changes_nothing,
    ),
    ("few-write-at-once", writers::few_write_at_once),
    ("short-buffers", device::short_buffers),
    ("plans-are-freed", memory::plans_are_freed),
    ("writer-is-charged", memory::writer_is_charged),
    (
        "no-memory-changes-nothing",
        scarcity::no_memory_changes_nothing,
    ),
];
