// SPDX-License-Identifier: GPL-2.0

//! Plans come and go.
//!
//! A plan is checked and built in process context, outside every lock of the scheduler. On each of
//! its CPUs it then replaces the old one in one step: in interrupt context there, where the
//! counter can be read, by swapping a pointer. The old plan is freed outside again.

use super::{
    attach, calibrate,
    clock::Tier,
    cpu::Cpu,
    entity,
    events::Emitter,
    global::{pbs, Pbs},
    pbs_core::{
        wire::{self, Message, Section},
        Config, Event, EventKind, Node, Plan, Refusal, Sink,
    },
    storage::KernelMemory,
    threads::{Queue, Threads},
};
use kernel::{
    alloc::{KBox, KVVec, KVec},
    bindings, c_str, clock,
    cpuhp::CpuHotplug,
    prelude::*,
    sched_class::{self, RunQueueGuard},
    str::CStr,
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
    queues: KVVec<Queue>,
    threads: Option<Threads>,
    /// The prediction failures that the new plan deals with: of all events before this one.
    dealt_seq: u64,
    /// What happens to the CPU.
    kind: EventKind,
    /// Why threads whose process is not in the new plan leave.
    reason: u16,
}

/// Installs a plan as it was written, whole or not at all.
pub(crate) fn install(bytes: &[u8]) -> Result<(), Refused> {
    let pbs = pbs().ok_or(ENODEV)?;
    let message = Message::parse::<KernelMemory>(bytes)?;
    // Keeps the CPUs as they are; hotplug takes the control lock inside this one.
    let _hotplug = kernel::cpu::hotplug_read_lock();
    let control = pbs.control.lock();
    let config = message.config().unwrap_or(control.config);

    let mut changes: KVec<Change> = KVec::new();
    for section in message.sections() {
        let change = prepare(pbs, &message, &section, config)?;
        changes.push(change, GFP_KERNEL).map_err(Error::from)?;
    }
    let (_, next_seq) = pbs.events.bounds();
    message.check_dealt(next_seq)?;
    for change in changes.iter() {
        only_here(pbs, &message, change)?;
        follows(change)?;
    }
    for change in changes.iter_mut() {
        // The CPU is online, as checked above.
        sched_class::call_on(change.cpu.number(), || swap(change))?;
    }
    for change in changes.iter() {
        attach::eject_leaving(change.cpu);
    }
    Ok(())
}

