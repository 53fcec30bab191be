// SPDX-License-Identifier: GPL-2.0
//! From a job of the batch system to a request of the planner.

use std::collections::BTreeSet;

use pbs_cluster_planner::{Throttle, When};
use pbs_manager::ledger::{After, Outcome, Row};
use pbs_manager::Wish;
use pbs_resources::{parse_duration_s, Item, Rset};

use crate::demands::{Per, TMP_DISK};
use crate::steer::seen::{JobSeen, Memory};

/// Prefix of a job's comment that is for the planner.
const MARK: &str = "pbs";
/// Words by which job_submit.lua or the planner writes down a hold, and the reasons that users are
/// shown.
const HOLDS: [(&str, &str); 3] = [
    ("pbs-held", "held by its user; scontrol release lets it be planned"),
    ("pbs-held-by-operator", "held by an operator; ask for scontrol release"),
    (
        "pbs-held-reservation-ended",
        "held, since its reservation has ended; scontrol release lets it be planned without one, or \
         give it another one before (scontrol update ReservationName=)",
    ),
];

/// Reason for which a job is held by its user or an operator; `None`: it is not. The hold of the
/// planner, with which every job waits for its plan, is another.
pub(crate) fn hold_of(comment: &str) -> Option<&'static str> {
    let is_there = |word: &str| comment.split_whitespace().any(|of| of == word);
    HOLDS.iter().find(|(word, _)| is_there(word)).map(|(_, why)| *why)
}

/// A comment with the word by which job_submit.lua writes down a hold by an operator.
pub(crate) fn held_by_operator(comment: &str) -> String {
    let is_other = |word: &&str| !HOLDS.iter().any(|(hold, _)| hold == word);
    let words = comment.split_whitespace().filter(is_other);
    words.chain([HOLDS[1].0]).collect::<Vec<_>>().join(" ")
}

/// A comment with the word for a job whose reservation has ended.
pub(crate) fn held_without_reservation(comment: &str) -> String {
    let words = comment.split_whitespace().filter(|word| *word != HOLDS[2].0);
    words.chain([HOLDS[2].0]).collect::<Vec<_>>().join(" ")
}

/// Words of a user to the planner, beyond the options of the batch system. In a job's comment: `pbs
/// deadline=4h`, `pbs start=1764000000 late`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// Deadline: the job is over by then, or declined.
    pub deadline_s: Option<u64>,
    /// Exact start.
    pub start_s: Option<u64>,
    /// Whether it starts as late as its deadline allows.
    pub is_late: bool,
    /// Time before its end at which its user is notified.
    pub notify_s: Option<u64>,
    /// Predicted end, as its nodes report it.
    pub predicted_end_s: Option<u64>,
}

impl Words {
    /// Reads a comment; one without the mark says nothing. Times are seconds since 1970, or
    /// spans from the submission on (`4h`).
    ///
    /// # Errors
    ///
    /// What can't be read, in words.
    pub fn read(comment: &str, submit_s: u64) -> Result<Self, String> {
        let is_hold = |word: &&str| HOLDS.iter().any(|(hold, _)| hold == word);
        let mut words = comment.split_whitespace().filter(|word| !is_hold(word));
        let mut this = Self::default();
        if words.next() != Some(MARK) {
            return Ok(this);
        }
        for word in words {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let span = || {
                parse_duration_s(value)
                    .map_err(|_| format!("{word}: write a duration, such as 4h or 1d12h"))
            };
            // A moment has ten figures, a span in seconds has not.
            let moment = || match value.parse::<u64>() {
                Ok(at_s) if at_s >= 1_000_000_000 => Ok(at_s),
                _ => span().map(|in_s| submit_s.saturating_add(in_s)),
            };
            match name {
                "deadline" => this.deadline_s = Some(moment()?),
                "start" => this.start_s = Some(moment()?),
                "end" => this.predicted_end_s = Some(moment()?),
                "notify" => this.notify_s = Some(span()?),
                "late" if value.is_empty() => this.is_late = true,
                _ => {
                    let all = "deadline=, start=, late, notify=";
                    return Err(format!("{word}: there is no such word; write one of {all}"));
                }
            }
        }
        match (this.deadline_s, this.start_s, this.is_late) {
            (Some(_), Some(_), _) => Err("deadline= and start= exclude each other; leave one \
                                          out"
            .into()),
            (None, _, true) => Err("late needs a deadline; add deadline=".into()),
            _ => Ok(this),
        }
    }
}

