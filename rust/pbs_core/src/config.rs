// SPDX-License-Identifier: GPL-2.0

//! The numbers of the policy.

/// Declares [`Config`] with its fields in the order of the wire format, each
/// with its default.
macro_rules! config {
    ($($(#[$meta:meta])* $name:ident = $default:expr,)*) => {
        /// The numbers of the policy: `struct pbs_config` of the wire format.
        ///
        /// Lengths are times: they are converted to instructions by the CPU's rate, once for each
        /// plan ([`Policy`](super::Policy)).  Factors are given in thousandths: 1050 means 1.05.
        /// The comment of each number states its meaning, unit and range, and its name and section
        /// in Leppert 2021; [`Config::DEFAULT`] has the defaults.  A nominal tick is 4 ms: 250 of
        /// them are a second.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Config {
            $($(#[$meta])* pub $name: u64,)*
        }

        impl Config {
            /// The names of the numbers, in the order of the wire format.
            pub const NAMES: [&'static str; Config::COUNT] = [$(stringify!($name),)*];

            /// The count of numbers.
            pub const COUNT: usize = [$(stringify!($name),)*].len();

            /// Configuration of a node for which neither its administrator nor the plan declares
            /// another one.
            pub const DEFAULT: Config = Config { $($name: $default,)* };

            /// The numbers in the order of [`Config::NAMES`].
            pub const fn values(&self) -> [u64; Config::COUNT] {
                [$(self.$name,)*]
            }

            /// A configuration of `values` in the order of [`Config::NAMES`],
            /// unchecked.
            pub const fn from_values(values: [u64; Config::COUNT]) -> Config {
                let [$($name,)*] = values;
                Config { $($name,)* }
            }
        }
    };
}

config! {
    /// σ_t1 (SIGMA_T1, 3.2.2): the share of a slot's length that may be retired
    /// in it.  1001 to 100000.
    sigma_t1_permille = 1050,
    /// PREEMPTION_LIMIT (3.2.2): a slot runs over its length by no more than this.  Up to 2^48 ns
    /// (78 hours), like all times for which no other maximum is stated.  The thesis gives it in
    /// ticks (MAX_TICKS_OFF).
    preemption_limit_ns = 50_000_000,
    /// NO_PREEMPTION (3.2.2): a slot may always run over its length by this.  Up to
    /// `preemption_limit_ns`.  The thesis gives it in ticks (MIN_TICKS_OFF).  The default is one
    /// tick: a task that needs four ticks instead of one is then interrupted once, because its slot
    /// and the next one of that length have room for four.
    no_preemption_ns = 4_000_000,
    /// A slot's ceiling on the clock is its length at the node's rate, times this, plus
    /// `ceiling_extra_ns`: a count of user instructions alone bounds no time.  1000 to 1000000.
    ceiling_factor_permille = 2000,
    /// The constant part of the ceiling.  100 µs to 3600 s.
    ceiling_extra_ns = 10_000_000,
    /// Execution time and unallocated time together (2.4.3).  1 ms to 10 s.
    window_period_ns = 100_000_000,
    /// Unallocated time, at the end of each period.  1 % to 90 % of it.
    window_unallocated_ns = 5_000_000,
    /// σ_t2 (SIGMA_T2, 3.3.6): the share of its planned length that a task may
    /// retire; σ_t-2 (SIGMA_TM2, 3.3.8) is 2 − σ_t2.  More than
    /// `sigma_t1_permille`, to 100000.  The default is that of listing 5.
    sigma_t2_permille = 1500,
    /// T2_SPACER (3.3.6): a task may always be late by this.  Its negative is
    /// TM2_TASK_SIGNALING_START (3.3.8): a task may always be early by this.  More than
    /// `no_preemption_ns`, to 2^49.  The default is the 5 ticks of listing 5.
    t2_spacer_ns = 20_000_000,
    /// T2_TASK_SIGNALING_LIMIT (3.3.6): greatest lateness of a task that is not signalled.  Its
    /// negative is TM2_TASK_SIGNALING_LIMIT (3.3.8): greatest earliness of a task that is not
    /// signalled.  More than `preemption_limit_ns`, to 2^49.  The default is the second of listing
    /// 5.
    t2_task_signaling_limit_ns = 1_000_000_000,
    /// MAX_PREEMPTIONS (3.2.3, 3.3.6): number of preemptions of a task that is signalled.  1 to
    /// 1000000.
    max_preemptions = 5,
    /// CAPACITY_BUFFER (3.3.6): ratio of the node's capacity to the capacity that the planner plans
    /// with.  1000 to 100000.  The default is that of the text: the planner plans with a tenth less
    /// than the node's capacity, which is 1 / 0.9.
    capacity_buffer_permille = 1111,
    /// AVAILABLE_PLAN_BUFFER (3.3.6): the share of its plan buffer's extra
    /// capacity that a process may use up.  Up to 1000.
    available_plan_buffer_permille = 500,
    /// RESCHEDULE_TIME (3.3.6): the time between a prediction failure and the
    /// plan that answers it.  Up to 2^48.
    reschedule_time_ns = 10_000_000,
    /// T2_MIN_PROCESS, also T2_PROCESS_MINIMUM (3.3.6): the least t2_process.  Times the number of
    /// active processes, it is T2_NODE_LOWER_BOUND.  Up to 2^48.
    t2_min_process_ns = 20_000_000,
    /// T2_NODE_LATENESS_CAP (3.3.6): *one plus* the share of the planned
    /// instructions by which a node may be late.  1000 to 100000.
    t2_node_lateness_cap_permille = 1100,
    /// TM2_NODE_EARLINESS_CAP (3.3.8): the share *itself* of the planned
    /// instructions by which a node may be early.  Up to 1000.
    tm2_node_earliness_cap_permille = 100,
    /// STRESS_RESET (3.3.6): the stress after a plan has arrived, in points.  Up to 1000000.
    stress_reset = 50,
    /// STRESS_GAIN (3.3.6): amount that each point of stress adds to t2_process and t2_node.  Up to
    /// 2^40; 0 switches stress off.  The default is a nominal tick: the tolerance then shrinks by
    /// as much time as has passed.  All of `stress_reset` together is more than T2_MIN_PROCESS, and
    /// more than the RESCHEDULE_TIME of a planner that needs a tenth of a second.
    stress_gain_ns = 4_000_000,
    /// 1 / HZ (A.1): stress falls by one point in this time, whatever tick the
    /// kernel has.  100 µs to 1 s.
    nominal_tick_ns = 4_000_000,
    /// The thresholds that are switched on: a sum of [`Threshold`]s.
    thresholds = Threshold::ALL_BITS,
    /// Policy of idle slots (3.2.3): an [`IdlePolicy`] as number.
    idle_policy = IdlePolicy::Latest as u64,
    /// 1: instructions that could have been retired while the plan waited for
    /// its processes lessen the earliness of the node (3.3.8, "Accumulating
    /// earliness"); 0: they do not.
    idle_is_lateness = 0,
    /// 1: t1 does not end the last slot of a process; 0: it does, as in the thesis.  A task whose
    /// process has no slot left can continue only in idle slots and after the plan: its deadline
    /// would be missed for little (REQ-NF-2).
    t1_spares_last_slot = 1,
    /// The share of each window that threads which may not run any more, or not yet, may take on
    /// their way out of the kernel.  After that the process that is granted the CPU goes first.  1
    /// to 1000.
    kernel_budget_permille = 20,
    /// The lower bound of tm2_node (3.3.8): a node may always be early by this.  Up to 2^48.  The
    /// thesis uses the lower bound of t2_node, which is small as long as few processes have begun:
    /// then one early task makes the node early.
    tm2_node_lower_bound_ns = 100_000_000,
    /// The share of its planned peak of memory that a process may use.  Up to
    /// 100000.
    sigma_memory_permille = 1100,
    /// A process may always use this much more than its planned peak.  Up to 2^48.
    memory_spacer_bytes = 1 << 20,
    /// Greatest excess of a process over its planned peak that is not signalled.
    /// `memory_spacer_bytes` to 2^56.
    memory_signaling_limit_bytes = 256 << 20,
    /// Treatment of a task that is preempted more than once (3.2.3): a [`PreemptionWay`] as number.
    preemption_way = PreemptionWay::Capped as u64,
    /// Length of the pieces into which [`IdlePolicy::Pieces`] and [`IdlePolicy::ByState`] cut idle
    /// slots (3.2.3, ideas 1 and 3), including the cost of a switch.  100 µs to 2^48; 0: a piece is
    /// the whole slot.  The default is two and a half ticks: ten of them are a window.
    idle_piece_ns = 10_000_000,
    /// The order in which processes run: a [`Dispatch`] as number.
    dispatch = Dispatch::Thesis as u64,
    /// The plans that set stress to `stress_reset` (6.2.3): a [`StressCause`] as number.
    stress_cause = StressCause::Every as u64,
    /// 1: RESCHEDULE_TIME is what the node has measured (3.3.3): the average time from a failure to
    /// the plan that deals with it.  Until a plan has dealt with a failure, and with 0, it is
    /// `reschedule_time_ns`.
    reschedule_time_measured = 0,
    /// 1: a plan deals with information, too (6.2.3): a level whose event came before `dealt_seq`
    /// is not reported again under the plans that follow.  0: every plan makes all levels be
    /// reported again.
    info_is_dealt = 0,
    /// The least progress of a process in t2_process (3.3.6), which the thesis considers in place
    /// of T2_MIN_PROCESS: a process that has just begun may use this share of its plan buffer.  Up
    /// to 1000.
    least_progress_permille = 0,
    /// σ_t-2 (SIGMA_TM2, 3.3.8): the share of its planned length that a task must retire.  Up to
    /// 1000; 0: 2 − σ_t2, as in the thesis.
    sigma_tm2_permille = 0,
    /// TM2_TASK_SIGNALING_START (3.3.8), as a positive time: a task may always be early by this.
    /// Up to 2^49; 0: `t2_spacer_ns`.
    tm2_spacer_ns = 0,
    /// TM2_TASK_SIGNALING_LIMIT (3.3.8), as a positive time: greatest earliness of a task that is
    /// not signalled.  Up to 2^49; 0: `t2_task_signaling_limit_ns`.
    tm2_task_signaling_limit_ns = 0,
    /// The state of the node that makes t1 smaller (3.1.2, 3.2.2): a [`T1State`] as number.
    t1_state = T1State::Ignored as u64,
}

/// Thresholds that can be switched on and off in [`Config::thresholds`], as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Threshold {
    /// t1 (3.2.2).  Without it a slot lasts until its process has caught up, or
    /// to its ceiling.
    T1 = 1,
    /// t2_task (3.3.6)
    T2Task = 1 << 1,
    /// t2_process (3.3.6)
    T2Process = 1 << 2,
    /// t2_node (3.3.6)
    T2Node = 1 << 3,
    /// t2_preemptions (3.3.6)
    T2Preemptions = 1 << 4,
    /// tm2_task (3.3.8)
    Tm2Task = 1 << 5,
    /// tm2_node (3.3.8)
    Tm2Node = 1 << 6,
    /// Information on the way to t2_process and t2_node (6.2.3).  Each is reported only if its
    /// threshold is switched on.
    Info = 1 << 7,
    /// The memory of each process against its planned peak, and the memory of all processes
    /// together against the node's limit, with the information on the way to each.
    T2Memory = 1 << 8,
}

impl Threshold {
    /// All thresholds.
    pub const ALL: [Threshold; 9] = [
        Threshold::T1,
        Threshold::T2Task,
        Threshold::T2Process,
        Threshold::T2Node,
        Threshold::T2Preemptions,
        Threshold::Tm2Task,
        Threshold::Tm2Node,
        Threshold::Info,
        Threshold::T2Memory,
    ];

    /// The bits of all thresholds.
    pub const ALL_BITS: u64 = (1 << Threshold::ALL.len()) - 1;

    /// Returns the name of the threshold, as the planner writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Threshold::T1 => "t1",
            Threshold::T2Task => "t2_task",
            Threshold::T2Process => "t2_process",
            Threshold::T2Node => "t2_node",
            Threshold::T2Preemptions => "t2_preemptions",
            Threshold::Tm2Task => "tm2_task",
            Threshold::Tm2Node => "tm2_node",
            Threshold::Info => "info",
            Threshold::T2Memory => "t2_memory",
        }
    }
}

/// Policy of idle slots: which candidate gets an idle slot, and how much of it.  The policy also
/// selects the candidate that gets the slot of a process that cannot run, or continues after the
/// plan: `enum pbs_idle_policy`.
///
/// Leppert 2021, 3.2.3, discusses five ideas and adopts none of them: it uses
/// [`IdlePolicy::Latest`].  Rules about pieces or whole slots apply to idle slots alone: elsewhere
/// a turn lasts to the end of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum IdlePolicy {
    /// The process with the greatest lateness (Leppert 2021, listing 2).
    Latest = 0,
    /// The process with the least slack: the part of the time to its deadline that its plan buffer
    /// (3.3.3) leaves after its lateness is subtracted.
    LeastSlack = 1,
    /// Idea 1: pieces of one size ([`Config::idle_piece_ns`]); the candidate that has waited
    /// longest gets the next one.  No piece begins for which there is no room: the rest is added to
    /// the last piece.
    Pieces = 2,
    /// Idea 2: equal parts for all candidates at the time when the first of them gets the slot, in
    /// the order in which they have waited.
    EqualShares = 3,
    /// Idea 3: pieces as with `Pieces`, the smaller the later the node is: from whole pieces on a
    /// node that is not late to quarters at t2_node.
    ByState = 4,
    /// Idea 4: the whole slot for one process: the first idle slot for the first process of the
    /// plan, the next one for the next.  A following plan continues this round.  If that process is
    /// no candidate, no other process gets the slot.  In other slots, the candidate that has waited
    /// longest goes first.
    RoundRobin = 5,
    /// Idea 5: the process with the closest deadline: the end of its last slot in the plan, plus
    /// its plan buffer.
    ClosestDeadline = 6,
    /// No process: idle slots stay idle.  A yardstick for all others.  In other slots as `Latest`.
    Nobody = 7,
    /// The latest process whose task was preempted.  Processes that others have pushed along get
    /// no idle slot.  In other slots, too, preempted tasks go first.
    Preempted = 8,
}

