/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints of plan-based scheduling: see Documentation/tracing.rst.
 *
 * Those that belong to an event of /dev/pbs_plan get the event as it is read
 * there, seq included; their fields have its names and units.  In the texts -1
 * stands for PBS_IDLE, PBS_NO_TASK and PBS_NO_SLOT.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM pbs

#if !defined(_TRACE_PBS_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_PBS_H

#include <linux/tracepoint.h>
#include <uapi/linux/pbs.h>

/*
 * On while any tracepoint of an event is: all that a kernel without anybody who
 * listens has to ask when an event happens.
 */
DECLARE_STATIC_KEY_FALSE(trace_pbs_event_key);
int trace_pbs_event_reg(void);
void trace_pbs_event_unreg(void);

TRACE_DEFINE_ENUM(PBS_EV_PLAN_INSTALLED);
TRACE_DEFINE_ENUM(PBS_EV_PLAN_DROPPED);
TRACE_DEFINE_ENUM(PBS_EV_LATE);
TRACE_DEFINE_ENUM(PBS_EV_EARLY);
TRACE_DEFINE_ENUM(PBS_EV_INFO);
TRACE_DEFINE_ENUM(PBS_EV_CPU_GONE);
TRACE_DEFINE_ENUM(PBS_GRANT_SLOT);
TRACE_DEFINE_ENUM(PBS_GRANT_IDLE_SLOT);
TRACE_DEFINE_ENUM(PBS_GRANT_BLOCKED_SLOT);
TRACE_DEFINE_ENUM(PBS_GRANT_AFTER_PLAN);
TRACE_DEFINE_ENUM(PBS_GRANT_NONE);
TRACE_DEFINE_ENUM(PBS_CAUSE_TASK);
TRACE_DEFINE_ENUM(PBS_CAUSE_PROCESS);
TRACE_DEFINE_ENUM(PBS_CAUSE_NODE);
TRACE_DEFINE_ENUM(PBS_CAUSE_PREEMPTIONS);
TRACE_DEFINE_ENUM(PBS_CAUSE_MEMORY);
TRACE_DEFINE_ENUM(PBS_CAUSE_NODE_MEMORY);
TRACE_DEFINE_ENUM(PBS_CAUSE_MESSAGE);
TRACE_DEFINE_ENUM(PBS_CAUSE_START);
TRACE_DEFINE_ENUM(PBS_CAUSE_END);
TRACE_DEFINE_ENUM(PBS_TIER_PMU_OVERFLOW);
TRACE_DEFINE_ENUM(PBS_TIER_PMU);
TRACE_DEFINE_ENUM(PBS_TIER_CLOCK);
TRACE_DEFINE_ENUM(PBS_TIER_STOPPED);
TRACE_DEFINE_ENUM(PBS_TIER_TAKEN);
TRACE_DEFINE_ENUM(PBS_TIER_MULTIPLEXED);
TRACE_DEFINE_ENUM(PBS_TIER_SILENT);
TRACE_DEFINE_ENUM(PBS_TIER_RETURNED);

/* A slot of the plan begins. */
TRACE_EVENT(pbs_slot_begin,

	TP_PROTO(u32 cpu, u64 plan_id, u32 slot, u32 process, u32 task,
		 u64 length_insns, u64 t1_insns, u64 limit_ns),

	TP_ARGS(cpu, plan_id, slot, process, task, length_insns, t1_insns, limit_ns),

	TP_STRUCT__entry(
		__field(u64,	plan_id)
		__field(u64,	length_insns)
		__field(u64,	t1_insns)
		__field(u64,	limit_ns)
		__field(u32,	cpu)
		__field(u32,	slot)
		__field(u32,	process)
		__field(u32,	task)
	),

	TP_fast_assign(
		__entry->plan_id = plan_id;
		__entry->length_insns = length_insns;
		__entry->t1_insns = t1_insns;
		__entry->limit_ns = limit_ns;
		__entry->cpu = cpu;
		__entry->slot = slot;
		__entry->process = process;
		__entry->task = task;
	),

	TP_printk("cpu=%u plan_id=%llu slot=%u process=%d task=%d length_insns=%llu t1_insns=%llu limit_ns=%llu",
		  __entry->cpu, __entry->plan_id, __entry->slot,
		  __entry->process, __entry->task, __entry->length_insns,
		  __entry->t1_insns, __entry->limit_ns)
);