/// The wish that a job is. `request_of` knows the requests of other jobs by their numbers.
///
/// # Errors
///
/// Why it can't be planned, in words.
pub fn wish_of(
    job: &JobSeen,
    request_of: &dyn Fn(&str) -> Option<u64>,
    now_s: u64,
) -> Result<Wish, String> {
    if let Some(why) = hold_of(&job.words) {
        return Err(why.into());
    }
    if let Some(foreign) = &job.foreign {
        return Err(foreign.clone());
    }
    let words = Words::read(&job.words, job.key.submit_s)?;
    let limit_s =
        job.limit_s.ok_or("it has no time limit; add --time, such as --time=30 (minutes)")?;
    let nodes = job.nodes_asked();
    let cpus = job.cpus_each();
    let of_gpus = job.gpus_each().saturating_mul(job.demands.bytes_per_gpu);
    let (memory, is_all) = match job.memory {
        _ if of_gpus > 0 => (format!(":mem={of_gpus}"), false),
        Memory::All => (String::new(), true),
        Memory::OfNode(bytes) => (format!(":mem={bytes}"), false),
        Memory::OfCore(bytes) => (format!(":mem={}", bytes.saturating_mul(cpus)), false),
    };
    let sharing = if job.is_exclusive || is_all { ":excl" } else { "" };
    let rset = format!("rset={nodes}:ncpus={cpus}{memory},place=scatter{sharing}");
    let mut rset: Rset = rset.parse().map_err(|error| format!("{rset}: {error}"))?;
    if nodes > 1 && job.demands.gres.iter().any(|(per, _)| *per == Per::Job) {
        return Err(
            "--gpus: accelerators of a job on several nodes are planned only for each node; write \
             --gpus-per-node instead"
                .into(),
        );
    }
    for chunk in &mut rset.chunks {
        chunk.items.extend(job.demands.of_node(job.tasks_with_gres()));
    }
    rset.job_wide.extend(job.demands.of_job());
    rset.avoid.clone_from(&job.demands.excluded);
    let begin_s = job.start_s.filter(|&start_s| start_s > now_s);
    let when = match (words.deadline_s, words.start_s, begin_s) {
        (Some(end_s), _, None) => When::Deadline { end_s, late: words.is_late },
        (Some(end_s), _, Some(start_s)) => When::Between { start_s, end_s, late: words.is_late },
        (None, Some(start_s), _) => When::Fixed { start_s },
        (None, None, Some(start_s)) => When::After { start_s },
        (None, None, None) => When::BestEffort,
    };
    Ok(Wish {
        duration_s: limit_s,
        when,
        name: job.name.clone(),
        // By this it is found again after either side was started anew.
        command: vec![job.key.to_string()],
        notify_s: words.notify_s,
        after: after_of(&job.after, request_of)?,
        throttle: throttle_of(job),
        ..Wish::new(rset, &job.user, &job.account)
    })
}

/// Whether a request has the generic resources, disk space, features, licences, excluded nodes and
/// times that its job wants now; `rset` is that of the request.
///
/// Cores and memory are not compared: the batch system shows others of a committed job. Amounts on
/// each node are those for the planned number of nodes.
pub(crate) fn has_demands_of(job: &JobSeen, row: &Row, rset: &Rset) -> bool {
    let is_of_slurm = |item: &&Item| {
        let prefixes = ["gres-", "feature-", "license-"];
        let has_prefix = prefixes.iter().any(|prefix| item.resource.starts_with(prefix));
        has_prefix || item.resource == TMP_DISK
    };
    let names = |items: &[Item]| -> BTreeSet<String> {
        items.iter().filter(is_of_slurm).map(Item::to_string).collect()
    };
    let nodes = rset.chunks.iter().map(|chunk| chunk.count).sum();
    let of_node = job.demands.of_node(job.tasks_with_gres_on(nodes));
    let planned = rset.chunks.first().map_or(&[][..], |chunk| &chunk.items);
    if names(planned) != names(&of_node) || names(&rset.job_wide) != names(&job.demands.of_job()) {
        return false;
    }
    if rset.avoid != job.demands.excluded {
        return false;
    }
    let planned = match row.when.parse() {
        Ok(When::Deadline { end_s, late } | When::Between { end_s, late, .. }) => {
            (Some(end_s), late, None)
        }
        Ok(When::Fixed { start_s }) => (None, false, Some(start_s)),
        _ => (None, false, None),
    };
    let words = Words::read(&job.words, job.key.submit_s);
    words.is_ok_and(|words| planned == (words.deadline_s, words.is_late, words.start_s))
}

/// Limit of an array without one.
pub(crate) const UNLIMITED: u64 = 1 << 32;

/// The limit of the array to which a job belongs. An array without a limit is a set, too: if it gets
/// one later, elements that run by then count.
fn throttle_of(job: &JobSeen) -> Option<Throttle> {
    job.key.index?;
    let most = Some(job.demands.throttle).filter(|&most| most > 0).unwrap_or(UNLIMITED);
    Some(Throttle { set: format!("array {}", job.key.job), most })
}

/// Earliest start that a user gave a request.
pub(crate) fn begin_s(row: &Row) -> Option<u64> {
    match row.when.parse() {
        Ok(When::After { start_s } | When::Between { start_s, .. }) => Some(start_s),
        _ => None,
    }
}

