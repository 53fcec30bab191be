// SPDX-License-Identifier: GPL-2.0
//! Submissions as they were sent, checked and not accepted yet.

use pbs_launch::{Limit, Owner};
use pbs_node::{Held, Order, Submission, Terms};
use pbs_node_api::{JobKey, Refusal};
use pbs_socket::Caller;

use crate::limits::{JOB_AFTER, NAME_BYTES, PATH_BYTES, SUBMISSION_JOBS, SUBMISSION_PROGRAMS};
use crate::refusal::refusal;

/// The longest part of what a user gave that a message shows.
const SHOWN_CHARS: usize = 60;

/// A submission as it was sent, or read before its turn.
#[derive(Debug)]
pub struct Asked(Form);

#[derive(Debug)]
enum Form {
    Sent(Box<pbs_node_api::Submission>),
    Read(Box<Wanted>),
}

impl From<pbs_node_api::Submission> for Asked {
    fn from(sent: pbs_node_api::Submission) -> Self {
        Self(Form::Sent(sent.into()))
    }
}

impl Asked {
    /// A submission that was read.
    pub(crate) fn read_before(read: Wanted) -> Self {
        Self(Form::Read(read.into()))
    }

    /// The submission as it was sent; `None`: it was read.
    pub fn sent(&self) -> Option<&pbs_node_api::Submission> {
        match &self.0 {
            Form::Sent(sent) => Some(sent),
            Form::Read(_) => None,
        }
    }

    /// Reads it, if it was not read before.
    ///
    /// # Errors
    ///
    /// Fails as [`Wanted::read`] does.
    pub(crate) fn read(self, caller: &Caller) -> Result<Wanted, Refusal> {
        match self.0 {
            Form::Sent(sent) => Wanted::read(caller, *sent),
            Form::Read(read) => Ok(*read),
        }
    }

    /// The first job of an array stands for all when a question is asked.
    pub(crate) fn first(self) -> Self {
        match self.0 {
            Form::Sent(sent) => pbs_node_api::Submission { array: None, ..*sent }.into(),
            read @ Form::Read(_) => Self(read),
        }
    }
}

/// Reads a request that replaces that of a job.
///
/// # Errors
///
/// [`Refusal::Invalid`]: what is wrong with it.
pub(crate) fn rewritten(key: &JobKey, request: String) -> Result<Submission, Refusal> {
    let number = key.number.map(|number| number.to_string());
    let named = number.or_else(|| key.name.clone()).unwrap_or_default();
    Submission::from_text(request, format!("job {named}")).map_err(refusal)
}

/// A job that a caller wants to have run, or the jobs of an array: one job, which becomes as many
/// as there are indices once their size is known and allowed.
#[derive(Debug)]
pub(crate) struct Wanted {
    job: Submission,
    terms: Terms,
    /// `None`: the job is not an array.
    indices: Vec<Option<u32>>,
}

