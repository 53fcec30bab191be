// SPDX-License-Identifier: GPL-2.0
//! From the words of a site to the numbers of the planner.

use std::ops::Range;

use pbs_profile::FOREVER;
use pbs_resources::{Condition, Value};
use pbs_site::{Consumer, Kind, Privilege, Scope, Share, Site, Validity, Whom};

use crate::machine::{Machine, NodeSpec, Resource};
use crate::need::Need;
use crate::optimise::{growth_per_s, Budget, Improving, Objective};
use crate::request::{Refusal, Request, When};
use crate::rules::{Limit, Limited, Pool, Rules};

impl Machine {
    /// The nodes of a site. What is job-wide and told apart by words (`sw=g03`) is a
    /// resource for each word.
    pub fn of_site(site: &Site) -> Self {
        let mut resources = vec![Resource { name: "ncpus".into(), job_wide: None }];
        let consumables = site.resources.iter().filter(|of| of.kind == Kind::Consumable);
        for resource in consumables {
            let job_wide = (resource.scope == Scope::Job).then_some(resource.amount);
            if resource.name != "ncpus" && resource.items.is_empty() {
                resources.push(Resource { name: resource.name.clone(), job_wide });
            }
            resources.extend(resource.items.iter().map(|(word, &amount)| Resource {
                name: format!("{}={word}", resource.name),
                job_wide: Some(amount),
            }));
        }
        let place = |name: &str| {
            let place = resources.iter().position(|of| of.name == name);
            place.filter(|&place| resources[place].job_wide.is_none())
        };
        let nodes = site.nodes.iter().map(|node| {
            let mut has = vec![0; resources.len()];
            let mut words = Vec::new();
            for item in &node.has {
                match (place(&item.resource), &item.value) {
                    (Some(place), &Value::Amount(amount)) => has[place] = amount,
                    (_, Value::Amount(amount)) => {
                        words.push((item.resource.clone(), amount.to_string()));
                    }
                    (_, Value::Word(word)) => words.push((item.resource.clone(), word.clone())),
                }
            }
            let kept = node.kept.as_ref();
            NodeSpec {
                name: node.name.clone(),
                has,
                words,
                prio: node.prio,
                only_if: node.only_if.clone(),
                kept: kept.and_then(|kept| Some((place(&kept.resource)?, kept.cores))),
                switch: node.switch.clone(),
            }
        });
        let nodes: Vec<_> = nodes.collect();
        Self::new(resources, &nodes)
    }
}

impl Improving {
    /// The search for better plans of a site; `None`: the site wants none.
    pub fn of_site(site: &Site, seed: u64) -> Option<Self> {
        let of = site.optimise.as_ref()?;
        // The numbers of a site are small enough for a float.
        let growth_per_s = match of.even_after_s {
            0 => 0.0,
            even_after_s => growth_per_s(even_after_s),
        };
        let objective = Objective {
            wait_per_s: of.wait as f64,
            slowdown: of.slowdown as f64,
            fairness: of.fairness as f64,
            growth_per_s,
            missed_deadline: of.deadline as f64,
            length_per_s: of.utilisation as f64,
        };
        let budget = Budget { orders: of.orders, placements: of.placements };
        Some(Self { objective, budget, seed })
    }
}

impl Rules {
    /// The limits and pools of a site, for a span of time; beyond its end nothing is
    /// planned if one of them repeats.
    pub fn of_site(site: &Site, machine: &Machine, over: Range<u64>) -> Self {
        let repeats = |validity: &Validity| matches!(validity, Validity::Cron(_));
        let limits = site.limits.iter().map(|limit| &limit.validity);
        let pools = site.pools.iter().map(|pool| &pool.validity);
        let resources = site.resources.iter().map(|resource| &resource.validity);
        let consumers = site.users.iter().chain(&site.groups).map(|consumer| &consumer.validity);
        let mut all = limits.chain(pools).chain(resources).chain(consumers);
        let horizon_s = if all.any(repeats) { over.end } else { FOREVER };
        let valid =
            |validity: &Validity| -> Vec<_> { validity.windows(over.start..horizon_s).collect() };
        let limits = site.limits.iter().filter_map(|limit| {
            let of = match &limit.resource[..] {
                "*" => Limited::All,
                "jobs" => Limited::Requests,
                "arrayjobs" => Limited::ArrayRequests,
                name => Limited::Resource(machine.resource(name)?),
            };
            Some(Limit {
                whom: limit.whom.clone(),
                of,
                items: limit.items,
                soft_permille: limit.soft_permille,
                duration_s: limit.duration_s,
                area_s: limit.area_s,
                valid: valid(&limit.validity),
            })
        });
        let pools = site.pools.iter().filter_map(|pool| {
            Some(Pool {
                name: pool.name.clone(),
                resource: machine.resource(&pool.resource)?,
                free: pool.free,
                access: pool.access.clone(),
                share: pool.share,
                for_askers: false,
                valid: valid(&pool.validity),
            })
        });
        // A planner has 64 pools; the validity of resources goes first.
        let invalid = site.resources.iter().filter(|of| of.validity != Validity::Always);
        let invalid = invalid.flat_map(|of| {
            let gaps = gaps(&valid(&of.validity), over.start..horizon_s);
            kept_from_all(machine, &of.name, &gaps)
        });
        let users = site.users.iter().map(|of| (Whom::User(of.name.clone()), &of.validity));
        let groups = site.groups.iter().map(|of| (Whom::Group(of.name.clone()), &of.validity));
        let locks = users.chain(groups).filter(|(_, validity)| **validity != Validity::Always);
        let locks =
            locks.map(|(whom, of)| (whom, gaps(&valid(of), over.start..horizon_s))).collect();
        let (limits, pools) = (limits.collect(), invalid.chain(pools).collect());
        Self { limits, pools, locks, horizon_s }
    }
}

