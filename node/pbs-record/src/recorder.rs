// SPDX-License-Identifier: GPL-2.0
//! Takes what the kernel notes into a file.

use std::collections::BTreeSet;
use std::io::{self, Write};

use pbs_core::InputKind;
use pbs_uapi::{Inputs, Ring, RingRead};

use crate::Writer;

/// Records from when it is made until it ends.
#[derive(Debug)]
pub struct Recorder<W: Write> {
    inputs: Inputs,
    rings: Vec<Reader>,
    /// The plans that were asked for, by number and CPU.
    plans: BTreeSet<(u64, u32)>,
    writer: Writer<W>,
    taken: u64,
    lost: u64,
}

/// Position of the recorder in the ring of a CPU.
#[derive(Debug)]
struct Reader {
    ring: Ring<pbs_uapi::Input>,
    next: u64,
}

impl<W: Write> Recorder<W> {
    /// Records from `inputs`, an open device, to a file.
    pub fn new(inputs: Inputs, to: W) -> io::Result<Self> {
        let mut recorder = Self {
            inputs,
            rings: Vec::new(),
            plans: BTreeSet::new(),
            writer: Writer::new(to)?,
            taken: 0,
            lost: 0,
        };
        recorder.map_rings()?;
        for reader in &mut recorder.rings {
            // What was before was for others who recorded.
            reader.next = reader.ring.bounds().1;
        }
        Ok(recorder)
    }

    /// Takes all that has been noted since the last call. Call it often: a ring holds
    /// what a busy CPU is told in some 20 ms.
    pub fn take(&mut self) -> io::Result<()> {
        self.map_rings()?;
        let mut inputs = Vec::new();
        for reader in &mut self.rings {
            let cpu = reader.ring.cpu();
            let head = reader.ring.bounds().1;
            let mut first = reader.next;
            inputs.clear();
            while reader.next < head {
                match reader.ring.look(reader.next) {
                    RingRead::Record(input) => {
                        inputs.push(in_core(&input));
                        reader.next += 1;
                    }
                    RingRead::NotYet => break,
                    RingRead::Lost => {
                        self.writer.inputs(cpu, first, &inputs)?;
                        self.taken += inputs.len() as u64;
                        inputs.clear();
                        // It is being overwritten: some room, so as not to lose all anew.
                        let (tail, head) = reader.ring.bounds();
                        let room = (head - tail) / 8;
                        let oldest = (tail + room).max(reader.next + 1).min(head);
                        self.writer.lost(cpu, reader.next, oldest - reader.next)?;
                        self.lost += oldest - reader.next;
                        reader.next = oldest;
                        first = oldest;
                    }
                }
                let begin = inputs.last().filter(|input: &&pbs_core::Input| {
                    input.input_kind() == Some(InputKind::Begin)
                });
                let Some(number) = begin.map(|input| input.value) else {
                    continue;
                };
                if self.plans.insert((number, cpu)) {
                    match self.inputs.kept_plan(number, cpu)? {
                        Some(kept) => {
                            let rate = kept.rate_insns_per_ms;
                            self.writer.kept(number, cpu, rate, &[&kept.bytes])?;
                        }
                        None => self.writer.no_plan(number, cpu)?,
                    }
                }
            }
            self.taken += inputs.len() as u64;
            if !inputs.is_empty() {
                self.writer.inputs(cpu, first, &inputs)?;
            }
        }
        Ok(())
    }

    /// Inputs that were taken.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Inputs that were overwritten before they were taken.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Plans that came into force.
    pub fn plans(&self) -> u64 {
        self.plans.len() as u64
    }

    /// Takes what is left, and ends the file.
    pub fn end(mut self) -> io::Result<W> {
        self.take()?;
        self.writer.end()
    }

    /// Maps the rings that have come since the last call.
    fn map_rings(&mut self) -> io::Result<()> {
        for cpu in 0..self.inputs.cpu_ids() {
            if self.rings.iter().any(|reader| reader.ring.cpu() == cpu) {
                continue;
            }
            if let Some(ring) = self.inputs.ring(cpu)? {
                self.rings.push(Reader { ring, next: 0 });
            }
        }
        Ok(())
    }
}

fn in_core(input: &pbs_uapi::Input) -> pbs_core::Input {
    pbs_core::Input {
        time_ns: input.time_ns,
        value: input.value,
        more: input.more,
        process: input.process,
        kind: input.kind,
        reason: input.reason,
    }
}
