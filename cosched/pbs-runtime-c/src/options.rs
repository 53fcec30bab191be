// SPDX-License-Identifier: GPL-2.0
//! Options.

use std::ffi::{c_char, c_int};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pbs_cosched::{Cost, Determination, EnhancedOptions, GreedyOptions, Priority, Scheduler};
use pbs_runtime::history::InHistory;
use pbs_runtime::{Accelerator, CoScheduling, DeviceSpec, Model, Options, Simulated, MOST_UNITS};

use crate::error::{exclusive, free, handle, invalid, needed, number, text, Failure, EUNAVAILABLE};

/// The model of a number.
pub(crate) fn model(number: c_int) -> Result<Model, Failure> {
    let model = u32::try_from(number).ok().and_then(Model::of);
    model.ok_or_else(|| invalid(format!("{number} is no programming model")))
}

fn co_scheduling(options: &mut Options) -> Result<&mut CoScheduling, Failure> {
    let how = options.co_scheduling.as_mut();
    how.ok_or_else(|| invalid("co-scheduling is off: call pbs_rt_options_shared() first"))
}

/// New options.
#[unsafe(no_mangle)]
pub extern "C" fn pbs_rt_options_new() -> *mut Options {
    handle(|| Ok(Options::default()))
}

/// Frees options.
///
/// # Safety
///
/// Null, or of [`pbs_rt_options_new`] and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_options_free(options: *mut Options) {
    // SAFETY: as the caller has said.
    unsafe { free(options) };
}

/// Threads of the CPU.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_options_threads(options: *mut Options, threads: u32) -> c_int {
    number(|| {
        // SAFETY: as the caller has said.
        unsafe { exclusive(options) }?.threads = threads;
        Ok(0)
    })
}

/// Co-scheduling on, in a directory, with a group.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_options_shared(
    options: *mut Options,
    directory: *const c_char,
    group: i64,
) -> c_int {
    number(|| {
        // SAFETY: as the caller has said.
        let (options, directory) = unsafe { (exclusive(options)?, text(directory)?) };
        let mut shared = directory.map_or_else(pbs_csi::Options::default, pbs_csi::Options::new);
        if group >= 0 {
            let group = u32::try_from(group).map_err(|_| invalid("no such group"))?;
            shared.group = Some(group);
        }
        options.co_scheduling = Some(CoScheduling::new(shared));
        Ok(0)
    })
}

/// Sets the multiple of its expected runtime after which a running task is overdue.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_options_overdue_factor(
    options: *mut Options,
    factor: u32,
) -> c_int {
    number(|| {
        // SAFETY: as the caller has said.
        let options = unsafe { exclusive(options) }?;
        co_scheduling(options)?.shared.overdue_factor = (factor > 0).then_some(factor);
        Ok(0)
    })
}

/// Sets the determination of the times to co-schedule.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_options_determination(
    options: *mut Options,
    name: *const c_char,
) -> c_int {
    number(|| {
        // SAFETY: as the caller has said.
        let (options, name) = unsafe { (exclusive(options)?, needed(name)?) };
        co_scheduling(options)?.determination = match name.as_str() {
            "never" => Determination::NEVER,
            "always" => Determination::ALWAYS,
            "contention" => Determination::CONTENTION,
            "speedup" => Determination::SPEEDUP,
            "amortization" => Determination::AMORTIZATION,
            other => return Err(invalid(format!("{other} is no determination"))),
        };
        Ok(0)
    })
}

/// Sets the scheduler that decides the mapping.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_options_scheduler(
    options: *mut Options,
    name: *const c_char,
) -> c_int {
    number(|| {
        // SAFETY: as the caller has said.
        let (options, name) = unsafe { (exclusive(options)?, needed(name)?) };
        let seed = u64::from(std::process::id());
        co_scheduling(options)?.scheduler = match name.as_str() {
            "greedy" => Scheduler::Greedy(GreedyOptions::default()),
            "plain-random" => Scheduler::PlainRandom(seed),
            "enhanced-random" => Scheduler::EnhancedRandom(EnhancedOptions::default(), seed),
            "evolutionary" => Scheduler::Evolutionary(seed),
            "heft" => Scheduler::Heft,
            other => return Err(invalid(format!("{other} is no scheduler"))),
        };
        Ok(0)
    })
}

/// The rule of a name.
fn priority(name: &str) -> Result<Priority, Failure> {
    match name {
        "age" => Ok(Priority::Age),
        "runtime" => Ok(Priority::Runtime),
        "successors" => Ok(Priority::Successors),
        other => Err(invalid(format!("{other} is no priority: write age, runtime or successors"))),
    }
}

/// Selects the greedy scheduler with its two rules.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_options_priority(
    options: *mut Options,
    contention: *const c_char,
    leftovers: *const c_char,
) -> c_int {
    number(|| {
        // SAFETY: as the caller has said.
        let (options, contention) = unsafe { (exclusive(options)?, needed(contention)?) };
        // SAFETY: as the caller has said.
        let leftovers = unsafe { needed(leftovers) }?;
        let rules = GreedyOptions {
            contention: priority(&contention)?,
            leftovers: priority(&leftovers)?,
            ..GreedyOptions::default()
        };
        co_scheduling(options)?.scheduler = Scheduler::Greedy(rules);
        Ok(0)
    })
}

