// SPDX-License-Identifier: GPL-2.0
//! One CPU in virtual time: the policy core, and processes that do what they
//! really do.

mod answer;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use pbs_core::wire::{Message, NO_TASK};
use pbs_core::{Config, Decision, Event, EventKind, Node, Presence, Rate, Sink, StdMemory};
use pbs_plan::{wire, Plan};

use crate::clock::Clock;
use crate::deadline::{deadlines, planned_ns};
use crate::log::Log;
use crate::options::{Options, Resolution};
use crate::outcome::{CpuOutcome, ProcessOutcome, Replan, Simulation, TaskOutcome};
use crate::program::Program;
use crate::scheduler::JobScheduler;
use crate::{Error, Progress};
use answer::UnderWay;

/// So often in a row neither time passes nor anything is retired nor a task
/// ends: the policy core goes round in circles.
const STUCK: u32 = 10_000;

/// Whoever watches is told after so many decisions.
const WATCH: u64 = 4096;

/// Times a plan's length, the limit where none is given.
const DEFAULT_LIMIT: u64 = 100;

pub(crate) struct Machine<'a> {
    options: &'a Options,
    clock: Clock,
    node: Node<StdMemory>,
    /// For this CPU alone, and without real lengths.
    plan: Plan,
    /// The plan with the real lengths.
    truth: &'a Plan,
    log: Log,
    /// By index in the node.
    programs: Vec<Program>,
    /// Those that a later plan did not have any more, by id.
    left: HashMap<u32, Program>,
    /// Who waits, by the time of waking up.
    sleepers: BinaryHeap<Reverse<(u64, u32)>>,
    now_ns: u64,
    /// What the plan takes as planned.
    plan_ns: u64,
    limit_ns: u64,
    /// Who ran last.
    ran: Option<u32>,
    /// Execution time that is still to pass unused: of a switch, of looks.
    lost_ns: u64,
    /// Execution time at which the present slot began.
    slot: (u32, u64),
    answer: Option<UnderWay>,
    cpu: CpuOutcome,
    replans: Vec<Replan>,
    tasks: Vec<TaskOutcome>,
    /// When the processes ended that have.
    ended: HashMap<u32, u64>,
}

impl<'a> Machine<'a> {
    /// The CPU that `here` is for, before the first slot. `truth` is the plan
    /// that it is a part of.
    pub(crate) fn new(truth: &'a Plan, here: Plan, options: &'a Options) -> Result<Self, Error> {
        let cpu = here.cpus.first().map_or(0, |cpu| cpu.cpu);
        let clock = Clock::new(options.rate_insns_per_ms);
        let config = here.config.unwrap_or(options.config);
        config.check().map_err(Error::Config)?;
        let mut node = Self::node(&here, config, options, 0)?;
        node.begin(None, 0, 0);
        let lengths = here.cpus.iter().flat_map(|cpu| here.place(cpu));
        let plan_insns = lengths.fold(0u64, |sum, slot| sum.saturating_add(slot.length_insns));
        let plan_ns = planned_ns(plan_insns, &config, options.rate_insns_per_ms);
        let mut machine = Self {
            options,
            clock,
            node,
            truth,
            log: Log::new(cpu, here.plan_id, options.record_grants),
            plan: here,
            programs: Vec::new(),
            left: HashMap::new(),
            sleepers: BinaryHeap::new(),
            now_ns: 0,
            plan_ns,
            limit_ns: options
                .limit_ns
                .unwrap_or_else(|| plan_ns.saturating_mul(DEFAULT_LIMIT)),
            ran: None,
            lost_ns: 0,
            slot: (0, 0),
            answer: None,
            cpu: CpuOutcome {
                cpu,
                ..CpuOutcome::default()
            },
            replans: Vec::new(),
            tasks: Vec::new(),
            ended: HashMap::new(),
        };
        machine.tell_installed();
        machine.enter(truth);
        Ok(machine)
    }

