// SPDX-License-Identifier: GPL-2.0
//! Parameters from which a plan is generated.

use std::fmt;
use std::str::FromStr;

use pbs_text::underscored;
use pbs_uapi::{MAX_PROCESSES, MAX_SLOTS};
use serde::{Serialize, Serializer};

use crate::{Scenario, Span};

/// Parameters from which a plan is generated.
///
/// The defaults give plans like the one in the log of Leppert's simulation: three processes of 90
/// to 100 tasks of 20 ms to 1.5 s at 10^9 instructions a second, 9 % idle time, plan buffers of 9
/// %, and a TASK_SIGMA of 10 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Parameters {
    /// Scenario of the plan.
    pub scenario: Scenario,
    /// Number of processes.  1 to 1024; `scatter-gather` needs 2.
    pub processes: u64,
    /// Number of tasks of each process.  1 to 4,194,304, which also limits their sum;
    /// `long-then-short` needs 2.
    pub tasks: Span,
    /// Planned length of each task.  1 to 2^38; in `long-then-short` the
    /// greatest must be ten times the least.
    pub task_insns: Span,
    /// The share of the plan that is idle.  0 to 900.
    pub idle_permille: u64,
    /// Length of each idle slot.  1 to 2^38.
    pub idle_insns: Span,
    /// Plan buffer of each process, of the planned length of the process.  0 to
    /// 100,000.  A buffer is at most 2^56, whatever comes out.
    pub buffer_permille: Span,
    /// Order in which the processes have their slots.
    pub order: SlotOrder,
    /// TASK_SIGMA: the standard deviation of real lengths, of the planned
    /// length.  0 to 1000.  The distribution is normal around the planned
    /// length; what would be less than one instruction is one.
    pub task_sigma_permille: u64,
    /// Share of their planned length by which the scenario makes tasks late or early.  `None`: the
    /// default of [`Scenario::default_deviation_permille`].  Up to 100,000, or up to 1000 if tasks
    /// are early.
    pub deviation_permille: Option<u64>,
    /// The share of the tasks that wait for a task of another process, of those
    /// that can: one whose slot comes before.  0 to 1000.
    pub edge_permille: u64,
    /// The share of these dependencies that carry a message with a planned arrival: the planned
    /// end of the sender's slot, on a CPU that retires an instruction in a nanosecond.  0 to 1000.
    pub message_permille: u64,
    /// The standard deviation of the real lengths of tasks that send a message, of the planned
    /// length, in the place of `task_sigma_permille`.  A message really arrives when its sender
    /// ends.  0 to 1000.
    pub message_sigma_permille: u64,
    /// Planned peak of memory of each process.  0 to 2^48; 0: none.
    pub memory_bytes: Span,
    /// The standard deviation of real peaks, of the planned ones.  0 to 1000.
    pub memory_sigma_permille: u64,
    /// Another seed, another plan.
    pub seed: u64,
    /// The CPU that the plan is for.
    pub cpu: u32,
    /// The plan's number.
    pub plan_id: u64,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            scenario: Scenario::Normal,
            processes: 3,
            tasks: Span::new(90, 100),
            task_insns: Span::new(20_000_000, 1_500_000_000),
            idle_permille: 90,
            idle_insns: Span::new(100_000_000, 1_500_000_000),
            buffer_permille: Span::new(90, 90),
            order: SlotOrder::Alternate,
            task_sigma_permille: 100,
            deviation_permille: None,
            edge_permille: 0,
            message_permille: 0,
            message_sigma_permille: 100,
            memory_bytes: Span::new(0, 0),
            memory_sigma_permille: 0,
            seed: 1,
            cpu: 0,
            plan_id: 1,
        }
    }
}

/// Lengths stay so short that even a hundredfold is none that the kernel would
/// refuse.
const LENGTHS: Span = Span::new(1, 1 << 38);

