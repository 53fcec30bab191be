/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Plan-based scheduling (SCHED_PBS): the wire format of /dev/pbs_plan.
 *
 * This header is the one definition of the format, version 3.  It needs
 * nothing but the kernel's own UAPI headers and compiles as C11 and C++17.
 *
 *   write(2)  one complete plan in one call, in one piece or (writev(2)) in
 *             several: checked whole, then installed whole or refused with
 *             nothing changed (PBS_IOC_ERROR tells why).
 *   read(2)   whole struct pbs_event records, as many as there are and fit.
 *             Every open file has a position of its own, which begins at the
 *             events that come after open(2); PBS_IOC_SEEK moves it.  Without
 *             an event it waits, or with O_NONBLOCK fails with EAGAIN.
 *             poll(2) tells when there is something to read.
 *   mmap(2)   the same records without a call: the ring of each CPU, read-only
 *             (struct pbs_ring).
 *   ioctl(2)  the PBS_IOC_* calls below.
 *
 * All integers are in the machine's byte order, all records are naturally
 * aligned and have no padding, and every reserved field must be zero.
 *
 * The node belongs to root, mode 0600.  CAP_SYS_NICE in the initial user
 * namespace is asked for at each call that changes plans or attaches threads
 * (write, ATTACH, DROP, RENEW, GET_PLAN, CONFIGURE, and DETACH of another thread), not at
 * open(2).
 *
 * What fails with which errno: a wrong record, field or plan, or one that is not
 * whole EINVAL; a record that can't be read or written EFAULT; an unknown call
 * ENOTTY; no capability EPERM; no memory ENOMEM; a caller that is killed EINTR,
 * as is read(2) by any signal whose handler does not restart it.  Further:
 *
 *   write     E2BIG: more than 256 MiB, or than the limits below; ENODEV: a CPU
 *             is not online; EEXIST: the plan of another CPU, which stays, has a
 *             process of it; ESRCH: a process has ended all tasks that it gives
 *             it, or has begun one that waits by it for one that has not ended;
 *             EBUSY: four plans are being written already
 *   read      EAGAIN: no event (O_NONBLOCK); EINVAL: no room for one
 *   mmap      EPERM: writable; EINVAL: not one whole ring, shared; EACCES: the
 *             file is not open for reading; ENODEV: no such CPU; ENOENT: it has
 *             had no plan yet
 *   ATTACH    ESRCH: no such thread, or it exits; ENOENT: no plan has the
 *             process, or it is done; EBUSY: the thread is attached, or the
 *             process has a thread; EINVAL: also a thread of the kernel, or one
 *             whose cpuset does not have the CPU; EAGAIN: somebody changed its
 *             affinity; ENOSPC: 4096 threads are attached on the CPU
 *   TASK_END  ESRCH: not attached; EBUSY: another thread has its turn; EINVAL:
 *             the task is another one
 *   DETACH    ESRCH: no such thread, or not attached
 *   DROP, RENEW, GET_PLAN  ENODEV: no such CPU; ENOENT: no plan; ENXIO (DROP): offline;
 *             ENOSPC (GET_PLAN): the buffer is too small, bytes says the size
 *   CONFIGURE ENODEV: no such CPU; ENOENT: no plan, or another one; ENXIO: offline;
 *             EAGAIN: the configuration has changed since GET_PLAN; EINVAL: also
 *             another dispatch than that of the plan, or timeliness_ns where the
 *             plan began with 0
 *   SEEK      EINVAL: the event has not happened
 *
 * Lengths and counts are retired user-space instructions (suffix _insns),
 * times are nanoseconds (_ns), memory is bytes (_bytes).  Factors are given
 * in thousandths (_permille): 1050 means 1.05.
 */
#ifndef _UAPI_LINUX_PBS_H
#define _UAPI_LINUX_PBS_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define PBS_VERSION		3	/* plans of versions 1 and 2 are taken, too */
#define PBS_PLAN_MAGIC		0x4e4c5042u	/* "BPLN" read as little endian */

#define PBS_IDLE		0xffffffffu	/* process of an idle slot */
#define PBS_NO_TASK		0xffffffffu
#define PBS_NO_SLOT		0xffffffffffffffffull
#define PBS_NO_DEADLINE		0xffffffffffffffffull
#define PBS_NO_ARRIVAL		0xffffffffffffffffull

/* Limits; PBS_IOC_INFO gives those of the running kernel. */
#define PBS_MAX_SLOTS		(1u << 22)	/* per CPU */
#define PBS_MAX_PROCESSES	1024u		/* per CPU */
#define PBS_MAX_EDGES		(1u << 22)	/* per CPU */
#define PBS_MAX_SLOT_INSNS	(1ull << 48)
#define PBS_MAX_BUFFER_INSNS	(1ull << 56)

/*
 * A plan is
 *
 *   struct pbs_plan_header
 *   struct pbs_config			if header.config_bytes is not 0
 *   header.nr_cpus times:
 *     struct pbs_plan_cpu
 *     struct pbs_plan_process		nr_processes times, ids ascending
 *     struct pbs_plan_slot		nr_slots times, in order of execution
 *     struct pbs_plan_edge		nr_edges times, ascending by all four numbers
 *     __u64 arrival_ns		nr_edges times, with PBS_PLAN_ARRIVALS
 *
 * with nothing between and nothing after.  CPU numbers ascend.  A CPU that
 * the plan does not name keeps the plan it has.  A process belongs to one CPU.
 *
 * In versions 1 and 2 struct pbs_plan_process ends before deadline_ns, and no
 * process has a deadline; a plan of them without a configuration runs with
 * PBS_DISPATCH_THESIS, whatever the node's default is.
 * In version 1 there are no edges, memory and rates (the fields are reserved and
 * must be zero), and a CPU has at least one process and one slot.
 */
