// SPDX-License-Identifier: GPL-2.0
//! Scenarios: faults of a plan beside the scatter of its lengths.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::Span;

/// Scenario of a plan.  Real lengths scatter by `task_sigma_permille` in all scenarios.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scenario {
    /// The plan has no other fault (Leppert 2021, figure 9).
    #[default]
    Normal,
    /// Every task of one process takes `deviation_permille` longer than
    /// planned.  The process bears the name `over`.
    OneOver,
    /// Every task of every process takes `deviation_permille` longer than
    /// planned.
    AllSlightlyLate,
    /// One process, named `stacking`, has a long task and nine short ones in
    /// turn, and its long tasks take `deviation_permille` longer: pushed into
    /// slots of the short ones they are preempted again and again (Leppert
    /// 2021, 3.2.3).  A long task is as long as `task_insns` allows, a short one
    /// as short.
    LongThenShort,
    /// Every task of every process takes `deviation_permille` less than
    /// planned.
    EarlyNode,
    /// One task, named `endless`, takes 2^40 instructions, or a thousand times
    /// what is planned if that is more.
    EndlessLoop,
    /// The first process, the `coordinator`, scatters work to the others, the
    /// workers of this node and of others, and collects their results before
    /// it scatters anew (Leppert 2021, 3.3.8, figure 7).  The workers of this
    /// node take `deviation_permille` less than planned; the others do not, so
    /// the coordinator waits for them (`wait_insns`) as long as the round is
    /// planned to take.  Its own tasks are exact.  All processes have as many tasks, and the order is
    /// that of the rounds, whatever `order` says.
    ScatterGather,
    /// One task, named `rogue`, takes `deviation_permille` longer than planned.
    RogueTask,
}

impl Scenario {
    /// All of them.
    pub const ALL: [Scenario; 8] = [
        Scenario::Normal,
        Scenario::OneOver,
        Scenario::AllSlightlyLate,
        Scenario::LongThenShort,
        Scenario::EarlyNode,
        Scenario::EndlessLoop,
        Scenario::ScatterGather,
        Scenario::RogueTask,
    ];

    /// Returns the name of the scenario.
    pub const fn name(self) -> &'static str {
        match self {
            Scenario::Normal => "normal",
            Scenario::OneOver => "one-over",
            Scenario::AllSlightlyLate => "all-slightly-late",
            Scenario::LongThenShort => "long-then-short",
            Scenario::EarlyNode => "early-node",
            Scenario::EndlessLoop => "endless-loop",
            Scenario::ScatterGather => "scatter-gather",
            Scenario::RogueTask => "rogue-task",
        }
    }

    /// Returns a description of the scenario in one line.
    pub const fn summary(self) -> &'static str {
        match self {
            Scenario::Normal => "real lengths scatter around the planned ones",
            Scenario::OneOver => "one process takes four times as long",
            Scenario::AllSlightlyLate => "every task takes 15 % longer",
            Scenario::LongThenShort => {
                "the long tasks of a process are late, and short ones follow"
            }
            Scenario::EarlyNode => "every task takes 30 % less",
            Scenario::EndlessLoop => "one task never ends",
            Scenario::ScatterGather => "workers are 20 % early and wait for their coordinator",
            Scenario::RogueTask => "one task takes four times as long",
        }
    }

    /// Returns an explanation of the policy's behaviour in the scenario, and of what to look for in
    /// the plan.
    pub const fn shows(self) -> &'static str {
        match self {
            Scenario::Normal => {
                "Small deviations that the node absorbs: t1 preempts, and idle slots compensate. \
                 --task-sigma-permille gives wider ones."
            }
            Scenario::OneOver => {
                "Prediction failures of one process, by task (t2_task) and in sum (t2_process), \
                 while the others keep to the plan. The process is named \"over\"."
            }
            Scenario::AllSlightlyLate => {
                "No single task is a prediction failure, but their sum is: it exceeds the capacity \
                 buffer (t2_process) and the cap of the node (t2_node), both 10 % by default."
            }
            Scenario::LongThenShort => {
                "Stacking preemptions (t2_preemptions): a long task that is pushed into the slots \
                 of the short ones behind it is preempted in each. The process is named \
                 \"stacking\", its long tasks \"long\"."
            }
            Scenario::EarlyNode => {
                "Earliness that few tasks signal alone (tm2_task is at 50 % by default), but the \
                 node does (tm2_node)."
            }
            Scenario::EndlessLoop => {
                "A process that never ends leaves the others their slots, but nothing after them: \
                 another whose last slot is ended by t1 waits for ever, unless t1_spares_last_slot \
                 is true. The task is named \"endless\"; its real length is at least 2^40."
            }
            Scenario::ScatterGather => {
                "Earliness that adds up although the node is not early, since each round ends by \
                 waiting. With idle_is_lateness the node does not signal it (tm2_node) as long as \
                 no single round is early enough, such as with --task-insns \
                 50_000_000..100_000_000. The coordinator's tasks have wait_insns."
            }
            Scenario::RogueTask => {
                "A single prediction failure (t2_task). The task is named \"rogue\"."
            }
        }
    }

    /// `deviation_permille` where it is not said; `None` where the scenario has
    /// none.
    pub const fn default_deviation_permille(self) -> Option<u64> {
        match self {
            Scenario::Normal | Scenario::EndlessLoop => None,
            Scenario::OneOver | Scenario::RogueTask => Some(3000),
            Scenario::AllSlightlyLate => Some(150),
            Scenario::LongThenShort => Some(300),
            Scenario::EarlyNode => Some(300),
            Scenario::ScatterGather => Some(200),
        }
    }

    /// Whether the scenario deviates by earliness.
    pub const fn is_early(self) -> bool {
        matches!(self, Scenario::EarlyNode | Scenario::ScatterGather)
    }

    /// Returns the permitted range of `deviation_permille`.
    pub(crate) const fn deviations_permille(self) -> Span {
        Span::new(0, if self.is_early() { 1000 } else { 100_000 })
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Scenario {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|scenario| scenario.name() == text);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("there is no scenario \"{text}\"; it can be {names}")
        })
    }
}

impl Serialize for Scenario {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
