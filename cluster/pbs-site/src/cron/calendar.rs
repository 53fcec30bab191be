// SPDX-License-Identifier: GPL-2.0
//! The calendar, on days counted from 1970-01-01.

/// Days of 400 years, after which the calendar repeats.
pub(super) const CYCLE_DAYS: i64 = 146_097;

/// From 1 March of the year 0 to 1970-01-01.
const EPOCH: i64 = 719_468;

/// Month from 1 and day from 1. Years are taken to begin in March, so that the leap day is
/// their last.
pub(super) fn month_and_day(day: i64) -> (i64, i64) {
    let of_cycle = (day + EPOCH).rem_euclid(CYCLE_DAYS);
    let leap_days = of_cycle / 1_460 - of_cycle / 36_524 + of_cycle / 146_096;
    let year = (of_cycle - leap_days) / 365;
    let of_year = of_cycle - (365 * year + year / 4 - year / 100);
    // Five months from March on, and again from August on, have 153 days.
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (month, of_month)
}

/// From 0, Sunday.
pub(super) fn weekday(day: i64) -> usize {
    // 1970-01-01 was a Thursday.
    (day + 4).rem_euclid(7).unsigned_abs() as usize
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use jiff::ToSpan;

    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        let epoch = date(1970, 1, 1);
        for day in (-1000..150_000).chain(2_900_000..2_901_000) {
            let date = epoch.checked_add(day.days()).unwrap();
            let expected = (i64::from(date.month()), i64::from(date.day()));
            assert_eq!(month_and_day(day), expected, "{day}");
            let of_week = date.weekday().to_sunday_zero_offset();
            assert_eq!(weekday(day), of_week as usize, "{day}");
        }
    }
}
