// SPDX-License-Identifier: GPL-2.0
//! A recording, told again.

use std::collections::BTreeSet;

use pbs_core::wire::Message;
use pbs_core::{Begun, Event, Input, InputKind, Node, Rate, Refusal, Replay, Replayed, StdMemory};
use pbs_plan::wire::event_record;
use pbs_sim::{HeldNode, Snapshot};

use crate::file::{KeptPlan, Recording, Stretch};

/// The first input of a CPU for which something else came out than was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Number of the input in the ring of the CPU.
    pub number: u64,
    /// Time of the input, or of the last input before it that has a time.
    pub time_ns: u64,
    /// Recorded input.
    pub recorded: Input,
    /// Result of the replay; `None`: there was none.
    pub came_out: Option<Input>,
}

/// An event that the replay has emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// Recorded number of the event.
    pub seq: u64,
    /// The planner's name for the plan.
    pub plan_id: u64,
    /// The event itself.
    pub event: Event,
}

impl Emitted {
    /// Returns the event in the form in which the kernel passes it to readers.
    pub fn in_wire(&self, cpu: u32) -> pbs_uapi::Event {
        pbs_uapi::Event { seq: self.seq, plan_id: self.plan_id, cpu, ..event_record(&self.event) }
    }
}

/// Results of the replay for one CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuReplay {
    /// The CPU.
    pub cpu: u32,
    /// Inputs that were told again, and came out the same.
    pub inputs: u64,
    /// Among them decisions,
    pub decisions: u64,
    /// events,
    pub events: u64,
    /// and plans that came into force.
    pub plans: u64,
    /// Inputs that can't be told, as the plan is not known that they are about.
    pub skipped: u64,
    /// Inputs that the recorder has missed.
    pub lost: u64,
    /// Inputs after a difference: what they do says nothing any more.
    pub after: u64,
    /// Plans that came into force there and that nobody has kept, or that are no
    /// plans, by their numbers.
    pub unknown_plans: BTreeSet<u64>,
    /// First difference between the replay and the recording.
    pub difference: Option<Difference>,
    /// Reasons why the replay does not begin at a snapshot.
    pub refused_snapshots: Vec<String>,
    /// Emitted events, if the caller wanted them.
    pub emitted: Vec<Emitted>,
    /// State after the last input; `None`: no plan is in force whose begin is known.
    pub held: Option<HeldNode>,
}

impl Recording {
    /// Tells all of it again, CPU by CPU; `events`: what is emitted is kept.
    pub fn replay(&self, events: bool) -> Vec<CpuReplay> {
        self.replay_until(u64::MAX, events)
    }

    /// Replays the inputs of all CPUs up to `until_ns`, with those at that time.
    pub fn replay_until(&self, until_ns: u64, events: bool) -> Vec<CpuReplay> {
        let cpus = self.cpus.iter();
        cpus.map(|(cpu, stretches)| self.replay_cpu(*cpu, stretches, events, until_ns)).collect()
    }

    fn replay_cpu(
        &self,
        cpu: u32,
        stretches: &[Stretch],
        events: bool,
        until_ns: u64,
    ) -> CpuReplay {
        let mut replay = Replay::new(events);
        let mut result = CpuReplay { cpu, ..CpuReplay::default() };
        let mut time_ns = 0;
        let mut expected = None;
        for stretch in stretches {
            let part = match stretch {
                Stretch::Lost(hole) => {
                    result.lost = result.lost.saturating_add(hole.count);
                    replay.forget();
                    continue;
                }
                Stretch::Snapshot(snapshot) if snapshot.time_ns > until_ns => break,
                Stretch::Snapshot(snapshot) => {
                    replay.forget();
                    expected = None;
                    time_ns = snapshot.time_ns;
                    match self.restore(cpu, snapshot) {
                        Ok(node) => replay.resume(node),
                        Err(words) => result.refused_snapshots.push(words),
                    }
                    continue;
                }
                Stretch::Inputs(part) => part,
            };
            if expected.is_some_and(|expected| expected != part.first) {
                replay.forget();
            }
            expected = Some(part.first.saturating_add(part.inputs.len() as u64));
            let (inputs, is_last) = up_to(&part.inputs, until_ns);
            for (input, at) in inputs.iter().zip(0_u64..) {
                if result.difference.is_some() {
                    result.after += 1;
                    continue;
                }
                if input.time_ns != 0 {
                    time_ns = input.time_ns;
                }
                let unknown = &mut result.unknown_plans;
                let replayed = replay.next(input, |number| {
                    let begun = self.plans.get(&(number, cpu));
                    let begun = begun.and_then(|plan| begin(plan, cpu));
                    if begun.is_none() {
                        unknown.insert(number);
                    }
                    begun
                });
                match replayed {
                    Ok(Replayed::Same) => result.count(input),
                    Ok(Replayed::Skipped) => result.skipped += 1,
                    Err(difference) => {
                        let before = difference.before as u64;
                        result.inputs = result.inputs.saturating_sub(before);
                        result.after += before + 1;
                        result.difference = Some(Difference {
                            number: part.first.saturating_add(at).saturating_sub(before),
                            time_ns: match difference.recorded.time_ns {
                                0 => time_ns,
                                time_ns => time_ns,
                            },
                            recorded: difference.recorded,
                            came_out: difference.came_out,
                        });
                    }
                }
                if events {
                    let plan_id = replay.node().map_or(0, Node::plan_id);
                    let emitted = replay.take_events().into_iter();
                    result.emitted.extend(emitted.map(|(seq, event)| Emitted {
                        seq,
                        plan_id,
                        event,
                    }));
                }
            }
            if is_last {
                break;
            }
        }
        result.held = replay.node().map(|node| HeldNode::of(cpu, node, time_ns));
        result
    }
}

