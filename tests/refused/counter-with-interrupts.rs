// error: E0061
// With interrupts on, the counter may leave its PMU in the midst.

pub(crate) fn set(counter: &kernel::perf_event::KernelCounter) -> Result {
    counter.overflow_after(1000)
}