struct pbs_plan_header {
	__u32 magic;			/* PBS_PLAN_MAGIC */
	__u16 version;			/* PBS_VERSION, 1 or 2 */
	__u16 header_bytes;		/* sizeof(struct pbs_plan_header) */
	__u64 total_bytes;		/* of the whole plan, this header included */
	__u64 plan_id;			/* the planner's name for it, repeated in events */
	__u32 nr_cpus;
	__u32 config_bytes;		/* 0, or sizeof(struct pbs_config); see there */
	__u64 flags;			/* 0, or PBS_PLAN_ARRIVALS */
	/*
	 * The prediction failures that the plan deals with: those of all events
	 * with a smaller seq.  See enum pbs_cause.  0: the plan is no answer; if
	 * the plan before has ended, its processes run again.
	 */
	__u64 dealt_seq;
	/*
	 * The lease: if so much time goes by without PBS_IOC_RENEW or another
	 * plan, a CPU drops the plan, unless no thread is attached to it.  0:
	 * never; otherwise 100 ms to 3600 s.
	 */
	__u64 lease_ns;
	__u64 memory_bytes;		/* that the plan may use on the node, 0: not said */
};

/* flags of struct pbs_plan_header */
/* after the edges of each CPU follow their planned arrivals; not in versions 1 and 2 */
#define PBS_PLAN_ARRIVALS	(1ull << 0)

/*
 * The numbers of the policy.  A plan without them runs with the node's
 * defaults (/sys/kernel/pbs/config/).  The names are those of Leppert 2021,
 * appendix A.1; the formulas are in what is named beside each.
 *
 * A configuration may be shorter than the struct, down to 256 bytes: the numbers
 * after its end then have their defaults.
 *
 * Times become instructions by the rate of each CPU, as the plan says it or
 * else as the CPU has it (/sys/kernel/pbs/cpuN/rate_insns_per_ms).
 *
 * In version 1 those marked [insns] are instructions, and their ranges the same
 * numbers.  They are taken for the times that the CPU needs for them; from those
 * come the same numbers again, or, where the CPU retires several instructions in
 * a nanosecond, numbers that are greater by less than these.
 * tm2_node_lower_bound_ns is reserved there, and is as t2_min_process_ns, though
 * not times the active processes as it was.
 */
struct pbs_config {
	/* t1, the preemption threshold (Leppert 2021, 3.2.2) */
	__u64 sigma_t1_permille;	/* 1001 to 100000 */
	__u64 preemption_limit_ns;	/* [insns] up to 2^48 */
	__u64 no_preemption_ns;		/* [insns] up to preemption_limit_ns */
	/* a slot's ceiling on the clock: length / rate * factor + extra */
	__u64 ceiling_factor_permille;	/* 1000 to 1000000 */
	__u64 ceiling_extra_ns;		/* 100 us to 3600 s */
	/* execution time and unallocated time (Leppert 2021, 2.4.3) */
	__u64 window_period_ns;		/* 1 ms to 10 s */
	__u64 window_unallocated_ns;	/* 1 % to 90 % of the period */
	/* t2_task, and mirrored tm2_task (3.3.6, 3.3.8) */
	__u64 sigma_t2_permille;	/* more than sigma_t1_permille, to 100000 */
	__u64 t2_spacer_ns;		/* [insns] more than no_preemption_ns, to 2^49 */
	__u64 t2_task_signaling_limit_ns;	/* [insns] more than preemption_limit_ns, to 2^49 */
	/* t2_preemptions (3.3.6) */
	__u64 max_preemptions;		/* 1 to 1000000; with PBS_PREEMPTION_CAPPED */
	/* t2_process (3.3.6) */
	__u64 capacity_buffer_permille;	/* 1000 to 100000 */
	__u64 available_plan_buffer_permille;	/* 0 to 1000 */
	__u64 reschedule_time_ns;	/* [insns] up to 2^48 */
	__u64 t2_min_process_ns;	/* [insns] up to 2^48 */
	/* t2_node: one plus the share; tm2_node: the share itself (3.3.6, 3.3.8) */
	__u64 t2_node_lateness_cap_permille;	/* 1000 to 100000 */
	__u64 tm2_node_earliness_cap_permille;	/* 0 to 1000 */
	/* stress: points, set by every plan, less by one each nominal tick (3.3.6) */
	__u64 stress_reset;		/* up to 1000000 */
	__u64 stress_gain_ns;		/* [insns] of each point, up to 2^40; 0: no stress */
	__u64 nominal_tick_ns;		/* 100 us to 1 s; HZ of the kernel does not matter */
	/* what is switched on: PBS_T1 | ... */
	__u64 thresholds;
	/* who gets idle slots (3.2.3): enum pbs_idle_policy */
	__u64 idle_policy;
	/* 1: time for which the plan waits for its processes lessens earliness of the node */
	__u64 idle_is_lateness;
	/*
	 * 1: t1 does not end the last slot of a process, after which it has none to go on in,
	 * and the ceiling of that slot is for all its tasks that have not ended
	 */
	__u64 t1_spares_last_slot;
	/* what threads out of turn may take of a window, in the kernel */
	__u64 kernel_budget_permille;	/* 1 to 1000 */
	/* tm2_node: by this a node may always be early (3.3.8) */
	__u64 tm2_node_lower_bound_ns;	/* up to 2^48 */
	/* t2_memory, of the planned peak: max(it * sigma, it + spacer), up to it + limit */
	__u64 sigma_memory_permille;	/* up to 100000 */
	__u64 memory_spacer_bytes;	/* up to 2^48 */
	__u64 memory_signaling_limit_bytes;	/* memory_spacer_bytes to 2^56 */
	/* what becomes of a task that is preempted again (3.2.3): enum pbs_preemption_way */
	__u64 preemption_way;
	/* the pieces of idle slots, for PBS_IDLE_PIECES and PBS_IDLE_BY_STATE; 0: whole slots */
	__u64 idle_piece_ns;		/* 0, or 100 us to 2^48 */
	/* the order in which processes run: enum pbs_dispatch; reserved in version 1 */
	__u64 dispatch;
	/* the plans that set stress (6.2.3): enum pbs_stress_cause */
	__u64 stress_cause;
	/* 1: RESCHEDULE_TIME is the measured average, as soon as there is one (3.3.3) */
	__u64 reschedule_time_measured;
	/* 1: dealt_seq is also about PBS_EV_INFO: those levels are not told again (6.2.3) */
	__u64 info_is_dealt;
	/* t2_process: the least progress of a process (3.3.6) */
	__u64 least_progress_permille;	/* up to 1000 */
	/* tm2_task, where it does not mirror t2_task (3.3.8); 0 each: it does */
	__u64 sigma_tm2_permille;	/* up to 1000 */
	/* by this a task may always be early */
	__u64 tm2_spacer_ns;	/* up to 2^49; 0: t2_spacer_ns */
	/* greatest earliness of a task that is no failure */
	__u64 tm2_task_signaling_limit_ns;	/* up to 2^49; 0: t2_task_signaling_limit_ns */
	/* the state of the node that makes t1 smaller (3.1.2): enum pbs_t1_state */
	__u64 t1_state;
	/* 1: a process that is too late does not run until the next plan (3.3.9) */
	__u64 suspends_failed;
	/* t2_message: a message that is missed may be late by this (6.2.1) */
	__u64 t2_message_ns;	/* up to 2^48 */
	/* tm2_message: a message may be early by this */
	__u64 tm2_message_ns;	/* up to 2^48 */
	/* a task that starts or ends off its planned time by more is told (3.3.2) */
	__u64 timeliness_ns;	/* up to 2^48; 0: none is */
	/* with plans that come more often, a plan sets up to twice stress_reset (3.3.3) */
	__u64 volatile_interval_ns;	/* up to 2^48; 0: stress_reset at all times */
};

