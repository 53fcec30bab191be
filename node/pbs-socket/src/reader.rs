// SPDX-License-Identifier: GPL-2.0
//! Thread that reads long calls, before the thread that answers takes them.
//!
//! A call of a megabyte takes some tenths of a second to read, and nothing of the service is needed
//! for that. Users are served in turn here, too. Short calls do not pass through this thread, and
//! never wait for a long one.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender};
use std::thread;

use crate::inbox::{Bell, Call, Waiting};
use crate::turns::Turns;

/// Length from which on a call is read here.
pub const LONG_BYTES: usize = 32 << 10;

/// Starts the thread. It ends when one of its ends is gone. At most as many calls as `read` has
/// places are read ahead: what is made of one is far larger than its text.
pub(crate) fn start<C: Call>(
    long: Receiver<Waiting<C>>,
    read: SyncSender<Waiting<C>>,
    bell: Bell,
) -> io::Result<()> {
    let thread = thread::Builder::new().name("reader".into());
    thread.spawn(move || run(&long, &read, &bell)).map(drop)
}

fn run<C: Call>(long: &Receiver<Waiting<C>>, read: &SyncSender<Waiting<C>>, bell: &Bell) {
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
