/* SPDX-License-Identifier: GPL-2.0 */
/*
 * libpbsruntime: task graphs whose tasks have several implementations, and are co-scheduled
 * with those of other processes.
 *
 *	options -> runtime;  regions, graph with tasks and variants -> pbs_rt_run()
 *
 * Functions answer with 0, or a number of their own, or a negative enum pbs_rt_error; those
 * that answer with a pointer, with NULL.  pbs_rt_last_error() says more, in words, of the
 * last failure in this thread.  NULL for a handle is PBS_RT_EINVAL, never a crash; a handle
 * that was freed is not found out.  Handles may be used by any thread, one at a time; only a
 * runtime by several, which then wait for each other.  That goes for a context, too: a
 * function with threads of its own asks for its regions in one of them; the data are for all.
 * A child of fork() uses none of its parent.
 *
 * With co-scheduling the library has a handler for SIGBUS: another process may make the
 * shared file shorter.  What is not its own it leaves to the handler that was there before;
 * one that is installed later should do the same.  A thread that blocks SIGBUS and calls
 * pbs_rt_run() may still die of it.  After dlclose() the library stays in memory.
 */
#ifndef PBS_RUNTIME_H
#define PBS_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum pbs_rt_error {
	PBS_RT_OK = 0,
	PBS_RT_EINVAL = -1,		/* an argument can't be */
	PBS_RT_ECYCLE = -2,		/* tasks wait for each other */
	PBS_RT_EGRAPH = -3,		/* something of the graph can't be */
	PBS_RT_EOPTIONS = -4,		/* something of the options can't be */
	PBS_RT_EFIT = -5,		/* a task fits no device */
	PBS_RT_EUNPROFILED = -6,	/* variants have never run, and are refused */
	PBS_RT_EFAILED = -7,		/* a task has failed */
	PBS_RT_EDEVICE = -8,		/* a device has failed */
	PBS_RT_EUNAVAILABLE = -9,	/* there is no such device, or no shared memory */
	PBS_RT_EPANIC = -10,		/* a mistake in the library; built with panic=abort, it ends */
};

enum pbs_rt_model {
	PBS_RT_CPU = 0,
	PBS_RT_OMP = 1,
	PBS_RT_GPU = 2,
	PBS_RT_CUDA = 3,
	PBS_RT_OCL = 4,
};

enum pbs_rt_access {
	PBS_RT_READ = 1,
	PBS_RT_WRITE = 2,		/* all of it, without looking at what was there */
	PBS_RT_READ_WRITE = 3,
};

struct pbs_rt;
struct pbs_rt_options;
struct pbs_rt_graph;
struct pbs_rt_region;
struct pbs_rt_context;

/*
 * A variant: 0 if it succeeded.  It runs in a thread of the library, perhaps while others
 * run with the same argument; it does not return by longjmp() or an exception.
 */
typedef int (*pbs_rt_function)(struct pbs_rt_context *context, void *argument);

struct pbs_rt_report {
	uint32_t tasks;
	uint32_t rebuilds;		/* of the graph, after a co-scheduling */
	uint32_t co_schedulings;	/* that this process computed */
	uint32_t is_calibration;	/* 1: run to measure variants that had never run */
	uint32_t is_alone;		/* 1: without the others, though it was to be with them */
	uint32_t reserved;
	uint64_t freed_on_exit_bytes;	/* of device memory, on early exits */
};

/* What an error is called; never NULL. */
const char *pbs_rt_strerror(int error);
/* The last failure in this thread, until the next call; never NULL. */
const char *pbs_rt_last_error(void);

/* All CPUs of this thread, no accelerator, no co-scheduling; variants are calibrated. */
struct pbs_rt_options *pbs_rt_options_new(void);
void pbs_rt_options_free(struct pbs_rt_options *options);
/* 1 to 1024. */
int pbs_rt_options_threads(struct pbs_rt_options *options, uint32_t threads);
/* Co-scheduling in this directory; NULL: /dev/shm.  A group below 0: only this user. */
int pbs_rt_options_shared(struct pbs_rt_options *options, const char *directory,
			  int64_t group);
