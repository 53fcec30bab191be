// SPDX-License-Identifier: GPL-2.0

//! `/sys/kernel/pbs/`: one value a file.
//!
//! See `Documentation/ABI/testing/sysfs-kernel-pbs` for the meaning of each file.

use crate::{
    pbs_core::{Config, EventKind, NodeThresholds, ProcessInfo},
    percpu::{cpu::Cpu, cpus, drop_request::DropReason},
    plans::{calibrate, control},
    protect::watchdog,
    rings::events,
    state::State,
};
use core::fmt::Write;
use kernel::{
    bindings, c_str, fmt,
    prelude::*,
    str::CString,
    sysfs::{Attribute, Buffer, Directory},
};

/// The directories, for as long as the kernel runs.
pub(crate) struct Tree {
    _root: Directory<()>,
    _config: Directory<()>,
    _counts: Directory<()>,
    _cpus: KVec<(Directory<&'static Cpu>, Directory<&'static Cpu>)>,
}

/// Makes the directories.
pub(crate) fn create() -> Result<Tree> {
    let root = Directory::under_kernel(c_str!("pbs"), (), &ROOT)?;
    let config = root.subdirectory(c_str!("config"), (), &CONFIG)?;
    let counts = root.subdirectory(c_str!("counts"), (), &TOTAL_COUNTS)?;
    let mut cpus = KVec::new();
    for cpu in cpus::all() {
        let name = CString::try_from_fmt(fmt!("cpu{}", cpu.number()))?;
        let directory = root.subdirectory(&name, cpu, &CPU)?;
        let counts = directory.subdirectory(c_str!("counts"), cpu, &CPU_COUNTS)?;
        cpus.push((directory, counts), GFP_KERNEL)?;
    }
    Ok(Tree {
        _root: root,
        _config: config,
        _counts: counts,
        _cpus: cpus,
    })
}

/// Writes a value and ends the line.
fn line(out: &mut Buffer<'_>, value: impl core::fmt::Display) -> Result {
    writeln!(out, "{value}").map_err(|_| EINVAL)
}

