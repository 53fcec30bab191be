# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154 # scripts/test sets others
#
# What scripts/test does in the virtual machines.

# The lines of a list that say something.
lines_of()
{
	sed '/^[[:space:]]*\(#\|$\)/d' "$TOP/tests/pbs-vmtest/$1"
}
mapfile -t VM_TESTS < <(lines_of tests.list)
# Those of them that run on x86-64 as well when all is run.
mapfile -t X86_TESTS < <(awk 'NR == FNR { wanted[$1]; next } $1 in wanted' \
	<(lines_of x86_64.list) <(lines_of tests.list))
[ ${#X86_TESTS[@]} = "$(lines_of x86_64.list | wc -l)" ] ||
	die "tests/pbs-vmtest/x86_64.list names a test that is not in tests.list"

# What a test is called when it runs on ARCH: label ARCH NAME
label()
{
	if [ "$1" = arm64 ]; then echo "$2"; else echo "$1-$2"; fi
}

# vm_test ARCH NAME CPUS TIMEOUT [WORD...]: one test in a machine of its own, with these
# words on the kernel's command line
vm_test()
{
	local arch=$1 name=$2 smp=$3 timeout=$4 append share label log status seconds
	shift 4
	# Its kernel spins through the calibration of its timer, slow to emulate.
	[ "$arch" = arm64 ] || timeout=$((2 * timeout))
	append=$*
	label=$(label "$arch" "$name")
	log=$LOGS/$label
	share=$BUILD/test/$label
	rm -rf "$share"
	mkdir -p "$share"
	timed "$label" "$log.log" "$TOP/qemu/vm" --arch "$arch" "${VM_OPTIONS[@]}" --smp "$smp" \
		--timeout $((timeout * SLOWER)) --share "$share" --log "$log.console" \
		${append:+--append "$append"} -- pbs-vmtest "$name"
	case $status in
	0 | 77) ! grep -aE "$SPLAT" "$log.console" >"$log.splat" || status=splat ;;
	esac
	# What the policy was told, for pbsctl replay.
	if [ -e "$share/recording" ] && [ "$status" != 0 ]; then
		mv "$share/recording" "$log.recording"
	fi
	case $status in
	0) pass "$label" "$seconds" ;;
	77) skip "$label" "$(sed -n 's/^SKIP: //p' "$log.log")" ;;
	splat) vm_fail 'the kernel complained' "$(head -n 5 "$log.splat" | sed 's/^/    /')" \
		"$(the_whole_log "$log.console")" ;;
	101) vm_fail 'the kernel panicked' "$(end_of "$log.log" 30)" ;;
	124) vm_fail 'no end' "$(end_of "$log.log")" ;;
	*) vm_fail "status $status" "$(end_of "$log.log")" ;;
	esac
}

# vm_fail WHY LINE...: of vm_test, whose variables it uses
vm_fail()
{
	local why=$1
	shift
	[ ! -e "$log.recording" ] || set -- "$@" "    pbsctl replay ${log#"$TOP"/}.recording"
	fail "$label" "$why; $seconds s" 1 "$@"
}

# vm_tests ARCH LINE...: those of the tests that are asked for
vm_tests()
{
	local arch=$1 line name smp timeout append
	shift
	for line in "$@"; do
		read -r name smp timeout append <<<"$line"
		vm_test_wanted "$arch" "$name" vm || continue
		matched
		# shellcheck disable=SC2086 # the rest of the line is words
		beside vm_test "$arch" "$name" "$smp" "$timeout" $append
	done
}

# vm_test_wanted ARCH NAME [GROUP]: is it asked for, by its name or by that of
# all?  A bare name and the group are those of $ARCH; 'x86_64-NAME' and 'x86_64'
# are the other's when all is run.
vm_test_wanted()
{
	wanted "$(label "$1" "$2")" "$1" && return
	[ "$1" = "$ARCH" ] && wanted "$2" ${3:+"$3"}
}

# machine ARCH LINE...: what runs in the virtual machine of ARCH, if something
# of it is asked for
machine()
{
	local arch=$1 line name asked=''
	shift
	! vm_test_wanted "$arch" vm-runner || asked=yes
	if [ "$arch$DEBUG" = arm640 ]; then
		! wanted main-job loop service slurm-in-the-guest static-branches \
			safe-code-is-refused class-does-not-panic stack-is-small on-real-hardware || asked=yes
	else
		! wanted kunit || asked=yes
		[ "$arch$DEBUG" != x86_640 ] || ! wanted debian packages || asked=yes
	fi
	for line in "$@"; do
		! vm_test_wanted "$arch" "${line%% *}" vm || asked=yes
	done
	[ "$asked" = yes ] || return 0
	build kernel "$arch" || return 0
	# The packages are those of this machine, whose plugins take no build of their own.
	if [ "$arch$DEBUG" = x86_640 ]; then
		build user x86_64 test packages || return 0
	else
		build user "$arch" test || return 0
	fi
	if vm_test_wanted "$arch" vm-runner; then
		name=$(label "$arch" vm-runner)
		T='' beside check "$name" env ARCH="$arch" "$TOP/tests/vm-runner"
	fi
	if [ "$arch$DEBUG" = arm640 ]; then
		beside check safe-code-is-refused "$TOP/tests/safe-code-is-refused"
		beside check static-branches "$TOP/tests/static-branches"
		beside check class-does-not-panic "$TOP/tests/class-does-not-panic"
		beside check stack-is-small "$TOP/tests/stack-is-small"
		beside check on-real-hardware "$TOP/tests/on-real-hardware"
		beside check main-job env ARCH=arm64 "$TOP/scripts/run-main-job"
		beside check loop env ARCH=arm64 "$TOP/scripts/run-loop"
		beside check service env ARCH=arm64 "$TOP/scripts/run-service"
		beside slurm_in_the_guest
	else
		beside check kunit env ARCH="$arch" "$TOP/tests/kunit"
		[ "$arch$DEBUG" != x86_640 ] || beside packages_and_debian
	fi
	vm_tests "$arch" "$@"
	all_ended
}
