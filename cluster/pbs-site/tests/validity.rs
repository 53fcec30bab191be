// SPDX-License-Identifier: GPL-2.0
//! Validities in local time and through changes of the clock.

// A list of one stretch is meant.
#![allow(clippy::single_range_in_vec_init)]

use std::ops::Range;

use jiff::civil::{date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use pbs_gen::{Random, Stream};
use pbs_site::{format_short_time, format_time, parse_time_s, Cron, Validity};

const HOUR_S: u64 = 3600;
const DAY_S: u64 = 24 * HOUR_S;

/// 1.1.2018 and 31.12.2025, 0:00 UTC.
const T1: u64 = 1_514_764_800;
const T2: u64 = 1_767_139_200;

fn berlin() -> TimeZone {
    TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
}

fn validity(text: &str, zone: &TimeZone) -> Validity {
    Validity::parse(text, zone).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn windows(text: &str, zone: &TimeZone, over: Range<u64>) -> Vec<Range<u64>> {
    validity(text, zone).windows(over).collect()
}

/// Unix seconds of a time that the clock shows.
fn at(zone: &TimeZone, local: DateTime) -> u64 {
    let timestamp = zone.to_timestamp(local).unwrap();
    timestamp.as_second().try_into().unwrap()
}

fn texts(zone: &TimeZone, windows: &[Range<u64>]) -> Vec<String> {
    let text = |time_s: u64| {
        let timestamp = Timestamp::from_second(time_s.try_into().unwrap()).unwrap();
        zone.to_datetime(timestamp).strftime("%d.%m. %H:%M").to_string()
    };
    windows.iter().map(|window| format!("{} to {}", text(window.start), text(window.end))).collect()
}

/// Keller's "every Monday and Friday from 7am to 11am" (5.4).
#[test]
fn a_weekly_cron_validity_repeats() {
    let utc = TimeZone::UTC;
    let found = windows("cron 0 7 * * 1,5 +4h", &utc, T1..T2);
    assert_eq!(found.len(), 835);
    assert_eq!(found[0], 1_514_790_000..1_514_804_400);
    assert_eq!(found[1].start, 1_515_135_600);
    assert!(found.iter().all(|window| window.end - window.start == 4 * HOUR_S));
    // From nine o'clock on, two hours are left of the first.
    let late = windows("cron 0 7 * * 1,5 +4h", &utc, T1 + 9 * HOUR_S..T2);
    assert_eq!(late[0], T1 + 9 * HOUR_S..T1 + 11 * HOUR_S);
    assert_eq!(late[1..], found[1..]);
    // The longest that is left between them is 92 hours, from Monday 11:00 on.
    let gaps = found.windows(2).map(|pair| (pair[1].start - pair[0].end, pair[0].end));
    assert_eq!(gaps.clone().map(|(gap_s, _)| gap_s).max(), Some(92 * HOUR_S));
    let first = gaps.filter(|(gap_s, _)| *gap_s == 92 * HOUR_S).map(|(_, end)| end).next();
    assert_eq!(first, Some(T1 + 11 * HOUR_S));
}

#[test]
fn cron_windows_are_found_one_by_one_and_end() {
    let utc = TimeZone::UTC;
    let mondays = validity("cron 0 7 * * 1,5 +4h", &utc);
    let found: Vec<_> = mondays.windows(T1..u64::MAX).take(2).collect();
    assert_eq!(found, [1_514_790_000..1_514_804_400, 1_515_135_600..1_515_150_000]);
    // At all times: one stretch without a hole, up to the last year that there is.
    let zone = berlin();
    let always = validity("cron * * * * * +1m", &zone);
    let found: Vec<_> = always.windows(T1..u64::MAX).collect();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].start, T1);
    assert!(found[0].end > 250_000_000_000);
    assert_eq!(windows("cron 0 0 * * * +24h", &zone, T1..T2), [T1..T2]);
    assert!(windows("cron 0 7 * * * +1h", &utc, T2..T2).is_empty());
    assert!(windows("cron 0 7 * * * +1h", &utc, u64::MAX - 1..u64::MAX).is_empty());
    assert!(!mondays.holds_at(u64::MAX));
}

