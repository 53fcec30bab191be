// error: E0277
// Nor by what a callback of a class gets.

pub(crate) fn swap(a: Pin<&mut RunQueue>, b: Pin<&mut RunQueue>) {
    core::mem::swap(a.get_mut(), b.get_mut());
}
