// SPDX-License-Identifier: GPL-2.0
//! One CPU in virtual time: the policy core, and processes that do what they
//! really do.

mod answer;
mod beside;
pub(crate) mod elsewhere;
pub(crate) mod queue;
mod record;
mod ticks;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use pbs_core::wire::{Message, NO_TASK};
use pbs_core::{Config, Decision, Event, EventKind, Node, Notes, Presence, Sink, StdMemory};
use pbs_plan::{wire, Plan};

use crate::clock::Clock;
use crate::deadline::{deadlines, plan_ns};
use crate::held::HeldNode;
use crate::log::Log;
use crate::memory::SharedMemory;
use crate::options::{MemoryOver, Options, Resolution};
use crate::outcome::{
    BegunPlan, CpuOutcome, ProcessOutcome, RecordedInputs, Replan, Simulation, Snapshot,
    TaskOutcome,
};
use crate::program::Program;
use crate::scheduler::JobScheduler;
use crate::{Error, Progress};
use answer::UnderWay;
use elsewhere::Board;
use queue::Waiting;
use ticks::Ticks;

/// Number of successive decisions without progress after which the simulation fails: no time
/// passes, nothing is retired and no task ends. The policy core is then in an endless loop.
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
    /// Programs by their index in the node.
    programs: Vec<Program>,
    /// Programs that a later plan no longer contains, by id.
    left: HashMap<u32, Program>,
    /// Waiting processes, by the time at which they wake up.
    sleepers: BinaryHeap<Reverse<(u64, u32)>>,
    now_ns: u64,
    /// Planned length of the plan.
    plan_ns: u64,
    limit_ns: u64,
    /// Process that ran last.
    ran: Option<u32>,
    /// Execution time that is still to pass unused: of a switch, of looks.
    lost_ns: u64,
    /// Time at which the present plan came into force.
    plan_since_ns: u64,
    /// Execution time at which the present slot began.
    slot: (u32, u64),
    answer: Option<UnderWay>,
    /// Plans that the node has refused in succession.
    refusals: u32,
    /// Time at which the job scheduler is asked once more without a new failure.
    again_ns: Option<u64>,
    cpu: CpuOutcome,
    replans: Vec<Replan>,
    /// Plans that have come into force, if they are recorded.
    begun: Vec<BegunPlan>,
    /// The node before the first recorded input, if that is not the begin of a plan.
    snapshot: Option<Snapshot>,
    tasks: Vec<TaskOutcome>,
    /// End of each process that has ended, by its id.
    ended: HashMap<u32, u64>,
    /// Time at which each process was killed for lack of memory, by its id.
    killed: HashMap<u32, u64>,
    /// Memory of the node.
    memory: SharedMemory,
    /// CPUs that wait for the job scheduler, if all CPUs have one in common.
    waiting: Waiting,
    decisions: u64,
    /// Number of changes of the configuration that were made.
    changed: usize,
    /// Whether the time is unallocated.
    is_unallocated: bool,
    /// Time since which processes of the plan have kept the CPU.
    kept_since_ns: Option<u64>,
    /// State of progress at the last decision; `since_progress` counts the decisions since
    /// it last changed.
    before: (u64, u64, usize),
    since_progress: u32,
    /// States at the ticks, if they are noted.
    ticks: Option<Ticks>,
}

/// State that all CPUs of a plan share.
pub(crate) struct Shared {
    pub(crate) board: Board,
    pub(crate) memory: SharedMemory,
    pub(crate) waiting: Waiting,
}

/// Next step of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// No step, unless an event arrives from another CPU.
    Never,
    /// No process runs.
    Idle { end_ns: u64, unallocated: bool },
    /// The node takes time for itself.
    Lose { end_ns: u64 },
    /// A process finds that it has to wait.
    Wait { p: u32 },
    /// A process begins, and takes its memory.
    Begin { p: u32 },
    /// A process runs, and retires no more than that.
    Run { p: u32, end_ns: u64, most_insns: u64, pace: Clock, bounds: Bounds },
}

/// Bounds of a step at any pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bounds {
    until_insns: Option<u64>,
    to_ns: u64,
}