/* Bits of pbs_config.thresholds */
/* without: a slot lasts until its task ends, or its ceiling */
#define PBS_T1			(1ull << 0)
#define PBS_T2_TASK		(1ull << 1)
#define PBS_T2_PROCESS		(1ull << 2)
#define PBS_T2_NODE		(1ull << 3)
#define PBS_T2_PREEMPTIONS	(1ull << 4)
#define PBS_TM2_TASK		(1ull << 5)
#define PBS_TM2_NODE		(1ull << 6)
/* PBS_EV_INFO on the way to t2_process, t2_node, t2_memory, t2_message */
#define PBS_INFO		(1ull << 7)
#define PBS_T2_MEMORY		(1ull << 8)	/* PBS_CAUSE_MEMORY and PBS_CAUSE_NODE_MEMORY */
#define PBS_T2_MESSAGE		(1ull << 9)
#define PBS_TM2_MESSAGE		(1ull << 10)

/*
 * Who gets an idle slot, and how much of it; who gets the slot of a process that
 * can't run, and goes on after the plan, a turn to the end of the window each.
 * Candidates are behind and can run.
 */
enum pbs_idle_policy {
	PBS_IDLE_LATEST		= 0,	/* the process with the greatest lateness */
	PBS_IDLE_LEAST_SLACK	= 1,	/* the process with the least of its plan buffer left */
	PBS_IDLE_PIECES		= 2,	/* pieces of idle_piece_ns, who came first goes first */
	PBS_IDLE_EQUAL_SHARES	= 3,	/* equal parts for all candidates */
	PBS_IDLE_BY_STATE	= 4,	/* pieces, to a quarter of it as the node nears t2_node */
	/* a slot for each process of the plan in turn, for nobody else */
	PBS_IDLE_ROUND_ROBIN	= 5,
	/* the process whose end in the plan and plan buffer end first */
	PBS_IDLE_CLOSEST_DEADLINE = 6,
	PBS_IDLE_NOBODY		= 7,	/* no process: idle slots stay idle */
	PBS_IDLE_PREEMPTED	= 8,	/* the latest process whose task was preempted */
	/* no tolerance: t1 is one instruction beyond a slot, t2_task two beyond a task */
	PBS_IDLE_STRICT		= 9,
};

/* What becomes of a task that reaches t1 in a slot that is not its own. */
enum pbs_preemption_way {
	PBS_PREEMPTION_CAPPED	= 0,	/* it is pushed on; max_preemptions are a failure */
	PBS_PREEMPTION_ONCE	= 1,	/* it is not preempted again until it is beyond t2_task */
	PBS_PREEMPTION_NEXT_SLOT = 2,	/* it is pushed on; the second preemption is a failure */
	PBS_PREEMPTION_EVERY_SLOT = 3,	/* it is pushed on; no number of preemptions is a failure */
};

/* The order in which the processes of a plan run. */
enum pbs_dispatch {
	PBS_DISPATCH_THESIS	= 0,	/* slots stay where the plan has them */
	/* slots float: the earliest deadline of those that can run */
	PBS_DISPATCH_DEADLINE	= 1,
};

/* The plans that set stress to stress_reset (6.2.3); under the others it goes on falling. */
enum pbs_stress_cause {
	PBS_STRESS_EVERY	= 0,
	PBS_STRESS_NEW_LENGTHS	= 1,	/* with another process, or other lengths of what is left */
	/* with other lengths of a process whose failure it deals with */
	PBS_STRESS_FAILED_LENGTHS = 2,
};

