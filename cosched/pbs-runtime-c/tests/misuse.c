/* SPDX-License-Identifier: GPL-2.0 */
/* What can be done wrong: each is an error, and none ends the program. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pbs_runtime.h"

static int bad;

#define WANT(error, call) do {							\
	int got = (call);							\
	if (got != (error) || !strlen(pbs_rt_last_error())) {			\
		printf("%s: %d (%s)\n", #call, got, pbs_rt_last_error());	\
		bad = 1;							\
	}									\
} while (0)

static int fails(struct pbs_rt_context *context, void *argument)
{
	(void)argument;
	/* It only reads it, and has no second one. */
	if (pbs_rt_context_write(context, 0, NULL) || pbs_rt_context_read(context, 1, NULL))
		return 1;
	return pbs_rt_context_threads(context) == 1 ? 42 : 2;
}

/* What the function below runs, and where. */
static struct pbs_rt *own, *other;
static struct pbs_rt_graph *within, *beside, *around;

/* A task of the other runtime, started by one of the own. */
static int runs_around(struct pbs_rt_context *context, void *argument)
{
	(void)context;
	(void)argument;
	WANT(PBS_RT_EGRAPH, pbs_rt_run(own, beside, NULL));
	WANT(PBS_RT_EGRAPH, pbs_rt_wait(pbs_rt_start(own, beside), NULL));
	return 0;
}

static int runs(struct pbs_rt_context *context, void *argument)
{
	(void)context;
	(void)argument;
	WANT(PBS_RT_EGRAPH, pbs_rt_run(own, beside, NULL));
	WANT(PBS_RT_EGRAPH, pbs_rt_wait(pbs_rt_start(own, beside), NULL));
	WANT(PBS_RT_OK, pbs_rt_wait(pbs_rt_start(other, around), NULL));
	/* It has a region of the graph that is running. */
	WANT(PBS_RT_EINVAL, pbs_rt_run(other, within, NULL));
	return strcmp(pbs_rt_last_error(), "a region is of a graph that is running");
}

static int nothing(struct pbs_rt_context *context, void *argument)
{
	(void)context;
	(void)argument;
	return 0;
}

/* Graphs that are run while another one is. */
static void nested(const struct pbs_rt_options *options)
{
	char data[4] = "abc", more[4] = "def";
	struct pbs_rt_region *region = pbs_rt_region_new(data, sizeof(data));
	struct pbs_rt_region *second = pbs_rt_region_new(more, sizeof(more));
	struct pbs_rt_graph *graph = pbs_rt_graph_new();

	own = pbs_rt_new(options);
	other = pbs_rt_new(options);
	within = pbs_rt_graph_new();
	beside = pbs_rt_graph_new();
	around = pbs_rt_graph_new();
	pbs_rt_graph_task(around, "runs", NULL);
	pbs_rt_task_function(around, 0, PBS_RT_CPU, 1, 1, runs_around, NULL);
	pbs_rt_graph_task(graph, "runs", NULL);
	pbs_rt_task_function(graph, 0, PBS_RT_CPU, 1, 1, runs, NULL);
	pbs_rt_graph_task(graph, "nothing", NULL);
	pbs_rt_task_function(graph, 1, PBS_RT_CPU, 1, 1, nothing, NULL);
	pbs_rt_task_region(graph, 1, region, PBS_RT_READ);
	pbs_rt_task_after(graph, 1, 0);
	pbs_rt_graph_task(within, "nothing", NULL);
	pbs_rt_task_function(within, 0, PBS_RT_CPU, 1, 1, nothing, NULL);
	pbs_rt_task_region(within, 0, second, PBS_RT_READ);
	pbs_rt_task_region(within, 0, region, PBS_RT_READ);
	WANT(PBS_RT_OK, pbs_rt_run(own, graph, NULL));
	/* What was refused has kept nothing, nor has what has ended. */
	WANT(PBS_RT_OK, pbs_rt_run(other, within, NULL));
	pbs_rt_graph_free(graph);
	pbs_rt_graph_free(within);
	pbs_rt_graph_free(beside);
	pbs_rt_graph_free(around);
	pbs_rt_region_free(region);
	pbs_rt_region_free(second);
	pbs_rt_free(own);
	pbs_rt_free(other);
}

/* Options of co-scheduling, before and after it is on. */
static void decisions(void)
{
	struct pbs_rt_options *options = pbs_rt_options_new();

	WANT(PBS_RT_EINVAL, pbs_rt_options_overdue_factor(options, 3));
	WANT(PBS_RT_EINVAL, pbs_rt_options_priority(options, "age", "age"));
	WANT(PBS_RT_EINVAL, pbs_rt_options_iterations(options, 1, 2));
	WANT(PBS_RT_EINVAL, pbs_rt_options_cost(options, 0, 0, 1));
	WANT(PBS_RT_EINVAL, pbs_rt_options_search(options, 1));
	WANT(PBS_RT_OK, pbs_rt_options_shared(options, "/nonexistent", -1));
	WANT(PBS_RT_OK, pbs_rt_options_overdue_factor(options, 3));
	WANT(PBS_RT_OK, pbs_rt_options_priority(options, "runtime", "successors"));
	WANT(PBS_RT_EINVAL, pbs_rt_options_priority(options, "runtime", "youth"));
	if (!strstr(pbs_rt_last_error(), "youth is no priority: write age"))
		bad = printf("%s\n", pbs_rt_last_error());
	WANT(PBS_RT_OK, pbs_rt_options_iterations(options, 1, 2));
	WANT(PBS_RT_EINVAL, pbs_rt_options_iterations(options, 0, 2));
	WANT(PBS_RT_EINVAL, pbs_rt_options_iterations(options, 3, 2));
	WANT(PBS_RT_OK, pbs_rt_options_cost(options, 0, 1e3, 1e6));
	WANT(PBS_RT_EINVAL, pbs_rt_options_cost(options, 0.0 / 0.0, 0, 0));
	WANT(PBS_RT_OK, pbs_rt_options_search(options, 1000));
	WANT(PBS_RT_OK, !!pbs_rt_start(NULL, NULL));
	WANT(PBS_RT_EINVAL, pbs_rt_is_done(NULL));
	WANT(PBS_RT_EINVAL, pbs_rt_wait(NULL, NULL));
	pbs_rt_options_free(options);
}

