# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # what sources it uses the names
#
# What all build scripts share: paths, the toolchain's names and the stages.
# Sourced by bash scripts that run with -eu -o pipefail.

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BUILD=$TOP/build
LOG_DIR=$BUILD/log
JOBS=${JOBS:-$(nproc)}
DEBUG=${DEBUG:-0}
[ -n "$DEBUG" ] || DEBUG=0

# The machine that is built for, by the kernel's name of its architecture.
ARCH=${ARCH:-arm64}
case $ARCH in
arm64) TARGET=aarch64-unknown-linux-gnu DEB_ARCH=arm64 INITRAMFS=$BUILD/initramfs.cpio ;;
x86_64) TARGET=x86_64-unknown-linux-gnu DEB_ARCH=amd64 INITRAMFS=$BUILD/initramfs-x86_64.cpio ;;
*)
	echo "ARCH=$ARCH: there are arm64 and x86_64" >&2
	exit 1
	;;
esac
# As folders of libraries name it.
MULTIARCH=${TARGET/-unknown/}

LLVM_BIN=/usr/lib/llvm-19/bin
SRC=$BUILD/src/linux
if [ "$DEBUG" = 0 ]; then
	OBJ=$BUILD/obj/$ARCH
else
	OBJ=$BUILD/obj/$ARCH-debug
fi

# The kernel that boot loaders take, by make's name for it and where make leaves it.
case $ARCH in
arm64) KERNEL_TARGET=Image KERNEL_IMAGE=$OBJ/arch/arm64/boot/Image ;;
x86_64) KERNEL_TARGET=bzImage KERNEL_IMAGE=$OBJ/arch/x86/boot/bzImage ;;
esac

# A rustup that stands first in PATH has neither the library source nor the
# arm64 standard library that go with Debian's compiler, so Debian's tools are
# put first and named in full.
export PATH=$LLVM_BIN:/usr/bin:/bin:/usr/sbin:/sbin:$PATH
export RUSTC=/usr/bin/rustc RUSTDOC=/usr/bin/rustdoc RUSTFMT=/usr/bin/rustfmt
export CARGO=/usr/bin/cargo
unset RUSTUP_TOOLCHAIN RUSTFLAGS CARGO_BUILD_TARGET MAKEFLAGS MFLAGS MAKELEVEL
# Some two hundred programs are linked for the tests, which takes GNU's linker far longer.
if command -v ld.lld >/dev/null; then
	export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS='-C link-arg=-fuse-ld=lld'
fi
export LC_ALL=C.UTF-8

rust_lib_src()
{
	dpkg -L rust-web-src 2>/dev/null | awk '/\/library$/ && !found++'
}

say()
{
	printf '%s\n' "$*"
}

