// SPDX-License-Identifier: GPL-2.0

//! Plans come and go.
//!
//! A plan is checked and built in process context, outside every lock of the scheduler. On each of
//! its CPUs it then replaces the old one in one step: in interrupt context there, where the
//! counter can be read, by swapping a pointer. The old plan is freed outside again.
//!
//! The CPU must not be held up for long by that, however large the plans are: whoever holds the
//! lock of its run queue keeps interrupts off there. So all that grows with a plan is done in
//! pieces with the lock dropped between them: processes are copied while the old plan goes on
//! ([`TakeOver`]), and threads whose process is gone are told afterwards.

use crate::{
    linux::{
        entity,
        sched_class::{self, RunQueue, RunQueueGuard},
        storage::{KernelMemory, CHARGED},
    },
    pbs_core::{
        self,
        wire::{self, Message, Section},
        Config, Event, EventKind, Input, Lease, Node, Plan, Rate, Refusal, Sink, TakeOver, Tap,
    },
    percpu::{cpu::Cpu, events::Emitter},
    plans::{
        calibrate,
        fronts::{self, Fronts, Links},
        global::{pbs, Control, Pbs},
        usage,
    },
    protect::watchdog::Why,
    show::dump,
    state::{insn_clock::Tier, rows::Rows, threads::Threads, State},
    thread::attach,
};
use core::fmt::Write;
use kernel::{
    alloc::{KBox, KVVec, KVec},
    bindings, c_str, clock,
    cpuhp::CpuHotplug,
    prelude::*,
    str::CStr,
    task_ext::{give_way, may_log},
};

/// Why a plan was refused.
pub(crate) enum Refused {
    /// The plan is wrong.
    Plan(Refusal),
    /// It names a CPU that is not online.
    NoCpu {
        /// The CPU.
        cpu: u32,
        /// Where the plan names it.
        offset_bytes: u64,
    },
    /// It has a process that the plan of another CPU has, which stays.
    Elsewhere {
        /// The process.
        process: u32,
        /// The CPU that has it.
        cpu: u32,
    },
    /// Something in the kernel failed.
    Kernel(Error),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Refused::Kernel(error)
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Refused::Plan(refusal)
    }
}

/// What a CPU gets in one step, and what it gave for it.
struct Change {
    cpu: &'static Cpu,
    node: Option<KBox<Node<KernelMemory>>>,
    take_over: Option<TakeOver<KernelMemory>>,
    rows: Option<Rows>,
    threads: Option<Threads>,
    /// The prediction failures that the new plan deals with: of all events before this one.
    dealt_seq: u64,
    /// The lease of the new plan, 0: none.
    lease_ns: u64,
    /// What it tells other CPUs, and is told.
    links: Links,
    /// The number under which the plan is kept, if it is.
    kept: u64,
    /// The configuration and the rate with which it begins.
    terms: Option<(Config, Rate)>,
    /// What happens to the CPU, and why.
    kind: EventKind,
    why: Option<Why>,
    /// Why threads whose process is not in the new plan leave.
    reason: u16,
}

impl Change {
    /// On which CPU the plan has begun, and with which configuration and rate.
    fn in_force(&self) -> Option<(u32, Config, Rate)> {
        let (config, rate) = self.terms?;
        Some((self.cpu.number(), config, rate))
    }
}

