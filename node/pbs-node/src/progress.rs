// SPDX-License-Identifier: GPL-2.0
//! Progress of the plan, as events report it.

use std::collections::BTreeSet;

use pbs_plan::Plan;
use pbs_report::Outcome;
use pbs_uapi::{Event, EventKind};

/// Plans that a planner may have written, or had refused, after the last one that it recorded. It
/// numbers them one after the other, and records each that the node took before it makes another.
const UNRECORDED: u64 = 1 << 10;

/// Watches plans until they have ended on all their CPUs.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Numbers of the plans, the first one first.
    plan_ids: Vec<u64>,
    /// Number of the last plan that a planner recorded before it died.
    recorded: Option<u64>,
    /// All of them were installed before, though it may be told only now.
    resumed: bool,
    cpus: Vec<(u32, State)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The plan was written; its installation has not been reported yet.
    Written,
    InForce,
    Over(Outcome),
}

impl Progress {
    /// The plans of a planner that died, of which one is in force on those CPUs.
    pub(crate) fn resumed(plans: &[Plan], in_force: &[u32]) -> Self {
        let cpus = plans.iter().flat_map(|plan| &plan.cpus).map(|cpu| cpu.cpu);
        let cpus: BTreeSet<_> = cpus.chain(in_force.iter().copied()).collect();
        Self {
            plan_ids: plans.iter().map(|plan| plan.plan_id).collect(),
            recorded: plans.first().map(|plan| plan.plan_id),
            resumed: true,
            cpus: cpus.into_iter().map(|cpu| (cpu, State::InForce)).collect(),
        }
    }

    /// All that the kernel held was read: where no plan of ours was in force
    /// before, it has ended, though its end may not be held any more.
    pub(crate) fn caught_up(&mut self, in_force: &[u32]) {
        for (cpu, state) in &mut self.cpus {
            if *state == State::InForce && !in_force.contains(cpu) {
                *state = State::Over(Outcome::Ended);
            }
        }
    }

    /// A plan of ours was written: the first, or one in the place of another.
    pub(crate) fn written(&mut self, plan: &Plan) {
        self.plan_ids.push(plan.plan_id);
        for cpu in &plan.cpus {
            match self.cpus.iter_mut().find(|(known, _)| *known == cpu.cpu) {
                // It may have ended before the other one came.
                Some((_, state)) if *state == State::Over(Outcome::Ended) => {
                    *state = State::InForce;
                }
                Some(_) => {}
                None => self.cpus.push((cpu.cpu, State::Written)),
            }
        }
    }

    pub(crate) fn event(&mut self, event: &Event) {
        let kind = EventKind::from_raw(event.kind);
        if kind == Some(EventKind::Overrun) {
            // The installation may be among what was lost.
            for (_, state) in &mut self.cpus {
                if *state == State::Written {
                    *state = State::InForce;
                }
            }
            return;
        }
        let ours = self.is_ours(event.plan_id);
        let Some((_, state)) = self.cpus.iter_mut().find(|(cpu, _)| *cpu == event.cpu) else {
            return;
        };
        // One of ours in the place of another of ours, whose end may have been told before.
        let again = ours && (self.resumed || event.plan_id != self.plan_ids[0]);
        *state = match (*state, kind) {
            // What came before is of the plan that ours replaced, which may
            // have the same number.
            (State::Written, Some(EventKind::PlanInstalled)) if ours => State::InForce,
            (State::InForce | State::Over(Outcome::Ended), Some(EventKind::PlanInstalled))
                if again =>
            {
                State::InForce
            }
            (State::InForce, Some(EventKind::PlanInstalled)) => State::Over(Outcome::Replaced),
            (State::InForce, Some(EventKind::PlanEnded)) if ours => State::Over(Outcome::Ended),
            (State::InForce, Some(EventKind::PlanDropped)) => State::Over(Outcome::Dropped),
            (State::InForce, Some(EventKind::CpuGone)) => State::Over(Outcome::CpuGone),
            (state, _) => state,
        };
    }

    /// Whether a plan of that number is ours, or of the planner that died. That one may have died
    /// between writing its last plan and recording it, and the plan may have ended since.
    fn is_ours(&self, plan_id: u64) -> bool {
        let unrecorded = |recorded: u64| (1..=UNRECORDED).contains(&plan_id.wrapping_sub(recorded));
        self.plan_ids.contains(&plan_id) || self.recorded.is_some_and(unrecorded)
    }

    /// Whether the event belongs to this run of the plan.
    pub(crate) fn concerns(&self, event: &Event) -> bool {
        let state = self.cpus.iter().find(|(cpu, _)| *cpu == event.cpu);
        event.kind == EventKind::Overrun as u16
            || self.is_ours(event.plan_id)
                && state.is_some_and(|(_, state)| *state != State::Written)
    }

