// SPDX-License-Identifier: GPL-2.0
/* Threads that enter SCHED_PBS, and who may let them. */
#include "pbs_selftest.h"

static const struct place one[] = { { 1, 0, TASK_INSNS } };

TEST_F(pbs, no_other_way_leads_into_the_class)
{
	struct sched_param param = {};

	ASSERT_EQ(sched_setscheduler(0, SCHED_PBS, &param), -1);
	ASSERT_EQ(errno, EPERM);
}

TEST_F(pbs, a_process_that_no_plan_has_is_refused)
{
	ASSERT_EQ(attach(self->scene.fd, 0, 1), ENOENT);
	ASSERT_EQ(sched_getscheduler(0), SCHED_OTHER);
}

TEST_F(pbs, an_attached_thread_has_the_policy_and_the_cpu_of_its_plan)
{
	struct scene *scene = &self->scene;
	struct written plan;
	pid_t pid;

	make_plan(&plan, scene->cpu, one, 1, NULL, 0);
	ASSERT_EQ(write_plan(scene->fd, &plan), 0);
	pid = fork();
	if (!pid) {
		__s32 caller = 0;
		cpu_set_t cpus;

		if (attach(scene->fd, 0, 1))
			_exit(1);
		if (sched_getscheduler(0) != SCHED_PBS)
			_exit(2);
		if (sched_getaffinity(0, sizeof(cpus), &cpus) || CPU_COUNT(&cpus) != 1 ||
		    !CPU_ISSET(scene->cpu, &cpus))
			_exit(3);
		if (attach(scene->fd, 0, 1) != EBUSY)
			_exit(4);
		if (sched_setaffinity(0, sizeof(cpus), &cpus) != -1 || errno != EBUSY)
			_exit(5);
		if (ioctl(scene->fd, PBS_IOC_DETACH, &caller))
			_exit(6);
		if (sched_getscheduler(0) != SCHED_OTHER)
			_exit(7);
		_exit(0);
	}
	ASSERT_EQ(status_of(pid), 0);
}

TEST_F(pbs, children_begin_outside_of_the_class)
{
	struct scene *scene = &self->scene;
	struct written plan;
	pid_t pid;

	make_plan(&plan, scene->cpu, one, 1, NULL, 0);
	ASSERT_EQ(write_plan(scene->fd, &plan), 0);
	pid = fork();
	if (!pid) {
		pid_t child;

		if (attach(scene->fd, 0, 1))
			_exit(1);
		child = fork();
		if (!child)
			_exit(sched_getscheduler(0) == SCHED_OTHER ? 0 : 2);
		_exit(status_of(child));
	}
	ASSERT_EQ(status_of(pid), 0);
}

TEST_F(pbs, the_capability_is_asked_for_at_each_call)
{
	struct scene *scene = &self->scene;
	struct written plan;
	pid_t pid;

	make_plan(&plan, scene->cpu, one, 1, NULL, 0);
	pid = fork();
	if (!pid) {
		if (setuid(65534))
			_exit(1);
		if (write_plan(scene->fd, &plan) != EPERM)
			_exit(2);
		if (attach(scene->fd, 0, 1) != EPERM)
			_exit(3);
		if (!ioctl(scene->fd, PBS_IOC_DROP, &scene->cpu) || errno != EPERM)
			_exit(4);
		_exit(0);
	}
	ASSERT_EQ(status_of(pid), 0);
}

TEST_HARNESS_MAIN
