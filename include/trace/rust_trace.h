/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The way from Rust to the tracepoints of a header.
 *
 * A tracepoint is an inline function of C, which Rust can't call.  So a header
 * of tracepoints is read once more, with RUST_DO_TRACE(name, proto, args) for
 * each of them, to declare for bindgen what Rust calls instead:
 *
 *	#include <trace/events/foo.h>
 *	#define RUST_DO_TRACE RUST_DECLARE_DO_TRACE
 *	#include <trace/rust_trace.h>
 *	#include <trace/events/foo.h>
 *
 * and to define it in the file that has CREATE_TRACE_POINTS:
 *
 *	#define CREATE_TRACE_POINTS
 *	#include <trace/events/foo.h>
 *	#undef CREATE_TRACE_POINTS
 *	#define RUST_DO_TRACE RUST_DEFINE_DO_TRACE
 *	#include <trace/rust_trace.h>
 *	#include <trace/events/foo.h>
 *
 * No header of tracepoints may follow.  The Rust side is
 * kernel::declare_trace!, which asks the static branch before it calls.
 */

#define RUST_DECLARE_DO_TRACE(name, proto, args)	\
	void rust_do_trace_##name(proto)

#define RUST_DEFINE_DO_TRACE(name, proto, args)		\
	void rust_do_trace_##name(proto);		\
	void rust_do_trace_##name(proto)		\
	{						\
		trace_##name(args);			\
	}						\
	struct tracepoint

#undef TRACE_DEFINE_ENUM
#define TRACE_DEFINE_ENUM(a)

#undef DECLARE_EVENT_CLASS
#define DECLARE_EVENT_CLASS(name, proto, args, tstruct, assign, print)

#undef DEFINE_EVENT
#define DEFINE_EVENT(template, name, proto, args) \
	RUST_DO_TRACE(name, PARAMS(proto), PARAMS(args))

#undef TRACE_EVENT
#define TRACE_EVENT(name, proto, args, tstruct, assign, print) \
	RUST_DO_TRACE(name, PARAMS(proto), PARAMS(args))

#undef TRACE_EVENT_FN
#define TRACE_EVENT_FN(name, proto, args, tstruct, assign, print, reg, unreg) \
	RUST_DO_TRACE(name, PARAMS(proto), PARAMS(args))

#define TRACE_HEADER_MULTI_READ