/// Selects the enhanced random scheduler with its numbers of mappings.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_options_iterations(
    options: *mut Options,
    least: u32,
    most: u32,
) -> c_int {
    number(|| {
        // SAFETY: as the caller has said.
        let options = unsafe { exclusive(options) }?;
        if least == 0 || least > most {
            return Err(invalid(format!(
                "{least} to {most} mappings: write at least 1, and no fewer at most"
            )));
        }
        let how = EnhancedOptions { min_iterations: least, max_iterations: most };
        let seed = u64::from(std::process::id());
        co_scheduling(options)?.scheduler = Scheduler::EnhancedRandom(how, seed);
        Ok(0)
    })
}

/// Sets the cost of a decision, as long as none was measured.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_options_cost(
    options: *mut Options,
    square_ns: f64,
    linear_ns: f64,
    constant_ns: f64,
) -> c_int {
    number(|| {
        // SAFETY: as the caller has said.
        let options = unsafe { exclusive(options) }?;
        if ![square_ns, linear_ns, constant_ns].iter().all(|ns| ns.is_finite()) {
            return Err(invalid("a part of the cost is no number"));
        }
        co_scheduling(options)?.cost = Cost { a: square_ns, b: linear_ns, c: constant_ns };
        Ok(0)
    })
}

/// Sets the maximum time of a search.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_options_search(options: *mut Options, most_ns: u64) -> c_int {
    number(|| {
        // SAFETY: as the caller has said.
        let options = unsafe { exclusive(options) }?;
        co_scheduling(options)?.search = Duration::from_nanos(most_ns);
        Ok(0)
    })
}

/// Whether variants that have never run are refused.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_options_refuse(options: *mut Options, refuse: c_int) -> c_int {
    number(|| {
        // SAFETY: as the caller has said.
        unsafe { exclusive(options) }?.unprofiled = match refuse {
            0 => pbs_runtime::Unprofiled::Calibrate,
            _ => pbs_runtime::Unprofiled::Refuse,
        };
        Ok(0)
    })
}

/// Sets the file in which measurements are stored.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_options_history(
    options: *mut Options,
    path: *const c_char,
    application: *const c_char,
) -> c_int {
    number(|| {
        // SAFETY: as the caller has said.
        let (options, path) = unsafe { (exclusive(options)?, needed(path)?) };
        // SAFETY: as the caller has said.
        let application = unsafe { needed(application) }?;
        let history = InHistory::open(Path::new(&path), &application);
        let history = history.map_err(|why| Failure(EUNAVAILABLE, why.to_string()))?;
        options.profiles = Arc::new(history);
        Ok(0)
    })
}

/// Simulated accelerators.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_options_simulated(
    options: *mut Options,
    name: *const c_char,
    of: c_int,
    count: u32,
    memory_bytes: u64,
) -> c_int {
    number(|| {
        // SAFETY: as the caller has said.
        let (options, name) = unsafe { (exclusive(options)?, needed(name)?) };
        let model = model(of)?;
        if !(1..=MOST_UNITS).contains(&count) {
            let why = format!("there can be 1 to {MOST_UNITS} devices of a type");
            return Err(invalid(why));
        }
        let one = || Arc::new(Simulated::new(&[model], memory_bytes)) as Arc<dyn Accelerator>;
        let instances = (0..count).map(|_| one()).collect();
        options.devices.push(DeviceSpec { name, instances, link_bytes_per_s: None });
        Ok(0)
    })
}

/// OpenCL devices.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_options_opencl(
    options: *mut Options,
    name: *const c_char,
) -> c_int {
    number(|| {
        // SAFETY: as the caller has said.
        let (options, name) = unsafe { (exclusive(options)?, needed(name)?) };
        let found = pbs_runtime::opencl::devices();
        let found = found.map_err(|why| Failure(EUNAVAILABLE, why.to_string()))?;
        options.devices.push(pbs_runtime::opencl::FoundDevice::spec(&name, &found));
        Ok(c_int::try_from(found.len()).unwrap_or(c_int::MAX))
    })
}

/// Sets the expected rate of a device's link.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbs_rt_options_link(
    options: *mut Options,
    name: *const c_char,
    bytes_per_s: u64,
) -> c_int {
    number(|| {
        // SAFETY: as the caller has said.
        let (options, name) = unsafe { (exclusive(options)?, needed(name)?) };
        if bytes_per_s == 0 {
            return Err(invalid(format!("the link of {name} has 0 bytes/s: write at least 1")));
        }
        let device = options.devices.iter_mut().find(|of| of.name == name);
        let device = device
            .ok_or_else(|| invalid(format!("there is no device {name}: add it before its link")))?;
        device.link_bytes_per_s = Some(bytes_per_s);
        Ok(0)
    })
}