impl IdlePolicy {
    /// All policies, by number.
    pub const ALL: [IdlePolicy; 9] = [
        IdlePolicy::Latest,
        IdlePolicy::LeastSlack,
        IdlePolicy::Pieces,
        IdlePolicy::EqualShares,
        IdlePolicy::ByState,
        IdlePolicy::RoundRobin,
        IdlePolicy::ClosestDeadline,
        IdlePolicy::Nobody,
        IdlePolicy::Preempted,
    ];

    /// Returns the name of the policy, as the planner writes it.
    pub const fn name(self) -> &'static str {
        match self {
            IdlePolicy::Latest => "latest",
            IdlePolicy::LeastSlack => "least_slack",
            IdlePolicy::Pieces => "pieces",
            IdlePolicy::EqualShares => "equal_shares",
            IdlePolicy::ByState => "by_state",
            IdlePolicy::RoundRobin => "round_robin",
            IdlePolicy::ClosestDeadline => "closest_deadline",
            IdlePolicy::Nobody => "nobody",
            IdlePolicy::Preempted => "preempted",
        }
    }
}

/// Treatment of a task that reaches t1 of the slots into which it was pushed: `enum
/// pbs_preemption_way`.
///
/// Leppert 2021, 3.2.3, describes three ways, and combines the second and the third.  In all of
/// them slots stay where they are, and t1 is computed from the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum PreemptionWay {
    /// The choice of the thesis: the task is pushed on from slot to slot, and MAX_PREEMPTIONS is a
    /// prediction failure.
    Capped = 0,
    /// The first way: the task is preempted once, and in its next slot continues until it ends or
    /// is beyond t2_task.
    Once = 1,
    /// The second way: t1 of the slot into which the task was pushed is a prediction failure at
    /// once.
    NextSlot = 2,
    /// The third way: the task is pushed on again and again, until it ends or exceeds another t2.
    EverySlot = 3,
}

