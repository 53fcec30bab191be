// SPDX-License-Identifier: GPL-2.0
//! Measures of a schedule in the thesis's terms (§2.5.1, §6.3, §6.4).

use crate::mapping::Timeline;
use crate::model::{Platform, Workload};
use crate::objective::{score, Score};
use crate::queues::{Slot, Where};

/// Measures of one timeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Measures {
    /// Deadline misses, makespan, sums.
    pub score: Score,
    /// Turnaround of each process, from its arrival to the end of its last task; `None` for
    /// processes that ran nothing.
    pub turnarounds_ns: Vec<Option<u64>>,
    /// Δ: between the longest and the shortest turnaround (§6.4.2).
    pub delta_ns: u64,
    /// Busy time of each CPU thread.
    pub threads_busy_ns: Vec<u64>,
    /// Busy time of each accelerator, by type and instance.
    pub devices_busy_ns: Vec<Vec<u64>>,
    /// The part of all threads' and accelerators' time that was used (§2.5.1's 8/9).
    pub load: f64,
    /// Used part of the devices' time with the CPU as one device, which is busy if any thread is
    /// (§2.5.1's 1/2).
    pub load_monolithic: f64,
}

/// Measures a timeline.
pub fn measure(workload: &Workload, platform: &Platform, timeline: &Timeline) -> Measures {
    let score = score(workload, timeline);
    let turnarounds_ns: Vec<Option<u64>> = workload
        .processes
        .iter()
        .enumerate()
        .map(|(process, of)| {
            let end_ns = timeline.process_end_ns(workload, process)?;
            Some(end_ns.saturating_sub(of.arrival_ns))
        })
        .collect();
    let longest = turnarounds_ns.iter().flatten().max().copied().unwrap_or(0);
    let shortest = turnarounds_ns.iter().flatten().min().copied().unwrap_or(0);
    let mut threads_busy_ns = vec![0_u64; platform.threads as usize];
    let mut devices_busy_ns: Vec<Vec<u64>> =
        platform.devices.iter().map(|of| vec![0; of.count as usize]).collect();
    let mut cpu: Vec<&Slot> = Vec::new();
    for slot in timeline.slots.iter().flatten() {
        let busy_ns = slot.end_ns - slot.start_ns;
        match &slot.place {
            Where::Threads(threads) => {
                cpu.push(slot);
                for &thread in threads {
                    if let Some(sum) = threads_busy_ns.get_mut(thread as usize) {
                        *sum = sum.saturating_add(busy_ns);
                    }
                }
            }
            &Where::Device { device, instance } => {
                let of = devices_busy_ns.get_mut(device);
                if let Some(sum) = of.and_then(|of| of.get_mut(instance as usize)) {
                    *sum = sum.saturating_add(busy_ns);
                }
            }
        }
    }
    let sum = |busy: &[u64]| busy.iter().map(|&ns| ns as f64).sum::<f64>();
    let devices: f64 = devices_busy_ns.iter().map(|of| sum(of)).sum();
    let instances: usize = devices_busy_ns.iter().map(Vec::len).sum();
    let part = |busy: f64, lanes: usize| {
        let whole = score.makespan_ns as f64 * lanes as f64;
        if whole > 0.0 {
            busy / whole
        } else {
            0.0
        }
    };
    let monolithic = union_ns(cpu) as f64 + devices;
    Measures {
        score,
        turnarounds_ns,
        delta_ns: longest - shortest,
        load: part(sum(&threads_busy_ns) + devices, threads_busy_ns.len() + instances),
        load_monolithic: part(monolithic, usize::from(platform.threads > 0) + instances),
        threads_busy_ns,
        devices_busy_ns,
    }
}

/// Returns the speed-up: the makespan without over the makespan with co-scheduling.
pub fn speed_up(without: &Measures, with: &Measures) -> f64 {
    without.score.makespan_ns as f64 / with.score.makespan_ns as f64
}

/// Returns the time for which at least one of the slots ran.
fn union_ns(mut slots: Vec<&Slot>) -> u64 {
    slots.sort_unstable_by_key(|slot| slot.start_ns);
    let (mut covered_ns, mut until_ns) = (0, 0);
    for slot in slots {
        covered_ns += slot.end_ns.saturating_sub(until_ns.max(slot.start_ns));
        until_ns = slot.end_ns.max(until_ns);
    }
    covered_ns
}
