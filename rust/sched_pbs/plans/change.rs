// SPDX-License-Identifier: GPL-2.0

//! Changes of plans.
//!
//! A plan is checked and built in process context, outside every lock of the scheduler. On each of
//! its CPUs it then replaces the old one in one step: in interrupt context there, where the counter
//! can be read, by swapping a pointer. The old plan is freed outside again.
//!
//! The CPU must not be held up for long by that, however large the plans are: holding the lock of
//! its run queue keeps interrupts off there. Therefore all work that grows with a plan is done in
//! pieces with the lock dropped between them: processes are copied while the old plan continues
//! ([`TakeOver`]), and threads whose process is gone are notified afterwards.

use super::{
    control::{self, Control},
    fronts::{self, Fronts},
    recorder, usage,
};
use crate::{
    engine::emitter::Emitter,
    linux::{
        entity,
        sched_class::{self, RunQueue},
        storage::CHARGED,
    },
    pbs_core::{
        self,
        wire::{Message, Section},
        Config, Event, EventKind, Input, Lease, Plan, Rate, Refusal, Sink, TakeOver, Tap,
    },
    percpu::{cpu::Cpu, cpus, drop_request::DropReason, works},
    rings::events,
    state::{
        front::FrontLinks,
        node::{KernelMemory, Node},
        rows::Rows,
        threads::Threads,
        State,
    },
    thread::leave,
};
use kernel::{
    alloc::{KBox, KVVec, KVec},
    bindings, clock,
    prelude::*,
    task_ext::{give_way, may_log},
};

/// Reason why a plan was refused.
pub(crate) enum InstallRefusal {
    /// The plan is wrong.
    Plan(Refusal),
    /// The plan names a CPU that is not online.
    NoCpu {
        /// The CPU.
        cpu: u32,
        /// Offset in the plan at which it names the CPU.
        offset_bytes: u64,
    },
    /// The plan has a process that the plan of another CPU has, which stays.
    Elsewhere {
        /// The process.
        process: u32,
        /// The CPU that has it.
        cpu: u32,
    },
    /// An error in the kernel.
    Kernel(Error),
}

/// Reason why a change of the configuration was refused.
pub(crate) enum ConfigureRefusal {
    /// The configuration contradicts itself, or the plan in force.
    Config(Refusal),
    /// The CPU has the plan of that id, which is not the one that was meant.
    OtherPlan(u64),
    /// The configuration has changed since the caller read it.
    Changed,
    /// The CPU has no plan.
    NoPlan,
    /// An error in the kernel.
    Kernel(Error),
}

impl From<Error> for ConfigureRefusal {
    fn from(error: Error) -> Self {
        ConfigureRefusal::Kernel(error)
    }
}

impl From<Error> for InstallRefusal {
    fn from(error: Error) -> Self {
        InstallRefusal::Kernel(error)
    }
}

impl From<Refusal> for InstallRefusal {
    fn from(refusal: Refusal) -> Self {
        InstallRefusal::Plan(refusal)
    }
}

/// The new plan of a CPU for one step, and the old one after it.
struct PlanSwap {
    cpu: &'static Cpu,
    node: Option<KBox<Node>>,
    take_over: Option<TakeOver<KernelMemory>>,
    rows: Option<Rows>,
    threads: Option<Threads>,
    /// The new plan deals with the failures of all events before this one.
    dealt_seq: u64,
    /// The lease of the new plan, 0: none.
    lease_ns: u64,
    /// Links to and from other CPUs.
    links: FrontLinks,
    /// The number under which the plan is stored, if it is.
    kept: u64,
    /// The rate of the CPU.
    rate: Rate,
    /// Event of the CPU, and its reason.
    kind: EventKind,
    drop_reason: Option<DropReason>,
    /// Reason why threads whose process is not in the new plan leave.
    reason: u16,
}

impl PlanSwap {
    /// The CPU on which the plan has begun, and its configuration and rate there. Nothing changes
    /// the configuration as long as the control lock is held.
    fn in_force(&self) -> Option<(u32, Config, Rate)> {
        let config = |state: &mut State| Some(*state.node.as_ref()?.config());
        let config = self.cpu.lock(|_, _, state| config(state)).flatten()?;
        Some((self.cpu.number(), config, self.rate))
    }
}

