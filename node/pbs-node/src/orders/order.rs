// SPDX-License-Identifier: GPL-2.0
//! Orders: a job, the user as whom it runs, and the runs that must be over before it.

use pbs_history::{Outcome, RunId};
use pbs_job::MAX_NS;
use pbs_launch::{Exited, Owner};
use pbs_text::{span, user_name};
use serde::{Deserialize, Serialize};

use crate::{Declined, Error, Held, Submission};

/// A job begins at most so long after its submission, a year: until then it is in every plan, with
/// idle time before it.
const MOST_START_NS: u64 = 366 * 24 * 3600 * 1_000_000_000;

/// Bytes of a variable of the environment, or of a limit, in addition to its words.
const ITEM_BYTES: usize = 48;

/// The longest name of a program that is stored when it has ended.
const PROGRAM_CHARS: usize = 200;

/// The longest reason of an end that is stored.
const WHY_CHARS: usize = 4000;

/// Returns the reason for which no job can have that deadline, counted from its submission.
pub(crate) fn deadline_fault(deadline_ns: u64) -> Option<String> {
    let is_possible = (1..=MAX_NS).contains(&deadline_ns);
    (!is_possible).then(|| format!("its deadline must be from 1 ns to {}", span(MAX_NS)))
}

/// A job that a user wants to have run.
#[derive(Clone, Debug)]
pub struct Order {
    /// The job, with what the terms say instead of its file.
    pub submission: Submission,
    /// All else.
    pub terms: Terms,
    held: Held,
}

/// Under which terms a run is wanted. Stored terms without an owner are unreadable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// User and environment of its programs.
    pub owner: Owner,
    /// The name of the job, instead of that in its file.
    pub name: Option<String>,
    /// Priority, instead of the one in its file.
    pub priority: Option<u32>,
    /// Deadline counted from the submission, instead of the one in its file.
    pub deadline_ns: Option<u64>,
    /// Whether the run is best effort, whatever its file declares.
    #[serde(default)]
    pub best_effort: bool,
    /// Whether the run is held: it is not planned before somebody releases it.
    #[serde(default)]
    pub hold: bool,
    /// Runs that have to be over before it is planned.
    #[serde(default)]
    pub after: Vec<u64>,
    /// Runs that have to be complete, with programs that all succeeded.
    #[serde(default)]
    pub after_ok: Vec<u64>,
    /// The allocation that it is in ([`Node::allocate`](crate::Node::allocate)).
    pub allocation: Option<u32>,
    /// Name of its user in /etc/passwd when it was submitted; `None`: the user was not there, or a
    /// version before wrote this.
    #[serde(default)]
    pub user: Option<String>,
}

impl Terms {
    /// The terms of a job of that owner which runs as its file says, and at once.
    pub fn new(owner: Owner) -> Self {
        Self {
            owner,
            name: None,
            priority: None,
            deadline_ns: None,
            best_effort: false,
            hold: false,
            after: Vec::new(),
            after_ok: Vec::new(),
            allocation: None,
            user: None,
        }
    }

    /// Whether its programs may run as the number of its user, by the lines of /etc/passwd: a number
    /// may belong to another user by now. Users who were not there are known elsewhere.
    ///
    /// # Errors
    ///
    /// Another user has the number, or nobody has it.
    pub(crate) fn is_of_user(&self, users: &str) -> Result<(), Error> {
        let uid = self.owner.uid;
        let Some(was) = &self.user else {
            return Ok(());
        };
        let is = user_name(users, uid);
        if is.as_ref() == Some(was) {
            Ok(())
        } else {
            Err(Error::OtherUser { uid, was: was.clone(), is })
        }
    }

    /// Returns the bytes of memory that the terms take, by the lengths of their parts.
    pub fn held_bytes(&self) -> usize {
        let owner = &self.owner;
        let variables = owner.environment.iter();
        let variables = variables.map(|(name, value)| ITEM_BYTES + name.len() + value.len());
        let limits = owner.limits.iter().map(|limit| ITEM_BYTES + limit.resource.len());
        size_of::<Self>()
            + variables.sum::<usize>()
            + limits.sum::<usize>()
            + size_of_val(&owner.groups[..])
            + owner.directory.as_os_str().len()
            + owner.output.as_ref().map_or(0, |output| output.as_os_str().len())
            + self.name.as_ref().map_or(0, String::len)
            + self.user.as_ref().map_or(0, String::len)
            + size_of_val(&self.after[..])
            + size_of_val(&self.after_ok[..])
    }
}