/// Installs a plan as it was written, whole or not at all; returns its id.
pub(crate) fn install(bytes: KVVec<u8>) -> Result<u64, Refused> {
    let pbs = pbs().ok_or(ENODEV)?;
    let message = Message::parse::<KernelMemory>(&bytes)?;
    // What takes long comes first, with no lock held.
    let mut plans = KVec::new();
    for section in message.sections() {
        active(pbs, &section)?;
        let plan = Plan::<KernelMemory>::build(&section)?;
        plans.push((section, plan), CHARGED).map_err(Error::from)?;
    }
    pbs_core::join(&mut plans)?;
    // Keeps the CPUs as they are; hotplug takes the control lock inside this one.
    let _hotplug = kernel::cpu::hotplug_read_lock();
    let mut control = pbs.control.lock_killable()?;
    let mut changes: KVec<Change> = KVec::new();
    for (section, plan) in plans {
        let change = prepare(pbs, &message, &section, plan, &control.config)?;
        pbs.events.prepare(&mut control, change.cpu)?;
        // Without it the CPU is not recorded, which its recorder finds; the plan is none the worse.
        let _ = pbs.inputs.prepare(&mut control, change.cpu);
        changes.push(change, CHARGED).map_err(Error::from)?;
    }
    message.check_dealt(pbs.events.next_seq())?;
    for change in changes.iter_mut() {
        only_here(pbs, &message, change)?;
        copy(change);
        follows(change)?;
    }
    let fronts = link(&control, &mut changes)?;
    for change in changes.iter() {
        usage::take(&mut control, change.cpu);
    }
    let plan_id = message.plan_id();
    let kept = control.kept.number();
    for change in changes.iter_mut() {
        change.kept = kept;
        put_in_force(change).inspect_err(|_| pbs.queue_ejection())?;
    }
    fronts.tell_lost(pbs, &control.fronts);
    control.fronts = fronts;
    control
        .kept
        .keep(bytes, changes.iter().filter_map(Change::in_force));
    for change in changes.iter() {
        fronts::tell_all(pbs, change.cpu);
        tell_lost(change);
    }
    drop(control);
    pbs.begin_watch();
    for change in changes.iter() {
        attach::eject_leaving(change.cpu);
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
    pbs().is_some_and(|pbs| pbs.cpus().any(goes_on))
}

/// The CPU of a section, if it takes tasks.
fn active(pbs: &Pbs, section: &Section<'_>) -> Result<&'static Cpu, Refused> {
    let no_cpu = || Refused::NoCpu {
        cpu: section.cpu(),
        offset_bytes: section.offset_bytes() as u64,
    };
    let cpu = pbs.cpu(section.cpu()).ok_or_else(no_cpu)?;
    if !kernel::cpu::is_active(cpu.number()) {
        return Err(no_cpu());
    }
    Ok(cpu)
}

/// Builds what the CPU of a section gets; `plan` is what the section says.
fn prepare(
    pbs: &Pbs,
    message: &Message<'_>,
    section: &Section<'_>,
    plan: Plan<KernelMemory>,
    default: &Config,
) -> Result<Change, Refused> {
    give_way()?;
    let cpu = active(pbs, section)?;
    let before = cpu
        .lock(|_, _, state| Some(state.threads.as_ref()?.rows().processes()))
        .flatten();
    let threads = if before.is_some() {
        None
    } else {
        Some(Threads::new()?)
    };
    // Nobody else changes them, as long as the control lock is held.
    let mut old_rows = Rows::new(before.unwrap_or(0))?;
    with_locked(cpu, |_, _, state| {
        old_rows.copy_from(state.threads.as_ref()?.rows());
        Some(())
    });
    let rows = Rows::following(&old_rows, plan.processes().iter().map(|process| process.id))?;
    let rate = cpu.rate();
    let config = message.config(rate).unwrap_or(*default);
    let node = Node::new(plan, config, rate, message.plan_id(), clock::monotonic_ns())
        .map_err(|_| ENOMEM)?;
    Ok(Change {
        cpu,
        node: Some(KBox::new(node, CHARGED).map_err(Error::from)?),
        take_over: Some(TakeOver::new(message.dealt_seq(), COPIED_A_LOCK).map_err(|_| ENOMEM)?),
        rows: Some(rows),
        threads,
        dealt_seq: message.dealt_seq(),
        lease_ns: message.lease_ns(),
        links: Links::default(),
        kept: 0,
        terms: Some((config, rate)),
        kind: EventKind::PlanInstalled,
        why: None,
        reason: bindings::pbs_eject_PBS_EJECT_PLAN as u16,
    })
}

/// Joins the plans that change with each other and with those that stay, by what they wait for.
fn link(control: &Control, changes: &mut [Change]) -> Result<Fronts> {
    let mut plans = KVec::with_capacity(changes.len(), CHARGED)?;
    for change in changes.iter_mut() {
        if let Some(node) = change.node.as_deref_mut() {
            plans.push((change.cpu.number(), node, Links::default()), CHARGED)?;
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

/// How many processes are copied with the run queue locked.
const COPIED_A_LOCK: usize = 16;

/// How many processes the last step may copy, in the same lock in which it changes the plans.
const COPIED_LAST: usize = 3;

/// How often the rest is copied because too many processes have changed since the last time.
/// After that all is done in one step; a CPU that does so much in so short a time is not idle.
const MAX_ROUNDS: u32 = 64;

/// How many processes of another plan are looked up with the run queue locked.
const SOUGHT_A_LOCK: usize = 32;

/// Calls `function` with the run queue of a CPU locked, for a change of its plan, and keeps the
/// longest time that such a call took.
pub(crate) fn with_locked<R>(
    cpu: &Cpu,
    function: impl FnOnce(&RunQueue, &'static Cpu, &mut State) -> R,
) -> Option<R> {
    cpu.lock(|rq, cpu, state| {
        let since_ns = clock::monotonic_ns();
        let result = function(rq, cpu, state);
        let took_ns = clock::monotonic_ns().saturating_sub(since_ns);
        state.longest.note_swap(took_ns);
        result
    })
}

/// Checks that no CPU that keeps its plan has a process of the new one that has not ended.
fn only_here(pbs: &Pbs, message: &Message<'_>, change: &Change) -> Result<(), Refused> {
    let Some(node) = &change.node else {
        return Ok(());
    };
    for cpu in pbs.cpus() {
        if message
            .sections()
            .any(|section| section.cpu() == cpu.number())
        {
            continue;
        }
        for processes in node.plan().processes().chunks(SOUGHT_A_LOCK) {
            give_way()?;
            let common = with_locked(cpu, |_, _, state| {
                let theirs = state.node.as_ref()?;
                let lives = |id: u32| {
                    let info = theirs.process(theirs.plan().find(id)?)?;
                    Some(!info.done)
                };
                let mut ids = processes.iter().map(|process| process.id);
                ids.find(|id| lives(*id) == Some(true))
            });
            if let Some(process) = common.flatten() {
                return Err(Refused::Elsewhere {
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
fn copy(change: &mut Change) {
    let (Some(new), Some(take_over)) = (change.node.as_deref_mut(), &mut change.take_over) else {
        return;
    };
    loop {
        // From the first CPU on that has the new plan it is for all: who is killed meanwhile has
        // written it.
        let _ = give_way();
        let copied = with_locked(change.cpu, |_, _, state| {
            Some(take_over.copy(state.node.as_deref_mut()?, new))
        });
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

/// A process that the new plan leaves no task has nothing to wait for.
fn keep_threads(rows: &mut Rows, new: &Node<KernelMemory>, process: u32) {
    let keep = new.process(process).is_some_and(|info| !info.done);
    rows.keep_threads(process, keep);
}

/// Checks that the new plan can follow the one that its CPU has.
///
/// A process that ends between this and the swap is done in the new plan, and its threads leave;
/// but if it was the last one and the plan is no answer, it begins afresh without a thread.
fn follows(change: &Change) -> Result<(), Refusal> {
    change.take_over.as_ref().map_or(Ok(()), TakeOver::check)
}

/// Has the CPU change plans, as soon as little enough is left to be copied.
fn put_in_force(change: &mut Change) -> Result {
    for round in 0..=MAX_ROUNDS {
        let most = if round == MAX_ROUNDS {
            usize::MAX
        } else {
            COPIED_LAST
        };
        let mut done = false;
        // The CPU is online, as checked before.
        sched_class::call_on(change.cpu.number(), || done = swap(change, most))?;
        if done {
            break;
        }
        copy(change);
    }
    Ok(())
}

/// Puts the new plan in place of the old one, on its CPU, if no more than `most` processes are left
/// to be copied; `change` gets the old one.
fn swap(change: &mut Change, most: usize) -> bool {
    with_locked(change.cpu, |rq, cpu, state| {
        state.charge(rq);
        state.sample_memory(rq, cpu);
        let now_ns = state.clock.now_ns();
        state.tell_untold(cpu);
        if let Some(new) = change.node.as_deref_mut() {
            match (state.node.as_deref_mut(), &mut change.take_over) {
                (Some(old), Some(take_over)) => {
                    let rows = &mut change.rows;
                    let applied = |new: &Node<KernelMemory>, process| {
                        if let Some(rows) = rows {
                            keep_threads(rows, new, process);
                        }
                    };
                    if !take_over.finish(old, new, most, now_ns, applied) {
                        return false;
                    }
                }
                _ => new.begin(None, change.dealt_seq, now_ns),
            }
        }
        let tap = core::mem::take(state.tap_mut());
        core::mem::swap(&mut state.node, &mut change.node);
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
        cpu.set_has_plan(state.node.is_some());
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
            if let Some(why) = change.why {
                event.reason = why as u16;
                cpu.set_dropped(why);
            }
            event.value = state
                .node
                .as_ref()
                .map_or(0, |node| u64::from(node.slots()));
            Emitter::new(cpu, &mut state.events, plan_id, 0).emit(&event);
        }
        state.settle(rq, cpu);
        true
    }) != Some(false)
}

/// How many processes are looked at, and how many threads told, with the run queue locked.
const LOST_A_LOCK: (u32, usize) = (128, 8);

/// Tells the threads to leave the class whose process went with the plan that `change` replaced, in
/// the order of that plan.
fn tell_lost(change: &Change) {
    let mut from = Some(0);
    while let Some(process) = from {
        let _ = give_way();
        let next = with_locked(change.cpu, |rq, cpu, state| {
            let next = tell_some_lost(change, cpu, state, process);
            state.preempt(rq);
            next
        });
        from = next.flatten();
    }
}

/// A piece of that, from a process on; returns the one to go on with.
fn tell_some_lost(change: &Change, cpu: &Cpu, state: &mut State, from: u32) -> Option<u32> {
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

/// Takes the plan of a CPU away, if it has one, and tells its threads to leave; the CPU is online.
/// `why`: the plan is dropped, and not the CPU gone.
fn remove(pbs: &Pbs, control: &mut Control, cpu: &'static Cpu, why: Option<Why>) -> Result<bool> {
    let (kind, reason) = match why {
        Some(why) => (EventKind::PlanDropped, why.of_threads()),
        None => (EventKind::CpuGone, bindings::pbs_eject_PBS_EJECT_CPU_GONE),
    };
    let mut change = Change {
        cpu,
        node: None,
        take_over: None,
        rows: None,
        threads: None,
        dealt_seq: 0,
        lease_ns: 0,
        links: Links::default(),
        kept: 0,
        terms: None,
        kind,
        why,
        reason: reason as u16,
    };
    put_in_force(&mut change)?;
    control.fronts.leave(pbs, cpu.number());
    tell_lost(&change);
    Ok(change.node.is_some())
}

/// Drops the plan of a CPU; its threads go back to the fair class.
pub(crate) fn drop_plan(number: u32) -> Result {
    let pbs = pbs().ok_or(ENODEV)?;
    let cpu = pbs.cpu(number).ok_or(ENODEV)?;
    let _hotplug = kernel::cpu::hotplug_read_lock();
    let mut control = pbs.control.lock_killable()?;
    let removed = remove(pbs, &mut control, cpu, Some(Why::Call))?;
    drop(control);
    // Before its threads, which may be more than the log takes.
    if removed && may_log() {
        pr_info!(
            "CPU {number}: thread {} has dropped the plan\n",
            kernel::current!().pid()
        );
    }
    attach::eject_leaving(cpu);
    match pbs.control.lock_killable() {
        Ok(mut control) => usage::give_back(&mut control, cpu),
        Err(_) => pbs.queue_ejection(),
    }
    if removed {
        Ok(())
    } else {
        Err(ENOENT)
    }
}

/// The lease of the plan of a CPU begins anew, if it has one.
pub(crate) fn renew(number: u32) -> Result {
    let cpu = pbs().and_then(|pbs| pbs.cpu(number)).ok_or(ENODEV)?;
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

/// Drops the plan of a CPU if somebody has asked for that, and says so in the log.
pub(crate) fn drop_asked(pbs: &Pbs, cpu: &'static Cpu) {
    let _hotplug = kernel::cpu::hotplug_read_lock();
    let mut control = pbs.control.lock();
    let Some(why) = cpu.take_drop() else { return };
    // What is wrong is to be seen only as long as the plan is there.
    let logs = may_log();
    let text = (logs && why.is_fault()).then(|| dump::text(cpu));
    // It fails if the CPU has gone offline, and so has the plan.
    let removed = remove(pbs, &mut control, cpu, Some(why)).unwrap_or(false);
    drop(control);
    if removed {
        // Elsewhere than here: who takes long to be taken out keeps no other CPU waiting.
        pbs.queue_ejection();
        if logs {
            pr_err!(
                "CPU {}: the plan was dropped: {}\n",
                cpu.number(),
                why.text()
            );
        }
        if let Some(text) = text {
            let text = core::str::from_utf8(&text).unwrap_or_default();
            let _ = dump::Log::new().write_str(text);
        }
    }
}

/// How many slots, or edges, are copied with the run queue locked.
const SLOTS_A_LOCK: usize = 128;

/// The plan of a CPU, as a plan of one CPU with its configuration.
pub(crate) fn read_back(number: u32) -> Result<KVVec<u8>> {
    let pbs = pbs().ok_or(ENODEV)?;
    // With it nobody replaces the plan between two locks of the run queue.
    let _control = pbs.control.lock_killable()?;
    let cpu = pbs.cpu(number).ok_or(ENODEV)?;
    let (header, config, record) = with_locked(cpu, |_, _, state| {
        let node = state.node.as_ref()?;
        let plan = node.plan();
        let header = wire::encode::Header {
            plan_id: node.plan_id(),
            total_bytes: plan.encoded_bytes(),
            nr_cpus: 1,
            with_config: true,
            lease_ns: state.lease.map_or(0, |lease| lease.length_ns()),
            memory_bytes: plan.memory_bytes(),
            ..wire::encode::Header::default()
        };
        Some((header, *node.config(), plan.cpu_record(number)))
    })
    .flatten()
    .ok_or(ENOENT)?;
    let mut out = KVVec::with_capacity(header.total_bytes as usize, CHARGED)?;
    out.extend_from_slice(&header.bytes(), CHARGED)?;
    out.extend_from_slice(&wire::encode::config(&config), CHARGED)?;
    out.extend_from_slice(&record.bytes(), CHARGED)?;
    for index in 0..record.nr_processes {
        give_way()?;
        let process = with_locked(cpu, |_, _, state| {
            state.node.as_ref()?.plan().process(index).copied()
        })
        .flatten()
        .ok_or(ENOENT)?;
        out.extend_from_slice(&process.record().bytes(), CHARGED)?;
    }
    let mut piece = [0; SLOTS_A_LOCK * wire::SLOT_BYTES];
    for first in (0..record.nr_slots as usize).step_by(SLOTS_A_LOCK) {
        give_way()?;
        let used = with_locked(cpu, |_, _, state| {
            let plan = state.node.as_ref()?.plan();
            let slots = plan.slots().iter().skip(first);
            let mut used = 0;
            for (slot, place) in slots.zip(piece.chunks_exact_mut(wire::SLOT_BYTES)) {
                let process = plan.process(slot.process);
                let id = process.map_or(wire::IDLE, |process| process.id);
                place.copy_from_slice(&wire::encode::slot(slot.length_insns, id, slot.task));
                used += wire::SLOT_BYTES;
            }
            Some(used)
        })
        .flatten()
        .ok_or(ENOENT)?;
        out.extend_from_slice(piece.get(..used).unwrap_or_default(), CHARGED)?;
    }
    for first in (0..record.nr_edges as u32).step_by(SLOTS_A_LOCK) {
        give_way()?;
        let used = with_locked(cpu, |_, _, state| {
            let plan = state.node.as_ref()?.plan();
            let edges = first..plan.edges().len() as u32;
            let mut used = 0;
            for (edge, place) in edges.zip(piece.chunks_exact_mut(wire::EDGE_BYTES)) {
                place.copy_from_slice(&plan.edge_record(edge));
                used += wire::EDGE_BYTES;
            }
            Some(used)
        })
        .flatten()
        .ok_or(ENOENT)?;
        out.extend_from_slice(piece.get(..used).unwrap_or_default(), CHARGED)?;
    }
    Ok(out)
}

/// A CPU is about to be deactivated: its plan goes, and its threads while it still runs them.
#[no_mangle]
extern "C" fn sched_pbs_cpu_deactivate(number: u32) {
    let Some(pbs) = pbs() else { return };
    let Some(cpu) = pbs.cpu(number) else { return };
    let mut control = pbs.control.lock();
    if let Err(error) = remove(pbs, &mut control, cpu, None) {
        pr_warn!("CPU {number}: could not take its plan away: {error:?}\n");
    }
    drop(control);
    attach::eject_leaving(cpu);
    usage::give_back(&mut pbs.control.lock(), cpu);
}

/// Finds out how a CPU that comes up can count, and takes it the counter when it goes.
pub(crate) struct CpuUp;

impl CpuHotplug for CpuUp {
    const NAME: &'static CStr = c_str!("sched/pbs:online");

    fn online(number: u32) -> Result {
        let cpu = pbs().and_then(|pbs| pbs.cpu(number)).ok_or(ENODEV)?;
        let rate = calibrate::measure_rate();
        cpu.set_found(calibrate::find(cpu), &rate);
        let mut rq = RunQueueGuard::lock(cpu.id());
        entity::set_cpu(rq.as_mut(), cpu);
        entity::with_state(rq.as_mut(), |_, cpu, state| state.set_rate(cpu));
        Ok(())
    }

    fn offline(number: u32) -> Result {
        let cpu = pbs().and_then(|pbs| pbs.cpu(number)).ok_or(ENODEV)?;
        // It has one only if a thread is left that could not be taken out of the class.
        drop(cpu.lock(|_, _, state| state.insn_clock.install(None, Tier::Clock)));
        Ok(())
    }
}
