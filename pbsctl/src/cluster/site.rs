// SPDX-License-Identifier: GPL-2.0
//! The command that checks the description of a cluster.

use std::collections::BTreeMap;
use std::path::Path;

use pbs_cluster_planner::Machine;
use pbs_resources::{format_duration, format_size};
use pbs_site::{zone_note, Optimise, Site};
use pbs_text::columns;
use serde::Serialize;

use crate::failure::Failure;
use crate::files::read;
use crate::output::{counted, report, Output};

/// Contents of a site.
#[derive(Serialize)]
struct Checked {
    site: String,
    nodes: usize,
    resources: Vec<Total>,
    limits: usize,
    pools: usize,
    users: usize,
    groups: usize,
    optimise: Option<Optimised>,
}

/// Search for better plans.
#[derive(Serialize)]
struct Optimised {
    promises: Vec<&'static str>,
    even_after_s: u64,
    run_times: &'static str,
    #[serde(flatten)]
    numbers: BTreeMap<&'static str, u64>,
}

impl Optimised {
    fn of(optimise: &Optimise) -> Self {
        Self {
            promises: optimise.promises.iter().map(|promise| promise.name()).collect(),
            even_after_s: optimise.even_after_s,
            run_times: optimise.run_times_name(),
            numbers: optimise.numbers().into_iter().collect(),
        }
    }

    fn text(&self) -> String {
        let numbers = self.numbers.iter().map(|(key, number)| format!("{key} {number}"));
        let even_after = match self.even_after_s {
            0 => "never".into(),
            even_after_s => format_duration(even_after_s),
        };
        let (promises, numbers) = (self.promises.join(", "), numbers.collect::<Vec<_>>());
        format!(
            "plans are improved: promises {promises}; {}, even_after {even_after}, run_times {}\n",
            numbers.join(", "),
            self.run_times
        )
    }
}

#[derive(Serialize)]
struct Total {
    name: String,
    total: u64,
}

pub(super) fn read_site(file: &Path) -> Result<Site, Failure> {
    let name = file.display();
    let site = Site::from_toml(&read(file)?)
        .map_err(|problems| Failure::Invalid { file: name.to_string(), problems })?;
    if let Some(note) = zone_note(&site.time_zone) {
        report(&format!("pbsctl: {name}: {note}"));
    }
    Ok(site)
}

pub(super) fn check(out: Output, file: &Path) -> Result<(), Failure> {
    let site = read_site(file)?;
    let machine = Machine::of_site(&site);
    let resources = machine
        .resources()
        .iter()
        .enumerate()
        .map(|(id, of)| Total { name: of.name.clone(), total: machine.total(id) });
    let checked = Checked {
        site: site.name.clone(),
        nodes: site.nodes.len(),
        resources: resources.collect(),
        limits: site.limits.len(),
        pools: site.pools.len(),
        users: site.users.len(),
        groups: site.groups.len(),
        optimise: site.optimise.as_ref().map(Optimised::of),
    };
    out.print(&checked, || {
        let parts = [
            counted(checked.nodes as u64, "node", "nodes"),
            counted(checked.limits as u64, "limit", "limits"),
            counted(checked.pools as u64, "pool", "pools"),
            counted(checked.users as u64, "user", "users"),
            counted(checked.groups as u64, "group", "groups"),
        ];
        let rows = checked.resources.iter().map(|of| vec![of.name.clone(), format_size(of.total)]);
        let rows: Vec<_> = rows.collect();
        let optimise = checked.optimise.as_ref().map_or(String::new(), Optimised::text);
        format!("{}: {}\n{optimise}{}", checked.site, parts.join(", "), columns(&rows, 1))
    })
}