impl<'a> Machine<'a> {
    /// The CPU that `here` is for, before the first slot. `truth` is the plan
    /// that it is a part of.
    pub(crate) fn new(
        truth: &'a Plan,
        here: Plan,
        options: &'a Options,
        shared: Shared,
    ) -> Result<Self, Error> {
        let cpu = here.cpus.first();
        let cpu = cpu.ok_or_else(|| Error::Plan("the plan has no CPU".into()))?;
        let clock = Clock::of_cpu(cpu, options.rate_insns_per_ms);
        let config = here.config.unwrap_or(options.config);
        config.check().map_err(Error::Config)?;
        let mut node = Self::node(truth, &here, config, clock, 0)?;
        node.begin(None, 0, 0);
        let plan_ns = plan_ns(&here, cpu, &config, clock);
        let cpu = cpu.cpu;
        let mut machine = Self {
            options,
            clock,
            node,
            truth,
            log: Log::new(cpu, here.plan_id, options.record_grants, shared.board),
            plan: here,
            programs: Vec::new(),
            left: HashMap::new(),
            sleepers: BinaryHeap::new(),
            now_ns: 0,
            plan_ns,
            plan_since_ns: 0,
            limit_ns: options
                .limit_ns
                // A plan without slots ends with its first decision.
                .unwrap_or_else(|| plan_ns.saturating_mul(DEFAULT_LIMIT).max(1)),
            ran: None,
            lost_ns: 0,
            slot: (0, 0),
            answer: None,
            refusals: 0,
            again_ns: None,
            cpu: CpuOutcome { cpu, ..CpuOutcome::default() },
            replans: Vec::new(),
            begun: Vec::new(),
            snapshot: None,
            tasks: Vec::new(),
            ended: HashMap::new(),
            killed: HashMap::new(),
            memory: shared.memory,
            waiting: shared.waiting,
            decisions: 0,
            changed: 0,
            is_unallocated: false,
            kept_since_ns: None,
            before: (0, 0, 0),
            since_progress: 0,
            ticks: (options.note_every_ns).map(|every_ns| Ticks::new(every_ns, truth.cpus.len())),
        };
        let is_recorded = options.record_inputs && options.record_from_ns == 0;
        machine.record(Notes(is_recorded.then(Vec::new)), false);
        machine.log.follow(&machine.node);
        machine.tell_installed();
        machine.enter(truth);
        Ok(machine)
    }

    /// The node of the one CPU of `plan`; `truth` knows the processes of the others.
    fn node(
        truth: &Plan,
        plan: &Plan,
        config: Config,
        clock: Clock,
        now_ns: u64,
    ) -> Result<Node<StdMemory>, Error> {
        let cpu = plan.cpus.first();
        let cpu = cpu.ok_or_else(|| Error::Plan("the plan has no CPU".into()))?;
        let encoded = wire::encode(&elsewhere::with_others(truth, plan));
        let refused = |refusal: pbs_core::Refusal| Error::Plan(refusal.to_string());
        let message = Message::parse::<StdMemory>(&encoded.bytes).map_err(refused)?;
        let plans = message.sections().map(|section| {
            let core = pbs_core::Plan::build(&section)?;
            Ok((section, core))
        });
        let plans: Result<Vec<_>, pbs_core::Refusal> = plans.collect();
        let mut plans = plans.map_err(refused)?;
        pbs_core::join(&mut plans).map_err(refused)?;
        let mut plans = plans.into_iter();
        let (_, core) = plans
            .find(|(section, _)| section.cpu() == cpu.cpu)
            .ok_or_else(|| Error::Plan("the plan has no CPU".into()))?;
        let mut node = Node::new(core, config, clock.rate(), plan.plan_id, now_ns)
            .map_err(|_| Error::Plan("there is no memory for the plan".into()))?;
        for id in elsewhere::awaited(truth, cpu.cpu) {
            if let Some(p) = node.plan().find(id) {
                node.share(p);
            }
        }
        Ok(node)
    }

