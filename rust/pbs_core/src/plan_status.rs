// SPDX-License-Identifier: GPL-2.0

//! Life of a plan on a node: when it came into force, and whether it has ended.

/// The life of the plan of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlanStatus {
    /// The planner's name for the plan.
    id: u64,
    installed_ns: u64,
    /// Time at which stress was set.
    stressed_ns: u64,
    /// Points beyond STRESS_RESET to which it was set.
    volatile_points: u32,
    /// The plan deals with the failures of all events before this one.
    dealt_seq: u64,
    ended: bool,
}

impl PlanStatus {
    /// The life of the plan of that id, in force from `now_ns` on.
    pub(super) const fn new(id: u64, now_ns: u64) -> PlanStatus {
        PlanStatus {
            id,
            installed_ns: now_ns,
            stressed_ns: now_ns,
            volatile_points: 0,
            dealt_seq: 0,
            ended: false,
        }
    }

    /// Notes that the plan comes into force at `now_ns`.
    pub(super) fn install(&mut self, dealt_seq: u64, now_ns: u64) {
        self.installed_ns = now_ns;
        self.stressed_ns = now_ns;
        self.dealt_seq = dealt_seq;
    }

    /// Sets more points of stress than STRESS_RESET.
    pub(super) fn add_stress(&mut self, points: u64) {
        // At most STRESS_RESET.
        self.volatile_points = u32::try_from(points).unwrap_or(u32::MAX);
    }

    /// Continues the stress of the plan before.
    pub(super) fn keep_stress(&mut self, old: &PlanStatus) {
        self.stressed_ns = old.stressed_ns;
        self.volatile_points = old.volatile_points;
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    pub(super) fn installed_ns(&self) -> u64 {
        self.installed_ns
    }

    /// Time since stress was set.
    pub(super) fn stress_age_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.stressed_ns)
    }

    /// Points beyond STRESS_RESET to which stress was set.
    pub(super) fn volatile_points(&self) -> u64 {
        self.volatile_points.into()
    }

    pub(super) fn dealt_seq(&self) -> u64 {
        self.dealt_seq
    }

    /// Whether the end of the plan was reported.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Notes that the end of the plan is reported.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }
}

saved!([super] PlanStatus {
    id,
    installed_ns,
    stressed_ns,
    volatile_points,
    dealt_seq,
    ended,
});
