// SPDX-License-Identifier: GPL-2.0

//! Prediction failures: when the thresholds of Leppert 2021, chapter 3, are
//! evaluated, and what is told.
//!
//! As section 5.2 suggests, lateness is looked at only while the running task
//! is late, and earliness only where a task ends early.  What is told is told
//! once for its task, process or node, until a plan comes; the node goes on as
//! before (3.3.9).

use super::run::Run;
use super::thresholds::fraction;
use super::{Cause, Event, EventKind, Memory, Node, Sink, Threshold};

/// What was told of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// t2_task, of the current task.
    pub(super) task: Level,
    /// t2_preemptions, of the current task.
    pub(super) preemptions: Level,
    /// t2_process.
    pub(super) process: Level,
    /// t2_memory.
    pub(super) memory: Level,
}

impl Told {
    pub(super) const NOTHING: Told = Told {
        task: Level::NOTHING,
        preemptions: Level::NOTHING,
        process: Level::NOTHING,
        memory: Level::NOTHING,
    };

    /// Another task begins.
    pub(super) fn forget_task(&mut self) {
        self.task = Level::NOTHING;
        self.preemptions = Level::NOTHING;
    }
}

/// What was told of a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level {
    /// The greatest level since the plan came; 0: none.
    percent: u32,
    /// The number of the last event of a failure, until a plan deals with it.
    failure_seq: Option<u64>,
}

impl Level {
    pub(super) const NOTHING: Level = Level {
        percent: 0,
        failure_seq: None,
    };

    /// That much of the threshold was told, and the failure by the event `seq`.
    pub(super) const fn told(self, percent: u32, seq: u64) -> Level {
        match percent {
            FAILURE => Level::failure(seq),
            _ => Level { percent, ..self },
        }
    }

    /// Was less than that told?
    pub(super) const fn is_below(&self, percent: u32) -> bool {
        self.percent < percent
    }

    const fn failure(seq: u64) -> Level {
        Level {
            percent: FAILURE,
            failure_seq: Some(seq),
        }
    }

    const fn is_failure(&self) -> bool {
        self.percent == FAILURE
    }

    /// Does a plan deal with the failure that deals with the events before
    /// `dealt_seq`?
    pub(super) fn is_dealt(&self, dealt_seq: u64) -> bool {
        self.failure_seq.is_some_and(|seq| seq < dealt_seq)
    }

    /// As if the failure were told already.
    pub(super) const fn silenced(&self) -> Level {
        Level {
            percent: FAILURE,
            ..*self
        }
    }

    /// What remains under a plan that does not deal with it: all is told again,
    /// but a plan after that one may still deal with the failure.
    pub(super) const fn reopened(&self) -> Level {
        Level {
            percent: 0,
            ..*self
        }
    }
}

/// The levels on the way to t2_process and t2_node (6.2.3); the last is the
/// failure.
const LEVELS: [u32; 4] = [25, 50, 75, FAILURE];
pub(super) const FAILURE: u32 = 100;

/// The sums over the active processes (3.3.6): those that have begun and have
/// tasks left.  They are kept up to date with every change of a process, and
/// are wide enough to be exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sums {
    /// Changes with the number of the processes and with the lengths of their
    /// tasks, but not with lateness alone.  Never 0.
    progress: u32,
    /// How many they are.
    pub(super) active: u32,
    lateness_insns: i128,
    begun_insns: u128,
    finished_insns: u128,
    /// Peaks of the resident sizes.
    memory_bytes: u128,
}

impl Sums {
    pub(super) const ZERO: Sums = Sums {
        progress: 1,
        active: 0,
        lateness_insns: 0,
        begun_insns: 0,
        finished_insns: 0,
        memory_bytes: 0,
    };

    /// Takes `old` out, which is a part of them, and `new` in.
    #[inline(always)]
    pub(super) fn replace(&mut self, old: &Share, new: &Share) {
        let lengths = |share: &Share| (share.active, share.begun_insns, share.finished_insns);
        if lengths(old) != lengths(new) {
            self.advance();
            self.active = self.active.wrapping_sub(old.active.into()) + u32::from(new.active);
            let grown =
                |sum: u128, old: u64, new: u64| sum.wrapping_sub(old.into()) + u128::from(new);
            self.begun_insns = grown(self.begun_insns, old.begun_insns, new.begun_insns);
            self.finished_insns =
                grown(self.finished_insns, old.finished_insns, new.finished_insns);
        }
        self.lateness_insns += i128::from(new.lateness_insns) - i128::from(old.lateness_insns);
        if old.memory_bytes != new.memory_bytes {
            let others_bytes = self.memory_bytes.wrapping_sub(old.memory_bytes.into());
            self.memory_bytes = others_bytes + u128::from(new.memory_bytes);
        }
    }

