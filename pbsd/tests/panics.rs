// SPDX-License-Identifier: GPL-2.0
//! No call makes the service panic. The count is the whole process's, so this test is alone
//! in one.

mod common;

use std::io::{Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use common::{connect, serve, STATUS};
use pbs_node_api::Client;

/// No call makes the service panic, which would be the end of it.
#[test]
fn no_call_makes_it_panic() {
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, SeqCst);
        before(info);
    }));
    let served = serve("panics");
    let calls = [
        STATUS,
        r#"{"method":"org.sched-pbs.Node.Show","parameters":{"job":{"number":5,"name":"a"}}}"#,
        r#"{"method":"org.sched-pbs.Node.List","parameters":{"filter":{"state":"over","last":3}}}"#,
        r#"{"method":"org.varlink.service.GetInterfaceDescription","parameters":{"interface":"x"}}"#,
        r#"{"method":"org.varlink.service.GetInfo","more":true,"parameters":null}"#,
        r#"{"method":"org.sched-pbs.Node.Drain","oneway":true,"parameters":{}}"#,
    ];
    let mut random = 1u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 33) as usize % below
    };
    for _ in 0..20_000 {
        let mut call = calls[next(calls.len())].as_bytes().to_vec();
        for _ in 0..=next(4) {
            let at = next(call.len());
            match next(3) {
                0 => call[at] = next(256) as u8,
                1 => call.truncate(at.max(1)),
                _ => call.insert(at, b"{}[]\",:0\\-e\0"[next(12)]),
            }
        }
        call.push(0);
        let mut stream = connect(&served.path);
        let _ = stream.write_all(&call);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        // All that is said, unless it is a list, or until nothing is to come.
        let mut some = [0; 512];
        let _ = stream.read(&mut some);
    }
    assert_eq!(PANICS.load(SeqCst), 0);
    Client::connect(&served.path).unwrap().status().unwrap();
}
