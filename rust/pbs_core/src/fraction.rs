// SPDX-License-Identifier: GPL-2.0

//! Shares of values, without 128-bit division.

/// `value · min(1, part / whole)`, rounded down and exact; with 0 of 0 all of `value`.
pub(super) fn fraction(value: u64, part: u64, whole: u64) -> u64 {
    if part >= whole {
        return value;
    }
    if let Some(product) = value.checked_mul(part) {
        return product / whole;
    }
    // The kernel has no 128-bit division.  The quotient fits into 64 bits, because part < whole;
    // therefore the long division has 64 steps.
    let product = u128::from(value) * u128::from(part);
    let mut quotient = 0u64;
    let mut remainder = (product >> 64) as u64;
    let mut low = product as u64;
    for _ in 0..64 {
        let carry = remainder >> 63;
        remainder = (remainder << 1).wrapping_add(low >> 63);
        low <<= 1;
        quotient <<= 1;
        if carry != 0 || remainder >= whole {
            remainder = remainder.wrapping_sub(whole);
            quotient += 1;
        }
    }
    quotient
}
