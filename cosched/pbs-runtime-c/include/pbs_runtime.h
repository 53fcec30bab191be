/* SPDX-License-Identifier: GPL-2.0 */
/*
 * libpbsruntime: task graphs whose tasks have several implementations and are co-scheduled
 * with the tasks of other processes.
 *
 *	options -> runtime;  regions, graph with tasks and variants -> pbs_rt_run()
 *
 * A function returns 0 or a non-negative number of its own; on failure it returns a negative
 * enum pbs_rt_error.  A function that returns a pointer returns NULL on failure.
 * pbs_rt_last_error() describes the last failure in this thread.  A NULL handle yields
 * PBS_RT_EINVAL, never a crash; the use of a freed handle is not detected.
 *
 * Any thread may use a handle, but only one thread at a time.  A runtime is the exception:
 * several threads may use it, and then wait for each other.  The rule applies to a context,
 * too: a function with threads of its own gets its regions in one of them; all of them may
 * use the data.  A child of fork() must not use handles of its parent.  With co-scheduling, a
 * child that does not call exec() also has the shared file open: if its parent is killed with
 * the lock of that file, the others run without co-scheduling until the child has ended.
 *
 * With co-scheduling, shared memory has room for 2031 tasks of all processes, with 50 variants
 * each.  A graph that has no room runs without co-scheduling.  Decisions regard the last 48
 * dependencies of a task, which waits for all of them.
 *
 * With co-scheduling, the library installs a handler for SIGBUS, because another process may
 * truncate the shared file.  It passes any other SIGBUS to the previous handler; a handler
 * that is installed later should do the same.  A thread that blocks SIGBUS and calls
 * pbs_rt_run() may still be killed by it.  The library stays in memory after dlclose().
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
	PBS_RT_EINVAL = -1,		/* an argument is invalid */
	PBS_RT_ECYCLE = -2,		/* tasks wait for each other */
	PBS_RT_EGRAPH = -3,		/* the graph is invalid */
	PBS_RT_EOPTIONS = -4,		/* the options are invalid */
	PBS_RT_EFIT = -5,		/* a task fits no device */
	PBS_RT_EUNPROFILED = -6,	/* variants have never run, and are refused */
	PBS_RT_EFAILED = -7,		/* a task has failed */
	PBS_RT_EDEVICE = -8,		/* a device has failed */
	PBS_RT_EUNAVAILABLE = -9,	/* the device or the shared memory is missing */
	PBS_RT_EPANIC = -10,		/* a bug in the library; with panic=abort it aborts */
	PBS_RT_EANNOUNCED = -11,	/* the graph was written to the file SCHED_PBS_GRAPH */
	PBS_RT_EPLAN = -12,		/* a process of the plan can't be used */
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
	PBS_RT_WRITE = 2,		/* all of it, without reading the old content */
	PBS_RT_READ_WRITE = 3,
};

struct pbs_rt;
struct pbs_rt_options;
struct pbs_rt_graph;
struct pbs_rt_region;
struct pbs_rt_context;
struct pbs_rt_started;

/*
 * Function of a variant; returns 0 on success.  It runs in a thread of the library, perhaps
 * while others run with the same argument.  It must not return by longjmp() or an exception.
 */
typedef int (*pbs_rt_function)(struct pbs_rt_context *context, void *argument);

struct pbs_rt_report {
	uint32_t tasks;
	uint32_t rebuilds;		/* number of times that the graph was rebuilt */
	uint32_t co_schedulings;	/* number that this process computed */
	uint32_t is_calibration;	/* 1: run to measure variants that had never run */
	uint32_t is_alone;		/* 1: ran without co-scheduling although it was enabled */
	uint32_t reserved;
	uint64_t freed_on_exit_bytes;	/* device memory, on early exits */
};

/* Returns the name of an error; never NULL. */
const char *pbs_rt_strerror(int error);
/* Returns the last failure in this thread, valid until the next call; never NULL. */
const char *pbs_rt_last_error(void);

/* Default: all CPUs of this thread, no accelerator, no co-scheduling, calibration. */
struct pbs_rt_options *pbs_rt_options_new(void);
void pbs_rt_options_free(struct pbs_rt_options *options);
/* Number of threads: 1 to 1024. */
int pbs_rt_options_threads(struct pbs_rt_options *options, uint32_t threads);
/* Enables co-scheduling; directory NULL: /dev/shm; group below 0: this user alone. */
int pbs_rt_options_shared(struct pbs_rt_options *options, const char *directory,
			  int64_t group);
/*
 * Multiple of its expected runtime after which a running task is overdue: this process uses its
 * device then, while the task's process is stopped.  Default 10, 0: never; call after .._shared().
 */
int pbs_rt_options_overdue_factor(struct pbs_rt_options *options, uint32_t factor);
/* "never", "always", "contention", "speedup" or "amortization"; call after .._shared(). */
int pbs_rt_options_determination(struct pbs_rt_options *options, const char *name);
/*
 * "greedy", "plain-random", "enhanced-random", "evolutionary" (default) or "heft"; call after
 * .._shared().
 */
int pbs_rt_options_scheduler(struct pbs_rt_options *options, const char *name);
/*
 * Selects "greedy" with its rules when tasks can run nowhere else, and for the rest: "age",
 * "runtime" or "successors"; call after .._shared().
 */
int pbs_rt_options_priority(struct pbs_rt_options *options, const char *contention,
			    const char *leftovers);
