// SPDX-License-Identifier: GPL-2.0
//! Crowds that talk: groups of senders, each of which writes to every receiver
//! of its group.

use std::fs::File;
use std::io::{Read, Write};

use pbs_vmtest::harness::Pipe;

use super::class::{Class, Ready, Work};
use super::named::Named;
use super::probe::Probe;

const GROUPS: usize = 2;
/// Senders of a group, and as many receivers.
const SENDERS: usize = 5;
/// Messages from each sender to each receiver.
const MESSAGES: usize = 200;
const MESSAGE_BYTES: usize = 100;

/// Kernel instructions of a message, with the ends of the processes.
fn crowd(probe: &Probe, class: &Class) -> Result<f64, String> {
    let mut works: Vec<Work<'_>> = Vec::new();
    for _ in 0..GROUPS {
        let mut senders_ends: Vec<File> = Vec::new();
        for _ in 0..SENDERS {
            let pipe = Pipe::new()?;
            senders_ends.push(pipe.write.into());
            let mut from = File::from(pipe.read);
            works.push(Box::new(move || {
                let mut message = [0; MESSAGE_BYTES];
                for _ in 0..MESSAGES * SENDERS {
                    from.read_exact(&mut message).expect("a message");
                }
            }));
        }
        let senders_ends = std::rc::Rc::new(senders_ends);
        for _ in 0..SENDERS {
            let to = senders_ends.clone();
            works.push(Box::new(move || {
                for _ in 0..MESSAGES {
                    for mut receiver in to.iter() {
                        let sent = receiver.write_all(&[0; MESSAGE_BYTES]);
                        sent.expect("a pipe that takes a message");
                    }
                }
            }));
        }
    }
    let ready = Ready::new(class, works)?;
    let start = probe.read();
    ready.go()?;
    let insns = probe.read() - start;
    Ok(insns as f64 / (GROUPS * SENDERS * SENDERS * MESSAGES) as f64)
}

/// Figures of SCHED_FIFO and of SCHED_OTHER.
pub fn crowds(probe: &Probe) -> Result<Vec<Named>, String> {
    Ok(vec![
        Named::insns("hackbench-fifo", crowd(probe, &Class::Fifo)?),
        Named::insns("hackbench-other", crowd(probe, &Class::Other)?),
    ])
}
