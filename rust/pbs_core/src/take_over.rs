// SPDX-License-Identifier: GPL-2.0

//! Takeover from the plan before by a new plan.
//!
//! [`Node::begin`] does it at once, in time that grows with the number of processes.  [`TakeOver`]
//! does it in pieces, while the old plan continues: the processes are copied a few at a time, and
//! those that change after that are copied again.  The last step copies the few that are left, and
//! the state of the node as a whole.

use super::event::Ended;
use super::lengths::Lengths;
use super::level::Level;
use super::memory::{pause, Interrupted, Memory, NoMemory};
use super::node::Node;
use super::plan::Predecessor;
use super::refusal::{Fault, Refusal};
use super::run::Run;
use super::windows::Windows;

/// Number of edges of a process that the last step of a takeover checks, with the run queue locked;
/// also the number of edges among which a message is found that was missed before.
const EDGES_AT_LAST: usize = 64;

/// The state of the node as a whole that decides how each process is taken over.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Terms {
    /// The plan deals with the failures of all events before this one.
    dealt_seq: u64,
    /// Whether a new run begins, in which the processes that have ended run again.
    again: bool,
    /// Whether a failure of the node is dealt with: all processes begin a new account.
    node_dealt: bool,
}

/// A process of the old plan at a moment.
#[derive(Clone, Copy)]
struct Before {
    run: Run,
    /// Whether it has a turn among the candidates.
    has_turn: bool,
    /// Id of its first task that has not ended.
    task: u32,
    /// Id of the first of its tasks whose slot has not passed.
    task_ahead: u32,
    /// Sender, as process and task, of the message that it misses.
    missed_message: Option<(u32, u32)>,
}

impl<M: Memory> Node<M> {
    /// Brings the plan into force at `now_ns`.  Call this once, before anything else, unless the
    /// plan came into force when the node was made.  Takes O(processes · log tasks).
    ///
    /// The plan takes over from `old` the processes that are in both plans, the rhythm of the
    /// windows, and the counts of events.
    ///
    /// A process keeps its presence, its account of lateness and its peaks.  It continues with the
    /// first task of the new plan whose id is not less than the id of its current task.  If that is
    /// the same task, the task keeps its counts.  A process that has no task left in the new plan
    /// is done.
    ///
    /// A process that waits for a gap keeps its turn.  The process that has the CPU gets a new one.
    /// A process that `old` held back or suspended gets its turn with the first decisions of this
    /// plan.
    ///
    /// If `old` has ended and the plan is no answer (`dealt_seq` is 0), a process that was done in
    /// it begins afresh: the same plan can be run again and again.
    ///
    /// The plan deals with the prediction failures whose events have a number less than the
    /// greatest `dealt_seq` so far.  A process of which t2_process was reported begins a new
    /// account; all do if t2_node or tm2_node was reported.  The preemptions of a task of which
    /// t2_preemptions was reported count from 0.  A t2_task that was reported is not reported again
    /// if the task is beyond that of the new plan, too; likewise t2_memory and the node's limit of
    /// memory.  All other signals are reported again if they still hold.  Stress is set
    /// again, unless the configuration names other causes.
    pub fn begin(&mut self, old: Option<&Node<M>>, dealt_seq: u64, now_ns: u64) {
        let Some(old) = old else {
            self.status.install(dealt_seq, now_ns);
            self.windows = Windows::new(&self.policy.config, now_ns);
            return;
        };
        let terms = old.terms(dealt_seq);
        for index in 0..self.processes.len() as u32 {
            let same = self.plan.process(index).and_then(|p| old.plan.find(p.id));
            if let Some(before) = same.and_then(|from| old.before(from)) {
                self.take(index, &before, &terms);
            }
        }
        self.follow(old, &terms, now_ns);
    }

