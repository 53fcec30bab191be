// error: E0505
// The state can't be kept longer than the lock.

pub(crate) fn keep(mut rq: RunQueueGuard) {
    let state = access::with_state(rq.as_mut(), |_, _, state| state);
    drop(rq);
    drop(state);
}
