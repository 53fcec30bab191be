// SPDX-License-Identifier: GPL-2.0
/* Plans that are refused, and plans that are read back. */
#include "pbs_selftest.h"

#include <stddef.h>

static const struct place two[] = { { 1, 0, TASK_INSNS }, { 2, 0, TASK_INSNS } };

/* Whether a CPU has a plan. */
static int has_plan(const struct scene *scene)
{
	struct pbs_get_plan get = { .cpu = scene->cpu };

	return ioctl(scene->fd, PBS_IOC_GET_PLAN, &get) == 0 || errno == ENOSPC;
}

TEST_F(pbs, a_wrong_plan_is_refused_whole_and_told_why)
{
	/* Bytes of the plan that are overwritten by 0xff. */
	static const struct {
		size_t offset;
		size_t bytes;
	} wrong[] = {
		{ offsetof(struct pbs_plan_header, magic), 4 },
		{ offsetof(struct pbs_plan_header, version), 2 },
		{ offsetof(struct pbs_plan_header, header_bytes), 2 },
		{ offsetof(struct pbs_plan_header, total_bytes), 8 },
		{ offsetof(struct pbs_plan_header, flags), 8 },
		{ sizeof(struct pbs_plan_header) + sizeof(struct pbs_plan_cpu) +
		  offsetof(struct pbs_plan_process, flags), 4 },
		/* The processes do not ascend. */
		{ sizeof(struct pbs_plan_header) + sizeof(struct pbs_plan_cpu) +
		  offsetof(struct pbs_plan_process, id), 2 },
	};
	struct scene *scene = &self->scene;
	struct pbs_error error;
	struct written plan;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		make_plan(&plan, scene->cpu, two, 2, NULL, 0);
		memset(plan.data + wrong[i].offset, 0xff, wrong[i].bytes);
		ASSERT_EQ(write_plan(scene->fd, &plan), EINVAL) {
			TH_LOG("wrong plan %zu", i);
		}
		ASSERT_EQ(ioctl(scene->fd, PBS_IOC_ERROR, &error), 0);
		ASSERT_EQ(error.error, EINVAL);
		ASSERT_NE(error.text[0], 0);
		ASSERT_FALSE(has_plan(scene));
	}
}

TEST_F(pbs, a_plan_in_part_is_refused)
{
	struct scene *scene = &self->scene;
	struct written plan;

	make_plan(&plan, scene->cpu, two, 2, NULL, 0);
	for (__u64 bytes = plan.bytes - 1; bytes > plan.bytes - 40; bytes--) {
		plan.bytes = bytes;
		ASSERT_EQ(write_plan(scene->fd, &plan), EINVAL);
		ASSERT_FALSE(has_plan(scene));
	}
}

TEST_F(pbs, a_cpu_that_is_not_there_has_no_plan)
{
	struct written plan;

	make_plan(&plan, self->scene.info.nr_cpu_ids, two, 2, NULL, 0);
	ASSERT_EQ(write_plan(self->scene.fd, &plan), ENODEV);
}

TEST_F(pbs, a_process_of_another_cpu_is_refused)
{
	struct scene *scene = &self->scene;
	struct written plan;
	__u32 other = 0;

	if (!scene->cpu)
		SKIP(return, "there is one CPU only");
	make_plan(&plan, scene->cpu, two, 2, NULL, 0);
	ASSERT_EQ(write_plan(scene->fd, &plan), 0);
	make_plan(&plan, other, two, 2, NULL, 0);
	ASSERT_EQ(write_plan(scene->fd, &plan), EEXIST);
	ASSERT_TRUE(has_plan(scene));
}

TEST_F(pbs, a_plan_is_read_back)
{
	struct scene *scene = &self->scene;
	struct pbs_plan_slot *slots;
	struct pbs_plan_header *header;
	char data[4096];
	struct pbs_get_plan get = {
		.cpu = scene->cpu,
		.buffer = (__u64)(uintptr_t)data,
		.bytes = sizeof(data),
	};
	struct written plan;

	make_plan(&plan, scene->cpu, two, 2, NULL, 0);
	ASSERT_EQ(write_plan(scene->fd, &plan), 0);
	ASSERT_EQ(ioctl(scene->fd, PBS_IOC_GET_PLAN, &get), 0);
	header = (struct pbs_plan_header *)data;
	ASSERT_EQ(header->magic, PBS_PLAN_MAGIC);
	ASSERT_EQ(header->plan_id, PLAN_ID);
	ASSERT_EQ(header->total_bytes, get.bytes);
	slots = (struct pbs_plan_slot *)(data + get.bytes) - 2;
	ASSERT_EQ(slots[0].process, 1);
	ASSERT_EQ(slots[1].process, 2);
	ASSERT_EQ(slots[1].length_insns, TASK_INSNS);
}

TEST_HARNESS_MAIN
