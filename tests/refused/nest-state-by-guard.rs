// error: E0499
// Nor by the guard, as long as something of it is borrowed.

pub(crate) fn nest(rq: &mut RunQueueGuard) {
    let first = access::with_state(rq.as_mut(), |_, _, state| state);
    let second = access::with_state(rq.as_mut(), |_, _, state| state);
    drop((first, second));
}
