// error: E0596
// Two locked run queues can't be swapped.

pub(crate) fn swap(a: &mut RunQueueGuard, b: &mut RunQueueGuard) {
    core::mem::swap(&mut **a, &mut **b);
}