    /// The peak of an active process has risen by as much.
    pub(super) fn add_memory(&mut self, bytes: u64) {
        self.memory_bytes += u128::from(bytes);
    }

    /// What the active processes have used at most, each by itself.
    pub(super) fn memory_bytes(&self) -> u64 {
        u64::try_from(self.memory_bytes).unwrap_or(u64::MAX)
    }

    /// The same sums, at the progress of `other`: for a comparison of the sums alone.
    #[cfg(test)]
    pub(super) fn at_progress_of(self, other: &Sums) -> Sums {
        Sums {
            progress: other.progress,
            ..self
        }
    }

    /// A process that is active has begun a task of that length.
    pub(super) fn begin_task(&mut self, insns: u64) {
        if insns != 0 {
            self.advance();
            self.begun_insns = self.begun_insns.wrapping_add(insns.into());
        }
    }

    /// What was looked at before no longer holds.
    pub(super) fn advance(&mut self) {
        self.progress = self.progress.wrapping_add(1).max(1);
    }

    /// One process has become later by as much, and nothing else has changed.
    pub(super) fn add_lateness(&mut self, insns: i64) {
        self.lateness_insns += i128::from(insns);
    }

    /// Lateness of the node.
    pub(super) fn lateness_insns(&self) -> i64 {
        let insns = self.lateness_insns as i64;
        if i128::from(insns) == self.lateness_insns {
            insns
        } else {
            self.extreme_lateness_insns()
        }
    }

    /// The same where it is not a number of 64 bits: apart, because it is asked for
    /// often.
    #[cold]
    fn extreme_lateness_insns(&self) -> i64 {
        if self.lateness_insns < 0 {
            i64::MIN
        } else {
            i64::MAX
        }
    }

    fn begun_insns(&self) -> u64 {
        u64::try_from(self.begun_insns).unwrap_or(u64::MAX)
    }

    fn finished_insns(&self) -> u64 {
        u64::try_from(self.finished_insns).unwrap_or(u64::MAX)
    }
}

/// What one process adds to the sums: nothing unless it is active.
#[derive(Clone, Copy)]
pub(super) struct Share {
    active: bool,
    lateness_insns: i64,
    begun_insns: u64,
    finished_insns: u64,
    memory_bytes: u64,
}

impl Share {
    pub(super) const NONE: Share = Share {
        active: false,
        lateness_insns: 0,
        begun_insns: 0,
        finished_insns: 0,
        memory_bytes: 0,
    };

    #[inline(always)]
    pub(super) fn of(run: &Run) -> Share {
        if !run.is_active() {
            return Share::NONE;
        }
        Share {
            active: true,
            lateness_insns: run.lateness_insns(),
            begun_insns: run.begun_insns(),
            finished_insns: run.account.planned_insns,
            memory_bytes: run.process_peak.rss_bytes,
        }
    }
}

/// When the lateness thresholds are to be looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Watch {
    /// When the current task of who runs has retired as much.
    pub(super) at_insns: u64,
    /// When it is that late.
    pub(super) at_ns: u64,
}

impl Watch {
    pub(super) const NEVER: Watch = Watch {
        at_insns: u64::MAX,
        at_ns: u64::MAX,
    };

    fn earlier(&mut self, other: &Watch) {
        self.at_insns = self.at_insns.min(other.at_insns);
        self.at_ns = self.at_ns.min(other.at_ns);
    }
}

/// What a look at the lateness thresholds found: until when another one would
/// find nothing new.
///
/// It holds as long as the progress of the node's processes does, of which all
/// thresholds are made: see [`Sums::replace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    /// The node's progress at that time.
    progress: u32,
    /// When the lateness is as much.
    at_insns: u64,
    /// When it is that late.
    at_ns: u64,
}

impl Look {
    /// Nothing was looked at.
    pub(super) const NONE: Look = Look {
        progress: 0,
        at_insns: 0,
        at_ns: 0,
    };

    /// What is left of it, however often the sums have changed on the way.
    #[cfg(test)]
    pub(super) fn still(&self, sums: &Sums) -> Look {
        let look = Look {
            progress: 1,
            ..*self
        };
        if self.progress == sums.progress {
            look
        } else {
            Look::NONE
        }
    }

