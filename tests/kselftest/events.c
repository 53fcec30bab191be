// SPDX-License-Identifier: GPL-2.0
/* Events, by read(2) and by mmap(2). */
#include "pbs_selftest.h"

#include <sys/mman.h>

static const struct place one[] = { { 1, 0, TASK_INSNS } };

/* Runs a plan of one task to its end. */
static int run_plan(struct scene *scene)
{
	struct written plan;

	make_plan(&plan, scene->cpu, one, 1, NULL, 0);
	if (write_plan(scene->fd, &plan))
		return -1;
	return status_of(start(scene->fd, 1, 1));
}

TEST_F(pbs, without_an_event_there_is_nothing_to_read)
{
	struct pollfd poll_fd = { .fd = self->scene.fd, .events = POLLIN };
	struct pbs_event event;

	ASSERT_EQ(read(self->scene.fd, &event, sizeof(event)), -1);
	ASSERT_EQ(errno, EAGAIN);
	ASSERT_EQ(poll(&poll_fd, 1, 0), 0);
	ASSERT_EQ(read(self->scene.fd, &event, sizeof(event) - 1), -1);
	ASSERT_EQ(errno, EINVAL);
}

TEST_F(pbs, a_plan_is_told_from_its_beginning_to_its_end)
{
	struct scene *scene = &self->scene;
	struct pbs_event event;
	__u64 next_seq;
	__u16 last = 0;

	ASSERT_EQ(run_plan(scene), 0);
	ASSERT_EQ(read(scene->fd, &event, sizeof(event)), (ssize_t)sizeof(event));
	ASSERT_EQ(event.kind, PBS_EV_PLAN_INSTALLED);
	ASSERT_EQ(event.value, 1);
	next_seq = event.seq + 1;
	while (last != PBS_EV_PLAN_ENDED) {
		struct pollfd poll_fd = { .fd = scene->fd, .events = POLLIN };

		ASSERT_EQ(poll(&poll_fd, 1, 10000), 1);
		ASSERT_EQ(read(scene->fd, &event, sizeof(event)), (ssize_t)sizeof(event));
		EXPECT_EQ(event.seq, next_seq);
		EXPECT_EQ(event.plan_id, PLAN_ID);
		next_seq = event.seq + 1;
		last = event.kind;
	}
}

TEST_F(pbs, a_position_can_be_set)
{
	struct scene *scene = &self->scene;
	struct pbs_event first, again;
	__u64 future = ~0ull;

	ASSERT_EQ(run_plan(scene), 0);
	ASSERT_EQ(read(scene->fd, &first, sizeof(first)), (ssize_t)sizeof(first));
	ASSERT_EQ(ioctl(scene->fd, PBS_IOC_SEEK, &first.seq), 0);
	ASSERT_EQ(read(scene->fd, &again, sizeof(again)), (ssize_t)sizeof(again));
	ASSERT_EQ(memcmp(&first, &again, sizeof(first)), 0);
	ASSERT_EQ(ioctl(scene->fd, PBS_IOC_SEEK, &future), -1);
	ASSERT_EQ(errno, EINVAL);
}

TEST_F(pbs, a_ring_is_mapped_for_reading_alone)
{
	struct scene *scene = &self->scene;
	struct pbs_event event, mapped;
	struct pbs_ring *ring;
	__u64 last, offset;

	ASSERT_EQ(run_plan(scene), 0);
	ASSERT_TRUE(next_event(scene->fd, PBS_EV_PLAN_ENDED, &event));
	offset = scene->cpu * scene->info.ring_bytes;
	ASSERT_EQ(mmap(NULL, scene->info.ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		       scene->fd, offset), MAP_FAILED);
	ASSERT_EQ(errno, EPERM);
	ring = mmap(NULL, scene->info.ring_bytes, PROT_READ, MAP_SHARED, scene->fd, offset);
	ASSERT_NE(ring, MAP_FAILED);
	ASSERT_EQ(ring->magic, PBS_RING_MAGIC);
	ASSERT_EQ(ring->record_bytes, sizeof(struct pbs_event));
	ASSERT_EQ(ring->cpu, scene->cpu);
	last = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) - 1;
	memcpy(&mapped, (char *)ring + ring->records_offset_bytes +
	       last % ring->capacity_records * ring->record_bytes, sizeof(mapped));
	ASSERT_EQ(memcmp(&event, &mapped, sizeof(event)), 0);
	munmap(ring, scene->info.ring_bytes);
}

TEST_HARNESS_MAIN
