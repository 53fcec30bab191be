// SPDX-License-Identifier: GPL-2.0
//! Takes what the kernel notes into a file.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use pbs_core::wire::{self, Message};
use pbs_core::{InputKind, Rate, StdMemory};
use pbs_sim::Snapshot;
use pbs_uapi::{Inputs, RingRead, SnapshotOf, TakenSnapshot};

use crate::source::{InputRing, Source};
use crate::Writer;

/// Most calls of [`Recorder::take`] from a snapshot in vain to the next snapshot.
const MOST_PAUSE: u32 = 128;

/// Records from when it is made until it ends.
#[derive(Debug)]
pub struct Recorder<W: Write, S: Source = Inputs> {
    inputs: S,
    rings: Vec<Reader<S::Ring>>,
    /// The plans that were asked for, by number and CPU.
    plans: BTreeSet<(u64, u32)>,
    writer: Writer<W>,
    taken: u64,
    lost: u64,
    snapshots: u64,
    /// CPUs of which no snapshot can be taken.
    without_snapshot: BTreeSet<u32>,
    /// Snapshots after which inputs were lost again, by CPU.
    in_vain: BTreeMap<u32, u64>,
}

/// Position of the recorder in the ring of a CPU.
#[derive(Debug)]
struct Reader<R> {
    ring: R,
    next: u64,
    /// Whether inputs are missing before the next one, so that a replay can't continue there.
    is_cut: bool,
    /// Number of the input at which the last snapshot was taken, until it was in vain.
    snapshot_at: Option<u64>,
    /// Calls from the last snapshot in vain to the next snapshot; 0: none was in vain.
    pause: u32,
    /// Calls that are left of them.
    left: u32,
}

impl<R: InputRing> Reader<R> {
    fn new(ring: R) -> Self {
        Self { ring, next: 0, is_cut: false, snapshot_at: None, pause: 0, left: 0 }
    }

    /// Notes that inputs are lost.  Returns whether the last snapshot was in vain: the recorder has
    /// not read as many inputs since as a ring holds.
    ///
    /// A snapshot takes time, in which more inputs are lost.  A recorder that falls behind again
    /// and again therefore waits, twice as long after each snapshot in vain.
    fn lose(&mut self) -> bool {
        self.is_cut = true;
        let (tail, head) = self.ring.bounds();
        let Some(at) = self.snapshot_at.take() else { return false };
        let is_in_vain = self.next < at.saturating_add(head - tail);
        self.pause = if is_in_vain { (2 * self.pause).clamp(1, MOST_PAUSE) } else { 0 };
        self.left = self.pause;
        is_in_vain
    }

    /// Whether it is time for a snapshot from which a replay continues.
    fn wants_snapshot(&mut self) -> bool {
        let wants = self.is_cut && self.left == 0;
        if self.is_cut {
            self.left = self.left.saturating_sub(1);
        }
        wants
    }
}

impl<W: Write, S: Source> Recorder<W, S> {
    /// Records from `inputs`, an open device, to a file.
    ///
    /// CPUs that have a plan begin with a snapshot.
    pub fn new(inputs: S, to: W) -> io::Result<Self> {
        let mut recorder = Self {
            inputs,
            rings: Vec::new(),
            plans: BTreeSet::new(),
            writer: Writer::new(to)?,
            taken: 0,
            lost: 0,
            snapshots: 0,
            without_snapshot: BTreeSet::new(),
            in_vain: BTreeMap::new(),
        };
        recorder.map_rings()?;
        for at in 0..recorder.rings.len() {
            let reader = &mut recorder.rings[at];
            // What was before was for others who recorded.
            reader.next = reader.ring.bounds().1;
            if let Some(snapshot) = recorder.snapshot(at)? {
                let reader = &mut recorder.rings[at];
                reader.next = snapshot.next_input;
                reader.snapshot_at = Some(snapshot.next_input);
                recorder.begin(at, snapshot)?;
            }
        }
        Ok(recorder)
    }

    /// Takes all that has been noted since the last call. Call it often: a ring holds
    /// what a busy CPU is told in some 20 ms.
    ///
    /// After lost inputs a replay continues with a snapshot.  If inputs are lost again soon after
    /// it, the next snapshot is taken some calls later.
    pub fn take(&mut self) -> io::Result<()> {
        self.take_inputs()?;
        for at in 0..self.rings.len() {
            if !self.rings[at].wants_snapshot() {
                continue;
            }
            self.rings[at].is_cut = false;
            let Some(snapshot) = self.snapshot(at)? else { continue };
            self.rings[at].snapshot_at = Some(snapshot.next_input);
            self.read(at, snapshot.next_input)?;
            // More may be lost by now, and another plan may have begun: it needs no snapshot.
            if self.rings[at].next == snapshot.next_input {
                self.begin(at, snapshot)?;
                self.rings[at].is_cut = false;
            }
        }
        Ok(())
    }

