/* SPDX-License-Identifier: GPL-2.0 */
/* The yardstick's work with libpbsruntime, without co-scheduling: one process is alone. */
#include <stdint.h>
#include <stdio.h>

#include <pbs_runtime.h>

#include "yardstick.h"

static struct pbs_rt *runtime;

static int failed(void)
{
	fprintf(stderr, "libpbsruntime: %s\n", pbs_rt_last_error());
	return 1;
}

static int run_kernel(struct pbs_rt_context *context, void *argument)
{
	enum kernel kernel = (enum kernel)(uintptr_t)argument;
	/* The tile that is changed comes first. */
	double *changed = pbs_rt_context_write(context, 0, NULL);
	const double *first = kernel == POTRF ? NULL : pbs_rt_context_read(context, 1, NULL);
	const double *second = kernel == GEMM ? pbs_rt_context_read(context, 2, NULL) : first;

	switch (kernel) {
	case POTRF:
		potrf(changed);
		return 0;
	case TRSM:
		trsm(first, changed);
		return 0;
	default:
		gemm(first, second, changed);
		return 0;
	}
}

static int nothing(struct pbs_rt_context *context, void *argument)
{
	(void)context;
	(void)argument;
	return 0;
}

/* A graph under construction, with the region of each tile. */
struct build {
	struct pbs_rt_graph *graph;
	double *data[TILES * TILES];
	struct pbs_rt_region *regions[TILES * TILES];
	int count;
};

static struct pbs_rt_region *region_of(struct build *build, double *tile)
{
	for (int number = 0; number < build->count; number++)
		if (build->data[number] == tile)
			return build->regions[number];
	build->data[build->count] = tile;
	build->regions[build->count] = pbs_rt_region_new(tile, NUMBERS * sizeof(*tile));
	return build->regions[build->count++];
}

static int add(void *with, enum kernel kernel, double *first, double *second, double *changed)
{
	struct build *build = with;
	struct pbs_rt_graph *graph = build->graph;
	int task = pbs_rt_graph_task(graph, kernel_names[kernel], NULL);

	if (task < 0 ||
	    pbs_rt_task_function(graph, task, PBS_RT_CPU, 1, 0, run_kernel,
				 (void *)(uintptr_t)kernel) ||
	    pbs_rt_task_region(graph, task, region_of(build, changed), PBS_RT_READ_WRITE))
		return 1;
	if (first && pbs_rt_task_region(graph, task, region_of(build, first), PBS_RT_READ))
		return 1;
	return second && pbs_rt_task_region(graph, task, region_of(build, second), PBS_RT_READ);
}

static int run(struct build *build, int error)
{
	error = error || pbs_rt_run(runtime, build->graph, NULL) ? failed() : 0;
	pbs_rt_graph_free(build->graph);
	for (int number = 0; number < build->count; number++)
		pbs_rt_region_free(build->regions[number]);
	return error;
}

int runtime_begin(int threads)
{
	struct pbs_rt_options *options = pbs_rt_options_new();

	if (!pbs_rt_options_threads(options, threads))
		runtime = pbs_rt_new(options);
	pbs_rt_options_free(options);
	return runtime ? 0 : failed();
}

int runtime_cholesky(double *tiles[TILES][TILES])
{
	struct build build = { .graph = pbs_rt_graph_new() };

	return run(&build, factorize(tiles, add, &build));
}

/* Tasks that do nothing; with a region, each waits for the one before it. */
static int empty(const char *kind, double *tile)
{
	struct build build = { .graph = pbs_rt_graph_new() };
	int error = 0;

	for (int number = 0; number < EMPTY; number++) {
		int task = pbs_rt_graph_task(build.graph, kind, NULL);

		error |= task < 0 || pbs_rt_task_function(build.graph, task, PBS_RT_CPU, 1, 0,
							  nothing, NULL);
		if (tile)
			error |= pbs_rt_task_region(build.graph, task, region_of(&build, tile),
						    PBS_RT_READ_WRITE);
	}
	return run(&build, error);
}

int runtime_independent(void)
{
	return empty("independent", NULL);
}

int runtime_chain(void)
{
	static double tile[NUMBERS];

	return empty("chain", tile);
}

void runtime_end(void)
{
	pbs_rt_free(runtime);
}
