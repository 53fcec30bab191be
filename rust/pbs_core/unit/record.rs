// SPDX-License-Identifier: GPL-2.0

//! Records of a node, and replays that make the same node again.

use std::boxed::Box;
use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::wire::{IDLE, NO_TASK};
use crate::{
    Begun, Difference, EventKind, Grant, Input, InputKind, Node, Notes, Presence, Replay, Replayed,
    StdMemory, TakeOver,
};

use super::fuzz::{node, part, step, Part, Step};
use super::random::cases;
use super::scene::{Log, Scene, CONFIG, RATE};
use super::swap::tasks;

/// An input of a node, including those beside [`Step`].
#[derive(Clone, Debug)]
pub(super) enum Told {
    Step(Step),
    Decide,
    Owe(u32, u64),
    OutOfTurn(u64),
    InKernel(u32, u64),
    Interrupted(u64),
    Die(u32),
    TellUntold,
    Count(usize),
    Share(u32),
    /// A plan takes over in pieces of that many processes.
    TakeOver(Box<Part>, u64, usize),
    /// A plan arrives where none is; until then there is none.
    Anew(Box<Part>),
}

pub(super) fn told() -> impl Strategy<Value = Told> {
    let p = || 0..6u32;
    let ns = || prop_oneof![0..10_000u64, any::<u64>()];
    prop_oneof![
        20 => step().prop_map(Told::Step),
        20 => Just(Told::Decide),
        2 => (p(), ns()).prop_map(|(p, ns)| Told::Owe(p, ns)),
        2 => prop_oneof![
            ns().prop_map(Told::OutOfTurn),
            (p(), ns()).prop_map(|(p, ns)| Told::InKernel(p, ns)),
            ns().prop_map(Told::Interrupted),
        ],
        1 => p().prop_map(Told::Die),
        1 => Just(Told::TellUntold),
        1 => (0..EventKind::ALL.len()).prop_map(Told::Count),
        1 => p().prop_map(Told::Share),
        1 => (part(), ns(), 1..4usize).prop_map(|(part, dealt_seq, piece)| {
            Told::TakeOver(Box::new(part), dealt_seq, piece)
        }),
        1 => part().prop_map(|part| Told::Anew(Box::new(part))),
    ]
}

/// A node that is recorded, with the plans that it had.
pub(super) struct Recorded {
    pub(super) node: Node<StdMemory>,
    pub(super) log: Log,
    now_ns: u64,
    pub(super) plans: Vec<(Part, u64)>,
}

impl Recorded {
    pub(super) fn new(part: &Part) -> Recorded {
        let mut node = node(part, 0);
        node.begin(None, 0, 0);
        node.begin_record(Notes(Some(Vec::new())), 0, false);
        Recorded {
            node,
            log: Log::default(),
            now_ns: 0,
            plans: [(part.clone(), 0)].to_vec(),
        }
    }

    fn follow(&mut self, mut new: Node<StdMemory>, part: Part, dealt_seq: u64, follows: bool) {
        let mut tap = core::mem::take(self.node.tap_mut());
        if !follows {
            tap.0.as_mut().unwrap().push(Input::gone(self.now_ns));
        }
        new.begin_record(tap, self.plans.len() as u64, follows);
        self.plans.push((part, dealt_seq));
        self.node = new;
    }

    pub(super) fn tell(&mut self, told: Told) {
        let (node, now_ns) = (&mut self.node, self.now_ns);
        match told {
            Told::Step(Step::Swap(part, dealt_seq)) => {
                let mut new = self::node(&part, now_ns);
                new.begin(Some(node), dealt_seq, now_ns);
                self.follow(new, *part, dealt_seq, true);
            }
            Told::Step(step) => step.tell(node, &mut self.now_ns, &mut self.log),
            Told::Decide => {
                node.decide(now_ns, &mut self.log);
            }
            Told::Owe(p, ns) => node.owe(p, ns),
            Told::OutOfTurn(ns) => node.out_of_turn(ns, now_ns),
            Told::InKernel(p, ns) => node.in_kernel(p, ns, now_ns),
            Told::Interrupted(ns) => node.interrupted(ns, now_ns),
            Told::Die(p) => {
                node.die(p);
                node.end_process(p, now_ns, &mut self.log);
            }
            Told::TellUntold => node.tell_untold(&mut self.log),
            Told::Count(kind) => node.count(EventKind::ALL[kind]),
            Told::Share(p) => node.share(p),
            Told::TakeOver(part, dealt_seq, piece) => {
                let mut new = self::node(&part, now_ns);
                let mut take_over = TakeOver::new(dealt_seq, piece).unwrap();
                if take_over.copy(node, &new) {
                    take_over.apply(&mut new);
                }
                node.charge(1, 7);
                assert!(take_over.finish(node, &mut new, usize::MAX, now_ns, |_, _| {}));
                self.follow(new, *part, dealt_seq, true);
            }
            Told::Anew(part) => {
                let mut new = self::node(&part, now_ns);
                new.begin(None, 0, now_ns);
                self.follow(new, *part, 0, false);
            }
        }
    }

