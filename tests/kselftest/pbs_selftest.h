/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Plans and processes for the tests of SCHED_PBS, with nothing but the UAPI
 * header.
 */
#ifndef PBS_SELFTEST_H
#define PBS_SELFTEST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/pbs.h>

#include "../kselftest_harness.h"

#ifndef SCHED_PBS
#define SCHED_PBS 8
#endif

#define DEVICE "/dev/pbs_plan"
#define PLAN_ID 4711

/* Length of a task in plans, and of the work of work(), which is far less. */
#define TASK_INSNS 20000000ull
#define WORK_ROUNDS 200000

/* A slot: process and task, or PBS_IDLE and PBS_NO_TASK. */
struct place {
	__u32 process;
	__u32 task;
	__u64 insns;
};

/* A plan of one CPU as it is written. */
struct written {
	__u64 bytes;
	char data[4096];
};

/* What all tests have: the device, and a CPU for the plan. */
struct scene {
	int fd;
	__u32 cpu;
	struct pbs_info info;
};

static inline void put(struct written *plan, const void *data, size_t bytes)
{
	if (plan->bytes + bytes > sizeof(plan->data))
		abort();
	memcpy(plan->data + plan->bytes, data, bytes);
	plan->bytes += bytes;
}

/* Adds the processes of @places, in ascending order. Returns their number. */
static inline __u32 put_processes(struct written *plan, const struct place *places, int count)
{
	struct pbs_plan_process process = { .deadline_ns = PBS_NO_DEADLINE };
	__u64 least = 0;
	__u32 processes = 0;

	for (;;) {
		__u64 next = PBS_IDLE;

		for (int i = 0; i < count; i++)
			if (places[i].process >= least && places[i].process < next)
				next = places[i].process;
		if (next == PBS_IDLE)
			return processes;
		process.id = next;
		put(plan, &process, sizeof(process));
		processes++;
		least = next + 1;
	}
}

/* Makes a plan of one CPU with those slots and edges, and the defaults for all else. */
static inline void make_plan(struct written *plan, __u32 cpu, const struct place *places,
			     int count, const struct pbs_plan_edge *edges, int edge_count)
{
	struct pbs_plan_header header = {
		.magic = PBS_PLAN_MAGIC,
		.version = PBS_VERSION,
		.header_bytes = sizeof(header),
		.plan_id = PLAN_ID,
		.nr_cpus = 1,
	};
	struct pbs_plan_cpu head = { .cpu = cpu, .nr_slots = count, .nr_edges = edge_count };

	plan->bytes = 0;
	put(plan, &header, sizeof(header));
	put(plan, &head, sizeof(head));
	head.nr_processes = put_processes(plan, places, count);
	memcpy(plan->data + sizeof(header), &head, sizeof(head));
	for (int i = 0; i < count; i++) {
		struct pbs_plan_slot slot = {
			.length_insns = places[i].insns,
			.process = places[i].process,
			.task = places[i].task,
		};

		put(plan, &slot, sizeof(slot));
	}
	for (int i = 0; i < edge_count; i++)
		put(plan, &edges[i], sizeof(edges[i]));
	header.total_bytes = plan->bytes;
	memcpy(plan->data, &header, sizeof(header));
}

/* Writes a plan. Returns 0 or an errno. */
static inline int write_plan(int fd, const struct written *plan)
{
	ssize_t written = write(fd, plan->data, plan->bytes);

	if (written < 0)
		return errno;
	return (__u64)written == plan->bytes ? 0 : EIO;
}

/* Instructions of an idle slot of so many milliseconds, in which processes can be attached. */
static inline __u64 insns_of_ms(const struct scene *scene, __u64 ms)
{
	return scene->info.rate_insns_per_ms * ms;
}

/* Attaches a thread, 0: the caller, to a process of a plan. Returns 0 or an errno. */
static inline int attach(int fd, pid_t pid, __u32 process)
{
	struct pbs_attach attach = { .pid = pid, .process = process };

	return ioctl(fd, PBS_IOC_ATTACH, &attach) ? errno : 0;
}

/* Ends a task of the caller. Returns 0 or an errno. */
static inline int end_task(int fd)
{
	struct pbs_task_end end = { .task = PBS_NO_TASK };

	return ioctl(fd, PBS_IOC_TASK_END, &end) ? errno : 0;
}

/* Work in user space. */
static inline void work(void)
{
	for (int i = 0; i < WORK_ROUNDS; i++)
		__asm__ __volatile__("" : : : "memory");
}

/*
 * Starts a process of the plan that does the work of its tasks. It exits with the errno of a call
 * that failed, or with 0.
 */
static inline pid_t start(int fd, __u32 process, int tasks)
{
	pid_t pid = fork();
	int error;

	if (pid)
		return pid;
	error = attach(fd, 0, process);
	for (int i = 0; i < tasks && !error; i++) {
		work();
		error = end_task(fd);
	}
	_exit(error);
}

/* How a child ended: its exit status, or -1 for any other end. */
static inline int status_of(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

/*
 * Reads the next event of a kind, of this plan or of one that is gone. Returns whether there was
 * one within ten seconds: the time in which a hung test is found, and not a bound of the class.
 */
static inline int next_event(int fd, __u16 kind, struct pbs_event *event)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	while (poll(&poll_fd, 1, 10000) == 1) {
		if (read(fd, event, sizeof(*event)) != sizeof(*event))
			return 0;
		if (event->kind == kind && (event->plan_id == PLAN_ID || !event->plan_id))
			return 1;
	}
	return 0;
}

/* Number of the last CPU that is online. */
static inline __u32 last_cpu(void)
{
	return sysconf(_SC_NPROCESSORS_ONLN) - 1;
}

/* Opens the device. Without the class, or the right to use it, a test is skipped. */
static inline const char *open_scene(struct scene *scene)
{
	cpu_set_t cpus;

	scene->fd = open(DEVICE, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (scene->fd < 0)
		return errno == ENOENT ? "no " DEVICE ": CONFIG_SCHED_CLASS_PBS is off"
				       : DEVICE " can't be opened: run this as root";
	if (ioctl(scene->fd, PBS_IOC_INFO, &scene->info))
		return "PBS_IOC_INFO failed";
	/* The test is elsewhere, where there is an elsewhere. */
	scene->cpu = last_cpu();
	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	if (scene->cpu)
		sched_setaffinity(0, sizeof(cpus), &cpus);
	return NULL;
}

static inline void close_scene(struct scene *scene)
{
	/* No plan is left, whatever the test did. */
	ioctl(scene->fd, PBS_IOC_DROP, &scene->cpu);
	close(scene->fd);
}

FIXTURE(pbs) {
	struct scene scene;
};

FIXTURE_SETUP(pbs)
{
	const char *missing = open_scene(&self->scene);

	if (missing)
		SKIP(return, "%s", missing);
}

FIXTURE_TEARDOWN(pbs)
{
	close_scene(&self->scene);
}

#endif