impl PreemptionWay {
    /// All ways, by number.
    pub const ALL: [PreemptionWay; 4] = [
        PreemptionWay::Capped,
        PreemptionWay::Once,
        PreemptionWay::NextSlot,
        PreemptionWay::EverySlot,
    ];

    /// Returns the name of the way, as the planner writes it.
    pub const fn name(self) -> &'static str {
        match self {
            PreemptionWay::Capped => "capped",
            PreemptionWay::Once => "once",
            PreemptionWay::NextSlot => "next_slot",
            PreemptionWay::EverySlot => "every_slot",
        }
    }
}

/// The order in which the processes of a plan run: `enum pbs_dispatch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Dispatch {
    /// Slots stay where the plan has them, and late processes fill idle slots (Leppert
    /// 2021).
    Thesis = 0,
    /// Slots float: of the processes that can run the one with the earliest deadline has
    /// the CPU, and no CPU idles while one can run.
    Deadline = 1,
}

impl Dispatch {
    /// All of them, by number.
    pub const ALL: [Dispatch; 2] = [Dispatch::Thesis, Dispatch::Deadline];

    /// The name, as the planner writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Dispatch::Thesis => "thesis",
            Dispatch::Deadline => "deadline",
        }
    }
}

/// The plans that set stress to [`Config::stress_reset`]: `enum pbs_stress_cause`.
///
/// Leppert 2021, 6.2.3: a plan may be caused by a new job alone, and need not make the node wait.
/// A plan that does not set stress leaves it as it is: it continues to fall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum StressCause {
    /// Every plan (3.3.6).
    Every = 0,
    /// A plan with a process that was not in the plan before, or with other planned lengths for
    /// the rest of a process that was.
    NewLengths = 1,
    /// A plan with other planned lengths for the rest of a process whose failure it deals with.
    FailedLengths = 2,
}