/* The state of the node that makes t1 smaller, down to what no_preemption_ns leaves (3.1.2). */
enum pbs_t1_state {
	PBS_T1_STATE_IGNORED	= 0,
	/* by up to three quarters of what it is beyond the slot, at t2_node */
	PBS_T1_STATE_LATENESS	= 1,
	PBS_T1_STATE_LOAD	= 2,	/* what it is beyond the slot, by the active processes */
};

struct pbs_plan_cpu {
	__u32 cpu;
	__u32 nr_processes;		/* 1 to PBS_MAX_PROCESSES */
	/* 1 to PBS_MAX_SLOTS; 0 with no process: nothing is planned */
	__u64 nr_slots;
	__u64 nr_edges;			/* up to PBS_MAX_EDGES */
	__u64 rate_insns_per_ms;	/* of the CPU, below 2^32, 0: its own */
};

struct pbs_plan_process {
	__u32 id;			/* any but PBS_IDLE */
	__u32 flags;			/* must be 0 */
	__u64 buffer_insns;		/* its plan buffer (Leppert 2021, 3.3.3) */
	__u64 memory_bytes;		/* that it is planned to use at most, 0: not planned */
	__u64 rate_insns_per_ms;	/* of the process, below 2^32, 0: that of the CPU */
	/*
	 * Its deadline, from the moment at which the plan comes into force; it is past
	 * where it is 0.  PBS_NO_DEADLINE: none, it comes after all who have one.
	 * Without PBS_DISPATCH_DEADLINE nothing depends on it.
	 */
	__u64 deadline_ns;
};

/*
 * A place in the plan.  A slot of a process is planned for one task of it;
 * the task numbers of a process ascend.  An idle slot has process PBS_IDLE
 * and task PBS_NO_TASK.
 */
struct pbs_plan_slot {
	__u64 length_insns;		/* 1 to PBS_MAX_SLOT_INSNS */
	__u32 process;
	__u32 task;			/* any but PBS_NO_TASK */
};

/*
 * A task waits for one of another process: it can't begin until that has ended.
 * Meanwhile its process can't run, and others fill its slots.
 *
 * Both are tasks of this written plan, the one that waits of this CPU; or the
 * other one has a number less than its process's first here: it has ended.
 * What has ended under the plan before stays so.  Tasks that wait in a circle
 * are refused.  If a process ends before a task that is waited for, who waits is
 * told (PBS_EV_WAITS, PBS_WAIT_GONE) and waits on until another plan comes.
 *
 * With PBS_PLAN_ARRIVALS an edge may be a message: its arrival_ns is the time, from
 * the moment at which the plan comes into force, at which after_task is planned to
 * have ended and its message to have arrived.  PBS_NO_ARRIVAL: the edge is no
 * message.  See PBS_CAUSE_MESSAGE.
 */
struct pbs_plan_edge {
	__u32 process;
	__u32 task;
	__u32 after_process;
	__u32 after_task;
};

/* What happened.  Fields that do not belong to a kind are 0 (or PBS_IDLE, PBS_NO_*). */
enum pbs_event_kind {
	PBS_EV_PLAN_INSTALLED	= 1,	/* value: number of slots */
	PBS_EV_PLAN_ENDED	= 2,	/* value: processes that still have tasks */
	PBS_EV_PLAN_DROPPED	= 3,	/* the CPU has no plan any more; reason: pbs_drop */
	PBS_EV_ATTACHED		= 4,	/* pid became a thread of process */
	/* process (PBS_IDLE: none) may run from now on; reason: pbs_grant */
	PBS_EV_GRANT		= 5,
	PBS_EV_TASK_ENDED	= 6,	/* all fields */
	PBS_EV_PREEMPTED	= 7,	/* the slot reached t1; value: t1 in instructions */
	PBS_EV_CEILING		= 8,	/* the slot reached its ceiling; value: it, in ns */
	/* prediction failure: beyond a t2; reason: pbs_cause; value: it */
	PBS_EV_LATE		= 9,
	/* prediction failure: below a t-2; reason: pbs_cause; value: it */
	PBS_EV_EARLY		= 10,
	/*
	 * on the way to a t2: level_percent; reason: pbs_cause; value: it; or a task
	 * that starts or ends off its planned time
	 */
	PBS_EV_INFO		= 11,
	PBS_EV_ABSENT		= 12,	/* its slot came, and process has no thread */
	PBS_EV_PROCESS_ENDED	= 13,	/* value: tasks of the plan it did not end */
	PBS_EV_EJECTED		= 14,	/* pid left the class before its end; reason: pbs_eject */
	PBS_EV_CPU_GONE		= 15,	/* the CPU went offline; its plan is dropped */
	/* value: ns of others that pid took, on its way to where it waits */
	PBS_EV_STOP_LONG	= 16,
	PBS_EV_OVERRUN		= 17,	/* this reader was too slow; value: events lost */
	/* the CPU counts in another way; value: pbs_tier; reason: pbs_tier_cause */
	PBS_EV_TIER		= 18,
	/*
	 * the slot of process came, and task waits; reason: pbs_wait;
	 * value: after_process << 32 | after_task
	 */
	PBS_EV_WAITS		= 19,
	/* PBS_IOC_CONFIGURE: the plan goes on; value: how many numbers have changed */
	PBS_EV_CONFIGURED	= 20,
};

/* Why a task waits for another one's end. */
enum pbs_wait {
	PBS_WAIT_TASK		= 1,	/* it has not ended yet */
	PBS_WAIT_GONE		= 2,	/* it never will: its process has ended */
};

enum pbs_grant {
	PBS_GRANT_SLOT		= 1,	/* its own slot */
	PBS_GRANT_IDLE_SLOT	= 2,	/* filling an idle slot */
	PBS_GRANT_BLOCKED_SLOT	= 3,	/* filling the slot of a process that cannot run */
	PBS_GRANT_AFTER_PLAN	= 4,	/* after the last slot of the plan */
	PBS_GRANT_NONE		= 5,	/* nobody: lower classes have the CPU */
};

