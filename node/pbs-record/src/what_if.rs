// SPDX-License-Identifier: GPL-2.0
//! Recorded inputs under another configuration: what would the node have done?
//!
//! Two nodes receive the inputs of a CPU.  One has the recorded configuration and repeats the
//! recorded decisions.  The other has the changed one.  Its slots and thresholds may be due earlier
//! than those of the first.  It then decides within a recorded charge, at the time that lies
//! proportionally between the recorded ones.
//!
//! The inputs are those of a world in which the recorded decisions were carried out.  They stay
//! valid while both nodes let the same process run.  The courses *part* where they do not, and where
//! a later plan came into force after signals differed: another planner's question has another
//! answer.  Nothing is predicted from there on.

use std::collections::BTreeMap;

use pbs_core::{
    configured, tell, Begun, Config, Ended, Event, EventKind, Input, InputKind, Node, Replay, Sink,
    StdMemory,
};

use crate::file::{Recording, Stretch};
use crate::replay::{begin, Emitted};

/// Decisions between two recorded inputs; a node that wants more of them makes no progress.
const MOST_DECISIONS: u32 = 64;

/// Reason for which the courses part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartingCause {
    /// Another process may run, or none.
    Decision {
        /// Process that was recorded.
        recorded: Option<u32>,
        /// Process under the changed configuration.
        predicted: Option<u32>,
    },
    /// A plan came into force after the signals of the courses differed.
    Plan,
    /// The predicted node refuses a recorded change of the configuration, together with its own.
    Configuration,
    /// The recording is not the result of its own configuration.
    Recording,
}

/// Moment at which the courses part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parting {
    /// Number of the input in the ring of the CPU.
    pub number: u64,
    /// Time of the moment.
    pub time_ns: u64,
    /// Reason of the parting.
    pub cause: PartingCause,
}

/// Both courses of one CPU, up to their parting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuWhatIf {
    /// The CPU.
    pub cpu: u32,
    /// Inputs that both nodes received.
    pub inputs: u64,
    /// Inputs without a known plan.
    pub skipped: u64,
    /// Inputs after the parting.
    pub after: u64,
    /// Events of the recorded course.
    pub recorded: Vec<Emitted>,
    /// Events of the predicted course.  Those without a recorded number have one of their own.
    pub predicted: Vec<Emitted>,
    /// The parting, if there is one.
    pub parting: Option<Parting>,
}

/// Values from outside for the node of the predicted course.
#[derive(Default)]
struct World {
    /// Recorded values of the present call.
    inputs: Vec<Input>,
    /// Last answer about each predecessor.
    answers: BTreeMap<u32, Ended>,
    last_seq: u64,
    events: Vec<(u64, Event)>,
}

impl Sink for World {
    fn emit(&mut self, event: &Event) -> u64 {
        let is_it = |input: &Input| input.event_kind() == Some(event.kind);
        let seq = match self.inputs.iter().position(is_it) {
            Some(at) => self.inputs.remove(at).value,
            None => self.last_seq.saturating_add(1),
        };
        self.last_seq = self.last_seq.max(seq);
        self.events.push((seq, *event));
        seq
    }

    fn await_elsewhere(&mut self, predecessor: u32, _task: u32) -> Ended {
        self.answers.get(&predecessor).copied().unwrap_or(Ended::NOTHING)
    }
}

/// Both nodes of a CPU.
struct Courses<'a> {
    recording: &'a Recording,
    configs: &'a BTreeMap<(u64, u32), Config>,
    replay: Replay,
    node: Option<Node<StdMemory>>,
    world: World,
    time_ns: u64,
    /// Numbers that differ from the recorded ones, by their places, with their values.
    own_values: Vec<(usize, u64)>,
    signals_differ: bool,
    result: CpuWhatIf,
}

impl Recording {
    /// Replays all inputs under other configurations, by the numbers of plans and CPUs.
    pub fn what_if(&self, configs: &BTreeMap<(u64, u32), Config>) -> Vec<CpuWhatIf> {
        let cpus = self.cpus.iter();
        cpus.map(|(cpu, stretches)| Courses::new(self, configs, *cpu).of(stretches)).collect()
    }
}

