/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A program that is a process of a plan, and marks the ends of its tasks itself.
 *
 *	struct sched_pbs_process own = sched_pbs_attach();
 *
 *	for (...) {
 *		work();
 *		if (sched_pbs_task_end(&own, NULL))
 *			perror("end of the task");
 *	}
 *
 * A task that ends by a message to another process ends with sched_pbs_send(); the
 * task that waits for that message begins in sched_pbs_receive().
 *
 * The job has attaches = "itself" (Documentation/jobs.rst).  Without a plan, also
 * after the plan was dropped, the calls do nothing and succeed: the program simply
 * does its work.  The calls are those of Documentation/pbs-uapi.rst, for the thread
 * that attached; a failure sets errno.  The header needs POSIX.1-2008.
 */
#ifndef SCHED_PBS_TASK_H
#define SCHED_PBS_TASK_H

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/types.h>
#include <unistd.h>

#include <linux/pbs.h>

#ifndef O_CLOEXEC
#error "O_CLOEXEC is missing: define _POSIX_C_SOURCE as 200809L or more before all headers"
#endif

/* The process of the plan that this program is. */
struct sched_pbs_process {
	int device;			/* -1: the program is not part of a plan */
	__u32 process;			/* its number in the plan */
};

/* The number in a variable of the environment; 0 if there is one, else -1. */
static inline int sched_pbs_number(const char *name, unsigned long long *number)
{
	const char *text = getenv(name);
	char *end;

	if (!text || *text < '0' || *text > '9')
		return -1;
	errno = 0;
	*number = strtoull(text, &end, 10);
	return *end || errno ? -1 : 0;
}

/*
 * Attach the caller to the process that PBS_PROCESS names, by the device
 * PBS_DEVICE; "pbsctl run" and pbsd set both.  Returns when the process is granted
 * the CPU.  On a failure, or without PBS_PROCESS, device is -1; errno is then 0 if
 * the program is not part of a plan.
 */
static inline struct sched_pbs_process sched_pbs_attach(void)
{
	struct sched_pbs_process own = { -1, PBS_IDLE };
	const char *path = getenv("PBS_DEVICE");
	unsigned long long number;
	struct pbs_attach attach;
	int error;

	if (!getenv("PBS_PROCESS")) {
		errno = 0;
		return own;
	}
	if (sched_pbs_number("PBS_PROCESS", &number) || number > 0xffffffffull) {
		errno = EINVAL;
		return own;
	}
	own.process = (__u32)number;
	own.device = open(path ? path : "/dev/pbs_plan", O_RDWR | O_CLOEXEC);
	if (own.device < 0)
		return own;
	memset(&attach, 0, sizeof(attach));
	attach.process = own.process;
	if (ioctl(own.device, PBS_IOC_ATTACH, &attach)) {
		error = errno;
		close(own.device);
		own.device = -1;
		errno = error;
	}
	return own;
}

/*
 * End the present task.  Returns when the next one begins, with its number in *next,
 * unless next is NULL.  PBS_NO_TASK: that was the last, or the program is not part of
 * a plan, or not any more.  Let the program's own work end its loop, not this number.
 */
static inline int sched_pbs_task_end(const struct sched_pbs_process *own, __u32 *next)
{
	struct pbs_task_end end;

	memset(&end, 0, sizeof(end));
	end.task = PBS_NO_TASK;
	end.next_task = PBS_NO_TASK;
	if (own->device >= 0 && ioctl(own->device, PBS_IOC_TASK_END, &end)) {
		if (errno != ESRCH)
			return -1;
		/* The plan was dropped, or the present one lacks the process. */
		errno = 0;
	}
	if (next)
		*next = end.next_task;
	return 0;
}

/*
 * Send a message and end the present task, for the end of which the receiver waits.
 * As write(2) of the whole message, with three differences:
 *
 * - What has gone out in part goes out whole, also after an interruption.  Fewer than
 *   bytes: the rest could not be written; errno says why, and the task goes on.
 * - After the whole message, the task ends.  The call returns when the next one begins.
 * - errno is 0 then, or says why the kernel refused the end of the task.  The message
 *   has gone out in both cases.
 *
 * -1: nothing has gone out, and the task goes on; errno is that of write(2).
 *
 * The receiver reads only after this task has ended: the message must fit into what
 * the pipe or socket holds.  Where no reader is left, SIGPIPE comes as from write(2).
 */
static inline ssize_t sched_pbs_send(const struct sched_pbs_process *own, int fd,
				     const void *message, size_t bytes)
{
	size_t sent = 0;
	ssize_t written;

	do {
		written = write(fd, (const char *)message + sent, bytes - sent);
		if (!written && bytes) {
			/* Not even a part of the rest, and no reason. */
			errno = EIO;
			written = -1;
		}
		if (written >= 0)
			sent += (size_t)written;
		else if (errno != EINTR || !sent)
			return sent ? (ssize_t)sent : -1;
	} while (sent < bytes);
	errno = 0;
	sched_pbs_task_end(own, NULL);
	return (ssize_t)sent;
}

/*
 * End the present task, wait for the task that sends the message, and receive it: the
 * task that waits for the message in the plan begins.  As read(2), with two
 * differences:
 *
 * - It is not interrupted (EINTR), because a second call would end a second task.
 * - errno is 0 after a read, or says why the kernel refused the end of the task.  The
 *   message is read in both cases.
 *
 * -1: nothing was read; errno is that of read(2).  The task has ended, unless the kernel
 * has refused that, which errno does not say then: go on with read(2), also for the rest
 * of a message of which a part was read.
 */
static inline ssize_t sched_pbs_receive(const struct sched_pbs_process *own, int fd,
					void *message, size_t bytes)
{
	ssize_t received;
	int refused = 0;

	if (sched_pbs_task_end(own, NULL))
		refused = errno;
	do
		received = read(fd, message, bytes);
	while (received < 0 && errno == EINTR);
	if (received >= 0)
		errno = refused;
	return received;
}

/*
 * The instructions that are left of the present task, in *left_insns; negative: the
 * task is longer than planned.  The count is that of the last time at which the
 * kernel read it.  Needs CAP_SYS_NICE (EPERM); ENOENT: there is no plan.
 */
static inline int sched_pbs_task_left(const struct sched_pbs_process *own, __s64 *left_insns)
{
	struct pbs_process state;

	if (own->device < 0) {
		errno = ENOENT;
		return -1;
	}
	memset(&state, 0, sizeof(state));
	state.process = own->process;
	if (ioctl(own->device, PBS_IOC_GET_PROCESS, &state))
		return -1;
	*left_insns = (__s64)(state.planned_insns - state.retired_insns);
	return 0;
}

/* Leave the plan; the program continues as a normal one. */
static inline void sched_pbs_leave(struct sched_pbs_process *own)
{
	__s32 caller = 0;

	if (own->device < 0)
		return;
	ioctl(own->device, PBS_IOC_DETACH, &caller);
	close(own->device);
	own->device = -1;
}

#endif /* SCHED_PBS_TASK_H */
