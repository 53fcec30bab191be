// SPDX-License-Identifier: GPL-2.0
//! The utilization model (Glaß 2024, 4.3 and 5.1.1): what is reserved of the
//! cores' time and of the memory, and for whom.
//!
//! Each core has a profile that is 1 while it is free and 0 while it is
//! reserved. Each memory has one of the bytes that are free: under *dynamic
//! balancing* all cores of a node share its memory, under *static balancing*
//! each core has the same part of it to itself. Each link between nodes has a
//! profile that is 1 while it is free. Each countable resource has one of the amount that is free.
//!
//! What is changed bit by bit goes through a [`Booking`].

mod booking;
mod capacity;
mod cover;
mod gaps;
mod layout;
mod needs;
mod reservation;

use std::collections::BTreeMap;
use std::ops::{Div, Range};

use pbs_job::{Machine, Node, Process};
use pbs_profile::{Error, FreeSlots, Profile, FOREVER};

use crate::budget::tally;

pub use booking::{Booking, Mark};
pub use capacity::Capacity;
pub use layout::Site;
pub use reservation::{
    HeldAmount, Interruption, MessageReservation, ProcessReservation, Run, RunId, TaskReservation,
};

pub(crate) use layout::Group;
pub(crate) use needs::Needs;

use layout::Layout;

/// `insns · rate / other_rate`, rounded by `divide`.
fn scaled(insns: u64, rate: u64, other_rate: u64, divide: fn(u128, u128) -> u128) -> u64 {
    let product = u128::from(insns) * u128::from(rate);
    u64::try_from(divide(product, other_rate.max(1).into())).unwrap_or(u64::MAX)
}

/// Returns the free memory multiplied by the time for which it is free, in byte-nanoseconds.
pub(crate) fn memory_time<'a>(
    memories: impl Iterator<Item = &'a Profile>,
    over: &Range<u64>,
) -> u128 {
    memories.fold(0, |sum, memory| sum.saturating_add(memory.integral(over.clone())))
}

/// Division of a node's memory among its cores (Glaß 2024, 5.1.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balancing {
    /// Each core has the same part of it, which is what the thesis's prototype
    /// does. What one leaves over helps nobody.
    Static,
    /// They share it.
    #[default]
    Dynamic,
    /// Memory is ignored: there is always enough, as planners before Glaß 2024 assume. This mode
    /// shows the benefit of planning memory.
    Blind,
}

/// All that is reserved (the thesis's `ReservationStore`).
#[derive(Clone, Debug)]
pub struct Store {
    machine: Machine,
    balancing: Balancing,
    capacity: Capacity,
    sites: Vec<Site>,
    cores: Vec<Profile>,
    memories: Vec<Profile>,
    /// Profile of each resource of the machine: the amount that is free.
    resources: Vec<Profile>,
    /// Profile of each link: 1 while it is free, else 0.
    links: Vec<Profile>,
    groups: Vec<Group>,
    /// Indices of the groups, the fastest first.
    by_rate: Vec<usize>,
    /// Rate of the machine's fastest core, including the part that plans may not use.
    fastest_insns_per_s: u64,
    runs: BTreeMap<RunId, Run>,
    now_ns: u64,
}

impl Balancing {
    /// The most memory that one process can have on the node.
    pub fn memory_bytes(self, node: &Node) -> u64 {
        match self {
            Self::Static => node.core_memory_bytes(),
            Self::Dynamic => node.memory_bytes,
            Self::Blind => u64::MAX,
        }
    }

    /// Returns the name of the mode.
    pub fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Dynamic => "dynamic",
            Self::Blind => "blind",
        }
    }
}

impl Store {
    /// A machine of which nothing is reserved. Its rates are planned with as
    /// they are; see [`with_capacity`](Self::with_capacity).
    pub fn new(machine: Machine, balancing: Balancing) -> Self {
        Self::with_capacity(machine, balancing, Capacity::WHOLE)
    }

    /// A machine of which nothing is reserved, and of whose cores plans may
    /// only use that part.
    pub fn with_capacity(machine: Machine, balancing: Balancing, capacity: Capacity) -> Self {
        let Layout { sites, memories, groups, by_rate } =
            Layout::new(&machine, balancing, capacity);
        let rates = machine.cores().map(|(_, core)| core.rate_insns_per_s);
        Self {
            fastest_insns_per_s: rates.max().unwrap_or(1).max(1),
            cores: vec![Profile::new(1); sites.len()],
            links: vec![Profile::new(1); machine.links.len()],
            resources: machine.resources.iter().map(|it| Profile::new(it.count)).collect(),
            machine,
            balancing,
            capacity,
            sites,
            memories,
            groups,
            by_rate,
            runs: BTreeMap::new(),
            now_ns: 0,
        }
    }

    /// Returns the machine that is planned for.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Returns the mode in which memory is divided.
    pub fn balancing(&self) -> Balancing {
        self.balancing
    }

