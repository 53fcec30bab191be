// error: without a number
// The proof that interrupts are off does not outlive that.

pub(crate) fn keep() -> kernel::cpu::InterruptsOff<'static> {
    kernel::cpu::without_interrupts(|off| off)
}