impl Wanted {
    /// Reads a submission of that caller.
    ///
    /// # Errors
    ///
    /// [`Refusal::Invalid`]: what is wrong with it.
    pub(crate) fn read(
        caller: &Caller,
        submission: pbs_node_api::Submission,
    ) -> Result<Self, Refusal> {
        let invalid = |what: &str| invalid(&submission.file, what);
        if !is_printable(&submission.file) || submission.file.len() > PATH_BYTES {
            return Err(Refusal::Failed {
                why: "the name of the file is too long or not printable; rename the file".into(),
            });
        }
        let after = [&submission.after, &submission.afterok];
        if after.iter().any(|ids| ids.as_ref().is_some_and(|ids| ids.len() > JOB_AFTER)) {
            return Err(invalid(&format!(
                "a job can depend on at most {JOB_AFTER} others; name fewer"
            )));
        }
        let output = submission.output.as_deref().unwrap_or_default();
        if submission.directory.len() > PATH_BYTES || output.len() > PATH_BYTES {
            return Err(invalid(&format!(
                "the names of the working directory and of the output file can have at most \
                 {PATH_BYTES} bytes; name shorter ones"
            )));
        }
        if !submission.directory.starts_with('/') {
            let directory = shown(&submission.directory);
            return Err(invalid(&format!(
                "the working directory {directory} is not an absolute path; write one from / on"
            )));
        }
        let is_variable = |name: &str| !name.is_empty() && !name.contains(['=', '\0']);
        let variables = &submission.environment;
        let is_odd =
            |it: &&pbs_node_api::Environment| !is_variable(&it.name) || it.value.contains('\0');
        if let Some(odd) = variables.iter().find(is_odd) {
            return Err(invalid(&format!(
                "the variable {} of the environment has an invalid name or value; unset it",
                shown(&odd.name)
            )));
        }
        let limits = submission.limits.as_deref().unwrap_or_default();
        if let Some(odd) = limits.iter().find(|it| Limit::names().all(|name| name != it.resource)) {
            let names: Vec<_> = Limit::names().collect();
            return Err(invalid(&format!(
                "there is no resource limit {}; there are {}",
                shown(&odd.resource),
                names.join(", ")
            )));
        }
        let job = Submission::from_text(submission.request.clone(), submission.file.clone());
        let job = job.map_err(refusal)?;
        let indices: Vec<Option<u32>> = match submission.array {
            None => vec![None],
            Some(array) => {
                let step = array.step.unwrap_or(1).max(1);
                let count = u64::from(array.last.saturating_sub(array.first)) / u64::from(step) + 1;
                if array.last < array.first || count > SUBMISSION_JOBS {
                    let (first, last) = (array.first, array.last);
                    let count = if last < first { 0 } else { count };
                    return Err(invalid(&format!(
                        "the array {first}-{last} in steps of {step} has {count} jobs, and an \
                         array has at least one and at most {SUBMISSION_JOBS}; write another range"
                    )));
                }
                let indices = (array.first..=array.last).step_by(step as usize);
                indices.map(Some).collect()
            }
        };
        let name = submission.name.as_ref().unwrap_or(&job.job.name);
        is_name(name).map_err(|what| invalid(&what))?;
        may_have_priority(caller, submission.priority.unwrap_or(job.job.priority))?;
        let limit = |limit: &pbs_node_api::Limit| Limit {
            resource: limit.resource.clone(),
            soft: limit.soft.unwrap_or(u64::MAX),
            hard: limit.hard.unwrap_or(u64::MAX),
        };
        let owner = Owner {
            uid: caller.uid,
            gid: caller.gid,
            groups: caller.groups.clone(),
            directory: submission.directory.clone().into(),
            umask: submission.umask,
            environment: variables
                .iter()
                // A job that is submitted by a program of a job has figures of its own.
                .filter(|it| !it.name.starts_with("SCHED_PBS_"))
                .map(|it| (it.name.clone(), it.value.clone()))
                .collect(),
            limits: limits.iter().map(limit).collect(),
            output: submission.output.as_ref().map(Into::into),
        };
        let terms = Terms {
            owner,
            name: submission.name,
            priority: submission.priority,
            best_effort: submission.best_effort.unwrap_or(false),
            deadline_ns: submission.deadline_ns,
            hold: submission.hold.unwrap_or(false),
            after: distinct(submission.after),
            after_ok: distinct(submission.afterok),
            allocation: submission.allocation,
            user: None,
        };
        Ok(Self { job, terms, indices })
    }

    /// Caps the limits of the job's programs at those of the submitting process. A user cannot
    /// raise those.
    ///
    /// # Errors
    ///
    /// The limits of the submitting process can't be read.
    pub(crate) fn bound_limits(&mut self, caller: &Caller) -> Result<(), Refusal> {
        if caller.pid == 0 {
            let why =
                "the process that submitted the job is in another PID namespace, and its limits \
                       can't be read; submit from a process that the service sees";
            return Err(Refusal::Failed { why: why.into() });
        }
        let limits = Limit::of_process(caller.pid, caller.uid).map_err(|error| {
            let why = format!(
                "the limits of the process that submitted the job can't be read ({error}); keep \
                 that process running until it has the answer, and submit again"
            );
            Refusal::Failed { why }
        })?;
        self.terms.owner.bound_limits(&limits);
        Ok(())
    }

