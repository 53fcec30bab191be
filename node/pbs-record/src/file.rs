// SPDX-License-Identifier: GPL-2.0
//! The file that a recording is.
//!
//! A header of 16 bytes (the magic, the version, 4 bytes of 0), then pieces. Each has a
//! header of 40 bytes (kind, CPU, a number, the length of what follows, a check over
//! that and over the header itself) and its bytes, filled up with zeroes to a multiple
//! of 8. The last piece says that it is the last: a file without it was cut short. All
//! numbers are little endian, but for plans, which are as they were written.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

use pbs_core::{wire, Config, Input};
use pbs_sim::Snapshot;

const MAGIC: [u8; 8] = *b"pbs-inpt";

/// The version of the format.
pub const FORMAT_VERSION: u32 = 1;

const HEADER_BYTES: usize = 16;
const PIECE_BYTES: usize = 40;
const INPUT_BYTES: usize = 32;

/// A plan, for one CPU: the rate (8 bytes), the configuration, what was written.
const PLAN: u32 = 1;
/// Inputs of a CPU, from a number of its ring on.
const INPUTS: u32 = 2;
/// Inputs of a CPU that are lost, from a number on; how many (8 bytes).
const LOST: u32 = 3;
/// A plan that was not kept.
const NO_PLAN: u32 = 4;
/// The end of the recording.
const END: u32 = 5;
/// A snapshot of the node of a CPU before the input of a number: the number of its plan, the time,
/// the time at which the first plan came into force (8 bytes each), the configuration, the words.
const SNAPSHOT: u32 = 6;

/// Bytes of a snapshot before its configuration.
const SNAPSHOT_BYTES: usize = 24;

/// Writes a recording.
#[derive(Debug)]
pub struct Writer<W: Write> {
    to: W,
    buffer: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins a recording.
    pub fn new(mut to: W) -> io::Result<Self> {
        to.write_all(&MAGIC)?;
        to.write_all(&FORMAT_VERSION.to_le_bytes())?;
        to.write_all(&[0; 4])?;
        Ok(Self { to, buffer: Vec::new() })
    }

    /// A plan that was kept under `number`, as it began on `cpu`.
    pub fn plan(&mut self, number: u64, cpu: u32, plan: &KeptPlan) -> io::Result<()> {
        let config = wire::encode::config(&plan.config);
        self.kept(number, cpu, plan.rate_insns_per_ms, &[&config, &plan.message])
    }

    /// Writes a plan in the form in which the kernel stores it: the configuration, and the message
    /// that was written. It was stored under `number`, and began on `cpu`.
    pub(crate) fn kept(
        &mut self,
        number: u64,
        cpu: u32,
        rate_insns_per_ms: u64,
        parts: &[&[u8]],
    ) -> io::Result<()> {
        self.buffer.clear();
        self.buffer.extend(rate_insns_per_ms.to_le_bytes());
        for part in parts {
            self.buffer.extend_from_slice(part);
        }
        self.piece(PLAN, cpu, number)
    }

    /// The plan that came into force on `cpu` under `number` is not known.
    pub fn no_plan(&mut self, number: u64, cpu: u32) -> io::Result<()> {
        self.buffer.clear();
        self.piece(NO_PLAN, cpu, number)
    }

    /// Writes a snapshot of the node of `cpu`, as it was before the input of number `first`.
    pub fn snapshot(&mut self, cpu: u32, first: u64, snapshot: &Snapshot) -> io::Result<()> {
        self.buffer.clear();
        for number in [snapshot.plan, snapshot.time_ns, snapshot.begun_ns] {
            self.buffer.extend(number.to_le_bytes());
        }
        self.buffer.extend_from_slice(&wire::encode::config(&snapshot.config));
        self.buffer.extend(snapshot.words.iter().flat_map(|word| word.to_le_bytes()));
        self.piece(SNAPSHOT, cpu, first)
    }