    fn node(
        plan: &Plan,
        config: Config,
        options: &Options,
        now_ns: u64,
    ) -> Result<Node<StdMemory>, Error> {
        let encoded = wire::encode(plan);
        let refused = |refusal: pbs_core::Refusal| Error::Plan(refusal.to_string());
        let message = Message::parse::<StdMemory>(&encoded.bytes).map_err(refused)?;
        let section = message.sections().next();
        let section = section.ok_or_else(|| Error::Plan("the plan has no CPU".into()))?;
        let core = pbs_core::Plan::build(&section).map_err(refused)?;
        let mut joined = [(section, core)];
        pbs_core::join(&mut joined).map_err(refused)?;
        let [(_, core)] = joined;
        let rate = Rate::new(options.rate_insns_per_ms);
        Node::new(core, config, rate, plan.plan_id, now_ns)
            .map_err(|_| Error::Plan("there is no memory for the plan".into()))
    }

    /// Runs until all processes have ended, the limit is reached, or nothing
    /// can happen any more.
    pub(crate) fn run(
        mut self,
        scheduler: &mut dyn JobScheduler,
        watch: &mut dyn FnMut(Progress),
    ) -> Result<Simulation, Error> {
        let mut since_progress = 0;
        let mut decisions = 0u64;
        while self.now_ns < self.limit_ns {
            decisions += 1;
            if decisions % WATCH == 0 {
                watch(Progress {
                    cpu: self.cpu.cpu,
                    now_ns: self.now_ns,
                    planned_ns: self.plan_ns,
                    limit_ns: self.limit_ns,
                });
            }
            let before = (self.now_ns, self.cpu.retired_insns, self.log.events.len());
            self.receive_plan(scheduler)?;
            self.wake();
            let decision = self.decide();
            self.ask(scheduler)?;
            if self.node.ended() {
                break;
            }
            if !self.step(&decision) {
                break;
            }
            let after = (self.now_ns, self.cpu.retired_insns, self.log.events.len());
            since_progress = if before == after {
                since_progress + 1
            } else {
                0
            };
            if since_progress == STUCK {
                return Err(Error::Stuck {
                    cpu: self.cpu.cpu,
                    now_ns: self.now_ns,
                });
            }
        }
        Ok(self.finish())
    }

    fn decide(&mut self) -> Decision {
        loop {
            let decision = self.node.decide(self.now_ns, &mut self.log);
            if self.slot.0 != self.node.cursor() {
                self.slot = (self.node.cursor(), self.execution_ns());
            }
            if !decision.again {
                return decision;
            }
        }
    }

    /// Lets time pass until something may happen; false if nothing ever will.
    fn step(&mut self, decision: &Decision) -> bool {
        let outside_ns = [
            self.sleepers.peek().map(|&Reverse((at_ns, _))| at_ns),
            self.answer.as_ref().map(|answer| answer.comes_ns),
        ];
        let outside_ns = outside_ns.into_iter().flatten().min();
        let until_ns = decision.until_ns.map(|at_ns| self.looked_at_ns(at_ns));
        let running = decision.grant.filter(|_| !decision.unallocated);
        let something_ns = [until_ns, outside_ns].into_iter().flatten().min();
        let to_ns = something_ns.map_or(self.limit_ns, |at_ns| at_ns.min(self.limit_ns));
        // Whatever is to come is later. If it is not, that is found out in `run`.
        let to_ns = to_ns.max(self.now_ns);
        let Some(p) = running else {
            if something_ns.is_none() {
                return false;
            }
            let passes_ns = to_ns - self.now_ns;
            if decision.unallocated {
                self.cpu.unallocated_ns += passes_ns;
            } else {
                self.cpu.idle_ns += passes_ns;
            }
            self.now_ns = to_ns;
            return true;
        };
        if self.lose_time(p, to_ns) || self.waits(p) {
            return true;
        }
        self.let_run(p, decision.until_insns, to_ns);
        true
    }

    /// When the node looks at what was to happen at `at_ns`.
    fn looked_at_ns(&self, at_ns: u64) -> u64 {
        match self.options.resolution {
            Resolution::Event => at_ns,
            Resolution::Tick => {
                let tick_ns = self.node.config().nominal_tick_ns.max(1);
                at_ns.div_ceil(tick_ns).saturating_mul(tick_ns)
            }
        }
    }

