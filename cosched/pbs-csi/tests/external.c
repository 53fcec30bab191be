/* SPDX-License-Identifier: GPL-2.0 */
/* An external scheduler: gives each waiting task the first of its variants. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pbs_csi.h"

static struct pbs_csimf_header header;
static const char *directory;
static int file;

static void die(const char *why)
{
	perror(why);
	exit(1);
}

/* The part of the header that changes, behind the generation. */
static void write_state(void)
{
	size_t at = offsetof(struct pbs_csimf_header, status);

	if (pwrite(file, (char *)&header + at, sizeof(header) - at, at) < 0)
		die("state");
}

static void set_lock(short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET };

	if (fcntl(file, F_OFD_SETLKW, &lock))
		die("lock");
}

static uint64_t start_ticks(void)
{
	char text[1024] = "";
	FILE *stat = fopen("/proc/self/stat", "r");
	char *field;
	int number;

	if (!stat || !fgets(text, sizeof(text), stat))
		die("/proc/self/stat");
	fclose(stat);
	field = strrchr(text, ')');
	for (number = 2; field && number < 22; number++)
		field = strchr(field + 1, ' ');
	return field ? strtoull(field, NULL, 10) : 0;
}

static void lock(void)
{
	set_lock(F_WRLCK);
	if (pread(file, &header, sizeof(header), 0) != sizeof(header))
		die("header");
	if (memcmp(header.magic, PBS_CSIMF_MAGIC, 8) || header.layout != PBS_CSI_LAYOUT)
		exit(2);
	if (header.holder_pid)
		exit(3);
	header.holder_pid = getpid();
	header.holder_start_ticks = start_ticks();
	write_state();
}

static void unlock(void)
{
	header.holder_pid = 0;
	header.holder_start_ticks = 0;
	write_state();
	set_lock(F_UNLCK);
}

static void next_generation(void)
{
	header.generation++;
	if (pwrite(file, &header.generation, 8, offsetof(struct pbs_csimf_header, generation)) != 8)
		die("generation");
}

static void schedule(uint32_t slot, uint32_t round)
{
	off_t at = PBS_CSI_ENTRIES_AT + slot * sizeof(struct pbs_csimf_entry);
	struct pbs_csimf_entry entry;
	struct pbs_csi csi;
	char path[4096];
	uint32_t best = 0;
	int own;

	if (pread(file, &entry, sizeof(entry), at) != sizeof(entry))
		die("entry");
	if (entry.state != PBS_CSI_WAITING)
		return;
	snprintf(path, sizeof(path), "%s/" PBS_CSI_PREFIX "%" PRIu32 "-%" PRIu64 "-%" PRIu64,
		 directory, entry.owner_pid, entry.owner_start_ticks, entry.task);
	own = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (own < 0 || pread(own, &csi, sizeof(csi), 0) != sizeof(csi))
		return;
	if (!csi.variant_count)
		return;
	if (pwrite(own, &best, 4, offsetof(struct pbs_csi, best_index)) != 4)
		die(path);
	close(own);
	entry.scheduled = 1;
	entry.round = round;
	entry.device = csi.variants[0].device;
	entry.units = csi.variants[0].threads;
	entry.runtime_ns = csi.variants[0].runtime_ns;
	if (pwrite(file, &entry, sizeof(entry), at) != sizeof(entry))
		die("entry");
}

int main(int count, char **words)
{
	struct timespec now;
	uint32_t slot;
	char path[4096];

	if (count != 2)
		return 4;
	directory = words[1];
	snprintf(path, sizeof(path), "%s/" PBS_CSIMF_NAME, directory);
	file = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (file < 0)
		die(path);
	lock();
	if (header.status == PBS_CSI_RUNNING)
		return 5;
	clock_gettime(CLOCK_MONOTONIC, &now);
	header.started_ns = now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
	header.master_pid = getpid();
	header.master_start_ticks = start_ticks();
	header.status = PBS_CSI_RUNNING;
	write_state();
	next_generation();
	for (slot = 0; slot < header.entry_limit && slot < PBS_CSI_ENTRIES; slot++)
		schedule(slot, slot + 1);
	header.status = PBS_CSI_DONE;
	write_state();
	next_generation();
	unlock();
	return 0;
}
