// SPDX-License-Identifier: GPL-2.0
/* CPUs that go, and control groups. */
#include "pbs_selftest.h"

#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

static const struct place one[] = { { 1, 0, TASK_INSNS } };

/* Writes a text to a file. Returns 0 or an errno. */
static int put_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int error;

	if (fd < 0)
		return errno;
	error = write(fd, text, strlen(text)) < 0 ? errno : 0;
	close(fd);
	return error;
}

/* A process of the plan that works until it is outside of the class. */
static pid_t start_spinning(struct scene *scene)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	if (attach(scene->fd, 0, 1))
		_exit(1);
	while (sched_getscheduler(0) == SCHED_PBS)
		work();
	_exit(0);
}

TEST_F(pbs, a_cpu_that_goes_drops_its_plan)
{
	struct scene *scene = &self->scene;
	struct pbs_event event;
	struct written plan;
	char path[64];
	pid_t pid;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/online", scene->cpu);
	if (!scene->cpu || access(path, W_OK))
		SKIP(return, "no CPU can be taken away");
	make_plan(&plan, scene->cpu, one, 1, NULL, 0);
	ASSERT_EQ(write_plan(scene->fd, &plan), 0);
	pid = start_spinning(scene);
	ASSERT_TRUE(next_event(scene->fd, PBS_EV_ATTACHED, &event));
	ASSERT_EQ(put_text(path, "0"), 0);
	EXPECT_EQ(status_of(pid), 0);
	EXPECT_TRUE(next_event(scene->fd, PBS_EV_CPU_GONE, &event));
	EXPECT_EQ(write_plan(scene->fd, &plan), ENODEV);
	ASSERT_EQ(put_text(path, "1"), 0);
	ASSERT_EQ(write_plan(scene->fd, &plan), 0);
}

#define GROUPS "/tmp/pbs_selftest"
#define GROUP GROUPS "/frozen"

/* Mounts the control groups, and makes one for a process. Returns whether there is a freezer. */
static int make_group(void)
{
	mkdir(GROUPS, 0700);
	if (mount("none", GROUPS, "cgroup2", 0, NULL))
		return 0;
	if (mkdir(GROUP, 0700) && errno != EEXIST)
		return 0;
	return !access(GROUP "/cgroup.freeze", W_OK);
}

static void remove_group(void)
{
	rmdir(GROUP);
	umount(GROUPS);
	rmdir(GROUPS);
}

TEST_F(pbs, a_frozen_process_leaves_the_cpu_and_ends_when_thawed)
{
	struct scene *scene = &self->scene;
	struct place places[] = {
		{ 1, 0, 50 * TASK_INSNS },
		{ 2, 0, TASK_INSNS },
	};
	struct pbs_event event;
	struct written plan;
	char number[16];
	pid_t frozen, other;

	if (!make_group()) {
		remove_group();
		SKIP(return, "no freezer of control groups");
	}
	make_plan(&plan, scene->cpu, places, 2, NULL, 0);
	ASSERT_EQ(write_plan(scene->fd, &plan), 0);
	frozen = fork();
	if (!frozen) {
		if (attach(scene->fd, 0, 1))
			_exit(1);
		/* Until it was frozen once, which the test ends with a signal. */
		for (;;)
			work();
	}
	ASSERT_TRUE(next_event(scene->fd, PBS_EV_ATTACHED, &event));
	snprintf(number, sizeof(number), "%d", frozen);
	ASSERT_EQ(put_text(GROUP "/cgroup.procs", number), 0);
	ASSERT_EQ(put_text(GROUP "/cgroup.freeze", "1"), 0);
	/* Its slot is filled with the other one. */
	other = start(scene->fd, 2, 1);
	EXPECT_EQ(status_of(other), 0);
	ASSERT_EQ(put_text(GROUP "/cgroup.freeze", "0"), 0);
	ASSERT_EQ(kill(frozen, SIGKILL), 0);
	EXPECT_EQ(status_of(frozen), -1);
	EXPECT_TRUE(next_event(scene->fd, PBS_EV_PROCESS_ENDED, &event));
	remove_group();
}

TEST_HARNESS_MAIN