    /// Takes over the state of the node as a whole.
    fn follow(&mut self, old: &Node<M>, terms: &Terms, now_ns: u64) {
        self.status.install(terms.dealt_seq, now_ns);
        self.queue.follow(&old.queue);
        let since_ns = old.status.installed_ns();
        self.responses = old
            .responses
            .after(terms.dealt_seq, terms.again, since_ns, now_ns);
        let cause = self.policy.config.stress_cause();
        if terms.again || self.lengths.set_stress(cause, self.processes.len()) {
            // The intervals of a run that has ended say nothing of a new one.
            let interval_ns = self.plan_interval_ns().filter(|_| !terms.again);
            let points = self.policy.config.volatile_points(interval_ns);
            self.status.add_stress(points);
        } else {
            self.status.keep_stress(&old.status);
        }
        self.use_measured_reschedule_time();
        self.windows = Windows::new(&self.policy.config, now_ns);
        self.windows.take_over(&old.windows);
        self.timetable.begin(self.windows.later_plan_ns(now_ns));
        self.budget = old.budget;
        self.counts = old.counts;
        let mut idle_insns = 0;
        if !terms.node_dealt && !terms.again {
            self.signals
                .reopen(&old.signals, self.info_dealt_seq(terms));
            if self.policy.config.idle_is_lateness != 0 {
                let mut windows = old.windows;
                windows.advance(now_ns);
                let plan_ns = windows.plan_ns(now_ns);
                idle_insns = old.processes.idle_insns_at(plan_ns, old.rates.cpu());
            }
        }
        self.signals.elsewhere_bytes = old.signals.elsewhere_bytes;
        if !terms.again {
            self.slot.follow(&old.slot);
            let memory = old.signals.memory;
            let memory = if !memory.is_dealt(terms.dealt_seq) {
                memory.reopened(self.info_dealt_seq(terms))
            } else if self.has_too_much_together() {
                memory.silenced()
            } else {
                Level::NOTHING
            };
            self.signals.memory = memory;
        }
        self.processes.set_idle(idle_insns);
        self.wait_lists.begin();
        self.renew_turn(old, now_ns);
    }

    /// Gives the process that loses the CPU of the plan before a new turn among the candidates.
    fn renew_turn(&mut self, old: &Node<M>, now_ns: u64) {
        let granted = old.grant.process().and_then(|p| old.plan.process(p));
        let Some(p) = granted.and_then(|process| self.plan.find(process.id)) else {
            return;
        };
        let window = self.windows.later_number(now_ns);
        if !self.floats() {
            self.lose_turn(p);
            let runs = self.processes.runs_mut();
            self.queue.renew_turn(runs, p, window);
        }
    }

    /// The plan deals with the information of the events before this one.
    fn info_dealt_seq(&self, terms: &Terms) -> u64 {
        match self.policy.config.info_is_dealt {
            0 => 0,
            _ => terms.dealt_seq,
        }
    }

    /// Terms on which a plan takes over from this one, if it deals with the failures of the events
    /// before `dealt_seq`.
    fn terms(&self, dealt_seq: u64) -> Terms {
        let again = self.runs_again(dealt_seq);
        let dealt_seq = dealt_seq.max(self.status.dealt_seq());
        Terms {
            dealt_seq,
            again,
            node_dealt: self.signals.is_dealt(dealt_seq),
        }
    }

    /// Whether a plan that deals with the events before `dealt_seq` begins a new run, in which the
    /// processes of this one run again.  A plan that deals with any event is an answer to this run,
    /// even if the run has ended meanwhile.
    fn runs_again(&self, dealt_seq: u64) -> bool {
        self.status.has_ended() && dealt_seq == 0
    }

    /// The process `from` as it is now.
    fn before(&self, from: u32) -> Option<Before> {
        let run = *self.processes.get(from)?;
        Some(Before {
            run,
            has_turn: !self.floats() && run.has_turn(),
            task: self.next_task(from),
            task_ahead: self.task_ahead(from),
            missed_message: self.missed_message_of(from),
        })
    }