    /// Lets the time pass that the node itself takes before process `p` runs;
    /// false if it takes none.
    fn lose_time(&mut self, p: u32, to_ns: u64) -> bool {
        let id = self.programs[p as usize].id;
        if self.ran != Some(id) {
            self.ran = Some(id);
            self.cpu.switches += 1;
            self.lost_ns += self.options.timing.switch_ns;
        }
        if self.lost_ns == 0 {
            return false;
        }
        let passes_ns = self.lost_ns.min(to_ns - self.now_ns);
        self.lost_ns -= passes_ns;
        self.cpu.lost_ns += passes_ns;
        self.now_ns += passes_ns;
        true
    }

    /// Lets process `p` run until its task ends, the node is to look at its
    /// count, or `to_ns`.
    fn let_run(&mut self, p: u32, until_insns: Option<u64>, to_ns: u64) {
        let program = &self.programs[p as usize];
        let real_insns = program.current().map_or(0, |task| task.insns);
        let left_insns = real_insns.saturating_sub(program.retired_insns);
        let mut most_insns = left_insns;
        let mut end_ns = self.now_ns.saturating_add(self.clock.ns_for(left_insns));
        if let Some(until_insns) = until_insns {
            let until_insns = until_insns
                .max(1)
                .saturating_add(self.options.timing.timer_delay_insns);
            let at_ns = self.now_ns.saturating_add(self.clock.ns_for(until_insns));
            end_ns = end_ns.min(self.looked_at_ns(at_ns));
            if self.options.resolution == Resolution::Event {
                most_insns = most_insns.min(until_insns);
            }
        }
        let end_ns = end_ns.min(to_ns);
        let passes_ns = end_ns - self.now_ns;
        let insns = self.clock.insns_in(passes_ns).min(most_insns);
        self.now_ns = end_ns;
        self.cpu.running_ns += passes_ns;
        self.cpu.retired_insns += insns;
        self.node.charge(p, insns);
        let program = &mut self.programs[p as usize];
        program.retired_insns += insns;
        if program.retired_insns == real_insns {
            self.end_task(p);
        } else {
            self.lost_ns += self.options.timing.look_ns;
        }
    }

    fn end_task(&mut self, p: u32) {
        self.list_progress(p, Some(self.now_ns));
        let program = &mut self.programs[p as usize];
        let id = program.id;
        match self.node.end_task(p, self.now_ns, &mut self.log) {
            Some(next) => {
                program.move_to(next);
                program.expect(self.now_ns, &self.clock);
            }
            None => {
                program.retired_insns = 0;
                self.ended.insert(id, self.now_ns);
                // As the kernel does when the last thread is gone.
                self.node.set_presence(p, Presence::Absent);
                self.node.end_process(p, self.now_ns, &mut self.log);
            }
        }
    }

    /// Puts process `p` to sleep if what its current task needs has not come
    /// yet. As every program it finds out when it has the CPU.
    fn waits(&mut self, p: u32) -> bool {
        let program = &mut self.programs[p as usize];
        let Some(wakes_ns) = program.comes_ns.take() else {
            return false;
        };
        if wakes_ns <= self.now_ns {
            return false;
        }
        program.wakes_ns = Some(wakes_ns);
        self.sleepers.push(Reverse((wakes_ns, program.id)));
        self.node.set_presence(p, Presence::Blocked);
        true
    }

    fn wake(&mut self) {
        while let Some(&Reverse((at_ns, id))) = self.sleepers.peek() {
            if at_ns > self.now_ns {
                return;
            }
            self.sleepers.pop();
            let Some(p) = self.node.plan().find(id) else {
                continue;
            };
            let program = &mut self.programs[p as usize];
            if program.wakes_ns == Some(at_ns) {
                program.wakes_ns = None;
                self.node.set_presence(p, Presence::Ready);
            }
        }
    }

    fn execution_ns(&self) -> u64 {
        self.cpu.running_ns + self.cpu.lost_ns + self.cpu.idle_ns
    }

    fn tell_installed(&mut self) {
        let mut event = Event::new(EventKind::PlanInstalled, self.now_ns);
        event.value = self.node.slots().into();
        self.tell(&event);
    }

