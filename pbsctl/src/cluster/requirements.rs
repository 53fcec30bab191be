// SPDX-License-Identifier: GPL-2.0
//! Requirements of a request: the options that the command line and scripts share.

use clap::{Args, ValueEnum};
use pbs_cluster_planner::When;
use pbs_manager::Wish;
use pbs_resources::Rset;
use pbs_site::Promise;

use super::ledger::{duration_s, run_time_s, time_s};
use super::numbers::{array, depend, Array, Dependencies};
use super::reach::Reached;
use crate::failure::Failure;

/// Requirements of a request, from the command line or a script.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct Requirements {
    /// Resources and placement, such as rset=5:ncpus=16:mem=12g+ncpus=1,sw=g03,place=scatter:excl
    #[arg(long, value_name = "RSET", value_parser = rset)]
    res: Option<Rset>,

    /// Longest run time: 4h, 1h30m, 7d, 00:10:00
    #[arg(short = 't', long = "time", value_name = "DURATION", value_parser = run_time_s)]
    duration_s: Option<u64>,

    /// Group that the request is charged to
    #[arg(short, long, value_name = "NAME")]
    group: Option<String>,

    /// Name of the request
    #[arg(short = 'N', long, value_name = "NAME")]
    name: Option<String>,

    #[command(flatten)]
    when: WhenOptions,

    /// Submit one request for each number: 0-99, 1-10:2 or 1,3,5
    #[arg(short = 'J', long, value_name = "NUMBERS", value_parser = array)]
    array: Option<Array>,

    /// Run inside this reservation
    #[arg(long, value_name = "ID")]
    within: Option<u64>,

    /// Run after other requests: afterok:7 (if 7 completed), afternotok:7, afterany:7; several as
    /// afterok:7:8, an array as afterok:7-16
    #[arg(long, value_name = "HOW:ID,...", value_delimiter = ',', value_parser = depend)]
    depend: Vec<Dependencies>,

    /// Real run time, for the simulation
    #[arg(long, value_name = "DURATION", value_parser = duration_s)]
    run: Option<u64>,

    /// Notify the user this long before the end
    #[arg(long, value_name = "DURATION", value_parser = duration_s)]
    notify: Option<u64>,

    /// Notify programs then by this signal: HUP, INT, TERM, USR1 or USR2
    ///
    /// Programs get it on engines that run them. Those that do not handle it are left alone.
    #[arg(long, value_name = "SIGNAL", requires = "notify")]
    notify_signal: Option<String>,

    /// Start the request again if its node fails
    #[arg(long)]
    restartable: bool,

    /// Promise that better plans keep; the site lists those it allows, and the first of them is the
    /// default
    #[arg(long, value_enum, value_name = "PROMISE")]
    promise: Option<PromiseName>,
}

/// Promises to the user of a request.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum PromiseName {
    /// A better plan may start the request at any time
    None,
    /// No later plan starts the request later
    Start,
    /// The request ends by its deadline, and may start at any time that allows it
    Deadline,
}

impl From<PromiseName> for Promise {
    fn from(name: PromiseName) -> Self {
        match name {
            PromiseName::None => Self::None,
            PromiseName::Start => Self::Start,
            PromiseName::Deadline => Self::Deadline,
        }
    }
}

/// Planned time of a request; as early as possible if none is given.
#[derive(Args, Clone, Debug, Default)]
#[group(multiple = true)]
pub(super) struct WhenOptions {
    /// Start exactly at this time: +2h, 16:00 (the next), 2026-08-01T08:00, @1785571200
    #[arg(long, value_name = "TIME", conflicts_with_all = ["after", "deadline", "provisional", "sla"])]
    start: Option<String>,

    /// Start at this time or later
    #[arg(long, value_name = "TIME", conflicts_with_all = ["deadline", "provisional", "sla"])]
    after: Option<String>,

    /// End by this time; decline the request if that is impossible
    #[arg(long, value_name = "TIME", conflicts_with_all = ["provisional", "sla"])]
    deadline: Option<String>,

