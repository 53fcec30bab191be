#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The loop inside the machine.  /mnt is the folder shared with the host; the
# programs work on copies in memory, so that no task waits for the host.  What
# pbsctl says is kept in /mnt, and the host looks whether it is as promised.

set -u
mkdir /tmp/job
cd /tmp/job || exit
cp /mnt/input/* .
export PBS_HISTORY=/tmp/job/history.db

# Tasks here are short: what is told begins sooner than with the defaults.
set_config()
{
	echo "$2" >"/sys/kernel/pbs/config/$1" || exit 1
}
set_config sigma_t2_permille 1300
# t1 ends each slot, as in the thesis: spared in its last one, the late job would need
# nobody's answer here.
set_config t1_spares_last_slot 0
set_config t2_min_process_ns 52000000

step()
{
	echo
	echo "== $*"
	echo
}

# run NAME FILE...: a run of both jobs, whose status is the exit status
run()
{
	name=$1
	shift
	# Slots stay where they are planned, as in the thesis.
	pbsctl run /mnt/harvest.toml /mnt/archive.toml --config dispatch=thesis "$@" \
		--report "/mnt/$name.json"
	echo "$?" >"/mnt/$name.status"
}

step 'The jobs are measured once'
pbsctl profile /mnt/harvest.toml /mnt/archive.toml --report /mnt/profile.json || exit

# What comes in has grown by 60 %: the task that hashes it will be late.
cat more >>incoming

step 'They are run, and nobody answers what the node signals'
cp history.db before.db
run alone --max-replans 0 --history before.db

step 'They are run, and what is left is planned anew'
run loop --gantt /mnt/gantt.svg

step 'They are run again'
run again

step 'What is known now'
pbsctl history harvest