impl StressCause {
    /// All causes, by number.
    pub const ALL: [StressCause; 3] = [
        StressCause::Every,
        StressCause::NewLengths,
        StressCause::FailedLengths,
    ];

    /// Returns the name of the cause, as the planner writes it.
    pub const fn name(self) -> &'static str {
        match self {
            StressCause::Every => "every",
            StressCause::NewLengths => "new_lengths",
            StressCause::FailedLengths => "failed_lengths",
        }
    }
}

/// The state of the node that makes t1 smaller: `enum pbs_t1_state`.
///
/// Leppert 2021 considers this in 3.1.2 and 3.2.2, and computes t1 from the slot alone.  The share
/// of t1 beyond the slot becomes smaller, down to NO_PREEMPTION.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum T1State {
    /// No state: t1 is that of the slot.
    Ignored = 0,
    /// The lateness of the node: up to three quarters less at t2_node.
    Lateness = 1,
    /// The load: the share is divided by the number of active processes.
    Load = 2,
}

impl T1State {
    /// All states, by number.
    pub const ALL: [T1State; 3] = [T1State::Ignored, T1State::Lateness, T1State::Load];

    /// Returns the name of the state, as the planner writes it.
    pub const fn name(self) -> &'static str {
        match self {
            T1State::Ignored => "ignored",
            T1State::Lateness => "lateness",
            T1State::Load => "load",
        }
    }
}

