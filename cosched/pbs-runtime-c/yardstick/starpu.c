/* SPDX-License-Identifier: GPL-2.0 */
/* The yardstick's work with StarPU; STARPU_SCHED selects its scheduler. */
#include <stdint.h>
#include <stdio.h>

#include <starpu.h>

#include "yardstick.h"

static struct starpu_perfmodel models[KERNELS + 2];
static struct starpu_codelet kernels[KERNELS], independent, chain;

static int failed(const char *what, int error)
{
	fprintf(stderr, "StarPU: %s: error %d\n", what, error);
	return 1;
}

static double *tile(void *buffer)
{
	return (double *)STARPU_VARIABLE_GET_PTR(buffer);
}

/* The tile that is changed comes first. */
static void run_potrf(void **buffers, void *argument)
{
	(void)argument;
	potrf(tile(buffers[0]));
}

static void run_trsm(void **buffers, void *argument)
{
	(void)argument;
	trsm(tile(buffers[1]), tile(buffers[0]));
}

static void run_syrk(void **buffers, void *argument)
{
	(void)argument;
	gemm(tile(buffers[1]), tile(buffers[1]), tile(buffers[0]));
}

static void run_gemm(void **buffers, void *argument)
{
	(void)argument;
	gemm(tile(buffers[1]), tile(buffers[2]), tile(buffers[0]));
}

static void nothing(void **buffers, void *argument)
{
	(void)buffers;
	(void)argument;
}

static void codelet(struct starpu_codelet *codelet, int number, const char *name,
		    starpu_cpu_func_t function, int buffers)
{
	starpu_codelet_init(codelet);
	models[number].type = STARPU_HISTORY_BASED;
	models[number].symbol = name;
	codelet->name = name;
	codelet->cpu_funcs[0] = function;
	codelet->nbuffers = buffers;
	codelet->model = &models[number];
	for (int buffer = 0; buffer < buffers; buffer++)
		codelet->modes[buffer] = buffer ? STARPU_R : STARPU_RW;
}

int runtime_begin(int threads)
{
	static const starpu_cpu_func_t functions[KERNELS] = { run_potrf, run_trsm, run_syrk,
							      run_gemm };
	static const int buffers[KERNELS] = { 1, 2, 2, 3 };
	struct starpu_conf conf;
	int error;

	starpu_conf_init(&conf);
	conf.ncpus = threads;
	conf.ncuda = 0;
	conf.nopencl = 0;
	error = starpu_init(&conf);
	if (error)
		return failed("starpu_init()", error);
	for (int kernel = 0; kernel < KERNELS; kernel++)
		codelet(&kernels[kernel], kernel, kernel_names[kernel], functions[kernel],
			buffers[kernel]);
	codelet(&independent, KERNELS, "independent", nothing, 0);
	codelet(&chain, KERNELS + 1, "chain", nothing, 1);
	return 0;
}

/* Handles of the tiles that tasks have named. */
struct build {
	double *data[TILES * TILES];
	starpu_data_handle_t handles[TILES * TILES];
	int count;
};

static starpu_data_handle_t handle_of(struct build *build, double *tile)
{
	int number;

	for (number = 0; number < build->count; number++)
		if (build->data[number] == tile)
			return build->handles[number];
	build->data[number] = tile;
	starpu_variable_data_register(&build->handles[number], STARPU_MAIN_RAM, (uintptr_t)tile,
				      NUMBERS * sizeof(*tile));
	return build->handles[build->count++];
}

static int submit(struct build *build, struct starpu_codelet *of, double *changed, double *first,
		  double *second)
{
	struct starpu_task *task = starpu_task_create();
	int error;

	task->cl = of;
	if (changed)
		task->handles[0] = handle_of(build, changed);
	if (first)
		task->handles[1] = handle_of(build, first);
	if (second)
		task->handles[2] = handle_of(build, second);
	error = starpu_task_submit(task);
	return error ? failed("starpu_task_submit()", error) : 0;
}

static int add(void *with, enum kernel kernel, double *first, double *second, double *changed)
{
	return submit(with, &kernels[kernel], changed, first, second);
}

static int wait(struct build *build, int error)
{
	error |= starpu_task_wait_for_all();
	for (int number = 0; number < build->count; number++)
		starpu_data_unregister(build->handles[number]);
	return error;
}

int runtime_cholesky(double *tiles[TILES][TILES])
{
	struct build build = { .count = 0 };

	return wait(&build, factorize(tiles, add, &build));
}

static int empty(struct starpu_codelet *of, double *tile)
{
	struct build build = { .count = 0 };
	int error = 0;

	for (int number = 0; number < EMPTY; number++)
		error |= submit(&build, of, tile, NULL, NULL);
	return wait(&build, error);
}

int runtime_independent(void)
{
	return empty(&independent, NULL);
}

int runtime_chain(void)
{
	static double tile[NUMBERS];

	return empty(&chain, tile);
}

void runtime_end(void)
{
	starpu_shutdown();
}
