#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Print the task graph of a tiled Cholesky factorization, for pbsctl cosched.

  cholesky.py [TILES]    a matrix of TILES times TILES tiles (5)

Tiles have 960 times 960 numbers in single precision. The times are means that StarPU's performance
models have measured on the machine mirage: one core, and one accelerator (cuda0). A tile moves with
6 GB/s, which is an assumption.
"""

import sys

# Microseconds on a core, and on the accelerator.
TIMES_US = {
    "potrf": (18850, 5367),
    "trsm": (45647, 6394),
    "syrk": (43890, 1403),
    "gemm": (87780, 2805),
}
TILE_BYTES = 960 * 960 * 4
TRANSFER_US = TILE_BYTES // 6000


def tasks(tiles):
    """Yield each task as its kernel, its name, and the names of the tasks that it waits for."""
    last = {}  # The task that has written each tile last.
    for k in range(tiles):
        yield from task("potrf", (k,), [], (k, k), last)
        for i in range(k + 1, tiles):
            yield from task("trsm", (i, k), [(k, k)], (i, k), last)
        for i in range(k + 1, tiles):
            yield from task("syrk", (i, k), [(i, k)], (i, i), last)
            for j in range(k + 1, i):
                yield from task("gemm", (i, j, k), [(i, k), (j, k)], (i, j), last)


def task(kernel, indices, reads, writes, last):
    name = "-".join([kernel, *map(str, indices)])
    after = [last[tile] for tile in [*reads, writes] if tile in last]
    last[writes] = name
    yield kernel, name, after


def main():
    tiles = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print("# SPDX-License-Identifier: GPL-2.0")
    print(f"# Tiled Cholesky factorization of {tiles} times {tiles} tiles: cholesky.py {tiles}")
    print('name = "cholesky"')
    for kernel, name, after in tasks(tiles):
        core_us, accelerator_us = TIMES_US[kernel]
        print(f'\n[[task]]\nname = "{name}"')
        if after:
            edges = (f'{{ task = "{of}", transfer_ns = "{TRANSFER_US}us" }}' for of in after)
            print("after = [" + ", ".join(edges) + "]")
        print(f'[[task.variant]]\nmodel = "omp"\nthreads = 1\nruntime_ns = "{core_us}us"')
        print(f'[[task.variant]]\nmodel = "gpu"\ndevice = "gpu"\nruntime_ns = "{accelerator_us}us"')


if __name__ == "__main__":
    main()
