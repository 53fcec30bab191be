// SPDX-License-Identifier: GPL-2.0

//! Prediction failures: the evaluation of the thresholds of Leppert 2021, chapter 3, and
//! their signals.
//!
//! As section 5.2 suggests, lateness is checked only while the running task is late, and
//! earliness only where a task ends early.  A signal is reported once for its task,
//! process or node, until a new plan arrives; the node continues as before (3.3.9).

use super::approach::{Approach, Slope, FLAT};
use super::config::Threshold;
use super::event::{Cause, Event, EventKind, Sink};
use super::level::{Level, FAILURE};
use super::memory::Memory;
use super::next_check::{CachedCheck, NextCheck};
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
    /// A lateness above this is a prediction failure.
    pub t2_node_insns: u64,
    /// A lateness below this is a prediction failure.
    pub tm2_node_insns: i64,
}

impl<M: Memory> Node<M> {
    /// The thresholds of the node.
    pub fn thresholds(&self, now_ns: u64) -> NodeThresholds {
        let stress = self.stress(now_ns);
        let sums = self.processes.sums();
        NodeThresholds {
            stress,
            active: sums.active(),
            lateness_insns: sums.lateness_insns(),
            t2_node_insns: self
                .policy
                .t2_node_insns(sums.begun_insns(), sums.active(), stress),
            tm2_node_insns: self.policy.tm2_node_insns(sums.finished_insns()),
        }
    }

    /// Lateness of process `p` above which it is a prediction failure: its capacity buffer
    /// and its t2_process.
    pub fn process_limit_insns(&self, p: u32, now_ns: u64) -> u64 {
        let progress = self.processes.get(p).map(Run::progress);
        let stress = self.stress(now_ns);
        self.policy.process_limit_insns(
            &progress.unwrap_or_default(),
            self.processes.sums().active(),
            stress,
        )
    }

    pub(super) fn stress(&self, now_ns: u64) -> u64 {
        let age_ns = self.status.stress_age_ns(now_ns);
        let config = &self.policy.config;
        // Both may have been changed since stress was set.
        let more_points = if config.volatile_interval_ns == 0 {
            0
        } else {
            self.status.volatile_points().min(config.stress_reset)
        };
        config.stress_beyond(more_points, age_ns)
    }

    /// Checks the lateness thresholds of `p`, which runs or ends its task.
    #[inline(always)]
    pub(super) fn check_lateness(
        &mut self,
        p: u32,
        now_ns: u64,
        sink: &mut impl Sink,
    ) -> NextCheck {
        const LATENESS: u64 = Threshold::T2Task as u64
            | Threshold::T2Process as u64
            | Threshold::T2Node as u64
            | Threshold::T2Preemptions as u64;
        let Some(run) = self.processes.get(p) else {
            return NextCheck::NEVER;
        };
        if self.policy.config.thresholds & LATENESS == 0 {
            return NextCheck::NEVER;
        }
        if !run.is_late() {
            return NextCheck {
                at_insns: run.planned_insns.saturating_add(1),
                ..NextCheck::NEVER
            };
        }
        self.check_late(p, now_ns, sink)
    }

    /// Checks the lateness thresholds of `p`, whose task is late.
    #[inline(never)]
    fn check_late(&mut self, p: u32, now_ns: u64, sink: &mut impl Sink) -> NextCheck {
        let Some(run) = self.processes.get(p) else {
            return NextCheck::NEVER;
        };
        let (retired_insns, mut check) = (run.retired_insns, run.check);
        let progress = self.processes.sums().progress();
        if !check.holds(progress, retired_insns, now_ns) {
            let run = *run;
            check = self.check_process(p, &run, now_ns, sink);
        }
        if !self.policy.config.has(Threshold::T2Node) {
            return check.next();
        }
        let lateness_insns = self.processes.sums().lateness_insns();
        let late_insns = lateness_insns.max(0).unsigned_abs();
        if !self.signals.check.holds(progress, late_insns, now_ns) {
            self.check_node(p, now_ns, sink);
        }
        let of_node = self.signals.check.next();
        let left_insns = match of_node.at_insns {
            u64::MAX => u64::MAX,
            at_insns => i64::try_from(at_insns)
                .unwrap_or(i64::MAX)
                .saturating_sub(lateness_insns)
                .max(0)
                .unsigned_abs(),
        };
        check.next().or_earlier(NextCheck {
            at_insns: retired_insns.saturating_add(left_insns),
            ..of_node
        })
    }

