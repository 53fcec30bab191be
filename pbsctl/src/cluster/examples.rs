// SPDX-License-Identifier: GPL-2.0
//! Examples in the help of the commands for clusters.

pub(super) const CHECK: &str = "\
Examples:
  pbsctl cluster check site.toml
  pbsctl --json cluster check site.toml | jq .resources";

pub(super) const REPLAY: &str = "\
Examples:
  pbsctl cluster replay trace.swf --site site.toml
  pbsctl cluster replay trace.swf --policy easy,easy++,optimised --picture trace.svg
  pbsctl cluster replay trace.swf --policy easy,optimised --estimates users,learned,perfect
  pbsctl cluster replay --generate lublin --cores 128 --load 110 --seeds 3
  zcat trace.swf.gz | pbsctl cluster replay - --cores 128";

pub(super) const ACCOUNTING: &str = "\
Examples:
  SLURM_TIME_FORMAT=%s sacct -a -X -P -S 2026-10-01 -E 2026-11-01 \\
      -o JobIDRaw,JobName,User,Account,Partition,Submit,Eligible,Start,End,TimelimitRaw,\\
ReqTRES,AllocTRES,State > october.txt
  pbsctl cluster accounting october.txt --cores 2048 --output october.swf
  pbsctl cluster replay october.swf --policy easy,planned --leave-out 1d";

pub(super) const RAN: &str = "\
Examples:
  pbsctl cluster ran planned=planned.txt backfill=backfill.txt --nodes 4
  pbsctl cluster ran planned=planned.txt --gantt pictures";

pub(super) const LOST: &str = "\
Examples:
  pbsctl cluster lost
  pbsctl cluster lost --user anna --ledger /var/lib/pbs/cluster.db";

pub(super) const WORKLOAD: &str = "\
Examples:
  pbsctl cluster workload --jobs 10000 --per-day 20000 --output trace.swf
  pbsctl cluster workload --model lublin --cores 256 --load 110 --seed 7";

pub(super) const NEW: &str = "\
Examples:
  pbsctl cluster new --site site.toml
  pbsctl cluster new --site site.toml --at 2026-08-01T08:00 --ledger august.db";

pub(super) const SITE: &str = "\
Examples:
  pbsctl cluster site site.toml
  pbsctl cluster site larger.toml --ledger august.db";

pub(super) const ADVANCE: &str = "\
Examples:
  pbsctl cluster advance +2h
  pbsctl cluster advance 2026-08-01T16:00
  pbsctl cluster advance                        # until all requests have ended";

pub(super) const SERVE: &str = "\
Examples:
  pbsctl cluster serve --until-idle
  pbsctl cluster serve --slurm --partition plan --ledger /var/lib/pbs/cluster.db";

pub(super) const ALLOC: &str = "\
Examples:
  pbsctl cluster alloc --res rset=2:ncpus=16:mem=12g,place=scatter -t 4h -N run -- ./app
  pbsctl cluster alloc --res rset=ncpus=4 -t 1h --deadline +6h -J 0-99 -- ./part
  pbsctl cluster alloc --res rset=ncpus=1 -t 5m --depend afterok:7 -- ./collect
  pbsctl cluster alloc -- ./script.sh           # options from its lines #CCS";

pub(super) const RESERVE: &str = "\
Examples:
  pbsctl cluster reserve --res rset=4:ncpus=16 -t 2h --start 16:00 -N course
  pbsctl cluster alloc --res rset=ncpus=4 -t 20m --within 7 -- ./app   # in reservation 7";

pub(super) const ALTER: &str = "\
Examples:
  pbsctl cluster alter 7 -t 2h
  pbsctl cluster alter 7 --res rset=4:ncpus=8 --deadline +6h";

pub(super) const RESIZE: &str = "\
Examples:
  pbsctl cluster resize 7 --res rset=3:ncpus=16";

pub(super) const EXTEND: &str = "\
Examples:
  pbsctl cluster extend 7 30m";

pub(super) const CONFIRM: &str = "\
Examples:
  pbsctl cluster confirm 7
  pbsctl cluster confirm 7 8";

pub(super) const KILL: &str = "\
Examples:
  pbsctl cluster kill 7
  pbsctl cluster kill 7 8 9";

pub(super) const INFO: &str = "\
Examples:
  pbsctl cluster info
  pbsctl cluster info 7
  pbsctl --json cluster info --all | jq '.requests[] | {id, state, outcome}'";

pub(super) const WHY: &str = "\
Examples:
  pbsctl cluster why 7";

pub(super) const NODE: &str = "\
Examples:
  pbsctl cluster node
  pbsctl cluster node offline node03 node04 --why 'disk is full'
  pbsctl cluster node defect node03 --parts ncpus=2:mem=16g --why 'a DIMM'
  pbsctl cluster node defect node03 --parts none
  pbsctl cluster node online node03";

pub(super) const LIMITS: &str = "\
Examples:
  pbsctl cluster limits
  pbsctl cluster limits --user anna --group physics";

pub(super) const PLAN: &str = "\
Examples:
  pbsctl cluster plan
  pbsctl cluster plan --gantt plan.svg --span 2d";

pub(super) const STAT: &str = "\
Examples:
  pbsctl cluster stat
  pbsctl --json cluster stat | jq .users";

pub(super) const OPTIMISER: &str = "\
Examples:
  pbsctl cluster optimiser
  pbsctl --json cluster optimiser | jq '.last.after.total'";

pub(super) const WATCH: &str = "\
Examples:
  pbsctl cluster watch
  pbsctl cluster watch 7                        # until request 7 has ended";

pub(super) const SYSTEMS: &str = "\
Examples:
  pbsctl cluster systems
  pbsctl cluster systems /var/lib/pbs/clusters";