impl Recording {
    /// The node of a CPU as it was when the snapshot was taken.
    fn restore(&self, cpu: u32, snapshot: &Snapshot) -> Result<Node<StdMemory>, String> {
        let number = snapshot.plan;
        let kept = self.plans.get(&(number, cpu));
        let kept = kept.ok_or_else(|| format!("the recording does not have plan {number}"))?;
        // The words have what joins it with the plans of other CPUs.
        let wrong = |refusal: Refusal| format!("plan {number} is no plan: {refusal}");
        let message = Message::parse::<StdMemory>(&kept.message).map_err(wrong)?;
        let section = message.sections().find(|section| section.cpu() == cpu);
        let section = section.ok_or_else(|| format!("plan {number} is no plan for CPU {cpu}"))?;
        let plan = pbs_core::Plan::build(&section).map_err(wrong)?;
        let restored = Node::restore(plan, snapshot.config, &snapshot.words);
        restored.map_err(|error| error.to_string())
    }
}

/// The inputs up to a time, and whether there are others after it.  Those without a time belong to
/// the next one that has it.
fn up_to(inputs: &[Input], until_ns: u64) -> (&[Input], bool) {
    let Some(over) = inputs.iter().position(|input| input.time_ns > until_ns) else {
        return (inputs, false);
    };
    let last = inputs[..over].iter().rposition(|input| input.time_ns != 0);
    (&inputs[..last.map_or(0, |last| last + 1)], true)
}

impl CpuReplay {
    /// Returns the emitted events in the form in which the kernel passes them to readers.
    pub fn in_wire(&self) -> impl Iterator<Item = pbs_uapi::Event> + '_ {
        self.emitted.iter().map(|emitted| emitted.in_wire(self.cpu))
    }

    fn count(&mut self, input: &Input) {
        self.inputs += 1;
        match input.input_kind() {
            Some(InputKind::Settle) => self.decisions += 1,
            Some(InputKind::Begin) => self.plans += 1,
            None => self.events += 1,
            Some(_) => {}
        }
    }
}

/// The plan of one CPU before its first slot; `None`: it is no plan for that CPU.
pub(crate) fn begin(kept: &KeptPlan, cpu: u32) -> Option<Begun> {
    let (message, plan) = plan(kept, cpu)?;
    let rate = Rate::new(kept.rate_insns_per_ms);
    let node = Node::new(plan, kept.config, rate, message.plan_id(), 0);
    Some(Begun { node: node.ok()?, dealt_seq: message.dealt_seq() })
}

/// The plan of one CPU, with the message that it is from; `None`: it is no plan for that CPU.
fn plan(kept: &KeptPlan, cpu: u32) -> Option<(Message<'_>, pbs_core::Plan<StdMemory>)> {
    let message = Message::parse::<StdMemory>(&kept.message).ok()?;
    let mut plans = Vec::new();
    for section in message.sections() {
        plans.push((section, pbs_core::Plan::build(&section).ok()?));
    }
    pbs_core::join(&mut plans).ok()?;
    let of_cpu = plans.into_iter().find(|(section, _)| section.cpu() == cpu);
    Some((message, of_cpu?.1))
}
