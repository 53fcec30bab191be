// error: E0432
// What modules get has nothing of the scheduler's own.

pub(crate) use kernel::bindings::{resched_curr, rq_flags};
