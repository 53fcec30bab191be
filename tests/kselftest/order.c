// SPDX-License-Identifier: GPL-2.0
/* The order in which the tasks of a plan run. */
#include "pbs_selftest.h"

TEST_F(pbs, tasks_end_in_the_order_of_slots)
{
	struct scene *scene = &self->scene;
	/* Time to attach, then processes in another order than their numbers. */
	struct place places[] = {
		{ PBS_IDLE, PBS_NO_TASK, insns_of_ms(scene, 300) },
		{ 3, 0, TASK_INSNS },
		{ 1, 0, TASK_INSNS },
		{ 2, 0, TASK_INSNS },
		{ 1, 1, TASK_INSNS },
	};
	struct pbs_event event;
	struct written plan;
	pid_t pids[3];

	make_plan(&plan, scene->cpu, places, ARRAY_SIZE(places), NULL, 0);
	ASSERT_EQ(write_plan(scene->fd, &plan), 0);
	for (int i = 0; i < 3; i++)
		pids[i] = start(scene->fd, i + 1, i == 0 ? 2 : 1);
	for (size_t i = 1; i < ARRAY_SIZE(places); i++) {
		ASSERT_TRUE(next_event(scene->fd, PBS_EV_TASK_ENDED, &event));
		EXPECT_EQ(event.process, places[i].process);
		EXPECT_EQ(event.task, places[i].task);
		EXPECT_GT(event.retired_insns, 0);
		EXPECT_LT(event.retired_insns, TASK_INSNS);
	}
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(status_of(pids[i]), 0);
	ASSERT_TRUE(next_event(scene->fd, PBS_EV_PLAN_ENDED, &event));
	EXPECT_EQ(event.value, 0);
}

TEST_F(pbs, a_task_waits_for_the_one_that_it_follows)
{
	struct scene *scene = &self->scene;
	struct place places[] = {
		{ PBS_IDLE, PBS_NO_TASK, insns_of_ms(scene, 300) },
		{ 1, 0, TASK_INSNS },
		{ 2, 0, TASK_INSNS },
	};
	struct pbs_plan_edge edge = { 1, 0, 2, 0 };
	struct pbs_event event;
	struct written plan;
	pid_t pids[2];

	make_plan(&plan, scene->cpu, places, ARRAY_SIZE(places), &edge, 1);
	ASSERT_EQ(write_plan(scene->fd, &plan), 0);
	for (int i = 0; i < 2; i++)
		pids[i] = start(scene->fd, i + 1, 1);
	ASSERT_TRUE(next_event(scene->fd, PBS_EV_TASK_ENDED, &event));
	EXPECT_EQ(event.process, 2);
	ASSERT_TRUE(next_event(scene->fd, PBS_EV_TASK_ENDED, &event));
	EXPECT_EQ(event.process, 1);
	for (int i = 0; i < 2; i++)
		EXPECT_EQ(status_of(pids[i]), 0);
}

TEST_F(pbs, a_circle_is_refused)
{
	struct place places[] = { { 1, 0, TASK_INSNS }, { 2, 0, TASK_INSNS } };
	struct pbs_plan_edge edges[] = { { 1, 0, 2, 0 }, { 2, 0, 1, 0 } };
	struct written plan;

	make_plan(&plan, self->scene.cpu, places, 2, edges, 2);
	ASSERT_EQ(write_plan(self->scene.fd, &plan), EINVAL);
}

TEST_HARNESS_MAIN
