// SPDX-License-Identifier: GPL-2.0
//! Jobs that Slurm has lost in a crash of slurmctld.

use clap::Args;
use pbs_manager::ledger::Access;
use pbs_site::format_time;
use pbs_slurm::steer::{Key, LOST};
use pbs_text::{shown as foreign, Format, Table};
use serde::Serialize;

use super::ledger::{failure, LedgerOptions};
use crate::failure::Failure;
use crate::output::{counted, Output};

#[derive(Args, Debug)]
pub(super) struct LostOptions {
    #[command(flatten)]
    ledger: LedgerOptions,

    /// Only jobs of this user
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
}

#[derive(Serialize)]
struct Lost {
    jobs: Vec<Job>,
}

#[derive(Serialize)]
struct Job {
    job: String,
    request: u64,
    user: String,
    name: String,
    submitted_s: u64,
    lost_s: Option<u64>,
}

pub(super) fn lost(out: Output, options: &LostOptions) -> Result<(), Failure> {
    let manager = options.ledger.open(Access::Read)?;
    let rows = manager.rows().map_err(failure)?.into_iter();
    let is_lost = |row: &pbs_manager::ledger::Row| {
        let is_of = options.user.as_ref().is_none_or(|user| row.user == *user);
        is_of && row.outcome.as_deref() == Some(LOST)
    };
    let jobs = rows.filter(is_lost).filter_map(|row| {
        let key: Key = row.command.first()?.parse().ok()?;
        Some(Job {
            job: key.name(),
            request: row.id,
            user: row.user.clone(),
            name: row.name.clone(),
            submitted_s: key.submit_s,
            lost_s: row.end_s,
        })
    });
    let lost = Lost { jobs: jobs.collect() };
    out.named("cluster-lost").print(&lost, || {
        let zone = &manager.site().time_zone;
        let mut table = Table::new(&["job", "user", "name", "submitted", "lost"], 5);
        for job in &lost.jobs {
            table.push(vec![
                job.job.clone(),
                foreign(&job.user).to_string(),
                foreign(&job.name).to_string(),
                format_time(job.submitted_s, zone),
                job.lost_s.map_or_else(|| "?".into(), |lost_s| format_time(lost_s, zone)),
            ]);
        }
        let count = counted(lost.jobs.len() as u64, "lost job", "lost jobs");
        if lost.jobs.is_empty() {
            return format!("{count}\n");
        }
        format!("{count}, to be submitted again\n{}", table.print(Format::Text))
    })
}
