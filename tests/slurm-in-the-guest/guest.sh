#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# In the guest, as root: Slurm as an operator sets it up after Documentation/slurm.rst, a
# service that runs the class, a planner, and jobs of a user.  What all of them said is kept in
# /mnt/log.

set -u
bad=0
LOG=/mnt/log
# In memory: what waits for the host lets the guest's time leap, and Slurm has patience by time.
KEPT=/var/log/pbs
EVENTS=/var/lib/pbs-slurm/events
LEDGER=/var/lib/pbs-slurm/cluster.db
HOME_ANN=/home/ann

expect()
{
	if [ "$2" = "$3" ]; then
		echo "ok: $1"
	else
		echo "error: $1: expected '$2', got '$3'"
		bad=1
	fi
}

keep()
{
	mkdir -p "$LOG"
	cp "$KEPT"/* "$EVENTS" /etc/slurm/slurm.conf "$HOME_ANN"/*.out "$LOG" 2>/dev/null
}

fatal()
{
	echo "error: $*"
	keep
	exit 1
}

# until_true WHAT COMMAND...: where nobody tells that it has come to pass
until_true()
{
	what=$1 tries=0
	shift
	until "$@" >/dev/null 2>&1; do
		tries=$((tries + 1))
		[ "$tries" -lt 120 ] || fatal "$what: not in time"
		sleep 0.5
	done
}

# as USER COMMAND: a line for a shell; the process becomes the command
as()
{
	su "$1" -c "exec $2"
}

set_up()
{
	hostname node
	ip link set lo up
	# Slurm looks up addresses with AI_ADDRCONFIG, which finds none where there is but 127.0.0.1.
	ip addr add 10.77.0.1/32 dev lo
	chmod 1777 /tmp
	mkdir -p /dev/shm "$KEPT" /var/spool/slurmd /var/lib/slurm /run/munge /var/lib/munge /etc/munge
	mount -t tmpfs -o mode=1777 tmpfs /dev/shm
	# Where systemd would have slurmd.
	mkdir -p /sys/fs/cgroup/system.slice
	chown slurm /var/lib/slurm "$KEPT"
	chown munge:munge /run/munge /var/lib/munge /etc/munge
	head -c 128 /dev/urandom >/etc/munge/munge.key
	chmod 400 /etc/munge/munge.key
	chown munge:munge /etc/munge/munge.key
	chown -R ann:ann "$HOME_ANN"
	chown slurm /home/slurm
	install_hooks
}

# What Documentation/slurm.rst has an operator do.
install_hooks()
{
	for file in job_submit.lua jobcomp.lua plan.conf; do
		cp "/usr/share/pbs/slurm/$file" /etc/slurm/
	done
	cp /usr/share/pbs/slurm/pbs-event /etc/slurm/
	chmod 755 /etc/slurm/pbs-event
	sed -i 's/ Nodes=[^ ]*/ Nodes=node/' /etc/slurm/plan.conf
	mkdir -p "${EVENTS%/*}"
	: >"$EVENTS"
	chmod 600 "$EVENTS"
	chown slurm "${EVENTS%/*}" "$EVENTS"
}

is_idle()
{
	[ "$(sinfo -h -o %T)" = idle ]
}

# is_over JOB: whether Slurm has it no longer, or as one that has ended
is_over()
{
	case $(squeue -h -t all -j "$1" -o %T 2>/dev/null) in
	'' | COMPLETED | FAILED | CANCELLED | TIMEOUT) return 0 ;;
	esac
	return 1
}

# hand_in NAME COMMAND: has ann submit it; its number is in $job
hand_in()
{
	cd "$HOME_ANN" || exit
	job=$(as ann "sbatch --parsable -J $1 -o $1.out $2") || fatal "sbatch of $1"
}

# over NAME JOB: waits until it is, and shows what it printed
over()
{
	until_true "job $2, $1" is_over "$2"
	mv step.out "$1.step.out" 2>/dev/null
	say "$1 is over"
	sed 's/^/    /' "$1.out" "$1.step.out" 2>/dev/null
}

runs()
{
	[ "$(squeue -h -j "$1" -o %T)" = RUNNING ]
}