    /// Runs until all processes have ended, the limit is reached, or nothing
    /// can happen any more.
    pub(crate) fn run(
        mut self,
        scheduler: &mut dyn JobScheduler,
        watch: &mut dyn FnMut(Progress),
    ) -> Result<Simulation, Error> {
        while let Some(step) = self.prepare(scheduler, watch)? {
            if step == Step::Never {
                break;
            }
            self.go(&step, u64::MAX)?;
        }
        Ok(self.finish())
    }

    /// Runs CPUs whose tasks wait for each other's, in step.
    pub(crate) fn run_together(
        mut machines: Vec<Self>,
        scheduler: &mut dyn JobScheduler,
        watch: &mut dyn FnMut(Progress),
    ) -> Result<Vec<Simulation>, Error> {
        // The plan of one may be much shorter than what it waits for on another.
        let limits = machines.iter().map(|machine| machine.limit_ns);
        let sum_ns = limits.fold(0, u64::saturating_add);
        for machine in &mut machines {
            machine.limit_ns = machine.options.limit_ns.unwrap_or(sum_ns);
        }
        loop {
            let mut steps = Vec::new();
            for machine in &mut machines {
                steps.push(machine.prepare(scheduler, watch)?);
            }
            Self::slow(&machines, &mut steps);
            // The first at which something happens anywhere.
            let ends = machines.iter().zip(&steps);
            let ends = ends.filter_map(|(machine, step)| machine.end_ns(step.as_ref()?));
            let Some(to_ns) = ends.min() else {
                break;
            };
            for (machine, step) in machines.iter_mut().zip(&steps) {
                if let Some(step) = step {
                    machine.go(step, to_ns)?;
                }
            }
            for machine in &mut machines {
                machine.node.look_elsewhere(&mut machine.log);
            }
        }
        Ok(machines.into_iter().map(Self::finish).collect())
    }

    /// Decides at the present time; returns what comes of it, or `None` if all is
    /// over.
    fn prepare(
        &mut self,
        scheduler: &mut dyn JobScheduler,
        watch: &mut dyn FnMut(Progress),
    ) -> Result<Option<Step>, Error> {
        if self.now_ns >= self.limit_ns || self.node.ended() {
            self.waiting.leave(self.cpu.cpu);
            return Ok(None);
        }
        self.decisions += 1;
        if self.decisions.is_multiple_of(WATCH) {
            watch(Progress {
                cpu: self.cpu.cpu,
                now_ns: self.now_ns,
                planned_ns: self.plan_ns,
                limit_ns: self.limit_ns,
            });
        }
        self.begin_late_record();
        self.before = self.progress();
        self.receive_plan(scheduler)?;
        self.change_config()?;
        self.wake();
        let decision = self.decide();
        self.ask(scheduler)?;
        if self.node.ended() {
            self.waiting.leave(self.cpu.cpu);
            return Ok(None);
        }
        Ok(Some(self.step(&decision)))
    }

    /// Returns values of which at least one changes whenever the simulation makes progress.
    fn progress(&self) -> (u64, u64, usize) {
        (self.now_ns, self.cpu.retired_insns, self.log.events.len())
    }

    /// Lets time pass until the step is over, or until `to_ns`.
    fn go(&mut self, step: &Step, to_ns: u64) -> Result<(), Error> {
        let from_ns = self.now_ns;
        match *step {
            Step::Never => self.pass(to_ns, false),
            Step::Idle { end_ns, unallocated } => self.pass(end_ns.min(to_ns), unallocated),
            Step::Lose { end_ns } => {
                let passes_ns = end_ns.min(to_ns) - self.now_ns;
                self.lost_ns -= passes_ns;
                self.cpu.lost_ns += passes_ns;
                self.now_ns += passes_ns;
            }
            Step::Wait { p } => self.waits(p),
            Step::Begin { p } => self.begin_process(p),
            Step::Run { p, end_ns, most_insns, pace, .. } => {
                let passes_ns = end_ns.min(to_ns) - self.now_ns;
                let insns = pace.insns_in(passes_ns).min(most_insns);
                self.charge(p, pace, passes_ns, insns);
                self.let_run(p, passes_ns, insns, end_ns <= to_ns);
            }
        }
        self.note_kept(step, from_ns);
        self.note_ticks()?;
        if self.before != self.progress() {
            self.since_progress = 0;
            return Ok(());
        }
        self.since_progress += 1;
        if self.since_progress == STUCK {
            return Err(Error::Stuck { cpu: self.cpu.cpu, now_ns: self.now_ns });
        }
        Ok(())
    }

