// error: E0308
// There may be no CPU of that number.

pub(crate) fn lock(number: u32) -> RunQueueGuard {
    RunQueueGuard::lock(number)
}