/// Keller's "each two months on Monday from 8am to 6pm" (3), which has no period of a
/// week.
#[test]
fn a_cron_validity_of_every_other_month_repeats() {
    let utc = TimeZone::UTC;
    let year = at(&utc, date(2018, 1, 1).into())..at(&utc, date(2019, 1, 1).into());
    let all = windows("cron 0 8 * */2 mon +10h", &utc, year.clone());
    let months = [1, 3, 5, 7, 9, 11];
    // All Mondays of these months.
    let mondays = (0..365).map(|day| date(2018, 1, 1).checked_add(day.days()).unwrap());
    let mondays = mondays.filter(|day| {
        months.contains(&day.month()) && day.weekday() == jiff::civil::Weekday::Monday
    });
    let expected: Vec<_> = mondays.map(|day| at(&utc, day.at(8, 0, 0, 0))).collect();
    assert_eq!(all.iter().map(|window| window.start).collect::<Vec<_>>(), expected);
    let first = windows("cron 0 8 * 1-11/2 1#1 +10h", &utc, year);
    assert_eq!(
        texts(&utc, &first),
        [
            "01.01. 08:00 to 01.01. 18:00",
            "05.03. 08:00 to 05.03. 18:00",
            "07.05. 08:00 to 07.05. 18:00",
            "02.07. 08:00 to 02.07. 18:00",
            "03.09. 08:00 to 03.09. 18:00",
            "05.11. 08:00 to 05.11. 18:00",
        ]
    );
}

#[test]
fn cron_validities_follow_local_time() {
    let zone = berlin();
    let spring = at(&zone, date(2017, 3, 24).into())..at(&zone, date(2017, 3, 29).into());
    let found = windows("cron 0 7 * * * +4h", &zone, spring.clone());
    assert_eq!(
        texts(&zone, &found),
        [
            "24.03. 07:00 to 24.03. 11:00",
            "25.03. 07:00 to 25.03. 11:00",
            "26.03. 07:00 to 26.03. 11:00",
            "27.03. 07:00 to 27.03. 11:00",
            "28.03. 07:00 to 28.03. 11:00",
        ]
    );
    // The clock goes from 2 to 3: that day is an hour shorter.
    assert_eq!(found[2].start - found[1].start, 23 * HOUR_S);
    let night = windows("cron 0 1 * * * +3h", &zone, spring.clone());
    let lengths: Vec<_> = night.iter().map(|window| (window.end - window.start) / HOUR_S).collect();
    assert_eq!(lengths, [3, 3, 2, 3, 3]);
    // There is no hour after two o'clock on it.
    assert_eq!(windows("cron 0 2 * * * +1h", &zone, spring).len(), 4);
    // It goes from 3 to 2: there are two.
    let autumn = at(&zone, date(2017, 10, 28).into())..at(&zone, date(2017, 10, 31).into());
    let found = windows("cron 0 2 * * * +1h", &zone, autumn.clone());
    let lengths: Vec<_> = found.iter().map(|window| (window.end - window.start) / HOUR_S).collect();
    assert_eq!(lengths, [1, 2, 1]);
    let found = windows("cron 30 2 29 10 * +15m", &zone, autumn);
    assert_eq!(found.len(), 2);
    assert_eq!(found[1].start - found[0].start, HOUR_S);
}

#[test]
fn stretches_join_and_reach_over_midnight() {
    let utc = TimeZone::UTC;
    let over = T1..T1 + 3 * DAY_S;
    let found = windows("cron 0 22 * * * +10h", &utc, over.clone());
    assert_eq!(
        texts(&utc, &found),
        [
            "01.01. 00:00 to 01.01. 08:00",
            "01.01. 22:00 to 02.01. 08:00",
            "02.01. 22:00 to 03.01. 08:00",
            "03.01. 22:00 to 04.01. 00:00",
        ]
    );
    // Touching ones are one.
    assert_eq!(windows("cron 0 0 * * * +24h", &utc, over.clone()), vec![over.clone()]);
    let found = windows("cron 0,15,30 8 * * * +15m", &utc, over.clone());
    assert_eq!(found.len(), 3);
    assert_eq!(found[0], T1 + 8 * HOUR_S..T1 + 8 * HOUR_S + 45 * 60);
    // One begins before the last has ended.
    let found = windows("cron 0 0 1-2 1 * +36h", &utc, over);
    assert_eq!(found, [T1..T1 + 60 * HOUR_S]);
}