/// Installs a plan as it was written, whole or not at all; returns its id. Calls `in_force` once
/// the plan is in force, before threads are taken out that it has no place for.
#[inline(never)]
pub(crate) fn install(bytes: KVVec<u8>, in_force: impl FnOnce()) -> Result<u64, InstallRefusal> {
    // The long work comes first, with no lock held.
    let message = Message::parse::<KernelMemory>(&bytes)?;
    let plans = build(&message)?;
    // Keeps the CPUs as they are; hotplug takes the control lock inside this one.
    let _hotplug = kernel::cpu::hotplug_read_lock();
    let mut control = control::get()?.lock_killable()?;
    let mut changes = prepare_all(&message, plans, &mut control)?;
    message.check_dealt(events::next_seq())?;
    for change in changes.iter_mut() {
        only_here(&message, change)?;
        copy(change);
        follows(change)?;
    }
    let fronts = link(&control, &mut changes)?;
    check_begun(&changes)?;
    for change in changes.iter() {
        usage::take(&mut control, change.cpu);
    }
    let plan_id = message.plan_id();
    let kept = control.kept.number();
    // Once a CPU has the new plan, the others get it.
    let mut may_refuse = true;
    for change in changes.iter_mut() {
        change.kept = kept;
        put_in_force(change, may_refuse).inspect_err(|_| works::eject_soon())?;
        may_refuse = false;
    }
    fronts.tell_lost(&control.fronts);
    control.fronts = fronts;
    control
        .kept
        .keep(bytes, changes.iter().filter_map(|change| change.in_force()));
    for change in changes.iter() {
        fronts::tell_all(change.cpu);
        tell_lost(change);
    }
    drop(control);
    in_force();
    for change in changes.iter() {
        leave::eject_leaving(change.cpu);
    }
    Ok(plan_id)
}

/// Whether the plan with that id is in force on some CPU, and has not ended there.
pub(crate) fn goes_on(id: u64) -> bool {
    let goes_on = |cpu: &Cpu| {
        cpu.lock(|_, _, state| {
            let node = state.node.as_ref()?;
            Some(node.plan_id() == id && !node.ended())
        })
        .flatten()
            == Some(true)
    };
    cpus::all().any(goes_on)
}

/// The plan of a CPU as it is written, and as it was built from that.
type Built<'a> = (Section<'a>, Plan<KernelMemory>);

/// Builds the plans of all sections.
#[inline(never)]
fn build<'a>(message: &Message<'a>) -> Result<KVec<Built<'a>>, InstallRefusal> {
    let mut plans = KVec::new();
    for section in message.sections() {
        active(&section)?;
        let plan = Plan::<KernelMemory>::build(&section)?;
        plans.push((section, plan), CHARGED).map_err(Error::from)?;
    }
    pbs_core::join(&mut plans)?;
    Ok(plans)
}

/// Prepares the changes of all CPUs.
#[inline(never)]
fn prepare_all(
    message: &Message<'_>,
    plans: KVec<Built<'_>>,
    control: &mut Control,
) -> Result<KVec<KBox<PlanSwap>>, InstallRefusal> {
    let mut changes = KVec::new();
    for (section, plan) in plans {
        let change = prepare(message, &section, plan, &control.config)?;
        prepare_events(control, change.cpu)?;
        // If this fails the CPU is not recorded, which its recorder finds; the plan is none the
        // worse.
        let _ = recorder::prepare(control, change.cpu);
        changes.push(change, CHARGED).map_err(Error::from)?;
    }
    Ok(changes)
}

/// Makes the ring of events of a CPU that has none. Sleeps.
fn prepare_events(_control: &mut Control, cpu: &Cpu) -> Result {
    if events::of_cpu(cpu.number()).is_none() {
        let ring = events::add(cpu.number())?;
        cpu.lock(|_, _, state| state.events.write_to(ring));
    }
    Ok(())
}

