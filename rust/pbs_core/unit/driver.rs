// SPDX-License-Identifier: GPL-2.0

//! A machine of one CPU in virtual time: processes with the real lengths of their tasks, which run
//! when they are granted, one instruction a nanosecond.  Every decision is checked here.

use std::vec::Vec;

use crate::wire::IDLE;
use crate::{
    Cause, Config, Decision, Dispatch, EventKind, Grant, Node, Plan, PreemptionWay, Presence, Slot,
    StdMemory, Threshold,
};

use super::audit::{truths, Audit};
use super::scene::{Log, RATE};

/// A task as it really is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) real_insns: u64,
    /// Number of instructions after which it blocks once, and the time for which it does.
    pub(super) block: Option<(u64, u64)>,
}

/// A process as it really is: its tasks, and when it attaches.
#[derive(Clone, Debug)]
pub(super) struct Work {
    pub(super) tasks: Vec<Task>,
    pub(super) arrival_ns: u64,
}

/// State of a process.
struct State {
    presence: Presence,
    task: usize,
    retired_insns: u64,
    has_blocked: bool,
    wakes_ns: Option<u64>,
}

pub(super) struct Machine {
    pub(super) node: Node<StdMemory>,
    pub(super) log: Log,
    /// Processes as they really are, by index.
    works: Vec<Work>,
    states: Vec<State>,
    now_ns: u64,
    /// Delay of the timer.
    delay_ns: u64,
    filler: Option<(u32, u32)>,
    audit: Audit,
    /// Asks the node again at least after this many instructions.
    pub(super) step_insns: u64,
    /// Makes the node decide anew each time.
    pub(super) forgets: bool,
    /// All grants, reported or not: time, process, reason, slot.
    pub(super) grants: Vec<(u64, Option<u32>, Grant, u32)>,
}

impl Machine {
    pub(super) fn new(
        plan: Plan<StdMemory>,
        config: Config,
        works: Vec<Work>,
        delay_ns: u64,
    ) -> Machine {
        let states = works.iter().map(|work| State {
            presence: Presence::Absent,
            task: 0,
            retired_insns: 0,
            has_blocked: false,
            wakes_ns: Some(work.arrival_ns),
        });
        Machine {
            states: states.collect(),
            node: Node::new(plan, config, RATE, 1, 0).unwrap(),
            log: Log::default(),
            works,
            now_ns: 0,
            delay_ns,
            filler: None,
            audit: Audit::default(),
            step_insns: u64::MAX,
            forgets: false,
            grants: Vec::new(),
        }
    }

    /// Runs until nothing can happen any more; returns the time.
    pub(super) fn run(&mut self) -> u64 {
        // Every step ends a task, a slot, a block, a window or an arrival.
        for _ in 0..1_000_000 {
            self.wake();
            let decision = self.decide();
            if !self.step(decision) {
                return self.now_ns;
            }
        }
        panic!("no end in sight");
    }

    fn wake(&mut self) {
        for (state, p) in self.states.iter_mut().zip(0..) {
            if state.wakes_ns.is_some_and(|at_ns| at_ns <= self.now_ns) {
                state.wakes_ns = None;
                state.presence = Presence::Ready;
                self.node.set_presence(p, Presence::Ready);
            }
        }
    }

    fn decide(&mut self) -> Decision {
        loop {
            let cursor = self.node.cursor();
            let ran = self.node.granted().0;
            let mut true_now = ran.map_or(Vec::new(), |p| truths(&self.node, p, self.now_ns));
            if self.forgets {
                self.node.forget_decision();
            }
            let decision = self.node.decide(self.now_ns, &mut self.log);
            self.note_grant(&decision);
            if let Some(p) = decision.grant {
                true_now.extend(truths(&self.node, p, self.now_ns));
            }
            self.audit.check(&self.node, &self.log.0, &true_now);
            self.node.check_invariants();
            assert!(self.node.cursor() - cursor <= 128);
            if !decision.again {
                let events = self.log.0.len();
                self.node.forget_decision();
                let mut anew = self.node.decide(self.now_ns, &mut self.log);
                if self.node.config().has(Threshold::T2Process) {
                    // A crossing that is nearer can be foreseen better.
                    anew.until_insns = decision.until_insns;
                }
                assert_eq!(anew, decision);
                assert_eq!(self.log.0.len(), events);
                self.check(&decision);
                return decision;
            }
        }
    }

