// SPDX-License-Identifier: GPL-2.0
//! The beginning of a recording: its first plan, with the lengths that its tasks really had.
//!
//! A simulation can run this plan once more, also under another policy.  Its tasks then do the same
//! work as in the recording.  Nothing else of the recorded world is in it: neither times in which a
//! process was blocked, nor plans that took over.

use std::collections::{BTreeMap, BTreeSet};

use pbs_core::{EventKind, InputKind, Replay};
use pbs_plan::Plan;
use pbs_sim::ConfigChange;

use crate::file::{KeptPlan, Recording, Stretch};
use crate::replay::begin;

/// A plan that begins where none was in force, as it was recorded.
#[derive(Clone, Debug)]
pub struct Beginning {
    /// The plan, with its recorded configuration.  Tasks that ended have their real length.
    pub plan: Plan,
    /// Tasks that ended in the recording.
    pub measured_tasks: u64,
    /// Tasks whose end is not recorded.  The simulation gives them their planned length.
    pub planned_tasks: u64,
    /// Time from the beginning to the recorded end of each process, by its number.
    pub ends_ns: BTreeMap<u32, u64>,
    /// Changes of the configuration, ascending by time from the beginning.
    pub changes: Vec<ConfigChange>,
    /// Plans that took over in the recording.
    pub later_plans: u64,
    /// CPUs on which the recording differs from its own replay.
    pub differing_cpus: BTreeSet<u32>,
}

/// The recorded course of a CPU under the first plan and those that took over from it.
#[derive(Default)]
struct Course {
    cpu: u32,
    /// Number under which the plan is stored.
    plan: u64,
    begun_ns: u64,
    /// Retired instructions of ended tasks, by process and task.
    lengths_insns: BTreeMap<(u32, u32), u64>,
    ends_ns: BTreeMap<u32, u64>,
    changes: Vec<ConfigChange>,
    later_plans: BTreeSet<u64>,
    differs: bool,
}

impl Recording {
    /// The first plan of each CPU that begins where none was in force.  CPUs with the same plan
    /// have one beginning.
    pub fn beginnings(&self) -> Result<Vec<Beginning>, String> {
        let mut beginnings: Vec<(&[u8], Vec<Course>)> = Vec::new();
        for (cpu, stretches) in &self.cpus {
            let Some((course, kept)) = self.course(*cpu, stretches) else { continue };
            match beginnings.iter_mut().find(|(message, _)| *message == kept.message) {
                Some((_, courses)) => courses.push(course),
                None => beginnings.push((&kept.message, vec![course])),
            }
        }
        beginnings.into_iter().map(|(_, courses)| self.beginning(courses)).collect()
    }

    /// The recorded course of a CPU from its first plan on, up to the end of that plan or the first
    /// lost input.
    fn course(&self, cpu: u32, stretches: &[Stretch]) -> Option<(Course, &KeptPlan)> {
        let mut replay = Replay::new(true);
        let mut found: Option<(Course, &KeptPlan)> = None;
        let mut expected = None;
        let mut values = Vec::new();
        for stretch in stretches {
            let part = match stretch {
                Stretch::Inputs(part) => Some(part),
                Stretch::Lost(_) | Stretch::Snapshot(_) => None,
            };
            if part.is_none() || expected.is_some_and(|at| part.is_none_or(|p| p.first != at)) {
                if found.is_some() {
                    return found;
                }
                replay.forget();
            }
            let Some(part) = part else { continue };
            expected = Some(part.first.saturating_add(part.inputs.len() as u64));
            for input in &part.inputs {
                match (input.input_kind(), &mut found) {
                    (Some(InputKind::Begin), None) if input.reason == 0 => {
                        found = self.plans.get(&(input.value, cpu)).map(|kept| {
                            let (plan, begun_ns) = (input.value, input.time_ns);
                            (Course { cpu, plan, begun_ns, ..Course::default() }, kept)
                        });
                    }
                    (Some(InputKind::Begin), Some(_)) if input.reason == 0 => return found,
                    (Some(InputKind::Begin), Some((course, _))) => {
                        course.later_plans.insert(input.value);
                    }
                    (Some(InputKind::Gone), Some(_)) => return found,
                    (Some(InputKind::ConfigValue), Some(_)) => values.extend(input.config_value()),
                    (Some(InputKind::Configure), Some((course, _))) => {
                        let at_ns = input.time_ns.saturating_sub(course.begun_ns);
                        let values = std::mem::take(&mut values);
                        course.changes.push(ConfigChange { at_ns, values });
                    }
                    _ => {}
                }
                let plan = |number| begin(self.plans.get(&(number, cpu))?, cpu);
                let replayed = replay.next(input, plan);
                if let Some((course, _)) = &mut found {
                    course.take(&mut replay);
                    if replayed.is_err() {
                        course.differs = true;
                        return found;
                    }
                }
            }
        }
        found
    }

