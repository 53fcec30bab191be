// SPDX-License-Identifier: GPL-2.0
//! Schedulers that a replay compares.

use clap::{Args, ValueEnum};
use pbs_cluster_planner::Rules;
use pbs_cluster_sim::{
    Conservative, Easy, Expect, Fcfs, Learner, Optimised, Overtaking, Planned, Policy, Promise,
    SiteQueue, SjfEasy,
};
use pbs_manager::MOST_BACKFILLS;

use super::replay_cluster::Cluster;
use super::replay_optimiser::OptimiserOptions;
use crate::given::Conditional;

/// Time for which validities that repeat are told: longer than any trace.
const HORIZON_S: u64 = 70 * 366 * 86_400;

#[derive(Args, Debug)]
pub(super) struct PolicyOptions {
    /// Schedulers to compare
    #[arg(long, value_enum, value_delimiter = ',', default_value = "fcfs,easy,planned")]
    pub(super) policy: Vec<PolicyName>,

    /// Cluster that the queues see
    #[arg(long, value_enum, value_name = "CLUSTER", default_value = "site")]
    queues_on: QueuesOn,

    /// Leave out the limits and free pools of the site and the gates of its nodes
    #[arg(long)]
    pub(super) without_rules: bool,

    /// Number of jobs that the planner and conservative backfilling try to move up after each
    /// event, and that EASY tries to start; after the next event they continue with the others.
    /// The default is that of the service
    #[arg(long, value_name = "N", default_value_t = MOST_BACKFILLS)]
    backfills: usize,

    /// Run times that the schedulers know. With several of them, each scheduler is compared with
    /// each: once, where two of them are the same to it
    #[arg(long, value_enum, value_delimiter = ',', default_value = "users")]
    pub(super) estimates: Vec<EstimatesName>,

    /// Number of replays at a time, by default one on each core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,

    /// Rule of learned run times; by default quantile for --estimates learned, and last-two for
    /// easy++
    #[arg(long, value_enum, value_name = "RULE")]
    learner: Option<LearnerName>,

    /// Print the errors of expected run times under the last scheduler, by rule and by user
    #[arg(long)]
    pub(super) run_time_errors: bool,

    #[command(flatten)]
    optimiser: OptimiserOptions,
}

/// Run times that schedulers know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum EstimatesName {
    /// The times that users requested
    Users,
    /// For the costs of optimised plans, run times that the user's earlier jobs let expect
    /// (--learner); for the others, as users
    Learned,
    /// The real run times of the jobs
    Perfect,
}

/// Rules by which run times are learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LearnerName {
    /// The mean of the user's last two run times
    LastTwo,
    /// The upper quartile of the user's last ten jobs that are alike
    Quantile,
    /// The mean of the logarithms of the user's last ten jobs that are alike; later ones count more
    WeightedMean,
    /// A regression that follows all jobs
    Regression,
}

impl LearnerName {
    fn learner(self) -> Learner {
        match self {
            Self::LastTwo => Learner::LastTwo,
            Self::Quantile => Learner::Quantile,
            Self::WeightedMean => Learner::WeightedMean,
            Self::Regression => Learner::Regression,
        }
    }
}

/// The schedulers that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum PolicyName {
    /// First come, first served
    Fcfs,
    /// EASY backfilling: the first of the queue has a reservation
    Easy,
    /// EASY backfilling, the shortest jobs first
    SjfEasy,
    /// SJF-EASY with learned run times, on one pool (EASY++)
    #[value(name = "easy++")]
    EasyPlusPlus,
    /// Conservative backfilling on one pool: every job has a reservation
    Conservative,
    /// The planner, after OpenCCS
    Planned,
    /// The planner, declining jobs that can't meet their deadlines
    PlannedDeadlines,
    /// Plans on one pool, which a search makes better at each event; nothing is promised
    Optimised,
    /// As optimised; the start in the first plan with a job is an upper bound
    OptimisedStart,
    /// Plans as of optimised; each job with a deadline is declined on arrival, or ends in time
    OptimisedDeadline,
    /// The planner with its nodes and rules, whose plan a search makes better at each event;
    /// nothing is promised
    PlannedOptimised,
    /// Plans as of planned-optimised; no request starts later than its first plan promised
    PlannedOptimisedStart,
    /// Plans as of planned-optimised; each job with a deadline is declined on arrival, or ends in
    /// time
    PlannedOptimisedDeadline,
}

