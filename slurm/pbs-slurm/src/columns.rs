// SPDX-License-Identifier: GPL-2.0
//! Output of `squeue` and `sinfo`.
//!
//! Columns end with a character that no text of a job has: our hook in Slurm refuses jobs with
//! control characters in them. A job that was submitted before the hook came may have them. Each
//! row therefore begins with a mark that no user knows: a text with a line end makes its own row
//! unreadable, and can't forge that of another job. A row that can't be read is set aside. An amount
//! that can't be read only makes its own job one that can't be planned.

use std::collections::hash_map::RandomState;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

use pbs_resources::AVOIDED_NODES;

use crate::conf::seconds;
use crate::demands::{
    excluded_of, features_of, gres_of, licenses_of, Demands, Gres, NotExcluded, Per,
};
use crate::steer::{Hold, JobSeen, JobState, Key, Memory, NodeSeen, NodeState, Unread};

/// Between columns.
pub(crate) const END: char = '\u{1f}';
/// Columns of `squeue -o`, without the characters between.
const JOB: [&str; 29] = [
    "%F", "%K", "%A", "%V", "%u", "%a", "%T", "%Q", "%D", "%C", "%c", "%m", "%l", "%S", "%e", "%N",
    "%n", "%x", "%r", "%h", "%b", "%f", "%W", "%E", "%v", "%d", "%M", "%k", "%j",
];
/// Place of the state among them.
const STATE: usize = 6;
/// Columns of `sinfo -o`.
const NODE: [&str; 8] = ["%N", "%c", "%m", "%d", "%G", "%f", "%T", "%E"];

/// Number that stands for no number of tasks.
const NO_TASKS: u64 = 65_534;

/// Longest part of an unreadable row that is reported.
const ROW_CHARS: usize = 200;

/// Longest part of an option's value that is reported: the reason behind it has to have room.
const VALUE_CHARS: usize = 60;

/// Mark at the beginning of each row of an answer of `squeue`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark(String);

impl Mark {
    /// Makes a mark that nobody can guess.
    pub(crate) fn new() -> Self {
        // Each has its own keys, which are random.
        Self(format!("{:016x}:", RandomState::new().build_hasher().finish()))
    }

    /// Format for `squeue`, whose rows begin with the mark.
    pub(crate) fn job_format(&self) -> String {
        format!("{}{}", self.0, JOB.join(&END.to_string()))
    }
}

impl Default for Mark {
    fn default() -> Self {
        Self::new()
    }
}

/// Format for `sinfo`.
pub(crate) fn node_format() -> String {
    NODE.join(&END.to_string())
}

/// Values that `squeue` prints only in columns of fixed width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Extra {
    deadline_s: Option<u64>,
    tasks: u64,
    cpus_per_task: u64,
    max_nodes: Option<u64>,
    /// Total memory and the number of cores for which it is; `None`: they could not be read.
    memory: Option<(u64, u64)>,
    /// Number of nodes that the user requested; `None`: it could not be read.
    least_nodes: Option<u64>,
    gres: Vec<(Per, Gres)>,
    cpus_per_gpu: u64,
    bytes_per_gpu: u64,
    tasks_per_node: u64,
    /// Requests that can't be planned.
    foreign: Option<String>,
}

/// Columns of `squeue -O`.
pub(crate) const EXTRA: &str = "ArrayJobID:12,ArrayTaskID:12,Deadline:24,NumTasks:12,\
                                cpus-per-task:12,MaxNodes:12,NTPerNode:12,tres-per-node:200,\
                                tres-per-task:200,tres-per-job:200,tres-per-socket:200,\
                                cpus-per-tres:200,mem-per-tres:200,Contiguous:12,tres:200";
/// Job whose options are not in these columns.
pub(crate) const UNSHOWN: &str =
    "the options of the job can't be read, since squeue -O does not show them; submit it again";
/// Width of the columns whose length depends on the job.
const EXTRA_WIDTH: usize = 200;

/// Reasons of Slurm's for which a job never starts as it is, whatever else ends.
const NEVER: [&str; 11] = [
    "BadConstraints",
    "PartitionNodeLimit",
    "PartitionTimeLimit",
    "PartitionConfig",
    "AccountNotAllowed",
    "QOSNotAllowed",
    "InvalidAccount",
    "InvalidQOS",
    "DependencyNeverSatisfied",
    "QOSTimeLimit",
    "AssociationTimeLimit",
];

/// Parts of Slurm's reasons for which a job that was sent back is held: its launch failed, it ended
/// with a status of `RequeueExitHold`, it was sent back too often, or an operator wanted that.
const HELD_BY_REQUEUE: [&str; 4] = [
    "requeued held",
    "requeued in held state",
    "requeued in special exit state",
    "JobHoldMaxRequeue",
];

