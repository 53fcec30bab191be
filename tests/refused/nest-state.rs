// error: E0308
// Who has a CPU's state can't get it a second time.

pub(crate) fn nest(rq: Pin<&mut RunQueue>) {
    access::with_state(rq, |rq, _, first| {
        access::with_state(rq, |_, _, second| core::mem::swap(first, second));
    });
}
