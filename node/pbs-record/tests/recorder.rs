// SPDX-License-Identifier: GPL-2.0
//! A recorder beside a CPU that is too fast for it: lost inputs, and the snapshots after them.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::rc::Rc;

use pbs_core::wire::Message;
use pbs_core::{Begun, Input, InputKind, Node, Rate, Replay, StdMemory};
use pbs_record::{InputRing, Recorder, Recording, Source};
use pbs_sim::{simulate, NoAnswer, Options};
use pbs_uapi::{RingRead, SnapshotOf, StoredPlan, TakenSnapshot};

/// Capacity of the ring.
const CAPACITY: u64 = 16;

/// A CPU whose inputs are those of a simulation.  It goes on when the test lets it.
struct Cpu {
    inputs: Vec<Input>,
    plan: pbs_sim::BegunPlan,
    /// Number of the next input.
    head: Cell<u64>,
    /// Numbers of the inputs at which snapshots were taken.
    snapshots: RefCell<Vec<u64>>,
    /// Inputs that are noted while a snapshot is taken.
    meanwhile: Cell<u64>,
}

impl Cpu {
    /// Two processes that hand the CPU over in turn.
    fn new() -> Rc<Self> {
        let mut text = String::from("plan_id = 3\n");
        for id in 1..=2 {
            let tasks = vec!["{ planned_insns = 2_000_000, real_insns = 2_500_000 }"; 100];
            text += &format!("[[process]]\nid = {id}\nname = \"p{id}\"\n");
            text += &format!("tasks = [{}]\n", tasks.join(", "));
        }
        let slots = vec!["\"p1\", \"p2\""; 100];
        text += &format!("[[cpu]]\ncpu = 0\nslots = [{}]\n", slots.join(", "));
        let plan = pbs_plan::from_toml(&text).unwrap_or_else(|problems| panic!("{problems:?}"));
        let options = Options { record_inputs: true, ..Options::default() };
        let simulation = simulate(&plan, &options, &mut NoAnswer).unwrap();
        let mut recorded = simulation.recorded.clone();
        let recorded = recorded.remove(0);
        Rc::new(Self {
            inputs: recorded.inputs,
            plan: recorded.plans[0].clone(),
            head: Cell::new(0),
            snapshots: RefCell::default(),
            meanwhile: Cell::new(0),
        })
    }

    /// Notes that many inputs, and those that belong to the last of them: a snapshot is taken
    /// between two calls of the node.
    fn go_on(&self, inputs: u64) {
        let mut head = self.head.get() + inputs;
        assert!(head < self.inputs.len() as u64, "the simulation is too short");
        while is_within_a_call(&self.inputs[head as usize - 1]) {
            head += 1;
        }
        self.head.set(head);
    }

    /// Notes all inputs that are left, a few at a time.
    fn end(&self, recorder: &mut Recorder<Vec<u8>, Kernel>) {
        let end = self.inputs.len() as u64;
        while self.head.get() < end {
            self.head.set((self.head.get() + 5).min(end));
            recorder.take().unwrap();
        }
    }

    fn node(&self) -> Node<StdMemory> {
        let message = Message::parse::<StdMemory>(&self.plan.message).unwrap();
        let plan = pbs_core::Plan::build(&message.sections().next().unwrap()).unwrap();
        let rate = Rate::new(self.plan.rate_insns_per_ms);
        Node::new(plan, self.plan.config, rate, message.plan_id(), 0).unwrap()
    }

    /// The node before the next input.
    fn words(&self) -> Vec<u64> {
        let mut replay = Replay::new(false);
        for input in &self.inputs[..self.head.get() as usize] {
            let begun = |_| Some(Begun { node: self.node(), dealt_seq: 0 });
            assert_eq!(replay.next(input, begun), Ok(pbs_core::Replayed::Same));
        }
        let mut words = Vec::new();
        replay.node().unwrap().save(|word| words.push(word));
        words
    }

    fn snapshots(&self) -> usize {
        self.snapshots.borrow().len()
    }
}

/// Whether the input belongs to a call that is noted after it.
fn is_within_a_call(input: &Input) -> bool {
    matches!(input.input_kind(), None | Some(InputKind::Answer | InputKind::ConfigValue))
}

/// The kernel with this CPU.
struct Kernel(Rc<Cpu>);

/// The ring of the CPU.
struct FakeRing(Rc<Cpu>);

impl fmt::Debug for FakeRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FakeRing")
    }
}

impl Source for Kernel {
    type Ring = FakeRing;

    fn cpu_ids(&self) -> u32 {
        1
    }

    fn ring(&self, cpu: u32) -> io::Result<Option<FakeRing>> {
        Ok((cpu == 0).then(|| FakeRing(self.0.clone())))
    }

    fn kept_plan(&self, _number: u64, _cpu: u32) -> io::Result<Option<StoredPlan>> {
        panic!("the plan began before the recording");
    }

    fn snapshot(&self, _cpu: u32) -> io::Result<SnapshotOf> {
        let cpu = &self.0;
        let next_input = cpu.head.get();
        cpu.snapshots.borrow_mut().push(next_input);
        let mut plan = Vec::new();
        let node = cpu.node();
        let sink = |piece: &[u8]| {
            plan.extend_from_slice(piece);
            Ok::<(), ()>(())
        };
        node.plan().encode(0, &cpu.plan.config, node.plan_id(), sink).unwrap();
        let words = cpu.words();
        cpu.go_on(cpu.meanwhile.get());
        let (time_ns, installed_ns) = (cpu.inputs[next_input as usize].time_ns, 0);
        let taken = TakenSnapshot { next_input, time_ns, installed_ns, plan, words };
        Ok(SnapshotOf::Taken(taken))
    }
}