/// Checks the validity in another way: it holds if a stretch begins at one of the minutes before,
/// as the clock shows them.
fn holds(fields: &Fields, zone: &TimeZone, time_s: u64) -> bool {
    let timestamp = Timestamp::from_second(time_s.try_into().unwrap()).unwrap();
    let local = zone.to_datetime(timestamp);
    (0..fields.length_min).any(|before| {
        let start = local.checked_sub(before.minutes()).unwrap();
        let weekday = start.weekday().to_sunday_zero_offset() as u32;
        let day = start.day() as u32;
        let is_day = fields.days.is_empty() || fields.days.contains(&day);
        let is_weekday = fields.weekdays.is_empty() || fields.weekdays.contains(&weekday);
        let is_either = if fields.days.is_empty() || fields.weekdays.is_empty() {
            is_day && is_weekday
        } else {
            is_day || is_weekday
        };
        let is = |list: &[u32], number: i8| list.is_empty() || list.contains(&(number as u32));
        is(&fields.minutes, start.minute())
            && is(&fields.hours, start.hour())
            && is(&fields.months, start.month())
            && is_either
    })
}

/// Empty lists are all.
struct Fields {
    minutes: Vec<u32>,
    hours: Vec<u32>,
    days: Vec<u32>,
    months: Vec<u32>,
    weekdays: Vec<u32>,
    length_min: i64,
}

/// At most three numbers.
fn list(random: &mut Random, least: u64, most: u64) -> Vec<u32> {
    let of = random.below(4);
    let number = |random: &mut Random| (least + random.below(most - least + 1)) as u32;
    let mut list: Vec<_> = (0..of).map(|_| number(random)).collect();
    list.sort();
    list.dedup();
    list
}

#[test]
fn windows_are_those_of_the_minutes() {
    let zones = [
        TimeZone::UTC,
        berlin(),
        // Half an hour, in the south.
        TimeZone::posix("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0").unwrap(),
        TimeZone::posix("EST5EDT,M3.2.0,M11.1.0").unwrap(),
    ];
    let text = |list: &[u32]| match list {
        [] => "*".to_string(),
        list => list.iter().map(u32::to_string).collect::<Vec<_>>().join(","),
    };
    let mut random = Random::new(3, Stream::Scenario);
    let mut holding = 0;
    for round in 0..40 {
        let fields = Fields {
            minutes: vec![random.below(60) as u32],
            hours: list(&mut random, 0, 23),
            days: list(&mut random, 1, 28),
            months: list(&mut random, 1, 12),
            weekdays: list(&mut random, 0, 6),
            length_min: 1 + random.below(200) as i64,
        };
        let lists =
            [&fields.minutes, &fields.hours, &fields.days, &fields.months, &fields.weekdays];
        let lists = lists.map(|list| text(list)).join(" ");
        let cron = format!("cron {lists} +{}m", fields.length_min);
        let zone = &zones[round % zones.len()];
        let validity = validity(&cron, zone);
        assert_eq!(Validity::parse(&validity.to_text(zone), zone).as_ref(), Ok(&validity));
        // A day or two, most of them with a change of the clock.
        let changes = [1_490_490_000, 1_509_238_800, 1_491_062_400, 1_506_787_200, 1_489_302_000];
        let start = changes[random.index(5)] - random.below(2 * DAY_S) / 60 * 60;
        let over = start..start + 2 * DAY_S + 3 * HOUR_S;
        let windows: Vec<_> = validity.windows(over.clone()).collect();
        assert!(windows.windows(2).all(|pair| pair[0].end < pair[1].start), "{cron}");
        assert!(windows.iter().all(|window| window.start < window.end), "{cron}");
        for time_s in over.step_by(420) {
            let expected = holds(&fields, zone, time_s);
            holding += usize::from(expected);
            assert_eq!(validity.holds_at(time_s), expected, "{cron} at {time_s}");
            let is_in = windows.iter().any(|window| window.contains(&time_s));
            assert_eq!(is_in, expected, "{cron} at {time_s}");
        }
    }
    assert!(holding > 200, "{holding}");
}

#[test]
fn periods_are_kellers() {
    let period = |text: &str| Cron::parse(text, &TimeZone::UTC).unwrap().period_s();
    assert_eq!(period("cron 30 * * * * +5m"), Some(HOUR_S));
    assert_eq!(period("cron 0 7 * * * +4h"), Some(DAY_S));
    assert_eq!(period("cron 0 7 * * 1,5 +4h"), Some(7 * DAY_S));
    assert_eq!(period("cron 0 8 * */2 1 +10h"), None);
    assert_eq!(period("cron 0 8 1 * * +10h"), None);
    assert_eq!(period("cron 0 8 * * 1#1 +10h"), None);
}