    /// Continues the process `index` from its state `before`.  If this is called more than once,
    /// the last call counts.
    fn take(&mut self, index: u32, before: &Before, terms: &Terms) {
        let mut run = self.resume(index, before, terms);
        let failed = terms.node_dealt || run.reported.is_dealt(terms.dealt_seq);
        let known = self
            .processes
            .get(index)
            .map_or(Lengths::New, |run| run.lengths);
        run.lengths = Lengths::of(&run, &before.run, failed);
        self.lengths.replace(known, run.lengths);
        if terms.node_dealt || run.reported.process.is_dealt(terms.dealt_seq) {
            run.begin_account();
            run.reported.process = Level::NOTHING;
        }
        if run.reported.preemptions.is_dealt(terms.dealt_seq) {
            run.preemptions = 0;
            run.reported.preemptions = Level::NOTHING;
        }
        if run.reported.task.is_dealt(terms.dealt_seq) {
            let late = run.retired_insns > self.policy.t2_task_insns(run.planned_insns);
            run.reported.task = if late {
                before.run.reported.task.silenced()
            } else {
                Level::NOTHING
            };
        }
        if run.reported.memory.is_dealt(terms.dealt_seq) {
            run.reported.memory = if self.has_too_much(index, &run) {
                before.run.reported.memory.silenced()
            } else {
                Level::NOTHING
            };
        }
        if self.floats() {
            self.floating.take(self.processes.runs_mut(), index);
            self.change(index, |place| *place = run);
            return self.place_anew(index);
        }
        self.queue.remove(self.processes.runs_mut(), index);
        let had_none = before.run.held || before.run.suspended || before.run.enters;
        run.enters = had_none && !before.has_turn && run.is_candidate(self.slot.number());
        let (round, ticket) = (before.run.round, before.run.ticket);
        let let_go = Run { held: false, ..run };
        if before.has_turn && run.held && let_go.is_candidate(self.slot.number()) {
            (run.keeps_turn, run.round, run.ticket) = (true, round, ticket);
        }
        let entered = self.processes.get(index).is_some_and(|run| run.enters);
        self.wait_lists.replace_entering(entered, run.enters);
        self.change(index, |place| *place = run);
        // A candidate has waited since the old plan.
        self.queue
            .keep_turn(self.processes.runs_mut(), index, round, ticket);
    }

    /// The state in which the process `index` continues from its state `before`.
    fn resume(&self, index: u32, before: &Before, terms: &Terms) -> Run {
        let (old, task) = (&before.run, before.task);
        let afresh = old.done && terms.again;
        let info_dealt_seq = self.info_dealt_seq(terms);
        let position = if afresh {
            0
        } else {
            self.position_of(index, task)
        };
        let mut run = match self.processes.get(index) {
            // The plan need not be asked again for facts that are stored here already.
            Some(run) if run.position == position => run.unbegun(),
            _ => Run::at(&self.plan, index, position),
        };
        run.presence = old.presence;
        if afresh {
            return run;
        }
        run.owed_ns = old.owed_ns;
        run.died_in = old.died_in;
        run.begun = old.begun;
        run.account = old.account;
        run.process_peak = old.process_peak;
        run.reported.process = old.reported.process.reopened(info_dealt_seq);
        run.reported.memory = old.reported.memory.reopened(self.info_dealt_seq(terms));
        if !run.done && !old.done && run.task == task {
            run.task_begun = old.task_begun;
            run.retired_insns = old.retired_insns;
            run.preemptions = old.preemptions;
            run.peak = old.peak;
            run.reported.task = old.reported.task.reopened(info_dealt_seq);
            run.reported.preemptions = old.reported.preemptions.reopened(info_dealt_seq);
            if let Some(edge) = self.edge_of_missed(&run, before) {
                run.missed_edge = edge;
                run.missed_arrival_ns = old.missed_arrival_ns;
                run.reported_message = old.reported_message;
            }
        } else if !old.done {
            run.account = old.account_without_task();
        }
        if !terms.again {
            // A task that is held may retire instructions: it handles signals.
            let has_begun = run.retired_insns > 0 && !old.held;
            run.begun_before = run.position + u32::from(has_begun);
            if has_begun {
                run.carried_insns = run.retired_insns.min(run.planned_insns);
            }
            if before.task_ahead > task {
                run.behind_before = self.plan.position_of(index, before.task_ahead);
            }
        }
        run
    }

