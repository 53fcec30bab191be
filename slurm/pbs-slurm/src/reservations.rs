// SPDX-License-Identifier: GPL-2.0
//! Reservations of Slurm, such as for maintenance, as `scontrol show reservation` prints them.
//!
//! Slurm starts no job on reserved nodes that would run in the time of a reservation, unless the
//! job asks for that reservation. The planner therefore closes these nodes for that time. Cores of a
//! node are closed with the whole node. Reservations are those of operators: users can't make them.
//!
//! Jobs that ask for a reservation are left to Slurm, if Slurm starts them nowhere but on these
//! nodes and only in that time. That depends on the flags of the reservation.

use std::ops::Range;

use crate::columns::hosts;
use crate::steer::Closing;

/// Reservations that are read at most; further ones are reported.
const MOST: usize = 1000;
/// Longest part of an unreadable row that is reported.
const TOLD_CHARS: usize = 200;
/// Answer when there is no reservation.
const NONE: &str = "No reservations in the system";
/// Flags of reservations that return, with the interval in seconds and the number of times that are
/// planned ahead. Those of workdays or of weekends count for all days.
const RETURNS: [(&str, u64, u64); 5] = [
    ("HOURLY", 3600, 48),
    ("DAILY", 86_400, 30),
    ("WEEKDAY", 86_400, 30),
    ("WEEKEND", 86_400, 30),
    ("WEEKLY", 7 * 86_400, 12),
];

/// Flags of reservations whose jobs use the reserved nodes alone, in the reserved time. All others,
/// such as those of later releases, are taken for flags by which jobs may use other nodes.
const BOUND: [&str; 17] = [
    "",
    "MAINT",
    "OVERLAP",
    "IGNORE_JOBS",
    "HOURLY",
    "DAILY",
    "WEEKDAY",
    "WEEKEND",
    "WEEKLY",
    "SPEC_NODES",
    "ALL_NODES",
    "STATIC",
    "PART_NODES",
    "FIRST_CORES",
    "REPLACE_DOWN",
    "PURGE_COMP",
    "MAGNETIC",
];
/// Flag of reservations that jobs enter without being asked, and the one that undoes the harm.
const MAGNETIC: [&str; 2] = ["MAGNETIC", "FLEX"];

/// Row of a reservation, read or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Row {
    /// A reservation that closes nodes; without nodes it closes none.
    Read(Closing),
    /// A reservation that the plan can't respect, with the reason.
    Foreign {
        /// Name of the reservation.
        name: String,
        /// Reason.
        why: String,
    },
    /// A row that can't be read: its beginning, and the name of the reservation if that can be read.
    Unread {
        /// Name of the reservation.
        name: Option<String>,
        /// Beginning of the row.
        what: String,
    },
}

/// Reads the reservations in what `scontrol show reservation -o` has printed.
pub(crate) fn reservations_of(text: &str) -> Vec<Row> {
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with(NONE));
    let mut rows: Vec<Row> = lines.clone().take(MOST).flat_map(rows_of).collect();
    let more = lines.count().saturating_sub(MOST);
    if more > 0 {
        rows.push(Row::Unread { name: None, what: format!("{more} rows after the first {MOST}") });
    }
    rows
}