impl PolicyName {
    /// Whether `--estimates learned` gives this scheduler other run times than `users`.
    fn can_learn(self) -> bool {
        matches!(self, Self::Optimised | Self::OptimisedStart | Self::OptimisedDeadline)
    }
}

/// Clusters on which queues run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum QueuesOn {
    /// The nodes of the site, with its limits, free pools and gates, as for planned jobs
    Site,
    /// One pool with all cores, without rules, as in the literature
    Pool,
}

/// Scheduler with the run times that it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contender {
    policy: PolicyName,
    pub(super) estimates: EstimatesName,
}

impl PolicyOptions {
    /// Returns all schedulers with all run times, each pair once.
    pub(super) fn contenders(&self) -> Vec<Contender> {
        let mut all = Vec::new();
        for &estimates in &self.estimates {
            for &policy in &self.policy {
                let is_same = estimates == EstimatesName::Learned && !policy.can_learn();
                let has_users = self.estimates.contains(&EstimatesName::Users);
                let contender = Contender { policy, estimates };
                if !(is_same && has_users || all.contains(&contender)) {
                    all.push(contender);
                }
            }
        }
        all
    }

    /// Returns the name of a contender in tables: with the run times, if they can be mistaken.
    pub(super) fn name_of(&self, contender: Contender, name: &str) -> String {
        match contender.estimates {
            EstimatesName::Perfect if self.estimates.len() > 1 => {
                format!("{name}, perfect estimates")
            }
            _ => name.into(),
        }
    }

