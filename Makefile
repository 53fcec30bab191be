# SPDX-License-Identifier: GPL-2.0
#
# Everything is in scripts/; this file only names it.  All output goes to build/.
#
#   ARCH=x86_64     kernel, programs and virtual machine for x86-64 (arm64)
#   DEBUG=1         the kernel with lockdep, KASAN and other checks
#   KERNEL_SRC=...  another 6.12 source, a folder or a tarball; it is copied once, and again
#                   when the path or the version changes
#   JOBS=N          number of parallel jobs (one per CPU)
#   YES=1           install missing packages without a question
#   T=NAME          make test: run only the test or check NAME
#   CHAOS_STEPS=N   make test, make soak: number of steps of the tests called chaos
#   B=NAME          make bench: measure only what begins with NAME
#   C=NAME          make soak: the campaign; scripts/soak --help lists all
#   R=ID            make reproduce: check only the claims whose ids begin with ID
#   FULL=1          make reproduce: check those that take long, too
#   MINUTES=N, COUNT=N, SEED=N  make soak: the duration (60), the number of cases, and the
#                   first seed (1)

export ARCH YES DEBUG KERNEL_SRC JOBS T B CHAOS_STEPS C COUNT MINUTES SEED R FULL

# One clock for all stages of one make.
export STAGE_EPOCH := $(shell date +%s)

.PHONY: help setup kernel user run test soak bench bench-planner bench-cluster bench-cosched bench-slurm reproduce lint pbsctl deb coverage mutants shell clean distclean

help:
	@echo 'make run            build the kernel and the programs, run jobs by a plan in the'
	@echo '                    virtual machine, and check what happened'
	@echo 'make test           run all checks and tests; T=NAME runs one'
	@echo 'make pbsctl         build pbsctl for this machine: build/pbsctl'
	@echo
	@echo 'make kernel         build the kernel; DEBUG=1: with lockdep, KASAN and other checks;'
	@echo '                    ARCH=x86_64: for x86-64, as with user, test and shell'
	@echo 'make user           build all programs of the virtual machine, with those of tests'
	@echo 'make shell          open a shell in the virtual machine (Ctrl-A x ends it)'
	@echo 'make deb            build Debian packages of programs and kernel: build/deb'
	@echo 'make lint           check formats and run the linters'
	@echo
	@echo 'make soak           run a long stress test; C=NAME chooses it: chaos (default), plans,'
	@echo '                    calls, memory, properties, suites, slurm, slurm-guest'
	@echo 'make bench          measure the cost of the class; B=NAME measures one thing'
	@echo 'make bench-planner  measure the planner on this machine; B=NAME measures one thing'
	@echo 'make bench-cluster  measure the planner of clusters on this machine'
	@echo 'make bench-slurm    measure planning for Slurm on this machine (as root)'
	@echo 'make bench-cosched  measure co-scheduling on this machine'
	@echo 'make reproduce      check the claims of the documents: a table and a page with'
	@echo '                    pictures; R=L3.2.2 checks those whose ids begin with that,'
	@echo '                    FULL=1 also those that take long'
	@echo 'make coverage       measure which lines of the policy its tests run; fails below 95 %'
	@echo 'make mutants        change the thresholds at each place; a test must notice'
	@echo
	@echo 'make setup          install the packages of all targets; FOR="pbsctl run" only theirs'
	@echo 'make clean          remove what was built; keep what was downloaded'
	@echo 'make distclean      remove build/'
	@echo
	@echo 'Each target installs the packages that it needs: it prints how many and how large,'
	@echo 'and asks in a terminal; YES=1 answers yes.  The virtual machine: qemu/vm --help'

setup:
	@scripts/setup $(FOR)

# The first line of each asks for the packages of that target and of no other: the table is
# in scripts/setup.
kernel:
	@scripts/setup kernel
	@scripts/kernel

user:
	@scripts/setup user
	@scripts/user

run:
	@scripts/setup run
	@scripts/kernel
	@scripts/user run
	@scripts/run-main-job
	@scripts/run-loop
	@scripts/run-service

test:
	@scripts/setup test
	@scripts/test

soak:
	@scripts/setup soak
	@scripts/kernel
	@scripts/user test
	@scripts/soak

bench:
	@scripts/setup bench
	@scripts/bench

bench-planner:
	@scripts/setup bench-planner
	@scripts/bench-planner

bench-cluster:
	@scripts/setup bench-cluster
	@scripts/bench-cluster

bench-slurm:
	@scripts/setup bench-slurm
	@scripts/bench-slurm

bench-cosched:
	@scripts/setup bench-cosched
	@scripts/bench-cosched

reproduce:
	@scripts/setup reproduce
	@scripts/kernel
	@scripts/user
	@scripts/reproduce

lint:
	@scripts/setup lint
	@scripts/test lint

pbsctl:
	@scripts/setup pbsctl
	@scripts/pbsctl

deb:
	@scripts/setup deb
	@scripts/kernel
	@scripts/user deb
	@scripts/deb

coverage:
	@scripts/setup coverage
	@scripts/coverage

mutants:
	@scripts/setup mutants
	@scripts/mutants

shell:
	@scripts/setup shell
	@scripts/kernel
	@scripts/user run
	@echo 'Ctrl-A x ends the machine.'
	@qemu/vm $(if $(ARCH),--arch $(ARCH)) $(if $(filter-out 0,$(DEBUG)),--debug) --shell

clean:
	rm -rf build/obj build/user build/initramfs*.cpio build/pbsctl build/pbs-reproduce build/deb build/run build/loop build/service build/reproduce build/test build/log build/cargo build/coverage build/mutants

distclean:
	rm -rf build
