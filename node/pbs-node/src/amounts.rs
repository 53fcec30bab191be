// SPDX-License-Identifier: GPL-2.0
//! Amounts of the node's resources that an operator sets, such as licences that are not available
//! for a while (Leppert 2021, 3.3.2).
//!
//! Jobs that were promised more than a smaller amount keep it. A job that holds the resource waits
//! until they fit, and so does one that needs more than there is for the time being.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use pbs_job::{Job, Machine, MAX_AMOUNT};
use pbs_planner::{validate_machine, Shortage};

use crate::clock::monotonic_ns;
use crate::jobs::Jobs;
use crate::Error;

/// Amounts of resources that differ from those of the machine, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Amounts(BTreeMap<String, u64>);

/// Knowledge of the amounts that a round over many jobs has after the first of them.
#[derive(Debug, Default)]
pub(crate) struct AmountsNow {
    /// The most that jobs hold of resources, by the places of these on the machine.
    held: BTreeMap<usize, u64>,
    /// The machine with the present amounts.
    machine: Option<Machine>,
}

/// A resource of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceState {
    /// Name of the resource.
    pub name: String,
    /// Amount for new jobs.
    pub amount: u64,
    /// Amount in the file of the machine.
    pub declared: u64,
    /// The most that jobs which were admitted hold at once from now on.
    pub promised: u64,
}

impl ResourceState {
    /// Amount that jobs hold beyond what there is, since they were promised it before.
    pub fn exceeding(&self) -> u64 {
        self.promised.saturating_sub(self.amount)
    }
}

impl Jobs {
    pub(crate) fn resources(&self) -> Vec<ResourceState> {
        let now_ns = monotonic_ns();
        let resources = self.machine.resources.iter().enumerate();
        let states = resources.map(|(index, resource)| ResourceState {
            name: resource.name.clone(),
            amount: self.amount(index),
            declared: resource.count,
            promised: self.controller.most_held(index, now_ns),
        });
        states.collect()
    }

    pub(crate) fn set_amount(&mut self, name: &str, amount: u64) -> Result<(), Error> {
        let Some(index) = self.machine.resource(name) else {
            let names = self.machine.resources.iter().map(|it| it.name.clone());
            return Err(Error::NoResource(name.into(), names.collect()));
        };
        if amount > MAX_AMOUNT {
            return Err(Error::Amount(name.into(), amount));
        }
        if amount == self.machine.resources[index].count {
            self.amounts.0.remove(name);
        } else {
            self.amounts.0.insert(name.into(), amount);
        }
        self.settle_amounts();
        self.backlog.check_again();
        Ok(())
    }

    /// Amount of a resource for new jobs.
    fn amount(&self, resource: usize) -> u64 {
        let of = &self.machine.resources[resource];
        self.amounts.0.get(&of.name).copied().unwrap_or(of.count)
    }

    /// Amount of a resource that is planned with: more than that for new jobs while admitted ones
    /// hold more.
    fn amount_in_force(&self, resource: usize) -> u64 {
        self.controller.store().machine().resources[resource].count
    }

    /// Plans with the amounts that were set, or with as much as admitted jobs hold if that is more.
    pub(crate) fn settle_amounts(&mut self) {
        let now_ns = monotonic_ns();
        for resource in 0..self.machine.resources.len() {
            let held = self.controller.most_held(resource, now_ns);
            let amount = self.amount(resource).max(held);
            if amount == self.amount_in_force(resource) {
                continue;
            }
            if self.controller.set_amount(resource, amount, now_ns) {
                self.next_plan = None;
                self.backlog.check_again();
            }
        }
    }

    /// Whether admitted jobs hold more of a resource than there is for new ones.
    pub(crate) fn is_amount_short(&self) -> bool {
        (0..self.machine.resources.len()).any(|resource| self.is_short(resource))
    }

    fn is_short(&self, resource: usize) -> bool {
        self.amount(resource) < self.amount_in_force(resource)
    }