#[test]
fn dates_are_local_and_the_last_day_counts() {
    let zone = berlin();
    let start = at(&zone, date(2017, 8, 1).into());
    let end = at(&zone, date(2017, 9, 1).into());
    for (text, expected, canonical) in [
        ("always", Validity::Always, "always"),
        ("2017-08-31", Validity::Until(end), "until 2017-08-31"),
        ("until 2017-08-31", Validity::Until(end), "until 2017-08-31"),
        ("/2017-08-31", Validity::Until(end), "until 2017-08-31"),
        ("2017-08-01/2017-08-31", Validity::Between(start..end), "2017-08-01/2017-08-31"),
        (" 2017-8-1 / 2017-8-31 ", Validity::Between(start..end), "2017-08-01/2017-08-31"),
        ("2017-08-01/", Validity::Between(start..u64::MAX), "2017-08-01/"),
        ("2017-08-01/2017-08-01", Validity::Between(start..start + DAY_S), "2017-08-01/2017-08-01"),
        (
            "2017-08-01 07:30/2017-08-31T18:00:05",
            Validity::Between(start + 27_000..end - 6 * HOUR_S + 5),
            "2017-08-01T07:30/2017-08-31T18:00:05",
        ),
        // The offset of Berlin in summer is two hours.
        ("until 2017-08-31T22:00Z", Validity::Until(end), "until 2017-08-31"),
        ("until 2017-09-01T03:30+05:30", Validity::Until(end), "until 2017-08-31"),
        ("2017-08-31T17:00-05:00", Validity::Until(end), "until 2017-08-31"),
        (
            "@5/@1504224000",
            Validity::Between(5..1_504_224_000),
            "1970-01-01T01:00:05/2017-09-01T02:00",
        ),
        // Two o'clock comes twice, and this is the second.
        ("until @1509238800", Validity::Until(1_509_238_800), "until 2017-10-29T02:00:00+01:00"),
        // The older form.
        ("31.08.17", Validity::Until(end), "until 2017-08-31"),
        ("until 31.08.2017", Validity::Until(end), "until 2017-08-31"),
        ("-31.08.17", Validity::Until(end), "until 2017-08-31"),
        ("01.08.17-31.08.17", Validity::Between(start..end), "2017-08-01/2017-08-31"),
        (" 1.8.17 - 31.8.17 ", Validity::Between(start..end), "2017-08-01/2017-08-31"),
        ("01.08.17-2017-08-31", Validity::Between(start..end), "2017-08-01/2017-08-31"),
        ("01.08.17-", Validity::Between(start..u64::MAX), "2017-08-01/"),
        (
            "01.08.17 07:30-31.08.17 18:00:05",
            Validity::Between(start + 27_000..end - 6 * HOUR_S + 5),
            "2017-08-01T07:30/2017-08-31T18:00:05",
        ),
    ] {
        let read = validity(text, &zone);
        assert_eq!(read, expected, "{text}");
        assert_eq!(read.to_text(&zone), canonical, "{text}");
        assert_eq!(validity(canonical, &zone), expected, "{text}");
    }
}

#[test]
fn validities_hold_within_their_bounds() {
    let utc = TimeZone::UTC;
    for (text, over, expected) in [
        ("always", 5..9, vec![5..9]),
        ("until @7", 5..9, vec![5..7]),
        ("until @5", 5..9, vec![]),
        ("@6-@8", 5..9, vec![6..8]),
        ("@6-@80", 5..9, vec![6..9]),
        ("@9-@80", 5..9, vec![]),
        ("@6-", 5..u64::MAX, vec![6..u64::MAX]),
        ("always", 9..9, vec![]),
    ] {
        let validity = validity(text, &utc);
        assert_eq!(validity.windows(over.clone()).collect::<Vec<_>>(), expected, "{text}");
        for time_s in over.clone().take(20) {
            let is_in = expected.iter().any(|window| window.contains(&time_s));
            assert_eq!(validity.holds_at(time_s), is_in, "{text}");
        }
    }
}

#[test]
fn cron_strings_are_written_as_they_are_read() {
    for (text, canonical) in [
        ("cron 0 7 * * 1,5 +4h", "cron 0 7 * * 1,5 +4h"),
        (" cron  0 7  * * mon,FRI +240m ", "cron 0 7 * * 1,5 +4h"),
        ("cron */15 0-23 1-31 1-12 0-6 +60", "cron 0,15,30,45 * * * * +1m"),
        ("cron 0 8-18/2 * jan-mar,6 7 +1d", "cron 0 8,10,12,14,16,18 * 1-3,6 0 +1d"),
        ("cron 0 8 3/7 * * +1s", "cron 0 8 3,10,17,24,31 * * +1s"),
        ("cron 0 8 * * 1#1,mon#3,2 +1h", "cron 0 8 * * 2,1#1,1#3 +1h"),
        ("cron 0 8 * * 1#1,1#2,1#3,1#4,1#5 +1h", "cron 0 8 * * 1 +1h"),
        ("cron 0 0 29 2 * +24h", "cron 0 0 29 2 * +1d"),
    ] {
        let cron =
            Cron::parse(text, &TimeZone::UTC).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(cron.to_string(), canonical, "{text}");
        assert_eq!(Cron::parse(canonical, &TimeZone::UTC), Ok(cron), "{text}");
    }
}