impl InputRing for FakeRing {
    fn cpu(&self) -> u32 {
        0
    }

    fn bounds(&self) -> (u64, u64) {
        let head = self.0.head.get();
        (head.saturating_sub(CAPACITY), head)
    }

    fn look(&self, number: u64) -> RingRead<pbs_uapi::Input> {
        let (tail, head) = self.bounds();
        if number >= head {
            return RingRead::NotYet;
        }
        if number < tail {
            return RingRead::Lost;
        }
        let Input { time_ns, value, more, process, kind, reason } = self.0.inputs[number as usize];
        RingRead::Record(pbs_uapi::Input { time_ns, value, more, process, kind, reason })
    }
}

/// A recorder that begins in the middle of the plan.
fn begun() -> (Rc<Cpu>, Recorder<Vec<u8>, Kernel>) {
    let cpu = Cpu::new();
    cpu.go_on(20);
    let recorder = Recorder::new(Kernel(cpu.clone()), Vec::new()).unwrap();
    assert_eq!((cpu.snapshots(), recorder.snapshots()), (1, 1));
    (cpu, recorder)
}

/// Reads as many inputs as the ring holds and more, in time.
fn keep_up(cpu: &Cpu, recorder: &mut Recorder<Vec<u8>, Kernel>) {
    for _ in 0..8 {
        cpu.go_on(4);
        recorder.take().unwrap();
    }
}

#[test]
fn a_replay_continues_with_a_snapshot_after_lost_inputs() {
    let (cpu, mut recorder) = begun();
    let first = cpu.head.get();
    keep_up(&cpu, &mut recorder);
    assert_eq!((recorder.lost(), cpu.snapshots()), (0, 1));
    // More than the ring holds, and some while the snapshot is taken.
    cpu.go_on(CAPACITY + 7);
    cpu.meanwhile.set(3);
    recorder.take().unwrap();
    let lost = recorder.lost();
    assert!(lost > 0);
    assert_eq!((cpu.snapshots(), recorder.snapshots()), (2, 2));
    let continued = cpu.snapshots.borrow()[1];
    // Nothing more is lost, and no other snapshot is taken.
    cpu.end(&mut recorder);
    assert_eq!((recorder.lost(), cpu.snapshots()), (lost, 2));
    assert!(recorder.in_vain().is_empty());
    let taken = recorder.taken();
    let recording = Recording::read(&recorder.end().unwrap()).unwrap();
    let replay = &recording.replay(false)[0];
    assert_eq!((replay.difference, replay.lost), (None, lost));
    assert!(replay.refused_snapshots.is_empty());
    // Only inputs between the lost ones and the snapshot are not replayed.
    let end = cpu.inputs.len() as u64;
    assert_eq!(replay.inputs + replay.skipped, taken);
    assert!(replay.inputs >= end - continued, "{replay:?}");
    assert!(replay.skipped < CAPACITY);
    assert_eq!(taken + lost, end - first);
}

/// Inputs are lost after each snapshot.  The recorder takes fewer and fewer, and reports them.
#[test]
fn a_recorder_that_falls_behind_takes_fewer_snapshots() {
    let (cpu, mut recorder) = begun();
    cpu.meanwhile.set(CAPACITY + 1);
    cpu.go_on(CAPACITY + 1);
    let mut calls = Vec::new();
    for call in 1..=60 {
        let before = cpu.snapshots();
        recorder.take().unwrap();
        if cpu.snapshots() > before {
            calls.push(call);
        }
    }
    // The first snapshot, before all, was in vain as well.  Then come 1, 2, 4, 8 and 16 calls
    // without one, each time after the call that finds that inputs were lost.
    assert_eq!(calls, [2, 5, 10, 19, 36]);
    assert_eq!(recorder.in_vain().get(&0), Some(&6));
}

/// A recorder that has caught up takes the snapshot after the next loss without a pause.
#[test]
fn a_recorder_that_keeps_up_again_takes_a_snapshot_at_once() {
    let (cpu, mut recorder) = begun();
    cpu.meanwhile.set(CAPACITY + 1);
    cpu.go_on(CAPACITY + 1);
    for _ in 0..8 {
        recorder.take().unwrap();
    }
    let in_vain = recorder.in_vain().clone();
    assert!(!in_vain.is_empty());
    cpu.meanwhile.set(0);
    let before = cpu.snapshots();
    for _ in 0..16 {
        recorder.take().unwrap();
    }
    assert_eq!(cpu.snapshots() - before, 1);
    keep_up(&cpu, &mut recorder);
    let before = cpu.snapshots();
    cpu.go_on(CAPACITY + 1);
    recorder.take().unwrap();
    assert_eq!(cpu.snapshots() - before, 1);
    assert_eq!(*recorder.in_vain(), in_vain);
    cpu.end(&mut recorder);
    let recording = Recording::read(&recorder.end().unwrap()).unwrap();
    let replay = &recording.replay(false)[0];
    assert_eq!(replay.difference, None);
    assert!(replay.refused_snapshots.is_empty() && replay.inputs > 40, "{replay:?}");
}