    fn holds(&self, progress: u32, insns: u64, now_ns: u64) -> bool {
        self.progress == progress && insns < self.at_insns && now_ns < self.at_ns
    }
}

/// A lateness on the way to its threshold.
struct Approach {
    cause: Cause,
    lateness_insns: i64,
    limit_insns: u64,
    /// The threshold without stress.
    calm_insns: u64,
    slope: Slope,
}

/// How a threshold rises with progress: where it is above `floor_insns`, by
/// `rise_insns` in every `per_insns` that are retired, and that for
/// `left_insns` more.
#[derive(Clone, Copy)]
struct Slope {
    floor_insns: u64,
    rise_insns: u64,
    per_insns: u64,
    left_insns: u64,
}

const FLAT: Slope = Slope {
    floor_insns: u64::MAX,
    rise_insns: 0,
    per_insns: 1,
    left_insns: 0,
};

/// The thresholds of the node at a moment, and what they are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeThresholds {
    /// The stress, in points.
    pub stress: u64,
    /// Processes that have begun and have tasks left.
    pub active: u32,
    /// Lateness of the node: of the active processes together.
    pub lateness_insns: i64,
    /// What must be exceeded to be a prediction failure.
    pub t2_node_insns: u64,
    /// What it must be below of to be a prediction failure.
    pub tm2_node_insns: i64,
}

impl<M: Memory> Node<M> {
    /// The thresholds of the node.
    pub fn thresholds(&self, now_ns: u64) -> NodeThresholds {
        let stress = self.stress(now_ns);
        let sums = &self.sums;
        NodeThresholds {
            stress,
            active: sums.active,
            lateness_insns: sums.lateness_insns(),
            t2_node_insns: self
                .policy
                .t2_node_insns(sums.begun_insns(), sums.active, stress),
            tm2_node_insns: self.policy.tm2_node_insns(sums.finished_insns()),
        }
    }

    /// What the lateness of process `p` must exceed to be a prediction failure:
    /// its capacity buffer and its t2_process.
    pub fn process_limit_insns(&self, p: u32, now_ns: u64) -> u64 {
        let progress = self.runs.get(p as usize).map(Run::progress);
        let stress = self.stress(now_ns);
        self.policy
            .process_limit_insns(&progress.unwrap_or_default(), self.sums.active, stress)
    }

    fn stress(&self, now_ns: u64) -> u64 {
        self.policy
            .config
            .stress(now_ns.saturating_sub(self.installed_ns))
    }

    /// Looks at the lateness thresholds of `p`, which runs or ends its task.
    #[inline(always)]
    pub(super) fn watch(&mut self, p: u32, now_ns: u64, sink: &mut impl Sink) -> Watch {
        const LATENESS: u64 = Threshold::T2Task as u64
            | Threshold::T2Process as u64
            | Threshold::T2Node as u64
            | Threshold::T2Preemptions as u64;
        let Some(run) = self.runs.get(p as usize) else {
            return Watch::NEVER;
        };
        if self.policy.config.thresholds & LATENESS == 0 {
            return Watch::NEVER;
        }
        if !run.is_late() {
            return Watch {
                at_insns: run.planned_insns.saturating_add(1),
                ..Watch::NEVER
            };
        }
        self.watch_late(p, now_ns, sink)
    }

    /// The same for a process whose task is late.
    #[inline(never)]
    fn watch_late(&mut self, p: u32, now_ns: u64, sink: &mut impl Sink) -> Watch {
        let Some(run) = self.runs.get(p as usize) else {
            return Watch::NEVER;
        };
        let (retired_insns, mut look) = (run.retired_insns, run.look);
        let progress = self.sums.progress;
        if !look.holds(progress, retired_insns, now_ns) {
            let run = *run;
            look = self.look_at_process(p, &run, now_ns, sink);
        }
        let mut watch = Watch {
            at_insns: look.at_insns,
            at_ns: look.at_ns,
        };
        if self.policy.config.has(Threshold::T2Node) {
            let lateness_insns = self.sums.lateness_insns();
            let late_insns = lateness_insns.max(0).unsigned_abs();
            if !self.node_look.holds(progress, late_insns, now_ns) {
                self.look_at_node(p, now_ns, sink);
            }
            let left_insns = match self.node_look.at_insns {
                u64::MAX => u64::MAX,
                at_insns => i64::try_from(at_insns)
                    .unwrap_or(i64::MAX)
                    .saturating_sub(lateness_insns)
                    .max(0)
                    .unsigned_abs(),
            };
            watch.earlier(&Watch {
                at_insns: retired_insns.saturating_add(left_insns),
                at_ns: self.node_look.at_ns,
            });
        }
        watch
    }