    /// Notes the name that its user has now.
    pub(crate) fn of_user(&mut self, name: Option<String>) {
        self.terms.user = name;
    }

    /// Size of all that would be held of it, each job of an array counted.
    pub(crate) fn held(&self) -> Held {
        let Submission { job, request, .. } = &self.job;
        Held::of(job, request, self.terms.held_bytes()) * self.indices.len()
    }

    /// The job, or that of each index.
    pub(crate) fn job(&self) -> &pbs_job::Job {
        &self.job.job
    }

    /// The allocation that it is to be in.
    pub(crate) fn allocation(&self) -> Option<u32> {
        self.terms.allocation
    }

    /// The orders, each with a copy of all.
    pub(crate) fn into_orders(self) -> impl Iterator<Item = Order> {
        let Self { job, terms, indices } = self;
        indices.into_iter().map(move |index| {
            let mut terms = terms.clone();
            if let Some(index) = index {
                let before = terms.name.as_ref().unwrap_or(&job.job.name);
                terms.name = Some(format!("{before}[{index}]"));
                let variable = ("SCHED_PBS_ARRAY_INDEX".to_string(), index.to_string());
                terms.owner.environment.push(variable);
            }
            Order::new(job.clone(), terms)
        })
    }
}

/// A request that can't be read as one.
pub(crate) fn invalid(file: &str, what: &str) -> Refusal {
    Refusal::Invalid { file: file.into(), problems: vec![format!("{file}: {what}")] }
}

/// The name of a job, which others get to read.
pub(crate) fn is_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        Err("the name of the job is empty; choose one".into())
    } else if name.len() > NAME_BYTES {
        let bytes = name.len();
        Err(format!(
            "the name of the job has {bytes} bytes, and at most {NAME_BYTES} are allowed; choose a \
             shorter one"
        ))
    } else if !is_printable(name) {
        let name = shown(name);
        Err(format!("the name of the job, {name}, is not printable; choose another"))
    } else {
        Ok(())
    }
}

/// The beginning of what a user gave, as a message shows it.
fn shown(text: &str) -> String {
    let short: String = text.chars().take(SHOWN_CHARS).collect();
    format!("{short:?}")
}

/// Operators may have any number of programs in a submission.
pub(crate) fn few_programs(caller: &Caller, held: Held) -> Result<(), Refusal> {
    let programs = held.programs;
    if programs > SUBMISSION_PROGRAMS && !caller.is_operator {
        Err(Refusal::Failed {
            why: format!(
                "these are {programs} programs, and at most {SUBMISSION_PROGRAMS} can be submitted \
                 at once; submit fewer"
            ),
        })
    } else {
        Ok(())
    }
}