/// Data about a run that is over, beside its figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ending {
    /// Reason for which the run did not complete, if it needs words.
    pub why: Option<String>,
    /// Deadline of the run.
    pub deadline_unix_ns: Option<u64>,
    /// Whether it was run as best effort; `None`: a version before wrote this.
    pub best_effort: Option<bool>,
    /// The CPUs that it was confined to; empty: it was not.
    pub cpus: Vec<u32>,
    /// Time at which its programs were released.
    pub started_unix_ns: Option<u64>,
    /// Time of its first instruction in a slot.
    pub begun_unix_ns: Option<u64>,
    /// Whether it did all that it was to do before its deadline; `None`: it had none.
    pub kept: Option<bool>,
    /// All programs succeeded, as far as that is known.
    pub succeeded: bool,
    /// End of each program; nothing is known of programs that another service has started.
    pub programs: Vec<ProgramEnd>,
}

/// End of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramEnd {
    /// Number of its process in the job.
    pub process: u32,
    /// The program.
    pub program: String,
    /// Exit status, if the program exited.
    pub code: Option<i32>,
    /// The signal, if that killed it.
    pub signal: Option<i32>,
    /// Reason for which the program could not be executed.
    pub error: Option<String>,
    /// Number of the end: of two programs, the one that ended first has the lower number. 0: it
    /// is not known, as in records of earlier versions.
    #[serde(default)]
    pub end: u64,
    /// Whether the service had told the program to end; `None`: a version before wrote this.
    #[serde(default)]
    pub was_told: Option<bool>,
}

impl ProgramEnd {
    /// `process`: the number that its process has in the job.
    pub(crate) fn new(process: u32, exited: &Exited) -> Self {
        let Exited { exit, end, was_signalled, .. } = exited;
        Self {
            end: *end,
            was_told: Some(*was_signalled),
            process,
            program: clipped(&exit.program, PROGRAM_CHARS),
            code: exit.code,
            signal: exit.signal,
            error: exit.error.clone(),
        }
    }

    /// Whether it did what it was to do.
    pub(crate) fn is_success(&self) -> bool {
        self.code == Some(0) && self.error.is_none()
    }

    /// Whether the program ended because it was told to.
    pub(crate) fn was_told(&self) -> bool {
        self.was_told.unwrap_or(self.signal == Some(libc::SIGTERM))
    }

    /// Outcome of a run that this end decides.
    pub(crate) fn outcome(&self) -> Outcome {
        if self.error.is_none() && self.signal.is_some() {
            Outcome::Killed
        } else {
            Outcome::Failed
        }
    }

    /// Reason of a run that this end decides. `over_memory`: the kernel killed a process of the
    /// run for want of memory. It kills with SIGKILL: a program with another end was not killed
    /// by it, but may have failed because its child was.
    pub(crate) fn reason(&self, over_memory: bool) -> String {
        let label = format!("{} of process {}", self.program, self.process);
        let Self { code, signal, error, .. } = self;
        let reason = match (error, code, signal) {
            (Some(error), ..) => return format!("failed (not executed): {label}: {error}"),
            (None, None, Some(libc::SIGKILL)) if over_memory => {
                return format!("over memory: {label} was killed by SIGKILL");
            }
            (None, Some(code), _) => format!("failed (exit {code}): {label}"),
            (None, None, Some(by)) => format!("killed ({}): {label}", pbs_text::signal(*by)),
            (None, None, None) => return format!("failed: {label} has no result"),
        };
        if over_memory {
            format!("{reason}; a process of the job was killed for want of memory")
        } else {
            reason
        }
    }
}

/// The beginning of a text. The name of a program may be as long as the request of its job, and
/// so may be a reason that names it.
fn clipped(text: &str, most_chars: usize) -> String {
    text.chars().take(most_chars).collect()
}

