#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#CCS --res=rset=2:ncpus=16,place=scatter
#CCS -t 4h -N night
exec ./simulate --steps 1000
