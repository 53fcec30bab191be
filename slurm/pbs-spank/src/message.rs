// SPDX-License-Identifier: GPL-2.0
//! Messages to the service and its answers: calls of the interface `org.sched-pbs.Node` in JSON,
//! each with a zero byte behind it (varlink).
//!
//! All values sent are numbers: there is nothing to quote.

/// Greatest number of cores in a message.
const MOST_CORES: u32 = 1 << 16;

/// Step of a job.
pub(crate) struct Step {
    pub(crate) job: u32,
    pub(crate) step: u32,
}

/// The numbers of a list such as `0-3,8`. `None`: it is none, or there are too many.
pub(crate) fn cores_of(list: &str) -> Option<Vec<u32>> {
    let mut cores = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= MOST_CORES {
            return None;
        }
        cores.extend(first..=last);
        if cores.len() > MOST_CORES as usize {
            return None;
        }
    }
    Some(cores)
}

/// A step begins.
pub(crate) fn allocate(step: &Step, uid: u32, cores: &[u32], memory_mib: Option<u64>) -> String {
    let Step { job, step } = step;
    let cores: Vec<_> = cores.iter().map(u32::to_string).collect();
    let memory = memory_mib.map_or_else(String::new, |mib| {
        format!(",\"memory_bytes\":{}", mib.saturating_mul(1 << 20))
    });
    call(
        "Allocate",
        &format!(
            "\"job\":{job},\"step\":{step},\"uid\":{uid},\"cores\":[{}]{memory}",
            cores.join(",")
        ),
    )
}

/// A step is over.
pub(crate) fn deallocate(step: &Step) -> String {
    let Step { job, step } = step;
    call("Deallocate", &format!("\"job\":{job},\"step\":{step}"))
}

fn call(method: &str, parameters: &str) -> String {
    format!("{{\"method\":\"org.sched-pbs.Node.{method}\",\"parameters\":{{{parameters}}}}}\0")
}

/// Whether an answer is that it was done.
///
/// # Errors
///
/// What it is else.
pub(crate) fn understood(answer: &[u8]) -> Result<(), String> {
    let answer = String::from_utf8_lossy(answer);
    let answer = answer.trim();
    if answer.starts_with("{\"parameters\":{") && !answer.contains("\"error\"") {
        Ok(())
    } else {
        Err(format!("the service answers: {answer}"))
    }
}
