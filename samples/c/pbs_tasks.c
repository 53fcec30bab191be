// SPDX-License-Identifier: GPL-2.0
/*
 * A program of several tasks that marks their ends itself, and prints its place in
 * the plan.
 *
 *	cc -O2 -Inode/pbs-uapi/include -Iinclude/uapi samples/c/pbs_tasks.c -o pbs_tasks
 *	pbs_tasks TASKS
 *
 * Each task counts to ten million.  Without a plan the program simply does its work.
 */
#include <stdio.h>

#include <sched_pbs/task.h>

int main(int argc, char **argv)
{
	int tasks = argc > 1 ? atoi(argv[1]) : 3;
	struct sched_pbs_process own = sched_pbs_attach();
	unsigned long long deadline_unix_ns;

	if (own.device < 0 && errno) {
		perror("pbs_tasks: attach");
		return 1;
	}
	if (!sched_pbs_number("SCHED_PBS_DEADLINE_UNIX_NS", &deadline_unix_ns))
		printf("deadline %llu\n", deadline_unix_ns);
	for (int task = 0; task < tasks; task++) {
		__s64 left_insns;

		for (volatile int i = 0; i < 10000000; i++)
			;
		if (!sched_pbs_task_left(&own, &left_insns))
			printf("task %d: %lld instructions left\n", task, (long long)left_insns);
		if (sched_pbs_task_end(&own, NULL)) {
			perror("pbs_tasks: end of a task");
			return 1;
		}
		printf("task %d has ended\n", task);
	}
	sched_pbs_leave(&own);
	return 0;
}
