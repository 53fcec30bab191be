// SPDX-License-Identifier: GPL-2.0
//! Jobs that a command admits before they are run.

use pbs_job::Machine;
use pbs_node::{by_priority, Declined, Error, Node, Submission, LEAD_NS};

use super::screen::Screen;
use super::RunOptions;
use crate::admission::{report_built_in, Verdict};
use crate::failure::Failure;

/// Admits jobs: on the CPUs and in the order that the command of the options has planned, if there
/// is one.
///
/// # Errors
///
/// The command or the built-in planner declines a job; none is admitted then.
pub(super) fn admit(
    node: &mut Node<Screen>,
    mut submissions: Vec<Submission>,
    machine: &Machine,
    options: &RunOptions,
) -> Result<(), Failure> {
    let name = options.name();
    let Some((command, mut admission)) =
        options.admission.command().zip(options.admission.admission())
    else {
        return Ok(node.admit(submissions, options.kind, &name)?);
    };
    by_priority(&mut submissions, |submission| &submission.job);
    let as_submitted = submissions.clone();
    let mut admitted = Vec::new();
    for (place, submission) in submissions.iter().enumerate() {
        let job = node.predicted(submission)?;
        let answer = admission.ask(&job, machine, LEAD_NS);
        match answer.verdict {
            Verdict::Admitted => admitted.push(place),
            Verdict::Fallback => {}
            Verdict::Declined => {
                return Err(Failure::Declined(Declined {
                    file: submission.file.clone(),
                    job: job.name,
                    why: answer.why.unwrap_or_else(|| "no reason given".into()),
                    earliest_deadline_ns: None,
                }));
            }
        }
    }
    for (number, &place) in admitted.iter().enumerate() {
        admission.choice(number).confine(&mut submissions[place].job);
    }
    match node.admit_together(submissions, &admission.steps(&admitted), &name) {
        Err(Error::Declined(declined)) => {
            let why = format!("chose CPUs without time for it: {}", declined.why);
            report_built_in(&command, &declined.job, &why);
            node.admit(as_submitted, options.kind, &name)?;
        }
        admitted => drop(admitted?),
    }
    Ok(())
}
