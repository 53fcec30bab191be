// SPDX-License-Identifier: GPL-2.0

//! The numbers of the policy.

pub use super::choices::{Dispatch, PreemptionWay, StressCause, T1State, Threshold};
pub use super::policies::IdlePolicy;

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
    /// slots (3.2.3, ideas 1 and 3), including the cost of a switch.  100 µs to 2^48; 0: a piece
    /// is the whole slot.  The default is two and a half ticks: ten of them are a window.
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
    /// 1: a process that is signalled as late by its task, its preemptions or itself does not run
    /// until the next plan (3.3.9); 0: it continues, as the thesis decides.  Without effect where
    /// slots float.
    suspends_failed = 0,
    /// t2_message: a message that a process misses in its slot is a prediction failure if it is
    /// later than planned by more than this, and by what stress adds.  Up to 2^48.  The default is
    /// that of T2_SPACER.
    t2_message_ns = 20_000_000,
    /// tm2_message: a message that ends the wait of a process is a prediction failure if it is
    /// earlier than planned by more than this.  Up to 2^48.  The default is that of the lower bound
    /// of tm2_node.
    tm2_message_ns = 100_000_000,
    /// Timeliness (3.3.2): a task that starts or ends on the clock earlier or later than planned,
    /// by more than this, is reported as information.  Up to 2^48; 0: none is.  Without effect
    /// where slots float, and where messages have planned arrivals.
    timeliness_ns = 0,
    /// Volatility (3.3.3): a node whose plans come more often than at this interval, on average, is
    /// in a volatile state, and a plan sets more stress: STRESS_RESET and up to as many points
    /// again.  Up to 2^48; 0: the same stress at all times.
    volatile_interval_ns = 0,
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
        IdlePolicy::of_number(self.idle_policy)
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

    /// Time that may be taken out of turn in a window of this period.
    pub fn kernel_budget_ns(&self, period_ns: u64) -> u64 {
        // A period is at most 10 s.
        period_ns.saturating_mul(self.kernel_budget_permille) / 1000
    }
}