    /// The slot in which a grant is: the present one, or where slots float that of the
    /// process.
    fn slot(&self) -> u32 {
        match self.node.config().dispatch() {
            Dispatch::Thesis => self.node.cursor(),
            Dispatch::Deadline => self.node.floating_slot().unwrap_or(self.node.slots()),
        }
    }

    fn note_grant(&mut self, decision: &Decision) {
        let slot = self.slot();
        let last = self.grants.last();
        let grant = (decision.grant, decision.reason, slot);
        if last.map(|&(_, who, why, slot)| (who, why, slot)) != Some(grant) {
            self.grants
                .push((self.now_ns, decision.grant, decision.reason, slot));
        }
    }

    /// Whether the current task of `p` waits for one that has not ended.
    fn waits(&self, p: u32) -> bool {
        let plan = self.node.plan();
        let task = self.states[p as usize].task;
        let edges = plan.edges_of(p).iter();
        let mut own = edges.filter(|edge| edge.position as usize == task);
        own.any(|edge| {
            let after = plan.predecessors()[edge.predecessor as usize].process;
            self.states[after as usize].task <= edge.task as usize
        })
    }

    fn check(&mut self, decision: &Decision) {
        for p in 0..self.states.len() as u32 {
            assert_eq!(self.node.waits_for(p).is_some(), self.waits(p), "{p}");
        }
        if let Some(p) = decision.grant {
            assert_eq!(self.states[p as usize].presence, Presence::Ready);
            assert!(!self.waits(p));
        }
        let until_ns = decision.until_ns.unwrap_or(u64::MAX);
        assert!(until_ns > self.now_ns);
        let slot = self.node.plan().slot(self.slot()).copied();
        if self.node.config().dispatch() == Dispatch::Deadline {
            return self.check_floating(decision, slot);
        }
        match (decision.reason, decision.grant) {
            (Grant::Slot, Some(p)) => {
                let slot = slot.unwrap();
                assert_eq!(slot.process, p);
                let config = self.node.config();
                if let Some(t1_insns) = self.node.t1_insns(&slot) {
                    let until_insns = decision.until_insns.unwrap();
                    let at_insns = self.node.slot_count_insns() + until_insns;
                    // One that was preempted before may continue beyond t1.
                    let end_insns = self.node.slot_t1_insns().unwrap();
                    let goes_on = config.preemption_way() == PreemptionWay::Once
                        && self.node.process(p).unwrap().preemptions != 0;
                    assert!(end_insns == t1_insns || (goes_on && end_insns > t1_insns));
                    assert!(at_insns <= end_insns);
                    // Nothing else is to be looked at.
                    assert!(config.thresholds != Threshold::T1 as u64 || at_insns == end_insns);
                }
            }
            (Grant::IdleSlot, Some(p)) => {
                assert!(slot.unwrap().is_idle());
                self.check_filler(p);
            }
            (Grant::BlockedSlot, Some(p)) => {
                let owner = slot.unwrap().process;
                let blocked = self.states[owner as usize].presence != Presence::Ready;
                assert!(blocked || self.waits(owner));
                self.check_filler(p);
            }
            (Grant::AfterPlan, Some(p)) => {
                assert!(slot.is_none());
                self.check_filler(p);
            }
            (Grant::None, None) => {
                let owner = self.node.idle_owner();
                let candidate = (0..self.states.len() as u32)
                    .find(|&p| self.is_candidate(p) && owner.is_none_or(|owner| owner == p));
                assert_eq!(candidate, None, "nobody runs but one could");
            }
            (reason, grant) => panic!("{grant:?} because of {reason:?}"),
        }
        assert_ne!(decision.until_insns, Some(0));
        let config = self.node.config();
        if config.thresholds == Threshold::T1 as u64 && config.t1_spares_last_slot == 0 {
            let in_slot = decision.reason == Grant::Slot;
            assert_eq!(decision.until_insns.is_some(), in_slot);
        }
    }