    /// Checks the thresholds of the process `p` and its task.
    #[inline(never)]
    fn check_process(
        &mut self,
        p: u32,
        run: &Run,
        now_ns: u64,
        sink: &mut impl Sink,
    ) -> CachedCheck {
        let mut next = NextCheck {
            at_insns: self.check_task(p, now_ns, sink),
            ..NextCheck::NEVER
        };
        self.check_preemptions(p, now_ns, sink);
        if self.policy.config.has(Threshold::T2Process) {
            let approach = self.approach_of_process(run, self.stress(now_ns));
            let level = self.report_level(&approach, run.reported.process, p, now_ns, sink);
            self.processes
                .update_task(p, |run| run.reported.process = level);
            if level.is_failure() && !run.reported.process.is_failure() {
                self.suspend(p);
            }
            next = next.or_earlier(self.next_check(&approach, level, run.retired_insns, now_ns));
        }
        let check = CachedCheck::new(self.processes.sums().progress(), next);
        self.processes.update_task(p, |run| run.check = check);
        check
    }

    /// Checks the lateness threshold of the node, while `p` runs.
    #[inline(never)]
    fn check_node(&mut self, p: u32, now_ns: u64, sink: &mut impl Sink) {
        let approach = self.approach_of_node(self.stress(now_ns));
        let level = self.report_level(&approach, self.signals.late, p, now_ns, sink);
        self.signals.late = level;
        let late_insns = approach.lateness_insns.max(0).unsigned_abs();
        let early_insns = approach.lateness_insns.min(0).unsigned_abs();
        let mut next = self.next_check(&approach, level, late_insns, now_ns);
        // The rest is counted from the lateness, which may be negative.
        if next.at_insns != u64::MAX {
            next.at_insns = next.at_insns.saturating_sub(early_insns);
        }
        let progress = self.processes.sums().progress();
        self.signals.check = CachedCheck::new(progress, next);
    }

    /// t2_task.  Returns the count of the task at which it must be checked again.
    fn check_task(&mut self, p: u32, now_ns: u64, sink: &mut impl Sink) -> u64 {
        let Some(run) = self.processes.get(p) else {
            return u64::MAX;
        };
        if !self.policy.config.has(Threshold::T2Task) || run.reported.task.is_failure() {
            return u64::MAX;
        }
        let t2_task_insns = self.policy.t2_task_insns(run.planned_insns);
        if run.retired_insns <= t2_task_insns {
            return t2_task_insns.saturating_add(1);
        }
        let seq = self.signal_late(Cause::Task, p, t2_task_insns, FAILURE, now_ns, sink);
        self.processes
            .update_task(p, |run| run.reported.task = Level::failure(seq));
        self.suspend(p);
        u64::MAX
    }

    /// t2_preemptions
    pub(super) fn check_preemptions(&mut self, p: u32, now_ns: u64, sink: &mut impl Sink) {
        let Some(run) = self.processes.get(p) else {
            return;
        };
        let Some(max_preemptions) = self.policy.config.t2_preemptions() else {
            return;
        };
        if !self.policy.config.has(Threshold::T2Preemptions)
            || run.reported.preemptions.is_failure()
            || u64::from(run.preemptions) < max_preemptions
        {
            return;
        }
        let cause = Cause::Preemptions;
        let seq = self.signal_late(cause, p, max_preemptions, FAILURE, now_ns, sink);
        self.processes
            .update_task(p, |run| run.reported.preemptions = Level::failure(seq));
        self.suspend(p);
    }

    /// Suspends a process that has failed until the next plan, where the configuration wants that
    /// (3.3.9).
    fn suspend(&mut self, p: u32) {
        if self.policy.config.suspends_failed != 0 && !self.floats() {
            self.processes.update_task(p, |run| run.suspended = true);
            self.requeue(p);
        }
    }

    /// t2_process, in both its stages
    fn approach_of_process(&self, run: &Run, stress: u64) -> Approach {
        let (policy, active) = (&self.policy, self.processes.sums().active());
        let progress = run.progress();
        Approach {
            cause: Cause::Process,
            lateness_insns: run.lateness_insns(),
            limit_insns: policy.process_limit_insns(&progress, active, stress),
            calm_insns: policy.process_limit_insns(&progress, active, 0),
            // Only the allowed plan buffer rises with progress.
            slope: Slope {
                // Below the least progress it stays where it is.
                rise_insns: if progress.retired_insns
                    < policy.least_progress_insns(progress.planned_insns)
                {
                    0
                } else {
                    policy.cleared_plan_buffer_insns(progress.buffer_insns, active)
                },
                floor_insns: policy
                    .capacity_buffer_insns(progress.begun_insns)
                    .max(policy.t2_min_process_insns),
                per_insns: progress.planned_insns,
                left_insns: progress
                    .planned_insns
                    .saturating_sub(progress.retired_insns),
            },
        }
    }