    /// Returns the outcome once the plan is over on all CPUs: the outcome on the first CPU on which
    /// it did not complete.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        let mut outcome = Outcome::Ended;
        for (_, state) in &self.cpus {
            match state {
                State::Over(Outcome::Ended) => {}
                State::Over(other) if outcome == Outcome::Ended => outcome = *other,
                State::Over(_) => {}
                State::Written | State::InForce => return None,
            }
        }
        Some(outcome)
    }

    /// Whether no plan of ours is in force, or about to be.
    pub(crate) fn is_over(&self) -> bool {
        self.outcome().is_some()
    }

    /// The CPUs on which our plan is still in force.
    pub(crate) fn in_force(&self) -> impl Iterator<Item = u32> + '_ {
        self.cpus.iter().filter(|(_, state)| !matches!(state, State::Over(_))).map(|&(cpu, _)| cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pbs_plan::from_toml;

    fn progress() -> Progress {
        let text = "plan_id = 7\n[[process]]\nid = 1\ntasks = [5]\n[[process]]\nid = 2\n\
                    tasks = [5]\n[[cpu]]\ncpu = 0\nslots = [1]\n[[cpu]]\ncpu = 3\nslots = [2]\n";
        let mut progress = Progress::default();
        progress.written(&from_toml(text).unwrap());
        progress
    }

    fn event(kind: EventKind, plan_id: u64, cpu: u32) -> Event {
        Event { kind: kind as u16, plan_id, cpu, ..Event::default() }
    }

    #[test]
    fn the_plan_ends_when_it_ended_everywhere() {
        let mut progress = progress();
        for cpu in [0, 3] {
            progress.event(&event(EventKind::PlanInstalled, 7, cpu));
        }
        progress.event(&event(EventKind::PlanEnded, 7, 0));
        assert_eq!(progress.outcome(), None);
        assert_eq!(progress.in_force().collect::<Vec<_>>(), [3]);
        progress.event(&event(EventKind::PlanEnded, 7, 3));
        assert_eq!(progress.outcome(), Some(Outcome::Ended));
    }

    #[test]
    fn the_plan_before_does_not_count() {
        let mut progress = progress();
        let old = event(EventKind::PlanEnded, 7, 0);
        assert!(!progress.concerns(&old));
        progress.event(&old);
        for cpu in [0, 3] {
            let installed = event(EventKind::PlanInstalled, 7, cpu);
            progress.event(&installed);
            assert!(progress.concerns(&installed));
        }
        assert_eq!(progress.outcome(), None);
        assert!(!progress.concerns(&event(EventKind::TaskEnded, 6, 0)));
        assert!(!progress.concerns(&event(EventKind::TaskEnded, 7, 1)));
    }

    #[test]
    fn other_ends_are_told() {
        for (end, expected) in [
            (event(EventKind::PlanInstalled, 8, 0), Outcome::Replaced),
            (event(EventKind::PlanInstalled, 7, 0), Outcome::Replaced),
            (event(EventKind::PlanDropped, 7, 0), Outcome::Dropped),
            (event(EventKind::CpuGone, 7, 0), Outcome::CpuGone),
        ] {
            let mut progress = progress();
            for cpu in [0, 3] {
                progress.event(&event(EventKind::PlanInstalled, 7, cpu));
            }
            progress.event(&end);
            progress.event(&event(EventKind::PlanEnded, 7, 3));
            assert_eq!(progress.outcome(), Some(expected));
        }
    }

    #[test]
    fn who_resumes_waits_for_what_is_in_force() {
        let text = "plan_id = 7\n[[process]]\nid = 1\ntasks = [5]\n[[process]]\nid = 2\n\
                    tasks = [5]\n[[cpu]]\ncpu = 0\nslots = [1]\n[[cpu]]\ncpu = 3\nslots = [2]\n";
        let mut progress = Progress::resumed(&[from_toml(text).unwrap()], &[3]);
        assert!(progress.concerns(&event(EventKind::TaskEnded, 7, 3)));
        progress.event(&event(EventKind::PlanInstalled, 7, 3));
        progress.caught_up(&[3]);
        assert_eq!(progress.outcome(), None);
        progress.event(&event(EventKind::PlanEnded, 7, 3));
        assert_eq!(progress.outcome(), Some(Outcome::Ended));
    }

    #[test]
    fn a_plan_that_was_written_and_not_recorded_is_ours() {
        let text = "plan_id = 7\n[[process]]\nid = 1\ntasks = [5]\n[[cpu]]\ncpu = 3\nslots = [1]\n";
        // The ninth has ended before somebody took over.
        let mut progress = Progress::resumed(&[from_toml(text).unwrap()], &[]);
        progress.event(&event(EventKind::PlanInstalled, 9, 3));
        assert!(progress.concerns(&event(EventKind::TaskEnded, 9, 3)));
        progress.event(&event(EventKind::PlanEnded, 9, 3));
        assert_eq!(progress.outcome(), Some(Outcome::Ended));
        // One of another planner.
        progress.event(&event(EventKind::PlanInstalled, 8 + UNRECORDED, 3));
        assert!(!progress.concerns(&event(EventKind::TaskEnded, 8 + UNRECORDED, 3)));
    }

    #[test]
    fn a_lost_installation_does_not_hang() {
        let mut progress = progress();
        progress.event(&event(EventKind::Overrun, 0, 0));
        for cpu in [0, 3] {
            progress.event(&event(EventKind::PlanEnded, 7, cpu));
        }
        assert_eq!(progress.outcome(), Some(Outcome::Ended));
    }
}
