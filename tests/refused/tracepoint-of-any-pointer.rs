// error: E0200
// What a tracepoint is given has to be valid.

struct Nowhere;

impl kernel::tracepoint::Argument for Nowhere {
    type C = *const u64;

    fn to_c(self) -> *const u64 {
        core::ptr::null()
    }
}
