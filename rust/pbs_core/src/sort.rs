// SPDX-License-Identifier: GPL-2.0

//! Sorting on a small stack.

use core::cmp::Ordering;
use core::mem;

use super::memory::{pause, Memory};

/// Sorts `slice` in place, pausing at intervals.  Cannot be aborted half way.
///
/// Elements that compare as equal may change places.  Takes O(n log n) for n elements, O(n) if they
/// are in order already, and no more stack for many than for few: the sort of the standard library
/// calls itself, and the stack of a thread in the kernel is 16 KiB.
#[inline(never)]
pub fn sort<M: Memory, T>(slice: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let ordered = |pair: &[T]| match pair {
        [one, other] => compare(one, other).is_le(),
        _ => true,
    };
    if slice.windows(2).all(ordered) {
        return;
    }
    // A heap, the greatest element first; then element after element moves behind it.
    for place in (0..slice.len() / 2).rev() {
        // Sorting cannot stop half way; the next pause of the caller aborts.
        let _ = pause::<M>(place as u32);
        sift_down(slice, place, &compare);
    }
    let mut heap = slice;
    while let Some((last, rest)) = heap.split_last_mut() {
        // As above.
        let _ = pause::<M>(rest.len() as u32);
        if let Some(greatest) = rest.first_mut() {
            mem::swap(greatest, last);
        }
        sift_down(rest, 0, &compare);
        heap = rest;
    }
}

/// Moves the element at `place` down the heap, until none below it is greater.
#[inline(never)]
fn sift_down<T>(heap: &mut [T], mut place: usize, compare: &impl Fn(&T, &T) -> Ordering) {
    loop {
        let mut child = 2 * place + 1;
        if let (Some(left), Some(right)) = (heap.get(child), heap.get(child + 1)) {
            child += usize::from(compare(left, right).is_lt());
        }
        match (heap.get(place), heap.get(child)) {
            (Some(parent), Some(greatest)) if compare(parent, greatest).is_lt() => {
                heap.swap(place, child);
                place = child;
            }
            _ => return,
        }
    }
}