impl Parameters {
    /// Whether all are in range.
    pub fn check(&self) -> Result<(), Error> {
        let one = |number| Span::new(number, number);
        let scenario = self.scenario;
        let slots = u64::from(MAX_SLOTS);
        in_range("processes", one(self.processes), Span::new(1, MAX_PROCESSES.into()))?;
        in_range("tasks", self.tasks, Span::new(1, slots))?;
        in_range("task_insns", self.task_insns, LENGTHS)?;
        in_range("idle_permille", one(self.idle_permille), Span::new(0, 900))?;
        in_range("idle_insns", self.idle_insns, LENGTHS)?;
        in_range("buffer_permille", self.buffer_permille, Span::new(0, 100_000))?;
        in_range("task_sigma_permille", one(self.task_sigma_permille), Span::new(0, 1000))?;
        in_range("edge_permille", one(self.edge_permille), Span::new(0, 1000))?;
        in_range("message_permille", one(self.message_permille), Span::new(0, 1000))?;
        in_range("message_sigma_permille", one(self.message_sigma_permille), Span::new(0, 1000))?;
        in_range("memory_bytes", self.memory_bytes, Span::new(0, 1 << 48))?;
        in_range("memory_sigma_permille", one(self.memory_sigma_permille), Span::new(0, 1000))?;
        if let Some(deviation_permille) = self.deviation_permille {
            if scenario.default_deviation_permille().is_none() {
                return Err(Error::new(
                    "deviation_permille",
                    format!("has no meaning in {scenario}; leave it out"),
                ));
            }
            let range = scenario.deviations_permille();
            in_range("deviation_permille", one(deviation_permille), range)?;
        }
        if self.processes * self.tasks.max > slots {
            return Err(Error::new(
                "tasks",
                format!(
                    "may be {} for each of {} processes, but a plan has at most {} slots; \
                     make it less",
                    underscored(self.tasks.max),
                    underscored(self.processes),
                    underscored(slots)
                ),
            ));
        }
        match scenario {
            Scenario::ScatterGather if self.processes < 2 => Err(Error::new(
                "processes",
                "is 1; scatter-gather needs a coordinator and at least one worker; write at least \
                 2",
            )),
            Scenario::LongThenShort if self.tasks.min < 2 => Err(Error::new(
                "tasks",
                format!(
                    "is {}; long-then-short needs a short task after a long one; write a least \
                     number of 2",
                    self.tasks
                ),
            )),
            Scenario::LongThenShort if self.task_insns.max < 10 * self.task_insns.min => {
                Err(Error::new(
                    "task_insns",
                    format!(
                        "is {}; in long-then-short the greatest must be ten times the least: {}",
                        self.task_insns,
                        Span::new(self.task_insns.min, 10 * self.task_insns.min)
                    ),
                ))
            }
            _ => Ok(()),
        }
    }

    /// Returns the share by which the scenario makes tasks late; negative: early.
    pub(crate) fn lateness_permille(&self) -> i64 {
        let default = self.scenario.default_deviation_permille();
        let permille = self.deviation_permille.or(default).unwrap_or(0) as i64;
        if self.scenario.is_early() {
            -permille
        } else {
            permille
        }
    }
}

fn in_range(parameter: &'static str, found: Span, range: Span) -> Result<(), Error> {
    if found.min > found.max {
        let message =
            format!("is {found}; write the least first: {}", Span::new(found.max, found.min));
        return Err(Error::new(parameter, message));
    }
    if found.min < range.min || found.max > range.max {
        let message = format!(
            "is {found}; it must be between {} and {}",
            underscored(range.min),
            underscored(range.max)
        );
        return Err(Error::new(parameter, message));
    }
    Ok(())
}

/// Order in which the processes have their slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SlotOrder {
    /// Random order, but no process has two slots in a row as long as that can be avoided (Leppert
    /// 2021, 4.3.1).
    #[default]
    Alternate,
    /// One after the other, again and again.
    Turns,
    /// Each process runs all its tasks before the next begins.
    Blocks,
}

impl SlotOrder {
    /// All of them.
    pub const ALL: [SlotOrder; 3] = [SlotOrder::Alternate, SlotOrder::Turns, SlotOrder::Blocks];

    /// Returns the name of the order.
    pub const fn name(self) -> &'static str {
        match self {
            SlotOrder::Alternate => "alternate",
            SlotOrder::Turns => "turns",
            SlotOrder::Blocks => "blocks",
        }
    }

    /// Returns a description of the order in one line.
    pub const fn summary(self) -> &'static str {
        match self {
            SlotOrder::Alternate => "by chance, with no process twice in a row where possible",
            SlotOrder::Turns => "one after the other, again and again",
            SlotOrder::Blocks => "each process runs all its tasks before the next begins",
        }
    }
}

impl FromStr for SlotOrder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|order| order.name() == text);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("there is no order \"{text}\"; it can be {names}")
        })
    }
}

impl Serialize for SlotOrder {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A parameter that no plan can be generated from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The parameter, by the name of its field.
    pub parameter: &'static str,
    /// Description of the fault and its remedy, as a continuation after the name.
    pub message: String,
}

impl Error {
    pub(crate) fn new(parameter: &'static str, message: impl Into<String>) -> Self {
        Self { parameter, message: message.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.parameter, self.message)
    }
}

impl std::error::Error for Error {}