/* Selects "enhanced-random" with its numbers of mappings; call after .._shared(). */
int pbs_rt_options_iterations(struct pbs_rt_options *options, uint32_t least, uint32_t most);
/*
 * Cost of a decision about n tasks, square_ns * n * n + linear_ns * n + constant_ns, as long as
 * none was measured.  Default 1 ms; call after .._shared().
 */
int pbs_rt_options_cost(struct pbs_rt_options *options, double square_ns, double linear_ns,
			double constant_ns);
/* Maximum time of a search.  Default 50 ms; call after .._shared(). */
int pbs_rt_options_search(struct pbs_rt_options *options, uint64_t most_ns);
/* 1: refuses variants that have never run, instead of calibrating them. */
int pbs_rt_options_refuse(struct pbs_rt_options *options, int refuse);
/*
 * Stores measurements in this file under the name of the application, for the next runs.
 * Otherwise they are lost at the end of the process.
 */
int pbs_rt_options_history(struct pbs_rt_options *options, const char *path,
			   const char *application);
/* Adds a number of simulated accelerators. */
int pbs_rt_options_simulated(struct pbs_rt_options *options, const char *name,
			     enum pbs_rt_model model, uint32_t count,
			     uint64_t memory_bytes);
/* Adds all OpenCL devices of the machine; returns their number. */
int pbs_rt_options_opencl(struct pbs_rt_options *options, const char *name);
/*
 * Expected rate of transfers between the host and the devices of this name, which were added
 * before.  It counts until a transfer was measured.  Default: transfers take no time until then.
 */
int pbs_rt_options_link(struct pbs_rt_options *options, const char *name,
			uint64_t bytes_per_s);

/* Creates a runtime.  The caller keeps the options. */
struct pbs_rt *pbs_rt_new(const struct pbs_rt_options *options);
void pbs_rt_free(struct pbs_rt *runtime);
/* Returns 1 if it can't co-schedule although it should; see pbs_rt_last_error(). */
int pbs_rt_is_alone(const struct pbs_rt *runtime);

/*
 * Data of tasks.  pbs_rt_run() copies them at its beginning, and back at its end, even if it
 * fails; do not use them in between.  A region belongs to at most one running graph: running
 * a second one yields PBS_RT_EINVAL.  Data must live until the last graph with the region is
 * freed.
 */
struct pbs_rt_region *pbs_rt_region_new(void *data, size_t bytes);
void pbs_rt_region_free(struct pbs_rt_region *region);

struct pbs_rt_graph *pbs_rt_graph_new(void);
void pbs_rt_graph_free(struct pbs_rt_graph *graph);
/* Adds a task; returns its number.  Runtimes are stored by kind; NULL: its name. */
int pbs_rt_graph_task(struct pbs_rt_graph *graph, const char *name, const char *kind);
/*
 * Adds a variant.  takes_ns: its runtime on a simulated accelerator, elsewhere the expected
 * runtime; 0: unknown.
 */
int pbs_rt_task_function(struct pbs_rt_graph *graph, int task, enum pbs_rt_model model,
			 uint32_t threads, uint64_t takes_ns,
			 pbs_rt_function function, void *argument);
/* Adds a kernel in OpenCL C, not empty; its arguments are the task's regions. */
int pbs_rt_task_kernel(struct pbs_rt_graph *graph, int task, const char *source,
		       const char *name, size_t items, uint64_t expected_ns);
int pbs_rt_task_region(struct pbs_rt_graph *graph, int task,
		       struct pbs_rt_region *region, enum pbs_rt_access access);
/*
 * Bytes that are transferred if the task runs in another memory than the tasks before it; for a
 * task without any, than the host.  Decisions count their time.  Default: the size of the regions
 * that it reads.
 */
int pbs_rt_task_transfer(struct pbs_rt_graph *graph, int task, uint64_t bytes);
int pbs_rt_task_after(struct pbs_rt_graph *graph, int task, int before);

/* Time from the submission by which plans end the last task; plans need it. */
int pbs_rt_graph_deadline(struct pbs_rt_graph *graph, uint64_t deadline_ns);

/*
 * Runs a graph to its end; it can be run again.  If the variable SCHED_PBS_GRAPH names a file, the
 * first graph is written there instead, and the call yields PBS_RT_EANNOUNCED.  The report may be
 * NULL.  The function of a task may run graphs on other runtimes only: its own yields
 * PBS_RT_EGRAPH, also in the background and in tasks of the graphs that it runs.
 */
int pbs_rt_run(struct pbs_rt *runtime, struct pbs_rt_graph *graph,
	       struct pbs_rt_report *report);

/*
 * Starts a graph and returns at once; NULL on error.  Until pbs_rt_wait() has returned, keep the
 * runtime and the graph, do not change the graph, and do not use the data of its regions.  Runs on
 * the same runtime take turns.
 */
struct pbs_rt_started *pbs_rt_start(struct pbs_rt *runtime, struct pbs_rt_graph *graph);
/* Returns 1 if the run has ended, 0 if not. */
int pbs_rt_is_done(const struct pbs_rt_started *started);
/* Waits for the end, frees the run, and returns what pbs_rt_run() would.  Call it once. */
int pbs_rt_wait(struct pbs_rt_started *started, struct pbs_rt_report *report);

/* Threads that a running variant may use, and its regions in the task's order. */
uint32_t pbs_rt_context_threads(const struct pbs_rt_context *context);
const void *pbs_rt_context_read(const struct pbs_rt_context *context, size_t region,
				size_t *bytes);
/* Returns NULL if the task only reads the region. */
void *pbs_rt_context_write(struct pbs_rt_context *context, size_t region, size_t *bytes);

#ifdef __cplusplus
}
#endif

#endif /* PBS_RUNTIME_H */