    /// Looks at the thresholds of the process `p` and its task.
    #[inline(never)]
    fn look_at_process(&mut self, p: u32, run: &Run, now_ns: u64, sink: &mut impl Sink) -> Look {
        let mut watch = Watch {
            at_insns: self.watch_task(p, now_ns, sink),
            ..Watch::NEVER
        };
        self.watch_preemptions(p, now_ns, sink);
        if self.policy.config.has(Threshold::T2Process) {
            let approach = self.approach_of_process(run, self.stress(now_ns));
            let level = self.watch_level(&approach, run.told.process, p, now_ns, sink);
            self.update_task(p, |run| run.told.process = level);
            watch.earlier(&self.next_look(&approach, level, run.retired_insns, now_ns));
        }
        let look = Look {
            progress: self.sums.progress,
            at_insns: watch.at_insns,
            at_ns: watch.at_ns,
        };
        self.update_task(p, |run| run.look = look);
        look
    }

    /// Looks at the lateness threshold of the node, while `p` runs.
    #[inline(never)]
    fn look_at_node(&mut self, p: u32, now_ns: u64, sink: &mut impl Sink) {
        let approach = self.approach_of_node(self.stress(now_ns));
        self.told_late = self.watch_level(&approach, self.told_late, p, now_ns, sink);
        let late_insns = approach.lateness_insns.max(0).unsigned_abs();
        let early_insns = approach.lateness_insns.min(0).unsigned_abs();
        let watch = self.next_look(&approach, self.told_late, late_insns, now_ns);
        self.node_look = Look {
            progress: self.sums.progress,
            // What is left is counted from the lateness, which may be negative.
            at_insns: match watch.at_insns {
                u64::MAX => u64::MAX,
                at_insns => at_insns.saturating_sub(early_insns),
            },
            at_ns: watch.at_ns,
        };
    }

    /// t2_task.  Returns the count of the task at which to look again.
    fn watch_task(&mut self, p: u32, now_ns: u64, sink: &mut impl Sink) -> u64 {
        let Some(run) = self.runs.get(p as usize) else {
            return u64::MAX;
        };
        if !self.policy.config.has(Threshold::T2Task) || run.told.task.is_failure() {
            return u64::MAX;
        }
        let t2_task_insns = self.policy.t2_task_insns(run.planned_insns);
        if run.retired_insns <= t2_task_insns {
            return t2_task_insns.saturating_add(1);
        }
        let seq = self.signal_late(Cause::Task, p, t2_task_insns, FAILURE, now_ns, sink);
        self.update_task(p, |run| run.told.task = Level::failure(seq));
        u64::MAX
    }

    /// t2_preemptions
    pub(super) fn watch_preemptions(&mut self, p: u32, now_ns: u64, sink: &mut impl Sink) {
        let Some(run) = self.runs.get(p as usize) else {
            return;
        };
        let Some(max_preemptions) = self.policy.config.t2_preemptions() else {
            return;
        };
        if !self.policy.config.has(Threshold::T2Preemptions)
            || run.told.preemptions.is_failure()
            || u64::from(run.preemptions) < max_preemptions
        {
            return;
        }
        let cause = Cause::Preemptions;
        let seq = self.signal_late(cause, p, max_preemptions, FAILURE, now_ns, sink);
        self.update_task(p, |run| run.told.preemptions = Level::failure(seq));
    }

    /// t2_process, in both its stages
    fn approach_of_process(&self, run: &Run, stress: u64) -> Approach {
        let (policy, active) = (&self.policy, self.sums.active);
        let progress = run.progress();
        Approach {
            cause: Cause::Process,
            lateness_insns: run.lateness_insns(),
            limit_insns: policy.process_limit_insns(&progress, active, stress),
            calm_insns: policy.process_limit_insns(&progress, active, 0),
            // Only the allowed plan buffer rises with progress.
            slope: Slope {
                floor_insns: policy
                    .capacity_buffer_insns(progress.begun_insns)
                    .max(policy.t2_min_process_insns),
                rise_insns: policy.cleared_plan_buffer_insns(progress.buffer_insns, active),
                per_insns: progress.planned_insns,
                left_insns: progress
                    .planned_insns
                    .saturating_sub(progress.retired_insns),
            },
        }
    }