#[test]
fn wrong_validities_are_refused() {
    for (text, column, words) in [
        ("", 1, "\"\" is no date; write always"),
        ("never", 1, "\"never\" is no date"),
        ("32.08.17", 1, "is no date"),
        ("29.02.17", 1, "is no date"),
        ("2017-13-01", 1, "\"2017-13-01\" is no date"),
        ("2017-08-01-2017-08-31", 1, "\"2017-08-01-2017-08-31\" is no date"),
        ("2017-08-01/2017-08", 12, "\"2017-08\" is no date"),
        ("2017-08-01/2017-07-31", 1, "it ends before it begins"),
        ("2017-08-01T25:00", 1, "\"25:00\" is no time of day"),
        ("2017-08-01T18:00+2", 1, "\"18:00+2\" is no time of day"),
        ("1969-12-31T23:59Z", 1, "is before 1970"),
        ("31.08.17-01.08.17", 1, "it ends before it begins"),
        ("01.08.17-31.08", 10, "\"31.08\" is no date"),
        ("until 31.08.17 25:00", 7, "\"25:00\" is no time of day"),
        ("01.01.1950", 1, "is before 1970"),
        ("@x", 1, "@x is no number of seconds"),
        ("cron", 1, "a cron string has seven words, not 1"),
        ("cron 0 7 * * 1,5", 1, "seven words, not 6"),
        ("cron 60 7 * * 1 +4h", 6, "\"60\" is no minute; write numbers from 0 to 59"),
        ("cron 0 24 * * 1 +4h", 8, "is no hour"),
        ("cron 0 7 0 * 1 +4h", 10, "is no day"),
        ("cron 0 7 * foo 1 +4h", 12, "is no month"),
        ("cron 0 7 * * 8 +4h", 14, "is no weekday"),
        ("cron 0 7 * * 1#6 +4h", 14, "is of no week"),
        ("cron 0 9-7 * * 1 +4h", 8, "goes back"),
        ("cron 0 */0 * * 1 +4h", 8, "is no hour"),
        ("cron 0 7 30 2 * +4h", 10, "there is no such day in any year"),
        ("cron 0 7 * * 1 4h", 16, "\"4h\" is no length"),
        ("cron 0 7 * * 1 +4x", 18, "there is no unit 'x'"),
        ("cron 0 7 * * 1 +0s", 16, "a stretch lasts from 1s to 366d"),
        ("cron 0 7 * * 1 +367d", 16, "a stretch lasts from 1s to 366d"),
        ("crony 0 7 * * 1 +4h", 1, "\"crony\" is not cron"),
    ] {
        let error = Validity::parse(text, &TimeZone::UTC).unwrap_err();
        assert_eq!(error.column, column, "{text}: {error}");
        assert!(error.message.contains(words), "{text}: {error}");
    }
}

#[test]
fn times_are_printed_with_their_offset_and_read_again() {
    let zone = berlin();
    for (time_s, text, short) in [
        (1_504_195_200, "2017-08-31T18:00:00+02:00", "2017-08-31T18:00"),
        (1_504_216_800, "2017-09-01T00:00:00+02:00", "2017-09-01"),
        (1_509_235_200, "2017-10-29T02:00:00+02:00", "2017-10-29T02:00"),
        (1_509_238_800, "2017-10-29T02:00:00+01:00", "2017-10-29T02:00:00+01:00"),
        (u64::MAX, "@18446744073709551615", "@18446744073709551615"),
    ] {
        assert_eq!(format_time(time_s, &zone), text);
        assert_eq!(format_short_time(time_s, &zone), short);
        for text in [text, short] {
            assert_eq!(parse_time_s(text, &zone), Ok(time_s), "{text}");
        }
    }
    assert_eq!(parse_time_s("31.08.17 18:00", &zone), Ok(1_504_195_200));
    // A time is no validity, and the remedy names none.
    let error = parse_time_s("yesterday", &zone).unwrap_err();
    let remedy = "\"yesterday\" is no date; write 2017-08-31, 2017-08-31T18:00";
    assert!(error.message.starts_with(remedy) && !error.message.contains("cron"), "{error}");
}