/// Whether Slurm's reason is that the reservation of the job has ended: `ReservationDeleted`, or
/// `Reservation NAME was deleted`.
fn is_without_reservation(reason: &str) -> bool {
    let begins = reason.starts_with("Reservation ") && reason.ends_with(" was deleted");
    begins || reason == "ReservationDeleted"
}

/// Outcomes of runs that hooks have told, by number and submission of the job: a job that is sent
/// back runs again with the same number, and is submitted anew.
pub(crate) type Ends = HashMap<(u32, u64), String>;

/// Facts that complete the rows of `squeue`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    /// Outcomes of jobs that are being cleaned.
    pub(crate) how: &'a Ends,
    /// Names of the planned nodes, sorted.
    pub(crate) planned: &'a [String],
}

/// The jobs in what `squeue` has printed with that mark, and the rows that can't be read.
pub(crate) fn jobs_of(text: &str, mark: &Mark, with: Context<'_>) -> (Vec<JobSeen>, Vec<Unread>) {
    let (mut jobs, mut unread) = (Vec::new(), Vec::new());
    let mut rows: Vec<(Option<&str>, Vec<&str>)> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        match (line.strip_prefix(&mark.0), rows.last_mut()) {
            (Some(begin), _) => rows.push((Some(begin), Vec::new())),
            (None, Some((_, more))) => more.push(line),
            (None, None) => rows.push((None, vec![line])),
        }
    }
    for (begin, more) in rows {
        let job = begin.filter(|_| more.is_empty()).and_then(|line| job_of(line, with));
        match job {
            Some(job) => jobs.push(job),
            None => {
                let row = begin.into_iter().chain(more).collect::<Vec<_>>().join("\n");
                let what: String = row.chars().take(ROW_CHARS).collect();
                let columns: Vec<&str> = begin.map_or_else(Vec::new, |of| of.split(END).collect());
                let is_waiting = is_waiting(&columns);
                unread.push(Unread { key: key_of(&columns), what, is_waiting });
            }
        }
    }
    (jobs, unread)
}

/// The key of a row, which stands before all texts of users.
fn key_of(columns: &[&str]) -> Option<Key> {
    let [job, index, _, submit, ..] = columns else {
        return None;
    };
    Some(Key { job: job.parse().ok()?, index: index.parse().ok(), submit_s: submit.parse().ok()? })
}

/// Whether the row shows a job that has not begun; `None`: that can't be read.
fn is_waiting(columns: &[&str]) -> Option<bool> {
    // Neither the priority nor the reason decides that.
    let state = state_of(columns.get(STATE)?, "0", "", None)?;
    Some(matches!(state, JobState::Pending(_)))
}