    /// Returns the edge of the message that was missed before this plan, if the plan declares no
    /// new arrival.  Checks the first [`EDGES_AT_LAST`] edges of the task.
    fn edge_of_missed(&self, run: &Run, before: &Before) -> Option<u32> {
        let sender = before.missed_message?;
        let edges = run.edge..run.edge.saturating_add(EDGES_AT_LAST as u32);
        let mut edges = edges.filter(|&number| {
            let edge = self.plan.edges.get(number as usize);
            let awaited = edge
                .filter(|edge| edge.position == run.position)
                .and_then(|edge| {
                    let predecessor = self.plan.predecessors.get(edge.predecessor as usize)?;
                    Some((predecessor.id, edge.task))
                });
            awaited == Some(sender) && self.plan.arrival_ns(number) == Some(0)
        });
        edges.next()
    }

    /// [`Plan::position_of`](super::Plan::position_of), in constant time if the process is there
    /// already.
    fn position_of(&self, index: u32, task: u32) -> u32 {
        let here = self.processes.get(index).map_or(0, |run| run.position);
        let id = |position| self.plan.task(index, position);
        let after_last = || self.plan.process(index).is_some_and(|p| here == p.count);
        let not_before = id(here).map_or_else(after_last, |id| id >= task);
        let none_before = here == 0 || id(here - 1).is_some_and(|id| id < task);
        if not_before && none_before {
            return here;
        }
        self.plan.position_of(index, task)
    }

    /// Id of the first task of process `p` whose slot has not passed, not before the first that has
    /// not ended.
    fn task_ahead(&self, p: u32) -> u32 {
        let Some(run) = self.processes.get(p) else {
            return 0;
        };
        let cursor = self.slot.number();
        if self.floats() || run.done || !run.is_behind(cursor) {
            return self.next_task(p);
        }
        let count = self.plan.process(p).map_or(0, |process| process.count);
        // The slots of a process are in the order of its tasks.
        let (mut behind, mut ahead) = (run.position, count);
        while behind + 1 < ahead {
            let middle = behind + (ahead - behind) / 2;
            let has_passed = middle < run.behind_before
                || self
                    .plan
                    .own_slot(p, middle)
                    .is_some_and(|slot| slot < cursor);
            if has_passed {
                behind = middle;
            } else {
                ahead = middle;
            }
        }
        self.plan
            .task(p, behind)
            .map_or(0, |last| last.saturating_add(1))
    }

    /// Id of the first task of process `p` that has not ended.
    fn next_task(&self, p: u32) -> u32 {
        let position = self.processes.get(p).map_or(0, |run| run.position);
        let task = |position| self.plan.task(p, position);
        task(position).unwrap_or_else(|| {
            task(position.saturating_sub(1)).map_or(0, |last| last.saturating_add(1))
        })
    }

    /// Refuses to follow `old` if the plan has a process that has ended and has no more tasks for
    /// it: the planner is not aware of that end.  Call this before [`Node::begin`].
    pub fn check_over(&self, old: &Node<M>, dealt_seq: u64) -> Result<(), Refusal> {
        if old.runs_again(dealt_seq) {
            return Ok(());
        }
        for (process, index) in self.plan.processes().iter().zip(0..) {
            let before = old.plan.find(process.id).and_then(|from| old.before(from));
            if before.is_some_and(|before| self.gives_nothing(index, &before)) {
                return Err(Fault::ProcessEnded {
                    process: process.id,
                }
                .nowhere());
            }
        }
        Ok(())
    }

