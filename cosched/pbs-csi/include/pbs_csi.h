/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared memory of co-scheduled processes, "shm layout 1", for schedulers that are not
 * of pbs-runtime (thesis, section 5.2.2).  All numbers are in the machine's own order.
 *
 * A directory, /dev/shm if nothing else is said, has "pbs-csimf" of PBS_CSIMF_BYTES, and
 * per waiting task "pbs-csi-PID-START-TASK" (its entry's owner_pid, owner_start_ticks and
 * task) of PBS_CSI_BYTES.  All are of mode 0600, or of 0660
 * and of its group where one shares them.
 *
 * Lock before reading or writing anything but the generation: fcntl(fd, F_OFD_SETLK) of
 * type F_WRLCK over the whole of pbs-csimf (l_start = l_len = 0), on an open file of your
 * own.  The kernel releases it if you are killed.  While you hold it, have your pid and
 * start time in holder_pid and holder_start_ticks; write 0 to both before you unlock.  If
 * you find another holder there he was killed: let one of the runtime's processes repair.
 *
 * To compute for all, with the lock: if status is PBS_CSI_RUNNING, another one is master.
 * Else write master_pid, master_start_ticks (field 22 of /proc/PID/stat), started_ns
 * (CLOCK_MONOTONIC) and status = PBS_CSI_RUNNING, then add 1 to the generation; of each
 * waiting entry clear scheduled, round, priority, units and runtime_ns, and set device to
 * PBS_CSI_NONE.  Unlock, compute, lock.  If status, master and generation are still yours:
 * write best_index of each CSI, then scheduled = 1, round (from 1), priority, device, units
 * and runtime_ns of its entry; then status = PBS_CSI_DONE; then add 1 to the generation,
 * never to 0.  Owners fetch before their next task.  Be done within a second: a master that
 * is not loses its part.
 *
 * The content is what members of the group have written: copy it, look at the copy, and
 * trust no count, index or name.  A file may become shorter at any time; pread() then
 * answers with less, where a mapping would end you with SIGBUS.
 */
#ifndef PBS_CSI_H
#define PBS_CSI_H

#include <stdint.h>

#define PBS_CSI_LAYOUT		1
#define PBS_CSIMF_NAME		"pbs-csimf"
#define PBS_CSI_PREFIX		"pbs-csi-"
#define PBS_CSIMF_MAGIC		"PBSCSIMF"
#define PBS_CSI_MAGIC		"PBS--CSI"

#define PBS_CSIMF_BYTES		262144
#define PBS_CSI_BYTES		2048
#define PBS_CSI_DEVICES		32	/* at PBS_CSI_DEVICES_AT of the CSIMF */
#define PBS_CSI_DEVICES_AT	128
#define PBS_CSI_ENTRIES		2031	/* at PBS_CSI_ENTRIES_AT of the CSIMF */
#define PBS_CSI_ENTRIES_AT	2176
#define PBS_CSI_DEPENDENCIES	48
#define PBS_CSI_VARIANTS	50
#define PBS_CSI_NONE		UINT32_MAX

enum pbs_csi_status {
	PBS_CSI_NOT_STARTED = 0,
	PBS_CSI_RUNNING = 1,
	PBS_CSI_DONE = 2,
};

enum pbs_csi_state {
	PBS_CSI_FREE = 0,
	PBS_CSI_WAITING = 1,
	PBS_CSI_IN_EXECUTION = 2,	/* keeps its variant; its CSI is gone */
};

enum pbs_csi_model {
	PBS_CSI_CPU = 0,
	PBS_CSI_OMP = 1,
	PBS_CSI_GPU = 2,
	PBS_CSI_CUDA = 3,
	PBS_CSI_OCL = 4,
};

struct pbs_csimf_header {
	char magic[8];
	uint32_t layout;
	uint32_t header_bytes;
	uint32_t device_bytes;
	uint32_t device_capacity;
	uint32_t entry_bytes;
	uint32_t entry_capacity;
	uint32_t csi_bytes;
	uint32_t reserved;
	uint8_t boot_id[16];
	uint64_t pid_namespace;		/* its inode | that of time << 32, unless the first */
	uint64_t generation;		/* of 8 bytes at once; half of one is only looked at again */
	uint32_t status;		/* enum pbs_csi_status */
	uint32_t holder_pid;
	uint64_t holder_start_ticks;
	uint64_t master_start_ticks;
	uint32_t master_pid;
	uint32_t device_count;
	uint64_t submissions;
	uint64_t started_ns;
	uint32_t entry_limit;		/* entries from here on were never used */
	uint32_t reserved_end;
};

struct pbs_csimf_device {
	char name[32];
	uint32_t models;		/* 1 << enum pbs_csi_model */
	uint32_t count;			/* of the CPU: threads */
	uint64_t reserved[3];
};

struct pbs_csimf_entry {
	char name[32];			/* PID-TASK */
	uint64_t owner_start_ticks;
	uint32_t owner_pid;
	uint8_t state;			/* enum pbs_csi_state */
	uint8_t scheduled;
	uint8_t ready;
	uint8_t reserved_flags;
	uint64_t task;
	uint64_t submission;
	uint64_t registered_ns;		/* CLOCK_MONOTONIC */
	uint64_t priority;		/* within a round, greater goes first */
	uint32_t round;
	uint32_t capabilities;		/* 1 << enum pbs_csi_model */
	uint32_t device;		/* in the queue of this device, or PBS_CSI_NONE */
	uint32_t units;			/* devices or threads there */
	uint64_t expected_end_ns;	/* in execution: CLOCK_MONOTONIC */
	uint64_t runtime_ns;
	uint64_t acknowledged;		/* the generation its owner has fetched */
	uint32_t instance;		/* in execution: the first of its devices or threads */
	uint32_t reserved;
};

struct pbs_csi_variant {
	uint32_t model;			/* enum pbs_csi_model */
	uint32_t threads;
	uint64_t runtime_ns;
	uint32_t device;
	uint32_t reserved;
};

struct pbs_csi {
	char magic[8];
	uint32_t layout;
	uint32_t owner_pid;
	uint64_t owner_start_ticks;
	uint64_t task;
	uint32_t best_index;		/* or PBS_CSI_NONE */
	uint32_t dependency_count;
	uint32_t reverse_count;
	uint32_t variant_count;
	uint64_t dependencies[PBS_CSI_DEPENDENCIES];	/* the last ones, if it has more */
	uint64_t reverse_dependencies[PBS_CSI_DEPENDENCIES];
	struct pbs_csi_variant variants[PBS_CSI_VARIANTS];
	uint64_t transfer_ns;		/* to another memory */
	uint32_t is_transfer;
	uint32_t reserved;
	uint64_t reserved_end[2];
};

#endif /* PBS_CSI_H */