/*
 * Which threshold a PBS_EV_LATE, PBS_EV_EARLY or PBS_EV_INFO is about.  The
 * threshold is in value, as instructions, a number of preemptions, or bytes; what
 * is compared with it is in the field named here.  process and task are those
 * that brought it about.
 *
 * A failure is told once for its task, process or node, until a plan comes.  A
 * plan that deals with it (dealt_seq) has that process begin a new account of
 * lateness, or all of them for the node, and the task a new count of
 * preemptions; under any other plan what is still so is told again.  What one
 * plan has dealt with stays so.
 *
 * Memory is resident memory.  A process counts with its peak until it ends; its
 * threshold is formed of its planned peak (pbs_plan_process.memory_bytes), that of
 * the node is what the plan may use (pbs_plan_header.memory_bytes).  Without these
 * nothing is told.  The failure of the node is told on the CPU whose process has
 * brought it about, and on another when a process there grows, too.  A plan that
 * deals with it silences it, for as long as what that plan says is exceeded.
 *
 * A message is late if process waits for it in its slot after arrival_ns, and early
 * if it ends a wait before arrival_ns.  Its threshold is t2_message_ns, with stress, or
 * tm2_message_ns.  value is its sender: after_process << 32 | after_task.  It is told
 * once a plan; a plan that deals with it has another arrival_ns.
 *
 * The start and the end of a task are told as PBS_EV_INFO alone, if they are off by
 * more than timeliness_ns from the times that follow from the lengths of the slots
 * before them.  value is by how many nanoseconds: read it as __s64, negative when
 * early.  It is told once for a task, until a plan comes; where slots float, never.
 *
 * Of an early node the threshold is negative: read value as __s64.  And its
 * node_lateness_insns has the idle time in it that lessens earliness
 * (idle_is_lateness).
 */
enum pbs_cause {
	PBS_CAUSE_TASK		= 1,	/* retired_insns */
	PBS_CAUSE_PROCESS	= 2,	/* lateness_insns */
	PBS_CAUSE_NODE		= 3,	/* node_lateness_insns */
	PBS_CAUSE_PREEMPTIONS	= 4,	/* preemptions */
	PBS_CAUSE_MEMORY	= 5,	/* memory_bytes, of the process */
	PBS_CAUSE_NODE_MEMORY	= 6,	/* memory_bytes, of all processes of the node */
	PBS_CAUSE_MESSAGE	= 7,	/* retired_insns: by what the message is late, or early */
	PBS_CAUSE_START		= 8,	/* the start of the task on the clock */
	PBS_CAUSE_END		= 9,	/* the end of the task on the clock */
};

enum pbs_eject {
	PBS_EJECT_DETACHED	= 1,	/* PBS_IOC_DETACH */
	PBS_EJECT_POLICY	= 2,	/* sched_setscheduler(2) to another policy */
	PBS_EJECT_PLAN		= 3,	/* the new plan does not have its process */
	PBS_EJECT_DROPPED	= 4,	/* its plan was dropped */
	PBS_EJECT_CPU_GONE	= 5,	/* its CPU went offline */
	PBS_EJECT_FAULT		= 6,	/* the class found itself in error; see the kernel log */
	PBS_EJECT_CPUSET	= 7,	/* its cpuset has no longer the CPU */
};

/*
 * Why a plan was dropped.  The last four are faults, found by the watchdog: the
 * kernel log has a dump, and the threads leave with PBS_EJECT_FAULT; with the
 * others they leave with PBS_EJECT_DROPPED.
 */
enum pbs_drop {
	PBS_DROP_CALL		= 1,	/* PBS_IOC_DROP */
	PBS_DROP_SYSRQ		= 2,	/* the SysRq key that takes all plans away */
	PBS_DROP_LEASE		= 3,	/* nobody has renewed its lease */
	PBS_DROP_DECISION	= 4,	/* the CPU decides no more */
	PBS_DROP_WAKE_UP	= 5,	/* a thread was granted the CPU and not woken up for it */
	PBS_DROP_PROGRESS	= 6,	/* a process was granted the CPU and got nowhere */
	PBS_DROP_STATE		= 7,	/* the state of the plan contradicts itself */
};

struct pbs_event {
	__u64 seq;			/* counts all events since boot, from 0 */
	__u64 time_ns;			/* CLOCK_MONOTONIC */
	__u64 plan_id;
	__u16 kind;			/* enum pbs_event_kind */
	__u16 reason;
	__u32 cpu;
	__u32 process;
	__u32 task;
	__u64 slot;			/* number of the slot in its CPU's plan, from 0 */
	__u64 planned_insns;		/* of the task */
	__u64 retired_insns;		/* by the task so far */
	__s64 lateness_insns;		/* of the process, negative when early */
	__u64 value;
	__u64 peak_vm_bytes;		/* of the task: largest total_vm seen */
	__u64 peak_rss_bytes;		/* of the task: largest resident size seen */
	__u32 preemptions;		/* of the task */
	__s32 pid;			/* thread id in the initial namespace, 0: none */
	__s64 node_lateness_insns;	/* of the CPU's processes, negative when early */
	__u32 stress;			/* of LATE, EARLY and INFO: the level at that moment */
	/* of LATE and EARLY: 100; of INFO: 25, 50, 75 or 90, of START and END 100 */
	__u32 level_percent;
	__u64 memory_bytes;		/* of signals about memory: what is compared */
};

