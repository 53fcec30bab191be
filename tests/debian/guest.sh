#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# In the Debian guest, as root: install the packages in /mnt, have users run jobs, start the
# service anew in all ways while jobs run, and remove it.

set -eu -o pipefail
bad=0
GROUPS_DIR=/sys/fs/cgroup/system.slice/pbsd.service

expect()
{
	if [ "$2" = "$3" ]; then
		echo "ok: $1"
	else
		printf 'error: %s: expected %q, got %q\n' "$1" "$2" "$3"
		bad=1
	fi
}

# What went before has to be over, and the end of the journal says why it is not.
fatal()
{
	echo "error: $*"
	systemctl status --no-pager -l pbsd.socket pbsd.service || true
	journalctl --no-pager -n 60 || true
	exit 1
}

# until_true WHAT COMMAND...: where nobody tells that it has come to pass.  Waiting costs
# nothing, as the clock leaps then, but looking does.
until_true()
{
	local what=$1 seconds
	shift
	for seconds in 0.5 0.5 1 2 4 8 16 32 64 128 256; do
		! "$@" || return 0
		sleep "$seconds"
	done
	fatal "$what: not in time"
}

install()
{
	dpkg --log=/dev/null -i "$@" >/tmp/dpkg 2>&1 || { cat /tmp/dpkg; fatal "dpkg -i $*"; }
}

unit()
{
	systemctl show -P "$1" pbsd.service
}

serves()
{
	systemctl is-active pbsd.socket pbsd.service | xargs
}

# as USER COMMAND: in a shell that he has logged in to
as()
{
	runuser -l "$1" -c "$2"
}

# submit USER NAME SHELL: leaves the number of his job in $job
submit()
{
	cat >"/home/$1/$2.toml" <<END
name = "$2"
deadline_ns = "3600s"
[[process]]
id = 1
memory_bytes = 32_000_000
command = ["sh", "-c", '''$3''']
tasks = [400_000_000]
END
	as "$1" "pbsctl --json submit $2.toml" >/tmp/submitted 2>&1 ||
		{ cat /tmp/submitted; fatal "submit $2"; }
	job=$(sed -n 's/.*"number": \([0-9]*\).*/\1/p' /tmp/submitted)
}

# What is said of a job: said KEY
said()
{
	pbsctl --json job "$job" | sed -n "0,/^ *\"$1\": \"\\([^\"]*\\)\".*/s//\\1/p"
}

is_over()
{
	[ "$(said state)" = over ]
}

# A job that lasts until it is told to end: begin USER NAME
begin()
{
	rm -f "/home/$1/end" "/home/$1/pid"
	as "$1" 'mkfifo end'
	submit "$1" "$2" 'echo $$ >pid; read word <end; id -un >'"$2"
	until_true "$2 has begun" test -s "/home/$1/pid"
	runs=$(cat "/home/$1/pid")
}

# It runs still, and ends well: ends USER NAME HOW
ends()
{
	[ "$(serves)" = 'active active' ] || fatal "$3: no service"
	expect "$3: the job runs" running "$(said state)"
	expect "$3: its process" "$2" "$(tr '\0' '\n' <"/proc/$runs/cmdline" | grep -ow "$2")"
	as "$1" 'echo go >end'
	until_true "$2 is over" is_over
	expect "$3: how the job ends" complete "$(said outcome)"
	expect "$3: as whom it ran to its end" "$1" "$(cat "/home/$1/$2")"
}

# Asked at once: a service that is killed between two questions is active in the first
# answer and has no process, so another, in the second.
main_pid_is_not()
{
	local is
	is=$(systemctl show -p ActiveState -p MainPID pbsd.service)
	grep -qx 'ActiveState=active' <<<"$is" && ! grep -qxE "MainPID=(0|$1)" <<<"$is"
}

