// SPDX-License-Identifier: GPL-2.0
//! Changes that an operator must make in Slurm before its jobs can be planned.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Args;
use jiff::tz::TimeZone;
use pbs_manager::ledger::Access;
use pbs_manager::{Manager, Simulated};
use pbs_site::Site;
use pbs_slurm::conf::{check, read, release_finding, site_of, Conf, Finding, Level};
use pbs_text::append_line;
use serde::Serialize;

use super::ledger::failure;
use crate::failure::Failure;
use crate::files::write;
use crate::output::{counted, Output};

/// Slurm's configuration, unless another is named.
pub(super) const CONF: &str = "/etc/slurm/slurm.conf";

const DOCTOR_HELP: &str = "\
Examples:
  pbsctl cluster doctor
  pbsctl cluster doctor --conf /etc/slurm/slurm.conf --partition plan
  pbsctl cluster doctor --site site.toml && pbsctl cluster new --site site.toml
  pbsctl cluster doctor --ledger /var/lib/pbs-slurm/cluster.db
  pbsctl --json cluster doctor | jq '.findings[] | select(.level == \"error\")'

Exit status:
  0  jobs can be planned; there may be advice
  1  there are errors, or the files can't be read";

#[derive(Args, Debug)]
#[command(after_help = DOCTOR_HELP)]
pub(super) struct DoctorOptions {
    /// Slurm's configuration. job_submit.lua, jobcomp.lua and plugstack.conf are looked for in the
    /// same directory
    #[arg(long, value_name = "FILE", env = "SLURM_CONF", default_value = CONF)]
    conf: PathBuf,

    /// Partition whose jobs are planned
    #[arg(long, value_name = "NAME", default_value = "plan")]
    partition: String,

    /// A partition without its option, which is refused with a hint
    #[arg(value_name = "NAME", hide = true)]
    misplaced: Option<String>,

    /// Compare Slurm's times with those of the site of this ledger; with the defaults of sites
    /// otherwise
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,

    /// Write a site file with the nodes of the partition, for `pbsctl cluster new`
    #[arg(long, value_name = "FILE")]
    site: Option<PathBuf>,
}

#[derive(Serialize)]
struct Doctor<'a> {
    conf: &'a Path,
    partition: &'a str,
    nodes: usize,
    cpus: u64,
    memory_bytes: u64,
    errors: usize,
    findings: Vec<FindingRow<'a>>,
}

#[derive(Serialize)]
struct FindingRow<'a> {
    level: &'static str,
    key: &'a str,
    is: Option<&'a str>,
    should: &'a str,
    why: &'a str,
    file: Option<&'a Path>,
    line: Option<usize>,
}

impl<'a> FindingRow<'a> {
    fn of(finding: &'a Finding) -> Self {
        let place = finding.place.as_ref();
        Self {
            level: finding.level.name(),
            key: &finding.key,
            is: finding.is.as_deref(),
            should: &finding.should,
            why: &finding.why,
            file: place.map(|of| of.file.as_path()),
            line: place.map(|of| of.line),
        }
    }
}

pub(super) fn doctor(out: Output, options: &DoctorOptions) -> Result<ExitCode, Failure> {
    if let Some(name) = &options.misplaced {
        return Err(Failure::Usage(format!(
            "a partition is named by an option; write pbsctl cluster doctor --partition {name}"
        )));
    }
    let conf = read(&options.conf).map_err(|error| unreadable(&options.conf, &error))?;
    let release_timeout_s = match &options.ledger {
        Some(ledger) => {
            let opened = Manager::open(ledger, Access::Read, Simulated::default());
            opened.map_err(failure)?.0.site().release_timeout_s
        }
        // A site file that is written has a timeout that suits.
        None if options.site.is_some() => u64::MAX,
        None => Site::new("", TimeZone::UTC).release_timeout_s,
    };
    let mut findings = check(&conf, &options.partition, release_timeout_s);
    findings.extend(about_release());
    if let Some(site) = &options.site {
        write(site, &site_of(&conf, &options.partition))?;
    }
    let doctor = of(&conf, &options.partition, &findings);
    let out = out.named("cluster-doctor");
    let printed = out.print(&doctor, || text(&doctor, &findings));
    if doctor.errors > 0 {
        // The errors take precedence over a failure to print them.
        let what = format!(
            "{}: jobs of {} can't be planned with this configuration",
            counted(doctor.errors as u64, "error", "errors"),
            doctor.partition
        );
        return Ok(out.tell_after(&Failure::Failed(what)));
    }
    printed?;
    Ok(ExitCode::SUCCESS)
}

/// The failure for a configuration that can't be read; one that is missing may be elsewhere.
fn unreadable(conf: &Path, error: &impl std::fmt::Display) -> Failure {
    let elsewhere = if conf.exists() {
        ""
    } else {
        "; name Slurm's configuration with --conf, or in SLURM_CONF"
    };
    Failure::Failed(format!("{error}{elsewhere}"))
}

/// A finding about the release of the installed Slurm. Without one there is nothing to find.
fn about_release() -> Option<Finding> {
    // Without an installed Slurm there is no release to name.
    let output = Command::new("scontrol").arg("--version").output().ok()?;
    release_finding(&String::from_utf8_lossy(&output.stdout))
}

fn of<'a>(conf: &'a Conf, partition: &'a str, findings: &'a [Finding]) -> Doctor<'a> {
    let nodes = conf.nodes(partition);
    let errors = findings.iter().filter(|of| of.level == Level::Error);
    Doctor {
        conf: &conf.path,
        partition,
        nodes: nodes.len(),
        cpus: nodes.iter().map(|of| of.cpus).fold(0, u64::saturating_add),
        memory_bytes: nodes
            .iter()
            .map(|of| of.memory_mib.saturating_mul(1 << 20))
            .fold(0, u64::saturating_add),
        errors: errors.count(),
        findings: findings.iter().map(FindingRow::of).collect(),
    }
}

fn text(doctor: &Doctor<'_>, findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let place = match &finding.place {
            Some(place) => format!("{place}: "),
            None => String::new(),
        };
        let is = finding.is.as_deref().unwrap_or("missing");
        append_line!(
            text,
            "{place}{}: {} is {is}\n    should be: {}\n    {}",
            finding.level.name(),
            finding.key,
            finding.should,
            finding.why
        );
    }
    let advice = doctor.findings.len() - doctor.errors;
    append_line!(
        text,
        "partition {}: {} with {}; {}, {}",
        doctor.partition,
        counted(doctor.nodes as u64, "node", "nodes"),
        counted(doctor.cpus, "CPU", "CPUs"),
        counted(doctor.errors as u64, "error", "errors"),
        counted(advice as u64, "piece of advice", "pieces of advice"),
    );
    text
}