    /// Returns the part of a core that plans may use.
    pub fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// Plans with another capacity buffer from now on; what is reserved stays as it is.
    pub fn set_capacity_buffer(&mut self, permille: u64) {
        self.capacity.capacity_buffer_permille = permille.max(1000);
        let cores = self.machine.cores();
        for (site, (_, core)) in self.sites.iter_mut().zip(cores) {
            site.rate_insns_per_s = self.capacity.planned_rate(core.rate_insns_per_s);
            // All cores of a group have one rate.
            self.groups[site.group as usize].rate_insns_per_s = site.rate_insns_per_s;
        }
    }

    /// All cores, in the order of [`Machine::cores`].
    pub fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// Returns the profile of the core: 1 while it is free, else 0. In all methods, `core` is a
    /// number below the length of [`sites`](Self::sites); others panic.
    pub fn core(&self, core: usize) -> &Profile {
        &self.cores[core]
    }

    /// Returns the profile of free bytes for each memory: one for each node, or one for each core
    /// under static balancing.
    pub fn memories(&self) -> &[Profile] {
        &self.memories
    }

    /// Returns the profile of free bytes of the memory that the core's processes share.
    pub fn memory(&self, core: usize) -> &Profile {
        &self.memories[self.sites[core].memory]
    }

    /// Returns the profile of the amount of a resource that is free. `resource` is an index into the
    /// resources of the machine; others panic.
    pub fn resource(&self, resource: usize) -> &Profile {
        &self.resources[resource]
    }

    /// Sets the amount of a resource of the machine that there is from a time on. Reservations keep
    /// what they have.
    ///
    /// # Errors
    ///
    /// [`Error::TooLittle`] if more is reserved at some later time, [`Error::NoProfile`] if there
    /// is no such resource. Nothing is changed then.
    pub fn set_resource(&mut self, resource: usize, count: u64, from_ns: u64) -> Result<(), Error> {
        let before = self.machine.resources.get(resource).map_or(0, |it| it.count);
        let profile = self.known_resource(resource)?;
        let over = from_ns..FOREVER;
        if count < before {
            profile.subtract(over, before - count)?;
        } else {
            profile.add(over, count - before)?;
        }
        self.machine.resources[resource].count = count;
        Ok(())
    }

    /// Returns the profile of the link: 1 while it is free, else 0. `link` is an index into the
    /// links of the machine; others panic.
    pub fn link(&self, link: usize) -> &Profile {
        &self.links[link]
    }

    /// The fastest first.
    pub(crate) fn groups_by_rate(&self) -> impl Iterator<Item = &Group> {
        self.by_rate.iter().map(|&group| &self.groups[group])
    }

    pub(crate) fn group_count(&self) -> usize {
        self.groups.len()
    }

    pub(crate) fn group_of(&self, core: usize) -> usize {
        self.sites[core].group as usize
    }

    /// Returns the number of instructions that a core retires in a second, whatever share of it
    /// is planned with.
    pub(crate) fn core_rate_insns_per_s(&self, core: usize) -> u64 {
        self.sites[core].core_rate_insns_per_s
    }

    /// Returns the time that a core takes for `insns` instructions.
    pub fn duration_ns(&self, core: usize, insns: u64) -> u64 {
        let rate = self.sites[core].rate_insns_per_s;
        self.machine.duration_ns(insns, rate)
    }

    /// Returns the number of instructions that any core retires at its own rate in the time in
    /// which it retires `insns` instructions of the process, rounded up. On every core, the time of
    /// the process follows from this number.
    pub(crate) fn core_insns(&self, process: &Process, insns: u64) -> u64 {
        match process.rate_insns_per_s {
            None => insns,
            Some(rate) => scaled(insns, self.fastest_insns_per_s, rate, u128::div_ceil),
        }
    }

    /// Returns the number of the process's instructions that a core retires in the time in which it
    /// retires `core_insns` at its own rate.
    pub(crate) fn process_insns(&self, process: &Process, core_insns: u64) -> u64 {
        match process.rate_insns_per_s {
            None => core_insns,
            Some(rate) => scaled(core_insns, rate, self.fastest_insns_per_s, u128::div),
        }
    }

