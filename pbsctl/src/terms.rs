// SPDX-License-Identifier: GPL-2.0
//! Terms on which a job is submitted.

use std::path::PathBuf;

use clap::Args;
use pbs_job::{is_moment, moment_unix_ns, now_unix_ns, MAX_WORTH};
use pbs_node_api::Array;
use pbs_text::between;
use serde_json::Value;

use crate::failure::Failure;
use crate::hints::unit_hint;
use crate::quantities::ns;

/// Terms on which a job is submitted, to the service or to the queue.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Terms {
    /// Name of the job, instead of that in its file
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Priority, instead of that in the file; only operators may use more than 0
    #[arg(long, value_name = "N")]
    pub(crate) priority: Option<u32>,

    #[command(flatten)]
    pub(crate) worth: WorthOptions,

    /// Deadline, instead of that in the file: counted from the submission, such as 90s, or a date
    /// and a time, such as 2026-11-27T08:00
    #[arg(long, value_name = "TIME", value_parser = When::parse)]
    pub(crate) deadline: Option<When>,

    /// Time before which the job does not begin, instead of that in the file; written like
    /// --deadline
    #[arg(long, value_name = "TIME", value_parser = When::parse)]
    pub(crate) start: Option<When>,

    /// Run the job as best effort: behind all jobs with a promise, and without one
    #[arg(long)]
    pub(crate) best_effort: bool,

    /// Hold the job until it is released
    #[arg(long)]
    pub(crate) hold: bool,

    /// Plan the job when these jobs have ended
    #[arg(long, value_name = "JOB", value_delimiter = ',')]
    pub(crate) after: Vec<u64>,

    /// Plan the job when these jobs have succeeded; cancel it if one does not
    #[arg(long, value_name = "JOB", value_delimiter = ',')]
    pub(crate) afterok: Vec<u64>,

    /// Submit the job once for each index, which programs find in SCHED_PBS_ARRAY_INDEX: 1-10, or
    /// 0-8:2
    #[arg(long, value_name = "FIRST-LAST[:STEP]", value_parser = array)]
    pub(crate) array: Option<Array>,

    /// File for the output of programs that name no file [default: NAME-NUMBER.out]
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Working directory of the programs [default: the present directory]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) chdir: Option<PathBuf>,
}

/// Worth of a job's deadline to its user.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct WorthOptions {
    /// Value that you gain if the job keeps its deadline, instead of that in the file, in a unit of
    /// your own
    #[arg(long, value_name = "N", value_parser = worth)]
    pub(crate) value: Option<u64>,

    /// Value that you lose if the job misses its deadline, instead of that in the file
    #[arg(long, value_name = "N", value_parser = worth)]
    pub(crate) penalty: Option<u64>,
}

impl WorthOptions {
    /// Values of the job file that the options replace, written as in TOML.
    pub(crate) fn values(self) -> Vec<(&'static str, String)> {
        let value = self.value.map(|value| ("value", value.to_string()));
        let penalty = self.penalty.map(|penalty| ("penalty", penalty.to_string()));
        value.into_iter().chain(penalty).collect()
    }
}

impl Terms {
    /// Terms of the job file, with that file for the output of programs.
    pub(crate) fn with_output(output: Option<PathBuf>) -> Self {
        Self { output, ..Self::default() }
    }

    /// The given options that only the service can serve.
    pub(crate) fn only_of_service(&self) -> Vec<&'static str> {
        let options = [
            ("--hold", self.hold),
            ("--after", !self.after.is_empty()),
            ("--afterok", !self.afterok.is_empty()),
            ("--array", self.array.is_some()),
            ("--output", self.output.is_some()),
            ("--chdir", self.chdir.is_some()),
        ];
        options.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect()
    }

    /// Values of the job file that the options replace, written as in TOML.
    pub(crate) fn values(&self) -> Result<Vec<(&'static str, String)>, Failure> {
        let mut values = Vec::new();
        values.extend(self.start()?.map(|ns| ("start_ns", ns.to_string())));
        values.extend(self.deadline()?.map(|ns| ("deadline_ns", ns.to_string())));
        values.extend(self.priority.map(|priority| ("priority", priority.to_string())));
        // A string of JSON is one of TOML.
        let name = self.name.as_ref().map(|name| Value::from(name.as_str()).to_string());
        values.extend(name.map(|name| ("name", name)));
        values.extend(self.worth.values());
        values.extend(self.best_effort.then(|| ("best_effort", "true".into())));
        Ok(values)
    }

    /// The start, in nanoseconds from now; one that has passed is at once.
    pub(crate) fn start(&self) -> Result<Option<u64>, Failure> {
        Ok(self.start.map(|start| start.counted_ns(now_unix_ns()).unwrap_or(0)))
    }

    /// The deadline, in nanoseconds from now.
    pub(crate) fn deadline(&self) -> Result<Option<u64>, Failure> {
        self.deadline.map(|deadline| deadline.after_ns("--deadline", now_unix_ns())).transpose()
    }
}

/// A time on the command line: a span, or a date and a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// Nanoseconds that count from the submission of the job.
    Span(u64),
    /// Nanoseconds since 1970.
    Moment(u64),
}