/*
 * The ring of events of one CPU, as it is mapped:
 *
 *   mmap(NULL, info.ring_bytes, PROT_READ, MAP_SHARED, fd, cpu * info.ring_bytes)
 *
 * with what PBS_IOC_INFO tells.  A CPU has a ring from its first plan on, and
 * keeps it.  The mapping is there until it is unmapped, whatever is closed or
 * dropped meanwhile.
 *
 * Record n is at records_offset_bytes + n % capacity_records * record_bytes;
 * records are numbered from 0, for each ring.  There are those from tail to
 * head - 1.  The kernel alone writes, and waits for no reader.  To write
 * record n it does, in this order,
 *
 *	tail = n + 1 - capacity_records, if that is more than 0
 *	smp_wmb()
 *	the record
 *	store-release head = n + 1
 *
 * so a reader, who has a position of his own, does
 *
 *	load-acquire head; if position == head there is nothing yet
 *	copy the record at position
 *	acquire fence
 *	load tail; if position < tail the copy is worth nothing, and
 *		tail - position records are lost
 *
 * In a ring seq ascends, and over all rings together it has no gaps: the next
 * event is the one with the next seq, in whichever ring.  One that is in no
 * ring yet while a later one is, is being written at this moment, or is in the
 * ring of a CPU that has got its first plan: then nr_rings has grown.
 */
#define PBS_RING_MAGIC		0x474e5242u	/* "BRNG" read as little endian */
#define PBS_RING_VERSION	1

struct pbs_ring {
	__u32 magic;			/* PBS_RING_MAGIC */
	__u16 version;			/* PBS_RING_VERSION */
	__u16 record_bytes;		/* sizeof(struct pbs_event) */
	__u32 cpu;
	__u32 records_offset_bytes;	/* of record 0, in the mapping */
	__u64 capacity_records;		/* a power of two */
	__u64 reserved[5];
	__u64 head;			/* number of the next record */
	__u64 tail;			/* number of the oldest one that is whole */
};

/* flags of struct pbs_attach */
/* the thread's exit ends one task, not the process */
#define PBS_ATTACH_ONE_TASK	(1u << 0)

/*
 * Make a thread a thread of a plan process.  A process may have several
 * attached threads; one is active, the others wait in order of attaching.
 *
 * The thread gets the policy SCHED_PBS (8) and is bound to the CPU that has the
 * plan; it stays bound when it leaves the class, and then has SCHED_NORMAL.  Its
 * children are normal processes.  Attached to itself, it returns when its process
 * is granted the CPU.  What is refused changes nothing.
 */
struct pbs_attach {
	__s32 pid;			/* thread id, 0: the caller */
	__u32 process;
	__u32 flags;
	__u32 reserved[5];
};

/* The caller's task ends here; its next task begins when the call returns. */
struct pbs_task_end {
	__u32 task;			/* the task that ends, PBS_NO_TASK: whichever it is */
	__u32 next_task;		/* out: the next one, PBS_NO_TASK: that was the last */
	__u32 reserved[6];
};

/* How a CPU counts instructions; the lower the better. */
enum pbs_tier {
	PBS_TIER_PMU_OVERFLOW	= 1,	/* a PMU counter, which interrupts at a threshold */
	PBS_TIER_PMU		= 2,	/* a PMU counter, and a timer for the predicted moment */
	PBS_TIER_CLOCK		= 3,	/* time at the calibrated rate */
};

/* Why a CPU counts in another way than before. */
enum pbs_tier_cause {
	PBS_TIER_STOPPED	= 1,	/* the counter stands still while user code runs */
	PBS_TIER_TAKEN		= 2,	/* another user of the PMU has the counter */
	PBS_TIER_MULTIPLEXED	= 3,	/* the counter did not count all the time */
	PBS_TIER_SILENT		= 4,	/* the counter passed a threshold and did not interrupt */
	PBS_TIER_RETURNED	= 5,	/* the counter works again */
};

struct pbs_info {
	__u32 version;
	__u32 tier;			/* enum pbs_tier, the worst of all CPUs */
	__u32 max_slots;
	__u32 max_processes;
	__u64 max_slot_insns;
	__u64 rate_insns_per_ms;	/* instructions a CPU retires in a millisecond */
	__u64 first_seq;		/* oldest event from which on all are held */
	__u64 next_seq;			/* number of the next event */
	__u64 rate_spread_permille;	/* by how much the rate varied when it was measured */
	/* length of a mapped ring, and of its steps: struct pbs_ring */
	__u64 ring_bytes;
	__u32 nr_cpu_ids;		/* CPUs that may have one are 0 to nr_cpu_ids - 1 */
	__u32 nr_rings;			/* CPUs that have one; never becomes less */
	__u64 reserved[7];
};

/* Why the last write(2) or ioctl(2) on this file was refused. */
struct pbs_error {
	__s32 error;			/* an errno, 0: nothing was refused yet */
	__u32 reserved;
	__u64 offset_bytes;		/* where in the written plan, ~0: nowhere in particular */
	char text[240];			/* NUL-terminated */
};

/* Read a CPU's plan back, as a plan of one CPU with its configuration. */
struct pbs_get_plan {
	__u32 cpu;
	__u32 generation;		/* out: of the configuration, for PBS_IOC_CONFIGURE */
	__u64 buffer;			/* user address */
	__u64 bytes;			/* in: size of the buffer; out: of the plan */
};

/* What a process does. */
enum pbs_process_state {
	PBS_PROCESS_ABSENT	= 1,	/* it has tasks left and no thread */
	PBS_PROCESS_BLOCKED	= 2,	/* its thread can't run */
	PBS_PROCESS_READY	= 3,	/* its thread can run, and does if it is granted the CPU */
	PBS_PROCESS_DONE	= 4,	/* it has ended: all its tasks, or before them */
	PBS_PROCESS_WAITS	= 5,	/* its thread could run, but its task waits for another's */
};

