// error: E0478
// A timer may be forgotten, and expire when what it borrows is gone.

struct Borrows<'a>(&'a core::sync::atomic::AtomicU32);

impl<'a> kernel::hrtimer::HrTimerCallback for Borrows<'a> {
    fn expired(this: &kernel::hrtimer::HrTimer<Self>) -> kernel::hrtimer::Restart {
        this.0.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
        kernel::hrtimer::Restart::No
    }
}