/* It ends, by whatever: its task is done, t1, its ceiling, another plan. */
TRACE_EVENT(pbs_slot_end,

	TP_PROTO(u32 cpu, u64 plan_id, u32 slot, u32 process, u32 task,
		 u64 length_insns, u64 count_insns),

	TP_ARGS(cpu, plan_id, slot, process, task, length_insns, count_insns),

	TP_STRUCT__entry(
		__field(u64,	plan_id)
		__field(u64,	length_insns)
		__field(u64,	count_insns)
		__field(u32,	cpu)
		__field(u32,	slot)
		__field(u32,	process)
		__field(u32,	task)
	),

	TP_fast_assign(
		__entry->plan_id = plan_id;
		__entry->length_insns = length_insns;
		__entry->count_insns = count_insns;
		__entry->cpu = cpu;
		__entry->slot = slot;
		__entry->process = process;
		__entry->task = task;
	),

	TP_printk("cpu=%u plan_id=%llu slot=%u process=%d task=%d length_insns=%llu count_insns=%llu",
		  __entry->cpu, __entry->plan_id, __entry->slot,
		  __entry->process, __entry->task, __entry->length_insns,
		  __entry->count_insns)
);

/* Another process, or nobody, may run from now on. */
TRACE_EVENT_FN(pbs_grant,

	TP_PROTO(const struct pbs_event *event),

	TP_ARGS(event),

	TP_STRUCT__entry(
		__field(u64,	seq)
		__field(u64,	plan_id)
		__field(u64,	slot)
		__field(u64,	retired_insns)
		__field(u32,	cpu)
		__field(u32,	process)
		__field(u32,	task)
		__field(u16,	reason)
	),

	TP_fast_assign(
		__entry->seq = event->seq;
		__entry->plan_id = event->plan_id;
		__entry->slot = event->slot;
		__entry->retired_insns = event->retired_insns;
		__entry->cpu = event->cpu;
		__entry->process = event->process;
		__entry->task = event->task;
		__entry->reason = event->reason;
	),

	TP_printk("cpu=%u seq=%llu plan_id=%llu slot=%lld process=%d task=%d reason=%s retired_insns=%llu",
		  __entry->cpu, __entry->seq, __entry->plan_id, __entry->slot,
		  __entry->process, __entry->task,
		  __print_symbolic(__entry->reason,
				   { PBS_GRANT_SLOT, "slot" },
				   { PBS_GRANT_IDLE_SLOT, "idle_slot" },
				   { PBS_GRANT_BLOCKED_SLOT, "blocked_slot" },
				   { PBS_GRANT_AFTER_PLAN, "after_plan" },
				   { PBS_GRANT_NONE, "none" }),
		  __entry->retired_insns),

	trace_pbs_event_reg, trace_pbs_event_unreg
);

TRACE_EVENT_FN(pbs_task_end,

	TP_PROTO(const struct pbs_event *event),

	TP_ARGS(event),

	TP_STRUCT__entry(
		__field(u64,	seq)
		__field(u64,	plan_id)
		__field(u64,	slot)
		__field(u64,	planned_insns)
		__field(u64,	retired_insns)
		__field(s64,	lateness_insns)
		__field(s64,	node_lateness_insns)
		__field(u64,	peak_vm_bytes)
		__field(u64,	peak_rss_bytes)
		__field(u32,	cpu)
		__field(u32,	process)
		__field(u32,	task)
		__field(u32,	preemptions)
		__field(s32,	tid)
	),

	TP_fast_assign(
		__entry->seq = event->seq;
		__entry->plan_id = event->plan_id;
		__entry->slot = event->slot;
		__entry->planned_insns = event->planned_insns;
		__entry->retired_insns = event->retired_insns;
		__entry->lateness_insns = event->lateness_insns;
		__entry->node_lateness_insns = event->node_lateness_insns;
		__entry->peak_vm_bytes = event->peak_vm_bytes;
		__entry->peak_rss_bytes = event->peak_rss_bytes;
		__entry->cpu = event->cpu;
		__entry->process = event->process;
		__entry->task = event->task;
		__entry->preemptions = event->preemptions;
		__entry->tid = event->pid;
	),

	TP_printk("cpu=%u seq=%llu plan_id=%llu slot=%lld process=%d task=%d tid=%d planned_insns=%llu retired_insns=%llu lateness_insns=%lld node_lateness_insns=%lld preemptions=%u peak_vm_bytes=%llu peak_rss_bytes=%llu",
		  __entry->cpu, __entry->seq, __entry->plan_id, __entry->slot,
		  __entry->process, __entry->task, __entry->tid,
		  __entry->planned_insns, __entry->retired_insns,
		  __entry->lateness_insns, __entry->node_lateness_insns,
		  __entry->preemptions, __entry->peak_vm_bytes,
		  __entry->peak_rss_bytes),

	trace_pbs_event_reg, trace_pbs_event_unreg
);

