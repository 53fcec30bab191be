// SPDX-License-Identifier: GPL-2.0

//! Prediction failures: when the thresholds of Leppert 2021, chapter 3, are
//! evaluated, and what is told.
//!
//! As section 5.2 suggests, lateness is looked at only while the running task
//! is late, and earliness only where a task ends early.  What is told is told
//! once for its task, process or node, until a plan comes; the node goes on as
//! before (3.3.9).

use super::approach::{Approach, Slope, FLAT};
use super::config::Threshold;
use super::event::{Cause, Event, EventKind, Sink};
use super::level::{Level, FAILURE};
use super::memory::Memory;
use super::next_check::{Look, Watch};
use super::node::Node;
use super::run::Run;

/// The levels on the way to t2_process and t2_node (6.2.3); the last is the
/// failure.
const LEVELS: [u32; 4] = [25, 50, 75, FAILURE];

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
        if watches && self.sums.early_insns() > least_insns {
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
            .min(self.sums.early_insns())
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