/// Record of an order in the history.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Noted {
    pub(crate) terms: Terms,
    #[serde(default)]
    pub(crate) ending: Ending,
}

/// Reason of a run whose order cannot be read.
pub(crate) const UNREADABLE: &str = "the record of its order cannot be read";

impl Noted {
    /// Reads the record of an order. `None`: a part is missing or means something else, as in
    /// the record of a later version, or the record names another user than the history does.
    /// Nothing may be run by such an order.
    pub(crate) fn of(order: &pbs_history::Order) -> Option<Self> {
        let noted: Self = serde_json::from_str(&order.text).ok()?;
        (noted.terms.owner.uid == order.uid).then_some(noted)
    }

    pub(crate) fn order(&self) -> pbs_history::Order {
        pbs_history::Order {
            uid: self.terms.owner.uid,
            // Numbers, texts and lists always have a JSON text.
            text: serde_json::to_string(self).unwrap_or_default(),
        }
    }

    /// Returns the record of a run that is over. What only its programs needed is left out: it
    /// may be long, and the record is kept for long.
    pub(crate) fn over(mut self, mut ending: Ending) -> Self {
        ending.why = ending.why.map(|why| clipped(&why, WHY_CHARS));
        let Owner { uid, gid, .. } = self.terms.owner;
        self.terms.owner = Owner::new(uid, gid);
        self.terms.name = None;
        self.terms.after.clear();
        self.terms.after_ok.clear();
        Self { ending, ..self }
    }
}

impl Order {
    /// The job is as the terms say.
    pub fn new(mut submission: Submission, terms: Terms) -> Self {
        let job = &mut submission.job;
        if let Some(name) = &terms.name {
            job.name.clone_from(name);
        }
        job.priority = terms.priority.unwrap_or(job.priority);
        job.deadline_ns = terms.deadline_ns.unwrap_or(job.deadline_ns);
        job.best_effort |= terms.best_effort;
        let held = Held::of(&submission.job, &submission.request, terms.held_bytes());
        Self { submission, terms, held }
    }

    /// Size of what the node holds of it.
    pub fn held(&self) -> Held {
        self.held
    }

    /// Checks the times of the job, which the terms may have set: a saved run with impossible ones
    /// could not be read again.
    ///
    /// # Errors
    ///
    /// The time that is wrong, and those that are possible.
    pub(crate) fn has_possible_times(&self) -> Result<(), Error> {
        let Submission { file, job, .. } = &self.submission;
        let why = if let Some(why) = deadline_fault(job.deadline_ns) {
            why
        } else if job.start_ns >= job.deadline_ns {
            format!(
                "it starts {} after its submission, and its deadline is {} after it; write a later \
                 deadline",
                span(job.start_ns),
                span(job.deadline_ns)
            )
        } else if job.start_ns > MOST_START_NS {
            format!(
                "it starts {} after its submission; submit it within {} of its start",
                span(job.start_ns),
                span(MOST_START_NS)
            )
        } else {
            return Ok(());
        };
        Err(Error::Declined(Declined {
            file: file.clone(),
            job: job.name.clone(),
            why,
            earliest_deadline_ns: None,
        }))
    }

    /// Returns whether the order must wait, and the reason. `of` returns the end of a run that is
    /// over.
    pub(crate) fn waits(&self, of: impl Fn(RunId) -> Option<Ended>) -> Waits {
        if self.terms.hold {
            return Waits::For("held".into());
        }
        let after = self.terms.after.iter().map(|&id| (RunId(id), false));
        let after_ok = self.terms.after_ok.iter().map(|&id| (RunId(id), true));
        let mut waits = Vec::new();
        for (id, ok) in after.chain(after_ok) {
            match of(id) {
                Some(ended) if ok && !ended.well => {
                    return Waits::Never(if ended.outcome == Outcome::Complete {
                        format!("it depended on run {id}, whose programs' exit status is not known")
                    } else {
                        format!("it depended on run {id}, which ended as {}", ended.outcome)
                    });
                }
                Some(_) => {}
                None => waits.push(id.to_string()),
            }
        }
        if waits.is_empty() {
            Waits::No
        } else {
            Waits::For(format!("after {}", waits.join(", ")))
        }
    }
}