/* A slot reached t1. */
TRACE_EVENT_FN(pbs_preempt,

	TP_PROTO(const struct pbs_event *event),

	TP_ARGS(event),

	TP_STRUCT__entry(
		__field(u64,	seq)
		__field(u64,	plan_id)
		__field(u64,	slot)
		__field(u64,	t1_insns)
		__field(u64,	planned_insns)
		__field(u64,	retired_insns)
		__field(s64,	lateness_insns)
		__field(u32,	cpu)
		__field(u32,	process)
		__field(u32,	task)
		__field(u32,	preemptions)
	),

	TP_fast_assign(
		__entry->seq = event->seq;
		__entry->plan_id = event->plan_id;
		__entry->slot = event->slot;
		__entry->t1_insns = event->value;
		__entry->planned_insns = event->planned_insns;
		__entry->retired_insns = event->retired_insns;
		__entry->lateness_insns = event->lateness_insns;
		__entry->cpu = event->cpu;
		__entry->process = event->process;
		__entry->task = event->task;
		__entry->preemptions = event->preemptions;
	),

	TP_printk("cpu=%u seq=%llu plan_id=%llu slot=%lld process=%d task=%d t1_insns=%llu planned_insns=%llu retired_insns=%llu lateness_insns=%lld preemptions=%u",
		  __entry->cpu, __entry->seq, __entry->plan_id, __entry->slot,
		  __entry->process, __entry->task, __entry->t1_insns,
		  __entry->planned_insns, __entry->retired_insns,
		  __entry->lateness_insns, __entry->preemptions),

	trace_pbs_event_reg, trace_pbs_event_unreg
);

/* A slot reached its ceiling on the clock. */
TRACE_EVENT_FN(pbs_ceiling,

	TP_PROTO(const struct pbs_event *event),

	TP_ARGS(event),

	TP_STRUCT__entry(
		__field(u64,	seq)
		__field(u64,	plan_id)
		__field(u64,	slot)
		__field(u64,	ceiling_ns)
		__field(u64,	planned_insns)
		__field(u64,	retired_insns)
		__field(u32,	cpu)
		__field(u32,	process)
		__field(u32,	task)
	),

	TP_fast_assign(
		__entry->seq = event->seq;
		__entry->plan_id = event->plan_id;
		__entry->slot = event->slot;
		__entry->ceiling_ns = event->value;
		__entry->planned_insns = event->planned_insns;
		__entry->retired_insns = event->retired_insns;
		__entry->cpu = event->cpu;
		__entry->process = event->process;
		__entry->task = event->task;
	),

	TP_printk("cpu=%u seq=%llu plan_id=%llu slot=%lld process=%d task=%d ceiling_ns=%llu planned_insns=%llu retired_insns=%llu",
		  __entry->cpu, __entry->seq, __entry->plan_id, __entry->slot,
		  __entry->process, __entry->task, __entry->ceiling_ns,
		  __entry->planned_insns, __entry->retired_insns),

	trace_pbs_event_reg, trace_pbs_event_unreg
);

/*
 * A prediction failure, or information on the way to one.  The threshold is in
 * instructions, a number of preemptions, or bytes, by the cause.
 */