    /// Refuses a plan by which a task would have to wait that has begun.
    ///
    /// Memory and resources are handed on along the edges of a plan.  If a process begins by the
    /// old plan while the new one is made, its planner is not aware that the process has them, and
    /// lets another process begin first.
    ///
    /// If the old plan has ended and this one begins a new run, nothing is refused: all processes
    /// may begin anew.
    ///
    /// `elsewhere` returns the progress of a process that another CPU has, by its id; `None`: it is
    /// not known.  Call this on a node that has taken over its processes.  Takes
    /// O(processes + edges), and pauses.
    pub fn check_begun(&self, elsewhere: impl Fn(u32) -> Option<Ended>) -> Result<(), Refusal> {
        let mut processes = 0..self.processes.len() as u32;
        processes.try_for_each(|p| {
            pause::<M>(p)?;
            self.check_process_begun(p, usize::MAX, &pause::<M>, &elsewhere)
        })
    }

    /// [`Node::check_begun`] for a process that was copied in the last step.
    ///
    /// Checks the first [`EDGES_AT_LAST`] edges of the process, to processes of the same CPU.
    pub fn check_begun_at_last(&self, p: u32) -> Result<(), Refusal> {
        self.check_process_begun(p, EDGES_AT_LAST, &|_| Ok(()), &|_| None)
    }

    /// Progress that the process `index` would have if this node took over from `old` now.  Takes
    /// O(log processes + log tasks).
    pub fn progress_after(&self, old: &Node<M>, index: u32, dealt_seq: u64) -> Option<Ended> {
        let from = old.plan.find(self.plan.process(index)?.id)?;
        let before = old.before(from)?;
        Some(self.resume(index, &before, &old.terms(dealt_seq)).ended())
    }

    /// [`Node::check_begun`] for the first `most` edges of one process.
    fn check_process_begun(
        &self,
        p: u32,
        most: usize,
        pause: &impl Fn(u32) -> Result<(), Interrupted>,
        elsewhere: &impl Fn(u32) -> Option<Ended>,
    ) -> Result<(), Refusal> {
        let Some(run) = self.processes.get(p).filter(|run| run.in_net && !run.done) else {
            return Ok(());
        };
        let edges = self.plan.edges_of(p).iter().take(most);
        let edges = edges.take_while(|edge| edge.position < run.begun_before);
        for (edge, number) in edges.zip(0..) {
            pause(number)?;
            let Some(after) = self.plan.predecessors.get(edge.predecessor as usize) else {
                continue;
            };
            let ended = match after.process {
                Predecessor::NONE => elsewhere(after.id),
                _ => Some(self.progress_of(edge.predecessor)),
            };
            // A process that is gone holds nothing.
            if ended.is_some_and(|ended| !ended.has(edge.task) && !ended.is_last) {
                let process = self.plan.process(p).map_or(0, |process| process.id);
                return Err(Fault::TaskBegun {
                    process,
                    task: self.plan.task(p, edge.position).unwrap_or(0),
                    after: after.id,
                    after_task: edge.task,
                }
                .nowhere());
            }
        }
        Ok(())
    }

    /// Whether the process has ended, and the plan has no more tasks for it.
    fn gives_nothing(&self, index: u32, before: &Before) -> bool {
        let count = self.plan.process(index).map_or(0, |process| process.count);
        before.run.done && self.position_of(index, before.task) == count
    }
}

