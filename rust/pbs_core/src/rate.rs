// SPDX-License-Identifier: GPL-2.0

//! Conversion between instructions and nanoseconds.

/// The rate at which a CPU retires instructions.
///
/// The theses assume a constant rate.  Both directions are stored as 32.32 fixed point: a
/// conversion takes a multiplication and a shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    insns_per_ms: u32,
    ns_per_insn_fp32: u64,
    insns_per_ns_fp32: u64,
}

const NS_PER_MS: u64 = 1_000_000;

impl Rate {
    /// A rate in instructions per millisecond, brought into 1 to `u32::MAX`.
    pub const fn new(insns_per_ms: u64) -> Rate {
        let rate = if insns_per_ms == 0 {
            1
        } else if insns_per_ms > u32::MAX as u64 {
            u32::MAX
        } else {
            insns_per_ms as u32
        };
        Rate {
            insns_per_ms: rate,
            ns_per_insn_fp32: (NS_PER_MS << 32) / rate as u64,
            insns_per_ns_fp32: ((rate as u64) << 32) / NS_PER_MS,
        }
    }

    /// Instructions per millisecond.
    pub const fn insns_per_ms(&self) -> u64 {
        self.insns_per_ms as u64
    }

    /// The time of one instruction in nanoseconds, as 32.32 fixed point.
    pub(super) const fn ns_per_insn_fp32(&self) -> u64 {
        self.ns_per_insn_fp32
    }

    /// The time that `insns` instructions take, in nanoseconds, rounded down;
    /// `u64::MAX` if it does not fit.
    pub const fn to_ns(&self, insns: u64) -> u64 {
        scale(insns, self.ns_per_insn_fp32)
    }

    /// The instructions retired in `ns` nanoseconds, rounded down; `u64::MAX`
    /// if they do not fit.
    pub const fn to_insns(&self, ns: u64) -> u64 {
        scale(ns, self.insns_per_ns_fp32)
    }

    /// Like [`to_insns`](Rate::to_insns), for values that are converted once and then compared with
    /// counts: exact except for the rounding, at the price of divisions.
    pub const fn length_insns(&self, ns: u64) -> u64 {
        let per_ms = self.insns_per_ms();
        let whole_insns = (ns / NS_PER_MS).saturating_mul(per_ms);
        // Less than 10^6 · 2^32.
        whole_insns.saturating_add(ns % NS_PER_MS * per_ms / NS_PER_MS)
    }

    /// The time in which `insns` instructions are retired, exact but rounded up.
    ///
    /// [`length_insns`](Rate::length_insns) converts the time back to the same number.  Where
    /// several instructions are retired in a nanosecond, the result may be greater by less than
    /// that many.
    pub const fn length_ns(&self, insns: u64) -> u64 {
        // A rate is at least one, which the compiler can't know.
        let per_ms = if self.insns_per_ms == 0 {
            1
        } else {
            self.insns_per_ms()
        };
        let whole_ns = (insns / per_ms).saturating_mul(NS_PER_MS);
        // Less than 2^32 · 10^6.
        let rest_ns = (insns % per_ms * NS_PER_MS).div_ceil(per_ms);
        whole_ns.saturating_add(rest_ns)
    }
}

pub(super) const fn scale(value: u64, factor_fp32: u64) -> u64 {
    let product = (value as u128 * factor_fp32 as u128) >> 32;
    if product > u64::MAX as u128 {
        u64::MAX
    } else {
        product as u64
    }
}