    /// t2_node without stress.
    pub(super) fn calm_t2_node_insns(&self) -> u64 {
        let sums = self.processes.sums();
        self.policy
            .t2_node_insns(sums.begun_insns(), sums.active(), 0)
    }

    /// t2_node
    fn approach_of_node(&self, stress: u64) -> Approach {
        let (policy, sums) = (&self.policy, self.processes.sums());
        let (begun_insns, active) = (sums.begun_insns(), sums.active());
        Approach {
            cause: Cause::Node,
            lateness_insns: sums.lateness_insns(),
            limit_insns: policy.t2_node_insns(begun_insns, active, stress),
            calm_insns: self.calm_t2_node_insns(),
            slope: FLAT,
        }
    }

    /// Reports the greatest level that a lateness has reached, if it is above the one that
    /// was reported.  Returns the level that is reported now.
    fn report_level(
        &mut self,
        approach: &Approach,
        reported: Level,
        p: u32,
        now_ns: u64,
        sink: &mut impl Sink,
    ) -> Level {
        let limit_insns = approach.limit_insns;
        let reached = self
            .levels()
            .rev()
            .find(|&percent| approach.exceeds(limit_insns, percent));
        let Some(percent) = reached.filter(|&percent| reported.is_below(percent)) else {
            return reported;
        };
        let seq = self.signal_late(approach.cause, p, limit_insns, percent, now_ns, sink);
        reported.reported(percent, seq)
    }

    /// The moment at which a lateness may exceed the level that is reported next.  If only stress
    /// holds it back, that may be at the next nominal tick.
    ///
    /// `count_insns`: the count from which `at_insns` is counted.
    fn next_check(
        &self,
        approach: &Approach,
        reported: Level,
        count_insns: u64,
        now_ns: u64,
    ) -> NextCheck {
        let Some(percent) = self.levels().find(|&percent| reported.is_below(percent)) else {
            return NextCheck::NEVER;
        };
        let held_back = approach.exceeds(approach.calm_insns, percent);
        let (limit_insns, at_ns) = if held_back {
            (approach.limit_insns, self.next_tick_ns(now_ns))
        } else {
            (approach.calm_insns, u64::MAX)
        };
        let left_insns = approach.crossing_insns(limit_insns, percent);
        NextCheck {
            at_insns: count_insns.saturating_add(left_insns),
            at_ns,
        }
    }

    /// The levels that are reported, ascending.
    pub(super) fn levels(&self) -> impl DoubleEndedIterator<Item = u32> {
        let info = self.policy.config.has(Threshold::Info);
        LEVELS
            .into_iter()
            .filter(move |&percent| info || percent == FAILURE)
    }

    /// The moment at which stress falls next.
    pub(super) fn next_tick_ns(&self, now_ns: u64) -> u64 {
        let tick_ns = self.policy.config.nominal_tick_ns;
        match self.status.stress_age_ns(now_ns).checked_rem(tick_ns) {
            Some(phase_ns) => now_ns.saturating_add(tick_ns - phase_ns),
            None => u64::MAX,
        }
    }

    /// Checks the earliness thresholds: the current task of `p` has ended early, and is
    /// part of the account.
    #[inline]
    pub(super) fn check_earliness(
        &mut self,
        p: u32,
        planned_insns: u64,
        retired_insns: u64,
        now_ns: u64,
        sink: &mut impl Sink,
    ) {
        // Most tasks are not even as early as a threshold is at least.
        let early_insns = planned_insns.saturating_sub(retired_insns);
        if self.policy.config.has(Threshold::Tm2Task) && early_insns > self.policy.tm2_spacer_insns
        {
            self.check_early_task(p, planned_insns, retired_insns, now_ns, sink);
        }
        let least_insns = self.policy.tm2_node_lower_bound_insns;
        let watches =
            self.policy.config.has(Threshold::Tm2Node) && !self.signals.early.is_failure();
        if watches && self.processes.sums().early_insns() > least_insns {
            self.check_early_node(p, retired_insns, now_ns, sink);
        }
    }

    /// tm2_task
    fn check_early_task(
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
            self.report(event, sink);
        }
    }

    /// tm2_node
    fn check_early_node(&mut self, p: u32, retired_insns: u64, now_ns: u64, sink: &mut impl Sink) {
        let thresholds = self.thresholds(now_ns);
        let idle_insns = i64::try_from(self.processes.idle().insns()).unwrap_or(i64::MAX);
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
        self.signals.early = Level::failure(self.report(event, sink));
    }

    /// Reports that `percent` of a lateness threshold is exceeded.
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
        self.report(event, sink)
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