    /// The first of the processes that can run has the CPU, in a slot of its own.
    fn check_floating(&self, decision: &Decision, slot: Option<Slot>) {
        let can_run = |p: u32| {
            let state = &self.states[p as usize];
            state.presence == Presence::Ready && !self.waits(p)
        };
        let mut others = (0..self.states.len() as u32).filter(|&p| can_run(p));
        let Some(p) = decision.grant else {
            assert_eq!(decision.reason, Grant::None);
            assert_eq!(others.next(), None, "nobody runs but one could");
            return;
        };
        assert!(others.all(|other| !self.node.comes_before(other, p)));
        assert_ne!(decision.until_insns, Some(0));
        let Some(slot) = slot else {
            assert_eq!(decision.reason, Grant::AfterPlan);
            return;
        };
        assert_eq!((decision.reason, slot.process), (Grant::Slot, p));
        assert!(slot.position as usize >= self.states[p as usize].task);
        if let Some(end_insns) = self.node.slot_t1_insns() {
            let until_insns = decision.until_insns.unwrap();
            assert!(self.node.slot_count_insns() + until_insns <= end_insns);
            // No budget is less than what was planned.
            assert!(end_insns >= slot.length_insns);
        }
    }

    /// Ready, and the slot of its current task has passed.
    fn is_candidate(&self, p: u32) -> bool {
        let state = &self.states[p as usize];
        let own_slot = self.node.plan().own_slot(p, state.task as u32);
        let behind = own_slot.is_some_and(|own_slot| own_slot < self.node.cursor());
        state.presence == Presence::Ready && behind && !self.waits(p)
    }

    /// Whichever process newly fills a slot is the most urgent of those that could.
    fn check_filler(&mut self, p: u32) {
        assert!(self.is_candidate(p));
        let filler = Some((p, self.node.cursor()));
        if let Some(owner) = self.node.idle_owner() {
            assert_eq!(p, owner);
        } else if self.filler != filler {
            self.filler = filler;
            for other in 0..self.states.len() as u32 {
                assert!(!self.is_candidate(other) || !self.node.comes_before(other, p));
            }
        }
    }

    /// Lets time pass until something happens; false if nothing ever will.
    fn step(&mut self, decision: Decision) -> bool {
        let outside_ns = self.states.iter().filter_map(|state| state.wakes_ns).min();
        let until_ns = decision.until_ns.unwrap_or(u64::MAX);
        let running = decision.grant.filter(|_| !decision.unallocated);
        let Some(p) = running else {
            if decision.until_ns.is_none() && outside_ns.is_none() {
                return false;
            }
            self.now_ns = until_ns.min(outside_ns.unwrap_or(u64::MAX));
            return true;
        };
        let state = &mut self.states[p as usize];
        let task = self.works[p as usize].tasks[state.task];
        // Instructions until it blocks or ends.
        let block = task.block.filter(|_| !state.has_blocked);
        let stop_insns = match block {
            Some((at_insns, _)) => at_insns.min(task.real_insns),
            None => task.real_insns,
        };
        let own_insns = stop_insns - state.retired_insns;
        let timer_ns = (until_ns - self.now_ns).min(decision.until_insns.unwrap_or(u64::MAX));
        let timer_ns = timer_ns.saturating_add(self.delay_ns);
        let outside_ns = outside_ns.map_or(u64::MAX, |at_ns| at_ns - self.now_ns);
        let insns = own_insns.min(timer_ns).min(outside_ns);
        let insns = insns.min(self.step_insns);
        state.retired_insns += insns;
        self.now_ns += insns;
        self.node.charge(p, insns);
        if state.retired_insns < stop_insns {
            return true;
        }
        if let Some((_, for_ns)) = block {
            state.has_blocked = true;
            state.presence = Presence::Blocked;
            state.wakes_ns = Some(self.now_ns + for_ns);
            self.node.set_presence(p, Presence::Blocked);
            return true;
        }
        state.task += 1;
        state.retired_insns = 0;
        state.has_blocked = false;
        let last = state.task == self.works[p as usize].tasks.len();
        let next = self.end_task(p);
        assert_eq!(next.is_none(), last);
        if last {
            self.states[p as usize].presence = Presence::Absent;
            self.node.end_process(p, self.now_ns, &mut self.log);
        }
        true
    }

