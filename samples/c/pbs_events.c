// SPDX-License-Identifier: GPL-2.0
/*
 * Prints the events that a node holds, and with -f those that come, from the
 * mapped rings of its CPUs: one line each, with seq, time, CPU, kind, reason,
 * process, task and value.
 *
 *	pbs_events [-f]
 *
 * PBS_DEVICE names the device.  See struct pbs_ring in linux/pbs.h for the
 * order in which a ring is written and read.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/pbs.h>

struct reader {
	const struct pbs_ring *ring;	/* NULL: the CPU has none yet */
	__u64 position;			/* the next record of this ring */
};

enum look { EVENT, NOT_YET, LOST };

static struct reader *readers;
static struct pbs_info info;
static int device;

static void failed(const char *what)
{
	fprintf(stderr, "pbs_events: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Maps the rings that were not there the last time. */
static void map_rings(void)
{
	if (ioctl(device, PBS_IOC_INFO, &info))
		failed("PBS_IOC_INFO");
	if (!info.ring_bytes) {
		fprintf(stderr, "pbs_events: this kernel has no rings to map\n");
		exit(1);
	}
	if (!readers)
		readers = calloc(info.nr_cpu_ids, sizeof(*readers));
	if (!readers)
		failed("memory");
	for (__u32 cpu = 0; cpu < info.nr_cpu_ids; cpu++) {
		const struct pbs_ring *ring = readers[cpu].ring;

		if (ring)
			continue;
		ring = mmap(NULL, info.ring_bytes, PROT_READ, MAP_SHARED, device,
			    (off_t)(cpu * info.ring_bytes));
		if (ring == MAP_FAILED) {
			if (errno != ENOENT && errno != ENODEV)
				failed("mmap");
			continue;
		}
		if (ring->magic != PBS_RING_MAGIC || ring->version != PBS_RING_VERSION ||
		    ring->record_bytes != sizeof(struct pbs_event)) {
			fprintf(stderr, "pbs_events: a ring of another version\n");
			exit(1);
		}
		readers[cpu].ring = ring;
	}
}

/* Copies the record at the position of @reader. */
static enum look look(const struct reader *reader, struct pbs_event *event)
{
	const struct pbs_ring *ring = reader->ring;
	__u64 place = reader->position & (ring->capacity_records - 1);
	const char *record = (const char *)ring + ring->records_offset_bytes +
			     place * ring->record_bytes;

	if (reader->position >= __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE))
		return NOT_YET;
	memcpy(event, record, sizeof(*event));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (reader->position < __atomic_load_n(&ring->tail, __ATOMIC_RELAXED))
		return LOST;
	return EVENT;
}

/*
 * Looks for the event @seq in all rings.  Where a ring has overtaken its
 * reader, the reader goes on with what is left, and the events between are
 * missing.
 */
static int find(__u64 seq, struct pbs_event *found, __u64 *oldest)
{
	*oldest = ~0ull;
	for (__u32 cpu = 0; cpu < info.nr_cpu_ids; cpu++) {
		struct reader *reader = &readers[cpu];
		struct pbs_event event;
		enum look said = NOT_YET;

		while (reader->ring) {
			said = look(reader, &event);
			if (said == LOST)
				reader->position = __atomic_load_n(&reader->ring->tail,
								   __ATOMIC_ACQUIRE);
			else if (said == EVENT && event.seq < seq)
				reader->position++;
			else
				break;
		}
		if (said != EVENT)
			continue;
		if (event.seq == seq) {
			*found = event;
			reader->position++;
			return 1;
		}
		/* Only a ring that is full has lost anything. */
		if (__atomic_load_n(&reader->ring->tail, __ATOMIC_RELAXED) >= reader->position &&
		    reader->position && event.seq < *oldest)
			*oldest = event.seq;
	}
	return 0;
}

static void print(const struct pbs_event *event)
{
	printf("%llu %llu %u %u %u %d %d %llu\n", (unsigned long long)event->seq,
	       (unsigned long long)event->time_ns, event->cpu, event->kind, event->reason,
	       (int)event->process, (int)event->task, (unsigned long long)event->value);
}

/* Sleeps until there is the event @seq. */
static void wait_for(__u64 seq)
{
	struct pollfd fd = { .fd = device, .events = POLLIN };

	if (ioctl(device, PBS_IOC_SEEK, &seq))
		failed("PBS_IOC_SEEK");
	if (poll(&fd, 1, -1) < 0)
		failed("poll");
}

int main(int argc, char **argv)
{
	int follow = argc == 2 && !strcmp(argv[1], "-f");
	const char *path = getenv("PBS_DEVICE");
	__u64 seq, oldest;

	if (argc > 2 || (argc == 2 && !follow)) {
		fprintf(stderr, "usage: pbs_events [-f]\n");
		return 2;
	}
	if (!path)
		path = "/dev/pbs_plan";
	device = open(path, O_RDONLY | O_CLOEXEC);
	if (device < 0)
		failed(path);
	map_rings();
	seq = info.first_seq;
	for (;;) {
		struct pbs_event event;

		if (find(seq, &event, &oldest)) {
			print(&event);
			seq++;
		} else if (oldest != ~0ull) {
			fprintf(stderr, "pbs_events: %llu events are lost\n",
				(unsigned long long)(oldest - seq));
			seq = oldest;
		} else if (follow || seq < info.next_seq) {
			fflush(stdout);
			wait_for(seq);
			/* It may be the first of a CPU. */
			map_rings();
		} else {
			return 0;
		}
	}
}