    pub(super) fn inputs(&mut self) -> Vec<Input> {
        self.node.tap_mut().0.take().unwrap()
    }
}

/// Replays all of it.  Returns the number of inputs that were skipped, or the number of the first
/// one that differs.
fn replay(
    inputs: &[Input],
    plan: impl Fn(u64) -> Option<Begun>,
) -> Result<(Replay, usize), (usize, Difference)> {
    let mut replay = Replay::new(true);
    let mut skipped = 0;
    for (input, at) in inputs.iter().zip(0..) {
        let replayed = replay.next(input, &plan);
        let replayed = replayed.map_err(|difference| (at - difference.before, difference))?;
        skipped += usize::from(replayed == Replayed::Skipped);
    }
    Ok((replay, skipped))
}

pub(super) fn begun(plans: &[(Part, u64)], number: u64) -> Option<Begun> {
    let (part, dealt_seq) = plans.get(usize::try_from(number).ok()?)?;
    Some(Begun {
        node: node(part, 0),
        dealt_seq: *dealt_seq,
    })
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn what_is_told_again_makes_the_same(first in part(), all in vec(told(), 1..120)) {
        let mut recorded = Recorded::new(&first);
        for told in all {
            recorded.tell(told);
        }
        let inputs = recorded.inputs();
        let plans = &recorded.plans;
        let (mut replay, skipped) = replay(&inputs, |number| begun(plans, number))
            .map_err(|difference| TestCaseError::fail(std::format!("{difference:?}")))?;
        prop_assert_eq!(skipped, 0);
        replay.node().unwrap().check_same(&recorded.node);
        let events: Vec<_> = replay.take_events();
        prop_assert!(events.iter().map(|(seq, _)| *seq).eq(0..recorded.log.0.len() as u64));
        prop_assert!(events.iter().map(|(_, event)| event).eq(recorded.log.0.iter()));
    }

    /// Whatever is made of a record, nothing panics.
    #[test]
    fn any_record(
        first in part(),
        all in vec(told(), 1..60),
        changes in vec((any::<prop::sample::Index>(), 0..256u32), 1..4),
    ) {
        let mut recorded = Recorded::new(&first);
        for told in all {
            recorded.tell(told);
        }
        let mut inputs = recorded.inputs();
        for (at, bit) in changes {
            flip(at.get_mut(&mut inputs), bit);
        }
        let plans = &recorded.plans;
        let _ = replay(&inputs, |number| begun(plans, number));
    }
}

/// Another value of one of its 256 bits.
fn flip(input: &mut Input, bit: u32) {
    match bit / 64 {
        0 => input.time_ns ^= 1 << bit,
        1 => input.value ^= 1 << (bit % 64),
        2 => input.more ^= 1 << (bit % 64),
        _ => match bit % 64 {
            bit @ 0..32 => input.process ^= 1 << bit,
            bit @ 32..48 => input.kind ^= 1 << (bit - 32),
            bit => input.reason ^= 1 << (bit - 48),
        },
    }
}

/// A scene that is recorded from its begin on.
fn recorded(slots: &[(u32, u64)]) -> Scene {
    let mut scene = Scene::new(slots);
    let plan = tasks(&tasks_of(slots));
    let mut node = Node::new(plan, CONFIG, RATE, 7, 0).unwrap();
    node.begin(None, 0, 0);
    node.begin_record(Notes(Some(Vec::new())), 3, false);
    scene.node = node;
    scene.log = Log::default();
    scene
}

/// Slots with a task each, numbered by process.
fn tasks_of(slots: &[(u32, u64)]) -> Vec<(u32, u32, u64)> {
    let numbered = slots.iter().enumerate().map(|(at, &(process, insns))| {
        let before = slots[..at].iter().filter(|slot| slot.0 == process).count();
        (process, before as u32, insns)
    });
    numbered.collect()
}