    /// Returns the number of replays at a time.
    pub(super) fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.map_or_else(cores, usize::from)
    }

    /// Whether the cluster is one pool of cores to that scheduler, and has no rules.
    fn is_on_pool(&self, name: PolicyName) -> bool {
        match name {
            PolicyName::Planned
            | PolicyName::PlannedDeadlines
            | PolicyName::PlannedOptimised
            | PolicyName::PlannedOptimisedStart
            | PolicyName::PlannedOptimisedDeadline => false,
            PolicyName::Conservative
            | PolicyName::EasyPlusPlus
            | PolicyName::Optimised
            | PolicyName::OptimisedStart
            | PolicyName::OptimisedDeadline => true,
            PolicyName::Fcfs | PolicyName::Easy | PolicyName::SjfEasy => {
                self.queues_on == QueuesOn::Pool
            }
        }
    }

    /// Returns the options that not all schedulers read.
    pub(super) fn conditional(&self, on: &Cluster) -> Vec<Conditional> {
        use PolicyName::{
            Conservative, Easy, EasyPlusPlus, Fcfs, Optimised, OptimisedDeadline, OptimisedStart,
            Planned, PlannedDeadlines, PlannedOptimised, PlannedOptimisedDeadline,
            PlannedOptimisedStart, SjfEasy,
        };
        let has = |names: &[PolicyName]| self.policy.iter().any(|name| names.contains(name));
        let on_pool = has(&[Optimised, OptimisedStart, OptimisedDeadline]);
        let on_nodes = has(&[PlannedOptimised, PlannedOptimisedStart, PlannedOptimisedDeadline]);
        let learns = self.estimates.contains(&EstimatesName::Learned);
        let is_pool = self.queues_on == QueuesOn::Pool || on.is_one_pool();
        let backfills = on_nodes
            || has(&[Planned, PlannedDeadlines, Conservative])
            || has(&[Easy, SjfEasy]) && !is_pool;
        let mut all = vec![
            (
                "learner",
                has(&[EasyPlusPlus]) || learns && on_pool,
                "--policy easy++, or optimised with --estimates learned",
            ),
            (
                "estimates",
                !learns || on_pool,
                "--policy optimised, optimised-start or optimised-deadline for learned run times",
            ),
            (
                "backfills",
                backfills,
                "--policy planned or conservative, or easy on the nodes of a site",
            ),
            ("queues_on", has(&[Fcfs, Easy, SjfEasy]), "--policy fcfs, easy or sjf-easy"),
            (
                "deadline_cost",
                on_nodes || has(&[OptimisedDeadline]),
                "--policy optimised-deadline or planned-optimised",
            ),
        ];
        let express = ["express", "express_below"]
            .map(|field| (field, has(&[OptimisedDeadline]), "--policy optimised-deadline"));
        let search = OptimiserOptions::OF_ALL
            .map(|field| (field, on_pool || on_nodes, "--policy optimised or planned-optimised"));
        all.extend(express.into_iter().chain(search));
        let conditional = |(field, is_read, needs)| Conditional { field, is_read, needs };
        all.into_iter().map(conditional).collect()
    }

    /// Whether there is a scheduler to which the cluster is one pool of cores.
    pub(super) fn has_pools(&self) -> bool {
        self.policy.iter().any(|&name| self.is_on_pool(name))
    }

    /// Returns a remark if rules of the site bind some of the schedulers and not the others.
    pub(super) fn rules_remark(&self, on: &Cluster) -> Option<String> {
        let rules = on.rules_in_words()?;
        let (pools, bound): (Vec<PolicyName>, Vec<PolicyName>) =
            self.policy.iter().partition(|&&name| self.is_on_pool(name));
        if pools.is_empty() || bound.is_empty() {
            return None;
        }
        let names = |of: &[PolicyName]| {
            let names = of.iter().filter_map(ValueEnum::to_possible_value);
            names.map(|name| name.get_name().to_string()).collect::<Vec<_>>().join(", ")
        };
        Some(format!(
            "rules bind {}, but not {}: {rules}; compare these with --without-rules",
            names(&bound),
            names(&pools)
        ))
    }

    /// Creates a scheduler for an empty cluster.
    pub(super) fn scheduler(&self, of: Contender, on: &Cluster) -> Box<dyn Policy> {
        let Contender { policy: name, estimates } = of;
        let over = on.begin_s..on.begin_s.saturating_add(HORIZON_S);
        let rules = Rules::of_site(&on.site, &on.machine, over).counted_from(on.begin_s);
        let of_site = pbs_cluster_planner::Policy::of_site(&on.site);
        // Without nodes and rules, the queues of the literature are the same, and faster.
        let is_pool = self.is_on_pool(name) || on.is_one_pool();
        let learned =
            |default: LearnerName| Expect::Learned(self.learner.unwrap_or(default).learner());
        let expect = match estimates {
            EstimatesName::Learned => learned(LearnerName::Quantile),
            EstimatesName::Users | EstimatesName::Perfect => Expect::Limit,
        };
        let optimised = |promise| {
            let with = self.optimiser.with(on.cores, promise, expect);
            Box::new(Optimised::new(on.cores, with))
        };
        let overtaking = match name {
            PolicyName::Optimised => return optimised(Promise::None),
            PolicyName::OptimisedStart => return optimised(Promise::Start),
            PolicyName::OptimisedDeadline => return optimised(Promise::Deadline),
            PolicyName::EasyPlusPlus => {
                return Box::new(SjfEasy::new(on.cores, learned(LearnerName::LastTwo)));
            }
            PolicyName::SjfEasy if is_pool => {
                return Box::new(SjfEasy::new(on.cores, Expect::Limit));
            }
            PolicyName::Fcfs if is_pool => return Box::new(Fcfs::new(on.cores)),
            PolicyName::Easy if is_pool => return Box::new(Easy::new(on.cores)),
            PolicyName::Conservative => {
                return Box::new(Conservative::new(on.cores).with_most_looks(self.backfills));
            }
            PolicyName::Planned
            | PolicyName::PlannedDeadlines
            | PolicyName::PlannedOptimised
            | PolicyName::PlannedOptimisedStart
            | PolicyName::PlannedOptimisedDeadline => {
                let machine = on.machine.clone();
                let planned = Planned::with_policy(machine, rules, of_site, self.backfills);
                let improving = self.optimiser.improving();
                return Box::new(match name {
                    PolicyName::PlannedDeadlines => planned.keeping_deadlines(),
                    PolicyName::PlannedOptimised => planned.improved(improving, Promise::None),
                    PolicyName::PlannedOptimisedStart => {
                        planned.improved(improving, Promise::Start)
                    }
                    PolicyName::PlannedOptimisedDeadline => {
                        let promised = planned.keeping_deadlines();
                        promised.improved(improving, Promise::Deadline)
                    }
                    _ => planned,
                });
            }
            PolicyName::Fcfs => Overtaking::Never,
            PolicyName::Easy => Overtaking::InOrder,
            PolicyName::SjfEasy => Overtaking::ShortestFirst,
        };
        let machine = on.machine.clone();
        Box::new(SiteQueue::new(machine, rules, of_site, overtaking, self.backfills))
    }
}