fn job_of(line: &str, with: Context<'_>) -> Option<JobSeen> {
    let columns: Vec<&str> = line.split(END).collect();
    let key = key_of(&columns)?;
    let columns: [&str; JOB.len()] = columns.try_into().ok()?;
    let [_job, _index, number, _submit, user, account, state, priority, nodes_wanted, cpus, min_cpus, memory, limit, start, end, nodes, required, excluded, reason, sharing, _tres, features, licenses, after, reservation, tmp, _used, words, name] =
        columns;
    // Elements of an array end by numbers of their own.
    let how = with.how.get(&(number.parse().ok()?, key.submit_s));
    let is_suspended = matches!(state, "SUSPENDED" | "STOPPED");
    let is_booting = state == "CONFIGURING";
    let state = state_of(state, priority, reason, how)?;
    // While a job is suspended nobody knows when its limit will be over, and while its nodes boot
    // the end counts from before.
    let end_s = end.parse().ok().filter(|_| !is_suspended && !is_booting);
    let is_pending = matches!(state, JobState::Pending(_));
    let required = hosts(required)?;
    let given = |option: &str, value: &str, rest: &str| {
        let is_none = matches!(value, "" | "(null)" | "N/A" | "none" | "0");
        let mut chars = value.chars();
        let begin: String = chars.by_ref().take(VALUE_CHARS).collect();
        let more = chars.next().map_or("", |_| "...");
        (!is_none).then(|| format!("--{option}={begin}{more}: {rest}"))
    };
    let unless = |is_read: bool, option: &str, value: &str, rest: &str| {
        given(option, value, rest).filter(|_| !is_read)
    };
    let is_unset = |value: &str| matches!(value, "" | "(null)");
    let counts = [nodes_wanted, cpus, min_cpus].map(str::parse);
    let bytes = memory_bytes(memory);
    let tmp_bytes = memory_bytes(tmp);
    let excluded_nodes = excluded_of(excluded, with.planned);
    let not_excluded = excluded_nodes.as_ref().err().map(|why| match why {
        NotExcluded::Unreadable => "this list of nodes can't be read; write their names, such as \
                                    --exclude=n01,n[04-06]"
            .into(),
        NotExcluded::TooMany => format!(
            "a job excludes at most {AVOIDED_NODES} of the planned nodes; exclude fewer, or name \
             features of the others with --constraint"
        ),
    });
    let is_read = counts.iter().all(Result::is_ok) && bytes.is_some();
    let [nodes_wanted, cpus, min_cpus] = counts.map(|count| count.unwrap_or(1));
    let unread = || {
        format!(
            "the number of CPUs ({cpus}) or memory ({memory}) can't be read; write other amounts"
        )
    };
    let foreign = [
        (!is_read).then(unread),
        not_excluded.and_then(|why: String| given("exclude", excluded, &why)),
        unless(
            features_of(features).is_some(),
            "constraint",
            features,
            "a job is planned only on nodes that have all of its features; join their names by &, \
             or leave out --constraint",
        ),
        unless(
            licenses_of(licenses).is_some(),
            "licenses",
            licenses,
            "a job is planned only with all of its licences; join their names by commas, or leave \
             out --licenses",
        ),
        unless(
            tmp_bytes.is_some(),
            "tmp",
            tmp,
            "this amount of disk space can't be read; write another one, such as --tmp=10G",
        ),
    ];
    Some(JobSeen {
        key,
        user: user.into(),
        account: match account {
            "(null)" => String::from("none"),
            _ => account.into(),
        },
        name: name.into(),
        state,
        nodes_wanted,
        max_nodes: None,
        cpus,
        min_cpus,
        tasks: 0,
        cpus_per_task: 1,
        memory: match bytes {
            None | Some(0) => Memory::All,
            Some(bytes) => Memory::OfNode(bytes),
        },
        is_exclusive: sharing == "NO" || sharing == "EXCLUSIVE",
        limit_s: seconds(limit),
        start_s: start.parse().ok(),
        end_s,
        nodes: if is_pending { Vec::new() } else { hosts(nodes)? },
        required,
        after: match after {
            "(null)" => String::new(),
            _ => after.into(),
        },
        words: match words {
            "(null)" => String::new(),
            _ => words.into(),
        },
        reservation: Some(reservation).filter(|of| !is_unset(of)).unwrap_or_default().into(),
        demands: Demands {
            // Unreadable ones are in `foreign`.
            features: features_of(features).unwrap_or_default(),
            // Unreadable ones are in `foreign`, and count as one licence with all that text.
            licenses: licenses_of(licenses).unwrap_or_else(|| vec![(licenses.into(), 1)]),
            // An unreadable list, or one that is too long, is in `foreign`.
            excluded: excluded_nodes.unwrap_or_default(),
            // An unreadable amount is in `foreign`.
            tmp_bytes: tmp_bytes.unwrap_or_default(),
            ..Demands::default()
        },
        foreign: foreign.into_iter().flatten().next(),
        reason: match reason {
            "None" | "(null)" => String::new(),
            _ => reason.into(),
        },
        is_refused: NEVER.contains(&reason),
        is_unclear: false,
    })
}

fn state_of(state: &str, priority: &str, reason: &str, how: Option<&String>) -> Option<JobState> {
    Some(match state {
        "PENDING" | "REQUEUED" | "REQUEUE_HOLD" | "REQUEUE_FED" | "SPECIAL_EXIT"
        | "RESV_DEL_HOLD" => {
            JobState::Pending(match (priority.parse::<u64>().ok()?, reason) {
                (0, "JobHeldAdmin") => Hold::Admin,
                // Newer text names the reservation.
                (0, reason) if is_without_reservation(reason) => Hold::Unreserved,
                (0, reason) if HELD_BY_REQUEUE.iter().any(|of| reason.contains(of)) => {
                    Hold::Requeued
                }
                (0, _) => Hold::User,
                _ => Hold::No,
            })
        }
        "RUNNING" | "CONFIGURING" | "SUSPENDED" | "STOPPED" | "RESIZING" | "SIGNALING" => {
            JobState::Running
        }
        "COMPLETING" | "STAGE_OUT" => JobState::Completing(how.cloned()),
        "COMPLETED" => JobState::Over("completed".into()),
        "CANCELLED" => JobState::Over("cancelled".into()),
        "FAILED" => JobState::Over("failed".into()),
        "TIMEOUT" => JobState::Over("aborted at its end".into()),
        "NODE_FAIL" => JobState::Over("node failed".into()),
        "OUT_OF_MEMORY" => JobState::Over("out of memory".into()),
        "DEADLINE" => JobState::Over("its deadline has passed".into()),
        other if other.chars().all(|c| c.is_ascii_uppercase() || c == '_') => {
            JobState::Over(other.to_ascii_lowercase().replace('_', " "))
        }
        _ => return None,
    })
}