/// The jobs that a job is to follow, each once: the service looks each of them up.
fn distinct(ids: Option<Vec<u64>>) -> Vec<u64> {
    let mut ids = ids.unwrap_or_default();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Whether a text can be shown to others, on a terminal and in the journal.
fn is_printable(text: &str) -> bool {
    !text.contains(pbs_text::is_hidden)
}

/// Only operators may give a job priority over others.
pub(crate) fn may_have_priority(caller: &Caller, priority: u32) -> Result<(), Refusal> {
    if caller.is_operator || priority == 0 {
        Ok(())
    } else {
        Err(not_permitted("a priority above 0"))
    }
}

pub(crate) fn not_permitted(what: &str) -> Refusal {
    Refusal::NotPermitted { what: what.into() }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::limits::Limits;

    /// An ordinary user.
    pub(crate) fn caller() -> Caller {
        Caller {
            uid: 1000,
            gid: 1000,
            groups: Vec::new(),
            is_operator: false,
            pid: 0,
            account: 1000,
        }
    }

    fn submission() -> pbs_node_api::Submission {
        let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../samples/service/urgent.toml");
        pbs_node_api::Submission {
            file: "urgent.toml".into(),
            request: std::fs::read_to_string(sample).unwrap(),
            directory: "/".into(),
            priority: Some(0),
            ..Default::default()
        }
    }

    fn array(last: u32) -> Option<pbs_node_api::Array> {
        Some(pbs_node_api::Array { first: 1, last, step: None })
    }

    fn environment(variables: usize) -> Vec<pbs_node_api::Environment> {
        let variable = pbs_node_api::Environment { name: "A".into(), value: String::new() };
        vec![variable; variables]
    }

    /// A call of 1 MiB must not become gigabytes.
    #[test]
    fn an_array_is_not_long_and_wordy_at_once() {
        let none = Held::default();
        let limits = Limits { user_jobs: 1000, ..Limits::DEFAULT };
        let allowed = |submission| {
            let wanted = Wanted::read(&caller(), submission).unwrap();
            limits.allow(&caller(), none, none, wanted.held()).map(|()| wanted)
        };
        let long = pbs_node_api::Submission { array: array(1000), ..submission() };
        assert_eq!(allowed(long).unwrap().into_orders().count(), 1000);
        let wordy = pbs_node_api::Submission { environment: environment(40_000), ..submission() };
        assert_eq!(allowed(wordy.clone()).unwrap().into_orders().count(), 1);
        let both = pbs_node_api::Submission { array: array(1000), ..wordy };
        let refused = allowed(both).unwrap_err();
        assert!(
            matches!(&refused, Refusal::Failed { why } if why.contains("(user-bytes)")),
            "{refused:?}"
        );
    }

    /// A request of some bytes becomes some hundred times as many, for each index of an array.
    #[test]
    fn what_is_made_of_a_request_counts() {
        let tasks = "1,".repeat(8000);
        let request = format!(
            "name = \"wide\"\ndeadline_ns = \"1h\"\n[[process]]\nid = 1\nmemory_bytes = 0\n\
             attaches = \"itself\"\ntasks = [{tasks}]\n"
        );
        let wide = |last| pbs_node_api::Submission {
            request: request.clone(),
            array: array(last),
            ..submission()
        };
        let one = Wanted::read(&caller(), wide(1)).unwrap().held();
        // The start and the end are tasks, too.
        assert_eq!((one.jobs, one.tasks, one.programs), (1, 8002, 0));
        assert!(one.bytes > 8000 * 100, "{one:?}");
        let none = Held::default();
        let many = Wanted::read(&caller(), wide(512)).unwrap().held();
        assert_eq!(many, one * 512);
        let refused = Limits::DEFAULT.allow(&caller(), none, none, many).unwrap_err();
        let Refusal::Failed { why } = refused else { panic!("{refused:?}") };
        assert!(why.contains("4,097,024 more; a user may have 100,000 (user-tasks)"), "{why}");
        // Other tasks of the user count, too.
        let few = Wanted::read(&caller(), wide(6)).unwrap().held();
        assert_eq!(Limits::DEFAULT.allow(&caller(), few, few, few), Ok(()));
        assert!(Limits::DEFAULT.allow(&caller(), few + few, few + few, one).is_err());
    }

    /// A message shows what was given, and says what to write instead.
    #[test]
    fn messages_name_what_was_given() {
        let refused = |submission| match Wanted::read(&caller(), submission).unwrap_err() {
            Refusal::Invalid { problems, .. } => problems.concat(),
            other => panic!("{other:?}"),
        };
        let submission = submission();
        let variable = |name: &str, value: &str| {
            vec![pbs_node_api::Environment { name: name.into(), value: value.into() }]
        };
        let limit = pbs_node_api::Limit { resource: "core_size".into(), soft: None, hard: None };
        let named =
            |name: &str| pbs_node_api::Submission { name: Some(name.into()), ..submission.clone() };
        let array = Some(pbs_node_api::Array { first: 5, last: 4, step: None });
        let relative = pbs_node_api::Submission { directory: "work".into(), ..submission.clone() };
        let odd =
            pbs_node_api::Submission { environment: variable("A=B", "c"), ..submission.clone() };
        let limited = pbs_node_api::Submission { limits: Some(vec![limit]), ..submission.clone() };
        let backwards = pbs_node_api::Submission { array, ..submission.clone() };
        for (submission, words) in [
            (relative, "the working directory \"work\" is not"),
            (odd, "the variable \"A=B\" of"),
            (limited, "no resource limit \"core_size\"; there are as, core, cpu, data, fsize"),
            (backwards, "the array 5-4 in steps of 1 has 0 jobs"),
            (named(""), "is empty"),
            (named(&"x".repeat(201)), "has 201 bytes, and at most 200"),
            (named("a\nb"), "\"a\\nb\", is not printable"),
        ] {
            let told = refused(submission);
            assert!(told.contains(words), "{told}");
        }
        let mut wanted = Wanted::read(&caller(), submission.clone()).unwrap();
        let unseen = wanted.bound_limits(&caller()).unwrap_err();
        assert!(matches!(unseen, Refusal::Failed { why } if why.contains("PID namespace")));
    }

    /// A program of a job that submits another job hands none of its own figures on.
    #[test]
    fn figures_of_an_outer_job_are_not_inherited() {
        let variable = |name: &str, value: &str| pbs_node_api::Environment {
            name: name.into(),
            value: value.into(),
        };
        let environment = vec![
            variable("SCHED_PBS_JOB_ID", "3"),
            variable("SCHED_PBS_ARRAY_INDEX", "9"),
            variable("HOME", "/"),
        ];
        let inner = pbs_node_api::Submission { environment, array: array(1), ..submission() };
        let order = Wanted::read(&caller(), inner).unwrap().into_orders().next().unwrap();
        let expected = [("HOME", "/"), ("SCHED_PBS_ARRAY_INDEX", "1")];
        let expected = expected.map(|(name, value)| (name.to_string(), value.to_string()));
        assert_eq!(order.terms.owner.environment, expected);
    }

    /// Names of files stay with a job, also when it is over.
    #[test]
    fn names_of_files_are_short() {
        let long = "o".repeat(PATH_BYTES + 1);
        for odd in [
            pbs_node_api::Submission { output: Some(long.clone()), ..submission() },
            pbs_node_api::Submission { directory: format!("/{long}"), ..submission() },
        ] {
            let refused = Wanted::read(&caller(), odd).unwrap_err();
            assert!(matches!(refused, Refusal::Invalid { .. }), "{refused:?}");
        }
    }

    #[test]
    fn a_job_comes_after_some_others() {
        assert_eq!(distinct(Some(vec![3, 1, 3, 1])), [1, 3]);
        let after =
            |count| pbs_node_api::Submission { afterok: Some(vec![1; count]), ..submission() };
        assert!(Wanted::read(&caller(), after(JOB_AFTER)).is_ok());
        let refused = Wanted::read(&caller(), after(JOB_AFTER + 1)).unwrap_err();
        assert!(matches!(refused, Refusal::Invalid { .. }), "{refused:?}");
    }

    /// Others read it on their terminals.
    #[test]
    fn what_a_file_is_called_can_be_printed() {
        for file in ["job\u{1b}[2J.toml", "lmot\u{202e}.toml", "job\u{2028}.toml"] {
            let odd = pbs_node_api::Submission { file: file.into(), ..submission() };
            let refused = Wanted::read(&caller(), odd).unwrap_err();
            assert!(matches!(refused, Refusal::Failed { .. }), "{refused:?}");
            let odd = pbs_node_api::Submission { name: Some(file.into()), ..submission() };
            let refused = Wanted::read(&caller(), odd).unwrap_err();
            assert!(matches!(refused, Refusal::Invalid { .. }), "{refused:?}");
        }
    }
}