impl<'a> Courses<'a> {
    fn new(recording: &'a Recording, configs: &'a BTreeMap<(u64, u32), Config>, cpu: u32) -> Self {
        Self {
            recording,
            configs,
            replay: Replay::new(true),
            node: None,
            world: World::default(),
            time_ns: 0,
            own_values: Vec::new(),
            signals_differ: false,
            result: CpuWhatIf { cpu, ..CpuWhatIf::default() },
        }
    }

    fn of(mut self, stretches: &[Stretch]) -> CpuWhatIf {
        let mut expected = None;
        for stretch in stretches {
            let Stretch::Inputs(part) = stretch else {
                self.forget();
                continue;
            };
            if expected.is_some_and(|expected| expected != part.first) {
                self.forget();
            }
            expected = Some(part.first.saturating_add(part.inputs.len() as u64));
            for (at, input) in part.inputs.iter().enumerate() {
                if self.result.parting.is_some() {
                    self.result.after += 1;
                    continue;
                }
                let mut later = part.inputs[at..].iter().map(|input| input.time_ns);
                let next_ns = later.find(|&time_ns| time_ns != 0).unwrap_or(self.time_ns);
                let number = part.first.saturating_add(at as u64);
                let taken = self.take(input, next_ns);
                self.take_events();
                match taken {
                    Ok(()) if self.node.is_some() => self.result.inputs += 1,
                    Ok(()) => self.result.skipped += 1,
                    Err(cause) => {
                        let time_ns = self.time_ns;
                        self.result.parting = Some(Parting { number, time_ns, cause });
                    }
                }
            }
        }
        self.result
    }

    fn forget(&mut self) {
        self.replay.forget();
        self.node = None;
        self.world.inputs.clear();
    }

    /// Gives both nodes the next input.  `next_ns`: the next recorded time.
    fn take(&mut self, input: &Input, next_ns: u64) -> Result<(), PartingCause> {
        if !input.is_call() {
            self.world.take(input);
            return self.repeat(input);
        }
        if input.input_kind() == Some(InputKind::Begin) {
            if input.reason != 0 && self.signals_differ {
                return Err(PartingCause::Plan);
            }
            self.begin(input);
        }
        let mut rest = *input;
        match input.input_kind() {
            Some(InputKind::Charge) => self.decide_within_charge(&mut rest, next_ns)?,
            _ if input.time_ns != 0 => self.decide_until(input.time_ns)?,
            _ => {}
        }
        if input.time_ns != 0 {
            self.time_ns = input.time_ns;
        }
        self.repeat(input)?;
        if input.input_kind() == Some(InputKind::Gone) {
            self.node = None;
        }
        if input.input_kind() == Some(InputKind::Configure) {
            self.configure(input.time_ns)?;
        }
        if let Some(node) = &mut self.node {
            tell(node, &rest, &mut self.world);
        }
        self.world.inputs.clear();
        match input.input_kind() {
            Some(InputKind::Settle) => self.same_runs(),
            _ => Ok(()),
        }
    }

    /// Gives the node of the recorded course its input.
    fn repeat(&mut self, input: &Input) -> Result<(), PartingCause> {
        let (recording, cpu) = (self.recording, self.result.cpu);
        let plan = |number| begin(recording.plans.get(&(number, cpu))?, cpu);
        let repeated = self.replay.next(input, plan);
        repeated.map(|_| ()).map_err(|_| PartingCause::Recording)
    }

    /// Begins a plan on the node of the predicted course.
    fn begin(&mut self, input: &Input) {
        let key = (input.value, self.result.cpu);
        let old = self.node.take();
        let follows = input.reason != 0;
        if follows && old.is_none() {
            return;
        }
        let kept = self.recording.plans.get(&key).zip(self.configs.get(&key));
        self.own_values.clear();
        if let Some((kept, config)) = kept {
            self.own_values.extend(kept.config.differences(config));
        }
        let Some(Begun { mut node, dealt_seq }) = kept.and_then(|(kept, config)| {
            begin(&crate::KeptPlan { config: *config, ..kept.clone() }, self.result.cpu)
        }) else {
            return;
        };
        node.begin(old.as_ref().filter(|_| follows), dealt_seq, input.time_ns);
        self.node = Some(node);
    }