    fn take_inputs(&mut self) -> io::Result<()> {
        self.map_rings()?;
        for at in 0..self.rings.len() {
            let head = self.rings[at].ring.bounds().1;
            self.read(at, head)?;
        }
        Ok(())
    }

    /// Takes the inputs of a ring before the one of number `end`.
    fn read(&mut self, at: usize, end: u64) -> io::Result<()> {
        let reader = &mut self.rings[at];
        let cpu = reader.ring.cpu();
        let mut first = reader.next;
        let mut inputs = Vec::new();
        while reader.next < end {
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
                    if reader.lose() {
                        *self.in_vain.entry(cpu).or_default() += 1;
                    }
                    reader.next = oldest;
                    first = oldest;
                }
            }
            let begin = inputs
                .last()
                .filter(|input: &&pbs_core::Input| input.input_kind() == Some(InputKind::Begin));
            let Some((number, follows)) = begin.map(|input| (input.value, input.reason != 0))
            else {
                continue;
            };
            reader.is_cut &= follows;
            if self.plans.insert((number, cpu)) {
                match self.inputs.kept_plan(number, cpu)? {
                    Some(kept) => {
                        let rate = kept.rate_insns_per_ms;
                        self.writer.kept(number, cpu, rate, &[&kept.bytes])?;
                    }
                    None => {
                        self.writer.no_plan(number, cpu)?;
                        reader.is_cut = true;
                    }
                }
            }
        }
        self.taken += inputs.len() as u64;
        if !inputs.is_empty() {
            self.writer.inputs(cpu, first, &inputs)?;
        }
        Ok(())
    }

    /// A snapshot of the CPU of a ring, if it has a plan and a snapshot can be taken.
    fn snapshot(&mut self, at: usize) -> io::Result<Option<TakenSnapshot>> {
        let cpu = self.rings[at].ring.cpu();
        match self.inputs.snapshot(cpu)? {
            SnapshotOf::Taken(snapshot) => Ok(Some(snapshot)),
            SnapshotOf::NoPlan => Ok(None),
            SnapshotOf::TooLarge | SnapshotOf::Unknown => {
                self.without_snapshot.insert(cpu);
                Ok(None)
            }
        }
    }

    /// Writes a snapshot before the next input.
    fn begin(&mut self, at: usize, taken: TakenSnapshot) -> io::Result<()> {
        let cpu = self.rings[at].ring.cpu();
        let message = Message::parse::<StdMemory>(&taken.plan);
        // The words have the rate.
        let config = message.ok().and_then(|message| message.config(Rate::new(0)));
        let config = config.ok_or_else(|| {
            io::Error::other(format!("the kernel returned no plan for the snapshot of CPU {cpu}"))
        })?;
        // The kernel counts its plans upwards, from 1 on.
        let plan = u64::MAX - self.snapshots;
        self.snapshots += 1;
        self.writer.kept(plan, cpu, 0, &[&wire::encode::config(&config), &taken.plan])?;
        let snapshot = Snapshot {
            plan,
            time_ns: taken.time_ns,
            begun_ns: taken.installed_ns,
            config,
            words: taken.words,
        };
        self.writer.snapshot(cpu, taken.next_input, &snapshot)
    }

    /// Inputs that were taken.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Inputs that were overwritten before they were taken.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Snapshots with which a replay can begin.
    pub fn snapshots(&self) -> u64 {
        self.snapshots
    }

    /// CPUs of which no snapshot could be taken: their plan is too large, or the kernel takes none.
    pub fn without_snapshot(&self) -> &BTreeSet<u32> {
        &self.without_snapshot
    }

    /// Numbers of snapshots after which inputs were lost again before a replay got far, by CPU.
    /// The recorder falls behind there, and takes fewer snapshots.
    pub fn in_vain(&self) -> &BTreeMap<u32, u64> {
        &self.in_vain
    }

    /// Plans that came into force.
    pub fn plans(&self) -> u64 {
        self.plans.len() as u64
    }

    /// Takes what is left, and ends the file.
    pub fn end(mut self) -> io::Result<W> {
        self.take_inputs()?;
        self.writer.end()
    }

    /// Maps the rings that have come since the last call.
    fn map_rings(&mut self) -> io::Result<()> {
        for cpu in 0..self.inputs.cpu_ids() {
            if self.rings.iter().any(|reader| reader.ring.cpu() == cpu) {
                continue;
            }
            if let Some(ring) = self.inputs.ring(cpu)? {
                self.rings.push(Reader::new(ring));
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
