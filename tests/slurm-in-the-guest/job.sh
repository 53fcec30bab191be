#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#SBATCH --partition=plan --ntasks=1 --cpus-per-task=1 --time=1
scontrol show job -d "$SLURM_JOB_ID" | grep -o 'CPU_IDs=[0-9,-]*'
srun pbsctl step job.toml --output step.out
echo "step: $?"