/* "never", "always", "contention", "speedup", "amortization"; after .._shared(). */
int pbs_rt_options_determination(struct pbs_rt_options *options, const char *name);
/* "greedy", "plain-random", "enhanced-random", "evolutionary", "heft"; after .._shared(). */
int pbs_rt_options_scheduler(struct pbs_rt_options *options, const char *name);
/* 1: refuse variants that have never run, instead of calibrating them. */
int pbs_rt_options_refuse(struct pbs_rt_options *options, int refuse);
/*
 * What was measured is kept in this file under the name of the application, and known the
 * next time; else it is gone with the process.
 */
int pbs_rt_options_history(struct pbs_rt_options *options, const char *path,
			   const char *application);
/* So many simulated accelerators. */
int pbs_rt_options_simulated(struct pbs_rt_options *options, const char *name,
			     enum pbs_rt_model model, uint32_t count,
			     uint64_t memory_bytes);
/* All OpenCL devices of the machine; how many there are. */
int pbs_rt_options_opencl(struct pbs_rt_options *options, const char *name);

/* The options stay the caller's. */
struct pbs_rt *pbs_rt_new(const struct pbs_rt_options *options);
void pbs_rt_free(struct pbs_rt *runtime);
/* 1 if it can't co-schedule though it should; pbs_rt_last_error() says why. */
int pbs_rt_is_alone(const struct pbs_rt *runtime);

/*
 * Data of tasks.  pbs_rt_run() copies them at its beginning, and back at its end, even if it
 * fails; until then they are not to be used.  A region is of one graph that is running at a
 * time: to run a second one is PBS_RT_EINVAL.  They live until the last graph that has them
 * was freed.
 */
struct pbs_rt_region *pbs_rt_region_new(void *data, size_t bytes);
void pbs_rt_region_free(struct pbs_rt_region *region);

struct pbs_rt_graph *pbs_rt_graph_new(void);
void pbs_rt_graph_free(struct pbs_rt_graph *graph);
/* A task's number.  Runtimes are kept by kind; NULL: its name. */
int pbs_rt_graph_task(struct pbs_rt_graph *graph, const char *name, const char *kind);
/* takes_ns: on a simulated accelerator how long it takes, else what to expect; 0: unknown. */
int pbs_rt_task_function(struct pbs_rt_graph *graph, int task, enum pbs_rt_model model,
			 uint32_t threads, uint64_t takes_ns,
			 pbs_rt_function function, void *argument);
/* OpenCL C, not empty; its arguments are the task's regions. */
int pbs_rt_task_kernel(struct pbs_rt_graph *graph, int task, const char *source,
		       const char *name, size_t items, uint64_t expected_ns);
int pbs_rt_task_region(struct pbs_rt_graph *graph, int task,
		       struct pbs_rt_region *region, enum pbs_rt_access access);
int pbs_rt_task_after(struct pbs_rt_graph *graph, int task, int before);

/*
 * Runs all of it; the graph can be run again.  The report may be NULL.  A function of a task
 * runs graphs on other runtimes only: on its own it is PBS_RT_EGRAPH.
 */
int pbs_rt_run(struct pbs_rt *runtime, struct pbs_rt_graph *graph,
	       struct pbs_rt_report *report);

/* Of a running variant: threads that it may use, and its regions in the task's order. */
uint32_t pbs_rt_context_threads(const struct pbs_rt_context *context);
const void *pbs_rt_context_read(const struct pbs_rt_context *context, size_t region,
				size_t *bytes);
/* NULL if the task only reads it. */
void *pbs_rt_context_write(struct pbs_rt_context *context, size_t region, size_t *bytes);

#ifdef __cplusplus
}
#endif

#endif /* PBS_RUNTIME_H */
