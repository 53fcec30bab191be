// SPDX-License-Identifier: GPL-2.0

//! Values that are saved as words, for snapshots of a node.

/// Version of the words.  It changes with every field that is saved.
pub(super) const VERSION: u64 = 10;

/// A value that is saved as words.
pub(super) trait Saved: Sized {
    /// Passes the words of the value, in order.
    fn save(&self, to: &mut impl FnMut(u64));
}

impl Saved for u64 {
    fn save(&self, to: &mut impl FnMut(u64)) {
        to(*self);
    }
}

impl Saved for i64 {
    fn save(&self, to: &mut impl FnMut(u64)) {
        to(self.cast_unsigned());
    }
}

impl Saved for u32 {
    fn save(&self, to: &mut impl FnMut(u64)) {
        to((*self).into());
    }
}

impl Saved for u16 {
    fn save(&self, to: &mut impl FnMut(u64)) {
        to((*self).into());
    }
}

impl Saved for bool {
    fn save(&self, to: &mut impl FnMut(u64)) {
        to((*self).into());
    }
}

impl<T: Saved> Saved for Option<T> {
    fn save(&self, to: &mut impl FnMut(u64)) {
        self.is_some().save(to);
        if let Some(value) = self {
            value.save(to);
        }
    }
}

impl<T: Saved, U: Saved> Saved for (T, U) {
    fn save(&self, to: &mut impl FnMut(u64)) {
        self.0.save(to);
        self.1.save(to);
    }
}
