/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Work for the comparison of two runtimes (scripts/bench-cosched): a tiled Cholesky factorization,
 * independent tasks that do nothing, and a chain of tasks that do nothing.
 *
 * A runtime defines the functions below; main.c calls them, checks the factor, and prints medians.
 */
#ifndef YARDSTICK_H
#define YARDSTICK_H

#include <stddef.h>

/* Tiles in a row of the matrix, and numbers in a row of a tile. */
#define TILES 12
#define SIDE 64
#define NUMBERS (SIDE * SIDE)
/* Tasks that do nothing. */
#define EMPTY 1000

/* Kernels of the factorization, on tiles in the order of rows. */
enum kernel { POTRF, TRSM, SYRK, GEMM, KERNELS };

static const char *const kernel_names[KERNELS] = { "potrf", "trsm", "syrk", "gemm" };

/* a = L with L * L' = a */
static inline void potrf(double *a)
{
	for (int k = 0; k < SIDE; k++) {
		double diagonal = a[k * SIDE + k], x = diagonal;

		/* Newton's method needs no library of mathematics. */
		for (int step = 0; step < 60; step++)
			x = (x + diagonal / x) / 2;
		a[k * SIDE + k] = x;
		for (int i = k + 1; i < SIDE; i++)
			a[i * SIDE + k] /= x;
		for (int j = k + 1; j < SIDE; j++)
			for (int i = j; i < SIDE; i++)
				a[i * SIDE + j] -= a[i * SIDE + k] * a[j * SIDE + k];
	}
	for (int i = 0; i < SIDE; i++)
		for (int j = i + 1; j < SIDE; j++)
			a[i * SIDE + j] = 0;
}

/* b = b / l' */
static inline void trsm(const double *l, double *b)
{
	for (int row = 0; row < SIDE; row++)
		for (int j = 0; j < SIDE; j++) {
			double x = b[row * SIDE + j];

			for (int k = 0; k < j; k++)
				x -= b[row * SIDE + k] * l[j * SIDE + k];
			b[row * SIDE + j] = x / l[j * SIDE + j];
		}
}

/* c = c - a * b' */
static inline void gemm(const double *a, const double *b, double *c)
{
	for (int i = 0; i < SIDE; i++)
		for (int j = 0; j < SIDE; j++) {
			double x = c[i * SIDE + j];

			for (int k = 0; k < SIDE; k++)
				x -= a[i * SIDE + k] * b[j * SIDE + k];
			c[i * SIDE + j] = x;
		}
}

/*
 * Calls task() for each task of a factorization, in an order in which they may run: the tiles
 * first and second are read, the tile changed is read and written.  A kernel with fewer tiles has
 * NULL.
 */
static inline int factorize(double *tiles[TILES][TILES],
			    int (*task)(void *with, enum kernel kernel, double *first,
					double *second, double *changed),
			    void *with)
{
	int error = 0;

	for (int k = 0; k < TILES; k++) {
		error |= task(with, POTRF, NULL, NULL, tiles[k][k]);
		for (int i = k + 1; i < TILES; i++)
			error |= task(with, TRSM, tiles[k][k], NULL, tiles[i][k]);
		for (int i = k + 1; i < TILES; i++) {
			error |= task(with, SYRK, tiles[i][k], NULL, tiles[i][i]);
			for (int j = k + 1; j < i; j++)
				error |= task(with, GEMM, tiles[i][k], tiles[j][k], tiles[i][j]);
		}
	}
	return error;
}

/* Functions of a runtime.  Each returns 0 on success, and has printed the reason otherwise. */
int runtime_begin(int threads);
int runtime_cholesky(double *tiles[TILES][TILES]);
int runtime_independent(void);
int runtime_chain(void);
void runtime_end(void);

#endif /* YARDSTICK_H */