    /// Start as late as the deadline allows
    #[arg(long, requires = "deadline")]
    late: bool,

    /// Drop the request at this time unless it is confirmed
    #[arg(long, value_name = "TIME", conflicts_with = "sla")]
    provisional: Option<String>,

    /// End by this time if possible; report it otherwise
    #[arg(long, value_name = "TIME")]
    sla: Option<String>,
}

pub(super) fn rset(text: &str) -> Result<Rset, String> {
    let parsed = text.parse();
    parsed.map_err(|error: pbs_resources::Error| {
        format!("column {}: {}", error.column, error.message)
    })
}

impl WhenOptions {
    /// `None`: nothing is said.
    pub(super) fn when(&self, cluster: &Reached<'_>) -> Result<Option<When>, Failure> {
        let (now_s, zone) = (cluster.clock_s(), cluster.zone());
        let time = |text: &String| time_s(text, now_s, zone);
        Ok(match self {
            Self { start: Some(at), .. } => Some(When::Fixed { start_s: time(at)? }),
            Self { after: Some(at), .. } => Some(When::After { start_s: time(at)? }),
            Self { deadline: Some(at), .. } => {
                Some(When::Deadline { end_s: time(at)?, late: self.late })
            }
            Self { provisional: Some(at), .. } => Some(When::Provisional { until_s: time(at)? }),
            Self { sla: Some(at), .. } => Some(When::Agreement { end_s: time(at)? }),
            Self { .. } => None,
        })
    }

    fn is_said(&self) -> bool {
        let all = [&self.start, &self.after, &self.deadline, &self.provisional, &self.sla];
        all.iter().any(|it| it.is_some())
    }
}

impl Requirements {
    /// Whether the resources are named.
    pub(super) fn has_resources(&self) -> bool {
        self.res.is_some()
    }

    /// Takes from the script the options that the command line leaves out.
    pub(super) fn completed(&self, script: &Self) -> Self {
        Self {
            res: self.res.clone().or_else(|| script.res.clone()),
            duration_s: self.duration_s.or(script.duration_s),
            group: self.group.clone().or_else(|| script.group.clone()),
            name: self.name.clone().or_else(|| script.name.clone()),
            when: if self.when.is_said() { self.when.clone() } else { script.when.clone() },
            array: self.array.clone().or_else(|| script.array.clone()),
            within: self.within.or(script.within),
            depend: if self.depend.is_empty() {
                script.depend.clone()
            } else {
                self.depend.clone()
            },
            run: self.run.or(script.run),
            notify: self.notify.or(script.notify),
            notify_signal: self.notify_signal.clone().or_else(|| script.notify_signal.clone()),
            restartable: self.restartable || script.restartable,
            promise: self.promise.or(script.promise),
        }
    }

    pub(super) fn wish(&self, cluster: &Reached<'_>, command: &[String]) -> Result<Wish, Failure> {
        let rset = self.res.clone().ok_or_else(|| {
            let what = "the request names no resources; add --res, such as --res rset=ncpus=4, or \
                        a line #CCS --res=… to the script";
            Failure::Usage(what.into())
        })?;
        cluster.note_doubtful(&rset);
        let user = cluster.user()?;
        // Without a word a user's own account.
        let group = self.group.clone().unwrap_or_else(|| cluster.own_group(&user.name));
        Ok(Wish {
            duration_s: self.duration_s.unwrap_or(0),
            when: self.when.when(cluster)?.unwrap_or(When::BestEffort),
            name: self.name.clone().unwrap_or_default(),
            command: command.to_vec(),
            run_s: self.run,
            notify_s: self.notify,
            notify_signal: self.notify_signal.clone(),
            is_restartable: self.restartable,
            array: self.array.clone().map(|array| array.0),
            within: self.within,
            after: self.depend.iter().flat_map(|of| &of.0).copied().collect(),
            promise: self.promise.map(Promise::from),
            ..Wish::new(rset, user, &group)
        })
    }
}
