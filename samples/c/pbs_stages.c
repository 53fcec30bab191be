// SPDX-License-Identifier: GPL-2.0
/*
 * A program that marks the ends of its own tasks with nothing but the UAPI
 * header.
 *
 *	pbs_stages STAGE:SIZE...
 *
 * Each stage is real work and one task: the primes below SIZE, the product of
 * two SIZE x SIZE matrices, or a hash over SIZE bytes.  The work, and so the
 * number of instructions, depends on the arguments alone.
 *
 * PBS_PROCESS names the process of the plan that the program is, PBS_DEVICE
 * the device; "pbsctl run" sets both.  Without PBS_PROCESS the program simply
 * does its work.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/pbs.h>

/* Stages without which the program would have nothing to show. */
static char *default_stages[] = { "sieve:200000", "matrix:48", "hash:500000" };

static void *zeroed(size_t count, size_t size)
{
	void *memory = calloc(count ? count : 1, size);

	if (!memory) {
		perror("pbs_stages");
		exit(1);
	}
	return memory;
}

/* How many primes there are below @size. */
static uint64_t sieve(size_t size)
{
	unsigned char *composite = zeroed(size, 1);
	uint64_t primes = 0;

	for (size_t i = 2; i < size; i++) {
		if (composite[i])
			continue;
		primes++;
		for (size_t j = 2 * i; j < size; j += i)
			composite[j] = 1;
	}
	free(composite);
	return primes;
}

/* The sum of the elements of a product of two @size x @size matrices. */
static uint64_t matrix(size_t size)
{
	uint64_t *a = zeroed(size * size, sizeof(*a));
	uint64_t *b = zeroed(size * size, sizeof(*b));
	uint64_t sum = 0;

	for (size_t i = 0; i < size * size; i++) {
		a[i] = i * 7 % 101;
		b[i] = i * 11 % 103;
	}
	for (size_t i = 0; i < size; i++)
		for (size_t j = 0; j < size; j++)
			for (size_t k = 0; k < size; k++)
				sum += a[i * size + k] * b[k * size + j];
	free(a);
	free(b);
	return sum;
}

/* FNV-1a over @size bytes. */
static uint64_t hash(size_t size)
{
	unsigned char *bytes = zeroed(size, 1);
	uint64_t value = 0xcbf29ce484222325;

	for (size_t i = 0; i < size; i++)
		bytes[i] = i * 31;
	for (size_t i = 0; i < size; i++) {
		value ^= bytes[i];
		value *= 0x100000001b3;
	}
	free(bytes);
	return value;
}

struct stage {
	const char *name;
	uint64_t (*work)(size_t size);
};

static const struct stage stages[] = {
	{ "sieve", sieve },
	{ "matrix", matrix },
	{ "hash", hash },
};

/* Says why the kernel refused the last call on @device. */
static void refused(int device, const char *what)
{
	struct pbs_error said;
	int error = errno;

	if (!ioctl(device, PBS_IOC_ERROR, &said) && said.error)
		fprintf(stderr, "pbs_stages: %s: %s\n", what, said.text);
	else
		fprintf(stderr, "pbs_stages: %s: %s\n", what, strerror(error));
	exit(1);
}

/* Becomes a process of the plan; -1 if there is none to become. */
static int attach(void)
{
	const char *process = getenv("PBS_PROCESS");
	const char *path = getenv("PBS_DEVICE");
	struct pbs_attach attach = { 0 };	/* pid 0: the caller */
	int device;
	char *end;

	if (!process)
		return -1;
	if (!path)
		path = "/dev/pbs_plan";
	attach.process = strtoul(process, &end, 10);
	if (end == process || *end) {
		fprintf(stderr, "pbs_stages: PBS_PROCESS=%s is no number\n", process);
		exit(1);
	}
	device = open(path, O_RDWR | O_CLOEXEC);
	if (device < 0) {
		perror(path);
		exit(1);
	}
	if (ioctl(device, PBS_IOC_ATTACH, &attach))
		refused(device, "attach");
	return device;
}

static const struct stage *find(const char *argument, size_t *size)
{
	const char *colon = strchr(argument, ':');
	size_t length = colon ? (size_t)(colon - argument) : 0;
	char *end;

	for (size_t i = 0; colon && i < sizeof(stages) / sizeof(*stages); i++) {
		if (strlen(stages[i].name) != length ||
		    strncmp(stages[i].name, argument, length))
			continue;
		*size = strtoul(colon + 1, &end, 10);
		if (end != colon + 1 && !*end)
			return &stages[i];
	}
	fprintf(stderr,
		"pbs_stages: %s is no stage; write sieve:SIZE, matrix:SIZE or hash:SIZE\n",
		argument);
	exit(2);
}

int main(int argc, char **argv)
{
	char **arguments = argv + 1;
	int count = argc - 1;
	const struct stage *stage;
	size_t size;
	int device;

	if (count < 1) {
		arguments = default_stages;
		count = sizeof(default_stages) / sizeof(*default_stages);
	}
	for (int i = 0; i < count; i++)
		find(arguments[i], &size);

	device = attach();
	for (int i = 0; i < count; i++) {
		struct pbs_task_end end = { .task = PBS_NO_TASK };

		stage = find(arguments[i], &size);
		printf("%s %zu: %llu\n", stage->name, size,
		       (unsigned long long)stage->work(size));
		fflush(stdout);
		if (device >= 0 && ioctl(device, PBS_IOC_TASK_END, &end)) {
			if (errno != ESRCH)
				refused(device, "end of a task");
			/* The plan was dropped: this is an ordinary program now. */
			close(device);
			device = -1;
		}
	}
	return 0;
}