/// End of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    /// Complete, and all its programs succeeded.
    pub(crate) well: bool,
}

/// Whether an order can be planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    No,
    /// For what.
    For(String),
    /// The condition that it waits for can't be fulfilled any more.
    Never(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(uid: u32, text: &str) -> pbs_history::Order {
        pbs_history::Order { uid, text: text.into() }
    }

    /// A number may be that of another user when a held job is released. Users who are not in the
    /// file, and orders of earlier versions, are as they were.
    #[test]
    fn a_job_does_not_run_as_another_user() {
        let named = |user: Option<&str>| Terms {
            user: user.map(Into::into),
            ..Terms::new(Owner::new(1005, 100))
        };
        let (alice, bob) = ("alice:x:1005:100::/:\n", "bob:x:1005:100::/:\n");
        for (user, users) in [(Some("alice"), alice), (None, alice), (None, bob), (None, "")] {
            assert!(named(user).is_of_user(users).is_ok());
        }
        let why = |users| named(Some("alice")).is_of_user(users).unwrap_err().to_string();
        let was = "user 1005 was alice when the job was submitted, and is";
        assert_eq!(why(bob), format!("{was} bob now; submit it again"));
        assert_eq!(why(""), format!("{was} nobody now; submit it again"));
        let text = serde_json::to_string(&named(Some("alice"))).unwrap();
        assert_eq!(serde_json::from_str::<Terms>(&text).unwrap(), named(Some("alice")));
        let before = text.replace(",\"user\":\"alice\"", "");
        assert_eq!(serde_json::from_str::<Terms>(&before).unwrap(), named(None));
    }

    /// Impossible times are refused, however they came: a saved run could not be read with them.
    #[test]
    fn times_are_checked_that_terms_replace() {
        let text = "name = \"j\"\ndeadline_ns = \"2 s\"\nstart_ns = \"1 s\"\n[[process]]\nid = 1\n\
                    memory_bytes = 4096\ncommand = [\"true\"]\ntasks = [1_000_000]\n";
        let submission = Submission::from_text(text.into(), "j.toml".into()).unwrap();
        let fault = |deadline_ns, start_ns| {
            let mut submission = submission.clone();
            submission.job.start_ns = start_ns;
            let terms = Terms { deadline_ns, ..Terms::new(Owner::new(1000, 100)) };
            match Order::new(submission, terms).has_possible_times() {
                Ok(()) => None,
                Err(Error::Declined(declined)) => Some(declined.why),
                Err(error) => panic!("{error}"),
            }
        };
        assert_eq!(fault(None, 0), None);
        assert_eq!(fault(Some(MAX_NS), 0), None);
        assert!(fault(Some(MAX_NS + 1), 0).unwrap().starts_with("its deadline must be from 1 ns"));
        assert!(fault(Some(0), 0).unwrap().starts_with("its deadline must be from 1 ns"));
        assert!(fault(Some(5), 5).unwrap().contains("write a later deadline"));
        assert_eq!(fault(Some(MAX_NS), MOST_START_NS), None);
        let late = fault(Some(MAX_NS), MOST_START_NS + 1).unwrap();
        assert!(late.contains("submit it within"), "{late}");
    }

    /// A record without a user, or with another user than the history has, is no order of root.
    #[test]
    fn an_order_without_its_user_is_unreadable() {
        let noted = Noted { terms: Terms::new(Owner::new(1000, 100)), ending: Ending::default() };
        let pbs_history::Order { uid, text } = noted.order();
        let read = Noted::of(&order(uid, &text)).unwrap();
        assert_eq!((uid, read.terms), (1000, noted.terms));
        assert!(Noted::of(&order(0, &text)).is_none());
        let without_uid = text.replace("\"uid\":1000,", "");
        for text in ["", "{}", "{\"terms\":{}}", "null", &without_uid, &text[1..]] {
            for uid in [0, 1000] {
                assert!(Noted::of(&order(uid, text)).is_none(), "{text}");
            }
        }
    }
}
