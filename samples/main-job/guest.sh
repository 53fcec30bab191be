#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The main job inside the machine.  /mnt is the folder shared with the host;
# the programs work on copies in memory, so that no task waits for the host.

set -eu
mkdir /tmp/job
cd /tmp/job
cp /mnt/input/* .
pbsctl run /mnt/job.toml --report /mnt/report.json --gantt /mnt/gantt.svg
pbsctl trace /mnt/report.json --output /mnt/trace.json

# What was preempted and went on has done its work all the same: what was packed
# and unpacked is what it was, and the host looks at the sums.
cmp m68k m68k.out
cmp oldest oldest.out
cp sums /mnt
