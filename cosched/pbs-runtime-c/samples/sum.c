/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sums of squares in four parts, each on the CPU or on a simulated GPU, and their total.
 * With a directory as its argument it is co-scheduled with others that have the same.
 *
 *	cc -I cosched/pbs-runtime-c/include cosched/pbs-runtime-c/samples/sum.c -lpbsruntime
 *	./a.out /dev/shm
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "pbs_runtime.h"

#define PARTS	4
#define NUMBERS	1000

static int squares(struct pbs_rt_context *context, void *argument)
{
	size_t bytes;
	const uint32_t *numbers = pbs_rt_context_read(context, 0, &bytes);
	uint64_t *sum = pbs_rt_context_write(context, 1, NULL);
	size_t number;

	(void)argument;
	if (!numbers || !sum)
		return 1;
	*sum = 0;
	for (number = 0; number < bytes / sizeof(*numbers); number++)
		*sum += (uint64_t)numbers[number] * numbers[number];
	return 0;
}

static int total(struct pbs_rt_context *context, void *argument)
{
	uint64_t *all = pbs_rt_context_write(context, 0, NULL);
	size_t part;

	(void)argument;
	if (!all)
		return 1;
	*all = 0;
	for (part = 0; part < PARTS; part++) {
		const uint64_t *sum = pbs_rt_context_read(context, part + 1, NULL);

		if (!sum)
			return 2;
		*all += *sum;
	}
	return 0;
}

static int failed(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, pbs_rt_last_error());
	return 1;
}

int main(int count, char **words)
{
	static uint32_t numbers[PARTS][NUMBERS];
	uint64_t sums[PARTS] = { 0 }, all = 0;
	struct pbs_rt_options *options = pbs_rt_options_new();
	struct pbs_rt_graph *graph = pbs_rt_graph_new();
	struct pbs_rt_region *in[PARTS], *out[PARTS], *last;
	struct pbs_rt_report report;
	struct pbs_rt *runtime;
	int part, number, task, error;

	if (count > 1 && pbs_rt_options_shared(options, words[1], -1))
		return failed("shared");
	if (pbs_rt_options_threads(options, 2) ||
	    pbs_rt_options_simulated(options, "gpu", PBS_RT_GPU, 1, 1 << 20))
		return failed("options");
	runtime = pbs_rt_new(options);
	pbs_rt_options_free(options);
	if (!runtime)
		return failed("runtime");
	last = pbs_rt_region_new(&all, sizeof(all));
	for (part = 0; part < PARTS; part++) {
		char name[16];

		for (number = 0; number < NUMBERS; number++)
			numbers[part][number] = part * NUMBERS + number;
		in[part] = pbs_rt_region_new(numbers[part], sizeof(numbers[part]));
		out[part] = pbs_rt_region_new(&sums[part], sizeof(sums[part]));
		snprintf(name, sizeof(name), "part-%d", part);
		task = pbs_rt_graph_task(graph, name, "squares");
		if (task < 0 ||
		    pbs_rt_task_function(graph, task, PBS_RT_CPU, 1, 1000000, squares, NULL) ||
		    pbs_rt_task_function(graph, task, PBS_RT_GPU, 1, 500000, squares, NULL) ||
		    pbs_rt_task_region(graph, task, in[part], PBS_RT_READ) ||
		    pbs_rt_task_region(graph, task, out[part], PBS_RT_WRITE))
			return failed("part");
	}
	task = pbs_rt_graph_task(graph, "total", NULL);
	if (task < 0 || pbs_rt_task_function(graph, task, PBS_RT_CPU, 1, 10000, total, NULL) ||
	    pbs_rt_task_region(graph, task, last, PBS_RT_WRITE))
		return failed("total");
	for (part = 0; part < PARTS; part++)
		if (pbs_rt_task_region(graph, task, out[part], PBS_RT_READ))
			return failed("total");
	pbs_rt_graph_deadline(graph, 10000000000);
	error = pbs_rt_run(runtime, graph, &report);
	if (error) {
		fprintf(stderr, "%s (%s)\n", pbs_rt_last_error(), pbs_rt_strerror(error));
		return 1;
	}
	printf("%llu, of %u tasks%s\n", (unsigned long long)all, report.tasks,
	       report.is_alone ? ", alone" : "");
	pbs_rt_graph_free(graph);
	for (part = 0; part < PARTS; part++) {
		pbs_rt_region_free(in[part]);
		pbs_rt_region_free(out[part]);
	}
	pbs_rt_region_free(last);
	pbs_rt_free(runtime);
	return 0;
}