/// Outcome of a run, by the number that the hook for ends receives; `None`: the job is sent back, or
/// its run is not over.
pub(crate) fn outcome_of(number: u32) -> Option<String> {
    let outcome = match number & 0xff {
        0..=2 => return None,
        3 => "completed",
        4 => "cancelled",
        5 => "failed",
        6 => "aborted at its end",
        7 => "node failed",
        10 => "its deadline has passed",
        11 => "out of memory",
        _ => "ended",
    };
    Some(outcome.into())
}

/// Total requests of jobs, by their names.
pub(crate) fn extras_of(text: &str) -> HashMap<(u32, Option<u32>), Extra> {
    let lines = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let job = words.next()?.parse().ok()?;
        let index = words.next()?.parse().ok();
        let deadline_s = words.next()?.parse().ok();
        let tasks = words.next()?.parse().unwrap_or(0);
        let cpus_per_task = words.next()?.parse().unwrap_or(1);
        let max_nodes = words.next()?.parse().ok();
        let tasks_per_node = words.next()?.parse().ok().filter(|&of| of < NO_TASKS).unwrap_or(0);
        let [per_node, per_task, per_job, per_socket, cpus_per, memory_per, contiguous] =
            std::array::from_fn(|_| words.next().unwrap_or("?"));
        let tres = words.next().unwrap_or("?");
        let is_given = |value: &str| !matches!(value, "N/A" | "0" | "no" | "(null)");
        let mut foreign = is_given(contiguous).then(|| {
            "--contiguous: nodes beside each other are not planned; leave out --contiguous".into()
        });
        if is_given(per_socket) {
            foreign = Some(format!(
                "--gpus-per-socket ({per_socket}): accelerators of sockets are not planned; write \
                 those of each node with --gpus-per-node"
            ));
        }
        let mut all = Vec::new();
        for (per, text) in [(Per::Node, per_node), (Per::Task, per_task), (Per::Job, per_job)] {
            match gres_of(text).filter(|_| text.len() < EXTRA_WIDTH) {
                Some(of) => all.extend(of.into_iter().map(|of| (per, of))),
                None => {
                    foreign = Some(format!(
                        "--gres or --gpus ({text}): these generic resources can't be read; write \
                         fewer of them, such as gpu:2"
                    ));
                }
            }
        }
        let mut of_gpu = |text: &str| match gres_of(text).as_deref() {
            Some([]) => 0,
            Some([of]) if of.name == "gpu" && of.kind.is_none() => of.count,
            _ => {
                foreign = Some(format!(
                    "--cpus-per-gpu or --mem-per-gpu ({text}): these are planned only for gpu \
                     without a type; leave them out, and write --cpus-per-task or --mem"
                ));
                0
            }
        };
        let (cpus_per_gpu, mib_per_gpu) = (of_gpu(cpus_per), of_gpu(memory_per));
        if tres == "?" {
            foreign = Some(UNSHOWN.into());
        }
        let part = |name: &str| tres.split(',').find_map(|part| part.strip_prefix(name));
        let cpus = part("cpu=").and_then(|cpus| cpus.parse().ok());
        let memory = part("mem=").and_then(memory_bytes).zip(cpus);
        let extra = Extra {
            deadline_s,
            tasks,
            cpus_per_task,
            max_nodes,
            memory,
            least_nodes: part("node=").and_then(|nodes| nodes.parse().ok()),
            gres: all,
            cpus_per_gpu,
            bytes_per_gpu: mib_per_gpu.saturating_mul(1 << 20),
            tasks_per_node,
            foreign,
        };
        Some(((job, index), extra))
    });
    lines.collect()
}

impl Extra {
    /// Puts it where it belongs.
    pub(crate) fn add_to(&self, job: &mut JobSeen) {
        job.demands.gres.clone_from(&self.gres);
        job.demands.cpus_per_gpu = self.cpus_per_gpu;
        job.demands.bytes_per_gpu = self.bytes_per_gpu;
        job.demands.tasks_per_node = self.tasks_per_node;
        job.foreign = job.foreign.take().or_else(|| self.foreign.clone());
        (job.tasks, job.cpus_per_task) = (self.tasks, self.cpus_per_task);
        job.max_nodes = self.max_nodes;
        // The column has an estimate, which may be too great where tasks have several cores.
        if let (Some(nodes), JobState::Pending(_), true) =
            (self.least_nodes, &job.state, job.required.is_empty())
        {
            job.nodes_wanted = nodes;
        }
        // The column is the memory of each core, or of each node, and does not say which.
        if let (Memory::OfNode(bytes), Some((all, cpus))) = (job.memory, self.memory) {
            if bytes.checked_mul(cpus) == Some(all) {
                job.memory = Memory::OfCore(bytes);
            }
        }
        if let (Some(deadline_s), true) = (self.deadline_s, job.words.is_empty()) {
            job.words = format!("pbs deadline={deadline_s}");
        }
    }
}

