// SPDX-License-Identifier: GPL-2.0
//! Options of programs that steer a partition of Slurm.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use pbs_resources::parse_duration_s;

use crate::slurm::{Options, Slurm};
use crate::steer::Settings;

/// Options of a program that steers a partition of Slurm.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Options of a partition of Slurm")]
pub struct SteeringOptions {
    /// Partition of Slurm whose jobs are planned
    #[arg(long, value_name = "NAME", default_value = "plan")]
    pub partition: String,

    /// File to which the hooks of Slurm append events
    #[arg(
        long,
        env = "PBS_SLURM_EVENTS",
        value_name = "FILE",
        default_value = "/var/lib/pbs-slurm/events"
    )]
    events: PathBuf,

    /// Release a job of Slurm this long before its planned start
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub window: Duration,

    /// Time after the planned start within which a job of Slurm may begin. A later job is held and
    /// planned again. At most the allocate_timeout of the site
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = duration)]
    grace: Duration,

    /// Cancel jobs of Slurm that have been declined for this long. By default they stay held, and
    /// Slurm counts them among its jobs (MaxJobCount)
    #[arg(long, value_name = "TIME", value_parser = duration)]
    cancel_declined: Option<Duration>,

    /// Kill an scontrol or squeue that is silent for this long, and report it
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    patience: Duration,
}

impl SteeringOptions {
    /// Names of the options, each without its dashes, as clap has them.
    pub const NAMES: [&'static str; 6] =
        ["partition", "events", "window", "grace", "cancel_declined", "patience"];

    /// Returns the settings of the steering.
    pub fn settings(&self) -> Settings {
        Settings {
            window: self.window,
            grace: self.grace,
            cancel_declined: self.cancel_declined,
            ..Settings::default()
        }
    }

    /// Starts the programs of Slurm, and opens the file of events.
    ///
    /// # Errors
    ///
    /// The file of events that can't be opened, or the program that can't be started, in words.
    pub fn connect(&self) -> Result<Slurm, String> {
        let to_slurm = Options {
            partition: self.partition.clone(),
            events: self.events.clone(),
            patience: self.patience,
        };
        Slurm::new(&to_slurm).map_err(|error| {
            let file = self.events.display();
            if error.kind() != io::ErrorKind::NotFound {
                return format!("{file}: {error}");
            }
            format!(
                "{file}: {error}. Slurm's hooks append to this file: install them and make its \
                 directory (Documentation/slurm.rst), or name another file with --events; pbsctl \
                 cluster doctor lists what is missing"
            )
        })
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let seconds = parse_duration_s(text).map_err(|error| error.message)?;
    Ok(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_all_options() {
        let command = SteeringOptions::augment_args(clap::Command::new("steer"));
        let names: Vec<&str> = command.get_arguments().map(|of| of.get_id().as_str()).collect();
        assert_eq!(names, SteeringOptions::NAMES);
    }
}