impl Config {
    /// Returns the reason why the number `name` may not be less than `least`, as the end of a
    /// sentence; empty if it needs no explanation.
    pub fn why_not_less(name: &str, value: u64, least: u64) -> &'static str {
        match name {
            "sigma_t2_permille" | "t2_spacer_ns" | "t2_task_signaling_limit_ns"
                if value < least =>
            {
                ", as t1 must be less than t2_task"
            }
            _ => "",
        }
    }

    /// Whether this threshold is switched on.
    pub const fn has(&self, threshold: Threshold) -> bool {
        self.thresholds & threshold as u64 != 0
    }

    /// Returns the policy of idle slots.
    pub const fn idle_policy(&self) -> IdlePolicy {
        match self.idle_policy {
            1 => IdlePolicy::LeastSlack,
            2 => IdlePolicy::Pieces,
            3 => IdlePolicy::EqualShares,
            4 => IdlePolicy::ByState,
            5 => IdlePolicy::RoundRobin,
            6 => IdlePolicy::ClosestDeadline,
            7 => IdlePolicy::Nobody,
            8 => IdlePolicy::Preempted,
            _ => IdlePolicy::Latest,
        }
    }

    /// Returns the treatment of a task that is preempted more than once.
    pub const fn preemption_way(&self) -> PreemptionWay {
        match self.preemption_way {
            1 => PreemptionWay::Once,
            2 => PreemptionWay::NextSlot,
            3 => PreemptionWay::EverySlot,
            _ => PreemptionWay::Capped,
        }
    }

    /// Order in which processes run.
    pub const fn dispatch(&self) -> Dispatch {
        match self.dispatch {
            1 => Dispatch::Deadline,
            _ => Dispatch::Thesis,
        }
    }

    /// Plans that set stress.
    pub const fn stress_cause(&self) -> StressCause {
        match self.stress_cause {
            1 => StressCause::NewLengths,
            2 => StressCause::FailedLengths,
            _ => StressCause::Every,
        }
    }

    /// State of the node that makes t1 smaller.
    pub const fn t1_state(&self) -> T1State {
        match self.t1_state {
            1 => T1State::Lateness,
            2 => T1State::Load,
            _ => T1State::Ignored,
        }
    }

    /// t2_preemptions: number of preemptions of a task that is a prediction failure (3.3.6); `None`
    /// if no number is.
    ///
    /// With [`PreemptionWay::NextSlot`] the preemption in the slot into which a task was pushed is
    /// a failure: such a task has been preempted in its own slot before.
    pub const fn t2_preemptions(&self) -> Option<u64> {
        match self.preemption_way() {
            PreemptionWay::Capped => Some(self.max_preemptions),
            PreemptionWay::NextSlot => Some(2),
            PreemptionWay::Once | PreemptionWay::EverySlot => None,
        }
    }

    /// Time of each window that may be taken out of turn.
    pub fn kernel_budget_ns(&self) -> u64 {
        // A period is at most 10 s.
        self.window_period_ns
            .saturating_mul(self.kernel_budget_permille)
            / 1000
    }
}