    /// t2_node without stress.
    pub(super) fn calm_t2_node_insns(&self) -> u64 {
        let sums = &self.sums;
        self.policy
            .t2_node_insns(sums.begun_insns(), sums.active, 0)
    }

    /// t2_node
    fn approach_of_node(&self, stress: u64) -> Approach {
        let (policy, sums) = (&self.policy, &self.sums);
        let (begun_insns, active) = (sums.begun_insns(), sums.active);
        Approach {
            cause: Cause::Node,
            lateness_insns: sums.lateness_insns(),
            limit_insns: policy.t2_node_insns(begun_insns, active, stress),
            calm_insns: self.calm_t2_node_insns(),
            slope: FLAT,
        }
    }

    /// Tells the greatest level that a lateness has reached, if it is above
    /// the one that was told.  Returns what has been told now.
    fn watch_level(
        &mut self,
        approach: &Approach,
        told: Level,
        p: u32,
        now_ns: u64,
        sink: &mut impl Sink,
    ) -> Level {
        let limit_insns = approach.limit_insns;
        let reached = self
            .levels()
            .rev()
            .find(|&percent| approach.exceeds(limit_insns, percent));
        let Some(percent) = reached.filter(|&percent| told.is_below(percent)) else {
            return told;
        };
        let seq = self.signal_late(approach.cause, p, limit_insns, percent, now_ns, sink);
        told.told(percent, seq)
    }

    /// When a lateness may exceed the level that is to be told next.  Where
    /// only stress holds it back, that may be at the next nominal tick.
    ///
    /// `count_insns`: what `at_insns` is counted from.
    fn next_look(&self, approach: &Approach, told: Level, count_insns: u64, now_ns: u64) -> Watch {
        let Some(percent) = self.levels().find(|&percent| told.is_below(percent)) else {
            return Watch::NEVER;
        };
        let held_back = approach.exceeds(approach.calm_insns, percent);
        let (limit_insns, at_ns) = if held_back {
            (approach.limit_insns, self.next_tick_ns(now_ns))
        } else {
            (approach.calm_insns, u64::MAX)
        };
        let left_insns = approach.crossing_insns(limit_insns, percent);
        Watch {
            at_insns: count_insns.saturating_add(left_insns),
            at_ns,
        }
    }

    /// The levels that are told, ascending.
    fn levels(&self) -> impl DoubleEndedIterator<Item = u32> {
        let info = self.policy.config.has(Threshold::Info);
        LEVELS
            .into_iter()
            .filter(move |&percent| info || percent == FAILURE)
    }

    /// When stress falls next.
    fn next_tick_ns(&self, now_ns: u64) -> u64 {
        let since_ns = now_ns.saturating_sub(self.installed_ns);
        let tick_ns = self.policy.config.nominal_tick_ns;
        match since_ns.checked_rem(tick_ns) {
            Some(phase_ns) => now_ns.saturating_add(tick_ns - phase_ns),
            None => u64::MAX,
        }
    }

    /// Looks at the earliness thresholds: the current task of `p` has ended
    /// early, and stands in the account.
    #[inline]
    pub(super) fn watch_early(
        &mut self,
        p: u32,
        planned_insns: u64,
        retired_insns: u64,
        now_ns: u64,
        sink: &mut impl Sink,
    ) {
        // Most tasks are not even as early as a threshold is at least.
        let early_insns = planned_insns.saturating_sub(retired_insns);
        if self.policy.config.has(Threshold::Tm2Task) && early_insns > self.policy.t2_spacer_insns {
            self.watch_early_task(p, planned_insns, retired_insns, now_ns, sink);
        }
        let least_insns = self.policy.tm2_node_lower_bound_insns;
        let watches = self.policy.config.has(Threshold::Tm2Node) && !self.told_early.is_failure();
        if watches && self.early_insns() > least_insns {
            self.watch_early_node(p, retired_insns, now_ns, sink);
        }
    }

    /// tm2_task
    fn watch_early_task(
        &mut self,
        p: u32,
        planned_insns: u64,
        retired_insns: u64,
        now_ns: u64,
        sink: &mut impl Sink,
    ) {
        let tm2_task_insns = self.policy.tm2_task_insns(planned_insns);
        if retired_insns < tm2_task_insns {
            let event = self.signal(EventKind::Early, Cause::Task, p, now_ns);
            let event = Event {
                retired_insns,
                value: tm2_task_insns,
                ..event
            };
            self.tell(event, sink);
        }
    }

