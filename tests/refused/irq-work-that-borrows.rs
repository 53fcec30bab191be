// error: E0478
// Nor may what is put off to an interrupt borrow anything.

struct Borrows<'a>(&'a core::sync::atomic::AtomicU32);

impl<'a> kernel::irq_work::IrqWorkCallback for Borrows<'a> {
    fn run(this: &kernel::irq_work::IrqWork<Self>) {
        this.0.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
    }
}