    /// Emits what in the kernel is not emitted by the policy core.
    fn tell(&mut self, event: &Event) {
        self.node.tell_untold(&mut self.log);
        self.node.count(event.kind);
        self.log.emit(event);
    }

    /// Lets the processes of the plan that has come into force go on, and
    /// attaches those that are new. `source` knows their real lengths, where
    /// they are not known yet.
    fn enter(&mut self, source: &Plan) {
        let mut known: HashMap<u32, Program> = std::mem::take(&mut self.programs)
            .into_iter()
            .map(|program| (program.id, program))
            .collect();
        let by_id: HashMap<u32, &pbs_plan::Process> = (source.processes.iter())
            .map(|process| (process.id, process))
            .collect();
        for p in 0..self.node.plan().processes().len() as u32 {
            let Some(info) = self.node.process(p) else {
                continue;
            };
            // Whoever has left comes back without threads.
            let before = known
                .remove(&info.id)
                .or_else(|| self.left.remove(&info.id));
            let is_new = before.is_none();
            let mut program = before.unwrap_or_else(|| Program::new(info.id));
            if let Some(process) = by_id.get(&info.id) {
                program.learn(process);
            }
            let moved = info.task != NO_TASK && program.move_to(info.task);
            if is_new || moved {
                program.expect(self.now_ns, &self.clock);
            }
            self.programs.push(program);
            if is_new {
                let mut event = Event::new(EventKind::Attached, self.now_ns);
                event.process = info.id;
                self.tell(&event);
                self.node.set_presence(p, Presence::Ready);
            }
        }
        self.left.extend(known);
        self.list_tasks();
    }

    /// Gives each task of the plan a place among the outcomes.
    fn list_tasks(&mut self) {
        for slot in self.node.plan().slots() {
            let Some(program) = self.programs.get_mut(slot.process as usize) else {
                continue;
            };
            let process = program.id;
            let Some(task) = program.task_mut(slot.task, slot.position as usize) else {
                continue;
            };
            if task.outcome.is_some() {
                continue;
            }
            task.outcome = Some(self.tasks.len());
            self.tasks.push(TaskOutcome {
                cpu: self.cpu.cpu,
                process,
                task: slot.task,
                planned_insns: slot.length_insns,
                real_insns: task.insns,
                retired_insns: 0,
                preemptions: 0,
                ended_ns: None,
            });
        }
    }

    /// Enters into the outcomes how far the current task of process `p` is.
    fn list_progress(&mut self, p: u32, ended_ns: Option<u64>) {
        let program = &self.programs[p as usize];
        let place = program.current().and_then(|task| task.outcome);
        let info = self.node.process(p).filter(|info| !info.done);
        if let (Some(info), Some(place)) = (info, place) {
            let outcome = &mut self.tasks[place];
            outcome.retired_insns = program.retired_insns;
            outcome.preemptions = info.preemptions;
            outcome.ended_ns = ended_ns;
        }
    }

    fn finish(mut self) -> Simulation {
        for p in 0..self.programs.len() as u32 {
            self.list_progress(p, None);
        }
        let truth = self.truth;
        let first = truth.cpus.iter().find(|cpu| cpu.cpu == self.cpu.cpu);
        let config = truth.config.unwrap_or(self.options.config);
        let rate = self.options.rate_insns_per_ms;
        let deadlines = first.map(|cpu| deadlines(truth, cpu, &config, rate));
        let deadlines = deadlines.unwrap_or_default().into_iter();
        let processes = deadlines.map(|(index, deadline_ns)| {
            let process = &truth.processes[index];
            let ended_ns = self.ended.get(&process.id).copied();
            ProcessOutcome {
                id: process.id,
                name: process.name.clone(),
                cpu: self.cpu.cpu,
                ended_ns,
                deadline_ns,
                kept: ended_ns.is_some_and(|ended_ns| ended_ns <= deadline_ns),
            }
        });
        let processes = processes.collect();
        self.cpu.ended = self.node.ended() && self.node.unfinished() == 0;
        self.cpu.ended_ns = self.now_ns;
        Simulation {
            events: self.log.events,
            tasks: self.tasks,
            processes,
            cpus: vec![self.cpu],
            replans: self.replans,
        }
    }
}
