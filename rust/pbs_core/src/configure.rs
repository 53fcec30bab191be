// SPDX-License-Identifier: GPL-2.0

//! Change of the configuration while a plan is in force.
//!
//! The plan continues: processes, slots, accounts of lateness and reports stay as they are.  New
//! thresholds hold from the next decision on.  Three bounds that were computed before stay until
//! they are reached: those of the present slot of a process, the length of the present window, and
//! the turn of a process that fills the slot of another one.  A present idle slot is divided anew
//! if its policy changes.

use super::config::Config;
use super::event::{Event, EventKind, Sink};
use super::input::{Input, InputKind};
use super::memory::Memory;
use super::node::Node;
use super::policy::Policy;
use super::refusal::{Fault, Refusal};

/// Numbers whose change affects each process that was sampled or suspended before.
const OF_PROCESSES: [&str; 5] = [
    "thresholds",
    "sigma_memory_permille",
    "memory_spacer_bytes",
    "memory_signaling_limit_bytes",
    "suspends_failed",
];

impl Config {
    /// Places in [`Config::NAMES`] of the numbers that differ in `other`, with the values there.
    pub fn differences(&self, other: &Config) -> impl Iterator<Item = (usize, u64)> {
        let (own, others) = (self.values(), other.values());
        let values = own.into_iter().zip(others).enumerate();
        values.filter_map(|(place, (one, other))| (one != other).then_some((place, other)))
    }

    /// The configuration with other values at these places; places beyond the last have no effect.
    pub fn with(&self, values: impl IntoIterator<Item = (usize, u64)>) -> Config {
        let mut all = self.values();
        for (place, value) in values {
            if let Some(number) = all.get_mut(place) {
                *number = value;
            }
        }
        Config::from_values(all)
    }
}

impl<M: Memory> Node<M> {
    /// Refuses a configuration with another `dispatch`, which has another state of its processes,
    /// and one that compares times with a plan that began without a timetable.
    pub fn check_change(&self, config: &Config) -> Result<(), Refusal> {
        let before = self.policy.config;
        if config.dispatch != before.dispatch {
            let in_force = before.dispatch().name();
            return Err(Fault::DispatchInForce { in_force }.nowhere());
        }
        let has_times = !self.floats() && !self.plan.has_arrivals();
        if config.timeliness_ns != 0 && self.timetable.is_empty() && has_times {
            return Err(Fault::NoTimetable.nowhere());
        }
        Ok(())
    }

    /// Continues the plan with another configuration, whose ranges the caller has checked as for
    /// [`Node::new`].  Returns the count of numbers that have changed; with 0, nothing has
    /// happened.
    ///
    /// A failure that was reported stays reported until a plan deals with it.  A process that was
    /// suspended continues if the new configuration suspends none.
    ///
    /// A configuration that [`Node::check_change`] refuses changes nothing.
    ///
    /// Takes O(processes), without allocation.
    pub fn configure(
        &mut self,
        config: &Config,
        now_ns: u64,
        sink: &mut impl Sink,
    ) -> Result<u32, Refusal> {
        self.check_change(config)?;
        let before = self.policy.config;
        let mut changed = 0_u32;
        let mut of_processes = false;
        for (place, value) in before.differences(config) {
            changed += 1;
            of_processes |= Config::NAMES
                .get(place)
                .is_some_and(|name| OF_PROCESSES.contains(name));
            self.note(move |_| Input {
                value,
                more: place as u64,
                ..Input::of(InputKind::ConfigValue)
            });
        }
        if changed == 0 {
            return Ok(0);
        }
        let mut event = Event::new(EventKind::Configured, now_ns);
        event.value = changed.into();
        self.report(event, sink);
        self.policy = Policy::new(*config, self.rates.cpu());
        self.use_measured_reschedule_time();
        // The cached checks compared with other thresholds.
        self.processes.invalidate_checks();
        self.standing.revoke();
        self.windows.set_lengths(config);
        if config.idle_is_lateness == 0 {
            self.processes.set_idle(0);
        }
        if config.idle_policy != before.idle_policy {
            self.replace_idle_policy();
        }
        if of_processes {
            self.reconsider_processes();
        }
        self.note(move |node| Input {
            time_ns: now_ns,
            value: changed.into(),
            more: node.processes.sums().lateness_insns() as u64,
            ..Input::of(InputKind::Configure)
        });
        Ok(changed)
    }

    /// Orders the candidates by the new policy, and divides a present idle slot by it.
    fn replace_idle_policy(&mut self) {
        let policy = self.policy.config.idle_policy();
        self.queue.set_policy(self.processes.runs_mut(), policy);
        if self.slot.has_begun() && !self.slot.is_owned() {
            self.divide();
            // The grant was by the former division.
            self.grant.forget_reason();
        }
    }

    /// Lets each process be sampled as if for the first time under the plan, and lets suspended
    /// processes continue if none is suspended any more.
    fn reconsider_processes(&mut self) {
        let suspends = self.policy.config.suspends_failed != 0;
        for p in 0..self.processes.len() as u32 {
            let Some(run) = self.processes.get(p) else {
                return;
            };
            let continues = run.suspended && !suspends;
            self.processes.update_task(p, |run| {
                run.sampled = false;
                run.suspended &= suspends;
            });
            if continues {
                self.requeue(p);
            }
        }
    }
}