/*
 * What is known of a process, for who has not heard of all events.  process is
 * what is asked for; reserved must be zero; the rest is the answer.
 *
 * It is of one moment: whatever was told of the process before next_seq is in it,
 * and what is told from next_seq on is not (a grant that is told late excepted,
 * which may be older).  Counts are those of the last time that the kernel looked,
 * as in events.  A plan that takes over has those tasks alone that had not ended.
 */
struct pbs_process {
	__u32 process;			/* in */
	__u32 cpu;
	__u64 plan_id;			/* of the plan in force there */
	__u32 state;			/* enum pbs_process_state; others may come */
	__u32 task;			/* the current one, PBS_NO_TASK: it is done */
	__u32 ended_tasks;		/* of those that the plan has */
	__u32 tasks;			/* that the plan has */
	__u64 planned_insns;		/* of the current task */
	__u64 retired_insns;		/* by the current task so far */
	__s64 lateness_insns;		/* of the process, negative when early */
	__u64 buffer_insns;		/* its plan buffer */
	__u32 preemptions;		/* of the current task */
	/* whose task the current one waits for, PBS_IDLE: for none */
	__u32 after_process;
	__u32 after_task;		/* which one, PBS_NO_TASK: for none */
	__u32 reserved32;
	__u64 task_peak_vm_bytes;	/* of the current task: largest total_vm seen */
	__u64 task_peak_rss_bytes;	/* of the current task: largest resident size seen */
	__u64 peak_vm_bytes;		/* of the process */
	__u64 peak_rss_bytes;		/* of the process */
	__u64 next_seq;			/* number of the next event after that moment */
	__u64 memory_bytes;		/* planned peak of the process, 0: none */
	__u64 t2_memory_bytes;		/* more is a prediction failure; 0: nothing is */
	__u64 reserved[4];
};

/*
 * Another configuration for the plan of a CPU, which goes on: nothing of the state
 * of its processes is lost, and what was told stays told.  It lasts until another
 * plan comes, which has its own.
 *
 * Thresholds are compared from the next decision on.  The present slot of a process
 * keeps its bounds, the present window its lengths; an idle slot is divided anew by
 * another idle_policy.  Another dispatch than that of the plan is refused.  What is
 * refused changes nothing.
 */
struct pbs_configure {
	__u32 cpu;
	__u32 config_bytes;		/* sizeof(struct pbs_config); or less, as in a plan */
	__u64 plan_id;			/* the plan that is meant; refused if another is in force */
	__u64 config;			/* user address of a struct pbs_config */
	__u32 generation;		/* by GET_PLAN, plus 1 a change since; else refused */
	__u32 reserved;			/* must be zero */
};

#define PBS_IOC_MAGIC		0xbc
#define PBS_IOC_INFO		_IOR(PBS_IOC_MAGIC, 0, struct pbs_info)
#define PBS_IOC_ATTACH		_IOW(PBS_IOC_MAGIC, 1, struct pbs_attach)
#define PBS_IOC_TASK_END	_IOWR(PBS_IOC_MAGIC, 2, struct pbs_task_end)
#define PBS_IOC_DETACH		_IOW(PBS_IOC_MAGIC, 3, __s32)	/* thread id, 0: the caller */
#define PBS_IOC_DROP		_IOW(PBS_IOC_MAGIC, 4, __u32)	/* CPU */
#define PBS_IOC_SEEK		_IOW(PBS_IOC_MAGIC, 5, __u64)	/* next event to read: its seq */
#define PBS_IOC_ERROR		_IOR(PBS_IOC_MAGIC, 6, struct pbs_error)
#define PBS_IOC_GET_PLAN	_IOWR(PBS_IOC_MAGIC, 7, struct pbs_get_plan)
#define PBS_IOC_RENEW		_IOW(PBS_IOC_MAGIC, 8, __u32)	/* the lease of that CPU's plan */
#define PBS_IOC_GET_PROCESS	_IOWR(PBS_IOC_MAGIC, 9, struct pbs_process)
#define PBS_IOC_CONFIGURE	_IOW(PBS_IOC_MAGIC, 10, struct pbs_configure)

/*
 * /dev/pbs_inputs: all that the policy of each CPU is told, for who wants to
 * tell it again elsewhere and compare (Documentation/recording.rst).
 *
 * While the device is open anywhere it is recorded; after the last close it is
 * not, and that costs nothing.  The node belongs to root, mode 0600.
 *
 *   mmap(2)   the ring of a CPU, read-only, which has the form of struct pbs_ring
 *             with PBS_INPUTS_MAGIC and PBS_INPUTS_VERSION and is written and read
 *             in the same way; its records are struct pbs_input.  A CPU has one if
 *             it has had a plan.  A reader begins at the head that it finds after
 *             open(2).  Nobody is woken.
 *   ioctl(2)  the two calls below, and no others.
 *
 * A record that can be told again begins with a PBS_IN_BEGIN that takes over from
 * nothing.  What fails: mmap as of /dev/pbs_plan; KEPT_PLAN ENOENT: no such plan
 * is kept, or it is not for that CPU, ENOSPC: the buffer is too small.
 */
#define PBS_INPUTS_MAGIC	0x504e4942u	/* "BINP" read as little endian */
#define PBS_INPUTS_VERSION	1

/*
 * What kind of input it is, and what its fields say.  Of what is not named time_ns,
 * value, more and reason are 0 and process is PBS_IDLE; processes are indices in
 * the plan, in the order of their ids.  "Then" is when the call was over.
 *
 * A call that has changed nothing is not noted.  Within a call, before it, stand
 * the events that it emitted, the answers that it got, and the numbers of a
 * configuration, in their order.
 */
