// SPDX-License-Identifier: GPL-2.0
//! Texts that users are shown about their jobs.

mod common;

use common::*;

/// The start is a date in the time zone of the site, before and after the release of the job, and
/// nodes are a list as Slurm writes them.
#[test]
fn a_user_is_told_the_planned_start_as_a_date() {
    let site = format!("time_zone = 'Europe/Berlin'{SITE}");
    let mut lab = Lab::of_site("told-date", &site, &["n01", "n02", "n03", "n04"]);
    let job = lab.slurm.submit(1, 3, 6, 60, 5);
    let start_s = T + 60;
    lab.slurm.alter(job, |job| job.start_s = Some(start_s));
    lab.turn();
    let told = "planned for 2025-11-24T17:01:00+01:00 on n[01-03]";
    assert_eq!((lab.row(job).start_s, &*lab.slurm.told[&job]), (Some(start_s), told));
    lab.slurm.told.clear();
    while !committed(&lab.state(job)) {
        lab.seconds(1);
    }
    assert_eq!(lab.slurm.told[&job], told);
}