    /// The machine with the greatest amounts that are to be expected: a job beyond them never runs.
    pub(crate) fn most_machine(&self) -> Cow<'_, Machine> {
        if self.amounts.0.is_empty() {
            return Cow::Borrowed(&self.machine);
        }
        let declared = |resource: usize| self.machine.resources[resource].count;
        Cow::Owned(self.machine_with(|resource| self.amount(resource).max(declared(resource))))
    }

    fn machine_with(&self, amount: impl Fn(usize) -> u64) -> Machine {
        let mut machine = self.machine.clone();
        for (index, resource) in machine.resources.iter_mut().enumerate() {
            resource.count = amount(index);
        }
        machine
    }

    /// Reason for which a job waits for a resource; `None`: it need not.
    pub(crate) fn awaited_amount(&self, job: &Job) -> Option<String> {
        self.awaited_amount_with(job, &mut AmountsNow::default())
    }

    /// Reason for which one of many jobs waits for a resource.
    pub(crate) fn awaited_amount_with(&self, job: &Job, now: &mut AmountsNow) -> Option<String> {
        if !job.holds_resources() {
            return None;
        }
        let processes = job.processes.iter().flat_map(|process| &process.resources);
        let amounts = job.resources.iter().chain(processes);
        let named: BTreeSet<usize> =
            amounts.filter_map(|amount| self.machine.resource(&amount.resource)).collect();
        let name = |resource: usize| &self.machine.resources[resource].name;
        if let Some(resource) = named.iter().copied().find(|&resource| self.is_short(resource)) {
            return Some(format!(
                "it waits for resource {}: there is {} now, and jobs that were promised more hold \
                 up to {} at once",
                name(resource),
                self.amount(resource),
                now.held
                    .entry(resource)
                    .or_insert_with(|| self.controller.most_held(resource, monotonic_ns()))
            ));
        }
        if self.amounts.0.is_empty() {
            return None;
        }
        let machine = now.machine.get_or_insert_with(|| self.machine_with(|it| self.amount(it)));
        let shortage = validate_machine(job, machine);
        match shortage.map_err(|rejection| rejection.shortage) {
            Err(Shortage::Resource { name, needed, available }) => Some(format!(
                "it waits for resource {name}: it holds {needed} at once, and there is {available} \
                 now"
            )),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use pbs_history::RunId;
    use pbs_launch::Owner;

    use super::*;
    use crate::model::open_on;
    use crate::orders::{Order, Terms};
    use crate::{Alteration, Listener, Submission};

    struct Nobody;

    impl Listener for Nobody {}

    const MACHINE: &str = "[[node]]\nname = 'vm'\nmemory_bytes = 256_000_000\n\
        rate_insns_per_s = 250_000_000\n\
        cores = [{ name = 'c0', cpu = 0 }, { name = 'c1', cpu = 1 }]\n\
        [[resource]]\nname = 'matlab'\ncount = 2\n";

    fn open(name: &str) -> (PathBuf, Jobs) {
        let folder = std::env::temp_dir().join(format!("pbs-{name}-{}", std::process::id()));
        let jobs = reopen(&folder);
        (folder, jobs)
    }

    fn reopen(folder: &Path) -> Jobs {
        open_on(MACHINE, folder, &mut Nobody)
    }

    /// A job of a quarter of a second that holds so many licences.
    fn order(licences: u64) -> Order {
        let text = format!(
            "name = 'fit'\ndeadline_ns = '1h'\n[[process]]\nid = 1\nmemory_bytes = 4096\n\
             command = ['true']\ntasks = [62_500_000]\nresources = {{ matlab = {licences} }}\n"
        );
        let submission = Submission::from_text(text, "fit".into()).unwrap();
        Order::new(submission, Terms::new(Owner::new(1000, 1000)))
    }

    fn submit(jobs: &mut Jobs, licences: u64) -> RunId {
        jobs.order(vec![order(licences)], &mut Nobody).unwrap()[0]
    }

    fn state(jobs: &Jobs, id: RunId) -> (&'static str, Option<String>) {
        let standing = jobs.standing_of(id).unwrap();
        (standing.state, standing.reason)
    }

    fn end(jobs: &mut Jobs, id: RunId) {
        let run = jobs.cancel(id, "it is over".into(), &mut Nobody).unwrap().unwrap();
        jobs.controller.withdraw(run);
        jobs.give_up(run, &Error::NothingToRun, false, &mut Nobody);
    }

    /// Jobs keep what they were promised; a new one waits until they fit into the smaller amount,
    /// and is planned at once then, and with a greater amount.
    #[test]
    fn a_smaller_amount_takes_nothing_from_promised_jobs() {
        let (folder, mut jobs) = open("amounts-smaller");
        let promised = [submit(&mut jobs, 1), submit(&mut jobs, 1)];
        jobs.set_amount("matlab", 1).unwrap();
        let [resource] = &jobs.resources()[..] else { panic!() };
        assert_eq!((resource.amount, resource.declared), (1, 2));
        assert_eq!((resource.promised, resource.exceeding()), (2, 1));
        let new = submit(&mut jobs, 1);
        let why = "it waits for resource matlab: there is 1 now, and jobs that were promised more \
                   hold up to 2 at once";
        jobs.promote(&mut Nobody);
        assert_eq!(state(&jobs, new), ("waiting", Some(why.into())));
        let asked = jobs.would_order(&order(1)).unwrap_err().to_string();
        assert!(asked.contains(why), "{asked}");
        // Others are planned meanwhile, and an answer to a failure keeps all promises.
        let mut other = order(1);
        other.submission.job.processes[0].resources.clear();
        let other = jobs.order(vec![other], &mut Nobody).unwrap()[0];
        assert!(jobs.controller.renew(monotonic_ns()).is_empty());
        for id in promised.into_iter().chain([other]) {
            assert_eq!(state(&jobs, id).0, "planned");
        }
        end(&mut jobs, promised[0]);
        jobs.promote(&mut Nobody);
        assert_eq!(state(&jobs, new).0, "planned");
        let [resource] = &jobs.resources()[..] else { panic!() };
        assert_eq!((resource.promised, resource.exceeding()), (1, 0));
        // The two that are left hold one after the other.
        jobs.set_amount("matlab", 0).unwrap();
        let last = submit(&mut jobs, 1);
        assert_eq!(state(&jobs, last).0, "waiting");
        jobs.set_amount("matlab", 3).unwrap();
        jobs.promote(&mut Nobody);
        assert_eq!(state(&jobs, last).0, "planned");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// While software is not available, a job waits that the machine could run otherwise. One that
    /// needs more than the machine ever has is declined.
    #[test]
    fn a_job_waits_for_software_that_is_not_available_for_a_while() {
        let (folder, mut jobs) = open("amounts-none");
        jobs.set_amount("matlab", 0).unwrap();
        let waits = [submit(&mut jobs, 1), submit(&mut jobs, 2)];
        let why = "it waits for resource matlab: it holds 1 at once, and there is 0 now";
        assert_eq!(state(&jobs, waits[0]), ("waiting", Some(why.into())));
        let declined = jobs.order(vec![order(3)], &mut Nobody).unwrap_err().to_string();
        assert!(declined.contains("holds 3 of resource matlab at once"), "{declined}");
        jobs.set_amount("matlab", 1).unwrap();
        jobs.promote(&mut Nobody);
        assert_eq!(state(&jobs, waits[0]).0, "planned");
        assert_eq!(state(&jobs, waits[1]).0, "waiting");
        // It may be changed to one that need not wait.
        let terms = Alteration { priority: Some(1), ..Alteration::default() };
        jobs.alter(waits[1], terms, &mut Nobody).unwrap();
        jobs.set_amount("matlab", 2).unwrap();
        jobs.promote(&mut Nobody);
        assert_eq!(state(&jobs, waits[1]).0, "planned");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// A refusal names what there is, and changes nothing.
    #[test]
    fn an_unknown_resource_and_an_impossible_amount_are_refused() {
        let (folder, mut jobs) = open("amounts-refused");
        let why = |jobs: &mut Jobs, name, amount| jobs.set_amount(name, amount).unwrap_err();
        let unknown = why(&mut jobs, "tape", 1).to_string();
        assert_eq!(unknown, "there is no resource tape; name one of matlab");
        let great = why(&mut jobs, "matlab", MAX_AMOUNT + 1).to_string();
        assert!(great.contains("write at most 72_057_594_037_927_936"), "{great}");
        assert_eq!(jobs.resources()[0].amount, 2);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
