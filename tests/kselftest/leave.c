// SPDX-License-Identifier: GPL-2.0
/* The ways in which threads leave their plan, and those in which they do not. */
#include "pbs_selftest.h"

#include <sys/ptrace.h>

static const struct place one[] = { { 1, 0, TASK_INSNS } };

/* Puts a plan of one process in force. */
static int install(struct scene *scene)
{
	struct written plan;

	make_plan(&plan, scene->cpu, one, 1, NULL, 0);
	return write_plan(scene->fd, &plan);
}

TEST_F(pbs, exec_does_not_leave)
{
	struct scene *scene = &self->scene;
	struct pbs_event attached, ended;
	pid_t pid;

	ASSERT_EQ(install(scene), 0);
	pid = fork();
	if (!pid) {
		if (attach(scene->fd, 0, 1))
			_exit(1);
		execl("/bin/sh", "sh", "-c", "exit 7", NULL);
		_exit(2);
	}
	ASSERT_EQ(status_of(pid), 7);
	ASSERT_TRUE(next_event(scene->fd, PBS_EV_ATTACHED, &attached));
	ASSERT_TRUE(next_event(scene->fd, PBS_EV_PROCESS_ENDED, &ended));
	ASSERT_EQ(attached.pid, pid);
	ASSERT_EQ(ended.process, 1);
}

TEST_F(pbs, another_policy_leaves)
{
	struct scene *scene = &self->scene;
	struct pbs_event event;
	pid_t pid;

	ASSERT_EQ(install(scene), 0);
	pid = fork();
	if (!pid) {
		struct sched_param param = {};

		if (attach(scene->fd, 0, 1))
			_exit(1);
		if (sched_setscheduler(0, SCHED_OTHER, &param))
			_exit(2);
		_exit(end_task(scene->fd) == ESRCH ? 0 : 3);
	}
	ASSERT_EQ(status_of(pid), 0);
	ASSERT_TRUE(next_event(scene->fd, PBS_EV_EJECTED, &event));
	ASSERT_EQ(event.reason, PBS_EJECT_POLICY);
}

TEST_F(pbs, a_killed_process_ends)
{
	struct scene *scene = &self->scene;
	struct pbs_event event;
	pid_t pid;

	ASSERT_EQ(install(scene), 0);
	pid = fork();
	if (!pid) {
		attach(scene->fd, 0, 1);
		for (;;)
			;
	}
	ASSERT_TRUE(next_event(scene->fd, PBS_EV_ATTACHED, &event));
	ASSERT_EQ(kill(pid, SIGKILL), 0);
	ASSERT_TRUE(next_event(scene->fd, PBS_EV_PROCESS_ENDED, &event));
	ASSERT_EQ(status_of(pid), -1);
}

TEST_F(pbs, a_dropped_plan_lets_its_threads_go_on)
{
	struct scene *scene = &self->scene;
	struct pbs_event event;
	pid_t pid;

	ASSERT_EQ(install(scene), 0);
	pid = fork();
	if (!pid) {
		if (attach(scene->fd, 0, 1))
			_exit(1);
		while (sched_getscheduler(0) == SCHED_PBS)
			work();
		_exit(0);
	}
	ASSERT_TRUE(next_event(scene->fd, PBS_EV_ATTACHED, &event));
	ASSERT_EQ(ioctl(scene->fd, PBS_IOC_DROP, &scene->cpu), 0);
	ASSERT_EQ(status_of(pid), 0);
	ASSERT_TRUE(next_event(scene->fd, PBS_EV_EJECTED, &event));
	ASSERT_EQ(event.reason, PBS_EJECT_DROPPED);
}

TEST_F(pbs, a_traced_thread_stops_and_goes_on)
{
	struct scene *scene = &self->scene;
	struct pbs_event event;
	int status;
	pid_t pid;

	ASSERT_EQ(install(scene), 0);
	pid = fork();
	if (!pid) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) || attach(scene->fd, 0, 1))
			_exit(1);
		raise(SIGSTOP);
		work();
		_exit(end_task(scene->fd));
	}
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	ASSERT_TRUE(WIFSTOPPED(status));
	ASSERT_EQ(sched_getscheduler(pid), SCHED_PBS);
	ASSERT_EQ(ptrace(PTRACE_CONT, pid, NULL, NULL), 0);
	ASSERT_EQ(status_of(pid), 0);
	ASSERT_TRUE(next_event(scene->fd, PBS_EV_TASK_ENDED, &event));
}

TEST_HARNESS_MAIN