/// Rows of a reservation: with nodes and licences it has two of them.
fn rows_of(line: &str) -> Vec<Row> {
    let name = line.strip_prefix("ReservationName=").and_then(|rest| rest.split(' ').next());
    let unread = || Row::Unread {
        name: name.map(Into::into),
        what: line.chars().take(TOLD_CHARS).collect(),
    };
    // In this order, which no name can forge: a name with more words is unreadable.
    const KEYS: [&str; 10] = [
        "ReservationName=",
        "StartTime=",
        "EndTime=",
        "Duration=",
        "Nodes=",
        "NodeCnt=",
        "CoreCnt=",
        "Features=",
        "PartitionName=",
        "Flags=",
    ];
    let mut words = line.split(' ');
    let values: Option<Vec<&str>> =
        KEYS.iter().map(|key| words.next().and_then(|word| word.strip_prefix(key))).collect();
    let Some([name, start, end, _, nodes, _, _, _, _, flags]) = values.as_deref() else {
        return vec![unread()];
    };
    let times = start.parse().ok().zip(end.parse().ok());
    let (Some((start_s, end_s)), Some(nodes)) = (times, hosts(nodes)) else {
        return vec![unread()];
    };
    let flags: Vec<&str> = flags.split(',').collect();
    let value = |key: &str| {
        let value = words.clone().find_map(|word| word.strip_prefix(key));
        value.filter(|value| !matches!(*value, "" | "(null)"))
    };
    let foreign = |why: String| Row::Foreign { name: (*name).into(), why };
    let magnetic = flags.contains(&MAGNETIC[0]) && !flags.contains(&MAGNETIC[1]);
    let magnetic = magnetic.then(|| {
        foreign(format!(
            "jobs enter it unasked (MAGNETIC), and Slurm starts no planned job of those who may use \
             it; take the flag away (scontrol update ReservationName={name} Flags-=MAGNETIC), and \
             have users name the reservation"
        ))
    });
    if flags.contains(&"TIME_FLOAT") {
        return vec![foreign("its time moves (TIME_FLOAT)".into())];
    }
    let licenses = value("Licenses=");
    if let (Some(licenses), true) = (licenses, nodes.is_empty()) {
        return vec![foreign(format!("it keeps licences free ({licenses}), and not nodes"))];
    }
    let licenses = licenses.map(|licenses| {
        foreign(format!("it keeps licences free ({licenses}); of it only its nodes are planned"))
    });
    let whom = [("Users=", "users"), ("Accounts=", "accounts"), ("Groups=", "groups")];
    let whom = whom.iter().find_map(|(key, of)| Some(format!(" for {of} {}", value(key)?)));
    let closing = Closing {
        name: (*name).into(),
        why: format!("reservation {name}{}", whom.unwrap_or_default()),
        nodes,
        times: times_of(start_s..end_s, &flags),
        // Slurm moves a reservation that returns to its next time, and then ends no job for it.
        overrun_s: (!RETURNS.iter().any(|(flag, ..)| flags.contains(flag))).then_some(0),
        loose: loose(&flags, value("MaxStartDelay=")),
    };
    [Row::Read(closing)].into_iter().chain(licenses).chain(magnetic).collect()
}

/// Reason for which no job in a reservation with those flags is left to Slurm; `None`: there is
/// none.
fn loose(flags: &[&str], delay: Option<&str>) -> Option<String> {
    let name = |flag: &&str| flag.split('=').next().unwrap_or_default().to_string();
    let other = flags.iter().map(name).find(|flag| !BOUND.contains(&&**flag));
    let why = match other.as_deref() {
        Some("FLEX") => "its jobs may use nodes outside of it, and begin before it (FLEX)".into(),
        Some("REPLACE") => "it takes another node for each that a job gets (REPLACE)".into(),
        Some("NO_HOLD_JOBS_AFTER_END") => {
            "after its end, its jobs start anywhere (NO_HOLD_JOBS_AFTER_END)".into()
        }
        Some(flag) => format!("its jobs may use nodes outside of it ({flag})"),
        None => {
            let delay = delay?;
            format!("its jobs keep others waiting that run on its nodes (MaxStartDelay={delay})")
        }
    };
    Some(why)
}

/// Seconds for which jobs go on after the end of their reservation, in what `scontrol show config`
/// has printed; `None`: without limit, or it can't be read.
pub(crate) fn overrun_of(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("ResvOverRun"))?;
    let minutes: u64 = line.split('=').nth(1)?.split_whitespace().next()?.parse().ok()?;
    Some(minutes * 60)
}