TRACE_EVENT_FN(pbs_signal,

	TP_PROTO(const struct pbs_event *event),

	TP_ARGS(event),

	TP_STRUCT__entry(
		__field(u64,	seq)
		__field(u64,	plan_id)
		__field(u64,	slot)
		__field(s64,	threshold)
		__field(u64,	planned_insns)
		__field(u64,	retired_insns)
		__field(s64,	lateness_insns)
		__field(s64,	node_lateness_insns)
		__field(u64,	memory_bytes)
		__field(u32,	cpu)
		__field(u32,	process)
		__field(u32,	task)
		__field(u32,	preemptions)
		__field(u32,	stress)
		__field(u32,	level_percent)
		__field(u16,	kind)
		__field(u16,	cause)
	),

	TP_fast_assign(
		__entry->seq = event->seq;
		__entry->plan_id = event->plan_id;
		__entry->slot = event->slot;
		__entry->threshold = event->value;
		__entry->planned_insns = event->planned_insns;
		__entry->retired_insns = event->retired_insns;
		__entry->lateness_insns = event->lateness_insns;
		__entry->node_lateness_insns = event->node_lateness_insns;
		__entry->memory_bytes = event->memory_bytes;
		__entry->cpu = event->cpu;
		__entry->process = event->process;
		__entry->task = event->task;
		__entry->preemptions = event->preemptions;
		__entry->stress = event->stress;
		__entry->level_percent = event->level_percent;
		__entry->kind = event->kind;
		__entry->cause = event->reason;
	),

	TP_printk("cpu=%u seq=%llu plan_id=%llu slot=%lld process=%d task=%d kind=%s cause=%s level_percent=%u threshold=%lld planned_insns=%llu retired_insns=%llu lateness_insns=%lld node_lateness_insns=%lld memory_bytes=%llu preemptions=%u stress=%u",
		  __entry->cpu, __entry->seq, __entry->plan_id, __entry->slot,
		  __entry->process, __entry->task,
		  __print_symbolic(__entry->kind,
				   { PBS_EV_LATE, "late" },
				   { PBS_EV_EARLY, "early" },
				   { PBS_EV_INFO, "info" }),
		  __print_symbolic(__entry->cause,
				   { PBS_CAUSE_TASK, "task" },
				   { PBS_CAUSE_PROCESS, "process" },
				   { PBS_CAUSE_NODE, "node" },
				   { PBS_CAUSE_PREEMPTIONS, "preemptions" },
				   { PBS_CAUSE_MEMORY, "memory" },
				   { PBS_CAUSE_NODE_MEMORY, "node_memory" },
				   { PBS_CAUSE_MESSAGE, "message" },
				   { PBS_CAUSE_START, "start" },
				   { PBS_CAUSE_END, "end" }),
		  __entry->level_percent, __entry->threshold,
		  __entry->planned_insns, __entry->retired_insns,
		  __entry->lateness_insns, __entry->node_lateness_insns,
		  __entry->memory_bytes, __entry->preemptions, __entry->stress),

	trace_pbs_event_reg, trace_pbs_event_unreg
);

/* A CPU got a plan in place of the one it had, if any, or lost it. */
TRACE_EVENT_FN(pbs_plan_swap,

	TP_PROTO(const struct pbs_event *event),

	TP_ARGS(event),

	TP_STRUCT__entry(
		__field(u64,	seq)
		__field(u64,	plan_id)
		__field(u64,	slots)
		__field(u32,	cpu)
		__field(u16,	kind)
	),

	TP_fast_assign(
		__entry->seq = event->seq;
		__entry->plan_id = event->plan_id;
		__entry->slots = event->value;
		__entry->cpu = event->cpu;
		__entry->kind = event->kind;
	),

	TP_printk("cpu=%u seq=%llu plan_id=%llu kind=%s slots=%llu",
		  __entry->cpu, __entry->seq, __entry->plan_id,
		  __print_symbolic(__entry->kind,
				   { PBS_EV_PLAN_INSTALLED, "plan_installed" },
				   { PBS_EV_PLAN_DROPPED, "plan_dropped" },
				   { PBS_EV_CPU_GONE, "cpu_gone" }),
		  __entry->slots),

	trace_pbs_event_reg, trace_pbs_event_unreg
);

