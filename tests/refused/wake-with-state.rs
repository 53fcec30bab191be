// error: E0308
// What calls back into the class can't be called with the state.

pub(crate) fn wake(rq: Pin<&mut RunQueue>) {
    access::with_state(rq, |rq, _, state| wake_granted(rq, state.take_wake(rq)));
}
