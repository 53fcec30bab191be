// SPDX-License-Identifier: GPL-2.0
//! Times since 1970, as people read them.

use jiff::tz::TimeZone;
use jiff::Timestamp;

/// A time since 1970 as one of the local zone.
pub(crate) fn local(unix_ns: u64) -> String {
    time(unix_ns, &TimeZone::system())
}

/// A time since 1970 as one of the local zone, with milliseconds: jobs may be shorter than a
/// second.
pub(crate) fn local_ms(unix_ns: u64) -> String {
    time_ms(unix_ns, &TimeZone::system())
}

fn time_ms(unix_ns: u64, zone: &TimeZone) -> String {
    let (at, ms) = (time(unix_ns, zone), unix_ns / 1_000_000 % 1000);
    // The offset follows the seconds.
    let (seconds, offset) = at.split_at(19);
    format!("{seconds}.{ms:03}{offset}")
}

/// A time since 1970 as one of that zone, with what it is off UTC:
/// `2026-11-22T03:40:00+01:00`.
pub(crate) fn time(unix_ns: u64, zone: &TimeZone) -> String {
    let at = i64::try_from(unix_ns / 1_000_000_000).ok();
    let at = at.and_then(|seconds| Timestamp::from_second(seconds).ok());
    let at = at.unwrap_or(Timestamp::MAX).to_zoned_datetime(zone.clone());
    at.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_zone() {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        for (seconds, text) in [
            (0, "1970-01-01T01:00:00+01:00"),
            (951_782_399, "2000-02-29T00:59:59+01:00"),
            (1_792_889_999, "2026-10-25T02:59:59+02:00"),
            (1_792_890_000, "2026-10-25T02:00:00+01:00"),
        ] {
            assert_eq!(time(seconds * 1_000_000_000, &zone), text);
        }
        let ms = time_ms(951_782_399_042_999_999, &zone);
        assert_eq!(ms, "2000-02-29T00:59:59.042+01:00");
        assert_eq!(time(u64::MAX, &TimeZone::UTC), "2554-07-21T23:34:33+00:00");
    }
}