    fn end_task(&mut self, p: u32) -> Option<u32> {
        let before = self.node.process(p).unwrap();
        let true_now = truths(&self.node, p, self.now_ns);
        let told = self.log.0.len();
        let next = self.node.end_task(p, self.now_ns, &mut self.log);
        self.audit.check(&self.node, &self.log.0, &true_now);
        let config = self.node.config();
        let early = config.has(Threshold::Tm2Task)
            && before.retired_insns < self.node.policy().tm2_task_insns(before.planned_insns);
        let tells_early = self.log.0[told..]
            .iter()
            .any(|event| event.kind == EventKind::Early && event.reason == Cause::Task as u16);
        assert_eq!(tells_early, early);
        next
    }

    /// Checks the events at the end of a run.
    pub(super) fn check_end(&self) {
        let events = &self.log.0;
        assert!(events
            .windows(2)
            .all(|pair| pair[0].time_ns <= pair[1].time_ns));
        assert!(self.node.ended());
        assert_eq!(self.node.unfinished(), 0);
        assert_eq!(self.log.of(EventKind::PlanEnded).len(), 1);
        let ended = self.log.of(EventKind::TaskEnded);
        let mut retired_insns = 0;
        for (work, process) in self.works.iter().zip(self.node.plan().processes()) {
            // Each task once, in order, with its real length.
            let of_process = ended.iter().filter(|event| event.process == process.id);
            let got: Vec<_> = of_process.map(|e| (e.task, e.retired_insns)).collect();
            let real = work.tasks.iter().zip(0..);
            let real: Vec<_> = real.map(|(task, id)| (id, task.real_insns)).collect();
            assert_eq!(got, real);
            retired_insns += got.iter().map(|task| task.1).sum::<u64>();
            let last = ended
                .iter()
                .rfind(|event| event.process == process.id)
                .unwrap();
            let planned = self.node.plan().slots().iter();
            let planned = planned.filter(|slot| {
                self.node.plan().process(slot.process).map(|p| p.id) == Some(process.id)
            });
            let planned_insns: u64 = planned.map(|slot| slot.length_insns).sum();
            let real_insns: u64 = work.tasks.iter().map(|task| task.real_insns).sum();
            assert_eq!(
                last.lateness_insns,
                real_insns as i64 - planned_insns as i64
            );
        }
        let real_insns: u64 = self
            .works
            .iter()
            .flat_map(|work| &work.tasks)
            .map(|task| task.real_insns)
            .sum();
        assert_eq!(retired_insns, real_insns);
        // A preemption of a task is the end of a slot.
        let preemptions: u64 = ended.iter().map(|event| u64::from(event.preemptions)).sum();
        let counts = self.node.counts();
        let slot_ends = counts.get(EventKind::Preempted) + counts.get(EventKind::Ceiling);
        assert!(preemptions <= slot_ends);
        assert!(ended.iter().all(|event| event.process != IDLE));
    }
}