impl Extra {
    /// Whether the columns leave open if a job's memory is that of each node or of each core, and
    /// that decides how much it gets. The greater amount is taken then.
    pub(crate) fn is_memory_open(&self, job: &JobSeen) -> bool {
        let cpus = self.memory.map(|(_, cpus)| cpus);
        matches!(job.memory, Memory::OfCore(_)) && cpus == self.least_nodes && job.cpus_each() > 1
    }
}

/// `300M`, `1.50G`, `0`.
fn memory_bytes(text: &str) -> Option<u64> {
    let (number, unit) = match text.find(|c: char| c.is_ascii_alphabetic()) {
        Some(at) => text.split_at(at),
        None => (text, "M"),
    };
    let shift = match unit {
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        "P" => 50,
        "E" => 60,
        _ => return None,
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let whole: u64 = whole.parse().ok()?;
    let part: f64 = format!("0.{part}").parse().ok()?;
    let unit = 1_u64 << shift;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    // A part of a unit is less than one.
    let part = (part * unit as f64).ceil() as u64;
    Some(whole.saturating_mul(unit).saturating_add(part))
}

/// Names one by one; `None` if they can't be read.
pub(crate) fn hosts(text: &str) -> Option<Vec<String>> {
    match text {
        "" | "(null)" => Some(Vec::new()),
        text => crate::conf::expand(text).ok(),
    }
}

/// The nodes in what `sinfo` has printed.
///
/// # Errors
///
/// The line that can't be read.
pub(crate) fn nodes_of(text: &str) -> Result<Vec<NodeSeen>, String> {
    let mut lines = text.lines().filter(|line| !line.is_empty()).peekable();
    if lines.peek().is_some_and(|line| !line.contains(END)) {
        return Err(format!("sinfo: {:?} can't be read", lines.next().unwrap_or_default()));
    }
    // The reason is the last column, and may have several lines.
    let nodes = lines.filter(|line| line.contains(END)).map(|line| {
        let columns: Vec<&str> = line.splitn(NODE.len(), END).collect();
        let [name, cpus, mib, tmp_mib, gres, features, state, why] = columns[..] else {
            return Err(format!("sinfo: {line:?} can't be read"));
        };
        Ok(NodeSeen {
            name: name.into(),
            cpus: cpus.parse().unwrap_or(0),
            memory_bytes: mib.parse::<u64>().unwrap_or(0).saturating_mul(1 << 20),
            tmp_bytes: tmp_mib.parse::<u64>().unwrap_or(0).saturating_mul(1 << 20),
            // Without them no job gets more nodes for its tasks; the plan has those of the site.
            gres: gres_of(gres).unwrap_or_default(),
            features: match features {
                "(null)" => Vec::new(),
                _ => features.split(',').map(Into::into).collect(),
            },
            state: node_state(state),
            why: match why {
                "none" => state.into(),
                _ => why.into(),
            },
        })
    });
    nodes.collect()
}

fn node_state(state: &str) -> NodeState {
    // Nodes that are switched off or on, or that fail and still have jobs, get nothing new.
    let is_down = |word: &str| word.trim_end_matches(|c: char| !c.is_ascii_alphabetic()) == "down";
    if state.split('+').any(is_down) {
        NodeState::Down
    } else if ["idle", "mixed", "allocated", "completing", "planned"]
        .contains(&state.trim_end_matches('-'))
    {
        NodeState::Up
    } else if ["reserved", "maint"].contains(&state) {
        NodeState::Reserved
    } else {
        // Drained, failing, or silent for a moment: nothing new.
        NodeState::Drained
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(change: &[(usize, &str)]) -> String {
        let mut columns = [
            "7",
            "N/A",
            "9",
            "1795597640",
            "games",
            "(null)",
            "PENDING",
            "0",
            "2",
            "3",
            "1",
            "300M",
            "2:00",
            "N/A",
            "N/A",
            "",
            "",
            "",
            "JobHeldUser",
            "OK",
            "N/A",
            "(null)",
            "(null)",
            "(null)",
            "(null)",
            "0",
            "0:00",
            "pbs deadline=4h",
            "a b|c",
        ];
        for &(at, value) in change {
            columns[at] = value;
        }
        columns.join(&END.to_string())
    }

    fn names(count: u32) -> Vec<String> {
        (1..=count).map(|number| format!("n{number:02}")).collect()
    }

    /// Reads rows that `squeue` has printed.
    fn read(rows: &[String]) -> (Vec<JobSeen>, Vec<Unread>) {
        let mark = Mark::new();
        let rows: Vec<_> = rows.iter().map(|row| format!("{}{row}\n", mark.0)).collect();
        let how = Ends::from([((9, 1_795_597_640), "failed".into())]);
        jobs_of(&rows.concat(), &mark, Context { how: &how, planned: &names(99) })
    }

    fn job(change: &[(usize, &str)]) -> JobSeen {
        let (jobs, unread) = read(&[line(change)]);
        assert_eq!(unread, []);
        jobs.into_iter().next().unwrap()
    }

    #[test]
    fn a_job_whose_reservation_was_deleted_waits() {
        let held = JobState::Pending(Hold::Unreserved);
        for (state, reason) in
            [("RESV_DEL_HOLD", "Reservation course was deleted"), ("PENDING", "ReservationDeleted")]
        {
            assert_eq!(job(&[(6, state), (18, reason)]).state, held, "{reason}");
        }
        // The state stays after a release, until it starts.
        let released = job(&[(6, "RESV_DEL_HOLD"), (7, "17"), (18, "None"), (24, "course")]);
        assert_eq!(released.state, JobState::Pending(Hold::No));
        assert_eq!((&*released.reservation, released.foreign), ("course", None));
    }

    #[test]
    fn a_line_is_a_job() {
        let pending = job(&[]);
        assert_eq!(pending.key.to_string(), "7@1795597640");
        assert_eq!(pending.state, JobState::Pending(Hold::User));
        assert_eq!((pending.nodes_wanted, pending.cpus), (2, 3));
        assert_eq!(pending.memory, Memory::OfNode(300 << 20));
        assert_eq!(pending.limit_s, Some(120));
        assert_eq!((&*pending.name, &*pending.words), ("a b|c", "pbs deadline=4h"));
        assert_eq!(pending.foreign, None);
        let runs = job(&[
            (1, "3"),
            (6, "RUNNING"),
            (7, "4294901757"),
            (13, "1795598564"),
            (15, "n[01-02]"),
        ]);
        assert_eq!(runs.key.name(), "7_3");
        assert_eq!((runs.state, runs.start_s), (JobState::Running, Some(1_795_598_564)));
        assert_eq!(runs.nodes, ["n01", "n02"]);
        assert_eq!(job(&[(18, "JobHeldAdmin")]).state, JobState::Pending(Hold::Admin));
        assert_eq!(job(&[(7, "17")]).state, JobState::Pending(Hold::No));
        for reason in ["launch failed requeued held", "job requeued in held state"] {
            let state = job(&[(6, "REQUEUE_HOLD"), (18, reason)]).state;
            assert_eq!(state, JobState::Pending(Hold::Requeued), "{reason}");
            assert_eq!(job(&[(7, "17"), (18, reason)]).state, JobState::Pending(Hold::No));
        }
        let often = job(&[(18, "JobHoldMaxRequeue")]);
        assert_eq!(often.state, JobState::Pending(Hold::Requeued));
        assert_eq!(job(&[(6, "COMPLETING")]).state, JobState::Completing(Some("failed".into())));
        // The end that was told is that of the run before it was sent back.
        let again = job(&[(3, "1795597641"), (6, "COMPLETING")]);
        assert_eq!(again.state, JobState::Completing(None));
        assert_eq!(job(&[(6, "NODE_FAIL")]).state, JobState::Over("node failed".into()));
        assert_eq!(job(&[(11, "0")]).memory, Memory::All);
        assert_eq!(job(&[(12, "1-02:00:00")]).limit_s, Some(93_600));
        assert_eq!(job(&[(12, "UNLIMITED")]).limit_s, None);
        assert_eq!(job(&[(21, "ib&big")]).demands.features, ["ib", "big"]);
        assert!(job(&[(21, "ib|big")]).foreign.unwrap().starts_with("--constraint=ib|big: "));
        assert_eq!(job(&[(22, "matlab:2")]).demands.licenses, [("matlab".into(), 2)]);
        assert!(job(&[(22, "matlab|ansys")])
            .foreign
            .unwrap()
            .starts_with("--licenses=matlab|ansys: "));
        let of = |reason| job(&[(18, reason)]);
        let refused = of("BadConstraints");
        assert!(refused.is_refused && refused.reason == "BadConstraints");
        assert!(!of("Resources").is_refused && of("None").reason.is_empty());
        let without = job(&[(17, "n[02-03],n01")]);
        assert_eq!((&without.demands.excluded[..], without.foreign), (&names(3)[..], None));
        for (list, begin) in [
            ("n[01-65]", "--exclude=n[01-65]: a job excludes at most 64 of the planned nodes"),
            ("n[1", "--exclude=n[1: this list of nodes can't be read"),
        ] {
            let not = job(&[(17, list)]);
            assert!(not.foreign.as_ref().unwrap().starts_with(begin), "{:?}", not.foreign);
            assert!(not.demands.excluded.is_empty());
        }
        let other = job(&[(17, "m[1-60000],n09")]);
        assert_eq!((&other.demands.excluded[..], other.foreign), (&["n09".into()][..], None));
        let long = names(100).join(",");
        let foreign = job(&[(17, &long)]).foreign.unwrap();
        assert!(foreign.contains("...: a job excludes") && foreign.len() < 250, "{foreign}");
        let with_tmp = job(&[(25, "1.50G")]);
        assert_eq!((with_tmp.demands.tmp_bytes, with_tmp.foreign), (3 << 29, None));
        assert!(job(&[(25, "100X")]).foreign.unwrap().starts_with("--tmp=100X: "));
    }

    /// Slurm holds a job of any size before it looks whether there is room for it.
    #[test]
    fn an_amount_that_cannot_be_read_blinds_nobody() {
        let (jobs, _) = read(&[line(&[(10, "1K"), (0, "8")]), line(&[])]);
        assert!(jobs[0].foreign.as_ref().unwrap().contains("can't be read"));
        assert_eq!(jobs[1].foreign, None);
        assert!(job(&[(11, "1Z")]).foreign.unwrap().contains("memory (1Z)"));
        assert_eq!(job(&[(11, "16E")]).memory, Memory::OfNode(u64::MAX));
        assert_eq!(job(&[(11, "17592186044416E")]).memory, Memory::OfNode(u64::MAX));
    }

    #[test]
    fn a_job_whose_nodes_boot_has_no_end_yet() {
        assert_eq!(job(&[(6, "CONFIGURING"), (14, "1795598564")]).end_s, None);
        assert_eq!(job(&[(6, "RUNNING"), (14, "1795598564")]).end_s, Some(1_795_598_564));
    }

    /// A text of a user with line ends and separators makes its own row unreadable. It forges no
    /// other one, and all others are read.
    #[test]
    fn no_text_of_a_job_forges_or_hides_a_row() {
        let forged = line(&[(0, "8"), (4, "root")]);
        for (at, text) in [
            (28, format!("x\n{forged}")),
            (27, format!("x\n{forged}\n{forged}")),
            (5, "x\u{1f}y".into()),
            (5, format!("x\n0000000000000000:{forged}")),
        ] {
            let rows = [line(&[(0, "6")]), line(&[(at, &text)]), line(&[(0, "9")])];
            let (jobs, unread) = read(&rows);
            let numbers: Vec<_> = jobs.iter().map(|job| job.key.job).collect();
            assert_eq!(numbers, [6, 9], "{text:?}");
            let [unread] = &unread[..] else { panic!("{unread:?}") };
            assert_eq!(unread.key.unwrap().to_string(), "7@1795597640");
            assert!(unread.what.starts_with("7\u{1f}"), "{unread:?}");
        }
        for change in [(0, "x"), (6, "what?")] {
            let (jobs, unread) = read(&[line(&[change]), line(&[])]);
            assert_eq!((jobs.len(), unread.len()), (1, 1), "{change:?}");
        }
        let (jobs, unread) = read(&[line(&[(15, "n[1-999999999999]"), (6, "RUNNING")])]);
        assert!(jobs.is_empty() && unread[0].key.is_some());
        // What stands before all rows is of none.
        let with = Context { how: &Ends::new(), planned: &[] };
        let (jobs, unread) = jobs_of("8", &Mark::new(), with);
        let expected = Unread { key: None, what: "8".into(), is_waiting: None };
        assert!(jobs.is_empty() && unread == [expected]);
        assert_ne!(Mark::new(), Mark::new());
    }

    #[test]
    fn memory_is_counted_by_node() {
        let none = "N/A N/A N/A N/A N/A N/A 0";
        let text = format!(
            "7  N/A  N/A         3  1  4  0  {none} cpu=3,mem=900M,node=2\n\
             8  2    1795609434  1  1  1  65534  {none} cpu=2,mem=300M,node=1\n"
        );
        let extras = extras_of(&text);
        let mut of = job(&[]);
        extras[&(7, None)].add_to(&mut of);
        assert_eq!(of.memory, Memory::OfCore(300 << 20));
        assert_eq!((of.tasks, of.max_nodes), (3, Some(4)));
        let mut of = job(&[(27, "(null)")]);
        extras[&(8, Some(2))].add_to(&mut of);
        assert_eq!(of.words, "pbs deadline=1795609434");
        assert_eq!(of.memory, Memory::OfNode(300 << 20));
        assert_eq!(memory_bytes("1.5G"), Some(3 << 29));
        assert_eq!(memory_bytes("16E"), Some(u64::MAX));
        assert_eq!(memory_bytes("x"), None);
    }

    #[test]
    fn generic_resources_belong_to_nodes_tasks_or_jobs() {
        let of = |columns: &str| {
            let tres = if columns.is_empty() { "" } else { "cpu=3,mem=900M,node=2" };
            let text = format!("7 N/A N/A 3 1 2 2 {columns} {tres}\n");
            let mut of = job(&[]);
            extras_of(&text)[&(7, None)].add_to(&mut of);
            of
        };
        let gpu = |count| Gres { name: "gpu".into(), kind: None, count };
        let per_task = of("N/A gres:gpu:1 N/A N/A gres:gpu:2 gres:gpu:100 0");
        assert_eq!(per_task.demands.gres, [(Per::Task, gpu(1))]);
        assert_eq!((per_task.demands.cpus_per_gpu, per_task.demands.tasks_per_node), (2, 2));
        assert_eq!(per_task.demands.bytes_per_gpu, 100 << 20);
        assert_eq!(per_task.foreign, None);
        // Two tasks with an accelerator each on each node, and two cores for each of these.
        assert_eq!((per_task.gpus_each(), per_task.cpus_each()), (2, 4));
        let both = of("gres:gpu:2 N/A gres:gpu:3 N/A N/A N/A 0").demands.gres;
        assert_eq!(both, [(Per::Node, gpu(2)), (Per::Job, gpu(3))]);
        let long = format!("gres:{}", "x".repeat(EXTRA_WIDTH));
        for (columns, what) in [
            ("N/A N/A N/A gres:gpu:1 N/A N/A 0".into(), "accelerators of sockets"),
            ("N/A N/A N/A N/A N/A N/A 1".into(), "nodes beside each other"),
            ("N/A N/A N/A N/A gres:fpga:1 N/A 0".into(), "planned only for gpu"),
            (format!("{long} N/A N/A N/A N/A N/A 0"), "generic resources can't be read"),
            (String::new(), UNSHOWN),
        ] {
            let foreign = of(&columns).foreign.unwrap();
            assert!(foreign.contains(what), "{columns}: {foreign}");
        }
    }

    #[test]
    fn states_of_nodes_are_read() {
        let text = [
            "n01\u{1f}2\u{1f}1000\u{1f}500\u{1f}gpu:2(S:0)\u{1f}ib,big\u{1f}idle\u{1f}none",
            "n02\u{1f}2\u{1f}1000\u{1f}500\u{1f}(null)\u{1f}(null)\u{1f}drained\u{1f}disk",
            "n03\u{1f}2\u{1f}1000\u{1f}500\u{1f}(null)\u{1f}(null)\u{1f}down*\u{1f}Not responding",
            "n04\u{1f}2\u{1f}1000\u{1f}500\u{1f}(null)\u{1f}(null)\u{1f}idle*\u{1f}none",
            // Its jobs go on.
            "n05\u{1f}2\u{1f}1000\u{1f}500\u{1f}(null)\u{1f}(null)\u{1f}failing\u{1f}fan",
            "n06\u{1f}2\u{1f}1000\u{1f}500\u{1f}(null)\u{1f}(null)\u{1f}powering_down\u{1f}none",
            "n07\u{1f}2\u{1f}1000\u{1f}500\u{1f}(null)\u{1f}(null)\u{1f}mixed-\u{1f}none",
            "n08\u{1f}2\u{1f}1000\u{1f}500\u{1f}(null)\u{1f}(null)\u{1f}maint\u{1f}none",
            "n09\u{1f}2\u{1f}1000\u{1f}500\u{1f}(null)\u{1f}(null)\u{1f}reserved*\u{1f}none",
        ];
        let nodes = nodes_of(&text.join("\n")).unwrap();
        let states: Vec<NodeState> = nodes.iter().map(|node| node.state).collect();
        assert_eq!(
            states,
            [
                NodeState::Up,
                NodeState::Drained,
                NodeState::Down,
                NodeState::Drained,
                NodeState::Drained,
                NodeState::Drained,
                NodeState::Up,
                NodeState::Reserved,
                NodeState::Drained,
            ]
        );
        assert_eq!(nodes[1].why, "disk");
        assert_eq!((nodes[0].memory_bytes, nodes[0].gres[0].count), (1000 << 20, 2));
        assert_eq!(nodes[0].tmp_bytes, 500 << 20);
        assert_eq!(
            (&nodes[0].features[..], nodes[1].features.len()),
            (&["ib".into(), "big".into()][..], 0)
        );
        // A reason of several lines, with the character between columns.
        let text = "n01\u{1f}2\u{1f}1000\u{1f}500\u{1f}(null)\u{1f}(null)\u{1f}drained\u{1f}check:\u{1f}disk\nand fan\n\
                    n02\u{1f}2\u{1f}1000\u{1f}500\u{1f}(null)\u{1f}(null)\u{1f}idle\u{1f}none";
        let nodes = nodes_of(text).unwrap();
        assert_eq!(nodes.len(), 2);
        assert_eq!((nodes[0].state, nodes[1].state), (NodeState::Drained, NodeState::Up));
        assert!(nodes_of("n01").is_err());
    }
}