/// Start before which a request does not begin, whatever is free: the earliest one that a user gave
/// it, its exact one, or the planned one of a request that is to begin as late as possible.
pub(crate) fn own_start_s(row: &Row) -> Option<u64> {
    match row.when.parse() {
        Ok(When::Fixed { start_s }) => Some(start_s),
        Ok(When::Deadline { late: true, .. } | When::Between { late: true, .. }) => row.start_s,
        _ => begin_s(row),
    }
}

/// `afterok:5(unfulfilled),afterany:7_2(unfulfilled)`.
fn after_of(text: &str, request_of: &dyn Fn(&str) -> Option<u64>) -> Result<Vec<After>, String> {
    if text.contains('?') {
        // Slurm knows when one of them is enough, and has no dependencies for the job then.
        return Err("waits until one of the jobs that it follows has ended as it needs".into());
    }
    let mut all = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (kind, rest) = part.split_once(':').unwrap_or((part, ""));
        let outcome = match kind {
            "afterok" => Outcome::Ok,
            "afternotok" => Outcome::NotOk,
            "afterany" => Outcome::Any,
            _ => {
                return Err(format!(
                "--dependency={kind}: only afterok, afternotok and afterany are planned; write one \
                 of these, or leave it out"
            ))
            }
        };
        for job in rest.split(':') {
            let (name, _) = job.split_once('(').unwrap_or((job, ""));
            let request = request_of(name).ok_or_else(|| {
                format!(
                    "--dependency={kind}:{name}: job {name} is not planned; it is tried again when \
                     that job is"
                )
            })?;
            all.push(After { request, outcome });
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steer::simulated::Simulated;

    fn job() -> JobSeen {
        let mut slurm = Simulated::new(&[], 0, 1_764_000_000);
        let key = slurm.submit(7, 2, 3, 120, 0);
        slurm.job(key).unwrap().clone()
    }

    fn wish(job: &JobSeen) -> Result<Wish, String> {
        wish_of(job, &|name| (name == "5").then_some(50), 1_764_000_010)
    }

    #[test]
    fn a_job_becomes_chunks() {
        let of = wish(&job()).unwrap();
        let expected = "rset=2:ncpus=2:mem=2097152,place=scatter";
        assert_eq!(of.rset, expected.parse().unwrap());
        assert_eq!((of.duration_s, of.when), (120, When::BestEffort));
        assert_eq!(of.command, ["7@1764000000"]);
        let whole = JobSeen { memory: Memory::All, ..job() };
        let expected = "rset=2:ncpus=2,place=scatter:excl";
        assert_eq!(wish(&whole).unwrap().rset, expected.parse().unwrap());
    }

    #[test]
    fn words_say_when() {
        let when = |words: &str, start_s| {
            let said = JobSeen { words: words.into(), start_s, ..job() };
            wish(&said).map(|wish| wish.when)
        };
        let end_s = 1_764_000_000 + 4 * 3600;
        let late = false;
        assert_eq!(when("pbs deadline=4h", None), Ok(When::Deadline { end_s, late }));
        let start_s = 1_764_000_100;
        assert_eq!(
            when("pbs deadline=4h", Some(start_s)),
            Ok(When::Between { start_s, end_s, late })
        );
        assert_eq!(when("pbs start=1764000100", None), Ok(When::Fixed { start_s }));
        assert_eq!(when("my own words", None), Ok(When::BestEffort));
        assert_eq!(when("", Some(start_s)), Ok(When::After { start_s }));
        assert_eq!(when("pbs start=1764000100 pbs-held", None).unwrap_err(), HOLDS[0].1);
        assert_eq!(when("my words pbs-held-by-operator", None).unwrap_err(), HOLDS[1].1);
        assert!(Words::read("pbs deadline=4h pbs-held", 0).unwrap().deadline_s.is_some());
        for wrong in ["pbs dedline=4h", "pbs deadline=", "pbs late", "pbs start=1h deadline=2h"] {
            assert!(when(wrong, None).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_follows_is_known_by_its_request() {
        let follows = |after: &str| {
            let job = JobSeen { after: after.into(), ..job() };
            wish(&job).map(|wish| wish.after)
        };
        let after = |outcome| After { request: 50, outcome };
        assert_eq!(
            follows("afterok:5(unfulfilled),afterany:5(unfulfilled)"),
            Ok(vec![after(Outcome::Ok), after(Outcome::Any)])
        );
        assert!(follows("afterok:6(unfulfilled)").is_err());
        let either = follows("afterok:5(unfulfilled)?afterok:6(unfulfilled)");
        assert!(either.unwrap_err().starts_with("waits until one of"));
        assert!(follows("singleton(unfulfilled)").is_err());
    }
}
