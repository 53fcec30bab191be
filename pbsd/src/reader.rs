// SPDX-License-Identifier: GPL-2.0
//! Thread that reads long requests, before the thread that has the node takes them.
//!
//! A request of a megabyte takes some tenths of a second to read, and nothing of the node is needed
//! for that. Users are served in turn here, too. Short requests do not pass through this thread, and
//! never wait for a long one.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender};
use std::thread;

use crate::inbox::{Bell, Waiting};
use crate::turns::Turns;

/// Length from which on a request is read here.
pub(crate) const LONG_BYTES: usize = 32 << 10;

/// Starts the thread. It ends when one of its ends is gone. At most as many requests as `read` has
/// places are read ahead: what is made of one is far larger than its text.
pub(crate) fn start(
    long: Receiver<Waiting>,
    read: SyncSender<Waiting>,
    bell: Bell,
) -> io::Result<()> {
    let thread = thread::Builder::new().name("reader".into());
    thread.spawn(move || run(&long, &read, &bell)).map(drop)
}

fn run(long: &Receiver<Waiting>, read: &SyncSender<Waiting>, bell: &Bell) {
    let mut turns = Turns::default();
    while let Ok(first) = long.recv() {
        turns.push(first.user(), first);
        while let Some(waiting) = turns.pop() {
            if let Some(waiting) = waiting.read() {
                if read.send(waiting).is_err() {
                    return;
                }
                bell.ring();
            }
            for waiting in long.try_iter() {
                turns.push(waiting.user(), waiting);
            }
        }
    }
}
