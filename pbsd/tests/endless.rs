// SPDX-License-Identifier: GPL-2.0
//! A client that sends without end is disconnected, long before the service has grown. The memory
//! is that of the whole process: therefore this test is alone in one.

mod common;

use std::io::{ErrorKind, Write};

use common::{ask, connect, serve, STATUS};

#[test]
fn endless_calls_take_no_memory() {
    let served = serve("endless");
    let before = memory_kib();
    let mut endless = connect(&served.path);
    let megabyte = vec![b'x'; 1 << 20];
    let mut sent = 0;
    let error = loop {
        match endless.write_all(&megabyte) {
            Ok(()) => sent += 1,
            Err(error) => break error.kind(),
        }
        assert!(sent < 1024, "it reads on and on");
    };
    assert!(matches!(error, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{error}");
    let grown = memory_kib().saturating_sub(before);
    assert!(grown < 64 << 10, "{grown} KiB more");
    assert!(ask(&mut connect(&served.path), STATUS).contains("running"));
}

/// Memory of the process.
fn memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.unwrap().trim().trim_end_matches(" kB");
    kib.parse().unwrap()
}
