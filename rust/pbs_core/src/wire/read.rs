// SPDX-License-Identifier: GPL-2.0

//! Reading of records from untrusted bytes.

use super::super::refusal::{Fault, Part, Refusal};

/// One record: its bytes and where it stands in the plan.
#[derive(Clone, Copy)]
pub(super) struct Record<'a> {
    bytes: &'a [u8],
    pub(super) offset: usize,
    part: Part,
}

impl<'a> Record<'a> {
    /// The record of `length` bytes at `offset` of `plan`.
    pub(super) fn new(
        plan: &'a [u8],
        offset: usize,
        length: usize,
        part: Part,
    ) -> Result<Record<'a>, Refusal> {
        let rest = plan.get(offset..).unwrap_or(&[]);
        match rest.get(..length) {
            Some(bytes) => Ok(Record {
                bytes,
                offset,
                part,
            }),
            None => Err(Fault::Truncated {
                part,
                need_bytes: length as u64,
                have_bytes: rest.len() as u64,
            }
            .at(offset)),
        }
    }

    /// `count` records of `length` bytes each, one after the other from `offset` of
    /// `plan` on.
    pub(super) fn each(
        plan: &'a [u8],
        offset: usize,
        length: usize,
        count: u32,
        part: Part,
    ) -> impl Iterator<Item = Record<'a>> {
        let end = offset + length * count as usize;
        let records = plan.get(offset..end).unwrap_or(&[]).chunks_exact(length);
        records
            .zip((offset..).step_by(length))
            .map(move |(bytes, offset)| Record {
                bytes,
                offset,
                part,
            })
    }

    fn field<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut field = [0; N];
        if let Some(bytes) = self.bytes.get(at..at + N) {
            field.copy_from_slice(bytes);
        }
        field
    }

    pub(super) fn u16(&self, at: usize) -> u16 {
        u16::from_ne_bytes(self.field(at))
    }

    pub(super) fn u32(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.field(at))
    }

    pub(super) fn u64(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.field(at))
    }

    /// The number at `index` of a record of numbers; `None` after the end of the record.
    pub(super) fn number(&self, index: usize) -> Option<u64> {
        let bytes = self.bytes.get(8 * index..8 * index + 8)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    }

    /// Refuses flags that this version does not know.
    pub(super) fn no_flags(&self, flags: u64, at: usize) -> Result<(), Refusal> {
        if flags == 0 {
            return Ok(());
        }
        let fault = Fault::Flags {
            part: self.part,
            found: flags,
        };
        Err(fault.at(self.offset + at))
    }

    /// Refuses a byte other than zero from `from` to the end of the record.
    pub(super) fn reserved(&self, from: usize) -> Result<(), Refusal> {
        let reserved = self.bytes.get(from..).unwrap_or(&[]);
        match reserved.iter().position(|&byte| byte != 0) {
            None => Ok(()),
            // The reserved fields have 8 bytes each.
            Some(at) => {
                Err(Fault::Reserved { part: self.part }.at(self.offset + from + at / 8 * 8))
            }
        }
    }
}
