// SPDX-License-Identifier: GPL-2.0

/*
 * The tracepoints of the class, and what trace.rs calls.
 */

#include <linux/jump_label.h>

#define CREATE_TRACE_POINTS
#include <trace/events/pbs.h>
#undef CREATE_TRACE_POINTS

#define RUST_DO_TRACE RUST_DEFINE_DO_TRACE
#include <trace/rust_trace.h>
#include <trace/events/pbs.h>

DEFINE_STATIC_KEY_FALSE(trace_pbs_event_key);

int trace_pbs_event_reg(void)
{
	static_branch_inc(&trace_pbs_event_key);
	return 0;
}

void trace_pbs_event_unreg(void)
{
	static_branch_dec(&trace_pbs_event_key);
}