die()
{
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# seconds since this script began, for the announcements
elapsed()
{
	local s=$(( $(date +%s) - ${STAGE_EPOCH:-$(date +%s)} ))
	printf '%d:%02d' $((s / 60)) $((s % 60))
}
# One clock for a whole make, however many scripts take part in it.
export STAGE_EPOCH=${STAGE_EPOCH:-$(date +%s)}

# The lines of a log that tell why a stage failed: from the first errors on,
# or else its end.
lines_that_matter()
{
	local log=$1 out
	out=$(grep -aE -A8 -m4 \
		'(^|[^[:alnum:]_.-])([Ee]rror(\[E[0-9]+\])?:( |$)|ERROR|fatal:|undefined (symbol|reference)|FAILED|E: |No space left|Hunk .* FAILED|panicked at)' \
		< <(grep -avE "$CARGO_PROGRESS" "$log") | sed -n 1,40p) || true
	if [ -n "$out" ]; then
		printf '%s\n' "$out"
	else
		grep -avE "$CARGO_PROGRESS" "$log" | tail -n 25 || true
	fi
}

# A line of the progress that cargo reports: its steps, of all of them.
CARGO_PROGRESS='^ +Building \[[=> ]*\] [0-9]+/[0-9]+'

# cargo_with_progress ARG...: run cargo, with each report of its progress as a line of the log
# of a stage
cargo_with_progress()
{
	CARGO_TERM_PROGRESS_WHEN=always CARGO_TERM_PROGRESS_WIDTH=80 "$CARGO" "$@" 2>&1 |
		stdbuf -oL tr '\r' '\n'
}

# progress LOG: how far a stage is, by its log.  With STAGE_COUNT set to an extended regular
# expression, that is the number of lines that match it, in the unit STAGE_UNIT, of STAGE_TOTAL
# ("50", "about 50") if that is set; otherwise it is what cargo_with_progress has reported last.
progress()
{
	local n
	if [ -n "${STAGE_COUNT:-}" ]; then
		n=$(grep -acE "$STAGE_COUNT" "$1" || true)
		printf ', %s %s' "$n${STAGE_TOTAL:+ of $STAGE_TOTAL}" "${STAGE_UNIT:-objects}"
	else
		n=$(tail -c 4096 "$1" | grep -aoE "$CARGO_PROGRESS" | tail -n 1) || return 0
		n=${n##*] }
		printf ', %s of %s steps' "${n%/*}" "${n#*/}"
	fi
}

# stage NAME "TITLE" COMMAND [ARG...]: run COMMAND with its output in
# build/log/NAME.log, and print how far it is.
stage()
{
	local name=$1 title=$2 start rc=0 pid log n told=0 now
	shift 2
	log=$LOG_DIR/$name.log
	mkdir -p "$(dirname "$log")"
	start=$(date +%s)
	if [ -t 1 ]; then
		printf '[%s] %s ...' "$(elapsed)" "$title"
	else
		say "[$(elapsed)] $title ..."
	fi
	# The subshell gives the command errexit of its own, which bash would
	# switch off had it been called in a condition.
	( set -e; "$@" ) >"$log" 2>&1 </dev/null &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		# Short steps first: many stages have nothing to do.
		now=$(( $(date +%s) - start ))
		if [ "$now" -lt 2 ]; then sleep 0.1; else sleep 1; fi
		[ "$now" -ge 2 ] || continue
		n=$(progress "$log")
		if [ -t 1 ]; then
			printf '\r\033[K[%s] %s ... %d s%s' \
				"$(elapsed)" "$title" "$now" "$n"
		elif [ "$now" -ge $((told + 30)) ]; then
			say "[$(elapsed)]   $now s$n"
			told=$now
		fi
	done
	wait "$pid" || rc=$?
	now=$(( $(date +%s) - start ))
	[ ! -t 1 ] || printf '\r\033[K'
	if [ "$rc" -ne 0 ]; then
		say "[$(elapsed)] $title: FAILED after $now s"
		lines_that_matter "$log" | sed 's/^/    /'
		say "The whole log: ${log#"$PWD"/}"
		return "$rc"
	fi
	say "[$(elapsed)] $title: done in $now s"
}

# the names of the patches, in order
series()
{
	[ ! -e "$TOP/patches/series" ] ||
		sed -e '/^[[:space:]]*\(#\|$\)/d' -e 's/[[:space:]].*//' "$TOP/patches/series"
}

# The guest's packages are fetched and unpacked, never installed, through lists
# of our own: the machine's package manager need not know of arm64.
APT=$BUILD/apt-$ARCH
BUSYBOX=$APT/busybox

guest_apt()
{
	apt-get -q -o Dir::State="$APT/state" -o Dir::State::status="$APT/status" \
		-o Dir::Cache="$APT/cache" -o "APT::Architecture=$DEB_ARCH" \
		-o "APT::Architectures=$DEB_ARCH" -o APT::Sandbox::User="$(id -un)" \
		-o Acquire::Languages=none -o Acquire::Retries=3 "$@"
}

# The program that makes tables of what was measured.
BENCH_TOOL=$BUILD/cargo/bench/release/pbs-bench

bench_tool()
{
	CARGO_TARGET_DIR=$BUILD/cargo/bench stage bench-tool "Building the benchmarks' tool" \
		cargo_with_progress build --manifest-path "$TOP/tests/pbs-bench/Cargo.toml" --release --locked
}

# Settings of cargo for a build that is made once. What would make the next one quicker is gigabytes
# that nobody reads, and few units of a crate take less of a processor than many.
BUILT_ONCE=(CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_CODEGEN_UNITS=4)

# The program that makes figures of what studies in the virtual machine have measured.
STUDY_TOOL=$BUILD/cargo/target/debug/pbs-vmstudy

# study_ready: what studies need is built.  Their standard output is their result, so what
# is told of the build goes to standard error.
study_ready()
{
	[ "$ARCH" = arm64 ] || die "ARCH=$ARCH: the PMU counts, which only the machine of arm64 has"
	mkdir -p "$BUILD/study" "$LOG_DIR/study"
	{
		"$TOP/scripts/kernel"
		"$TOP/scripts/user" study
		(
			export "CARGO_TARGET_DIR=$BUILD/cargo/target" "${BUILT_ONCE[@]}"
			stage study-tool "Building the studies' tool" \
				cargo_with_progress build --manifest-path "$TOP/tests/pbs-vmstudy/Cargo.toml" --locked
		)
	} >&2
}

# study NAME [OPTION...] -- WORD...: run pbs-vmstudy WORD... in the virtual machine, started
# with these options; the kernel's log is NAME.console
study()
{
	local name=$1 options=()
	shift
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	"$TOP/qemu/vm" --log "$LOG_DIR/study/$name.console" "${options[@]}" -- pbs-vmstudy "$@"
}

# cut_inputs LIST FOLDER: what guest's jobs work on, cut out of the kernel's
# source; samples/main-job/inputs says how the list is read.
cut_inputs()
{
	local name bytes folders whole=$2.whole
	mkdir -p "$2"
	grep -v '^#' "$1" | while read -r name bytes folders; do
		# shellcheck disable=SC2086 # several folders
		(cd "$SRC" && find $folders -type f \( -name '*.[ch]' -o -path 'LICENSES/*' \) -print0 |
			LC_ALL=C sort -z | xargs -0 cat) >"$whole"
		head -c "$bytes" "$whole" >"$2/$name"
		[ "$(stat -c %s "$2/$name")" = "$bytes" ] ||
			die "$folders of $SRC hold fewer than $bytes bytes"
	done
	rm "$whole"
}

# What a kernel says that has a fault but goes on.
SPLAT='WARNING:|BUG:|Internal error|possible (circular|recursive|irq lock inversion)|inconsistent lock state|suspicious RCU|blocked for more than|rcu.*(stall|starved)|KASAN:|UBSAN:|ODEBUG|list_(add|del) corruption|soft lockup|scheduling while atomic|sleeping function called|workqueue lockup|refcount_t:|psi: '

# run_guest NAME FOLDER [OPTION...]: run FOLDER/guest.sh in the virtual machine, where
# FOLDER is /mnt.  The kernel's log is NAME.log, and it may not complain.
run_guest()
{
	local name=$1 log=$LOG_DIR/$1.log folder=$2 rc=0
	shift 2
	"$TOP/qemu/vm" --share "$folder" --timeout 120 --log "$log" "$@" -- sh /mnt/guest.sh || rc=$?
	say
	[ "$rc" = 0 ] || die "$name ended with status $rc; the kernel's log: build/log/$name.log"
	if grep -aE "$SPLAT" "$log"; then
		die "the kernel complained; its log: build/log/$name.log"
	fi
}

# put_table TABLE FILE: in FILE, the table between the comments that say where it
# begins and ends becomes the one in the file TABLE.
put_table()
{
	awk -v table="$1" '
		/^\.\. end of the table/ { inside = 0 }
		!inside
		/^\.\. begin of the table/ {
			inside = 1
			print ""
			while ((getline line < table) > 0) print line
			print ""
		}' "$2" >"$1.new"
	cp "$1.new" "$2"
	rm "$1.new"
}
