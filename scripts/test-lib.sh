# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # what sources it uses the names, and sets others
#
# Verdicts of scripts/test and the time that each took.  Verdicts and times are lines of
# files below $LOGS, because checks run in subshells beside each other.

VERDICTS=$LOGS/verdicts	# ok|FAIL|skip and a number of tests
TIMES=$LOGS/times	# seconds, CPU seconds, name
: >"$VERDICTS"
: >"$TIMES"

# report LINE...: lines of one check, which those of another don't interrupt
report()
{
	( flock 8; printf '%s\n' "$@" ) 8>"$LOGS/lock"
}

pass()
{
	echo "ok ${3:-1}" >>"$VERDICTS"
	report "ok $1 ($2 s)${3:+: $3 tests}"
}

# fail NAME WHY [NUMBER [LINE...]]
fail()
{
	local line="FAIL $1 ($2)"
	echo "FAIL ${3:-1}" >>"$VERDICTS"
	shift $(($# < 3 ? $# : 3))
	report "$line" "$@"
}

skip()
{
	echo 'skip 1' >>"$VERDICTS"
	report "skip $1 ($2)"
}

# number KIND: the tests with that verdict
number()
{
	awk -v kind="$1" '$1 == kind { n += $2 } END { print n + 0 }' "$VERDICTS"
}

# end_of LOG [LINES]
end_of()
{
	tail -n "${2:-15}" "$1" | sed 's/^/    /'
	the_whole_log "$1"
}

the_whole_log()
{
	echo "    The whole log: ${1#"$TOP"/}"
}

# wanted NAME...: is one of these asked for?
wanted()
{
	local n
	[ -n "$T" ] || return 0
	for n in "$@"; do
		[ "$n" != "$T" ] || return 0
	done
	return 1
}

# with_times FILE COMMAND...: run it in a subshell, and leave in FILE what "times" says then
with_times()
{
	(
		local file=$1 status
		shift
		set +e
		( set -e; "$@" )
		status=$?
		times >"$file"
		exit $status
	)
}

# cpu_seconds FILE: of all children, by what "times" has left there
cpu_seconds()
{
	awk 'NR == 2 { gsub(/[ms]/, " "); $0 = $0; printf "%d\n", 60 * ($1 + $3) + $2 + $4 }' "$1"
}

# timed NAME LOG COMMAND...: run it, and set status and seconds
timed()
{
	local name=$1 log=$2 start
	shift 2
	start=$(date +%s)
	status=0
	# In the background, as bash ignores errexit in all that is part of a condition.
	with_times "$log.time" "$@" >"$log" 2>&1 </dev/null &
	wait $! || status=$?
	seconds=$(($(date +%s) - start))
	took "$name" "$seconds" "$(cpu_seconds "$log.time")"
	rm -f "$log.time"
}

took()
{
	echo "$2 $3 $1" >>"$TIMES"
}

# check NAME COMMAND...: one check, which is its exit status
check()
{
	local name=$1 log=$LOGS/$1.log status seconds
	shift
	wanted "$name" || return 0
	matched
	timed "$name" "$log" "$@"
	if [ "$status" = 0 ]; then
		pass "$name" "$seconds"
	else
		fail "$name" "after $seconds s" 1 \
			"$(lines_that_matter "$log" | sed 's/^/    /')" "$(the_whole_log "$log")"
	fi
}

# matched: something has the name that is asked for
matched()
{
	: >"$LOGS/matched"
}

# beside COMMAND...: run it in the background, once fewer than one a CPU run there.  One
# emulated machine keeps one CPU busy, and so do most checks.
BESIDE=()
beside()
{
	[ ${#BESIDE[@]} -lt "$JOBS" ] || one_ended
	"$@" &
	BESIDE+=($!)
}

one_ended()
{
	local ended pid left=()
	# All that runs beside others returns 0 once it has reported.
	wait -n -p ended "${BESIDE[@]}" || fail 'a check' 'it ended without a verdict'
	for pid in "${BESIDE[@]}"; do
		[ "$pid" = "$ended" ] || left+=("$pid")
	done
	BESIDE=("${left[@]}")
}

all_ended()
{
	while [ ${#BESIDE[@]} -gt 0 ]; do
		one_ended
	done
}

# build SCRIPT [ARCH [WORD...]]: a stage of building, once for all checks.  One that fails is
# a failed test.
build()
{
	local script=$1 arch=${2:-$ARCH} status=0 name built start
	name="build $script $arch${3:+ ${*:3}}"
	built="$LOGS/${name// /-}"
	[ ! -e "$built" ] || return "$(cat "$built")"
	shift $(($# < 2 ? $# : 2))
	start=$(date +%s)
	with_times "$built.time" env "ARCH=$arch" "$TOP/scripts/$script" "$@" || status=$?
	took "$name" $(($(date +%s) - start)) "$(cpu_seconds "$built.time")"
	[ "$status" = 0 ] || echo 'FAIL 1' >>"$VERDICTS"
	echo "$status" >"$built"
	return "$status"
}

# What took longest, the builds included.
table_of_times()
{
	local from=$STAGE_EPOCH
	[ "$(wc -l <"$TIMES")" -ge 2 ] || return 0
	echo "The longest of $(( $(date +%s) - from )) s in all:"
	echo '       s   CPU s'
	sort -k1,1nr -k2,2nr "$TIMES" | sed -n 1,10p |
		while read -r real cpu name; do
			printf '  %6d  %6d  %s\n' "$real" "$cpu" "$name"
		done
}