/// Takeover from a plan that continues meanwhile.
///
/// The terms on which all processes are taken over may change: when a failure of the node with
/// which the plan deals is reported again, or when the old plan ends.  Then all processes are
/// copied once more; in one life of a plan that happens at most twice.
///
/// [`copy`] and [`finish`] need the lock of the old node; [`apply`] works on the new one, to which
/// nobody else has access yet.  Call `apply` after each `copy`.  The result is that of
/// [`Node::begin`] at the moment of `finish`.
///
/// [`copy`]: TakeOver::copy
/// [`apply`]: TakeOver::apply
/// [`finish`]: TakeOver::finish
pub struct TakeOver<M: Memory> {
    /// The plan deals with the failures of all events before this one, as it declares.
    dealt_seq: u64,
    /// The terms of the copies so far.
    terms: Option<Terms>,
    /// The first process of the new plan that was not copied yet.
    next: u32,
    /// The last piece: processes of the new plan as they were in the old one.
    piece: M::Slice<Option<(u32, Before)>>,
    /// A process that had ended and for which the new plan has no task.
    ended: Option<u32>,
}

impl<M: Memory> TakeOver<M> {
    /// A takeover before its first piece.  The plan deals with the failures of the events before
    /// `dealt_seq`; a piece is `piece` processes.
    pub fn new(dealt_seq: u64, piece: usize) -> Result<TakeOver<M>, NoMemory> {
        Ok(TakeOver {
            dealt_seq,
            terms: None,
            next: 0,
            piece: M::alloc(piece, None)?,
            ended: None,
        })
    }

    /// Copies a piece of the rest of `old`.  Returns false if nothing was left.
    ///
    /// Takes O(piece · log processes).
    pub fn copy(&mut self, old: &mut Node<M>, new: &Node<M>) -> bool {
        let terms = Some(old.terms(self.dealt_seq));
        if self.terms != terms {
            self.terms = terms;
            self.next = 0;
            self.ended = None;
        }
        let mut copied = false;
        for place in self.piece.iter_mut() {
            let (index, from) = if let Some(process) = new.plan.process(self.next) {
                self.next += 1;
                (Some(self.next - 1), old.plan.find(process.id))
            } else if let Some(from) = old.processes.take_changed() {
                let process = old.plan.process(from);
                (process.and_then(|p| new.plan.find(p.id)), Some(from))
            } else {
                *place = None;
                continue;
            };
            copied = true;
            *place = index.and_then(|index| Some((index, old.before(from?)?)));
            if let (Some(_), Some(from)) = (*place, from) {
                old.processes.note_copy(from);
            }
        }
        copied
    }

    /// Applies the last piece to the new node.
    ///
    /// Takes O(piece · log tasks).
    pub fn apply(&mut self, new: &mut Node<M>) {
        let Some(terms) = &self.terms else {
            return;
        };
        for (index, before) in self.piece.iter().flatten() {
            new.take(*index, before, terms);
            if self.ended.is_none() && !terms.again && new.gives_nothing(*index, before) {
                self.ended = new.plan.process(*index).map(|process| process.id);
            }
        }
    }

    /// The processes of the new plan that were in the last piece.
    pub fn applied(&self) -> impl Iterator<Item = u32> + '_ {
        self.piece.iter().flatten().map(|(index, _)| *index)
    }

    /// [`Node::check_over`], for all that was copied so far.
    pub fn check(&self) -> Result<(), Refusal> {
        match self.ended {
            Some(process) => Err(Fault::ProcessEnded { process }.nowhere()),
            None => Ok(()),
        }
    }

    /// Brings the new plan into force at `now_ns`, if no more than `most` of its processes are left
    /// to be copied; otherwise nothing happens.
    ///
    /// Calls `applied` for each process that was left.  Takes O(`most` · log tasks).
    pub fn finish(
        &mut self,
        old: &mut Node<M>,
        new: &mut Node<M>,
        most: usize,
        now_ns: u64,
        mut applied: impl FnMut(&Node<M>, u32),
    ) -> bool {
        let terms = old.terms(self.dealt_seq);
        let from = match self.terms {
            Some(known) if known == terms => self.next as usize,
            _ => 0,
        };
        let left = new.processes.len().saturating_sub(from) + old.processes.changes();
        if left > most {
            return false;
        }
        while self.copy(old, new) {
            self.apply(new);
            self.applied().for_each(|index| applied(new, index));
        }
        new.follow(old, &terms, now_ns);
        true
    }
}