/// The time of a reservation, and those to which it returns.
fn times_of(first: Range<u64>, flags: &[&str]) -> Vec<Range<u64>> {
    let returns = RETURNS.iter().find(|(flag, ..)| flags.contains(flag));
    let (_, interval_s, count) = *returns.unwrap_or(&("", 0, 1));
    let at = |number: u64| {
        let later_s = interval_s.saturating_mul(number);
        first.start.saturating_add(later_s)..first.end.saturating_add(later_s)
    };
    (0..count).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAINT: &str =
        "ReservationName=maint StartTime=1795811293 EndTime=1795811413 Duration=00:02:00 \
         Nodes=n[01-02] NodeCnt=2 CoreCnt=4 Features=(null) PartitionName=(null) \
         Flags=MAINT,IGNORE_JOBS,SPEC_NODES TRES=cpu=4 Users=root Groups=(null) Accounts=(null) \
         Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a MaxStartDelay=(null)";

    fn closing(line: &str) -> Closing {
        match &reservations_of(line)[..] {
            [Row::Read(closing)] => closing.clone(),
            rows => panic!("{rows:?}"),
        }
    }

    #[test]
    fn a_reservation_closes_its_nodes_for_its_time() {
        let of = closing(MAINT);
        assert_eq!((&*of.name, &of.nodes[..]), ("maint", &["n01".into(), "n02".into()][..]));
        assert_eq!(of.why, "reservation maint for users root");
        assert_eq!((of.times.len(), &of.times[0]), (1, &(1_795_811_293..1_795_811_413)));
        // Newer releases have other words behind these.
        let newer = MAINT.replace(
            "TRES=cpu=4",
            "  NodeName=n01 CoreIDs=0 TRES=cpu=4 AllowedPartitions=(null) QOS=(null)",
        );
        assert_eq!(closing(&newer), of);
        let daily = closing(&MAINT.replace("MAINT,", "DAILY,"));
        assert_eq!((daily.times.len(), daily.times[2].start), (30, 1_795_811_293 + 2 * 86_400));
        assert!(reservations_of("No reservations in the system\n").is_empty());
    }

    #[test]
    fn jobs_of_some_reservations_stay_on_its_nodes() {
        for flags in ["SPEC_NODES", "", "MAINT,OVERLAP", "REPLACE_DOWN,PURGE_COMP=00:05:00"] {
            let of = closing(&MAINT.replace("MAINT,IGNORE_JOBS,SPEC_NODES", flags));
            assert_eq!((of.loose, of.overrun_s), (None, Some(0)), "{flags}");
        }
        for flag in ["FLEX", "REPLACE", "ANY_NODES", "NO_HOLD_JOBS_AFTER_END", "LATER_FLAG"] {
            let why = closing(&MAINT.replace("MAINT", flag)).loose.unwrap_or_default();
            assert!(why.ends_with(&format!("({flag})")), "{flag}: {why}");
        }
        let delayed = MAINT.replace("MaxStartDelay=(null)", "MaxStartDelay=00:05:00");
        assert!(closing(&delayed).loose.is_some());
        // Slurm ends no job for the end of a reservation that returns.
        let daily = closing(&MAINT.replace("MAINT,", "DAILY,"));
        assert_eq!((daily.loose, daily.overrun_s), (None, None));
        let rows = reservations_of(&MAINT.replace("SPEC_NODES", "SPEC_NODES,MAGNETIC"));
        let [Row::Read(closing), Row::Foreign { why, .. }] = &rows[..] else { panic!("{rows:?}") };
        assert!(closing.loose.is_none() && why.contains("Flags-=MAGNETIC"), "{why}");
    }

    #[test]
    fn the_configuration_has_the_time_after_a_reservation() {
        let text =
            |value: &str| format!("ResvEpilog = (null)\nResvOverRun             = {value}\n");
        assert_eq!(overrun_of(&text("5 min")), Some(300));
        assert_eq!(overrun_of(&text("0 min")), Some(0));
        assert_eq!(overrun_of(&text("UNLIMITED")), None);
        assert_eq!(overrun_of(""), None);
    }

    #[test]
    fn a_reservation_that_cannot_be_read_is_reported_and_forges_none() {
        for line in [
            MAINT.replace("StartTime=1795811293", "StartTime=tomorrow"),
            MAINT.replace("Nodes=n[01-02]", "Nodes=n[01"),
            MAINT.replace("=maint ", "=maint StartTime=1 EndTime=2 "),
            "ReservationName=maint".into(),
        ] {
            let rows = reservations_of(&format!("{line}\n{MAINT}"));
            let [Row::Unread { name, what }, Row::Read(_)] = &rows[..] else { panic!("{rows:?}") };
            assert_eq!(name.as_deref(), Some("maint"));
            assert!(what.starts_with("ReservationName=maint") && what.len() <= 200, "{what}");
        }
        let many = format!("{MAINT}\n").repeat(MOST + 2);
        let rows = reservations_of(&many);
        assert_eq!(rows.len(), MOST + 1);
        assert!(matches!(&rows[MOST], Row::Unread { what, .. } if what.starts_with("2 rows")));
    }

    #[test]
    fn what_a_plan_cannot_respect_is_named() {
        let why = |line: &str| match &reservations_of(line)[..] {
            [Row::Foreign { name, why }] => format!("{name}: {why}"),
            rows => panic!("{rows:?}"),
        };
        assert_eq!(
            why(&MAINT.replace("MAINT,", "TIME_FLOAT,")),
            "maint: its time moves (TIME_FLOAT)"
        );
        let of =
            MAINT.replace("n[01-02]", "(null)").replace("Licenses=(null)", "Licenses=matlab:2");
        assert_eq!(why(&of), "maint: it keeps licences free (matlab:2), and not nodes");
        // Beside nodes, licences are not planned, either.
        let both = MAINT.replace("Licenses=(null)", "Licenses=matlab:2");
        let rows = reservations_of(&both);
        let [Row::Read(closing), Row::Foreign { name, why }] = &rows[..] else {
            panic!("{rows:?}")
        };
        assert_eq!((&*closing.name, &**name, closing.nodes.len()), ("maint", "maint", 2));
        assert!(why.starts_with("it keeps licences free (matlab:2); "), "{why}");
    }
}