    /// Writes inputs of `cpu`; the first one has the number `first`.
    pub fn inputs(&mut self, cpu: u32, first: u64, inputs: &[Input]) -> io::Result<()> {
        self.buffer.clear();
        for input in inputs {
            self.buffer.extend(input_bytes(input));
        }
        self.piece(INPUTS, cpu, first)
    }

    /// Notes that `count` inputs of `cpu` are lost, from number `first` on.
    pub fn lost(&mut self, cpu: u32, first: u64, count: u64) -> io::Result<()> {
        self.buffer.clear();
        self.buffer.extend(count.to_le_bytes());
        self.piece(LOST, cpu, first)
    }

    /// Ends the recording.
    pub fn end(mut self) -> io::Result<W> {
        self.buffer.clear();
        self.piece(END, 0, 0)?;
        self.to.flush()?;
        Ok(self.to)
    }

    fn piece(&mut self, kind: u32, cpu: u32, number: u64) -> io::Result<()> {
        let bytes = self.buffer.len();
        let mut header = [0; PIECE_BYTES];
        header[..4].copy_from_slice(&kind.to_le_bytes());
        header[4..8].copy_from_slice(&cpu.to_le_bytes());
        header[8..16].copy_from_slice(&number.to_le_bytes());
        header[16..24].copy_from_slice(&(bytes as u64).to_le_bytes());
        header[24..32].copy_from_slice(&check(&self.buffer).to_le_bytes());
        let own = check(&header[..32]);
        header[32..].copy_from_slice(&own.to_le_bytes());
        self.buffer.resize(bytes.next_multiple_of(8), 0);
        self.to.write_all(&header)?;
        self.to.write_all(&self.buffer)
    }
}

/// A number that another byte makes another.
fn check(bytes: &[u8]) -> u64 {
    let mut check = bytes.len() as u64;
    for word in bytes.chunks(8) {
        let mut whole = [0; 8];
        whole[..word.len()].copy_from_slice(word);
        // An odd number, so that nothing is lost.
        check = (check ^ u64::from_le_bytes(whole)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        check ^= check >> 29;
    }
    check
}

fn input_bytes(input: &Input) -> [u8; INPUT_BYTES] {
    let mut bytes = [0; INPUT_BYTES];
    bytes[..8].copy_from_slice(&input.time_ns.to_le_bytes());
    bytes[8..16].copy_from_slice(&input.value.to_le_bytes());
    bytes[16..24].copy_from_slice(&input.more.to_le_bytes());
    bytes[24..28].copy_from_slice(&input.process.to_le_bytes());
    bytes[28..30].copy_from_slice(&input.kind.to_le_bytes());
    bytes[30..].copy_from_slice(&input.reason.to_le_bytes());
    bytes
}

fn input_of(bytes: &[u8]) -> Input {
    Input {
        time_ns: u64_at(bytes, 0),
        value: u64_at(bytes, 8),
        more: u64_at(bytes, 16),
        process: u32_at(bytes, 24),
        kind: u32_at(bytes, 28) as u16,
        reason: (u32_at(bytes, 28) >> 16) as u16,
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let place = bytes.get(at..at + 8).and_then(|place| place.try_into().ok());
    u64::from_le_bytes(place.unwrap_or_default())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let place = bytes.get(at..at + 4).and_then(|place| place.try_into().ok());
    u32::from_le_bytes(place.unwrap_or_default())
}

/// A plan as it began on one CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptPlan {
    /// The rate of the CPU, which the plan may say otherwise.
    pub rate_insns_per_ms: u64,
    /// The configuration that was in force.
    pub config: Config,
    /// Message that was written, in the wire format.
    pub message: Vec<u8>,
}

/// Inputs that are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// The number of the first.
    pub first: u64,
    /// Number of the missing inputs.
    pub count: u64,
}