    /// tm2_node
    fn watch_early_node(&mut self, p: u32, retired_insns: u64, now_ns: u64, sink: &mut impl Sink) {
        let thresholds = self.thresholds(now_ns);
        let idle_insns = i64::try_from(self.idle_insns).unwrap_or(i64::MAX);
        let lateness_insns = thresholds.lateness_insns.saturating_add(idle_insns);
        if thresholds.stress != 0 || lateness_insns >= thresholds.tm2_node_insns {
            return;
        }
        let event = self.signal(EventKind::Early, Cause::Node, p, now_ns);
        let event = Event {
            retired_insns,
            // Two's complement: it is negative.
            value: thresholds.tm2_node_insns as u64,
            node_lateness_insns: lateness_insns,
            ..event
        };
        self.told_early = Level::failure(self.tell(event, sink));
    }

    /// Counts as idle what could have been retired while the plan waited for
    /// its processes.
    pub(super) fn count_idle(&mut self, plan_ns: u64) {
        self.idle_insns = self.idle_insns_at(plan_ns);
        self.waits_since_ns = None;
    }

    /// What is idle at `plan_ns` (3.3.8, "Accumulating earliness"), as far as
    /// the node is early: idling can make it less early, not late.
    pub(super) fn idle_insns_at(&self, plan_ns: u64) -> u64 {
        let Some(since_ns) = self.waits_since_ns else {
            return self.idle_insns;
        };
        let waited_ns = plan_ns.saturating_sub(since_ns);
        self.idle_insns
            .saturating_add(self.rate.to_insns(waited_ns))
            .min(self.early_insns())
    }

    /// By how much the node is early.
    pub(super) fn early_insns(&self) -> u64 {
        self.sums.lateness_insns().min(0).unsigned_abs()
    }

    /// Tells that `percent` of a lateness threshold is exceeded.
    fn signal_late(
        &mut self,
        cause: Cause,
        p: u32,
        value: u64,
        percent: u32,
        now_ns: u64,
        sink: &mut impl Sink,
    ) -> u64 {
        let kind = if percent == FAILURE {
            EventKind::Late
        } else {
            EventKind::Info
        };
        let event = Event {
            value,
            level_percent: percent,
            ..self.signal(kind, cause, p, now_ns)
        };
        self.tell(event, sink)
    }

    pub(super) fn signal(&self, kind: EventKind, cause: Cause, p: u32, now_ns: u64) -> Event {
        Event {
            reason: cause as u16,
            stress: u32::try_from(self.stress(now_ns)).unwrap_or(u32::MAX),
            level_percent: FAILURE,
            ..self.process_event(kind, p, now_ns)
        }
    }
}

impl Approach {
    fn exceeds(&self, limit_insns: u64, percent: u32) -> bool {
        let level_insns = level_insns(limit_insns, percent);
        u64::try_from(self.lateness_insns).is_ok_and(|lateness_insns| lateness_insns > level_insns)
    }

    /// After how many instructions the lateness, which grows with each of
    /// them, may exceed `percent` of the threshold that is at `limit_insns`
    /// now.
    ///
    /// Where the threshold rises more than half as fast, it is looked at again
    /// after steps that find the crossing to a thousandth of the limit.
    fn crossing_insns(&self, limit_insns: u64, percent: u32) -> u64 {
        let Slope {
            floor_insns,
            rise_insns,
            per_insns,
            left_insns,
        } = self.slope;
        let level = level_insns(limit_insns, percent);
        // By so much it may grow at least.
        let room = i128::from(level) - i128::from(self.lateness_insns);
        let room_insns = u64::try_from(room.max(0)).unwrap_or(u64::MAX);
        let growth_insns = if limit_insns <= floor_insns {
            room_insns
        } else {
            let rise_insns = level_insns(rise_insns, percent);
            let rest_insns = per_insns.saturating_sub(rise_insns);
            let growth_insns = if rise_insns <= rest_insns {
                // A share of a rise that is rounded down itself lags behind.
                let lag_insns = u64::from(percent != FAILURE);
                let sure_insns = room_insns.saturating_sub(lag_insns);
                sure_insns.saturating_add(fraction(sure_insns, rise_insns, rest_insns))
            } else {
                room_insns.saturating_mul(2).max(level >> 10)
            };
            growth_insns.min(left_insns.max(room_insns))
        };
        growth_insns.saturating_add(1)
    }
}

/// `percent` of a limit, rounded down.
fn level_insns(limit_insns: u64, percent: u32) -> u64 {
    fraction(limit_insns, percent.into(), FAILURE.into())
}