/// Builds what the CPU of a section gets.
fn prepare(
    pbs: &Pbs,
    message: &Message<'_>,
    section: &Section<'_>,
    config: Config,
) -> Result<Change, Refused> {
    let no_cpu = || Refused::NoCpu {
        cpu: section.cpu(),
        offset_bytes: section.offset_bytes() as u64,
    };
    let cpu = pbs.cpu(section.cpu()).ok_or_else(no_cpu)?;
    if !kernel::cpu::is_active(cpu.number()) {
        return Err(no_cpu());
    }
    let seated = cpu.lock(|_, _, state| state.threads.is_some()) == Some(true);
    let plan = Plan::<KernelMemory>::build(section)?;
    let queues = Threads::queues(plan.processes().len())?;
    let threads = if seated { None } else { Some(Threads::new()?) };
    let node = Node::new(
        plan,
        config,
        cpu.rate(),
        message.plan_id(),
        clock::monotonic_ns(),
    )
    .map_err(|_| ENOMEM)?;
    Ok(Change {
        cpu,
        node: Some(KBox::new(node, GFP_KERNEL).map_err(Error::from)?),
        queues,
        threads,
        dealt_seq: message.dealt_seq(),
        kind: EventKind::PlanInstalled,
        reason: bindings::pbs_eject_PBS_EJECT_PLAN as u16,
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
        let common = cpu
            .lock(|_, _, state| {
                let theirs = state.node.as_ref()?;
                let lives = |id: &u32| {
                    let info = theirs.process(theirs.plan().find(*id)?)?;
                    Some(!info.done)
                };
                let mut ids = node.plan().processes().iter().map(|process| process.id);
                ids.find(|id| lives(id) == Some(true))
            })
            .flatten();
        if let Some(process) = common {
            return Err(Refused::Elsewhere {
                process,
                cpu: cpu.number(),
            });
        }
    }
    Ok(())
}

/// Checks that the new plan can follow the one that its CPU has.
///
/// A process that ends between this and the swap is done in the new plan, and its threads leave;
/// but if it was the last one and the plan is no answer, it begins afresh without a thread.
fn follows(change: &Change) -> Result<(), Refusal> {
    let Some(new) = &change.node else {
        return Ok(());
    };
    let checked = change
        .cpu
        .lock(|_, _, state| Some(new.check_over(state.node.as_ref()?, change.dealt_seq)));
    checked.flatten().unwrap_or(Ok(()))
}

/// Puts the new plan in place of the old one, on its CPU; `change` gets the old one.
fn swap(change: &mut Change) {
    let cpu = change.cpu;
    cpu.lock(|rq, cpu, state| {
        if state.threads.is_none() {
            state.threads = change.threads.take();
        }
        state.charge(rq);
        state.sample_memory(rq);
        if let Some(old) = &state.node {
            old.leave_slot(&mut Emitter::new(cpu, old.plan_id(), 0));
        }
        core::mem::swap(&mut state.node, &mut change.node);
        let old = change.node.as_deref();
        let plan_id = match (state.node.as_deref(), old) {
            (Some(node), _) | (None, Some(node)) => node.plan_id(),
            (None, None) => 0,
        };
        let now_ns = clock::monotonic_ns();
        if let Some(new) = &mut state.node {
            new.begin(old, change.dealt_seq, now_ns);
        }
        let tell = |event: &Event, pid: i32| Emitter::new(cpu, plan_id, pid).emit(event);
        if state.node.is_some() || old.is_some() {
            let mut event = Event::new(change.kind, now_ns);
            event.value = state
                .node
                .as_ref()
                .map_or(0, |node| u64::from(node.slots()));
            tell(&event, 0);
        }
        if let Some(threads) = &mut state.threads {
            let new = state.node.as_deref();
            let id_of = |index: u32| old.and_then(|node| Some(node.plan().process(index)?.id));
            let queues = core::mem::replace(&mut change.queues, KVVec::new());
            change.queues = threads.replace_processes(
                queues,
                |index| {
                    // A process that the new plan leaves no task has nothing to wait for.
                    let process = new?.plan().find(id_of(index)?)?;
                    (!new?.process(process)?.done).then_some(process)
                },
                change.reason,
                |index, task| {
                    let mut event = Event::new(EventKind::Ejected, now_ns);
                    event.reason = change.reason;
                    event.process = id_of(index).unwrap_or(event.process);
                    let _seq = tell(&event, task.pid());
                },
            );
        }
        state.settle(rq, cpu);
    });
}

/// Takes the plan of a CPU away, if it has one; the caller holds the control lock, and the CPU is
/// online.
fn remove(cpu: &'static Cpu, reason: u32, kind: EventKind) -> Result<bool> {
    let mut change = Change {
        cpu,
        node: None,
        queues: KVVec::new(),
        threads: None,
        dealt_seq: 0,
        kind,
        reason: reason as u16,
    };
    sched_class::call_on(cpu.number(), || swap(&mut change))?;
    attach::eject_leaving(cpu);
    Ok(change.node.is_some())
}

/// Drops the plan of a CPU; its threads go back to the fair class.
pub(crate) fn drop_plan(number: u32) -> Result {
    let pbs = pbs().ok_or(ENODEV)?;
    let _hotplug = kernel::cpu::hotplug_read_lock();
    let _control = pbs.control.lock();
    let cpu = pbs.cpu(number).ok_or(ENODEV)?;
    let reason = bindings::pbs_eject_PBS_EJECT_DROPPED;
    if remove(cpu, reason, EventKind::PlanDropped)? {
        Ok(())
    } else {
        Err(ENOENT)
    }
}

/// How many slots are copied with the run queue locked.
const SLOTS_A_LOCK: usize = 128;

/// The plan of a CPU, as a plan of one CPU with its configuration.
pub(crate) fn read_back(number: u32) -> Result<KVVec<u8>> {
    let pbs = pbs().ok_or(ENODEV)?;
    // With it nobody replaces the plan between two locks of the run queue.
    let _control = pbs.control.lock();
    let cpu = pbs.cpu(number).ok_or(ENODEV)?;
    let (plan_id, config, bytes, nr_processes, nr_slots) = cpu
        .lock(|_, _, state| {
            let node = state.node.as_ref()?;
            let plan = node.plan();
            Some((
                node.plan_id(),
                *node.config(),
                plan.encoded_bytes(),
                plan.processes().len(),
                plan.slots().len(),
            ))
        })
        .flatten()
        .ok_or(ENOENT)?;
    let mut out = KVVec::with_capacity(bytes as usize, GFP_KERNEL)?;
    out.extend_from_slice(
        &wire::encode::header(plan_id, bytes, 1, true, 0),
        GFP_KERNEL,
    )?;
    out.extend_from_slice(&wire::encode::config(&config), GFP_KERNEL)?;
    let record = wire::encode::cpu(number, nr_processes as u32, nr_slots as u64);
    out.extend_from_slice(&record, GFP_KERNEL)?;
    for index in 0..nr_processes as u32 {
        let process = cpu
            .lock(|_, _, state| state.node.as_ref()?.plan().process(index).copied())
            .flatten()
            .ok_or(ENOENT)?;
        let record = wire::encode::process(process.id, process.buffer_insns);
        out.extend_from_slice(&record, GFP_KERNEL)?;
    }
    let mut piece = [0; SLOTS_A_LOCK * wire::SLOT_BYTES];
    for first in (0..nr_slots).step_by(SLOTS_A_LOCK) {
        let used = cpu
            .lock(|_, _, state| {
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
        out.extend_from_slice(piece.get(..used).unwrap_or_default(), GFP_KERNEL)?;
    }
    Ok(out)
}

/// A CPU is about to be deactivated: its plan goes, and its threads while it still runs them.
#[no_mangle]
extern "C" fn sched_pbs_cpu_deactivate(number: u32) {
    let Some(pbs) = pbs() else { return };
    let Some(cpu) = pbs.cpu(number) else { return };
    let _control = pbs.control.lock();
    let reason = bindings::pbs_eject_PBS_EJECT_CPU_GONE;
    if let Err(error) = remove(cpu, reason, EventKind::CpuGone) {
        pr_warn!("CPU {number}: could not take its plan away: {error:?}\n");
    }
}

/// Gives every CPU that comes up its counter, and takes it when the CPU goes.
pub(crate) struct CpuUp;

impl CpuHotplug for CpuUp {
    const NAME: &'static CStr = c_str!("sched/pbs:online");

    fn online(number: u32) -> Result {
        let cpu = pbs().and_then(|pbs| pbs.cpu(number)).ok_or(ENODEV)?;
        let rate = calibrate::measure_rate();
        let (counter, tier) = calibrate::find(cpu);
        cpu.set_found(tier, &rate);
        let mut rq = RunQueueGuard::lock(number);
        entity::set_cpu(&mut rq, cpu);
        let old = entity::with_state(&mut rq, |_, _, state| {
            state.set_rate(rate.rate);
            state.insn_clock.install(counter, tier)
        });
        drop(rq);
        // Releasing a counter sleeps, so here, outside the lock.
        drop(old);
        Ok(())
    }

    fn offline(number: u32) -> Result {
        let cpu = pbs().and_then(|pbs| pbs.cpu(number)).ok_or(ENODEV)?;
        drop(cpu.lock(|_, _, state| state.insn_clock.install(None, Tier::Clock)));
        Ok(())
    }
}
