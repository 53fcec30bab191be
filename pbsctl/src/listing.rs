// SPDX-License-Identifier: GPL-2.0
//! Listing of runs: selection, order and columns. The runs come from the service or from the
//! history.

use std::fs;

use clap::Args;
use pbs_text::{columns, user_number_of};

use crate::column::{column, Around, Column, COLUMNS};
use crate::complete;
use crate::row::{RunRow, STATES};

/// Runs that are over, of those that are shown without being asked for.
const LAST: usize = 10;

/// Runs that are listed, their order and their columns.
#[derive(Args, Debug)]
pub(crate) struct ListingOptions {
    /// List all runs instead of those that have not ended and the last ten
    #[arg(long, conflicts_with = "last")]
    all: bool,

    /// List this many of the runs that are over, the last ones
    #[arg(long, value_name = "N", default_value_t = LAST)]
    last: usize,

    /// List only runs in these states: held, waiting, planned, running, over
    #[arg(long, value_name = "STATE", value_delimiter = ',', value_parser = STATES)]
    state: Vec<String>,

    /// List only runs of jobs with this name; * stands for any letters
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// List only runs of this user, by name or number
    #[arg(long, value_name = "USER", value_parser = user_number)]
    user: Option<u32>,

    /// Sort by this column; by default the oldest run comes first
    #[arg(long, value_name = "COLUMN", value_parser = column, add = complete::columns())]
    sort: Option<&'static Column>,

    /// Reverse the order
    #[arg(long)]
    reverse: bool,

    /// Show these columns; "help" lists all columns
    #[arg(long, visible_alias = "format", value_name = "LIST", value_parser = list,
          add = complete::columns())]
    columns: Option<List>,

    /// Print no header
    #[arg(long)]
    no_header: bool,
}

/// Argument of `--columns`.
#[derive(Clone, Debug)]
enum List {
    Help,
    Columns(Vec<&'static Column>),
}

impl ListingOptions {
    /// Description of the columns, if that was requested instead of runs.
    pub(crate) fn help(&self) -> Option<String> {
        let Some(List::Help) = self.columns else {
            return None;
        };
        let row = |column: &Column| {
            let shown = if column.by_default { "shown" } else { "" };
            [column.name, shown, column.help].map(String::from).to_vec()
        };
        let rows: Vec<_> = COLUMNS.iter().map(row).collect();
        Some(columns(&rows, 3))
    }

    /// Number of ended runs that are enough to choose from; `None`: all.
    pub(crate) fn enough(&self) -> Option<usize> {
        let chooses = !self.state.is_empty() || self.name.is_some() || self.user.is_some();
        (!self.all && !chooses).then_some(self.last)
    }

    /// Selects the runs to be shown, in order. The runs are given with the oldest first.
    pub(crate) fn choose(&self, runs: Vec<RunRow>) -> Vec<RunRow> {
        let around = Around::new();
        let mut runs: Vec<_> = runs.into_iter().filter(|run| self.wants(run)).collect();
        let over = runs.iter().filter(|run| run.state == "over").count();
        let mut too_many = if self.all { 0 } else { over.saturating_sub(self.last) };
        runs.retain(|run| {
            let is_over = run.state == "over";
            let goes = is_over && too_many > 0;
            too_many -= usize::from(goes);
            !goes
        });
        if let Some(column) = self.sort {
            runs.sort_by_cached_key(|run| {
                let key = (column.key)(run, &around);
                (key.is_none(), key)
            });
        }
        if self.reverse {
            runs.reverse();
        }
        runs
    }

    fn wants(&self, run: &RunRow) -> bool {
        (self.state.is_empty() || self.state.contains(&run.state))
            && (self.name.as_ref()).is_none_or(|pattern| matches(pattern, &run.job))
            && self.user.is_none_or(|user| run.uid == Some(user))
    }

    /// The runs as a table.
    pub(crate) fn table(&self, runs: &[RunRow]) -> String {
        self.table_around(runs, &Around::new())
    }