# outcome NAME: what the ledger says became of it
outcome()
{
	pbsctl cluster info --all --ledger "$LEDGER" | awk -v name="$1" '$4 == name { print $5 }'
}

is_closed()
{
	[ "$(outcome "$1")" = "$2" ]
}

# service JOB: what the service says became of its job
service()
{
	pbsctl --json job "$1" | sed -n 's/^    "outcome": "\(.*\)",$/\1/p'
}

has_job()
{
	pbsctl --json job "$1" | grep -q '"state": "running"'
}

# line FILE WORD: what stands behind the word that a line begins with
line()
{
	sed -n "s/^$2[[:space:]]*//p" "$1"
}

say()
{
	echo "[$(cut -d' ' -f1 /proc/uptime)] $*"
}

# What the class has counted since it is there.
ended_tasks()
{
	cat /sys/kernel/pbs/counts/task_ended
}

set_up
as munge 'munged --force --log-file /run/munge/log' || fatal munged
pbsd 2>"$KEPT/pbsd.log" &
pbsd=$!
slurmctld || fatal slurmctld
slurmd || fatal slurmd
until_true 'the service' pbsctl status
until_true 'an idle node' is_idle
say 'Slurm is there'

pbsctl cluster doctor --site /tmp/site.toml >"$KEPT/doctor" 2>&1
expect 'what is wrong with slurm.conf' 0 $?
cat "$KEPT/doctor"
as slurm "pbsctl cluster new --ledger $LEDGER --site /tmp/site.toml" || fatal 'a ledger'
as slurm "pbsctl cluster serve --slurm --ledger $LEDGER" >"$KEPT/planner.log" 2>&1 &
planner=$!

# One that has the first CPU, so that the next one is on the second.
hand_in beside '-p plan -n 1 --time=2 --wrap "sleep 100"'
beside=$job
until_true 'the job beside' runs "$beside"
say 'a job runs beside'
before=$(ended_tasks)
hand_in planned job.sh
over planned "$job"
runs "$beside" || fatal 'the job beside has not lasted'
expect 'how the step ended' 0 "$(line planned.out 'step:')"
cpu=$(line planned.out CPU_IDs=)
expect 'the CPUs of the allocation' 1 "$cpu"
expect 'the CPUs of its programs' "$cpu" "$(line planned.step.out Cpus_allowed_list:)"
expect 'their policy, that of the class' 8 "$(line planned.step.out policy)"
expect 'their tasks that the class has ended' 2 "$(($(ended_tasks) - before))"
expect 'what the service says of them' complete "$(service 1)"
pbsctl job 1 | tee "$KEPT/job"
until_true 'the end of its request' is_closed planned completed

# What Slurm ends is ended in the class.
hand_in cancelled '-p plan -n 1 --time=1 --wrap "srun pbsctl step long.toml"'
until_true 'the job that is to be cancelled' has_job 2
as ann "scancel $job"
over cancelled "$job"
expect 'what the service says of what was cancelled' cancelled "$(service 2)"
until_true 'the end of its request' is_closed cancelled cancelled

kill "$pbsd"
wait "$pbsd" 2>/dev/null
before=$(ended_tasks)
hand_in unplanned job.sh
over unplanned "$job"
expect 'how the step without a service ended' 0 "$(line unplanned.out 'step:')"
grep -q 'no plan: .*; the programs run as ordinary ones' unplanned.out
expect 'that it says so' 0 $?
expect 'their policy' 0 "$(line unplanned.step.out policy)"
expect 'their CPUs' "$(line unplanned.out CPU_IDs=)" "$(line unplanned.step.out Cpus_allowed_list:)"
expect 'their tasks that the class has ended' 0 "$(($(ended_tasks) - before))"
until_true 'the end of its request' is_closed unplanned completed

as ann "scancel $beside"
until_true 'the end of the job beside' is_closed beside cancelled
pbsctl cluster info --all --ledger "$LEDGER" | tee "$KEPT/requests"
expect 'what is in the ledger' 4 "$(grep -c ann "$KEPT/requests")"
kill "$planner"
keep
exit "$bad"
