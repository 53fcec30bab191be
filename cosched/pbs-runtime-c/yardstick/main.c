/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Measures a runtime: usage: yardstick NAME THREADS.  Prints a row: the name, the time of a
 * factorization in ms, and the time of a task that does nothing in us, independent and in a chain.
 * Each is the median of ten runs after three that are not counted, from the first task's creation
 * to the end of all tasks.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "yardstick.h"

#define RUNS 10
#define WARMING 3

static double numbers[TILES][TILES][NUMBERS], factor[TILES][TILES][NUMBERS];
static double *tiles[TILES][TILES];

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

/* A symmetric matrix whose diagonal is greater than the rest of each row. */
static void fill(void)
{
	for (int i = 0; i < TILES * SIDE; i++)
		for (int j = 0; j < TILES * SIDE; j++)
			numbers[i / SIDE][j / SIDE][i % SIDE * SIDE + j % SIDE] =
				i == j ? 2.0 * TILES * SIDE : 1.0 / (1 + abs(i - j));
}

static int sequential(void *with, enum kernel kernel, double *first, double *second,
		      double *changed)
{
	(void)with;
	switch (kernel) {
	case POTRF:
		potrf(changed);
		break;
	case TRSM:
		trsm(first, changed);
		break;
	case SYRK:
		gemm(first, first, changed);
		break;
	default:
		gemm(first, second, changed);
	}
	return 0;
}

static int compare(const void *one, const void *other)
{
	double difference = *(const double *)one - *(const double *)other;

	return (difference > 0) - (difference < 0);
}

static int cholesky(void)
{
	return runtime_cholesky(tiles);
}

/* The median of a piece of work, in us; below 0 on failure. */
static double median_us(int (*work)(void))
{
	double took_us[RUNS];

	for (int run = -WARMING; run < RUNS; run++) {
		double began_us;

		memcpy(tiles[0][0], numbers, sizeof(numbers));
		began_us = now_us();
		if (work())
			return -1;
		if (run >= 0)
			took_us[run] = now_us() - began_us;
	}
	qsort(took_us, RUNS, sizeof(*took_us), compare);
	return (took_us[RUNS / 2 - 1] + took_us[RUNS / 2]) / 2;
}

int main(int count, char **words)
{
	static double work[TILES][TILES][NUMBERS];
	double cholesky_us, independent_us, chain_us;
	int threads = count == 3 ? atoi(words[2]) : 0;

	if (threads < 1) {
		fprintf(stderr, "usage: yardstick NAME THREADS\n");
		return 2;
	}
	fill();
	memcpy(factor, numbers, sizeof(numbers));
	for (int i = 0; i < TILES; i++)
		for (int j = 0; j < TILES; j++)
			tiles[i][j] = factor[i][j];
	factorize(tiles, sequential, NULL);
	for (int i = 0; i < TILES; i++)
		for (int j = 0; j < TILES; j++)
			tiles[i][j] = work[i][j];
	if (runtime_begin(threads))
		return 1;
	cholesky_us = median_us(cholesky);
	if (cholesky_us >= 0 && memcmp(work, factor, sizeof(factor))) {
		fprintf(stderr, "%s: the factor is wrong\n", words[1]);
		return 1;
	}
	independent_us = median_us(runtime_independent);
	chain_us = median_us(runtime_chain);
	runtime_end();
	if (cholesky_us < 0 || independent_us < 0 || chain_us < 0)
		return 1;
	printf("%-24s  %12.1f  %14.2f  %9.2f\n", words[1], cholesky_us / 1e3,
	       independent_us / EMPTY, chain_us / EMPTY);
	return 0;
}