int main(void)
{
	struct pbs_rt_options *options = pbs_rt_options_new();
	struct pbs_rt_graph *graph = pbs_rt_graph_new();
	char data[4] = "abc";
	struct pbs_rt_region *region = pbs_rt_region_new(data, sizeof(data));
	struct pbs_rt *runtime;
	int first, second;

	/* Nothing here may wait for itself. */
	alarm(120);
	WANT(PBS_RT_EINVAL, pbs_rt_options_threads(NULL, 1));
	WANT(PBS_RT_EINVAL, pbs_rt_options_scheduler(options, "greedy"));
	WANT(PBS_RT_EINVAL, pbs_rt_options_simulated(options, "gpu", 77, 1, 1));
	WANT(PBS_RT_EINVAL, pbs_rt_options_simulated(options, NULL, PBS_RT_GPU, 1, 1));
	WANT(PBS_RT_EINVAL, pbs_rt_options_simulated(options, "gpu", PBS_RT_GPU, 0, 1));
	WANT(PBS_RT_EINVAL, pbs_rt_options_link(options, "gpu", 1));
	if (strcmp(pbs_rt_last_error(), "there is no device gpu: add it before its link"))
		bad = printf("%s\n", pbs_rt_last_error());
	WANT(PBS_RT_EINVAL, pbs_rt_options_link(options, "gpu", 0));
	WANT(PBS_RT_EINVAL, pbs_rt_task_transfer(graph, 0, 1));
	WANT(PBS_RT_EINVAL, pbs_rt_graph_deadline(graph, 0));
	WANT(PBS_RT_EINVAL, pbs_rt_options_history(options, NULL, "app"));
	WANT(PBS_RT_EUNAVAILABLE, pbs_rt_options_history(options, "/dev/null/none", "app"));
	WANT(PBS_RT_EINVAL, pbs_rt_run(NULL, NULL, NULL));
	WANT(PBS_RT_EINVAL, pbs_rt_graph_task(graph, "\xff\xfe", NULL));
	WANT(PBS_RT_EINVAL, pbs_rt_task_after(graph, 0, 0));
	WANT(PBS_RT_OK, !!pbs_rt_region_new(NULL, 4));
	WANT(PBS_RT_OK, !!pbs_rt_region_new(data, PTRDIFF_MAX));
	WANT(PBS_RT_OK, !!pbs_rt_region_new(data, SIZE_MAX));
	WANT(PBS_RT_OK, !!pbs_rt_new(NULL));
	decisions();
	pbs_rt_options_threads(options, 0);
	WANT(PBS_RT_OK, !!pbs_rt_new(options));
	pbs_rt_options_threads(options, UINT32_MAX);
	WANT(PBS_RT_OK, !!pbs_rt_new(options));
	pbs_rt_options_threads(options, 1);
	nested(options);
	pbs_rt_options_refuse(options, 1);
	runtime = pbs_rt_new(options);
	first = pbs_rt_graph_task(graph, "first", NULL);
	WANT(PBS_RT_EGRAPH, pbs_rt_run(runtime, graph, NULL));
	WANT(PBS_RT_EINVAL, pbs_rt_task_function(graph, first, PBS_RT_CPU, 1, 1, NULL, NULL));
	WANT(PBS_RT_EINVAL, pbs_rt_task_region(graph, first, region, 9));
	WANT(PBS_RT_EINVAL, pbs_rt_task_kernel(graph, first, "", "k", 1, 1));
	pbs_rt_task_function(graph, first, PBS_RT_GPU, 1, 1, fails, NULL);
	WANT(PBS_RT_EFIT, pbs_rt_run(runtime, graph, NULL));
	pbs_rt_task_function(graph, first, PBS_RT_CPU, 1, 0, fails, NULL);
	pbs_rt_task_region(graph, first, region, PBS_RT_READ);
	WANT(PBS_RT_EUNPROFILED, pbs_rt_run(runtime, graph, NULL));
	pbs_rt_free(runtime);
	pbs_rt_options_refuse(options, 0);
	runtime = pbs_rt_new(options);
	WANT(PBS_RT_EFAILED, pbs_rt_run(runtime, graph, NULL));
	if (strcmp(pbs_rt_last_error(), "task first: its function has answered 42"))
		bad = printf("%s\n", pbs_rt_last_error());
	second = pbs_rt_graph_task(graph, "second", NULL);
	pbs_rt_task_function(graph, second, PBS_RT_CPU, 1, 1, fails, NULL);
	pbs_rt_task_after(graph, first, second);
	pbs_rt_task_after(graph, second, first);
	WANT(PBS_RT_ECYCLE, pbs_rt_run(runtime, graph, NULL));
	if (strcmp(data, "abc") || strcmp(pbs_rt_strerror(PBS_RT_EPANIC), "a mistake in the library"))
		bad = printf("%s\n", data);
	pbs_rt_strerror(1000);
	pbs_rt_strerror(-2147483647 - 1);
	pbs_rt_options_free(options);
	pbs_rt_options_free(NULL);
	pbs_rt_graph_free(graph);
	pbs_rt_region_free(region);
	pbs_rt_free(runtime);
	return bad;
}
