// SPDX-License-Identifier: GPL-2.0
/*
 * A program whose tasks retire as many instructions as is said: what generated
 * plans run ("pbsctl gen --runnable").
 *
 *	pbs_retire [wait:INSNS] INSNS...
 *
 * Each number is a task, which retires so many instructions of user code and
 * some tens more for the call that ends it.  With wait: in front of it the task
 * begins with a wait: from the end of the task before it for as long as the CPU
 * takes for so many instructions.
 *
 * PBS_PROCESS names the process of the plan that the program is, PBS_DEVICE
 * the device; "pbsctl run" sets both.  Without PBS_PROCESS the program simply
 * retires its instructions.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <linux/pbs.h>

struct task {
	uint64_t wait_insns;
	uint64_t insns;
};

/* Two instructions a turn. */
static void retire(uint64_t insns)
{
	uint64_t turns = insns / 2;

	if (!turns)
		return;
#if defined(__aarch64__)
	asm volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r" (turns) : : "cc");
#elif defined(__x86_64__)
	asm volatile("1: dec %0\n\tjnz 1b" : "+r" (turns) : : "cc");
#else
#error "write a loop of two instructions for this architecture"
#endif
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static void sleep_until(uint64_t at_ns)
{
	struct timespec at = {
		.tv_sec = at_ns / 1000000000,
		.tv_nsec = at_ns % 1000000000,
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

/* Says why the kernel refused the last call on @device. */
static void refused(int device, const char *what)
{
	struct pbs_error said;
	int error = errno;

	if (!ioctl(device, PBS_IOC_ERROR, &said) && said.error)
		fprintf(stderr, "pbs_retire: %s: %s\n", what, said.text);
	else
		fprintf(stderr, "pbs_retire: %s: %s\n", what, strerror(error));
	exit(1);
}

/* Becomes a process of the plan; -1 if there is none to become. */
static int attach(uint64_t *rate_insns_per_ms)
{
	const char *process = getenv("PBS_PROCESS");
	const char *path = getenv("PBS_DEVICE");
	struct pbs_attach attach = { 0 };	/* pid 0: the caller */
	struct pbs_info info;
	int device;
	char *end;

	if (!process)
		return -1;
	if (!path)
		path = "/dev/pbs_plan";
	attach.process = strtoul(process, &end, 10);
	if (end == process || *end) {
		fprintf(stderr, "pbs_retire: PBS_PROCESS=%s is no number\n", process);
		exit(1);
	}
	device = open(path, O_RDWR | O_CLOEXEC);
	if (device < 0) {
		perror(path);
		exit(1);
	}
	if (ioctl(device, PBS_IOC_INFO, &info))
		refused(device, "rate");
	*rate_insns_per_ms = info.rate_insns_per_ms;
	if (ioctl(device, PBS_IOC_ATTACH, &attach))
		refused(device, "attach");
	return device;
}

static uint64_t number(const char *word)
{
	char *end;
	uint64_t number;

	errno = 0;
	number = strtoull(word, &end, 10);
	if (end == word || *end || *word == '-' || errno) {
		fprintf(stderr,
			"pbs_retire: %s is no number of instructions; write [wait:INSNS] INSNS...\n",
			word);
		exit(2);
	}
	return number;
}

int main(int argc, char **argv)
{
	struct task *tasks = calloc(argc, sizeof(*tasks));
	uint64_t rate_insns_per_ms = 1000000;
	uint64_t begun_ns = 0;
	int count = 0;
	int device;

	if (!tasks) {
		perror("pbs_retire");
		return 1;
	}
	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], "wait:", 5))
			tasks[count].wait_insns = number(argv[i] + 5);
		else
			tasks[count++].insns = number(argv[i]);
	}
	if (!count || tasks[count].wait_insns) {
		fprintf(stderr, "pbs_retire: no task%s; write [wait:INSNS] INSNS...\n",
			count ? " after the last wait" : "");
		return 2;
	}

	device = attach(&rate_insns_per_ms);
	for (int i = 0; i < count; i++) {
		struct pbs_task_end end = { .task = PBS_NO_TASK };

		if (tasks[i].wait_insns) {
			double wait_ns = tasks[i].wait_insns * 1e6 / rate_insns_per_ms;

			if (!begun_ns)
				begun_ns = now_ns();
			sleep_until(begun_ns + (uint64_t)wait_ns);
		}
		retire(tasks[i].insns);
		/* What comes next may wait from here on. */
		if (i + 1 < count && tasks[i + 1].wait_insns)
			begun_ns = now_ns();
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