/// Returns the time that no window covers. Windows are disjoint and in the order of time.
fn gaps(windows: &[Range<u64>], over: Range<u64>) -> Vec<Range<u64>> {
    let mut gaps = Vec::new();
    let mut from_s = over.start;
    for window in windows {
        if from_s < window.start {
            gaps.push(from_s..window.start);
        }
        from_s = from_s.max(window.end);
    }
    if from_s < over.end {
        gaps.push(from_s..over.end);
    }
    gaps
}

/// A resource outside of its validity, as pools that admit nobody. A resource that is requested by
/// word (`sw=g03`) has one for each word.
fn kept_from_all(machine: &Machine, name: &str, gaps: &[Range<u64>]) -> Vec<Pool> {
    let of_word = format!("{name}=");
    let resources = machine.resources().iter().enumerate();
    let of_it = resources.filter(|(_, of)| of.name == name || of.name.starts_with(&of_word));
    of_it
        .map(|(resource, of)| Pool {
            name: format!("validity of {}", of.name),
            resource,
            free: Share { least: None, permille: Some(1000) },
            access: Condition::Any(Vec::new()),
            share: false,
            for_askers: true,
            valid: gaps.to_vec(),
        })
        .collect()
}

impl Request {
    /// Completes a request as its site wants it (Keller, 5.1): default values where it says
    /// nothing, then force values whatever it says, of the site, the group and the user in
    /// this order; then its priority, by type, special resources and nodes (5.4).
    ///
    /// # Errors
    ///
    /// [`Refusal::NotKnown`] where the site lists others, [`Refusal::Locked`] behind the end of the
    /// validity of user or group, and [`Refusal::NotAllowed`] without the privilege for its type.
    pub fn complete(&mut self, site: &Site, machine: &Machine, now_s: u64) -> Result<(), Refusal> {
        let consumers: Vec<&Consumer> = site.consumers(&self.user.name, &self.group).collect();
        if !site.is_known(&self.user.name, &self.group) {
            return Err(Refusal::NotKnown(self.user.name.clone(), self.group.clone()));
        }
        // Who is locked now and not later has a place later.
        let is_locked = |of: &&&Consumer| of.validity.windows(now_s..FOREVER).next().is_none();
        if let Some(locked) = consumers.iter().find(is_locked) {
            return Err(Refusal::Locked(locked.name.clone()));
        }
        let privilege = match self.when {
            When::BestEffort => None,
            When::Fixed { .. } => Some(Privilege::FixedStart),
            When::After { .. } => Some(Privilege::SlotAware),
            When::Deadline { .. } | When::Between { .. } => Some(Privilege::Deadline),
            When::Provisional { .. } => Some(Privilege::Provisional),
            When::Agreement { .. } => Some(Privilege::Sla),
        };
        let array = self.is_of_array.then_some(Privilege::Array);
        for privilege in privilege.into_iter().chain(array) {
            if !site.may(&self.user.name, &self.group, privilege) {
                return Err(Refusal::NotAllowed(privilege.name()));
            }
        }
        let accepted = site.accept(&self.rset, &self.user.name, &self.group);
        self.rset = accepted.map_err(Refusal::NotAccepted)?;
        if self.duration_s == 0 {
            self.duration_s = site.default_duration_s;
        }
        let of_consumers: i64 = consumers.iter().map(|of| of.priority).sum();
        self.priority = self.priority.saturating_add(of_consumers);
        let need = Need::new(machine, &self.rset, self.duration_s.max(1))?;
        self.priority = self.priority.saturating_add(weighed(site, machine, &need, self.when));
        Ok(())
    }
}

/// Keller's criteria: job type, expensive or special resources, node parallelism.
fn weighed(site: &Site, machine: &Machine, need: &Need, when: When) -> i64 {
    let weights = &site.weights;
    let by_type = match when {
        When::BestEffort => weights.best_effort,
        When::Fixed { .. } => weights.fixed_start,
        When::After { .. } => weights.slot_aware,
        When::Deadline { .. } | When::Between { .. } => weights.deadline,
        When::Provisional { .. } => weights.provisional,
        When::Agreement { .. } => weights.sla,
    };
    let special = need.sums.iter().map(|&(resource, _)| {
        let name = machine.resources().get(resource).map(|of| &of.name);
        name.and_then(|name| weights.resources.get(name)).copied().unwrap_or(0)
    });
    let chunks: u64 = need.kinds.iter().map(|kind| kind.count).sum();
    let nodes = i64::try_from(chunks).unwrap_or(i64::MAX);
    by_type
        .saturating_add(special.fold(0, i64::saturating_add))
        .saturating_add(weights.per_node.saturating_mul(nodes))
}