    fn table_around(&self, runs: &[RunRow], around: &Around) -> String {
        let shown: Vec<&Column> = match &self.columns {
            Some(List::Columns(columns)) => columns.clone(),
            _ => COLUMNS.iter().filter(|column| column.by_default).collect(),
        };
        let header = || shown.iter().map(|column| column.header.into()).collect();
        let mut rows: Vec<Vec<String>> = Vec::new();
        rows.extend((!self.no_header).then(header));
        rows.extend(runs.iter().map(|run| {
            let cells = shown.iter().map(|column| (column.cell)(run, around));
            cells.map(|cell| cell.unwrap_or_else(|| "-".into())).collect()
        }));
        columns(&rows, shown.len())
    }
}

/// The number of a user, from a number or a name.
fn user_number(user: &str) -> Result<u32, String> {
    if let Ok(number) = user.parse() {
        return Ok(number);
    }
    let file = "/etc/passwd";
    let users = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    user_number_of(&users, user).ok_or_else(|| {
        format!("there is no user {user} in {file}; write a name from there, or a number")
    })
}

fn list(names: &str) -> Result<List, String> {
    if names == "help" {
        return Ok(List::Help);
    }
    let columns = names.split(',').map(column);
    Ok(List::Columns(columns.collect::<Result<_, _>>()?))
}

/// Whether a text is as a pattern says, of which each `*` stands for any letters.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut left) = text.strip_prefix(first) else {
        return false;
    };
    let Some((middle, last)) = rest.rsplit_once('*') else {
        return left.ends_with(rest);
    };
    for part in middle.split('*') {
        let Some((_, after)) = left.split_once(part) else {
            return false;
        };
        left = after;
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use jiff::tz::TimeZone;

    use super::*;
    use crate::column::{column_names, span};
    use crate::times::time;

    const SECOND_NS: u64 = 1_000_000_000;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: ListingOptions,
    }

    fn options(words: &str) -> ListingOptions {
        let words = ["jobs"].into_iter().chain(words.split_whitespace());
        Line::try_parse_from(words).unwrap_or_else(|error| panic!("{error}")).options
    }

    const NOW_NS: u64 = 1_795_435_200 * SECOND_NS;

    fn around() -> Around {
        Around {
            now_unix_ns: NOW_NS,
            zone: TimeZone::posix("CET-1").unwrap(),
            users: "root:x:0:0:root:/root:/bin/sh\nanna:x:1000:1000::/:/bin/sh\n".into(),
        }
    }

    fn run(number: u64, job: &str, state: &'static str) -> RunRow {
        RunRow {
            run: number,
            job: job.into(),
            state: state.into(),
            submitted_unix_ns: NOW_NS - 100 * SECOND_NS,
            ..RunRow::default()
        }
    }

    fn numbers(runs: &[RunRow]) -> Vec<u64> {
        runs.iter().map(|run| run.run).collect()
    }

    #[test]
    fn a_run_is_shown_with_all_that_is_known_of_it() {
        let running = RunRow {
            uid: Some(1000),
            priority: Some(3),
            cpus: Some(vec![1, 2, 5]),
            kind: Some("plan".into()),
            tasks: Some(5),
            tasks_ended: Some(2),
            started_unix_ns: Some(NOW_NS - 70 * SECOND_NS),
            begun_unix_ns: Some(NOW_NS - 65 * SECOND_NS),
            expected_end_unix_ns: Some(NOW_NS + 3_723 * SECOND_NS),
            deadline_unix_ns: Some(NOW_NS - SECOND_NS),
            ..run(7, "sort", "running")
        };
        let over = RunRow {
            uid: Some(4711),
            ended_unix_ns: Some(NOW_NS),
            outcome: Some("cancelled".into()),
            kept: Some(false),
            reason: Some("anna cancelled it".into()),
            ..run(8, "pack", "over")
        };
        let names: Vec<_> = column_names().collect();
        let list = format!("--columns {} --no-header", names.join(","));
        let rows = [running, over].map(|run| {
            let table = options(&list).table_around(&[run], &around());
            table.split_whitespace().collect::<Vec<_>>().join(" ")
        });
        let start = time(NOW_NS - 65 * SECOND_NS, &around().zone);
        let submitted = time(NOW_NS - 100 * SECOND_NS, &around().zone);
        let end = time(NOW_NS + 3_723 * SECOND_NS, &around().zone);
        let deadline = time(NOW_NS - SECOND_NS, &around().zone);
        assert_eq!(
            rows[0],
            format!(
                "7 sort anna plan running 3 - 1-2,5 {submitted} 1:40 - {start} {end} - {deadline} 1:05 -0:01 \
                 1:02:03 2/5 - - -"
            )
        );
        let ended = time(NOW_NS, &around().zone);
        assert_eq!(
            rows[1],
            format!(
                "8 pack 4711 - over - - - {submitted} 1:40 - - - {ended} - - - - - cancelled NO anna \
                 cancelled it"
            )
        );
    }

    /// Programs of a planned job stand at the gate, and it has not run at all.
    #[test]
    fn a_planned_run_has_no_start_and_no_time() {
        let planned = RunRow {
            started_unix_ns: Some(NOW_NS - 65 * SECOND_NS),
            expected_start_unix_ns: Some(NOW_NS + 60 * SECOND_NS),
            expected_end_unix_ns: Some(NOW_NS + 70 * SECOND_NS),
            ..run(7, "sort", "planned")
        };
        let list = "--no-header --columns start,time,end,expected-start,expected-end";
        let table = options(list).table_around(&[planned], &around());
        let at = |seconds| time(NOW_NS + seconds * SECOND_NS, &around().zone);
        let cells: Vec<_> = table.split_whitespace().collect();
        assert_eq!(cells, ["-", "-", "-", &*at(60), &*at(70)]);
    }

    #[test]
    fn times_have_the_zone_and_spans_their_days() {
        // `date -u -d @1795435200`, an hour later in Berlin.
        assert_eq!(time(NOW_NS, &around().zone), "2026-11-23T13:00:00+01:00");
        for (seconds, text) in
            [(7, "0:07"), (3_723, "1:02:03"), (4 * 86_400 + 18_367, "4-05:06:07")]
        {
            assert_eq!(span(seconds * SECOND_NS), text);
        }
    }

    #[test]
    fn runs_are_chosen() {
        let runs = || {
            let states = ["over", "over", "over", "running", "waiting", "held"];
            let names = ["sort", "pack", "sort-2", "sort", "pack-sort", "so"];
            let runs = (1..).zip(states.into_iter().zip(names));
            runs.map(|(number, (state, name))| RunRow {
                uid: Some(if number == 4 { 1000 } else { 0 }),
                ..run(number, name, state)
            })
            .collect::<Vec<_>>()
        };
        for (words, wanted) in [
            ("", &[1, 2, 3, 4, 5, 6][..]),
            ("--last 1", &[3, 4, 5, 6]),
            ("--last 0", &[4, 5, 6]),
            ("--all", &[1, 2, 3, 4, 5, 6]),
            ("--state over", &[1, 2, 3]),
            ("--state running,held", &[4, 6]),
            // The last of those that are asked for.
            ("--name sort --last 1", &[1, 4]),
            ("--name sort*", &[1, 3, 4]),
            ("--name *sort", &[1, 4, 5]),
            ("--name *a*o*t", &[5]),
            ("--name s*sort", &[]),
            ("--user 1000", &[4]),
            ("--user root --last 1", &[3, 5, 6]),
            ("--reverse --state over", &[3, 2, 1]),
            ("--sort job", &[2, 5, 6, 1, 4, 3]),
            ("--sort state", &[6, 5, 4, 1, 2, 3]),
        ] {
            assert_eq!(numbers(&options(words).choose(runs())), wanted, "{words}");
        }
    }

    #[test]
    fn by_any_column_runs_without_it_are_last() {
        let some = |number, priority| RunRow { priority, ..run(number, "a", "waiting") };
        let runs = vec![some(1, None), some(2, Some(10)), some(3, Some(9))];
        let sorted = options("--sort priority").choose(runs.clone());
        assert_eq!(numbers(&sorted), [3, 2, 1]);
        for name in column_names() {
            let sorted = options(&format!("--sort {name}")).choose(runs.clone());
            assert_eq!(sorted.len(), 3, "{name}");
        }
    }

    #[test]
    fn columns_are_explained() {
        let help = options("--columns help").help().unwrap();
        for name in column_names() {
            assert!(help.lines().any(|line| line.starts_with(name)), "{name}");
        }
        assert!(options("--format run,job").help().is_none());
        for words in ["--columns run,color", "--sort color", "--state over,gone", "--user no:such"]
        {
            let words = ["jobs"].into_iter().chain(words.split(' '));
            assert!(Line::try_parse_from(words).is_err());
        }
    }
}