# The clock leaps as well while the host's files are waited for.
cp /mnt/*.deb /tmp
useradd -m -s /bin/sh ann
useradd -m -s /bin/sh bob

# The packages.
release=$(uname -r)
install /tmp/linux-image-*.deb
expect 'the kernel of the package runs' "$(zcat /proc/config.gz | sha256sum)" \
	"$(sha256sum <"/boot/config-$release")"
install /tmp/pbs_*.deb
expect 'after the installation' 'active active' "$(serves)"
expect 'at the next boot' 'enabled enabled' \
	"$(systemctl is-enabled pbsd.socket pbsd.service | xargs)"
usermod -a -G pbs-operators bob

# A job of a user.
submit ann first 'id -u >who; id -gn >>who; umask >>who'
until_true 'the first job is over' is_over
expect 'how the first job ends' complete "$(said outcome)"
expect 'as whom it ran' "$(printf '%s\n' "$(id -u ann)" ann "$(as ann umask)")" \
	"$(cat /home/ann/who)"
expect 'whose its file is' 'ann ann' "$(stat -c '%U %G' /home/ann/who)"
# A line may go on with what programs of the job have started.
for line in 'pbsd: ready' "$job job first has ended: complete, its deadline kept"; do
	expect "a line in the journal: $line" "$line" \
		"$(journalctl -q -o cat -u pbsd.service | grep -oF "$line" | sort -u)"
done

# The service is started anew, in each way that there is.
begin ann restarted
before=$(unit MainPID)
systemctl restart pbsd.service
expect 'a restart' yes "$(main_pid_is_not "$before" && echo yes)"
ends ann restarted 'a restart'

begin ann killed
before=$(unit MainPID)
kill -KILL "$before"
until_true 'systemd starts the killed service' main_pid_is_not "$before"
ends ann killed 'a kill'

begin ann updated
before=$(unit MainPID)
install /tmp/pbs_*.deb
expect 'an update' yes "$(main_pid_is_not "$before" && echo yes)"
ends ann updated 'an update'

begin ann stopped
systemctl stop pbsd.socket pbsd.service
expect 'a stop' 'inactive inactive' "$(serves || true)"
expect 'what is asked of a service that is stopped' 'no' \
	"$(as ann 'pbsctl jobs' >/dev/null 2>&1 || echo no)"
systemctl start pbsd.service
ends ann stopped 'a stop'

# Idle for longer than the watchdog has patience; then it hangs.
before=$(unit MainPID)
sleep 600
expect 'a service that has nothing to do' "$before 0" "$(unit MainPID) $(unit NRestarts)"
begin ann watched
kill -STOP "$before"
until_true 'systemd ends the service that hangs' main_pid_is_not "$before"
expect 'what ended it' 1 \
	"$(journalctl -q -o cat -u pbsd.service | grep -c 'Watchdog timeout')"
ends ann watched 'a hang'

# Limits of memory, which count in the group where systemd starts the service.
mkdir -p /etc/systemd/system/pbsd.service.d
printf '[Service]\nExecStart=\nExecStart=/usr/sbin/pbsd --limit-memory\n' \
	>/etc/systemd/system/pbsd.service.d/limit.conf
systemctl daemon-reload
systemctl restart pbsd.service
begin ann limited
limit=$((32000000 / 4096 * 4096))
expect 'the limit of a job' "$limit" "$(cat "$GROUPS_DIR/job-$job/memory.max")"
before=$(unit MainPID)
systemctl restart pbsd.service
expect 'a restart with limits' yes "$(main_pid_is_not "$before" && echo yes)"
expect 'the limit after a restart' "$limit" "$(cat "$GROUPS_DIR/job-$job/memory.max")"
before=$(unit MainPID)
kill -KILL "$before"
until_true 'systemd starts the killed service that limits' main_pid_is_not "$before"
expect 'the limit after a kill' "$limit" "$(cat "$GROUPS_DIR/job-$job/memory.max")"
ends ann limited 'limits'
rm -r /etc/systemd/system/pbsd.service.d
systemctl daemon-reload

# An operator, and a removal.
begin ann removed
expect 'what another user may not' no "$(as ann 'pbsctl drain' >/dev/null 2>&1 || echo no)"
expect 'what an operator may' yes "$(as bob 'pbsctl drain && pbsctl resume' >/dev/null && echo yes)"
dpkg --log=/dev/null -r pbs >/dev/null
expect 'a removal' 'inactive inactive' "$(serves || true)"
expect 'what runs after a removal' yes "$(kill -0 "$runs" && echo yes)"
expect 'the history after a removal' yes "$([ -e /var/lib/pbs/history.db ] && echo yes)"
install /tmp/pbs_*.deb
ends ann removed 'an installation anew'
dpkg --log=/dev/null -P pbs "linux-image-$release" >/dev/null
expect 'what is there after a purge' '' \
	"$(find /var/lib/pbs /run/pbs/pbs.sock /usr/bin/pbsctl /usr/lib/systemd/system/pbsd* \
		/etc/systemd/system -name '*pbs*' "/boot/vmlinuz-$release" 2>/dev/null || true)"
expect 'the group after a purge' 1 "$(grep -c '^pbs-operators:' /etc/group)"
expect 'units that failed' '' "$(systemctl --failed --plain --no-legend)"

[ "$bad" = 0 ] || fatal 'not all is as it should be'
