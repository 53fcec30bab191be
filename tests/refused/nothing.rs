// error: none
// This is as it should be: what the others do is wrong, not how they are compiled.

pub(crate) fn number(rq: Pin<&mut RunQueue>, number: u32) -> Option<u32> {
    let cpu = PossibleCpu::new(number)?;
    access::with_state(rq, |rq, _, state| {
        state.preempt(rq);
        cpu.number()
    })
}