    fn beginning(&self, courses: Vec<Course>) -> Result<Beginning, String> {
        let of_course = |course: &Course| self.plans.get(&(course.plan, course.cpu));
        let kept = courses.first().and_then(of_course).ok_or("the recording has no plan")?;
        let mut plan = pbs_plan::wire::decode(&kept.message).map_err(|problem| problem.message)?;
        plan.config = Some(kept.config);
        for cpu in plan.cpus.iter_mut().filter(|cpu| cpu.rate_insns_per_ms == 0) {
            let course = courses.iter().find(|course| course.cpu == cpu.cpu);
            let of_cpu = course.and_then(of_course).unwrap_or(kept);
            cpu.rate_insns_per_ms = of_cpu.rate_insns_per_ms;
        }
        let changes = changes(&courses)?;
        let mut beginning = Beginning {
            plan,
            measured_tasks: 0,
            planned_tasks: 0,
            ends_ns: BTreeMap::new(),
            changes,
            later_plans: courses.iter().map(|course| course.later_plans.len() as u64).sum(),
            differing_cpus: BTreeSet::new(),
        };
        for process in &mut beginning.plan.processes {
            for task in &mut process.tasks {
                let key = (process.id, task.id);
                let length_insns = courses.iter().find_map(|course| course.lengths_insns.get(&key));
                // A task that has retired nothing takes no time: the least length stands for it.
                task.real_insns = length_insns.map(|insns| (*insns).max(1));
                match length_insns {
                    Some(_) => beginning.measured_tasks += 1,
                    None => beginning.planned_tasks += 1,
                }
            }
        }
        for course in courses {
            if course.differs {
                beginning.differing_cpus.insert(course.cpu);
            }
            beginning.ends_ns.extend(course.ends_ns);
        }
        Ok(beginning)
    }
}

/// The changes of the configuration, which a simulation makes on all CPUs.
fn changes(courses: &[Course]) -> Result<Vec<ConfigChange>, String> {
    let Some(first) = courses.first() else { return Ok(Vec::new()) };
    let values = |course: &Course| -> Vec<_> {
        course.changes.iter().map(|change| change.values.clone()).collect()
    };
    match courses.iter().find(|course| values(course) != values(first)) {
        None => Ok(first.changes.clone()),
        Some(other) => Err(format!(
            "CPU {} has other recorded changes of the configuration than CPU {}, and the \
             simulation changes all CPUs alike; record a run without these changes",
            other.cpu, first.cpu
        )),
    }
}

impl Course {
    /// Takes the events of the last input.
    fn take(&mut self, replay: &mut Replay) {
        for (_, event) in replay.take_events() {
            match event.kind {
                EventKind::TaskEnded => {
                    let length = (event.process, event.task);
                    self.lengths_insns.entry(length).or_insert(event.retired_insns);
                }
                EventKind::ProcessEnded => {
                    let end_ns = event.time_ns.saturating_sub(self.begun_ns);
                    self.ends_ns.entry(event.process).or_insert(end_ns);
                }
                _ => {}
            }
        }
    }
}