/// Inputs in a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputPart {
    /// The number of the first.
    pub first: u64,
    /// Inputs in their order.
    pub inputs: Vec<Input>,
}

/// A part of what a CPU was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stretch {
    /// The inputs are present.
    Inputs(InputPart),
    /// The inputs are lost: the recorder was too slow.
    Lost(Hole),
    /// The node before the next input.
    Snapshot(Box<Snapshot>),
}

/// A piece of the file that is not as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Offset of the piece.
    pub offset_bytes: u64,
    /// CPU of the inputs, if the piece contains inputs.
    pub cpu: Option<u32>,
    /// Their numbers.
    pub inputs: Hole,
}

/// A recording, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// Stretches by CPU, in the order of the ring.
    pub cpus: BTreeMap<u32, Vec<Stretch>>,
    /// Plans by number and CPU.
    pub plans: BTreeMap<(u64, u32), KeptPlan>,
    /// Plans that came into force and were not stored, by number and CPU.
    pub missing_plans: Vec<(u64, u32)>,
    /// Whether the recording has an end.
    pub complete: bool,
    /// Pieces that differ from what was written, and are used nevertheless.
    pub damage: Vec<Damage>,
}

/// Reason for which a file can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The file is no recording.
    NoRecording,
    /// The file has another version of the format.
    Version(u32),
    /// A part of the file makes no sense.
    Broken {
        /// Offset of that part.
        offset_bytes: u64,
        /// Description of the fault.
        what: String,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRecording => write!(
                f,
                "this is no recording of inputs; name a file of pbsctl node record or pbsctl sim \
                 --record"
            ),
            Self::Version(version) => write!(
                f,
                "the recording has version {version}, and this pbsctl reads version \
                 {FORMAT_VERSION}; replay it with the pbsctl that recorded it"
            ),
            Self::Broken { offset_bytes, what } => {
                write!(f, "the recording is broken at byte {offset_bytes}: {what}")
            }
        }
    }
}

impl std::error::Error for ReadError {}

