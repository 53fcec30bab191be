#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The service inside the machine.  /mnt is the folder shared with the host; the
# programs work on copies in memory, so that no task waits for the host.  What
# pbsctl says is kept in /mnt, and the host looks whether it is as promised.

set -u
mkdir /tmp/job
cd /tmp/job || exit
cp /mnt/input/* .

step()
{
	echo
	echo "== $*"
	echo
}

# submit NAME: submits its job, and keeps what was said and the exit status
submit()
{
	pbsctl submit "/mnt/$1.toml" 2>&1 | tee "/mnt/$1.said"
}

pbsd 2>/mnt/pbsd.log &
while ! pbsctl status >/dev/null 2>&1; do
	sleep 0.05
done

step 'A job is submitted, and runs'
submit archive

step 'Another comes while it runs'
submit urgent

step 'One that would be late is declined, with the deadline that would do'
submit hasty

step 'What runs, and what is planned'
pbsctl jobs

while pbsctl --json status | grep -q '"\(running\|planned\|waiting\)": [1-9]'; do
	sleep 0.1
done

step 'What has become of them'
pbsctl jobs
for job in 1 2; do
	pbsctl --json job "$job" >"/mnt/job-$job.json"
done
cp sums /mnt
kill %1