/// The CPU of a section, if it accepts tasks.
fn active(section: &Section<'_>) -> Result<&'static Cpu, InstallRefusal> {
    let no_cpu = || InstallRefusal::NoCpu {
        cpu: section.cpu(),
        offset_bytes: section.offset_bytes() as u64,
    };
    let cpu = cpus::get(section.cpu()).ok_or_else(no_cpu)?;
    if !kernel::cpu::is_active(cpu.number()) {
        return Err(no_cpu());
    }
    Ok(cpu)
}

/// Builds the new plan of the CPU of a section; `plan` is the plan of the section.
#[inline(never)]
fn prepare(
    message: &Message<'_>,
    section: &Section<'_>,
    plan: Plan<KernelMemory>,
    default: &Config,
) -> Result<KBox<PlanSwap>, InstallRefusal> {
    give_way()?;
    let cpu = active(section)?;
    let before = cpu
        .lock(|_, _, state| Some(state.threads.as_ref()?.rows().processes()))
        .flatten();
    let threads = if before.is_some() {
        None
    } else {
        Some(Threads::new()?)
    };
    // Nothing else changes them, as long as the control lock is held.
    let mut old_rows = Rows::new(before.unwrap_or(0))?;
    cpu.lock_for_change(|_, _, state| {
        old_rows.copy_from(state.threads.as_ref()?.rows());
        Some(())
    });
    let rows = Rows::following(&old_rows, plan.processes().iter().map(|process| process.id))?;
    let rate = cpu.counter.rate();
    let config = message.config_or(default, rate);
    let change = PlanSwap {
        cpu,
        node: Some(new_node(plan, &config, rate, message.plan_id())?),
        take_over: Some(TakeOver::new(message.dealt_seq(), COPIED_A_LOCK).map_err(|_| ENOMEM)?),
        rows: Some(rows),
        threads,
        dealt_seq: message.dealt_seq(),
        lease_ns: message.lease_ns(),
        links: FrontLinks::default(),
        kept: 0,
        rate,
        kind: EventKind::PlanInstalled,
        drop_reason: None,
        reason: bindings::pbs_eject_PBS_EJECT_PLAN as u16,
    };
    Ok(KBox::new(change, CHARGED).map_err(Error::from)?)
}

/// The state before the first slot of `plan`. It is built on the stack, and needs much of it.
#[inline(never)]
fn new_node(
    plan: Plan<KernelMemory>,
    config: &Config,
    rate: Rate,
    plan_id: u64,
) -> Result<KBox<Node>> {
    let place = KBox::<Node>::new_uninit(CHARGED)?;
    let now_ns = clock::monotonic_ns();
    Node::new_in(plan, config, rate, plan_id, now_ns, |node| {
        place.write(node)
    })
    .map_err(|_| ENOMEM)
}

/// Links the plans that change to each other and to those that stay, by the processes that they
/// wait for.
fn link(control: &Control, changes: &mut [KBox<PlanSwap>]) -> Result<Fronts> {
    let mut plans = KVec::with_capacity(changes.len(), CHARGED)?;
    for change in changes.iter_mut() {
        let cpu = change.cpu.number();
        if let Some(node) = change.node.as_deref_mut() {
            plans.push((cpu, node, FrontLinks::default()), CHARGED)?;
        }
    }
    let fronts = control.fronts.follow(&mut plans)?;
    let mut links = KVec::with_capacity(plans.len(), CHARGED)?;
    for (_, _, new) in plans {
        links.push(new, CHARGED)?;
    }
    for (change, links) in changes.iter_mut().zip(links) {
        change.links = links;
    }
    Ok(fronts)
}

/// Number of processes that are copied with the run queue locked.
const COPIED_A_LOCK: usize = 16;

/// Number of processes that the last step may copy, under the lock under which it changes the
/// plans.
const COPIED_LAST: usize = 3;

/// Number of times that the rest is copied because too many processes have changed since the last
/// copy. After that all is done in one step; a CPU that does so much in so short a time is not
/// idle.
const MAX_ROUNDS: u32 = 64;

/// Number of processes of another plan that are looked up with the run queue locked.
const SOUGHT_A_LOCK: usize = 32;

/// Checks that no CPU that keeps its plan has a process of the new one that has not ended.
fn only_here(message: &Message<'_>, change: &PlanSwap) -> Result<(), InstallRefusal> {
    let Some(node) = &change.node else {
        return Ok(());
    };
    for cpu in cpus::all() {
        if message
            .sections()
            .any(|section| section.cpu() == cpu.number())
        {
            continue;
        }
        for processes in node.plan().processes().chunks(SOUGHT_A_LOCK) {
            give_way()?;
            let common = cpu.lock_for_change(|_, _, state| {
                let theirs = state.node.as_ref()?;
                let lives = |id: u32| {
                    let info = theirs.process(theirs.plan().find(id)?)?;
                    Some(!info.done)
                };
                let mut ids = processes.iter().map(|process| process.id);
                ids.find(|id| lives(*id) == Some(true))
            });
            if let Some(process) = common.flatten() {
                return Err(InstallRefusal::Elsewhere {
                    process,
                    cpu: cpu.number(),
                });
            }
        }
    }
    Ok(())
}

/// Copies the processes of the plan that is in force into the new one, piece by piece, until none
/// is left but those that have changed since.
fn copy(change: &mut PlanSwap) {
    let (Some(new), Some(take_over)) = (change.node.as_deref_mut(), &mut change.take_over) else {
        return;
    };
    loop {
        // Once the first CPU has the new plan, all get it: a caller that is killed meanwhile has
        // written it.
        let _ = give_way();
        let copied = change
            .cpu
            .lock_for_change(|_, _, state| Some(take_over.copy(state.node.as_deref_mut()?, new)));
        if copied.flatten() != Some(true) {
            return;
        }
        take_over.apply(new);
        if let Some(rows) = &mut change.rows {
            for process in take_over.applied() {
                keep_threads(rows, new, process);
            }
        }
    }
}

/// Keeps the threads of a process in the new plan, unless the plan has no task left for it.
fn keep_threads(rows: &mut Rows, new: &Node, process: u32) {
    let keep = new.process(process).is_some_and(|info| !info.done);
    rows.keep_threads(process, keep);
}

/// Checks that the new plan can follow the one that its CPU has.
///
/// A process that ends between this and the swap is done in the new plan, and its threads leave;
/// but if it was the last one and the plan is no answer, it begins afresh without a thread.
fn follows(change: &PlanSwap) -> Result<(), Refusal> {
    change.take_over.as_ref().map_or(Ok(()), TakeOver::check)
}

/// Refuses plans by which a task would have to wait that has begun by the plans in force.
///
/// A task that begins after this is found by the last step, unless it waits for a task of another
/// CPU, or its plan is not the first to be put in force.
fn check_begun(changes: &[KBox<PlanSwap>]) -> Result<(), InstallRefusal> {
    // The copies of CPUs are of different moments.  A task that is awaited may have ended since,
    // and the one that waits for it begun: therefore the plan in force is asked.
    let elsewhere = |id| {
        changes.iter().find_map(|change| {
            let node = change.node.as_deref()?;
            let index = node.plan().find(id)?;
            let now = change.cpu.lock_for_change(|_, _, state| {
                node.progress_after(state.node.as_ref()?, index, change.dealt_seq)
            });
            now.flatten().or_else(|| node.come_to(index))
        })
    };
    for node in changes.iter().filter_map(|change| change.node.as_deref()) {
        node.check_begun(elsewhere)?;
    }
    Ok(())
}

/// Makes the CPU change plans, as soon as few enough processes are left to be copied.
/// `may_refuse`: nothing happens if a task has begun that waits in the new plan.
fn put_in_force(change: &mut PlanSwap, may_refuse: bool) -> Result<(), InstallRefusal> {
    for _ in 0..MAX_ROUNDS {
        match step(change, COPIED_LAST, may_refuse)? {
            Step::Done => return Ok(()),
            Step::Refused(refusal) => return Err(refusal.into()),
            Step::Behind => copy(change),
        }
    }
    // A step that copies many processes may check one before it copies the awaited one.
    step(change, usize::MAX, false)?;
    Ok(())
}

/// Outcome of an attempt to put a plan in force.
enum Step {
    /// The CPU has the new plan.
    Done,
    /// Too many processes are left to be copied.
    Behind,
    /// A task has begun that waits in the new plan.
    Refused(Refusal),
}

/// Puts the new plan in place of the old one, on its CPU, if no more than `most` processes are left
/// to be copied; `change` gets the old one. The CPU is online.
fn step(change: &mut PlanSwap, most: usize, may_refuse: bool) -> Result<Step> {
    let mut step = Step::Done;
    sched_class::call_on(change.cpu.number(), || {
        change.cpu.lock_for_change(|rq, cpu, state| {
            state.charge(rq);
            state.sample_memory(rq, cpu);
            let now_ns = state.clock.now_ns();
            state.tell_untold(cpu);
            step = follow(change, state, most, may_refuse, now_ns);
            if matches!(step, Step::Done) {
                swap(change, rq, cpu, state, now_ns);
            }
            state.settle(rq, cpu);
        });
    })?;
    Ok(step)
}

/// Brings the new plan to where the old one of its CPU is.
fn follow(
    change: &mut PlanSwap,
    state: &mut State,
    most: usize,
    may_refuse: bool,
    now_ns: u64,
) -> Step {
    let Some(new) = change.node.as_deref_mut() else {
        return Step::Done;
    };
    let (Some(old), Some(take_over)) = (state.node.as_deref_mut(), &mut change.take_over) else {
        new.begin(None, change.dealt_seq, now_ns);
        return Step::Done;
    };
    let mut begun = Ok(());
    let applied = |new: &Node, process| {
        if let Some(rows) = &mut change.rows {
            keep_threads(rows, new, process);
        }
        if may_refuse && begun.is_ok() {
            begun = new.check_begun_at_last(process);
        }
    };
    if !take_over.finish(old, new, most, now_ns, applied) {
        return Step::Behind;
    }
    begun.map_or_else(Step::Refused, |()| Step::Done)
}

/// Exchanges the plans of a CPU; `change` gets the old one.
fn swap(change: &mut PlanSwap, rq: &RunQueue, cpu: &'static Cpu, state: &mut State, now_ns: u64) {
    let tap = core::mem::take(state.tap_mut());
    core::mem::swap(&mut state.node, &mut change.node);
    state.generation = state.generation.wrapping_add(1);
    match &mut state.node {
        Some(node) => node.begin_record(tap, change.kept, change.node.is_some()),
        None => {
            state.tap = tap;
            if change.node.is_some() && state.tap.is_on() {
                state.tap.note(Input::gone(now_ns));
            }
        }
    }
    state.events.swap_links(&mut change.links);
    entity::set_plan(rq, state.node.is_some());
    cpu.usage.set_has_plan(state.node.is_some());
    state.lease = Lease::new(change.lease_ns, now_ns);
    if let Some(lease) = &state.lease {
        cpu.lease.start_abs(lease.end_ns());
    }
    if state.node.is_none() {
        state.faults.mend();
    }
    state.memory.begin_period();
    state.show_memory();
    if let Some(old) = &change.node {
        old.leave_slot(&mut Emitter::new(cpu, &mut state.events, old.plan_id(), 0));
    }
    if state.threads.is_none() {
        state.threads = change.threads.take();
    }
    if let Some(threads) = &mut state.threads {
        change.rows = match change.rows.take() {
            Some(rows) => Some(threads.replace_rows(rows, change.reason)),
            None => {
                threads.lose_rows(change.reason);
                None
            }
        };
    }
    let plan_id = match (state.node.as_deref(), change.node.as_deref()) {
        (Some(node), _) | (None, Some(node)) => node.plan_id(),
        (None, None) => 0,
    };
    if state.node.is_some() || change.node.is_some() {
        let mut event = Event::new(change.kind, now_ns);
        if let Some(reason) = change.drop_reason {
            event.reason = reason as u16;
            cpu.drop_request.set_last(reason);
        }
        event.value = state
            .node
            .as_ref()
            .map_or(0, |node| u64::from(node.slots()));
        Emitter::new(cpu, &mut state.events, plan_id, 0).emit(&event);
    }
}

/// Number of processes that are checked, and of threads that are notified, with the run queue
/// locked.
const LOST_A_LOCK: (u32, usize) = (128, 8);

/// Makes the threads leave the class whose process went with the plan that `change` replaced, in
/// the order of that plan.
fn tell_lost(change: &PlanSwap) {
    let mut from = Some(0);
    while let Some(process) = from {
        let _ = give_way();
        let next = change.cpu.lock_for_change(|rq, cpu, state| {
            let next = tell_some_lost(change, cpu, state, process);
            state.preempt(rq);
            next
        });
        from = next.flatten();
    }
}

/// Makes some of the threads leave the class whose process went with the replaced plan, beginning
/// with process `from`. Returns the process to continue with.
fn tell_some_lost(change: &PlanSwap, cpu: &Cpu, state: &mut State, from: u32) -> Option<u32> {
    let (processes_a_lock, mut left) = LOST_A_LOCK;
    for process in from..from + processes_a_lock {
        let threads = state.threads.as_ref()?;
        // Without a new plan the rows are those of the old one.
        let rows = change.rows.as_ref().unwrap_or(threads.rows());
        if process >= rows.processes() as u32 {
            return None;
        }
        let row = rows.row(process);
        while let Some(number) = state.threads.as_ref()?.active_lost(row) {
            if left == 0 {
                return Some(process);
            }
            left -= 1;
            state.leave(cpu, number, change.reason);
        }
    }
    Some(from + processes_a_lock)
}

/// Removes the plan of a CPU, if it has one, and makes its threads leave; the CPU is online.
/// `drop_reason`: the plan is dropped; `None`: the CPU goes.
pub(crate) fn remove(
    control: &mut Control,
    cpu: &'static Cpu,
    drop_reason: Option<DropReason>,
) -> Result<bool> {
    let (kind, reason) = match drop_reason {
        Some(reason) => (EventKind::PlanDropped, reason.of_threads()),
        None => (EventKind::CpuGone, bindings::pbs_eject_PBS_EJECT_CPU_GONE),
    };
    let mut change = PlanSwap {
        cpu,
        node: None,
        take_over: None,
        rows: None,
        threads: None,
        dealt_seq: 0,
        lease_ns: 0,
        links: FrontLinks::default(),
        kept: 0,
        rate: cpu.counter.rate(),
        kind,
        drop_reason,
        reason: reason as u16,
    };
    step(&mut change, usize::MAX, false)?;
    control.fronts.leave(cpu.number());
    tell_lost(&change);
    Ok(change.node.is_some())
}

/// Drops the plan of a CPU; its threads go back to the fair class.
pub(crate) fn drop_plan(number: u32) -> Result {
    let cpu = cpus::get(number).ok_or(ENODEV)?;
    let _hotplug = kernel::cpu::hotplug_read_lock();
    let mut control = control::get()?.lock_killable()?;
    let removed = remove(&mut control, cpu, Some(DropReason::Call))?;
    drop(control);
    // Before its threads, which may be more than the log accepts.
    if removed && may_log() {
        pr_info!(
            "CPU {number}: thread {} has dropped the plan\n",
            kernel::current!().pid()
        );
    }
    leave::eject_leaving(cpu);
    match control::get()?.lock_killable() {
        Ok(mut control) => usage::give_back(&mut control, cpu),
        Err(_) => works::eject_soon(),
    }
    if removed {
        Ok(())
    } else {
        Err(ENOENT)
    }
}

/// Continues the plan `plan_id` of a CPU with another configuration, if the present one is that of
/// `generation`. Without a difference, nothing happens.
///
/// The change is made on the CPU itself, in one step under the lock of its run queue, which nothing
/// in it sleeps with or allocates memory with. It takes O(n log n) for n processes, at most
/// [`MAX_PROCESSES`](crate::pbs_core::wire::MAX_PROCESSES).
pub(crate) fn configure(
    number: u32,
    plan_id: u64,
    generation: u32,
    config: &Config,
) -> Result<(), ConfigureRefusal> {
    let cpu = cpus::get(number).ok_or(ENODEV)?;
    let _hotplug = kernel::cpu::hotplug_read_lock();
    // A plan that takes over copies the processes in pieces, between which nothing else may change
    // them all.
    let _control = control::get()?.lock_killable()?;
    let mut outcome = None;
    sched_class::call_on(number, || {
        outcome = cpu.lock_for_change(|rq, cpu, state| {
            let node = state.node.as_ref().ok_or(ConfigureRefusal::NoPlan)?;
            if node.plan_id() != plan_id {
                return Err(ConfigureRefusal::OtherPlan(node.plan_id()));
            }
            if state.generation != generation {
                return Err(ConfigureRefusal::Changed);
            }
            if node.config() == config {
                return Ok(());
            }
            node.check_change(config)
                .map_err(ConfigureRefusal::Config)?;
            // Instructions retired up to here count under the former configuration.
            state.charge(rq);
            let now_ns = state.clock.now_ns();
            let changed = state.with_node(cpu, 0, |node, emitter| {
                node.configure(config, now_ns, emitter)
            });
            state.generation = state.generation.wrapping_add(1);
            // Samples of memory are compared with the new thresholds, also those of constant size.
            state.memory.begin_period();
            state.settle(rq, cpu);
            match changed {
                Some(Ok(_)) => Ok(()),
                Some(Err(refusal)) => Err(ConfigureRefusal::Config(refusal)),
                None => Err(ConfigureRefusal::NoPlan),
            }
        });
    })?;
    outcome.unwrap_or(Err(ConfigureRefusal::NoPlan))
}

/// Renews the lease of the plan of a CPU, if it has one.
pub(crate) fn renew(number: u32) -> Result {
    let cpu = cpus::get(number).ok_or(ENODEV)?;
    let renewed = cpu.lock(|_, _, state| {
        state.node.as_ref()?;
        let now_ns = state.clock.now_ns();
        if let Some(lease) = &mut state.lease {
            // The timer finds that when it expires.
            lease.renew(now_ns);
        }
        Some(())
    });
    renewed.flatten().ok_or(ENOENT)
}
