// SPDX-License-Identifier: GPL-2.0
//! A plugin of Slurm's (SPANK): tells the service of this node which cores a job has here.
//!
//! `slurmstepd`, which runs as root for each step of a job, loads it. When the step begins,
//! before it runs anything of the user, one message goes to the service (`Allocate`); when it
//! ends, another (`Deallocate`). It waits a short time for the answer, so that who submits
//! from the step is known by then. Whatever goes wrong is a line in Slurm's log: no job fails
//! or hangs for want of a plan.
//!
//! What is in here runs as root in somebody else's daemon, where a panic would be the end of
//! a user's job. So there is nothing that can: no index, no arithmetic that could overflow,
//! no `unwrap`; and nothing that a user wrote is read.
//!
//! `plugstack.conf`, by which it is loaded, may give `socket=PATH` and `timeout_ms=N`.

mod arguments;
mod message;
mod service;
mod slurm;

use std::ffi::{c_char, c_int, c_uint};

use arguments::Arguments;
use message::Step;
use slurm::{Plugin, Spank};

/// Result of each hook for Slurm: the job continues.
const SUCCESS: c_int = 0;

// What Slurm looks for in a plugin, as SPANK_PLUGIN() of its spank.h has it.

/// Name of the plugin.
#[no_mangle]
#[allow(unsafe_code, non_upper_case_globals)]
pub static plugin_name: [u8; 5] = *b"pbsd\0";

/// The kind of plugins that it is of.
#[no_mangle]
#[allow(unsafe_code, non_upper_case_globals)]
pub static plugin_type: [u8; 6] = *b"spank\0";

/// The release of Slurm that it is for, 22.05.8: another minor release loads it as well, any
/// other refuses to.
#[no_mangle]
#[allow(unsafe_code, non_upper_case_globals)]
pub static plugin_version: c_uint = 0x16_05_08;

/// The version of what it has of plugins of this kind.
#[no_mangle]
#[allow(unsafe_code, non_upper_case_globals)]
pub static spank_plugin_version: c_uint = 1;

/// A step begins, nothing of the user runs yet, and its options are known.
///
/// # Safety
///
/// As for Slurm, which alone calls it: `spank` is what it has given for the call, and `argv`
/// has `argc` strings.
#[no_mangle]
#[allow(unsafe_code)]
pub unsafe extern "C" fn slurm_spank_init_post_opt(
    spank: *mut Plugin,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    // SAFETY: as this function's.
    unsafe { hook(spank, argc, argv, allocate) }
}

/// A step is over.
///
/// # Safety
///
/// As for [`slurm_spank_init_post_opt`].
#[no_mangle]
#[allow(unsafe_code)]
pub unsafe extern "C" fn slurm_spank_exit(
    spank: *mut Plugin,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    // SAFETY: as this function's.
    unsafe { hook(spank, argc, argv, deallocate) }
}

/// A hook: in slurmstepd what is to be said is said.
///
/// # Safety
///
/// As for [`slurm_spank_init_post_opt`].
#[allow(unsafe_code)]
unsafe fn hook(
    spank: *mut Plugin,
    argc: c_int,
    argv: *const *const c_char,
    message: fn(&Spank) -> Result<String, String>,
) -> c_int {
    // SAFETY: as this function's.
    let (spank, arguments) = unsafe { (Spank::new(spank), Arguments::of(argc, argv)) };
    if spank.is_in_stepd() {
        tell(&arguments, message(&spank));
    }
    SUCCESS
}

/// Message about the begin of a step.
fn allocate(spank: &Spank) -> Result<String, String> {
    let cores = spank.cores().ok_or("Slurm names no cores of the job")?;
    let cores = message::cores_of(&cores);
    let cores = cores.ok_or("the cores of the job are not understood")?;
    Ok(message::allocate(
        &step(spank)?,
        spank.uid().ok_or("Slurm names no user of the job")?,
        &cores,
        spank.memory_mib(),
    ))
}

/// And of the end.
fn deallocate(spank: &Spank) -> Result<String, String> {
    Ok(message::deallocate(&step(spank)?))
}

fn step(spank: &Spank) -> Result<Step, String> {
    let step = spank.job().zip(spank.step());
    let (job, step) = step.ok_or("Slurm names no job or no step")?;
    Ok(Step { job, step })
}

/// Sends it, and says in Slurm's log what became of that.
fn tell(arguments: &Arguments, message: Result<String, String>) {
    let told = message.and_then(|message| {
        let answer = service::ask(&arguments.socket, &message, arguments.timeout);
        answer.map_err(|error| format!("{}: {error}", arguments.socket.display()))
    });
    match told.and_then(|answer| message::understood(&answer)) {
        Ok(()) => slurm::verbose("pbsd: informed of this step"),
        Err(why) => slurm::error(&format!("pbsd: {why}; the step continues")),
    }
}
