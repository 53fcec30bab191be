// SPDX-License-Identifier: GPL-2.0

//! Leases, and how a plan may declare them.

use std::vec::Vec;

use crate::wire::{Message, LEASE_NS};
use crate::{Fault, Lease, StdMemory};

use super::text::{write, Cpu};

fn plan(lease_ns: u64) -> Vec<u8> {
    let mut bytes = write(1, None, &[Cpu::numbered(0, &[(1, 1000)])]);
    bytes[48..56].copy_from_slice(&lease_ns.to_ne_bytes());
    bytes
}

#[test]
fn a_lease_is_none_or_in_its_bounds() {
    for lease_ns in [0, *LEASE_NS.start(), *LEASE_NS.end()] {
        let bytes = plan(lease_ns);
        let message = Message::parse::<StdMemory>(&bytes);
        assert_eq!(message.map(|m| m.lease_ns()).ok(), Some(lease_ns));
    }
    for found in [1, LEASE_NS.start() - 1, LEASE_NS.end() + 1, u64::MAX] {
        let bytes = plan(found);
        let refusal = Message::parse::<StdMemory>(&bytes).err();
        assert_eq!(refusal, Some(Fault::Lease { found }.at(48)));
        let said = refusal.map(|refusal| std::format!("{refusal}"));
        assert!(said.is_some_and(|said| said.contains("write 0 for none, or 100000000")));
    }
}

#[test]
fn a_lease_begins_anew_when_it_is_renewed() {
    assert_eq!(Lease::new(0, 5), None);
    let mut lease = Lease::new(100, 5).unwrap();
    assert_eq!((lease.length_ns(), lease.end_ns()), (100, 105));
    lease.renew(50);
    assert_eq!((lease.length_ns(), lease.end_ns()), (100, 150));
    lease.renew(u64::MAX);
    assert_eq!(lease.end_ns(), u64::MAX);
}