    /// The stretches of the window in which the core is free for at least so
    /// long.
    pub fn free_slots(&self, core: usize, duration_ns: u64, window: Range<u64>) -> FreeSlots<'_> {
        self.cores[core].free_slots(1, duration_ns, window)
    }

    /// The memory that is free for the core's processes all of that time;
    /// `None` if the time is over or empty.
    pub fn free_memory_bytes(&self, core: usize, over: Range<u64>) -> Option<u64> {
        self.memory(core).min_over(over)
    }

    /// The free memory of the whole machine, times the time for which it is
    /// free, in byte-nanoseconds: `left` of the thesis (5.1.3).
    pub fn free_memory_time(&self, over: Range<u64>) -> u128 {
        memory_time(self.memories.iter(), &over)
    }

    /// All runs of which something is reserved, by their numbers.
    pub fn runs(&self) -> impl Iterator<Item = (RunId, &Run)> {
        self.runs.iter().map(|(&id, run)| (id, run))
    }

    /// Returns the reservations of a run.
    pub fn run(&self, id: RunId) -> Option<&Run> {
        self.runs.get(&id)
    }

    /// Begins to change something.
    pub fn book(&mut self) -> Booking<'_> {
        Booking::new(self)
    }

    /// Gives back what is reserved for a run. Whether there was such a run.
    pub fn remove(&mut self, id: RunId) -> bool {
        let mut booking = self.book();
        let removed = booking.remove(id);
        booking.commit();
        removed
    }

    /// Returns the time before which nothing can be reserved any more.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Forgets what was before that time, and the runs that had ended.
    pub fn forget_before(&mut self, time_ns: u64) {
        if time_ns <= self.now_ns {
            return;
        }
        self.now_ns = time_ns;
        let profiles = self.cores.iter_mut().chain(&mut self.memories);
        for profile in profiles.chain(&mut self.resources).chain(&mut self.links) {
            profile.forget_before(time_ns);
        }
        for group in &mut self.groups {
            group.gaps.forget_before(time_ns);
        }
        self.runs.retain(|_, run| run.end_ns() > time_ns);
    }

    /// Returns the site of the core, or an error if there is none of that index.
    fn known(&self, core: usize) -> Result<Site, Error> {
        let no_core = Error::NoProfile { index: core, profiles: self.sites.len() };
        self.sites.get(core).copied().ok_or(no_core)
    }

    /// The part of an interval that is not forgotten.
    fn kept(&self, over: &Range<u64>) -> Option<Range<u64>> {
        let kept = over.start.max(self.now_ns)..over.end;
        (!kept.is_empty()).then_some(kept)
    }

    /// The stretch around `time_ns` in which the core is all free, or all busy.
    fn stretch(&self, core: usize, time_ns: u64) -> Range<u64> {
        let mut steps = self.cores[core].steps_from(time_ns);
        steps.next().map_or(0..0, |step| step.from..step.until)
    }

    fn take_core(&mut self, core: usize, over: &Range<u64>) -> Result<(), Error> {
        tally::add(1);
        let site = self.known(core)?;
        let Some(over) = self.kept(over) else {
            return Ok(());
        };
        let free = self.stretch(core, over.start);
        self.cores[core].subtract(over.clone(), 1)?;
        self.groups[site.group as usize].gaps.take(core as u32, &free, &over);
        Ok(())
    }

    /// Only for what was taken.
    fn give_core(&mut self, core: usize, over: &Range<u64>) -> Result<(), Error> {
        tally::add(1);
        let site = self.known(core)?;
        let Some(over) = self.kept(over) else {
            return Ok(());
        };
        self.cores[core].add(over.clone(), 1)?;
        let free = self.stretch(core, over.start);
        self.groups[site.group as usize].gaps.give(core as u32, &free, &over);
        Ok(())
    }

    fn take_link(&mut self, link: usize, over: &Range<u64>) -> Result<(), Error> {
        let Some(over) = self.kept(over) else {
            return Ok(());
        };
        self.known_link(link)?.subtract(over, 1)
    }

    fn give_link(&mut self, link: usize, over: &Range<u64>) -> Result<(), Error> {
        let Some(over) = self.kept(over) else {
            return Ok(());
        };
        self.known_link(link)?.add(over, 1)
    }

    fn known_link(&mut self, link: usize) -> Result<&mut Profile, Error> {
        let no_link = Error::NoProfile { index: link, profiles: self.links.len() };
        self.links.get_mut(link).ok_or(no_link)
    }

    fn take_resource(&mut self, held: HeldAmount, over: &Range<u64>) -> Result<(), Error> {
        self.known_resource(held.resource)?.subtract(over.clone(), held.count)
    }

    fn give_resource(&mut self, held: HeldAmount, over: &Range<u64>) -> Result<(), Error> {
        self.known_resource(held.resource)?.add(over.clone(), held.count)
    }

    fn known_resource(&mut self, resource: usize) -> Result<&mut Profile, Error> {
        let none = Error::NoProfile { index: resource, profiles: self.resources.len() };
        self.resources.get_mut(resource).ok_or(none)
    }

    fn take_memory(&mut self, core: usize, over: &Range<u64>, bytes: u64) -> Result<(), Error> {
        let site = self.known(core)?;
        self.memories[site.memory].subtract(over.clone(), bytes)
    }

    fn give_memory(&mut self, core: usize, over: &Range<u64>, bytes: u64) -> Result<(), Error> {
        let site = self.known(core)?;
        self.memories[site.memory].add(over.clone(), bytes)
    }
}

/// Two stores are equal if they have the same reservations of the same machine, for the same runs.
impl PartialEq for Store {
    fn eq(&self, other: &Self) -> bool {
        let mut groups = self.groups.iter().zip(&other.groups);
        self.machine == other.machine
            && self.balancing == other.balancing
            && self.capacity == other.capacity
            && self.now_ns == other.now_ns
            && self.runs == other.runs
            && self.cores == other.cores
            && self.memories == other.memories
            && self.resources == other.resources
            && self.links == other.links
            && groups.all(|(mine, theirs)| mine.gaps.iter().eq(theirs.gaps.iter()))
    }
}

impl Eq for Store {}