    /// Makes a recorded change of the configuration, apart from the numbers that differ between the
    /// courses: these keep the values under which the prediction is made.
    fn configure(&mut self, time_ns: u64) -> Result<(), PartingCause> {
        let Some(node) = &mut self.node else { return Ok(()) };
        let mut config = configured(node.config(), &self.world.inputs);
        config = config.with(self.own_values.iter().copied());
        config.check().map_err(|_| PartingCause::Configuration)?;
        let changed = node.configure(&config, time_ns, &mut self.world);
        changed.map(|_| ()).map_err(|_| PartingCause::Configuration)
    }

    /// Lets the node of the predicted course decide within a charge of the process that runs,
    /// where it is due earlier than the recorded one.  Leaves the rest of the charge.
    fn decide_within_charge(&mut self, rest: &mut Input, next_ns: u64) -> Result<(), PartingCause> {
        let mut recorded_left = self.replay.node().and_then(Node::left_insns);
        for _ in 0..MOST_DECISIONS {
            let Some(node) = &mut self.node else { break };
            let due = node.left_insns().filter(|_| node.granted().0 == Some(rest.process));
            let Some(left) = due.filter(|&left| left < recorded_left.unwrap_or(u64::MAX)) else {
                break;
            };
            if left > rest.value {
                break;
            }
            node.charge(rest.process, left);
            let span_ns = next_ns.saturating_sub(self.time_ns);
            self.time_ns += share(span_ns, left, rest.value);
            rest.value -= left;
            recorded_left = recorded_left.map(|recorded| recorded - left);
            node.settle(self.time_ns, &mut self.world);
            self.same_runs()?;
        }
        Ok(())
    }

    /// Lets the node of the predicted course decide at moments before `time_ns` at which it is
    /// due earlier than the recorded one.
    fn decide_until(&mut self, time_ns: u64) -> Result<(), PartingCause> {
        let recorded_ns = self.replay.node().and_then(Node::until_ns).unwrap_or(u64::MAX);
        for _ in 0..MOST_DECISIONS {
            let Some(node) = &mut self.node else { break };
            let due = node.until_ns().filter(|&due| due < time_ns && due < recorded_ns);
            let Some(due_ns) = due else { break };
            self.time_ns = self.time_ns.max(due_ns);
            node.settle(self.time_ns, &mut self.world);
            self.same_runs()?;
        }
        Ok(())
    }

    /// Fails if the nodes do not let the same process run.
    fn same_runs(&self) -> Result<(), PartingCause> {
        let (Some(recorded), Some(predicted)) = (self.replay.node(), &self.node) else {
            return Ok(());
        };
        let running = |node: &Node<StdMemory>| {
            let process = node.granted().0.filter(|_| !node.is_unallocated())?;
            Some(node.process(process)?.id)
        };
        let (recorded, predicted) = (running(recorded), running(predicted));
        if recorded == predicted {
            Ok(())
        } else {
            Err(PartingCause::Decision { recorded, predicted })
        }
    }

    /// Moves the events of both nodes to the result.
    fn take_events(&mut self) {
        let recorded = self.replay.take_events();
        let predicted = std::mem::take(&mut self.world.events);
        let signals = |events: &[(u64, Event)]| -> Vec<_> {
            let events = events.iter().map(|(_, event)| event);
            let signals = events.filter(|event| is_signal(event));
            signals.map(|event| (event.kind as u16, event.reason, event.process)).collect()
        };
        self.signals_differ |= signals(&recorded) != signals(&predicted);
        let plan_id = self.node.as_ref().map_or(0, Node::plan_id);
        let emitted = |(seq, event)| Emitted { seq, plan_id, event };
        self.result.recorded.extend(recorded.into_iter().map(emitted));
        self.result.predicted.extend(predicted.into_iter().map(emitted));
    }
}

impl World {
    /// Stores a recorded value until the node asks for it.
    fn take(&mut self, input: &Input) {
        if input.input_kind() == Some(InputKind::Answer) {
            let before_task = input.more as u32;
            let ended = Ended { before_task, is_last: input.reason != 0 };
            self.answers.insert(input.process, ended);
        } else {
            self.inputs.push(*input);
        }
    }
}

fn is_signal(event: &Event) -> bool {
    matches!(event.kind, EventKind::Late | EventKind::Early)
}

/// The share of `part` of `whole`, of a time.
fn share(span_ns: u64, part: u64, whole: u64) -> u64 {
    let share = u128::from(span_ns) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(span_ns)
}