#[test]
fn each_call_stands_with_what_came_of_it() {
    let mut scene = recorded(&[(1, 1000), (2, 1000)]);
    let log = &mut scene.log;
    let node = &mut scene.node;
    node.set_presence(0, Presence::Ready);
    // Nothing new.
    node.set_presence(0, Presence::Ready);
    node.settle(5, log);
    node.charge(0, 400);
    node.charge(0, 0);
    // It still holds.
    node.settle(6, log);
    assert_eq!(node.end_task(0, 500, log), None);
    let got = node.tap_mut().0.take().unwrap();
    let slot = Grant::Slot as u16;
    let settle = Input {
        time_ns: 5,
        process: 0,
        reason: slot,
        // No ceiling comes before, and t1 is 1,100 of 1,000.
        more: 1100,
        ..Input::of(InputKind::Settle)
    };
    let kinds: Vec<_> = got.iter().map(|input| input.name().unwrap()).collect();
    let want = [
        "begin",
        "presence",
        "grant",
        "settle",
        "charge",
        "task_ended",
        "process_ended",
        "end_task",
    ];
    assert_eq!(kinds, want);
    assert_eq!((got[0].value, got[0].time_ns, got[0].reason), (3, 0, 0));
    assert_eq!((got[1].process, got[1].reason, got[1].value), (0, 2, 1));
    let event = (got[2].process, got[2].reason, got[2].value, got[2].time_ns);
    assert_eq!(event, (1, slot, 0, 5));
    let until_ns = got[3].value;
    assert_eq!(
        got[3],
        Input {
            value: until_ns,
            ..settle
        }
    );
    assert_eq!((got[4].value, got[4].more), (400, 400));
    assert_eq!((got[5].value, got[6].value), (1, 2));
    assert_eq!((got[7].value, got[7].more), (NO_TASK.into(), 0));
    assert_eq!(got[7].time_ns, 500);
}

#[test]
fn what_differs_is_named() {
    let mut scene = recorded(&[(1, 1000), (2, 1000)]);
    for p in 0..2 {
        scene.node.set_presence(p, Presence::Ready);
    }
    scene.node.settle(5, &mut scene.log);
    scene.node.charge(0, 400);
    scene.node.end_task(0, 500, &mut scene.log);
    scene.node.settle(500, &mut scene.log);
    let inputs = scene.node.tap_mut().0.take().unwrap();
    let plan = |number| {
        let plan = tasks(&tasks_of(&[(1, 1000), (2, 1000)]));
        (number == 3).then(|| Begun {
            node: Node::new(plan, CONFIG, RATE, 7, 0).unwrap(),
            dealt_seq: 0,
        })
    };
    assert_eq!(replay(&inputs, plan).unwrap().1, 0);
    for (at, input) in inputs.iter().enumerate().skip(1) {
        // Values from outside are passed on with the call.
        let first = inputs[..at].iter().rposition(Input::is_call).unwrap() + 1;
        // A time that is another one need not matter.
        for bit in 64..256 {
            if input.kind >= Input::EVENT && bit < 128 {
                // The number of an event is whatever it was.
                continue;
            }
            let mut inputs = inputs.clone();
            flip(&mut inputs[at], bit);
            if at + 1 == inputs.len() && !inputs[at].is_call() {
                // The call that it belongs to has not come yet.
                continue;
            }
            match replay(&inputs, plan) {
                Err((number, _)) => assert!(number >= first, "{at} {bit}"),
                // It claims that another plan begins, which does not exist.
                Ok((_, skipped)) => assert!(skipped > 0, "{at} {bit} {input:?}"),
            }
        }
    }
    // The first difference is the one that is named.
    let mut other = inputs.clone();
    other[4].more += 1;
    let (number, difference) = replay(&other, plan).err().unwrap();
    assert_eq!(number, 4);
    assert_eq!(difference.recorded, other[4]);
    assert_eq!(difference.came_out, Some(inputs[4]));
    // One input less: the result of the next one differs.
    let mut other = inputs.clone();
    other.remove(4);
    let (number, difference) = replay(&other, plan).err().unwrap();
    assert_eq!(number, 3, "{difference:?}");
}

#[test]
fn what_begins_in_the_middle_is_skipped() {
    let mut scene = recorded(&[(1, 1000), (2, 1000)]);
    scene.node.set_presence(0, Presence::Ready);
    scene.node.settle(5, &mut scene.log);
    let inputs = scene.node.tap_mut().0.take().unwrap();
    let mut replay = Replay::new(false);
    for input in &inputs[1..] {
        assert_eq!(replay.next(input, |_| None), Ok(Replayed::Skipped));
    }
    // Nor can a plan follow that one.
    let follows = Input {
        reason: 1,
        ..inputs[0]
    };
    assert_eq!(replay.next(&follows, |_| None), Ok(Replayed::Skipped));
    assert!(replay.node().is_none());
    assert_eq!(inputs[0].process, IDLE);
}