impl When {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if is_moment(text) {
            return moment_unix_ns(text).map(Self::Moment);
        }
        let span_ns = ns(text).map_err(|words| {
            format!("{words}; or write a date and a time, such as 2026-11-27T08:00")
        })?;
        if let Some(hint) = unit_hint(text, span_ns) {
            return Err(hint);
        }
        Ok(Self::Span(span_ns))
    }

    /// The nanoseconds from that time since 1970 on; `None`: it is before.
    fn counted_ns(self, from_unix_ns: u64) -> Option<u64> {
        match self {
            Self::Span(ns) => Some(ns),
            Self::Moment(unix_ns) => unix_ns.checked_sub(from_unix_ns).filter(|&ns| ns > 0),
        }
    }

    /// The nanoseconds from the submission of a job on, at that time since 1970.
    ///
    /// # Errors
    ///
    /// The time has passed.
    pub(crate) fn after_ns(self, option: &str, from_unix_ns: u64) -> Result<u64, Failure> {
        self.counted_ns(from_unix_ns).ok_or_else(|| {
            Failure::Usage(format!("{option}: the time has passed; write a later one"))
        })
    }
}

/// A value or a penalty, written as in a job file.
fn worth(text: &str) -> Result<u64, String> {
    let digits = text.replace('_', "");
    // Whatever is wrong with it, the range says what to write.
    let number = digits.parse().ok().filter(|number| (0..=MAX_WORTH).contains(number));
    let range = between(0, MAX_WORTH);
    number.ok_or_else(|| format!("it must be {range}: a whole number in a unit of your own"))
}

/// The indices of `7`, `1-10` or `0-8:2`.
fn array(text: &str) -> Result<Array, String> {
    if let Some((list, limit)) = text.split_once('%') {
        return Err(format!(
            "%{limit} limits how many jobs of an array run at once, and a node has no such limit: \
             write {list}"
        ));
    }
    if let Some((first, _)) = text.split_once(',') {
        return Err(format!(
            "an array is one range: write {first}, and submit the job again with the next one"
        ));
    }
    let read = || {
        let (range, step) = match text.split_once(':') {
            Some((range, step)) => (range, Some(step.parse().ok()?)),
            None => (text, None),
        };
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let array = Array { first: first.parse().ok()?, last: last.parse().ok()?, step };
        (array.first <= array.last && step != Some(0)).then_some(array)
    };
    read().ok_or_else(|| "write the first and the last index, such as 1-10, or 0-8:2".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_ranges() {
        let of = |first, last, step| Ok(Array { first, last, step });
        assert_eq!(array("1-10"), of(1, 10, None));
        assert_eq!(array("0-8:2"), of(0, 8, Some(2)));
        assert_eq!(array("7"), of(7, 7, None));
        assert!(array("1-10%4").unwrap_err().ends_with("has no such limit: write 1-10"));
        assert!(array("1,3,5").unwrap_err().contains("an array is one range: write 1,"));
        for wrong in ["", "5-", "-5", "9-1", "1-9:0", "1-9:x", "a-b"] {
            assert!(array(wrong).unwrap_err().contains("such as 1-10"), "{wrong}");
        }
    }

    #[test]
    fn a_time_is_a_span_or_a_moment() {
        assert_eq!(When::parse("90s"), Ok(When::Span(90_000_000_000)));
        let moment = When::parse("1970-01-01T00:01:30Z");
        assert_eq!(moment, Ok(When::Moment(90_000_000_000)));
        let moment = moment.unwrap();
        assert_eq!(moment.after_ns("--deadline", 60_000_000_000).unwrap(), 30_000_000_000);
        let passed = moment.after_ns("--deadline", 90_000_000_000).unwrap_err();
        assert!(passed.to_string().contains("--deadline: the time has passed"), "{passed}");
        for (text, words) in [
            ("soon", "or write a date and a time, such as 2026-11-27T08:00"),
            ("2026-11-27", "write one as 2026-11-27T08:00"),
            ("90", "is 90 ns; write 90s"),
        ] {
            let told = When::parse(text).unwrap_err();
            assert!(told.contains(words), "{text}: {told}");
        }
    }

    /// The numbers are those that a job file may have.
    #[test]
    fn a_worth_is_a_number_of_a_job_file() {
        for (text, number) in [("0", 0), ("1_500", 1500), ("1_000_000_000_000", MAX_WORTH)] {
            assert_eq!(worth(text), Ok(number));
        }
        for wrong in ["", "_", "-1", "1.5", "5k", "1_000_000_000_001", "99999999999999999999"] {
            let told = worth(wrong).unwrap_err();
            assert!(told.starts_with("it must be between 0 and 1_000_000_000_000: a"), "{told}");
        }
    }

    #[test]
    fn options_replace_values_of_the_file() {
        let terms = Terms {
            name: Some("a \"b\"".into()),
            priority: Some(2),
            deadline: Some(When::Span(5)),
            start: Some(When::Moment(1)),
            worth: WorthOptions { value: Some(1500), penalty: Some(0) },
            ..Terms::default()
        };
        let values = terms.values().unwrap();
        let text: String = values.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
        assert_eq!(
            text,
            "start_ns = 0\ndeadline_ns = 5\npriority = 2\nname = \"a \\\"b\\\"\"\n\
             value = 1500\npenalty = 0\n"
        );
        assert!(terms.only_of_service().is_empty());
        let terms = Terms { hold: true, after: vec![7], ..terms };
        assert_eq!(terms.only_of_service(), ["--hold", "--after"]);
    }
}