/// Whether a file begins as a recording.
pub fn is_recording(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

impl Recording {
    /// Reads a file.
    ///
    /// One that was cut short is read as far as it goes. What is not as it was written,
    /// and can be read, is noted.
    pub fn read(bytes: &[u8]) -> Result<Self, ReadError> {
        if !is_recording(bytes) || bytes.len() < HEADER_BYTES {
            return Err(ReadError::NoRecording);
        }
        let version = u32_at(bytes, 8);
        if version != FORMAT_VERSION || u32_at(bytes, 12) != 0 {
            return Err(ReadError::Version(version));
        }
        let mut recording = Self::default();
        let mut at = HEADER_BYTES;
        while let Some(header) = bytes.get(at..at + PIECE_BYTES) {
            let broken =
                |what: &str| ReadError::Broken { offset_bytes: at as u64, what: what.into() };
            if recording.complete {
                return Err(broken("there is data after the end"));
            }
            if check(&header[..32]) != u64_at(header, 32) {
                return Err(broken("the header of this block was changed"));
            }
            let (kind, cpu, number) = (u32_at(header, 0), u32_at(header, 4), u64_at(header, 8));
            let length = usize::try_from(u64_at(header, 16)).unwrap_or(usize::MAX);
            let begin = at + PIECE_BYTES;
            let rest = bytes.get(begin..).unwrap_or_default();
            let Some(body) = rest.get(..length) else {
                // It was cut short, perhaps in the middle of inputs.
                let whole = rest.len() / INPUT_BYTES * INPUT_BYTES;
                if kind == INPUTS && whole > 0 {
                    recording.take_inputs(cpu, number, &rest[..whole]);
                }
                return Ok(recording);
            };
            if check(body) != u64_at(header, 24) {
                let count = if kind == INPUTS { (length / INPUT_BYTES) as u64 } else { 0 };
                recording.damage.push(Damage {
                    offset_bytes: begin as u64,
                    cpu: (kind == INPUTS).then_some(cpu),
                    inputs: Hole { first: number, count },
                });
            }
            match kind {
                PLAN => {
                    let plan = plan_of(body).map_err(|what| broken(&what))?;
                    recording.plans.insert((number, cpu), plan);
                }
                INPUTS if length % INPUT_BYTES == 0 => recording.take_inputs(cpu, number, body),
                INPUTS => return Err(broken("an input here is not 32 bytes long")),
                LOST if length == 8 => {
                    let hole = Hole { first: number, count: u64_at(body, 0) };
                    let stretches = recording.cpus.entry(cpu).or_default();
                    stretches.push(Stretch::Lost(hole));
                }
                SNAPSHOT => {
                    let snapshot = snapshot_of(body).map_err(|what| broken(&what))?;
                    let stretches = recording.cpus.entry(cpu).or_default();
                    stretches.push(Stretch::Snapshot(Box::new(snapshot)));
                }
                NO_PLAN if length == 0 => recording.missing_plans.push((number, cpu)),
                END if length == 0 => recording.complete = true,
                _ => return Err(broken("this version has no such block")),
            }
            at = begin.saturating_add(length.next_multiple_of(8));
        }
        Ok(recording)
    }

    fn take_inputs(&mut self, cpu: u32, first: u64, body: &[u8]) {
        let inputs = body.chunks_exact(INPUT_BYTES).map(input_of);
        let stretches = self.cpus.entry(cpu).or_default();
        if let Some(Stretch::Inputs(part)) = stretches.last_mut() {
            if part.first.wrapping_add(part.inputs.len() as u64) == first {
                part.inputs.extend(inputs);
                return;
            }
        }
        stretches.push(Stretch::Inputs(InputPart { first, inputs: inputs.collect() }));
    }

    /// Returns the number of inputs.
    pub fn inputs(&self) -> u64 {
        let stretches = self.cpus.values().flatten();
        let counts = stretches.map(|stretch| match stretch {
            Stretch::Inputs(part) => part.inputs.len() as u64,
            Stretch::Lost(_) | Stretch::Snapshot(_) => 0,
        });
        counts.sum()
    }

    /// Returns the number of lost inputs.
    pub fn lost(&self) -> u64 {
        let stretches = self.cpus.values().flatten();
        let counts = stretches.map(|stretch| match stretch {
            Stretch::Inputs(_) | Stretch::Snapshot(_) => 0,
            Stretch::Lost(hole) => hole.count,
        });
        counts.fold(0, u64::saturating_add)
    }
}

fn plan_of(body: &[u8]) -> Result<KeptPlan, String> {
    let too_short = || "a plan here is shorter than its configuration".to_string();
    let rest = body.get(8..).ok_or_else(too_short)?;
    let config = rest.get(..wire::CONFIG_BYTES).ok_or_else(too_short)?;
    let config = wire::config(config).map_err(|refusal| refusal.to_string())?;
    Ok(KeptPlan {
        rate_insns_per_ms: u64_at(body, 0),
        config,
        message: rest[wire::CONFIG_BYTES..].to_vec(),
    })
}

fn snapshot_of(body: &[u8]) -> Result<Snapshot, String> {
    let too_short = || "a snapshot here is shorter than its configuration".to_string();
    let rest = body.get(SNAPSHOT_BYTES..).ok_or_else(too_short)?;
    let (config, words) = rest.split_at_checked(wire::CONFIG_BYTES).ok_or_else(too_short)?;
    if words.len() % 8 != 0 {
        return Err("a snapshot here ends within a word".into());
    }
    Ok(Snapshot {
        plan: u64_at(body, 0),
        time_ns: u64_at(body, 8),
        begun_ns: u64_at(body, 16),
        config: wire::config(config).map_err(|refusal| refusal.to_string())?,
        words: words.chunks_exact(8).map(|word| u64_at(word, 0)).collect(),
    })
}
