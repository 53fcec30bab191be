# SPDX-License-Identifier: GPL-2.0
#
# Everything is in scripts/; this file only says what there is.  All output
# goes to build/.
#
#   ARCH=x86_64     kernel, userland and virtual machine of x86-64 (arm64)
#   DEBUG=1         the kernel with lockdep, KASAN and other checks
#   KERNEL_SRC=...  another 6.12 source, a tree or a tarball; copied once, and
#                   anew when it is another one or its version is
#   JOBS=N          jobs at once (one per CPU)
#   T=name          for 'make test': run only what has this name
#   CHAOS_STEPS=N   for the tests called chaos: so many steps
#   B=name          for 'make bench': measure only what begins so
#   C=name          for 'make soak': the campaign; scripts/soak --help has all
#   R=name          for 'make reproduce': only the claims whose ids begin so
#   FULL=1          for 'make reproduce': those that take long, too
#   MINUTES=N, COUNT=N, SEED=N  for 'make soak': so long (60), so many, from that
#                   seed on (1)

export ARCH DEBUG KERNEL_SRC JOBS T B CHAOS_STEPS C COUNT MINUTES SEED R FULL

# One clock for all stages of one make.
export STAGE_EPOCH := $(shell date +%s)

.PHONY: help setup kernel user run test soak bench bench-planner bench-cluster bench-cosched bench-slurm reproduce lint pbsctl deb coverage mutants shell clean distclean

help:
	@echo 'make run      build all, run the main job in the virtual machine, and close'
	@echo '              the loop: jobs measured, planned, disturbed, planned anew'
	@echo 'make test     run every check and test; T=name runs one'
	@echo 'make soak     a test that goes on for long: the chaos on four CPUs; C=plans,'
	@echo '              calls, memory, properties, suites: another one'
	@echo 'make bench    measure what the class costs; B=name measures one thing'
	@echo 'make bench-planner  measure the planner on this machine; B=name likewise'
	@echo 'make bench-cluster  measure the planner of clusters on this machine'
	@echo 'make bench-slurm  measure what planning for Slurm takes on this machine (root)'
	@echo 'make bench-cosched  measure what co-scheduling takes on this machine'
	@echo 'make reproduce  try the claims of the documents: a table, and a page with pictures;'
	@echo '              R=L3.2.2: those whose ids begin so; FULL=1: what takes long, too'
	@echo 'make kernel   build the kernel; DEBUG=1: with lockdep, KASAN and others;'
	@echo '              ARCH=x86_64: for x86-64, as with user, test and shell'
	@echo 'make user     build the userland of the virtual machine'
	@echo 'make pbsctl   build pbsctl for this machine: build/pbsctl'
	@echo 'make deb      Debian packages of programs and kernel: build/deb'
	@echo 'make shell    a prompt in the virtual machine (Ctrl-A x ends it)'
	@echo 'make lint     format and lint checks alone'
	@echo 'make coverage the lines of the policy that its tests run; fails below 95 %'
	@echo 'make mutants  change the thresholds at each place; a test must notice'
	@echo 'make setup    install what is missing'
	@echo 'make clean    remove what was built, but not what was fetched'
	@echo 'make distclean  remove build/'
	@echo
	@echo 'The machine itself: qemu/vm --help'

setup:
	@scripts/setup

kernel: setup
	@scripts/kernel

user: setup
	@scripts/user

run: kernel user
	@scripts/run-main-job
	@scripts/run-loop
	@scripts/run-service

test: setup
	@scripts/test

soak: kernel user
	@scripts/soak

bench: setup
	@scripts/bench

bench-planner: setup
	@scripts/bench-planner

bench-cluster: setup
	@scripts/bench-cluster

bench-slurm: setup
	@scripts/bench-slurm

bench-cosched: setup
	@scripts/bench-cosched

reproduce: kernel user
	@scripts/reproduce

lint: setup
	@scripts/test lint

pbsctl: setup
	@scripts/pbsctl

deb: kernel user
	@scripts/deb

coverage:
	@scripts/coverage

mutants:
	@scripts/mutants

shell: kernel user
	@echo 'Ctrl-A x ends the machine.'
	@qemu/vm $(if $(ARCH),--arch $(ARCH)) $(if $(filter-out 0,$(DEBUG)),--debug) --shell

clean:
	rm -rf build/obj build/user build/initramfs*.cpio build/pbsctl build/pbs-reproduce build/deb build/run build/loop build/service build/reproduce build/test build/log build/cargo build/coverage build/mutants

distclean:
	rm -rf build