/* The last slot is over, and no process that is there has tasks left. */
TRACE_EVENT_FN(pbs_plan_end,

	TP_PROTO(const struct pbs_event *event),

	TP_ARGS(event),

	TP_STRUCT__entry(
		__field(u64,	seq)
		__field(u64,	plan_id)
		__field(u64,	unfinished)
		__field(u32,	cpu)
	),

	TP_fast_assign(
		__entry->seq = event->seq;
		__entry->plan_id = event->plan_id;
		__entry->unfinished = event->value;
		__entry->cpu = event->cpu;
	),

	TP_printk("cpu=%u seq=%llu plan_id=%llu unfinished=%llu",
		  __entry->cpu, __entry->seq, __entry->plan_id,
		  __entry->unfinished),

	trace_pbs_event_reg, trace_pbs_event_unreg
);

/* A thread became one of a process. */
TRACE_EVENT_FN(pbs_attach,

	TP_PROTO(const struct pbs_event *event),

	TP_ARGS(event),

	TP_STRUCT__entry(
		__field(u64,	seq)
		__field(u64,	plan_id)
		__field(u32,	cpu)
		__field(u32,	process)
		__field(s32,	tid)
	),

	TP_fast_assign(
		__entry->seq = event->seq;
		__entry->plan_id = event->plan_id;
		__entry->cpu = event->cpu;
		__entry->process = event->process;
		__entry->tid = event->pid;
	),

	TP_printk("cpu=%u seq=%llu plan_id=%llu process=%d tid=%d",
		  __entry->cpu, __entry->seq, __entry->plan_id,
		  __entry->process, __entry->tid),

	trace_pbs_event_reg, trace_pbs_event_unreg
);

/* The slot of a process came, and its task waits for another one's. */
TRACE_EVENT_FN(pbs_wait,

	TP_PROTO(const struct pbs_event *event),

	TP_ARGS(event),

	TP_STRUCT__entry(
		__field(u64,	seq)
		__field(u64,	plan_id)
		__field(u64,	slot)
		__field(u32,	cpu)
		__field(u32,	process)
		__field(u32,	task)
		__field(u32,	after_process)
		__field(u32,	after_task)
		__field(u16,	reason)
	),

	TP_fast_assign(
		__entry->seq = event->seq;
		__entry->plan_id = event->plan_id;
		__entry->slot = event->slot;
		__entry->cpu = event->cpu;
		__entry->process = event->process;
		__entry->task = event->task;
		__entry->after_process = upper_32_bits(event->value);
		__entry->after_task = lower_32_bits(event->value);
		__entry->reason = event->reason;
	),

	TP_printk("cpu=%u seq=%llu plan_id=%llu slot=%lld process=%u task=%u after_process=%u after_task=%u reason=%s",
		  __entry->cpu, __entry->seq, __entry->plan_id,
		  __entry->slot, __entry->process, __entry->task,
		  __entry->after_process, __entry->after_task,
		  __print_symbolic(__entry->reason,
				   { PBS_WAIT_TASK, "task" },
				   { PBS_WAIT_GONE, "gone" })),

	trace_pbs_event_reg, trace_pbs_event_unreg
);

/* The CPU counts instructions in another way from now on. */
TRACE_EVENT_FN(pbs_tier,

	TP_PROTO(const struct pbs_event *event),

	TP_ARGS(event),

	TP_STRUCT__entry(
		__field(u64,	seq)
		__field(u32,	cpu)
		__field(u32,	tier)
		__field(u16,	cause)
	),

	TP_fast_assign(
		__entry->seq = event->seq;
		__entry->cpu = event->cpu;
		__entry->tier = event->value;
		__entry->cause = event->reason;
	),

	TP_printk("cpu=%u seq=%llu tier=%s cause=%s",
		  __entry->cpu, __entry->seq,
		  __print_symbolic(__entry->tier,
				   { PBS_TIER_PMU_OVERFLOW, "pmu_overflow" },
				   { PBS_TIER_PMU, "pmu" },
				   { PBS_TIER_CLOCK, "clock" }),
		  __print_symbolic(__entry->cause,
				   { PBS_TIER_STOPPED, "stopped" },
				   { PBS_TIER_TAKEN, "taken" },
				   { PBS_TIER_MULTIPLEXED, "multiplexed" },
				   { PBS_TIER_SILENT, "silent" },
				   { PBS_TIER_RETURNED, "returned" })),

	trace_pbs_event_reg, trace_pbs_event_unreg
);

#endif /* _TRACE_PBS_H */

/* This part must be outside protection */
#include <trace/define_trace.h>
