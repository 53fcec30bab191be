// SPDX-License-Identifier: GPL-2.0
//! Names in answers.

use crate::lanes::Question;
use pbs_cosched::{ExecutionTarget, Platform, Variant, Where, Workload};

/// Names of processes, threads and accelerators.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The processes; of several with the same name, those after the first with a number.
    pub processes: Vec<String>,
    /// The CPU that each thread is, by its number in Linux.
    pub cpus: Vec<u32>,
    /// Accelerators by type, and how many there are of each.
    pub devices: Vec<(String, u32)>,
}

impl Names {
    /// Builds the names of a question.
    pub fn new(question: &Question) -> Self {
        let mut processes: Vec<String> = Vec::new();
        for process in &question.workload.processes {
            let mut name = process.name.clone();
            let mut number = 1;
            while processes.contains(&name) {
                number += 1;
                name = format!("{}#{number}", process.name);
            }
            processes.push(name);
        }
        let devices = question.platform.devices.iter();
        Self {
            processes,
            cpus: question.cpus.clone(),
            devices: devices.map(|of| (of.name.clone(), of.count)).collect(),
        }
    }

    /// Returns the name of each thread.
    pub(crate) fn threads(&self) -> Vec<String> {
        self.cpus.iter().map(|cpu| format!("CPU {cpu}")).collect()
    }

    /// Returns the name of each accelerator.
    pub(crate) fn accelerators(&self) -> Vec<String> {
        let devices = self.devices.iter().enumerate();
        let devices = devices.flat_map(|(device, &(_, count))| {
            (0..count).map(move |instance| self.device(device, instance))
        });
        devices.collect()
    }

    /// Returns the names of a picture's rows below the threads: accelerators, then their links.
    pub(crate) fn below_threads(&self, platform: &Platform) -> Vec<String> {
        let mut names = self.accelerators();
        names.extend(
            links(platform)
                .map(|(device, instance)| format!("{} link", self.device(device, instance))),
        );
        names
    }

    /// Returns the row of an accelerator's link, if it has one.
    pub(crate) fn row_of_link(
        &self,
        platform: &Platform,
        device: usize,
        instance: u32,
    ) -> Option<usize> {
        let place = links(platform).position(|link| link == (device, instance))?;
        Some(self.cpus.len() + self.accelerators().len() + place)
    }

    /// The rows of a picture that a place is: first threads, then accelerators.
    pub(crate) fn rows_of(&self, place: &Where) -> Vec<usize> {
        match place {
            Where::Threads(threads) => threads.iter().map(|&thread| thread as usize).collect(),
            &Where::Device { device, instance } => {
                let before = self.devices.iter().take(device).map(|&(_, count)| count);
                let before: u32 = before.sum();
                vec![self.cpus.len() + (before + instance) as usize]
            }
        }
    }

    fn device(&self, device: usize, instance: u32) -> String {
        match self.devices.get(device) {
            Some((name, 1)) => name.clone(),
            Some((name, _)) => format!("{name} {instance}"),
            None => format!("accelerator {device}"),
        }
    }

    /// Returns the name of a task's place: `CPU 0-3,6`, `gpu 1`.
    pub fn place(&self, place: &Where) -> String {
        match place {
            Where::Threads(threads) => {
                let cpus = threads
                    .iter()
                    .map(|&thread| self.cpus.get(thread as usize).copied().unwrap_or(thread));
                let mut cpus: Vec<u32> = cpus.collect();
                cpus.sort_unstable();
                format!("CPU {}", ranges(&cpus))
            }
            &Where::Device { device, instance } => self.device(device, instance),
        }
    }
}

/// Accelerators that have a link, by type and number.
fn links(platform: &Platform) -> impl Iterator<Item = (usize, u32)> + '_ {
    let devices = platform.devices.iter().enumerate();
    devices.flat_map(|(device, of)| (0..of.links()).map(move |instance| (device, instance)))
}

/// Numbers in order, as `0-3,6`.
fn ranges(numbers: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some(last) if last.1.checked_add(1) == Some(number) => last.1 = number,
            _ => ranges.push((number, number)),
        }
    }
    let ranges = ranges.iter().map(|&(first, last)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        }
    });
    ranges.collect::<Vec<_>>().join(",")
}

/// Returns a label that distinguishes a variant from the others of its task: `omp 4`, `ocl gpu`.
pub(crate) fn label(platform: &Platform, variant: &Variant) -> String {
    match variant.place {
        ExecutionTarget::Threads(1) => variant.model.clone(),
        ExecutionTarget::Threads(threads) => format!("{} {threads}", variant.model),
        ExecutionTarget::Device(device) => match platform.devices.get(device) {
            Some(of) if of.name != variant.model => format!("{} {}", variant.model, of.name),
            _ => variant.model.clone(),
        },
    }
}

/// The label of a variant of a task.
pub(crate) fn label_of(
    workload: &Workload,
    platform: &Platform,
    task: usize,
    variant: usize,
) -> String {
    let variants = workload.tasks.get(task).map(|of| &of.variants);
    let variant = variants.and_then(|variants| variants.get(variant));
    variant.map_or_else(String::new, |variant| label(platform, variant))
}