enum pbs_input_kind {
	/*
	 * a plan is in force: value its number for PBS_IOC_KEPT_PLAN, more its dealt_seq then,
	 * reason 1 if it takes over from another
	 */
	PBS_IN_BEGIN		= 1,
	PBS_IN_GONE		= 2,	/* the plan is gone and none follows */
	PBS_IN_CHARGE		= 3,	/* process retired value; more: its task, then */
	/*
	 * of process: reason 0 absent, 1 blocked, 2 ready; value 1: that matters; more: how many
	 * are there
	 */
	PBS_IN_PRESENCE		= 4,
	/* of process; value: its next task; more: lateness of the node then */
	PBS_IN_END_TASK		= 5,
	/* a thread of process; value: the first task in which one did */
	PBS_IN_DIE		= 6,
	/* value: how many are left; more: lateness of the node then */
	PBS_IN_END_PROCESS	= 7,
	/* value: that of the CPU, more: the one in force, instructions a millisecond */
	PBS_IN_RATE		= 8,
	PBS_IN_COUNT		= 9,	/* an event of the kind reason; value: how many there are */
	/* of process: value its virtual, more its resident size; reason 1: that is new */
	PBS_IN_MEMORY		= 10,
	PBS_IN_WATCH_MEMORY	= 11,	/* process; value: bytes on other CPUs, more: bytes here */
	PBS_IN_OWE		= 12,	/* process; value: more nanoseconds, more: all */
	PBS_IN_OUT_OF_TURN	= 13,	/* value: nanoseconds, more: what is left of the window's */
	/*
	 * decided: process may run; value: until when, more: for how many instructions, ~0: no
	 * bound; reason: enum pbs_grant | 0x100: unallocated time | 0x200: to be gone on with
	 */
	PBS_IN_SETTLE		= 14,
	PBS_IN_TELL_UNTOLD	= 15,
	PBS_IN_LOOK_ELSEWHERE	= 16,	/* value 1: somebody may go on */
	PBS_IN_SHARE		= 17,	/* process */
	PBS_IN_CONTRADICT	= 18,	/* a fault was made on purpose */
	/*
	 * about the predecessor process: value the task that is waited for, more the first that
	 * has not ended, reason 1: no more ever will
	 */
	PBS_IN_ANSWER		= 19,
	/* process was found there, after value nanoseconds; more: instructions left to its slot */
	PBS_IN_IN_KERNEL	= 20,
	/* for value nanoseconds; more: execution time at which the slot ends then */
	PBS_IN_INTERRUPTED	= 21,
	/* a number that the next PBS_IN_CONFIGURE changes; more: its place in struct pbs_config */
	PBS_IN_CONFIG_VALUE	= 22,
	/* value: how many numbers have changed; more: lateness of the node then */
	PBS_IN_CONFIGURE	= 23,
};

/*
 * Of an event the kind is this and enum pbs_event_kind; process is its id, value
 * its seq, reason its reason, and more a check over what else it says.
 */
#define PBS_IN_EVENT		0x100

struct pbs_input {
	__u64 time_ns;			/* CLOCK_MONOTONIC */
	__u64 value;
	__u64 more;
	__u32 process;
	__u16 kind;			/* enum pbs_input_kind, or PBS_IN_EVENT and more */
	__u16 reason;
};

struct pbs_inputs_info {
	__u32 version;			/* PBS_INPUTS_VERSION */
	__u32 nr_cpu_ids;		/* CPUs that may have a ring are 0 to nr_cpu_ids - 1 */
	__u64 ring_bytes;		/* length of a mapped ring, and of its steps */
	__u64 next_plan;		/* the number of the next plan that is kept */
	__u64 reserved[5];
};

/*
 * A plan that was written while somebody recorded, with what it depended on.  The
 * last PBS_MAX_KEPT_PLANS are kept, and of those no more than 256 MiB, until
 * nobody records.
 */
#define PBS_MAX_KEPT_PLANS	256

struct pbs_kept_plan {
	__u64 number;			/* in: as PBS_IN_BEGIN says it */
	__u32 cpu;			/* in: one of those that it is for */
	__u32 reserved;
	__u64 rate_insns_per_ms;	/* out: of the CPU when it was written */
	/*
	 * in: user address; gets the configuration that is in force there, a struct pbs_config,
	 * and then what was written
	 */
	__u64 buffer;
	__u64 bytes;			/* in: size of the buffer; out: of both */
};

/*
 * The node of a CPU as it was between two inputs, for who begins to record in the middle of
 * a plan.  ENOENT: the CPU has no plan.  E2BIG: its plan has too many processes and awaited
 * tasks for PBS_MAX_SNAPSHOT_WORDS.  ENOSPC: the buffer may be too small, and nothing was copied;
 * bytes is a size that is enough as long as the plan stays, and more than will be used.
 */
#define PBS_MAX_SNAPSHOT_WORDS	(1u << 17)

struct pbs_snapshot {
	__u32 cpu;			/* in */
	__u32 reserved;
	__u64 next_input;		/* out: the number of the first input after it */
	__u64 time_ns;			/* out: CLOCK_MONOTONIC */
	__u64 installed_ns;		/* out: when the plan came into force */
	__u64 plan_bytes;		/* out: size of the plan */
	/*
	 * in: user address; gets the plan as PBS_IOC_GET_PLAN gives it, and then the words of
	 * the node, 64 bits each, whose meaning is that of the version in the first word
	 */
	__u64 buffer;
	__u64 bytes;			/* in: size of the buffer; out: of both, or enough */
};

#define PBS_IOC_INPUTS_INFO	_IOR(PBS_IOC_MAGIC, 16, struct pbs_inputs_info)
#define PBS_IOC_KEPT_PLAN	_IOWR(PBS_IOC_MAGIC, 17, struct pbs_kept_plan)
#define PBS_IOC_SNAPSHOT	_IOWR(PBS_IOC_MAGIC, 18, struct pbs_snapshot)

#endif /* _UAPI_LINUX_PBS_H */