/// Sums a value over all CPUs.
fn sum(value: impl Fn(&'static Cpu) -> i64) -> i64 {
    cpus::all().map(value).fold(0, i64::saturating_add)
}

/// A value of a CPU's state, 0 if it has none.
fn of_state<T: Default>(cpu: &Cpu, value: impl FnOnce(&State) -> Option<T>) -> T {
    cpu.lock(|_, _, state| value(state))
        .flatten()
        .unwrap_or_default()
}

fn lateness_insns(cpu: &Cpu) -> i64 {
    of_state(cpu, |state| Some(state.node.as_ref()?.lateness_insns()))
}

/// Peak memory of the processes of a CPU's plan that have begun and not ended.
fn memory_bytes(cpu: &Cpu) -> u64 {
    of_state(cpu, |state| Some(state.node.as_ref()?.memory_bytes()))
}

/// Number of processes that are looked at under one lock of a run queue: all users may read.
const PROCESSES_A_LOCK: u32 = 32;

/// Calls `each` with what is known of each process of a CPU's plan, some of them under each lock.
fn for_processes(cpu: &Cpu, mut each: impl FnMut(&ProcessInfo)) {
    let mut first = 0;
    loop {
        let end = first + PROCESSES_A_LOCK;
        let goes_on = cpu.lock(|_, _, state| {
            let node = state.node.as_ref()?;
            let known = (first..end).filter_map(|p| node.process(p));
            known.for_each(|info| each(&info));
            Some((end as usize) < node.plan().processes().len())
        });
        if goes_on.flatten() != Some(true) {
            return;
        }
        first = end;
    }
}

/// Number of processes of a CPU's plan for which `holds` is true.
fn count(cpu: &Cpu, holds: impl Fn(&ProcessInfo) -> bool) -> usize {
    let mut number = 0;
    for_processes(cpu, |info| number += usize::from(holds(info)));
    number
}

/// The largest of a value over the processes of a CPU's plan.
fn largest(cpu: &Cpu, value: impl Fn(&ProcessInfo) -> u64) -> u64 {
    let mut largest = 0;
    for_processes(cpu, |info| largest = largest.max(value(info)));
    largest
}

static ROOT: [Attribute<()>; 9] = [
    Attribute::read_only(c_str!("version"), |(), out| {
        line(out, bindings::PBS_VERSION)
    }),
    Attribute::read_only(c_str!("tier"), |(), out| line(out, cpus::tier().name())),
    Attribute::read_only(c_str!("rate_insns_per_ms"), |(), out| {
        line(out, cpus::rate().insns_per_ms())
    }),
    Attribute::read_only(c_str!("rate_spread_permille"), |(), out| {
        line(out, cpus::rate_spread_permille())
    }),
    Attribute::read_only(c_str!("events"), |(), out| line(out, events::next_seq())),
    Attribute::read_only(c_str!("lateness_insns"), |(), out| {
        line(out, sum(lateness_insns))
    }),
    Attribute::read_only(c_str!("memory_bytes"), |(), out| {
        let bytes = cpus::all().map(memory_bytes);
        line(out, bytes.fold(0, u64::saturating_add))
    }),
    Attribute::read_only(c_str!("threads"), |(), out| {
        line(out, sum(|cpu| i64::from(threads(cpu))))
    }),
    Attribute::read_write(
        c_str!("watchdog_ms"),
        |(), out| line(out, watchdog::ms()),
        |(), text| {
            let ms = text.parse().map_err(|_| EINVAL)?;
            watchdog::set_ms(ms)
        },
    ),
];

/// A value of the thresholds that a CPU's node has now.
fn thresholds<T: Default>(cpu: &Cpu, value: impl Fn(NodeThresholds) -> T) -> T {
    of_state(cpu, |state| {
        let node = state.node.as_ref()?;
        Some(value(node.thresholds(kernel::clock::monotonic_ns())))
    })
}

fn threads(cpu: &Cpu) -> u32 {
    of_state(cpu, |state| Some(state.threads.as_ref()?.used()))
}

static CPU: [Attribute<&'static Cpu>; CPU_FILES] = [
    Attribute::read_only(c_str!("state"), |cpu, out| {
        let state = cpu.lock(|_, _, state| match &state.node {
            _ if !kernel::cpu::is_online(cpu.number()) => "offline",
            None => "no_plan",
            Some(node) if node.ended() => "ended",
            Some(_) if state.is_unallocated() => "unallocated",
            Some(_) => "execution",
        });
        line(out, state.unwrap_or("offline"))
    }),
    Attribute::read_only(c_str!("plan_id"), |cpu, out| {
        line(
            out,
            of_state(cpu, |state| Some(state.node.as_ref()?.plan_id())),
        )
    }),
    Attribute::read_only(c_str!("slots"), |cpu, out| {
        line(
            out,
            of_state(cpu, |state| Some(state.node.as_ref()?.slots())),
        )
    }),
    Attribute::read_only(c_str!("slot"), |cpu, out| {
        line(
            out,
            of_state(cpu, |state| Some(state.node.as_ref()?.cursor())),
        )
    }),
    Attribute::read_only(c_str!("slot_count_insns"), |cpu, out| {
        line(
            out,
            of_state(cpu, |state| Some(state.node.as_ref()?.slot_count_insns())),
        )
    }),
    Attribute::read_only(c_str!("t1_insns"), |cpu, out| {
        line(
            out,
            of_state(cpu, |state| state.node.as_ref()?.slot_t1_insns()),
        )
    }),
    Attribute::read_only(c_str!("granted_process"), |cpu, out| {
        let id = of_state(cpu, |state| {
            let node = state.node.as_ref()?;
            let (process, _) = node.granted();
            Some(i64::from(node.plan().process(process?)?.id) + 1)
        });
        line(out, id - 1)
    }),
    Attribute::read_only(c_str!("processes"), |cpu, out| {
        line(
            out,
            of_state(cpu, |state| {
                Some(state.node.as_ref()?.plan().processes().len())
            }),
        )
    }),
    Attribute::read_only(c_str!("processes_unfinished"), |cpu, out| {
        line(
            out,
            of_state(cpu, |state| Some(state.node.as_ref()?.unfinished())),
        )
    }),
    Attribute::read_only(c_str!("threads"), |cpu, out| line(out, threads(cpu))),
    Attribute::read_only(c_str!("lateness_insns"), |cpu, out| {
        line(out, lateness_insns(cpu))
    }),
    Attribute::read_only(c_str!("processes_active"), |cpu, out| {
        line(out, thresholds(cpu, |now| now.active))
    }),
    Attribute::read_only(c_str!("stress"), |cpu, out| {
        line(out, thresholds(cpu, |now| now.stress))
    }),
    Attribute::read_only(c_str!("t2_node_insns"), |cpu, out| {
        line(out, thresholds(cpu, |now| now.t2_node_insns))
    }),
    Attribute::read_only(c_str!("tm2_node_insns"), |cpu, out| {
        line(out, thresholds(cpu, |now| now.tm2_node_insns))
    }),
    Attribute::read_only(c_str!("peak_vm_bytes"), |cpu, out| {
        line(out, largest(cpu, |info| info.peak_vm_bytes))
    }),
    Attribute::read_only(c_str!("peak_rss_bytes"), |cpu, out| {
        line(out, largest(cpu, |info| info.peak_rss_bytes))
    }),
    Attribute::read_only(c_str!("memory_bytes"), |cpu, out| {
        line(out, memory_bytes(cpu))
    }),
    Attribute::read_only(c_str!("memory_limit_bytes"), |cpu, out| {
        line(
            out,
            of_state(cpu, |state| {
                Some(state.node.as_ref()?.plan().memory_bytes())
            }),
        )
    }),
    Attribute::read_only(c_str!("processes_beyond_memory"), |cpu, out| {
        line(out, count(cpu, ProcessInfo::is_beyond_memory))
    }),
    Attribute::read_only(c_str!("longest_stop_ns"), |cpu, out| {
        line(out, of_state(cpu, |state| Some(state.longest.stop_ns())))
    }),
    Attribute::read_only(c_str!("out_of_turn_ns"), |cpu, out| {
        line(out, of_state(cpu, |state| Some(state.turn.total_ns())))
    }),
    Attribute::read_only(c_str!("budgets_spent"), |cpu, out| {
        line(out, of_state(cpu, |state| Some(state.turn.budgets_spent())))
    }),
    Attribute::read_only(c_str!("longest_swap_ns"), |cpu, out| {
        line(out, of_state(cpu, |state| Some(state.longest.swap_ns())))
    }),
    Attribute::read_only(c_str!("reschedule_time_ns"), |cpu, out| {
        let measured_ns = |state: &State| state.node.as_ref()?.measured_reschedule_time_ns();
        line(out, of_state(cpu, measured_ns))
    }),
    Attribute::read_only(c_str!("plan_interval_ns"), |cpu, out| {
        let interval_ns = |state: &State| state.node.as_ref()?.plan_interval_ns();
        line(out, of_state(cpu, interval_ns))
    }),
    Attribute::read_only(c_str!("tier"), |cpu, out| {
        line(out, cpu.counter.tier().name())
    }),
    Attribute::read_only(c_str!("counters"), |cpu, out| {
        let has_one = |state: &State| state.insn_clock.counter().map(|_| 1);
        line(out, of_state(cpu, has_one))
    }),
    Attribute::read_write(
        c_str!("rate_insns_per_ms"),
        |cpu, out| line(out, cpu.counter.rate().insns_per_ms()),
        |cpu, text| {
            let insns_per_ms = text.parse().map_err(|_| {
                // The file can't report the reason.
                pr_warn!(
                    "CPU {}: a rate is 1 to {} instructions per ms, or 0 for the measured one\n",
                    cpu.number(),
                    u32::MAX
                );
                EINVAL
            })?;
            calibrate::declare_rate(cpu, insns_per_ms)
        },
    ),
    Attribute::read_only(c_str!("rate_spread_permille"), |cpu, out| {
        line(out, cpu.counter.rate_spread_permille())
    }),
    Attribute::read_only(c_str!("overflows"), |cpu, out| {
        line(out, cpu.counter.overflows())
    }),
    Attribute::read_only(c_str!("timer_interrupts"), |cpu, out| {
        line(out, cpu.alarm.interrupts())
    }),
    Attribute::read_only(c_str!("dropped"), |cpu, out| {
        line(out, cpu.drop_request.last().map_or("no", DropReason::name))
    }),
    #[cfg(CONFIG_SCHED_CLASS_PBS_FAULTS)]
    Attribute::read_write(
        c_str!("fault"),
        |_, out| line(out, crate::protect::fault::NAMES),
        crate::protect::fault::inject,
    ),
];

const CPU_FILES: usize = 33 + cfg!(CONFIG_SCHED_CLASS_PBS_FAULTS) as usize;

/// Shows one value of the default configuration, by its place in [`Config::NAMES`].
fn show_config<const PLACE: usize>(_: &(), out: &mut Buffer<'_>) -> Result {
    let config = control::get()?.lock_killable()?.config;
    line(out, config.values().get(PLACE).copied().unwrap_or(0))
}

/// Sets one value of the default configuration; later plans begin with it.
fn store_config<const PLACE: usize>(_: &(), text: &str) -> Result {
    let number = text.parse().map_err(|_| EINVAL)?;
    let mut control = control::get()?.lock_killable()?;
    let mut values = control.config.values();
    *values.get_mut(PLACE).ok_or(EINVAL)? = number;
    let config = Config::from_values(values);
    config.check().map_err(|refusal| {
        // The file can't report the reason.
        pr_warn!("config: {refusal}\n");
        EINVAL
    })?;
    control.config = config;
    Ok(())
}

macro_rules! config_attributes {
    ($($place:literal $name:literal),* $(,)?) => {
        static CONFIG: [Attribute<()>; Config::COUNT] = [
            $(Attribute::read_write(c_str!($name), show_config::<$place>, store_config::<$place>)),*
        ];
        // The names are those of the fields, in their order.
        const _: () = {
            $(assert!(same($name.as_bytes(), Config::NAMES[$place].as_bytes()));)*
        };
    };
}

config_attributes! {
    0 "sigma_t1_permille",
    1 "preemption_limit_ns",
    2 "no_preemption_ns",
    3 "ceiling_factor_permille",
    4 "ceiling_extra_ns",
    5 "window_period_ns",
    6 "window_unallocated_ns",
    7 "sigma_t2_permille",
    8 "t2_spacer_ns",
    9 "t2_task_signaling_limit_ns",
    10 "max_preemptions",
    11 "capacity_buffer_permille",
    12 "available_plan_buffer_permille",
    13 "reschedule_time_ns",
    14 "t2_min_process_ns",
    15 "t2_node_lateness_cap_permille",
    16 "tm2_node_earliness_cap_permille",
    17 "stress_reset",
    18 "stress_gain_ns",
    19 "nominal_tick_ns",
    20 "thresholds",
    21 "idle_policy",
    22 "idle_is_lateness",
    23 "t1_spares_last_slot",
    24 "kernel_budget_permille",
    25 "tm2_node_lower_bound_ns",
    26 "sigma_memory_permille",
    27 "memory_spacer_bytes",
    28 "memory_signaling_limit_bytes",
    29 "preemption_way",
    30 "idle_piece_ns",
    31 "dispatch",
    32 "stress_cause",
    33 "reschedule_time_measured",
    34 "info_is_dealt",
    35 "least_progress_permille",
    36 "sigma_tm2_permille",
    37 "tm2_spacer_ns",
    38 "tm2_task_signaling_limit_ns",
    39 "t1_state",
    40 "suspends_failed",
    41 "t2_message_ns",
    42 "tm2_message_ns",
    43 "timeliness_ns",
    44 "volatile_interval_ns",
}

const fn same(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let mut at = 0;
    while at < left.len() {
        if left[at] != right[at] {
            return false;
        }
        at += 1;
    }
    true
}

fn show_count<const KIND: usize>(cpu: &&'static Cpu, out: &mut Buffer<'_>) -> Result {
    line(out, cpu.counts.get(KIND))
}

fn show_total_count<const KIND: usize>(_: &(), out: &mut Buffer<'_>) -> Result {
    line(out, sum(|cpu| cpu.counts.get(KIND) as i64))
}

macro_rules! count_attributes {
    ($len:literal: $($kind:ident $name:literal),* $(,)?) => {
        static CPU_COUNTS: [Attribute<&'static Cpu>; $len] = [
            $(Attribute::read_only(c_str!($name), show_count::<{ EventKind::$kind as usize }>)),*
        ];
        static TOTAL_COUNTS: [Attribute<()>; $len] = [
            $(Attribute::read_only(
                c_str!($name),
                show_total_count::<{ EventKind::$kind as usize }>
            )),*
        ];
        // One file for every kind that happens on a CPU; overruns belong to readers.
        const _: () = assert!($len == EventKind::ALL.len() - 1);
        const _: () = {
            $(assert!(same($name.as_bytes(), EventKind::$kind.name().as_bytes()));)*
        };
    };
}

count_attributes! { 19:
    PlanInstalled "plan_installed",
    PlanEnded "plan_ended",
    PlanDropped "plan_dropped",
    Attached "attached",
    Grant "grant",
    TaskEnded "task_ended",
    Preempted "preempted",
    Ceiling "ceiling",
    Late "late",
    Early "early",
    Info "info",
    Absent "absent",
    ProcessEnded "process_ended",
    Ejected "ejected",
    CpuGone "cpu_gone",
    StopLong "stop_long",
    Tier "tier",
    Waits "waits",
    Configured "configured",
}
