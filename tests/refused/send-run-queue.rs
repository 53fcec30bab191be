// error: E0277
// A lock belongs to the CPU that took it.

pub(crate) fn send(rq: &RunQueue) {
    let _ = sched_class::call_on(0, || rq.reschedule());
}