    /// Notes for how long processes of the plan have kept the CPU after a step that began
    /// then. The rest of the system goes first in unallocated time, though it leaves it.
    fn note_kept(&mut self, step: &Step, from_ns: u64) {
        if self.now_ns == from_ns {
            return;
        }
        let is_kept = matches!(step, Step::Run { .. } | Step::Lose { .. }) && !self.is_unallocated;
        if !is_kept {
            self.kept_since_ns = None;
            return;
        }
        let since_ns = *self.kept_since_ns.get_or_insert(from_ns);
        self.cpu.longest_run_ns = self.cpu.longest_run_ns.max(self.now_ns - since_ns);
    }

    /// Lets time pass in which nobody runs.
    fn pass(&mut self, to_ns: u64, unallocated: bool) {
        let passes_ns = to_ns - self.now_ns;
        if unallocated {
            self.cpu.unallocated_ns += passes_ns;
        } else {
            self.cpu.idle_ns += passes_ns;
        }
        self.now_ns = to_ns;
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

    /// Makes the changes of the configuration whose time has come.
    fn change_config(&mut self) -> Result<(), Error> {
        let options = self.options;
        while let Some(change) = options.changes.get(self.changed) {
            if change.at_ns > self.now_ns {
                break;
            }
            self.changed += 1;
            let config = self.node.config().with(change.values.iter().copied());
            config.check().map_err(Error::Config)?;
            // As the kernel does before each event that is about no thread.
            self.node.tell_untold(&mut self.log);
            let changed = self.node.configure(&config, self.now_ns, &mut self.log);
            changed.map_err(Error::Config)?;
        }
        Ok(())
    }

    /// Determines the next step if no event arrives from outside.
    fn step(&mut self, decision: &Decision) -> Step {
        let outside_ns = [
            self.sleepers.peek().map(|&Reverse((at_ns, _))| at_ns),
            self.answer.as_ref().map(|answer| answer.comes_ns),
            self.waiting.turn_ns(self.cpu.cpu, self.now_ns),
            self.again_ns.filter(|&again_ns| again_ns > self.now_ns),
            self.options.changes.get(self.changed).map(|change| change.at_ns),
        ];
        let outside_ns = outside_ns.into_iter().flatten().min();
        let until_ns = decision.until_ns.map(|at_ns| self.looked_at_ns(at_ns));
        self.is_unallocated = decision.unallocated;
        let uses = self.options.linux_is_idle && self.node.uses_unallocated();
        let running = decision.grant.filter(|_| !decision.unallocated || uses);
        let something_ns = [until_ns, outside_ns].into_iter().flatten().min();
        let to_ns = something_ns.map_or(self.limit_ns, |at_ns| at_ns.min(self.limit_ns));
        // Whatever is to come is later. If it is not, that is found out in `run`.
        let to_ns = to_ns.max(self.now_ns);
        let Some(p) = running else {
            if something_ns.is_none() {
                return Step::Never;
            }
            return Step::Idle { end_ns: to_ns, unallocated: decision.unallocated };
        };
        if self.ran != Some(self.programs[p as usize].id) {
            self.ran = Some(self.programs[p as usize].id);
            self.cpu.switches += 1;
            self.lost_ns += self.options.timing.switch_ns;
        }
        if self.lost_ns != 0 {
            // The time that the node itself takes before the process runs.
            return Step::Lose { end_ns: self.now_ns.saturating_add(self.lost_ns).min(to_ns) };
        }
        let comes_ns = self.programs[p as usize].comes_ns;
        if comes_ns.is_some_and(|comes_ns| comes_ns > self.now_ns) {
            return Step::Wait { p };
        }
        let program = &self.programs[p as usize];
        if !program.has_memory && program.memory_bytes() != 0 {
            return Step::Begin { p };
        }
        let mut to_ns = to_ns;
        if program.has_memory && !program.sampled {
            to_ns = to_ns.min(self.next_tick_ns());
        }
        let over = self.options.memory_over;
        let pace = self.memory.borrow().pace(program.clock, over);
        let until_insns = decision.until_insns;
        self.run_at(p, pace, Bounds { until_insns, to_ns })
    }

    /// Returns the end of the step; `None`: never.
    fn end_ns(&self, step: &Step) -> Option<u64> {
        match *step {
            Step::Never => None,
            Step::Idle { end_ns, .. } | Step::Lose { end_ns } | Step::Run { end_ns, .. } => {
                Some(end_ns)
            }
            Step::Wait { .. } | Step::Begin { .. } => Some(self.now_ns),
        }
    }

    /// The next nominal tick.
    fn next_tick_ns(&self) -> u64 {
        let tick_ns = self.node.config().nominal_tick_ns.max(1);
        (self.now_ns / tick_ns).saturating_add(1).saturating_mul(tick_ns)
    }

    /// Returns the time at which the node handles what is due at `at_ns`.
    fn looked_at_ns(&self, at_ns: u64) -> u64 {
        match self.options.resolution {
            Resolution::Event => at_ns,
            Resolution::Tick => {
                let tick_ns = self.node.config().nominal_tick_ns.max(1);
                at_ns.div_ceil(tick_ns).saturating_mul(tick_ns)
            }
        }
    }

    /// Process `p` runs at that pace until its task ends, the node is to look at its
    /// count, or the time of the bounds comes.
    fn run_at(&self, p: u32, pace: Clock, bounds: Bounds) -> Step {
        let Bounds { until_insns, to_ns } = bounds;
        let program = &self.programs[p as usize];
        let real_insns = program.current().map_or(0, |task| task.insns);
        let left_insns = real_insns.saturating_sub(program.retired_insns);
        let mut most_insns = left_insns;
        let mut end_ns = self.now_ns.saturating_add(pace.ns_for(left_insns));
        if let Some(until_insns) = until_insns {
            let until_insns =
                until_insns.max(1).saturating_add(self.options.timing.timer_delay_insns);
            let at_ns = self.now_ns.saturating_add(pace.ns_for(until_insns));
            end_ns = end_ns.min(self.looked_at_ns(at_ns));
            if self.options.resolution == Resolution::Event {
                most_insns = most_insns.min(until_insns);
            }
        }
        Step::Run { p, end_ns: end_ns.min(to_ns), most_insns, pace, bounds }
    }

    /// Process `p` has run for so long, and was charged; `looked`: because its count was to be
    /// looked at.
    fn let_run(&mut self, p: u32, passes_ns: u64, insns: u64, looked: bool) {
        self.now_ns += passes_ns;
        self.cpu.running_ns += passes_ns;
        if self.is_unallocated {
            self.cpu.running_unallocated_ns += passes_ns;
        }
        self.cpu.retired_insns += insns;
        if insns != 0 {
            self.sample_memory(p);
        }
        let program = &mut self.programs[p as usize];
        program.retired_insns += insns;
        let real_insns = program.current().map_or(0, |task| task.insns);
        if program.retired_insns == real_insns {
            self.end_task(p);
        } else if looked {
            // That something happens on another CPU is no look at this one.
            self.lost_ns += self.options.timing.look_ns;
        }
    }

    /// Process `p` takes its memory, before its first instruction.
    fn begin_process(&mut self, p: u32) {
        let bytes = self.programs[p as usize].memory_bytes();
        let kills = self.options.memory_over == MemoryOver::Kill;
        if kills && !self.memory.borrow().has(bytes) {
            self.memory.borrow_mut().killed += 1;
            return self.kill(p);
        }
        self.memory.borrow_mut().take(bytes);
        self.programs[p as usize].has_memory = true;
    }

    /// Ends a process for which there is no memory, as the kernel does when it kills a process.
    /// Tasks that wait for the current task of the process wait in vain.
    fn kill(&mut self, p: u32) {
        self.list_progress(p, None);
        let id = self.programs[p as usize].id;
        self.killed.insert(id, self.now_ns);
        self.node.die(p);
        self.end_process(p);
    }

    fn end_process(&mut self, p: u32) {
        let program = &mut self.programs[p as usize];
        program.retired_insns = 0;
        if std::mem::take(&mut program.has_memory) {
            self.memory.borrow_mut().give(program.memory_bytes());
        }
        // As the kernel does when the last thread is gone.
        self.node.set_presence(p, Presence::Absent);
        self.node.end_process(p, self.now_ns, &mut self.log);
        self.tell_memory();
    }

    /// Samples the memory of process `p`, as the kernel does at its ticks and after `p` has run.
    fn sample_memory(&mut self, p: u32) {
        let program = &mut self.programs[p as usize];
        program.sampled = true;
        let bytes = program.memory_bytes();
        if bytes != 0 && self.node.memory(p, bytes, bytes) {
            let elsewhere_bytes = self.tell_memory();
            let (log, now_ns) = (&mut self.log, self.now_ns);
            self.node.watch_memory(p, elsewhere_bytes, now_ns, log);
        }
    }

    /// Shows other CPUs what the processes here use. Returns what those there use.
    fn tell_memory(&self) -> u64 {
        let bytes = self.node.memory_bytes();
        self.memory.borrow_mut().tell(self.cpu.cpu, bytes)
    }

    /// Returns the number of processes that have ended or were killed.
    fn gone(&self) -> usize {
        self.ended.len() + self.killed.len()
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
                self.ended.insert(id, self.now_ns);
                self.end_process(p);
            }
        }
    }

    /// Puts process `p` to sleep, for what its current task needs has not come
    /// yet. As every program it finds out when it has the CPU.
    fn waits(&mut self, p: u32) {
        let program = &mut self.programs[p as usize];
        let Some(wakes_ns) = program.comes_ns.take() else {
            return;
        };
        program.wakes_ns = Some(wakes_ns);
        self.sleepers.push(Reverse((wakes_ns, program.id)));
        self.node.set_presence(p, Presence::Blocked);
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
        let by_id: HashMap<u32, &pbs_plan::Process> =
            (source.processes.iter()).map(|process| (process.id, process)).collect();
        for p in 0..self.node.plan().processes().len() as u32 {
            let Some(info) = self.node.process(p) else {
                continue;
            };
            // Whoever has left comes back without threads.
            let before = known.remove(&info.id).or_else(|| self.left.remove(&info.id));
            let is_new = before.is_none();
            let process = by_id.get(&info.id);
            let mut program = before.unwrap_or_else(|| {
                let own = process.map_or(self.clock, |process| self.clock.of_process(process));
                Program::new(info.id, own)
            });
            if let Some(process) = process {
                program.learn(process);
            }
            program.sampled = false;
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
                if self.options.asleep_at_start {
                    self.waits(p);
                }
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
                killed_ns: self.killed.get(&process.id).copied(),
                planned_memory_bytes: process.memory_bytes,
                real_memory_bytes: process.real_memory_bytes.unwrap_or(process.memory_bytes),
                deadline_ns,
                kept: ended_ns.is_some_and(|ended_ns| ended_ns <= deadline_ns),
            }
        });
        let processes = processes.collect();
        self.cpu.ended = self.node.ended() && self.node.unfinished() == 0 && self.killed.is_empty();
        self.cpu.ended_ns = self.now_ns;
        let inputs = self.node.tap_mut().0.take();
        let recorded = inputs.map(|inputs| RecordedInputs {
            cpu: self.cpu.cpu,
            inputs,
            plans: self.begun,
            snapshot: self.snapshot,
        });
        let held = HeldNode::of(self.cpu.cpu, &self.node, self.now_ns);
        Simulation {
            held: vec![held],
            ticks: self.ticks.map(|ticks| ticks.states).unwrap_or_default(),
            recorded: recorded.into_iter().collect(),
            events: self.log.events,
            tasks: self.tasks,
            processes,
            cpus: vec![self.cpu],
            replans: self.replans,
            ..Simulation::default()
        }
    }
}
